"""COCOB-Backprop: descent without learning rates, by coin betting (Orabona and Tommasi 2017).

The paper fits and updates its Laplace priors with it (Sections 5.2 and 5.3, Appendix C.2). Each coordinate gambles on
the sign of the next gradient; its distance from the start is the stake.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pq.core.machine.engine import Engine

BET = Engine("pq.core.machine.coins", "bet")
FORMULA_SECONDS = 5e-5  # about what a round takes in NumPy

__all__ = ["COCOB"]

FloatArray = npt.NDArray[np.float64]

_LARGEST, _TOTAL, _REWARD, _SUM, _COUNT = range(5)  # running numbers of a gambler
_MOVED = "_iterate", "_point", "_state", "_tail", "_trial"  # what a round changes


class COCOB:
    """COCOB-Backprop, one gambler per coordinate, guarded against gradients that would break it (Appendix C.2).

    The algorithm is Algorithm 2 of Orabona and Tommasi (2017).

    initial: starting point, any shape, finite. scale: positive, broadcasts; what counts as a short way for each
    coordinate, in its unit (the first steps have length `scale / alpha`). Expressing `initial` and `scale` in another
    unit changes nothing else. alpha: at least 1; how cautious the first steps are. lower, upper: bounds of the
    predictions, broadcast. A gradient that pushes an iterate further out of its bounds is not counted (the
    one-dimensional case of the reduction of Cutkosky and Orabona, 2018). patience: number of gradients, at least 1.
    outlier_ratio: above 1, infinite for the algorithm without the guards below. Raises `ValueError` naming the argument
    that is out of range, and for a gradient of another shape.

    A coordinate stays at its start until its first gradient that is not zero (the formula is 0/0 there). A gradient
    that is not finite counts as zero. The algorithm measures every gradient by the largest so far, so that one freak
    would freeze its coordinate for as many steps as it is larger than the others. Hence two guards:

    - a gradient more than `outlier_ratio` times the largest of at least `patience` earlier ones counts as twice that
      largest (if it was no freak, the largest doubles with every step until it fits);
    - a largest gradient among the first `patience` that turns out more than `outlier_ratio` times the mean of the
      `patience` gradients after it is forgotten, with all before it.

    Guarantees that neither guard acts on losses whose gradients vary by less, and there the path is the published
    algorithm's.

    >>> learner = COCOB([0.0])
    >>> for _ in range(200):
    ...     learner.update(np.sign(learner.point - 3.0))
    >>> abs(float(learner.point[0]) - 3.0) < 0.5
    True
    """

    def __init__(
        self,
        initial: npt.ArrayLike,
        *,
        scale: npt.ArrayLike = 1.0,
        alpha: float = 100.0,
        lower: npt.ArrayLike = -np.inf,
        upper: npt.ArrayLike = np.inf,
        patience: int = 20,
        outlier_ratio: float = 100.0,
    ) -> None:
        self._initial = np.array(initial, dtype=np.float64)
        shape = self._initial.shape
        self._scale, self._lower, self._upper = (
            np.array(np.broadcast_to(np.asarray(given, dtype=np.float64), shape)) for given in (scale, lower, upper)
        )
        if not np.all(np.isfinite(self._initial)):
            raise ValueError("initial must be finite")
        if not np.all((self._scale > 0) & np.isfinite(self._scale)):
            raise ValueError("scale must be positive and finite")
        if not alpha >= 1:
            raise ValueError("alpha must be at least 1")
        if not np.all(self._lower <= self._upper):
            raise ValueError("lower must not exceed upper")
        if patience < 1:
            raise ValueError("patience must be at least 1")
        if not outlier_ratio > 1:
            raise ValueError("outlier_ratio must exceed 1")
        self._alpha, self._patience, self._ratio = float(alpha), int(patience), float(outlier_ratio)
        self._iterate = self._initial.copy()
        self._point = np.clip(self._initial, self._lower, self._upper)
        self._state = np.zeros((5, self._initial.size))  # since the start
        self._tail = np.zeros_like(self._state)  # since the gradient that set the largest
        self._trial = np.zeros(self._initial.size, dtype=bool)  # the largest is recent and early, may yet be forgotten

    @property
    def point(self) -> FloatArray:
        """The current prediction, within the bounds."""
        return self._point.copy()

    def update(self, gradient: npt.ArrayLike) -> None:
        """Take the gradient of the loss at `point`."""
        slope = np.ascontiguousarray(gradient, dtype=np.float64)
        if slope.shape != self._initial.shape:
            raise ValueError(f"gradient must have shape {self._initial.shape}, got {slope.shape}")
        after = {name: vars(self)[name].copy() for name in _MOVED}  # an interrupt leaves a round whole, or not begun
        _engine()(
            slope.reshape(-1),
            self._scale.reshape(-1),
            self._initial.reshape(-1),
            self._lower.reshape(-1),
            self._upper.reshape(-1),
            self._alpha,
            float(self._patience),
            self._ratio,
            *(after[name].reshape(-1) for name in _MOVED[:2]),
            *(after[name] for name in _MOVED[2:]),
        )
        vars(self).update(after)


def _engine() -> Callable[..., Any]:
    """Who plays a round: machine code where it is there or pays, else NumPy; the same numbers."""
    return BET if BET.ready(FORMULA_SECONDS) else play_round


def play_round(
    slope: FloatArray, scale: FloatArray, initial: FloatArray, lower: FloatArray, upper: FloatArray,
    alpha: float, patience: float, ratio: float,
    iterate: FloatArray, point: FloatArray, state: FloatArray, tail: FloatArray, trial: npt.NDArray[np.bool_],
) -> None:  # fmt: skip
    """Take the gradients (k,) of a round, changing the last five arguments in place, as `pq.core.machine.coins.bet`."""
    with np.errstate(all="ignore"):
        coin = -slope * scale
        outward = (iterate - point) * coin > 0.0
        coin = np.where(np.isfinite(coin) & ~outward, coin, 0.0)
        freak = (state[_COUNT] >= patience) & (np.abs(coin) > ratio * state[_LARGEST])
        if freak.any():
            coin = np.where(freak, np.copysign(2.0 * state[_LARGEST], coin), coin)
        record = np.abs(coin) > state[_LARGEST]
        np.copyto(trial, state[_COUNT] < patience, where=record)
        distance = (iterate - initial) / scale
        _add(state, coin, distance)
        if trial.any():
            _add(tail, coin, distance)
            tail[:, record] = 0.0
            due = trial & (tail[_COUNT] >= patience)
            np.copyto(state, tail, where=due & (ratio * tail[_TOTAL] < tail[_COUNT] * state[_LARGEST]))
            trial[due] = False
        # Quotients by the largest first: products of very small or very large gradients are no floats.
        largest = np.where(state[_LARGEST] > 0.0, state[_LARGEST], 1.0)
        fraction = (state[_SUM] / largest) / np.maximum(state[_TOTAL] / largest + 1.0, alpha)
        iterate[:] = initial + scale * (fraction * (state[_LARGEST] / largest + state[_REWARD] / largest))
        np.minimum(np.maximum(iterate, lower), upper, out=point)


def _add(bets: FloatArray, coin: FloatArray, distance: FloatArray) -> None:
    size = np.abs(coin)
    np.maximum(bets[_LARGEST], size, out=bets[_LARGEST])
    bets[_TOTAL] += size
    np.maximum(bets[_REWARD] + distance * coin, 0.0, out=bets[_REWARD])
    bets[_SUM] += coin
    bets[_COUNT] += size > 0.0
