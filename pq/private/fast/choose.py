"""Choices among weights, and sorting, compiled without making arrays (`alg:quantiles`)."""

from __future__ import annotations

import math
from typing import Any

from pq.core.machine.keep import uncounted
from pq.private.fast.cells import first_above


@uncounted
def largest(weights: Any) -> float:
    """The largest of some numbers; NaN where one is NaN."""
    top = -math.inf
    for weight in weights:
        if not weight <= top:
            top = weight
            if math.isnan(top):
                break
    return top


@uncounted
def picked(weights: Any, below: float, above: float, uniform: float) -> int:
    """The index that inverse-transform sampling picks; -1 if the weights outside might change it, -2 if none weighs.

    weights: of neighbouring cells; overwritten. below, above: bounds on the total weights outside.
    """
    total, last = 0.0, -1
    for k in range(weights.size):
        if weights[k] > 0.0:
            last = k
        total += weights[k]
        weights[k] = total
    if last < 0 or not total < math.inf:
        return -2 if below + above == 0.0 or not total < math.inf else -1
    lowest, highest = uniform * total - (1.0 - uniform) * below, uniform * (total + above)
    if lowest < 0.0 or (highest >= total and above > 0.0):
        return -1
    index = min(first_above(weights, 0, weights.size, lowest), last)
    return index if highest < weights[index] or index == last else -1


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
