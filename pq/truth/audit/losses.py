"""The privacy losses of `pq.release` for many pairs of columns at once, as the audit wants them (`alg:quantiles`).

Machine code does what it can (`pq.private.fast.losses`); the formulas do the rest, one pair after another. Which of the
two it is follows from the plan, the priors and the size of the numbers, before anything is evaluated; only outputs that
may be impossible are found on the way.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pq.core.grid import OFF_GRID, rounded_units
from pq.core.plan import PlanArrays
from pq.core.priors.kernel import MODERATE
from pq.core.request import Request
from pq.private.columns.door import Array
from pq.private.fast.changes import pair_changes
from pq.private.fast.encode import encode
from pq.private.fast.lanes import lattice_of
from pq.private.fast.losses import pair_losses
from pq.private.mechanisms.protocol import Outcome
from pq.private.mechanisms.tree import Tree
from pq.truth.density import difference_of

MOST_NATS = 1e5  # of scores: beyond, floats lose digits that exact numbers keep
MOST_PARTS = 4096  # of a prior with a table
LARGEST_DENOMINATOR = 10**18  # of relative quantiles: targets among few records are still exact
WIDEST = 10  # mechanisms of a node: orders are summed over their sets


class TreeLosses:
    """A tree of exponential mechanisms for the audit. The quantiles must be increasing.

    options: as in `pq.release`. law: a kind of `Tree`, which may be broken. machine: whether machine code has its law.

    >>> import numpy as np, pq
    >>> tree = TreeLosses([0.5], epsilon=1, priors=pq.Uniform(0, 4))
    >>> tree.log_ratio(np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 2.0, np.inf]]), np.array([[2.5]])).round(6)
    array([0.73726])
    """

    def __init__(self, quantiles: Any, *, law: type[Tree] = Tree, machine: bool = True, **options: Any) -> None:
        self.tree = law(Request.of(quantiles, mechanism="tree", **options))
        self.plan, self.step, self.priors = self.tree.plan, self.tree.request.step, self.tree.request.priors
        if self.plan.quantiles != self.plan.distinct:
            raise ValueError("quantiles must be increasing")
        if not math.isfinite(self.plan.epsilon):
            raise ValueError("epsilon must be finite")
        self.widest = max(len(node.indices) for node in self.plan.nodes)
        usable = machine and self.widest <= WIDEST and (self.step is None or self.step > 1.0 / MODERATE)
        self._tables = encode(self.priors, MOST_PARTS) if usable else None
        plain = self.plan.public_total is None  # machine code does not know of targets that are shifted
        self._arrays: PlanArrays | None = self.plan.arrays_within(LARGEST_DENOMINATOR) if plain else None

    def log_ratio(self, x: Array, neighbour: Array, values: Array) -> Array:
        """Privacy losses (batch,) of values (batch, m) on columns (batch, n); see `pq.truth.audit.mechanism`."""
        with np.errstate(all="ignore"):
            losses = self.compiled(x, neighbour, values)
            for row in np.flatnonzero(np.isnan(losses)).tolist():
                losses[row] = self.exact(x[row], neighbour[row], values[row])
        return losses

    def exact(self, x: Array, neighbour: Array, values: Array) -> float:
        """The loss of one pair by the formulas."""
        columns = (self.tree.column(part[part < math.inf], None) for part in (x, neighbour))
        one, other = (self.tree.log_parts(column, Outcome(values)) for column in columns)
        return difference_of(one, other)

    def compiled(self, x: Array, neighbour: Array, values: Array) -> Array:
        """The losses by machine code, NaN in the rows that it leaves to `exact`."""
        losses = np.full(len(x), math.nan)
        if self._arrays is None or self._tables is None:
            return losses
        outputs = self._units(values)
        rows = np.flatnonzero(self._within(x, neighbour, values, outputs))
        found = np.empty(rows.size)
        columns = (self._units(part[rows]) for part in (x, neighbour))
        pair_losses(*columns, outputs[rows], *self.law(), *self._tables, self._densities(values[rows]), found)
        losses[rows] = found
        return losses

    def changes(self, x: Array, neighbour: Array, values: Array) -> tuple[Array, Array, Array]:
        """What scores change by, at outputs (batch, m, most) and at the most over all cells (batch, m, 2), and where
        that is; see `pq.private.fast.changes.pair_changes`."""
        one, other, outputs = (self._units(part) for part in (x, neighbour, values))
        shape = outputs.shape
        gains, extremes, places = np.zeros((*shape, self.widest)), np.zeros((*shape, 2)), np.zeros((*shape, 2))
        both = np.sort(np.concatenate([one, other], axis=1), axis=1)
        pair_changes(one, other, both, outputs, *self.law(), gains, extremes, places)
        return gains, extremes, places

    def law(self) -> tuple[Any, ...]:
        """The plan and its options as machine code takes them."""
        if self._arrays is None:
            raise ValueError("quantiles must have fewer digits for a search of the worst priors")
        nodes, members, fractions, rates = self._arrays
        lattice = lattice_of(self.step, self.tree.unit, self.tree.halves)
        return nodes, members, fractions, rates, self.plan.calibration == "paper", self.tree.edge, lattice

    def _units(self, values: Array) -> Array:
        """Values as the outputs that they become: units on a grid."""
        if self.step is not None:
            units = rounded_units(values, self.step)
            values = np.where(np.isposinf(values), math.inf, units)
        return np.ascontiguousarray(values)

    def _within(self, x: Array, neighbour: Array, values: Array, outputs: Array) -> Any:
        """Rows (batch,) of sorted outputs, on the grid, whose numbers are within the range of machine code."""
        rows = np.all(values[:, 1:] >= values[:, :-1], axis=1) & np.all(np.abs(values) < MODERATE, axis=1)
        rows &= max(share.rate for share in self.plan.mechanisms) * (x.shape[1] + 1) < MOST_NATS
        for part in (x, neighbour):
            rows &= np.all((np.abs(part) < MODERATE) | (part == math.inf), axis=1)
        if self.step is not None:
            meant = outputs * float(self.step.numerator) / float(self.step.denominator)
            rows &= np.all(np.abs(meant - values) <= OFF_GRID * float(self.step), axis=1)
        return rows

    def _densities(self, values: Array) -> Array:
        """Log density (batch, m, most) under each mechanism's prior of each output of its node."""
        densities = np.zeros((*values.shape, self.widest))
        for node in self.plan.nodes if self.step is None else ():
            mine = values[:, list(node.indices)]
            for i in node.indices:
                densities[:, i, : len(node.indices)] = self.priors[i].log_density(mine)
        return densities
