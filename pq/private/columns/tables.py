"""Tables of any engine: what their columns are declared to be, and how one is fetched (Section 3.1)."""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from pq.core.choices import nearest
from pq.core.kind import NUMBER, WHOLE_NUMBER, Date, Duration, Kind, Time, Timestamp
from pq.private.columns.counts import Counts
from pq.private.columns.declared import Declared, refused, running
from pq.private.columns.dtypes import as_fetched, listed, of_arrow_type, of_pandas_type, of_polars_type
from pq.private.columns.library import KNOWN, is_table
from pq.private.columns.reduce import fetched, reduced
from pq.private.columns.strings import string_of

Types = dict[str, Callable[[], Declared]]
DUCKDB_INTEGERS = (
    *("tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint", "uinteger", "ubigint"),
    "uhugeint",
)
DUCKDB_NUMBERS = ("float", "double", "boolean", "sqlnull", "null")
DUCKDB_TIMES: dict[str, Kind] = {
    "date": Date(),
    "time": Time(),
    "timestamp with time zone": Timestamp("UTC"),
    **dict.fromkeys(("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"), Timestamp()),
}


@dataclass(frozen=True)
class OpenTable:
    """A table that has been asked for nothing but its schema.

    types: the declared type of a column, by name. fetch: the columns of some names, as a function from a name to a
    column in memory, which may both fail. lazy: a query of narwhals that its engine can still reduce, if it is one.
    """

    types: Types
    fetch: Callable[[list[str]], Callable[[str], Any]]
    lazy: Any = None


def counting(
    x: Any, library: str, value: str | None, count: str | None, step: Fraction | None
) -> tuple[Kind, Callable[[], Counts]] | None:
    """What a table's column is declared to be, and what counts its records when it is called; None if x is no table.

    library: that made x. The others: as for `pq.count`, which says what is refused. Nothing is read yet.
    """
    table = opened(x, library)
    if table is None:
        return None
    names = wanted_columns(list(table.types), value, count)
    types = [declared_in(table, argument, name) for argument, name in zip(("value", "count"), names, strict=False)]
    kind, lazy = types[0].kind, table.lazy
    if len(types) == 2 and types[1].kind != NUMBER:
        raise TypeError(f"count must name a column of numbers, {names[1]!r} is one of kind {types[1].kind}")
    if lazy is not None and types[0].grouping != "none" and types[-1].grouping in ("number", types[0].grouping):
        return kind, lambda: reduced(lazy, names, types[0], step)
    return kind, lambda: fetched(table.fetch, names, types, step)


def opened(x: Any, library: str) -> OpenTable | None:
    """x, which a library made, as a table, or None if it is a single column; nothing of it is read yet."""
    library = library.lstrip("_")
    if hasattr(x, "fetchall") and hasattr(x, "description"):
        return _of_cursor(x, library)
    if library == "pyarrow" and hasattr(x, "schema"):
        return _of_arrow(x)
    if not is_table(x) and (library in KNOWN or not hasattr(x, "to_frame")):
        return None
    return _of_frame(x)


def _of_arrow(x: Any) -> OpenTable:
    """A table, a batch of records, or what reads several: a reader, a data set, a file."""
    reading = next((name for name in ("read_all", "to_table", "read") if hasattr(x, name)), None)
    schema = getattr(x, "schema_arrow", x.schema)
    _different(field.name for field in schema)

    def fetch(wanted: list[str]) -> Callable[[str], Any]:
        return (x if reading is None else getattr(x, reading)()).column

    return OpenTable({field.name: partial(of_arrow_type, field.type) for field in schema}, fetch)


