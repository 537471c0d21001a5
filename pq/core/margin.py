"""The margin of a candidate on a grid: what single quantiles and trees aim by, its sensitivity and cost (`eq:gap`).

**Margin.** For records of total weight n, a target rank t and a candidate o, let F(o) count the records up to o and
F(o-) those below it. The utility is `min(F(o) - t, t - F(o-))`: minus the gap where o is wrong, and where it is right,
by how many ranks. The gap alone says the same of a value that holds the rank barely and of one that holds it by far.

**Open ends.** Nothing can come out above the last candidate or below the first, so that the last needs no records above
it and the first none below: F(last) counts as infinite, F(first-) as minus infinite. First and last come from the
prior's support and earlier outputs, never from records.

**Sensitivity** (`pq.core.sensitivity`). *Add-remove*, t = q n: with a record more at v, t rises by q, F(o) by [v <= o]
and F(o-) by [v < o]. So F(o) - t and t - F(o-) each move by -q, q, 1 - q or q - 1, and their minimum, or one alone at
an open end, by at most max(q, 1 - q). *Add-remove* with a `public_total` n0, t = q n0 + (n - n0) / 2: the same with 1/2
for q, so at most 1/2. *Replace*: t is fixed, F(o) and F(o-) move by at most 1. A record of weight w moves a node's
margins by w times as much, and those of nodes below the root as there. All this holds for `-|rank - t|` and continuous
outputs as well.

**Split ties.** A node of a tree may also say which share s of the records at its output lies below: candidates are
pairs (o, s). With a record more, the rank F(o-) + s (F(o) - F(o-)) rises by [v < o] + s [v = o], from 0 to 1, so that
its distance d from t moves by no more than the margin M may. The utility is `max(min(M, cap - d), (M - d) / 2)` for a
public cap: minima, maxima and means of functions of one sensitivity have that sensitivity (`Margins.of_pairs`). The
first part decides between values that few records hold. Without the second, a value that most records hold would be
worth no more than the cap above others wherever no share comes near the target. The children get s and 1 - s of each of
these records (`split_ties`).

**Cost** (`zcdp_cost`). A law with log weights `rate * utility`, rate = epsilon / (2 sensitivity), is epsilon-private,
be it the exponential mechanism's or permute-and-flip's. The first is also of bounded range epsilon, hence epsilon^2 /
8-zCDP. The second is not: candidates {0, 1}, q = 1/2, columns (0, 1) and (1,) have losses epsilon and -log(2 -
e^-epsilon).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pq.core.scores import Array, Distances, Target

SHARES_OF_ONE = 1 << 10
Part = tuple[float, float, int, int]  # of a column: low, high, and the parts of each record at low and at high in it


@dataclass(frozen=True)
class Margins:
    """Margins `whole + side * part` of candidates: (c,) integers in parts of a record, and signs -1, 0 or 1.

    As in `pq.core.scores`, differences come from integers, so that they have all their digits for 2^53 records.
    """

    whole: npt.NDArray[np.int64]
    side: npt.NDArray[np.int8]
    part: Fraction

    @classmethod
    def of(cls, below: Any, up_to: Any, first: Any, last: Any, target: Target) -> Margins:
        """Of candidates with so many records (c,) below and up to them; first, last: (c,) masks of open ends.

        >>> shut = np.zeros(2, dtype=bool)
        >>> one = Margins.of(np.array([0, 1]), np.array([1, 3]), shut, shut, Target(1, Fraction(1, 4)))
        >>> one.exact(0), one.exact(1)
        (Fraction(-1, 4), Fraction(1, 4))
        """
        shape, part = np.shape(below), target.part
        above = cls(np.asarray(up_to - target.whole), np.full(shape, -1, dtype=np.int8), part)
        under = cls(np.asarray(target.whole - below), np.full(shape, 1, dtype=np.int8), part)
        return above._where(~last & (first | above._below(under)), under)

    @classmethod
    def capped(cls, ranks: Any, cap: int, target: Target) -> Margins:
        """A cap minus the distance of ranks (c,) from the target."""
        above = ranks > target.whole
        whole = np.where(above, cap - (ranks - target.whole), cap - (target.whole - ranks))
        return cls(whole, np.where(above, 1, -1).astype(np.int8), target.part)

    @classmethod
    def of_pairs(cls, margins: Margins, ranks: Any, cap: int, target: Target) -> Margins:
        """Utilities of pairs of a value and a share, by the margins of the values and the ranks (c,) that they split
        at. Ranks, also those of the margins, must be even: a record has an even number of parts.

        >>> shut, target = np.zeros(3, dtype=bool), Target(50, Fraction(1, 2))
        >>> tie = Margins.of(np.full(3, 0), np.full(3, 400), shut, shut, target)  # M = 50.5
        >>> [float(Margins.of_pairs(tie, np.array([0, 200, 400]), 8, target).exact(k)) for k in range(3)]
        [0.0, -49.5, -149.5]
        """
        capped = cls.capped(ranks, cap, target)
        uncapped = replace(capped, whole=capped.whole - cap)
        least = margins._where(margins._below(capped), capped)
        mean = margins._mean(uncapped)
        return mean._where(least._below(mean), least)

    def take(self, index: Any) -> Margins:
        return Margins(self.whole[index], self.side[index], self.part)

    def _mean(self, other: Margins) -> Margins:
        """Half the sum, exactly: the sum of two distances from one target to even ranks is even."""
        half = (self.whole >> 1) + (other.whole >> 1) + (self.whole & other.whole & 1)
        return Margins(half, (self.side + other.side) // 2, self.part)

    def _where(self, mine: Any, other: Margins) -> Margins:
        whole, side = np.where(mine, self.whole, other.whole), np.where(mine, self.side, other.side)
        return Margins(whole, side, self.part)

    def _below(self, other: Margins) -> Any:
        """Whether each is at most another, exactly."""
        apart = np.array([math.floor(sides * self.part) for sides in range(-2, 3)])
        return self.whole <= other.whole + apart[other.side - self.side + 2]

    def exact(self, k: int) -> Fraction:
        return int(self.whole[k]) + int(self.side[k]) * self.part

    def scores(self, rate: float, reference: int) -> Array:
        """Log scores (c,), `rate` times each relative to one of them; see `pq.core.scores.Distances.scores`."""
        return Distances(-self.whole, -self.side, self.part).scores(rate, reference)

    def best(self, possible: Any) -> int:
        """Index of a largest margin among those that are possible, a mask (c,); any if none is."""
        if not np.any(possible):
            return 0
        top = int(np.max(self.whole, where=possible, initial=np.iinfo(np.int64).min))
        return Distances(top - self.whole, -self.side, self.part).best(possible)


def zcdp_cost(epsilon: Fraction, flips: bool) -> Fraction:
    """The zCDP cost of one draw, exact: `epsilon^2 / 8`, for permute-and-flip `epsilon^2 / 2`, as of any pure privacy.

    >>> zcdp_cost(Fraction(1), False), zcdp_cost(Fraction(1), True)
    (Fraction(1, 8), Fraction(1, 2))
    """
    return epsilon**2 / (2 if flips else 8)


def split_at(held: Any, share: Any) -> Any:
    """The part of even numbers (c,) of parts that lies below, rounded down to an even one. share: (c,) multiples of
    2^-10 in [0, 1]. In integers: with w parts more, this and what lies above grow by 0 to w parts, however many there
    are; products of floats may grow by more.

    >>> split_at(np.array([2**61 - 2, 10]), np.array([0.875, 0.5])).tolist(), 7 * 2**58 - 2
    ([2017612633061982206, 4], 2017612633061982206)
    """
    halves, number = np.asarray(held, dtype=np.int64) >> 1, np.rint(np.asarray(share) * SHARES_OF_ONE).astype(np.int64)
    whole, rest = np.divmod(halves, SHARES_OF_ONE)
    return 2 * (whole * number + rest * number // SHARES_OF_ONE)


def split_ties(interval: Part, outputs: Sequence[float], shares: Sequence[float], unit: int) -> list[Part]:
    """The intervals between a node's sorted outputs, with the parts of the records at each end that they hold.

    shares: for each output, which part of its records lies below it. unit: parts of a record, an even number, as is
    that of the parts of each record in an interval. The parts of a record in all intervals sum to at most its weight in
    the node, whatever the outputs: with these released, its total loss stays within the budget of a path.

    >>> split_ties((0.0, 9.0, 2, 4), [4.0], [0.25], 8)
    [(0.0, 4.0, 2, 2), (4.0, 9.0, 6, 4)]
    """
    low, high, low_share, high_share = interval
    weights = [low_share if o == low else high_share if o == high else unit for o in outputs]
    left = [int(split_at(w, s)) for s, w in zip(shares, weights, strict=True)]
    below = [low_share, *(w - part for part, w in zip(left, weights, strict=True))]
    above = [*left, high_share]
    return list(zip((low, *outputs), (*outputs, high), below, above, strict=True))
