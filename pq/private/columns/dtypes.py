"""The types that columns in memory are declared to have, library by library (Section 3.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pq.core.kind import NUMBER, WHOLE_NUMBER, Date, Duration, Kind, Time, Timestamp, kind_of_ticks
from pq.private.columns.declared import Array, Declared, plain_column, refused, running
from pq.private.columns.library import is_table, library_of
from pq.private.columns.record import each
from pq.private.columns.text import TextColumn

REAL_KINDS = "fiub"  # numpy's codes of float, signed, unsigned and boolean types

WHOLE_KINDS = "iu"

WITHOUT_COLUMN = (str, bytes, bytearray, dict, set, frozenset)


def declaration_of(x: Any, library: str) -> Declared:
    """The declared type of one column in memory, which some library made.

    Raises `TypeError` or `ValueError` naming x if it holds no records.
    """
    if x is None or isinstance(x, WITHOUT_COLUMN):
        raise refused(type(x).__name__)
    if is_table(x) or len(getattr(x, "shape", (0,))) != 1:
        raise ValueError("x must be one-dimensional")
    if isinstance(x, TextColumn):
        return Declared(x.kind, lambda x: x.values, "none")
    if library in LIBRARIES:
        return LIBRARIES[library](x)
    if isinstance(x, range):
        return Declared(NUMBER, lambda x: np.asarray(x, dtype=np.float64), "none")
    if hasattr(x, "__array__"):
        return _of_array_like(x)
    held = array_of_buffer(x)
    if isinstance(held, np.ndarray):
        return _held_by(held)
    if isinstance(held, memoryview):
        raise refused("memoryview")  # the name of a type of ctypes would tell how many records there are
    if not isinstance(x, Iterable) and not hasattr(x, "__getitem__"):
        raise refused(type(x).__name__)
    return Declared(NUMBER, listed, "none")


def array_of_buffer(x: Any) -> Any:
    """A column that is a buffer, as `memoryview` and `array.array` are, as numpy's array of the same memory, which has
    the type that the buffer's format declares: Python can list some formats only. A buffer of a format that numpy has
    no type for is its `memoryview`, and any other column is x as it is. Never raises.
    """
    if isinstance(x, (list, tuple, *WITHOUT_COLUMN)) or library_of(x) in LIBRARIES or hasattr(x, "__array__"):
        return x
    try:
        view = memoryview(x)
    except Exception:  # no buffer
        return x
    try:
        return np.asarray(view)
    except ValueError:
        return view


def _held_by(held: npt.NDArray[Any]) -> Declared:
    if held.ndim != 1:
        raise ValueError("x must be one-dimensional")
    return of_dtype(held.dtype).within(lambda _: held)


def listed(x: Any) -> Array:
    """Records of a list or of whatever else gives one after another."""
    items = x if type(x) is list else list(x)
    kinds = {id(kind): kind for kind in map(type, items)}.values()  # some classes have no hash
    if all(map(_is_plain, kinds)):  # numpy reads these alike whatever stands beside them
        try:
            values = np.asarray(items)
        except Exception:  # an integer too long for any of numpy's types
            return each(items)
        if values.dtype.kind in REAL_KINDS:
            return values.astype(np.float64, copy=False)
    return each(items)


def as_fetched(x: Any) -> Array:
    """Records that an engine has handed over in a column of its own choice, by what that declares."""
    return declaration_of(x, library_of(x)).records(x)


def of_dtype(dtype: np.dtype[Any]) -> Declared:
    """The declared type of an array of numpy."""
    if dtype.kind in REAL_KINDS:
        kind = _number(dtype.kind in WHOLE_KINDS)
        return Declared(kind, _floats, "number", None if dtype.kind == "b" else _pieces)
    if dtype.kind == "O":
        return Declared(NUMBER, lambda x: each(x.tolist()), "none")  # masked records become None
    ticks = kind_of_ticks(dtype)
    if ticks is not None:
        return Declared.of_times(ticks, _filled)
    raise refused(dtype.type.__name__)  # the name of a type of texts would tell how long the longest is


def _number(whole: bool) -> Kind:
    return WHOLE_NUMBER if whole else NUMBER


def _of_numpy(x: Any) -> Declared:
    if not isinstance(x, np.ndarray):
        raise refused(type(x).__name__)
    return of_dtype(x.dtype)


def _of_array_like(x: Any) -> Declared:
    """A container of another library, by the array of numpy that it makes of itself."""
    dtype = getattr(x, "dtype", None)
    if isinstance(dtype, np.dtype):
        return _converted(dtype)
    return _held_by(running(np.asarray)(x))  # nothing else tells its type


def of_pandas_type(dtype: Any) -> Declared:
    """The declared type of a column of pandas."""
    import pandas as pd

    if isinstance(dtype, np.dtype):
        inner = of_dtype(dtype)
        pieces = inner.pieces
        again = None if pieces is None else lambda x: pieces(x.to_numpy())
        return replace(inner.within(lambda x: x.to_numpy(), inner.grouping), pieces=again)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return Declared.of_times(Timestamp(str(dtype.tz)), lambda x: x.to_numpy(dtype=f"M8[{dtype.unit}]"))
    if isinstance(dtype, pd.ArrowDtype):
        arrow = of_arrow_type(dtype.pyarrow_dtype)
        return arrow.within(lambda x: getattr(x, "array", x).__arrow_array__(), arrow.grouping)
    if isinstance(dtype, pd.CategoricalDtype):
        categories = of_pandas_type(dtype.categories.dtype)
        ticks = None if categories.ticks is None else _by_codes(categories.ticks)
        return Declared(categories.kind, _by_codes(categories.read), "none", ticks=ticks)
    if isinstance(dtype, pd.SparseDtype):
        return _converted(np.dtype(dtype.subtype))
    if getattr(dtype, "kind", "O") in REAL_KINDS:  # numbers and booleans with a mask
        kind = _number(dtype.kind in WHOLE_KINDS)
        return Declared(kind, lambda x: x.to_numpy(dtype=np.float64, na_value=np.nan), "number")
    raise refused(type(dtype).__name__)


def of_polars_type(dtype: Any) -> Declared:
    """The declared type of a column of polars."""
    import polars as pl

    base = dtype.base_type()
    plain = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Float32, pl.Float64)
    if base == pl.Null:  # a column of which nothing is known, not even its type
        return Declared(NUMBER, lambda x: np.full(len(x), np.nan), "none")
    if base == pl.Decimal:
        return Declared(NUMBER, lambda x: each(x.to_list()))
    if dtype.is_numeric() or base == pl.Boolean:
        pieces = (lambda x: [chunk.to_numpy() for chunk in x.get_chunks()]) if base in plain else None
        return Declared(_number(dtype.is_integer()), lambda x: x.cast(pl.Float64).to_numpy(), "number", pieces)
    if base == pl.Object:
        return Declared(NUMBER, lambda x: each(x.to_list()), "none")
    if base == pl.Time:
        return Declared.of_times(Time(), lambda x: _of_day(x.to_physical().fill_null(-1).to_numpy(), "ns"))
    kinds: dict[Any, Kind] = {pl.Date: Date(), pl.Duration: Duration()}
    if base == pl.Datetime:
        kinds[base] = Timestamp(dtype.time_zone)
    if base not in kinds:
        raise refused(str(base))
    return Declared.of_times(kinds[base], lambda x: x.to_numpy())


def of_arrow_type(dtype: Any) -> Declared:
    """The declared type of a column of pyarrow."""
    import pyarrow as pa
    import pyarrow.compute as pc

    types = pa.types
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_boolean(dtype) or types.is_null(dtype):
        kind = _number(types.is_integer(dtype))
        plain = types.is_integer(dtype) or types.is_float32(dtype) or types.is_float64(dtype)
        pieces = (lambda x: [*map(_arrow_numbers, getattr(x, "chunks", [x]))]) if plain else None
        return Declared(kind, lambda x: _arrow_numbers(x.cast(pa.float64(), safe=False)), "number", pieces)
    if types.is_decimal(dtype):
        return Declared(NUMBER, lambda x: each(x.to_pylist()))
    if types.is_dictionary(dtype):
        return of_arrow_type(dtype.value_type).within(lambda x: x.cast(dtype.value_type))
    if types.is_run_end_encoded(dtype):
        return of_arrow_type(dtype.value_type).within(lambda x: pc.run_end_decode(_whole(x)))
    if types.is_time(dtype):
        ticks = pa.int32() if types.is_time32(dtype) else pa.int64()
        return Declared.of_times(Time(), lambda x: _of_day(_arrow_numbers(x.cast(ticks).fill_null(-1)), dtype.unit))
    if types.is_date(dtype) or types.is_timestamp(dtype) or types.is_duration(dtype):
        kind = Duration() if types.is_duration(dtype) else Date()
        if types.is_timestamp(dtype):
            kind = Timestamp(dtype.tz)
        return Declared.of_times(kind, _arrow_numbers)
    raise refused(str(dtype).partition("<")[0])


def _arrow_numbers(x: Any) -> npt.NDArray[Any]:
    """An array of pyarrow, in one piece or several, as one of numpy."""
    return np.asarray(x.to_numpy(zero_copy_only=False) if not hasattr(x, "chunks") else x.to_numpy())


def _whole(x: Any) -> Any:
    return x.combine_chunks() if hasattr(x, "chunks") else x


def _of_pyarrow(x: Any) -> Declared:
    import pyarrow as pa

    if not isinstance(x, (pa.Array, pa.ChunkedArray)):
        raise refused(type(x).__name__)
    return of_arrow_type(x.type)


def _of_dtype_of(of: Callable[[Any], Declared]) -> Callable[[Any], Declared]:
    """The rule for a column of a library whose columns all have a `dtype`."""

    def rule(x: Any) -> Declared:
        if not hasattr(x, "dtype"):
            raise refused(type(x).__name__)
        return of(x.dtype)

    return rule


LIBRARIES: dict[str, Callable[[Any], Declared]] = {
    "numpy": _of_numpy,
    "pandas": _of_dtype_of(of_pandas_type),
    "polars": _of_dtype_of(of_polars_type),
    "pyarrow": _of_pyarrow,
}


def _is_plain(kind: type) -> bool:
    """Whether numpy reads objects of a type as the same numbers whatever stands beside them. A type that somebody has
    derived from these may have a value of its own, which numpy does not always ask for."""
    if type(kind) is not type:  # a class of a class with code of its own, which may fail
        return False
    own = kind.__module__ in ("builtins", "numpy")
    real = issubclass(kind, (float, int, np.floating, np.integer, np.bool_))
    return own and real and not issubclass(kind, np.timedelta64)


def _floats(x: npt.NDArray[Any]) -> Array:
    values = x.astype(np.float64, copy=False)
    return np.ma.filled(values, np.nan) if isinstance(x, np.ma.MaskedArray) else values


def _pieces(x: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    return [_floats(x) if isinstance(x, np.ma.MaskedArray) else x]


def _converted(dtype: np.dtype[Any]) -> Declared:
    """The type of a column that numpy makes an array of its own of, not always of the same type."""

    def read(x: Any) -> Array:
        values = np.asarray(x)
        return of_dtype(values.dtype).read(values)

    return replace(of_dtype(dtype).within(np.asarray), read=read)


def _filled(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Times, of which masked ones are missing."""
    return np.where(np.ma.getmaskarray(x), _missing(x.dtype), x.data) if isinstance(x, np.ma.MaskedArray) else x


def _of_day(ticks: npt.NDArray[Any], unit: str) -> npt.NDArray[Any]:
    """Times of day, of which none is negative; -1 is a missing one."""
    times = ticks.astype(f"m8[{unit}]")
    return np.where(ticks < 0, _missing(times.dtype), times)


def _by_codes(of: Callable[[Any], npt.NDArray[Any]]) -> Callable[[Any], npt.NDArray[Any]]:
    """What reads the categories of a column as what reads the column."""

    def read(x: Any) -> npt.NDArray[Any]:
        held = getattr(x, "array", x)
        known = plain_column(of(held.categories))
        return np.append(known, _missing(known.dtype))[held.codes]  # -1 is a missing record

    return read


def _missing(dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    return np.array("NaT" if dtype.kind in "mM" else np.nan, dtype)
