"""The score of a joint release: how far the counts between outputs are from their shares of a total (Section 3.2).

S(nu) = sum_j |n_j - nu p_j| is convex and piecewise linear in nu, with corners at n_j / p_j and slopes from -1 to 1. So
its minimum is at a corner, and sums of exp(-rate S) over a grid of totals are geometric series between corners.

Counts may be near 2^53, and records next to each other must still be told apart. So a total is counted from the number
n of all records: with nu = n + mu and the deviations d_j = n_j - n p_j, S = sum_j |d_j - mu p_j|, in which all numbers
are small where the score is. The deviations come from products in two parts, and have all their digits. A corner of a
small share may be so far that a step there changes no float, or beyond the floats: slopes come from the shares.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pq.core.scores import log_sum, rest_of_product
from pq.private.columns.door import Array
from pq.private.mechanisms.joint.plan import JointPlan


def score_at(plan: JointPlan, counts: Array, total: Any) -> Any:
    """Sum of the distances of counts (..., k + 1) from the shares of a total (...), which are floats whatever the
    records."""
    return np.sum(np.abs(counts - np.asarray(total)[..., None] * plan.shares), axis=-1)


def deviations(plan: JointPlan, counts: Array) -> Array:
    """Counts (..., k + 1) less their shares of all records."""
    n = np.sum(counts, axis=-1, keepdims=True)
    product = n * plan.shares
    return np.asarray((counts - product) - (rest_of_product(n, plan.shares, product) + n * plan.share_rests))


def score_beside(plan: JointPlan, deviation: Array, further: Any) -> Any:
    """Score of a total that is `further` (...) than the number of records, of deviations (..., k + 1)."""
    return np.sum(np.abs(deviation - np.asarray(further)[..., None] * plan.shares), axis=-1)


def best_score(plan: JointPlan, counts: Array) -> Array:
    """Least score over all totals, of counts (..., k + 1).

    >>> from pq.core.priors import Uniform
    >>> plan = JointPlan.of([0.25], epsilon=1, priors=Uniform(0, 1), total="best")
    >>> float(best_score(plan, np.array([4.0, 6.0])))  # |4 - 10 / 4| / 0.75
    2.0
    """
    deviation = deviations(plan, counts)
    corners = np.moveaxis(corners_of(plan, deviation), -1, 0)
    return np.min([score_beside(plan, deviation, np.where(np.isinf(each), 0.0, each)) for each in corners], axis=0)


def corners_of(plan: JointPlan, deviation: Array) -> Array:
    """Where the score turns (..., s), counted from the number of records, for shares that are more than nothing;
    infinite where a share is so small that the corner is beyond the floats."""
    some = plan.shares > 0.0
    with np.errstate(over="ignore"):
        return np.asarray(deviation[..., some] / plan.shares[some])


def log_score_sum(plan: JointPlan, counts: Array) -> float:
    """log of the sum of exp(-rate S(nu)) over the public grid of totals, for counts (k + 1,)."""
    unit, rate, n = plan.total_unit, plan.rate, float(np.sum(counts))
    nearest = np.rint(n / unit)  # totals are numbered from this one on
    off = (n - nearest * unit) - rest_of_product(nearest, unit, nearest * unit)
    deviation, shares = deviations(plan, counts), plan.shares[plan.shares > 0.0]
    starts = np.maximum(np.ceil((corners_of(plan, deviation) + off) / unit), -nearest)  # first number past each corner
    firsts = np.unique(np.append(starts[starts < math.inf], -nearest))  # of the pieces, on which the score is a line

    terms = []
    for first, following in zip(firsts, [*firsts[1:], math.inf], strict=True):
        slope = unit * math.fsum(np.where(starts <= first, shares, -shares))  # not by differences: steps may be lost
        largest = first if slope >= 0.0 else following - 1.0
        score = float(score_beside(plan, deviation, largest * unit - off))
        terms.append(log_series(-rate * score, -rate * abs(slope), following - first))
    return log_sum(np.array(terms))


def log_series(log_first: float, log_ratio: float, number: float) -> float:
    """log of a geometric series from its largest term down; of infinitely many terms if the ratio is below one."""
    if -log_ratio * min(number, 1e300) < 1e-13:
        return log_first + math.log(number)
    return log_first + math.log(math.expm1(log_ratio * number) / math.expm1(log_ratio))
