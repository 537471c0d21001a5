"""The price of private learning: what keeps PubProx and DPLearned from NonPrivate (Section 5.3).

    python -m pqlab.experiments.learning_price --parts FOLDER

makes `results/distributions/price.csv`. Steps from the best fixed map to each learner, on the same days and trials:

- `hindsight`: one map and one scale for all days, of the least sum of true losses that there is;
- `open`: NonPrivate, a single pass: what it lacks is regret;
- `prox`: PubProx, the same learner on released values: what it lacks more is the noise in these;
- `exact_full`: DPLearned without noise that spends nothing on learning: what it lacks is regret, of small steps;
- `exact`: without noise, but with the budget of DPLearned for its releases: what that part of the budget buys;
- `dp`: DPLearned: the rest is noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
import scipy

from pq.core.exact import budget_fraction
from pq.losses import laplace_interval
from pq.sequential import DPLearned, NonPrivate
from pqlab.experiments.distributions import RESULTS, write_means
from pqlab.experiments.figures import day_rows
from pqlab.experiments.grid import Unit, run
from pqlab.experiments.sequential import Cell, Day, Lockstep, Releaser
from pqlab.experiments.sequential_tasks import TASKS, Private
from pqlab.experiments.static import even_quantiles, stream
from pqlab.experiments.table import Row

STEPS = {
    "hindsight": "best fixed map",
    "open": "NonPrivate",
    "prox": "PubProx",
    "exact_full": "DPLearned, no noise, nothing spent",
    "exact": "DPLearned, no noise",
    "dp": "DPLearned",
}
TASK_DAYS = {
    "worldnews": None,
    "flights_air_time": None,
    "flights_delay": None,
    "synthetic_noisy": 500,
    "citibike": None,
}
EPSILONS = (0.01, 0.1, 1.0)
TRIALS = 10
QUANTILES = even_quantiles(9)
FloatArray = npt.NDArray[np.float64]


class Fixed(NonPrivate):
    """One map and one scale for all days; `fit` finds those of the least sum of true losses, which is convex."""

    fitted: tuple[FloatArray, FloatArray]

    def parameters(self) -> tuple[FloatArray, FloatArray]:
        return self.fitted

    def learn_intervals(self, features: Any, lower: Any, upper: Any) -> None:
        """Nothing: it was fitted before."""

    def fit(self, known: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
        """To the known features (c, days, d + 1) and true intervals (c, days, m) of each copy, or of one for all."""
        found = [
            [self._best(j, f, low[:, [j]], high[:, [j]]) for j in range(self.m)]
            for f, low, high in zip(known, lower, upper, strict=True)
        ]
        point = np.broadcast_to(np.array(found), (*self.shape, known.shape[-1] + 1))
        self.fitted = point[..., :-1], point[..., -1]

    def _best(self, j: int, known: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """Map and inverse scale (d + 2,) of quantile j."""
        low, high = (((end - self.loc[j]) / self.scale[j])[:, 0] for end in (lower, upper))

        def loss(point: FloatArray) -> tuple[float, FloatArray]:
            each, by_theta, by_phi = laplace_interval(known @ point[:-1], point[-1], low, high, min_width=self.width[j])
            return float(np.mean(each)), np.append(by_theta @ known / len(known), np.mean(by_phi))

        ends = [(None, None)] * known.shape[1] + [(self.phi_range[0][j], self.phi_range[1][j])]
        start = np.append(np.zeros(known.shape[1]), 1.0)
        options = {"maxiter": 5000, "maxfun": 20_000, "ftol": 1e-12, "gtol": 1e-9}
        found = scipy.optimize.minimize(loss, start, jac=True, bounds=ends, method="L-BFGS-B", options=options)
        return np.asarray(found.x)


class Noiseless(DPLearned):
    """DPLearned that protects nobody: with exact sums."""

    def _noise(self, part: int) -> float:
        return 0.0


def step_gaps(name: str, step: str, epsilon: float, days: int | None, trials: int, seed: int) -> npt.NDArray[np.int32]:
    """Largest gaps (days, trials) of a learner of `STEPS` on a task.

    >>> step_gaps("synthetic_noisy", "exact", 1.0, 3, 2, 0).shape
    (3, 2)
    """
    task = TASKS[name]
    data = [task.load(days, trial, seed) for trial in ([0] if task.shared else range(trials))]
    base = {"hindsight": "open", "exact_full": "dp", "exact": "dp"}.get(step, step)
    group = Lockstep(Cell(name, base, epsilon, days, 0, trials, seed=seed), [epsilon], data[0], Private())
    places = stream(seed, "places", name, 0)
    every = [Day([one.datasets[t] for one in data], task, places) for t in range(len(data[0]))]
    known = [
        data[0].features[t][None] if task.shared else np.array([s.features[t] for s in data]) for t in range(len(every))
    ]
    own: dict[str, Any] = {"loc": task.loc, "scale": task.scale, "robust": task.robust, "copies": trials}
    own |= {"resolution": task.resolution, "dimension": data[0].features.shape[1]}
    if step == "hindsight":
        group.predictor = best = Fixed(QUANTILES, **own)
        ends = zip(*(day.intervals(QUANTILES) for day in every), strict=True)
        lower, upper = (np.stack(end, axis=1) for end in ends)
        best.fit(best.standardise(np.stack(known, axis=1)), lower, upper)
    elif base == "dp" and step != "dp":
        options = Private().options(epsilon, len(every))
        group.predictor = Noiseless(QUANTILES, rng=0, **options, **own)
    if step == "exact_full":
        noise = [stream(seed, "noise", name, "dp", epsilon, len(every), 0, len(QUANTILES))]
        group.release = Releaser([budget_fraction(epsilon)], trials, noise, QUANTILES, "sharp")
    for t, (day, features) in enumerate(zip(every, known, strict=True)):
        group.step(t, day, features, QUANTILES)
    return group.gaps


def price_rows(*, task: str, step: str, epsilon: float, days: int | None, trials: int, seed: int) -> list[Row]:
    """Mean and median gap of each trial over all days."""
    gaps = step_gaps(task, step, epsilon, days, trials, seed)
    return [
        {"method": step, "m": len(QUANTILES), "epsilon": epsilon, "trial": trial} | day_rows(gaps[:, trial], 1)[0]
        for trial in range(trials)
    ]


def price_units(tasks: Sequence[str] = tuple(TASK_DAYS), trials: int = TRIALS, days: int | None = None) -> list[Unit]:
    """The grid: a learner on a task at a budget makes a unit. days: of all tasks, None for those of the table."""
    return [
        Unit(
            "learning_price",
            task,
            price_rows,
            {"task": task, "step": step, "epsilon": epsilon, "days": days or TASK_DAYS[task], "trials": trials},
        )
        for task in tasks
        for epsilon in EPSILONS
        for step in STEPS
    ]


@click.command()
@click.option("--parts", type=click.Path(path_type=Path), required=True, help="Folder of finished parts.")
def main(parts: Path) -> None:
    """Run what is missing and write the table."""
    rows = run(price_units(), parts, progress=True)
    write_means(rows, RESULTS / "price.csv")


if __name__ == "__main__":
    from pqlab.experiments.learning_price import main as run_main  # parts are named by the module, not by `__main__`

    run_main()
