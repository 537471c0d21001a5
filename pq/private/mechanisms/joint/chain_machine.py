"""`pq.private.mechanisms.joint.chain` as machine code: sums over ordered outputs in cells, and draws (Section 3.2).

Weights are plain floats, rescaled now and then. What falls below the least float is lost, which the caller has to look
at. A sum over a stretch of cells with two moving ends is a queue of two stacks: sums to the left of a middle are kept
for each cell, those to the right are running, and nothing is ever subtracted.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pq.core.machine.keep import compiled
from pq.private.fast.laws import LARGEST, point
from pq.private.mechanisms.joint.cells_machine import RATE, ends_of

HEAD = 5  # uniforms of a try before those of the outputs; see pq.private.mechanisms.joint.law
RESCALED = 4  # outputs after which weights are rescaled

# Plans, columns and cells are as in `pq.private.mechanisms.joint.cells_machine`. A chain is a tuple
# (enter, upto, scale, first, last, near, work): see `pq.private.mechanisms.joint.chain`; rows of enter and upto (k,
# widest window) are to be multiplied by exp(scale[0]) and exp(scale[1]), and begin with the cell first[j] of the
# windows first..last - 1; `near` and rows of work are as wide as the widest.


@compiled
def _window(rank: Any, middle: float, reach: float) -> tuple[Any, Any]:
    """The cells first..last - 1 of the window of a reach around a rank."""
    return np.searchsorted(rank, middle - 0.5 * reach, "left"), np.searchsorted(rank, middle + 0.5 * reach, "right")


@compiled
def _sums(cells: Any, weights: Any, begin: int, middle: int, stop: int, running: Any, front: Any, away: Any) -> None:
    """Decaying sums of weights, from the cell begin on, up to each cell; and from each cell below a middle to it, and
    how far that is."""
    decay = cells[1]
    left = right = fade = 0.0
    far = 1.0
    for s in range(middle - begin):
        t = middle - 1 - begin - s
        left = left * decay[begin + s] + weights[s]
        running[s] = left
        right = right * fade + weights[t]
        front[t], away[t] = right, far
        fade = decay[begin + t]
        far *= fade
    for s in range(middle - begin, stop - begin):
        left = left * decay[begin + s] + weights[s]
        running[s] = left


@compiled
def _kernel(cells: Any, rate: float, center: float, first: int, last: int, out: Any) -> None:
    """exp(-rate |rank - center|) of the cells first..last - 1, by products."""
    rank, decay = cells[0], cells[1]
    middle: Any = min(max(np.searchsorted(rank, center, "left"), first), last)
    value = math.exp(-rate * abs(rank[middle] - center)) if middle < last else 0.0
    for t in range(middle, last):
        value *= decay[t] if t > middle else 1.0
        out[t - first] = value
    value = math.exp(-rate * abs(rank[middle - 1] - center)) if middle > first else 0.0
    for t in range(middle - 1, first - 1, -1):
        value *= decay[t + 1] if t < middle - 1 else 1.0
        out[t - first] = value


@compiled
def _near(cells: Any, rate: float, shift: float, source: Any, target: Any, running: Any, near: Any, out: Any) -> None:
    """Sums over sources that are `shift` or more below each target, and the first source that is not."""
    rank = cells[0]
    begin, stop = source
    pointer, last_gap, last_exp = begin, 0.0, 1.0
    for t in range(target[0], target[1]):
        end = min(t, stop)
        while pointer < end and rank[t] - rank[pointer] >= shift:
            pointer += 1
        near[t - target[0]], out[t - target[0]] = pointer, 0.0
        if pointer > begin:
            gap = (rank[t] - rank[pointer - 1]) - shift
            if gap != last_gap:
                last_gap, last_exp = gap, math.exp(-rate * gap)
            out[t - target[0]] = running[pointer - 1 - begin] * last_exp


@compiled
def _add_far(
    cells: Any, rate: float, shift: float, weights: Any, source: Any, middle: int, target: Any, near: Any, work: Any,
    out: Any,
) -> None:  # fmt: skip
    """Add sums over the sources from the nearest to t - 1: a queue of two stacks that meet at a middle."""
    rank, decay = cells[0], cells[1]
    begin, stop = source
    front, away = work[1], work[2]  # sums over ..middle - 1, and the decay to there; back: over middle..taken - 1
    taken = middle
    back, fade = 0.0, 1.0
    last_gap, last_exp = 0.0, 1.0
    for t in range(target[0], target[1]):
        end, first = min(t, stop), near[t - target[0]]
        if first >= end:
            continue
        if first >= middle:
            middle = taken = end
            back, fade = 0.0, 1.0
            front[end - 1 - begin], away[end - 1 - begin] = weights[end - 1 - begin], 1.0
            for s in range(end - 2 - begin, first - 1 - begin, -1):
                front[s] = weights[s] + decay[begin + s + 1] * front[s + 1]
                away[s] = decay[begin + s + 1] * away[s + 1]
        while taken < end:
            fade *= decay[taken]
            back += weights[taken - begin] * fade
            taken += 1
        gap = shift - (rank[t] - rank[first])
        if gap != last_gap:
            last_gap, last_exp = gap, math.exp(-rate * gap)
        out[t - target[0]] += (front[first - begin] + away[first - begin] * back) * last_exp


@compiled
def _arrive_apart(
    cells: Any, rate: float, shift: float, weights: Any, source: Any, target: Any, work: Any, out: Any
) -> None:
    """As `_arrive`, to the last bit, where all sources are below the target: no end of a sum moves, and one loop does.

    That is the usual case where there are many records, and most of the time of a release then.
    """
    rank, decay = cells[0], cells[1]
    begin, stop = source
    count = stop - begin
    left, right = work[0], work[1]  # sums up to each source, and from each on
    up = down = fade = 0.0
    for i in range(count):
        s, t = i, count - 1 - i
        up = up * decay[begin + s] + weights[s]
        left[s] = up
        down = down * fade + weights[t]
        right[t] = down
        fade = decay[begin + t]
    split, gap_below, gap_above, share_below, share_above = 0, 0.0, 0.0, 1.0, 1.0
    for t in range(target[0], target[1]):
        while split < count and rank[t] - rank[begin + split] >= shift:
            split += 1
        whole = 0.0
        if split > 0:
            gap = (rank[t] - rank[begin + split - 1]) - shift
            if gap != gap_below:
                gap_below, share_below = gap, math.exp(-rate * gap)
            whole = left[split - 1] * share_below
        if split < count:
            gap = shift - (rank[t] - rank[begin + split])
            if gap != gap_above:
                gap_above, share_above = gap, math.exp(-rate * gap)
            whole += right[split] * share_above
        out[t - target[0]] = whole


@compiled
def _arrive(
    cells: Any, rate: float, shift: float, weights: Any, source: Any, target: Any, near: Any, work: Any, out: Any
) -> None:
    """Sum over earlier cells, for each of the target's; see `chain.arrivals`."""
    begin, stop = source
    if stop <= target[0]:
        _arrive_apart(cells, rate, shift, weights, source, target, work, out)
        return
    middle: Any = min(max(target[0], begin), stop)
    _sums(cells, weights, begin, middle, stop, work[0], work[1], work[2])
    _near(cells, rate, shift, source, target, work[0], near, out)
    _add_far(cells, rate, shift, weights, source, middle, target, near, work, out)


