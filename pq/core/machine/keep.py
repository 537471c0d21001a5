"""How functions of this package are compiled and kept on disk.

numba keeps the machine code of a function until the function's own file changes, and does not look at the functions
that it calls. Code that decides about privacy must not outlive its source. So only the functions that Python calls are
kept, with a digest of all sources that are compiled as part of their key; what they call is compiled into them.

The digest is taken when this module is imported, and code may be imported later: where sources have changed since, it
is not known which of them code was made from, and it is neither kept nor loaded. The last bits of this process's own
exponentials and logarithms are a part of the key: code that is compiled while somebody moves them is of them alone.
Files that several processes write may come to hold another's code: so code carries its key, and a digest of its own
bytes. Files that cannot be written or read, or are damaged, cost the time of compiling and nothing else.

*Names.* The inner functions of a kept one are weak symbols: of two with one name, loaded into one process, the first
stands for both. numba tells functions of one qualified name, such as those for each family of priors, apart by a number
that each process counts from one. So code that two processes have compiled would give one name to different functions,
and a law would take its masses from another family. Here each process, a fork too, begins to count at a random number.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import pickle
import secrets
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba import njit, types
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.serialize import dumps

from pq.core.locks import Renewable
from pq.core.machine.engine import at_work

# Free for threads; division by zero gives infinity, as in numpy.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def _count_anew() -> None:
    """Let numba tell functions apart by numbers that no other process has."""
    FunctionIdentity._unique_ids = itertools.count(secrets.randbits(60))


_count_anew()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_anew)

_PACKAGE = Path(__file__).parents[2]
_INNER = (
    "core/machine/*.py",
    "core/priors/*.py",
    "core/scores.py",
    "private/fast/*.py",
    "private/mechanisms/joint/*.py",
)
_OTHERS: list[tuple[str, Path]] = []


def sources_of_code() -> list[tuple[str, Path]]:
    """Names and files of all sources that are compiled, and of those that they take numbers from."""
    inner = sorted(path for pattern in _INNER for path in _PACKAGE.glob(pattern))
    return [*((path.name, path) for path in inner), *_OTHERS]


def _digest() -> int:
    digest = hashlib.sha256()
    for name, path in sources_of_code():
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


def inlined(function: Any) -> Any:
    """As `uncounted`, and put in place wherever it is called: for a few lines on a long tuple, which a call copies."""
    options: dict[str, Any] = {"_nrt": False, "forceinline": True, **_OPTIONS}
    return njit(**options)(function)


def kept(signature: Any) -> Callable[[Callable[[int], Any]], Kept]:
    """Compile the function that a maker gives when it is called with the digest of the sources, and keep it on disk.

    The function must use the digest, so that it is a part of numba's key. The signature is declared, so that one
    machine compiles it once, whatever arrays it is given later.
    """

    def decorate(make: Callable[[int], Any]) -> Kept:
        digest = _digest() if _OTHERS else SOURCES
        return Kept(signature, make(digest), digest)

    return decorate


class Kept:
    """A function of machine code, loaded from disk or compiled when it is first called."""

    def __init__(self, signature: Any, function: Any, digest: int) -> None:
        self.signature, self.py_func = signature, function
        self.dispatcher = _shelved(njit(**_OPTIONS)(function), digest)
        self._lock = Renewable()

    def load(self) -> bool:
        """Whether the machine code is there without compiling."""
        if self.dispatcher.overloads:
            return True
        with at_work(), self._lock.now:
            code = self.dispatcher._cache.load_overload(self.signature, self.dispatcher.targetctx)
            if code is not None and not self.dispatcher.overloads:
                self.dispatcher.add_overload(code)
                self.dispatcher.disable_compile()
        return code is not None

    def make(self, *, tell: bool = False) -> bool:
        """Load or compile the machine code, once; `tell`: with a word to a person who waits for it."""
        with at_work(), self._lock.now:
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
    """Machine code with its key and a digest of both: neither a damaged file nor another's code must run."""

    key: Any = None

    def reduce(self, cres: Any) -> Any:
        body = dumps((repr(self.key), super().reduce(cres)))
        return hashlib.sha256(body).digest(), body

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        seal, body = payload
        if hashlib.sha256(body).digest() != seal:
            raise ValueError("damaged machine code")
        key, code = pickle.loads(body)
        if key != repr(self.key):
            raise ValueError("machine code of something else")
        return super().rebuild(target_context, code)


class _Shelf(FunctionCache):
    """numba's cache on disk, where nothing that goes wrong with files is more than a code that is not kept.

    digest: of the sources that the function was made from.
    """

    _impl_class = _Sealed

    def __init__(self, function: Any, digest: int) -> None:
        super().__init__(function)
        self._digest = digest

    def _is_known(self) -> bool:
        """Whether the sources are still those that the digest is of."""
        return _digest() == self._digest

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """numba's key and more, which code carries, too."""
        key = (*super()._index_key(sig, codegen), _last_bits())
        self._impl.key = self._impl.filename_base, key
        return key

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context) if self._is_known() else None
        except Exception:  # truncated, damaged, unreadable
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(Exception):  # a full disk, a folder that is gone
            if not self._is_known():
                return
            try:
                super().save_overload(sig, data)
            except Exception:  # an index that cannot be read would not be mended otherwise
                self.flush()
                super().save_overload(sig, data)


def _last_bits() -> str:
    """What exponentials and logarithms are in this process, to the last bit."""
    functions = (math.exp, math.expm1, math.log, math.log1p)
    return repr([function(place / 7.0) for function in functions for place in range(1, 9)])


def _shelved(dispatcher: Any, digest: int) -> Any:
    with suppress(Exception):  # no folder can be written
        dispatcher._cache = _Shelf(dispatcher.py_func, digest)
    return dispatcher


def given(kind: Any, dimensions: int) -> Any:
    """The type of an array that is only read."""
    return types.Array(kind, dimensions, "C", readonly=True)
