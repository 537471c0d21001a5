"""The two shapes of a data set: a table of values and counts, and a sequence of data sets with public features.

The multiset of values is all that a quantile needs, so a column is kept as its distinct values and how often each
occurs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


def frozen(values: npt.ArrayLike, dtype: Any = np.float64) -> npt.NDArray[Any]:
    """A read-only copy of the values in the given type."""
    array = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class Table:
    """A column of numbers as its distinct values, ascending, and how many records hold each.

    Wherever an array of records is expected a `Table` can be given: NumPy expands it (`np.asarray(table)`).

    values: (k,) distinct finite values, strictly ascending.
    counts: (k,) records that hold each value, positive integers.
    name, unit: what the column is and in what it is measured.
    provenance, licence: where the column comes from, and the terms that its source states.

    Raises `ValueError` naming `values` or `counts`, if they do not describe a column.

    >>> table = Table([1.5, 2.0], [1, 3], name="two values")
    >>> len(table), table.to_array()
    (4, array([1.5, 2. , 2. , 2. ]))
    """

    values: Array
    counts: Counts
    name: str = ""
    unit: str = ""
    provenance: str = field(default="", repr=False)
    licence: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        values, counts = frozen(self.values), frozen(self.counts, np.int64)
        if values.ndim != 1 or not np.all(np.isfinite(values)) or not np.all(values[1:] > values[:-1]):
            raise ValueError("values must be a one-dimensional array of finite numbers, strictly ascending")
        if counts.shape != values.shape or not np.all(counts > 0):
            raise ValueError("counts must hold one positive integer for each of the values")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "counts", counts)

    @classmethod
    def from_records(cls, records: npt.ArrayLike, **facts: str) -> Table:
        """The table of a column that is given record by record.

        >>> Table.from_records([2, 1, 2]).counts
        array([1, 2])
        """
        values, counts = np.unique(np.asarray(records, dtype=np.float64), return_counts=True)
        return cls(values, counts.astype(np.int64), **facts)

    def __len__(self) -> int:
        return int(self.counts.sum())

    def to_array(self) -> Array:
        """All records, ascending, as a new array of shape (n,)."""
        return np.repeat(self.values, self.counts)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("copy=False cannot be met: a table is expanded into a new array")
        records = self.to_array()
        return records if dtype is None else records.astype(dtype, copy=False)

    def __repr__(self) -> str:
        return f"<Table {self.name}: {len(self)} records, {len(self.values)} values>"


@dataclass(frozen=True, eq=False)
class DatasetSequence:
    """Data sets that arrive one after another, each with a vector of public features known before it.

    Iterating gives the pairs `(features, dataset)` in order.

    days: (T,) the date of each data set, or its number where the data are made up.
    datasets: (T,) one-dimensional float64 arrays, each ascending; a lazy sequence where all would not fit in memory.
    features: (T, d) public facts only, scaled to lie within similar ranges.
    feature_names: (d,) what each feature is.
    name, unit, provenance, licence: as in `Table`.

    >>> flights = DatasetSequence([1, 2], [np.zeros(3), np.ones(2)], [[0.5], [0.25]], ["rain"], name="two days")
    >>> [(float(rain), len(dataset)) for (rain,), dataset in flights]
    [(0.5, 3), (0.25, 2)]
    """

    days: Sequence[date] | Sequence[int]
    datasets: Sequence[Array]
    features: Array
    feature_names: Sequence[str]
    name: str = ""
    unit: str = ""
    provenance: str = field(default="", repr=False)
    licence: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        features = frozen(self.features)
        names = tuple(self.feature_names)
        if len(self.days) != len(self.datasets):
            raise ValueError(f"datasets must be one for each of the {len(self.days)} days, got {len(self.datasets)}")
        if features.shape != (len(self.days), len(names)):
            raise ValueError(f"features must have shape {(len(self.days), len(names))}, got {features.shape}")
        if not np.all(np.isfinite(features)):
            raise ValueError("features must be finite")
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "feature_names", names)

    def __len__(self) -> int:
        return len(self.days)

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        return iter(zip(self.features, self.datasets, strict=True))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {len(self)} data sets, {len(self.feature_names)} features>"
