"""Quantile functions: through given points, of priors, and of their mixtures (Section 3.1).

A *table* of a law holds its quantiles at the levels 1/1024, 2/1024, ..., 1023/1024: laws of any kind become alike, and
mixing two is arithmetic. A table says where cells should lie and where values lie inside one; no privacy depends on
its accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from pq.core.arrays import read_only
from pq.core.priors import Mixture, PiecewiseConstant, Prior
from pq.core.priors.differing import differing
from pq.core.priors.numerics import LARGEST
from pq.core.scores import Array

LEVELS = np.arange(1, 1024) / 1024
HEAVY = {  # quantiles of Student's laws of median distance one, by degrees of freedom
    1: np.tan(np.pi * (LEVELS - 0.5)),
    2: math.sqrt(0.75) * (2.0 * LEVELS - 1.0) / np.sqrt(LEVELS * (1.0 - LEVELS)),
}
LEAST_STEP = (
    1e-12  # of levels: between knots that are kept; those nearer, but the first and last of a run, are left out
)
WIDE, SHRINK = 1e250, 2.0**-200  # numbers from which differences, or slopes of them, may overflow; a smaller unit
QUARTER = 0.25  # enough for differences alone, and small numbers beside the wide ones keep theirs
TAIL = 0.5  # shape of the tails: the mass beyond falls with the square of the distance, so that no tail is cut off


def interpolated(x: Array, known: Array, values: Array) -> Array:
    """`np.interp`, of whatever finite numbers: where it would subtract some that are far apart, of a smaller unit.

    >>> interpolated(np.array([0.5]), np.array([0.0, 1.0]), np.array([-LARGEST, LARGEST])).tolist()
    [0.0]
    """
    across, up = max(_unit(known), QUARTER), _unit(values)
    return np.asarray(np.interp(x * across, known * across, values * up) / up)


def _unit(places: Array) -> float:
    """What to multiply numbers in order by, so that differences, and slopes of them, have floats."""
    return 1.0 if max(-places[0], places[-1]) < WIDE else SHRINK


@dataclass(frozen=True, eq=False)
class MonotoneCurve:
    """A quantile function through given points: a monotone cubic between them, power tails beyond them.

    levels: (k,) in (0, 1), increasing, k >= 1. places: (k,) finite, not decreasing, in the unit of the data. support:
    ends that no value exceeds, possibly infinite. A tail's density goes on from the density beside it; of one place
    alone, straight to the ends. Where levels are equal the curve jumps from the first of their places to the last.

    Guarantees: never fails or warns, whatever the places; `at` does not decrease but by rounding.

    >>> curve = MonotoneCurve(np.array([0.25, 0.5, 0.75]), np.array([-1.0, 0.0, 1.0]), (-math.inf, math.inf))
    >>> curve.at(np.array([0.1, 0.5, 0.625]))
    array([-2.162278,  0.      ,  0.5     ])
    """

    levels: Array
    places: Array
    support: tuple[float, float]

    @cached_property
    def _knots(self) -> tuple[Array, Array, float]:
        """Levels that differ, their places in units of a power of two, and that unit."""
        unit = math.ldexp(1.0, min(max(math.frexp(float(np.max(np.abs(self.places))))[1], -1000), 1020))
        apart = np.diff(self.levels) > LEAST_STEP
        kept = np.append(True, apart) | np.append(apart, True)  # a run of levels that count as one is a jump
        steps = LEAST_STEP * np.arange(np.count_nonzero(kept))
        levels = np.maximum.accumulate(self.levels[kept] - steps) + steps
        return levels, np.maximum.accumulate(self.places[kept] / unit), unit

    def at(self, levels: Array) -> Array:
        """The quantiles (c,) at levels (c,) in [0, 1]."""
        import scipy  # late, as in pq.core.priors.numerics

        knots, places, unit = self._knots
        with np.errstate(all="ignore"):
            ends = np.nan_to_num(np.array(self.support) / unit, nan=np.nan, posinf=places[0], neginf=places[0])
            out = np.interp(levels, [0.0, knots[0], 1.0], [ends[0], places[0], ends[1]])
            if len(knots) > 1:
                out = scipy.interpolate.PchipInterpolator(knots, places)(np.clip(levels, knots[0], knots[-1]))
                first, last = (np.diff(places)[[0, -1]]) / np.diff(knots)[[0, -1]]
                below = np.log(np.minimum(levels / knots[0], 1.0))
                above = np.log(np.minimum((1.0 - levels) / (1.0 - knots[-1]), 1.0))
                out = out + _tail(first * knots[0], below) - _tail(last * (1.0 - knots[-1]), above)
            out = np.nan_to_num(out * unit, nan=0.0, posinf=LARGEST, neginf=-LARGEST)
        return np.clip(out, max(self.support[0], -LARGEST), min(self.support[1], LARGEST))


def _tail(scale: float, log_share: Array) -> Array:
    """Offsets of a power tail; none where its scale is zero, whatever the share."""
    return -scale * np.expm1(-TAIL * log_share) / TAIL if scale > 0.0 else np.zeros(len(log_share))


def prior_table(priors: Sequence[Prior], quantiles: Sequence[float]) -> Array:
    """The table of the law that priors say the records have (`lem:quantile`).

    priors: (m,), one for each quantile. quantiles: (m,) increasing. If all are one prior, it is the law of the records;
    if they differ, each says where its quantile lies: the curve through their medians, and for safety a quarter of
    their mixture.

    >>> from pq.core.priors import Uniform
    >>> prior_table([Uniform(0, 1024)], [0.5])[[0, -1]].tolist()
    [1.0, 1023.0]
    """
    distinct = differing(priors)
    tables = [_table(prior) for prior in distinct]
    if len(distinct) == 1:
        return tables[0]
    medians = np.sort(np.array([float(_table(prior)[len(LEVELS) // 2]) for prior in priors]))
    support = joint_support(distinct)
    curve = MonotoneCurve(np.asarray(quantiles, dtype=np.float64), medians, support).at(LEVELS)
    return mixed_table([curve, *tables], [0.75, *[0.25 / len(tables)] * len(tables)])


def joint_support(priors: Sequence[Prior]) -> tuple[float, float]:
    """The smallest interval that has all the mass of every prior."""
    lows, highs = zip(*(prior.support for prior in priors), strict=True)
    return min(lows), max(highs)


def _table(prior: Prior) -> Array:
    if isinstance(prior, Mixture):  # its own inverse is not monotone
        return mixed_table([_table(part) for part in prior.priors], prior.weights)
    if isinstance(prior, PiecewiseConstant):  # straight lines: ten times as fast, once for each day of a sequence
        return np.clip(
            interpolated(LEVELS, np.append(0.0, np.cumsum(prior.weights)), np.array(prior.edges)), -LARGEST, LARGEST
        )
    return _own_table(prior)


@lru_cache(maxsize=64)
def _own_table(prior: Prior) -> Array:
    """Kept, as a sequence mixes the same broad law in every day: an eighth of a day's time."""
    places = np.asarray(prior.quantile_between(-math.inf, math.inf, LEVELS))
    return read_only(np.maximum.accumulate(np.clip(places, -LARGEST, LARGEST)))


def mixed_table(tables: Sequence[Array], weights: Sequence[float]) -> Array:
    """The table of a mixture of laws.

    tables: (k, 1023). weights: (k,), of sum one.

    >>> mixed_table([LEVELS, LEVELS], [0.5, 0.5])[511].item()
    0.5
    """
    knots = np.sort(np.concatenate(tables))
    unit = max(_unit(knots), QUARTER)
    with np.errstate(all="ignore"):
        shares = sum(
            weight * np.interp(knots * unit, table * unit, LEVELS, left=0.0, right=1.0)
            for weight, table in zip(weights, tables, strict=True)
        )
        return np.clip(np.nan_to_num(interpolated(LEVELS, np.asarray(shares), knots)), -LARGEST, LARGEST)


def heavy_table(place: float, width: float, degrees: int) -> Array:
    """The table of Student's law with that median and that median distance from it.

    degrees: of freedom, 1 (Cauchy's law) or 2.

    >>> heavy_table(1.0, 2.0, degrees=2)[[255, 511, 767]]
    array([-1.,  1.,  3.])
    """
    with np.errstate(all="ignore"):
        return np.clip(place + width * HEAVY[degrees], -LARGEST, LARGEST)
