"""cor:cauchy: the mass of the optimal cell under a Cauchy prior, and the bound."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import sympy
import z3
from flint import arb

from pq.bounds import cor_cauchy
from proofs_checks.engine.registry import check
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.chains import cauchy_mass
from proofs_checks.tools.exact import ball
from proofs_checks.tools.solver import follows

F = Fraction
HALF = Fraction(1, 2)


@check("cor:cauchy", "text:cauchy-mass", rejects=[lambda t: 2 * t / (1 + t**2), lambda t: t])
def check_cauchy_mass(subject: Callable[[sympy.Expr], sympy.Expr] = lambda t: t / (1 + t**2)) -> str:
    """cor:cauchy: inner cells by the density's least value; the left tail by arctan(t) >= t / (1 + t^2), n >= 3."""
    a, b, r, s = sympy.symbols("a b R psi", positive=True)
    sigma = (b - a) / 2
    claimed = 2 * (b - a) * s / sympy.pi / ((b - a) ** 2 + 4 * r**2)
    assert sympy.simplify(sigma / sympy.pi * s / (sigma**2 + r**2) - claimed) == 0
    printed = sympy.pi * (b - a + 4 * r**2 / (b - a)) / (2 * s)
    assert sympy.simplify(1 / claimed - printed) == 0
    # mass of (-infinity, x_1] is at least arctan(t) / pi with t = sigma / R; the claim is at most t / (1 + t^2) / pi
    # if psi <= R
    t = sympy.symbols("t", positive=True)
    slope = sympy.factor(sympy.diff(sympy.atan(t) - subject(t), t))
    assert sympy.limit(sympy.atan(t) - subject(t), t, 0) == 0
    assert slope.is_positive, slope
    at_radius = subject(t).subs(t, sigma / r) / sympy.pi
    assert sympy.simplify(claimed / at_radius - s / r) == 0, "the claim is the part psi / R of it"
    left = sympy.pi / 2 - sympy.atan(1 / t) - sympy.atan(t)  # pi times the mass beyond -R, less arctan(t)
    assert sympy.simplify(sympy.diff(left, t)) == 0 and sympy.simplify(left.subs(t, 1)) == 0
    return "cor:cauchy: the claimed mass bounds every inner cell, and the left tail too when psi <= R (sympy)"


@check(
    "cor:cauchy",
    "text:cauchy-mass",
    rejects=[
        lambda n: z3.If(n >= 2, z3.RealVal(1), 2),
        lambda n: z3.If(n >= 4, z3.RealVal(1), 2),
        lambda n: z3.RealVal(2),
        lambda n: z3.If(n >= 3, z3.RealVal("99/100"), 2),
        lambda n: z3.If(n >= 3, z3.RealVal("101/100"), 2),
    ],
)
def check_separation_of_few(subject: Callable[[Any], Any] = lambda n: z3.If(n >= 3, z3.RealVal(1), 2)) -> str:
    """psi < R for every column of three records or more within R, and psi < 2R for two, so at rank 0 the tail has the
    claimed mass, or half of it at n = 2 (z3). Neither factor of R can be smaller.

    subject: of a number of records, how many times R their least distance stays below.
    """
    n, j = z3.Ints("n j")
    psi, radius = z3.Reals("psi R")
    x = z3.Function("x", z3.IntSort(), z3.RealSort())
    inside = z3.ForAll(j, z3.Implies(z3.And(j >= 1, j <= n), z3.And(-radius < x(j), x(j) < radius)))
    apart = z3.ForAll(j, z3.Implies(z3.And(j >= 1, j < n), x(j + 1) - x(j) >= psi))
    follows(n >= 2, psi > 0, inside, apart, goal=psi < subject(n) * radius)
    near = F(1, 10**9)
    for count in (2, 3):
        claimed = z3.simplify(subject(z3.IntVal(count))).as_fraction()
        widest = 2 * (1 - near) / (count - 1)  # evenly from just inside -R to just inside R
        assert widest < claimed <= widest / (1 - near), "a smaller factor of R would do"
    return "psi < R for three records or more within R, psi < 2R for two, neither factor less (z3)"


