"""What the rows of a batch of columns hold at a node of the tree, in arrays of one shape (`alg:quantiles`).

All records of a column are kept at every node; those outside its interval become cells of no width.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from pq.core.grid import LATTICE_END, from_units
from pq.private.columns.door import Array

Interval: TypeAlias = tuple[Array, Array, Array, Array]  # (batch,) low, high, shares of the records at low and at high


def lattice_edges(halves: Array, step: Any) -> Array:
    """Edges of lattice cells, in halves of units, as values; the outermost cells have no end."""
    return np.asarray(from_units(np.where(np.abs(halves) > LATTICE_END, halves * np.inf, halves), step))


class NodeView:
    """What the rows of a batch hold at one node: cells as edges (batch, c + 1) with ranks low..high (batch, c), and n
    (batch,)."""

    def __init__(
        self, records: Array, weights: Array, interval: Interval, ends: tuple[Array, Array], step: Any
    ) -> None:
        self.records, self.weights = records, weights
        below = np.cumsum(weights, axis=1)
        self.n = below[:, -1] if records.shape[1] else np.zeros(len(records))
        self.ends = ends
        start, stop = ends[0][:, None], ends[1][:, None]
        low = interval[0][:, None]
        outside = np.where(records <= low, start, stop)
        nothing = np.zeros((len(records), 1))
        if step is None:
            inner = np.where(weights > 0.0, np.clip(records, start, stop), outside)
            self.low = self.high = np.concatenate([nothing, below], axis=1)
        else:
            high = interval[1][:, None]
            left = np.where(records == low, start, lattice_edges(records - 0.5, step))
            right = np.where(records == high, stop, lattice_edges(records + 0.5, step))
            sides = np.stack([left, right], axis=2)
            sides = np.where((weights > 0.0)[:, :, None], sides, outside[:, :, None])
            inner = np.clip(np.maximum.accumulate(sides.reshape(len(records), -1), axis=1), start, stop)
            self.low, self.high = tied_ranks(records, weights, below, nothing)
        self.edges = np.concatenate([start, inner, stop], axis=1)

    def ranks_of(self, o: Array, tied: bool) -> tuple[Array, Array]:
        """Ranks (batch,) that an output stands for."""
        below = np.sum(self.weights * (self.records < o[:, None]), axis=1)
        return below, np.sum(self.weights * (self.records <= o[:, None]), axis=1) if tied else below


def tied_ranks(records: Array, weights: Array, below: Array, nothing: Array) -> tuple[Array, Array]:
    """Ranks of cells that alternate between runs without records and single values; of equal records only the first's
    cell has width."""
    size = records.shape[1]
    low = np.empty((len(records), 2 * size + 1))
    low[:, ::2] = np.concatenate([nothing, below], axis=1)
    high = low.copy()
    if size:
        new = np.concatenate([nothing == 0.0, records[:, 1:] != records[:, :-1]], axis=1)
        last = np.concatenate([new[:, 1:], nothing == 0.0], axis=1)
        low[:, 1::2] = np.maximum.accumulate(np.where(new, below - weights, -np.inf), axis=1)
        reverse = np.where(last, below, np.inf)[:, ::-1]
        high[:, 1::2] = np.minimum.accumulate(reverse, axis=1)[:, ::-1]
    return low, high
