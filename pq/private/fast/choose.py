"""Choices among weights, and sorting, compiled without making arrays (`alg:quantiles`)."""

from __future__ import annotations

import math
from typing import Any

from pq.core.machine.keep import uncounted
from pq.private.fast.cells import first_above, first_not_below


@uncounted
def picked(running: Any, below: float, above: float, uniform: float) -> int:
    """The index that inverse-transform sampling picks; -1 if the weights outside might change it, -2 if none weighs.

    running: totals of the weights of neighbouring cells. below, above: bounds on the total weights outside.
    """
    size = running.size
    total = running[size - 1]
    if not 0.0 < total < math.inf:
        return -2 if below + above == 0.0 or not total < math.inf else -1
    lowest, highest = uniform * total - (1.0 - uniform) * below, uniform * (total + above)
    if lowest < 0.0 or (highest >= total and above > 0.0):
        return -1
    if not lowest < total:
        return first_not_below(running, 0, size - 1, total)  # the last cell that weighs anything
    index = first_above(running, 0, size - 1, lowest)
    return index if highest < running[index] or running[index] == total else -1


@uncounted
def sort_values(values: Any) -> None:
    """Sort in place, by Shell's method, which makes no arrays."""
    gap = 1
    while gap < values.size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, values.size):
            value, j = values[i], i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3
