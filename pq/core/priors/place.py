"""Laws moved and stretched: the same shape at another place, in another width."""

from __future__ import annotations

from typing import Any

from pq.core.priors.arguments import positive, real
from pq.core.priors.base import Prior, parameters_of
from pq.core.priors.mixture import Mixture

PLACES, WIDTHS = ("loc", "low", "high", "edges"), ("scale",)  # parameters that move, and that are stretched


def placed(prior: Prior, place: Any, width: Any) -> Prior:
    """The law of `place + width * o` for o from a prior.

    prior: of a family with a place and a width, such as `Cauchy`, `Laplace`, `Normal`, `HalfCauchy`, `Uniform`,
    `PiecewiseConstant`, or a mixture of such. place: finite, in the unit of the data. width: positive. Raises
    `TypeError` or `ValueError` naming the argument.

    >>> from pq.core.priors import Laplace, Uniform
    >>> placed(Laplace(1, 0.5), 40, 10), placed(Uniform(-1, 1), 40, 10)
    (Laplace(loc=50.0, scale=5.0), Uniform(low=30.0, high=50.0))
    """
    centre, unit = real(place, "place"), positive(width, "width")
    if not isinstance(prior, Prior):
        raise TypeError(f"prior must be a prior of pq, got {type(prior).__name__}")
    if isinstance(prior, Mixture):
        return Mixture(tuple(placed(part, centre, unit) for part in prior.priors), prior.weights)
    moved: dict[str, Any] = {}
    names = parameters_of(type(prior))
    if not set(names) & set(PLACES) or not set(names) <= {*PLACES, *WIDTHS, "weights"}:
        raise TypeError(f"prior must be of a family with a place and a width, got {prior.family}")
    for name in names:
        value = getattr(prior, name)
        if name in PLACES:
            ends = value if isinstance(value, tuple) else (value,)
            ends = tuple(centre + unit * end for end in ends)
            moved[name] = ends if isinstance(value, tuple) else ends[0]
        elif name in WIDTHS:
            moved[name] = unit * value
        else:
            moved[name] = value
    return type(prior)(**moved)
