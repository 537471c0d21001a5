"""What is accepted as a key or a name can be shown, written and read back; what cannot is refused before the charge."""

from __future__ import annotations

import datetime as dt
import enum
import json
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import pq
from pq.private.columns.grouping import open_table
from pq.private.columns.identity import identity_of
from pq.private.columns.keys import KeyColumn, keys_of_texts
from pq.private.columns.written import key_texts

FAR = [pd.Timestamp(np.datetime64(f"{year}-01-01", "s")) for year in (20000, 30000)]
KEYS: list[Any] = [
    *(1, "1", 1.5, Decimal("1.5e400"), Fraction(1, 3), "1/3", True, "True", "", "other", 10**300, -0.0),
    *(dt.date(2020, 1, 1), "2020-01-01", dt.time(1, 2, 3, 4), dt.timedelta(days=-9, microseconds=1)),
    *(dt.datetime(2020, 5, 1, 2, tzinfo=dt.UTC), pd.Timestamp("2021-01-01", tz="Europe/Berlin")),
    *(pd.Timestamp(2**61 + 1, tz="UTC"), pd.Timedelta(2**61 + 1), pd.Timedelta(np.timedelta64(10**15, "s")), *FAR),
    *(np.datetime64(2**61, "s"), np.datetime64(2**61 + 1, "as"), np.timedelta64(2**62, "s"), np.timedelta64(7, "ns")),
]
HUGE: list[Any] = [10**5000, Fraction(10**5000, 3), float("inf"), -float("inf")]


def released(keys: list[Any], ledger: pq.Ledger | None = None, **options: Any) -> pq.GroupedRelease:
    column = np.empty(len(keys), dtype=object)
    column[:] = keys
    table: Any = {"k": column, "v": np.arange(len(keys)) * 1.0}
    asked: dict[str, Any] = {"table": table, "by": "k", "value": "v", "keys": keys, "priors": pq.Uniform(0, 10)}
    return pq.release_groups(quantiles=[0.5], epsilon=1, rng=0, ledger=ledger, **asked | options)


def check(made: pq.GroupedRelease, path: Path) -> None:
    again = pq.GroupedRelease.from_dict(json.loads(json.dumps(made.to_dict(), allow_nan=False)))
    for key, found in zip(made.keys, again.keys, strict=True):
        assert identity_of(found) == identity_of(key) if not isinstance(key, str) else found == key
    assert len(again.releases) == len(made.groups) and again.to_dict() == made.to_dict()
    assert len({row[0] for row in made.rows()}) == len(made.groups) == len(str(made).splitlines()) - 2
    made.report(path)
    page = path.read_text(encoding="utf-8")
    anchors = re.findall(r'id="(group-[^"]*)"', page)
    assert len(set(anchors)) == len(anchors) == len(made.groups)


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_an_accepted_key_survives(key: Any, tmp_path: Path) -> None:
    check(released([key]), tmp_path / "page.html")


def test_all_together_survive_and_none_is_lost(tmp_path: Path) -> None:
    check(released([key for key in KEYS if key is not True]), tmp_path / "page.html")


@pytest.mark.parametrize("key", HUGE, ids=["whole", "ratio", "inf", "-inf"])
def test_what_cannot_be_written_is_refused_before_the_charge(key: Any) -> None:
    ledger = pq.Ledger(1)
    with pytest.raises(ValueError, match=r"^keys must"):
        released([1.0, key], ledger)
    with pytest.raises(ValueError, match=r"^keys must"):
        released([1.0, key], ledger, table={"k": [1.0], "v": [1.0]})
    assert not ledger.entries


def test_texts_of_keys_are_always_different() -> None:
    keys = [1, "1", "1 (int)", "1 (int) (key 1)", Fraction(1, 2), "1/2", "b"]
    texts = key_texts(keys)
    assert len(set(texts)) == len(keys) and texts[1] == "1 (str)" and texts[-1] == "b"
    assert key_texts(["a", 1]) == ["a", "1"]


