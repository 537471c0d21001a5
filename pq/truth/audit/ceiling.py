"""How large the privacy loss of a plan can become at all: what the search of an audit is measured against (Section 3).

A mechanism is calibrated to lose its whole budget in its own worst case, but the mechanisms that one record meets
cannot always be at their worst together: with `arity` above 2 the record lies on one side of all outputs of a node that
are on one side of it, and with a relative quantile q other than 1/2 a "sharp" mechanism is at its worst only for a
record below the output (q < 1/2) or above it (q > 1/2), while the side decides to which child the record goes next.

For a record added with rank rho to the n of a node, the score of an output of rank k moves by `-(|k + R - t'| - |k -
t|)`, where R is 1 above the record (k >= rho) and 0 below (k <= rho). The log density moves by that, less the mean of
the same over the prior's mass, which can be anywhere. So the loss of a node is at most the sum over its mechanisms of
the rate times (largest fall of the distance at an output on the record's given side + largest rise anywhere), or the
same with fall and rise exchanged for the other sign of the loss. `ceiling` takes the largest sum along the ways that
records can go, by enumeration over n and rho. It is an upper bound, up to the enumerated n, over all priors (one for
each quantile), columns and outputs.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import lru_cache

import numpy as np

from pq.core.plan import Node, Plan
from pq.core.scores import target_rank
from pq.private.columns.door import Array

MOST = 64  # records of a node in the enumeration


@lru_cache(maxsize=1024)
def added(relative: Fraction, calibration: str) -> Array:
    """(2, 3, cases): for each sign, the most that an output above the record, one below it, and the prior's mass can
    contribute.

    Cases are all (n, rho), n < MOST, rho <= n. Contributions are in ranks.
    """
    rows = []
    for n in range(MOST):
        k = np.arange(n + 1.0)
        before, after = (target_rank(relative, size, calibration) for size in (n, n + 1))
        fall = [np.abs(k - before) - np.abs(k + side - after) for side in (1.0, 0.0)]  # above, below
        for rho in range(n + 1):
            above, below = fall[0][rho:], fall[1][: rho + 1]
            rows.append(
                [
                    [above.max(), below.max(), -min(above.min(), below.min())],
                    [-above.min(), -below.min(), max(above.max(), below.max())],
                ]
            )
    return np.transpose(rows, (1, 2, 0))


@lru_cache(maxsize=1024)
def moves(relative: Fraction, calibration: str) -> Array:
    """(cases, 2, 2): for a record that moves down within a node of n: for each sign, an output between its places, and
    the mass."""
    rows = []
    for n in range(1, MOST):
        k = np.arange(float(n))
        target = target_rank(relative, n, calibration)
        fall = np.abs(k - target) - np.abs(k + 1.0 - target)
        rows.append([[fall.max(), max(0.0, -fall.min())], [-fall.min(), max(0.0, fall.max())]])
    return np.array(rows)


class Ways:
    """Largest losses in nats along the ways that one record, or the two versions of one, can take through a plan.

    sign: 0 for the columns and outputs where the record raises the density, 1 where it lowers it.
    """

    def __init__(self, plan: Plan, tied: bool = False) -> None:
        self.plan, self.tied = plan, tied
        self._known: dict[tuple[tuple[int, ...], int], list[float]] = {}

    def one(self, node: Node | None, sign: int) -> float:
        """A record that is in one of the columns only."""
        if node is None:
            return 0.0
        best = self.sides(node, sign)
        if self.tied:  # a record at outputs goes on with half its weight to either side of them
            children = node.children or (None,) * (len(node.indices) + 1)
            for c, d in itertools.combinations(range(len(children)), 2):
                halves = self.at_end(children[c], sign, -1) + self.at_end(children[d], sign, 0)
                best = [*best, self._node(node, sign, c, d) + halves / 2]
        return max(best)

    def at_end(self, node: Node | None, sign: int, end: int) -> float:
        """A record at the lower (0) or upper (-1) end of the node's interval, which stays at that end further down."""
        if node is None:
            return 0.0
        count = len(node.indices)
        children = node.children or (None,) * (count + 1)
        best = -np.inf
        for tied in range(count + 1):  # outputs at that end
            first, last = (0, tied) if end == 0 else (count - tied, count)
            rest = self.at_end(children[last if end == 0 else first], sign, end)
            best = max(best, self._node(node, sign, first, last) + (rest / 2 if tied else rest))
        return best

    def sides(self, node: Node, sign: int) -> list[float]:
        """The same, for a record that is above the first 0, 1, ... of the node's outputs."""
        if (node.indices, sign) not in self._known:
            below = [self.one(child, sign) for child in node.children] or [0.0] * (len(node.indices) + 1)
            self._known[node.indices, sign] = [self._node(node, sign, c, c) + rest for c, rest in enumerate(below)]
        return self._known[node.indices, sign]

    def _node(self, node: Node, sign: int, first: int, last: int) -> float:
        """Loss of one node if `first` outputs are below the record and those from `last` on above it; the others are at
        it."""
        mechanisms = [self.plan.mechanisms[i] for i in node.indices]
        tables = [m.rate * added(m.relative, self.plan.calibration)[sign] for m in mechanisms]
        best = -np.inf
        for order in set(
            itertools.permutations(["below"] * first + ["at"] * (last - first) + ["above"] * (len(tables) - last))
        ):
            side = {"above": lambda t: t[0], "below": lambda t: t[1], "at": lambda t: np.maximum(t[0], t[1])}
            total = sum(side[place](table) + table[2] for place, table in zip(order, tables, strict=True))
            best = max(best, float(np.max(total)))
        return best

    def two(self, node: Node | None, sign: int) -> float:
        """A record that moves down within the node; it may part there."""
        return 0.0 if node is None else max(self.partings(node, sign).values())

    def partings(self, node: Node, sign: int) -> dict[tuple[int, int, int, int], float]:
        """The same by where the record arrives and where it leaves.

        Each is given as the children on both sides of it: the same child twice, or two if it is at the outputs between.
        """
        mechanisms = [self.plan.mechanisms[i] for i in node.indices]
        tables = [m.rate * moves(m.relative, self.plan.calibration)[:, sign] for m in mechanisms]
        count = len(tables) + 1
        places = [(c, c) for c in range(count)] + (list(itertools.combinations(range(count), 2)) if self.tied else [])
        children = node.children or (None,) * count
        best = {}
        for (a, b), (c, d) in itertools.product(places, places):
            if b > c:
                continue
            gain = -np.inf
            for size in range(c - b, d - a + 1):  # outputs at either place may count as between them
                for between in itertools.combinations(range(len(tables)), size):
                    total = sum(t[:, 1] + (t[:, 0] if j in between else 0.0) for j, t in enumerate(tables))
                    gain = max(gain, float(np.max(total)))
            best[a, b, c, d] = gain + sum(
                self._rest(child, sign, e, (a, b), (c, d)) for e, child in enumerate(children)
            )
        return best

    def _rest(self, child: Node | None, sign: int, e: int, arrives: tuple[int, int], leaves: tuple[int, int]) -> float:
        """Loss below child e, in which each version of the record has no, half or all of its weight (triangle
        inequality)."""
        weights = _weight(e, *arrives), _weight(e, *leaves)
        both = min(weights)
        total = both * self.two(child, sign) if both else 0.0
        for weight, (low, _), way in zip(weights, (arrives, leaves), (sign, 1 - sign), strict=True):
            if weight > both:
                alone = (
                    self.one(child, way) if both or weight == 1.0 else self.at_end(child, way, -1 if e == low else 0)
                )
                total += (weight - both) * alone
        return total


def _weight(child: int, low: int, high: int) -> float:
    """What part of a record between two children the given one holds."""
    return ((child == low) + (child == high)) / 2.0


def ceiling(plan: Plan, tied: bool = False) -> float:
    """The largest ratio |loss| / epsilon that the plan can reach, at most 1; see this module.

    tied: whether records at an output go on to both sides by halves, as on a grid with "sharp" calibration.

    >>> import pq
    >>> ceiling(pq.plan([0.25, 0.5, 0.75], epsilon=1))
    1.0
    >>> ceiling(pq.plan([1 / 3, 2 / 3], epsilon=1, arity=3))  # one record cannot be the worst for both
    0.875
    """
    ways = Ways(plan, tied)
    start = ways.two if plan.adjacency == "replace" else ways.one
    return max(start(plan.root, sign) for sign in (0, 1)) / float(plan.epsilon)
