"""Mechanisms that claim epsilon-differential privacy and do not give it; an audit must find each of them.

Every one differs from `pq.release` in a single respect that is known from published code, and offers its log density to
`pq.truth.audit.report.audit`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from pq.truth.audit.density import TreeDensity


class WholeData(TreeDensity):
    """The prior is restricted to the interval between earlier outputs, but the ranks are those of all the data.

    One record then shifts the ranks of every node, so the losses of all nodes add up, not those of one path.
    """

    def __init__(self, quantiles: Any, **keywords: Any) -> None:
        super().__init__(quantiles, **keywords)
        self.relative = list(self.plan.distinct)

    def weights(self, records: Any, interval: Any) -> Any:
        return np.isfinite(records).astype(np.float64)

    def promised(self) -> Fraction:
        """The ratio that its worst case comes arbitrarily close to: the sum of all nodes' budgets over epsilon."""
        return sum((Fraction(node.epsilon) for node in self.plan.nodes), Fraction(0)) / Fraction(self.plan.epsilon)


class CeilLogLevels(TreeDensity):
    """A level's budget is epsilon / ceil(log2 m), one level too few where m is a power of two."""

    def __init__(self, quantiles: Any, **keywords: Any) -> None:
        super().__init__(quantiles, **keywords)
        levels = math.ceil(math.log2(len(self.plan.distinct)))
        self.rates = [float(self.plan.epsilon) / levels / (2.0 * float(m.sensitivity)) for m in self.plan.mechanisms]


class HalvedSensitivity(TreeDensity):
    """The utility's sensitivity is taken to be half of what it is."""

    def __init__(self, quantiles: Any, **keywords: Any) -> None:
        super().__init__(quantiles, **keywords)
        self.rates = [2.0 * rate for rate in self.rates]


class TiesOnBothSides(TreeDensity):
    """All of a record at an output goes on to the nodes on both sides."""

    def __init__(self, quantiles: Any, **keywords: Any) -> None:
        super().__init__(quantiles, **keywords)
        self.tie_share = 1.0


class MidpointOfNothing(TreeDensity):
    """A bounded interval without records returns its midpoint, which tells that it is empty."""

    def _log_node(self, node: Any, records: Any, outputs: Any, interval: Any) -> Any:
        usual = super()._log_node(node, records, outputs, interval)
        middle = (interval[0] + interval[1]) / 2.0
        decided = (np.sum(self.weights(records, interval), axis=1) == 0.0) & np.isfinite(middle)
        exact = np.where(np.all(outputs == middle[:, None], axis=1), 0.0, -np.inf)
        return np.where(decided, exact, usual)
