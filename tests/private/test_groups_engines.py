"""Every engine groups alike: pandas, polars, pyarrow, DuckDB, Dask and Spark, against a slow oracle."""

from __future__ import annotations

import datetime as dt
import functools
import math
import os
import shutil
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import duckdb
import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from narwhals import Implementation

import pq
from pq.core.grid import grid_step
from pq.private.columns import grouping
from pq.private.columns.grouping import GroupedColumn, open_table

NO_JAVA = "NO JAVA: releases by group on Spark are not tried; `make system` installs it"
ENGINES: dict[str, Callable[[pa.Table], Any]] = {
    "mapping": lambda table: table.to_pydict(),
    "pandas": lambda table: table.to_pandas(),
    "pandas, arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "polars, lazy": lambda table: pl.LazyFrame(pl.from_arrow(table)),
    "pyarrow": lambda table: table,
    "pyarrow, read once": lambda table: table.to_reader(),
    "duckdb": duckdb.from_arrow,
    "dask": lambda table: dd.from_pandas(table.to_pandas(), npartitions=3),
    "dask, arrow": lambda table: dd.from_pandas(table.to_pandas(types_mapper=pd.ArrowDtype), npartitions=3),
    "spark": lambda table: spark().createDataFrame(table),
}
KEYS: dict[str, tuple[list[Any], list[Any], list[Any]]] = {  # of records, public ones, and the same spelt otherwise
    "texts": (
        ["a", "a\0", "a\0\0", "b\0b", "b", "A", "", " a", "ab", "1", None],
        ["a\0", "a", "1", "c", "", "b"],
        ["a\0", "a", "1", "c", "", "b"],
    ),
    "integers": ([1, 2, 3, -4, None], [1, -4, 9], [1.0, Decimal(-4), np.int8(9)]),
    "floats": ([1.0, 0.5, math.nan, math.inf, -0.0, None], [0.5, 0, 2], [0.5, False, 2.0]),
    "booleans": ([True, False, None], [True], [1]),
    "dates": (
        [dt.date(2026, 3, 1), dt.date(1969, 12, 31), dt.date(2026, 3, 2), None],
        [dt.date(1969, 12, 31), dt.date(2030, 1, 1), dt.date(2026, 3, 1)],
        [np.datetime64("1969-12-31"), np.datetime64("2030-01-01"), dt.datetime(2026, 3, 1)],
    ),
    "timestamps": (
        [dt.datetime(2026, 3, 1, 12, 30, 0, 5), dt.datetime(2026, 3, 1, 12, 30), None],
        [dt.datetime(2026, 3, 1, 12, 30)],
        [np.datetime64("2026-03-01T12:30:00.000000000")],
    ),
}
TYPES = {"texts": pa.string(), "integers": pa.int64(), "floats": pa.float64(), "booleans": pa.bool_(),
         "dates": pa.date32(), "timestamps": pa.timestamp("us")}  # fmt: skip
TAKEN_FOR_TEXTS = {("dask", "booleans"), ("dask", "dates")}  # by Dask, which calls columns of objects so
OBJECTS = {("mapping", "dates"), ("mapping", "timestamps"), ("pandas", "dates")}
PEOPLE: dict[str, list[Any]] = {"texts": ["p", "q", "q\0", "7", " ", None], "numbers": [2**60, 2**60 + 1, 7, -1]}


@functools.cache
def spark() -> Any:
    """A session of Spark on this machine; without a Java the test says so, and in CI that is a failure."""
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        if os.environ.get("CI") == "true":
            pytest.fail(NO_JAVA)
        pytest.skip(NO_JAVA)
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.memory": "512m",
    }
    builder = SparkSession.builder.master("local[2]").appName("pq")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@pytest.fixture(autouse=True, scope="module")
def engines_stopped() -> Iterator[None]:
    """Dask runs in this thread; a Spark that was started ends with the module. For all who try engines."""
    with dask.config.set(scheduler="synchronous"):
        yield
    if spark.cache_info().currsize:
        spark().stop()
        spark.cache_clear()


