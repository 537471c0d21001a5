"""Intervals around released values by simulation, where the noise alone does not tell them (Section 3.2).

From the released values and the priors' support goes a curve, which stands for the column. Columns like it are drawn,
and the same mechanism releases from each. Through what it releases goes a curve again, and that one places the true
quantile of the drawn column at some level: how far this level is from the one that was asked for is nearly alike for
columns of all shapes, since errors are in ranks. With the levels that are far enough in the wanted share of all
simulated releases the interval is read off the released curve. So the noise of the curve itself is part of what is
simulated.

The same is done with columns that are narrower than the released values are, whose noise may have spread them, and,
unless `assume_smooth` was promised, with columns of narrow peaks at the released values. Such columns are harder to
find, and the largest of the distances counts.

The curve is a guess between what was drawn: a column of two modes has no records where it is steep. Unless
`assume_smooth` was promised, an end lies several times as far from its value as the curve says, though not beyond the
next value that was drawn for a level far enough away: on that side of it lies the quantile, whatever is between.

Where a single value was released nothing tells the scale, and the prior on either side of it stands for the column.
Private ring, but no record comes in here: all is post-processing of released values.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from pq.core.curves import LEVELS, MonotoneCurve, joint_support
from pq.core.exact import briefly
from pq.core.grid import LATTICE_END, from_units, rounded_units, to_units
from pq.core.priors.arguments import finite_number
from pq.core.request import LARGEST_SIZE, Request, size_number
from pq.private.columns.door import LARGEST, Array
from pq.private.mechanisms import Mechanism
from pq.private.randomness import Source

Shape = Literal["released", "narrow", "peaks"]
SHAPES: tuple[Shape, ...] = ("released", "narrow", "peaks")  # of simulated columns; the last where nobody promises
SEED = 20_230_723
FEWEST_TRIALS, TAIL_TRIALS = 120, 4.0  # simulated releases, and how many at least are to fall outside
MOST_LEVEL = 0.999  # of simulated intervals: beyond, too many releases would have to be simulated
MOST_RECORDS = 50_000  # simulated: errors of larger columns are those of such a one, in records
NEAR_ENDS = 2.0 ** np.arange(-40.0, -10.0)  # levels beyond the table's
FINEST = 2.0**-41
NARROWED, SQUEEZED = 8.0, 30.0  # how much narrower than the curve a narrow column is, and a peak
SPARSER = 10.0  # than the curve says records may lie, where nobody promised that they lie smoothly
Knots = tuple[Array, Array]  # levels and places (k,) that were drawn, through which all other values are read off


def interval_level(value: Any) -> float:
    """A level strictly between 0 and 1; raises naming level."""
    level = finite_number(value, "level")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie strictly between 0 and 1, got {briefly(value)}")
    return level


def size_of(request: Request, total: int | None, size_guess: Any) -> float:
    """The number of records to reckon with: what is said, the private total, or what the release was told; raises
    naming size_guess where there is none."""
    if size_guess is not None:
        return size_number(size_guess)
    known = [size for size in (total, request.public_total, request.size_guess) if size is not None]
    if not known:
        raise ValueError(f"size_guess must be given for an interval: {request.mechanism!r} releases no private total")
    return float(min(max(known[0], 1), LARGEST_SIZE))


def grid_intervals(ends: Array, step: Fraction | None) -> Array:
    """Intervals (m, 2) as what multiples of the step they hold, the outermost of these; as they are without a step.

    >>> grid_intervals(np.array([[1.5, 3.5]]), Fraction(1))
    array([[2., 3.]])
    """
    ends = np.sort(ends, axis=1)
    if step is None:
        return ends
    units = to_units(ends, step)
    inner = np.stack([np.ceil(units[:, 0]), np.floor(units[:, 1])], axis=1)
    kept = np.isfinite(ends) & (inner[:, :1] <= inner[:, 1:]) & (np.abs(units) < LATTICE_END)
    return np.where(kept, from_units(np.where(kept, inner, 0.0), step) + 0.0, ends)


def simulated_intervals(
    maker: Mechanism, values: Array, knots: Knots, size: float, level: float, population: bool
) -> Array:
    """Intervals (m, 2) of the distinct quantiles, from their released values (m,); see the head of this module.

    knots: what was drawn. size: number of records to reckon with. population: whether the drawn columns' own quantiles
    or the curve's are to be held. Raises `ValueError` naming level where it is too high to be simulated.
    """
    if level > MOST_LEVEL:
        raise ValueError(f"level must be at most {MOST_LEVEL} for mechanism={maker.name!r}, got {briefly(level)}")
    with np.errstate(all="ignore"):
        curve = ReleasedCurve(maker.request, values)
        records = int(min(max(round(size), 1), MOST_RECORDS))
        shapes: tuple[Shape, ...] = SHAPES[:2] if maker.request.assume_smooth else SHAPES
        radii = np.max([curve.levels_off(maker, records, level, population, shape) for shape in shapes], axis=0)
        radii *= math.sqrt(records / size) if population else records / size  # of larger columns
        low = np.minimum(curve.at(curve.asked - radii), values)  # also at the levels 0 and 1, where all are outside
        high = np.maximum(curve.at(curve.asked + radii), values)
        if not maker.request.assume_smooth:
            low, high = curve.sparser(low, high, radii, knots)
    return np.stack([low, high], axis=1)


class ReleasedCurve:
    """A quantile function through the values (m,) of a release, as places at many levels."""

    def __init__(self, request: Request, values: Array) -> None:
        self.request, self.values = request, values
        self.asked = request.levels
        inner = np.concatenate([NEAR_ENDS, LEVELS, 1.0 - NEAR_ENDS, np.clip(self.asked, FINEST, 1.0 - FINEST)])
        self.levels: Array = np.unique(inner)
        self.half = 0.0 if request.step is None else 0.5 * float(request.step)
        places = self._through(self.levels)
        self.places: Array = np.maximum.accumulate(np.clip(np.nan_to_num(places), -LARGEST, LARGEST))

    def _through(self, levels: Array) -> Array:
        if len(self.asked) > 1:
            knots = np.clip(self.asked, FINEST, 1.0 - FINEST)
            return MonotoneCurve(knots, self.values, joint_support(self.request.priors)).at(levels)
        (prior,), (q,), (value,) = self.request.priors, self.asked, self.values
        below = prior.quantile_between(-np.inf, value, np.minimum(levels / max(q, FINEST), 1.0 - FINEST))
        share = (levels - q) / max(1.0 - q, FINEST)
        above = prior.quantile_between(value, np.inf, np.clip(share, 0.0, 1.0 - FINEST))
        return np.where(levels < q, below, np.where(levels > q, above, value))

    def at(self, levels: Array) -> Array:
        """Places (m,) at levels (m,), on the grid; infinite where a level is outside (0, 1)."""
        inside = np.interp(levels, self.levels, self.places)
        places = self.rounded(inside)
        places = np.where(levels < self.levels[0], -np.inf, places)
        return np.where(levels > self.levels[-1], np.inf, places)

    def sparser(self, low: Array, high: Array, radii: Array, knots: Knots) -> tuple[Array, Array]:
        """Ends (m,) that lie further off, in the support of the priors, up to knots that are `radii` (m,) away."""
        first, last = joint_support(self.request.priors)
        far_low = np.maximum(self.values - SPARSER * (self.values - low), np.minimum(low, first))
        far_high = np.minimum(self.values + SPARSER * (high - self.values), np.maximum(high, last))
        levels, places = knots
        around = np.interp(levels, self.asked, radii)
        below = (levels + around)[:, None] <= self.asked
        above = (levels - around)[:, None] >= self.asked
        at_least = np.max(np.where(below, places[:, None], -np.inf), axis=0)
        at_most = np.min(np.where(above, places[:, None], np.inf), axis=0)
        ends = np.maximum(far_low, np.minimum(at_least, low)), np.minimum(far_high, np.maximum(at_most, high))
        return tuple(np.where(np.isfinite(end), self.rounded(end), end) for end in ends)  # type: ignore[return-value]

    def rounded(self, places: Array) -> Array:
        """On the grid, if there is one."""
        step = self.request.step
        if step is None:
            return places
        return np.asarray(from_units(rounded_units(places, step), step) + 0.0)

    def shaped(self, levels: Array, shape: Shape) -> Array:
        """Places at levels of a column of some shape, on the grid."""
        places = np.interp(levels, self.levels, self.places)
        if shape == "narrow":
            middle = self.values[len(self.values) // 2]
            places = middle + (places - middle) / NARROWED
        elif shape == "peaks":
            near = self.values[np.searchsorted(0.5 * (self.asked[1:] + self.asked[:-1]), levels)]
            places = near + (places - near) / SQUEEZED
        return self.rounded(places)

    def levels_off(self, maker: Mechanism, records: int, level: float, population: bool, shape: Shape) -> Array:
        """How far off (m,) the levels of all true quantiles are at most, in a share `level` of simulated releases."""
        rng = np.random.default_rng(SEED)
        source, trials = Source(rng), max(FEWEST_TRIALS, math.ceil(TAIL_TRIALS / (1.0 - level)))
        found, law = np.empty((trials, len(self.asked))), self.shaped(self.asked, shape)
        for trial in range(trials):
            x = self.shaped(np.sort(rng.random(records)), shape)
            released = maker.simulate(maker.column(x, None), source, 1)[0]
            true = (law, law) if population else column_quantiles(x, self.asked)
            found[trial] = ReleasedCurve(self.request, released).needed(*true)
        rank = min(math.ceil((trials + 1) * level), trials) - 1
        usual = np.maximum(np.sort(found, axis=0)[rank], FINEST)
        return usual * np.sort(np.max(found / usual, axis=1))[rank]

    def needed(self, first: Array, last: Array) -> Array:
        """The least radii (m,) in levels with which intervals hold all from `first` (m,) to `last` (m,)."""
        below = self.asked - self._level_of(first + self.half, "right")
        above = self._level_of(last - self.half, "left") - self.asked
        return np.nan_to_num(np.maximum(np.maximum(below, above), 0.0), nan=1.0)

    def _level_of(self, places: Array, side: Any) -> Array:
        """The largest ("right") or least ("left") levels at which the curve has come to places (m,)."""
        at = np.searchsorted(self.places, places, side=side)
        i, j = np.maximum(at - 1, 0), np.minimum(at, len(self.levels) - 1)
        share = (places - self.places[i]) / (self.places[j] - self.places[i])
        inside = self.levels[i] + np.clip(share, 0.0, 1.0) * (self.levels[j] - self.levels[i])
        return np.where(at == 0, 0.0, np.where(at == len(self.levels), 1.0, inside))


def column_quantiles(x: Array, quantiles: Array) -> tuple[Array, Array]:
    """The least and the greatest values (m,) that have at most q n of the sorted records x below them and at least q n
    up to them.

    >>> column_quantiles(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 0.6]))
    (array([2., 3.]), array([3., 3.]))
    """
    ranks = quantiles * len(x)
    close = np.abs(ranks - np.rint(ranks)) < 1e-9 * len(x)
    ranks = np.where(close, np.rint(ranks), ranks)
    last = len(x) - 1
    first = np.clip(np.ceil(ranks).astype(np.int64) - 1, 0, last)
    return x[first], x[np.clip(np.floor(ranks).astype(np.int64), 0, last)]
