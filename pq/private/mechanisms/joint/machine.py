"""`pq.private.mechanisms.joint.law` as machine code: the same law, cell for cell, and the same answers to uniforms.

Where a column is so light that floats below the least could be missed, where the bound on the rest decides, or where a
prior has no table of parts, the formulas do the work, from the same uniforms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import float64, int64

from pq.core.machine.keep import compiled, given, kept
from pq.core.scores import rest_of_product
from pq.private.columns.cells import Before, Steps
from pq.private.columns.door import Array
from pq.private.fast.laws import log_mass, mass
from pq.private.fast.weights import edge_in_range
from pq.private.mechanisms.joint import law as joint
from pq.private.mechanisms.joint import shells
from pq.private.mechanisms.joint.cells_machine import (
    BEYOND,
    FREE,
    KIND,
    MARGIN,
    RATE,
    RATIO,
    UNIT,
    gather_cells,
    stretch,
    weight_of,
)  # fmt: skip
from pq.private.mechanisms.joint.chain import Records
from pq.private.mechanisms.joint.chain_machine import (
    HEAD,
    choose_index,
    draw_backward,
    log_loss,
    new_chain,
    sum_forward,
)  # fmt: skip
from pq.private.mechanisms.joint.plan import JointPlan

DRAWN, BEST, RECORDS = 0, 1, 2  # how the total enters
PART, TOTAL, KEEP_BEST = joint.PART, joint.TOTAL, joint.KEEP_BEST
GAIN, FEW, ENOUGH = joint.GAIN, joint.FEW, joint.ENOUGH
LEAST_NATS = 600.0  # below the whole: what is lost there counts for nothing; nearer, the formulas do the work
LEAST_WHOLE = 1e-200  # of a mass: parts of less may have lost digits
LEAVE = -1  # to the formulas
MANY_TOTALS = joint.MANY_TOTALS
MOST_SHELLS = 1 << 12
TRIES = {"drawn": 1, "best": 32, "records": 1}  # for which uniforms are asked at a time
KINDS = {"drawn": DRAWN, "best": BEST, "records": RECORDS}
NO_RANKS, NO_PLACES = np.empty(0), np.empty(0, dtype=np.int64)


_rest_of_product = compiled(rest_of_product)


@compiled
def _score(deviations: Any, shares: Any, further: float) -> float:
    out = 0.0
    for j in range(deviations.size):
        out += abs(deviations[j] - further * shares[j])
    return out


@compiled
def _log_kept(plan: Any, rests: Any, below: Any, n: float) -> float:
    """Log probability that a draw from the latent law is one from that of the best total; see `score`."""
    shares, rate, unit = plan[1], plan[3][RATE], plan[3][UNIT]
    off, k = np.empty(shares.size), shares.size - 1
    nearest = np.rint(n / unit)
    excess = (n - nearest * unit) - _rest_of_product(nearest, unit, nearest * unit)
    for j in range(k + 1):
        count = (below[j] if j < k else n) - (below[j - 1] if j > 0 else 0.0)
        product = n * shares[j]
        off[j] = (count - product) - (_rest_of_product(n, shares[j], product) + n * rests[j])
    starts, firsts, used, best = np.full(k + 1, math.inf), np.full(k + 3, -nearest), 1, math.inf
    for j in range(k + 1):
        corner = off[j] / shares[j] if shares[j] > 0.0 else math.inf
        if abs(corner) < math.inf:
            best = min(best, _score(off, shares, corner))
            starts[j] = max(math.ceil((corner + excess) / unit), -nearest)
            firsts[used] = starts[j]
            used += 1
        elif shares[j] > 0.0 and corner < 0.0:
            starts[j] = -nearest
    firsts[:used].sort()
    whole = 0.0  # sum over the grid, in units of the best score
    for m in range(used):
        number = firsts[m + 1] - firsts[m] if m + 1 < used else math.inf
        if number == 0.0:
            continue
        slope = 0.0
        for j in range(k + 1):
            slope += shares[j] if starts[j] <= firsts[m] else -shares[j]
        largest = firsts[m] if slope >= 0.0 else firsts[m + 1] - 1.0
        most, fall = _score(off, shares, largest * unit - excess) - best, rate * unit * abs(slope)
        if fall * min(number, 1e300) < 1e-13:
            whole += number * math.exp(-rate * most)
        else:
            whole += math.exp(-rate * most) * math.expm1(-fall * number) / math.expm1(-fall)
    return -0.5 * rate * unit - math.log(whole)


@compiled
def _spans(levels: Any, n: float, one: float, other: float, reach: float) -> Any:
    """Smallest and largest ranks (k, 2) of the windows of all totals from one to the other."""
    out = np.empty((levels.size, 2))
    for j in range(levels.size):
        a, b = one * levels[j] + 0.5 * (n - one), other * levels[j] + 0.5 * (n - other)
        out[j, 0], out[j, 1] = min(a, b) - 0.5 * reach, max(a, b) + 0.5 * reach
    return out


@compiled
def _lowest(plan: Any, column: Any, n: float, reach: float) -> Any:
    """As `joint.lower_bound`, and the reach looked at; NaN where the numbers do not do."""
    levels, settings = plan[0], plan[3]
    middle = n if settings[KIND] == RECORDS else np.rint(n / settings[UNIT]) * settings[UNIT]
    narrower, reach = -math.inf, 0.25 * reach
    while settings[RATE] * reach < LEAST_NATS:
        cells = gather_cells(plan, column, _spans(levels, n, middle, middle, reach))
        chain = new_chain(levels, cells, np.array([middle]), n, reach)
        lowest = sum_forward(plan, cells, chain, middle, n, reach)
        if not log_loss(plan, cells, chain, middle, n, reach) < lowest + LEAST_NATS:
            return math.nan, reach
        if not lowest <= -settings[RATE] * reach * (ENOUGH if lowest < narrower + GAIN else FEW):
            return lowest, reach
        narrower, reach = lowest, 2.0 * reach
    return math.nan, reach


@compiled
def _totals(settings: Any, n: float, reach: float) -> Any:
    """Numbers of the first and the last total of the grid within a reach of n."""
    return max(math.ceil((n - reach) / settings[UNIT]), 0.0), math.floor((n + reach) / settings[UNIT])


@compiled
def _log_totals(settings: Any, n: float, reach: float) -> float:
    """See `shells.log_totals`."""
    rate, unit = settings[RATE], settings[UNIT]
    if settings[KIND] == RECORDS:
        return -rate * reach
    first, last = _totals(settings, n, reach)
    series = -1.0 / math.expm1(-rate * unit)
    out = max(last - first + 1.0, 0.0) + series * math.exp(-rate * ((last + 1.0) * unit - n - reach))
    if first > 0.0:
        out += series * math.exp(-rate * (n - (first - 1.0) * unit - reach))
    return math.log(out) - rate * reach


@compiled
def _log_mass(parts: Any, low: float, high: float) -> float:
    """Log mass of (low, high], NaN where the formulas do not do; of many parts the logarithm of a sum takes less than a
    sum of logarithms."""
    if not (edge_in_range(low) and edge_in_range(high)):
        return math.nan
    whole = mass(parts, low, high)
    return math.log(whole) if whole > LEAST_WHOLE else log_mass(parts, low, high)


@compiled
def _log_places(plan: Any, column: Any, n: float, reach: float) -> float:
    """Log bound on the mass of outputs that may score at most `reach`, times the density's bound; see `shells`."""
    levels, settings = plan[0], plan[3]
    x, ranks, at, _, parts = column
    k = levels.size
    out, low, high = 0.0, 0.0, 0.0
    for j in range(k):
        half = reach * max(levels[j], 1.0 - levels[j])
        first, last = stretch(x, ranks, at, n * levels[j] - half, n * levels[j] + half)
        if first >= last:
            return -math.inf
        one = x[first - 1] if first > 0 else -math.inf
        high = x[last - 1] if last <= x.size else math.inf
        low = one if j == 0 else low
        out += _log_mass(parts, one, high)
    return min(out, k * _log_mass(parts, low, high) - math.lgamma(k + 1.0)) + settings[FREE]


