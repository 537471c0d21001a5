"""Gaps of many released values at once, compiled (`eq:gap`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float64, int64, njit, types

_SIGNATURE = int64[::1](
    types.Array(float64, 2, "C", readonly=True),
    types.Array(int64, 1, "C", readonly=True),
    types.Array(int64, 2, "C", readonly=True),
    types.Array(float64, 2, "C", readonly=True),
)


@njit(_SIGNATURE, cache=True, nogil=True)
def lane_max_gaps(columns: Any, sizes: Any, targets: Any, values: Any) -> Any:
    """Largest `pq.gap` over the quantiles for each lane, (lanes,), in records.

    columns: (c, n) sorted records, of which sizes (c,) count. targets: (c, m) ranks aimed at. values: (lanes, m), of
    which lane l has column l % c.
    """
    out = np.zeros(values.shape[0], dtype=np.int64)
    for lane in range(values.shape[0]):
        c = lane % columns.shape[0]
        x = columns[c, : sizes[c]]
        for i in range(values.shape[1]):
            below = np.searchsorted(x, values[lane, i], side="left")
            most = np.searchsorted(x, values[lane, i], side="right")
            high = most if most - below > 1 else below
            out[lane] = max(out[lane], below - targets[c, i], targets[c, i] - high)
    return out
