"""What a predictor is, and the two that learn nothing: fixed priors, and priors around the last release (Section 5.3).

A predictor gives one prior for each quantile from public features and from what was released before. It never sees
records, unless it says so by its class: only a `PrivatePredictor` is shown the data, through a method of its own.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from pq.core.arrays import read_only
from pq.core.exact import briefly, quantile_fractions, whole_number
from pq.core.grid import check_on_grid, is_on_grid
from pq.core.kind import in_unit
from pq.core.priors import JointPrior, Laplace, LogUniform, Mixture, Prior
from pq.core.priors.arguments import finite_number, reals_each
from pq.core.request import Request, distinct_priors
from pq.private.mechanisms import Mechanism, mechanism_for, with_priors
from pq.private.mechanisms.joint.plan import is_orderable
from pq.private.noise import BROKE_OFF, StepsExceeded
from pq.private.result import Release
from pq.private.sequential.state import described

FloatArray = npt.NDArray[np.float64]

ROBUST_WEIGHT = 0.1


class Predictor(ABC):
    """Public predictions for a sequence of releases: `priors`, then `observe` what was released, day after day.

    m: number of quantiles, in the order in which they are released.
    """

    private: ClassVar[bool] = False  # whether it must be shown the records; see `PrivatePredictor`
    released_by: str = "tree"  # the mechanism unless another is asked for; it uses a prior a quantile best
    m: int
    given: Any  # the arguments that it was made with, as plain values

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        predictor = super().__new__(cls)
        predictor.given = described((cls.__qualname__, arguments, named))
        return predictor

    def __copy__(self) -> Self:
        """A copy that learns for itself."""
        return copy.deepcopy(self)

    @abstractmethod
    def priors(self, features: npt.ArrayLike) -> list[Prior]:
        """The m priors of the day with these public features (d,); it changes nothing."""

    @abstractmethod
    def observe(self, features: npt.ArrayLike, released: npt.ArrayLike) -> None:
        """Take note of the values (m,) released on that day, in the unit of the priors or as dates and times: the only
        thing that it learns about the day's data."""

    def check(self, request: Request) -> None:
        """Refuse, before the first day, what it cannot serve: raises `ValueError` naming the argument."""
        mechanism_for(request)

    def maker(self, features: npt.ArrayLike, request: Request, before: Mechanism | None = None) -> Mechanism:
        """The mechanism of the day with these public features (d,), for the public facts of a release. Its priors are
        the day's, but for what `pq.release` would refuse: `LogUniform()` is in the place of one that has been learnt
        from beyond the grid, and for joint outputs the mixture of all of them in the place of priors that contradict
        each other. It changes nothing. before: the one of an earlier day with the same facts, to be renewed."""
        learnt = [prior if is_on_grid(prior, request.step) else LogUniform() for prior in self.priors(features)]
        chosen = distinct_priors(learnt, request.distinct, request.positions)
        if request.mechanism == "joint" and not is_orderable(chosen):
            chosen = (Mixture(chosen, (1.0,) * len(chosen)),) * len(chosen)
        return mechanism_for(replace(request, priors=chosen)) if before is None else with_priors(before, chosen)

    def note(self, features: npt.ArrayLike, maker: Mechanism, released: Release) -> None:
        """Take note of the day's release, by the mechanism that `maker` gave: of its values, unless said otherwise."""
        self.observe(features, released.numbers)

    def renew(self, rng: np.random.Generator | None) -> None:  # noqa: B027 - most predictors draw nothing
        """Draw what noise is still to come from streams of this one, or from the operating system."""


class PrivatePredictor(Predictor):
    """A predictor that is shown the records themselves and so must pay for what its priors tell about them.

    epsilon, delta: what all its priors together cost a person whose records are in one data set only; infinite for one
    that protects nobody. used: whether it holds noise that belongs to data sets that it has learnt from.
    """

    private = True
    used: bool = False
    _under_way: bool = False  # stays true where a step broke off
    epsilon: Fraction | float
    delta: float

    @property
    def steps_left(self) -> float:
        """How many data sets it can still learn from."""
        return math.inf

    def check_step(self) -> None:
        """Refuse, before the release of a day, to learn from it: raises `StepsExceeded` where all planned steps are
        taken, and `RuntimeError` where one broke off."""
        if self._under_way:
            raise RuntimeError(BROKE_OFF)
        if self.steps_left < 1:
            raise StepsExceeded("all planned steps of the predictor are taken")

    @abstractmethod
    def learn(self, features: npt.ArrayLike, x: Any) -> None:
        """Take note of the records x (n,) of the day, after its release."""


