"""A saved sequence: written whole, claimed before it is read, and told apart from one with other arguments."""

from __future__ import annotations

import dataclasses
import math
import os
import pickle
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from pq.core.exact import decimal_fraction
from pq.core.priors import Prior


def store(state: Mapping[str, Any], path: Path) -> None:
    """Write a state in one step, readable by the owner only."""
    part = Path(f"{path}.part")
    part.unlink(missing_ok=True)  # one that a crash or somebody else left may be open to others
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        pickle.dump(dict(state), file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def used(path: Path) -> Path:
    """Where a state lies after it has been claimed, until the next one is saved."""
    return Path(f"{path}.used")


@contextmanager
def claimed(path: Path) -> Iterator[dict[str, Any]]:
    """The state in a file, renamed before it is read, so that of many processes one has it; put back by an exception.

    The name that it has meanwhile is nobody else's: a third process may claim what a second one puts back or saves.

    Raises `FileNotFoundError` if there is none, or another was quicker, and `ValueError` naming path if it is none.
    """
    mine = Path(f"{path}.{secrets.token_hex(8)}.claimed")
    try:
        os.rename(path, mine)
    except FileNotFoundError:
        raise FileNotFoundError(f"path must be a saved session, there is none at {path}, or it was taken up") from None
    try:
        yield _read(mine)
    except BaseException:
        try:
            os.link(mine, path)
            mine.unlink()
        except OSError:  # a new state that somebody has saved meanwhile stays
            os.replace(mine, used(path))
        raise
    os.replace(mine, used(path))


def _read(path: Path) -> dict[str, Any]:
    try:
        state = pickle.loads(path.read_bytes())
    except OSError:
        raise
    except Exception:
        state = None
    if not isinstance(state, dict) or "predictor" not in state:
        raise ValueError("path must be a saved session")
    return state


def described(value: Any) -> Any:
    """An argument as plain values that are equal for equal arguments, whatever containers and numbers they came in."""
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
    if isinstance(value, Real) and math.isfinite(value):
        return decimal_fraction(value, "value")
    return repr(value) if isinstance(value, Real) else type(value).__qualname__
