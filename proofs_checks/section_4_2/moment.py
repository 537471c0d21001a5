"""Ours: a perfect prediction with a small weight on a trusted prior has a gap that falls to 0 with that weight."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import z3

from pq.bounds import cor_quantile, moment_consistency
from proofs_checks.engine.registry import check
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.cases import mix, one_quantile_cases
from proofs_checks.tools.exact import Grid, Restricted, gap, mechanism, psi
from proofs_checks.tools.solver import follows

F = Fraction
HALF = F(1, 2)
WHOLE = (-math.inf, math.inf)


@check(
    "ours:moment-consistency",
    code=moment_consistency,
    rejects=[
        scaled(moment_consistency, 0.99),
        scaled(moment_consistency, 1.01),
        lambda epsilon, beta, weight: cor_quantile(0.0, epsilon, beta, weight)[1],
        lambda epsilon, beta, weight: moment_consistency(epsilon, beta, weight / 2),
    ],
)
def check_moment_consistency(subject: Callable[[float, float, float], float] = moment_consistency) -> str:
    """Exact failure of (1 - lambda) perfect + lambda trusted at most beta; nearly attained by a hopeless rho."""
    cases = 0
    for (data, q, rho, z), weight, beta, part in itertools.product(
        one_quantile_cases(), (F(1, 1000), F(1, 10), HALF), (F(1, 20), HALF), (F(1), F(1, 3))
    ):
        trusted = {o: part * mass / sum(rho.values()) for o, mass in rho.items()}
        perfect = {math.floor(q * data.size) + HALF: F(1)}
        assert psi(data, q, mix(perfect, trusted, weight), z) >= 1 - weight, "as the row says"
        law = mechanism(Restricted(data, *WHOLE), q, mix(perfect, trusted, weight), z)
        limit = subject(-2 * math.log(z), float(beta), float(weight))
        assert sum(p for o, p in law.items() if gap(data, q, o) > limit * (1 + 1e-12)) <= beta, (data, q, weight)
        cases += 1
    for weight, far in ((F(1, 1000), 8), (F(1, 10), 12)):  # everything trusted lies far away, and Psi is 1 - lambda
        z = F(1, 9)
        prior = {HALF: 1 - weight, far + HALF: weight}
        law = mechanism(Restricted(Grid(far), *WHOLE), F(1, 99), prior, z)
        limit = subject(-2 * math.log(z), float(law[far + HALF]), float(weight))
        assert math.isclose(limit, far, rel_tol=1e-6), (limit, far)
    assert subject(1.0, 0.05, 0.0) == 0.0
    # in general: all scores of rank k or more add to at most lambda z^k, beside 1 - lambda on the optimal cell, and z^k
    # is below the reciprocal of 1 + lambda/(beta (1 - lambda)) where k is above the bound
    lam, beta, power, far = z3.Reals("lambda beta power far")
    known = (lam >= 0, lam < 1, beta > 0, beta < 1, far >= 0, far <= lam * power)
    beyond = power * (beta * (1 - lam) + lam) <= beta * (1 - lam)
    follows(*known, beyond, goal=far <= beta * (1 - lam + far))
    for mass, above in ((F(1, 2), False), (F(1), False), (F(2), True)):  # of a trusted prior that lies 40 ranks away
        prior, z = {HALF: HALF, 40 + HALF: mass / 2}, F(9, 10)
        chance = mechanism(Restricted(Grid(40), *WHOLE), F(1, 99), prior, z)[40 + HALF]
        assert (subject(-2 * math.log(z), float(chance), 0.5) < 40) == above, f"mass {mass}"
    return (
        f"consistency (2/eps) log(1 + lambda/(beta(1 - lambda))): {cases} exact cases, nearly attained, 0 at lambda = 0"
    )
