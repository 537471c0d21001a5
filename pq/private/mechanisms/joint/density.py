"""The exact law of a joint release, for evaluation and audit: it sees the data (Section 3.2).

The normaliser is a sum over all cells and, up to e^-DIGITS of it, over all totals; nothing of the sampler's windows
enters. The best total has no chain, so its normaliser is a sum over all ways to place outputs in cells: for columns or
numbers of quantiles that are small.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from pq.core.grid import LATTICE_END, OFF_GRID, from_units, rounded_units
from pq.core.scores import log_sum
from pq.private.columns.cells import Before
from pq.private.columns.door import Array
from pq.private.mechanisms.joint.chain import EVERYWHERE, Bools, ChainCells, Records, forward, gather
from pq.private.mechanisms.joint.plan import JointPlan
from pq.private.mechanisms.joint.score import best_score, log_score_sum, score_at
from pq.private.mechanisms.joint.windows import counts_between, nearest_total

DIGITS = 40.0  # nats to which sums over totals are exact
BLOCK = 1 << 15  # ways to place outputs that are weighed at a time


def joint_log_density(
    plan: JointPlan, values: Array, before: Before | None, outputs: Array, total: float | None = None
) -> float:
    """Exact log density of outputs, and of a total if one is given; on a grid log probability.

    values, before: as for `draw_joint`. outputs: (k,) in the order of the quantiles. total: of a plan that draws one;
    None for the law of the outputs alone. Returns nats, -inf for what cannot come out.

    >>> from pq.core.priors import Uniform
    >>> plan = JointPlan.of([0.5], epsilon=1, priors=Uniform(0, 4), total="best")
    >>> round(joint_log_density(plan, np.array([1.0, 2.0, 3.0]), None, np.array([2.5])), 6)
    -1.006409
    """
    with np.errstate(all="ignore"):
        records = Records.of(plan, np.asarray(values, dtype=np.float64), before)
        weight = log_weight_of(plan, records, np.asarray(outputs, dtype=np.float64), total)
        return weight - log_normaliser(plan, records) if weight > -math.inf else weight


def log_weight_of(plan: JointPlan, records: Records, outputs: Array, total: float | None) -> float:
    """Log weight of outputs, on a grid of all that are rounded to them, not normalised; -inf for what cannot come
    out."""
    if np.any(np.diff(outputs) < 0.0) or not _is_total(plan, total):
        return -math.inf
    if plan.step is None:
        return _log_weight(plan, records, outputs, total)
    units = rounded_units(outputs, plan.step)
    if np.any(np.abs(from_units(units, plan.step) - outputs) > OFF_GRID * float(plan.step)):
        return -math.inf
    return _log_grid_weight(plan, records, units, total)


def _is_total(plan: JointPlan, total: float | None) -> bool:
    if total is None:
        return True
    number = total / plan.total_unit
    return plan.total == "drawn" and total >= 0.0 and abs(number - round(number)) <= OFF_GRID


def _log_weight(plan: JointPlan, records: Records, outputs: Array, total: float | None) -> float:
    """Log weight of outputs, not normalised."""
    bins = np.searchsorted(plan.cuts, outputs, side="left")
    base = float(np.sum(plan.base.log_density(outputs) + plan.log_tilts[np.arange(plan.size), bins]))
    counts = counts_between(records, outputs)
    if plan.total == "best":
        return base - plan.rate * float(best_score(plan, counts))
    if total is None and plan.total == "drawn":
        return base + log_score_sum(plan, counts)
    return base - plan.rate * float(score_at(plan, counts, records.n if total is None else total))


def _log_grid_weight(plan: JointPlan, records: Records, units: Array, total: float | None) -> float:
    """Log weight of all outputs that are rounded to multiples of the step, not normalised."""
    assert plan.step is not None
    lower = np.where(units > -LATTICE_END, from_units(units - 0.5, plan.step), -np.inf)
    upper = np.where(units < LATTICE_END, from_units(units + 0.5, plan.step), np.inf)
    marks = np.concatenate([lower, upper])
    cells = gather(plan, records, [EVERYWHERE], marks[np.isfinite(marks)])
    allowed = (cells.lower >= lower[:, None]) & (cells.upper <= upper[:, None])
    return _log_sum_of(plan, records, cells, allowed, total)


def log_normaliser(plan: JointPlan, records: Records) -> float:
    """Log of the weight of all outputs, summed over totals."""
    cells = gather(plan, records, [EVERYWHERE])
    return _log_sum_of(plan, records, cells, np.ones((plan.size, len(cells.rank)), dtype=bool), None)


def _log_sum_of(plan: JointPlan, records: Records, cells: ChainCells, allowed: Bools, total: float | None) -> float:
    n = records.n
    if plan.total == "best":
        return _log_best_sum(plan, cells, n, allowed)

    def at(value: float) -> float:
        return forward(plan, cells, value, n, allowed).log_weight

    if total is not None or plan.total == "records":
        return at(n if total is None else total)
    return log_sum_over_totals(plan, n, at)


def log_sum_over_totals(plan: JointPlan, n: float, log_weight: Callable[[float], float]) -> float:
    """Sum over the grid from the total nearest to n outwards, until what is left cannot matter."""
    middle, unit = nearest_total(plan, n), plan.total_unit
    if not math.isfinite(log_weight(middle)):
        return -math.inf  # a weight of zero, whatever the total
    log_series = plan.log_most - math.log(-math.expm1(-plan.rate * unit)) + math.log(2.0)
    terms = [log_weight(middle)]
    for step in itertools.count(1):
        if log_series - plan.rate * (step * unit - abs(n - middle)) < log_sum(np.array(terms)) - DIGITS:
            return log_sum(np.array(terms))
        terms += [log_weight(total) for total in (middle - step * unit, middle + step * unit) if total >= 0.0]
    raise AssertionError


def _log_best_sum(plan: JointPlan, cells: ChainCells, n: float, allowed: Bools) -> float:
    """Sum over all ways to place outputs in cells."""
    used = np.flatnonzero(allowed.any(axis=0))
    terms = [-math.inf]
    for ways in _blocks(len(used), plan.size):
        at = used[ways]
        at = at[np.all([allowed[j, at[:, j]] for j in range(plan.size)], axis=0)]
        if len(at):
            terms.append(log_sum(_log_weights_of_ways(plan, cells, n, at)))
    return log_sum(np.array(terms))


def _log_weights_of_ways(plan: JointPlan, cells: ChainCells, n: float, at: npt.NDArray[np.int64]) -> Array:
    """Log weights (w,) of ways (w, k) to place outputs in cells."""
    counts = np.diff(cells.rank[at], axis=1, prepend=0.0, append=n)
    out = -plan.rate * best_score(plan, counts)
    run = np.zeros(len(at))
    for j in range(plan.size):
        run = np.where(at[:, j] == at[:, j - 1], run + 1.0, 1.0) if j else run + 1.0
        out += cells.log_mass[at[:, j]] + cells.log_tilt[j, at[:, j]] - np.log(run)  # g! for a group of g
    return out


def _blocks(count: int, size: int) -> Iterator[npt.NDArray[np.int64]]:
    """All increasing ways to choose `size` of `count` cells, with repeats, as arrays (w, size)."""
    ways = itertools.combinations_with_replacement(range(count), size)
    while block := list(itertools.islice(ways, BLOCK)):
        yield np.array(block, dtype=np.int64)


def log_box_parts(plan: JointPlan, values: Array, before: Before | None) -> tuple[float, float]:
    """Logs of the base mass of outputs whose ranks are `floor(q n)`, and of all outputs in order."""
    every = np.ones((plan.size, 1), dtype=bool)
    records, nothing = Records.of(plan, np.asarray(values, dtype=np.float64), before), Records(np.empty(0), None)
    targets = np.array([q.numerator * int(records.n) // q.denominator for q in plan.quantiles], dtype=np.float64)
    cells = gather(plan, records, [EVERYWHERE])
    counts = np.diff(targets, prepend=0.0, append=records.n)
    score = plan.rate * float(score_at(plan, counts, records.n))
    box = forward(plan, cells, records.n, records.n, cells.rank == targets[:, None]).log_weight + score
    whole = gather(plan, nothing, [EVERYWHERE])
    return box, forward(plan, whole, 0.0, 0.0, np.repeat(every, len(whole.rank), axis=1)).log_weight
