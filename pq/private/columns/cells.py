"""What a mechanism sees of a column at a node: cells of outputs that have the same records below (Section 3.1).

A *column* is the whole of the data, a *view* its part in a node's interval. Both come in two kinds: `Points` releases
real numbers, `Lattice` the multiples of a public step, to which the records are rounded too.

A node holds the records strictly inside its interval. On a lattice an earlier output, which bounds the interval, may
itself be the value of many records; a share of each of those goes on to the node on either side, as a record of that
weight. The shares of a record sum to at most one, which keeps its total privacy loss within the budget of a path; see
`pq.core.sensitivity`. Weights and ranks count whole parts of a record, of which a column's
`unit` says how many there are, so that none is ever rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pq.core.grid import LATTICE_END, from_units, last_rounded, rounded_units
from pq.private.columns.door import LARGEST, Array, first_of_equals

MOST_PARTS = 2**62  # of records in a column: sums stay integers; more records than that are not counted


class View(Protocol):
    """A node's records, of total weight `n` in parts of a record, as cells of outputs numbered from 0 to `last_cell`.

    `cells` gives the edges (c + 1,) of cells first..last in the units of the data, and the smallest and largest rank
    (c,) that their outputs stand for; `ends` are the outermost edges. `cell_at(rank)` is a cell such that all cells
    before it are of ranks below, and all cells from the next but one on of ranks above. `ranks_of(o)` are the ranks of
    one output.
    """

    @property
    def n(self) -> int: ...
    @property
    def last_cell(self) -> int: ...
    def cell_at(self, rank: float) -> int: ...
    def cells(self, first: int, last: int, ends: tuple[float, float]) -> tuple[Array, Ranks, Ranks]: ...
    def ranks_of(self, o: float) -> tuple[int, int]: ...


class Column(Protocol):
    """All records of a column, and its outputs in the column's own units.

    `output` brings a value in the units of the data to the output that it becomes, `value` is its inverse, `edges_of`
    the interval of values that become an output in [low, high].
    """

    @property
    def step(self) -> Fraction | None: ...
    @property
    def unit(self) -> int: ...
    def view(self, low: float, high: float, low_share: int, high_share: int) -> View: ...
    def output(self, value: float) -> float: ...
    def value(self, o: Any) -> Any: ...
    def edges_of(self, low: float, high: float) -> tuple[float, float]: ...


def _inside(values: Array, low: float, high: float) -> tuple[int, int]:
    """Slice of the sorted values that lie strictly between two outputs."""
    start = int(np.searchsorted(values, low, side="right"))
    return start, max(start, int(np.searchsorted(values, high, side="left")))


Ranks = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Steps:
    """Records before each of many values, of which few stand for more or fewer records than one: by index, as of an
    array, in a room that does not grow with the values.

    at: (s,) indices of those few, increasing. more: (s + 1,) records before a value beyond its index, up to each of
    them and after the last.

    >>> Steps(np.array([1, 4]), np.array([0, 9, 8]))[np.arange(7)]
    array([ 0,  1, 11, 12, 13, 13, 14])
    """

    at: Ranks
    more: Ranks

    def __getitem__(self, index: Any) -> Any:
        return index + self.more[np.searchsorted(self.at, index, side="left")]

    def first_not_below(self, ranks: Ranks, count: int) -> Ranks:
        """The first of so many values, or of one more, before which there are not fewer than some records."""
        step = np.searchsorted(self.at + self.more[:-1], ranks, side="left")
        first, last = np.append(0, self.at + 1)[step], np.append(self.at, count + 1)[step]
        return np.clip(ranks - self.more[step], first, last)

    def all(self, count: int) -> Ranks:
        """Records before each of so many values, and all (count + 1,)."""
        return np.arange(count + 1) + np.repeat(self.more, np.diff(self.at, prepend=-1, append=count))


Before = Ranks | Steps


def all_ranks(before: Before | None, count: int) -> Ranks | None:
    """Records before each of so many values, and all, as an array; None if each is one record."""
    return before.all(count) if isinstance(before, Steps) else before


@dataclass(frozen=True)
class Points:
    """A column whose outputs are real numbers: the cells are `(x_k, x_{k+1}]`, and ties make cells of no width.

    values: (d,) in increasing order. before: (d + 1,) records before each value, and n; None if each is one record.
    """

    values: Array
    before: Before | None = None
    step: None = None
    unit: int = 1

    @property
    def n(self) -> int:
        """All records."""
        return len(self.values) if self.before is None else int(self.before[len(self.values)])

    @cached_property
    def ranks(self) -> Ranks | None:
        """Records before each value, and all, as an array; None if each is one record."""
        return all_ranks(self.before, len(self.values))

    def up_to(self, ends: Array, step: Fraction | None) -> Ranks:
        """Records at or below each of some numbers, once they are rounded to a step, if there is one."""
        return self._up_to(ends if step is None else last_rounded(ends, step))

    def _up_to(self, ends: Array) -> Ranks:
        places = np.searchsorted(self.values, ends, side="right")
        return places if self.before is None else self.before[places]

    def view(self, low: float, high: float, low_share: int = 0, high_share: int = 0) -> PointsView:
        start, stop = _inside(self.values, low, high)
        if self.ranks is None:
            return PointsView(self.values[start:stop])
        return PointsView(self.values[start:stop], self.ranks[start : stop + 1] - self.ranks[start])

    def output(self, value: float) -> float:
        return value

    def value(self, o: Any) -> Any:
        return o

    def edges_of(self, low: float, high: float) -> tuple[float, float]:
        return low, high


@dataclass(frozen=True)
class PointsView:
    """The records strictly inside a node's interval."""

    values: Array
    ranks: Ranks | None = None  # (d + 1,), None for 0..d

    @property
    def n(self) -> int:
        return len(self.values) if self.ranks is None else int(self.ranks[-1])

    @property
    def last_cell(self) -> int:
        return len(self.values)

    def cell_at(self, rank: float) -> int:
        if self.ranks is None:
            return int(min(max(rank, 0.0), float(len(self.values))))
        return max(0, int(np.searchsorted(self.ranks, rank, side="right")) - 1)

    def cells(self, first: int, last: int, ends: tuple[float, float]) -> tuple[Array, Ranks, Ranks]:
        edges = np.empty(last - first + 2)
        left, right = int(first == 0), int(last == len(self.values))
        edges[left : len(edges) - right] = self.values[first - 1 + left : last + 1 - right]
        if left:
            edges[0] = ends[0]
        if right:
            edges[-1] = ends[1]
        if self.ranks is None:
            ranks = np.arange(first, last + 1, dtype=np.int64)
        else:
            ranks = self.ranks[first : last + 1]
        return edges, ranks, ranks

    def ranks_of(self, o: float) -> tuple[int, int]:
        k = np.searchsorted(self.values, o, side="left")
        rank = int(k if self.ranks is None else self.ranks[k])
        return rank, rank


