"""A look at cells, then a joint release whose base measure has learned from it, for columns that are not smooth.

A part of the budget buys noisy counts of public cells (`pq.private.mechanisms.cells.law`). Cells whose counts stand out
of the noise get most of the base measure of a joint release (`pq.private.mechanisms.joint.law`) that spends the rest:
under the priors alone each output pays the logarithm of how narrow its lump is, here of how narrow it is in its cell.
The priors keep a share, so that a cell in which nothing was seen costs a few nats and no more. Where the priors know no
scale, the look is at a private median and a private width, and the base measure a Cauchy law there: the price of
finding the place among all floats is paid once, not by each output.

*Privacy.* Given the look, the second mechanism is a joint release with a base measure that is known: epsilon-DP with
its own budget, whatever the look was. By composition the losses of both add up, and the budgets sum to epsilon exactly.
Base measure and curve are functions of the outcome and of public facts. zCDP adds up as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from pq.core.curves import joint_support
from pq.core.expected import LOOK_NATS, learned_drawn, usual_budget, usual_size
from pq.core.priors import Cauchy, Mixture, Prior, Uniform
from pq.core.priors.differing import differing
from pq.core.priors.log_uniform import knows_scale
from pq.core.request import Request
from pq.private.columns.cells import Points
from pq.private.columns.door import Array
from pq.private.columns.part import Near
from pq.private.mechanisms.cells import plan_cells
from pq.private.mechanisms.cells.law import CellsOutcome, CellsPlan
from pq.private.mechanisms.cells.partitions import PlacePartition, Places, PriorPartition
from pq.private.mechanisms.cells.refined import RefinedPartition
from pq.private.mechanisms.joint import (
    MOST_SIZE,
    checked_windows,
    drawn_knots,
    drawn_outputs,
    grid_total,
    near_outputs,
    read_off,
    sampler,
)
from pq.private.mechanisms.joint.plan import JointPlan, usual_total
from pq.private.mechanisms.joint.windows import wide_reaches
from pq.private.mechanisms.protocol import LogParts, Mechanism, Outcome
from pq.private.randomness import Source

LEAST_BUDGET = Fraction(1, 2**20)  # below, the look's part is too little for noise to be drawn
LEAST_SHARE, MOST_SHARE = Fraction(1, 50), Fraction(1, 4)  # of the look
CELLS = 128
WIDTHS = 1, 2, 4, 8, 16  # cells that are seen together
CLEAR = 2.5  # times the inverse rate of the noise that a count must exceed to be believed
NEAR_EACH = 10.25  # nats for each output that a release of a million rarely looks beyond: less than before a look
KEPT = 0.15  # share of the base measure that the priors keep


class Mixed(Mechanism, name="mixed"):
    """Noisy counts of cells, then a joint release; why it is private: see this module."""

    least_budget = LEAST_BUDGET

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        if not isinstance(request.budget, Fraction):
            raise ValueError("epsilon must be finite for a mixed release")
        if request.budget < LEAST_BUDGET:
            raise ValueError(f"epsilon must be at least {float(LEAST_BUDGET):.0e} for each record of a mixed release")
        signal = usual_budget(request.budget, request.adjacency) * usual_size(request.size_guess)
        share = Fraction(round(min(LOOK_NATS / signal, 1.0) * 1000), 1000)
        self.look = plan_look(request, request.budget * min(max(share, LEAST_SHARE), MOST_SHARE))
        self.levels = learned_drawn(request.distinct, signal)

    @cached_property
    def rho(self) -> Fraction | float:
        return (self.look.rho + self._rest**2 / 8) * self.request.max_contributions**2

    @property
    def _rest(self) -> Fraction:
        """What the look leaves of a record's budget."""
        return Fraction(self.request.budget) - sum(self.look.budgets, Fraction(0))

    def column(self, values: Array, before: object) -> Points:
        """The records as they are: both parts do what a grid asks for."""
        return Points(np.ascontiguousarray(values), before)  # type: ignore[arg-type]

    def draw(self, column: Points, source: Source) -> Outcome:  # type: ignore[override]
        places = self.look.draw(column, source.bytes)
        plan = self.joint_after(places)
        known = column.values, column.before, source.uniforms
        outputs, total = sampler(1, plan.size)(plan, *known, checked_windows(plan, column))
        drawn = [("places", list(places))]
        if plan.quantiles != self.request.distinct:
            drawn.append(("drawn", outputs.tolist()))
        values = read_off(plan, self.request, outputs)
        return Outcome(values, None if total is None else round(total), tuple(drawn))

    @cached_property
    def near(self) -> Near | None:
        if self.request.step is not None:
            return None
        levels, rate = self._joint.levels, self._joint.rate
        near = near_outputs(levels, rate, NEAR_EACH)
        near = near._replace(growth=wide_reaches(levels, len(levels) / rate))  # the narrower cells are, the dearer
        return near._replace(points=self.look.first.edges(())) if isinstance(self.look, CountedLook) else near

    def joint_after(self, places: Places) -> JointPlan:
        """The joint release that follows a look."""
        return self._joint.with_priors(self.look.base(places))

    @cached_property
    def _joint(self) -> JointPlan:
        """The joint release as it would be under a prior."""
        request, size = self.request, self.request.size_guess
        plan = JointPlan.of(
            self.levels,
            epsilon=self._rest,
            priors=request.priors[0],  # any: those that follow are other ones
            adjacency=request.adjacency,  # type: ignore[arg-type]
            total=usual_total(len(self.levels)),
            size_guess=None if size is None else math.ceil(min(size, MOST_SIZE)),
        )
        return replace(plan, step=request.step)  # a step that the priors allow is not checked against what was drawn

    def knots(self, drawn: Mapping[str, Any], values: Array) -> tuple[Array, Array]:
        return drawn_knots(self.levels, drawn, values)

    def log_parts(self, column: Points, outcome: Outcome) -> LogParts:  # type: ignore[override]
        from pq.private.mechanisms.joint.density import joint_log_density

        places = tuple(map(float, dict(outcome.drawn).get("places", ())))
        far, rest = self.look.log_parts(column, places)
        if rest == -math.inf:
            return Fraction(0), -math.inf
        plan = self.joint_after(places)
        outputs = drawn_outputs(plan, self.request, outcome)
        if outputs is None:
            return Fraction(0), -math.inf
        total = None if outcome.total is None else grid_total(plan, outcome.total)
        return far, rest + joint_log_density(plan, column.values, column.before, outputs, total)


