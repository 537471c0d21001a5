"""The exact law of what a release gives, for evaluation and audit: it sees the data (Section 3.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from pq.core.choices import Adaptation, Adjacency, Calibration, OnNan
from pq.core.exact import Number
from pq.core.kind import NUMBER, Kind
from pq.core.scores import log_less
from pq.private.columns.door import Readable
from pq.private.columns.frames import column_of
from pq.private.mechanisms import Mechanism, Outcome
from pq.private.mechanisms.protocol import LogParts
from pq.private.prepare import prepare
from pq.private.result import Release


def log_density(
    x: Any,
    outcome: Any,
    quantiles: Any,
    *,
    epsilon: Number,
    priors: Any,
    mechanism: str = "auto",
    size_guess: float | None = None,
    public_total: int | None = None,
    assume_smooth: bool = False,
    grid: Number | None = None,
    adjacency: Adjacency = "add-remove",
    calibration: Calibration | None = None,
    adaptation: Adaptation | None = None,
    arity: int | None = None,
    budget_power: float | None = None,
    on_nan: OnNan = "drop",
    max_contributions: int = 1,
) -> float:
    """Exact log density of an output of `release` with the same arguments; atoms count as mass (`alg:quantiles`).

    outcome: (m,) values in the order of `quantiles`, or a `Release`, of which the total and what its mechanism drew
        beside the values count too. The other arguments: as in `release`.

    The density is with respect to Lebesgue measure in each distinct quantile that the law spreads, and to counting
    measure in each that it puts on an atom: an end of the node's interval under "edge" adaptation, any output on a
    grid, the only output where a prior has no mass.

    Returns a float in nats, -inf for what cannot come out. For evaluation and audit: it sees the data. An output beyond
    the largest float comes out as that float; the density does not count this as an atom.
    Raises `ValueError` naming outcome if it does not hold m finite numbers.

    >>> import pq
    >>> data = [1.0, 2.0, 3.0]
    >>> round(log_density(data, [2.5], [0.5], epsilon=1, priors=pq.Uniform(0, 4), calibration="paper"), 6)
    -1.448154
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
    column = column_of(x)
    far, rest = _log_parts(maker, column, outcome_of(maker, outcome, column.kind))
    return log_less(rest, far)


def privacy_loss(x: Any, neighbour: Any, outcome: Any, quantiles: Any, **keywords: Any) -> float:
    """Exact privacy loss of an output on two columns, `log p(outcome | x) - log p(outcome | neighbour)`, in nats.

    x, neighbour: (n,) columns. outcome, quantiles and the keywords: as in `log_density`.
    Returns a float; 0 if the output is impossible on both, infinite if on one. An epsilon-private release never exceeds
    epsilon on neighbours, but by what the two log densities are rounded by: a unit or two where they are near -1e16.

    >>> import pq
    >>> loss = privacy_loss([1.0, 2.0], [1.0, 2.0, 3.0], [1.5], [0.5], epsilon=1, priors=pq.Uniform(0, 4))
    >>> abs(loss) <= 1
    True
    """
    maker = prepare(quantiles, **keywords)
    columns = column_of(x), column_of(neighbour)
    drawn = outcome_of(maker, outcome, columns[0].kind)
    return difference_of(*(_log_parts(maker, column, drawn) for column in columns))


def difference_of(one: LogParts, other: LogParts) -> float:
    """How much larger the first of two log densities is; 0 if both outputs are impossible."""
    return 0.0 if one[1] == other[1] == -math.inf else one[1] - other[1] - float(one[0] - other[0])


def outcome_of(maker: Mechanism, outcome: Any, kind: Kind) -> Outcome | None:
    """What a caller gives as an output, in increasing order of quantile; None if repeats of a quantile disagree."""
    request = maker.request
    if isinstance(outcome, Release):
        outcome = {"values": outcome.values, "total": outcome.total, **outcome.outcome}
    drawn: dict[str, Any] = dict(outcome) if isinstance(outcome, Mapping) else {"values": outcome}
    try:
        values = drawn.pop("values")
        values = np.asarray(values if kind == NUMBER else kind.to_numbers(values), dtype=np.float64)
    except (KeyError, TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (len(request.quantiles),) or not np.all(np.isfinite(values)):
        raise ValueError("outcome must be a release, or hold one finite value for each quantile")
    distinct = np.empty(len(request.distinct))
    distinct[list(request.positions)] = values
    if np.any(distinct[list(request.positions)] != values):
        return None
    total = drawn.pop("total", None)
    return Outcome(distinct, None if total is None else int(total), tuple(drawn.items()))


def _log_parts(maker: Mechanism, column: Readable, outcome: Outcome | None) -> LogParts:
    if outcome is None:
        return Fraction(0), -math.inf
    with np.errstate(all="ignore"):
        return maker.log_parts(maker.column(*column.records(maker.request.on_nan)), outcome)
