"""A private distribution function: noisy counts of the records in cells that cover the line (Section 3.1).

A plan's cells are half-open, `(e_{j-1}, e_j]`, the outermost ones endless: every record, tied or not, is in one.
The outcome is the partition's places, the edges that follow from them, and one noisy count for each cell.

*Privacy.* Given the edges, one record more or less moves one count by one, so discrete Laplace noise of rate
`epsilon_c` changes the probability of any counts by at most e^epsilon_c; under *replace* two counts may move by one
each, so the rate is `epsilon_c / 2`. The edges are public, or functions of places that the partition paid for; the
budgets of the partition and of the counts sum to epsilon, exactly, and by composition that is the total. Values,
quantiles and intervals are functions of the outcome and of public facts.

*zCDP.* What the partition costs adds up with what the counts do. A count's loss is at most its rate r on either side,
r^2 / 2; two counts under replace have half the rate each: epsilon^2 / 4 in all.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from pq.core.curves import LEVELS, interpolated
from pq.core.decode import DecodedDistribution, isotonic_records, smooth_records
from pq.core.grid import LATTICE_END, from_units, rounded_units, to_units
from pq.core.noise import DiscreteLaplace, IntArray, Source
from pq.core.rank_bounds import quantile_intervals
from pq.core.scores import Array
from pq.private.columns.cells import Points
from pq.private.mechanisms.cells.partitions import Partition, Places
from pq.private.mechanisms.protocol import LogParts

PARTS = 2  # of each cell, for the decoded density
FEWEST, MOST = 2, 1024  # cells
SAME = 1e-9  # how far edges may be off, of the largest


@dataclass(frozen=True, eq=False)
class CellsOutcome:
    """What comes out: places (k,) of the partition, edges (c - 1,) increasing, noisy counts (c,)."""

    places: Places
    edges: Array
    counts: IntArray


@dataclass(frozen=True)
class CellsPlan:
    """The public facts of a private distribution function.

    epsilon: budget of one record, exact, or infinity. adjacency: "add-remove" or "replace". partition: where the cells
    lie. cells: their number, at least 2; fewer where edges on a grid coincide. step: of the grid that records are
    rounded to and outputs lie on, or None; edges then lie half-way between its multiples. smooth: how counts are
    decoded, see `pq.core.decode`.
    Raises `ValueError` naming what is wrong.

    >>> from pq.core.priors import Uniform
    >>> from pq.private.mechanisms.cells.partitions import PriorPartition
    >>> partition = PriorPartition((Uniform(0, 4),), (Fraction(1, 2),))
    >>> plan = CellsPlan(Fraction(1), "add-remove", partition, cells=4)
    >>> plan.edges(()), plan.epsilon_counts
    (array([1., 2., 3.]), Fraction(1, 1))
    """

    epsilon: Fraction | float
    adjacency: str
    partition: Partition
    cells: int
    step: Fraction | None = None
    smooth: bool = True

    def __post_init__(self) -> None:
        if self.adjacency not in ("add-remove", "replace"):
            raise ValueError(f"adjacency must be 'add-remove' or 'replace', got {self.adjacency!r}")
        if self.partition.adjacency not in (None, self.adjacency):
            raise ValueError(f"partition must be for adjacency {self.adjacency!r}, got {self.partition.adjacency!r}")
        if not FEWEST <= self.cells <= MOST:
            raise ValueError(f"cells must be from {FEWEST} to {MOST}, got {self.cells}")
        if not all(budget > 0 for budget in self.partition.budgets) or not self.epsilon_counts > 0:
            raise ValueError(f"partition must leave a part of epsilon {self.epsilon}, got {self.partition.budgets}")
        _ = self.noise

    @property
    def epsilon_counts(self) -> Fraction | float:
        """What the partition leaves for the counts."""
        return self.epsilon - sum(self.partition.budgets, Fraction(0))

    @property
    def budgets(self) -> tuple[Fraction | float, ...]:
        """Of the partition's looks and of the counts, in the order in which they are spent; they sum to epsilon."""
        return (*self.partition.budgets, self.epsilon_counts)

    @cached_property
    def noise(self) -> DiscreteLaplace:
        """The law of each count's noise."""
        moved = 2 if self.adjacency == "replace" else 1
        return DiscreteLaplace(self.epsilon_counts / moved)

    @property
    def rho(self) -> Fraction | float:
        """Of zero-concentrated privacy, for one record: see the head of this module."""
        return self.partition.rho + self.epsilon_counts**2 / (4 if self.adjacency == "replace" else 2)

    def edges(self, places: Places) -> Array:
        """The edges (c - 1,) that places stand for: increasing, at least one."""
        levels = np.arange(1, self.cells) / self.cells
        edges = interpolated(levels, LEVELS, self.partition.table(places))
        if self.step is not None:
            units = np.floor(np.clip(to_units(edges, self.step), -LATTICE_END, LATTICE_END)) + 0.5
            edges = from_units(units, self.step)
        return np.unique(edges + 0.0)  # one zero


