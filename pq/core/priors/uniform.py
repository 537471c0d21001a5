"""The uniform law."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pq.core.priors.arguments import real
from pq.core.priors.base import Prior, set_parameters
from pq.core.priors.kernel import MODERATE, Kernel, Row, inside
from pq.core.priors.numerics import TINY, Array, between, log_ratio, numbers_only


def _log_mass(lower: Array, upper: Array, low: float, high: float) -> Array:
    """Log mass under the uniform law on [low, high]."""
    start, stop = np.maximum(lower, low), np.minimum(upper, high)
    unit = 1.0 if np.isfinite(high - low) else 0.25  # a width beyond the largest float is measured in quarters
    width = unit * high - unit * low
    mass = (stop - start if unit == 1.0 else unit * stop - unit * start) / width
    out = np.log(np.fmax(mass, 0.0))
    redo = np.flatnonzero(~((mass <= 0.5) & (mass >= TINY)))
    redo = redo[stop[redo] > start[redo]]
    if redo.size:
        start, stop = start[redo], stop[redo]
        rest = ((unit * start - unit * low) + (unit * high - unit * stop)) / width
        small = log_ratio(stop, start, 1.0) - log_ratio(high, low, 1.0)
        out[redo] = numbers_only(np.where(mass[redo] < 0.5, small, np.log1p(-rest) + 0.0))
    return out


def _mass(low: float, high: float, a: float, b: float) -> float:
    width = min(b, high) - max(a, low)
    return width / (high - low) if width > 0.0 else 0.0


def _add_cells(low: float, high: float, weight: float, edges: Any, out: Any) -> None:
    """Only the cells that reach into the interval: a law of many bins is many of these."""
    first, stop = 0, out.size
    while first < stop:  # the first cell that ends above `low`
        middle = (first + stop) // 2
        if edges[middle + 1] > low:
            stop = middle
        else:
            first = middle + 1
    k = first
    while k < out.size and edges[k] < high:
        out[k] += weight * _mass(low, high, edges[k], edges[k + 1])
        k += 1


def _machine_log_mass(low: float, high: float, a: float, b: float) -> float:
    mass = _mass(low, high, a, b)
    if mass > 1e-280:
        return math.log(mass)
    return -math.inf if min(b, high) <= max(a, low) else math.nan


def _point(low: float, high: float, a: float, b: float, u: float) -> float:
    a, b = max(a, low), min(b, high)
    return inside(a + u * (b - a) if u < 0.5 else b - (1.0 - u) * (b - a), a, b)


@dataclass(frozen=True)
class Uniform(Prior, twin="uniform", kernel=Kernel(_mass, _machine_log_mass, _point, _add_cells)):
    """The uniform law on [low, high]: the prior of the original mechanism, for data known to lie in a bounded interval.

    low, high: finite, low < high, in the unit of the data. Raises `TypeError` or `ValueError` naming the argument.

    >>> Uniform(0, 100).log_mass(20, 30)
    -2.302585
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        set_parameters(self, low=real(self.low, "low"), high=real(self.high, "high"))
        if self.low >= self.high:
            raise ValueError(f"low must be below high, got {self.low} and {self.high}")

    @property
    def support(self) -> tuple[float, float]:
        return self.low, self.high

    @classmethod
    def _from_twin(cls, parameters: dict[str, float]) -> Prior | None:
        low, high = parameters["loc"], parameters["loc"] + parameters["scale"]
        return cls(low, high) if low < high < math.inf else None

    def _row(self) -> Row | None:
        low, high = self.low, self.high
        return (low, high) if low > -MODERATE and high < MODERATE and high - low > 1.0 / MODERATE else None

    def _log_mass(self, lower: Array, upper: Array) -> Array:
        return _log_mass(lower, upper, self.low, self.high)

    def _log_density(self, o: Array) -> Array:
        height = -float(log_ratio(self.high, self.low, 1.0))
        return np.where((o >= self.low) & (o <= self.high), height, -np.inf)

    def _quantile(self, lower: Array, upper: Array, u: Array, v: Array) -> Array:
        return between(np.maximum(lower, self.low), np.minimum(upper, self.high), u)
