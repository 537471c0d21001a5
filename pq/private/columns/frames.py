"""Counting the records at each value of a column where the column lives, through narwhals (Section 3.1).

One way for all engines: cast to float64, put aside missing values, group, count; only the counts come back. Tables that
are in memory already are handed to polars as they are. Every step is a rule for one record alone, and no value can make
an engine raise. Private ring.
"""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np

from pq.core.exact import Number
from pq.core.grid import LATTICE_END, from_units, grid_step, to_units
from pq.private.columns.counts import MOST, Counts, IntArray
from pq.private.columns.door import LARGEST, Array, SortedColumn, as_floats, is_table, sorted_values

COLUMNS = VALUE, RECORDS = "value", "records"
MISSING = float("inf")  # marks missing values inside an engine, where true infinities have been clipped


def count(x: Any, value: str | None = None, count: str | None = None, *, grid: Number | None = None) -> Counts:
    """Count the records at each value of a sensitive column, of any size, for `pq.release` (Section 3.1).

    x: a data frame or a lazy query of pandas, polars, pyarrow, DuckDB, Dask, Spark or whatever else narwhals knows, or
        a single column (a list, an array, a series). It is reduced where it lives: only its distinct values must fit in
        memory.
    value: name of the column of numbers; None if x has one column only, or one beside count.
    count: name of a column that says for how many records a row stands; None if each row is one record. A fraction
        counts as its whole part, a count that is negative or no number as zero.
    grid: round the records to the multiples of this public step while counting, as `pq.release` does with the same
        `grid`. It makes few values of many; the release has the same law as on the whole column.

    Returns `Counts`, which stands for the column in `pq.release` and has the same law. Raises `TypeError` or
    `ValueError` naming value, count, grid or x for what has no such column of numbers; no value in it raises or warns.

    >>> import polars as pl, pq
    >>> few = pq.count(pl.LazyFrame({"age": [31, 25, 31, None]}), "age")
    >>> few.values.tolist(), few.counts.tolist(), few.missing
    ([25.0, 31.0], [1, 2], 1)
    """
    step = grid_step(grid)
    if isinstance(x, Counts):
        return x if step is None else _rounded(x, step)
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # an engine's warning may depend on the values
        warnings.simplefilter("ignore")
        return _count(x, value, count, step)


def records_of(x: Any, on_nan: str = "drop") -> tuple[Array, IntArray | None]:
    """Whatever a release takes as sorted values, missing ones where `on_nan` says, and, if a value stands for several
    records, how many come before each; see `pq.private.columns.cells.Points`."""
    if is_table(x):
        x = count(x)
    if isinstance(x, Counts):
        placed = x.placed(on_nan)
        return placed.values, placed.before
    return x.placed(on_nan) if isinstance(x, SortedColumn) else sorted_values(x, on_nan), None


def _count(x: Any, value: str | None, count: str | None, step: Fraction | None) -> Counts:
    import narwhals.stable.v2 as nw

    frame: Any = nw.from_native(x, pass_through=True, allow_series=True)
    if not isinstance(frame, (nw.Series, nw.DataFrame, nw.LazyFrame)) and hasattr(x, "to_frame"):  # a lazy column
        frame = nw.from_native(x.to_frame(VALUE), pass_through=True)
    if isinstance(frame, (nw.DataFrame, nw.LazyFrame)):
        schema = dict(frame.collect_schema())
        names = _names(list(schema), value, count)
        if isinstance(frame, nw.DataFrame):
            return _in_memory([frame.get_column(name) for name in names], step)
        for argument, name in zip(("value", "count"), names, strict=False):
            if not _is_numeric(schema[name]):
                raise TypeError(f"{argument} must name a column of numbers, {name!r} is of type {schema[name]}")
        return _grouped(frame.select(*(nw.col(n).alias(a) for n, a in zip(names, COLUMNS, strict=False))), step)
    if value is not None or count is not None:
        raise TypeError(f"x must be a table for value or count to name a column, got {type(x).__name__}")
    return _in_memory([frame], step) if isinstance(frame, nw.Series) else _counts_of([as_floats(x)], step)


