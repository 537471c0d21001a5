"""Ordered outputs as a chain over the cells of a column: exact sums of weights, and draws (Section 3.2).

Output j of `k` lies in a cell (a stretch between neighbouring records and public cuts) with `rank` records below. For a
total nu the weight of a way to place the outputs is a product along the chain: exp(-rate |n_j - nu p_j|) for each of
the k + 1 counts between neighbours, and for each group of g outputs in one cell the mass that g ordered draws from the
base give to it, mass^g / g! times their tilts. `forward` adds up all ways from the left; `backward` draws one of them.

Everything is in the log domain. The sum over earlier cells needs exp(-rate |c - c' - nu p|) against all c' < c: those
with c' <= c - nu p are a running sum, the others a sum over a stretch with two moving ends, which `range_log_sums`
gives without ever subtracting.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pq.core.scores import log_sum
from pq.private.columns.cells import Before, Steps, all_ranks, rounded_records
from pq.private.columns.door import LARGEST, Array
from pq.private.mechanisms.joint.plan import JointPlan

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Span = tuple[float, float]  # smallest and largest rank
EVERYWHERE: Span = (-math.inf, math.inf)


@dataclass(frozen=True)
class Records:
    """Sorted places of records and their running weight.

    values: (d,) increasing. before: (d + 1,) weight of the records before each place, and of all; None for 0..d.
    """

    values: Array
    before: Array | Steps | None

    @classmethod
    def of(cls, plan: JointPlan, values: Array, before: Before | None) -> Records:
        """The records as a plan sees them: on a grid each is spread evenly over sub-places of its grid cell.

        The spread of one record is a public kernel of mass one, so one record more still moves the counts between any
        outputs by one in total. A value that many share is then a slope of ranks that outputs may end on.
        """
        if plan.step is None:
            return cls(values, before.astype(np.float64) if isinstance(before, np.ndarray) else before)
        units, before = rounded_records(values, plan.step, all_ranks(before, len(values)))
        held, sub = before.astype(np.float64), np.arange(plan.places)
        ranks = np.empty(units.size * plan.places + 1)  # and all in place: they take by far the most memory
        inner = ranks[:-1].reshape(-1, plan.places)
        np.multiply((held[1:] - held[:-1])[:, None], sub / plan.places, out=inner)
        inner += held[:-1, None]
        ranks[-1] = held[-1]
        places = units[:, None] + (2.0 * sub + 1.0 - plan.places) / (2.0 * plan.places)
        places *= float(plan.step.numerator)  # as `pq.core.grid.from_units` does
        places /= float(plan.step.denominator)
        return cls(places.reshape(-1), ranks)

    @cached_property
    def ranks(self) -> Array | None:
        """As `before`, as an array."""
        return self.before.all(len(self.values)).astype(np.float64) if isinstance(self.before, Steps) else self.before

    @property
    def n(self) -> float:
        """Weight of all records."""
        return float(len(self.values) if self.before is None else self.before[len(self.values)])

    def cells_of(self, span: Span) -> tuple[int, int]:
        """The cells first..last - 1 whose ranks lie in a span; cell i ends at place i."""
        low, high = span
        end = len(self.values) + 1
        if self.ranks is None:
            return int(min(max(math.ceil(low), 0), end)) if low > 0 else 0, int(
                min(math.floor(min(high, end)) + 1, end)
            )
        return int(np.searchsorted(self.ranks, low, side="left")), int(np.searchsorted(self.ranks, high, side="right"))

    def rank(self, cell: Any) -> Any:
        """Weight of the records below a cell."""
        return cell * 1.0 if self.ranks is None else self.ranks[cell]


@dataclass(frozen=True)
class ChainCells:
    """Stretches of outputs, in increasing order, that have the same records below; those of no mass are left out.

    lower, upper: (c,) ends. rank: (c,) weight of the records below. log_mass: (c,) under the base. log_tilt: (k, c).
    """

    lower: Array
    upper: Array
    rank: Array
    log_mass: Array
    log_tilt: Array


def gather(plan: JointPlan, records: Records, spans: list[Span], marks: Array | None = None) -> ChainCells:
    """All cells with ranks in one of the spans, cut at the plan's cuts and at further marks."""
    cuts = plan.cuts if marks is None else np.union1d(plan.cuts, marks)
    pieces = [_piece(records, cuts, *stretch) for stretch in _merged([records.cells_of(span) for span in spans])]
    lower, upper, rank = (np.concatenate(part) for part in zip(*pieces, strict=True)) if pieces else [np.empty(0)] * 3
    log_mass = plan.base.log_mass(lower, upper)
    kept = log_mass > -np.inf
    bins = np.searchsorted(plan.cuts, lower[kept], side="right")
    return ChainCells(lower[kept], upper[kept], rank[kept], log_mass[kept], plan.log_tilts[:, bins])


