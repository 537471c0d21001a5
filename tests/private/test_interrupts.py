"""An interrupt before any line: what is out is paid for, and what comes after it is whole or refused. `PQ_LONG=1` tries
every line."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pq
from interrupts import interrupt_before
from pq.core.budget.ledger import BudgetExceededError
from pq.core.learners import cocob
from pq.private import release as releases
from pq.sequential import DPLearned, Predictor, PubDistribution, PubPrev, PubProx, Session

DAY = np.random.default_rng(0).normal(size=40)
OURS = ("/pq/private/", "/pq/core/budget/")
LEARNERS = ("/pq/private/sequential/", "/pq/core/learners/", "/pq/core/tracking.py")
STRIDE, SHORT_STRIDE = (1, 1) if os.environ.get("PQ_LONG") == "1" else (29, 3)
MOST_STEPS = 5
REFUSED = BudgetExceededError, RuntimeError


def interrupted(line: int, act: Callable[[], Any], folders: tuple[str, ...] = OURS) -> BaseException | None:
    """The interrupt that falls before the line of that number which `act` runs; None if it ends earlier."""
    with interrupt_before(line, folders):
        try:
            act()
        except KeyboardInterrupt as interrupt:
            return interrupt
    return None


def most_released() -> tuple[int, int]:
    """Over all lines at which a release is interrupted: the most that its ledger of three lets out, by whoever keeps
    what was drawn before the interrupt, too; and how many lines there are."""
    line, hit, most = 0, True, 0
    while hit:
        line, ledger = line + STRIDE, pq.Ledger(3)
        drawn: list[Any] = []

        def release(ledger: pq.Ledger = ledger, drawn: list[Any] = drawn) -> None:
            options: dict[str, Any] = {"epsilon": 1, "priors": pq.Cauchy(0, 1), "mechanism": "tree", "ledger": ledger}
            pq.release(DAY, [0.5], **options, rng=Kept(drawn))

        hit = interrupted(line, release) is not None
        for _ in range(4):
            try:
                release()
            except REFUSED:
                break
        most = max(most, len(drawn))
    return most, line


class Kept(np.random.Generator):
    """Tells of each time that noise is drawn."""

    def __init__(self, drawn: list[Any]) -> None:
        super().__init__(np.random.PCG64())
        self._drawn = drawn

    def integers(self, *arguments: Any, **named: Any) -> Any:
        self._drawn.append(arguments)
        return super().integers(*arguments, **named)


def test_no_more_is_drawn_than_charged_wherever_a_release_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    most, lines = most_released()
    assert most == 3 and lines > 100
    charge, fulfil = releases._charge, releases.fulfil
    later: list[Any] = []

    def first(*arguments: Any) -> Any:
        released = fulfil(*arguments)
        charge(*later.pop())
        return released

    monkeypatch.setattr(releases, "_charge", lambda *arguments: later.append(arguments))
    monkeypatch.setattr(releases, "fulfil", first)
    assert most_released()[0] > 3  # a mutant that charges afterwards


def broken_sequences(mechanism: str) -> int:
    """In how many sequences, interrupted at all lines of a step, the two runs of a learner went on from different
    steps, or with a step that has no noise."""
    line, hit, broken = 0, True, 0
    while hit:
        line, ledger = line + STRIDE, pq.Ledger(100, delta=0.5)
        learner = DPLearned(
            [0.5], loc=0.0, scale=1.0, resolution=0.1, dimension=0, steps=MOST_STEPS, epsilon=0.5, delta=1e-6,
            mechanism=mechanism,
        )  # fmt: skip
        session = Session(learner, [0.5], epsilon=1, ledger=ledger)
        session.step([], DAY)
        found = interrupted(line, lambda session=session: session.step([], DAY))  # type: ignore[misc]
        hit, out = found is not None, 1 + len(getattr(found, "releases", [0] if found is None else []))
        for _ in range(MOST_STEPS):
            runs = session.predictor._runs  # type: ignore[attr-defined]
            counts = {run._sums.count for run in runs} | {session.predictor._taken}  # type: ignore[attr-defined]
            white = [getattr(run._sums, "_white", np.ones(MOST_STEPS))[: run._sums.count] for run in runs]
            whole = len(counts) == 1 and all(np.all(part != 0.0) for part in white)
            try:
                session.step([], DAY)
                out += 1
                broken += not whole
            except REFUSED as error:
                out += len(getattr(error, "releases", []))
        assert ledger._storage._open or out <= len(ledger.entries)  # type: ignore[attr-defined]
    assert line > 100
    return broken


@pytest.mark.parametrize("mechanism", ["square-root", "tree", "tree-refined"])
def test_a_step_interrupted_at_any_line_is_followed_by_whole_ones_or_none(mechanism: str) -> None:
    assert broken_sequences(mechanism) == 0


def test_a_learner_that_forgets_what_is_under_way_goes_on_from_half_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant."""
    monkeypatch.setattr(DPLearned, "_under_way", property(lambda self: False, lambda self, value: None), raising=False)
    assert broken_sequences("tree") > 0


GUESSES: dict[str, Any] = {"loc": 0.0, "scale": 1.0}
PUBLIC: dict[str, Callable[[], Predictor]] = {
    "PubPrev": lambda: PubPrev([0.5], **GUESSES),
    "PubProx": lambda: PubProx([0.5], resolution=0.1, dimension=0, **GUESSES),
    "PubDistribution": lambda: PubDistribution([0.5], dimension=0, **GUESSES),
}


def learnt(thing: Any) -> list[Any]:
    """All numbers that a predictor and what it is made of hold."""
    if isinstance(thing, np.ndarray):
        return [thing.tolist()]
    return [number for part in vars(thing).values() for number in learnt(part)] if hasattr(thing, "__dict__") else []


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_learner_interrupted_at_any_line_has_learnt_all_or_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cocob, "_engine", lambda: cocob.play_round)  # nothing interrupts machine code
    session = Session(PUBLIC[name](), [0.5], epsilon=1, rng=0)
    session.step([], DAY)
    maker = session.predictor.maker([], session._request)
    released = releases.fulfil(maker, releases.promised_column(DAY, maker), releases.Source(0))
    before, after = copy.deepcopy(session.predictor), copy.deepcopy(session.predictor)
    after.note([], maker, released)
    assert learnt(before) != learnt(after)
    line, hit = 0, True
    while hit:
        line, one = line + SHORT_STRIDE, copy.deepcopy(before)
        hit = interrupted(line, lambda one=one: one.note([], maker, released), LEARNERS) is not None  # type: ignore[misc]
        assert learnt(one) in (learnt(before), learnt(after))
    assert learnt(one) == learnt(after)
