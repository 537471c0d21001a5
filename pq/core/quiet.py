"""Silence around code that is not ours: what a library says may depend on the values, or hold one."""

from __future__ import annotations

import logging
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pq.core.locks import Renewable

LOUDEST = 2**31  # level of a log; libraries may have levels of their own
_FILTERS = Renewable()  # none that a fork waits for: whoever is silent may wait for a thread that forks
_FOUND: list[tuple[int, Any, int]] = []  # by the thread that is silent, once for each time: filters, and level of logs


@contextmanager
def quiet() -> Iterator[None]:
    """No warnings and nothing in Python's logs. One thread at a time: the filters are the process's. A child that
    another thread forks meanwhile has the filters and the logs that were there before."""
    with _FILTERS.now, np.errstate(all="ignore"):
        before, depth = logging.root.manager.disable, len(_FOUND)
        try:
            _FOUND.append((threading.get_ident(), warnings.filters, before))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                logging.disable(max(before, LOUDEST))
                yield
        finally:
            logging.disable(before)
            del _FOUND[depth:]


def _put_back() -> None:
    """Nobody else does, in a child of another thread."""
    if _FOUND and _FOUND[0][0] != threading.get_ident():
        _, warnings.filters, level = _FOUND[0]
        with warnings.catch_warnings():  # which tells Python that the filters have changed
            logging.disable(level)
        _FOUND.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_put_back)
