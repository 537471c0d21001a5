"""Which mechanism has the least error, as far as public facts tell.

The facts are budget, adjacency, quantiles, the guessed number of records, what is promised of the column, whether
priors differ and whether they know a unit. What they say in it is not looked at: the choice is alike in every unit.
"""

from __future__ import annotations

import math

from pq.core.expected import (
    FEWEST_CELLS,
    LEAST_LOOK_SIGNAL,
    MOST_CELLS,
    MOST_DRAWN,
    best_drawn,
    curve_gap,
    learned_gap,
    own_cells_gap,
    smooth_cells_gap,
    tree_gap,
    usual_budget,
    usual_size,
)
from pq.core.priors.differing import differing
from pq.core.priors.log_uniform import knows_scale
from pq.core.request import Request
from pq.private.fast.encode import encode
from pq.private.mechanisms.cells import CELLS_PER_SIGNAL, own_cells
from pq.private.mechanisms.joint.plan import is_orderable
from pq.private.mechanisms.protocol import MECHANISMS

LEAST_CELLS_SIGNAL = 60.0  # budget times number of records from which a place for cells is found
# Budget times numbers of records and of outputs up to which a joint release takes a few seconds even if most records
# are tied: without a grid its time grows with them.
MOST_TIED_WORK = 2e5
FEWEST_LUMPY, FEWEST_PLACED = 15, 4  # quantiles that a look pays for: under priors that know a scale, and others
MANY_HELD = 12.0  # records of each value, times the budget, for each level of a tree
AMONG_TIES = {"joint": 0.8, "margin": 0.25}  # share of the usual gap where most levels fall among tied records
MISSPLIT = 1.0 / 128.0  # of a column, by which margins are off where one value holds half of it: ties split in eighths
MOST_IN_CELL = 8.0  # values
USUAL_VALUES = 100.0  # on a grid, under priors that do not say
FEWEST_TIED = 10  # outputs that count, so that fewer do not make up for records
MOST_PRIORS = 14  # distinct; with more, so much is possible that all cells of a column have to be weighed


def chosen(request: Request) -> str:
    """The name of the mechanism that "auto" stands for."""
    if usual_budget(request.budget, request.adjacency) == 0.0:  # less than the least float
        return "tree"
    if request.step is not None:
        return _on_grid(request)
    if len(request.distinct) == 1 or math.isinf(request.budget):
        return "tree"
    gaps = {"joint": _joint(request), "mixed": _mixed(request), "cells": _cells(request), "tree": _tree(request)}
    return _least(gaps, request)


def _on_grid(request: Request) -> str:
    """Outputs on a grid: margins for one quantile; for several where values hold many more records than a level is off,
    margins or a count of each value; else one law for all of them, or counts of cells."""
    if math.isinf(request.budget) or request.tree.calibration != "sharp":
        return "tree"
    count, budget, size = _facts(request)
    held, levels = budget * size / _values(request), count.bit_length()
    if count == 1:
        return "margin"
    if held > MANY_HELD * levels:
        return _least({"margin": MISSPLIT * size, "cells": _cells_on_grid(request)}, request)
    joint, (drawn, rough) = _joint(request), best_drawn(count, budget, size, False, knows_scale(request.priors))
    if request.assume_smooth:
        joint = max(joint, rough)  # a curve through few outputs has no steps; smooth cells have many
    elif drawn < count and joint < math.inf:
        joint = curve_gap(drawn, budget, size, smooth=True)  # values that many share are hit by several outputs
    gaps = {"joint": joint, "cells": _cells_on_grid(request)}
    if held <= 2.0 * levels:
        return _least(gaps | {"tree": _tree(request)}, request)
    gaps["joint"] *= AMONG_TIES["joint"] if drawn == count else 1.0
    return _least(gaps | {"margin": AMONG_TIES["margin"] * _tree(request)}, request)


