"""Where the cells of a private distribution function lie: by public facts alone, or by a private look (Section 3.1).

A partition gives a *table*, the quantiles of a law near that of the records (`pq.core.curves`); cells have equal mass
under it. What a partition looks up in the column are its *places*. They are paid for, part of the outcome, and all that
the table depends on; `budgets` are what each look costs.

- `PriorPartition`: the priors' own law. No look, no cost.
- `PlacePartition`: Student's law around a private median, as wide as a private median distance from it, mixed with
  Cauchy's and the priors' law. Two exponential mechanisms one after the other, the second on the column and the first
  one's output: by composition their losses add up. Sensitivities: `pq.core.sensitivity` for the median, a root with
  q = 1/2; for the width the same row, because a record is within a distance of a given point or it is not, so that the
  number of those moves as a rank does.
- `CutPartition`: a monotone curve through a few private cuts by any mechanism that tells its exact law.
- `RefinedPartition`, in `pq.private.mechanisms.cells.refined`: a first, coarse private distribution function.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from pq.core.curves import LEVELS, MonotoneCurve, heavy_table, joint_support, mixed_table, prior_table
from pq.core.noise import IntArray, Source, random_uniforms
from pq.core.priors import Mixture, Prior
from pq.core.priors.differing import differing
from pq.core.priors.log_uniform import knows_scale
from pq.core.priors.numerics import LARGEST
from pq.core.request import Request
from pq.core.scores import Array, log_sum
from pq.core.sensitivity import rate, sensitivity
from pq.private.columns.cells import Lattice, Points
from pq.private.mechanisms.independent import pick
from pq.private.mechanisms.protocol import LogParts, Outcome
from pq.private.mechanisms.tree import Tree

HALF = Fraction(1, 2)
NEAR = 64.0  # nats that a draw of a place looks at
WIDTHS = 2.0 ** (np.arange(-80, 17) / 2.0)  # candidates, in units of the priors' own
ANY_WIDTHS = [2.0**power for power in range(-1022, 1023)]
SHARES = 0.65, 0.25, 0.1  # of Student's law, Cauchy's and the priors' around a place: cells for every tail
SMOOTH_SHARES = 0.75, 0.2, 0.05  # the same where a column is smooth: fewer cells tell its tails
Places = tuple[float, ...]


class Partition(Protocol):
    """Draws places from a column, tells their exact law, and makes a table of them.

    `size` is the number of places, None where it depends on them; `rho` what the looks cost in zCDP. `log_parts` is the
    log density of places as minus an exact number of nats plus a float, see `Mechanism.log_parts`.
    """

    @property
    def size(self) -> int | None: ...
    @property
    def budgets(self) -> tuple[Fraction, ...]: ...
    @property
    def rho(self) -> Fraction: ...
    @property
    def adjacency(self) -> str | None: ...
    @property
    def support(self) -> tuple[float, float]: ...
    def draw(self, column: Points, source: Source) -> Places: ...
    def log_parts(self, column: Points, places: Places) -> LogParts: ...
    def table(self, places: Places) -> Array: ...


class Cutter(Protocol):
    """A mechanism that releases some quantiles of a column at once, for `epsilon` in all and `rho` in zCDP."""

    @property
    def quantiles(self) -> tuple[Fraction, ...]: ...
    @property
    def epsilon(self) -> Fraction: ...
    @property
    def rho(self) -> Fraction: ...
    @property
    def adjacency(self) -> str: ...
    def cuts(self, column: Points, source: Source) -> Array: ...
    def log_parts(self, column: Points, cuts: Array) -> LogParts: ...


@dataclass(frozen=True)
class PriorPartition:
    """Cells of equal mass under the priors: nothing is looked up.

    priors: (m,), one for each of quantiles (m,), increasing.

    >>> from pq.core.priors import Uniform
    >>> PriorPartition((Uniform(0, 4),), (HALF,)).table(())[511].item()
    2.0
    """

    priors: tuple[Prior, ...]
    quantiles: tuple[Fraction, ...]
    size: int = field(default=0, init=False)
    budgets: tuple[Fraction, ...] = field(default=(), init=False)
    rho: Fraction = field(default=Fraction(0), init=False)
    adjacency: None = field(default=None, init=False)

    @cached_property
    def support(self) -> tuple[float, float]:
        return joint_support(self.priors)

    @cached_property
    def _table(self) -> Array:
        return prior_table(self.priors, [float(q) for q in self.quantiles])

    def table(self, places: Places) -> Array:
        return self._table

    def draw(self, column: Points, source: Source) -> Places:
        return ()

    def log_parts(self, column: Points, places: Places) -> LogParts:
        return Fraction(0), 0.0 if places == () else -math.inf


@dataclass(frozen=True)
class PlacePartition:
    """Cells of equal mass under Student's law around a private median, with a private width.

    around: the priors' own partition. epsilon_place, epsilon_width: positive budgets of the two looks. adjacency: as
    for `pq.plan`. step: of the grid that the place lies on, or None; both looks are at records rounded to it.
    shares: of Student's law, Cauchy's and the priors' in the table.
    """

    around: PriorPartition
    epsilon_place: Fraction
    epsilon_width: Fraction
    adjacency: str
    step: Fraction | None = None
    shares: tuple[float, float, float] = SHARES
    size: int = field(default=2, init=False)

    @property
    def budgets(self) -> tuple[Fraction, ...]:
        return self.epsilon_place, self.epsilon_width

    @property
    def rho(self) -> Fraction:
        """Exponential mechanisms are of bounded range: epsilon^2 / 8 each."""
        return sum((budget**2 for budget in self.budgets), Fraction(0)) / 8

    @property
    def support(self) -> tuple[float, float]:
        return self.around.support

    @cached_property
    def prior(self) -> Prior:
        """The median's prior: each of the priors alike, as the median may be where any of them says."""
        distinct = tuple(differing(self.around.priors))
        return distinct[0] if len(distinct) == 1 else Mixture(distinct, (1.0,) * len(distinct))

    @cached_property
    def median(self) -> Tree:
        """What looks for the place: the release of one quantile."""
        adjacency: Any = self.adjacency
        return Tree(
            Request.of([HALF], epsilon=self.epsilon_place, priors=self.prior, adjacency=adjacency, grid=self.step)
        )

    @cached_property
    def widths(self) -> Array:
        """Candidates (c,) for the median distance, increasing: multiples of the priors' own by powers of sqrt(2), or
        all powers of two if the priors know no scale; on a grid few below a step, for these all hold the same records.
        """
        if knows_scale(self.around.priors):
            table = self.around.table(())
            own = 0.5 * (0.5 * float(table[767]) - 0.5 * float(table[255]))  # halves first, or wide priors overflow
            widths = np.asarray(np.clip(2.0 * max(own, 1e-280) * WIDTHS, 1e-300, LARGEST))
        else:
            widths = np.array(ANY_WIDTHS)
        first = 0 if self.step is None else int(np.searchsorted(widths, 0.5 * float(self.step)))
        return widths[min(first, len(widths) - 1) :]

    @property
    def near(self) -> float:
        """Ranks around the median that a draw rarely looks beyond."""
        return NEAR / self._rate(self.epsilon_place)

    def draw(self, column: Points, source: Source) -> Places:
        cell, point, choice = random_uniforms(3, source)
        place = float(self.median.chosen(self._rounded(column), np.array([[[cell, point]]]))[0, 0])
        index = pick(self._log_width_weights(column, place), (-math.inf, -math.inf), choice)
        return place, float(self.widths[index or 0])

    def log_parts(self, column: Points, places: Places) -> LogParts:
        if len(places) != self.size or not np.any(self.widths == places[1]):
            return Fraction(0), -math.inf
        far, rest = self.median.log_parts(self._rounded(column), Outcome(np.array(places[:1])))
        if rest == -math.inf:
            return far, rest
        further = int(self._further(column, places[0])[int(np.searchsorted(self.widths, places[1]))])
        weights = self._log_width_weights(column, places[0])
        return far + Fraction(self._rate(self.epsilon_width)) * further / 2, rest - log_sum(weights)

    def table(self, places: Places) -> Array:
        place, width = places
        heavy = [heavy_table(place, width, degrees) for degrees in (2, 1)]
        return mixed_table([*heavy, self.around.table(())], self.shares)

    def _rate(self, budget: Fraction) -> float:
        return rate(budget, sensitivity(HALF, 1, self.adjacency, "sharp"))

    def _rounded(self, column: Points) -> Points | Lattice:
        return column if self.step is None else self.median.column(column.values, column.ranks)

    def _log_width_weights(self, column: Points, place: float) -> Array:
        """Log weights (c,) of the widths, relative to the best one's."""
        return np.asarray(-0.5 * self._rate(self.epsilon_width) * self._further(column, place))

    def _further(self, column: Points, place: float) -> IntArray:
        """Half records (c,) that each width has too many or too few, less what the best one has: half of all records
        should be within the right one."""
        with np.errstate(over="ignore"):
            low, high = np.nextafter(place - self.widths, -np.inf), place + self.widths
        below, at_most = np.split(column.up_to(np.concatenate([low, high]), self.step), 2)
        off = np.abs(2 * (at_most - below).astype(np.int64) - column.n)
        return np.asarray(off - np.min(off))


@dataclass(frozen=True)
class CutPartition:
    """Cells of equal mass under the curve through private cuts.

    cutter: the mechanism of the cuts. within: ends that no value exceeds, such as the priors' support.
    """

    cutter: Cutter
    within: tuple[float, float]

    @property
    def budgets(self) -> tuple[Fraction, ...]:
        return (self.cutter.epsilon,)

    @property
    def size(self) -> int:
        return len(self.cutter.quantiles)

    @property
    def rho(self) -> Fraction:
        return self.cutter.rho

    @property
    def adjacency(self) -> str:
        return self.cutter.adjacency

    @property
    def support(self) -> tuple[float, float]:
        return self.within

    def draw(self, column: Points, source: Source) -> Places:
        return tuple(float(cut) for cut in self.cutter.cuts(column, source))

    def log_parts(self, column: Points, places: Places) -> LogParts:
        if len(places) != self.size:
            return Fraction(0), -math.inf
        return self.cutter.log_parts(column, np.array(places))

    def table(self, places: Places) -> Array:
        levels = np.array([float(q) for q in self.cutter.quantiles])
        return MonotoneCurve(levels, np.sort(np.array(places)), self.within).at(LEVELS)
