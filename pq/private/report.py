"""Pages that show releases to people: what a release says, as texts and pictures, and nothing else.

A page is a function of releases and of public texts alone: no clock, no name of a machine, no chance. It costs no
privacy, as post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypedDict

from pq.core.choices import checked_texts
from pq.core.exact import budget_text
from pq.core.kind import kind_named
from pq.private.exhibit import LONGEST_LIST, Reported, exhibit, share_text, unit_text
from pq.show.page import render
from pq.show.promise import ADJACENCIES, MECHANISMS, PAPER, promise_of

LEVEL = 0.95


class PageOptions(TypedDict, total=False):
    """What may be said on a page besides the release: public texts, and of which intervals; see `release_page`."""

    title: str
    purpose: str
    unit: str
    level: float
    size_guess: float | None
    receipt: str


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
    paid = Paid(release.epsilon, release.max_contributions, release.adjacency)
    return render(
        "release.html",
        title=texts["title"] or "Private quantiles",
        purpose=texts["purpose"],
        cards=_cards(release, paid),
        one=exhibit(release, "", texts["unit"], checked_level(level), size_guess),
        words=_words(release, texts["title"], paid),
        facts=_facts_of([release], paid, texts["receipt"]),
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
    max_contributions: int | None = None,
    adjacency: str | None = None,
    facts: Mapping[str, Any] | None = None,
    description: Any = None,
) -> str:
    """Releases of groups as one page in HTML, in the order of their keys, which share all public facts but priors.

    releases: by key, at least one. by: what the groups are groups of. epsilon, max_contributions, adjacency: of all
    together, for a person; None for those of one, where nobody is in two groups. facts: further parameters by name.
    description: what the page holds for machines, of `pq.GroupedRelease`; None for the keys with their releases. All
    else: as for `release_page`.
    """
    from tqdm import tqdm  # here, since it takes time to import

    texts = checked_texts(by=by, title=title, purpose=purpose, unit=unit, receipt=receipt)
    if not releases:
        raise ValueError("releases must not be empty")
    share, heading = checked_level(level), title or f"Private quantiles by {by}"
    first = next(iter(releases.values()))
    paid = Paid(
        first.epsilon if epsilon is None else epsilon,
        first.max_contributions if max_contributions is None else max_contributions,
        first.adjacency if adjacency is None else adjacency,
    )
    keyed = [{"key": str(key), "release": one.to_dict()} for key, one in releases.items()]
    shown = tqdm(releases.items(), "intervals", unit="group", disable=None, delay=1, leave=False)
    return render(
        "groups.html",
        title=heading,
        purpose=texts["purpose"],
        by=texts["by"],
        unit=unit_text(first, texts["unit"]),
        shares=[share_text(q) for q in first.quantiles],
        cards=[("Groups", f"{len(releases):,}"), *_cards(first, paid)],
        groups=[exhibit(one, str(key), texts["unit"], share, size_guess) for key, one in shown],
        words=_words(first, heading, paid),
        facts=[*_facts_of(releases.values(), paid, texts["receipt"]), *((facts or {}).items())],
        description={"by": by, "releases": keyed} if description is None else description,
        whole=description is not None,
    )


@dataclass(frozen=True)
class Paid:
    """What all of a page costs a person who owns up to so many records."""

    epsilon: float
    people: int
    adjacency: str

    @property
    def text(self) -> str:
        """The budget in digits that are never less."""
        return budget_text(self.epsilon) if math.isfinite(self.epsilon) else "∞"

    @property
    def records(self) -> str:
        """How many records of a person it is for, in words."""
        return "one record" if self.people == 1 else f"up to {self.people} records"


def checked_level(level: Any) -> float:
    """A share strictly between 0 and 1; raises naming level."""
    if isinstance(level, bool) or not isinstance(level, (int, float)):
        raise TypeError(f"level must be a number, got {type(level).__name__}")
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level}")
    return float(level)


def _cards(release: Reported, paid: Paid) -> list[tuple[str, str]]:
    return [
        ("Privacy budget", f"ε = {paid.text}"),
        ("Protects", "one person" if paid.people == 1 else f"one person, {paid.people} records"),
        ("Quantiles", f"{len(release.quantiles):,}"),
        ("Mechanism", release.mechanism),
    ]


def _words(release: Reported, title: str, paid: Paid) -> dict[str, Any]:
    from importlib.metadata import version  # of a page alone

    made = f"pq-quantiles {version('pq-quantiles')}"
    words = promise_of(
        paid.epsilon,
        paid.text,
        adjacency=paid.adjacency,
        max_contributions=paid.people,
        on_grid=release.grid is not None,
        public_total=release.to_dict().get("public_total"),
    )
    return vars(words) | {
        "mechanism": MECHANISMS.get(release.mechanism, f"By the mechanism “{release.mechanism}”."),
        "sentence": f"{title or 'Private quantiles'}. {len(release.quantiles)} quantiles under ε = {paid.text} "
        f"differential privacy ({paid.adjacency}, {paid.records} a person), by {made}, mechanism "
        f"“{release.mechanism}”.",
        "bibtex": PAPER,
        "footer": f"Made by {made} from the release alone: the same release gives the same page. It holds nothing of "
        "the data but the released values, and loads nothing from anywhere.",
    }


def _facts_of(releases: Collection[Reported], paid: Paid, receipt: str) -> list[tuple[str, str]]:
    """The public parameters that releases share, by the names that `pq.release` knows them under."""
    release = next(iter(releases))
    described, priors = release.to_dict(), dict.fromkeys(text for one in releases for text in _said(one))
    seconds, unit = ("", "") if release.kind == "number" else (" seconds", f" ({kind_named(release.kind).unit})")
    told = [
        ("epsilon", paid.text),
        ("adjacency", f"{paid.adjacency}: {ADJACENCIES[paid.adjacency]}"),
        ("max_contributions", f"{paid.records} a person"),
        ("mechanism", release.mechanism),
        ("priors", ", ".join(priors) if len(priors) <= LONGEST_LIST else f"{len(priors)} different ones"),
        ("grid", "none" if release.grid is None else f"multiples of {_step_text(release.grid)}{seconds}"),
        ("kind", f"{release.kind}{unit}"),
    ]
    names = ("calibration", "adaptation", "arity", "budget_power", "size_guess", "public_total", "assume_smooth")
    told += [(name, _fact(described[name])) for name in names if described.get(name) is not None]
    return [*told, ("ledger", receipt)] if receipt else told


def _said(release: Reported) -> list[str]:
    """The priors as they were given, where they are few."""
    joint = release.joint_prior
    return (
        [repr(prior) for prior in release.priors] if joint is None else [f"{len(joint.members)} joint ones, weighted"]
    )


def _step_text(step: float | Fraction) -> str:
    return f"{step:.15g}" if isinstance(step, float) else str(step)


def _fact(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):  # perhaps one that is no float
        return f"{value:,}"
    return f"{value:,.10g}" if isinstance(value, float) else str(value)
