"""Multipliers of Gaussian noise, and balls that certify them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
from flint import arb

from proofs_checks.tools.exact import ball


def log_of(value: arb | int | Fraction) -> arb:
    """Natural logarithm of a positive number, in a ball."""
    return (value if isinstance(value, arb) else ball(value)).log()


def arb_between(low: Any, high: Any) -> Any:
    """A ball that holds the interval [low, high]."""
    return arb((float(low) + float(high)) / 2, (float(high) - float(low)) / 2 * (1 + 1e-12) + 1e-300)


def certify(function: Callable[[Any], Any], low: float, high: float, depth: int = 40) -> int:
    """Assert that ``function`` is positive on all of [low, high] by interval arithmetic; return the pieces used."""
    stack, pieces = [(low, high, 0)], 0
    while stack:
        a, b, level = stack.pop()
        if function(arb_between(a, b)) > 0:
            pieces += 1
            continue
        assert level < depth, f"not certified near {(a + b) / 2}"
        middle = (a + b) / 2
        stack += [(a, middle, level + 1), (middle, b, level + 1)]
    return pieces


def exact_delta(epsilon: Any, multiplier: Any) -> Any:
    """Exact delta of the Gaussian mechanism, in mpmath."""
    half, shift = 1 / (2 * mpmath.mpf(multiplier)), mpmath.mpf(epsilon) * multiplier
    return mpmath.ncdf(half - shift) - mpmath.exp(epsilon) * mpmath.ncdf(-half - shift)


def corrected_multiplier(epsilon: Any, delta: Any) -> Any:
    """Noise over sqrt(nodes) times sensitivity, from zero-concentrated privacy."""
    odds = mpmath.log(1 / mpmath.mpf(delta))
    return (mpmath.sqrt(odds + epsilon) + mpmath.sqrt(odds)) / (mpmath.sqrt(2) * epsilon)


def printed_multiplier(epsilon: Any, delta: Any) -> Any:
    """Noise over sqrt(nodes) times sensitivity, as printed in ``thm:dpftrl``."""
    return mpmath.sqrt(2 * mpmath.log(1 / mpmath.mpf(delta))) / epsilon
