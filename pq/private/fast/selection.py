"""Parts of a column that nobody has sorted: what lies around some ranks, in two passes over it (Section 3.1).

The first pass counts records in buckets, the second collects the buckets in which the ranks are, and those alone are
sorted. A sample says where buckets should lie: badly placed ones cost time and nothing else. If too many records would
be collected, all buckets are placed anew between numbers of the sample, and if that does not do either, the column is
sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pq.core.machine.engine import Engine
from pq.private.columns.door import LARGEST, Array
from pq.private.columns.part import Part

Ints = npt.NDArray[np.int64]
COUNT = Engine("pq.private.fast.buckets", "count_buckets")
COLLECT = Engine("pq.private.fast.buckets", "collect_buckets")
SORT_SECONDS = 4e-8  # about what a record takes if a column is sorted
FEWEST = 1 << 15  # records of which a part is looked for: fewer are sorted sooner
BUCKETS, SAMPLE = 1 << 14, 1 << 11
TRIMMED = 16  # numbers of the sample at either end that lie in the outermost buckets
MOST_COLLECTED = 12  # of so many records one is collected at most
NO_KNOTS = np.empty(0)
MORE = 8.0
SEED = 0x5EED  # where the sample is taken: time alone depends on it


def parts_of(records: Array, quantiles: Array, reach: float) -> Iterator[Part]:
    """What lies within a reach, in ranks, of the quantiles of some records in any order, then within `MORE` times as
    much, and so on while that is little; nothing if machine code is not there.

    records: (n,), of which those that are no numbers do not count; infinite ones count as the largest numbers.
    """
    n = len(records)
    if n < FEWEST or not COUNT.ready(0.0) or not COLLECT.ready(0.0):
        return
    column = _Counted.of(records)
    while 2.0 * reach * len(quantiles) * MOST_COLLECTED < n:
        part = column.part(quantiles, reach)
        if part is None and not column.buckets.knots.size:
            column = _Counted.by(records, _between_knots(column.sample))
            part = column.part(quantiles, reach)
        if part is None:
            return
        yield part
        reach *= MORE


@dataclass(frozen=True)
class Buckets:
    """Which bucket a record is in, see `pq.private.fast.buckets.bucket_of`."""

    low: float
    scale: float
    by_bits: bool
    knots: Array

    def count(self, records: Array, keys: Ints, counts: Ints) -> int:
        return int(COUNT(records, keys, self.low, self.scale, self.by_bits, self.knots, counts))

    @property
    def number(self) -> int:
        return len(self.knots) + 1 if self.knots.size else BUCKETS


@dataclass(frozen=True)
class _Counted:
    """Records whose number in each bucket is known. counts: (b,). sample: some of them, in increasing order."""

    records: Array
    keys: Ints
    sample: Array
    buckets: Buckets
    counts: Ints

    @classmethod
    def of(cls, records: Array) -> _Counted:
        """By the better of two ways to place buckets: the one by which the sample is in more of them."""
        places = np.random.default_rng(SEED).integers(0, len(records), SAMPLE)
        sample = np.sort(records[places])
        sample = sample[: int(np.searchsorted(sample, np.inf, side="left"))]
        sample = sample[int(np.searchsorted(sample, -np.inf, side="right")) :] + 0.0
        ways = [way for way in (_even(sample), _by_bits(sample)) if way is not None]
        used = [np.count_nonzero(_held(way, sample)) for way in ways]
        best = ways[int(np.argmax(used))] if ways else _between_knots(sample)
        return cls.by(records, best, sample)

    @classmethod
    def by(cls, records: Array, buckets: Buckets, sample: Array | None = None) -> _Counted:
        keys, counts = records.view(np.int64), np.zeros(buckets.number, dtype=np.int64)
        buckets.count(records, keys, counts)
        return cls(records, keys, buckets.knots if sample is None else sample, buckets, counts)

    def part(self, quantiles: Array, reach: float) -> Part | None:
        """What lies around quantiles; None if that is too much."""
        up_to = np.cumsum(self.counts)
        n = int(up_to[-1])
        first = np.searchsorted(up_to, quantiles * n - reach - 1.0, side="right")
        last = np.searchsorted(up_to, quantiles * n + reach + 1.0, side="right")
        turns = np.zeros(len(self.counts) + 2, dtype=np.int64)
        np.add.at(turns, first, 1)
        np.add.at(turns, last + 1, -1)
        wanted = (np.cumsum(turns)[:-2] > 0) & (self.counts > 0)
        numbers = np.flatnonzero(wanted)
        if len(numbers) == 0:
            return None
        marks = np.full(len(self.counts), -1, dtype=np.int64)
        marks[numbers] = np.arange(len(numbers))
        reps, ties = self._commonest()[numbers], np.zeros(len(numbers), dtype=np.int64)
        most = max(len(self.records) // MOST_COLLECTED, FEWEST)
        out = np.empty(min(most, int(np.sum(self.counts[numbers]))))
        found = int(
            COLLECT(
                self.records, self.keys, self.buckets.low, self.buckets.scale, self.buckets.by_bits, self.buckets.knots,
                marks, reps, ties, out,
            )
        )  # fmt: skip
        return None if found < 0 else _joined(out[:found], reps, ties, self.counts, numbers)

    def _commonest(self) -> Array:
        """The number that is most frequent in the sample of each bucket, NaN where the sample has none."""
        out = np.full(len(self.counts), np.nan)
        distinct, often = np.unique(self.sample, return_counts=True)
        order = np.argsort(often, kind="stable")
        places = _numbers(self.buckets, distinct)
        out[places[order]] = distinct[order]  # the last one stays
        return out


def _joined(found: Array, reps: Array, ties: Ints, counts: Ints, numbers: Ints) -> Part:
    """Collected records, and numbers that are many times in the column, with what lies between buckets.

    numbers: (w,) of the buckets collected, counts: (b,) records of all.
    """
    found.sort()
    values = np.clip(found, -LARGEST, LARGEST, out=found)
    before = np.arange(len(values) + 1)
    if ties.any():
        tied = np.clip(reps[ties > 0], -LARGEST, LARGEST)
        values = np.concatenate([values, tied])
        weights = np.concatenate([np.diff(before), ties[ties > 0]])
        order = np.argsort(values, kind="stable")
        values, before = values[order], np.concatenate([[0], np.cumsum(weights[order])])
    held = np.cumsum(counts[numbers]) - counts[numbers]  # collected records before each bucket
    others = np.cumsum(counts)[numbers] - counts[numbers] - held  # those of other buckets before each
    new = np.diff(others, prepend=0) > 0
    gaps = np.searchsorted(before[:-1], held[new], side="left")
    rest = int(np.sum(counts) - others[-1] - before[-1])
    before[1:] += np.repeat(np.append(0, others[new]), np.diff(gaps, prepend=0, append=len(values)))
    if rest:
        values = np.append(values, np.nextafter(values[-1], np.inf))
        before = np.append(before, before[-1] + rest)
        gaps = np.append(gaps, [len(values) - 1, len(values)])
    return Part(values, before, gaps=gaps.astype(np.int64))


def _numbers(buckets: Buckets, values: Array) -> Ints:
    """The bucket of each of some numbers."""
    out, counts = np.empty(len(values), dtype=np.int64), np.zeros(buckets.number, dtype=np.int64)
    buckets.count(values, values.view(np.int64), counts)
    out[:] = np.repeat(np.arange(len(counts)), counts)  # of numbers in increasing order
    return out


def _held(buckets: Buckets, sample: Array) -> Ints:
    counts = np.zeros(buckets.number, dtype=np.int64)
    buckets.count(sample, sample.view(np.int64), counts)
    return counts


def _even(sample: Array) -> Buckets | None:
    """Buckets of one width between the ends of the sample, but for a few of its numbers."""
    return _linear(*_ends(sample), False)


def _by_bits(sample: Array) -> Buckets | None:
    """The same of the numbers' bits, which grow as their logarithms."""
    keys = sample.view(np.int64)
    return _linear(*_ends((keys ^ ((keys >> 63) & np.int64(2**63 - 1))).astype(np.float64)), True)


def _ends(ordered: Array) -> tuple[float, float]:
    if len(ordered) <= 2 * TRIMMED:
        return 0.0, 0.0
    return float(ordered[TRIMMED]), float(ordered[-1 - TRIMMED])


def _linear(low: float, high: float, by_bits: bool) -> Buckets | None:
    scale = BUCKETS / (high - low) if high > low else 0.0
    return Buckets(low, scale, by_bits, NO_KNOTS) if 0.0 < scale < np.inf else None


def _between_knots(sample: Array) -> Buckets:
    """Buckets between all distinct numbers of the sample, each of which is the last in its bucket."""
    knots = np.unique(sample)
    return Buckets(0.0, 0.0, False, knots if len(knots) else np.zeros(1))
