"""How functions of this package are compiled and kept on disk.

numba keeps the machine code of a function until the function's own file changes, and does not look at the functions
that it calls. Code that decides about privacy must not outlive its source. So only the functions that Python calls are
kept, with a digest of all the package's sources as part of their key; what they call is compiled into them. Files that
cannot be written or read, or are damaged, cost the time of compiling and nothing else.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba import njit, types
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.serialize import dumps

# Free for threads; division by zero gives infinity, as in numpy.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


_PACKAGE = Path(__file__).parents[2]
_OTHERS: list[tuple[str, Path]] = []


def _digest() -> int:
    digest = hashlib.sha256()
    inner = [
        path
        for folder in ("core/machine", "core/priors", "private/fast", "private/mechanisms/joint")
        for path in (_PACKAGE / folder).glob("*.py")
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


def uncounted(function: Any) -> Any:
    """As `compiled`, without counting who holds an array, which takes as long as a short release: for functions that
    make no arrays, and give arrays to such functions alone."""
    options: dict[str, Any] = {"_nrt": False, **_OPTIONS}
    return njit(**options)(function)


def kept(signature: Any) -> Callable[[Callable[[int], Any]], Kept]:
    """Compile the function that a maker gives when it is called with the digest of the sources, and keep it on disk.

    The function must use the digest, so that it is a part of numba's key. The signature is declared, so that one
    machine compiles it once, whatever arrays it is given later.
    """

    def decorate(make: Callable[[int], Any]) -> Kept:
        return Kept(signature, make(_digest() if _OTHERS else SOURCES))

    return decorate


class Kept:
    """A function of machine code, loaded from disk or compiled when it is first called."""

    def __init__(self, signature: Any, function: Any) -> None:
        self.signature, self.py_func = signature, function
        self.dispatcher = _shelved(njit(**_OPTIONS)(function))
        self._lock = threading.Lock()

    def load(self) -> bool:
        """Whether the machine code is there without compiling."""
        if self.dispatcher.overloads:
            return True
        if self.dispatcher._cache.load_overload(self.signature, self.dispatcher.targetctx) is None:
            return False
        return self.make()

    def make(self, *, tell: bool = False) -> bool:
        """Load or compile the machine code, once; `tell`: with a word to a person who waits for it."""
        with self._lock:
            if not self.dispatcher.overloads:
                if tell:
                    _tell()
                self.dispatcher.compile(self.signature)
                self.dispatcher.disable_compile()
        return True

    def __call__(self, *arguments: Any) -> Any:
        if not self.dispatcher.overloads and not self.load():
            self.make(tell=True)
        return self.dispatcher(*arguments)


def _tell() -> None:
    """A word to a person who waits; a log file gets none."""
    with suppress(Exception):  # no stderr, or one that is closed
        if sys.stderr.isatty():
            print("pq: compiling an inner loop, once; `python -m pq.private` does it beforehand", file=sys.stderr)


class _Sealed(CompileResultCacheImpl):
    """Machine code with a digest of its own bytes: a damaged file must not run."""

    def reduce(self, cres: Any) -> Any:
        body = dumps(super().reduce(cres))
        return hashlib.sha256(body).digest(), body

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        seal, body = payload
        if hashlib.sha256(body).digest() != seal:
            raise ValueError("damaged machine code")
        return super().rebuild(target_context, pickle.loads(body))


class _Shelf(FunctionCache):
    """numba's cache on disk, where nothing that goes wrong with files is more than a code that is not kept."""

    _impl_class = _Sealed

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # truncated, damaged, unreadable
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(Exception):  # a full disk, a folder that is gone
            try:
                super().save_overload(sig, data)
            except Exception:  # an index that cannot be read would not be mended otherwise
                self.flush()
                super().save_overload(sig, data)


def _shelved(dispatcher: Any) -> Any:
    with suppress(Exception):  # no folder can be written
        dispatcher._cache = _Shelf(dispatcher.py_func)
    return dispatcher


def given(kind: Any, dimensions: int) -> Any:
    """The type of an array that is only read."""
    return types.Array(kind, dimensions, "C", readonly=True)
