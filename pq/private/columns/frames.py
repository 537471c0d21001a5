"""Counting the records at each value of a column where the column lives, through narwhals (Section 3.1).

One way for all engines that can reduce a query: numbers are cast to float64 and missing ones put aside; decimals, dates
and times stay what they are; equal ones are counted, and only the counts come back. Columns in memory are read as
everywhere. Every step is a rule for one record alone, and no value can make an engine raise. Private ring.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from pq.core.choices import nearest
from pq.core.exact import Number, whole_number
from pq.core.grid import grid_step
from pq.core.kind import NUMBER, Kind
from pq.private.columns.counts import Counts, IntArray
from pq.private.columns.declared import Declared, declaration_of
from pq.private.columns.door import Array, SortedColumn, kind_and_floats, quiet, sorted_values
from pq.private.columns.grouping import GroupedColumn, open_table
from pq.private.columns.reduce import reduced, rounded
from pq.private.columns.tables import OpenTable, opened
from pq.private.columns.text import TextColumn

NO_TABLES = frozenset((np.ndarray, list, tuple, SortedColumn, Counts, TextColumn))  # known without a look at them


def count(
    x: Any,
    value: str | None = None,
    count: str | None = None,
    *,
    grid: Number | None = None,
    person: str | None = None,
    max_contributions: int = 1,
) -> Counts:
    """Count the records at each value of a sensitive column, of any size, for `pq.release` (Section 3.1).

    x: a data frame or a lazy query of pandas, polars, pyarrow, DuckDB, Dask, Spark or whatever else narwhals knows, a
        reader of record batches, a cursor with a result, or a single column (a list, an array, a series). A query is
        reduced where it lives: only its distinct values must fit in memory.
    value: name of the column of numbers, dates, timestamps, times or durations; None if x has one column only, or one
        beside count.
    count: name of a column that says for how many records a row stands; None if each row is one record. A fraction
        counts as its whole part, a count that is negative or no number as zero.
    grid: round the records to the multiples of this public step while counting, as `pq.release` does with the same
        `grid`. It makes few values of many; the release has the same law as on the whole column. Dates and times are
        rounded after their distinct values have been counted.
    person: name of a column that says whose record a row is; a row without an ID is dropped, and of a person at most
        max_contributions records are kept, by a rule that looks at that person's records only. Not beside count, and
        the distinct pairs of person and value must fit in memory. max_contributions: at least 1; the counts carry it,
        and `pq.release` refuses them where it is promised less.

    Returns `Counts`, which stands for the column in `pq.release` and has the same law. Raises `TypeError` or
    `ValueError` naming value, count, grid, person, max_contributions or x for what has no such column of numbers; no
    value in it raises or warns.

    >>> import polars as pl, pq
    >>> few = pq.count(pl.LazyFrame({"age": [31, 25, 31, None]}), "age")
    >>> few.values.tolist(), few.counts.tolist(), few.missing
    ([25.0, 31.0], [1, 2], 1)
    """
    step = grid_step(grid)
    most = whole_number(max_contributions, "max_contributions", least=1)
    if person is not None:
        return _count_persons(x, value, count, person, step, most)
    if most != 1:
        raise ValueError("max_contributions needs person, the column of whose records they are")
    if isinstance(x, Counts):
        return x if step is None else rounded(x, step)
    with quiet():
        return _count(x, value, count, step)


def _count_persons(
    x: Any, value: str | None, count: str | None, person: str, step: Fraction | None, most: int
) -> Counts:
    if count is not None:
        raise ValueError("count cannot be counted beside person: each row must be one record")
    with quiet():
        others = [str(name) for name in open_table(x, "x").types if name != person] if value is None else [value]
    value = _names(others, value, None)[0]
    column = GroupedColumn.of(x, value=value, by=None, keys=None, person=person, step=step, others=False)
    return column.read(most, 1)[0]


def promised_bound(x: Any) -> int:
    """How many records of a person a column may hold as far as it says, at least one; a public fact."""
    return x.max_contributions or 1 if isinstance(x, Counts) else 1


def records_of(x: Any, on_nan: str = "drop") -> tuple[Array, IntArray | None]:
    """Whatever a release takes as sorted values, missing ones where `on_nan` says, and, if a value stands for several
    records, how many come before each; see `pq.private.columns.cells.Points`."""
    if isinstance(x, SortedColumn):
        return x.placed(on_nan), None
    if type(x) not in NO_TABLES:
        with quiet():
            table = opened(x)
            x = x if table is None else _count_table(table, None, None, None)
    if isinstance(x, Counts):
        placed = x.placed(on_nan)
        return placed.values, placed.before
    return sorted_values(x, on_nan), None


def weighted_records(x: Any, on_nan: str = "drop") -> tuple[Array, IntArray]:
    """The same records as (d,) values in increasing order and (d,) how many records each stands for, at least one;
    memory goes with the values, not with the records.

    >>> weighted_records(Counts([2.0, 1.0], [3, 10**12]))[1].tolist()
    [1000000000000, 3]
    """
    values, before = records_of(x, on_nan)
    return values, np.ones(len(values), dtype=np.int64) if before is None else np.diff(before)


def kind_of(x: Any) -> Kind:
    """What the records of whatever a release takes are declared to be; no record is looked at.

    Raises `TypeError` or `ValueError` naming x (value for a table of several columns) if it declares no such records.

    >>> kind_of(np.array(["2026-03-01"], dtype="M8[D]")), kind_of([1.0, 2.0])
    (Date(), RealNumber())
    """
    if isinstance(x, (SortedColumn, Counts, TextColumn)):
        return x.kind
    with quiet():
        table = None if type(x) in NO_TABLES else opened(x)
        if table is None:
            return declaration_of(x).kind
        return _declared(table, "value", _names(list(table.types), None, None)[0]).kind


def _count(x: Any, value: str | None, count: str | None, step: Fraction | None) -> Counts:
    table = None if type(x) in NO_TABLES else opened(x)
    if table is not None:
        return _count_table(table, value, count, step)
    if value is not None or count is not None:
        raise TypeError(f"x must be a table for value or count to name a column, got {type(x).__name__}")
    return _in_memory([x], step)


def _count_table(table: OpenTable, value: str | None, count: str | None, step: Fraction | None) -> Counts:
    names = _names(list(table.types), value, count)
    types = [_declared(table, argument, name) for argument, name in zip(("value", "count"), names, strict=False)]
    if len(types) == 2 and types[1].kind != NUMBER:
        raise TypeError(f"count must name a column of numbers, {names[1]!r} is one of kind {types[1].kind}")
    if table.lazy is not None and types[0].grouping != "none" and types[-1].grouping in ("number", types[0].grouping):
        return reduced(table.lazy, names, types[0], step)
    return _in_memory([*map(table.fetch(names), names)], step, types[0].kind)


def _declared(table: OpenTable, argument: str, name: str) -> Declared:
    try:
        return table.types[name]()
    except TypeError as error:
        what = str(error).rpartition("got ")[2]
        message = f"{argument} must name a column of numbers, dates or times, {name!r} is of type {what}"
        raise TypeError(message) from None


def _in_memory(columns: list[Any], step: Fraction | None, kind: Kind | None = None) -> Counts:
    """Count columns, of values and perhaps of counts, that are in memory."""
    declared_kind, values = kind_and_floats(columns[0])
    counts = Counts(values, columns[1] if len(columns) > 1 else None, kind=kind or declared_kind)
    return counts if step is None else rounded(counts, step)


def _names(columns: list[str], value: str | None, count: str | None) -> list[str]:
    """The columns to read: of values and, if there is one, of counts."""
    if value is None:
        others = [name for name in columns if name != count]
        if len(others) != 1:
            raise ValueError(f"value must name one of the columns {', '.join(map(str, others))}")
        value = others[0]
    wanted = {"value": value} if count is None else {"value": value, "count": count}
    for argument, name in wanted.items():
        if name not in columns:
            known = [str(column) for column in columns]
            near = nearest(name, known, end="")
            raise ValueError(f"{argument} must name one of the columns {', '.join(known)}, got {name!r}{near}")
    return list(wanted.values())
