"""Records counted in buckets, and those of some buckets, or between two numbers, taken out, compiled: one pass each
(Section 3.1).

A bucket is found by a linear function of the number, or of its bits; buckets in which a sample is crowded are split by
a second one. Buckets are numbered in the order of the numbers in them, for each step is a monotone function, rounding
included. So a rank tells a bucket, whatever the edges between buckets may be.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import boolean, float64, int64

from pq.core.machine.keep import compiled, given, kept

ALL_BUT_SIGN = 2**63 - 1
BLOCK = 1 << 10  # records whose buckets are found at a time
_READ, _WHOLE = given(float64, 1), given(int64, 1)
_RULE = float64, float64, boolean, _READ, _READ, _WHOLE


@compiled
def _find(
    x: Any, keys: Any, low: float, scale: float, by_bits: bool, starts: Any, units: Any, firsts: Any, parts: int,
    out: Any,
) -> None:  # fmt: skip
    """Put the parts of buckets (n,) in which some records are into `out`, the first for what is no number. parts: how
    many there are.

    Without a branch that depends on a record, which would take longer than all else.
    """
    top = units.size - 1.0
    for i in range(x.size):
        v, key = x[i], keys[i]
        t = float(key ^ ((key >> 63) & ALL_BUT_SIGN)) if by_bits and v == v else v
        t = (t - low) * scale
        t = t if t > 0.0 else 0.0
        out[i] = int(t if t < top else top)
    if parts == units.size:  # none is split
        return
    for i in range(x.size):
        b = out[i]
        t = (x[i] - starts[b]) * units[b]
        t, last = t if t > 0.0 else 0.0, firsts[b + 1] - firsts[b] - 1.0
        out[i] = firsts[b] + int(t if t < last else last)


@kept(int64(_READ, _WHOLE, *_RULE, int64[::1]))
def count_buckets(sources: int) -> Any:
    def run(
        x: Any, keys: Any, low: float, scale: float, by_bits: bool, starts: Any, units: Any, firsts: Any, counts: Any
    ) -> int:
        """Add the records (n,) of each part of a bucket to `counts`; returns how many are no numbers, and in none.

        keys: (n,) the same as bits. low, scale, by_bits: where buckets begin, how many there are to a unit, and whether
        of the numbers' bits. starts, units: (b,) where the parts of each begin, and how many there are to a unit; 0 if
        it is not split. firsts: (b + 1,) the number of its first part, and of all parts.
        """
        sources  # noqa: B018 (see pq.core.machine.keep)
        places, missing = np.empty(BLOCK, dtype=np.int64), 0
        others = np.zeros(counts.size, dtype=np.int64)  # of every other record: of two equal ones, none waits
        for start in range(0, x.size, BLOCK):
            block = x[start : start + BLOCK]
            _find(block, keys[start : start + BLOCK], low, scale, by_bits, starts, units, firsts, counts.size, places)
            for i in range(0, block.size - 1, 2):
                counts[places[i]] += 1
                others[places[i + 1]] += 1
            if block.size % 2:
                counts[places[block.size - 1]] += 1
            for i in range(block.size):
                missing += block[i] != block[i]
        counts += others
        counts[0] -= missing
        return missing

    return run


@kept(int64(_READ, _WHOLE, *_RULE, _READ, float64[::1]))
def collect_buckets(sources: int) -> Any:
    def run(
        x: Any, keys: Any, low: float, scale: float, by_bits: bool, starts: Any, units: Any, firsts: Any, but: Any,
        out: Any,
    ) -> int:  # fmt: skip
        """Put the records of some parts into `out`, which has room for `BLOCK` more; returns how many they are, -1 if
        there is no room.

        but: (p,) a number of each that is left out, NaN for a part of which all are. The others as for `count_buckets`.
        """
        sources  # noqa: B018 (see pq.core.machine.keep)
        places = np.empty(BLOCK, dtype=np.int64)
        end = np.uint64(0)  # a place that cannot be negative is one that needs no look
        for start in range(0, x.size, BLOCK):
            if end + np.uint64(BLOCK) > np.uint64(out.size):
                return -1
            block = x[start : start + BLOCK]
            _find(block, keys[start : start + BLOCK], low, scale, by_bits, starts, units, firsts, but.size, places)
            for i in range(block.size):  # without a branch that depends on a record
                v, not_this = block[i], but[places[i]]
                out[end] = v
                end += np.uint64((v < not_this) | (v > not_this))
        return np.int64(end)  # type: ignore[return-value]

    return run


@kept(int64(_READ, float64, float64, int64[::1], float64[::1]))
def collect_between(sources: int) -> Any:
    def run(x: Any, low: float, high: float, counts: Any, out: Any) -> int:
        """Put the records from `low` to `high` into `out`, which has room for `BLOCK` more; returns how many they are,
        -1 if there is no room. counts: (2,) those below and above are added to it; what is no number is in neither."""
        sources  # noqa: B018 (see pq.core.machine.keep)
        end = np.uint64(0)  # a place that cannot be negative is one that needs no look
        for start in range(0, x.size, BLOCK):
            block, below, above = x[start : start + BLOCK], 0, 0
            if end + np.uint64(BLOCK) > np.uint64(out.size):
                return -1
            for i in range(block.size):  # several at once, which the next loop cannot
                below += block[i] < low
                above += block[i] > high
            for i in range(block.size):  # without a branch that depends on a record
                v = block[i]
                out[end] = v
                end += np.uint64((v >= low) & (v <= high))
            counts[0] += below
            counts[1] += above
        return np.int64(end)  # type: ignore[return-value]

    return run
