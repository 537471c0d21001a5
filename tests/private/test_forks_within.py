"""A handler of signals forks in the middle of a call, and both processes come back into it: one of them, the parent,
goes on. What was paid for once is released once, and a ledger stays what it is."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")

BEGIN = """
import os, signal, tempfile, time
import pq
import pq.private.noise as noise
import pq.private.release as releases
import pq.private.sequential.session as sessions
from pq.core.budget import storage
from pq.core.budget.ledger import Ledger, LedgerError
from pq.core.locks import ForkedError
from pq.sequential import DPLearned, Session, Static

child = None
prior = pq.Uniform(0, 4)

def fork(*_):
    global child
    child = os.fork()
    time.sleep(0.1 if (child == 0) == CHILD_LATER else 0.0)

signal.signal(signal.SIGUSR1, fork)

def fires(where, name, before):
    "Have a function send the signal, once, before or after its work."
    real = getattr(where, name)
    def wrapped(*args, **options):
        setattr(where, name, real)
        if before:
            signal.raise_signal(signal.SIGUSR1)
        found = real(*args, **options)
        if not before:
            signal.raise_signal(signal.SIGUSR1)
        return found
    setattr(where, name, wrapped)

def ends_in_the_parent_alone(call, again=None):
    signal.alarm(60)
    try:
        call()
    except ForkedError:
        if child == 0 and again is not None:
            try:
                again()
            except ForkedError:
                os._exit(7)
            os._exit(1)
        os._exit(7 if child == 0 else 2)
    except BaseException as error:
        print(repr(error), flush=True)
        os._exit(3)
    if child == 0:
        os._exit(1)
    assert child is not None and os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7

folder = tempfile.mkdtemp()
ledger = pq.Ledger.open(f"{folder}/a.ledger", total=1, delta=1e-6)
"""


def run(program: str, child_later: bool) -> None:
    subprocess.run([sys.executable, "-c", f"CHILD_LATER = {child_later}\n{BEGIN}{program}"], check=True, timeout=120)


@pytest.mark.parametrize("child_later", [True, False])
@pytest.mark.parametrize(
    "moment",
    [
        "storage._Rows, 'append', True",
        "storage._Rows, 'append', False",
        "storage.FileStorage, '_transact', False",
        "Ledger, 'spend', False",
        "releases, '_charge', False",
        "releases, 'fulfil', True",
    ],
)
def test_a_release_that_is_paid_for_once_is_made_once(moment: str, child_later: bool) -> None:
    """Also in the middle of a transaction: before, the child took its parent's half of it back, and nobody could read
    the ledger any more."""
    run(
        f"""
fires({moment})
ends_in_the_parent_alone(lambda: pq.release([1.0, 2.0], [0.5], epsilon=1, priors=prior, ledger=ledger))
assert len(pq.Ledger.open(ledger._storage.path).entries) == 1 and ledger.remaining == 0
""",
        child_later,
    )


@pytest.mark.parametrize("child_later", [True, False])
def test_a_spend_in_memory_is_its_process_s(child_later: bool) -> None:
    run(
        """
memory = pq.Ledger(1)
fires(storage.MemoryStorage, "append", False)
try:
    memory.spend(1)
except LedgerError:
    os._exit(7)
assert child != 0 and os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
""",
        child_later,
    )


@pytest.mark.parametrize("call", ["simulate", "groups"])
def test_groups_and_simulations_are_made_once(call: str) -> None:
    calls = {
        "simulate": "pq.simulate([1.0, 2.0], [0.5], trials=3, epsilon=1, priors=prior)",
        "groups": "pq.release_groups({'g': ['a', 'b'], 'v': [1.0, 2.0]}, [0.5], by='g', value='v', keys=['a', 'b'], "
        "epsilon=1, priors=prior)",
    }
    moments = {"simulate": "releases, '_charge'", "groups": "groups, 'charge'"}
    run(
        f"""
import pq.private.groups as groups
fires({moments[call]}, False)
ends_in_the_parent_alone(lambda: {calls[call]})
""",
        True,
    )


@pytest.mark.parametrize(
    "moment",
    [
        "Session, '_charge', False",
        "sessions, 'fulfil', False",
        "DPLearned, 'learn', True",
        "noise.TreeAggregator, '_next', True",
        "noise.TreeAggregator, '_next', False",
        "DPLearned, 'learn', False",
    ],
)
def test_a_step_of_a_sequence_is_learnt_from_once(moment: str) -> None:
    """A child that went on would look at the same records with noise of its own; its sequence is at its end."""
    run(
        f"""
start = {{"loc": 0.0, "scale": 1.0, "resolution": 0.1, "dimension": 0, "mechanism": "tree"}}
predictor = DPLearned([0.5], steps=4, epsilon=0.5, delta=1e-7, **start)
session = Session(predictor, [0.5], epsilon=1, ledger=ledger)
fires({moment})
step = lambda: session.step([], [1.0, 2.0])
ends_in_the_parent_alone(step, again=step)
assert session.count == 1
step()
assert len(ledger.entries) == 2
""",
        True,
    )
