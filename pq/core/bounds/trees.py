"""Guarantees for several quantiles from one tree: Section 3.3, Appendices A.2, B.1 and D.

Conventions as in `pq.core.bounds.quantiles`. `log_psi` is the log of the harmonic mean of the m inner products. The
rounded targets of the nodes cost a few ranks at each level below the root (see `lem_error`); with the unrounded utility
(`rounded=False`) the error is measured from `q n` and the cost vanishes.
"""

from __future__ import annotations

import math

from pq.core.bounds.quantiles import Version, check_arguments, log_cauchy_mass, log_weights
from pq.core.bounds.rounding import binary_rounding, dyadic_rounding, fibonacci
from pq.core.plan import kary_arity

PHI = (1 + math.sqrt(5)) / 2

__all__ = [
    "binary_depth",
    "c_p",
    "cor_multi_cauchy",
    "cor_multiple",
    "expectation_bound",
    "kary_constant",
    "kary_depth",
    "lem_empirical",
    "lem_empirical_quantiles",
    "lem_prior",
    "naive_multiple",
    "thm_binary",
    "thm_kary",
    "tree_zcdp",
    "uniform_multiple",
]


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
    that the mechanism is run with; Algorithm 2 divides by the number of mechanisms of the node. slack: from
    `lem_error`. Holds before sorting, and where no record equals the lower edge.

    >>> round(lem_empirical(20, 3, math.log(0.1), epsilon_i=1), 6)
    0.005531
    """
    check_arguments(version, epsilon_i=epsilon_i)
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
    check_arguments(version, epsilon_i=epsilon_i)
    extra = slack if version == "corrected" else 0.0
    return min(1.0, math.exp(min(0.0, epsilon_i * (edge_error + extra - gamma / 2) - log_psi)))


def lem_empirical_quantiles(
    log_psi: float, epsilon: float, m: int, beta: float, *, rounded: bool = True, version: Version = "corrected"
) -> float:
    """Largest gap of m quantiles in terms of the restricted priors and records (`lem:empirical-quantiles`).

    log_psi: log of the harmonic mean of the m inner products, random as they are. The tree has `ceil(log2(m + 1))`
    levels; the printed `ceil(log2 m)` overspends for m a power of two and divides by zero at m = 1 (returned as
    infinity). Each level below the root adds less than 2 ranks of rounding. Holds for priors without atoms at the
    records: Algorithm 2 keeps a record that equals an output on neither side of it.

    >>> round(lem_empirical_quantiles(math.log(0.01), epsilon=1, m=7, beta=0.05), 6)
    175.842627
    """
    check_arguments(version, epsilon=epsilon, m=m, beta=beta)
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
    240.894297
    """
    check_arguments(version, radius=radius, width=width, min_separation=min_separation, epsilon=epsilon, m=m, beta=beta)
    return _any_node(log_cauchy_mass(radius, width, min_separation), epsilon, m, beta, version)


def uniform_multiple(
    width: float, min_separation: float, epsilon: float, m: int, beta: float, *, version: Version = "corrected"
) -> float:
    """Largest gap of m quantiles with uniform priors on an interval that holds the data, n >= 1 (Section 3.3 on
    ApproximateQuantiles).

    The paper has `log(m)**2 / epsilon * log(m (b - a) / (beta psi))` up to a constant, which is 2. Corrected: depth
    `ceil(log2(m + 1))`, and the ranks of `cor_multi_cauchy`, which no epsilon removes.

    width: b - a. min_separation: psi, of records and from the first to a.

    >>> round(uniform_multiple(1.0, 0.01, epsilon=1, m=7, beta=0.05), 6)
    178.842627
    """
    check_arguments(version, width=width, min_separation=min_separation, epsilon=epsilon, m=m, beta=beta)
    return _any_node(math.log(min_separation / width), epsilon, m, beta, version)


def _any_node(log_mass: float, epsilon: float, m: int, beta: float, version: Version) -> float:
    """`lem_empirical_quantiles` for priors that give any cell between records that mass, conditional adaptation."""
    bound = lem_empirical_quantiles(log_mass, epsilon, m, beta, version=version)
    # a node's leftmost cell may be shorter, and the next is one rank off: e**(-epsilon_i / 2) of the mass is left
    return bound + binary_depth(m) if version == "corrected" else bound


