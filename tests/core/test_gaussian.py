"""The curve of the Gaussian mechanism and its least noise, against the printed formula in many digits."""

from __future__ import annotations

import math

import mpmath
import pytest

from pq import bounds, learners
from pq.core.budget.gaussian import gaussian_delta, noise_multiplier

TINY = [10.0**-k for k in (300, 200, 100, 30, 18, 15, 12, 9, 6, 3)]
EPSILONS = [*TINY, 0.1, 1.0, 10.0, 100.0, 1e3]
DELTAS = [*TINY, 0.1, 0.5, 0.9, 0.999999, 1 - 1e-12]


def exact_delta(epsilon: float, multiplier: float) -> mpmath.mpf:
    """The printed difference, with digits enough for what cancels in it."""
    with mpmath.workdps(700 if min(epsilon, 1 / multiplier) < 1e-40 else 150):
        e, s = mpmath.mpf(epsilon), mpmath.mpf(multiplier)
        tail = [mpmath.erfc((e * s + sign / (2 * s)) / mpmath.sqrt(2)) / 2 for sign in (-1, 1)]
        return tail[0] - mpmath.exp(e) * tail[1]


def private(multiplier: float, epsilon: float, delta: float) -> bool:
    return bool(exact_delta(epsilon, multiplier) <= mpmath.mpf(delta))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_noise_is_private_and_hardly_more_than_that(epsilon: float) -> None:
    for delta in DELTAS:
        multiplier = noise_multiplier(epsilon, delta)
        assert private(multiplier, epsilon, delta), delta
        assert delta > 0.5 or not private(multiplier * (1 - 1e-9), epsilon, delta), delta


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_delta_is_exact_to_ten_digits(epsilon: float) -> None:
    for delta in DELTAS:
        multiplier = noise_multiplier(epsilon, delta)
        assert abs(gaussian_delta(epsilon, multiplier) / exact_delta(epsilon, multiplier) - 1) < 1e-10, delta


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-12, 1e-30), (1e-15, 1e-18)])
def test_the_printed_difference_in_floats_would_not_be_private(epsilon: float, delta: float) -> None:
    """A search on a lower bound for the log of the difference, as float arithmetic gives it, finds too little noise."""
    from scipy.special import log_ndtr

    def seems_private(log_multiplier: float) -> bool:
        s = math.exp(log_multiplier)
        upper, lower = log_ndtr(0.5 / s - epsilon * s), epsilon + log_ndtr(-0.5 / s - epsilon * s)
        return bool(upper + math.log(-math.expm1(min(lower - upper, -1e-300))) <= math.log(delta))

    low, high = -40.0, 40.0
    while high - low > 1e-12:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if seems_private(middle) else (middle, high)
    assert not private(math.exp(high + 1e-9), epsilon, delta)
    assert private(noise_multiplier(epsilon, delta), epsilon, delta)


@pytest.mark.parametrize("epsilon", [1e6, 1e12, 1e100, 1e300])
def test_huge_budgets_need_the_noise_at_which_both_terms_meet(epsilon: float) -> None:
    for delta in (1e-300, 1e-6, 0.5):
        least = noise_multiplier(epsilon, delta) * math.sqrt(2 * epsilon)
        assert 1 - 1e-6 < least < 1.05 and (delta > 1e-10 or least > 1)
    assert private(noise_multiplier(1e6, 1e-6), 1e6, 1e-6)


def test_there_is_one_solver_and_one_count() -> None:
    assert bounds.gaussian_delta is gaussian_delta and learners.noise_multiplier is noise_multiplier
    assert learners.tree_nodes is bounds.tree_nodes
    assert bounds.dpftrl_noise(1, 0.3, 1e-9, version="sharp") == noise_multiplier(0.3, 1e-9)


@pytest.mark.parametrize("steps", range(1, 65))
def test_nodes_are_those_of_the_blocks_that_hold_the_first_step(steps: int) -> None:
    """Listed: a block [a 2^h + 1, (a + 1) 2^h] is in the tree if it ends by T, and released as part of some prefix."""
    held = dict.fromkeys((steps - 1, steps), 0)
    for last in held:
        blocks = set()
        for prefix in range(1, last + 1):
            start = 0
            for bit in reversed(range(prefix.bit_length())):
                if prefix >> bit & 1:
                    blocks.add((start + 1, start + (1 << bit)))
                    start += 1 << bit
        held[last] = max((sum(a <= t <= b for a, b in blocks) for t in range(1, last + 1)), default=0)
    assert learners.tree_nodes(steps) == held[steps] == math.floor(math.log2(steps)) + 1
    assert learners.tree_nodes(steps, release_total=False) == held[steps - 1]
    if steps & (steps - 1) == 0:
        assert math.ceil(math.log2(steps)) < held[steps]  # what the paper has is one short


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: gaussian_delta(-1, 1), "epsilon"),
        (lambda: gaussian_delta(math.nan, 1), "epsilon"),
        (lambda: gaussian_delta(1, 0), "noise_multiplier"),
        (lambda: noise_multiplier(0, 0.1), "epsilon"),
        (lambda: noise_multiplier(math.inf, 0.1), "epsilon"),
        (lambda: noise_multiplier(1, 0), "delta"),
        (lambda: noise_multiplier(1, 1), "delta"),
        (lambda: noise_multiplier(1, math.nan), "delta"),
        (lambda: noise_multiplier(5e-324, 5e-324), "epsilon and delta"),
    ],
)
def test_bad_arguments_are_named(call: object, name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}"):
        call()  # type: ignore[operator]
