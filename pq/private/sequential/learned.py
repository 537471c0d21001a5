"""Predictors that learn Laplace priors whose locations are linear in public features (Section 5.3, `thm:sequential`).

The prior of quantile i has location `<v_i, f> / phi_i` and scale `1 / phi_i`, in units of the guessed scale around the
guessed location; the loss of a quantile is minus the log mass of an interval, convex in v and phi. What differs is the
interval: around the released value (PubProx), or the true one, widened to the resolution where it is narrower, of which
DPLearned sees a private and NonPrivate the exact gradient. COCOB minimises each quantile's loss on its own. DP-FTRL
minimises the log of the sum of their exponentials, as in the theorem: its gradient, as a whole, is no longer than that
of a single quantile.

Four choices, and why they are what they are; the paper leaves all but the origin of the units open.
Intercept: a constant feature is added, since Synthetic's quantiles have one, `<a, f> + b_i`, and since without it every
prior would sit at the guess on a day whose standardised features are 0.
Units: guessed scales around the guessed location. COCOB starts at v = 0 and phi = 1, the guessed prior, and its steps
would otherwise depend on whether the data are in minutes or in seconds. In the paper `<v_i, f> / phi_i` is the location
itself, so that each step of phi moves it: another way from the same prior (page 08b says what it changes).
Box of phi: compact, as `thm:sequential` needs. A scale is at most 100 guessed ones, since wider says nothing, and at
least a quarter of the resolution, since narrower only takes mass from the neighbouring values.
Resolution: the public step of the data. Synthetic has none, and 0.01 is a hundredth of the guessed scale. Little
depends on it: after 900 days at budget 1 errors at 0.001 and 0.1 differ from those at 0.01 by less than half a record,
and at ten guessed scales are larger by more than three (`tests/private/test_resolution.py`).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pq.core.arrays import read_only
from pq.core.choices import OnNan
from pq.core.exact import briefly, budget_fraction, decimal_fraction, whole_number
from pq.core.learners import COCOB, private_noise_std
from pq.core.learners.gradient import steady
from pq.core.losses.laplace import laplace_interval_learned
from pq.core.priors.arguments import finite_number, positive
from pq.private.columns.frames import records_of
from pq.private.noise import Normals
from pq.private.noise_ftrl import DPFTRL, shorten
from pq.private.sequential.predictors import FloatArray, LaplacePredictor, PrivatePredictor, Standardise

_SHARPEST = 4.0  # a scale of a quarter of the resolution puts 86% of the prior on one value of the data
_FARTHEST = 1e9  # guessed scales: what is farther from the guess counts as that far
_LEAST_SHARE = 1e-30  # of a quantile in the loss; less tells nothing, and its square would underflow
_NARROWEST = 1e-300  # guessed scales: no interval is taken to be narrower, for the floats end there; nor a gradient
_WIDEST = 100.0  # guessed scales: no learnt prior is wider


class LinearPredictor(LaplacePredictor):
    """Laplace priors with locations linear in the features, and the loss that they are learnt from.

    resolution: public resolution of the data in their unit, positive: narrower intervals are widened to it, and no
    prior's scale is below a quarter of it. dimension: number d of features. standardise: public constants for them.
    """

    joint: ClassVar[bool]  # whether the loss is the log of the sum of exponentials, or simply the sum

    def __init__(
        self,
        quantiles: Any,
        *,
        resolution: float,
        dimension: int,
        standardise: Standardise | None = None,
        **options: Any,
    ) -> None:
        super().__init__(quantiles, **options)
        self.resolution = positive(resolution, "resolution")
        self.dimension = whole_number(dimension, "dimension")
        self.standardise = Standardise() if standardise is None else standardise

    @property
    def width(self) -> FloatArray:
        """(m,) `resolution` in guessed scales."""
        with np.errstate(all="ignore"):
            return read_only(np.clip(self.resolution / self.scale, _NARROWEST, 1.0 / _NARROWEST))

    @property
    def phi_range(self) -> tuple[FloatArray, FloatArray]:
        """(m,) least and largest inverse scales."""
        return read_only(np.full(self.m, 1.0 / _WIDEST)), read_only(np.maximum(_SHARPEST / self.width, 1.0))

    def known(self, features: npt.ArrayLike) -> FloatArray:
        """Standardised features with the constant, (d + 1,), or (copies, d + 1) if each copy has its own."""
        known = self.standardise(np.reshape(features, (-1,)) if self.copies is None else features)
        if known.shape[-1] != self.dimension + 1 or known.shape[:-1] not in ((), (self.copies,)):
            raise ValueError(f"features must be {self.dimension} numbers, got shape {np.shape(features)}")
        return known

    def parameters(self) -> tuple[FloatArray, FloatArray]:
        """The current v (..., m, d + 1) and phi (..., m)."""
        raise NotImplementedError

    def learnt(self, features: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Locations and scales for the day with these features. Raises `ValueError` naming features."""
        maps, phi = self.parameters()
        theta = _inner(maps, self.known(features))
        centre = np.minimum(np.maximum(theta / phi, -_FARTHEST), _FARTHEST)
        return self.loc + self.scale * centre, self.scale / phi

    def gradients(self, features: npt.ArrayLike, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient of the loss on intervals (..., m) in the unit of the data, by v (..., m, d + 1) and phi (..., m)."""
        maps, phi = self.parameters()
        known = self.known(features)
        theta, units = _inner(maps, known), (self.loc, self.scale, self.width)
        losses, d_theta, d_phi = laplace_interval_learned(theta, phi, lower, upper, *units)
        with np.errstate(all="ignore"):
            if not self.joint:
                return d_theta[..., None] * known[..., None, :], d_phi
            share = np.exp(losses - losses.max(axis=-1, keepdims=True))  # finite: widened intervals
            share /= share.sum(axis=-1, keepdims=True)
            share = np.where(share > _LEAST_SHARE, share, 0.0)
        by_map = (share * d_theta)[..., None] * known[..., None, :]
        return by_map, share * d_phi


def _inner(maps: FloatArray, known: FloatArray) -> FloatArray:
    """<v_i, f> for each quantile, (..., m)."""
    return np.asarray(np.matmul(maps, known[..., None])[..., 0])


def optimal_interval(x: Any, quantiles: tuple[Fraction, ...], on_nan: str = "drop") -> tuple[FloatArray, FloatArray]:
    """Ends (m,) of the interval from the record of rank `floor(q n)` to the next, of each quantile: private numbers.

    >>> optimal_interval([3.0, 1.0, 2.0], (Fraction(1, 2),))
    (array([1.]), array([2.]))
    """
    values, before = records_of(x, on_nan)
    n = len(values) if before is None else int(before[-1])
    ranks = np.array([q.numerator * n // q.denominator for q in quantiles])
    places = np.stack([ranks, ranks + 1])  # of the records, counted from one; before the first and after the last: ends
    if before is not None:
        places = np.searchsorted(before[:-1], places) * (places <= n) + (len(values) + 1) * (places > n)
    ends = np.concatenate([[-np.inf], values, [np.inf]])
    return ends[places[0]], ends[places[1]]


class _CoinLearner(LinearPredictor):
    """Learning by COCOB, for each quantile on its own: one learner keeps the coordinates of all apart.

    With the joint loss the worst quantile would get all the attention, and at small budgets that is the one whose
    release was a freak. Neither loss is better everywhere: page 08b has a task with more error by the joint one, and
    one with less.
    """

    joint = False

    def __init__(self, quantiles: Any, **options: Any) -> None:
        super().__init__(quantiles, **options)
        shape = (*self.shape, self.dimension + 2)
        start, low, high = np.zeros(shape), np.full(shape, -_FARTHEST), np.full(shape, _FARTHEST)
        start[..., -1], low[..., -1], high[..., -1] = 1.0, *self.phi_range
        self._learner = COCOB(start, lower=low, upper=high)

    def parameters(self) -> tuple[FloatArray, FloatArray]:
        point = self._learner.point
        return point[..., :-1], point[..., -1]

    def _descend(self, features: npt.ArrayLike, lower: FloatArray, upper: FloatArray) -> None:
        by_map, by_phi = self.gradients(features, lower, upper)
        self._learner.update(steady(np.concatenate([by_map, by_phi[..., None]], axis=-1)))


class PubProx(_CoinLearner):
    """Learns by COCOB from proxy losses: the interval of the public resolution's width around each released value.

    It is the PubProx of the paper (Section 5.3).

    quantiles: (m,). loc, scale: guesses of the quantiles and of their spread, numbers or (m,), in the unit of the data:
    the first priors. resolution: public resolution of the data (the radius is half of it). dimension: number of
    features; standardise: public constants for them. robust: prior mixed in with `robust_weight`, None for none.
    copies: see `LaplacePredictor`. Raises `TypeError` or `ValueError` naming the argument. It sees released values
    only, so it costs no privacy.

    >>> predictor = PubProx([0.5], loc=0.0, scale=1.0, resolution=0.1, dimension=1)
    >>> for day in range(1000):
    ...     predictor.observe([day % 2], [5.0 + day % 2])
    >>> prior, = predictor.priors([1])
    >>> abs(prior.loc - 6) < 1 and prior.scale < 1
    True
    """

    def observe(self, features: npt.ArrayLike, released: npt.ArrayLike) -> None:
        """One step on the proxy loss of the released values."""
        values = self._released(released)
        self._descend(features, values - 0.5 * self.resolution, values + 0.5 * self.resolution)


class NonPrivate(_CoinLearner, PrivatePredictor):
    """Learns by COCOB from the true losses: for comparison only, it protects nobody (Section 5.3, Fig. `timeplots`).

    The optimal intervals are widened to the resolution where they are narrower, which the paper's are not.

    Arguments as for `PubProx`, and on_nan as for `pq.release`. Its `epsilon` is infinite, and so is that of every
    release made with its priors.

    >>> NonPrivate([0.5], loc=0.0, scale=1.0, resolution=0.1, dimension=0).epsilon
    inf
    """

    epsilon = math.inf
    delta = 0.0

    def __init__(self, quantiles: Any, *, on_nan: OnNan = "drop", **options: Any) -> None:
        super().__init__(quantiles, **options)
        self._on_nan = on_nan

    def observe(self, features: npt.ArrayLike, released: npt.ArrayLike) -> None:
        """Nothing: it knows better."""

    def learn(self, features: npt.ArrayLike, x: Any) -> None:
        """One step on the true loss of the records."""
        self.learn_intervals(features, *optimal_interval(x, self.quantiles, self._on_nan))

    def learn_intervals(self, features: npt.ArrayLike, lower: FloatArray, upper: FloatArray) -> None:
        """One step on the true loss, of intervals (..., m) that are known already; for experiments."""
        self._descend(features, lower, upper)


class DPLearned(LinearPredictor, PrivatePredictor):
    """Learns privately from the true losses by two runs of DP-FTRL, one on v and one on phi (`thm:sequential`).

    quantiles, loc, scale, resolution, dimension, standardise, robust, copies: as for `PubProx`.
    steps: planned number T of data sets; a `learn` more raises `StepsExceeded` before it looks.
    epsilon, delta: budget of the learning, positive: all priors of all days together are (epsilon, delta)-private for
        a person whose records are all in one data set, whatever they are and however many (whole data sets may be
        swapped). It comes on top of what the releases cost.
    map_share: part of both budgets that goes to the run on v; the rest goes to phi.
    step: step sizes of the runs on v and on phi, in guessed scales. clip: bounds on the Euclidean norms of the two
        gradients, enforced by shortening; the sensitivity is twice that.
    reach: box for every coordinate of v. mechanism: "tree", "tree-refined" or "square-root" (least noise).
    on_nan: as for `pq.release`. rng: a generator or a seed for tests; without it noise comes from the operating system
        at every step.

    Raises `TypeError` or `ValueError` naming the argument.

    >>> predictor = DPLearned([0.5], loc=0.0, scale=1.0, resolution=0.1, dimension=2, steps=100, epsilon=1.0,
    ...                       delta=1e-6)
    >>> predictor.epsilons
    (Fraction(1, 2), Fraction(1, 2))
    """

    joint = True

    def __init__(
        self,
        quantiles: Any,
        *,
        steps: int,
        epsilon: Any,
        delta: float,
        map_share: Any = Fraction(1, 2),
        step: tuple[float, float] = (0.01, 0.01),
        clip: tuple[float, float] = (1.0, 1.0),
        reach: float = 100.0,
        mechanism: str = "square-root",
        on_nan: OnNan = "drop",
        rng: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(quantiles, **options)
        if len(set(self.quantiles)) < self.m:
            raise ValueError("quantiles must differ: each learns with noise of its own")
        if not 0 < decimal_fraction(delta, "delta") < 1:
            raise ValueError(f"delta must lie strictly between 0 and 1, got {briefly(delta)}")
        self.epsilon, self.delta = budget_fraction(epsilon), float(delta)
        share = budget_fraction(map_share, "map_share")
        if not isinstance(self.epsilon, Fraction):
            raise ValueError("epsilon must be finite")
        if not isinstance(share, Fraction) or share >= 1:
            raise ValueError(f"map_share must lie strictly between 0 and 1, got {briefly(map_share)}")
        if not all(_NARROWEST <= decimal_fraction(bound, "clip") <= 1.0 / _NARROWEST for bound in clip):
            raise ValueError(
                f"clip must be two numbers from {_NARROWEST:g} to {1.0 / _NARROWEST:g}, not {briefly(clip)}"
            )
        self.epsilons = self.epsilon * share, self.epsilon * (1 - share)
        self.deltas = self.delta * float(share), self.delta * float(1 - share)
        self.clip, self.steps, self.mechanism, self._on_nan = tuple(map(float, clip)), steps, mechanism, on_nan
        streams = [None, None] if rng is None else np.random.default_rng(rng).spawn(2)
        self._taken, self._normals = 0, tuple(map(Normals, streams))
        starts, end = (np.zeros((*self.shape, self.dimension + 1)), np.ones(self.shape)), finite_number(reach, "reach")
        boxes: tuple[tuple[Any, Any], ...] = (-end, end), self.phi_range
        self._runs = tuple(
            DPFTRL(
                start,
                steps=steps,
                step=positive(finite_number(eta, "step"), "step"),
                noise_std=self._noise(part),
                rng=normals,
                lower=box[0],
                upper=box[1],
                mechanism=mechanism,
                clip=None if self.copies else bound,
            )
            for part, (start, eta, bound, box, normals) in enumerate(
                zip(starts, step, clip, boxes, self._normals, strict=True)
            )
        )

    def _noise(self, part: int) -> float:
        """Standard deviation of the noise of a run; two clipped gradients differ by at most twice the bound."""
        return private_noise_std(
            self.steps,
            epsilon=float(self.epsilons[part]) * (1.0 - 1e-12),
            delta=self.deltas[part] * (1.0 - 1e-12),
            gradient_sensitivity=2.0 * self.clip[part],
            mechanism=self.mechanism,
        )

    def parameters(self) -> tuple[FloatArray, FloatArray]:
        return self._runs[0].point, self._runs[1].point

    def observe(self, features: npt.ArrayLike, released: npt.ArrayLike) -> None:
        """Nothing: it learns from the losses."""

    def renew(self, rng: np.random.Generator | None) -> None:
        """Noise that was drawn stays; the rest will come from streams of this one, or from the operating system."""
        for normals in self._normals:  # the runs hold the same objects
            normals.renew(rng)

    @property
    def steps_left(self) -> float:
        """How many data sets it can still learn from."""
        return self.steps - self._taken

    def learn(self, features: npt.ArrayLike, x: Any) -> None:
        """One private step of both runs on the loss of the records; an empty data set is a step like any other."""
        self.check_step()
        self.learn_intervals(features, *optimal_interval(x, self.quantiles, self._on_nan))

    def learn_intervals(self, features: npt.ArrayLike, lower: FloatArray, upper: FloatArray) -> None:
        """One private step, on the loss of intervals (..., m) that are known already; for experiments."""
        self.descend(self.gradients(features, lower, upper))

    def descend(self, gradients: tuple[FloatArray, FloatArray]) -> None:
        """One private step along gradients by v and by phi that are known already; for experiments."""
        self.check_step()
        self._under_way = True  # an interrupt between the two runs leaves them at different steps
        self.used, self._taken = True, self._taken + 1
        for run, gradient, bound in zip(self._runs, gradients, self.clip, strict=True):
            run.update(gradient if self.copies is None else shorten(gradient, bound, 1))  # alone it clips by itself
        self._under_way = False
