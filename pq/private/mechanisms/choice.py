"""Which mechanism has the least error, as far as public facts tell.

The facts are budget, adjacency, quantiles, the guessed number of records, what is promised of the column, and whether
priors differ. Priors have a unit, and what they say is not looked at: the choice is alike in every unit.
"""

from __future__ import annotations

import math

from pq.core.expected import best_drawn, smooth_cells_gap, tree_gap, usual_budget, usual_size
from pq.core.request import Request
from pq.private.fast.encode import encode
from pq.private.mechanisms.joint.plan import is_orderable

LEAST_CELLS_SIGNAL = 60.0  # budget times number of records from which a place for cells is found
# Budget times number of records up to which a joint release takes less than a second even if most records are tied:
# without a grid its time grows with them.
MOST_TIED_SIGNAL = 2e4
MOST_PRIORS = 14  # distinct; with more, so much is possible that all cells of a column have to be weighed


def chosen(request: Request) -> str:
    """The name of the mechanism that "auto" stands for."""
    if request.step is not None:
        return _on_grid(request)
    if len(request.distinct) == 1 or math.isinf(request.budget):
        return "tree"
    gaps = {"cells": _cells(request), "tree": _tree(request), "joint": _joint(request)}
    return min(("joint", "cells", "tree"), key=lambda name: gaps[name])


def _on_grid(request: Request) -> str:
    """Outputs on a grid: margins for one quantile, and for several where values hold more records than a level is off.

    How many values there are is the number of steps between a prior's 5% and 95% points: in every unit the same.
    """
    if math.isinf(request.budget) or request.tree.calibration != "sharp":
        return "tree"
    if len(request.distinct) == 1:
        return "margin"
    assert request.step is not None
    low, high = request.priors[0].quantile_between(-math.inf, math.inf, [0.05, 0.95])
    values = max((high - low) / float(request.step), 1.0)
    levels = len(request.distinct).bit_length()
    return "margin" if usual_size(request.size_guess) * float(request.budget) > 2.0 * levels * values else "tree"


def _facts(request: Request) -> tuple[int, float, float]:
    size = usual_size(request.size_guess)
    return len(request.distinct), usual_budget(request.budget, request.adjacency), size


def _joint(request: Request) -> float:
    """Expected largest gap of a joint release; infinite where it is not sound, or slow."""
    count, budget, size = _facts(request)
    drawn, gap = best_drawn(count, budget, size, request.assume_smooth)
    tied = not request.assume_smooth and budget * size > MOST_TIED_SIGNAL
    slow = tied or len(set(request.priors)) > MOST_PRIORS or encode(request.priors) is None
    if slow or (drawn < count and _several(request)) or not is_orderable(request.priors):
        return math.inf
    return gap


def _cells(request: Request) -> float:
    """Expected largest gap of a smooth distribution function; infinite where nobody promises that there is one."""
    count, budget, size = _facts(request)
    usable = request.assume_smooth and not _several(request) and budget * size >= LEAST_CELLS_SIGNAL
    return smooth_cells_gap(count, budget, size) if usable else math.inf


def _tree(request: Request) -> float:
    """Expected largest gap of a tree."""
    count, budget, _ = _facts(request)
    return tree_gap(count, budget)


def _several(request: Request) -> bool:
    """Whether quantiles have predictions of their own, which are lost where others stand for them."""
    return len(set(request.priors)) > 1
