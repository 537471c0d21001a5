"""Release against the pseudocode, and its exact law against integrals, sums and histograms."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

import oracles
import pq

TIED = [1.0, 2.0, 2.0, 2.0, 4.0]


def evenly(m: int) -> list[Fraction]:
    return [Fraction(i, m + 1) for i in range(1, m + 1)]


def mean_gaps(m: int, arity: int, calibration: str, trials: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Maximum gaps of the package and of the pseudocode on fresh standard normal samples of 1000, Uniform(-10, 10),
    epsilon 1."""
    qs = evenly(m)
    plan = pq.plan(qs, epsilon=1, arity=arity, calibration=calibration)
    node_size = {i: len(node.indices) for node in plan.nodes for i in node.indices}
    epsilons = [float(plan.epsilons[i] * node_size[i]) for i in range(m)]
    rng, slow_rng = np.random.default_rng([m, arity]), random.Random(m)
    ours, theirs = [], []
    for _ in range(trials):
        x = np.sort(rng.normal(size=1000)).tolist()
        result = pq.release(x, qs, epsilon=1, priors=pq.Uniform(-10, 10), arity=arity, calibration=calibration, rng=rng)
        ours.append(pq.max_gap(x, qs, result.values))
        o = oracles.release(x, qs, epsilons, arity, (-10, 10), "conditional", calibration == "sharp", slow_rng)
        theirs.append(max(oracles.gap(x, q, v) for q, v in zip(qs, o, strict=True)))
    return np.array(ours), np.array(theirs)


def standard_errors_apart(a: np.ndarray, b: np.ndarray) -> float:
    return float(abs(a.mean() - b.mean()) / math.sqrt(a.var() / len(a) + b.var() / len(b)))


# 27 comparisons at three standard errors each: a right implementation fails one of them with probability about 0.07
# over the
# choice of seeds; the seeds are fixed.
@pytest.mark.parametrize(
    ("m", "arity"), [(m, k) for m in (1, 2, 3, 4, 8, 9, 29) for k in (2, 3, 5)] + [(99, 2), (99, 3), (99, 5)]
)
def test_mean_maximum_gap_agrees_with_the_pseudocode(m: int, arity: int) -> None:
    ours, theirs = mean_gaps(m, arity, "paper", trials=200 if m < 99 else 50)
    assert standard_errors_apart(ours, theirs) < 3


@pytest.mark.parametrize("m", [1, 3, 9])
def test_sharp_agrees_with_the_pseudocode_with_its_own_target_and_rate(m: int) -> None:
    ours, theirs = mean_gaps(m, 2, "sharp")
    assert standard_errors_apart(ours, theirs) < 3


def test_sharp_lowers_the_gap_by_the_factor_of_its_sensitivity() -> None:
    """Evenly spaced m = 7: every relative quantile is 1/2, so the rate doubles and, with many points, the gap
    halves."""
    x = np.sort(np.random.default_rng(4).normal(size=50_000))
    qs, trials = evenly(7), 200
    gaps = {
        c: np.array(
            [
                pq.max_gap(
                    x, qs, pq.release(x, qs, epsilon=0.1, priors=pq.Uniform(-10, 10), calibration=c, rng=s).values
                )
                for s in range(trials)
            ]
        )
        for c in ("paper", "sharp")
    }
    ratio = gaps["sharp"].mean() / gaps["paper"].mean()
    spread = ratio * math.sqrt(sum(g.var() / trials / g.mean() ** 2 for g in gaps.values()))
    assert (
        abs(ratio - 0.5) < 3 * spread + 0.01
    )  # three standard errors; the floor of the target shifts a gap by less than one
    assert spread < 0.05


PRIORS = [pq.Cauchy(2.0, 1.5), pq.Uniform(0.0, 5.0)]
VARIANTS = [
    {"calibration": c, "adaptation": a, "adjacency": j}
    for c in ("paper", "sharp")
    for a in ("conditional", "edge")
    for j in ("add-remove", "replace")
]


