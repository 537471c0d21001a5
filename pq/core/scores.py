"""How far ranks are from a target, exactly, and the scores that follow from it (`lem:quantile`, `eq:gap`).

A target `q n` is a whole number and a part below one. The distance of a range of ranks from it is again a whole number,
plus or minus that part, so the difference of two distances comes from integers and at most two parts: it has all its
digits for 2^53 records as for three, and so does the exponential score relative to another one.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
EXACT_BELOW = 8.0  # parts: nearer distances are told apart by fractions where the rate is so high that it matters
SPLITTER = 2.0**27 + 1.0  # takes the upper half of a float's digits
HIGH_RATE = 1e6  # nats for a part of a record


class Target(NamedTuple):
    """A rank aimed at, `whole + part` with 0 <= part < 1, in parts of a record."""

    whole: int
    part: Fraction

    @classmethod
    def of(cls, relative: Fraction, n: int, calibration: str, public_total: int | None = None) -> Target:
        """The target among records of total weight n: `floor(q n)` ("paper"), `q n` ("sharp") or, where the total n0 is
        public, `q n0 + (n - n0) / 2` ("shifted"), in which each record that n0 is off moves it by q - 1/2.

        >>> Target.of(Fraction(29, 100), 100, "paper"), Target.of(Fraction(1, 3), 1, "sharp")
        (Target(whole=29, part=Fraction(0, 1)), Target(whole=0, part=Fraction(1, 3)))
        >>> Target.of(Fraction(9, 10), 103, "shifted", 100)
        Target(whole=91, part=Fraction(1, 2))
        """
        product = relative * n
        if calibration == "shifted":
            assert public_total is not None
            product = relative * public_total + Fraction(n - public_total, 2)
        whole = math.floor(product)
        return cls(whole, Fraction(0) if calibration == "paper" else product - whole)


@dataclass(frozen=True)
class Distances:
    """Distances `whole + side * part` of ranges of ranks from a target: (c,) integers, and signs -1, 0 or 1."""

    whole: npt.NDArray[np.int64]
    side: npt.NDArray[np.int8]
    part: Fraction

    @classmethod
    def of(cls, low: Any, high: Any, target: Target) -> Distances:
        """Of the ranges low..high (c,) of ranks.

        >>> Distances.of(np.array([0, 2]), np.array([0, 3]), Target(1, Fraction(1, 4))).exact(0)
        Fraction(5, 4)
        """
        above = low > target.whole  # a range that begins above the target
        below = high <= target.whole  # or ends at its whole part at most
        whole = np.where(above, low - target.whole, np.where(below, target.whole - high, 0))
        side = np.where(above, -1, np.where(below, 1, 0)).astype(np.int8)
        return cls(whole, side, target.part)

    def exact(self, k: int) -> Fraction:
        return int(self.whole[k]) + int(self.side[k]) * self.part

    def scores(self, rate: float, reference: int) -> Array:
        """Log scores (c,) of an exponential mechanism, relative to that of one range: `-rate` times the difference of
        the distances."""
        whole, side = self.whole - self.whole[reference], self.side - self.side[reference]
        difference = whole + side * float(self.part)
        if rate > HIGH_RATE:
            for k in np.flatnonzero(np.abs(difference) < EXACT_BELOW).tolist():
                difference[k] = float(self.exact(k) - self.exact(reference))
        return np.asarray(-rate * difference)

    def best(self, possible: Any) -> int:
        """Index of a range of least distance among those that are possible, a mask (c,) that is not all false."""
        distance = np.where(possible, self.whole + self.side * float(self.part), np.inf)
        near = np.flatnonzero(distance <= np.min(distance) * (1.0 + 1e-12) + 1e-9)
        return int(min(near.tolist(), key=self.exact)) if near.size < 64 else int(np.argmin(distance))


def rest_of_product(a: Any, b: Any, product: Any) -> Any:
    """What the rounded product of two floats lacks, exactly, where halves of their digits multiply without rounding.

    >>> rest_of_product(2.0**52 + 1.0, 3.0, (2.0**52 + 1.0) * 3.0)  # 3 * 2^52 + 3 is no float
    -1.0
    """
    a_high, b_high = SPLITTER * a, SPLITTER * b
    a_high, b_high = a_high - (a_high - a), b_high - (b_high - b)
    a_low, b_low = a - a_high, b - b_high
    return a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def log_sum(log_weights: Array) -> float:
    """log of the sum of exp(log_weights), -inf for nothing."""
    top = float(np.max(log_weights, initial=-math.inf))
    return top + math.log(float(np.sum(np.exp(log_weights - top)))) if top > -math.inf else -math.inf


def log_rank_scores(low: Any, high: Any, target: Array | float, rate: float) -> Array:
    """Log of the exponential score of cells that stand for ranks low..high, in floats: `-rate` times the target's
    distance. For columns of few records; see `Distances` for others."""
    distance = np.maximum(np.maximum(low - target, target - high), 0.0)
    return np.asarray(-rate * distance if math.isfinite(rate) else -distance)


def target_rank(relative: Fraction, n: float, calibration: str) -> float:
    """The target as a float.

    >>> target_rank(Fraction(29, 100), 100, "paper"), target_rank(Fraction(1, 3), 1, "sharp")
    (29.0, 0.3333333333333333)
    """
    product = relative * Fraction(n)
    return float(math.floor(product) if calibration == "paper" else product)


def log_less(rest: float, far: Fraction) -> float:
    """A number less an exact one; minus infinity where that lies beyond the floats.

    >>> log_less(0.5, Fraction(3)), log_less(0.5, Fraction(10) ** 400)
    (-2.5, -inf)
    """
    return rest - float(far) if far <= sys.float_info.max else -math.inf


def sum_of_parts(terms: Iterable[tuple[Fraction, float]]) -> tuple[Fraction, float]:
    """Log densities, each as minus an exact number of nats plus a float, added up; the floats perhaps to -inf.

    >>> sum_of_parts([(Fraction(1, 2), -1e308), (Fraction(1, 3), -1e308)])
    (Fraction(5, 6), -inf)
    """
    exact, rests = zip((Fraction(0), 0.0), *terms, strict=True)
    return sum(exact, Fraction(0)), math.fsum(rest * 2.0**-30 for rest in rests) * 2.0**30  # less than 2^30 steps
