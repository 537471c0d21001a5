"""Private prefix sums: tree aggregation, and the square-root factorisation that beats it at the same privacy.

Paper: the subroutines of Algorithm ``alg:dpftrl`` and the privacy of ``thm:dpftrl`` (Appendix B.2).  Both mechanisms
write the matrix ``A`` of prefix sums as ``L R`` and release ``L (R x + z)`` with white noise ``z``; they protect one
row of ``x`` because a column of ``R`` has a known norm, and their error is the norm of the rows of ``L``.

- Tree aggregation: ``R`` sums dyadic blocks, a column has ``T.bit_length()`` ones (Dwork et al. 2010, Chan et al. 2011;
  the refinement with estimates from below: Honaker 2015, Kairouz et al. 2021).
- Square root: ``L = R = A**(1/2)``, the lower triangular Toeplitz matrix with entries ``binom(2k, k) / 4**k``
  (Henzinger, Upadhyay and Upadhyay 2023; Fichtenberger, Henzinger and Upadhyay 2023).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import fft
from scipy.special import log_ndtr

__all__ = [
    "MECHANISMS",
    "SquareRootAggregator",
    "StepsExceeded",
    "TreeAggregator",
    "mean_squared_error",
    "noise_multiplier",
    "square_root_coefficients",
    "square_root_sensitivity",
    "square_root_variances",
    "tree_nodes",
    "tree_variances",
]

FloatArray = npt.NDArray[np.float64]

MECHANISMS = ("tree", "tree-refined", "square-root")
_FIRST_BLOCK = 64


class StepsExceeded(RuntimeError):
    """A step more than was planned: its privacy has not been paid for."""


def _check_steps(steps: int) -> int:
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 1:
        raise ValueError("steps must be an integer, at least 1")
    return int(steps)


def tree_nodes(steps: int) -> int:
    """Return how many nodes of the tree the value of one step can touch: the squared sensitivity.

    The first value of T is in the blocks of lengths 1, 2, 4, ..., up to T: ``T.bit_length()`` of them.  The paper's
    ``ceil(log2 T)`` (``thm:dpftrl``) is one short when T is a power of two.

    >>> [tree_nodes(steps) for steps in (1, 2, 3, 4, 7, 8)]
    [1, 2, 2, 3, 3, 4]
    """
    return _check_steps(steps).bit_length()


def tree_variances(steps: int, *, refined: bool = False) -> FloatArray:
    """Return the variance of each prefix sum of the tree, (T,), in units of ``noise_std ** 2``.

    Prefix t adds one node for each one in the binary form of t.  With ``refined`` a node of height h is estimated from
    all its descendants too, and has variance ``1 / (2 - 2**-h)``.

    >>> tree_variances(4).tolist(), tree_variances(4, refined=True).round(6).tolist()
    ([1.0, 1.0, 2.0, 1.0], [1.0, 0.666667, 1.666667, 0.571429])
    """
    prefixes = np.arange(1, _check_steps(steps) + 1)
    total = np.zeros(prefixes.size)
    for height in range(int(steps).bit_length()):
        total += ((prefixes >> height) & 1) * (1.0 / (2.0 - 0.5**height) if refined else 1.0)
    return total


def square_root_coefficients(steps: int) -> FloatArray:
    """Return ``binom(2k, k) / 4**k`` for k = 0, ..., T-1: the power series of ``1 / sqrt(1 - z)``.

    >>> square_root_coefficients(4).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    k = np.arange(1, _check_steps(steps))
    return np.concatenate([[1.0], np.cumprod(1.0 - 0.5 / k)])


def square_root_variances(steps: int) -> FloatArray:
    """Return the variance of each prefix sum of the square-root factorisation, (T,), in units of ``noise_std ** 2``.

    >>> square_root_variances(3).tolist()
    [1.0, 1.25, 1.390625]
    """
    return np.cumsum(square_root_coefficients(steps) ** 2)


def square_root_sensitivity(steps: int) -> float:
    """Return the largest Euclidean norm of a column of the square root: that of the first.

    >>> square_root_sensitivity(3) ** 2
    1.390625
    """
    return float(np.sqrt(square_root_variances(steps)[-1]))


def sensitivity(steps: int, mechanism: str) -> float:
    """Return how far, in Euclidean norm, a value of norm one moves what the mechanism adds noise to.

    Parameters: ``mechanism`` one of ``"tree"``, ``"tree-refined"``, ``"square-root"``.

    >>> sensitivity(4, "tree") ** 2
    3.0
    """
    if mechanism not in MECHANISMS:
        raise ValueError(f"mechanism must be one of {MECHANISMS}, got {mechanism!r}")
    return square_root_sensitivity(steps) if mechanism == "square-root" else float(np.sqrt(tree_nodes(steps)))


