"""What a sequence of releases costs a person in total (Section 5.3; zCDP: Bun and Steinke 2016)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Guarantee:
    """What a sequence of releases costs a person, in total: (epsilon, delta)-differential privacy.

    release_epsilon: budget of one release. learning_epsilon, learning_delta: budget of the predictor's learning, in all
    data sets together. data_sets: number of releases so far. epsilon is infinite where there is no guarantee.
    """

    epsilon: float
    delta: float
    individuals: str
    adjacency: str
    data_sets: int
    release_epsilon: float
    learning_epsilon: float
    learning_delta: float

    def __str__(self) -> str:
        if math.isinf(self.epsilon):
            return "no privacy: the priors were learnt from the records themselves, for comparison only"
        who = "records in one data set only" if self.individuals == "disjoint" else "records in all data sets"
        text = f"({self.epsilon:g}, {self.delta:g})-differentially private for a person with {who} ({self.adjacency})"
        if not self.learning_epsilon:
            return text
        learning = f"({self.learning_epsilon:g}, {self.learning_delta:g}) for learning"
        return f"{text}: {self.release_epsilon:g} for the release and {learning}"


def zcdp_total(epsilon: Fraction | float, count: int, delta: float) -> float:
    """The epsilon, at delta, of that many epsilon-private releases together, by zero-concentrated privacy.

    Each is `epsilon**2 / 2`-zCDP (Bun and Steinke 2016, Prop. 1.4), these add, and `rho`-zCDP is
    `(rho + 2 sqrt(rho log(1 / delta)), delta)`-private (Prop. 1.3). No more than the plain sum.

    >>> zcdp_total(Fraction(1, 10), 100, 1e-6), zcdp_total(Fraction(1, 10), 1, 1e-6)
    (5.756522, 0.1)
    """
    rho = count * float(epsilon) ** 2 / 2.0
    return min(rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta)), float(epsilon * count))
