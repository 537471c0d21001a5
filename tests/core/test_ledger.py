"""The account is exact, refuses what does not fit without a trace, and loses nothing to threads, forks and crashes."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import multiprocessing
import os
import pickle
import random
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import pq
from pq.cli.ledger import ledger as command
from pq.core.budget import storage
from pq.core.budget.account import Account
from pq.core.budget.composition import Cost, zcdp_epsilon
from pq.core.budget.ledger import BudgetExceededError, LedgerError, as_ledger, charge

# Newer Pythons warn of forks beside threads, which is what is tested.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture(params=["memory", "file"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> pq.Ledger:
    return pq.Ledger(1) if request.param == "memory" else pq.Ledger.open(tmp_path / "one", total=1)


def test_ten_tenths_are_one_and_eleven_elevenths_too() -> None:
    for part, times in ((0.1, 10), (Fraction(1, 11), 11), (Decimal("0.001"), 1000)):
        ledger = pq.Ledger(1)
        for _ in range(times):
            ledger.spend(part)
        assert ledger.remaining == 0 and ledger.spent == 1
        for tiny in (1e-300, Fraction(1, 10**30), 0.1):
            with pytest.raises(BudgetExceededError, match="does not fit: 0 of 1 remain"):
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


def test_a_pool_is_refused_when_one_of_its_groups_does_not_fit(ledger: pq.Ledger) -> None:
    ledger.spend(0.6, pool="days", group="Monday")
    ledger.spend(1, pool="days", group="Tuesday")
    with pytest.raises(BudgetExceededError):
        ledger.spend(0.5, pool="days", group="Monday")
    with pytest.raises(BudgetExceededError):
        ledger.spend(0.1)
    ledger.spend(0.4, pool="days", group="Monday")
    assert ledger.remaining == 0


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "1", None, True])
def test_bad_budgets_are_refused_by_name(value: Any, ledger: pq.Ledger) -> None:
    with pytest.raises((ValueError, TypeError), match="total"):
        pq.Ledger(value)
    with pytest.raises((ValueError, TypeError), match="epsilon"):
        ledger.spend(value)
    with pytest.raises((ValueError, TypeError), match="epsilon"):
        charge(ledger, epsilon=value, adjacency="replace")
    with pytest.raises(ValueError, match="pool and group"):
        ledger.spend(0.1, pool="days")
    assert ledger.remaining == 1 and not ledger.entries


BEYOND = [Fraction(10) ** 309, 10**5000, Fraction(1, 10**5000), Decimal("1e-9000"), Fraction(1, 7**1200)]


@pytest.mark.parametrize("value", BEYOND, ids=range(len(BEYOND)))
def test_what_cannot_be_told_is_refused_by_name_before_a_file_is_made(value: Any, tmp_path: Path) -> None:
    ledger, path = pq.Ledger(1e300, delta=1e-6), tmp_path / "one"
    for act, name in (
        (lambda: pq.Ledger(value), "total"),
        (lambda: pq.Ledger.open(path, total=value), "total"),
        (lambda: pq.Ledger.open(path, total=1, delta=value), "delta"),
        (lambda: ledger.spend(value), "epsilon"),
        (lambda: ledger.spend(1, delta=value), "delta"),
    ):
        with pytest.raises(ValueError, match=f"^{name} must"):
            act()
    assert not ledger.entries and not path.exists()


@pytest.mark.parametrize(
    "options", [{"what": "\ud800"}, {"pool": "\ud800", "group": "a"}, {"pool": "a", "group": "\ud800"}]
)
def test_texts_that_a_file_cannot_hold_are_refused_by_name(options: dict[str, str], ledger: pq.Ledger) -> None:
    with pytest.raises(ValueError, match=r"^(what|pool|group) must be text"):
        ledger.spend(0.1, **options)  # type: ignore[arg-type]
    assert not ledger.entries


def test_sums_that_cannot_be_told_are_refused() -> None:
    ledger = pq.Ledger(1)
    for prime in (3, 7, 11):
        ledger.spend(Fraction(1, prime ** int(999 / math.log10(prime))))
    with pytest.raises(ValueError, match=r"^epsilon must have fewer digits"):
        ledger.spend(Fraction(1, 13**850))
    assert len(ledger.to_dict()["entries"]) == 3


@pytest.mark.parametrize("delta", [5e-324, 1e-6, 1 - 1e-16])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**400), 1e-165, 1e-150, 1e150, 1e200, 1e300])
def test_the_smallest_and_the_largest_of_spends_are_told(epsilon: Any, delta: float) -> None:
    """Where floats have few digits or end, the conversion of zCDP once did not end or was no number."""
    ledger = pq.Ledger(1e300, delta=delta)
    ledger.spend(epsilon)
    assert 0 <= ledger.spent <= ledger.entries[0].epsilon and ledger.statement()


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"delta": -0.1}, "delta"),
        ({"delta": 1}, "delta"),
        ({"delta": "0"}, "delta"),
        ({"rho": 0}, "rho"),
        ({"rho": math.nan}, "rho"),
        ({"kind": "some"}, "kind"),
        ({"adjacency": "some"}, "adjacency"),
        ({"pool": ("a", 1), "group": "b"}, "pool and group"),
    ],
)
def test_bad_costs_are_refused_by_name(options: dict[str, Any], name: str, ledger: pq.Ledger) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^{name}"):
        ledger.spend(0.1, **options)
    assert not ledger.entries


def test_delta_is_charged() -> None:
    ledger = pq.Ledger(1)
    with pytest.raises(BudgetExceededError, match="delta 1e-07 does not fit: 1 of 1 and delta 0 of 0 remain"):
        ledger.spend(0.1, delta=1e-7)
    ledger = pq.Ledger(1, delta=1e-6)
    for _ in range(10):
        ledger.spend(0.01, delta=1e-7)
    with pytest.raises(BudgetExceededError, match="delta 0 of 1e-06 remain"):
        ledger.spend(0.01, delta=Fraction(1, 10**300))
    assert ledger.spent == Fraction(1, 10) and sum(e.delta for e in ledger.entries) == Fraction(1, 10**6)


def test_rho_is_charged_and_a_year_of_releases_fits_where_their_sum_does_not() -> None:
    """365 releases at 0.1 cost 4.958 at one in a million by bounded range; their sum is 36.5."""
    ledger = pq.Ledger(4.96, delta=1e-6)
    for _ in range(365):
        ledger.spend(0.1, kind="range")
    assert ledger.spent == Fraction(zcdp_epsilon(Fraction(365, 800), 1e-6 * (1 - 1e-15)))
    assert 4.957 < ledger.spent < 4.959
    with pytest.raises(BudgetExceededError):
        ledger.spend(0.1, kind="range")
    pure = pq.Ledger(4.96)  # without delta nothing but the sum holds
    for _ in range(49):
        pure.spend(0.1, kind="range")
    with pytest.raises(BudgetExceededError):
        pure.spend(0.1, kind="range")


def test_budgets_of_different_adjacency_do_not_add(ledger: pq.Ledger) -> None:
    ledger.spend(0.1, adjacency="replace")
    ledger.spend(0.1)
    with pytest.raises(ValueError, match=r"^adjacency must be 'replace'"):
        ledger.spend(0.1, adjacency="add-remove")
    assert len(ledger.entries) == 2


def test_releases_are_charged_with_their_number(ledger: pq.Ledger) -> None:
    charge(ledger, epsilon=0.1, adjacency="add-remove", purpose="test", rho=Fraction(1, 900), times=5)
    (entry,) = ledger.entries
    assert (entry.epsilon, entry.rho, entry.adjacency) == (Fraction(1, 2), Fraction(5, 900), "add-remove")
    assert entry.what == "test (5 times 0.1)" and entry.who and entry.when.endswith("+00:00")
    charge(ledger, epsilon=0.1, adjacency="add-remove", times=0)
    charge(None, epsilon=math.inf, adjacency="add-remove")
    assert len(ledger.entries) == 1
    with pytest.raises(TypeError, match="purpose"):
        charge(ledger, epsilon=0.1, adjacency="add-remove", purpose=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="ledger"):
        charge(3, epsilon=0.1, adjacency="add-remove")  # type: ignore[arg-type]


def test_the_statement_names_every_spend_and_what_remains(ledger: pq.Ledger) -> None:
    ledger.spend(0.25, what="median age")
    ledger.spend(0.5, what="new users", pool="days", group="Monday")
    text = ledger.statement()
    assert text.splitlines()[0] == "budget 1" and text.splitlines()[-1] == "spent 0.75, remaining 0.25"
    assert "0.25  median age" in text and "0.5  new users [days: Monday]" in text and "pool days: 0.5" in text
    assert f"process {os.getpid()}" not in text
    assert ledger.statement(signed=True).count(f"process {os.getpid()})") == 2


# --- one account, never two -------------------------------------------------------------------------------------------


def test_copies_are_the_same_account(ledger: pq.Ledger) -> None:
    for same in (copy.copy(ledger), copy.deepcopy([ledger])[0]):
        assert same is ledger


@pytest.mark.parametrize("total", [1, None])
def test_a_name_that_no_file_may_have_is_refused_by_name(total: int | None) -> None:
    with pytest.raises(ValueError, match=r"^path must not hold"):
        pq.Ledger.open("a\0b", total=total)


def test_pickles_open_the_file_and_those_in_memory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"^ledger is in memory"):
        pickle.dumps(pq.Ledger(1))
    one = pq.Ledger.open(tmp_path / "one", total=1)
    other = pickle.loads(pickle.dumps(one))
    other.spend(0.75)
    with pytest.raises(BudgetExceededError, match=r"0\.25 of 1 remain"):
        one.spend(0.5)
    assert one.identity == other.identity and one.entries == other.entries
    pickled = pickle.dumps(one)
    (tmp_path / "one").unlink()
    pq.Ledger.open(tmp_path / "one", total=1)  # which knows nothing of what was spent
    with pytest.raises(LedgerError, match="another ledger than the one that was pickled"):
        pickle.loads(pickled)


def test_a_fork_does_not_spend_from_a_copy_in_memory() -> None:
    ledger = pq.Ledger(1)
    code = _in_fork(lambda: ledger.spend(0.1))
    assert code == "LedgerError" and not ledger.entries


def _in_fork(action: Any) -> str:
    """What an action in a forked process ends with: the name of its exception, or nothing."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        name = ""
        try:
            action()
        except BaseException as error:
            name = type(error).__name__
        finally:
            os.write(write, name.encode())
            os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    with os.fdopen(read, "rb") as pipe:
        return pipe.read().decode()


