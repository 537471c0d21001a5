"""Gradients of losses of piecewise-constant priors: all data sets, all of the simplex, few cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import sympy
import z3

from pq import bounds
from proofs_checks.engine.registry import check
from proofs_checks.section_4_3.sensitivity import gap_at, gradient_distance, slope_of
from proofs_checks.tools.broken import printed, scaled
from proofs_checks.tools.solver import follows

F = Fraction


def random_rows(rng: np.random.Generator, m: int, d: int, gamma: Fraction) -> list[list[Fraction]]:
    """m laws on d cells with at least gamma/d in each, corners among them."""
    parts = rng.multinomial(int(rng.integers(1, 9)), np.full(d, 1 / d), m).tolist()
    return [[gamma / d + (1 - gamma) * F(v, sum(row)) for v in row] for row in parts]


@check("lem:refined-sensitivity/two", rejects=[F(1), F(4), F(198, 100), F(202, 100)])
def check_any_two_gradients(subject: Fraction | int = 2) -> str:
    """Whatever two data sets are, the squared distance of their gradients is at most 2 (d/gamma)^2, since no inner
    product of theirs is negative; two cells at the floor that each have all of the score attain it. In fractions.
    Neighbours whose two cells exchange the gaps 0 and 1 come near it where epsilon is large.

    subject: the factor of (d/gamma)^2.
    """
    rng = np.random.default_rng(163)
    for trial in range(200):
        m, d, gamma = int(rng.integers(1, 4)), int(rng.integers(2, 6)), F(int(rng.integers(1, 11)), 10)
        weights = random_rows(rng, m, d, gamma)
        pair = [[[F(int(v)) for v in row] for row in 10 ** rng.integers(0, 5, (m, d))] for _ in range(2)]
        one, two = (slope_of(scores, weights) for scores in pair)
        assert min(one + two) >= 0, "minus the gradients"
        assert sum(a * b for a, b in zip(one, two, strict=True)) >= 0
        assert sum((a - b) ** 2 for a, b in zip(one, two, strict=True)) <= subject * (d / gamma) ** 2, trial
    for d, gamma in product((3, 5), (F(1, 10), F(1))):
        weight = [[gamma / d] * 2 + [(1 - 2 * gamma / d) / (d - 2)] * (d - 2)]
        one, two = (slope_of([[F(j == k) for j in range(d)]], weight) for k in (0, 1))
        assert sum((a - b) ** 2 for a, b in zip(one, two, strict=True)) == subject * (d / gamma) ** 2, "attained"
    for d, floor in product((3, 6), (0.3, 1.0)):
        row = [floor / d] * 2 + [(1 - 2 * floor / d) / (d - 2)] * (d - 2)
        data, other, q = crowded_pair(d, 0, 3, F(1))
        reached = gradient_distance(data, other, [q], [row], 60.0) * floor / d
        assert math.isclose(reached**2, subject, rel_tol=1e-6), "neighbours come near"
    return "any two gradients are at most sqrt(2) d/gamma apart (200 exact pairs), which two cells at the floor attain"


def crowded_pair(d: int, first: int, crowd: int, share: F) -> tuple[list[F], list[F], F]:
    """Neighbours that exchange the gaps 1 and 0 of cell `first` and of a share of the next; all else is `crowd` ranks
    away."""
    low, high = F(first, d), (first + 1 + share) / d
    small = [F(k, 10**8) for k in range(1, crowd + 1)]
    below = [low - x for x in reversed(small)] if first else small
    above = [high + x for x in small] if high < 1 else [1 - x for x in reversed(small)]
    data = [*below, F(first + 1, d), *above]
    return data, [F(1, 10**9), *data], F(crowd + 1, 2 * crowd + 1)


def least_sensitivity(epsilon: float, d: int, gamma: float) -> float:
    """Of one quantile: ours, but for two cells, of which only one can be at the floor if gamma < 1."""
    other = 1.0 if d > 2 else gamma / (2 - gamma)
    return bounds.lem_refined_sensitivity(epsilon, d, gamma) * math.sqrt((1 + other**2) / 2)


@check(
    "lem:refined-sensitivity",
    "ours:gradient-sensitivity",
    code=bounds.lem_refined_sensitivity,
    rejects=[
        bounds.lem_refined_sensitivity,
        printed(bounds.lem_refined_sensitivity),
        *(scaled(least_sensitivity, factor) for factor in (0.99, 1.01)),
    ],
)
def check_sensitivity_of_few_cells(subject: Callable[[float, int, float], float] = least_sensitivity) -> str:
    """Neighbours come as close to sqrt(2) (d/gamma) tanh(eps/4) as wanted for every d >= 3; for two cells the supremum
    has sqrt(1 + (gamma/(2 - gamma))^2) for sqrt(2), which is the same at gamma = 1 only."""
    cases = [(2, 0, 1.0), (2, 0, 0.5), (2, 0, 0.1), (3, 0, 0.5), (3, 1, 1.0), (6, 2, 0.3)]
    for (d, first, gamma), epsilon in product(cases, (1.0, 4.0)):
        weights = [(1 - 2 * gamma / d) / max(d - 2, 1)] * d
        weights[first], weights[first + 1] = gamma / d, gamma / d if d > 2 else 1 - gamma / 2
        alike = F(weights[first] / weights[first + 1])  # of the second cell, so that both shares of the law are alike
        data, other, q = crowded_pair(d, first, int(60 / epsilon), alike)
        reached, limit = gradient_distance(data, other, [q], [weights], epsilon), subject(epsilon, d, gamma)
        assert limit * (1 - 1e-3) <= reached <= limit * (1 + 1e-9), (d, gamma, epsilon, reached / limit)
        if d == 2:  # p is a law on both cells, so the gradient moves by (1/W_1, 1/W_2) times what p_1 moves
            p, w = np.meshgrid(np.linspace(0, 1, 201), gamma / 2 + (1 - gamma) * np.linspace(0, 1, 41))
            for more in (epsilon, -epsilon):  # the scores' ratio changes by a factor exp(epsilon) at most
                moved = np.abs(p * np.exp(more) / (p * np.exp(more) + 1 - p) - p) * np.hypot(1 / w, 1 / (1 - w))
                assert moved.max() <= limit * (1 + 1e-9), (gamma, epsilon, "two cells")
    # two cells in general: p_1 moves by tanh(eps/4) at most, h = exp(eps/2), and 1/w^2 + 1/(1 - w)^2 is (1 - 2s)/s^2
    # for s = w (1 - w), which falls with s, so that a weight at the floor is the worst
    p, h, w, floor, s, t = z3.Reals("p h w floor s t")
    follows(p >= 0, p <= 1, h >= 1, goal=p * h * h * (h + 1) <= (p * (h + 1) + h - 1) * (p * h * h + 1 - p))
    follows(floor > 0, floor <= w, w <= 1 - floor, goal=floor * (1 - floor) <= w * (1 - w))
    follows(t > 0, t <= s, 4 * s <= 1, goal=(1 - 2 * s) * t * t <= (1 - 2 * t) * s * s)
    # for every d the limit of such pairs: two cells at the floor exchange the scores 1 and 1/h, h = exp(eps/2), others
    # score 0, and the d - 2 weights of these are at the floor or above
    cells, floor, h = sympy.symbols("d gamma h", positive=True)
    low, high = (cells / floor * score / (1 + 1 / h) for score in (1 / h, 1))
    wanted = 2 * (cells / floor * (h - 1) / (h + 1)) ** 2
    assert sympy.simplify(2 * (high - low) ** 2 - wanted) == 0
    quarter = ((h - 1) / (h + 1)).subs(h, sympy.exp(2 * h)) - sympy.tanh(h)  # eps/4 for h here
    assert sympy.simplify(quarter.rewrite(sympy.exp)) == 0
    many, least = z3.Reals("many least")
    follows(many >= 3, least > 0, least <= 1, goal=many - 2 * least >= least * (many - 2))
    return "m = 1: sqrt(2)(d/gamma) tanh(eps/4) is the supremum for d >= 3; two cells have less unless gamma = 1"


def parted_pair(d: int, crowd: int, packed: int, m: int) -> tuple[list[F], list[F], list[F]]:
    """Neighbours and m quantiles: the first cell goes from gap `packed` to one more of the first quantile, the last one
    from `packed` + 1 to one less of the second, and all else is `crowd` ranks away; others aim into the first cell."""
    tiny = F(1, 10**12)
    crowds = {low - tiny * k for k in range(1, crowd + 1) for low in (F(1, d), F(d - 1, d) + crowd * tiny)}
    data = [tiny * k for k in range(1, packed + 1)] + sorted(crowds) + [1 - tiny * k for k in range(packed + 2, 0, -1)]
    n = len(data)
    qs = [F(1, 2 * n), F(n - 1, n), *(F(packed, n) + F(i, n**3) for i in range(1, m - 1))]
    return data, [tiny / 1000, *data], qs


@check(
    "lem:refined-sensitivity",
    "ours:gradient-sensitivity",
    code=bounds.lem_refined_sensitivity,
    rejects=[
        printed(bounds.lem_refined_sensitivity),
        lambda epsilon, d, gamma, *, quantiles: least_sensitivity(epsilon, d, gamma),
        lambda epsilon, d, gamma, *, quantiles: bounds.lem_refined_sensitivity(2 * epsilon, d, gamma),
        *(scaled(bounds.lem_refined_sensitivity, factor) for factor in (0.99, 1.01)),
    ],
)
def check_sensitivity_of_many_reached(subject: Callable[..., float] = bounds.lem_refined_sensitivity) -> str:
    """Several quantiles of the same budget: neighbours come as close to sqrt(2) (d/gamma) tanh(eps/4) as wanted, with
    two cells too: one quantile's inner product falls by exp(-eps/2), another's rises, each by an entry at the floor."""
    cases = [
        (2, 1.0, 0.4, 2, 30, 0),
        (2, 1.0, 1.0, 2, 30, 0),
        (2, 0.1, 0.4, 2, 150, 0),
        (5, 4.0, 1.0, 2, 10, 0),
        (3, 4.0, 0.4, 4, 10, 6),
    ]
    for d, epsilon, gamma, m, crowd, packed in cases:
        data, other, qs = parted_pair(d, crowd, packed, m)
        assert all(int(q * len(data)) == int(q * len(other)) for q in qs), "a rank moves"
        first = [gamma / d, *[(1 - gamma / d) / (d - 1)] * (d - 1)]
        rest = [1 - (d - 1) * gamma / d, *[gamma / d] * (d - 1)]
        reached = gradient_distance(data, other, qs, [first, first[::-1], *[rest] * (m - 2)], epsilon)
        limit = subject(epsilon, d, gamma, quantiles=m)
        assert limit * (1 - 1e-3) <= reached <= limit * (1 + 1e-9), (d, gamma, epsilon, m, reached / limit)
    paper = bounds.lem_refined_sensitivity(0.1, 2, 0.4, quantiles=2, version="paper")
    data, other, qs = parted_pair(2, 150, 0, 2)
    ratio = paper / gradient_distance(data, other, qs, [[0.2, 0.8], [0.8, 0.2]], 0.1)
    assert round(ratio, 2) == 6.26, "as the row says"
    return f"m > 1: sqrt(2)(d/gamma) tanh(eps/4) is the supremum for every d >= 2; printed {ratio:.2f}x at eps = 0.1"


def steepest(d: int, n: int, budgets: Sequence[int]) -> Fraction:
    """Bound of the l1 norm for n records, exp(1/2) = 3 so that budgets are whole numbers."""
    return F(d * 3 ** (n * max(budgets)))


@check(
    "text:gradient-unbounded",
    rejects=[
        lambda d, n, budgets: F(d),
        lambda d, n, budgets: F(d * 3 ** (n * min(budgets))),
        lambda d, n, budgets: F(d * 9 ** (n * max(budgets))),
        lambda d, n, budgets: 3 * steepest(d, n, budgets),
        *(lambda d, n, budgets, by=by: F(by, 100) * steepest(d, n, budgets) for by in (99, 101)),
    ],
)
def check_gradient_bounded(subject: Callable[[int, int, Sequence[int]], Fraction] = steepest) -> str:
    """For n records no gap exceeds n, so no score is below exp(-eps_i n/2), and the gradient has l1 norm <=
    d exp(max eps_i n/2) on all of the simplex: a weighted mean over the quantiles of what each alone has.

    It is unbounded only over data sets of all sizes: a weight of one on the cell of the least score.
    """
    shares = (F(0), F(1, 5), F(1, 2), F(99, 100), F(1))
    for n in range(5):
        gaps = {gap_at(data, q, F(8)) for data in combinations(range(1, 8), n) for q in shares}
        gaps |= {gap_at(data, q, o) for data in combinations(range(1, 6), n) for q in shares for o in map(F, range(7))}
        assert max(gaps) == n, "the largest gap"
    below, rank, size, least, score, inner = z3.Reals("below rank size least score inner")
    counts = (below >= 0, below <= size, rank >= 0, rank <= size)
    follows(*counts, goal=z3.And(below - rank <= size, rank - below <= size))  # for all n
    # each entry of a quantile's own gradient: <s, W> is a mean of scores, so at least the least of them
    follows(least > 0, score <= 1, inner >= least, goal=score / inner <= 1 / least)
    rng, reached = np.random.default_rng(79), F(0)
    for n in (1, 2, 5, 20):
        for budgets in ((1,), (1, 3), (2, 1, 1)):
            for _ in range(40):
                d = int(rng.integers(2, 5))
                scores = [[F(1, 3) ** (e * int(g)) for g in rng.integers(0, n + 1, d)] for e in budgets]
                weights = random_rows(rng, len(budgets), d, F(0))
                assert sum(slope_of(scores, weights)) <= subject(d, n, budgets), (n, d, budgets)
            least = F(1, 3) ** (n * max(budgets))
            for d, most in ((2, F(2)), (1000, F(1002, 1000))):  # a quantile's least score has all of its weight
                steep = ([F(1)] * (d - 1) + [least], [F(0)] * (d - 1) + [F(1)])
                corner = sum(slope_of([steep[0]], [steep[1]]))
                assert corner <= subject(d, n, budgets) <= most * corner
                flat = ([F(1)] * d, [F(1), *[F(0)] * (d - 1)])  # the same of a second quantile, in which it is lost
                assert sum(slope_of([steep[0], flat[0]], [steep[1], flat[1]])) <= corner
        assert subject(2, n, (1,)) > reached
        reached = subject(2, n, (1,))
    few = 1 / (2 * subject(2, 20, (1,)))  # Psi without epsilon: scores (1, 0), weights (few, 1 - few), any few
    assert sum(slope_of([[F(1), F(0)]], [[few, 1 - few]])) > subject(2, 20, (1,)), "bounded"
    assert subject(4, 1, (2,)) == 4 * 3**2, "as the row says, exp(eps/2) = 9"
    return "gradient on the whole simplex: l1 norm <= d exp(max eps_i n/2) for n records; unbounded as n grows only"


PAPER = printed(bounds.lem_refined_sensitivity)


@check(
    "lem:refined-sensitivity",
    code=bounds.lem_refined_sensitivity,
    rejects=[
        bounds.lem_refined_sensitivity,
        lambda epsilon, d, gamma, *, quantiles: d / gamma * math.expm1(epsilon * (1 + (quantiles > 1))),
        lambda epsilon, d, gamma, *, quantiles: d / gamma * min(2.0, math.expm1(epsilon)),
        lambda epsilon, d, gamma, *, quantiles: d / gamma * min(2.0, math.expm1(2 * epsilon)),
        *(scaled(PAPER, by) for by in (0.99, 1.01)),
    ],
)
def check_printed_sensitivity(subject: Callable[..., float] = PAPER) -> str:
    """The package's printed bound is the paper's, (d/gamma) min{2, exp(eps~) - 1}, for all sizes of epsilon."""
    sizes = product((0.01, 0.3, 0.6, 1.0, 1.2, 5.0, 100.0), ((2, 1.0), (3, 0.3), (7, 0.01)), (1, 2, 7))
    for epsilon, (d, gamma), m in sizes:
        wanted = d / gamma * min(2.0, math.expm1((1 if m == 1 else 2) * epsilon))
        assert math.isclose(subject(epsilon, d, gamma, quantiles=m), wanted, rel_tol=1e-9), (epsilon, d, gamma, m)
    return "lem:refined-sensitivity as printed: the package has (d/gamma) min{2, exp(eps~) - 1}, doubled for m > 1"
