"""The exact law of a joint release: against every way to place outputs written out, and on neighbouring columns."""

from __future__ import annotations

import dataclasses
import itertools
import math
import types
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import joint_oracles as oracles
import numpy as np
import pytest

import pq
from pq.core.priors import Laplace, Normal, PiecewiseConstant, Prior, Uniform
from pq.core.scores import Target
from pq.private.columns.cells import Points
from pq.private.mechanisms.independent import Law
from pq.private.mechanisms.joint import chain
from pq.private.mechanisms.joint import density as joint_density
from pq.private.mechanisms.joint import machine as joint_machine
from pq.private.mechanisms.joint import plan as joint_plan
from pq.private.mechanisms.joint.chain import Records
from pq.private.mechanisms.joint.density import joint_log_density, log_normaliser
from pq.private.mechanisms.joint.plan import JointPlan
from pq.private.mechanisms.joint.score import best_score, log_score_sum

UNIT = Uniform(0, 1)
QUANTILES = [(Fraction(1, 3),), (Fraction(1, 4), Fraction(3, 4)), (Fraction(0), Fraction(1, 2), Fraction(9, 10))]
KINDS = [
    ("drawn", "add-remove"), ("best", "add-remove"), ("drawn", "replace"), ("best", "replace"), ("records", "replace"),
]  # fmt: skip
COLUMNS = [[], [0.3], [0.2, 0.2, 0.7], [0.1, 0.35, 0.5, 0.8]]
DIFFERENT = (Uniform(0, 1), PiecewiseConstant([0, 0.5, 1], [1, 3]), PiecewiseConstant([0, 0.25, 1], [1, 6]))
LogDensity = Callable[[JointPlan, list[float], list[float], float | None], float]


def plan_of(quantiles: tuple[Fraction, ...], kind: tuple[str, str], **more: object) -> JointPlan:
    return JointPlan.of(quantiles, **({"epsilon": 1.3, "priors": UNIT, "total": kind[0], "adjacency": kind[1]} | more))


@pytest.fixture(autouse=True)
def _normalisers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_density, "log_normaliser", oracles.remember_normalisers(joint_density))


def totals_of(plan: JointPlan, n: int, count: int = 200) -> list[float | None]:
    if plan.total == "best":
        return [None]
    return [float(n)] if plan.total == "records" else [i * float(plan.total_step) for i in range(count)]


def our_density(plan: JointPlan, x: list[float], outputs: list[float], total: float | None) -> float:
    return joint_log_density(plan, np.array(x), None, np.array(outputs), total)


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
@pytest.mark.parametrize("quantiles", QUANTILES, ids=len)
def test_the_normaliser_is_the_sum_over_all_ways(quantiles: tuple[Fraction, ...], kind: tuple[str, str]) -> None:
    plan, values = plan_of(quantiles, kind), [float(q) for q in quantiles]
    for x in COLUMNS:
        edges = [0.0, *x, 1.0]
        whole = sum(
            math.exp(oracles.log_kernel(x, values, plan.rate, total)(point)) * volume
            for total in totals_of(plan, len(x))
            for _, point, volume in oracles.ways(edges, plan.size)
        )
        assert log_normaliser(plan, Records(np.array(x), None)) == pytest.approx(math.log(whole), abs=1e-12)


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
@pytest.mark.parametrize("quantiles", QUANTILES, ids=len)
def test_densities_integrate_to_one(quantiles: tuple[Fraction, ...], kind: tuple[str, str]) -> None:
    """Of the outputs alone, and of outputs and total where a total is drawn."""
    plan = plan_of(quantiles, kind)
    for x in COLUMNS:
        ways = list(oracles.ways([0.0, *x, 1.0], plan.size))
        assert sum(math.exp(our_density(plan, x, p, None)) * v for _, p, v in ways) == pytest.approx(1.0, abs=1e-12)
        if plan.total == "drawn":
            both = sum(
                math.exp(our_density(plan, x, p, t)) * v for _, p, v in ways for t in totals_of(plan, len(x), 80)
            )
            assert both == pytest.approx(1.0, abs=1e-12)


def tilted_edges(plan: JointPlan, x: list[float]) -> list[float]:
    return sorted({0.0, 0.25, 0.5, 1.0, *x, *(c for c in plan.cuts.tolist() if 0.0 < c < 1.0)})


