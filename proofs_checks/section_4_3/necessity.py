"""Regret that no learner avoids with cells and floor fixed (cor:quantile-regret/sublinear)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache

import numpy as np
import sympy
from flint import arb

from proofs_checks.engine.registry import check
from proofs_checks.tools.exact import ball, log_ball

F = Fraction
HALF = F(1, 2)
TINY = F(1, 10**9)
Z = F(1, 50)  # exp(-epsilon/2)
PARTS = 4  # places in each cell where an optimal interval may lie


def seen(masses: Sequence[Fraction]) -> list[Fraction]:
    """<s, mu> for optimal intervals of one place each, all other places one rank off, over their sum: a law again.

    ((1 - z) p + z)/(1 + (N - 1) z) is linear in the masses, so cell means of a law become cell means of what is seen.
    """
    whole = 1 + (len(masses) - 1) * Z
    return [((1 - Z) * p + Z) / whole for p in masses]


def line(slope: Fraction, places: int) -> list[Fraction]:
    """Masses of equal parts of (0, 1) under the density 1 + slope (x - 1/2)."""
    return [(1 + slope * (F(2 * j + 1, 2 * places) - F(1, 2))) / places for j in range(places)]


def spread_loss(law: Sequence[Fraction], masses: Sequence[Fraction]) -> arb:
    """Mean loss -log of what is seen of a prior, for days whose optimal interval is drawn from a law."""
    return sum((-ball(p) * log_ball(q) for p, q in zip(law, seen(masses), strict=True)), arb(0))


@cache
def forced_by_slope(slope: Fraction, cells: int) -> arb:
    """A day's mean regret of every prior on the cells against the line: Gibbs, for their best is the line's means."""
    masses = line(slope, PARTS * cells)
    means = [sum(masses[c * PARTS : (c + 1) * PARTS]) / PARTS for c in range(cells) for _ in range(PARTS)]
    law, rng = seen(masses), np.random.default_rng(cells)
    best = spread_loss(law, means)
    for weights in rng.dirichlet(np.ones(cells), 20):
        other = [F(int(w * 10**6) + 1) for w in weights]
        spread = [w / sum(other) / PARTS for w in other for _ in range(PARTS)]
        assert not spread_loss(law, spread) < best, "a prior on the cells does better than the means"
    return best - spread_loss(law, masses)


def forced_by_floor(mixture: Fraction, cells: int, gamma: Fraction) -> arb:
    """A day's regret of every gamma-robust prior if all days have their optimal interval in the first cell."""
    mine, theirs = (1 - floor + floor / cells for floor in (max(gamma, mixture), mixture))
    return log_ball(((1 - Z) * theirs + Z) / ((1 - Z) * mine + Z))


@check(
    "cor:quantile-regret/sublinear",
    rejects=[
        lambda v, lam, d: v > 0 or (lam == 0 and d > 1),
        lambda v, lam, d: v > 0 and lam < 1,
        lambda v, lam, d: lam == 0 and d > 1,
        lambda v, lam, d: v > 0 and lam == 0,
        lambda v, lam, d: (v > 0 and lam < 1) or lam == 0,
        lambda v, lam, d: (v > 0 and lam < 1) or (lam == 0 and d > 2),
        *(lambda v, lam, d, low=low: (v > low and lam < 1) or (lam == 0 and d > 1) for low in (TINY, F(1, 10), F(2))),
        *(lambda v, lam, d, top=top: (v > 0 and lam <= top) or (lam == 0 and d > 1) for top in (HALF, F(9, 10))),
        lambda v, lam, d: (v > 0 and (lam == 0 or TINY < lam < 1)) or (lam == 0 and d > 1),
        lambda v, lam, d: (0 < v < 10 and lam < 1) or (lam == 0 and d > 1),
        lambda v, lam, d: (v > 0 and lam < 1) or (lam <= TINY and d > 1),
        lambda v, lam, d: True,
        lambda v, lam, d: False,
    ],
)
def check_must_grow(
    subject: Callable[[Fraction, Fraction, int], bool] = lambda v, lam, d: (v > 0 and lam < 1) or (lam == 0 and d > 1),
) -> str:
    """With cells d and any floor gamma that stay every learner has linear regret against some prior of its class if V >
    0 (days drawn from a line, in the mean, so on some sequence) or lambda = 0 and d > 1 (one data set again and again);
    for V = 0 and lambda > 0 the floor lambda forces nothing, nor does any if there is one cell; nor is there a line for
    lambda = 1, which leaves the uniform. Five d.

    In between nothing changes: the masses of a line less their cell means are the slope times numbers of which the
    first is not 0, so the two laws differ for every slope but 0, and by Gibbs the regret is above 0.
    """
    lipschitz = (F(0), TINY, F(1, 4), F(1), F(2), 1 / TINY)
    for v, lam, d in itertools.product(lipschitz, (F(0), TINY, F(1, 10), HALF, 1 - TINY, F(1)), (1, 2, 3, 8, 20)):
        steep = (1 - lam) * min(v, F(2))  # of a V-Lipschitz density mixed with the uniform; no steeper one is positive
        slope = steep > 0 and forced_by_slope(steep, d) > 0
        floors = {F(1, 1000), F(1, 10), HALF, lam} - {0}
        forced = [slope or forced_by_floor(lam, d, gamma) > 0 for gamma in floors]
        assert all(forced) == subject(v, lam, d), (v, lam, d)
        assert v > 0 or d > 1 or lam > 0 or not any(forced), "one cell: the uniform alone, and no regret"
        if lam == 1:
            assert set(line((1 - lam) * v, 8)) == {F(1, 8)}, "the uniform alone"
            assert forced_by_floor(lam, 8, HALF) == 0, "which has no regret"
    slope_of = sympy.symbols("slope", positive=True)
    for d in (1, 2, 3, 8, 20):
        masses = line(slope_of, PARTS * d)
        apart = sympy.expand(masses[0] - sum(masses[:PARTS]) / PARTS) / slope_of
        assert sympy.simplify(apart).is_negative, "linear in the slope, and not 0"
    return "d and gamma fixed force a regret linear in T for V > 0 and for lambda = 0 on every learner (balls)"
