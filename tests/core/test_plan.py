"""The tree and its budgets: data-free, exact, for any number of quantiles and any arity."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
import pq


def evenly(m: int) -> list[Fraction]:
    return [Fraction(i, m + 1) for i in range(1, m + 1)]


def path_sums(plan: pq.Plan, m: int, arity: int) -> list[Fraction]:
    """What each root-to-leaf path of the pseudocode's own tree spends under the plan's budgets."""
    return [sum(plan.epsilons[i - 1] for node in path for i in node) for path in oracles.paths(m, arity)]


@pytest.mark.parametrize("arity", [2, 3, 4, 5, 10])
@pytest.mark.parametrize("m", [*range(1, 34), 63, 64, 99, 100, 127, 128, 255, 256])
@pytest.mark.parametrize("power", [0, 1, 1.5, 2])
def test_budgets_of_every_path_sum_to_epsilon_exactly(m: int, arity: int, power: float) -> None:
    plan = pq.plan(evenly(m), epsilon=Fraction(7, 10), arity=arity, budget_power=power)
    assert set(path_sums(plan, m, arity)) == {Fraction(7, 10)}
    assert min(plan.epsilons) > 0


@pytest.mark.parametrize(
    ("m", "depth"), [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (15, 4), (16, 5), (2**20, 21)]
)
def test_depth_is_that_of_a_tree_of_m_nodes(m: int, depth: int) -> None:
    """ceil(log2(m + 1)): one level where ceil(log2 m) has none, two where it has one."""
    levels = max(map(len, oracles.paths(m, 2))) if m < 100 else depth
    assert levels == depth
    if m < 100:
        assert pq.plan(evenly(m), epsilon=1).depth == depth


def test_log2_of_m_levels_would_spend_more_than_the_claim() -> None:
    """The budget epsilon / ceil(log2 m) of `lem:empirical-quantiles` overspends: twice at m = 2, and divides by zero at
    m = 1."""
    spent = {m: max(sum(map(len, p)) for p in oracles.paths(m, 2)) / math.ceil(math.log2(m)) for m in (2, 3, 4, 8)}
    assert spent == {2: 2.0, 3: 1.0, 4: 1.5, 8: 4 / 3}


def test_the_printed_budget_of_the_kary_theorem_is_divided_twice() -> None:
    """`thm:kary` divides epsilon-bar by K - 1, and the algorithm divides again by the node's number of quantiles."""
    m, arity = 8, 3
    levels = 2
    bar = Fraction(1) / (arity - 1) / sum(Fraction(1, k**2) for k in range(1, levels + 1))
    spent = max(
        sum(bar / k**2 / len(node) for k, node in enumerate(path, 1) for _ in node) for path in oracles.paths(m, arity)
    )
    assert spent == Fraction(1, 2)


@pytest.mark.parametrize("arity", [2, 3, 4, 7])
@pytest.mark.parametrize("m", [1, 2, 3, 5, 8, 9, 29])
def test_bounds_and_relative_quantiles_match_the_pseudocode(m: int, arity: int) -> None:
    qs = evenly(m)
    plan = pq.plan(qs, epsilon=1, arity=arity)
    for i in range(m):
        low, high = plan.lower[i], plan.upper[i]
        below, above = qs[low] if low >= 0 else Fraction(0), qs[high] if high >= 0 else Fraction(1)
        assert below < qs[i] < above
        assert plan.relative[i] == (qs[i] - below) / (above - below)
        shallower = [j for j in range(m) if plan.depths[j] < plan.depths[i]]
        assert low == max((j for j in shallower if j < i), default=-1)
        assert high == min((j for j in shallower if j > i), default=-1)


def test_order_and_repeats_follow_the_caller() -> None:
    plan = pq.plan([0.9, 0.5, 0.9, 0.1], epsilon=1)
    assert plan.depths == (2, 1, 2, 2)
    assert plan.lower == (1, -1, 1, -1) and plan.upper == (-1, -1, -1, 1)
    assert plan.epsilons[0] == plan.epsilons[2]


