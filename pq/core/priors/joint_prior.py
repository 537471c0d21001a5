"""A prior for all quantiles at once, in which they depend on each other (Section 3.2, beyond the paper)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pq.core.priors.arguments import reals, shares
from pq.core.priors.base import Prior
from pq.core.priors.mixture import Mixture
from pq.core.priors.place import placed

Member = Prior | tuple[Prior, ...]

FAMILY = "JointPrior"


@dataclass(frozen=True)
class JointPrior:
    """A prior for all quantiles at once: one of its members is right, and nobody knows which.

    members: (l,) each one prior for all quantiles, or a sequence of one for each, in their order. weights: (l,) not
    negative; they are divided by their sum. Raises `TypeError` or `ValueError` naming the argument.

    Outputs o_1 <= ... <= o_m have the density proportional to `sum_l w_l prod_j h_lj(o_j)`, h_lj the density of member
    l for quantile j. Under one member they are independent but for their order, a Markov chain; under several they are
    not, for what one output tells of the member holds for all. So quantiles that move or widen together are predicted
    together. For `mechanism="joint"`, which draws from it exactly, but that the several priors of a member have their
    own masses on several hundred bins and one shape inside; no privacy depends on what it is.

    >>> import pq
    >>> JointPrior([pq.Normal(40, 2), pq.Normal(60, 2)], [3, 1]).weights
    (0.75, 0.25)
    """

    members: tuple[Member, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if isinstance(self.members, Prior) or not isinstance(self.members, Iterable):
            raise TypeError(f"members must be a sequence of priors, got {type(self.members).__name__}")
        members = tuple(_member(one, f"members[{i}]") for i, one in enumerate(self.members))
        if not members:
            raise ValueError("members must not be empty")
        if len({len(one) for one in members if isinstance(one, tuple)}) > 1:
            raise ValueError("members must have priors for the same number of quantiles")
        object.__setattr__(self, "members", members)
        object.__setattr__(self, "weights", shares(self.weights, len(members), "members"))

    @classmethod
    def location_scale(cls, base: Any, places: Any, widths: Any, weights: Any = None) -> JointPrior:
        """The prior under which all quantiles share a place and a width that are not known.

        base: what is believed at place 0 in width 1: one prior for all quantiles, or one for each. places: (p,) finite,
            in the unit of the data. widths: (w,) positive. weights: (p w,) of each place with the first width, with the
            second, ...; None for equal ones. The members are the laws of `place + width * o`. Raises `TypeError` or
            `ValueError` naming the argument.

        >>> import pq
        >>> quartiles = [pq.Laplace(-0.67, 0.05), pq.Laplace(0, 0.05), pq.Laplace(0.67, 0.05)]
        >>> prior = JointPrior.location_scale(quartiles, places=[30, 40, 50], widths=[5, 10])
        >>> len(prior.members), prior.members[1][1]
        (6, Laplace(loc=40.0, scale=0.25))
        """
        shape = _member(base, "base")
        centres, units = reals(places, "places"), reals(widths, "widths")
        for name, values in (("places", centres), ("widths", units)):
            if not values:
                raise ValueError(f"{name} must not be empty")
        pairs = [(centre, unit) for unit in units for centre in centres]
        each = (1.0,) * len(pairs) if weights is None else weights
        return cls(tuple(_placed_member(shape, *pair) for pair in pairs), each)

    @property
    def size(self) -> int | None:
        """Number of quantiles; None where each member has one prior for all."""
        return next((len(one) for one in self.members if isinstance(one, tuple)), None)

    def marginals(self, count: int) -> tuple[Prior, ...]:
        """The priors (count,) of each quantile alone, as if nothing were known of the others; raises naming priors."""
        if self.size not in (None, count):
            raise ValueError(f"priors must have one prior per quantile: got {self.size} for {count} quantiles")
        return tuple(self._marginal(j) for j in range(count))

    def _marginal(self, j: int) -> Prior:
        parts: dict[Prior, float] = {}
        for member, weight in zip(self.members, self.weights, strict=True):
            prior = member[j] if isinstance(member, tuple) else member
            parts[prior] = parts.get(prior, 0.0) + weight
        return next(iter(parts)) if len(parts) == 1 else Mixture(tuple(parts), tuple(parts.values()))

    def to_dict(self) -> dict[str, Any]:
        """Family and parameters as plain Python values, ready for JSON; `from_dict` is the inverse as far as that of
        its members is.

        >>> import pq
        >>> prior = JointPrior([pq.Normal(0, 1), pq.Normal(5, 1)], [1, 1])
        >>> JointPrior.from_dict(prior.to_dict()) == prior
        True
        """
        return {"family": FAMILY, "members": [_described(one) for one in self.members], "weights": list(self.weights)}

    @staticmethod
    def from_dict(description: Mapping[str, Any]) -> JointPrior:
        """The prior that `to_dict` described. Raises `TypeError` or `ValueError` naming what is wrong."""
        if not isinstance(description, Mapping) or description.get("family") != FAMILY:
            raise ValueError(f"description must be a mapping with the family {FAMILY!r}")
        members = description.get("members", ())
        read = (Prior.from_dict(one) if isinstance(one, Mapping) else [*map(Prior.from_dict, one)] for one in members)
        return JointPrior(tuple(read), description.get("weights", ()))  # type: ignore[arg-type]


def _member(value: Any, name: str) -> Member:
    if isinstance(value, Prior):
        return value
    if not isinstance(value, Sequence) or not value or not all(isinstance(prior, Prior) for prior in value):
        raise TypeError(f"{name} must be a prior of pq or a sequence of them")
    return tuple(value)


def _placed_member(shape: Member, place: float, width: float) -> Member:
    if isinstance(shape, Prior):
        return placed(shape, place, width)
    return tuple(placed(prior, place, width) for prior in shape)


def _described(member: Member) -> Any:
    return member.to_dict() if isinstance(member, Prior) else [prior.to_dict() for prior in member]
