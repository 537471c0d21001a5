"""What the introduction says of the cost of a step."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pq.learners import TreeAggregator
from proofs_checks.engine.registry import check


class Addend:
    """A number that counts the additions it takes part in."""

    made = 0

    def __init__(self, value: float) -> None:
        self.value = value

    def __add__(self, other: Any) -> Addend:
        Addend.made += 1
        return Addend(self.value + (other.value if isinstance(other, Addend) else other))

    __radd__ = __add__

    def __mul__(self, other: float) -> Addend:
        return Addend(self.value * other)

    __rmul__ = __mul__


def one(value: float) -> Any:
    """A gradient with one coordinate."""
    out = np.empty(1, dtype=object)
    out[0] = Addend(value)
    return out


class _Plain(TreeAggregator):
    """The aggregator on such numbers, with noise that is one."""

    refined = False

    def __init__(self, steps: int) -> None:
        super().__init__(steps, 0.0, (1,), refined=self.refined)

    def _noise(self) -> Any:
        return one(0.0)


class _Refined(_Plain):
    """With Honaker's estimates."""

    refined = True


class _Wasteful(_Plain):
    """Adds nothing, once more."""

    def _next(self, value: Any) -> Any:
        return super()._next(value) + 0.0


@check(
    "text:runtime",
    code=TreeAggregator,
    rejects=[
        (lambda steps: steps.bit_length() - 1, _Plain),
        (lambda steps: steps.bit_length() + 1, _Plain),
        (lambda steps: max(1, math.ceil(math.log2(steps))), _Plain),
        (lambda steps: steps, _Plain),
        (lambda steps: steps.bit_length(), _Refined),
        (lambda steps: steps.bit_length(), _Wasteful),
    ],
)
def check_step_cost(
    subject: tuple[Callable[[int], int], type[_Plain]] = (lambda steps: steps.bit_length(), _Plain),
) -> str:
    """A learner's step costs at most log2 T + 1 additions a coordinate, counted by the numbers that are added, and as
    much memory: t has at most that many trailing zeros and ones in binary together, and powers of two have just so
    many."""
    most, aggregator = subject
    for steps in (*range(1, 130), 1000):
        tree, total, costs = aggregator(steps), 0.0, []
        for t in range(steps):
            Addend.made, total = 0, total + t - 1.0
            assert tree._next(one(t - 1.0))[0].value == total
            costs.append(Addend.made)
            assert len(tree._waiting) <= most(steps)
        assert max(costs) == most(steps) == math.floor(math.log2(steps)) + 1, steps
    for steps in (1, 2, 3, 64, 100):
        tree, costs = _Refined(steps), []
        for _ in range(steps):
            Addend.made = 0
            tree._next(one(1.0))
            costs.append(Addend.made)
        assert max(costs) == 4 * math.floor(math.log2(steps)) + 1, "as the row says"
    return "sequential learning: at most log2 T + 1 additions a coordinate and step, and as many nodes in memory"
