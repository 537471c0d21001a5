"""From uniforms to outputs: `alg:quantiles` on a column, compiled or as `pq.private.mechanisms.exponential` states
it (Section 3.2)."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from pq.core.plan import Node
from pq.private.columns.cells import Column, Lattice, Points
from pq.private.columns.door import Array
from pq.private.fast import lanes
from pq.private.fast.encode import is_moderate
from pq.private.mechanisms.exponential import Law
from pq.private.request import Request

DROPPED_BITS, ONE = np.uint64(11), np.uint64(1)


def _generator(rng: Any) -> np.random.Generator:
    if isinstance(rng, np.random.Generator):
        return rng
    try:
        return np.random.default_rng(None if rng is None else _seed(rng))
    except (TypeError, ValueError):
        raise TypeError(f"rng must be a numpy.random.Generator, a seed or None, got {rng!r}") from None


def _seed(rng: Any) -> Any:
    if isinstance(rng, (bool, np.bool_)):
        raise TypeError
    return rng


def draw_uniforms(request: Request, count: int, rng: Any) -> Array:
    """Uniforms (count, distinct quantiles, 2) strictly inside (0, 1): for the cell, and for the point in it."""
    shape = (count, len(request.plan.distinct), 2)
    if rng is None:
        bits = np.frombuffer(os.urandom(8 * math.prod(shape)), dtype=np.uint64)
        odd = bits >> DROPPED_BITS | ONE  # the 2^52 middles between multiples of 2^-52
        return np.asarray((odd * 2.0**-53).reshape(shape))
    return np.asarray(_generator(rng).integers(1, 2**53, shape) * 2.0**-53)


def draw(request: Request, x: Any, uniforms: Array) -> Array:
    """Outputs (lanes, m) in the caller's order that uniforms stand for: compiled where that can be, else `walked`."""
    with np.errstate(all="ignore"):
        column = request.column(x)
        outputs, missing = compiled(request, column, uniforms)
        if missing:
            for lane in np.flatnonzero(np.isnan(outputs[:, 0])):
                outputs[lane] = walked(request, column, uniforms[lane].tolist())
    return outputs if request.plan.order is None else outputs[:, request.plan.order]


def compiled(request: Request, column: Points | Lattice, uniforms: Array) -> tuple[Array, int]:
    """Outputs of the compiled walk, NaN in the lanes that it leaves to `walked`, and how many those are."""
    lattice, step = lanes.REAL, 1.0
    if isinstance(column, Lattice):
        step = float(column.step)
        lattice = np.array([float(column.step.numerator), float(column.step.denominator), request.tie_share])
    if request.tables is not None and is_moderate(column.values, step):
        sizes = np.array([len(column.values)])
        quick = lanes.run(
            request.plan,
            request.adaptation,
            column.values[None],
            sizes,
            *request.tables,
            uniforms,
            before=column.before,
            lattice=lattice,
        )
        if quick is not None:
            return (column.value(quick[0]), quick[1]) if isinstance(column, Lattice) else quick
    return np.full(uniforms.shape[:2], math.nan), len(uniforms)


def walked(request: Request, column: Column, uniforms: list[list[float]]) -> list[float]:
    """The output of each distinct quantile, in the units of the data: the law as
    `pq.private.mechanisms.exponential` states it."""
    outputs = [0.0] * len(request.plan.distinct)

    def decide(node: Node, laws: list[Law]) -> list[float]:
        drawn = sorted(law.draw(*uniforms[i]) for law, i in zip(laws, node.indices, strict=True))
        for i, o in zip(node.indices, drawn, strict=True):
            outputs[i] = column.value(o)
        return drawn

    request.walk(column, decide)
    return outputs