def _merged(stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for first, last in sorted(stretches):
        if first < last and out and first <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], last))
        elif first < last:
            out.append((first, last))
    return out


def _piece(records: Records, cuts: Array, first: int, last: int) -> tuple[Array, Array, Array]:
    """Lower and upper ends and ranks of neighbouring cells, cut in pieces."""
    inner = records.values[first : last - 1]
    low = records.values[first - 1] if first > 0 else -np.inf
    high = records.values[last - 1] if last <= len(records.values) else np.inf
    mine = cuts[np.searchsorted(cuts, low, side="right") : np.searchsorted(cuts, high, side="left")]
    at = np.searchsorted(inner, mine, side="right")
    edges = np.concatenate([[low], np.insert(inner, at, mine), [high]])
    cell = np.insert(np.arange(first + 1, last), at, first + at) if len(mine) else np.arange(first + 1, last)
    return edges[:-1], edges[1:], records.rank(np.concatenate([[first], cell]))


@dataclass(frozen=True)
class CellChain:
    """Log weights of the ways to place outputs, for one total.

    enter: (k, c) of outputs before j, when j is the first in cell c; the mass of c does not count yet. upto: (k, c) of
    outputs 0..j, when j is the last in cell c. allowed: (k, c) whether output j may lie in cell c. reach: longest
    stretch, in records of score, of a group of outputs in one cell. log_weight: of all outputs.
    """

    total: float
    n: float
    allowed: Bools
    reach: float
    enter: Array
    upto: Array
    log_weight: float


def forward(
    plan: JointPlan,
    cells: ChainCells,
    total: float,
    n: float,
    allowed: Bools,
    reach: float = math.inf,
    bent_at: float | None = None,
) -> CellChain:
    """Sum over all allowed ways to place the outputs, from the first to the last.

    bent_at: a total from which on the score of each way is taken to go on along a tangent; None for the score itself.
    """
    k, rate, bent_at = plan.size, plan.rate, total if bent_at is None else bent_at
    enter, upto = np.full((2, k, len(cells.rank)), -np.inf)
    before = slice(0, 0)
    for j in range(k):
        shift, bend, where = total * plan.shares[j], bent_at * plan.shares[j], _hull(allowed[j])
        if j == 0:
            first = -rate * _along(cells.rank[where], shift, bend)
        else:
            first = arrivals(upto[j - 1], cells.rank, before, where, shift, rate, bend)
        enter[j, where] = np.where(allowed[j, where], first, -np.inf)
        chain = CellChain(total, n, allowed, reach, enter, upto, -math.inf)
        upto[j, where] = np.logaddexp.reduce(group_terms(plan, cells, chain, j, where), axis=0)
        before = where
    last = _along(n - cells.rank, total * plan.shares[k], bent_at * plan.shares[k])
    return CellChain(total, n, allowed, reach, enter, upto, log_sum(upto[-1] - rate * last))


def _along(counts: Array, shift: float, bend: float) -> Array:
    """Distances of counts from a shift, or what tangents make of these that touch them where the shift is `bend`."""
    return np.where(counts >= bend, counts - shift, shift - counts)


def _hull(allowed: Bools) -> slice:
    """The least stretch of cells that holds all allowed ones."""
    places = np.flatnonzero(allowed)
    return slice(int(places[0]), int(places[-1]) + 1) if places.size else slice(0, 0)


def group_terms(plan: JointPlan, cells: ChainCells, chain: CellChain, j: int, where: slice) -> Array:
    """Log weights (j + 1, c) by the first output i of the group in a cell that ends with output j."""
    terms = np.full((j + 1, len(cells.rank[where])), -np.inf)
    weight = np.zeros(terms.shape[1])
    for i in range(j, -1, -1):
        inner = chain.total * (plan.levels[j] - plan.levels[i])  # score of the counts of zero inside the group
        if not within(chain, inner):
            break
        weight = weight + cells.log_mass[where] + cells.log_tilt[i, where] - math.log(j - i + 1)
        weight[~chain.allowed[i, where]] = -np.inf
        terms[i] = chain.enter[i, where] + weight - plan.rate * inner
    return terms