@dataclass(frozen=True)
class Standardise:
    """Features less a centre, divided by a scale, and a constant one: all public numbers, fixed before the first day.

    centre, scale: numbers, or (d,), in the unit of each feature; scale positive. They must not come from private data.

    >>> Standardise(50.0, 10.0)([70.0])
    array([2., 1.])
    """

    centre: Any = 0.0
    scale: Any = 1.0

    def __post_init__(self) -> None:
        for name in ("centre", "scale"):
            values = np.atleast_1d(in_unit(getattr(self, name), name))
            if values.ndim != 1 or not np.all(np.isfinite(values)):
                raise ValueError(f"{name} must be a finite number, or one for each feature")
            object.__setattr__(self, name, tuple(values.tolist()))
        if not all(scale > 0.0 for scale in self.scale):
            raise ValueError("scale must be positive")
        object.__setattr__(self, "_arrays", (np.array(self.centre), np.array(self.scale)))

    def __call__(self, features: npt.ArrayLike) -> FloatArray:
        """The features (..., d) as (..., d + 1). Raises `ValueError` naming features."""
        raw = np.atleast_1d(in_unit(features, "features"))
        if not np.isfinite(raw).all():
            raise ValueError("features must be finite")
        centre, scale = self._arrays  # type: ignore[attr-defined]
        known = np.ones((*raw.shape[:-1], raw.shape[-1] + 1))
        try:
            known[..., :-1] = (raw - centre) / scale
        except ValueError:
            raise ValueError(f"features must be {len(self.centre)} numbers, got {raw.shape[-1]}") from None
        return known


class Static(Predictor):
    """The same priors every day: Uniform, Cauchy, half-Cauchy, or any other (Section 5.3's baselines).

    priors: one prior for all quantiles, a sequence of one for each, or a `pq.JointPrior` of all, with which releases
    are by mechanism "joint" and by no other. quantiles: (m,), as they will be released. Raises `TypeError` or
    `ValueError` naming the argument.

    >>> import pq
    >>> Static(pq.Cauchy(0, 1), [0.25, 0.75]).priors([1.0])
    [Cauchy(loc=0.0, scale=1.0), Cauchy(loc=0.0, scale=1.0)]
    >>> Static(pq.JointPrior([pq.Normal(40, 2), pq.Normal(60, 2)], [3, 1]), [0.25, 0.75]).released_by
    'joint'
    """

    def __init__(self, priors: Prior | Sequence[Prior] | JointPrior, quantiles: Any) -> None:
        self.m = len(quantile_fractions(quantiles))
        self.joint_prior = priors if isinstance(priors, JointPrior) else None
        each: Any = priors
        if isinstance(priors, JointPrior):
            self.released_by, each = "joint", priors.marginals(self.m)
        elif isinstance(priors, Prior):
            each = [priors] * self.m
        self._priors: list[Prior] = list(each) if isinstance(each, Iterable) else [each]
        if not all(isinstance(prior, Prior) for prior in self._priors):
            raise TypeError("priors must be a prior, a sequence of priors or a JointPrior")
        if len(self._priors) != self.m:
            raise ValueError(f"priors must be one prior or one per quantile: got {len(self._priors)} for {self.m}")

    def check(self, request: Request) -> None:
        """Refuse a grid too fine for the priors, another mechanism than joint for a joint prior, and what that cannot
        serve."""
        check_on_grid(self._priors, request.step)
        if self.joint_prior is not None and request.mechanism not in ("auto", "joint"):
            raise ValueError(f"mechanism must be 'joint' for a JointPrior, got {request.mechanism!r}")
        mechanism_for(self._own(request))

    def priors(self, features: npt.ArrayLike) -> list[Prior]:
        """The priors given at the start, whatever the features; of a joint prior each quantile's own."""
        return list(self._priors)

    def maker(self, features: npt.ArrayLike, request: Request, before: Mechanism | None = None) -> Mechanism:
        """The mechanism of the priors; under a joint prior that of the first day serves all days."""
        if self.joint_prior is None:
            return super().maker(features, request, before)
        return mechanism_for(self._own(request)) if before is None else before

    def _own(self, request: Request) -> Request:
        """The request with the priors given at the start."""
        own = distinct_priors(self._priors, request.distinct, request.positions)
        named = request.mechanism if self.joint_prior is None else "joint"
        return replace(request, priors=own, joint_prior=self.joint_prior, mechanism=named)

    def observe(self, features: npt.ArrayLike, released: npt.ArrayLike) -> None:
        """Nothing changes."""


def robust_share(weight: Any) -> float:
    """The weight of a robust prior; raises naming robust_weight."""
    share = finite_number(weight, "robust_weight")
    if not 0.0 < share < 1.0:
        raise ValueError(f"robust_weight must lie strictly between 0 and 1, got {briefly(weight)}")
    return share


