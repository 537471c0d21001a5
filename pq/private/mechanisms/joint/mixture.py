"""Joint releases under priors in which quantiles depend on each other: finite mixtures of base densities (Section 3.2).

With members l of weights w_l and base densities h_l, each of which `pq.private.mechanisms.joint.law` draws from, the
density of outputs and a total is proportional to

    exp(-rate S(o, nu)) sum_l w_l h_l(o) = sum_l w_l exp(-rate S(o, nu)) h_l(o).

*Privacy.* The score S is that of one member and all public facts but the base density are shared. A record moves S by
at most its sensitivity whatever o and nu, so the proof for one base density is the proof for their mixture: epsilon-DP,
bounded range epsilon, epsilon^2/8-zCDP. The member is an auxiliary variable: it is drawn and never told.

*Draws.* Let E_l be all that the sampler of member l proposes from: what it weighs and its bounds on the rest. A member
is drawn in proportion to w_l E_l, then a proposal from it; it is kept with the member's own probability, or all begins
anew, with another member. What is kept has weight w_l exp(-rate S) h_l, summed over members: the law, exactly, though
no member's normaliser Z_l is ever known. (A member by w_l alone would have the share w_l, and a member that is kept for
all tries the share w_l E_l, instead of w_l Z_l. The first never learns which member is right, the second has a law that
nobody knows.)

*Numbers of outputs.* Members may differ in their quantiles as well: their number is an output then. For each way to
place so many outputs the score still moves by its sensitivity at most, whatever the others do, so the proof is as it
was. A member of another number has no density at o.

*Time.* Members are looked at from the one with the largest quick bound on. Of those whose bounds together can hardly
matter nothing is weighed: all of such a member is rest (`shells.shells_of_all`), and drawn from all the same. Where all
outputs of a member lie between two ends, records beyond these bound its score, which is much quicker (`log_within`). If
one of these is drawn all the same, it is looked at, and goes on with the share of the bound that it really proposes.

*Density.* log sum_l w_l exp(-rate S) h_l(o) less log sum_l w_l Z_l. On a grid likewise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pq.core.curves import joint_support
from pq.core.facts import Facts
from pq.core.priors import Uniform
from pq.core.priors.differing import differing
from pq.core.priors.numerics import log_ratio
from pq.core.scores import log_sum
from pq.private.columns.cells import Before
from pq.private.columns.door import Array
from pq.private.mechanisms.joint import density
from pq.private.mechanisms.joint import law as joint
from pq.private.mechanisms.joint.chain import ChainCells, Records, choose
from pq.private.mechanisms.joint.plan import JointPlan
from pq.private.mechanisms.joint.shells import log_totals, shells_of_all
from pq.private.mechanisms.joint.totals import NO_TOTALS, NONE_SKIPPED, Ints
from pq.private.mechanisms.joint.windows import NO_WAYS

BOUND_NATS = 80.0  # within which totals are bounded one by one
PATIENCE = 16  # members that are looked at by their bounds; then wide intervals are, which bound those inside
BOUND_SLACK = 3.0 * math.exp(-joint.MARGIN)  # of what a sampler weighs, and its bound on the rest


@dataclass(frozen=True)
class JointMixture(Facts):
    """What is known of a joint release under a mixture before any data are touched.

    plans: (l,) of the members, which differ in priors, and in quantiles if they differ in their number. weights: (l,)
    positive, of any sum.
    """

    plans: tuple[JointPlan, ...]
    weights: tuple[float, ...]

    @cached_property
    def log_weights(self) -> Array:
        return np.log(np.array(self.weights))

    @property
    def first(self) -> JointPlan:
        """One for all that members share."""
        return self.plans[0]

    @cached_property
    def most(self) -> int:
        """The largest number of outputs."""
        return max(plan.size for plan in self.plans)

    def of_size(self, size: int) -> JointPlan | None:
        """A plan of so many outputs."""
        return next((plan for plan in self.plans if plan.size == size), None)

    @cached_property
    def _intervals(self) -> Array:
        """Ends (l, 2) of the intervals on which all outputs of a member are uniform; not-a-number for other members."""
        priors, none = [differing(plan.priors) for plan in self.plans], (math.nan, math.nan)
        return np.array([one[0].support if [type(prior) for prior in one] == [Uniform] else none for one in priors])

    @cached_property
    def log_widths(self) -> Array:
        """(l,) of these; -inf for other members."""
        low, high = self._intervals.T
        return np.fmax(log_ratio(high, low, 1.0), -math.inf)  # finite where the width itself is beyond the floats

    def log_more(self, member: int, others: Ints) -> Array:
        """Nats (o,) by which others may weigh more than a member at most. Where the others' outputs are uniform on a
        part of an interval on which the member's are, each has a density that is larger by the ratio of the widths."""
        (low, high), plan, mine = self._intervals[others].T, self.plans[member], self._intervals[member]
        is_part = (low >= mine[0]) & (high <= mine[1]) & (self.log_widths[others] > -math.inf)
        is_part &= np.array([self.plans[other].quantiles == plan.quantiles for other in others], dtype=bool)
        return np.where(is_part, plan.size * (self.log_widths[member] - self.log_widths[others]), math.inf)

    @cached_property
    def groups(self) -> list[tuple[Ints, Array]]:
        """Members (g,) that have their quantiles in common, and the ends (g, 2) of each one's outputs."""
        each = [plan.quantiles for plan in self.plans]
        ends = np.array([joint_support(differing(plan.priors)) for plan in self.plans])
        numbers = [np.array([i for i, own in enumerate(each) if own == one]) for one in dict.fromkeys(each)]
        return [(found, ends[found]) for found in numbers]


