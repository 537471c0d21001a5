"""What a release says about itself: values, the public facts of how they were made, and what follows from these
(Section 3.2).

Private ring, but nothing here sees a record: all that is computed is post-processing of what has been paid for.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from pq.core.arrays import KeptReadOnly, read_only
from pq.core.budget.events import private_event
from pq.core.choices import QuantilesOf, check_choice
from pq.core.exact import budget_float, budget_text, quantile_fractions
from pq.core.grid import read_step, told_step, written_step
from pq.core.kind import Kind, kind_named, shown
from pq.core.plan import Plan
from pq.core.priors import JointPrior, Prior
from pq.core.priors.numerics import LARGEST
from pq.core.remarks import outside_remarks, remarks_on
from pq.core.request import Request
from pq.private.intervals import grid_intervals, interval_level, simulated_intervals, size_of
from pq.private.mechanisms import Mechanism, Outcome
from pq.private.prepare import prepare

if TYPE_CHECKING:
    from pq.private.report import PageOptions

Array = np.ndarray[Any, np.dtype[np.float64]]

VERSION = 3  # of what `Release.to_dict` writes
ASKED = (
    "epsilon",
    "max_contributions",
    "adjacency",
    "mechanism",
    "grid",
    "size_guess",
    "public_total",
    "assume_smooth",
)
TREE_FACTS = ("calibration", "adaptation", "arity", "budget_power")  # that a tree has besides
DESCRIBED: dict[str, Any] = {"priors": (list, tuple, Mapping), "outcome": Mapping, "kind": str, "values": (list, tuple)}
REMARK_LEVEL = 0.999  # of an interval outside of which a value is remarkable


@dataclass(frozen=True, eq=False)
class Release(KeptReadOnly):
    """Released quantiles and the public facts about how they were made; nothing else about the data.

    values: (m,) estimates in the caller's order, read-only, of the kind that the column declares. quantiles: (m,).
    epsilon: total budget, under `adjacency`, for a person who owns up to `max_contributions` records. mechanism: its
    name. priors: one for each quantile. joint_prior: of all quantiles at once, of which `priors` are then the
    marginals; None where none was given. plan: the tree's, None for others; it spends epsilon / max_contributions on
    each record. grid: the step, a float unless it is the decimal of none. size_guess, public_total, assume_smooth: as
    they were given. total: a private count of the records, where the mechanism gives one for nothing. outcome: what was
    drawn, as plain lists and numbers by name. kind: what the values are: "number", "date", and so on. whole: whether
    the column's declared type holds whole numbers only.
    """

    values: np.ndarray[Any, Any]
    quantiles: Array
    epsilon: float
    max_contributions: int
    adjacency: str
    mechanism: str
    calibration: str | None
    adaptation: str | None
    grid: float | Fraction | None
    priors: tuple[Prior, ...]
    joint_prior: JointPrior | None
    plan: Plan | None
    size_guess: float | None
    public_total: int | None
    assume_smooth: bool
    total: int | None
    outcome: Mapping[str, Any]
    kind: str
    whole: bool

    @classmethod
    def of(cls, maker: Mechanism, outcome: Outcome, kind: Kind) -> Release:
        """What a mechanism drew with the public facts, in the caller's order."""
        values = outcome.values if _in_order(maker.request) else outcome.values[list(maker.request.positions)]
        values = read_only(np.array(kind.from_numbers(values)))
        whole = getattr(kind, "whole", False)
        drawn = dict(outcome.drawn)
        facts = _facts(maker.origin)
        if maker is not maker.origin:
            facts = facts | {"priors": _priors_of(maker.request)}
        return cls(values, **facts, total=outcome.total, outcome=drawn, kind=str(kind), whole=whole)

    def quantile(self, q: Any) -> np.ndarray[Any, Any]:
        """Values (k,) at any further quantiles, for nothing, where a whole distribution function was released.

        q: (k,) numbers in [0, 1], any order, or one. Raises `ValueError` naming quantile unless the mechanism is
        "cells". Post-processing: costs no privacy.

        >>> import pq
        >>> x = [float(i % 100) for i in range(5000)]
        >>> one = pq.release(x, [0.5], epsilon=1, priors=pq.Uniform(0, 100), mechanism="cells", rng=0)
        >>> [round(float(value), -1) for value in one.quantile([0.2, 0.7])]
        [20.0, 70.0]
        """
        asked = np.array([float(fraction) for fraction in quantile_fractions(q)])
        return np.asarray(kind_named(self.kind).from_numbers(self._maker.quantile(self.outcome, asked) + 0.0))

    def interval(
        self, level: float = 0.95, size_guess: float | None = None, *, of: QuantilesOf = "column"
    ) -> np.ndarray[Any, Any]:
        """Intervals (m, 2) for the true quantiles, all of which they hold at once in a share `level` of all releases.

        level: strictly between 0 and 1. size_guess: rough number of records, never len(x); None: the private total, or
            what the release was told. of: whose quantiles, the "column"'s that was released from or the "population"'s
            that its records are an independent sample of.

        Post-processing: costs no privacy. Ends may be infinite; on a grid they are multiples of it, for the rounded
        records. Raises `ValueError` naming level, of, or size_guess where nothing else tells the number of records.
        Guarantees with "cells" the coverage, whatever the data, from the exact law of the noise. For all other
        mechanisms the release is simulated on columns that look as the released values do, always with the same seed:
        how often such intervals hold what they should is measured in `results/benchmarks/interval_coverage.csv`.

        >>> import pq
        >>> x = [float(i % 100) for i in range(5000)]
        >>> one = pq.release(x, [0.25, 0.5], epsilon=1, priors=pq.Uniform(0, 100), mechanism="cells", rng=0)
        >>> bool((one.interval()[:, 0] <= [24.0, 49.0]).all() and (one.interval()[:, 1] >= [25.0, 50.0]).all())
        True
        """
        share = interval_level(level)
        check_choice(of, QuantilesOf, "of")
        maker, population = self._maker, of == "population"
        ends = maker.interval(self.outcome, self.quantiles, share, population)
        if ends is None:
            size = size_of(maker.request, self.total, size_guess)
            values = self._distinct_values
            ends = simulated_intervals(maker, values, maker.knots(self.outcome, values), size, share, population)
            ends = ends[list(maker.request.positions)]
        else:
            ends = grid_intervals(ends, maker.request.step)
        return np.asarray(kind_named(self.kind).from_numbers(ends.ravel())).reshape(-1, 2)

    @property
    def numbers(self) -> Array:
        """The values as floats in the unit of the priors: of dates, timestamps, times and durations in seconds."""
        return read_only(kind_named(self.kind).to_numbers(self.values))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What whoever reads the values should know of them, in plain words; from released values and public facts."""
        maker, kind, values = self._maker, kind_named(self.kind), self._distinct_values
        said = remarks_on(maker.request, values, self.total, kind, self.whole)
        distinct = maker.request.levels
        ends = maker.interval(self.outcome, distinct, REMARK_LEVEL)
        if ends is None:
            return said
        return said + outside_remarks(maker.request, values, grid_intervals(ends, maker.request.step))

    @property
    def _maker(self) -> Mechanism:
        """The mechanism that made this, from its public facts."""
        asked = {name: getattr(self, name) for name in ASKED}
        if self.plan is not None:
            asked |= {"calibration": self.calibration, "adaptation": self.adaptation}
            asked |= {"arity": self.plan.arity, "budget_power": self.plan.budget_power}
        return prepare(self.quantiles, priors=self._said_priors, **asked)

    @property
    def _said_priors(self) -> Any:
        if self.joint_prior is not None:
            return self.joint_prior
        return self.priors[0] if self.priors and all(prior == self.priors[0] for prior in self.priors) else self.priors

    @property
    def _distinct_values(self) -> Array:
        """Values as numbers, of the distinct quantiles in increasing order."""
        _, first = np.unique(self.quantiles, return_index=True)
        return np.maximum.accumulate(self.numbers[first])

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, text and lists, ready for JSON; `Release.from_dict` is the inverse,
        except where a prior is a distribution of one's own (`pq.from_scipy`): a pickle holds that, too.

        Values that are dates, times or durations stand there in seconds, and as `texts`.
        """
        plan = self.plan
        return {
            "version": VERSION,
            "values": self.numbers.tolist(),
            "kind": self.kind,
            "whole": self.whole,
            **({} if self.kind == "number" else {"texts": shown(self.values)}),
            "quantiles": self.quantiles.tolist(),
            **{name: getattr(self, name) for name in ASKED},
            "grid": written_step(self.grid),
            "calibration": self.calibration,
            "adaptation": self.adaptation,
            **({} if plan is None else {"arity": plan.arity, "budget_power": plan.budget_power}),
            "priors": _described_priors(self),
            "total": self.total,
            "outcome": copy.deepcopy(dict(self.outcome)),
        }

    def to_event(self) -> dict[str, Any]:
        """This release as an event of accountants that speak `dp_accounting`; see `pq.core.budget.events`."""
        return private_event(self.epsilon)

    def report(self, path: str | os.PathLike[str], **options: Unpack[PageOptions]) -> None:
        """Write one page in HTML that shows this release to whoever is responsible, and needs nothing else.

        path: of the file. title, purpose, unit, receipt: public texts to stand on it. level, size_guess: of the
        intervals, see `interval`. Raises `TypeError` or `ValueError` naming the argument.

        The page is a function of the release and of these texts. It holds `to_dict()` as JSON in the element with the
        id "release".

        >>> import pathlib, tempfile, pq
        >>> one = pq.release([1.0, 2.0, 3.0], [0.5], epsilon=1, priors=pq.Uniform(0, 4), rng=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     one.report(f"{folder}/median.html", title="Waiting times", unit="minutes")
        ...     "Waiting times" in pathlib.Path(f"{folder}/median.html").read_text(encoding="utf-8")
        True
        """
        from pq.private.report import release_page  # late: most releases have no page

        Path(path).write_bytes(release_page(self, **options).encode("utf-8"))

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Release:
        """The release that `to_dict` described. Raises `TypeError` or `ValueError` naming what is wrong: distribution
        for a prior from one that is not of `scipy.stats`, and is code that no description holds.

        >>> import pq
        >>> one = pq.release([1.0, 2.0, 3.0], [0.5], epsilon=1, priors=pq.Uniform(0, 4), rng=0)
        >>> pq.Release.from_dict(one.to_dict()).to_dict() == one.to_dict()
        True
        """
        if not isinstance(description, Mapping):
            raise TypeError(f"description must be a mapping, got {type(description).__name__}")
        facts = dict(description)
        if facts.get("version") != VERSION:
            raise ValueError(f"version must be {VERSION}, got {facts.get('version')!r}")
        for name, kinds in DESCRIBED.items():
            if name in facts and not isinstance(facts[name], kinds):
                raise TypeError(f"{name} must be as `to_dict` writes it, got {type(facts[name]).__name__}")
        if facts.get("total") is not None and not _are_finite(facts["total"]):
            raise ValueError("total must be a finite number or None")
        if not all(map(_are_finite, facts.get("outcome", {}).values())):
            raise ValueError("outcome must be finite numbers, and lists of them")
        try:
            priors, facts["grid"] = _read_priors(facts["priors"]), read_step(facts["grid"])
            named = ASKED + (TREE_FACTS if "arity" in facts else ())
            maker = prepare(facts["quantiles"], priors=priors, **{name: facts[name] for name in named})
            kind = kind_named(facts["kind"])
            return cls(
                read_only(kind.from_numbers(_finite_values(facts["values"], len(maker.request.quantiles)))),
                **_facts(maker),
                total=facts["total"],
                outcome=copy.deepcopy(dict(facts["outcome"])),
                kind=str(kind),
                whole=bool(facts["whole"]),
            )
        except KeyError as missing:
            raise ValueError(f"description lacks {missing}") from None

    def __str__(self) -> str:
        values = [f"{v:.10g}" for v in self.values] if self.kind == "number" else shown(self.values)
        rows = [f"{q:>8.6g}  {v}" for q, v in zip(self.quantiles, values, strict=True)]
        people = "" if self.max_contributions == 1 else f", up to {self.max_contributions} records a person"
        head = f"{budget_text(self.epsilon)}-differentially private quantiles ({self.adjacency}{people})"
        return "\n".join([head, "quantile  value", *rows])


