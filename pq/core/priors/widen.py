"""A prior wider or narrower than another one: what if the guess had been less, or more, sure."""

from __future__ import annotations

from typing import Any

from pq.core.priors.base import Prior, parameters_of
from pq.core.priors.mixture import Mixture


def widened(prior: Prior, factor: float) -> Prior | None:
    """A prior of the same family with distances from its middle times `factor`: its scale (that of the logarithms for a
    lognormal law), or its ends around their middle; of a mixture, that of each part. None where there is no such prior.

    >>> from pq.core.priors import Cauchy, Uniform
    >>> widened(Cauchy(40, 10), 2), widened(Uniform(0, 4), 0.5)
    (Cauchy(loc=40.0, scale=20.0), Uniform(low=1.0, high=3.0))
    """
    if isinstance(prior, Mixture):
        parts = [widened(part, factor) for part in prior.priors]
        return Mixture(tuple(p for p in parts if p is not None), prior.weights) if None not in parts else None
    given: dict[str, Any] = {name: getattr(prior, name) for name in parameters_of(type(prior)) if hasattr(prior, name)}
    scales = {name: given[name] * factor for name in given if name in ("scale", "log_scale")}
    if not scales and {"low", "high"} <= set(given):
        middle = given["low"] / 2.0 + given["high"] / 2.0
        scales = {name: middle + factor * (given[name] - middle) for name in ("low", "high")}
    try:
        return type(prior)(**given | scales) if scales else None
    except ValueError:  # beyond the floats, or where the family has no member
        return None
