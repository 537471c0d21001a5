"""The closed form of the Laplace prior's loss on an interval, and its exact gradient (`eq:closed-form`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from pq.core.machine.engine import Engine

__all__ = ["laplace_interval", "laplace_interval_arrays", "laplace_interval_fast", "widen"]

FloatArray = npt.NDArray[np.float64]

_LOG_2 = float(np.log(2.0))
_SPLITTER = 134217729.0  # 2**27 + 1 cuts a float64 into two halves of 26 bits
_SERIES_BELOW = 0.3
# Bernoulli numbers B_2j / (2j)! of w / (e^w - 1) = 1 - w/2 + sum_j B_2j w^2j / (2j)!, highest power first.
_BERNOULLI = (-691 / 1307674368000, 1 / 47900160, -1 / 1209600, 1 / 30240, -1 / 720, 1 / 12)
_FAST = Engine("pq.core.machine.loss", "laplace_losses")
_LEARNED = Engine("pq.core.machine.loss", "learned_losses")


def _exact_product(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The rounded product and its rounding error (Dekker), the error taken as 0 where it is not finite."""
    product = x * y
    x_high = _SPLITTER * x
    x_high = x_high - (x_high - x)
    y_high = _SPLITTER * y
    y_high = y_high - (y_high - y)
    x_low, y_low = x - x_high, y - y_high
    error = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return product, np.where(np.isfinite(error), error, 0.0)


def _exact_sum(x: FloatArray, y: FloatArray | float) -> tuple[FloatArray, FloatArray]:
    """The rounded sum and its rounding error (Knuth), the error taken as 0 where it is not finite."""
    total = x + y
    part = total - x
    error = (x - (total - part)) + (y - part)
    return total, np.where(np.isfinite(error), error, 0.0)


def _one_minus_ratio(width: FloatArray) -> FloatArray:
    """The value of `1 - w / (e^w - 1)` for small w without cancellation."""
    square = width * width
    series = np.zeros_like(width)
    for coefficient in _BERNOULLI:
        series = series * square + coefficient
    return 0.5 * width - square * series


