"""Steps of a public output grid, and values in units of a step."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from pq.core.exact import decimal_fraction
from pq.core.priors import Prior
from pq.core.priors.log_uniform import knows_scale

SMALLEST_STEP = Fraction(1, 10**200)
OFF_GRID = 1e-6  # of a step: how far a value may be off a multiple that it means
LATTICE_END = 2.0**51  # multiples beyond count as this one: further out, the middles between multiples are no floats


def to_units(values: Any, step: Fraction) -> Any:
    """Values in units of the step, not yet rounded; infinite where the units are beyond the floats."""
    with np.errstate(over="ignore"):
        return values * float(step.denominator) / float(step.numerator)


def from_units(units: Any, step: Fraction) -> Any:
    """Multiples of the step as the float64 nearest to their decimal value: 3 units of 0.1 are 0.3."""
    return units * float(step.numerator) / float(step.denominator)


def grid_step(grid: Any, priors: Iterable[Prior] = ()) -> Fraction | None:
    """The step of a public output grid as an exact rational, or None; raises naming grid.

    Refused is also a step so fine that a prior puts a part of its mass beyond 2^51 steps, where the lattice ends; but
    for a prior that knows no scale, which has mass beyond any end.
    """
    if grid is None:
        return None
    step = decimal_fraction(grid, "grid")
    if not SMALLEST_STEP <= step <= 1 / SMALLEST_STEP or max(step.numerator, step.denominator) > 1 / SMALLEST_STEP:
        raise ValueError(
            f"grid must be a positive decimal from {float(SMALLEST_STEP)} to {float(1 / SMALLEST_STEP)}, got {grid}"
        )
    end = float(from_units(LATTICE_END, step))
    for prior in priors:
        if knows_scale([prior]) and -math.expm1(prior.log_mass(-end, end)) > 1e-3:
            raise ValueError(f"grid must be coarser for {prior}: much of its mass lies beyond 2^51 steps of {grid}")
    return step
