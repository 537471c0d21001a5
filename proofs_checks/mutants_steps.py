"""Broken statements that the checks of proof steps, of the text's sentences and of private learning must reject.

Where the paper's own statement is false it is among the mutants: that the check rejects it is the counterexample.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import sympy
from flint import arb

import pq
from pq.bounds import c_p, lem_empirical_quantiles, thm_binary
from pq.core.bounds import learning as bounds
from proofs_checks import certified, online_steps, private_learning, public_steps, remarks, unsaid
from proofs_checks.compounding import golden
from proofs_checks.exact import Algorithm, Grid, log_ball

F = Fraction


def _uniform_in_cell(density: Any, cell: tuple[Fraction, Fraction], part: tuple[Fraction, Fraction]) -> Fraction:
    """Place in the cell by length, not by the prior."""
    return (part[1] - part[0]) / (cell[1] - cell[0])


def _original(data: Grid, algorithm: Algorithm) -> set[Fraction]:
    """m over the harmonic mean with the original priors, which no run changes."""
    return {algorithm.inverse_psi_sum(data)}


def _wrong_half(density: Any, cell: Any, part: Any) -> Fraction:
    """All of the cell's mass in every part."""
    return F(1)


def _one_loss(laws: Any, mine: Any, best: Any) -> Fraction:
    """The integrals with one of the two losses."""
    return sum(
        (u * abs(p - r) for one, two in pairwise(laws) for u, p, r in zip(best, one, two, strict=True)),
        F(0),
    )


def _cauchy_like(x: Any) -> Any:
    """A function of location and scale whose level sets are not convex: two bumps."""
    return max(1 / (1 + (x[0] - 3) ** 2), 1 / (1 + (x[0] + 3) ** 2))


def _clip_and_scale(gradient: np.ndarray, eta: float, m: int, floor: float) -> np.ndarray:
    """The floor first, then the scale."""
    point = np.maximum(private_learning.plain(gradient, eta, m, floor), floor)
    return point / point.sum()


def _without_m(gradient: np.ndarray, eta: float, m: int, floor: float) -> np.ndarray:
    """The rate eta, not eta/m."""
    return private_learning.floored(gradient, eta, 1, floor)


def _one_lipschitz(epsilon: Any, delta: Any) -> Any:
    """The noise in the printed regret: sensitivity of one Lipschitz constant."""
    return private_learning.printed_runs(epsilon, delta) / 2


def _printed(function: Callable[..., Any]) -> Callable[..., Any]:
    return partial(function, version="paper")


def _slower(steps: int, **named: Any) -> float:
    """An average regret that does not fall like 1/sqrt(T)."""
    return bounds.thm_sequential(steps, **named) * steps**0.25


def _slightly_slower(steps: int, **named: Any) -> float:
    return bounds.thm_sequential(steps, **named) * steps**0.02


def _faster(steps: int, **named: Any) -> float:
    return bounds.thm_sequential(steps, **named) / steps**0.04