@compiled
def _reach(plan: Any, column: Any, n: float) -> Any:
    """The reach of the windows and the log of the bound on the rest, see `shells.shells_beyond`, and the largest reach
    looked at; NaN to leave it."""
    settings = plan[3]
    reach = (2.0 * plan[0].size + 22.0) / settings[RATE]
    lowest, farthest = _lowest(plan, column, n, reach)
    if math.isnan(lowest):
        return math.nan, math.nan, math.inf
    enough = lowest - settings[MARGIN]
    last_places = settings[FREE] - math.lgamma(plan[0].size + 1.0)
    sums, count = np.empty(MOST_SHELLS), 0
    outer = reach
    sums[0] = _log_totals(settings, n, outer)
    while sums[count] + last_places > enough - settings[BEYOND]:
        count += 1
        if count == MOST_SHELLS:
            return math.nan, math.nan, math.inf
        outer *= settings[RATIO]
        sums[count] = _log_totals(settings, n, outer)
    farthest = max(farthest, outer)
    rest = sums[count] + last_places
    while count > 0:  # inward, as the shells inside the reach need no bounds
        count -= 1
        bound = sums[count] + _log_places(plan, column, n, outer)
        top = max(rest, bound)
        more = top + math.log(math.exp(rest - top) + math.exp(bound - top))
        if not more <= enough:
            return (math.nan if math.isnan(more) else outer), rest, farthest
        rest = more
        outer = reach * settings[RATIO] ** count
    return reach, rest, farthest


