"""A handler of signals that comes back into what it interrupts is refused: it would wait for its own thread in vain."""

from __future__ import annotations

import copy
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import pq
import pq.private.sequential.session as sessions
from pq.core.locks import ForkedError
from pq.sequential import PubPrev, Session

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no such signals here")
SECONDS = 20.0  # after which what waits is taken to wait for ever


class Calls(list[float]):
    """A data set that sends a signal when it is read."""

    def __iter__(self) -> Iterator[float]:
        signal.raise_signal(signal.SIGUSR1)
        return super().__iter__()


@pytest.fixture
def handlers() -> Iterator[None]:
    """An end to whatever waits, and the handlers as they were."""

    def waits(number: int, frame: FrameType | None) -> None:
        raise TimeoutError("a handler waits for the thread that it interrupts")

    before = {number: signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGALRM)}
    signal.signal(signal.SIGALRM, waits)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    for number, handler in before.items():
        signal.signal(number, handler)


def calls(act: Any) -> list[BaseException]:
    """What a handler of SIGUSR1 that acts so will be refused with."""
    raised: list[BaseException] = []

    def handle(number: int, frame: FrameType | None) -> None:
        try:
            act()
        except TimeoutError:
            raise
        except BaseException as error:
            raised.append(error)

    signal.signal(signal.SIGUSR1, handle)
    return raised


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("act", ["step", "save", "save in a save"])
def test_a_handler_that_comes_back_into_a_sequence_is_refused(
    act: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = pq.Ledger(10)
    session = Session(PubPrev([0.5], loc=0, scale=1), [0.5], epsilon=1, individuals="overlap", ledger=ledger)
    session.step([], [1.0])
    raised = calls((lambda: session.step([], [1.0])) if act == "step" else lambda: session.save(tmp_path / "inner"))
    if act == "save in a save":
        store = sessions.store
        monkeypatch.setattr(sessions, "store", lambda *rest: (signal.raise_signal(signal.SIGUSR1), store(*rest))[1])
        session.save(tmp_path / "outer")
    else:
        session.step([], Calls([1.0, 2.0]))
    (error,) = raised
    assert isinstance(error, RuntimeError) and "in the middle of a step or a save of this thread" in str(error)
    assert session.count == len(ledger.entries) == 1 + (act != "save in a save")
    assert not (tmp_path / "inner").exists()
    monkeypatch.undo()
    signal.raise_signal(signal.SIGUSR1)  # between steps it may
    assert len(raised) == 1 and session.count == len(ledger.entries)
    session.step([], [1.0])


@pytest.mark.usefixtures("handlers")
def test_a_child_that_a_handler_forks_in_the_middle_of_a_step_is_told_so_at_once() -> None:
    session = Session(PubPrev([0.5], loc=0, scale=1), [0.5], epsilon=1)

    def goes_on() -> None:
        child = os.fork()
        if child == 0:
            try:
                session.step([], [1.0])
            except ForkedError:
                os._exit(7)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7

    assert calls(goes_on) == []
    session.step([], Calls([1.0, 2.0]))
    assert session.count == 1


@pytest.mark.usefixtures("handlers")
def test_a_handler_may_go_on_with_a_sequence_of_its_own() -> None:
    session = Session(PubPrev([0.5], loc=0, scale=1), [0.5], epsilon=1)
    other = copy.deepcopy(session)
    raised = calls(lambda: other.step([], [1.0]))
    session.step([], Calls([1.0, 2.0]))
    assert raised == [] and session.count == other.count == 1
