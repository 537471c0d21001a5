"""Locks that survive a fork: a child must not wait for a thread that only its parent has."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any
from weakref import WeakSet


def fork_safe_lock() -> threading.RLock:
    """A lock that no other thread holds at the moment of a fork, so that the child finds it free and what it guards
    whole. For locks that live as long as the process."""
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


class Renewable:
    """A lock, `now`, that is another one in a child if another thread holds it at the fork. For what takes long, or may
    wait for a thread that forks, so that no fork can wait for it: what the lock guards may be half done in the child.
    """

    def __init__(self, make: Callable[[], Any] = threading.RLock) -> None:
        self.now, self._make = make(), make
        _RENEWABLE.add(self)

    def renew(self) -> None:
        """Leave the lock to whoever else holds it."""
        if not is_free(self.now):
            self.now = self._make()


_RENEWABLE: WeakSet[Renewable] = WeakSet()


def is_free(lock: Any) -> bool:
    """Whether no other thread holds a lock."""
    free: bool = lock.acquire(blocking=False)
    if free:
        lock.release()
    return free


def _properties() -> Iterator[Any]:
    """Every `cached_property` of the package's classes."""
    package = __name__.partition(".")[0]
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == package:
            for kind in getattr(module, "__dict__", {}).values():
                if isinstance(kind, type) and kind.__module__ == name:
                    yield from (value for value in vars(kind).values() if isinstance(value, cached_property))


def _renew_all() -> None:
    for lock in list(_RENEWABLE):
        lock.renew()
    for one in _properties():
        if hasattr(one, "lock"):  # one for all instances, until Python 3.12
            one.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
