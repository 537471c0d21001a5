"""What the compiled walk needs to know of priors, as arrays; None for what it does not do (`alg:quantiles`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pq.core.priors.families import Cauchy, HalfCauchy, Laplace, Mixture, Normal, PiecewiseConstant, Prior, Uniform

Row = tuple[float, float, float, float]  # kind, loc and scale (or both ends), weight
Rows = list[Row]

MODERATE = 1e60  # parameters and records within it, scales also above its inverse: nothing overflows
MOST_ROWS = 16

# In step with pq.private.fast.laws, which is not imported here: it brings the compiler with it.
_KINDS: dict[type[Prior], Callable[[Any], tuple[float, float, float]]] = {
    Uniform: lambda p: (0.0, p.low, p.high),
    Cauchy: lambda p: (1.0, p.loc, p.scale),
    HalfCauchy: lambda p: (2.0, p.loc, p.scale),
    Laplace: lambda p: (3.0, p.loc, p.scale),
    Normal: lambda p: (4.0, p.loc, p.scale),
}


def _rows(prior: Prior) -> Rows | None:
    if type(prior) in _KINDS:
        return _weighted(((prior, 1.0),))
    if isinstance(prior, PiecewiseConstant):
        bins = zip(prior.edges[:-1], prior.edges[1:], prior.weights, strict=True)
        return _weighted([(Uniform(low, high), weight) for low, high, weight in bins if weight > 0.0])
    if isinstance(prior, Mixture):
        parts = prior._parts
        return _rows(parts[0][1]) if len(parts) == 1 else _weighted([(part, weight) for weight, part in parts])
    return None


def _weighted(parts: Sequence[tuple[Prior, float]]) -> Rows | None:
    """The rows of a mixture of simple priors; none for one of mixtures, which uses its uniform more than once."""
    rows: Rows = []
    for part, weight in parts:
        make = _KINDS.get(type(part))
        if make is None:
            return None
        kind, loc, scale = make(part)
        width = scale if kind else scale - loc
        if not (abs(loc) < MODERATE and abs(scale) < MODERATE and width > 1.0 / MODERATE):
            return None
        rows.append((kind, loc, scale, weight))
    return rows if len(rows) <= MOST_ROWS else None


Tables = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]


def encode(priors: Sequence[Prior]) -> Tables | None:
    """Tables (1, m, width, 4) of the priors' parts, and the number of rows (1, m) that count; None if one has no table.

    One prior for all gives a table with m = 1.
    """
    each = [_rows(prior) for prior in (priors[:1] if len(set(map(id, priors))) == 1 else priors)]
    if any(rows is None for rows in each):
        return None
    width = max(len(rows) for rows in each if rows is not None)
    out = np.zeros((1, len(each), width, 4))
    counts = np.empty((1, len(each)), dtype=np.int64)
    for i, rows in enumerate(each):
        assert rows is not None
        out[0, i, : len(rows)], counts[0, i] = rows, len(rows)
    return out, counts


def is_moderate(values: npt.NDArray[np.float64], step: float = 1.0) -> bool:
    """Whether sorted records, in units of a step, are within the range of the compiled formulas."""
    end = MODERATE / step
    return step > 1.0 / MODERATE and (values.size == 0 or (values.item(0) > -end and values.item(-1) < end))
