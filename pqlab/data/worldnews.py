"""Comments on news in Reddit's worldnews forum by their Flesch reading ease (sec:online-details).

The score is the package textstat's, which is optional; it has no lower bound, and versions of textstat score
differently.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from pq.datasets.features import WEEKDAYS, title_embedding, weekday_features, year_angle
from pq.datasets.table import DatasetSequence, frozen
from pqlab.data.fetch import DataUnavailableError, Remote, data_folder, fetch, local

BASE = "http://zissou.infosci.cornell.edu/convokit/datasets/subreddit-corpus/"
CORPUS_FILE = "worldnews/worldnews.corpus.zip"
HEADLINES_FILE = "worldnews/worldnews_headlines_flesch.csv.gz"
NO_TEXT = frozenset({"", "[deleted]", "[removed]"})
SOURCE = (
    "ConvoKit's subreddit corpus worldnews, collected from Reddit, "
    "https://convokit.cornell.edu/documentation/subreddit.html"
)
LICENCE = "not stated by the source; the comments belong to their authors"

Score = Callable[[str], float]
Embed = Callable[[str], npt.ArrayLike]


@dataclass
class Post:
    """A post on the forum, with the scores of the comments on it."""

    title: str
    gilded: bool
    timestamp: float | None  # seconds since 1970-01-01 UTC
    scores: list[float] = field(default_factory=list)


def glove_embedding(path: Path | str, stop_words: Iterable[str] = ()) -> Embed:
    """The paper's embedding of a title: the normalised sum of the GloVe vectors of its words, stop words left out.

    path: a text file of GloVe, a word and its numbers in each line; the paper's have 25. stop_words: lower case; the
    paper's are NLTK's English ones. Returns title -> (dimension,), zero where no word is known; for `bbc(embed=...)`.
    Raises `ValueError` naming path if a line is no word with as many numbers as the first has.
    """
    left_out, vectors = frozenset(stop_words), {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            word, *numbers = line.rstrip("\n").split(" ")
            vectors[word] = np.array(numbers, dtype=np.float64)
    lengths = {len(vector) for vector in vectors.values()}
    if len(lengths) != 1:
        raise ValueError(f"path must hold vectors of one length, got {sorted(lengths)}")
    zero = np.zeros(lengths.pop())

    def embed(title: str) -> npt.ArrayLike:
        words = [word for word in re.findall(r"\w+", title.lower()) if word not in left_out]
        total = sum((vectors.get(word, zero) for word in words), zero)
        size = float(np.linalg.norm(total))
        return total / size if size else total

    return embed


def flesch_scorer() -> tuple[Score, str]:
    """textstat's Flesch reading ease, and the name and version of the package.

    Raises `ImportError` naming the package, if it is not installed; the extra `scores` pins the paper's version.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says that what it is built on is old
            textstat = import_module("textstat")
    except ImportError as error:
        raise ImportError("scores need the optional package textstat: pip install textstat, or pass score") from error
    return textstat.flesch_reading_ease, f"textstat {metadata.version('textstat')}"


def json_members(stream: TextIO, chunk: int = 1 << 16) -> Iterator[tuple[str, Any]]:
    """The members of one large JSON object, read piece by piece so that they need not all be in memory."""
    decoder = json.JSONDecoder()
    text, place = "", 0

    def refill() -> bool:
        nonlocal text, place
        more = stream.read(chunk)
        text, place = text[place:] + more, 0
        return bool(more)

    def skip(characters: str) -> None:
        nonlocal place
        while True:
            while place < len(text) and text[place] in characters:
                place += 1
            if place < len(text) or not refill():
                return

    def value() -> Any:
        nonlocal place
        while True:
            try:
                result, end = decoder.raw_decode(text, place)
            except json.JSONDecodeError:
                if not refill():
                    raise
                continue
            if end < len(text) or not refill():  # at the end of the piece a number might go on
                place = end
                return result

    skip(" \t\r\n\ufeff{")
    while place < len(text) and text[place] != "}":
        key = value()
        skip(" \t\r\n:")
        yield key, value()
        skip(" \t\r\n,")
    if place == len(text):
        raise ValueError("the JSON object breaks off before its end")


