"""The audit of any mechanism over its protocol: neighbours and whole outcomes for which its privacy loss is as large as
it can be (Section 3.2).

A mechanism may give more than values: a total, counts, what a look saw, shares of ties. So an outcome is what it draws
itself, on either neighbour or on columns far from both, where counts and totals are extreme; and the same with its
values moved to places that climb with the columns. The loss of each is an exact difference of log densities.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pq.core.grid import grid_step
from pq.core.priors import PiecewiseConstant
from pq.core.request import Request
from pq.private.columns.door import Array
from pq.private.mechanisms import Mechanism, Outcome, mechanism_for
from pq.private.randomness import Source
from pq.truth.audit.bins import Line
from pq.truth.audit.report import AuditReport
from pq.truth.audit.search import Found, Search, race
from pq.truth.density import difference_of

PLACES = 8  # bins of width one of the priors of a search
SLOPE = 6.0  # nats by which the masses of neighbouring bins differ
FAR_RECORDS = 40  # of a column far from all neighbours
FAR_DRAWS = 3  # from each of these


@dataclass(frozen=True, eq=False)
class Witness:
    """Two neighbouring columns and an outcome with their loss in nats."""

    loss: float
    x: Array
    neighbour: Array
    outcome: Outcome


class OutcomeLosses:
    """The losses of a mechanism's whole outcomes, for a search; it keeps the worst in `worst`.

    maker: the mechanism. line: where records are. rng: of the outcomes that are tried.
    """

    def __init__(self, maker: Mechanism, line: Line, rng: np.random.Generator) -> None:
        self.maker, self.rng, self.source = maker, rng, Source(rng)
        places = line.snap(line.place(np.array([0.02, 0.5, 0.98])))
        columns = [np.empty(0), *(np.full(FAR_RECORDS, place) for place in places)]
        self.far = [self._draw(maker.column(column, None)) for column in columns for _ in range(FAR_DRAWS)]
        self.worst = Witness(-math.inf, columns[0], columns[0], self.far[0])

    def log_ratio(self, x: Array, neighbour: Array, values: Array) -> Array:
        """The largest losses (batch,) in nats of a few outcomes; see `pq.truth.audit.mechanism.Lossy`."""
        rows = zip(x, neighbour, values, strict=True)
        return np.array([self._largest(one[one < np.inf], other[other < np.inf], o) for one, other, o in rows])

    def _largest(self, x: Array, neighbour: Array, values: Array) -> float:
        columns = [self.maker.column(records, None) for records in (x, neighbour)]
        drawn = self._draw(columns[self.rng.integers(2)])
        known = self.worst.outcome if self.rng.random() < 0.5 else self.far[self.rng.integers(len(self.far))]
        tried = [drawn, known, replace(known, values=values)]
        losses = [self._loss(columns, outcome) for outcome in tried]
        largest = int(np.argmax(losses))
        if losses[largest] > self.worst.loss:
            self.worst = Witness(losses[largest], x, neighbour, tried[largest])
        return losses[largest]

    def _draw(self, column: Any) -> Outcome:
        with np.errstate(all="ignore"):
            return self.maker.draw(column, self.source)

    def _loss(self, columns: list[Any], outcome: Outcome) -> float:
        with np.errstate(all="ignore"):
            one, other = (self.maker.log_parts(column, outcome) for column in columns)
        return abs(difference_of(one, other))


def lopsided(start: float) -> dict[str, PiecewiseConstant]:
    """Priors by name on a few bins of width one from `start` on, with nearly all of their mass in one of them.

    >>> sorted(lopsided(0.0))
    ['down', 'peak', 'up']
    """
    j = np.arange(float(PLACES))
    logs = {"up": SLOPE * (j - j[-1]), "down": -SLOPE * j, "peak": -SLOPE * np.abs(j - 5.0)}
    edges = [start + k for k in range(PLACES + 1)]
    return {name: PiecewiseConstant(tuple(edges), tuple(np.exp(log).tolist())) for name, log in logs.items()}


def audit_mechanism(
    quantiles: Any,
    *,
    epsilon: Any,
    mechanism: str,
    priors: Any = None,
    adjacency: str = "add-remove",
    grid: Any = None,
    pairs: int = 1000,
    seed: int = 0,
    records: int = 8,
    population: int = 32,
    progress: Callable[[int], Any] | None = None,
    **options: Any,
) -> AuditReport:
    """Search for the largest privacy loss of `pq.release` by one mechanism, with exact densities of whole outcomes.

    mechanism: a name, that of one's own subclass of `Mechanism` as well. priors: as in `pq.release`, or None for a few
    with nearly all mass at one place; places are then in units of the grid's step. pairs: of neighbours to evaluate, at
    least, each with three outcomes. seed, records, population, progress: as in `pq.truth.audit.report.audit`. The rest:
    as in `pq.release`.

    Returns an `AuditReport`. Raises `ValueError` or `TypeError` naming the argument at fault.

    >>> report = audit_mechanism([0.5], epsilon=1, mechanism="cells", pairs=40, population=10)
    >>> 0.9 < report.ratio <= 1.0000001
    True
    """
    step = grid_step(grid)
    facts: dict[str, Any] = {"epsilon": epsilon, "mechanism": mechanism, "adjacency": adjacency, **options}
    facts["grid"] = grid if priors is not None or step is None else 1
    named = lopsided(0.0 if step is None else -0.5) if priors is None else {"given": priors}
    rng, searches = np.random.default_rng(seed), {}
    for name, prior in named.items():
        maker = mechanism_for(Request.of(quantiles, priors=prior, **facts))
        if math.isinf(maker.request.epsilon):
            raise ValueError("epsilon must be finite")
        line = _line(maker, given=priors is not None)
        searches[name] = Search(
            OutcomeLosses(maker, line, rng),
            len(maker.request.distinct),
            epsilon=float(maker.request.epsilon),
            adjacency=adjacency,
            line=line,
            rng=rng,
            records=records,
            population=population,
        )
    found = race(list(searches.values()), pairs, progress)
    worst = max(searches, key=lambda name: searches[name].mechanism.worst.loss)  # type: ignore[union-attr]
    settings = {"mechanism": mechanism, "grid": None if grid is None else str(grid), **options}
    told: dict[str, Any] = {"seed": seed, "settings": settings, "prior": worst if priors is None else None}
    return _report(searches[worst].mechanism, found, told)  # type: ignore[arg-type]


def _line(maker: Mechanism, given: bool) -> Line:
    """Where records and values may be: along a prior that was given, else over all bins of a lopsided one."""
    step, prior = maker.request.step, maker.request.priors[0]
    if given:
        line = Line.along(prior)
        return Line(line.place, line.scale, step)
    return Line.between(0.0, float(PLACES - (step is not None)), step=step)


def _report(losses: OutcomeLosses, found: Found, told: dict[str, Any]) -> AuditReport:
    """The report on a search: its worst outcome is told whole, as `pq.privacy_loss` takes it."""
    request, worst = losses.maker.request, losses.worst
    values = worst.outcome.values[list(request.positions)]
    total = {} if worst.outcome.total is None else {"total": worst.outcome.total}
    asked = {"quantiles": [str(q) for q in request.quantiles]}
    return AuditReport(
        epsilon=float(request.epsilon),
        adjacency=request.adjacency,
        loss=worst.loss,
        x=worst.x,
        neighbour=worst.neighbour,
        values=values,
        outcome={"values": values.tolist(), **total, **dict(worst.outcome.drawn)},
        pairs=found.pairs,
        histogram=found.histogram,
        priors=list(request.priors),
        **{**told, "settings": asked | told["settings"]},
    )
