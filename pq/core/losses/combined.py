"""Convex surrogate losses of quantile release, with exact gradients (Sections 4.3, 5.1 and Appendices B.2, C.1).

Two families. Laplace priors, parameterised by `theta = location / scale` and `phi = 1 / scale`, have the epsilon-free
loss of `eq:closed-form`, which is convex in `(theta, phi)`. Piecewise-constant priors, parameterised by one probability
vector per quantile, have the epsilon-dependent loss, whose gradient has the small sensitivity of
`lem:refined-sensitivity`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pq.core.losses.joint import joint_mixture, place_and_width
from pq.core.losses.laplace import laplace_interval, laplace_interval_fast, scalar, widen
from pq.core.losses.piecewise import gradient_sensitivity, log_scores, piecewise_constant

__all__ = [
    "gradient_sensitivity",
    "joint_mixture",
    "laplace_interval",
    "laplace_interval_fast",
    "laplace_linear",
    "laplace_quantiles",
    "log_scores",
    "log_sum_exp",
    "piecewise_constant",
    "place_and_width",
    "proxy",
    "proxy_interval",
    "widen",
]

FloatArray = npt.NDArray[np.float64]


def log_sum_exp(losses: npt.ArrayLike, axis: int = -1) -> tuple[FloatArray, FloatArray]:
    """The log of the sum of the exponentials along an axis, and its gradient (Section 4, `U = log sum_i exp(U_i)`).

    losses: any shape, in nats, minus and plus infinity allowed; the axis runs over the quantiles. Returns `(value,
    weights)`: value without the axis, weights of the shape of losses, not negative, summing to one along the axis.

    >>> value, weights = log_sum_exp([0.0, 0.0])
    >>> round(value, 12), weights.tolist()
    (0.69314718056, [0.5, 0.5])
    """
    array = np.asarray(losses, dtype=np.float64)
    with np.errstate(all="ignore"):
        top = np.max(array, axis=axis, keepdims=True)
        # Equal infinities share the weight, as equal numbers do.
        terms = np.where(np.isinf(top), (array == top).astype(np.float64), np.exp(array - top))
        total = np.sum(terms, axis=axis, keepdims=True)
        value = np.where(np.isinf(top), top, top + np.log(total))
    return scalar(np.squeeze(value, axis=axis)), terms / total


def laplace_quantiles(
    theta: npt.ArrayLike,
    phi: npt.ArrayLike,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
    *,
    min_width: npt.ArrayLike = 0.0,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Loss of several Laplace priors on one data set, and its gradient (Section 5.1 with `eq:closed-form`).

    It is the log-sum-exp over the last axis of `laplace_interval`. Arguments as there, the last axis (m) running over
    the quantiles. Returns `(value, d_theta, d_phi)`, of shapes (...), (..., m), (..., m). Raises as `laplace_interval`.

    >>> value, d_theta, d_phi = laplace_quantiles([0.0, 0.0], [1.0, 1.0], [-1.0, 0.0], [0.0, 1.0])
    >>> d_theta.round(12).tolist()
    [0.5, -0.5]
    """
    loss, d_theta, d_phi = laplace_interval(theta, phi, lower, upper, min_width=min_width)
    value, weights = log_sum_exp(loss)
    return value, weights * d_theta, weights * d_phi


def laplace_linear(
    maps: npt.ArrayLike,
    phi: npt.ArrayLike,
    features: npt.ArrayLike,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
    *,
    min_width: npt.ArrayLike = 0.0,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Loss of Laplace priors whose locations are linear in public features, and its gradient (`thm:sequential`).

    `theta_i = <maps_i, features>` (Section 5.1); the loss is convex in `(maps, phi)`.

    maps: (m, d). phi: (m,) positive. features: (d,). lower, upper, min_width: as in `laplace_interval`. Returns
    `(value, d_maps, d_phi)`: a float, (m, d) and (m,). Raises as `laplace_interval`.

    >>> value, d_maps, d_phi = laplace_linear([[1.0, 0.0]], [1.0], [2.0, 3.0], [5.0], [6.0])
    >>> d_maps.tolist()
    [[-2.0, -3.0]]
    """
    known = np.asarray(features, dtype=np.float64)
    theta = np.asarray(maps, dtype=np.float64) @ known
    value, d_theta, d_phi = laplace_quantiles(theta, phi, lower, upper, min_width=min_width)
    return value, d_theta[..., None] * known, d_phi


def proxy_interval(released: npt.ArrayLike, resolution: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The interval of the public resolution's width around each released value (Section 5.3).

    In the proxy loss of PubProx it stands in for the optimal interval, which is private.

    released: (..., m). resolution: broadcasts; both in the data's unit. Returns the lower and upper ends.

    >>> proxy_interval([3.0], 1.0)
    (array([2.5]), array([3.5]))
    """
    centre = np.asarray(released, dtype=np.float64)
    radius = 0.5 * np.asarray(resolution, dtype=np.float64)
    return centre - radius, centre + radius


def proxy(
    theta: npt.ArrayLike, phi: npt.ArrayLike, released: npt.ArrayLike, resolution: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Proxy loss of Laplace priors around released values, and its gradient (Section 5.3).

    It sees released values and public facts only, so that learning from it costs no privacy.

    theta, phi, released: (..., m). resolution: public resolution of the data, positive, in their unit (the interval's
    radius is half of it). Returns `(value, d_theta, d_phi)` as `laplace_quantiles`. Raises `ValueError` naming
    resolution or phi if it is not positive.

    >>> round(proxy([0.0], [1.0], [0.0], 2.0)[0], 12)
    0.458675145387
    """
    if not resolution > 0:
        raise ValueError("resolution must be positive")
    lower, upper = proxy_interval(released, resolution)
    return laplace_quantiles(theta, phi, lower, upper, min_width=resolution)