@compiled
def _add_groups(plan: Any, cells: Any, chain: Any, total: float, n: float, reach: float, j: int) -> None:
    """Weights of the outputs up to j from those before the group that ends with it; see `chain.group_terms`."""
    levels, rate, own = plan[0], plan[3][RATE], cells[2]
    enter, upto, scale, first, last, _, work = chain
    one, other = first[j], last[j]
    out, mine, power, before = (
        upto[j, : other - one],
        own[min(j, own.shape[0] - 1), one:other],
        work[2],
        enter[j, : other - one],
    )
    for t in range(out.size):
        power[t] = mine[t]
        out[t] = before[t] * mine[t]
    for i in range(j - 1, -1, -1):
        inner = total * (levels[j] - levels[i])
        if last[i] <= one or inner + abs(n - total + inner) > reach:
            break
        factor, part = math.exp(scale[0, i] - scale[0, j] - rate * inner), 1.0 / (j - i + 1)
        mine, before = own[min(i, own.shape[0] - 1), one : last[i]], enter[i, one - first[i] : last[i] - first[i]]
        for t in range(before.size):
            power[t] *= mine[t] * part
            out[t] += before[t] * power[t] * factor


@compiled
def sum_forward(plan: Any, cells: Any, chain: Any, total: float, n: float, reach: float) -> float:
    """Log of the sum over all ways inside the windows of a reach; fills the chain."""
    levels, shares, _, settings = plan
    rank, rate = cells[0], settings[RATE]
    enter, upto, scale, first, last, near, work = chain
    k = levels.size
    for j in range(k):
        middle = total * levels[j] + 0.5 * (n - total)
        first[j], last[j] = _window(rank, middle, reach)
        scale[0, j] = scale[1, j - 1] if j > 0 else 0.0
        if j == 0:
            _kernel(cells, rate, total * shares[0], first[0], last[0], enter[0])
        else:
            source, target = (first[j - 1], last[j - 1]), (first[j], last[j])
            _arrive(cells, rate, total * shares[j], upto[j - 1], source, target, near, work, enter[j])
        _add_groups(plan, cells, chain, total, n, reach, j)
        scale[1, j] = scale[0, j]
        if j % RESCALED == RESCALED - 1 or j == k - 1:
            mine = upto[j, : last[j] - first[j]]
            top = np.max(mine) if mine.size else 0.0
            if not 0.0 < top < math.inf:
                return -math.inf if top == 0.0 else math.nan
            mine /= top
            scale[1, j] += math.log(top)
    mine, final = upto[k - 1], work[0]
    _kernel(cells, rate, n - total * shares[k], first[k - 1], last[k - 1], final)
    whole = 0.0
    for t in range(last[k - 1] - first[k - 1]):
        whole += mine[t] * final[t]
    return math.log(whole) + scale[1, k - 1]


