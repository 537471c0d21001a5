"""Budgets in the words of another accountant, `dp_accounting` (Google): its events, plain and ready for JSON.

An event is a mapping that names a class of the module `dp_accounting.dp_event` and its fields, as that package's own
named tuples do. What is known of a spend is told as pure or approximate privacy of a person; the smaller costs that
zCDP counts have no event there. Whoever reads them must account for the same neighbours, see `NEIGHBOURS`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from pq.core.budget.account import Account
from pq.core.exact import decimal_fraction

MODULE = "dp_accounting.dp_event"
NEIGHBOURS = {"add-remove": "ADD_OR_REMOVE_ONE", "replace": "REPLACE_ONE"}  # members of its NeighboringRelation

Event = dict[str, Any]


def private_event(epsilon: Fraction | float, delta: Fraction | float = 0) -> Event:
    """A release that is (epsilon, delta)-private, in decimals that are never less; an infinite epsilon is no privacy.

    >>> private_event(Fraction(1, 2))["class_name"]
    'EpsilonDeltaDpEvent'
    """
    if epsilon == math.inf:
        return _event("NonPrivateDpEvent")
    return _event("EpsilonDeltaDpEvent", epsilon=_float_at_least(epsilon), delta=_float_at_least(delta))


def composed_event(events: Sequence[Event]) -> Event:
    """All of some events about the same people.

    >>> composed_event([])["events"]
    []
    """
    return _event("ComposedDpEvent", events=list(events))


def account_event(account: Account) -> Event:
    """All spends of an account: those of a pool as one event, of its dearest group."""
    alone = [private_event(entry.epsilon, entry.delta) for entry in account.entries if entry.pool is None]
    return composed_event([*alone, *(private_event(cost.epsilon, cost.delta) for cost in account.pools().values())])


def _event(name: str, **fields: Any) -> Event:
    return {"module_name": MODULE, "class_name": name} | fields


def _float_at_least(value: Fraction | float) -> float:
    """A float whose shortest decimal text, as JSON has it, is not less."""
    nearest = float(value)
    exact = decimal_fraction(value, "value")
    return nearest if Fraction(str(nearest)) >= exact else math.nextafter(nearest, math.inf)
