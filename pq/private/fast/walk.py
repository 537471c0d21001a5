"""`alg:quantiles` on sorted records, compiled: many releases (*lanes*) in one call, each with uniforms of its own.

The law is that of `pq.private.mechanisms.independent`, cell for cell, and so is the way a uniform is turned into an
output; the tests compare the two. A mechanism weighs the cells whose rank is near its target. What the prior puts
further away is bounded in blocks that double in size, so that the bound takes a number of masses that grows with the
logarithm of n; where the uniform falls so near to the border of two cells that the bound leaves it open which is meant,
the window grows.

A lane that meets numbers beyond the range of these formulas is marked and left to the caller.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import boolean, float64, int64

from pq.core.machine.keep import compiled, given, kept, uncounted
from pq.private.fast.cells import (
    LATTICE_END,
    cell_at,
    cell_distance,
    cell_edge,
    cells_of,
    exact_target,
    has_gap,
    last_cell,
    passed_share,
)
from pq.private.fast.choose import largest, picked, sort_values
from pq.private.fast.laws import LARGEST, add_cell_masses, log_mass, mass, point_with

REACH = 9.0  # nats: weights beyond are less than e^-9 of the largest, before the prior has its say
LEAST_LOG_MASS = -5e5  # as in pq.private.mechanisms.independent
TINY = 1e-250  # total weights below are done again with logarithms
ROUNDING = 1.0 + 1e-9  # a bound stays one whatever the last digits of the masses are
ROOM = 1 << 10  # cells that there is room for at first
MOST_NATS = 1e6  # of the largest weight below one: further off, logarithms lose digits, and the formulas do better


@uncounted
def _outside(
    view: Any,
    parts: Any,
    target: tuple[int, float],
    rate: float,
    first: int,
    last: int,
    side: int,
    floor: float,
    logs: bool,
) -> float:
    """Upper bound on the (log) weight of the cells below `first` (side -1) or above `last` (side 1), by blocks."""
    end = last_cell(view)
    total = -math.inf if logs else 0.0
    width = max(last - first + 1, 1)
    while (side < 0 and first > 0) or (side > 0 and last < end):
        if side < 0:  # a cell that is not known has records of the rank after it
            nearest, one = first - (not has_gap(view, first - 1, first - 1)), max(first - width, 0)
            a, b = cell_edge(view, one), cell_edge(view, first)
            first = one
        else:
            nearest, one = last + 1, min(last + width, end)
            a, b = cell_edge(view, last + 1), cell_edge(view, one + 1)
            last = one
        score = -rate * cell_distance(view, nearest, target)
        if logs:
            bound = score + log_mass(parts, a, b) + 1e-9
            if math.isnan(bound):
                return math.nan
            if bound > -math.inf:
                top = max(bound, total)
                total = top + math.log(math.exp(bound - top) + math.exp(total - top))
        else:
            score = math.exp(score)
            if score < floor:  # the prior's mass is at most one
                return (total + score) * ROUNDING
            total += score * mass(parts, a, b) * ROUNDING
        width *= 2
    return total


@uncounted
def _weigh(
    view: Any, parts: Any, target: tuple[int, float], rate: float, first: int, last: int, logs: bool, edges: Any,
    out: Any,
) -> None:  # fmt: skip
    """Put the weights of the cells first..last, or their logarithms, into `out`, and their edges into `edges`."""
    count = last - first + 1
    plain = view[1].size == 0
    if plain:
        edges[0], edges[count] = cell_edge(view, first), cell_edge(view, last + 1)
        for k in range(1, count):
            edges[k] = view[0][view[2] + first + k - 1]
    else:
        for k in range(count + 1):
            edges[k] = cell_edge(view, first + k)
    if logs:
        for k in range(count):
            out[k] = log_mass(parts, edges[k], edges[k + 1]) - rate * cell_distance(view, first + k, target)
        return
    add_cell_masses(parts, edges, out)
    if not plain:
        for k in range(count):
            if out[k] > 0.0:
                out[k] *= math.exp(-rate * cell_distance(view, first + k, target))
        return
    ratio, middle = math.exp(-rate), min(max(target[0] + 1 - first, 0), count)
    score = math.exp(-rate * cell_distance(view, first + middle, target))
    for k in range(middle, count):
        out[k] *= score
        score *= ratio
    score = math.exp(-rate * cell_distance(view, first + middle - 1, target))
    for k in range(middle - 1, -1, -1):
        out[k] *= score
        score *= ratio


@uncounted
def _cell(view: Any, parts: Any, target: tuple[int, float], rate: float, uniform: float, room: Any) -> int:
    """The cell whose share of the weight covers the uniform; -2 if the numbers, or the room, do not do."""
    end = last_cell(view)
    middle, reach = float(target[0]), 1.0 + REACH / rate
    logs = False
    while True:
        first, last = cell_at(view, middle - reach), min(end, cell_at(view, middle + 1.0 + reach) + 1)
        if has_gap(view, first, last):
            return -2
        count = last - first + 1
        if count >= room[0].size:
            room[3][0] = count
            return -2
        weights = room[1][:count]
        _weigh(view, parts, target, rate, first, last, logs, room[0][: count + 1], weights)
        top = largest(weights)
        if not logs and not top > TINY:
            logs = True
            continue
        floor = 0.0 if logs else 1e-19 * top
        below = _outside(view, parts, target, rate, first, last, -1, floor, logs)
        above = _outside(view, parts, target, rate, first, last, 1, floor, logs)
        if logs:
            if math.isnan(top + below + above):  # beyond the formulas
                return -2
            if not log_mass(parts, view[6], view[7]) > LEAST_LOG_MASS:
                return -2
            top = max(top, below, above)
            if not -MOST_NATS < top < math.inf:
                return -2
            for k in range(count):
                weights[k] = math.exp(weights[k] - top)
            below, above = math.exp(below - top), math.exp(above - top)
        index = picked(weights, below, above, uniform)
        if index >= 0:
            return first + index
        if index == -2 or (first == 0 and last == end):
            return -2
        reach *= 2.0


@uncounted
def _has_share(view: Any, parts: Any, k: float, lower: float, upper: float, total: float, place: float) -> bool:
    """Whether a share `place` of a cell's mass lies up to the upper edge of its multiple k; see
    `pq.private.mechanisms.independent`."""
    unit = (k + 0.5) * math.inf if k + 0.5 > LATTICE_END else k + 0.5
    edge = min(max(unit * view[10] / view[11], lower), upper)
    if place < 0.5:
        return mass(parts, lower, edge) >= place * total
    return mass(parts, edge, upper) <= (1.0 - place) * total


@uncounted
def _multiple(
    view: Any, parts: Any, cell: int, lower: float, upper: float, low: float, high: float, place: float, logs: Any
) -> float:
    """The multiple of the step at a share of the cell's mass; NaN if the numbers do not do."""
    x, first, d, j = view[0], view[2], view[3], cell // 2
    if cell % 2:
        return x[first + j]
    one = max(x[first + j - 1] + 1.0 if j > 0 else low, -LATTICE_END)
    other = min(x[first + j] - 1.0 if j < d else high, LATTICE_END)
    total = mass(parts, lower, upper)
    if not total > TINY:
        return math.nan
    guess = np.rint(point_with(parts, lower, upper, place, logs) * view[11] / view[10])
    if math.isnan(guess):
        return math.nan
    guess = min(max(guess, one), other)
    if _has_share(view, parts, guess, lower, upper, total, place):
        other = guess
        if one < guess and not _has_share(view, parts, guess - 1.0, lower, upper, total, place):
            one = guess
    else:
        one = min(guess + 1.0, other)
    while one < other:
        middle = math.floor(0.5 * (one + other))
        if _has_share(view, parts, middle, lower, upper, total, place):
            other = middle
        else:
            one = middle + 1.0
    return one


