"""Bounds that are better than the paper's: what they refuse, where they stand beside the paper's, and their limits."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from pq import bounds

NOISE: dict[str, Any] = {"sensitivity": 1.0, "gaussian_width": 1.0, "noise": 0.5, "beta": 0.1}
BOX: dict[str, Any] = {"quantiles": 3, "data_bound": 1.0, "scale_min": 0.1, "scale_max": 2.0}


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: bounds.moment_gap(0.1, 1.0, 0.1), "log_psi"),
        (lambda: bounds.moment_gap(-1.0, 0.0, 0.1), "epsilon"),
        (lambda: bounds.moment_consistency(1.0, 0.1, 1.5), "weight"),
        (lambda: bounds.dpftrl_half(0, regularizer_range=1.0, lipschitz=1.0, **NOISE), "steps"),
        (lambda: bounds.o2b_one_step(10, regret=1.0, loss_range=1.0, beta=1.0), "beta"),
        (lambda: bounds.loss_difference(1.0, 2.0, 1.0), "scale_max"),
        (lambda: bounds.pubpri_difference(5, 10, total_variation=0.0, beta=0.1, **BOX), "public_size"),
        (lambda: bounds.lipschitz_discretisation(10, 2, 0.0, lipschitz=1.0, width=1.0, separation=1.0), "robustness"),
        (lambda: bounds.lipschitz_cells(10, noise_factor=1.0, lipschitz=0.0, width=1.0, separation=1.0), "lipschitz"),
        (lambda: bounds.lem_error(Fraction(1, 2), edge="top"), "edge"),  # type: ignore[arg-type]
    ],
)
def test_bad_arguments_are_named(call: Any, argument: str) -> None:
    with pytest.raises(ValueError, match=argument):
        call()


def test_none_is_above_what_it_sharpens() -> None:
    for log_psi in (0.0, -1e-9, -1.0, -1000.0):
        for beta in (0.5, 1e-6):
            assert 0 <= bounds.moment_gap(log_psi, 1.0, beta) <= bounds.lem_quantile(log_psi, 1.0, beta)
    assert bounds.moment_consistency(1.0, 0.1, 1.0) == math.inf
    known = {"regularizer_range": 2.0, "lipschitz": 3.0, **NOISE}
    assert bounds.dpftrl_half(100, **known) < bounds.thm_dpftrl(100, **known)
    assert bounds.o2b_one_step(9, regret=1.0, loss_range=1.0, beta=0.1) < bounds.thm_o2b(
        9, regret=1.0, loss_range=1.0, beta=0.1
    )
    shared: dict[str, Any] = {"total_variation": 0.1, "beta": 0.1, **BOX}
    assert bounds.pubpri_difference(1000, 10, **shared) < bounds.thm_pubpri(1000, 10, density_bound=1.0, **shared)


def test_roundings_are_the_recurrences() -> None:
    ranks, halves = [0, 1], [0.0, 0.5]
    for _ in range(20):
        ranks.append(2 + ranks[-1] + ranks[-2])
        halves.append(1 + (halves[-1] + halves[-2]) / 2)
    assert [bounds.binary_rounding(k) for k in range(1, 23)] == ranks
    assert [bounds.dyadic_rounding(k) for k in range(1, 23)] == halves


def test_dyadic_conditional_is_the_recurrence_at_every_depth_budget_and_beta() -> None:
    errors, ranks = [Fraction(0), Fraction(1)], [Fraction(0), Fraction(0), Fraction(1, 2)]
    for depth in range(1, 70):
        m, share = 2**depth - 1, depth * errors[depth]
        for log_psi, epsilon, beta in ((-1.0, 1.0, 0.5), (-0.1, 0.02, 0.05), (-50.0, 7.0, 1e-9)):
            found = bounds.dyadic_conditional(log_psi, epsilon, m, beta)
            rest = bounds.dyadic_conditional(log_psi, epsilon, m, beta, rounded=False)
            wanted = float(2 * share / Fraction(epsilon)) * (math.log(m) - math.log(beta) - log_psi)
            assert (rest, found) == pytest.approx((wanted, wanted + float(ranks[depth])), rel=1e-12)
            assert rest <= bounds.lem_empirical_quantiles(log_psi, epsilon, m, beta, rounded=False) * (1 + 1e-12)
            assert m > 1 or found == pytest.approx(bounds.lem_quantile(log_psi, epsilon, beta), rel=1e-12)
        errors.append(1 + (errors[-1] + errors[-2]) / 2)
        ranks.append(1 + (ranks[-1] + ranks[-2]) / 2)
    with pytest.raises(ValueError, match="m must be a power of two minus one"):
        bounds.dyadic_conditional(-1.0, 1.0, 5, 0.5)


def test_the_slack_at_an_end_is_smaller() -> None:
    for p, r in ((1, 2), (1, 3), (2, 3), (3, 8), (7, 8)):
        relative = Fraction(p, r)
        left, right = (bounds.lem_error(relative, edge=edge) for edge in ("left", "right"))
        assert left + right == bounds.lem_error(relative) + 1 - Fraction(2, r)
        assert max(left, right) < bounds.lem_error(relative)
