"""Joint releases whose number of outputs is drawn with them: the law against every way written out, exact losses, both
samplers, and what it is good for."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import joint_oracles as oracles
import numpy as np
import pytest
import scipy.stats

import pq
from pq.core.priors import Uniform
from pq.core.request import Request
from pq.private.mechanisms.joint import Joint, levels_if_filled
from pq.private.mechanisms.joint import density as joint_density
from pq.private.mechanisms.joint import mixture as joint_mixture
from pq.private.mechanisms.joint.chain import Records
from pq.private.mechanisms.joint.mixture import (
    JointMixture,
    draw_mixture,
    draw_mixture_fast,
    log_within,
    mixture_log_density,
)
from pq.private.mechanisms.joint.plan import JointPlan
from pq.private.mechanisms.joint.scales import any_number

LEAST_P = 1e-7  # a test of a histogram fails by chance with this probability
LEVELS = {1: (Fraction(1, 2),), 2: (Fraction(1, 4), Fraction(3, 4))}
SUPPORTS = ((1, (0.0, 1.0), 0.3), (1, (0.25, 0.5), 0.3), (1, (0.75, 1.0), 0.4), (2, (0.0, 1.0), 0.6))
EDGES = (0.0, 0.25, 0.5, 0.75, 1.0)
X = [0.3, 0.32, 0.35, 0.4, 0.45, 0.6, 0.9]


@pytest.fixture(autouse=True)
def _normalisers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_density, "log_normaliser", oracles.remember_normalisers(joint_density))


def mixture_of(epsilon: float = 2.0, adjacency: Any = "add-remove") -> JointMixture:
    options: dict[str, Any] = {"epsilon": epsilon, "adjacency": adjacency}
    plans = tuple(JointPlan.of(LEVELS[k], priors=Uniform(*ends), **options) for k, ends, _ in SUPPORTS)
    return JointMixture(plans, tuple(weight for *_, weight in SUPPORTS))


def written_out(mixture: JointMixture, x: list[float]) -> dict[tuple[int, ...], tuple[list[float], float, float]]:
    """A point, the volume and the probability of every way to place one output or two."""
    found = {}
    for k, cells, point, volume in ways(x):
        weight = 0.0
        plan = mixture.of_size(k)
        assert plan is not None
        kernels = [
            oracles.log_kernel(x, [float(q) for q in LEVELS[k]], plan.rate, i * plan.total_unit) for i in range(200)
        ]
        for size, (low, high), share in SUPPORTS:
            if size == k and all(low < o < high for o in point):
                weight += share * (high - low) ** -k * sum(math.exp(kernel(point)) for kernel in kernels)
        found[cells] = point, volume, weight * volume
    whole = sum(weight for *_, weight in found.values())
    return {cells: (point, volume, weight / whole) for cells, (point, volume, weight) in found.items()}


def ways(*columns: list[float]) -> Iterator[tuple[int, tuple[int, ...], list[float], float]]:
    for k in LEVELS:
        for cells, point, volume in oracles.ways(sorted({*EDGES, *itertools.chain(*columns)}), k):
            yield k, cells, point, volume


def each_number_by_itself(mixture: JointMixture, x: list[float], point: list[float]) -> float:
    """As if the number were not drawn with the outputs, and were public."""
    own = [i for i, plan in enumerate(mixture.plans) if plan.size == len(point)]
    alone = JointMixture(tuple(mixture.plans[i] for i in own), tuple(mixture.weights[i] for i in own))
    return mixture_log_density(alone, np.array(x), None, point)


def likelier_number(mixture: JointMixture, x: list[float], point: list[float]) -> float:
    """The number of outputs that has the larger normaliser, always."""
    records = Records.of(mixture.first, np.array(x), None)
    logs = [joint_density.log_normaliser(plan, records) for plan in (mixture.plans[0], mixture.plans[-1])]
    likelier = 1 if logs[0] + 3.0 > logs[1] + 4.0 else 2
    return each_number_by_itself(mixture, x, point) if len(point) == likelier else -math.inf


@pytest.mark.parametrize("x", [[], [0.3], X[:4]], ids=len)
def test_the_density_is_that_of_every_way_written_out(x: list[float]) -> None:
    mixture, off = mixture_of(), 0.0
    for point, volume, probability in written_out(mixture, x).values():
        mine = mixture_log_density(mixture, np.array(x), None, point)
        assert mine == pytest.approx(math.log(probability / volume), abs=1e-11)
        off = max(off, abs(each_number_by_itself(mixture, x, point) - mine))
    assert off > 0.1
    assert mixture_log_density(mixture, np.array(x), None, [0.1, 0.2, 0.3]) == -math.inf


def worst_loss(density: Callable[..., float], mixture: JointMixture, adjacency: str) -> float:
    """Largest exact loss over neighbours and all ways to place outputs, as a share of epsilon."""
    worst, epsilon = 0.0, float(mixture.first.epsilon)
    columns = [list(x) for n in range(4) for x in itertools.combinations([0.15, 0.45, 0.55, 0.85], n)]
    for x, new in itertools.product(columns, (0.02, 0.5, 0.98)):
        y = sorted([*(x[1:] if adjacency == "replace" else x), new])
        if x or adjacency == "add-remove":
            for _, _, point, _ in ways(x, y):
                one, other = density(mixture, x, point), density(mixture, y, point)
                worst = max(worst, abs(one - other) / epsilon if one != other else 0.0)
    return worst


def ours(mixture: JointMixture, x: list[float], point: list[float]) -> float:
    return mixture_log_density(mixture, np.array(x), None, point)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_losses_on_neighbours_are_at_most_epsilon(adjacency: str) -> None:
    losses = [worst_loss(ours, mixture_of(epsilon, adjacency), adjacency) for epsilon in (0.5, 6.0)]
    assert {"add-remove": 0.6, "replace": 0.5}[adjacency] < max(losses) <= 1.0 + 1e-9


def test_a_number_that_follows_from_the_normalisers_is_caught() -> None:
    assert worst_loss(likelier_number, mixture_of(6.0), "add-remove") == math.inf


@pytest.mark.parametrize("n", [0, 3])
def test_losses_of_few_at_any_scale_or_many_are_at_most_epsilon(n: int) -> None:
    """With all parts of the prior, on columns at the ends, in the middle, and beyond the prior."""
    few, many = (JointPlan.of(LEVELS[k], epsilon=6, priors=Uniform(0, 1)) for k in LEVELS)
    mixture, rng, worst = any_number(few, many), np.random.default_rng(n), 0.0
    for new in (-1.0, 0.001, 0.5, 2.0):
        x = np.sort(rng.uniform(size=n))
        y = np.sort(np.append(x, new))
        for _, _, point, _ in ways(x.tolist(), [new] if 0.0 < new < 1.0 else []):
            worst = max(worst, abs(ours(mixture, x.tolist(), point) - ours(mixture, y.tolist(), point)) / 6.0)
    assert 0.1 < worst <= 1.0 + 1e-9


@pytest.mark.parametrize("k", [1, 2])
def test_bounds_from_the_ends_hold_and_are_near_where_all_records_are_beyond(k: int) -> None:
    """Of the normalisers, on columns of many sizes, and of what the sampler proposes from."""
    for n, ends in itertools.product((0, 1, 40), SUPPORTS):
        plan = JointPlan.of(LEVELS[k], epsilon=1, priors=Uniform(*ends[1]))
        records = Records.of(plan, np.sort(np.random.default_rng(n).uniform(-0.2, 0.7, size=n)), None)
        bound = float(log_within(plan, records, np.array([ends[1]]))[0]) + plan.log_most
        real = joint_density.log_normaliser(plan, records)
        proposed = joint_mixture.joint.weigh(plan, records).log_proposed
        assert real - 1e-9 <= proposed <= bound
        if ends[1] == (0.75, 1.0):  # the score is the same wherever outputs are
            assert bound == pytest.approx(real, abs=1e-4)


def test_a_part_of_an_interval_weighs_at_most_the_ratio_of_widths_more() -> None:
    """Exact normalisers; nearly so where all that is likely lies in the part; a tenth less is no bound."""
    uniform = [(0.0, 1.0), (0.0, 0.5), (0.25, 0.5), (0.25, 0.75), (0.3, 0.45)]
    close, parts = 0, 0
    for k, n in itertools.product(LEVELS, (0, 3, 60)):
        plans = [JointPlan.of(LEVELS[k], epsilon=2, priors=Uniform(*ends)) for ends in uniform]
        other = JointPlan.of(LEVELS[3 - k], epsilon=2, priors=Uniform(0.3, 0.45))
        mixture = JointMixture(
            (*plans, other, dataclasses.replace(plans[0], priors=(pq.Normal(0.4, 0.01),) * k)), (1.0,) * 7
        )
        records = Records(np.sort(np.random.default_rng(n).normal(0.38, 0.01, size=n)), None)
        real = [joint_density.log_normaliser(plan, records) for plan in plans]
        for i, j in itertools.permutations(range(5), 2):
            more = float(mixture.log_more(i, np.array([j]))[0])
            if not uniform[i][0] <= uniform[j][0] < uniform[j][1] <= uniform[i][1]:
                assert more == math.inf
                continue
            assert real[j] <= real[i] + more + 1e-9
            parts += 1
            close += real[j] > real[i] + 0.9 * more
        unknown = [*mixture.log_more(0, np.array([5, 6])), *mixture.log_more(6, np.array([0, 4]))]
        assert unknown == [math.inf] * 4
    assert parts == 6 * 9 and close >= 2 * 9


def test_the_ratio_of_widths_is_known_where_a_width_is_beyond_the_floats() -> None:
    """It once counted as minus infinity, and members inside had no weight from the sixteenth look on."""
    ends = [(-1.7e308, 1.7e308), (-1e308, 1e308), (-1.0, 1.0), (0.0, 5e-324)]
    plans = [JointPlan.of(LEVELS[1], epsilon=2, priors=Uniform(*end)) for end in ends]
    mixture = JointMixture(tuple(plans), (1.0,) * 4)
    for i, j in itertools.combinations(range(4), 2):
        one, other = (Fraction(high) - Fraction(low) for low, high in (ends[i], ends[j]))
        ratio = math.log(one.numerator * other.denominator) - math.log(one.denominator * other.numerator)
        more = float(mixture.log_more(i, np.array([j]))[0])
        assert more == pytest.approx(plans[0].size * ratio, rel=1e-12)


def test_few_members_are_looked_at_where_records_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 678, most of which bounds that know nothing of equal records take for likely ones."""
    tenths = [Fraction(i, 10) for i in range(1, 10)]
    few, many = (JointPlan.of(q, epsilon=0.5, priors=Uniform(-99, 199)) for q in (tenths[1::2], tenths))
    mixture, looked = any_number(few, many), []
    column = np.sort(np.append(np.zeros(1500), np.random.default_rng(6).lognormal(size=1500)))
    real = joint_mixture.joint.weigh

    def counted(*arguments: Any) -> Any:
        looked.append(arguments)
        if len(looked) > 90:
            raise StopIteration
        return real(*arguments)

    monkeypatch.setattr(joint_mixture.joint, "weigh", counted)
    draw_mixture(mixture, column, None, np.random.default_rng(7).random)
    assert len(looked) < 60
    looked.clear()
    monkeypatch.setattr(JointMixture, "log_more", lambda self, member, others: np.full(len(others), math.inf))
    with pytest.raises(StopIteration):
        draw_mixture(mixture, column, None, np.random.default_rng(7).random)


