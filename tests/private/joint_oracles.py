"""Slow, obviously right versions of the joint law: every way to place outputs in cells is written out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Weigh = Callable[[Sequence[float]], float]


def between(x: Sequence[float], outputs: Sequence[float]) -> list[float]:
    """Records between neighbouring outputs, counted one by one."""
    edges = [-math.inf, *outputs, math.inf]
    return [sum(low < (v + 0.0) and not high <= v for v in x) if low == -math.inf else sum(low <= v < high for v in x)
            for low, high in itertools.pairwise(edges)]  # fmt: skip


def score(counts: Sequence[float], shares: Sequence[float], total: float) -> float:
    return math.fsum(abs(c - total * p) for c, p in zip(counts, shares, strict=True))


def best_score(counts: Sequence[float], shares: Sequence[float]) -> float:
    """By golden section, not by corners."""
    low, high = 0.0, 1.0 + max((c / p for c, p in zip(counts, shares, strict=True) if p > 0), default=0.0)
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(70):
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        if score(counts, shares, a) <= score(counts, shares, b):
            high = b
        else:
            low = a
    return score(counts, shares, 0.5 * (low + high))


def shares_of(quantiles: Sequence[float]) -> list[float]:
    return [b - a for a, b in itertools.pairwise([0.0, *quantiles, 1.0])]


def ways(edges: Sequence[float], k: int) -> Iterator[tuple[tuple[int, ...], list[float], float]]:
    """Each way to put k sorted outputs into the cells between edges: the cells, one point inside, and its volume."""
    for cells in itertools.combinations_with_replacement(range(len(edges) - 1), k):
        point, volume = [], 1.0
        for cell in sorted(set(cells)):
            g, low, width = cells.count(cell), edges[cell], edges[cell + 1] - edges[cell]
            point += [low + width * (i + 1) / (g + 1) for i in range(g)]
            volume *= width**g / math.factorial(g)
        if volume > 0.0:
            yield cells, point, volume


def log_kernel(x: Sequence[float], quantiles: Sequence[float], rate: float, total: float | None) -> Weigh:
    """Log score of a point: at one total, or at the best one."""
    shares = shares_of(quantiles)

    def weigh(point: Sequence[float]) -> float:
        counts = between(x, point)
        return -rate * (best_score(counts, shares) if total is None else score(counts, shares, total))

    return weigh


def remember_normalisers(module: Any) -> Callable[..., float]:
    """The module's `log_normaliser`, computed once for each column."""
    known: dict[Any, float] = {}
    compute = module.log_normaliser

    def remembered(plan: Any, records: Any) -> float:
        key = plan, records.values.tobytes(), None if records.ranks is None else records.ranks.tobytes()
        if key not in known:
            known[key] = compute(plan, records)
        return known[key]

    return remembered
