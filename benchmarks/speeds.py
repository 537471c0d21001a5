"""All that a release costs, in one run, beside sorting the same array and its quantiles elsewhere:
`python -m benchmarks.speeds [--save FOLDER]`.

- release, prepared, trial: of an array in any order, of a `pq.SortedColumn`, and of `pq.simulate` for each trial.
- first: a release with quantiles that no call has had before, so that the tree is laid out; `again`: the next one.
- small budget: of a `pq.SortedColumn`, where no record is too far to weigh.
- day: of a sequence, by predictor; `to_sort` is then beside sorting 1,000 numbers.
- start: a new process that imports numpy, or `pq`, or releases from a small file by the command.

Times are of the processor, so that other work on the machine changes them least. Ratios are of calls that take turns in
one process. Tables are kept in a folder that is named after the machine's
processor and its instruction sets. What columns in odd orders cost is in `benchmarks.unsorted`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

import pq
from benchmarks.machine import beside, machine, save_for_machine
from benchmarks.one_release import PRIOR
from benchmarks.sequential_day import predictors, seconds, sort_seconds
from pq.private.columns import selection
from pq.private.fast.lanes import WALK

TRIALS = 40
OPTIONS: dict[str, Any] = {"priors": PRIOR, "mechanism": "tree"}
Row = dict[str, Any]


def even_levels(m: int) -> list[float]:
    """Evenly spaced quantiles."""
    return ((np.arange(m) + 1) / (m + 1)).tolist()


def releases(n: int, m: int, rounds: int) -> Iterator[Row]:
    """An array, the same prepared, and many trials at once."""
    x, levels = np.random.default_rng(n).normal(size=n), even_levels(m)
    column = pq.SortedColumn(x)
    calls: dict[str, tuple[Callable[[], Any], int]] = {
        "release": (lambda: pq.release(x, levels, epsilon=1, **OPTIONS), 1),
        "prepared": (lambda: pq.release(column, levels, epsilon=1, **OPTIONS), 1),
        "trial": (lambda: pq.simulate(column, levels, trials=TRIALS, epsilon=1, **OPTIONS), TRIALS),
    }
    for name, (call, each) in calls.items():
        yield {"what": name, "n": n, "m": m} | beside(call, x, levels, rounds, each)


def many_quantiles(m: int, n: int = 10**5) -> Iterator[Row]:
    """The first release with so many quantiles, and the best of some later ones."""
    column, levels = pq.SortedColumn(np.random.default_rng(m).normal(size=n)), even_levels(m)
    for name, calls in (("first", 1), ("again", 5)):
        least = float("inf")
        for _ in range(calls):
            start = time.process_time()
            pq.release(column, levels, epsilon=1, **OPTIONS)
            least = min(least, time.process_time() - start)
        yield {"what": name, "n": n, "m": m, "us": least * 1e6}


def small_budgets(n: int, rounds: int) -> Iterator[Row]:
    """Budgets at which ever more of the records are weighed."""
    x = np.random.default_rng(n).normal(size=n)
    column = pq.SortedColumn(x)
    for epsilon in (1e-2, 1e-3, 1e-4):

        def call(epsilon: float = epsilon) -> Any:
            return pq.release(column, [0.5], epsilon=epsilon, **OPTIONS)

        yield {"what": f"small budget {epsilon:g}", "n": n, "m": 1} | beside(call, x, [0.5], rounds)


def days(count: int) -> Iterator[Row]:
    """A day of each predictor beside a sort of 1,000 numbers."""
    data = pq.datasets.synthetic(count, rng=np.random.default_rng(0))
    for name, predictor in predictors(count).items():
        sort = sort_seconds(rounds=100, clock=time.process_time)
        least = float(seconds(predictor, data, 25, clock=time.process_time).min())
        yield {"what": f"day of {name}", "n": 100, "m": 9, "us": least * 1e6, "to_sort": least / sort}


def _of_children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def starts(rounds: int) -> Iterator[Row]:
    """New processes, their best of some rounds; modules are compiled before, as pip does when it installs them."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ages.csv"
        file.write_text("age\n" + "\n".join(str(20 + k % 60) for k in range(1000)) + "\n", encoding="utf-8")
        command = [sys.executable, "-m", "pq.cli", "release", str(file), "--column", "age", "--quantiles", "0.5"]
        commands = {
            "start of numpy": [sys.executable, "-c", "import numpy"],
            "start of pq": [sys.executable, "-c", "import pq"],
            "pq release of a file": [*command, "--epsilon", "1", "--prior", "normal(40, 20)"],
        }
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        kept["PYTHONPYCACHEPREFIX"] = folder
        for name, words in commands.items():
            subprocess.run(words, check=True, capture_output=True, env=kept)
            least = float("inf")
            for _ in range(rounds):
                start = _of_children()
                subprocess.run(words, check=True, capture_output=True, env=kept)
                least = min(least, _of_children() - start)
            yield {"what": name, "us": least * 1e6}


NAMES = ("what", "n", "m", "us", "to_sort", "to_quantile", "to_polars", "to_duckdb")


def all_rows(quick: bool, rounds: int) -> Iterator[Row]:
    """The rows of the table. quick: the smallest sizes."""
    yield from starts(1 if quick else 5)
    for n in (1000,) if quick else (1000, 10**5, 10**6):
        for m in (9,) if quick else (1, 9, 99):
            yield from releases(n, m, rounds)
    for m in (99,) if quick else (10**3, 10**4, 10**5):
        yield from many_quantiles(m)
    yield from small_budgets(10**3 if quick else 10**6, rounds)
    yield from days(30 if quick else 1000)


@click.command()
@click.option("--rounds", default=5, show_default=True, help="Turns of the calls.")
@click.option("--quick", is_flag=True, help="The smallest sizes, to see that it runs.")
@click.option("--save", type=click.Path(file_okay=False, path_type=Path), help="Keep the table in this folder.")
def main(rounds: int, quick: bool, save: Path | None) -> None:
    """Time releases of all kinds."""
    click.echo(machine())
    for engine in (selection.COUNT, selection.COLLECT, selection.BETWEEN, WALK):
        engine.ready(1e9)
    rows: list[Row] = []
    for row in all_rows(quick, rounds):
        rows.append({name: row.get(name, "") for name in NAMES})
        click.echo("  ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{v}" for k, v in row.items()))
    if save is not None:
        click.echo(save_for_machine(save, "speeds", rows))


if __name__ == "__main__":
    main()
