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

from pq.core.grid import LATTICE_END
from pq.core.priors import Prior
from pq.private.columns.cells import Column, LatticeView, View
from pq.private.columns.door import LARGEST, Array

REACH = 48.0  # nats; e^-48 is below the resolution of a uniform draw
LEAST_LOG_MASS = -5e5  # nats; of less the digits that tell cells apart are lost, so that less counts as nothing
MARKS = 17  # multiples that one round of a search compares


def target_rank(relative: Fraction, n: float, calibration: str) -> float:
    """The rank that a mechanism aims at among a node's records of weight n: `floor(q n)` ("paper") or `q n` ("sharp").

    >>> target_rank(Fraction(29, 100), 100, "paper"), target_rank(Fraction(1, 3), 1, "sharp")
    (29.0, 0.3333333333333333)
    """
    product = relative * Fraction(n)
    return float(math.floor(product) if calibration == "paper" else product)


def log_scores(low: Array, high: Array, target: Array | float, rate: float) -> Array:
    """Log of the exponential score of cells that stand for ranks low..high: `-rate` times the target's distance."""
    distance = np.maximum(np.maximum(low - target, target - high), 0.0)
    return -rate * distance if math.isfinite(rate) else -distance


def log_sum(log_weights: Array) -> float:
    """log of the sum of exp(log_weights), -inf for nothing."""
    top = float(np.max(log_weights, initial=-math.inf))
    return top + math.log(float(np.sum(np.exp(log_weights - top)))) if top > -math.inf else -math.inf


@dataclass(frozen=True)
class Law:
    """The law of one mechanism at one node.

    column: what outputs mean. view: the node's records. low, high: its interval, in the column's units. target: rank
    aimed at. rate: nats per rank, possibly infinite (all mass on the nearest cells that have any). edge: the adaptation
    of the prior.
    """

    column: Column
    view: View
    low: float
    high: float
    prior: Prior
    target: float
    rate: float
    edge: bool

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
        """Edges (c + 1,) and log weights (c,) of the cells first..last, not normalised."""
        edges, low, high = self.view.cells(first, last, self.ends)
        log_mass = np.atleast_1d(self.prior.log_mass(edges[:-1], edges[1:]))
        scores = log_scores(low, high, self.target, self.rate)
        if math.isinf(self.rate):
            best = np.max(scores, initial=-math.inf, where=log_mass > -math.inf)
            scores = np.where(scores == best, 0.0, -math.inf)
        return edges, log_mass + scores

    def draw(self, cell_uniform: float, point_uniform: float) -> float:
        """The output that two uniforms in (0, 1) stand for: one chooses the cell, one the point in it."""
        only = self.fallback
        if only is not None:
            return only
        cell, lower, upper = self._choose(cell_uniform)
        if isinstance(self.view, LatticeView):
            return self._multiple(*self.view.multiples(cell), lower, upper, point_uniform)
        o = float(self.prior.quantile_between(lower, upper, point_uniform))
        o = min(max(o, math.nextafter(lower, math.inf)), LARGEST)  # a cell holds its upper edge, not its lower one
        return self._clip(self.column.output(o))

    def _multiple(self, first: float, last: float, lower: float, upper: float, uniform: float) -> float:
        """The first multiple of the step among a cell's with a share `uniform` of the cell's mass up to its upper edge.

        Edges are the same numbers for all data sets, so that no rounding of a point can move mass between outputs.
        """
        first, last = max(first, self.low, -LATTICE_END), min(last, self.high, LATTICE_END)
        whole = self.prior.log_mass(lower, upper)
        while first < last:
            marks = np.unique(np.floor(np.linspace(first, last, MARKS)))[:-1]
            edges = np.clip([self.column.edges_of(k, k)[1] for k in marks.tolist()], lower, upper)
            if uniform < 0.5:
                enough = self.prior.log_mass(lower, edges) >= whole + math.log(uniform)
            else:
                enough = self.prior.log_mass(edges, upper) <= whole + math.log1p(-uniform)
            index = int(np.argmax(enough)) if enough.any() else len(marks)
            first = float(marks[index - 1]) + 1.0 if index > 0 else first
            last = float(marks[index]) if index < len(marks) else last
        return self._clip(first)

    def _choose(self, uniform: float) -> tuple[int, float, float]:
        """The cell whose share of the total weight covers `uniform`, and its edges."""
        end = self.view.last_cell
        reach = 1.0 + REACH / self.rate if 0.0 < self.rate < math.inf else math.inf
        while True:
            first = self.view.cell_at(self.target - reach)
            last = min(end, self.view.cell_at(self.target + reach) + 1)
            edges, log_weights = self.log_weights(first, last)
            score = -self.rate * reach  # no cell outside the window scores more, and their mass is at most one
            outside = (score if first > 0 else -math.inf, score if last < end else -math.inf)
            index = pick(log_weights, outside, uniform)
            if index is not None:
                return first + index, float(edges[index]), float(edges[index + 1])
            reach *= 8.0

    def log_probability(self, o: float) -> float:
        """Exact log density of an output in the column's units; log probability where the law has an atom."""
        if not self.low <= o <= self.high:
            return -math.inf
        only = self.fallback
        if only is not None:
            return 0.0 if o == only else -math.inf
        _, log_weights = self.log_weights(0, self.view.last_cell)
        low, high = (np.array([float(k)]) for k in self.view.ranks_of(o))
        score = float(log_scores(low, high, self.target, self.rate)[0])
        if math.isinf(self.rate):
            score = self._limit_score(score)
        return self._log_base(o) + score - log_sum(log_weights)

    def _limit_score(self, score: float) -> float:
        """0 for the ranks nearest to the target among the cells that have mass, -inf for the others."""
        edges, low, high = self.view.cells(0, self.view.last_cell, self.ends)
        has_mass = np.atleast_1d(self.prior.log_mass(edges[:-1], edges[1:])) > -math.inf
        best = np.max(log_scores(low, high, self.target, self.rate), initial=-math.inf, where=has_mass)
        return 0.0 if score >= best else -math.inf

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
