"""The closed form of the Laplace prior's loss and its gradient, compiled for inner loops (`eq:closed-form`).

Ordinary rounding, for moderate numbers; `pq.core.losses.laplace` is the same to full precision.
"""

from __future__ import annotations

import math
from typing import Any

from numba import float64, void

from pq.core.machine.keep import given, kept, uncounted

LOG_2 = math.log(2.0)

SERIES_BELOW = 0.3


@uncounted
def _one_minus_ratio(width: float) -> float:
    """1 - w / (e^w - 1) for small w, by Bernoulli numbers."""
    s = width * width
    series = 1 / 12 - s * (
        1 / 720 - s * (1 / 30240 - s * (1 / 1209600 - s * (1 / 47900160 - s * (691 / 1307674368000))))
    )
    return 0.5 * width - s * series


@uncounted
def _outside(near: float, end: float, end_less: float, phi: float, width: float) -> Any:
    """Loss and slopes of an interval that does not hold the location: mass = exp(-near) (1 - exp(-span)) / 2."""
    span = phi * width
    loss = LOG_2 + near - math.log(-math.expm1(-span))
    if span < SERIES_BELOW:
        return loss, -1.0, (end_less + _one_minus_ratio(span)) / phi
    return loss, -1.0, end - (0.0 if math.isinf(width) else width / math.expm1(span))


@uncounted
def _inside(near: float, far: float, shift: float, end: float, other: float, width: float) -> Any:
    """The same where it does: twice the mass = (1 - exp(near)) + (1 - exp(-far)), near <= 0 <= far."""
    far = max(far, 0.0)
    twice = -(math.expm1(near) + math.expm1(-far))
    tail, root = math.exp(near), math.exp(0.5 * near)  # the root, squared late, stays clear of subnormals
    loss = -math.log1p(-0.5 * (tail + math.exp(-far))) if twice > 1.0 else LOG_2 - math.log(twice)
    if shift > LOG_2:
        pull = end - (0.0 if math.isinf(other) else other * math.exp(-shift))
    else:
        pull = -width - other * math.expm1(-shift)
    return loss, tail * math.expm1(-shift) / twice, root * pull / twice * root


@uncounted
def _loss_at(theta: float, phi: float, low: float, high: float, width: float) -> Any:
    """Loss, and slopes by theta and by phi, of one interval."""
    near, far = low * phi - theta, high * phi - theta
    shift = near + far
    flip = shift < 0.0  # mirror at the location, so that `near` is the nearer end
    end_less = (-high if flip else low) * phi - 1.0
    if flip:
        near, far, low, high, shift = -far, -near, -high, -low, -shift
    if near >= 0.0:
        loss, by_theta, by_phi = _outside(near, low, end_less, phi, width)
    else:
        loss, by_theta, by_phi = _inside(near, far, shift, low, high, width)
    # An interval that is the whole line, or that lies at infinity, gives no direction.
    by_theta = (-by_theta if flip else by_theta) if math.isfinite(by_theta) else 0.0
    return loss, by_theta, by_phi if math.isfinite(by_phi) else 0.0


_IN, _TABLE = given(float64, 1), given(float64, 2)


@kept(void(_IN, _IN, _IN, _IN, _IN, float64[:, ::1]))
def laplace_losses(sources: int) -> Any:
    def run(theta: Any, phi: Any, lower: Any, upper: Any, width: Any, out: Any) -> None:
        """Put losses and gradients by theta and by phi into `out` (3, k); the other arguments are (k,)."""
        sources  # noqa: B018 (see pq.core.machine.keep)
        for i in range(theta.size):
            out[0, i], out[1, i], out[2, i] = _loss_at(theta[i], phi[i], lower[i], upper[i], width[i])

    return run


@kept(void(_TABLE, _TABLE, _TABLE, _TABLE, _IN, _IN, _IN, float64[:, :, ::1]))
def learned_losses(sources: int) -> Any:
    def run(
        theta: Any, phi: Any, lower: Any, upper: Any, loc: Any, scale: Any, least: Any, out: Any
    ) -> None:  # fmt: skip
        """The same into `out` (3, k, m), with intervals (k or 1, m) in the unit of the data, which are brought to units
        `scale` (m,) around `loc` (m,) and widened to `least` (m,)."""
        sources  # noqa: B018 (see pq.core.machine.keep)
        for k in range(theta.shape[0]):
            row = k % lower.shape[0]
            for i in range(theta.shape[1]):
                low, high = (lower[row, i] - loc[i]) / scale[i], (upper[row, i] - loc[i]) / scale[i]
                width = high - low
                if not width >= least[i]:
                    middle, width = 0.5 * (low + high), least[i]
                    low, high = middle - 0.5 * width, middle + 0.5 * width
                out[0, k, i], out[1, k, i], out[2, k, i] = _loss_at(theta[k, i], phi[k, i], low, high, width)

    return run