@dataclass(frozen=True)
class Unseen:
    """Of a member nothing is known but a bound on what it proposes from."""

    log_proposed: float


def draw_mixture(
    mixture: JointMixture, values: Array, before: Before | None, uniforms: joint.Uniforms
) -> tuple[Array, float | None]:
    """Outputs (k,), and the total where it is released, drawn from the exact law; arguments as for `joint.draw_joint`.

    Guarantees epsilon-differential privacy of all that it returns, under the plans' adjacency.
    """
    with np.errstate(all="ignore"):
        records = Records.of(mixture.first, values, before)
        parts = unlooked(mixture, records)

        def look(member: int, most: float) -> float:
            part = joint.weigh(mixture.plans[member], records, most)
            parts[member] = part
            return part.log_proposed

        log_proposed = log_proposals(mixture, parts, look)
        while True:
            one = uniforms(uniforms_of_try(mixture))
            member, place = choose_within(log_proposed, one[0])
            part = parts[member]
            if isinstance(part, Unseen):
                own, bound = mixture.log_weights[member], log_proposed[member]
                log_proposed[member] = own + look(member, bound - own)
                if not place < math.exp(log_proposed[member] - bound):
                    continue
                part = parts[member]
            assert isinstance(part, joint.Part)
            outcome = propose_from(mixture.plans[member], records, part, one[1:])
            if outcome is not None:
                return joint.released(mixture.first, *outcome)


def choose_within(log_weights: Array, uniform: float) -> tuple[int, float]:
    """As `choose`, and where in the share of what is chosen the uniform lies: again in [0, 1], and independent."""
    index = choose(log_weights, uniform)
    running = np.append(0.0, np.cumsum(np.exp(log_weights - np.max(log_weights))))
    place = (uniform * running[-1] - running[index]) / (running[index + 1] - running[index])
    return index, float(place)


def unlooked(mixture: JointMixture, records: Records) -> list[joint.Part | Unseen]:
    """What is known of members (l,) before any is looked at: bounds, from two ends or from shells."""
    parts: list[joint.Part | Unseen] = [Unseen(math.inf)] * len(mixture.plans)
    for members, ends in mixture.groups:
        bounds = log_within(mixture.plans[members[0]], records, ends)
        for member, bound, (low, high) in zip(members.tolist(), bounds.tolist(), ends.tolist(), strict=True):
            if math.isinf(low) or math.isinf(high):
                parts[member] = unweighed(mixture.plans[member], records)
            else:
                parts[member] = Unseen(bound + mixture.plans[member].log_most)
    return parts


