"""On a grid a column, its counts at the multiples and the same records in any other container have one law, halves
between two multiples among them. Outputs have fixed seeds; laws are exact."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import pq
from pq.core.request import Request
from pq.private import release as releases
from pq.private.columns import selection
from pq.private.columns.frames import column_of
from pq.private.columns.part import Near
from pq.private.mechanisms.cells import Cells, PlacePartition
from pq.private.mechanisms.protocol import Mechanism
from pq.private.randomness import Source

Floats = npt.NDArray[np.float64]
MECHANISMS = ["tree", "margin", "joint", "mixed", "cells"]
STEPS = [0.1, 0.5, 1, 2.5]
LEVELS = [0.25, 0.5, 0.75]
MANY = 131_072


@pytest.fixture(autouse=True, scope="module")
def machine() -> None:
    """Parts of unsorted columns are looked up by machine code alone."""
    assert all(engine.ready(1e9) for engine in selection.ENGINES)


def halves(step: float, n: int, seed: int = 0) -> Floats:
    """Records at multiples of half a step, and some at any place."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.8, rng.integers(-20, 21, n) * step / 2, rng.normal(0, 6 * step, n))


def far_out(step: float, n: int) -> Floats:
    """Halves between multiples as far out as there are any, and records beyond."""
    rng = np.random.default_rng(1)
    near_end = (2.0**50 + rng.integers(0, 12, n) / 2) * rng.choice([-1.0, 1.0], n) * step
    return np.where(rng.random(n) < 0.1, rng.choice([1e300, -1e300, np.inf, -np.inf], n), near_end)


def asked(mechanism: str, step: float, prior: pq.Prior | None = None) -> dict[str, Any]:
    prior = pq.Uniform(-12 * step, 12 * step) if prior is None else prior
    return {"epsilon": 1, "priors": prior, "grid": step, "mechanism": mechanism, "size_guess": 500}


def assert_one_law(x: Any, options: dict[str, Any], seeds: int = 2) -> None:
    """Of records as they come, sorted once, and counted."""
    others = [pq.SortedColumn(x), pq.count(x, grid=options["grid"])]
    for seed in range(seeds):
        release = pq.release(x, LEVELS, rng=seed, **options)
        density = pq.log_density(x, release, LEVELS, **options)
        assert np.isfinite(density)
        for other in others:
            again = pq.release(other, LEVELS, rng=seed, **options)
            assert again.to_dict() == release.to_dict()
            assert pq.log_density(other, release, LEVELS, **options) == density


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("step", STEPS)
def test_halves_have_the_law_of_their_counts(mechanism: str, step: float) -> None:
    for prior in (None, pq.LogUniform()):
        assert_one_law(halves(step, 200), asked(mechanism, step, prior))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("step", [0.1, 1])
def test_so_have_huge_numbers(mechanism: str, step: float) -> None:
    assert_one_law(far_out(step, 60), asked(mechanism, step, pq.LogUniform()))
    wide = pq.Uniform(-(2.0**50 + 8) * step, (2.0**50 + 8) * step)
    assert_one_law(far_out(step, 60), asked(mechanism, step, wide))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_records_off_the_middles_have_the_law_of_their_counts(mechanism: str) -> None:
    """A width around a private median holds rounded records, too."""
    x = np.random.default_rng(2).normal(5, 2, 300)
    for prior in (pq.Uniform(-5, 15), pq.LogUniform()):
        assert_one_law(x, asked(mechanism, 1, prior), seeds=4)


@pytest.mark.parametrize("where", ["place", "cuts", "refined"])
def test_cells_that_look_first_see_rounded_records(where: Any) -> None:
    maker = Cells(Request.of(LEVELS, **asked("cells", 0.5)), where=where)
    x = halves(0.5, MANY)
    for seed in range(2):
        columns = [column_of(one) for one in (x, pq.SortedColumn(x), pq.count(x, grid=0.5))]
        one, *others = (releases.fulfil(maker, column, Source(seed)).to_dict() for column in columns)
        assert others == [one, one]


