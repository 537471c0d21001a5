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

*Time.* Members are looked at from the one with the largest quick bound on. Of those whose bounds together can hardly
matter nothing is weighed: all of such a member is rest (`shells.shells_of_all`), and drawn from all the same.

*Density.* log sum_l w_l exp(-rate S) h_l(o) less log sum_l w_l Z_l. On a grid likewise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pq.core.scores import log_sum
from pq.private.columns.door import Array
from pq.private.mechanisms.joint import density
from pq.private.mechanisms.joint import law as joint
from pq.private.mechanisms.joint.chain import ChainCells, Records, choose
from pq.private.mechanisms.joint.plan import JointPlan
from pq.private.mechanisms.joint.shells import shells_of_all
from pq.private.mechanisms.joint.totals import NONE_SKIPPED


@dataclass(frozen=True)
class JointMixture:
    """What is known of a joint release under a mixture before any data are touched.

    plans: (l,) of the members, which differ in priors only. weights: (l,) positive, of any sum.
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


def draw_mixture(
    mixture: JointMixture, values: Array, before: joint.Before | None, uniforms: joint.Uniforms
) -> tuple[Array, float | None]:
    """Outputs (k,), and the total where it is released, drawn from the exact law; arguments as for `joint.draw_joint`.

    Guarantees epsilon-differential privacy of all that it returns, under the plans' adjacency.
    """
    with np.errstate(all="ignore"):
        records, first = Records.of(mixture.first, values, before), mixture.first
        parts = [unweighed(plan, records) for plan in mixture.plans]

        def look(member: int) -> float:
            parts[member] = joint.weigh(mixture.plans[member], records)
            return parts[member].log_proposed

        log_proposed = log_proposals(mixture, parts, look)
        while True:
            one = uniforms(uniforms_of_try(first))
            outcome = propose_from(mixture, records, parts, choose(log_proposed, one[0]), one[1:])
            if outcome is not None:
                return joint.released(first, *outcome)


def unweighed(plan: JointPlan, records: Records) -> joint.Part:
    """A part that weighs nothing: all is rest."""
    nothing = np.empty(0)
    cells = ChainCells(nothing, nothing, nothing, nothing, np.empty((plan.size, 0)))
    none = np.empty(0, dtype=np.int64)
    return joint.Part(nothing, none, nothing, cells, -math.inf, NONE_SKIPPED, shells_of_all(plan, records))


def log_proposals(mixture: JointMixture, parts: list[joint.Part], look: Callable[[int], float]) -> Array:
    """Logs (l,) of what members are drawn in proportion to.

    parts: (l,) unweighed ones, whose bounds stand for members that need no look. look: gives what a member proposes
    from, in nats, once it is looked at.
    """
    out = mixture.log_weights + np.array([part.log_proposed for part in parts])
    best, enough = -math.inf, joint.MARGIN + math.log(len(parts))
    for member in np.argsort(-out, kind="stable").tolist():
        if out[member] <= best - enough:
            break  # so are all that follow
        out[member] = mixture.log_weights[member] + look(member)
        best = max(best, float(out[member]))
    return out


def propose_from(
    mixture: JointMixture, records: Records, parts: list[joint.Part], member: int, own: Array
) -> tuple[Array, float] | None:
    """Outputs and a total from a member, or None to begin anew."""
    plan = mixture.plans[member]
    outcome = joint.propose(plan, records, parts[member], own)
    return outcome if outcome is not None and joint.is_kept(plan, records, outcome[0], own[joint.KEEP_BEST]) else None


def uniforms_of_try(plan: JointPlan) -> int:
    """How many a try takes: one for the member, and what a draw from it takes."""
    return 1 + joint.HEAD + 3 * plan.size


def draw_mixture_fast(
    mixture: JointMixture, values: Array, before: joint.Before | None, uniforms: joint.Uniforms
) -> tuple[Array, float | None]:
    """As `draw_mixture`, with the same answers to the same uniforms, by machine code where that can be."""
    from pq.private.mechanisms.joint import machine  # brings the compiler

    blocks: list[Array] = []
    if all(plan.tables is not None for plan in mixture.plans) and machine.is_moderate(values):
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

    k, width = mixture.first.size, uniforms_of_try(mixture.first)
    parts = [unweighed(plan, records) for plan in mixture.plans]
    looked: dict[int, Array] = {}

    def walk(member: int) -> int:
        arguments = machine.arguments_of(mixture.plans[member], records)
        looked[member] = np.empty(k + 3)
        return machine.walk_joint(*arguments, blocks[-1][None, 1:], looked[member])

    def look(member: int) -> float:
        states[member] = walk(member)
        return float(looked[member][-1])

    blocks.append(uniforms(width))
    states: dict[int, int] = {}
    log_proposed = log_proposals(mixture, parts, look)
    while not np.any(np.isnan(log_proposed)):
        member = choose(log_proposed, blocks[-1][0])
        if member not in looked:
            outcome = propose_from(mixture, records, parts, member, blocks[-1][1:])
            if outcome is not None:
                return outcome
        else:
            state = states.pop(member) if len(blocks) == 1 else walk(member)
            if state == machine.LEAVE:
                return None
            if state > 0:
                return looked[member][:k], float(looked[member][k])
        blocks.append(uniforms(width))
    return None


def mixture_log_density(
    mixture: JointMixture,
    values: Array,
    before: joint.Before | None,
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
        weights = np.array([density.log_weight_of(plan, records, o, total) for plan in mixture.plans])
        top = log_sum(mixture.log_weights + weights)
        if not top > -math.inf:
            return -math.inf
        normalisers = np.array([density.log_normaliser(plan, records) for plan in mixture.plans])
        return top - log_sum(mixture.log_weights + normalisers)
