"""Priors in scalar arithmetic, compiled: masses, their logarithms, and points at a share of a mass (Section 3.1).

A prior is here a table of parts, rows `(kind, first, second, weight)`, of which it is the weighted sum; see
`pq.private.fast.encode`. What a kind is and does stands with its family in `pq.core.priors`; the functions here choose
among all families that are known when this module is imported.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from pq.core.machine.keep import compiled, depend_on, uncounted
from pq.core.priors.kernel import Kernel, kinds
from pq.core.priors.numerics import FLOAT_SHARE, LARGEST, LOG_2

__all__ = ["LARGEST", "LOG_2", "add_cell_masses", "log_mass", "mass", "part_mass", "point", "point_with"]

BELOW_ONE = math.nextafter(1.0, 0.0)
TWO_FLOATS = 2.0**-51  # at least the distance of a number to the float after the next, in parts of it
LOG_FLOAT_SHARE = math.log(FLOAT_SHARE)
LEAST_MASS = 1e-280  # of less, parts are no floats
LEAST_INTEGER = -(2**63)
FIRST_STEPS = (-(1 << 30), 1 << 30, -16, 16)  # in floats from a guess, as in `pq.core.priors.numerics`


@cache
def _machine(function: Any) -> Any:
    """A plain function compiled, with the plain functions that it calls compiled into it."""
    known = function.__globals__
    called = {
        name: _machine(known[name])
        for name in function.__code__.co_names
        if isinstance(known.get(name), FunctionType) and known[name] is not function
    }
    return uncounted(FunctionType(function.__code__, {**known, **called}, function.__name__, function.__defaults__))


def _added(kernel: Kernel) -> Any:
    """The loop over cells of one family, its own or that over its masses, for some neighbouring rows of a table."""
    mass_of = _machine(kernel.mass)
    own = None if kernel.add_cells is None else _machine(kernel.add_cells)

    @uncounted
    def plain(first: float, second: float, weight: float, edges: Any, out: Any) -> None:
        for i in range(out.size):
            out[i] += weight * mass_of(first, second, edges[i], edges[i + 1])

    add_one = plain if own is None else own

    @uncounted
    def add(start: int, stop: int, parts: Any, edges: Any, out: Any) -> None:
        for k in range(start, stop):
            add_one(parts[k, 1], parts[k, 2], parts[k, 3], edges, out)

    return add


def _linked(kind: float, chosen: Any, others: Any) -> Any:
    """A function that goes to `chosen` for one kind and to `others` for all else, by the number of their arguments."""

    @uncounted
    def choose(wanted: float, first: float, second: float, a: Any, b: Any, c: Any) -> Any:
        if wanted == kind:
            return chosen(first, second, a, b, c)
        return others(wanted, first, second, a, b, c)

    return choose


def _chosen(pick: Callable[[Kernel], Any], nothing: Any) -> Any:
    """One function for all families, from the function that `pick` takes of each one's kernel."""
    chain = nothing
    for kind, kernel in reversed(FAMILIES):
        chain = _linked(float(kind), pick(kernel), chain)
    return chain


def _without_share(function: Any) -> Any:
    """A function of an interval that takes and forgets a share, so that all of a chain have the same arguments."""
    inner = _machine(function)

    @uncounted
    def ignoring(first: float, second: float, a: float, b: float, share: float) -> float:
        return inner(first, second, a, b)

    return ignoring


@uncounted
def _nan(wanted: float, first: float, second: float, a: float, b: float, u: float) -> float:
    return math.nan


@uncounted
def _none(wanted: float, start: int, stop: int, parts: Any, edges: Any, out: Any) -> None:
    return None


FAMILIES = [(kind, family.kernel) for family, kind in kinds(final=True).items() if family.kernel is not None]
for _family in kinds():
    depend_on(_family.__name__, Path(inspect.getfile(_family)))

_mass = _chosen(lambda kernel: _without_share(kernel.mass), _nan)
_log_mass = _chosen(lambda kernel: _without_share(kernel.log_mass), _nan)
_point = _chosen(lambda kernel: _machine(kernel.point), _nan)
_add_cells = _chosen(_added, _none)


@uncounted
def part_mass(kind: float, first: float, second: float, a: float, b: float) -> float:
    """Mass of (a, b] under one part, whose weight is not counted."""
    return _mass(kind, first, second, a, b, 0.0)


@uncounted
def part_log_mass(kind: float, first: float, second: float, a: float, b: float) -> float:
    """Log mass of (a, b] under one part, also where the mass is too small for a float; NaN where this fails."""
    return _log_mass(kind, first, second, a, b, 0.0)


@uncounted
def _swapped(bits: int) -> int:
    """The order of the floats as integers, from a float's bits; its own inverse."""
    return bits if bits >= 0 else LEAST_INTEGER - bits


