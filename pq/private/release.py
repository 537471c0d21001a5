"""Private release of quantiles of a column (Section 3.2)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from pq.core.budget.ledger import Ledger, charge
from pq.core.choices import Adaptation, Adjacency, Calibration, OnNan
from pq.core.exact import Number, budget_text, whole_number
from pq.core.kind import Kind, kind_named, shown
from pq.core.plan import Plan
from pq.core.priors import Prior
from pq.core.request import Request
from pq.private.columns.door import Array, Readable, UnreadColumn
from pq.private.columns.frames import column_of
from pq.private.columns.part import Unknown
from pq.private.columns.selection import Pieces, parts_of
from pq.private.mechanisms import Mechanism, Outcome
from pq.private.prepare import prepare
from pq.private.randomness import Source, Tape

VERSION = 2  # of what `Release.to_dict` writes
PLAN_FACTS = ("arity", "budget_power", "public_total")  # that it writes of a tree, the last where there is one


@dataclass(frozen=True, eq=False)
class Release:
    """Released quantiles and the public facts about how they were made; nothing else about the data.

    values: (m,) estimates in the caller's order, read-only, of the kind that the column declares. quantiles: (m,).
    epsilon: total budget, under `adjacency`, for a person who owns up to `max_contributions` records. mechanism: its
    name. priors: one for each quantile. plan: the tree's, None for others; it spends epsilon / max_contributions on
    each record. total: a private count of the records, where the mechanism gives one for nothing. outcome: what was
    drawn, as plain lists and numbers by name. kind: what the values are: "number", "date", and so on.
    """

    values: np.ndarray[Any, Any]
    quantiles: np.ndarray[Any, np.dtype[np.float64]]
    epsilon: float
    max_contributions: int
    adjacency: str
    mechanism: str
    calibration: str | None
    adaptation: str | None
    grid: float | None
    priors: tuple[Prior, ...]
    plan: Plan | None
    total: int | None
    outcome: Mapping[str, Any]
    kind: str

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, text and lists, ready for JSON; `Release.from_dict` is the inverse.

        Values that are dates, times or durations stand there in seconds, and as `texts`.
        """
        tree: dict[str, Any] = (
            {} if self.plan is None else {"arity": self.plan.arity, "budget_power": self.plan.budget_power}
        )
        if self.plan is not None and self.plan.public_total is not None:
            tree["public_total"] = self.plan.public_total
        return {
            "version": VERSION,
            "values": kind_named(self.kind).to_numbers(self.values).tolist(),
            "kind": self.kind,
            **({} if self.kind == "number" else {"texts": shown(self.values)}),
            "quantiles": self.quantiles.tolist(),
            "epsilon": self.epsilon,
            "max_contributions": self.max_contributions,
            "adjacency": self.adjacency,
            "mechanism": self.mechanism,
            "calibration": self.calibration,
            "adaptation": self.adaptation,
            **tree,
            "grid": self.grid,
            "priors": [prior.to_dict() for prior in self.priors],
            "total": self.total,
            "outcome": dict(self.outcome),
        }

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Release:
        """The release that `to_dict` described. Raises `TypeError` or `ValueError` naming what is wrong.

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
        try:
            priors = tuple(Prior.from_dict(prior) for prior in facts["priors"])
            options: dict[str, Any] = {name: facts[name] for name in PLAN_FACTS if name in facts}
            if options:
                options |= {"calibration": facts["calibration"], "adaptation": facts["adaptation"]}
            maker = prepare(
                facts["quantiles"],
                priors=priors,
                epsilon=facts["epsilon"],
                grid=facts["grid"],
                adjacency=facts["adjacency"],
                max_contributions=facts["max_contributions"],
                mechanism=facts["mechanism"],
                **options,
            )
            kind = kind_named(facts["kind"])
            return cls(
                _frozen(kind.from_numbers(facts["values"])),
                **_facts(maker),
                total=facts["total"],
                outcome=facts["outcome"],
                kind=str(kind),
            )
        except KeyError as missing:
            raise ValueError(f"description lacks {missing}") from None

    def __str__(self) -> str:
        values = [f"{v:.10g}" for v in self.values] if self.kind == "number" else shown(self.values)
        rows = [f"{q:>8.6g}  {v}" for q, v in zip(self.quantiles, values, strict=True)]
        people = "" if self.max_contributions == 1 else f", up to {self.max_contributions} records a person"
        head = f"{budget_text(self.epsilon)}-differentially private quantiles ({self.adjacency}{people})"
        return "\n".join([head, "quantile  value", *rows])


def release(
    x: Any,
    quantiles: Any,
    *,
    epsilon: Number,
    priors: Any,
    mechanism: str = "auto",
    size_guess: float | None = None,
    public_total: int | None = None,
    assume_smooth: bool = False,
    grid: Number | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    purpose: str = "",
    adjacency: Adjacency = "add-remove",
    calibration: Calibration | None = None,
    adaptation: Adaptation | None = None,
    arity: int | None = None,
    budget_power: float | None = None,
    on_nan: OnNan = "drop",
    max_contributions: int = 1,
    rng: Any = None,
) -> Release:
    """Release quantiles of a sensitive column under epsilon-differential privacy (`alg:quantiles`).

    x: (n,) sensitive numbers: a list, an array, a column of a data frame, a table that has no other column; any order,
        any values, n = 0 included. Or a `pq.SortedColumn` or `pq.Counts` of them, which have the same law.
    quantiles: (m,) numbers in [0, 1], any order; repeats share one release.
    epsilon: total budget of the call, positive.
    priors: one prior for all quantiles or one for each, in their order; never made from x.
    mechanism: "tree", the paper's Algorithm 1; "joint", one exponential mechanism over all quantiles and the number of
        records; "cells", noisy counts of a private distribution function; "margin", a tree that aims at ties, on a
        grid; or "auto", which chooses from the public arguments.
    size_guess: rough number of records, never len(x): it chooses and tunes the mechanism.
    public_total: number of records, where that is public knowledge; never len(x), which would cost privacy.
    assume_smooth: whether the column has few ties and no narrow peaks; where that is wrong, accuracy is lost, never
        privacy.
    grid: release multiples of this public step only; the records are rounded to it too. Right for values that repeat.
    ledger: a `pq.Ledger` or the path of one, charged before the data are touched. purpose: the text of its entry.
    adjacency: what two neighbouring columns differ in: one record more or less, or one record replaced.
    calibration, adaptation, arity, budget_power: options of the tree, which any of them asks for. calibration: "sharp"
        aims at `q n` with sensitivity `max(q, 1 - q)`, "paper" at `floor(q n)` with sensitivity one. adaptation: how a
        prior is restricted to the interval between earlier outputs: renormalised ("conditional"), or with the mass
        outside moved to atoms on the ends ("edge"). arity, budget_power: shape and budgets, see `pq.plan`.
    on_nan: what a missing record counts as: nothing ("drop"), or the lowest or the highest number.
    max_contributions: records that one person may own, at least 1; each is then given epsilon / max_contributions, so
        that all of a person's records together cost at most epsilon (group privacy).
    rng: a numpy Generator or a seed. A fixed seed makes the output a function of the data: for tests and papers only.

    Returns a `Release`, whose `values` are in the caller's order and never cross. Raises `ValueError` or `TypeError`
    naming the public argument at fault, before the data are touched; the values in x never raise, warn, or change a
    shape. Guarantees epsilon-differential privacy of the values under `adjacency`. `log_density` gives their exact law.

    >>> import numpy as np, pq
    >>> ages = np.random.default_rng(0).normal(40, 10, size=10_000)
    >>> result = pq.release(ages, [0.25, 0.5, 0.75], epsilon=1, priors=pq.Cauchy(40, 20), rng=1)
    >>> bool(np.all(np.abs(result.values - [33.3, 40, 46.7]) < 0.5))
    True
    """
    maker = prepare(
        quantiles,
        epsilon=epsilon,
        priors=priors,
        mechanism=mechanism,
        size_guess=size_guess,
        public_total=public_total,
        assume_smooth=assume_smooth,
        grid=grid,
        adjacency=adjacency,
        calibration=calibration,
        adaptation=adaptation,
        arity=arity,
        budget_power=budget_power,
        on_nan=on_nan,
        max_contributions=max_contributions,
    )
    column, source = column_of(x), Source(rng)
    _charge(ledger, purpose, maker, 1)
    return fulfil(maker, column, source)


def _charge(ledger: Any, purpose: str, maker: Mechanism, times: int) -> None:
    """Pay before the data are touched."""
    rho = None if ledger is None else maker.rho
    request = maker.request
    adjacency: Any = request.adjacency
    charge(ledger, epsilon=request.epsilon, adjacency=adjacency, purpose=purpose, rho=rho, times=times)


def fulfil(maker: Mechanism, column: Readable, source: Source) -> Release:
    """One release by a mechanism; nothing raises, warns or is kept after the data have come in."""
    with np.errstate(all="ignore"):
        outcome = _of_parts(maker, column, tape := Tape(source))
        if outcome is None:
            outcome = maker.draw(maker.column(*column.records(maker.request.on_nan)), tape.rewind())
    return _released(maker, outcome, column.kind)


def _of_parts(maker: Mechanism, column: Readable, tape: Tape) -> Outcome | None:
    """What would be drawn from a column that nobody has sorted, from ever more of what lies around the quantiles; None
    where that does not do, or what is drawn needs all records."""
    near = maker.near if maker.request.on_nan == "drop" else None
    arrays = column.unsorted() if near is not None and isinstance(column, UnreadColumn) else None
    for part in () if near is None or arrays is None else parts_of(Pieces(arrays), *near):
        try:
            return maker.draw(part, tape.rewind())
        except Unknown as unknown:
            if unknown.everything:
                return None
    return None


def simulate(
    x: Any,
    quantiles: Any,
    *,
    trials: int,
    epsilon: Number,
    priors: Any,
    mechanism: str = "auto",
    size_guess: float | None = None,
    public_total: int | None = None,
    assume_smooth: bool = False,
    grid: Number | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    purpose: str = "",
    adjacency: Adjacency = "add-remove",
    calibration: Calibration | None = None,
    adaptation: Adaptation | None = None,
    arity: int | None = None,
    budget_power: float | None = None,
    on_nan: OnNan = "drop",
    max_contributions: int = 1,
    rng: Any = None,
) -> Array:
    """The values of many independent releases of one column, for experiments: (trials, m) (`alg:quantiles`).

    trials: how many, at least 0. The other arguments: as in `release`, which does the same one at a time.

    Each row costs epsilon: all together are (trials * epsilon)-differentially private. Raises as `release`, and
    naming trials.

    >>> import numpy as np, pq
    >>> ages = np.random.default_rng(0).normal(40, 10, size=1000)
    >>> simulate(ages, [0.25, 0.5, 0.75], trials=100, epsilon=1, priors=pq.Cauchy(40, 20), rng=1).mean(axis=0).round()
    array([33., 40., 46.])
    """
    count = whole_number(trials, "trials")
    maker = prepare(
        quantiles,
        epsilon=epsilon,
        priors=priors,
        mechanism=mechanism,
        size_guess=size_guess,
        public_total=public_total,
        assume_smooth=assume_smooth,
        grid=grid,
        adjacency=adjacency,
        calibration=calibration,
        adaptation=adaptation,
        arity=arity,
        budget_power=budget_power,
        on_nan=on_nan,
        max_contributions=max_contributions,
    )
    column, source = column_of(x), Source(rng)
    _charge(ledger, purpose, maker, count)
    records = column.records(maker.request.on_nan)
    with np.errstate(all="ignore"):
        return maker.simulate(maker.column(*records), source, count)[:, list(maker.request.positions)]


def _released(maker: Mechanism, outcome: Outcome, kind: Kind) -> Release:
    """What was drawn with the public facts, in the caller's order."""
    facts = _facts(maker)
    values = outcome.values if _in_order(maker.request) else outcome.values[list(maker.request.positions)]
    values = _frozen(np.array(kind.from_numbers(values)))
    return Release(values, **facts, total=outcome.total, outcome=dict(outcome.drawn), kind=str(kind))


@lru_cache(maxsize=256)
def _facts(maker: Mechanism) -> dict[str, Any]:
    """What a release says besides what was drawn; of one mechanism always the same."""
    request, plan = maker.request, getattr(maker, "plan", None)
    tree = isinstance(plan, Plan)
    return {
        "quantiles": _frozen(np.array([float(q) for q in request.quantiles])),
        "epsilon": float(request.epsilon),
        "max_contributions": request.max_contributions,
        "adjacency": request.adjacency,
        "mechanism": maker.name,
        "calibration": request.tree.calibration if tree else None,
        "adaptation": request.tree.adaptation if tree else None,
        "grid": None if request.step is None else float(request.step),
        "priors": request.priors if _in_order(request) else tuple(request.priors[i] for i in request.positions),
        "plan": plan if tree else None,
    }


def _in_order(request: Request) -> bool:
    return request.quantiles == request.distinct


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array
