"""What the values of a column are, and how they become float64 (Section 3.1).

Dates, timestamps, times of day and durations all count in seconds, so that a duration can be the scale of a prior on
dates, and a day the step of a grid on timestamps. A timestamp is one of Coordinated Universal Time: where its zone
turns back the clock, nothing happens. What is finer than a microsecond is cut off downwards.

Resolution: whole seconds are exact; the nearest float64 of a microsecond stands for that microsecond alone up to
`EXACT_END`, in the year 2242 for timestamps.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from pq.core.exact import is_real
from pq.core.seconds import MICROSECOND, TIMES, Floats, has_length, seconds_of, seconds_of_ticks

DAY = 86_400.0
EXACT_END = 2.0**33  # seconds; beyond, float64 does not tell one microsecond more
YEAR_ONE, YEAR_TEN_THOUSAND = -62_135_596_800.0, 253_402_300_800.0  # seconds; what Python's calendar holds
LONGEST = 9_000_000_000_000.0  # seconds; what 64 bits of microseconds hold, 285,000 years


class Kind(Protocol):
    """What the values of a column are, by its declared type alone; a public fact."""

    @property
    def unit(self) -> str:
        """The unit of the floats, in words."""
        ...

    def to_numbers(self, values: Any) -> Floats:
        """Public values of this kind, or numbers in its unit, as (k,) floats. Raises `TypeError` naming values."""
        ...

    def from_numbers(self, numbers: Any) -> npt.NDArray[Any]:
        """Floats (k,) as the values of this kind that they stand for; never raises, clipped to what the kind holds."""
        ...


@dataclass(frozen=True)
class RealNumber:
    """Real numbers, as they are.

    whole: whether the declared type holds whole numbers only; the numbers are the same kind of thing.

    >>> RealNumber().from_numbers([1.5]).tolist()
    [1.5]
    """

    whole: bool = field(default=False, compare=False, repr=False)

    unit = "1"

    def __str__(self) -> str:
        return "number"

    def to_numbers(self, values: Any) -> Floats:
        return _numbers(values, ())

    def from_numbers(self, numbers: Any) -> npt.NDArray[Any]:
        return np.asarray(numbers, dtype=np.float64)


@dataclass(frozen=True)
class Date:
    """Days of the calendar: the seconds from 1970-01-01 to their beginning. A float stands for the day that it lies in.

    >>> Date().from_numbers(Date().to_numbers([dt.date(2026, 3, 1)]) + 3600.0)
    array(['2026-03-01'], dtype='datetime64[D]')
    """

    unit = "seconds since 1970-01-01"

    def __str__(self) -> str:
        return "date"

    def to_numbers(self, values: Any) -> Floats:
        return _numbers(values, (dt.date, np.datetime64))

    def from_numbers(self, numbers: Any) -> npt.NDArray[Any]:
        known, missing = _clipped(numbers, YEAR_ONE, YEAR_TEN_THOUSAND - DAY)
        return _with_missing(np.floor(known / DAY).astype(np.int64).view("datetime64[D]"), missing)


@dataclass(frozen=True)
class Timestamp:
    """Instants: seconds since 1970-01-01T00:00 in UTC. A float stands for the nearest microsecond.

    zone: name or offset of the zone that values are shown in, such as "Europe/Paris"; None: timestamps without a zone,
        read as if they were UTC. A zone that this machine does not know is shown in UTC.

    >>> Timestamp("Europe/Paris").from_numbers([1e9])[0].isoformat()
    '2001-09-09T03:46:40+02:00'
    """

    zone: str | None = None

    unit = "seconds since 1970-01-01T00:00 UTC"

    def __str__(self) -> str:
        return "timestamp" if self.zone is None else f"timestamp[{self.zone}]"

    def to_numbers(self, values: Any) -> Floats:
        return _numbers(values, (dt.date, np.datetime64))

    def from_numbers(self, numbers: Any) -> npt.NDArray[Any]:
        known, missing = _clipped(numbers, YEAR_ONE, YEAR_TEN_THOUSAND - 1)
        stamps = _with_missing(_microseconds(known).view("datetime64[us]"), missing)
        return stamps if self.zone is None else _objects(map(_shown_in(_zone(self.zone)), stamps.tolist()))


@dataclass(frozen=True)
class Time:
    """Times of day: seconds since midnight. A float stands for the nearest microsecond of that day.

    >>> Time().from_numbers([3600.5, -1.0]).tolist()
    [datetime.time(1, 0, 0, 500000), datetime.time(0, 0)]
    """

    unit = "seconds since midnight"

    def __str__(self) -> str:
        return "time"

    def to_numbers(self, values: Any) -> Floats:
        return _numbers(values, (dt.time,))

    def from_numbers(self, numbers: Any) -> npt.NDArray[Any]:
        known, missing = _clipped(numbers, 0.0, DAY)
        ticks = np.minimum(_microseconds(known), int(DAY) * MICROSECOND - 1)
        stamps = _with_missing(ticks.view("datetime64[us]"), missing)
        return _objects(None if stamp is None else stamp.time() for stamp in stamps.tolist())


@dataclass(frozen=True)
class Duration:
    """Lengths of time in seconds. A float stands for the nearest microsecond.

    >>> Duration().from_numbers([0.25])
    array([250000], dtype='timedelta64[us]')
    """

    unit = "seconds"

    def __str__(self) -> str:
        return "duration"

    def to_numbers(self, values: Any) -> Floats:
        return _numbers(values, (dt.timedelta, np.timedelta64))

    def from_numbers(self, numbers: Any) -> npt.NDArray[Any]:
        known, missing = _clipped(numbers, -LONGEST, LONGEST)
        return _with_missing(_microseconds(known).view("timedelta64[us]"), missing)


NUMBER, WHOLE_NUMBER = RealNumber(), RealNumber(whole=True)
SIMPLE_KINDS: tuple[Kind, ...] = (NUMBER, Date(), Timestamp(), Time(), Duration())


def kind_named(text: str) -> Kind:
    """The kind whose text is given: the inverse of `str`. Raises `ValueError` naming kind.

    >>> kind_named("timestamp[Asia/Tokyo]"), kind_named("date")
    (Timestamp(zone='Asia/Tokyo'), Date())
    """
    for kind in SIMPLE_KINDS:
        if str(kind) == text:
            return kind
    zoned = re.fullmatch(r"timestamp\[(.+)\]", text, re.DOTALL)
    if zoned is None:
        raise ValueError(f"kind must be one of {', '.join(map(str, SIMPLE_KINDS))} or timestamp[zone], got {text!r}")
    return Timestamp(zoned[1])


def shown(values: Any) -> list[str]:
    """Values of a kind of times as texts: ISO 8601 where that says all, durations as Python prints them.

    >>> shown(Date().from_numbers([86400.0]))
    ['1970-01-02']
    """
    items = [value.item() if isinstance(value, np.generic) else value for value in np.asarray(values)]
    return [str(item.isoformat() if hasattr(item, "isoformat") else item) for item in items]


def in_unit(values: Any, name: str) -> Floats:
    """Public values of any shape in the unit of priors: numbers as they are, times of whatever kind in seconds. Raises
    `ValueError` naming the argument for what is neither.

    >>> in_unit([dt.date(1970, 1, 2), 1.5], "x").tolist(), in_unit(np.timedelta64(1, "h"), "x").tolist()
    ([86400.0, 1.5], 3600.0)
    """
    try:
        array = np.asarray(values)
        if kind_of_ticks(array.dtype) is not None:
            return seconds_of_ticks(array)
        if array.dtype.kind in "biuf":
            return array.astype(np.float64)
        if array.dtype.kind in "mMc":
            raise TypeError(f"got {array.dtype}")
        each = [seconds_of(value) if isinstance(value, TIMES) else float(value) for value in array.ravel()]
        return np.array(each).reshape(array.shape)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must hold float64 numbers, or times: {error}") from None


def kind_of_ticks(dtype: np.dtype[Any]) -> Kind | None:
    """What a type of numpy's counts, one tick of a known length at a time: dates, timestamps, durations, or None."""
    if not has_length(dtype):
        return None
    if dtype.kind == "m":
        return Duration()
    return Date() if np.datetime_data(dtype)[0] in "YMWD" else Timestamp()