def records_in_cells(column: Points, edges: Array, step: Fraction | None) -> IntArray:
    """Records (c,) in each of the cells `(-inf, e_1], (e_1, e_2], ..., (e_{c-1}, inf)`, rounded to a step, if any.

    >>> records_in_cells(Points(np.array([1.0, 2.0, 2.0, 5.0])), np.array([2.0, 3.0]), None)
    array([3, 0, 1])
    """
    below: IntArray = column.up_to(edges, step).astype(np.int64)
    return np.diff(below, prepend=0, append=column.n)


def draw_cells(plan: CellsPlan, column: Points, source: Source = os.urandom) -> CellsOutcome:
    """A private distribution function of a column, epsilon-DP (head of this module).

    column: sorted records. source: random bytes, from the operating system.
    """
    with np.errstate(all="ignore"):
        places = plan.partition.draw(column, source)
    edges = plan.edges(places)
    counts = records_in_cells(column, edges, plan.step)
    return CellsOutcome(places, edges, counts + plan.noise.draw(len(counts), source))


def log_cells_parts(plan: CellsPlan, column: Points, outcome: CellsOutcome) -> LogParts:
    """Exact log probability of an outcome, as minus an exact number of nats plus the rest: density in places that the
    law spreads, mass in widths and counts.

    -inf for what cannot come out, such as edges that the places do not stand for.
    """
    with np.errstate(all="ignore"):
        far, rest = plan.partition.log_parts(column, outcome.places)
    if rest == -math.inf or not _same_edges(plan.edges(outcome.places), outcome.edges):
        return Fraction(0), -math.inf
    true = records_in_cells(column, outcome.edges, plan.step)
    if true.shape != np.shape(outcome.counts):
        return Fraction(0), -math.inf
    further, constant = plan.noise.log_parts(outcome.counts - true)
    return far + further, rest + constant


def _same_edges(own: Array, given: Array) -> bool:
    """Whether edges are those of this plan, but for the last digits of another processor."""
    if np.shape(given) != own.shape:
        return False
    return bool(np.all(np.abs(own - given) <= SAME * np.max(np.abs(own))))


def decoded(plan: CellsPlan, outcome: CellsOutcome) -> DecodedDistribution:
    """The distribution function that an outcome stands for: post-processing."""
    edges = outcome.edges
    if not plan.smooth:
        return DecodedDistribution(edges, isotonic_records(outcome.counts), plan.partition.support)
    table = plan.partition.table(outcome.places)
    bounds = np.concatenate([[0.0], interpolated(edges, table, LEVELS), [1.0]])
    shares = np.arange(PARTS) / PARTS
    levels = (bounds[:-1, None] + shares * np.diff(bounds)[:, None]).ravel()
    places = interpolated(levels[1:], LEVELS, table)
    places[PARTS - 1 :: PARTS] = edges
    masses = np.diff(levels, append=1.0).reshape(-1, PARTS)
    records = smooth_records(outcome.counts, plan.noise, masses).ravel()
    return DecodedDistribution(np.maximum.accumulate(places), records, plan.partition.support)


def cell_values(plan: CellsPlan, outcome: CellsOutcome, quantiles: Any) -> Array:
    """Values (m,) at quantiles (m,) in [0, 1], on the plan's grid: post-processing, so that any quantile is free."""
    return on_grid(plan, decoded(plan, outcome).quantile(np.asarray(quantiles, dtype=np.float64)))


def on_grid(plan: CellsPlan, values: Array) -> Array:
    """Values as the nearest multiples of the plan's step, if it has one."""
    if plan.step is None:
        return values
    return np.asarray(from_units(rounded_units(values, plan.step), plan.step) + 0.0)


def cell_intervals(
    plan: CellsPlan, outcome: CellsOutcome, quantiles: Any, level: float, population: bool = False
) -> Array:
    """Intervals (m, 2) that hold all quantiles (m,) at once with probability at least `level`, whatever the data.

    population: see `pq.core.rank_bounds.quantile_intervals`. Post-processing. Raises `ValueError` naming level.
    """
    return quantile_intervals(
        outcome.edges, outcome.counts, plan.noise, np.asarray(quantiles, dtype=np.float64), level, population
    )
