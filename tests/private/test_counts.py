"""A column counted where it lives is the same Counts for every engine, odd values and counts included."""

from __future__ import annotations

import datetime
import pickle
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
import pytest

import pq
from pq.core.kind import NUMBER
from pq.private.columns.cells import Lattice
from pq.private.columns.door import LARGEST
from pq.private.columns.frames import records_of

NAN, INF = float("nan"), float("inf")
ODD = [3.0, None, 1.0, NAN, INF, -INF, 0.0, -0.0, 3.0, LARGEST, 2.5, -2.5, 1e-320, 0.30000000000000004, -1.5, 0.5, 1e20]
ODD_COUNTS = [1, 2, 3, 4, 5, -6, 7, 8, None, 10, 11, 12, 0, 13, 14, 15, 16]


def _dask(table: pa.Table, arrow: bool) -> Any:
    frame = table.to_pandas(types_mapper=pd.ArrowDtype if arrow else None)
    return dd.from_pandas(frame, npartitions=3)


ENGINES: dict[str, Callable[[pa.Table], Any]] = {
    "polars": pl.from_arrow,
    "polars, lazy": lambda table: pl.from_arrow(table).lazy(),  # type: ignore[union-attr]
    "pandas": lambda table: table.to_pandas(),
    "pandas, arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "pyarrow": lambda table: table,
    "duckdb": duckdb.from_arrow,
    "dask": lambda table: _dask(table, arrow=False),
    "dask, arrow": lambda table: _dask(table, arrow=True),
}
engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    with dask.config.set(scheduler="synchronous"):
        yield


def facts(counts: pq.Counts) -> tuple[list[float], list[int], int]:
    return counts.values.tolist(), counts.counts.tolist(), counts.missing


def expected(values: Any, counts: Any = None) -> tuple[list[float], list[int], int]:
    """One by one, with dictionaries."""
    found: dict[float, int] = {}
    missing = 0
    for value, records in zip(values, [1] * len(values) if counts is None else counts, strict=True):
        known = 0 if records is None or records != records or records <= 0 else int(records)
        if value is None or value != value:
            missing += known
        elif known:
            clipped = min(max(float(value), -LARGEST), LARGEST)
            found[clipped] = found.get(clipped, 0) + known
    return sorted(found), [found[v] for v in sorted(found)], missing


@engines
def test_odd_records_count_as_in_a_plain_column(engine: Callable[[pa.Table], Any]) -> None:
    table = pa.table({"other": pa.array(ODD_COUNTS), "x": pa.array(ODD)})
    counts = pq.count(engine(table), "x")
    assert facts(counts) == expected(ODD)
    for on_nan in ("drop", "lowest", "highest"):
        placed = counts.placed(on_nan)
        np.testing.assert_array_equal(np.repeat(placed.values, placed.counts), records_of(ODD, on_nan)[0])
        assert placed.missing == 0


@engines
def test_odd_counts_never_raise(engine: Callable[[pa.Table], Any]) -> None:
    table = pa.table({"x": pa.array(ODD), "n": pa.array(ODD_COUNTS)})
    assert facts(pq.count(engine(table), "x", "n")) == expected(ODD, ODD_COUNTS)
    numbers = [2.7, None, NAN, -INF, 1.0, 0.99, 5.0, -3.0]
    table = pa.table({"x": pa.array([1.0, 1.0, 2.0, 3.0, 4.0, 5.0, None, 7.0]), "n": pa.array(numbers)})
    assert facts(pq.count(engine(table), "x", "n")) == ([1.0, 4.0], [2, 1], 5)


@engines
def test_more_records_than_floats_can_count(engine: Callable[[pa.Table], Any]) -> None:
    table = pa.table({"x": pa.array([2.0, 1.0, 2.0, 3.0]), "n": pa.array([INF, 2.0, 1e300, 4.0])})
    counts = pq.count(engine(table), "x", "n")
    assert facts(counts) == ([1.0, 2.0], [2, 2**53 - 2], 0)


