"""Many releases at once from the compiled walk: arrays in, arrays out (`alg:quantiles`)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pq.core.machine.engine import Engine
from pq.core.plan import PlanArrays
from pq.private.columns.cells import Steps

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

NO_COUNTS = np.empty(0, dtype=np.int64)
REAL = np.zeros(4)  # outputs are real numbers


def lattice_of(step: Fraction | None, unit: int, halves: int) -> FloatArray:
    """What `run` takes as a lattice: see `pq.private.fast.walk.walk_lanes`."""
    return REAL if step is None else np.array([step.numerator, step.denominator, unit, halves], dtype=np.float64)


PLAIN = 0x101  # numpy's flags C_CONTIGUOUS and ALIGNED


def _plain(array: Any) -> Any:
    """The array as compiled code wants it: a caller's may be a subclass, have strides, or lie askew in memory."""
    if type(array) is np.ndarray and array.flags.num & PLAIN == PLAIN:
        return array
    return np.array(array, order="C")


def _ranks(before: IntArray | Steps | None) -> tuple[IntArray, IntArray]:
    """Records before each value as `pq.private.fast.walk.walk_lanes` takes them."""
    if not isinstance(before, Steps):
        return (NO_COUNTS if before is None else before), NO_COUNTS
    return (before.more, before.at) if len(before.at) else (NO_COUNTS, NO_COUNTS)


WALK = Engine("pq.private.fast.walk", "walk_lanes")
HEAD, LOOK = 2, 4  # as in pq.private.fast.walk


def words_for(looks: int) -> IntArray:
    """Room for what a walk says back of so many looks into gaps at most."""
    return np.zeros(HEAD + LOOK * looks, dtype=np.int64)


def looks_in(words: IntArray) -> list[list[int]]:
    """What was looked for in gaps: ranks of the node, low and high, and those near the target."""
    looks: list[list[int]] = words[HEAD : HEAD + LOOK * words.item(1)].reshape(-1, LOOK).tolist()
    return looks


def run(
    plan: PlanArrays,
    floored: bool,
    edge: bool,
    columns: FloatArray,
    sizes: IntArray,
    parts: FloatArray,
    counts: IntArray,
    uniforms: FloatArray,
    *,
    before: IntArray | Steps | None = None,
    gaps: IntArray = NO_COUNTS,
    lattice: FloatArray = REAL,
    rates: FloatArray | None = None,
) -> FloatArray:
    """Outputs (lanes, m) of the distinct quantiles; a lane beyond the range of the compiled formulas is NaN throughout.

    The arguments are those of `fill_lanes`.
    """
    out = np.empty(uniforms.shape[:2])
    if fill_lanes(
        out, plan, floored, edge, columns, sizes, parts, counts, uniforms, before, gaps, lattice, rates
    ):  # fmt: skip
        out[np.isnan(out).any(axis=1)] = np.nan
    return out


def fill_lanes(
    out: FloatArray,
    plan: PlanArrays,
    floored: bool,
    edge: bool,
    columns: FloatArray,
    sizes: IntArray,
    parts: FloatArray,
    counts: IntArray,
    uniforms: FloatArray,
    before: IntArray | Steps | None = None,
    gaps: IntArray = NO_COUNTS,
    lattice: FloatArray = REAL,
    rates: FloatArray | None = None,
    words: IntArray | None = None,
) -> int:
    """Put the outputs of the distinct quantiles into `out` (lanes, m), NaN at nodes that are beyond the range of the
    compiled formulas, and below them; returns how many these are. -1 says that a gap was looked into: `out` is worth
    nothing then.

    floored: whether targets are; edge: whether priors are adapted to edges.
    columns: (c, n) sorted records padded at the end, sizes: (c,) how many count, before: see
    `pq.private.columns.cells.Points`, gaps: see `pq.private.columns.part`. lattice: (3,) see
    `pq.private.fast.walk.walk_lanes`; columns and outputs are then in steps. parts, counts: (p, m or 1, width, 4) and
    (p, m or 1) from `pq.private.fast.encode`. uniforms: (lanes, m, 2) strictly inside (0, 1). rates: (r, m) in the
    place of the plan's. words: of `words_for`, which say afterwards what was looked for in gaps. A lane takes column,
    priors and rates in turn, by its number modulo c, p, and r.
    """
    if parts.shape[:2] != counts.shape or parts.shape[1] not in (1, out.shape[1]) or len(sizes) != len(columns):
        raise ValueError("parts and counts, columns and sizes must agree")  # the compiled code does not look
    left: int = WALK(
        _plain(columns),
        sizes,
        *_ranks(before),
        gaps,
        plan.nodes,
        plan.members,
        plan.fractions,
        floored,
        edge,
        lattice,
        plan.rates if rates is None else _plain(rates),
        _plain(parts),
        counts,
        _plain(uniforms),
        out,
        words_for(0) if words is None else words,
    )
    return left
