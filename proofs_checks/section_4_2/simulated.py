"""Robust and consistent bounds against seeded releases."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import pq
from pq import bounds
from pq.bounds import cor_multi_cauchy, cor_multiple, cor_quantile
from proofs_checks.engine.registry import check
from proofs_checks.tools.releases import (
    BETA,
    COLUMNS,
    EIGHTHS,
    LONG,
    TIES,
    WIDE,
    WRONG,
    known_log_psi,
    outer,
    report_rates,
    separation,
    worst_rate,
)


def perfect(x: np.ndarray, q: float) -> pq.Uniform:
    """All mass on the optimal cell."""
    rank, ordered = pq.rank(q, len(x)), np.sort(x)
    low = ordered[rank - 1] if rank else ordered[0] - 1.0
    return pq.Uniform(float(low), float(ordered[rank]))


@check("cor:quantile", code=cor_quantile, rejects=[(0.7, 1.0), (1.0, 0.7)])
def check_mixture(shares: tuple[float, float] = (1.0, 1.0)) -> str:
    """cor:quantile: robust with a wrong prediction, consistent with a perfect one; where nearly all of the weight is on
    a trusted prior that lies twenty ranks off, seven tenths of the latter are too little."""

    def robust(x: np.ndarray, release: pq.Release) -> float:
        return bounds.cor_quantile(known_log_psi(x.tobytes(), WIDE, 0.5), 0.5, BETA, 0.25)[0]

    def consistent(x: np.ndarray, release: pq.Release, weight: float = 0.25) -> float:
        return bounds.cor_quantile(0.0, 0.5, BETA, weight)[1]

    x, others = COLUMNS["bell"], [other for other in COLUMNS if other != "bell"]
    far = perfect(x, 0.3).mix(perfect(x, 0.3 + 20.5 / len(x)), 0.99)
    nearly = functools.partial(consistent, weight=0.99)
    right = [worst_rate([0.3], nearly, shares[1], others, epsilon=0.5, priors=far)]
    for name, x in COLUMNS.items():
        if name not in TIES:
            others = [other for other in COLUMNS if other != name]
            prior = perfect(x, 0.3).mix(WIDE, 0.25)
            right.append(worst_rate([0.3], consistent, shares[1], others, epsilon=0.5, priors=prior))
    rate = worst_rate([0.3], robust, shares[0], trials=LONG, epsilon=0.5, priors=WRONG.mix(WIDE, 0.25))
    return report_rates("cor:quantile, robust and consistent", [rate, max(right)])


@check(
    "cor:cauchy-robust",
    "cor:multi-cauchy",
    "cor:multiple",
    code=(cor_multiple, cor_multi_cauchy),
    rejects=[(0.13, 0.54, 0.3), (0.14, 0.52, 0.3), (0.14, 0.54, 0.28)],
)
def check_cauchy_tree(shares: tuple[float, float, float] = (0.14, 0.54, 0.3)) -> str:
    """cor:multi-cauchy (conditional), cor:multiple (edge): robust for wrong predictions, consistent for right ones.

    shares: of the three bounds, which these runs keep to; they are as loose as that, and no looser.
    """

    def tree(x: np.ndarray, release: pq.Release) -> float:
        return bounds.cor_multi_cauchy(outer(x), 4.0, separation(x), 200.0, 7, BETA)

    def multiple(x: np.ndarray, release: pq.Release, side: int = 0) -> float:
        return bounds.cor_multiple(outer(x), 4.0, separation(x), 200.0, 7, BETA, 0.25)[side]

    common: dict[str, Any] = {"epsilon": 200}
    rates = [
        worst_rate(EIGHTHS, tree, shares[0], TIES, priors=WIDE, adaptation="conditional", **common),
        worst_rate(EIGHTHS, multiple, shares[1], TIES, priors=WRONG.mix(WIDE, 0.25), adaptation="edge", **common),
    ]
    right = []
    for name, x in COLUMNS.items():
        if name not in TIES:
            others = [other for other in COLUMNS if other != name]
            priors = [perfect(x, q).mix(WIDE, 0.25) for q in EIGHTHS]
            consistent = functools.partial(multiple, side=1)
            right.append(worst_rate(EIGHTHS, consistent, shares[2], others, priors=priors, adaptation="edge", **common))
    return report_rates(
        "0.14 of cor:multi-cauchy, 0.54 and 0.3 of cor:multiple robust, consistent",
        [*rates, max(right)],
        len(COLUMNS) - 1,
    )
