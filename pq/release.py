"""Private release of quantiles: `alg:quantiles` on a column, and the exact law of what it gives (Section 3.2)."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pq.cells import Column, Lattice, Points, grid_step
from pq.column import Array, OnNan, SortedColumn, sorted_values
from pq.compiled import lanes
from pq.compiled.encode import encode, is_moderate
from pq.counts import Counts
from pq.exact import Number
from pq.exponential import Law, target_rank
from pq.plan import Node, Plan, plan_for
from pq.priors import Prior
from pq.privacy import Adaptation, Adjacency, Calibration, check_choice

Interval = tuple[float, float, float, float]  # low, high, and the shares of the records at low and at high


DROPPED_BITS, ONE = np.uint64(11), np.uint64(1)
OFF_GRID = 1e-6  # of a step: how far a value may be off a multiple that it means


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


@dataclass(frozen=True)
class Request:
    """The public arguments of a release, checked before any data are touched."""

    plan: Plan
    priors: tuple[Prior, ...]  # of each distinct quantile
    adaptation: str
    step: Fraction | None
    on_nan: str
    max_contributions: int

    @classmethod
    def of(
        cls,
        quantiles: Any,
        *,
        epsilon: Any,
        priors: Any,
        adaptation: str,
        grid: Any,
        on_nan: str,
        max_contributions: Any,
        adjacency: Any,
        calibration: Any,
        arity: Any,
        budget_power: Any,
    ) -> Request:
        plan = plan_for(quantiles, epsilon, max_contributions, adjacency, calibration, arity, budget_power)
        check_choice(adaptation, Adaptation, "adaptation")
        check_choice(on_nan, OnNan, "on_nan")
        chosen = _distinct_priors(priors, plan)
        return cls(plan, chosen, adaptation, grid_step(grid, chosen), on_nan, int(max_contributions))

    def column(self, x: Any) -> Column:
        before = None
        if isinstance(x, Counts):
            placed = x.placed(self.on_nan)
            values, before = placed.values, np.concatenate([[0], np.cumsum(placed.counts)])
        else:
            values = x.placed(self.on_nan) if isinstance(x, SortedColumn) else sorted_values(x, self.on_nan)
        return Points(values, before) if self.step is None else Lattice.of(values, self.step, before)

    def laws(self, column: Column, node: Node, interval: Interval) -> list[Law]:
        """The laws of a node's mechanisms, given the earlier outputs that bound it."""
        view = column.view(*interval)
        edge = self.adaptation == "edge"
        return [
            Law(
                column,
                view,
                *interval[:2],
                self.priors[i],
                target_rank(m.relative, view.n, self.plan.calibration),
                m.rate,
                edge,
            )
            for i, m in ((i, self.plan.mechanisms[i]) for i in node.indices)
        ]

    @property
    def tie_share(self) -> float:
        """Part of a record at an output that goes on to the node on either side: half on a lattice, if not floored."""
        return 0.5 if self.step is not None and self.plan.calibration == "sharp" else 0.0

    def walk(self, column: Column, decide: Callable[[Node, list[Law]], list[float]]) -> None:
        """Visit the nodes from the root down; `decide` gives a node's sorted outputs in the column's units."""
        pending: list[tuple[Node, Interval]] = [(self.plan.root, (-math.inf, math.inf, 0.0, 0.0))]
        while pending:
            node, interval = pending.pop()
            outputs = decide(node, self.laws(column, node, interval))
            parts = split(interval, outputs, self.tie_share)
            pending += [(child, part) for child, part in zip(node.children, parts, strict=False) if child is not None]


def split(interval: Interval, outputs: Sequence[float], tie_share: float) -> list[Interval]:
    """The intervals between a node's sorted outputs, with the shares of the records at each end that they hold.

    A record at an output leaves `tie_share` of its weight in the node to the interval below that output and as much to
    the one above; intervals of no width hold no records. So the weights of a record in all parts sum to at most its
    weight in the node.
    """
    low, high, low_share, high_share = interval

    def weight(o: float) -> float:
        return low_share if o == low else high_share if o == high else 1.0

    bounds = (low, *outputs, high)
    below = (low_share, *(tie_share * weight(o) for o in outputs))
    above = (*(tie_share * weight(o) for o in outputs), high_share)
    return list(zip(bounds[:-1], bounds[1:], below, above, strict=True))


