"""The audit's two inner loops in scalar arithmetic, compiled: exact losses with tabled priors, and with the worst
priors (Section 3.2).

Both walk the nodes that see a difference, one pair of neighbours after another. The formulas are those of
`pq.truth.audit.density` and `pq.truth.audit.worst`, against which they are tested.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pq.core.machine.keep import cached
from pq.private.columns.door import Array
from pq.truth.audit.bins import UnitBins
from pq.truth.audit.density import TreeDensity, changed_records
from pq.truth.audit.mechanism import difference
from pq.truth.audit.worst import WorstPriors

MOST_NATS = 600.0  # of scores and prior masses together: products are then no subnormal numbers
LARGEST_PART = 2**20  # of a relative quantile's numerator and denominator: floors are then exact


class Tree(NamedTuple):
    """A plan as arrays: nodes from the root down, children -1 where there is none; relative quantiles as fractions."""

    counts: Any  # (nodes,) mechanisms
    indices: Any  # (nodes, most)
    children: Any  # (nodes, most + 1)
    rates: Any  # (mechanisms,)
    numerators: Any
    denominators: Any
    floored: bool
    tie_share: float
    edge: bool
    tied: bool


class Bins(NamedTuple):
    """Priors as tables: which one each mechanism has, sums of weights between any two edges, padded weights, start."""

    which: Any  # (mechanisms,)
    between: Any  # (priors, k + 1, k + 1)
    weights: Any  # (priors, k + 2)
    start: float


def encode(tree: TreeDensity) -> Tree:
    """The plan of a mechanism as arrays."""
    nodes = list(tree.plan.root.walk())
    most = max(len(node.indices) for node in nodes)
    indices, children = (np.full((len(nodes), most + extra), -1, dtype=np.int64) for extra in (0, 1))
    place = {node.indices: k for k, node in enumerate(nodes)}
    for k, node in enumerate(nodes):
        indices[k, : len(node.indices)] = node.indices
        for c, child in enumerate(node.children):
            if child is not None:
                children[k, c] = place[child.indices]
    return Tree(
        np.array([len(node.indices) for node in nodes]),
        indices,
        children,
        np.array(tree.rates),
        np.array([q.numerator for q in tree.relative]),
        np.array([q.denominator for q in tree.relative]),
        tree.plan.calibration == "paper",
        tree.tie_share,
        tree.edge,
        tree.step is not None,
    )


def _whole(tree: TreeDensity) -> bool:
    """Whether a mechanism's numbers are simple enough for scalar arithmetic."""
    parts = [max(q.numerator, q.denominator) for q in tree.relative]
    return tree.step in (None, 1) and max(parts) <= LARGEST_PART


def _tabled(tree: TreeDensity) -> Bins | None:
    priors = list(dict.fromkeys(tree.priors))
    if not _whole(tree) or not all(isinstance(prior, UnitBins) for prior in priors):
        return None
    shapes = {(len(prior.weights), prior.edges[0]) for prior in priors}  # type: ignore[attr-defined]
    if len(shapes) > 1 or min(min(prior.weights) for prior in priors) <= 0.0:  # type: ignore[attr-defined]
        return None
    return Bins(
        np.array([priors.index(prior) for prior in tree.priors]),
        np.array([prior._between for prior in priors]),  # type: ignore[attr-defined]
        np.array([prior._weights for prior in priors]),  # type: ignore[attr-defined]
        priors[0].edges[0],  # type: ignore[attr-defined]
    )


