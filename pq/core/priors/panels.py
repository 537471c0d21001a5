"""A law on panels: each has a mass and a smooth positive density, and all else follows from these numbers.

A distribution that somebody hands over is asked at public points only, once. Whatever it answers, what comes out is a
measure: the masses of the panels are positive numbers that are added up, and a part of a panel has the integral of the
exponential of a polynomial. In the ellipse around the panel whose half axes add up to `REACH` of its half width that
polynomial varies by at most `TALL` nats: Gauss's rule with twenty nodes is then right to 3e-16, for the panel and for
each part of it (Trefethen, Approximation Theory and Approximation Practice, theorem 19.3), so that no cut changes a
mass.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pq.core.priors.numerics import LOG_2, Array, log_ratio, unit_rule

DEGREE = 15
REACH, TALL = 4.0, 18.0
_ORDERS = np.arange(1.0, DEGREE + 1.0)[:, None]
_GROWTH = 0.5 * (REACH**_ORDERS + REACH**-_ORDERS)  # of a Chebyshev polynomial, to the edge of the ellipse
NODES = 20
BLOCK = 512  # intervals at a time: each has twenty nodes


def evaluated(shapes: Array, t: Array) -> Array:
    """Chebyshev series (DEGREE + 1, n) at t (n,) or (20, n) in [0, 1], by Clenshaw's recurrence."""
    x = 2.0 * t - 1.0
    one, two = np.zeros_like(x), np.zeros_like(x)
    for k in range(DEGREE, 0, -1):
        one, two = shapes[k] + 2.0 * x * one - two, one
    return shapes[0] + x * one - two


def log_means(shapes: Array, start: Array | float = 0.0, width: Array | float = 1.0) -> Array:
    """Log of the mean of the exponentials of series on the parts from `start` on, of that width, of their panels."""
    nodes, weights = unit_rule(NODES)
    values = evaluated(shapes, start + np.multiply.outer(nodes, np.broadcast_to(width, shapes.shape[1:])))
    top = np.max(values, axis=0)
    return np.asarray(top + np.log(weights @ np.exp(values - top)))


def tamed(shapes: Array) -> Array:
    """Series without the terms from the first one on with which they could vary by more than `TALL` in the ellipse."""
    kept = np.cumsum(np.abs(shapes[1:]) * _GROWTH, axis=0) <= TALL
    return np.concatenate([shapes[:1], np.where(kept, shapes[1:], 0.0)])


