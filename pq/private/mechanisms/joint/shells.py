"""What a joint release does not weigh: bounds on it, and exact draws from it (Section 3.2).

The *rest* is all that scores more than a reach. It is cut into shells R_i < S <= R_(i+1), the last one without end. In
a shell every output lies in its wide window (`pq.private.mechanisms.joint.windows`), and an output's base density is at
most D times the common base mu, D the number of distinct priors. So a shell weighs at most

    sum over totals nu of exp(-rate max(R_i, |n - nu|))  times  D^k times the lesser of
    prod_j mu(window j of R_(i+1))  and  mu(hull of these windows)^k / k!,

a geometric series times masses of few intervals; the second form uses that outputs are in order. To draw from the rest,
draw a shell, a total and places from this bound, independent ones or sorted ones, and keep them with the probability
that turns one density into the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pq.core.scores import log_sum
from pq.private.columns.door import Array
from pq.private.mechanisms.joint.chain import EVERYWHERE, Bools, Records, Span, choose
from pq.private.mechanisms.joint.plan import JointPlan
from pq.private.mechanisms.joint.score import score_at
from pq.private.mechanisms.joint.windows import WeighedWays, counts_between, is_weighed, totals_within, wide_windows

RATIO = 1.0625  # of the reaches of neighbouring shells
BEYOND = 20.0  # nats below the margin: where the last shell may begin
FIRST_NATS, COARSE, MOST_NATS = 4.0, 1.5, 800.0  # of the shells that hold all: the first end, their ratio, the last


@dataclass(frozen=True)
class Shells:
    """The rest beyond `reaches[0]`; if that is zero, all outputs.

    reaches: (s,) in records of score, increasing. log_bounds: (s,) log weight of each shell at most. is_sorted: (s,)
    whether its places are bounded by those of sorted draws.
    """

    reaches: Array
    log_bounds: Array
    is_sorted: Bools


def shells_beyond(plan: JointPlan, records: Records, start: float, log_enough: float) -> Shells:
    """The shells from the least reach, at least `start`, whose rest weighs at most exp(log_enough)."""
    reaches = [start]
    while log_totals(plan, records.n, reaches[-1]) + plan.log_most > log_enough - BEYOND:
        reaches.append(reaches[-1] * RATIO)
    every = _shells_between(plan, records, reaches)
    first = int(np.argmax(np.logaddexp.accumulate(every.log_bounds[::-1])[::-1] <= log_enough))
    return Shells(every.reaches[first:], every.log_bounds[first:], every.is_sorted[first:])


def shells_of_all(plan: JointPlan, records: Records) -> Shells:
    """Few shells that hold all outputs: a quick bound on the whole, and a slow way to draw from it."""
    reaches = [0.0, FIRST_NATS / plan.rate]
    while plan.rate * reaches[-1] < MOST_NATS:
        reaches.append(reaches[-1] * COARSE)
    return _shells_between(plan, records, reaches)


def _shells_between(plan: JointPlan, records: Records, reaches: list[float]) -> Shells:
    """The shells between reaches, and the one beyond the last."""
    ordered = -math.lgamma(plan.size + 1)
    ends_of = np.array([outer_ends(plan, records, reach) for reach in [*reaches[1:], math.inf]])
    low, high = ends_of[:, 0], ends_of[:, 1]
    log_masses = plan.base.log_mass(np.hstack([low, low[:, :1]]), np.hstack([high, high[:, -1:]]))
    apart, together = np.sum(log_masses[:, :-1], axis=1), plan.size * log_masses[:, -1] + ordered
    log_sums = np.array([log_totals(plan, records.n, reach) for reach in reaches])
    bounds = log_sums + np.minimum(apart, together) + plan.size * math.log(plan.distinct_priors)
    return Shells(np.array(reaches), bounds, together <= apart)


def outer_ends(plan: JointPlan, records: Records, reach: float) -> tuple[Array, Array]:
    """Lower and upper ends (k,) of the cells in the wide windows of a reach, which may be infinite."""
    spans = wide_windows(plan, records.n, reach) if reach < math.inf else [EVERYWHERE] * plan.size
    low, high = np.transpose([ends(records, span) for span in spans])
    return low, high


def ends(records: Records, span: Span) -> tuple[float, float]:
    """The outermost ends of the cells whose ranks lie in a span."""
    first, last = records.cells_of(span)
    if first >= last:  # none
        return 0.0, 0.0
    low = float(records.values[first - 1]) if first > 0 else -math.inf
    return low, float(records.values[last - 1]) if last <= len(records.values) else math.inf


def log_totals(plan: JointPlan, n: float, reach: float) -> float:
    """log of the sum of exp(-rate max(reach, |n - nu|)) over the grid of totals."""
    return log_sum(_log_totals_by_kind(plan, n, reach))


def _log_totals_by_kind(plan: JointPlan, n: float, reach: float) -> Array:
    """The same (3,) for totals within the reach, above, and below."""
    totals = totals_within(plan, n, reach)
    unit = plan.total_unit
    out = np.array([math.log(totals.size) - plan.rate * reach if totals.size else -math.inf, -math.inf, -math.inf])
    if plan.total != "records":
        above, below = first_beside(plan, n, reach)
        log_series = -math.log(-math.expm1(-plan.rate * unit))
        out[1] = log_series - plan.rate * (above - n)
        out[2] = log_series - plan.rate * (n - below) if below >= 0.0 else -math.inf
    return out


def first_beside(plan: JointPlan, n: float, reach: float) -> tuple[float, float]:
    """The first totals of the grid above and below those within a reach of n."""
    unit = plan.total_unit
    return (math.floor((n + reach) / unit) + 1.0) * unit, (math.ceil((n - reach) / unit) - 1.0) * unit


def draw_from_rest(
    plan: JointPlan, records: Records, shells: Shells, i: int, ways: WeighedWays, uniforms: Array, own: Array
) -> tuple[Array, float] | None:
    """Outputs and a total from shell i, or None to begin anew.

    ways: those that are weighed for near totals. uniforms: (2,) for the total, and whether the draw is
    kept. own: (k,) for the places.
    """
    inner, outer = float(shells.reaches[i]), float(np.append(shells.reaches, math.inf)[i + 1])
    total = _total(plan, records.n, inner, uniforms[0])
    low, high = outer_ends(plan, records, outer)
    if shells.is_sorted[i]:
        outputs = np.sort(plan.base.quantile_between(low[0], high[-1], own))
    else:
        outputs = plan.base.quantile_between(low, high, own)
    is_possible = total >= 0.0 and np.all(np.diff(outputs) >= 0.0)
    is_near = abs(records.n - total) <= shells.reaches[0]
    if not is_possible or (is_near and is_weighed(plan, records, outputs, total, ways)):
        return None
    tilts = plan.log_tilts[np.arange(plan.size), np.searchsorted(plan.cuts, outputs, side="left")]
    mine = float(score_at(plan, counts_between(records, outputs), total))
    excess = plan.rate * (mine - max(inner, abs(records.n - total)))
    log_kept = float(np.sum(tilts)) - plan.size * math.log(plan.distinct_priors) - excess
    is_inside = (inner < mine or inner == 0.0) and mine <= outer
    return (outputs, total) if is_inside and math.log(uniforms[1]) < log_kept else None


def _total(plan: JointPlan, n: float, reach: float, uniform: float) -> float:
    """A total in proportion to exp(-rate max(reach, |n - nu|)); one below zero stands for none."""
    kinds = _log_totals_by_kind(plan, n, reach)
    sums = np.cumsum(np.exp(kinds - np.max(kinds)))
    starts = np.concatenate([[0.0], sums / sums[-1]])
    kind = choose(kinds, uniform)
    left = (uniform - starts[kind]) / (starts[kind + 1] - starts[kind])
    if kind == 0:
        totals = totals_within(plan, n, reach)
        return totals.at(min(int(left * totals.size), totals.size - 1))
    steps = math.floor(math.log1p(-min(left, 1.0 - 2.0**-53)) / (-plan.rate * plan.total_unit))
    above, below = first_beside(plan, n, reach)
    return above + steps * plan.total_unit if kind == 1 else below - steps * plan.total_unit