def table_of(kind: str, people: str) -> pa.Table:
    rng, n = np.random.default_rng(1), 300
    keys = [KEYS[kind][0][i] for i in rng.integers(len(KEYS[kind][0]), size=n)]
    values = [(None, math.nan, math.inf)[i] if i < 3 else i / 8.0 for i in rng.integers(0, 40, n).tolist()]
    ids = [PEOPLE[people][i] for i in rng.integers(len(PEOPLE[people]), size=n)]
    if kind != "floats":
        values = [None if value is not None and math.isnan(value) else value for value in values]
    return pa.table(
        {
            "key": pa.array(keys, TYPES[kind], from_pandas=False),
            "x": pa.array(values, pa.float64()),
            "id": pa.array(ids),
        }
    )


def oracle(table: pa.Table, keys: list[Any], others: bool) -> list[tuple[dict[float, int], int]]:
    """The counts of each group, record by record."""
    groups: list[tuple[dict[float, int], int]] = [({}, 0) for _ in keys] + [({}, 0)] * others
    for key, value in zip(table["key"].to_pylist(), table["x"].to_pylist(), strict=True):
        place = next((i for i, one in enumerate(keys) if key is not None and key == one), len(keys))
        if place == len(groups):
            continue
        held, missing = groups[place]
        if value is None or math.isnan(value):
            groups[place] = (held, missing + 1)
        else:
            rounded = min(round(value * 2) / 2, 1.7976931348623157e308) if math.isfinite(value) else 2.0**50
            groups[place] = (held | {rounded: held.get(rounded, 0) + 1}, missing)
    return groups


def grouped(
    x: Any, keys: list[Any], others: bool, person: str | None = None, **bounds: int
) -> list[tuple[dict[float, int], int]]:
    column = GroupedColumn.of(
        open_table(x), value="x", by="key", keys=keys, person=person, step=grid_step(0.5), others=others
    )
    counted = column.read(bounds.get("records", 1), bounds.get("groups", 1))
    return [(dict(zip(c.values.tolist(), c.counts.tolist(), strict=True)), c.missing) for c in counted]


@pytest.mark.parametrize(("engine", "kind"), [pair for pair in product(ENGINES, KEYS) if pair not in TAKEN_FOR_TEXTS])
def test_engines_group_alike(engine: str, kind: str) -> None:
    table = table_of(kind, "texts")
    _, keys, spelt = KEYS[kind]
    if (engine, kind) in OBJECTS:
        spelt = keys  # objects have the key that they equal
    for others in (False, True):
        expected = oracle(table, keys, others)
        assert grouped(ENGINES[engine](table), keys, others) == expected
        assert grouped(ENGINES[engine](table), spelt, others) == expected
    assert sum(missing + sum(held.values()) for held, missing in expected) == 300


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("people", PEOPLE)
def test_engines_keep_the_same_records_of_a_person(engine: str, people: str) -> None:
    table = table_of("texts", people)
    keys = KEYS["texts"][1]
    shuffled = table.take(np.random.default_rng(2).permutation(len(table)))
    for others in (False, True):
        expected = grouped(table.to_pydict(), keys, others, person="id", records=3, groups=2)
        held = sum(missing + sum(counts.values()) for counts, missing in expected)
        assert 3 * (len(PEOPLE[people]) - 2 * (people == "texts")) == held
        assert grouped(ENGINES[engine](shuffled), keys, others, person="id", records=3, groups=2) == expected


@pytest.mark.parametrize("engine", ["polars, lazy", "duckdb", "dask", "spark"])
def test_queries_are_reduced_where_they_live(engine: str) -> None:
    """What comes back of a query are counts, also with persons: a fetch of whole columns would fail here."""
    x = ENGINES[engine](table_of("texts", "texts"))
    for person in (None, "id"):
        column = GroupedColumn.of(open_table(x), value="x", by="key", keys=["a"], person=person, step=None, others=True)
        assert column.engine