def pieces(low: float, high: float) -> list[tuple[float, float]]:
    """Intervals between the data points inside [low, high]."""
    cuts = [low, *sorted({v for v in TIED if low < v < high}), high]
    return list(itertools.pairwise(cuts))


def total_mass(quantiles: list[float], prior: pq.Uniform, points: int, **keywords: str) -> float:
    """Integral of the exact density over all outputs: nested Gauss rules between the data points, atoms summed.

    Quantiles are given in the order in which the tree decides them, the root first, so that the intervals nest. Under a
    uniform prior the density of a last quantile is constant between the data, and of an earlier one smooth.
    """
    nodes, weights = np.polynomial.legendre.leggauss(points)

    def integrate_out(fixed: dict[float, float]) -> float:
        if len(fixed) == len(quantiles):
            values = [fixed[p] for p in quantiles]
            return math.exp(pq.log_density(TIED, values, quantiles, epsilon=1, priors=prior, **keywords))
        q = quantiles[len(fixed)]
        low = max((fixed[p] for p in fixed if p < q), default=prior.low)
        high = min((fixed[p] for p in fixed if p > q), default=prior.high)
        atoms = {low, high} & set(fixed.values()) if keywords["adaptation"] == "edge" else set()
        total = sum(integrate_out({**fixed, q: o}) for o in atoms)
        for a, b in pieces(low, high):
            inside = zip((a + b) / 2 + (b - a) / 2 * nodes, (b - a) / 2 * weights, strict=True)
            total += sum(w * integrate_out({**fixed, q: float(o)}) for o, w in inside)
        return total

    return integrate_out({})


@pytest.mark.parametrize("keywords", VARIANTS)
@pytest.mark.parametrize("quantiles", [[0.4], [0.2, 0.5]])
def test_density_integrates_to_one(quantiles: list[float], keywords: dict[str, str]) -> None:
    assert total_mass(quantiles, pq.Uniform(0.0, 5.0), 4, **keywords) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("keywords", [VARIANTS[4], VARIANTS[6]])
def test_density_of_three_quantiles_integrates_to_one(keywords: dict[str, str]) -> None:
    assert total_mass([0.5, 0.2, 0.8], pq.Uniform(0.0, 5.0), 2, **keywords) == pytest.approx(1, abs=5e-3)


@pytest.mark.parametrize("keywords", VARIANTS)
@pytest.mark.parametrize(("quantiles", "arity"), [([0.5], 2), ([0.3, 0.6], 2), ([0.3, 0.6], 3), ([0.2, 0.5, 0.7], 2)])
def test_mass_on_a_grid_sums_to_one(quantiles: list[float], arity: int, keywords: dict[str, str]) -> None:
    values = np.arange(0, 6)
    total = sum(
        math.exp(
            pq.log_density(
                TIED, list(o), quantiles, epsilon=1, priors=pq.Uniform(-0.5, 5.5), arity=arity, grid=1, **keywords
            )
        )
        for o in itertools.product(values, repeat=len(quantiles))
    )
    assert total == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("prior", "keywords", "arity"),
    [
        (PRIORS[0], VARIANTS[0], 2),
        (PRIORS[1], VARIANTS[2], 3),
        (PRIORS[0], VARIANTS[4], 3),
        (PRIORS[1], VARIANTS[6], 2),
    ],
)
def test_histogram_on_a_grid_agrees_with_the_law(prior: pq.Cauchy, keywords: dict[str, str], arity: int) -> None:
    """Chi-square over all outputs that are expected at least ten times; each case fails by chance with probability
    1e-4."""
    qs, trials, rng, grid = [0.3, 0.6], 2000, np.random.default_rng(arity), 0.5
    arguments = {"epsilon": 2, "priors": prior, "arity": arity, "grid": grid, **keywords}
    counts: dict[tuple[float, ...], int] = {}
    for _ in range(trials):
        o = tuple(pq.release(TIED, qs, rng=rng, **arguments).values.tolist())
        counts[o] = counts.get(o, 0) + 1
    cells = itertools.product(np.arange(0, 5.5, 0.5).tolist(), repeat=2)
    expected = {o: trials * math.exp(pq.log_density(TIED, list(o), qs, **arguments)) for o in cells if o[0] <= o[1]}
    frequent = {o: e for o, e in expected.items() if e >= 10}
    observed = [counts.get(o, 0) for o in frequent]
    rest = (trials - sum(observed), trials - sum(frequent.values()))
    e, f = [*frequent.values(), max(rest[1], 1e-9)], [*observed, rest[0]]
    statistic = sum((a - b) ** 2 / b for a, b in zip(f, e, strict=True) if b > 5)
    assert stats.chi2.sf(statistic, len(e) - 1) > 1e-4
    assert len(frequent) > 10


