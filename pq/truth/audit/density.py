"""The exact log density of a release for a batch of columns and outputs at once: `alg:quantiles`, vectorised for the
audit.

The formulas are those of `pq.truth.density.log_density`: budgets, rates and relative quantiles come from the plan,
masses from the priors, scores from `pq.core.scores.log_rank_scores`. Only the bookkeeping differs: a node
keeps all records of the column, those outside its interval as cells of no width, so that all rows of a batch have the
same shape at every node.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from pq.core.grid import LATTICE_END, from_units, to_units
from pq.core.plan import Node
from pq.core.request import Request
from pq.core.scores import log_rank_scores, target_rank
from pq.private.columns.door import Array
from pq.private.mechanisms.tree import OFF_GRID, Tree
from pq.truth.audit.mechanism import difference
from pq.truth.audit.view import Interval, NodeView, lattice_edges


def rows_of(interval: Interval, rows: Any) -> Interval:
    low, high, low_share, high_share = interval
    return low[rows], high[rows], low_share[rows], high_share[rows]


def tile(interval: Interval) -> Interval:
    low, high, low_share, high_share = (np.tile(bound, 2) for bound in interval)
    return low, high, low_share, high_share


def everything(size: int) -> Interval:
    infinite, none = np.full(size, np.inf), np.zeros(size)
    return -infinite, infinite, none, none


def changed_records(one: Array, other: Array) -> Array:
    """The values (batch, 2) in which two sorted columns differ: the record that one has and the other has not, and the
    reverse."""
    differ = one != other
    if not differ.shape[1]:
        return np.full((len(one), 2), np.inf)
    rows, none = np.arange(len(one)), ~differ.any(axis=1)
    first, last = np.argmax(differ, axis=1), differ.shape[1] - 1 - np.argmax(differ[:, ::-1], axis=1)
    low = np.minimum(one[rows, first], other[rows, first])
    high = np.maximum(one[rows, last], other[rows, last])
    return np.where(none[:, None], np.inf, np.stack([low, high], axis=1))


class TreeDensity:
    """`pq.release` as a mechanism for the audit; see there for the arguments. The quantiles must be increasing.

    >>> import numpy as np, pq
    >>> tree = TreeDensity([0.5], epsilon=1, priors=pq.Uniform(0, 4), calibration="paper")
    >>> tree.log_density(np.array([[1.0, 2.0, 3.0]]), np.array([[2.5]]))
    array([-1.44815397])
    """

    def __init__(
        self,
        quantiles: Any,
        **options: Any,
    ) -> None:
        mechanism = Tree(Request.of(quantiles, mechanism="tree", **options))
        self.plan, self.edge = mechanism.plan, mechanism.edge
        if self.plan.quantiles != self.plan.distinct:
            raise ValueError("quantiles must be increasing")
        if not math.isfinite(self.plan.epsilon):
            raise ValueError("epsilon must be finite")
        self.step = mechanism.request.step
        self.priors = mechanism.request.priors
        self.tie_share = 0.5 if mechanism.halves else 0.0
        self.rates = [share.rate for share in self.plan.mechanisms]
        self.relative = [share.relative for share in self.plan.mechanisms]
        self._tables: dict[int, Array] = {}

    def log_density(self, x: Array, values: Array) -> Array:
        """Exact log densities (batch,) of values (batch, m) on the columns x (batch, n); see `Mechanism`."""
        with np.errstate(all="ignore"):
            records, outputs = self.outputs_of(x), self.outputs_of(values)
            total = np.where(self._on_grid(values, outputs), 0.0, -np.inf)
            pending = [(self.plan.root, everything(len(x)))]
            while pending:
                node, interval = pending.pop()
                mine = outputs[:, list(node.indices)]
                total += self._log_node(node, records, mine, interval)
                parts = self.split(interval, mine)
                pending += [
                    (child, part) for child, part in zip(node.children, parts, strict=False) if child is not None
                ]
            return np.where(np.isnan(total), -np.inf, total)

    def changed_nodes(
        self, one: Array, other: Array, outputs: Array, rows: Any
    ) -> Iterator[tuple[Node, Any, Interval, Array]]:
        """The nodes that see a difference between two columns, with the rows of the batch in which they do, among
        those given, their intervals there, and their own outputs."""
        changed = changed_records(one, other)
        pending = [(self.plan.root, rows, everything(rows.size))]
        while pending:
            node, rows, interval = pending.pop()
            seen = np.any(self.weights(changed[rows], interval) > 0.0, axis=1)
            rows, interval = rows[seen], rows_of(interval, seen)
            if not rows.size:
                continue
            mine = outputs[rows][:, list(node.indices)]
            yield node, rows, interval, mine
            children = zip(node.children, self.split(interval, mine), strict=False)
            pending += [(child, rows, part) for child, part in children if child is not None]

    def log_ratio(self, x: Array, neighbour: Array, values: Array) -> Array:
        """Privacy losses (batch,) on columns that differ in one record: only the nodes that see a difference are
        evaluated.

        Elsewhere the two laws are the same; where an output may be impossible, all nodes are evaluated.
        """
        with np.errstate(all="ignore"):
            outputs = self.outputs_of(values)
            total = np.zeros(len(x))
            sure = np.flatnonzero(self._surely_possible(values, outputs))
            rest = np.setdiff1d(np.arange(len(x)), sure)
            if rest.size:
                logs = self.log_density(np.concatenate([x[rest], neighbour[rest]]), np.tile(values[rest], (2, 1)))
                total[rest] = difference(logs[: rest.size], logs[rest.size :])
            one, other = self.outputs_of(x), self.outputs_of(neighbour)
            for node, rows, interval, mine in self.changed_nodes(one, other, outputs, sure):
                records = np.concatenate([one[rows], other[rows]])
                logs = self._log_node(node, records, np.tile(mine, (2, 1)), tile(interval))
                total[rows] += logs[: rows.size] - logs[rows.size :]
            return total

    def _surely_possible(self, values: Array, outputs: Array) -> Array:
        """Rows (batch,) whose output has positive density whatever the column: sorted, with prior mass on both sides of
        each value.

        Every interval that ends in or contains such a value has mass, and every atom upon it too.
        """
        possible = self._on_grid(values, outputs) & np.all(values[:, 1:] >= values[:, :-1], axis=1)
        for prior in set(self.priors):
            if self.step is None:
                sides = [(np.nextafter(values, -np.inf), values), (values, np.nextafter(values, np.inf))]
            else:
                sides = [(lattice_edges(outputs - 0.5, self.step), lattice_edges(outputs + 0.5, self.step))]
            for lower, upper in sides:
                possible &= np.all(prior.log_mass(lower, upper) > -np.inf, axis=1)
        return possible

    def outputs_of(self, values: Array) -> Array:
        """Values as the outputs that they become: units on a grid."""
        return values if self.step is None else self._units(values)

    def _on_grid(self, values: Array, outputs: Array) -> Array:
        if self.step is None:
            return np.ones(len(values), dtype=bool)
        return np.all(np.abs(from_units(outputs, self.step) - values) <= OFF_GRID * float(self.step), axis=1)

    def _units(self, values: Array) -> Array:
        assert self.step is not None
        units = np.clip(np.rint(to_units(values, self.step)), -LATTICE_END, LATTICE_END)
        return np.where(np.isposinf(values), np.inf, units)

    def split(self, interval: Interval, outputs: Array) -> list[Interval]:
        """Intervals between a node's outputs, with the shares of the records at each end; see
        `pq.private.mechanisms.tree.split`."""
        low, high, low_share, high_share = interval
        columns = list(outputs.T)
        passed = [self.tie_share * np.where(o == low, low_share, np.where(o == high, high_share, 1.0)) for o in columns]
        bounds = (low, *columns, high)
        return list(zip(bounds[:-1], bounds[1:], (low_share, *passed), (*passed, high_share), strict=True))

    def weights(self, records: Array, interval: Interval) -> Array:
        """What part (batch, n) of each record a node holds."""
        low, high, low_share, high_share = (bound[:, None] for bound in interval)
        inside = ((records > low) & (records < high)).astype(np.float64)
        if self.tie_share > 0.0:
            open_interval = low < high
            inside += low_share * ((records == low) & open_interval) + high_share * ((records == high) & open_interval)
        return inside

    def _log_node(self, node: Node, records: Array, outputs: Array, interval: Interval) -> Array:
        """Log density (batch,) of a node's sorted outputs: over which mechanism gave which, equal atoms counted
        once."""
        view = NodeView(records, self.weights(records, interval), interval, self.ends_of(interval), self.step)
        ranks = [view.ranks_of(o, self.step is not None) for o in outputs.T]
        masses: dict[Any, tuple[Array, Array]] = {}
        table, atom = [], np.zeros((len(outputs.T), len(records)), dtype=bool)
        for i in node.indices:
            prior = self.priors[i]
            if prior not in masses:
                masses[prior] = prior.log_mass(view.edges[:, :-1], view.edges[:, 1:]), prior.log_mass(*view.ends)
            log_mass, log_all = masses[prior]
            targets = self.targets_of(i, view.n)
            log_weights = log_mass + log_rank_scores(view.low, view.high, targets[:, None], self.rates[i])
            log_total = _log_sum(log_weights)
            row = []
            for j, o in enumerate(outputs.T):
                score = log_rank_scores(*ranks[j], targets, self.rates[i])
                base, is_atom = self._log_base(prior, o, interval, log_all)
                row.append(np.where((interval[0] <= o) & (o <= interval[1]), base + score - log_total, -np.inf))
                if np.isneginf(log_all).any():
                    only = self._fallback(prior, interval, view.ends)
                    row[-1] = np.where(np.isneginf(log_all), np.where(o == only, 0.0, -np.inf), row[-1])
                atom[j] |= is_atom
            table.append(row)
        return _log_permanent(table) - _log_orders(outputs.T, atom)

    def targets_of(self, i: int, n: Array) -> Array:
        """Target ranks (batch,) of mechanism i; n are multiples of the least weight that a record can have."""
        parts = 2.0**self.plan.depth if self.tie_share > 0.0 else 1.0
        places = np.rint(n * parts).astype(np.intp)
        table = self._tables.get(i, np.empty(0))
        if len(table) <= places.max(initial=0):
            sizes = np.arange(2 * places.max(initial=0) + 1) / parts
            table = np.array([target_rank(self.relative[i], size, self.plan.calibration) for size in sizes.tolist()])
            self._tables[i] = table
        return np.asarray(table[places])

    def ends_of(self, interval: Interval) -> tuple[Array, Array]:
        low, high = interval[:2]
        if self.edge:
            return np.full(low.shape, -np.inf), np.full(low.shape, np.inf)
        return (
            (low, high)
            if self.step is None
            else (lattice_edges(low - 0.5, self.step), lattice_edges(high + 0.5, self.step))
        )

    def _fallback(self, prior: Any, interval: Interval, ends: tuple[Array, Array]) -> Array:
        o = prior.quantile_between(*ends, 0.5)
        return np.clip(o if self.step is None else self._units(o), *interval[:2])

    def _log_base(self, prior: Any, o: Array, interval: Interval, log_all: Array) -> tuple[Array, Any]:
        """Log of the adapted prior's mass (batch,) where an output is an atom, of its density elsewhere; and where it
        is one."""
        low, high = interval[:2]
        at_low, at_high = (self.edge & (o == low)), (self.edge & (o == high))
        if self.step is None:
            is_atom = at_low | at_high
            base = prior.log_density(o)
            if is_atom.any():
                mass = prior.log_mass(np.where(at_low, -np.inf, o), np.where(at_high, np.inf, o))
                base = np.where(is_atom, mass, base)
            return base, is_atom | np.isneginf(log_all)
        left, right = lattice_edges(o - 0.5, self.step), lattice_edges(o + 0.5, self.step)
        return prior.log_mass(np.where(at_low, -np.inf, left), np.where(at_high, np.inf, right)), True


def _log_sum(logs: Array) -> Array:
    """Log of the sum of exponentials along the last axis, -inf for nothing."""
    top = np.max(logs, axis=-1)
    shift = np.where(np.isneginf(top), 0.0, top)
    return shift + np.log(np.sum(np.exp(logs - shift[..., None]), axis=-1))


def _log_permanent(table: list[list[Array]]) -> Array:
    """Log of the permanents (batch,) of square matrices of logs: row by row, over the sets of columns used so far."""
    partial: dict[int, Array] = {0: np.zeros(())}
    for row in table:
        terms: dict[int, list[Array]] = {}
        for used, value in partial.items():
            for j, entry in enumerate(row):
                if not used >> j & 1:
                    terms.setdefault(used | 1 << j, []).append(value + entry)
        partial = {
            used: logs[0] if len(logs) == 1 else _log_sum(np.stack(logs, axis=-1)) for used, logs in terms.items()
        }
    return next(iter(partial.values()))


def _log_orders(outputs: Array, atom: Array) -> Array:
    """Log of the number of orders (batch,) of each run of equal atoms among sorted outputs (m, batch); -inf density if
    not sorted."""
    total = np.zeros(outputs.shape[1])
    run = np.ones(outputs.shape[1])
    for j in range(1, len(outputs)):
        equal = outputs[j] == outputs[j - 1]
        run = np.where(equal, run + 1.0, 1.0)
        total += np.where(equal & atom[j], np.log(run), 0.0)
        total = np.where(outputs[j] < outputs[j - 1], np.inf, total)
    return total
