"""A release in a thousand groups beside the engine's own count: `python -m benchmarks.many_groups [--save FILE]`.

Rows of a Parquet file have a text for a key, one of a thousand public ones, and a value on a grid. Each engine counts
them by key and value in its own words, and `pq.release_groups` releases three quantiles of every group through it, in
turn, in a process of the engine's own; the least time counts. Times are those of all processors together, which other
work on the machine disturbs least; memory is that of the whole process, libraries included, after the first release.
The counts by which groups are released must be the engine's own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

import pq
from benchmarks.large_column import peak_megabytes
from benchmarks.stored import save_rows
from pq.private.columns.grouping import GroupedColumn, open_table

GROUP_ENGINES = ("polars", "duckdb", "dask")
GROUPS, VALUES, TIMES = 1_000, 200, 5
QUANTILES = [0.25, 0.5, 0.75]


def keys() -> list[str]:
    """The public keys."""
    return [f"department {i:03d}" for i in range(GROUPS)]


def write_rows(path: Path, rows: int, seed: int = 0) -> None:
    """Make the file; a few rows are of no public key."""
    import pyarrow as pa
    import pyarrow.parquet as files

    rng = np.random.default_rng(seed)
    places = rng.integers(0, GROUPS + 1, rows).astype(np.int32)
    texts = pa.DictionaryArray.from_arrays(pa.array(places), pa.array([*keys(), "closed"])).cast(pa.string())
    values = np.clip(np.rint(rng.normal(VALUES / 2, VALUES / 8, rows)), 0, VALUES - 1)
    files.write_table(pa.table({"key": texts, "value": values}), path, row_group_size=1_000_000)


def opened_by(engine: str, path: Path) -> tuple[Any, Callable[[], Any]]:
    """A query of an engine, and the engine's own count of its rows by key and value."""
    if engine == "polars":
        import polars as pl

        query = pl.scan_parquet(path)
        return query, lambda: query.group_by("key", "value").len("n").collect(engine="streaming").to_pandas()
    if engine == "duckdb":
        import duckdb

        relation = duckdb.read_parquet(str(path))
        return relation, lambda: relation.aggregate("key, value, count(*) AS n").to_arrow_table().to_pandas()
    import dask.dataframe as dd

    frame = dd.read_parquet(path, split_row_groups=True)
    return frame, lambda: frame.groupby(["key", "value"]).size().compute().rename("n").reset_index()


def release_once(query: Any) -> pq.GroupedRelease:
    """Quartiles of every group."""
    return pq.release_groups(
        query, QUANTILES, by="key", value="value", keys=keys(), epsilon=1, priors=pq.Cauchy(100, 20), grid=1
    )


def counts_agree(query: Any, table: Any) -> bool:
    """Whether groups are released from the counts that the engine itself finds."""
    column = GroupedColumn.of(
        open_table(query), value="value", by="key", keys=keys(), person=None, step=None, others=False
    )
    known: dict[str, dict[float, int]] = {key: {} for key in [*keys(), "closed"]}
    for key, value, n in table[["key", "value", "n"]].itertuples(index=False):
        known[key][value] = n
    return all(
        dict(zip(found.values.tolist(), found.counts.tolist(), strict=True)) == known[key]
        for key, found in zip(keys(), column.read(1, 1), strict=True)
    )


def seconds_of(work: Callable[[], Any]) -> float:
    """Seconds that a piece of work takes all processors together."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def measured_groups(engine: str, path: Path) -> dict[str, Any]:
    """A release in this process, then both jobs in turn; returns the row of the table."""
    query, own_count = opened_by(engine, path)
    start = time.perf_counter()
    release_once(query)
    waited, peak = time.perf_counter() - start, peak_megabytes()
    pairs = [(seconds_of(own_count), seconds_of(lambda: release_once(query))) for _ in range(TIMES)]
    own, mine = (min(times) for times in zip(*pairs, strict=True))
    return {
        "engine": engine,
        "own_count_seconds": round(own, 2),
        "release_seconds": round(mine, 2),
        "to_own_count": round(mine / max(own, 0.01), 2),
        "first_release_waited": round(waited, 1),
        "peak_mb": round(peak),
        "counts_agree": counts_agree(query, own_count()),
    }


@click.command()
@click.option("--rows", default=10_000_000, show_default=True)
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Write the table to this CSV file too.")
@click.option("--one", "alone", nargs=2, hidden=True)
def main(rows: int, save: Path | None, alone: tuple[str, str] | None) -> None:
    """Release ROWS rows in a thousand groups with every engine, beside its own count, each in a process of its own."""
    if alone is not None:
        click.echo(json.dumps(measured_groups(alone[0], Path(alone[1]))))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_rows(path, rows)
        table = [{"rows": rows, "groups": GROUPS, **_apart(engine, path)} for engine in GROUP_ENGINES]
    if save is not None:
        save_rows(save, table)


def _apart(engine: str, path: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.many_groups", "--one", engine, str(path)]
    row: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    click.echo("  ".join(f"{name} {value}" for name, value in row.items()))
    return row


if __name__ == "__main__":
    main()