def thm_binary(
    log_psi: float, epsilon: float, m: int, beta: float, *, rounded: bool = True, version: Version = "corrected"
) -> float:
    """Largest gap of m = 2**k - 1 uniformly spaced quantiles under edge adaptation (`thm:binary`).

    log_psi: log of the harmonic mean of the inner products with the original priors and records. Corrected: the
    constant of depth k is `F_{k+2} - 1` (sharp, about 1.17 phi**k; the printed phi**k is too small from m = 15 on),
    and rounding adds `binary_rounding(k)` ranks. Holds for priors without atoms at the records, as
    `lem_empirical_quantiles`.

    >>> round(thm_binary(math.log(0.01), epsilon=1, m=15, beta=0.05), 6)
    583.301349
    >>> round(thm_binary(math.log(0.01), epsilon=1, m=15, beta=0.05, version="paper"), 6)
    565.268902
    """
    check_arguments(version, epsilon=epsilon, m=m, beta=beta)
    if m & (m + 1):
        raise ValueError(f"m must be a power of two minus one, got {m}")
    depth = binary_depth(m)
    spread = math.log(m / beta) - log_psi
    if version == "paper":
        return 2 / epsilon * PHI ** math.log2(m + 1) * depth * spread
    return 2 / epsilon * (fibonacci(depth + 2) - 1) * depth * spread + (binary_rounding(depth) if rounded else 0)


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
    """Largest gap of any m quantiles in a K-ary tree under edge adaptation (`thm:kary`, `thm:kary-main`).

    p: power of the budgets `k**-p` by depth. arity: K, by default `ceil(exp(sqrt(log 2 log(m + 1))))` (the printed
    version allows no other). Corrected: `2 (K - 1) H A / epsilon` with `A = sum 2**(k-j) j**p` and `H = sum k**-p`
    over the k levels, plus less than `4 (2**(k-1) - 1)` ranks of rounding. The printed last step drops a ceiling; the
    printed bound is too small at m = 83,521, say. divided_twice: Algorithm 2 divides by the number of a node's
    mechanisms budgets that the theorem has divided by K - 1 already; run so, the release is epsilon / (K - 1)-private
    and the bound is K - 1 times larger. Holds for priors without atoms at the records, as `lem_empirical_quantiles`.

    >>> round(thm_kary(math.log(0.01), epsilon=1, m=100, beta=0.05), 1)
    3500.9
    """
    check_arguments(version, epsilon=epsilon, m=m, beta=beta)
    spread = math.log(m / beta) - log_psi
    if version == "paper":
        return c_p(p) / epsilon * math.exp(2 * math.sqrt(math.log(2) * math.log(m + 1))) * spread
    arity = kary_arity(m) if arity is None else arity
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
    133.655377
    """
    check_arguments("corrected", epsilon=epsilon, m=m, beta=beta)
    return 2 * m / epsilon * (math.log(m / beta) - log_psi)


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
    (`cor:multiple`, `cor:cauchy-robust`).

    weight: lambda in [0, 1] on the Cauchy prior. Corrected (n >= 3): `ceil(log2(m + 1))` levels, the constant of
    `thm_binary` in place of `phi**log2(m)`, and the rounding of each level; for predictions without atoms at the
    records. Returns the two largest gaps.

    >>> [round(b, 6) for b in cor_multiple(5, 10, 0.01, epsilon=1, m=7, beta=0.05, weight=0.1)]
    [276.590828, 124.128071]
    """
    check_arguments(version, radius=radius, width=width, min_separation=min_separation, epsilon=epsilon, m=m, beta=beta)
    if m & (m + 1):
        raise ValueError(f"m must be a power of two minus one, got {m}")
    log_robust, log_consistent = log_weights(weight)
    log_mass = log_cauchy_mass(radius, width, min_separation) + log_robust
    if version == "paper":
        depth = (m - 1).bit_length()
        consistent = 2 / epsilon * PHI ** math.log2(m) * depth * (math.log(m / beta) - log_consistent)
        return lem_empirical_quantiles(log_mass, epsilon, m, beta, version="paper"), consistent
    robust = lem_empirical_quantiles(log_mass, epsilon, m, beta, rounded=False) + dyadic_rounding(binary_depth(m))
    return robust, thm_binary(log_consistent, epsilon, m, beta)


def expectation_bound(
    log_psi: float, epsilon: float, m: int, n: int, *, p: float = 2.0, version: Version = "corrected"
) -> float:
    """Expectation of the largest gap of m quantiles in a K-ary tree (`eq:expectation-bound`).

    log_psi: mean over data sets of the log of the harmonic mean. The paper's route puts `beta = C / n` into
    `thm_kary` and uses that no gap exceeds n, with C the factor before the logarithm: `C (log(m n / C) - log_psi +
    1)`, which asks for C <= n. Corrected: integrating the tail gives `C (log(m) - log_psi + 1)`, with no n inside the
    logarithm, plus rounding; never above n. Priors as for `thm_kary`.

    >>> expectation_bound(math.log(0.5), 1, 3, 10**6) < expectation_bound(math.log(0.5), 1, 3, 10**6, version="paper")
    True
    """
    check_arguments(version, epsilon=epsilon, m=m, n=n)
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
