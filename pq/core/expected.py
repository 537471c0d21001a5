"""Rough largest gaps of each mechanism from public facts: they choose and tune, and no privacy depends on them.

Constants are fitted to simulations of public laws (`benchmarks.least_error`), at a thousand records and evenly spaced
quantiles. Budgets are of one record, under add-remove; nothing here has a unit of the data, so that the same facts in
another unit give the same choice.
"""

from __future__ import annotations

import math
from fractions import Fraction

USUAL_SIZE = 1000  # records, where nothing is said
WIDE = math.log(1000.0)  # nats to find records that fill a thousandth of what the priors allow
# Nats more, so that all quantiles are found, surely or nearly so: where a curve through few outputs may be wrong
# everywhere, one output more is worth the risk that it is not found.
SPARE = {True: 5.0, False: 3.0}
LARGEST = 1e15
FEWEST_DRAWN, MOST_DRAWN = 3, 32  # below, extremes are out of sight; above, time grows and little is gained
SMOOTH, ROUGH = 1.2, 0.75  # how far off a curve is between outputs, for the root of the records there, and for each
FILLED_NATS = 5.0  # for each output, so that all are found if the records fill what the priors allow
LEAST_LOOK_SIGNAL = 400.0  # budget times number of records from which a look is a small part of the budget
LOOK_NATS, LEARNED_NATS = 90.0, 8.5  # budget of a look, for each record; to find an output after it
MOST_LEARNED = 128  # outputs after a look
FEWEST_CELLS, MOST_CELLS = 16.0, 128.0


def usual_budget(budget: Fraction | float, adjacency: str) -> float:
    """The budget that does as much under add-remove: a replaced record is one less and one more."""
    return min(float(budget), LARGEST) / (2.0 if adjacency == "replace" else 1.0)


def usual_size(size: float | None) -> float:
    """The number of records to reckon with."""
    return min(float(USUAL_SIZE if size is None else size), LARGEST)


def is_found(drawn: int, signal: float, surely: bool) -> bool:
    """Whether so many joint outputs are found wherever the records are. signal: budget times number of records.

    >>> is_found(40, 1000.0, surely=True), is_found(41, 1000.0, surely=True), is_found(41, 1000.0, surely=False)
    (True, False, True)
    """
    return signal / (2.0 * (drawn + 1)) >= WIDE + SPARE[surely]


def joint_gap_guess(drawn: int, budget: float) -> float:
    """Largest gap among joint outputs that are found."""
    return 2.0 * (1.0 if drawn <= 9 else 1.2) * math.sqrt(drawn + 1.0) / budget


def curve_gap(drawn: int, budget: float, size: float, smooth: bool) -> float:
    """Largest gap among quantiles on a curve through so many joint outputs, of a column that is smooth or not."""
    between = size / (drawn + 1.0)
    if smooth:
        return math.hypot(joint_gap_guess(drawn, budget), SMOOTH * math.sqrt(between))
    return joint_gap_guess(drawn, budget) + ROUGH * between


def best_drawn(count: int, budget: float, size: float, smooth: bool, scale: bool = True) -> tuple[int, float]:
    """How many of so many quantiles a joint release should draw, the others being read off a curve, and the largest
    gap; all, and infinity, if nothing is found. scale: whether the priors know one; else places cost more.

    >>> [best_drawn(m, 0.1, 1000.0, smooth=True)[0] for m in (2, 9, 99)]
    [2, 3, 3]
    >>> [best_drawn(m, 1.0, 1000.0, smooth=False)[0] for m in (2, 9, 29, 99)]
    [2, 9, 29, 32]
    >>> [best_drawn(99, 0.1, 1000.0, smooth=False, scale=known)[0] for known in (True, False)]
    [4, 3]
    """
    signal = budget * size
    gaps = {k: curve_gap(k, budget, size, smooth) for k in range(FEWEST_DRAWN, min(count, MOST_DRAWN + 1))}
    if count <= MOST_DRAWN:
        gaps[count] = joint_gap_guess(count, budget)
    found = [(gap, k) for k, gap in gaps.items() if is_found(k, signal, smooth or not scale)]
    gap, drawn = min(found, default=(math.inf, count))
    return drawn, gap


def drawn_if_filled(signal: float) -> int:
    """How many joint outputs are found if the records fill what the priors allow.

    >>> drawn_if_filled(100.0)
    9
    """
    return max(math.floor(signal / (2.0 * FILLED_NATS)) - 1, 1)


def learned_drawn(levels: tuple[Fraction, ...], signal: float) -> tuple[Fraction, ...]:
    """The quantiles that a joint release after a look should draw: all, or every second, third ... where these are
    found, so that those between two of them are never farther than half a level's share off both.

    levels: (m,) increasing. signal: budget times number of records.

    >>> [len(learned_drawn(tuple(Fraction(i, m + 1) for i in range(1, m + 1)), 1000.0)) for m in (9, 29, 99)]
    [9, 29, 49]
    """
    most = min(max((signal - LOOK_NATS) / (2.0 * LEARNED_NATS) - 1.0, FEWEST_DRAWN), MOST_LEARNED)
    if len(levels) <= most:
        return levels
    inner = tuple(level for level in levels if 0 < level < 1)
    stride = next(s for s in range(1, len(inner) + 1) if len(inner) // s <= most)
    return inner[stride - 1 :: stride]


def learned_gap(count: int, budget: float, size: float) -> float:
    """Largest gap of so many quantiles of a joint release after a look, of a column that is smooth or not."""
    most = max((budget * size - LOOK_NATS) / (2.0 * LEARNED_NATS) - 1.0, FEWEST_DRAWN)
    stride = math.ceil(count / min(most, MOST_LEARNED))
    between = ROUGH * size / (count / stride + 1.0) if stride > 1 else 0.0
    return 1.2 * joint_gap_guess(max(count // stride, 1), budget) + 0.5 * between


def smooth_cells_gap(count: int, budget: float, size: float) -> float:
    """Largest gap of so many quantiles of a smooth distribution function on cells around a private place.

    >>> round(smooth_cells_gap(99, 1.0, 1000.0), 1)
    10.7
    """
    cells = min(max(budget * math.sqrt(size), FEWEST_CELLS), MOST_CELLS)
    return 2.2 * math.sqrt(cells / (2.0 * budget**2) + size / (4.0 * cells)) * (count / 99.0) ** 0.14


def own_cells_gap(count: int, budget: float, cells: int) -> float:
    """Largest gap of so many quantiles on a grid where each value has a cell of its own, of any column.

    >>> round(own_cells_gap(99, 1.0, 111), 1), round(own_cells_gap(9, 1.0, 111), 1)
    (10.5, 6.5)
    """
    return math.sqrt(cells) / budget * (count / 99.0) ** 0.2


def tree_gap(count: int, budget: float) -> float:
    """Largest gap of so many quantiles of a tree, of the worst of several columns."""
    return 9.0 * math.sqrt(count) / budget
