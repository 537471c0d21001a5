"""Budgets as events of another accountant: names and fields are those of `dp_accounting`, and never less is told."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pq
from pq.core.budget.events import MODULE, NEIGHBOURS, composed_event, private_event

# Classes of the module `dp_accounting.dp_event` and their fields, as that package documents them.
DOCUMENTED: dict[str, dict[str, type]] = {
    "NonPrivateDpEvent": {},
    "EpsilonDeltaDpEvent": {"epsilon": float, "delta": float},
    "ComposedDpEvent": {"events": list},
}


def spent(event: dict[str, Any]) -> tuple[float, float]:
    """What an accountant that knows these classes would charge: the sums."""
    fields = dict(event)
    assert fields.pop("module_name") == MODULE == "dp_accounting.dp_event"
    known = DOCUMENTED[fields.pop("class_name")]
    assert {name: type(value) for name, value in fields.items()} == known
    if "events" in fields:
        parts = [spent(one) for one in fields["events"]]
        return math.fsum(part[0] for part in parts), math.fsum(part[1] for part in parts)
    return fields.get("epsilon", math.inf), fields.get("delta", 0.0)


def test_neighbours_are_named_as_there() -> None:
    assert NEIGHBOURS == {"add-remove": "ADD_OR_REMOVE_ONE", "replace": "REPLACE_ONE"}


@given(st.fractions(Fraction(1, 10**9), 10**9), st.fractions(0, Fraction(999, 1000)))
def test_floats_are_never_less_and_hardly_more(epsilon: Fraction, delta: Fraction) -> None:
    event = private_event(epsilon, delta)
    assert spent(event) == (event["epsilon"], event["delta"])
    for exact, told in ((epsilon, event["epsilon"]), (delta, event["delta"])):
        assert exact <= Fraction(str(told)) <= exact * (1 + Fraction(1, 2**51))


def test_a_release_is_told() -> None:
    options: dict[str, Any] = {"priors": pq.Uniform(0, 4), "rng": 0, "max_contributions": 3}
    event = pq.release([1.0, 2.0], [0.5], epsilon=0.3, **options).to_event()
    assert spent(json.loads(json.dumps(event))) == (0.3, 0.0)
    infinite = pq.release([1.0, 2.0], [0.5], epsilon=math.inf, mechanism="tree", priors=pq.Uniform(0, 4), rng=0)
    assert infinite.to_event() == {"module_name": MODULE, "class_name": "NonPrivateDpEvent"}


def test_an_account_is_told_with_pools_as_their_dearest_group() -> None:
    ledger = pq.Ledger(10, delta=1e-3)
    assert spent(ledger.to_event()) == (0.0, 0.0)
    ledger.spend(0.5, what="one")
    ledger.spend(0.25, what="two", delta=1e-6)
    for group, epsilon in (("Monday", 1), ("Tuesday", 2), ("Monday", 0.5)):
        ledger.spend(epsilon, pool="days", group=group)
    event = json.loads(json.dumps(ledger.to_event()))
    assert spent(event) == (2.75, 1e-6)
    assert spent(event)[0] == pytest.approx(float(sum(e.epsilon for e in ledger.entries if not e.pool) + 2))


def test_what_is_less_is_noticed() -> None:
    with pytest.raises(KeyError):
        spent({"module_name": MODULE, "class_name": "EpsilonDelta"})
    with pytest.raises(AssertionError):
        spent(composed_event([private_event(1.0) | {"rho": 1.0}]))