class Panels:
    """The law with these panels.

    edges: (k + 1,) increasing and finite, no two further apart than the largest float. log_masses: (k,) in any unit.
    shapes: (DEGREE + 1, k) Chebyshev coefficients of the log density on each panel, in any unit. Whatever numbers these
    are, all that follows from them adds up: those of a panel are relative to its mean, and those of all masses to the
    largest, before anything is rounded beside them; a shape or mass that is no number is flat, or none. Raises
    `ValueError` naming `frozen` where no panel has a mass.
    """

    def __init__(self, edges: Array, log_masses: Array, shapes: Array) -> None:
        self.edges, self.widths = edges, np.diff(edges)
        self.shapes = tamed(np.where(np.isfinite(shapes).all(axis=0), shapes, 0.0))
        self.shapes[0] = 0.0
        self.shapes[0] = -log_means(self.shapes)
        most = np.fmax.reduce(log_masses)
        if not np.isfinite(most):
            raise ValueError("frozen must be a distribution with mass, by its distribution function or density")
        relative = np.where(np.isnan(log_masses), -np.inf, log_masses - most)
        self.log_masses = relative - np.logaddexp.reduce(relative)
        nothing = [-np.inf]
        self.log_below = np.concatenate([nothing, np.logaddexp.accumulate(self.log_masses)])
        self.log_above = np.concatenate([np.logaddexp.accumulate(self.log_masses[::-1])[::-1], nothing])
        for array in vars(self).values():
            array.flags.writeable = False

    def span(self, start: Array, stop: Array) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """First and last panel that the interval (start, stop] touches."""
        last = self.log_masses.size - 1
        first_panel = np.searchsorted(self.edges, start, side="right") - 1
        last_panel = np.searchsorted(self.edges, stop, side="left") - 1
        return np.clip(first_panel, 0, last), np.clip(last_panel, 0, last)

    def part(self, panels: npt.NDArray[np.intp], start: Array, stop: Array) -> Array:
        """Log mass of (start, stop] inside one panel."""
        width = self.widths[panels]
        means = log_means(self.shapes[:, panels], (start - self.edges[panels]) / width, (stop - start) / width)
        return self.log_masses[panels] + (means + log_ratio(stop, start, 1.0) - np.log(width))

    def log_mass(self, lower: Array, upper: Array) -> Array:
        """Log mass of (lower, upper]: the cut panels and the whole ones between, or what both ends leave."""
        out = np.full(lower.shape, -np.inf)
        start, stop = np.maximum(lower, self.edges[0]), np.minimum(upper, self.edges[-1])
        live = np.flatnonzero(stop > start)
        for k in range(0, live.size, BLOCK):
            some = live[k : k + BLOCK]
            out[some] = self._log_mass(start[some], stop[some])
        return out

    def _log_mass(self, start: Array, stop: Array) -> Array:
        i, j = self.span(start, stop)
        out = self.part(i, start, np.minimum(stop, self.edges[i + 1]))
        if (k := np.flatnonzero(j > i)).size:
            out[k] = np.logaddexp(out[k], self.part(j[k], self.edges[j[k]], stop[k]))
        if (k := np.flatnonzero(j > i + 1)).size:
            out[k] = np.logaddexp(out[k], self._whole(i[k] + 1, j[k]))
        if (k := np.flatnonzero(out > -LOG_2)).size:
            below = np.logaddexp(self.log_below[i[k]], self.part(i[k], self.edges[i[k]], start[k]))
            above = np.logaddexp(self.log_above[j[k] + 1], self.part(j[k], stop[k], self.edges[j[k] + 1]))
            out[k] = np.log1p(-np.minimum(np.exp(below) + np.exp(above), 1.0)) + 0.0
        return out

    def _whole(self, i: npt.NDArray[np.intp], j: npt.NDArray[np.intp]) -> Array:
        """Log mass of the panels i..j-1: what the nearer tail loses between them, or their sum where that cancels."""
        right = self.log_above[i] < self.log_below[j]
        most = np.where(right, self.log_above[i], self.log_below[j])
        kept = -np.expm1(np.where(right, self.log_above[j], self.log_below[i]) - most)
        out = np.where(most > -np.inf, most + np.log(kept), -np.inf)
        if (k := np.flatnonzero(~(kept > 0.5) & (most > -np.inf))).size:
            pairs = np.stack([i[k], j[k]], axis=1).ravel()
            out[k] = np.logaddexp.reduceat(self.log_masses, pairs)[::2]
        return out

    def log_density(self, o: Array) -> Array:
        """Log density at points; where two panels meet, that of the lower one."""
        _, j = self.span(o, o)
        t = (o - self.edges[j]) / self.widths[j]
        inside = (o >= self.edges[0]) & (o <= self.edges[-1])
        heights = evaluated(self.shapes[:, j], np.clip(t, 0.0, 1.0)) + self.log_masses[j] - np.log(self.widths[j])
        return np.where(inside, heights, -np.inf)

    def guess(self, start: Array, stop: Array, u: Array, v: Array) -> Array:
        """About the point at share u = 1 - v of the mass of each (start, stop]."""
        i, j = self.span(start, stop)
        below, above = np.exp(self.log_below), np.exp(self.log_above)
        left = below[i] + np.exp(self.part(i, self.edges[i], start))
        right = above[j + 1] + np.exp(self.part(j, stop, self.edges[j + 1]))
        total = np.maximum(1.0 - left - right, 0.0)
        p, q = left + u * total, right + v * total
        k = np.where(
            p < q, np.searchsorted(below, p, side="right") - 1, above.size - 1 - np.searchsorted(above[::-1], q)
        )
        k = np.clip(k, i, j)
        mass = np.exp(self.log_masses[k])
        share = np.where(p < q, (p - below[k]) / mass, 1.0 - (q - above[k + 1]) / mass)
        t = np.clip(np.where(np.isfinite(share), share, 0.5), 0.0, 1.0)
        goal = t
        for _ in range(8):  # Newton's method on the share of the panel
            slope = np.exp(evaluated(self.shapes[:, k], t))
            t = np.clip(t - (t * np.exp(log_means(self.shapes[:, k], 0.0, t)) - goal) / slope, 0.0, 1.0)
        return np.clip(self.edges[k] + t * self.widths[k], start, stop)
