"""Priors for all quantiles at once: the law of a joint release under a mixture against every way written out, exact
losses, both samplers, and what is refused."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import joint_oracles as oracles
import numpy as np
import pytest
import scipy.stats

import pq
from pq.core.priors import PiecewiseConstant, Uniform
from pq.core.priors.place import placed
from pq.private.mechanisms.joint import density as joint_density
from pq.private.mechanisms.joint import law as joint
from pq.private.mechanisms.joint import mixture as joint_mixture
from pq.private.mechanisms.joint.density import joint_log_density
from pq.private.mechanisms.joint.mixture import (
    JointMixture,
    draw_mixture,
    draw_mixture_fast,
    mixture_log_density,
)
from pq.private.mechanisms.joint.plan import JointPlan

LEAST_P = 1e-7  # a test of a histogram fails by chance with this probability
HALVES = (Fraction(1, 4), Fraction(3, 4))
BINS = [0.0, 0.25, 0.5, 1.0]
MEMBERS, WEIGHTS = ([1.0, 0.0, 0.0], [0.0, 1.0, 3.0], [1.0, 1.0, 2.0]), (0.5, 0.3, 0.2)  # masses of the bins
KINDS = [("drawn", "add-remove"), ("best", "add-remove"), ("records", "replace")]
X = [0.1, 0.3, 0.35, 0.6, 0.95]


@pytest.fixture(autouse=True)
def _normalisers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_density, "log_normaliser", oracles.remember_normalisers(joint_density))


def mixture_of(kind: tuple[str, str] = KINDS[0], epsilon: float = 2.0, **more: Any) -> JointMixture:
    plans = tuple(
        JointPlan.of(
            HALVES, epsilon=epsilon, priors=PiecewiseConstant(BINS, masses), total=kind[0], adjacency=kind[1], **more
        )
        for masses in MEMBERS
    )
    return JointMixture(plans, WEIGHTS)


def base_density(point: list[float]) -> float:
    """Of the mixture, by hand, with ordered outputs not yet normalised."""
    out = 0.0
    for masses, weight in zip(MEMBERS, WEIGHTS, strict=True):
        each = [m / sum(masses) / (b - a) for m, (a, b) in zip(masses, itertools.pairwise(BINS), strict=True)]
        out += weight * math.prod(each[0 if o <= 0.25 else 1 if o <= 0.5 else 2] for o in point)
    return out


def written_out(mixture: JointMixture, x: list[float]) -> dict[tuple[int, ...], tuple[list[float], float, float]]:
    """A point, the volume and the probability of every way to place outputs."""
    plan, found = mixture.first, {}
    totals = [i * plan.total_unit for i in range(200)] if plan.total == "drawn" else [float(len(x))]
    kernels = [
        oracles.log_kernel(x, [0.25, 0.75], plan.rate, None if plan.total == "best" else total) for total in totals
    ]
    for cells, point, volume in oracles.ways(sorted({*BINS, *x}), 2):
        found[cells] = point, volume, base_density(point) * volume * sum(math.exp(kernel(point)) for kernel in kernels)
    whole = sum(weight for *_, weight in found.values())
    return {cells: (point, volume, weight / whole) for cells, (point, volume, weight) in found.items()}


def our_density(mixture: JointMixture, x: list[float], point: list[float]) -> float:
    return mixture_log_density(mixture, np.array(x), None, point)


def of_each_normalised(mixture: JointMixture, x: list[float], point: list[float]) -> float:
    """As if a member were drawn by its weight alone."""
    logs = [joint_log_density(plan, np.array(x), None, np.array(point)) for plan in mixture.plans]
    return float(np.logaddexp.reduce(np.array(logs) + mixture.log_weights))


def of_the_likeliest(mixture: JointMixture, x: list[float], point: list[float]) -> float:
    """Of one member only."""
    return max(joint_log_density(plan, np.array(x), None, np.array(point)) for plan in mixture.plans)


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_the_density_is_that_of_every_way_written_out(kind: tuple[str, str]) -> None:
    mixture, off = mixture_of(kind), dict.fromkeys((of_each_normalised, of_the_likeliest), 0.0)
    for x in ([], [0.3], X[:4]):
        for point, volume, probability in written_out(mixture, x).values():
            if probability > 0.0:
                assert our_density(mixture, x, point) == pytest.approx(math.log(probability / volume), abs=1e-11)
                for broken in off:
                    off[broken] = max(off[broken], abs(broken(mixture, x, point) - math.log(probability / volume)))
    assert min(off.values()) > 0.1


def test_outcomes_with_their_totals_have_probabilities_that_add_up() -> None:
    mixture = mixture_of()
    totals = [i * mixture.first.total_unit for i in range(40)]
    whole = sum(
        math.exp(mixture_log_density(mixture, np.array(X), None, point, total)) * volume
        for point, volume, _ in written_out(mixture, X).values()
        for total in totals
    )
    assert whole == pytest.approx(1.0, abs=1e-9)
    assert mixture_log_density(mixture, np.array(X), None, [0.4, 0.2]) == -math.inf
    assert mixture_log_density(mixture, np.array(X), None, [0.2, 0.4], 0.5 * mixture.first.total_unit) == -math.inf


def neighbours(replace: bool) -> list[tuple[list[float], list[float]]]:
    columns = [list(x) for n in range(3 + replace) for x in itertools.combinations([0.15, 0.45, 0.55, 0.85], n)]
    if replace:
        rests = [(x, rest) for x in columns if x for rest in (x[1:], x[:-1])]
        return [(x, sorted([*rest, new])) for x, rest in rests for new in (0.02, 0.98)]
    return [(x, sorted([*x, new])) for x in columns for new in (0.02, 0.5, 0.98)]


def worst_loss(kind: tuple[str, str], epsilon: float, sharp: bool, **changed: Any) -> float:
    """Largest exact loss over neighbours and all ways to place outputs, as a share of epsilon."""
    mixture, worst = mixture_of(kind, epsilon), 0.0
    if sharp:  # nearly all mass at one place, in the first member or in the second
        ends = PiecewiseConstant([0, 0.04, 1], [1, 1e-9]), PiecewiseConstant([0, 0.96, 1], [1e-9, 1])
        plans = tuple(dataclasses.replace(mixture.first, priors=(end, end)) for end in ends)
        mixture = JointMixture(plans, (1.0, 1e-12))
    if changed:
        mixture = JointMixture(tuple(dataclasses.replace(p, **changed) for p in mixture.plans), mixture.weights)
    for x, y in neighbours(kind[1] == "replace"):
        for _, point, _ in oracles.ways(sorted({*BINS, 0.04, 0.96, *x, *y}), 2):
            one, other = our_density(mixture, x, point), our_density(mixture, y, point)
            assert (one > -math.inf) == (other > -math.inf)
            if one > -math.inf:
                worst = max(worst, abs(one - other) / epsilon)
    return worst


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_losses_on_neighbours_are_at_most_epsilon_and_nearly_so(kind: tuple[str, str]) -> None:
    losses = [worst_loss(kind, epsilon, sharp) for epsilon in (0.5, 6.0) for sharp in (False, True)]
    assert 0.9 < max(losses) <= 1.0 + 1e-9


def test_targets_that_move_with_the_number_of_records_are_caught() -> None:
    assert max(worst_loss(KINDS[0], epsilon, True, total="records") for epsilon in (0.5, 6.0)) > 1.2


# --- draws ------------------------------------------------------------------------------------------------------------


def p_value(mixture: JointMixture, x: list[float], draw: Callable[[], Any], trials: int) -> float:
    """Of a chi-square test of drawn cells against every way written out."""
    edges, seen = sorted({*BINS, *x}), Counter[object]()
    for _ in range(trials):
        seen[tuple(int(c) for c in np.searchsorted(np.array(edges[1:-1]), draw()[0], side="left"))] += 1
    law = {cells: trials * p for cells, (*_, p) in written_out(mixture, x).items()}
    large = [cells for cells, count in law.items() if count >= 8.0]
    expected = np.array([*(law[cells] for cells in large), 0.0])
    observed = np.array([*(seen[cells] for cells in large), 0.0])
    expected[-1], observed[-1] = max(trials - expected.sum(), 1e-9), trials - observed.sum()
    if expected[-1] < 8.0:
        expected, observed = expected[:-1] * observed[:-1].sum() / expected[:-1].sum(), observed[:-1]
    return float(scipy.stats.chisquare(observed, expected).pvalue)


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_machine_draws_follow_the_law(kind: tuple[str, str]) -> None:
    mixture, rng = mixture_of(kind), np.random.default_rng(1)
    assert p_value(mixture, X, lambda: draw_mixture_fast(mixture, np.array(X), None, rng.random), 3000) > LEAST_P


def test_formulas_follow_the_law_and_broken_samplers_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with members that are left unweighed, which then are drawn from their bounds."""
    mixture, rng, trials = mixture_of(), np.random.default_rng(2), 800

    def drawn() -> float:
        return p_value(mixture, X, lambda: draw_mixture(mixture, np.array(X), None, rng.random), trials)

    assert drawn() > LEAST_P
    real = joint_mixture.log_proposals
    with monkeypatch.context() as patch:
        patch.setattr(joint, "MARGIN", -20.0)  # so little is weighed that most comes from the rest
        assert drawn() > LEAST_P
        patch.setattr(joint_mixture, "log_proposals", lambda m, parts, look: real(m, parts, look) * 0 + m.log_weights)
        assert drawn() < LEAST_P
    with monkeypatch.context() as patch:  # a member by its weight alone
        patch.setattr(joint_mixture, "log_proposals", lambda m, parts, look: real(m, parts, look) * 0 + m.log_weights)
        assert drawn() < LEAST_P


