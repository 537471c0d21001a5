"""Losses of priors for all quantiles at once, beyond the paper (Sections 4.3 and 5.1).

U = -log Psi, Psi the mass that a joint prior gives to the box of optimal intervals, is what `pq.bounds.joint_gap` pays.

*Weights.* Under a mixture Psi is linear in the weights, so U is convex in them, whatever the members are.

*Place and width.* With outputs a + b z, z of a log-concave density on m dimensions, Psi is the integral over z of the
indicator that z + theta 1 lies in phi times the box, at theta = a / b and phi = 1 / b. The set of such (z, theta, phi)
is convex, so Psi is log-concave in (theta, phi) (Prekopa), and U convex: for independent or Markov quantiles, and also
given their order, whose region is convex and does not move. In (a, b) itself, for mixtures over places, and for Cauchy
laws it is not.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pq.core.losses.laplace import laplace_interval_arrays

FloatArray = npt.NDArray[np.float64]

__all__ = ["joint_mixture", "place_and_width"]


def joint_mixture(weights: npt.ArrayLike, log_psi: npt.ArrayLike) -> tuple[float, FloatArray]:
    """Loss `-log sum_l w_l Psi_l` of the weights of a joint prior on one data set, and its gradient (`eq:basic`).

    weights: (l,) not negative, of sum one. log_psi: (l,) logs of the members' masses of the optimal box, finite for
    some positive weight. Returns `(value, gradient)`, a float and (l,). Guarantees convexity in weights.

    >>> value, gradient = joint_mixture([0.5, 0.5], [0.0, 0.0])
    >>> float(value), gradient.tolist()
    (0.0, [-1.0, -1.0])
    """
    masses, logs = np.asarray(weights, dtype=np.float64), np.asarray(log_psi, dtype=np.float64)
    with np.errstate(all="ignore"):
        top = float(np.max(np.where(masses > 0.0, logs, -np.inf)))
        scaled = np.exp(logs - top)
        total = float(np.sum(np.where(masses > 0.0, masses * scaled, 0.0)))
        return -(top + float(np.log(total))), -scaled / total


def place_and_width(
    theta: float, phi: float, base: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike
) -> tuple[float, FloatArray]:
    """Loss of independent Laplace priors with a shared place and width, and its gradient (`eq:closed-form`).

    theta, phi: a / b and 1 / b of place a and width b > 0. base: (m, 2) locations z_j and scales c_j at place 0 in
    width 1: prior j is `Laplace(a + b z_j, b c_j)`, whose own parameters `(theta + z_j) / c_j` and `phi / c_j` are
    affine. lower, upper: (m,) ends of the optimal intervals, lower < upper. Returns `(value, gradient)`, a float, the
    sum of the m losses, and (2,). Guarantees joint convexity in (theta, phi).

    >>> value, gradient = place_and_width(0.0, 1.0, [[-1.0, 0.5], [1.0, 0.5]], [-1.5, 0.5], [-0.5, 1.5])
    >>> round(value, 6), gradient.round(6).tolist()
    (0.91735, [0.0, -1.163953])
    """
    shape, low, high = (np.asarray(array, dtype=np.float64) for array in (base, lower, upper))
    z, c = shape[:, 0], shape[:, 1]
    value, d_theta, d_phi = laplace_interval_arrays((theta + z) / c, phi / c, low, high, high - low)
    return float(np.sum(value)), np.array([np.sum(d_theta / c), np.sum(d_phi / c)])
