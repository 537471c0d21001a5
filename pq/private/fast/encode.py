"""What the compiled walk needs to know of priors, as arrays; None for what it does not do (`alg:quantiles`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pq.core.priors import Prior
from pq.core.priors.kernel import MODERATE, kinds

Rows = list[tuple[int, float, float, float]]  # kind, the family's two parameters, weight
Tables = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]

MOST_ROWS = 16


def _rows(prior: Prior, most: int) -> Rows | None:
    """The rows of a mixture of simple priors; none for one of mixtures, which uses its uniform more than once."""
    parts = prior._components()
    if len(parts) == 1 and parts[0][1] is not prior:
        return _rows(parts[0][1], most)
    rows: Rows = []
    known = kinds()
    for weight, part in parts if len(parts) <= most else ():
        kind, row = known.get(type(part)), part._row()
        if kind is None or row is None:
            return None
        rows.append((kind, *row, weight))
    return rows or None


def encode(priors: Sequence[Prior], most: int = MOST_ROWS) -> Tables | None:
    """Tables (1, m, width, 4) of the priors' parts, and the number of rows (1, m) that count; None if one has no table.

    One prior for all gives a table with m = 1. most: parts of a prior that has a table.
    """
    each = [_rows(prior, most) for prior in (priors[:1] if len(set(map(id, priors))) == 1 else priors)]
    if any(rows is None for rows in each):
        return None
    width = max(len(rows) for rows in each if rows is not None)
    blank = (0.0, 0.0, 0.0, 0.0)
    filled = [rows + [blank] * (width - len(rows)) for rows in each if rows is not None]
    return np.array([filled]), np.array([[len(rows) for rows in each if rows is not None]])


def is_moderate(values: npt.NDArray[np.float64], step: float) -> bool:
    """Whether sorted records, in units of a step, are within the range of the compiled formulas."""
    end = MODERATE / step
    return step > 1.0 / MODERATE and (values.size == 0 or (values.item(0) > -end and values.item(-1) < end))
