"""Guarantees for one quantile and one node: Sections 3.2 and 4.1, Appendices A.1, B.1 and D.

Every function of `pq.bounds` takes plain numbers, sees no data and returns the bound on the gap (in ranks) that its
label promises. Where the paper is off, `version="corrected"` (the default) is the best statement that is proved here
and `version="paper"` the printed one. `log_psi` is the natural logarithm of an inner product of prior and score, at
most 0. Priors are probability measures unless `log_total` says otherwise.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

Version = Literal["corrected", "paper"]
Edge = Literal["none", "left", "right"]

__all__ = [
    "cor_cauchy",
    "cor_quantile",
    "expected_gap",
    "lem_error",
    "lem_quantile",
    "moment_consistency",
    "moment_gap",
    "uniform_bound",
]


def check_arguments(version: str, **positive: float) -> None:
    """Raise `ValueError` naming an argument that must be positive and is not, or an unknown version."""
    if version not in ("corrected", "paper"):
        raise ValueError(f"version must be 'corrected' or 'paper', got {version!r}")
    for name, value in positive.items():
        if not value > 0:
            raise ValueError(f"{name} must be positive, got {value!r}")


def lem_quantile(
    log_psi: float,
    epsilon: float,
    beta: float,
    *,
    sensitivity: float = 1.0,
    log_total: float = 0.0,
    version: Version = "corrected",
) -> float:
    """Gap of one exponential mechanism that is exceeded with probability at most beta (`lem:quantile`).

    Solves `eq:quantile` for the gap, which gives `eq:basic`.

    log_psi: log inner product of prior and score, with or without the epsilon. sensitivity: D of the rate `epsilon /
    (2 D)`; below 1 the gap is the unrounded one. log_total: log of the prior's total mass, which the paper takes to
    be 0 without saying so. Returns `2 D / epsilon * (log(1 / beta) + log_total - log_psi)`.

    >>> round(lem_quantile(math.log(0.01), epsilon=1, beta=0.05), 6)
    15.201805
    """
    check_arguments(version, epsilon=epsilon, beta=beta, sensitivity=sensitivity)
    total = log_total if version == "corrected" else 0.0
    return 2 * sensitivity / epsilon * (total - math.log(beta) - log_psi)


def expected_gap(log_psi: float, epsilon: float) -> float:
    """Bound on the expected gap of one exponential mechanism, `2 / epsilon * U` (sharper than the paper; not in it).

    The mean of `exp(epsilon / 2 * gap)` under the mechanism is exactly `1 / psi`, so Jensen gives the bound with no
    log(1 / beta).

    >>> round(expected_gap(math.log(0.01), epsilon=1), 6)
    9.21034
    """
    check_arguments("corrected", epsilon=epsilon)
    return -2 * log_psi / epsilon


def moment_gap(log_psi: float, epsilon: float, beta: float) -> float:
    """Gap of one exponential mechanism that is exceeded with probability at most beta (`lem:quantile` sharpened).

    log_psi: log inner product of prior and score, of total mass one. The mean of `exp(epsilon / 2 * gap) - 1` is
    `1 / psi - 1`, and it is not negative: Markov gives `2 / epsilon * log(1 + (1 / psi - 1) / beta)`, which falls to 0
    with the prior's error and is attained by every prior on two cells, one of them optimal.

    >>> round(moment_gap(math.log(0.01), epsilon=1, beta=0.05), 6), moment_gap(0.0, epsilon=1, beta=0.05)
    (15.182714, 0.0)
    """
    check_arguments("corrected", epsilon=epsilon, beta=beta)
    if log_psi > 0:
        raise ValueError(f"log_psi must be at most 0, got {log_psi!r}")
    if log_psi < -700:  # the 1 is lost beside 1 / psi
        return 2 / epsilon * max(0.0, -log_psi - math.log(beta))
    return 2 / epsilon * math.log1p(math.expm1(abs(log_psi)) / beta)


def moment_consistency(epsilon: float, beta: float, weight: float) -> float:
    """Gap of a perfect prediction with weight lambda on any other prior (`cor:quantile` sharpened).

    Its inner product is at least 1 - lambda: `2 / epsilon * log(1 + lambda / (beta (1 - lambda)))`, which falls to 0
    with lambda, where the printed bound stays at `2 / epsilon * log(1 / beta)`.

    >>> [round(moment_consistency(1.0, 0.05, weight), 6) for weight in (0.0, 0.001, 0.1)]
    [0.0, 0.039645, 2.340143]
    """
    if not 0 <= weight <= 1:
        raise ValueError(f"weight must be in [0, 1], got {weight!r}")
    return moment_gap(math.log1p(-weight), epsilon, beta) if weight < 1 else math.inf


def uniform_bound(
    width: float, min_separation: float, epsilon: float, beta: float, *, version: Version = "corrected"
) -> float:
    """Gap under the uniform prior on an interval that holds the data (Section 3.2, after `lem:quantile`).

    min_separation: least distance between records; for version "corrected" also from the first record to the lower
    end of the interval, unless `floor(q n)` is at least 1. The formula is the same.

    >>> round(uniform_bound(1.0, 0.01, epsilon=1, beta=0.05), 6)
    15.201805
    """
    check_arguments(version, width=width, min_separation=min_separation, epsilon=epsilon, beta=beta)
    return 2 / epsilon * math.log(width / (beta * min_separation))


def log_cauchy_mass(radius: float, width: float, min_separation: float) -> float:
    """log of the paper's lower bound on the Cauchy mass of an inner cell of data in (centre -+ radius)."""
    return math.log(2 * width * min_separation / math.pi) - math.log(width**2 + 4 * radius**2)