def _distinct_priors(priors: Any, plan: Plan) -> tuple[Prior, ...]:
    """One prior for each distinct quantile of a plan, from one prior or one per quantile in the caller's order."""
    if isinstance(priors, Prior):
        return (priors,) * len(plan.distinct)
    m, each = len(plan.quantiles), priors
    if not isinstance(each, Sequence) or not all(isinstance(prior, Prior) for prior in each):
        raise TypeError(
            "priors must be a prior of pq (pq.from_scipy wraps a scipy.stats distribution) or a sequence of them"
        )
    if len(each) != m:
        raise ValueError(f"priors must be one prior or one per quantile: got {len(each)} for {m} quantiles")
    chosen: dict[int, Prior] = {}
    for position, prior in zip(plan.positions, each, strict=True):
        if chosen.setdefault(position, prior) != prior:
            raise ValueError(f"priors must agree where quantiles repeat: {plan.distinct[position]} has two")
    return tuple(chosen[i] for i in range(len(plan.distinct)))


def _generator(rng: Any) -> np.random.Generator:
    try:
        return np.random.default_rng(None if rng is None else _seed(rng))
    except (TypeError, ValueError):
        raise TypeError(f"rng must be a numpy.random.Generator, a seed or None, got {rng!r}") from None


def _seed(rng: Any) -> Any:
    if isinstance(rng, (bool, np.bool_)):
        raise TypeError
    return rng


