"""The door: any column of numbers or times as sorted finite float64 records (Section 3.1).

Every odd value is dealt with here, record by record, by a rule that looks at nothing but that record, so that one
person's value changes one person's contribution and nothing else: no exception, no warning, no change of shape.

- missing values (NaN, None, masked, an element that is no number): dropped, or counted as the lowest or highest, as
  `on_nan` says;
- infinities: count as the largest finite numbers;
- integers, decimals and extended floats: rounded to the nearest float64;
- dates, timestamps, times of day and durations: seconds, see `pq.core.kind`.

Only what the type of the column declares, not its values, can be refused: text, complex numbers, lists, tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pq.core.arrays import KeptReadOnly, read_only
from pq.core.kind import NUMBER, Kind
from pq.core.quiet import quiet
from pq.private.columns.declared import Array
from pq.private.columns.dtypes import declaration_of
from pq.private.columns.library import is_ready, library_of

__all__ = ["LARGEST", "Array", "Readable", "SortedColumn", "UnreadColumn", "as_floats", "with_missing"]

LARGEST = float(np.finfo(np.float64).max)
HEAD = 16  # records that are looked at before all are, to see whether a column is in order


MANY = 4096  # records, from which on it is worth a look whether many are alike
DISTINCT_SHARE = 0.95  # of all records; with fewer, those that are alike are counted

IntArray = npt.NDArray[np.int64]
Ordered = tuple[Array, IntArray | None]  # what `Readable.records` gives


class Readable(Protocol):
    """A column that a release takes: what its records are declared to be, and the records, which are read when asked.

    `missing`: how many of them are no number. `records` gives them in increasing order, missing ones put where `on_nan`
    says, and, if a value stands for several records, how many come before each; see `pq.private.columns.cells.Points`.
    """

    @property
    def kind(self) -> Kind: ...
    @property
    def missing(self) -> int: ...
    def records(self, on_nan: str) -> Ordered: ...


def as_floats(x: Any) -> Array:
    """Any one-dimensional column as float64, without a word about its values; NaN where there is no number.

    Raises `TypeError` for a type that holds no real numbers and `ValueError` for a shape that is no column, naming x.
    """
    return kind_and_floats(x)[1]


def kind_and_floats(x: Any) -> tuple[Kind, Array]:
    """What a column in memory is declared to be, and its records as `as_floats` gives them."""
    if is_ready(x):
        return NUMBER, x
    with quiet():
        kind, read, _ = declaration_of(x, library_of(x)).of(x)
        return kind, read()


def _known_in_order(values: Array) -> Array:
    """The numbers among some records in increasing order, infinities as the largest finite numbers."""
    if not _in_order(values):
        values = np.sort(values)
        if math.isnan(values.item(-1)):  # NaN comes last
            values = values[: int(np.searchsorted(values, np.nan))]
    if values.size and (values.item(0) < -LARGEST or values.item(-1) > LARGEST):
        values = np.clip(values, -LARGEST, LARGEST)
    return one_zero(values)


def one_zero(ordered: Array) -> Array:
    """Sorted numbers of which no zero has a sign: an output that is zero would bear a record's."""
    first, last = np.searchsorted(ordered, 0.0, side="left"), np.searchsorted(ordered, 0.0, side="right")
    if np.signbit(ordered[first:last]).any():
        ordered = ordered.copy()
        ordered[first:last] = 0.0
    return ordered


def _in_order(values: npt.NDArray[Any]) -> bool:
    """Whether records are sorted and none is missing."""
    head = values[:HEAD].tolist()
    if head != sorted(head):
        return False
    return bool((values[1:] >= values[:-1]).all()) and not np.isnan(values[:1]).any()  # NaN compares false


