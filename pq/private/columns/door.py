"""The door: any column of numbers as sorted finite float64 records (Section 3.1).

Every odd value is dealt with here, record by record, by a rule that looks at nothing but that record, so that one
person's value changes one person's contribution and nothing else: no exception, no warning, no change of shape.

- missing values (NaN, None, masked, an element that is no number): dropped, or counted as the lowest or highest, as
  `on_nan` says;
- infinities: count as the largest finite numbers;
- integers and extended floats: rounded to the nearest float64.

Only what the type of the column says, not its values, can be refused: arrays of text, dates or complex numbers, tables.
"""

from __future__ import annotations

import math
import warnings
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

LARGEST = float(np.finfo(np.float64).max)
REAL_KINDS = "fiub"  # numpy's codes of float, signed, unsigned and boolean types
TEXT_OR_OBJECT_KINDS = "OUST"
FLOAT64 = np.dtype(np.float64)
HEAD = 16  # records that are looked at before all are, to see whether a column is in order


def _number(value: Any) -> float:
    """One record of unknown type as a float; whatever is no real number counts as missing, beside any neighbours."""
    try:
        if isinstance(value, np.timedelta64) or not isinstance(value, (Real, Decimal, str, bytes, np.bool_)):
            return math.nan
        try:
            return float(value)
        except OverflowError:  # an integer or a fraction beyond the largest float
            return math.inf if value > 0 else -math.inf  # type: ignore[operator]
    except Exception:  # text that is no number, an object whose own methods fail
        return math.nan


def is_table(x: Any) -> bool:
    """Whether x is a data frame or a query of whatever engine, by its type alone."""
    return hasattr(type(x), "columns")


def _is_plain(kind: type) -> bool:
    """Whether numpy reads objects of a type as the same numbers whatever stands beside them."""
    return issubclass(kind, (float, int, np.floating, np.integer, np.bool_)) and not issubclass(kind, np.timedelta64)


def _each(items: Any) -> Array:
    """Records of unknown type, one by one, so that none can change how another is read."""
    return np.array([_number(item) for item in items], dtype=np.float64)


def as_floats(x: Any) -> Array:
    """Any one-dimensional column as float64, without a word about its values; NaN where there is no number.

    Raises `TypeError` for a type that holds no real numbers and `ValueError` for a shape that is no column, naming x.
    """
    if type(x) is np.ndarray and x.dtype == FLOAT64 and x.ndim == 1:
        return x
    if isinstance(x, (str, bytes, dict, set, frozenset)) or x is None:
        raise TypeError(f"x must be a one-dimensional column of numbers, got {type(x).__name__}")
    if is_table(x) or len(getattr(x, "shape", (0,))) != 1:
        raise ValueError("x must be one-dimensional")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if isinstance(x, np.ndarray):
            return _from_array(x)
        items = None if hasattr(x, "dtype") or hasattr(x, "__array__") or isinstance(x, range) else _listed(x)
        if items is not None and not all(map(_is_plain, set(map(type, items)))):
            return _each(items)  # numpy reads some objects as numbers when alone and not beside others
        try:
            values = np.asarray(x if items is None else items)
        except Exception:  # records of different shapes
            return _each(_listed(x) if items is None else items)
        if values.ndim == 1 and values.dtype.kind in REAL_KINDS:
            return values.astype(np.float64, copy=False)
        if values.dtype.kind in TEXT_OR_OBJECT_KINDS:
            return _each(values.tolist() if items is None else items)
        raise TypeError("x must be a column of real numbers")


def _from_array(x: npt.NDArray[Any]) -> Array:
    """A numpy array, masked or not, by its declared type."""
    if x.dtype.kind in REAL_KINDS:
        values = x.astype(np.float64, copy=False)
        return np.ma.filled(values, np.nan) if isinstance(x, np.ma.MaskedArray) else values
    if x.dtype.kind == "O":
        return _each(x.tolist())  # masked records become None
    raise TypeError("x must be a column of real numbers")


def _listed(x: Any) -> list[Any]:
    try:
        return list(x)
    except TypeError:
        raise TypeError(f"x must be a one-dimensional column of numbers, got {type(x).__name__}") from None


def sorted_values(x: Any, on_nan: str = "drop") -> Array:
    """The column's records in increasing order, all finite; never the caller's own memory changed."""
    values = as_floats(x)
    known = _known_in_order(values)
    return with_missing(known, len(values) - len(known), on_nan)


def _known_in_order(values: Array) -> Array:
    """The numbers among some records in increasing order, infinities as the largest finite numbers."""
    head = values[:HEAD].tolist()
    if head != sorted(head) or not _in_order(values):
        values = np.sort(values)
        if math.isnan(values.item(-1)):  # NaN comes last
            values = values[: int(np.searchsorted(values, np.nan))]
    if values.size and (values.item(0) < -LARGEST or values.item(-1) > LARGEST):
        values = np.clip(values, -LARGEST, LARGEST)
    return values


def _in_order(values: Array) -> bool:
    """Whether records are sorted and none is missing."""
    return bool((values[1:] >= values[:-1]).all()) and not np.isnan(values[:1]).any()  # NaN compares false


def with_missing(known: Array, missing: int, on_nan: str) -> Array:
    """Sorted records with those that are missing put where `on_nan` says."""
    if missing == 0 or on_nan == "drop":
        return known
    if on_nan == "lowest":
        return np.concatenate([np.full(missing, -LARGEST), known])
    return np.concatenate([known, np.full(missing, LARGEST)])


class SortedColumn:
    """A sensitive column sorted and checked once, for many releases: `pq.release` then takes time logarithmic in n.

    x: (n,) as for `pq.release`. It holds the records: keep it as safe as them. Raises as `pq.release` does for x.

    >>> import pq
    >>> column = pq.SortedColumn([3.0, 1.0, float("nan"), 2.0])
    >>> pq.release(column, [0.5], epsilon=1, priors=pq.Uniform(0, 4), rng=0).values.shape
    (1,)
    """

    def __init__(self, x: Any) -> None:
        values = as_floats(x)
        known = _known_in_order(values)
        self._missing = len(values) - len(known)
        self._known = known.copy() if np.may_share_memory(known, values) else known
        self._known.flags.writeable = False

    def __repr__(self) -> str:
        return "<SortedColumn of sensitive records>"

    def placed(self, on_nan: str) -> Array:
        """The sorted records, those that are missing put where `on_nan` says."""
        return with_missing(self._known, self._missing, on_nan)
