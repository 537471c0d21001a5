"""Quantiles on a public grid by margins: a release of one is one law, of several a tree that splits ties.

Why it is private: `pq.core.margin` has the sensitivities and what the children of a node get,
`pq.private.mechanisms.lattice.flip` permute-and-flip, `pq.private.mechanisms.lattice.law` the law at a node.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property

import numpy as np

from pq.core.grid import OFF_GRID
from pq.core.margin import zcdp_cost
from pq.core.plan import plan_for
from pq.core.request import Request
from pq.private.columns.cells import Lattice, Points
from pq.private.columns.door import Array
from pq.private.mechanisms.lattice.law import equal_runs, span_within
from pq.private.mechanisms.lattice.tie_tree import Tie, TieTree
from pq.private.mechanisms.protocol import Mechanism, Outcome
from pq.private.mechanisms.tree import level_steps
from pq.private.randomness import Source


class Margin(Mechanism, name="margin"):
    """Margins on a grid: open ends, permute-and-flip where public facts allow it, and shares of ties in a tree.

    Under "add-remove" a `public_total` aims the root, of which the sensitivity is then 1/2; the nodes below have no
    public totals. Under "replace" the total is public as it is. `drawn` holds the share of each output's records that
    lies below it, where there are several quantiles.
    """

    loads = (*Mechanism.loads, "scipy.optimize")  # of permute-and-flip

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        if request.step is None:
            raise ValueError("grid must be given for margins")
        plan = plan_for(request.distinct, request.budget, request.adjacency, "sharp", 2, Fraction(0))
        total = request.public_total if request.adjacency == "add-remove" else None
        self.ties = TieTree(plan, request.priors, public_total=total)

    @property
    def unit(self) -> int:
        return self.ties.unit

    @property
    def steps(self) -> tuple[tuple[str, Fraction | float], ...]:
        return level_steps(self.ties.plan)

    @cached_property
    def rho(self) -> Fraction | float:
        """Below the root, where intervals may be short, every node counts as one that flips."""
        plan, step = self.ties.plan, self.request.step
        if not isinstance(plan.epsilon, Fraction):
            return math.inf
        assert step is not None
        prior = self.request.priors[plan.root.indices[0]]
        ends = span_within(prior, step, -math.inf, math.inf)
        root_flips = ends[0] < ends[1] and equal_runs(prior, step, *ends, (False, False)) is not None
        paths = [
            sum(zcdp_cost(Fraction(node.epsilon), node.depth > 1 or root_flips) for node in path)
            for path in plan.paths()
        ]
        return Fraction(max(paths)) * self.request.max_contributions**2

    def draw(self, column: Points | Lattice, source: Source) -> Outcome:
        """Three uniforms for each quantile."""
        assert isinstance(column, Lattice)
        ties = self.ties.draw(column, source.uniforms(len(self.request.distinct), 3))
        shares = (("shares", [share for _, share in ties]),) if len(ties) > 1 else ()
        return Outcome(self._values(column, ties), None, shares)

    def _values(self, column: Lattice, ties: list[Tie]) -> Array:
        return np.array([column.value(o) for o, _ in ties], dtype=np.float64)

    def log_parts(self, column: Points | Lattice, outcome: Outcome) -> tuple[Fraction, float]:
        """Of the values and the shares that were drawn with them. Raises `ValueError` naming outcome."""
        assert isinstance(column, Lattice)
        outputs = [column.output(value) for value in outcome.values.tolist()]
        ties = list(zip(outputs, shares_of(outcome), strict=True))
        off = np.abs(self._values(column, ties) - outcome.values)
        if np.any(off > OFF_GRID * float(column.step)):
            return Fraction(0), -math.inf
        return self.ties.log_parts(column, ties)


def shares_of(outcome: Outcome) -> list[float]:
    """The share of each output's records below it, as a release keeps it. Raises `ValueError` naming outcome."""
    count = len(outcome.values)
    shares = dict(outcome.drawn).get("shares", [0.5] if count == 1 else None)
    try:
        given = [float(share) for share in shares or ()]
    except (TypeError, ValueError):
        given = []
    if len(given) != count:
        raise ValueError("outcome must hold values and shares, one for each quantile")
    return given
