"""A predictor whose state is a distribution: sequences that learn distributions (Section 5.3).

What was released so far says where the records of the next day will be: a law that moves with the public features and
widens with what is not known. The day's cells have equal mass under it, mixed with a broad law for the day on which it
is wrong; the noisy counts of these cells are the release, the quantiles are read off what is believed after them, and
that is where the next day begins (`pq.core.tracking`).

*Privacy.* The counts are those of `pq.private.mechanisms.cells.law` with edges that are functions of earlier releases
and public facts: given these, epsilon-DP, with the whole budget of the day. All else is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pq.core.exact import quantile_fractions, whole_number
from pq.core.grid import check_on_grid, is_on_grid
from pq.core.noise import DiscreteLaplace
from pq.core.priors import Cauchy, Mixture, PiecewiseConstant, Prior
from pq.core.priors.arguments import positive, real
from pq.core.request import Request, size_number
from pq.core.scores import Array
from pq.core.tracking import Ahead, Tracker, tracking_rate
from pq.private.mechanisms import Mechanism
from pq.private.mechanisms.cells import Cells
from pq.private.result import Release
from pq.private.sequential.predictors import Predictor, Standardise, robust_share

USUAL_SIZE = 1000.0  # records, if nobody says
BROAD_WEIGHT = 0.15  # of the broad law in the cells
CELLS_PER_SIGNAL, FEWEST_CELLS, MOST_CELLS = 1.25, 8, 64
BIN = 8  # of 1024 equal shares of the law, in a bin of the prior


class PubDistribution(Predictor):
    """Learns the whole distribution of the records from released counts: sharpened by each release, moved by features.

    quantiles: (m,). loc, scale: guesses of where the records lie and how wide, numbers in the unit of the data.
    dimension: number d of features; standardise: public constants for them. robust: a broad prior, mixed in with
    `robust_weight`, so that a break in the series is seen; None for a Cauchy law at the guesses. size_guess: rough
    number of records of a day, never their count; None for a thousand.

    Its releases are by mechanism "cells" and by no other: from their counts it learns, with the exact law of the noise.
    It sees released values only, so it costs no privacy. Raises `TypeError` or `ValueError` naming the argument.

    >>> import pq
    >>> rng = np.random.default_rng(0)
    >>> one = pq.sequential.Session(PubDistribution([0.5], loc=0, scale=1, dimension=0), [0.5], epsilon=0.1, rng=0)
    >>> for day in range(30):
    ...     released = one.step([], rng.normal(5, 2, size=1000))
    >>> bool(abs(released.values[0] - 5) < 0.5)
    True
    """

    released_by = "cells"

    def __init__(
        self,
        quantiles: Any,
        *,
        loc: float,
        scale: float,
        dimension: int,
        standardise: Standardise | None = None,
        robust: Prior | None = None,
        robust_weight: float = BROAD_WEIGHT,
        size_guess: float | None = None,
    ) -> None:
        self.m = len(quantile_fractions(quantiles))
        centre, unit = real(loc, "loc"), positive(scale)
        features = whole_number(dimension, "dimension")
        if robust is not None and not isinstance(robust, Prior):
            raise TypeError(f"robust must be a prior or None, got {type(robust).__name__}")
        size = USUAL_SIZE if size_guess is None else size_number(size_guess)
        self.robust = Cauchy(centre, unit) if robust is None else robust
        self.robust_weight = robust_share(robust_weight)
        self.standardise = Standardise() if standardise is None else standardise
        self._tracker = Tracker(centre, unit, features, size)
        self._beliefs = self._tracker.start()

    def known(self, features: npt.ArrayLike) -> Array:
        """Standardised features with the constant, (d + 1,). Raises `ValueError` naming features."""
        known = self.standardise(np.reshape(features, (-1,)))
        if len(known) != self._tracker.dimension + 1:
            raise ValueError(f"features must be {self._tracker.dimension} numbers, got shape {np.shape(features)}")
        return known

    def check(self, request: Request) -> None:
        """Refuse another mechanism than cells, whose counts it learns from, and budgets too small for them."""
        if request.mechanism != "cells":
            raise ValueError(f"mechanism must be 'cells' for {type(self).__name__}, got {request.mechanism!r}")
        if request.size_guess is not None:
            raise ValueError(f"size_guess must be given to {type(self).__name__} itself, which learns it")
        check_on_grid([self.robust], request.step)
        Cells(request, where="prior")

    def priors(self, features: npt.ArrayLike) -> list[Prior]:
        """The law that is expected of the day's records, for each quantile the same."""
        return [self._law(self._tracker.ahead(self._beliefs, self.known(features), 1.0))] * self.m

    def maker(self, features: npt.ArrayLike, request: Request, before: Mechanism | None = None) -> Mechanism:
        """Cells of equal mass under the expected law, as many as public facts and earlier releases call for; along the
        broad law where the expected one lies beyond the grid, and read without beliefs if beyond the floats."""
        noise = DiscreteLaplace(request.budget / (2 if request.adjacency == "replace" else 1))
        rate = tracking_rate(noise)
        ahead = self._tracker.ahead(self._beliefs, self.known(features), rate)
        number = round(CELLS_PER_SIGNAL * rate * math.sqrt(ahead.size))
        law = self._law(ahead)
        if not is_on_grid(law, request.step):
            law = self.robust
        facts = replace(request, priors=(law,) * len(request.distinct), size_guess=ahead.size)
        number = min(max(number, FEWEST_CELLS), MOST_CELLS)
        return Cells(facts, where="prior", number=number, reader=ahead if ahead.is_known else None)

    def _law(self, ahead: Ahead) -> Prior:
        """The expected law as a prior, with the broad one mixed in; that alone where the floats end."""
        if not ahead.is_known:
            return self.robust
        table = ahead.table()
        edges = np.unique(table[BIN - 1 :: BIN])
        with np.errstate(all="ignore"):
            weights = np.diff(np.interp(edges, table, np.arange(1, 1024)))
            if len(edges) < 2 or not np.all(weights > 0):
                return self.robust
            law = PiecewiseConstant(edges.tolist(), weights.tolist())
        return Mixture((law, self.robust), (1.0 - self.robust_weight, self.robust_weight))

    def observe(self, features: npt.ArrayLike, released: npt.ArrayLike) -> None:
        """Nothing: values alone tell less than the counts that they were read off; see `note`."""

    def note(self, features: npt.ArrayLike, maker: Mechanism, released: Release) -> None:
        """Take the released counts for the beliefs that tomorrow begins with."""
        reader = maker.reader if isinstance(maker, Cells) else None
        if not isinstance(reader, Ahead):
            if isinstance(maker, Cells) and not self._tracker.ahead(self._beliefs, self.known(features), 1.0).is_known:
                return  # there were no beliefs of the day
            raise TypeError("maker must be the one that this predictor gave for the day")
        edges, counts = released.outcome["edges"], released.outcome["counts"]
        self._beliefs = reader.after(np.array(edges), np.array(counts))