def test_threads_do_not_overspend(monkeypatch: pytest.MonkeyPatch, ledger: pq.Ledger) -> None:
    """Two spends that are both checked before either is entered would not both be refused."""
    whole = Account.cost

    def slow(self: Account, more: Any = None) -> Any:
        cost = whole(self, more)
        time.sleep(0.01)
        return cost

    monkeypatch.setattr(Account, "cost", slow)

    def spend() -> None:
        with contextlib.suppress(BudgetExceededError):
            ledger.spend(0.6)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.spent == Fraction(3, 5)


def test_a_fork_in_the_middle_of_another_threads_spends_finds_the_locks_free(tmp_path: Path) -> None:
    ledger = pq.Ledger.open(tmp_path / "one", total=10**6)
    stop = threading.Event()

    def spend() -> None:
        while not stop.is_set():
            ledger.spend(1, "thread")

    thread = threading.Thread(target=spend)
    thread.start()
    try:
        assert [_in_fork(lambda: ledger.spend(1, "fork")) for _ in range(10)] == [""] * 10
    finally:
        stop.set()
        thread.join()
    assert sum(e.what == "fork" for e in ledger.entries) == 10


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_file_is_made_with_a_total_and_opened_without(tmp_path: Path) -> None:
    path = tmp_path / "a?b#%41.ledger"
    with pytest.raises(FileNotFoundError, match="path"):
        pq.Ledger.open(path)
    assert not list(tmp_path.iterdir())
    one = pq.Ledger.open(path, total=Fraction(7, 3), delta=1e-6)
    one.spend(Fraction(1, 3), "ages", pool="days", group="Monday", adjacency="replace")
    other = pq.Ledger.open(str(path))
    assert other.entries == one.entries and other.remaining == 2 and other.delta == Fraction(1, 10**6)
    assert pq.Ledger.open(path, total=Fraction(7, 3)).identity == one.identity
    for totals, name in (((1,), "total"), ((Fraction(7, 3), 0.1), "delta")):
        with pytest.raises(ValueError, match=f"^{name} must be that of"):
            pq.Ledger.open(path, *totals)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert as_ledger(str(path)).remaining == 2  # type: ignore[union-attr]
    with pytest.raises(FileNotFoundError):
        as_ledger(tmp_path / "none")


