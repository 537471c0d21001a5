"""`alg:quantiles` on a grid by margins: a binary tree whose nodes split the ties at their outputs (Section 3.2).

Each node draws a `MarginLaw` on its records; an inner node also draws which share of the records at its output goes to
either side, so that a value that many hold may be cut where the rank lies. What children get is in
`pq.core.margin`, with the proof: parts of a record sum to at most one on each level, so that a record
costs at most a convex combination of the budgets of paths, which all sum to epsilon.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from pq.core.margin import Part, split_ties
from pq.core.plan import Plan
from pq.core.priors import Prior
from pq.core.scores import Target, log_less, sum_of_parts
from pq.core.sensitivity import rate, sensitivity
from pq.core.tree import Node
from pq.private.columns.cells import Lattice
from pq.private.columns.door import Array
from pq.private.mechanisms.lattice.law import LARGEST_CAP, MarginLaw
from pq.private.mechanisms.tree import LARGEST_TOTAL, parts_of_a_record

SHARES = tuple(k / 8 for k in range(9))  # three halvings of a record on each level
CAP = 3.0  # nats up to which a margin counts in full where a tie may be split

Tie = tuple[float, float]  # an output in units of the step, and the share of its records below it


@dataclass(frozen=True)
class TieTree:
    """What a release by split ties is asked to do; public.

    plan: of arity 2, "sharp". priors: of each distinct quantile. flip: permute-and-flip where it can be. edge:
    adaptation of the priors. public_total: number of records where it is public, for the root. Raises `ValueError`
    naming plan.
    """

    plan: Plan
    priors: tuple[Prior, ...]
    flip: bool = True
    edge: bool = False
    public_total: int | None = None
    shares: tuple[float, ...] = SHARES
    cap: float = CAP

    def __post_init__(self) -> None:
        if self.plan.arity != 2 or self.plan.calibration != "sharp":
            raise ValueError("plan must be of arity 2 and sharp")

    @property
    def unit(self) -> int:
        """Parts of a record: even where it may be split, also after the halvings above."""
        return parts_of_a_record(3 * self.plan.depth - 1)

    def law(self, column: Lattice, node: Node, interval: Part) -> MarginLaw:
        """The law of a node, given the earlier outcomes that bound it."""
        (i,) = node.indices
        view, mechanism = column.view(*interval), self.plan.mechanisms[i]
        shifted = self.public_total is not None and node.depth == 1
        calibration = "shifted" if shifted else "sharp"
        record_rate = rate(
            mechanism.epsilon, sensitivity(mechanism.relative, node.depth, self.plan.adjacency, calibration)
        )
        total = min(self.public_total or 0, LARGEST_TOTAL) * column.unit
        cap = math.ceil(min(self.cap / record_rate * column.unit, LARGEST_CAP)) if record_rate > 0.0 else LARGEST_CAP
        return MarginLaw(
            column,
            view,
            *interval[:2],
            self.priors[i],
            Target.of(mechanism.relative, view.n, calibration, total),
            record_rate,
            self.edge,
            self.flip,
            self.shares if any(node.children) else (),
            cap,
        )

    def walk(self, column: Lattice, decide: Callable[[int, MarginLaw], Tie]) -> None:
        """Visit the nodes from the root down; `decide` gives the outcome of a distinct quantile."""
        pending: list[tuple[Node, Part]] = [(self.plan.root, (-math.inf, math.inf, 0, 0))]
        while pending:
            node, interval = pending.pop()
            o, share = decide(node.indices[0], self.law(column, node, interval))
            parts = split_ties(interval, [o], [share], column.unit)
            pending += [(child, part) for child, part in zip(node.children, parts, strict=False) if child is not None]

    def draw(self, column: Lattice, uniforms: Array) -> list[Tie]:
        """The outcome of each distinct quantile that uniforms (m, 3) in (0, 1) stand for; outputs never cross."""
        outcomes: list[Tie] = [(0.0, 0.5)] * len(self.priors)

        def decide(i: int, law: MarginLaw) -> Tie:
            outcomes[i] = law.draw(*uniforms[i].tolist())
            return outcomes[i]

        self.walk(column, decide)
        return outcomes

    def log_probability(self, column: Lattice, outcomes: list[Tie]) -> float:
        """Exact log probability of outcomes; the shares of leaves, which split nothing, are not looked at."""
        far, rest = self.log_parts(column, outcomes)
        return log_less(rest, far)

    def log_parts(self, column: Lattice, outcomes: list[Tie]) -> tuple[Fraction, float]:
        """`log_probability` as minus an exact number of nats plus a float."""
        terms: list[tuple[Fraction, float]] = []

        def decide(i: int, law: MarginLaw) -> Tie:
            o, share = outcomes[i]
            terms.append(law.log_parts(o, share if law.shares else None))
            return outcomes[i]

        ordered = all(one[0] <= other[0] for one, other in itertools.pairwise(outcomes))
        if not ordered:
            return Fraction(0), -math.inf
        self.walk(column, decide)
        return sum_of_parts(terms)
