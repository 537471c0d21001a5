"""A column of texts as Python's own, whatever bytes its library keeps for them (Section 3.1).

Arrow's columns hold bytes that are UTF-8 by promise only. Whoever lists such a column fails at one text that is not,
and an engine may panic. Bytes are taken as they are here, and each that is no UTF-8 becomes a surrogate of its own:
texts that differ stay different, and none of these equals a public key.
"""

from __future__ import annotations

from typing import Any

from pq.private.columns.library import library_of


def in_strings(column: Any) -> Any:
    """A column's records as a list of Python's texts, None where missing, if its library declares Arrow's texts; else
    the column as it is. Never raises for what a text holds.

    >>> import pyarrow as pa
    >>> in_strings(pa.array(["one", None]))
    ['one', None]
    """
    rule = RULES.get(library_of(column))
    return column if rule is None else rule(column)


def _of_pyarrow(column: Any) -> Any:
    import pyarrow as pa

    types: Any = pa.types
    dtype = getattr(column, "type", None)
    if dtype is not None and types.is_dictionary(dtype):
        return _of_pyarrow(column.cast(dtype.value_type)) if _is_text(types, dtype.value_type) else column
    if dtype is None or not _is_text(types, dtype):
        return column
    return _decoded(column.cast(pa.binary_view() if types.is_string_view(dtype) else pa.large_binary()).to_pylist())


def _is_text(types: Any, dtype: Any) -> bool:
    return bool(types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype))


def _of_pandas(column: Any) -> Any:
    import pandas as pd

    dtype = getattr(column, "dtype", None)
    is_arrow = isinstance(dtype, pd.ArrowDtype) or getattr(dtype, "storage", "") == "pyarrow"
    return _of_pyarrow(getattr(column, "array", column).__arrow_array__()) if is_arrow else column


def _of_polars(column: Any) -> Any:
    import polars as pl

    if not isinstance(getattr(column, "dtype", None), (pl.String, pl.Categorical, pl.Enum)):
        return column
    return _decoded(column.cast(pl.String).cast(pl.Binary).to_list())


def _decoded(held: list[bytes | None]) -> list[str | None]:
    return [None if text is None else string_of(text) for text in held]


def string_of(text: bytes) -> str:
    """Bytes of a text as Python's own, each that is no UTF-8 as a surrogate of its own."""
    return text.decode("utf-8", "surrogateescape")


RULES = {"pandas": _of_pandas, "polars": _of_polars, "pyarrow": _of_pyarrow}
