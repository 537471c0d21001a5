"""Ranks that the floors of a tree's targets cost: Section 3.3 and Appendix A.2 (`thm:binary`).

Conventions as in `pq.core.bounds.quantiles`.
"""

from __future__ import annotations

__all__ = ["binary_rounding", "dyadic_rounding", "fibonacci"]


def fibonacci(j: int) -> int:
    """Fibonacci number F_j with F_1 = F_2 = 1 (`thm:binary`).

    >>> [fibonacci(j) for j in range(8)]
    [0, 1, 1, 2, 3, 5, 8, 13]
    """
    a, b = 0, 1
    for _ in range(j):
        a, b = b, a + b
    return a


def binary_rounding(depth: int) -> int:
    """Ranks that the floors of a uniform binary tree of that depth cost under edge adaptation, `F_{k+2} - 2` at most
    (`thm:binary`).

    A level adds twice the slack of `lem_error` at 1/2: one rank in the nodes at an end of the data, two elsewhere.

    >>> [binary_rounding(k) for k in (1, 2, 3, 4, 7)]
    [0, 1, 3, 6, 32]
    """
    return fibonacci(depth + 2) - 2


def dyadic_rounding(depth: int) -> float:
    """The same where priors are restricted, so that each edge counts half: `R_k = 1 + (R_{k-1} + R_{k-2}) / 2` from
    R_1 = 0 and R_2 = 1/2.

    >>> [dyadic_rounding(k) for k in (1, 2, 3, 4, 5)]
    [0.0, 0.5, 1.25, 1.875, 2.5625]
    """
    before, now = 0.0, 0.5
    for _ in range(depth - 1):
        before, now = now, 1 + (now + before) / 2
    return before