@pytest.mark.parametrize("name", [0, 1.5, np.int64(0), ("x", "k"), dt.date(2020, 1, 1), "\ud800", None, float("nan")])
@pytest.mark.parametrize("argument", ["by", "value", "person"])
def test_names_are_texts(name: Any, argument: str) -> None:
    ledger = pq.Ledger(1)
    if argument == "person" and name is None:
        return
    names = {"by": "k", "value": "v", "person": "p"} | {argument: name}
    table = dict(zip(names.values(), (["a"], [1.0], ["u"]), strict=True))
    with pytest.raises((TypeError, ValueError), match=f"^{argument} must be text"):
        released(["a"], ledger, table=table, **names)
    assert not ledger.entries
    described = released(["a"]).to_dict()
    with pytest.raises((TypeError, ValueError), match=f"^{argument} must be text"):
        pq.GroupedRelease.from_dict(described | {argument: name})


TABLES: dict[str, Any] = {
    "a number": {"k": ["a"], "v": [1.0], "z": 5},
    "no dimensions": {"k": np.array("a"), "v": np.array(1.0)},
    "an iterator": {"k": iter("a"), "v": iter([1.0])},
    "twice in pandas": pd.DataFrame([["a", 1.0, 2.0]], columns=["k", "v", "v"]),
    "twice in pyarrow": pa.table([["a"], [1.0], [2.0]], names=["k", "v", "v"]),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_tables_that_are_none_are_refused_by_name(table: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^table must"):
        released(["a"], table=table)


def test_durations_in_texts_are_exact() -> None:
    column = KeyColumn.of(open_table({"k": pa.array([0], pa.duration("us"))}), "k")
    wanted = dt.timedelta(days=200_000, microseconds=1)
    texts = ["P200000DT0.000001S", "-P200000DT0.0000010S", "PT0,1S", "P1W", "P999999999DT23H59M59.999999S"]
    assert keys_of_texts(texts, column) == [
        *(wanted, -wanted, dt.timedelta(milliseconds=100), dt.timedelta(7), dt.timedelta.max)
    ]
    for text in ("P1000000000D", f"P{'9' * 5000}D", "PT0.0000001S", "P"):
        with pytest.raises(ValueError, match=r"^keys must"):
            keys_of_texts([text], column)


class Named(enum.StrEnum):
    A = "a"

    def __str__(self) -> str:
        return "something else"


def test_keys_that_a_page_shows_alike_are_told_apart() -> None:
    """Pages fold white space, and drop what cannot be printed."""
    texts = key_texts(["a", "a ", " a", "a\t", "a b", "a  b", "a\nb", "a\0", "a\u2028"])
    assert len({" ".join(text.split()) for text in texts}) == len(texts) and all(map(str.isprintable, texts))


def test_keys_of_classes_of_ones_own_are_what_they_are() -> None:
    for key, plain in ((Named.A, "a"), (np.str_("b"), "b"), (np.float64(0.5), 0.5)):
        made = released([key])
        assert made.keys == (plain,) and type(made.keys[0]) is type(plain)
        assert pq.GroupedRelease.from_dict(made.to_dict()).rows() == made.rows()


def test_pandas_keys_read_alike_before_and_after() -> None:
    keys = [pd.Timedelta(7, "s"), pd.Timestamp("2262-04-11 23:47:16.854775807", tz="Asia/Tokyo")]
    made = released(keys)
    read = pq.GroupedRelease.from_dict(json.loads(json.dumps(made.to_dict())))
    assert made.rows() == read.rows() and str(made) == str(read)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *(("keys", [wrong]) for wrong in (float("nan"), "\ud800", {"timedelta64": "5 25s"}, {"timedelta64": ["1"]})),
        *(("keys", wrong) for wrong in ([{"datetime64": "now"}], ["a", "a"], None, 5)),
        *(("groups", wrong) for wrong in (None, 5)),
        *(("epsilon", wrong) for wrong in (None, "x", [1.0], True, float("nan"), 10**400)),
    ],
)
def test_descriptions_that_nothing_has_written_are_refused_by_name(name: str, wrong: Any) -> None:
    facts = released(["a"]).to_dict()
    if wrong == ["a", "a"]:
        facts["groups"] *= 2
    with pytest.raises((TypeError, ValueError), match=name):
        pq.GroupedRelease.from_dict(facts | {name: wrong})
