"""Questions of the fuzzer about what lies around a release: ledgers, sessions, files, looks at a column."""

from __future__ import annotations

import bz2
import copy
import gzip
import lzma
import os
import pickle
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import pq
from pq.core.budget.ledger import BudgetExceededError
from pq.core.kind import NUMBER, Date, Duration, Timestamp
from pq.private.columns.files import INVALID, TextFormat
from pq.private.columns.grouping import GroupedColumn, open_table
from pq.private.columns.text import CellRule, TextColumn
from pq.private.groups import CHANGES
from pq.private.prepare import prepare
from pq.private.randomness import Source
from pq.sequential import DPLearned, Predictor, PubDistribution, PubPrev, PubProx, Session

QUANTILES = [0.25, 0.5, 0.75]
CELLS = ['"', '"1,2"', "", "x\x00", "1_0", "é", "1,2,3", "66,000.00", "$4", "٣", "1e999", "-inf", "nan", "2020-01-01",
         '"two\nlines"', "\r", " 7 ", "0x10", "+-3", "1e-400", "\ufeff5", '""', "1;2", "1.000,5"]  # fmt: skip
PACK = {"none": bytes, "gzip": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def some_predictor(steps: int, rng: np.random.Generator) -> Predictor:
    start: dict[str, Any] = {"loc": [-1.0, 0.0, 1.0], "scale": 1.0}
    learns = {"resolution": 0.1, "dimension": 1}
    return [
        lambda: PubPrev(QUANTILES, **start),
        lambda: PubProx(QUANTILES, **start, **learns),
        lambda: DPLearned(QUANTILES, steps=steps, epsilon=0.25, delta=1e-6, rng=rng, **start, **learns),
        lambda: PubDistribution(QUANTILES, loc=0.0, scale=1.0, dimension=1),
    ][rng.integers(4)]()


def check_session(columns: list[Any], rng: np.random.Generator) -> None:
    """A copy and a pickle go on from each day, and neither moves the original; a ledger pays for all."""
    ledger = pq.Ledger(100, delta=0.5) if rng.random() < 0.5 else None  # one in memory is not pickled
    ways = [copy.copy, copy.deepcopy, *([lambda s: pickle.loads(pickle.dumps(s))] if ledger is None else [])]
    one = Session(some_predictor(len(columns) + 2, rng), QUANTILES, epsilon=1, ledger=ledger)
    for x in columns:
        other = ways[rng.integers(len(ways))](one)
        before = one.predictor.priors([0.5]), one.count
        assert np.isfinite(other.step([0.5], x).values).all()
        assert (one.predictor.priors([0.5]), one.count) == before, "a copy moves the original"
        values = one.step([0.5], x).values
        assert np.isfinite(values).all() and (np.diff(values) >= 0.0).all()
    assert one.guarantee.epsilon == 1.0


def check_ledger(x: Any, rng: np.random.Generator) -> None:
    """What is released is charged, exactly, and never more than there is."""
    total = Fraction(int(rng.integers(1, 30)), 10)
    ledger, spent = pq.Ledger(total), Fraction(0)
    for _ in range(6):
        epsilon = [Fraction(1, 3), 0.1, 1, 1e-9, Fraction(7, 10)][rng.integers(5)]
        exact = Fraction(str(epsilon))
        mechanism = str(rng.choice(["auto", "tree", "joint", "cells"]))
        try:
            pq.release(x, [0.5], epsilon=epsilon, priors=pq.Cauchy(0, 1), ledger=ledger, mechanism=mechanism, rng=rng)
            spent += exact
        except BudgetExceededError:
            assert spent + exact > total, "refused what there is"
        assert ledger.spent == spent <= total, "charges"


def check_file(x: np.ndarray[Any, Any], rng: np.random.Generator) -> None:
    """Bytes of all sorts: read, or refused whole with one fixed sentence; line by line never refused."""
    cells = [str(v) for v in x.tolist()] + CELLS
    rng.shuffle(cells)
    by_line, compression = bool(rng.random() < 0.5), str(rng.choice(list(PACK)))
    separator = str(rng.choice([",", ";", "\t", "|"]))
    encoding = str(rng.choice(["utf-8", "latin-1", "utf-16", "cp1252"]))
    encoding = "iso2022_jp" if by_line and encoding == "utf-16" else encoding  # whose lines no byte ends
    shown = cells if by_line or rng.random() < 0.5 else [str(v) for v in x.tolist()]
    content = ("value\n" + "\n".join(shown)).encode(encoding, errors="replace")
    if rng.random() < 0.2 and not by_line:
        content = rng.bytes(int(rng.integers(60)))
    packed = PACK[compression](content)
    if rng.random() < 0.1 and not by_line:
        packed = packed[: int(rng.integers(len(packed) + 1))]
    form = TextFormat(separator=separator, encoding=encoding, compression=compression, by_line=by_line)
    try:
        read = form.column(packed, "value")
    except ValueError as error:
        said = str(error)
        if by_line or not (said == INVALID or said.startswith("column: the header row has no column")):
            raise
        return
    kind = [NUMBER, Date(), Timestamp(), Duration()][rng.integers(4)]
    marks: Any = [{}, {"thousands": ","}, {"decimal": ",", "thousands": "."}][rng.integers(3)]
    column = TextColumn(read, CellRule(kind, **marks))
    check_inspection(column, len(read))
    values = pq.release(column, [0.5], epsilon=1, priors=pq.Cauchy(0, 1), mechanism="tree", rng=rng).values
    assert values.shape == (1,)


def check_inspection(x: Any, most: int) -> None:
    found = pq.inspect(x)
    assert 0 <= found.unread <= most and set(found.to_dict()) == {"private", "kind", "unit", "rule", "unread"}
    assert str(found.unread) in str(found)


def check_forks(x: Any) -> None:
    """Two forks of one process and the process itself draw different noise."""
    drawn = []
    for _ in range(2):
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(theirs, Source().uniforms(4).tobytes())
            finally:
                os._exit(0)
        os.close(theirs)
        drawn.append(os.read(ours, 100))
        os.close(ours)
        assert os.waitpid(child, 0)[1] == 0
    drawn.append(Source().uniforms(4).tobytes())
    assert len(set(drawn)) == 3 and all(len(one) == 32 for one in drawn), "shared noise"
    assert pq.release(x, [0.5], epsilon=1, priors=pq.Cauchy(0, 1), mechanism="tree").values.shape == (1,)


def check_file_of_a_ledger(x: Any, rng: np.random.Generator) -> None:
    """A ledger on disk has what was spent, for whoever opens it next; what does not fit is refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "one.ledger"
        pq.Ledger.open(path, total=2)
        spent = 0
        for _ in range(int(rng.integers(1, 5))):
            try:
                pq.release(x, [0.5], epsilon=1, priors=pq.Cauchy(0, 1), ledger=path, mechanism="tree", rng=rng)
                spent += 1
            except BudgetExceededError:
                assert spent == 2, "refused what there is"
        assert pq.Ledger.open(path).spent == spent <= 2, "charges on disk"


TEAMS = ["a", "b", "c"]
TYPES = (("team", object), ("age", float), ("who", object))
OTHER_TEAMS = ["z", "A", "a ", "", None]


def some_table(x: np.ndarray[Any, Any], rng: np.random.Generator) -> dict[str, list[Any]]:
    """Rows of a table: a team, a number and a person each."""
    teams: list[Any] = [*TEAMS * 3, *OTHER_TEAMS]
    chosen = [teams[place] for place in rng.integers(len(teams), size=len(x))]
    return {"team": chosen, "age": x.tolist(), "who": [f"p{place}" for place in rng.integers(0, 8, size=len(x))]}


def in_pandas(table: dict[str, list[Any]]) -> pd.DataFrame:
    return pd.DataFrame({column: pd.Series(table[column], dtype=kind) for column, kind in TYPES})


def in_arrow(table: dict[str, list[Any]]) -> pa.Table:
    return pa.table(table, schema=pa.schema([("team", pa.string()), ("age", pa.float64()), ("who", pa.string())]))


ENGINES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "mapping": lambda table: table,
    "polars": lambda table: pl.LazyFrame(table, schema={"team": pl.String, "age": pl.Float64, "who": pl.String}),
    "pandas": in_pandas,
    "pyarrow": in_arrow,
    "duckdb": lambda table: duckdb.from_arrow(in_arrow(table)),
    "dask": lambda table: dd.from_pandas(in_pandas(table), npartitions=2),
}


def check_grouped(
    x: np.ndarray[Any, Any], arguments: dict[str, Any], rng: np.random.Generator, check: Any,
    within: Callable[[float, dict[str, Any]], float],
) -> float | None:  # fmt: skip
    """A release of three groups has each of them, and two tables that differ in one person lose at most epsilon in all.

    x: of the rows. check: of one release. Returns the loss over epsilon.
    """
    rest = {name: value for name, value in arguments.items() if name not in ("quantiles", "max_contributions")}
    rest["priors"] = rest["priors"] if isinstance(rest["priors"], pq.core.priors.Prior) else rest["priors"][0]
    quantiles, groups = arguments["quantiles"][:3], int(rng.integers(1, 3))
    records = groups + int(rng.integers(0, 2))
    engine, unknown = str(rng.choice(list(ENGINES))), str(rng.choice(["drop", "other"]))
    try:
        prepare(quantiles, max_contributions=records, **rest)
    except ValueError:  # a budget that is too small for so many records
        return None
    person = "who" if rng.random() < 0.7 else None
    table = some_table(x, rng)
    gone = f"p{rng.integers(0, 8)}"
    rows = [row for row, who in enumerate(table["who"]) if who == gone]
    rows = rows if person is not None else rows[:records]
    other = {name: [item for row, item in enumerate(column) if row not in rows] for name, column in table.items()}
    if arguments["adjacency"] == "replace":
        again = some_table(x[rng.permutation(len(x))[: len(rows)]], rng)
        other = {name: other[name] + again[name] for name in other}
        other["who"][len(x) - len(rows) :] = ["somebody else"] * len(rows)
    one, two = (ENGINES[engine](one) for one in ((table, other) if rng.random() < 0.5 else (other, table)))
    asked: dict[str, Any] = {"by": "team", "value": "age", "keys": TEAMS, "person": person, "unknown": unknown}
    made = pq.release_groups(one, quantiles, **asked, max_groups=groups, max_contributions=records, rng=rng, **rest)
    assert list(made.releases) == TEAMS + ["other"] * (unknown == "other"), "keys"
    for release in made.groups:
        check(release, arguments | {"quantiles": quantiles})
    assert pq.GroupedRelease.from_dict(made.to_dict()).to_dict() == made.to_dict() and str(made)
    if arguments["epsilon"] > 1000:
        return None
    step = made.groups[0].grid and pq.core.grid.grid_step(arguments["grid"])
    columns = [
        GroupedColumn.of(
            open_table(side), value="age", by="team", keys=TEAMS, person=person, step=step, others=unknown == "other"
        ).read(records, groups)
        for side in (one, two)
    ]
    rest |= {"adjacency": "add-remove", "max_contributions": records * CHANGES[arguments["adjacency"]]}
    losses = [
        pq.privacy_loss(a, b, release, quantiles, **rest) for a, b, release in zip(*columns, made.groups, strict=True)
    ]
    return within(sum(losses), arguments)
