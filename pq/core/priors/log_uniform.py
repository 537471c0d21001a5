"""The log-uniform law over the floats, for those who know nothing of the data (Section 3.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pq.core.priors.base import Prior
from pq.core.priors.differing import differing
from pq.core.priors.kernel import Kernel, Row, inside
from pq.core.priors.numerics import LARGEST, LOG_2, Array, log_of_complement

LEAST = 2.0**-1022  # the least float with all its digits: nearer to zero there is no mass
SIDE = 2046.0 * LOG_2  # nats from it to the largest one
HEIGHT = 0.5 / SIDE  # mass of a nat, on either side of zero
CLOSE = 0.25  # nats


def _nats(a: Array, b: Array) -> Array:
    """log(b / a) to all digits; none for an end below the least float, or for b <= a."""
    a, b = np.clip(a, LEAST, LARGEST), np.clip(b, LEAST, LARGEST)
    growth = np.maximum(b - a, 0.0) / a
    return np.where(np.isinf(growth), np.log(b) - np.log(a), np.log1p(growth))


def _one_nats(a: float, b: float) -> float:
    a, b = min(max(a, LEAST), LARGEST), min(max(b, LEAST), LARGEST)
    growth = (b - a) / a
    return 0.0 if b <= a else (math.log1p(growth) if growth < math.inf else math.log(b) - math.log(a))


def _moved(end: Array, nats: Array) -> Array:
    """An end times exp(nats), to all digits near it and far from it."""
    return np.where(np.abs(nats) < CLOSE, end + end * np.expm1(nats), end * np.exp(0.5 * nats) * np.exp(0.5 * nats))


def _one_moved(end: float, nats: float) -> float:
    if abs(nats) < CLOSE:
        return end + end * math.expm1(nats)
    return end * math.exp(0.5 * nats) * math.exp(0.5 * nats)


def _mass(first: float, second: float, a: float, b: float) -> float:
    nats = _one_nats(a, b) if b > 0.0 else 0.0
    return HEIGHT * (nats + _one_nats(-b, -a) if a < 0.0 else nats)


def _machine_log_mass(first: float, second: float, a: float, b: float) -> float:
    mass = _mass(first, second, a, b)
    return math.log(mass) if mass > 0.0 else -math.inf


def _point(first: float, second: float, a: float, b: float, u: float) -> float:
    below, above = _one_nats(-b, -a), _one_nats(a, b)
    if above == 0.0 and below == 0.0:
        return math.nan
    a, b = min(max(a, -LARGEST), LARGEST), min(max(b, -LARGEST), LARGEST)
    nats = below + above
    near_low = u < 0.5 if below == 0.0 or above == 0.0 else u * nats < below
    if near_low:
        low = max(a, LEAST) if below == 0.0 else min(a, -LEAST)
        return inside(_one_moved(low, u * nats if low > 0.0 else -u * nats), a, b)
    high = min(b, -LEAST) if above == 0.0 else max(b, LEAST)
    rest = (1.0 - u) * nats
    return inside(_one_moved(high, -rest if high > 0.0 else rest), a, b)


@dataclass(frozen=True)
class LogUniform(Prior, twin=None, kernel=Kernel(_mass, _machine_log_mass, _point)):
    """The log-uniform law on all floats of either sign: each power of two alike, for those who know nothing.

    It has no parameters and no unit: an interval and its thousandfold have the same mass. That of all numbers within a
    tenth of a given one is exp(-9.6), whatever the number.

    >>> LogUniform().log_mass(3.0, 6.0) == LogUniform().log_mass(-6e9, -3e9), LogUniform().log_mass(0, math.inf)
    (True, -0.693147)
    >>> LogUniform().log_mass([0.9, 9e9], [1.1, 1.1e10]).round(1)
    array([-9.6, -9.6])
    """

    def __post_init__(self) -> None:
        """There is nothing to check."""

    @property
    def support(self) -> tuple[float, float]:
        return -LARGEST, LARGEST

    def _cores(self) -> list[tuple[float, float]]:
        return [(-LARGEST, -LEAST), (LEAST, LARGEST)]

    def _row(self) -> Row | None:
        return 0.0, 0.0

    def _log_mass(self, lower: Array, upper: Array) -> Array:
        mass = HEIGHT * (_nats(lower, upper) + _nats(-upper, -lower))
        start, end = np.full(len(mass), LEAST), np.full(len(mass), LARGEST)
        rest = HEIGHT * (_nats(upper, end) + _nats(-lower, end) + _nats(start, lower) + _nats(start, -upper))
        return log_of_complement(rest, mass)

    def _log_density(self, o: Array) -> Array:
        size = np.abs(o)
        return np.where((size >= LEAST) & (size <= LARGEST), math.log(HEIGHT) - np.log(size), -np.inf)

    def _quantile(self, lower: Array, upper: Array, u: Array, v: Array) -> Array:
        below, above = _nats(-upper, -lower), _nats(lower, upper)
        nats = below + above
        low = np.where(below > 0.0, np.clip(lower, -LARGEST, -LEAST), np.clip(lower, LEAST, LARGEST))
        high = np.where(above > 0.0, np.clip(upper, LEAST, LARGEST), np.clip(upper, -LARGEST, -LEAST))
        from_low = _moved(low, np.sign(low) * u * nats)
        from_high = _moved(high, -np.sign(high) * v * nats)
        one_sign = (below == 0.0) | (above == 0.0)
        middle = np.where(one_sign, _moved(low, np.sign(low) * 0.5 * nats), 0.0)
        near_low = np.where(one_sign, u < 0.5, u * nats < below)
        return np.where(near_low, np.minimum(from_low, middle), np.maximum(from_high, middle))


def knows_scale(priors: Sequence[Prior]) -> bool:
    """Whether priors say in which unit the data are; a part that is log-uniform does not.

    >>> from pq.core.priors.uniform import Uniform
    >>> knows_scale([Uniform(0, 1)]), knows_scale([Uniform(0, 1).mix(LogUniform(), 0.1)])
    (True, False)
    """
    return not any(isinstance(part, LogUniform) for prior in differing(priors) for _, part in prior._components())
