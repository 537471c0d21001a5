"""Projected online gradient descent, and the average of a learner's predictions (`thm:pubpri`, `thm:o2b`)."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["OGD", "Averaged", "steady"]

FloatArray = npt.NDArray[np.float64]

_SPLITTER = 2.0**33 + 1.0  # cuts the lowest 33 of the 53 bits off


def steady(gradient: npt.ArrayLike) -> FloatArray:
    """Round a gradient, by less than a part in a million, so that a learner takes the same path on every processor.

    Processors differ in the last bit of exponentials, and where steps are long for the curvature of the loss a learner
    may double such a difference with every step. Rounded gradients differ only if they lie on the edge between two
    roundings, as one in a hundred million does or fewer.

    gradient: any shape. Returns it to 20 significant bits (Dekker's splitting); what is too large for that stays.

    >>> steady([1 / 3, 0.0, -2.0, 1e300]).tolist()
    [0.333333492, 0.0, -2.0, 1e+300]
    """
    exact = np.asarray(gradient, dtype=np.float64)
    with np.errstate(all="ignore"):
        shifted = exact * _SPLITTER
        rounded = shifted - (shifted - exact)
    return np.where(np.isfinite(rounded), rounded, exact)


class OGD:
    """Online gradient descent on a box, as in `thm:pubpri`, each coordinate with its own step if wanted (Appendix C.2).

    initial: starting point, any shape, finite, projected on the box. step: positive, broadcasts (one row for theta and
    one for phi, for example). lower, upper: the box, broadcast. Raises `ValueError` naming the argument. A gradient
    that is not finite in a coordinate leaves it where it is.

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
        """Take the gradient of the loss at `point`."""
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
    """A learner that also keeps the average of its predictions, online-to-batch conversion (`thm:o2b`, Appendix E.1).

    On losses drawn independently, the expected loss of the average exceeds the best by no more than the average regret.

    learner: any learner. `point` and `update` are the learner's; `average` is the mean of the points at which gradients
    were taken, or the current point before the first.

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
        """Take the gradient of the loss at `point`."""
        point = self._learner.point
        self._learner.update(gradient)  # first, so that a refusal leaves the average alone
        self._count += 1
        self._mean = self._mean + (point - self._mean) / self._count
