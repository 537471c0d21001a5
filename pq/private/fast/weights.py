"""What cells weigh, near a mechanism's target one by one, and elsewhere in blocks: compiled (`alg:quantiles`).

A cell's weight is the prior's mass in it times a score, `exp(-rate * distance)` of its ranks from the target.
"""

from __future__ import annotations

import math
from typing import Any

from pq.core.machine.keep import uncounted
from pq.core.priors.kernel import MODERATE
from pq.private.fast.cells import are_single, cell_distance, cell_edge, has_gap, last_cell, rank_before
from pq.private.fast.laws import add_cell_masses, log_mass, mass

ROUNDING = 1.0 + 1e-9  # a bound stays one whatever the last digits of the masses are
STRETCH = 32  # neighbouring cells whose scores are found by multiplying, from one that is not
STEEPEST = 3.0  # nats per rank: at more, the scores of a stretch may be no floats at one end and some at the other


@uncounted
def _put_masses(view: Any, parts: Any, first: int, edges: Any, out: Any) -> None:
    """Put the masses of the cells from `first` on into `out` (c,). edges: (c + 1,) to work in."""
    count, start = out.size, view[2] + first - 1  # where the edges are in the column, if outputs are real
    if not view[10] > 0.0 and first > 0 and first + count <= last_cell(view):
        add_cell_masses(parts, view[0][start : start + count + 1], out)
        return
    for k in range(count + 1):
        edges[k] = cell_edge(view, first + k)
    add_cell_masses(parts, edges, out)


@uncounted
def _add_stretches(
    view: Any, target: tuple[int, float], rate: float, first: int, start: int, stop: int, factor: float, total: float,
    out: Any,
) -> float:  # fmt: skip
    """Replace the masses start..stop - 1 of `out` by running totals, where the next score is `factor` times one."""
    for one in range(start, stop, STRETCH):
        score = math.exp(-rate * cell_distance(view, first + one, target))
        for k in range(one, min(one + STRETCH, stop)):
            total += out[k] * score
            out[k] = total
            score *= factor
    return total


@uncounted
def running_weights(
    view: Any, parts: Any, target: tuple[int, float], rate: float, first: int, edges: Any, out: Any
) -> float:
    """Put running totals of the weights of the cells from `first` on into `out` (c,); returns the last one. edges:
    (c + 1,) to work in."""
    _put_masses(view, parts, first, edges, out)
    count, total = out.size, 0.0
    if rate < STEEPEST and are_single(view, first, count - 1):  # ranks grow by one from cell to cell
        middle = min(max(target[0] + 1 - rank_before(view, first), 0), count)
        total = _add_stretches(view, target, rate, first, 0, middle, math.exp(rate), total, out)
        return _add_stretches(view, target, rate, first, middle, count, math.exp(-rate), total, out)
    for k in range(count):
        if out[k] > 0.0:
            total += out[k] * math.exp(-rate * cell_distance(view, first + k, target))
        out[k] = total
    return total


@uncounted
def fill_log_weights(view: Any, parts: Any, target: tuple[int, float], rate: float, first: int, out: Any) -> float:
    """Put the logarithms of the weights of the cells from `first` on into `out` (c,); returns the largest, or NaN."""
    top = -math.inf
    for k in range(out.size):
        mass_of_cell = log_mass(parts, cell_edge(view, first + k), cell_edge(view, first + k + 1))
        out[k] = mass_of_cell - rate * cell_distance(view, first + k, target)
        if not out[k] <= top:
            top = out[k]
            if math.isnan(top):
                break
    return top


@uncounted
def edge_in_range(edge: float) -> bool:
    """Whether an edge is within the range of the formulas, which know where the line ends."""
    return abs(edge) < MODERATE or math.isinf(edge)


@uncounted
def _most_mass(parts: Any, a: float, b: float, logs: bool) -> float:
    """Upper bound on the (log) mass of (a, b], whatever its ends."""
    if (a > 0.0 and not edge_in_range(a)) or (b < 0.0 and not edge_in_range(b)):
        return 0.0 if logs else 1.0
    a, b = a if edge_in_range(a) else -math.inf, b if edge_in_range(b) else math.inf
    return log_mass(parts, a, b) if logs else mass(parts, a, b)


@uncounted
def weight_outside(
    view: Any, parts: Any, target: tuple[int, float], rate: float, first: int, last: int, side: int, floor: float,
    logs: bool,
) -> float:  # fmt: skip
    """Upper bound on the (log) weight of the cells below `first` (side -1) or above `last` (side 1), by blocks."""
    end = last_cell(view)
    total = -math.inf if logs else 0.0
    width = 2 * (last - first + 1)
    while (side < 0 and first > 0) or (side > 0 and last < end):
        if side < 0:  # a cell that is not known has records of the rank after it
            nearest, one = first - (not has_gap(view, first - 1, first - 1)), max(first - width, 0)
            a, b = cell_edge(view, one), cell_edge(view, first)
            first = one
        else:
            nearest, one = last + 1, min(last + width, end)
            a, b = cell_edge(view, last + 1), cell_edge(view, one + 1)
            last = one
        score = -rate * cell_distance(view, nearest, target)
        if logs:
            bound = score + _most_mass(parts, a, b, logs) + 1e-9
            if math.isnan(bound):
                return math.nan
            if bound > -math.inf:
                top = max(bound, total)
                total = top + math.log(math.exp(bound - top) + math.exp(total - top))
        else:
            score = math.exp(score)
            if score < floor:  # the prior's mass is at most one
                return (total + score) * ROUNDING
            total += score * _most_mass(parts, a, b, logs) * ROUNDING
        width *= 2
    return total
