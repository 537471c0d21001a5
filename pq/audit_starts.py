"""Priors and first candidates for the audit of a tree: what the analysis of the worst case suggests (Section 3.2).

A mechanism loses most if its output is on one side of its target rank and nearly all of the prior's mass on the other,
with records between. Where adding a record raises the density, each node on the record's way wants its mass beyond its
output and its records as seen from the record: a prior that *rises* to one end, or with floored targets a *valley*.
Where it lowers the density, they want the mass between: a *peak* beside the record. A record that is replaced does the
one where it arrives and the other where it left.
"""

from __future__ import annotations

import numpy as np

from pq.audit_bins import UnitBins, unit_bins
from pq.audit_ceiling import Ways
from pq.column import Array
from pq.exponential import target_rank
from pq.plan import Node, Plan

BINS = 64
EAGER = 0.8  # how often a candidate takes the way that can lose most
LEFT, RIGHT = 8.0, 48.0  # places of a record that arrives and of one that leaves


def shapes(start: float, slope: float, rng: np.random.Generator) -> dict[str, UnitBins]:
    """Priors by name on 64 bins of width one from `start` on, whose weights change by `slope` nats a bin."""
    j = np.arange(float(BINS))
    peak = -np.abs(j - (RIGHT - 2.0))
    logs = {
        "up": j,
        "down": -j,
        "peak": peak,
        "valley": np.where(j < LEFT, 5.5 * (LEFT - j), j - LEFT),  # the left wins once a few outputs bound the right
        "valley and peak": np.where(j < LEFT, peak[int(LEFT)] + 1.8 * (LEFT - j), peak),
    }
    named = {name: slope * log for name, log in logs.items()}
    named |= {f"{name}, mirrored": log[::-1] for name, log in named.items() if name not in ("up", "down")}
    named["rough"] = slope * 5.0 * rng.normal(size=BINS)
    return {name: unit_bins(start, np.exp(log - log.max()).tolist()) for name, log in named.items()}