def first_of_equals(ordered: Array) -> npt.NDArray[np.bool_]:
    """Which of some sorted numbers differ from the one before, the first of all among them."""
    is_first = np.empty(len(ordered), dtype=bool)
    is_first[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return is_first


def with_ties_counted(known: Array) -> Ordered:
    """Sorted records, of which each distinct one stands for all its like where so many are that this pays."""
    if len(known) < MANY:
        return known, None
    is_first = first_of_equals(known)
    if np.count_nonzero(is_first) > DISTINCT_SHARE * len(known):
        return known, None
    starts = np.flatnonzero(is_first)
    return known[starts], np.append(starts, len(known))


def with_missing(known: Array, before: IntArray | None, missing: int, on_nan: str) -> Ordered:
    """Sorted records with those that are missing put where `on_nan` says."""
    if missing == 0 or on_nan == "drop":
        return known, before
    place, end = (0, -LARGEST) if on_nan == "lowest" else (len(known), LARGEST)
    if before is None:
        return np.insert(known, place, np.full(missing, end)), None
    return np.insert(known, place, end), np.append(0, np.cumsum(np.insert(np.diff(before), place, missing)))


class UnreadColumn:
    """A column of which nothing but its declared type has been looked at.

    kind: that type. read: the records, in whatever order or as another column; called once, by the first who asks.
        What it may raise tells nothing of them.
    pieces: the same as arrays of real numbers, of any type and number, where that takes no memory. plain: whether
    reading has nothing to warn of.
    """

    def __init__(
        self,
        kind: Kind,
        read: Callable[[], Array | Readable],
        pieces: Callable[[], list[npt.NDArray[Any]]] | None = None,
        plain: bool = False,
    ) -> None:
        self.kind, self._read, self._pieces, self._plain = kind, read, pieces, plain

    @cached_property
    def _found(self) -> Array | Readable:
        with nullcontext() if self._plain else quiet():
            return self._read()

    @cached_property
    def _held(self) -> tuple[Ordered, int] | Readable:
        found = self._found
        if not isinstance(found, np.ndarray):
            return found
        known = _known_in_order(found)
        return with_ties_counted(known), len(found) - len(known)

    def unsorted(self, least: int = 0) -> list[npt.NDArray[Any]] | None:
        """All records in the order and the type in which they came, missing ones among them, as arrays of real numbers;
        None where their order is known, they have to be read in another way, or they are fewer than `least`."""
        if "_held" in vars(self):
            return None
        found = self._found if self._pieces is None else self._pieces()
        arrays = [found] if isinstance(found, np.ndarray) else found
        if not isinstance(arrays, list) or sum(map(len, arrays)) < least or all(map(_in_order, arrays)):
            return None
        return arrays

    @property
    def missing(self) -> int:
        """See `Readable`."""
        held = self._held
        return held[1] if isinstance(held, tuple) else held.missing

    def records(self, on_nan: str) -> Ordered:
        """See `Readable`."""
        held = self._held
        return with_missing(*held[0], held[1], on_nan) if isinstance(held, tuple) else held.records(on_nan)


class SortedColumn(KeptReadOnly):
    """A sensitive column sorted and checked once, for many releases: `pq.release` then takes time logarithmic in n.

    x: (n,) as for `pq.release`. It holds the records: keep it as safe as them. `kind`: what x was declared to be, a
    public fact. `missing`: records that are no number, as secret as the others. Raises as `pq.release` does for x.

    >>> import pq
    >>> column = pq.SortedColumn([3.0, 1.0, float("nan"), 2.0])
    >>> pq.release(column, [0.5], epsilon=1, priors=pq.Uniform(0, 4), rng=0).values.shape
    (1,)
    """

    def __init__(self, x: Any) -> None:
        self.kind, values = kind_and_floats(x)
        known = _known_in_order(values)
        self.missing = len(values) - len(known)
        known, before = with_ties_counted(known)
        known = known.copy() if np.may_share_memory(known, values) else known
        self._known = read_only(known), before if before is None else read_only(before)

    def __repr__(self) -> str:
        return "<SortedColumn of sensitive records>"

    def records(self, on_nan: str) -> Ordered:
        """See `Readable`."""
        return with_missing(*self._known, self.missing, on_nan)
