"""The step curve of released quantiles with its band, in per cent of a picture's sides.

In per cent, because a page draws it at any width while letters keep their size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Spacing = Literal["number", "clock", "calendar"]

MARGIN = 0.12  # of the width, on either side of what is drawn; letters at the left edge stand there
FARTHEST = 0.5  # how far a band is drawn beyond the values, in widths of these
ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)  # steps between ticks, but for powers of ten
TIMES = (
    1.0,
    5.0,
    15.0,
    60.0,
    300.0,
    900.0,
    3600.0,
    10800.0,
    21600.0,
    43200.0,
    86400.0,
)  # and between times, in seconds
MONTH = 30 * 86400.0
MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 2400, 6000, 12000)  # between marks; the years are round ones
YEARS = (-62_135_596_800.0, 253_402_300_799.0)  # from the first to the last one that a calendar of four digits holds


@dataclass(frozen=True)
class StepCurve:
    """Where things stand in the picture; across from the left edge, up from the lower one, all in per cent.

    line: path of the curve, down from the upper edge as SVG counts. band: closed path around where the curve may run,
    empty without intervals. bars: (across from, across to, up) of each interval. dots: (across, up) of each value.
    ticks: (across, text) of marks along the lower edge. cut: whether an interval goes on beyond the picture.
    """

    line: str
    band: str
    bars: tuple[tuple[float, float, float], ...]
    dots: tuple[tuple[float, float], ...]
    ticks: tuple[tuple[float, str], ...]
    cut: bool


def step_curve(
    quantiles: Sequence[float],
    values: Sequence[float],
    intervals: Sequence[tuple[float, float]] | None,
    label: Callable[[float], str],
    *,
    spacing: Spacing = "number",
    most_ticks: int = 5,
) -> StepCurve:
    """The curve that steps up to each quantile at its value, with the intervals of the values as a band.

    quantiles: (m,) in [0, 1], any order. values: (m,) finite. intervals: (m, 2), ends may be infinite; None for none.
    label: text of a tick. spacing: what ticks are round in: powers of ten, or seconds of a "clock" or a "calendar".
    Returns what to draw; the same for the same numbers.

    >>> step_curve([0.5], [10.0], None, str).dots
    ((50.0, 50.0),)
    """
    order = np.argsort(np.asarray(quantiles, dtype=np.float64), kind="stable")
    levels, at = np.asarray(quantiles, dtype=np.float64)[order], np.asarray(values, dtype=np.float64)[order]
    ends = np.stack([at, at], axis=1) if intervals is None else np.asarray(intervals, dtype=np.float64)[order]
    low, high = _frame(at, ends)

    def across(x: Floats) -> Floats:
        share = (np.clip(x, low, high) / 2 - low / 2) / (high / 2 - low / 2)  # halves: a difference may be too large
        return np.round(100.0 * share, 3)

    up = np.round(100.0 * levels, 3)
    lower, upper = across(ends[:, 0]), across(ends[:, 1])
    band = ""
    if intervals is not None:
        left, right = np.minimum.accumulate(lower[::-1])[::-1], np.maximum.accumulate(upper)
        back = reversed(_stairs(right, up))
        band = _path([*_stairs(left, up), *back]) + "Z"
    bars = () if intervals is None else tuple(zip(lower.tolist(), upper.tolist(), up.tolist(), strict=True))
    marks = [(float(across(np.array(x))), label(x)) for x in _ticks(low, high, spacing, most_ticks)]
    return StepCurve(
        line=_path(_stairs(across(at), up)),
        band=band,
        bars=bars,
        dots=tuple(zip(across(at).tolist(), up.tolist(), strict=True)),
        ticks=tuple(mark for mark in marks if 5.0 <= mark[0] <= 95.0),
        cut=bool((ends < low).any() or (ends > high).any()),
    )


def _frame(at: Floats, ends: Floats) -> tuple[float, float]:
    """What the picture shows: values and intervals, of these no more than is useful, and a margin."""
    least, most = float(at.min()), float(at.max())
    width = most / 2 - least / 2  # half of it
    reach = width * 2 * FARTHEST if width > 0 else math.inf
    finite = ends[np.isfinite(ends)]
    near = finite[(finite >= least - reach) & (finite <= most + reach)]
    beyond: list[float] = []
    if math.isfinite(reach):
        beyond += [least - reach] if (ends < least - reach).any() else []
        beyond += [most + reach] if (ends > most + reach).any() else []
    low, high = (float(pick([*at, *near, *beyond])) for pick in (min, max))
    if not low < high:
        room = abs(low) * 0.05 or 1.0
        low, high = low - room, high + room
    else:
        room = (high / 2 - low / 2) * 2 * MARGIN / (1 - 2 * MARGIN)
        low, high = low - room, high + room
    largest = float(np.finfo(np.float64).max)
    return max(low, -largest), min(high, largest)


def _stairs(across: Floats, up: Floats) -> list[tuple[float, float]]:
    """Corners of a curve that steps up to each level, from the left edge to the right one."""
    corners, level = [(0.0, 0.0)], 0.0
    for x, y in zip(across.tolist(), up.tolist(), strict=True):
        corners += [(x, level), (x, y)]
        level = y
    return [*corners, (100.0, level)]


def _path(corners: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {100 - y:g}" for x, y in corners)


def _ticks(low: float, high: float, spacing: Spacing, most: int) -> list[float]:
    """Round numbers between two, at most so many."""
    rough = (high / most - low / most) or 1.0
    if spacing == "calendar" and rough > MONTH / 2:
        return _months(low, high, rough)
    clock = spacing != "number" and rough > 0.1
    unit = 86_400.0 if clock and rough > 86_400.0 else 1.0
    power = 10.0 ** math.floor(math.log10(rough / unit))
    steps = [unit * power * step for step in ROUND if not clock or power * step % 1 == 0]
    if clock and rough <= 86_400.0:
        steps = list(TIMES)
    step = next((one for one in steps if one >= rough * (1 - 1e-9)), steps[-1])
    first, last = math.ceil(low / step), math.floor(high / step)
    return [step * k for k in range(first, min(last, first + 2 * most) + 1)]


def _months(low: float, high: float, rough: float) -> list[float]:
    """First days of months of the calendar, at least so many seconds apart."""
    step = next((one for one in MONTHS if one * MONTH >= rough), MONTHS[-1])
    ends = np.clip([low, high], *YEARS).astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
    first, last = -(-int(ends[0]) // step), int(ends[1]) // step
    stamps = (np.arange(first, last + 1) * step).astype("datetime64[M]").astype("datetime64[s]").astype(np.float64)
    return [float(stamp) for stamp in stamps if low <= stamp <= high]
