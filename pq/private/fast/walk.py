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
from pq.private.fast.choose import picked, sort_values
from pq.private.fast.laws import LARGEST, log_mass, mass, point_with
from pq.private.fast.weights import edge_in_range, fill_log_weights, running_weights, weight_outside

WIDER = 4.0  # times the reach that met a gap is asked for: the nodes below look a little further
REACH = 7.5  # nats: weights beyond are less than e^-7 of the largest, before the prior has its say
LEAST_LOG_MASS = -5e5  # as in pq.private.mechanisms.independent
TOGETHER = 8  # cells that go through the processor at once
TINY = 1e-250  # total weights below are done again with logarithms
NEGLIGIBLE = 1e-12  # of the weight that is known: a score below it bounds all beyond, and rarely leaves a choice open
ROOM = 1 << 10  # cells that there is room for at first
WANTS_ROOM, LOOKED_INTO_GAP = 0, 1  # places of the words back: a number of cells, and of looks into gaps; then follow,
HEAD, LOOK = 2, 4  # for as many looks as there is room for, ranks of the node and those near the target, low and high
MOST_NATS = 1e6  # of the largest weight below one: further off, logarithms lose digits, and the formulas do better


@uncounted
def _ask(words: Any, view: Any, low: float, high: float) -> None:
    """Say that a look at some of the node's ranks met a gap."""
    place = HEAD + LOOK * words[LOOKED_INTO_GAP]
    words[LOOKED_INTO_GAP] += 1
    if place + LOOK <= words.size:
        words[place], words[place + 1] = view[4], view[4] + view[5]
        words[place + 2] = view[4] + np.int64(max(low, 0.0))
        words[place + 3] = view[4] + np.int64(min(high, float(view[5])))


@uncounted
def _within_range(view: Any, first: int, last: int) -> bool:
    """Whether the formulas do for all edges of the cells first..last, which are in increasing order."""
    outer = edge_in_range(cell_edge(view, first)) and edge_in_range(cell_edge(view, last + 1))
    return outer and edge_in_range(cell_edge(view, first + 1)) and edge_in_range(cell_edge(view, last))


@uncounted
def _least_distance(view: Any, target: tuple[int, float]) -> float:
    """Of the target from the ranks of a cell: where many records are alike, it may be far from all."""
    nearest = cell_at(view, float(target[0]))  # it or the next
    return min(cell_distance(view, nearest, target), cell_distance(view, min(nearest + 1, last_cell(view)), target))


@uncounted
def _log_scale(view: Any, parts: Any, top: float, below: float, above: float) -> float:
    """The largest of the weights near the target, below and above, in nats; NaN if they are beyond the formulas."""
    top = max(top, below, above) if not math.isnan(top + below + above) else math.nan
    if not -MOST_NATS < top < math.inf or not (edge_in_range(view[6]) and edge_in_range(view[7])):
        return math.nan
    return top if log_mass(parts, view[6], view[7]) > LEAST_LOG_MASS else math.nan


@uncounted
def _cell(view: Any, parts: Any, target: tuple[int, float], rate: float, uniform: float, room: Any) -> int:
    """The cell whose share of the weight covers the uniform; -2 if the numbers, or the room, do not do."""
    end, middle, logs = last_cell(view), float(target[0]), False
    best, beyond = _least_distance(view, target), 1.0 + REACH / rate
    while True:
        reach = best + beyond
        first, last = cell_at(view, middle - reach), min(end, cell_at(view, middle + 1.0 + reach) + 1)
        if has_gap(view, first, last):  # not left to the formulas, whose digits differ from those of a whole column's
            wide = best + WIDER * beyond
            _ask(room[3], view, middle - wide, middle + wide + 2.0)
            return -2
        filled = min(end, last + (first - last - 1) % TOGETHER)
        last = last if has_gap(view, first, filled) or not _within_range(view, first, filled) else filled
        if not _within_range(view, first, last):
            return -2
        count = last - first + 1
        if count >= room[0].size:
            room[3][WANTS_ROOM] = count
            return -2
        edges, running, total, top = room[0][: count + 1], room[1][:count], 0.0, 0.0
        if not logs:
            total = running_weights(view, parts, target, rate, first, edges, running)
            logs = not total > TINY
        if logs:
            total, top = 0.0, fill_log_weights(view, parts, target, rate, first, running)
        below = weight_outside(view, parts, target, rate, first, last, -1, NEGLIGIBLE * total, logs)
        above = weight_outside(view, parts, target, rate, first, last, 1, NEGLIGIBLE * total, logs)
        if logs:
            top = _log_scale(view, parts, top, below, above)
            if math.isnan(top):
                return -2
            for k in range(count):
                total += math.exp(running[k] - top)
                running[k] = total
            below, above = math.exp(below - top), math.exp(above - top)
        index = picked(running, below, above, uniform)
        if index >= 0:
            return first + index
        if index == -2 or (first == 0 and last == end):
            return -2
        beyond *= 2.0


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
def _room(size: int, parts: int, words: Any) -> Any:
    """Room for the edges and the weights of fewer cells than `size`, for the parts of a prior, and for words back."""
    return np.empty(size), np.empty(size), np.empty(parts), words


