"""How good released quantiles and priors are, seen with the data: for evaluation only, nothing here is private (Section
3)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pq.core.exact import Number, budget_fraction, quantile_fraction, quantile_fractions, rank
from pq.core.priors import Prior
from pq.core.request import Request
from pq.core.scores import log_rank_scores, log_sum
from pq.private.columns.cells import Points
from pq.private.columns.door import as_floats
from pq.private.columns.frames import records_of
from pq.private.mechanisms.joint.density import log_box_parts
from pq.private.mechanisms.joint.plan import JointPlan


def gap(x: Any, quantiles: Any, values: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Records between each value and its target rank `floor(q n)` (`eq:gap`).

    x: (n,) data in any order, or `pq.Counts` of them; missing ones are dropped. quantiles: (m,) in [0, 1]. values: (m,)
    in the same order. Where several records equal the value it stands for every rank from the records below it to those
    at or below it, and the gap is the target's distance from that range. A single record's value is no tie: `eq:gap`
    counts what is strictly below.

    Returns (m,) integers in records. Raises `ValueError` naming values if there is not one number for each quantile.

    >>> gap([1, 2, 3, 4], [0.5, 0.5], [2.5, 4.0]), gap([1, 2, 2, 2, 3], [0.2, 0.5, 1.0], [2, 2, 2])
    (array([0, 1]), array([0, 0, 1]))
    """
    records, before = records_of(x)
    fractions = quantile_fractions(quantiles)
    outputs = np.atleast_1d(as_floats(np.atleast_1d(values)))
    if outputs.shape != (len(fractions),) or np.any(np.isnan(outputs)):
        raise ValueError("values must hold one number for each quantile")
    below, at_most = (np.searchsorted(records, outputs, side=side) for side in ("left", "right"))
    n = len(records)
    if before is not None:
        below, at_most, n = before[below], before[at_most], int(before[-1])
    targets = np.array([q.numerator * n // q.denominator for q in fractions], dtype=np.int64)  # `pq.rank`
    high = np.where(at_most - below > 1, at_most, below)
    return np.maximum(np.maximum(below - targets, targets - high), 0).astype(np.int64)


def max_gap(x: Any, quantiles: Any, values: Any) -> int:
    """The largest gap over the quantiles, in records; see `gap`.

    >>> max_gap([1, 2, 3, 4], [0.25, 0.5], [1.5, 4.0])
    1
    """
    return int(np.max(gap(x, quantiles, values)))


def log_psi(x: Any, q: Number, prior: Prior, epsilon: Number | None = None) -> float:
    """Log of the inner product of a prior with the exponential score, `Psi^(q, epsilon)` (`lem:quantile`).

    x: (n,) data, or `pq.Counts` of them. q: quantile in [0, 1]. epsilon: budget, or None for the limit `Psi^(q)`, the
    prior's mass of the optimal interval `(x_k, x_{k+1}]`, k = floor(q n). Returns nats, at most 0; `U` is its negative.
    -inf if the optimal interval has no width.

    >>> import pq
    >>> round(log_psi([1.0, 2.0, 3.0, 4.0], 0.5, pq.Uniform(0, 10)), 6)
    -2.302585
    """
    if not isinstance(prior, Prior):
        raise TypeError(f"prior must be a prior of pq, got {type(prior).__name__}")
    view = Points(*records_of(x)).view(-math.inf, math.inf)
    target = float(rank(quantile_fraction(q, "q"), view.n))
    edges, low, high = view.cells(0, view.last_cell, (-math.inf, math.inf))
    if epsilon is None:
        k = view.cell_at(target)  # of that rank, unless the target is among counted ties
        return float(prior.log_mass(float(edges[k]), float(edges[k + 1]))) if low[k] == target else -math.inf
    rate = float(budget_fraction(epsilon)) / 2
    if math.isinf(rate):
        return log_psi(x, q, prior)
    return log_sum(np.atleast_1d(prior.log_mass(edges[:-1], edges[1:])) + log_rank_scores(low, high, target, rate))


def log_psi_harmonic(x: Any, quantiles: Any, priors: Any, epsilons: Any = None) -> float:
    """Log of the harmonic mean of the inner products of m quantiles, `Psi` or `Psi^(epsilon)` (`thm:binary`).

    quantiles: (m,). priors: one, or one per quantile. epsilons: None, one budget, or one per quantile.
    Returns nats. `U = log sum exp U_i` of the paper is its negative plus log m.

    >>> import pq
    >>> round(log_psi_harmonic([1.0, 2.0, 3.0, 4.0], [0.25, 0.5], pq.Uniform(0, 10)), 6)
    -2.302585
    """
    fractions = quantile_fractions(quantiles)
    m = len(fractions)
    each_prior = [priors] * m if isinstance(priors, Prior) else list(priors)
    each_epsilon = list(epsilons) if np.ndim(epsilons) == 1 else [epsilons] * m
    if len(each_prior) != m or len(each_epsilon) != m:
        raise ValueError("priors and epsilons must be one for all or one for each quantile")
    u = [-log_psi(x, q, prior, e) for q, prior, e in zip(fractions, each_prior, each_epsilon, strict=True)]
    return math.log(m) - log_sum(np.array(u)) if max(u) < math.inf else -math.inf


def log_psi_joint(x: Any, quantiles: Any, priors: Any) -> float:
    """Log of the share that a joint prior has in the box of optimal intervals, among outputs in order (`lem:quantile`).

    x: (n,) data, or `pq.Counts` of them. quantiles: (m,), different. priors: a `pq.JointPrior`, one prior, or one for
    each quantile. Returns nats, at most 0; U is its negative. -inf where an optimal interval has no width. What a gap
    follows from it: `pq.bounds.joint_gap`.

    >>> import pq
    >>> round(log_psi_joint([1.0, 2.0, 3.0, 4.0], [0.25, 0.5], pq.Uniform(0, 10)), 6)  # 2! / 10^2
    -3.912023
    """
    request = Request.of(quantiles, epsilon=1, priors=priors, mechanism="joint")
    values, before = records_of(x)
    weights = (1.0,) if request.joint_prior is None else request.joint_prior.weights
    pairs = []
    with np.errstate(all="ignore"):
        for weight, member in zip(weights, request.members, strict=True):
            plan = JointPlan.of(request.distinct, epsilon=1, priors=member)
            pairs.append((math.log(weight) if weight > 0.0 else -math.inf, *log_box_parts(plan, values, before)))
    logs = np.array(pairs)
    return log_sum(logs[:, 0] + logs[:, 1]) - log_sum(logs[:, 0] + logs[:, 2])
