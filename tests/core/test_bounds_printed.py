"""Bounds as the paper prints them, formula by formula, where it is off."""

from __future__ import annotations

import math
from itertools import product

import mpmath
import pytest

from pq import bounds

BUDGETS = list(product((0.02, 1.0, 30.0), (0.9, 1e-9)))  # epsilon and beta
WIDE, NARROW = (5.0, 10.0, 0.01), (300.0, 2.0, 1e-6)  # radius, width, least separation


def cauchy(radius: float, width: float, separation: float) -> float:
    """1 over the mass of an optimal interval under the Cauchy prior."""
    return math.pi * (width**2 + 4 * radius**2) / (2 * width * separation)


@pytest.mark.parametrize(("epsilon", "beta"), BUDGETS)
@pytest.mark.parametrize("data", [WIDE, NARROW])
def test_of_one_quantile(data: tuple[float, float, float], epsilon: float, beta: float) -> None:
    _, width, separation = data
    printed = 2 / epsilon * math.log(width / (beta * separation))
    assert bounds.uniform_bound(width, separation, epsilon, beta, version="paper") == pytest.approx(printed, rel=1e-12)
    for known in ({}, {"n": 2, "rank": 0}, {"n": 1}):
        found = bounds.cor_cauchy(*data, epsilon, beta, version="paper", **known)  # type: ignore[arg-type]
        assert found == pytest.approx(2 / epsilon * math.log(cauchy(*data) / beta), rel=1e-12)


@pytest.mark.parametrize(("epsilon", "beta"), BUDGETS)
@pytest.mark.parametrize("data", [WIDE, NARROW])
def test_of_several_quantiles(data: tuple[float, float, float], epsilon: float, beta: float) -> None:
    for m in (3, 7, 1023):
        lead, odds = 2 / epsilon * math.ceil(math.log2(m)), math.log(m / beta)
        found = bounds.cor_multi_cauchy(*data, epsilon, m, beta, version="paper")
        printed = lead * math.ceil(math.log2(m)) * (odds + math.log(cauchy(*data)))
        assert found == pytest.approx(printed, rel=1e-12)
        for weight in (0.01, 0.9):
            robust, consistent = bounds.cor_multiple(*data, epsilon, m, beta, weight, version="paper")
            assert robust == pytest.approx(printed + lead * math.ceil(math.log2(m)) * math.log(1 / weight), rel=1e-9)
            golden = ((1 + math.sqrt(5)) / 2) ** math.log2(m)
            assert consistent == pytest.approx(lead * golden * (odds - math.log1p(-weight)), rel=1e-12)


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_of_the_expectation(p: float) -> None:
    constant = (1 + mpmath.lerchphi(0.5, -p, 2) / 2) * mpmath.zeta(p)
    for m, epsilon, n in product((1, 3, 100), (0.02, 1.0, 30.0), (10**6, 10**9)):
        factor = float(constant) / epsilon * math.exp(2 * math.sqrt(math.log(2) * math.log(m + 1)))
        printed = factor * (math.log(m * n / factor) + 5.0 + 1)
        found = bounds.expectation_bound(-5.0, epsilon, m, n, p=p, version="paper")
        assert found == pytest.approx(printed, rel=1e-9)


@pytest.mark.parametrize(("steps", "noise", "beta"), [*product((2, 100, 128, 10**6), (0.0, 0.3, 20.0), (0.5, 1e-6))])
def test_of_private_descent(steps: int, noise: float, beta: float) -> None:
    spread = 1.5 + 0.7 * math.sqrt(2 * math.log(steps / beta))
    slope = steps * 3.0 * (3.0 + spread * noise * 2.0 * math.sqrt(math.ceil(math.log2(steps))))
    found = bounds.thm_dpftrl(
        steps,
        regularizer_range=4.0,
        lipschitz=3.0,
        sensitivity=2.0,
        gaussian_width=1.5,
        noise=noise,
        beta=beta,
        dual_lipschitz=0.7,
        version="paper",
    )
    assert found == pytest.approx(2 * math.sqrt(4.0 * slope), rel=1e-12)


@pytest.mark.parametrize(("alpha", "largest", "beta"), [*product((0.01, 0.5), (0.2, 3.0), (0.5, 1e-6))])
def test_of_online_to_batch(alpha: float, largest: float, beta: float) -> None:
    for steps in (1, 50, 10**6):
        printed = 2.5 / steps + 2 * largest * math.sqrt(2 * math.log(2 / beta) / steps)
        found = bounds.thm_o2b(steps, regret=2.5, loss_range=largest, beta=beta, version="paper")
        assert found == pytest.approx(printed, rel=1e-12)
    least = bounds.thm_o2b_steps(alpha, loss_range=largest, beta=beta, version="paper")
    tails = [2 * largest * math.sqrt(2 * math.log(2 / beta) / steps) for steps in (least, max(least - 1, 0.5))]
    assert tails[0] <= alpha / 2 * (1 + 1e-12) and tails[1] > alpha / 2 * (1 - 1e-12)


@pytest.mark.parametrize(("steps", "epsilon", "beta"), [*product((1, 8, 1000), (0.02, 1.0, 30.0), (0.5, 1e-6))])
def test_of_sequences(steps: int, epsilon: float, beta: float) -> None:
    for m, d in product((1, 5), (1, 20)):
        levels = math.floor(math.log2(steps)) + 1
        noise = 4 + 8 / epsilon * math.sqrt(2 * m * d * math.log(steps / beta) * math.log(2 / 1e-6))
        printed = (3.0 * (2.0 + 1) + 5.0) / 0.5 * math.sqrt(m * d * levels * steps * noise)
        found = bounds.thm_sequential(
            steps,
            quantiles=m,
            features=d,
            feature_bound=2.0,
            weight_bound=3.0,
            data_bound=10.0,
            scale_min=0.5,
            scale_max=5.0,
            epsilon=epsilon,
            delta=1e-6,
            beta=beta,
            version="paper",
        )
        assert found == pytest.approx(printed, rel=1e-12)
