"""All quantiles at once by one exponential mechanism whose total is latent; `pq.private.mechanisms.joint.law` says why
it is private.

A few quantiles can be drawn jointly and the others read off a monotone curve through them, which is post-processing:
where the budget is small that has much less error, on columns that are smooth. Where nobody promises that they are, how
many are drawn depends on the records and is an output as well: `pq.private.mechanisms.joint.scales`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from pq.core.curves import joint_support
from pq.core.expected import LEAST_LOOK_SIGNAL, best_drawn, drawn_if_filled, usual_budget, usual_size
from pq.core.interpolation import interpolate
from pq.core.machine.engine import Engine
from pq.core.priors import Prior
from pq.core.priors.differing import differing
from pq.core.priors.log_uniform import knows_scale
from pq.core.request import Request
from pq.private.columns.cells import Points
from pq.private.columns.door import Array
from pq.private.columns.part import Near, PartOfColumn
from pq.private.mechanisms.joint.law import draw_joint, on_multiples
from pq.private.mechanisms.joint.mixture import JointMixture, draw_mixture, draw_mixture_fast, mixture_log_density
from pq.private.mechanisms.joint.plan import JointPlan, priors_near, usual_total
from pq.private.mechanisms.joint.scales import any_number
from pq.private.mechanisms.joint.windows import check_windows, wide_reaches
from pq.private.mechanisms.protocol import LogParts, Mechanism, Outcome
from pq.private.randomness import Source

CHAIN = Engine("pq.private.mechanisms.joint.machine", "walk_joint")
NEAR, NEAR_EACH = 45.0, 18.0  # nats, and nats for each output, that a release rarely looks beyond
FORMULA_SECONDS = 1e-2  # about what one output takes the formulas
MOST_LOOKED = 16  # members of a mixture that are usually looked at, at most
LEAST_BUDGET = Fraction(1, 2**200)  # below, rates and totals leave the floats
MOST_SIZE = 1e9  # records that a guess counts for


class Joint(Mechanism, name="joint"):
    """One exponential mechanism over all quantiles and, but for few of a smooth column, the number of records."""

    least_budget = LEAST_BUDGET

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        if not isinstance(request.budget, Fraction):
            raise ValueError("epsilon must be finite for a joint release")
        if request.budget < LEAST_BUDGET:
            raise ValueError(f"epsilon must be at least {float(LEAST_BUDGET):.0e} for each record of a joint release")
        self.levels = drawn_levels(request)
        plans = [self._plan(priors) for priors in request.members]
        self.joint = plans[0]
        self.mixture: JointMixture | None = None
        if request.joint_prior is not None:
            pairs = [one for one in zip(plans, request.joint_prior.weights, strict=True) if one[1] > 0.0]
            self.mixture = JointMixture(*zip(*pairs, strict=True))
        elif len(many := levels_if_filled(request, len(self.levels))) > len(self.levels):
            self.mixture = any_number(self.joint, self._plan(request.members[0], many))

    def _plan(self, priors: Sequence[Prior], levels: tuple[Fraction, ...] | None = None) -> JointPlan:
        """The plan under independent priors (m,) of the quantiles asked for."""
        levels = self.levels if levels is None else levels
        request, total = self.request, usual_total(len(levels), smooth=True)
        return JointPlan.of(
            levels,
            epsilon=request.budget,
            priors=priors_near(levels, request.distinct, priors),
            adjacency=request.adjacency,  # type: ignore[arg-type]
            total=total if request.assume_smooth else "drawn",  # ties make the best one slow
            grid=request.step,
            size_guess=None if request.size_guess is None else math.ceil(min(request.size_guess, MOST_SIZE)),
        )

    @cached_property
    def rho(self) -> Fraction | float:
        return Fraction(self.joint.epsilon) ** 2 / 8 * self.request.max_contributions**2

    def column(self, values: Array, before: object) -> Points:
        """The records as they are: on a grid the law spreads them over their cells itself."""
        return Points(np.ascontiguousarray(values), before)  # type: ignore[arg-type]

    def draw(self, column: Points, source: Source) -> Outcome:  # type: ignore[override]
        known = column.values, column.before, source.uniforms
        if self.mixture is not None:
            return self._outcome(mixture_sampler(1, self.mixture)(self.mixture, *known))
        return self._outcome(sampler(1, len(self.levels))(self.joint, *known, checked_windows(self.joint, column)))

    @cached_property
    def near(self) -> Near | None:
        if self.request.step is not None or self.mixture is not None:
            return None
        return near_outputs(self.joint.levels, self.joint.rate, NEAR_EACH)

    def simulate(self, column: Points, source: Source, trials: int) -> Array:  # type: ignore[override]
        known = column.values, column.before, source.uniforms
        if self.mixture is None:
            draw = partial(sampler(trials, len(self.levels)), self.joint)
        else:
            draw = partial(mixture_sampler(trials, self.mixture), self.mixture)
        rows = [self._outcome(draw(*known)).values for _ in range(trials)]
        return np.array(rows).reshape(trials, len(self.request.distinct))

    def _outcome(self, drawn: tuple[Array, float | None]) -> Outcome:
        outputs, total = drawn
        plan = self._of_size(len(outputs))
        assert plan is not None
        kept = (("drawn", outputs.tolist()),) if plan.quantiles != self.request.distinct else ()
        return Outcome(read_off(plan, self.request, outputs), None if total is None else round(total), kept)

    def _of_size(self, size: int) -> JointPlan | None:
        """The plan of so many outputs; None if there is none."""
        return JointMixture((self.joint,), (1.0,)).of_size(size) if self.mixture is None else self.mixture.of_size(size)

    def knots(self, drawn: Mapping[str, Any], values: Array) -> tuple[Array, Array]:
        plan = self._of_size(len(drawn.get("drawn", values)))
        return drawn_knots(self.levels if plan is None else plan.quantiles, drawn, values)

    def log_parts(self, column: Points, outcome: Outcome) -> LogParts:  # type: ignore[override]
        from pq.private.mechanisms.joint.density import joint_log_density

        plan = self._of_size(len(dict(outcome.drawn).get("drawn", outcome.values)))
        outputs = None if plan is None else drawn_outputs(plan, self.request, outcome)
        if plan is None or outputs is None:
            return Fraction(0), -math.inf
        total = None if outcome.total is None else grid_total(plan, outcome.total)
        if self.mixture is not None:
            return Fraction(0), mixture_log_density(self.mixture, column.values, column.before, outputs, total)
        return Fraction(0), joint_log_density(self.joint, column.values, column.before, outputs, total)


def near_outputs(levels: Array, rate: float, each: float) -> Near:
    """Of joint outputs (k,) at a rate. each: nats for each that a release rarely looks beyond."""
    return Near(levels, wide_reaches(levels, (each * len(levels) + NEAR) / rate))


def checked_windows(plan: JointPlan, column: Points) -> Callable[[float], None] | None:
    """What is told how far a draw looked, and raises `Unknown` where a part of a column does not know so much."""
    return partial(check_windows, plan, column) if isinstance(column, PartOfColumn) else None


def mixture_sampler(trials: int, mixture: JointMixture) -> Callable[..., tuple[Array, float | None]]:
    """What draws from a mixture, as `sampler` chooses."""
    seconds = FORMULA_SECONDS * trials * mixture.first.size * min(len(mixture.plans), MOST_LOOKED)
    return draw_mixture_fast if CHAIN.ready(seconds) else draw_mixture


def sampler(trials: int, outputs: int) -> Callable[..., tuple[Array, float | None]]:
    """What draws joint outputs: machine code where it is there or pays for so many trials, else the formulas."""
    if CHAIN.ready(FORMULA_SECONDS * trials * outputs):
        from pq.private.mechanisms.joint.machine import draw_joint_fast  # brings the compiler

        return draw_joint_fast
    return draw_joint


def read_off(plan: JointPlan, request: Request, outputs: Array) -> Array:
    """Values of all distinct quantiles of a request, from the outputs of a plan: themselves, or on a curve."""
    if plan.quantiles == request.distinct:
        return outputs
    values = interpolate(plan.levels.tolist(), outputs, request.levels.tolist())
    return on_multiples(plan, np.clip(values, *joint_support(request.priors)))


def drawn_outputs(plan: JointPlan, request: Request, outcome: Outcome) -> Array | None:
    """What a plan drew of an outcome; None where its values do not follow from that."""
    outputs = np.array(dict(outcome.drawn).get("drawn", outcome.values), dtype=np.float64)
    if len(outputs) != plan.size or np.any(read_off(plan, request, outputs) != outcome.values):
        return None
    return outputs


def drawn_knots(levels: tuple[Fraction, ...], drawn: Mapping[str, Any], values: Array) -> tuple[Array, Array]:
    """Levels and places of the outputs that a plan drew, from what a release keeps."""
    return np.array([float(q) for q in levels]), np.array(drawn.get("drawn", values), dtype=np.float64)


def grid_total(plan: JointPlan, count: int) -> float:
    """The total of the public grid that is released as this whole number; minus one if none is."""
    number = round(count / plan.total_unit)
    return number * plan.total_unit if round(number * plan.total_unit) == count else -1.0


def drawn_levels(request: Request) -> tuple[Fraction, ...]:
    """The quantiles that are drawn: those asked for, or fewer where these have less error.

    They are evenly spaced as far as those asked for are.

    >>> from pq.core.priors import Uniform
    >>> tenths = [i / 10 for i in range(1, 10)]
    >>> [str(level) for level in drawn_levels(Request.of(tenths, epsilon=0.1, priors=Uniform(0, 1)))]
    ['1/5', '2/5', '3/5', '4/5']
    """
    count, budget = len(request.distinct), usual_budget(request.budget, request.adjacency)
    size, scale = usual_size(request.size_guess), knows_scale(request.priors)
    few, _ = best_drawn(count, budget, size, request.assume_smooth, scale)
    return evenly_of(request.distinct, few)


def evenly_of(levels: tuple[Fraction, ...], few: int) -> tuple[Fraction, ...]:
    """So many levels, evenly spaced as far as those given are; themselves if they are so many.

    >>> [str(level) for level in evenly_of(tuple(Fraction(i, 10) for i in range(1, 10)), 4)]
    ['1/5', '2/5', '3/5', '4/5']
    """
    if few == len(levels):
        return levels
    ends = sorted({Fraction(0), *levels, Fraction(1)})
    places = [divmod(Fraction(i * (len(ends) - 1), few + 1), 1) for i in range(1, few + 1)]
    return tuple(ends[first] + part * (ends[min(first + 1, len(ends) - 1)] - ends[first]) for first, part in places)


def levels_if_filled(request: Request, few: int) -> tuple[Fraction, ...]:
    """The quantiles that are drawn if the records fill what one prior allows, of a column that may not be smooth; none
    where this is not asked.

    >>> from pq.core.priors import Uniform
    >>> tenths = [i / 10 for i in range(1, 10)]
    >>> len(levels_if_filled(Request.of(tenths, epsilon=0.1, priors=Uniform(0, 1)), 4))
    9
    """
    plain = request.joint_prior is None and len(differing(request.priors)) == 1 and knows_scale(request.priors)
    plain = plain and bool(np.all(np.isfinite(joint_support(request.priors))))  # else it is a guess, which may be wrong
    count, budget = len(request.distinct), usual_budget(request.budget, request.adjacency)
    signal = budget * usual_size(request.size_guess)
    if not plain or request.step is not None or request.assume_smooth or signal >= LEAST_LOOK_SIGNAL or few == count:
        return ()
    return evenly_of(request.distinct, min(count, drawn_if_filled(signal)))