def paper_cauchy(*args: float, **known: int) -> float:
    """The printed cor:cauchy."""
    return cor_cauchy(*args, version="paper", **known)


@check(
    "cor:cauchy",
    "text:cauchy-mass",
    code=cor_cauchy,
    rejects=[cor_cauchy, lambda *args, **known: 1.001 * paper_cauchy(*args, **known)],
)
def check_cauchy_two_records(subject: Callable[..., float] = paper_cauchy) -> str:
    """Counterexample for n = 2 and floor(q n) = 0: two far records, scale 1; the left tail has half the claimed
    mass.
    """
    x, radius, beta = Fraction(999), 1000.0, Fraction(1, 10)
    tail = ball(HALF) - ball(x).atan() / arb.pi()  # mass of (-infinity, -999]
    z, rank = Fraction(1, 15_748), math.floor(F(1, 4) * 2)
    bound = subject(radius, 2.0, float(2 * x), -2 * math.log(z), float(beta), n=2, rank=rank)
    assert bound < 0.9999, "the bound survives"
    claimed = 2 * ball(4 * x) / arb.pi() / (4 + 4 * ball(F(1000)) ** 2)  # 2 (b - a) psi, with psi = 2 x and R = 1000
    assert abs(tail / claimed - arb("0.501")) < arb("0.0005"), "as the row says"
    weights = [mass * ball(z) ** abs(k - rank) for k, mass in enumerate((tail, 1 - 2 * tail, tail))]
    failure = 1 - weights[rank] / sum(weights, arb(0))
    assert failure > ball(Fraction(15, 100)), failure
    return (
        f"cor:cauchy, x = (-999, 999), scale 1, R = 1000, q = 1/4: gap <= {bound:.5f} claimed w.p. 0.9, "
        f"Pr{{gap >= 1}} > 0.15"
    )


@check(
    "cor:cauchy",
    "text:cauchy-mass",
    code=cor_cauchy,
    rejects=[
        paper_cauchy,
        lambda *args, **known: cor_cauchy(*args, **known) - 0.01 * 2 / args[3],
        lambda *args, **known: cor_cauchy(*args, **known) + 0.01 * 2 / args[3],
        scaled(cor_cauchy, 0.99),
        scaled(cor_cauchy, 1.01),
    ],
)
def check_cauchy_few(subject: Callable[..., float] = cor_cauchy) -> str:
    """The corrected bound where the optimal cell is the left tail, n = 1 and n = 2 at rank 0: half of the claimed mass,
    and arctan((b - a)/(2R))/pi, are below the tail's (balls), nearly reached by records at -R, and in the formula."""
    for radius, width in ((F(1000), F(2)), (F(1), F(2)), (F(3), F(100))):
        for place in (radius * F(99, 100), radius * (1 - F(1, 10**9))):  # records at -place and place
            tail = ball(HALF) - ball(2 * place / width).atan() / arb.pi()
            claimed = 2 * ball(width * 2 * place) / arb.pi() / (ball(width) ** 2 + 4 * ball(radius) ** 2)
            alone = ball(width / (2 * radius)).atan() / arb.pi()
            assert tail > claimed / 2 and tail > alone, (radius, width, place)
            assert radius < 1000 or place < radius * F(999, 1000) or tail < claimed / 2 * arb("1.001")
            epsilon, beta = 0.5, 0.1
            for n, mass in ((2, claimed / 2), (1, alone)):
                wanted = 2 / epsilon * float((1 / (ball(F(1, 10)) * mass)).log())
                found = subject(float(radius), float(width), float(2 * place), epsilon, beta, n=n, rank=0)
                assert math.isclose(found, wanted, rel_tol=1e-9), (n, found, wanted)
    return "cor:cauchy at n = 2, rank 0: (2/eps) log 2 more, and no less; at n = 1 the tail's own mass (balls)"


