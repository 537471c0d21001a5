"""Goodreads: the mean rating and the number of pages of the books of a genre (Section 5, public-private release)."""

from __future__ import annotations

import csv
import gzip
import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from pq.datasets.embedded import check_member
from pq.datasets.table import Table
from pqlab.data.fetch import DataUnavailableError, Remote, data_folder, fetch, local

BASE = "https://mcauleylab.ucsd.edu/public_datasets/gdrive/goodreads/byGenre/"
FILES = {"history": "goodreads_books_history_biography.json.gz", "poetry": "goodreads_books_poetry.json.gz"}
COLUMNS = {"average_rating": "stars", "num_pages": "pages"}
SMALL_FILE = "goodreads/goodreads11k_genres.csv.gz"
SOURCE = (
    "UCSD Book Graph (M. Wan and J. McAuley, 2018 and 2019), books by genre, "
    "https://cseweb.ucsd.edu/~jmcauley/datasets/goodreads.html"
)
LICENCE = "for academic use only and not to be republished, as the source states"

Book = tuple[str, float]


def _number(text: str) -> float | None:
    """A number written as text; None for what is blank, and for zero, which stands for what is not known."""
    value = float(text) if text.strip() else 0.0
    return value if value and math.isfinite(value) else None


def read_books(path: Path, column: str) -> Iterator[Book]:
    """The id and value of each book in a gzipped JSON-lines file, where numbers are text; without missing values."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                book = json.loads(line)
                value = _number(str(book[column]))
                if value is not None:
                    yield str(book["book_id"]), value


def read_small(path: Path, column: str, genre: str) -> Iterator[Book]:
    """The same from a gzipped CSV file whose column `genres` holds names joined by `;`."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        for book in csv.DictReader(lines):
            value = _number(book[column])
            if value is not None and genre in book["genres"].lower().split(";"):
                yield book["book_id"], value


def _table(books: Iterable[Book], others: Iterable[Book], **facts: str) -> Table:
    """The books by id, each once, without those that are also among the others."""
    left_out = {book for book, _ in others}
    return Table.from_records([v for b, v in dict(books).items() if b not in left_out], **facts)


def _check(genre: str, column: str, without: str | None) -> str:
    check_member("genre", genre, tuple(FILES))
    check_member("column", column, tuple(COLUMNS))
    if without is not None:
        check_member("without", without, tuple(g for g in FILES if g != genre))
    return f"{genre}{f' without {without}' if without else ''} {column}"


def goodreads(genre: str = "history", column: str = "average_rating", without: str | None = None) -> Table:
    """Books of a genre: their mean rating by readers, or their number of pages; downloaded on first use.

    In the source numbers are text, the number of pages may be empty, and zero stands for what is not known: such books
    are left out of the column. A book may be in both genres. Where one is public and the other private, ask for the
    public one `without` the private one, so that no private record is used as public.

    Parameters
    ----------
    genre : "history" (and biography; 302,935 books) or "poetry" (36,514).
    column : "average_rating" (1 to 5 stars) or "num_pages".
    without : the other genre, whose books are left out.

    Returns
    -------
    Table : one record for each book.

    Raises
    ------
    ValueError : naming `genre`, `column` or `without`.
    DataUnavailableError : offline, if the file is not in the data folder; the text tells where to put it.
    """
    name = _check(genre, column, without)
    paths = {g: fetch(Remote(BASE + FILES[g], f"goodreads/{FILES[g]}")) for g in (genre, without) if g}
    others = read_books(paths[without], "book_id") if without else ()
    return _table(
        read_books(paths[genre], column),
        others,
        name=f"goodreads {name}",
        unit=COLUMNS[column],
        provenance=SOURCE,
        licence=LICENCE,
    )


def goodreads11k(genre: str = "history", column: str = "average_rating", without: str | None = None) -> Table:
    """The same columns of a smaller scrape of 11,127 Goodreads books, if its file lies in the data folder.

    Parameters, return value and errors are those of `goodreads`; there is nothing to download.
    """
    name = _check(genre, column, without)
    path = local(SMALL_FILE)
    if path is None:
        raise DataUnavailableError(
            f"{SMALL_FILE} is not in the data folder {data_folder()}, and there is no address to get it from"
        )
    others = read_small(path, "book_id", without) if without else ()
    return _table(
        read_small(path, column, genre),
        others,
        name=f"goodreads11k {name}",
        unit=COLUMNS[column],
        provenance="a scrape of 11,127 Goodreads books with their genres",
        licence="not stated by the source",
    )