def _least(gaps: dict[str, float], request: Request) -> str:
    """The mechanism of the least expected gap among those that serve so small a budget; the tree serves all."""
    serving = [name for name in gaps if request.budget >= MECHANISMS[name].least_budget]
    return min(serving, key=lambda name: gaps[name])


def _cells_on_grid(request: Request) -> float:
    """Expected largest gap of cells along the priors: of one for each value, or under a promise of fewer; infinite
    where these would be too many, for values that many records share are then not told from others."""
    count, budget, size = _facts(request)
    if _several(request) or not knows_scale(request.priors) or budget * size < LEAST_CELLS_SIGNAL:
        return math.inf
    if not request.assume_smooth:
        own = own_cells(request)
        return math.inf if own is None else own_cells_gap(count, budget, own)
    cells = min(max(CELLS_PER_SIGNAL["prior"] * budget * math.sqrt(size), FEWEST_CELLS), MOST_CELLS)
    return smooth_cells_gap(count, budget, size) if _values(request) <= MOST_IN_CELL * cells else math.inf


def _values(request: Request) -> float:
    """How many multiples of the step lie between a prior's 5% and 95% points: in every unit the same."""
    assert request.step is not None
    if not knows_scale(request.priors):
        return USUAL_VALUES
    low, high = request.priors[0].quantile_between(-math.inf, math.inf, [0.05, 0.95])
    return max((high - low) / float(request.step), 1.0)


def _facts(request: Request) -> tuple[int, float, float]:
    size = usual_size(request.size_guess)
    return len(request.distinct), usual_budget(request.budget, request.adjacency), size


def _is_slow(request: Request) -> bool:
    """Whether joint outputs could take long: from records that are tied, or priors that only formulas serve."""
    count, budget, size = _facts(request)
    outputs = max(min(count, MOST_DRAWN), FEWEST_TIED)
    tied = not request.assume_smooth and budget * size * outputs > MOST_TIED_WORK
    return tied or len(differing(request.priors)) > MOST_PRIORS or encode(request.priors) is None


def _joint(request: Request) -> float:
    """Expected largest gap of a joint release; infinite where it is not sound, or slow, or better after a look."""
    count, budget, size = _facts(request)
    drawn, gap = best_drawn(count, budget, size, request.assume_smooth, knows_scale(request.priors))
    lost = drawn < count and _several(request)
    return math.inf if lost or _is_slow(request) or _looks(request) or not is_orderable(request.priors) else gap


def _mixed(request: Request) -> float:
    """Expected largest gap of a joint release after a look; infinite where one does not pay."""
    count, budget, size = _facts(request)
    return math.inf if _is_slow(request) or not _looks(request) else learned_gap(count, budget, size)


def _looks(request: Request) -> bool:
    """Whether a joint release should look first: many outputs pay together for lumps, or all for a place anywhere."""
    count, budget, size = _facts(request)
    if _several(request) or budget * size < LEAST_LOOK_SIGNAL:
        return False
    if request.step is not None and knows_scale(request.priors):
        return False
    few = FEWEST_LUMPY if knows_scale(request.priors) else FEWEST_PLACED
    return count >= few and not (request.assume_smooth and knows_scale(request.priors))


def _cells(request: Request) -> float:
    """Expected largest gap of a smooth distribution function; infinite where nobody promises that there is one."""
    count, budget, size = _facts(request)
    least = LEAST_CELLS_SIGNAL if knows_scale(request.priors) else LEAST_LOOK_SIGNAL
    usable = request.assume_smooth and not _several(request) and budget * size >= least
    return smooth_cells_gap(count, budget, size) if usable else math.inf


def _tree(request: Request) -> float:
    """Expected largest gap of a tree."""
    count, budget, _ = _facts(request)
    return tree_gap(count, budget)


def _several(request: Request) -> bool:
    """Whether quantiles have predictions of their own, which are lost where others stand for them."""
    return len(differing(request.priors)) > 1
