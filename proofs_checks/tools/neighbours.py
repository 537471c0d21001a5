"""Neighbouring data and priors that hurt, for exact privacy losses."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

from proofs_checks.tools.exact import Algorithm, Points, Prior, max_loss

HALF = Fraction(1, 2)
QUARTERS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))

TINY = Fraction(1, 10**12)


def records(*values: int) -> Points:
    """Sorted records at the given integers."""
    return Points(tuple(Fraction(v) for v in sorted(values)))


def hurtful_priors() -> Iterator[tuple[Prior, ...]]:
    """Priors for the quartiles with almost all mass where one record moves the gap the wrong way."""
    yield (
        {Fraction(3, 2): TINY, HALF: 1 - TINY},
        {Fraction(5, 2): TINY, HALF + Fraction(1, 8): 1 - TINY},
        {Fraction(7, 2): TINY, Fraction(11, 4): 1 - TINY},
    )
    yield (
        {Fraction(5, 2): TINY, Fraction(5, 4): 1 - TINY},
        {Fraction(7, 2): TINY, Fraction(3, 2): 1 - TINY},
        {Fraction(9, 2): TINY, Fraction(15, 4): 1 - TINY},
    )
    yield tuple({k + Fraction(i, 8): Fraction(1, 5) for k in range(5)} for i in (1, 2, 3))


def neighbours() -> Iterator[tuple[Points, Points]]:
    """Small data and the same with one record more."""
    for size in range(5):
        for values in itertools.combinations(range(1, 6), size):
            for extra in range(1, 6):
                if extra not in values:
                    yield records(*values), records(*values, extra)


def replaced_loss(exponents: tuple[int, int, int], z: Fraction) -> Fraction:
    """exp of the loss when 1 becomes 5 in (1, 2, 3, 4): the record leaves the left child and enters the right one."""
    priors = list(hurtful_priors())[1]
    algorithm = Algorithm(QUARTERS, priors, tuple(z**e for e in exponents), adaptation="conditional")
    return max_loss(algorithm.law(records(2, 3, 4, 5)), algorithm.law(records(1, 2, 3, 4)))
