"""Intervals from noisy counts, beyond the paper: the law of running sums, and what follows from it without chance."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import sympy
import z3

from pq.core.noise import DiscreteLaplace
from pq.core.rank_bounds import MOST_SUMS, martingale_radius, quantile_intervals, running_sum_radius
from proofs_checks.engine.registry import check
from proofs_checks.tools.solver import follows

F = Fraction
RISKS = 0.1526, 0.1523  # for which Doob's inequality puts nine running sums at epsilon = 1/200 at 2048 and at 2049


def offset(q: Any, low: Any, high: Any) -> Any:
    """What the records up to an edge less q times all are off by; the noises of the counts up to it add to `low`, of
    the others to `high`."""
    return (1 - q) * low - q * high


@check(
    "ours:count-intervals",
    rejects=[
        lambda q, low, high: low - q * high,
        lambda q, low, high: (1 - q) * low + q * high,
        lambda q, low, high: low - q * (low + high) / 2,
    ],
)
def check_offset(subject: Callable[[Any, Any, Any], Any] = offset) -> str:
    """(1 - q) W_j - q (W_c - W_j), whatever the counts, which is no more than the larger of the two sums (z3)."""
    q, upto, beyond, low, high, radius = z3.Reals("q upto beyond low high radius")
    released = (upto + low) - q * (upto + low + beyond + high)
    follows(goal=released - (upto - q * (upto + beyond)) == subject(q, low, high))
    near = (low <= radius, -low <= radius, high <= radius, -high <= radius)
    found = subject(q, low, high)
    follows(q >= 0, q <= 1, *near, goal=z3.And(found <= radius, -found <= radius))
    return "counts up to an edge less q times all are off by (1 - q) W_j - q (W_c - W_j), at most the larger sum (z3)"


def outside(epsilon: Fraction, count: int, radius: int) -> Any:
    """Probability that a running sum of noises leaves [-radius, radius], sum by sum."""
    decay = mpmath.exp(-mpmath.mpf(epsilon.numerator) / epsilon.denominator)
    mass = [(1 - decay) / (1 + decay) * decay**k for k in range(2 * radius + 1)]
    inside = {0: mpmath.mpf(1)}
    for _ in range(count):
        ends = range(-radius, radius + 1)
        inside = {end: mpmath.fsum(p * mass[abs(end - start)] for start, p in inside.items()) for end in ends}
    return 1 - mpmath.fsum(inside.values())


def _of_one_noise(noise: DiscreteLaplace, count: int, risk: float) -> int:
    return running_sum_radius(noise, 1, risk)


def _of_the_last_sum(noise: DiscreteLaplace, count: int, risk: float) -> int:
    """Chebyshev's inequality, for the sum of all."""
    return math.ceil(math.sqrt(count * noise.variance / risk))


@check(
    "ours:count-intervals",
    code=running_sum_radius,
    rejects=[
        martingale_radius,
        _of_one_noise,
        _of_the_last_sum,
        lambda *known: running_sum_radius(*known) if martingale_radius(*known) < 2048 else martingale_radius(*known),
        lambda *known: running_sum_radius(*known) + 1,
        lambda *known: running_sum_radius(*known) - 1,
    ],
)
def check_running_sums(subject: Callable[[DiscreteLaplace, int, float], int] = running_sum_radius) -> str:
    """The radius is the least whole number that a running sum exceeds with at most the risk, less a billionth: with
    thirty digits. Where Doob's inequality says more than 2048 it is Doob's, which is no smaller."""
    cases = 0
    with mpmath.workdps(30):
        for epsilon, count, risk in itertools.product((F(1, 2), F(1), F(3)), (1, 2, 9), (0.3, 0.05)):
            radius = subject(DiscreteLaplace(epsilon), count, risk)
            assert outside(epsilon, count, radius) <= risk, (epsilon, count, risk)
            assert radius == 0 or outside(epsilon, count, radius - 1) > risk, "a smaller one does"
            assert outside(epsilon, count, martingale_radius(DiscreteLaplace(epsilon), count, risk)) <= risk, "Doob's"
            cases += 1
        for epsilon, count, least in ((F(1), 2, 5), (F(3), 3, 2)):
            chance = float(outside(epsilon, count, least))
            near = [subject(DiscreteLaplace(epsilon), count, chance + by) for by in (0.9e-9, 1.1e-9)]
            assert near == [least + 1, least], "the billionth"
        noise = DiscreteLaplace(F(1))
        assert subject(noise, 3, 0.9e-9) == martingale_radius(noise, 3, 0.9e-9), "a billionth is more than the risk"
    doob = [martingale_radius(DiscreteLaplace(F(1, 200)), 9, risk) for risk in RISKS]
    assert doob == [MOST_SUMS, MOST_SUMS + 1] == [2048, 2049], doob
    found = [subject(DiscreteLaplace(F(1, 200)), 9, risk) for risk in RISKS]
    assert found[0] < 2048 and found[1] == 2049, found
    return f"radii of running sums are the least ones, or Doob's beyond 2048: {cases} laws"


