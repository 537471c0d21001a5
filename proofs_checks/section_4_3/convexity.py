"""Losses that are convex in the prior."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import sympy

from proofs_checks.engine.registry import check
from proofs_checks.tools.cases import Rows

F = Fraction


def _sum_of_losses(weights: Any, scores: Any) -> Fraction:
    """Inner products themselves in place of their inverses: not convex after the logarithm."""
    return sum(sum(s * w for s, w in zip(a, b, strict=True)) for a, b in zip(weights, scores, strict=True))


def _sum_of_squares(scores: Any, weights: Any) -> Fraction:
    """Inverses squared: log-convex too, but not what is exp-concave for one quantile."""
    return sum(1 / sum(s * w for s, w in zip(a, b, strict=True)) ** 2 for a, b in zip(scores, weights, strict=True))


@check("text:convex-inner-product", "sec:overlap", rejects=[_sum_of_losses, _sum_of_squares])
def check_inner_product_convexity(subject: Callable[[Rows, Rows], F] | None = None) -> str:
    """U^(eps) is convex in piecewise-constant priors; even exp(-U), a harmonic mean, is concave: linear for m = 1."""
    rng = np.random.default_rng(37)

    def exponential(scores: Rows, weights: Rows) -> F:
        return sum(1 / sum(s * w for s, w in zip(a, b, strict=True)) for a, b in zip(scores, weights, strict=True))

    value = subject or exponential
    for _ in range(300):
        m, d = int(rng.integers(1, 4)), int(rng.integers(2, 5))
        scores = [[F(int(v), 10) for v in rng.integers(1, 11, d)] for _ in range(m)]
        x, y = ([[F(int(v)) for v in rng.integers(1, 30, d)] for _ in range(m)] for _ in range(2))
        middle = [[(a + b) / 2 for a, b in zip(r, s, strict=True)] for r, s in zip(x, y, strict=True)]
        assert value(scores, middle) ** 2 <= value(scores, x) * value(scores, y)
        assert 1 / value(scores, middle) >= (1 / value(scores, x) + 1 / value(scores, y)) / 2, "not exp-concave"
        if m == 1:
            assert 1 / value(scores, middle) == (1 / value(scores, x) + 1 / value(scores, y)) / 2
    # for all m: with inner products a_i and slopes v_i the second derivative of exp(-U) is -2 (sum 1/a_i)^-3 times a
    # sum over pairs; both sides are sums of terms with two indices at most, so that three of them show it for any m
    a, v = sympy.symbols("a0:3", positive=True), sympy.symbols("v0:3", real=True)
    t, pairs = sympy.Symbol("t"), list(itertools.combinations(range(3), 2))
    bent = sympy.diff(1 / sum(1 / (b + t * s) for b, s in zip(a, v, strict=True)), t, 2).subs(t, 0)
    squares = sum((v[i] / a[i] - v[j] / a[j]) ** 2 / (a[i] * a[j]) for i, j in pairs)
    assert sympy.simplify(bent * sum(1 / b for b in a) ** 3 + 2 * squares) == 0
    return "U^(eps) is convex in the weights, and exp(-U) concave (300 exact chords; sympy); m = 1: exp(-U) is linear"


@check(
    "text:convex-inner-product",
    "text:log-sum-exp-convex",
    rejects=[lambda *x: sum(x), lambda *x: sympy.log(sum(sympy.exp(-t) for t in x))],
)
def check_log_sum_exp_convex(subject: Callable[..., Any] | None = None) -> str:
    """log sum exp is convex and non-decreasing: its Hessian form is half the sum of p_i p_j (v_i - v_j)^2. Of more
    terms it is that of two, the first a log-sum-exp itself, and so convex by induction."""
    xs, vs = sympy.symbols("x0:4", real=True), sympy.symbols("v0:4", real=True)
    value = (subject or (lambda *x: sympy.log(sum(sympy.exp(t) for t in x))))(*xs)
    total = sum(sympy.exp(t) for t in xs)
    p = [sympy.exp(t) / total for t in xs]
    assert all(sympy.simplify(sympy.diff(value, t) - share) == 0 for t, share in zip(xs, p, strict=True))
    form = sum(sympy.diff(p[i], xs[j]) * vs[i] * vs[j] for i in range(4) for j in range(4))
    squares = sum(p[i] * p[j] * (vs[i] - vs[j]) ** 2 for i in range(4) for j in range(4)) / 2
    assert sympy.simplify(form - squares) == 0
    a, b, head = sympy.symbols("a b head", positive=True)  # head: the sum of any number of exponentials
    two = sympy.log(sympy.exp(a) + sympy.exp(b)).subs(a, sympy.log(head))
    assert sympy.simplify(two - sympy.log(head + sympy.exp(b))) == 0, "one term more"
    return "log-sum-exp: gradient = softmax >= 0, Hessian form = sum of squares (sympy, four terms; more by induction)"


def _repaired(score: Sequence[F], weight: Sequence[F], floor: F) -> tuple[F, F]:
    """The step that is true: sum_j s_j/<s,W>^2 <= (d/gamma)/<s,W>."""
    inner = sum(s * w for s, w in zip(score, weight, strict=True))
    return sum(score) / inner**2, 1 / (floor * inner)


def _sedrakyan(score: Any, weight: Any, floor: Any) -> tuple[Fraction, Fraction]:
    inner = sum(s * w for s, w in zip(score, weight, strict=True))
    return sum(score) / inner**2, 1 / sum(s * w * w for s, w in zip(score, weight, strict=True))


@check(
    "lem:lipschitz/sedrakyan",
    rejects=[
        _sedrakyan,
        lambda *case: _repaired(*case)[::-1],
        lambda *case: (_repaired(*case)[0], F(99, 100) * _repaired(*case)[1]),
        lambda *case: (_repaired(*case)[0], F(101, 100) * _repaired(*case)[1]),
    ],
)
def check_sedrakyan(subject: Callable[[Sequence[F], Sequence[F], F], tuple[F, F]] = _repaired) -> str:
    """Sedrakyan's inequality bounds sum_j s_j/<s,W>^2 from below, by Lagrange's identity and with equality at equal
    weights: the printed step is reversed. A direct one is true, and attained where all scores lie on the floor."""
    s, w = sympy.symbols("s0:4"), sympy.symbols("w0:4")
    squares = sum(s[i] * s[j] * (w[i] - w[j]) ** 2 for i, j in itertools.combinations(range(4), 2))
    sums = [sum(a * b**k for a, b in zip(s, w, strict=True)) for k in range(3)]
    assert sympy.expand(sums[0] * sums[2] - sums[1] ** 2 - squares) == 0
    rng = np.random.default_rng(113)
    for trial in range(300):
        d = int(rng.integers(2, 6))
        score = [F(int(v), 10) for v in rng.integers(trial > 2, 11, d)]
        parts = [1 if trial == 0 else int(v) for v in rng.integers(1, 20, d)]
        score[0] += trial < 3
        weight = [F(v, sum(parts)) for v in parts]
        left, right = subject(score, weight, min(weight))
        assert left <= right, f"{left} > {right} at s={score}, W={weight}"
        least, most = _sedrakyan(score, weight, F(0))[::-1]
        assert least <= most and (trial or least == most), "not reversed"
    attained = subject((F(1), F(0)), (F(1, 10), F(9, 10)), F(1, 10))
    assert attained[0] == attained[1], "more than is needed"
    assert _sedrakyan((F(1), F(1)), (F(3, 4), F(1, 4)), F(0)) == (2, F(8, 5)), "as the row says"
    return "printed step false: s=(1,1), W=(3/4,1/4) gives 2 <= 8/5; use <s,W> >= (gamma/d) sum s instead"