@uncounted
def _walk_tree(
    x: Any, before: Any, at: Any, gaps: Any, nodes: Any, members: Any, fractions: Any, floored: bool, edge: bool,
    lattice: Any, rates: Any, parts: Any, counts: Any, uniforms: Any, out: Any, drawn: Any, shares: Any, room: Any,
) -> int:  # fmt: skip
    """One lane, by the names of `walk_lanes`; returns how many outputs are left, -1 where it had to stop for want of
    room. drawn, shares, room: to work in; the last of `room` has the words back."""
    unit, left = max(int(lattice[2]), 1), 0
    for j in range(nodes.shape[0]):
        first, end = nodes[j, 0], nodes[j, 1]
        low = out[nodes[j, 2]] if nodes[j, 2] >= 0 else -math.inf
        high = out[nodes[j, 3]] if nodes[j, 3] >= 0 else math.inf
        known = not (math.isnan(low) or math.isnan(high))
        if lattice[3] > 0.0:
            for side in range(2):
                shares[j, side] = passed_share(shares, out, nodes, j, side, unit, int(lattice[3]))
        if low < high:
            up, down = lattice[0], lattice[1]
            view = _look(x, before, low, high, shares[j, 0], shares[j, 1], edge, up, down, unit, gaps, at)
        for i in range(first, end):
            q = members[i]
            t = q % parts.shape[0]
            drawn[i] = low
            if low < high:
                drawn[i] = _draw(
                    view, low, high, parts[t, : counts[t]], fractions[q], floored,
                    rates[q] / unit, uniforms[q, 0], uniforms[q, 1], room,
                )  # fmt: skip
            if room[3][WANTS_ROOM] > 0:
                return -1
            known = known and not math.isnan(drawn[i])
            if not known:
                break
        if known and end - first > 1:
            sort_values(drawn[first:end])
        for i in range(first, end):
            out[members[i]] = drawn[i] if known else math.nan
        left += 0 if known else end - first
    return left


_SIGNATURE = int64(
    given(float64, 2),
    given(int64, 1),
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
    int64[::1],
)


@kept(_SIGNATURE)
def walk_lanes(sources: int) -> Any:
    def run(
        columns: Any, sizes: Any, before: Any, at: Any, gaps: Any, nodes: Any, members: Any, fractions: Any,
        floored: bool, edge: bool, lattice: Any, rates: Any, parts: Any, counts: Any, uniforms: Any, out: Any,
        words: Any,
    ) -> Any:  # fmt: skip
        """Run a plan on every lane; its outputs go into `out` (lanes, m), NaN for those of nodes whose numbers do not
        do, and of nodes below; returns how many these are, or -1, and `out` is worth nothing, if it looked into a gap.

        columns: (c, n) sorted records, of which the first `sizes` (c,) of each row count; lane l has row l % c.
        before: (n + 1,) records before each entry of the one column, or empty if each entry is one record; at: empty,
        or with `before` as of `pq.private.columns.cells.Steps`. gaps: see `pq.private.columns.part`.
        nodes, members, fractions: see `pq.core.plan.PlanArrays`.
        lattice: (4,) numerator and denominator of the step, parts of a record, and whether a record at an output goes
            on by halves; zeros for real outputs. On a lattice columns and outputs are in steps, and `before` is given.
        rates: (r, m), parts: (p, m or 1, width, 4), of which counts (p, m or 1) rows count; lane l has row l % r and
            l % p. uniforms: (lanes, m, 2). words: (2 + 4 looks,) zeros, see `LOOK`.
        """
        sources  # noqa: B018 (see pq.core.machine.keep)
        missing = 0
        drawn, shares = np.empty(members.size), np.zeros((nodes.shape[0], 2), dtype=np.int64)
        most = 2 * columns.shape[1] + 3  # edges of all cells
        room = _room(min(most, ROOM), parts.shape[2], words)
        for lane in range(out.shape[0]):
            c, r, p = lane % columns.shape[0], lane % rates.shape[0], lane % parts.shape[0]
            x = columns[c, : sizes[c]]
            left, words[WANTS_ROOM] = -1, 1
            while left < 0:
                if words[WANTS_ROOM] >= room[0].size:
                    room = _room(min(4 * words[WANTS_ROOM], most), parts.shape[2], words)
                words[WANTS_ROOM], words[LOOKED_INTO_GAP] = 0, 0
                left = _walk_tree(
                    x, before, at, gaps, nodes, members, fractions, floored, edge, lattice, rates[r], parts[p],
                    counts[p], uniforms[lane], out[lane], drawn, shares, room,
                )  # fmt: skip
            if words[LOOKED_INTO_GAP] > 0:
                return -1
            missing += left
        return missing

    return run
