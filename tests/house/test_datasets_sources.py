"""Readers of the sources that are downloaded, on small files in each schema that a source has used."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import sys
import zipfile
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from pq.datasets import features
from pqlab.data import (
    DataUnavailableError,
    bbc,
    books,
    citibike,
    goodreads,
    goodreads11k,
    trips,
    worldnews,
    worldnews_weekly,
)
from pqlab.data.worldnews import flesch_scorer, glove_embedding


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder, and no network: every address leads to a port where nobody listens."""
    monkeypatch.setenv("PQ_DATA", str(tmp_path))
    monkeypatch.setenv("no_proxy", "*")
    nowhere = "http://127.0.0.1:1/"
    for module in (books, trips, worldnews):
        monkeypatch.setattr(module, "BASE", nowhere)
    monkeypatch.setattr(trips, "WEATHER_ADDRESS", nowhere + "{0}{1}")
    return tmp_path


def put(path: Path, content: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# ---------------------------------------------------------------------------------------------------------- Goodreads

HISTORY = [
    {"book_id": "1", "average_rating": "4.02", "num_pages": "343"},
    {"book_id": "2", "average_rating": "3.50", "num_pages": ""},
    {"book_id": "3", "average_rating": "0.00", "num_pages": "0"},
    {"book_id": "4", "average_rating": "4.02", "num_pages": "12"},
]
POETRY = [
    {"book_id": "4", "average_rating": "4.02", "num_pages": ""},
    {"book_id": "5", "average_rating": "5.00", "num_pages": "96"},
]


@pytest.fixture
def shelves(folder: Path) -> None:
    for genre, entries in (("history", HISTORY), ("poetry", POETRY)):
        lines = "".join(json.dumps(entry) + "\n" for entry in entries)
        put(folder / "goodreads" / books.FILES[genre], gzip.compress(lines.encode()))


@pytest.mark.usefixtures("shelves")
class TestGoodreads:
    def test_numbers_are_text_and_blank_or_zero_is_missing(self) -> None:
        assert goodreads("history").to_array().tolist() == [3.5, 4.02, 4.02]
        assert goodreads("history", "num_pages").to_array().tolist() == [12, 343]
        assert goodreads("poetry", "num_pages").to_array().tolist() == [96]

    def test_a_book_in_both_genres_can_be_kept_out_of_the_public_one(self) -> None:
        assert goodreads("history", without="poetry").to_array().tolist() == [3.5, 4.02]
        # Book 4 is left out though its number of pages is missing in the other genre's file.
        assert goodreads("history", "num_pages", without="poetry").to_array().tolist() == [343]

    def test_a_book_that_is_listed_twice_counts_once(self, folder: Path) -> None:
        lines = "".join(json.dumps(entry) + "\n" for entry in [*POETRY, *POETRY])
        put(folder / "goodreads" / books.FILES["poetry"], gzip.compress(lines.encode()))
        assert len(goodreads("poetry")) == 2

    def test_facts(self) -> None:
        table = goodreads("poetry", "num_pages")
        assert table.name == "goodreads poetry num_pages"
        assert table.unit == "pages"
        assert "UCSD" in table.provenance
        assert table.licence

    @pytest.mark.parametrize(
        ("arguments", "named"),
        [(("novel",), "genre"), (("poetry", "title"), "column"), (("poetry", "num_pages", "poetry"), "without")],
    )
    def test_refuses_other_choices(self, arguments: tuple[str, ...], named: str) -> None:
        for load in (goodreads, goodreads11k):
            with pytest.raises(ValueError, match=f"^{named}"):
                load(*arguments)


def test_goodreads_offline_names_the_file(folder: Path) -> None:
    with pytest.raises(DataUnavailableError, match=r"goodreads/goodreads_books_poetry\.json\.gz"):
        goodreads("poetry")


def test_goodreads11k(folder: Path) -> None:
    with pytest.raises(DataUnavailableError, match="goodreads11k_genres"):
        goodreads11k()
    rows = (
        "book_id,average_rating,num_pages,ratings_count,genres\n"
        "1,4.57,652,20,History;Fiction\n2,0.00,0,1,History\n3,3.9,,1,Poetry;History\n4,4.1,30,1,Prehistory;Poetry\n"
    )
    put(folder / "goodreads" / "goodreads11k_genres.csv.gz", gzip.compress(rows.encode()))
    assert goodreads11k("history").to_array().tolist() == [3.9, 4.57]
    assert goodreads11k("history", without="poetry").to_array().tolist() == [4.57]
    assert goodreads11k("poetry", "num_pages").to_array().tolist() == [30]


# ----------------------------------------------------------------------------------------------------------- CitiBike

FIRST_SCHEMA = (
    "Trip Duration,Start Time,Stop Time,Start Station ID\r\n"
    "361,2015-09-21 14:53:16,2015-09-21 14:59:17,3192\n"
    "222,9/22/2015 0:05,9/22/2015 0:09,3192\r\n"
)
SECOND_SCHEMA = (
    '"tripduration","starttime","stoptime","start station id","start station name"\n'
    '"932","2018-01-01 02:06:17.5410","2018-01-01 02:21:50.0270","3183","Exchange Place, at the water"\n'
    '"61","2018-01-02 23:59:59.9990","2018-01-03 00:01:00.9990","3183","x"\n'
)
THIRD_SCHEMA = (
    '"ride_id","rideable_type","started_at","ended_at","start_station_name"\n'
    '"A1","docked_bike","2021-11-07 01:55:10","2021-11-07 01:02:10","x, y"\n'
    "A2,classic_bike,2021-11-07 23:50:00,2021-11-08 00:10:30,z\n"
    "A3,classic_bike,2021-11-06 12:00:00.250,2021-11-06 12:00:30.750,z\n"
)
FIELDS = ["STATION", "NAME", "DATE", "AWND", "PGTM", *("PRCP", "SNOW", "SNWD", "TAVG", "TMAX", "TMIN")]


def archive(name: str, content: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr(name, content)
        file.writestr(f"__MACOSX/._{name}", b"\x00\x05\x16\x07")
        file.writestr("__MACOSX/._more.csv", b"\x00\x05\x16\x07")
    return buffer.getvalue()


def weather(first: date, days: int, skip: tuple[int, ...] = (), blank: tuple[int, ...] = ()) -> str:
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerow(FIELDS)
    for k in range(days):
        if k not in skip:
            wind = "" if k in blank else f" {k}.5"
            row = ["USW00094728", "NY CITY CENTRAL PARK, NY US", first + timedelta(k), wind]
            writer.writerow([*row, "", "0.20", "1.0", "2.0", "", "90", "-5"])
    return text.getvalue()


def plain(read: Any) -> list[tuple[date, float]]:
    return [(date(1970, 1, 1) + timedelta(int(d)), float(s)) for d, s in zip(read.days, read.seconds, strict=True)]


class TestCitibikeFormats:
    def read(self, tmp_path: Path, content: str) -> list[tuple[date, float]]:
        return plain(trips.read_archive(put(tmp_path / "a.zip", archive("JC-20161-x.csv", content))))

    def test_titles_with_spaces_both_orders_of_dates_and_mixed_line_ends(self, tmp_path: Path) -> None:
        assert self.read(tmp_path, FIRST_SCHEMA) == [(date(2015, 9, 21), 361), (date(2015, 9, 22), 222)]

    def test_quoted_titles_and_fractions_of_seconds(self, tmp_path: Path) -> None:
        assert self.read(tmp_path, SECOND_SCHEMA) == [(date(2018, 1, 1), 932), (date(2018, 1, 2), 61)]

    def test_starts_and_ends_where_the_autumn_night_gives_a_negative_duration(self, tmp_path: Path) -> None:
        assert self.read(tmp_path, THIRD_SCHEMA) == [
            (date(2021, 11, 7), -3180),
            (date(2021, 11, 7), 1230),
            (date(2021, 11, 6), 30.5),
        ]

    def test_a_byte_order_mark_and_blank_lines(self, tmp_path: Path) -> None:
        assert self.read(tmp_path, "\ufeff" + FIRST_SCHEMA + "\r\n\n") == self.read(tmp_path, FIRST_SCHEMA)

    def test_an_unknown_schema_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="bikeid"):
            self.read(tmp_path, "bikeid,usertype\n1,2\n")
        with pytest.raises(ValueError, match="no CSV file"):
            trips.read_archive(put(tmp_path / "b.zip", archive("readme.txt", "")))

    @pytest.mark.parametrize("text", ["", "2015-09-21", "yesterday", "21.9.2015 14:53"])
    def test_no_stamp(self, text: str) -> None:
        with pytest.raises(ValueError, match="no time stamp"):
            trips.read_stamp(text)

    def test_stamps_that_are_no_dates(self) -> None:
        with pytest.raises(ValueError, match="month"):
            trips.read_stamp("21/9/2015 14:53")  # would be day first


class TestCitibike:
    def archives(self, folder: Path, contents: Mapping[str, str]) -> None:
        for month, content in contents.items():
            name = trips.ODD_NAMES.get(month, f"JC-{month}-citibike-tripdata.csv.zip")
            put(folder / "citibike" / name, archive(f"JC-{month}.csv", content))

    def test_days_datasets_and_features(self, folder: Path) -> None:
        self.archives(folder, {"201509": FIRST_SCHEMA})
        put(folder / "citibike" / "centralpark.csv", weather(date(2015, 9, 1), 30, blank=(20,)))
        sequence = citibike("2015-09-20", "2015-09-22", unit="seconds")
        assert sequence.days == (date(2015, 9, 20), date(2015, 9, 21), date(2015, 9, 22))
        assert [x.tolist() for x in sequence.datasets] == [[], [361], [222]]
        assert sequence.feature_names[7:] == ("year_sine", "AWND", "PRCP", "SNOW", "SNWD", "TMAX", "TMIN")
        assert sequence.features[:, :7].argmax(axis=1).tolist() == [6, 0, 1]
        assert sequence.features[:, 8].tolist() == pytest.approx([1.95, 1.95, 2.15])  # the blank takes the day before
        assert sequence.features[1, 9:].tolist() == pytest.approx([0.02, 0.1, 0.2, 0.9, -0.05])
        assert sequence.features[0, 7] == pytest.approx(np.sin(2 * np.pi * 263 / 365))

    def test_minutes_and_least_number_of_trips(self, folder: Path) -> None:
        self.archives(folder, {"201509": FIRST_SCHEMA})
        put(folder / "centralpark.csv", weather(date(2015, 9, 1), 30))
        sequence = citibike("2015-09", "2015-09", min_trips=1)
        assert sequence.days == (date(2015, 9, 21), date(2015, 9, 22))
        assert [x.tolist() for x in sequence.datasets] == [[361 / 60], [222 / 60]]
        assert sequence.features.shape == (2, 14)
        assert len(citibike("2015-09", date(2015, 9, 30))) == 30

    def test_odd_names_of_archives(self, folder: Path) -> None:
        self.archives(folder, {"201708": FIRST_SCHEMA.replace("2015", "2017").replace("2017-09", "2017-08")})
        assert (folder / "citibike" / "JC-201708 citibike-tripdata.csv.zip").exists()
        put(folder / "centralpark.csv", weather(date(2017, 8, 1), 31))
        assert sum(len(x) for x in citibike("2017-08", "2017-08").datasets) == 1
        with pytest.raises(DataUnavailableError, match=r"JC-202207-citbike-tripdata\.csv\.zip"):
            citibike("2022-07", "2022-07")

    def test_trips_of_october_2020_are_not_counted_twice(self, folder: Path) -> None:
        head = "tripduration,starttime\n"
        october = "60,2020-10-13 12:00:00\n"
        self.archives(folder, {"202009": head + "30,2020-09-30 12:00:00\n" + october, "202010": head + october})
        put(folder / "centralpark.csv", weather(date(2020, 9, 1), 61))
        assert sum(len(x) for x in citibike("2020-09", "2020-10").datasets) == 2
        assert sum(len(x) for x in citibike("2020-09", "2020-10", drop_repeats=False).datasets) == 3

    def prepare(self, path: Path, days: list[int], sizes: list[int], durations: list[int]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        np.savez(path, days=np.array(days, np.int32), offsets=offsets, durations_s=np.array(durations, np.int32))

    def test_prepared_file(self, folder: Path) -> None:
        first = (date(2015, 9, 21) - date(1970, 1, 1)).days
        self.prepare(folder / "citibike" / "jc_trip_durations_dedup.npz", [first, first + 2], [2, 1], [-5, 7, 9])
        put(folder / "citibike" / "centralpark.csv", weather(date(2015, 9, 1), 30))
        sequence = citibike(unit="seconds")
        assert sequence.days[0] == date(2015, 9, 21)
        assert [x.tolist() for x in sequence.datasets] == [[-5, 7], [], [9]]
        assert "jc_trip_durations_dedup.npz" in sequence.provenance
        assert len(citibike("2015-09-22", "2015-09-23")) == 2
        # What it does not cover is looked for in the archives and not cut off without a word.
        with pytest.raises(DataUnavailableError, match="JC-201509"):
            citibike("2015-09-21", "2015-09-24")
        with pytest.raises(DataUnavailableError, match="JC-201509"):
            citibike(source="archives")
        with pytest.raises(ValueError, match="source"):
            citibike(source="prepared", drop_repeats=False)

    def test_weather_must_know_every_day(self, folder: Path) -> None:
        self.archives(folder, {"201509": FIRST_SCHEMA})
        put(folder / "centralpark.csv", weather(date(2015, 9, 1), 30, skip=(24,)))
        with pytest.raises(ValueError, match="2015-09-25"):
            citibike("2015-09", "2015-09")
        put(folder / "centralpark.csv", "DATE,PRCP\n")
        with pytest.raises(ValueError, match="AWND"):
            citibike("2015-09", "2015-09")
        (folder / "centralpark.csv").unlink()
        with pytest.raises(DataUnavailableError, match=r"centralpark-20150901-20150930\.csv"):
            citibike("2015-09", "2015-09")

    @pytest.mark.parametrize(
        ("keywords", "named"),
        [
            ({"start": "2015"}, "start"),
            ({"start": "2015-13"}, "start"),
            ({"end": "2015-02-30"}, "end"),
            ({"end": 3}, "end"),
            ({"start": "2016-01", "end": "2015-12"}, "start"),
            ({"start": "2023-01"}, "start"),
            ({"unit": "hours"}, "unit"),
            ({"min_trips": -1}, "min_trips"),
            ({"source": "memory"}, "source"),
        ],
    )
    def test_refuses(self, keywords: dict[str, Any], named: str) -> None:
        with pytest.raises(ValueError, match=f"^{named}"):
            citibike(**keywords)


# ---------------------------------------------------------------------------------------------------------- worldnews

MARCH = 1_362_268_800  # 2013-03-03 00:00 UTC, a Sunday


def corpus(style: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Conversations and utterances as older ("root") or newer ("conversation_id") corpora write them."""
    facts = {
        "late": {"title": "Later news", "domain": "bbc.co.uk", "gilded": 1},
        "early": {"title": 'A "quoted" title: {[,]}', "domain": "bbc.co.uk", "gilded": 0, "num_comments": 1e3},
        "other": {"title": "Elsewhere", "domain": "notbbc.co.uk", "gilded": 0},
        "quiet": {"title": "Nobody answers", "domain": "bbc.co.uk", "gilded": 0},
    }
    texts = {
        "late": ["one two", "[deleted]", "three", "", "four five six", None],
        "early": ["a b c d", "  [removed] ", "e"],
        "other": ["x", "y", "z"],
        "quiet": ["[deleted]"],
    }
    times = {"late": MARCH + 86_400 + 6 * 3600, "early": MARCH, "other": MARCH, "quiet": MARCH + 9}
    utterances: list[dict[str, Any]] = []
    for key, comments in texts.items():
        entries = [(key, None, "the post's own text", times[key])]
        entries += [(f"{key}{i}", key, text, times[key] + 60 * i) for i, text in enumerate(comments)]
        for number, reply, text, time in entries:
            if style == "old":
                utterances.append(
                    {"id": number, "user": "u", "root": key, "reply_to": reply, "timestamp": str(time), "text": text}
                )
            else:
                meta = {"score": 1}
                line = {"id": number, "conversation_id": key, "text": text, "speaker": "u", "meta": meta, "vectors": []}
                utterances.append({**line, "reply-to": reply, "timestamp": time})
    random.Random(0).shuffle(utterances)
    conversations = facts if style == "old" else {k: {"meta": f, "vectors": []} for k, f in facts.items()}
    return conversations, utterances


def write_corpus(folder: Path, style: str, zipped: bool) -> Path:
    conversations, utterances = corpus(style)
    parts = {
        "worldnews.corpus/conversations.json": json.dumps(conversations),
        "worldnews.corpus/utterances.jsonl": "".join(json.dumps(u) + "\n" for u in utterances),
        "worldnews.corpus/index.json": "{}",
    }
    if zipped:
        path = folder / "worldnews" / "worldnews.corpus.zip"
        path.parent.mkdir(parents=True)
        with zipfile.ZipFile(path, "w") as file:
            for name, content in parts.items():
                file.writestr(name, content)
        return path
    for name, content in parts.items():
        put(folder / name, content)
    return folder / "worldnews.corpus"


def words(text: str) -> float:
    return float(len(text.split()))


class TestBbc:
    @pytest.mark.parametrize("zipped", [True, False])
    @pytest.mark.parametrize("style", ["old", "new"])
    def test_comments_by_post_in_order_of_time(self, folder: Path, style: str, zipped: bool) -> None:
        path = write_corpus(folder, style, zipped)
        sequence = bbc(min_comments=2, score=words, corpus=path)
        assert sequence.days == (date(2013, 3, 3), date(2013, 3, 4))
        # Not among them: the posts' own text (four words), what is deleted, removed or empty.
        assert [x.tolist() for x in sequence.datasets] == [[1, 4], [1, 2, 3]]
        assert len(bbc(min_comments=0, score=words, corpus=path)) == 3
        assert len(bbc(min_comments=3, score=words, corpus=path)) == 1
        assert len(bbc(score=words, corpus=path)) == 0

    def test_features(self, folder: Path) -> None:
        path = write_corpus(folder, "new", True)
        sequence = bbc(min_comments=2, score=words, embed=lambda title: [len(title), 1.0])
        named = dict(zip(sequence.feature_names, sequence.features.T, strict=True))
        assert sequence.features.shape == (2, 14)
        assert named["sunday"].tolist() == [1, 0]
        assert named["monday"].tolist() == [0, 1]
        assert named["year_sine"].tolist() == pytest.approx([np.sin(2 * np.pi * k / 365) for k in (62, 63)])
        assert named["day_sine"].tolist() == pytest.approx([0.0, 1.0])  # midnight and six in the morning
        assert named["gilded"].tolist() == [0, 1]
        assert named["title_words"].tolist() == [0.04, 0.02]
        assert named["title_score"].tolist() == [0.04, 0.02]
        assert named["title_0"].tolist() == [len('A "quoted" title: {[,]}'), 10]
        default = bbc(min_comments=2, score=words, corpus=path)
        assert default.features.shape == (2, 12 + 25)
        assert np.array_equal(default.features[1, 12:], features.title_embedding("Later news"))

    def test_glove_vectors_of_the_words_are_summed_and_stop_words_left_out(self, tmp_path: Path) -> None:
        file = tmp_path / "glove.txt"
        file.write_text("the 9 9\ncricket 3 0\nfinal 0 4\n", encoding="utf-8")
        embed = glove_embedding(file, ["the"])
        assert np.array_equal(embed("The Cricket: final, unknown"), [0.6, 0.8])
        assert np.array_equal(embed("the"), [0.0, 0.0])
        assert not np.array_equal(glove_embedding(file)("The cricket"), embed("The cricket"))
        file.write_text("the 9 9\ncricket 3\n", encoding="utf-8")
        with pytest.raises(ValueError, match="path must hold vectors of one length"):
            glove_embedding(file)

    def test_the_pinned_scorer_reads_a_sentence(self) -> None:
        score, name = flesch_scorer()
        assert name == "textstat 0.7.4"
        # 206.835 - 1.015 (words a sentence) - 84.6 (syllables a word), by hand: six words, six syllables
        assert score("The cat sat on the mat.") == pytest.approx(206.835 - 1.015 * 6 - 84.6, abs=0.1)

    def test_the_scorer_is_textstat_unless_one_is_given(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write_corpus(folder, "new", True)
        monkeypatch.setitem(sys.modules, "textstat", None)
        with pytest.raises(ImportError, match="pip install textstat"):
            bbc(min_comments=2)
        package = ModuleType("textstat")
        package.flesch_reading_ease = words  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "textstat", package)
        monkeypatch.setattr(worldnews.metadata, "version", lambda name: f"0 of {name}")
        sequence = bbc(min_comments=2)
        assert [len(x) for x in sequence.datasets] == [2, 3]
        assert "scored by textstat 0 of textstat" in sequence.provenance

    def test_another_domain(self, folder: Path) -> None:
        assert len(bbc("notbbc.co.uk", 1, score=words, corpus=write_corpus(folder, "old", True))) == 1

    def test_offline_names_the_file(self, folder: Path) -> None:
        with pytest.raises(DataUnavailableError, match=r"worldnews/subreddit-groupings\.txt"):
            bbc(score=words)
        put(folder / "worldnews" / "subreddit-groupings.txt", "a~-~m\nwomen~-~worldnews2\nx~-~z\n")
        with pytest.raises(DataUnavailableError, match=r"corpus-zipped/women~-~worldnews2/worldnews\.corpus\.zip"):
            bbc(score=words)
        put(folder / "worldnews" / "subreddit-groupings.txt", "a~-~m\n")
        with pytest.raises(ValueError, match="no group"):
            bbc(score=words)

    def test_refuses(self, folder: Path) -> None:
        with pytest.raises(ValueError, match="min_comments"):
            bbc(min_comments=-1, score=words)
        with zipfile.ZipFile(folder / "empty.zip", "w"):
            pass
        with pytest.raises(ValueError, match=r"conversations\.json"):
            bbc(score=words, corpus=folder / "empty.zip")

    def test_a_post_without_a_time_is_an_error(self, folder: Path) -> None:
        put(folder / "c" / "conversations.json", '{"p": {"domain": "bbc.co.uk"}}')
        put(folder / "c" / "utterances.jsonl", '{"id": "q", "root": "p", "text": "x"}\n')
        with pytest.raises(ValueError, match="no time for 1 posts"):
            bbc(score=words, corpus=folder / "c")
        put(folder / "c" / "conversations.json", json.dumps({"p": {"domain": "bbc.co.uk", "timestamp": MARCH}}))
        assert bbc("bbc.co.uk", 1, score=words, corpus=folder / "c").days == (date(2013, 3, 3),)


class TestJsonMembers:
    @pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1000])
    @pytest.mark.parametrize("indent", [None, 2])
    def test_reads_what_json_reads(self, chunk: int, indent: int | None) -> None:
        whole = {"a": {"b": [1, 2.5e3, "}{", None]}, 'k"\\': 1234567, "ü": "\u2028 é", "n": -12, "t": True, "e": {}}
        text = json.dumps(whole, indent=indent, ensure_ascii=False)
        assert dict(worldnews.json_members(io.StringIO(text), chunk)) == whole
        assert dict(worldnews.json_members(io.StringIO(" {} "), chunk)) == {}

    @pytest.mark.parametrize("text", ['{"a": 1', '{"a": {"b"', '{"a": 1,', '{"a"', ""])
    def test_what_breaks_off_is_an_error(self, text: str) -> None:
        with pytest.raises(ValueError):
            list(worldnews.json_members(io.StringIO(text), 4))


def test_worldnews_weekly(folder: Path) -> None:
    with pytest.raises(DataUnavailableError, match="worldnews_headlines_flesch"):
        worldnews_weekly()
    rows = "date,rank,flesch,n_words\n2008-12-29,1,85.02,20\n2009-01-04,1,-46.44,8\n2009-01-05,2,10,3\n"
    put(folder / "worldnews" / "worldnews_headlines_flesch.csv.gz", gzip.compress(rows.encode()))
    sequence = worldnews_weekly()
    assert sequence.days == (date(2008, 12, 29), date(2009, 1, 5))  # the first ISO week of 2009 starts in 2008
    assert [x.tolist() for x in sequence.datasets] == [[-46.44, 85.02], [10]]
    assert sequence.features[:, 2].tolist() == pytest.approx([0, 7 / 3652.5])


class TestFeatures:
    def test_the_year_ends_at_a_full_turn(self) -> None:
        assert features.year_angle(date(2013, 12, 31)) == features.year_angle(date(2016, 12, 31)) == 2 * np.pi
        assert features.year_angle(date(2016, 2, 29)) == pytest.approx(2 * np.pi * 60 / 366)

    def test_titles_are_unit_vectors_that_tell_words_apart(self) -> None:
        one = features.title_embedding("Floods in Pakistan: thousands flee")
        assert np.linalg.norm(one) == pytest.approx(1.0)
        assert np.array_equal(one, features.title_embedding("FLOODS in pakistan – thousands flee!"))
        near = features.title_embedding("Floods in Pakistan: thousands homeless", 400)
        far = features.title_embedding("Parliament votes on budget", 400)
        assert features.title_embedding("Floods in Pakistan: thousands flee", 400) @ near > 0.5
        assert abs(features.title_embedding("Floods in Pakistan: thousands flee", 400) @ far) < 0.3
        assert not features.title_embedding("?!").any()
        assert not features.title_embedding("").any()

    def test_a_title_has_the_same_vector_on_every_machine(self) -> None:
        # CRC-32 of " ab", "ab " and " ab ", computed apart, bit by bit: place (code >> 1) mod 25, sign by the last bit.
        expected = np.zeros(25)
        for code in (0x1856C560, 0xDAF151E8, 0xA4C6F8D8):
            expected[(code >> 1) % 25] += 1.0 if code & 1 else -1.0
        assert np.allclose(features.title_embedding("ab"), expected / np.linalg.norm(expected))

    def test_only_a_blank_takes_an_earlier_reading(self) -> None:
        days = [date(2015, 9, k) for k in (1, 2, 3, 4)]
        winds = [None, 5.0, 0.0, None]
        readings: dict[date, tuple[float | None, ...]] = {
            day: (wind, 0.0, 0.0, 0.0, 50.0, 0.0) for day, wind in zip(days, winds, strict=True)
        }
        assert features.central_park_features(days, readings)[:, 0].tolist() == [0.0, 0.5, 0.0, 0.0]
        assert features.central_park_features(days[1:2], readings)[:, 4].tolist() == [0.5]
