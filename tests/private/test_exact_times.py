"""IDs and keys that are times are compared exactly, in whatever type, unit, zone and container they come."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import dask
import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pq
from pq.core.seconds import seconds_of
from pq.private.columns.grouping import GroupedColumn, open_table
from pq.private.columns.identity import identity_of
from pq.private.columns.keys import KeyColumn, keys_of_texts
from pq.private.columns.persons import Persons

NEAR = 1_700_000_000_000_000_000  # nanoseconds since 1970, in 2023
FAR = 9_214_646_400_000_001  # microseconds, in 2262, which float64 seconds do not tell apart
NOON = 43_200 * 10**9
ZONE = "Europe/Paris"
Rows = dict[str, Any]


def in_duckdb(rows: Rows) -> Any:
    table = pa.table(rows)
    return duckdb.connect().from_arrow(table).select("*")


def cursor(rows: Rows) -> Any:
    connection = duckdb.connect()
    connection.register("t", pa.table(rows))
    return connection.execute("select * from t")


def ticks(count: list[int], code: str) -> Any:
    return np.array(count, np.int64).view(code)


def arrow(count: list[int], dtype: Any) -> Any:
    return pa.array(count, pa.int64()).cast(dtype)


def frame(make: Callable[[list[int]], Any]) -> Callable[[list[int], Rows], Any]:
    return lambda count, rest: pd.DataFrame({"p": make(count), **rest})


def in_table(dtype: Any, of: Callable[[Rows], Any] = pa.table) -> Callable[[list[int], Rows], Any]:
    return lambda count, rest: of({"p": arrow(count, dtype), **rest})


def mapping(make: Callable[[list[int]], Any]) -> Callable[[list[int], Rows], Any]:
    return lambda count, rest: {"p": make(count), **rest}


def dask_of(make: Callable[[list[int]], Any]) -> Callable[[list[int], Rows], Any]:
    return lambda count, rest: dd.from_pandas(frame(make)(count, rest), npartitions=1)


SECONDS, NS, US = pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("us")
TABLES: dict[str, tuple[int, str, Callable[[list[int], Rows], Any]]] = {  # a tick, numpy's type, a table of ticks
    "numpy in a list": (NEAR, "M8[ns]", mapping(lambda n: list(ticks(n, "M8[ns]")))),
    "durations of numpy in a list": (NEAR, "m8[ns]", mapping(lambda n: list(ticks(n, "m8[ns]")))),
    "pandas in a list": (NEAR, "M8[ns]", mapping(lambda n: [pd.Timestamp(one, tz=ZONE) for one in n])),
    "durations of pandas in a list": (NEAR, "m8[ns]", mapping(lambda n: [pd.Timedelta(one) for one in n])),
    "arrow in a list": (NEAR, "M8[ns]", mapping(lambda n: list(arrow(n, NS)))),
    "times of arrow in a list": (NOON, "", mapping(lambda n: list(arrow(n, pa.time64("ns"))))),
    "tuples in a list": (NEAR, "M8[ns]", mapping(lambda n: [(one, "x") for one in ticks(n, "M8[ns]")])),
    "python in a list": (FAR, "M8[us]", mapping(lambda n: ticks(n, "M8[us]").tolist())),
    "objects of numpy": (NEAR, "M8[ns]", mapping(lambda n: np.array(list(ticks(n, "M8[ns]")), object))),
    "numpy": (NEAR, "M8[ns]", mapping(lambda n: ticks(n, "M8[ns]"))),
    "numpy, picoseconds": (NEAR, "M8[ps]", mapping(lambda n: ticks(n, "M8[ps]"))),
    "numpy, far": (FAR, "M8[us]", mapping(lambda n: ticks(n, "M8[us]"))),
    "numpy, other bytes": (NEAR, "M8[ns]", mapping(lambda n: ticks(n, "M8[ns]").astype(">M8[ns]"))),
    "numpy, masked": (NEAR, "M8[ns]", mapping(lambda n: np.ma.array(ticks(n, "M8[ns]"), mask=False))),
    "durations of numpy": (NEAR, "m8[ns]", mapping(lambda n: ticks(n, "m8[ns]"))),
    "months of numpy": (2**40, "M8[M]", mapping(lambda n: ticks(n, "M8[M]"))),
    "pandas": (NEAR, "M8[ns]", frame(lambda n: ticks(n, "M8[ns]"))),
    "pandas, far": (FAR, "M8[us]", frame(lambda n: ticks(n, "M8[us]"))),
    "pandas of a zone": (NEAR, "M8[ns]", frame(lambda n: pd.to_datetime(n, utc=True).tz_convert(ZONE))),
    "categories of pandas": (NEAR, "M8[ns]", frame(lambda n: pd.Series(ticks(n, "M8[ns]")).astype("category"))),
    "pandas of arrow": (NEAR, "M8[ns]", frame(lambda n: pd.Series(arrow(n, NS), dtype=pd.ArrowDtype(NS)))),
    "objects of pandas": (NEAR, "M8[ns]", frame(lambda n: pd.Series([pd.Timestamp(one) for one in n], dtype=object))),
    "polars": (NEAR, "M8[ns]", in_table(NS, pl.DataFrame)),
    "polars, lazy": (NEAR, "M8[ns]", in_table(NS, pl.LazyFrame)),
    "polars of a zone, far": (FAR, "M8[us]", in_table(pa.timestamp("us", ZONE), pl.DataFrame)),
    "durations of polars": (5, "m8[ns]", in_table(pa.duration("ns"), pl.DataFrame)),
    "times of polars": (NOON, "", in_table(pa.time64("ns"), pl.DataFrame)),
    "pyarrow": (NEAR, "M8[ns]", in_table(NS)),
    "pyarrow, far": (FAR, "M8[us]", in_table(US)),
    "durations of pyarrow": (5, "m8[ns]", in_table(pa.duration("ns"))),
    "times of pyarrow": (NOON, "", in_table(pa.time64("ns"))),
    "dictionary": (NEAR, "M8[ns]", lambda n, rest: pa.table({"p": arrow(n, NS).dictionary_encode(), **rest})),
    "duckdb": (NEAR, "M8[ns]", in_table(NS, in_duckdb)),
    "duckdb, far": (FAR, "M8[us]", in_table(US, in_duckdb)),
    "duckdb of a zone, far": (FAR, "M8[us]", in_table(pa.timestamp("us", "UTC"), in_duckdb)),
    "cursor": (NEAR, "M8[ns]", in_table(NS, cursor)),
    "dask": (NEAR, "M8[ns]", dask_of(lambda n: ticks(n, "M8[ns]"))),
    "dask of arrow": (NEAR, "M8[ns]", dask_of(lambda n: pd.Series(arrow(n, NS), dtype=pd.ArrowDtype(NS)))),
}  # fmt: skip
NO_KEYS = ("tuples in a list", "arrow in a list", "times of arrow in a list")  # whose objects equal no key
FACTS: Any = {"epsilon": 1, "priors": pq.Uniform(0, 10), "mechanism": "cells", "size_guess": 10}


def records_of(table: Any) -> pq.Counts:
    return pq.count(table, "v", person="p")


def by_key(table: Any, *, by: str, keys: list[Any], person: str | None = None, others: bool = False) -> list[pq.Counts]:
    """The records that `pq.release_groups` releases."""
    opened = open_table(table)
    column = GroupedColumn.of(opened, value="v", by=by, keys=keys, person=person, step=None, others=others)
    return column.read(1, 1)


@pytest.mark.parametrize("name", TABLES)
def test_one_tick_makes_two_persons(name: str) -> None:
    """They were one, whose second record could displace the first: a loss of twice epsilon."""
    first, _, make = TABLES[name]
    one = {"v": [0.25], "k": ["g"]}
    with dask.config.set(scheduler="synchronous"):
        alone = records_of(make([first], one)), *by_key(make([first], one), by="k", keys=["g"], person="p")
        for i, value in enumerate((1.5, 3.0, 6.5)):
            ids, values = [first + i % 2, first + 1 - i % 2], [(0.25, value)[i % 2], (value, 0.25)[i % 2]]
            rows = {"v": values, "k": ["g", "g"]}
            both = records_of(make(ids, rows)), *by_key(make(ids, rows), by="k", keys=["g"], person="p")
            for less, more in zip(alone, both, strict=True):
                assert (less.values.tolist(), more.values.tolist()) == ([0.25], [0.25, value])
                released = pq.release(less, [0.5], rng=0, **FACTS)
                assert abs(pq.privacy_loss(less, more, released, [0.5], **FACTS)) <= 1 + 1e-9


@pytest.mark.parametrize("name", [name for name in TABLES if name not in NO_KEYS])
def test_one_tick_makes_two_keys(name: str) -> None:
    """They were one group; and a key lost what is finer than a microsecond on its way."""
    first, code, make = TABLES[name]
    keys: list[Any] = list(ticks([first, first + 1], code)) if code else [dt.time(12)]  # there is none a tick later
    rows = {"v": [1.0, 2.0, 2.0], "k": ["g"] * 3}
    with dask.config.set(scheduler="synchronous"):
        found = by_key(make([first, first + 1, first + 1], rows), by="p", keys=keys, others=True)
        made = pq.release_groups(
            make([first], {"v": [1.0]}), [0.5], by="p", value="v", keys=keys, epsilon=1, priors=pq.Uniform(0, 3), rng=0
        )
    assert [one.counts.tolist() for one in found] == [[1], [2], []][: len(keys) + 1]
    assert [made.releases[key] for key in keys] == list(made.groups)
    assert all(identity_of(key) == identity_of(given) for key, given in zip(made.keys, keys, strict=True))
    again = pq.GroupedRelease.from_dict(json.loads(json.dumps(made.to_dict())))
    assert again.keys == made.keys and str(again) == str(made)


DAY = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
INSTANT = int(DAY.timestamp())
SAME: list[list[Any]] = [  # of each list all are one, and of different lists none are
    [
        *(
            DAY,
            DAY.replace(tzinfo=None),
            DAY.astimezone(ZoneInfo(ZONE)),
            pd.Timestamp(DAY),
            pa.scalar(INSTANT, SECONDS),
        ),
        *(pd.Timestamp(DAY).tz_convert("Asia/Tokyo"), np.datetime64(INSTANT, "s"), np.datetime64(INSTANT // 3600, "h")),
        np.datetime64(INSTANT * 1000, "ms"),
        *(np.datetime64(INSTANT * 10**6, "us"), np.datetime64(INSTANT * 10**9, "ns"), pa.scalar(INSTANT * 10**9, NS)),
    ],
    [np.datetime64(INSTANT * 10**9 + 1, "ns"), pd.Timestamp(INSTANT * 10**9 + 1), pa.scalar(INSTANT * 10**9 + 1, NS)],
    [np.datetime64(1, "as")],
    [np.datetime64(2, "as")],
    [
        np.datetime64("1970"),
        np.datetime64("1970-01"),
        np.datetime64("1970-01-01"),
        dt.date(1970, 1, 1),
        dt.datetime(1970, 1, 1),
    ],
    [np.datetime64("2000", "Y"), np.datetime64("2000-01", "M"), dt.date(2000, 1, 1)],
    [np.datetime64("1969-11", "M"), dt.date(1969, 11, 1), pa.scalar(dt.date(1969, 11, 1))],
    [np.datetime64(1, "W"), dt.date(1970, 1, 8)],
    [np.datetime64(2**40, "Y"), np.datetime64(12 * 2**40, "M")],
    [np.datetime64(2**40 + 1, "Y")],
    [np.datetime64(2**62, "D")],
    [np.datetime64(2**62 + 1, "D")],
    [np.timedelta64(1, "W"), dt.timedelta(7), np.timedelta64(7, "D"), pd.Timedelta(7, "D"), pa.scalar(dt.timedelta(7))],
    [np.timedelta64(5, "ns"), pd.Timedelta(5), np.timedelta64(5000, "ps"), pa.scalar(5, pa.duration("ns"))],
    [dt.timedelta.max],
    [dt.timedelta.max - dt.timedelta.resolution],
    [dt.time(12), dt.time(13, tzinfo=dt.timezone(dt.timedelta(hours=1))), pa.scalar(NOON, pa.time64("ns"))],
    [dt.time(13), pa.scalar(13 * 3600, pa.time32("s"))],
    [pa.scalar(NOON + 1, pa.time64("ns"))],
]
NONE: list[Any] = [pd.NaT, np.datetime64("NaT"), np.timedelta64("NaT"), np.timedelta64(1, "M"), pa.scalar(None, NS)]


def test_equal_times_are_one_person_and_others_are_not() -> None:
    """Whoever stands before or after them."""
    pool = [(group, item) for group, items in enumerate(SAME) for item in items] + [(-1, item) for item in NONE]
    rng = np.random.default_rng(0)
    digests = {}
    for _ in range(20):
        chosen = [pool[place] for place in rng.permutation(len(pool))]
        known: dict[int, int] = {}
        made = Persons.of([item for _, item in chosen])
        assert made.codes.tolist() == [-1 if g < 0 else known.setdefault(g, len(known)) for g, _ in chosen]
        for (group, _), digest in zip(chosen, made.digests.tolist(), strict=True):
            assert group < 0 or digests.setdefault(group, digest) == digest


@pytest.mark.parametrize("count", [[NOON, NOON + 1, None], [0, 2**50, None]])
def test_columns_of_every_unit_have_the_ids_of_the_list(count: list[Any]) -> None:
    """Of the same ticks in a column of some type and one by one, whatever others there are."""
    units: dict[str, Any] = {"ns": pa.time64("ns")} if count[0] else {}
    types = [*units.values(), *(of(unit) for of in (pa.timestamp, pa.duration) for unit in ("s", "ms", "us", "ns"))]
    for dtype in types:
        column = pa.array(count, pa.int64()).cast(dtype)
        for held in (column, pl.Series(column), pd.Series(column, dtype=pd.ArrowDtype(dtype))):
            made, listed = Persons.of(held, times=True), Persons.of(list(column))
            assert made.codes.tolist() == listed.codes.tolist() == [0, 1, -1]
            assert made.digests.tolist()[:2] == listed.digests.tolist()[:2]
            for i in (0, 1):
                assert Persons.of(held[i : i + 1], times=True).digests.tolist() == made.digests.tolist()[i : i + 1]


def test_what_is_kept_of_a_person_is_the_same_whoever_else_is_there() -> None:
    rng = np.random.default_rng(3)
    ids, values = NEAR + rng.integers(0, 40, 300), np.round(rng.uniform(0, 10, 300), 3)
    whole = pl.DataFrame({"p": ticks(ids.tolist(), "M8[ns]"), "v": values})
    found: dict[float, int] = {}
    for one in np.unique(ids).tolist():
        own = pq.count(whole.filter(pl.col("p").to_physical() == one), "v", person="p", max_contributions=2)
        for value, records in zip(own.values.tolist(), own.counts.tolist(), strict=True):
            found[value] = found.get(value, 0) + records
    kept = pq.count(whole, "v", person="p", max_contributions=2)
    assert dict(zip(kept.values.tolist(), kept.counts.tolist(), strict=True)) == found


def test_keys_in_texts_are_exact_or_refused() -> None:
    table = pl.DataFrame({"p": ticks([FAR, FAR + 1], "M8[us]"), "v": [1.0, 2.0]})
    column = KeyColumn.of(open_table(table), "p")
    texts = [(dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=FAR + i)).isoformat() for i in (0, 1)]
    found = by_key(table, by="p", keys=keys_of_texts(texts, column))
    assert [one.values.tolist() for one in found] == [[1.0], [2.0]]
    with pytest.raises(ValueError, match="keys must be whole microseconds"):
        keys_of_texts(["2026-03-01T12:30:00.000000001"], column)


@pytest.mark.parametrize("key", [pd.NaT, np.datetime64("NaT"), np.timedelta64(1, "M"), np.timedelta64(1)])
def test_keys_that_are_no_times_are_refused_by_name(key: Any) -> None:
    for table in ({"p": [1, 2], "v": [1.0, 2.0]}, pl.DataFrame({"p": ticks([1, 2], "M8[ns]"), "v": [1.0, 2.0]})):
        with pytest.raises(ValueError, match="keys must not be missing"):
            by_key(table, by="p", keys=[key])
    with pytest.raises(TypeError, match="keys must be of the column's kind"):
        by_key(table, by="p", keys=[dt.time(12)])


def test_a_pandas_key_keeps_its_nanoseconds() -> None:
    keys = [pd.Timestamp(NEAR + i, tz=ZONE) for i in (0, 1)]
    table = pd.DataFrame({"p": [*keys, keys[0]], "v": [1.0, 2.0, 1.0]})
    assert [one.counts.tolist() for one in by_key(table, by="p", keys=keys)] == [[2], [1]]
    made = pq.release_groups(table, [0.5], by="p", value="v", keys=keys, epsilon=1, priors=pq.Uniform(0, 3), rng=0)
    assert list(made.keys) == keys
    again = pq.GroupedRelease.from_dict(made.to_dict())
    assert [identity_of(key) for key in again.keys] == [identity_of(key) for key in keys]
    for damaged in ("x", "NaT"):
        with pytest.raises(ValueError, match="keys must hold a datetime64"):
            pq.GroupedRelease.from_dict({**made.to_dict(), "keys": [{"datetime64": damaged}] * 2})


def test_what_a_cursor_cannot_give_in_nanoseconds_is_refused_as_an_id() -> None:
    connection = duckdb.connect()
    connection.execute("select 5::uhugeint v, make_timestamp_ns(1700000000000000001) p")
    with pytest.raises(TypeError, match="person must name a column"):
        pq.count(connection, "v", person="p")


class LyingLength(dt.timedelta):
    """Its own methods say that it is another length, or nothing that can be compared."""

    days = property(lambda self: 1)  # type: ignore[assignment]

    def __floordiv__(self, other: Any) -> Any:
        return {}

    def __hash__(self) -> int:
        raise RuntimeError


class LyingDay(dt.date):
    def toordinal(self) -> int:
        return 1


class LyingStamp(dt.datetime):
    tzinfo = property(lambda self: None)  # type: ignore[assignment]

    def __sub__(self, other: Any) -> Any:
        return dt.timedelta(1)


class LyingTime(dt.time):
    hour = property(lambda self: 1)  # type: ignore[assignment]

    def utcoffset(self) -> dt.timedelta:
        return dt.timedelta(hours=1)


class NoLength:
    __class__ = property(lambda self: dt.timedelta)  # type: ignore[assignment]

    def __floordiv__(self, other: Any) -> Any:
        return {}


HOUR = dt.timezone(dt.timedelta(hours=1))
LIARS = [
    (LyingLength(seconds=-5), dt.timedelta(seconds=-5)),
    (LyingDay(2020, 5, 6), dt.date(2020, 5, 6)),
    (LyingStamp(2020, 5, 6, 7, tzinfo=HOUR), dt.datetime(2020, 5, 6, 7, tzinfo=HOUR)),
    (LyingTime(3, 4, 5), dt.time(3, 4, 5)),
]


@pytest.mark.parametrize(("liar", "plain"), LIARS)
def test_a_time_is_what_its_builtin_class_says(liar: Any, plain: Any) -> None:
    """A class that is derived from these took another person's form, or one that nothing can compare."""
    assert identity_of(liar) == identity_of(plain) is not None
    assert identity_of((liar, 1)) == identity_of((plain, 1)) is not None
    assert seconds_of(liar) == seconds_of(plain)


def test_what_only_says_that_it_is_a_time_is_no_id() -> None:
    assert identity_of(NoLength()) is None and identity_of((NoLength(), 1)) is None


def test_tuples_in_tuples_have_forms_as_long_as_they_are() -> None:
    """They doubled at each level, so that one record of thirty took all memory."""
    one: Any = ("a'", 1)
    for _ in range(60):
        one = (one, 2)
    form = identity_of(one)
    assert isinstance(form, tuple) and len(form[1]) < 2_000
    shapes = [
        ("a", ("b", 1)),
        (("a", "b"), 1),
        ("a", "b", 1),
        ("a", ("b", 1), ()),
        ("t3:r'a'", 1),
        ("a", "r1"),
        ("a", 1),
    ]
    assert len({identity_of(shape) for shape in shapes if () not in shape}) == len(shapes) - 1
