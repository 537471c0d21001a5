"""Bounds on joint releases against exact tail probabilities, and interpolation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import joint_oracles as oracles
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pq
from pq.core.bounds.joint import joint_gap, joint_score
from pq.core.interpolation import interpolate
from pq.core.priors import Uniform
from pq.private.mechanisms.joint.plan import JointPlan

COLUMNS = [[0.2, 0.4, 0.6, 0.8], [0.1, 0.11, 0.12, 0.13, 0.9], [0.5, 0.501, 0.502], []]
SETS = [(Fraction(1, 2),), (Fraction(1, 4), Fraction(3, 4)), (Fraction(1, 10), Fraction(2, 5))]
BETAS = (0.5, 0.1, 0.01)


def settings() -> Iterator[tuple[JointPlan, list[float]]]:
    kinds = itertools.product(("drawn", "best"), ("add-remove", "replace"), SETS, (0.5, 2.0, 8.0), COLUMNS)
    for total, adjacency, quantiles, epsilon, x in kinds:
        yield JointPlan.of(quantiles, epsilon=epsilon, priors=Uniform(0, 1), total=total, adjacency=adjacency), x


def law_of_score(plan: JointPlan, x: list[float]) -> tuple[list[tuple[float, float]], dict[tuple[int, ...], float]]:
    """Pairs of a score and its weight, and for each way to place outputs (its ranks) the best score."""
    values = [float(q) for q in plan.quantiles]
    shares, pairs, best = oracles.shares_of(values), [], {}
    for cells, point, volume in oracles.ways([0.0, *x, 1.0], plan.size):
        counts = oracles.between(x, point)
        best[cells] = oracles.best_score(counts, shares)
        scores = [best[cells]]
        if plan.total == "drawn":
            scores = [oracles.score(counts, shares, i * float(plan.total_step)) for i in range(120)]
        pairs += [(s, math.exp(-plan.rate * s) * volume) for s in scores]
    return pairs, best


def test_the_score_exceeds_its_bound_with_at_most_the_probability_that_is_stated() -> None:
    """Exact tails, with every way to place outputs as the box."""
    tightest = 0.0
    for plan, x in settings():
        pairs, best = law_of_score(plan, x)
        whole = sum(weight for _, weight in pairs)
        mass = {cells: volume for cells, _, volume in oracles.ways([0.0, *x, 1.0], plan.size)}
        for cells, beta in itertools.product(best, BETAS):
            log_psi = math.log(mass[cells] * math.factorial(plan.size))
            bound = joint_score(
                log_psi, float(plan.epsilon), beta, box_score=best[cells],
                counts_moved=1 if plan.adjacency == "add-remove" else 2,
                total_step=float(plan.total_step) if plan.total == "drawn" else None,
            )  # fmt: skip
            tail = sum(weight for s, weight in pairs if s > bound + 1e-9) / whole
            assert tail <= beta
            tightest = max(tightest, tail / beta)
    assert tightest > 0.1  # the bounds are not idle


def test_a_bound_at_twice_the_rate_is_rejected() -> None:
    failures = 0
    for plan, x in settings():
        if plan.total == "best":
            pairs, best = law_of_score(plan, x)
            mass = {cells: volume for cells, _, volume in oracles.ways([0.0, *x, 1.0], plan.size)}
            for cells in best:
                psi = math.log(mass[cells] * math.factorial(plan.size))
                bound = best[cells] + (joint_score(psi, float(plan.epsilon), 0.1) if psi < 0 else 0.0) / 2
                failures += sum(w for s, w in pairs if s > bound + 1e-9) > 0.1 * sum(w for _, w in pairs)
    assert failures > 0


def test_gaps_are_at_most_the_larger_share_of_the_score() -> None:
    for plan, x in settings():
        shares = oracles.shares_of([float(q) for q in plan.quantiles])
        for _, point, _ in oracles.ways([0.0, *x, 1.0], plan.size):
            counts = oracles.between(x, point)
            for total in (0.0, 1.0, 3.0, 10.0):
                whole = oracles.score(counts, shares, total)
                for j, q in enumerate(float(q) for q in plan.quantiles):
                    assert abs(sum(counts[: j + 1]) - q * len(x)) <= max(q, 1 - q) * whole + 1e-9


def test_bounds_name_their_arguments() -> None:
    for changed, name in (({"beta": 0.0}, "beta"), ({"epsilon": 0.0}, "epsilon"), ({"total_step": 0.0}, "total_step")):
        with pytest.raises(ValueError, match=name):
            joint_score(**({"log_psi": -1.0, "epsilon": 1.0, "beta": 0.1} | changed))
    with pytest.raises(ValueError, match="quantile"):
        joint_gap(1.5, -1.0, 1.0, 0.1)


increasing = st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=8).map(sorted)


@given(increasing, st.integers(0, 2**32 - 1))
def test_interpolated_quantiles_are_finite_increasing_and_pass_through_the_values(
    values: list[float], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    levels = np.sort(rng.choice(np.arange(1, 100), size=len(values), replace=False)) / 100
    quantiles = rng.permutation(np.concatenate([[0.0, 1.0], rng.random(20), levels]))
    out = interpolate(levels, values, quantiles)
    order = np.argsort(quantiles)
    assert np.all(np.isfinite(out)) and np.all(np.diff(out[order]) >= 0.0)
    assert np.allclose(interpolate(levels, values, levels), values, rtol=1e-9, atol=1e-9 * (values[-1] - values[0]))


@given(increasing, st.integers(0, 2**32 - 1))
def test_levels_that_are_one_float_or_an_end_are_interpolated_too(values: list[float], seed: int) -> None:
    rng = np.random.default_rng(seed)
    places = [0.0, 5e-324, 1e-300, 0.1, math.nextafter(0.1, 1), 0.5, 1 - 2.0**-53, 1.0]
    levels = np.sort(rng.choice(places, size=len(values)))
    quantiles = np.sort(np.concatenate([[0.0, 1.0], rng.random(20), levels]))
    with np.errstate(all="ignore"):
        out = interpolate(levels, values, quantiles)
    assert np.all(np.isfinite(out)) and np.all(np.diff(out) >= 0.0)


@pytest.mark.parametrize("mechanism", ["auto", "mixed"])
def test_quantiles_that_are_neighbouring_floats_are_released_from_every_column(mechanism: str) -> None:
    """How many outputs are drawn depends on the records: it once raised where they were many, after the charge."""
    close = [0.1 + k * math.ulp(0.1) for k in range(5)] + [i / 20 for i in range(4, 19)]
    tiny = [k * math.ulp(0.0) for k in range(1, 13)]
    options: dict[str, Any] = {"epsilon": 0.03, "priors": Uniform(0, 1), "size_guess": 3000, "mechanism": mechanism}
    for quantiles in (close, tiny, [1.0 - k * 2.0**-53 for k in range(1, 13)]):
        for x in ([], np.random.default_rng(0).random(3000)):
            values = pq.release(x, quantiles, rng=1, **options).values
            assert len(values) == len(quantiles) and np.all((values >= 0) & (values <= 1))


def test_interpolation_names_its_arguments() -> None:
    for arguments, name in (
        (([0.5, 0.25], [0.0, 1.0], [0.1]), "levels"), (([0.25, 0.5], [1.0, 0.0], [0.1]), "values"),
        (([0.5], [1.0], [1.5]), "quantiles"), (([-0.1, 0.5], [0.0, 1.0], [0.1]), "levels"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=name):
            interpolate(*arguments)