def _in_memory(columns: list[Any], step: Fraction | None) -> Counts:
    """Count narwhals columns, of values and perhaps of counts, that are in memory."""
    import narwhals.stable.v2 as nw

    if not all(_is_numeric(column.dtype) for column in columns):
        return _counts_of([_column(column) for column in columns], step)
    named = [column.alias(name).to_frame() for column, name in zip(columns, COLUMNS, strict=False)]
    return _grouped(nw.concat([frame.lazy("polars").collect() for frame in named], how="horizontal").lazy(), step)


def _column(column: Any) -> Array:
    """A column of a type that may hold numbers, read record by record."""
    native = column.to_native()
    if not column.implementation.is_pyarrow():
        return as_floats(native)
    if not (_is_numeric(column.dtype) or str(column.dtype) in ("String", "Unknown")):
        raise TypeError("x must be a column of real numbers")
    return as_floats(native.to_pylist())


def _is_numeric(dtype: Any) -> bool:
    return bool(dtype.is_numeric() or dtype.is_boolean())


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
            raise ValueError(f"{argument} must name one of the columns {', '.join(map(str, columns))}, got {name!r}")
    return list(wanted.values())


def _grouped(frame: Any, step: Fraction | None) -> Counts:
    """Group and count inside the engine."""
    import narwhals.stable.v2 as nw

    number = nw.col(VALUE).cast(nw.Float64)
    known = number.clip(-LARGEST, LARGEST) if step is None else _units(number, step)
    columns = [nw.when(number.is_null() | number.is_nan()).then(nw.lit(MISSING)).otherwise(known).alias(VALUE)]
    records = nw.len()
    if RECORDS in frame.collect_schema().names():
        weight = nw.col(RECORDS).cast(nw.Float64)
        whole = weight.clip(0.0, MOST).floor()
        columns.append(nw.when(weight.is_null() | weight.is_nan()).then(nw.lit(0.0)).otherwise(whole).alias(RECORDS))
        records = nw.col(RECORDS).sum()
    grouped = frame.select(*columns).group_by(VALUE).agg(records.alias(RECORDS))
    table = grouped.collect(**({"engine": "streaming"} if grouped.implementation.is_polars() else {}))
    values, counts = (as_floats(table[name].to_numpy()) for name in (VALUE, RECORDS))
    missing = values == MISSING
    values = values if step is None else from_units(values, step)
    return Counts(np.where(missing, np.nan, values), counts)


def _units(number: Any, step: Fraction) -> Any:
    """Records in whole units of a step, as `pq.private.columns.cells.Lattice` rounds them: to the nearest, halves
    to the even one."""
    import narwhals.stable.v2 as nw

    end = 2.0 * float(from_units(LATTICE_END, step))  # keeps the product finite, which not every engine does
    exact = number.clip(-end, end) * float(step.denominator)
    if step.numerator != 1:  # by a column: some engines divide by a constant through its rounded inverse
        divisor = nw.lit(float(step.numerator))
        exact = exact / nw.when(number > 0.0).then(divisor).otherwise(divisor)
    below = exact.floor()
    part, odd = exact - below, below - 2.0 * (below / 2.0).floor()
    up = (part > 0.5) | ((part >= 0.5) & (odd > 0.5))
    return nw.when(up).then(below + 1.0).otherwise(below).clip(-LATTICE_END, LATTICE_END)


def _counts_of(columns: list[Array], step: Fraction | None) -> Counts:
    """Counts of values, and perhaps of counts, in memory."""
    values, counts = columns if len(columns) > 1 else (columns[0], np.ones(len(columns[0])))
    made = Counts(values, counts)
    return made if step is None else _rounded(made, step)


def _rounded(counts: Counts, step: Fraction) -> Counts:
    with np.errstate(all="ignore"):
        units = np.clip(np.rint(to_units(counts.values, step)), -LATTICE_END, LATTICE_END)
    return Counts(from_units(units, step), counts.counts, counts.missing)
