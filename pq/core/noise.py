"""Discrete Laplace noise, exact: what a count of records needs to be private (Section 3.1).

A whole number k has probability `(1 - a) / (1 + a) a^|k|` with `a = e^-epsilon`. It is the difference of two geometric
numbers, and a geometric number has independent binary digits: digit i is one with probability
`1 / (1 + e^(epsilon 2^i))`. From the first digit D with `e^(-epsilon 2^D)` below the resolution of one word on, what
is left is again geometric. So noise is comparisons of random words with thresholds. A word that equals the whole part
of its threshold decides nothing; further words then follow, beside further bits of the threshold, until they differ:
the law is exact, not an approximation of 64 bits. Thresholds come from `decimal`, whose exponential is rounded
correctly, as bounds from both sides.

Guarantees: no logarithm or exponential of a float takes part in a draw. The number of words read does not depend on
the outcome but with probability below 2^-40.
"""

from __future__ import annotations

import decimal
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from pq.core.exact import float_below
from pq.core.sensitivity import LARGEST_RATE

Source = Callable[[int], bytes]  # so many random bytes: `os.urandom`, or `numpy.random.Generator.bytes` for tests
IntArray = npt.NDArray[np.int64]

WORD = 64  # bits
LEAST_EPSILON = Fraction(1, 2**40)  # the noise of less does not fit beside the counts
DROPPED_BITS, ONE = np.uint64(11), np.uint64(1)


def random_words(count: int, source: Source) -> npt.NDArray[np.uint64]:
    """Random 64-bit words (count,)."""
    return np.frombuffer(source(8 * count), dtype="<u8").astype(np.uint64)


def random_uniforms(count: int, source: Source) -> list[float]:
    """Uniforms strictly inside (0, 1): odd multiples of 2^-53.

    >>> all(0.0 < u < 1.0 for u in random_uniforms(3, os.urandom))
    True
    """
    odd = random_words(count, source) >> DROPPED_BITS | ONE
    return [float(u) for u in odd * 2.0**-53]


