"""What a column in memory is declared to be, and how its records become float64 (Section 3.1).

The declared type alone decides: two columns of one type are read, or refused, alike, whatever they hold. Where a type
leaves it to the data (objects, lists) the records are read one by one. The types are in `pq.private.columns.dtypes`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pq.core.kind import Kind
from pq.core.seconds import seconds_of_ticks

Array = npt.NDArray[np.float64]

Grouping = Literal["number", "value", "none"]

UNREADABLE = (
    "x must be a column or a query that can be read to its end; its own message is kept back, since it may show records"
)


@dataclass(frozen=True)
class Declared:
    """A declared type: its `kind`, how a column of it is read as floats (NaN for missing records), and what an engine
    may group equal records by before they are: the "number" that they are cast to, the "value" itself, or "none".

    pieces: a column of it as arrays of real numbers of any type that take no memory of their own, if that can be.
    ticks: a column of times as an array of numpy's, in a unit that cuts nothing off."""

    kind: Kind
    read: Callable[[Any], Array]
    grouping: Grouping = "value"
    pieces: Callable[[Any], list[npt.NDArray[Any]]] | None = None
    ticks: Callable[[Any], npt.NDArray[Any]] | None = None

    @classmethod
    def of_times(cls, kind: Kind, ticks: Callable[[Any], npt.NDArray[Any]]) -> Declared:
        """Times, whose floats are those of their ticks."""
        return cls(kind, lambda x: seconds_of_ticks(ticks(x)), ticks=ticks)

    def within(self, content: Callable[[Any], Any], grouping: Grouping = "none") -> Declared:
        """The type of a column that holds one of this type, which `content` takes out."""
        ticks = self.ticks
        taken = None if ticks is None else lambda x: ticks(content(x))
        return Declared(self.kind, lambda x: self.read(content(x)), grouping, ticks=taken)

    def of(self, x: Any) -> tuple[Kind, Callable[[], Array], Callable[[], list[npt.NDArray[Any]]] | None]:
        """The kind, and what reads x as such a column and its pieces; a container that fails says nothing of x."""
        pieces = None if self.pieces is None else partial(running(self._plain_pieces), x)
        return self.kind, partial(running(self.records), x), pieces

    def records(self, x: Any) -> Array:
        """The records of a column as one plain array: what a class derived from numpy's makes of comparing them, as one
        for quantities with a unit does, may fail for some records and not for others."""
        return plain_column(self.read(x))

    def _plain_pieces(self, x: Any) -> list[npt.NDArray[Any]]:
        assert self.pieces is not None
        return [*map(plain_column, self.pieces(x))]


def plain_column(values: Any) -> npt.NDArray[Any]:
    plain = np.asarray(values)
    if plain.ndim != 1:
        raise ValueError("records must be one after another")
    return plain


def refused(what: str) -> TypeError:
    """The error for a column whose declared type, named by `what`, holds no records that a release can read."""
    return TypeError(f"x must be a column of real numbers, dates, timestamps, times or durations, got {what}")


def running(fetch: Callable[..., Any]) -> Callable[..., Any]:
    """An engine's or a container's own work. That it does not fail is a public promise of whoever hands it over; where
    it does, as on a text that a query takes for a number, one fixed sentence tells no record."""

    def run(*arguments: Any) -> Any:
        try:
            return fetch(*arguments)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException:  # polars panics with what is no Exception
            pass  # raised below, where the engine's own error is not its context
        raise RuntimeError(UNREADABLE)

    return run
