"""Why the information of a noisy count lies where ours:count-information says: Cramer and Rao's bound, and Stam's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import sympy
import z3

from proofs_checks.engine.registry import check
from proofs_checks.tools.solver import follows


def averages(x: Any, mean: Any, rate: Any) -> tuple[Any, Any, Any]:
    """Density of Gaussian plus Laplace noise at x beyond its place, and given the sum the averages of both scores."""

    def weight(t: Any) -> Any:
        return mpmath.npdf(t, 0, mpmath.sqrt(mean)) * rate / 2 * mpmath.exp(-rate * abs(x - t))

    reach = 12 * mpmath.sqrt(mean) + abs(x)
    pieces = sorted({-reach, mpmath.mpf(0), mpmath.mpf(x), reach})
    whole = mpmath.quad(weight, pieces)
    records = mpmath.quad(lambda t: t / mean * weight(t), pieces) / whole
    noise = mpmath.quad(lambda t: rate * mpmath.sign(x - t) * weight(t), pieces) / whole
    return whole, records, noise


@check(
    "ours:count-information",
    rejects=[
        lambda one, other: sympy.Rational(1, 2),
        lambda one, other: one / (one + other),
        lambda one, other: sympy.Rational(99, 100) * other / (one + other),
    ],
)
def check_both_inequalities(subject: Callable[[Any, Any], Any] = lambda one, other: other / (one + other)) -> str:
    """The sum's score is the average, given the sum, of either part's score, so of a mixture of both, whose square is
    no smaller: Stam. The sum has covariance one with its score: Cramer and Rao. For every mean and rate (sympy, z3);
    the averages at four points. subject: the Gaussian's part in the mixture, from both informations."""
    gauss, laplace = sympy.symbols("I_X I_Y", positive=True)
    part = subject(gauss, laplace)
    mixture = part**2 * gauss + (1 - part) ** 2 * laplace  # the scores are independent, with mean zero
    assert sympy.simplify(mixture - 1 / (1 / gauss + 1 / laplace)) == 0, "reciprocals add up"
    t, mean_of_count = sympy.symbols("t mean", positive=True)  # E (X + Y) score = E X^2/mean = 1: Y is independent of X
    normal = sympy.exp(-(t**2) / (2 * mean_of_count)) / sympy.sqrt(2 * sympy.pi * mean_of_count)
    assert sympy.simplify(2 * sympy.integrate(t**2 / mean_of_count * normal, (t, 0, sympy.oo))) == 1
    info, variance, tilt = z3.Reals("info variance tilt")  # E (score - tilt sum)^2 = I - 2 tilt + tilt^2 variance
    follows(
        variance > 0, tilt * variance == 1, info - 2 * tilt + tilt * tilt * variance >= 0, goal=info * variance >= 1
    )
    square, mean_of, spread = z3.Reals("square mean_of spread")  # of what is averaged given the sum
    follows(square == mean_of * mean_of + spread, spread >= 0, goal=mean_of * mean_of <= square)
    with mpmath.workdps(20):
        for x, mean, rate in ((0.7, 2, 1), (-3, 5, 0.3), (4, 0.5, 3), (10, 20, 0.5)):
            slope = -mpmath.diff(lambda at, m=mean, r=rate: mpmath.log(averages(at, m, r)[0]), x)  # in the place
            _, records, noise = averages(mpmath.mpf(x), mean, rate)
            assert max(abs(slope - records), abs(slope - noise)) < 1e-6, (x, mean, rate)
    return (
        "information of a noisy count: scores are averages given the sum, so Stam's bound; covariance one, so the other"
    )
