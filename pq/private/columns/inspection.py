"""A look at a column for its holder: not private (Section 3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pq.private.columns.frames import column_of
from pq.private.columns.text import TextColumn

NOT_PRIVATE = (
    "NOT PRIVATE: for the holder of the data alone. Publish none of it, and choose no prior, grid or assumption by it:"
    "\nwho chooses them from the data has left differential privacy."
)


@dataclass(frozen=True)
class Inspection:
    """How a column is read, for the holder of the data; nothing of it is private.

    kind: what the records are declared to be. unit: of the floats that they become, in words. rule: how a record is
    read. unread: records that give no number, empty ones among them.
    """

    kind: str
    unit: str
    rule: str
    unread: int

    def __str__(self) -> str:
        rows = {"kind": self.kind, "unit": self.unit, "rule": self.rule, "unread": self.unread}
        return "\n".join([NOT_PRIVATE, "", *(f"{name:<8}{row}" for name, row in rows.items())])

    def to_dict(self) -> dict[str, Any]:
        """The same as text and numbers, ready for JSON."""
        return {"private": False, "kind": self.kind, "unit": self.unit, "rule": self.rule, "unread": self.unread}


def inspect(x: Any) -> Inspection:
    """How a release would read a column and how many of its records it would not. Not private: for the holder alone.

    x: as for `pq.release`. It tells no minimum, no count and no ties, since who chooses a prior or a grid by those has
    left differential privacy. Raises as `pq.release` for what is no column.

    >>> inspect([31, "n/a", None, "$40"]).unread
    2
    """
    column = column_of(x)
    kind = column.kind
    rule = f"a record counts as a {kind} by its declared type; a null or what is none as missing"
    return Inspection(str(kind), kind.unit, str(x.rule) if isinstance(x, TextColumn) else rule, column.missing)
