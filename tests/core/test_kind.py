"""A kind's values become floats and come back as they came; any float becomes a value of the kind."""

from __future__ import annotations

import datetime as dt
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pq.core.kind import EXACT_END, Date, Duration, Kind, RealNumber, Time, Timestamp, kind_named
from pq.core.seconds import has_length, seconds_of_ticks

in_range = st.integers(int(-EXACT_END) * 10**6, int(EXACT_END) * 10**6)


@given(st.lists(in_range, max_size=5))
def test_a_microsecond_comes_back_as_it_came(microseconds: list[int]) -> None:
    x = np.array(microseconds, dtype=np.int64)
    kinds: tuple[tuple[Kind, str], ...] = ((Timestamp(), "M8[us]"), (Duration(), "m8[us]"))
    for kind, dtype in kinds:
        numbers = kind.to_numbers(x.view(dtype))
        assert kind.from_numbers(numbers).dtype == dtype
        assert kind.from_numbers(numbers).view(np.int64).tolist() == microseconds


@given(st.dates(), st.times(), st.datetimes(timezones=st.timezones() | st.none()))
def test_public_values_of_python_come_back_as_they_came(day: dt.date, time: dt.time, stamp: dt.datetime) -> None:
    assert Date().from_numbers(Date().to_numbers([day])).tolist() == [day]
    assert Time().from_numbers(Time().to_numbers([time])).tolist() == [time]
    near_now = stamp.replace(year=1800 + stamp.year % 440, month=3)
    shown = Timestamp("UTC").from_numbers(Timestamp().to_numbers([near_now]))[0]
    assert shown == (near_now if near_now.tzinfo else near_now.replace(tzinfo=dt.UTC))


@pytest.mark.parametrize(
    "kind",
    [RealNumber(), Date(), Timestamp(), Timestamp("Asia/Tokyo"), Timestamp("a\n]b"), Time(), Duration()],
    ids=repr,
)
def test_any_float_becomes_a_value_of_the_kind(kind: Kind) -> None:
    floats = [math.nan, math.inf, -math.inf, 1e308, -1e308, 0.0, -0.5, 86399.9999999, 5e-324, 1e12, -1e13]
    values = kind.from_numbers(np.array(floats))
    assert len(values) == len(floats)
    assert kind.from_numbers([]).tolist() == []
    assert kind_named(str(kind)) == kind
    assert [str(value) for value in values] == [str(kind.from_numbers([number])[0]) for number in floats]
    if isinstance(kind, (Date, Timestamp)):
        years = [value.year for value in values.tolist() if value is not None]
        assert min(years) == 1 and max(years) == 9999 and len(years) == len(floats) - 1


def test_public_values_of_another_kind_are_refused() -> None:
    day, length = dt.date(2020, 1, 1), dt.timedelta(1)
    wrong: list[tuple[Kind, Any]] = [
        (RealNumber(), [day]),
        (Date(), [length]),
        (Time(), ["12:00"]),
        (Duration(), [day]),
        (Timestamp(), [True]),
    ]
    for kind, values in wrong:
        with pytest.raises(TypeError, match=r"^values must"):
            kind.to_numbers(values)
    with pytest.raises(ValueError, match=r"^kind must"):
        kind_named("timestamp[")
    assert Duration().to_numbers(dt.timedelta(1)).tolist() == [86400.0]
    assert Date().to_numbers([3.5]).tolist() == [3.5]


def test_a_zone_that_is_not_known_is_shown_in_universal_time() -> None:
    for name, offset in (("Nowhere/Land", 0), ("+02:00", 7200), ("UTC-05:30", -19800), ("+99:99", 0)):
        shown = Timestamp(name).from_numbers([1e9])[0]
        assert shown.timestamp() == 1e9 and shown.utcoffset() == dt.timedelta(seconds=offset)


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps"])
@pytest.mark.parametrize("kind", ["M8", "m8"])
def test_times_of_either_order_of_bytes_are_the_same(kind: str, unit: str) -> None:
    """Big-endian years, months and weeks were read as other times."""
    ticks = np.array([0, 1, -1, 601, -45, 20_000, np.iinfo(np.int64).min]).astype(f"{kind}[{unit}]")
    if has_length(ticks.dtype):
        swapped = seconds_of_ticks(ticks.astype(ticks.dtype.newbyteorder(">")))
        np.testing.assert_array_equal(swapped, seconds_of_ticks(ticks))
        np.testing.assert_allclose(swapped, expected(ticks), rtol=1e-12, atol=1e-15)


def expected(ticks: Any) -> Any:
    """In seconds, one by one, by numpy's own calendar."""
    coarse = ticks.astype(
        f"{ticks.dtype.kind}8[s]" if np.datetime_data(ticks.dtype)[0] in {*"YMWDhms"} else ticks.dtype
    )
    size = {"ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12}.get(np.datetime_data(coarse.dtype)[0], 1)
    exact = [Fraction(int(one.astype(np.int64)), size) for one in coarse]
    cut = [Fraction(math.floor(one * 10**6), 10**6) for one in exact]
    return [np.nan if np.isnat(one) else float(value) for one, value in zip(coarse, cut, strict=True)]
