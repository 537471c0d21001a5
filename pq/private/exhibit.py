"""One release as texts and a picture, for a page (Section 3.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from pq.core.exact import quantile_fraction
from pq.core.kind import kind_named, shown
from pq.core.priors import JointPrior, Prior
from pq.core.seconds import Floats
from pq.show.numbers import decimals_worth, number_text
from pq.show.promise import interval_words
from pq.show.step_curve import Spacing, StepCurve, step_curve

LETTERS = 36  # of all marks along a picture's edge, so that they stand apart on a phone
NAMES = {0.0: "least", 0.25: "lower quartile", 0.5: "median", 0.75: "upper quartile", 1.0: "greatest"}
SPACINGS: dict[str, Spacing] = {"number": "number", "duration": "clock", "time": "clock"}
LONGEST_LIST = 9  # quantiles that a picture's alternative text tells one by one


class Reported(Protocol):
    """What a page needs of a release."""

    @property
    def values(self) -> Any: ...
    @property
    def quantiles(self) -> Any: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def max_contributions(self) -> int: ...
    @property
    def adjacency(self) -> str: ...
    @property
    def mechanism(self) -> str: ...
    @property
    def grid(self) -> float | Fraction | None: ...
    @property
    def priors(self) -> tuple[Prior, ...]: ...
    @property
    def joint_prior(self) -> JointPrior | None: ...
    @property
    def kind(self) -> str: ...
    @property
    def remarks(self) -> tuple[str, ...]: ...
    def interval(self, level: float, size_guess: float | None) -> Any: ...
    def to_dict(self) -> dict[str, Any]: ...


def exhibit(release: Reported, name: str, unit: str, level: float, size_guess: float | None) -> dict[str, Any]:
    """One release as templates show it."""
    kind = kind_named(release.kind)
    numbers = kind.to_numbers(release.values)
    ends = interval_numbers(release, numbers, level, size_guess)
    texts, spans = value_texts(release, numbers, ends)
    told = None if ends is None else f"{100 * level:.10g}%"
    rows = [
        {"share": share_text(q), "value": text, "low": low, "high": high}
        for q, text, (low, high) in zip(release.quantiles, texts, spans, strict=True)
    ]
    curve = _curve(release, numbers, ends)
    of = f" of {name}" if name else ""
    return {
        "name": name,
        "rows": rows,
        "curve": curve,
        "level": told,
        "unit": unit_text(release, unit),
        "remarks": _remarks_of(release),
        "interval_words": interval_words(release.mechanism, told),
        "picture_title": f"Step curve of the released quantiles{of}",
        "picture_text": _alternative(rows, told),
        "caption": _caption(curve, told),
        "table_caption": f"Released quantiles{of}, rounded for reading{_records(release)}",
    }


def share_text(q: float) -> str:
    """A quantile as a percentage, with its name if it has one."""
    name = NAMES.get(float(q))
    share = f"{float(100 * quantile_fraction(float(q))):.6g}%"
    return share if name is None else f"{share} ({name})"


def unit_text(release: Reported, unit: str) -> str:
    return f" ({unit})" if unit else " (UTC)" if release.kind == "timestamp" else ""


def value_texts(release: Reported, numbers: Floats, ends: Floats | None) -> tuple[list[str], list[tuple[str, str]]]:
    """Values and intervals in as many digits as say something; intervals are never shown smaller than they are."""
    sides = np.empty((2, 0)) if ends is None else ends.T
    if release.kind != "number":
        kind = kind_named(release.kind)
        values, *pair = (shown(kind.from_numbers(side)) for side in (numbers, *sides))
    else:
        places = decimals_worth(None if release.grid is None else float(release.grid), numbers, ends)
        ways = (ROUND_FLOOR, ROUND_CEILING) if release.grid is None else (ROUND_HALF_EVEN, ROUND_HALF_EVEN)
        values = [number_text(x, places) for x in numbers.tolist()]
        pair = [[number_text(x, places, way) for x in side] for side, way in zip(sides.tolist(), ways, strict=True)]
    return values, [("", "")] * len(values) if ends is None else list(zip(*pair, strict=True))


def _curve(release: Reported, numbers: Floats, ends: Floats | None) -> StepCurve:
    """The picture, with as many marks along its edge as there is room for."""
    spacing = SPACINGS.get(release.kind.partition("[")[0], "calendar")
    kind = kind_named(release.kind)

    def label(x: float) -> str:
        if spacing == "number":
            return f"{x:,.15g}".replace("-", "−")
        text = shown(kind.from_numbers([x]))[0]
        return text.removesuffix("T00:00:00").removesuffix(", 0:00:00")

    pairs = None if ends is None else [(a, b) for a, b in ends.tolist()]
    for most in (6, 5, 4, 3, 2, 1):
        curve = step_curve(release.quantiles.tolist(), numbers.tolist(), pairs, label, spacing=spacing, most_ticks=most)
        if sum(len(text) + 2 for _, text in curve.ticks) <= LETTERS:
            break
    return curve


def _alternative(rows: Sequence[Mapping[str, str]], level: str | None) -> str:
    """What the picture shows, for those who do not see it."""
    told = list(rows) if len(rows) <= LONGEST_LIST else [rows[0], rows[len(rows) // 2], rows[-1]]
    band = f" with a band of {level} intervals" if level else ""
    head = f"The share of records at or below a value, from 0% to 100%, rises in steps at the released values{band}. "
    ways = "{share}: {value}, from {low} to {high}" if level else "{share}: {value}"
    each = [ways.format(**row) for row in told]
    rest = "" if len(told) == len(rows) else f" These are 3 of {len(rows)}; the table below tells all."
    return head + "; ".join(each) + "." + rest


def _caption(curve: StepCurve, level: str | None) -> str:
    said = (
        "Share of records at or below a value. The curve steps up at each released value; what is between is unknown."
    )
    if level:
        said += f" Bars and band: {level} intervals."
    return said + (" Some go on beyond the picture." if curve.cut and level else "")


def interval_numbers(release: Reported, numbers: Floats, level: float, size_guess: float | None) -> Floats | None:
    """The intervals (m, 2) as numbers; None where there are none, as nothing tells the number of records."""
    try:
        ends = np.asarray(release.interval(level, size_guess))
    except ValueError as refused:
        if size_guess is None and str(refused).startswith("size_guess"):
            return None
        raise
    return kind_named(release.kind).to_numbers(ends.ravel()).reshape(len(numbers), 2)


def _remarks_of(release: Reported) -> tuple[str, ...]:
    """What a release remarks on itself, as whole sentences."""
    return tuple(remark[:1].upper() + remark[1:].rstrip(".") + "." for remark in release.remarks)


def _records(release: Reported) -> str:
    """A private count of the records, where there is one."""
    total = getattr(release, "total", None)
    return "" if total is None else f"; about {total:,} records by a private count"