@pytest.mark.parametrize("adaptation", ["conditional", "edge"])
def test_histogram_of_the_second_quantile_agrees_with_the_density(adaptation: str) -> None:
    """Kolmogorov-Smirnov distance to the distribution function integrated from the exact density; chance of failure
    1e-4."""
    prior, qs, trials = pq.Uniform(0.0, 5.0), [0.5], 2000
    rng = np.random.default_rng(9)
    draws = [
        float(pq.release(TIED, qs, epsilon=1, priors=prior, adaptation=adaptation, rng=rng).values[0])
        for _ in range(trials)
    ]

    def density(o: float) -> float:
        return math.exp(pq.log_density(TIED, [o], qs, epsilon=1, priors=prior, adaptation=adaptation))

    edges = np.array([0.0, *sorted(set(TIED)), 5.0])
    mass = [integrate.quad(density, a, b)[0] for a, b in itertools.pairwise(edges)]
    cumulative = np.concatenate([[0.0], np.cumsum(mass)])
    assert stats.kstest(draws, lambda o: np.interp(o, edges, cumulative)).pvalue > 1e-4


def test_edge_atoms_are_drawn_as_often_as_the_law_says() -> None:
    """Both edges of a node in the middle of three; binomial two-sided tests at 1e-5 each."""
    prior, qs, trials = pq.Uniform(0.0, 10.0), [0.2, 0.5, 0.8], 1500
    x = np.linspace(4, 6, 30)
    rng = np.random.default_rng(1)
    results = [pq.release(x, qs, epsilon=1, priors=prior, adaptation="edge", rng=rng).values for _ in range(trials)]
    at_edge = sum(float(v[0] == v[1]) for v in results)
    expected = np.mean(
        [
            math.exp(
                pq.log_density(x, [v[1], v[1]], [0.2, 0.5], epsilon=1, priors=prior, adaptation="edge")
                - pq.log_density(x, [v[1]], [0.5], epsilon=0.5, priors=prior, adaptation="edge")
            )
            for v in results[:300]
        ]
    )
    assert 0.02 < expected < 0.9
    assert abs(at_edge / trials - expected) < 4.4 * math.sqrt(expected * (1 - expected) * (1 / trials + 1 / 300)) + 0.02


def test_repeated_and_unsorted_quantiles_come_back_in_the_order_of_the_caller() -> None:
    x = np.arange(1000.0)
    result = pq.release(x, [0.9, 0.1, 0.9, 0.5], epsilon=5, priors=pq.Uniform(0, 1000), rng=3)
    v = result.values
    assert v[0] == v[2] and v[1] < v[3] < v[0]
    assert pq.gap(x, result.quantiles, v).max() < 60
    assert (
        pq.log_density(x, [1.0, 1.0, 2.0, 1.0], [0.9, 0.1, 0.9, 0.5], epsilon=5, priors=pq.Uniform(0, 1000))
        == -math.inf
    )


