"""All quantiles at once by one exponential mechanism whose total is latent (Section 3.2, beyond the paper).

Outputs o_1 <= ... <= o_k leave n_j records between o_(j-1) and o_j, j = 1 ... k + 1; p_j = q_j - q_(j-1) is the share that
should lie there, h the density of ordered draws from the priors, and the score of outputs and a total nu

    S(o, nu) = sum_j |n_j(o) - nu p_j|.

- "drawn": outputs and total have the joint density proportional to exp(-rate S(o, nu)) h(o), for nu = 0, s, 2s, ...
- "best": outputs have the density proportional to exp(-rate min_nu S(o, nu)) h(o), over all real nu. For one quantile
  min_nu S = |n_1 - q n| / max(q, 1 - q): the single mechanism with sharp calibration.
- "records": the total is n itself, under "replace" only.

*Sensitivity.* Fix o and nu. One record more or less changes one count n_j by one and nothing else: nu is an output or a
variable of summation, not a function of the data, so the targets nu p_j do not move, and S moves by at most one. That is
why nu is free. (Targets n p_j all move with the data and cost 2 (1 - min_j p_j).) A minimum over nu of functions that
move by at most one moves by at most one. Replacing a record is one less and one more: at most two. With targets n p_j, one
record less moves S by at most (1 - p_j) + sum_(i != j) p_i = 2 (1 - p_j) <= 2, and a replacement by at most 2, so "records"
costs two under "replace" even where a number may be replaced by a missing one, which is dropped. Hence
`rate = epsilon / (2 D)` with D = 1 (add-remove) or 2 (replace), rounded down.

*Privacy.* log density = -rate S - log Z + what is public. Between neighbours the first term moves within
[-epsilon/2, epsilon/2], so log Z moves within it too: pure epsilon-differential privacy. For fixed neighbours log Z is one
number, so all losses lie in an interval of width epsilon (bounded range epsilon), hence epsilon^2/8-zCDP. Dropping the
total, rounding to a grid and interpolating are post-processing. On a grid a record is a unit of mass that a public kernel
spreads; all its parts together move sum_j |n_j| by at most one.

*The grid of totals* is infinite and public. sum_j |n_j - nu p_j| >= |n - nu|, so the weights of far totals are bounded by
a geometric series, and a flat weight on the grid gives a proper law.

*Time.* If output j has c records below, S >= |c - nu q_j| + |(n - c) - nu (1 - q_j)|, which is at most a reach R exactly if
c is within R/2 of nu q_j + (n - nu)/2 (and |n - nu| <= R). So the ways to place outputs that leave these windows weigh
together at most `exp(-rate R)` times the mass of h, for each total: the *rest*, bounded and not weighed. It is drawn from
all the same: a proposal comes from the weighed part or, in proportion to its bound, from the bound itself, and the latter
is kept with the probability that makes the law exact, or all begins anew. The reach is chosen so that the bound is below
e^-MARGIN of the whole, so that this costs nothing; the law is exact for every reach. "best" keeps a draw of (o, nu) from the
latent law on a grid of step s with probability exp(-rate min S) / (exp(rate s/2) sum_grid exp(-rate S)), which is at most one
as S moves by at most one per unit of nu. How long either takes depends on the data; there is no cap on repeats, which would
be a failure of privacy.

The law of one uniform after the other is that of real numbers; floats round weights below e^-37 of the largest away.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pq.cells import from_units, to_units
from pq.column import LARGEST, Array
from pq.exponential import log_sum
from pq.private.mechanisms.chain import Cells, Chain, Records, Span, backward, choose, forward, gather, prior_chain
from pq.private.mechanisms.joint_plan import JointPlan
from pq.private.mechanisms.score import best_score, log_score_sum, score

Before = npt.NDArray[np.int64]
Uniforms = Callable[[int], Array]

MARGIN = 42.0  # nats of the whole that the rest may weigh less; e^-42 is below the resolution of a uniform draw
PART, TOTAL, KEEP_REST, KEEP_BEST = range(4)  # what the first uniforms of a try decide
HEAD = 4  # how many they are; three for each output follow


@dataclass(frozen=True)
class Part:
    """What is weighed of a law, and bounds on the rest.

    reach: in records of score. totals: (t,) that are weighed. log_weights: (t,) log weights of their ways inside the
    reach. cells: all that these ways use. log_beside: (3,) log bounds on what the weighed totals leave out, on all totals
    above, and on all below.
    """

    reach: float
    totals: Array
    log_weights: Array
    cells: Cells
    log_beside: Array


def draw_joint(plan: JointPlan, values: Array, before: Before | None, uniforms: Uniforms) -> tuple[Array, float | None]:
    """Outputs (k,), and the total where it is released, drawn from the exact law.

    values: (d,) sorted, finite, ties allowed. before: (d + 1,) records before each value and of all, None if each is one.
    uniforms: gives as many independent numbers in (0, 1), both excluded, as it is asked for. Guarantees epsilon-
    differential privacy of all that it returns, under the plan's adjacency.
    """
    with np.errstate(all="ignore"):
        records = Records.of(plan, values, before)
        part = weigh(plan, records)
        while True:
            one = uniforms(HEAD + 3 * plan.size)
            outcome = propose(plan, records, part, one)
            if outcome is not None and is_kept(plan, records, outcome[0], one[KEEP_BEST]):
                return rounded(plan, outcome[0]), outcome[1] if plan.releases_total else None


def rounded(plan: JointPlan, outputs: Array) -> Array:
    """Outputs as they are released: on a grid its nearest multiples."""
    if plan.step is None:
        return outputs
    return np.clip(from_units(np.rint(to_units(outputs, plan.step)), plan.step) + 0.0, -LARGEST, LARGEST)


def nearest_total(plan: JointPlan, n: float) -> float:
    """The total on the public grid that is nearest to n; n itself where the plan says so."""
    return n if plan.total == "records" else float(np.rint(n / plan.total_unit)) * plan.total_unit


def totals_within(plan: JointPlan, n: float, reach: float) -> Array:
    """All totals of the public grid within a reach of n."""
    if plan.total == "records":
        return np.array([n])
    unit = plan.total_unit
    return np.arange(max(math.ceil((n - reach) / unit), 0), math.floor((n + reach) / unit) + 1) * unit


def windows(plan: JointPlan, n: float, total: float, reach: float) -> list[Span]:
    """The ranks below each output in ways to place the outputs that score at most `reach`."""
    middles = total * plan.levels + 0.5 * (n - total)
    return [(middle - 0.5 * reach, middle + 0.5 * reach) for middle in middles.tolist()]


def chain_within(plan: JointPlan, cells: Cells, n: float, total: float, reach: float) -> Chain:
    """The chain of all ways that stay inside the windows of a reach."""
    low, high = np.array(windows(plan, n, total, reach)).T
    allowed = (cells.rank >= low[:, None]) & (cells.rank <= high[:, None])
    return forward(plan, cells, total, n, allowed, reach)


def weigh(plan: JointPlan, records: Records) -> Part:
    """Weigh so much of the law that the rest is below e^-MARGIN of it."""
    middle = nearest_total(plan, records.n)
    reach = (2.0 * plan.size + 22.0) / plan.rate
    while True:  # one total gives a lower bound on the whole
        cells = gather(plan, records, windows(plan, records.n, middle, reach))
        lowest = chain_within(plan, cells, records.n, middle, reach).log_weight
        if lowest > -math.inf:
            return weigh_within(plan, records, sufficient_reach(plan, lowest))
        reach *= 4.0


def sufficient_reach(plan: JointPlan, lowest: float) -> float:
    """A reach whose rest is below e^-MARGIN of a whole of log weight `lowest` or more."""
    nats = plan.log_ordered - lowest + MARGIN + 1.0
    across = plan.rate * plan.total_unit
    return (nats + math.log(2.0 * nats / across + 1.0 - 2.0 / math.expm1(-across))) / plan.rate


def weigh_within(plan: JointPlan, records: Records, reach: float) -> Part:
    """Weigh all ways inside a reach, and bound the rest."""
    n = records.n
    totals = totals_within(plan, n, reach)
    each = np.array([windows(plan, n, total, reach) for total in totals.tolist()])
    cells = gather(plan, records, list(zip(each[:, :, 0].min(axis=0), each[:, :, 1].max(axis=0), strict=True)))
    weights = np.array([chain_within(plan, cells, n, total, reach).log_weight for total in totals.tolist()])
    return Part(reach, totals, weights, cells, plan.log_ordered + log_beside(plan, n, reach, totals))


def log_beside(plan: JointPlan, n: float, reach: float, totals: Array) -> Array:
    """Log bounds (3,) on the sums of exp(-rate S) outside the windows: at the weighed totals, above, and below."""
    out = np.array([math.log(len(totals)) - plan.rate * reach, -math.inf, -math.inf])
    if plan.total != "records":
        log_series = -math.log(-math.expm1(-plan.rate * plan.total_unit))
        out[1] = log_series - plan.rate * (totals[-1] + plan.total_unit - n)
        out[2] = log_series - plan.rate * (n - totals[0] + plan.total_unit) if totals[0] > 0.0 else -math.inf
    return out


def propose(plan: JointPlan, records: Records, part: Part, uniforms: Array) -> tuple[Array, float] | None:
    """Outputs and a total from the latent law, by uniforms (HEAD + 3 k,); None to begin anew."""
    own = uniforms[HEAD:].reshape(3, plan.size)
    share = math.exp(min(log_sum(part.log_beside) - log_sum(part.log_weights), 700.0))
    if uniforms[PART] * (1.0 + share) < share:
        return _from_rest(plan, records, part, uniforms, own)
    total = float(part.totals[choose(part.log_weights, uniforms[TOTAL])])
    return backward(plan, part.cells, chain_within(plan, part.cells, records.n, total, part.reach), own), total


def _from_rest(
    plan: JointPlan, records: Records, part: Part, uniforms: Array, own: Array
) -> tuple[Array, float] | None:
    """A draw from the bound on the rest, kept with the probability that makes it one from the rest."""
    ends = np.cumsum(np.exp(part.log_beside - np.max(part.log_beside)))
    ends = np.concatenate([[0.0], ends / ends[-1]])
    kind = min(int(np.searchsorted(ends[1:], uniforms[TOTAL], side="right")), 2)
    left = (uniforms[TOTAL] - ends[kind]) / (ends[kind + 1] - ends[kind])
    if kind == 0:
        total = float(part.totals[int(left * len(part.totals))])
    else:  # the number of a term of a geometric series
        steps = 1.0 + math.floor(math.log1p(-left) / (-plan.rate * plan.total_unit))
        total = float(part.totals[-1] if kind == 1 else part.totals[0]) + (3 - 2 * kind) * steps * plan.total_unit
    outputs = backward(plan, *prior_chain(plan), own)
    if total < 0.0 or (kind == 0 and is_inside(plan, records, part, outputs, total)):
        return None
    bound = part.reach if kind == 0 else abs(records.n - total)
    excess = float(score(plan, counts_between(records, outputs), total)) - bound
    return (outputs, total) if uniforms[KEEP_REST] < math.exp(-plan.rate * excess) else None


def counts_between(records: Records, outputs: Array) -> Array:
    """Weights (k + 1,) of the records below, between and above sorted outputs."""
    below = records.rank(np.searchsorted(records.values, outputs, side="left"))
    return np.diff(np.concatenate([[0.0], below, [records.n]]))


def is_inside(plan: JointPlan, records: Records, part: Part, outputs: Array, total: float) -> bool:
    """Whether outputs are among the ways that were weighed for a total."""
    cell = np.searchsorted(records.values, outputs, side="left")
    same = (np.diff(cell) == 0) & (np.diff(np.searchsorted(plan.cuts, outputs, side="left")) == 0)
    low, high = np.array(windows(plan, records.n, total, part.reach)).T
    rank = records.rank(cell)
    if not np.all((rank >= low) & (rank <= high)):
        return False
    first = 0
    for j in range(1, plan.size):
        first = first if same[j - 1] else j
        inner = total * (plan.levels[j] - plan.levels[first])
        if inner + abs(records.n - total + inner) > part.reach:
            return False
    return True


def is_kept(plan: JointPlan, records: Records, outputs: Array, uniform: float) -> bool:
    """Whether a draw from the latent law is kept: always, unless the total is the best one."""
    if plan.total != "best":
        return True
    counts = counts_between(records, outputs)
    best = plan.rate * (float(best_score(plan, counts)) + 0.5 * plan.total_unit)
    return uniform < math.exp(-best - log_score_sum(plan, counts))
