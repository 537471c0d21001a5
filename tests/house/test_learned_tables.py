"""The experiments on learned distributions and on the price of learning: their numbers, and that runs go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy

import pq
from pqlab.experiments import distributions, learning_price
from pqlab.experiments.distributions import EPSILONS, QUANTILES, RESULTS, TASK_NAMES, beside_others, learner
from pqlab.experiments.grid import run
from pqlab.experiments.sequential_tasks import TASKS, Private
from pqlab.experiments.static import stream


def test_gaps_are_those_of_a_session() -> None:
    """Of one trial of Synthetic, by `release_sequence` and `pq.max_gap`."""
    task, data = TASKS["synthetic_noisy"], TASKS["synthetic_noisy"].load(6, 1, 0)
    rng = stream(0, "distribution", "synthetic_noisy", 0.5, 6, 1)
    released = pq.release_sequence(
        list(data.datasets), data.features, learner(task, 10), QUANTILES, epsilon=0.5, rng=rng
    )
    slow = [pq.max_gap(x, QUANTILES, one.values) for x, one in zip(data.datasets, released, strict=True)]
    assert distributions.gaps_of_trial("synthetic_noisy", 0.5, 1, days=6).tolist() == slow


def test_runs_go_on_and_tables_are_their_means(tmp_path: Path) -> None:
    units = distributions.units(("synthetic_noisy", "flights_air_time"), (1.0,), trials=2, days=3)
    rows = run(units, tmp_path)
    done = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    assert run(units, tmp_path).equals(rows) and done == {path: path.stat().st_mtime_ns for path in done}
    distributions.write_means(rows, tmp_path / "means.csv")
    means = pl.read_csv(tmp_path / "means.csv").filter(
        (pl.col("day_block") == -1) & (pl.col("data") == "flights_air_time")
    )
    gaps = [distributions.gaps_of_trial("flights_air_time", 1.0, trial, 3).mean() for trial in range(2)]
    assert means["max_gap"].item() == pytest.approx(np.mean(gaps), rel=1e-5) and means["trials"].item() == 2


def test_stored_tables_have_every_cell() -> None:
    for task in TASK_NAMES:
        means = beside_others(task)
        cells = {(row["method"], row["epsilon"]) for row in means.iter_rows(named=True)}
        wanted = {distributions.METHOD, *distributions.OTHERS} - (
            {"half_cauchy"} if not TASKS[task].nonnegative else set()
        )
        assert cells == {(method, epsilon) for method in wanted for epsilon in EPSILONS}
    price = pl.read_csv(RESULTS / "price.csv")
    assert set(price["method"]) == set(learning_price.STEPS) and set(price["data"]) == set(learning_price.TASK_DAYS)


def test_steps_of_the_price_are_what_they_say() -> None:
    """Without noise DPLearned does not depend on its seed."""
    own: Any = {"loc": 0.0, "scale": 1.0, "resolution": 0.1, "dimension": 1, "copies": 2}
    features, low = np.ones((2, 1)), np.full((2, 9), 3.0)
    exact = [learning_price.Noiseless(QUANTILES, rng=seed, **Private().options(1.0, 5), **own) for seed in range(2)]
    noisy = [pq.sequential.DPLearned(QUANTILES, rng=seed, **Private().options(1.0, 5), **own) for seed in range(2)]
    for one in (*exact, *noisy):
        one.learn_intervals(features, low, low + 0.1)
    assert np.array_equal(exact[0].parameters()[0], exact[1].parameters()[0])
    assert not np.array_equal(noisy[0].parameters()[0], noisy[1].parameters()[0])


def test_no_map_has_less_loss_than_the_best_one() -> None:
    """By the laws of scipy, on sixty days: not the map that a learner finds in many passes, nor one a little away."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 1))
    low = np.sort(rng.normal(3 + features, 1.0, size=(60, 9)), axis=1)
    own: Any = {"loc": 0.0, "scale": 2.0, "resolution": 0.1, "dimension": 1, "copies": 1}
    best, learnt = learning_price.Fixed(QUANTILES, **own), pq.sequential.NonPrivate(QUANTILES, **own)
    known = best.standardise(features)
    best.fit(known[None], low[None], low[None] + 0.2)
    for f, x in [*zip(features, low, strict=True)] * 50:
        learnt.learn_intervals(f[None], x[None], x[None] + 0.2)

    def loss(maps: Any, phi: Any) -> Any:
        law = scipy.stats.laplace(2.0 * known @ maps.T / phi, 2.0 / phi)
        return -np.log(law.cdf(low + 0.2) - law.cdf(low)).sum(axis=0)

    maps, phi = (part[0] for part in best.parameters())
    assert np.all(loss(maps, phi) < loss(*(part[0] for part in learnt.parameters())))
    for step in 1e-2 * rng.normal(size=(30, 9, 3)):
        assert np.all(loss(maps, phi) < loss(maps + step[:, :2], phi + step[:, 2]))
    best.learn_intervals(features[:1], low[:1], low[:1] + 0.2)
    assert np.array_equal(best.parameters()[0][0], maps)


@pytest.mark.parametrize("step", learning_price.STEPS)
def test_every_step_of_the_price_runs(step: str) -> None:
    rows = learning_price.price_rows(task="synthetic_noisy", step=step, epsilon=1.0, days=3, trials=2, seed=0)
    assert len(rows) == 2 and all(0 <= row["max_gap"] <= 200 for row in rows)
