"""Every engine keeps and counts the same records as a slow oracle, whatever odd numbers, times and texts there are.

The oracle goes record by record in Python and shares no code with the package: it says what a record's number is, which
key it has, whose it is, and which of a person's records are kept.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal
from itertools import cycle, islice
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from test_groups_engines import ENGINES, engines_stopped, spark  # noqa: F401

import pq
from pq.private.columns.grouping import GroupedColumn, open_table

LARGEST, LEAST = 1.7976931348623157e308, 5e-324
WORD = 2**64
EPOCH = dt.datetime(1970, 1, 1)
DAY = dt.timedelta(days=1)
NOON = dt.datetime(2026, 3, 1, 12, 0, 0, 1)

FLOATS = [0.0, -0.0, math.nan, None, math.inf, -math.inf, LARGEST, -LARGEST, 1.0, -1.0, LEAST, 0.1]
SINGLES = [0.0, -0.0, math.nan, None, math.inf, -math.inf, 1.0, float(np.float32(0.1)), float(np.finfo(np.float32).max)]
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {  # types, and records of them
    "floats": (pa.float64(), FLOATS),
    "singles": (pa.float32(), SINGLES),
    "integers": (pa.int64(), [0, 1, -1, 2**53, None]),
    "unsigned": (pa.uint64(), [0, 1, 2**53]),
    "booleans": (pa.bool_(), [True, False, None]),
    "decimals": (pa.decimal128(20, 2), [Decimal("0.00"), Decimal("1.00"), Decimal("0.10"), Decimal("-1"), None]),
    "dates": (pa.date32(), [dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(2026, 3, 1), None]),
    "timestamps": (pa.timestamp("us"), [EPOCH, NOON, dt.datetime(1900, 1, 1), None]),
    "nanoseconds": (pa.timestamp("ns"), [EPOCH, NOON, dt.datetime(1900, 1, 1), None]),
    "zoned": (pa.timestamp("us", "UTC"), [EPOCH.replace(tzinfo=dt.UTC), NOON.replace(tzinfo=dt.UTC), None]),
    "times": (pa.time64("us"), [dt.time(0), dt.time(12, 30, 0, 5), dt.time(23, 59, 59, 999_999), None]),
    "durations": (pa.duration("us"), [0 * DAY, DAY, -DAY, dt.timedelta(0, 0, 1), None]),
    "texts": (pa.string(), ["a", "b", "A", "", " ", "1", "nan", None]),
    "bytes": (pa.binary(), [b"a", b"\xff", b"", None]),
}
VALUES = [name for name in COLUMNS if name not in ("texts", "bytes")]
KEYS: dict[str, list[Any]] = {
    "floats": [0, 1, -1.0, 0.1],
    "texts": ["a", "1", "z", ""],
    "integers": [0, 1, 7],
    "booleans": [True],
    "dates": [dt.date(1970, 1, 1), dt.date(2026, 3, 1)],
}
PERSONS = [name for name in COLUMNS if name != "singles"]
NOT_IN = {  # what an engine has no type for, or another than Arrow's
    "spark": {"times", "durations", "unsigned"},
    "duckdb": {"durations"},  # its intervals may hold months
    "dask": {"booleans", "decimals", "dates", "times", "bytes"},  # objects become texts
}


# --- the oracle -------------------------------------------------------------------------------------------------------


def elapsed(value: Any) -> dt.timedelta | None:
    """How long a time is, or after the beginning of its count; None for what is no time."""
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None) - EPOCH
    if isinstance(value, dt.date):
        return value - EPOCH.date()
    if isinstance(value, dt.time):
        return dt.datetime.combine(EPOCH, value) - EPOCH
    return value if isinstance(value, dt.timedelta) else None


def number(value: Any) -> float | None:
    """A record's number, None for a missing one."""
    since = elapsed(value)
    value = value if since is None else since.total_seconds()
    if value is None or math.isnan(value):
        return None
    return min(max(float(value), -LARGEST), LARGEST) + 0.0


def mixed(word: int) -> int:
    word = (word + 0x9E3779B97F4A7C15) % WORD
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % WORD
    return word ^ (word >> 31)


def identity(value: Any) -> Any:
    """Who somebody is, None for nobody."""
    if value is None or (isinstance(value, str) and not value.strip()) or value != value:
        return None
    since = elapsed(value)
    return value if since is None else since // dt.timedelta(microseconds=1) * 10**12


def digest(who: Any) -> int:
    if isinstance(who, (str, bytes)):
        text = who if isinstance(who, str) else repr(who)
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
    return mixed(hash(who) % WORD)


