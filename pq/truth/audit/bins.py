"""Where the tokens of an audit may be, and a prior with fast masses, of which it asks for millions (Section 3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pq.core.grid import from_units, to_units
from pq.core.priors import PiecewiseConstant, Prior
from pq.private.columns.door import Array


class UnitBins(PiecewiseConstant):
    """A piecewise constant prior with bins of width one from `start` on, whose masses come from a table: fast.

    >>> unit_bins(0.0, [3.0, 1.0]).log_mass(0.5, 1.5) == PiecewiseConstant([0, 1, 2], [3, 1]).log_mass(0.5, 1.5)
    True
    """

    @cached_property
    def _between(self) -> Array:
        """(k + 1, k + 1) sums of the weights of bins i..j-1, each added up from small parts only."""
        weights = np.array(self.weights)
        table = np.zeros((len(weights) + 1, len(weights) + 1))
        for i in range(len(weights)):
            table[i, i + 1 :] = np.cumsum(weights[i:])
        return table

    def _log_mass(self, lower: Array, upper: Array) -> Array:
        count, start = len(self.weights), self.edges[0]
        weights = self._weights
        low, high = np.clip(lower - start, 0.0, count), np.clip(upper - start, 0.0, count)
        first, last = np.ceil(low), np.floor(high)
        i, j = first.astype(np.intp), last.astype(np.intp)
        mass = self._between[np.minimum(i, j), j] + (first - low) * weights[i] + (high - last) * weights[j + 1]
        inner = first > last  # within one bin
        if inner.any():
            mass[inner] = (np.maximum(high - low, 0.0) * weights[j + 1])[inner]
        return np.log(np.where(high > low, mass, 0.0))

    @cached_property
    def _weights(self) -> Array:
        """Weights of the bins that end at 0, 1, ..., k and one more."""
        return np.array([0.0, *self.weights, 0.0])


def unit_bins(start: float, weights: Sequence[float]) -> UnitBins:
    """The prior with bins of width one from `start` on and these weights."""
    return UnitBins(tuple(start + k for k in range(len(weights) + 1)), tuple(weights))


BINS = 64


def shapes(start: float, slope: float, rng: np.random.Generator) -> dict[str, UnitBins]:
    """Priors by name on 64 bins of width one from `start` on, whose weights change by `slope` nats a bin.

    A mechanism loses most if nearly all of the prior's mass is on one side of its output and of the records. So these
    have theirs at an end, at a place near one, or at both ends.
    """
    j = np.arange(float(BINS))
    logs = {
        "up": j,
        "down": -j,
        "peak": -np.abs(j - 46.0),
        "valley": np.where(j < 8.0, 5.5 * (8.0 - j), j - 8.0),  # the left wins once a few outputs bound the right
    }
    named = {name: slope * log for name, log in logs.items()}
    named["rough"] = slope * 5.0 * rng.normal(size=BINS)
    return {name: unit_bins(start, np.exp(log - log.max()).tolist()) for name, log in named.items()}


@dataclass(frozen=True)
class Line:
    """Where the tokens of a search may be: `place` turns shares in [0, 1) into places, monotone; `scale` is a typical
    distance.

    step: if given, all tokens are multiples of it.
    """

    place: Callable[[Array], Array]
    scale: float
    step: Any = None

    @classmethod
    def along(cls, prior: Prior, step: Any = None) -> Line:
        """Places that crowd towards both ends of a prior's support, by equal steps of log odds."""

        def place(share: Array) -> Array:
            odds = np.clip(1.0 / (1.0 + np.exp(-35.0 * (2.0 * share - 1.0))), 0.0, 1.0 - 2.0**-53)
            return np.asarray(prior.quantile_between(-math.inf, math.inf, odds))

        quartiles = prior.quantile_between(-math.inf, math.inf, [0.25, 0.75])
        return cls(place, float(quartiles[1] - quartiles[0]), step)

    @classmethod
    def between(cls, low: float, high: float, scale: float = 1.0, step: Any = None) -> Line:
        """Places at equal steps."""
        return cls(lambda share: low + share * (high - low), scale, step)

    def snap(self, values: Array) -> Array:
        """Tokens as they may be: on the grid if there is one; +inf, no token, stays."""
        if self.step is None:
            return values
        return np.asarray(from_units(np.rint(to_units(values, self.step)), self.step))
