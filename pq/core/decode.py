"""From noisy counts of cells to a distribution function: post-processing, which costs no privacy (Section 3.1).

*Smooth*: the records of a cell are Poisson around the exponential of a log density f, relative to a law whose cells
have known masses, and f is a random walk of third order, `kappa |D^3 f|^2`. For each of some `kappa` the mode of f is
found by Fisher scoring on the law of a Gaussian plus Laplace noise, all at once, as one banded system; the evidence of
each (Laplace's method) weighs them. What is read off is the mean of the cell's own records given f and the noisy count,
not f: it is the column's distribution function that is asked for.

*Isotonic*: least squares on the running sums, which assumes nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pq.core.curves import MonotoneCurve
from pq.core.noise import DiscreteLaplace, IntArray
from pq.core.scores import Array

ORDER = 3
PENALTIES = np.exp(np.linspace(math.log(1e-1), math.log(1e5), 7))
ROUNDS = 16
CLOSE = 0.02  # records that what is read off would still move by, after which rounds end
RIDGE = 1e-4  # keeps f near its mean where neither counts nor neighbours say anything
LOWEST, HIGHEST = -60.0, 45.0  # of f
LONGEST_STEP = 6.0
LEAST_RECORDS = 1e-9
LEAST_LEVEL = 1e-9  # edges beyond the first of this or less, on either side, say nothing
LARGEST_COUNT = (
    1e7  # larger ones are decoded in units of more records: their noise hardly shows, and digits would be lost
)
LEAST_VARIANCE = 1e-2  # of noise; Laplace noise of the same variance stands for the discrete one


@dataclass(frozen=True, eq=False)
class DecodedDistribution:
    """The distribution function of a column, from released facts alone: any further quantile is free.

    edges: (c - 1,) between cells, not decreasing, in the unit of the data. records: (c,) expected in each, positive.
    support: ends that no value exceeds.
    """

    edges: Array
    records: Array
    support: tuple[float, float]

    @property
    def total(self) -> float:
        """Expected number of records."""
        return float(np.sum(self.records))

    @cached_property
    def _curve(self) -> MonotoneCurve:
        levels = np.cumsum(self.records)[:-1] / np.sum(self.records)
        below, above = np.searchsorted(levels, (LEAST_LEVEL, 1.0 - LEAST_LEVEL))
        inside = slice(max(below - 1, 0), above + 1)  # between the last edge that has nothing below and the first ...
        return MonotoneCurve(np.clip(levels[inside], LEAST_LEVEL, 1.0 - LEAST_LEVEL), self.edges[inside], self.support)

    def quantile(self, q: Array) -> Array:
        """Values (m,) at quantiles (m,) in [0, 1], not decreasing in them.

        >>> law = DecodedDistribution(np.array([1.0, 2.0, 3.0]), np.full(4, 25.0), (0.0, 4.0))
        >>> law.quantile(np.array([0.25, 0.5, 0.625]))
        array([1. , 2. , 2.5])
        """
        order = np.argsort(q, kind="stable")
        values = np.empty(len(q))
        values[order] = np.maximum.accumulate(self._curve.at(np.asarray(q, dtype=np.float64)[order]))
        return values


def isotonic_records(counts: IntArray) -> Array:
    """Records of each cell (B,), least squares on the running sums of noisy counts (B,); a little more than none.

    >>> isotonic_records(np.array([4, -2, 3])).round(6)
    array([3., 0., 2.])
    """
    import scipy  # late, as in pq.core.priors.numerics

    running = np.cumsum(np.asarray(counts, dtype=np.float64))
    fitted = np.maximum(scipy.optimize.isotonic_regression(running).x, 0.0)
    return np.maximum(np.diff(fitted, prepend=0.0), LEAST_RECORDS)


def smooth_records(counts: IntArray, noise: DiscreteLaplace, masses: Array) -> Array:
    """Expected records of each part of the cells, from noisy counts, if their law is smooth relative to a given one.

    counts: (B,) noisy, whole numbers of either sign. noise: its law. masses: (B, parts) of a law near the records', not
    negative, four parts or more in all; parts of no mass get no records.
    Returns (B, parts) positive and finite, for any counts.

    >>> from fractions import Fraction
    >>> smooth_records(np.full(8, 100), DiscreteLaplace(Fraction(1)), np.full((8, 1), 0.125)).ravel().round(1)
    array([100., 100., 100., 100., 100., 100., 100., 100.])
    """
    noisy = np.asarray(counts, dtype=np.float64)
    unit = max(1.0, float(np.max(np.abs(noisy))) / LARGEST_COUNT)
    rate = math.sqrt(2.0 / max(noise.variance / unit**2, LEAST_VARIANCE))
    with np.errstate(all="ignore"):
        return _Model(noisy / unit, rate, masses).expected() * unit


def count_likelihood(counts: Array, mean: Array, rate: float) -> tuple[Array, Array, Array]:
    """Score and information of the mean number of records of a cell, and the log density of its noisy count.

    counts: (..., c) noisy. mean: (..., c) positive. rate: of the Laplace noise. The noisy count less the mean is a
    Gaussian with the mean as its variance, plus Laplace noise; the score is the derivative of its log density, and by
    Tweedie's formula `mean (1 + score)` are the records to expect.

    >>> score, information, _ = count_likelihood(np.array([100.0]), np.array([100.0]), 1.0)
    >>> score.item(), round(1 / information.item(), 1)
    (0.0, 101.9)
    """
    import scipy  # late, as in pq.core.priors.numerics

    spread, rest = np.sqrt(mean), counts - mean
    above = scipy.special.log_ndtr(rest / spread - rate * spread) - rate * rest
    below = scipy.special.log_ndtr(-rest / spread - rate * spread) + rate * rest
    score = rate * np.tanh(0.5 * (above - below))
    log_density = np.logaddexp(above, below) + 0.5 * rate**2 * mean + math.log(0.5 * rate)
    ratio = rate * spread  # between pure Laplace noise (information rate^2) and pure Gaussian noise
    information = 1.0 / (mean + (1.0 + ratio / (1.0 + ratio)) / rate**2)
    return score, information, log_density


@dataclass(frozen=True, eq=False)
class _Model:
    """Noisy counts around a log density, for all penalties at once: f is (penalties, parts of all cells).

    rate: of the noise. masses: (cells, parts).
    """

    counts: Array
    rate: float
    masses: Array

    @property
    def shape(self) -> tuple[int, int, int]:
        return (len(PENALTIES), *self.masses.shape)

    @cached_property
    def kappa(self) -> Array:
        """(penalties, 1); cutting cells in parts does not change what a penalty means."""
        return PENALTIES[:, None] * self.masses.shape[1] ** (2.0 * ORDER - 1.0)

    @cached_property
    def start(self) -> float:
        return math.log(max(float(np.mean(self.counts)), 0.5) / self.masses.shape[1])

    @cached_property
    def first_guess(self) -> Array:
        """A log density that the rounds begin with: that of the counts, where they are above the noise."""
        seen = np.maximum(self.counts, max(math.sqrt(2.0) / self.rate, 0.5)) / self.masses.shape[1]
        return np.clip(np.log(np.repeat(seen, self.masses.shape[1])), LOWEST, HIGHEST)

    @cached_property
    def offsets(self) -> Array:
        """Masses (parts of all cells,) relative to their mean."""
        flat = np.maximum(self.masses.ravel(), 0.0)
        return flat / max(float(np.mean(flat)), 1e-300)

    @cached_property
    def bands(self) -> Array:
        """The upper bands of `kappa D'D` and the ridge, of all penalties one after another."""
        size, width = self.masses.size, max(ORDER, self.masses.shape[1] - 1)
        walk = np.zeros((width + 1, size))
        difference = [(-1.0) ** i * math.comb(ORDER, i) for i in range(ORDER + 1)]
        for j, one in enumerate(difference):
            for i, other in enumerate(difference[: j + 1]):
                walk[width - (j - i), j : size - ORDER + j] += one * other
        bands = self.kappa * walk[:, None, :]
        bands[width] += RIDGE
        return bands.reshape(width + 1, -1)

    def expected(self) -> Array:
        """Mean over the penalties, by their evidence, of the records given the mode of f and the noisy counts."""
        import scipy  # late, as in pq.core.priors.numerics

        f = np.tile(self.first_guess, (len(PENALTIES), 1))
        for _ in range(ROUNDS):
            part, score, information, log_likelihood = self.likelihood(f)
            factor, walked = self._factor(part, information), self.kappa * self._walk(f) + RIDGE * (f - self.start)
            weights = self._weights(f, walked, log_likelihood, factor)
            step = scipy.linalg.lapack.dpbtrs(factor, (part * score - walked).ravel())[0].reshape(f.shape)
            longest = np.max(np.abs(step), axis=1)
            moved = np.max(np.abs(step) * part * information, axis=1) * 2.0 / self.rate**2
            if float(weights @ moved) < CLOSE:
                break
            f = np.clip(f + step * np.minimum(1.0, LONGEST_STEP / np.maximum(longest, 1e-9))[:, None], LOWEST, HIGHEST)
        records = weights @ np.maximum(part * (1.0 + score), 0.0)
        return np.maximum(np.nan_to_num(records), LEAST_RECORDS).reshape(self.masses.shape)

    def _weights(self, f: Array, walked: Array, log_likelihood: Array, factor: Array) -> Array:
        """Shares (penalties,) of the penalties by their evidence at f."""
        penalty = np.sum((f - self.start) * walked, axis=1)  # D annuls the constant
        half_log_determinant = np.sum(np.log(factor[-1].reshape(f.shape)), axis=1)
        degrees = max(self.masses.size - ORDER, 0)
        evidence = log_likelihood - 0.5 * penalty + 0.5 * degrees * np.log(self.kappa[:, 0]) - half_log_determinant
        evidence = np.nan_to_num(evidence, nan=-1e300, neginf=-1e300)
        weights = np.exp(evidence - np.max(evidence))
        return np.asarray(weights / np.sum(weights))

    def likelihood(self, f: Array) -> tuple[Array, Array, Array, Array]:
        """Expected records of each part, the score and the information of the cell's mean, the log likelihood."""
        part = np.exp(f) * self.offsets
        mean = np.maximum(part.reshape(self.shape).sum(axis=2), 1e-30)
        score, information, log_density = count_likelihood(self.counts, mean, self.rate)
        parts = self.masses.shape[1]
        return part, np.repeat(score, parts, 1), np.repeat(information, parts, 1), np.sum(log_density, axis=1)

    def _walk(self, f: Array) -> Array:
        """D'D f."""
        padded = np.zeros((len(f), f.shape[1] + ORDER))
        padded[:, ORDER:-ORDER] = np.diff(f, ORDER, axis=1)
        return np.diff(padded, ORDER, axis=1) * (-1.0) ** ORDER

    def _factor(self, part: Array, information: Array) -> Array:
        """Cholesky factor of the curvature: the penalty and, within a cell, the products of its parts."""
        import scipy  # late, as in pq.core.priors.numerics

        bands, parts = self.bands.copy(), self.masses.shape[1]
        weighted = information * part
        bands[-1] += (weighted * part).ravel()
        for d in range(1, parts):
            product = np.zeros_like(part)
            product[:, d:] = weighted[:, d:] * part[:, :-d]
            product[:, np.arange(part.shape[1]) % parts < d] = 0.0
            bands[-1 - d] += product.ravel()
        factor, failed = scipy.linalg.lapack.dpbtrf(bands)  # scipy's own wrappers take as long as LAPACK
        if failed:
            raise np.linalg.LinAlgError("the curvature is not positive definite")
        return np.asarray(factor)
