"""What private prefix sums cost: tree aggregation, and the square-root factorisation that beats it at equal privacy.

They are the subroutines of `alg:dpftrl`, with the privacy of `thm:dpftrl` (Appendix B.2); the sums themselves are in
`pq.private.noise`. Both mechanisms write the matrix `A` of prefix sums as `L R` and release `L (R x + z)` with white
noise `z`; they protect one row of `x` because a column of `R` has a known norm, and their error is the norm of the rows
of `L`.

- Tree aggregation: `R` sums dyadic blocks, a column has `T.bit_length()` ones (Dwork et al. 2010, Chan et al. 2011; the
  refinement with estimates from below: Honaker 2015, Kairouz et al. 2021).
- Square root: `L = R = A**(1/2)`, the lower triangular Toeplitz matrix with entries `binom(2k, k) / 4**k` (Henzinger,
  Upadhyay and Upadhyay 2023; Fichtenberger, Henzinger and Upadhyay 2023).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from pq.core.budget.gaussian import noise_multiplier
from pq.core.budget.nodes import check_steps, tree_nodes

__all__ = [
    "MECHANISMS",
    "mean_squared_error",
    "private_noise_std",
    "square_root_coefficients",
    "square_root_sensitivity",
    "square_root_variances",
    "tree_variances",
]

FloatArray = npt.NDArray[np.float64]

MECHANISMS = ("tree", "tree-refined", "square-root")


def tree_variances(steps: int, *, refined: bool = False) -> FloatArray:
    """Variance of each prefix sum of the tree, (T,), in units of `noise_std ** 2`.

    Prefix t adds one node for each one in the binary form of t.

    steps: T, at least 1. refined: whether a node of height h is estimated from all its descendants too, and has
    variance `1 / (2 - 2**-h)`. Raises `ValueError` naming steps.

    >>> tree_variances(4).tolist(), tree_variances(4, refined=True).round(6).tolist()
    ([1.0, 1.0, 2.0, 1.0], [1.0, 0.666667, 1.666667, 0.571429])
    """
    prefixes = np.arange(1, check_steps(steps) + 1)
    total = np.zeros(prefixes.size)
    for height in range(tree_nodes(steps)):
        total += ((prefixes >> height) & 1) * (1.0 / (2.0 - 0.5**height) if refined else 1.0)
    return total


def square_root_coefficients(steps: int) -> FloatArray:
    """The numbers `binom(2k, k) / 4**k` for k = 0, ..., T-1: the power series of `1 / sqrt(1 - z)`.

    >>> square_root_coefficients(4).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    k = np.arange(1, check_steps(steps))
    return np.concatenate([[1.0], np.cumprod(1.0 - 0.5 / k)])


def square_root_variances(steps: int) -> FloatArray:
    """Variance of each prefix sum of the square-root factorisation, (T,), in units of `noise_std ** 2`.

    >>> square_root_variances(3).tolist()
    [1.0, 1.25, 1.390625]
    """
    return np.cumsum(square_root_coefficients(steps) ** 2)


def square_root_sensitivity(steps: int) -> float:
    """Largest Euclidean norm of a column of the square root: that of the first.

    >>> square_root_sensitivity(3) ** 2
    1.390625
    """
    return float(np.sqrt(square_root_variances(steps)[-1]))


def prefix_sensitivity(steps: int, mechanism: str) -> float:
    """How far, in Euclidean norm, a value of norm one moves what the mechanism adds noise to.

    steps: T, at least 1. mechanism: "tree", "tree-refined" or "square-root". Raises `ValueError` naming the argument.

    >>> prefix_sensitivity(4, "tree") ** 2
    3.0
    """
    if mechanism not in MECHANISMS:
        raise ValueError(f"mechanism must be one of {MECHANISMS}, got {mechanism!r}")
    return square_root_sensitivity(steps) if mechanism == "square-root" else float(np.sqrt(tree_nodes(steps)))


def mean_squared_error(steps: int, mechanism: str) -> float:
    """Mean squared error of a prefix sum per coordinate, at the privacy of unit noise on unit values.

    It is the squared sensitivity times the mean of the variances; multiply by the squares of `noise_multiplier` and of
    the sensitivity of a value. Arguments as in `prefix_sensitivity`.

    >>> mean_squared_error(16, "tree"), round(mean_squared_error(16, "square-root"), 6)
    (10.3125, 3.228542)
    """
    if mechanism not in MECHANISMS:
        raise ValueError(f"mechanism must be one of {MECHANISMS}, got {mechanism!r}")
    if mechanism == "square-root":
        variances = square_root_variances(steps)
        return float(variances[-1] * np.mean(variances))
    return float(tree_nodes(steps) * np.mean(tree_variances(steps, refined=mechanism == "tree-refined")))


def segments(steps: int, restarts: Sequence[int]) -> list[int]:
    """The lengths of the runs between public restarts, checked. Raises `ValueError` naming restarts or steps."""
    marks = [0, *(int(mark) for mark in restarts), check_steps(steps)]
    lengths = [after - before for before, after in pairwise(marks)]
    if min(lengths) < 1:
        raise ValueError("restarts must ascend strictly, between 1 and steps - 1")
    return lengths


def private_noise_std(
    steps: int,
    *,
    epsilon: float,
    delta: float,
    gradient_sensitivity: float,
    mechanism: str = "tree",
    restarts: Sequence[int] = (),
) -> float:
    """The noise that makes all points of a run of `DPFTRL` together (epsilon, delta)-private (`thm:dpftrl`).

    It takes the exact number of nodes and the exact Gaussian mechanism.

    steps: T. epsilon: positive. delta: in (0, 1). gradient_sensitivity: how far one change of the data can move one
    gradient, in Euclidean norm, finite and not negative (the same person is in one step only). mechanism, restarts: as
    for `DPFTRL`. Returns a standard deviation, in the gradient's unit. Raises `ValueError` naming the argument.

    >>> round(private_noise_std(8, epsilon=1.0, delta=1e-6, gradient_sensitivity=1.0), 4)
    8.4494
    """
    if not 0 <= gradient_sensitivity <= sys.float_info.max:
        raise ValueError("gradient_sensitivity must be finite and not negative")
    largest = prefix_sensitivity(max(segments(steps, restarts)), mechanism)
    return gradient_sensitivity * largest * noise_multiplier(epsilon, delta)
