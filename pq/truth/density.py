"""The exact law of what a release gives, for evaluation and audit: it sees the data (Section 3.2)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from pq.core.choices import Adaptation, Adjacency, Calibration, MechanismName, OnNan
from pq.core.exact import Number
from pq.core.plan import Node
from pq.private.columns.cells import Column
from pq.private.mechanisms.exponential import Law
from pq.private.request import Request

OFF_GRID = 1e-6  # of a step: how far a value may be off a multiple that it means


def log_density(
    x: Any,
    values: Any,
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
) -> float:
    """Exact log density of `values` as an output of `release` with the same arguments; atoms count as mass
    (`alg:quantiles`).

    values: (m,) a possible output in the order of `quantiles`. The other arguments: as in `release`.

    The density is with respect to Lebesgue measure in each distinct quantile that the law spreads, and to counting
    measure in each that it puts on an atom: an end of the node's interval under "edge" adaptation, any output on a
    grid, the only output where a prior has no mass.

    Returns a float in nats, -inf for what cannot come out. For evaluation and audit: it sees the data. An output beyond
    the largest float comes out as that float; the density does not count this as an atom.
    Raises `ValueError` naming values if they are not m finite numbers.

    >>> import pq
    >>> data = [1.0, 2.0, 3.0]
    >>> round(log_density(data, [2.5], [0.5], epsilon=1, priors=pq.Uniform(0, 4), calibration="paper"), 6)
    -1.448154
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
