"""A column of dates or times as the whole ticks that its library counts them in (Section 3.1).

Engines hold dates that the calendars of Python and pandas lack, such as DuckDB's `infinity`, so that whoever lists a
column one by one fails at one record that is such a date. Ticks are integers whatever the record.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pq.private.columns.library import library_of


def in_ticks(column: Any) -> Any:
    """A column's records as integers, null where they are, if its library declares dates, times or durations; else the
    column as it is. Never raises for what a record holds.

    >>> in_ticks(np.array(["1970-01-03", "NaT"], dtype="M8[D]")).tolist()
    [2, None]
    """
    rule = RULES.get(library_of(column))
    return column if rule is None else rule(column)


def _of_numpy(column: Any) -> Any:
    if getattr(getattr(column, "dtype", None), "kind", "") not in tuple("mM"):
        return column
    ticks = np.ma.getdata(column).view(np.int64).astype(object)
    ticks[np.isnat(np.ma.getdata(column)) | np.ma.getmaskarray(column)] = None
    return ticks


def _of_pandas(column: Any) -> Any:
    import pandas as pd

    dtype = getattr(column, "dtype", None)
    if isinstance(dtype, pd.ArrowDtype):
        return _of_pyarrow(getattr(column, "array", column).__arrow_array__())
    if isinstance(dtype, pd.CategoricalDtype):
        held = getattr(column, "array", column)
        listed = [*_of_pandas(held.categories), None]
        return [listed[code] for code in held.codes.tolist()]  # -1 is a missing record
    if isinstance(dtype, pd.DatetimeTZDtype):
        return _of_numpy(column.to_numpy(dtype=f"M8[{dtype.unit}]"))
    return _of_numpy(column.to_numpy()) if getattr(dtype, "kind", "") in tuple("mM") else column


def _of_polars(column: Any) -> Any:
    dtype = getattr(column, "dtype", None)
    return column.to_physical() if dtype is not None and dtype.is_temporal() else column


def _of_pyarrow(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    types, dtype = pa.types, getattr(column, "type", None)
    if dtype is None or types.is_interval(dtype):
        return column
    if types.is_dictionary(dtype) and types.is_temporal(dtype.value_type):
        return _of_pyarrow(column.cast(dtype.value_type))
    if types.is_run_end_encoded(dtype) and types.is_temporal(dtype.value_type):
        return _of_pyarrow(pc.run_end_decode(column.combine_chunks() if hasattr(column, "chunks") else column))
    if not types.is_temporal(dtype):
        return column
    return column.cast(pa.int32() if dtype.bit_width == 32 else pa.int64())


RULES = {"numpy": _of_numpy, "pandas": _of_pandas, "polars": _of_polars, "pyarrow": _of_pyarrow}
