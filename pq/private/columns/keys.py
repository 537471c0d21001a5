"""Public keys of groups, and which of them a record has (Section 3.1).

The declared type of the key column decides how keys compare, never what the column holds. A column of texts has texts
for keys. One of numbers is read as a column of values is, as float64, so that 1, 1.0 and `True` are one key and "1" is
none. Dates, timestamps, times and durations compare exactly, as IDs do. Where a type leaves it to the data (objects,
lists) a record has the key that it equals, one by one, times in whatever unit. A scalar of pyarrow and an array without
dimensions stand for what is in them. A null, a NaN, and whatever equals no key has no key.
"""

from __future__ import annotations

import datetime as dt
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from pq.core.kind import NUMBER, Duration, Kind
from pq.core.seconds import TIMES
from pq.private.columns.counts import IntArray
from pq.private.columns.declared import Grouping
from pq.private.columns.door import Array, as_floats
from pq.private.columns.files import TextFormat, compression_of
from pq.private.columns.identity import NAMES, identities_in, identity_of, items_of
from pq.private.columns.record import content_of
from pq.private.columns.tables import OpenTable
from pq.private.columns.text import ISO, CellRule, length_of
from pq.private.columns.written import key_written

TEXT = re.compile(
    r"(large_)?string(_view)?(\[.*)?|str|<U.*|varchar|(enum|categorical)([(\[].*)?|dictionary<values=(large_)?string.*",
    re.IGNORECASE | re.DOTALL,
)
PLAIN_KEYS = (str, bool, int, float, Decimal, Fraction, dt.date, dt.time, dt.timedelta)
FINER = re.compile(r"[.,][0-9]{6}[0-9]*[1-9]")  # than Python's times are
EXACT = {**ISO, Duration: length_of}  # readers of texts
FINE_TIMES = (np.datetime64, np.timedelta64)  # are keys where no type of Python's goes as far


@dataclass(frozen=True)
class KeyColumn:
    """The type that a column of keys is declared to have. kind: what its records are read as, None for texts and for
    objects. grouping: what an engine may group by: "value" also for texts."""

    kind: Kind | None
    grouping: Grouping
    texts: bool = False

    @classmethod
    def of(cls, table: OpenTable, name: str, argument: str = "by") -> KeyColumn:
        """Of the column that an argument names. Raises `TypeError` naming the argument for a type that can have no
        keys."""
        dtype = declared_type(table, name)
        if TEXT.fullmatch(str(dtype)):
            return cls(None, "value", texts=True)
        if str(dtype) == "category" and TEXT.fullmatch(str(dtype.categories.dtype)):  # of pandas
            return cls(None, "none", texts=True)
        try:
            declared = table.types[name]()
        except TypeError as error:
            what = str(error).rpartition("got ")[2]
            message = f"{argument} must name a column of texts, numbers, dates or times, {name!r} is of type {what}"
            raise TypeError(message) from None
        leaves_it_open = declared.kind == NUMBER and declared.grouping == "none"
        return cls(None if leaves_it_open else declared.kind, declared.grouping)


def declared_type(table: OpenTable, name: str) -> Any:
    """The type of a column in the words of the table's own library; None where that has none."""
    known = table.types[name]
    return known.args[0] if isinstance(known, partial) and known.args else None


@dataclass(frozen=True)
class Keys:
    """Public keys in the caller's order, and how the records of a column find theirs.

    given: (g,) as they were given. column: the declared type of the key column. index: the place of each key by what
    records are compared with.
    """

    given: tuple[Any, ...]
    column: KeyColumn
    index: Mapping[Any, int]

    @classmethod
    def of(cls, keys: Any, column: KeyColumn, by: str) -> Keys:
        """Check keys, or the public file of them that a path names; raises `TypeError` or `ValueError` naming keys."""
        given = tuple(map(_plain, listed_keys(keys, column, by)))
        index: dict[Any, int] = {}
        seen: dict[Any, Any] = {}
        for place, key in enumerate(given):
            compared = _compared(key, column)
            if compared in index:
                raise ValueError(f"keys must differ: {given[index[compared]]!r} and {key!r} are one")
            if key in seen:  # as two instants are that a clock shows twice, and a dictionary of releases holds one
                raise ValueError(f"keys must differ for Python, as {seen[key]!r} and {key!r} do in UTC alone")
            index[compared], seen[key] = place, key
        if not index:
            raise ValueError("keys must hold at least one key")
        return cls(given, column, index)

    def places(self, records: Any) -> IntArray:
        """The place of each record's key (n,); the number of keys for a record that has none. Never raises."""
        unknown = len(self.given)
        if self.column.kind == NUMBER:
            return self._nearest(as_floats(records))
        if self.column.kind is not None:
            forms, rows = identities_in(records, times=True)
            return np.array([self.index.get(form, unknown) for form in forms], dtype=np.int64)[rows]
        items = items_of(records)
        if self.column.texts:
            return np.fromiter(map(self.index.get, items, repeat(unknown)), dtype=np.int64, count=len(items))
        return np.fromiter((self._place(item, unknown) for item in items), dtype=np.int64, count=len(items))

    def _nearest(self, numbers: Array) -> IntArray:
        known = np.array(sorted(self.index), dtype=np.float64)
        order = np.array([self.index[key] for key in known.tolist()], dtype=np.int64)
        found = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        return np.where(known[found] == numbers, order[found], len(known))

    def _place(self, item: Any, unknown: int) -> int:
        """A record meets the public keys, and no other record."""
        try:
            return self.index.get(_in_forms(item), unknown)
        except Exception:  # without a hash, or with an equality that fails
            return unknown