def cor_cauchy(
    radius: float,
    width: float,
    min_separation: float,
    epsilon: float,
    beta: float,
    *,
    n: int | None = None,
    rank: int | None = None,
    version: Version = "corrected",
) -> float:
    """Gap under a Cauchy prior with scale `width / 2` for data within `radius` of its location (`cor:cauchy`).

    min_separation: least distance between records. n, rank: number of records and `floor(q n)`, where known. The
    printed bound holds for n >= 3 and for rank >= 1. With n = 2 and rank 0 the optimal cell is the left tail and may
    have half the claimed mass; with n = 1 there is no separation at all and the tail's own mass is used.

    >>> round(cor_cauchy(5, 10, 0.01, epsilon=1, beta=0.05), 6)
    22.096435
    """
    check_arguments(version, radius=radius, width=width, epsilon=epsilon, beta=beta)
    if version == "corrected" and n == 1:
        return 2 / epsilon * (-math.log(beta) - math.log(math.atan(width / 2 / radius) / math.pi))
    check_arguments(version, min_separation=min_separation)
    bound = 2 / epsilon * (-math.log(beta) - log_cauchy_mass(radius, width, min_separation))
    inner = rank is not None and rank >= 1
    few = n is None or n < 3
    return (
        bound + 2 / epsilon * math.log(2) if version == "corrected" and n is not None and few and not inner else bound
    )


def lem_error(
    relative: Fraction | None = None, *, edge: Edge = "none", rounded: bool = True, version: Version = "corrected"
) -> Fraction:
    """Ranks that both inequalities of `lem:error` need beyond the weighted error of the node's edges.

    relative: exact relative quantile in (0, 1), or None for all of them at once. edge: which edge of the node is an end
    of the data, whose quantile is 0 or 1 and whose error is 0. The paper's version is 0, which is right for the
    unrounded gap only. The corrected slack is sharp: attained for each rational `relative`, and below 2 always (for
    None the inequality with slack 2 is strict).

    >>> lem_error(Fraction(1, 2)), lem_error(Fraction(3, 8)), lem_error(Fraction(1, 8)), lem_error()
    (Fraction(1, 1), Fraction(7, 4), Fraction(7, 4), Fraction(2, 1))
    >>> lem_error(Fraction(1, 2), edge="left"), lem_error(Fraction(1, 8), edge="right")
    (Fraction(1, 2), Fraction(13, 8))
    """
    check_arguments(version)
    if edge not in ("none", "left", "right"):
        raise ValueError(f"edge must be 'none', 'left' or 'right', got {edge!r}")
    if version == "paper" or not rounded:
        return Fraction(0)
    if relative is None:
        return Fraction(2)
    relative = Fraction(relative)
    if not 0 < relative < 1:
        raise ValueError(f"relative must be inside (0, 1), got {relative}")
    shift = {"none": Fraction(1), "left": relative, "right": 1 - relative}[edge]
    return 1 + shift - Fraction(2, relative.denominator)


def cor_quantile(log_psi_robust: float, epsilon: float, beta: float, weight: float) -> tuple[float, float]:
    """Robustness and consistency of one quantile with weight lambda on the robust prior (`cor:quantile`).

    Robust in the sense of `def:robustness`, consistent in that of `def:consistency`.

    log_psi_robust: log inner product of the robust prior. Returns the two gaps, infinite where the weight makes them
    so.

    >>> [round(b, 6) for b in cor_quantile(math.log(0.01), epsilon=1, beta=0.05, weight=0.1)]
    [19.806975, 6.202186]
    """
    check_arguments("corrected", epsilon=epsilon, beta=beta)
    log_robust, log_consistent = log_weights(weight)
    return lem_quantile(log_psi_robust + log_robust, epsilon, beta), lem_quantile(log_consistent, epsilon, beta)


def log_weights(weight: float) -> tuple[float, float]:
    """log(lambda) and log(1 - lambda)."""
    if not 0 <= weight <= 1:
        raise ValueError(f"weight must be in [0, 1], got {weight!r}")
    return (math.log(weight) if weight > 0 else -math.inf), (math.log1p(-weight) if weight < 1 else -math.inf)