def test_priors_of_each_quantile_keep_their_masses_and_the_density_integrates_to_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(joint_plan, "CUTS", 4)
    monkeypatch.setattr(joint_plan, "LEAST_CUTS", 4)
    monkeypatch.setattr(joint_plan, "TAIL", 1)
    for total in ("drawn", "best"):
        plan = plan_of(QUANTILES[1], (total, "add-remove"), priors=DIFFERENT[1:])
        edges = np.concatenate([[-np.inf], plan.cuts, [np.inf]])
        for j, prior in enumerate(plan.priors):
            mine = np.exp(plan.log_tilts[j] + plan.base.log_mass(edges[:-1], edges[1:]))
            assert np.allclose(mine, np.exp(prior.log_mass(edges[:-1], edges[1:])), atol=1e-15)
        for x in COLUMNS:
            ways = list(oracles.ways(tilted_edges(plan, x), plan.size))
            assert sum(math.exp(our_density(plan, x, p, None)) * v for _, p, v in ways) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("prior", [UNIT, Laplace(0.4, 0.2), Normal(0.7, 3)], ids=lambda p: type(p).__name__)
def test_one_quantile_with_the_best_total_is_the_single_mechanism(prior: Prior) -> None:
    x = np.array([0.1, 0.35, 0.35, 0.5, 0.8])
    for q in (Fraction(0), Fraction(3, 10), Fraction(1, 2), Fraction(1)):
        plan = JointPlan.of([q], epsilon=0.7, priors=prior, total="best")
        single_rate = 0.35 / float(max(q, 1 - q))
        column = Points(x)
        view = column.view(-math.inf, math.inf)
        law = Law(column, view, -math.inf, math.inf, prior, Target.of(q, 5, "sharp"), single_rate, False)
        for o in (0.05, 0.2, 0.4, 0.77, 0.9):
            assert joint_log_density(plan, x, None, np.array([o])) == pytest.approx(law.log_probability(o), abs=1e-12)


def test_one_quantile_with_the_number_of_records_is_the_single_mechanism_under_replace() -> None:
    x, q = np.array([0.1, 0.35, 0.5, 0.8]), Fraction(1, 5)
    plan = JointPlan.of([q], epsilon=0.7, priors=UNIT, adjacency="replace", total="records")
    column = Points(x)
    view = column.view(-math.inf, math.inf)
    law = Law(column, view, -math.inf, math.inf, UNIT, Target.of(q, 4, "sharp"), 0.35, False)
    for o in (0.05, 0.2, 0.4, 0.77, 0.9):
        assert joint_log_density(plan, x, None, np.array([o])) == pytest.approx(law.log_probability(o), abs=1e-12)


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_probabilities_on_a_grid_sum_to_one(kind: tuple[str, str]) -> None:
    plan = plan_of(QUANTILES[1], kind, grid=Fraction(1, 4), size_guess=0)
    multiples = [0.0, 0.25, 0.5, 0.75, 1.0]
    for x in ([], [0.25], [0.25, 0.25, 0.7]):
        pairs = itertools.combinations_with_replacement(multiples, 2)
        assert sum(math.exp(our_density(plan, x, list(p), None)) for p in pairs) == pytest.approx(1.0, abs=1e-12)


def neighbours(replace: bool) -> Iterator[tuple[list[float], list[float]]]:
    places = [0.15, 0.5, 0.55, 0.85]
    for n in range(4):
        for x in itertools.combinations(places, n):
            for new in (0.02, 0.5, 0.98):
                if not replace:
                    yield list(x), sorted([*x, new])
                elif n:
                    yield list(x), sorted([*x[1:], new])
                    yield list(x), sorted([*x[:-1], new])


def losses(plan: JointPlan, log_density: LogDensity) -> Iterator[list[float]]:
    """Exact losses of all ways to place outputs, and totals, for each pair of neighbours."""
    for x, y in neighbours(plan.adjacency == "replace"):
        edges = [0.0, *sorted([*x, *y]), 1.0]
        points = [point for _, point, _ in oracles.ways(edges, plan.size)]
        totals = totals_of(plan, len(x), 3) if plan.total == "drawn" else [None]
        yield [log_density(plan, x, p, t) - log_density(plan, y, p, t) for p, t in itertools.product(points, totals)]


def worst_loss(plan: JointPlan, log_density: LogDensity) -> float:
    """Largest loss in either direction."""
    return max(max(map(abs, pair)) for pair in losses(plan, log_density))