MUTANTS: dict[str, list[Any]] = {
    "private_learning:check_regret_privacy": [F(1), F(8, 5), F(9, 4)],
    "private_learning:check_sequential_privacy": [private_learning.printed_runs, _one_lipschitz],
    "private_learning:check_joint_runs": [F(4), F(5, 2)],
    "private_learning:check_regulariser_range": [
        lambda m, d: m * np.log(d),
        lambda m, d: m * m * np.log(d) + 1,
    ],
    "private_learning:check_exponentiated_gradient": [private_learning.plain, _clip_and_scale, _without_m],
    "private_learning:check_gradient_bounded": [lambda d, z, n: F(d), lambda d, z, n: 3 * d / z**n],
    "private_learning:check_printed_regret": [_printed(bounds.thm_quantile_regret)],
    "private_learning:check_sample_units": [private_learning.printed_bracket],
    "private_learning:check_centred_range": [
        lambda d, gamma: np.log(d),
        lambda d, gamma: 2 * np.log(d / gamma),
    ],
    "private_learning:check_rates_in_steps": [lambda lipschitz, robust: not robust, lambda lipschitz, robust: True],
    "private_learning:check_two_steps": [lambda a, b, c, d: a * c + b * d + a * d, lambda a, b, c, d: 2 * b * d],
    "private_learning:check_average_rate": [_slower, _slightly_slower, _faster],
    "private_learning:check_discretisation_width": [lambda data: True],
    "public_steps:check_second_integral": [1, 0],
    "public_steps:check_many_losses": [
        lambda m, reach, scale, psi: public_steps.loss_limit(1, reach, scale, psi),
        lambda m, reach, scale, psi: public_steps.loss_limit(m, reach / 4, scale, psi),
    ],
    "public_steps:check_decomposition": [_one_loss, lambda laws, mine, best: F(0)],
    "public_steps:check_rejection": [lambda p, steps: p, lambda p, steps: p**steps],
    "public_steps:check_variation": [lambda part, whole: part == whole, lambda part, whole: part > whole],
    "public_steps:check_parameter_box": [lambda true, box: abs(true - box) < 1e-9, lambda true, box: true < box],
    "public_steps:check_hedging": [lambda weight, psi: psi, lambda weight, psi: (1 - weight) * psi],
    "public_steps:check_proxy_privacy": [public_steps.after_data],
    "public_steps:check_composed_days": [1, 3],
    "public_steps:check_optimal_interval_only": [
        lambda x, q, prior: pq.log_psi(x, q, prior, 1.0),
        lambda x, q, prior: pq.log_psi(x, q / 2, prior),
        lambda x, q, prior: 0.0,
    ],
    "prose:check_two_step_sampling": [_uniform_in_cell, _wrong_half],
    "prose:check_perfect_prediction": [lambda z: 1 - z, lambda z: 1 / (1 + z)],
    "prose:check_ties_one": [
        lambda z, gamma, inner, total: z ** (gamma + 1) * total / inner,
        lambda z, gamma, inner, total: z ** (2 * gamma) * total / inner,
    ],
    "prose:check_ties_many": [
        (lambda *named: thm_binary(*named) / 100, lem_empirical_quantiles),
        (thm_binary, lambda *named: lem_empirical_quantiles(*named) / 100),
    ],
    "prose:check_order_statistic_prior": [lambda n, k: n - k, lambda n, k: k],
    "prose:check_range_of_uniform": [lambda right, high: True, lambda right, high: right > high],
    "prose:check_right_probability": [lambda p: p, lambda p: F(1, 2)],
    "prose:check_restricted_linearity": ["conditional"],
    "prose:check_level_sets": [_cauchy_like],
    "prose:check_random_metric": [_original],
    "prose:check_outside_mass": ["edge"],
    "prose:check_edge_total": [lambda total: log_ball(total)],
    "figures:check_first_figure": [("edge", "original"), ("conditional", "original")],
    "figures:check_conditional_better": [("conditional", "edge")],
    "figures:check_adult": ["pubfit", "uniform"],
    "figures:check_adult_large": [("adult_age", "adult_hours"), ()],
    "figures:check_shift": ["public_quantiles", "pubfit"],
    "figures:check_shift_least": [lambda film: 0.0],
    "unsaid:check_kary_rounding": [lambda depth: 0],
    "unsaid:check_loss_range": [unsaid.without_ends],
    "unsaid:check_modulus": [lambda modulus: 1],
    "unsaid:check_convex_losses": [-1],
    "unsaid:check_end_ranks": [
        lambda reach, scale, width: reach + math.log(2 * scale / width),
        lambda reach, scale, width: reach + math.log(2),
    ],
    "unsaid:check_failure_probability": [0.0],
    "unsaid:check_worse_in_m": [lambda k: arb(k), lambda k: golden(k) / 2],
    "unsaid:check_update_tells": [-1, 2],
    "unsaid:check_large_budgets": [lambda logs, budget: math.sqrt(logs) / budget],
    "unsaid:check_recursion_edges": [lambda own, listed: listed[0]],
    "unsaid:check_phi_magnitude": [lambda value, limit: value == limit, lambda value, limit: 2 * value >= limit],
    "unsaid:check_edge_records": [lambda data, low: True, lambda data, low: False],
    "figures:check_pages": [(0.5, 0.0), (0.5, 1.0)],
    "figures:check_heavy_tails": ["prev_plain", "dp", "uniform"],
    "figures:check_ratings": ["public_cauchy", "half_cauchy"],
    "figures:check_stationary": ["uniform"],
    "figures:check_over_time": [
        ("prev_plain", "prox", "prev_plain"),
        ("prev", "cauchy", "prev_plain"),
        ("prev", "prox", "prev"),
    ],
    "figures:check_mixing": [lambda method: method, lambda method: "uniform"],
    "figures:check_by_budget": ["prev", "cauchy", "dp"],
    "figures:check_improvement": [("uniform",), ("prev", "dp"), ("open", "dp")],
    "figures:check_headlines": ["prev", "cauchy"],
    "online_steps:check_online_descent": [0.05, 5.0],
    "online_steps:check_concentration": [0.6, 0.0],
    "online_steps:check_ratios": [lambda m: 1, lambda m: F(1, 2)],
    "online_steps:check_step_cost": [lambda steps: steps.bit_length() - 1, lambda steps: steps],
    "online_steps:check_normal_loss": [online_steps.printed_normal],
    "steps:check_restricted_inner": [lambda relative: F(0), lambda relative: F(1, 2)],
    "certified:check_noise": [certified.printed_noise],
    "certified:check_sequential_step": [certified.printed_step, certified.simplified_step],
    "certified:check_range": [lambda b, radius, scale: b + scale],
    "certified:check_fit": [certified.PRINTED, certified.MIXED],
    "certified:check_narrow": [1],
    "certified:check_settings": [certified.printed_cells],
    "steps:check_tail_proof": [
        lambda z, power, mass, limit: power * mass <= z * limit * mass,
        lambda z, power, mass, limit: power <= limit * mass,
    ],
    "steps:check_mechanism_proof": [1],
    "steps:check_psi_proof": [lambda first, second: first >= second, lambda first, second: first < second],
    "steps:check_root_error": [lambda n, rank, edge: abs((n if edge > 0 else 0) - rank) + 1, lambda n, rank, edge: n],
    "steps:check_error_left": [0],
    "steps:check_binary_display": [lambda k: golden(k + 1) / arb(5).sqrt()],
    "steps:check_kary_edges": [lambda depth: depth - 2, lambda depth: 1],
    "steps:check_kary_display": [lambda p: 1.01 * c_p(p), lambda p: 0.99 * c_p(p), lambda p: 2 * math.pi**2],
    "steps:check_depth_budgets": [lambda p: 1, lambda p: {1.5: 5, 1.6: 6, 2.0: 8}[p]],
    "steps:check_days": [(date(2015, 9, 1), date(2022, 7, 5)), (date(2015, 1, 1), date(2022, 11, 30))],
    "steps:check_noiseless": [1, 3],
    "remarks:check_uniform_is_aq": ["edge"],
    "remarks:check_tree_beats_naive": [5, 26],
    "remarks:check_out_of_order": [2],
    "remarks:check_depth_induction": [lambda k: (k + 1) / 2, lambda k: 2 * k],
    "remarks:check_second_display": [remarks.printed_signs],
    "remarks:check_small_shares": [lambda days: 2, lambda days: days],
    "remarks:check_convexity_gap": [
        lambda lam, u, v: lam * u - (1 - lam) * sympy.log(v),
        lambda lam, u, v: lam * u - (1 - lam) * v,
    ],
    "remarks:check_width_of_product": [lambda m, d: 2 * np.sqrt(np.log(d)), lambda m, d: np.sqrt(np.log(m * d))],
    "remarks:check_euclidean_case": [(F(1, 2), 2), (1, 1)],
}
