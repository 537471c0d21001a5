"""The normal law."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pq.core.priors.base import Prior
from pq.core.priors.kernel import Kernel, Row, inside, moderate
from pq.core.priors.location_scale import LocationScale, location_scale_quantile
from pq.core.priors.numerics import (
    LOG_2,
    LOG_SQRT_2_PI,
    SQRT_HALF,
    TINY,
    Array,
    Masks,
    exponential_inverse,
    log_of_complement,
    log_ratio,
    numbers_only,
    ratio,
    special,
    unit_rule,
)

SQRT_2_OVER_PI = math.sqrt(2.0 / math.pi)
NODES = 14


def load_normal() -> None:
    """Whatever masses under the normal law may need, loaded at once: later would be at some records, not at others."""
    special()
    unit_rule(NODES)


def _log_mass(lower: Array, upper: Array, loc: float, scale: float) -> Array:
    """Log mass under the normal law: a Hermite series about the middle of a narrow interval, else `_redo`."""
    half = (upper - lower) / scale
    half *= 0.5
    middle = (lower - loc) / scale
    middle += (upper - loc) / scale
    middle *= 0.5
    x, h = middle * half, half * half
    x *= x
    out = (1 / 5040) * (x * (x * (x - 15.0 * h) + 45.0 * h * h) - 15.0 * h * h * h)
    out += (1 / 120) * (x * (x - 6.0 * h) + 3.0 * h * h)
    out += (1 / 6) * (x - h)
    out += 1.0
    out *= half
    np.log(out, out=out)
    middle *= middle
    middle *= 0.5
    out -= middle
    out += LOG_2 - LOG_SQRT_2_PI
    redo = np.flatnonzero(~((x <= 0.0064) & (h <= 0.0025) & (half >= TINY)))
    if redo.size:
        out[redo] = _redo(lower[redo], upper[redo], loc, scale)
    return out


def _redo(lower: Array, upper: Array, loc: float, scale: float) -> Array:
    out = np.full(lower.shape, -np.inf)
    live = np.flatnonzero(upper > lower)
    lower, upper = lower[live], upper[live]
    u, v, width = ratio(lower, loc, scale), ratio(upper, loc, scale), ratio(upper, lower, scale)
    log_width = np.where(width < TINY, log_ratio(upper, lower, scale), np.log(width))
    out[live] = standard_log_mass(u, v, width, log_width)
    return out


def standard_log_mass(u: Array, v: Array, width: Array, log_width: Array) -> Array:
    """Log mass of (u, v] under the standard normal law, of intervals that are not empty, with their widths."""
    out = np.full(u.shape, -np.inf)
    erf, erfcx = special().erf, special().erfcx
    flip = -u > v  # so that v is the end farther from the location
    u, v = np.where(flip, -v, u), np.where(flip, -u, v)
    near = (width <= 1.0) & (v * width <= 3.0)
    k = np.flatnonzero(near)
    if k.size:
        out[k] = log_width[k] + np.log(_offset_mass(u[k], width[k])) - 0.5 * u[k] ** 2 - LOG_SQRT_2_PI
    k = np.flatnonzero(~near & (u >= 0.0) & (u < 1e154))
    if k.size:
        bracket = erfcx(SQRT_HALF * u[k]) - np.exp(-0.5 * width[k] * (u[k] + v[k])) * erfcx(SQRT_HALF * v[k])
        out[k] = np.log(bracket) - LOG_2 - 0.5 * u[k] ** 2
    k = np.flatnonzero(~near & (u < 0.0))
    if k.size:
        rest = _tail(-u[k]) + _tail(v[k])
        mass = 0.5 * (erf(-SQRT_HALF * u[k]) + erf(SQRT_HALF * v[k]))
        out[k] = log_of_complement(rest, mass)
    return numbers_only(out)


def _tail(z: Array) -> Array:
    """Mass of the standard normal law above z >= 0, with gradual underflow."""
    return np.exp(np.log(0.5 * special().erfcx(SQRT_HALF * z)) - 0.5 * z * z)


def _offset_mass(u: Array, width: Array) -> Array:
    """Mean of exp(-(u t + t^2 / 2)) for t in [0, width]: for narrow intervals, where tails would cancel."""
    nodes, weights = unit_rule(NODES)
    t = width[:, None] * nodes
    return np.asarray(np.exp(-t * (u[:, None] + 0.5 * t)) @ weights)


def normal_inverse(
    near: Array, far: Array, width: Array, u: Array, v: Array, scale: float
) -> tuple[Array, Array, Masks]:
    x, y, w = near / scale, far / scale, width / scale
    offset, place = u * width, np.zeros(u.shape)
    narrow = (w <= 1.0) & (y * w <= 3.0)
    inside = (near < 0.0) & ~narrow
    k = np.flatnonzero(narrow & (w * np.maximum(y, 1.0) > 1e-17))
    if k.size:
        offset[k] = width[k] * _normal_narrow(x[k], w[k], u[k], v[k])
    k = np.flatnonzero(~narrow & ~inside)
    if k.size:
        offset[k] = scale * _normal_wide(x[k], y[k], w[k], u[k], v[k])
    k = np.flatnonzero(inside)
    if k.size:
        total = 0.5 * (special().erf(-SQRT_HALF * x[k]) + special().erf(SQRT_HALF * y[k]))
        below, above = _tail(-x[k]) + u[k] * total, _tail(y[k]) + v[k] * total
        place[k] = np.where(
            below <= above, np.minimum(special().ndtri(below), 0.0), np.maximum(-special().ndtri(above), 0.0)
        )
    return offset, scale * place, ~inside


def _normal_narrow(x: Array, w: Array, u: Array, v: Array) -> Array:
    """Share of a narrow interval's width at share u of its mass: Newton's method from the exponential law."""
    rate = (x + 0.5 * w) * w
    share = np.where(rate < 1e-8, u, exponential_inverse(-u * np.expm1(-rate), v + u * np.exp(-rate)) / rate)
    target = u * _offset_mass(x, w)
    for _ in range(6):
        t = share * w
        share = share - (share * _offset_mass(x, t) - target) / np.exp(-t * (x + 0.5 * t))
        share = np.clip(share, 0.0, 1.0)
    return share


def _normal_wide(x: Array, y: Array, w: Array, u: Array, v: Array) -> Array:
    """Offset at share u of the mass between x >= 0 and y: Newton's method on the log of the tail, which is concave."""
    erfcx = special().erfcx
    start = erfcx(SQRT_HALF * x)
    end = np.exp(-0.5 * w * (x + y)) * erfcx(SQRT_HALF * y) / start
    target = exponential_inverse(u * (1.0 - end), v + u * end)
    offset = 2.0 * target / np.maximum(x + np.sqrt(x * x + 2.0 * target), 1e-300)
    for _ in range(12):
        here = erfcx(SQRT_HALF * (x + offset))
        excess = offset * (x + 0.5 * offset) + np.log(start / here) - target
        step = excess * here / SQRT_2_OVER_PI
        offset = np.maximum(offset - step, 0.0)
        if not (np.abs(step) > 1e-15 * offset).any():
            break
    # Next to the end the tail hardly falls: its logarithm has no digits there, the hazard h and its slope h (h - x) do.
    hazard = SQRT_2_OVER_PI / start
    offset = np.where(target < 1e-9, target / hazard * (1.0 - 0.5 * (1.0 - x / hazard) * target), offset)
    return np.where(np.isinf(target), w, offset)


