"""What cells cost, beyond the paper: a bound for all quantiles at once, whatever their number."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import z3

from pq.bounds import cells_gap
from pq.core.decode import DecodedDistribution, isotonic_records
from proofs_checks.engine.registry import check
from proofs_checks.section_3_2.intervals import outside
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.solver import absolute, follows, maximum

F = Fraction


def exact_noise(reach: int) -> dict[int, Fraction]:
    """Discrete Laplace noise at epsilon = log 2, up to a reach."""
    return {k: F(1, 3) * F(1, 2) ** abs(k) for k in range(-reach, reach + 1)}


def _without_the_cell(quantile: float, cells: int, largest: float, *known: float, **facts: int) -> float:
    return cells_gap(quantile, cells, 0.0, *known, **facts)


def _of_one_cell(quantile: float, cells: int, largest: float, epsilon: float, beta: float) -> float:
    return cells_gap(quantile, 1, largest, 2 * epsilon, min(4 * beta, 0.99)) - largest


@check(
    "ours:cells-free",
    code=cells_gap,
    rejects=[
        *(scaled(cells_gap, factor) for factor in (0.99, 1.01)),
        lambda quantile, *known, **facts: cells_gap(1 - quantile, *known, **facts),
        lambda quantile, cells, *known, **facts: cells_gap(quantile, cells - 1, *known, **facts),
        lambda *known, counts_moved=1: cells_gap(*known),
        _without_the_cell,
    ],
)
def check_terms_of_cells(subject: Callable[..., float] = cells_gap) -> str:
    """(1 + q) D + r, D the least radius that a running sum of the noises leaves with at most the probability."""
    cases = 0
    with mpmath.workdps(30):
        laws = [*itertools.product((F(1, 2), F(3)), (2, 9, 1), (0.3, 0.05)), (F(1, 10), 1, 0.3)]
        for epsilon, cells, beta in laws:
            radius = next(r for r in itertools.count() if outside(epsilon, cells, r) <= beta)
            for quantile, largest in itertools.product((F(0), F(1, 3), F(1)), (0, 7, 10**6)):
                wanted = float((1 + quantile) * radius + largest)
                for moved in (1, 2):  # at the same scale of the noise
                    facts = {"counts_moved": moved}
                    found = subject(float(quantile), cells, float(largest), moved * float(epsilon), beta, **facts)
                    assert math.isclose(found, wanted, rel_tol=1e-12), (quantile, cells, largest, epsilon, moved)
                cases += 1
    return f"the bound of cells is (1 + q) D + r, D with thirty digits: {cases} settings"


def least_squares(values: Sequence[Fraction]) -> list[Fraction]:
    """The nearest values that do not fall, by the min-max formula: largest over starts of the least over ends of means.

    A mean, a least and a largest value do not fall as values rise, and move with them by a constant; so values within D
    of some that do not fall, their own image, have images within D of these.
    """
    n = len(values)
    means = {(i, j): sum(values[i : j + 1], F(0)) / (j + 1 - i) for i in range(n) for j in range(i, n)}
    return [max(min(means[i, j] for j in range(k, n)) for i in range(k + 1)) for k in range(n)]


def _of_clipped_counts(values: Sequence[Fraction]) -> list[Fraction]:
    """Counts below 0 set to 0, which makes the sums rise too."""
    return list(itertools.accumulate(max(b - a, F(0)) for a, b in itertools.pairwise([F(0), *values])))


def _overshot(values: Sequence[Fraction]) -> list[Fraction]:
    """The image, as far again beyond the sorted values."""
    return [2 * v - w for v, w in zip(least_squares(values), sorted(values), strict=True)]


@check("ours:cells-free", rejects=[_of_clipped_counts, _overshot, lambda values: [F(101, 100) * v for v in values]])
def check_isotonic_regression(subject: Callable[[Sequence[Fraction]], list[Fraction]] = least_squares) -> str:
    """Isotonic regression leaves values that rise as they are, and no two images are farther apart in the largest norm
    than what they are of, in fractions."""
    a, b, c, d, off, near, far, size = z3.Reals("a b c d off near far size")  # for any length, by the min-max formula
    within, grown = (absolute(a - c) <= off, absolute(b - d) <= off), absolute(near - far) <= size * off
    follows(*within, goal=absolute(z3.If(a < b, a, b) - z3.If(c < d, c, d)) <= off)
    follows(*within, goal=absolute(maximum(a, b) - maximum(c, d)) <= off)
    follows(*within, grown, goal=absolute(near + a - far - c) <= (size + 1) * off)  # sums, so means
    rng, cases = np.random.default_rng(73), 0
    for _ in range(200):
        one, other = ([F(int(v)) for v in np.cumsum(rng.integers(-9, 10, cases % 7 + 1))] for _ in range(2))
        rising = sorted(one)
        assert subject(rising) == rising, "changed"
        for two in (other, rising):
            images = subject(one), subject(two)
            apart, before = (max(abs(a - b) for a, b in zip(*v, strict=True)) for v in (images, (one, two)))
            assert apart <= before, (one, two)
        cases += 1
    return f"isotonic regression does not increase distances in the largest norm: {cases} sequences in fractions"


Drawn = tuple[int, int, np.ndarray]  # D, r, and the gaps of all levels


@cache
def paths_of_cells() -> tuple[np.ndarray, list[Drawn]]:
    """Levels, and for counts and noises of three cells, and of up to twelve, D, r and the gaps at the cells' ends."""
    levels, edges, paths = np.linspace(0.0, 1.0, 41), np.array([1.0, 2.0]), []
    for counts in ((4, 0, 3), (0, 9, 0), (1, 1, 8), (7, 7, 7)):
        running = np.cumsum([0, *counts])
        for noise in itertools.product(range(-6, 7, 2), repeat=3):
            records = isotonic_records(np.array(counts) + np.array(noise))
            cell = np.searchsorted(edges, DecodedDistribution(edges, records, (0.0, 3.0)).quantile(levels), side="left")
            ends = [np.abs(running[cell + side] - levels * running[-1]) for side in (0, 1)]
            paths.append((int(np.max(np.abs(np.cumsum(noise)))), max(counts), np.maximum(*ends)))
    rng = np.random.default_rng(79)
    for _ in range(400):  # two to twelve cells, some of them empty, some without noise
        cells, share = int(rng.integers(2, 13)), rng.random(2)
        counts = rng.integers(0, 12, cells) * (rng.random(cells) < share[0])
        noise = rng.integers(-6, 7, cells) * (rng.random(cells) < share[1])
        edges, running = np.arange(1.0, cells), np.cumsum([0, *counts])
        law = DecodedDistribution(edges, isotonic_records(counts + noise), (0.0, float(cells)))
        cell = np.searchsorted(edges, law.quantile(levels), side="left")
        ends = [np.abs(running[cell + side] - levels * running[-1]) for side in (0, 1)]
        paths.append((int(np.max(np.abs(np.cumsum(noise)))), int(np.max(counts)), np.maximum(*ends)))
    return levels, paths