@uncounted
def _draw(
    view: Any, low: float, high: float, parts: Any, fraction: Any, floored: bool, rate: float,
    uniform: float, place: float, room: Any,
) -> float:  # fmt: skip
    """One mechanism's output, from low to high in the units of the outputs; NaN if the numbers do not do."""
    up, target = view[10], exact_target(fraction, view[5], floored)
    cell = _cell(view, parts, target, rate, uniform, room)
    if cell < 0:
        return math.nan
    lower, upper = cell_edge(view, cell), cell_edge(view, cell + 1)
    if up > 0.0:
        return min(max(_multiple(view, parts, cell, lower, upper, low, high, place, room[2]), low), high)
    o = point_with(parts, lower, upper, place, room[2])
    if not -LARGEST <= o <= LARGEST:
        return math.nan
    o = min(max(o, np.nextafter(lower, math.inf)), LARGEST)  # a cell holds its upper edge, not its lower one
    return min(max(o, low), high)


_look = uncounted(cells_of.py_func)


@compiled
def _room(size: int, parts: int) -> Any:
    """Room for the edges and the weights of fewer cells than `size`, for the parts of a prior, and for a word back."""
    return np.empty(size), np.empty(size), np.empty(parts), np.zeros(1, dtype=np.int64)


@uncounted
def _walk_tree(
    x: Any, before: Any, gaps: Any, nodes: Any, members: Any, fractions: Any, floored: bool, edge: bool, lattice: Any,
    rates: Any, parts: Any, counts: Any, uniforms: Any, out: Any, drawn: Any, shares: Any,
    room: Any,
) -> bool:  # fmt: skip
    """One lane, by the names of `walk_lanes`; false where its numbers do not do. drawn, shares, room: to work in;
    the number of cells that have no room is put into the last array of `room`."""
    unit = max(int(lattice[2]), 1)
    for j in range(nodes.shape[0]):
        first, end = nodes[j, 0], nodes[j, 1]
        low = out[nodes[j, 2]] if nodes[j, 2] >= 0 else -math.inf
        high = out[nodes[j, 3]] if nodes[j, 3] >= 0 else math.inf
        if lattice[3] > 0.0:
            for side in range(2):
                shares[j, side] = passed_share(shares, out, nodes, j, side, unit, int(lattice[3]))
        if low < high:
            up, down = lattice[0], lattice[1]
            view = _look(x, before, low, high, shares[j, 0], shares[j, 1], edge, up, down, unit, gaps)
        for i in range(first, end):
            q = members[i]
            t = q % parts.shape[0]
            drawn[i] = low
            if low < high:
                drawn[i] = _draw(
                    view, low, high, parts[t, : counts[t]], fractions[q], floored,
                    rates[q] / unit, uniforms[q, 0], uniforms[q, 1], room,
                )  # fmt: skip
            if math.isnan(drawn[i]):
                return False
        if end - first > 1:
            sort_values(drawn[first:end])
        for i in range(first, end):
            out[members[i]] = drawn[i]
    return True