# --- Machine code -----------------------------------------------------------------------------------------------------

DENSITY_0 = 1.0 / math.sqrt(2.0 * math.pi)
END = 37.0  # standard deviations: masses beyond are no normal floats


def standard_mass(x: float, y: float, width: float) -> float:
    """Mass of (x, y], of that width, under the standard normal law."""
    middle, half = 0.5 * (x + y), 0.5 * width
    p, h = middle * half, half * half
    p *= p
    if p <= 0.0064 and h <= 0.0025:  # Hermite series about the middle
        series = (1 / 5040) * (p * (p * (p - 15.0 * h) + 45.0 * h * h) - 15.0 * h * h * h)
        series += (1 / 120) * (p * (p - 6.0 * h) + 3.0 * h * h) + (1 / 6) * (p - h) + 1.0
        return DENSITY_0 * width * series * math.exp(-0.5 * middle * middle)
    if x >= 0.0:
        return 0.5 * (math.erfc(SQRT_HALF * x) - math.erfc(SQRT_HALF * y))
    if y <= 0.0:
        return 0.5 * (math.erfc(-SQRT_HALF * y) - math.erfc(-SQRT_HALF * x))
    return 0.5 * (math.erf(SQRT_HALF * y) - math.erf(SQRT_HALF * x))


