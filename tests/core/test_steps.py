"""Where the records end that a grid brings to a multiple or below, for steps of all kinds, against a search among all
floats."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from pq.core.grid import LATTICE_END, from_units, grid_step, last_rounded, rounded_units

Floats = npt.NDArray[np.float64]
STEPS = ["0.1", "0.5", "1", "2.5", "0.7", "3", "1/3", "9.99", "123.456", "86400", "1e-7", "1e-200", "1e200"]


def in_order(numbers: Floats) -> npt.NDArray[np.int64]:
    """Floats as whole numbers in the same order."""
    bits = numbers.view(np.int64)
    return np.where(bits < 0, -(bits & np.int64(2**63 - 1)), bits)


def floats(order: npt.NDArray[np.int64]) -> Floats:
    """The inverse of `in_order`."""
    return np.where(order < 0, -order | np.int64(-(2**63)), order).view(np.float64)


def searched(ends: Floats, step: Fraction) -> Floats:
    """By bisection of all floats: rounding is monotone."""

    def fits(order: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        return np.asarray(from_units(rounded_units(floats(order), step), step) <= ends)

    low, high = (in_order(np.full(len(ends), end)) for end in (-np.inf, np.inf))
    none, everything = ~fits(low), fits(high)
    for _ in range(64):
        middle = low // 2 + high // 2 + (low & high & 1)
        low, high = np.where(fits(middle), middle, low), np.where(fits(middle), high, middle)
    return np.where(none, -np.inf, np.where(everything, np.inf, floats(low)))


def ends_for(step: Fraction, rng: np.random.Generator) -> Floats:
    """Multiples, middles between them, and others, up to where the lattice ends and beyond."""
    units = np.concatenate([np.arange(-20, 21), np.rint(2.0 ** rng.uniform(0, 51, 200)), 2.0 ** np.arange(51)])
    units = np.concatenate([units, -units, LATTICE_END + np.arange(-3, 3), -LATTICE_END + np.arange(-3, 3)])
    outer = [np.inf, -np.inf, 1e308, -1e308, 0.0, 5e-324]
    return np.concatenate(
        [from_units(units, step), from_units(units + 0.5, step), from_units(rng.normal(0, 100, 200), step), outer]
    )


@pytest.mark.parametrize("name", STEPS)
def test_the_last_number_that_is_rounded_down_is_found(name: str) -> None:
    step = grid_step(Fraction(name))
    assert step is not None
    ends = ends_for(step, np.random.default_rng(0))
    assert last_rounded(ends, step).tolist() == searched(ends, step).tolist()


def test_the_middle_itself_would_not_do() -> None:
    """Of two multiples it goes to the even one, and of most steps the middle is no float."""
    for name in STEPS:
        step = grid_step(Fraction(name))
        assert step is not None
        middles = from_units(np.arange(-20, 20) + 0.5, step)
        assert np.count_nonzero(last_rounded(middles, step) == middles) < 30