def test_the_machine_gives_the_answers_of_the_formulas() -> None:
    rng = np.random.default_rng(3)
    shapes = [pq.Laplace(z, 0.1) for z in (-0.7, 0.0, 0.7)]
    prior = pq.JointPrior.location_scale(shapes, places=[-40.0, 0.0, 1.0, 300.0], widths=[0.5, 1.0])
    for n, epsilon, grid, total in ((0, 1, None, "drawn"), (7, 3, None, "best"), (60, 1, 0.1, "drawn")):
        plans = tuple(
            JointPlan.of([0.25, 0.5, 0.75], epsilon=epsilon, priors=one, grid=grid, total=total, size_guess=100)
            for one in prior.members
        )
        mixture, x = JointMixture(plans, prior.weights), np.sort(rng.normal(size=n))
        for seed in range(4):
            want, number = draw_mixture(mixture, x, None, np.random.default_rng(seed).random)
            got, other = draw_mixture_fast(mixture, x, None, np.random.default_rng(seed).random)
            assert np.allclose(got, want, rtol=1e-9, atol=1e-12) and number == other


# --- the public class -------------------------------------------------------------------------------------------------

PAIR = [pq.Normal(40, 2), pq.Normal(60, 2)]


def test_a_release_under_a_joint_prior() -> None:
    """On a grid and off it; a description brings back the same release; the density is that of the mixture."""
    x, levels = np.random.default_rng(0).normal(50, 5, 300), [0.75, 0.25, 0.5]
    shapes = [pq.Laplace(z, 0.2) for z in (0.7, -0.7, 0.0)]
    prior = pq.JointPrior.location_scale(shapes, places=[30, 50], widths=[5, 10])
    for grid in (None, 1):
        one = pq.release(x, levels, epsilon=1, priors=prior, grid=grid, rng=3)
        assert one.mechanism == "joint" and one.joint_prior == prior and len(one.priors) == 3
        assert np.max(pq.gap(x, levels, one.values)) < 60 and one.values[1] <= one.values[2] <= one.values[0]
        again = pq.Release.from_dict(one.to_dict())
        assert again.to_dict() == one.to_dict() and again.joint_prior == prior
        assert math.isfinite(pq.log_density(x, one.values, levels, epsilon=1, priors=prior, grid=grid))
    assert pq.simulate(x, levels, trials=2, epsilon=1, priors=prior, rng=1).shape == (2, 3)
    alone = pq.JointPrior([pq.Normal(50, 5)], [1])
    facts: dict[str, Any] = {"epsilon": 1, "mechanism": "joint"}
    want = pq.log_density(x, [45.0, 55.0], [0.25, 0.75], priors=pq.Normal(50, 5), **facts)
    assert pq.log_density(x, [45.0, 55.0], [0.25, 0.75], priors=alone, **facts) == pytest.approx(want, abs=1e-9)