def _numbers(values: Any, types: tuple[type, ...]) -> Floats:
    """Public values of some types, or real numbers, as floats."""
    listed = values if isinstance(values, Iterable) and not isinstance(values, (str, bytes)) else [values]
    return np.array([_number(value, types) for value in listed], dtype=np.float64)


def _number(value: Any, types: tuple[type, ...]) -> float:
    if types and isinstance(value, types):
        return seconds_of(value)
    if not is_real(value) and not isinstance(value, Decimal):
        raise TypeError(f"values must be numbers or of the column's kind, got {type(value).__name__}")
    return float(value)


def _clipped(numbers: Any, low: float, high: float) -> tuple[Floats, npt.NDArray[np.bool_]]:
    floats = np.asarray(numbers, dtype=np.float64)
    missing = np.isnan(floats)
    return np.clip(np.where(missing, 0.0, floats), low, high), missing


def _microseconds(seconds: Floats) -> npt.NDArray[np.int64]:
    """The nearest whole microseconds; the parts before and after the point go apart, for their product has no float."""
    whole = np.floor(seconds)
    return whole.astype(np.int64) * MICROSECOND + np.rint((seconds - whole) * MICROSECOND).astype(np.int64)


def _with_missing(stamps: npt.NDArray[Any], missing: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    stamps[missing] = np.array("NaT", dtype=stamps.dtype)
    return stamps


def _objects(values: Iterable[Any]) -> npt.NDArray[Any]:
    listed = list(values)
    made = np.empty(len(listed), dtype=object)
    made[:] = listed
    return made


def _zone(name: str) -> dt.tzinfo:
    """A zone by its name or its offset; UTC where neither is understood."""
    offset = re.fullmatch(r"(?:UTC|GMT)?([+-])(\d\d):?(\d\d)", name)
    try:
        if offset is not None:
            minutes = int(offset[2]) * 60 + int(offset[3])
            return dt.timezone(dt.timedelta(minutes=minutes if offset[1] == "+" else -minutes))
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # which of them an unknown name is depends on the machine
        return dt.UTC


def _shown_in(zone: dt.tzinfo) -> Any:
    def shown(stamp: dt.datetime | None) -> dt.datetime | None:
        if stamp is None:
            return None
        try:
            return stamp.replace(tzinfo=dt.UTC).astimezone(zone)
        except OverflowError:  # within a day of the calendar's ends
            return stamp.replace(tzinfo=dt.UTC)

    return shown
