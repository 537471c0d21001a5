"""The account is exact, refuses what does not fit without a trace, and survives being saved."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pq
from pq.core.budget import ledger as accounts
from pq.core.budget.ledger import BudgetExceededError


def test_ten_tenths_are_one_and_eleven_elevenths_too() -> None:
    for part, times in ((0.1, 10), (Fraction(1, 11), 11), (Decimal("0.001"), 1000)):
        ledger = pq.Ledger(1)
        for _ in range(times):
            ledger.spend(part)
        assert ledger.remaining == 0 and ledger.spent == 1
        for tiny in (1e-300, Fraction(1, 10**30), 0.1):
            with pytest.raises(BudgetExceededError, match="does not fit"):
                ledger.spend(tiny)
        assert len(ledger.entries) == times


@given(st.lists(st.integers(1, 60), max_size=30), st.integers(1, 500))
def test_spends_are_taken_exactly_while_they_fit(parts: list[int], total: int) -> None:
    ledger, left = pq.Ledger(Fraction(total, 7)), total
    for part in parts:
        before = ledger.entries
        if part <= left:
            ledger.spend(Fraction(part, 7))
            left -= part
        else:
            with pytest.raises(BudgetExceededError):
                ledger.spend(Fraction(part, 7))
            assert ledger.entries == before
        assert ledger.remaining == Fraction(left, 7)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.integers(1, 9)), max_size=20))
def test_a_pool_costs_its_dearest_group(spends: list[tuple[str, str, int]]) -> None:
    ledger = pq.Ledger(10**6)
    ledger.spend(5)
    for pool, group, cost in spends:
        ledger.spend(cost, pool=pool, group=group)
    cost = {p: max((sum(c for q, h, c in spends if (q, h) == (p, g)) for g in "xyz"), default=0) for p in "ab"}
    assert ledger.spent == 5 + cost["a"] + cost["b"]


def test_a_pool_is_refused_when_one_of_its_groups_does_not_fit() -> None:
    ledger = pq.Ledger(1)
    ledger.spend(0.6, pool="days", group="Monday")
    ledger.spend(1, pool="days", group="Tuesday")
    with pytest.raises(BudgetExceededError):
        ledger.spend(0.5, pool="days", group="Monday")
    with pytest.raises(BudgetExceededError):
        ledger.spend(0.1)
    ledger.spend(0.4, pool="days", group="Monday")
    assert ledger.remaining == 0


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "1", None, True])
def test_bad_budgets_are_refused_by_name(value: object) -> None:
    with pytest.raises((ValueError, TypeError), match="total"):
        pq.Ledger(value)  # type: ignore[arg-type]
    ledger = pq.Ledger(1)
    with pytest.raises((ValueError, TypeError), match="epsilon"):
        ledger.spend(value)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="pool and group"):
        ledger.spend(0.1, pool="days")
    assert ledger.remaining == 1


def test_an_account_survives_being_saved(tmp_path: Path) -> None:
    ledger, file = pq.Ledger(Fraction(7, 3)), tmp_path / "ledger.json"
    ledger.spend(0.1, what="ages", pool="days", group="Monday")
    ledger.spend(Fraction(1, 3), what="hours")
    ledger.save(file)
    again = pq.Ledger.load(file)
    assert again.entries == ledger.entries and again.remaining == ledger.remaining
    again.spend(0.5)
    again.save(file)
    assert pq.Ledger.load(file).spent == again.spent
    assert [p.name for p in tmp_path.iterdir()] == ["ledger.json"]


def test_an_overspent_account_is_not_loaded() -> None:
    account = pq.Ledger(1).to_dict() | {"entries": [{"epsilon": "2", "what": "", "pool": None, "group": None}]}
    with pytest.raises(BudgetExceededError):
        pq.Ledger.from_dict(account)


def test_the_statement_names_every_spend_and_what_remains() -> None:
    ledger = pq.Ledger(1)
    ledger.spend(0.25, what="median age")
    ledger.spend(0.5, what="new users", pool="days", group="Monday")
    text = ledger.statement()
    assert text.splitlines()[0] == "budget 1" and text.splitlines()[-1] == "spent 0.75, remaining 0.25"
    assert "0.25  median age" in text and "0.5  new users [days: Monday]" in text and "pool days: 0.5" in text


def test_threads_do_not_overspend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two spends that are both checked before either is entered would not both be refused."""
    account, whole = pq.Ledger(1), accounts._cost

    def slow(entries: Any) -> Fraction:
        cost = whole(entries)
        time.sleep(0.01)
        return cost

    monkeypatch.setattr(accounts, "_cost", slow)

    def spend() -> None:
        with contextlib.suppress(BudgetExceededError):
            account.spend(0.6)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert account.spent == Fraction(3, 5)


def test_names_of_pools_are_text() -> None:
    with pytest.raises(TypeError, match=r"^pool and group"):
        pq.Ledger(1).spend(0.1, pool=("a", 1), group="b")  # type: ignore[arg-type]
