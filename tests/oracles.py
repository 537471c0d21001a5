"""Slow, obviously right versions, written straight from the paper and independent of the package.

Everything works on sorted lists of distinct numbers and weighs every interval.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np


def release(
    x: Sequence[float],
    quantiles: Sequence[Fraction],
    epsilons: Sequence[float],
    arity: int,
    support: tuple[float, float],
    rule: str,
    sharp: bool,
    rng: random.Random,
) -> list[float]:
    """The pseudocode of `alg:quantiles` with a uniform prior on `support`, line by line, 1-based indices as printed.

    epsilons are the algorithm's inputs: a node with |i| quantiles spends epsilons[i] / |i| on each.
    """

    def cdf(o: np.ndarray) -> np.ndarray:
        return np.clip((o - support[0]) / (support[1] - support[0]), 0.0, 1.0)

    def quantile(points: list[float], q: Fraction, epsilon: float, a: float, b: float) -> float:
        n = len(points)
        target = float(q * n) if sharp else math.floor(q * n)
        rate = epsilon / 2 / (float(max(q, 1 - q)) if sharp else 1.0)
        edges = np.array([a, *points, b])
        atoms = np.array([0.0, 0.0])
        if rule == "edge":
            atoms = np.array([cdf(edges[0]), 1 - cdf(edges[-1])]) * np.exp(-rate * np.abs(np.array([0, n]) - target))
        intervals = np.exp(-rate * np.abs(np.arange(n + 1) - target)) * np.diff(cdf(edges))
        k = rng.choices(range(n + 3), cum_weights=np.cumsum([*atoms, *intervals]).tolist())[0]
        if k < 2:
            return (a, b)[k]
        return rng.uniform(max(edges[k - 2], support[0]), min(edges[k - 1], support[1]))

    def recurse(j: list[int], q_low: Fraction, q_high: Fraction, a: float, b: float) -> list[float]:
        if not j:
            return []
        size = len(j)
        chosen = [j[math.ceil(Fraction(l * size, arity)) - 1] for l in range(1, arity)] if size >= arity else j
        points = [v for v in x if a < v < b]
        o = sorted(
            quantile(points, (quantiles[i - 1] - q_low) / (q_high - q_low), epsilons[i - 1] / len(chosen), a, b)
            for i in chosen
        )
        if size < arity:
            return o
        cuts = [0, *(math.ceil(Fraction(l * size, arity)) for l in range(1, arity)), size + 1]
        qs = [q_low, *(quantiles[i - 1] for i in chosen), q_high]
        outs = [a, *o, b]
        result: list[float] = []
        for c in range(arity):
            result += recurse(j[cuts[c] : cuts[c + 1] - 1], qs[c], qs[c + 1], outs[c], outs[c + 1])
            if c < arity - 1:
                result.append(o[c])
        return result

    return recurse(list(range(1, len(quantiles) + 1)), Fraction(0), Fraction(1), -math.inf, math.inf)


def gap(x: Sequence[float], q: Fraction, o: float) -> int:
    """`eq:gap`, and with ties the distance of the rank from the range of ranks that the tied value stands for."""
    target = math.floor(q * len(x))
    below, equal = sum(v < o for v in x), sum(v == o for v in x)
    ranks = range(below, below + equal + 1) if equal > 1 else [below]
    return min(abs(r - target) for r in ranks)


def paths(m: int, arity: int) -> list[list[tuple[int, ...]]]:
    """Every root-to-leaf path of `alg:quantiles` as lists of the 1-based indices that each node estimates."""

    def recurse(j: list[int]) -> Iterator[list[tuple[int, ...]]]:
        size = len(j)
        if size < arity:
            yield [tuple(j)]
            return
        cuts = [0, *(math.ceil(Fraction(l * size, arity)) for l in range(1, arity)), size + 1]
        chosen = tuple(j[c - 1] for c in cuts[1:-1])
        below = [j[cuts[c] : cuts[c + 1] - 1] for c in range(arity)]
        if not any(below):
            yield [chosen]
        for child in filter(None, below):
            yield from ([chosen, *path] for path in recurse(child))

    return list(recurse(list(range(1, m + 1))))


def neighbours(x: Sequence[float], values: Sequence[float], replace: bool) -> Iterator[list[float]]:
    """All data sets that differ from x in one record, new records taken from `values`."""
    if replace:
        for k, v in itertools.product(range(len(x)), values):
            yield sorted([*x[:k], *x[k + 1 :], v])
    else:
        yield from (list(x[:k]) + list(x[k + 1 :]) for k in range(len(x)))
        yield from (sorted([*x, v]) for v in values)
