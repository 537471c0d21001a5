"""Columns that public knowledge makes likely: independent records from priors or from public data (Section 3.1).

Nothing here sees private records.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from pq.core.curves import LEVELS, MonotoneCurve, joint_support, prior_table
from pq.core.grid import from_units, rounded_units
from pq.core.priors import OrderStatistic, Prior
from pq.core.priors.differing import differing
from pq.core.request import Request
from pq.core.scores import Array
from pq.private.columns.frames import weighted_records

Law = Callable[[Array], Array]  # quantiles of the records' law; of a mixture of priors in any order


def prior_law(request: Request) -> Law:
    """The law of records for which the priors of a request are right.

    One prior is the law of the records, an order statistic's that of the draws that it orders. Several say where their
    quantiles lie: the curve through their medians, or, where these do not increase, the table by which cells are laid.

    >>> from pq.core.priors import Uniform
    >>> prior_law(Request.of([0.5], epsilon=1, priors=Uniform(0, 4)))(np.array([0.25]))
    array([1.])
    """
    priors = [prior.prior if isinstance(prior, OrderStatistic) else prior for prior in request.priors]
    if len(differing(priors)) == 1:
        return lambda u: np.asarray(priors[0].quantile_between(-math.inf, math.inf, u))
    levels, medians = request.levels, np.array([_median(p) for p in request.priors])
    support = joint_support(priors)
    if not np.all(np.diff(medians) > 0.0):
        table = prior_table(request.priors, levels.tolist())
        return MonotoneCurve(LEVELS, table, support).at
    return MonotoneCurve(levels, medians, support).at


def drawn_law(request: Request, rng: np.random.Generator) -> Law:
    """The law of records for which the priors of a request are right; of a joint prior, that of one member, by chance.

    >>> from pq.core.priors import JointPrior, Uniform
    >>> request = Request.of([0.5], epsilon=1, priors=JointPrior([Uniform(0, 4), Uniform(8, 12)], [0, 1]))
    >>> drawn_law(request, np.random.default_rng(0))(np.array([0.25]))
    array([9.])
    """
    joint = request.joint_prior
    if joint is None:
        return prior_law(request)
    member = request.members[int(rng.choice(len(joint.weights), p=joint.weights))]
    return prior_law(replace(request, priors=member, joint_prior=None))


def _median(prior: Prior) -> float:
    return float(prior.quantile_between(-math.inf, math.inf, 0.5))


def public_law(x: Any, smooth: bool) -> Law:
    """The law of public records: steps at their values, or, where it is to be smooth, lines between those that differ,
    so that only values that repeat in x repeat among the draws. Raises `ValueError` naming public if there are none.

    >>> public_law([1.0, 2.0, 2.0, 2.0, 3.0], smooth=True)(np.array([0.1, 0.2, 0.5, 0.9]))
    array([1. , 1.5, 2. , 3. ])
    """
    values, counts = weighted_records(x)
    if len(values) == 0:
        raise ValueError("public must hold at least one record")
    ends = np.cumsum(counts)
    if not smooth:
        return lambda u: values[np.searchsorted(ends, u * float(ends[-1]), side="right")]
    levels = np.stack([ends - counts + 0.5, ends - 0.5], axis=1).ravel() / float(ends[-1])
    places = np.repeat(values, 2)
    return lambda u: np.interp(u, levels, places)


def likely_column(law: Law, request: Request, size: int, rng: np.random.Generator, rounded: bool) -> Array:
    """Sorted independent records (size,) of a law; rounded: to the grid of the request."""
    column = np.sort(law(rng.random(size)))
    if rounded and request.step is not None:
        column = np.asarray(from_units(rounded_units(column, request.step), request.step))
    return column


def ends_of_quantiles(column: Array, request: Request) -> tuple[Array, Array]:
    """Ends (m,) and (m,) of the values that are a quantile of a sorted column, for the quantiles of a request."""
    n = len(column)
    ranks = np.array([q.numerator * n // q.denominator for q in request.quantiles])  # `pq.rank`
    return column[np.clip(ranks - 1, 0, n - 1)], column[np.clip(ranks, 0, n - 1)]