class FastDensity(TreeDensity):
    """`TreeDensity` whose losses are compiled where priors and outputs allow it."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._tree, self._bins = encode(self), _tabled(self)

    def log_ratio(self, x: Array, neighbour: Array, values: Array) -> Array:
        bins = self._bins
        nats = max(self.rates) * (x.shape[1] + 1)
        if bins is None or nats - math.log(float(bins.weights[:, 1:-1].min())) > MOST_NATS:
            return super().log_ratio(x, neighbour, values)
        one, other, outputs = (np.ascontiguousarray(self.outputs_of(part)) for part in (x, neighbour, values))
        end = bins.start + bins.weights.shape[1] - 2
        rows = self._on_grid(values, outputs) & np.all(values[:, 1:] >= values[:, :-1], axis=1)
        rows &= np.all((values > bins.start) & (values < end), axis=1)
        total = _losses(self._tree, bins, one, other, outputs, changed_records(one, other), False)[:, 0]
        rest = np.flatnonzero(~rows)
        if rest.size:
            logs = self.log_density(np.concatenate([x[rest], neighbour[rest]]), np.tile(values[rest], (2, 1)))
            total[rest] = difference(logs[: rest.size], logs[rest.size :])
        return total


class FastWorst(WorstPriors):
    """`WorstPriors`, compiled."""

    def __init__(self, tree: TreeDensity) -> None:
        super().__init__(tree)
        self._tree, self._whole = encode(tree), _whole(tree)

    def log_ratio(self, x: Array, neighbour: Array, values: Array) -> Array:
        if not self._whole:
            return super().log_ratio(x, neighbour, values)
        one, other, outputs = (np.ascontiguousarray(self.tree.outputs_of(part)) for part in (x, neighbour, values))
        totals = _losses(self._tree, NO_BINS, one, other, outputs, changed_records(one, other), True)
        return np.where(totals[:, 0] >= -totals[:, 1], totals[:, 0], totals[:, 1])


NO_BINS = Bins(np.zeros(1, dtype=np.int64), np.zeros((1, 1, 1)), np.zeros((1, 2)), 0.0)


@cached
def _mass(bins: Bins, p: int, lower: float, upper: float) -> float:
    count = bins.weights.shape[1] - 2
    low = min(max(lower - bins.start, 0.0), float(count))
    high = min(max(upper - bins.start, 0.0), float(count))
    if high <= low:
        return 0.0
    first, last = math.ceil(low), math.floor(high)
    if first > last:  # within one bin
        return (high - low) * bins.weights[p, last + 1]
    inner = bins.between[p, first, last]
    return inner + (first - low) * bins.weights[p, first] + (high - last) * bins.weights[p, last + 1]


@cached
def _weight(tree: Tree, record: float, interval: Any) -> float:
    low, high, low_share, high_share = interval
    if low < record < high:
        return 1.0
    if tree.tie_share > 0.0 and low < high:
        if record == low:
            return low_share
        if record == high:
            return high_share
    return 0.0


@cached
def _gather(tree: Tree, row: Any, interval: Any, values: Any, weights: Any) -> tuple[int, float]:
    """The distinct records of a node with their weights, their number, and the total weight."""
    count, total = 0, 0.0
    for record in row:
        if record > interval[1]:
            break
        weight = _weight(tree, record, interval)
        if weight > 0.0:
            if count > 0 and values[count - 1] == record:
                weights[count - 1] += weight
            else:
                values[count], weights[count] = record, weight
                count += 1
            total += weight
    return count, total


@cached
def _target(tree: Tree, i: int, n: float) -> float:
    if tree.floored:
        return float((tree.numerators[i] * int(n)) // tree.denominators[i])
    return tree.numerators[i] * n / tree.denominators[i]


@cached
def _score(rate: float, target: float, low: float, high: float) -> float:
    return -rate * max(low - target, target - high, 0.0)


@cached
def _score_at(tree: Tree, i: int, target: float, o: float, count: int, values: Any, weights: Any) -> float:
    below = at = 0.0
    for k in range(count):
        if values[k] < o:
            below += weights[k]
        elif values[k] == o:
            at = weights[k]
    return _score(tree.rates[i], target, below, below + at if tree.tied else below)


@cached
def _ends(tree: Tree, interval: Any) -> tuple[float, float]:
    if tree.edge:
        return -math.inf, math.inf
    half = 0.5 if tree.tied else 0.0
    return interval[0] - half, interval[1] + half


@cached
def _log_total(
    tree: Tree, bins: Bins, i: int, interval: Any, target: float, count: int, values: Any, weights: Any
) -> float:
    """Log of the sum of all cells' weights."""
    p, rate = bins.which[i], tree.rates[i]
    previous, stop = _ends(tree, interval)
    start, total, rank = previous, 0.0, 0.0
    for k in range(count):
        left = right = values[k]
        if tree.tied:
            left = start if values[k] == interval[0] else values[k] - 0.5
            right = stop if values[k] == interval[1] else values[k] + 0.5
        above = rank + weights[k]
        total += _mass(bins, p, previous, left) * math.exp(_score(rate, target, rank, rank))
        if tree.tied:
            total += _mass(bins, p, left, right) * math.exp(_score(rate, target, rank, above))
        previous, rank = right, above
    return math.log(total + _mass(bins, p, previous, stop) * math.exp(_score(rate, target, rank, rank)))


@cached
def _log_base(tree: Tree, bins: Bins, i: int, o: float, interval: Any) -> float:
    p = bins.which[i]
    at_low, at_high = tree.edge and o == interval[0], tree.edge and o == interval[1]
    if tree.tied or at_low or at_high:
        half = 0.5 if tree.tied else 0.0
        return math.log(_mass(bins, p, -math.inf if at_low else o - half, math.inf if at_high else o + half))
    return math.log(bins.weights[p, math.ceil(o - bins.start)])


@cached
def _log_permanent(table: Any, size: int) -> float:
    if size == 1:
        return table[0, 0]
    top, logs, used = -math.inf, np.empty(6), 0
    for a in range(size):
        for b in range(size):
            if b == a:
                continue
            log = table[0, a] + table[1, b]
            if size == 3:
                log += table[2, 3 - a - b]
            logs[used] = log
            used += 1
            top = max(top, log)
    total = 0.0
    for k in range(used):
        total += math.exp(logs[k] - top)
    return top + math.log(total)


