"""Sequential release over time and against epsilon (Figs. `timeplots`, `online-logepsplots`, `worldnews-logepsplots`).

Trials and budgets run in lockstep: one predictor holds the state of all of them. Every release is that of `pq.release`,
from the uniforms of a stream that the cell's name gives.

See `pqlab.experiments.figures` for the paper's own parameters, and `pq reproduce`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from pq.core.choices import Calibration
from pq.core.exact import budget_fraction
from pq.core.losses import laplace_interval
from pq.core.plan import PlanArrays, plan_for
from pq.core.priors import Laplace, Prior
from pq.core.request import Request
from pq.datasets import DatasetSequence
from pq.private.columns.cells import Points
from pq.private.fast import lanes
from pq.private.fast.encode import Tables, encode
from pq.private.mechanisms.tree import Tree
from pq.private.sequential.predictors import LaplacePredictor
from pq.sequential import Predictor, PrivatePredictor, Static
from pqlab.experiments.lane_gaps import lane_max_gaps
from pqlab.experiments.sequential_tasks import (
    BLIND,
    CONTROLS,
    METHODS,
    TASKS,
    Private,
    SideBySide,
    Task,
    make_predictor,
)
from pqlab.experiments.static import even_quantiles, stream
from pqlab.experiments.table import Row, mean_and_error

FloatArray = npt.NDArray[np.float64]
BINS = 100
AHEAD = 16  # releases of which uniforms are drawn at a time
RESULTS = Path(__file__).resolve().parents[2] / "results" / "sequential"  # of `pq reproduce --profile paper`
BLOCK = 20  # trials in lockstep


@dataclass(frozen=True)
class Cell:
    """One method at one budget, for a block of trials.

    calibration: of every release; "paper": ranks floor(q n), gaps of sensitivity one. every: days from one release
    to the next that is made, for methods whose priors do not need the releases; the others make all of them.
    """

    task: str
    method: str
    epsilon: float
    days: int | None = None
    first_trial: int = 0
    trials: int = BLOCK
    every: int = 1
    seed: int = 0
    m: int = 9
    calibration: Calibration = "sharp"


class Day:
    """The data sets of one day, of all trials or one for all: as the mechanism sees them, and as they are."""

    def __init__(self, records: Sequence[FloatArray], task: Task, rng: np.random.Generator) -> None:
        self.task = task
        seen = [np.sort(x + task.resolution * (rng.random(len(x)) - 0.5)) for x in records] if task.tied else records
        self.sizes = np.array([len(x) for x in records])
        self.columns = _padded(seen, self.sizes)
        self._targets: tuple[Sequence[Fraction], npt.NDArray[np.int64]] | None = None
        self._as_they_are = _padded(records, self.sizes) if task.tied else self.columns

    def emptied(self) -> Day:
        """The day as one without records, of which a release tells nothing."""
        empty = copy.copy(self)
        empty.sizes, empty._targets = np.zeros_like(self.sizes), None
        return empty

    def targets(self, quantiles: Sequence[Fraction]) -> npt.NDArray[np.int64]:
        """The ranks `floor(q n)`, (trials or 1, m)."""
        if self._targets is None or self._targets[0] is not quantiles:
            whole = self.sizes[:, None] * [q.numerator for q in quantiles]
            self._targets = quantiles, whole // np.array([q.denominator for q in quantiles])
        return self._targets[1]

    def intervals(self, quantiles: Sequence[Fraction]) -> tuple[FloatArray, FloatArray]:
        """Ends of the optimal intervals, (trials or 1, m)."""
        ranks, rows = self.targets(quantiles), np.arange(len(self.sizes))[:, None]
        ends = np.pad(self.columns, ((0, 0), (1, 1)), constant_values=((0, 0), (-np.inf, np.inf)))
        return ends[rows, ranks], ends[rows, ranks + 1]

    def max_gaps(self, values: FloatArray, quantiles: Sequence[Fraction]) -> npt.NDArray[np.int64]:
        """Largest gaps (lanes,) of released values (lanes, m) on the records as they are (`eq:gap`; see `pq.gap`)."""
        gaps: Any = lane_max_gaps
        return gaps(self._as_they_are, self.sizes, self.targets(quantiles), np.ascontiguousarray(values))


def _padded(columns: Sequence[FloatArray], sizes: npt.NDArray[np.int64]) -> FloatArray:
    out = np.full((len(columns), int(sizes.max())), np.inf)
    for row, x in zip(out, columns, strict=True):
        row[: len(x)] = x
    return out


class Releaser:
    """Releases of all lanes of a day, each with its own priors and uniforms: lane e * trials + t has the data of trial
    t and the budget number e."""

    def __init__(
        self,
        epsilons: Sequence[Any],
        trials: int,
        streams: Sequence[np.random.Generator],
        quantiles: Any,
        calibration: Calibration,
    ) -> None:
        self.calibration: Calibration = calibration
        fixed: tuple[Any, ...] = "add-remove", calibration, 2, Fraction(0)
        self.quantiles, self.epsilons = tuple(quantiles), epsilons
        self.plans = [plan_for(self.quantiles, epsilon, *fixed) for epsilon in epsilons]
        self.trials, self.streams = trials, streams
        assert self.plans[0].arrays is not None
        self.arrays: PlanArrays = self.plans[0].arrays
        rates = [plan.arrays.rates for plan in self.plans if plan.arrays is not None]
        self.rates = np.repeat(np.concatenate(rates), trials, axis=0)
        self.slow = 0  # releases that took the long way
        self._ahead = iter(())  # uniforms of the next releases
        self._tables: tuple[Predictor, Tables] | None = None

    def _uniforms(self) -> FloatArray:
        """Those of the next release, (lanes, m, 2): every stream is drawn from for some releases at a time."""
        drawn: FloatArray | None = next(self._ahead, None)
        if drawn is None:
            shape = (AHEAD, self.trials, len(self.plans[0].distinct), 2)
            some = np.concatenate([rng.integers(1, 2**53, shape) for rng in self.streams], axis=1)
            self._ahead = iter(some * 2.0**-53)
            drawn = next(self._ahead)
        return drawn

    def __call__(self, day: Day, predictor: Predictor, features: FloatArray) -> FloatArray:
        uniforms = self._uniforms()
        known = None if self._tables is None or self._tables[0] is not predictor else self._tables[1]
        parts, counts = tables(predictor, features, known)
        self._tables = predictor, (parts, counts)
        floored = self.calibration == "paper"
        values = lanes.run(
            self.arrays, floored, False, day.columns, day.sizes, parts, counts, uniforms, rates=self.rates
        )
        beyond = np.flatnonzero(np.isnan(values[:, 0])).tolist()
        for lane in beyond:
            values[lane] = self._long_way(day, predictor, features, lane, uniforms[lane])
        self.slow += len(beyond)
        return np.asarray(np.rint(values / day.task.resolution) * day.task.resolution if day.task.tied else values)

    def _long_way(self, day: Day, predictor: Predictor, features: FloatArray, lane: int, uniforms: FloatArray) -> Any:
        row = lane % len(day.sizes)
        priors = tuple(_priors(predictor, features, lane))
        budget = self.epsilons[lane // self.trials]
        tree = Tree(Request.of(self.quantiles, epsilon=budget, priors=priors, calibration=self.calibration))
        with np.errstate(all="ignore"):
            return tree.walked(Points(day.columns[row, : day.sizes[row]]), uniforms.tolist())


def _priors(predictor: Predictor, features: FloatArray, lane: int) -> list[Prior]:
    if not isinstance(predictor, LaplacePredictor):
        return predictor.priors(features)
    loc, scale = predictor.laplaces(features)
    each: list[Prior] = [Laplace(float(a), float(b)) for a, b in zip(loc[lane], scale[lane], strict=True)]
    return each if predictor.robust is None else [p.mix(predictor.robust, predictor.robust_weight) for p in each]


def tables(predictor: Predictor, features: FloatArray, known: Tables | None = None) -> Tables:
    """What `pq.private.fast.lanes.run` takes as priors: of all lanes, or one for all.

    known: the same of this predictor on another day, which is overwritten.
    """
    if known is not None and isinstance(predictor, Static):
        return known
    if known is not None and isinstance(predictor, LaplacePredictor):
        known[0][:, :, 0, 1], known[0][:, :, 0, 2] = predictor.laplaces(features)
        return known
    if not isinstance(predictor, LaplacePredictor):
        table = encode(predictor.priors(features))
        assert table is not None
        return table
    loc, scale = predictor.laplaces(features)
    one = Laplace(0.0, 1.0)
    table = encode([one if predictor.robust is None else one.mix(predictor.robust, predictor.robust_weight)])
    assert table is not None
    parts = np.tile(table[0][0], (*loc.shape, 1, 1))
    parts[:, :, 0, 1], parts[:, :, 0, 2] = loc, scale
    return parts, np.full(loc.shape, table[1][0, 0])


def run_cell(cell: Cell, *, private: Private | None = None, progress: bool = False) -> npt.NDArray[np.int32]:
    """Largest gap over the quantiles on every day of every trial, (days, trials), in records; -1 where none was made.

    The data of a trial, and the places of tied records, are the same for every method and epsilon.

    >>> run_cell(Cell("synthetic", "prox", 1.0, days=5, trials=2)).shape
    (5, 2)
    """
    return run_cells(cell, [cell.method], [cell.epsilon], private=private, progress=progress)[cell.method, cell.epsilon]


def run_cells(
    cell: Cell,
    methods: Sequence[str],
    epsilons: Sequence[float],
    *,
    private: Private | None = None,
    progress: bool = False,
    make: Callable[..., Predictor] = make_predictor,
    watch: Callable[[Lockstep, int, Day, FloatArray], None] | None = None,
) -> dict[tuple[str, float], npt.NDArray[np.int32]]:
    """`run_cell` for a cell with each of some methods and budgets: the same numbers, in a fraction of the time.

    make: the predictor of a method, from the arguments of `make_predictor`. watch: is shown each method before its
    release of a day, as (method, day number, data, features).
    """
    if cell.task not in TASKS:
        raise ValueError(f"task must be among {', '.join(TASKS)}, got {cell.task!r}")
    task, trials = TASKS[cell.task], range(cell.first_trial, cell.first_trial + cell.trials)
    data = [task.load(cell.days, trial, cell.seed) for trial in ([0] if task.shared else trials)]
    days, quantiles = len(data[0]), even_quantiles(cell.m)
    groups = [
        Lockstep(replace(cell, method=method), list(epsilons), data[0], private or Private(), make)
        for method in methods
    ]
    places = stream(cell.seed, "places", cell.task, cell.first_trial)
    for t in tqdm(range(days), disable=None if progress else True, unit="day", desc=cell.task):
        day = Day([sequence.datasets[t] for sequence in data], task, places)
        features = data[0].features[t][None] if task.shared else np.array([s.features[t] for s in data])
        for group in groups:
            if watch is not None:
                watch(group, t, day, features)
            group.step(t, day, features, quantiles)
    return {(g.cell.method, e): gaps for g in groups for e, gaps in zip(g.epsilons, g.split(), strict=True)}


class Lockstep:
    """A method on all trials of a cell with some budgets, one day after another."""

    def __init__(
        self,
        cell: Cell,
        epsilons: Sequence[float],
        data: DatasetSequence,
        private: Private,
        make: Callable[..., Predictor] = make_predictor,
    ) -> None:
        self.cell, self.epsilons = cell, epsilons
        days, dimension, quantiles = len(data), data.features.shape[1], even_quantiles(cell.m)
        names = [(cell.task, cell.method, epsilon, days, cell.first_trial, cell.m) for epsilon in epsilons]
        self.copies = cell.trials * len(epsilons)
        task = TASKS[cell.task]
        budgets = [budget_fraction(epsilon) for epsilon in epsilons]
        if cell.method == "dp":  # its steps and its noise depend on the budget
            each = [
                make(
                    "dp", task, dimension, days, cell.trials, epsilon, stream(cell.seed, "learning", *name), private,
                    quantiles,
                )
                for epsilon, name in zip(epsilons, names, strict=True)
            ]  # fmt: skip
            self.predictor: Predictor = SideBySide(each)
            budgets = [budget - one.epsilon for budget, one in zip(budgets, self.predictor.each, strict=True)]
        else:
            learning = stream(cell.seed, "learning", *names[0])
            self.predictor = make(
                cell.method, task, dimension, days, self.copies, epsilons[0], learning, private, quantiles
            )
        noise = [stream(cell.seed, "noise", *name) for name in names]
        self.release = Releaser(budgets, cell.trials, noise, quantiles, cell.calibration)
        self.gaps = np.full((days, self.copies), -1, dtype=np.int32)
        self.every = 1 if cell.method.startswith("pr") else cell.every

    def own(self, known: FloatArray) -> FloatArray:
        """Features (trials or 1, d) as the predictor takes them."""
        return np.tile(known, (self.copies // len(known), 1)) if len(known) > 1 else known[0]

    def losses(self, day: Day, known: FloatArray) -> FloatArray:
        """U, the log of the sum of exp U_i over the quantiles, of the priors of the day, (copies,)."""
        low, high = (np.tile(end, (self.copies // len(end), 1)) for end in day.intervals(self.release.quantiles))
        if isinstance(self.predictor, LaplacePredictor):
            loc, scale = self.predictor.laplaces(self.own(known))
            each, robust = -laplace_interval(loc / scale, 1 / scale, low, high)[0], self.predictor.robust
            if robust is not None:
                weight = self.predictor.robust_weight
                each = np.logaddexp(np.log1p(-weight) + each, np.log(weight) + robust.log_mass(low, high))
        else:
            priors = self.predictor.priors(self.own(known))
            each = np.stack([p.log_mass(*ends) for p, *ends in zip(priors, low.T, high.T, strict=True)], axis=1)
        return np.asarray(np.logaddexp.reduce(-each, axis=1))

    def step(self, t: int, day: Day, known: FloatArray, quantiles: Sequence[Fraction]) -> None:
        """Day t with public features (trials or 1, d)."""
        features = self.own(known)
        if t % self.every == 0:
            values = self.release(day, self.predictor, features)
            self.gaps[t] = day.max_gaps(values, quantiles)
            blind = self.cell.method in BLIND
            learnt_from = self.release(day.emptied(), self.predictor, features) if blind else values
            self.predictor.observe(features, learnt_from)
        if isinstance(self.predictor, PrivatePredictor):
            low, high = (np.tile(end, (self.copies // len(end), 1)) for end in day.intervals(quantiles))
            self.predictor.learn_intervals(features, low, high)  # type: ignore[attr-defined]

    def split(self) -> list[npt.NDArray[np.int32]]:
        """Gaps (days, trials) of each budget."""
        return np.split(self.gaps, len(self.epsilons), axis=1)


def smoothed(gaps: npt.NDArray[np.int32], bins: int = BINS) -> list[Row]:
    """Mean gap with its standard error over trials, in stretches of days of about the same length.

    gaps: (days, trials). Returns rows `first_day`, `last_day` (both included), `mean`, `error`.

    >>> smoothed(np.array([[1, 3], [2, 2], [0, 1]], dtype=np.int32), bins=2)
    [{'first_day': 0, 'last_day': 0, 'mean': 2.0, 'error': 1.0},
     {'first_day': 1, 'last_day': 2, 'mean': 1.25, 'error': 0.25}]
    """
    edges = np.linspace(0, len(gaps), min(bins, len(gaps)) + 1).astype(int)
    rows = []
    for first, after in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        part = gaps[first:after]
        mean, error = mean_and_error(part[part[:, 0] >= 0].mean(axis=0))
        rows.append({"first_day": first, "last_day": after - 1, "mean": mean, "error": error})
    return rows


def methods_for(task: Task, *, controls: bool = False) -> list[str]:
    """The methods that make sense on a task: a half-Cauchy only where data cannot be negative. controls: with those
    that are there to tell what the others owe to learning."""
    left_out = ([] if task.nonnegative else ["half_cauchy"]) + ([] if controls else list(CONTROLS))
    return [method for method in METHODS if method not in left_out]
