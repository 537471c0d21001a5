"""Locks that survive a fork."""

from __future__ import annotations

import os
import threading


def fork_safe_lock() -> threading.RLock:
    """A lock that no other thread holds at the moment of a fork, so that the child finds it free and what it guards
    whole. For locks that live as long as the process."""
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock
