"""A density that is constant on each of some bins."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from pq.core.priors.arguments import reals, shares
from pq.core.priors.base import Prior, set_parameters
from pq.core.priors.numerics import TINY, Array, between, log_ratio, numbers_only
from pq.core.priors.uniform import Uniform


class Bins:
    """Arrays of a piecewise constant law: edges (k+1,), weights (k,) that add up to one, and what follows from them."""

    def __init__(self, edges: tuple[float, ...], weights: tuple[float, ...]) -> None:
        self.edges, self.weights = np.array(edges), np.array(weights)
        # A range wider than the largest float is measured in quarters.
        self.unit = 1.0 if np.isfinite(edges[-1] - edges[0]) else 0.25
        self.widths = np.diff(self.unit * self.edges)
        with np.errstate(divide="ignore"):
            self.log_weights = np.log(self.weights)
        self.log_widths = log_ratio(self.edges[1:], self.edges[:-1], 1.0)
        wide = self.weights.astype(np.longdouble)
        self.below = np.concatenate([[0.0], np.cumsum(wide)]).astype(np.float64)
        self.above = np.concatenate([np.cumsum(wide[::-1])[::-1], [0.0]]).astype(np.float64)
        used = np.flatnonzero(self.weights > 0.0)
        bins = np.arange(self.weights.size)
        self.next_used = used[np.minimum(np.searchsorted(used, bins), used.size - 1)]
        self.last_used = used[np.maximum(np.searchsorted(used, bins, side="right") - 1, 0)]
        for array in (value for value in vars(self).values() if isinstance(value, np.ndarray)):
            array.flags.writeable = False

    def span(self, start: Array, stop: Array) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """First and last bin that the interval (start, stop] touches."""
        last = self.weights.size - 1
        first_bin = np.searchsorted(self.edges, start, side="right") - 1
        last_bin = np.searchsorted(self.edges, stop, side="left") - 1
        return np.clip(first_bin, 0, last), np.clip(last_bin, 0, last)

    def part(self, bins: npt.NDArray[np.intp], start: Array, stop: Array) -> Array:
        """Mass of (start, stop] inside one bin."""
        return self.weights[bins] * ((self.unit * stop - self.unit * start) / self.widths[bins])

    def log_part(self, bins: npt.NDArray[np.intp], start: Array, stop: Array) -> Array:
        return self.log_weights[bins] + (log_ratio(stop, start, 1.0) - self.log_widths[bins])

    def log_mass(self, lower: Array, upper: Array) -> Array:
        """Log mass as a sum of positive parts: two cut bins and the whole bins between them."""
        e = self.edges
        start, stop = np.maximum(lower, e[0]), np.minimum(upper, e[-1])
        i, j = self.span(start, stop)
        first_stop = np.minimum(stop, e[i + 1])
        mass = self.part(i, start, first_stop)
        whole = np.zeros(mass.shape)
        if (several := np.flatnonzero(j > i)).size:
            mass[several] += self.part(j[several], e[j[several]], stop[several])
            far = np.flatnonzero(j - i > 1)
            if far.size:
                pairs = np.stack([i[far] + 1, j[far]], axis=1).ravel()
                whole[far] = np.add.reduceat(self.weights, pairs)[::2]
                mass += whole
        out = np.log(np.fmax(mass, 0.0))
        redo = np.flatnonzero(~((mass <= 0.5) & (mass >= TINY)))
        redo = redo[stop[redo] > start[redo]]
        if redo.size:
            i, j, start, stop, first_stop = i[redo], j[redo], start[redo], stop[redo], first_stop[redo]
            rest = self.below[i] + self.part(i, e[i], start) + (self.above[j + 1] + self.part(j, stop, e[j + 1]))
            small = np.logaddexp(self.log_part(i, start, first_stop), np.log(whole[redo]))
            small = np.logaddexp(small, np.where(j > i, self.log_part(j, e[j], stop), -np.inf))
            out[redo] = numbers_only(np.where(mass[redo] > 0.5, np.log1p(-rest) + 0.0, small))
        return out

    def quantile(self, lower: Array, upper: Array, uniform: Array) -> Array:
        """Inverse of the law restricted to intervals that have mass: the bin by bisection, then the place in it."""
        i, j = self.span(np.maximum(lower, self.edges[0]), np.minimum(upper, self.edges[-1]))
        i, j = self.next_used[i], self.last_used[j]
        log_total = self.log_mass(lower, upper)
        while (i < j).any():
            middle = (i + j) // 2
            share = np.exp(self.log_mass(lower, np.minimum(upper, self.edges[middle + 1])) - log_total)
            right = (share <= uniform) & (i < j)
            i, j = np.where(right, self.next_used[np.minimum(middle + 1, j)], i), np.where(right | (i >= j), j, middle)
            j = np.maximum(self.last_used[j], i)
        start, stop = np.maximum(lower, self.edges[i]), np.minimum(upper, self.edges[i + 1])
        before = np.exp(self.log_mass(lower, start) - log_total)
        inside = np.exp(self.log_mass(start, stop) - log_total)
        return between(start, stop, np.where(inside > 0.0, np.clip((uniform - before) / inside, 0.0, 1.0), 0.0))


@dataclass(frozen=True, repr=False)
class PiecewiseConstant(Prior, twin=None, kernel=None):
    """A density that is constant on each bin: priors that can be learned with low regret (`thm:quantile-regret`).

    edges: (k + 1,) strictly increasing and finite, in the unit of the data. weights: (k,) probabilities of the bins,
    not negative; they are divided by their sum, which must be positive. Raises `TypeError` or `ValueError` naming the
    argument.

    >>> PiecewiseConstant([0, 1, 10], [3, 1])
    PiecewiseConstant(edges=(0.0, 1.0, 10.0), weights=(0.75, 0.25))
    """

    edges: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        edges = reals(self.edges, "edges")
        if len(edges) < 2:
            raise ValueError(f"edges must have at least two entries, got {len(edges)}")
        if not all(a < b for a, b in pairwise(edges)):
            raise ValueError("edges must be strictly increasing")
        weights = shares(self.weights, len(edges) - 1, "bins")
        set_parameters(self, edges=edges, weights=weights, _arrays=Bins(edges, weights))

    def __repr__(self) -> str:
        if len(self.weights) > 16:
            return f"PiecewiseConstant(<{len(self.weights)} bins on [{self.edges[0]}, {self.edges[-1]}]>)"
        return f"PiecewiseConstant(edges={self.edges}, weights={self.weights})"

    @property
    def _bins(self) -> Bins:
        return vars(self)["_arrays"]

    @property
    def support(self) -> tuple[float, float]:
        return self._cores()[0][0], self._cores()[-1][1]

    def _cores(self) -> list[tuple[float, float]]:
        return [(self.edges[i], self.edges[i + 1]) for i, weight in enumerate(self.weights) if weight > 0.0]

    def _components(self) -> list[tuple[float, Prior]]:
        bins = zip(self.edges[:-1], self.edges[1:], self.weights, strict=True)
        return [(weight, Uniform(low, high)) for low, high, weight in bins if weight > 0.0]

    def _log_mass(self, lower: Array, upper: Array) -> Array:
        return self._bins.log_mass(lower, upper)

    def _log_density(self, o: Array) -> Array:
        _, bins = self._bins.span(o, o)
        inside = (o >= self.edges[0]) & (o <= self.edges[-1])
        return np.where(inside, self._bins.log_weights[bins] - self._bins.log_widths[bins], -np.inf)

    def _quantile(self, lower: Array, upper: Array, u: Array, v: Array) -> Array:
        return self._bins.quantile(lower, upper, u)