def widen(lower: npt.ArrayLike, upper: npt.ArrayLike, min_width: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The intervals, those narrower than the public resolution widened symmetrically to it.

    Tied order statistics leave an interval without length, on which every prior has the loss infinity; data that are
    recorded to a public resolution are known only up to it, so it is the least width that means anything.

    lower, upper: arrays that broadcast, in the data's unit. min_width: not negative, in the same unit. Returns the
    lower and upper ends.

    >>> widen(3.0, 3.0, 1.0)
    (2.5, 3.5)
    """
    low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    least = np.asarray(min_width, dtype=np.float64)
    with np.errstate(all="ignore"):
        narrow = high - low < least
        middle = low + 0.5 * (high - low)
        new_low, new_high = np.where(narrow, middle - 0.5 * least, low), np.where(narrow, middle + 0.5 * least, high)
    return scalar(new_low), scalar(new_high)


def scalar(array: FloatArray) -> Any:
    """Turn an array without dimensions into a Python float, and leave others alone."""
    return array if array.ndim else float(array)


def laplace_interval(
    theta: npt.ArrayLike,
    phi: npt.ArrayLike,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
    *,
    min_width: npt.ArrayLike = 0.0,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Minus log of the mass of Laplace(theta/phi, 1/phi) in (lower, upper], and its gradient (`eq:closed-form`).

    It is jointly convex in `(theta, phi)`. On an interval without length the loss is infinite and the gradient is the
    limit of the gradients on intervals that shrink to it.

    All arguments broadcast. theta: location over scale, any real. phi: one over scale, positive, in one over the data's
    unit. lower, upper: ends of the interval in the data's unit, either may be infinite. min_width: public resolution,
    not negative, in the data's unit; narrower intervals are widened to it symmetrically.

    Returns `(loss, d_theta, d_phi)` of the broadcast shape (floats when all arguments are scalars). Raises `ValueError`
    naming phi if it is not positive or min_width if it is negative. Guarantees 12 digits for the loss and 10 for the
    gradient wherever their exact values are floats, from `phi * (upper - lower)` of 1e-300 to 1e300 (a component of the
    gradient that crosses zero is exact relative to the two terms that cancel there), and never a warning.

    >>> loss, d_theta, d_phi = laplace_interval(0.0, 1.0, 800.0, 801.0)
    >>> round(loss, 9), d_theta, round(d_phi, 9)
    (801.151822325, -1.0, 799.418023293)
    """
    theta, phi, low, high, least = np.broadcast_arrays(
        *(np.asarray(argument, dtype=np.float64) for argument in (theta, phi, lower, upper, min_width))
    )
    if not np.all(phi > 0):
        raise ValueError("phi must be positive")
    if not np.all(least >= 0):
        raise ValueError("min_width must not be negative")
    with np.errstate(all="ignore"):
        width = np.where(high == low, 0.0, high - low)
        if np.any(least > 0):
            low, high = (np.asarray(end) for end in widen(low, high, least))
            width = np.maximum(width, least)
        loss, d_theta, d_phi = _laplace_interval(theta, phi, low, high, width)
    return scalar(loss), scalar(d_theta), scalar(d_phi)


def _ends(
    theta: FloatArray, phi: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Both ends of the interval, and their sum, as distances from the location in units of the scale; and phi times
    each end less one (plus one): all rounded once only."""
    low_product, low_error = _exact_product(low, phi)
    high_product, high_error = _exact_product(high, phi)
    near, near_error = _exact_sum(low_product, -theta)
    far, far_error = _exact_sum(high_product, -theta)
    both, both_error = _exact_sum(low_product, high_product)
    shift, shift_error = _exact_sum(both, -2.0 * theta)
    low_less, low_less_error = _exact_sum(low_product, -1.0)
    high_more, high_more_error = _exact_sum(high_product, 1.0)
    return (
        near + (near_error + low_error),
        far + (far_error + high_error),
        shift + (shift_error + both_error + (low_error + high_error)),
        low_less + (low_less_error + low_error),
        high_more + (high_more_error + high_error),
    )


def _laplace_interval(
    theta: FloatArray, phi: FloatArray, low: FloatArray, high: FloatArray, width: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Evaluate the loss and its gradient; the width comes separately because the ends may be too large to hold it."""
    near, far, shift, low_less, high_more = _ends(theta, phi, low, high)
    return _mirrored(phi, low, high, width, near, far, shift, np.where(shift < 0, -high_more, low_less))


def laplace_interval_fast(
    theta: FloatArray, phi: FloatArray, low: FloatArray, high: FloatArray, width: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """As `laplace_interval` with ordinary rounding and no checks, for inner loops over moderate numbers.

    The arguments broadcast. width: of the intervals, at least the public resolution.
    """
    shape = np.broadcast_shapes(theta.shape, phi.shape, low.shape, high.shape, width.shape)
    given = [np.ascontiguousarray(np.broadcast_to(a, shape)).reshape(-1) for a in (theta, phi, low, high, width)]
    if not _FAST.ready(math.inf):
        return _quietly(*(array.reshape(shape) for array in given))
    out = np.empty((3, given[0].size))
    _FAST(*given, out)
    loss, d_theta, d_phi = out.reshape(3, *shape)
    return loss, d_theta, d_phi


def laplace_interval_learned(
    theta: FloatArray,
    phi: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    loc: FloatArray,
    scale: FloatArray,
    least: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """As `laplace_interval_fast` on intervals that are first brought to units `scale` around `loc` and then widened
    to `least`.

    theta, phi: (..., m) in those units. lower, upper: (..., m), or (m,) for all, in the unit of the data. loc, scale,
    least: (m,).
    """
    rows = [np.ascontiguousarray(a).reshape(-1, a.shape[-1]) for a in (theta, phi, lower, upper)]
    out = np.empty((3, *rows[0].shape))
    if _LEARNED.ready(math.inf):
        _LEARNED(*rows, *map(np.ascontiguousarray, (loc, scale, least)), out)
    else:
        out[:] = _learned_slowly(rows, loc, scale, least)
    loss, d_theta, d_phi = out.reshape(3, *theta.shape)
    return loss, d_theta, d_phi


def _quietly(*arguments: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    with np.errstate(all="ignore"):
        return _laplace_interval(*arguments)


def _learned_slowly(
    rows: list[FloatArray], loc: FloatArray, scale: FloatArray, least: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What `pq.core.machine.loss.learned_losses` does, by the formulas."""
    with np.errstate(all="ignore"):
        theta, phi, *ends = rows
        low, high = ((np.resize(end, theta.shape) - loc) / scale for end in ends)
        width = np.maximum(high - low, least)
        return _laplace_interval(theta, phi, *widen(low, high, least), width)


def laplace_interval_arrays(
    theta: FloatArray, phi: FloatArray, low: FloatArray, high: FloatArray, width: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """As `laplace_interval_fast` without the compiler, for few calls on large arrays, which broadcast.

    The caller suppresses floating-point warnings.
    """
    low_product, high_product = low * phi, high * phi
    near, far = low_product - theta, high_product - theta
    shift = near + far
    return _mirrored(phi, low, high, width, near, far, shift, np.where(shift < 0, -high_product, low_product) - 1.0)


def _mirrored(
    phi: FloatArray,
    low: FloatArray,
    high: FloatArray,
    width: FloatArray,
    near: FloatArray,
    far: FloatArray,
    shift: FloatArray,
    end_less: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Evaluate in the frame where the location lies left of the middle, so that `near` is the nearer end."""
    flip = shift < 0  # mirror at the location: (low, high, theta) -> (-high, -low, -theta)
    shift = np.abs(shift)
    near, far = np.where(flip, -far, near), np.where(flip, -near, far)
    end, other = np.where(flip, -high, low), np.where(flip, -low, high)

    outside = near >= 0
    span = phi * width
    # Outside: mass = exp(-near) (1 - exp(-span)) / 2.
    outer_loss = _LOG_2 + near - np.log(-np.expm1(-span))
    outer_slope = end - np.where(np.isinf(width), 0.0, width / np.expm1(span))
    narrow = span < _SERIES_BELOW
    if np.any(narrow):
        outer_slope = np.where(narrow, (end_less + _one_minus_ratio(span)) / phi, outer_slope)
    # Inside: twice the mass = (1 - exp(near)) + (1 - exp(-far)), near <= 0 <= far, -near <= far.
    near, far = np.minimum(near, 0.0), np.maximum(far, 0.0)
    twice = -(np.expm1(near) + np.expm1(-far))
    near_tail, near_root = np.exp(near), np.exp(0.5 * near)  # the root, squared late, stays clear of subnormals
    inner_loss = np.where(twice > 1.0, -np.log1p(-0.5 * (near_tail + np.exp(-far))), _LOG_2 - np.log(twice))
    inner_theta = near_tail * np.expm1(-shift) / twice
    pull = np.where(
        shift > _LOG_2,
        end - np.where(np.isinf(other), 0.0, other * np.exp(-shift)),
        -width - other * np.expm1(-shift),
    )
    inner_slope = near_root * pull / twice * near_root

    loss = np.where(outside, outer_loss, inner_loss)
    d_theta = np.where(outside, -1.0, inner_theta)
    d_theta = np.where(flip, -d_theta, d_theta)
    d_phi = np.where(outside, outer_slope, inner_slope)
    # An interval that is the whole line, or that lies at infinity, gives no direction.
    return loss, np.where(np.isfinite(d_theta), d_theta, 0.0), np.where(np.isfinite(d_phi), d_phi, 0.0)
