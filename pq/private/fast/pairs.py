"""Exact privacy losses of `alg:quantiles` on pairs of columns, compiled: many pairs in one call (Section 3.2).

The law is that of `pq.private.mechanisms.independent` and `pq.private.mechanisms.tree`, from the functions of the walk.
A node at which both columns look the same has the same law on both, so only the others are evaluated. What an output's
place is worth under the prior, and whether it can come out at all, does not depend on the column.

A pair that meets numbers beyond the range of these formulas, or an output that may be impossible, is marked with NaN
and left to the caller.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import boolean, float64, int64

from pq.core.machine.keep import compiled, given, kept
from pq.private.fast.laws import add_cell_masses, log_mass, mass
from pq.private.fast.view import (
    LATTICE_END,
    distance_of,
    edge_of,
    first_not_below,
    last_cell,
    rank_of,
    share_of,
    target_of,
    view_of,
)
from pq.private.fast.walk import LEAST_LOG_MASS, TINY

# A mass that is lost to the floats is below e^-707, and a score at most e^(rate n) times that of the nearest cell: a
# total above e^(rate n - FULL) misses less than e^-40 of itself.
FULL = 660.0


@compiled
def _log_sum(one: float, other: float) -> float:
    """Log of the sum of two exponentials; NaN goes through."""
    top = max(one, other)
    return top if top == -math.inf else top + math.log(math.exp(one - top) + math.exp(other - top))


@compiled
def _log_mass(parts: Any, a: float, b: float) -> float:
    whole = mass(parts, a, b)
    return math.log(whole) if whole > TINY else log_mass(parts, a, b)


@compiled
def _place(view: Any, o: float) -> int:
    """The cell that holds an output."""
    j = first_not_below(view[0], view[2], view[2] + view[3], o) - view[2]
    if not view[10] > 0.0:
        return j
    return 2 * j + 1 if j < view[3] and view[0][view[2] + j] == o else 2 * j


@compiled
def _same(one: Any, other: Any) -> bool:
    """Whether two columns look the same at a node."""
    if one[3] != other[3] or one[5] != other[5]:
        return False
    for j in range(one[3]):
        if one[0][one[2] + j] != other[0][other[2] + j] or rank_of(one, j + 1) != rank_of(other, j + 1):
            return False
    return True


@compiled
def _log_total(view: Any, parts: Any, target: tuple[int, float], rate: float, edges: Any, weights: Any) -> float:
    """Log of the total weight of all cells; NaN if the numbers do not do."""
    count, best, total = last_cell(view) + 1, math.inf, 0.0
    for k in range(count + 1):
        edges[k] = edge_of(view, k)
    add_cell_masses(parts, edges[: count + 1], weights[:count])
    for k in range(count):
        if weights[k] > 0.0:
            best = min(best, distance_of(view, k, target))
    for k in range(count):
        if weights[k] > 0.0:
            total += weights[k] * math.exp(-rate * (distance_of(view, k, target) - best))
    if total > 0.0 and math.log(total) > rate * (view[5] + 1) - FULL:
        return math.log(total) - rate * best
    total = -math.inf
    for k in range(count):
        if edges[k] < edges[k + 1]:
            total = _log_sum(total, log_mass(parts, edges[k], edges[k + 1]) - rate * distance_of(view, k, target))
    return total if total > -math.inf else math.nan


@compiled
def _log_base(view: Any, parts: Any, o: float, low: float, high: float, edge: bool, density: float) -> float:
    """Log of the adapted prior's mass at an output that is an atom, else its density there, not normalised."""
    lower = upper = o
    at_low, at_high, up, down = edge and o == low, edge and o == high, view[10], view[11]
    if up > 0.0:
        lower = (o - 0.5) * up / down if o > -LATTICE_END else -math.inf
        upper = (o + 0.5) * up / down if o < LATTICE_END else math.inf
    elif not (at_low or at_high):
        return density
    return _log_mass(parts, -math.inf if at_low else lower, math.inf if at_high else upper)


@compiled
def _log_permanent(table: Any, size: int, partial: Any) -> float:
    """Log of the permanent of a matrix of logs: row by row, over the sets of columns used so far."""
    if size == 1:
        return table[0, 0]
    partial[: 1 << size] = -math.inf
    partial[0] = 0.0
    for used in range((1 << size) - 1):
        row = 0
        for j in range(size):
            row += used >> j & 1
        for j in range(size):
            if not used >> j & 1:
                partial[used | 1 << j] = _log_sum(partial[used | 1 << j], partial[used] + table[row, j])
    return partial[(1 << size) - 1]