@compiled
def _weigh(plan: Any, cells: Any, chain: Any, totals: Any, n: float, reach: float) -> Any:
    """Logs of what each total weighs, a bound on what was lost, and of which total the chain is left: that which a draw
    is most likely to need."""
    weights, loss = np.empty(totals.size), -math.inf
    order, usual = np.arange(totals.size), np.argmin(np.abs(totals - n))
    order[usual], order[-1] = order[-1], usual
    for i in order:
        weights[i] = sum_forward(plan, cells, chain, totals[i], n, reach)
        loss = max(loss, log_loss(plan, cells, chain, totals[i], n, reach))
    return weights, loss, usual


_READ, _TABLE = given(float64, 1), given(float64, 2)
_COLUMN = _READ, _READ, given(int64, 1), _READ
_SIGNATURE = int64(*_COLUMN, _READ, _READ, _READ, _TABLE, _READ, _TABLE, _TABLE, float64[::1])


@kept(_SIGNATURE)
def walk_joint(sources: int) -> Any:
    def run(
        x: Any, ranks: Any, at: Any, cuts: Any, levels: Any, shares: Any, rests: Any, tilts: Any, settings: Any,
        parts: Any, uniforms: Any, out: Any,
    ) -> int:  # fmt: skip
        """Put outputs, the total, the largest reach looked at, and the log of all that draws are proposed from (k + 3,)
        into `out`; the number of tries used, 0 if all failed, LEAVE. The last is NaN where it was not found.

        x: (d,) sorted places. ranks, at: weight of the records before each and of all, (d + 1,) and none; or of those
        beyond one each, (s + 1,), before and after the places at (s,), see `pq.private.columns.cells.Steps`; or none
        and none for 0..d. cuts, levels, shares, rests of shares, tilts: see `JointPlan`. settings: (7,). parts:
        (rows, 4), see `pq.private.fast.laws`. uniforms: (tries, HEAD + 3 k).
        """
        sources  # noqa: B018 (see pq.core.machine.keep)
        plan, column = (levels, shares, tilts, settings), (x, ranks, at, cuts, parts)
        n, k, unit = weight_of(x, ranks, at), levels.size, settings[UNIT]
        out[k + 2] = math.nan
        reach, log_rest, out[k + 1] = _reach(plan, column, n)
        if math.isnan(reach):
            return LEAVE
        totals = np.array([n])
        if settings[KIND] != RECORDS:
            numbers = _totals(settings, n, reach)
            if numbers[1] - numbers[0] >= MANY_TOTALS:
                return LEAVE
            totals = np.arange(numbers[0], numbers[1] + 1.0) * unit
        cells = gather_cells(plan, column, _spans(levels, n, totals[0], totals[-1], reach))
        chain = new_chain(levels, cells, totals, n, reach)
        running, loss, filled = _weigh(plan, cells, chain, totals, n, reach)
        top = np.max(running)
        if not math.isfinite(top) or not loss < top + LEAST_NATS:
            return LEAVE
        running = np.cumsum(np.exp(running - top))
        share = math.exp(log_rest - top) / running[-1]
        out[k + 2] = top + math.log(running[-1] * (1.0 + share))
        below = np.empty(k)
        for one in range(uniforms.shape[0]):
            u = uniforms[one]
            if u[PART] * (1.0 + share) < share:
                return LEAVE
            chosen = choose_index(running, u[TOTAL])
            total = totals[chosen]
            if chosen != filled:
                sum_forward(plan, cells, chain, total, n, reach)
                filled = chosen
            if not draw_backward(plan, column, cells, chain, total, n, reach, u, out[:k], below):
                return LEAVE
            if settings[KIND] != BEST or math.log(u[KEEP_BEST]) < _log_kept(plan, rests, below, n):
                out[k] = total
                return one + 1
        return 0

    return run


