"""Times of Python, numpy and pandas in seconds, the unit of a column of times (Section 3.1).

Dates and timestamps count from 1970 in Coordinated Universal Time, times of day from midnight. What is finer than a
microsecond is cut off downwards.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MICROSECOND = 1_000_000  # of them a second has that many
EXACT_SECONDS = 2**53 // MICROSECOND  # up to which floats hold all microseconds
EPOCH = dt.datetime(1970, 1, 1)
TICKS = {"D": 86_400, "h": 3_600, "m": 60, "s": 1}  # seconds in a tick of numpy's coarse units
PARTS = {"ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}  # ticks in a second
TIMES = (dt.date, dt.time, dt.timedelta, np.datetime64, np.timedelta64)


def seconds_of(value: Any) -> float:
    """A date, a timestamp, a time of day or a duration, of Python, numpy or pandas, in seconds; a zone is obeyed,
    without one a timestamp is one of UTC. NaN for what is not a time. Raises `TypeError` for any other value.

    >>> seconds_of(dt.date(1970, 1, 2)), seconds_of(dt.time(0, 1)), seconds_of(np.timedelta64(1500, "ms"))
    (86400.0, 60.0, 1.5)
    """
    value = as_ticks(value)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        if not has_length(value.dtype):
            raise TypeError("a duration in months or without a unit has no length in seconds")
        return float(seconds_of_ticks(np.array([value]))[0])
    length = since_start(value)
    return in_seconds(length.days * 86_400 + length.seconds, length.microseconds)


def in_seconds(whole: int, rest: int) -> float:
    """Whole seconds and microseconds, of either sign, as the nearest float, as far as microseconds are exact ones."""
    if abs(whole) < EXACT_SECONDS:
        return (whole * MICROSECOND + rest) / MICROSECOND
    return whole + rest / MICROSECOND


def since_start(value: Any) -> dt.timedelta:
    """A date, a timestamp, a time of day or a duration of Python as the length from where its kind counts, exactly.
    Methods are the builtin classes' own: those of a class derived from these may say something else. Raises `TypeError`
    for any other value."""
    if isinstance(value, dt.datetime):
        is_naive = dt.datetime.tzinfo.__get__(value) is None
        return dt.datetime.__sub__(value, EPOCH if is_naive else EPOCH.replace(tzinfo=dt.UTC))
    if isinstance(value, dt.date):
        return dt.timedelta(dt.date.toordinal(value) - EPOCH.toordinal())
    if isinstance(value, dt.time):
        hours, minutes, seconds, rest = (field.__get__(value) for field in _TIME_FIELDS)
        return dt.timedelta(0, seconds, rest, minutes=minutes, hours=hours)
    if not isinstance(value, dt.timedelta):
        raise TypeError(f"no date, timestamp, time or duration: {type(value).__name__}")
    return dt.timedelta(*(field.__get__(value) for field in _LENGTH_FIELDS))


_TIME_FIELDS: Any = (dt.time.hour, dt.time.minute, dt.time.second, dt.time.microsecond)
_LENGTH_FIELDS: Any = (dt.timedelta.days, dt.timedelta.seconds, dt.timedelta.microseconds)


def as_ticks(value: Any) -> Any:
    """A time of pandas as numpy's, with its nanoseconds, or as no time; any other value as it is."""
    for base in type(value).__mro__:
        if base.__module__.partition(".")[0] == "pandas" and "asm8" in vars(base):
            return vars(base)["asm8"].__get__(value)
    return value


def has_length(dtype: np.dtype[Any]) -> bool:
    """Whether an array of numpy's counts ticks of a known length."""
    if dtype.kind not in "mM":
        return False
    unit, step = np.datetime_data(dtype)
    return step == 1 and (unit in TICKS or unit in PARTS or unit == "W" or (dtype.kind == "M" and unit in "YM"))


def seconds_of_ticks(x: npt.NDArray[Any]) -> Floats:
    """An array of numpy's timestamps or durations in seconds, alike in every unit; NaN where it is not a time."""
    x = x.astype(x.dtype.newbyteorder("="), copy=False)
    unit, missing = np.datetime_data(x.dtype)[0], np.isnat(x)
    if unit in "YMW":  # few enough for the calendar of days
        ticks, unit = np.clip(x.view(np.int64), -(2**31), 2**31).view(x.dtype).astype(f"{x.dtype.kind}8[D]"), "D"
    else:
        ticks = x
    whole = ticks.view(np.int64)
    if unit in TICKS:
        seconds = whole.astype(np.float64) * TICKS[unit]
    else:
        full, part = np.divmod(whole, PARTS[unit])
        coarse = PARTS[unit] <= MICROSECOND
        fine = part * (MICROSECOND // PARTS[unit]) if coarse else part // (PARTS[unit] // MICROSECOND)
        near = np.abs(full) < EXACT_SECONDS  # see `in_seconds`
        exact = (np.where(near, full, 0) * MICROSECOND + fine) / MICROSECOND
        seconds = np.where(near, exact, full + fine / MICROSECOND)
    return np.where(missing, np.nan, seconds)
