"""What a mechanism of the compiled walk sees of a column: cells, their edges, ranks and distances from a target."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pq.core.machine.keep import compiled, inlined, uncounted

LATTICE_END = 2.0**51  # as in pq.private.columns.cells


@uncounted
def first_above(x: Any, first: int, last: int, value: float) -> int:
    """Least index in first..last whose entry exceeds a value (last if none does)."""
    while first < last:
        middle = (first + last) // 2
        if x[middle] > value:
            last = middle
        else:
            first = middle + 1
    return first


@uncounted
def first_not_below(x: Any, first: int, last: int, value: float) -> int:
    while first < last:
        middle = (first + last) // 2
        if x[middle] < value:
            first = middle + 1
        else:
            last = middle
    return first


@inlined
def exact_target(fraction: Any, n: int, floored: bool) -> tuple[int, float]:
    """`q n` for a fraction q <= 1 of `pq.core.plan.PlanArrays` as a whole number and a part: exact integers modulo
    2^64, but for a remainder, which is no more than a part."""
    numerator, denominator, remainder = fraction[0], fraction[1], fraction[2]
    whole = np.int64(n * (numerator / denominator))
    rest = np.int64(n) * numerator - whole * denominator
    while rest < 0:
        whole -= 1
        rest += denominator
    while rest >= denominator:
        whole += 1
        rest -= denominator
    part = 0.0 if floored else rest / denominator
    if remainder:
        part += n * (remainder / (float(denominator) * denominator))
        whole += np.int64(part)
        part -= np.int64(part)
    return whole, part  # type: ignore[return-value]


# What a mechanism sees of a column, as one tuple `view`:
#   x, before, at   all values and the records before each of them, see `walk_lanes`
#   first, d    index of the first value that counts, and how many do
#   base, n     what to take from `before` to have ranks within the node, and the node's weight; ranks, weights and
#               targets are in parts of a record
#   low, high   outermost edges of its cells, in the units of the data
#   low_held, high_held   whether the first and the last value are the ends of the node's interval
#   up, down    numerator and denominator of the lattice's step, 0 and 0 for real outputs
#   gaps        indices of values whose cell is not known, see `pq.private.columns.part`; none for a whole column
# Cells are numbered from 0. With real outputs cell k lies between value k - 1 and value k of the node. On a lattice
# cell 2 j is the run of multiples below value j, and cell 2 j + 1 is value j.


@inlined
def records_before(before: Any, at: Any, index: int) -> int:
    """Records before a value of the column, in parts."""
    return before[index] if at.size == 0 else index + before[first_not_below(at, 0, at.size, index)]


@inlined
def are_single(view: Any, first: int, count: int) -> bool:
    """Whether each of so many values of the node, from value `first` on, is known to be one record."""
    at, end, start = view[13], view[13].size, view[2] + first
    return view[1].size == 0 or (
        end > 0 and first_not_below(at, 0, end, start) == first_not_below(at, 0, end, start + count)
    )


@inlined
def last_cell(view: Any) -> int:
    return 2 * view[3] if view[10] > 0.0 else view[3]


@inlined
def rank_before(view: Any, j: int) -> int:
    """Records of the node below its value j, in parts; for j = d all of them."""
    before, first, d, base, n, at = view[1], view[2], view[3], view[4], view[5], view[13]
    if before.size == 0:
        return j
    if j == 0:
        return 0
    return n if j == d else records_before(before, at, first + j) - base


@inlined
def cell_distance(view: Any, cell: int, target: tuple[int, float]) -> float:
    """Of the target from the ranks that a cell stands for."""
    j = cell // 2 if view[10] > 0.0 else cell
    low = rank_before(view, j)
    if low > target[0]:
        return float(low - target[0]) - target[1]
    high = rank_before(view, j + cell % 2) if view[10] > 0.0 else low
    return float(target[0] - high) + target[1] if high <= target[0] else 0.0


@inlined
def cell_edge(view: Any, k: int) -> float:
    """Lower edge of cell k in the units of the data; upper edge of the last one for the number after it."""
    x, first, low, high, up, down = view[0], view[2], view[6], view[7], view[10], view[11]
    last = last_cell(view)
    if k == 0 or (k == 1 and view[8]):
        return low
    if k == last + 1 or (k == last and view[9]):
        return high
    if not up > 0.0:
        return x[first + k - 1]
    unit = x[first + (k - 1) // 2] + (-0.5 if k % 2 else 0.5)
    if abs(unit) > LATTICE_END:
        unit *= math.inf
    return min(max(unit * up / down, low), high)


@inlined
def cell_at(view: Any, rank: float) -> int:
    """The last cell of rank at most `rank`, with all ranks it stands for or fewer; the first if there is none."""
    if rank <= 0.0:
        return 0
    low, high = 0, view[3]
    if view[1].size == 0:
        return int(min(rank, float(high)))
    while low < high:  # the largest j with rank_before(j) <= rank
        middle = (low + high + 1) // 2
        if rank_before(view, middle) <= rank:
            low = middle
        else:
            high = middle - 1
    return 2 * low if view[10] > 0.0 else low


@compiled
def cells_of(
    x: Any,
    before: Any,
    low: float,
    high: float,
    low_share: int,
    high_share: int,
    edge: bool,
    up: float,
    down: float,
    unit: int,
    gaps: Any,
    at: Any,
) -> Any:
    """The records strictly between two outputs, and on a lattice the shares of those at the outputs."""
    start = first_above(x, 0, x.size, low)
    stop = first_not_below(x, start, x.size, high)
    first, last, base, n = start, stop, 0, stop - start
    a, b = low, high
    if before.size:
        low_weight, high_weight = 0, 0
        if up > 0.0:
            if start > 0 and x[start - 1] == low:
                low_weight = low_share * ((before[start] - before[start - 1]) // unit)
            if stop < x.size and x[stop] == high:
                high_weight = high_share * ((before[stop + 1] - before[stop]) // unit)
        first, last = start - (low_weight > 0), stop + (high_weight > 0)
        at_start = records_before(before, at, start)
        base = at_start - low_weight
        n = low_weight + (records_before(before, at, stop) - at_start) + high_weight
    if up > 0.0:
        a = (low - 0.5) * up / down if low > -LATTICE_END else -math.inf
        b = (high + 0.5) * up / down if high < LATTICE_END else math.inf
    if edge:
        a, b = -math.inf, math.inf
    return (x, before, first, last - first, base, n, a, b, first < start, last > stop, up, down, gaps, at)


@inlined
def has_gap(view: Any, first: int, last: int) -> bool:
    """Whether some of the cells first..last, of real outputs, are not known."""
    gaps = view[12]
    one = first_not_below(gaps, 0, gaps.size, view[2] + first)
    return one < gaps.size and gaps[one] <= view[2] + last


@uncounted
def passed_share(shares: Any, out: Any, nodes: Any, node: int, side: int, unit: int, halves: int) -> int:
    """Parts of the records at the node's lower (side 0) or upper end that go on to it, `halves` halves of what the
    parent holds of them; see `pq.private.mechanisms.tree.split`."""
    parent, own = nodes[node, 4], nodes[node, 2 + side]
    if parent < 0 or own == nodes[parent, 2 + side]:
        return shares[parent, side] if parent >= 0 else 0
    o, low, high = out[own], nodes[parent, 2], nodes[parent, 3]
    if low >= 0 and o == out[low]:
        return shares[parent, 0] * halves // 2
    if high >= 0 and o == out[high]:
        return shares[parent, 1] * halves // 2
    return unit * halves // 2
