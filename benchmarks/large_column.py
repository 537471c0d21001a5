"""Counting a column larger than memory where it lives: `python -m benchmarks.large_column [--save FILE]`.

Rows of Parquet files are made on disk: `x`, a normal number with all its digits, and `day`, a whole number, each with
some missing and infinite ones. Every engine then counts each column in a process of its own, whose peak memory is that
of the whole process, libraries included. The counts must be those that were kept while the files were written.

`x` has as many values as rows, so it is rounded to a grid of 0.01 while it is counted.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.stored import save_rows
from pq.private.columns.frames import count

ENGINES = ("polars", "duckdb", "dask")
COLUMNS: dict[str, float | None] = {"day": None, "x": 0.01}
CHUNK, FILE_CHUNKS = 1_000_000, 5
ODD = (np.nan, np.inf, -np.inf)


def write(folder: Path, rows: int, seed: int = 0) -> None:
    """Make the files, and `known.json` with the counts of each column."""
    import pyarrow as pa
    import pyarrow.parquet as pq_files

    known: dict[str, dict[float, int]] = {name: {} for name in COLUMNS}
    rng, writer = np.random.default_rng(seed), None
    for k, start in enumerate(range(0, rows, CHUNK)):
        n = min(CHUNK, rows - start)
        table = {"x": rng.normal(40.0, 10.0, n), "day": rng.integers(0, 40_000, n).astype(np.float64)}
        for values in table.values():
            values[rng.integers(0, n, n // 1000)] = rng.choice(ODD, n // 1000)
        for name, grid in COLUMNS.items():
            _keep(known[name], table[name] if grid is None else np.rint(table[name] * 100.0) / 100.0)
        if k % FILE_CHUNKS == 0:
            if writer is not None:
                writer.close()
            schema = pa.schema([(name, pa.float64()) for name in table])
            writer = pq_files.ParquetWriter(folder / f"part-{k // FILE_CHUNKS:04d}.parquet", schema)
        writer.write_table(pa.table(table))
    if writer is not None:
        writer.close()
    facts = {name: [[v, c] for v, c in sorted(counts.items())] for name, counts in known.items()}
    (folder / "known.json").write_text(json.dumps(facts), encoding="utf-8")


def _keep(known: dict[float, int], values: np.ndarray[Any, Any]) -> None:
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    for value, records in zip((distinct + 0.0).tolist(), counts.tolist(), strict=True):
        known[value] = known.get(value, 0) + records


def query(engine: str, folder: Path) -> Any:
    """The files as a query of an engine."""
    files = str(folder / "*.parquet")
    if engine == "polars":
        import polars as pl

        return pl.scan_parquet(files)
    if engine == "duckdb":
        import duckdb

        return duckdb.read_parquet(files)
    import dask.dataframe as dd

    return dd.read_parquet(files)


def one(engine: str, column: str, folder: Path) -> dict[str, Any]:
    """Count a column in this process; returns the row of the table."""
    start = time.perf_counter()
    counts = count(query(engine, folder), column, grid=COLUMNS[column])
    seconds = time.perf_counter() - start
    peak = peak_megabytes()
    known = json.loads((folder / "known.json").read_text(encoding="utf-8"))[column]
    wanted = [(value, records) for value, records in known if np.isfinite(value)]
    found = [pair for pair in zip(counts.values.tolist(), counts.counts.tolist(), strict=True) if abs(pair[0]) < 1e9]
    return {
        "engine": engine,
        "column": column,
        "grid": COLUMNS[column] or "",
        "rows": int(counts.counts.sum()) + counts.missing,
        "values": len(counts.values),
        "seconds": round(seconds, 1),
        "peak_mb": round(peak),
        "counts_agree": found == [(v, c) for v, c in wanted] and sum(c for _, c in known) == int(counts.counts.sum()),
    }


def peak_megabytes() -> float:
    """The most memory that this process has held; the kernel's own count, where there is one, leaves out the parent."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    (line,) = (line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


@click.command()
@click.option("--rows", default=100_000_000, show_default=True)
@click.option("--folder", type=click.Path(path_type=Path), help="Where the files are or will be; by default temporary.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Write the table to this CSV file too.")
@click.option("--one", "alone", nargs=2, hidden=True)
def main(rows: int, folder: Path | None, save: Path | None, alone: tuple[str, str] | None) -> None:
    """Count columns of ROWS rows with every engine, each in a process of its own."""
    if alone is not None and folder is not None:
        click.echo(json.dumps(one(*alone, folder)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        place = folder or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        if not (place / "known.json").exists():
            write(place, rows)
        size = sum(path.stat().st_size for path in place.glob("*.parquet"))
        click.echo(f"{rows:,} rows, files of {size / 1e6:,.0f} MB")
        table = [_apart(engine, column, place) for column in COLUMNS for engine in ENGINES]
    if save is not None:
        save_rows(save, table)


def _apart(engine: str, column: str, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.large_column", "--one", engine, column, "--folder", str(folder)]
    row: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    click.echo("  ".join(f"{name} {value}" for name, value in row.items()))
    return row


if __name__ == "__main__":
    main()
