"""The audit of `pq.release`: priors, columns and outputs for which its privacy loss is as large as it can be (Section
3.2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pq.core.grid import grid_step
from pq.core.plan import Plan, plan
from pq.core.priors import Prior
from pq.truth.audit.bins import BINS, Line, shapes
from pq.truth.audit.ceiling import ceiling
from pq.truth.audit.losses import TreeLosses
from pq.truth.audit.report import AuditReport
from pq.truth.audit.search import Found, Search, race
from pq.truth.audit.worst import Case, WorstPriors, priors_for

FEW = 24  # records of a search with a prior that may not suit more
TRIALS = 4  # searches for the worst priors, unless one reaches what is possible at all
PLACES = 255.0  # of a search for the worst priors


def audit_release(
    quantiles: Any,
    *,
    epsilon: Any,
    priors: Any = None,
    adjacency: str = "add-remove",
    calibration: str = "sharp",
    adaptation: str = "conditional",
    arity: int = 2,
    budget_power: float = 0.0,
    grid: Any = None,
    pairs: int = 100_000,
    seed: int = 0,
    records: int | None = None,
    population: int = 512,
    progress: Callable[[int], Any] | None = None,
) -> AuditReport:
    """Search for the largest privacy loss of `pq.release` with these settings (`alg:quantiles`).

    quantiles: increasing. priors: as in `pq.release`, or None to let the search choose them: first it looks for the
    columns and the output that are worst if each quantile has the prior that is worst for them
    (`pq.truth.audit.worst`); then, by exact densities only, around that case with these priors, and anywhere with a few
    priors for all quantiles. Places are then in units of the grid's step. pairs: to evaluate exactly, at least. seed,
    records, population, progress: as in `audit`. The rest: as in `pq.release`.

    Returns an `AuditReport`. Raises `ValueError` or `TypeError` naming the argument at fault.

    >>> report = audit_release([0.25, 0.5, 0.75], epsilon=1, pairs=4000, population=64)
    >>> 0.99 < report.ratio <= 1.0000001, report.passed
    (True, True)
    """
    shape: dict[str, Any] = {"calibration": calibration, "arity": arity, "budget_power": budget_power}
    tree = {"adjacency": adjacency, **shape}
    step = grid_step(grid)
    laid = plan(quantiles, epsilon=epsilon, **tree)
    if not math.isfinite(laid.epsilon):
        raise ValueError("epsilon must be finite")
    most = ceiling(laid, tied=step is not None and calibration == "sharp")
    size = _records(laid) if records is None else records
    losses = partial(
        TreeLosses, quantiles, epsilon=epsilon, adaptation=adaptation, grid=None if step is None else 1, **tree
    )
    search = partial(
        Search,
        outputs=len(laid.distinct),
        epsilon=float(laid.epsilon),
        adjacency=adjacency,
        population=population,
        rng=np.random.default_rng(seed),
    )
    if priors is None:
        searches = _chosen(losses, partial(search, records=size), most, pairs // TRIALS)
    else:
        searches = {"given": _given(losses(priors=priors, grid=step), search, priors, size)}
    found = race(list(searches.values()), pairs, progress)
    worst = max(searches, key=lambda name: searches[name].best)
    return AuditReport.of(
        found,
        epsilon=float(laid.epsilon),
        adjacency=adjacency,
        prior=worst if priors is None else None,
        priors=list(searches[worst].mechanism.priors),  # type: ignore[union-attr]
        ceiling=most,
        seed=seed,
        settings=_settings(laid, tree, adaptation, grid),
    )


def _given(mechanism: Any, search: Any, priors: Any, size: int) -> Search:
    """A search along the line on which the first of the given priors lies."""
    line = Line.along(priors if isinstance(priors, Prior) else priors[0])
    found: Search = search(mechanism, line=Line(line.place, line.scale, mechanism.step), records=size)
    return found


def _settings(laid: Plan, tree: dict[str, Any], adaptation: str, grid: Any) -> dict[str, Any]:
    """What the report says of the release besides epsilon and adjacency."""
    return {
        "quantiles": [str(q) for q in laid.quantiles],
        "calibration": tree["calibration"],
        "adaptation": adaptation,
        "arity": tree["arity"],
        "budget_power": tree["budget_power"],
        "grid": None if grid is None else str(grid),
    }


def _records(laid: Plan) -> int:
    """Records that neighbours may share: enough for a way through the tree, or two, that loses most."""
    size = max(4, min(3 * len(laid.distinct) // 2, 40))
    if laid.adjacency == "replace":
        size = max(size, min(2 ** (laid.depth + (laid.calibration == "paper")), 72))
    return size


def _chosen(losses: Any, search: Any, most: float, pairs: int) -> dict[str, Search]:
    """Searches by the name of their priors: around the case with the worst priors, and with one prior for all."""
    ideal = WorstPriors(losses(priors=shapes(0.0, 0.0, np.random.default_rng(0))["up"]))
    found = _worst_case(ideal, search, most, pairs)
    case = Case.of(found.x, found.neighbour, found.values)
    line = Line.between(0.0, case.places - 1.0, step=ideal.step)
    chosen = {
        "one for each quantile": search(
            losses(priors=priors_for(ideal, case)), line=line, start=(case.x, case.neighbour, case.values)
        )
    }
    few = min(search.keywords["records"], FEW)
    for name, prior in shapes(0.0 if ideal.step is None else -0.5, 4.0, search.keywords["rng"]).items():
        line = Line.between(0.0, float(BINS - (ideal.step is not None)), step=ideal.step)
        chosen[name] = search(losses(priors=prior), line=line, records=few)
    return chosen


def _worst_case(ideal: WorstPriors, search: Any, most: float, pairs: int) -> Found:
    """The worst of a few searches over columns and outputs if all priors are the worst for them."""
    best: Found | None = None
    enough = most * float(ideal.plan.epsilon) * (1.0 - 1e-9)
    for _ in range(TRIALS):
        climb = search(ideal, line=Line.between(0.0, PLACES, step=ideal.step))
        while climb.pairs < pairs and climb.best < enough:
            climb.run(1)
        if best is None or climb.best > best.loss:
            best = climb.found()
        if best.loss >= enough:
            break
    assert best is not None
    return best
