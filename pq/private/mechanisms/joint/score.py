"""The score of a joint release: how far the counts between outputs are from their shares of a total (Section 3.2).

S(nu) = sum_j |n_j - nu p_j| is convex and piecewise linear in nu, with corners at n_j / p_j and slopes from -1 to 1. So
its minimum is at a corner, and sums of exp(-rate S) over a grid of totals are geometric series between corners.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pq.core.scores import log_sum
from pq.private.columns.door import Array
from pq.private.mechanisms.joint.plan import JointPlan


def score_at(plan: JointPlan, counts: Array, total: Any) -> Any:
    """Sum of the distances of counts (..., k + 1) from the shares of a total (...)."""
    return np.sum(np.abs(counts - np.asarray(total)[..., None] * plan.shares), axis=-1)


def best_score(plan: JointPlan, counts: Array) -> Array:
    """Least score over all totals, of counts (..., k + 1).

    >>> from pq.core.priors import Uniform
    >>> plan = JointPlan.of([0.25], epsilon=1, priors=Uniform(0, 1), total="best")
    >>> float(best_score(plan, np.array([4.0, 6.0])))  # |4 - 10 / 4| / 0.75
    2.0
    """
    some = np.flatnonzero(plan.shares > 0.0)
    return np.min([score_at(plan, counts, counts[..., j] / plan.shares[j]) for j in some], axis=0)


def log_score_sum(plan: JointPlan, counts: Array) -> float:
    """log of the sum of exp(-rate S(nu)) over the public grid of totals, for counts (k + 1,)."""
    unit, rate = plan.total_unit, plan.rate
    some = plan.shares > 0.0
    corners = np.unique(counts[some] / plan.shares[some])
    firsts = np.unique(np.concatenate([[0.0], np.ceil(corners / unit)]))  # numbers of the first totals of the pieces
    terms = []
    for first, following in zip(firsts, [*firsts[1:], math.inf], strict=True):
        last = following - 1.0
        if last == first:
            terms.append(-rate * float(score_at(plan, counts, first * unit)))
            continue
        ahead = float(score_at(plan, counts, first * unit))
        step = float(score_at(plan, counts, (first + 1.0) * unit)) - ahead if last > first else 0.0
        terms.append(_log_series(-rate * ahead, -rate * step, last - first + 1.0))
    return log_sum(np.array(terms))


def _log_series(log_first: float, log_ratio: float, number: float) -> float:
    """log of a geometric series; of infinitely many terms if the ratio is below one."""
    if abs(log_ratio) * min(number, 1e300) < 1e-13:
        return log_first + math.log(number)
    if log_ratio > 0.0:  # from the largest term down
        log_first, log_ratio = log_first + (number - 1.0) * log_ratio, -log_ratio
    return log_first + math.log(math.expm1(log_ratio * number) / math.expm1(log_ratio))
