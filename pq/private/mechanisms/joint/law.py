"""All quantiles at once by one exponential mechanism whose total is latent (Section 3.2, beyond the paper).

Outputs o_1 <= ... <= o_k leave n_j records between o_(j-1) and o_j, j = 1 ... k + 1; p_j = q_j - q_(j-1) is the share
that should lie there, h the density of ordered draws from the priors, and the score of outputs and a total nu

    S(o, nu) = sum_j |n_j(o) - nu p_j|.

- "drawn": outputs and total have the joint density proportional to exp(-rate S(o, nu)) h(o), for nu = 0, s, 2s, ...
- "best": outputs have the density proportional to exp(-rate min_nu S(o, nu)) h(o), over all real nu. For one quantile
  min_nu S = |n_1 - q n| / max(q, 1 - q): the single mechanism with sharp calibration.
- "records": the total is n itself, under "replace" only.

*Sensitivity.* Fix o and nu. One record more or less changes one count n_j by one and nothing else: nu is an output or a
variable of summation, not a function of the data, so the targets nu p_j do not move, and S moves by at most one. That
is why nu is free. (Targets n p_j all move with the data and cost 2 (1 - min_j p_j).) A minimum over nu of functions
that move by at most one moves by at most one. Replacing a record is one less and one more: at most two. With targets n
p_j, one record less moves S by at most (1 - p_j) + sum_(i != j) p_i = 2 (1 - p_j) <= 2, and a replacement by at most 2,
so "records" costs two under "replace" even where a number may be replaced by a missing one, which is dropped. Hence
`rate = epsilon / (2 D)` with D = 1 (add-remove) or 2 (replace), rounded down.

*Privacy.* log density = -rate S - log Z + what is public. Between neighbours the first term moves within
[-epsilon/2, epsilon/2], so log Z moves within it too: pure epsilon-differential privacy. For fixed neighbours log Z is
one number, so all losses lie in an interval of width epsilon (bounded range epsilon), hence epsilon^2/8-zCDP. Dropping
the total, rounding to a grid and interpolating are post-processing. On a grid a record is a unit of mass that a public
kernel spreads; all its parts together move sum_j |n_j| by at most one.

*The grid of totals* is infinite and public. sum_j |n_j - nu p_j| >= |n - nu|, so the weights of far totals are bounded
by a geometric series, and a flat weight on the grid gives a proper law.

*Time.* Only ways to place outputs inside windows of ranks around their targets are weighed; all others score more than
a reach, and together they weigh at most a bound that takes the prior's mass near the targets into account. The reach is
so large that this *rest* is below e^-MARGIN of the whole, and it is drawn from all the same: by one uniform a draw
comes from what is weighed or, in proportion to its bound, from the bound, and then it is kept with the probability that
makes the law exact, or all begins anew. So the law is exact for every reach, and only time depends on it; no cell and
no total that has some probability on a neighbour has none here. See `pq.private.mechanisms.joint.windows` and
`.shells`.

*The best total.* A draw of (o, nu) from the latent law on a grid of step s is kept with probability
exp(-rate min S) / (exp(rate s/2) sum_grid exp(-rate S)), which is at most one as S moves by at most one per unit of nu.
How long either takes depends on the data; there is no cap on repeats, which would be a failure of privacy.

All this is said of real numbers; sums of floats lose weights below e^-37 of the largest, and uniforms have 53 bits.
Best scores have their digits up to 2^53 records, see `pq.private.mechanisms.joint.score`, and shares of a drawn total
are floats that no record moves. But logs of weights along the chain have the digits that a float has beside the scores
of the ways, which are as large as the column where it has few values: they are off by less than a thousandth of a
record up to `MOST_IN_JOINT` records, and by a half at 2^52. So are the parts of records on a grid: by one or two at
2^53. (A record is spread evenly over its cell, so that what it adds up to an edge grows with the edge, as the
sensitivity asks; whole numbers instead would not grow so.) On a grid outputs are drawn as floats and then rounded to
multiples of the step, and far out there are few floats between two of these: what comes out follows its law up to a
hundredth from 2^45 multiples on, and up to a sixth at 2^50. (That is post-processing.) What draws a best total is as
exact as what draws the other. More records are outside of what is promised of a joint release.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pq.core.grid import from_units, rounded_units
from pq.core.scores import log_sum
from pq.private.columns.cells import Before
from pq.private.columns.door import Array
from pq.private.mechanisms.joint.chain import ChainCells, Records, backward, choose, gather
from pq.private.mechanisms.joint.plan import JointPlan
from pq.private.mechanisms.joint.score import best_score, log_score_sum
from pq.private.mechanisms.joint.shells import Shells, draw_from_rest, shells_beyond
from pq.private.mechanisms.joint.totals import NONE_SKIPPED, Ints, Skipped, Totals, search_totals
from pq.private.mechanisms.joint.windows import (
    WeighedWays,
    chain_within,
    counts_between,
    nearest_total,
    totals_within,
    windows,
)

Uniforms = Callable[[int], Array]
Looked = Callable[[float], None]

FEW, ENOUGH = 2.0, 16.0  # times a reach's nats that a lower bound may be below one: the latter where it has settled
GAIN = 1.0  # nats that windows twice as wide give a bound that has settled; far ones may give it thousands
MARGIN = 12.0  # nats of the whole that the rest may weigh less: so rarely is it drawn from
PART, TOTAL, KEEP_REST, KEEP_BEST, SHELL = range(5)  # what the first uniforms of a try decide
MANY_TOTALS = 256  # more than these are not all weighed
MOST_IN_JOINT = 2**40  # records of a column
HEAD = 5  # how many they are; three for each output follow


@dataclass(frozen=True)
class Part:
    """What is weighed of a law, and the rest.

    totals: all of the grid that are near enough. numbers: (s,) of those that are weighed. log_weights: (s,) log
    weights of the ways that are weighed. skipped: near totals that are not weighed. cells: all that these ways use.
    shells: the rest, beyond the reach that makes a total near.
    """

    totals: Totals
    numbers: Ints
    log_weights: Array
    skipped: Skipped
    cells: ChainCells
    ways: WeighedWays
    shells: Shells

    @cached_property
    def log_rest(self) -> Array:
        """Log bounds (s + t,) on what is not weighed: shells, and stretches of totals."""
        return np.concatenate([self.shells.log_bounds, self.skipped.log_bounds])

    @property
    def log_proposed(self) -> float:
        """Log of what `propose` draws from: what is weighed, and the bounds on the rest."""
        return log_sum(np.concatenate([self.log_weights, self.log_rest]))


def draw_joint(
    plan: JointPlan, values: Array, before: Before | None, uniforms: Uniforms, looked: Looked | None = None
) -> tuple[Array, float | None]:
    """Outputs (k,), and the total where it is released, drawn from the exact law.

    values: (d,) sorted, finite, ties allowed. before: (d + 1,) records before each value and of all, None if each is
    one. uniforms: gives as many independent numbers in (0, 1), both excluded, as it is asked for. looked: is told the
    largest reach that was looked at, for which the formulas have no bound. Guarantees epsilon-differential privacy of
    all that it returns, under the plan's adjacency.
    """
    if looked is not None:
        looked(math.inf)
    with np.errstate(all="ignore"):
        records = Records.of(plan, values, before)
        part = weigh(plan, records)
        while True:
            one = uniforms(HEAD + 3 * plan.size)
            outcome = propose(plan, records, part, one)
            if outcome is not None and is_kept(plan, records, outcome[0], one[KEEP_BEST]):
                return released(plan, *outcome)


def released(plan: JointPlan, outputs: Array, total: float) -> tuple[Array, float | None]:
    """What may be told of a draw: outputs, on a grid its nearest multiples, and perhaps the total."""
    return on_multiples(plan, outputs), total if plan.releases_total else None


def on_multiples(plan: JointPlan, outputs: Array) -> Array:
    """Outputs as they are, with one zero, or the nearest multiples of the grid."""
    if plan.step is None:
        return outputs + 0.0
    return np.asarray(from_units(rounded_units(outputs, plan.step), plan.step) + 0.0)


def weigh(plan: JointPlan, records: Records, most: float = math.inf) -> Part:
    """Weigh so much of the law that shells are below e^-MARGIN of it, and if what is proposed from were more than
    `most`, the log of a bound on the law, all the rest is."""
    start = (2.0 * plan.size + 22.0) / plan.rate
    shells = shells_beyond(plan, records, start, lower_bound(plan, records, start) - MARGIN)
    part = weigh_within(plan, records, shells)
    return part if part.log_proposed <= most else weigh_within(plan, records, shells, settles=False)


def lower_bound(plan: JointPlan, records: Records, reach: float) -> float:
    """A lower bound on the log of the whole, from one total and windows that grow, from a quarter of a reach on, until
    more hardly helps."""
    middle, narrower, reach = nearest_total(plan, records.n), -math.inf, 0.25 * reach
    while True:
        cells = gather(plan, records, windows(plan, records.n, middle, reach))
        lowest = chain_within(plan, cells, records.n, middle, WeighedWays(reach, is_wide=False)).log_weight
        if lowest > -plan.rate * reach * (ENOUGH if lowest < narrower + GAIN else FEW):
            return lowest
        narrower, reach = lowest, 2.0 * reach


def weigh_within(plan: JointPlan, records: Records, shells: Shells, settles: bool = True) -> Part:
    """Weigh all ways inside the windows that end where the rest begins; of very many totals all ways of some."""
    n, reach = records.n, float(shells.reaches[0])
    totals = totals_within(plan, n, reach)
    ways = WeighedWays(reach, is_wide=totals.size > MANY_TOTALS)
    each = np.array([ways.spans(plan, n, totals.at(number)) for number in (0, totals.size - 1)])
    cells = gather(plan, records, list(zip(each[:, :, 0].min(axis=0), each[:, :, 1].max(axis=0), strict=True)))

    def log_weight(number: int, bent_at: int) -> float:
        return chain_within(plan, cells, n, totals.at(number), ways, totals.at(bent_at)).log_weight

    if ways.is_wide:
        across = plan.rate * plan.total_unit
        return Part(totals, *search_totals(log_weight, totals.size, across, MARGIN, settles), cells, ways, shells)
    weights = np.array([log_weight(i, i) for i in range(totals.size)])
    return Part(totals, np.arange(totals.size), weights, NONE_SKIPPED, cells, ways, shells)


def propose(plan: JointPlan, records: Records, part: Part, uniforms: Array) -> tuple[Array, float] | None:
    """Outputs and a total from the latent law, by uniforms (HEAD + 3 k,); None to begin anew."""
    log_rest = part.log_rest
    share = math.exp(min(log_sum(log_rest) - log_sum(part.log_weights), 700.0))
    if not uniforms[PART] * (1.0 + share) < share:
        return _draw_at(plan, records, part, int(part.numbers[choose(part.log_weights, uniforms[TOTAL])]), uniforms)[1]
    kind = choose(log_rest, uniforms[SHELL])
    if kind < len(part.shells.log_bounds):
        own = uniforms[HEAD + 2 * plan.size :]
        return draw_from_rest(plan, records, part.shells, kind, part.ways, uniforms[[TOTAL, KEEP_REST]], own)
    number, log_bound = part.skipped.draw(kind - len(part.shells.log_bounds), uniforms[TOTAL])
    log_weight, outcome = _draw_at(plan, records, part, number, uniforms)
    return outcome if math.log(uniforms[KEEP_REST]) < log_weight - log_bound else None


def _draw_at(
    plan: JointPlan, records: Records, part: Part, number: int, uniforms: Array
) -> tuple[float, tuple[Array, float]]:
    """What a total weighs, and outputs drawn given it."""
    total = part.totals.at(number)
    chain = chain_within(plan, part.cells, records.n, total, part.ways)
    own = uniforms[HEAD:].reshape(3, plan.size)
    return chain.log_weight, (backward(plan, part.cells, chain, own), total)


def is_kept(plan: JointPlan, records: Records, outputs: Array, uniform: float) -> bool:
    """Whether a draw from the latent law is kept: always, unless the total is the best one."""
    if plan.total != "best":
        return True
    counts = counts_between(records, outputs)
    best = plan.rate * (float(best_score(plan, counts)) + 0.5 * plan.total_unit)
    return math.log(uniform) < -best - log_score_sum(plan, counts)
