"""Broken statements and implementations that the checks of Sections 4.3 and 5 and Appendices B.2, C and E must reject.

Where the paper's own statement is false it is among the mutants: that the check rejects it is the counterexample.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

import mpmath
import sympy

from pq.core.bounds import learning as bounds
from proofs_checks import applications, laplace, learning, location_scale

F = Fraction


def _printed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same guarantee as the paper prints it."""
    return partial(function, version="paper")


def _scaled(function: Callable[..., float], factor: float) -> Callable[..., float]:
    """A bound that is too small (or needlessly large) by a factor."""
    return lambda *args, **named: function(*args, **named) * factor


def _wrong_sign(theta: Any, phi: Any, a: Any, b: Any) -> Any:
    """The closed form with sinh for cosh inside."""
    h, z = (b - a) * phi / 2, theta - (a + b) * phi / 2
    if a * phi <= theta <= b * phi:
        return h - mpmath.log(mpmath.exp(h) - mpmath.sinh(abs(z)))
    return abs(z) - mpmath.log(mpmath.sinh(h))


def _no_reflection(theta: Any, phi: Any, a: Any, b: Any) -> tuple[Any, Any]:
    slope, slope_phi = laplace.derivatives(theta, phi, a, b)
    return abs(slope), slope_phi


def _open_derivative(theta: Any, phi: Any, a: Any, b: Any) -> tuple[Any, Any]:
    slope, slope_phi = laplace.derivatives(theta, phi, a, b)
    return slope, slope_phi + (b - a) / 2


def _cauchy_mass(p: Any, q: Any) -> Any:
    return (mpmath.atan(q) - mpmath.atan(p)) / mpmath.pi


def _epsilon_free(theta: float) -> Any:
    """U^(q) of Laplace(theta, 1) on (-1, 1], which is convex."""
    t = mpmath.iv.mpf(abs(theta))
    if abs(theta) >= 1:
        return t - mpmath.iv.log((mpmath.iv.exp(1) - mpmath.iv.exp(-1)) / 2)
    return 1 - mpmath.iv.log(mpmath.iv.exp(1) - (mpmath.iv.exp(t) + mpmath.iv.exp(-t)) / 2)


def _inverse_scale_loss(phi: Any) -> Any:
    """Laplace on (-1, 1] in the inverse scale, where it is convex."""
    return -mpmath.iv.log(1 - mpmath.iv.exp(-mpmath.iv.mpf(phi)))


def _reflected(family: str, a: Any, b: Any, theta: Any, phi: Any) -> Any:
    return location_scale.standardised(family, a, b, -theta, phi)


def _cauchy_log(x: Fraction) -> Fraction:
    """Strictly convex away from 0, and not concave at 0."""
    return F(1) / (1 + abs(x)) if abs(x) > F(1, 10) else F(0)


def _sedrakyan(score: Any, weight: Any, floor: Any) -> tuple[Fraction, Fraction]:
    inner = sum(s * w for s, w in zip(score, weight, strict=True))
    return sum(score) / inner**2, 1 / sum(s * w * w for s, w in zip(score, weight, strict=True))


def _signed_sum(prior: Any, cells: Any) -> float:
    return float(sum((a - b) / b for a, b in zip(prior, cells, strict=True)))


def _neighbour_separation(data: Any) -> Fraction:
    return min(b - a for a, b in pairwise(data))


def _harmonic_without_m(psi: list[Fraction]) -> Fraction:
    return 1 / sum(1 / x for x in psi)


def _sum_of_losses(weights: Any, scores: Any) -> Fraction:
    """Inner products themselves in place of their inverses: not convex after the logarithm."""
    return sum(sum(s * w for s, w in zip(a, b, strict=True)) for a, b in zip(weights, scores, strict=True))


def _lost_square(b: float, m: int, scale: float, psi: float) -> float:
    return 4 * b + math.log(4 * m**2 * scale**2 / psi)