def within(chain: CellChain, inner: float) -> bool:
    """Whether a group whose inner counts score `inner` is inside the reach; its score is at least this sum."""
    return inner + abs(chain.n - chain.total + inner) <= chain.reach


def arrivals(
    log_weights: Array, rank: Array, source: slice, target: slice, shift: float, rate: float, bend: float
) -> Array:
    """log of the sum over cells s < t of exp(log_weights[s] - rate |rank[t] - rank[s] - shift|), for each t of a
    stretch of targets; outside a stretch of sources nothing weighs anything. bend: see `_along`."""
    here, weights = rank[source] - rank[source][:1], log_weights[source]
    there = rank[target] - rank[source][:1] if here.size else rank[target]
    end = np.clip(np.arange(target.start, target.stop), source.start, source.stop) - source.start
    near = np.minimum(np.searchsorted(here, there - bend, side="right"), end)
    running = np.concatenate([[-np.inf], np.logaddexp.accumulate(weights + rate * here)])[near]
    rest = range_log_sums(weights - rate * here, near, end)
    return np.logaddexp(running - rate * (there - shift), rest + rate * (there - shift))


def range_log_sums(x: Array, first: Ints, last: Ints) -> Array:
    """log of the sum of exp(x[first:last]) for each pair, by sums to the left and right of the middles of blocks.

    >>> range_log_sums(np.zeros(5), np.array([0, 1, 2]), np.array([5, 4, 2])).round(4)
    array([1.6094, 1.0986,   -inf])
    """
    out = np.full(first.shape, -np.inf)
    single = last - first == 1
    out[single] = x[first[single]]
    padded = np.full(1 << max(len(x) - 1, 0).bit_length(), -np.inf)
    padded[: len(x)] = x
    longer = last - first > 1
    apart = np.where(longer, first ^ (last - 1), 0)
    half = 1
    while half < len(padded):
        k = np.flatnonzero(longer & (apart >= half) & (apart < 2 * half))
        if k.size:
            blocks = padded.reshape(-1, 2 * half)
            left = np.logaddexp.accumulate(blocks[:, half - 1 :: -1], axis=1)[:, ::-1]
            right = np.logaddexp.accumulate(blocks[:, half:], axis=1)
            table = np.concatenate([left, right], axis=1).reshape(-1)
            out[k] = np.logaddexp(table[first[k]], table[last[k] - 1])
        half *= 2
    return out


def choose(log_weights: Array, uniform: float) -> int:
    """The index that inverse-transform sampling picks in proportion to weights, never one of weight zero."""
    running = np.cumsum(np.exp(log_weights - np.max(log_weights)))
    last = int(np.searchsorted(running, running[-1], side="left"))
    return min(int(np.searchsorted(running, uniform * running[-1], side="right")), last)


def backward(plan: JointPlan, cells: ChainCells, chain: CellChain, uniforms: Array) -> Array:
    """Outputs (k,) drawn in proportion to their weights, from the last group to the first.

    uniforms: (3, k) for the cell and the size of the group that ends with each output, and for the places.
    """
    outputs = np.empty(plan.size)
    j, last, following = plan.size - 1, len(cells.rank), chain.n
    while j >= 0:
        shift = chain.total * plan.shares[j + 1]
        weights = chain.upto[j, :last] - plan.rate * np.abs(following - cells.rank[:last] - shift)
        cell = choose(weights, uniforms[0, j])
        first = choose(group_terms(plan, cells, chain, j, slice(cell, cell + 1))[:, 0], uniforms[1, j])
        lower, upper = float(cells.lower[cell]), float(cells.upper[cell])
        drawn = np.sort(plan.base.quantile_between(lower, upper, uniforms[2, first : j + 1]))
        outputs[first : j + 1] = np.clip(drawn, math.nextafter(lower, math.inf), min(upper, LARGEST))
        j, last, following = first - 1, cell, float(cells.rank[cell])
    return outputs
