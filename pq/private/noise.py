"""Noise on private prefix sums: by a tree, or by the square root of the matrix of prefix sums.

The tree is that of `InitializeTree`, `AddToTree` and `GetSum` in `alg:dpftrl` (Appendix B.2); what the noise must be is
in `pq.core.learners.prefix`. No noise is drawn before its step, so that two continuations of one state, in forks,
copies or resumed sessions, have nothing of it in common but what was released already.
"""

from __future__ import annotations

import math
import os
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from pq.core.budget.nodes import check_steps
from pq.core.learners.prefix import square_root_coefficients
from pq.core.locks import Process, fork_safe_lock

__all__ = ["Normals", "SquareRootAggregator", "StepsExceeded", "TreeAggregator"]

FloatArray = npt.NDArray[np.float64]

_SHORT = 32  # rows that are filtered by a matrix; Fourier transforms of few take longer
_ONE_STEP = fork_safe_lock()  # two threads that take the same step would share its noise


class StepsExceeded(RuntimeError):
    """A step more than was planned: its privacy has not been paid for."""


class Normals:
    """Standard normal noise, from the operating system at every call or from a generator.

    rng: a numpy Generator, for tests and papers, or None. Without one nothing is kept between calls, so that forks,
    threads and copies cannot share noise; with one, forks, copies and pickles leave it behind. Raises `ValueError`
    naming rng.

    >>> Normals().draw((2, 3)).shape
    (2, 3)
    """

    def __init__(self, rng: np.random.Generator | None = None) -> None:
        if rng is not None and not isinstance(rng, np.random.Generator):
            raise ValueError(f"rng must be a numpy.random.Generator or None, got {type(rng).__name__}")
        self._generator, self._process = rng, Process()

    @classmethod
    def of(cls, rng: np.random.Generator | Normals | None) -> Normals:
        """Itself, or one that draws from a generator."""
        return rng if isinstance(rng, cls) else cls(rng)  # type: ignore[arg-type]

    def draw(self, shape: tuple[int, ...]) -> FloatArray:
        """Independent standard normals of a shape."""
        if self._generator is None or not self._process.is_here:
            return _system_normals(shape)
        return self._generator.standard_normal(shape)

    def renew(self, rng: np.random.Generator | None) -> None:
        """Draw what is still to come from a stream of its own that this one seeds, or from the operating system."""
        self.__init__(None if rng is None else _seeded_by(rng))  # type: ignore[misc]

    def __reduce__(self) -> tuple[Any, ...]:
        return Normals, ()  # copies and pickles too


def _seeded_by(rng: np.random.Generator) -> np.random.Generator:
    seeds = rng.integers(2**32, size=8, dtype=np.uint32)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seeds.tolist())))


