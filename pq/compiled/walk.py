"""`alg:quantiles` on sorted records, compiled: many releases (*lanes*) in one call, each with uniforms of its own.

The law is that of `pq.exponential`, cell for cell, and so is the way a uniform is turned into an output; the tests
compare the two. A mechanism weighs the cells whose rank is near its target. What the prior puts further away is bounded
in blocks that double in size, so that the bound takes a number of masses that grows with the logarithm of n; where the
uniform falls so near to the border of two cells that the bound leaves it open which is meant, the window grows.

A lane that meets numbers beyond the range of these formulas is marked and left to the caller.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import boolean, float64, int64, njit, types

from pq.compiled.laws import LARGEST, OPTIONS, add_cell_masses, compiled, log_mass, mass, point

REACH = 9.0  # nats: weights beyond are less than e^-9 of the largest, before the prior has its say
TINY = 1e-250  # total weights below are done again with logarithms
ROUNDING = 1.0 + 1e-9  # a bound stays one whatever the last digits of the masses are


@compiled
def in_order(x: Any) -> bool:
    """Whether values are sorted and none is NaN."""
    for i in range(1, x.size):
        if not x[i - 1] <= x[i]:
            return False
    return x.size == 0 or x[0] == x[0]


@compiled
def _first_above(x: Any, first: int, last: int, value: float) -> int:
    """Least index in first..last whose entry exceeds a value (last if none does)."""
    while first < last:
        middle = (first + last) // 2
        if x[middle] > value:
            last = middle
        else:
            first = middle + 1
    return first


@compiled
def _first_not_below(x: Any, first: int, last: int, value: float) -> int:
    while first < last:
        middle = (first + last) // 2
        if x[middle] < value:
            first = middle + 1
        else:
            last = middle
    return first


@compiled
def _target(numerator: int, denominator: int, n: int, floored: bool) -> float:
    """`q n`, or its floor, for q = numerator / denominator <= 1: exact integers modulo 2^64."""
    whole = np.int64(n * (numerator / denominator))
    rest = np.int64(n) * numerator - whole * denominator
    while rest < 0:
        whole -= 1
        rest += denominator
    while rest >= denominator:
        whole += 1
        rest -= denominator
    return float(whole) if floored else float(whole) + rest / denominator


@compiled
def _edge(x: Any, start: int, stop: int, low: float, high: float, k: int) -> float:
    """Edge number k, from 0 to stop - start + 1, of the cells that the records start..stop-1 make of (low, high]."""
    if k == 0:
        return low
    return x[start + k - 1] if k <= stop - start else high


@compiled
def _rank(before: Any, start: int, k: int) -> float:
    """Records of a node below its cell k; without counts each entry is one record."""
    return float(k) if before.size == 0 else float(before[start + k] - before[start])


@compiled
def _cell_of_rank(before: Any, start: int, stop: int, rank: float) -> int:
    """The last cell of rank at most `rank`, the first cell if there is none."""
    if rank <= 0.0:
        return 0
    if before.size == 0:
        return int(min(rank, float(stop - start)))
    return _first_above(before, start, stop + 1, before[start] + rank) - 1 - start


@compiled
def _outside(
    x: Any, before: Any, start: int, stop: int, low: float, high: float, parts: Any, target: float, rate: float,
    first: int, last: int, side: int, floor: float, logs: bool,
) -> float:  # fmt: skip
    """Upper bound on the (log) weight of the cells below `first` (side -1) or above `last` (side 1), by blocks."""
    end = stop - start
    total = -math.inf if logs else 0.0
    width = max(last - first + 1, 1)
    while (side < 0 and first > 0) or (side > 0 and last < end):
        if side < 0:
            nearest, one = first - 1, max(first - width, 0)
            a, b = _edge(x, start, stop, low, high, one), _edge(x, start, stop, low, high, first)
            first = one
        else:
            nearest, one = last + 1, min(last + width, end)
            a, b = _edge(x, start, stop, low, high, last + 1), _edge(x, start, stop, low, high, one + 1)
            last = one
        score = -rate * abs(_rank(before, start, nearest) - target)
        if logs:
            bound = score + log_mass(parts, a, b) + 1e-9
            if bound > -math.inf:
                top = max(bound, total)
                total = top + math.log(math.exp(bound - top) + math.exp(total - top))
        else:
            score = math.exp(score)
            if score < floor:  # the prior's mass is at most one
                return (total + score) * ROUNDING
            total += score * mass(parts, a, b) * ROUNDING
        width *= 2
    return total


@compiled
def _weigh(
    x: Any, before: Any, start: int, stop: int, low: float, high: float, parts: Any, target: float, rate: float,
    first: int, last: int, logs: bool,
) -> Any:  # fmt: skip
    """Weights of the cells first..last, or their logarithms."""
    count = last - first + 1
    edges, out = np.empty(count + 1), np.empty(count)
    edges[0], edges[count] = _edge(x, start, stop, low, high, first), _edge(x, start, stop, low, high, last + 1)
    for k in range(1, count):
        edges[k] = x[start + first + k - 1]
    if logs:
        for k in range(count):
            distance = abs(_rank(before, start, first + k) - target)
            out[k] = log_mass(parts, edges[k], edges[k + 1]) - rate * distance
        return out
    add_cell_masses(parts, edges, out)
    if before.size:
        for k in range(count):
            out[k] *= math.exp(-rate * abs(_rank(before, start, first + k) - target))
        return out
    ratio, middle = math.exp(-rate), min(max(int(target) + 1 - first, 0), count)
    score = math.exp(-rate * abs(first + middle - target))
    for k in range(middle, count):
        out[k] *= score
        score *= ratio
    score = math.exp(-rate * abs(first + middle - 1 - target))
    for k in range(middle - 1, -1, -1):
        out[k] *= score
        score *= ratio
    return out


@compiled
def _pick(weights: Any, below: float, above: float, uniform: float) -> int:
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
    index = min(_first_above(weights, 0, weights.size, lowest), last)
    return index if highest < weights[index] or index == last else -1


@compiled
def _cell(
    x: Any, before: Any, start: int, stop: int, low: float, high: float, parts: Any, target: float, rate: float,
    uniform: float,
) -> int:  # fmt: skip
    """The cell, from 0 to stop - start, whose share of the weight covers the uniform; -2 if the numbers do not do."""
    end = stop - start
    reach = 1.0 + REACH / rate
    logs = False
    while True:
        first = _cell_of_rank(before, start, stop, target - reach)
        last = min(end, _cell_of_rank(before, start, stop, target + reach) + 1)
        weights = _weigh(x, before, start, stop, low, high, parts, target, rate, first, last, logs)
        top = np.max(weights)
        if not logs and not top > TINY:
            logs = True
            continue
        floor = 0.0 if logs else 1e-19 * top
        below = _outside(x, before, start, stop, low, high, parts, target, rate, first, last, -1, floor, logs)
        above = _outside(x, before, start, stop, low, high, parts, target, rate, first, last, 1, floor, logs)
        if logs:
            top = max(top, below, above)
            if not -math.inf < top < math.inf:
                return -2
            weights = np.exp(weights - top)
            below, above = math.exp(below - top), math.exp(above - top)
        index = _pick(weights, below, above, uniform)
        if index >= 0:
            return first + index
        if index == -2 or (first == 0 and last == end):
            return -2
        reach *= 2.0


@compiled
def _draw(
    x: Any, before: Any, low: float, high: float, edge: bool, parts: Any, numerator: int, denominator: int,
    floored: bool, rate: float, uniform: float, place: float,
) -> float:  # fmt: skip
    """One mechanism's output on the records strictly between two earlier outputs; NaN if the numbers do not do."""
    if low >= high:
        return low
    start = _first_above(x, 0, x.size, low)
    stop = _first_not_below(x, start, x.size, high)
    n = stop - start if before.size == 0 else before[stop] - before[start]
    target = _target(numerator, denominator, n, floored)
    a, b = (-math.inf, math.inf) if edge else (low, high)
    cell = _cell(x, before, start, stop, a, b, parts, target, rate, uniform)
    if cell < 0:
        return math.nan
    lower, upper = _edge(x, start, stop, a, b, cell), _edge(x, start, stop, a, b, cell + 1)
    o = point(parts, lower, upper, place)
    if not -LARGEST <= o <= LARGEST:
        return math.nan
    return min(max(min(max(o, np.nextafter(lower, math.inf)), LARGEST), low), high)


