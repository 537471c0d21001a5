"""Priors from what people say: "nine in ten lie between a and b, never below c"."""

from __future__ import annotations

import math
from typing import Any

from pq.core.exact import briefly
from pq.core.priors.arguments import finite_number, real
from pq.core.priors.numerics import LARGEST
from pq.core.priors.piecewise_constant import PiecewiseConstant

BINS = 6  # of a tail without an end
GROWTH = 16.0  # of their widths, and of the chance to be beyond one of them: as far out as a Cauchy law


def prior_between(low: Any, high: Any, *, share: Any = 0.9, least: Any = None, most: Any = None) -> PiecewiseConstant:
    """The prior that says: a share of all records lies between low and high, none below least, none above most.

    low, high: low < high, in the unit of the data: numbers, dates, timestamps, times of day or durations. share:
    strictly between 0 and 1, nine in ten unless said. least: at most low, or None where there is no least value. most:
    at least high, or None.

    The rest is parted equally between the two sides, or goes to the one that has room. It assumes no more than was
    said: alike between low and high, alike from there to a least or greatest value, and without one a heavy tail, so
    that a wrong guess is forgiven. Raises `TypeError` or `ValueError` naming the argument.

    >>> salaries = prior_between(20_000, 200_000, least=0)
    >>> [round(math.exp(salaries.log_mass(*ends)), 9) for ends in ((20_000, 200_000), (-math.inf, 0), (2e5, 3.8e5))]
    [0.9, 0.0, 0.046875]
    """
    a, b, inside = real(low, "low"), real(high, "high"), finite_number(share, "share")
    if not a < b:
        raise ValueError(f"low must be below high, got {briefly(low)} and {briefly(high)}")
    if not 0.0 < inside < 1.0:
        raise ValueError(f"share must lie strictly between 0 and 1, got {briefly(share)}")
    bottom = None if least is None else real(least, "least")
    top = None if most is None else real(most, "most")
    if bottom is not None and bottom > a:
        raise ValueError(f"least must not be above low, got {briefly(least)} and {briefly(low)}")
    if top is not None and top < b:
        raise ValueError(f"most must not be below high, got {briefly(most)} and {briefly(high)}")
    below, above = _tail(a, b - a, bottom, -1.0), _tail(b, b - a, top, 1.0)
    if not below and not above:
        raise ValueError("least and most must leave room for the records that are not between low and high")
    rest = (1.0 - inside) / (2.0 if below and above else 1.0)
    edges = [*(end for end, _ in reversed(below)), a, b, *(end for end, _ in above)]
    weights = [*(rest * part for _, part in reversed(below)), inside, *(rest * part for _, part in above)]
    return PiecewiseConstant(tuple(edges), tuple(weights))


def _tail(start: float, width: float, end: float | None, sign: float) -> list[tuple[float, float]]:
    """Far ends and shares of the bins of a tail, from within outwards; none if it has no room."""
    if end is not None:
        return [] if end == start else [(end, 1.0)]
    bins: list[tuple[float, float]] = []
    for k in range(BINS):
        far = start + sign * width * GROWTH**k
        if not abs(far) < LARGEST or far == (bins[-1][0] if bins else start):
            break
        bins.append((far, (1.0 - 1.0 / GROWTH) * GROWTH**-k))
    if not bins:
        raise ValueError("low and high must be narrower, or least and most be given: there is no room for a tail")
    bins[-1] = (bins[-1][0], 1.0 - math.fsum(part for _, part in bins[:-1]))
    return bins
