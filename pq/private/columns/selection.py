"""Parts of a column that nobody has sorted: what lies around some ranks, in two passes over it (Section 3.1).

The first pass counts records in buckets, the second collects the buckets in which the ranks are, and those alone are
sorted. A sample says where buckets should lie: badly placed ones cost time and nothing else. Numbers that are more than
once in the sample are counted in their buckets and not collected. Where too many records would be collected all the
same, the column is sorted. Ranks that are near each other need one pass alone: a larger sample has two numbers between
which they are, all but surely, and a count of what lies below and above tells whether they are.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pq.core.machine.engine import Engine
from pq.private.columns.buckets import COUNT, Buckets, best_buckets
from pq.private.columns.door import LARGEST, Array
from pq.private.columns.part import PartOfColumn, Unknown, Wanted, joined_part

Ints = npt.NDArray[np.int64]
COLLECT = Engine("pq.private.fast.buckets", "collect_buckets")
BETWEEN = Engine("pq.private.fast.buckets", "collect_between")
ENGINES = COUNT, COLLECT, BETWEEN
FEWEST = 1 << 17  # records of which a part is looked for: fewer are sorted sooner where numpy sorts many at once
LITTLE = 1 << 15  # records that may be collected, whatever share of all they are
SAMPLE = 1 << 11
COLLECTED = 1.0 / 7.0  # share of the records that is collected at most
SLACK = 1.25  # times as much as that by which a sample, which is off at times, is to tell that something is little
ROOM = 0.25  # of what may be collected, that may be looked up before it is known to be needed
CROWDED = 4.0  # times as many records as are looked for: in a bucket of more these tell little
MORE = 8.0  # times as many ranks, where those looked up do not do and nobody can tell which would
MOST_LOOKS, MANY = 6, 1 << 6  # at a column before it is sorted; quantiles whose tree has as many levels
MOST_SAMPLED, SAMPLED = 1 << 15, 1.0 / 128.0  # numbers, and share of the records, of the sample for one pass
BETWEEN_SHARE = 1.0 / 20.0  # of the records that one pass is to collect at most
OFF = 3.5  # standard deviations that a sample is off at most, all but surely
BLOCK = 1 << 10  # as in `pq.private.fast.buckets`
CHUNK = 1 << 14  # records that are made floats at a time
NOWHERE, NONE_HELD = np.empty(0), np.empty(0, dtype=np.int64)
SEED: int | None = None  # of where samples are taken: anew for each, so that no column is made to mislead them


@dataclass(frozen=True)
class Pieces:
    """The records of a column in any order, in arrays of real numbers of any type, which are read and never joined."""

    arrays: Sequence[npt.NDArray[Any]]

    def __len__(self) -> int:
        return sum(map(len, self.arrays))

    def __iter__(self) -> Iterator[Array]:
        """The records as floats, some at a time, each time perhaps in the room of those before."""
        room = np.empty(0)
        for array in self.arrays:
            if type(array) is np.ndarray and array.dtype == np.float64 and array.flags.carray:
                yield array
                continue
            room = np.empty(CHUNK) if len(room) == 0 else room
            for start in range(0, len(array), CHUNK):
                part = array[start : start + CHUNK]
                room[: len(part)] = part
                yield room[: len(part)]

    def sample(self, size: int) -> Array:
        """Some records, in increasing order; those that are no numbers are left out."""
        places = np.sort(np.random.default_rng(SEED).integers(0, len(self), size))
        found, start = [], 0
        for array in self.arrays:
            one, other = np.searchsorted(places, [start, start + len(array)])
            found.append(array[places[one:other] - start].astype(np.float64))
            start += len(array)
        joined = np.concatenate(found)
        return np.sort(joined[~np.isnan(joined)]) + 0.0  # one zero


def parts_can_be_found() -> bool:
    """Whether the machine code is there without which nobody looks for parts. To be asked before anything of the
    records is, their number and their order among it: what is loaded must not depend on them."""
    return all(engine.ready(0.0) for engine in ENGINES)


def parts_of(
    records: Pieces, quantiles: Array, reach: Array | float, points: Array = NOWHERE, growth: Array | float = 0.0
) -> Generator[PartOfColumn, Sequence[Wanted] | None, None]:
    """What lies within a reach, in ranks, of the quantiles of some records and around some points, see `Near`, and
    then, while that is little, with the ranks that are sent back as wanted, or within `MORE` times as much. Only where
    `parts_can_be_found`.

    Records that are no numbers do not count; infinite ones count as the largest numbers.
    """
    n = len(records)
    if n < FEWEST:
        return
    reach = reach + growth * max(math.log(n / 1e6), 0.0)
    near, sent = _between(records, quantiles, float(np.max(reach))), None
    if near is not None:
        sent = yield near
    column, known = _counted(records, points), np.empty(0, dtype=np.int64)
    if column is None:
        return
    asked: list[tuple[float, float]] = []
    least = float(np.max(reach))
    if column.buckets.are_crowded and column.is_little(column.buckets_near(quantiles, MORE * reach, asked)):
        reach = reach * MORE  # crowded in places: cells far from a target may weigh as much as those near it
    for _ in range(MOST_LOOKS):
        more = column.spans_of(sent or (), known, column.buckets_near(quantiles, reach, asked), least)
        if len(quantiles) >= MANY and more != [(one.low, one.high) for one in sent or ()]:
            return  # a look for each level of a tree would take longer than to sort
        asked += more
        if sent and column.is_little(column.buckets_near(quantiles, MORE * reach, asked), ROOM):
            reach = reach * MORE  # what met a gap here will elsewhere
        wanted = column.buckets_near(quantiles, reach, asked)
        while len(wanted) == len(known) and 2.0 * np.max(reach) < n:  # a number that many share is many reaches wide
            reach = reach * MORE
            wanted = column.buckets_near(quantiles, reach, asked)
        if len(wanted) == len(known) or not 2.0 * np.max(reach) < n:
            return
        part, known = column.part(wanted), wanted
        if part is None:
            return
        sent = yield part


def _between(records: Pieces, quantiles: Array, reach: float) -> PartOfColumn | None:
    """What lies around quantiles, between two numbers of a sample; None if these would be far from each other, or the
    sample misleads."""
    n, size = len(records), min(MOST_SAMPLED, int(len(records) * SAMPLED))
    one, other = float(quantiles.min()), float(quantiles.max())
    slack = (0.5 * OFF * math.sqrt(size) + 2.0) / max(size, 1) + reach / n
    if other - one + 2.0 * slack > BETWEEN_SHARE:
        return None
    sample = records.sample(size)
    if not len(sample):  # all but surely, nearly all records are no numbers
        return None
    first, last = math.floor((one - slack) * len(sample)), math.ceil((other + slack) * len(sample))
    low = sample.item(first) if first >= 0 else -math.inf
    high = sample.item(last) if last < len(sample) else math.inf
    low, high = (math.copysign(math.inf, end) if abs(end) >= LARGEST else end for end in (low, high))  # are one number
    counts, end = np.zeros(2, dtype=np.int64), 0
    out = np.empty(int(2.0 * (other - one + 2.0 * slack) * n) + BLOCK)
    for piece in records:
        found = BETWEEN(piece, low, high, counts, out[end:])
        if found < 0:
            return None
        end += found
    below, above = counts.tolist()
    ranks = one * (below + end + above) - reach - 1.0, other * (below + end + above) + reach + 1.0
    if end == 0 or (below > 0 and ranks[0] <= below) or (above > 0 and ranks[1] >= below + end):
        return None
    out.resize(end + 2, refcheck=False)  # what a guess was too large by goes back
    nothing = np.full(1, math.nan), np.zeros(1, dtype=np.int64)
    part = joined_part(out, end, *nothing, np.array([below, end, above]), np.ones(1, dtype=np.int64))
    return None if part is None else replace(part, count=lambda ends: _up_to(records, ends))


def _up_to(records: Pieces, ends: Array) -> Ints:
    """Records at or below each of some distinct numbers in increasing order."""
    column = _counted(records)
    if column is None:
        raise Unknown(everything=True)
    return column.up_to(ends)


def _counted(records: Pieces, points: Array = NOWHERE) -> _Counted | None:
    """Records counted in buckets; None if a sample finds no place for these. points: as of `_Counted`."""
    sample = records.sample(SAMPLE)
    buckets = best_buckets(sample[np.isfinite(sample)])
    return None if buckets is None else _Counted(records, sample, buckets, buckets.counts(records), points)


@dataclass(frozen=True)
class _Counted:
    """Records whose number in each bucket is known. sample: some of them, in increasing order. counts: (b,). points:
    increasing, whose buckets are wanted, too, where all together are little."""

    records: Pieces
    sample: Array
    buckets: Buckets
    counts: Ints
    points: Array

    def buckets_near(self, quantiles: Array, reach: Array | float, spans: Sequence[tuple[float, float]]) -> Ints:
        """The buckets that hold what lies within a reach, in ranks, of quantiles, or in a span of ranks."""
        up_to = self._ends
        ranks = quantiles * int(up_to[-1])
        low, high = np.array(spans, dtype=np.float64).reshape(-1, 2).T
        turns = np.zeros(len(self.counts) + 2, dtype=np.int64)
        first, last = np.append(ranks - reach, low) - 1.0, np.append(ranks + reach, high) + 1.0
        one, other = (np.searchsorted(up_to, end, side="right") for end in (first, last))
        one, other = self._beyond_crowded(first, last, one, other)
        np.add.at(turns, one, 1)
        np.add.at(turns, other + 1, -1)
        is_near = np.cumsum(turns)[:-2] > 0
        near = np.flatnonzero(is_near & (self.counts > 0))
        if not len(self.points):
            return near
        is_near[self._of_points] = True
        both = np.flatnonzero(is_near & (self.counts > 0))
        return both if len(both) == len(near) or self.is_little(both) else near

    def _beyond_crowded(self, first: Array, last: Array, one: Ints, other: Ints) -> tuple[Ints, Ints]:
        """The first and the last bucket of spans of ranks, as far beyond a bucket that holds all of a span, and much
        more, such as one of a number that many records share."""
        inside, wide = np.clip(one, 0, len(self.counts) - 1), last - first
        is_crowded = (one == other) & (self.counts[inside] > CROWDED * wide)
        start, end = (self._ends - self.counts)[inside] - wide, self._ends[inside] + wide
        before, after = (np.searchsorted(self._ends, ranks, side="right") for ranks in (start, end))
        return np.where(is_crowded, before, one), np.where(is_crowded, after, other)

    def spans_of(self, sent: Sequence[Wanted], known: Ints, near: Ints, reach: float) -> list[tuple[float, float]]:
        """The ranks to look up for what is wanted: all of it where that is little; else, of each, the first span of
        which something is unknown and which is little with all else. known, near: the buckets that were looked up, and
        that are to be."""
        whole = [(one.low, one.high) for one in sent]
        if self.is_little(np.union1d(near, self.buckets_near(NOWHERE, 0.0, whole)), 1.0 / SLACK):
            return whole
        out: list[tuple[float, float]] = []
        for one in sent:
            for span in one.spans(reach, MORE):
                own, room = self.buckets_near(NOWHERE, 0.0, [span]), ROOM if span in whole else 1.0
                both = np.union1d(near, own)
                if not np.all(np.isin(own, known)) and self.is_little(both, room):
                    near = both
                    out.append(span)
                    break
        return out

    def part(self, wanted: Ints) -> PartOfColumn | None:
        """What lies in some buckets; None if that is too much."""
        found = self._collected(wanted) if len(wanted) > 0 and self.is_little(wanted) else None
        part = None if found is None else joined_part(*found, self.counts, wanted)
        return None if part is None else replace(part, count=lambda ends: self.up_to(ends, wanted, part.records))

    def is_little(self, wanted: Ints, slack: float = SLACK) -> bool:
        """Whether some buckets seem to hold few records, or many of one number by the sample."""
        return float(np.sum(self._others[wanted])) <= slack * self._most

    def up_to(self, ends: Array, held: Ints = NONE_HELD, values: Array = NOWHERE) -> Ints:
        """Records at or below each of some distinct numbers in increasing order.

        held, values: buckets whose records are these values, in increasing order. An end that is in one of them must be
        above or below all that is there.
        """
        own = self.buckets.numbers(ends)
        wanted = np.unique(own)
        if np.all((self.counts[wanted] == 0) | np.isin(wanted, held)):
            following = np.append(values, math.inf)[np.searchsorted(values, ends, side="right")]
            is_below = (following < math.inf) & (self.buckets.numbers(following) == own)
            return self._ends[own] - np.where(is_below, self.counts[own], 0)
        found = self._collected(wanted)
        if found is None:
            raise Unknown(everything=True)
        room, size, tied, ties = found
        collected, first = room[:size], np.searchsorted(wanted, own)
        collected.sort()
        others = self._ends[own] - self.counts[own] - np.append(0, np.cumsum(self.counts[wanted]))[first]
        equal = np.append(0, np.cumsum(ties))  # a number that is counted may be above an end in its bucket
        equal_below = equal[first] + np.where(tied[first] <= ends, ties[first], 0)
        return others + np.searchsorted(collected, ends, side="right") + equal_below

    def _collected(self, wanted: Ints) -> tuple[Array, int, Array, Ints] | None:
        """Records of some buckets, but for a number of each, how many they are, these numbers, and how often they are
        there; None if that is much. There is room for these numbers, and one more, too."""
        most, each = min(self._most, int(np.sum(self.counts[wanted]))), len(self.records) / len(self.sample)
        few = float(np.sum(self._others[wanted])) / each
        likely = int((few + OFF * math.sqrt(few) + OFF) * each)
        for room in (likely, most) if likely < most else (most,):
            out = np.empty(room + BLOCK + len(wanted) + 1)
            end = self._collect(wanted, out[: room + BLOCK])
            if end >= 0:
                out.resize(end + len(wanted) + 1, refcheck=False)  # what a guess was too large by goes back
                there = self.buckets.counts([out[:end]])[wanted]
                return out, end, self._commonest[wanted], self.counts[wanted] - there
        return None

    def _collect(self, wanted: Ints, out: Array) -> int:
        """Put records into a room, see `_collected`; how many they are, -1 if there is not enough."""
        but, tied, end = np.full(len(self.counts), np.nan), self._commonest[wanted], 0
        but[wanted] = np.where(np.isnan(tied), np.where(wanted > 0, -np.inf, np.inf), tied)  # what is in no such bucket
        for piece in self.records:
            found: int = COLLECT(piece, piece.view(np.int64), *self.buckets.rule, but, out[end:])
            if found < 0:
                return -1
            end += found
        return end

    @property
    def _most(self) -> int:
        """Records that may be collected."""
        return max(int(len(self.records) * COLLECTED), LITTLE)

    @cached_property
    def _ends(self) -> Ints:
        """Records in each bucket and those before."""
        return np.cumsum(self.counts)

    @cached_property
    def _of_sample(self) -> Ints:
        """The bucket of each number of the sample."""
        return self.buckets.numbers(self.sample)

    @cached_property
    def _of_points(self) -> Ints:
        """The buckets in which the points are."""
        return np.flatnonzero(self.buckets.counts([self.points]))

    @cached_property
    def _others(self) -> Array:
        """Records of each bucket that are not its commonest number: all where that is not known, else by the sample."""
        own = self._of_sample
        seen = np.bincount(own, minlength=len(self.counts))
        others = np.bincount(own, weights=self.sample != self._commonest[own], minlength=len(self.counts))
        share: Array = np.where(np.isnan(self._commonest), 1.0, others / np.maximum(seen, 1))
        return share * self.counts

    @cached_property
    def _commonest(self) -> Array:
        """The number that is most frequent in the sample of each bucket, NaN where none is there more than once."""
        out = np.full(len(self.counts), np.nan)
        distinct, first, often = np.unique(self.sample, return_index=True, return_counts=True)
        several = np.flatnonzero(often > 1)
        order = several[np.argsort(often[several], kind="stable")]
        out[self._of_sample[first[order]]] = distinct[order]  # the last one stays
        return out