def release(
    x: Any,
    quantiles: Any,
    *,
    epsilon: Number,
    priors: Any,
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

    x: (n,) sensitive numbers: a list, an array, a column of a data frame; any order, any values, n = 0 included. Or a
        `pq.SortedColumn` or `pq.Counts` of them, which have the same law.
    quantiles: (m,) numbers in [0, 1], any order; repeats share one release.
    epsilon: total budget of the call, positive.
    priors: one prior for all quantiles or one for each, in their order; never made from x.
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


def draw_uniforms(request: Request, count: int, rng: Any) -> Array:
    """Uniforms (count, distinct quantiles, 2) strictly inside (0, 1): for the cell, and for the point in it."""
    shape = (count, len(request.plan.distinct), 2)
    if rng is None:
        bits = np.frombuffer(os.urandom(8 * math.prod(shape)), dtype=np.uint64)
        odd = bits >> DROPPED_BITS | ONE  # the 2^52 middles between multiples of 2^-52
        return np.asarray((odd * 2.0**-53).reshape(shape))
    return np.asarray(_generator(rng).integers(1, 2**53, shape) * 2.0**-53)


def draw(request: Request, x: Any, uniforms: Array) -> Array:
    """Outputs (lanes, m) in the caller's order that uniforms stand for: compiled where that can be, else `walked`."""
    with np.errstate(all="ignore"):
        column = request.column(x)
        quick = _compiled(request, column, uniforms)
        outputs, failed = (np.empty(uniforms.shape[:2]), np.ones(len(uniforms), dtype=bool)) if quick is None else quick
        if failed.any():
            for lane in np.flatnonzero(failed):
                outputs[lane] = walked(request, column, uniforms[lane].tolist())
    return outputs if request.plan.order is None else outputs[:, request.plan.order]


def _compiled(request: Request, column: Column, uniforms: Array) -> tuple[Array, npt.NDArray[np.bool_]] | None:
    """Outputs of the compiled walk and which of them are missing; None if it cannot do such a request."""
    table = encode(request.priors)
    assert isinstance(column, (Points, Lattice))
    lattice, step = lanes.REAL, 1.0
    if isinstance(column, Lattice):
        step = float(column.step)
        lattice = np.array([float(column.step.numerator), float(column.step.denominator), request.tie_share])
    if table is None or not is_moderate(column.values, step):
        return None
    parts, counts = table
    quick = lanes.run(
        request.plan,
        request.adaptation,
        column.values[None],
        np.array([len(column.values)]),
        parts[None],
        counts[None],
        uniforms,
        before=column.before,
        lattice=lattice,
    )
    if quick is not None and isinstance(column, Lattice):
        return np.asarray(column.value(quick[0])), quick[1]
    return quick


def walked(request: Request, column: Column, uniforms: list[list[float]]) -> list[float]:
    """The output of each distinct quantile, in the units of the data: the law as `pq.exponential` states it."""
    outputs = [0.0] * len(request.plan.distinct)

    def decide(node: Node, laws: list[Law]) -> list[float]:
        drawn = sorted(law.draw(*uniforms[i]) for law, i in zip(laws, node.indices, strict=True))
        for i, o in zip(node.indices, drawn, strict=True):
            outputs[i] = column.value(o)
        return drawn

    request.walk(column, decide)
    return outputs


def _result(request: Request, values: Any) -> Release:
    plan = request.plan
    return Release(
        values=values,
        quantiles=plan.quantile_values,
        epsilon=plan.epsilon_value
        if request.max_contributions == 1
        else float(plan.epsilon * request.max_contributions),
        max_contributions=request.max_contributions,
        adjacency=plan.adjacency,
        calibration=plan.calibration,
        adaptation=request.adaptation,
        grid=None if request.step is None else float(request.step),
        priors=request.priors if plan.order is None else tuple(request.priors[i] for i in plan.positions),
        plan=plan,
    )


def log_density(
    x: Any,
    values: Any,
    quantiles: Any,
    *,
    epsilon: Number,
    priors: Any,
    adjacency: Adjacency = "add-remove",
    calibration: Calibration = "sharp",
    adaptation: Adaptation = "conditional",
    arity: int = 2,
    budget_power: float = 0.0,
    grid: Number | None = None,
    on_nan: OnNan = "drop",
    max_contributions: int = 1,
) -> float:
    """Exact log density of `values` as an output of `release` with the same arguments; atoms count as mass
    (`alg:quantiles`).

    values: (m,) a possible output in the order of `quantiles`. The other arguments: as in `release`.

    The density is with respect to Lebesgue measure in each distinct quantile that the law spreads, and to counting
    measure in each that it puts on an atom: an end of the node's interval under "edge" adaptation, any output on a
    grid, the only output where a prior has no mass.

    Returns a float in nats, -inf for what cannot come out. For evaluation and audit: it sees the data.
    Raises `ValueError` naming values if they are not m finite numbers.

    >>> import pq
    >>> data = [1.0, 2.0, 3.0]
    >>> round(log_density(data, [2.5], [0.5], epsilon=1, priors=pq.Uniform(0, 4), calibration="paper"), 6)
    -1.448154
    """
    request = Request.of(
        quantiles,
        priors=priors,
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
    try:
        outputs = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        outputs = np.empty(0)
    if outputs.shape != (len(request.plan.quantiles),) or not np.all(np.isfinite(outputs)):
        raise ValueError("values must hold one finite number for each quantile")
    with np.errstate(all="ignore"):
        return _log_density(request, request.column(x), outputs)


def _log_density(request: Request, column: Column, values: Any) -> float:
    outputs = _distinct_outputs(request, column, values)
    if outputs is None or outputs != sorted(outputs):
        return -math.inf
    terms: list[float] = []

    def decide(node: Node, laws: list[Law]) -> list[float]:
        mine = [outputs[i] for i in node.indices]
        terms.append(_log_sorted(laws, mine))
        return mine

    request.walk(column, decide)
    return sum(terms)


def _distinct_outputs(request: Request, column: Column, values: Any) -> list[float] | None:
    """The outputs of the distinct quantiles in the column's units; None if repeats disagree or a value is off the
    grid."""
    outputs: dict[int, float] = {}
    for position, value in zip(request.plan.positions, values.tolist(), strict=True):
        o = column.output(value)
        if outputs.setdefault(position, o) != o:
            return None
        if abs(column.value(o) - value) > OFF_GRID * float(request.step or 0):
            return None
    return [outputs[i] for i in range(len(outputs))]


def _log_sorted(laws: list[Law], outputs: list[float]) -> float:
    """Log density of a node's sorted outputs: the sum over which mechanism gave which, equal atoms counted once."""
    table = [[law.log_probability(o) for o in outputs] for law in laws]
    orders = 0.0
    for o in set(outputs):
        if any(law.is_atom(o) for law in laws):
            orders += math.lgamma(outputs.count(o) + 1)
    return _log_permanent(table) - orders


def _log_permanent(table: list[list[float]]) -> float:
    """Log of the permanent of a square matrix of logs: row by row, over the sets of columns used so far."""
    partial: dict[int, float] = {0: 0.0}
    for row in table:
        partial = dict(_extend(partial, row))
    return next(iter(partial.values()))


def _extend(partial: dict[int, float], row: list[float]) -> Iterator[tuple[int, float]]:
    terms: dict[int, list[float]] = {}
    for used, value in partial.items():
        for j, entry in enumerate(row):
            if not used >> j & 1:
                terms.setdefault(used | 1 << j, []).append(value + entry)
    for used, logs in terms.items():
        yield used, _log_sum(logs)


def _log_sum(logs: list[float]) -> float:
    top = max(logs)
    return top + math.log(math.fsum(math.exp(v - top) for v in logs)) if top > -math.inf else -math.inf