def test_two_that_have_read_the_same_account_do_not_both_spend_what_remains(tmp_path: Path) -> None:
    one, other = pq.Ledger.open(tmp_path / "one", total=1), pq.Ledger.open(tmp_path / "one")
    assert one.remaining == other.remaining == 1
    one.spend(0.6)
    with pytest.raises(BudgetExceededError, match=r"0\.4 of 1 remain"):
        other.spend(0.6)
    assert other.spent == one.spent == Fraction(3, 5)


@pytest.mark.skipif(sys.platform != "linux", reason="names that are no text")
@pytest.mark.parametrize("name", [b"\xff.ledger", b"100%25?mode=ro#.ledger", "\u00e9\U0001f600.ledger".encode()])
def test_a_file_of_any_name_is_a_ledger(tmp_path: Path, name: bytes) -> None:
    path = tmp_path / os.fsdecode(name)
    pq.Ledger.open(path, total=1).spend(0.25, "a")
    assert os.listdir(os.fsencode(tmp_path)) == [name] and pq.Ledger.open(path).spent == Fraction(1, 4)


def test_other_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    text, empty, foreign = (tmp_path / name for name in ("text", "empty", "foreign"))
    text.write_text("hello " * 1000)
    empty.touch()
    with contextlib.closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE account (identity)")
        connection.commit()
    for path in (text, empty, foreign, tmp_path):
        before = path.read_bytes() if path.is_file() else b""
        for totals in ((), (1,)):
            if path is empty and totals:
                continue
            with pytest.raises(LedgerError, match=rf"{path.name} (is no ledger|cannot be used)"):
                pq.Ledger.open(path, *totals)
        assert path == tmp_path or path.read_bytes() == before
    assert pq.Ledger.open(empty, total=1).remaining == 1  # left by a process that was killed while it made it


