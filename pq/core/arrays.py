"""Arrays that are handed out: nobody writes to them, so that what was checked or counted stays what it was."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

ArrayT = TypeVar("ArrayT", bound="np.ndarray")


def read_only(array: ArrayT) -> ArrayT:
    """The same array, from now on read-only.

    >>> read_only(np.zeros(2)).flags.writeable
    False
    """
    array.flags.writeable = False
    return array


class KeptReadOnly:
    """What has read-only arrays, in its copies and pickles too: numpy's own are writable."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        for held in state.values():
            for value in held if isinstance(held, tuple) else (held,):
                if isinstance(value, np.ndarray):
                    read_only(value)
