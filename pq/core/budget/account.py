"""What stands in an account of privacy budget, and what it costs together (Section 5.3)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pq.core.budget.composition import Cost
from pq.core.exact import LARGEST_BUDGET, briefly, kept_fraction


class BudgetExceededError(ValueError):
    """A spend that the remaining budget does not cover."""


class LedgerError(RuntimeError):
    """An account that cannot be used: its file is locked, damaged or something else, or it is another process's."""


@dataclass(frozen=True)
class Entry:
    """One spend: its budget, what it was for, and, in parallel composition, its pool and group of people.

    epsilon, delta, rho: exact, see `pq.core.budget.composition.Cost`. adjacency: what the neighbours that it protects
    differ in, None if unsaid. who: user and process. when: time in UTC.
    """

    epsilon: Fraction
    what: str
    pool: str | None = None
    group: str | None = None
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    adjacency: str | None = None
    who: str = ""
    when: str = ""

    @property
    def cost(self) -> Cost:
        """The three numbers."""
        return Cost(self.epsilon, self.delta, self.rho)


class Account:
    """Entries in order and what they cost: the sum, where a pool costs as much as its dearest group.

    A pool's groups are compared in epsilon, delta and rho apart, so that nobody's cost is more in any of them.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.adjacency: str | None = None
        self._alone = Cost()
        self._pools: dict[str, dict[str, Cost]] = {}

    def add(self, entry: Entry) -> None:
        """Enter a spend that has been made. Its cost comes first: where an interrupt falls in between, it is counted
        again and never forgotten."""
        self.adjacency = self.adjacency or entry.adjacency
        if entry.pool is None or entry.group is None:
            self._alone += entry.cost
        else:
            groups = self._pools.setdefault(entry.pool, {})
            groups[entry.group] = groups.get(entry.group, Cost()) + entry.cost
        self.entries.append(entry)

    def pools(self) -> dict[str, Cost]:
        """The cost of each pool."""
        return {pool: _dearest(groups.values()) for pool, groups in self._pools.items()}

    def cost(self, more: Entry | None = None) -> Cost:
        """What all entries cost a person at most, and perhaps one more."""
        pools, alone = self.pools(), self._alone
        if more is not None and (more.pool is None or more.group is None):
            alone += more.cost
        elif more is not None and more.pool is not None and more.group is not None:
            groups = self._pools.get(more.pool, {})
            one = groups.get(more.group, Cost()) + more.cost
            pools[more.pool] = _dearest([*groups.values(), one])
        return sum(pools.values(), alone)


def account_total(value: Any) -> Fraction:
    """All the epsilon of an account. Raises `TypeError` or `ValueError` naming total."""
    total = kept_fraction(value, "total")
    if not 0 < total <= LARGEST_BUDGET:
        raise ValueError(f"total must be positive and at most {float(LARGEST_BUDGET):g}, got {briefly(value)}")
    return total


def account_delta(value: Any) -> Fraction:
    """All the delta of an account, None for 0. Raises `TypeError` or `ValueError` naming delta."""
    delta = Fraction(0) if value is None else kept_fraction(value, "delta")
    if not 0 <= delta < 1:
        raise ValueError(f"delta must lie in [0, 1), got {briefly(value)}")
    return delta


def _dearest(costs: Iterable[Cost]) -> Cost:
    each = list(costs)
    return Cost(max(c.epsilon for c in each), max(c.delta for c in each), max(c.rho for c in each))


def text_in(text: Any, name: str) -> str:
    """A text that an entry in a file can hold. Raises `TypeError` or `ValueError` naming it."""
    if not isinstance(text, str):
        raise TypeError(f"{name} must be text, got {type(text).__name__}")
    if not text.isascii() and text != text.encode("utf-8", "replace").decode():
        raise ValueError(f"{name} must be text that has a form in UTF-8")
    return text


def signature_of(who: str) -> str:
    """Who spends, as far as they say it, and the process that did it for them."""
    return f"{who}, process {os.getpid()}".removeprefix(", ")
