"""No record of a table decides whether an engine's query fails, or how a text is read."""

import logging
import sqlite3
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from test_groups_engines import engines_stopped, spark  # noqa: F401

import pq
from pq.private.columns.grouping import GroupedColumn, open_table
from pq.private.columns.tables import opened


def in_spark() -> Any:
    return spark().sql("select cast(x as double) as x from values ('1'), ('secret cell') as t(x)")


class Loud(float):
    """A record that says what it is."""

    def __float__(self) -> float:
        logging.getLogger("a record").critical("secret cell")
        warnings.warn("secret cell", stacklevel=1)
        return 1.0


class Talks:
    """A container that logs what it fails at, at several levels."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error

    def __iter__(self) -> Iterator[float]:
        for level in (logging.WARNING, logging.CRITICAL, 10 * logging.CRITICAL):
            logging.getLogger("an engine").log(level, "secret cell")
        yield 1.0
        if self.error is not None:
            raise self.error


CONTAINERS: dict[str, Any] = {
    "fails": lambda: Talks(ValueError("secret cell")),
    "is fine": lambda: Talks(None),
    "spark": in_spark,
    "list": lambda: [Loud(2.0)],
    "objects": lambda: np.array([Loud(2.0)], dtype=object),
    "masked objects": lambda: np.ma.masked_array(np.array([Loud(2.0)], dtype=object)),
    "pandas": lambda: pd.Series([Loud(2.0)], dtype=object),
    "polars": lambda: pl.Series([Loud(2.0)], dtype=pl.Object),
    "table": lambda: pl.DataFrame({"x": pl.Series([Loud(2.0)], dtype=pl.Object)}),
}


@pytest.mark.parametrize("name", CONTAINERS)
@pytest.mark.parametrize("before", [logging.NOTSET, logging.INFO])
def test_nothing_is_logged_while_an_engine_runs(
    name: str, before: int, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Spark's own loggers showed the cell that a query failed at."""
    x, said = CONTAINERS[name](), list[str]()
    logging.disable(before)
    warnings.simplefilter("error")
    try:
        for use in (pq.count, lambda x: pq.release(x, [0.5], epsilon=1, priors=pq.Cauchy(0, 1), mechanism="tree")):
            try:
                use(x)
            except RuntimeError as error:
                said.append(str(error))
        assert logging.root.manager.disable == before
    finally:
        logging.disable(logging.NOTSET)
    assert "secret" not in "".join([*capfd.readouterr(), *said]) and not caplog.records


@pytest.mark.parametrize("factory", [None, sqlite3.Row, lambda _, row: {"v": row[0]}, lambda _, row: row[0]])
def test_rows_of_a_cursor_are_read_whatever_form_it_gives_them(factory: Any) -> None:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = factory
    cursor = connection.execute("select cast(x'ff31' as text) as v, 'a' as k")
    table = opened(cursor, "sqlite3")
    assert table is not None
    column = table.fetch(["v", "k"])
    assert (column("v"), column("k")) == (["\udcff1"], ["a"])
    assert cursor.row_factory is factory and connection.text_factory is str


def _fails_at_one(text: bytes) -> float:
    if text == b"7":
        raise ValueError("secret cell")
    return float(text)


@pytest.mark.parametrize("factory", [str, bytes, bytearray, lambda text: text.decode("latin-1"), _fails_at_one])
def test_texts_of_a_connection_are_read_whatever_it_makes_of_them(factory: Any) -> None:
    connection = sqlite3.connect(":memory:")
    connection.text_factory = factory
    rows = "select column1 as v, column1 as k from (values ('7'), ('8'), (cast(x'ff31' as text)))"
    counted = pq.count(connection.execute(rows), "v")
    assert (counted.values.tolist(), counted.missing) == ([7.0, 8.0], 1)
    asked: dict[str, Any] = {"by": "k", "value": "v", "step": None, "others": True}
    column = GroupedColumn.of(open_table(connection.execute(rows)), keys=["7"], person="k", **asked)
    found = [(counts.values.tolist(), counts.missing) for counts in column.read(1, 1)]
    assert found == [([7.0], 0), ([8.0], 1)]
    assert connection.text_factory is factory


@pytest.mark.parametrize("cell", ["2020-01-02", "2020-13-01"])
@pytest.mark.parametrize("asked", ["select day, pay from t", 'select +day as "day [date]", pay from t'])
def test_no_converter_of_a_cursor_decides_what_is_released(asked: str, cell: str) -> None:
    """SQLite's own converter of dates fails at the second cell, after the charge."""
    connection = sqlite3.connect(":memory:", detect_types=sqlite3.PARSE_DECLTYPES | sqlite3.PARSE_COLNAMES)
    connection.execute("create table t (day date, pay real)")
    connection.executemany("insert into t values (?, ?)", [("2020-01-01", 1.0), (cell, 2.0)])
    ledger, options = pq.Ledger(3), {"epsilon": 1, "priors": pq.Uniform(0, 4), "mechanism": "tree"}
    for wanted in (asked.replace(", pay", ""), asked):
        with pytest.raises(TypeError, match=r"'day' has one\. .* coalesce"):
            pq.release(connection.execute(wanted), [0.5], ledger=ledger, **options)
    with pytest.raises(TypeError, match="without converters"):
        pq.count(connection.execute(asked), "pay", person="day")
    assert ledger.spent == 0
    plain = "select coalesce(day, null) as day, pay from t"
    assert pq.count(connection.execute(plain), "pay", person="day").counts.tolist() == [1, 1]
    pq.release(connection.execute("select pay from t"), [0.5], ledger=ledger, **options)
    assert ledger.spent == 1


class Unhashable(type):
    """A class of classes that cannot be put into a set."""

    __hash__ = None  # type: ignore[assignment]


class Nameless(type):
    """One whose classes say nothing of themselves."""

    def __getattribute__(cls, name: str) -> Any:
        raise RuntimeError(name)


@pytest.mark.parametrize("made", [Unhashable, Nameless])
@pytest.mark.parametrize("base", [object, float, int])
def test_a_record_of_any_class_counts_alone(made: type, base: type) -> None:
    """A list with one such record could not be read at all."""
    records = [1.0, type.__call__(made("Odd", (base,), {})), 3.0]
    held = np.empty(3, dtype=object)
    held[:] = [1.0, None, 3.0]
    held[1] = records[1]
    for x in (records, tuple(records), held):
        counted = pq.count(x)
        assert counted.missing + int(counted.counts.sum()) == 3 and {1.0, 3.0} <= set(counted.values.tolist())
    table = {"k": ["a"] * 3, "v": records, "p": records}
    asked: dict[str, Any] = {"by": "k", "value": "v", "keys": ["a"], "person": "p", "priors": pq.Cauchy(0, 1)}
    assert list(pq.release_groups(table, [0.5], epsilon=1, **asked).releases) == ["a"]


def test_zeros_of_both_signs_are_one_person_in_dask() -> None:
    dask = pytest.importorskip("dask.dataframe")
    columns = {"v": [1.0] * 4, "p": pa.array([0.0, -0.0, 1.0, None])}
    frame = dask.from_pandas(pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype), npartitions=1)
    grouped = GroupedColumn.of(open_table(frame), value="v", by=None, keys=None, person="p", step=None, others=False)
    assert grouped.engine
    assert len(grouped._in_engine().values) == 2