@compiled
def _node_loss(
    views: Any, law: Any, members: Any, parts: Any, counts: Any, o: Any, densities: Any, low: float, high: float,
    room: Any,
) -> float:  # fmt: skip
    """What one node adds to the loss; NaN where the formulas must say."""
    fractions, rates, floored, edge, unit = law
    base, tables, edges, weights, partial = room
    size, same = members.size, _same(views[0], views[1])
    for a in range(size):
        q = members[a]
        t = q % parts.shape[0]
        own, rate = parts[t, : counts[t]], rates[q] / unit
        if not _log_mass(own, views[0][6], views[0][7]) > LEAST_LOG_MASS:
            return math.nan
        for b in range(size):
            base[a, b] = _log_base(views[0], own, o[members[b]], low, high, edge, densities[q, b])
            if not base[a, b] > -math.inf:
                return math.nan
        if same:
            continue
        for v in range(2):
            view = views[v]
            target = target_of(fractions[q, 0], fractions[q, 1], view[5], floored)
            total = _log_total(view, own, target, rate, edges, weights)
            for b in range(size):
                score = -rate * distance_of(view, _place(view, o[members[b]]), target)
                # alone, an output's base is the same on both sides
                tables[v, a, b] = score - total + (base[a, b] if size > 1 else 0.0)
    if same:
        return 0.0
    return _log_permanent(tables[0], size, partial) - _log_permanent(tables[1], size, partial)


@compiled
def _inside(view: Any, k: int) -> float:
    """An output of a cell."""
    x, first, d = view[0], view[2], view[3]
    if not view[10] > 0.0:
        return x[first + k] if k < d else math.inf
    j = k // 2
    if k % 2:
        return x[first + j]
    if j < d:
        return x[first + j] - 1.0
    return x[first + j - 1] + 1.0 if j > 0 else 0.0


@compiled
def _node_changes(views: Any, law: Any, members: Any, o: Any, gains: Any, extremes: Any, places: Any) -> None:
    """What one node puts into the rows of its mechanisms; see `pair_changes`."""
    one, other, both = views
    fractions, rates, floored, _, unit = law
    for q in members:
        rate = rates[q] / unit
        first = target_of(fractions[q, 0], fractions[q, 1], one[5], floored)
        second = target_of(fractions[q, 0], fractions[q, 1], other[5], floored)
        for b in range(members.size):
            place = o[members[b]]
            gains[q, b] = rate * distance_of(other, _place(other, place), second)
            gains[q, b] -= rate * distance_of(one, _place(one, place), first)
        extremes[q, 0], extremes[q, 1] = math.inf, -math.inf
        for k in range(last_cell(both) + 1):
            lower = edge_of(both, k)
            if lower < edge_of(both, k + 1):
                place = _inside(both, k)
                change = rate * distance_of(other, _place(other, place), second)
                change -= rate * distance_of(one, _place(one, place), first)
                if change < extremes[q, 0]:
                    extremes[q, 0], places[q, 0] = change, lower
                if change > extremes[q, 1]:
                    extremes[q, 1], places[q, 1] = change, lower


@compiled
def _gather(row: Any, values: Any, before: Any, unit: int, lattice: bool) -> int:
    """Put the records of a row, up to the first +inf, into `values` and the parts before each into `before`; on a
    lattice each value once."""
    count = 0
    before[0] = 0
    for record in row:
        if record == math.inf:
            break
        if lattice and count > 0 and values[count - 1] == record:
            before[count] += unit
        else:
            values[count], before[count + 1] = record, before[count] + unit
            count += 1
    return count


@compiled
def _interval(out: Any, nodes: Any, j: int) -> tuple[float, float]:
    return (
        out[nodes[j, 2]] if nodes[j, 2] >= 0 else -math.inf,
        out[nodes[j, 3]] if nodes[j, 3] >= 0 else math.inf,
    )


@compiled
def _look(values: Any, before: Any, count: int, interval: Any, shares: Any, edge: bool, lattice: Any) -> Any:
    """What a node sees of a column, see `view_of`."""
    known = before[: count + 1] if lattice[0] > 0.0 else before[:0]
    unit = max(int(lattice[2]), 1)
    return view_of(
        values[:count], known, interval[0], interval[1], shares[0], shares[1], edge, lattice[0], lattice[1], unit
    )


_PLAN = (given(int64, 2), given(int64, 1), given(int64, 2), given(float64, 2), boolean, boolean, given(float64, 1))


