"""Sequential release over time and against epsilon (Figs. `timeplots`, `online-logepsplots`, `worldnews-logepsplots`).

Trials run in lockstep: one predictor holds the state of all of them. Every release is that of `pq.release`, from the
uniforms of a stream that the cell's name gives, through the quick way of `pq.sequential.fast`.

    python -m pq.experiments.sequential TASK [--days N] [--trials N] [--log-epsilons ...] [--methods ...]

keeps finished cells in `runs/` and writes two small tables to `results/sequential/`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from pq.cells import Points
from pq.exact import budget_fraction
from pq.experiments.sequential_tasks import METHODS, QUANTILES, TASKS, Private, Task, make_predictor
from pq.experiments.static import stream
from pq.experiments.table import Row, mean_and_error
from pq.priors import Cauchy, Laplace, Prior
from pq.release import Request, _run
from pq.sequential import DPLearned, Predictor, PrivatePredictor
from pq.sequential.fast import (
    LaplaceLaw,
    MixedLaw,
    OneLaw,
    Walker,
    cell_log_masses,
    law_of,
    mixed_log_mass,
)
from pq.sequential.predictors import LaplacePredictor

FloatArray = npt.NDArray[np.float64]
BINS = 100
BLOCK = 10  # trials in lockstep


@dataclass(frozen=True)
class Cell:
    """One method at one budget, for a block of trials.

    every: days from one release to the next that is made, for methods whose priors do not need the releases; the others
    make all of them.
    """

    task: str
    method: str
    epsilon: float
    days: int | None = None
    first_trial: int = 0
    trials: int = BLOCK
    every: int = 1
    seed: int = 0


class Day:
    """The data sets of one day, of all trials or one for all: as the mechanism sees them, and as they are."""

    def __init__(self, records: Sequence[FloatArray], task: Task, rng: np.random.Generator) -> None:
        self.records, self.task = records, task
        seen = [np.sort(x + task.resolution * (rng.random(len(x)) - 0.5)) for x in records] if task.tied else records
        self.sizes = np.array([len(x) for x in seen])
        self.edges = np.full((len(seen), int(self.sizes.max()) + 2), np.inf)
        self.edges[:, 0] = -np.inf
        for row, x in zip(self.edges, seen, strict=True):
            row[1 : len(x) + 1] = x

    def intervals(self) -> tuple[FloatArray, FloatArray]:
        """Ends of the optimal intervals, (trials or 1, m)."""
        ranks = np.array([[q.numerator * n // q.denominator for q in QUANTILES] for n in self.sizes.tolist()])
        rows = np.arange(len(ranks))[:, None]
        return self.edges[rows, ranks], self.edges[rows, ranks + 1]

    def max_gaps(self, values: FloatArray) -> npt.NDArray[np.int64]:
        """Largest gaps (trials,) of released values (trials, m) on the records as they are (`eq:gap`; see `pq.gap`)."""
        out = np.empty(len(values), dtype=np.int64)
        for k, row in enumerate(values):
            x = self.records[k % len(self.records)]
            targets = np.array([q.numerator * len(x) // q.denominator for q in QUANTILES])
            below, most = np.searchsorted(x, row, side="left"), np.searchsorted(x, row, side="right")
            high = np.where(most - below > 1, most, below)
            out[k] = int(np.max(np.maximum(np.maximum(below - targets, targets - high), 0)))
        return out


class Releaser:
    """Releases of all trials of a day, each with its own priors and uniforms."""

    def __init__(self, epsilon: Any, trials: int, rng: np.random.Generator) -> None:
        options: dict[str, Any] = {"adjacency": "add-remove", "calibration": "sharp", "arity": 2, "budget_power": 0.0}
        options |= {"adaptation": "conditional", "grid": None, "on_nan": "drop", "max_contributions": 1}
        self.request = Request.of(QUANTILES, epsilon=epsilon, priors=Cauchy(0.0, 1.0), **options)
        self.walker, self.trials, self.rng = Walker(self.request.plan), trials, rng
        self.slow = 0  # releases that took the long way

    def __call__(self, day: Day, predictor: Predictor, features: FloatArray) -> FloatArray:
        uniforms = (self.rng.integers(1, 2**53, (self.trials, len(QUANTILES), 2)) * 2.0**-53).tolist()
        with np.errstate(all="ignore"):
            values = self._draw(day, predictor, features, uniforms)
        return np.asarray(np.rint(values / day.task.resolution) * day.task.resolution if day.task.tied else values)

    def _draw(self, day: Day, predictor: Predictor, features: FloatArray, uniforms: Any) -> FloatArray:
        masses, laws = _masses(day, predictor, features)
        values = np.empty((self.trials, len(QUANTILES)))
        for k in range(self.trials):
            row = k % len(day.edges)
            n = int(day.sizes[row])
            edges, mass = day.edges[row, : n + 2], masses[k % len(masses)][:, : n + 1]
            try:
                values[k] = self.walker.outputs(edges, mass, laws[k % len(laws)], uniforms[k])
            except (ArithmeticError, ValueError):
                values[k] = self._long_way(edges[1:-1], predictor, features, k, uniforms[k])
                self.slow += 1
        return values

    def _long_way(self, x: FloatArray, predictor: Predictor, features: FloatArray, k: int, uniforms: Any) -> Any:
        request = self.request
        same = request.step, request.on_nan, request.max_contributions
        priors = tuple(_priors(predictor, features, k))
        return _run(Request(request.plan, priors, request.adaptation, *same), Points(x), uniforms)


def _priors(predictor: Predictor, features: FloatArray, k: int) -> list[Prior]:
    if not isinstance(predictor, LaplacePredictor):
        return predictor.priors(features)
    loc, scale = predictor.laplaces(features)
    each: list[Prior] = [Laplace(float(a), float(b)) for a, b in zip(loc[k], scale[k], strict=True)]
    return each if predictor.robust is None else [p.mix(predictor.robust, predictor.robust_weight) for p in each]


def _masses(day: Day, predictor: Predictor, features: FloatArray) -> tuple[Sequence[FloatArray], list[list[OneLaw]]]:
    """Log masses of the cells (m, cells) and the scalar laws of each trial, or of one that stands for all."""
    if not isinstance(predictor, LaplacePredictor):
        priors = predictor.priors(features)
        laws: list[Any] = [law_of(prior) for prior in priors]
        return [cell_log_masses(edges, priors) for edges in day.edges], [laws]
    loc, scale = predictor.laplaces(features)
    robust, weight = predictor.robust, predictor.robust_weight
    other = None if robust is None else robust.log_mass(day.edges[:, :-1], day.edges[:, 1:])[:, None, :]
    masses = mixed_log_mass(day.edges[:, None, :], loc, scale, other, weight)
    rows = zip(loc.tolist(), scale.tolist(), strict=True)
    pure = [[LaplaceLaw(a, b) for a, b in zip(*row, strict=True)] for row in rows]
    tail: Any = None if robust is None else law_of(robust)
    if tail is None:
        return list(masses), [list(row) for row in pure]
    logs = math.log(1.0 - weight), math.log(weight)
    return list(masses), [[MixedLaw(law, tail, *logs) for law in row] for row in pure]


def run_cell(cell: Cell, *, private: Private | None = None, progress: bool = False) -> npt.NDArray[np.int32]:
    """Largest gap over the quantiles on every day of every trial, (days, trials), in records; -1 where none was made.

    The data of a trial, and the places of tied records, are the same for every method and epsilon.

    >>> run_cell(Cell("synthetic", "prox", 1.0, days=5, trials=2)).shape
    (5, 2)
    """
    if cell.task not in TASKS:
        raise ValueError(f"task must be among {', '.join(TASKS)}, got {cell.task!r}")
    task, own = TASKS[cell.task], private or Private()
    trials = range(cell.first_trial, cell.first_trial + cell.trials)
    data = [task.load(cell.days, trial, cell.seed) for trial in ([0] if task.shared else trials)]
    days, dimension = len(data[0]), data[0].features.shape[1]
    name = (cell.task, cell.method, cell.epsilon, days, cell.first_trial)
    noise, places = stream(cell.seed, "noise", *name), stream(cell.seed, "places", cell.task, cell.first_trial)
    learning = stream(cell.seed, "learning", *name)
    predictor = make_predictor(cell.method, task, dimension, days, cell.trials, cell.epsilon, learning, own)
    budget = budget_fraction(cell.epsilon)
    if isinstance(predictor, DPLearned):
        budget -= predictor.epsilon
    release = Releaser(budget, cell.trials, noise)
    out = np.full((days, cell.trials), -1, dtype=np.int32)
    every = 1 if cell.method.startswith("pr") else cell.every
    for t in tqdm(range(days), disable=not progress, unit="day", desc=f"{cell.method} {cell.epsilon:.3g}"):
        day = Day([sequence.datasets[t] for sequence in data], task, places)
        features = data[0].features[t] if task.shared else np.stack([s.features[t] for s in data])
        if t % every == 0:
            values = release(day, predictor, features)
            out[t] = day.max_gaps(values)
            predictor.observe(features, values)
        if isinstance(predictor, PrivatePredictor):
            low, high = day.intervals()
            shape = (cell.trials, len(QUANTILES))
            predictor.learn_intervals(features, np.broadcast_to(low, shape), np.broadcast_to(high, shape))  # type: ignore[attr-defined]
    return out


def smoothed(gaps: npt.NDArray[np.int32], bins: int = BINS) -> list[Row]:
    """Mean gap with its standard error over trials, in stretches of days of about the same length.

    gaps: (days, trials). Returns rows `first_day`, `last_day` (both included), `mean`, `error`.

    >>> smoothed(np.array([[1, 3], [2, 2], [0, 1]], dtype=np.int32), bins=2)
    [{'first_day': 0, 'last_day': 0, 'mean': 2.0, 'error': 1.0},
     {'first_day': 1, 'last_day': 2, 'mean': 1.25, 'error': 0.25}]
    """
    edges = np.linspace(0, len(gaps), min(bins, len(gaps)) + 1).astype(int)
    rows = []
    for first, after in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        part = gaps[first:after]
        mean, error = mean_and_error(part[part[:, 0] >= 0].mean(axis=0))
        rows.append({"first_day": first, "last_day": after - 1, "mean": mean, "error": error})
    return rows


def summary(gaps: npt.NDArray[np.int32]) -> Row:
    """The time-averaged gap, mean and standard error over trials, and the same of its median over days.

    >>> summary(np.array([[1, 3], [2, 2], [9, 1]], dtype=np.int32))
    {'trials': 2, 'days': 3, 'mean': 3.0, 'error': 1.0, 'median': 2.0, 'median_error': 0.0}
    """
    made = gaps[gaps[:, 0] >= 0]
    mean, error = mean_and_error(made.mean(axis=0))
    median, median_error = mean_and_error(np.median(made, axis=0))
    facts = {"trials": gaps.shape[1], "days": gaps.shape[0], "mean": mean, "error": error}
    return facts | {"median": median, "median_error": median_error}


def methods_for(task: Task) -> list[str]:
    """The methods that make sense on a task: a half-Cauchy only where data cannot be negative."""
    return [m for m in METHODS if m != "half_cauchy" or task.nonnegative]


def _gaps(cell: Cell, blocks: int, cache: Path, progress: bool) -> npt.NDArray[np.int32]:
    """All blocks of trials of a cell, read from the cache where they are there already."""
    parts = []
    for block in range(blocks):
        part = replace(cell, first_trial=block * cell.trials)
        path = cache / ("-".join(str(v) for v in vars(part).values()) + ".npz")
        if not path.exists():
            gaps = run_cell(part, progress=progress)
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_name(f"{path.name}.part.npz")
            np.savez_compressed(unfinished, gaps=gaps)
            unfinished.rename(path)
        with np.load(path) as arrays:
            parts.append(arrays["gaps"])
    return np.concatenate(parts, axis=1)


def write_table(path: Path, rows: Sequence[Row]) -> None:
    """A table of rows with the same columns as CSV, numbers to six digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows([{k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows])


@click.command()
@click.argument("task", type=click.Choice(list(TASKS)))
@click.option("--days", type=int, help="The first days only; by default all.")
@click.option("--trials", default=40, show_default=True, help="In blocks of 10.")
@click.option("--log-epsilons", default="-4,-3,-2,-1,0,1", show_default=True, help="Base 10, separated by commas.")
@click.option("--methods", help="Names, separated by commas; by default all that make sense.")
@click.option("--time-plots", default="-0.5,-2", show_default=True, help="Which of them also get a table over time.")
@click.option("--every", default=1, show_default=True, help="See Cell.")
@click.option("--results", type=click.Path(path_type=Path), default=Path("results/sequential"), show_default=True)
@click.option("--cache", type=click.Path(path_type=Path), default=Path("runs/sequential"), show_default=True)
@click.option("--progress", is_flag=True, help="Show a bar on stderr.")
def main(
    task: str,
    days: int | None,
    trials: int,
    log_epsilons: str,
    methods: str | None,
    time_plots: str,
    every: int,
    results: Path,
    cache: Path,
    progress: bool,
) -> None:
    """Run a task with every method and epsilon, and write its tables."""
    table, over_time = [], []
    block = min(BLOCK, trials)
    chosen: Iterable[str] = methods.split(",") if methods else methods_for(TASKS[task])
    for log_epsilon in map(float, log_epsilons.split(",")):
        for method in chosen:
            cell = Cell(task, method, float(f"{10.0**log_epsilon:.6g}"), days, 0, block, every)
            gaps = _gaps(cell, -(-trials // block), cache, progress)
            facts = {"task": task, "method": method, "log_epsilon": log_epsilon}
            table.append(facts | summary(gaps))
            if log_epsilon in map(float, time_plots.split(",")):
                over_time += [facts | row for row in smoothed(gaps)]
            write_table(results / f"sequential_{task}.csv", table)
            if over_time:
                write_table(results / f"sequential_{task}_time.csv", over_time)


if __name__ == "__main__":
    main()
