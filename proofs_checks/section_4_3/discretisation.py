"""What a piecewise constant prior loses against a Lipschitz one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import sympy
import z3

from pq import bounds
from proofs_checks.engine.registry import check
from proofs_checks.section_4_3.learning_terms import overlap
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.cases import with_ends, without_ends
from proofs_checks.tools.solver import absolute, follows, maximum

F = Fraction

HALF, EIGHTH = F(1, 2), F(1, 8)


def parts_apart(chosen: Sequence[bool]) -> F:
    """Distance (of Wasserstein, order 1) between the uniform laws on the chosen equal pieces of [0, 1] and the rest."""
    pieces, share = len(chosen), sum(chosen)
    total = at = F(0)  # at: the chosen law's distribution function less the other's
    for piece in chosen:
        after = at + (F(1, share) if piece else -F(1, pieces - share))
        crossing = at * after < 0
        area = (at * at + after * after) / (2 * (abs(at) + abs(after))) if crossing else abs(at + after) / 2
        total, at = total + area / pieces, after
    return total


@check(
    "text:piecewise-constant",
    "thm:quantile-regret",
    "thm:quantile-regret/discretisation",
    rejects=[F(1, 10), F(99, 800), F(101, 800), F(1, 6), F(1)],
)
def check_cell_deviation(subject: F = EIGHTH) -> str:
    """A V-Lipschitz density exceeds its cell mean by at most V w^2/8 in all, not V w^2, and a line needs as much.

    Where it exceeds the mean, a set of length a, its mean there and its mean elsewhere differ by at most V times the
    distance of the two laws, which is w/2 where the sets lie apart, and less where they do not.
    """
    x, a = sympy.symbols("x a", positive=True)
    line = sympy.integrate(x - sympy.Rational(1, 2), (x, sympy.Rational(1, 2), 1))
    assert line == sympy.Rational(1, 8) and F(int(line.p), int(line.q)) == subject, "a line needs exactly this"
    most = a * (1 - a) / 2  # w = V = 1: share a (1 - a) of a difference of at most 1/2
    assert sympy.solve(sympy.diff(most, a), a) == [sympy.Rational(1, 2)] and most.subs(a, sympy.Rational(1, 2)) == line
    for chosen in range(1, 2**9 - 1):
        assert parts_apart([bool(chosen >> k & 1) for k in range(9)]) <= HALF, "farther apart than the cell's halves"
    return "discretisation constant 1 -> 1/8 of V w^2 in a cell, which a linear density attains"


def largest_ratio(prior: Sequence[F], cells: Sequence[F]) -> float:
    """Corrected first step: the loss differs by at most the largest log ratio."""
    return max(math.log(a / b) for a, b in zip(prior, cells, strict=True))


def _signed_sum(prior: Any, cells: Any) -> float:
    return float(sum((a - b) / b for a, b in zip(prior, cells, strict=True)))


@check(
    "text:piecewise-constant",
    "thm:quantile-regret",
    "thm:quantile-regret/discretisation",
    rejects=[
        _signed_sum,
        lambda prior, cells: 0.99 * largest_ratio(prior, cells),
        lambda prior, cells: -largest_ratio(cells, prior),
    ],
)
def check_discretisation(subject: Callable[[Sequence[F], Sequence[F]], float] = largest_ratio) -> str:
    """log sum 1/x - log sum 1/Psi <= max log(Psi/x); the printed sum of (Psi-x)/x of mixed signs is no bound."""
    cases = [((F(1, 2), F(1, 10)), (F(1), F(2, 25))), ((F(1, 3), F(1, 5)), (F(1, 4), F(1, 5)))]
    cases.append(((F(1, 2), F(1, 5)), (F(1, 4), F(1, 10))))  # one ratio for all: attained
    rng = np.random.default_rng(41)
    for _ in range(200):
        cases.append(tuple(tuple(F(int(v), 50) for v in rng.integers(1, 51, 3)) for _ in range(2)))
    gaps = []
    for prior, cells in cases:
        gaps.append(gap := math.log(sum(1 / x for x in cells) / sum(1 / x for x in prior)))
        assert gap <= subject(prior, cells) + 1e-12, f"Psi={prior}, <s,W>={cells}: {gap:.3f}"
        assert gap <= sum(abs(a - b) / b for a, b in zip(prior, cells, strict=True)) + 1e-12, "the last line"
    assert (round(gaps[0], 3), _signed_sum(*cases[0])) == (0.118, -0.25), "as the row says"
    psi, cell, most = z3.Reals("psi cell most")  # each term by itself, so for any number of quantiles
    follows(psi > 0, cell > 0, psi <= most * cell, goal=1 / cell <= most / psi)
    return (
        "first step of the discretisation: max log ratio (no factor m); printed sum is -0.25 < 0.118 at Psi=(1/2,1/10)"
    )


def _inner(data: Sequence[F], width: F, rank: int, z: F, weights: Sequence[F]) -> F:
    """<s, W> for records in (0, width): s_j is d/width times the integral of z^gap over the j-th cell."""
    pieces, d = list(pairwise([F(0), *data, width])), len(weights)
    scores = [
        sum(
            (z ** abs(k - rank) * overlap((width * j / d, width * (j + 1) / d), part) for k, part in enumerate(pieces)),
            F(0),
        )
        for j in range(d)
    ]
    return sum((d / width * s * w for s, w in zip(scores, weights, strict=True)), F(0))


@check(
    "thm:quantile-regret/rank-zero",
    rejects=[without_ends, *(lambda data, by=by: F(by, 100) * with_ends(data) for by in (99, 101))],
)
def check_edge_interval(subject: Callable[[Sequence[F]], F] = with_ends) -> str:
    """<s, W> >= gamma psi/(b-a) fails at rank 0, where the optimal interval (a, x_1] may be shorter than psi. With the
    distances to the ends in psi it holds at every rank, and with those of neighbours from rank 1 on: exact <s, W>."""
    for data, q in (([F(1, 1000), F(1, 2)], F(1, 4)), ([F(1, 4), F(1, 2), F(9, 10)], F(1, 2))):
        rank = int(q * len(data))
        ends = [F(0), *data, F(1)]
        optimal = ends[rank + 1] - ends[rank]
        assert optimal >= subject(data), f"rank {rank}: optimal interval {optimal} < {subject(data)}"
        assert rank or optimal == subject(data), "just that long at rank 0"
    assert without_ends([F(1, 1000), F(1, 2)]) == F(499, 1000), "as the row says"
    rng = np.random.default_rng(43)
    for _ in range(300):
        n, gamma = int(rng.integers(2, 7)), F(int(rng.integers(1, 11)), 20)
        data = sorted({F(int(v), 1000) for v in rng.integers(1, 1000, n)})
        ends = [F(0), *data, F(1)]
        d, z, width = int(rng.integers(1, 6)), F(1, int(rng.choice([2, 10**6]))), F(int(rng.integers(1, 10)), 3)
        parts = [int(v) + (j == 0) for j, v in enumerate(rng.integers(0, 3, d))]
        weights = [gamma / d + (1 - gamma) * F(v, sum(parts)) for v in parts]
        for rank in range(len(data)):
            psi = without_ends(data) if rank and len(data) > 1 else subject(data)  # from rank 1 on both do
            inner = _inner([width * x for x in data], width, rank, z, weights)
            assert inner >= gamma * (width * psi) / width, (data, rank)
    # of <s, W> the optimal interval alone is so much: a density of at least gamma/(b - a), on a length of psi or more
    density, least, floor, length, apart = z3.Reals("density least floor length apart")
    known = (floor >= 0, density >= floor, apart >= 0, length >= apart, least >= density * length)
    follows(*known, goal=least >= floor * apart)
    row = _inner([F(1, 1000), HALF], F(1), 0, F(1, 100), [F(1, 4), F(3, 4)])
    assert (round(float(row), 4), HALF * F(499, 1000)) == (0.0031, F(2495, 10**4)), "as the row says"
    least = _inner([F(1, 1000), HALF], F(1), 0, F(1, 10**9), [F(1, 4), F(3, 4)])
    assert HALF * subject([F(1, 1000), HALF]) <= least <= HALF * F(1001, 10**6), "and psi with the ends is attained"
    return (
        "rank 0: x = (1/1000, 1/2) has psi = 0.499 and optimal interval 1/1000; psi must count the distances to a and b"
    )


@check(
    "ours:discretisation",
    code=bounds.lipschitz_discretisation,
    rejects=[
        (1, bounds.lipschitz_discretisation),
        (3, bounds.lipschitz_discretisation),
        *((2, scaled(bounds.lipschitz_discretisation, by)) for by in (0.99, 1.01)),
    ],
)
def check_from_cells_to_losses(subject: tuple[int, Callable[..., float]] = (2, bounds.lipschitz_discretisation)) -> str:
    """From V w^2/8 for a part of a cell to T losses, for every score, floor and number of quantiles (z3, sympy).

    subject: how many ends of cells' parts a layer of the score has, and the bound.
    """
    ends, limit = subject
    k, target = z3.Ints("k target")  # a gap falls up to its target and rises from there: the score is made of layers
    gap, after = absolute(k - target), absolute(k + 1 - target)
    follows(goal=z3.And(z3.Implies(k < target, after < gap), z3.Implies(k >= target, after > gap)))
    low, high, most, lost, height, more, found = z3.Reals("low high most lost height more found")
    parts = (most >= 0, absolute(low) <= most, absolute(high) <= most)  # up to either end of a layer's interval
    follows(*parts, found == high - low, goal=absolute(found) <= ends * most)
    layers = (absolute(lost) <= ends * most * height, absolute(found) <= ends * most, more >= 0, height >= 0)
    follows(
        *layers, most >= 0, goal=absolute(lost + more * found) <= ends * most * (height + more)
    )  # heights: 1 in all
    x = sympy.symbols("x", positive=True)  # log(exact/mean) <= (exact - mean)/mean
    room = x - 1 - sympy.log(x)
    assert room.subs(x, 1) == 0 == sympy.diff(room, x).subs(x, 1) and sympy.diff(room, x, 2).is_positive
    floor, length, mean, whole = z3.Reals("floor length mean whole")  # the optimal interval alone scores 1
    known = (floor > 0, length > 0, mean >= floor * length, whole >= 0)
    follows(*known, goal=whole * floor * length <= whole * mean)
    one, two, other, another, factor = z3.Reals("one two other another factor")  # 1/Psi_i of the exact, of the means
    pairs = (one > 0, two > 0, factor >= 1, other <= factor * one, another <= factor * two)
    follows(*pairs, goal=other + another <= factor * (one + two))  # so -log of the harmonic mean is no farther apart
    for steps, d, gamma, v, b, psi in itertools.product(
        (1, 50), (1, 7), (0.1, 1.0), (0.0, 3.0), (1.0, 20.0), (0.01, 1)
    ):
        wanted = steps * (ends * v * (b / d) ** 2 / 8) / (gamma / b * psi)
        assert math.isclose(limit(steps, d, gamma, lipschitz=v, width=b, separation=psi), wanted), (steps, d, gamma)
    return "V T (b - a)^3/(4 gamma d^2 psi): two ends a layer, heights of one in all, the floor and log x <= x - 1 (z3)"


@check("ours:discretisation", rejects=[(F(3, 4), F(7, 8)), (F(13, 20), F(5, 6)), (F(2, 3), F(4, 5))])
def check_powers_of_time(subject: tuple[Fraction, Fraction] = (F(2, 3), F(5, 6))) -> str:
    """The powers of T, logarithms aside: with d = T^a cells and a floor T^-g the terms are T^(1 + g - 2a) and T^(1/2 +
    a + g), and T^(1 - g) where the floor is not given; no a and g do better, and a sixth attains it (z3)."""
    a, g = z3.Reals("a g")
    robust, free = (z3.RealVal(str(power)) for power in subject)
    cells, learning, floor = 1 + g - 2 * a, z3.Q(1, 2) + a + g, 1 - g
    follows(g == 0, goal=maximum(cells, learning) >= robust)
    follows(g >= 0, goal=maximum(maximum(cells, learning), floor) >= free)
    follows(g == 0, a == z3.Q(1, 6), goal=maximum(cells, learning) <= robust)
    follows(g == a, a == z3.Q(1, 6), goal=maximum(maximum(cells, learning), floor) <= free)
    return "T^(2/3) with a floor that is given, T^(5/6) with one that falls: the least powers of these terms (z3)"
