"""IDs of persons that are dates or times: none that an engine can hold makes a release fail."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pq
from pq.private.columns.persons import Persons

FAR, LAST = 2**62, 2**31 - 1
DAYS = pa.array([0, 0, LAST, None], pa.int32()).cast(pa.date32())
TICKS = pa.array([0, 0, FAR, None], pa.int64())
SECONDS = np.array([0, 0, FAR, np.iinfo(np.int64).min])  # the least is no time


def in_duckdb(ids: str) -> Any:
    return duckdb.connect().sql(
        f"select p, 1.0 as v, 'a' as k from (values ({ids}), ({ids}), ('infinity'), (NULL)) as t(p)"
    )


def table(ids: Any, make: Callable[[dict[str, Any]], Any]) -> Any:
    return make({"p": ids, "v": [1.0, 2.0, 3.0, 4.0], "k": ["a", "b", "a", "b"]})


TABLES: dict[str, Callable[[], Any]] = {
    "pyarrow dates": lambda: table(DAYS, pa.table),
    "pyarrow dictionary": lambda: table(DAYS.dictionary_encode(), pa.table),
    "pyarrow timestamps": lambda: table(TICKS.cast(pa.timestamp("ms", "Europe/Paris")), pa.table),
    "pyarrow durations": lambda: table(TICKS.cast(pa.duration("s")), pa.table),
    "polars dates": lambda: pl.DataFrame(table(DAYS, pa.table)),
    "polars timestamps": lambda: pl.DataFrame(table(TICKS.cast(pa.timestamp("us")), pa.table)).lazy(),
    "polars durations": lambda: pl.DataFrame(table(TICKS.cast(pa.duration("ms")), pa.table)),
    "pandas zone": lambda: table(
        pd.Series(pd.DatetimeIndex(SECONDS.view("M8[s]")).tz_localize("UTC").tz_convert("Europe/Paris")), pd.DataFrame
    ),
    "pandas of pyarrow": lambda: table(pd.Series(DAYS, dtype=pd.ArrowDtype(DAYS.type)), pd.DataFrame),
    "numpy": lambda: table(SECONDS.view("M8[s]"), dict),
    "duckdb dates": lambda: in_duckdb("DATE '1970-01-01'"),
    "duckdb timestamps": lambda: in_duckdb("TIMESTAMP '1970-01-01'"),
    "duckdb zone": lambda: in_duckdb("TIMESTAMPTZ '1970-01-01 00:00:00+00'"),
}


@pytest.mark.parametrize("name", TABLES)
def test_no_id_that_is_a_time_makes_a_release_fail(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    released = pq.release_groups(
        TABLES[name](), [0.5], by="k", value="v", keys=["a", "b"], person="p", epsilon=1, priors=pq.Cauchy(0, 1)
    )
    assert list(released.releases) == ["a", "b"]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", [name for name in TABLES if not name.startswith("duckdb")])
def test_times_are_one_person_where_they_are_one_as_values(name: str) -> None:
    made = TABLES[name]()
    frame = made.collect() if hasattr(made, "collect") else made
    column = frame.column("p") if isinstance(frame, pa.Table) else frame["p"]
    assert Persons.of(column, times=True).codes.tolist() == [0, 0, 1, -1]


def test_times_of_python_and_categories_are_ids_as_before() -> None:
    days = [dt.date(2020, 1, 1), dt.date(2020, 1, 2), None, dt.date(2020, 1, 1)]
    for column in (days, pd.Series(pd.to_datetime(days)).astype("category"), pl.Series(days), pa.array(days)):
        assert Persons.of(column, times=not isinstance(column, list)).codes.tolist() == [0, 1, -1, 0]


@pytest.mark.parametrize("kind", ["INTERVAL", "VARIANT"])
def test_ids_that_an_engine_compares_otherwise_are_refused_by_type(kind: str) -> None:
    """DuckDB calls a month and thirty days equal, so that whose record stands for both depended on other records."""
    with duckdb.connect() as base:
        base.execute(f"create table t (x double, p {kind})")
        for rows in ("", "insert into t values (0, INTERVAL '30 days'), (2, INTERVAL '1 month')"):
            base.execute(rows or "select 1").fetchall()
            with pytest.raises(TypeError, match="person must name a column"):
                pq.count(base.table("t"), "x", person="p", max_contributions=1)


def broken(texts: list[bytes]) -> pa.Array:
    """Bytes that Arrow takes for texts unseen."""
    held = pa.array(texts, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(held), held.buffers())


ODD = broken([b"a", b"\xff", b"\xfe", b"a"])
ODD_TEXTS: dict[str, Callable[[], Any]] = {
    "pyarrow": lambda: ODD,
    "pyarrow chunks": lambda: pa.chunked_array([ODD]),
    "pyarrow large": lambda: ODD.cast(pa.large_string()),
    "pyarrow view": lambda: ODD.cast(pa.string_view()),
    "pyarrow dictionary": lambda: pa.DictionaryArray.from_arrays([0, 1, 2, 0], ODD),
    "polars": lambda: pl.Series(ODD),
    "pandas of pyarrow": lambda: pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([ODD]))),
    "pandas strings": lambda: pd.Series(pd.arrays.ArrowStringArray(pa.chunked_array([ODD.cast(pa.large_string())]))),
}


@pytest.mark.parametrize("name", ODD_TEXTS)
def test_texts_that_are_no_utf_8_are_texts_of_their_own(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """They failed as IDs or keys, after the charge; polars panicked with the byte in its message."""
    column = ODD_TEXTS[name]()
    assert Persons.of(column).codes.tolist() == [0, 1, 2, 0]
    make = pd.DataFrame if name.startswith("pandas") else pl.DataFrame if name == "polars" else pa.table
    columns: dict[str, Any] = {"t": column, "x": [1.0, 2.0, 3.0, 4.0]}
    for by, keys, person in (("t", ["a", "b"], None), ("x", [1, 2, 3, 4], "t")):
        released = pq.release_groups(
            make(columns), [0.5], by=by, value="x", keys=keys, person=person, epsilon=1, priors=pq.Cauchy(0, 1)
        )
        assert list(released.releases) == keys
    assert capfd.readouterr() == ("", "")
