"""Guarantees for trees that are better than the paper's and are not in it; each is proved by a check in
`proofs_checks.section_3_3.shares` and `dyadic`.

Conventions as in `pq.core.bounds.trees`. Budgets are shares of the total for the levels 1, 2, ... of the tree; a node
shares its level's budget equally among its mechanisms.
"""

from __future__ import annotations

import math

from pq.core.bounds.quantiles import check_arguments
from pq.core.bounds.rounding import binary_rounding, dyadic_rounding, fibonacci
from pq.core.bounds.trees import binary_depth, kary_depth

__all__ = [
    "best_arity",
    "binary_shares",
    "binary_weighted",
    "dyadic_conditional",
    "dyadic_constant",
    "dyadic_prices",
    "kary_shares",
    "kary_weighted",
]


def binary_shares(depth: int) -> list[float]:
    """Shares of the budget by level that minimise the recurrence of `thm:binary`: proportional to `sqrt(F_{d-k+1})`.

    >>> [round(share, 4) for share in binary_shares(4)]
    [0.3366, 0.2748, 0.1943, 0.1943]
    """
    weights = [math.sqrt(fibonacci(depth - k + 1)) for k in range(1, depth + 1)]
    return [weight / math.fsum(weights) for weight in weights]


def binary_weighted(log_psi: float, epsilon: float, m: int, beta: float, *, rounded: bool = True) -> float:
    """Largest gap of m = 2**k - 1 uniformly spaced quantiles under edge adaptation, with `binary_shares` (`thm:binary`
    sharpened).

    log_psi: log of the harmonic mean of the inner products at these budgets. The constant is `(sum sqrt(F_j))**2` over
    j = 1..k, never above the `k (F_{k+2} - 1)` of equal budgets, and below `9.7792 phi**k`, the supremum: no logarithm
    of m beside `phi**log2(m + 1)`. Priors as for `thm_binary`.

    >>> round(binary_weighted(math.log(0.01), epsilon=1, m=15, beta=0.05), 6)
    552.045367
    """
    check_arguments("corrected", epsilon=epsilon, m=m, beta=beta)
    if m & (m + 1):
        raise ValueError(f"m must be a power of two minus one, got {m}")
    depth = binary_depth(m)
    constant = math.fsum(math.sqrt(fibonacci(j)) for j in range(1, depth + 1)) ** 2
    slack = binary_rounding(depth) if rounded else 0
    return 2 / epsilon * constant * (math.log(m / beta) - log_psi) + slack


def kary_shares(depth: int) -> list[float]:
    """Shares of the budget by level that minimise the recurrence of `thm:kary`: proportional to `2**((d - k) / 2)`.

    >>> [round(share, 4) for share in kary_shares(3)]
    [0.4531, 0.3204, 0.2265]
    """
    weights = [math.sqrt(2.0 ** (depth - k)) for k in range(1, depth + 1)]
    return [weight / math.fsum(weights) for weight in weights]


def kary_weighted(
    log_psi: float, epsilon: float, m: int, beta: float, *, arity: int | None = None, rounded: bool = True
) -> float:
    """Largest gap of any m quantiles in a K-ary tree under edge adaptation, with `kary_shares` (`thm:kary` sharpened).

    arity: K, by default the one that makes this bound least. The constant is `(K - 1) ((2**(d/2) - 1) / (sqrt 2 -
    1))**2`, at most `5.83 (K - 1) 2**d`, where powers of the depth give `c_p / 2 >= 8.41` in place of 5.83. Priors as
    for `thm_kary`.

    >>> round(kary_weighted(math.log(0.01), epsilon=1, m=100, beta=0.05, arity=6), 1)
    2390.4
    """
    check_arguments("corrected", epsilon=epsilon, m=m, beta=beta)
    arity = best_arity(m) if arity is None else arity
    if arity < 2:
        raise ValueError(f"arity must be at least 2, got {arity}")
    slack = 4 * (2 ** (kary_depth(m, arity) - 1) - 1) if rounded else 0
    return 2 / epsilon * _kary_factor(m, arity) * (math.log(m / beta) - log_psi) + slack


def _kary_factor(m: int, arity: int) -> float:
    depth = kary_depth(m, arity)
    return (arity - 1) * ((2 ** (depth / 2) - 1) / (math.sqrt(2) - 1)) ** 2


def best_arity(m: int) -> int:
    """The K that makes `kary_weighted` least, up to rounding of ranks.

    >>> [best_arity(m) for m in (1, 3, 9, 99)]
    [2, 4, 10, 10]
    """
    if m < 1:
        raise ValueError(f"m must be positive, got {m!r}")
    # within a depth the smallest K is best, and K**depth > m
    candidates = {2}
    for depth in range(1, binary_depth(m) + 1):
        arity = max(2, round((m + 1) ** (1 / depth)) - 1)
        while kary_depth(m, arity) > depth:
            arity += 1
        candidates.add(arity)
    return min(sorted(candidates), key=lambda arity: _kary_factor(m, arity))


def dyadic_constant(depth: int) -> float:
    """B_d of `B_k = 1 + (B_{k-1} + B_{k-2}) / 2`, B_0 = 0, B_1 = 1: `2 d / 3 + 2 / 9 (1 - (-1 / 2)**d)`.

    >>> [dyadic_constant(d) for d in (1, 2, 3)]
    [1.0, 1.5, 2.25]
    """
    return 2 * depth / 3 + 2 / 9 * (1 - (-0.5) ** depth)


def dyadic_prices(depth: int) -> list[float]:
    """Shares of the failure probability by level that cost nothing: proportional to `h_{d-l}`, the weight with which an
    error at level l reaches the leaves, `h_j = 2 / 3 + (-1 / 2)**j / 3`.

    >>> [round(share, 4) for share in dyadic_prices(3)]
    [0.3333, 0.2222, 0.4444]
    """
    weights = [2 / 3 + (-0.5) ** (depth - level) / 3 for level in range(1, depth + 1)]
    return [weight / math.fsum(weights) for weight in weights]


def dyadic_conditional(log_psi: float, epsilon: float, m: int, beta: float, *, rounded: bool = True) -> float:
    """Largest gap of m = 2**k - 1 uniformly spaced quantiles, restricted priors (`lem:empirical-quantiles` sharpened).

    log_psi: log of the harmonic mean of the restricted inner products. One edge of a node lies a level up and the
    other at least two, and each counts half: about two thirds of the printed bound, `2 / epsilon d B_d log(m / (beta
    psi))` and the rounding. The failure probability is shared by `dyadic_prices`, which no run changes. Holds for
    priors without atoms at the records.

    >>> round(dyadic_conditional(math.log(1e-9), epsilon=1, m=15, beta=0.05), 6)
    609.697111
    """
    check_arguments("corrected", epsilon=epsilon, m=m, beta=beta)
    if m & (m + 1):
        raise ValueError(f"m must be a power of two minus one, got {m}")
    depth = binary_depth(m)
    spread = math.log(m / beta) - log_psi
    return 2 / epsilon * depth * dyadic_constant(depth) * spread + (dyadic_rounding(depth) if rounded else 0)
