"""The tasks and methods of the sequential experiments: guesses, priors and public resolutions (Appendix C.3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

import pq
import pqlab.data
from pq.core.priors import Prior
from pq.datasets import DatasetSequence
from pq.learners import private_noise_std, square_root_variances
from pq.sequential import DPLearned, NonPrivate, Predictor, PubPrev, PubProx, Static
from pqlab.experiments.static import even_quantiles, stream

FloatArray = npt.NDArray[np.float64]
QUANTILES = even_quantiles(9)


@dataclass(frozen=True)
class Task:
    """A sequence of data sets, and what is guessed about it before the first.

    load: (days, trial, seed) -> the sequence; the same for every trial if `shared`. loc, scale: the guesses nu and
    sigma. low, high: by quantile, the ends of the uniform prior. resolution: public step of the data, in their unit.
    tied: whether values repeat because they are recorded in that step. The mechanism then sees each record at a uniform
    place within its step, drawn independently of all else, and its outputs are rounded back to the step: both cost no
    privacy, and ties are treated as on a grid. nonnegative: the robust prior is a half-Cauchy of scale nu at zero.
    """

    label: str
    unit: str
    load: Callable[[int | None, int, int], DatasetSequence]
    shared: bool
    loc: float
    scale: float
    low: Callable[[float], float]
    high: Callable[[float], float]
    resolution: float
    tied: bool
    nonnegative: bool = False

    @property
    def robust(self) -> Prior:
        """The robust prior: Cauchy, or half-Cauchy where data cannot be negative."""
        return pq.HalfCauchy(self.loc) if self.nonnegative else pq.Cauchy(self.loc, self.scale)

    def uniform(self, quantiles: Sequence[Fraction]) -> list[Prior]:
        """The uniform prior of each quantile."""
        return [pq.Uniform(self.low(float(q)), self.high(float(q))) for q in quantiles]


def first_days(data: DatasetSequence, days: int | None) -> DatasetSequence:
    """The first days of a sequence, all for None."""
    if days is None or days >= len(data):
        return data
    facts = {name: getattr(data, name) for name in ("feature_names", "name", "unit", "provenance", "licence")}
    return DatasetSequence(data.days[:days], data.datasets[:days], data.features[:days], **facts)


def broken(data: DatasetSequence, day: int, factor: float = 60.0) -> DatasetSequence:
    """The sequence with all records from a day on multiplied: as if minutes were suddenly recorded as seconds.

    >>> days = broken(pq.datasets.flights("air_time"), 200)
    >>> [round(float(np.median(days.datasets[i]))) for i in (199, 200)]
    [121, 7710]
    """
    facts = {name: getattr(data, name) for name in ("feature_names", "name", "unit", "provenance", "licence")}
    datasets = tuple(x if i < day else x * factor for i, x in enumerate(data.datasets))
    return DatasetSequence(data.days, datasets, data.features, **facts)


def _synthetic(noise: float, default: int) -> Callable[[int | None, int, int], DatasetSequence]:
    def load(days: int | None, trial: int, seed: int) -> DatasetSequence:
        rng = stream(seed, "synthetic", noise, trial)
        return pq.datasets.synthetic(default if days is None else days, rng=rng, noise=noise)

    return load


@cache
def _comments() -> DatasetSequence:
    return pqlab.data.bbc()


TASKS: dict[str, Task] = {
    "synthetic": Task(
        "Synthetic, noiseless", "", _synthetic(0.0, 100_000), False, 0, 1, lambda q: -100, lambda q: 100, 0.01, False
    ),
    "synthetic_noisy": Task(
        "Synthetic, Poisson 5", "", _synthetic(5.0, 2500), False, 0, 1, lambda q: -100, lambda q: 100, 0.01, False
    ),
    "flights_delay": Task(
        "flights: departure delay",
        "minutes",
        lambda days, trial, seed: first_days(pq.datasets.flights("dep_delay"), days),
        True,
        0,
        10,
        lambda q: -60,
        lambda q: 100 / (1 - q),
        1.0,
        True,
    ),
    "flights_air_time": Task(
        "flights: air time",
        "minutes",
        lambda days, trial, seed: first_days(pq.datasets.flights("air_time"), days),
        True,
        120,
        20,
        lambda q: 0,
        lambda q: 100 / (1 - q),
        1.0,
        True,
        nonnegative=True,
    ),
    "flights_break": Task(
        "flights: air time, in seconds from July on",
        "minutes, then seconds",
        lambda days, trial, seed: first_days(broken(pq.datasets.flights("air_time"), 181), days),
        True,
        120,
        20,
        lambda q: 0,
        lambda q: 100 / (1 - q),
        1.0,
        True,
        nonnegative=True,
    ),
    "citibike": Task(
        "CitiBike",
        "minutes",
        lambda days, trial, seed: first_days(pqlab.data.citibike(), days),
        True,
        10,
        1,
        lambda q: 0,
        lambda q: 50 / (1 - q),
        1 / 60,
        True,
        nonnegative=True,
    ),
    "bbc": Task(
        "BBC: comments by article",
        "Flesch reading ease",
        lambda days, trial, seed: first_days(_comments(), days),
        True,
        50,
        10,
        lambda q: -100 - 100 / (1 - q),
        lambda q: 100 + 100 * q,
        0.01,
        True,
    ),
    "worldnews": Task(
        "worldnews headlines by week",
        "Flesch reading ease",
        lambda days, trial, seed: first_days(pqlab.data.worldnews_weekly(), days),
        True,
        50,
        10,
        lambda q: -100 - 100 / (1 - q),
        lambda q: 100 + 100 * q,
        0.01,
        True,
    ),
}

METHODS: dict[str, str] = {
    "uniform": "Uniform",
    "cauchy": "Cauchy",
    "half_cauchy": "half-Cauchy",
    "laplace": "Laplace",
    "prev": "PubPrev",
    "prev_plain": "PubPrev, not robust",
    "prox": "PubProx",
    "prox_plain": "PubProx, not robust",
    "prox_blind": "PubProx that sees no data",
    "dp": "DPLearned",
    "open": "NonPrivate",
}
# A blind method learns from releases of days without records, which tell nothing. What it gains over static priors
# comes from the shapes that learning passes through, not from what is learnt; a static Laplace prior has only the shape
# from which it starts.
BLIND = ("prox_blind",)
CONTROLS = ("laplace", *BLIND)
LEARNING_DELTA = 1e-6


@dataclass(frozen=True)
class Private:
    """How DPLearned spends and moves.

    share: part of epsilon that is spent on learning; map_share: part of that for v, the rest is for phi. clip: see
    `DPLearned`. wander: standard deviation that the noise may give to each coordinate of v and of phi on the last day,
    in guessed scales: it sets the step sizes, from public numbers alone.
    """

    share: Fraction = Fraction(1, 5)
    map_share: Fraction = Fraction(4, 5)
    clip: tuple[float, float] = (1.0, 0.3)
    wander: tuple[float, float] = (0.35, 0.1)

    def options(self, epsilon: float, days: int) -> dict[str, Any]:
        """Arguments of `DPLearned` for a budget and a number of days."""
        spent = Fraction(str(epsilon)) * self.share
        end = math.sqrt(square_root_variances(days)[-1])
        steps = []
        for part, clip, wander in zip((self.map_share, 1 - self.map_share), self.clip, self.wander, strict=True):
            budget: dict[str, Any] = {"epsilon": float(spent * part), "delta": LEARNING_DELTA * float(part)}
            noise = private_noise_std(days, gradient_sensitivity=2 * clip, mechanism="square-root", **budget)
            steps.append(wander / (noise * end))
        own = {"steps": days, "epsilon": spent, "delta": LEARNING_DELTA, "map_share": self.map_share}
        return own | {"step": tuple(steps), "clip": self.clip, "mechanism": "square-root"}


class SideBySide(DPLearned):
    """Private learners of several budgets, each of which stands for some copies, as one that stands for all of them."""

    def __init__(self, each: Sequence[Any]) -> None:
        vars(self).update(vars(each[0]))
        self.each: Sequence[DPLearned] = each
        self.copies = sum(one.copies for one in each)

    def parameters(self) -> tuple[FloatArray, FloatArray]:
        maps, phi = zip(*(one.parameters() for one in self.each), strict=True)
        return np.concatenate(maps), np.concatenate(phi)

    def learn_intervals(self, features: npt.ArrayLike, lower: FloatArray, upper: FloatArray) -> None:
        """One private step of each."""
        parts = (np.split(gradient, len(self.each)) for gradient in self.gradients(features, lower, upper))
        for one, by_map, by_phi in zip(self.each, *parts, strict=True):
            one.descend((by_map, by_phi))


def make_predictor(
    method: str,
    task: Task,
    dimension: int,
    days: int,
    copies: int | None,
    epsilon: float,
    rng: Any,
    private: Private,
    quantiles: Sequence[Fraction] = tuple(QUANTILES),
) -> Predictor:
    """The predictor of a method for that many trials in lockstep; `epsilon` is the budget of a data set.

    >>> task = TASKS["citibike"]
    >>> make_predictor("half_cauchy", task, 14, 10, 1, 1.0, 0, Private()).priors([])[0]
    HalfCauchy(scale=10.0, loc=0.0)
    """
    if method not in METHODS:
        raise ValueError(f"methods must be among {', '.join(METHODS)}, got {method!r}")
    match method:
        case "uniform":
            return Static(task.uniform(quantiles), quantiles)
        case "cauchy":
            return Static(pq.Cauchy(task.loc, task.scale), quantiles)
        case "half_cauchy":
            return Static(pq.HalfCauchy(task.loc or task.scale), quantiles)
        case "laplace":
            return Static(pq.Laplace(task.loc, task.scale), quantiles)
    robust = None if method.endswith("_plain") else task.robust
    options: dict[str, Any] = {"loc": task.loc, "scale": task.scale, "robust": robust, "copies": copies}
    if method.startswith("prev"):
        return PubPrev(quantiles, **options)
    options |= {"resolution": task.resolution, "dimension": dimension}
    if method.startswith("prox"):
        return PubProx(quantiles, **options)
    if method == "open":
        return NonPrivate(quantiles, **options)
    return DPLearned(quantiles, rng=rng, **private.options(epsilon, days), **options)