def log_within(plan: JointPlan, records: Records, ends: Array) -> Array:
    """Bounds (g,) on the log of what a sampler proposes from if all outputs are between ends (g, 2), less
    that of the most mass which ordered outputs have.

    With n_1 >= a and n_(k+1) >= b records, those beyond the ends, S(o, nu) >= e + |n - nu - e| for e = max(a - nu p_1,
    0) + max(b - nu p_(k+1), 0). A sampler proposes from all that it weighs and up to e^-MARGIN of it.
    """
    n, far = records.n, BOUND_NATS / plan.rate
    beyond = records.rank(np.searchsorted(records.values, ends, side="left")) * np.array([1.0, -1.0]) + [0.0, n]
    totals = joint.totals_within(plan, n, far).every()
    excess = np.maximum(beyond[:, :, None] - totals * plan.shares[[0, -1], None], 0.0).sum(axis=1)
    near = -plan.rate * (excess + np.abs(n - totals - excess))
    return np.logaddexp(np.logaddexp.reduce(near, axis=1), log_totals(plan, n, far)) + BOUND_SLACK


def unweighed(plan: JointPlan, records: Records) -> joint.Part:
    """A part that weighs nothing: all is rest."""
    nothing = np.empty(0)
    cells = ChainCells(nothing, nothing, nothing, nothing, np.empty((plan.size, 0)))
    none = np.empty(0, dtype=np.int64)
    return joint.Part(NO_TOTALS, none, nothing, NONE_SKIPPED, cells, NO_WAYS, shells_of_all(plan, records))


def log_proposals(
    mixture: JointMixture, parts: Sequence[joint.Part | Unseen], look: Callable[[int, float], float]
) -> Array:
    """Logs (l,) of what members are drawn in proportion to.

    parts: (l,) unweighed ones, whose bounds stand for members that need no look: none that matter, for slow draws from
    shells; all but the best, of those that are looked at when they are drawn. look: gives what a member proposes from,
    in nats, once it is looked at, which is no more than the bound that it is told.
    """
    out = mixture.log_weights + np.array([part.log_proposed for part in parts])
    is_weighed = np.array([not isinstance(part, Unseen) for part in parts], dtype=bool)
    slack = np.where(is_weighed, joint.MARGIN + math.log(len(parts)), 0.0)
    left, best, looked = np.arange(len(parts)), -math.inf, 0
    told: list[tuple[int, float]] = []  # what looks have found and nothing has been made of
    while True:
        left = left[out[left] > best - slack[left]]
        if not left.size:
            return out
        member = int(left[np.argmax(out[left] if looked < PATIENCE else mixture.log_widths[left])])
        left = left[left != member]
        found, looked = look(member, float(out[member] - mixture.log_weights[member])), looked + 1
        out[member] = mixture.log_weights[member] + found
        best = max(best, float(out[member]))
        told.append((member, found))
        while looked >= PATIENCE and told:
            wide, weight = told.pop()
            more = mixture.log_weights[left] + mixture.log_more(wide, left) + BOUND_SLACK
            out[left] = np.minimum(out[left], weight + more)


def propose_from(plan: JointPlan, records: Records, part: joint.Part, own: Array) -> tuple[Array, float] | None:
    """Outputs and a total from a member, or None to begin anew."""
    outcome = joint.propose(plan, records, part, own[: joint.HEAD + 3 * plan.size])
    return outcome if outcome is not None and joint.is_kept(plan, records, outcome[0], own[joint.KEEP_BEST]) else None


def uniforms_of_try(mixture: JointMixture) -> int:
    """How many a try takes: one for the member, and what a draw of the most outputs takes."""
    return 1 + joint.HEAD + 3 * mixture.most


