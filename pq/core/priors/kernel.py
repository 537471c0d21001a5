"""Machine code of a family of priors: scalar functions that numba compiles, written beside the law that they repeat.

They are plain functions, and so are those that they call: `pq.private.fast.laws` compiles them where machine code is
wanted, and whoever wants none does not wait for the compiler. The forms are those of the formulas where numbers are
moderate. Beyond their range a mass comes out as zero or NaN, and the caller leaves the work to the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pq.core.priors.base import Prior

Row = tuple[float, float]

MODERATE = 1e60  # parameters and records within it, scales also above its inverse: nothing overflows


class Kernel(NamedTuple):
    """The functions of one family, of its two parameters and the ends of an interval (a, b].

    mass: of the interval. log_mass: also where the mass is too small for a float; NaN where that fails. point: the one
    at share u in (0, 1) of an interval that has mass, within [a, b]; NaN where that fails. add_cells: adds the
    weighted masses of the cells between neighbouring edges to an array, for families where a loop of its own is faster.
    """

    mass: Callable[[float, float, float, float], float]
    log_mass: Callable[[float, float, float, float], float]
    point: Callable[[float, float, float, float, float], float]
    add_cells: Callable[[float, float, float, Any, Any], None] | None = None


_KINDS: dict[type[Prior], int] = {}
_CLOSED: list[bool] = []


def give_kind(family: type[Prior]) -> None:
    """Number a family that has machine code; not once the machine code is put together: then it is left to formulas."""
    if not _CLOSED:
        _KINDS[family] = len(_KINDS)


def kinds(final: bool = False) -> dict[type[Prior], int]:
    """The families that have machine code and their numbers. final: no more are given from now on."""
    if final:
        _CLOSED[:] = [True]
    return _KINDS


def moderate(loc: float, scale: float) -> Row | None:
    """The parameters of a location and scale family, if nothing overflows with them."""
    return (loc, scale) if abs(loc) < MODERATE and 1.0 / MODERATE < scale < MODERATE else None


def one_minus_exp(width: float) -> float:
    """1 - exp(-width), for any width at least 0."""
    if width > 0.1:
        return -math.expm1(-width)
    w = width
    series = 1.0 - w * (1 / 7) * (1.0 - w * (1 / 8) * (1.0 - w * (1 / 9) * (1.0 - w * (1 / 10))))
    series = 1.0 - w * (1 / 4) * (1.0 - w * (1 / 5) * (1.0 - w * (1 / 6) * series))
    return w * (1.0 - w * (1 / 2) * (1.0 - w * (1 / 3) * series))


def inside(o: float, a: float, b: float) -> float:
    """The point, or the nearer end where rounding has left the interval; NaN goes through."""
    return min(max(o, a), b)
