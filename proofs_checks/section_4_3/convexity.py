"""Losses that are convex in the prior."""

from __future__ import annotations

from collections.abc import Callable
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
    """U^(eps) is convex in piecewise-constant priors, even exp(U) is log-convex; exp(-U) is linear for m = 1."""
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
        if m == 1:
            assert 1 / value(scores, middle) == (1 / value(scores, x) + 1 / value(scores, y)) / 2
    return "U^(eps) is convex in the weights (300 exact chords); m = 1: exp(-U) is linear, so U is exp-concave"


@check(
    "text:convex-inner-product",
    "text:log-sum-exp-convex",
    rejects=[lambda *x: sum(x), lambda *x: sympy.log(sum(sympy.exp(-t) for t in x))],
)
def check_log_sum_exp_convex(subject: Callable[..., Any] | None = None) -> str:
    """log sum exp is convex and non-decreasing: its Hessian form is half the sum of p_i p_j (v_i - v_j)^2."""
    xs, vs = sympy.symbols("x0:4", real=True), sympy.symbols("v0:4", real=True)
    value = (subject or (lambda *x: sympy.log(sum(sympy.exp(t) for t in x))))(*xs)
    total = sum(sympy.exp(t) for t in xs)
    p = [sympy.exp(t) / total for t in xs]
    assert all(sympy.simplify(sympy.diff(value, t) - share) == 0 for t, share in zip(xs, p, strict=True))
    form = sum(sympy.diff(p[i], xs[j]) * vs[i] * vs[j] for i in range(4) for j in range(4))
    squares = sum(p[i] * p[j] * (vs[i] - vs[j]) ** 2 for i in range(4) for j in range(4)) / 2
    assert sympy.simplify(form - squares) == 0
    return "log-sum-exp: gradient = softmax >= 0, Hessian form = sum of squares (sympy, four terms)"
