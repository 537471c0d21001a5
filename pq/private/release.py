"""Private release of quantiles of a column (Section 3.2)."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from pq.core.budget.ledger import Ledger, charge
from pq.core.choices import Adaptation, Adjacency, Calibration, OnNan
from pq.core.exact import Number, whole_number
from pq.core.machine.engine import first_answers
from pq.private.columns import selection
from pq.private.columns.counts import Counts
from pq.private.columns.door import Array, Readable, UnreadColumn
from pq.private.columns.frames import column_of
from pq.private.columns.part import Near, Unknown
from pq.private.columns.selection import Pieces, parts_of
from pq.private.mechanisms import Mechanism, Outcome
from pq.private.prepare import prepare
from pq.private.randomness import Source, Tape
from pq.private.result import Release

__all__ = ["Release", "fulfil", "promised_column", "release", "simulate"]
MOST_TRIALS = 10**12  # no memory holds more


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
    quantiles: (m,) numbers in [0, 1], any order; repeats share one release, others differ as floats.
    epsilon: total budget of the call, positive.
    priors: one prior for all quantiles, one for each, in their order, or a `pq.JointPrior` of all; never made from x.
    mechanism: "tree", the paper's Algorithm 2; "joint", one exponential mechanism over all quantiles and the number of
        records; "mixed", the same after a look at where records lie; "cells", noisy counts of a private distribution
        function; "margin", a tree that aims at ties, on a grid; or "auto", which chooses from the public arguments.
    size_guess: rough number of records, never len(x): it chooses and tunes the mechanism.
    public_total: number of records, where that is public knowledge; never len(x), which would cost privacy.
    assume_smooth: whether the column has few ties and no narrow peaks; where that is wrong, accuracy is lost, never
        privacy.
    grid: release multiples of this public step only; the records are rounded to it too. Right for values that repeat:
        where many records share one, a joint release without a grid may be off at all quantiles.
    ledger: a `pq.Ledger` or the path of one, charged before the data are touched. purpose: the text of its entry.
    adjacency: what two neighbouring columns differ in: one record more or less, or one record replaced.
    calibration, adaptation, arity, budget_power: options of the tree, which any of them asks for. calibration: "sharp"
        aims at `q n` with sensitivity `max(q, 1 - q)`, "paper" at `floor(q n)` with sensitivity one. adaptation: how a
        prior is restricted to the interval between earlier outputs: renormalised ("conditional"), or with the mass
        outside moved to atoms on the ends ("edge"). arity, budget_power: shape and budgets, see `pq.plan`.
    on_nan: what a missing record counts as: nothing ("drop"), or the lowest or the highest number.
    max_contributions: records that one person may own, at least 1, and not less than a `pq.Counts` says; each is then
        given epsilon / max_contributions, so that all of a person's records together cost at most epsilon (group
        privacy).
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
    column, source = promised_column(x, maker), Source(rng)
    _charge(ledger, purpose, maker, 1)
    return fulfil(maker, column, source)


def promised_column(x: Any, maker: Mechanism) -> Readable:
    """x as a column of which nothing is read yet. What counts say of a person's records is a public fact, and no less
    may be promised of them: raises `ValueError` naming max_contributions, otherwise as `column_of`."""
    column = column_of(x)
    bound = column.max_contributions if isinstance(column, Counts) else None
    if bound is not None and maker.request.max_contributions < bound:
        raise ValueError(f"max_contributions must be at least {bound}, as x was counted with")
    return column


def _charge(ledger: Any, purpose: str, maker: Mechanism, times: int) -> None:
    """Pay before the data are touched."""
    rho = None if ledger is None else maker.rho
    request = maker.request
    adjacency: Any = request.adjacency
    charge(ledger, epsilon=request.epsilon, adjacency=adjacency, purpose=purpose, rho=rho, times=times)


def fulfil(maker: Mechanism, column: Readable, source: Source) -> Release:
    """One release by a mechanism; nothing raises, warns or is kept after the data have come in."""
    with np.errstate(all="ignore"), first_answers():
        outcome = None
        near = maker.near if isinstance(column, UnreadColumn) and maker.request.on_nan == "drop" else None
        if isinstance(column, UnreadColumn) and near is not None and selection.parts_can_be_found():
            arrays = column.unsorted(selection.FEWEST)
            if arrays is not None:
                tape = source = Tape(source)
                outcome = _of_parts(maker, Pieces(arrays), near, tape)
                tape.rewind()
        if outcome is None:
            outcome = maker.draw(maker.column(*column.records(maker.request.on_nan)), source)
    return Release.of(maker, outcome, column.kind)


def _of_parts(maker: Mechanism, records: Pieces, near: Near, tape: Tape) -> Outcome | None:
    """What would be drawn from a column that nobody has sorted, from ever more of what lies around the quantiles; None
    where that does not do, or what is drawn needs all records."""
    parts = parts_of(records, *near)
    part = next(parts, None)
    while part is not None:
        try:
            return maker.draw(part, tape.rewind())
        except Unknown as unknown:
            wanted = None if unknown.everything else unknown.wanted
        try:
            part = None if wanted is None else parts.send(wanted)
        except StopIteration:
            part = None
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
    if count > MOST_TRIALS:
        raise ValueError(f"trials must be at most {MOST_TRIALS:,}")
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
    column, source = promised_column(x, maker), Source(rng)
    _charge(ledger, purpose, maker, count)
    with np.errstate(all="ignore"):
        records = column.records(maker.request.on_nan)
        values = maker.simulate(maker.column(*records), source, count)
        return values[:, list(maker.request.positions)] + 0.0  # one zero, see `Outcome`
