"""The guarantee of private counts of cells: one bound for all quantiles that there are (Section 3.1, beyond the paper).

Let W_j be the sum of the noises of the first j of B cells, D the largest |W_j|, C_j the records in these cells and F_j
what isotonic least squares makes of the noisy running sums C_j + W_j. Isotonic regression does not increase distances
in the largest norm and leaves the increasing C_j as they are, so |F_j - C_j| <= D for every j, the total among them. A
value read off at level q lies in a cell j with F_(j-1) <= q F_B <= F_j, so with at most r records in a cell

    C_j <= C_(j-1) + r <= F_(j-1) + D + r <= q F_B + D + r <= q n + (1 + q) D + r,

and as much the other way: the gap of every q in [0, 1] at once is at most (1 + q) D + r. There is no m in it, and D is
of the order of sqrt(B) / epsilon whatever the data.
"""

from __future__ import annotations

from fractions import Fraction

from pq.core.bounds.checks import check_probability
from pq.core.bounds.quantiles import check_arguments
from pq.core.noise import DiscreteLaplace
from pq.core.rank_bounds import running_sum_radius

__all__ = ["cells_gap"]


def cells_gap(
    quantile: float, cells: int, largest: float, epsilon: float, beta: float, *, counts_moved: int = 1
) -> float:
    """Unrounded gap |c - q n| of quantiles of noisy counts, isotonically decoded, for all that there are at once.

    quantile: in [0, 1]. cells: number B of cells. largest: most records in one of them. epsilon: budget of the counts.
    beta: probability with which some quantile may exceed its bound. counts_moved: 1 under add-remove, 2 under replace.
    Returns records. Raises `ValueError` naming the argument.

    >>> cells_gap(0.5, cells=40, largest=25, epsilon=1, beta=0.05)
    52.0
    """
    check_arguments("corrected", cells=cells, epsilon=epsilon, counts_moved=counts_moved)
    check_probability(beta=beta)
    if not 0 <= quantile <= 1:
        raise ValueError(f"quantile must lie in [0, 1], got {quantile!r}")
    if not largest >= 0:
        raise ValueError(f"largest must not be negative, got {largest!r}")
    radius = running_sum_radius(DiscreteLaplace(Fraction(epsilon) / counts_moved), cells, beta)
    return (1 + quantile) * radius + largest
