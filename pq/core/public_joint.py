"""Weights of a joint prior from public data: m quantiles learn one place and width together (Section 5.2, beyond).

Each public data set t of the private one's size has a box of optimal intervals, to which member l gives the mass
Psi_(t,l). Before it is seen, members have the posterior weights w_(t,l), proportional to w_l prod_(s<t) Psi_(s,l). As
the product of sum_l w_(t,l) Psi_(t,l) telescopes,

    sum_t -log sum_l w_(t,l) Psi_(t,l) = -log sum_l w_l prod_t Psi_(t,l) <= min_l (sum_t -log Psi_(t,l) + log(1 / w_l)),

on any sequence of data sets. For independent ones the average of the posteriors has, as U is convex in weights, an
expected U of at most that of the best member plus log(L) / T for L members of equal weight: a fit to within delta takes
log(L) / delta data sets. Fits of every quantile apart, with as many members each, take m times as many to be as near in
the sum of their U. No density, separation, range or step size enters.

Masses are those of independent quantiles; given their order all members' masses grow by one factor where members are
alike but for place and width, or have one prior for all quantiles, and nothing above changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pq.core.priors import JointPrior
from pq.core.public_fit import optimal_intervals

FloatArray = npt.NDArray[np.float64]


def fit_public_joint(
    x_public: npt.ArrayLike,
    quantiles: float | Sequence[float | Fraction],
    *,
    prior: JointPrior,
    sample_size: int,
    min_width: float,
    rng: np.random.Generator,
    ties: str = "between",
) -> JointPrior:
    """Learn the weights of a joint prior from public data (`thm:pubpri` for quantiles that share what they learn).

    x_public: (N,) public records; those that are not finite are left out. quantiles: (m,) in [0, 1], as they will be
    released. prior: what is believed before, such as places and widths from `JointPrior.location_scale`. sample_size:
    public size n of the private data set, or a guess; from 1 to N. min_width: public resolution of the data, positive,
    in their unit; shorter intervals are widened to it. rng: source of the cuts into N / n data sets. ties: see
    `pq.fit_public`.

    Returns the members with averaged posterior weights; the first posterior is the prior itself, so that no member that
    had weight loses all of it. Raises `ValueError` or `TypeError` naming the argument. Spends no privacy.

    >>> import pq
    >>> rng = np.random.default_rng(0)
    >>> shape = [pq.Laplace(z, 0.1) for z in (-0.67, 0.0, 0.67)]
    >>> belief = pq.JointPrior.location_scale(shape, places=[0, 25, 50, 75], widths=[1, 10])
    >>> fitted = fit_public_joint(rng.normal(50, 10, 5000), [0.25, 0.5, 0.75], prior=belief, sample_size=100,
    ...                           min_width=0.01, rng=rng)
    >>> best = int(np.argmax(fitted.weights))
    >>> fitted.members[best][1]
    Laplace(loc=50.0, scale=1.0)
    """
    if not isinstance(prior, JointPrior):
        raise TypeError(f"prior must be a JointPrior, got {type(prior).__name__}")
    if not (min_width > 0 and np.isfinite(min_width)):
        raise ValueError("min_width must be positive and finite")
    records = np.array(x_public, dtype=np.float64)
    if records.ndim != 1:
        raise ValueError("x_public must be one-dimensional")
    lower, upper = optimal_intervals(records[np.isfinite(records)], quantiles, sample_size, rng, ties=ties)
    prior.marginals(lower.shape[1])  # raises where it has another number of quantiles
    logs = log_boxes(prior, *widened_intervals(lower, upper, min_width))
    return JointPrior(prior.members, tuple(average_posterior(np.array(prior.weights), logs).tolist()))


def widened_intervals(lower: FloatArray, upper: FloatArray, min_width: float) -> tuple[FloatArray, FloatArray]:
    """Intervals of at least some width, with their middles where they were."""
    with np.errstate(invalid="ignore"):
        narrow, middle = upper - lower < min_width, 0.5 * (lower + upper)
    return (np.where(narrow, middle - 0.5 * min_width, lower), np.where(narrow, middle + 0.5 * min_width, upper))


def log_boxes(prior: JointPrior, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Logs (T, l) of the mass that each member gives to boxes (T, m), for quantiles that are independent under it."""
    out = np.empty((len(lower), len(prior.members)))
    for i, member in enumerate(prior.members):
        each = member if isinstance(member, tuple) else (member,) * lower.shape[1]
        out[:, i] = sum(one.log_mass(lower[:, j], upper[:, j]) for j, one in enumerate(each))
    return out


def average_posterior(weights: FloatArray, log_psi: FloatArray) -> FloatArray:
    """The average (l,) of the posterior weights before each of T data sets, from weights (l,) and masses (T, l).

    >>> average_posterior(np.array([0.5, 0.5]), np.log([[0.9, 0.1], [0.5, 0.5]])).round(6).tolist()
    [0.7, 0.3]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        before = np.cumsum(log_psi, axis=0) - log_psi
        logs = np.log(weights) + np.where(np.isnan(before), -np.inf, before)
        shares = np.exp(logs - np.max(logs, axis=1, keepdims=True))
        shares = np.where(np.isnan(shares), weights, shares)  # where every member was impossible
    return np.asarray(np.mean(shares / np.sum(shares, axis=1, keepdims=True), axis=0))