@engines
def test_integers_of_any_size_are_rounded_to_the_nearest_float(engine: Callable[[pa.Table], Any]) -> None:
    signed, unsigned = [2**60, -(2**63), None, 5, 2**63 - 1, 2**53 + 1], [2**64 - 1, 3, None, 5, 2**53 + 3, 3]
    table = pa.table({"a": pa.array(signed), "b": pa.array(unsigned, type=pa.uint64())})
    for name, values in (("a", signed), ("b", unsigned)):
        assert facts(pq.count(engine(table), name)) == expected(values)


@engines
def test_other_types_of_numbers(engine: Callable[[pa.Table], Any]) -> None:
    columns = {
        "bool": pa.array([True, False, False, True]),
        "float32": pa.array([0.1, None, 0.1, -1.0], type=pa.float32()),
        "int8": pa.array([-128, 127, 0, 0], type=pa.int8()),
        "empty": pa.array([None] * 4, type=pa.float64()),
    }
    frame = engine(pa.table(columns))
    for name, column in columns.items():
        assert facts(pq.count(frame, name)) == expected(column.to_pylist())


@engines
def test_no_rows(engine: Callable[[pa.Table], Any]) -> None:
    assert facts(pq.count(engine(pa.table({"x": pa.array([], type=pa.float64())})))) == ([], [], 0)


@engines
@pytest.mark.parametrize("grid", [1, 0.1, 0.25, 3, 0.7, 1e-3, 1e15])
def test_rounding_to_a_grid_is_that_of_a_release(engine: Callable[[pa.Table], Any], grid: float) -> None:
    rng = np.random.default_rng(0)
    x = [*ODD, *(rng.integers(-40, 40, 300) * grid / 2), *rng.normal(0, 10 * grid, 300)]
    counts = pq.count(engine(pa.table({"x": pa.array(x)})), grid=grid)
    step = Fraction(str(grid))
    with np.errstate(all="ignore"):
        whole = Lattice.of(records_of(x)[0], step)
        again = Lattice.of(np.repeat(counts.values, counts.counts), step)
    np.testing.assert_array_equal(whole.values, again.values)
    np.testing.assert_array_equal(whole.before, again.before)
    assert len(counts.values) == len(whole.values)


def test_files_are_reduced_by_their_engines(tmp_path: Path) -> None:
    x = np.round(np.random.default_rng(1).normal(0, 50, 100_000))
    for part in range(4):
        pyarrow.parquet.write_table(pa.table({"x": x[part::4]}), tmp_path / f"part-{part}.parquet", row_group_size=5000)
    values, records = np.unique(x, return_counts=True)
    files = str(tmp_path / "*.parquet")
    queries = (pl.scan_parquet(files), duckdb.read_parquet(files), dd.read_parquet(files), dd.read_parquet(files)["x"])
    for query in queries:
        assert facts(pq.count(query)) == ((values + 0.0).tolist(), records.tolist(), 0)


