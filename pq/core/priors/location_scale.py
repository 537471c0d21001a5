"""Families that a location and a scale describe, and the inverse of a symmetric law within an interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pq.core.priors.arguments import positive, real
from pq.core.priors.numerics import Array, Masks

# The inverses of the families see an interval from the location: `near` and `far` are the signed distances of its ends,
# mirrored so that |near| <= far; `near` < 0 means that the location lies inside. u is the share of the mass next to the
# near end, v = 1 - u. They return a point as an offset from the near end (where the mask is set) or as a distance from
# the location.
Inverse = Callable[[Array, Array, Array, Array, Array, float], tuple[Array, Array, Masks]]


def location_scale_quantile(
    inverse: Inverse, lower: Array, upper: Array, u: Array, v: Array, loc: float, scale: float
) -> Array:
    """Inverse of a symmetric law restricted to (lower, upper], at share u = 1 - v of the interval's mass."""
    ends = np.concatenate([np.abs(lower), np.abs(upper), [abs(loc)]])
    if (np.isfinite(ends) & (ends > 4e307)).any():  # differences could overflow
        return 4.0 * location_scale_quantile(inverse, 0.25 * lower, 0.25 * upper, u, v, 0.25 * loc, 0.25 * scale)
    left, right = lower - loc, upper - loc
    flip = (upper <= loc) | ((lower < loc) & (-left > right))
    near, far = np.where(flip, -right, left), np.where(flip, -left, right)
    offset, place, use_offset = inverse(near, far, upper - lower, np.where(flip, v, u), np.where(flip, u, v), scale)
    sign = np.where(flip, -1.0, 1.0)
    return np.where(use_offset, np.where(flip, upper, lower) + sign * offset, loc + sign * place)


@dataclass(frozen=True)
class LocationScale:
    """The parameters of a law that is symmetric about `loc`, with all the line as its support."""

    loc: float
    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "loc", real(self.loc, "loc"))
        object.__setattr__(self, "scale", positive(self.scale))

    @property
    def support(self) -> tuple[float, float]:
        return -math.inf, math.inf

    def _cores(self) -> list[tuple[float, float]]:
        return [(self.loc, self.loc)]
