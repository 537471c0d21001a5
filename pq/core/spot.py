"""A Gaussian law of two numbers, a place and a log width, as a grid of weighed nodes (Section 5.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from pq.core.arrays import read_only
from pq.core.scores import Array

NARROWEST = 7.0  # nats of width either way
LEAST_DEVIATION = 1e-7


@dataclass(frozen=True, eq=False)
class Spot:
    """A Gaussian law of a place and a log width: mean (2,), covariance (2, 2).

    >>> points, weights = Spot(np.array([1.0, 0.0]), np.diag([4.0, 1.0])).nodes((3, 3), 1.0)
    >>> points[0].tolist(), (points @ weights).tolist()
    ([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0], [1.0, 0.0])
    """

    mean: Array
    covariance: Array

    @cached_property
    def root(self) -> tuple[float, float, float]:
        """Entries of the covariance's lower root: of place, of both, of width."""
        place = max(math.sqrt(max(float(self.covariance[0, 0]), 0.0)), LEAST_DEVIATION)
        both = float(self.covariance[0, 1]) / place
        rest = float(self.covariance[1, 1]) - both * both  # infinite where a power of that size would raise
        return place, both, max(math.sqrt(max(rest, 0.0)), LEAST_DEVIATION)

    def nodes(self, counts: tuple[int, int], reach: float) -> tuple[Array, Array]:
        """A grid of places and log widths (2, k) within so many deviations, and their weights (k,) under this law."""
        (z, y), weights = _standard_nodes(counts, reach)
        place, both, width = self.root
        log_widths = np.clip(self.mean[1] + both * z + width * y, -NARROWEST, NARROWEST)
        return np.stack([self.mean[0] + place * z, log_widths]), weights

    def log_density(self, points: Array) -> Array:
        """Log density (k,) of places and log widths (2, k), but for a constant."""
        place, both, width = self.root
        z = (points[0] - self.mean[0]) / place
        y = (points[1] - self.mean[1] - both * z) / width
        return np.asarray(-0.5 * (z**2 + y**2))


@lru_cache(maxsize=8)
def _standard_nodes(counts: tuple[int, int], reach: float) -> tuple[Array, Array]:
    """Of two independent standard normal numbers."""
    first, second = (np.linspace(-reach, reach, count) for count in counts)
    z = np.stack([axis.ravel() for axis in np.meshgrid(first, second, indexing="ij")])
    weights = softmax(-0.5 * np.sum(z**2, axis=0))
    return read_only(z), read_only(weights)


def softmax(values: Array) -> Array:
    """Shares (k,) that are in proportion to the exponentials of values (k,).

    >>> softmax(np.array([1000.0, 1000.0])).tolist()
    [0.5, 0.5]
    """
    weights = np.exp(values - np.max(values))
    return np.asarray(weights / np.sum(weights))
