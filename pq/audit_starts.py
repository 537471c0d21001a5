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
            self._descend(self.plan.root, 0.0, float(BINS), arrives=pair[0] == LEFT)
        if shape.endswith("mirrored"):
            pair = [BINS - place if place < np.inf else place for place in pair]
            self.records = [BINS - place for place in self.records]
            self.outputs = BINS - self.outputs
        shared = self.rng.permutation(self.records)[:records]
        row = [*shared, *[np.inf] * (records - len(shared)), *pair, *self.outputs]
        return np.array(row) + self.start

    def _record(self, place: float, depth: int) -> None:
        """Records at a place: as many as all nodes further down want together, and one more, so that they outweigh
        those."""
        count = 2 ** max(self.plan.depth - depth, 0) + int(self.rng.integers(-1, 2))
        self.records += [place + 1e-3 * k for k in range(max(count, 1))]

    def _part(self, node: Node) -> None:
        """The root, where the two versions of the record part."""
        count = len(node.indices)
        first = int(self.rng.integers(0, count))
        last = int(self.rng.integers(first + 1, count + 1))
        if self.rng.random() < EAGER:
            first, last = self._best_parting(node)
        self._record(RIGHT - 3.0, node.depth)
        below, above = 0.5 + 0.1 * np.arange(first), BINS - 2.0 + 0.1 * np.arange(count - last)
        places = [*below, *((LEFT + RIGHT) / 2.0 + np.arange(last - first)), *above]
        self._place(node, places, 0.0, float(BINS), {first, last})
        bounds = [0.0, *places, float(BINS)]
        for c, arrives in ((first, True), (last, False)):
            child = node.children[c] if node.children else None
            if child is not None:
                self._descend(child, bounds[c], bounds[c + 1], arrives)

    def _best_parting(self, node: Node) -> tuple[int, int]:
        if self.parting is None:
            values = {(a, c): value for (a, _, c, _), value in self.ways.partings(node, 0).items() if a < c}
            self.parting = max(values, key=lambda pair: values[pair])
        return self.parting

    def _descend(self, node: Node, low: float, high: float, arrives: bool) -> None:
        """A node on the way of a record that arrives at LEFT or leaves from RIGHT: outputs and records on both sides of
        it."""
        count = len(node.indices)
        c = int(self.rng.integers(0, count + 1))
        if self.rng.random() < EAGER:
            c = int(np.argmax(self.ways.sides(node, 0 if arrives else 1)))
        reach = 3.0 if arrives else 1.0
        if arrives and c > 0:
            self._record(low + 2.0, node.depth)
        if arrives and c < count:
            self._record(high - 2.0, node.depth)
        if not arrives:
            self._record(RIGHT - 3.0, self.plan.depth)
            stray = (
                low + 0.5 if c > 0 else high - 0.5
            )  # not seen further down: floored targets ask for odd and even numbers
            self.records += [stray] * int(self.rng.integers(0, 2))
        places = [*(low + reach - 0.1 * np.arange(c)[::-1]), *(high - reach + 0.1 * np.arange(count - c))]
        self._place(node, places, low, high, {c})
        bounds = [low, *places, high]
        child = node.children[c] if node.children else None
        if child is not None:
            self._descend(child, bounds[c], bounds[c + 1], arrives)

    def _place(self, node: Node, places: list[float], low: float, high: float, ways: set[int]) -> None:
        """Set a node's outputs, and spread those below it that the record does not meet."""
        for i, place in zip(node.indices, places, strict=True):
            self.outputs[i] = place
        bounds = [low, *places, high]
        for c, child in enumerate(node.children):
            if child is not None and c not in ways:
                indices = self.below[child.indices]
                self.outputs[indices] = np.linspace(bounds[c], bounds[c + 1], len(indices) + 2)[1:-1]
