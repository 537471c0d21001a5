"""Public numbers of any kind are exact rationals, or are refused by name in a sentence."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import pq
from pq.core.exact import budget_float, budget_fraction, budget_text, decimal_fraction
from pq.sequential import Static, release_sequence

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