def _early(alpha: Fraction, regrets: list[Fraction], steps: int) -> bool:
    """T_alpha as printed: the least T whose regret is small."""
    return any(2 * r <= (t + 1) * alpha for t, r in enumerate(regrets[:steps]))


def _no_epsilon(*args: Any, epsilon: float, **named: Any) -> bounds.QuantileRegret:
    """The regret with the crude sensitivity, which does not fall with epsilon."""
    return bounds.thm_quantile_regret(*args, epsilon=50.0, **named)


def _unsafe_loss(theta: float, phi: float, a: float, b: float) -> float:
    return laplace.printed_float(theta, phi, a, b)


def _one_more_node(steps: int, *, release_total: bool) -> int:
    return math.ceil(math.log2(steps))


MUTANTS: dict[str, list[Any]] = {
    "laplace:check_closed_form": [_wrong_sign, lambda *args: laplace.closed_form(*args) + mpmath.log(2)],
    "laplace:check_derivatives": [_no_reflection, _open_derivative],
    "laplace:check_theta_derivative_bound": [0.99, 1.5],
    "laplace:check_phi_extrema": [lambda a, b: True],
    "laplace:check_phi_derivative_bound": [
        lambda b, s: 4 * b + s,
        lambda b, s: 3 * b + s,
        lambda b, s: b,
        lambda b, s: s,
    ],
    "laplace:check_loss_bound": [
        lambda b, low, high, psi: b / low + math.log(2 * high / psi),
        lambda b, low, high, psi: 2 * b / low + math.log(high / (2 * psi)) - 1,
    ],
    "laplace:check_joint_convexity": [
        lambda u, z: u - sympy.log(sympy.exp(u) + sympy.cosh(z)),
        lambda u, z: u - sympy.log(sympy.exp(2 * u) - sympy.cosh(z)),
    ],
    "laplace:check_floating_point": [_unsafe_loss],
    "laplace:check_sign_flip": [1.0, 2.5],
    "location_scale:check_log_concavity": [
        {**location_scale.LOG_CONCAVE, "Cauchy": True},
        {**location_scale.LOG_CONCAVE, "HalfCauchy": True},
        {**location_scale.LOG_CONCAVE, "Normal": False},
    ],
    "location_scale:check_cauchy_certificate": [(1, 1, 1)],
    "location_scale:check_burridge": [_cauchy_mass],
    "location_scale:check_original_parametrisation": [_inverse_scale_loss],
    "location_scale:check_kink_density": [lambda x: -x * x, _cauchy_log],
    "location_scale:check_narrow_intervals": [lambda x: mpmath.exp(-x * x), lambda x: mpmath.exp(-abs(x))],
    "location_scale:check_half_infinite": [lambda x: -(x**2) / 2],
    "location_scale:check_centred_lower_bound": [(3.0, 1.0), (1.0, 3.0)],
    "location_scale:check_item_two_equality": [location_scale.laplace_mass],
    "location_scale:check_missing_hypothesis": [lambda radius, psi: radius * 1000],
    "location_scale:check_interval_length": [1.01, 2.0],
    "location_scale:check_epsilon_loss": [_epsilon_free],
    "location_scale:check_censored": [_reflected],
    "location_scale:check_log_sum_exp": [lambda *x: sum(x), lambda *x: sympy.log(sum(sympy.exp(-t) for t in x))],
    "location_scale:check_harmonic_mean": [_harmonic_without_m],
    "location_scale:check_tails": [0.5, 2.0],
    "learning:check_node_count": [_one_more_node, lambda steps, *, release_total: steps.bit_length() + 1],
    "learning:check_prefix_noise": [lambda t: max(0, t.bit_length() - 2), lambda t: math.ceil(math.log2(t))],
    "learning:check_gaussian_noise": [
        learning.printed_multiplier,
        lambda eps, delta: learning.corrected_multiplier(eps, delta) * mpmath.mpf("0.7"),
    ],
    "learning:check_printed_noise_range": [6.0, 9.0],
    "learning:check_gaussian_width": [lambda p: math.sqrt(math.log(p)), lambda p: math.sqrt(2 * math.log(p)) * 0.9],
    "learning:check_entropy_strongly_convex": [lambda m: 1.0, lambda m: 2.0 * m],
    "learning:check_dpftrl_regret": [_scaled(bounds.thm_dpftrl, 0.5)],
    "learning:check_noise_index": [lambda gradients, t: sum(gradients[:t])],
    "learning:check_stability": [0.5, 2.0],
    "learning:check_small_epsilon": [_no_epsilon],
    "learning:check_lipschitz": [lambda d, gamma: 0.9 * d / gamma, lambda d, gamma: 2 * d / gamma],
    "learning:check_sedrakyan": [_sedrakyan],
    "learning:check_sensitivity_one": [
        _printed(bounds.lem_refined_sensitivity),
        _scaled(bounds.lem_refined_sensitivity, 0.98),
        _scaled(bounds.lem_refined_sensitivity, math.sqrt(2)),
    ],
    "learning:check_sensitivity_many": [
        _printed(bounds.lem_refined_sensitivity),
        _scaled(bounds.lem_refined_sensitivity, 0.97),
        _scaled(bounds.lem_refined_sensitivity, 1.01),
    ],
    "learning:check_gap_change": [0, 2],
    "learning:check_exponential_constant": [1.26],
    "learning:check_inner_product_convexity": [_sum_of_losses],
    "learning:check_normalisation": [lambda masses, width: [width / len(masses) * x for x in masses]],
    "learning:check_robust_comparator": [lambda gamma, lam: max(gamma - lam, F(0)), lambda gamma, lam: gamma],
    "learning:check_step_size": [learning.printed_factor],
    "learning:check_discretisation": [_signed_sum],
    "learning:check_cell_deviation": [F(1, 10), F(1)],
    "learning:check_edge_interval": [_neighbour_separation],
    "learning:check_settings": [_printed(bounds.cor_quantile_regret)],
    "learning:check_sample_size": [2],
    "learning:check_loss_range": [lambda m: 0.0],
    "learning:check_euclidean_comparison": [0.5, 0.0],
    "learning:check_learning_regret": [
        lambda *args, **named: bounds.thm_quantile_regret(*args, **named)._replace(regret=0.5),
    ],
    "applications:check_units": [_printed(bounds.thm_pubpri)],
    "applications:check_step_size_units": ["paper"],
    "applications:check_floor_ratio": [lambda size, n: F(n + 1, size), lambda size, n: F(2 * n, size)],
    "applications:check_lost_square": [_lost_square],
    "applications:check_separation": [lambda n, psi: n * (n - 1) * psi / 2],
    "applications:check_order_statistics": [applications.least_separation],
    "applications:check_log_integral": [lambda psi: psi * (1 + sympy.log(1 / psi))],
    "applications:check_total_variation": [lambda largest, tv: largest * tv, lambda largest, tv: 4 * largest * tv],
    "applications:check_descent_regret": [_printed(bounds.pubpri_step_sizes)],
    "applications:check_public_fit": [_scaled(bounds.thm_pubpri, 1e-3)],
    "applications:check_sequential_dimension": [_printed(bounds.thm_sequential)],
    "applications:check_dimension_power": [1],
    "applications:check_dropped_one": [partial(applications.simplified, keep_one=False)],
    "applications:check_gradient_norms": [0.5, 2.0],
    "applications:check_last_line": [lambda b, f, scale: 2 * (b * (f + 1) + scale)],
    "applications:check_noise_term": [lambda p, log_term: math.sqrt(p * log_term)],
    "applications:check_budgets": [(F(1), F(1)), (F(1, 4), F(1, 4))],
    "applications:check_data_range": [lambda b, r, s: b + s],
    "applications:check_sequential_run": [_scaled(bounds.thm_sequential, 0.05)],
    "applications:check_expectation": [lambda m, n, eps, loss: math.log(eps * m * n) + loss],
    "applications:check_online_to_batch": [_printed(bounds.thm_o2b), _scaled(bounds.thm_o2b, 0.5)],
    "applications:check_regret_condition": [_early],
}
