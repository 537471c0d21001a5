"""Records counted in buckets, and those of some buckets taken out, compiled: one pass each (Section 3.1).

Buckets are numbered in the order of the numbers in them, for the number of a bucket is a monotone function of the
record, rounding included. So a rank tells a bucket, whatever the edges between buckets may be.
"""

from __future__ import annotations

from typing import Any

from numba import boolean, float64, int64

from pq.core.machine.keep import compiled, given, kept

ALL_BUT_SIGN = 2**63 - 1


@compiled
def bucket_of(v: float, key: int, low: float, scale: float, by_bits: bool, knots: Any, top: float) -> int:
    """The bucket of a record, given its bits too: by a linear function of the number or of its bits, or between knots;
    0 for what is no number."""
    if knots.size:
        first, last = 0, knots.size
        while first < last:
            middle = (first + last) // 2
            if knots[middle] < v:
                first = middle + 1
            else:
                last = middle
        return first
    t = v
    if by_bits:
        t = float(key ^ ((key >> 63) & ALL_BUT_SIGN))
        if v != v:
            return 0
    t = (t - low) * scale
    return int(min(t, top)) if t > 0.0 else 0


_COUNT = int64(given(float64, 1), given(int64, 1), float64, float64, boolean, given(float64, 1), int64[::1])
_COLLECT = int64(
    given(float64, 1), given(int64, 1), float64, float64, boolean, given(float64, 1), given(int64, 1),
    given(float64, 1), int64[::1], float64[::1],
)  # fmt: skip


@kept(_COUNT)
def count_buckets(sources: int) -> Any:
    def run(x: Any, keys: Any, low: float, scale: float, by_bits: bool, knots: Any, counts: Any) -> int:
        """Add the records (n,) of each bucket to `counts`; returns how many are no numbers, which are in none.

        keys: (n,) the same as bits. low, scale, by_bits, knots: see `bucket_of`.
        """
        sources  # noqa: B018 (see pq.core.machine.keep)
        top, missing = float(counts.size - 1), 0
        for i in range(x.size):
            missing += x[i] != x[i]
            counts[bucket_of(x[i], keys[i], low, scale, by_bits, knots, top)] += 1
        counts[0] -= missing
        return missing

    return run


@kept(_COLLECT)
def collect_buckets(sources: int) -> Any:
    def run(
        x: Any, keys: Any, low: float, scale: float, by_bits: bool, knots: Any, marks: Any, reps: Any, ties: Any,
        out: Any,
    ) -> int:  # fmt: skip
        """Put the records of marked buckets into `out`; returns how many there are, -1 if there is no room for them.

        marks: (buckets,) numbers of those wanted, -1 for the others. reps: (wanted,) a number of each that is not put
        there but counted in `ties`.
        """
        sources  # noqa: B018 (see pq.core.machine.keep)
        top, end = float(marks.size - 1), 0
        for i in range(x.size):
            mark = marks[bucket_of(x[i], keys[i], low, scale, by_bits, knots, top)]
            if mark >= 0:
                if x[i] == reps[mark]:
                    ties[mark] += 1
                elif x[i] == x[i]:
                    if end == out.size:
                        return -1
                    out[end] = x[i]
                    end += 1
        return end

    return run
