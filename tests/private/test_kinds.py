"""A column's declared type decides what its records are, alike in every container, and released values come back so."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import sqlite3
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import dask
import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pyarrow.dataset
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pq
from pq.core.kind import Date, Duration, Kind, RealNumber, Time, Timestamp
from pq.core.seconds import seconds_of
from pq.private.columns.frames import column_of, records_of, weighted_records
from pq.private.columns.text import CellRule, TextColumn

EARLY, LATE = dt.datetime(1900, 1, 1), dt.datetime(2240, 1, 1)
PARIS = ZoneInfo("Europe/Paris")
stamps = st.datetimes(EARLY, LATE)
# name -> its type in arrow, a strategy for its values, its kind
TYPES: dict[str, tuple[Any, Any, Kind]] = {
    "int8": (pa.int8(), st.integers(-128, 127), RealNumber()),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1), RealNumber()),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1), RealNumber()),
    "float32": (pa.float32(), st.floats(width=32, allow_nan=False), RealNumber()),
    "float64": (pa.float64(), st.floats(allow_nan=False), RealNumber()),
    "bool": (pa.bool_(), st.booleans(), RealNumber()),
    "decimal": (pa.decimal128(20, 3), st.integers(-(10**19), 10**19).map(lambda n: Decimal(n) / 1000), RealNumber()),
    "date": (pa.date32(), st.dates(EARLY.date(), LATE.date()), Date()),
    "timestamp": (pa.timestamp("us"), stamps, Timestamp()),
    "timestamp in ms": (pa.timestamp("ms"), stamps.map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)),
                        Timestamp()),
    "timestamp of a zone": (pa.timestamp("us", "Europe/Paris"),
                            stamps.map(lambda t: t.replace(tzinfo=dt.UTC).astimezone(PARIS)),
                            Timestamp("Europe/Paris")),
    "time": (pa.time64("us"), st.times(), Time()),
    "duration": (pa.duration("us"), st.timedeltas(-dt.timedelta(10**5), dt.timedelta(10**5)), Duration()),
}  # fmt: skip
# DuckDB's durations may hold months; its timestamps of a zone declare no zone; a cursor of another data base no type
CONTAINERS: dict[str, Callable[[pa.Array], Any]] = {
    "array of arrow": lambda a: a,
    "pieces of arrow": lambda a: pa.chunked_array([a[:1], a[1:]]),
    "dictionary of arrow": lambda a: a.dictionary_encode(),
    "run ends of arrow": pyarrow.compute.run_end_encode,
    "table": lambda a: pa.table({"x": a}),
    "batch": lambda a: pa.record_batch({"x": a}),
    "reader": lambda a: pa.table({"x": a}).to_reader(),
    "list": lambda a: a.to_pylist(),
    "scalars of arrow": list,
    "rows": lambda a: [(value,) for value in a.to_pylist()],
    "pandas": lambda a: a.to_pandas(),
    "pandas frame": lambda a: pa.table({"x": a}).to_pandas(),
    "pandas, arrow": lambda a: a.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas index": lambda a: pd.Index(a.to_pandas()),
    "categories": lambda a: a.to_pandas().astype("category"),
    "polars": pl.from_arrow,
    "polars frame": lambda a: pl.DataFrame({"x": pl.from_arrow(a)}),
    "polars, lazy": lambda a: pl.DataFrame({"x": pl.from_arrow(a)}).lazy(),
    "duckdb": lambda a: duckdb.from_arrow(pa.table({"x": a})),
    "cursor of duckdb": lambda a: _cursor(pa.table({"x": a})),
    "dask": lambda a: dd.from_pandas(pa.table({"x": a}).to_pandas(types_mapper=pd.ArrowDtype), npartitions=2),
    "dask series": lambda a: dd.from_pandas(a.to_pandas(types_mapper=pd.ArrowDtype).rename("x"), npartitions=2),
}


def _cursor(table: pa.Table) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.register("held", table)
    return connection.execute("select x from held")


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    with dask.config.set(scheduler="synchronous"):
        yield


def exact(value: Any) -> Fraction | float:
    """A record's number by Python's own arithmetic."""
    if isinstance(value, dt.datetime):
        value = value.replace(tzinfo=None) - (value.utcoffset() or dt.timedelta()) - dt.datetime(1970, 1, 1)
    elif isinstance(value, dt.date):
        value = value - dt.date(1970, 1, 1)
    elif isinstance(value, dt.time):
        value = dt.datetime.combine(dt.date(1, 1, 1), value) - dt.datetime(1, 1, 1)
    if isinstance(value, dt.timedelta):
        return Fraction(value // dt.timedelta(microseconds=1), 10**6)
    return value if value in (math.inf, -math.inf) else Fraction(value)


def near(number: float, wanted: Fraction | float) -> bool:
    """Within one unit in the last place, and for infinity the largest float."""
    if isinstance(wanted, float):
        return abs(number) == np.finfo(float).max and (number > 0) == (wanted > 0)
    return abs(Fraction(number) - wanted) <= Fraction(math.ulp(number))


@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=8)
@given(data=st.data())
def test_a_declared_type_is_read_alike_in_every_container(name: str, data: st.DataObject) -> None:
    dtype, values, kind = TYPES[name]
    x = data.draw(st.lists(st.none() | values, min_size=1, max_size=5))
    wanted = sorted(exact(value) for value in x if value is not None)
    readings = set()
    for container, make in CONTAINERS.items():
        if name == "duration" and "duckdb" in container:
            continue
        if container == "run ends of arrow" and name == "decimal":
            continue  # arrow itself cannot
        column = make(pa.array(x, type=dtype))
        is_declared = container not in ("list", "rows", "scalars of arrow")
        if is_declared and "pandas" not in container and "categories" not in container:
            found = column_of(column).kind
            assert str(found) == str(kind) or ("duckdb" in container and isinstance(found, Timestamp)), container
        counts = pq.count(column)
        numbers = np.repeat(counts.values, counts.counts).tolist()
        assert len(numbers) == len(wanted) and all(map(near, numbers, wanted)), container
        assert counts.missing == len(x) - len(wanted), container
        readings.add(tuple(numbers))
    assert len(readings) == 1


REFUSED: dict[str, Callable[[], Any]] = {
    "pandas period": lambda: pd.Series(pd.period_range("2020", periods=2)),
    "pandas interval": lambda: pd.Series(pd.interval_range(0, 2)),
    "pandas text": lambda: pd.Series(["1", "22"]),
    "pandas complex": lambda: pd.Series([1j]),
    "pandas category of text": lambda: pd.Series(["1"], dtype="category"),
    "polars list": lambda: pl.Series([[1], [2]]),
    "polars array": lambda: pl.Series([[1], [2]], dtype=pl.Array(pl.Int64, 1)),
    "polars struct": lambda: pl.Series([{"a": 1}]),
    "polars text": lambda: pl.Series(["1"]),
    "polars enum": lambda: pl.Series(["Ann, 52"], dtype=pl.Enum(["Ann, 52"])),
    "polars bytes": lambda: pl.Series([b"1"]),
    "arrow text": lambda: pa.array(["1"]),
    "arrow list": lambda: pa.array([[1]]),
    "arrow struct": lambda: pa.array([{"a": 1}]),
    "arrow interval": lambda: pa.array([(1, 2, 3)], type=pa.month_day_nano_interval()),
    "arrow scalar": lambda: pa.scalar(1.0),
    "numpy text": lambda: np.array(["1", "22"]),
    "numpy months": lambda: np.array([1], dtype="m8[M]"),
    "numpy quarters of an hour": lambda: np.array([1], dtype="M8[15m]"),
    "numpy structure": lambda: np.zeros(2, dtype=[("a", float)]),
    "array without dimensions": lambda: np.array("2020-01-01", dtype="M8[D]"),
    "duckdb interval": lambda: duckdb.sql("select interval 1 month as x"),
    "duckdb text": lambda: duckdb.sql("select '1' as x"),
    "duckdb list": lambda: duckdb.sql("select [1] as x"),
    "duckdb cursor of text": lambda: duckdb.connect().execute("select '1' as x"),
    "lazy text": lambda: pl.LazyFrame({"x": ["1"]}),
    "dask text": lambda: dd.from_pandas(pd.DataFrame({"x": ["1"]}), npartitions=1),
    "reader of text": lambda: pa.table({"x": ["1"]}).to_reader(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_every_other_declared_type_is_refused_for_its_type_alone(name: str) -> None:
    for refuse in (column_of, records_of, pq.count, pq.inspect):
        with pytest.raises((TypeError, ValueError), match=r"^(x|value) must") as refusal:
            refuse(REFUSED[name]())
        for secret in ("Ann", "22", "52"):
            assert secret not in str(refusal.value)


def test_a_message_does_not_tell_how_long_the_longest_text_is() -> None:
    messages = set()
    for x in (["a"], ["a" * 40]):
        with pytest.raises(TypeError) as refusal:
            pq.count(np.array(x))
        messages.add(str(refusal.value))
    assert len(messages) == 1


@pytest.mark.parametrize(
    "make", [lambda x: pl.LazyFrame({"x": x}), lambda x: pl.DataFrame({"x": x}), lambda x: pa.table({"x": x}),
             lambda x: pa.array(x), lambda x: pl.Series(x), lambda x: pd.Series(x)],
    ids=["polars, lazy", "polars frame", "table", "array", "series", "pandas"],
)  # fmt: skip
def test_a_column_of_nulls_is_a_column(make: Callable[[Any], Any]) -> None:
    """An engine that has seen nothing but nulls knows no type; one number more, and it did not raise."""
    for x in ([None, None], [None, 1.0]):
        assert pq.count(make(x)).missing == x.count(None)
        released = pq.release(make(x), [0.5], epsilon=1, priors=pq.Cauchy(0, 1), mechanism="tree", rng=0)
        assert np.isfinite(released.values).all()
    assert pq.count(duckdb.sql("select null as x")).missing == 1


def test_an_engine_that_fails_keeps_its_own_message() -> None:
    query = duckdb.sql("select a::int as x from (values ('1'), ('Ann, 52')) as people(a)")
    with pytest.raises(RuntimeError, match=r"^x must be a column or a query that can be read to its end") as failure:
        pq.count(query)
    assert failure.value.__context__ is None and "Ann" not in str(failure.value)


def test_a_cursor_without_types_is_read_record_by_record() -> None:
    def rows() -> sqlite3.Cursor:
        return sqlite3.connect(":memory:").execute(
            "select column1 as x, 2 as n from (values (1.5), ('Ann'), (null), (3))"
        )

    counts = pq.count(rows(), "x", "n")
    assert counts.values.tolist() == [1.5, 3.0] and counts.counts.tolist() == [2, 2] and counts.missing == 4
    with pytest.raises(ValueError, match=r"^value must name one of the columns x, n"):
        pq.count(rows())
    with pytest.raises(TypeError, match="cursor with a result"):
        pq.count(sqlite3.connect(":memory:").cursor())


def test_the_autumn_clock_change_is_no_fault() -> None:
    """Between half past two and half past two an hour passes, and three in all until half past three."""
    walls = [dt.datetime(2025, 10, 26, hour, 30, fold=fold) for hour, fold in ((1, 0), (2, 0), (2, 1), (3, 0))]
    x = [wall.replace(tzinfo=PARIS) for wall in walls]
    for column in (x, pd.Series(x), pl.Series(x), pa.array(x, type=pa.timestamp("us", "Europe/Paris"))):
        assert np.diff(records_of(column)[0]).tolist() == [3600.0] * 3
    kind = column_of(pd.Series(x)).kind
    assert kind.from_numbers(kind.to_numbers(x)).tolist() == x
    assert [stamp.fold for stamp in kind.from_numbers(kind.to_numbers(x))] == [0, 0, 1, 0]


def test_objects_that_hold_times_are_read_as_times() -> None:
    day = dt.date(2026, 3, 1)
    for value, seconds in ((day, 1772323200.0), (np.datetime64("2026-03-01"), 1772323200.0), (pd.NaT, None),
                           (dt.timedelta(minutes=1), 60.0), (np.timedelta64("NaT"), None)):  # fmt: skip
        counts = pq.count(pd.Series([value, "?"], dtype=object))
        assert counts.values.tolist() == ([] if seconds is None else [seconds])


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"])
def test_every_unit_of_numpy_is_read_without_a_word(unit: str) -> None:
    extremes = np.array([2**63 - 1, -(2**63) + 1, -(2**63), 0, 1, -1], dtype=np.int64)
    for dtype in (f"M8[{unit}]", f"m8[{unit}]"):
        if dtype[0] == "m" and unit in "YM":
            continue
        for x in (extremes.view(dtype), extremes.view(dtype).astype(np.dtype(dtype).newbyteorder(">"))):
            assert pq.count(x).missing == 1
    wanted = [seconds_of(value) for value in np.array(["1971-05-03", "1969-12-29"], dtype="M8[D]")]
    if unit in ("D", "h", "m", "s", "ms", "us", "ns"):
        x = np.array(["1971-05-03", "1969-12-29"], dtype=f"M8[{unit}]")
        assert records_of(x)[0].tolist() == sorted(wanted)


def test_what_is_finer_than_a_microsecond_is_cut_off_downwards() -> None:
    assert records_of(np.array([1999, -1], dtype="m8[ns]"))[0].tolist() == [-1e-6, 1e-6]


def test_the_kind_travels_with_the_records() -> None:
    x = np.array(["2026-03-01", "NaT"], dtype="M8[D]")
    for held in (pq.SortedColumn(x), pq.count(x), pq.count(x).placed("drop"), pq.count(x).placed("lowest"),
                 pq.Counts(x, [1, 1]), pq.count(pl.LazyFrame({"x": x}), grid=3600)):  # fmt: skip
        assert column_of(held).kind == Date()
    with pytest.raises(TypeError, match=r"^counts must be a column of numbers"):
        pq.Counts([1.0], np.array([1], dtype="m8[s]"))


def test_counts_of_two_lengths_do_not_tell_them() -> None:
    with pytest.raises(ValueError, match=r"^counts must be one for each of the values$"):
        pq.Counts([1.0, 2.0], [1])


def test_weighted_records_are_the_records() -> None:
    rng = np.random.default_rng(0)
    x = [*np.round(rng.normal(0, 2, 200)).tolist(), None, math.inf]
    for on_nan in ("drop", "lowest", "highest"):
        for column in (x, pq.SortedColumn(x), pq.count(x), pl.LazyFrame({"x": x})):
            values, counts = weighted_records(column, on_nan)
            assert np.array_equal(np.repeat(values, counts), records_of(x, on_nan)[0])
    values, counts = weighted_records(pq.Counts([1.0, 2.0], [10**12, 3]))
    assert values.tolist() == [1.0, 2.0] and counts.tolist() == [10**12, 3]


@pytest.mark.parametrize("added", ["2026-01-01", "2026-01-05", "2026-12-31", "NaT"])
def test_a_day_more_moves_no_density_by_more_than_epsilon(added: str) -> None:
    """And the law is that of the seconds, whatever container the days are in."""
    days = np.array(["2026-01-03", "2026-01-05", "2026-01-05", "2026-02-01"], dtype="M8[D]")
    more = np.append(days, np.datetime64(added))
    options: dict[str, Any] = {"epsilon": 1, "grid": 86400, "mechanism": "tree"}
    options["priors"] = pq.Uniform(*Date().to_numbers([dt.date(2026, 1, 1), dt.date(2027, 1, 1)]))
    for output in (["2026-01-04", "2026-01-05"], ["2026-01-05", "2026-01-05"], ["2026-01-01", "2026-12-31"]):
        values = Date().to_numbers(np.array(output, dtype="M8[D]"))
        law = [pq.log_density(records_of(x)[0], values, [0.25, 0.75], **options) for x in (days, more)]
        assert abs(law[0] - law[1]) <= 1 + 1e-12
        for make in (pl.Series, pd.Series, lambda x: pl.LazyFrame({"x": x}), pq.SortedColumn, pq.count):
            assert pq.log_density(make(more), values, [0.25, 0.75], **options) == pytest.approx(law[1], abs=1e-12)


# --- containers that fail ---------------------------------------------------------------------------------------------

ROWS = "select cast(x'3235' as text) as x union all select cast(x'ff41' as text) union all select 30"


def test_a_cell_that_a_driver_cannot_decode_is_a_missing_record() -> None:
    """It would otherwise decide whether anything comes out at all."""
    connection = sqlite3.connect(":memory:")
    with pytest.raises(sqlite3.OperationalError, match="decode"):  # what the driver says of it by itself
        connection.execute(ROWS).fetchall()
    counts = pq.count(connection.execute(ROWS))
    assert counts.values.tolist() == [25.0, 30.0] and counts.missing == 1
    released = pq.release(connection.execute(ROWS), [0.5], epsilon=1, priors=pq.Cauchy(0, 1), mechanism="tree", rng=0)
    assert np.isfinite(released.values).all()
    assert connection.text_factory is str and connection.execute("select 'a'").fetchall() == [("a",)]


class Failing:
    """A container that gives some records and then breaks with one in its message."""

    def __init__(self, way: str) -> None:
        self.way = way

    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Any:
        yield 1.0
        raise RuntimeError("Ann, 52")


class FailingArray(Failing):
    dtype, shape = np.dtype(float), (3,)

    def __array__(self, *arguments: Any, **named: Any) -> Any:
        raise ValueError("Ann, 52")


class UntypedArray:
    def __array__(self, *arguments: Any, **named: Any) -> Any:
        raise ValueError("Ann, 52")


def breaking() -> Any:
    yield 1.0
    raise KeyError("Ann, 52")


def released(x: Any) -> Any:
    return pq.release(x, [0.5], epsilon=1, priors=pq.Cauchy(0, 1))


def grouped(by: Any, x: Any, person: Any) -> Any:
    options: dict[str, Any] = {"by": "by", "value": "x", "person": "person", "keys": [1.0], "max_groups": 1}
    table = {"by": by, "x": x, "person": person}
    return pq.release_groups(table, [0.5], epsilon=1, priors=pq.Cauchy(0, 1), **options)


GROUPED = [lambda x: grouped(x, [1.0] * 3, [*"pqr"]), lambda x: grouped([1.0] * 3, x, [*"pqr"]),
           lambda x: grouped([1.0] * 3, [1.0] * 3, x)]  # fmt: skip
COLUMNS = [lambda: Failing(""), lambda: FailingArray(""), UntypedArray, breaking]
USES = [pq.SortedColumn, pq.count, pq.Counts, released]


@pytest.mark.parametrize(
    ("use", "make"),
    [
        *itertools.product(USES, COLUMNS),
        *itertools.product(GROUPED, COLUMNS[:2]),
    ],
)
def test_a_container_that_breaks_says_one_fixed_sentence(use: Any, make: Any) -> None:
    with pytest.raises(RuntimeError, match=r"^x must be a column or a query that can be read to its end") as failure:
        use(make())
    assert failure.value.__context__ is None and "Ann" not in str(failure.value)


def test_the_largest_integers_of_duckdb_are_read_alike() -> None:
    """Arrow has half of them, and DuckDB hands over the rest as negative numbers."""
    query = "select unnest([340282366920938463463374607431768211455::uhugeint, null, 5::uhugeint]) a, 3::uhugeint n"
    connection = duckdb.connect()
    counts = [pq.count(read(query), value="a", count="n", grid=1e30) for read in (connection.execute, connection.sql)]
    for found in counts:
        assert found.missing == 3
        assert found.values[0] == 0.0 and found.values[-1] == pytest.approx(2.0**128, rel=1e-6)
    assert counts[0].values.tolist() == counts[1].values.tolist()


def test_files_and_data_sets_of_arrow_are_tables(tmp_path: Path) -> None:
    table = pa.table({"a": [1.0, 2.0, None]})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    path = str(tmp_path / "t.parquet")
    for x in (pyarrow.dataset.dataset(table), pyarrow.parquet.ParquetDataset(path), pyarrow.parquet.ParquetFile(path)):
        assert pq.count(x).values.tolist() == [1.0, 2.0]


def test_names_that_occur_twice_are_refused_before_the_charge() -> None:
    two = pd.DataFrame([[1.0, 2.0]], columns=["a", "a"])
    rows, sql = pa.array([1.0]), "select 1.0 as a, 2.0 as a"
    tables: dict[str, Any] = {
        "pyarrow": pa.Table.from_arrays([rows, rows], names=["a", "a"]),
        "pandas": two,
        "dask": dd.from_pandas(two, npartitions=1),
        "sqlite": sqlite3.connect(":memory:").execute(sql),
        "duckdb": duckdb.connect().execute(sql),
    }
    ledger = pq.Ledger(1)
    options: dict[str, Any] = {"epsilon": 1, "priors": pq.Uniform(0, 1), "ledger": ledger}
    for name, table in tables.items():
        for ask in (
            lambda table=table: pq.release(table, [0.5], **options),
            lambda table=table: pq.release_groups(table, [0.5], by="a", value="a", keys=[1], **options),
            lambda table=table: pq.count(table, "a"),
        ):
            with pytest.raises(ValueError, match=r"different names|columns|unique"):
                ask()
            assert ledger.spent == 0, name


@given(st.integers(-(10**18), 10**18) | st.integers(-(2**53), 2**53) | st.integers(-2_000_000, 2_000_000))
def test_a_duration_is_one_number_in_every_form(microseconds: int) -> None:
    """Those below zero were not, beside a text: they lost the last bits of what is behind the point."""
    value = dt.timedelta(microseconds=microseconds)
    seconds, rest = divmod(abs(microseconds), 10**6)
    text = f"{'-' * (microseconds < 0)}PT{seconds}.{rest:06d}S"
    forms = [
        seconds_of(value),
        *records_of(np.array([microseconds], dtype="m8[us]"))[0],
        *records_of([value])[0],
        *TextColumn([text], CellRule(Duration())).values,
    ]
    assert len(set(forms)) == 1
    if abs(seconds) < 2**53 // 10**6:
        assert forms[0] == float(Fraction(microseconds, 10**6))
