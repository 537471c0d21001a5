"""Every high-probability guarantee for released quantiles against releases: seven columns, both adaptations.

A guarantee passes on a column if the failures among the trials show, with confidence 99.9% (one-sided Clopper and
Pearson), a failure rate below BETA.  Seeds are fixed.  All bounds are the corrected ones; each check takes the share of
the bound that it asks for, 1 by default, and must notice a small share.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

import pq
from pq import bounds
from pq.core.plan import Node
from pq.core.request import Request
from pq.private.mechanisms.tree import Tree
from pq.private.randomness import Source
from pq.private.release import fulfil

BETA = 0.2
SHORT, LONG = 50, 500  # trials; where the bound is nearly attained it takes many to tell the rate from BETA
EIGHTHS = [k / 8 for k in range(1, 8)]
COLUMNS = {
    "heavy ties": np.repeat([0.0, 1.0, 2.0, 7.0], [150, 25, 100, 25]),
    "two clusters": np.concatenate([np.linspace(0, 1e-3, 150), 1000 + np.linspace(0, 1e-6, 150)]),
    "heavy tails": np.tan(np.pi * (np.arange(1, 301) / 301 - 0.5)) ** 3,
    "three records": np.array([-1.0, 0.0, 1.0]),
    "halving gaps": 2.0 ** -np.arange(40),
    "bell": stats.norm.ppf(np.arange(1, 301) / 301),
    "one far away": np.append(np.arange(299) / 10, 1e9),
}
TIES = ("heavy ties",)
WRONG = pq.Laplace(3.0, 0.05)  # its mass is in one place, mostly the wrong one: there the bounds are closest
WIDE = pq.Cauchy(0.0, 2.0)
Limit = Callable[[np.ndarray, pq.Release], float]


@functools.cache
def most_failures(trials: int) -> int:
    """Most failures that still show a rate below BETA."""
    return max(k for k in range(trials) if stats.beta.ppf(0.999, k + 1, trials - k) < BETA)


def worst_rate(
    quantiles: list[float],
    limit: Limit,
    share: float,
    skip: Iterable[str] = (),
    trials: int = SHORT,
    release_of: Callable[..., pq.Release] = pq.release,
    **keywords: Any,
) -> float:
    """Largest failure rate over the columns; fails if one is not shown to be below BETA."""
    worst = 0
    for name, x in COLUMNS.items():
        if name in skip:
            continue
        failed = 0
        for seed in range(trials):
            release = release_of(x, quantiles, rng=seed, calibration="paper", **keywords)
            failed += pq.max_gap(x, quantiles, release.values) > share * limit(x, release) * (1 + 1e-9)
        assert failed <= most_failures(trials), f"{name}: {failed} of {trials} beyond the bound"
        worst = max(worst, failed)
    return worst / trials


def report(label: str, rates: Iterable[float], columns: int = len(COLUMNS)) -> str:
    """The line of one guarantee."""
    text = ", ".join(f"{rate:.3f}" for rate in rates)
    return f"{label}: failure rates at most {text} on {columns} columns, below beta = {BETA} with confidence 99.9%"


def separation(x: np.ndarray) -> float:
    """Least distance of two records, 0 with ties."""
    return float(np.diff(np.sort(x)).min())


def outer(x: np.ndarray, centre: float = 0.0) -> float:
    """R: the records lie within R of the centre."""
    return float(np.abs(x - centre).max()) * (1 + 1e-9)


@functools.cache
def known_log_psi(column: bytes, prior: pq.core.priors.Prior, epsilon: float | None, q: float = 0.3) -> float:
    """log Psi of a column, once."""
    return pq.log_psi(np.frombuffer(column), q, prior, epsilon)


def harmonic(logs: Iterable[float]) -> float:
    """Log of the harmonic mean, from logs."""
    values = np.array(list(logs))
    return float(math.log(len(values)) - np.logaddexp.reduce(-values))


def check_one(share: float = 1.0) -> str:
    """lem:quantile with Psi^(q, eps), and eq:basic with Psi^(q)."""

    def bound(x: np.ndarray, epsilon: float | None) -> float:
        return bounds.lem_quantile(known_log_psi(x.tobytes(), WRONG, epsilon), 0.5, BETA)

    def tight(x: np.ndarray, release: pq.Release) -> float:
        return bound(x, 0.5)

    def loose(x: np.ndarray, release: pq.Release) -> float:
        return bound(x, None)

    rates = [worst_rate([0.3], f, share, trials=LONG, epsilon=0.5, priors=WRONG) for f in (tight, loose)]
    return report("lem:quantile, eq:basic", rates)


def check_one_interval(share: float = 1.0) -> str:
    """text:uniform-bound and cor:cauchy: bounds that know the least separation only."""

    def uniform(x: np.ndarray, release: pq.Release) -> float:
        least = min(separation(x), float(x.min()) - release.priors[0].low)
        return bounds.uniform_bound(release.priors[0].high - release.priors[0].low, least, 0.5, BETA)

    def cauchy(x: np.ndarray, release: pq.Release) -> float:
        return bounds.cor_cauchy(outer(x), 4.0, separation(x), 0.5, BETA, n=len(x), rank=pq.rank(0.3, len(x)))

    rates = []
    for name, x in COLUMNS.items():
        if name not in TIES:
            low, high = float(x.min()), float(x.max())
            range_of = pq.Uniform(low - separation(x), high + separation(x))
            others = [other for other in COLUMNS if other != name]
            rates.append(worst_rate([0.3], uniform, share, others, epsilon=0.5, priors=range_of))
    rates = [max(rates), worst_rate([0.3], cauchy, share, TIES, epsilon=0.5, priors=WIDE)]
    return report("uniform prior, cor:cauchy", rates, len(COLUMNS) - 1)


def check_mixture(share: float = 1.0) -> str:
    """cor:quantile: robust with a wrong prediction, consistent with a perfect one."""

    def robust(x: np.ndarray, release: pq.Release) -> float:
        return bounds.cor_quantile(known_log_psi(x.tobytes(), WIDE, 0.5), 0.5, BETA, 0.25)[0]

    def consistent(x: np.ndarray, release: pq.Release) -> float:
        return bounds.cor_quantile(0.0, 0.5, BETA, 0.25)[1]

    rates = [worst_rate([0.3], robust, share, trials=3 * LONG, epsilon=0.5, priors=WRONG.mix(WIDE, 0.25))]
    right = []
    for name, x in COLUMNS.items():
        if name not in TIES:
            others = [other for other in COLUMNS if other != name]
            prior = perfect(x, 0.3).mix(WIDE, 0.25)
            right.append(worst_rate([0.3], consistent, share, others, LONG, epsilon=0.5, priors=prior))
    return report("cor:quantile, robust and consistent", [*rates, max(right)])


def perfect(x: np.ndarray, q: float) -> pq.Uniform:
    """All mass on the optimal cell."""
    rank, ordered = pq.rank(q, len(x)), np.sort(x)
    low = ordered[rank - 1] if rank else ordered[0] - 1.0
    return pq.Uniform(float(low), float(ordered[rank]))


def restricted_log_psi(x: np.ndarray, release: pq.Release, i: int, epsilon_i: float) -> float:
    """log Psi^ of one mechanism from its definition: the restricted prior on the cells between its edges."""
    plan = release.plan
    low = release.values[plan.lower[i]] if plan.lower[i] >= 0 else -math.inf
    high = release.values[plan.upper[i]] if plan.upper[i] >= 0 else math.inf
    inside = np.sort(x[(x > low) & (x < high)])
    ends = np.concatenate([[low], inside, [high]])
    masses = np.exp(release.priors[i].log_mass(ends[:-1], ends[1:]))
    if release.adaptation == "edge":
        masses[0] += math.exp(release.priors[i].log_mass(-math.inf, low))
        masses[-1] += math.exp(release.priors[i].log_mass(high, math.inf))
    elif masses.sum():
        masses = masses / masses.sum()
    target = math.floor(plan.relative[i] * len(inside))
    scores = np.exp(-epsilon_i / 2 * np.abs(np.arange(len(masses)) - target))
    return math.log(max(float(masses @ scores), 1e-300))


def check_restricted(share: float = 1.0) -> str:
    """lem:empirical-quantiles under both adaptations, and ours:dyadic-conditional, with the Psi^ of each run."""

    def logs(x: np.ndarray, release: pq.Release) -> float:
        epsilon_i = float(release.epsilon) / release.plan.depth
        return harmonic(restricted_log_psi(x, release, i, epsilon_i) for i in range(7))

    def plain(x: np.ndarray, release: pq.Release) -> float:
        return bounds.lem_empirical_quantiles(logs(x, release), float(release.epsilon), 7, BETA)

    def dyadic(x: np.ndarray, release: pq.Release) -> float:
        return bounds.dyadic_conditional(logs(x, release), float(release.epsilon), 7, BETA)

    rates = [
        worst_rate(EIGHTHS, plain, share, epsilon=30, priors=WIDE, adaptation="conditional"),
        worst_rate(EIGHTHS, plain, share, epsilon=30, priors=WIDE, adaptation="edge"),
        worst_rate(EIGHTHS, dyadic, share, epsilon=30, priors=WIDE, adaptation="conditional"),
    ]
    return report("lem:empirical-quantiles conditional, edge; uniform quantiles", rates)


def check_original(share: float = 1.0) -> str:
    """thm:binary and thm:kary (K = 3, p = 2) under edge adaptation, with wrong priors."""

    def binary(x: np.ndarray, release: pq.Release) -> float:
        logs = [known_log_psi(x.tobytes(), WRONG, float(release.epsilon) / 3, q) for q in EIGHTHS]
        return bounds.thm_binary(harmonic(logs), float(release.epsilon), 7, BETA)

    def kary(x: np.ndarray, release: pq.Release) -> float:
        pairs = zip(EIGHTHS, release.plan.epsilons, strict=True)
        logs = [known_log_psi(x.tobytes(), WRONG, float(e), q) for q, e in pairs]
        return bounds.thm_kary(harmonic(logs), float(release.epsilon), 7, BETA, arity=3)

    rates = [
        worst_rate(EIGHTHS, binary, share, epsilon=30, priors=WRONG, adaptation="edge"),
        worst_rate(EIGHTHS, kary, share, epsilon=60, priors=WRONG, adaptation="edge", arity=3, budget_power=2),
    ]
    return report("thm:binary, thm:kary", rates)


def release_by_level(
    x: np.ndarray, quantiles: list[float], *, shares: list[float], rng: int, **options: Any
) -> pq.Release:
    """A release whose levels have these shares of the budget, the mechanisms of a node equal parts."""
    tree = Tree(Request.of(quantiles, **options))

    def shared(node: Node) -> Node:
        children = tuple(None if child is None else shared(child) for child in node.children)
        return replace(node, epsilon=Fraction(options["epsilon"]) * Fraction(shares[node.depth - 1]), children=children)

    tree.plan = replace(tree.plan, root=shared(tree.plan.root))
    tree.arrays = tree.plan.arrays
    return fulfil(tree, x, Source(rng))


def check_level_shares(share: float = 1.0) -> str:
    """ours:binary-shares and ours:kary-shares (K = 3): budgets by level under edge adaptation, with wrong priors."""

    def logs(x: np.ndarray, release: pq.Release) -> float:
        pairs = zip(EIGHTHS, release.plan.epsilons, strict=True)
        return harmonic(known_log_psi(x.tobytes(), WRONG, float(e), q) for q, e in pairs)

    def binary(x: np.ndarray, release: pq.Release) -> float:
        return bounds.binary_weighted(logs(x, release), float(release.epsilon), 7, BETA)

    def kary(x: np.ndarray, release: pq.Release) -> float:
        return bounds.kary_weighted(logs(x, release), float(release.epsilon), 7, BETA, arity=3)

    rates = [
        worst_rate(
            EIGHTHS, bound, share, release_of=release_by_level, shares=shares, epsilon=epsilon, priors=WRONG,
            adaptation="edge", arity=arity,
        )
        for bound, shares, epsilon, arity in (
            (binary, bounds.binary_shares(3), 30, 2),
            (kary, bounds.kary_shares(2), 60, 3),
        )
    ]  # fmt: skip
    return report("ours:binary-shares, ours:kary-shares", rates)


def check_cauchy_tree(share: float = 1.0) -> str:
    """cor:multi-cauchy (conditional), cor:multiple (edge): robust for wrong predictions, consistent for right ones."""

    def tree(x: np.ndarray, release: pq.Release) -> float:
        return bounds.cor_multi_cauchy(outer(x), 4.0, separation(x), 200.0, 7, BETA)

    def multiple(x: np.ndarray, release: pq.Release, side: int = 0) -> float:
        return bounds.cor_multiple(outer(x), 4.0, separation(x), 200.0, 7, BETA, 0.25)[side]

    common: dict[str, Any] = {"epsilon": 200}
    rates = [
        worst_rate(EIGHTHS, tree, share, TIES, priors=WIDE, adaptation="conditional", **common),
        worst_rate(EIGHTHS, multiple, share, TIES, priors=WRONG.mix(WIDE, 0.25), adaptation="edge", **common),
    ]
    right = []
    for name, x in COLUMNS.items():
        if name not in TIES:
            others = [other for other in COLUMNS if other != name]
            priors = [perfect(x, q).mix(WIDE, 0.25) for q in EIGHTHS]
            consistent = functools.partial(multiple, side=1)
            right.append(worst_rate(EIGHTHS, consistent, share, others, priors=priors, adaptation="edge", **common))
    return report("cor:multi-cauchy, cor:multiple robust, consistent", [*rates, max(right)], len(COLUMNS) - 1)
