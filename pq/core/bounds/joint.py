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

*Mixing.* A base measure that is a mixture has at least the weight of a member times that member's share of B, weights
being of members given that their outputs come out in order. So a mixture costs (2 / epsilon) log(1 / weight) beside the
best of its members, once for all quantiles; m mixtures of independent quantiles may cost m times that.

*Linear in m.* Evenly spaced quantiles, different records, one prior for all whose mass of each cell between records is
at least psi. Let c_j be within w ranks of t_j, the whole number that is nearest to n q_j. If 2 w + 1 is at
most the whole part of n / (m + 1), these windows are apart, so the m outputs have m! times the product of their masses:
at least m! ((2 w + 1) psi)^m of the ordered ones. With nu = n each count is off by at most 2 w + 1, the outer two by
half of it: S_B <= m (2 w + 1). At 2 w + 1 near 2 / epsilon and psi = 1 / (kappa n) that is about
(2 / epsilon) (m (2 + log(epsilon kappa n / (2 m))) + log(1 / beta)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pq.core.bounds.quantiles import check_arguments

__all__ = ["joint_even_gap", "joint_gap", "joint_mixed_gap", "joint_mixed_psi", "joint_score"]


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


def joint_mixed_psi(log_psis: Sequence[float], weights: Sequence[float]) -> float:
    """Log of the share that a mixture of joint priors has in a set of outputs: of the sum of weights times shares.

    log_psis: (l,) logs of the members' shares of their ordered outputs. weights: (l,) not negative, of members given
    that their outputs come out in order; they are divided by their sum. Returns nats: convex in weights when negated,
    and never below a member's own share but for the log of its weight. Raises `ValueError` naming the argument.

    >>> round(math.exp(joint_mixed_psi([math.log(0.5), math.log(0.1)], [1, 3])), 6)
    0.2
    """
    if len(log_psis) != len(weights) or not log_psis:
        raise ValueError("log_psis must hold one number for each of the weights")
    if min(weights) < 0 or not sum(weights) > 0:
        raise ValueError("weights must not be negative and have a positive sum")
    if max(log_psis) > 0:
        raise ValueError("log_psis must be at most 0")
    terms = [math.log(w) + log_psi for w, log_psi in zip(weights, log_psis, strict=True) if w > 0]
    top = max(terms)
    whole = math.log(math.fsum(weights))
    return top + math.log(math.fsum(math.exp(t - top) for t in terms)) - whole if top > -math.inf else top


def joint_mixed_gap(
    quantile: float, log_psi: float, weight: float, epsilon: float, beta: float, **facts: float
) -> float:
    """As `joint_gap`, for a mixture of which the prior of this `log_psi` is a member of some weight.

    weight: in (0, 1], of the member given that outputs come out in order. Consistency, where the member is a good
    prediction, and robustness, where it is a trusted one. Raises `ValueError` naming the argument.

    >>> costs = joint_mixed_gap(0.5, -2.0, 0.1, 1.0, 0.05) - joint_gap(0.5, -2.0, 1.0, 0.05)
    >>> round(costs / math.log(10), 6)  # half of 2 / epsilon, whatever the number of quantiles
    1.0
    """
    if not 0 < weight <= 1:
        raise ValueError(f"weight must lie in (0, 1], got {weight!r}")
    return joint_gap(quantile, log_psi + math.log(weight), epsilon, beta, **facts)  # type: ignore[arg-type]


def joint_even_gap(
    m: int,
    n: int,
    log_cell_mass: float,
    epsilon: float,
    beta: float,
    *,
    counts_moved: int = 1,
    total_step: float | None = None,
) -> float:
    """Largest unrounded gap of a joint release of m evenly spaced quantiles of n different records: linear in m.

    log_cell_mass: log of the least mass that the prior, one for all quantiles, gives to a cell between neighbouring
    records, those beyond the first and the last among them. The other arguments: see `joint_score`. Raises `ValueError`
    naming the argument, n where there are no more records than quantiles.

    >>> round(joint_even_gap(9, 1000, math.log(1e-4), epsilon=1, beta=0.05), 3)
    138.059
    """
    check_arguments("corrected", m=m, epsilon=epsilon, beta=beta, counts_moved=counts_moved)
    widest = n // (m + 1)
    if widest < 1:
        raise ValueError(f"n must be above m, got {n} records for {m} quantiles")
    best, most = math.inf, (widest - 1) // 2
    # convex in the width 2 w + 1 and least at 2 counts_moved / epsilon, so a whole w beside that is best
    least = math.floor(min(counts_moved / epsilon, most + 1) - 0.5)
    for half in {min(max(least, 0), most), min(least + 1, most)}:
        width = 2 * half + 1
        log_psi = min(math.lgamma(m + 1) + m * (math.log(width) + log_cell_mass), 0.0)
        facts = {"box_score": float(m * width), "counts_moved": counts_moved, "total_step": total_step}
        best = min(best, joint_gap(1 / (m + 1), log_psi, epsilon, beta, **facts))  # type: ignore[arg-type]
    return best