def _mass(loc: float, scale: float, a: float, b: float) -> float:
    return standard_mass((a - loc) / scale, (b - loc) / scale, (b - a) / scale) if b > a else 0.0


def _log_tail(z: float) -> float:
    """Log mass of the standard normal law above z >= 20, by the asymptotic series."""
    s = 1.0 / (z * z)
    return (
        math.log(DENSITY_0 / z)
        - 0.5 * z * z
        + math.log1p(-s * (1.0 - s * (3.0 - s * (15.0 - s * (105.0 - s * 945.0)))))
    )


def far_log_mass(x: float, y: float, width: float) -> float:
    """Log mass of an interval that is far out or very narrow under the standard normal law; NaN for others."""
    if y <= 0.0:
        x, y = -y, -x
    middle, half = 0.5 * (x + y), 0.5 * width
    if middle * half < 1e-3 and half < 1e-3:
        return (
            math.log(DENSITY_0 * width)
            - 0.5 * middle * middle
            + math.log1p((middle * middle - 1.0) * half * half / 6.0)
        )
    if x < 20.0:
        return math.nan
    near = _log_tail(x)
    return near if math.isinf(y) else near + math.log(-math.expm1(_log_tail(y) - near))


def _machine_log_mass(loc: float, scale: float, a: float, b: float) -> float:
    mass = _mass(loc, scale, a, b)
    if mass > 1e-280:
        return math.log(mass)
    if not b > a:
        return -math.inf
    width = (b - a) / scale
    return far_log_mass((a - loc) / scale, (b - loc) / scale, width) if width > 1e-280 else math.nan


def _point(loc: float, scale: float, a: float, b: float, u: float) -> float:
    """By bisection on the distance from the end that is nearer to the point: digits stay in a narrow cell."""
    x, y = (a - loc) / scale, (b - loc) / scale
    if x > END or y < -END:
        return math.nan
    end = END + 3.0
    low_near, high_near = x >= -end, y <= end
    from_low = low_near and (u < 0.5 or not high_near)
    x, y = max(x, -end), min(y, end)
    width = (b - a) / scale if low_near and high_near else y - x
    share = (u if from_low else 1.0 - u) * standard_mass(x, y, width)
    low, high = 0.0, width
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        within = standard_mass(x, x + middle, middle) if from_low else standard_mass(y - middle, y, middle)
        if within < share:
            low = middle
        else:
            high = middle
    if from_low:
        return inside(a + scale * high, a, b)
    return inside(b - scale * high if high_near else loc + scale * (y - high), a, b)


@dataclass(frozen=True)
class Normal(LocationScale, Prior, twin="norm", kernel=Kernel(_mass, _machine_log_mass, _point)):
    """The normal law: light tails, so a wrong location costs the square of its error (`sec:applications`).

    loc: the mean. scale: the standard deviation, positive; both in the unit of the data. Raises `TypeError` or
    `ValueError` naming the argument.

    >>> Normal(0, 1).log_mass(40, math.inf)
    -804.608442
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        load_normal()

    def _row(self) -> Row | None:
        return moderate(self.loc, self.scale)

    def _log_mass(self, lower: Array, upper: Array) -> Array:
        return _log_mass(lower, upper, self.loc, self.scale)

    def _log_density(self, o: Array) -> Array:
        z = ratio(o, self.loc, self.scale)
        return -0.5 * z * z - math.log(self.scale) - LOG_SQRT_2_PI

    def _quantile(self, lower: Array, upper: Array, u: Array, v: Array) -> Array:
        return location_scale_quantile(normal_inverse, lower, upper, u, v, self.loc, self.scale)
