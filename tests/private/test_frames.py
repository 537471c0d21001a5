"""Columns of data frames, nulls included, are released like arrays, and are never changed."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pytest

import pq
from pq.sequential import Session, Static

VALUES = [3.0, None, 1.0, 7.0, None, 2.0, 9.0]
P = pq.Uniform(0, 4)
KNOWN = [3.0, 1.0, 7.0, 2.0, 9.0]
COLUMNS: dict[str, Any] = {
    "pandas float": pd.Series(VALUES, dtype="float64"),
    "pandas nullable integer": pd.Series([3, None, 1, 7, None, 2, 9], dtype="Int64"),
    "pandas object": pd.Series(VALUES, dtype=object),
    "pandas with an odd index": pd.Series(VALUES, index=list("gfedcba")),
    "polars float": pl.Series(VALUES),
    "polars integer": pl.Series([3, None, 1, 7, None, 2, 9]),
    "polars with NaN": pl.Series([3.0, float("nan"), 1.0, 7.0, None, 2.0, 9.0]),
    "list": VALUES,
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_with_nulls_is_released_like_its_known_values(name: str) -> None:
    def once(x: Any) -> list[float]:
        return pq.release(x, [0.2, 0.6], epsilon=1, priors=pq.Cauchy(3, 2), grid=1, rng=7).values.tolist()

    assert once(COLUMNS[name]) == once(np.array(KNOWN))
    assert pq.max_gap(COLUMNS[name], [0.5], [2.5]) == pq.max_gap(KNOWN, [0.5], [2.5]) == 0


def test_columns_stay_as_they_are() -> None:
    x = pd.Series([5.0, np.inf, 1.0])
    before = x.copy()
    pq.release(x, [0.5], epsilon=1, priors=pq.Cauchy(0, 1))
    pd.testing.assert_series_equal(x, before)


def test_no_engine_is_needed_for_columns_without_one() -> None:
    """A fresh process where none can be imported releases, counts and inspects lists, arrays and text."""
    script = """
import sys
for name in ("polars", "pandas", "pyarrow", "duckdb", "dask"):
    sys.modules[name] = None
import numpy as np, pq
from pq.private.columns.text import CellRule, TextColumn
columns = [1.0, None, "2"], np.arange(3.0), np.array(["2026-03-01"], dtype="M8[D]"), TextColumn(["1"], CellRule())
for x in columns:
    pq.release(x, [0.5], epsilon=1, priors=pq.Cauchy(0, 1), mechanism="tree")
    pq.release(pq.count(x, grid=1), [0.5], epsilon=1, priors=pq.Cauchy(0, 1), mechanism="tree", grid=1)
    print(pq.inspect(x).unread)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr) == (["1", "0", "0", "0"], "")


class Watched:
    """A column of numbers that notes when it is asked what it declares, and when for its records."""

    def __init__(self, events: list[str]) -> None:
        self.events = events

    @property
    def dtype(self) -> np.dtype[Any]:
        self.events.append("declared")
        return np.dtype(np.float64)

    def __array__(self, dtype: Any = None, copy: Any = None) -> npt.NDArray[np.float64]:
        self.events.append("read")
        return np.array([3.0, 1.0, 2.0])


class Noted(pq.Ledger):
    """A ledger that notes when it is charged."""

    def __init__(self, events: list[str]) -> None:
        super().__init__(10)
        self.events = events

    def spend(self, *arguments: Any, **options: Any) -> Any:
        self.events.append("charged")
        return super().spend(*arguments, **options)


def test_a_column_is_declared_once_and_read_once_after_the_charge() -> None:
    events: list[str] = []
    x, ledger = Watched(events), Noted(events)
    session = Session(Static(pq.Uniform(0, 4), [0.5]), [0.5], epsilon=1, ledger=ledger)
    pq.release(x, [0.5], epsilon=1, priors=pq.Uniform(0, 4), ledger=ledger)
    pq.simulate(x, [0.5], trials=2, epsilon=1, priors=pq.Uniform(0, 4), ledger=ledger)
    session.step([], x)
    assert events == ["declared", "charged", "read"] * 3


class Undeclared:
    """A column that tells its type by what it holds only."""

    times = 0

    def __array__(self, dtype: Any = None, copy: Any = None) -> npt.NDArray[np.int64]:
        self.times += 1
        return np.array([3, 1, 2])


def test_a_column_that_declares_nothing_is_read_once() -> None:
    for use in (pq.SortedColumn, pq.count, pq.inspect, pq.Counts, lambda x: pq.release(x, [0.5], epsilon=1, priors=P)):
        x = Undeclared()
        use(x)
        assert x.times == 1


def test_what_can_be_read_once_is_looked_at_once() -> None:
    """As a cursor's result, or an iterator, whose second reading would find nothing."""
    assert pq.inspect(iter([1.0, None, "?"])).unread == 2