def listed_keys(keys: Any, column: KeyColumn, by: str) -> list[Any]:
    """Keys as a list; those of a public file are in its column of the same name as the table's."""
    if isinstance(keys, os.PathLike):
        try:
            texts = TextFormat(compression=compression_of(os.fspath(keys))).column(Path(keys).read_bytes(), by)
        except ValueError as error:
            raise ValueError(f"keys must be a CSV file with a column {by!r} of them: {error}") from None
        return keys_of_texts(texts, column)
    if isinstance(keys, (str, bytes, Mapping)) or not isinstance(keys, Iterable):
        raise TypeError(f"keys must be a sequence of keys or the path of a file of them, got {type(keys).__name__}")
    return list(keys)


def keys_of_texts(texts: Iterable[str], column: KeyColumn) -> list[Any]:
    """Keys that are written as texts, read by the rule for cells of the column's kind; spaces around do not count.

    Raises `ValueError` naming keys.
    """
    cells = [text.strip() for text in texts]
    if column.kind is None:
        return cells
    numbers = [CellRule(column.kind).read(cell) for cell in cells]
    if any(map(math.isnan, numbers)):
        raise ValueError(f"keys must be of the column's kind, {column.kind}")
    if column.kind != NUMBER and any(map(FINER.search, cells)):
        raise ValueError("keys must be whole microseconds where they are texts")
    exact = EXACT.get(type(column.kind))
    if exact is None:
        return list(column.kind.from_numbers(numbers))
    try:
        return list(map(exact, cells))
    except (ValueError, OverflowError):
        raise ValueError("keys must be shorter than a billion days where they are texts") from None


def _held(item: Any) -> Any:
    """What a scalar of pyarrow or an array without dimensions holds; anything else as it is."""
    inner = item if isinstance(item, tuple) else content_of(item)
    return item if inner is item else _held(inner)


def _plain(key: Any) -> Any:
    """A key as an object of Python's, if there is one; raises `TypeError` or `ValueError` for what is no key."""
    try:
        key = _held(key)
    except Exception as error:  # of pyarrow, where only pandas has such a time
        raise ValueError(f"keys must be what Python can hold: {error}") from None
    if isinstance(key, TIMES) and identity_of(key) is None:
        raise ValueError(f"keys must not be missing, nor times of no known length, got {key!r}")
    value = key.item() if isinstance(key, np.generic) else _builtin(key)
    if isinstance(key, FINE_TIMES) and isinstance(value, int):  # of nanoseconds, or far from here
        value = key
    if value is None or not isinstance(value, (*PLAIN_KEYS, *FINE_TIMES)):
        raise TypeError(f"keys must be texts, numbers, dates or times, got {type(key).__name__}")
    if value.is_nan() if isinstance(value, Decimal) else value != value:
        raise ValueError("keys must not be missing")
    if isinstance(value, str) and value != value.encode("utf-8", "replace").decode():
        raise ValueError("keys must be texts that have a form in UTF-8")
    key_written(value)  # refuses what could be released, but never shown or kept
    return value


def _builtin(key: Any) -> Any:
    """A text or a number of a class of one's own as that of Python's it is, whose methods say what it is."""
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, int) and not isinstance(key, bool):
        return int.__int__(key)
    return float.__float__(key) if isinstance(key, float) else key


def _in_forms(item: Any) -> Any:
    """A time in the form of its own, which is a tuple, as no key is; anything else as it is, out of what wraps it."""
    item = _held(item)
    return identity_of(item) if isinstance(item, TIMES) else None if isinstance(item, tuple) else item


def _compared(key: Any, column: KeyColumn) -> Any:
    """What records are compared with; raises `TypeError` or `ValueError` for a key that the column's type has not."""
    if column.kind is None:
        if column.texts and not isinstance(key, str):
            raise TypeError(f"keys must be texts, as the column is, got {type(key).__name__}")
        return _in_forms(key)
    if column.kind != NUMBER:
        form = identity_of(key) if isinstance(key, TIMES) else None
        if not isinstance(form, tuple) or form[0] != NAMES[type(column.kind)]:
            raise TypeError(f"keys must be of the column's kind, {column.kind}, got {type(key).__name__}")
        return form
    is_number = isinstance(key, (bool, int, float, Decimal, Fraction))
    if not is_number:
        raise TypeError(f"keys must be of the column's kind, {column.kind}, got {type(key).__name__}")
    try:
        number = float(key)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or (isinstance(key, int) and number != key):
        raise ValueError(f"keys must be among the float64 numbers, got {key!r}")
    return number + 0.0  # one zero
