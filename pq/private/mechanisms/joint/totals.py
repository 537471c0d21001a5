"""Which totals of a joint release are worth weighing, where there are very many (Section 3.2).

That happens where outputs cannot have the ranks that they should: columns without a grid in which many records are
equal, priors that are far from all records. S moves by at most one per unit of nu, so the log of what a total weighs
moves by at most `across` from one total of the grid to the next. Between two that are weighed, at numbers a < b, none
weighs more than exp((w_a + w_b + across (b - a)) / 2). The stretch with the largest bound is cut where its bound is
largest, until all bounds together are below e^-margin of what is weighed.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pq.core.scores import log_sum
from pq.private.columns.door import Array

Ints = npt.NDArray[np.int64]
ROUNDING = 1e-6  # nats that a sum kept while going may be off


@dataclass(frozen=True)
class Totals:
    """The totals of the grid in a stretch: `first`, `first + 1`, ... times the unit, `size` of them.

    They may be more than there is memory for.

    >>> Totals(3, 2, 0.5).at(1), Totals(3, 2, 0.5).every()
    (2.0, array([1.5, 2. ]))
    """

    first: int
    size: int
    unit: float

    def at(self, number: int) -> float:
        return float(self.first + number) * self.unit

    def every(self) -> Array:
        """All of them (size,): where they are few."""
        return np.arange(self.first, self.first + self.size, dtype=np.float64) * self.unit


NO_TOTALS = Totals(0, 0, 1.0)


@dataclass(frozen=True)
class Skipped:
    """Stretches of totals that are not weighed.

    firsts: (s,) numbers of their first totals. sizes: (s,) totals in each. log_each: (s,) log bound on each total.
    """

    firsts: Ints
    sizes: Ints
    log_each: Array

    @property
    def log_bounds(self) -> Array:
        """(s,) of whole stretches."""
        return self.log_each + np.log(self.sizes)


NONE_SKIPPED = Skipped(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))


def search_totals(
    log_weight: Callable[[int], float], count: int, across: float, margin: float
) -> tuple[Ints, Array, Skipped]:
    """The numbers among 0..count - 1 that matter, their log weights, and the stretches between that do not.

    >>> numbers, weights, skipped = search_totals(lambda i: -0.5 * abs(i - 7000), 10_000, 1.0, 12.0)
    >>> bool(7000 in numbers), len(numbers) < 200, len(numbers) + int(skipped.sizes.sum())
    (True, True, 10000)
    """
    known = {i: log_weight(i) for i in {0, count - 1}}
    whole = log_sum(np.array(list(known.values())))
    stretches = [(-_peak(known, 0, count - 1, across), 0, count - 1)] if count > 2 else []
    while stretches:
        if -stretches[0][0] <= whole - margin + ROUNDING:  # else one is too large, and all need not be added up
            bounds = np.array([math.log(b - a - 1) - negative for negative, a, b in stretches])
            if log_sum(bounds) <= log_sum(np.array(list(known.values()))) - margin:
                break
        _, a, b = heapq.heappop(stretches)
        highest = 0.5 * (a + b) + 0.5 * (known[b] - known[a]) / across
        cut = min(max(round(highest), a + 1), b - 1)
        known[cut] = log_weight(cut)
        whole = float(np.logaddexp(whole, known[cut]))
        for one, other in ((a, cut), (cut, b)):
            if other - one > 1:
                heapq.heappush(stretches, (-_peak(known, one, other, across), one, other))
    numbers = np.array(sorted(known), dtype=np.int64)
    left = sorted((a + 1, b - a - 1, -negative) for negative, a, b in stretches)
    firsts, sizes, each = np.array(left).reshape(-1, 3).T
    return numbers, np.array([known[i] for i in numbers.tolist()]), Skipped(firsts.astype(int), sizes.astype(int), each)


def _peak(known: dict[int, float], a: int, b: int, across: float) -> float:
    return 0.5 * (known[a] + known[b] + across * (b - a))
