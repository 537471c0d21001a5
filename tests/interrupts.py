"""Interrupts before any line of chosen files, for tests of what is left when a call breaks off there."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from pq.core import quiet
from pq.core.budget import storage
from pq.core.locks import is_mine
from pq.private import noise


def locks() -> list[Any]:
    """Those of the whole process: who left one held would have a later test wait for ever."""
    return [storage._LOCK, storage._MEMORY_LOCK, noise._ONE_STEP, quiet._FILTERS.now]


def held() -> list[Any]:
    """Those of them that this thread holds, which it then does no more."""
    mine = [lock for lock in locks() if is_mine(lock)]
    for lock in mine:
        while is_mine(lock):
            lock.release()
    return mine


@contextmanager
def interrupt_before(line: int, places: Sequence[str]) -> Iterator[list[str]]:
    """A KeyboardInterrupt before the line of that number, from 1 on, among those of this thread in files whose paths
    hold one of some texts. Gives a list of the functions of the lines that were reached, as they are reached.

    A tracing function raises between the body and the end of a `with`, too, where a signal's interrupt never comes; the
    process's locks that stay behind there are freed.
    """
    seen: list[str] = []

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        if not any(place in frame.f_code.co_filename for place in places):
            return None
        if event == "line":
            seen.append(frame.f_code.co_name)
            if len(seen) == line:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield seen
    finally:
        sys.settrace(before)
        held()
