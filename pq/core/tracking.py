"""A distribution that moves from day to day, tracked from noisy counts of cells alone (Section 5.3).

A record of a day with public features f lies at `loc + scale (<w, f> + a + e^(<u, f> + b) z)`. The law of z is that of
Student with two degrees of freedom, of whose `SHAPES` cells of equal mass each is weighed by its share of e^s: a log
density. w and u say how features move and widen the law, a and b are what a single day does besides, n records are
expected. *Beliefs* are a Gaussian law of (w, u, a, b, n, s).

*Ahead*: before a day beliefs widen, since all may have drifted. *After* it they are updated by the likelihood of the
noisy counts, whose law is known exactly up to the Gaussian that stands for Poisson's: first of the two numbers that
the day's place and width are, on a grid, then of all at once, by Kalman's equations for counts that are made linear
around what is then known (their means over the nodes of a Gaussian, so that a vague belief is not taken for a precise
one). If beliefs that are `JUMPS` vaguer explain the counts `JUMP_ODDS` times as well, in the mean over them, the series
has broken and place and width are believed so vaguely again.

All of it is a function of public facts and of released counts. A likelihood that is off costs accuracy, never privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pq.core.curves import LEVELS, interpolated
from pq.core.decode import DecodedDistribution, count_likelihood
from pq.core.noise import DiscreteLaplace, IntArray
from pq.core.priors.numerics import LARGEST
from pq.core.scores import Array
from pq.core.spot import NARROWEST, Spot, softmax

SHAPES = 64  # cells of the log density
# Standard deviations before the first day, in guessed scales and nats: of slopes and constants of w and u, of shapes.
SLOPES, CONSTANTS = (1.0, 0.2), (2.0, 1.0)
SHAPE, SHAPE_REACH = 1.0, 0.3  # log densities differ by so much, over such a part of all records
# What a day changes: in present widths and nats.
SLOPE_DRIFTS, CONSTANT_DRIFTS, DAY_EFFECTS = (0.003, 0.002), (0.02, 0.02), (0.1, 0.1)
SIZE_DRIFT = 0.2  # of the number of records
SHAPE_DRIFT, DRIFT_SIGNAL = 0.12, 10.0  # a day of so much signal or more may change the shape by so much
JUMP_ODDS, JUMPS = 1e4, (30.0, 2.0)  # widths and nats that a broken series moves by
GRID, REACH = (15, 7), 3.0  # nodes of place and width, within so many standard deviations
NODES, NODES_REACH = (5, 5), 2.0  # around which counts are made linear
TABLE_NODES, TABLE_REACH = (9, 5), 2.4
ROUNDS = 2
LEAST_RECORDS, FEWEST, MOST = 1e-3, 5.0, 1e9  # in a cell; of all that may be believed
HIGHEST = 8.0  # of a log density
EVEN = np.concatenate([[-1.0 + 2e-4], np.arange(1, 32) / 16 - 1.0, [1.0 - 2e-4]])
QUANTILES = EVEN * np.sqrt(2.0 / (1.0 - EVEN**2))  # of Student's law, of levels 1/32 apart


@dataclass(frozen=True, eq=False)
class Beliefs:
    """A Gaussian law of (w, u, a, b, n, s): mean (D,), covariance (D, D)."""

    mean: Array
    covariance: Array


@dataclass(frozen=True)
class Tracker:
    """What is fixed before the first day.

    loc, scale: guesses of where the records lie and how wide, in the unit of the data. dimension: number of features
    beside the constant. size: guess of the number of records.

    >>> tracker = Tracker(0.0, 1.0, 0, 1000.0)
    >>> bool(abs(tracker.ahead(tracker.start(), np.ones(1), 1.0).table()[511]) < 1e-9)
    True
    """

    loc: float
    scale: float
    dimension: int
    size: float

    @cached_property
    def shape_covariance(self) -> Array:
        """(SHAPES, SHAPES) of the log density: a random walk without steps of its own, that may have jumps."""
        apart = np.abs(np.subtract.outer(np.arange(SHAPES), np.arange(SHAPES))) / SHAPES
        return np.asarray(SHAPE**2 * np.exp(-apart / SHAPE_REACH))

    @property
    def constants(self) -> tuple[int, int]:
        """Where in the beliefs the constant parts of w and of u stand."""
        return self.dimension, 2 * self.dimension + 1

    @property
    def effects(self) -> tuple[int, int]:
        """Where a and b stand; n follows, and then the log density."""
        return 2 * self.dimension + 2, 2 * self.dimension + 3

    @property
    def size_at(self) -> int:
        return 2 * self.dimension + 4

    @property
    def shapes(self) -> slice:
        return slice(2 * self.dimension + 5, 2 * self.dimension + 5 + SHAPES)

    def variances(self, slopes: tuple[float, float], constants: tuple[float, float], width: float) -> Array:
        """Variances (2 d + 2,) of w and u with these deviations, those of w in so many guessed scales."""
        each = [[s] * self.dimension + [c] for s, c in zip(slopes, constants, strict=True)]
        return np.square(np.concatenate([width * np.array(each[0]), each[1]]))

    def start(self) -> Beliefs:
        """Before the first day."""
        mean = np.zeros(self.shapes.stop)
        mean[self.size_at] = size = min(self.size, MOST)
        covariance = np.diag(np.zeros(len(mean)))
        first = np.arange(2 * self.dimension + 2)
        covariance[first, first] = self.variances(SLOPES, CONSTANTS, 1.0)
        covariance[self.size_at, self.size_at] = size**2
        covariance[self.shapes, self.shapes] = self.shape_covariance
        return Beliefs(mean, covariance)

    def ahead(self, beliefs: Beliefs, known: Array, rate: float) -> Ahead:
        """What is believed of the next day: known (d + 1,) are its features and a constant one, rate that of the noise
        on its counts. Beliefs of yesterday stay as they are."""
        mean, covariance = beliefs.mean.copy(), beliefs.covariance.copy()
        with np.errstate(all="ignore"):
            constant = self.constants[1]
            width = bounded_exp(mean[self.dimension + 1 : constant + 1] @ known)
            first = np.arange(constant + 1)
            covariance[first, first] += self.variances(SLOPE_DRIFTS, CONSTANT_DRIFTS, width)
            for place, deviation in zip(self.effects, (DAY_EFFECTS[0] * width, DAY_EFFECTS[1]), strict=True):
                mean[place] = covariance[place, :] = covariance[:, place] = 0.0
                covariance[place, place] = deviation**2
            size = float(mean[self.size_at])
            covariance[self.size_at, self.size_at] += (SIZE_DRIFT * size) ** 2
            signal = rate * math.sqrt(max(size, FEWEST))
            drift = SHAPE_DRIFT * signal / (DRIFT_SIGNAL + signal)
            covariance[self.shapes, self.shapes] += drift**2 * self.shape_covariance
        return Ahead(self, Beliefs(mean, covariance), np.asarray(known, dtype=np.float64), rate)


@dataclass(frozen=True, eq=False)
class Ahead:
    """The beliefs of a day before its counts, and what they make of these."""

    tracker: Tracker
    beliefs: Beliefs
    known: Array
    rate: float
    _last: dict[bytes, Beliefs] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> float:
        """Records to expect, at least `FEWEST`."""
        return max(float(self.beliefs.mean[self.tracker.size_at]), FEWEST)

    @cached_property
    def is_known(self) -> bool:
        """Whether place and width of the day are numbers that floats can tell in the unit of the data: guesses and
        features of any size are public and no error, but what lies beyond says nothing of a day."""
        with np.errstate(all="ignore"):
            spot = self._spot(self.beliefs)
            places, shares = self._law(self.beliefs, spot, NODES, NODES_REACH)
            ends = np.concatenate([spot.mean, spot.covariance.ravel(), shares, places])
            return bool(np.isfinite(ends).all() and places[0] < places[-1])

    @cached_property
    def directions(self) -> Array:
        """(2, D): place and log width of the day are these, times what beliefs are about."""
        out, d = np.zeros((2, len(self.beliefs.mean))), self.tracker.dimension
        out[0, : d + 1], out[1, d + 1 : 2 * d + 2] = self.known, self.known
        out[0, self.tracker.effects[0]] = out[1, self.tracker.effects[1]] = 1.0
        return out

    def table(self) -> Array:
        """Quantiles (1023,) of the day's law at `pq.core.curves.LEVELS`, vague as it is."""
        with np.errstate(all="ignore"):
            places, shares = self._law(self.beliefs, self._spot(self.beliefs), TABLE_NODES, TABLE_REACH)
            return np.clip(np.nan_to_num(interpolated(LEVELS, shares, places)), -LARGEST, LARGEST)

    def after(self, edges: Array, counts: IntArray) -> Beliefs:
        """Beliefs given noisy counts (c,) of the cells between edges (c - 1,); those before where they tell nothing.

        The counts of the last call are remembered: they are read and learnt from, one after the other.
        """
        key = edges.tobytes() + np.asarray(counts, dtype=np.int64).tobytes()
        if key not in self._last:
            self._last.clear()
            with np.errstate(all="ignore"):
                self._last[key] = self._updated(edges, np.asarray(counts, dtype=np.float64))
        return self._last[key]

    def read(self, edges: Array, counts: IntArray) -> DecodedDistribution:
        """The distribution function of the day's records: the law believed after the counts, each cell of it weighed by
        the records to expect there given its own noisy count."""
        beliefs = self.after(edges, counts)
        with np.errstate(all="ignore"):
            spot, size = self._spot(beliefs), max(float(beliefs.mean[self.tracker.size_at]), FEWEST)
            places, _ = self._law(beliefs, spot, NODES, NODES_REACH)
            places = np.unique(np.concatenate([places[:-1:2], places[-1:], edges]))
            places = places[np.isfinite(places)]
            shares = self._mean_shares(places, beliefs, spot)
            means = np.maximum(size * np.diff(self._mean_shares(edges, beliefs, spot), prepend=0.0, append=1.0), 1e-3)
            ratio = np.maximum(1.0 + count_likelihood(np.asarray(counts, np.float64), means, self.rate)[0], 0.0)
            cells = np.append(np.searchsorted(edges, places), len(edges))
            records = size * np.diff(shares, prepend=0.0, append=1.0) * ratio[cells]
        records = np.clip(np.nan_to_num(records), 1e-9, 2.0**53)
        return DecodedDistribution(places, records, (-math.inf, math.inf))

    # --- the law of the day -------------------------------------------------------------------------------------------

    def _spot(self, beliefs: Beliefs) -> Spot:
        """What is believed of the day's place and log width."""
        lines = self.directions
        return Spot(lines @ beliefs.mean, lines @ beliefs.covariance @ lines.T)

    def _levels(self, edges: Array, points: Array) -> tuple[Array, Array]:
        """Where edges (c,) lie for each place and width (2, k): z (k, c), and Student's level times SHAPES."""
        z = ((edges - self.tracker.loc) / self.tracker.scale - points[0][:, None]) * np.exp(-points[1])[:, None]
        z = np.clip(z, -1e100, 1e100)
        return z, SHAPES * (0.5 + 0.5 * z / np.hypot(math.sqrt(2.0), z))

    def _shares(self, edges: Array, points: Array, shape: Array) -> Array:
        """Shares (k, c) of records up to each edge, for each place and width (2, k)."""
        return np.interp(self._levels(edges, points)[1], np.arange(SHAPES + 1), np.append(0.0, np.cumsum(shape)))

    def _mean_shares(self, edges: Array, beliefs: Beliefs, spot: Spot) -> Array:
        points, weights = spot.nodes(NODES, NODES_REACH)
        return weights @ self._shares(edges, points, softmax(beliefs.mean[self.tracker.shapes]))

    def _law(self, beliefs: Beliefs, spot: Spot, nodes: tuple[int, int], reach: float) -> tuple[Array, Array]:
        """Places (257,), increasing, and shares of the records up to each, for what is believed of place and width."""
        points, weights = spot.nodes(nodes, reach)
        every = np.sort((points[0][:, None] + np.exp(points[1])[:, None] * QUANTILES).ravel())
        places = self.tracker.loc + self.tracker.scale * every[np.linspace(0, every.size - 1, 257).astype(np.int64)]
        return places, weights @ self._shares(places, points, softmax(beliefs.mean[self.tracker.shapes]))

    # --- learning -----------------------------------------------------------------------------------------------------

    def _updated(self, edges: Array, counts: Array) -> Beliefs:
        """Beliefs after counts."""
        beliefs, spot, size = self._searched(edges, counts)
        mean, covariance, lines = beliefs.mean, beliefs.covariance, self.directions
        own = lines @ covariance @ lines.T + 1e-12 * np.eye(2)
        try:
            now = mean + covariance @ lines.T @ np.linalg.solve(own, spot.mean - lines @ mean)
            now[self.tracker.size_at] = size
            for _ in range(ROUNDS):
                slope, target, variances = self._linear(edges, counts, Beliefs(now, covariance), spot)
                crossed = covariance @ slope.T
                inner = slope @ crossed + np.diag(variances)
                gain = np.linalg.solve(inner, np.column_stack([target + slope @ (now - mean), crossed.T]))
                now, left = mean + crossed @ gain[:, 0], covariance - crossed @ gain[:, 1:]
                now[self.tracker.shapes] = np.clip(now[self.tracker.shapes], -HIGHEST, HIGHEST)
                left = 0.5 * (left + left.T)
                spot = Spot(lines @ now, lines @ left @ lines.T + 1e-10 * np.eye(2))
        except np.linalg.LinAlgError:
            return self.beliefs
        now[self.tracker.size_at] = min(max(float(now[self.tracker.size_at]), FEWEST), MOST)
        return Beliefs(now, left) if np.isfinite(now).all() and np.isfinite(left).all() else self.beliefs

    def _searched(self, edges: Array, counts: Array) -> tuple[Beliefs, Spot, float]:
        """Beliefs, made vague if the series broke; place and width of the day, by their likelihood on a grid, twice;
        and the number of records."""
        beliefs = self.beliefs
        variance = float(beliefs.covariance[self.tracker.size_at, self.tracker.size_at])
        trust = variance / (variance + 2.0 * len(counts) / self.rate**2 + self.size)
        size = max(self.size + trust * (float(np.sum(counts)) - self.size), 1.0)
        prior = self._spot(beliefs)
        far = np.array([JUMPS[0] * bounded_exp(prior.mean[1]), JUMPS[1]])
        wide = Spot(prior.mean, prior.covariance + np.diag(far**2))
        here, best = self._evidence(edges, counts, size, prior), self._best(counts)
        if best - here > math.log(JUMP_ODDS) and self._evidence(edges, counts, size, wide) - here > math.log(JUMP_ODDS):
            constants, covariance = list(self.tracker.constants), beliefs.covariance.copy()
            covariance[constants, constants] += far**2
            beliefs, prior = Beliefs(beliefs.mean, covariance), wide
        spot = prior
        for finest in (1.0, 0.3):
            points, _ = spot.nodes(GRID, REACH)
            log_weights = self._fit(edges, counts, size, points) + prior.log_density(points)
            weights = softmax(log_weights)
            mean = points @ weights
            rest = points - mean[:, None]
            least = np.diag([(0.02 * bounded_exp(mean[1])) ** 2, 0.02**2]) + 1e-4 * prior.covariance
            spot = Spot(mean, (weights * rest) @ rest.T + finest * least)
        return beliefs, spot, size

    def _fit(self, edges: Array, counts: Array, size: float, points: Array) -> Array:
        """Log likelihood (k,) of counts for each place and width (2, k)."""
        shape = softmax(self.beliefs.mean[self.tracker.shapes])
        shares = np.diff(self._shares(edges, points, shape), prepend=0.0, append=1.0, axis=1)
        return np.asarray(count_likelihood(counts, np.maximum(size * shares, LEAST_RECORDS), self.rate)[2].sum(axis=1))

    def _evidence(self, edges: Array, counts: Array, size: float, spot: Spot) -> float:
        points, weights = spot.nodes(GRID, REACH)
        fit = self._fit(edges, counts, size, points)
        best = float(np.max(fit))
        return best + math.log(max(float(weights @ np.exp(fit - best)), 1e-300))

    def _best(self, counts: Array) -> float:
        """About the most that any law explains: no place or width does better."""
        means = np.maximum(counts, LEAST_RECORDS)
        return float(np.sum(count_likelihood(means, means, self.rate)[2])) + 1.0

    def _linear(self, edges: Array, counts: Array, at: Beliefs, spot: Spot) -> tuple[Array, Array, Array]:
        """Counts as linear in what beliefs are about: slopes (c, D), what they miss (c,), and variances (c,)."""
        points, weights = spot.nodes(NODES, NODES_REACH)
        size = max(float(at.mean[self.tracker.size_at]), 1.0)
        shape = softmax(at.mean[self.tracker.shapes])
        z, levels = self._levels(edges, points)
        cell = np.clip(levels.astype(np.int64), 0, SHAPES - 1)
        below = np.append(0.0, np.cumsum(shape))[cell] + (levels - cell) * shape[cell]
        density = SHAPES * shape[cell] * np.hypot(math.sqrt(2.0), z) ** -3.0
        within = np.clip(levels[:, :, None] - np.arange(SHAPES), 0.0, 1.0)
        parts = np.diff(np.tensordot(weights, within, 1), axis=0, prepend=0.0, append=1.0)
        each = np.diff(below, axis=1, prepend=0.0, append=1.0)
        share = weights @ each
        moved = [density * np.exp(-points[1])[:, None], density * z]
        by_spot = [-size * (weights @ np.diff(one, axis=1, prepend=0.0, append=0.0)) for one in moved]
        slope = np.stack(by_spot, axis=1) @ self.directions
        slope[:, self.tracker.size_at] = share
        slope[:, self.tracker.shapes] = size * (parts * shape - np.outer(share, shape))
        means = np.maximum(size * share, LEAST_RECORDS)
        score, information, _ = count_likelihood(counts, means, self.rate)
        bent = size**2 * (weights @ (each - share) ** 2)
        explained = np.einsum("ci,ij,cj->c", np.stack(by_spot, axis=1), spot.covariance, np.stack(by_spot, axis=1))
        return slope, score / information, 1.0 / information + np.maximum(bent - explained, 0.0)


def bounded_exp(nats: Any) -> float:
    """The width whose logarithm is given, as far as widths go; one for what is no number."""
    return math.exp(min(max(float(np.nan_to_num(nats)), -NARROWEST), NARROWEST))


def tracking_rate(noise: DiscreteLaplace) -> float:
    """The rate of the Laplace noise that stands for the discrete one: of the same variance."""
    return math.sqrt(2.0 / max(noise.variance, 1e-2))