def draw_mixture_fast(
    mixture: JointMixture, values: Array, before: Before | None, uniforms: joint.Uniforms
) -> tuple[Array, float | None]:
    """As `draw_mixture`, with the same answers to the same uniforms, by machine code where that can be."""
    from pq.private.mechanisms.joint import machine  # brings the compiler

    blocks: list[Array] = []
    if all(plan.tables is not None for plan in mixture.plans):
        with np.errstate(all="ignore"):
            outcome = _walked(mixture, Records.of(mixture.first, values, before), uniforms, blocks)
        if outcome is not None:
            return joint.released(mixture.first, *outcome)
    return draw_mixture(mixture, values, before, machine.replayed(blocks, uniforms))


def _walked(
    mixture: JointMixture, records: Records, uniforms: joint.Uniforms, blocks: list[Array]
) -> tuple[Array, float] | None:
    """Outputs and a total by machine code, None to leave it; the uniforms that were asked for are put into `blocks`."""
    from pq.private.mechanisms.joint import machine

    width = uniforms_of_try(mixture)
    parts = unlooked(mixture, records)
    looked: dict[int, Array] = {}
    states: dict[int, tuple[int, int]] = {}  # what was last drawn, and from which block

    def walk(member: int, _: float = math.inf) -> float:
        plan = mixture.plans[member]
        looked[member] = np.empty(plan.size + 3)
        own = blocks[-1][None, 1 : 1 + joint.HEAD + 3 * plan.size]
        states[member] = machine.walk_joint(*machine.arguments_of(plan, records), own, looked[member]), len(blocks)
        return float(looked[member][-1])

    blocks.append(uniforms(width))
    log_proposed = log_proposals(mixture, parts, walk)
    while not np.any(np.isnan(log_proposed)):
        member, place = choose_within(log_proposed, blocks[-1][0])
        part, kept = parts[member], True
        if member not in looked and isinstance(part, joint.Part):
            outcome = propose_from(mixture.plans[member], records, part, blocks[-1][1:])
            if outcome is not None:
                return outcome
            kept = False
        elif member not in looked:
            bound, log_proposed[member] = log_proposed[member], mixture.log_weights[member] + walk(member)
            kept = place < math.exp(log_proposed[member] - bound)
        if kept:
            if states[member][1] != len(blocks):
                walk(member)
            state, k = states[member][0], mixture.plans[member].size
            if state == machine.LEAVE:
                return None
            if state > 0:
                return looked[member][:k], float(looked[member][k])
        blocks.append(uniforms(width))
    return None


def mixture_log_density(
    mixture: JointMixture,
    values: Array,
    before: Before | None,
    outputs: Sequence[float] | Array,
    total: float | None = None,
) -> float:
    """Exact log density of outputs, and of a total if one is given; arguments as for `density.joint_log_density`.

    >>> from pq.core.priors import Uniform
    >>> plans = tuple(JointPlan.of([0.5], epsilon=1, priors=Uniform(0, b), total="best") for b in (2, 4))
    >>> round(mixture_log_density(JointMixture(plans, (0.5, 0.5)), np.array([1.0, 2.0, 3.0]), None, [3.5]), 6)
    -2.699556
    """
    with np.errstate(all="ignore"):
        records = Records.of(mixture.first, np.asarray(values, dtype=np.float64), before)
        o = np.asarray(outputs, dtype=np.float64)
        own = [density.log_weight_of(p, records, o, total) if p.size == len(o) else -math.inf for p in mixture.plans]
        top = log_sum(mixture.log_weights + np.array(own))
        if not top > -math.inf:
            return -math.inf
        return top - log_mixture_normaliser(mixture, records)


def log_mixture_normaliser(mixture: JointMixture, records: Records) -> float:
    """Log of the weight of all outputs, up to e^-DIGITS of it: members that can have no more are left out."""
    bounds = mixture.log_weights + np.array([part.log_proposed for part in unlooked(mixture, records)])
    terms, enough = [-math.inf], density.DIGITS + math.log(len(bounds))
    for member in np.argsort(-bounds, kind="stable").tolist():
        if bounds[member] <= max(terms) - enough:
            break
        terms.append(float(mixture.log_weights[member]) + density.log_normaliser(mixture.plans[member], records))
    return log_sum(np.array(terms))
