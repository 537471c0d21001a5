"""Where noise comes from: the operating system at every call, or a generator that somebody asked for."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from pq.core.locks import Process
from pq.private.columns.door import Array

NOTHING = np.empty(0)
DROPPED_BITS, ONE = np.uint64(12), np.float64(1.0).view(np.uint64)
BELOW_ONE = 1.0 - 2.0**-53


class Source:
    """A source of uniforms. rng: None for the operating system, a numpy Generator, or a seed.

    Nothing is kept between calls without rng: forks, threads and copies never share noise. A source is of the process
    that made it: a child that is forked in the middle of a release, as a handler of signals may do, gets none more
    (`pq.core.locks.ForkedError`), as one release was paid for. Raises `TypeError` naming rng.

    >>> Source(1).uniforms(2)
    array([0.51182162, 0.9504637 ])
    """

    def __init__(self, rng: Any = None) -> None:
        self._generator, self._process = generator_from(rng), Process()

    def uniforms(self, *shape: int) -> Array:
        """Independent uniforms strictly inside (0, 1): multiples of 2^-53 that are not of 2^-52 (of 2^-53 from a
        generator)."""
        self._process.check()
        if self._generator is not None:
            return np.asarray(self._generator.integers(1, 2**53, shape) * 2.0**-53)
        bits = np.frombuffer(os.urandom(8 * math.prod(shape)), dtype=np.uint64) >> DROPPED_BITS
        bits |= ONE  # floats from one to two, multiples of 2^-52
        uniforms = bits.view(np.float64)
        uniforms -= BELOW_ONE  # exact: the 2^52 middles between those from zero to one
        return uniforms.reshape(shape)

    def bytes(self, count: int) -> bytes:
        """Independent random bytes, for noise that is exact."""
        self._process.check()
        return os.urandom(count) if self._generator is None else self._generator.bytes(count)


class Tape(Source):
    """Uniforms and bytes of another source, which after `rewind` come again before any new ones do."""

    def __init__(self, source: Source) -> None:
        self._source, self._given, self._next = source, NOTHING, 0
        self._blocks: list[bytes] = []
        self._block = 0

    def rewind(self) -> Tape:
        self._next = self._block = 0
        return self

    def uniforms(self, *shape: int) -> Array:
        start, self._next = self._next, self._next + math.prod(shape)
        if self._next > len(self._given):
            new = self._source.uniforms(self._next - len(self._given))
            self._given = np.concatenate([self._given, new]) if len(self._given) else new
        return self._given[start : self._next].reshape(shape)

    def bytes(self, count: int) -> bytes:
        """As many as were asked for at this place before."""
        if self._block == len(self._blocks):
            self._blocks.append(self._source.bytes(count))
        self._block += 1
        return self._blocks[self._block - 1]


def generator_from(rng: Any) -> np.random.Generator | None:
    """The generator that somebody asked for, itself or by a seed, or None. Raises `TypeError` naming rng."""
    if rng is None or isinstance(rng, np.random.Generator):
        return rng
    try:
        if isinstance(rng, (bool, np.bool_, str)):
            raise TypeError
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise TypeError(f"rng must be a numpy.random.Generator, a seed or None, got {rng!r}") from None
