"""Noise of the Gaussian mechanism: its exact privacy curve, and the least noise for a budget (`thm:dpftrl`).

Noise of standard deviation `s` on a value of sensitivity one is (epsilon, delta)-private exactly for `delta >= Phi(1 /
(2 s) - epsilon s) - e^epsilon Phi(-1 / (2 s) - epsilon s)` (Balle and Wang 2018). With `low = epsilon s - 1 / (2 s)`
and `high = epsilon s + 1 / (2 s)`, so that `high^2 - low^2 = 2 epsilon`, that is the density of a standard normal at
`low` times what Mills' ratio falls by from `low` to `high`. Written so, nothing cancels for small budgets, where both
terms of the printed formula agree in all digits of a float.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from pq.core.exact import briefly


@cache
def _rule() -> tuple[Any, Any]:
    """Gauss-Legendre nodes and weights on [-1, 1]."""
    return np.polynomial.legendre.leggauss(16)


_SHORT = 0.5  # intervals over which the fall is integrated; over longer ones a difference keeps its digits
_FIRST, _LAST = -37.0, 40.0  # where delta is one, and where it is below the floats
_MARGIN = 1e-11  # of log delta: more than the formulas and their arguments are off
_LOG_ROOT = 0.5 * math.log(2.0 * math.pi)


def _mills(x: float) -> float:
    """Mills' ratio of a standard normal, tail over density."""
    import scipy  # late, as in pq.core.priors.numerics

    return math.sqrt(0.5 * math.pi) * float(scipy.special.erfcx(x * math.sqrt(0.5)))


def _log_delta(low: float, width: float) -> float:
    """Log of delta where `low` is as above and `width = 1 / s`."""
    import scipy  # late, as in pq.core.priors.numerics

    if low < _FIRST:
        return 0.0
    if width > _SHORT:
        fall = _mills(low) - _mills(low + width)
    else:  # the slope of Mills' ratio is minus 1 - t mills(t)
        at = low + width * 0.5 * (1.0 + _rule()[0])
        slope = 1.0 - at * math.sqrt(0.5 * math.pi) * scipy.special.erfcx(at * math.sqrt(0.5))
        fall = 0.5 * width * float(_rule()[1] @ slope)
    return min(math.log(fall) - 0.5 * low * low - _LOG_ROOT, 0.0) if fall > 0.0 else -math.inf


def gaussian_delta(epsilon: float, noise_multiplier: float) -> float:
    """The exact delta at which Gaussian noise is (epsilon, delta)-private (`thm:dpftrl`).

    epsilon: at least 0, in nats. noise_multiplier: standard deviation over Euclidean sensitivity, positive. Raises
    `ValueError` naming the argument.

    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    if not 0 <= epsilon <= sys.float_info.max:
        raise ValueError(f"epsilon must be finite and not negative, got {briefly(epsilon)}")
    if not 0 < noise_multiplier <= sys.float_info.max:
        raise ValueError(f"noise_multiplier must be positive and finite, got {briefly(noise_multiplier)}")
    width = 1 / Fraction(noise_multiplier)
    low = Fraction(epsilon) * Fraction(noise_multiplier) - width / 2  # exact: the terms may agree in many digits
    if low > _LAST or low < _FIRST:
        return 0.0 if low > 0 else 1.0
    return math.exp(_log_delta(float(low), float(min(width, Fraction(10**300)))))


def noise_multiplier(epsilon: float, delta: float) -> float:
    """The least standard deviation of noise on a value of sensitivity one that is (epsilon, delta)-private, rounded up.

    Compositions of Gaussian mechanisms, adaptive ones too, are one Gaussian mechanism. The paper's `sqrt(2 log(1 /
    delta)) / epsilon` (`thm:dpftrl`, claimed for all `epsilon <= 2 log(1 / delta)`) is too small for large epsilon.

    epsilon: positive, in nats. delta: in (0, 1). Raises `ValueError` naming the argument, also where the noise would be
    beyond the floats. Guarantees that the exact delta of the result is at most `delta`, and that of a billionth less
    noise is not where delta is below a half.

    >>> round(noise_multiplier(1.0, 1e-6), 4)
    4.2247
    """
    if not 0 < epsilon <= sys.float_info.max:
        raise ValueError(f"epsilon must be positive and finite, got {briefly(epsilon)}")
    if not (0 < delta < 1 and 0.0 < float(delta) < 1.0):
        raise ValueError(f"delta must lie strictly between 0 and 1, got {briefly(delta)}")
    target, root = math.log(delta) - _MARGIN, math.sqrt(2.0) * math.sqrt(epsilon)

    def width(low: float) -> float:
        high = math.hypot(low, root)
        return root * (root / (high + low)) if low > 0 else high - low

    def private(log_size: float) -> bool:
        low = sign * math.exp(log_size)
        return _log_delta(low, width(low)) <= target

    # delta falls as `low` grows; its size is searched by its log, as it may be of any order
    sign = 1.0 if _log_delta(0.0, width(0.0)) > target else -1.0
    first, last = -740.0, math.log(_LAST)
    while last - first > 1e-13 * max(1.0, abs(last)):
        middle = 0.5 * (first + last)
        if middle in (first, last):
            break
        if private(middle) == (sign > 0):
            last = middle
        else:
            first = middle
    least = width(sign * math.exp(last if sign > 0 else first))
    if least < 1.0 / math.nextafter(math.inf, 0.0):
        raise ValueError(f"epsilon and delta need noise beyond the floats, got {briefly(epsilon)} and {briefly(delta)}")
    return (1.0 + 1e-12) / least
