"""A child that is forked while another thread is busy waits for nobody, and is no more silent than its parent was."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import pytest

from pq.core import quiet
from pq.core.locks import is_free
from pq.core.priors import scipy_prior

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")

# A process with one thread that is busy with something while another forks; a child that waits is killed.
BEGIN = """
import os, signal, sys, threading, traceback
from contextlib import contextmanager
import pq

held, done = threading.Event(), threading.Event()

def wait():
    held.set()
    done.wait()

class Slow(list):
    def __iter__(self):
        wait()
        return super().__iter__()

def ends(action):
    "Whether a child does something without an error, and in time."
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        try:
            action()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0

@contextmanager
def meanwhile(busy):
    held.clear()
    done.clear()
    thread = threading.Thread(target=busy, daemon=True)
    thread.start()
    assert held.wait(30)
    yield
    done.set()
    thread.join()

def small(x=(1.0, 2.0, 3.0)):
    return pq.release(list(x) if type(x) is tuple else x, [0.5], epsilon=1, priors=pq.Uniform(0, 4))
"""


def run(program: str) -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", BEGIN + program], check=True, timeout=120)


def test_a_child_forked_while_a_thread_reads_can_read() -> None:
    run("""
with meanwhile(lambda: small(Slow([1.0, 2.0]))):
    assert ends(small)
""")


def test_no_property_of_the_package_keeps_a_lock_of_the_parent() -> None:
    """Wherever it stands, and whoever computes it; Python has such locks before 3.12."""
    run("""
import functools, gc, importlib, pkgutil
for found in pkgutil.walk_packages(pq.__path__, "pq."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
ours = [one for one in gc.get_objects() if type(one) is functools.cached_property and one.func.__module__[:3] == "pq."]
assert len(ours) > 50

def hold():
    for one in ours:
        if hasattr(one, "lock"):
            one.lock.acquire()
    wait()

def take():
    assert all(one.lock.acquire(blocking=False) for one in ours if hasattr(one, "lock"))

with meanwhile(hold):
    assert ends(take)
""")


def test_a_child_forked_while_a_thread_is_silent_has_the_logs_and_filters_from_before() -> None:
    """Also where that is nested; a thread that forks while it is silent itself stays so to the end of that."""
    run("""
import logging, warnings
from pq.core.quiet import quiet

logging.disable(7)
warnings.filterwarnings("error", message="of mine")
before = list(warnings.filters), 7

def now():
    return list(warnings.filters), logging.root.manager.disable

def same():
    assert now() == before
    small()
    assert now() == before
    try:
        warnings.warn("of mine")
    except UserWarning:
        return
    raise AssertionError("no error")

def twice():
    with quiet(), quiet():
        wait()

for busy in (twice, lambda: pq.count(Slow([1.0]))):
    with meanwhile(busy):
        assert now() != before and ends(same)
    assert now() == before

def inside():
    assert now() == silent
    with quiet():
        assert now()[1] == silent[1]
    assert now() == silent

def whole():
    with quiet():
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
    assert now() == before
    if not child:
        os._exit(0)

with quiet():
    silent = now()
    assert ends(inside)
assert ends(whole)
""")


def test_a_distribution_is_tabulated_while_nobody_else_moves_the_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads that put back what each has found would leave the other's filters."""
    import scipy.stats

    free: list[bool] = []

    def tabulated(*_: Any) -> Any:
        looks = threading.Thread(target=lambda: free.append(is_free(quiet._FILTERS.now)))
        looks.start()
        looks.join()
        raise LookupError

    monkeypatch.setattr(scipy_prior, "tabulated", tabulated)
    with pytest.raises(LookupError):
        scipy_prior.from_scipy(scipy.stats.gamma(2))
    assert free == [False]


def test_a_child_forked_while_a_thread_compiles_leaves_the_work_to_the_formulas() -> None:
    """Whoever it compiles for, and also where it imports the compiler; what was there at the fork still runs."""
    run("""
from types import SimpleNamespace
from pq.core.machine import engine
from pq.core.machine.engine import Engine

class Fake:
    def __init__(self, make):
        self.make = lambda tell: make() or True
    def load(self):
        return False
    def __call__(self):
        return "ran"

engine.find_spec = lambda name: None
sys.modules["fake_kernels"] = SimpleNamespace(quick=Fake(lambda: None), slow=Fake(wait))
there, unborn, *slow = (Engine("fake_kernels", name) for name in ("quick", "quick", "slow", "slow"))
assert there.ready(1e9) and there() == "ran"

def formulas():
    assert there.ready(0.0) and there() == "ran"
    for one in (slow[1], unborn, Engine("fake_kernels", "quick")):
        assert not one.ready(1e9) and not one.ready(1e9)
        try:
            one()
        except RuntimeError:
            continue
        raise AssertionError("ran")
    assert ends(lambda: None) and small()

def compiles():
    assert Engine("fake_kernels", "quick").ready(1e9)

for busy in (lambda: slow[0].ready(1e9), slow[1]):
    with meanwhile(busy):
        assert ends(formulas)
assert ends(compiles)

from numba.core.compiler_lock import global_compiler_lock
from llvmlite.binding.ffi import lib
import numba

def holding(lock):
    def hold():
        with lock:
            wait()
    return hold

slow[1] = unborn
for lock in (global_compiler_lock, lib._lock):
    with meanwhile(holding(lock)):
        assert ends(formulas)
assert ends(compiles)
numba.__spec__._initializing = True
assert ends(formulas)
""")


def test_machine_code_is_not_sought_where_its_lock_is_held_by_the_parent() -> None:
    """A function that is asked for without an engine, too."""
    run("""
from pq.core.machine.loss import laplace_losses

laplace_losses.dispatcher._cache = None
laplace_losses.dispatcher.compile = lambda signature: wait()
laplace_losses.load = lambda: False

def asks():
    try:
        laplace_losses()
    except RuntimeError:
        return
    raise AssertionError("ran")

with meanwhile(laplace_losses.make):
    assert ends(asks)
""")


def test_a_child_forked_in_the_middle_of_a_step_can_save_and_go_on() -> None:
    run("""
import tempfile
from pq.sequential import Session, Static

session = Session(Static(pq.Uniform(0, 4), [0.5]), [0.5], epsilon=1)
folder = tempfile.mkdtemp()

def goes_on():
    session.save(f"{folder}/state")
    session.step([], [1.0, 2.0])

with meanwhile(lambda: session.step([], Slow([1.0]))):
    assert ends(goes_on)
""")
