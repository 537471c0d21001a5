"""One round of COCOB-Backprop for every coordinate, compiled; see `pq.learners.COCOB` for what it does and why."""

from __future__ import annotations

import math
from typing import Any

from numba import boolean, float64, void

from pq.core.machine.keep import given, kept, uncounted

LARGEST, TOTAL, REWARD, SUM, COUNT, NUMBERS = 0, 1, 2, 3, 4, 5  # running numbers of a gambler, and how many there are


@uncounted
def _add(bets: Any, i: int, coin: float, distance: float) -> None:
    size = abs(coin)
    bets[LARGEST, i] = max(bets[LARGEST, i], size)
    bets[TOTAL, i] += size
    bets[REWARD, i] = max(bets[REWARD, i] + distance * coin, 0.0)
    bets[SUM, i] += coin
    if size > 0.0:
        bets[COUNT, i] += 1.0


@uncounted
def _play(
    state: Any, tail: Any, trial: Any, i: int, coin: float, distance: float, patience: float, ratio: float
) -> None:
    """Count a gradient; forget a largest one among the first that turns out a freak."""
    record = abs(coin) > state[LARGEST, i]
    if record:
        trial[i] = state[COUNT, i] < patience
    _add(state, i, coin, distance)
    if not trial[i]:
        return
    _add(tail, i, coin, distance)
    if record:
        tail[:, i] = 0.0
    if tail[COUNT, i] >= patience:
        if ratio * tail[TOTAL, i] < tail[COUNT, i] * state[LARGEST, i]:
            for row in range(state.shape[0]):
                state[row, i] = tail[row, i]
        trial[i] = False


@uncounted
def _stake(state: Any, i: int, alpha: float) -> float:
    """Quotients by the largest first: products of very small or very large gradients are no floats."""
    largest = state[LARGEST, i] if state[LARGEST, i] > 0.0 else 1.0
    fraction = (state[SUM, i] / largest) / max(state[TOTAL, i] / largest + 1.0, alpha)
    return fraction * (state[LARGEST, i] / largest + state[REWARD, i] / largest)


_IN, _OUT, _STATE = given(float64, 1), float64[::1], float64[:, ::1]


@kept(void(_IN, _IN, _IN, _IN, _IN, float64, float64, float64, _OUT, _OUT, _STATE, _STATE, boolean[::1]))
def bet(sources: int) -> Any:
    def run(
        slope: Any, scale: Any, initial: Any, lower: Any, upper: Any, alpha: float, patience: float, ratio: float,
        iterate: Any, point: Any, state: Any, tail: Any, trial: Any,
    ) -> None:  # fmt: skip
        """Take the gradients (k,), and change the last five arguments in place."""
        sources  # noqa: B018 (see pq.core.machine.keep)
        for i in range(slope.size):
            coin = -slope[i] * scale[i]
            if not math.isfinite(coin) or (iterate[i] - point[i]) * coin > 0.0:
                coin = 0.0
            if state[COUNT, i] >= patience and abs(coin) > ratio * state[LARGEST, i]:
                coin = math.copysign(2.0 * state[LARGEST, i], coin)
            _play(state, tail, trial, i, coin, (iterate[i] - initial[i]) / scale[i], patience, ratio)
            iterate[i] = initial[i] + scale[i] * _stake(state, i, alpha)
            point[i] = min(max(iterate[i], lower[i]), upper[i])

    return run
