"""The lognormal law."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pq.core.exact import briefly
from pq.core.priors.arguments import finite_number, positive
from pq.core.priors.base import Prior, set_parameters
from pq.core.priors.kernel import Kernel, Row, inside
from pq.core.priors.normal import END, far_log_mass, load_normal, normal_inverse, standard_log_mass, standard_mass
from pq.core.priors.numerics import LARGEST, LOG_SQRT_2_PI, Array

LOG_2_HIGH = float.fromhex("0x1.62e42fefa38p-1")  # log 2 in two parts: products of the first with an exponent are exact
LOG_2_LOW = float.fromhex("0x1.ef35793c7673p-45")
LEAST_LOG_SCALE = 1e-4  # of a narrower law, masses of cut intervals would add up to fewer digits than those of others
LOG_RANGE = 100.0  # machine code takes log medians within it, and scales from its inverse


def _offset(x: Array, log_loc: float) -> Array:
    """log x less the log median, without the rounding of log x where the two nearly agree."""
    part, exponent = np.frexp(x)
    offset = (exponent * LOG_2_HIGH - log_loc) + (np.log(part) + exponent * LOG_2_LOW)
    return np.where(np.isinf(x) | (x <= 0.0), np.log(np.maximum(x, 0.0)), offset)


def _standard(a: Array, b: Array, log_loc: float, log_scale: float) -> tuple[Array, Array, Array]:
    """Ends of intervals as standard normal ones, and their widths to all digits."""
    x, y, growth = _offset(a, log_loc) / log_scale, _offset(b, log_loc) / log_scale, (b - a) / a
    return x, y, np.where(growth < 1.0, np.log1p(growth) / log_scale, y - x)


def _log_mass(lower: Array, upper: Array, log_loc: float, log_scale: float) -> Array:
    """Log mass under the lognormal law: that of the logarithms, whose distance has all its digits."""
    lower = np.maximum(lower, 0.0)
    out = np.full(lower.shape, -np.inf)
    live = np.flatnonzero(upper > lower)
    a, b = lower[live], upper[live]
    u, v, width = _standard(a, b, log_loc, log_scale)
    out[live] = standard_log_mass(u, v, width, np.log(width))
    return out


def _mass(log_loc: float, log_scale: float, a: float, b: float) -> float:
    a = max(a, 0.0)
    if not b > a:
        return 0.0
    x = (math.log(a) - log_loc) / log_scale if a > 0.0 else -math.inf
    y = (math.log(b) - log_loc) / log_scale
    growth = (b - a) / a
    return standard_mass(x, y, math.log1p(growth) / log_scale if growth < 1.0 else y - x)


def _machine_log_mass(log_loc: float, log_scale: float, a: float, b: float) -> float:
    a = max(a, 0.0)
    mass = _mass(log_loc, log_scale, a, b)
    if mass > 1e-280:
        return math.log(mass)
    if not b > a:
        return -math.inf
    x = (math.log(a) - log_loc) / log_scale if a > 0.0 else -math.inf
    y = (math.log(b) - log_loc) / log_scale
    growth = (b - a) / a
    width = math.log1p(growth) / log_scale if growth < 1.0 else y - x
    return far_log_mass(x, y, width) if width > 1e-280 else math.nan


def _point(log_loc: float, log_scale: float, a: float, b: float, u: float) -> float:
    """By bisection on the share of the way, in the log domain from one end: a narrow cell keeps its digits."""
    a = max(a, 0.0)
    least, most = math.exp(log_loc - END * log_scale), math.exp(log_loc + END * log_scale)
    if a > most or b < least:
        return math.nan
    low, high = max(a, least), min(b, most)
    near_end = u < 0.5
    share = (u if near_end else 1.0 - u) * _mass(log_loc, log_scale, a, b)
    for _ in range(2000):
        middle = math.sqrt(low) * math.sqrt(high) if high > 2.0 * low else low + 0.5 * (high - low)
        if not low < middle < high:
            break
        within = _mass(log_loc, log_scale, a, middle) if near_end else _mass(log_loc, log_scale, middle, b)
        if (within < share) == near_end:
            low = middle
        else:
            high = middle
    return inside(high, a, b)


@dataclass(frozen=True)
class LogNormal(Prior, twin="lognorm", kernel=Kernel(_mass, _machine_log_mass, _point)):
    """The lognormal law: for positive values that vary by factors, such as salaries and durations.

    log_loc: mean of the logarithm, so that the median is its exponential. log_scale: standard deviation of the
    logarithm, at least 1e-4 (a narrower law is as good as normal): a value is within a factor of exp(log_scale) of the
    median with probability 0.68. Raises `TypeError` or `ValueError` naming the argument.

    >>> LogNormal(math.log(40_000), 0.5).log_mass(40_000, math.inf)
    -0.693147
    """

    log_loc: float
    log_scale: float

    def __post_init__(self) -> None:
        loc, scale = finite_number(self.log_loc, "log_loc"), finite_number(self.log_scale, "log_scale")
        set_parameters(self, log_loc=loc, log_scale=positive(scale, "log_scale"))
        if self.log_scale < LEAST_LOG_SCALE:
            raise ValueError(f"log_scale must be at least {LEAST_LOG_SCALE:g}, got {briefly(self.log_scale)}")
        load_normal()

    @classmethod
    def around(cls, median: Any, factor: Any) -> LogNormal:
        """The lognormal law of a median, in the unit of the data, that two in three values are within a factor of.

        median: positive, a number or a duration. factor: above 1.0001. Raises `TypeError` or `ValueError` naming the
        argument.

        >>> import datetime
        >>> LogNormal.around(datetime.timedelta(hours=2), 3).log_mass(7200, math.inf)
        -0.693147
        """
        times = finite_number(factor, "factor")
        if times <= math.exp(LEAST_LOG_SCALE):
            raise ValueError(f"factor must be above {math.exp(LEAST_LOG_SCALE):.5g}, got {briefly(factor)}")
        return cls(math.log(positive(median, "median")), math.log(times))

    @classmethod
    def _from_twin(cls, parameters: dict[str, float]) -> Prior | None:
        is_member = parameters["loc"] == 0.0 and parameters["s"] >= LEAST_LOG_SCALE
        return cls(math.log(parameters["scale"]), parameters["s"]) if is_member else None

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, math.inf

    def _cores(self) -> list[tuple[float, float]]:
        median = math.exp(min(self.log_loc, math.log(LARGEST)))
        return [(median, median)]

    def _row(self) -> Row | None:
        usual = abs(self.log_loc) < LOG_RANGE and 1.0 / LOG_RANGE < self.log_scale < LOG_RANGE
        return (self.log_loc, self.log_scale) if usual else None

    def _log_mass(self, lower: Array, upper: Array) -> Array:
        return _log_mass(lower, upper, self.log_loc, self.log_scale)

    def _log_density(self, o: Array) -> Array:
        z = _offset(o, self.log_loc) / self.log_scale
        return np.where(o > 0.0, -0.5 * z * z - np.log(o) - math.log(self.log_scale) - LOG_SQRT_2_PI, -np.inf)

    def _quantile(self, lower: Array, upper: Array, u: Array, v: Array) -> Array:
        start = np.maximum(lower, 0.0)
        low, high, width = _standard(start, upper, self.log_loc, self.log_scale)
        flip = (high <= 0.0) | ((low < 0.0) & (-low > high))  # seen from the nearer end, as a normal law is
        near, far = np.where(flip, -high, low), np.where(flip, -low, high)
        offset, place, has_offset = normal_inverse(near, far, width, np.where(flip, v, u), np.where(flip, u, v), 1.0)
        sign = np.where(flip, -self.log_scale, self.log_scale)
        out = np.where(
            has_offset, np.where(flip, upper, start) * np.exp(sign * offset), np.exp(self.log_loc + sign * place)
        )
        k = np.flatnonzero(~(has_offset & (np.abs(sign * offset) < 0.25)))  # the exponential of more costs digits
        out[k] = self._bisected(start[k], upper[k], u[k], v[k], out[k])
        return out
