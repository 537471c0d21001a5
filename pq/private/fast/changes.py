"""What the score of each mechanism of the tree changes by between two columns, compiled (Section 3.2).

From this follows the worst that any priors could make of the two: an analysis, not a law; see `pq.truth.audit.worst`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import float64, int64

from pq.core.machine.keep import compiled, given, kept
from pq.private.fast.cells import cell_distance, cell_edge, exact_target, last_cell
from pq.private.fast.pairs import PLAN, gather_records, interval_of, look, pass_on, place_of, rooms, same_view


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
        first = exact_target(fractions[q], one[5], floored)
        second = exact_target(fractions[q], other[5], floored)
        for b in range(members.size):
            place = o[members[b]]
            gains[q, b] = rate * cell_distance(other, place_of(other, place), second)
            gains[q, b] -= rate * cell_distance(one, place_of(one, place), first)
        extremes[q, 0], extremes[q, 1] = math.inf, -math.inf
        for k in range(last_cell(both) + 1):
            lower = cell_edge(both, k)
            if lower < cell_edge(both, k + 1):
                place = _inside(both, k)
                change = rate * cell_distance(other, place_of(other, place), second)
                change -= rate * cell_distance(one, place_of(one, place), first)
                if change < extremes[q, 0]:
                    extremes[q, 0], places[q, 0] = change, lower
                if change > extremes[q, 1]:
                    extremes[q, 1], places[q, 1] = change, lower


@kept(
    int64(
        given(float64, 2), given(float64, 2), given(float64, 2), given(float64, 2), *PLAN, float64[:, :, ::1],
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
        values, before, shares = rooms(3, size, nodes.shape[0])
        law, found = (fractions, rates[0], floored, edge, unit), np.zeros(3, dtype=np.int64)
        for lane in range(outputs.shape[0]):
            o = outputs[lane]
            found[0] = gather_records(x[lane], values[0], before[0], unit, lattice[0] > 0.0)
            found[1] = gather_records(neighbour[lane], values[1], before[1], unit, lattice[0] > 0.0)
            found[2] = gather_records(both[lane], values[2], before[2], unit, lattice[0] > 0.0)
            for j in range(nodes.shape[0]):
                pass_on(shares, o, nodes, j, lattice)
                interval = interval_of(o, nodes, j)
                if not interval[0] < interval[1]:
                    continue
                views = (
                    look(values[0], before[0], found[0], interval, shares[j], edge, lattice),
                    look(values[1], before[1], found[1], interval, shares[j], edge, lattice),
                    look(values[2], before[2], found[2], interval, shares[j], edge, lattice),
                )
                if not same_view(views[0], views[1]):
                    _node_changes(
                        views, law, members[nodes[j, 0] : nodes[j, 1]], o, gains[lane], extremes[lane], places[lane]
                    )
        return 0

    return run