_SIGNATURE = int64(
    given(float64, 2),
    given(int64, 1),
    given(int64, 1),
    given(int64, 1),
    given(int64, 2),
    given(int64, 1),
    given(int64, 2),
    boolean,
    boolean,
    given(float64, 1),
    given(float64, 2),
    given(float64, 4),
    given(int64, 2),
    given(float64, 3),
    float64[:, ::1],
)


@kept(_SIGNATURE)
def walk_lanes(sources: int) -> Any:
    def run(
        columns: Any, sizes: Any, before: Any, gaps: Any, nodes: Any, members: Any, fractions: Any, floored: bool,
        edge: bool, lattice: Any, rates: Any, parts: Any, counts: Any, uniforms: Any, out: Any,
    ) -> Any:  # fmt: skip
        """Run a plan on every lane; its outputs go into `out` (lanes, m), NaN for lanes that fail; returns how many.

        columns: (c, n) sorted records, of which the first `sizes` (c,) of each row count; lane l has row l % c.
        before: (n + 1,) records before each entry of the one column, or empty if each entry is one record. gaps:
        see `pq.private.columns.part`; a lane that would look into one fails.
        nodes, members, fractions: see `pq.core.plan.PlanArrays`.
        lattice: (4,) numerator and denominator of the step, parts of a record, and whether a record at an output goes
            on by halves; zeros for real outputs. On a lattice columns and outputs are in steps, and `before` is given.
        rates: (r, m), parts: (p, m or 1, width, 4), of which counts (p, m or 1) rows count; lane l has row l % r and
            l % p. uniforms: (lanes, m, 2).
        """
        sources  # noqa: B018 (see pq.core.machine.keep)
        failures = 0
        drawn, shares = np.empty(members.size), np.zeros((nodes.shape[0], 2), dtype=np.int64)
        most = 2 * columns.shape[1] + 3  # edges of all cells
        room = _room(min(most, ROOM), parts.shape[2])
        for lane in range(out.shape[0]):
            c, r, p = lane % columns.shape[0], lane % rates.shape[0], lane % parts.shape[0]
            x = columns[c, : sizes[c]]
            walked, room[3][0] = False, 1
            while not walked and room[3][0] > 0:
                if room[3][0] >= room[0].size:
                    room = _room(min(4 * room[3][0], most), parts.shape[2])
                room[3][0] = 0
                walked = _walk_tree(
                    x, before, gaps, nodes, members, fractions, floored, edge, lattice, rates[r], parts[p], counts[p],
                    uniforms[lane], out[lane], drawn, shares, room,
                )  # fmt: skip
            if not walked:
                out[lane, :] = math.nan
                failures += 1
        return failures

    return run
