"""Numeric kernels behind the priors: log masses of intervals and inverse distribution functions, to full precision.

Every mass in `lem:quantile` and its relatives is the measure of one interval, which can lie in a tail with mass e^-800,
be 1e-300 wide, or hold all but 1e-300 of the measure. The kernels never subtract two values of a distribution function.
A fast form serves nearly every interval; the few where it could lose digits are found from its result and done again.

All kernels take one-dimensional float64 arrays of equal length and expect floating-point warnings to be off. `lower`
and `upper` are the ends of intervals (lower, upper]; an interval that is empty, inverted or NaN has log mass -inf.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import erf, erfcx, ndtri

Array = npt.NDArray[np.float64]
Masks = npt.NDArray[np.bool_]

TINY = 1e-290  # below this a quotient is near the subnormal range and may have lost digits
LOG_2 = float(np.log(2.0))
LOG_PI = float(np.log(np.pi))
LOG_SQRT_2_PI = 0.5 * (LOG_2 + LOG_PI)
SQRT_HALF = float(np.sqrt(0.5))
SQRT_2_OVER_PI = float(np.sqrt(2.0 / np.pi))


def _unit_rule(order: int) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    return 0.5 * (nodes + 1.0), 0.5 * weights


NODES, WEIGHTS = _unit_rule(14)
RULES = {order: _unit_rule(order) for order in (4, 7, 20, 40)}


def ratio(x: Array | float, y: Array | float, scale: float) -> Array:
    """(x - y) / scale, also where x - y alone overflows."""
    difference = np.subtract(x, y)
    quotient = difference / scale
    if not np.isfinite(difference).all():
        lost = np.isinf(difference) & np.isfinite(x) & np.isfinite(y)
        quotient = np.where(lost, (0.25 * np.asarray(x) - 0.25 * np.asarray(y)) / (0.25 * scale), quotient)
    return np.asarray(quotient)


def log_ratio(x: Array | float, y: Array | float, scale: float) -> Array:
    """log(|x - y| / scale), also where the difference or the quotient over- or underflows."""
    difference = np.abs(np.subtract(x, y))
    lost = np.isinf(difference) & np.isfinite(x) & np.isfinite(y)
    quarter = np.log(np.abs(0.25 * np.asarray(x) - 0.25 * np.asarray(y))) + 2.0 * LOG_2
    return np.asarray(np.where(lost, quarter, np.log(difference)) - np.log(scale))


def log_of_complement(rest: Array, mass: Array) -> Array:
    """log(mass) where `rest` = 1 - mass, each given to full relative precision; the smaller of the two decides."""
    return np.where(rest < 0.5, np.log1p(-rest), np.log(mass)) + 0.0


def uniform_log_mass(lower: Array, upper: Array, low: float, high: float) -> Array:
    """Log mass under the uniform law on [low, high]."""
    start, stop = np.maximum(lower, low), np.minimum(upper, high)
    unit = 1.0 if np.isfinite(high - low) else 0.25  # a width beyond the largest float is measured in quarters
    width = unit * high - unit * low
    mass = (stop - start if unit == 1.0 else unit * stop - unit * start) / width
    out = np.log(np.fmax(mass, 0.0))
    redo = np.flatnonzero(~((mass <= 0.5) & (mass >= TINY)))
    redo = redo[stop[redo] > start[redo]]
    if redo.size:
        start, stop = start[redo], stop[redo]
        rest = ((unit * start - unit * low) + (unit * high - unit * stop)) / width
        small = log_ratio(stop, start, 1.0) - log_ratio(high, low, 1.0)
        out[redo] = np.where(mass[redo] < 0.5, small, np.log1p(-rest) + 0.0)
    return out


def cauchy_log_mass(lower: Array, upper: Array, loc: float, scale: float, folded: bool = False) -> Array:
    """Log mass under the Cauchy law; `folded` doubles the law on the right of `loc`, where all `lower` must lie.

    The mass is the angle under which the interval is seen from a point `scale` above `loc`, found as one angle, not as
    the difference of two. Ends beyond 1e150 scales act as infinite; where that would show, the mass is below 1e-120 and
    done again.
    """
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
    below = np.arctan2(lower - loc, scale) if folded else _angle(loc, lower, scale)
    rest = (below + _angle(upper, loc, scale)) * ((2.0 if folded else 1.0) / np.pi)
    out = np.log1p(-rest) + 0.0
    small = np.flatnonzero(~(rest < 0.5))
    if small.size:
        out[small] = _cauchy_log_angle(lower[small], upper[small], loc, scale) - LOG_PI + (LOG_2 if folded else 0.0)
    return out


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


def laplace_log_mass(lower: Array, upper: Array, loc: float, scale: float) -> Array:
    """Log mass under the Laplace law (`eq:closed-form`)."""
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
        out[redo] = _laplace_redo(lower[redo], upper[redo], loc, scale)
    return out


def _laplace_redo(lower: Array, upper: Array, loc: float, scale: float) -> Array:
    u, v = (loc - lower) / scale, (upper - loc) / scale  # both positive where the interval holds loc
    mass = -0.5 * (np.expm1(-u) + np.expm1(-v))
    out = np.log(mass)
    rare = np.flatnonzero(~((mass >= TINY) & (mass < 0.49) & (u > 0.0) & (v > 0.0)))
    if rare.size:
        out[rare] = _laplace_rare(lower[rare], upper[rare], loc, scale)
    return out


def _laplace_rare(lower: Array, upper: Array, loc: float, scale: float) -> Array:
    u, v, width = ratio(loc, lower, scale), ratio(upper, loc, scale), ratio(upper, lower, scale)
    log_width = np.where(width < TINY, log_ratio(upper, lower, scale), np.log(-np.expm1(-width)))
    one_side = log_width - np.maximum(0.0, np.maximum(-u, -v)) - LOG_2
    mass = -0.5 * (np.expm1(-u) + np.expm1(-v))
    log_mass = log_of_complement(0.5 * (np.exp(-u) + np.exp(-v)), mass)
    log_mass = np.where((mass >= TINY) & (u > 0.0) & (v > 0.0), log_mass, one_side)
    return np.where(upper > lower, log_mass, -np.inf)


def normal_log_mass(lower: Array, upper: Array, loc: float, scale: float) -> Array:
    """Log mass under the normal law: a Hermite series about the middle of a narrow interval, else `_normal_redo`."""
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
        out[redo] = _normal_redo(lower[redo], upper[redo], loc, scale)
    return out


def _normal_redo(lower: Array, upper: Array, loc: float, scale: float) -> Array:
    out = np.full(lower.shape, -np.inf)
    live = np.flatnonzero(upper > lower)
    lower, upper = lower[live], upper[live]
    u, v, width = ratio(lower, loc, scale), ratio(upper, loc, scale), ratio(upper, lower, scale)
    flip = -u > v  # so that v is the end farther from the location
    u, v = np.where(flip, -v, u), np.where(flip, -u, v)
    near = (width <= 1.0) & (v * width <= 3.0)
    k = np.flatnonzero(near)
    if k.size:
        log_width = np.where(width[k] < TINY, log_ratio(upper[k], lower[k], scale), np.log(width[k]))
        out[live[k]] = log_width + np.log(normal_offset_mass(u[k], width[k])) - 0.5 * u[k] ** 2 - LOG_SQRT_2_PI
    k = np.flatnonzero(~near & (u >= 0.0) & (u < 1e154))
    if k.size:
        bracket = erfcx(SQRT_HALF * u[k]) - np.exp(-0.5 * width[k] * (u[k] + v[k])) * erfcx(SQRT_HALF * v[k])
        out[live[k]] = np.log(bracket) - LOG_2 - 0.5 * u[k] ** 2
    k = np.flatnonzero(~near & (u < 0.0))
    if k.size:
        rest = normal_tail(-u[k]) + normal_tail(v[k])
        mass = 0.5 * (erf(-SQRT_HALF * u[k]) + erf(SQRT_HALF * v[k]))
        out[live[k]] = log_of_complement(rest, mass)
    return out


def normal_tail(z: Array) -> Array:
    """Mass of the standard normal law above z >= 0, with gradual underflow."""
    return np.exp(np.log(0.5 * erfcx(SQRT_HALF * z)) - 0.5 * z * z)


def normal_offset_mass(u: Array, width: Array) -> Array:
    """Mean of exp(-(u t + t^2 / 2)) for t in [0, width]: for narrow intervals, where tails would cancel."""
    t = width[:, None] * NODES
    return np.asarray(np.exp(-t * (u[:, None] + 0.5 * t)) @ WEIGHTS)


class Bins:
    """Arrays of a piecewise constant law: edges (k+1,), weights (k,) that add up to one, and what follows from them."""

    def __init__(self, edges: tuple[float, ...], weights: tuple[float, ...]) -> None:
        self.edges, self.weights = np.array(edges), np.array(weights)
        # A range wider than the largest float is measured in quarters.
        self.unit = 1.0 if np.isfinite(edges[-1] - edges[0]) else 0.25
        self.widths = np.diff(self.unit * self.edges)
        with np.errstate(divide="ignore"):
            self.log_weights = np.log(self.weights)
        with np.errstate(over="ignore", invalid="ignore"):
            self.log_widths = log_ratio(self.edges[1:], self.edges[:-1], 1.0)
        wide = self.weights.astype(np.longdouble)
        self.below = np.concatenate([[0.0], np.cumsum(wide)]).astype(np.float64)
        self.above = np.concatenate([np.cumsum(wide[::-1])[::-1], [0.0]]).astype(np.float64)
        used = np.flatnonzero(self.weights > 0.0)
        bins = np.arange(self.weights.size)
        self.next_used = used[np.minimum(np.searchsorted(used, bins), used.size - 1)]
        self.last_used = used[np.maximum(np.searchsorted(used, bins, side="right") - 1, 0)]

    def span(self, start: Array, stop: Array) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """First and last bin that the interval (start, stop] touches."""
        last = self.weights.size - 1
        first_bin = np.searchsorted(self.edges, start, side="right") - 1
        last_bin = np.searchsorted(self.edges, stop, side="left") - 1
        return np.clip(first_bin, 0, last), np.clip(last_bin, 0, last)

    def part(self, bins: npt.NDArray[np.intp], start: Array, stop: Array) -> Array:
        """Mass of (start, stop] inside one bin."""
        return self.weights[bins] * ((self.unit * stop - self.unit * start) / self.widths[bins])

    def log_part(self, bins: npt.NDArray[np.intp], start: Array, stop: Array) -> Array:
        return self.log_weights[bins] + (log_ratio(stop, start, 1.0) - self.log_widths[bins])

    def log_mass(self, lower: Array, upper: Array) -> Array:
        """Log mass as a sum of positive parts: two cut bins and the whole bins between them."""
        e = self.edges
        start, stop = np.maximum(lower, e[0]), np.minimum(upper, e[-1])
        i, j = self.span(start, stop)
        first_stop = np.minimum(stop, e[i + 1])
        mass = self.part(i, start, first_stop)
        whole = np.zeros(mass.shape)
        if (several := np.flatnonzero(j > i)).size:
            mass[several] += self.part(j[several], e[j[several]], stop[several])
            far = np.flatnonzero(j - i > 1)
            if far.size:
                pairs = np.stack([i[far] + 1, j[far]], axis=1).ravel()
                whole[far] = np.add.reduceat(self.weights, pairs)[::2]
                mass += whole
        out = np.log(np.fmax(mass, 0.0))
        redo = np.flatnonzero(~((mass <= 0.5) & (mass >= TINY)))
        redo = redo[stop[redo] > start[redo]]
        if redo.size:
            i, j, start, stop, first_stop = i[redo], j[redo], start[redo], stop[redo], first_stop[redo]
            rest = self.below[i] + self.part(i, e[i], start) + (self.above[j + 1] + self.part(j, stop, e[j + 1]))
            small = np.logaddexp(self.log_part(i, start, first_stop), np.log(whole[redo]))
            small = np.logaddexp(small, np.where(j > i, self.log_part(j, e[j], stop), -np.inf))
            out[redo] = np.where(mass[redo] > 0.5, np.log1p(-rest) + 0.0, small)
        return out

    def quantile(self, lower: Array, upper: Array, uniform: Array) -> Array:
        """Inverse of the law restricted to intervals that have mass: the bin by bisection, then the place in it."""
        i, j = self.span(np.maximum(lower, self.edges[0]), np.minimum(upper, self.edges[-1]))
        i, j = self.next_used[i], self.last_used[j]
        log_total = self.log_mass(lower, upper)
        while (i < j).any():
            middle = (i + j) // 2
            share = np.exp(self.log_mass(lower, np.minimum(upper, self.edges[middle + 1])) - log_total)
            right = (share <= uniform) & (i < j)
            i, j = np.where(right, self.next_used[np.minimum(middle + 1, j)], i), np.where(right | (i >= j), j, middle)
            j = np.maximum(self.last_used[j], i)
        start, stop = np.maximum(lower, self.edges[i]), np.minimum(upper, self.edges[i + 1])
        before = np.exp(self.log_mass(lower, start) - log_total)
        inside = np.exp(self.log_mass(start, stop) - log_total)
        return between(start, stop, np.where(inside > 0.0, np.clip((uniform - before) / inside, 0.0, 1.0), 0.0))


def between(start: Array, stop: Array, share: Array) -> Array:
    """start + share (stop - start), from the end that is nearer, also where the width overflows."""
    width = stop - start
    middle = 0.5 * start + 0.5 * stop
    point = np.where(
        share < 0.5,
        np.minimum(start + share * width, middle),
        np.maximum(stop - (1.0 - share) * width, middle),
    )
    return np.where(np.isinf(width), start * (1.0 - share) + stop * share, point)


# The quantile kernels below see an interval from the location: `near` and `far` are the signed distances of its ends,
# mirrored so that |near| <= far; `near` < 0 means that the location lies inside. u is the share of the mass next to the
# near end, v = 1 - u. They return a point as an offset from the near end (where the mask is set) or as a distance from
# the location.
Kernel = Callable[[Array, Array, Array, Array, Array, float], tuple[Array, Array, Masks]]


def location_scale_quantile(
    kernel: Kernel, lower: Array, upper: Array, u: Array, v: Array, loc: float, scale: float
) -> Array:
    """Inverse of a symmetric law restricted to (lower, upper], at share u = 1 - v of the interval's mass."""
    ends = np.concatenate([np.abs(lower), np.abs(upper), [abs(loc)]])
    if (np.isfinite(ends) & (ends > 4e307)).any():  # differences could overflow
        return 4.0 * location_scale_quantile(kernel, 0.25 * lower, 0.25 * upper, u, v, 0.25 * loc, 0.25 * scale)
    left, right = lower - loc, upper - loc
    flip = (upper <= loc) | ((lower < loc) & (-left > right))
    near, far = np.where(flip, -right, left), np.where(flip, -left, right)
    offset, place, use_offset = kernel(near, far, upper - lower, np.where(flip, v, u), np.where(flip, u, v), scale)
    sign = np.where(flip, -1.0, 1.0)
    return np.where(use_offset, np.where(flip, upper, lower) + sign * offset, loc + sign * place)


