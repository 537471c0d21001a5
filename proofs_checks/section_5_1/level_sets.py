"""Level sets of the Laplace loss in location and scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import sympy

from proofs_checks.engine.registry import check
from proofs_checks.tools.laplace import mpf_of

F = Fraction


def _cauchy_like(x: Any) -> Any:
    """A function of location and scale whose level sets are not convex: two bumps."""
    return max(1 / (1 + (x[0] - 3) ** 2), 1 / (1 + (x[0] + 3) ** 2))


def bumped_mass(x: Any) -> Any:
    """Laplace mass of (-1, 1] at location x[0] and scale x[1]."""
    below = [mpmath.exp(-abs((e - x[0]) / x[1])) / 2 for e in (-1, 1)]
    low, high = (t if e <= x[0] else 1 - t for t, e in zip(below, (-1, 1), strict=True))
    return high - low


def _two_places(x: Any) -> Any:
    """Mass of a mixture of two Laplace laws that move together."""
    return bumped_mass((x[0] - 4, x[1])) + bumped_mass((x[0] + 4, x[1]))


@check("ours:level-sets", rejects=[_cauchy_like, _two_places])
def check_level_sets(subject: Callable[[Any], Any] = bumped_mass) -> str:
    """In (location, scale) the Laplace loss has convex level sets: mass at a mixture is at least the smaller mass."""
    x, y, t, s, u = sympy.symbols("x y t s u", positive=True)
    # (nu, sigma) -> (nu/sigma, 1/sigma) takes the point 1-t, t of a segment to the point with weight t u/((1-t)s + t u)
    place, scale = (1 - t) * x + t * y, (1 - t) * s + t * u
    weight = t * u / scale
    assert sympy.simplify(place / scale - ((1 - weight) * x / s + weight * y / u)) == 0
    assert sympy.simplify(1 / scale - ((1 - weight) / s + weight / u)) == 0
    rng = np.random.default_rng(103)
    with mpmath.workdps(40):
        for _ in range(300):
            ends = [(mpmath.mpf(rng.normal(0, 4)), mpmath.mpf(10 ** rng.uniform(-1, 1))) for _ in range(2)]
            middle = tuple((a + b) / 2 for a, b in zip(*ends, strict=True))
            assert subject(middle) >= min(subject(end) for end in ends) * (1 - mpmath.mpf(10) ** -30), ends
    return "(nu, sigma) to (nu/sigma, 1/sigma) takes segments to segments (sympy): convex level sets; 300 chords"


def _largest(losses: Sequence[Any]) -> Any:
    return max(losses)


def _plain_sum(losses: Sequence[Any]) -> Any:
    return mpmath.log(sum(mpmath.exp(loss) for loss in losses))


@check("ours:level-sets", rejects=[_largest, lambda losses: losses[0], lambda losses: losses[1]])
def check_level_sets_of_two(subject: Callable[[Sequence[Any]], Any] = _plain_sum) -> str:
    """For one quantile only: the loss of two, in both locations and scales, is larger in the middle of a segment than
    at its ends. The larger of two losses has convex level sets, the logarithm of their sum has not."""
    with mpmath.workdps(30):
        ends = (F(-1), F(1, 4)), (F(-4), F(2))

        def loss(*priors: tuple[Fraction, Fraction]) -> Any:
            return subject([-mpmath.log(bumped_mass((mpf_of(place), mpf_of(scale)))) for place, scale in priors])

        middle = F(-5, 2), F(9, 8)
        values = loss(*ends), loss(*reversed(ends)), loss(middle, middle)
        assert values[2] > max(values[:2]), "the level set holds the middle"
        assert [round(float(value), 2) for value in values] == [2.78, 2.78, 2.9], "as the row says"
    return "two quantiles: Laplace(-1, 1/4), Laplace(-4, 2) and the two turned round lose 2.78, their middle 2.90"