@check(
    "ours:cells-free",
    code=isotonic_records,
    rejects=[
        lambda q: 1.0,
        lambda q: 1 + q / 2,
        lambda q: 2 - q,
        lambda q: 2.0,
        *(lambda q, by=by: by * (1 + q) for by in (0.99, 1.01)),
    ],
)
def check_path_of_cells(subject: Callable[[float], float] = lambda q: 1 + q) -> str:
    """Whatever the noises, all quantiles' gaps are at most (1 + q) D + r, D the largest of these noises' running sums;
    two cells attain it at three quarters, four at the median. The decoded sums are the min-max formula's."""
    q, sums, off, most, low, high, fitted_low, fitted_high, n, fitted = z3.Reals("q c D r low high f_low f_high n f")
    within = [absolute(one - other) <= off for one, other in ((low, fitted_low), (high, fitted_high), (n, fitted))]
    target = (fitted_low <= q * fitted, q * fitted <= fitted_high, low <= sums, sums <= high, high <= low + most)
    most_off = subject(q) * off + most  # for all cells, where fitted sums are within D of the true ones
    follows(q >= 0, q <= 1, off >= 0, *within, *target, goal=absolute(sums - q * n) <= most_off)
    levels, paths = paths_of_cells()
    factors = np.array([subject(q) for q in levels.tolist()])
    for largest, most, gaps in paths:
        assert np.all(gaps <= factors * largest + most + 1e-6), (largest, most)
    for q, counts, noise in ((0.75, (7, 7), (2, -4)), (0.5, (1, 7, 7, 7), (-2, 4, -4, 0))):
        edges = np.arange(1.0, len(counts))
        law = DecodedDistribution(
            edges, isotonic_records(np.array(counts) + np.array(noise)), (0.0, float(len(counts)))
        )
        cell, running = int(np.searchsorted(edges, law.quantile(np.array([q]))[0])), np.cumsum([0, *counts])
        gap = max(abs(running[cell + side] - q * running[-1]) for side in (0, 1))
        assert math.isclose(gap, subject(q) * max(abs(np.cumsum(noise))) + max(counts)), (q, "not attained")
    rng = np.random.default_rng(71)
    for _ in range(200):
        noisy = rng.integers(-9, 10, int(rng.integers(1, 8)))
        fitted = [max(v, F(0)) for v in least_squares([F(int(v)) for v in np.cumsum(noisy)])]
        assert np.allclose(np.cumsum(isotonic_records(noisy)), [float(v) for v in fitted], atol=1e-6), noisy
    counts, noise = np.array([3, 3]), np.array([-2, 4])  # a rounded gap: all six records are below, floor(6/7) is 0
    law = DecodedDistribution(np.array([1.0]), isotonic_records(counts + noise), (0.0, 2.0))
    assert law.quantile(np.array([1 / 7]))[0] > 1 and 6 - 6 / 7 < subject(1 / 7) * 2 + 3 < 6, "not of rounded gaps"
    return f"gaps of all quantiles within (1 + q) D + r of the noises drawn, {len(paths)} of them; attained"


