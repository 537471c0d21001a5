"""The cells of a column that joint outputs may lie in, as machine code, see `pq.private.mechanisms.joint.chain`
(Section 3.2).

A plan is here a tuple (levels, shares, tilts, settings); a column (x, ranks, cuts, parts). Cells are a tuple

    rank, decay   weight of the records below, and exp(-rate (rank[c] - rank[c - 1]))
    own           (k or 1, c) mass under each output's base density
    lower, upper  ends
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pq.core.machine.keep import compiled
from pq.private.fast.laws import add_cell_masses
from pq.private.fast.weights import edge_in_range

RATE, UNIT, FREE, MARGIN, BEYOND, RATIO, KIND = range(7)  # of `settings`; FREE is k log of the distinct priors


@compiled
def weight_of(x: Any, ranks: Any) -> float:
    return float(x.size) if ranks.size == 0 else ranks[-1]


@compiled
def stretch(x: Any, ranks: Any, low: float, high: float) -> tuple[Any, Any]:
    """The cells first..last - 1 of ranks from low to high."""
    if ranks.size:
        return np.searchsorted(ranks, low, "left"), np.searchsorted(ranks, high, "right")
    end = float(x.size + 1)
    return int(min(max(math.ceil(low), 0.0), end)), int(min(math.floor(high) + 1.0, end))


@compiled
def _stretches(x: Any, ranks: Any, spans: Any) -> Any:
    """Stretches (s, 2) of cells that cover the ranks of all spans, apart from each other."""
    out = np.empty((spans.shape[0], 2), np.int64)
    count = 0
    for j in range(spans.shape[0]):
        first, last = stretch(x, ranks, spans[j, 0], spans[j, 1])
        if first < last:
            if count and first <= out[count - 1, 1]:
                out[count - 1, 1] = max(out[count - 1, 1], last)
            else:
                out[count, 0], out[count, 1] = first, last
                count += 1
    return out[:count]


@compiled
def _cut(column: Any, first: int, last: int, start: int, edges: Any, rank: Any, bins: Any) -> int:
    """Put the edges, ranks and bins of a stretch of cells, cut at the bins' edges, from `start` on; returns the end."""
    x, ranks, cuts, _ = column
    i = start
    low = x[first - 1] if first > 0 else -math.inf
    edges[i] = low
    b = np.searchsorted(cuts, low, "right")
    for cell in range(first, last):
        high = x[cell] if cell < x.size else math.inf
        below = float(cell) if ranks.size == 0 else ranks[cell]
        while b < cuts.size and cuts[b] < high:
            if cuts[b] > low:
                rank[i], bins[i], low = below, b, cuts[b]
                i += 1
                edges[i] = low
            b += 1
        if high > low:
            rank[i], bins[i], low = below, b, high
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
    x, ranks, cuts, parts = column
    tilts, rate = plan[2], plan[3][RATE]
    stretches = _stretches(x, ranks, spans)
    most = int(np.sum(stretches[:, 1] - stretches[:, 0])) + cuts.size * stretches.shape[0]
    edges, mass, rank, bins = np.empty(most + 1), np.empty(most), np.empty(most), np.empty(most, np.int64)
    lower, upper = np.empty(most), np.empty(most)
    end = 0
    for s in range(stretches.shape[0]):
        start = end
        end = _cut(column, stretches[s, 0], stretches[s, 1], start, edges, rank, bins)
        add_cell_masses(parts, edges[start : end + 1], mass[start:end])
        if end > start and not _are_in_range(edges[start : end + 1]):
            mass[start:end] = math.nan
        lower[start:end], upper[start:end] = edges[start:end], edges[start + 1 : end + 1]
    decay = np.ones(end)
    for c in range(1, end):
        step = rank[c] - rank[c - 1]
        decay[c] = decay[c - 1] if c > 1 and step == rank[c - 1] - rank[c - 2] else math.exp(-rate * step)
    own = np.empty((tilts.shape[0] if tilts.shape[1] > 1 else 1, end))
    for j in range(own.shape[0]):
        for c in range(end):
            own[j, c] = mass[c] * math.exp(tilts[j, bins[c]]) if tilts.shape[1] > 1 else mass[c]
    return rank[:end], decay, own, lower[:end], upper[:end]
