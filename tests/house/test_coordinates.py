"""Learners that count from zero are the paper's, and the stored tables of what that changes have every cell."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pq
from pq.core import public_fit
from pq.core.learners import COCOB
from pq.sequential import PubProx
from pqlab.experiments import coordinates, public_private, sequential
from pqlab.experiments.grid import run
from pqlab.experiments.sequential_tasks import QUANTILES, TASKS, Private, make_predictor
from pqlab.experiments.static import stream
from pqlab.experiments.table import mean_and_error

AIR = TASKS["flights_air_time"]


def made(make: Any, method: str = "prox") -> Any:
    return make(method, AIR, 2, 50, 1, 1.0, 0, Private(), tuple(QUANTILES))


@pytest.mark.parametrize("method", coordinates.LEARNERS)
def test_the_first_priors_are_those_of_the_guess(method: str) -> None:
    features = np.array([[0.7, -2.0]])
    ours, its = (made(make, method).laplaces(features) for make in (make_predictor, coordinates.predictor_from_zero))
    assert np.allclose(its[0], ours[0], rtol=1e-15) and np.array_equal(its[1], ours[1])


def test_a_learner_from_zero_is_cocob_on_the_papers_own_numbers() -> None:
    """Location theta / phi and scale 1 / phi in minutes: a learner whose guessed scale is a minute has these units."""
    its, plain = made(coordinates.predictor_from_zero), PubProx(
        QUANTILES, loc=0.0, scale=1.0, robust=AIR.robust, copies=1, resolution=AIR.resolution, dimension=2
    )  # fmt: skip
    start = np.zeros_like(plain._learner.point)
    start[..., -2], start[..., -1] = AIR.loc / AIR.scale, 1.0 / AIR.scale
    low, high = np.full_like(start, -np.inf), np.full_like(start, np.inf)
    low[..., -1], high[..., -1] = (end / AIR.scale for end in its.phi_range)
    plain._learner = COCOB(start, lower=low, upper=high)
    rng, ours = np.random.default_rng(5), made(make_predictor)
    for _ in range(40):
        features, released = rng.normal(size=(1, 2)), 150.0 + 30.0 * rng.normal(size=(1, 9))
        for one in (its, plain, ours):
            one.observe(features, released)
        for a, b in zip(its.laplaces(features), plain.laplaces(features), strict=True):
            assert np.allclose(a, b, rtol=1e-4)  # gradients of twenty bits, which fall otherwise in another unit
    assert not np.allclose(its.laplaces(features)[1], ours.laplaces(features)[1], rtol=0.05)


def fit(x: Any, loc: float, scale: float, width: float, *, from_zero: bool) -> list[pq.Laplace]:
    problem = public_fit._problem(x, QUANTILES, 50, loc, scale, width, "between")
    return public_fit._laplaces(problem, None, "cocob", np.random.default_rng(2), from_zero=from_zero)


def test_a_fit_from_zero_is_another_one_where_the_guess_is_not_zero() -> None:
    """From a guess of 0 and 1 there is no difference; from another there is, and it depends on the unit."""
    x = np.random.default_rng(1).normal(3.0, 2.0, 2000)
    assert fit(x, 0.0, 1.0, 0.1, from_zero=True) == fit(x, 0.0, 1.0, 0.1, from_zero=False)
    for from_zero in (True, False):
        minutes = fit(x, 2.0, 1.5, 0.1, from_zero=from_zero)
        seconds = fit(60 * x, 120.0, 90.0, 6.0, from_zero=from_zero)
        alike = [a.scale * 60 == pytest.approx(b.scale, rel=1e-3) for a, b in zip(minutes, seconds, strict=True)]
        assert all(alike) is not from_zero


def test_means_are_those_of_trials(tmp_path: Path) -> None:
    rows = run(coordinates.day_units("tiny", ["flights_air_time"]), tmp_path)
    means = coordinates.what_ways_add(coordinates.by_way(rows))
    assert means.height == 2 * 2 * 2 * 4  # calibrations, learners, budgets, ways
    cell = sequential.Cell("flights_air_time", "prox", 1.0, days=12, trials=2, calibration="paper")
    found = {
        way: coordinates.gaps_from(cell, ["prox", "open"], [0.1, 1.0], way)["open", 1.0].mean(axis=0)
        for way in coordinates.WAYS
    }
    ours = found["guess"]
    for way, gaps in found.items():
        one = means.filter(variant="paper", method="open", epsilon=1.0, way=way).row(0, named=True)
        assert (one["more"], one["more_error"]) == pytest.approx(mean_and_error(gaps - ours))
        assert (one["max_gap"], one["max_gap_error"], one["trials"]) == pytest.approx((*mean_and_error(gaps), 2))
    assert len({tuple(gaps) for gaps in found.values()}) == 4


def test_the_papers_learner_has_one_loss_for_all_quantiles() -> None:
    """Gradients are those of single losses times shares that add up to one, most for the quantile that lies worst."""
    alone, joint = (made(make) for make in (coordinates.predictor_from_zero, coordinates.MAKERS["paper"]))
    low = AIR.loc + AIR.scale * np.array([[-9.0, -1.0, -0.5, 0.3, 0.4, 0.6, 1.0, 2.0, 3.0]])
    (_, one), (_, other) = (learner.gradients(np.zeros((1, 2)), low, low + 1.0) for learner in (joint, alone))
    shares = (one / other)[0]
    assert np.sum(shares) == pytest.approx(1.0) and np.argmax(shares) == 0 and np.ptp(shares) > 0.5


def test_fits_are_released_as_in_the_experiment_with_public_data() -> None:
    """The same records and noise; from the paper's prior, by its own release."""
    sizes: dict[str, Any] = {"epsilons": [1.0], "mixtures": [0.0, 1.0], "trials": 2, "seed": 0}
    rows = coordinates.fits_from_zero(source="movies_length", variant="paper", **sizes)
    assert [(row["trial"], row["method"], row["mixture"]) for row in rows] == [
        (trial, method, mixture) for trial in range(2) for method in coordinates.FITS for mixture in (0.0, 1.0)
    ]
    x = public_private.sample("movies_length", 1.0, 100, 1, 0, 1)
    values = pq.release(
        x,
        QUANTILES,
        mechanism="tree",
        epsilon=1.0,
        priors=list(coordinates.fitted_from_zero("movies_length", "cocob", 100, 9, 0, "paper", 1)),
        rng=stream(0, "noise", "movies_length", 100, 9, 1.0, 1.0, 1),
        calibration="paper",
    ).values
    assert rows[5]["max_gap"] == public_private.excess_gap(x, QUANTILES, values)
    with pytest.raises(ValueError, match="optimizer"):
        coordinates.fitted_from_zero("movies_length", "ogd", 100, 9)