@compiled
def log_loss(plan: Any, cells: Any, chain: Any, total: float, n: float, reach: float) -> float:
    """Log bound on what one number that fell below the least float could have added to the whole, beyond that float.

    A number that is lost at an output is less than the least float in the scale of its row, or of the row that its
    group began in; outputs that follow multiply it by the mass of their windows at most.
    """
    levels, own = plan[0], cells[2]
    _, _, scale, first, last, _, _ = chain
    after, out = 0.0, -math.inf
    for j in range(levels.size - 1, -1, -1):
        for i in range(j, -1, -1):
            inner = total * (levels[j] - levels[i])
            if last[i] <= first[j] or inner + abs(n - total + inner) > reach:
                break
            out = max(out, scale[0, i] + after)
        after += math.log(np.sum(own[min(j, own.shape[0] - 1), first[j] : last[j]]))
    return out


@compiled
def choose_index(running: Any, uniform: float) -> int:
    """The index that inverse-transform sampling picks, given running sums of weights; -1 if there are none."""
    if running.size == 0 or not 0.0 < running[-1] < math.inf:
        return -1
    last = np.searchsorted(running, running[-1], "left")
    return min(np.searchsorted(running, uniform * running[-1], "right"), last)


@compiled
def _group(plan: Any, cells: Any, chain: Any, total: float, n: float, reach: float, j: int, c: int, u: float) -> int:
    """The first output of the group in cell c that ends with output j."""
    levels, rate, own = plan[0], plan[3][RATE], cells[2]
    enter, _, scale, first, last, _, _ = chain
    terms = np.zeros(j + 1)
    power = 1.0
    for i in range(j, -1, -1):
        inner = total * (levels[j] - levels[i])
        if not first[i] <= c < last[i] or inner + abs(n - total + inner) > reach:
            break
        power *= own[min(i, own.shape[0] - 1), c] / (j - i + 1)
        terms[i] = enter[i, c - first[i]] * power * math.exp(scale[0, i] - scale[0, j] - rate * inner)
    return choose_index(np.cumsum(terms), u)


@compiled
def draw_backward(
    plan: Any, column: Any, cells: Any, chain: Any, total: float, n: float, reach: float, uniforms: Any, out: Any,
    below: Any,
) -> bool:  # fmt: skip
    """Outputs, and the ranks below them, in proportion to their weights; False where the numbers do not do."""
    shares, rate = plan[1], plan[3][RATE]
    rank = cells[0]
    upto, first, last, work = chain[1], chain[3], chain[4], chain[6]
    k = shares.size - 1
    j, bound, following = k - 1, rank.size, n
    while j >= 0:
        end = min(last[j], bound)
        running, whole = work[0], 0.0
        _kernel(cells, rate, following - total * shares[j + 1], first[j], end, running)
        for s in range(first[j], end):
            whole += upto[j, s - first[j]] * running[s - first[j]]
            running[s - first[j]] = whole
        c = choose_index(running[: max(end - first[j], 0)], uniforms[HEAD + j])
        i = _group(plan, cells, chain, total, n, reach, j, first[j] + c, uniforms[HEAD + k + j]) if c >= 0 else -1
        if i < 0:
            return False
        c += first[j]
        lower, upper = ends_of(cells, c)
        for l in range(i, j + 1):
            o = point(column[4], lower, upper, uniforms[HEAD + 2 * k + l])
            if not -LARGEST <= o <= LARGEST:
                return False
            out[l], below[l] = min(max(o, np.nextafter(lower, math.inf)), min(upper, LARGEST)), rank[c]
        out[i : j + 1].sort()
        j, bound, following = i - 1, c, rank[c]
    return True


@compiled
def new_chain(levels: Any, cells: Any, totals: Any, n: float, reach: float) -> Any:
    """Room for the chain of each of some totals."""
    rank, k = cells[0], levels.size
    widest = 1
    for total in totals:
        for level in levels:
            first, last = _window(rank, total * level + 0.5 * (n - total), reach)
            widest = max(widest, last - first)
    return (
        np.empty((k, widest)), np.empty((k, widest)), np.empty((2, k)), np.empty(k, np.int64), np.empty(k, np.int64),
        np.empty(widest, np.int64), np.empty((4, widest)),
    )  # fmt: skip