@check(
    "cor:cauchy",
    "text:cauchy-mass",
    code=cor_cauchy,
    rejects=[
        paper_cauchy,
        lambda *args, n, rank: cor_cauchy(*args, n=min(n, 2), rank=rank),  # as if log 2 were due from n = 3 on
        lambda *args, n, rank: cor_cauchy(*args, n=n, rank=0),
        lambda *args, n, rank: cor_cauchy(*args, n=max(n, 2), rank=rank),
        *(lambda *args, by=by, **known: cor_cauchy(*args, **known) + by for by in (-0.01, 0.01)),
    ],
)
def check_cauchy_cells(subject: Callable[..., float] = cor_cauchy) -> str:
    """The mass of every optimal cell is the claimed one or more (balls): drawn columns of one to six records, all
    ranks, and columns that leave no smaller claim for one record, for two or more at rank 0, or for an
    inner cell."""
    draw, closest = random.Random(19), dict.fromkeys(("alone", "two", "tail", "inner", "pair"), math.inf)
    near = F(1, 10**9)
    columns = [[F(draw.randrange(-999, 1000), 1000) for _ in range(draw.randrange(1, 7))] for _ in range(60)]
    columns += [[near - 1], [near - 1, 1 - near], [near - 1, F(0), 1 - near], [F(0), 1 - 2 * near, 1 - near]]
    columns += [[1 - 2 * near, 1 - near]]
    for shares, radius in itertools.product(columns, (F(1, 100), F(1), F(1000))):
        x = sorted(radius * share for share in set(shares))
        psi = min((b - a for a, b in itertools.pairwise(x)), default=radius)
        for rank in range(len(x)):
            mass = cauchy_mass(x[rank - 1], x[rank]) if rank else 1 - cauchy_mass(x[0], math.inf)
            claimed = 2 * math.exp(-subject(float(radius), 2.0, float(psi), 2.0, 0.5, n=len(x), rank=rank))
            assert mass > claimed * (1 - 1e-6), (x, rank)
            kind = ("pair" if len(x) == 2 else "inner") if rank else {1: "alone", 2: "two"}.get(len(x), "tail")
            closest[kind] = min(closest[kind], float(mass) / claimed)
    assert max(closest.values()) < 1.001, (closest, "a larger mass could be claimed")
    return "cor:cauchy: its mass is in every optimal cell, n from 1 to 6 and all ranks, and no larger one (balls)"


@check("cor:cauchy", code=cor_cauchy, rejects=[scaled(cor_cauchy, factor) for factor in (0.5, 0.99, 1.01)])
def check_cauchy_attained(subject: Callable[..., float] = cor_cauchy) -> str:
    """The bound itself for forty records at the far end, all psi apart: the left tail has nearly all of the prior, and
    its gap of twenty is missed with just the stated probability (balls)."""
    n, z, radius = 40, ball(F(1, 10**9)), F(1000)
    for psi in (F(1, 10**6), F(1, 10**30)):
        x = [radius - psi * (n - i) for i in range(n)]  # the last record just inside
        inner = [cauchy_mass(a, b) for a, b in itertools.pairwise(x)]
        masses = [1 - cauchy_mass(x[0], math.inf), *inner, cauchy_mass(x[-1], math.inf)]
        weights = [mass * z ** abs(k - n // 2) for k, mass in enumerate(masses)]
        farthest = weights[0] / sum(weights, arb(0))
        for known in ({}, {"n": n, "rank": n // 2}):
            bound = subject(float(radius), 2.0, float(psi), -2 * float(z.log()), float(farthest) * (1 - 1e-9), **known)
            assert n / 2 <= bound <= 1.001 * n / 2, bound  # else the gap exceeds it with more than the probability
    return "cor:cauchy is the gap itself, to a thousandth, for two columns far from the location (balls)"
