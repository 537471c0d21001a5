"""A stream of data sets and the loss of histogram priors on it, for the pages on private learning (Section 4.3).

A prior is a histogram of cells of equal width; a data set is fifty records of a normal distribution; three quartiles
are released. Truth ring, like all experiments.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

import pq
from pq import learners, losses
from pqlab.experiments.static import stream

Array = npt.NDArray[np.float64]
LEVELS = (0.25, 0.5, 0.75)
RECORDS = 50
TARGETS = [pq.rank(q, RECORDS) for q in LEVELS]


@dataclass(frozen=True)
class HistogramTask:
    """A stream, and what a learner of histograms needs to know of it.

    horizon: data sets. cells: pieces of a prior over [-4, 4]. epsilon: budget of each mechanism of a release, in nats.
    robustness: every piece has at least robustness / cells of the mass.
    """

    horizon: int
    cells: int
    epsilon: float
    robustness: float
    seed: int

    @property
    def edges(self) -> Array:
        """(cells + 1,) ends of the pieces."""
        return np.linspace(-4, 4, self.cells + 1)

    @property
    def start(self) -> Array:
        """(m, cells) uniform priors."""
        return np.full((len(LEVELS), self.cells), 1 / self.cells)

    @cached_property
    def data(self) -> Array:
        """(horizon, RECORDS) records."""
        return stream(self.seed, "stream").normal(size=(self.horizon, RECORDS))

    @cached_property
    def scores(self) -> Array:
        """(horizon, m, cells) mean scores of the mechanisms in each piece."""
        return np.array([self.scores_of(x) for x in self.data])

    def scores_of(self, x: Array) -> Array:
        """(m, cells) mean scores of a data set."""
        return np.exp(losses.log_scores(np.sort(x), self.edges, TARGETS, [self.epsilon] * len(LEVELS)))

    @cached_property
    def best(self) -> tuple[Array, float, float]:
        """Robust weights (m, cells) of nearly least mean loss, that loss, and how far above the least it can be."""
        learner = learners.EntropicMirror(self.start, step=0.5, robustness=self.robustness)
        for _ in range(1000):
            value, gradient = self.mean_loss(learner.point)
            slack = self.slack(learner.point, gradient)
            if slack < 1e-4:
                break
            learner.update(gradient)
        return learner.point, float(value), slack

    def mean_loss(self, weights: Array) -> tuple[float, Array]:
        """Mean loss of weights (m, cells) over the stream, in nats, and its gradient (m, cells)."""
        value, gradient = loss_and_gradient(weights[None], self.scores)
        return float(value.mean()), gradient.mean(axis=0)

    def slack(self, weights: Array, gradient: Array) -> float:
        """How much better than the weights a robust prior can be, at most: the loss is convex."""
        least = self.robustness / self.cells * gradient.sum(axis=-1) + (1 - self.robustness) * gradient.min(axis=-1)
        return float(np.sum(gradient * weights) - least.sum())


def loss_and_gradient(weights: Array, score: Array) -> tuple[Any, Array]:
    """Loss (...) in nats and gradient (..., m, cells) at weights (..., m, cells), for one data set's scores."""
    inner = np.sum(score * weights, axis=-1)
    inverse = 1 / inner
    total = inverse.sum(axis=-1)
    return np.log(total), -(inverse / total[..., None] / inner)[..., None] * score