def cauchy_kernel(
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
    span = np.where(y < half, width, scale * np.hypot(1.0, x))
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


def laplace_kernel(
    near: Array, far: Array, width: Array, u: Array, v: Array, scale: float
) -> tuple[Array, Array, Masks]:
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


def exponential_inverse(below: Array, above: Array) -> Array:
    """Where the unit exponential law has mass `below` on the left and `above` = 1 - below on the right."""
    return np.where(above < 0.5, np.maximum(-np.log(above), LOG_2), np.minimum(-np.log1p(-below), LOG_2))


def normal_kernel(
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
        total = 0.5 * (erf(-SQRT_HALF * x[k]) + erf(SQRT_HALF * y[k]))
        below, above = normal_tail(-x[k]) + u[k] * total, normal_tail(y[k]) + v[k] * total
        place[k] = np.where(below <= above, np.minimum(ndtri(below), 0.0), np.maximum(-ndtri(above), 0.0))
    return offset, scale * place, ~inside


def _normal_narrow(x: Array, w: Array, u: Array, v: Array) -> Array:
    """Share of a narrow interval's width at share u of its mass: Newton's method from the exponential law."""
    rate = (x + 0.5 * w) * w
    share = np.where(rate < 1e-8, u, exponential_inverse(-u * np.expm1(-rate), v + u * np.exp(-rate)) / rate)
    target = u * normal_offset_mass(x, w)
    for _ in range(6):
        t = share * w
        share = share - (share * normal_offset_mass(x, t) - target) / np.exp(-t * (x + 0.5 * t))
        share = np.clip(share, 0.0, 1.0)
    return share


def _normal_wide(x: Array, y: Array, w: Array, u: Array, v: Array) -> Array:
    """Offset at share u of the mass between x >= 0 and y: Newton's method on the log of the tail, which is concave."""
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
    return np.where(np.isinf(target), w, offset)


def bisect_floats(left_of: Callable[[Array], Masks], lower: Array, upper: Array, guess: Array) -> Array:
    """Least float in (lower, upper] at which `left_of` is false (else `upper`), by bisection over the ordered floats.

    `guess` only saves time: floats a little below and above it are tried first.
    """
    least = np.iinfo(np.int64).min

    def swap(bits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.where(bits < 0, least - bits, bits)  # the order of the floats as integers; its own inverse

    below = swap((np.asarray(lower) + 0.0).view(np.int64))
    above = swap((np.asarray(upper) + 0.0).view(np.int64))
    start = swap((np.clip(np.where(np.isnan(guess), lower, guess), lower, upper) + 0.0).view(np.int64))
    steps = iter([-(1 << 30), 1 << 30, -16, 16])
    while (open_ := above > below + 1).any():
        middle: Any = (below >> 1) + (above >> 1) + (below & above & 1)
        if (step := next(steps, 0)) != 0:
            trial = start + step
            middle = np.where((below < trial) & (trial < above), trial, middle)
        go = left_of(swap(middle).view(np.float64))
        below, above = np.where(open_ & go, middle, below), np.where(open_ & ~go, middle, above)
    return swap(above).view(np.float64)


def distribution_log_mass(lower: Array, upper: Array, law: Any) -> Array:
    """Log mass under a scipy distribution: from the lighter tail, or by quadrature where that cancels."""
    low, high = law.support()
    start, stop = np.maximum(lower, low), np.minimum(upper, high)
    out = np.full(lower.shape, -np.inf)
    live = np.flatnonzero(stop > start)
    if not live.size:
        return out
    start, stop = start[live], stop[live]
    log_below, log_above = law.logcdf(stop), law.logsf(start)
    on_right = log_above < log_below
    most = np.where(on_right, log_above, log_below)
    kept = -np.expm1(np.where(on_right, law.logsf(stop), law.logcdf(start)) - most)
    rest = law.cdf(start) + law.sf(stop)
    log_mass = np.where(rest < 0.5, np.log1p(-rest) + 0.0, most + np.log(kept))
    unit = 4e-16 * (1.0 + np.abs(most))  # what rounding does to the larger logarithm
    error = np.where(np.isfinite(log_mass), unit / kept, np.inf)
    error = np.where((rest < 0.5) | (kept > 0.2), 0.0, error)
    for coarse, fine in ((4, 7), (20, 40)):
        k = np.flatnonzero(error > 0.0)
        if k.size:
            value = _log_integral(law.logpdf, start[k], stop[k], fine)
            gap = np.abs(value - _log_integral(law.logpdf, start[k], stop[k], coarse))
            better = np.isfinite(value) & (gap < np.minimum(np.maximum(error[k], 8.0 * unit[k]), 1e-6))
            log_mass[k] = np.where(better, value, log_mass[k])
            error[k] = np.where(better, np.where(gap < 64.0 * unit[k], 0.0, gap), error[k])
    for i in np.flatnonzero(~np.isfinite(log_mass)):
        log_mass[i] = _log_tail_integral(law.logpdf, float(start[i]), float(stop[i]))
    out[live] = log_mass
    return out


def _log_integral(log_density: Callable[[Array], Array], a: Array, b: Array, order: int) -> Array:
    """Log of the integral of a density over each (a, b], by one Gauss-Legendre rule."""
    nodes, weights = RULES[order]
    values = log_density(between(a[:, None], b[:, None], nodes))
    top = np.max(values, axis=1)
    return np.asarray(top + np.log(np.exp(values - top[:, None]) @ weights) + log_ratio(b, a, 1.0))


def _log_tail_integral(log_density: Callable[[Array], Array], a: float, b: float) -> float:
    """Log of the integral over an interval of a far tail, on panels that double in width away from the denser end."""
    ends = np.clip(np.array([a, b]), -1e300, 1e300)
    heights = np.nan_to_num(log_density(ends), nan=-np.inf, posinf=-np.inf, neginf=-np.inf)
    anchor, sign = (ends[0], 1.0) if heights[0] >= heights[1] else (ends[1], -1.0)
    length = ends[1] - ends[0]
    step = min(1e-6 * max(abs(anchor), 1e-300), length)
    slope = np.abs(np.diff(log_density(np.array([anchor, anchor + sign * step])))[0]) / step
    scale = 1.0 / slope if 0.0 < slope < np.inf else length
    marks = np.unique(np.minimum(scale * (np.exp2(np.arange(200)) - 1.0), length))
    p, q = anchor + sign * marks[:-1], anchor + sign * marks[1:]
    parts = _log_integral(log_density, np.minimum(p, q), np.maximum(p, q), 20)
    return float(np.logaddexp.reduce(np.nan_to_num(parts, nan=-np.inf)))
