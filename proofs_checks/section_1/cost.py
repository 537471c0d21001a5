"""What the introduction says of the cost of a step."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pq.learners import TreeAggregator
from proofs_checks.engine.registry import check


class Counted(TreeAggregator):
    """Notes the additions a coordinate of each step: blocks that are joined, the noise, and the sum of what waits."""

    def _next(self, value: Any) -> Any:
        before = set(self._waiting)
        found = super()._next(value)
        self.__dict__.setdefault("costs", []).append(len(before - set(self._waiting)) + 1 + len(self._waiting) - 1)
        return found


@check(
    "text:runtime",
    code=TreeAggregator,
    rejects=[
        lambda steps: steps.bit_length() - 1,
        lambda steps: steps.bit_length() + 1,
        lambda steps: max(1, math.ceil(math.log2(steps))),
        lambda steps: steps,
    ],
)
def check_step_cost(subject: Callable[[int], int] = lambda steps: steps.bit_length()) -> str:
    """A learner's step costs at most log2 T + 1 additions a coordinate, counted in the aggregator, and as much memory:
    t has at most that many trailing zeros and ones in binary together, and powers of two have just so many."""
    for steps in (*range(1, 130), 1000):
        tree, total = Counted(steps, 0.0, (3,), np.random.default_rng(0)), np.zeros(3)
        for t in range(steps):
            value = np.array([1.0, t, -t])
            total += value
            assert np.allclose(tree.add(value), total)
            assert len(tree._waiting) <= subject(steps)
        assert max(tree.__dict__["costs"]) == subject(steps) == math.floor(math.log2(steps)) + 1, steps
    return "sequential learning: at most log2 T + 1 additions a coordinate and step, and as many nodes in memory"
