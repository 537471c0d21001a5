"""A sensitive column, sorted once, as the mechanisms see it: cells of outputs that no record separates (Section 3.1).

Every odd value is dealt with here, record by record, by a rule that looks at nothing but that record, so that one person's value
changes one person's contribution and nothing else: no exception, no warning, no change of shape.

- missing values (NaN, None, masked, what is no number): dropped, or counted as the lowest or highest, as `on_nan` says;
- infinities: count as the largest finite numbers;
- integers and extended floats: rounded to the nearest float64;
- with a grid: rounded to the nearest multiple of the step.

Only what the type of the column says, not its values, can be refused: text, dates, complex numbers, tables.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from pq.exact import decimal_fraction

Array = npt.NDArray[np.float64]
OnNan = Literal["drop", "lowest", "highest"]

LARGEST = float(np.finfo(np.float64).max)
LATTICE_END = 2.0**53  # beyond it, neighbouring multiples of the step are no longer told apart


def _number(value: Any) -> float:
    """A single record of unknown type as a float; whatever is no number counts as missing."""
    try:
        return float(value)
    except Exception:  # any failure of a record's own conversion is a fact about that record only
        return float("nan")


def as_floats(x: Any) -> Array:
    """Any one-dimensional column as float64, without a word about its values; NaN where there is no number.

    Raises `TypeError` for a type that holds no real numbers and `ValueError` for a shape that is no column, naming x.
    """
    if isinstance(x, np.ma.MaskedArray):
        x = x.astype(np.float64).filled(np.nan)
    if isinstance(x, (str, bytes, dict, set, frozenset)) or x is None:
        raise TypeError(f"x must be a one-dimensional column of numbers, got {type(x).__name__}")
    typed = x if hasattr(x, "dtype") else None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            values = np.asarray(x) if typed is not None else np.asarray(x, dtype=np.float64)
        except Exception:  # some record of an untyped sequence is no number
            values = _as_objects(x)
        if values.ndim != 1:
            raise ValueError("x must be one-dimensional")
        if values.dtype.kind in "fiub":
            return values.astype(np.float64, copy=False)
        if values.dtype.kind == "O":
            return np.fromiter((_number(v) for v in values), dtype=np.float64, count=len(values))
    raise TypeError(f"x must be a column of real numbers, got dtype {values.dtype}")


def _as_objects(x: Any) -> npt.NDArray[Any]:
    try:
        items = list(x)
    except TypeError:
        raise TypeError(f"x must be a one-dimensional column of numbers, got {type(x).__name__}") from None
    values = np.empty(len(items), dtype=object)
    values[:] = items
    return values


def sorted_values(x: Any, on_nan: str = "drop") -> Array:
    """The column's records in increasing order, all finite; never the caller's own memory changed."""
    values = as_floats(x)
    n = len(values)
    in_order = n > 0 and not np.isnan(values[0]) and bool(np.all(values[1:] >= values[:-1]))  # NaN compares false
    if not in_order:
        values = np.sort(values)  # NaN comes last
        known = int(np.searchsorted(values, np.nan))
        values, missing = values[:known], n - known
        if missing and on_nan != "drop":
            filled = np.full(missing, -LARGEST if on_nan == "lowest" else LARGEST)
            values = np.sort(np.concatenate([values, filled]))
    if len(values) and not (np.isfinite(values[0]) and np.isfinite(values[-1])):
        values = np.clip(values, -LARGEST, LARGEST)
    return values


class Column(Protocol):
    """What a mechanism may ask of a column.

    A node's records are those strictly inside its interval; `inside` finds them as a slice start..stop of the column and `count`
    counts them. Its *cells*, numbered from 0 to `last_cell`, are sets of outputs that have the same records below. `cells` gives
    the edges (c + 1,) of cells first..last, in the units of the data, and the smallest and largest rank (c,) that their outputs
    stand for; `ends` are the outermost edges. `cell_at` is the cell of a rank, `ranks_of` the ranks of one output.

    Outputs are in the column's own units; `output` brings a value of the data's units into them, and `edges_of` gives the interval
    of such values that become an output in [low, high].
    """

    step: Fraction | None

    def inside(self, low: float, high: float) -> tuple[int, int]: ...
    def count(self, start: int, stop: int) -> int: ...
    def last_cell(self, start: int, stop: int) -> int: ...
    def cell_at(self, start: int, stop: int, rank: float) -> int: ...
    def cells(
        self, start: int, stop: int, first: int, last: int, ends: tuple[float, float]
    ) -> tuple[Array, Array, Array]: ...
    def ranks_of(self, start: int, stop: int, o: float) -> tuple[int, int]: ...
    def output(self, o: float) -> float: ...
    def edges_of(self, low: float, high: float) -> tuple[float, float]: ...


def _inside(values: Array, low: float, high: float) -> tuple[int, int]:
    """Slice of the sorted values that lie strictly between two outputs."""
    start = int(np.searchsorted(values, low, side="right"))
    return start, max(start, int(np.searchsorted(values, high, side="left")))


@dataclass(frozen=True)
class Points:
    """A column whose outputs are real numbers: the cells are `(x_k, x_{k+1}]`, and ties make cells of no width."""

    values: Array
    step: None = None

    def inside(self, low: float, high: float) -> tuple[int, int]:
        return _inside(self.values, low, high)

    def count(self, start: int, stop: int) -> int:
        return stop - start

    def last_cell(self, start: int, stop: int) -> int:
        return stop - start

    def cell_at(self, start: int, stop: int, rank: float) -> int:
        return int(min(max(rank, 0.0), float(stop - start)))

    def cells(
        self, start: int, stop: int, first: int, last: int, ends: tuple[float, float]
    ) -> tuple[Array, Array, Array]:
        edges = np.empty(last - first + 2)
        left, right = int(first == 0), int(last == stop - start)
        edges[left : len(edges) - right] = self.values[start + first - 1 + left : start + last + 1 - right]
        if left:
            edges[0] = ends[0]
        if right:
            edges[-1] = ends[1]
        ranks = np.arange(first, last + 1, dtype=np.float64)
        return edges, ranks, ranks

    def ranks_of(self, start: int, stop: int, o: float) -> tuple[int, int]:
        k = int(np.searchsorted(self.values[start:stop], o, side="left"))
        return k, k

    def output(self, o: float) -> float:
        return o

    def edges_of(self, low: float, high: float) -> tuple[float, float]:
        return low, high


@dataclass(frozen=True)
class Lattice:
    """A column whose outputs are the multiples of a step; values and outputs are in units of the step.

    The cells alternate: a run of multiples that no record holds, then one multiple that some do, and so on. A held value stands
    for all ranks from the records below it to those at or below it.
    """

    values: Array  # distinct
    before: npt.NDArray[np.int64]  # records before each value, and n
    step: Fraction

    @classmethod
    def of(cls, values: Array, step: Fraction) -> Lattice:
        units = np.clip(np.rint(to_units(values, step)), -LATTICE_END, LATTICE_END)
        is_first = np.empty(len(units), dtype=bool)
        is_first[:1] = True
        np.not_equal(units[1:], units[:-1], out=is_first[1:])
        starts = np.flatnonzero(is_first)
        return cls(units[starts], np.append(starts, len(units)), step)

    def inside(self, low: float, high: float) -> tuple[int, int]:
        return _inside(self.values, low, high)

    def count(self, start: int, stop: int) -> int:
        return int(self.before[stop] - self.before[start])

    def last_cell(self, start: int, stop: int) -> int:
        return 2 * (stop - start)

    def cell_at(self, start: int, stop: int, rank: float) -> int:
        run = np.searchsorted(self.before[start : stop + 1], self.before[start] + rank, side="right") - 1
        return 2 * max(0, int(run))

    def cells(
        self, start: int, stop: int, first: int, last: int, ends: tuple[float, float]
    ) -> tuple[Array, Array, Array]:
        one, other = first // 2, (last + 1) // 2  # build runs one..other and the values held between them, then trim
        held = self.values[start + one : start + other]
        edges = np.empty(2 * len(held) + 2)
        edges[1:-1:2] = held - 0.5
        edges[2:-1:2] = held + 0.5
        edges[0] = self.values[start + one - 1] + 0.5 if one > 0 else -np.inf
        edges[-1] = self.values[start + other] - 0.5 if start + other < stop else np.inf
        edges = from_units(edges, self.step)
        edges[0], edges[-1] = max(edges[0], ends[0]), min(edges[-1], ends[1])
        ranks = (self.before[start + one : start + other + 1] - self.before[start]).astype(np.float64)
        low = np.repeat(ranks, 2)[:-1]  # a run stands for one rank, a held value for all from its run's to the next one's
        high = low.copy()
        high[1::2] = ranks[1:]
        skip, keep = first - 2 * one, last - 2 * one + 1
        return edges[skip : keep + 1], low[skip:keep], high[skip:keep]

    def ranks_of(self, start: int, stop: int, o: float) -> tuple[int, int]:
        held = self.values[start:stop]
        first, last = (start + np.searchsorted(held, o, side=side) for side in ("left", "right"))
        return int(self.before[first] - self.before[start]), int(self.before[last] - self.before[start])

    def output(self, o: float) -> float:
        return float(np.clip(np.rint(to_units(o, self.step)), -LATTICE_END, LATTICE_END))

    def edges_of(self, low: float, high: float) -> tuple[float, float]:
        return from_units(low - 0.5, self.step), from_units(high + 0.5, self.step)


def to_units(values: Any, step: Fraction) -> Any:
    """Values in units of the step, not yet rounded."""
    return values * float(step.denominator) / float(step.numerator)


def from_units(units: Any, step: Fraction) -> Any:
    """Multiples of the step as the float64 nearest to their decimal value: 3 units of 0.1 are 0.3."""
    return units * float(step.numerator) / float(step.denominator)


def grid_step(grid: Any) -> Fraction | None:
    """The step of a public output grid as an exact rational, or None; raises naming grid."""
    if grid is None:
        return None
    step = decimal_fraction(grid, "grid")
    if step <= 0:
        raise ValueError(f"grid must be positive, got {grid}")
    return step
