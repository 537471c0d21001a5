"""Grids of experiments as units of work that run in parallel and survive being killed.

A unit is a function with its arguments. Its random numbers come from streams named by what it computes (see
`pqlab.experiments.static.stream`), so its rows depend on its name and the seed alone: not on the other units, their
order, the number of workers, or what happened before. Finished units lie in a folder as Parquet files, one each, that
appear there whole or not at all.

Units run under joblib with the backend that the caller has chosen, on one machine or on a cluster:

    with joblib.parallel_config(backend="dask"):
        table = run(units, folder)
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import joblib
import polars as pl
from tqdm import tqdm

from pqlab.experiments.table import Row

UNFINISHED = ".unfinished-"
SCHEMA: dict[str, Any] = {
    "figure": pl.String,
    "data": pl.String,
    "variant": pl.String,
    "method": pl.String,
    "m": pl.Int64,
    "epsilon": pl.Float64,
    "mixture": pl.Float64,
    "trial": pl.Int64,
    "day_block": pl.Int64,
    "first_day": pl.Int64,
    "last_day": pl.Int64,
    "max_gap": pl.Float64,
    "median_gap": pl.Float64,
}


@dataclass(frozen=True)
class Unit:
    """Some cells of a grid that are computed together.

    figure, data: what the rows belong to. function: of a module, called with `seed` and the options; it returns rows
    with columns of `SCHEMA`, those that do not apply left out. options: what JSON can write, nothing else.
    """

    figure: str
    data: str
    function: Callable[..., Sequence[Row]]
    options: Mapping[str, Any] = field(default_factory=dict)

    def name(self, seed: int) -> str:
        """All that the rows depend on, the program apart, as a text.

        >>> from pqlab.experiments.table import select
        >>> Unit("a", "b", select, {"m": 2}).name(0)
        '{"data": "b", "figure": "a", "function": "pqlab.experiments.table:select", "options": {"m": 2}, "seed": 0}'
        """
        function = f"{self.function.__module__}:{self.function.__qualname__}"
        facts = {"figure": self.figure, "data": self.data, "function": function, "options": dict(self.options)}
        return json.dumps(facts | {"seed": seed}, sort_keys=True, allow_nan=False)

    def file(self, folder: Path, seed: int) -> Path:
        """Where the unit's rows lie when it is finished."""
        key = hashlib.sha256(self.name(seed).encode()).hexdigest()[:20]
        return folder / self.figure / f"{self.data}-{key}.parquet"

    def rows(self, seed: int) -> pl.DataFrame:
        """Compute the unit."""
        rows = self.function(seed=seed, **self.options)
        facts = {"figure": self.figure, "data": self.data}
        return pl.DataFrame([facts | row for row in rows], schema=SCHEMA, orient="row")


def run(
    units: Sequence[Unit], folder: Path, *, seed: int = 0, workers: int | None = None, progress: bool = False
) -> pl.DataFrame:
    """The rows of all units, in their order, computing those that are not in the folder yet.

    folder: of the parts; any number of grids may share one. workers: processes, or None for what
    `joblib.parallel_config` says, one if it says nothing. progress: show a bar on stderr.

    May be stopped at any moment, by kill -9 too; the next call goes on with the units that are missing. A unit that
    raises stops the run. Raises `ValueError` naming units if two are the same.

    The table is the same for any number of workers and however often the run was stopped.
    """
    files = {unit.file(folder, seed): unit for unit in units}
    if len(files) < len(units):
        raise ValueError("units must differ from each other")
    _clear(folder)
    missing = {file: unit for file, unit in files.items() if not file.exists()}
    with tqdm(
        total=len(files), initial=len(files) - len(missing), disable=None if progress else True, unit="unit"
    ) as bar:
        for file, rows in _finished(missing, seed, workers):
            write_whole(file, rows.write_parquet)
            bar.update()
    parts = [pl.read_parquet(file) for file in files]
    return pl.concat(parts) if parts else pl.DataFrame(schema=SCHEMA)


def _finished(units: Mapping[Path, Unit], seed: int, workers: int | None) -> Iterator[tuple[Path, pl.DataFrame]]:
    """Units as they finish, where the backend tells so; else some at a time, so that little is lost by a kill."""
    calls = [joblib.delayed(_compute)(file, unit, seed, os.getpid()) for file, unit in units.items()]
    try:
        parallel = joblib.Parallel(n_jobs=workers, batch_size=1, return_as="generator_unordered")
    except ValueError:  # not every backend can
        parallel = joblib.Parallel(n_jobs=workers, batch_size=1)
        some = 2 * joblib.effective_n_jobs(workers)
        for start in range(0, len(calls), some):
            yield from parallel(calls[start : start + some])
    else:
        yield from parallel(calls)


def _compute(file: Path, unit: Unit, seed: int, caller: int) -> tuple[Path, pl.DataFrame]:
    if multiprocessing.current_process().name.startswith("LokyProcess"):
        _end_with(caller)
    return file, unit.rows(seed)


@cache
def _end_with(caller: int) -> None:
    """Let this worker of joblib end when its parent is gone, by kill -9 too; else it would wait for minutes."""

    def watch() -> None:
        while os.getppid() == caller:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Let `write` make a file that appears at the path whole, or not at all if it is interrupted at any moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{UNFINISHED}{os.getpid()}-{path.name}")
    write(draft)
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    draft.replace(path)


def _clear(folder: Path) -> None:
    """Remove what interrupted runs left half written."""
    for draft in folder.glob(f"*/{UNFINISHED}*"):
        draft.unlink(missing_ok=True)
