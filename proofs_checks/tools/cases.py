"""Data, priors and mixtures that several sections check a statement on."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

from proofs_checks.tools.exact import Grid, Prior

F = Fraction
HALF = Fraction(1, 2)

GAP_SAMPLE = [Fraction(p, d) for d in range(2, 8) for p in range(1, d)]
Rows = Sequence[Sequence[F]]


def with_ends(data: Sequence[F]) -> F:
    """Least distance of neighbours in (0, 1), the ends among them."""
    return min(b - a for a, b in pairwise([F(0), *data, F(1)]))


def without_ends(data: Sequence[F]) -> F:
    """Least distance of two of these, in (0, 1); 1 for one alone."""
    return min((b - a for a, b in pairwise(data)), default=F(1))


def mix(mu: Prior, rho: Prior, weight: Fraction) -> Prior:
    """(1 - lambda) mu + lambda rho."""
    keys = {*mu, *rho}
    return {o: (1 - weight) * mu.get(o, Fraction(0)) + weight * rho.get(o, Fraction(0)) for o in keys}


def one_quantile_cases(count: int = 60) -> Iterator[tuple[Grid, Fraction, Prior, Fraction]]:
    """Data, quantile, prior of total mass 1, 1/2 or 3, and z: corners first, then a fixed random sample."""
    draw = random.Random(1)
    for q, z in itertools.product(
        (Fraction(1, 3), Fraction(1, 2), Fraction(9, 10)), (Fraction(1, 50), Fraction(9, 10))
    ):
        for n in (0, 1, 2, 5):
            masses = [Fraction(1, 1000)] * n + [Fraction(1)]
            yield Grid(n), q, {k + HALF: mass for k, mass in enumerate(masses)}, z
    for _ in range(count):
        n = draw.randrange(7)
        masses = [Fraction(draw.choice((0, 1, 1, 5, 100, 10_000))) for _ in range(n + 1)]
        total = sum(masses) or Fraction(1)
        masses = [mass / total for mass in masses] if sum(masses) else [Fraction(1)] * (n + 1)
        scale = draw.choice((Fraction(1), HALF, Fraction(3)))
        prior = {k + HALF: scale * mass for k, mass in enumerate(masses) if mass}
        yield Grid(n), Fraction(draw.randrange(1, 20), 20), prior, Fraction(draw.randrange(1, 30), 30)
