"""What a release is asked to do: checked public arguments, and the walk down the tree (`alg:quantiles`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

from pq.core.choices import Adaptation, MechanismName, OnNan, check_choice
from pq.core.grid import grid_step
from pq.core.plan import PLAIN, Node, Plan, forget_plans, plain_key, plan_for
from pq.core.priors import Cauchy, HalfCauchy, Laplace, Normal, Prior, Uniform
from pq.private.columns.cells import Column, Lattice, Points
from pq.private.columns.frames import records_of
from pq.private.fast.encode import Tables, encode
from pq.private.mechanisms.exponential import Law, target_rank

Interval = tuple[float, float, float, float]  # low, high, and the shares of the records at low and at high


@dataclass(frozen=True)
class Request:
    """The public arguments of a release, checked before any data are touched."""

    plan: Plan
    priors: tuple[Prior, ...]  # of each distinct quantile
    adaptation: str
    step: Fraction | None
    on_nan: str
    max_contributions: int

    @classmethod
    def of(
        cls,
        quantiles: Any,
        *,
        epsilon: Any,
        priors: Any,
        adaptation: str,
        grid: Any,
        on_nan: str,
        max_contributions: Any,
        adjacency: Any,
        calibration: Any,
        arity: Any,
        budget_power: Any,
        mechanism: Any = "tree",
    ) -> Request:
        """Check public arguments; calls with the same plain ones and one prior share a request."""
        check_choice(mechanism, MechanismName, "mechanism")
        tree = quantiles, epsilon, max_contributions, adjacency, calibration, arity, budget_power
        key = plain_key(*tree) if type(priors) in SIMPLE and (grid is None or type(grid) in PLAIN) else None
        if key is None or type(adaptation) is not str or type(on_nan) is not str:
            return _checked(priors, adaptation, grid, on_nan, *tree)
        return _kept(priors, adaptation, grid, on_nan, *key)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What a `pq.Release` says besides its values."""
        plan, people = self.plan, self.max_contributions
        return {
            "quantiles": plan.quantile_values,
            "epsilon": plan.epsilon_value if people == 1 else float(plan.epsilon * people),
            "max_contributions": people,
            "adjacency": plan.adjacency,
            "calibration": plan.calibration,
            "adaptation": self.adaptation,
            "grid": None if self.step is None else float(self.step),
            "priors": self.priors if plan.order is None else tuple(self.priors[i] for i in plan.positions),
            "plan": plan,
        }

    @cached_property
    def tables(self) -> Tables | None:
        """The priors for compiled code; None where it does not do one of them."""
        return encode(self.priors)

    def column(self, x: Any) -> Points | Lattice:
        values, before = records_of(x, self.on_nan)
        return Points(values, before) if self.step is None else Lattice.of(values, self.step, before)

    def laws(self, column: Column, node: Node, interval: Interval) -> list[Law]:
        """The laws of a node's mechanisms, given the earlier outputs that bound it."""
        view = column.view(*interval)
        edge = self.adaptation == "edge"
        return [
            Law(
                column,
                view,
                *interval[:2],
                self.priors[i],
                target_rank(m.relative, view.n, self.plan.calibration),
                m.rate,
                edge,
            )
            for i, m in ((i, self.plan.mechanisms[i]) for i in node.indices)
        ]

    @property
    def tie_share(self) -> float:
        """Part of a record at an output that goes on to the node on either side: half on a lattice, if not floored."""
        return 0.5 if self.step is not None and self.plan.calibration == "sharp" else 0.0

    def walk(self, column: Column, decide: Callable[[Node, list[Law]], list[float]]) -> None:
        """Visit the nodes from the root down; `decide` gives a node's sorted outputs in the column's units."""
        pending: list[tuple[Node, Interval]] = [(self.plan.root, (-math.inf, math.inf, 0.0, 0.0))]
        while pending:
            node, interval = pending.pop()
            outputs = decide(node, self.laws(column, node, interval))
            parts = split(interval, outputs, self.tie_share)
            pending += [(child, part) for child, part in zip(node.children, parts, strict=False) if child is not None]


def _checked(priors: Any, adaptation: str, grid: Any, on_nan: str, *tree: Any) -> Request:
    plan = plan_for(*tree)
    check_choice(adaptation, Adaptation, "adaptation")
    check_choice(on_nan, OnNan, "on_nan")
    chosen = _distinct_priors(priors, plan)
    return Request(plan, chosen, adaptation, grid_step(grid, chosen), on_nan, int(tree[2]))


SIMPLE = frozenset((Uniform, Cauchy, HalfCauchy, Laplace, Normal))


@lru_cache(maxsize=256, typed=True)
def _kept(priors: Any, adaptation: str, grid: Any, on_nan: str, kind: type, *tree: Any) -> Request:
    return _checked(priors, adaptation, grid, on_nan, *tree)


def forget() -> None:
    """Make all requests and plans anew: for tests that change the table of sensitivities."""
    _kept.cache_clear()
    forget_plans()


def split(interval: Interval, outputs: Sequence[float], tie_share: float) -> list[Interval]:
    """The intervals between a node's sorted outputs, with the shares of the records at each end that they hold.

    A record at an output leaves `tie_share` of its weight in the node to the interval below that output and as much to
    the one above; intervals of no width hold no records. So the weights of a record in all parts sum to at most its
    weight in the node.
    """
    low, high, low_share, high_share = interval

    def weight(o: float) -> float:
        return low_share if o == low else high_share if o == high else 1.0

    bounds = (low, *outputs, high)
    below = (low_share, *(tie_share * weight(o) for o in outputs))
    above = (*(tie_share * weight(o) for o in outputs), high_share)
    return list(zip(bounds[:-1], bounds[1:], below, above, strict=True))


def _distinct_priors(priors: Any, plan: Plan) -> tuple[Prior, ...]:
    """One prior for each distinct quantile of a plan, from one prior or one per quantile in the caller's order."""
    if isinstance(priors, Prior):
        return (priors,) * len(plan.distinct)
    m, each = len(plan.quantiles), priors
    if not isinstance(each, Sequence) or not all(isinstance(prior, Prior) for prior in each):
        raise TypeError(
            "priors must be a prior of pq (pq.from_scipy wraps a scipy.stats distribution) or a sequence of them"
        )
    if len(each) != m:
        raise ValueError(f"priors must be one prior or one per quantile: got {len(each)} for {m} quantiles")
    chosen: dict[int, Prior] = {}
    for position, prior in zip(plan.positions, each, strict=True):
        if chosen.setdefault(position, prior) != prior:
            raise ValueError(f"priors must agree where quantiles repeat: {plan.distinct[position]} has two")
    return tuple(chosen[i] for i in range(len(plan.distinct)))
