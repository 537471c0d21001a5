"""What the laws of all families share: quotients without overflow, inverse distribution functions, bisection of floats.

Every mass in `lem:quantile` and its relatives is the measure of one interval, which can lie in a tail with mass e^-800,
be 1e-300 wide, or hold all but 1e-300 of the measure. No formula subtracts two values of a distribution function.
A fast form serves nearly every interval; the few where it could lose digits are found from its result and done again.

All of them take one-dimensional float64 arrays of equal length and expect floating-point warnings to be off. `lower`
and `upper` are the ends of intervals (lower, upper]; an interval that is empty, inverted or NaN has log mass -inf.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Masks = npt.NDArray[np.bool_]

LARGEST = float(np.finfo(np.float64).max)
FLOAT_SHARE = 2.0**-20  # of an interval's mass: where a point and the floats beside it have more, floats have the law
RAREST = -(2.0**30)  # log mass of an interval, below which logs have too few digits to tell its single floats apart
TINY = 1e-290  # below this a quotient is near the subnormal range and may have lost digits
LOG_2 = float(np.log(2.0))
LOG_PI = float(np.log(np.pi))
LOG_SQRT_2_PI = 0.5 * (LOG_2 + LOG_PI)
SQRT_HALF = float(np.sqrt(0.5))


@cache
def unit_rule(order: int) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights on [0, 1], made when a law that may need them is."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    return 0.5 * (nodes + 1.0), 0.5 * weights


@cache
def special() -> Any:
    """`scipy.special`, loaded when a law that needs it is first made: later would be at some records and not at others,
    and with `import pq` it takes as long as a quarter of all else."""
    import scipy.special

    return scipy.special


def numbers_only(log_masses: Array) -> Array:
    """Log masses, where what is no number counts as no mass: that is fixed before any data."""
    return np.asarray(np.fmin(np.fmax(log_masses, -np.inf), 0.0))


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
    with np.errstate(all="ignore"):
        difference = np.abs(np.subtract(x, y))
        lost = np.isinf(difference) & np.isfinite(x) & np.isfinite(y)
        quarter = np.log(np.abs(0.25 * np.asarray(x) - 0.25 * np.asarray(y))) + 2.0 * LOG_2
        return np.asarray(np.where(lost, quarter, np.log(difference)) - np.log(scale))


def log_of_complement(rest: Array, mass: Array) -> Array:
    """log(mass) where `rest` = 1 - mass, each given to full relative precision; the smaller of the two decides."""
    return np.where(rest < 0.5, np.log1p(-rest), np.log(mass)) + 0.0


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


def exponential_inverse(below: Array, above: Array) -> Array:
    """Where the unit exponential law has mass `below` on the left and `above` = 1 - below on the right."""
    return np.where(above < 0.5, np.maximum(-np.log(above), LOG_2), np.minimum(-np.log1p(-below), LOG_2))


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
