"""What the paper's coordinates change: PubFit, PubProx and NonPrivate that count from zero in the unit of the data.

The learners of this project count from the guess: the prior of a quantile has the location `nu + sigma theta / phi`
and the scale `sigma / phi`, from theta = 0 and phi = 1 on. In the paper these are `theta / phi` and `1 / phi` in the
unit of the data, from `nu / sigma` and `1 / sigma` on, so that each step of phi moves the location too (Sections 5.2
and 5.3). The sequential learners of the paper also share one loss, the log-sum-exp over the quantiles, where ours have
one for each; the way `paper` differs from ours in both, `zero` in the first alone, `joint` in the second.

    python -m pqlab.experiments.coordinates --parts FOLDER

makes `results/coordinates/sequential.csv`, of all ways, and `results/coordinates/public_private.csv`, of counting from
zero, by the data, splits, noise and sizes of `results/sequential` and `results/public_private`, so that ways differ in
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

import click
import numpy as np
import numpy.typing as npt
import polars as pl
from polars import selectors

import pq
from pq.core import public_fit
from pq.core.choices import Calibration
from pq.core.learners import COCOB
from pq.sequential import NonPrivate, Predictor, PubProx
from pqlab.experiments import public_private, sequential
from pqlab.experiments.figures import PROFILES, epsilon_of
from pqlab.experiments.grid import Unit, run
from pqlab.experiments.public_sources import SOURCES
from pqlab.experiments.sequential_tasks import Task, make_predictor
from pqlab.experiments.static import even_quantiles
from pqlab.experiments.table import Row

RESULTS = Path(__file__).resolve().parents[2] / "results" / "coordinates"
WAYS = "guess", "zero", "joint", "paper"  # from where the learners count, and the loss; see above
TASK_WAYS = dict.fromkeys(("citibike", "flights_air_time", "flights_delay", "worldnews"), WAYS) | {
    "synthetic_noisy": ("guess", "joint")  # guesses of 0 and 1: from zero is from the guess
}
LEARNERS: dict[str, Any] = {"prox": PubProx, "open": NonPrivate}
FITS = ("pubfit", "pubfit_robust")
EXPERIMENT_NAMES = ("adult", "movies", "goodreads11k")


def predictor_from_zero(
    method: str, task: Task, dimension: int, days: int, copies: int | None, *rest: Any
) -> Predictor:
    """`make_predictor` in the paper's coordinates, of a method in `LEARNERS`: the same first priors."""
    ours: Any = make_predictor(method, task, dimension, days, copies, *rest)
    options = {"robust": task.robust, "copies": copies, "resolution": task.resolution, "dimension": dimension}
    learner: Any = LEARNERS[method](ours.quantiles, loc=0.0, scale=task.scale, **options)
    before = learner._learner
    start, steps = before.point.copy(), np.ones_like(before.point)
    start[..., -2] = task.loc / task.scale  # of the constant feature
    steps[..., -1] = task.scale  # phi is in guessed scales here
    low, high = (np.full_like(start, far) for far in (-np.inf, np.inf))
    low[..., -1], high[..., -1] = learner.phi_range
    learner._learner = COCOB(start, scale=steps, lower=low, upper=high)
    return learner


def with_joint_loss(make: Callable[..., Predictor]) -> Callable[..., Predictor]:
    """A maker of predictors whose loss is the log-sum-exp over the quantiles."""

    def made(*arguments: Any) -> Predictor:
        learner: Any = make(*arguments)
        learner.joint = True
        return learner

    return made


MAKERS: dict[str, Callable[..., Predictor]] = {
    "guess": make_predictor,
    "zero": predictor_from_zero,
    "joint": with_joint_loss(make_predictor),
    "paper": with_joint_loss(predictor_from_zero),
}


def gaps_from(
    cell: sequential.Cell, methods: Sequence[str], epsilons: Sequence[float], way: str
) -> dict[tuple[str, float], npt.NDArray[np.int32]]:
    """`run_cells` of `pqlab.experiments.sequential` by the learners of a way.

    >>> cell = sequential.Cell("flights_delay", "prox", 1.0, days=3, trials=2)
    >>> gaps_from(cell, ["prox"], [1.0], "zero")["prox", 1.0].shape
    (3, 2)
    """
    return sequential.run_cells(cell, methods, epsilons, make=MAKERS[way])


@lru_cache(maxsize=1024)
def fitted_from_zero(
    source: str,
    optimizer: str,
    n: int,
    m: int,
    seed: int = 0,
    variant: public_private.Variant = "grid",
    split: int = 0,
) -> tuple[pq.Laplace, ...]:
    """`pqlab.experiments.public_private.fitted` in the paper's coordinates, by COCOB."""
    if optimizer != "cocob":
        raise ValueError(f"optimizer must be 'cocob', got {optimizer!r}")
    loc, scale, resolution = SOURCES[source].guesses()
    records = public_private.populations(source, seed, split)[0]
    ties = public_private.ties_of(variant)
    problem = public_fit._problem(records, even_quantiles(m), n, loc, scale, resolution, ties)
    rng = public_private.fit_stream(source, optimizer, n, m, seed, split)
    return tuple(public_fit._laplaces(problem, None, optimizer, rng, from_zero=True))


