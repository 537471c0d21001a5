"""Ours: the exponential moment of the gap says more than its tail: a bound that falls to 0 with the prior's error."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import sympy
import z3

from pq.bounds import lem_quantile, moment_gap
from proofs_checks.engine.registry import check
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.cases import one_quantile_cases
from proofs_checks.tools.exact import Grid, Restricted, gap, log_ball, mechanism, psi
from proofs_checks.tools.solver import prove

F = Fraction
HALF = F(1, 2)
WHOLE = (-math.inf, math.inf)


def moment_factor(inverse: Any, beta: Any) -> Any:
    """exp(epsilon gap / 2) that is exceeded with probability at most beta: 1 + (1/Psi - 1)/beta."""
    return 1 + (inverse - 1) / beta


@check(
    "ours:moment-gap",
    rejects=[
        lambda inverse, beta: 1 + F(99, 100) * (inverse - 1) / beta,
        lambda inverse, beta: 1 + F(101, 100) * (inverse - 1) / beta,
        lambda inverse, beta: inverse / beta,
        lambda inverse, beta: 1 + (inverse - 1 - beta) / beta,
    ],
)
def check_moment_exact(subject: Callable[[Fraction, Fraction], Fraction] = moment_factor) -> str:
    """Pr{exp(eps Gap/2) >= 1 + (1/Psi - 1)/beta} <= beta, in fractions; every prior on two cells, one of them right,
    attains it."""
    cases = 0
    for data, q, prior, z in one_quantile_cases():
        total = sum(prior.values())
        one = {o: mass / total for o, mass in prior.items()}
        law, inverse = mechanism(Restricted(data, *WHOLE), q, one, z), 1 / psi(data, q, one, z)
        for o in law:
            beta = sum(p for v, p in law.items() if gap(data, q, v) >= gap(data, q, o))
            for at in (beta, beta * F(999, 1000), min(beta * 2, F(1))):
                limit = subject(inverse, at)
                failed = sum(p for v, p in law.items() if (1 / z) ** int(gap(data, q, v)) > limit)
                assert failed <= at, (data, q, z)
                cases += 1
    for wrong, far in ((F(1, 10**6), 1), (F(1, 3), 4), (F(99, 100), 9)):
        prior = {HALF: 1 - wrong, far + HALF: wrong}
        law = mechanism(Restricted(Grid(9), *WHOLE), F(1, 20), prior, F(1, 3))
        limit = subject(1 / psi(Grid(9), F(1, 20), prior, F(1, 3)), law[far + HALF])
        assert limit == F(3) ** far, "attained exactly: nothing smaller is true, nothing larger needed"
    return f"Gap <= (2/eps) log(1 + (1/Psi - 1)/beta) w.p. 1 - beta: {cases} exact cases, attained on two cells"


@check(
    "ours:moment-gap",
    rejects=[lambda mean, beta, above: mean >= 2 * beta * above, lambda mean, beta, above: mean > beta * above],
)
def check_moment_proof(
    subject: Callable[..., z3.BoolRef] = lambda mean, beta, above: mean >= beta * above,
) -> str:
    """Markov for X = exp(eps Gap/2) - 1 >= 0, whose mean is 1/Psi - 1 (z3), and never above lem:quantile; attained by
    every prior on two cells (sympy)."""
    beta, above, low, rest = z3.Reals("beta above low rest")  # X is at least `above` with probability beta
    inside = z3.And(beta >= 0, beta <= 1, above >= 0, low >= above, rest >= 0)
    prove(z3.Implies(inside, subject(low * beta + rest * (1 - beta), beta, above)), "Markov")
    s, b = sympy.symbols("s b", positive=True)  # 1/Psi and beta
    assert sympy.simplify(s / b - (1 + (s - 1) / b) - (1 - b) / b) == 0  # not negative for beta <= 1
    wrong, score = sympy.symbols("wrong score", positive=True)  # the mass of the wrong cell, and exp(-eps Gap/2) there
    inner = 1 - wrong + wrong * score
    beta_of = wrong * score / inner  # its probability
    assert sympy.simplify(moment_factor(1 / inner, beta_of) - 1 / score) == 0, "every prior on two cells attains it"
    return "Markov for exp(eps Gap/2) - 1, which is not negative (z3); below lem:quantile by (1 - beta)/beta inside"


@check(
    "ours:moment-gap",
    code=moment_gap,
    rejects=[scaled(moment_gap, 0.99), scaled(moment_gap, 1.01), lem_quantile],
)
def check_moment_in_package(subject: Callable[[float, float, float], float] = moment_gap) -> str:
    """The package's formula is the logarithm of the exact factor, from nearly right priors to hopeless ones."""
    cases = [(F(1), F(1, 20)), (1 - F(1, 10**12), F(1, 20)), (F(1, 3), HALF), (F(1, 10**400), F(1, 9))]
    cases += [(F(1, 3), F(19, 20)), (F(1, 3), F(1)), (F(1, 3), F(1, 10**30))]
    for (inner, beta), epsilon in itertools.product(cases, (0.01, 1.0, 50.0)):
        exact = 2 / epsilon * float(log_ball(moment_factor(1 / inner, beta)))
        log_psi = float(log_ball(inner)) if inner < HALF else math.log1p(-float(1 - inner))
        found = subject(log_psi, epsilon, float(beta))
        assert math.isclose(found, exact, rel_tol=1e-9, abs_tol=1e-300), (inner, beta, epsilon, found, exact)
    for beta in (0.5, 0.01):
        assert subject(0.0, 1.0, beta) == 0 and math.isclose(lem_quantile(0.0, 1.0, beta), -2 * math.log(beta)), beta
    return "moment_gap: the exact factor's logarithm for Psi from 1 to 10^-400, 0 for a perfect prior"
