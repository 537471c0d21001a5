"""Sequences that learn distributions, beside the sequential experiments of the paper (Section 5.3).

    python -m pqlab.experiments.distributions --parts FOLDER

makes `results/distributions/learned.csv`: the largest gap of nine quantiles by `pq.sequential.PubDistribution`, on the
days, features and trials of `results/sequential`, whose tables hold the other methods. It may be stopped at any moment
and goes on from the folder of finished parts. Every release is one `Session.step`, from a stream that task, budget and
trial name.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
import polars as pl
from polars import selectors

import pq
from pqlab.experiments import report
from pqlab.experiments.figures import day_rows
from pqlab.experiments.grid import Unit, run
from pqlab.experiments.lane_gaps import lane_max_gaps
from pqlab.experiments.sequential_tasks import METHODS, TASKS, Task
from pqlab.experiments.static import even_quantiles, stream
from pqlab.experiments.table import Row

RESULTS = Path(__file__).resolve().parents[2] / "results" / "distributions"
METHOD = "distribution"
TASK_NAMES = ("worldnews", "flights_air_time", "flights_delay", "synthetic_noisy", "citibike")
EPSILONS = (0.01, 0.1, 1.0)
TRIALS, BLOCK, DAY_BLOCKS = 40, 5, 10
QUANTILES = even_quantiles(9)
LANE: Any = lane_max_gaps
MEASURED = ("day_block", "first_day", "last_day", "trials", "max_gap", "max_gap_error")
OTHERS = ("uniform", "cauchy", "half_cauchy", "prev", "prox", "dp", "open")
LABELS = METHODS | {METHOD: "PubDistribution"}


def learner(task: Task, dimension: int) -> pq.sequential.PubDistribution:
    """The predictor with the guesses that all others have; nothing is guessed about the number of records."""
    return pq.sequential.PubDistribution(
        QUANTILES, loc=task.loc, scale=task.scale, dimension=dimension, robust=task.robust
    )


def gaps_of_trial(
    name: str, epsilon: float, trial: int, days: int | None = None, seed: int = 0
) -> npt.NDArray[np.int32]:
    """Largest gap (days,) over the quantiles on every day of one trial, in records.

    >>> gaps_of_trial("synthetic_noisy", 1.0, 0, days=3).shape
    (3,)
    """
    task = TASKS[name]
    data = task.load(days, trial, seed)
    grid = Fraction(task.resolution).limit_denominator(10_000) if task.tied else None
    session = pq.sequential.Session(
        learner(task, data.features.shape[1]),
        QUANTILES,
        epsilon=epsilon,
        grid=grid,
        rng=stream(seed, "distribution", name, epsilon, len(data), trial),
    )
    shares = np.array([[q.numerator, q.denominator] for q in QUANTILES])
    gaps = np.empty(len(data), dtype=np.int32)
    for t, (features, x) in enumerate(zip(data.features, data.datasets, strict=True)):
        records = np.sort(np.asarray(x, dtype=np.float64))
        values = session.step(features, records).values
        if task.tied:  # the multiples of the step that the records are, to the last bit
            values = np.rint(values / task.resolution) * task.resolution
        targets = len(records) * shares[:, 0] // shares[:, 1]
        gaps[t] = LANE(records[None], np.array([len(records)]), targets[None], np.ascontiguousarray(values[None]))[0]
    return gaps


def unit_rows(*, task: str, epsilon: float, days: int | None, first_trial: int, trials: int, seed: int) -> list[Row]:
    """Mean and median gap by trial: over all days, block -1, and over tenths of them."""
    return [
        {"method": METHOD, "m": len(QUANTILES), "epsilon": epsilon, "trial": trial} | row
        for trial in range(first_trial, first_trial + trials)
        for row in day_rows(gaps_of_trial(task, epsilon, trial, days, seed), DAY_BLOCKS)
    ]


def units(
    tasks: Sequence[str] = TASK_NAMES,
    epsilons: Sequence[float] = EPSILONS,
    trials: int = TRIALS,
    days: int | None = None,
) -> list[Unit]:
    """The grid: some trials of a task at a budget make a unit."""
    return [
        Unit("distributions", task, unit_rows, {"task": task, "epsilon": epsilon, "days": days} | block)
        for first in range(0, trials, BLOCK)  # some trials of everything first
        for task in tasks
        for block in [{"first_trial": first, "trials": min(BLOCK, trials - first)}]
        for epsilon in epsilons
    ]


def write_means(rows: pl.DataFrame, path: Path) -> None:
    """Write means over trials as CSV, six digits of each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    report.summary(rows).with_columns(selectors.float().round_sig_figs(6)).write_csv(path)


def beside_others(task: str) -> pl.DataFrame:
    """Stored means over all days of a task at the budgets of the grid: of the other methods, and the learner's."""
    name = "worldnews" if task == "worldnews" else "online"
    paths = [RESULTS.parent / "sequential" / f"{name}-logepsplots.csv", RESULTS / "learned.csv"]
    tables = [
        pl.read_csv(path, schema_overrides={"max_gap_error": pl.Float64}).select(
            "data", "method", "m", "epsilon", *MEASURED
        )
        for path in paths
    ]
    chosen = pl.concat(tables).filter(
        (pl.col("data") == task) & (pl.col("m") == len(QUANTILES)) & (pl.col("day_block") == -1)
    )
    return chosen.filter(pl.col("epsilon").is_in(EPSILONS) & pl.col("method").is_in([*OTHERS, METHOD]))


@click.command()
@click.option("--parts", type=click.Path(path_type=Path), required=True, help="Folder of finished parts.")
@click.option("--trials", default=TRIALS, show_default=True)
@click.option("--finished", is_flag=True, help="Write the table of what is finished, and run nothing.")
def main(parts: Path, trials: int, finished: bool) -> None:
    """Run what is missing and write the table."""
    chosen = units(trials=trials)
    if finished:
        chosen = [unit for unit in chosen if unit.file(parts, 0).exists()]
    write_means(run(chosen, parts, progress=True), RESULTS / "learned.csv")


if __name__ == "__main__":
    from pqlab.experiments.distributions import main as run_main  # parts are named by the module, not by `__main__`

    run_main()