@kept(
    int64(
        given(float64, 2), given(float64, 2), given(float64, 2), *_PLAN, given(float64, 4), given(int64, 2),
        given(float64, 3), float64[::1],
    )
)  # fmt: skip
def pair_losses(sources: int) -> Any:
    def run(
        x: Any, neighbour: Any, outputs: Any, nodes: Any, members: Any, fractions: Any, rates: Any, floored: bool,
        edge: bool, lattice: Any, parts: Any, counts: Any, densities: Any, out: Any,
    ) -> Any:  # fmt: skip
        """Privacy losses (lanes,) of outputs (lanes, m) on pairs of columns (lanes, n) into `out`; returns how many
        are NaN.

        x, neighbour: sorted, +inf for no record. nodes, members, fractions, rates: see `pq.core.plan.PlanArrays`.
        lattice: (4,) as in `pq.private.fast.walk.walk_lanes`; columns and outputs are then in steps. parts, counts: (1,
        m or 1, width, 4) and (1, m or 1). densities: (lanes, m, most) log densities under each mechanism's prior of the
        outputs of its node; not used on a lattice.
        """
        sources  # noqa: B018 (see pq.core.machine.keep)
        size, most, unit = x.shape[1], densities.shape[2], max(int(lattice[2]), 1)
        values, before = np.empty((2, size)), np.empty((2, size + 1), dtype=np.int64)
        shares = np.zeros((nodes.shape[0], 2), dtype=np.int64)
        room = (
            np.empty((most, most)), np.empty((2, most, most)), np.empty(2 * size + 2), np.empty(2 * size + 1),
            np.empty(1 << most),
        )  # fmt: skip
        law = (fractions, rates[0], floored, edge, unit)
        failures = 0
        for lane in range(out.size):
            o = outputs[lane]
            one = _gather(x[lane], values[0], before[0], unit, lattice[0] > 0.0)
            other = _gather(neighbour[lane], values[1], before[1], unit, lattice[0] > 0.0)
            out[lane] = 0.0
            for j in range(nodes.shape[0]):
                if lattice[3] > 0.0:
                    for side in range(2):
                        shares[j, side] = share_of(shares, o, nodes, j, side, unit, int(lattice[3]))
                interval = _interval(o, nodes, j)
                if interval[0] < interval[1]:
                    views = (
                        _look(values[0], before[0], one, interval, shares[j], edge, lattice),
                        _look(values[1], before[1], other, interval, shares[j], edge, lattice),
                    )
                    out[lane] += _node_loss(
                        views, law, members[nodes[j, 0] : nodes[j, 1]], parts[0], counts[0], o, densities[lane],
                        interval[0], interval[1], room,
                    )  # fmt: skip
                if math.isnan(out[lane]):
                    failures += 1
                    break
        return failures

    return run


@kept(
    int64(
        given(float64, 2), given(float64, 2), given(float64, 2), given(float64, 2), *_PLAN, float64[:, :, ::1],
        float64[:, :, ::1], float64[:, :, ::1],
    )
)  # fmt: skip
def pair_changes(sources: int) -> Any:
    def run(
        x: Any, neighbour: Any, both: Any, outputs: Any, nodes: Any, members: Any, fractions: Any, rates: Any,
        floored: bool, edge: bool, lattice: Any, gains: Any, extremes: Any, places: Any,
    ) -> Any:  # fmt: skip
        """How much less a score is on the second column than on the first, for each mechanism: at the outputs of its
        node into `gains` (lanes, m, most); the least and the largest over all cells into `extremes` (lanes, m, 2), and
        the lower edges of such cells into `places`.

        both: (lanes, .) the records of both columns, sorted. All else: see `pair_losses`. Arrays that are filled hold
        zeros where nothing changes.
        """
        sources  # noqa: B018 (see pq.core.machine.keep)
        size, unit = both.shape[1], max(int(lattice[2]), 1)
        values, before = np.empty((3, size)), np.empty((3, size + 1), dtype=np.int64)
        shares = np.zeros((nodes.shape[0], 2), dtype=np.int64)
        law, found = (fractions, rates[0], floored, edge, unit), np.zeros(3, dtype=np.int64)
        for lane in range(outputs.shape[0]):
            o = outputs[lane]
            found[0] = _gather(x[lane], values[0], before[0], unit, lattice[0] > 0.0)
            found[1] = _gather(neighbour[lane], values[1], before[1], unit, lattice[0] > 0.0)
            found[2] = _gather(both[lane], values[2], before[2], unit, lattice[0] > 0.0)
            for j in range(nodes.shape[0]):
                if lattice[3] > 0.0:
                    for side in range(2):
                        shares[j, side] = share_of(shares, o, nodes, j, side, unit, int(lattice[3]))
                interval = _interval(o, nodes, j)
                if not interval[0] < interval[1]:
                    continue
                views = (
                    _look(values[0], before[0], found[0], interval, shares[j], edge, lattice),
                    _look(values[1], before[1], found[1], interval, shares[j], edge, lattice),
                    _look(values[2], before[2], found[2], interval, shares[j], edge, lattice),
                )
                if not _same(views[0], views[1]):
                    _node_changes(
                        views, law, members[nodes[j, 0] : nodes[j, 1]], o, gains[lane], extremes[lane], places[lane]
                    )
        return 0

    return run
