"""What the number of quantiles costs in joint releases, beyond the paper: a bound that is linear in it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import z3

from pq.bounds import joint_even_gap, joint_score
from proofs_checks.engine.registry import check
from proofs_checks.section_3_2.joint import exact_best
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.solver import absolute, follows, prove

F = Fraction
EPSILON = 2 * math.log(2)  # scores count in powers of two
BETAS = (F(1, 2), F(1, 10), F(1, 1000), F(1, 10**6))


def window_bound(m: int, half: int, log_cell_mass: float, epsilon: float, beta: float) -> float:
    """The row's: m / (m + 1) of a score, from a box of windows of 2 w + 1 cells around m evenly spaced ranks."""
    width = 2 * half + 1
    log_share = math.log(math.factorial(m)) + m * (math.log(width) + log_cell_mass)
    return m / (m + 1) * (m * width + 2 / epsilon * (math.log(1 / beta) - log_share))


def widths(m: int, n: int) -> range:
    """Each w with 2 w + 1 at most the whole part of n / (m + 1)."""
    return range((n // (m + 1) - 1) // 2 + 1)


def _without_orders(m: int, half: int, log_cell_mass: float, epsilon: float, beta: float) -> float:
    return window_bound(m, half, log_cell_mass, epsilon, beta) + m / (m + 1) * 2 / epsilon * math.lgamma(m + 1)


def _of_even_windows(m: int, half: int, log_cell_mass: float, *known: float) -> float:
    """2 w for 2 w + 1, where there is a w."""
    if half == 0:
        return window_bound(m, half, log_cell_mass, *known)
    lost = math.log(2 * half / (2 * half + 1))
    return window_bound(m, half, log_cell_mass + lost, *known) - m / (m + 1) * m


def _best_of(bound: Callable[..., float]) -> Callable[..., float]:
    """The least over all w."""
    return lambda m, n, *known: min(bound(m, half, *known) for half in widths(m, n))


@check(
    "ours:joint-linear",
    code=joint_even_gap,
    rejects=[
        *(scaled(joint_even_gap, factor) for factor in (0.99, 1.01)),
        _best_of(_without_orders),
        _best_of(_of_even_windows),
        lambda m, n, *known: window_bound(m, 0, *known),
        lambda m, n, *known: window_bound(m, widths(m, n)[-1], *known),
        lambda *known, counts_moved=1, **facts: joint_even_gap(*known, **facts),
        lambda *known, total_step=None, **facts: joint_even_gap(*known, **facts),
    ],
)
def check_best_window(subject: Callable[..., float] = joint_even_gap) -> str:
    """The package's bound is the least of the row's over every w that it allows; where totals are drawn, it is that of
    joint_score at one of them."""
    cases = 0
    for m, n in ((1, 2), (1, 50), (2, 9), (9, 1000), (63, 640), (100, 10**5)):
        for epsilon, beta, psi in itertools.product((0.01, 0.3, 0.52, 1.0, 7.0), (0.5, 0.05), (1 / (n + 1), 1e-9)):
            wanted = min(window_bound(m, half, math.log(psi), epsilon, beta) for half in widths(m, n))
            assert math.isclose(subject(m, n, math.log(psi), epsilon, beta), wanted, rel_tol=1e-9), (m, n, epsilon)
            cases += 1
    for (m, n), epsilon, beta in itertools.product(((1, 2), (9, 1000)), (0.01, 0.52, 7.0), (0.5, 0.05)):
        wanted, known = (subject(m, n, -9.0, by * epsilon, beta, counts_moved=by) for by in (1, 2))
        assert math.isclose(wanted, known, rel_tol=1e-9), "the rate is the same"
    for (m, n), step, epsilon in itertools.product(((1, 2), (2, 9), (9, 1000)), (1.0, 8.0), (0.01, 0.3, 7.0)):
        logs = [math.lgamma(m + 1) + m * math.log((2 * half + 1) / (n + 1)) for half in widths(m, n)]
        scores = [
            joint_score(min(log_psi, 0.0), epsilon, 0.05, box_score=m * (2.0 * half + 1), total_step=step)
            for half, log_psi in zip(widths(m, n), logs, strict=True)
        ]
        found = subject(m, n, -math.log(n + 1), epsilon, 0.05, total_step=step)
        assert any(math.isclose(found, m / (m + 1) * score, rel_tol=1e-9) for score in scores), (m, n, step, epsilon)
    return f"the bound that is linear in m is the least over windows of all widths: {cases} settings"


def about(m: int, n: int, kappa: float, epsilon: float, beta: float) -> float:
    """The row's, by Stirling's formula at windows of 2 / epsilon cells."""
    return m / (m + 1) * 2 / epsilon * (m * (2 + math.log(epsilon * kappa * n / (2 * m))) - math.log(beta))


@check(
    "ours:joint-linear",
    code=joint_even_gap,
    rejects=[
        lambda m, *known: (m + 1) / m * about(m, *known),
        lambda m, n, kappa, *known: about(m, n, 2 * kappa, *known),
        lambda m, n, kappa, *known: about(m, n, kappa / math.e, *known),
        lambda m, n, kappa, epsilon, beta: about(m, n, kappa, epsilon, 1.0),
    ],
)
def check_about(subject: Callable[..., float] = about) -> str:
    """What the bound is about, for cells of mass 1/(kappa n): within 11%, in drawn settings too, while windows of
    2/epsilon + 1 cells fit, an odd number beside 2/epsilon among them. Where just 2/epsilon fit it can be a fifth more.
    """
    ratios, many, tails = [], (9, 20, 63, 255), (0.5, 1 - 1e-6, 1e-6)
    for m, width, room, beta in itertools.product(many, (1, 1.82, 1.99, 2, 2.96, 3.3, 20, 10**6), (1, 1.5, 1e3), tails):
        n = math.ceil(room * (width + 1) * (m + 1))
        for kappa in (1 + 1 / n, 3.0, 1e4):
            found = joint_even_gap(m, n, -math.log(kappa * n), 2 / width, beta)
            ratios.append(found / subject(m, n, kappa, 2 / width, beta))
    rng = np.random.default_rng(21)
    for _ in range(2000):
        m, width, room = int(rng.integers(9, 256)), 10 ** rng.uniform(0, 6 * rng.random()), 10 ** rng.uniform(0, 3)
        n = math.ceil(room ** rng.integers(2) * (width + 1) * (m + 1))
        kappa, beta = max(10 ** rng.uniform(0, 6), 1 + 1 / n), 10 ** -rng.uniform(0, 9)
        found = joint_even_gap(m, n, -math.log(kappa * n), 2 / width, beta)
        ratios.append(found / subject(m, n, kappa, 2 / width, beta))
    assert 0.89 < min(ratios) < 0.9 and 1.07 < max(ratios) < 1.08, (min(ratios), max(ratios))
    narrow = joint_even_gap(254, 755, -math.log(756), 2 / 2.96, 0.5) / subject(254, 755, 756 / 755, 2 / 2.96, 0.5)
    assert 2.96 < 755 / 255 and narrow > 1.19, "one cell, for lack of three"
    return f"the bound that is linear in m is about its formula: {min(ratios):.2f} to {max(ratios):.2f} of it"


def box_score(m: int, half: int) -> int:
    """The row's: the largest score in the box."""
    return m * (2 * half + 1)


def windows_for_all(apart: z3.ArithRef) -> None:
    """For all m and n, by the solver: nearest whole numbers are as far apart as the whole part of their distance, and
    2 w + 1 bounds what an inner count is off by, and what the two outer ones are together.

    apart: 2 w + 1.
    """
    one, two, whole = z3.Ints("one two whole")
    aim, step, first, second, half = z3.Reals("aim step first second w")
    nearest = z3.And(2 * absolute(one - aim) <= 1, 2 * absolute(two - aim - step) <= 1)
    prove(z3.Implies(z3.And(nearest, step > whole), two - one >= whole), "a whole step has no halves to round")
    inside = (half >= 0, 2 * absolute(first - aim) <= 2 * half + 1, 2 * absolute(second - aim - step) <= 2 * half + 1)
    follows(*inside, goal=z3.And(absolute(second - first - step) <= apart, 2 * absolute(first - aim) <= apart))


def _one_wider(m: int, n: int) -> range:
    return range(len(widths(m, n)) + 1)


@check(
    "ours:joint-linear",
    rejects=[
        (_one_wider, box_score),
        (widths, lambda m, half: 0.99 * box_score(m, half)),
        (widths, lambda m, half: 1.01 * box_score(m, half)),
        (widths, lambda m, half: (m + 1) * (2 * half + 1)),
        (widths, lambda m, half: 2 * m * half),
    ],
)
def check_box_of_windows(
    subject: tuple[Callable[[int, int], range], Callable[[int, int], float]] = (widths, box_score),
) -> str:
    """Windows around the ranks nearest to n j/(m + 1) are apart and among the ranks, so the box has m! times the
    product of their masses; its largest score, at one of its corners, is at most m (2 w + 1), and just that at m = 1.
    """
    windows_for_all(subject[1](1, z3.Real("w")))
    cases, attained = 0, set()
    for m, n in itertools.chain(itertools.product(range(1, 9), range(2, 90)), ((20, 463), (63, 640), (99, 5000))):
        if n <= m:
            continue
        aims = [round(F(n * (j + 1), m + 1)) for j in range(m)]
        for half in subject[0](m, n):
            ends = [(t - half, t + half) for t in aims]
            assert ends[0][0] >= 0 and ends[-1][1] <= n, (m, n, half, "no ranks")
            assert all(one[1] < other[0] for one, other in itertools.pairwise(ends)), (m, n, half, "not apart")
            best = {0: 0}  # (m + 1) times the largest score up to an output of this rank
            for window in [*ends, (n,)]:  # convex in each rank, so largest at an end of its window
                best = {c: max(s + abs((m + 1) * (c - b) - n) for b, s in best.items()) for c in set(window)}
            worst = F(best[n], m + 1)
            assert worst <= subject[1](m, half), (m, n, half, worst)
            attained |= {m} if worst == subject[1](m, half) else set()
            cases += 1
    assert 1 in attained, "a smaller score would do"
    return f"the box of windows: apart, among the ranks, with scores of at most m (2 w + 1): {cases} widths, m up to 99"


def laws_of_cells(n: int) -> Iterator[tuple[Fraction, ...]]:
    """Masses of n + 1 cells: alike; one of them at the least mass; all but one."""
    yield (F(1, n + 1),) * (n + 1)
    least = F(1, 20 * (n + 1))
    for place in sorted({0, n // 2, n}):
        yield tuple(least if k == place else (1 - least) / n for k in range(n + 1))
        yield tuple(1 - n * least if k == place else least for k in range(n + 1))


def law_of_ranks(masses: tuple[Fraction, ...], m: int) -> dict[tuple[int, ...], tuple[Fraction, Fraction]]:
    """Score and share of the m! times the volume of ordered outputs, by the ranks of m outputs under one prior."""
    levels, n = tuple(F(i, m + 1) for i in range(1, m + 1)), len(masses) - 1
    out = {}
    for ranks in itertools.combinations_with_replacement(range(n + 1), m):
        orders = F(math.factorial(m), math.prod(math.factorial(ranks.count(rank)) for rank in set(ranks)))
        counts = tuple(b - a for a, b in itertools.pairwise((0, *ranks, n)))
        out[ranks] = exact_best(counts, levels), math.prod((masses[r] for r in ranks), start=orders)
    return out


def _of_a_third(*known: Any) -> float:
    return window_bound(*known) / 3.0


def _of_equal_cells(m: int, half: int, log_cell_mass: float, *known: float) -> float:
    """As if all cells had three times the least mass, and their scores were free."""
    return window_bound(m, half, log_cell_mass + math.log(3.0), *known) - m * (2 * half + 1)


@check("ours:joint-linear", rejects=[_of_a_third, _of_equal_cells])
def check_linear_in_m(subject: Callable[..., float] = window_bound) -> str:
    """Score and share of the box of windows, and exact tails of the largest distance to q n at every w, for cells of
    equal mass and for one or all but one at the least mass. A prior of another mass has the same law, and the distance
    to floor(q n) can be larger."""
    cases, worst = 0, 0.0
    for n, m in ((2, 1), (60, 1), (9, 2), (36, 2), (7, 3), (16, 3)):
        for masses in laws_of_cells(n):
            law, psi = law_of_ranks(masses, m), min(masses)
            weights = {r: float(share) / 2.0 ** float(score) for r, (score, share) in law.items()}
            whole = math.fsum(weights.values())
            off = {r: max(abs(c - F(n * (j + 1), m + 1)) for j, c in enumerate(r)) for r in law}
            for half in widths(m, n):
                aims = [round(F(n * (j + 1), m + 1)) for j in range(m)]
                inside = [r for r in law if all(abs(c - t) <= half for c, t in zip(r, aims, strict=True))]
                assert max(law[r][0] for r in inside) <= m * (2 * half + 1)
                least = math.factorial(m) * ((2 * half + 1) * psi) ** m
                assert sum((law[r][1] for r in inside), F(0)) >= least
                for beta in BETAS:
                    bound = subject(m, half, math.log(psi), EPSILON, float(beta))
                    missed = math.fsum(weights[r] for r in law if off[r] > bound) / whole
                    assert missed <= float(beta) * (1 + 1e-12), (n, m, masses, half, beta)
                    cases, worst = cases + 1, max(worst, missed / float(beta))
    law, heavy = law_of_ranks((F(1, 61),) * 61, 1), math.log(F(10**6, 61))
    shares = {r[0]: float(share) / 2.0 ** float(score) for r, (score, share) in law.items()}
    off_by = math.fsum(v for c, v in shares.items() if abs(c - 30) > subject(1, 0, heavy, EPSILON, 0.5))
    assert off_by > 0.5 * math.fsum(shares.values()), "the bound survives a mass of a million"
    law, budget = law_of_ranks((F(1, 4),) * 4, 1), 80 * math.log(2)  # three records, the median
    shares = {r[0]: float(share) / 2.0 ** (40.0 * float(score)) for r, (score, share) in law.items()}
    off_by = math.fsum(v for c, v in shares.items() if abs(c - 1) > subject(1, 0, math.log(0.25), budget, 0.25))
    assert off_by > 0.25 * math.fsum(shares.values()), "the bound survives for the rounded gap"
    return f"the bound that is linear in m is missed with at most {worst:.2f} of its probability: {cases} laws of cells"
