"""Locks that survive a fork, and work that no fork comes between: a child must not wait for a thread that only its
parent has, nor go on with what its parent has begun."""

from __future__ import annotations

import os
import sys
import threading
from _thread import start_new_thread
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any, TypeVar
from weakref import WeakSet

T = TypeVar("T")
GLANCE = 0.5  # seconds after which a child sees that what it waits for is done by its parent alone


class ForkedError(RuntimeError):
    """A child was forked in the middle of what its parent has begun, and is to finish alone."""


class Process:
    """The process that made this; `check` raises `ForkedError` in any other."""

    def __init__(self) -> None:
        self._number = os.getpid()

    @property
    def is_here(self) -> bool:
        return os.getpid() == self._number

    def check(self) -> None:
        if not self.is_here:
            raise ForkedError("this process was forked in the middle of a call, which is its parent's to finish")


def undisturbed(work: Callable[[], T]) -> T:
    """What some work gives, done where no handler of signals comes between, which may fork: by a thread of its own, as
    handlers run in the main one.

    What a handler raises meanwhile, such as an interrupt, is raised when the work is done, the first of it. Raises
    `ForkedError` in a child that was forked while its parent waited.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    begun: list[bool] = []
    outcome: list[Callable[[], T]] = []
    raised: BaseException | None = None
    under_way, process = threading.Lock(), Process()  # plain ones: a child would wait for more than a while for others

    def run() -> None:
        begun.append(True)
        try:
            value = work()
            outcome.append(lambda: value)
        except BaseException as error:
            outcome.append(partial(_raised, error))
        finally:
            under_way.release()

    under_way.acquire()
    try:
        start_new_thread(run, ())
    except BaseException as error:  # no thread, or an interrupt of one that has just been started
        raised = error
    while not outcome:
        try:
            under_way.acquire(timeout=GLANCE)
            if raised is not None and not begun:
                break
            process.check()
        except ForkedError:
            raise
        except BaseException as error:
            raised = raised or error
    if raised is not None:
        raise raised
    return outcome[0]()


def _raised(error: BaseException) -> Any:
    raise error


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


def is_mine(lock: Any) -> bool:
    """Whether this very thread holds a lock of `threading.RLock`. Who asks before taking one is then a handler of
    signals, and would come into the middle of what it interrupts."""
    mine: bool = lock._is_owned()
    return mine


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
