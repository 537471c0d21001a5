"""The worst prior for each mechanism of a tree, given two columns and an output, in closed form (Section 3.2).

A prior enters the loss of a node through the log of its normaliser, a mean of the score's change over the prior's mass.
It is largest if all mass is in the one cell where the score changes most, and as each quantile may have a prior of its
own, each mechanism can have its mass where that suits it. So the loss for the worst priors needs no priors: it is a
sum, over the mechanisms of the nodes that see a difference, of the score's change at the output and the extreme change
over all cells. `WorstPriors` gives it for a batch, to be searched like any mechanism; `priors_for` makes priors that
come as close to it as floats allow, so that what is found can be audited by exact densities.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pq.core.plan import Node
from pq.core.scores import log_rank_scores
from pq.private.columns.door import Array
from pq.truth.audit.bins import UnitBins, unit_bins
from pq.truth.audit.density import TreeDensity, changed_records
from pq.truth.audit.view import Interval, NodeView, tied_ranks

SMALL = 40.0  # nats: e^-40 of a prior's mass elsewhere does not change a loss in 16 digits
LEAST = -700.0  # nats: the exponential is still a float of full precision


class Change:
    """What one more record, or another one, changes at a node for a batch: the score's change at outputs and over
    cells.

    tree: the mechanism. rows of `one` and `other`: sorted neighbours. edges: (batch, c + 1) of the cells of both.
    """

    def __init__(self, tree: TreeDensity, one: Array, other: Array, interval: Interval) -> None:
        self.tree, self.tied = tree, tree.step is not None
        self.records, self.weights = _joined(tree, one, other, interval)
        view = NodeView(self.records, np.maximum(*self.weights), interval, tree.ends_of(interval), tree.step)
        self.edges = view.edges
        self.wide = view.edges[:, 1:] > view.edges[:, :-1]
        nothing = np.zeros((len(one), 1))
        self.cells = []
        for weights in self.weights:
            below = np.cumsum(weights, axis=1)
            ranks = np.concatenate([nothing, below], axis=1)
            self.cells.append(tied_ranks(self.records, weights, below, nothing) if self.tied else (ranks, ranks))

    def at_cells(self, i: int) -> Array:
        """Change (batch, c) of mechanism i's score from the second column to the first."""
        one, other = (
            log_rank_scores(low, high, self._targets(i, v)[:, None], self.tree.rates[i])
            for v, (low, high) in enumerate(self.cells)
        )
        return one - other

    def at(self, i: int, o: Array) -> Array:
        """The same (batch,) at outputs."""
        scores = []
        for v, weights in enumerate(self.weights):
            low = np.sum(weights * (self.records < o[:, None]), axis=1)
            high = np.sum(weights * (self.records <= o[:, None]), axis=1) if self.tied else low
            scores.append(log_rank_scores(low, high, self._targets(i, v), self.tree.rates[i]))
        return scores[0] - scores[1]

    def _targets(self, i: int, v: int) -> Array:
        return self.tree.targets_of(i, self.weights[v].sum(axis=1))


def _joined(tree: TreeDensity, one: Array, other: Array, interval: Interval) -> tuple[Array, list[Array]]:
    """Sorted records (batch, n) of both columns, shared ones once, and their weights at a node in either."""
    changed = changed_records(one, other)
    sides = np.stack([(part[:, :, None] == changed[:, None]).sum(axis=1) for part in (one, other)])
    arrives = np.max(np.where(sides[1] > sides[0], changed, -np.inf), axis=1)  # what only the second column has
    leaves = np.max(np.where(sides[0] > sides[1], changed, -np.inf), axis=1)
    arrives = np.where(np.isneginf(arrives), np.inf, arrives)
    records = np.concatenate([one, arrives[:, None]], axis=1)
    weight = tree.weights(records, interval)
    first, second = weight.copy(), weight
    first[:, -1] = 0.0
    gone = np.argmax(one == leaves[:, None], axis=1)
    rows = np.flatnonzero(np.isfinite(leaves))
    second[rows, gone[rows]] = 0.0
    order = np.argsort(records, axis=1, kind="stable")
    records, first, second = (np.take_along_axis(part, order, axis=1) for part in (records, first, second))
    return records, [first, second]


