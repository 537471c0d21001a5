"""The Laplace law."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pq.core.priors.base import Prior
from pq.core.priors.kernel import Kernel, Row, inside, moderate, one_minus_exp
from pq.core.priors.location_scale import LocationScale, location_scale_quantile
from pq.core.priors.numerics import (
    LOG_2,
    TINY,
    Array,
    Masks,
    exponential_inverse,
    log_of_complement,
    log_ratio,
    numbers_only,
    ratio,
)


def _log_mass(lower: Array, upper: Array, loc: float, scale: float) -> Array:
    """Log mass under the Laplace law (`eq:closed-form`)."""
    if scale > 2.0**1000:  # a difference that overflows may be few scales wide
        return _rare(lower, upper, loc, scale)
    distance = np.maximum(lower - loc, loc - upper)
    distance /= scale
    width = lower - upper
    width /= scale
    out = np.expm1(width)
    np.negative(out, out=out)
    np.log(out, out=out)
    out -= distance
    out -= LOG_2
    redo = np.flatnonzero(~((distance >= 0.0) & (distance < np.inf) & (width <= -TINY)))
    if redo.size:
        out[redo] = _redo(lower[redo], upper[redo], loc, scale)
    return out


def _redo(lower: Array, upper: Array, loc: float, scale: float) -> Array:
    u, v = (loc - lower) / scale, (upper - loc) / scale  # both positive where the interval holds loc
    mass = -0.5 * (np.expm1(-u) + np.expm1(-v))
    out = np.log(mass)
    rare = np.flatnonzero(~((mass >= TINY) & (mass < 0.49) & (u > 0.0) & (v > 0.0)))
    if rare.size:
        out[rare] = _rare(lower[rare], upper[rare], loc, scale)
    return out


def _rare(lower: Array, upper: Array, loc: float, scale: float) -> Array:
    u, v, width = ratio(loc, lower, scale), ratio(upper, loc, scale), ratio(upper, lower, scale)
    log_width = np.where(width < TINY, log_ratio(upper, lower, scale), np.log(-np.expm1(-width)))
    one_side = log_width - np.maximum(0.0, np.maximum(-u, -v)) - LOG_2
    mass = -0.5 * (np.expm1(-u) + np.expm1(-v))
    log_mass = log_of_complement(0.5 * (np.exp(-u) + np.exp(-v)), mass)
    log_mass = np.where((mass >= TINY) & (u > 0.0) & (v > 0.0), log_mass, one_side)
    return numbers_only(np.where(upper > lower, log_mass, -np.inf))


def _inverse(near: Array, far: Array, width: Array, u: Array, v: Array, scale: float) -> tuple[Array, Array, Masks]:
    w = width / scale
    offset = exponential_inverse(-u * np.expm1(-w), v + u * np.exp(-w))
    near_mass, far_mass = -np.expm1(near / scale), -np.expm1(-far / scale)
    total = near_mass + far_mass
    on_near = u * total < near_mass
    place = np.where(
        on_near,
        -exponential_inverse(near_mass - u * total, np.exp(near / scale) + u * total),
        exponential_inverse(np.maximum(far_mass - v * total, 0.0), np.exp(-far / scale) + v * total),
    )
    tiny = w < 1e-17
    offset = np.where(tiny, u * width, scale * offset)
    return offset, scale * place, tiny | (near >= 0.0)


# --- Machine code -----------------------------------------------------------------------------------------------------


def _mass(loc: float, scale: float, a: float, b: float) -> float:
    if not b > a:
        return 0.0
    x, y = (a - loc) / scale, (b - loc) / scale
    if x >= 0.0 or y <= 0.0:
        return 0.5 * math.exp(-max(x, -y)) * one_minus_exp((b - a) / scale)
    return 0.5 * (one_minus_exp(-x) + one_minus_exp(y))


def _machine_log_mass(loc: float, scale: float, a: float, b: float) -> float:
    mass = _mass(loc, scale, a, b)
    if mass > 1e-280:
        return math.log(mass)
    if not b > a:
        return -math.inf
    x, y, width = (a - loc) / scale, (b - loc) / scale, (b - a) / scale
    if width > 1e-280 and (x >= 0.0 or y <= 0.0):
        return math.log(one_minus_exp(width)) - max(x, -y) - LOG_2
    return math.nan


def _add_cells(loc: float, scale: float, weight: float, edges: Any, out: Any) -> None:
    unit, weight = 1.0 / scale, 0.5 * weight
    x = (edges[0] - loc) * unit
    tail = math.exp(-abs(x))
    for i in range(out.size):
        y, width = (edges[i + 1] - loc) * unit, (edges[i + 1] - edges[i]) * unit
        beyond = math.exp(-abs(y))
        if width > 0.0:
            if x < 0.0 < y:
                out[i] += weight * (one_minus_exp(-x) + one_minus_exp(y))
            elif width > 0.1:
                out[i] += weight * abs(tail - beyond)
            else:
                out[i] += weight * max(tail, beyond) * one_minus_exp(width)
        x, tail = y, beyond


def _exponential_point(width: float, u: float) -> float:
    """The point at share u of the unit exponential law on [0, width]."""
    if width < 1e-17:
        return u * width
    if u < 0.5:
        return -math.log1p(-u * one_minus_exp(width))
    if width < 1.0:  # from the other end, or the logarithm of nearly one would have no digits left
        return width - math.log1p((1.0 - u) * math.expm1(width))
    return -math.log((1.0 - u) + u * math.exp(-width))


def _point(loc: float, scale: float, a: float, b: float, u: float) -> float:
    x, y, width = (a - loc) / scale, (b - loc) / scale, (b - a) / scale
    if x >= 0.0:
        return inside(a + scale * _exponential_point(width, u), a, b)
    if y <= 0.0:
        return inside(b - scale * _exponential_point(width, 1.0 - u), a, b)
    left, right = one_minus_exp(-x), one_minus_exp(y)  # twice the masses on either side of the location
    below, above = u * (left + right), (1.0 - u) * (left + right)
    if below < left:
        share = math.exp(x) + below
        return inside(loc + scale * (math.log(share) if share < 0.5 else math.log1p(below - left)), a, b)
    share = math.exp(-y) + above
    return inside(loc - scale * (math.log(share) if share < 0.5 else math.log1p(min(above - right, 0.0))), a, b)


@dataclass(frozen=True)
class Laplace(LocationScale, Prior, twin="laplace", kernel=Kernel(_mass, _machine_log_mass, _point, _add_cells)):
    """The Laplace law, the one to learn: minus its log mass is convex in loc / scale and 1 / scale (`eq:closed-form`).

    loc: where the data is expected. scale: mean distance from it, positive; both in the unit of the data. Raises
    `TypeError` or `ValueError` naming the argument.

    >>> Laplace(0, 1).log_mass(0, 1e-20)
    -46.744849
    """

    def _row(self) -> Row | None:
        return moderate(self.loc, self.scale)

    def _log_mass(self, lower: Array, upper: Array) -> Array:
        return _log_mass(lower, upper, self.loc, self.scale)

    def _log_density(self, o: Array) -> Array:
        return -np.abs(ratio(o, self.loc, self.scale)) - math.log(self.scale) - LOG_2

    def _quantile(self, lower: Array, upper: Array, u: Array, v: Array) -> Array:
        return location_scale_quantile(_inverse, lower, upper, u, v, self.loc, self.scale)
