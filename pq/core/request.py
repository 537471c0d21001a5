"""What a release is asked to do: the checked public arguments of one call, and nothing about the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from pq.core.arrays import read_only
from pq.core.choices import Adaptation, Adjacency, Calibration, OnNan, check_choice
from pq.core.exact import budget_fraction, distinct_fractions, is_real, quantile_fractions, whole_number
from pq.core.facts import Facts
from pq.core.grid import check_on_grid, grid_step
from pq.core.plan import power_fraction
from pq.core.priors import JointPrior, Prior
from pq.core.scores import Array

LARGEST_SIZE = 2**60  # records to reckon with: a public total may be too large for a float
TREE_DEFAULTS = {"calibration": "sharp", "adaptation": "conditional", "arity": 2, "budget_power": 0}


@dataclass(frozen=True)
class TreeOptions:
    """Options that the tree of exponential mechanisms alone has; see `pq.release`."""

    calibration: str
    adaptation: str
    arity: int
    budget_power: Fraction


@dataclass(frozen=True)
class Request(Facts):
    """The public arguments of a release, checked.

    quantiles: (m,) exact, in the caller's order; `distinct` are they in increasing order, without repeats, and
    `positions` says where in `distinct` each of them is. epsilon: total budget of a person who owns up to
    `max_contributions` records. priors: one for each of `distinct`. joint_prior: of all of them, in the caller's order,
    of which `priors` are the marginals; None where they are independent. step: of the grid, None for real outputs.
    mechanism: the name that was asked for, perhaps "auto".
    """

    quantiles: tuple[Fraction, ...]
    distinct: tuple[Fraction, ...]
    positions: tuple[int, ...]
    epsilon: Fraction | float
    max_contributions: int
    adjacency: str
    priors: tuple[Prior, ...]
    joint_prior: JointPrior | None
    step: Fraction | None
    on_nan: str
    mechanism: str
    size_guess: float | None
    public_total: int | None
    assume_smooth: bool
    tree: TreeOptions

    @classmethod
    def of(
        cls,
        quantiles: Any,
        *,
        epsilon: Any,
        priors: Any,
        mechanism: Any = "auto",
        size_guess: Any = None,
        public_total: Any = None,
        assume_smooth: Any = False,
        grid: Any = None,
        adjacency: Any = "add-remove",
        calibration: Any = None,
        adaptation: Any = None,
        arity: Any = None,
        budget_power: Any = None,
        on_nan: Any = "drop",
        max_contributions: Any = 1,
    ) -> Request:
        """Check the arguments of `pq.release`; raises `TypeError` or `ValueError` naming the one at fault."""
        fractions = quantile_fractions(quantiles)
        budget, people = budget_fraction(epsilon), whole_number(max_contributions, "max_contributions", least=1)
        check_choice(adjacency, Adjacency, "adjacency")
        check_choice(on_nan, OnNan, "on_nan")
        given = {"calibration": calibration, "adaptation": adaptation, "arity": arity, "budget_power": budget_power}
        given = {name: value for name, value in given.items() if value is not None}
        asked = _asked_for(mechanism, given, priors)
        distinct = distinct_fractions(fractions)
        index = {q: i for i, q in enumerate(distinct)}
        positions = tuple(index[q] for q in fractions)
        joint = priors if isinstance(priors, JointPrior) else None
        marginals = priors if joint is None else joint.marginals(len(fractions))
        chosen, step = distinct_priors(marginals, distinct, positions), grid_step(grid)
        check_on_grid(chosen, step)
        return cls(
            quantiles=fractions,
            distinct=distinct,
            positions=positions,
            epsilon=budget,
            max_contributions=people,
            adjacency=adjacency,
            priors=chosen,
            joint_prior=joint,
            step=step,
            on_nan=on_nan,
            mechanism=asked,
            size_guess=None if size_guess is None else size_number(size_guess),
            public_total=None if public_total is None else whole_number(public_total, "public_total"),
            assume_smooth=_flag(assume_smooth, "assume_smooth"),
            tree=_tree_options(**(TREE_DEFAULTS | given)),
        )

    @cached_property
    def levels(self) -> Array:
        """(d,) `distinct` as floats, read-only."""
        return read_only(np.array([float(q) for q in self.distinct]))

    @property
    def members(self) -> tuple[tuple[Prior, ...], ...]:
        """What the priors (m,) of `distinct` may be together: the members of the joint prior, or what is there."""
        if self.joint_prior is None:
            return (self.priors,)
        return tuple(distinct_priors(one, self.distinct, self.positions) for one in self.joint_prior.members)

    @property
    def budget(self) -> Fraction | float:
        """What one record may cost: `epsilon / max_contributions`, since all of a person's records add up."""
        return math.inf if self.epsilon == math.inf else self.epsilon / self.max_contributions


def _asked_for(mechanism: Any, given: dict[str, Any], priors: Any) -> str:
    """The name of the mechanism that is asked for, by name, by options of the tree, or by a prior of all quantiles."""
    if not isinstance(mechanism, str):
        raise TypeError(f"mechanism must be a name, got {type(mechanism).__name__}")
    if given and mechanism not in ("auto", "tree"):
        raise ValueError(f"{next(iter(given))} is an option of the tree, not of mechanism={mechanism!r}")
    asked = "tree" if given else mechanism
    if not isinstance(priors, JointPrior):
        return asked
    if asked not in ("auto", "joint"):
        raise ValueError(f"priors must be one prior or one per quantile: mechanism={asked!r} takes no JointPrior")
    return "joint"


def _tree_options(calibration: Any, adaptation: Any, arity: Any, budget_power: Any) -> TreeOptions:
    check_choice(calibration, Calibration, "calibration")
    check_choice(adaptation, Adaptation, "adaptation")
    return TreeOptions(calibration, adaptation, whole_number(arity, "arity", least=2), power_fraction(budget_power))


def size_number(value: Any) -> float:
    """A rough number of records, positive; raises naming size_guess."""
    if not is_real(value):
        raise TypeError(f"size_guess must be a number, got {type(value).__name__}")
    try:
        size = float(value)
    except OverflowError:  # a whole number or a fraction beyond the floats
        size = math.inf
    if not 0 < size < math.inf:
        raise ValueError(f"size_guess must be positive and finite, got {size:g}")
    return size


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {type(value).__name__}")
    return bool(value)


def distinct_priors(priors: Any, distinct: Sequence[Fraction], positions: Sequence[int]) -> tuple[Prior, ...]:
    """One prior for each distinct quantile, from one prior or one for each quantile in the caller's order.

    Raises `TypeError` or `ValueError` naming priors.
    """
    if isinstance(priors, Prior):
        return (priors,) * len(distinct)
    if not isinstance(priors, Sequence) or not all(issubclass(kind, Prior) for kind in set(map(type, priors))):
        raise TypeError(
            "priors must be a prior of pq (pq.from_scipy wraps a scipy.stats distribution), a sequence of them, or a "
            "JointPrior"
        )
    if len(priors) != len(positions):
        raise ValueError(
            f"priors must be one prior or one per quantile: got {len(priors)} for {len(positions)} quantiles"
        )
    chosen: dict[int, Prior] = {}
    for position, prior in zip(positions, priors, strict=True):
        if chosen.setdefault(position, prior) != prior:
            raise ValueError(f"priors must agree where quantiles repeat: {distinct[position]} has two")
    return tuple(chosen[i] for i in range(len(distinct)))
