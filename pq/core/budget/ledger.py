"""A privacy budget kept like an account, in exact rationals: sequential and parallel composition (Section 5.3).

Releases about the same people add up: each `spend` takes its epsilon from the total. Releases about people of whom
each appears in one group only, such as one day's new users, do not: the spends of one `pool` cost as much as its
dearest group.
Ten spends of 0.1 are one, exactly; a spend that does not fit is refused and changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from pathlib import Path
from threading import local
from typing import Any, TypeVar

from pq.core.budget.account import (
    Account,
    BudgetExceededError,
    Entry,
    LedgerError,
    account_delta,
    account_total,
    signature_of,
    text_in,
)
from pq.core.budget.composition import Cost, PrivacyKind
from pq.core.budget.events import account_event
from pq.core.budget.storage import FileStorage, MemoryStorage, Storage, Transaction
from pq.core.choices import Adjacency, check_choice
from pq.core.exact import LARGEST_WHOLE, Number, budget_text, kept_fraction

T = TypeVar("T")
__all__ = ["BudgetExceededError", "Entry", "Ledger", "LedgerError", "as_ledger", "charge"]


class Ledger:
    """An account of privacy budget, in memory; `Ledger.open` keeps one in a file that many processes share.

    total: all the epsilon that may be spent on any one person, positive and at most 1e300; a decimal such as 0.1 means
        one tenth. delta: all the delta, in [0, 1), None for 0. With a positive one many small spends cost less than
        their sum: the account is then kept in zCDP too, and `spent` is the less of both, see
        `pq.core.budget.composition.Cost`.
    who: name of whoever spends, which each entry then bears; none is guessed.

    Raises `ValueError` or `TypeError` naming the argument. Guarantees that `spent` never exceeds `total`, exactly.

    >>> ledger = Ledger(1)
    >>> for day in range(10):
    ...     ledger.spend(0.1, what=f"day {day}")
    >>> ledger.remaining
    Fraction(0, 1)
    >>> ledger.spend(1e-9)
    Traceback (most recent call last):
    pq.core.budget.account.BudgetExceededError: epsilon 1e-09 does not fit: 0 of 1 remain
    """

    def __init__(self, total: Number, delta: Number | None = None, *, who: str = "") -> None:
        self._keep(MemoryStorage(account_total(total), account_delta(delta)), who)

    def _keep(self, storage: Storage, who: str) -> None:
        self._storage, self._account, self._who, self._own = storage, Account(), text_in(who, "who"), local()
        self._least = 0  # entries that there must be: those that this object has made

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        total: Number | None = None,
        delta: Number | None = None,
        *,
        who: str = "",
    ) -> Ledger:
        """The account in a file on a local disk (SQLite), safe between threads, processes, forks and crashes.

        path: of the file. total, delta, who: as for `Ledger`; with a total the file is made where there is none, and
        where there is one its totals must be these. Without, a missing file is a `FileNotFoundError`. Every spend is
        there for good before it is granted. Raises `LedgerError` for a file that is no ledger, damaged or locked, and
        for one with a second name: a hard link, or a mount of the file alone (`docker -v one.ledger:/one.ledger`), as a
        crash leaves beside one name what who comes by another would miss. Mount or share the folder; symbolic links are
        fine. Mounts of a file are seen on Linux with /proc, by who comes by the mount. Not seen are names of before: do
        not move, rename or copy a file after a crash before it was opened once, and none that is in use.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Ledger.open(f"{folder}/ages.ledger", total=1).spend(0.25, "median age")
        ...     Ledger.open(f"{folder}/ages.ledger").remaining
        Fraction(3, 4)
        """
        ledger, spender = cls.__new__(cls), text_in(who, "who")  # all is right before a file is made
        most = None if total is None else account_total(total)
        chance = None if delta is None else account_delta(delta)
        ledger._keep(FileStorage(Path(path), most, chance), spender)
        return ledger

    @property
    def total(self) -> Fraction:
        """All the epsilon that may be spent on a person, exact."""
        return self._storage.total

    @property
    def delta(self) -> Fraction:
        """All the delta that may be spent on a person, exact."""
        return self._storage.delta

    @property
    def identity(self) -> str:
        """A name that no other account has."""
        return self._storage.identity

    @property
    def receipt(self) -> str | None:
        """What names the last spend of this thread by this object: the account's name and the entry's number."""
        number = getattr(self._own, "number", None)
        return None if number is None else f"{self.identity}-{number}"

    def rehearsal(self) -> Ledger:
        """A copy in memory, of which nothing is ever charged to this account: to see beforehand whether a spend fits.

        >>> ledger = Ledger(1)
        >>> ledger.rehearsal().spend(0.75)
        >>> ledger.remaining
        Fraction(1, 1)
        """
        copy = Ledger(self.total, self.delta)
        copy._storage = MemoryStorage(self.total, self.delta, self.entries)
        return copy

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All spends so far, in order, those of other processes included."""
        return self._now(lambda account: tuple(account.entries))

    @property
    def spent(self) -> Fraction:
        """The epsilon that the spends so far cost together at `delta`: exact, or rounded up where zCDP counts."""
        return self._now(self._spent)

    @property
    def remaining(self) -> Fraction:
        """The epsilon that may still be spent on everybody, exact."""
        return self.total - self.spent

    def spend(
        self,
        epsilon: Number,
        what: str = "",
        *,
        pool: str | None = None,
        group: str | None = None,
        kind: PrivacyKind = "pure",
        delta: Number = 0,
        rho: Number | None = None,
        adjacency: Adjacency | None = None,
    ) -> None:
        """Take a budget from the account (sequential composition), or from a pool of disjoint groups (parallel).

        epsilon: positive. what: what it is for; shown in the statement. pool, group: both or neither; nobody may be in
        two groups of one pool, which only the caller can know. A pool costs as much as its dearest group. kind, delta,
        rho: see `pq.core.budget.composition.Cost.of`. adjacency: what neighbours differ in; all entries that say it
        must say the same, as budgets of different ones do not add.
        Raises `BudgetExceededError` if it does not fit, `ValueError` or `TypeError` naming a bad argument; the account
        is then as it was before.

        >>> ledger = Ledger(1)
        >>> for day in ("Monday", "Tuesday"):
        ...     ledger.spend(0.75, what="median age of new users", pool="new users", group=day)
        >>> ledger.spent
        Fraction(3, 4)
        """
        known = None if rho is None else kept_fraction(rho, "rho")
        cost = Cost.of(kept_fraction(epsilon, "epsilon"), kind, delta=kept_fraction(delta, "delta"), rho=known)
        if (pool is None) != (group is None):
            raise ValueError("pool and group must be given together")
        if not all(name is None or isinstance(name, str) for name in (pool, group)):
            raise TypeError("pool and group must be text")
        what, *_ = [text_in(text or "", name) for text, name in ((str(what), "what"), (pool, "pool"), (group, "group"))]
        if adjacency is not None:
            check_choice(adjacency, Adjacency, "adjacency")
        who, when = signature_of(self._who), datetime.now(UTC).isoformat(timespec="seconds")
        self._enter(Entry(cost.epsilon, what, pool, group, cost.delta, cost.rho, adjacency, who, when))

    def _enter(self, entry: Entry) -> None:
        own = self._own.__dict__  # of this thread, which a transaction may not be in
        self._storage.transact(partial(self._append, entry), writes=True, told=partial(self._made, own))

    def _made(self, own: dict[str, Any], number: int) -> None:
        own["number"], self._least = number, max(self._least, number)

    def _append(self, entry: Entry, transaction: Transaction) -> int:
        """Write an entry if it fits; returns its number."""
        self._account = _caught_up(self._account, transaction, self._least)
        known = self._account.adjacency
        if entry.adjacency and known and known != entry.adjacency:
            raise ValueError(
                f"adjacency must be {known!r}, as in the ledger's other entries, got {entry.adjacency!r}: "
                "budgets of different ones do not add"
            )
        whole = self._account.cost(entry)
        if not whole.fits(self.total, self.delta):
            raise BudgetExceededError(self._refusal(entry))
        if whole.epsilon.denominator > LARGEST_WHOLE:
            raise ValueError("epsilon must have fewer digits: with what was spent before it is too long to be told")
        transaction.append(entry)
        return len(self._account.entries) + 1

    def _refusal(self, entry: Entry) -> str:
        now = self._account.cost()
        left = self.total - Fraction(now.epsilon_at(self.delta))
        if not (entry.delta or self.delta):
            return f"epsilon {_text(entry.epsilon)} does not fit: {_text(left)} of {_text(self.total)} remain"
        return (
            f"epsilon {_text(entry.epsilon)}, delta {_text(entry.delta)} does not fit: {_text(left)} of "
            f"{_text(self.total)} and delta {_text(self.delta - now.delta)} of {_text(self.delta)} remain"
        )

    def _now(self, read: Callable[[Account], T]) -> T:
        """What is read of the account, while nobody adds to it."""

        def caught_up(transaction: Transaction) -> T:
            self._account = _caught_up(self._account, transaction, self._least)
            return read(self._account)

        return self._storage.transact(caught_up, writes=False)

    def _spent(self, account: Account) -> Fraction:
        return Fraction(account.cost().epsilon_at(self.delta))

    def statement(self, *, signed: bool = False) -> str:
        """A readable account: every spend, the cost of each pool, and what remains.

        signed: with the number, the time, the user and the process of each spend, and the account's name.
        """
        return self._now(partial(self._stated, signed))

    def _stated(self, signed: bool, account: Account) -> str:
        chance = f", delta {_text(self.delta)}" if self.delta else ""
        lines = [f"budget {_text(self.total)}{chance}{f'  (ledger {self.identity})' if signed else ''}"]
        for number, entry in enumerate(account.entries, 1):
            where = f" [{entry.pool}: {entry.group}]" if entry.pool is not None else ""
            chance = f", delta {_text(entry.delta)}" if entry.delta else ""
            by = f"  (entry {number}, {entry.when}, {entry.who})" if signed else ""
            lines.append(f"  {_text(entry.epsilon):>10}  {entry.what or 'release'}{where}{chance}{by}")
        for pool, cost in account.pools().items():
            lines.append(f"  pool {pool}: {_text(cost.epsilon)}, the most that one of its groups cost")
        spent = self._spent(account)
        return "\n".join([*lines, f"spent {_text(spent)}, remaining {_text(self.total - spent)}"])

    def to_dict(self) -> dict[str, Any]:
        """The account as plain text and lists, exact."""
        spent, made = self._now(lambda account: (self._spent(account), tuple(account.entries)))
        entries = [
            {"number": number}
            | {name: str(value) if isinstance(value, Fraction) else value for name, value in vars(entry).items()}
            for number, entry in enumerate(made, 1)
        ]
        totals = {"total": self.total, "delta": self.delta, "spent": spent, "remaining": self.total - spent}
        return {name: str(value) for name, value in totals.items()} | {"identity": self.identity, "entries": entries}

    def to_event(self) -> dict[str, Any]:
        """All spends as one event of accountants that speak `dp_accounting`; see `pq.core.budget.events`."""
        return self._now(account_event)

    def __repr__(self) -> str:
        where = repr(str(self._storage.path)) if isinstance(self._storage, FileStorage) else "memory"
        return f"<Ledger of {_text(self.total)} in {where}>"

    def __copy__(self) -> Ledger:
        return self  # two copies of one account would spend it twice

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if not isinstance(self._storage, FileStorage):
            raise TypeError("ledger is in memory and cannot be pickled: two of it would be spent; use pq.Ledger.open")
        return _opened_anew, (str(self._storage.path), self.identity, self._who)


