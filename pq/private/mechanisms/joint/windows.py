"""Which ways to place joint outputs may have a small score (Section 3.2).

If output j has c records below, S(o, nu) >= |c - nu q_j| + |(n - c) - nu (1 - q_j)|, which is at most a reach R exactly
if |n - nu| <= R and c is within R/2 of nu q_j + (n - nu)/2: a window of R ranks. A group of outputs in one cell has
counts of zero inside, which score nu times their shares. So whatever leaves the windows scores more than R. With a and
b the two signed distances above, c - n q_j = (1 - q_j) a - q_j b, so for every total |c - n q_j| <= max(q_j, 1 - q_j)
S.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pq.private.columns.door import Array
from pq.private.columns.part import PartOfColumn, Unknown
from pq.private.mechanisms.joint.chain import CellChain, ChainCells, Records, Span, forward
from pq.private.mechanisms.joint.plan import JointPlan
from pq.private.mechanisms.joint.totals import Totals


def nearest_total(plan: JointPlan, n: float) -> float:
    """The total on the public grid that is nearest to n; n itself where the plan says so."""
    return n if plan.total == "records" else float(np.rint(n / plan.total_unit)) * plan.total_unit


def totals_within(plan: JointPlan, n: float, reach: float) -> Totals:
    """All totals of the public grid within a reach of n."""
    if plan.total == "records":
        return Totals(1, 1, n)
    unit = plan.total_unit
    first = max(math.ceil((n - reach) / unit), 0)
    return Totals(first, max(math.floor((n + reach) / unit) + 1 - first, 0), unit)


def windows(plan: JointPlan, n: float, total: float, reach: float) -> list[Span]:
    """The ranks below each output in ways to place the outputs that score at most `reach` for a total."""
    middles = total * plan.levels + 0.5 * (n - total)
    return [(middle - 0.5 * reach, middle + 0.5 * reach) for middle in middles.tolist()]


def wide_windows(plan: JointPlan, n: float, reach: float) -> list[Span]:
    """The ranks below each output in ways to place the outputs that score at most `reach` for any total."""
    half = wide_reaches(plan.levels, reach)
    return list(zip((n * plan.levels - half).tolist(), (n * plan.levels + half).tolist(), strict=True))


def wide_reaches(levels: Array, reach: float) -> Array:
    """The ranks (k,) to either side of each output's own that `wide_windows` hold."""
    return np.asarray(reach * np.maximum(levels, 1.0 - levels))


def check_windows(plan: JointPlan, part: PartOfColumn, reach: float) -> None:
    """Raises `Unknown` unless all that a reach can look at is known: the wide windows hold those of every total."""
    if math.isinf(reach):
        raise Unknown(everything=True)
    low, high = np.transpose(wide_windows(plan, float(part.n), reach))
    part.check_ranks(low - 1.0, high + 1.0)


@dataclass(frozen=True)
class WeighedWays:
    """Which ways to place outputs are weighed: those inside the windows of a reach.

    is_wide: whether these are the same for all totals; else each total has its own.
    """

    reach: float
    is_wide: bool

    def spans(self, plan: JointPlan, n: float, total: float) -> list[Span]:
        """The ranks below each output."""
        return wide_windows(plan, n, self.reach) if self.is_wide else windows(plan, n, total, self.reach)

    @property
    def group_reach(self) -> float:
        """The longest stretch of a group of outputs in one cell, in records of score."""
        return math.inf if self.is_wide else self.reach


NO_WAYS = WeighedWays(-math.inf, False)


def chain_within(
    plan: JointPlan, cells: ChainCells, n: float, total: float, ways: WeighedWays, bent_at: float | None = None
) -> CellChain:
    """The chain of all ways that are weighed. bent_at: see `chain.forward`."""
    low, high = np.array(ways.spans(plan, n, total)).T
    allowed = (cells.rank >= low[:, None]) & (cells.rank <= high[:, None])
    return forward(plan, cells, total, n, allowed, ways.group_reach, bent_at)


def is_weighed(plan: JointPlan, records: Records, outputs: Array, total: float, ways: WeighedWays) -> bool:
    """Whether outputs are among the ways of `chain_within`, which must be asked for this total."""
    n = records.n
    cell = np.searchsorted(records.values, outputs, side="left")
    same = (np.diff(cell) == 0) & (np.diff(np.searchsorted(plan.cuts, outputs, side="left")) == 0)
    low, high = np.array(ways.spans(plan, n, total)).T
    rank = records.rank(cell)
    if not np.all((rank >= low) & (rank <= high)):
        return False
    first = 0
    for j in range(1, plan.size):
        first = first if same[j - 1] else j
        inner = total * (plan.levels[j] - plan.levels[first])
        if inner + abs(n - total + inner) > ways.group_reach:
            return False
    return True


def counts_between(records: Records, outputs: Array) -> Array:
    """Weights (k + 1,) of the records below, between and above sorted outputs."""
    below = records.rank(np.searchsorted(records.values, outputs, side="left"))
    return np.diff(np.concatenate([[0.0], below, [records.n]]))
