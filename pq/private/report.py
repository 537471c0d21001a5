"""Pages that show releases to people: what a release says, as texts and pictures, and nothing else.

A page is a function of releases and of public texts alone: no clock, no name of a machine, no chance. It costs no
privacy, as post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN
from importlib.metadata import version
from typing import Any, Protocol, TypedDict

import numpy as np

from pq.core.exact import budget_text, quantile_fraction
from pq.core.kind import Floats, kind_named, shown
from pq.core.priors import Prior
from pq.show.numbers import decimals_worth, number_text
from pq.show.page import render
from pq.show.promise import ADJACENCIES, MECHANISMS, PAPER, interval_words, promise_of
from pq.show.step_curve import StepCurve, step_curve

LEVEL = 0.95
LETTERS = 36  # of all marks along a picture's edge, so that they stand apart on a phone
NAMES = {0.0: "least", 0.25: "lower quartile", 0.5: "median", 0.75: "upper quartile", 1.0: "greatest"}
LONGEST_LIST = 9  # quantiles that a picture's alternative text tells one by one


class PageOptions(TypedDict, total=False):
    """What may be said on a page besides the release: public texts, and of which intervals; see `release_page`."""

    title: str
    purpose: str
    unit: str
    level: float
    size_guess: float | None
    receipt: str


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
    def grid(self) -> float | None: ...
    @property
    def priors(self) -> tuple[Prior, ...]: ...
    @property
    def kind(self) -> str: ...
    def to_dict(self) -> dict[str, Any]: ...


def release_page(
    release: Reported,
    *,
    title: str = "",
    purpose: str = "",
    unit: str = "",
    level: float = LEVEL,
    size_guess: float | None = None,
    receipt: str = "",
) -> str:
    """One release as a page in HTML that needs nothing else; see `pq.Release.report`.

    title, purpose, unit, receipt: public texts. level, size_guess: of the intervals. Raises `TypeError` or `ValueError`
    naming the argument.
    """
    texts = checked_texts(title=title, purpose=purpose, unit=unit, receipt=receipt)
    one = _shown(release, "", texts["unit"], checked_level(level), size_guess)
    return render(
        "release.html",
        title=texts["title"] or "Private quantiles",
        purpose=texts["purpose"],
        cards=_cards(release),
        one=one,
        words=_words(release, texts["title"]),
        facts=_facts_of(release, texts["receipt"]),
        description=release.to_dict(),
    )


def grouped_page(
    releases: Mapping[Any, Reported],
    *,
    by: str,
    title: str = "",
    purpose: str = "",
    unit: str = "",
    level: float = LEVEL,
    size_guess: float | None = None,
    receipt: str = "",
    epsilon: float | None = None,
    description: Any = None,
) -> str:
    """Releases of groups as one page in HTML, in the order of their keys, which share all public facts but priors.

    releases: by key, at least one. by: what the groups are groups of. epsilon: of all together, for a person; None
    where nobody is in two groups, who then pays what one costs. description: what the page holds for machines; None for
    the keys with their releases. All else: as for `release_page`.
    """
    texts = checked_texts(by=by, title=title, purpose=purpose, unit=unit, receipt=receipt)
    if not releases:
        raise ValueError("releases must not be empty")
    share = checked_level(level)
    first = next(iter(releases.values()))
    keyed = [{"key": str(key), "release": one.to_dict()} for key, one in releases.items()]
    heading = texts["title"] or f"Private quantiles by {by}"
    return render(
        "groups.html",
        title=heading,
        purpose=texts["purpose"],
        by=texts["by"],
        unit=_unit(first, texts["unit"]),
        shares=[_share(q) for q in first.quantiles],
        cards=[("Groups", f"{len(releases):,}"), *_cards(first, epsilon)],
        groups=[_shown(one, str(key), texts["unit"], share, size_guess) for key, one in releases.items()],
        words=_words(first, heading, epsilon),
        facts=_facts_of(first, texts["receipt"]),
        description={"by": by, "releases": keyed} if description is None else description,
    )


def checked_texts(**texts: Any) -> dict[str, str]:
    """Texts that have a form in UTF-8; raises `TypeError` or `ValueError` naming the argument."""
    for name, text in texts.items():
        if not isinstance(text, str):
            raise TypeError(f"{name} must be text, got {type(text).__name__}")
        if text.encode("utf-8", "replace").decode() != text:
            raise ValueError(f"{name} must be text that has a form in UTF-8")
    return texts


def checked_level(level: Any) -> float:
    """A share strictly between 0 and 1; raises naming level."""
    if isinstance(level, bool) or not isinstance(level, (int, float)):
        raise TypeError(f"level must be a number, got {type(level).__name__}")
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level}")
    return float(level)


def _ends_of(release: Reported, numbers: Floats, level: float, size_guess: float | None) -> Floats | None:
    """The intervals (m, 2) as numbers; None where there are none, as nothing tells the number of records."""
    interval = getattr(release, "interval", None)
    if interval is None:
        return None
    try:
        ends = np.asarray(interval(level, size_guess))
    except ValueError as refused:
        if size_guess is None and str(refused).startswith("size_guess"):
            return None
        raise
    return kind_named(release.kind).to_numbers(ends.ravel()).reshape(len(numbers), 2)


def _remarks_of(release: Reported) -> tuple[str, ...]:
    return tuple(map(str, getattr(release, "remarks", ())))


def _shown(release: Reported, name: str, unit: str, level: float, size_guess: float | None) -> dict[str, Any]:
    """One release as templates show it."""
    kind = kind_named(release.kind)
    numbers = kind.to_numbers(release.values)
    ends = _ends_of(release, numbers, level, size_guess)
    texts, spans = _texts(release, numbers, ends)
    told = None if ends is None else f"{100 * level:.10g}%"
    rows = [
        {"share": _share(q), "value": text, "low": low, "high": high}
        for q, text, (low, high) in zip(release.quantiles, texts, spans, strict=True)
    ]
    curve = _curve(release, numbers, ends)
    of = f" of {name}" if name else ""
    return {
        "name": name,
        "rows": rows,
        "curve": curve,
        "level": told,
        "unit": _unit(release, unit),
        "remarks": _remarks_of(release),
        "interval_words": interval_words(release.mechanism, told),
        "picture_title": f"Step curve of the released quantiles{of}",
        "picture_text": _alternative(rows, told),
        "caption": _caption(curve, told),
        "table_caption": f"Released quantiles{of}, rounded for reading",
    }


def _share(q: float) -> str:
    """A quantile as a percentage, with its name if it has one."""
    name = NAMES.get(float(q))
    share = f"{float(100 * quantile_fraction(float(q))):.6g}%"
    return share if name is None else f"{share} ({name})"


def _unit(release: Reported, unit: str) -> str:
    return f" ({unit})" if unit else " (UTC)" if release.kind == "timestamp" else ""


def _texts(release: Reported, numbers: Floats, ends: Floats | None) -> tuple[list[str], list[tuple[str, str]]]:
    """Values and intervals in as many digits as say something; intervals are never shown smaller than they are."""
    sides = np.empty((2, 0)) if ends is None else ends.T
    if release.kind != "number":
        kind = kind_named(release.kind)
        values, *pair = (shown(kind.from_numbers(side)) for side in (numbers, *sides))
    else:
        places = decimals_worth(release.grid, numbers, ends)
        ways = (ROUND_FLOOR, ROUND_CEILING) if release.grid is None else (ROUND_HALF_EVEN, ROUND_HALF_EVEN)
        values = [number_text(x, places) for x in numbers.tolist()]
        pair = [[number_text(x, places, way) for x in side] for side, way in zip(sides.tolist(), ways, strict=True)]
    return values, [("", "")] * len(values) if ends is None else list(zip(*pair, strict=True))


def _curve(release: Reported, numbers: Floats, ends: Floats | None) -> StepCurve:
    """The picture, with as many marks along its edge as there is room for."""
    times = release.kind != "number"
    kind = kind_named(release.kind)

    def label(x: float) -> str:
        if not times:
            return f"{x:,.15g}".replace("-", "−")
        text = shown(kind.from_numbers([x]))[0]
        return text.removesuffix("T00:00:00").removesuffix(", 0:00:00")

    pairs = None if ends is None else [(a, b) for a, b in ends.tolist()]
    for most in (6, 5, 4, 3, 2, 1):
        curve = step_curve(release.quantiles.tolist(), numbers.tolist(), pairs, label, times=times, most_ticks=most)
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


def _cards(release: Reported, epsilon: float | None = None) -> list[tuple[str, str]]:
    budget, people = release.epsilon if epsilon is None else epsilon, release.max_contributions
    return [
        ("Privacy budget", f"ε = {budget_text(budget) if math.isfinite(budget) else '∞'}"),
        ("Protects", "one person" if people == 1 else f"one person, {people} records"),
        ("Quantiles", f"{len(release.quantiles):,}"),
        ("Mechanism", release.mechanism),
    ]


def _words(release: Reported, title: str, epsilon: float | None = None) -> dict[str, Any]:
    budget = release.epsilon if epsilon is None else epsilon
    text, made = budget_text(budget) if math.isfinite(budget) else "∞", f"pq-quantiles {version('pq-quantiles')}"
    described = release.to_dict()
    words = promise_of(
        budget,
        text,
        adjacency=release.adjacency,
        max_contributions=release.max_contributions,
        on_grid=release.grid is not None,
        public_total=described.get("public_total"),
    )
    return vars(words) | {
        "mechanism": MECHANISMS.get(release.mechanism, f"By the mechanism “{release.mechanism}”."),
        "sentence": f"{title or 'Private quantiles'}. {len(release.quantiles)} quantiles under ε = {text} differential "
        f"privacy ({release.adjacency}, {_records(release)} a person), by {made}, mechanism “{release.mechanism}”.",
        "bibtex": PAPER,
        "footer": f"Made by {made} from the release alone: the same release gives the same page. It holds nothing of "
        "the data but the released values, and loads nothing from anywhere.",
    }


def _records(release: Reported) -> str:
    return "one record" if release.max_contributions == 1 else f"up to {release.max_contributions} records"


def _facts_of(release: Reported, receipt: str) -> list[tuple[str, str]]:
    """All public parameters by the names that `pq.release` knows them under."""
    described = release.to_dict()
    neighbours = ADJACENCIES[release.adjacency]
    priors = dict.fromkeys(map(repr, release.priors))
    seconds = "" if release.kind == "number" else " seconds"
    told = [
        ("epsilon", budget_text(release.epsilon) if math.isfinite(release.epsilon) else "infinite"),
        ("adjacency", f"{release.adjacency}: {neighbours}"),
        ("max_contributions", f"{_records(release)} a person"),
        ("mechanism", release.mechanism),
        ("priors", ", ".join(priors) if len(priors) <= LONGEST_LIST else f"{len(priors)}, one for each quantile"),
        ("grid", "none" if release.grid is None else f"multiples of {release.grid:.15g}{seconds}"),
        ("values are", f"{release.kind} ({kind_named(release.kind).unit})" if release.kind != "number" else "numbers"),
    ]
    names = ("calibration", "adaptation", "arity", "budget_power", "size_guess", "public_total", "assume_smooth")
    told += [(name, _fact(described[name])) for name in names if described.get(name) is not None]
    if described.get("total") is not None:
        told.append(("total", f"{described['total']:,}: a private count of the records, released too"))
    return [*told, ("ledger", receipt)] if receipt else told


def _fact(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.10g}" if isinstance(value, (int, float)) else str(value)