# --- draws ------------------------------------------------------------------------------------------------------------


def p_value(mixture: JointMixture, draw: Callable[[], Any], trials: int) -> float:
    """Of a chi-square test of drawn cells against every way written out."""
    edges, seen = np.array(sorted({*EDGES, *X})[1:-1]), Counter[object]()
    for _ in range(trials):
        seen[tuple(np.searchsorted(edges, draw()[0], side="left").tolist())] += 1
    law = {cells: trials * p for cells, (*_, p) in written_out(mixture, X).items()}
    large = [cells for cells, count in law.items() if count >= 8.0]
    expected = np.array([*(law[cells] for cells in large), 1e-9 + sum(law.values()) - sum(law[c] for c in large)])
    observed = np.array([*(seen[cells] for cells in large), trials - sum(seen[cells] for cells in large)])
    return float(scipy.stats.chisquare(observed, expected * trials / expected.sum()).pvalue)


@pytest.mark.parametrize(("draw", "trials"), [(draw_mixture, 1500), (draw_mixture_fast, 6000)])
def test_draws_follow_the_law_and_those_that_keep_all_of_a_bound_do_not(
    draw: Callable[..., Any], trials: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is looked at before it is drawn."""
    mixture, rng = mixture_of(), np.random.default_rng(2)
    assert p_value(mixture, lambda: draw(mixture, np.array(X), None, rng.random), trials) > LEAST_P

    def bounds_alone(m: JointMixture, parts: Any, look: Any) -> Any:
        return m.log_weights + np.array([part.log_proposed for part in parts])

    with monkeypatch.context() as patch:  # wide members first, and a bound that those inside exceed
        patch.setattr(joint_mixture, "PATIENCE", 0)
        assert p_value(mixture, lambda: draw(mixture, np.array(X), None, rng.random), trials // 2) > LEAST_P
        patch.setattr(JointMixture, "log_more", lambda self, member, others: np.full(len(others), -3.0))
        assert p_value(mixture, lambda: draw(mixture, np.array(X), None, rng.random), trials // 2) < LEAST_P
    monkeypatch.setattr(joint_mixture, "log_proposals", bounds_alone)
    assert p_value(mixture, lambda: draw(mixture, np.array(X), None, rng.random), trials) > LEAST_P
    chosen = joint_mixture.choose_within
    monkeypatch.setattr(joint_mixture, "choose_within", lambda logs, uniform: (chosen(logs, uniform)[0], 0.0))
    assert p_value(mixture, lambda: draw(mixture, np.array(X), None, rng.random), trials) < LEAST_P


def test_the_machine_gives_the_answers_of_the_formulas() -> None:
    tenths, rng = [Fraction(i, 10) for i in range(1, 10)], np.random.default_rng(3)
    few, many = (JointPlan.of(q, epsilon=0.5, priors=Uniform(-10, 10)) for q in (tenths[1::2], tenths))
    mixture, sizes = any_number(few, many), set()
    for column in (np.empty(0), np.sort(rng.normal(size=200)), np.sort(rng.uniform(-9, 9, size=200)), np.full(9, 3.0)):
        for seed in range(4):
            want, number = draw_mixture(mixture, column, None, np.random.default_rng(seed).random)
            got, other = draw_mixture_fast(mixture, column, None, np.random.default_rng(seed).random)
            assert np.allclose(got, want, rtol=1e-9, atol=1e-12) and number == other
            sizes.add(len(want))
    assert sizes == {4, 9}


# --- what it is for ---------------------------------------------------------------------------------------------------


def evenly(m: int) -> list[float]:
    return [(i + 1) / (m + 1) for i in range(m)]


def asked(m: int = 9, **facts: Any) -> Request:
    return Request.of(evenly(m), **({"epsilon": 0.1, "priors": Uniform(-10, 10)} | facts))


def test_where_the_number_is_drawn() -> None:
    """Few outputs of a column that may not be smooth, under one prior that has ends, without a grid."""
    assert [len(levels_if_filled(asked(m), 4)) for m in (4, 9, 29)] == [0, 9, 9]
    assert levels_if_filled(asked(29), 4) == levels_if_filled(asked(), 4)
    one = pq.JointPrior((Uniform(-10, 10), Uniform(0, 1)), (0.5, 0.5))
    several = [Uniform(-10, 10 + i) for i in range(9)]
    for facts in (
        {"assume_smooth": True},
        {"grid": 1},
        {"priors": pq.Normal(0, 1)},
        {"priors": pq.LogUniform()},
        {"priors": one},
        {"priors": several},
        {"size_guess": 4000},
    ):
        request = asked(**facts)
        assert levels_if_filled(request, 4) == ()
        assert Joint(request).mixture is None or "priors" in facts


def mean_gap(draw: Callable[[np.random.Generator], np.ndarray[Any, Any]], width: float, trials: int = 40) -> float:
    rng, total = np.random.default_rng(5), 0.0
    for seed in range(trials):
        x = np.sort(draw(rng))
        drawn = pq.release(x, evenly(9), epsilon=0.1, priors=Uniform(-width, width), size_guess=1000, rng=seed)
        total += pq.max_gap(x, evenly(9), drawn.values)
    return total / trials


def test_records_at_any_scale_and_in_lumps() -> None:
    """With seeds that are fixed. Few outputs under the prior alone have gaps of 62 and 185 on the wide ones and 127 on
    lumps, nine outputs 576 and more, 88 and 82."""
    assert mean_gap(lambda rng: rng.normal(size=1000), 1e3) < 50.0
    assert mean_gap(lambda rng: rng.normal(size=1000), 1e4) < 55.0
    lumps = mean_gap(lambda rng: rng.choice(rng.uniform(-8, 8, 12), 1000) + 0.01 * rng.normal(size=1000), 10.0)
    assert lumps < 101.0
    assert mean_gap(lambda rng: rng.normal(size=1000), 10.0) < 50.0


def test_releases_are_alike_in_every_unit() -> None:
    x = np.random.default_rng(1).normal(size=300)
    options: dict[str, Any] = {"epsilon": 0.4, "rng": 3, "size_guess": 300}
    one = pq.release(x, evenly(9), priors=Uniform(-10, 10), **options)
    other = pq.release(1000.0 * x, evenly(9), priors=Uniform(-10_000, 10_000), **options)
    assert one.mechanism == other.mechanism == "joint" and one.total == other.total
    assert np.allclose(other.values, 1000.0 * one.values, rtol=1e-9)
    assert dict(one.outcome).keys() == dict(other.outcome).keys()


@pytest.mark.parametrize(("width", "drawn"), [(10.0, 9), (1000.0, 4)])
def test_a_release_has_its_density_whatever_the_number(width: float, drawn: int) -> None:
    """And values, totals and outputs that do not belong together have none."""
    x = np.sort(np.random.default_rng(1).uniform(-9.0, 9.0, size=200))
    options: dict[str, Any] = {"epsilon": 0.5, "priors": Uniform(-width, width), "size_guess": 200}
    release = pq.release(x, evenly(9), rng=0, **options)
    outcome = {"values": release.values, "total": release.total} | dict(release.outcome)
    assert len(outcome.get("drawn", release.values)) == drawn
    assert release.total is not None
    loss = pq.privacy_loss(x, x[1:], outcome, evenly(9), **options)  # none where neither column has a density
    assert 0.0 < abs(loss) <= 0.5 * (1 + 1e-12)
    for wrong in ({"total": release.total + 1}, {"drawn": [-1.0, 0.0, 1.0, 2.0]}, {"drawn": [0.0]}):
        assert pq.log_density(x, outcome | wrong, evenly(9), **options) == -math.inf
    assert np.isfinite(release.interval()).any()
    assert pq.Release.from_dict(release.to_dict()).to_dict() == release.to_dict()