@check(
    "ours:count-intervals",
    code=running_sum_radius,
    rejects=[lambda risk: risk, lambda risk: 0.6 * risk, lambda risk: 0.4 * risk],
)
def check_both_ends(subject: Callable[[float], float] = lambda risk: risk / 2) -> str:
    """Exact probability that the sums from both ends stay within the radius of half the risk: above the level, but
    not with the whole risk. Both ends mostly miss together."""
    most = 0.0
    for epsilon, count, level in itertools.product((F(1, 4), F(1), F(3)), (1, 2, 3, 6), (0.5, 0.7, 0.9, 0.99)):
        noise = DiscreteLaplace(epsilon)
        radius, decay = running_sum_radius(noise, count, subject(1 - level)), math.exp(-noise.rate)
        ends = np.arange(-radius, radius + 1)
        apart = np.abs(ends[:, None] - ends)
        chance = np.tile(1.0 * (ends == 0), (len(ends), 1))  # of a sum, by where the last one is to be
        for _ in range(count):
            chance = chance @ ((1 - decay) / (1 + decay) * decay**apart) * (apart <= radius)
        found = float(np.trace(chance))
        assert found > level, (epsilon, count, level, found)
        most = max(most, (1 - found) / (1 - level))
    assert 0.55 < most <= 0.56, "as the row says"
    return f"sums from both ends stay within the radius with more than the level: missed with {most:.2f} of the risk"


QUANTILES = np.arange(13) / 12
COUNTS = {  # records by cell, for columns of one to four cells, with the epsilon of their noise
    F(1): ((4,), (0,), (5, 2), (0, 7), (3, 0, 4), (5, 5, 5), (0, 9, 1), (1, 1, 1), (0, 1, 0)),
    F(3): ((2, 0, 3, 1), (0, 6, 0, 0), (1, 1, 1, 1)),
}
PLACES: dict[str, Callable[[int, int], float]] = {  # of a column's record in a cell that is (cell, cell + 1]
    "centres": lambda cell, i: cell + 0.5,
    "upper edges": lambda cell, i: cell + 1.0,
    "just beyond lower edges": lambda cell, i: math.nextafter(cell, math.inf),
    "both": lambda cell, i: cell + 1.0 if i % 2 else math.nextafter(cell, math.inf),
    "far away": lambda cell, i: (cell + 0.5) if i else (-1e300 if cell == 0 else math.nextafter(cell, math.inf)),
}


def columns_of(counts: tuple[int, ...]) -> list[list[float]]:
    """Records with these counts in cells with the edges 1, 2, ...: the outer two have one."""
    return [
        sorted(place(cell, i) for cell, n in enumerate(counts) for i in range(n)) for place in PLACES.values()
    ]  # fmt: skip


def quantile_sets(x: list[float]) -> list[tuple[float, float]]:
    """Least and largest value with at most q n records below it and at least q n up to it, for each q."""
    sets = []
    for k in range(13):
        rank = F(k, 12) * len(x)
        sets.append((x[max(math.ceil(rank), 1) - 1], x[min(math.floor(rank), len(x) - 1)]))
    return sets


Intervals = Callable[..., Any]


def _shorter(edges: Any, counts: Any, noise: DiscreteLaplace, quantiles: Any, level: float) -> Any:
    """The radius that all running sums exceed with the whole risk, as if there were no other side."""
    return quantile_intervals(edges, counts, noise, quantiles, 1 - 2 * (1 - level))


def _of_the_true_total(edges: Any, counts: Any, noise: DiscreteLaplace, quantiles: Any, level: float) -> Any:
    """An edge's own noise, as if the total had none."""
    half = running_sum_radius(noise, len(counts), (1 - level) / 2) / 2
    excess = np.cumsum(counts)[:-1] - quantiles[:, None] * np.sum(counts)
    ends, steps = np.array([-np.inf, *edges, np.inf]), np.arange(1, len(edges) + 1)
    low = ends[np.max((excess < -half) * steps, axis=1, initial=0)]
    most = len(edges) + 1
    return np.stack([low, ends[np.min(np.where(excess > half, steps, most), axis=1, initial=most)]], axis=1)


def _closed(edges: Any, counts: Any, noise: DiscreteLaplace, quantiles: Any, level: float) -> Any:
    """An edge at which the counts are just as far as the noise may be counts as one that they are beyond."""
    found = quantile_intervals(edges, counts, noise, quantiles, level)
    radius = running_sum_radius(noise, len(counts), (1 - level) / 2)
    excess = np.cumsum(counts)[:-1] - quantiles[:, None] * np.sum(counts)
    for j, edge in enumerate(edges):
        found[:, 0] = np.where(np.abs(excess[:, j] + radius) < 1e-9, np.maximum(found[:, 0], edge), found[:, 0])
    return found