class Planned:
    """Candidates for a plan on the priors of `shapes`: a way of the record through the tree, and records and outputs to
    match."""

    def __init__(self, plan: Plan, start: float, rng: np.random.Generator) -> None:
        self.plan, self.start, self.rng = plan, start, rng
        self.ways = Ways(plan)
        self.below = {n.indices: sorted(i for part in n.walk() for i in part.indices) for n in plan.nodes}
        self.parting: tuple[int, int] | None = None
        self._targets: dict[tuple[int, int], float] = {}
        self.outputs = np.zeros(len(plan.distinct))
        self.records: list[float] = []

    def tokens(self, shape: str, records: int) -> Array:
        """One candidate as a row of tokens: shared records (+inf: none), the two versions of the other record,
        outputs."""
        self.outputs, self.records = np.zeros(len(self.plan.distinct)), []
        pair = [RIGHT if shape.startswith("peak") else LEFT, np.inf]
        if self.plan.adjacency == "replace":
            pair = [LEFT, RIGHT]
            self._part(self.plan.root)
        else:
            _, ways = self._descend(self.plan.root, 0.0, float(BINS), arrives=pair[0] == LEFT)
            if pair[0] == RIGHT:
                self._leave(ways, 0)
        if shape.endswith("mirrored"):
            pair = [BINS - place if place < np.inf else place for place in pair]
            self.records = [BINS - place for place in self.records]
            self.outputs = BINS - self.outputs
        shared = self.rng.permutation(self.records)[:records]
        row = [*shared, *[np.inf] * (records - len(shared)), *pair, *self.outputs]
        return np.array(row) + self.start

    def _record(self, place: float, count: int) -> None:
        self.records += [place + 1e-3 * k for k in range(count)]

    def _leave(self, ways: list[tuple[Node, int]], deeper: int) -> None:
        """The records that outputs and mass have between them on the way of a record that leaves, as many as fit best.

        ways: nodes with the number of outputs below the record. deeper: records below a root where the versions part.
        """

        def gain(n: int) -> float:
            total = 0.0
            for node, c in ways:
                for j, i in enumerate(node.indices):
                    before, after = self._target(i, n), self._target(i, n + 1)
                    output = after - before if j < c else abs(n + 1 - after) - abs(n - before)
                    total += self.plan.mechanisms[i].rate * (output + abs(n - before) - abs(n - after))
            if self.plan.adjacency == "replace":
                middle = [self._target(i, deeper + n + 1) for i in self.plan.root.indices]
                total += float(self.plan.epsilon) * sum(deeper + 1 <= target for target in middle)
            return total

        gains = [gain(n) for n in range(1, 40)]
        best = [n for n, value in enumerate(gains, 1) if value >= max(gains) - 1e-9]
        self._record(RIGHT - 3.0, int(self.rng.choice(best[:3])))

    def _arrive(self, node: Node, c: int, deeper: int) -> int:
        """How many records a node on the way of a record that arrives should have between its outputs and the mass.

        c: outputs below the record. deeper: records that nodes further down have. Best of all up to 40, the fewest.
        """

        def gain(own: int) -> float:
            total = 0.0
            sides = (c > 0) + (c < len(node.indices))
            n = deeper + own * sides
            for j, i in enumerate(node.indices):
                before, after = self._target(i, n), self._target(i, n + 1)
                k, side = (own, 0) if j < c else (own * (sides - 1) + deeper, 1)
                mass = max(abs(n + 1 - after) - abs(n - before), after - before)
                total += self.plan.mechanisms[i].rate * (abs(k - before) - abs(k + side - after) + mass)
            return total

        gains = [gain(own) for own in range(1, 40)]
        return 1 + int(np.argmax(np.array(gains) >= max(gains) - 1e-9)) + int(self.rng.choice([0, 0, 0, 1]))

    def _target(self, i: int, n: int) -> float:
        if (i, n) not in self._targets:
            self._targets[i, n] = target_rank(self.plan.mechanisms[i].relative, n, self.plan.calibration)
        return self._targets[i, n]

    def _part(self, node: Node) -> None:
        """The root, where the two versions of the record part."""
        count = len(node.indices)
        first = int(self.rng.integers(0, count))
        last = int(self.rng.integers(first + 1, count + 1))
        if self.rng.random() < EAGER:
            first, last = self._best_parting(node)
        below, above = 0.5 + 0.1 * np.arange(first), BINS - 2.0 + 0.1 * np.arange(count - last)
        places = [*below, *((LEFT + RIGHT) / 2.0 + np.arange(last - first)), *above]
        self._place(node, places, 0.0, float(BINS), {first, last})
        bounds = [0.0, *places, float(BINS)]
        children: tuple[Node | None, ...] = node.children or (None,) * (count + 1)
        deeper, _ = self._descend(children[first], bounds[first], bounds[first + 1], True)
        _, ways = self._descend(children[last], bounds[last], bounds[last + 1], False)
        self._leave(ways, deeper)

    def _best_parting(self, node: Node) -> tuple[int, int]:
        if self.parting is None:
            values = {(a, c): value for (a, _, c, _), value in self.ways.partings(node, 0).items() if a < c}
            self.parting = max(values, key=lambda pair: values[pair])
        return self.parting

    def _descend(self, node: Node | None, low: float, high: float, arrives: bool) -> tuple[int, list[tuple[Node, int]]]:
        """The way of a record that arrives at LEFT or leaves from RIGHT: outputs, and where it arrives, records.

        Returns the number of records placed, and the nodes with the numbers of outputs below the record.
        """
        if node is None:
            return 0, []
        count = len(node.indices)
        c = int(self.rng.integers(0, count + 1))
        if self.rng.random() < EAGER:
            c = int(np.argmax(self.ways.sides(node, 0 if arrives else 1)))
            if not arrives and self.plan.calibration == "paper":
                c = count  # targets that jump are good for outputs below the record only, and for the mass there
        reach = 3.0 if arrives else 1.0
        places = [*(low + reach - 0.1 * np.arange(c)[::-1]), *(high - reach + 0.1 * np.arange(count - c))]
        self._place(node, places, low, high, {c})
        bounds = [low, *places, high]
        child = node.children[c] if node.children else None
        placed, ways = self._descend(child, bounds[c], bounds[c + 1], arrives)
        if arrives:
            own = self._arrive(node, c, placed)
            for used, place in ((c > 0, low + 2.0), (c < count, high - 2.0)):
                self._record(place, own * used)
                placed += own * used
        return placed, [(node, c), *ways]

    def _place(self, node: Node, places: list[float], low: float, high: float, ways: set[int]) -> None:
        """Set a node's outputs, and spread those below it that the record does not meet."""
        for i, place in zip(node.indices, places, strict=True):
            self.outputs[i] = place
        bounds = [low, *places, high]
        for c, child in enumerate(node.children):
            if child is not None and c not in ways:
                indices = self.below[child.indices]
                self.outputs[indices] = np.linspace(bounds[c], bounds[c + 1], len(indices) + 2)[1:-1]
