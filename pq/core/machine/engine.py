"""When machine code does the work of formulas: a question to this machine and to public facts, never to the data.

Compiling takes longer than many a release, and so does loading what has been compiled, unless it is loaded already.
Formulas answer until they have taken about as long as loading machine code that is on disk (`make setup` puts it there,
and so does every compilation), or as compiling it: who rents until the rents make up the price pays at most twice the
least. Both engines have the same law, and the same answers to the same
uniforms up to the last digits.

A child that is forked while another thread loads or compiles, whoever it is for, has a compiler that is held by nobody
who could let go of it, in the middle of its work. There only the machine code runs that was there at the fork.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from typing import Any

from pq.core.locks import Renewable, is_free

COMPILE_SECONDS = 10.0  # about what a large inner loop takes
LOAD_SECONDS = 0.5  # about what the compiler takes to be imported, without which kept code cannot be loaded

_AT_WORK: list[int] = []  # threads that load or compile
_CUT_OFF = False  # whether this process was forked in the middle of that


@contextmanager
def at_work() -> Iterator[None]:
    """Around whatever loads or compiles. Raises `RuntimeError` where that might never end."""
    if _CUT_OFF:
        raise RuntimeError("machine code must have been loaded before a fork that comes while another thread compiles")
    thread = threading.get_ident()
    _AT_WORK.append(thread)
    try:
        yield
    finally:
        _AT_WORK.remove(thread)


_LOCKS = {
    "llvmlite.binding.ffi": attrgetter("lib._lock._lock"),
    "numba.core.compiler_lock": attrgetter("global_compiler_lock._lock"),
}


def _is_held() -> bool:
    """Whether another thread imports the compiler, or holds a lock of it, for somebody else."""
    for name in ("llvmlite", "numba"):
        if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
            return True
    for name, lock in _LOCKS.items():
        with suppress(AttributeError):  # not imported, or of another version
            if not is_free(lock(sys.modules.get(name))):
                return True
    return False


def _look_around() -> None:
    """In a child: see who was at work."""
    global _CUT_OFF
    ours = threading.get_ident()
    _CUT_OFF = _CUT_OFF or _AT_WORK.count(ours) < len(_AT_WORK) or _is_held()
    _AT_WORK[:] = [thread for thread in _AT_WORK if thread == ours]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_look_around)

_ANSWERS: ContextVar[dict[tuple[Engine, float], bool] | None] = ContextVar("_ANSWERS", default=None)


@contextmanager
def first_answers() -> Iterator[None]:
    """What an engine first answers to an estimate holds to the end of this, and is counted once: how often one release
    asks may depend on the data, as when parts of a column do not do, and what is loaded must not."""
    token = _ANSWERS.set({})
    try:
        yield
    finally:
        _ANSWERS.reset(token)


class Engine:
    """One function of machine code, `pq.core.machine.keep.kept`, which stands beside formulas.

    module, name: where it is; imported when it is wanted, since that brings the compiler: half a second.
    """

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name
        self._lock = Renewable()
        self._function: Any = None
        self._looked = self._failed = False
        self._rent = 0.0

    def ready(self, seconds: float) -> bool:
        """Whether machine code is there, or is made because work that takes the formulas so long pays for it.

        seconds: an estimate from public facts alone; what earlier calls said counts too. Never raises: whatever keeps
        code from being loaded or compiled leaves the work to the formulas.
        """
        answers = _ANSWERS.get()
        if answers is None:
            return self._is_ready(seconds)
        if (self, seconds) not in answers:
            answers[self, seconds] = self._is_ready(seconds)
        return answers[self, seconds]

    def _is_ready(self, seconds: float) -> bool:
        if self._function is not None:
            return True
        with self._lock.now:
            self._rent += seconds
            pays = self._rent >= COMPILE_SECONDS
            loads = not self._looked and (self._rent >= LOAD_SECONDS or "numba" in sys.modules)
            self._looked = self._looked or loads
            if self._function is None and not self._failed and (pays or (loads and any(self._traces()))):
                try:
                    with at_work():
                        kept = self._import()
                        self._function = kept if kept.load() or (pays and kept.make(tell=True)) else None
                except Exception:  # of the file system, of damaged files, of the compiler: no fault of the caller
                    self._failed = True
        return self._function is not None

    def __call__(self, *arguments: Any) -> Any:
        """Run the machine code, which is compiled if it must be."""
        if self._function is None:
            with at_work():
                kept = self._import()
                self._function = kept if kept.load() or kept.make(tell=True) else None
        return self._function(*arguments)

    def _import(self) -> Any:
        return getattr(import_module(self.module), self.name)

    def _traces(self) -> Iterator[Path]:
        """Files that say that code may have been kept, without the compiler, which alone can tell: where it looks."""
        spec = find_spec(self.module)
        folders: list[Path] = []
        if spec is not None and spec.origin is not None:
            folders.append(Path(spec.origin).parent / "__pycache__")
        for name, rest in (("NUMBA_CACHE_DIR", ""), ("XDG_CACHE_HOME", "numba"), ("HOME", ".cache/numba")):
            if os.environ.get(name):
                folders.append(Path(os.environ[name]) / rest)
        for folder in folders:
            for pattern in ("*.nbi", "*/*.nbi"):
                try:
                    yield from (path for path in folder.glob(pattern) if f".{self.name}." in path.name)
                except OSError:
                    continue
