"""A step of private noise that was interrupted is never continued with less noise than promised."""

import copy
import pickle
import sys
from types import FrameType
from typing import Any

import numpy as np
import pytest

import pq
from pq.private.noise import SquareRootAggregator, StepsExceeded, TreeAggregator
from pq.sequential import DPLearned, Session


@pytest.mark.parametrize("kind", [SquareRootAggregator, TreeAggregator])
@pytest.mark.parametrize("name", ["_next", "_noise", "_rounded"])
def test_a_step_that_broke_off_is_never_continued(kind: Any, name: str) -> None:
    sums = kind(8, 1.0, (2,))
    sums.add([0.0, 0.0])

    def interrupt(frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_name == name:
            raise KeyboardInterrupt

    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            sums.add([0.0, 0.0])
    finally:
        sys.settrace(before)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="broke off within a step"):
            sums.add([0.0, 0.0])


def test_a_learner_whose_two_runs_are_at_different_steps_is_never_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"loc": 0, "scale": 1, "resolution": 0.1, "dimension": 0, "epsilon": 1, "delta": 1e-6}
    one = DPLearned([0.5], steps=3, **options)
    day = np.random.default_rng(0).normal(size=50)
    one.learn(np.zeros(0), day)

    def interrupted(gradient: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(one._runs[1], "update", interrupted)
        with pytest.raises(KeyboardInterrupt):
            one.learn(np.zeros(0), day)
    for learner in (one, pickle.loads(pickle.dumps(one))):
        with pytest.raises(RuntimeError, match="broke off within a step"):
            learner.learn(np.zeros(0), day)


def test_a_sequence_that_broke_off_within_a_step_is_charged_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each further step was charged and released, and only then refused."""
    options: dict[str, Any] = {"loc": 0, "scale": 1, "resolution": 0.1, "dimension": 0, "epsilon": 0.5, "delta": 1e-6}
    ledger, day = pq.Ledger(10, delta=0.1), np.random.default_rng(0).normal(size=50)
    session = Session(DPLearned([0.5], steps=5, **options), [0.5], epsilon=1, ledger=ledger)

    def interrupted(gradient: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(session.predictor._runs[1], "update", interrupted)  # type: ignore[attr-defined]
        with pytest.raises(KeyboardInterrupt) as broken:
            session.step([], day)
    assert len(broken.value.releases) == len(ledger.entries) == 1  # type: ignore[attr-defined]
    for one in (session, copy.deepcopy(session)):
        with pytest.raises(RuntimeError, match="broke off within a step") as refused:
            one.step([], day)
        assert not hasattr(refused.value, "releases") and len(ledger.entries) == 1


def test_steps_beyond_the_plan_are_refused_by_name_each_time() -> None:
    sums = TreeAggregator(1, 1.0, (2,))
    sums.add([0.0, 0.0])
    for _ in range(2):
        with pytest.raises(StepsExceeded):
            sums.add([0.0, 0.0])
