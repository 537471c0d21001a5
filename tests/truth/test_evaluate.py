"""Gap, and the inner products of priors with exponential scores, against definitions computed the slow way."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
import pq

small = st.integers(0, 12).map(lambda k: k / 2)


@given(st.lists(small, max_size=12), st.integers(0, 20), small)
def test_gap_matches_the_definition(x: list[float], twentieths: int, o: float) -> None:
    q = Fraction(twentieths, 20)
    assert pq.gap(x, [q], [o]).tolist() == [oracles.gap(sorted(x), q, o)]


def test_gap_of_an_untied_value_is_that_of_the_equation() -> None:
    x = [1.0, 2.0, 3.0, 4.0]
    assert pq.gap(x, [0.5] * 4, [2.0, 2.5, 3.0, 3.5]).tolist() == [1, 0, 0, 1]


def test_gap_of_a_tied_value_is_zero_on_its_whole_range() -> None:
    x = np.array([1, 5, 5, 5, 5, 5, 5, 5, 9, 9])
    assert pq.gap(x, [i / 10 for i in range(11)], [5] * 11).tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]
    assert pq.max_gap(np.full(10, 7.0), [0.1, 0.5, 1.0], [7, 7, 7]) == 0


def test_gap_keeps_the_order_of_the_caller_and_returns_integers() -> None:
    g = pq.gap([3.0, 1.0, 2.0], [0.9, 0.1], [0.0, 2.5])
    assert g.tolist() == [2, 2] and g.dtype == np.int64 and type(pq.max_gap([1.0], [0.5], [0.0])) is int


@pytest.mark.parametrize("values", [[1.0], [1.0, math.nan], [[1.0, 2.0]]])
def test_gap_refuses_values_that_are_not_one_per_quantile(values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"values|one-dimensional"):
        pq.gap([1.0, 2.0], [0.2, 0.4], values)


def slow_psi(x: list[float], q: Fraction, epsilon: Fraction | None) -> mpmath.mpf:
    """The inner product with a Cauchy(0, 1) prior as a sum over the intervals between distinct points, in 40 digits."""
    with mpmath.workdps(40):
        cdf = [mpmath.mpf(0), *(mpmath.atan(mpmath.mpf(v)) / mpmath.pi + 0.5 for v in x), mpmath.mpf(1)]
        target = math.floor(q * len(x))
        if epsilon is None:
            return mpmath.log(cdf[target + 1] - cdf[target])
        rate = mpmath.mpf(epsilon.numerator) / epsilon.denominator / 2
        return mpmath.log(sum(mpmath.exp(-rate * abs(k - target)) * (cdf[k + 1] - cdf[k]) for k in range(len(x) + 1)))


@given(
    st.lists(st.integers(-50_000, 50_000).map(lambda k: k / 1000), max_size=10, unique=True).map(sorted),
    st.integers(0, 10),
    st.sampled_from([None, Fraction(1, 100), Fraction(1), Fraction(30)]),
)
def test_log_psi_matches_a_sum_in_high_precision(x: list[float], tenths: int, epsilon: Fraction | None) -> None:
    q = Fraction(tenths, 10)
    got = pq.log_psi(x, q, pq.Cauchy(0, 1), epsilon)
    assert got == pytest.approx(float(slow_psi(x, q, epsilon)), rel=1e-11, abs=1e-13)


def test_log_psi_of_a_tied_interval_is_minus_infinity() -> None:
    assert pq.log_psi([1.0, 2.0, 2.0, 3.0], 0.5, pq.Cauchy(0, 1)) == -math.inf
    assert pq.log_psi_harmonic([1.0, 2.0, 2.0, 3.0], [0.25, 0.5], pq.Cauchy(0, 1)) == -math.inf


def test_log_psi_grows_to_its_limit_as_epsilon_falls() -> None:
    x = np.linspace(-3, 3, 41)
    values = [pq.log_psi(x, 0.3, pq.Normal(0, 1), e) for e in (0.01, 0.1, 1, 10, 100)]
    assert values == sorted(values, reverse=True)
    assert pq.log_psi(x, 0.3, pq.Normal(0, 1), math.inf) == pq.log_psi(x, 0.3, pq.Normal(0, 1))
    assert values[-1] == pytest.approx(pq.log_psi(x, 0.3, pq.Normal(0, 1)), abs=1e-12)


def test_harmonic_mean_is_that_of_the_inner_products() -> None:
    x, qs, priors = np.linspace(-3, 3, 20), [0.2, 0.5, 0.7], [pq.Cauchy(-1, 1), pq.Normal(0, 2), pq.Uniform(-5, 5)]
    for epsilons in (None, 1.0, [0.5, 1.0, 2.0]):
        each = [None if epsilons is None else e for e in np.broadcast_to(epsilons, 3)]
        psi = [math.exp(pq.log_psi(x, q, p, e)) for q, p, e in zip(qs, priors, each, strict=True)]
        assert pq.log_psi_harmonic(x, qs, priors, epsilons) == pytest.approx(
            math.log(3 / sum(1 / v for v in psi)), rel=1e-12
        )
    with pytest.raises(ValueError, match="priors"):
        pq.log_psi_harmonic(x, qs, priors[:2])
