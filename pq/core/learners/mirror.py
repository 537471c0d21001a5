"""Entropic mirror descent on products of robust simplices (Appendix B.2)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["EntropicMirror", "project_simplices"]

_LARGEST = 1e300

FloatArray = npt.NDArray[np.float64]


def project_simplices(log_weights: npt.ArrayLike, floor: float = 0.0) -> FloatArray:
    """Points of the floored simplex that are nearest in relative entropy, row by row.

    The set is that of the gamma-robust priors `{w : sum w = 1, w_j >= gamma / d}` (Appendix B.2).

    log_weights: (..., d) logs of positive weights, of any total (a row's constant does not matter). floor: gamma / d,
    in [0, 1/d]. Returns w (..., d), the minimiser of `sum w log(w / exp(log_weights))` over the set. Raises
    `ValueError` naming floor if it is outside its range. Guarantees that the largest weights keep their proportions and
    the others are at the floor, exactly.

    >>> project_simplices(np.log([0.9, 0.09, 0.01]), 0.1).round(12).tolist()
    [0.8, 0.1, 0.1]
    """
    logs = np.asarray(log_weights, dtype=np.float64)
    cells = logs.shape[-1]
    if not 0 <= floor <= (1.0 + 1e-12) / cells:
        raise ValueError("floor must be in [0, 1/d]")
    with np.errstate(all="ignore"):
        weights = np.exp(logs - np.max(logs, axis=-1, keepdims=True))
        ascending = np.sort(weights, axis=-1)
        # above[k]: total of all but the k smallest, summed from the small end of what remains
        above = np.flip(np.cumsum(np.flip(ascending, -1), axis=-1), -1)
        left = 1.0 - floor * np.arange(cells)
        # With k at the floor the others are scaled by left / above; the smallest k that keeps them at or above it.
        fits = ascending * left >= floor * above
        fits[..., -1] = True
        first = np.argmax(fits, axis=-1, keepdims=True)
        scale = np.maximum(np.take(left, first), 0.0) / np.take_along_axis(above, first, axis=-1)
        free = weights >= np.take_along_axis(ascending, first, axis=-1)
        return np.where(free, np.maximum(weights * scale, floor), floor)


class EntropicMirror:
    """Exponentiated gradient on a product of simplices, each weight kept at or above a floor (Appendix B.2).

    The regulariser is `m <W, log W>`, whose descent step on row i is `step / m` in the exponent.

    initial: (d,) or (m, d), rows of positive weights; each is scaled to sum to one and projected. step: positive; the
    step in the exponent (`eta / m` in the paper's notation). robustness: gamma in [0, 1]; every weight stays at least
    `gamma / d`. Raises `ValueError` naming the argument, and for a gradient of another shape.

    >>> learner = EntropicMirror([0.5, 0.5], step=1.0, robustness=0.2)
    >>> learner.update([0.0, 10.0])
    >>> learner.point.round(12).tolist()
    [0.9, 0.1]
    """

    def __init__(self, initial: npt.ArrayLike, *, step: float, robustness: float = 0.0) -> None:
        start = np.array(initial, dtype=np.float64)
        if start.ndim == 0 or start.shape[-1] == 0 or not np.all((start > 0) & np.isfinite(start)):
            raise ValueError("initial must hold rows of positive finite weights")
        if not (step > 0 and np.isfinite(step)):
            raise ValueError("step must be positive and finite")
        if not 0 <= robustness <= 1:
            raise ValueError("robustness must be in [0, 1]")
        self._step, self._floor = float(step), float(robustness) / start.shape[-1]
        self._logs = np.log(start)
        self._point = project_simplices(self._logs, self._floor)

    @property
    def point(self) -> FloatArray:
        """The current weights."""
        return self._point.copy()

    def update(self, gradient: npt.ArrayLike) -> None:
        """Take the gradient of the loss at `point`."""
        slope = np.asarray(gradient, dtype=np.float64)
        if slope.shape != self._point.shape:
            raise ValueError(f"gradient must have shape {self._point.shape}, got {slope.shape}")
        with np.errstate(all="ignore"):
            move = np.clip(self._step * np.where(np.isfinite(slope), slope, 0.0), -_LARGEST, _LARGEST)
            # Without a floor weights may underflow to zero; their logs still know the way back.
            logs = np.log(self._point) if self._floor > 0 else self._logs - np.max(self._logs, axis=-1, keepdims=True)
            self._logs = logs - move
            self._point = project_simplices(self._logs, self._floor)
