"""A weighted mean of priors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pq.core.priors.arguments import shares
from pq.core.priors.base import Prior, set_parameters
from pq.core.priors.numerics import LOG_2, Array, numbers_only


@dataclass(frozen=True)
class Mixture(Prior, twin=None, kernel=None):
    """A weighted mean of priors, which may be mixtures: keeps most of what each is good for (`cor:quantile`).

    priors: (k,) priors. weights: (k,) not negative; they are divided by their sum, which must be positive. Raises
    `TypeError` or `ValueError` naming the argument.

    >>> import pq
    >>> Mixture([pq.Laplace(0, 1), pq.Cauchy(0, 1)], [3, 1])
    Mixture(priors=(Laplace(loc=0.0, scale=1.0), Cauchy(loc=0.0, scale=1.0)), weights=(0.75, 0.25))
    """

    priors: tuple[Prior, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if isinstance(self.priors, Prior) or not isinstance(self.priors, Iterable):
            raise TypeError(f"priors must be a sequence of priors, got {type(self.priors).__name__}")
        priors = tuple(self.priors)
        for i, prior in enumerate(priors):
            if not isinstance(prior, Prior):
                raise TypeError(f"priors[{i}] must be a prior, got {type(prior).__name__}")
        if not priors:
            raise ValueError("priors must not be empty")
        set_parameters(self, priors=priors, weights=shares(self.weights, len(priors), "priors"))

    @classmethod
    def _from_plain(cls, parameters: dict[str, Any]) -> Prior:
        priors = [Prior.from_dict(prior) for prior in parameters.pop("priors", ())]
        return cls(priors=tuple(priors), **parameters)

    def _with_first(self, prior: Prior) -> Mixture:
        """The same weights with another first prior, of which nothing is left to check."""
        other = object.__new__(Mixture)
        set_parameters(other, priors=(prior, *self.priors[1:]), weights=self.weights)
        return other

    def _components(self) -> list[tuple[float, Prior]]:
        return [(w, prior) for w, prior in zip(self.weights, self.priors, strict=True) if w > 0.0]

    @property
    def support(self) -> tuple[float, float]:
        lows, highs = zip(*(prior.support for _, prior in self._components()), strict=True)
        return min(lows), max(highs)

    def _cores(self) -> list[tuple[float, float]]:
        return [core for _, prior in self._components() for core in prior._cores()]

    def _log_terms(self, lower: Array, upper: Array) -> list[Array]:
        return [prior._log_mass(lower, upper) + math.log(w) for w, prior in self._components()]

    def _log_mass(self, lower: Array, upper: Array) -> Array:
        terms = self._log_terms(lower, upper)
        out = terms[0]
        for term in terms[1:]:
            out = np.logaddexp(out, term)
        k = np.flatnonzero(out > -LOG_2)
        if k.size:
            ends = np.full(k.size, np.inf)
            rest = np.zeros(k.size)
            for w, prior in self._components():
                rest += w * (np.exp(prior._log_mass(-ends, lower[k])) + np.exp(prior._log_mass(upper[k], ends)))
            out[k] = numbers_only(np.log1p(-rest) + 0.0)
        return out

    def _log_density(self, o: Array) -> Array:
        return np.logaddexp.reduce([prior._log_density(o) + math.log(w) for w, prior in self._components()])

    def _quantile(self, lower: Array, upper: Array, u: Array, v: Array) -> Array:
        """A component by u, in proportion to its mass in the interval, and what remains of u for the place in it."""
        terms = np.array(self._log_terms(lower, upper))
        shares = np.exp(terms - np.max(terms, axis=0))
        ends = np.cumsum(shares, axis=0)
        scaled = u * ends[-1]
        chosen = np.minimum(np.sum(ends <= scaled, axis=0), np.sum(ends < ends[-1], axis=0))
        out = np.empty(u.shape)
        for i, (_, prior) in enumerate(self._components()):
            k = np.flatnonzero(chosen == i)
            if k.size:
                start = ends[i - 1, k] if i else 0.0
                rest = np.clip((scaled[k] - start) / shares[i, k], 0.0, np.nextafter(1.0, 0.0))
                out[k] = prior._draw(lower[k], upper[k], rest)
        return out

    def _on_floats(self, lower: Array, upper: Array, u: Array, points: Array, log_masses: Array) -> Array:
        """As they are: each component has seen to its own."""
        return points
