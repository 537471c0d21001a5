"""What a release by group gives: one release for each public key, and the public facts of them all (Section 3.1)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pq.core.choices import Adjacency, Unknown, check_choice, checked_texts
from pq.core.exact import budget_float, budget_fraction, budget_text, whole_number
from pq.core.kind import shown
from pq.private.columns.written import key_read, key_texts, key_written
from pq.private.release import Release

if TYPE_CHECKING:
    from pq.private.report import PageOptions

GROUPED_VERSION = 1  # of what `GroupedRelease.to_dict` writes
OTHER = "other"  # key of the group of records that have none of the public keys


@dataclass(frozen=True, eq=False)
class GroupedRelease:
    """Released quantiles of every group, and the public facts about how they were made; nothing else about the data.

    by, value: names of the columns. keys: (g,) of the groups, in the caller's order, "other" last where records of no
    public key make a group. groups: (g,) a `Release` each, which says what it promises for its own group alone.
    epsilon: budget of all together under `adjacency`, for a person who owns up to `max_contributions` records in the
    whole table, in up to `max_groups` groups. person: name of the column by which that was enforced, None where it is a
    promise. unknown: what became of records of no public key.
    """

    by: str
    value: str
    keys: tuple[Any, ...]
    groups: tuple[Release, ...]
    epsilon: float
    adjacency: str
    max_contributions: int
    max_groups: int
    person: str | None
    unknown: str

    @property
    def releases(self) -> dict[Any, Release]:
        """The release of each group by its key, in the order of keys."""
        return dict(zip(self.keys, self.groups, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, text and lists, ready for JSON; `GroupedRelease.from_dict` is the inverse as
        far as `Release.from_dict` is.

        A key that is a date, a time, a duration or a fraction stands there as {type: text}.
        """
        facts = {field.name: getattr(self, field.name) for field in fields(self)}
        facts |= {"keys": [key_written(key) for key in self.keys], "groups": [one.to_dict() for one in self.groups]}
        return {"version": GROUPED_VERSION, **facts}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> GroupedRelease:
        """The release that `to_dict` described. Raises `TypeError` or `ValueError` naming what is wrong.

        >>> import pq
        >>> one = pq.release_groups({"team": ["a"], "age": [31.0]}, [0.5], by="team", value="age", keys=["a", "b"],
        ...                         epsilon=1, priors=pq.Cauchy(40, 20), rng=0)
        >>> pq.GroupedRelease.from_dict(one.to_dict()).to_dict() == one.to_dict()
        True
        """
        if not isinstance(description, Mapping):
            raise TypeError(f"description must be a mapping, got {type(description).__name__}")
        facts = dict(description)
        if facts.pop("version", None) != GROUPED_VERSION:
            raise ValueError(f"version must be {GROUPED_VERSION}, got {description.get('version')!r}")
        names = {field.name for field in fields(cls)}
        if facts.keys() != names:
            raise ValueError(f"description must hold {', '.join(sorted(names))}")
        person = "" if facts["person"] is None else facts["person"]
        checked_texts(by=facts["by"], value=facts["value"], person=person)
        check_choice(facts["adjacency"], Adjacency, "adjacency")
        check_choice(facts["unknown"], Unknown, "unknown")
        for name in ("max_contributions", "max_groups"):
            whole_number(facts[name], name, least=1)
        for name in ("keys", "groups"):
            if not isinstance(facts[name], (list, tuple)):
                raise TypeError(f"{name} must be a list, got {type(facts[name]).__name__}")
        facts["epsilon"] = budget_float(budget_fraction(facts["epsilon"]))
        facts["keys"] = tuple(key_read(key) for key in facts["keys"])
        if len(set(facts["keys"])) != len(facts["keys"]):
            raise ValueError("keys must differ")
        facts["groups"] = tuple(Release.from_dict(one) for one in facts["groups"])
        if len(facts["keys"]) != len(facts["groups"]):
            raise ValueError("keys must be one for each of groups")
        return cls(**facts)

    def rows(self) -> list[tuple[str, str, str]]:
        """Key, quantile and value of everything released, as texts; keys that read alike say of what type they are."""
        return [
            (key, f"{q:.6g}", value)
            for key, one in zip(key_texts(self.keys), self.groups, strict=True)
            for q, value in zip(one.quantiles, _values(one), strict=True)
        ]

    def report(self, path: str | os.PathLike[str], **options: Unpack[PageOptions]) -> None:
        """Write one page in HTML that shows all groups, as `Release.report` does for one release.

        It holds `to_dict()` as JSON in the element with the id "release".
        """
        from pq.private.report import grouped_page  # late, as in `Release.report`

        shared: dict[str, Any] = {name: getattr(self, name) for name in ("epsilon", "max_contributions", "adjacency")}
        facts = {"max_groups": str(self.max_groups), "person": self.person or "a promise", "unknown": self.unknown}
        keyed = dict(zip(key_texts(self.keys), self.groups, strict=True))
        page = grouped_page(keyed, by=self.by, facts=facts, description=self.to_dict(), **shared, **options)
        Path(path).write_bytes(page.encode("utf-8"))

    def __str__(self) -> str:
        people = "one record a person"
        if self.max_contributions > 1:
            where = "one group" if self.max_groups == 1 else f"up to {self.max_groups} groups"
            people = f"up to {self.max_contributions} records a person in {where}"
        kept = "" if self.person is None else f", kept to by {self.person}"
        head = f"{budget_text(self.epsilon)}-differentially private quantiles of {self.value} by {self.by}"
        table = [[str(self.by), *(f"{q:.6g}" for q in self.groups[0].quantiles)]]
        table += [[key, *_values(one)] for key, one in zip(key_texts(self.keys), self.groups, strict=True)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(map(str.rjust, row[1:], widths[1:])) for row in table]
        names = [row[0].ljust(widths[0]) for row in table]
        rows = [f"{name}  {line}" for name, line in zip(names, lines, strict=True)]
        return "\n".join([f"{head} ({self.adjacency}, {people}{kept})", *rows])


def _values(one: Release) -> list[str]:
    return [f"{v:.10g}" for v in one.values] if one.kind == "number" else shown(one.values)
