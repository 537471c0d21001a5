"""Projected online gradient descent, and the average of a learner's predictions (``thm:pubpri``, ``thm:o2b``)."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["OGD", "Averaged"]

FloatArray = npt.NDArray[np.float64]


class OGD:
    """Online gradient descent on a box.

    Paper: the algorithm of ``thm:pubpri`` (Appendix C.2), with a step for each coordinate if wanted.

    Parameters: ``initial`` starting point, any shape, projected on the box; ``step`` positive, broadcasts (one row for
    theta and one for phi, for example); ``lower``, ``upper`` the box, broadcast.

    A gradient that is not finite in a coordinate leaves it where it is.  Raises ``ValueError`` naming the argument.

    >>> learner = OGD([0.0, 0.0], step=[0.5, 2.0], lower=-1.0, upper=1.0)
    >>> learner.update([1.0, 1.0])
    >>> learner.point.tolist()
    [-0.5, -1.0]
    """

    def __init__(
        self,
        initial: npt.ArrayLike,
        *,
        step: npt.ArrayLike,
        lower: npt.ArrayLike = -np.inf,
        upper: npt.ArrayLike = np.inf,
    ) -> None:
        start = np.array(initial, dtype=np.float64)
        self._step = np.broadcast_to(np.asarray(step, dtype=np.float64), start.shape)
        self._lower = np.broadcast_to(np.asarray(lower, dtype=np.float64), start.shape)
        self._upper = np.broadcast_to(np.asarray(upper, dtype=np.float64), start.shape)
        if not np.all(np.isfinite(start)):
            raise ValueError("initial must be finite")
        if not np.all((self._step > 0) & np.isfinite(self._step)):
            raise ValueError("step must be positive and finite")
        if not np.all(self._lower <= self._upper):
            raise ValueError("lower must not exceed upper")
        self._point = np.clip(start, self._lower, self._upper)

    @property
    def point(self) -> FloatArray:
        """The current prediction, in the box."""
        return self._point.copy()

    def update(self, gradient: npt.ArrayLike) -> None:
        """Take the gradient of the loss at ``point``."""
        slope = np.asarray(gradient, dtype=np.float64)
        if slope.shape != self._point.shape:
            raise ValueError(f"gradient must have shape {self._point.shape}, got {slope.shape}")
        move = self._step * np.where(np.isfinite(slope), slope, 0.0)
        self._point = np.clip(self._point - move, self._lower, self._upper)


class _Learner(Protocol):
    @property
    def point(self) -> FloatArray: ...

    def update(self, gradient: npt.ArrayLike) -> None: ...


class Averaged:
    """A learner that also keeps the average of its predictions (online-to-batch conversion).

    Paper: ``thm:o2b`` (Appendix D.1): on losses drawn independently, the expected loss of the average exceeds the best
    by no more than the average regret.

    Parameters: ``learner`` any learner.  ``point`` and ``update`` are the learner's; ``average`` is the mean of the
    points at which gradients were taken, or the current point before the first.

    >>> learner = Averaged(OGD([0.0], step=1.0))
    >>> learner.update([1.0])
    >>> learner.update([1.0])
    >>> learner.point.tolist(), learner.average.tolist()
    ([-2.0], [-0.5])
    """

    def __init__(self, learner: _Learner) -> None:
        self._learner = learner
        self._count = 0
        self._mean = learner.point

    @property
    def point(self) -> FloatArray:
        """The learner's prediction."""
        return self._learner.point

    @property
    def average(self) -> FloatArray:
        """The mean of the predictions so far."""
        return self._mean.copy()

    def update(self, gradient: npt.ArrayLike) -> None:
        """Take the gradient of the loss at ``point``."""
        point = self._learner.point
        self._learner.update(gradient)  # first, so that a refusal leaves the average alone
        self._count += 1
        self._mean = self._mean + (point - self._mean) / self._count
