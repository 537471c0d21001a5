"""Bounds for one quantile against seeded releases."""

from __future__ import annotations

import numpy as np

import pq
from pq import bounds
from pq.bounds import cor_cauchy, lem_quantile, uniform_bound
from proofs_checks.engine.registry import check
from proofs_checks.tools.releases import (
    BETA,
    COLUMNS,
    TIES,
    WIDE,
    WRONG,
    known_log_psi,
    outer,
    report_rates,
    separation,
    worst_rate,
)


@check("eq:basic", "lem:quantile", code=lem_quantile, rejects=[(0.5, 1.0), (1.0, 0.5)])
def check_one(shares: tuple[float, float] = (1.0, 1.0)) -> str:
    """lem:quantile with Psi^(q, eps), and eq:basic with Psi^(q)."""

    def bound(x: np.ndarray, epsilon: float | None) -> float:
        return bounds.lem_quantile(known_log_psi(x.tobytes(), WRONG, epsilon), 0.5, BETA)

    def tight(x: np.ndarray, release: pq.Release) -> float:
        return bound(x, 0.5)

    def loose(x: np.ndarray, release: pq.Release) -> float:
        return bound(x, None)

    each = zip((tight, loose), shares, strict=True)
    rates = [worst_rate([0.3], f, share, epsilon=0.5, priors=WRONG) for f, share in each]
    return report_rates("lem:quantile, eq:basic", rates)


@check("text:uniform-bound", "cor:cauchy", code=(uniform_bound, cor_cauchy), rejects=[(0.5, 1.0), (1.0, 0.5)])
def check_one_interval(shares: tuple[float, float] = (1.0, 1.0)) -> str:
    """text:uniform-bound and cor:cauchy: bounds that know the least separation only. Half of the latter is too little
    in a cluster far from the location."""

    def uniform(x: np.ndarray, release: pq.Release) -> float:
        least = min(separation(x), float(x.min()) - release.priors[0].low)
        return bounds.uniform_bound(release.priors[0].high - release.priors[0].low, least, 0.5, BETA)

    def cauchy(x: np.ndarray, release: pq.Release) -> float:
        (q,) = release.quantiles
        return bounds.cor_cauchy(outer(x), 4.0, separation(x), 0.5, BETA, n=len(x), rank=pq.rank(q, len(x)))

    rates = []
    for name, x in COLUMNS.items():
        if name not in TIES:
            low, high = float(x.min()), float(x.max())
            range_of = pq.Uniform(low - separation(x), high + separation(x))
            others = [other for other in COLUMNS if other != name]
            rates.append(worst_rate([0.3], uniform, shares[0], others, epsilon=0.5, priors=range_of))
    rates = [max(rates), *(worst_rate([q], cauchy, shares[1], TIES, epsilon=0.5, priors=WIDE) for q in (0.3, 0.8))]
    return report_rates("uniform prior, cor:cauchy", rates, len(COLUMNS) - 1)
