"""The harmonic mean of the inner products as log-sum-exp of the losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from flint import arb

from proofs_checks.engine.registry import check
from proofs_checks.tools.exact import log_ball

F = Fraction
HALF = Fraction(1, 2)


@check("text:log-sum-exp", rejects=[lambda m: 0.0])
def check_log_sum_exp(subject: Callable[[int], float] = math.log) -> str:
    """-log of the harmonic mean is the log-sum-exp of the U less log m."""
    for psis in ([HALF], [HALF, HALF], [Fraction(1, 3), Fraction(1, 7), Fraction(1)]):
        m = len(psis)
        harmonic = m / sum(1 / value for value in psis)
        left, right = -log_ball(harmonic), log_ball(sum((1 / value for value in psis), Fraction(0))) - arb(subject(m))
        assert abs(float(left) - float(right)) < 1e-12, (psis, float(left), float(right))
    return (
        "-log of the harmonic mean = log sum exp(U_i) - log m; the printed equality forgets log m (m = 2, Psi "
        "= 1/2: log 2, not log 4)"
    )


def _harmonic_without_m(psi: list[Fraction]) -> Fraction:
    return 1 / sum(1 / x for x in psi)


@check("text:log-sum-exp", rejects=[_harmonic_without_m])
def check_harmonic_mean(subject: Callable[[list[F]], F] = lambda psi: F(len(psi)) / sum(1 / x for x in psi)) -> str:
    """log sum exp(U_i) is not minus the log of the harmonic mean: they differ by log m, exactly."""
    for psi in ([F(1)] * 9, [F(1, 2), F(1, 3)], [F(1, 7)]):
        ratio = sum(1 / x for x in psi) * subject(psi)
        assert ratio == len(psi), "exp(U) times the harmonic mean is m"
    return "log sum exp(U_i) = -log(harmonic mean) + log m; perfect priors give 0 by one and log m by the other"
