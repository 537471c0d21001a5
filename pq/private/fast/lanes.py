"""Many releases at once from the compiled walk: arrays in, arrays out (`alg:quantiles`)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from pq.core.plan import Plan

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

NO_COUNTS = np.empty(0, dtype=np.int64)
REAL = np.zeros(3)  # outputs are real numbers


PLAIN = 0x101  # numpy's flags C_CONTIGUOUS and ALIGNED


def _plain(array: Any) -> Any:
    """The array as compiled code wants it: a caller's may be a subclass, have strides, or lie askew in memory."""
    if type(array) is np.ndarray and array.flags.num & PLAIN == PLAIN:
        return array
    return np.array(array, order="C")


@cache
def _walk() -> Any:
    from pq.private.fast.walk import walk_lanes  # brings the compiler: half a second, once

    return walk_lanes


def run(
    plan: Plan,
    adaptation: str,
    columns: FloatArray,
    sizes: IntArray,
    parts: FloatArray,
    counts: IntArray,
    uniforms: FloatArray,
    *,
    before: IntArray | None = None,
    lattice: FloatArray = REAL,
    rates: FloatArray | None = None,
) -> tuple[FloatArray, int] | None:
    """Outputs (lanes, m) of the distinct quantiles, and how many lanes are beyond the range of the compiled formulas.

    columns: (c, n) sorted records padded at the end, sizes: (c,) how many count, before: see
    `pq.private.columns.cells.Points`. lattice: (3,) see `pq.private.fast.walk.walk_lanes`; columns and outputs are then
    in steps. parts, counts: (p, m or 1, width, 4) and (p, m or 1) from `pq.private.fast.encode`. uniforms: (lanes, m,
    2) strictly inside (0, 1). rates: (r, m) in the place of the plan's. A lane takes column, priors and rates in turn,
    by its number modulo c, p, and r. A lane beyond the range is NaN throughout; None if the plan itself is.
    """
    arrays = plan.arrays
    if arrays is None:
        return None
    lanes, m = uniforms.shape[:2]
    if parts.shape[:2] != counts.shape or parts.shape[1] not in (1, m) or len(sizes) != len(columns):
        raise ValueError("parts and counts, columns and sizes must agree")  # the compiled code does not look
    out = np.empty((lanes, m))
    beyond = _walk()(
        _plain(columns),
        sizes,
        NO_COUNTS if before is None else before,
        arrays.nodes,
        arrays.members,
        arrays.fractions,
        plan.calibration == "paper",
        adaptation == "edge",
        lattice,
        arrays.rates if rates is None else _plain(rates),
        _plain(parts),
        counts,
        _plain(uniforms),
        out,
    )
    return out, beyond