def rounded_records(values: Array, step: Fraction, before: Ranks | None) -> tuple[Array, Ranks]:
    """Sorted values rounded to a step: the distinct multiples (d,), and the records before each, and all (d + 1,)."""
    units = rounded_units(values, step)
    starts = first_of_equals(units).nonzero()[0]
    firsts = np.empty(len(starts) + 1, dtype=np.int64)
    firsts[:-1], firsts[-1] = starts, len(units)
    return units[starts], firsts if before is None else before[firsts]


@dataclass(frozen=True)
class Lattice:
    """A column whose outputs are the multiples of a step; values and outputs are in units of the step."""

    values: Array  # distinct
    before: Ranks  # parts of records before each value, and of all
    step: Fraction
    unit: int = 1

    @classmethod
    def of(cls, values: Array, step: Fraction, before: Ranks | None = None, unit: int = 1) -> Lattice:
        """Round sorted values to the nearest multiple of the step. before: see `Points`. unit: parts of a record."""
        units, records = rounded_records(values, step, before)
        return cls(units, np.minimum(records, MOST_PARTS // unit) * unit, step, unit)

    def view(self, low: float, high: float, low_share: int, high_share: int) -> LatticeView:
        if low == high:  # the output is decided; no record can matter
            return LatticeView(np.empty(0), np.zeros(1, dtype=np.int64), self.step)
        start, stop = _inside(self.values, low, high)
        low_weight, high_weight = low_share * self._held(low), high_share * self._held(high)
        low_held, high_held = low_weight > 0, high_weight > 0
        first, last = start - low_held, stop + high_held
        ranks = self.before[first : last + 1] - (self.before[start] - low_weight)
        ranks[0] = 0
        ranks[-1] = low_weight + int(self.before[stop] - self.before[start]) + high_weight
        return LatticeView(self.values[first:last], ranks, self.step, low_held, high_held)

    def _held(self, o: float) -> int:
        """Number of records at an output."""
        first, last = np.searchsorted(self.values, o, side="left"), np.searchsorted(self.values, o, side="right")
        return int(self.before[last] - self.before[first]) // self.unit

    def output(self, value: float) -> float:
        return float(rounded_units(value, self.step))

    def value(self, o: Any) -> Any:
        return np.clip(from_units(o, self.step) + 0.0, -LARGEST, LARGEST)  # one zero

    def edges_of(self, low: float, high: float) -> tuple[float, float]:
        lower = from_units(low - 0.5, self.step) if low > -LATTICE_END else -np.inf
        return lower, from_units(high + 0.5, self.step) if high < LATTICE_END else np.inf


@dataclass(frozen=True)
class LatticeView:
    """The values that a node's records hold, in units of the step, and the ranks of the gaps before, between and after
    them.

    The cells alternate: a run of multiples that no record holds, then one multiple that some do, and so on. A held
    value stands for all ranks from the records below it to those at or below it.
    """

    values: Array  # (d,)
    ranks: Ranks  # (d + 1,)
    step: Fraction
    low_held: bool = False  # whether the first value is the lower end of the interval
    high_held: bool = False

    @property
    def n(self) -> int:
        return int(self.ranks[-1])

    @property
    def last_cell(self) -> int:
        return 2 * len(self.values)

    def cell_at(self, rank: float) -> int:
        return 2 * max(0, int(np.searchsorted(self.ranks, rank, side="right")) - 1)

    def cells(self, first: int, last: int, ends: tuple[float, float]) -> tuple[Array, Ranks, Ranks]:
        one, other = first // 2, (last + 1) // 2  # build runs one..other and the values held between them, then trim
        held = self.values[one:other]
        edges = np.empty(2 * len(held) + 2)
        edges[1:-1:2] = held - 0.5
        edges[2:-1:2] = held + 0.5
        edges[0] = self.values[one - 1] + 0.5 if one > 0 else -np.inf
        edges[-1] = self.values[other] - 0.5 if other < len(self.values) else np.inf
        edges[np.abs(edges) > LATTICE_END] *= np.inf
        edges = np.clip(from_units(edges, self.step), *ends)
        low = np.repeat(self.ranks[one : other + 1], 2)[:-1]
        high = low.copy()
        high[1::2] = self.ranks[one + 1 : other + 1]
        if self.low_held and one == 0:  # prior mass beyond the interval, if any, counts for the value on its end
            edges[:2] = ends[0]
        if self.high_held and other == len(self.values):
            edges[-2:] = ends[1]
        skip, keep = first - 2 * one, last - 2 * one + 1
        return edges[skip : keep + 1], low[skip:keep], high[skip:keep]

    def multiples(self, cell: int) -> tuple[float, float]:
        """The first and the last output of a cell, infinite where only the interval ends it."""
        j, held = divmod(cell, 2)
        if held:
            return float(self.values[j]), float(self.values[j])
        first = self.values[j - 1] + 1.0 if j > 0 else -np.inf
        return float(first), float(self.values[j] - 1.0) if j < len(self.values) else np.inf

    def ranks_of(self, o: float) -> tuple[int, int]:
        first, last = np.searchsorted(self.values, o, side="left"), np.searchsorted(self.values, o, side="right")
        return int(self.ranks[first]), int(self.ranks[last])
