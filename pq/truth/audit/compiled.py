"""The audit's two inner loops in scalar arithmetic, compiled: exact losses with tabled priors, and with the worst
priors (Section 3.2).

Both walk the nodes that see a difference, one pair of neighbours after another. The formulas are those of
`pq.truth.audit.density` and `pq.truth.audit.worst`, against which they are tested.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pq.private.columns.door import Array
from pq.truth.audit.bins import UnitBins
from pq.truth.audit.density import TreeDensity, changed_records
from pq.truth.audit.kernels import BinTables, TreeArrays, pair_losses
from pq.truth.audit.mechanism import difference
from pq.truth.audit.worst import WorstPriors

MOST_NATS = 600.0  # of scores and prior masses together: products are then no subnormal numbers
LARGEST_PART = 2**20  # of a relative quantile's numerator and denominator: floors are then exact


def tree_arrays(tree: TreeDensity) -> TreeArrays:
    """The plan of a mechanism as arrays."""
    nodes = list(tree.plan.root.walk())
    most = max(len(node.indices) for node in nodes)
    indices, children = (np.full((len(nodes), most + extra), -1, dtype=np.int64) for extra in (0, 1))
    place = {node.indices: k for k, node in enumerate(nodes)}
    for k, node in enumerate(nodes):
        indices[k, : len(node.indices)] = node.indices
        for c, child in enumerate(node.children):
            if child is not None:
                children[k, c] = place[child.indices]
    return TreeArrays(
        np.array([len(node.indices) for node in nodes]),
        indices,
        children,
        np.array(tree.rates),
        np.array([q.numerator for q in tree.relative]),
        np.array([q.denominator for q in tree.relative]),
        tree.plan.calibration == "paper",
        tree.tie_share,
        tree.edge,
        tree.step is not None,
    )


def _whole(tree: TreeDensity) -> bool:
    """Whether a mechanism's numbers are simple enough for scalar arithmetic."""
    parts = [max(q.numerator, q.denominator) for q in tree.relative]
    return tree.step in (None, 1) and max(parts) <= LARGEST_PART


def _tabled(tree: TreeDensity) -> BinTables | None:
    priors = list(dict.fromkeys(tree.priors))
    if not _whole(tree) or not all(isinstance(prior, UnitBins) for prior in priors):
        return None
    shapes = {(len(prior.weights), prior.edges[0]) for prior in priors}  # type: ignore[attr-defined]
    if len(shapes) > 1 or min(min(prior.weights) for prior in priors) <= 0.0:  # type: ignore[attr-defined]
        return None
    return BinTables(
        np.array([priors.index(prior) for prior in tree.priors]),
        np.array([prior._between for prior in priors]),  # type: ignore[attr-defined]
        np.array([prior._weights for prior in priors]),  # type: ignore[attr-defined]
        priors[0].edges[0],  # type: ignore[attr-defined]
    )


class FastDensity(TreeDensity):
    """`TreeDensity` whose losses are compiled where priors and outputs allow it."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._tree, self._bins = tree_arrays(self), _tabled(self)

    def log_ratio(self, x: Array, neighbour: Array, values: Array) -> Array:
        bins = self._bins
        nats = max(self.rates) * (x.shape[1] + 1)
        if bins is None or nats - math.log(float(bins.weights[:, 1:-1].min())) > MOST_NATS:
            return super().log_ratio(x, neighbour, values)
        one, other, outputs = (np.ascontiguousarray(self.outputs_of(part)) for part in (x, neighbour, values))
        end = bins.start + bins.weights.shape[1] - 2
        rows = self._on_grid(values, outputs) & np.all(values[:, 1:] >= values[:, :-1], axis=1)
        rows &= np.all((values > bins.start) & (values < end), axis=1)
        total = pair_losses(self._tree, bins, one, other, outputs, changed_records(one, other), False)[:, 0]
        rest = np.flatnonzero(~rows)
        if rest.size:
            logs = self.log_density(np.concatenate([x[rest], neighbour[rest]]), np.tile(values[rest], (2, 1)))
            total[rest] = difference(logs[: rest.size], logs[rest.size :])
        return total


class FastWorst(WorstPriors):
    """`WorstPriors`, compiled."""

    def __init__(self, tree: TreeDensity) -> None:
        super().__init__(tree)
        self._tree, self._whole = tree_arrays(tree), _whole(tree)

    def log_ratio(self, x: Array, neighbour: Array, values: Array) -> Array:
        if not self._whole:
            return super().log_ratio(x, neighbour, values)
        one, other, outputs = (np.ascontiguousarray(self.tree.outputs_of(part)) for part in (x, neighbour, values))
        totals = pair_losses(self._tree, NO_BINS, one, other, outputs, changed_records(one, other), True)
        return np.where(totals[:, 0] >= -totals[:, 1], totals[:, 0], totals[:, 1])


NO_BINS = BinTables(np.zeros(1, dtype=np.int64), np.zeros((1, 1, 1)), np.zeros((1, 2)), 0.0)