@pytest.mark.parametrize("arity", [2, 3, 5])
@pytest.mark.parametrize("adaptation", ["conditional", "edge"])
def test_estimates_never_cross(arity: int, adaptation: str) -> None:
    rng = np.random.default_rng(2)
    for n in (0, 1, 5, 200):
        x = rng.normal(size=n)
        values = pq.release(
            x, evenly(29), epsilon=0.1, priors=pq.Cauchy(0, 1), arity=arity, adaptation=adaptation, rng=rng
        ).values
        assert np.all(np.diff(values) >= 0)


def test_infinite_epsilon_gives_gap_zero() -> None:
    x = np.random.default_rng(0).normal(size=101)
    for arity, adaptation in itertools.product((2, 4), ("conditional", "edge")):
        r = pq.release(
            x,
            evenly(9),
            epsilon=math.inf,
            priors=pq.Cauchy(0, 1),
            arity=arity,
            adaptation=adaptation,
            calibration="paper",
            rng=0,
        )
        assert pq.max_gap(x, evenly(1), r.values[4:5]) == 0
        assert (
            pq.max_gap(x, evenly(9), r.values) <= 3
        )  # floors of floors: the targets of the tree are not those of the whole


def test_one_prior_per_quantile_follows_the_caller() -> None:
    priors = [pq.Uniform(90, 91), pq.Uniform(10, 11)]
    v = pq.release([], [0.9, 0.1], epsilon=1, priors=priors, rng=0).values
    assert 90 <= v[0] <= 91 and 10 <= v[1] <= 11


@pytest.mark.parametrize(
    ("priors", "error"),
    [
        (None, TypeError),
        ("Cauchy", TypeError),
        ([pq.Cauchy(0, 1)], ValueError),
        ([pq.Cauchy(0, 1), 3], TypeError),
        (stats.norm(), TypeError),
    ],
)
def test_bad_priors_are_refused_by_name(priors: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="priors"):
        pq.release([1.0], [0.2, 0.4], epsilon=1, priors=priors)


def test_priors_that_disagree_on_a_repeated_quantile_are_refused() -> None:
    with pytest.raises(ValueError, match="priors"):
        pq.release([1.0], [0.2, 0.2], epsilon=1, priors=[pq.Cauchy(0, 1), pq.Cauchy(0, 2)])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("adaptation", "both"),
        ("grid", 0),
        ("grid", -1),
        ("grid", math.nan),
        ("on_nan", "raise"),
        ("rng", "x"),
        ("grid", "1"),
    ],
)
def test_other_bad_arguments_are_refused_by_name(name: str, value: object) -> None:
    with pytest.raises((ValueError, TypeError), match=name):
        pq.release([1.0], [0.5], epsilon=1, priors=pq.Cauchy(0, 1), **{name: value})


@pytest.mark.parametrize("values", [[1.0], [1.0, math.nan], [1.0, math.inf], [[1.0, 2.0]]])
def test_log_density_refuses_what_is_no_output(values: list[float]) -> None:
    with pytest.raises(ValueError, match="outcome"):
        pq.log_density([1.0], values, [0.2, 0.4], epsilon=1, priors=pq.Cauchy(0, 1))


def test_result_is_frozen_and_tells_public_facts_only() -> None:
    r = pq.release(np.arange(50.0), [0.5, 0.1], epsilon=0.5, priors=pq.Cauchy(10, 5), grid=0.5, rng=0)
    with pytest.raises(ValueError, match="read-only"):
        r.values[0] = 1.0
    with pytest.raises(AttributeError):
        r.epsilon = 2.0  # type: ignore[misc]
    plain = r.to_dict()
    assert plain["values"] == r.values.tolist() and plain["epsilon"] == 0.5 and plain["grid"] == 0.5
    assert set(vars(r)) == {
        "values",
        "quantiles",
        "epsilon",
        "max_contributions",
        "adjacency",
        "mechanism",
        "total",
        "outcome",
        "kind",
        "calibration",
        "adaptation",
        "grid",
        "priors",
        "joint_prior",
        "plan",
        "size_guess",
        "public_total",
        "assume_smooth",
        "whole",
    }
    assert f"{r.values[0]:.10g}" in str(r)


