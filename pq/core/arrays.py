"""Arrays that are handed out: nobody writes to them, so that what was checked or counted stays what it was."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

ArrayT = TypeVar("ArrayT", bound="np.ndarray")


def read_only(array: ArrayT) -> ArrayT:
    """The same array, from now on read-only.

    >>> read_only(np.zeros(2)).flags.writeable
    False
    """
    array.flags.writeable = False
    return array