def test_a_forecast_under_a_joint_prior_is_of_columns_that_members_say() -> None:
    """Columns around 0 or 1000, never between."""
    prior = pq.JointPrior([pq.Normal(0, 1), pq.Normal(1000, 1)], [1, 1])
    found = pq.forecast([0.25, 0.75], epsilon=2, priors=prior, size_guess=200, trials=8, rng=1)
    assert found.mechanism == "joint" and found.max_gap < 20 and max(found.error) < 1


def test_marginals_and_places() -> None:
    prior = pq.JointPrior([PAIR[0], (PAIR[0], PAIR[1])], [1, 3])
    first, second = prior.marginals(2)
    assert first == PAIR[0]
    assert second == pq.Mixture(PAIR, [1, 3])
    assert placed(pq.PiecewiseConstant([0, 1, 2], [1, 2]), 10, 3) == pq.PiecewiseConstant([10, 13, 16], [1, 2])
    assert placed(pq.Mixture(PAIR, [1, 1]), 1, 2) == pq.Mixture([pq.Normal(81, 4), pq.Normal(121, 4)], [1, 1])
    assert placed(pq.HalfCauchy(2, -1), 5, 2) == pq.HalfCauchy(4, 3)


@pytest.mark.parametrize("mechanism", ["tree", "cells", "mixed", "margin"])
def test_other_mechanisms_refuse_a_joint_prior(mechanism: str) -> None:
    prior = pq.JointPrior(PAIR, [1, 1])
    with pytest.raises(ValueError, match="priors"):
        pq.release([1.0], [0.5], epsilon=1, priors=prior, mechanism=mechanism, grid=1)
    with pytest.raises(ValueError, match="priors"):
        pq.release([1.0], [0.5], epsilon=1, priors=prior, arity=2)


def test_what_is_no_joint_prior_is_refused_by_name() -> None:
    for members, weights, name in (
        ([], [], "members"), (PAIR, [1], "weights"), ([PAIR, PAIR[:1]], [1, 1], "members"),
        ([1.0], [1], r"members\[0\]"), (PAIR[0], [1], "members"), (PAIR, [0, 0], "weights"),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=name):
            pq.JointPrior(members, weights)
    for base, places, widths, name in (
        (PAIR, [], [1], "places"), (PAIR, [0], [], "widths"), (PAIR, [0], [-1], "width"), (1, [0], [1], "base"),
        (pq.LogUniform(), [0], [1], "prior"),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=name):
            pq.JointPrior.location_scale(base, places, widths)
    with pytest.raises(ValueError, match="priors"):
        pq.release([1.0], [0.5], epsilon=1, priors=pq.JointPrior([PAIR], [1]))
    late = pq.JointPrior([(Uniform(2, 3), Uniform(0, 1))], [1])
    with pytest.raises(ValueError, match="priors"):
        pq.release([1.0], [0.25, 0.75], epsilon=1, priors=late)