def test_the_same_seed_gives_the_same_release_and_no_seed_does_not() -> None:
    def once(rng: object) -> list[float]:
        return pq.release(np.arange(9.0), evenly(9), epsilon=1, priors=pq.Cauchy(0, 1), rng=rng).values.tolist()

    assert once(5) == once(np.random.default_rng(5)) != once(6)
    assert once(None) != once(None)


def test_nodes_do_not_share_their_noise() -> None:
    """Siblings on mirrored data with mirrored priors would mirror each other if they used the same uniforms."""
    x = np.linspace(-1, 1, 200)
    v = np.array(
        [pq.release(x, [0.25, 0.5, 0.75], epsilon=1, priors=pq.Uniform(-1, 1), rng=s).values for s in range(200)]
    )
    assert (
        abs(np.corrcoef(v[:, 0], v[:, 2])[0, 1]) < 0.3
    )  # |correlation| of 200 independent pairs exceeds 0.3 with probability 2e-5


def test_a_person_with_several_records_shares_one_budget() -> None:
    x, qs = np.arange(50.0), [0.25, 0.5]
    arguments = {"priors": pq.Cauchy(0, 10), "rng": 0, "mechanism": "tree"}
    shared = pq.release(x, qs, epsilon=1, max_contributions=4, **arguments)
    assert shared.values.tolist() == pq.release(x, qs, epsilon=0.25, **arguments).values.tolist()
    assert shared.epsilon == 1 and shared.max_contributions == 4 and shared.plan.epsilon == Fraction(1, 4)
    assert "4 records a person" in str(shared) and shared.to_dict()["max_contributions"] == 4
    for wrong in (0, -1, 1.5, True, "2", None):
        with pytest.raises((ValueError, TypeError), match="max_contributions"):
            pq.release(x, qs, epsilon=1, max_contributions=wrong, **arguments)


@pytest.mark.parametrize(
    "name",
    ["quantiles", "epsilon", "grid", "size_guess", "max_contributions", "public_total", "arity", "budget_power"],
)
def test_a_duration_is_no_number_though_numpy_calls_it_an_integer(name: str) -> None:
    arguments: dict[str, Any] = {"quantiles": [0.5], "epsilon": 1, "priors": pq.Cauchy(0, 1)}
    with pytest.raises(TypeError, match=f"{name} must be .* got timedelta64"):
        pq.release([1.0, 2.0], **(arguments | {name: np.timedelta64(1, "s")}))


def test_no_noise_stays_none_however_many_records_a_person_has() -> None:
    arguments: dict[str, Any] = {"quantiles": [0.5], "priors": pq.Cauchy(0, 1), "epsilon": math.inf, "rng": 1}
    many = pq.release([1.0, 2.0, 3.0], max_contributions=10**2999, **arguments)
    assert many.values.tolist() == pq.release([1.0, 2.0, 3.0], **arguments).values.tolist()


def test_the_loss_of_all_records_of_a_person_stays_within_epsilon() -> None:
    rng, k = np.random.default_rng(3), 3
    arguments = {"epsilon": 1, "priors": pq.Uniform(-3, 3), "max_contributions": k}
    for _ in range(60):
        x = rng.normal(size=int(rng.integers(k, 9)))
        o = pq.release(x, [0.3, 0.6], rng=rng, **arguments).values
        assert abs(pq.privacy_loss(x, x[k:], o, [0.3, 0.6], **arguments)) <= 1 + 1e-9


def test_a_release_has_all_of_its_fields() -> None:
    """It is made without its constructor, which would notice a field that is left out."""
    result = pq.release([1.0], [0.5], epsilon=1, priors=pq.Cauchy(0, 1), rng=0)
    assert set(vars(result)) == {field.name for field in dataclasses.fields(pq.Release)}
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.epsilon = 2.0  # type: ignore[misc]
