"""Repeated records and the bounds for several quantiles."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from pq.bounds import lem_empirical_quantiles, thm_binary
from proofs_checks.engine.registry import check
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.exact import Algorithm, Points, Prior, log_ball
from proofs_checks.tools.trees import inverse_psis

F = Fraction
HALF = Fraction(1, 2)
QUARTERS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))


def _three(prior_masses: tuple[int, ...], shift: int) -> Prior:
    total = sum(prior_masses)
    places = (HALF, F(3, 2), F(3), F(6))
    return {o + F(shift, 16): F(m, total) for o, m in zip(places, prior_masses, strict=True)}


Bound = Callable[..., float]


@check(
    "text:repetitions",
    code=thm_binary,
    rejects=[
        (scaled(thm_binary, 0.5), lem_empirical_quantiles),
        (thm_binary, scaled(lem_empirical_quantiles, 0.3)),
    ],
)
def check_ties_many(subject: tuple[Bound, Bound] = (thm_binary, lem_empirical_quantiles)) -> str:
    """thm:binary and lem:empirical-quantiles (corrected) with repeated records: exact failure at most beta, m = 3."""
    draw, worst = random.Random(13), F(0)
    for _ in range(24):
        values = sorted(draw.choice((1, 1, 2, 5)) for _ in range(draw.randrange(1, 9)))
        data, z, beta = Points(tuple(F(v) for v in values)), F(1, draw.choice((2, 30, 10**6))), HALF
        priors = tuple(_three(tuple(draw.choice((1, 5, 300)) for _ in range(4)), i) for i in range(3))
        epsilon = -4 * math.log(z)
        edge = Algorithm(QUARTERS, priors, (z,) * 3)
        log_psi = -float(log_ball(edge.inverse_psi_sum(data) / 3))  # type: ignore[arg-type]
        limit = subject[0](log_psi, epsilon, 3, float(beta))
        for algorithm in (edge, replace(edge, adaptation="conditional")):
            failed = F(0)
            for outputs, p in algorithm.law(data).items():
                if algorithm.adaptation == "conditional":
                    total = sum(inverse_psis(data, algorithm, outputs))  # type: ignore[arg-type]
                    limit = subject[1](-float(log_ball(total / 3)), epsilon, 3, float(beta))
                failed += p if max(algorithm.gaps(data, outputs)) > limit + 1e-9 else 0
            assert failed <= beta, (values, algorithm.adaptation, float(failed))
            worst = max(worst, failed)
    return f"repeated records, m = 3, both adaptations: corrected bounds fail w.p. {float(worst):.3f} at most (exact)"
