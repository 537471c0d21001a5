"""The door: any column of numbers as sorted finite float64 records (Section 3.1).

Every odd value is dealt with here, record by record, by a rule that looks at nothing but that record, so that one
person's value changes one person's contribution and nothing else: no exception, no warning, no change of shape.

- missing values (NaN, None, masked, what is no number): dropped, or counted as the lowest or highest, as `on_nan` says;
- infinities: count as the largest finite numbers;
- integers and extended floats: rounded to the nearest float64.

Only what the type of the column says, not its values, can be refused: text, dates, complex numbers, tables.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
OnNan = Literal["drop", "lowest", "highest"]

LARGEST = float(np.finfo(np.float64).max)


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
        x = np.ma.filled(x.astype(np.float64), np.nan)
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