def _open_part(stack: ExitStack, corpus: Path, name: str) -> TextIO:
    """A file of the corpus as text, from a folder or from anywhere in a zip archive."""
    if corpus.is_dir():
        return stack.enter_context(open(corpus / name, encoding="utf-8"))
    archive = stack.enter_context(zipfile.ZipFile(corpus))
    places = [n for n in archive.namelist() if n.rsplit("/", 1)[-1] == name and "__MACOSX/" not in n]
    if len(places) != 1:
        raise ValueError(f"{corpus} must hold one file {name}, it holds {len(places)}")
    return io.TextIOWrapper(stack.enter_context(archive.open(places[0])), encoding="utf-8")


def _timestamp(value: object) -> float | None:
    return None if value is None else float(str(value))


def _posts(corpus: Path, domain: str) -> dict[str, Post]:
    with ExitStack() as stack:
        posts = {}
        for key, conversation in json_members(_open_part(stack, corpus, "conversations.json")):
            facts: Mapping[str, Any] = conversation.get("meta") or conversation
            if facts.get("domain") == domain:
                gilded = int(facts.get("gilded") or 0) > 0
                posts[key] = Post(str(facts.get("title") or ""), gilded, _timestamp(facts.get("timestamp")))
        return posts


def read_corpus(corpus: Path, domain: str, score: Score) -> list[Post]:
    """The posts of links to a domain in order of time, each with its comments' scores.

    A post is itself an utterance of the corpus: it gives the time and no score. Comments that are deleted, removed or
    empty have no score. Newer corpora name the conversation `conversation_id` and keep facts in `meta`; older ones say
    `root`.
    """
    posts = _posts(corpus, domain)
    with ExitStack() as stack:
        for line in _open_part(stack, corpus, "utterances.jsonl"):
            utterance = json.loads(line) if line.strip() else {}
            key = str(utterance.get("conversation_id", utterance.get("root")))
            post = posts.get(key)
            if post is None:
                continue
            text = str(utterance.get("text") or "").strip()
            if utterance["id"] == key:
                time = _timestamp(utterance.get("timestamp"))
                post.timestamp = post.timestamp if time is None else time
            elif text not in NO_TEXT:
                post.scores.append(float(score(text)))
    timeless = [key for key, post in posts.items() if post.timestamp is None]
    if timeless:
        raise ValueError(f"{corpus} tells no time for {len(timeless)} posts, the first is {timeless[0]}")
    return sorted(posts.values(), key=lambda post: post.timestamp or 0.0)


def _features(post: Post, score: Score, embed: Embed) -> list[float]:
    time = datetime.fromtimestamp(post.timestamp or 0.0, UTC)
    hour = time.hour + time.minute / 60 + time.second / 3600
    calendar = [*weekday_features([time.date()])[0], np.sin(year_angle(time.date())), np.sin(2 * np.pi * hour / 24)]
    title = [float(post.gilded), float(score(post.title)) / 100 if post.title else 0.0, len(post.title.split()) / 100]
    return [*calendar, *title, *np.asarray(embed(post.title), dtype=np.float64)]


def _corpus_address() -> str:
    """The corpus lies in a folder that is named after a range of forums: the first and the last, joined by `~-~`."""
    groups = fetch(Remote(BASE + "subreddit-groupings.txt", "worldnews/subreddit-groupings.txt")).read_text(
        encoding="utf-8"
    )
    for group in groups.split():
        first, _, last = group.partition("~-~")
        if first <= "worldnews" <= last:
            return f"{BASE}corpus-zipped/{group}/worldnews.corpus.zip"
    raise ValueError(f"{BASE}subreddit-groupings.txt has no group for worldnews")


