"""Neighbouring data, robustness and consistency: what the definitions say."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pq
from pq.bounds import cor_quantile
from pq.truth.evaluate import log_psi_harmonic
from proofs_checks.engine.registry import check
from proofs_checks.tools.exact import log_ball
from proofs_checks.tools.neighbours import replaced_loss


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


@check(
    "text:differential-privacy",
    rejects=[
        lambda adjacency: 1.0,
        lambda adjacency: 1.5,
        lambda adjacency: {"add-remove": 1.0, "replace": 1.49}[adjacency],
    ],
)
def check_neighbouring(
    subject: Callable[[str], float] = lambda adjacency: {"add-remove": 1.0, "replace": 1.5}[adjacency],
) -> str:
    """'Differ in at most one element' has two readings, and the printed budgets serve one of them only."""
    z = Fraction(1, 10)
    ratio = float(log_ball(replaced_loss((1, 1, 1), z)) / (-4 * log_ball(z)))
    assert ratio <= 1.0 or subject("replace") > 1.0, ratio
    assert ratio <= subject("replace")
    assert math.isclose(subject("add-remove"), 1.0)
    return (
        "the definition's 'differ in at most one element': epsilon if a record is added or removed, up to (2 d "
        "- 1) / d epsilon if replaced"
    )
