"""The guarantees for learned predictions, against oracles that do not share their code."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pq import bounds
from pq.core.losses.piecewise import log_scores, piecewise_constant
from pq.losses import laplace_interval

VERSIONS = ("corrected", "paper")
SCALES = st.floats(1e-3, 1e3)


def _delta(epsilon: float, multiplier: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        half, shift = 1 / (2 * mpmath.mpf(multiplier)), mpmath.mpf(epsilon) * multiplier
        return mpmath.ncdf(half - shift) - mpmath.exp(epsilon) * mpmath.ncdf(-half - shift)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 5.0, 12.0, 40.0])
@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-6, 1e-12])
def test_noise_is_private_on_the_exact_curve(epsilon: float, delta: float) -> None:
    for steps in (1, 2, 3, 4, 7, 8, 1000):
        for total in (False, True):
            nodes = bounds.tree_nodes(steps, release_total=total)
            if nodes == 0:
                continue
            for version in ("corrected", "sharp"):
                noise = bounds.dpftrl_noise(steps, epsilon, delta, version=version, release_total=total)
                assert _delta(epsilon, noise / math.sqrt(nodes)) <= delta * (1 + 1e-12)
            assert _delta(epsilon, noise / math.sqrt(nodes)) >= delta * 0.999  # sharp is sharp


def test_printed_noise_is_not_private() -> None:
    noise = bounds.dpftrl_noise(1000, 10.0, 1e-6, version="paper")
    assert _delta(10.0, noise / math.sqrt(10)) > 2e-6
    assert bounds.dpftrl_noise(1, 1.0, 1e-6, version="paper") == 0.0
    assert bounds.dpftrl_noise(1, 1.0, 1e-6) > 0.0


@given(st.floats(0.01, 30.0), st.floats(0.05, 20.0))
def test_gaussian_delta_matches_many_digits(epsilon: float, multiplier: float) -> None:
    exact = float(_delta(epsilon, multiplier))
    assert bounds.gaussian_delta(epsilon, multiplier) == pytest.approx(exact, rel=1e-6, abs=1e-15)


def test_noise_without_gradients_to_release() -> None:
    assert bounds.dpftrl_noise(1, 1.0, 1e-6, version="sharp", release_total=False) == 0.0


@given(st.integers(1, 3000))
def test_tree_nodes(steps: int) -> None:
    assert bounds.tree_nodes(steps, release_total=False) == (math.ceil(math.log2(steps)) if steps > 1 else 0)
    assert bounds.tree_nodes(steps) == math.floor(math.log2(steps)) + 1


def test_best_step_size_minimises() -> None:
    common = dict(  # noqa: C408
        regularizer_range=2.0, lipschitz=3.0, sensitivity=1.0, gaussian_width=2.0, noise=1.5, beta=0.05
    )
    best = bounds.thm_dpftrl(500, **common)
    others = [bounds.thm_dpftrl(500, step_size=eta, **common) for eta in np.geomspace(1e-4, 1.0, 200)]
    assert best <= min(others)
    assert min(others) <= best * 1.01


@given(st.floats(0.001, 10.0), st.integers(1, 50), st.floats(0.01, 1.0), st.integers(1, 9))
def test_sensitivity_is_never_above_the_printed_one(epsilon: float, cells: int, robustness: float, m: int) -> None:
    ours = bounds.lem_refined_sensitivity(epsilon, cells, robustness, quantiles=m)
    paper = bounds.lem_refined_sensitivity(epsilon, cells, robustness, quantiles=m, version="paper")
    assert ours <= paper * (1 + 1e-12)
    assert ours <= math.sqrt(2) * bounds.lem_lipschitz(cells, robustness)


@given(st.integers(2, 5000), st.integers(2, 30), st.integers(1, 20), st.floats(0.01, 3.0), st.floats(0.0, 100.0))
def test_corrected_regret_beats_the_printed_bound(steps: int, cells: int, m: int, epsilon: float, noise: float) -> None:
    common = {"quantiles": m, "epsilon": epsilon, "noise": noise, "beta": 0.05, "lipschitz": 1.0}
    ours = bounds.thm_quantile_regret(steps, cells, 0.25, **common)
    paper = bounds.thm_quantile_regret(steps, cells, 0.25, version="paper", **common)
    assert 0 < ours.regret <= paper.regret * (1 + 1e-12)
    assert ours.step_size > 0


def test_settings_balance_the_regret() -> None:
    """Moving d or gamma by a factor two does not lower the leading terms by more than a constant."""
    steps, x = 10**20, 100.0
    found = bounds.cor_quantile_regret("lipschitz", steps, quantiles=4, noise_factor=x, lipschitz=2.0)

    def total(d: float, gamma: float) -> float:
        return 2.0 * steps / (gamma * d) + gamma * steps + 2 * d / gamma * math.sqrt(x * steps)

    here = total(found.cells, found.robustness)
    assert here <= 3.01 * found.rate
    grid = [total(found.cells * a, found.robustness * b) for a in (0.5, 1, 2) for b in (0.5, 1, 2)]
    assert min(grid) >= here / 2


@given(SCALES, st.floats(1.0, 100.0), st.floats(0.1, 100.0), st.floats(1e-4, 1.0), st.booleans())
def test_laplace_bound(low: float, ratio: float, bound: float, share: float, box: bool) -> None:
    if 2 * bound / low > 600:
        return
    separation = 2 * bound * share
    exact = bounds.eq_laplace_bound(bound, low, low * ratio, separation, box=box)
    assert exact <= bounds.eq_laplace_bound(bound, low, low * ratio, separation, version="paper") * (1 + 1e-9)
    for scale in (low, low * ratio):
        location = -bound * scale / low if box else -bound
        with mpmath.workdps(60):
            mass = mpmath.quad(
                lambda o, s=scale, nu=location: mpmath.exp(-abs(o - nu) / s) / (2 * s), [bound - separation, bound]
            )
        assert float(-mpmath.log(mass)) <= exact + 1e-6 * (1 + abs(exact))


@given(SCALES, SCALES, st.floats(0.0, 100.0))
def test_gradient_bounds(bound: float, scale: float, separation: float) -> None:
    first, second = bounds.laplace_gradient_bound(bound, scale, separation=separation)
    assert first == 1.0
    assert bound <= second <= bounds.laplace_gradient_bound(bound, scale)[1] * (1 + 1e-12)
    assert second <= bounds.laplace_gradient_bound(bound, scale, version="paper")[1]
    exact = mpmath.mpf(bound) + (separation / mpmath.expm1(separation / mpmath.mpf(scale)) if separation else scale)
    assert second == pytest.approx(float(exact), rel=1e-12)


@given(SCALES)
def test_public_fit_has_no_unit(factor: float) -> None:
    def at(unit: float) -> float:
        return bounds.thm_pubpri(
            10**5,
            50,
            quantiles=3,
            data_bound=2 * unit,
            scale_min=0.1 * unit,
            scale_max=unit,
            density_bound=1 / unit,
            total_variation=0.01,
            beta=0.1,
        )

    assert at(factor) == pytest.approx(at(1.0), rel=1e-9)


def test_public_fit_improves_with_data() -> None:
    common = {"quantiles": 3, "data_bound": 1.0, "scale_min": 0.1, "scale_max": 1.0, "density_bound": 1.0}
    values = [bounds.thm_pubpri(n, 10, total_variation=0.0, beta=0.1, **common) for n in (10, 10**3, 10**5, 10**7)]
    assert values == sorted(values, reverse=True)
    assert bounds.thm_pubpri(10**3, 10, total_variation=0.2, beta=0.1, **common) > values[1]


def test_sequential_bound_covers_one_exact_step() -> None:
    """T = 1 from weights 0: all features F, the data at the far corner, one scale; the regret is d B F / scale."""
    common = {"quantiles": 1, "feature_bound": 100.0, "weight_bound": 1.0, "scale_min": 0.01, "scale_max": 0.01}
    common |= {"epsilon": 1.0, "delta": 1e-6, "beta": 0.1, "features": 6000, "data_bound": 7e5}
    regret = 6000 * 100.0 / 0.01 - 0.01
    assert bounds.thm_sequential(1, version="paper", **common) < regret <= bounds.thm_sequential(1, **common)


def test_sequential_steps_grow_slowly() -> None:
    common = {"quantiles": 2, "features": 3, "feature_bound": 1.0, "weight_bound": 1.0, "data_bound": 1.0}
    common |= {"scale_min": 0.1, "scale_max": 1.0, "epsilon": 1.0, "delta": 1e-6, "beta": 0.05}
    small, large = (bounds.thm_sequential(t, **common) / t for t in (10**4, 10**8))
    assert large < small / 50  # about the square root of 10^4, less logarithms
    sizes = bounds.sequential_step_sizes(10**4, **common)
    assert min(sizes) > 0


def test_online_to_batch_halves_the_deviation() -> None:
    common = {"regret": 0.0, "loss_range": 3.0, "beta": 0.1}
    assert bounds.thm_o2b(50, version="paper", **common) == pytest.approx(2 * bounds.thm_o2b(50, **common))
    steps = bounds.thm_o2b_steps(0.2, loss_range=3.0, beta=0.1)
    assert bounds.thm_o2b(steps, **common) <= 0.1 < bounds.thm_o2b(steps - 1, **common)


def test_lipschitz_is_attained() -> None:
    weights = (Fraction(1, 10), Fraction(9, 10))
    assert bounds.lem_lipschitz(2, 0.2) == float(1 / weights[0])


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: bounds.tree_nodes(0), "steps"),
        (lambda: bounds.dpftrl_noise(4, 0.0, 1e-6), "epsilon"),
        (lambda: bounds.dpftrl_noise(4, 1.0, 1.0), "delta"),
        (lambda: bounds.dpftrl_noise(4, 1.0, 0.1, version="other"), "version"),  # type: ignore[arg-type]
        (lambda: bounds.lem_lipschitz(3, 1.5), "robustness"),
        (lambda: bounds.lem_refined_sensitivity(-1.0, 3, 0.5), "epsilon"),
        (lambda: bounds.lem_refined_sensitivity(1.0, 3, 0.5, version="x"), "version"),  # type: ignore[arg-type]
        (lambda: bounds.thm_quantile_regret(9, 1, 0.5, quantiles=1, epsilon=1.0, noise=0.0, beta=0.1), "cells"),
        (lambda: bounds.thm_quantile_regret(9, 2, 0.5, quantiles=1, epsilon=1.0, noise=0.0, beta=2.0), "beta"),
        (lambda: bounds.cor_quantile_regret("all", 9, quantiles=1, noise_factor=1.0), "case"),  # type: ignore[arg-type]
        (lambda: bounds.cor_quantile_regret("robust-discrete", 9, quantiles=1, noise_factor=1.0), "mixture"),
        (lambda: bounds.cor_quantile_regret("lipschitz", 9, quantiles=1, noise_factor=1.0), "lipschitz"),
        (lambda: bounds.eq_laplace_bound(1.0, 2.0, 1.0, 0.1), "scale_max"),
        (lambda: bounds.eq_laplace_bound(1.0, 1.0, 2.0, 3.0), "separation"),
        (lambda: bounds.laplace_gradient_bound(1.0, 1.0, separation=-1.0), "separation"),
        (lambda: bounds.thm_o2b(5, regret=0.0, loss_range=0.0, beta=0.1), "loss_range"),
        (lambda: bounds.gaussian_delta(1.0, 0.0), "noise_multiplier"),
        (lambda: bounds.gaussian_delta(1.0, math.nan), "noise_multiplier"),
    ],
)
def test_bad_arguments_are_named(call, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        call()


def test_public_size_is_checked() -> None:
    with pytest.raises(ValueError, match="public_size"):
        bounds.thm_pubpri(
            5,
            10,
            quantiles=1,
            data_bound=1.0,
            scale_min=1.0,
            scale_max=1.0,
            density_bound=1.0,
            total_variation=0.0,
            beta=0.1,
        )


@given(st.integers(0, 10**6))
def test_one_record_moves_the_gradient_by_at_most_the_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, cells, epsilon = int(rng.integers(1, 4)), int(rng.integers(2, 6)), float(rng.choice([0.1, 1.0, 4.0]))
    data = np.sort(rng.beta(0.4, 0.4, int(rng.integers(1, 15))))
    others = [np.sort(np.append(data, rng.uniform())), data[1:], np.sort(np.append(data[1:], rng.uniform()))]
    gamma = float(rng.choice([0.1, 0.5, 1.0]))
    weights = gamma / cells + (1 - gamma) * rng.dirichlet(np.full(cells, 0.3), m)
    quantiles = np.sort(rng.uniform(0.05, 0.95, m))
    edges, epsilons = np.linspace(0.0, 1.0, cells + 1), np.full(m, epsilon)

    def gradient(x: np.ndarray) -> np.ndarray:
        targets = np.floor(quantiles * x.size)
        return piecewise_constant(weights, log_scores(x, edges, targets, epsilons))[1]

    bound = bounds.lem_refined_sensitivity(epsilon, cells, gamma, quantiles=m)
    here = gradient(data)
    assert np.abs(here).sum() <= bounds.lem_lipschitz(cells, gamma) * (1 + 1e-12)
    for other in others:
        assert np.linalg.norm(gradient(other) - here) <= bound * (1 + 1e-9)


@given(SCALES, SCALES, st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(-3.0, 3.0))
def test_laplace_gradient_stays_below_its_bounds(bound: float, scale: float, a: float, b: float, shift: float) -> None:
    low, high = sorted((bound * (2 * a - 1), bound * (2 * b - 1)))
    if high - low < 1e-6 * bound:
        return
    _, d_theta, d_phi = laplace_interval(shift * bound / scale, 1 / scale, low, high)
    first, second = bounds.laplace_gradient_bound(bound, scale, separation=high - low)
    assert abs(d_theta) <= first * (1 + 1e-12)
    assert abs(d_phi) <= second * (1 + 1e-9)
