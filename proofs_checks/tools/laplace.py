"""The Laplace loss in many digits, in float64, and the points at which it is compared."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath


def closed_form(theta: Any, phi: Any, a: Any, b: Any) -> Any:
    """``eq:closed-form`` with the letters of the paper, in mpmath."""
    h, z = (b - a) * phi / 2, theta - (a + b) * phi / 2
    if a * phi <= theta <= b * phi:
        return h - mpmath.log(mpmath.exp(h) - mpmath.cosh(z))
    return abs(z) - mpmath.log(mpmath.sinh(h))


def laplace_points() -> list[tuple[Fraction, Fraction, Fraction, Fraction]]:
    """Exact points in every regime: inside, outside on both sides, at the ends, wide and narrow."""
    points = []
    for a, b in ((-1, 2), (1, 3), (-7, -5), (0, 1), (-3, 3)):
        for phi in (Fraction(1, 50), Fraction(1, 2), Fraction(3), Fraction(20)):
            for part in (Fraction(-3), Fraction(0), Fraction(1, 7), Fraction(1, 2), Fraction(1), Fraction(4)):
                points.append((phi * (a + part * (b - a)), phi, Fraction(a), Fraction(b)))
    return points


def mpf_of(x: Fraction) -> Any:
    return mpmath.mpf(x.numerator) / x.denominator


def stable_float(theta: float, phi: float, a: float, b: float) -> float:
    """The same loss with exp(-u) in place of exp(u), and expm1 and log1p where digits would cancel."""
    near, far, width = b * phi - theta, theta - a * phi, (b - a) * phi
    if near < 0 or far < 0:
        return max(-near, -far) + math.log(2) - math.log(-math.expm1(-width))
    lost = (math.exp(-near) + math.exp(-far)) / 2
    if lost < 0.5:
        return -math.log1p(-lost)
    return math.log(2) - math.log(-math.expm1(-near) - math.expm1(-far))


def normal_mass(p: Any, q: Any) -> Any:
    return mpmath.ncdf(q) - mpmath.ncdf(p)