def bits(value: float | None) -> int:
    return int(np.float64(-1.0 if value is None else value).view(np.uint64))


def kept(rows: list[tuple[int, float | None, Any]], records: int, groups: int) -> list[tuple[int, float | None]]:
    """Of each person the first few records by hash, in the first few groups by hash."""
    people: dict[Any, list[tuple[int, float | None]]] = defaultdict(list)
    for place, value, person in rows:
        if (who := identity(person)) is not None:
            people[who].append((place, value))
    out = []
    for who, own in people.items():

        def of_group(place: int, who: Any = who) -> int:
            return mixed(digest(who) ^ mixed(place))

        chosen = sorted({place for place, _ in own}, key=lambda place: (of_group(place), place))[:groups]
        lots = []
        for (place, value), alike in Counter(record for record in own if record[0] in chosen).items():
            for copy in range(min(alike, max(records, 64))):
                record = mixed(of_group(place) ^ mixed(bits(value) ^ mixed(copy)))
                lots.append((value is None, record, place, bits(value), copy, value))
        out += [(lot[2], lot[5]) for lot in sorted(lots, key=lambda lot: lot[:5])[:records]]
    return out


Held = list[tuple[dict[float, int], int]]


def oracle(table: pa.Table, keys: list[Any], others: bool, records: int, groups: int, persons: bool) -> Held:
    rows = []
    for key, value, who in zip(*(table[name].to_pylist() for name in ("key", "x", "id")), strict=True):
        place = next((i for i, one in enumerate(keys) if key is not None and key == one), len(keys))
        if place < len(keys) + others:
            rows.append((place, number(value), who))
    found = kept(rows, records, groups) if persons else [(place, value) for place, value, _ in rows]
    held: Held = []
    for i in range(len(keys) + others):
        own = [value for place, value in found if place == i]
        held.append((dict(Counter(value for value in own if value is not None)), own.count(None)))
    return held


# --- the engines ------------------------------------------------------------------------------------------------------


def rows(kind: str, key: str, person: str, seed: int) -> pa.Table:
    """A table of which every column holds odd records of its type, and none but the usual nulls."""
    rng, columns = np.random.default_rng(seed), {}
    for name, of in (("key", key), ("x", kind), ("id", person)):
        dtype, some = COLUMNS[of]
        columns[name] = pa.array([some[i] for i in rng.integers(len(some), size=120)], dtype, from_pandas=False)
    return pa.table(columns)


def read(x: Any, keys: list[Any], others: bool, records: int, groups: int, persons: bool) -> Held:
    who = "id" if persons else None
    column = GroupedColumn.of(open_table(x), value="x", by="key", keys=keys, person=who, step=None, others=others)
    found = column.read(records, groups)
    return [(dict(zip(one.values.tolist(), one.counts.tolist(), strict=True)), one.missing) for one in found]