def test_the_stored_tables_have_every_cell_and_our_way_is_that_of_the_other_tables() -> None:
    table = coordinates.stored_days()
    cells = set(zip(*(table[name] for name in ("data", "variant", "method", "way")), strict=True))
    each = itertools.product(coordinates.TASK_WAYS.items(), ("paper", "sharp"), coordinates.LEARNERS)
    assert cells == {(task, kind, method, way) for (task, ways), kind, method in each for way in ways}
    assert table.height == 15 * len(cells) and set(table["trials"]) == {40}
    names = ["data", "variant", "method", "epsilon"]
    others = pl.concat(
        pl.read_csv(sequential.RESULTS / f"{label}-logepsplots.csv", schema_overrides={"max_gap_error": pl.Float64})
        .filter(day_block=-1, m=9)
        .select(*names, pl.col("max_gap").alias("stored"))
        for label in ("online", "worldnews")
    )
    ours = table.filter(way="guess")
    same = ours.join(others, on=names)
    assert same.height == ours.height and np.allclose(same["max_gap"], same["stored"], rtol=1e-5)

    trials = coordinates.stored_fits()
    cells = set(zip(*(trials[name] for name in ("source", "variant", "method", "way")), strict=True))
    sources = [source for name in coordinates.EXPERIMENT_NAMES for source in public_private.EXPERIMENTS[name][0]]
    assert cells == set(itertools.product(sources, public_private.VARIANTS, coordinates.FITS, ("guess", "zero")))
    points = 40 * len(public_private.VARIANTS) * len(coordinates.FITS)
    assert trials.height == 2 * points * (2 * 9 + 2 * 11 + 2 * 11)
    assert trials.select("source", "variant", "method", "way", "epsilon", "mixture", "trial").is_duplicated().sum() == 0
