"""The Cauchy law."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pq.core.priors.base import Prior
from pq.core.priors.kernel import Kernel, Row, inside, moderate
from pq.core.priors.location_scale import LocationScale, location_scale_quantile
from pq.core.priors.numerics import LARGEST, LOG_2, LOG_PI, Array, Masks, log_ratio, numbers_only, ratio


def cauchy_log_mass(lower: Array, upper: Array, loc: float, scale: float, folded: bool = False) -> Array:
    """Log mass under the Cauchy law; `folded` doubles the law on the right of `loc`, where all `lower` must lie.

    The mass is the angle under which the interval is seen from a point `scale` above `loc`, found as one angle, not as
    the difference of two. Ends beyond 1e150 scales act as infinite; where that would show, the mass is below 1e-120 and
    done again.
    """
    if scale > 1e150:  # a difference that overflows may be few scales wide
        return _cauchy_redo(lower, upper, loc, scale, folded)
    mass = (upper - lower) / scale
    np.minimum(mass, 1e150, out=mass)
    product = (lower - loc) / scale
    np.maximum(product, -1e150, out=product)
    v = (upper - loc) / scale
    product *= np.minimum(v, 1e150, out=v)
    product += 1.0
    np.maximum(product, 0.0, out=product)  # sends inverted intervals and masses of a half and more to be done again
    mass /= product
    np.arctan(mass, out=mass)
    mass *= (2.0 if folded else 1.0) / np.pi
    out = np.log(mass)
    redo = np.flatnonzero(~((mass <= 0.49) & (mass >= 1e-120)))
    if redo.size:
        out[redo] = _cauchy_redo(lower[redo], upper[redo], loc, scale, folded)
    return out


def _angle(x: Array | float, y: Array | float, scale: float) -> Array:
    """arctan(scale / (x - y)) in (0, pi), also where x - y overflows."""
    difference = np.subtract(x, y)
    angle = np.arctan2(scale, difference)
    if not np.isfinite(difference).all():
        quarter = np.arctan2(0.25 * scale, 0.25 * np.asarray(x) - 0.25 * np.asarray(y))
        angle = np.where(np.isinf(difference) & np.isfinite(x) & np.isfinite(y), quarter, angle)
    return np.asarray(angle)


def _cauchy_redo(lower: Array, upper: Array, loc: float, scale: float, folded: bool) -> Array:
    below = np.arctan(ratio(lower, loc, scale)) if folded else _angle(loc, lower, scale)
    rest = (below + _angle(upper, loc, scale)) * ((2.0 if folded else 1.0) / np.pi)
    out = np.log1p(-rest) + 0.0
    small = np.flatnonzero(~(rest < 0.5))
    if small.size:
        out[small] = _cauchy_log_angle(lower[small], upper[small], loc, scale) - LOG_PI + (LOG_2 if folded else 0.0)
    return numbers_only(out)


def _cauchy_log_angle(lower: Array, upper: Array, loc: float, scale: float) -> Array:
    """Log of the angle of an interval with at most half the mass, with quotients kept as logarithms."""
    crossing = (lower < loc) & (upper > loc)
    log_u, log_v = log_ratio(lower, loc, scale), log_ratio(upper, loc, scale)
    log_tan = log_ratio(upper, lower, scale) - np.logaddexp(0.0, np.where(crossing, -np.inf, log_u + log_v))
    log_tan = np.where(np.isinf(upper), -log_u, np.where(np.isinf(lower), -log_v, log_tan))
    log_angle = np.where(log_tan < -20.0, log_tan, np.log(np.arctan(np.exp(log_tan))))
    both = np.arctan(np.abs(ratio(lower, loc, scale))) + np.arctan(ratio(upper, loc, scale))
    log_angle = np.where(crossing & (both > 1e-20), np.log(both), log_angle)
    return np.where(upper > lower, log_angle, -np.inf)


def cauchy_inverse(
    near: Array, far: Array, width: Array, u: Array, v: Array, scale: float
) -> tuple[Array, Array, Masks]:
    x, y, w = near / scale, far / scale, width / scale
    beyond = np.arctan2(scale, far)
    # Location inside: angles are measured from the end of the line that is nearer, or from the location.
    from_near, from_far = np.arctan2(scale, -near), beyond
    total = (np.pi - from_near) - from_far
    total = np.where(w < 1.0, np.arctan(-x) + np.arctan(y), total)
    below, above = from_near + u * total, from_far + v * total
    place = np.clip(scale * np.tan(u * total + np.arctan(x)), -scale, scale)
    place = np.where(below < np.pi / 4, np.minimum(-scale / np.tan(below), -scale), place)
    place = np.where(above < np.pi / 4, np.maximum(scale / np.tan(above), scale), place)
    # Location outside. Beyond 1e8 scales the law is a power law. Otherwise the tangent addition formula gives the
    # offset from the near end, up to the point that halves the angle of the tail; beyond it cancellation is no risk.
    tail = np.arctan2(scale, near)
    product = 1.0 + x * y
    total = np.where(np.isfinite(product), np.arctan2(w, product), tail - beyond)
    half = x + np.hypot(1.0, x)
    reach = np.minimum(y, half)
    span = np.where(y < half, width, np.minimum(scale * np.hypot(1.0, x), LARGEST))
    tangent = np.where(y < half, w / product, 1.0 / half)
    share = np.where(total < 1e-9, u, np.minimum(np.tan(u * total) / tangent, 1.0))
    rest = np.where(total < 1e-9, v, 1.0 - share)
    slope = (1.0 + x * x) / (1.0 + x * reach)
    offset = span * (slope * share / (rest + slope * share))
    distant = x > 1e8
    slope = near / far
    power = np.where(np.isinf(far), near * (u / v), width * (slope * u / (v + slope * u)))
    outer = np.maximum(scale / np.tan(beyond + v * total), near + scale * np.hypot(1.0, x))
    inside = near < 0.0
    tiny = w < 1e-17
    use_offset = tiny | (~inside & (distant | (u * total <= 0.5 * tail)))
    offset = np.where(tiny, u * width, np.where(distant, power, offset))
    return offset, np.where(inside, place, outer), use_offset


def cauchy_log_density(o: Array, loc: float, scale: float) -> Array:
    z = np.abs(ratio(o, loc, scale))
    log_tail = np.where(z > 1e8, 2.0 * log_ratio(o, loc, scale), np.log1p(z * z))
    return -LOG_PI - math.log(scale) - log_tail


# --- Machine code -----------------------------------------------------------------------------------------------------


def _small_arctan(t: float) -> float:
    """arctan(t) for 0 <= t < 0.05, to the last digit."""
    s = t * t
    series = 1.0 / 7.0 - s * (1.0 / 9.0 - s * (1.0 / 11.0 - s / 13.0))
    return t * (1.0 - s * (1.0 / 3.0 - s * (0.2 - s * series)))


def seen_angle(x: float, y: float, width: float) -> float:
    """The angle under which (x, y], of that width, is seen from a point one above the origin."""
    if math.isinf(x) or math.isinf(y):
        if math.isinf(x) and math.isinf(y):
            return math.pi
        return math.atan2(1.0, x) if math.isinf(y) else math.atan2(1.0, -y)
    side = 1.0 + x * y
    if not side > 0.0:
        return math.atan2(width, side)
    t = width / side
    return _small_arctan(t) if t < 0.05 else math.atan(t)


def _mass(loc: float, scale: float, a: float, b: float) -> float:
    return seen_angle((a - loc) / scale, (b - loc) / scale, (b - a) / scale) / math.pi if b > a else 0.0


def _machine_log_mass(loc: float, scale: float, a: float, b: float) -> float:
    mass = _mass(loc, scale, a, b)
    if mass > 1e-280:
        return math.log(mass)
    return math.nan if b > a else -math.inf


def cauchy_point(loc: float, scale: float, a: float, b: float, u: float) -> float:
    """The point at share u of the mass of (a, b]."""
    x, y = (a - loc) / scale, (b - loc) / scale
    total, start, unit, v = seen_angle(x, y, (b - a) / scale), a, scale, 1.0 - u
    if x + y < 0.0:  # mirror, so that angles are measured from the nearer end of the line
        x, y, start, unit, u, v = -y, -x, b, -scale, v, u
    if x > -1.0 and u * total < 0.5 * math.atan2(1.0, x):  # an offset from the near end keeps its digits
        tangent = math.tan(u * total)
        return inside(start + unit * (1.0 + x * x) * tangent / (1.0 - x * tangent), a, b)
    angle = math.atan2(1.0, y) + v * total
    if angle < 0.5 * math.pi:
        return inside(loc + unit / math.tan(angle), a, b)
    return inside(loc - unit / math.tan(math.atan2(1.0, -x) + u * total), a, b)


def add_cells_above(loc: float, scale: float, weight: float, least: float, edges: Any, out: Any) -> None:
    """Add what the cells hold above a least number."""
    unit, weight = 1.0 / scale, weight / math.pi
    others = 0
    for i in range(out.size):  # without a branch, so that several cells go through the processor at once
        a, b = edges[i] if edges[i] > least else least, edges[i + 1] if edges[i + 1] > least else least
        x, y, width = (a - loc) * unit, (b - loc) * unit, (b - a) * unit
        side = 1.0 + x * y
        near = width < 0.05 * side  # not by the quotient: it takes longer, and the next loop asks again
        others += not near
        out[i] += weight * _small_arctan(width / side) if near else 0.0
    if others == 0:
        return
    for i in range(out.size):
        a, b = edges[i] if edges[i] > least else least, edges[i + 1] if edges[i + 1] > least else least
        x, y, width = (a - loc) * unit, (b - loc) * unit, (b - a) * unit
        if not width < 0.05 * (1.0 + x * y) and width > 0.0:
            out[i] += weight * seen_angle(x, y, width)


def _add_cells(loc: float, scale: float, weight: float, edges: Any, out: Any) -> None:
    add_cells_above(loc, scale, weight, -math.inf, edges, out)


@dataclass(frozen=True)
class Cauchy(LocationScale, Prior, twin="cauchy", kernel=Kernel(_mass, _machine_log_mass, cauchy_point, _add_cells)):
    """The Cauchy law: heavy tails make the price of a wrong location logarithmic in its error (`cor:cauchy`).

    loc: where the data is expected. scale: half the width of the expected range, positive; both in the unit of the
    data. Raises `TypeError` or `ValueError` naming the argument.

    >>> Cauchy(0, 1).log_mass(1e9, 1e9 + 1)
    -42.591262
    """

    def _row(self) -> Row | None:
        return moderate(self.loc, self.scale)

    def _log_mass(self, lower: Array, upper: Array) -> Array:
        return cauchy_log_mass(lower, upper, self.loc, self.scale)

    def _log_density(self, o: Array) -> Array:
        return cauchy_log_density(o, self.loc, self.scale)

    def _quantile(self, lower: Array, upper: Array, u: Array, v: Array) -> Array:
        return location_scale_quantile(cauchy_inverse, lower, upper, u, v, self.loc, self.scale)
