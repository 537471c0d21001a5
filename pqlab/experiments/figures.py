"""The paper's figures: which experiments each of them needs, with which parameters (Section 5 and its appendices).

A job is one data set of a figure. It lists the units of work of a profile; their rows are those of
`pqlab.experiments.grid.SCHEMA`. "paper" holds the paper's parameters, "quick" smaller ones of the same kind, "tiny" is
there to try the machinery.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from pq.core.choices import Calibration
from pqlab.experiments import public_private, sequential, static
from pqlab.experiments.grid import Unit
from pqlab.experiments.sequential_tasks import TASKS
from pqlab.experiments.table import Row


@dataclass(frozen=True)
class Profile:
    """Sizes of all experiments.

    log_epsilons: base 10, of the sequential figures against epsilon. days: of the sequences, at most; None for all.
    """

    trials: int
    ms: tuple[int, ...]
    log_epsilons_public: tuple[float, ...]
    mixtures: tuple[float, ...]
    log_epsilons: tuple[float, ...]
    days: int | None
    days_noiseless: int
    day_blocks: int


PROFILES: dict[str, Profile] = {
    "tiny": Profile(2, (1, 4), (0.0,), (0.5,), (-1.0, 0.0), 12, 12, 3),
    "quick": Profile(
        10, (1, 2, 4, 9, 19, 39), (-3.0, -2.0, -1.0, 0.0, 1.0), (0.0, 0.5, 1.0), (-3.0, -2.0, -1.0, 0.0), 200, 1000, 40
    ),
    "paper": Profile(
        40,
        (1, 2, 4, 9, 19, 29, 39, 59, 79, 99),
        tuple(np.linspace(-3, 1, 9).tolist()),
        tuple(round(0.1 * k, 1) for k in range(11)),
        tuple(np.linspace(-5, 2, 15).tolist()),
        None,
        100_000,
        100,
    ),
}


def epsilon_of(log_epsilon: float) -> float:
    """A budget as it stands in tables, to six digits.

    >>> epsilon_of(-0.5)
    0.316228
    """
    return float(f"{10.0**log_epsilon:.6g}")


@dataclass(frozen=True)
class Job:
    """One data set of a figure: its label, a check that its data are there, and its units for a profile."""

    data: str
    label: str
    load: Callable[[], Any]
    units: Callable[[Profile], list[Unit]]


@dataclass(frozen=True)
class Figure:
    """A figure of the paper. along: the column of the horizontal axis."""

    label: str
    title: str
    along: str
    jobs: tuple[Job, ...]


# --- rows of a unit ---------------------------------------------------------------------------------------------------


def static_rows(
    *,
    data: str,
    calibration: Any,
    grid: float | None,
    method: str,
    epsilon: float,
    ms: list[int],
    trials: int,
    seed: int,
) -> list[Row]:
    """Maximum gaps of a variant of `alg:quantiles` with a uniform prior, of 1000 records."""
    variant = (data, calibration, grid)
    cells = static.cells(variants=[variant], methods=[method], epsilons=[epsilon], ms=ms, trials=trials)
    name = calibration if grid is None else f"{calibration}, grid {grid:g}"
    same = ("method", "m", "epsilon", "trial", "max_gap")
    return [{"variant": name} | {k: row[k] for k in same} for row in static.run(cells, seed=seed)]


def public_rows(
    *,
    experiment: str,
    source: str,
    variant: Any,
    method: str,
    epsilons: list[float],
    mixtures: list[float],
    trials: int,
    seed: int,
) -> list[Row]:
    """Maximum gaps of nine quantiles of a hundred records, with a prior from public data."""
    sizes: dict[str, Any] = {"epsilons": epsilons, "mixtures": mixtures, "trials": trials}
    cells = public_private.cells(experiment, variants=[variant], methods=[method], **sizes)
    cells = [cell for cell in cells if cell.source == source]
    same = ("variant", "method", "epsilon", "mixture", "trial", "max_gap")
    rows = public_private.run(cells, seed=seed, splits=trials)
    return [{"m": 9} | {k: row[k] for k in same} for row in rows]


def sequential_rows(
    *, task: str, calibration: Any, methods: list[str], epsilons: list[float], days: int | None, m: int,
    first_trial: int, trials: int, day_blocks: int, seed: int,
) -> list[Row]:  # fmt: skip
    """Maximum gaps of a sequence, by trial: mean and median over all days, block -1, and over each block of days."""
    sizes: dict[str, Any] = {"days": days, "first_trial": first_trial, "trials": trials, "m": m, "seed": seed}
    cell = sequential.Cell(task, methods[0], epsilons[0], calibration=calibration, **sizes)
    tables = sequential.run_cells(cell, methods, epsilons)
    return [
        {"variant": calibration, "method": method, "m": m, "epsilon": epsilon, "trial": first_trial + k} | row
        for (method, epsilon), table in tables.items()
        for k in range(table.shape[1])
        for row in day_rows(table[:, k], day_blocks)
    ]


def day_rows(gaps: npt.NDArray[np.int32], blocks: int) -> list[Row]:
    """Mean and median gap of one trial over all its days, block -1, and over stretches of about the same length.

    >>> day_rows(np.array([1, 3, 8], dtype=np.int32), blocks=1)
    [{'day_block': -1, 'first_day': 0, 'last_day': 2, 'max_gap': 4.0, 'median_gap': 3.0},
     {'day_block': 0, 'first_day': 0, 'last_day': 2, 'max_gap': 4.0, 'median_gap': 3.0}]
    """
    edges = np.linspace(0, len(gaps), min(blocks, len(gaps)) + 1).astype(int).tolist()
    stretches = [(-1, 0, len(gaps)), *((k, *ends) for k, ends in enumerate(pairwise(edges)))]
    return [
        {
            "day_block": block,
            "first_day": first,
            "last_day": after - 1,
            "max_gap": float(np.mean(gaps[first:after])),
            "median_gap": float(np.median(gaps[first:after])),
        }
        for block, first, after in stretches
        if after > first
    ]


# --- units of a job ---------------------------------------------------------------------------------------------------


def _static_units(figure: str, data: str, profile: Profile) -> list[Unit]:
    return [
        Unit(
            figure,
            data,
            static_rows,
            {
                "data": data,
                "calibration": calibration,
                "grid": grid,
                "method": method,
                "epsilon": epsilon,
                "ms": list(profile.ms),
                "trials": profile.trials,
            },
        )
        for source, calibration, grid in static.VARIANTS
        if source == data
        for method in static.METHODS
        for epsilon in (1.0, 0.1)
    ]


def _public_units(figure: str, experiment: str, source: str, profile: Profile) -> list[Unit]:
    along_epsilon = public_private.EXPERIMENTS[experiment][1] == "epsilon"
    epsilons = [epsilon_of(value) for value in profile.log_epsilons_public] if along_epsilon else [1.0]
    mixtures = [0.0] if along_epsilon else list(profile.mixtures)
    sizes = {"epsilons": epsilons, "mixtures": mixtures, "trials": profile.trials}
    return [
        Unit(
            figure,
            source,
            public_rows,
            {"experiment": experiment, "source": source, "variant": variant, "method": method} | sizes,
        )
        for variant in get_args(public_private.Variant)
        for method in public_private.METHODS
    ]


def _sequential_units(
    figure: str,
    data: str,
    task: str,
    profile: Profile,
    *,
    ms: Sequence[int] = (9,),
    log_epsilon: float | None = None,
    methods: Sequence[str] | None = None,
) -> list[Unit]:
    """Units of a task against epsilon or, at one epsilon, over time."""
    days = profile.days_noiseless if task == "synthetic" else profile.days
    chosen = sequential.methods_for(TASKS[task], controls=log_epsilon is None) if methods is None else methods
    own = {
        "task": task,
        "methods": list(chosen),
        "epsilons": [epsilon_of(v) for v in (profile.log_epsilons if log_epsilon is None else [log_epsilon])],
        "days": days,
        "day_blocks": profile.day_blocks if log_epsilon is not None else 1,
    }
    return [
        Unit(
            figure,
            data,
            sequential_rows,
            own
            | {"calibration": calibration, "m": m, "first_trial": first}
            | {"trials": min(sequential.BLOCK, profile.trials - first)},
        )
        for calibration in get_args(Calibration)
        for m in ms
        for first in range(0, profile.trials, sequential.BLOCK)
    ]


# --- the figures ------------------------------------------------------------------------------------------------------


def _static_job(figure: str, data: str) -> Job:
    return Job(data, static.SOURCES[data].label, lambda: None, partial(_static_units, figure, data))


def _public_jobs(figure: str, experiment: str) -> tuple[Job, ...]:
    def load(source: Any) -> Any:
        return source.first(), source.second()

    return tuple(
        Job(
            source,
            public_private.SOURCES[source].label,
            partial(load, public_private.SOURCES[source]),
            partial(_public_units, figure, experiment, source),
        )
        for source in public_private.EXPERIMENTS[experiment][0]
    )


def _sequential_job(figure: str, task: str, data: str | None = None, label: str = "", **options: Any) -> Job:
    def load() -> Any:
        return TASKS[task].load(1, 0, 0)

    name = data or task
    return Job(name, label or TASKS[task].label, load, partial(_sequential_units, figure, name, task, **options))


def _figures() -> list[Figure]:
    time, against, news = "timeplots", "online-logepsplots", "worldnews-logepsplots"
    return [
        Figure("mplots", "Maximum gap against the number of quantiles", "m",
               (_static_job("mplots", "gaussian"), _static_job("mplots", "adult_age"))),
        Figure("pubpri-logepsplots", "Release with public data, against epsilon", "epsilon",
               _public_jobs("pubpri-logepsplots", "adult")),
        Figure("mixplots", "Release with public data of another population, epsilon 1", "mixture",
               tuple(job for e in ("goodreads", "goodreads11k", "movies") for job in _public_jobs("mixplots", e))),
        Figure(time, "Sequential release over time", "day_block", (
            _sequential_job(time, "synthetic", log_epsilon=-0.5),
            _sequential_job(time, "citibike", log_epsilon=-2.0),
            _sequential_job(time, "flights_air_time", log_epsilon=-2.0),
            _sequential_job(time, "flights_break", log_epsilon=-2.0),
        )),
        Figure(against, "Time-averaged sequential release against epsilon", "epsilon", tuple(
            _sequential_job(against, task, ms=(9, 1) if task == "synthetic_noisy" else (9,))
            for task in ("synthetic_noisy", "citibike", "flights_air_time", "flights_delay")
        )),
        Figure(news, "Time-aggregated mean and median of sequential release", "epsilon", tuple(
            _sequential_job(news, task) for task in ("bbc", "worldnews")
        )),
    ]  # fmt: skip


FIGURES: dict[str, Figure] = {figure.label: figure for figure in _figures()}
