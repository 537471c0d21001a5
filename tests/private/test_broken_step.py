"""A step of private noise that was interrupted is never continued with less noise than promised."""

import sys
from types import FrameType
from typing import Any

import pytest

from pq.private.noise import SquareRootAggregator, TreeAggregator


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
