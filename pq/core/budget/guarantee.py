"""What a sequence of releases costs a person in total (Section 5.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pq.core.exact import budget_text


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
        total = f"({budget_text(self.epsilon)}, {budget_text(self.delta)})"
        text = f"{total}-differentially private for a person with {who} ({self.adjacency})"
        if not self.learning_epsilon:
            return text
        learning = f"({budget_text(self.learning_epsilon)}, {budget_text(self.learning_delta)}) for learning"
        return f"{text}: {budget_text(self.release_epsilon)} for the release and {learning}"
