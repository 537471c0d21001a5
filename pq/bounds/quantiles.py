"""Guarantees of Sections 3 and 4.1 and Appendices A, B.1 and D, as numbers that help to choose parameters.

Every function takes plain numbers, sees no data and returns the bound on the gap (in ranks) that its label promises.
Where the paper is off, `version="corrected"` (the default) is the best statement that is proved here and
`version="paper"` the printed one. `log_psi` is the natural logarithm of an inner product of prior and score, at most
0; for several quantiles it is the log of their harmonic mean. Priors are probability measures unless `log_total` says
otherwise. A rounded target `floor(q n)` costs a few ranks at each level of the tree (see `lem_error`); with the
unrounded utility (`rounded=False`) the error is measured from `q n` and the cost vanishes.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

Version = Literal["corrected", "paper"]
PHI = (1 + math.sqrt(5)) / 2

__all__ = [
    "binary_depth",
    "c_p",
    "cor_cauchy",
    "cor_multi_cauchy",
    "cor_multiple",
    "cor_quantile",
    "expectation_bound",
    "expected_gap",
    "fibonacci",
    "kary_constant",
    "kary_depth",
    "lem_empirical",
    "lem_empirical_quantiles",
    "lem_error",
    "lem_prior",
    "lem_quantile",
    "naive_multiple",
    "thm_binary",
    "thm_kary",
    "tree_zcdp",
    "uniform_bound",
]


def _check(version: str, **positive: float) -> None:
    if version not in ("corrected", "paper"):
        raise ValueError(f"version must be 'corrected' or 'paper', got {version!r}")
    for name, value in positive.items():
        if not value > 0:
            raise ValueError(f"{name} must be positive, got {value!r}")


def binary_depth(m: int) -> int:
    """Levels of the binary tree on m quantiles, `ceil(log2(m + 1))` (`alg:quantiles`).

    >>> [binary_depth(m) for m in (1, 2, 3, 4, 7, 8)]
    [1, 2, 2, 3, 3, 4]
    """
    return m.bit_length()


def kary_depth(m: int, arity: int) -> int:
    """Levels of the K-ary tree on m quantiles, `ceil(log_K(m + 1))`: the number of base-K digits of m
    (`alg:quantiles`).

    >>> kary_depth(80, 9), kary_depth(81, 9)
    (2, 3)
    """
    depth = 0
    while m:
        m //= arity
        depth += 1
    return depth


def fibonacci(j: int) -> int:
    """Fibonacci number F_j with F_1 = F_2 = 1 (`thm:binary`).

    >>> [fibonacci(j) for j in range(8)]
    [0, 1, 1, 2, 3, 5, 8, 13]
    """
    a, b = 0, 1
    for _ in range(j):
        a, b = b, a + b
    return a


def _least_arity(m: int) -> int:
    """ceil(exp(sqrt(log 2 log(m + 1)))); the root is an integer, 2**b, at m + 1 = 2**(b * b) only."""
    b = math.isqrt((m + 1).bit_length() - 1)
    if m + 1 == 1 << b * b:
        return 1 << b
    return math.ceil(math.exp(math.sqrt(math.log(2) * math.log(m + 1))))


def lem_quantile(
    log_psi: float,
    epsilon: float,
    beta: float,
    *,
    sensitivity: float = 1.0,
    log_total: float = 0.0,
    version: Version = "corrected",
) -> float:
    """Gap of one exponential mechanism that is exceeded with probability at most beta (`lem:quantile`, `eq:basic`).

    log_psi: log inner product of prior and score, with or without the epsilon. sensitivity: D of the rate `epsilon /
    (2 D)`; below 1 the gap is the unrounded one. log_total: log of the prior's total mass, which the paper takes to
    be 0 without saying so. Returns `2 D / epsilon * (log(1 / beta) + log_total - log_psi)`.

    >>> round(lem_quantile(math.log(0.01), epsilon=1, beta=0.05), 6)
    15.201805
    """
    _check(version, epsilon=epsilon, beta=beta, sensitivity=sensitivity)
    total = log_total if version == "corrected" else 0.0
    return 2 * sensitivity / epsilon * (total - math.log(beta) - log_psi)


def expected_gap(log_psi: float, epsilon: float) -> float:
    """Bound on the expected gap of one exponential mechanism, `2 / epsilon * U` (sharper than the paper; not in it).

    The mean of `exp(epsilon / 2 * gap)` under the mechanism is exactly `1 / psi`, so Jensen gives the bound with no
    log(1 / beta).

    >>> round(expected_gap(math.log(0.01), epsilon=1), 6)
    9.21034
    """
    _check("corrected", epsilon=epsilon)
    return -2 * log_psi / epsilon


def uniform_bound(
    width: float, min_separation: float, epsilon: float, beta: float, *, version: Version = "corrected"
) -> float:
    """Gap under the uniform prior on an interval that holds the data (Section 3.2, after `lem:quantile`).

    min_separation: least distance between records; for version "corrected" also from the first record to the lower
    end of the interval, unless `floor(q n)` is at least 1. The formula is the same.

    >>> round(uniform_bound(1.0, 0.01, epsilon=1, beta=0.05), 6)
    15.201805
    """
    _check(version, width=width, min_separation=min_separation, epsilon=epsilon, beta=beta)
    return 2 / epsilon * math.log(width / (beta * min_separation))


def _log_cauchy_mass(radius: float, width: float, min_separation: float) -> float:
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
    _check(version, radius=radius, width=width, epsilon=epsilon, beta=beta)
    if version == "corrected" and n == 1:
        return 2 / epsilon * (-math.log(beta) - math.log(math.atan(width / 2 / radius) / math.pi))
    _check(version, min_separation=min_separation)
    bound = 2 / epsilon * (-math.log(beta) - _log_cauchy_mass(radius, width, min_separation))
    inner = rank is not None and rank >= 1
    few = n is None or n < 3
    return (
        bound + 2 / epsilon * math.log(2) if version == "corrected" and n is not None and few and not inner else bound
    )


def lem_error(relative: Fraction | None = None, *, rounded: bool = True, version: Version = "corrected") -> Fraction:
    """Ranks that both inequalities of `lem:error` need beyond the weighted error of the node's edges.

    relative: exact relative quantile in (0, 1), or None for all of them at once. The paper's version is 0, which is
    right for the unrounded gap only. The corrected slack is sharp: attained for each rational `relative`, and below 2
    always (for None the inequality with slack 2 is strict).

    >>> lem_error(Fraction(1, 2)), lem_error(Fraction(3, 8)), lem_error(Fraction(1, 8)), lem_error()
    (Fraction(1, 1), Fraction(7, 4), Fraction(7, 4), Fraction(2, 1))
    """
    _check(version)
    if version == "paper" or not rounded:
        return Fraction(0)
    if relative is None:
        return Fraction(2)
    relative = Fraction(relative)
    if not 0 < relative < 1:
        raise ValueError(f"relative must be inside (0, 1), got {relative}")
    return 2 - Fraction(2, relative.denominator)


def lem_empirical(
    gamma: float,
    edge_error: float,
    log_psi: float,
    epsilon_i: float,
    *,
    slack: float = 2.0,
    version: Version = "corrected",
) -> float:
    """Probability that one node's gap reaches gamma, given its edges (`lem:empirical`, `eq:empirical-probability`).

    edge_error: the weighted error of the edges. log_psi: of the restricted prior and records. epsilon_i: the budget
    that the mechanism is run with; Algorithm 1 divides by the number of mechanisms of the node. slack: from
    `lem_error`. Holds before sorting.

    >>> round(lem_empirical(20, 3, math.log(0.1), epsilon_i=1), 6)
    0.005531
    """
    _check(version, epsilon_i=epsilon_i)
    extra = slack if version == "corrected" else 0.0
    return min(1.0, math.exp(min(0.0, epsilon_i / 2 * (edge_error + extra - gamma) - log_psi)))


def lem_prior(
    gamma: float,
    edge_error: float,
    log_psi: float,
    epsilon_i: float,
    *,
    slack: float = 2.0,
    version: Version = "corrected",
) -> float:
    """The same in terms of the original prior and records, under edge adaptation: the edge error counts twice
    (`lem:prior`).

    >>> round(lem_prior(20, 3, math.log(0.1), epsilon_i=1), 6)
    0.067379
    """
    _check(version, epsilon_i=epsilon_i)
    extra = slack if version == "corrected" else 0.0
    return min(1.0, math.exp(min(0.0, epsilon_i * (edge_error + extra - gamma / 2) - log_psi)))


def lem_empirical_quantiles(
    log_psi: float, epsilon: float, m: int, beta: float, *, rounded: bool = True, version: Version = "corrected"
) -> float:
    """Largest gap of m quantiles in terms of the restricted priors and records (`lem:empirical-quantiles`).

    log_psi: log of the harmonic mean of the m inner products, random as they are. The tree has `ceil(log2(m + 1))`
    levels; the printed `ceil(log2 m)` overspends for m a power of two and divides by zero at m = 1 (returned as
    infinity). Each level below the root adds less than 2 ranks of rounding.

    >>> round(lem_empirical_quantiles(math.log(0.01), epsilon=1, m=7, beta=0.05), 6)
    175.175659
    """
    _check(version, epsilon=epsilon, m=m, beta=beta)
    spread = math.log(m / beta) - log_psi
    if version == "paper":
        return 2 / epsilon * (m - 1).bit_length() ** 2 * spread if m > 1 else math.inf
    depth = binary_depth(m)
    return 2 / epsilon * depth**2 * spread + (2 * (depth - 1) if rounded else 0)


def cor_multi_cauchy(
    radius: float,
    width: float,
    min_separation: float,
    epsilon: float,
    m: int,
    beta: float,
    *,
    version: Version = "corrected",
) -> float:
    """Largest gap of m quantiles with Cauchy priors, n >= 2 (`cor:multi-cauchy`).

    Corrected: depth `ceil(log2(m + 1))`, 2 ranks of rounding a level below the root, and 1 rank a level for an
    optimal cell at the left end of a node, whose length no separation of records bounds.

    >>> round(cor_multi_cauchy(5, 10, 0.01, epsilon=1, m=7, beta=0.05), 6)
    240.381999
    """
    _check(version, radius=radius, width=width, min_separation=min_separation, epsilon=epsilon, m=m, beta=beta)
    log_mass = _log_cauchy_mass(radius, width, min_separation)
    bound = lem_empirical_quantiles(log_mass, epsilon, m, beta, version=version)
    return bound + binary_depth(m) if version == "corrected" else bound


def thm_binary(
    log_psi: float, epsilon: float, m: int, beta: float, *, rounded: bool = True, version: Version = "corrected"
) -> float:
    """Largest gap of m = 2**k - 1 uniformly spaced quantiles under edge adaptation (`thm:binary`).

    log_psi: log of the harmonic mean of the inner products with the original priors and records. Corrected: the
    constant of depth k is `F_{k+2} - 1` (sharp, about 1.17 phi**k; the printed phi**k is too small from m = 15 on),
    and rounding adds `2 (F_{k+1} - 1)` ranks.

    >>> round(thm_binary(math.log(0.01), epsilon=1, m=15, beta=0.05), 6)
    580.700425
    >>> round(thm_binary(math.log(0.01), epsilon=1, m=15, beta=0.05, version="paper"), 6)
    565.268247
    """
    _check(version, epsilon=epsilon, m=m, beta=beta)
    if m & (m + 1):
        raise ValueError(f"m must be a power of two minus one, got {m}")
    depth = binary_depth(m)
    spread = math.log(m / beta) - log_psi
    if version == "paper":
        return 2 / epsilon * PHI ** math.log2(m + 1) * depth * spread
    return 2 / epsilon * (fibonacci(depth + 2) - 1) * depth * spread + (
        2 * (fibonacci(depth + 1) - 1) if rounded else 0
    )


def kary_constant(depth: int, p: float) -> float:
    """A_depth of the recurrence `A_k = k**p + 2 A_{k-1}`, A_0 = 0 (`thm:kary`); `6 * 2**k - k**2 - 4 k - 6` for p = 2.

    >>> kary_constant(4, 2)
    58.0
    """
    total = 0.0
    for k in range(1, depth + 1):
        total = k**p + 2 * total
    return total


def c_p(p: float) -> float:
    """The constant `(1 + Lerch(1/2, -p, 2) / 2) * zeta(p)` of `thm:kary`, p > 1.

    Its minimum is 16.8349... at p = 1.6151...; the text's 8.42 is half of it.

    >>> round(c_p(2) - 2 * math.pi**2, 9), round(c_p(1.6151058), 6)
    (0.0, 16.834901)
    """
    if not p > 1:
        raise ValueError(f"p must exceed 1, got {p!r}")
    polylogarithm = math.fsum(j**p / 2.0**j for j in range(1, 400))
    return 2 * polylogarithm * _zeta(p)


def _zeta(p: float, terms: int = 40) -> float:
    """Riemann zeta at p > 1 by Euler and Maclaurin."""
    head = math.fsum(k**-p for k in range(1, terms))
    tail = terms ** (1 - p) / (p - 1) + terms**-p / 2 + p * terms ** (-p - 1) / 12
    return head + tail - p * (p + 1) * (p + 2) * terms ** (-p - 3) / 720


def thm_kary(
    log_psi: float,
    epsilon: float,
    m: int,
    beta: float,
    *,
    p: float = 2.0,
    arity: int | None = None,
    divided_twice: bool = False,
    rounded: bool = True,
    version: Version = "corrected",
) -> float:
    """Largest gap of any m quantiles in a K-ary tree under edge adaptation (`thm:kary`).

    p: power of the budgets `k**-p` by depth. arity: K, by default `ceil(exp(sqrt(log 2 log(m + 1))))` (the printed
    version allows no other). Corrected: `2 (K - 1) H A / epsilon` with `A = sum 2**(k-j) j**p` and `H = sum k**-p`
    over the k levels, plus less than `4 (2**(k-1) - 1)` ranks of rounding. The printed last step drops a ceiling; the
    printed bound is too small at m = 83,521, say. divided_twice: Algorithm 1 divides by the number of a node's
    mechanisms budgets that the theorem has divided by K - 1 already; run so, the release is epsilon / (K - 1)-private
    and the bound is K - 1 times larger.

    >>> round(thm_kary(math.log(0.01), epsilon=1, m=100, beta=0.05), 1)
    3499.3
    """
    _check(version, epsilon=epsilon, m=m, beta=beta)
    spread = math.log(m / beta) - log_psi
    if version == "paper":
        return c_p(p) / epsilon * math.exp(2 * math.sqrt(math.log(2) * math.log(m + 1))) * spread
    arity = _least_arity(m) if arity is None else arity
    if arity < 2:
        raise ValueError(f"arity must be at least 2, got {arity}")
    depth = kary_depth(m, arity)
    harmonic = math.fsum(k**-p for k in range(1, depth + 1))
    twice = arity - 1 if divided_twice else 1
    bound = 2 / epsilon * (arity - 1) * twice * harmonic * kary_constant(depth, p) * spread
    return bound + (4 * (2 ** (depth - 1) - 1) if rounded else 0)


def naive_multiple(log_psi: float, epsilon: float, m: int, beta: float) -> float:
    """Largest gap when m mechanisms run independently with budget `epsilon / m` each: the baseline of Section 3.3.

    >>> round(naive_multiple(math.log(0.01), epsilon=1, m=7, beta=0.05), 6)
    133.654846
    """
    _check("corrected", epsilon=epsilon, m=m, beta=beta)
    return 2 * m / epsilon * (math.log(m / beta) - log_psi)


def cor_quantile(log_psi_robust: float, epsilon: float, beta: float, weight: float) -> tuple[float, float]:
    """Robustness and consistency of one quantile with weight lambda on the robust prior (`cor:quantile`).

    log_psi_robust: log inner product of the robust prior. Returns the two gaps, infinite where the weight makes them
    so.

    >>> [round(b, 6) for b in cor_quantile(math.log(0.01), epsilon=1, beta=0.05, weight=0.1)]
    [19.806975, 6.202186]
    """
    _check("corrected", epsilon=epsilon, beta=beta)
    log_robust, log_consistent = _log_weights(weight)
    return lem_quantile(log_psi_robust + log_robust, epsilon, beta), lem_quantile(log_consistent, epsilon, beta)


def _log_weights(weight: float) -> tuple[float, float]:
    if not 0 <= weight <= 1:
        raise ValueError(f"weight must be in [0, 1], got {weight!r}")
    return (math.log(weight) if weight > 0 else -math.inf), (math.log1p(-weight) if weight < 1 else -math.inf)


def cor_multiple(
    radius: float,
    width: float,
    min_separation: float,
    epsilon: float,
    m: int,
    beta: float,
    weight: float,
    *,
    version: Version = "corrected",
) -> tuple[float, float]:
    """Robustness and consistency of m = 2**k - 1 uniformly spaced quantiles, edge adaptation, Cauchy mix
    (`cor:multiple`).

    weight: lambda in [0, 1] on the Cauchy prior. Corrected (n >= 3): `ceil(log2(m + 1))` levels, the constant of
    `thm_binary` in place of `phi**log2(m)`, and the rounding of each level. Returns the two largest gaps.

    >>> [round(b, 6) for b in cor_multiple(5, 10, 0.01, epsilon=1, m=7, beta=0.05, weight=0.1)]
    [274.828531, 124.863193]
    """
    _check(version, radius=radius, width=width, min_separation=min_separation, epsilon=epsilon, m=m, beta=beta)
    if m & (m + 1):
        raise ValueError(f"m must be a power of two minus one, got {m}")
    log_robust, log_consistent = _log_weights(weight)
    log_mass = _log_cauchy_mass(radius, width, min_separation) + log_robust
    if version == "paper":
        depth = (m - 1).bit_length()
        consistent = 2 / epsilon * PHI ** math.log2(m) * depth * (math.log(m / beta) - log_consistent)
        return lem_empirical_quantiles(log_mass, epsilon, m, beta, version="paper"), consistent
    robust = lem_empirical_quantiles(log_mass, epsilon, m, beta, rounded=False) + binary_depth(m) - 1
    return robust, thm_binary(log_consistent, epsilon, m, beta)


def expectation_bound(
    log_psi: float, epsilon: float, m: int, n: int, *, p: float = 2.0, version: Version = "corrected"
) -> float:
    """Expectation of the largest gap of m quantiles in a K-ary tree (`eq:expectation-bound`).

    log_psi: mean over data sets of the log of the harmonic mean. The paper's route puts `beta = C / n` into
    `thm_kary` and uses that no gap exceeds n, with C the factor before the logarithm: `C (log(m n / C) - log_psi +
    1)`, which asks for C <= n. Corrected: integrating the tail gives `C (log(m) - log_psi + 1)`, with no n inside the
    logarithm, plus rounding; never above n.

    >>> expectation_bound(math.log(0.5), 1, 3, 10**6) < expectation_bound(math.log(0.5), 1, 3, 10**6, version="paper")
    True
    """
    _check(version, epsilon=epsilon, m=m, n=n)
    if version == "paper":
        factor = c_p(p) / epsilon * math.exp(2 * math.sqrt(math.log(2) * math.log(m + 1)))
        return factor * (math.log(m * n / factor) - log_psi + 1)
    # beta = exp(-t), integrated over t > 0, adds the factor once
    return min(float(n), thm_kary(log_psi - 1, epsilon, m, 1.0, p=p))


def tree_zcdp(epsilons: list[float]) -> float:
    """rho of zero-concentrated privacy for the mechanisms of one root-to-leaf path, add-remove (sharper; not in the
    paper).

    A mechanism calibrated to epsilon_i has privacy losses in an interval of that length, hence rho = epsilon_i**2 /
    8; they add.

    >>> tree_zcdp([0.5, 0.5])
    0.0625
    """
    return math.fsum(e * e / 8 for e in epsilons)
