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
from numba import float64, int64

from pq.core.machine.keep import compiled, given, kept
from pq.private.fast.cells import LATTICE_END, cell_distance, cell_edge, exact_target, last_cell
from pq.private.fast.laws import add_cell_masses, log_mass, mass
from pq.private.fast.pairs import PLAN, gather_records, interval_of, look, pass_on, place_of, rooms, same_view
from pq.private.fast.walk import LEAST_LOG_MASS, TINY

# A mass that is lost to the floats is below e^-707, and a score at most e^(rate n) times that of the nearest cell: a
# total above e^(rate n - FULL) misses less than e^-40 of itself.
FULL = 660.0


@compiled
def _log_sum(one: float, other: float) -> float:
    """Log of the sum of two exponentials; NaN goes through."""
    top = max(one, other)
    return one + other if top == -math.inf else top + math.log(math.exp(one - top) + math.exp(other - top))


@compiled
def _log_mass(parts: Any, a: float, b: float) -> float:
    whole = mass(parts, a, b)
    return math.log(whole) if whole > TINY else log_mass(parts, a, b)


@compiled
def _log_total(view: Any, parts: Any, target: tuple[int, float], rate: float, edges: Any, weights: Any) -> float:
    """Log of the total weight of all cells; NaN if the numbers do not do."""
    count, best, total = last_cell(view) + 1, math.inf, 0.0
    for k in range(count + 1):
        edges[k] = cell_edge(view, k)
    add_cell_masses(parts, edges[: count + 1], weights[:count])
    for k in range(count):
        if weights[k] > 0.0:
            best = min(best, cell_distance(view, k, target))
    for k in range(count):
        if weights[k] > 0.0:
            total += weights[k] * math.exp(-rate * (cell_distance(view, k, target) - best))
    if total > 0.0 and math.log(total) > rate * (view[5] + 1) - FULL:
        return math.log(total) - rate * best
    total = -math.inf
    for k in range(count):
        if edges[k] < edges[k + 1]:
            total = _log_sum(total, log_mass(parts, edges[k], edges[k + 1]) - rate * cell_distance(view, k, target))
    return total if total > -math.inf else math.nan


@compiled
def _log_base(view: Any, parts: Any, o: float, interval: Any, edge: bool, density: float) -> float:
    """Log of the adapted prior's mass at an output that is an atom, else its density there, not normalised."""
    lower = upper = o
    at_low, at_high, up, down = edge and o == interval[0], edge and o == interval[1], view[10], view[11]
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
    views: Any, law: Any, members: Any, parts: Any, counts: Any, o: Any, densities: Any, interval: Any, room: Any
) -> float:
    """What one node adds to the loss; NaN where the formulas must say."""
    fractions, rates, floored, edge, unit = law
    base, tables, edges, weights, partial = room
    size, same = members.size, same_view(views[0], views[1])
    for a in range(size):
        q = members[a]
        t = q % parts.shape[0]
        own, rate = parts[t, : counts[t]], rates[q] / unit
        if not _log_mass(own, views[0][6], views[0][7]) > LEAST_LOG_MASS:
            return math.nan
        for b in range(size):
            base[a, b] = _log_base(views[0], own, o[members[b]], interval, edge, densities[q, b])
            if not base[a, b] > -math.inf:
                return math.nan
        if same:
            continue
        for v in range(2):
            view = views[v]
            target = exact_target(fractions[q], view[5], floored)
            total = _log_total(view, own, target, rate, edges, weights)
            for b in range(size):
                score = -rate * cell_distance(view, place_of(view, o[members[b]]), target)
                # alone, an output's base is the same on both sides
                tables[v, a, b] = score - total + (base[a, b] if size > 1 else 0.0)
    if same:
        return 0.0
    return _log_permanent(tables[0], size, partial) - _log_permanent(tables[1], size, partial)


@compiled
def _pair_loss(
    columns: Any, counts: Any, o: Any, densities: Any, law: Any, tree: Any, tables: Any, lattice: Any, room: Any
) -> float:
    """The loss of one pair; see `pair_losses`."""
    (values, before), (nodes, members, shares), (parts, rows) = columns, tree, tables
    total = 0.0
    for j in range(nodes.shape[0]):
        pass_on(shares, o, nodes, j, lattice)
        interval = interval_of(o, nodes, j)
        if interval[0] < interval[1]:
            views = (
                look(values[0], before[0], counts[0], interval, shares[j], law[3], lattice),
                look(values[1], before[1], counts[1], interval, shares[j], law[3], lattice),
            )
            mine = members[nodes[j, 0] : nodes[j, 1]]
            total += _node_loss(views, law, mine, parts, rows, o, densities, interval, room)
        if math.isnan(total):
            break
    return total


@kept(
    int64(
        given(float64, 2), given(float64, 2), given(float64, 2), *PLAN, given(float64, 4), given(int64, 2),
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
        values, before, shares = rooms(2, size, nodes.shape[0])
        room = (
            np.empty((most, most)), np.empty((2, most, most)), np.empty(2 * size + 2), np.empty(2 * size + 1),
            np.empty(1 << most),
        )  # fmt: skip
        law, tree, tables = (fractions, rates[0], floored, edge, unit), (nodes, members, shares), (parts[0], counts[0])
        failures = 0
        for lane in range(out.size):
            found = (
                gather_records(x[lane], values[0], before[0], unit, lattice[0] > 0.0),
                gather_records(neighbour[lane], values[1], before[1], unit, lattice[0] > 0.0),
            )
            columns = (values, before)
            out[lane] = _pair_loss(columns, found, outputs[lane], densities[lane], law, tree, tables, lattice, room)
            failures += math.isnan(out[lane])
        return failures

    return run
