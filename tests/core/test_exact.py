"""Public numbers of any kind are exact rationals, or are refused by name in a sentence."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import pq
from pq.core.exact import budget_float, budget_fraction, budget_text, decimal_fraction
from pq.sequential import Session, Static, release_sequence

PUBLIC: dict[str, Any] = {"quantiles": [0.5], "epsilon": 1, "grid": None}


@pytest.mark.parametrize("text", ["sNaN", "-sNaN123", "NaN", "Infinity", "1e999999999", "1e-999999999"])
@pytest.mark.parametrize("name", ["quantiles", "epsilon", "grid"])
def test_decimals_that_are_no_numbers_are_refused_by_name(name: str, text: str) -> None:
    if (name, text) == ("epsilon", "Infinity"):
        assert budget_fraction(Decimal(text)) == math.inf
        return
    arguments = {**PUBLIC, name: Decimal(text)}
    with pytest.raises(ValueError, match=f"^{name} must"):
        pq.release([1.0], arguments.pop("quantiles"), priors=pq.Cauchy(0, 1), mechanism="tree", **arguments)


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30))
def test_a_decimal_is_itself(value: Decimal) -> None:
    assert decimal_fraction(value, "value") == Fraction(value)


@given(st.floats(1e-300, 1e300))
def test_a_printed_budget_is_never_less_than_what_is_spent(epsilon: float) -> None:
    printed, spent = Fraction(budget_text(epsilon)), decimal_fraction(epsilon, "epsilon")
    assert spent <= printed <= spent * (1 + Fraction(1, 10**5))


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=1000, max_denominator=10**9))
@example(Fraction(1, 3))
@example(Fraction(3, 10))
def test_no_budget_is_told_smaller_than_what_is_spent(epsilon: Fraction) -> None:
    """By the float of a result either; a float that is told is read as its decimal text, as everywhere."""
    told = budget_float(epsilon)
    assert Fraction(repr(told)) >= epsilon > Fraction(repr(math.nextafter(told, 0.0)))
    assert epsilon <= Fraction(budget_text(epsilon)) <= epsilon * (1 + Fraction(1, 10**5))


def test_what_a_release_says_of_its_budget_is_no_smaller() -> None:
    third, prior = Fraction(1, 3), pq.Uniform(0, 4)
    table = {"by": ["a", "b"], "x": [1.0, 2.0]}
    one = pq.release([1.0], [0.5], epsilon=third, priors=prior)
    many = pq.release_groups(table, [0.5], by="by", value="x", keys=["a", "b"], epsilon=third, priors=prior)
    static = Static(prior, [0.5])
    days = release_sequence([[1.0]], [[0.0]], static, [0.5], epsilon=third, individuals="overlap")
    said = [one.epsilon, one.to_dict()["epsilon"], many.epsilon, days.guarantee.epsilon, days.guarantee.release_epsilon]
    assert all(Fraction(repr(epsilon)) >= third for epsilon in said) and float(third) < min(said)
    assert pq.Release.from_dict(one.to_dict()).to_dict() == one.to_dict()


@pytest.mark.parametrize("epsilon", [1.0000049, 0.33333333, math.nextafter(1.0, 2.0)])
def test_a_budget_that_six_digits_would_lower_is_not_printed_with_six(epsilon: float) -> None:
    released = pq.release([], [0.5], epsilon=epsilon, priors=pq.Cauchy(0, 1), mechanism="tree", rng=0)
    assert float(f"{epsilon:g}") < epsilon <= float(str(released).split("-differentially")[0])


THIRDS = [Fraction(1, 3), 1 / 3]  # two quantiles that a release tells as one float
SAME_FLOAT = [THIRDS, [0, Fraction(1, 10**400)], [Fraction(1, 2), Fraction(2, 3), Fraction(2 * 10**30 + 1, 3 * 10**30)]]


@pytest.mark.parametrize("levels", SAME_FLOAT)
def test_quantiles_that_share_a_float_are_refused_before_the_charge(levels: list[Any]) -> None:
    ledger, prior, x = pq.Ledger(10), pq.Normal(0, 1), [1.0, 2.0]
    facts: dict[str, Any] = {"epsilon": 1, "priors": prior}
    table = {"by": "team", "value": "age", "keys": ["a"]}
    calls: list[Callable[[], Any]] = [
        *(
            lambda mechanism=mechanism: pq.release(x, levels, ledger=ledger, mechanism=mechanism, **facts)
            for mechanism in ("auto", "tree", "joint", "cells", "mixed")
        ),
        lambda: pq.release(x, levels, ledger=ledger, epsilon=1, priors=[pq.Normal(k, 1) for k, _ in enumerate(levels)]),
        lambda: pq.release(x, levels[::-1], ledger=ledger, **facts),
        lambda: pq.simulate(x, levels, trials=2, ledger=ledger, **facts),
        lambda: pq.release_groups({"team": ["a"], "age": [1.0]}, levels, ledger=ledger, **table, **facts),
        lambda: pq.forecast(levels, size_guess=100, **facts),
        lambda: pq.epsilon_for(levels, max_gap=10, size_guess=100, priors=prior),
        lambda: pq.log_density(x, [0.0] * len(levels), levels, **facts),
        lambda: pq.plan(levels, epsilon=1),
        lambda: Session(Static(prior, levels), levels, epsilon=1, ledger=ledger),
        lambda: release_sequence([x], [[0.0]], Static(prior, levels), levels, epsilon=1, ledger=ledger),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="quantiles must differ as floats"):
            call()
    assert ledger.spent == 0


def test_a_quantile_that_is_no_decimal_is_told_once() -> None:
    one = pq.release([1.0, 2.0], [Fraction(1, 3), Fraction(2, 3), Fraction(1, 3)], epsilon=1, priors=pq.Normal(0, 1))
    assert one.values[0] == one.values[2] and pq.Release.from_dict(one.to_dict()).to_dict() == one.to_dict()