@lru_cache(maxsize=256)
def _facts(maker: Mechanism) -> dict[str, Any]:
    """What a release says besides what was drawn; of one mechanism always the same."""
    request, plan = maker.request, getattr(maker, "plan", None)
    tree = isinstance(plan, Plan)
    return {
        "quantiles": read_only(np.array([float(q) for q in request.quantiles])),
        "epsilon": budget_float(request.epsilon),
        "max_contributions": request.max_contributions,
        "adjacency": request.adjacency,
        "mechanism": maker.name,
        "calibration": request.tree.calibration if tree else None,
        "adaptation": request.tree.adaptation if tree else None,
        "grid": told_step(request.step),
        "priors": _priors_of(request),
        "joint_prior": request.joint_prior,
        "plan": plan if tree else None,
        "size_guess": request.size_guess,
        "public_total": request.public_total,
        "assume_smooth": request.assume_smooth,
    }


def _finite_values(values: Any, count: int) -> Array:
    """So many finite numbers (m,) of a description; raises `ValueError` naming values."""
    try:
        numbers = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = np.empty(0)
    if numbers.shape != (count,) or not np.isfinite(numbers).all():
        raise ValueError(f"values must be {count} finite numbers, one for each of the quantiles")
    return numbers


def _are_finite(numbers: Any) -> bool:
    """Whether something is a finite number, or lists of such."""
    if isinstance(numbers, int):  # numpy has no whole numbers beyond 2^64
        return not isinstance(numbers, bool) and abs(numbers) <= LARGEST
    try:
        array = np.asarray(numbers)
    except ValueError:  # lists of several lengths
        return False
    return array.dtype.kind in "iuf" and bool(np.isfinite(array).all())


def _priors_of(request: Request) -> tuple[Prior, ...]:
    """One for each quantile in the caller's order."""
    return request.priors if _in_order(request) else tuple(request.priors[i] for i in request.positions)


def _described_priors(release: Release) -> Any:
    """The priors that were given, as plain values: a list, or a mapping for one of all quantiles."""
    joint = release.joint_prior
    return [prior.to_dict() for prior in release.priors] if joint is None else joint.to_dict()


def _read_priors(described: Any) -> Any:
    if isinstance(described, Mapping):
        return JointPrior.from_dict(described)
    return tuple(Prior.from_dict(prior) for prior in described)


def _in_order(request: Request) -> bool:
    return request.quantiles == request.distinct
