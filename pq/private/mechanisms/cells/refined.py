"""Cells along a first, coarse private distribution function (Section 3.1).

A part of the budget buys coarse noisy counts; what they decode to, a smooth distribution function, says where the cells
of the rest should lie. The first function is an outcome like any other: its places and counts are the places of this
partition, paid for by its own budgets, and by composition the losses of both add up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from pq.core.curves import LEVELS, mixed_table
from pq.core.noise import IntArray, Source
from pq.core.scores import Array
from pq.private.columns.cells import Points
from pq.private.mechanisms.cells.law import CellsOutcome, CellsPlan, decoded, draw_cells, log_cells_parts
from pq.private.mechanisms.cells.partitions import Places
from pq.private.mechanisms.protocol import LogParts

FIRST_SHARE = 0.3  # of the first partition's own law: where coarse counts saw nothing there may be something


@dataclass(frozen=True)
class RefinedPartition:
    """Cells of equal mass under a first private distribution function.

    first: its plan, whose partition has a known number of places; under its whole budget. Raises `ValueError`.

    >>> from pq.core.priors import Uniform
    >>> from pq.private.mechanisms.cells.partitions import PriorPartition
    >>> around = PriorPartition((Uniform(0, 4),), (Fraction(1, 2),))
    >>> refined = RefinedPartition(CellsPlan(Fraction(1, 10), "add-remove", around, cells=4))
    >>> bool(refined.table((0.0, 500.0, 0.0, 0.0))[511] < 1.8)
    True
    """

    first: CellsPlan
    size: None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.first.partition.size is None or not isinstance(self.first.epsilon, Fraction):
            raise ValueError("first must have a finite epsilon and a partition of so many places")

    @property
    def budgets(self) -> tuple[Fraction, ...]:
        return tuple(Fraction(budget) for budget in self.first.budgets)

    @property
    def rho(self) -> Fraction:
        return Fraction(self.first.rho)

    @property
    def adjacency(self) -> str:
        return self.first.adjacency

    @property
    def support(self) -> tuple[float, float]:
        return self.first.partition.support

    def draw(self, column: Points, source: Source) -> Places:
        outcome = draw_cells(self.first, column, source)
        return (*outcome.places, *(float(count) for count in outcome.counts))

    def log_parts(self, column: Points, places: Places) -> LogParts:
        outcome = self.seen(places)
        return (Fraction(0), -math.inf) if outcome is None else log_cells_parts(self.first, column, outcome)

    def table(self, places: Places) -> Array:
        outcome, own = self.seen(places), self.first.partition
        if outcome is None:
            raise ValueError("places must be those of the first distribution function")
        seen = decoded(self.first, outcome).quantile(LEVELS)
        return mixed_table([seen, own.table(outcome.places)], [1.0 - FIRST_SHARE, FIRST_SHARE])

    def seen(self, places: Places) -> CellsOutcome | None:
        """The first outcome that places stand for; None if they cannot be one."""
        size = self.first.partition.size or 0
        if len(places) < size or not all(math.isfinite(place) for place in places):
            return None
        edges, found = self.first.edges(places[:size]), np.array(places[size:])
        counts: IntArray = np.rint(found).astype(np.int64)
        if len(found) != len(edges) + 1 or np.any(counts != found):
            return None
        return CellsOutcome(places[:size], edges, counts)