@check("ours:cells-free", code=(cells_gap, isotonic_records), rejects=[_without_the_cell, _of_one_cell])
def check_cells_are_free_of_m(subject: Callable[..., float] = cells_gap) -> str:
    """Exact probability that any of 41 quantiles of isotonic counts is off by more than its bound, over all noises."""
    levels, edges, cases, worst = np.linspace(0.0, 1.0, 41), np.array([1.0, 2.0]), 0, 0.0
    noise = exact_noise(6)
    for counts in ((4, 0, 3), (0, 9, 0), (1, 1, 8)):
        running, n, off = np.cumsum([0, *counts]), sum(counts), []
        for drawn in itertools.product(noise, repeat=3):
            law = DecodedDistribution(edges, isotonic_records(np.array(counts) + np.array(drawn)), (0.0, 3.0))
            cell = np.searchsorted(edges, law.quantile(levels), side="left")
            gaps = np.maximum(np.abs(running[cell] - levels * n), np.abs(running[cell + 1] - levels * n))
            off.append((math.prod((noise[k] for k in drawn), start=F(1)), gaps))
        seen = sum((p for p, _ in off), F(0))
        for beta in (F(1, 2), F(1, 5), F(1, 10)):
            limits = np.array([subject(q, 3, max(counts), math.log(2), float(beta)) for q in levels.tolist()])
            missed = sum((p for p, gaps in off if np.any(gaps > limits + 1e-6)), F(0)) + 1 - seen
            assert missed <= beta, (counts, beta)
            cases, worst = cases + 1, max(worst, float(missed / beta))
    return f"all quantiles of cells at once miss their bound with at most {worst:.2f} of its probability: {cases} cases"