def mean_squared_error(steps: int, mechanism: str) -> float:
    """Return the mean squared error of a prefix sum per coordinate, at the privacy of unit noise on unit values.

    It is the squared sensitivity times the mean of the variances; multiply by the squares of ``noise_multiplier`` and
    of the sensitivity of a value.

    >>> mean_squared_error(16, "tree"), round(mean_squared_error(16, "square-root"), 6)
    (10.3125, 3.228542)
    """
    if mechanism not in MECHANISMS:
        raise ValueError(f"mechanism must be one of {MECHANISMS}, got {mechanism!r}")
    if mechanism == "square-root":
        variances = square_root_variances(steps)
        return float(variances[-1] * np.mean(variances))
    return float(tree_nodes(steps) * np.mean(tree_variances(steps, refined=mechanism == "tree-refined")))


def noise_multiplier(epsilon: float, delta: float) -> float:
    """Return the least noise on a value of sensitivity one that is (epsilon, delta)-private.

    The exact curve of the Gaussian mechanism (Balle and Wang 2018), rounded up; compositions of Gaussians, adaptive
    ones too, are one Gaussian.  The paper's ``sqrt(2 log(1/delta)) / epsilon`` (``thm:dpftrl``, claimed for all
    ``epsilon <= 2 log(1/delta)``) is too small for large epsilon.

    Parameters: ``epsilon > 0`` in nats; ``0 < delta < 1``.  Raises ``ValueError`` naming the argument.

    >>> round(noise_multiplier(1.0, 1e-6), 4)
    4.2247
    """
    if not (epsilon > 0 and np.isfinite(epsilon)):
        raise ValueError("epsilon must be positive and finite")
    if not 0 < delta < 1:
        raise ValueError("delta must be in (0, 1)")

    def private(std: float) -> bool:
        upper = log_ndtr(0.5 / std - epsilon * std)
        lower = epsilon + log_ndtr(-0.5 / std - epsilon * std)
        return bool(upper + np.log(-np.expm1(min(lower - upper, -1e-300))) <= np.log(delta))

    low, high = -40.0, 40.0  # of the log
    while high - low > 1e-12:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if private(float(np.exp(middle))) else (middle, high)
    return float(np.exp(high + 1e-9))


ROUNDING_BITS = 20  # a private sum is rounded to the noise's standard deviation over 2^20, or a little less


class _Aggregator:
    """What the aggregators share: the plan, the exact running sum and the door."""

    def __init__(self, steps: int, noise_std: float, shape: int | tuple[int, ...], rng: np.random.Generator) -> None:
        self._steps = _check_steps(steps)
        if not (noise_std >= 0 and np.isfinite(noise_std)):
            raise ValueError("noise_std must be finite and not negative")
        if not isinstance(rng, np.random.Generator):
            raise ValueError("rng must be a numpy.random.Generator")
        self._std, self._rng = float(noise_std), rng
        self._shape = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(shape)
        self._count = 0

    @property
    def steps(self) -> int:
        """The planned number of values."""
        return self._steps

    @property
    def count(self) -> int:
        """The number of values so far."""
        return self._count

    def __repr__(self) -> str:
        return f"{type(self).__name__}(steps={self._steps}, noise_std={self._std}, shape={self._shape})"

    def add(self, value: npt.ArrayLike) -> Any:
        """Add the next value and return the private sum of all so far, of the given shape (a float if it is ()).

        An entry that is not finite counts as zero.  Raises ``StepsExceeded``, before ``value`` is looked at, when all
        planned steps are taken, and ``ValueError`` if the shape differs from the planned one.
        """
        if self._count >= self._steps:
            raise StepsExceeded(f"all {self._steps} planned steps are taken")
        entry = np.asarray(value, dtype=np.float64)
        if entry.shape != self._shape:
            raise ValueError(f"value must have shape {self._shape}, got {entry.shape}")
        entry = np.where(np.isfinite(entry), entry, 0.0)
        self._count += 1
        with np.errstate(all="ignore"):
            total = np.asarray(self._rounded(self._next(entry)))
        return total if total.ndim else float(total)

    def _rounded(self, total: FloatArray) -> FloatArray:
        """To multiples of a public step of about a millionth of the noise: the last bits of a float sum of a value and
        its noise can tell the value, whatever the noise."""
        if self._std == 0.0:
            return total
        step = 2.0 ** (np.floor(np.log2(self._std)) - ROUNDING_BITS)
        return np.where(np.abs(total) < step * 2.0**52, np.rint(total / step) * step, total)

    def _next(self, value: FloatArray) -> FloatArray:
        raise NotImplementedError

    def _noise(self, rows: tuple[int, ...] = ()) -> FloatArray:
        return self._std * self._rng.standard_normal(rows + self._shape)