def _wide(edges: Any, counts: Any, noise: DiscreteLaplace, quantiles: Any, level: float) -> Any:
    """The whole line: it holds everything."""
    return np.tile([-np.inf, np.inf], (len(quantiles), 1))


def _moved(low: float, high: float) -> Intervals:
    """Ends moved inwards by so much, in floats if it is less than one."""

    def moved(*known: Any) -> Any:
        found = quantile_intervals(*known)
        inner = found + np.array([low, -high])
        if low < 1e-9:  # twice the next float: the interval is open there
            inner[:, 0] = np.nextafter(np.nextafter(found[:, 0], np.inf), np.inf) if low else found[:, 0]
        if high < 1e-9:
            inner[:, 1] = np.nextafter(found[:, 1], -np.inf) if high else found[:, 1]
        return inner

    return moved


@check(
    "ours:count-intervals",
    code=quantile_intervals,
    rejects=[
        _shorter,
        _of_the_true_total,
        _closed,
        _wide,
        *(_moved(*by) for by in ((0.4, 0.4), (0.4, 0.0), (0.0, 0.4), (1e-12, 0.0), (0.0, 1e-12))),
    ],
)
def check_intervals_hold(subject: Intervals = quantile_intervals) -> str:
    """Noise whose sums from either end stay within the radius leaves all quantiles of a column in their intervals, for
    one to four cells, wherever in its cell a record lies, on an edge and just beyond it too."""
    level, held, beyond = 0.7, 0, 0
    for epsilon, columns in COUNTS.items():
        noise = DiscreteLaplace(epsilon)
        for counts in columns:
            radius, edges = running_sum_radius(noise, len(counts), 0.5 * (1 - level)), np.arange(1.0, len(counts))
            sets = [np.array(quantile_sets(x)) for x in columns_of(counts) if x]
            for noises in itertools.product(range(-radius - 1, radius + 2), repeat=len(counts)):
                sums = np.cumsum(noises)
                farthest = max(np.max(np.abs(sums)), np.max(np.abs(sums[-1] - sums)))
                if farthest > radius + 1:
                    continue
                found = subject(edges, np.array(counts) + noises, noise, QUANTILES, level)
                for true in sets:
                    inside = bool(np.all(found[:, 0] <= true[:, 0]) and np.all(true[:, 1] <= found[:, 1]))
                    assert inside or farthest == radius + 1, (counts, noises)
                    held, beyond = held + inside, beyond + (not inside)
    assert beyond > 0, "a smaller radius does"
    return f"intervals hold all quantiles while running sums are within the radius: {held} cases; {beyond} beyond fail"


@check(
    "ours:count-intervals",
    code=martingale_radius,
    rejects=[
        lambda *known: martingale_radius(*known) - 1,
        lambda *known: martingale_radius(*known) // 2,
        lambda noise, count, risk: martingale_radius(noise, 1, risk),
        lambda noise, count, risk: martingale_radius(noise, count, 2 * risk),
    ],
)
def check_doob(subject: Callable[[DiscreteLaplace, int, float], int] = martingale_radius) -> str:
    """Doob's inequality, for every law: the noise's exponential moment M, at least one (sympy, z3); a sum that has
    passed the radius has M or more in each step that is left. In 27 laws 2 M^count e^(-t (r + 1)) is at most the risk
    at some t."""
    a, up = sympy.symbols("a up", positive=True)
    decay, base = z3.Reals("decay base")
    sides = [a * v / (1 - a * v) for v in (up, 1 / up)]  # geometric sums of a^k e^(t k), k >= 1, and of negative k
    moment = (1 - a) ** 2 / ((1 - a * up) * (1 - a / up))
    assert sympy.simplify((1 - a) / (1 + a) * (1 + sum(sides)) - moment) == 0
    below = (decay > 0, decay < 1, base > 1, decay * base < 1)
    follows(*below, goal=(1 - decay) ** 2 * base >= (1 - decay * base) * (base - decay))
    early, late, level, grown = z3.Reals("early late level grown")  # chances of first passing it sooner and last
    follows(
        early >= 0,
        late >= 0,
        level > 0,
        grown >= 1,
        goal=(early + late) * level <= early * level * grown + late * level,
    )
    cases = 0
    for epsilon, count, risk in itertools.product((F(1, 200), F(1, 2), F(3)), (1, 9, 400), (0.5, 0.05, 1e-9)):
        noise = DiscreteLaplace(epsilon)
        tilts, off = noise.rate * np.linspace(0.0, 1.0, 400)[1:-1], math.exp(-noise.rate)
        logs = 2 * math.log1p(-off) - np.log1p(-off * np.exp(tilts)) - np.log1p(-off * np.exp(-tilts))
        radius = subject(noise, count, risk)
        assert np.min(count * logs - tilts * (radius + 1)) <= math.log(risk / 2) + 1e-9, (epsilon, count, risk)
        cases += 1
    return f"Doob's radius of running sums: the moment, the passage and the risk, {cases} laws"