# Nearly all mass at one place: the normaliser moves one way and a rare output the other.
LOPSIDED = [PiecewiseConstant([0, 0.04, 1], [1, 1e-9]), PiecewiseConstant([0, 0.6, 0.64, 1], [1e-9, 1, 1e-9])]
SYMMETRIC = [(Fraction(1, 2),), (Fraction(1, 4), Fraction(3, 4))]


def worst_share(kind: tuple[str, str], log_density: LogDensity, **changed: object) -> float:
    """Largest loss of all plans of a kind, as a share of epsilon; attributes may be changed after the checks."""
    plans = [
        dataclasses.replace(plan_of(quantiles, kind, epsilon=epsilon, priors=prior), **changed)
        for quantiles in SYMMETRIC for epsilon in (0.5, 12.0) for prior in LOPSIDED
    ]  # fmt: skip
    return max(worst_loss(plan, log_density) / float(plan.epsilon) for plan in plans)


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_losses_are_at_most_epsilon_and_nearly_so(kind: tuple[str, str]) -> None:
    """Of outputs and total together where one is drawn, even if it is not released."""
    assert 0.9 < worst_share(kind, our_density) <= 1.0 + 1e-9


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_losses_of_one_pair_of_neighbours_lie_in_a_range_of_epsilon(kind: tuple[str, str]) -> None:
    """Bounded range, which gives epsilon^2 / 8 of zero-concentrated privacy."""
    plan = plan_of(SYMMETRIC[1], kind, epsilon=3.0, priors=LOPSIDED[0])
    ranges = [max(pair) - min(pair) for pair in losses(plan, our_density)]
    assert 0.4 * 3.0 < max(ranges) <= 3.0 + 1e-9


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_losses_on_a_grid_and_under_priors_of_each_quantile(
    kind: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a grid all its values; with several priors points between all records and cuts."""
    for name, number in (("CUTS", 4), ("LEAST_CUTS", 2), ("TAIL", 1)):
        monkeypatch.setattr(joint_plan, name, number)
    on_grid = plan_of(SYMMETRIC[1], kind, epsilon=3.0, priors=LOPSIDED[0], grid=Fraction(1, 5), size_guess=0)
    several = plan_of(SYMMETRIC[1], kind, epsilon=3.0, priors=(LOPSIDED[0], UNIT))
    places = [(on_grid, [i / 5 for i in range(6)]), (several, [0.01, 0.03, 0.1, 0.3, 0.52, 0.7, 0.9, 0.99])]
    for plan, values in places:
        for x, y in itertools.islice(neighbours(plan.adjacency == "replace"), 0, None, 3):
            for point in itertools.combinations_with_replacement(values, 2):
                loss = our_density(plan, x, list(point), None) - our_density(plan, y, list(point), None)
                assert abs(loss) <= 3.0 + 1e-9


def test_the_audit_rejects_targets_that_move_with_the_number_of_records() -> None:
    """Targets n p_j, which cost up to 2 (1 - min p), at the rate of a latent total."""
    assert worst_share(("drawn", "add-remove"), our_density, total="records") > 1.2


def test_the_audit_rejects_replacement_at_the_rate_of_addition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(joint_plan.COUNTS_MOVED, "replace", 1)
    for total in ("best", "records"):
        assert worst_share((total, "replace"), our_density) > 1.2


def test_the_audit_rejects_a_grid_of_totals_that_depends_on_the_data() -> None:
    def with_own_grid(plan: JointPlan, x: list[float], outputs: list[float], total: float | None) -> float:
        return our_density(dataclasses.replace(plan, total_step=Fraction(len(x) + 1)), x, outputs, total)

    with np.errstate(invalid="ignore"):
        assert worst_share(("drawn", "add-remove"), with_own_grid) == math.inf


def test_normalisation_rejects_groups_without_their_factorial(monkeypatch: pytest.MonkeyPatch) -> None:
    forgetful = types.SimpleNamespace(**{**vars(math), "log": lambda value: 0.0})
    monkeypatch.setattr(chain, "math", forgetful)
    plan = plan_of(SYMMETRIC[1], ("drawn", "add-remove"))
    ways = list(oracles.ways([0.0, 0.3, 1.0], 2))
    assert abs(sum(math.exp(our_density(plan, [0.3], p, None)) * v for _, p, v in ways) - 1.0) > 0.1


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"quantiles": [0.5, 0.25]}, "quantiles"), ({"quantiles": [0.5, 0.5]}, "quantiles"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"), ({"priors": [UNIT]}, "priors"), ({"priors": 3}, "priors"),
        ({"adjacency": "both"}, "adjacency"), ({"total": "known"}, "total"), ({"total": "records"}, "total"),
        ({"grid": -1}, "grid"), ({"size_guess": -1}, "size_guess"), ({"size_guess": 1.5}, "size_guess"),
    ],
)  # fmt: skip
def test_bad_public_arguments_raise_by_name(changed: dict[str, object], name: str) -> None:
    with pytest.raises((ValueError, TypeError), match=name):
        JointPlan.of(**({"quantiles": [0.25, 0.5], "epsilon": 1, "priors": UNIT} | changed))


# --- many records -----------------------------------------------------------------------------------------------------


def exact_best(plan: JointPlan, counts: list[int]) -> Fraction:
    """At all corners, in fractions."""
    shares = [b - a for a, b in itertools.pairwise((Fraction(0), *plan.quantiles, Fraction(1)))]
    corners = [c / p for c, p in zip(counts, shares, strict=True) if p]
    return min(sum(abs(c - nu * p) for c, p in zip(counts, shares, strict=True)) for nu in corners)


def plain_best(plan: JointPlan, counts: list[int]) -> float:
    """What was there before: corners in floats."""
    some = [(c / p, p) for c, p in zip(counts, plan.shares.tolist(), strict=True) if p]
    return min(sum(abs(c - nu * p) for c, p in zip(counts, plan.shares.tolist(), strict=True)) for nu, _ in some)


def large_counts(rng: np.random.Generator, plan: JointPlan) -> list[int]:
    """Near their shares of up to 2^53 records, by a few or by many."""
    n = int(2.0 ** rng.uniform(1, 52.9))
    inner = [0, *sorted(int(q * n) + int(rng.normal() * 10.0 ** rng.uniform(0, 2.5)) for q in plan.quantiles), n]
    inner = [min(max(rank, 0), n) for rank in inner]
    return [b - a for a, b in itertools.pairwise(inner)]


BEST_PLANS = [
    JointPlan.of(quantiles, epsilon=1, priors=UNIT, total="best")
    for quantiles in ([Fraction(1, 3)], [0.1, 0.7], [0.05, Fraction(1, 3), 0.9], [0, 0.29, 1])
]


@pytest.mark.parametrize("plan", BEST_PLANS, ids=lambda plan: str(plan.size))
def test_the_best_score_is_exact_to_the_most_records(plan: JointPlan) -> None:
    rng, before = np.random.default_rng(5), 0.0
    for _ in range(300):
        counts = large_counts(rng, plan)
        exact = exact_best(plan, counts)
        found = float(best_score(plan, np.array(counts, dtype=np.float64)))
        assert abs(Fraction(found) - exact) <= Fraction(1, 10**9) * (1 + exact), counts
        before = max(before, abs(float(Fraction(plain_best(plan, counts)) - exact)))
    assert before > 0.05 or plan.size == 1  # records: the float corners fail here


@pytest.mark.parametrize("plan", BEST_PLANS[:2], ids=lambda plan: str(plan.size))
def test_the_sum_over_totals_is_that_of_small_counts_shifted(plan: JointPlan) -> None:
    """Multiples of the records that every share and the step of totals divide move no deviation."""
    rng = np.random.default_rng(6)
    period = 2 * 30 * 8  # of shares of 1/3 and tenths, and of the step of totals
    for _ in range(60):
        small = [int(rng.integers(40)) + 400 * int(60 * s) for s in plan.shares]
        shift = period * int(2.0 ** rng.uniform(1, 43))
        large = [c + int(s) for c, s in zip(small, (shift * Fraction(b - a) for a, b in itertools.pairwise(
            (Fraction(0), *plan.quantiles, Fraction(1)))), strict=True)]  # fmt: skip
        one, other = (log_score_sum(plan, np.array(counts, dtype=np.float64)) for counts in (small, large))
        assert one == pytest.approx(other, abs=1e-7), (small, shift)


@pytest.mark.parametrize("plan", BEST_PLANS[:3], ids=lambda plan: str(plan.size))
def test_machine_code_keeps_draws_as_the_formulas_do(plan: JointPlan) -> None:
    rng = np.random.default_rng(7)
    settings = np.array([plan.rate, plan.total_unit, 0.0, 0.0, 0.0, 0.0, 0.0])
    known = plan.levels, plan.shares, plan.log_tilts, settings
    for _ in range(100):
        counts = np.array(large_counts(rng, plan), dtype=np.float64)
        ours = -plan.rate * (float(best_score(plan, counts)) + 0.5 * plan.total_unit) - log_score_sum(plan, counts)
        found = joint_machine._log_kept(known, plan.share_rests, np.cumsum(counts)[:-1], float(np.sum(counts)))
        assert found == pytest.approx(ours, abs=1e-7) and found <= 1e-9


TINY_SHARES = (
    [5e-324],
    [1e-17, 0.5],
    [1e-300, 0.5],
    [Fraction(1, 10**400), 0.3],
    [1e-9],
    [0.2, 1 - 2.0**-53],
    [2e-308],
)


@pytest.mark.parametrize("quantiles", TINY_SHARES, ids=lambda q: format(float(q[0]), "g"))
def test_shares_below_every_step_of_a_float_have_their_sums(quantiles: list[Any]) -> None:
    """A record below such a quantile puts a corner where totals have no digits left, or beyond the floats: by every
    single total near the records', which are all that weigh anything."""
    rng = np.random.default_rng(8)
    plan = JointPlan.of(quantiles, epsilon=1, priors=UNIT, total="best")
    settings = np.array([plan.rate, plan.total_unit, 0.0, 0.0, 0.0, 0.0, 0.0])
    shares = [b - a for a, b in itertools.pairwise((Fraction(0), *plan.quantiles, Fraction(1)))]
    for _ in range(25):
        counts = [
            int(c) for c in rng.integers(0, 1 + 20 * rng.integers(0, 2, len(shares)) + rng.integers(0, 3, len(shares)))
        ]
        unit, n = Fraction(plan.total_step), sum(counts)
        totals = [unit * k for k in range(math.ceil((n + 60 / plan.rate) / unit))]
        scores = [sum(abs(c - total * p) for c, p in zip(counts, shares, strict=True)) for total in totals]
        wanted = math.log(math.fsum(math.exp(-plan.rate * float(score)) for score in scores))
        corners = [c / p for c, p in zip(counts, shares, strict=True) if p]
        least = min(sum(abs(c - at * p) for c, p in zip(counts, shares, strict=True)) for at in corners)
        below, floats = np.cumsum(counts, dtype=np.float64)[:-1], np.array(counts, dtype=np.float64)
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            found, best = log_score_sum(plan, floats), float(best_score(plan, floats))
        assert found == pytest.approx(wanted, abs=1e-9) and best == pytest.approx(float(least), abs=1e-9)
        known = plan.levels, plan.shares, plan.log_tilts, settings
        kept = joint_machine._log_kept(known, plan.share_rests, below, float(n))
        assert kept == pytest.approx(-plan.rate * (float(least) + 0.5 * plan.total_unit) - wanted, abs=1e-9)


@pytest.mark.parametrize("mechanism", ["joint", "mixed"])
def test_a_record_below_a_quantile_of_nearly_nothing_stops_no_release(mechanism: str) -> None:
    """It once drew no value near the other records, or never ended; three times as often by one column as by its
    neighbour has a probability below 1e-6 at epsilon 1/2."""
    options: dict[str, Any] = {
        "epsilon": 0.5,
        "priors": pq.Uniform(0, 4),
        "mechanism": mechanism,
        "assume_smooth": True,
    }
    often = []
    for x in ([1.0, 2.0, 3.0], [2.0, 3.0]):
        drawn = np.array([pq.release(x, [1e-17, 0.5], rng=seed, **options).values[0] for seed in range(200)])
        often.append(np.mean((drawn > 0.0) & (drawn <= 2.0)))
    assert 1 / 3 < often[0] / often[1] < 3.0


@pytest.mark.parametrize("plan", BEST_PLANS[:2], ids=lambda plan: str(plan.size))
def test_one_record_among_very_many_moves_no_density_by_more_than_epsilon(plan: JointPlan) -> None:
    before = np.array([0, 3002399751580330, 6004799503160661, 9007199254740000])
    values = np.array([0.2, 0.5, 0.8])
    near = {1: (0.3,), 2: (0.3, 0.6)}[plan.size]  # as good as any: farther ones have more nats than a float has digits
    for at in range(3):
        more = before + (np.arange(4) > at)
        one, other = (joint_log_density(plan, values, b, np.array(near)) for b in (before, more))
        assert abs(one - other) <= 1.0 + 1e-6
