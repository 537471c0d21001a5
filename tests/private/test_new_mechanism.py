"""A new mechanism is one file: here is one, and release, simulation, density and loss know it at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pq
from pq.core.request import Request
from pq.private.columns.cells import Lattice, Points
from pq.private.mechanisms import MECHANISMS, Mechanism, Outcome
from pq.private.randomness import Source

CANDIDATES = (0.0, 1.0, 2.5, 4.0)


class Candidates(Mechanism, name="candidates"):
    """The exponential mechanism on four public values: one more record moves every score by at most one, so that
    weights `exp(epsilon / 2 score)` are epsilon-private."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        if len(request.distinct) != 1:
            raise ValueError("quantiles must be one for candidates")

    def _log_law(self, column: Points | Lattice) -> Any:
        ranks = np.searchsorted(column.values, CANDIDATES)
        scores = -np.abs(ranks - float(self.request.distinct[0] * len(column.values)))
        logs = float(self.request.budget) / 2 * scores
        return logs - np.logaddexp.reduce(logs)

    def draw(self, column: Points | Lattice, source: Source) -> Outcome:
        chosen = np.searchsorted(np.cumsum(np.exp(self._log_law(column)))[:-1], source.uniforms(1)[0])
        return Outcome(np.array([CANDIDATES[int(chosen)]]))

    def log_parts(self, column: Points | Lattice, outcome: Outcome) -> tuple[Fraction, float]:
        o = float(outcome.values[0])
        return Fraction(0), float(self._log_law(column)[CANDIDATES.index(o)]) if o in CANDIDATES else -math.inf

    @property
    def rho(self) -> Fraction:
        return Fraction(self.request.budget) ** 2 / 8


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    yield
    del MECHANISMS["candidates"]


OPTIONS: dict[str, Any] = {"epsilon": 1, "priors": pq.Uniform(0, 4), "mechanism": "candidates"}


def test_it_releases_and_simulates() -> None:
    x = [1.0] * 30 + [2.6] * 30
    result = pq.release(x, [0.5], rng=0, **OPTIONS)
    assert result.mechanism == "candidates" and result.values[0] in CANDIDATES and result.plan is None
    values = pq.simulate(x, [0.5], trials=400, rng=1, **OPTIONS)
    assert values.shape == (400, 1) and np.mean(values == 2.5) > 0.95  # exactly half of the records lie below
    assert pq.Release.from_dict(result.to_dict()).to_dict() == result.to_dict()


def test_its_law_adds_up_and_its_loss_stays_below_epsilon() -> None:
    for x in itertools.product([0.5, 2.0, 3.0], repeat=3):
        total = sum(math.exp(pq.log_density(x, [o], [0.5], **OPTIONS)) for o in CANDIDATES)
        assert total == pytest.approx(1.0, abs=1e-12)
        for o in CANDIDATES:
            assert abs(pq.privacy_loss(x, x[1:], [o], [0.5], **OPTIONS)) <= 1.0 + 1e-12


def test_options_of_the_tree_and_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="arity"):
        pq.release([1.0], [0.5], arity=3, **OPTIONS)
    with pytest.raises(ValueError, match=r"mechanism must be one of 'auto', .*got 'magic'"):
        pq.release([1.0], [0.5], **(OPTIONS | {"mechanism": "magic"}))
    with pytest.raises(ValueError, match="quantiles"):
        pq.release([1.0], [0.25, 0.5], **OPTIONS)
