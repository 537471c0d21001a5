"""Broken statements and implementations that the checks of Sections 3 and 4.1 and Appendices A, B.1 and D must reject.

Where a check shows that a printed statement is false, its mutant is the corrected statement, which no instance
contradicts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import sympy
import z3
from flint import arb

from pq import bounds
from pq.bounds import (
    cor_cauchy,
    cor_multi_cauchy,
    cor_multiple,
    cor_quantile,
    fibonacci,
    kary_depth,
    lem_empirical_quantiles,
    lem_error,
)
from proofs_checks import compounding, constants, floors
from proofs_checks.exact import gap
from proofs_checks.robustness import paper_multiple
from proofs_checks.tools import absolute, maximum
from proofs_checks.tree_cauchy import paper_multi_cauchy

HALF = Fraction(1, 2)
SLACK_ZERO = [lambda *_: Fraction(0)]


def _closed_count(data: Any, q: Fraction, o: Fraction) -> Fraction:
    """eq:gap with records equal to o counted."""
    return Fraction(abs(data.upto(o) - math.floor(q * data.size)))


def _swap(relation: Callable[[Any, Any], Any], ordered: bool = True) -> Callable[..., z3.BoolRef]:
    def statement(t0: Any, t1: Any, c0: Any, c1: Any) -> z3.BoolRef:
        now = maximum(absolute(c0 - t0), absolute(c1 - t1))
        swapped = maximum(absolute(c1 - t0), absolute(c0 - t1))
        return z3.Implies(z3.And(t0 <= t1, c0 >= c1 if ordered else z3.BoolVal(True)), relation(now, swapped))

    return statement


def _paper_kary_twice(m: int, arity: int) -> arb:
    return compounding.corrected_kary(m, arity) * (arity - 1)


MUTANTS: dict[str, list[Callable[..., Any] | Any]] = {
    "floors:check_gap_definition": [_closed_count, lambda data, q, o: gap(data, q, o) + 1],
    "floors:check_target_interval": [floors.in_printed_interval],
    "floors:check_shuffle": [_swap(lambda a, b: a > b), _swap(lambda a, b: a <= b), _swap(lambda a, b: a >= b, False)],
    "floors:check_shuffle_ties": [lambda low0, high0, low1, high1: high0 >= low1],
    "floors:check_shuffle_steps": [lambda t0, t1, c0, c1: c1 - t1],
    "floors:check_error_unrounded": [lambda: Fraction(-1, 100)],
    "floors:check_error_identity": [lambda t: (t, 1 - t)],
    "floors:check_error_rounded": [lambda: Fraction(0), lambda: Fraction(1), lambda: Fraction(199, 100)],
    "floors:check_error_sharp": [
        lambda q: Fraction(2),
        lambda q: Fraction(1),
        lambda q: 2 - min(q, 1 - q),
        *SLACK_ZERO,
    ],
    "floors:check_error_as_printed": [lem_error],
    "floors:check_right_of_interval": [lambda q, n: math.floor((1 - q) * n)],
    "floors:check_target_composition": [lambda q, lo, hi: 0],
    "single:check_lem_quantile": [
        lambda z, gamma, inner, total: z ** (gamma + 1) * total / inner,
        lambda z, gamma, inner, total: z**gamma / inner,
        lambda z, gamma, inner, total: z ** (2 * gamma) * total / inner,
    ],
    "single:check_lem_quantile_total_mass": [lambda z, gamma, inner, total: z**gamma * total / inner],
    "single:check_psi_monotone": [lambda low, high: low >= high, lambda low, high: low < high],
    "single:check_exponential_moment": [lambda inner, total: 1 / inner, lambda inner, total: total],
    "single:check_sharp_calibration": [lambda q: min(q, 1 - q), lambda q: q],
    "single:check_uniform_bound": [lambda rank: True],
    "single:check_uniform_first_cell": [lambda x, low: min(x[0] - low, min(b - a for a, b in itertools.pairwise(x)))],
    "single:check_cauchy_mass": [lambda t: 2 * t / (1 + t**2), lambda t: t],
    "single:check_cauchy_two_records": [cor_cauchy],
    "single:check_log_pi": [lambda: math.log(2), lambda: 2 * math.log(math.pi)],
    "single:check_uniform_wrong_interval": [lambda n, excess: excess],
    "single:check_tail_rates": [lambda r: r**2, lambda r: sympy.log(1 + r**2)],
    "single:check_log_sum_exp": [lambda m: 0.0],
    "algorithm:check_depth": [
        lambda m, arity: kary_depth(m - 1, arity) if m > 1 else 1,
        lambda m, arity: m.bit_length(),
    ],
    "algorithm:check_largest_child": [lambda m, arity: (m - 1) // arity, lambda m, arity: -(-m // arity)],
    "algorithm:check_binary_budget": [lambda m: (m - 1).bit_length(), lambda m: max((m - 1).bit_length(), 1)],
    "algorithm:check_printed_budget": [lambda m: m.bit_length()],
    "algorithm:check_lem_empirical": [*SLACK_ZERO, lambda relative: lem_error(relative) - 1],
    "algorithm:check_edge_mass": [lambda mu, low, high: {o: m for o, m in mu.items() if low <= o <= high}],
    "algorithm:check_lem_prior_budget": [lambda depth: 1],
    "algorithm:check_sorting": [False],
    "algorithm:check_random_psi": [lambda beta: 1 - (1 - beta) ** 2],
    "algorithm:check_level_split": [lambda levels: levels + 1],
    "algorithm:check_lem_empirical_quantiles": [
        lambda log_psi, epsilon, m, beta: lem_empirical_quantiles(log_psi, epsilon, m, beta, rounded=False),
        lambda log_psi, epsilon, m, beta: lem_empirical_quantiles(log_psi, epsilon, m, beta) / 20,
    ],
    "algorithm:check_empirical_depth": [lem_empirical_quantiles],
    "algorithm:check_printed_privacy": [lambda m: m.bit_length()],
    "compounding:check_binary_recurrence": [lambda k: fibonacci(k + 1) - 1, lambda k: fibonacci(k + 2)],
    "compounding:check_binary_step": [lambda depth: (depth - 1, depth - 3), lambda depth: (depth - 2, depth - 2)],
    "compounding:check_binary_printed": [compounding.corrected_binary],
    "compounding:check_binary": [compounding.golden, lambda k: 2 * compounding.corrected_binary(k)],
    "compounding:check_binary_leading": [lambda: arb(1), lambda: arb("1.17"), lambda: arb("1.18")],
    "compounding:check_binary_floors": [lambda levels: 2 * (fibonacci(levels + 1) - 1)],
    "compounding:check_binary_exact": [
        lambda k: (compounding.golden(k), 0),
        lambda k: (compounding.corrected_binary(k), 0),
    ],
    "compounding:check_kary_recurrence": [lambda k: 6 * 2**k, lambda k: 6 * 2**k - k * k - 4 * k - 5],
    "compounding:check_kary_lerch": [
        lambda k, lerch: arb(2) ** (k - 2) * (1 + lerch),
        lambda k, lerch: arb(2) ** (k - 1) * (2 + lerch),
    ],
    "compounding:check_kary_last_step": [1.0, 1.88],
    "compounding:check_kary_range": [3, 10**6],
    "compounding:check_kary_factor": [Fraction(199, 100)],
    "compounding:check_kary_printed": [compounding.corrected_kary],
    "compounding:check_kary_twice": [_paper_kary_twice],
    "compounding:check_kary_spend": [lambda arity, levels: Fraction(1), lambda arity, levels: Fraction(1, levels)],
    "compounding:check_kary": [
        lambda m, arity: compounding.corrected_kary(m, arity) / 2,
        lambda m, arity: 2 * compounding.corrected_kary(m, arity),
    ],
    "constants:check_c_p_formula": [lambda p: constants.c_p(p) / 2],
    "constants:check_c_p_minimum": [lambda: ("8.42", "1.6"), lambda: ("16.8349006227923489", "1.6")],
    "constants:check_c_p_prose": [lambda minimum: minimum],
    "constants:check_c_p_experiments": [lambda: arb("0.01")],
    "constants:check_nine_log_cubed": [Fraction(5)],
    "constants:check_nine_with_constant": [lambda m: constants.rate(arb(m))],
    "constants:check_log_squared_shape": [(Fraction(1), Fraction(4)), (Fraction(78, 100), Fraction(3))],
    "constants:check_sub_polynomial": [lambda t: t / 2, sympy.log],
    "constants:check_golden_exponent": [lambda: arb("0.7")],
    "constants:check_naive_baseline": [lambda k: arb(k), lambda k: arb(2) ** k],
    "constants:check_naive_growth": [lambda m: 3 * m * math.log(m)],
    "constants:check_kary_against_naive": [lambda m: arb(m)],
    "constants:check_binary_against_kary": [1, 8],
    "tree_cauchy:check_multi_cauchy_printed": [cor_multi_cauchy],
    "tree_cauchy:check_multi_cauchy_cells": [lambda z: arb(1)],
    "tree_cauchy:check_multi_cauchy": [paper_multi_cauchy],
    "tree_cauchy:check_half_cauchy": [lambda mass: mass],
    "privacy_facts:check_exponential_mechanism": [Fraction(1)],
    "privacy_facts:check_normalisable": [lambda total: True],
    "privacy_facts:check_sensitivity": [lambda adjacency: 0, lambda adjacency: 1 if adjacency == "replace" else 0],
    "privacy_facts:check_sensitivity_sharp": [lambda q: 1 - q, lambda q: z3.RealVal("1/2")],
    "privacy_facts:check_tree_privacy": [lambda levels: Fraction(1)],
    "privacy_facts:check_kary_privacy": [(2, 2), (1, 8)],
    "privacy_facts:check_restricted_utility": [True],
    "privacy_facts:check_replaced_record": [Fraction(1), Fraction(2)],
    "privacy_facts:check_replace_calibration": [(2, 2), (4, 1)],
    "privacy_facts:check_bounded_range": [Fraction(1)],
    "privacy_facts:check_bounded_range_zcdp": [Fraction(1, 10), Fraction(1, 12)],
    "privacy_facts:check_neighbouring": [lambda adjacency: 1.0],
    "sharper:check_cauchy_schwarz": [lambda power: 0],
    "sharper:check_binary_shares": [
        lambda d: [1 / d] * d,
        lambda d: bounds.kary_shares(d),
        lambda d: bounds.binary_shares(d)[::-1],
    ],
    "sharper:check_kary_shares": [
        lambda d: [1 / d] * d,
        lambda d: bounds.kary_shares(d)[::-1],
        lambda d: [2.0**-k for k in range(d)],
    ],
    "sharper:check_best_arity": [compounding.least_arity, lambda m: 2],
    "sharper:check_dyadic_recurrence": [lambda d: float(d), lambda d: 2 * d / 3],
    "sharper:check_dyadic_sharp": [lambda d: 2 * d / 3, lambda d: float(d)],
    "robustness:check_linear": [lambda mu, rho, weight: mu, lambda mu, rho, weight: rho],
    "robustness:check_cor_quantile": [
        lambda log_psi, epsilon, beta, weight: cor_quantile(log_psi, epsilon, beta, 1 - weight),
        lambda log_psi, epsilon, beta, weight: (cor_quantile(log_psi, epsilon, beta, weight)[0] / 2, math.inf),
    ],
    "robustness:check_consistency_total_mass": [lambda total: math.log(total)],
    "robustness:check_price_of_robustness": [lambda weight: -math.log(1 - weight)],
    "robustness:check_consistency_zero": [lambda m: math.log(m)],
    "robustness:check_multiple_printed": [cor_multiple],
    "robustness:check_multiple_single": [cor_multiple],
    "robustness:check_multiple_constant": [lambda m: compounding.corrected_binary(m.bit_length())],
    "robustness:check_multiple": [paper_multiple],
    "robustness:check_expected_gap": [lambda log_psi, epsilon: -log_psi / epsilon],
    "robustness:check_expectation_bound": [lambda log_psi, epsilon, m, n: -log_psi / epsilon],
    "robustness:check_expectation_route": [lambda log_psi, epsilon, m, n: -log_psi / epsilon],
    "robustness:check_expectation_small": [lambda log_emn, u: max(log_emn, 1.0) + u],
    "robustness:check_failure_is_one_event": [lambda beta: -beta],
}
