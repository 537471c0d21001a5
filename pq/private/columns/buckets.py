"""Buckets that records are counted in, so placed that a sample is spread over many of them (Section 3.1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pq.core.machine.engine import Engine
from pq.private.columns.door import Array

Ints = npt.NDArray[np.int64]
COUNT = Engine("pq.private.fast.buckets", "count_buckets")
BUCKETS = 1 << 12
TRIMMED = 16  # numbers of the sample at either end that lie in the outermost buckets
CROWDED = 6  # numbers of the sample from which a bucket is split
MUCH = 12  # numbers of the sample in one bucket, which no even column has
PARTS = 2  # of a bucket for each number of the sample in it
FEW = 64  # times as many numbers of the sample as may lie far from the rest of a bucket


@dataclass(frozen=True)
class Buckets:
    """Which bucket a record is in, see `pq.private.fast.buckets.count_buckets`."""

    low: float
    scale: float
    by_bits: bool
    starts: Array
    units: Array
    firsts: Ints

    @property
    def number(self) -> int:
        """Of all parts of buckets."""
        return int(self.firsts[-1])

    @property
    def are_crowded(self) -> bool:
        """Whether one of them holds much of the sample."""
        return bool(np.max(np.diff(self.firsts)) >= PARTS * MUCH)

    @property
    def rule(self) -> tuple[Any, ...]:
        return self.low, self.scale, self.by_bits, self.starts, self.units, self.firsts

    def counts(self, records: Iterable[Array]) -> Ints:
        """Records in each bucket, of those that are numbers."""
        counts = np.zeros(self.number, dtype=np.int64)
        for piece in records:
            COUNT(piece, piece.view(np.int64), *self.rule, counts)
        return counts

    def numbers(self, ordered: Array) -> Ints:
        """The bucket of each of some numbers in increasing order."""
        counts = self.counts([ordered])
        return np.repeat(np.arange(len(counts)), counts)


def best_buckets(sample: Array) -> Buckets | None:
    """The better of two ways to place buckets, that by which the sample is in more of them, with crowded ones split.

    Buckets are of one width, or of one width of the numbers' bits, which grow as their logarithms.
    """
    keys = sample.view(np.int64)
    bits = (keys ^ ((keys >> 63) & np.int64(2**63 - 1))).astype(np.float64)
    ways = [way for way in (_linear(sample, False), _linear(bits, True)) if way is not None]
    used = [np.count_nonzero(way.counts([sample])) for way in ways]
    return _split(ways[int(np.argmax(used))], sample) if ways else None


def _linear(ordered: Array, by_bits: bool) -> Buckets | None:
    """Buckets of one width between the ends of a sample, but for a few of its numbers; None if there is no such."""
    if len(ordered) <= 2 * TRIMMED:
        return None
    low, high = float(ordered[TRIMMED]), float(ordered[-1 - TRIMMED])
    scale = BUCKETS / (high - low) if high > low else 0.0
    if not 0.0 < scale < np.inf:
        return None
    whole = np.zeros(BUCKETS)
    return Buckets(low, scale, by_bits, whole, whole, np.arange(BUCKETS + 1))


def _split(buckets: Buckets, sample: Array) -> Buckets:
    """The same with buckets that hold much of a sample split between the first and the last of most of its numbers in
    each."""
    counts = buckets.counts([sample])
    expected = np.zeros(len(counts), dtype=np.int64)
    expected[[0, -1]] = TRIMMED  # both take longer to split, in each pass over all records, than to sort
    crowded = np.flatnonzero(counts - expected >= CROWDED)
    ends = np.cumsum(counts)
    low, units, usable = np.zeros(len(crowded)), np.zeros(len(crowded)), np.zeros(len(crowded), dtype=np.bool_)
    few = np.minimum(counts[crowded] // FEW, TRIMMED)  # at either end, which may be far from the rest
    for cut in (np.zeros_like(few), few):
        first, last = sample[ends[crowded] - counts[crowded] + cut], sample[ends[crowded] - 1 - cut]
        with np.errstate(all="ignore"):
            unit = PARTS * counts[crowded] / (last - first)
        found = (unit > 0.0) & (unit < np.inf)
        low[found], units[found], usable = first[found], unit[found], usable | found
    starts, all_units, sizes = np.zeros(BUCKETS), np.zeros(BUCKETS), np.ones(BUCKETS, dtype=np.int64)
    split = crowded[usable]
    starts[split], all_units[split], sizes[split] = low[usable], units[usable], PARTS * counts[split]
    return replace(buckets, starts=starts, units=all_units, firsts=np.append(0, np.cumsum(sizes)))