def _given(kind: Any, dimensions: int) -> Any:
    return types.Array(kind, dimensions, "C", readonly=True)


# Declared, so that one machine compiles it once, whatever arrays it is given later.
_SIGNATURE = boolean[::1](
    _given(float64, 2),
    _given(int64, 1),
    _given(int64, 1),
    _given(int64, 2),
    _given(int64, 1),
    _given(int64, 2),
    boolean,
    boolean,
    _given(float64, 2),
    _given(float64, 4),
    _given(int64, 2),
    _given(float64, 3),
    float64[:, ::1],
)


@njit(_SIGNATURE, **OPTIONS)
def walk_lanes(
    columns: Any, sizes: Any, before: Any, nodes: Any, members: Any, fractions: Any, floored: bool, edge: bool,
    rates: Any, parts: Any, counts: Any, uniforms: Any, out: Any,
) -> Any:  # fmt: skip
    """Run a plan on every lane and put its outputs into `out` (lanes, m); returns which lanes failed (lanes,).

    columns: (c, n) sorted records, row l % c is lane l's, its first `sizes` (c,) entries count. before: (n + 1,)
    records before each entry of the one column, or empty if each entry is one record. nodes: (k, 4) first member, end,
    low, high of each node, parents first. members: quantiles of the nodes. fractions: (m, 2). rates: (r, m) and
    parts: (p, m or 1, width, 4), of which counts (p, m or 1) rows count: lane l has row l % r and l % p. uniforms:
    (lanes, m, 2).
    """
    failed = np.zeros(out.shape[0], dtype=np.bool_)
    drawn = np.empty(members.size)
    for lane in range(out.shape[0]):
        c, r, p = lane % columns.shape[0], lane % rates.shape[0], lane % parts.shape[0]
        x = columns[c, : sizes[c]]
        for j in range(nodes.shape[0]):
            first, end, below, above = nodes[j, 0], nodes[j, 1], nodes[j, 2], nodes[j, 3]
            low = out[lane, below] if below >= 0 else -math.inf
            high = out[lane, above] if above >= 0 else math.inf
            for i in range(first, end):
                q = members[i]
                t = q % parts.shape[1]
                drawn[i] = _draw(
                    x, before, low, high, edge, parts[p, t, : counts[p, t]], fractions[q, 0], fractions[q, 1], floored,
                    rates[r, q], uniforms[lane, q, 0], uniforms[lane, q, 1],
                )  # fmt: skip
                if math.isnan(drawn[i]):
                    failed[lane] = True
            if failed[lane]:
                break
            if end - first > 1:
                drawn[first:end].sort()
            for i in range(first, end):
                out[lane, members[i]] = drawn[i]
    return failed
