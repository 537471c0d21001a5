"""Private release of quantiles: `alg:quantiles` on a column (Section 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pq.core.choices import Adaptation, Adjacency, Calibration, MechanismName, OnNan
from pq.core.exact import Number
from pq.core.plan import Plan
from pq.core.priors import Prior
from pq.private.columns.door import Array
from pq.private.draw import draw, draw_uniforms
from pq.private.request import Request


@dataclass(frozen=True, eq=False)
class Release:
    """Released quantiles and the public facts about how they were made; nothing else about the data.

    values: (m,) estimates in the caller's order, read-only. quantiles: (m,). epsilon: total budget, under `adjacency`,
    for a person who owns up to `max_contributions` records; `plan` spends epsilon / max_contributions on each.
    """

    values: np.ndarray[Any, np.dtype[np.float64]]
    quantiles: np.ndarray[Any, np.dtype[np.float64]]
    epsilon: float
    max_contributions: int
    adjacency: str
    calibration: str
    adaptation: str
    grid: float | None
    priors: tuple[Prior, ...]
    plan: Plan

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, text and lists, ready for JSON."""
        return {
            "values": self.values.tolist(),
            "quantiles": self.quantiles.tolist(),
            "epsilon": self.epsilon,
            "max_contributions": self.max_contributions,
            "adjacency": self.adjacency,
            "calibration": self.calibration,
            "adaptation": self.adaptation,
            "arity": self.plan.arity,
            "budget_power": self.plan.budget_power,
            "grid": self.grid,
            "priors": [prior.to_dict() for prior in self.priors],
        }

    def __str__(self) -> str:
        rows = [f"{q:>8.6g}  {v:.10g}" for q, v in zip(self.quantiles, self.values, strict=True)]
        people = "" if self.max_contributions == 1 else f", up to {self.max_contributions} records a person"
        head = f"{self.epsilon:g}-differentially private quantiles ({self.adjacency}{people})"
        return "\n".join([head, "quantile  value", *rows])


def release(
    x: Any,
    quantiles: Any,
    *,
    epsilon: Number,
    priors: Any,
    mechanism: MechanismName = "auto",
    adjacency: Adjacency = "add-remove",
    calibration: Calibration = "sharp",
    adaptation: Adaptation = "conditional",
    arity: int = 2,
    budget_power: float = 0.0,
    grid: Number | None = None,
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
    mechanism: "tree", the paper's Algorithm 1, or "auto", which leaves the choice to the library.
    adjacency: what two neighbouring columns differ in: one record more or less, or one record replaced.
    calibration: "sharp" aims at `q n` with sensitivity `max(q, 1 - q)`, "paper" at `floor(q n)` with sensitivity one.
    adaptation: how a prior is restricted to the interval between earlier outputs: renormalised ("conditional"), or with
        the mass outside moved to atoms on the ends ("edge").
    arity, budget_power: shape and budgets of the tree, see `pq.plan`.
    grid: release multiples of this public step only; the records are rounded to it too. Right for values that repeat.
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
    request = Request.of(
        quantiles,
        priors=priors,
        mechanism=mechanism,
        adaptation=adaptation,
        grid=grid,
        on_nan=on_nan,
        epsilon=epsilon,
        adjacency=adjacency,
        calibration=calibration,
        arity=arity,
        budget_power=budget_power,
        max_contributions=max_contributions,
    )
    return fulfil(request, x, rng)


def fulfil(request: Request, x: Any, rng: Any) -> Release:
    """The release that a checked request asks for."""
    values = draw(request, x, draw_uniforms(request, 1, rng))[0]
    values.flags.writeable = False
    return _result(request, values)


def simulate(
    x: Any,
    quantiles: Any,
    *,
    trials: int,
    epsilon: Number,
    priors: Any,
    mechanism: MechanismName = "auto",
    adjacency: Adjacency = "add-remove",
    calibration: Calibration = "sharp",
    adaptation: Adaptation = "conditional",
    arity: int = 2,
    budget_power: float = 0.0,
    grid: Number | None = None,
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
    if isinstance(trials, bool) or not isinstance(trials, (int, np.integer)):
        raise TypeError(f"trials must be an integer, got {type(trials).__name__}")
    if trials < 0:
        raise ValueError(f"trials must not be negative, got {trials}")
    request = Request.of(
        quantiles,
        priors=priors,
        mechanism=mechanism,
        adaptation=adaptation,
        grid=grid,
        on_nan=on_nan,
        epsilon=epsilon,
        adjacency=adjacency,
        calibration=calibration,
        arity=arity,
        budget_power=budget_power,
        max_contributions=max_contributions,
    )
    return draw(request, x, draw_uniforms(request, int(trials), rng))


def _result(request: Request, values: Any) -> Release:
    """The values with the request's facts, without the constructor of a frozen class, which is slow."""
    released = object.__new__(Release)
    vars(released).update(request.facts, values=values)
    return released
