"""The columns of the experiments with public data, and what is guessed about each (Section 5.2, Appendix C.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pq
import pqlab.data
from pq.datasets.table import Table


@dataclass(frozen=True)
class Source:
    """A column of two populations, and what is guessed about it before any record is seen (Appendix C.2).

    first, second: the tables. held_out: whether a part of the first is kept from the public and mixed with the second.
    loc, scale: the guesses nu and sigma. high: the end b of the uniform prior's interval for a quantile; it starts at
    low. resolution: the step of the values.
    """

    label: str
    unit: str
    first: Callable[[], Table]
    second: Callable[[], Table]
    held_out: bool
    loc: float
    scale: float
    low: float
    high: Callable[[Fraction], float]
    resolution: float

    def guesses(self) -> tuple[float, float, float]:
        return self.loc, self.scale, self.resolution


def _pair(loader: Callable[..., Table], first: str, second: str, column: str) -> tuple[Any, Any]:
    return lambda: loader(first, column, without=second), lambda: loader(second, column)


def _adult(column: str) -> tuple[Any, Any]:
    return lambda: pq.datasets.adult("train", column), lambda: pq.datasets.adult("test", column)


def _ratings(label: str, loader: Callable[..., Table]) -> Source:
    pair = _pair(loader, "history", "poetry", "average_rating")
    return Source(label, "stars", *pair, True, 2.5, 0.5, 0.0, lambda q: 5.0, 0.01)


def _pages(label: str, loader: Callable[..., Table]) -> Source:
    pair = _pair(loader, "history", "poetry", "num_pages")
    return Source(label, "pages", *pair, True, 200.0, 25.0, 0.0, lambda q: 1000.0 / float(1 - q), 1.0)


SOURCES: dict[str, Source] = {
    "adult_age": Source("Adult age", "years", *_adult("age"), False, 40.0, 5.0, 10.0, lambda q: 120.0, 1.0),
    "adult_hours": Source(
        "Adult hours", "hours", *_adult("hours_per_week"), False, 40.0, 2.0, 0.0, lambda q: 168.0, 1.0,
    ),
    # The paper's guesses for books, on a scale to ten and with two pages a minute.
    "movies_rating": Source(
        "Film rating", "points", *_pair(pq.datasets.movies, "Drama", "Documentary", "rating"),
        True, 5.0, 1.0, 0.0, lambda q: 10.0, 0.1,
    ),
    "movies_length": Source(
        "Film length", "minutes", *_pair(pq.datasets.movies, "Drama", "Documentary", "length"),
        True, 100.0, 12.5, 0.0, lambda q: 500.0 / float(1 - q), 1.0,
    ),
    "goodreads_rating": _ratings("Goodreads rating", pqlab.data.goodreads),
    "goodreads_pages": _pages("Goodreads pages", pqlab.data.goodreads),
    "goodreads11k_rating": _ratings("Rating of 11,000 books", pqlab.data.goodreads11k),
    "goodreads11k_pages": _pages("Pages of 11,000 books", pqlab.data.goodreads11k),
}  # fmt: skip
