"""A column as the number of records at each value: all that quantiles need to know of it (Section 3.1).

Private ring. Odd values and counts are dealt with record by record, as in `pq.private.columns.door`, and never raise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from pq.core.arrays import KeptReadOnly, read_only
from pq.core.exact import whole_number
from pq.core.kind import NUMBER, Kind
from pq.private.columns.door import LARGEST, Array, IntArray, kind_and_floats

Numbers = Array | IntArray
FACTS = ("values", "counts", "missing", "kind", "max_contributions")
MOST = 2.0**53  # records that a column may hold; beyond, float64 does not tell one more


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Counts(KeptReadOnly):
    """The records of a sensitive column by value; made by `pq.count`, or from values and counts of any kind and order.

    values: (d,) numbers; repeats are added up, infinities count as the largest finite numbers, and what is no number
        counts as missing. counts: (d,) records at each, None for one; a fraction counts as its whole part, and a count
        that is negative or no number as zero. missing: further records that are no number; `placed` says where they
        count. kind: what the values are where they are given as floats; by default as they are declared.
    max_contributions: records that one person has among these at most, a promise or what `pq.count` has seen to; None
        if nothing is known. A release of them that promises less is refused.
    No more than 2^53 records are counted, the lowest ones: that there are no more is a promise, for no rule for more
    could make neighbours of neighbours.

    Afterwards `values` are distinct, finite, in increasing order, `counts` are positive, and both are read-only; `kind`
    is what the values were declared to be. Raises `TypeError` or `ValueError` for what is no column of numbers or for
    columns of two lengths.

    >>> ages = Counts([30.0, 25.0, 30.0, float("nan")], [2, 1, 3, 4])
    >>> ages.values.tolist(), ages.counts.tolist(), ages.missing
    ([25.0, 30.0], [1, 5], 4)
    """

    values: Array
    counts: IntArray
    missing: int
    kind: Kind
    max_contributions: int | None

    def __init__(
        self,
        values: Any,
        counts: Any = None,
        missing: int = 0,
        *,
        kind: Kind | None = None,
        max_contributions: int | None = None,
    ) -> None:
        bound = None if max_contributions is None else whole_number(max_contributions, "max_contributions", least=1)
        declared_kind, numbers = _read(values, "values")
        held = None if counts is None else _records_at(counts, len(numbers))
        self._fill(kind or declared_kind, numbers, held, missing, bound)

    @classmethod
    def of(
        cls,
        kind: Kind,
        numbers: Array,
        counts: Numbers | None = None,
        missing: float = 0,
        max_contributions: int | None = None,
    ) -> Counts:
        """The same of floats in the unit of a kind, and of counts as floats."""
        made = object.__new__(cls)
        made._fill(kind, numbers, None if counts is None else _whole(counts), missing, max_contributions)
        return made

    @classmethod
    def by_group(
        cls, kind: Kind, places: IntArray, groups: int, numbers: Array, counts: IntArray, max_contributions: int | None
    ) -> list[Counts]:
        """The counts of each of some groups, of rows (n,) that say their group 0 .. groups - 1: one sort for all.

        Groups that hold more than `MOST` records together are made one by one, which sees to `MOST` in each.
        """
        small = places.astype(np.min_scalar_type(groups))  # which numpy sorts in linear time
        if np.sum(counts, dtype=np.float64) > MOST:
            order = np.argsort(small, kind="stable")
            parts = np.split(order, np.searchsorted(small[order], np.arange(1, groups)))
            return [cls.of(kind, numbers[part], counts[part], 0, max_contributions) for part in parts]
        unknown, held = np.isnan(numbers), counts > 0
        missing = np.bincount(places[unknown], counts[unknown], groups).astype(np.int64).tolist()
        small, counts = small[held & ~unknown], counts[held & ~unknown]
        values = finite_numbers(numbers[held & ~unknown])
        order = np.argsort(values)
        order = order[np.argsort(small[order], kind="stable")]
        small, values, reached = small[order], values[order], np.append(0, np.cumsum(counts[order]))
        is_first = np.append(True, (values[1:] != values[:-1]) | (small[1:] != small[:-1]))[: len(values)]
        starts = np.flatnonzero(is_first)
        values, records = values[starts], np.diff(reached[np.append(starts, len(small))])
        ends = np.searchsorted(small[starts], np.arange(groups + 1)).tolist()
        values.flags.writeable = records.flags.writeable = False
        return [
            cls._made(values[start:stop], records[start:stop], unheld, kind, max_contributions)
            for (start, stop), unheld in zip(pairwise(ends), missing, strict=True)
        ]

    @classmethod
    def _made(cls, *facts: Any) -> Counts:
        """Of all `FACTS` as they are kept."""
        made = object.__new__(cls)
        made.__dict__.update(zip(FACTS, facts, strict=True))
        return made

    def _fill(self, kind: Kind, numbers: Array, held: Array | None, missing: float, bound: int | None) -> None:
        unknown = np.isnan(numbers)
        if held is None:
            unheld, kept = float(np.count_nonzero(unknown)), ~unknown
        else:
            unheld, kept = float(np.sum(held[unknown])), ~unknown & (held > 0)
            held = held[kept]
        unheld = min(max(float(np.nan_to_num(float(min(missing, MOST)))), 0.0) + unheld, MOST)
        distinct, records = _merged(finite_numbers(numbers[kept]), held)
        distinct.flags.writeable = records.flags.writeable = False
        for name, fact in zip(FACTS, (distinct, records, int(unheld), kind, bound), strict=True):
            object.__setattr__(self, name, fact)

    def __repr__(self) -> str:
        return "<Counts of a sensitive column>"

    @cached_property
    def before(self) -> IntArray:
        """(d + 1,) records before each value, and all of them; see `pq.private.columns.cells.Points`."""
        return read_only(np.concatenate([[0], np.cumsum(self.counts)]))

    def records(self, on_nan: str) -> tuple[Array, IntArray]:
        """The values in increasing order, missing ones put where `on_nan` says, and the records before each."""
        placed = self.placed(on_nan)
        return placed.values, placed.before

    def placed(self, on_nan: str) -> Counts:
        """The same records, the missing ones dropped or counted at the lowest or the highest number, as in `release`.

        >>> Counts([1.0], [2], missing=3).placed("highest").counts.tolist()
        [2, 3]
        """
        if not self.missing:
            return self
        values, counts = self.values, self.counts
        if on_nan != "drop":
            end = -LARGEST if on_nan == "lowest" else LARGEST
            values, counts = np.append(values, end), np.append(counts, self.missing)
        return Counts.of(self.kind, values, counts, max_contributions=self.max_contributions)


def _read(column: Any, name: str) -> tuple[Kind, Array]:
    try:
        return kind_and_floats(column)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("x must", f"{name} must", 1)) from None


def finite_numbers(numbers: Array) -> Array:
    """Numbers without infinities, and with one zero."""
    return np.asarray(np.clip(numbers, -LARGEST, LARGEST) + 0.0)


def _whole(counts: Numbers) -> Array:
    """Each count as a whole number from 0 to `MOST`."""
    with np.errstate(all="ignore"):
        return np.floor(np.clip(np.nan_to_num(counts, nan=0.0, posinf=MOST, neginf=0.0), 0.0, MOST))


def _records_at(counts: Any, size: int) -> Array:
    """A column of that many counts as whole numbers."""
    kind, numbers = _read(counts, "counts")
    if kind != NUMBER:
        raise TypeError(f"counts must be a column of numbers, got one of kind {kind}")
    if len(numbers) != size:
        raise ValueError("counts must be one for each of the values")
    return _whole(numbers)


def _merged(values: Array, counts: Array | None) -> tuple[Array, IntArray]:
    """Distinct values in increasing order and the sums of their counts, none of more records than `MOST` in all."""
    if counts is None:
        values = np.sort(values)
    elif not np.all(values[1:] > values[:-1]):
        order = np.argsort(values, kind="stable")
        values, counts = values[order], counts[order]
    is_last = np.append(values[1:] != values[:-1], True)[: len(values)]
    if counts is None:
        reached = np.flatnonzero(is_last) + 1.0
    else:
        reached = np.minimum(np.cumsum(counts)[is_last], MOST)
    records = np.diff(reached, prepend=0.0).astype(np.int64)
    held = records > 0
    return values[is_last][held], records[held]
