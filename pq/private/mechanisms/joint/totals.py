"""Which totals of a joint release are worth weighing, where there are very many (Section 3.2).

That happens where outputs cannot have the ranks that they should: columns in which many records are equal, priors that
are far from all records. Every way to place outputs has a score that is convex in the total. Let all scores go on along
tangents from a total a: then each way weighs at least what it should, and exponentially more or less from total to
total, so that the log of the sum is convex. Up to another total b it is below a straight line from what a weighs to
what b weighs along these tangents; and so below another line from b. A stretch of totals between a and b is thus below
a *tent* of two lines. The stretch that can weigh most is cut where its tent is highest. It is *settled* once its tent
is a straight line that what it holds nearly reaches: a draw from the tent is then as good as one from the law. All ends
when what is not settled has bounds below e^-margin of the whole.

That a settled stretch nearly reaches its tent is only looked at in its middle, and nothing but time depends on it.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pq.core.scores import log_sum
from pq.private.columns.door import Array
from pq.private.mechanisms.joint.score import log_series

Ints = npt.NDArray[np.int64]
CLOSE = 0.5  # nats within which a tent is straight, and is reached
LONG = 32  # totals from which on tangents pay


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
    """Stretches of totals that are not weighed, each below a line.

    firsts: (s,) numbers of their first totals. sizes: (s,) totals in each. log_firsts: (s,) log bound on the first of
    each. slopes: (s,) what it grows by from one total to the next.
    """

    firsts: Ints
    sizes: Ints
    log_firsts: Array
    slopes: Array

    @cached_property
    def log_bounds(self) -> Array:
        """(s,) of whole stretches."""
        parts = zip(self.sizes.tolist(), self.log_firsts.tolist(), self.slopes.tolist(), strict=True)
        return np.array([log_line(size, first, slope) for size, first, slope in parts])

    def draw(self, i: int, uniform: float) -> tuple[int, float]:
        """A number of stretch i in proportion to its bound, and the log of that bound.

        >>> Skipped(np.array([5]), np.array([3]), np.array([0.0]), np.array([math.log(2.0)])).draw(0, 3.5 / 7)
        (7, 1.3862943611198906)
        """
        size, slope = int(self.sizes[i]), float(self.slopes[i])
        fall = abs(slope)
        down = uniform * size if fall * size < 1e-13 else math.log1p(uniform * math.expm1(-fall * size)) / -fall
        steps = min(int(down), size - 1)  # from the largest bound
        place = size - 1 - steps if slope > 0.0 else steps
        return int(self.firsts[i]) + place, float(self.log_firsts[i]) + slope * place


def log_line(size: int, log_first: float, slope: float) -> float:
    """log of the sum of `size` terms on a line."""
    return log_series(log_first + max(slope, 0.0) * (size - 1), -abs(slope), size)


NONE_SKIPPED = Skipped(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))


class LogWeight(Protocol):
    """Log of what total `number` weighs if all scores are those on tangents at total `bent_at`."""

    def __call__(self, number: int, bent_at: int) -> float: ...


@dataclass(frozen=True, order=True)
class _Tent:
    """The totals between two that are weighed, and lines from both that all between are below.

    negative: less the log of what they weigh together at most, for the heap. a, b: numbers of the two. log_a, log_b:
    what these weigh. up, down: slopes from a to the right, and from b to the left. is_traced: whether they come from
    tangents.
    """

    negative: float
    a: int
    b: int
    log_a: float
    log_b: float
    up: float
    down: float
    is_traced: bool

    @classmethod
    def between(cls, known: dict[int, float], a: int, b: int, up: float, down: float, is_traced: bool) -> _Tent:
        tent = cls(math.nan, a, b, known[a], known[b], up, down, is_traced)
        return replace(tent, negative=-log_sum(np.array([log_line(*line[1:]) for line in tent.lines()])))

    @property
    def crossing(self) -> float:
        """Where the lines cross and the tent is highest, as a distance from a; no line is above the other elsewhere."""
        reach, lean = self.b - self.a, self.up + self.down
        if not lean > 0.0:  # they are one line
            return 0.5 * reach
        return min(max((self.log_b - self.log_a + self.down * reach) / lean, 0.0), float(reach))

    @property
    def is_straight(self) -> bool:
        """Whether it is nowhere far above the line between both ends."""
        return (self.up - (self.log_b - self.log_a) / (self.b - self.a)) * self.crossing <= CLOSE

    @property
    def cut(self) -> int:
        """A number between: where the tent is highest, or in the middle of a straight one."""
        place = 0.5 * (self.b - self.a) if self.is_straight else self.crossing
        return min(max(self.a + round(place), self.a + 1), self.b - 1)

    def at(self, number: int) -> float:
        """The log bound on what a total weighs."""
        return min(self.log_a + self.up * (number - self.a), self.log_b + self.down * (self.b - number))

    def lines(self) -> list[tuple[int, int, float, float]]:
        """First number, size, log bound on the first, and slope of the totals under each line."""
        last = min(self.a + math.floor(self.crossing), self.b - 1)
        left = self.a + 1, last - self.a, self.log_a + self.up, self.up
        right = last + 1, self.b - last - 1, self.log_b + self.down * (self.b - last - 1), -self.down
        return [line for line in (left, right) if line[1] > 0]


def search_totals(
    log_weight: LogWeight, count: int, across: float, margin: float, settles: bool = True
) -> tuple[Ints, Array, Skipped]:
    """The numbers among 0..count - 1 that matter, their log weights, and the stretches that are left to their bounds.

    across: nats by which the log weight of a total is above that of the one before or after at most. settles: whether
    stretches may be settled; else all bounds together are below e^-margin of what is weighed.

    >>> def log_weight(number: int, bent_at: int) -> float:  # one way, whose score has its bend at 7000
    ...     return -0.5 * (number - 7000 if bent_at >= 7000 else 7000 - number)
    >>> numbers, weights, skipped = search_totals(log_weight, 10_000, 1.0, 12.0)
    >>> bool(7000 in numbers), len(numbers) < 60, len(numbers) + int(skipped.sizes.sum())
    (True, True, 10000)
    """
    known = {i: log_weight(i, i) for i in {0, count - 1}}
    whole = log_sum(np.array(list(known.values())))
    settled: list[_Tent] = []
    unsettled = [_Tent.between(known, 0, count - 1, across, across, False)] if count > 2 else []
    while unsettled:
        enough = whole - margin  # if one is too large, all need not be added up
        if -unsettled[0].negative <= enough and log_sum(np.array([-t.negative for t in unsettled])) <= enough:
            break
        tent = heapq.heappop(unsettled)
        a, b, cut = tent.a, tent.b, tent.cut
        if not tent.is_traced and b - a > LONG and tent.log_a > -math.inf:
            up, down = (log_weight(b, a) - tent.log_a) / (b - a), (log_weight(a, b) - tent.log_b) / (b - a)
            heapq.heappush(unsettled, _Tent.between(known, a, b, up, down, True))
            continue
        weight = log_weight(cut, cut)
        if settles and tent.is_straight and tent.at(cut) <= weight + CLOSE:
            settled.append(tent)
            whole = float(np.logaddexp(whole, -tent.negative - 2.0 * CLOSE))
            continue
        known[cut] = weight
        whole = float(np.logaddexp(whole, weight))
        for one, other in ((a, cut), (cut, b)):
            if other - one > 1:
                heapq.heappush(unsettled, _Tent.between(known, one, other, across, across, False))
    numbers = np.array(sorted(known), dtype=np.int64)
    lines = sorted(line for tent in unsettled + settled for line in tent.lines())
    firsts, sizes, each, slopes = np.array(lines).reshape(-1, 4).T
    skipped = Skipped(firsts.astype(np.int64), sizes.astype(np.int64), each, slopes)
    return numbers, np.array([known[i] for i in numbers.tolist()]), skipped
