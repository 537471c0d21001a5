"""CitiBike: the durations of trips in Jersey City, a data set a day, with calendar and weather (sec:online-details)."""

from __future__ import annotations

import calendar
import csv
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pq.datasets.embedded import check_member
from pq.datasets.features import (
    CENTRAL_PARK,
    WEEKDAYS,
    central_park,
    central_park_features,
    weekday_features,
    year_angle,
)
from pq.datasets.table import Array, DatasetSequence
from pqlab.data.fetch import Remote, fetch, local

BASE = "https://s3.amazonaws.com/tripdata/"
ODD_NAMES = {"201708": "JC-201708 citibike-tripdata.csv.zip", "202207": "JC-202207-citbike-tripdata.csv.zip"}
REPEATED = {"202009": "202010"}  # the archive of the first month repeats trips of the second
FIRST, LAST = date(2015, 9, 1), date(2022, 11, 30)  # the period of the paper
SECONDS_PER = {"minutes": 60.0, "seconds": 1.0}
WEATHER_ADDRESS = (
    "https://www.ncei.noaa.gov/access/services/data/v1?dataset=daily-summaries&stations=USW00094728"
    "&startDate={0}&endDate={1}&units=standard&includeStationName=true&format=csv"
)
SOURCE = (
    "Citi Bike trip histories for Jersey City, https://citibikenyc.com/system-data; weather: NOAA, station USW00094728"
)
LICENCE = "NYCBS Data Use Policy (not to be republished as a data set of its own); the weather is in the public domain"
EPOCH = date(1970, 1, 1).toordinal()

_STAMP = re.compile(r"(\d+)([-/])(\d+)[-/](\d+)[ T](\d+):(\d+)(?::(\d+(?:\.\d+)?))?")


@dataclass(frozen=True)
class Trips:
    """Trips by starting day and duration in seconds, both of shape (n,)."""

    days: npt.NDArray[np.int64]  # since 1970-01-01
    seconds: Array


def read_stamp(text: str) -> tuple[int, float]:
    """A local time stamp as days since 1970-01-01 and seconds since midnight; `year-month-day` or `month/day/year`.

    >>> read_stamp("2018-01-01 02:06:17.5410"), read_stamp("9/21/2015 14:53")
    ((17532, 7577.541), (16699, 53580.0))
    """
    match = _STAMP.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no time stamp")
    a, mark, b, c, hour, minute, second = match.groups()
    year, month, day = (int(a), int(b), int(c)) if mark == "-" else (int(c), int(a), int(b))
    return date(year, month, day).toordinal() - EPOCH, int(hour) * 3600 + int(minute) * 60 + float(second or 0)


def _plain(name: str) -> str:
    return re.sub("[^a-z]", "", name.lower())


def read_trips(lines: Iterable[str]) -> Iterator[tuple[int, float]]:
    """The starting day and the duration in seconds of each trip in a CSV file, in any schema that there has been.

    With a column of durations that is taken, else the end less the start by the clock on the wall: in the night when
    clocks are set back it can be negative. Columns are found by their names, in any case and spacing.
    """
    rows = csv.reader(lines)
    header = [_plain(name) for name in next(rows, [])]
    if "tripduration" in header and "starttime" in header:
        duration, start = header.index("tripduration"), header.index("starttime")
        for row in rows:
            if row:
                yield read_stamp(row[start])[0], float(row[duration])
    elif "startedat" in header and "endedat" in header:
        start, end = header.index("startedat"), header.index("endedat")
        for row in rows:
            if row:
                (day, second), (end_day, end_second) = read_stamp(row[start]), read_stamp(row[end])
                yield day, round((end_day - day) * 86400 + end_second - second, 6)
    else:
        raise ValueError(f"no known schema of trips has the columns {', '.join(header)}")


def read_archive(path: Path) -> Trips:
    """The trips in all CSV files of a monthly archive; what macOS adds to an archive is passed over."""
    trips: list[tuple[int, float]] = []
    with zipfile.ZipFile(path) as archive:
        names = [n for n in archive.namelist() if n.lower().endswith(".csv") and "__MACOSX/" not in n]
        if not names:
            raise ValueError(f"{path} holds no CSV file")
        for name in names:
            with archive.open(name) as file:
                trips.extend(read_trips(io.TextIOWrapper(file, encoding="utf-8-sig", newline=None)))
    days, seconds = zip(*trips, strict=True) if trips else ((), ())
    return Trips(np.array(days, dtype=np.int64), np.array(seconds, dtype=np.float64))


def read_durations(path: Path) -> Trips:
    """The trips in an `.npz` file of arrays `days`, `offsets` and `durations_s`."""
    with np.load(path) as arrays:
        sizes = np.diff(arrays["offsets"])
        return Trips(np.repeat(arrays["days"].astype(np.int64), sizes), arrays["durations_s"].astype(np.float64))


def months(start: date, end: date) -> list[str]:
    """The months from one date to another, both included, as `YYYYMM`.

    >>> months(date(2015, 11, 20), date(2016, 1, 1))
    ['201511', '201512', '201601']
    """
    return [f"{m // 12}{m % 12 + 1:02d}" for m in range(start.year * 12 + start.month - 1, end.year * 12 + end.month)]


def _archives(start: date, end: date, drop_repeats: bool) -> Trips:
    parts = []
    for month in months(start, end):
        name = ODD_NAMES.get(month, f"JC-{month}-citibike-tripdata.csv.zip")
        trips = read_archive(fetch(Remote(BASE + name.replace(" ", "%20"), f"citibike/{name}")))
        if drop_repeats and month in REPEATED:
            year, number = int(REPEATED[month][:4]), int(REPEATED[month][4:])
            first = date(year, number, 1).toordinal() - EPOCH
            last = first + calendar.monthrange(year, number)[1]
            keep = (trips.days < first) | (trips.days >= last)
            trips = Trips(trips.days[keep], trips.seconds[keep])
        parts.append(trips)
    return Trips(np.concatenate([p.days for p in parts]), np.concatenate([p.seconds for p in parts]))


