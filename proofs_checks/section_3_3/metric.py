"""The harmonic mean of the inner products as log-sum-exp of the losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import sympy
from flint import arb

import pq
from pq.truth.evaluate import log_psi_harmonic
from proofs_checks.engine.registry import check
from proofs_checks.tools.exact import log_ball

F = Fraction
HALF = Fraction(1, 2)


@check("text:log-sum-exp", "def:consistency", rejects=[lambda m: 0.0, lambda m: 1.01 * math.log(m)])
def check_log_sum_exp(subject: Callable[[int], float] = math.log) -> str:
    """-log of the harmonic mean is the log-sum-exp of the U less log m."""
    for psis in ([HALF], [HALF, HALF], [Fraction(1, 3), Fraction(1, 7), Fraction(1)]):
        m = len(psis)
        harmonic = m / sum(1 / value for value in psis)
        left, right = -log_ball(harmonic), log_ball(sum((1 / value for value in psis), Fraction(0))) - arb(subject(m))
        assert abs(float(left) - float(right)) < 1e-12, (psis, float(left), float(right))
    for m in range(1, 7):  # whatever the inner products are: the harmonic mean is m over the sum, to be taken from it
        some = sympy.symbols(f"psi:{m}", positive=True)
        shift = sympy.log(sum(1 / value for value in some)) + sympy.log(m / sum(1 / value for value in some))
        assert abs(float(sympy.simplify(sympy.expand_log(shift))) - subject(m)) < 1e-12, m
    for psis, mean, total in (([HALF] * 2, F(2), F(4)), ([F(1)] * 9, F(1), F(9))):  # as the row says: logs of these
        assert sum((1 / value for value in psis), F(0)) == total == len(psis) * mean
        assert abs(float(log_ball(mean) - log_ball(total) + arb(subject(len(psis))))) < 1e-12, psis
    return (
        "-log of the harmonic mean = log sum exp(U_i) - log m; the printed equality forgets log m (m = 2, Psi "
        "= 1/2: log 2, not log 4)"
    )


def _harmonic_without_m(psi: list[Fraction]) -> Fraction:
    return 1 / sum(1 / x for x in psi)


@check("text:log-sum-exp", code=log_psi_harmonic, rejects=[_harmonic_without_m, lambda psi: sum(psi) / len(psi)])
def check_harmonic_mean(subject: Callable[[list[F]], F] = lambda psi: F(len(psi)) / sum(1 / x for x in psi)) -> str:
    """The metric of m quantiles is the harmonic mean of their inner products, log m above minus the log-sum-exp."""
    data = [F(1), F(2), F(4), F(8)]
    for levels, ends in (((F(1, 4), F(1, 2)), (0, 8)), ((F(1, 4), F(1, 2), F(3, 4)), (1, 5)), ((F(1, 2),), (2, 9))):
        optimal = [(data[math.floor(q * 4) - 1], data[math.floor(q * 4)]) for q in levels]
        cells = [(min(b, F(ends[1])) - max(a, F(ends[0]))) / (ends[1] - ends[0]) for a, b in optimal]
        found = log_psi_harmonic([float(x) for x in data], levels, pq.Uniform(*ends))
        assert math.isclose(math.exp(found), subject(cells), rel_tol=1e-12), (levels, ends)
        total = math.log(sum(1 / cell for cell in cells))
        assert math.isclose(total, math.log(len(cells)) - found), "log-sum-exp of the losses"
    return "log sum exp(U_i) = -log(harmonic mean) + log m; perfect priors give 0 by one and log m by the other"
