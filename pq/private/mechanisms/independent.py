"""The exponential mechanism on the intervals between records: exact law and sampler (Section 3.1, `lem:quantile`).

An output's log weight is the log prior mass of its cell minus `rate` times the distance of the target rank from the
cell's ranks. A cell is all outputs between two neighbouring records. The law is this one formula for every data set;
where the prior has no mass in a node's interval, or less than e^-500000 (a fact about public numbers and earlier
outputs, not about records), the output is the end of the interval that is nearest to the prior's bulk.

*Edge* adaptation moves the prior's mass outside the interval to atoms on its ends. An atom has the ranks of the
outermost cell beside it, so the law is that of cells with infinite outermost edges whose outputs are clipped to the
interval.

Time: only cells whose rank is within `REACH / rate` of the target are weighed, unless the prior puts nearly all its
mass elsewhere; what is left out is bounded and the window grows until the bound cannot change the answer. The answer to
a given uniform is the same as if all cells were weighed. How often the window grows depends on the data, so the running
time is not private; see the README.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from pq.core.grid import LATTICE_END, from_units
from pq.core.priors import Prior
from pq.core.scores import Distances, Target, log_less, log_sum
from pq.private.columns.cells import Column, LatticeView, View
from pq.private.columns.door import LARGEST, Array

REACH = 48.0  # nats; e^-48 is below the resolution of a uniform draw
LEAST_LOG_MASS = -5e5  # nats; of less the digits that tell cells apart are lost, so that less counts as nothing
MARKS = 17  # multiples that one round of a search compares


@dataclass(frozen=True)
class Law:
    """The law of one mechanism at one node.

    column: what outputs mean. view: the node's records. low, high: its interval, in the column's units. target: rank
    aimed at, in parts of a record. record_rate: nats per record, possibly infinite (all mass on the nearest cells that
    have any). edge: the adaptation of the prior.
    """

    column: Column
    view: View
    low: float
    high: float
    prior: Prior
    target: Target
    record_rate: float
    edge: bool

    @property
    def rate(self) -> float:
        """Nats per part of a record."""
        return self.record_rate / self.column.unit

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Outermost edges of the cells, in the data's units."""
        return (-math.inf, math.inf) if self.edge else self.column.edges_of(self.low, self.high)

    @cached_property
    def fallback(self) -> float | None:
        """The only output if the prior has no mass in the interval; None if it has some."""
        ends = self.ends
        if ends == (-math.inf, math.inf) or self.prior.log_mass(*ends) > LEAST_LOG_MASS:
            return None
        return self._clip(self.column.output(float(self.prior.quantile_between(*ends, 0.5))))

    def _clip(self, o: float) -> float:
        return min(max(o, self.low), self.high)

    def log_weights(self, first: int, last: int) -> tuple[Array, Array]:
        """Edges (c + 1,) and log weights (c,) of the cells first..last, up to a constant; all -inf if none has mass."""
        edges, low, high = self.view.cells(first, last, self.ends)
        log_mass = np.atleast_1d(self.prior.log_mass(edges[:-1], edges[1:]))
        return edges, log_mass + self._scores(Distances.of(low, high, self.target), log_mass)[0]

    def _scores(self, distances: Distances, log_mass: Array) -> tuple[Array, int | None]:
        """Log scores relative to the best one among the cells that have mass, and which that is; None if none has."""
        possible = log_mass > -math.inf
        if not possible.any():
            return np.zeros(len(log_mass)), None
        best = distances.best(possible)
        if math.isinf(self.record_rate):
            return np.where(distances.scores(1.0, best) == 0.0, 0.0, -math.inf), best
        return distances.scores(self.rate, best), best

    def draw(self, cell_uniform: float, point_uniform: float) -> float:
        """The output that two uniforms in (0, 1) stand for: one chooses the cell, one the point in it."""
        only = self.fallback
        if only is not None:
            return only
        cell, lower, upper = self._choose(cell_uniform)
        if isinstance(self.view, LatticeView):
            first, last = self.view.multiples(cell)
            ends = max(first, self.low), min(last, self.high)
            return self._clip(first_multiple(self.prior, self.view.step, *ends, lower, upper, point_uniform))
        o = float(self.prior.quantile_between(lower, upper, point_uniform))
        o = min(max(o, math.nextafter(lower, math.inf)), LARGEST)  # a cell holds its upper edge, not its lower one
        return self._clip(self.column.output(o))

    def _choose(self, uniform: float) -> tuple[int, float, float]:
        """The cell whose share of the total weight covers `uniform`, and its edges."""
        end, target = self.view.last_cell, float(self.target.whole)
        reach = 1.0 + REACH / self.rate if 0.0 < self.rate < math.inf else math.inf
        while True:
            first = self.view.cell_at(target - reach)
            last = min(end, self.view.cell_at(target + 1.0 + reach) + 1)
            left, right = int(first > 0), int(last < end)  # a cell more on each side: none beyond scores better
            edges, low, high = self.view.cells(first - left, last + right, self.ends)
            inner = slice(left, len(low) - right)
            log_mass = np.full(len(low), -math.inf)
            log_mass[inner] = self.prior.log_mass(edges[:-1][inner], edges[1:][inner])
            scores, best = self._scores(Distances.of(low, high, self.target), log_mass)
            outside = (float(scores[0]) if left else -math.inf, float(scores[-1]) if right else -math.inf)
            index = None
            if best is not None or not (left or right):
                index = pick((log_mass + scores)[inner], outside, uniform)  # the mass beyond is at most one
            if index is not None:
                return first + index, float(edges[left + index]), float(edges[left + index + 1])
            reach *= 8.0

    def log_probability(self, o: float) -> float:
        """Exact log density of an output in the column's units; log probability where the law has an atom."""
        far, rest = self.log_parts(o)
        return log_less(rest, far)

    def log_parts(self, o: float) -> tuple[Fraction, float]:
        """`log_probability` as minus an exact number of nats, for how much further from the target the output is than
        the best, plus the rest: losses are differences, and far outputs have more nats than a float has digits for."""
        nothing = Fraction(0)
        if not self.low <= o <= self.high:
            return nothing, -math.inf
        only = self.fallback
        if only is not None:
            return nothing, 0.0 if o == only else -math.inf
        edges, low, high = self.view.cells(0, self.view.last_cell, self.ends)
        log_mass = np.atleast_1d(self.prior.log_mass(edges[:-1], edges[1:]))
        distances = Distances.of(low, high, self.target)
        scores, best = self._scores(distances, log_mass)
        assert best is not None
        lowest, highest = (np.array([k]) for k in self.view.ranks_of(o))
        own = Distances.of(lowest, highest, self.target)
        further, rest = own.exact(0) - distances.exact(best), self._log_base(o) - log_sum(log_mass + scores)
        if math.isinf(self.record_rate):
            return nothing, rest if further <= 0 else -math.inf
        return Fraction(self.rate) * further, rest

    def is_atom(self, o: float) -> bool:
        """Whether the law gives the single output `o` a probability rather than a density."""
        if self.column.step is not None or self.fallback is not None:
            return True
        return self.edge and o in (self.low, self.high)

    def _log_base(self, o: float) -> float:
        """Log of the adapted prior's mass at an atom, or density elsewhere, not normalised."""
        lower, upper = self.column.edges_of(o, o)
        if not self.is_atom(o):
            return float(self.prior.log_density(o))
        if self.edge and o == self.low:
            lower = -math.inf
        if self.edge and o == self.high:
            upper = math.inf
        return float(self.prior.log_mass(lower, upper))


