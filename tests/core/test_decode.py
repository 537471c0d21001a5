"""Decoding: the likelihood against high precision, the mode against its own equations, and no counts that break it."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pq.core import decode
from pq.core.decode import DecodedDistribution, isotonic_records, smooth_records
from pq.core.noise import DiscreteLaplace

NOISE = DiscreteLaplace(Fraction(1))


def model(counts: list[float], parts: int = 2) -> decode._Model:
    return decode._Model(np.array(counts), math.sqrt(2.0 / NOISE.variance), np.full((len(counts), parts), 1.0))


def test_likelihood_is_that_of_gaussian_plus_laplace_noise() -> None:
    """Log density and score by integration, and the records to expect as the mean under the joint law."""
    counts = [3.0, -4.0, 40.0, 7.5]
    one = model(counts, parts=1)
    rate = one.rate
    f = np.log(np.array([[5.0, 0.7, 22.0, 7.0]]))
    part, score, _, total = one.likelihood(np.repeat(f, len(decode.PENALTIES), 0))
    expected = 0.0
    for y, mean, s in zip(counts, part[0], score[0], strict=True):

        def weight(c: float, y: float = y, mean: float = mean) -> mpmath.mpf:
            return mpmath.npdf(c, mean, math.sqrt(mean)) * mpmath.exp(-rate * abs(y - c)) * rate / 2

        ends = sorted([-60, y, mean, 120])
        density = mpmath.quad(weight, ends)
        middle = mpmath.quad(lambda c: c * weight(c), ends) / density
        expected += float(mpmath.log(density))
        assert mean * (1.0 + s) == pytest.approx(float(middle), rel=1e-8)
    assert total[0] == pytest.approx(expected, rel=1e-8)


def test_the_walk_is_the_gradient_of_the_penalty() -> None:
    one = model([0.0] * 5)
    f = np.random.default_rng(0).normal(size=(len(decode.PENALTIES), 10))
    step = np.zeros_like(f)
    step[:, 4] = 1e-6
    energy = [np.sum(np.diff(g, decode.ORDER, axis=1) ** 2, axis=1) for g in (f - step, f + step)]
    assert one._walk(f)[:, 4] == pytest.approx((energy[1] - energy[0]) / 4e-6, rel=1e-6)


def test_the_curvature_is_the_banded_matrix() -> None:
    """Cholesky's factor against the same matrix made densely."""
    one = model([9.0, 4.0, 1.0, 3.0])
    f = np.random.default_rng(1).normal(size=(len(decode.PENALTIES), 8))
    part, _, information, _ = one.likelihood(f)
    log_determinants = 2.0 * np.sum(np.log(one._factor(part, information)[-1].reshape(f.shape)), axis=1)
    difference = np.diff(np.eye(8), decode.ORDER, axis=0)
    for i, kappa in enumerate(one.kappa[:, 0]):
        dense = kappa * difference.T @ difference + decode.RIDGE * np.eye(8)
        for j in range(0, 8, 2):
            block = part[i, j : j + 2]
            dense[j : j + 2, j : j + 2] += information[i, j] * np.outer(block, block)
        assert log_determinants[i] == pytest.approx(np.linalg.slogdet(dense)[1], rel=1e-9)


def test_smooth_counts_are_smoothed_and_their_own_records_kept() -> None:
    """Noise of variance 200 on counts of 100 is mostly taken off; without noise the counts come back."""
    truth = np.rint(100.0 * np.exp(-(np.linspace(-2, 2, 24) ** 2) / 2)).astype(np.int64)
    noise = DiscreteLaplace(Fraction(1, 10))
    noisy = truth + noise.draw(24, np.random.default_rng(0).bytes)
    masses = np.full((24, 2), 1.0)
    smooth = smooth_records(noisy, noise, masses).sum(axis=1)
    assert np.linalg.norm(smooth - truth) < 0.5 * np.linalg.norm(noisy - truth)
    jagged = truth + 50 * (np.arange(24) % 2)
    kept = smooth_records(jagged, DiscreteLaplace(Fraction(20)), masses).sum(axis=1)
    assert kept == pytest.approx(jagged, abs=0.3)


