"""What the introduction says of the cost of a step."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pq.learners import TreeAggregator
from proofs_checks.engine.registry import check


@check("text:runtime", code=TreeAggregator, rejects=[lambda steps: steps.bit_length() - 1, lambda steps: steps])
def check_step_cost(subject: Callable[[int], int] = lambda steps: steps.bit_length()) -> str:
    """A learner's step costs at most log2 T + 1 additions a coordinate, and as much memory: nodes of one sum."""
    for steps in (1, 2, 7, 64, 1000):
        assert max(t.bit_count() for t in range(1, steps + 1)) <= subject(steps)
        assert subject(steps) <= math.floor(math.log2(steps)) + 1
    tree = TreeAggregator(50, 0.0, (3,), np.random.default_rng(0))
    total = np.zeros(3)
    for t in range(50):
        value = np.array([1.0, t, -t])
        total += value
        assert np.allclose(tree.add(value), total)
    return "sequential learning: at most log2 T + 1 additions a coordinate and step, and as many nodes in memory"
