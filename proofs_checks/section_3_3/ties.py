"""Repeated records and the bounds for several quantiles."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
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


def _tied() -> Iterator[tuple[list[int], F, tuple[Prior, ...]]]:
    """Columns that repeat 1, 2 and 5, exp(-eps_i/2), and priors of the quartiles."""
    draw = random.Random(13)
    for _ in range(24):
        values, z = sorted(draw.choice((1, 1, 2, 5)) for _ in range(draw.randrange(1, 9))), draw.choice((2, 30, 10**6))
        yield values, F(1, z), tuple(_three(tuple(draw.choice((1, 5, 300)) for _ in range(4)), i) for i in range(3))
    # nearly all mass in a wrong place, so that gaps are large
    far = ((0, 60, 0, 150), (90, 110, 90, 150), (60, 0, 150, 60))
    yield [1] * 19 + [2] * 167 + [5] * 14, HALF, tuple(_three(tuple(2**k for k in row), i) for i, row in enumerate(far))


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
        (thm_binary, scaled(lem_empirical_quantiles, 0.5)),
        (thm_binary, scaled(lem_empirical_quantiles, 0.7)),
    ],
)
def check_ties_many(subject: tuple[Bound, Bound] = (thm_binary, lem_empirical_quantiles)) -> str:
    """thm:binary and lem:empirical-quantiles (corrected) with repeated records: exact failure at most beta, m = 3."""
    worst = F(0)
    for values, z, priors in _tied():
        data, beta = Points(tuple(F(v) for v in values)), HALF
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