@dataclass(frozen=True)
class CountedLook(RefinedPartition):
    """Noisy counts of cells; its base measure is what they speak for."""

    priors: tuple[Prior, ...] = ()

    def base(self, places: Places) -> Prior:
        seen = self.seen(places)
        assert seen is not None
        return learned_base(self.priors, seen, self.first.noise.rate)


@dataclass(frozen=True)
class PlaceLook(PlacePartition):
    """A private median and width; its base measure is mostly Cauchy's law there."""

    def base(self, places: Places) -> Prior:
        place, width = places
        return Cauchy(place, width).mix(self.prior, KEPT)


def plan_look(request: Request, budget: Fraction) -> CountedLook | PlaceLook:
    """Counts of cells of equal mass under the priors, for a budget, or what finds a place if these know no scale."""
    if knows_scale(request.priors):
        around = PriorPartition(request.priors, request.distinct)
        return CountedLook(CellsPlan(budget, request.adjacency, around, CELLS, request.step), priors=request.priors)
    found = plan_cells(request, where="place").partition
    assert isinstance(found, PlacePartition)
    return PlaceLook(found.around, found.epsilon_place, found.epsilon_width, request.adjacency, request.step)


def learned_base(priors: Sequence[Prior], seen: CellsOutcome, rate: float) -> Mixture:
    """The base measure that noisy counts speak for: even in each cell, or few neighbours together, that stand out of
    the noise, and a share of the priors.

    Single cells see lumps, many together see tails. priors: (m,). rate: of the noise of the counts. Post-processing;
    right for no column in particular.

    >>> from pq.core.priors import Uniform
    >>> seen = CellsOutcome((), np.array([1.0, 2.0, 3.0]), np.array([0, 40, -2, 3]))
    >>> base = learned_base([Uniform(0, 4)], seen, rate=1.0)
    >>> base.log_mass([1.0, 2.0], [2.0, 3.0]).round(1)
    array([-0.7, -2.1])
    """
    distinct = differing(priors)
    low, high = joint_support(distinct)
    edges = np.array([low, *seen.edges.tolist(), high])
    running = np.append(0.0, np.cumsum(seen.counts.astype(np.float64)))
    parts: list[tuple[float, Prior]] = []
    for width in WIDTHS:
        at = np.append(np.arange(0, len(seen.counts), width), len(seen.counts))
        above = np.maximum(np.diff(running[at]) - CLEAR * np.sqrt(np.diff(at)) / rate, 0.0)
        wide = np.diff(edges[at])
        above[~(np.isfinite(wide) & (wide > 0.0))] = 0.0  # without an end, or beyond it: the priors have to serve these
        share = (1.0 - KEPT) * width**-0.5 / sum(one**-0.5 for one in WIDTHS) / max(float(np.sum(above)), 1e-300)
        stands = np.flatnonzero(above > 0.0)
        ends = (share * above[stands], edges[at[stands]], edges[at[stands + 1]])
        parts += [(weight, Uniform(one, other)) for weight, one, other in zip(*(e.tolist() for e in ends), strict=True)]
    left = 1.0 - math.fsum(weight for weight, _ in parts)
    parts += [(left * weight / len(distinct), part) for prior in distinct for weight, part in prior._components()]
    return Mixture(tuple(part for _, part in parts), tuple(weight for weight, _ in parts))