@uncounted
def _on_float(kind: float, first: float, second: float, a: float, b: float, u: float, whole: float, o: float) -> float:
    """The least float up to which (a, b] has a share u of its mass `whole`, by bisection over the floats, from near o
    on; see `Prior`."""
    below, above = _swapped(np.float64(a + 0.0).view(np.int64)), _swapped(np.float64(b + 0.0).view(np.int64))
    guess, step = _swapped(np.float64(o + 0.0).view(np.int64)), 0
    while above > below + 1:
        middle = (below >> 1) + (above >> 1) + (below & above & 1)
        if step < 4:
            trial = guess + FIRST_STEPS[step]
            middle = trial if below < trial < above else middle
            step += 1
        x = np.int64(_swapped(middle)).view(np.float64)
        if u < 0.5:
            is_left = part_mass(kind, first, second, a, x) < u * whole
        else:
            is_left = part_mass(kind, first, second, x, b) > (1.0 - u) * whole
        below, above = (middle, above) if is_left else (below, middle)
    return np.int64(_swapped(above)).view(np.float64)


@uncounted
def part_point(kind: float, first: float, second: float, a: float, b: float, u: float) -> float:
    """The point at share u of the mass of (a, b] under one part, which has some there; NaN where that fails."""
    o = _point(kind, first, second, a, b, u)
    one, other = max(a, o - TWO_FLOATS * abs(o)), min(b, o + TWO_FLOATS * abs(o))
    whole = part_mass(kind, first, second, a, b)
    if whole > LEAST_MASS:
        is_fine = part_mass(kind, first, second, one, other) <= FLOAT_SHARE * whole
        if not is_fine and a <= o <= b:
            return _on_float(kind, first, second, a, b, u, whole, o)
    else:
        near = part_log_mass(kind, first, second, one, other)
        is_fine = near <= LOG_FLOAT_SHARE + part_log_mass(kind, first, second, a, b)
    return o if is_fine else math.nan


@uncounted
def mass(parts: Any, a: float, b: float) -> float:
    """Mass of (a, b] under a prior."""
    total = 0.0
    for k in range(parts.shape[0]):
        total += parts[k, 3] * part_mass(parts[k, 0], parts[k, 1], parts[k, 2], a, b)
    return total


@uncounted
def log_mass(parts: Any, a: float, b: float) -> float:
    """Log mass of (a, b] under a prior."""
    total = -math.inf
    for k in range(parts.shape[0]):
        if parts[k, 3] > 0.0:
            one = math.log(parts[k, 3]) + part_log_mass(parts[k, 0], parts[k, 1], parts[k, 2], a, b)
            if one != -math.inf:  # NaN goes through
                top = max(one, total)
                total = top + math.log(math.exp(one - top) + math.exp(total - top))
    return total


@uncounted
def add_cell_masses(parts: Any, edges: Any, out: Any) -> None:
    """Put the masses of the cells between neighbouring edges into `out`: the inner loop of a release."""
    out[:] = 0.0
    start, count = 0, parts.shape[0]
    while start < count:  # the family is chosen once for all of its rows
        stop = start + 1
        while stop < count and parts[stop, 0] == parts[start, 0]:
            stop += 1
        _add_cells(parts[start, 0], start, stop, parts, edges, out)
        start = stop


@compiled
def point(parts: Any, a: float, b: float, u: float) -> float:
    """`point_with` with room of its own."""
    return point_with(parts, a, b, u, np.empty(parts.shape[0]))


@uncounted
def point_with(parts: Any, a: float, b: float, u: float, logs: Any) -> float:
    """The point of (a, b] that u in (0, 1) stands for; NaN where the prior has no mass there.

    A mixture first takes a part by u, in proportion to its mass in the interval, then what remains of u for the place.
    logs: room for a number of each part.
    """
    count = parts.shape[0]
    if count == 1:
        return part_point(parts[0, 0], parts[0, 1], parts[0, 2], a, b, u)
    top = -math.inf
    for k in range(count):
        logs[k] = math.log(parts[k, 3]) + part_log_mass(parts[k, 0], parts[k, 1], parts[k, 2], a, b)
        if math.isnan(logs[k]):
            return math.nan
        top = max(top, logs[k])
    if not top > -math.inf:
        return math.nan
    total = 0.0
    last = 0
    for k in range(count):
        logs[k] = math.exp(logs[k] - top)
        total += logs[k]
        if logs[k] > 0.0:
            last = k
    scaled, before = u * total, 0.0
    for k in range(last + 1):
        share = logs[k]
        if share > 0.0 and (scaled < before + share or k == last):
            rest = min(max((scaled - before) / share, 0.0), BELOW_ONE)
            return part_point(parts[k, 0], parts[k, 1], parts[k, 2], a, b, rest)
        before += share
    return math.nan
