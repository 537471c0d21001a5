"""Made-up data: one Gaussian column, and the stationary sequence "Synthetic" (sec:online-details)."""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import SupportsIndex, overload

import numpy as np

from pq.datasets.table import Array, DatasetSequence, frozen

BLOCK = 256  # data sets that are drawn together, from one stream of their own


def _whole(name: str, value: SupportsIndex, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {value!r}") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}")
    return number


def _generator(rng: np.random.Generator) -> np.random.Generator:
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}")
    return rng


def gaussian(n: int, rng: np.random.Generator, loc: float = 0.0, scale: float = 1.0) -> Array:
    """A column of independent normal records (Section 5, public-private release).

    n: records, at least 0.
    rng: the source of randomness. A fixed seed is for tests and papers.
    loc, scale: mean and standard deviation; scale is positive.

    Returns (n,) numbers in the order drawn. Raises `TypeError` or `ValueError` naming `n`, `rng`, `loc` or `scale`.

    >>> gaussian(3, np.random.default_rng(0), loc=2.0).shape
    (3,)
    """
    if not math.isfinite(loc):
        raise ValueError(f"loc must be finite, got {loc!r}")
    if not (math.isfinite(scale) and scale > 0):
        raise ValueError(f"scale must be positive and finite, got {scale!r}")
    return _generator(rng).normal(loc, scale, _whole("n", n, 0))


@dataclass(frozen=True)
class _Recipe:
    """What it takes to draw the data sets of any block, again and again the same."""

    centers: Array  # (T,) <a, f_t>
    offsets: Array  # (m + 2,) b, ascending
    base: int  # records in each interval before the Poisson noise
    noise: float
    streams: tuple[np.random.Generator, ...]

    def block(self, index: int) -> list[Array]:
        rng = copy.deepcopy(self.streams[index])  # the stored stream stays at its start
        centers = self.centers[index * BLOCK : (index + 1) * BLOCK]
        left, width = self.offsets[:-1], np.diff(self.offsets)
        counts = self.base + rng.poisson(self.noise, size=(len(centers), len(left)))
        interval = np.repeat(np.tile(np.arange(len(left)), len(centers)), counts.ravel())
        sizes = counts.sum(axis=1)
        records = np.repeat(centers, sizes) + left[interval] + width[interval] * rng.random(len(interval))
        datasets = np.split(records, np.cumsum(sizes)[:-1])
        for dataset in datasets:
            dataset.sort()
            dataset.setflags(write=False)
        return datasets


class LazyDatasets(Sequence[Array]):
    """The data sets of a recipe, drawn a block at a time when they are asked for; only the latest block is kept."""

    def __init__(self, recipe: _Recipe) -> None:
        self._recipe = recipe
        self._latest: tuple[int, list[Array]] = (-1, [])

    def __len__(self) -> int:
        return len(self._recipe.centers)

    @overload
    def __getitem__(self, index: int) -> Array: ...

    @overload
    def __getitem__(self, index: slice) -> list[Array]: ...

    def __getitem__(self, index: int | slice) -> Array | list[Array]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        block, place = divmod(range(len(self))[index], BLOCK)
        if self._latest[0] != block:
            self._latest = (block, self._recipe.block(block))
        return self._latest[1][place]

    def __iter__(self) -> Iterator[Array]:
        for block in range(len(self._recipe.streams)):
            yield from self._recipe.block(block)


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticSequence(DatasetSequence):
    """A `DatasetSequence` whose quantiles are known: on day t, quantile i is `features[t] @ weights + offsets[i]`.

    `weights` is the paper's a, of shape (d,), and `offsets` the inner entries of its sorted b, of shape (m,). They are
    facts about how the data were made, for evaluation only.
    """

    weights: Array = field(default_factory=lambda: np.zeros(0))
    offsets: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def truth(self) -> Array:
        """The quantiles i / (m + 1) of each day's distribution without the Poisson noise, shape (T, m)."""
        return (self.features @ self.weights)[:, None] + self.offsets


def synthetic(
    steps: int = 2500,
    *,
    rng: np.random.Generator,
    n: int = 100,
    quantiles: int = 9,
    dimension: int = 10,
    noise: float = 0.0,
) -> SyntheticSequence:
    """The paper's Synthetic task: quantiles are linear functions of public Gaussian features (sec:online-details).

    A vector a of `dimension` standard normal numbers and a sorted vector b of `quantiles` + 2 are drawn once. On each
    day the features f are standard normal, and into each interval from <a, f> + b_i to <a, f> + b_{i+1} fall
    floor(n / (quantiles + 1)) uniform records, plus a Poisson number of them where there is noise, drawn anew for each
    interval and day. Without noise the ends of the intervals are quantiles of the data.

    The paper takes 100,000 steps without noise and 2,500 with `noise=5`. Data sets are drawn when they are asked for,
    in blocks that each have a stream spawned from `rng`: iterate, or index in any order, and the same data come again.

    steps: days T, at least 0.
    rng: the source of randomness. A fixed seed is for tests and papers.
    n: records a day before rounding down and noise, at least 0.
    quantiles: m, at least 1, for the quantiles i / (m + 1).
    dimension: features d, at least 1.
    noise: mean of the Poisson number, at least 0.

    Returns a `SyntheticSequence`, with `weights`, `offsets` and `truth` beside the data sets and features. Raises
    `TypeError` or `ValueError` naming the argument.

    >>> days = synthetic(100_000, rng=np.random.default_rng(0))
    >>> len(days), days.features.shape, days.datasets[99_999].shape, days.truth.shape
    (100000, (100000, 10), (100,), (100000, 9))
    >>> int(np.sum(days.datasets[7] < days.truth[7, 2]))  # the third of nine quantiles
    30
    """
    steps, n = _whole("steps", steps, 0), _whole("n", n, 0)
    quantiles, dimension = _whole("quantiles", quantiles, 1), _whole("dimension", dimension, 1)
    if not (math.isfinite(noise) and noise >= 0):
        raise ValueError(f"noise must be at least 0 and finite, got {noise!r}")
    start, *streams = _generator(rng).spawn(1 + -(-steps // BLOCK))
    weights, offsets = start.standard_normal(dimension), np.sort(start.standard_normal(quantiles + 2))
    features = start.standard_normal((steps, dimension))
    recipe = _Recipe(features @ weights, offsets, n // (quantiles + 1), float(noise), tuple(streams))
    return SyntheticSequence(
        range(steps),
        LazyDatasets(recipe),
        features,
        tuple(f"gaussian_{i}" for i in range(dimension)),
        name=f"synthetic, noise {noise:g}",
        provenance="drawn at random, as in the paper's Synthetic task",
        licence="none needed",
        weights=frozen(weights),
        offsets=frozen(offsets[1:-1]),
    )