@pytest.mark.parametrize("kind", KEYS)
def test_duckdb_looks_long_lists_of_keys_up_after_the_count(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    table, (_, keys, _) = table_of(kind, "texts"), KEYS[kind]
    monkeypatch.setattr(grouping, "LONG_LIST", 1)
    for person in (None, "id"):
        options: dict[str, Any] = {"person": person, "records": 3, "groups": 2}
        expected = grouped(table.to_pydict(), keys, False, **options)
        assert sum(missing + sum(held.values()) for held, missing in expected) > 0
        assert grouped(duckdb.from_arrow(table), keys, False, **options) == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_no_rows_and_rows_of_no_key_are_no_error(engine: str) -> None:
    some = table_of("texts", "texts")
    empty: list[tuple[dict[float, int], int]] = [({}, 0)] * 2
    for table in (some[:0], some.filter(pa.array([key is None for key in some["key"].to_pylist()]))):
        for person in (None, "id"):
            assert grouped(ENGINES[engine](table), ["a", "z"], False, person=person) == empty


@pytest.mark.parametrize("engine", [Implementation.IBIS, Implementation.SQLFRAME, Implementation.UNKNOWN])
@pytest.mark.parametrize("texts", [["p", "P", "q"], [b"p", b"P", b"q"]])
def test_texts_are_compared_by_no_engine_that_may_have_a_collation(
    monkeypatch: pytest.MonkeyPatch, engine: Implementation, texts: list[Any]
) -> None:
    """Of ibis over a column that is blind to case, one person's records decided whose others were."""
    monkeypatch.setattr(nw.LazyFrame, "implementation", property(lambda _: engine))
    query = pl.LazyFrame({"k": texts, "n": [1, 2, 2], "x": [1.0, 2.0, 3.0]})
    asked: dict[str, Any] = {"value": "x", "epsilon": 1, "priors": pq.Uniform(0, 4), "ledger": pq.Ledger(1)}
    if isinstance(texts[0], str):  # of which keys can be
        with pytest.raises(TypeError, match=r"by must .* \.to_pyarrow\(\)"):
            pq.release_groups(query, [0.5], by="k", keys=["p"], **asked)
    with pytest.raises(TypeError, match=r"person must .* \.to_pyarrow\(\)"):
        pq.release_groups(query, [0.5], by="n", keys=[1], person="k", **asked)
    with pytest.raises(TypeError, match=r"person must .* \.to_pyarrow\(\)"):
        pq.count(query, "x", person="k")
    assert asked["ledger"].spent == 0
    assert len(pq.release_groups(query, [0.5], by="n", keys=[1, 2], person="n", **asked).groups) == 2
    assert pq.count(query.collect(), "x", person="n").counts.tolist() == [1, 1]
    assert pq.count(query, "x").counts.tolist() == [1, 1, 1]


def test_texts_that_a_collation_calls_equal_are_not() -> None:
    """Else which of them stands for all would depend on other records, and with it what a record counts as."""
    with duckdb.connect() as base:
        base.execute("create table t (key varchar collate nocase, id varchar collate nocase, x double)")
        base.execute("insert into t values ('A', 'p', 1), ('a', 'P', 1), ('a', 'p', 1), ('b', 'q', 2), ('é', 'q', 2)")
        for key, count in (("a", 2), ("A", 1), ("é", 1)):
            (held, missing), _ = grouped(base.table("t"), [key], True)
            assert (sum(held.values()), missing) == (count, 0)
        (held, _), _ = grouped(base.table("t"), ["a"], True, person="id", records=5, groups=5)
        assert held == {1.0: 2}
        base.execute("set default_collation = 'nocase'")
        base.execute("create table u as select key collate C as key, id collate C as id, x from t")
        for keys in (["a"], ["A"]):
            assert grouped(base.table("u"), keys, False) == grouped(base.table("t"), keys, False)
            again = grouped(base.table("u"), keys, True, person="id", records=5, groups=5)
            assert again == grouped(base.table("t"), keys, True, person="id", records=5, groups=5)


def test_values_are_of_the_declared_type() -> None:
    hired = [dt.date(2020, 1, 1), dt.date(2021, 1, 1), None]
    table = pl.LazyFrame({"team": ["a", "a", "b"], "hired": hired})
    prior = pq.Normal(1.6e9, 1e8)
    made = pq.release_groups(table, [0.5], by="team", value="hired", keys=["a"], epsilon=1, priors=prior, grid=86_400)
    assert made.releases["a"].values.dtype == np.dtype("M8[D]")
    again = pq.GroupedRelease.from_dict(made.to_dict())
    assert again.releases["a"].values.tolist() == made.releases["a"].values.tolist()


def test_keys_that_are_times_come_back_from_a_description() -> None:
    days = [dt.date(2026, 3, 1), dt.date(2026, 3, 2)]
    table = pl.DataFrame({"day": days, "x": [1.0, 2.0]})
    made = pq.release_groups(table, [0.5], by="day", value="x", keys=days, epsilon=1, priors=pq.Cauchy(0, 1))
    assert pq.GroupedRelease.from_dict(made.to_dict()).keys == tuple(days)
    assert str(made).splitlines()[2].startswith("2026-03-01")


REFUSED: list[tuple[Any, list[Any], str]] = [
    (pl.Series(["a"]), [1], "keys must be texts"),
    (pl.Series([1]), ["1"], "keys must be of the column's kind, number"),
    (pl.Series([1]), [2**53 + 1], "keys must be among the float64 numbers"),
    (pl.Series([1]), [1, 1.0], "keys must differ"),
    (pl.Series([1]), [dt.date(2026, 3, 1)], "keys must be of the column's kind"),
    (pl.Series([dt.date(2026, 3, 1)]), [5], "keys must be of the column's kind, date"),
    (pl.Series([dt.date(2026, 3, 1)]), ["2026-03-01"], "keys must be of the column's kind, date"),
    (pl.Series([[1]]), [1], "by must name a column of texts, numbers, dates or times"),
    (pl.Series([1]), [b"1"], "keys must be texts, numbers, dates or times"),
    (pl.Series([1]), [math.inf], "keys must be such as JSON"),
]


@pytest.mark.parametrize(("column", "keys", "message"), REFUSED, ids=lambda part: str(part)[-40:])
def test_keys_that_a_type_has_not_are_refused(column: pl.Series, keys: list[Any], message: str) -> None:
    for n in (0, 1):
        table = pl.DataFrame({"key": column[:n], "x": pl.Series([1.0][:n], dtype=pl.Float64)})
        with pytest.raises((TypeError, ValueError), match=message):
            pq.release_groups(table, [0.5], by="key", value="x", keys=keys, epsilon=1, priors=pq.Cauchy(0, 1))


@pytest.mark.parametrize(
    "made", [pd.Categorical, lambda v: pd.array(v, dtype="string"), np.array, lambda v: pd.Series(v)]
)
def test_texts_of_every_declared_type(made: Any) -> None:
    table = {"key": made(["a", "b", "a"]), "x": [1.0, 2.0, 3.0]}
    expected: list[tuple[dict[float, int], int]] = [({1.0: 1, 3.0: 1}, 0), ({}, 0)]
    assert grouped(table, ["a", "c"], False) == expected
    if not isinstance(table["key"], np.ndarray):
        assert grouped(pd.DataFrame(table), ["a", "c"], False) == expected
    for dtype in (pl.Categorical, pl.Enum(["a", "b", "z"])):
        frame = pl.DataFrame({"key": pl.Series(["a", "b", "a"], dtype=dtype), "x": [1.0, 2.0, 3.0]})
        assert grouped(frame, ["a", "c"], False) == grouped(frame.to_arrow(), ["a", "c"], False) == expected


def test_a_public_file_of_keys_is_read_by_the_columns_kind(tmp_path: Path) -> None:
    (tmp_path / "keys.csv").write_text("key\n 1\n2.0\n")
    table = pl.DataFrame({"key": [1, 2, 2], "x": [1.0, 2.0, 3.0]})
    assert grouped(table, tmp_path / "keys.csv", False) == [({1.0: 1}, 0), ({2.0: 1, 3.0: 1}, 0)]  # type: ignore[arg-type]
    (tmp_path / "keys.csv").write_text("key\none\n")
    with pytest.raises(ValueError, match="keys must be of the column's kind, number"):
        grouped(table, tmp_path / "keys.csv", False)  # type: ignore[arg-type]