COLUMNS: dict[str, tuple[Any, tuple[list[float], list[int], int]]] = {
    "list": ([2, None, "1", 2], ([1.0, 2.0], [1, 2], 1)),
    "array": (np.array([2.0, NAN, 2.0]), ([2.0], [2], 1)),
    "masked array": (np.ma.masked_greater(np.array([2.0, 9.0, 2.0]), 5), ([2.0], [2], 1)),
    "pandas series": (pd.Series([2, 1, 2]), ([1.0, 2.0], [1, 2], 0)),
    "pandas object": (pd.Series([2, "b", None, 2.0]), ([2.0], [2], 2)),
    "pandas category": (pd.Series([2, 1, 2], dtype="category"), ([1.0, 2.0], [1, 2], 0)),
    "polars series": (pl.Series([2, None, 2]), ([2.0], [2], 1)),
    "polars nothing": (pl.Series([None, None]), ([], [], 2)),
    "polars decimal": (pl.Series(["0.10", "0.1"]).cast(pl.Decimal(10, 2)), ([0.1], [2], 0)),
    "rows of a cursor": ([(2,), (1,), (2,)], ([1.0, 2.0], [1, 2], 0)),
    "scalars of pyarrow": (list(pa.array([2, None, 2])), ([2.0], [2], 1)),
    "arrays without dimensions": ([np.array(2), None, np.array(2.0)], ([2.0], [2], 1)),
    "dictionary": (pa.array([2, 1, 2, None]).dictionary_encode(), ([1.0, 2.0], [1, 2], 1)),
    "run ends": (
        pyarrow.compute.run_end_encode(pa.array([2, 2, None])),
        ([2.0], [2], 1),
    ),
    "pandas sparse": (pd.Series(pd.arrays.SparseArray([2.0, NAN, 2.0])), ([2.0], [2], 1)),
    "dask series": (dd.from_pandas(pd.Series([2.0, NAN, 2.0]), npartitions=2), ([2.0], [2], 1)),
    "unnamed frame": (pd.DataFrame([2, 1, 2]), ([1.0, 2.0], [1, 2], 0)),
    "counts": (pq.Counts([2.0, 1.0], [2, 1]), ([1.0, 2.0], [1, 2], 0)),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_single_columns(name: str) -> None:
    column, wanted = COLUMNS[name]
    assert facts(pq.count(column)) == wanted


@engines
def test_a_table_of_one_column_is_a_column(engine: Callable[[pa.Table], Any]) -> None:
    """For releases and evaluation; a table of several has to be asked for one of them."""
    table, options = pa.table({"x": ODD, "n": ODD_COUNTS}), {"epsilon": 1, "priors": pq.Cauchy(0, 1), "rng": 0}
    found = pq.release(engine(table.select(["x"])), [0.2, 0.7], **options)
    assert np.array_equal(found.values, pq.release(ODD, [0.2, 0.7], **options).values)
    assert pq.max_gap(engine(table.select(["x"])), [0.2, 0.7], found.values) == pq.max_gap(
        ODD, [0.2, 0.7], found.values
    )
    with pytest.raises(ValueError, match=r"^value must name one of the columns x, n"):
        pq.release(engine(table), [0.2], **options)
    with pytest.raises(ValueError, match=r"^x must be one-dimensional"):
        pq.SortedColumn(engine(table.select(["x"])))


FRAME = pl.DataFrame({"a": [1], "b": [2], "s": ["x"], "t": [datetime.date(2020, 1, 1)]})


@pytest.mark.parametrize(
    ("x", "options", "error", "message"),
    [
        (FRAME, {}, ValueError, "^value must name one of the columns a, b, s, t"),
        (FRAME, {"value": "c"}, ValueError, "^value must .* got 'c'"),
        (FRAME, {"value": "a", "count": "c"}, ValueError, "^count must .* got 'c'"),
        (FRAME.lazy(), {"value": "s"}, TypeError, "^value must name a column of numbers"),
        (FRAME.lazy(), {"value": "a", "count": "t"}, TypeError, "^count must name a column of numbers"),
        (FRAME, {"value": "s"}, TypeError, "^value must name a column of numbers.* 's' is of type String$"),
        (FRAME.to_arrow(), {"value": "s"}, TypeError, "^value must name a column of numbers"),
        (FRAME, {"value": "a", "count": "t"}, TypeError, "^count must name a column of numbers"),
        (FRAME, {"value": "a", "grid": 0}, ValueError, "^grid must"),
        ([1.0], {"value": "a"}, TypeError, "^x must be a table"),
        ("text", {}, TypeError, "^x must be"),
        (np.zeros((2, 2)), {}, ValueError, "^x must be one-dimensional"),
        (None, {}, TypeError, "^x must be"),
        (3, {}, TypeError, "^x must be"),
    ],
)
def test_what_is_refused_is_named(x: Any, options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pq.count(x, **options)


def test_counts_made_by_hand() -> None:
    counts = pq.Counts([3, 1, None, 3, INF, -0.0, 5], [1, 2.9, 4, 2, 1, 1, -1], missing=1)
    assert facts(counts) == ([0.0, 1.0, 3.0, LARGEST], [1, 2, 3, 1], 5)
    assert not np.signbit(counts.values[0])
    assert (counts.values.dtype, counts.counts.dtype) == (np.float64, np.int64)
    assert not counts.values.flags.writeable and not counts.counts.flags.writeable
    assert facts(pickle.loads(pickle.dumps(counts))) == facts(counts)
    with pytest.raises(ValueError, match=r"^counts must be one for each"):
        pq.Counts([1.0, 2.0], [1])
    with pytest.raises(TypeError, match=r"^counts must be"):
        pq.Counts([1.0], "1")
    with pytest.raises(TypeError, match=r"^values must be"):
        pq.Counts(np.array(["a"]), [1])


def test_counts_keep_the_callers_arrays() -> None:
    values, counts = np.array([1.0, 2.0]), np.array([1.0, 2.0])
    made = pq.Counts(values, counts)
    assert values.flags.writeable and counts.flags.writeable
    values[0] = 7.0
    assert made.values.tolist() == [1.0, 2.0]


def test_the_text_of_counts_tells_nothing() -> None:
    assert repr(pq.Counts([123.0], [456])) == str(pq.Counts([7.0], [8])) == "<Counts of a sensitive column>"


@pytest.mark.parametrize("grid", [None, 1, 0.5])
@pytest.mark.parametrize("on_nan", ["drop", "lowest", "highest"])
def test_a_release_of_counts_is_that_of_the_records(grid: Any, on_nan: Any) -> None:
    rng = np.random.default_rng(3)
    for n in (0, 1, 5, 200):
        x = np.where(rng.random(n) < 0.1, NAN, np.round(rng.normal(0, 8, n) * 4) / 4)
        x[::50] = INF
        counts = pq.count(pl.DataFrame({"x": x}).lazy(), grid=grid)
        options: dict[str, Any] = {"epsilon": 1, "priors": pq.Cauchy(0, 5), "grid": grid, "on_nan": on_nan}
        options["mechanism"] = "tree"
        for seed in range(5):
            released = [pq.release(y, [0.9, 0.1, 0.5], rng=seed, **options).values for y in (x, counts)]
            np.testing.assert_array_equal(*released)
            densities = [pq.log_density(y, released[0], [0.9, 0.1, 0.5], **options) for y in (x, counts)]
            gaps = [pq.gap(y, [0.9, 0.1, 0.5], released[0]) for y in (x, counts, pq.SortedColumn(x))]
            if grid is None:
                np.testing.assert_array_equal(gaps[0], gaps[1])
            np.testing.assert_array_equal(gaps[0], gaps[2])
            assert densities[0] == pytest.approx(densities[1], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_counts_by_group_are_those_of_each_group(seed: int) -> None:
    """Also where records are more than a column may hold, in one group or in all together."""
    rng = np.random.default_rng(seed)
    n, groups = int(rng.integers(0, 200)), int(rng.integers(1, 6))
    odd = np.array([NAN, INF, -INF, 0.0, -0.0, 1.5, -1.5, LARGEST, 5e-324])
    values = np.where(rng.random(n) < 0.5, rng.choice(odd, n), rng.integers(-3, 4, n) / 2.0)
    largest = int(rng.choice([1, 10, 2**46, 2**53]))
    places, records = rng.integers(0, groups, n), rng.integers(0, largest, n, endpoint=True)
    made = pq.Counts.by_group(NUMBER, places, groups, values, records, 3)
    assert len(made) == groups
    for group, counts in enumerate(made):
        alone = pq.Counts(values[places == group], records[places == group], max_contributions=3)
        assert facts(counts) == facts(alone)
        assert counts.values.view(np.uint64).tolist() == alone.values.view(np.uint64).tolist()  # one zero
        assert counts.max_contributions == 3 and counts.kind == alone.kind
        assert (counts.values.dtype, counts.counts.dtype) == (alone.values.dtype, alone.counts.dtype)
        assert not counts.values.flags.writeable and not counts.counts.flags.writeable
