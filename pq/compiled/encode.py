"""What the compiled walk needs to know of priors, as arrays; None for what it does not do (`alg:quantiles`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from pq.priors import Cauchy, HalfCauchy, Laplace, Mixture, Normal, PiecewiseConstant, Prior, Uniform

Row = tuple[float, float, float, float]  # kind, loc and scale (or both ends), weight
Rows = list[Row]

MODERATE = 1e100  # parameters and records within it, scales also above its inverse: nothing overflows
MOST_ROWS = 16

# In step with pq.compiled.laws, which is not imported here: it brings the compiler with it.
_KINDS: dict[type[Prior], Callable[[Any], Row]] = {
    Uniform: lambda p: (0.0, p.low, p.high, 1.0),
    Cauchy: lambda p: (1.0, p.loc, p.scale, 1.0),
    HalfCauchy: lambda p: (2.0, p.loc, p.scale, 1.0),
    Laplace: lambda p: (3.0, p.loc, p.scale, 1.0),
    Normal: lambda p: (4.0, p.loc, p.scale, 1.0),
}


def _rows(prior: Prior) -> Rows | None:
    make = _KINDS.get(type(prior))
    if make is not None:
        kind, loc, scale, weight = make(prior)
        if not (abs(loc) < MODERATE and 1.0 / MODERATE < abs(scale) < MODERATE):
            return None
        return [(kind, loc, scale, weight)] if kind or scale - loc > 1.0 / MODERATE else None
    if isinstance(prior, PiecewiseConstant):
        bins = zip(prior.edges[:-1], prior.edges[1:], prior.weights, strict=True)
        return _mixed([(Uniform(low, high), weight) for low, high, weight in bins if weight > 0.0])
    if isinstance(prior, Mixture):
        return _mixed([(part, weight) for weight, part in prior._parts])
    return None


def _mixed(parts: Sequence[tuple[Prior, float]]) -> Rows | None:
    if len(parts) > MOST_ROWS:
        return None
    rows: Rows = []
    for part, weight in parts:
        inner = _rows(part)
        if inner is None or (len(inner) > 1 and len(parts) > 1):  # a mixture in a mixture uses its uniform twice
            return None
        rows += [(kind, loc, scale, weight * share) for kind, loc, scale, share in inner]
    return rows


Tables = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]


@lru_cache(maxsize=256)
def _table(prior: Prior) -> Tables | None:
    rows = _rows(prior)
    return None if rows is None else (np.array(rows)[None], np.array([len(rows)]))


def encode(priors: Sequence[Prior]) -> Tables | None:
    """Tables (m, width, 4) of the priors' parts, and the number of rows (m,) that count; None if one has no table.

    One prior for all gives a table with m = 1.
    """
    if len(set(map(id, priors))) == 1:
        return _table(priors[0])
    each = [_rows(prior) for prior in priors]
    if any(rows is None for rows in each):
        return None
    width = max(len(rows) for rows in each if rows is not None)
    out = np.zeros((len(priors), width, 4))
    counts = np.empty(len(priors), dtype=np.int64)
    for i, rows in enumerate(each):
        assert rows is not None
        out[i, : len(rows)], counts[i] = rows, len(rows)
    return out, counts


def is_moderate(values: npt.NDArray[np.float64]) -> bool:
    """Whether sorted records are within the range of the compiled formulas."""
    return values.size == 0 or bool(values[0] > -MODERATE and values[-1] < MODERATE)
