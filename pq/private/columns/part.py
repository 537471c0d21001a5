"""A part of a column: its records in some places, and how many there are in the gaps between (Section 3.1).

Whoever asks for more than is known is stopped by `Unknown`, and asks again when more of the column has been looked up.
A cell that holds records which are not known is marked; all others are as in the whole column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from pq.private.columns.cells import Points, PointsView, Ranks
from pq.private.columns.door import Array

NO_GAPS: Ranks = np.empty(0, dtype=np.int64)


class Unknown(Exception):
    """A part of a column was asked for what it does not know."""


@dataclass(frozen=True)
class Part(Points):
    """Known records in increasing order, and what lies between them.

    values: (d,) distinct or not. before: (d + 1,) records of the whole column before each, and of all. gaps: (g,)
    indices, increasing, of the values that stand for themselves and for unknown records between them and the value
    before; so cell i, which ends at value i, is known where i is none of these.
    """

    gaps: Ranks = field(default_factory=lambda: NO_GAPS)

    def check(self, first: int, last: int) -> None:
        """Raises `Unknown` unless the cells first..last are known."""
        if np.searchsorted(self.gaps, first, side="left") < np.searchsorted(self.gaps, last, side="right"):
            raise Unknown

    def check_ranks(self, low: float, high: float) -> None:
        """Raises `Unknown` unless all records of some ranks are known, and the cells beside them."""
        assert self.before is not None
        first = int(np.searchsorted(self.before, low, side="left")) - 1
        self.check(max(first, 0), int(np.searchsorted(self.before, high, side="right")))

    def view(self, low: float, high: float, low_share: int = 0, high_share: int = 0) -> PointsView:
        for end in (low, high):
            if math.isfinite(end):
                place = int(np.searchsorted(self.values, end, side="left"))
                self.check(place, place)
        known, start = super().view(low, high), int(np.searchsorted(self.values, low, side="right"))
        return _PartView(known.values, known.ranks, self, start)


@dataclass(frozen=True)
class _PartView(PointsView):
    """The records of a node's interval that are known. start: index of the first of them in the part."""

    part: Part = field(default_factory=lambda: Part(np.empty(0)))
    start: int = 0

    def cells(self, first: int, last: int, ends: tuple[float, float]) -> tuple[Array, Ranks, Ranks]:
        self.part.check(self.start + first, self.start + last)
        return super().cells(first, last, ends)