def draw_joint_fast(
    plan: JointPlan,
    values: Array,
    before: Before | None,
    uniforms: joint.Uniforms,
    looked: joint.Looked | None = None,
) -> tuple[Array, float | None]:
    """As `joint.draw_joint`, by machine code where that can be."""
    blocks: list[Array] = []
    width, k = HEAD + 3 * plan.size, plan.size
    if plan.tables is not None:
        out, tries = np.empty(k + 3), TRIES[plan.total]
        arguments = arguments_of(plan, Records.of(plan, values, before))
        used = 0
        while used == 0:
            blocks.append(uniforms(tries * width))
            used = walk_joint(*arguments, blocks[-1].reshape(tries, width), out)
        if used > 0:
            if looked is not None:
                looked(float(out[k + 1]))
            return joint.released(plan, out[:k], float(out[k]))
    return joint.draw_joint(plan, values, before, replayed(blocks, uniforms), looked)


def arguments_of(plan: JointPlan, records: Records) -> tuple[Any, ...]:
    """What `walk_joint` takes before uniforms, for a plan with tables."""
    free = plan.size * math.log(plan.distinct_priors)
    numbers = plan.rate, plan.total_unit, free, joint.MARGIN, shells.BEYOND, shells.RATIO, KINDS[plan.total]
    before, at = records.before, NO_PLACES
    if isinstance(before, Steps):
        before, at = (before.more.astype(np.float64), before.at) if len(before.at) else (None, NO_PLACES)
    ranks = NO_RANKS if before is None else before
    facts = plan.levels, plan.shares, plan.share_rests, plan.log_tilts, np.array(numbers), plan.tables
    return records.values, ranks, at, plan.cuts, *facts


def replayed(blocks: list[Array], uniforms: joint.Uniforms) -> joint.Uniforms:
    """Uniforms that were asked for before, then new ones."""
    old = np.concatenate(blocks) if blocks else NO_RANKS
    start = 0

    def give(count: int) -> Array:
        nonlocal start
        start += count
        return old[start - count : start] if start <= len(old) else uniforms(count)

    return give
