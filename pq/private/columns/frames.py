"""Counting the records at each value of a column where the column lives, through narwhals (Section 3.1).

One way for all engines that can reduce a query: numbers are cast to float64 and missing ones put aside; decimals, dates
and times stay what they are; equal ones are counted, and only the counts come back. Columns in memory are read as
everywhere. Every step is a rule for one record alone, and no value can make an engine raise. Private ring.
"""

from __future__ import annotations

from contextlib import nullcontext
from fractions import Fraction
from typing import Any

import numpy as np

from pq.core.exact import Number, whole_number
from pq.core.grid import grid_step
from pq.core.kind import NUMBER
from pq.core.quiet import quiet
from pq.private.columns.counts import Counts
from pq.private.columns.door import Array, IntArray, Readable, SortedColumn, UnreadColumn
from pq.private.columns.dtypes import declaration_of
from pq.private.columns.grouping import GroupedColumn, open_table
from pq.private.columns.library import is_ready, library_of
from pq.private.columns.reduce import rounded
from pq.private.columns.tables import counting, wanted_columns
from pq.private.columns.text import TextColumn

NO_TABLES = frozenset((np.ndarray, list, tuple, TextColumn))  # known without a look at them


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
        reader of record batches, a cursor with a result (of SQLite without converters), or a single column (a list, an
        array, a series). A query is reduced where it lives: only its distinct values must fit in memory.
    value: name of the column of numbers, dates, timestamps, times or durations; None if x has one column only, or one
        beside count.
    count: name of a column that says for how many records a row stands; None if each row is one record. A fraction
        counts as its whole part, a count that is negative or no number as zero.
    grid: round the records to the multiples of this public step while counting, as `pq.release` does with the same
        `grid`. It makes few values of many; the release has the same law as on the whole column. Dates and times are
        rounded after their distinct values have been counted.
    person: name of a column of texts, bytes, numbers, dates or times that says whose record a row is; a row without an
        ID is dropped, and of a person at most max_contributions records are kept, by a rule that looks at that person's
        records only. Not beside count, and the distinct pairs of person and value must fit in memory. IDs in lists and
        columns of objects are read as in `pq.release_groups`, and texts in a query are IDs in the engines named there.
        max_contributions: at least 1; the counts carry it, and `pq.release` refuses them where it is promised less.

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
        if step is None:
            return x
        return rounded(x.kind, x.values, x.counts, step, x.missing, x.max_contributions)
    with quiet():
        library = library_of(x)
        found = None if type(x) in NO_TABLES else counting(x, library, value, count, step)
        if found is not None:
            return found[1]()
        if value is not None or count is not None:
            raise TypeError(f"x must be a table for value or count to name a column, got {type(x).__name__}")
        kind, read, _ = declaration_of(x, library).of(x)
        return rounded(kind, read(), None, step)


def _count_persons(
    x: Any, value: str | None, count: str | None, person: str, step: Fraction | None, most: int
) -> Counts:
    if count is not None:
        raise ValueError("count cannot be counted beside person: each row must be one record")
    table = open_table(x, "x")
    if value is None:
        value = wanted_columns([name for name in table.types if name != person], None, None)[0]
    column = GroupedColumn.of(table, value=value, by=None, keys=None, person=person, step=step, others=False)
    return column.read(most, 1)[0]


def column_of(x: Any) -> Readable:
    """Whatever a release takes, as a column that knows what its records are declared to be; none is looked at yet.

    Raises `TypeError` or `ValueError` naming x (value for a table of several columns) if it declares no such records.

    >>> column_of(np.array(["2026-03-01"], dtype="M8[D]")).kind, column_of([1.0, 2.0]).kind
    (Date(), RealNumber())
    """
    if isinstance(x, (SortedColumn, Counts, UnreadColumn)):
        return x
    kind, read, pieces, plain = _declared(x)
    return UnreadColumn(kind, read, pieces, plain)


def _declared(x: Any) -> tuple[Any, Any, Any, bool]:
    """What an `UnreadColumn` is made of."""
    if is_ready(x):  # says as much as what follows, ten times as fast
        return NUMBER, lambda: x, None, True
    plain = type(x) is np.ndarray and x.dtype.kind in "fiubmM"  # has no code of its own, and nothing to warn of
    with nullcontext() if plain else quiet():
        library = library_of(x)
        counted = None if type(x) in NO_TABLES else counting(x, library, None, None, None)
        return (*counted, None, plain) if counted else (*declaration_of(x, library).of(x), plain)


def records_of(x: Any, on_nan: str = "drop") -> tuple[Array, IntArray | None]:
    """The records of whatever a release takes; see `pq.private.columns.door.Readable`."""
    return column_of(x).records(on_nan)


def weighted_records(x: Any, on_nan: str = "drop") -> tuple[Array, IntArray]:
    """The same records as (d,) values in increasing order and (d,) how many records each stands for, at least one;
    memory goes with the values, not with the records.

    >>> weighted_records(Counts([2.0, 1.0], [3, 10**12]))[1].tolist()
    [1000000000000, 3]
    """
    values, before = records_of(x, on_nan)
    return values, np.ones(len(values), dtype=np.int64) if before is None else np.diff(before)