@cached
def _extreme_order(table: Any, size: int, sign: float) -> float:
    if size == 1:
        return table[0, 0]
    best = -math.inf
    for a in range(size):
        for b in range(size):
            if b != a:
                gain = table[0, a] + table[1, b]
                if size == 3:
                    gain += table[2, 3 - a - b]
                best = max(best, sign * gain)
    return sign * best


@cached
def _extreme_cells(
    tree: Tree, i: int, interval: Any, targets: Any, counts: Any, values: Any, weights: Any
) -> tuple[float, float]:
    """The least and the largest change of mechanism i's score over the cells of both columns."""
    rate, least, most = tree.rates[i], math.inf, -math.inf
    a = b = 0
    one = other = 0.0
    previous = interval[0] - 1.0
    while True:
        left = values[0, a] if a < counts[0] else math.inf
        right = values[1, b] if b < counts[1] else math.inf
        v = min(left, right)
        wide = (v == math.inf and previous < interval[1]) or (v < math.inf and (not tree.tied or v > previous + 1.0))
        if v < math.inf and tree.tied and v == interval[0]:
            wide = False
        if wide:
            change = _score(rate, targets[0], one, one) - _score(rate, targets[1], other, other)
            least, most = min(least, change), max(most, change)
        if v == math.inf:
            return least, most
        w = weights[0, a] if left == v else 0.0
        u = weights[1, b] if right == v else 0.0
        if tree.tied:
            change = _score(rate, targets[0], one, one + w) - _score(rate, targets[1], other, other + u)
            least, most = min(least, change), max(most, change)
        one, other, previous = one + w, other + u, v
        a += left == v
        b += right == v


@cached
def _add_node(
    tree: Tree, bins: Bins, node: int, interval: Any, pair: Any, o: Any, worst: bool, room: Any, total: Any
) -> None:
    """Add what one node contributes to the loss: of this sign and the other if the priors are the worst."""
    values, weights, table, counts, sizes, targets = room
    size = tree.counts[node]
    for v in range(2):
        counts[v], sizes[v] = _gather(tree, pair[v], interval, values[v], weights[v])
    for a in range(size):
        i = tree.indices[node, a]
        for v in range(2):
            targets[v] = _target(tree, i, sizes[v])
            log_total = 0.0
            if not worst:
                log_total = _log_total(tree, bins, i, interval, targets[v], counts[v], values[v], weights[v])
            for b in range(size):
                place = o[tree.indices[node, b]]
                score = _score_at(tree, i, targets[v], place, counts[v], values[v], weights[v])
                base = 0.0 if worst or size == 1 else _log_base(tree, bins, i, place, interval)
                table[v, a, b] = score + base - log_total
        if worst:
            least, most = _extreme_cells(tree, i, interval, targets, counts, values, weights)
            total[0] -= least
            total[1] -= most
    if worst:
        gains = table[0] - table[1]
        total[0] += _extreme_order(gains, size, 1.0)
        total[1] += _extreme_order(gains, size, -1.0)
    else:
        total[0] += _log_permanent(table[0], size) - _log_permanent(table[1], size)


@cached
def _losses(tree: Tree, bins: Bins, x: Any, neighbour: Any, outputs: Any, changed: Any, worst: bool) -> Any:
    """(batch, 2) losses; the second column is the loss of the other sign with the worst priors."""
    batch, width = x.shape
    nodes, most = tree.indices.shape
    totals = np.zeros((batch, 2))
    room = (
        np.empty((2, width + 1)),
        np.empty((2, width + 1)),
        np.empty((2, most, most)),
        np.empty(2, dtype=np.int64),
        np.empty(2),
        np.empty(2),
    )
    stack, intervals = np.empty(nodes, dtype=np.int64), np.empty((nodes, 4))
    for row in range(batch):
        depth = 1
        stack[0] = 0
        intervals[0] = np.array([-math.inf, math.inf, 0.0, 0.0])
        while depth > 0:
            depth -= 1
            node, low, high = stack[depth], intervals[depth, 0], intervals[depth, 1]
            low_share, high_share = intervals[depth, 2], intervals[depth, 3]
            interval = (low, high, low_share, high_share)
            if _weight(tree, changed[row, 0], interval) + _weight(tree, changed[row, 1], interval) == 0.0:
                continue
            o = outputs[row]
            _add_node(tree, bins, node, interval, (x[row], neighbour[row]), o, worst, room, totals[row])
            left, left_share = low, low_share
            for c in range(tree.counts[node] + 1):
                right, right_share, next_share = high, high_share, 0.0
                if c < tree.counts[node]:
                    right = o[tree.indices[node, c]]
                    share = low_share if right == low else high_share if right == high else 1.0
                    right_share = next_share = tree.tie_share * share
                child = tree.children[node, c]
                if child >= 0:
                    stack[depth] = child
                    intervals[depth, 0], intervals[depth, 1] = left, right
                    intervals[depth, 2], intervals[depth, 3] = left_share, right_share
                    depth += 1
                left, left_share = right, next_share
    return totals