def _opened_anew(path: str, identity: str, who: str) -> Ledger:
    """The account that was pickled. Raises `LedgerError` where another is at its path by now."""
    ledger = Ledger.open(path, who=who)
    if ledger.identity != identity:
        raise LedgerError(f"{path} is another ledger than the one that was pickled")
    return ledger


def as_ledger(ledger: Ledger | str | os.PathLike[str] | None) -> Ledger | None:
    """The account that somebody means: one, or the path of one that is there. Raises `TypeError` naming ledger."""
    if ledger is None or isinstance(ledger, Ledger):
        return ledger
    if not isinstance(ledger, (str, os.PathLike)):
        raise TypeError(f"ledger must be a pq.Ledger, the path of one or None, got {type(ledger).__name__}")
    return Ledger.open(ledger)


def charge(
    ledger: Ledger | str | os.PathLike[str] | None,
    *,
    epsilon: Any,
    adjacency: Adjacency,
    purpose: str = "",
    rho: Any = None,
    times: int = 1,
) -> None:
    """Charge releases to an account, if there is one, before they touch the data.

    ledger: an account, the path of one, or None. epsilon: of one release, for a person; an infinite one cannot be
    charged. purpose: text of the entry. rho: of one release, for a person, where it is known. times: how many.
    Raises as `Ledger.spend`, and `TypeError` naming ledger or purpose; then nothing is charged.

    >>> ledger = Ledger(1)
    >>> charge(ledger, epsilon=0.25, adjacency="add-remove", purpose="median age", times=3)
    >>> ledger.remaining
    Fraction(1, 4)
    """
    text_in(purpose, "purpose")
    account = as_ledger(ledger)
    if account is None or times == 0:
        return
    cost = Cost.of(epsilon, rho=rho) * times
    what = purpose if times == 1 else f"{purpose} ({times} times {_text(cost.epsilon / times)})".strip()
    account.spend(cost.epsilon, what, rho=cost.rho, adjacency=adjacency)


def _caught_up(account: Account, transaction: Transaction, least: int) -> Account:
    """With the entries that are new. Raises `LedgerError` where those that are known have given way to others, or are
    fewer than there must be, as when a file is copied back from a backup: what fits them may not fit these."""
    known = account.entries[-1:]
    start = len(account.entries) - len(known)
    entries = transaction.entries(start)
    if entries[: len(known)] != known or start + len(entries) < least:
        raise LedgerError("ledger has other entries than it had before; open it anew")
    for entry in entries[len(known) :]:
        account.add(entry)
    return account


def _text(value: Fraction) -> str:
    """A rational as a decimal if that is exact in few digits, as it is if it is short, else a little larger."""
    short = f"{float(value):.9g}"
    if Fraction(short) == value:
        return short
    return str(value) if value.denominator < 10**9 else budget_text(value)