def _system_normals(shape: tuple[int, ...]) -> FloatArray:
    """Normals in pairs (Box and Muller 1958) from the operating system; 128 bits for a radius, as 53 end at 8.6."""
    count = math.prod(shape)
    words = np.frombuffer(os.urandom(24 * (count // 2 + 1)), dtype=np.uint64).reshape(3, -1)
    uniform = words[0] * 2.0**-64 + (words[1] + 0.5) * 2.0**-128
    radius, angle = np.sqrt(-2.0 * np.log(uniform)), words[2] * (2.0 * math.pi * 2.0**-64)
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count].reshape(shape)


ROUNDING_BITS = 20  # a private sum is rounded to the noise's standard deviation over 2^20, or a little less

BROKE_OFF = (
    "this sequence broke off within a step; start a new one, which spends anew. (Where a handler of signals asks in the"
    " middle of a step, that goes on.)"
)


class _Aggregator:
    """What the aggregators share: the plan, the exact running sum and the door."""

    _under_way = False  # stays true where a step broke off: half of its noise may be missing from all later sums

    def __init__(
        self,
        steps: int,
        noise_std: float,
        shape: int | tuple[int, ...],
        rng: np.random.Generator | Normals | None = None,
    ) -> None:
        self._steps = check_steps(steps)
        if not (noise_std >= 0 and np.isfinite(noise_std)):
            raise ValueError("noise_std must be finite and not negative")
        self._std, self._normals = float(noise_std), Normals.of(rng)
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

        value: of the planned shape; an entry that is not finite counts as zero. Raises `StepsExceeded`, before value is
        looked at, when all planned steps are taken, and `ValueError` naming value if the shape differs from the planned
        one.
        """
        with _ONE_STEP, np.errstate(all="ignore"):
            self._refuse_beyond_plan()
            entry = np.asarray(value, dtype=np.float64)
            if entry.shape != self._shape:
                raise ValueError(f"value must have shape {self._shape}, got {entry.shape}")
            entry = np.where(np.isfinite(entry), entry, 0.0)
            process = Process()
            if self._under_way:
                raise RuntimeError(BROKE_OFF)
            self._under_way = True  # before the count is looked at again, which a handler may have changed until here
            self._refuse_beyond_plan()
            self._count += 1
            total = np.asarray(self._rounded(self._next(entry)))
            process.check()  # a child's noise is another
            self._under_way = False
        return total if total.ndim else float(total)

    def _refuse_beyond_plan(self) -> None:
        if self._count >= self._steps:
            raise StepsExceeded(f"all {self._steps} planned steps are taken")

    def _rounded(self, total: FloatArray) -> FloatArray:
        """To multiples of a public step of about a millionth of the noise: the last bits of a float sum of a value and
        its noise can tell the value, whatever the noise."""
        if self._std == 0.0:
            return total
        step = _rounding_step(self._std, ROUNDING_BITS)
        return np.where(np.abs(total) < step * 2.0**52, np.rint(total / step) * step, total)

    def _next(self, value: FloatArray) -> FloatArray:
        raise NotImplementedError

    def _noise(self) -> FloatArray:
        return self._std * self._normals.draw(self._shape)


@cache
def _rounding_step(noise_std: float, bits: int) -> float:
    return float(2.0 ** (np.floor(np.log2(noise_std)) - bits))


class TreeAggregator(_Aggregator):
    """Private prefix sums by a binary tree over the steps, in memory that grows with log T (`alg:dpftrl`).

    The steps are `InitializeTree`, `AddToTree` and `GetSum` of the algorithm.

    steps: planned number T of values. noise_std: standard deviation of the noise on each node. shape: shape of a value,
    an integer or a tuple. rng: source of the noise: a generator, or None for the operating system at every step.
    refined: estimate every node from its descendants too (less error for the same noise and privacy). Raises
    `ValueError` naming the argument.

    Guarantees that a change of one value by s in Euclidean norm moves the nodes together by at most `s *
    sqrt(tree_nodes(steps))`; so `noise_std = s * sqrt(tree_nodes(steps)) * noise_multiplier(epsilon, delta)` makes all
    sums together (epsilon, delta)-private, also when values depend on earlier sums. Prefix t has the variance
    `noise_std ** 2 * tree_variances(steps, refined=refined)[t - 1]` in each coordinate.

    >>> tree = TreeAggregator(3, 0.0, (), np.random.default_rng(0))
    >>> [tree.add(value) for value in (1.0, 2.0, 3.0)]
    [1.0, 3.0, 6.0]
    """

    def __init__(
        self,
        steps: int,
        noise_std: float,
        shape: int | tuple[int, ...],
        rng: np.random.Generator | Normals | None = None,
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

    Arguments as for `TreeAggregator`; noise_std is the standard deviation of the white noise z. Memory grows with the
    steps taken, and time by the square of a log more (the noise is filtered in blocks).

    Guarantees that a change of one value by s in Euclidean norm moves `R x` by at most `s *
    square_root_sensitivity(steps)`; so `noise_std = s * square_root_sensitivity(steps) * noise_multiplier(epsilon,
    delta)` makes all sums together (epsilon, delta)-private, also when values depend on earlier sums. Prefix t has the
    variance `noise_std ** 2 * square_root_variances(steps)[t - 1]`.

    >>> sums = SquareRootAggregator(3, 0.0, 2, np.random.default_rng(0))
    >>> sums.add([1.0, 0.0]).tolist(), sums.add([1.0, 1.0]).tolist()
    ([1.0, 0.0], [2.0, 1.0])
    """

    def __init__(
        self,
        steps: int,
        noise_std: float,
        shape: int | tuple[int, ...],
        rng: np.random.Generator | Normals | None = None,
    ) -> None:
        super().__init__(steps, noise_std, shape, rng)
        self._sum = np.zeros(self._shape)
        self._white = np.zeros((1, *self._shape))  # the noise of each step so far; what follows is room
        self._filtered = np.zeros((1, *self._shape))  # what it adds to the sums, those still to come too

    def _next(self, value: FloatArray) -> FloatArray:
        self._sum = self._sum + value
        row, count = self._count - 1, self._count
        self._white[row] = self._noise()
        noise = self._filtered[row] + self._white[row]
        if count < self._steps:
            if count == len(self._white):
                self._white, self._filtered = (
                    np.concatenate([part, np.zeros_like(part)]) for part in (self._white, self._filtered)
                )
            self._carry(count)
        return self._sum + noise

    def _carry(self, count: int) -> None:
        """Add to the next sums what the newest block adds to them: it is as long as the largest power of two in the
        count, and the sums are as many, so that each row meets each later sum once."""
        import scipy  # late, as in pq.core.priors.numerics

        size = count & -count
        block, later = self._white[count - size : count], self._filtered[count : count + size]
        if size <= _SHORT:
            later += (_weights(size) @ block.reshape(size, -1)).reshape(block.shape)
            return
        length = scipy.fft.next_fast_len(3 * size, real=True)
        weights = square_root_coefficients(2 * size).reshape((-1,) + (1,) * len(self._shape))
        product = scipy.fft.rfft(block, length, axis=0) * scipy.fft.rfft(weights, length, axis=0)
        later += scipy.fft.irfft(product, length, axis=0)[size : 2 * size]


@cache
def _weights(size: int) -> FloatArray:
    """What each row of a block of a size adds to each of as many sums after it: (size, size)."""
    place = np.arange(size)
    return square_root_coefficients(2 * size)[size + place[:, None] - place]