def _by_day(trips: Trips, start: date, end: date, seconds_per_unit: float) -> tuple[list[date], list[Array]]:
    """Every date from start to end with its durations, ascending; empty where there was no trip."""
    order = np.lexsort((trips.seconds, trips.days))
    days, durations = trips.days[order], trips.seconds[order] / seconds_per_unit
    durations.setflags(write=False)
    first, count = start.toordinal() - EPOCH, (end - start).days + 1
    edges = np.searchsorted(days, np.arange(first, first + count + 1))
    dates = [start + timedelta(k) for k in range(count)]
    return dates, [durations[i:j] for i, j in pairwise(edges)]


def _bound(argument: str, value: date | str | None, last: bool) -> date | None:
    if value is None or (isinstance(value, date) and not isinstance(value, datetime)):
        return value
    match = re.fullmatch(r"(\d{4})-(\d{2})(?:-(\d{2}))?", value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{argument} must be a date, 'YYYY-MM-DD' or 'YYYY-MM'; got {value!r}")
    year, month = int(match[1]), int(match[2])
    try:
        return date(year, month, int(match[3]) if match[3] else calendar.monthrange(year, month)[1] if last else 1)
    except ValueError as error:
        raise ValueError(f"{argument} must be a day or month of the calendar, got {value!r}") from error


def _ordered(start: date, end: date) -> tuple[date, date]:
    if start > end:
        raise ValueError(f"start must not be after end, got {start} and {end}")
    return start, end


def _load(start: date | None, end: date | None, drop_repeats: bool, source: str) -> tuple[Trips, date, date, str]:
    path = local(f"citibike/jc_trip_durations{'_dedup' if drop_repeats else ''}.npz") if source != "archives" else None
    if path is not None:
        trips = read_durations(path)
        first, last = (date.fromordinal(int(d) + EPOCH) for d in (trips.days.min(), trips.days.max()))
        if first <= (start or first) and (end or last) <= last:
            return trips, *_ordered(start or first, end or last), path.name
    if source == "prepared":
        raise ValueError(
            "source='prepared' needs citibike/jc_trip_durations.npz in the data folder, and it to cover start to end"
        )
    start, end = _ordered(start or FIRST, end or LAST)
    return _archives(start, end, drop_repeats), start, end, "monthly archives"


def _weather(days: Sequence[date]) -> Array:
    path = local("citibike/centralpark.csv") or local("centralpark.csv")
    if path is None:
        name = f"citibike/centralpark-{days[0]:%Y%m%d}-{days[-1]:%Y%m%d}.csv"
        path = fetch(Remote(WEATHER_ADDRESS.format(days[0], days[-1]), name))
    return central_park_features(days, central_park(path))


def citibike(
    start: date | str | None = None,
    end: date | str | None = None,
    *,
    unit: str = "minutes",
    min_trips: int = 0,
    drop_repeats: bool = True,
    source: str = "auto",
) -> DatasetSequence:
    """The durations of CitiBike trips in Jersey City, one data set for each starting day; downloaded on first use.

    Durations are as recorded: some are negative, some last for months. The 14 public features are seven for the day of
    the week, the sine of the day of the year, and six readings in Central Park: wind speed, rain, snowfall and snow on
    the ground (tens of miles per hour and of inches), highest and lowest temperature (hundreds of degrees Fahrenheit).
    A blank wind speed takes the latest earlier reading.

    Parameters
    ----------
    start, end : first and last day, as a date, "YYYY-MM-DD" or "YYYY-MM". Default: all that the prepared file has, or
        the paper's September 2015 to November 2022 from the archives.
    unit : "minutes" or "seconds".
    min_trips : days with fewer trips are left out; the paper takes 10. Which days are left out is then a fact about
        private data, so this is for the comparison with the paper. By default every day is there, be it empty.
    drop_repeats : leave out the trips of October 2020 that the archive of September 2020 repeats.
    source : "archives" (the monthly files), "prepared" (`citibike/jc_trip_durations.npz` in the data folder, with
        `_dedup` in its name if repeats are dropped), or "auto": prepared if there is one that covers start to end.

    Returns
    -------
    DatasetSequence : in the order of days.

    Raises
    ------
    ValueError : naming `start`, `end`, `unit`, `min_trips` or `source`.
    DataUnavailableError : offline, if a file is not in the data folder; the text tells where to put it.
    """
    check_member("unit", unit, tuple(SECONDS_PER))
    check_member("source", source, ("auto", "archives", "prepared"))
    if min_trips < 0:
        raise ValueError(f"min_trips must be at least 0, got {min_trips!r}")
    trips, first, last, origin = _load(_bound("start", start, False), _bound("end", end, True), drop_repeats, source)
    days, datasets = _by_day(trips, first, last, SECONDS_PER[unit])
    weather = _weather(days)
    angles = np.array([year_angle(day) for day in days])
    features = np.column_stack([weekday_features(days), np.sin(angles), weather])
    kept = [i for i, dataset in enumerate(datasets) if len(dataset) >= min_trips]
    return DatasetSequence(
        tuple(days[i] for i in kept),
        tuple(datasets[i] for i in kept),
        features[kept],
        (*WEEKDAYS, "year_sine", *CENTRAL_PARK),
        name="citibike",
        unit=unit,
        provenance=f"{SOURCE}; read from {origin}",
        licence=LICENCE,
    )
