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
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
OnNan = Literal["drop", "lowest", "highest"]

LARGEST = float(np.finfo(np.float64).max)
REAL_KINDS = "fiub"  # numpy's codes of float, signed, unsigned and boolean types
TEXT_OR_OBJECT_KINDS = "OUST"


def _number(value: Any) -> float:
    """One record of unknown type as a float; whatever is no real number counts as missing, beside any neighbours."""
    if isinstance(value, np.timedelta64) or not isinstance(value, (Real, Decimal, str, bytes, np.bool_)):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # an integer or a fraction beyond the largest float
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]
    except ValueError:  # text that is no number
        return math.nan


def _each(items: Any) -> Array:
    """Records of unknown type, one by one, so that none can change how another is read."""
    return np.array([_number(item) for item in items], dtype=np.float64)


def as_floats(x: Any) -> Array:
    """Any one-dimensional column as float64, without a word about its values; NaN where there is no number.

    Raises `TypeError` for a type that holds no real numbers and `ValueError` for a shape that is no column, naming x.
    """
    if isinstance(x, (str, bytes, dict, set, frozenset)) or x is None:
        raise TypeError(f"x must be a one-dimensional column of numbers, got {type(x).__name__}")
    if len(getattr(x, "shape", (0,))) != 1:
        raise ValueError("x must be one-dimensional")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if isinstance(x, np.ndarray):
            return _from_array(x)
        try:
            values = np.asarray(x)
        except Exception:  # records of different shapes
            return _each(_listed(x))
        if values.ndim == 1 and values.dtype.kind in REAL_KINDS:
            return values.astype(np.float64, copy=False)
        if not hasattr(x, "dtype"):
            return _each(_listed(x))
        if values.dtype.kind in TEXT_OR_OBJECT_KINDS:
            return _each(values.tolist())
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
