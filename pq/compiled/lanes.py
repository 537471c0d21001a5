"""Many releases at once from the compiled walk: arrays in, arrays out (`alg:quantiles`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pq.plan import Plan

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

NO_COUNTS = np.empty(0, dtype=np.int64)
REAL = np.zeros(3)  # outputs are real numbers


def _plain(array: FloatArray) -> FloatArray:
    """The array as compiled code wants it: a caller's may be a subclass, have strides, or lie askew in memory."""
    array = np.asarray(array)
    return array if array.flags.c_contiguous and array.flags.aligned else np.array(array, order="C")


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
) -> tuple[FloatArray, npt.NDArray[np.bool_]] | None:
    """Outputs (lanes, m) of the distinct quantiles, and which lanes are beyond the range of the compiled formulas.

    columns: (c, n) sorted records padded at the end, sizes: (c,) how many count, before: see `pq.cells.Points`.
    lattice: (3,) see `pq.compiled.walk.walk_lanes`; columns and outputs are then in steps.
    parts, counts: (p, m or 1, width, 4) and (p, m or 1) from `pq.compiled.encode`. uniforms: (lanes, m, 2) strictly
    inside (0, 1). rates: (r, m) in the place of the plan's. A lane takes column, priors and rates in turn, by its
    number modulo c, p, and r. None if the plan itself is beyond the range.
    """
    from pq.compiled.walk import walk_lanes  # brings the compiler: half a second, once

    arrays = plan.arrays
    if arrays is None:
        return None
    lanes, m = uniforms.shape[:2]
    if parts.shape[:2] != counts.shape or parts.shape[1] not in (1, m) or len(sizes) != len(columns):
        raise ValueError("parts and counts, columns and sizes must agree")  # the compiled code does not look
    out = np.empty((lanes, m))
    given: tuple[Any, ...] = (arrays.rates[None] if rates is None else rates, parts, counts, uniforms)
    walk: Any = walk_lanes
    failed = walk(
        _plain(columns),
        sizes,
        NO_COUNTS if before is None else before,
        arrays.nodes,
        arrays.members,
        arrays.fractions,
        plan.calibration == "paper",
        adaptation == "edge",
        lattice,
        *map(_plain, given),
        out,
    )
    return out, failed