class LaplacePredictor(Predictor):
    """What the predictors with Laplace priors share: guesses, the robust prior that is mixed in, and the shape.

    With `copies` it stands for that many independent predictors at once, which experiments run in lockstep; then
    `laplaces` gives arrays with a leading axis, and `observe` takes such.
    """

    def __init__(
        self,
        quantiles: Any,
        *,
        loc: npt.ArrayLike,
        scale: npt.ArrayLike,
        robust: Prior | None = None,
        robust_weight: float = ROBUST_WEIGHT,
        copies: int | None = None,
    ) -> None:
        self.quantiles = quantile_fractions(quantiles)
        self.m = len(self.quantiles)
        self.robust, self.robust_weight, self.copies = robust, robust_share(robust_weight), copies
        if robust is not None and not isinstance(robust, Prior):
            raise TypeError(f"robust must be a prior or None, got {type(robust).__name__}")
        if copies is not None:
            whole_number(copies, "copies", least=1)
        self._loc, self._scale = reals_each(loc, self.m, "loc"), reals_each(scale, self.m, "scale")
        if not np.all(self._scale > 0):
            raise ValueError("scale must be positive")

    @property
    def loc(self) -> FloatArray:
        """(m,) the guesses."""
        return read_only(self._loc.view())  # a copy of a predictor has arrays that are not

    @property
    def scale(self) -> FloatArray:
        """(m,) how far off the guesses may be."""
        return read_only(self._scale.view())

    def check(self, request: Request) -> None:
        """Refuse a grid too fine for the guesses."""
        super().check(request)
        check_on_grid((Laplace(a, b) for a, b in zip(self.loc, self.scale, strict=True)), request.step)
        if self.robust is not None:
            check_on_grid([self.robust], request.step)

    @property
    def shape(self) -> tuple[int, ...]:
        """(m,), or (copies, m)."""
        return (self.m,) if self.copies is None else (self.copies, self.m)

    @abstractmethod
    def learnt(self, features: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Locations and scales as learnt, of the predictor's shape, in the unit of the data; not finite ones too."""

    def laplaces(self, features: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Locations and scales of the Laplace priors, of the predictor's shape, in the unit of the data.

        Those that are no floats are replaced by the guesses, here and nowhere else. Raises `ValueError` by name.
        """
        with np.errstate(all="ignore"):
            loc, scale = self.learnt(features)
            usable = np.isfinite(loc) & np.isfinite(scale) & (scale > 0)
        return np.where(usable, loc, self.loc), np.where(usable, scale, self.scale)

    def priors(self, features: npt.ArrayLike) -> list[Prior]:
        """The Laplace priors, with the robust prior mixed in if there is one. Raises `ValueError` naming features."""
        if self.copies is not None:
            raise ValueError("copies must be None to make priors; see laplaces")
        loc, scale = self.laplaces(features)
        each: list[Prior] = [Laplace(a, b) for a, b in zip(loc.tolist(), scale.tolist(), strict=True)]
        if self.robust is None:
            return each
        mixed = Mixture((each[0], self.robust), (1.0 - self.robust_weight, self.robust_weight))
        return [mixed._with_first(prior) for prior in each]

    def _released(self, released: npt.ArrayLike) -> FloatArray:
        values = in_unit(released, "released")
        if values.shape != self.shape or not np.isfinite(values).all():
            raise ValueError(f"released must hold finite numbers of shape {self.shape}")
        return values


class PubPrev(LaplacePredictor):
    """A Laplace prior around the value released last, with the guessed scale (PubPrev, Section 5.3).

    quantiles: (m,). loc: where the quantiles are guessed to be on the first day, scale: how far from the last release;
    numbers or (m,), in the unit of the data. robust: prior mixed in with `robust_weight`, None for none. copies: see
    `LaplacePredictor`. Raises `TypeError` or `ValueError` naming the argument. It sees released values only, so it
    costs no privacy.

    >>> predictor = PubPrev([0.5], loc=0.0, scale=2.0)
    >>> predictor.observe([], [7.0])
    >>> predictor.priors([])
    [Laplace(loc=7.0, scale=2.0)]
    """

    def __init__(self, quantiles: Any, **options: Any) -> None:
        super().__init__(quantiles, **options)
        self._last = np.broadcast_to(self.loc, self.shape)

    def learnt(self, features: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """The values released last and the guessed scales."""
        return self._last.copy(), np.broadcast_to(self.scale, self.shape)

    def observe(self, features: npt.ArrayLike, released: npt.ArrayLike) -> None:
        """Remember the released values."""
        self._last = self._released(released).copy()
