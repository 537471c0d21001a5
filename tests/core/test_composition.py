"""Composition against independent arithmetic: exact worst cases of bounded range, and conversions in high precision."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import pq
from pq.core.budget.composition import Cost, plan_zcdp, pure_total, releases_epsilon, zcdp_delta, zcdp_epsilon


def worst_pair(epsilon: float, top: float) -> tuple[float, float]:
    """The two-point pair whose loss is `top` or `top - epsilon`: probabilities (p, q) of the first outcome."""
    q = -math.expm1(top - epsilon) / (math.exp(top) - math.exp(top - epsilon)) if 0 < top < epsilon else 0.0
    return q * math.exp(top), q


def renyi(p: float, q: float, alpha: float) -> float:
    """Renyi divergence of two-point laws."""
    terms = [(p, q), (1 - p, 1 - q)]
    if alpha == 1:
        return sum(a * math.log(a / b) for a, b in terms if a > 0)
    return math.log(sum(a**alpha * b ** (1 - alpha) for a, b in terms if a > 0)) / (alpha - 1)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0, 3.0])
def test_bounded_range_costs_an_eighth_of_the_square_and_not_less(epsilon: float) -> None:
    """Over two-point worst cases and orders the divergence is at most alpha epsilon^2 / 8; small epsilon attains it."""
    ratios = [
        renyi(*worst_pair(epsilon, top), alpha) / alpha / (epsilon**2 / 8)
        for top in np.linspace(0, epsilon, 202)[1:-1]
        for alpha in (1, 1.01, 1.5, 2, 4, 16, 64)
    ]
    assert max(ratios) <= 1 + 1e-9
    if epsilon <= 0.1:
        assert max(ratios) > 1 - epsilon


def test_zcdp_total_of_small_ranges_agrees_with_the_numerical_composition() -> None:
    """A hundred ranges of 0.01: the greatest summed divergence of their worst cases is the total rho to within 1e-6."""
    total = 100 * max(renyi(*worst_pair(0.01, top), 1) for top in np.linspace(0, 0.01, 2001)[1:-1])
    plan = pq.plan([0.5], epsilon=0.01)
    assert abs(float(plan_zcdp(plan) * 100) - total) < 1e-6


def exact_delta(epsilon: float, top: float, times: int, target: float) -> float:
    """delta at `target` of a pair composed with itself, by its binomial distribution of losses."""
    p, _ = worst_pair(epsilon, top)
    total = 0.0
    for k in range(times + 1):
        loss = k * top + (times - k) * (top - epsilon)
        if loss > target:
            log_p = math.lgamma(times + 1) - math.lgamma(k + 1) - math.lgamma(times - k + 1)
            total += math.exp(log_p + k * math.log(p) + (times - k) * math.log1p(-p)) * -math.expm1(target - loss)
    return total


@pytest.mark.parametrize(("epsilon", "times"), [(0.1, 50), (0.3, 100), (1.0, 20)])
def test_the_converted_guarantee_covers_the_exact_composition(epsilon: float, times: int) -> None:
    """The delta that is claimed is at least the exact one of any composed worst case, and of its order."""
    claimed_epsilon = zcdp_epsilon(times * epsilon**2 / 8, 1e-5)
    exact = max(exact_delta(epsilon, top, times, claimed_epsilon) for top in np.linspace(0, epsilon, 60)[1:-1])
    assert 1e-8 < exact <= 1e-5


def test_a_quarter_of_the_cost_would_not_cover_it() -> None:
    """The same comparison rejects a cost of epsilon^2 / 32."""
    claimed_epsilon = zcdp_epsilon(100 * 0.3**2 / 32, 1e-5)
    assert max(exact_delta(0.3, top, 100, claimed_epsilon) for top in np.linspace(0, 0.3, 60)[1:-1]) > 1e-5


@pytest.mark.parametrize(("rho", "epsilon"), [(1e-4, 0.05), (0.01, 0.3), (0.125, 2.0), (3.0, 20.0), (50.0, 130.0)])
def test_conversion_agrees_with_a_search_in_high_precision(rho: float, epsilon: float) -> None:
    with mpmath.workdps(40):

        def log_delta(a: mpmath.mpf) -> mpmath.mpf:
            return (a - 1) * (a * rho - epsilon) - mpmath.log(a - 1) + a * mpmath.log(1 - 1 / a)

        root = mpmath.findroot(lambda a: mpmath.diff(log_delta, a), mpmath.mpf(1) + (epsilon / rho - 1) / 2 + 0.5)
        best = log_delta(root)
    assert math.log(zcdp_delta(rho, epsilon)) == pytest.approx(float(best), rel=1e-6)
    assert zcdp_epsilon(rho, float(mpmath.exp(best))) == pytest.approx(epsilon, rel=1e-6)


def test_the_cost_of_a_plan_is_the_dearest_path() -> None:
    for m, arity, power in itertools.product((1, 2, 4, 9), (2, 3), (0.0, 1.5)):
        plan = pq.plan(
            [Fraction(i, m + 1) for i in range(1, m + 1)], epsilon=Fraction(1, 3), arity=arity, budget_power=power
        )
        by_hand = []
        for i in range(m):  # walk up from every quantile, counting whole nodes
            here, total = i, Fraction(0)
            while here >= 0:
                mates = [j for j in range(m) if (plan.lower[j], plan.upper[j]) == (plan.lower[here], plan.upper[here])]
                total += sum(plan.epsilons[j] ** 2 for j in mates)
                here = max((plan.lower[here], plan.upper[here]), key=lambda j: plan.depths[j] if j >= 0 else 0)
            by_hand.append(total / 8)
        assert plan_zcdp(plan) == max(by_hand)


def test_pure_wins_for_few_releases_and_concentrated_for_many() -> None:
    plan = pq.plan([0.25, 0.5, 0.75], epsilon=0.1)
    few, many = releases_epsilon(plan, 2, 1e-6), releases_epsilon(plan, 1000, 1e-6)
    assert few[0] < few[1] and many[1] < many[0] / 5
    assert pure_total([0.1] * 3) == Fraction(3, 10)


@pytest.mark.parametrize(
    "call",
    [
        lambda: zcdp_delta(0, 1),
        lambda: zcdp_delta(1, -1),
        lambda: zcdp_epsilon(1, 0),
        lambda: zcdp_epsilon(math.inf, 0.1),
    ],
)
def test_bad_arguments_are_refused(call: object) -> None:
    with pytest.raises(ValueError, match=r"rho|epsilon|delta"):
        call()  # type: ignore[operator]


def test_negative_budgets_do_not_cancel() -> None:
    with pytest.raises(ValueError, match="negative"):
        pure_total([-1, 1])


# --- one accounting ---------------------------------------------------------------------------------------------------


def test_a_year_of_releases_costs_what_the_tight_accounting_says() -> None:
    """Case of two accountings, 11.87 and 4.96: one is left, for entries, plans, sequences and ledgers."""
    plan = pq.plan([0.5], epsilon=0.1)
    totals = [
        releases_epsilon(plan, 365, 1e-6)[1],
        float((Cost.of(0.1, "range") * 365).epsilon_at(1e-6)),
        float(sum([Cost.of(0.1, rho=plan_zcdp(plan))] * 365, Cost()).epsilon_at(1e-6)),
    ]
    assert all(round(total, 3) == 4.958 for total in totals)
    assert float((Cost.of(0.1) * 365).epsilon_at(1e-6)) == pytest.approx(11.45, abs=0.5)  # pure privacy alone


@pytest.mark.parametrize("m", [1, 2, 3, 7, 8, 20])
@pytest.mark.parametrize("arity", [2, 3])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_a_release_of_any_plan_costs_at_most_one_mechanism_of_its_epsilon(m: int, arity: int, adjacency: str) -> None:
    plan = pq.plan([Fraction(i, m + 1) for i in range(1, m + 1)], epsilon=1, arity=arity, adjacency=adjacency)  # type: ignore[arg-type]
    assert plan_zcdp(plan) <= Cost.of(1, "range").rho == Fraction(1, 8)
    assert m > 1 or plan_zcdp(plan) == Fraction(1, 8)


def exact_range(rate: float, gaps: list[float], moved: list[float]) -> float:
    """Width of the losses of an exponential mechanism over a few outputs between two columns, by their log masses."""
    with mpmath.workdps(30):
        logs = []
        for column in (gaps, moved):
            weights = [mpmath.exp(-rate * gap) for gap in column]
            logs.append([mpmath.log(w / mpmath.fsum(weights)) for w in weights])
        losses = [a - b for a, b in zip(*logs, strict=True)]
        return float(max(losses) - min(losses))


def test_each_mechanism_of_a_plan_has_its_epsilon_as_range() -> None:
    """The gaps |rank - q n| of all outputs, before and after a record enters at every place: never wider than epsilon,
    and as wide for the median. A rate twice as large is noticed."""
    widest = {}
    for q in (Fraction(1, 2), Fraction(1, 4), Fraction(9, 10)):
        (mechanism,) = pq.plan([q], epsilon=1).mechanisms
        for scale in (1, 2):
            ranges = [
                exact_range(
                    scale * mechanism.rate,
                    [float(abs(r - q * n)) for r in range(n + 1) for _ in ((0, 1) if r == place else (0,))],
                    [float(abs(r - q * (n + 1))) for r in range(n + 2)],
                )
                for n in (0, 1, 5, 12)
                for place in range(n + 1)
            ]
            widest[q, scale] = max(ranges)
    assert all(widest[q, 1] <= 1 + 1e-12 for q, _ in widest)
    assert widest[Fraction(1, 2), 1] == pytest.approx(1) and widest[Fraction(1, 2), 2] > 1.5


def test_composition_of_trees_is_covered() -> None:
    """A path of three ranges a third of epsilon each, released a hundred times: exact convolution against the claim."""
    claimed = (Cost.of(0.3, "range", rho=Fraction(3, 800)) * 100).epsilon_at(1e-5)
    exact = max(exact_delta(0.1, top, 300, float(claimed)) for top in np.linspace(0, 0.1, 40)[1:-1])
    assert 1e-8 < exact <= 1e-5


def test_approximate_parts_add_their_delta_and_keep_the_rest_for_the_conversion() -> None:
    learning, releases = Cost.of(0.2, delta=1e-7), Cost.of(0.1, "range") * 365
    together = learning + releases
    assert (together.delta, together.rho) == (Fraction(1, 10**7), Fraction(365, 800) + Fraction(1, 50))
    left = 1e-6 - 1e-7
    assert float(together.epsilon_at(1e-6)) == pytest.approx(zcdp_epsilon(together.rho, left), rel=1e-9)
    assert together.epsilon_at(1e-6) >= Fraction(zcdp_epsilon(together.rho, left * (1 + 1e-9)))
    assert together.epsilon_at(1e-7) == together.epsilon and math.isinf(together.epsilon_at(1e-8))
    assert not together.fits(Fraction(100), Fraction(1, 10**8)) and together.fits(Fraction(6), Fraction(1, 10**6))


def least_log_delta(rho: float | Fraction, epsilon: float) -> mpmath.mpf:
    """What the conversion gives in sixty digits, at its own best order, found by a golden section of one valley."""
    with mpmath.workdps(60):

        def log_delta(log_excess: mpmath.mpf) -> mpmath.mpf:
            excess = mpmath.exp(log_excess)
            alpha = 1 + excess
            return excess * (alpha * rho - epsilon) - log_excess - alpha * mpmath.log1p(1 / excess)

        low, high = mpmath.mpf(-800), mpmath.mpf(800)
        for _ in range(180):
            a, b = low + (high - low) * mpmath.mpf("0.382"), low + (high - low) * mpmath.mpf("0.618")
            low, high = (low, b) if log_delta(a) < log_delta(b) else (a, high)
        return log_delta(low)


@pytest.mark.parametrize("rho", [1e-300, 1e-30, 1e-8, 1e-3, 0.1, 3.0, 100.0, 1e6])
@pytest.mark.parametrize("delta", [1e-300, 1e-30, 1e-6, 0.3])
def test_a_converted_epsilon_is_never_too_small(rho: float, delta: float) -> None:
    """At the claimed epsilon the conversion gives no more than delta."""
    assert least_log_delta(rho, zcdp_epsilon(Fraction(rho), delta)) <= mpmath.log(delta)


@pytest.mark.parametrize("rho", [1e-300, 1e-20, 1e-6, 0.1, 1.0, 30.0, 1e6, 1e12, 1e18, 1e25])
@pytest.mark.parametrize("beyond", [-1.0, 0.0, 1e-3, 1.0, 5.0, 9.0])
def test_a_converted_delta_is_the_least(rho: float, beyond: float) -> None:
    """Also where epsilon is close to a large rho, and far from a small one. beyond: in square roots of rho."""
    epsilon = max(rho + 2.0 * beyond * math.sqrt(rho), 0.0)
    wanted = float(mpmath.exp(min(least_log_delta(rho, epsilon), 0)))
    assert zcdp_delta(rho, epsilon) == pytest.approx(wanted, rel=1e-8)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: Cost.of(0), "epsilon"),
        (lambda: Cost.of(math.inf), "epsilon"),
        (lambda: Cost.of("1"), "epsilon"),
        (lambda: Cost.of(1, "some"), "kind"),  # type: ignore[arg-type]
        (lambda: Cost.of(1, delta=1), "delta"),
        (lambda: Cost.of(1, rho=-1), "rho"),
        (lambda: Cost.of(1).epsilon_at(1), "delta"),
    ],
)
def test_bad_costs_are_named(call: object, name: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^{name}"):
        call()  # type: ignore[operator]