def bbc(
    domain: str = "bbc.co.uk",
    min_comments: int = 10,
    *,
    score: Score | None = None,
    embed: Embed | None = None,
    corpus: Path | str | None = None,
) -> DatasetSequence:
    """Flesch reading ease of comments on BBC articles in worldnews, one data set a post; downloaded on first use.

    Features of a post: seven for the day of the week (UTC), the sine of the day of the year and of the time of day,
    whether it is gilded, its title's score and its number of words (hundreds), and a vector for the title. The paper
    sums GloVe vectors of 25 numbers, as `glove_embedding` does with their file; the default here is
    `pq.datasets.features.title_embedding`, also 25, which needs no download.

    Parameters
    ----------
    domain : the domain that posts link to, as the corpus writes it.
    min_comments : posts with fewer scored comments are left out. Which are left out is a fact about the comments; the
        paper takes 10, and 0 keeps all.
    score : text -> number; textstat's Flesch reading ease by default.
    embed : title -> vector, of the same length for every title.
    corpus : a corpus that is already here, as zip archive or folder; by default it is downloaded (some gigabytes).

    Returns
    -------
    DatasetSequence : in order of the posts' times; `days` holds their dates and may repeat.

    Raises
    ------
    ValueError : naming `min_comments`.
    ImportError : naming textstat, if it is needed and not installed.
    DataUnavailableError : offline, if a file is not in the data folder; the text tells where to put it.
    """
    if min_comments < 0:
        raise ValueError(f"min_comments must be at least 0, got {min_comments!r}")
    rate, scorer = (score, "the scorer given") if score is not None else flesch_scorer()
    path = Path(corpus) if corpus is not None else local(CORPUS_FILE) or fetch(Remote(_corpus_address(), CORPUS_FILE))
    posts = [post for post in read_corpus(path, domain, rate) if len(post.scores) >= min_comments]
    rows = [_features(post, rate, embed or title_embedding) for post in posts]
    names = [*WEEKDAYS, "year_sine", "day_sine", "gilded", "title_score", "title_words"]
    width = len(rows[0]) if rows else len(names)
    return DatasetSequence(
        tuple(datetime.fromtimestamp(post.timestamp or 0.0, UTC).date() for post in posts),
        tuple(frozen(sorted(post.scores)) for post in posts),
        np.array(rows, dtype=np.float64).reshape(len(rows), width),
        (*names, *(f"title_{i}" for i in range(width - len(names)))),
        name=f"worldnews {domain}",
        unit="Flesch reading ease",
        provenance=f"{SOURCE}; scored by {scorer}",
        licence=LICENCE,
    )


def worldnews_weekly() -> DatasetSequence:
    """Flesch reading ease of worldnews headlines, one data set for each ISO week, if the file lies in the data folder.

    Features: the sine and the cosine of the day of the year of the week's Monday, and the years since the first week
    (tens).

    Returns
    -------
    DatasetSequence : `days` holds the Mondays.

    Raises
    ------
    DataUnavailableError : if the file is not there; there is no address to get it from.
    """
    path = local(HEADLINES_FILE)
    if path is None:
        raise DataUnavailableError(
            f"{HEADLINES_FILE} is not in the data folder {data_folder()}, and there is no address to get it from"
        )
    weeks: dict[date, list[float]] = {}
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            year, week, _ = date.fromisoformat(row["date"]).isocalendar()
            weeks.setdefault(date.fromisocalendar(year, week, 1), []).append(float(row["flesch"]))
    mondays = sorted(weeks)
    angles = np.array([year_angle(day) for day in mondays])
    years = np.array([(day - mondays[0]).days / 365.25 for day in mondays])
    return DatasetSequence(
        tuple(mondays),
        tuple(frozen(sorted(weeks[day])) for day in mondays),
        np.column_stack([np.sin(angles), np.cos(angles), years / 10]),
        ("year_sine", "year_cosine", "decades"),
        name="worldnews headlines by week",
        unit="Flesch reading ease",
        provenance="headlines of Reddit's worldnews forum, 25 a day from June 2008 to July 2016, scored by textstat",
        licence="not stated by the source",
    )
