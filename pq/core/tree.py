"""The tree of `alg:quantiles` over distinct quantiles, with exact budgets (Section 3.2).

The budgets follow `thm:kary`, `epsilon_bar / k^p` at depth `k`, with two corrections. The algorithm itself divides a
node's budget by its number of quantiles, so `epsilon_bar` must not be divided by `arity - 1` once more (that spends too
little). And the number of levels is `ceil(log_arity(m + 1))`: with `ceil(log2 m)`, as `lem:empirical-quantiles` has it,
m = 1 divides by zero and m = 2 spends twice the claim. A node takes its share of what is left for the levels of its own
branch, so that the last one takes all of it: the budgets of *every* root-to-leaf path sum to epsilon, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache


@dataclass(frozen=True)
class Node:
    """One call of the recursion: the distinct quantiles that it estimates from the same points.

    `indices` point into `Plan.distinct`, in increasing order of quantile; `low` and `high` are the indices whose
    estimates bound the node's interval, -1 for none; `children`, one more than `indices`, is empty at a leaf and holds
    None for an empty branch.
    """

    depth: int
    indices: tuple[int, ...]
    low: int
    high: int
    epsilon: Fraction | float  # of the whole node; each of its mechanisms spends an equal share
    children: tuple[Node | None, ...] = ()

    def walk(self) -> Iterator[Node]:
        """This node and all below it, parents first."""
        yield self
        for child in self.children:
            if child is not None:
                yield from child.walk()


def _height(m: int, arity: int) -> int:
    """Levels that `m` quantiles need, `ceil(log_arity(m + 1))`, in integer arithmetic."""
    levels, capacity = 0, 1
    while capacity < m + 1:
        levels, capacity = levels + 1, capacity * arity
    return levels


def _weight(depth: int, power: Fraction) -> Fraction:
    """The share `depth^-power` as a rational; irrational powers are rounded, the shares still add up exactly."""
    if power.denominator == 1:
        return Fraction(1, depth**power.numerator)
    return Fraction(float(depth) ** -float(power))


@lru_cache(maxsize=1024)
def _share(budget: Fraction, depth: int, levels: int, power: Fraction) -> Fraction:
    """What a node with so many levels from its own down takes of a budget; of most nodes on a level it is the same."""
    return budget * _weight(depth, power) / sum(_weight(level, power) for level in range(depth, depth + levels))


def build_tree(
    start: int, stop: int, low: int, high: int, depth: int, budget: Fraction | float, arity: int, power: Fraction
) -> Node | None:
    """The subtree over the distinct quantiles start..stop-1, with `budget` left for each of its paths
    (`alg:quantiles`)."""
    m = stop - start
    if m == 0:
        return None
    share = _share(budget, depth, _height(m, arity), power) if isinstance(budget, Fraction) else budget
    if m < arity:
        return Node(depth, tuple(range(start, stop)), low, high, share)
    indices = tuple(start - 1 + -(-part * m // arity) for part in range(1, arity))
    bounds = (low, *indices, high)
    starts = (start, *(i + 1 for i in indices))
    stops = (*indices, stop)
    rest = budget - share if isinstance(budget, Fraction) else budget
    children = tuple(
        build_tree(starts[c], stops[c], bounds[c], bounds[c + 1], depth + 1, rest, arity, power) for c in range(arity)
    )
    return Node(depth, indices, low, high, share, children)