class TreeAggregator(_Aggregator):
    """Private prefix sums by a binary tree over the steps, in memory that grows with log T.

    Paper: ``InitializeTree``, ``AddToTree`` and ``GetSum`` of Algorithm ``alg:dpftrl``.

    Parameters:
        steps: planned number T of values.
        noise_std: standard deviation of the noise on each node.
        shape: shape of a value, an integer or a tuple.
        rng: source of the noise.
        refined: estimate every node from its descendants too (less error for the same noise and privacy).

    Guarantees: a change of one value by ``s`` in Euclidean norm moves the nodes together by at most
    ``s * sqrt(tree_nodes(steps))``; so ``noise_std = s * sqrt(tree_nodes(steps)) * noise_multiplier(epsilon, delta)``
    makes all sums together (epsilon, delta)-private, also when values depend on earlier sums.  Prefix t has the
    variance ``noise_std ** 2 * tree_variances(steps, refined=refined)[t - 1]`` in each coordinate.

    >>> tree = TreeAggregator(3, 0.0, (), np.random.default_rng(0))
    >>> [tree.add(value) for value in (1.0, 2.0, 3.0)]
    [1.0, 3.0, 6.0]
    """

    def __init__(
        self,
        steps: int,
        noise_std: float,
        shape: int | tuple[int, ...],
        rng: np.random.Generator,
        *,
        refined: bool = False,
    ) -> None:
        super().__init__(steps, noise_std, shape, rng)
        self._refined = bool(refined)
        # height -> (exact sum, private estimate) of the complete block at that height that waits for its neighbour
        self._waiting: dict[int, tuple[FloatArray, FloatArray]] = {}

    def _next(self, value: FloatArray) -> FloatArray:
        exact, height = value, 0
        estimate = exact + self._noise() if self._refined else exact
        while height in self._waiting:
            left_exact, left_estimate = self._waiting.pop(height)
            exact, height = left_exact + exact, height + 1
            if self._refined:
                # The node's own noisy sum (variance 1) and its children's estimates (2 v), weighted by precision.
                children = 2.0 / (2.0 - 0.5 ** (height - 1))
                own = children / (1.0 + children)
                estimate = own * (exact + self._noise()) + (1.0 - own) * (left_estimate + estimate)
        # A block that ends inside a longer complete one is never read, so that without estimates it needs no noise.
        self._waiting[height] = exact, estimate if self._refined else exact + self._noise()
        return np.sum([private for _, private in self._waiting.values()], axis=0)


class SquareRootAggregator(_Aggregator):
    """Private prefix sums by the square root of the matrix of prefix sums: less error than the tree, equal privacy.

    Parameters as for ``TreeAggregator``; ``noise_std`` is the standard deviation of the white noise ``z``.

    Guarantees: a change of one value by ``s`` in Euclidean norm moves ``R x`` by at most
    ``s * square_root_sensitivity(steps)``; so ``noise_std = s * square_root_sensitivity(steps) *
    noise_multiplier(epsilon, delta)`` makes all sums together (epsilon, delta)-private, also when values depend on
    earlier sums.  Prefix t has the variance ``noise_std ** 2 * square_root_variances(steps)[t - 1]``.  Memory grows
    with the steps taken, and time by a log factor more (the noise is filtered in blocks that double).

    >>> sums = SquareRootAggregator(3, 0.0, 2, np.random.default_rng(0))
    >>> sums.add([1.0, 0.0]).tolist(), sums.add([1.0, 1.0]).tolist()
    ([1.0, 0.0], [2.0, 1.0])
    """

    def __init__(self, steps: int, noise_std: float, shape: int | tuple[int, ...], rng: np.random.Generator) -> None:
        super().__init__(steps, noise_std, shape, rng)
        self._sum = np.zeros(self._shape)
        self._white = np.zeros((0, *self._shape))
        self._block, self._block_start = self._white, 0

    def _next(self, value: FloatArray) -> FloatArray:
        self._sum = self._sum + value
        if self._count > len(self._white):
            self._extend()
        return self._sum + self._block[self._count - 1 - self._block_start]

    def _extend(self) -> None:
        old = len(self._white)
        new = min(self._steps, max(_FIRST_BLOCK, 2 * old))
        self._white = np.concatenate([self._white, self._noise((new - old,))])
        length = fft.next_fast_len(2 * new, real=True)
        filter_ = fft.rfft(square_root_coefficients(new), length).reshape((-1,) + (1,) * len(self._shape))
        filtered = fft.irfft(fft.rfft(self._white, length, axis=0) * filter_, length, axis=0)
        self._block, self._block_start = filtered[old:new].copy(), old
