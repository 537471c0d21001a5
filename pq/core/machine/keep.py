"""How functions of this package are compiled and kept on disk.

numba keeps the machine code of a function until the function's own file changes, and does not look at the functions
that it calls. Code that decides about privacy must not outlive its source. So only the functions that Python calls are
kept, with a digest of all the package's sources as part of their key; what they call is compiled into them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit, types

# Free for threads; division by zero gives infinity, as in numpy.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


_PACKAGE = Path(__file__).parents[2]
_OTHERS: list[tuple[str, Path]] = []


def _digest() -> int:
    digest = hashlib.sha256()
    inner = [
        path for folder in ("core/machine", "core/priors", "private/fast") for path in (_PACKAGE / folder).glob("*.py")
    ]
    for name, path in [*((path.name, path) for path in sorted(inner)), *_OTHERS]:
        digest.update(name.encode() + b"\0" + path.read_bytes())
    return int.from_bytes(digest.digest()[:7], "little")


SOURCES = _digest()


def depend_on(name: str, path: Path) -> None:
    """Make a source that is not a part of this package count from now on, under a name, in the order of the calls."""
    if not path.resolve().is_relative_to(_PACKAGE):
        _OTHERS.append((name, path))


def compiled(function: Any) -> Any:
    """Compile a function into those that call it."""
    return njit(**_OPTIONS)(function)


def kept(signature: Any) -> Callable[[Callable[[int], Any]], Any]:
    """Compile the function that a maker gives when it is called with the digest of the sources, and keep it on disk.

    The function must use the digest, so that it is a part of numba's key. The signature is declared, so that one
    machine compiles it once, whatever arrays it is given later.
    """

    def decorate(make: Callable[[int], Any]) -> Any:
        return njit(signature, cache=True, **_OPTIONS)(make(_digest() if _OTHERS else SOURCES))

    return decorate


def given(kind: Any, dimensions: int) -> Any:
    """The type of an array that is only read."""
    return types.Array(kind, dimensions, "C", readonly=True)
