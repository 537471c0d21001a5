"""No record of a table decides whether an engine's query fails, or how a text is read."""

import sqlite3
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from pq.private.columns.grouping import GroupedColumn, open_table
from pq.private.columns.tables import opened


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


def test_zeros_of_both_signs_are_one_person_in_dask() -> None:
    dask = pytest.importorskip("dask.dataframe")
    columns = {"v": [1.0] * 4, "p": pa.array([0.0, -0.0, 1.0, None])}
    frame = dask.from_pandas(pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype), npartitions=1)
    grouped = GroupedColumn.of(open_table(frame), value="v", by=None, keys=None, person="p", step=None, others=False)
    assert grouped.engine
    assert len(grouped._in_engine().values) == 2
