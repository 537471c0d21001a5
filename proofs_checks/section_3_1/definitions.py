"""Neighbouring data, robustness and consistency: what the definitions say."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import pq
from pq.bounds import cor_quantile
from pq.truth.evaluate import log_psi_harmonic
from proofs_checks.engine.registry import check
from proofs_checks.tools.exact import Algorithm, log_ball, max_loss
from proofs_checks.tools.neighbours import QUARTERS, hurtful_priors, neighbours, replaced_loss


@check(
    "def:consistency",
    "text:log-sum-exp",
    code=(cor_quantile, log_psi_harmonic),
    rejects=[lambda m: math.log(m), lambda m: 1e-6],
)
def check_consistency_zero(subject: Callable[[int], float] = lambda m: 0.0) -> str:
    """With U = -log of the harmonic mean a perfect prediction has U = 0; with the printed log-sum-exp it has log m."""
    for m in (1, 2, 7):
        harmonic = m / sum(Fraction(1) for _ in range(m))
        assert math.isclose(-math.log(harmonic), subject(m), abs_tol=1e-12), m
        right = pq.Uniform(2.0, 3.0)  # between the second and the third of four records
        assert math.isclose(-log_psi_harmonic([1.0, 2.0, 3.0, 4.0], [0.5] * m, right), subject(m), abs_tol=1e-12)
    for weight in (0.0, 0.1, 0.5):  # consistency: no term in the data's size, only what the trusted prior takes
        consistent = cor_quantile(-100.0, 1.0, 0.05, weight)[1]
        assert math.isclose(consistent, 2 * math.log(1 / (0.05 * (1 - weight)))), weight
    return (
        "def:consistency asks U = 0: reached by -log of the harmonic mean; the log-sum-exp is at least log m, "
        "never 0 for m > 1"
    )


@cache
def largest_losses() -> tuple[float, float]:
    """In units of epsilon: over small columns and one record more, and for the record of `replaced_loss`."""
    z, most = Fraction(1, 10), Fraction(1)
    for priors, (less, more) in itertools.product(hurtful_priors(), neighbours()):
        laws = [Algorithm(QUARTERS, priors, (z,) * 3, adaptation="conditional").law(x) for x in (less, more)]
        most = max(most, max_loss(*laws), max_loss(*laws[::-1]))
    added, replaced = (float(log_ball(loss) / (-4 * log_ball(z))) for loss in (most, replaced_loss((1, 1, 1), z)))
    return added, replaced


@check(
    "text:differential-privacy", rejects=[(1.0, 1.0), (1.5, 1.5), (0.99, 1.5), (1.01, 1.5), (1.0, 1.49), (1.0, 1.51)]
)
def check_neighbouring(subject: tuple[float, float] = (1.0, 1.5)) -> str:
    """'Differ in at most one element' has two readings, and the printed budgets serve one of them only: exact losses in
    a tree of two levels, for all small columns and one record more, and for a record that changes branches.

    subject: in units of epsilon, what a record costs that comes or goes, and one that is replaced.
    """
    for ratio, cost in zip(largest_losses(), subject, strict=True):
        assert cost - 0.005 < ratio <= cost, ratio
    return "'differ in at most one element': epsilon if a record is added or removed, up to 3/2 epsilon if replaced"
