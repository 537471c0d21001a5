"""The worst prior for each mechanism of a tree, given two columns and an output, in closed form (Section 3.2).

A prior enters the loss of a node through the log of its normaliser, a mean of the score's change over the prior's mass.
It is largest if all mass is in the one cell where the score changes most against its change at the output, and as each
quantile may have a prior of its own, each mechanism can have its mass where that suits it. So the loss for the worst
priors needs no priors: it is a sum, over the mechanisms of the nodes that see a difference, of the score's change at
the output and the extreme change over all cells. `WorstPriors` gives it for a batch, to be searched like any mechanism;
`priors_for` makes priors that come as close to it as floats allow, so that what is found can be audited by exact
densities.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from pq.core.plan import Node
from pq.private.columns.door import Array
from pq.truth.audit.bins import UnitBins, unit_bins
from pq.truth.audit.losses import TreeLosses

SMALL = 40.0  # nats: e^-40 of a prior's mass elsewhere does not change a loss in 16 digits
LEAST = -700.0  # nats: the exponential is still a float of full precision


class WorstPriors:
    """A tree with the priors that are worst for each pair of columns and output; its own priors do not matter.

    Such a mechanism has no density, only a `log_ratio`.

    >>> import numpy as np, pq
    >>> worst = WorstPriors(TreeLosses([0.5], epsilon=1, priors=pq.Uniform(0, 4)))
    >>> worst.log_ratio(np.array([[1.0, 3.0]]), np.array([[1.0, np.inf]]), np.array([[0.5]]))
    array([-1.])
    """

    def __init__(self, losses: TreeLosses) -> None:
        self.losses, self.plan, self.step = losses, losses.plan, losses.step

    def log_ratio(self, x: Array, neighbour: Array, values: Array) -> Array:
        """Privacy losses (batch,), of the sign that can become larger."""
        gains, extremes, _ = self.losses.changes(x, neighbour, values)
        totals = -extremes.sum(axis=1).T
        for node in self.plan.nodes:
            orders = [gains[:, list(node.indices), list(order)].sum(axis=1) for order in _orders(node)]
            totals += np.max(orders, axis=0), np.min(orders, axis=0)
        return np.where(totals[0] >= -totals[1], totals[0], totals[1])


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
    rates, rows = [share.rate for share in worst.plan.mechanisms], case.rows()
    side = 0 if worst.log_ratio(*rows)[0] >= 0.0 else 1
    gains, _, places = (part[0] for part in worst.losses.changes(*rows))
    logs = [np.zeros(case.places) for _ in rates]
    for node in worst.plan.nodes:
        if not gains[list(node.indices)].any() and not places[list(node.indices)].any():
            continue  # the node sees no difference
        mine = (1.0 - 2.0 * side) * gains[list(node.indices)]
        order = max(_orders(node), key=lambda order: sum(mine[a, b] for a, b in enumerate(order)))
        for i, b in zip(node.indices, order, strict=True):
            little = 2.0 * rates[i] * (len(case.x) + 1) + SMALL
            logs[i][:] = -2.0 * little - SMALL
            logs[i][int(case.values[node.indices[b]])] = -little
            logs[i][math.ceil(max(places[i, side], -0.5) + 0.5)] = 0.0  # its first bin
    return [unit_bins(-0.5, np.exp(np.maximum(log, LEAST)).tolist()) for log in logs]
