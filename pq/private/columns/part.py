"""A part of a column: its records in some places, and how many there are in the gaps between (Section 3.1).

Whoever asks for more than is known is stopped by `Unknown`, and asks again when more of the column has been looked up.
A cell that holds records which are not known is marked; all others are as in the whole column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from pq.private.columns.cells import Points, PointsView, Ranks, Steps
from pq.private.columns.door import LARGEST, Array

NO_GAPS: Ranks = np.empty(0, dtype=np.int64)


class Wanted(NamedTuple):
    """Ranks that somebody asked a part for: those from low to high do, and of them those near some rank, if known."""

    low: float
    high: float
    near: tuple[float, float] | None = None

    def spans(self, reach: float, more: float) -> Iterator[tuple[float, float]]:
        """What may be looked up for it: all of a node, so that those below it are known; then what lies within a reach,
        within so many times more, and so on, up to all that is nearer than whatever is known."""
        yield self.low, self.high
        if self.near is None:
            return
        middle, half = 0.5 * (self.near[0] + self.near[1]), 0.5 * (self.near[1] - self.near[0])
        while reach < half:
            yield middle - reach, middle + reach
            reach *= more
        yield self.near


class Near(NamedTuple):
    """What a release rarely looks beyond, as far as public facts tell.

    quantiles: (m,). ranks: around each, one number or (m,). points: (p,) increasing, up to which records are counted.
    growth: ranks more, one number or (m,), for each time that there are e times as many records as a million.
    """

    quantiles: Array
    ranks: Array | float
    points: Array = np.empty(0)
    growth: Array | float = 0.0


class Unknown(Exception):
    """A part of a column was asked for what it does not know. everything: all records are needed, however many.
    wanted: what would have been known with these ranks; empty if nobody can tell."""

    def __init__(self, everything: bool = False, wanted: Sequence[Wanted] = ()) -> None:
        super().__init__()
        self.everything, self.wanted = everything, wanted


@dataclass(frozen=True)
class PartOfColumn(Points):
    """Known records in increasing order, and what lies between them.

    values: (d,) distinct or not. before: (d + 1,) records of the whole column before each, and of all. gaps: (g,)
    indices, increasing, of the values that stand for themselves and for unknown records between them and the value
    before; so cell i, which ends at value i, is known where i is none of these. count: counts the records of the whole
    column up to each of some increasing numbers, in one more pass over it.
    """

    gaps: Ranks = field(default_factory=lambda: NO_GAPS)
    count: Callable[[Array], Ranks] | None = None

    @property
    def records(self) -> Array:
        """The values that are records: not one that only stands for what is above all of them."""
        return self.values[:-1] if len(self.gaps) and self.gaps[-1] == len(self.values) else self.values

    def check(self, first: int, last: int, near: tuple[float, float] | None = None) -> None:
        """Raises `Unknown` unless the cells first..last are known. near: the ranks for which they are looked at."""
        if self._has_gap(first, last):
            raise Unknown(wanted=[self._wanted(first, last, near)])

    def check_ranks(self, low: Array, high: Array) -> None:
        """Raises `Unknown` unless all cells of the ranks from low (k,) to high (k,) are known."""
        before, size = self.before, len(self.values)
        assert isinstance(before, Steps)
        one, other = (np.clip(ends, -1, self.n + 1).astype(np.int64) for ends in (np.ceil(low), np.floor(high)))
        first, last = before.first_not_below(one, size), before.first_not_below(other + 1, size) - 1
        beyond = np.flatnonzero(self._has_gap(first, last)).tolist()
        if beyond:
            raise Unknown(wanted=[self._wanted(first[i], last[i], (float(low[i]), float(high[i]))) for i in beyond])

    def _has_gap(self, first: Any, last: Any) -> Any:
        """Whether one of the cells first..last is unknown."""
        return np.searchsorted(self.gaps, first, side="left") < np.searchsorted(self.gaps, last, side="right")

    def _wanted(self, first: int, last: int, near: tuple[float, float] | None) -> Wanted:
        """What would have been known with the cells first..last."""
        assert self.before is not None
        low, high = self.before[np.clip([first, last + 1], 0, len(self.values))].tolist()
        return Wanted(low, high, near)

    def _up_to(self, ends: Array) -> Ranks:
        places, known = np.searchsorted(self.values, ends, side="right"), super()._up_to(ends)
        unknown = np.isin(places, self.gaps)
        if self.count is None or not unknown.any():
            return known
        distinct, back = np.unique(ends[unknown] + 0.0, return_inverse=True)  # one zero
        found = np.where(distinct >= LARGEST, self.n, self.count(distinct))  # infinite records are the largest numbers
        known[unknown] = np.where(distinct == -np.inf, 0, found)[back]
        return known

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

    part: PartOfColumn = field(default_factory=lambda: PartOfColumn(np.empty(0)))
    start: int = 0

    def cells(self, first: int, last: int, ends: tuple[float, float]) -> tuple[Array, Ranks, Ranks]:
        self.part.check(self.start + first, self.start + last)
        return super().cells(first, last, ends)


def joined_part(room: Array, size: int, tied: Array, ties: Ranks, counts: Ranks, wanted: Ranks) -> PartOfColumn | None:
    """Collected records, and numbers that were counted, with what lies between; None if there are none.

    room: holds `size` records, and has a place for each number that was counted and one more; it is overwritten. tied,
        ties: (w,) a number of each bucket that was counted, and how often it is there. counts: (b,) records of all
        buckets. wanted: (w,) the buckets that were collected.
    """
    is_tied = ties > 0
    size, collected = size + int(np.count_nonzero(is_tied)), size
    if size == 0:  # of a column that changes meanwhile
        return None
    found = room[:size]
    found[collected:] = tied[is_tied]
    found.sort()
    places = np.searchsorted(found, tied[is_tied])
    np.clip(found, -LARGEST, LARGEST, out=found)
    found += 0.0  # one zero
    gaps, between, rest = _gaps_in(ties, counts, wanted)
    values = room[: size + (rest > 0)]
    if rest > 0:
        values[-1] = np.nextafter(found[-1], np.inf)
    gaps, last = np.minimum(gaps, len(values) - 1), np.full(int(rest > 0), size)
    more = np.concatenate([ties[is_tied] - 1, between, np.full(len(last), rest - 1)])
    steps = _steps(np.concatenate([places, gaps, last]), more)
    return PartOfColumn(values, steps, gaps=np.concatenate([gaps, last, last + 1]))


def _steps(index: Ranks, more: Ranks) -> Steps:
    """Of values, in any order, that stand for so many records more than one."""
    at, own = np.unique(index[more != 0], return_inverse=True)
    each = np.zeros(len(at) + 1, dtype=np.int64)
    np.add.at(each, own + 1, more[more != 0])
    return Steps(at, np.cumsum(each))


def _gaps_in(ties: Ranks, counts: Ranks, wanted: Ranks) -> tuple[Ranks, Ranks, int]:
    """How many values are before each gap, how many records are in it, and how many above all values; see
    `joined_part`."""
    own = counts[wanted]
    distinct = own - ties + (ties > 0)  # of each bucket among those found, but that equal ones count each
    others = np.cumsum(counts)[wanted] - np.cumsum(own)  # records of other buckets before each
    between = np.diff(others, prepend=0)
    gaps = np.flatnonzero(between)
    return (np.cumsum(distinct) - distinct)[gaps], between[gaps], int(np.sum(counts) - np.sum(own) - others[-1])
