"""Mechanisms that claim epsilon-differential privacy and do not give it; an audit must find each of them.

Every one differs from `pq.release` in a single respect that is known from published code. Most are trees with one thing
changed, for `pq.truth.audit.losses.TreeLosses`; `WholeData` is no such tree and offers its own log density.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

import pq
from pq.core.plan import Plan, Share
from pq.private.mechanisms.independent import Law
from pq.private.mechanisms.tree import Tree


class WholeData:
    """The prior is restricted to the interval between earlier outputs, but the ranks are those of all the data.

    One record then shifts the ranks of every node, so the losses of all nodes add up, not those of one path. One
    quantile a node, real outputs.
    """

    def __init__(self, quantiles: Any, *, priors: pq.Prior, **keywords: Any) -> None:
        self.plan, self.prior = pq.plan(quantiles, **keywords), priors

    def log_density(self, x: Any, values: Any) -> Any:
        total, records = np.zeros(len(x)), np.sum(np.isfinite(x), axis=1)
        infinite = np.full((len(x), 1), math.inf)
        outputs = np.concatenate([values, infinite, -infinite], axis=1)  # by `low` and `high`, -1 for none
        for node in self.plan.nodes:
            (i,) = node.indices
            o, low = values[:, [i]], outputs[:, [node.low]]
            high = values[:, [node.high]] if node.high >= 0 else infinite
            edges = np.clip(np.concatenate([low, x, high], axis=1), low, high)
            targets = np.array([math.floor(self.plan.distinct[i] * int(n)) for n in records])[:, None]
            ranks = np.minimum(np.arange(x.shape[1] + 1), records[:, None])
            rate = self.plan.mechanisms[i].rate
            logs = self.prior.log_mass(edges[:, :-1], edges[:, 1:]) - rate * np.abs(ranks - targets)
            with np.errstate(invalid="ignore"):
                own = self.prior.log_density(o) - rate * np.abs(np.sum(x < o, axis=1, keepdims=True) - targets)
                total += (own[:, 0] - np.logaddexp.reduce(logs, axis=1)) * ((low <= o) & (o <= high))[:, 0]
        return np.where(np.isnan(total), -math.inf, total)

    def promised(self) -> Fraction:
        """The ratio that its worst case comes arbitrarily close to: the sum of all nodes' budgets over epsilon."""
        return sum((Fraction(node.epsilon) for node in self.plan.nodes), Fraction(0)) / Fraction(self.plan.epsilon)


class _BrokenPlan(Plan):
    """A plan whose mechanisms have other rates."""

    @classmethod
    def of(cls, plan: Plan, rate: Callable[[Share], float]) -> _BrokenPlan:
        broken = cls(**plan.__getstate__())
        vars(broken)["mechanisms"] = tuple(replace(share, rate=rate(share)) for share in plan.mechanisms)
        return broken


class CeilLogLevels(Tree):
    """A level's budget is epsilon / ceil(log2 m), one level too few where m is a power of two."""

    def __init__(self, request: Any) -> None:
        super().__init__(request)
        level = float(self.plan.epsilon) / math.ceil(math.log2(len(self.plan.distinct)))
        self.plan = _BrokenPlan.of(self.plan, lambda share: level / (2.0 * float(share.sensitivity)))


class HalvedSensitivity(Tree):
    """The utility's sensitivity is taken to be half of what it is."""

    def __init__(self, request: Any) -> None:
        super().__init__(request)
        self.plan = _BrokenPlan.of(self.plan, lambda share: 2.0 * share.rate)


class TiesOnBothSides(Tree):
    """All of a record at an output goes on to the nodes on both sides."""

    def __init__(self, request: Any) -> None:
        super().__init__(request)
        self.halves = 2


class _TellingLaw(Law):
    """A law that returns the midpoint of a bounded interval without records."""

    @property
    def fallback(self) -> float | None:
        middle = (self.low + self.high) / 2.0
        return middle if self.view.n == 0 and math.isfinite(middle) else super().fallback


class MidpointOfNothing(Tree):
    """A bounded interval without records returns its midpoint, which tells that it is empty; for the formulas only."""

    def laws(self, *arguments: Any) -> list[Law]:
        return [_TellingLaw(**vars(law)) for law in super().laws(*arguments)]
