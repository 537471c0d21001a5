"""Exact numbers at the door: quantiles, budgets and ranks as rationals (Section 3.1, `eq:gap`).

A quantile of 0.29 means twenty-nine hundredths, not the nearest binary fraction, which is a little less: `floor(0.29 *
100)` is 28 in binary floats and 29 here. The same holds for budgets: ten times 0.1 is one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from numbers import Rational, Real
from typing import Any, TypeAlias

import numpy as np

LARGEST_BUDGET = Fraction(10**300)
LARGEST_WHOLE = 10**3000  # Python writes no whole number of more than 4300 digits
LARGEST_KEPT = 10**1000  # in what a ledger keeps, so that what remains of it can be written too
NO_NUMBERS = (bool, np.bool_, np.timedelta64)  # numpy and Python call them integers
LONGEST_TOLD = 30  # letters of a refused number in a message
MOST_DIGITS = 10_000  # of a decimal: 1e999999999 is quickly written and fills the memory

Number: TypeAlias = "float | int | Fraction | Decimal"


def is_real(value: Any) -> bool:
    """Whether a value is a real number, of whatever type; a `Decimal` is none by Python's tower of numbers."""
    return isinstance(value, Real) and not isinstance(value, NO_NUMBERS)


def is_integer(value: Any) -> bool:
    """Whether a value is an integer of Python or numpy."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, NO_NUMBERS)


def briefly(value: Any) -> str:
    """A number that is refused, as a message tells it: its first digits, as Python writes no more than 4300.

    >>> briefly(0.1), briefly(10**90), briefly(-(10**5000))
    ('0.1', '100000000000000000000000000000...', 'thousands of digits')
    """
    try:
        text = str(value)
    except ValueError:
        return "thousands of digits"
    return text if len(text) <= LONGEST_TOLD else f"{text[:LONGEST_TOLD]}..."


def decimal_fraction(value: Any, name: str) -> Fraction:
    """The rational that a finite number's shortest decimal text denotes; exact types stay as they are.

    Raises `TypeError` for what is no real number (text, booleans and durations included), `ValueError` for NaN and
    infinities; both name the argument.

    >>> decimal_fraction(0.1, "epsilon")
    Fraction(1, 10)
    """
    if type(value) is Fraction:
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not is_real(value) and not isinstance(value, Decimal):
        raise TypeError(f"{name} must be a real number, got {type(value).__name__}")
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if not (value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)):  # a float of sNaN is an error
        raise ValueError(f"{name} must be finite, got {briefly(value)}")
    if isinstance(value, Decimal) and abs(value.adjusted()) > MOST_DIGITS:
        raise ValueError(
            f"{name} must have at most {MOST_DIGITS} digits before and after the point, got {briefly(value)}"
        )
    return Fraction(str(value))


def kept_fraction(value: Any, name: str) -> Fraction:
    """An exact number that an account keeps. Raises `TypeError` or `ValueError` naming it, the latter also where it has
    more digits than can be written once others were added or taken away.

    >>> kept_fraction(1.5, "total")
    Fraction(3, 2)
    """
    number = decimal_fraction(value, name)
    if max(abs(number.numerator), number.denominator) > LARGEST_KEPT:
        digits = len(str(LARGEST_KEPT)) - 1
        raise ValueError(f"{name} must be of at most {digits} digits, as a fraction above and below its line")
    return number


def rank(q: Number, n: int) -> int:
    """The target rank `floor(q n)` of a quantile, from the decimal value of `q` (`eq:gap`).

    q: quantile in [0, 1]. n: number of records, at least 0. Raises `ValueError` or `TypeError` naming the argument.

    >>> rank(0.29, 100), rank(0.57, 100)
    (29, 57)
    """
    return math.floor(quantile_fraction(q, "q") * whole_number(n, "n"))


def quantile_fraction(value: Any, name: str = "quantiles") -> Fraction:
    """A quantile in [0, 1] as an exact rational; raises naming the argument."""
    q = decimal_fraction(value, name)
    if not 0 <= q.numerator <= q.denominator:
        raise ValueError(f"{name} must lie in [0, 1], got {briefly(value)}")
    return q


def quantile_fractions(quantiles: Any) -> tuple[Fraction, ...]:
    """One quantile or a sequence of them as exact rationals in the caller's order.

    >>> quantile_fractions([0.5, 0.25])
    (Fraction(1, 2), Fraction(1, 4))
    """
    if isinstance(quantiles, (str, bytes, set, frozenset, dict)):
        raise TypeError(f"quantiles must be a sequence of numbers in [0, 1], got {type(quantiles).__name__}")
    if not isinstance(quantiles, Iterable) or (isinstance(quantiles, np.ndarray) and quantiles.ndim == 0):
        quantiles = (quantiles,)
    fractions = tuple(quantile_fraction(q) for q in quantiles)
    if not fractions:
        raise ValueError("quantiles must not be empty")
    return fractions


def distinct_fractions(fractions: Iterable[Fraction]) -> tuple[Fraction, ...]:
    """Quantiles in increasing order, without repeats, by their floats, which are ten times as fast to compare.

    Raises `ValueError` naming quantiles where two share a float: what is released tells them by these.

    >>> distinct_fractions([Fraction(1, 2), Fraction(1, 3), Fraction(1, 2)])
    (Fraction(1, 3), Fraction(1, 2))
    """
    told = sorted([(float(q), q) for q in set(fractions)])
    for (level, _), (following, _) in pairwise(told):
        if level == following:
            raise ValueError(f"quantiles must differ as floats, or be equal: two of them are {level!r} as floats")
    return tuple(q for _, q in told)


def budget_fraction(epsilon: Any, name: str = "epsilon") -> Fraction | float:
    """A privacy budget: a positive rational, or infinity (for tests). Raises naming the argument."""
    if isinstance(epsilon, np.ndarray) and epsilon.ndim == 0:
        epsilon = epsilon[()]
    if isinstance(epsilon, Decimal):
        infinite = epsilon.is_infinite() and epsilon > 0
    else:
        infinite = isinstance(epsilon, (float, np.floating)) and epsilon == math.inf
    if infinite:
        return math.inf
    budget = decimal_fraction(epsilon, name)
    if not 0 < budget <= LARGEST_BUDGET:
        raise ValueError(
            f"{name} must be positive and at most {float(LARGEST_BUDGET):g}, or infinite, got {briefly(epsilon)}"
        )
    return budget


def whole_number(value: Any, name: str, least: int = 0) -> int:
    """A whole number that is at least `least`; raises naming the argument.

    >>> whole_number(4, "arity", least=2)
    4
    """
    if not is_integer(value):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {briefly(value)}")
    if value > LARGEST_WHOLE:
        raise ValueError(f"{name} must have at most {len(str(LARGEST_WHOLE)) - 1} digits")
    return int(value)


def float_below(value: Fraction | float) -> float:
    """The largest float64 that is at most `value`: a budget is never rounded up."""
    if isinstance(value, float):
        return value
    nearest = float(value)
    return math.nextafter(nearest, -math.inf) if Fraction(nearest) > value else nearest


def budget_float(value: Number) -> float:
    """The float64 that tells a budget: the least that, as it is written, is no smaller than what is spent.

    >>> budget_float(Fraction(3, 10)), budget_float(Fraction(1, 3)) > Fraction(1, 3)
    (0.3, True)
    """
    nearest = float(value)
    told = math.isinf(nearest) or Fraction(repr(nearest)) >= decimal_fraction(value, "value")
    return nearest if told else math.nextafter(nearest, math.inf)


def budget_text(value: Fraction | float) -> str:
    """A number in few digits that are never less than it is: a budget is not shown smaller than what is spent.

    >>> budget_text(1.0), budget_text(Fraction(1, 3)), budget_text(1.0000049), budget_text(Fraction(3, 10))
    ('1', '0.3333334', '1.000005', '0.3')
    """
    if math.isinf(value):
        return "inf"
    exact = decimal_fraction(value, "value")
    texts = (f"{float(value):.{digits}g}" for digits in range(6, 18))
    return next((text for text in texts if Fraction(text) >= exact), repr(budget_float(value)))
