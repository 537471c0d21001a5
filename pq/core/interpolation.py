"""Further quantiles from a few that were released: post-processing, which costs nothing (Section 3.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pq.core.priors.numerics import LARGEST
from pq.core.scores import Array


def interpolate(levels: Any, values: Any, quantiles: Any) -> Array:
    """Values at quantiles between, below and above released ones, by a monotone cubic curve.

    levels: (k,) released quantiles, increasing, in [0, 1]; of those that are one float the first counts, 0 and 1 as the
    floats next to them. values: (k,) increasing, in the data's unit. quantiles: (m,) in [0, 1].
    Levels are put on the scale of the standard normal law, on which the curves of bell-shaped data are straight; beyond
    the first and the last level the curve goes on along the chord of the outermost two, so that the result is
    increasing in the quantile whatever the values. One value stands for all quantiles. Returns (m,), finite: quantiles
    outside [0.001, 0.999] count as these. Raises `ValueError` naming the argument.

    >>> interpolate([0.25, 0.5, 0.75], [-1.0, 0.0, 1.0], [0.25, 0.5, 0.6]).round(3) + 0.0
    array([-1.   ,  0.   ,  0.376])
    """

    import scipy  # late, as in pq.core.priors.numerics

    at, known, wanted = (np.asarray(a, dtype=np.float64) for a in (levels, values, quantiles))
    if at.ndim != 1 or not len(at) or not np.all((at >= 0.0) & (at <= 1.0)) or np.any(np.diff(at) < 0.0):
        raise ValueError("levels must be increasing, in [0, 1]")
    if known.shape != at.shape or not np.all(np.isfinite(known)) or np.any(np.diff(known) < 0.0):
        raise ValueError("values must be finite and increasing, one for each level")
    if wanted.ndim != 1 or not np.all((wanted >= 0.0) & (wanted <= 1.0)):
        raise ValueError("quantiles must lie in [0, 1]")
    at = np.clip(at, np.finfo(np.float64).smallest_subnormal, np.nextafter(1.0, 0.0))
    z, first = np.unique(scipy.special.ndtri(at), return_index=True)
    at, known = at[first], known[first]
    if len(at) == 1:
        return np.full(wanted.shape, known[0])
    target = scipy.special.ndtri(np.clip(wanted, min(0.001, at[0]), max(0.999, at[-1])))
    inside = np.clip(target, z[0], z[-1])
    scale = max(float(known[-1] - known[0]), np.finfo(np.float64).tiny)  # the curve of values of any size
    if not np.isfinite(scale):
        return np.interp(inside, z, known)
    curve = known[0] + scale * scipy.interpolate.PchipInterpolator(z, (known - known[0]) / scale)(inside)
    below = (known[1] - known[0]) / (z[1] - z[0]) * (target - inside)
    above = (known[-1] - known[-2]) / (z[-1] - z[-2]) * (target - inside)
    out = np.where(target < z[0], known[0] + below, np.where(target > z[-1], known[-1] + above, curve))
    out, order = np.clip(out, -LARGEST, LARGEST), np.argsort(wanted, kind="stable")
    out[order] = np.maximum.accumulate(out[order])
    return out