def _of_cursor(x: Any, library: str) -> OpenTable | None:
    """The result that a connection or a cursor of a data base has ready; most declare no types."""
    if is_table(x):
        return _of_frame(x)  # a relation of DuckDB, which is a query as well
    if x.description is None:
        raise TypeError("x must be a cursor with a result")
    names = _different([column[0] for column in x.description])
    _check_converters(x, names)

    def fetch(wanted: list[str]) -> Callable[[str], Any]:
        with _undecoded(x):
            rows = x.fetchall()
        return lambda name: [row[names.index(name)] for row in rows]

    if library == "duckdb":
        types: Types = {column[0]: partial(of_duckdb_type, column[1]) for column in x.description}
        wide = {column[0] for column in x.description if _name_of(column[1]) == "uhugeint"}  # Arrow has half of it
        if wide:  # as objects of Python, which have no nanoseconds
            fine = [column[0] for column in x.description if _name_of(column[1]) == "timestamp_ns"]
            types |= dict.fromkeys(fine, partial(of_duckdb_type, "timestamp_ns beside uhugeint"))
        return OpenTable(types, lambda names: fetch(names) if wide & {*names} else x.to_arrow_table().column)

    return OpenTable({name: lambda: Declared(NUMBER, listed, "none") for name in names}, fetch)


def _check_converters(cursor: Any, names: list[str]) -> None:
    """Raises `TypeError` naming x for a cursor of SQLite that has a converter for a column, which may fail at one
    record and cannot be taken off. It is found among what the cursor holds: a list of them, None for a column without.
    """
    if not isinstance(cursor, sqlite3.Cursor):
        return
    for held in gc.get_referents(cursor):
        if type(held) in (list, tuple) and len(held) == len(names) and any(map(callable, held)):
            name = next(name for name, converter in zip(names, held, strict=True) if converter is not None)
            raise TypeError(
                f"x must be a cursor without converters, which may fail at a record: {name!r} has one. Connect without "
                "detect_types, or select an expression in its place, such as coalesce(name, null) as name"
            )


@contextmanager
def _undecoded(cursor: Any) -> Iterator[None]:
    """SQLite keeps any bytes as text and fails at those that are no UTF-8, and rows and texts may be made by functions
    of the cursor's and the connection's own: one record would decide about all. Rows are tuples here, and each byte of
    a text that is no UTF-8 a surrogate of its own."""
    if not isinstance(cursor, sqlite3.Cursor):
        yield
        return
    connection, rows, texts = cursor.connection, cursor.row_factory, cursor.connection.text_factory
    cursor.row_factory, connection.text_factory = None, string_of
    try:
        yield
    finally:
        cursor.row_factory, connection.text_factory = rows, texts


def _of_frame(x: Any) -> OpenTable | None:
    import narwhals.stable.v2 as nw

    try:
        frame: Any = nw.from_native(x, pass_through=True, allow_series=True)
    except nw.exceptions.DuplicateError as error:
        raise ValueError(f"x must have columns of different names: {error}") from None
    if not isinstance(frame, (nw.DataFrame, nw.LazyFrame)):  # a lazy column
        frame = nw.from_native(x.to_frame("value"), pass_through=True) if hasattr(x, "to_frame") else frame
    if isinstance(frame, nw.DataFrame):
        return OpenTable(_types(frame), lambda names: lambda name: frame.get_column(name).to_native())
    if isinstance(frame, nw.LazyFrame):
        return OpenTable(_types(frame), lambda names: _collected(frame.select(*names)), frame)
    return None


def _collected(frame: Any) -> Callable[[str], Any]:
    rows = frame.collect()
    return lambda name: rows.get_column(name).to_native()


