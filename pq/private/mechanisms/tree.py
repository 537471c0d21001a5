"""The paper's mechanism: exponential mechanisms on a tree over the quantiles (`alg:quantiles`, Section 3.2).

The root estimates the middle quantiles from all records, its children those on either side from the records there, and
so on. One more record moves the utility of every mechanism on one root-to-leaf path by at most its sensitivity
(`pq.core.sensitivity`), and nothing elsewhere; a mechanism spends its own budget, and the budgets of every path sum to
epsilon exactly (`pq.core.plan`). A replaced record touches two paths, at half the rate below the root.

Where one quantile is asked for, the number n0 of records is public, and neighbours differ by one record more or less, a
"sharp" target is `q n0 + (n - n0) / 2` instead of `q n`: one more record then moves the utility by 1/2, not by max(q, 1
- q), for every n0, right or wrong. For several quantiles, with floored targets, and where a record is replaced, the
public total is not used: nodes below the root hold parts of the records, whose number nobody knows.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np

from pq.core.budget.composition import plan_zcdp
from pq.core.grid import OFF_GRID
from pq.core.plan import Plan, plan_for
from pq.core.request import Request
from pq.core.scores import Target, log_sum, sum_of_parts
from pq.core.tree import Node
from pq.private.columns.cells import Lattice, Points
from pq.private.columns.door import Array
from pq.private.columns.part import NO_GAPS, Near, PartOfColumn, Unknown, Wanted
from pq.private.fast import lanes
from pq.private.fast.encode import Tables, encode, is_moderate
from pq.private.mechanisms.independent import Law
from pq.private.mechanisms.protocol import LogParts, Mechanism, Outcome
from pq.private.randomness import Source

Interval = tuple[float, float, int, int]  # low, high, and the parts of each record at low and at high that it holds


class Tree(Mechanism, name="tree"):
    """Exponential mechanisms on a tree; `plan` says where and with what budgets."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        tree = request.tree
        self.edge = tree.adaptation == "edge"
        # Halves of a record that go on to either side of an output that it is at. They need sharp targets: floored ones
        # jump by a whole rank however small the weight.
        self.halves = int(request.step is not None and tree.calibration == "sharp")
        self.plan: Plan = plan_for(
            request.quantiles,
            request.budget,
            request.adjacency,
            tree.calibration,
            tree.arity,
            tree.budget_power,
            shifting_total(request),
        )
        self.arrays = self.plan.arrays
        self.tables: Tables | None = encode(request.priors)

    def with_priors(self, request: Request) -> Tree:
        other = copy.copy(self)  # with what has been derived from the plan
        other.request, other.tables = request, encode(request.priors)
        return other

    @property
    def unit(self) -> int:
        return parts_of_a_record(self.plan.depth) if self.halves else 1

    @property
    def steps(self) -> tuple[tuple[str, Fraction | float], ...]:
        return level_steps(self.plan)

    @cached_property
    def rho(self) -> Fraction | float:
        if not isinstance(self.plan.epsilon, Fraction):
            return math.inf
        return plan_zcdp(self.plan) * self.request.max_contributions**2

    @cached_property
    def near(self) -> Near | None:
        if self.request.step is not None or self.plan.public_total is not None:
            return None
        rates = [share.rate for share in self.plan.mechanisms]
        if min(rates) == 0.0:  # less than the least float
            return None
        reach = max(
            sum((NEAR if node is path[-1] else USUAL) / min(rates[i] for i in node.indices) for node in path)
            for path in self.plan.paths()
        )
        return Near(self.request.levels, 1.0 + reach)

    def draw(self, column: Points | Lattice, source: Source) -> Outcome:
        return Outcome(self.simulate(column, source, 1)[0])

    def simulate(self, column: Points | Lattice, source: Source, trials: int) -> Array:
        """Two uniforms for each quantile choose the cell, and the point in it."""
        return self.chosen(column, source.uniforms(trials, len(self.request.distinct), 2))

    def chosen(self, column: Points | Lattice, uniforms: Array) -> Array:
        """Outputs (trials, m) of the distinct quantiles, in the units of the data, that uniforms (trials, m, 2) stand
        for."""
        if lanes.WALK.ready(FORMULA_SECONDS * (uniforms.size // 2)):
            outputs, left = self._by_machine(column, uniforms)
        else:
            outputs, left = np.full(uniforms.shape[:2], math.nan), uniforms.size // 2
        if left > 0:
            for lane in np.flatnonzero(np.isnan(outputs).any(axis=1)):
                outputs[lane] = self.walked(column, uniforms[lane].tolist(), outputs[lane].tolist())
        return outputs + 0.0  # one zero: a cell that ends at zero would otherwise be told by its sign

    def compiled(self, column: Points | Lattice, uniforms: Array) -> Array:
        """Outputs of the machine engine, NaN where it leaves them to `walked`, which has the same law."""
        return self._by_machine(column, uniforms)[0]

    def _by_machine(self, column: Points | Lattice, uniforms: Array) -> tuple[Array, int]:
        """`compiled`, and how many outputs it leaves. Raises `Unknown` where it looks into a gap of a part."""
        in_range = column.step is None or is_moderate(column.values, float(column.step))
        shifted = self.plan.public_total is not None
        outputs = np.empty(uniforms.shape[:2])
        if shifted or self.arrays is None or self.tables is None or not in_range:
            outputs.fill(math.nan)
            return outputs, outputs.size
        is_part = isinstance(column, PartOfColumn)
        words = lanes.words_for(len(self.plan.mechanisms)) if is_part else None
        left = lanes.fill_lanes(
            outputs,
            self.arrays,
            self.request.tree.calibration == "paper",
            self.edge,
            column.values[None],
            np.array([len(column.values)]),
            *self.tables,
            uniforms,
            before=column.before,
            gaps=column.gaps if isinstance(column, PartOfColumn) else NO_GAPS,
            lattice=lanes.lattice_of(column.step, column.unit, self.halves),
            words=words,
        )
        if left < 0 and words is not None:
            raise Unknown(wanted=[Wanted(low, high, (one, other)) for low, high, one, other in lanes.looks_in(words)])
        return column.value(outputs), left

    def walked(
        self, column: Points | Lattice, uniforms: list[list[float]], known: list[float] | None = None
    ) -> list[float]:
        """The output of each distinct quantile, in the units of the data, by the formulas.

        known: (m,) outputs that stay as they are, NaN where there is none; those of a node are known together.
        """
        outputs = [math.nan] * len(self.request.distinct) if known is None else known
        drawn = [column.output(o) for o in outputs]
        unknown = np.append(0, np.cumsum(np.isnan(outputs)))  # before each quantile, and in all

        def is_wanted(node: Node) -> bool:
            high = node.high if node.high >= 0 else len(outputs)
            return bool(unknown[high] > unknown[node.low + 1])

        def decide(node: Node, interval: Interval) -> list[float]:
            if math.isnan(drawn[node.indices[0]]):
                laws = self.laws(column, node, interval)
                found = sorted(law.draw(*uniforms[i]) for law, i in zip(laws, node.indices, strict=True))
                for i, o in zip(node.indices, found, strict=True):
                    drawn[i], outputs[i] = o, column.value(o)
            return [drawn[i] for i in node.indices]

        self.walk(column.unit, decide, is_wanted)
        return outputs

    def walk(
        self,
        unit: int,
        decide: Callable[[Node, Interval], list[float]],
        is_wanted: Callable[[Node], bool] = lambda node: True,
    ) -> None:
        """Visit the nodes from the root down; `decide` gives a node's sorted outputs in the column's units, from the
        earlier ones that bound it. unit: parts of a record. is_wanted: whether a child is visited, with those below."""
        pending: list[tuple[Node, Interval]] = [(self.plan.root, (-math.inf, math.inf, 0, 0))]
        while pending:
            node, interval = pending.pop()
            parts = zip(node.children, split(interval, decide(node, interval), unit, self.halves), strict=False)
            pending += [(child, part) for child, part in parts if child is not None and is_wanted(child)]

    def laws(self, column: Points | Lattice, node: Node, interval: Interval) -> list[Law]:
        """The laws of a node's mechanisms, given the earlier outputs that bound it."""
        view, (low, high, _, _) = column.view(*interval), interval
        priors, shares = self.request.priors, self.plan.mechanisms
        return [
            Law(column, view, low, high, priors[i], self.target(shares[i].relative, view.n), shares[i].rate, self.edge)
            for i in node.indices
        ]

    def target(self, relative: Fraction, n: int) -> Target:
        """The rank aimed at among records of weight n."""
        total = self.plan.public_total
        if total is None:
            return Target.of(relative, n, self.plan.calibration)
        return Target.of(relative, n, "shifted", total)  # the only level: a record is one part

    def log_parts(self, column: Points | Lattice, outcome: Outcome) -> LogParts:
        outputs = [column.output(value) for value in outcome.values.tolist()]
        if outputs != sorted(outputs) or any(
            abs(column.value(o) - value) > OFF_GRID * float(column.step or 0)
            for o, value in zip(outputs, outcome.values.tolist(), strict=True)
        ):
            return Fraction(0), -math.inf
        terms: list[LogParts] = []

        def decide(node: Node, interval: Interval) -> list[float]:
            mine = [outputs[i] for i in node.indices]
            terms.append(sorted_parts(self.laws(column, node, interval), mine))
            return mine

        self.walk(column.unit, decide)
        return sum_of_parts(terms)


def level_steps(plan: Plan) -> tuple[tuple[str, Fraction | float], ...]:
    """The levels of a tree, along its longest path, and what the node there spends."""
    longest = max(plan.paths(), key=len)
    return tuple((f"level {node.depth} of the tree", node.epsilon) for node in longest)


def shifting_total(request: Request) -> int | None:
    """The public total by which the target of a tree's only node is shifted; None where it is not."""
    if len(request.distinct) > 1 or request.adjacency != "add-remove" or request.tree.calibration != "sharp":
        return None
    return None if request.public_total is None else min(request.public_total, LARGEST_TOTAL)


LARGEST_TOTAL = 2**44  # a public total beyond counts as this one: ranks in parts of records stay integers
NEAR, USUAL = 24.0, 3.0  # nats that a mechanism looks at, and that its output is off
FORMULA_SECONDS = 3e-4  # about what one output takes `walked`, whatever the number of records


def parts_of_a_record(depth: int) -> int:
    """Parts for a tree of so many levels: as many halvings as levels, but no more than let 2^53 records be counted.

    A record that earlier outputs have halved more often than that has no weight left, which costs no privacy.
    """
    return 1 << min(depth - 1, 9)


def split(interval: Interval, outputs: Sequence[float], unit: int, halves: int) -> list[Interval]:
    """The intervals between a node's sorted outputs, with the parts of the records at each end that they hold.

    A record at an output leaves `halves` halves of its weight in the node to the interval below that output and as much
    to the one above: one or none; intervals of no width hold no records. So the weights of a record in all intervals
    sum to at most its weight in the node. unit: parts of a record, of which halves are rounded down.
    """
    low, high, low_share, high_share = interval

    def passed(o: float) -> int:
        weight = low_share if o == low else high_share if o == high else unit
        return weight * halves // 2

    bounds = (low, *outputs, high)
    below = (low_share, *map(passed, outputs))
    above = (*map(passed, outputs), high_share)
    return list(zip(bounds[:-1], bounds[1:], below, above, strict=True))


def sorted_parts(laws: list[Law], outputs: list[float]) -> LogParts:
    """Log density of a node's sorted outputs: the sum over which mechanism gave which, equal atoms counted once."""
    table = [[law.log_parts(o) for o in outputs] for law in laws]
    orders = 0.0
    for o in set(outputs):
        if any(law.is_atom(o) for law in laws):
            orders += math.lgamma(outputs.count(o) + 1)
    nearest = [min(far for far, _ in row) for row in table]
    logs = [[rest - float(far - near) for far, rest in row] for row, near in zip(table, nearest, strict=True)]
    return sum(nearest, Fraction(0)), log_permanent(logs) - orders


def log_permanent(table: list[list[float]]) -> float:
    """Log of the permanent of a square matrix of logs: row by row, over the sets of columns used so far."""
    partial: dict[int, float] = {0: 0.0}
    for row in table:
        terms: dict[int, list[float]] = {}
        for used, value in partial.items():
            for j, entry in enumerate(row):
                if not used >> j & 1:
                    terms.setdefault(used | 1 << j, []).append(value + entry)
        partial = {used: log_sum(np.array(logs)) for used, logs in terms.items()}
    return next(iter(partial.values()))
