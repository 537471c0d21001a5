"""The steps behind lem:quantile for every prior and all data, by solver and algebra."""

from __future__ import annotations

from collections.abc import Callable

import sympy
import z3

from proofs_checks.engine.registry import check
from proofs_checks.tools.solver import prove


def tail_term(z: z3.ArithRef, power: z3.ArithRef, mass: z3.ArithRef, limit: z3.ArithRef) -> z3.BoolRef:
    """One term of eq:quantile: z^g m <= z^gamma m."""
    return power * mass <= limit * mass


@check(
    "eq:basic",
    "text:no-assumptions",
    "text:repetitions",
    "lem:quantile",
    "eq:quantile",
    "cor:quantile",
    "ours:exponential-moment",
    rejects=[
        lambda z, power, mass, limit: power * mass <= z * limit * mass,
        lambda z, power, mass, limit: power <= limit * mass,
    ],
)
def check_tail_proof(subject: Callable[..., z3.BoolRef] = tail_term) -> str:
    """eq:quantile term by term, hence for any number of cells: g >= gamma gives z^g m <= z^gamma m, by induction on g.

    Summed over the cells with g >= gamma the left side is Pr{Gap >= gamma} Psi, the right side at most z^gamma mu(R).
    """
    z, power, limit, mass = z3.Reals("z power limit mass")
    inside = z3.And(z > 0, z <= 1, mass >= 0, limit > 0)
    prove(z3.Implies(z3.And(inside, power == limit), subject(z, power, mass, limit)), "g = gamma")
    step = z3.And(inside, power > 0, power <= limit)
    prove(z3.Implies(step, subject(z, z * power, mass, limit)), "from g to g + 1")
    prove(z3.Implies(step, z * power <= limit), "the induction goes on")
    g, s, total = sympy.symbols("g s total", positive=True)  # E exp(eps Gap/2): each cell gives its mass over Psi
    assert sympy.simplify(s**g * total * s**-g - total) == 0
    return "eq:quantile for any number of cells and any masses: term by term, by induction on the gap (z3)"


def rising(first: z3.ArithRef, second: z3.ArithRef) -> z3.BoolRef:
    """Psi does not fall with z."""
    return first <= second


@check(
    "text:psi-limit",
    "text:u-upper-bound",
    "text:linear",
    "text:price-of-robustness",
    rejects=[lambda first, second: first >= second, lambda first, second: first < second],
)
def check_psi_proof(subject: Callable[..., z3.BoolRef] = rising) -> str:
    """Psi rises with z = exp(-eps/2) term by term and is linear in the masses; at z = 0 the gaps of 0 are left."""
    z, w, a, b, mass = z3.Reals("z w a b mass")
    inside = z3.And(z >= 0, z <= w, w <= 1, a >= 0, a <= b, mass >= 0)
    prove(z3.Implies(inside, subject(z * a * mass, w * b * mass)), "from z^g to z^(g + 1)")
    prove(z3.Implies(z3.And(z >= 0, z <= 1, a >= 0, a <= 1), z * a <= z), "z^g <= z for g >= 1, so it falls to 0")
    first, second, lam, score = sympy.symbols("mu rho lambda score")
    mixed = score * ((1 - lam) * first + lam * second)
    assert sympy.expand(mixed - (1 - lam) * score * first - lam * score * second) == 0
    epsilon, beta, psi = sympy.symbols("epsilon beta Psi", positive=True)
    price = 2 / epsilon * (sympy.log(1 / (beta * lam * psi)) - sympy.log(1 / (beta * psi)))
    assert sympy.simplify(sympy.expand_log(price + 2 / epsilon * sympy.log(lam), force=True)) == 0
    return "Psi: monotone in epsilon, linear in the prior, price (2/eps) log(1/lambda), for any number of cells (z3)"
