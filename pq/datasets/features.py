"""Public features of a day or of a headline (sec:online-details): the calendar, the weather, the letters of a title.

Everything here is a public fact that is known without the private records of the day.
"""

from __future__ import annotations

import csv
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path

import numpy as np

from pq.datasets.table import Array

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
CENTRAL_PARK = ("AWND", "PRCP", "SNOW", "SNWD", "TMAX", "TMIN")
# Miles per hour, inches and degrees Fahrenheit, brought near to one.
CENTRAL_PARK_SCALE = (10.0, 10.0, 10.0, 10.0, 100.0, 100.0)


def year_angle(day: date) -> float:
    """The day of the year as an angle; the length of the year is respected, so that the last day is always 2 pi."""
    length = date(day.year + 1, 1, 1).toordinal() - date(day.year, 1, 1).toordinal()
    return 2.0 * math.pi * (day.timetuple().tm_yday / length)


def weekday_features(days: Iterable[date]) -> Array:
    """One feature for each day of the week, one on that day and zero otherwise: shape (T, 7), Monday first.

    >>> weekday_features([date(2013, 1, 1)])  # a Tuesday
    array([[0., 1., 0., 0., 0., 0., 0.]])
    """
    return np.eye(7)[[day.weekday() for day in days]]


def central_park(path: Path) -> dict[date, tuple[float | None, ...]]:
    """The daily weather in a CSV file of the Central Park station: by date the readings `CENTRAL_PARK`, None if blank.

    Columns are found by their names; the station's name itself holds a comma.
    """
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file)
        missing = sorted({"DATE", *CENTRAL_PARK} - set(rows.fieldnames or ()))
        if missing:
            raise ValueError(f"{path} has no column {', '.join(missing)}")
        return {
            date.fromisoformat(row["DATE"]): tuple(float(row[c]) if row[c].strip() else None for c in CENTRAL_PARK)
            for row in rows
        }


def central_park_features(days: Sequence[date], weather: Mapping[date, tuple[float | None, ...]]) -> Array:
    """The scaled weather of the days, shape (T, 6); a blank takes the latest earlier reading, zero if there is none.

    Raises `ValueError` naming the first of `days` that `weather` lacks altogether.
    """
    absent = [day for day in days if day not in weather]
    if absent:
        raise ValueError(f"the Central Park weather lacks {len(absent)} of the days, the first is {min(absent)}")
    latest = dict.fromkeys(CENTRAL_PARK, 0.0)
    filled: dict[date, list[float]] = {}
    for day in sorted(weather):
        latest.update({c: v for c, v in zip(CENTRAL_PARK, weather[day], strict=True) if v is not None})
        filled[day] = list(latest.values())
    return np.array([filled[day] for day in days], dtype=np.float64).reshape(len(days), 6) / CENTRAL_PARK_SCALE


def title_embedding(title: str, dimension: int = 25) -> Array:
    """A title as a unit vector: a signed bag of its runs of three to five characters, each placed by its CRC-32.

    It needs no word list and gives the same vector on every machine. Zero for a title without a letter or digit.

    >>> title_embedding("Cricket").shape
    (25,)
    >>> float(title_embedding("cricket") @ title_embedding("Cricket!")) > 0.5
    True
    """
    words = "".join(c if c.isalnum() else " " for c in title.lower()).split()
    text = f" {' '.join(words)} "
    vector = np.zeros(dimension)
    for size in (3, 4, 5) if words else ():
        for start in range(len(text) - size + 1):
            code = zlib.crc32(text[start : start + size].encode())
            vector[(code >> 1) % dimension] += 1.0 if code & 1 else -1.0
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector
