"""Priors in scalar arithmetic, compiled: masses, their logarithms, and points at a share of a mass (Section 3.1).

A prior is here a table of parts, rows `(kind, loc, scale, weight)`, of which it is the weighted sum; see
`pq.private.fast.encode`. The forms are those of `pq.core.priors.special` where numbers are moderate: no difference of
two values of a distribution function, small widths by series or expm1. Beyond their range a mass comes out as zero or
NaN, and the caller leaves the work to `pq.private.mechanisms.independent`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pq.core.machine.keep import compiled

UNIFORM, CAUCHY, HALF_CAUCHY, LAPLACE, NORMAL = 0, 1, 2, 3, 4  # loc and scale of a uniform part are its two ends

LOG_2 = math.log(2.0)
LOG_PI = math.log(math.pi)
SQRT_HALF = math.sqrt(0.5)
DENSITY_0 = 1.0 / math.sqrt(2.0 * math.pi)
NORMAL_END = 37.0  # standard deviations: masses beyond are no normal floats
BELOW_ONE = math.nextafter(1.0, 0.0)
LARGEST = float(np.finfo(np.float64).max)


@compiled
def _small_arctan(t: float) -> float:
    """arctan(t) for 0 <= t < 0.05, to the last digit."""
    s = t * t
    series = 1.0 / 7.0 - s * (1.0 / 9.0 - s * (1.0 / 11.0 - s / 13.0))
    return t * (1.0 - s * (1.0 / 3.0 - s * (0.2 - s * series)))


@compiled
def _angle(x: float, y: float, width: float) -> float:
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


@compiled
def _one_minus_exp(width: float) -> float:
    """1 - exp(-width), for any width at least 0."""
    if width > 0.1:
        return -math.expm1(-width)
    w = width
    series = 1.0 - w * (1 / 7) * (1.0 - w * (1 / 8) * (1.0 - w * (1 / 9) * (1.0 - w * (1 / 10))))
    series = 1.0 - w * (1 / 4) * (1.0 - w * (1 / 5) * (1.0 - w * (1 / 6) * series))
    return w * (1.0 - w * (1 / 2) * (1.0 - w * (1 / 3) * series))


@compiled
def _normal_mass(x: float, y: float, width: float) -> float:
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


@compiled
def part_mass(kind: float, loc: float, scale: float, a: float, b: float) -> float:
    """Mass of (a, b] under one part, whose weight is not counted."""
    if kind == UNIFORM:
        width = min(b, scale) - max(a, loc)
        return width / (scale - loc) if width > 0.0 else 0.0
    if kind == HALF_CAUCHY:
        a = max(a, loc)
    if not b > a:
        return 0.0
    x, y, width = (a - loc) / scale, (b - loc) / scale, (b - a) / scale
    if kind == CAUCHY:
        return _angle(x, y, width) / math.pi
    if kind == HALF_CAUCHY:
        return 2.0 * _angle(x, y, width) / math.pi
    if kind == NORMAL:
        return _normal_mass(x, y, width)
    if x >= 0.0 or y <= 0.0:
        return 0.5 * math.exp(-max(x, -y)) * _one_minus_exp(width)
    return 0.5 * (_one_minus_exp(-x) + _one_minus_exp(y))


@compiled
def _normal_log_tail(z: float) -> float:
    """Log mass of the standard normal law above z >= 20, by the asymptotic series."""
    s = 1.0 / (z * z)
    return (
        math.log(DENSITY_0 / z)
        - 0.5 * z * z
        + math.log1p(-s * (1.0 - s * (3.0 - s * (15.0 - s * (105.0 - s * 945.0)))))
    )


@compiled
def _normal_log_mass(x: float, y: float, width: float) -> float:
    """Log mass of an interval that is far out or very narrow; NaN for others."""
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
    near = _normal_log_tail(x)
    return near if math.isinf(y) else near + math.log(-math.expm1(_normal_log_tail(y) - near))


@compiled
def part_log_mass(kind: float, loc: float, scale: float, a: float, b: float) -> float:
    """Log mass of (a, b] under one part, also where the mass is too small for a float; NaN where this fails."""
    mass = part_mass(kind, loc, scale, a, b)
    if mass > 1e-280:
        return math.log(mass)
    if kind == UNIFORM:
        return -math.inf if min(b, scale) <= max(a, loc) else math.nan
    if kind == HALF_CAUCHY:
        a = max(a, loc)
    if not b > a:
        return -math.inf
    x, y, width = (a - loc) / scale, (b - loc) / scale, (b - a) / scale
    if kind == LAPLACE and width > 1e-280 and (x >= 0.0 or y <= 0.0):
        return math.log(_one_minus_exp(width)) - max(x, -y) - LOG_2
    if kind == NORMAL and width > 1e-280:
        return _normal_log_mass(x, y, width)
    return math.nan


@compiled
def mass(parts: Any, a: float, b: float) -> float:
    """Mass of (a, b] under a prior."""
    total = 0.0
    for k in range(parts.shape[0]):
        total += parts[k, 3] * part_mass(parts[k, 0], parts[k, 1], parts[k, 2], a, b)
    return total


@compiled
def log_mass(parts: Any, a: float, b: float) -> float:
    """Log mass of (a, b] under a prior."""
    total = -math.inf
    for k in range(parts.shape[0]):
        if parts[k, 3] > 0.0:
            one = math.log(parts[k, 3]) + part_log_mass(parts[k, 0], parts[k, 1], parts[k, 2], a, b)
            if one != -math.inf:  # NaN goes through
                top = max(one, total)
                total = top + math.log(math.exp(one - top) + math.exp(total - top))
    return total


@compiled
def _add_cauchy(loc: float, scale: float, weight: float, edges: Any, out: Any) -> None:
    unit, weight = 1.0 / scale, weight / math.pi
    others = 0
    for i in range(out.size):  # without a branch, so that several cells go through the processor at once
        x, y, width = (edges[i] - loc) * unit, (edges[i + 1] - loc) * unit, (edges[i + 1] - edges[i]) * unit
        t = width / (1.0 + x * y)
        near = 0.0 <= t < 0.05
        others += not near
        out[i] += weight * _small_arctan(t) if near else 0.0
    if others == 0:
        return
    for i in range(out.size):
        x, y, width = (edges[i] - loc) * unit, (edges[i + 1] - loc) * unit, (edges[i + 1] - edges[i]) * unit
        if not 0.0 <= width / (1.0 + x * y) < 0.05 and width > 0.0:
            out[i] += weight * _angle(x, y, width)


@compiled
def _add_laplace(loc: float, scale: float, weight: float, edges: Any, out: Any) -> None:
    unit, weight = 1.0 / scale, 0.5 * weight
    x = (edges[0] - loc) * unit
    tail = math.exp(-abs(x))
    for i in range(out.size):
        y, width = (edges[i + 1] - loc) * unit, (edges[i + 1] - edges[i]) * unit
        beyond = math.exp(-abs(y))
        if width > 0.0:
            if x < 0.0 < y:
                out[i] += weight * (_one_minus_exp(-x) + _one_minus_exp(y))
            elif width > 0.1:
                out[i] += weight * abs(tail - beyond)
            else:
                out[i] += weight * max(tail, beyond) * _one_minus_exp(width)
        x, tail = y, beyond


@compiled
def add_cell_masses(parts: Any, edges: Any, out: Any) -> None:
    """Put the masses of the cells between neighbouring edges into `out`: the inner loop of a release."""
    out[:] = 0.0
    for k in range(parts.shape[0]):
        kind, loc, scale, weight = parts[k, 0], parts[k, 1], parts[k, 2], parts[k, 3]
        if kind == CAUCHY:
            _add_cauchy(loc, scale, weight, edges, out)
        elif kind == LAPLACE:
            _add_laplace(loc, scale, weight, edges, out)
        else:
            for i in range(out.size):
                out[i] += weight * part_mass(kind, loc, scale, edges[i], edges[i + 1])


@compiled
def _uniform_point(a: float, b: float, u: float) -> float:
    return a + u * (b - a) if u < 0.5 else b - (1.0 - u) * (b - a)


@compiled
def _exponential_point(width: float, u: float) -> float:
    """The point at share u of the unit exponential law on [0, width]."""
    if width < 1e-17:
        return u * width
    if u < 0.5:
        return -math.log1p(-u * _one_minus_exp(width))
    if width < 1.0:  # from the other end, or the logarithm of nearly one would have no digits left
        return width - math.log1p((1.0 - u) * math.expm1(width))
    return -math.log((1.0 - u) + u * math.exp(-width))


@compiled
def _laplace_point(loc: float, scale: float, a: float, b: float, u: float) -> float:
    x, y, width = (a - loc) / scale, (b - loc) / scale, (b - a) / scale
    if x >= 0.0:
        return a + scale * _exponential_point(width, u)
    if y <= 0.0:
        return b - scale * _exponential_point(width, 1.0 - u)
    left, right = _one_minus_exp(-x), _one_minus_exp(y)  # twice the masses on either side of the location
    below, above = u * (left + right), (1.0 - u) * (left + right)
    if below < left:
        share = math.exp(x) + below
        return loc + scale * (math.log(share) if share < 0.5 else math.log1p(below - left))
    share = math.exp(-y) + above
    return loc - scale * (math.log(share) if share < 0.5 else math.log1p(min(above - right, 0.0)))


@compiled
def _cauchy_point(loc: float, scale: float, a: float, b: float, u: float) -> float:
    x, y = (a - loc) / scale, (b - loc) / scale
    total, start, unit, v = _angle(x, y, (b - a) / scale), a, scale, 1.0 - u
    if x + y < 0.0:  # mirror, so that angles are measured from the nearer end of the line
        x, y, start, unit, u, v = -y, -x, b, -scale, v, u
    if x > -1.0 and u * total < 0.5 * math.atan2(1.0, x):  # an offset from the near end keeps its digits
        tangent = math.tan(u * total)
        return start + unit * (1.0 + x * x) * tangent / (1.0 - x * tangent)
    angle = math.atan2(1.0, y) + v * total
    if angle < 0.5 * math.pi:
        return loc + unit / math.tan(angle)
    return loc - unit / math.tan(math.atan2(1.0, -x) + u * total)


@compiled
def _normal_point(loc: float, scale: float, a: float, b: float, u: float) -> float:
    """By bisection on the distance from the end that is nearer to the point, which keeps its digits in a narrow cell;
    NaN far out."""
    x, y = (a - loc) / scale, (b - loc) / scale
    if x > NORMAL_END or y < -NORMAL_END:
        return math.nan
    end = NORMAL_END + 3.0
    low_near, high_near = x >= -end, y <= end
    from_low = low_near and (u < 0.5 or not high_near)
    x, y = max(x, -end), min(y, end)
    width = (b - a) / scale if low_near and high_near else y - x
    share = (u if from_low else 1.0 - u) * _normal_mass(x, y, width)
    low, high = 0.0, width
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        inside = _normal_mass(x, x + middle, middle) if from_low else _normal_mass(y - middle, y, middle)
        if inside < share:
            low = middle
        else:
            high = middle
    if from_low:
        return a + scale * high
    return b - scale * high if high_near else loc + scale * (y - high)


@compiled
def part_point(kind: float, loc: float, scale: float, a: float, b: float, u: float) -> float:
    """The point at share u of the mass of (a, b] under one part, which has some there."""
    if kind == UNIFORM:
        a, b = max(a, loc), min(b, scale)
        return min(max(_uniform_point(a, b, u), a), b)
    if kind == HALF_CAUCHY:
        a = max(a, loc)
    if kind == LAPLACE:
        o = _laplace_point(loc, scale, a, b, u)
    elif kind == NORMAL:
        o = _normal_point(loc, scale, a, b, u)
    else:
        o = _cauchy_point(loc, scale, a, b, u)
    return min(max(o, a), b)


@compiled
def point(parts: Any, a: float, b: float, u: float) -> float:
    """The point of (a, b] that u in (0, 1) stands for; NaN where the prior has no mass there.

    A mixture first takes a part by u, in proportion to its mass in the interval, then what remains of u for the place.
    """
    count = parts.shape[0]
    if count == 1:
        return part_point(parts[0, 0], parts[0, 1], parts[0, 2], a, b, u)
    top = -math.inf
    logs = np.empty(count)
    for k in range(count):
        logs[k] = math.log(parts[k, 3]) + part_log_mass(parts[k, 0], parts[k, 1], parts[k, 2], a, b)
        if math.isnan(logs[k]):
            return math.nan
        top = max(top, logs[k])
    if not top > -math.inf:
        return math.nan
    total = 0.0
    last = 0
    for k in range(count):
        logs[k] = math.exp(logs[k] - top)
        total += logs[k]
        if logs[k] > 0.0:
            last = k
    scaled, before = u * total, 0.0
    for k in range(last + 1):
        share = logs[k]
        if share > 0.0 and (scaled < before + share or k == last):
            rest = min(max((scaled - before) / share, 0.0), BELOW_ONE)
            return part_point(parts[k, 0], parts[k, 1], parts[k, 2], a, b, rest)
        before += share
    return math.nan