def _types(frame: Any) -> Types:
    """What a frame of narwhals declares, in the words of its own engine where those are known."""
    native, engine = frame.to_native(), frame.implementation
    if engine.is_polars():
        schema = running(native.collect_schema)()  # which some readers of files find in the first records
        return {name: partial(of_polars_type, dtype) for name, dtype in schema.items()}
    if engine.is_pandas_like() or engine.is_dask():
        names = _different(native.columns)
        return {name: partial(of_pandas_type, dtype) for name, dtype in zip(names, native.dtypes, strict=True)}
    if engine.is_pyarrow():
        return {field.name: partial(of_arrow_type, field.type) for field in native.schema}
    if engine.is_duckdb():
        names = _different(native.columns)
        return {name: partial(of_duckdb_type, dtype) for name, dtype in zip(names, native.types, strict=True)}
    types: Types = {name: partial(of_narwhals_type, dtype) for name, dtype in running(frame.collect_schema)().items()}
    if engine.is_pyspark() or engine.is_pyspark_connect():  # whose durations narwhals does not know
        lengths = [field.name for field in running(lambda: native.schema)().fields if _is_duration(field.dataType)]
        types |= dict.fromkeys(lengths, partial(Declared, Duration(), as_fetched))
    return types


def _is_duration(spark_type: Any) -> bool:
    """Days to seconds; one of years and months has no length in seconds, and is refused."""
    return type(spark_type).__name__ == "DayTimeIntervalType"


def _different(names: Iterable[str]) -> list[str]:
    """Names of columns. Raises `ValueError` naming x if one is there more than once."""
    listed = list(names)
    if len(set(listed)) < len(listed):
        twice = max(listed, key=listed.count)
        raise ValueError(f"x must have columns of different names, got {twice!r} more than once")
    return listed


def _name_of(duckdb_type: Any) -> str:
    return str(getattr(duckdb_type, "id", duckdb_type)).lower()


def of_duckdb_type(dtype: Any) -> Declared:
    """The declared type of a column of DuckDB; its INTERVAL may hold months, and is refused."""
    name = _name_of(dtype)
    if name in DUCKDB_INTEGERS:
        return Declared(WHOLE_NUMBER, as_fetched, "number")
    if name in DUCKDB_NUMBERS:
        return Declared(NUMBER, as_fetched, "number")
    if name == "decimal":
        return Declared(NUMBER, as_fetched)
    if name in DUCKDB_TIMES:
        return Declared(DUCKDB_TIMES[name], as_fetched)
    raise refused(name)


def of_narwhals_type(dtype: Any) -> Declared:
    """The declared type of a column of any other engine."""
    import narwhals.stable.v2 as nw

    if isinstance(dtype, nw.Decimal):
        return Declared(NUMBER, as_fetched)
    if dtype.is_numeric() or dtype.is_boolean():
        return Declared(WHOLE_NUMBER if dtype.is_integer() else NUMBER, as_fetched, "number")
    if isinstance(dtype, nw.Datetime):
        return Declared(Timestamp(dtype.time_zone), as_fetched)
    if isinstance(dtype, (nw.Date, nw.Time)):
        return Declared(Date() if isinstance(dtype, nw.Date) else Time(), as_fetched)
    raise refused(type(dtype).__name__)


def declared_in(table: OpenTable, argument: str, name: str) -> Declared:
    """The declared type of a column that an argument names; raises `TypeError`, or `ValueError` if there is none of
    that name, naming the argument."""
    if name in table.types:
        try:
            return table.types[name]()
        except (TypeError, ValueError) as error:
            what = str(error).rpartition("got ")[2]
            message = f"{argument} must name a column of numbers, dates or times, {name!r} is of type {what}"
            raise TypeError(message) from None
    known = [str(column) for column in table.types]
    near = nearest(name, known, end="")
    raise ValueError(f"{argument} must name one of the columns {', '.join(known)}, got {name!r}{near}")


def wanted_columns(columns: list[str], value: str | None, count: str | None) -> list[str]:
    """The columns to read: of values and, if there is one, of counts. Raises `ValueError` naming value where it is not
    said and there are several."""
    if value is None:
        others = [name for name in columns if name != count]
        if len(others) != 1:
            raise ValueError(f"value must name one of the columns {', '.join(map(str, others))}")
        value = others[0]
    return [value] if count is None else [value, count]
