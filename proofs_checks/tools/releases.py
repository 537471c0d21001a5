"""Seeded releases: columns, priors, and the largest failure rate that they allow."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy import stats

import pq

BETA = 0.2
SHORT, LONG = 50, 500  # trials; where the bound is nearly attained it takes many to tell the rate from BETA
EIGHTHS = [k / 8 for k in range(1, 8)]
COLUMNS = {
    "heavy ties": np.repeat([0.0, 1.0, 2.0, 7.0], [150, 25, 100, 25]),  # first where bounds are closest, quick to fail
    "three records": np.array([-1.0, 0.0, 1.0]),
    "two clusters": np.concatenate([np.linspace(0, 1e-3, 150), 1000 + np.linspace(0, 1e-6, 150)]),
    "heavy tails": np.tan(np.pi * (np.arange(1, 301) / 301 - 0.5)) ** 3,
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


def report_rates(label: str, rates: Iterable[float], columns: int = len(COLUMNS)) -> str:
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
def known_log_psi(column: bytes, prior: Any, epsilon: float | None, q: float = 0.3) -> float:
    """log Psi of a column, once."""
    return pq.log_psi(np.frombuffer(column), q, prior, epsilon)
