"""The recurrence, the sums and the last step of thm:kary."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import sympy
from flint import arb

from pq.bounds import c_p, kary_constant, kary_depth
from proofs_checks.engine.registry import check
from proofs_checks.tools.chains import least_arity
from proofs_checks.tools.exact import Node, ball, build
from proofs_checks.tools.trees import path_spends, walk

F = Fraction


def kary_table(limit: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """K, depth and exp(2 sqrt(log 2 log(m + 1))) for m = 1..limit, with K settled in balls near the steps of its
    ceiling.
    """
    m = np.arange(1, limit + 1, dtype=np.float64)
    root = np.exp(np.sqrt(math.log(2) * np.log(m + 1)))
    arity = np.ceil(root)
    for i in np.flatnonzero(np.abs(root - np.rint(root)) < 1e-9):
        arity[i] = least_arity(int(i) + 1)
    depth, left = np.zeros_like(m), m.copy()
    while np.any(left > 0):
        depth += left > 0
        left = np.floor(left / arity)
    return arity, depth, root**2


@check("thm:kary", rejects=[3, 10**6])
def check_kary_range(subject: int = 83_521) -> str:
    """Where the printed thm:kary follows from its own recurrence: 2 (K - 1) H A is below 2 pi**2 exp(..) for all m <
    83521.
    """
    arity, depth, printed = kary_table(10**6)
    constant = 6 * 2**depth - depth**2 - 4 * depth - 6
    harmonic = sum(np.where(depth >= k, 1 / k**2, 0.0) for k in range(1, 20))
    ratio = 2 * (arity - 1) * harmonic * constant / (2 * math.pi**2 * printed)
    assert np.all(np.abs(ratio - 1) > 1e-9)
    above = np.flatnonzero(ratio > 1) + 1
    assert above[0] == subject
    return (
        f"thm:kary as printed holds for m < {above[0]} up to rounding (p = 2, budgets divided once); beyond, its "
        f"recurrence exceeds it at {len(above)} of the first 10^6 m"
    )


@check("step:kary-recurrence", code=kary_constant, rejects=[lambda k: 6 * 2**k, lambda k: 6 * 2**k - k * k - 4 * k - 5])
def check_kary_recurrence(subject: Callable[[int], int] = lambda k: 6 * 2**k - k * k - 4 * k - 6) -> str:
    """A_k = k**2 + 2 A_{k-1}: its closed form for all k (sympy), below the printed 6 * 2**k."""
    k = sympy.symbols("k", integer=True, positive=True)
    assert subject(1) == 1
    step = subject(k) - (k**2 + 2 * subject(k - 1))
    assert sympy.simplify(sympy.expand(step, force=True)) == 0, step
    total = 0
    for j in range(1, 60):
        total = j * j + 2 * total
        assert total == subject(j) < 6 * 2**j
        assert j > 20 or kary_constant(j, 2) == total
    return "thm:kary, p = 2: A_k = 6 * 2^k - k^2 - 4 k - 6, so A_k < 6 * 2^k and 6 is best (sympy)"


@check(
    "step:kary-lerch",
    rejects=[lambda k, lerch: arb(2) ** (k - 2) * (1 + lerch), lambda k, lerch: arb(2) ** (k - 1) * (2 + lerch)],
)
def check_kary_lerch(subject: Callable[[int, arb], arb] = lambda k, lerch: arb(2) ** (k - 2) * (2 + lerch)) -> str:
    """A_k = sum 2**(k-j) j**p is below 2**(k-2) (2 + Lerch(1/2, -p, 2)), and tends to it: of one series of positive
    terms a partial sum, and the whole."""
    for p in (Fraction(101, 100), Fraction(11, 10), Fraction(8, 5), Fraction(2), Fraction(7, 2), Fraction(8)):
        power = ball(p)
        lerch = sum((arb(j + 2) ** power / arb(2) ** j for j in range(300)), arb(0))
        total = arb(0)
        part = arb(0)
        for k in range(1, 120):
            total, part = arb(k) ** power + 2 * total, part + arb(k) ** power / arb(2) ** k
            assert (total / arb(2) ** k - part).contains(0), "a partial sum of j^p/2^j"
            bound = subject(k, lerch)
            assert total < bound, (p, k)
            if k == 119:
                assert total > bound * (1 - arb("1e-20"))
                assert (kary_constant(k, 2) > bound) == (p < 2), "k^2 for k^p, as the row says"
    return "thm:kary: A_k <= 2^(k-2) (2 + Lerch(1/2, -p, 2)) and the constant is best (256-bit balls, k < 120)"


@check("step:kary-last", rejects=[1.0, 1.88])
def check_kary_last_step(subject: float = 2.0) -> str:
    """(K - 1) 2**ceil(log_K(m + 1)) against exp(2 sqrt(log 2 log(m + 1))) for m = 1..10**6."""
    arity, depth, printed = kary_table(10**6)
    ratio = (arity - 1) * 2**depth / printed
    failures, worst = int(np.sum(ratio > 1)), int(np.argmax(ratio)) + 1
    assert ratio.max() <= subject, (worst, ratio.max())
    assert np.all(np.abs(ratio - 1) > 1e-9)
    assert failures == 966_085
    assert list(np.flatnonzero(ratio > 1)[:4] + 1) == [3, 5, 6, 7]
    assert (worst, round(float(ratio.max()), 4)) == (83_521, 1.883), "as the row says"
    assert (int((arity - 1)[2] * 2 ** depth[2]), round(float(printed[2]), 2)) == (8, 7.1), "at m = 3"
    return (
        f"thm:kary's last step is false for {failures} of the first 10^6 m, from m = 3 on; the best factor there is "
        f"{ratio.max():.4f} (m = 83521), and 2 is enough for all m"
    )


@check("step:kary-last", rejects=[Fraction(199, 100), Fraction(3, 2)])
def check_kary_factor(subject: Fraction = Fraction(2)) -> str:
    """Factor 2 for all m: K - 1 < e^s and ceil(log_K(m + 1)) < s / log 2 + 1 for s = sqrt(log 2 log(m + 1)); no less
    will do.
    """
    s = sympy.symbols("s", positive=True)  # log(m + 1) = s**2 / log 2, log K >= s
    exponent = sympy.simplify((s**2 / sympy.log(2)) / s + 1)
    bound = sympy.exp(s) * sympy.Integer(2) ** exponent
    assert sympy.simplify(sympy.expand_log(sympy.log(bound / (2 * sympy.exp(2 * s))), force=True)) == 0
    ratios = []
    for d in range(3, 40):
        arity = 2 ** (d - 1) + 1
        m = arity ** (d - 1)
        assert least_arity(m) == arity
        assert kary_depth(m, arity) == d
        ratios.append((arity - 1) * arb(2) ** d / (2 * (arb(2).log() * arb(m + 1).log()).sqrt()).exp())
    assert all(ratio < ball(subject) for ratio in ratios)
    assert ratios[-1] > ball(Fraction(1999, 1000))
    return (
        f"thm:kary's last step holds with factor 2 for all m; no smaller one will do ({float(ratios[-1]):.9f} "
        "at K = 2^38 + 1, m = K^38)"
    )


@check("step:kary-edges", rejects=[lambda depth: depth - 2, lambda depth: 1])
def check_kary_edges(subject: Callable[[int], int] = lambda depth: depth - 1) -> str:
    """In a K-ary tree both edges of a node are at least one level up, and one of them is exactly one level up."""
    for arity, m in itertools.product(range(2, 11), (*range(1, 130), 1000)):

        def down(node: Node, low: int, high: int) -> None:
            if node.depth > 1:
                assert max(low, high) == subject(node.depth)
                assert min(low, high) <= subject(node.depth)
            sides = [low, *(node.depth for _ in node.indices), high]
            for j, child in enumerate(node.children):
                if child is not None:
                    down(child, sides[j], sides[j + 1])

        root = build(range(m), arity)
        assert root is not None
        down(root, 0, 0)
        assert sum(len(node.indices) for node in walk(root)) == m
    return "K-ary trees: the edges of a node lie one level up or more, and one lies exactly one level up"


@check(
    "step:kary-display", code=c_p, rejects=[lambda p: 1.01 * c_p(p), lambda p: 0.99 * c_p(p), lambda p: 2 * math.pi**2]
)
def check_kary_display(subject: Callable[[float], float] = c_p) -> str:
    """Displays of thm:kary before its last step: 2 H A_d <= c_p 2^d at every depth d, c_2 is 2 pi^2, and no constant
    that is less would do: the left side comes as near as the tail of zeta(p) lets it."""
    assert abs(subject(2.0) - 2 * math.pi**2) < 1e-9
    for p in (1.05, 1.5, 1.6, 2.0, 3.0, 8.0):
        for depth in range(1, 200):
            partial = math.fsum(j**p / 2**j for j in range(1, depth + 1))
            assert math.isclose(kary_constant(depth, p), 2**depth * partial, rel_tol=1e-12), (p, depth)
            harmonic = math.fsum(k**-p for k in range(1, depth + 1))
            share = 2 * harmonic * kary_constant(depth, p) / 2**depth / subject(p)
            assert share <= 1 + 1e-12, (p, depth)
        tail = depth ** (1 - p) / (p - 1)
        assert share >= 1 - tail / harmonic - 1e-9, (p, share)
    for arity, m in ((3, 26), (5, 24), (5, 124)):  # mechanisms at epsilon_bar / k^2 each: epsilon on a full path
        bar = 1 / ((arity - 1) * sum(F(1, j * j) for j in range(1, kary_depth(m, arity) + 1)))
        assert max(path_spends(m, arity, lambda depth, count, bar=bar: count * bar / depth**2)) == 1, (arity, m)
    return "thm:kary, displays before the last step: 2 H A_d <= c_p 2^d for p from 1.05 to 8, with no less a constant"
