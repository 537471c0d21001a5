"""DP-FTRL with Euclidean and entropic regularisers (`alg:dpftrl` and `thm:dpftrl`, Appendix B.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pq.core.budget.nodes import check_steps
from pq.core.learners.mirror import project_simplices
from pq.core.learners.prefix import MECHANISMS, segments
from pq.private.noise import Normals, SquareRootAggregator, StepsExceeded, TreeAggregator

__all__ = ["DPFTRL"]

FloatArray = npt.NDArray[np.float64]


class DPFTRL:
    """Follow the regularised leader on private prefix sums of the gradients (`alg:dpftrl`).

    The point is the minimiser of `regulariser + step * <private sum, .>`.

    initial: first point, any shape; for "entropic" (d,) or (m, d), positive, rows scaled to sum to one. steps: planned
    number T of gradients. step: positive; broadcasts for "euclidean", a number for "entropic" (there `eta / m` of the
    paper). noise_std: standard deviation of the noise of the sums, see `private_noise_std`; 0 is not private. rng:
    source of the noise: a generator, or None for the operating system at every step. regularizer: "euclidean", half the
    squared distance from `initial` on the box; or "entropic", the entropy relative to `initial` on the product of
    simplices. lower, upper: the box of "euclidean", broadcast. robustness: gamma of "entropic", in [0, 1]; weights stay
    at least `gamma / d`. mechanism: "tree", "tree-refined" (Honaker's estimates) or "square-root" (least error).
    restarts: ascending public step numbers after which the sum starts afresh from the point reached; they are fixed
    here because a restart chosen by the data would need privacy of its own. clip: optional bound on the Euclidean norm
    of a gradient, positive; longer ones are shortened. Then the sensitivity is at most twice the bound whatever the
    data, and the guarantee needs no other assumption.

    Raises `ValueError` naming the argument. Guarantees privacy as `private_noise_std` says; a gradient more than
    planned raises `StepsExceeded` before it is looked at.

    >>> learner = DPFTRL([0.0], steps=2, step=0.5, noise_std=0.0, rng=np.random.default_rng(0))
    >>> learner.update([1.0])
    >>> learner.update([1.0])
    >>> learner.point.tolist()
    [-1.0]
    >>> learner.update([1.0])
    Traceback (most recent call last):
    pq.private.noise.StepsExceeded: all 2 planned steps are taken
    """

    def __init__(
        self,
        initial: npt.ArrayLike,
        *,
        steps: int,
        step: npt.ArrayLike,
        noise_std: float,
        rng: np.random.Generator | Normals | None = None,
        regularizer: str = "euclidean",
        lower: npt.ArrayLike = -np.inf,
        upper: npt.ArrayLike = np.inf,
        robustness: float = 0.0,
        mechanism: str = "tree",
        restarts: Sequence[int] = (),
        clip: float | None = None,
    ) -> None:
        start = np.array(initial, dtype=np.float64)
        rate = np.asarray(step, dtype=np.float64)
        if regularizer not in ("euclidean", "entropic"):
            raise ValueError(f"regularizer must be 'euclidean' or 'entropic', got {regularizer!r}")
        if mechanism not in MECHANISMS:
            raise ValueError(f"mechanism must be one of {MECHANISMS}, got {mechanism!r}")
        if not np.all((rate > 0) & np.isfinite(rate)):
            raise ValueError("step must be positive and finite")
        if clip is not None and not clip > 0:
            raise ValueError("clip must be positive")
        self._entropic = regularizer == "entropic"
        if self._entropic:
            if start.ndim == 0 or not np.all((start > 0) & np.isfinite(start)):
                raise ValueError("initial must hold rows of positive finite weights")
            if rate.ndim:
                raise ValueError("step must be one number for the entropic regularizer")
            if not 0 <= robustness <= 1:
                raise ValueError("robustness must be in [0, 1]")
            self._floor = float(robustness) / start.shape[-1]
        else:
            if not np.all(np.isfinite(start)):
                raise ValueError("initial must be finite")
            if not np.all(np.asarray(lower) <= np.asarray(upper)):
                raise ValueError("lower must not exceed upper")
            self._lower = np.broadcast_to(np.asarray(lower, dtype=np.float64), start.shape)
            self._upper = np.broadcast_to(np.asarray(upper, dtype=np.float64), start.shape)
        self._step, self._mechanism, self._clip = rate, mechanism, clip
        self._noise_std, self._normals = noise_std, Normals.of(rng)
        self._shape, self._left = start.shape, segments(steps, restarts)
        self._steps = check_steps(steps)
        self._centre = np.log(start) if self._entropic else start
        self._sums = self._aggregator(self._left.pop(0))
        self._point = self._leader(np.zeros(self._shape))

    def _aggregator(self, steps: int) -> TreeAggregator | SquareRootAggregator:
        if self._mechanism == "square-root":
            return SquareRootAggregator(steps, self._noise_std, self._shape, self._normals)
        refined = self._mechanism == "tree-refined"
        return TreeAggregator(steps, self._noise_std, self._shape, self._normals, refined=refined)

    def _leader(self, total: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            target = self._centre - self._step * total
            if self._entropic:
                return project_simplices(target, self._floor)
            return np.clip(target, self._lower, self._upper)

    @property
    def point(self) -> FloatArray:
        """The current prediction."""
        return self._point.copy()

    def __repr__(self) -> str:
        return f"DPFTRL(steps={self._steps}, mechanism={self._mechanism!r}, shape={self._shape})"

    def update(self, gradient: npt.ArrayLike) -> None:
        """Take the gradient of the loss at `point`; it is paid for by the noise of the plan."""
        if self._sums.count == self._sums.steps:
            if not self._left:
                raise StepsExceeded(f"all {self._steps} planned steps are taken")
            self._centre = np.log(self._point) if self._entropic else self._point
            self._sums = self._aggregator(self._left.pop(0))
        slope = np.asarray(gradient, dtype=np.float64)
        if slope.shape != self._shape:
            raise ValueError(f"gradient must have shape {self._shape}, got {slope.shape}")
        self._point = self._leader(np.asarray(self._sums.add(self._shorten(slope))))

    def _shorten(self, slope: FloatArray) -> FloatArray:
        return np.where(np.isfinite(slope), slope, 0.0) if self._clip is None else shorten(slope, self._clip)


def shorten(gradient: FloatArray, bound: float, batch: int = 0) -> FloatArray:
    """Gradients no longer than the bound in Euclidean norm over all but the first `batch` axes; not finite counts as 0.

    >>> shorten(np.array([3.0, 4.0]), 1.0)
    array([0.6, 0.8])
    """
    finite = np.where(np.isfinite(gradient), gradient, 0.0)
    axes = tuple(range(batch, finite.ndim))
    with np.errstate(all="ignore"):
        largest = np.max(np.abs(finite), axis=axes, keepdims=True, initial=0.0)  # taken out: squares might overflow
        unit = np.where(largest > 0, largest, 1.0)
        norm = largest * np.sqrt(np.sum((finite / unit) ** 2, axis=axes, keepdims=True))
        return np.where(norm > bound, finite * (bound / np.where(norm > 0, norm, 1.0)), finite)
