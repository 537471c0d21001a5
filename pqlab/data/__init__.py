"""Data sets of the paper that must be downloaded (Section 5).

Downloaded on first use into the data folder (`PQ_DATA`, see `pqlab.data.fetch`); the project holds none of them:

- `goodreads`: ratings and pages of books by genre. UCSD Book Graph, for academic use only, not to be republished.
- `citibike`: durations of trips in Jersey City by day, with the weather in Central Park. NYCBS Data Use Policy; the
  weather, by NOAA, is in the public domain.
- `bbc`: Flesch reading ease of comments on BBC articles in Reddit's worldnews. ConvoKit; no licence is stated.

`goodreads11k` and `worldnews_weekly` read smaller files of the same kinds if those lie in the data folder.
"""

from pqlab.data.books import goodreads, goodreads11k
from pqlab.data.fetch import DataUnavailableError
from pqlab.data.trips import citibike
from pqlab.data.worldnews import bbc, worldnews_weekly

__all__ = ["DataUnavailableError", "bbc", "citibike", "goodreads", "goodreads11k", "worldnews_weekly"]
