"""What a column in memory is declared to be, and how its records become float64 (Section 3.1).

The declared type alone decides: two columns of one type are read, or refused, alike, whatever they hold. Where a type
leaves it to the data (objects, lists) the records are read one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pq.core.kind import NUMBER, WHOLE_NUMBER, Date, Duration, Kind, Time, Timestamp, kind_of_ticks, seconds_of_ticks
from pq.private.columns.library import is_table, library_of
from pq.private.columns.record import each
from pq.private.columns.text import TextColumn

Array = npt.NDArray[np.float64]
Grouping = Literal["number", "value", "none"]
REAL_KINDS = "fiub"  # numpy's codes of float, signed, unsigned and boolean types
WHOLE_KINDS = "iu"
UNREADABLE = (
    "x must be a column or a query that can be read to its end; its own message is kept back, since it may show records"
)
WITHOUT_COLUMN = (str, bytes, bytearray, dict, set, frozenset)


@dataclass(frozen=True)
class Declared:
    """A declared type: its `kind`, how a column of it is read as floats (NaN for missing records), and what an engine
    may group equal records by before they are: the "number" that they are cast to, the "value" itself, or "none".

    pieces: a column of it as arrays of real numbers of any type that take no memory of their own, if that can be."""

    kind: Kind
    read: Callable[[Any], Array]
    grouping: Grouping = "value"
    pieces: Callable[[Any], list[npt.NDArray[Any]]] | None = None

    def of(self, x: Any) -> tuple[Kind, Callable[[], Array], Callable[[], list[npt.NDArray[Any]]] | None]:
        """The kind, and what reads x as such a column and its pieces; a container that fails says nothing of x."""
        pieces = None if self.pieces is None else partial(running(self._plain_pieces), x)
        return self.kind, partial(running(self.records), x), pieces

    def records(self, x: Any) -> Array:
        """The records of a column as one plain array: what a class derived from numpy's makes of comparing them, as one
        for quantities with a unit does, may fail for some records and not for others."""
        return _plain_column(self.read(x))

    def _plain_pieces(self, x: Any) -> list[npt.NDArray[Any]]:
        assert self.pieces is not None
        return [*map(_plain_column, self.pieces(x))]


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
    known = of_dtype(held.dtype)
    return Declared(known.kind, lambda x: known.read(held), "none")


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


def _plain_column(values: Any) -> npt.NDArray[Any]:
    plain = np.asarray(values)
    if plain.ndim != 1:
        raise ValueError("records must be one after another")
    return plain


def of_dtype(dtype: np.dtype[Any]) -> Declared:
    """The declared type of an array of numpy."""
    if dtype.kind in REAL_KINDS:
        kind = _number(dtype.kind in WHOLE_KINDS)
        return Declared(kind, _floats, "number", None if dtype.kind == "b" else _pieces)
    if dtype.kind == "O":
        return Declared(NUMBER, lambda x: each(x.tolist()), "none")  # masked records become None
    ticks = kind_of_ticks(dtype)
    if ticks is not None:
        return Declared(ticks, _seconds)
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
        return Declared(of_dtype(dtype).kind, _converted, "none")
    return _held_by(running(np.asarray)(x))  # nothing else tells its type


def of_pandas_type(dtype: Any) -> Declared:
    """The declared type of a column of pandas."""
    import pandas as pd

    if isinstance(dtype, np.dtype):
        inner = of_dtype(dtype)
        pieces = inner.pieces
        again = None if pieces is None else lambda x: pieces(x.to_numpy())
        return Declared(inner.kind, lambda x: inner.read(x.to_numpy()), inner.grouping, again)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return Declared(Timestamp(str(dtype.tz)), lambda x: _seconds(x.to_numpy(dtype=f"M8[{dtype.unit}]")))
    if isinstance(dtype, pd.ArrowDtype):
        arrow = of_arrow_type(dtype.pyarrow_dtype)
        return Declared(arrow.kind, lambda x: arrow.read(getattr(x, "array", x).__arrow_array__()), arrow.grouping)
    if isinstance(dtype, pd.CategoricalDtype):
        categories = of_pandas_type(dtype.categories.dtype)

        def read(x: Any) -> Array:
            held = getattr(x, "array", x)
            return np.append(categories.read(held.categories), np.nan)[held.codes]  # -1 is a missing record

        return Declared(categories.kind, read, "none")
    if isinstance(dtype, pd.SparseDtype):
        return Declared(of_dtype(np.dtype(dtype.subtype)).kind, _converted, "none")
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
        return Declared(Time(), lambda x: _of_day(x.to_physical().fill_null(-1).to_numpy(), "ns"))
    kinds: dict[Any, Kind] = {pl.Date: Date(), pl.Duration: Duration()}
    if base == pl.Datetime:
        kinds[base] = Timestamp(dtype.time_zone)
    if base not in kinds:
        raise refused(str(base))
    return Declared(kinds[base], lambda x: _seconds(x.to_numpy()))


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
        values = of_arrow_type(dtype.value_type)
        return Declared(values.kind, lambda x: values.read(x.cast(dtype.value_type)), "none")
    if types.is_run_end_encoded(dtype):
        values = of_arrow_type(dtype.value_type)
        return Declared(values.kind, lambda x: values.read(pc.run_end_decode(_whole(x))), "none")
    if types.is_time(dtype):
        ticks = pa.int32() if types.is_time32(dtype) else pa.int64()
        return Declared(Time(), lambda x: _of_day(_arrow_numbers(x.cast(ticks).fill_null(-1)), dtype.unit))
    if types.is_date(dtype) or types.is_timestamp(dtype) or types.is_duration(dtype):
        kind = Duration() if types.is_duration(dtype) else Date()
        if types.is_timestamp(dtype):
            kind = Timestamp(dtype.tz)
        return Declared(kind, lambda x: _seconds(_arrow_numbers(x)))
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


def refused(what: str) -> TypeError:
    """The error for a column whose declared type, named by `what`, holds no records that a release can read."""
    return TypeError(f"x must be a column of real numbers, dates, timestamps, times or durations, got {what}")


def running(fetch: Callable[..., Any]) -> Callable[..., Any]:
    """An engine's or a container's own work. That it does not fail is a public promise of whoever hands it over; where
    it does, as on a text that a query takes for a number, one fixed sentence tells no record."""

    def run(*arguments: Any) -> Any:
        try:
            return fetch(*arguments)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException:  # polars panics with what is no Exception
            pass  # raised below, where the engine's own error is not its context
        raise RuntimeError(UNREADABLE)

    return run


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


def _seconds(x: npt.NDArray[Any]) -> Array:
    if not isinstance(x, np.ma.MaskedArray):
        return seconds_of_ticks(x)
    return np.where(np.ma.getmaskarray(x), np.nan, seconds_of_ticks(x.data))


def _of_day(ticks: npt.NDArray[Any], unit: str) -> Array:
    """Times of day, of which none is negative; -1 is a missing one."""
    return np.where(ticks < 0, np.nan, seconds_of_ticks(ticks.astype(f"m8[{unit}]")))


def _converted(x: Any) -> Array:
    values = np.asarray(x)
    return of_dtype(values.dtype).read(values)
