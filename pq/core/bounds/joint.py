"""Guarantees of joint releases: one bound for all quantiles at once (Section 3.2, beyond the paper).

A joint release weighs ordered outputs o by exp(-rate S(o)) times a base measure of mass H, S the sum over j of
|n_j(o) - nu p_j| with the best total nu, or with a total that is drawn from the multiples of a step s. Let B be any set
of outputs, such as the box of outputs that have wished-for ranks, Psi its share of the base measure, and S_B the
largest score in it.

*Best total.* The weight of {S >= S_B + t} is at most H exp(-rate (S_B + t)), that of B at least Psi H exp(-rate S_B),
so

    P(S >= S_B + t) <= exp(-rate t) / Psi.

With rate = epsilon / 2 the excess t = (2 / epsilon) log(1 / (beta Psi)) is exceeded with probability at most beta: the
paper's `lem:quantile`, with the joint prior's mass of the optimal box in the place of one prior's mass of one cell.

*Drawn total.* |n - nu| <= S, so the weight of {S >= v} is at most H times the sum over the grid of
exp(-rate max(v, |n - nu|)), which is at most exp(-rate v) (2 v / s + 1 + 2 / (exp(rate s) - 1)). S moves by at most one
per unit of nu and some total of the grid is within s / 2 of the best one, so B weighs at least Psi H exp(-rate (S_B +
s/2)).

*Gap.* With c_j records below output j, c_j - n q_j = (1 - q_j) a - q_j b for the signed distances a = c_j - nu q_j and
b = (n - c_j) - nu (1 - q_j), and |a| + |b| <= S whatever nu: each gap |c_j - q_j n| is at most max(q_j, 1 - q_j) S. All
quantiles have this bound at once; no union over them is paid for, only the mass of the box.
"""

from __future__ import annotations

import math

from pq.core.bounds.quantiles import check_arguments

__all__ = ["joint_gap", "joint_score"]


def joint_score(
    log_psi: float,
    epsilon: float,
    beta: float,
    *,
    box_score: float = 0.0,
    counts_moved: int = 1,
    total_step: float | None = None,
) -> float:
    """Score of a joint release that is exceeded with probability at most beta.

    log_psi: log of the share of the joint prior in a set of outputs, at most 0. box_score: largest score in that set,
    with its best total. counts_moved: 1 under add-remove, 2 under replace: the rate is `epsilon / (2 counts_moved)`.
    total_step: distance of the totals of a release that draws one; None for the best total. Returns records. Raises
    `ValueError` naming the argument.

    >>> round(joint_score(math.log(0.01), epsilon=1, beta=0.05), 6)
    15.201805
    """
    check_arguments("corrected", epsilon=epsilon, beta=beta, counts_moved=counts_moved)
    rate = epsilon / (2 * counts_moved)
    excess = (-math.log(beta) - log_psi) / rate
    if total_step is None:
        return box_score + excess
    check_arguments("corrected", total_step=total_step)
    start = box_score + total_step / 2 + excess
    low, high = start, start + 4.0 * (start + total_step + 1.0 / rate)
    while rate * (high - start) < _log_totals(high, rate, total_step):
        high *= 2.0
    for _ in range(200):  # the least v with rate (v - start) >= log of the number of totals that may score v
        middle = 0.5 * (low + high)
        low, high = (
            (low, middle) if rate * (middle - start) >= _log_totals(middle, rate, total_step) else (middle, high)
        )
    return high


def _log_totals(score: float, rate: float, step: float) -> float:
    return math.log(2.0 * score / step + 1.0 + 2.0 / math.expm1(rate * step))


def joint_gap(
    quantile: float,
    log_psi: float,
    epsilon: float,
    beta: float,
    *,
    box_score: float = 0.0,
    counts_moved: int = 1,
    total_step: float | None = None,
) -> float:
    """Unrounded gap |c - q n| of a joint release's output, for all quantiles at once except with probability beta.

    quantile: in [0, 1]; the bound is `max(q, 1 - q)` times the score's. The other arguments: see `joint_score`.

    >>> round(joint_gap(0.5, math.log(0.01), epsilon=1, beta=0.05), 6)
    7.600902
    """
    if not 0 <= quantile <= 1:
        raise ValueError(f"quantile must lie in [0, 1], got {quantile!r}")
    bound = joint_score(
        log_psi, epsilon, beta, box_score=box_score, counts_moved=counts_moved, total_step=total_step
    )  # fmt: skip
    return max(quantile, 1 - quantile) * bound