def days_from(
    *, task: str, way: str, calibration: Any, epsilons: list[float], days: int | None, first_trial: int, trials: int,
    seed: int,
) -> list[Row]:  # fmt: skip
    """Mean gap over all days of each trial, learner and budget."""
    sizes: dict[str, Any] = {"days": days, "first_trial": first_trial, "trials": trials, "seed": seed}
    cell = sequential.Cell(task, "prox", epsilons[0], calibration=calibration, **sizes)
    return [
        {"variant": calibration, "method": f"{method} {way}", "m": cell.m, "epsilon": epsilon, "trial": first_trial + k}
        | {"max_gap": float(gap)}
        for (method, epsilon), gaps in gaps_from(cell, list(LEARNERS), epsilons, way).items()
        for k, gap in enumerate(gaps.mean(axis=0))
    ]


def fits_from_zero(
    *, source: str, variant: Any, epsilons: list[float], mixtures: list[float], trials: int, seed: int
) -> list[Row]:
    """Largest gap of each trial, method, budget and mixture, with a split of the public data for each trial."""
    cells = [
        public_private.Cell(source, variant, method, epsilon, mixture, trial)
        for trial in range(trials)
        for method in FITS
        for epsilon in epsilons
        for mixture in mixtures
    ]
    rows = [public_private.run_cell(cell, seed=seed, splits=trials, fit=fitted_from_zero) for cell in cells]
    return [{"m": 9} | {name: row[name] for name in row if name != "source"} for row in rows]


def day_units(profile: str = "paper", tasks: Sequence[str] = tuple(TASK_WAYS)) -> list[Unit]:
    """The grid of the sequential learners, at a profile of `pq reproduce`."""
    sizes = PROFILES[profile]
    epsilons = [epsilon_of(value) for value in sizes.log_epsilons]
    return [
        Unit(
            "sequential",
            task,
            days_from,
            {"task": task, "way": way, "calibration": calibration, "epsilons": epsilons, "days": sizes.days}
            | {"first_trial": first, "trials": min(sequential.BLOCK, sizes.trials - first)},
        )
        for task in tasks
        for calibration in get_args(Calibration)
        for first in range(0, sizes.trials, sequential.BLOCK)
        for way in TASK_WAYS[task]
    ]


def fit_units(trials: int = 40, experiments: Sequence[str] = EXPERIMENT_NAMES) -> list[Unit]:
    """The grid of the fits from zero, at the paper's budgets and mixtures; `results/public_private` has the others."""
    return [
        Unit(
            "public_private",
            source,
            fits_from_zero,
            {"source": source, "variant": variant, "epsilons": epsilons, "mixtures": mixtures, "trials": trials},
        )
        for experiment in experiments
        for epsilons, mixtures in [public_private.grid_of(experiment)]
        for source in public_private.EXPERIMENTS[experiment][0]
        for variant in public_private.VARIANTS
    ]


def what_ways_add(rows: pl.DataFrame) -> pl.DataFrame:
    """Means over trials of every way with standard errors, and what each has more than `guess`, trial by trial.

    rows: `way`, `trial`, `max_gap`, and what else tells trials apart. `max_gap` becomes the mean.
    """
    apart = [name for name in rows.columns if name not in ("way", "trial", "max_gap")]
    ours = rows.filter(pl.col("way") == "guess").drop("way").rename({"max_gap": "guess"})
    beside = rows.join(ours, on=[*apart, "trial"], how="left", maintain_order="left")
    return (
        beside.with_columns((pl.col("max_gap") - pl.col("guess")).alias("more"))
        .group_by([*apart, "way"], maintain_order=True)
        .agg(
            pl.len().alias("trials"),
            *(pl.col(name).mean() for name in ("max_gap", "more")),
            *((pl.col(name).std() / pl.len().sqrt()).alias(f"{name}_error") for name in ("max_gap", "more")),
        )
    )


def by_way(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of `day_units` as `what_ways_add` takes them."""
    split = pl.col("method").str.split(" ")
    named = rows.with_columns(split.list.get(0).alias("method"), split.list.get(1).alias("way"))
    return named.select("data", "variant", "method", "way", "epsilon", "trial", "max_gap")


def stored_days() -> pl.DataFrame:
    """The stored table of the sequential learners, as `what_ways_add` gives it."""
    return pl.read_csv(RESULTS / "sequential.csv")


def stored_fits() -> pl.DataFrame:
    """Every stored trial of the fits by both ways, as `what_ways_add` takes them."""
    zero = pl.DataFrame(public_private.read_table(RESULTS / "public_private.csv"))
    files = [public_private.RESULTS / f"{experiment}.csv" for experiment in EXPERIMENT_NAMES]
    ours = pl.DataFrame([row for file in files for row in public_private.read_table(file) if row["method"] in FITS])
    return pl.concat(rows.with_columns(pl.lit(way).alias("way")) for way, rows in (("guess", ours), ("zero", zero)))


@click.command()
@click.option("--parts", type=click.Path(path_type=Path), required=True, help="Folder of finished parts.")
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True)
def main(parts: Path, workers: int) -> None:
    """Run what is missing and write the tables."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    means = what_ways_add(by_way(run(day_units(), parts, workers=workers, progress=True)))
    means.with_columns(selectors.float().round_sig_figs(6)).write_csv(RESULTS / "sequential.csv")
    fits = run(fit_units(), parts, workers=workers, progress=True).rename({"data": "source"})
    rows = [
        row | {"max_gap": int(row["max_gap"])} for row in fits.sort("trial", maintain_order=True).iter_rows(named=True)
    ]
    public_private.write_table(RESULTS / "public_private.csv", rows, "python -m pqlab.experiments.coordinates")


if __name__ == "__main__":
    from pqlab.experiments.coordinates import main as run_main  # parts are named by the module, not by `__main__`

    run_main()
