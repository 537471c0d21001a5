"""At most so many records of a person, by a rule that looks at nothing but that person's records (Section 3.1).

Records are ordered within each person by a fixed hash of who it is, of the group, the value and how many alike there
are; the first ones are kept. Whose records come before or after in the table, and in what order, makes no difference.
So tables that differ in one person's records differ, after this, in at most so many records; and which records of a
person are kept favours no value. A record that is missing is kept only where there is room.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pq.private.columns.counts import IntArray, finite_numbers
from pq.private.columns.door import Array
from pq.private.columns.identity import Hashes, IdentityForm, digests_of, identities_in, mixed

LARGEST_BOUND = 2**53  # more records than a column may hold
MOST_ALIKE = 64  # of more records of a person that are alike, so many draw lots for being kept, or as many as may be


@dataclass(frozen=True)
class Persons:
    """Whose each row is. codes: (n,) a number for each person, -1 for a row without an ID. digests: (n,) of the ID."""

    codes: IntArray
    digests: Hashes

    @classmethod
    def of(cls, column: Any, times: bool = False) -> Persons:
        """IDs are one where they have one form, see `pq.private.columns.identity.identities_in`."""
        known: dict[IdentityForm, int] = {}
        forms, rows = identities_in(column, times)
        codes = np.array([-1 if one is None else known.setdefault(one, len(known)) for one in forms], dtype=np.int64)
        codes = codes[rows]
        return cls(codes, np.append(digests_of(known), np.uint64(0))[codes])


@dataclass(frozen=True)
class GroupedRecords:
    """Rows that stand for records: places: (n,) of their groups. values: (n,), NaN for missing ones. records: (n,) how
    many a row stands for. persons: whose they are, if that is known."""

    places: IntArray
    values: Array
    records: IntArray
    persons: Persons | None = None


def bounded(rows: GroupedRecords, most_records: int, most_groups: int) -> GroupedRecords:
    """The records that are kept: at most so many of each person, in at most so many groups; none without an ID."""
    assert rows.persons is not None
    most_records, most_groups = min(most_records, LARGEST_BOUND), min(most_groups, LARGEST_BOUND)
    values = finite_numbers(rows.values)  # an engine may have made infinities the largest numbers, or not
    bits = np.where(np.isnan(values), -1.0, values).view(np.uint64)
    missing = np.isnan(values).astype(np.int64)
    person, place, digest = rows.persons.codes, rows.places, rows.persons.digests
    order = np.lexsort((bits, missing, place, person))
    order = order[person[order] >= 0]
    starts = _starts(person[order], place[order], missing[order], bits[order])
    alike = np.add.reduceat(rows.records[order], starts) if len(starts) else starts
    held = np.minimum(alike, max(most_records, MOST_ALIKE))
    one = np.repeat(order[starts], held)
    copy = np.arange(len(one)) - np.repeat(np.cumsum(held) - held, held)
    group_hash = mixed(digest[one] ^ mixed(place[one].astype(np.uint64)))
    one, copy = _first(one, copy, (place[one], group_hash), (person[one], place[one]), person, most_groups)
    group_hash = mixed(digest[one] ^ mixed(place[one].astype(np.uint64)))
    record_hash = mixed(group_hash ^ mixed(bits[one] ^ mixed(copy.astype(np.uint64))))
    ties = (copy, bits[one], place[one], record_hash, missing[one])
    one, copy = _first(one, copy, ties, (np.arange(len(one)),), person, most_records)
    return GroupedRecords(place[one], values[one], np.ones(len(one), dtype=np.int64))


def _first(one: Any, copy: Any, keys: Any, units: Any, person: IntArray, most: int) -> tuple[IntArray, IntArray]:
    """Of each person the rows of the first few units, in the order of keys, the last of which counts most.

    units: columns that are equal for rows of one unit, which keys keep together.
    """
    order = np.lexsort((*keys, person[one]))
    one, copy = one[order], copy[order]
    number = np.cumsum(_is_start(*(unit[order] for unit in units)))  # of the unit, over all persons
    first = np.flatnonzero(_is_start(person[one]))
    before = np.repeat(number[first], np.diff(np.append(first, len(one))))
    kept = number - before < most
    return one[kept], copy[kept]


def _starts(*columns: Any) -> IntArray:
    return np.flatnonzero(_is_start(*columns))


def _is_start(*columns: Any) -> npt.NDArray[np.bool_]:
    """Whether a row differs from the one before."""
    start = np.ones(len(columns[0]), dtype=bool)
    if len(start):
        start[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return start