def first_multiple(
    prior: Prior, step: Fraction, first: float, last: float, lower: float, upper: float, uniform: float
) -> float:
    """The first of the multiples first..last of a step, whose cells make up (lower, upper], with a share `uniform` of
    that interval's mass up to its upper edge.

    Edges are the same numbers for all data sets, so that no rounding of a point can move mass between outputs.
    """
    first, last = max(first, -LATTICE_END), min(last, LATTICE_END)
    whole = prior.log_mass(lower, upper)
    while first < last:
        marks = np.unique(np.floor(np.linspace(first, last, MARKS)))[:-1]
        edges = np.clip(from_units(marks + 0.5, step), lower, upper)
        if uniform < 0.5:
            enough = prior.log_mass(lower, edges) >= whole + math.log(uniform)
        else:
            enough = prior.log_mass(edges, upper) <= whole + math.log1p(-uniform)
        index = int(np.argmax(enough)) if enough.any() else len(marks)
        first = float(marks[index - 1]) + 1.0 if index > 0 else first
        last = float(marks[index]) if index < len(marks) else last
    return first


def pick(log_weights: Array, log_outside: tuple[float, float], uniform: float) -> int | None:
    """The index that inverse-transform sampling picks, or None if the weights outside might change it.

    log_weights: (c,) of neighbouring cells. log_outside: upper bounds of the log total weight below and above them.
    """
    top = max(float(np.max(log_weights)), *log_outside)
    below, above = (math.exp(w - top) if w > -math.inf else 0.0 for w in log_outside)
    if top == -math.inf:
        return 0 if log_outside == (-math.inf, -math.inf) else None
    running = np.cumsum(np.exp(log_weights - top))
    total = float(running[-1])
    lowest = uniform * total - (1.0 - uniform) * below
    highest = uniform * (total + above)
    if lowest < 0.0 or (highest >= total and above > 0.0) or total == 0.0:
        return None
    last = int(np.searchsorted(running, running[-1], side="left"))  # the last cell of positive weight
    one, other = np.minimum(np.searchsorted(running, [lowest, highest], side="right"), last)
    return int(one) if one == other else None