@lru_cache(maxsize=4096)
def threshold(exponent: Fraction, plus: int, bits: int) -> int:
    """The whole part of `2^bits / (e^exponent + plus)`, exactly.

    exponent: positive. plus: 0 or 1. The number itself is never whole, as e^exponent is transcendental.

    >>> threshold(Fraction(1), 0, 8), threshold(Fraction(1), 1, 8)
    (94, 68)
    """
    if exponent >= bits:  # e^exponent is then above 2^bits
        return 0
    digits = bits // 3 + 10
    while True:
        low, high = _exponential_bounds(exponent, digits)
        least, most = ((1 << bits) // (power + plus) for power in (high, low))
        if least == most:
            return int(least)
        digits *= 2


def _exponential_bounds(exponent: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Rationals below and above e^exponent, apart by a few units of the last of so many digits."""
    bounds = []
    for rounding, outward in ((decimal.ROUND_FLOOR, "next_minus"), (decimal.ROUND_CEILING, "next_plus")):
        context = decimal.Context(prec=digits, rounding=rounding, traps=[])
        power = context.divide(decimal.Decimal(exponent.numerator), decimal.Decimal(exponent.denominator))
        bounds.append(Fraction(getattr(context.exp(power), outward)(context)))
    return bounds[0], bounds[1]


@dataclass(frozen=True)
class DiscreteLaplace:
    """The law `(1 - a) / (1 + a) a^|k|` on the whole numbers, a = e^-epsilon: privacy for a count that a record moves
    by one.

    epsilon: from 2^-40 on, an exact rational, or infinity (no noise). Raises `ValueError` naming it.

    >>> noise = DiscreteLaplace(Fraction(1))
    >>> noise.draw(3, np.random.default_rng(0).bytes).shape
    (3,)
    >>> round(float(noise.log_mass(0)), 6), round(noise.variance, 6)
    (-0.771937, 1.841347)
    """

    epsilon: Fraction | float

    def __post_init__(self) -> None:
        if not self.epsilon >= LEAST_EPSILON:
            raise ValueError(f"epsilon must be at least {float(LEAST_EPSILON):g} for counts, got {self.epsilon}")

    @cached_property
    def rate(self) -> float:
        """Nats that one unit takes off the log probability."""
        return min(float_below(self.epsilon), LARGEST_RATE)

    @cached_property
    def variance(self) -> float:
        """`2 a / (1 - a)^2`."""
        return 0.5 / math.sinh(0.5 * self.rate) ** 2 if self.rate < 700.0 else 0.0

    def log_mass(self, k: Any) -> Any:
        """Log probability of whole numbers, of any shape; -inf for what cannot come out."""
        size = np.abs(np.asarray(k, dtype=np.float64))
        if not isinstance(self.epsilon, Fraction):
            return np.where(size == 0.0, 0.0, -np.inf)
        return math.log(math.tanh(0.5 * self.rate)) - self.rate * size

    def log_parts(self, k: IntArray) -> tuple[Fraction, float]:
        """Log probability of independent whole numbers (c,) as minus an exact number of nats plus the rest."""
        if not isinstance(self.epsilon, Fraction):
            return Fraction(0), -math.inf if np.any(k) else 0.0
        return self.epsilon * sum(map(abs, k.tolist())), len(k) * math.log(math.tanh(0.5 * self.rate))

    def log_tail(self, k: int) -> float:
        """Log probability of a number that is at least k >= 1: `a^k / (1 + a)`."""
        return -self.rate * k - math.log1p(math.exp(-self.rate))

    def draw(self, count: int, source: Source = os.urandom) -> IntArray:
        """Independent draws (count,). source: gives random bytes; from the operating system."""
        if not isinstance(self.epsilon, Fraction):
            return np.zeros(count, dtype=np.int64)
        numbers = self._geometric(2 * count, source)
        return numbers[:count] - numbers[count:]

    @cached_property
    def digits(self) -> int:
        """Binary digits that are drawn one by one; the number they leave over is zero but once in 2^64."""
        digits = 0
        while self.epsilon * 2**digits < WORD:
            digits += 1
        return digits

    @cached_property
    def _exponents(self) -> tuple[tuple[Fraction, ...], Fraction]:
        """Nats that each digit weighs, and the number that is left over."""
        exact = Fraction(self.epsilon)
        return tuple(exact * 2**i for i in range(self.digits)), exact * 2**self.digits

    def _geometric(self, count: int, source: Source) -> IntArray:
        """Whole numbers with probability `(1 - a) a^k`."""
        digits, rest = self._exponents
        total = self._weights @ _coins(digits, 1, count, source)
        more = np.arange(count)
        while more.size:
            more = more[_coins((rest,), 0, more.size, source)[0]]
            total[more] += 1 << self.digits
        return total

    @cached_property
    def _weights(self) -> IntArray:
        return 1 << np.arange(self.digits)


def _coins(exponents: tuple[Fraction, ...], plus: int, count: int, source: Source) -> npt.NDArray[np.bool_]:
    """Whether each of `count` events of probability `1 / (e^exponent + plus)` happens, by the exponents: (e, count)."""
    marks = _thresholds(exponents, plus)
    words = random_words(count * len(exponents), source).reshape(len(exponents), count)
    happens = words < marks
    for i, j in np.argwhere(words == marks).tolist():
        happens[i, j] = _longer_coin(exponents[i], plus, int(words[i, j]), source)
    return happens


@lru_cache(maxsize=256)
def _thresholds(exponents: tuple[Fraction, ...], plus: int) -> npt.NDArray[np.uint64]:
    """The first words of the probabilities (e, 1)."""
    return np.array([[threshold(exponent, plus, WORD)] for exponent in exponents], dtype=np.uint64).reshape(-1, 1)


def _longer_coin(exponent: Fraction, plus: int, number: int, source: Source) -> bool:
    """The event whose first word is the threshold's: more words, until the two differ."""
    bits = WORD
    while True:
        bits += WORD
        number = number << WORD | int(random_words(1, source)[0])
        mark = threshold(exponent, plus, bits)
        if number != mark:
            return number < mark
