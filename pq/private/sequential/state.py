"""A saved sequence: written whole, claimed before it is read, and told apart from one with other arguments."""

from __future__ import annotations

import dataclasses
import glob
import os
import pickle
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from pq.core.exact import decimal_fraction
from pq.core.priors import Prior
from pq.core.seconds import TIMES, seconds_of

Identity = tuple[int, int, int, int]
PUBLIC = {"predictor", "quantiles", "epsilon", "individuals", "composition", "delta", "options", "ledger", "count"}
SPENT = {"release_epsilon", "learning_epsilon", "learning_delta", "_cost"}
KEPT = PUBLIC | SPENT | {"_pool", "_process", "_request"}  # of a session, in a saved state


def store(state: Mapping[str, Any], path: Path) -> Identity:
    """Write a state in one step, readable by the owner only; returns what tells the file from any other.

    Raises `ValueError` naming path for what `is_there` refuses."""
    _check_length(path)
    is_there(path)
    part = _part(path)
    part.unlink(missing_ok=True)  # one that a crash or somebody else left may be open to others
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            pickle.dump(dict(state), file)
            file.flush()
            os.fsync(file.fileno())
            own = _identity(os.fstat(file.fileno()))
        os.replace(part, path)
    except BaseException:  # of a full disk: nothing of it stays there
        part.unlink(missing_ok=True)
        raise
    return own


def _identity(found: os.stat_result) -> Identity:
    """What a file keeps when it is renamed."""
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def _part(path: Path) -> Path:
    """Where a state is while it is written."""
    return Path(f"{path}.part")


def used(path: Path) -> Path:
    """Where a state lies after it has been claimed, until the next one is saved."""
    return Path(f"{path}.used")


def _own_name(path: Path) -> Path:
    return Path(f"{path}.{secrets.token_hex(8)}.claimed")


def _check_length(path: Path) -> None:
    """Raise `OSError` for a name so long that nobody could take up what lies there."""
    with suppress(FileNotFoundError):
        os.stat(_own_name(path))


def is_there(path: Path, argument: str = "path") -> bool:
    """Whether a file is at a path. Raises `ValueError` naming the argument for a folder, a pipe, a device or a socket:
    none is a saved session, and renamed, as a session is, it would be lost to those whose it is."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{argument} must be of a file, a saved session or none yet; at {path} is something else")
    return True


def left_over(path: Path) -> Path | None:
    """Where a state is that somebody has taken up and not saved again: at work, or ended in between."""
    claims = path.parent.glob(f"{glob.escape(path.name)}.*.claimed")
    return next(claims, None) or (used(path) if used(path).exists() else None)


class Turns:
    """One run's turns at the checkpoint of a sequence, of which each data set takes one: the state lies at `path`
    between them, where another run may take it up and go on, and at `used(path)` meanwhile.

    path: of the checkpoint. is_resumed: whether this run has just taken up the state there.
    """

    def __init__(self, path: Path, *, is_resumed: bool) -> None:
        self.path, self._has_it = path, is_resumed
        self._own: Identity | None = None

    def take(self) -> None:
        """Take the state up before a data set is released, the first one too: whoever comes after a break in between
        finds no state from which the same data set would be released once more. Raises `ValueError` naming checkpoint
        where another run has it."""
        if self._has_it:
            return
        is_there(_part(self.path), "checkpoint")  # a folder in that place would be in the way after the release
        if self._own is None:
            self._begin()
        else:
            self._take_up(self._own)
        self._has_it = True

    def _begin(self) -> None:
        """Of several runs that find nothing, the one that makes the file begins."""
        _check_length(self.path)
        try:
            with open(used(self.path), "xb") as file:
                own = _identity(os.fstat(file.fileno()))
        except FileExistsError:
            raise ValueError(ANOTHER) from None
        # Whoever has been there since this run has looked is at one of these places, which come in this order.
        if self.path.exists() or left_over(self.path) != used(self.path) or _identity(os.stat(used(self.path))) != own:
            raise ValueError(ANOTHER)

    def _take_up(self, own: Identity) -> None:
        mine = _own_name(self.path)
        try:
            if _identity(os.stat(self.path)) != own:
                raise ValueError(ANOTHER)
            os.rename(self.path, mine)
        except FileNotFoundError:
            raise ValueError(ANOTHER) from None
        if _identity(os.stat(mine)) != own:
            _put_back(mine, self.path)
            raise ValueError(ANOTHER)
        os.replace(mine, used(self.path))

    def stored(self, own: Identity) -> None:
        """This run's state lies at `path` again, in a file of that identity."""
        used(self.path).unlink(missing_ok=True)
        self._own, self._has_it = own, False


ANOTHER = "checkpoint was taken up by another run, which goes on from it: two would release the same data sets twice"


def _put_back(mine: Path, path: Path) -> None:
    try:
        os.link(mine, path)
        mine.unlink()
    except OSError:  # a new state that somebody has saved meanwhile stays
        os.replace(mine, used(path))


@contextmanager
def claimed(path: Path, argument: str = "path") -> Iterator[dict[str, Any]]:
    """The state in a file, renamed before it is read, so that of many processes one has it; put back by an exception.

    The name that it has meanwhile is nobody else's: a third process may claim what a second one puts back or saves.

    Raises `FileNotFoundError` if there is none, or another was quicker, and `ValueError` naming the argument if it is
    none.
    """
    mine = _own_name(path)
    try:
        is_there(path, argument)
        os.rename(path, mine)
    except FileNotFoundError:
        message = f"{argument} must be a saved session, there is none at {path}, or it was taken up"
        raise FileNotFoundError(message) from None
    try:
        state = _read(mine)
        if state is None:
            raise ValueError(f"{argument} must be a saved session")
        yield state
    except BaseException:
        _put_back(mine, path)
        raise
    os.replace(mine, used(path))


def _read(path: Path) -> dict[str, Any] | None:
    """The state in a file; None if it is none."""
    try:
        state = pickle.loads(path.read_bytes())
    except OSError:
        raise
    except Exception:
        return None
    return state if isinstance(state, dict) and state.keys() >= KEPT else None


def described(value: Any) -> Any:
    """An argument as plain values that are equal for equal arguments, whatever containers and numbers they came in.
    Never raises: what cannot be served is refused by name elsewhere."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return described(np.asarray(value)[()])
    if isinstance(value, np.ndarray | list | tuple):
        return tuple(map(described, value))
    if isinstance(value, Mapping):
        return tuple(sorted((str(name), described(one)) for name, one in value.items() if name != "rng"))
    if isinstance(value, Prior):
        return described(value.to_dict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__, described({f.name: getattr(value, f.name) for f in dataclasses.fields(value)})
    if isinstance(value, bool | np.bool_ | str | None):
        return value
    try:
        return decimal_fraction(seconds_of(value) if isinstance(value, TIMES) else value, "value")
    except (TypeError, ValueError):
        return repr(value) if isinstance(value, Real) else type(value).__qualname__
