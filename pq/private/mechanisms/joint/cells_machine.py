"""The cells of a column that joint outputs may lie in, as machine code, see `pq.private.mechanisms.joint.chain`
(Section 3.2).

A plan is here a tuple (levels, shares, tilts, settings); a column (x, ranks, at, cuts, parts), where `ranks` and `at`
are as in `walk_joint`. Cells are a tuple

    rank, decay    weight of the records below, and exp(-rate (rank[c] - rank[c - 1]))
    own            (k or 1, c) mass under each output's base density
    edges, starts  ends, see `ends_of`, and the first cell of each stretch of neighbours

There are as many cells as a tenth of a large column has records, so that each further number of a cell would be seen in
what a release takes of memory.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pq.core.machine.keep import compiled
from pq.private.fast.cells import first_not_below
from pq.private.fast.laws import add_cell_masses
from pq.private.fast.weights import edge_in_range

RATE, UNIT, FREE, MARGIN, BEYOND, RATIO, KIND = range(7)  # of `settings`; FREE is k log of the distinct priors


@compiled
def weight_of(x: Any, ranks: Any, at: Any) -> float:
    if at.size:
        return x.size + ranks[-1]
    return float(x.size) if ranks.size == 0 else ranks[-1]


@compiled
def _first_cell(x: Any, ranks: Any, at: Any, low: float) -> Any:
    """The first cell whose rank is not below a number."""
    start, end, more = 0, x.size + 1, 0.0
    if at.size:
        first, last = 0, at.size
        while first < last:
            middle = (first + last) // 2
            if at[middle] + ranks[middle] < low:
                first = middle + 1
            else:
                last = middle
        start, more = at[first - 1] + 1 if first > 0 else 0, ranks[first]
    return int(min(max(math.ceil(low - more), float(start)), float(end)))


@compiled
def stretch(x: Any, ranks: Any, at: Any, low: float, high: float) -> tuple[Any, Any]:
    """The cells first..last - 1 of ranks from low to high."""
    if ranks.size and not at.size:
        return np.searchsorted(ranks, low, "left"), np.searchsorted(ranks, high, "right")
    return _first_cell(x, ranks, at, low), _first_cell(x, ranks, at, math.floor(high) + 1.0)


@compiled
def _stretches(x: Any, ranks: Any, at: Any, spans: Any) -> Any:
    """Stretches (s, 2) of cells that cover the ranks of all spans, apart from each other."""
    out = np.empty((spans.shape[0], 2), np.int64)
    count = 0
    for j in range(spans.shape[0]):
        first, last = stretch(x, ranks, at, spans[j, 0], spans[j, 1])
        if first < last:
            if count and first <= out[count - 1, 1]:
                out[count - 1, 1] = max(out[count - 1, 1], last)
            else:
                out[count, 0], out[count, 1] = first, last
                count += 1
    return out[:count]


@compiled
def _cut(column: Any, first: int, last: int, edges: Any, rank: Any, bins: Any) -> int:
    """Put the edges, ranks and bins, if there is room for these, of a stretch of cells, cut at the bins' edges; returns
    how many cells that makes."""
    x, ranks, at, cuts, _ = column
    i, step = 0, first_not_below(at, 0, at.size, first)
    low = x[first - 1] if first > 0 else -math.inf
    edges[i] = low
    b = np.searchsorted(cuts, low, "right")
    for cell in range(first, last):
        high = x[cell] if cell < x.size else math.inf
        if at.size:
            step += step < at.size and at[step] < cell
            below = cell + ranks[step]
        else:
            below = float(cell) if ranks.size == 0 else ranks[cell]
        while b < cuts.size and cuts[b] < high:
            if cuts[b] > low:
                rank[i], low = below, cuts[b]
                if bins.size:
                    bins[i] = b
                i += 1
                edges[i] = low
            b += 1
        if high > low:
            rank[i], low = below, high
            if bins.size:
                bins[i] = b
            i += 1
            edges[i] = low
    return i


@compiled
def _are_in_range(edges: Any) -> bool:
    """Whether the formulas are good for increasing edges; what lies beyond those that are looked at does not matter."""
    first, last = edges[1 if edges[0] == -math.inf else 0], edges[-2 if edges[-1] == math.inf else -1]
    return edge_in_range(first) and edge_in_range(last)


@compiled
def gather_cells(plan: Any, column: Any, spans: Any) -> Any:
    """The cells that windows may use; see `chain.gather`. Masses are not-a-number where the formulas do not do."""
    x, ranks, at, _, parts = column
    tilts, rate = plan[2], plan[3][RATE]
    is_tilted = tilts.shape[1] > 1
    stretches = _stretches(x, ranks, at, spans)
    count = stretches.shape[0]
    most = int(np.sum(stretches[:, 1] - stretches[:, 0])) + column[3].size * count
    edges, mass, rank = np.empty(most + count), np.empty(most), np.empty(most)
    bins, starts = np.empty(most if is_tilted else 0, np.int64), np.empty(count, np.int64)
    end = 0
    for s in range(count):
        start = starts[s] = end
        end += _cut(column, stretches[s, 0], stretches[s, 1], edges[start + s :], rank[start:], bins[start:])
        mine = edges[start + s : end + s + 1]
        add_cell_masses(parts, mine, mass[start:end])
        if end > start and not _are_in_range(mine):
            mass[start:end] = math.nan
    decay = np.ones(end)
    for c in range(1, end):
        step = rank[c] - rank[c - 1]
        decay[c] = decay[c - 1] if c > 1 and step == rank[c - 1] - rank[c - 2] else math.exp(-rate * step)
    if not is_tilted:
        return rank[:end], decay, mass[:end].reshape((1, end)), edges, starts
    own = np.empty((tilts.shape[0], end))
    for j in range(own.shape[0]):
        for c in range(end):
            own[j, c] = mass[c] * math.exp(tilts[j, bins[c]])
    return rank[:end], decay, own, edges, starts


@compiled
def ends_of(cells: Any, c: int) -> tuple[float, float]:
    """The ends of a cell: each stretch has one edge more than cells."""
    edges, starts = cells[3], cells[4]
    first = c + np.searchsorted(starts, c, "right") - 1
    return edges[first], edges[first + 1]