class WorstPriors:
    """A tree with the priors that are worst for each pair of columns and output; its own priors do not matter.

    Such a mechanism has no density, only a `log_ratio`.

    >>> import numpy as np, pq
    >>> worst = WorstPriors(TreeDensity([0.5], epsilon=1, priors=pq.Uniform(0, 4)))
    >>> worst.log_ratio(np.array([[1.0, 3.0]]), np.array([[1.0, np.inf]]), np.array([[0.5]]))
    array([-1.])
    """

    def __init__(self, tree: TreeDensity) -> None:
        self.tree, self.step = tree, tree.step

    def log_ratio(self, x: Array, neighbour: Array, values: Array) -> Array:
        """Privacy losses (batch,), of the sign that can become larger."""
        with np.errstate(all="ignore"):
            totals = np.zeros((2, len(x)))
            for node, rows, change, mine in self.changes(x, neighbour, values):
                gains = [[change.at(i, o) for o in mine.T] for i in node.indices]
                orders = np.array([sum(gains[a][b] for a, b in enumerate(order)) for order in _orders(node)])
                totals[:, rows] += np.max(orders, axis=0), np.min(orders, axis=0)
                for i in node.indices:
                    cells = change.at_cells(i)
                    totals[0, rows] -= np.where(change.wide, cells, np.inf).min(axis=1)
                    totals[1, rows] -= np.where(change.wide, cells, -np.inf).max(axis=1)
            return np.where(totals[0] >= -totals[1], totals[0], totals[1])

    def changes(self, x: Array, neighbour: Array, values: Array) -> Iterator[tuple[Node, Any, Change, Array]]:
        """The nodes that see a difference, with the rows of the batch in which they do, and the outputs there."""
        tree = self.tree
        one, other, outputs = (tree.outputs_of(part) for part in (x, neighbour, values))
        for node, rows, interval, mine in tree.changed_nodes(one, other, outputs, np.arange(len(x))):
            yield node, rows, Change(tree, one[rows], other[rows], interval), mine


def _orders(node: Node) -> list[tuple[int, ...]]:
    return list(itertools.permutations(range(len(node.indices))))


@dataclass(frozen=True, eq=False)
class Case:
    """Two neighbouring columns and an output on the odd whole numbers below `places`, with nothing on the even ones."""

    x: Array
    neighbour: Array
    values: Array
    places: int

    @classmethod
    def of(cls, x: Array, neighbour: Array, values: Array) -> Case:
        """The same order of records and outputs, with room between them."""
        distinct = np.unique(np.concatenate([x, neighbour, values]))

        def spread(part: Array) -> Array:
            return np.asarray(2.0 * np.searchsorted(distinct, part) + 1.0, dtype=np.float64)

        return cls(spread(x), spread(neighbour), spread(values), 2 * len(distinct) + 1)

    def rows(self) -> tuple[Array, Array, Array]:
        """As a batch of one, the columns of one length."""
        pair = np.full((2, max(len(self.x), len(self.neighbour))), np.inf)
        pair[0, : len(self.x)], pair[1, : len(self.neighbour)] = self.x, self.neighbour
        return pair[:1], pair[1:], self.values[None]


def priors_for(worst: WorstPriors, case: Case) -> list[UnitBins]:
    """Priors, one for each quantile, with which the case comes as close to its worst loss as floats allow.

    Each has nearly all of its mass in the bin that changes the score most, very little at the output that it is to
    give, so that others hardly give it, and much less elsewhere.
    """
    rates, rows = worst.tree.rates, case.rows()
    with np.errstate(all="ignore"):
        sign = 1.0 if worst.log_ratio(*rows)[0] >= 0.0 else -1.0
        logs = [np.zeros(case.places) for _ in rates]
        for node, _, change, mine in worst.changes(*rows):
            gains = np.array([[sign * change.at(i, o)[0] for o in mine.T] for i in node.indices])
            order = max(_orders(node), key=lambda order: sum(gains[a, b] for a, b in enumerate(order)))
            for a, i in enumerate(node.indices):
                cell = int(np.argmax(np.where(change.wide, -sign * change.at_cells(i), -np.inf)))
                little = 2.0 * rates[i] * (len(case.x) + 1) + SMALL
                logs[i][:] = -2.0 * little - SMALL
                logs[i][int(mine[0, order[a]])] = -little
                logs[i][math.ceil(max(change.edges[0, cell], -0.5) + 0.5)] = 0.0  # its first bin
    return [unit_bins(-0.5, np.exp(np.maximum(log, LEAST)).tolist()) for log in logs]
