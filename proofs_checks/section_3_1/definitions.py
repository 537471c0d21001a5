"""Neighbouring data, robustness and consistency: what the definitions say."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from proofs_checks.engine.registry import check
from proofs_checks.tools.exact import log_ball
from proofs_checks.tools.neighbours import replaced_loss


@check("def:consistency", "text:log-sum-exp", rejects=[lambda m: math.log(m)])
def check_consistency_zero(subject: Callable[[int], float] = lambda m: 0.0) -> str:
    """With U = -log of the harmonic mean a perfect prediction has U = 0; with the printed log-sum-exp it has log m."""
    for m in (1, 2, 7):
        harmonic = m / sum(Fraction(1) for _ in range(m))
        assert math.isclose(-math.log(harmonic), subject(m), abs_tol=1e-12), m
    return (
        "def:consistency asks U = 0: reached by -log of the harmonic mean; the log-sum-exp is at least log m, "
        "never 0 for m > 1"
    )


@check("text:differential-privacy", rejects=[lambda adjacency: 1.0])
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
