"""A privacy budget kept like an account, in exact rationals: sequential and parallel composition (Section 5.3).

Releases about the same people add up: each `spend` takes its epsilon from the total. Releases about people of whom
each appears in one group only, such as one day's new users, do not: the spends of one `pool` cost as much as its
dearest group.
Ten spends of 0.1 are one, exactly; a spend that does not fit is refused and changes nothing.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from pq.core.exact import Number, decimal_fraction

_SPENDING = threading.Lock()  # of the check and the entry that follows, for all accounts of a process


class BudgetExceededError(ValueError):
    """A spend that the remaining budget does not cover."""


@dataclass(frozen=True)
class Entry:
    """One spend: its budget, what it was for, and, in parallel composition, its pool and group of people."""

    epsilon: Fraction
    what: str
    pool: str | None = None
    group: str | None = None


def _positive(value: Any, name: str) -> Fraction:
    epsilon = decimal_fraction(value, name)
    if epsilon <= 0:
        raise ValueError(f"{name} must be positive, got {value}")
    return epsilon


class Ledger:
    """An account of privacy budget under pure epsilon-differential privacy.

    total: all that may be spent on any one person, positive; a decimal such as 0.1 means one tenth.
    Raises `ValueError` or `TypeError` naming the argument. Guarantees that `spent` never exceeds `total`, exactly.

    >>> ledger = Ledger(1)
    >>> for day in range(10):
    ...     ledger.spend(0.1, what=f"day {day}")
    >>> ledger.remaining
    Fraction(0, 1)
    >>> ledger.spend(1e-9)
    Traceback (most recent call last):
    pq.core.budget.ledger.BudgetExceededError: epsilon 1e-09 does not fit: 0 of 1 remain
    """

    def __init__(self, total: Number) -> None:
        self.total = _positive(total, "total")
        self._entries: list[Entry] = []

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All spends so far, in order."""
        return tuple(self._entries)

    @property
    def spent(self) -> Fraction:
        """What the spends so far cost together, exact."""
        return _cost(self._entries)

    @property
    def remaining(self) -> Fraction:
        """What may still be spent on everybody, exact."""
        return self.total - self.spent

    def spend(self, epsilon: Number, what: str = "", *, pool: str | None = None, group: str | None = None) -> None:
        """Take a budget from the account (sequential composition), or from a pool of disjoint groups (parallel).

        epsilon: positive. what: what it is for; shown in the statement. pool, group: both or neither; nobody may be in
        two groups of one pool, which only the caller can know. A pool costs as much as its dearest group.
        Raises `BudgetExceededError` if it does not fit, `ValueError` or `TypeError` naming a bad argument; the account
        is then as it was before.

        >>> ledger = Ledger(1)
        >>> for day in ("Monday", "Tuesday"):
        ...     ledger.spend(0.75, what="median age of new users", pool="new users", group=day)
        >>> ledger.spent
        Fraction(3, 4)
        """
        cost = _positive(epsilon, "epsilon")
        if (pool is None) != (group is None):
            raise ValueError("pool and group must be given together")
        if not all(name is None or isinstance(name, str) for name in (pool, group)):
            raise TypeError("pool and group must be text")
        entry = Entry(cost, str(what), pool, group)
        with _SPENDING:
            if _cost([*self._entries, entry]) > self.total:
                raise BudgetExceededError(
                    f"epsilon {epsilon} does not fit: {_text(self.remaining)} of {_text(self.total)} remain"
                )
            self._entries.append(entry)

    def statement(self) -> str:
        """A readable account: every spend, the cost of each pool, and what remains."""
        lines = [f"budget {_text(self.total)}"]
        for entry in self._entries:
            where = f" [{entry.pool}: {entry.group}]" if entry.pool is not None else ""
            lines.append(f"  {_text(entry.epsilon):>10}  {entry.what or 'release'}{where}")
        for pool, cost in _pools(self._entries).items():
            lines.append(f"  pool {pool}: {_text(cost)}, the most that one of its groups cost")
        return "\n".join([*lines, f"spent {_text(self.spent)}, remaining {_text(self.remaining)}"])

    def to_dict(self) -> dict[str, Any]:
        """The account as plain text and lists, exact; `Ledger.from_dict` is the inverse."""
        entries = [{"epsilon": str(e.epsilon), "what": e.what, "pool": e.pool, "group": e.group} for e in self._entries]
        return {"total": str(self.total), "entries": entries}

    @classmethod
    def from_dict(cls, account: Mapping[str, Any]) -> Ledger:
        """The account that `to_dict` described; refuses one that is overspent."""
        ledger = cls(Fraction(account["total"]))
        for e in account["entries"]:
            ledger.spend(Fraction(e["epsilon"]), e["what"], pool=e["pool"], group=e["group"])
        return ledger

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the account to a JSON file, all of it or nothing: a crash leaves the old file."""
        target = Path(path)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(self.to_dict(), file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Ledger:
        """The account that `save` wrote."""
        return cls.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))


def _pools(entries: list[Entry]) -> dict[str, Fraction]:
    """The cost of each pool: the most that was spent on one of its groups."""
    totals: dict[str, dict[str, Fraction]] = {}
    for entry in entries:
        if entry.pool is not None and entry.group is not None:
            groups = totals.setdefault(entry.pool, {})
            groups[entry.group] = groups.get(entry.group, Fraction(0)) + entry.epsilon
    return {pool: max(groups.values()) for pool, groups in totals.items()}


def _cost(entries: list[Entry]) -> Fraction:
    alone = sum((entry.epsilon for entry in entries if entry.pool is None), Fraction(0))
    return alone + sum(_pools(entries).values(), Fraction(0))


def _text(value: Fraction) -> str:
    """A rational as a decimal if that is exact in few digits, else as it is."""
    short = f"{float(value):.9g}"
    return short if Fraction(short) == value else str(value)