def test_quantiles_zero_and_one_are_allowed() -> None:
    assert pq.plan([0, 1, 0.5], epsilon=1).relative == (0, 1, Fraction(1, 2))


def test_infinite_epsilon_is_infinite_everywhere() -> None:
    assert set(pq.plan([0.2, 0.4, 0.6], epsilon=math.inf).epsilons) == {math.inf}


@pytest.mark.parametrize(
    ("epsilon", "error"),
    [
        (0, ValueError),
        (-1, ValueError),
        (math.nan, ValueError),
        ("1", TypeError),
        (True, TypeError),
        (None, TypeError),
        (-math.inf, ValueError),
    ],
)
def test_bad_epsilon_is_refused_by_name(epsilon: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="epsilon"):
        pq.plan([0.5], epsilon=epsilon)


@pytest.mark.parametrize(
    ("quantiles", "error"),
    [
        ([1.5], ValueError),
        ([-0.1], ValueError),
        ([math.nan], ValueError),
        (["a"], TypeError),
        ("0.5", TypeError),
        ([], ValueError),
        ([None], TypeError),
    ],
)
def test_bad_quantiles_are_refused_by_name(quantiles: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="quantiles"):
        pq.plan(quantiles, epsilon=1)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("arity", 1, ValueError),
        ("arity", 2.5, TypeError),
        ("arity", True, TypeError),
        ("budget_power", -1, ValueError),
        ("budget_power", math.nan, ValueError),
        ("adjacency", "both", ValueError),
        ("calibration", "none", ValueError),
    ],
)
def test_other_bad_arguments_are_refused_by_name(name: str, value: object, error: type[Exception]) -> None:
    with pytest.raises(error, match=name):
        pq.plan([0.5], epsilon=1, **{name: value})


def test_epsilon_is_read_as_a_decimal() -> None:
    third = pq.plan([0.5], epsilon=0.1).epsilons[0]
    assert third == Fraction(1, 10) == pq.plan([0.5], epsilon=Decimal("0.1")).epsilons[0]


@pytest.mark.parametrize("q", [0.29, 0.57, 0.58, 0.07, 0.14, 0.28, 0.55, 0.56])
def test_rank_uses_the_decimal_value(q: float) -> None:
    assert pq.rank(q, 100) == round(q * 100)


@given(st.integers(0, 10**6), st.integers(0, 10**9))
def test_rank_is_the_exact_floor(millionths: int, n: int) -> None:
    assert pq.rank(millionths / 10**6, n) == millionths * n // 10**6
    assert pq.rank(np.float64(millionths / 10**6), n) == millionths * n // 10**6


def test_plan_prints_every_quantile_and_draws_every_level() -> None:
    import matplotlib.pyplot as plt

    plan = pq.plan([0.1, 0.25, 1 / 3, 0.9], epsilon=1)
    text = str(plan)
    assert len(text.splitlines()) == 2 + 4 and "3 levels" in text
    figure, ax = plt.subplots()
    plan.draw(ax)
    drawn = np.concatenate([c.get_offsets() for c in ax.collections])
    assert sorted(drawn[:, 0].tolist()) == [0, 1, 2, 3], "in their order, evenly"
    assert sorted((-drawn[:, 1]).tolist()) == sorted(map(float, plan.depths))
    plt.close(figure)


def test_kept_plans_tell_floats_from_fractions() -> None:
    tenth, binary = Fraction(1, 10), Fraction(0.1)
    for _ in range(2):
        found = [pq.plan([q], epsilon=1).distinct[0] for q in (0.1, binary, tenth)]
        assert found == [tenth, binary, tenth] and pq.plan(np.array([0.1]), epsilon=1).distinct == (tenth,)
        with pytest.raises(TypeError):
            pq.plan([True], epsilon=1)
        with pytest.raises(TypeError):
            pq.plan([0.5], epsilon=True)
        assert pq.plan([0.5], epsilon=1).epsilon == pq.plan([0.5], epsilon=1.0).epsilon == 1
