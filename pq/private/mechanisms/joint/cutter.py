"""Joint releases as private cuts between cells, for `pq.private.mechanisms.cells.partitions.CutPartition`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pq.core.noise import Source, random_uniforms
from pq.core.request import Request
from pq.private.columns.cells import Points
from pq.private.columns.door import Array
from pq.private.mechanisms.joint.density import joint_log_density
from pq.private.mechanisms.joint.law import draw_joint
from pq.private.mechanisms.joint.plan import JointPlan, priors_near, usual_total


@dataclass(frozen=True)
class JointCutter:
    """Some quantiles of a column by one joint release, without its total."""

    plan: JointPlan

    @property
    def quantiles(self) -> tuple[Fraction, ...]:
        return self.plan.quantiles

    @property
    def epsilon(self) -> Fraction:
        return self.plan.epsilon

    @property
    def adjacency(self) -> str:
        return self.plan.adjacency

    @property
    def rho(self) -> Fraction:
        """Of bounded range, see `pq.private.mechanisms.joint.law`."""
        return self.plan.epsilon**2 / 8

    def cuts(self, column: Points, source: Source) -> Array:
        def uniforms(count: int) -> Array:
            return np.array(random_uniforms(count, source))

        return draw_joint(self.plan, column.values, column.before, uniforms)[0]

    def log_parts(self, column: Points, cuts: Array) -> tuple[Fraction, float]:
        return Fraction(0), joint_log_density(self.plan, column.values, column.before, cuts)


def joint_cutter(request: Request) -> Callable[[tuple[Fraction, ...], Fraction, str], JointCutter]:
    """What makes cuts of a request's column at quantiles, for a budget, under an adjacency."""

    def make(levels: tuple[Fraction, ...], epsilon: Fraction, adjacency: Any) -> JointCutter:
        priors = priors_near(levels, request.distinct, request.priors)
        total = usual_total(len(levels))
        grid = request.step  # cuts are released too
        plan = JointPlan.of(levels, epsilon=epsilon, priors=priors, adjacency=adjacency, total=total, grid=grid)
        return JointCutter(plan)

    return make
