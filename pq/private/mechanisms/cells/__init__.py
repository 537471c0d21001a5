"""Checks the public facts of a private distribution function and fits its cells and budgets to them (Section 3.1).

The constants are fitted to simulations of public laws; nothing here looks at records, and no privacy depends on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np

from pq.core.choices import check_choice
from pq.core.curves import joint_support
from pq.core.decode import DecodedDistribution
from pq.core.exact import whole_number
from pq.core.expected import usual_budget, usual_size
from pq.core.grid import last_rounded
from pq.core.noise import IntArray
from pq.core.priors.log_uniform import knows_scale
from pq.core.request import Request
from pq.core.scores import Array
from pq.private.columns.cells import Lattice, Points
from pq.private.columns.part import Near
from pq.private.mechanisms.cells.law import (
    FEWEST,
    MOST,
    CellsOutcome,
    CellsPlan,
    cell_intervals,
    cell_values,
    decoded,
    draw_cells,
    log_cells_parts,
    on_grid,
)
from pq.private.mechanisms.cells.partitions import (
    SHARES,
    SMOOTH_SHARES,
    CutPartition,
    Cutter,
    Partition,
    PlacePartition,
    PriorPartition,
)
from pq.private.mechanisms.cells.refined import RefinedPartition
from pq.private.mechanisms.joint.cutter import joint_cutter
from pq.private.mechanisms.protocol import LogParts, Mechanism, Outcome
from pq.private.randomness import Source

Where = Literal["prior", "place", "cuts", "refined"]
CutterMaker = Callable[[tuple[Fraction, ...], Fraction, str], Cutter]  # of quantiles, a budget and an adjacency

SMALL_SIGNAL, FOUND_SIGNAL = 300.0, 60.0  # below, cells along the priors: for smooth columns, and for all
LARGEST_BUDGET = 10**6  # more needs no other cells
NATS = math.log(1000.0) + 8.0  # to find records that fill a thousandth of what the priors allow
PLACE_NATS, WIDTH_NATS = 2.0 * (NATS + 5.0), 40.0  # for a median, which nothing else makes up for, and a width
SCALE_NATS = 20.0  # more for a median's place at any scale
MOST_PLACE, MOST_WIDTH, MOST_FIRST = 0.3, 0.2, 0.2  # shares of the budget
LEAST_SHARE, MOST_SHARE = 0.1, 0.4  # the same for cuts
SHARE_STEP = 1000  # budgets of looks are whole thousandths
LEAST_BUDGET = Fraction(1, 2**32)  # below, no noise of counts is drawn
FEWEST_CUTS, MOST_CUTS = 2, {"cuts": 5, "refined": 3}
FIRST_CELLS, FIRST_NATS = 20, 80.0  # of the first, coarse distribution function
# Cells for each unit of the signal, which is epsilon times the root of the number of records.
CELLS_PER_SIGNAL = {"prior": 2.0, "place": 1.25, "cuts": 1.25, "refined": 1.25}
FEWEST_USUAL, MOST_USUAL = 16, 128  # cells
MANY_IN_CELL = 64.0  # records, times the budget, from which on there may be as many cells as values

LOOKS: dict[type, tuple[str, ...]] = {  # in words
    PlacePartition: ("a median", "a width"),
    CutPartition: ("cuts",),
}


class Reader(Protocol):
    """What makes a distribution function of edges (c - 1,) and noisy counts (c,), from released values alone."""

    def read(self, edges: Array, counts: IntArray) -> DecodedDistribution: ...


class Cells(Mechanism, name="cells"):
    """Quantiles of a private distribution function; why it is private: `pq.private.mechanisms.cells.law`.

    where, cutter, number: as for `plan_cells`; None for what public facts say, cuts from joint releases, a fit.
    reader: takes the place of `pq.core.decode`; the outcome then holds the law that it made, which values follow from.
    """

    least_budget = LEAST_BUDGET

    def __init__(
        self,
        request: Request,
        where: Where | None = None,
        cutter: CutterMaker | None = None,
        number: int | None = None,
        reader: Reader | None = None,
    ) -> None:
        super().__init__(request)
        self.reader = reader
        if request.budget < LEAST_BUDGET:
            raise ValueError(f"epsilon must be at least {float(LEAST_BUDGET):.0e} for each record of cells")
        self.plan = plan_cells(
            request,
            where=usual_where(request) if where is None else where,
            cutter=joint_cutter(request) if cutter is None else cutter,
            number=number,
        )

    def column(self, values: Array, before: Any) -> Points:
        """The records themselves, which a look or a count rounds to a grid by where it asks, see `Points.up_to`."""
        return Points(values, before)

    @property
    def steps(self) -> tuple[tuple[str, Fraction | float], ...]:
        *looks, counts = self.plan.budgets
        names = LOOKS.get(type(self.plan.partition), tuple(f"look {i + 1}" for i in range(len(looks))))
        return (*zip(names, looks, strict=True), ("counts of cells", counts))

    @property
    def rho(self) -> Fraction | float:
        return self.plan.rho * self.request.max_contributions**2

    @property
    def near(self) -> Near | None:
        partition, step = self.plan.partition, self.plan.step
        if isinstance(partition, PriorPartition):
            edges = self.plan.edges(())
            return Near(np.array([0.5]), 1.0, edges if step is None else last_rounded(edges, step))
        if isinstance(partition, PlacePartition) and step is None:  # a median on a grid asks for all records
            return Near(np.array([0.5]), partition.near)
        return None

    def draw(self, column: Points | Lattice, source: Source) -> Outcome:
        assert isinstance(column, Points)
        outcome = draw_cells(self.plan, column, source.bytes)
        reader = self.reader
        law = decoded(self.plan, outcome) if reader is None else reader.read(outcome.edges, outcome.counts)
        values = on_grid(self.plan, law.quantile(self.request.levels))
        total = None if self.request.adjacency == "replace" else round(law.total)
        drawn: list[tuple[str, Any]] = [
            ("places", list(outcome.places)),
            ("edges", outcome.edges.tolist()),
            ("counts", outcome.counts.tolist()),
        ]
        if reader is not None:
            drawn += [("law_edges", law.edges.tolist()), ("law_records", law.records.tolist())]
        return Outcome(values, total, tuple(drawn))

    def log_parts(self, column: Points | Lattice, outcome: Outcome) -> LogParts:
        """Of what was drawn: values, total and law follow from it."""
        assert isinstance(column, Points)
        return log_cells_parts(self.plan, column, outcome_drawn(outcome.drawn))

    def quantile(self, drawn: Mapping[str, Any], quantiles: Any) -> Array:
        """Values (m,) at any quantiles (m,) in [0, 1], from what a release keeps as `outcome`: they cost nothing."""
        outcome = outcome_drawn(drawn.items())
        plan = self._drawn_by(outcome)
        if "law_edges" not in drawn:
            return cell_values(plan, outcome, quantiles)
        edges, records = (np.asarray(drawn[f"law_{name}"], dtype=np.float64) for name in ("edges", "records"))
        law = DecodedDistribution(edges, records, (-math.inf, math.inf))
        return on_grid(plan, law.quantile(np.asarray(quantiles, dtype=np.float64)))

    def interval(self, drawn: Mapping[str, Any], quantiles: Any, level: float, population: bool = False) -> Array:
        """Intervals (m, 2) that hold all quantiles (m,) at once with probability at least `level`, whatever the data;
        see `pq.core.rank_bounds.quantile_intervals`."""
        outcome = outcome_drawn(drawn.items())
        return cell_intervals(self._drawn_by(outcome), outcome, quantiles, level, population)

    def _drawn_by(self, outcome: CellsOutcome) -> CellsPlan:
        """The plan that an outcome is of: one without places had its cells along the priors, as those of a sequence
        have, where another place would be usual."""
        if outcome.places or isinstance(self.plan.partition, PriorPartition):
            return self.plan
        return plan_cells(self.request, where="prior")


def outcome_drawn(drawn: Iterable[tuple[str, Any]]) -> CellsOutcome:
    """What a release keeps as `outcome`, as arrays. Raises `ValueError` naming outcome."""
    facts = dict(drawn)
    try:
        places, edges = tuple(map(float, facts["places"])), np.asarray(facts["edges"], dtype=np.float64)
        return CellsOutcome(places, edges, np.asarray(facts["counts"], dtype=np.int64))
    except (KeyError, TypeError, ValueError):
        raise ValueError("outcome must hold places, edges and counts of cells") from None


def usual_where(request: Request) -> Where:
    """Where cells lie if nobody says: around a private place, for a wrong prior then does little harm.

    Along the priors where a place would not be found, or would be but for a budget that a smooth column needs for its
    counts; who asks for cells then trusts the priors. On a grid as well, for a place says little of few values.

    >>> from pq.core.priors import Uniform
    >>> usual_where(Request.of([0.5], epsilon=1, priors=Uniform(-10, 10)))
    'place'
    """
    signal = usual_budget(request.budget, request.adjacency) * usual_size(request.size_guess)
    small = SMALL_SIGNAL if request.assume_smooth else FOUND_SIGNAL
    return "prior" if request.step is not None or math.isinf(request.budget) or signal < small else "place"


def plan_cells(
    request: Request, *, where: Where = "place", cutter: CutterMaker | None = None, number: int | None = None
) -> CellsPlan:
    """The plan of a private distribution function from public facts.

    where: the cells lie, "prior" (equal mass under the priors), "place" (around a private median), "cuts" (along a
    curve through a few private cuts, which `cutter` makes for the quantiles and the budget it is given) or "refined"
    (along a first, coarse distribution function on cells along cuts, or around a place without a cutter: for several
    modes).
    number: of cells, or None to fit it, or for one for each value on a grid, see `own_cells`. Raises `ValueError` or
    `TypeError` naming what is wrong.

    >>> from pq.core.priors import Uniform
    >>> plan = plan_cells(Request.of([0.5], epsilon=1, priors=Uniform(-10, 10), size_guess=1000))
    >>> plan.cells, [str(budget) for budget in plan.budgets]
    (40, ['1/25', '1/25', '23/25'])
    """
    check_choice(where, Where, "where")
    budget, adjacency = request.budget, request.adjacency
    size = usual_size(request.size_guess)
    signal = usual_budget(min(budget, LARGEST_BUDGET), adjacency) * size
    count = _number(where, signal / math.sqrt(size)) if number is None else whole_number(number, "number", least=FEWEST)
    if number is None and where == "prior" and not request.assume_smooth and own_cells(request):
        count = MOST  # those that coincide on the grid are one
    around = PriorPartition(request.priors, request.distinct)
    partition: Partition = around
    if where != "prior":
        if not isinstance(budget, Fraction):
            raise ValueError(f"epsilon must be finite for where={where!r}, got {budget}")
        partition = _looking(around, where, cutter, budget, adjacency, signal, request)
    return CellsPlan(budget, adjacency, partition, count, request.step, request.assume_smooth)


def own_cells(request: Request) -> int | None:
    """The number of cells along the priors if each value on the grid has one of its own, but for values whose cell
    would have less than about a thousandth of the priors' mass; None if these are too many for what they hold, or
    there is no grid.

    Then no value is mistaken for another, whatever the shape of a column and however many records share one.

    >>> from pq.core.priors import Uniform
    >>> own_cells(Request.of([0.5], epsilon=1, priors=Uniform(10, 120), grid=1))
    111
    """
    if request.step is None:
        return None
    partition = PriorPartition(request.priors, request.distinct)
    cells = len(CellsPlan(Fraction(1), request.adjacency, partition, MOST, request.step).edges(())) + 1
    held = usual_budget(request.budget, request.adjacency) * usual_size(request.size_guess) / cells
    return cells if cells <= MOST_USUAL or (cells < MOST and held >= MANY_IN_CELL) else None


def _looking(
    around: PriorPartition,
    where: str,
    cutter: CutterMaker | None,
    budget: Fraction,
    adjacency: str,
    signal: float,
    request: Request,
) -> Partition:
    """A partition that spends a part of the budget on a look at the column."""
    if where == "cuts" and cutter is None:
        raise ValueError("cutter must be given for where='cuts'")
    if where == "place" or cutter is None:
        nats = PLACE_NATS + (0.0 if knows_scale(around.priors) else SCALE_NATS)
        place, width = _share(nats / signal, MOST_PLACE), _share(WIDTH_NATS / signal, MOST_WIDTH)
        shares = SMOOTH_SHARES if request.assume_smooth else SHARES
        found: Partition = PlacePartition(around, budget * place, budget * width, adjacency, request.step, shares)
    else:
        numbers = range(FEWEST_CUTS, MOST_CUTS[where] + 1)
        count = max((k for k in numbers if _needed(k, signal) <= MOST_SHARE), default=FEWEST_CUTS)
        levels = tuple(Fraction(i, count + 1) for i in range(1, count + 1))
        spent = budget * _share(max(_needed(count, signal), LEAST_SHARE), MOST_SHARE)
        found = CutPartition(cutter(levels, spent, adjacency), joint_support(around.priors))
    if where != "refined":
        return found
    first = sum(found.budgets, Fraction(0)) + budget * _share(FIRST_NATS / signal, MOST_FIRST)
    return RefinedPartition(CellsPlan(first, adjacency, found, FIRST_CELLS, request.step))


def _needed(count: int, signal: float) -> float:
    """The share of the budget with which so many cuts are found."""
    return 2.0 * (count + 1) * NATS / signal


def _share(share: float, most: float) -> Fraction:
    """A share in whole thousandths, a hundredth at least: a look that spends less has to weigh many records."""
    return Fraction(max(SHARE_STEP // 100, round(min(share, most) * SHARE_STEP)), SHARE_STEP)


def _number(where: str, signal: float) -> int:
    """Cells for epsilon times the root of the number of records: fewer are coarse, more are noisy."""
    return int(min(max(round(CELLS_PER_SIGNAL[where] * signal), FEWEST_USUAL), MOST_USUAL))
