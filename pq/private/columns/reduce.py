"""Counting equal records inside an engine, through narwhals (Section 3.1)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from pq.core.grid import LATTICE_END, from_units, rounded_units
from pq.core.kind import Kind
from pq.private.columns.counts import MOST, Counts, Numbers
from pq.private.columns.declared import Declared, running
from pq.private.columns.door import LARGEST, Array, as_floats

COLUMNS = VALUE, RECORDS = "value", "records"
WHOLE = 1.5 * 2.0**52  # plus a number up to 2^51 it has no digit below one: the sum is rounded as it should be
MISSING = float("inf")  # marks missing values inside an engine, where true infinities have been clipped


def reduced(frame: Any, names: list[str], declared: Declared, step: Fraction | None) -> Counts:
    """The records at each value of a query's column, and perhaps one of counts, rounded to a step if there is one.

    declared: the type of the first column, which says what equal records are grouped by.
    """
    is_number = declared.grouping == "number"

    def read() -> list[Array]:
        found = _grouped(frame, names, lambda value: numbers_in(value, step) if is_number else value)
        return [as_floats(column) for column in found]

    values, counts = running(read)()  # some engines run queries while they are put together
    if is_number:
        return Counts.of(declared.kind, numbers_out(values, step), counts)
    return rounded(declared.kind, values, counts, step)


def fetched(
    fetch: Callable[[list[str]], Callable[[str], Any]], names: list[str], types: list[Declared], step: Fraction | None
) -> Counts:
    """The same of a table that no engine can reduce."""

    def read() -> list[Array]:
        held = fetch(names)
        return [declared.records(held(name)) for declared, name in zip(types, names, strict=True)]

    values, *counts = running(read)()
    return rounded(types[0].kind, values, counts[0] if counts else None, step)


def rounded(
    kind: Kind,
    values: Array,
    counts: Numbers | None,
    step: Fraction | None,
    missing: int = 0,
    max_contributions: int | None = None,
) -> Counts:
    """Records at the nearest multiples of a step, if there is one."""
    return Counts.of(kind, values if step is None else on_step(values, step), counts, missing, max_contributions)


def on_step(values: Array, step: Fraction) -> Array:
    """Values at the nearest multiples of a step."""
    return np.asarray(from_units(rounded_units(values, step), step))


def numbers_in(column: Any, step: Fraction | None) -> Any:
    """A column of numbers inside an engine, by what equal records have in common: see `numbers_out`."""
    import narwhals.stable.v2 as nw

    number = column.cast(nw.Float64)
    known = number.clip(-LARGEST, LARGEST) if step is None else _units(number, step)
    return nw.when(number.is_null() | number.is_nan()).then(nw.lit(MISSING)).otherwise(known)


def numbers_out(values: Any, step: Fraction | None) -> Array:
    """The numbers that came out of an engine, NaN for missing ones."""
    numbers = as_floats(values)
    known = numbers if step is None else from_units(numbers, step)
    return np.asarray(np.where(numbers == MISSING, np.nan, known))


def _grouped(frame: Any, names: list[str], what: Callable[[Any], Any]) -> tuple[Any, Any]:
    """The distinct values of an expression in the first column, as the engine gives them back, and how many records
    stand at each: where there is a second column, it counts them."""
    import narwhals.stable.v2 as nw

    frame = frame.select(*(nw.col(n).alias(a) for n, a in zip(names, COLUMNS, strict=False)))
    columns, records = [what(nw.col(VALUE)).alias(VALUE)], nw.len()
    if len(names) > 1:
        weight = nw.col(RECORDS).cast(nw.Float64)
        whole = weight.clip(0.0, MOST).floor()
        columns.append(nw.when(weight.is_null() | weight.is_nan()).then(nw.lit(0.0)).otherwise(whole).alias(RECORDS))
        records = nw.col(RECORDS).sum()
    grouped = frame.select(*columns).group_by(VALUE).agg(records.alias(RECORDS))
    options = {"engine": "streaming"} if grouped.implementation.is_polars() else {}
    table = grouped.collect(**options)
    return tuple(table.get_column(name).to_native() for name in COLUMNS)


def _units(number: Any, step: Fraction) -> Any:
    """Records in whole units of a step, as `pq.core.grid.rounded_units` has them."""
    import narwhals.stable.v2 as nw

    end = 2.0 * float(from_units(LATTICE_END, step))  # keeps the product finite, which not every engine does
    exact = number.clip(-end, end)
    if step.denominator != 1:
        exact = exact * float(step.denominator)
    if step.numerator != 1:  # by a column: some engines divide by a constant through its rounded inverse
        divisor = nw.lit(float(step.numerator))
        exact = exact / nw.when(number > 0.0).then(divisor).otherwise(divisor)
    return exact.clip(-LATTICE_END, LATTICE_END) + WHOLE - WHOLE