def test_parts_without_mass_get_no_records() -> None:
    masses = np.array([[1.0, 1.0]] * 4 + [[1.0, 0.0]] + [[1.0, 1.0]] * 4)
    records = smooth_records(np.full(9, 50), NOISE, masses)
    assert records[4, 1] == decode.LEAST_RECORDS and records[4, 0] > 10.0


COUNTS = st.lists(st.integers(-(2**60), 2**60) | st.integers(-50, 50), min_size=2, max_size=40)


@given(COUNTS, st.sampled_from([Fraction(1, 2**40), Fraction(1, 10), Fraction(1), Fraction(50), math.inf]))
def test_any_counts_are_decoded(counts: list[int], epsilon: Fraction) -> None:
    """Finite, positive, and quantiles that do not decrease; warnings are errors in all tests."""
    array, noise = np.array(counts, dtype=np.int64), DiscreteLaplace(epsilon)
    edges = np.arange(2.0 * len(counts))[1:]
    for records, places in (
        (smooth_records(array, noise, np.full((len(counts), 2), 0.5 / len(counts))).ravel(), edges),
        (isotonic_records(array), edges[1::2]),
    ):
        assert np.all(np.isfinite(records)) and np.all(records > 0.0)
        values = DecodedDistribution(places, records, (-1.0, 1000.0)).quantile(np.linspace(0.0, 1.0, 21))
        assert np.all(np.isfinite(values)) and np.all(np.diff(values) >= 0.0)


@pytest.mark.parametrize("make", [lambda k: np.zeros(k), lambda k: np.full(k, -(2**62)), lambda k: np.full(k, 2**62)])
@pytest.mark.parametrize("cells", [2, 3, 17, 128])
def test_all_nothing_all_negative_all_huge(make: Callable[[int], np.ndarray], cells: int) -> None:
    counts = make(cells).astype(np.int64)
    assert np.all(np.isfinite(smooth_records(counts, NOISE, np.full((cells, 2), 1.0))))
    assert np.all(np.isfinite(isotonic_records(counts)))


def test_isotonic_is_least_squares_on_running_sums() -> None:
    """Against a search over all increasing sums on a fine grid."""
    counts = np.array([3, -2, 4, -1])
    running = np.cumsum(counts)
    grid = np.arange(0.0, 5.01, 0.25)
    increasing = np.stack(np.meshgrid(*[grid] * 4, indexing="ij"), -1).reshape(-1, 4)
    increasing = increasing[np.all(np.diff(increasing, axis=1) >= 0.0, axis=1)]
    best = increasing[np.argmin(np.sum((increasing - running) ** 2, axis=1))]
    assert np.cumsum(isotonic_records(counts)) == pytest.approx(best, abs=1e-6)


def test_quantiles_follow_the_order_asked_for() -> None:
    law = DecodedDistribution(np.array([1.0, 2.0, 3.0]), np.full(4, 25.0), (0.0, 4.0))
    assert law.quantile(np.array([0.75, 0.25, 0.5, 0.25])).tolist() == [3.0, 1.0, 2.0, 1.0]
    assert law.total == 100.0


@pytest.mark.parametrize("heavy", [0, 1, 7, 14, 15])
def test_a_cell_that_holds_all_records_holds_all_values(heavy: int) -> None:
    """Whatever is empty on either side: values stay inside its edges, or between an edge and the end."""
    counts = np.zeros(16, dtype=np.int64)
    counts[heavy] = 1000
    values = DecodedDistribution(np.arange(0.5, 15.0), isotonic_records(counts), (0.0, 15.0)).quantile(
        np.arange(1, 100) / 100
    )
    assert np.all(np.rint(values) == heavy)
