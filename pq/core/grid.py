"""Steps of a public output grid, and values in units of a step."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from pq.core.exact import briefly, decimal_fraction
from pq.core.priors import Prior
from pq.core.priors.log_uniform import knows_scale

SMALLEST_STEP = Fraction(1, 10**200)
ULPS = 8  # by which the middle between two multiples is off at most where records are rounded
OFF_GRID = 1e-6  # of a step: how far a value may be off a multiple that it means
LATTICE_END = 2.0**51  # multiples beyond count as this one: further out, the middles between multiples are no floats


def to_units(values: Any, step: Fraction) -> Any:
    """Values in units of the step, not yet rounded; infinite where the units are beyond the floats."""
    with np.errstate(over="ignore"):
        return values * float(step.denominator) / float(step.numerator)


def from_units(units: Any, step: Fraction) -> Any:
    """Multiples of the step as the float64 nearest to their decimal value: 3 units of 0.1 are 0.3."""
    return units * float(step.numerator) / float(step.denominator)


def rounded_units(values: Any, step: Fraction) -> Any:
    """Values at the nearest multiples, halves at the even one, in units of the step: what a grid makes of a record."""
    with np.errstate(all="ignore"):  # whoever asks: records without bounds tell nobody by a warning
        return np.minimum(np.maximum(np.rint(to_units(values, step)), -LATTICE_END), LATTICE_END)


def last_rounded(ends: Any, step: Fraction) -> Any:
    """The largest numbers that are at or below some ends (k,) once they are rounded: as many records are up to these as
    there are, rounded, up to the ends. Infinite where all or none are.

    The digits of the middle between two multiples and those of a record in units are rounded on their own.

    >>> last_rounded(np.array([0.5, 1.0, 1.5]), Fraction(1)).tolist()  # 0.5 goes down, 1.5 goes up
    [0.5, 1.4999999999999998, 1.4999999999999998]
    """
    nearest = rounded_units(ends, step)
    units = np.where(from_units(nearest, step) <= ends, nearest, nearest - 1.0)
    middles = from_units(units + 0.5, step)
    halves = np.arange(-ULPS, ULPS + 0.5, 0.5)  # below a power of two floats are twice as dense
    near = middles + halves[:, None] * np.spacing(np.abs(middles))
    last = np.max(np.where(rounded_units(near, step) <= units, near, -np.inf), axis=0)
    return np.where(units < LATTICE_END, last, np.inf)


def grid_step(grid: Any) -> Fraction | None:
    """The step of a public output grid as an exact rational, or None; raises naming grid."""
    if grid is None:
        return None
    step = decimal_fraction(grid, "grid")
    if not SMALLEST_STEP <= step <= 1 / SMALLEST_STEP or max(step.numerator, step.denominator) > 1 / SMALLEST_STEP:
        raise ValueError(
            f"grid must be a positive number from {float(SMALLEST_STEP):g} to {float(1 / SMALLEST_STEP):g}, got "
            f"{briefly(grid)}"
        )
    return step


def told_step(step: Fraction | None) -> float | Fraction | None:
    """A step as it is told: as the float whose decimal it is, or exactly where it is the decimal of no float.

    >>> told_step(Fraction(1, 10)), told_step(Fraction(1, 3))
    (0.1, Fraction(1, 3))
    """
    if step is None:
        return None
    decimal = float(step)
    return decimal if Fraction(str(decimal)) == step else step


def written_step(grid: float | Fraction | None) -> float | str | None:
    """A step that was told, as a description holds it: a fraction as text."""
    return str(grid) if isinstance(grid, Fraction) else grid


def read_step(written: Any) -> Any:
    """The inverse of `written_step`; raises `ValueError` naming grid for a text that is no fraction.

    >>> read_step("1/3"), read_step(0.1)
    (Fraction(1, 3), 0.1)
    """
    if not isinstance(written, str):
        return written
    try:
        above, below = map(int, written.split("/"))
        return Fraction(above, below)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"grid must be a number, or a text such as 1/3, got {written[:99]!r}") from None


def is_on_grid(prior: Prior, step: Fraction | None) -> bool:
    """Whether all but a thousandth of a prior's mass lies within 2^51 steps, where the lattice ends; one that knows no
    scale has mass beyond any end, and may."""
    if step is None or not knows_scale([prior]):
        return True
    end = float(from_units(LATTICE_END, step))
    return -math.expm1(prior.log_mass(-end, end)) <= 1e-3


def check_on_grid(priors: Iterable[Prior], step: Fraction | None) -> None:
    """Refuse a step too fine for one of the priors: raises `ValueError` naming grid."""
    for prior in priors:
        if not is_on_grid(prior, step):
            raise ValueError(
                f"grid must be coarser for {prior}: much of its mass lies beyond 2^51 steps of {float(step or 0)}"
            )
