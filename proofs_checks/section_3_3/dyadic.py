"""Uniform quantiles under restricted priors: two thirds of the printed bound."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import sympy
from flint import arb

from pq.bounds import dyadic_constant
from proofs_checks.engine.registry import check
from proofs_checks.tools.exact import Algorithm, Grid, ball, log_ball
from proofs_checks.tools.trees import inverse_psis

HALF = Fraction(1, 2)


def _off_path(levels: int, path: list[int]) -> list[int]:
    """The other indices, from the root down."""
    order = [at - 1 for k in range(levels) for at in range(2 ** (levels - 1 - k), 2**levels, 2 ** (levels - k))]
    return [i for i in order if i not in path]


def conditional_chain(levels: int, bits: int) -> tuple[Algorithm, Grid, list[int]]:
    """m = 2**levels - 1 uniform quantiles, point priors; on a zigzag path each node's output is `bits` ranks off its
    target.
    """
    m, n = 2**levels - 1, 2**levels * 8 * bits
    ranks = {i: n * (i + 1) // (m + 1) for i in range(m)}
    path, step, at = [], 2 ** (levels - 1), 2 ** (levels - 1)
    moved: dict[int, int] = {-1: 0, m: n}
    for level in range(levels):
        low = max(j for j in moved if j < at - 1)
        high = min(j for j in moved if j > at - 1)
        ranks[at - 1] = moved[low] + (moved[high] - moved[low]) // 2 + bits
        moved[at - 1] = ranks[at - 1]
        path.append(at - 1)
        step //= 2
        at += step if level % 2 == 0 else -step
    # off the path: on the target of the node, wherever its edges went, so that those inner products are one
    for i in _off_path(levels, path):
        low = max(j for j in moved if j < i)
        high = min(j for j in moved if j > i)
        ranks[i] = moved[low] + (moved[high] - moved[low]) // 2
        moved[i] = ranks[i]
    priors = tuple({ranks[i] + Fraction(i + 1, m + 2): Fraction(1)} for i in range(m))
    quantiles = tuple(Fraction(i, m + 1) for i in range(1, m + 1))
    return Algorithm(quantiles, priors, (HALF,) * m, adaptation="conditional"), Grid(n), path


@check("text:logarithmic-error", "ours:dyadic-conditional", rejects=[lambda d: 2 * d / 3, lambda d: float(d)])
def check_dyadic_sharp(subject: Callable[[int], float] = dyadic_constant) -> str:
    """On chains of bad luck B_d is attained: every node of the path errs by exactly its allowance, with certainty."""
    for levels, bits in itertools.product(range(1, 7), (64, 6400)):
        algorithm, data, path = conditional_chain(levels, bits)
        ((outputs, p),) = algorithm.law(data).items()
        assert p == 1
        total = sum(inverse_psis(data, algorithm, outputs))
        allowance = ball(Fraction(subject(levels))) * log_ball(levels * total / HALF) / log_ball(2)
        worst = algorithm.gaps(data, outputs)[path[-1]]
        assert ball(worst) < allowance + arb(subject(levels - 1) if levels > 1 else 0) + 1, (levels, bits, worst)
        if bits == 6400:
            assert ball(worst) > allowance * arb("0.98"), (levels, worst, allowance)
    return "B_d is attained up to 2% for d = 1..6: two thirds of the printed bound is what uniform quantiles can lose"


@check("text:logarithmic-error", "ours:dyadic-conditional", rejects=[lambda d: float(d), lambda d: 2 * d / 3])
def check_dyadic_recurrence(subject: Callable[[int], float] = dyadic_constant) -> str:
    """B_k = 1 + (B_{k-1} + B_{k-2}) / 2 and its closed form; slack 1 a level below the root adds B_{k-1}."""
    k = sympy.symbols("k", integer=True)
    form = 2 * k / 3 + sympy.Rational(2, 9) * (1 - sympy.Rational(-1, 2) ** k)
    step = form - (1 + (form.subs(k, k - 1) + form.subs(k, k - 2)) / 2)
    assert sympy.simplify(sympy.expand(step)) == 0
    slack, before = Fraction(0), Fraction(0)  # at the root
    for depth in range(1, 60):
        assert math.isclose(subject(depth), float(form.subs(k, depth)), rel_tol=1e-14)
        assert math.isclose(float(slack), subject(depth - 1) if depth > 1 else 0.0, abs_tol=1e-9)
        assert subject(depth) <= depth
        before, slack = slack, 1 + (slack + before) / 2
    return "uniform quantiles, restricted priors: B_d = 2 d / 3 + 2/9 (1 - (-1/2)^d) in place of d (sympy)"
