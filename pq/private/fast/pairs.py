"""What a node of the tree sees of a pair of columns, compiled, from the functions of the walk (Section 3.2)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import boolean, float64, int64

from pq.core.machine.keep import compiled, given
from pq.private.fast.cells import cells_of, first_not_below, passed_share, rank_before

# The types of nodes, members, fractions, rates, floored, edge and lattice, see `pair_losses`.
PLAN = (given(int64, 2), given(int64, 1), given(int64, 2), given(float64, 2), boolean, boolean, given(float64, 1))


@compiled
def place_of(view: Any, o: float) -> int:
    """The cell that holds an output."""
    j = first_not_below(view[0], view[2], view[2] + view[3], o) - view[2]
    if not view[10] > 0.0:
        return j
    return 2 * j + 1 if j < view[3] and view[0][view[2] + j] == o else 2 * j


@compiled
def same_view(one: Any, other: Any) -> bool:
    """Whether two columns look the same at a node."""
    if one[3] != other[3] or one[5] != other[5]:
        return False
    for j in range(one[3]):
        if one[0][one[2] + j] != other[0][other[2] + j] or rank_before(one, j + 1) != rank_before(other, j + 1):
            return False
    return True


@compiled
def gather_records(row: Any, values: Any, before: Any, unit: int, lattice: bool) -> int:
    """Put the records of a row, up to the first +inf, into `values` and the parts before each into `before`; on a
    lattice each value once."""
    count = 0
    before[0] = 0
    for record in row:
        if record == math.inf:
            break
        if lattice and count > 0 and values[count - 1] == record:
            before[count] += unit
        else:
            values[count], before[count + 1] = record, before[count] + unit
            count += 1
    return count


@compiled
def interval_of(out: Any, nodes: Any, j: int) -> tuple[float, float]:
    return (
        out[nodes[j, 2]] if nodes[j, 2] >= 0 else -math.inf,
        out[nodes[j, 3]] if nodes[j, 3] >= 0 else math.inf,
    )


@compiled
def look(values: Any, before: Any, count: int, interval: Any, shares: Any, edge: bool, lattice: Any) -> Any:
    """What a node sees of a column, see `cells_of`."""
    known = before[: count + 1] if lattice[0] > 0.0 else before[:0]
    unit = max(int(lattice[2]), 1)
    low, high = interval
    up, down = lattice[0], lattice[1]
    return cells_of(
        values[:count], known, low, high, shares[0], shares[1], edge, up, down, unit, before[:0], before[:0]
    )


@compiled
def pass_on(shares: Any, o: Any, nodes: Any, j: int, lattice: Any) -> None:
    """Say what a node holds of the records at the ends of its interval."""
    if lattice[3] > 0.0:
        for side in range(2):
            shares[j, side] = passed_share(shares, o, nodes, j, side, int(lattice[2]), int(lattice[3]))


@compiled
def rooms(columns: int, size: int, nodes: int) -> Any:
    return (
        np.empty((columns, size)),
        np.empty((columns, size + 1), dtype=np.int64),
        np.zeros((nodes, 2), dtype=np.int64),
    )