def cases(engine: str) -> Iterator[tuple[str, str, str]]:
    """Kinds of values, keys and persons, each that the engine has at least once; a few of them in slow Spark."""
    lists = [[kind for kind in kinds if kind not in NOT_IN.get(engine, ())] for kinds in (VALUES, KEYS, PERSONS)]
    return islice(zip(*map(cycle, lists), strict=False), 0, max(map(len, lists)), 4 if engine == "spark" else 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_keep_what_the_oracle_keeps(engine: str) -> None:
    wrong = []
    for seed, (kind, key, person) in enumerate(cases(engine)):
        table, keys = rows(kind, key, person, seed), KEYS[key]
        for persons in (False, True):
            others, bounds = bool(seed % 2), (3, 2)
            expected = oracle(table, keys, others, *bounds, persons)
            try:
                found: Any = read(ENGINES[engine](table), keys, others, *bounds, persons)
            except Exception as error:
                found = error
            if found != expected:
                wrong.append((kind, key, person, persons, found if isinstance(found, Exception) else ""))
    assert not wrong


def test_durations_are_read_in_spark_as_in_arrow() -> None:
    """Of any fields, to the ends of what they hold; the least of all is a missing one, in numpy as in arrow."""
    ends = "make_dt_interval({sign}106751991, {sign}4, 0, {sign}54.775807)"
    written = {
        2**63 - 1: ends.format(sign=""),
        -(2**63) + 1: ends.format(sign="-"),
        -(2**63): "interval '-106751991 04:00:54.775808' day to second",
        1: "interval '0.000001' second",
        3 * 86_400_000_000: "interval '3' day",
        86_400_000_000: "interval '1' day",
        None: "null",
    }
    ticks = [*written, 1, 86_400_000_000]
    rows = [f"({written[tick]}, {n + 0.5}D, '{'ab'[n % 2]}')" for n, tick in enumerate(ticks)]
    query = spark().sql(f"select d, x, k from values {', '.join(rows)} as t(d, x, k)")
    columns = {"d": pa.array(ticks, pa.duration("us")), "x": [n + 0.5 for n in range(9)], "k": [*"ababababa"]}
    days = spark().sql(
        "select * from values (interval '3' day, 0.5D, 'a'), (interval '4' day, 1.5D, 'b') as t(d, x, k)"
    )
    told = [dt.timedelta(days=3), dt.timedelta(days=4)]
    for x, same in ((query, pa.table(columns)), (days, pa.table({"d": told, "x": [0.5, 1.5], "k": ["a", "b"]}))):
        for asked in ({"value": "d"}, {"value": "d", "grid": 86400}, {"value": "d", "person": "k"},
                      {"value": "x", "person": "d"}, {"value": "d", "count": "x"}):  # fmt: skip
            one, other = pq.count(x, **asked), pq.count(same, **asked)  # type: ignore[arg-type]
            assert one.kind == other.kind and one.missing == other.missing
            assert one.values.tolist() == other.values.tolist() and one.counts.tolist() == other.counts.tolist()
        for by, keys, value, person in (
            ("d", [dt.timedelta(days=3), dt.timedelta(microseconds=1)], "x", "k"),
            ("k", ["a"], "d", None),
            ("k", ["a"], "x", "d"),
        ):
            options: dict[str, Any] = {"by": by, "keys": keys, "value": value, "person": person, "epsilon": 1, "rng": 1}
            one, other = (pq.release_groups(t, [0.5], priors=pq.Normal(0, 1), **options).to_dict() for t in (x, same))
            assert one == other


REFUSED_IN: dict[str, tuple[Any, list[str]]] = {  # declared types that no ID may have, as the engine writes them
    "duckdb": (
        duckdb.sql,
        ["INTERVAL '30 days'", "[1]", "{'a': 1}", "MAP {'a': 1}", "'101'::BIT", "1::VARIANT", "1::BIGNUM",
         "'10:00:00+01'::TIMETZ", "TIME_NS '10:00:00'"],
    ),
    "spark": (
        lambda query: spark().sql(query),
        ["INTERVAL '1' MONTH", "array(1)", "struct(1)", "map('a', 1)", "parse_json('1')"],
    ),
}  # fmt: skip
ARROW_REFUSED = [
    pa.month_day_nano_interval(), pa.list_(pa.int64()), pa.struct({"a": pa.int64()}), pa.map_(pa.string(), pa.int64()),
    pa.dictionary(pa.int8(), pa.list_(pa.int64())), pa.uuid(),
]  # fmt: skip


def refuses(x: Any) -> None:
    """Before anything is charged."""
    ledger = pq.Ledger(1)
    asked: dict[str, Any] = {"by": "k", "value": "x", "keys": ["a"], "epsilon": 1, "priors": pq.Cauchy(0, 1)}
    with pytest.raises(TypeError, match="person must name a column of texts, numbers, dates or times"):
        pq.release_groups(x, [0.5], person="id", ledger=ledger, **asked)
    with pytest.raises(TypeError, match="person must name a column of texts, numbers, dates or times"):
        pq.count(x, "x", person="id")
    assert ledger.spent == 0


@pytest.mark.parametrize("engine", REFUSED_IN)
def test_engines_refuse_ids_by_their_type(engine: str) -> None:
    """Types that somebody knows to be fine are taken; what an engine may bring one day is not among them."""
    query, written = REFUSED_IN[engine]
    for some in written:
        refuses(query(f"select {some} as id, 'a' as k, 1.0 as x"))


@pytest.mark.parametrize("dtype", ARROW_REFUSED, ids=str)
def test_containers_refuse_ids_by_their_type(dtype: pa.DataType) -> None:
    for n in (0, 1):
        table = pa.table({"id": pa.nulls(n, dtype), "k": pa.array(["a"] * n, pa.string()), "x": np.ones(n)})
        refuses(table)
        if not pa.types.is_dictionary(dtype):
            refuses(table.to_pandas(types_mapper=pd.ArrowDtype))


def test_ids_of_a_data_base_may_be_its_own() -> None:
    x = duckdb.sql("select ('00000000-0000-0000-0000-00000000000' || v)::UUID as id, 1.0 as x from range(3) as t(v)")
    assert pq.count(x, "x", person="id").counts.tolist() == [3]
