"""Where the entries of a ledger are kept: in memory, or in a file that many processes share (SQLite).

A spend is one transaction: the entries that others have made are read, the new one is checked and written, and nobody
else writes in between. A process that is killed in the middle leaves the file as it was before. Connections live for
one transaction each, and no fork happens during one: SQLite's locks do not survive forks, and a child that went on with
what its parent began would ruin the file. Other threads wait with theirs; handlers of signals run in the main thread,
which a transaction is never in.

What SQLite needs to take back the half-written transaction of a killed process lies in a file beside the one name that
the process used. Who came by another name would not see it, and would spend what is lost when it is found; so the file
must have one name only, at the end of each transaction too.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from pq.core.budget.account import Entry, LedgerError, account_delta, account_total
from pq.core.locks import Process, fork_safe_lock, undisturbed

PATIENCE = 60.0  # seconds that a transaction waits for others
JOURNAL = "-journal"  # ends the name of SQLite's own file
APPLICATION = 0x7071_6C67  # marks a file as a ledger
COLUMNS = ("epsilon", "what", "pool", "grouping", "delta", "rho", "adjacency", "who", "moment")
SCHEMA = (
    "CREATE TABLE account (identity TEXT NOT NULL, total TEXT NOT NULL, delta TEXT NOT NULL)",
    f"CREATE TABLE entries (number INTEGER PRIMARY KEY AUTOINCREMENT, {', '.join(f'{name} TEXT' for name in COLUMNS)})",
    "CREATE TRIGGER entries_stay BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries stay'); END",
    "CREATE TRIGGER entries_hold BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries stay'); END",
    "CREATE TRIGGER totals_hold BEFORE UPDATE ON account BEGIN SELECT RAISE(ABORT, 'totals stay'); END",
    f"PRAGMA application_id={APPLICATION}",
)
INSERT = f"INSERT INTO entries ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
SELECT = f"SELECT number, {', '.join(COLUMNS)} FROM entries WHERE number > ? ORDER BY number"
# A handler of signals may come upon an account in memory that its own thread is in: it must not wait, for one in a file
# either, whose transactions are another thread's.
_LOCK, _MEMORY_LOCK = fork_safe_lock(), fork_safe_lock()
T = TypeVar("T")


class Transaction(ABC):
    """What may be done while nobody else writes."""

    @abstractmethod
    def entries(self, after: int) -> list[Entry]:
        """All entries but the first `after`."""

    @abstractmethod
    def append(self, entry: Entry) -> None:
        """One entry more; it is there for good when the transaction has ended without an exception."""


class Storage(ABC):
    """Entries that are only ever appended, with the totals that they are held against."""

    identity: str
    total: Fraction
    delta: Fraction

    @abstractmethod
    def transact(self, work: Callable[[Transaction], T], *, writes: bool, told: Callable[[T], None] | None = None) -> T:
        """What some work gives that is done all or not at all; of those that write there is one at a time, of all in
        this process too. It may be done by another thread. told: what it gave, once that is there for good, by whoever
        did it, whatever is raised here meanwhile."""


def _told(outcome: T, told: Callable[[T], None] | None) -> T:
    if told is not None:
        told(outcome)
    return outcome


class MemoryStorage(Storage, Transaction):
    """Entries of the process that made it."""

    def __init__(self, total: Fraction, delta: Fraction, entries: Sequence[Entry] = ()) -> None:
        self.identity, self.total, self.delta = secrets.token_hex(8), total, delta
        self._entries = list(entries)
        self._process, self._open = Process(), False

    def transact(self, work: Callable[[Transaction], T], *, writes: bool, told: Callable[[T], None] | None = None) -> T:
        self._check_process(writes)
        with _MEMORY_LOCK:
            if self._open:  # by this thread: a handler of signals, which would come between a look and what it is for
                raise LedgerError("ledger is in the middle of another entry of this thread")
            try:
                self._open = True  # within: an interrupt on the way in leaves it closed
                done = _told(work(self), told)
            finally:
                self._open = False
        self._check_process(writes)
        return done

    def _check_process(self, writes: bool) -> None:
        if writes and not self._process.is_here:
            raise LedgerError(
                "ledger is in the memory of the process that made it, and a fork has another; use pq.Ledger.open(path)"
            )

    def entries(self, after: int) -> list[Entry]:
        return self._entries[after:]

    def append(self, entry: Entry) -> None:
        self._entries.append(entry)


class FileStorage(Storage):
    """Entries in an SQLite file on a local disk. total: creates the file where there is none, None to open one."""

    def __init__(self, path: Path, total: Fraction | None, delta: Fraction | None) -> None:
        if "\0" in str(path):
            raise ValueError("path must not hold the character of number 0, which ends a name for the system")
        self.path = path.absolute()
        undisturbed(lambda: self._open(path, total, delta))

    def _open(self, path: Path, total: Fraction | None, delta: Fraction | None) -> None:
        if total is None and not self.path.exists():
            raise FileNotFoundError(f"path must be a ledger, there is none at {path}; a total creates one")
        with self._connection("BEGIN" if total is None else "BEGIN IMMEDIATE", create=total is not None) as connection:
            empty = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if empty and total is not None:
                _create(connection, total, delta or Fraction(0))
            if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
                raise LedgerError(f"{self.path} is no ledger")
            if connection.execute("PRAGMA quick_check").fetchone()[0] != "ok":
                raise LedgerError(f"{self.path} is damaged")
            try:
                self.identity, *amounts = connection.execute("SELECT identity, total, delta FROM account").fetchone()
                self.total, self.delta = account_total(Fraction(amounts[0])), account_delta(Fraction(amounts[1]))
            except (TypeError, ValueError, ZeroDivisionError):
                raise LedgerError(f"{self.path} is damaged, or made with a total beyond what is allowed") from None
        for name, given, kept in (("total", total, self.total), ("delta", delta, self.delta)):
            if given is not None and given != kept:
                raise ValueError(f"{name} must be that of {path}, {kept}, got {given}")

    def transact(self, work: Callable[[Transaction], T], *, writes: bool, told: Callable[[T], None] | None = None) -> T:
        return undisturbed(lambda: _told(self._transact(work, writes), told))

    def _transact(self, work: Callable[[Transaction], T], writes: bool) -> T:
        with self._connection("BEGIN IMMEDIATE" if writes else "BEGIN") as connection:
            if connection.execute("SELECT identity FROM account").fetchone() != (self.identity,):
                raise LedgerError(f"{self.path} is another ledger than the one that was opened")
            return work(_Rows(connection, self.path))

    @contextmanager
    def _connection(self, begin: str, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection for one transaction; an immediate one is the only one that may write."""
        path = os.path.realpath(self.path)  # of symbolic links there is one end, and beside it SQLite's own file
        where = f"file:{quote(os.fsencode(path))}?mode={'rwc' if create else 'rw'}"
        with _LOCK, self._readable():
            self._check_names(path)  # also for whoever only looks: what they see may be half of a transaction
            connection = sqlite3.connect(where, uri=True, timeout=PATIENCE, isolation_level=None)
            try:
                connection.execute("PRAGMA synchronous=EXTRA")  # FULL, and the folder too: it survives a power cut
                connection.execute(begin)
                yield connection
                self._check_names(path)  # a name that comes after this finds a transaction that was not granted yet
                connection.execute("COMMIT")
            finally:  # takes back what was not committed
                connection.close()

    def _check_names(self, path: str) -> None:
        """Refuse a file with a second name, as far as that can be told. path: what all symbolic links lead to."""
        try:
            facts = os.stat(path)
            if not stat.S_ISREG(facts.st_mode):  # SQLite says so
                return
            alone = _mount(path) != _mount(os.path.dirname(path))
        except FileNotFoundError:  # SQLite says so, or makes it
            return
        except OSError as error:
            raise LedgerError(f"{self.path} cannot be used: {error.strerror}") from None
        if facts.st_nlink > 1:
            raise LedgerError(
                f"{self.path} has {facts.st_nlink} names (hard links), and a ledger must have one: beside it lies what "
                f"a crash leaves to take back. Keep one, that with a {JOURNAL} beside it if there is one, and share "
                "its folder"
            )
        if alone:
            raise LedgerError(
                f"{self.path} is mounted by itself, so that it has another name elsewhere, and a ledger must have one: "
                "beside it lies what a crash leaves to take back. Mount or share its folder instead"
            )

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """SQLite's errors in words that help."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            text = str(error)
            if "locked" in text:
                text = f"is locked by another process, for more than {PATIENCE:g} seconds"
            elif isinstance(error, sqlite3.OperationalError):
                text = f"cannot be used: {text}"
            else:
                text = f"is no ledger, or damaged: {text}"
            raise LedgerError(f"{self.path} {text}") from None


class _Rows(Transaction):
    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._path = connection, path

    def entries(self, after: int) -> list[Entry]:
        count = self._connection.execute("SELECT count(*), coalesce(max(number), 0) FROM entries").fetchone()
        if count[0] != count[1] or count[0] < after:
            raise LedgerError(f"{self._path} is damaged: entries are missing")
        try:
            return [_entry(*row[1:]) for row in self._connection.execute(SELECT, (after,))]
        except (TypeError, ValueError, ZeroDivisionError):
            raise LedgerError(f"{self._path} is damaged: an entry cannot be read") from None

    def append(self, entry: Entry) -> None:
        e = entry
        row = (e.epsilon, e.what, e.pool, e.group, e.delta, e.rho, e.adjacency, e.who, e.when)
        self._connection.execute(INSERT, [str(v) if isinstance(v, Fraction) else v for v in row])


def journal_of(path: str | os.PathLike[str]) -> str:
    """Where SQLite keeps what it needs to take back a transaction on a ledger."""
    return os.path.realpath(path) + JOURNAL


def _mount(path: str) -> str | None:
    """The number of the mount in which something lies, where Linux tells it; None elsewhere."""
    if not hasattr(os, "O_PATH"):
        return None
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)  # opens nothing: closing it takes no lock of SQLite's away
    try:
        facts = Path(f"/proc/self/fdinfo/{place}").read_text(encoding="ascii")
    except (FileNotFoundError, NotADirectoryError, PermissionError):  # no /proc
        return None
    finally:
        os.close(place)
    return next((line for line in facts.splitlines() if line.startswith("mnt_id:")), None)


def _create(connection: sqlite3.Connection, total: Fraction, delta: Fraction) -> None:
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute("INSERT INTO account VALUES (?, ?, ?)", (secrets.token_hex(8), str(total), str(delta)))


def _entry(epsilon: str, what: str, pool: Any, group: Any, delta: str, rho: str, *rest: Any) -> Entry:
    return Entry(Fraction(epsilon), what, pool, group, Fraction(delta), Fraction(rho), *rest)