def test_damage_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "one"
    ledger = pq.Ledger.open(path, total=1)
    for day in range(100):
        ledger.spend(Fraction(1, 1000), f"day {day}")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(LedgerError, match=r"damaged|cannot be used"):
        ledger.spend(0.1)
    path.write_bytes(whole)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for change in ("DELETE FROM entries", "UPDATE entries SET epsilon = '0'", "UPDATE account SET total = '9'"):
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute(change)
        connection.execute("DROP TRIGGER entries_stay")
        connection.execute("DELETE FROM entries WHERE number = 50")
        connection.commit()
    with pytest.raises(LedgerError, match="entries are missing"):
        ledger.spend(0.1)
    path.unlink()
    with pytest.raises(LedgerError, match="cannot be used"):
        ledger.spend(0.1)
    pq.Ledger.open(path, total=1)
    with pytest.raises(LedgerError, match="another ledger"):
        ledger.spend(0.1)


def test_a_backup_that_came_back_and_was_spent_from_is_noticed(tmp_path: Path) -> None:
    """It has as many entries as the file before, but others."""
    path, backup = tmp_path / "a.ledger", tmp_path / "backup"
    ledger = pq.Ledger.open(path, total=1)
    ledger.spend(0.1, "first")
    backup.write_bytes(path.read_bytes())
    ledger.spend(0.1, "second")
    assert ledger.remaining == Fraction(4, 5)
    path.write_bytes(backup.read_bytes())
    pq.Ledger.open(path).spend(0.8, "another")
    with pytest.raises(LedgerError, match="other entries"):
        ledger.spend(0.8, "does not fit")
    with pytest.raises(LedgerError, match="other entries"):
        _ = ledger.remaining
    assert pq.Ledger.open(path).remaining == Fraction(1, 10)


