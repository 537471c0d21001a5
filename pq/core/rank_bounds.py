"""Intervals for quantiles from noisy counts, with a coverage that is proved and assumes nothing (Section 3.1).

The records up to an edge are a sum of counts, so what is known of them is off by a sum of noises. With W_j the sum of
the noises of the first j of c cells, the number of records up to edge j less q times all records is known up to
`W_j - q W_c = (1 - q) W_j - q (W_c - W_j)`: never more than the largest of all |W_j| and |W_c - W_j|, whatever j and q.
The sums from either end have the same law, so a radius that those from the left exceed with half the risk holds for all
edges and quantiles at once.

For draws from a population, its distribution function is within `sqrt(log(2 / risk) / 2 n)` of the column's, everywhere
(Dvoretzky, Kiefer, Wolfowitz; Massart's constant), n at most the noisy total plus the radius.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from pq.core.noise import DiscreteLaplace, IntArray
from pq.core.scores import Array

MOST_SUMS = 2**11  # radii up to this are exact
ROUNDING = 1e-6  # records; and of probabilities, above what sums of floats lose


def martingale_radius(noise: DiscreteLaplace, count: int, risk: float) -> int:
    """A radius that some running sum of `count` noises exceeds in size with probability at most `risk`.

    From Doob's inequality for `exp(t W_j)`: at most `2 M(t)^count e^(-t (r + 1))`, with
    `M(t) = (1 - a)^2 / ((1 - a e^t) (1 - a e^-t))`, for the best of many t. Quick for any
    noise.

    >>> from fractions import Fraction
    >>> martingale_radius(DiscreteLaplace(Fraction(1)), 40, 0.05)
    23
    """
    rate = noise.rate
    t = rate * np.linspace(0.0, 1.0, 400)[1:-1]
    log_moment = 2.0 * math.log(-math.expm1(-rate)) - np.log(-np.expm1(t - rate)) - np.log(-np.expm1(-t - rate))
    return max(0, math.ceil(float(np.min((count * log_moment + math.log(2.0 / risk)) / t))) - 1)


@lru_cache(maxsize=64)
def running_sum_radius(noise: DiscreteLaplace, count: int, risk: float) -> int:
    """The least radius that some running sum of `count` noises exceeds in size with probability at most `risk`.

    Exact by a recursion over the sums inside the radius; the martingale's bound where that would be long.

    >>> from fractions import Fraction
    >>> running_sum_radius(DiscreteLaplace(Fraction(1)), 40, 0.05)
    18
    """
    if not 0.0 < risk < 1.0:
        raise ValueError(f"risk must lie strictly between 0 and 1, got {risk}")
    most = martingale_radius(noise, count, risk)
    if most > MOST_SUMS:
        return most
    low, high = -1, most  # a sum exceeds `low` with more than the risk, `high` with at most it
    while high - low > 1:
        middle = (low + high) // 2
        if probability_inside(noise, count, middle) >= 1.0 - risk + 1e-3 * ROUNDING:
            high = middle
        else:
            low = middle
    return high


def probability_inside(noise: DiscreteLaplace, count: int, radius: int) -> float:
    """Probability that no running sum of `count` noises exceeds the radius in size.

    >>> from fractions import Fraction
    >>> round(probability_inside(DiscreteLaplace(Fraction(1)), 1, 0), 6)
    0.462117
    """
    import scipy  # late, as in pq.core.priors.numerics

    a = math.exp(-noise.rate)
    inside = np.zeros(2 * radius + 1)
    inside[radius] = 1.0
    for _ in range(count):  # convolution with a^|k| as a recursion from the left and one from the right
        left = scipy.signal.lfilter([1.0], [1.0, -a], inside)
        right = scipy.signal.lfilter([1.0], [1.0, -a], inside[::-1])[::-1]
        inside = math.tanh(0.5 * noise.rate) * (left + right - inside)
    return float(np.sum(inside))


def quantile_intervals(
    edges: Array, counts: IntArray, noise: DiscreteLaplace, quantiles: Array, level: float, population: bool = False
) -> Array:
    """Intervals (m, 2) that hold all quantiles (m,) at once with probability at least `level`; ends may be infinite.

    edges: (c - 1,) increasing, none for one cell. counts: (c,) noisy records of `(-inf, e_1], ..., (e_{c-1}, inf)`.
    noise: of each count.
    population: whether the quantiles are those of the law that the records are independent draws from, else the
    column's, any value with at most q n records below it and at least q n up to it; a column without records has none.
    Raises `ValueError` naming level.

    >>> from fractions import Fraction
    >>> noise = DiscreteLaplace(Fraction(1))
    >>> quantile_intervals(np.array([1.0, 2.0, 3.0]), np.array([40, 40, 40, 40]), noise, np.array([0.5]), 0.9)
    array([[1., 3.]])
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level}")
    risk = 0.5 * (1.0 - level) if population else 1.0 - level
    radius = running_sum_radius(noise, len(counts), 0.5 * risk) + ROUNDING
    running = np.cumsum(np.asarray(counts, dtype=np.float64))
    if population:
        radius += math.sqrt(0.5 * max(running[-1] + radius, 0.0) * math.log(2.0 / risk))
    excess = running[:-1] - np.asarray(quantiles, dtype=np.float64)[:, None] * running[-1]
    below, above = excess < -radius, excess > radius
    ends, last = np.concatenate([[-np.inf], edges, [np.inf]]), len(edges) + 1
    lower = ends[np.max(below * np.arange(1, last), axis=1, initial=0)]
    upper = ends[np.min(np.where(above, np.arange(1, last), last), axis=1, initial=last)]
    return np.stack([lower, upper], axis=1)
