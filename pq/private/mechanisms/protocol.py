"""What a mechanism is: one file that says how quantiles come out of a column, and with what law.

A mechanism is made from the public facts of a release and holds nothing else. The columns that its methods are given
are asked by rank and by interval. `pq.release`, `pq.log_density` and the audit know nothing more of it than this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from pq.core.request import Request
from pq.private.columns.cells import Lattice, Points
from pq.private.columns.door import Array
from pq.private.columns.part import Near
from pq.private.randomness import Source

LogParts = tuple[Fraction, float]  # see `Mechanism.log_parts`

MECHANISMS: dict[str, type[Mechanism]] = {}


@dataclass(frozen=True)
class Outcome:
    """What a mechanism drew, and nothing else about the data.

    values: (m,) of the distinct quantiles, in increasing order. total: a private count of the records, where the
    mechanism gives one. drawn: all else that came out, by name, as a release keeps it; the values may follow from it.
    Zero has one sign: two would be told apart, and be two outputs with half of the mass each.
    """

    values: Array
    total: int | None = None
    drawn: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", self.values + 0.0)


class Mechanism(ABC):
    """A mechanism made from the public facts of one release.

    A subclass names itself, and so can be asked for: `class Mine(Mechanism, name="mine")`. Its constructor takes a
    `Request` and raises `ValueError` naming the argument that it cannot serve, before data are touched. Its docstring
    says why it is private.

    loads: modules that something on the way to what is drawn imports when it first needs it. Whether it does may depend
    on the records, so a mechanism that is made has imported them. (Priors do the same.)
    """

    name: ClassVar[str]
    loads: ClassVar[tuple[str, ...]] = ("numpy.ma", "numpy.polynomial")  # of np.unique, and of integration
    least_budget: ClassVar[Fraction] = Fraction(0)  # of a record: where there is less, "auto" chooses another
    request: Request

    def __init_subclass__(cls, name: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if name is not None:
            cls.name = name
            MECHANISMS[name] = cls

    def __init__(self, request: Request) -> None:
        for module in self.loads:
            import_module(module)
        self.request = request
        self.origin: Mechanism = self  # that from which this one differs in its priors alone

    def with_priors(self, request: Request) -> Mechanism:
        """The same mechanism for a request that differs in its priors alone."""
        return type(self)(request)

    @property
    def unit(self) -> int:
        """Parts that a record on a grid may be split into."""
        return 1

    @property
    def steps(self) -> tuple[tuple[str, Fraction | float], ...]:
        """What a release does in turn, in words, and what each step spends of the budget of a record."""
        return (("all at once", self.request.budget),)

    @property
    def near(self) -> Near | None:
        """What a release rarely looks beyond; `draw` then takes a `PartOfColumn` too. None if it takes whole columns
        only."""
        return None

    def column(self, values: Array, before: Any) -> Points | Lattice:
        """Sorted records, and how many come before each, as the column that the methods take."""
        step = self.request.step
        return Points(values, before) if step is None else Lattice.of(values, step, before, self.unit)

    @abstractmethod
    def draw(self, column: Points | Lattice, source: Source) -> Outcome:
        """One release."""

    def simulate(self, column: Points | Lattice, source: Source, trials: int) -> Array:
        """The values (trials, distinct quantiles) of independent releases."""
        rows = [self.draw(column, source).values for _ in range(trials)]
        return np.array(rows).reshape(trials, len(self.request.distinct))

    @abstractmethod
    def log_parts(self, column: Points | Lattice, outcome: Outcome) -> LogParts:
        """Exact log density of an outcome as minus an exact number of nats plus a float, so that differences of large
        ones keep their digits."""

    def quantile(self, drawn: Mapping[str, Any], quantiles: Array) -> Array:
        """Values (k,) at any quantiles (k,), from what a release keeps as `outcome`, for nothing; `ValueError` where
        what was drawn does not tell them."""
        raise ValueError(
            f"quantile needs a whole distribution function, which mechanism='cells' releases; mechanism={self.name!r} "
            "tells the quantiles that it was asked for alone: ask for all of them in one call of pq.release"
        )

    def interval(
        self, drawn: Mapping[str, Any], quantiles: Array, level: float, population: bool = False
    ) -> Array | None:
        """Intervals (m, 2) that hold all quantiles (m,) at once with probability at least `level`, whatever the data,
        from what a release keeps as `outcome`; None where the noise does not tell them."""
        return None

    def knots(self, drawn: Mapping[str, Any], values: Array) -> tuple[Array, Array]:
        """Levels and places (k,) of the quantiles that were drawn, from what a release keeps as `outcome` and its
        values (m,); those of all other quantiles are read off between them."""
        return self.request.levels, values

    @property
    @abstractmethod
    def rho(self) -> Fraction | float:
        """The least rho known for which a release is rho-zCDP, for a person with all records that one may own."""