def test_a_look_does_not_choose_among_widths_that_hold_the_same_records() -> None:
    """Below a step there are three at most, or a value that many share would have any of them."""
    for prior in (pq.LogUniform(), pq.Cauchy(0, 10), pq.Uniform(-1e-9, 1e-9)):
        partition = Cells(Request.of(LEVELS, **asked("cells", 0.5, prior)), where="place").plan.partition
        assert isinstance(partition, PlacePartition)
        assert len(partition.widths) > 0 and np.count_nonzero(partition.widths < 0.5) <= 3


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_days_have_the_law_of_their_counts(mechanism: str) -> None:
    first = dt.datetime(2026, 3, 1)
    x = [first + dt.timedelta(hours=12 * int(k)) for k in np.random.default_rng(3).integers(0, 30, 200)]
    prior = pq.Uniform(first.timestamp(), first.timestamp() + 15 * 86_400)
    options = asked(mechanism, 86_400, prior)
    counts = pq.count(x, grid=86_400)
    for seed in range(3):
        release = pq.release(x, LEVELS, rng=seed, **options)
        assert pq.release(counts, LEVELS, rng=seed, **options).to_dict() == release.to_dict()
        assert pq.log_density(x, release, LEVELS, **options) == pq.log_density(counts, release, LEVELS, **options)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_group_has_the_release_of_its_records(mechanism: str) -> None:
    x = halves(1, 300)
    table = {"key": ["a"] * len(x), "value": x}
    for seed in range(3):
        alone = pq.release(x, LEVELS, rng=seed, **asked(mechanism, 1))
        grouped = pq.release_groups(table, LEVELS, by="key", value="value", keys=["a"], rng=seed, **asked(mechanism, 1))
        assert grouped.releases["a"].values.tolist() == alone.values.tolist()
        assert grouped.releases["a"].outcome == alone.outcome


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("step", [0.1, 1])
def test_many_unsorted_records_give_what_their_counts_give(mechanism: str, step: float) -> None:
    x = halves(step, MANY, seed=4)
    counts = pq.count(x, grid=step)
    for seed in range(2):
        options = asked(mechanism, step) | {"rng": seed}
        one, other, third = (pq.release(y, LEVELS, **options) for y in (x, pq.SortedColumn(x), counts))
        assert one.to_dict() == other.to_dict() == third.to_dict()


def test_cells_on_a_grid_need_no_sorted_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """One part does, for what lies around the last numbers that are rounded down is known with it."""
    parts: list[bool] = []

    def spied(maker: Mechanism, records: Any, near: Near, tape: Any) -> Any:
        found = of_parts(maker, records, near, tape)
        parts.append(found is not None)
        return found

    of_parts = releases._of_parts
    monkeypatch.setattr(releases, "_of_parts", spied)
    for step in STEPS:
        pq.release(halves(step, MANY), LEVELS, rng=0, **asked("cells", step))
    assert parts == [True] * len(STEPS)


def test_intervals_hold_the_quantile_of_rounded_halves() -> None:
    """All records lie between 1 and 2 and count as 2; an interval at 95% misses it in at most 40 of 400, but for a
    chance below 1e-4."""
    x, options = np.full(5000, 1.5), asked("cells", 1, pq.Uniform(0, 10))
    ends = [pq.release(x, [0.5], rng=seed, **options).interval(0.95)[0] for seed in range(400)]
    assert sum(low <= 2.0 <= high for low, high in ends) >= 360


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_half_more_costs_no_more_than_epsilon(mechanism: str) -> None:
    """A record at a half is rounded alike whatever is beside it."""
    x, options = halves(1, 40), asked(mechanism, 1)
    for seed in range(4):
        release = pq.release(x, LEVELS, rng=seed, **options)
        for more in (-0.5, 0.5, 1.5, 2.5):
            loss = pq.privacy_loss(x, np.append(x, more), release, LEVELS, **options)
            counted = pq.privacy_loss(x, np.append(x, np.rint(more)), release, LEVELS, **options)
            assert abs(loss) <= 1.0 + 1e-9 and loss == counted