def test_a_locked_file_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = pq.Ledger.open(tmp_path / "one", total=1)
    monkeypatch.setattr(storage, "PATIENCE", 0.05)
    with contextlib.closing(sqlite3.connect(tmp_path / "one", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match=r"one is locked by another process"):
            ledger.spend(0.1)
        connection.execute("ROLLBACK")
    ledger.spend(0.1)


# --- killed processes -------------------------------------------------------------------------------------------------

TOTAL, PROCESSES = Fraction(3), 8
ROUNDS = 1000 if os.environ.get("PQ_LONG") else 20


def _spend_at_random(path: Path, log: int, seed: int) -> None:
    """Spend until it is killed or nothing is left; a line of the log stands for a release."""
    rng, ledger = random.Random(seed), pq.Ledger.open(path)
    while True:
        amount, name = Fraction(rng.randrange(1, 30), 100), f"{seed}-{rng.random()}"
        try:
            ledger.spend(amount, name)
        except BudgetExceededError:
            if ledger.remaining == 0:
                return
        else:
            os.write(log, f"{name} {amount}\n".encode())


def kill_at_random(folder: Path, seed: int, spend: Any = _spend_at_random) -> tuple[dict[str, Fraction], pq.Ledger]:
    """What eight processes say that they have released, four of them killed, and the account afterwards."""
    rng, path = random.Random(seed), folder / f"ledger-{seed}"
    pq.Ledger.open(path, total=TOTAL)
    fork = multiprocessing.get_context("fork")
    log = os.open(folder / f"log-{seed}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    workers = [fork.Process(target=spend, args=(path, log, seed * PROCESSES + i)) for i in range(PROCESSES)]
    for worker in workers:
        worker.start()
    for worker in rng.sample(workers, PROCESSES // 2):
        time.sleep(rng.random() * 0.02)
        worker.kill()
    for worker in workers:
        worker.join()
    os.close(log)
    lines = (folder / f"log-{seed}").read_text().splitlines()
    return {name: Fraction(amount) for name, amount in map(str.split, lines)}, pq.Ledger.open(path)


def holds(released: dict[str, Fraction], ledger: pq.Ledger) -> bool:
    """Whether released <= charged <= total, and every charge of a release is in the file."""
    charged = {entry.what: entry.epsilon for entry in ledger.entries}
    whole = sum(charged.values(), Fraction(0)) == ledger.spent <= TOTAL and len(charged) == len(ledger.entries)
    return whole and all(charged.get(name) == amount for name, amount in released.items())


def test_processes_killed_at_random_never_overspend_and_lose_no_charge(tmp_path: Path) -> None:
    rounds = [kill_at_random(tmp_path, seed) for seed in range(ROUNDS)]
    assert all(holds(*one) for one in rounds)
    assert sum(len(released) for released, _ in rounds) > ROUNDS  # something was at stake


def test_processes_that_make_one_file_at_once_share_it(tmp_path: Path) -> None:
    """Eight forks wait for one moment, open the same path with a total, and spend a tenth each."""
    fork = multiprocessing.get_context("fork")
    start = fork.Barrier(PROCESSES)

    def make() -> None:
        start.wait()
        pq.Ledger.open(tmp_path / "one", total=1).spend(0.1, str(os.getpid()))

    workers = [fork.Process(target=make) for _ in range(PROCESSES)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * PROCESSES
    ledger = pq.Ledger.open(tmp_path / "one")
    assert ledger.spent == Fraction(PROCESSES, 10) and len({e.what for e in ledger.entries}) == PROCESSES


def test_what_charges_after_the_release_or_in_two_steps_is_noticed(tmp_path: Path) -> None:
    """Mutants: a JSON-like account that is read, then written; and one that releases before it charges."""

    def two_steps(path: Path, log: int, seed: int) -> None:
        rng = random.Random(seed)
        for turn in range(20):
            ledger, amount = pq.Ledger.open(path), Fraction(rng.randrange(1, 30), 100)
            if ledger.spent + amount > TOTAL:
                return
            time.sleep(0.002)
            with contextlib.closing(sqlite3.connect(path, timeout=60)) as connection:
                row = (str(amount), f"{seed}-{turn}", "0", "0")
                connection.execute("INSERT INTO entries (epsilon, what, delta, rho) VALUES (?, ?, ?, ?)", row)
                connection.commit()

    def too_late(path: Path, log: int, seed: int) -> None:
        os.write(log, f"{seed}-early 1/100\n".encode())
        time.sleep(0.05)
        pq.Ledger.open(path).spend(Fraction(1, 100), f"{seed}-early")

    # the first round shows it, but for machines so busy that workers are killed before they begin
    assert not all(holds(*kill_at_random(tmp_path, seed, two_steps)) for seed in range(100, 150))
    assert not all(holds(*kill_at_random(tmp_path, seed, too_late)) for seed in range(200, 250))


# --- other names ------------------------------------------------------------------------------------------------------


def _killed_in_a_commit(path: Path) -> None:
    """Leave what a process leaves that is killed when its entry is in the file and not granted yet: a journal."""

    class Killed(sqlite3.Connection):
        def execute(self, sql: str, *rest: Any) -> sqlite3.Cursor:
            if sql == "COMMIT":
                super().execute("PRAGMA cache_spill=1")
                for page in range(50):  # more than the cache holds: pages are in the file before the end
                    row = ("1", "x" * 4000, "0", "0", str(page))
                    super().execute("INSERT INTO entries (epsilon, what, delta, rho, who) VALUES (?, ?, ?, ?, ?)", row)
                os._exit(0)
            if sql.startswith("BEGIN"):
                super().execute("PRAGMA cache_size=1")
            return super().execute(sql, *rest)

    def spend() -> None:
        honest = sqlite3.connect
        sqlite3.connect = lambda *a, **b: honest(*a, factory=Killed, **b)  # type: ignore[assignment,misc]
        pq.Ledger.open(path).spend(Fraction(1, 100), "not granted")

    _in_fork(spend)
    assert Path(f"{path}-journal").stat().st_size


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_file_with_a_second_name_is_refused_while_it_has_it(tmp_path: Path) -> None:
    """By the second name the killed process's entry is there or half there, and what comes after it is taken back."""
    one, other = tmp_path / "one", tmp_path / "other"
    ledger = pq.Ledger.open(one, total=1)
    ledger.spend(0.5, "granted")
    _killed_in_a_commit(one)
    os.link(one, other)
    for path in (one, other):
        for totals in ((), (1,)):
            with pytest.raises(LedgerError, match="has 2 names"):
                pq.Ledger.open(path, *totals)
    for act in (lambda: ledger.spend(0.5), lambda: ledger.remaining):
        with pytest.raises(LedgerError, match="has 2 names"):
            act()
    assert "share its folder" in run("show", other).output and Path(f"{one}-journal").exists()
    other.unlink()
    assert [entry.what for entry in ledger.entries] == ["granted"]
    ledger.spend(0.5)
    assert pq.Ledger.open(one).remaining == 0


def test_a_name_that_comes_in_the_middle_of_a_spend_is_seen_before_it_is_granted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, whole = pq.Ledger.open(tmp_path / "one", total=1), Account.cost

    def slow(self: Account, more: Any = None) -> Any:
        os.link(tmp_path / "one", tmp_path / "other")
        return whole(self, more)

    with monkeypatch.context() as patch:
        patch.setattr(Account, "cost", slow)
        with pytest.raises(LedgerError, match="has 2 names"):
            ledger.spend(0.5)
    (tmp_path / "other").unlink()
    assert ledger.receipt is None and not ledger.entries


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_symbolic_link_is_no_second_name(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "folder" / "other"
    other.parent.mkdir()
    other.symlink_to(one)
    pq.Ledger.open(one, total=1)
    _killed_in_a_commit(one)
    pq.Ledger.open(other).spend(1)
    assert pq.Ledger.open(one).remaining == 0 and os.listdir(other.parent) == ["other"]


def test_a_file_that_is_mounted_by_itself_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = pq.Ledger.open(tmp_path / "one", total=1)
    mount = storage._mount
    monkeypatch.setattr(storage, "_mount", lambda path: "mnt_id: 1" if path.endswith("one") else mount(path))
    for act in (lambda: pq.Ledger.open(tmp_path / "one"), lambda: ledger.spend(0.5)):
        with pytest.raises(LedgerError, match="one is mounted by itself"):
            act()
    monkeypatch.undo()
    assert not ledger.entries


@pytest.mark.skipif(sys.platform != "linux", reason="mounts")
def test_mounts_of_files_are_told_from_those_of_folders(tmp_path: Path) -> None:
    """In a space of names of its own, where everybody may mount; some systems do not allow that."""
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    pq.Ledger.open(tmp_path / "here" / "one", total=1)
    (tmp_path / "alone").touch()
    new = ["unshare", "--user", "--map-root-user", "--mount", "bash", "-c"]
    mounts = "mount --bind here/one alone && mount --bind here there"
    if shutil.which("unshare") is None or subprocess.run([*new, mounts], cwd=tmp_path, check=False).returncode:
        pytest.skip("no mounts without being root")
    program = """if True:
        import pq
        for name in ("here/one", "there/one", "alone"):
            try:
                pq.Ledger.open(name).spend(0.25)
            except RuntimeError as error:
                print(error)"""
    ask = f"{mounts} && {shlex.join([sys.executable, '-c', program])}"
    done = subprocess.run([*new, ask], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.fullmatch(".*alone is mounted by itself.*\n", done.stdout)
    assert len(pq.Ledger.open(tmp_path / "here" / "one").entries) == 2


# --- commands ---------------------------------------------------------------------------------------------------------


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(command, [str(a) for a in arguments])


def test_a_receipt_is_that_of_the_threads_own_spend(tmp_path: Path) -> None:
    ledger = pq.Ledger.open(tmp_path / "one", total=10, who="ann")
    assert ledger.receipt is None
    with ThreadPoolExecutor(4) as pool:

        def spend(k: int) -> tuple[str, str | None]:
            ledger.spend(Fraction(1, 10), str(k))
            return str(k), ledger.receipt

        receipts = dict(pool.map(spend, range(40)))
    for number, entry in enumerate(ledger.entries, 1):
        assert receipts[entry.what] == f"{ledger.identity}-{number}"
        assert entry.who == f"ann, process {os.getpid()}"
    with pytest.raises(ValueError, match="does not fit"):
        ledger.spend(100)
    assert ledger.receipt is None  # of this thread
    assert pickle.loads(pickle.dumps(ledger)).identity == ledger.identity
    with pytest.raises(TypeError, match="who"):
        pq.Ledger(1, who=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="who"):
        pq.Ledger.open(tmp_path / "two", total=1, who="\ud800")
    assert not (tmp_path / "two").exists()


def test_a_rehearsal_says_what_would_be_and_charges_nothing() -> None:
    ledger = pq.Ledger(2, delta=1e-6)
    ledger.spend(1, adjacency="replace")
    ledger.spend(0.5, pool="days", group="Monday")
    trial = ledger.rehearsal()
    assert (trial.spent, trial.delta, trial.entries) == (ledger.spent, ledger.delta, ledger.entries)
    trial.spend(0.5, pool="days", group="Tuesday")
    for options in ({"epsilon": 0.75}, {"epsilon": 0.1, "adjacency": "add-remove"}):
        for account in (trial, ledger):
            with pytest.raises(ValueError):
                account.spend(**options)  # type: ignore[arg-type]
    assert len(ledger.entries) == 2 and len(trial.entries) == 3


def test_a_rehearsal_adds_nothing_up(ledger: pq.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was granted fits; to spend it once more would take a time that grows with the square of the entries."""
    for _ in range(3):
        ledger.spend(0.125)
    with monkeypatch.context() as patch:
        patch.delattr(Account, "cost")
        trial = ledger.rehearsal()
    assert trial.entries == ledger.entries and trial.remaining == ledger.remaining


def test_commands_make_and_show_an_account(tmp_path: Path) -> None:
    file = tmp_path / "ages"
    made = run("init", file, "--total", "1/3", "--delta", "1e-6")
    assert made.exit_code == 0 and "1/3" in made.output
    pq.Ledger.open(file).spend(0.25, "median age")
    shown = run("show", file)
    assert (
        shown.exit_code == 0 and "0.25  median age  (entry 1, 20" in shown.output and "remaining 1/12" in shown.output
    )
    account = json.loads(run("show", file, "--json").output)
    assert account["total"] == "1/3" and account["spent"] == "1/4" and account["entries"][0]["what"] == "median age"
    again = run("init", file, "--total", "1/3")
    assert again.exit_code == 2 and "is there already" in again.output


@pytest.mark.parametrize("total", ["0", "-1", "nan", "inf", "1e400x", "", "1/0", "9" * 5000, "1e309", "1e400"])
def test_commands_refuse_bad_totals(total: str, tmp_path: Path) -> None:
    found = run("init", tmp_path / "one", "--total", total)
    assert found.exit_code == 2 and "total" in found.output and not list(tmp_path.iterdir())


@pytest.mark.parametrize("delta", ["-1e-6", "1", "1e309", "nan", "1e-401"])
def test_commands_refuse_bad_deltas(delta: str, tmp_path: Path) -> None:
    found = run("init", tmp_path / "one", "--total", "1", "--delta", delta)
    assert found.exit_code == 2 and "delta" in found.output and not list(tmp_path.iterdir())


def test_an_account_that_was_made_with_too_much_is_told(tmp_path: Path) -> None:
    pq.Ledger.open(tmp_path / "one", total=1)
    with contextlib.closing(sqlite3.connect(tmp_path / "one")) as connection:
        connection.execute("DROP TRIGGER totals_hold")
        connection.execute("UPDATE account SET total = ?", (str(10**400),))
        connection.commit()
    found = run("show", tmp_path / "one")
    assert found.exit_code == 1 and "a total beyond what is allowed" in found.output


def test_commands_refuse_other_files(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello " * 1000)
    for name in ("text", "none"):
        found = run("show", tmp_path / name)
        assert found.exit_code in (1, 2) and "Traceback" not in found.output and name in found.output


def test_an_interrupt_while_others_entries_are_read_forgets_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = (pq.Ledger.open(tmp_path / "a.ledger", total=1) for _ in range(2))
    theirs.spend(0.75)
    for pool in ({}, {"pool": "days", "group": "Monday"}):
        theirs.spend(0.125, **pool)

        def interrupted(one: Cost, other: Cost) -> Cost:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Cost, "__add__", interrupted)
            with pytest.raises(KeyboardInterrupt):
                _ = mine.spent
    with pytest.raises(BudgetExceededError):
        mine.spend(0.25)


def test_nobody_spends_in_the_middle_of_another_entry_of_the_same_thread() -> None:
    """As a handler of signals would: what fitted before need not fit afterwards."""
    ledger = pq.Ledger(1)
    with pytest.raises(LedgerError, match="in the middle of another"):
        ledger._storage.transact(lambda _: ledger.spend(1, "from within"), writes=True)
    ledger.spend(1, "afterwards")
    assert ledger.spent == 1


def test_an_interrupted_spend_is_made_before_the_interrupt_is_raised(tmp_path: Path) -> None:
    """Whoever asks the ledger then knows whether it was charged; what is refused stays unspent."""
    ledger = pq.Ledger.open(tmp_path / "a.ledger", total=1)
    real = storage._Rows.append

    def interrupted(self: Any, entry: Any) -> None:
        for _ in range(2):  # by somebody who cannot wait
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            time.sleep(0.2)
        real(self, entry)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage._Rows, "append", interrupted)
        try:
            with pytest.raises(KeyboardInterrupt):
                ledger.spend(0.75)
        finally:
            signal.signal(signal.SIGINT, before)
        assert ledger.spent == Fraction(3, 4) and ledger.receipt == f"{ledger.identity}-1"
        with pytest.raises(BudgetExceededError):
            ledger.spend(0.75)
    assert len(ledger.entries) == 1


def test_a_handler_in_the_middle_of_an_account_in_memory_reads_one_in_a_file(tmp_path: Path) -> None:
    """The thread that reads for it must not wait for what the handler's own thread holds: nothing would end that."""
    program = f"""
import signal
import pq
from pq.core.budget.storage import MemoryStorage

file, memory = pq.Ledger.open({str(tmp_path / "a.ledger")!r}, total=1), pq.Ledger(1)
append = MemoryStorage.append

def handled(self, entry):
    signal.raise_signal(signal.SIGUSR1)
    append(self, entry)

MemoryStorage.append = handled
signal.signal(signal.SIGUSR1, lambda *_: file.spend(0.25))
memory.spend(0.5)
assert (memory.remaining, file.remaining) == (0.5, 0.75)
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


@pytest.mark.parametrize("reading", ["statement", "to_dict", "to_event", "spent", "remaining", "entries"])
def test_nobody_spends_while_the_account_is_read(
    ledger: pq.Ledger, reading: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pool that came in between would change what is being summed up."""
    ledger.spend(0.25, pool="new users", group="Monday")
    spender = threading.Thread(target=lambda: ledger.spend(0.25, pool="others", group="Monday"))
    reads, real = [], Account.pools

    def slow(self: Account) -> Any:
        if not reads:
            reads.append(True)
            spender.start()
            spender.join(0.3)
            assert spender.is_alive()
        return real(self)

    with monkeypatch.context() as patch:
        patch.setattr(Account, "pools", slow)
        found = getattr(ledger, reading)
        _ = found() if callable(found) else found
    if reads:
        spender.join()
    assert ledger.spent == Fraction(1, 4) * (1 + len(reads)) and (reads or reading in ("entries", "to_event"))


def test_a_backup_without_the_last_spend_is_noticed(tmp_path: Path) -> None:
    """The object that made the spend has not looked at the file since; without the check a third half would fit."""
    path, backup = tmp_path / "a.ledger", tmp_path / "backup"
    ledger = pq.Ledger.open(path, total=1)
    ledger.spend(0.5)
    backup.write_bytes(path.read_bytes())
    ledger.spend(0.5)
    path.write_bytes(backup.read_bytes())
    with pytest.raises(LedgerError, match="other entries"):
        ledger.spend(0.5)
    assert pq.Ledger.open(path).spent == Fraction(1, 2)
