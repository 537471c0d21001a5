"""One record of unknown type as a float, by a rule that looks at nothing but that record (Section 3.1)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from pq.core.seconds import TIMES, seconds_of
from pq.private.columns.text import PLAIN_CELLS


def number_of(value: Any) -> float:
    """A record as a float; NaN, a missing record, for whatever is none, beside any neighbours.

    Real numbers, booleans and decimals are themselves, those beyond the floats infinite; dates, timestamps, times and
    durations count in seconds; text is read by the plain rule for cells. A scalar of pyarrow, an array without
    dimensions and a row of one element, as a cursor gives it, stand for what is in them.

    >>> import datetime as dt
    >>> number_of(dt.date(1970, 1, 2)), number_of(("2.5",)), number_of([1.0])
    (86400.0, 2.5, nan)
    """
    try:
        if isinstance(value, TIMES):
            return seconds_of(value)
        if isinstance(value, (Real, Decimal, np.bool_)):
            return _real(value)
        if isinstance(value, (str, bytes)):
            return PLAIN_CELLS.read(value if isinstance(value, str) else value.decode("latin-1"))
        inner = content_of(value)
        return math.nan if inner is value else number_of(inner)
    except Exception:  # an object whose own methods fail; who interrupts or ends the process is obeyed, whoever it is
        return math.nan


def each(items: Iterable[Any]) -> npt.NDArray[np.float64]:
    """Records of unknown type, one by one, so that none can change how another is read."""
    return np.array([number_of(item) for item in items], dtype=np.float64)


def _real(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer or a fraction beyond the largest float
        return math.inf if value > 0 else -math.inf


def content_of(value: Any) -> Any:
    """What a wrapper of one value holds; the value itself if it is no wrapper. A time of day of pyarrow to the
    microsecond: Python has none finer."""
    if isinstance(value, tuple) and len(value) == 1:
        return value[0]
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return value[()]
    if type(value).__module__.startswith("pyarrow.") and hasattr(value, "as_py"):
        return value.as_py()
    return value
