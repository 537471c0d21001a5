"""Unsorted columns give what sorted ones give to the same uniforms, whatever is in them and wherever buckets lie.
`PQ_COLUMNS` sets how many columns are tried, of all kinds together."""

from __future__ import annotations

import contextlib
import math
import os
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pytest

import pq
from pq.private import release as releases
from pq.private.columns import buckets, door, selection
from pq.private.columns.cells import Points, Steps
from pq.private.columns.door import UnreadColumn
from pq.private.columns.part import PartOfColumn, Unknown
from pq.private.columns.selection import Pieces, parts_of
from pq.private.fast.lanes import WALK
from pq.private.mechanisms.joint import CHAIN

Floats = npt.NDArray[np.float64]
TRIED = int(os.environ.get("PQ_COLUMNS", "100000" if os.environ.get("PQ_LONG") == "1" else "300"))
MECHANISMS = {
    "tree": {"mechanism": "tree"},
    "edge": {"adaptation": "edge"},
    "paper": {"calibration": "paper", "arity": 4},
    "replace": {"mechanism": "tree", "adjacency": "replace"},
    "joint": {"mechanism": "joint"},
    "best total": {"mechanism": "joint", "assume_smooth": True},
    "cells": {"mechanism": "cells", "assume_smooth": True, "size_guess": 1e5},
    "cells along priors": {"mechanism": "cells", "assume_smooth": True, "size_guess": 100},
    "mixed": {"mechanism": "mixed", "size_guess": 1e4},
}
PRIORS = (pq.Cauchy(0, 10), pq.Uniform(-50, 50), pq.Normal(0, 1), pq.Laplace(1e6, 1.0))


def clustered(rng: np.random.Generator, n: int) -> Floats:
    """Clumps at every scale, so that few buckets of one width hold any."""
    return np.asarray(10.0 ** rng.integers(-12, 13, n) * (1.0 + 1e-9 * rng.random(n)))


def hidden_from_the_sample(rng: np.random.Generator, n: int) -> Floats:
    """Everything that the sample takes is one number, and all else lies elsewhere, where samples can be foreseen."""
    x = rng.normal(size=n)
    x[np.random.default_rng(selection.SEED).integers(0, n, selection.SAMPLE)] = 1e9
    return x


COLUMNS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
    "lognormal": lambda rng, n: np.exp(5 * rng.normal(size=n)),
    "ages": lambda rng, n: np.floor(rng.normal(40, 10, n)),
    "one value": lambda rng, n: np.full(n, 3.0),
    "mostly one value": lambda rng, n: np.where(rng.random(n) < 0.9, 1.0, rng.normal(size=n)),
    "sorted": lambda rng, n: np.sort(rng.normal(size=n)),
    "reversed": lambda rng, n: -np.sort(rng.normal(size=n)),
    "huge": lambda rng, n: rng.choice([-1e300, 1e300, 1e-300, -1e-300, 0.0, -0.0], n) * rng.random(n),
    "infinite": lambda rng, n: rng.choice([-math.inf, math.inf, 0.0, 1.0, 5.0], n) + rng.random(n),
    "missing": lambda rng, n: np.where(rng.random(n) < 0.3, math.nan, rng.normal(size=n)),
    "some alike": lambda rng, n: np.where(rng.random(n) < 0.3, 0.0, rng.normal(size=n)),
    "half alike": lambda rng, n: np.where(rng.random(n) < 0.5, 0.25, rng.normal(size=n)),
    "thousand": lambda rng, n: rng.integers(0, 1000, n).astype(np.float64),
    "two scales": lambda rng, n: rng.normal(size=n) * rng.choice([1.0, 1e6], n),
    "next floats": lambda rng, n: 1.0 + rng.integers(0, 50, n) * 2.0**-52,
    "clustered": clustered,
    "hidden": hidden_from_the_sample,
    "two far modes": lambda rng, n: np.where(rng.random(n) < 0.5, -1e12, 1e12) + rng.normal(size=n),
}


@pytest.fixture(autouse=True, scope="module")
def machine() -> None:
    """Parts are looked up by machine code alone."""
    for kernel in selection.ENGINES:
        assert kernel.ready(1e9)


@pytest.fixture(autouse=True)
def foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples are taken in the same places every time, so that a column can mislead them."""
    monkeypatch.setattr(selection, "SEED", 0x5EED)
    monkeypatch.setattr(selection, "FEWEST", 1 << 15)


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the parts that releases are made from."""
    sizes: list[int] = []

    def spied(*arguments: Any) -> Any:
        parts, wanted = parts_of(*arguments), None
        with contextlib.suppress(StopIteration):
            while True:
                part = parts.send(wanted)
                sizes.append(len(part.values))
                wanted = yield part

    monkeypatch.setattr(releases, "parts_of", spied)
    return sizes


def same(x: Any, column: Any, quantiles: Any, **options: Any) -> bool:
    return pq.release(x, quantiles, **options).to_dict() == pq.release(column, quantiles, **options).to_dict()


def gives_what_its_sorted_self_gives(name: str, number: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Few buckets and a small sample, so that parts are small beside the column and often do not do."""
    monkeypatch.setattr(selection, "FEWEST", 64)
    monkeypatch.setattr(selection, "LITTLE", 64)
    rng = np.random.default_rng([number, *name.encode()])
    monkeypatch.setattr(buckets, "BUCKETS", int(2 ** rng.integers(4, 13)))
    monkeypatch.setattr(selection, "SAMPLE", int(2 ** rng.integers(4, 10)))
    monkeypatch.setattr(selection, "SAMPLED", float(rng.choice([0.1, 1.0, 4.0])))
    monkeypatch.setattr(selection, "BETWEEN_SHARE", float(rng.choice([0.0, 0.5, 3.0])))
    monkeypatch.setattr(selection, "OFF", float(rng.choice([0.0, 3.5])))
    x = COLUMNS[name](rng, int(10.0 ** rng.uniform(2.0, 3.9)))
    quantiles = np.sort(rng.random(int(rng.integers(1, 10)))).tolist()
    prior, epsilon = PRIORS[int(rng.integers(len(PRIORS)))], float(rng.choice([2.0, 20.0]))
    options = list(MECHANISMS.values())[number % len(MECHANISMS)]
    options = {"priors": prior, "epsilon": epsilon, "rng": int(rng.integers(2**31)), **options}
    return same(x, pq.SortedColumn(x), quantiles, **options)


@pytest.mark.parametrize("name", COLUMNS)
def test_unsorted_columns_give_what_sorted_ones_give(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(-(-TRIED // len(COLUMNS))):
        assert gives_what_its_sorted_self_gives(name, number, monkeypatch), (name, number)


def test_records_that_are_not_looked_at_do_not_decide_what_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Infinite ones did: machine code that never came near them was not used for the whole column, but for its part,
    and the two differ in the last digit."""
    assert CHAIN.ready(1e9)
    assert gives_what_its_sorted_self_gives("infinite", 2696, monkeypatch)


@pytest.mark.parametrize("on_nan", ["drop", "lowest", "highest"])
@pytest.mark.parametrize("name", ["ages", "one value", "mostly one value", "infinite", "missing", "next floats"])
def test_counted_ties_give_what_records_one_by_one_give(
    name: str, on_nan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every mechanism, with missing records at either end, too."""
    rng = np.random.default_rng([7, *name.encode()])
    for number, options in enumerate(MECHANISMS.values()):
        x = COLUMNS[name](rng, 5000)
        x[rng.random(5000) < 0.1] = math.nan if name != "one value" else 3.0
        x[rng.random(5000) < 0.3] = 2.0
        options = {"priors": pq.Cauchy(0, 10), "epsilon": 5.0, "rng": number, "on_nan": on_nan, **options}
        monkeypatch.setattr(door, "MANY", 1)
        counted = pq.SortedColumn(x)
        monkeypatch.setattr(door, "MANY", math.inf)
        values, before = counted.records(on_nan)
        each, none = pq.SortedColumn(x).records(on_nan)
        assert none is None and before is not None and np.all(np.diff(values) >= 0)
        assert np.array_equal(np.repeat(values, np.diff(before)), each)
        assert same(pq.SortedColumn(x), counted, [0.2, 0.5, 0.55, 0.9], **options)


@pytest.mark.parametrize("name", MECHANISMS)
def test_large_columns_are_released_from_a_part(name: str, looked_up: list[int]) -> None:
    x = np.random.default_rng(0).normal(size=200_000)
    options = {"priors": pq.Cauchy(0, 10), "epsilon": 10, "rng": 1, **MECHANISMS[name]}
    assert same(x, pq.SortedColumn(x), [0.1, 0.5, 0.7], **options)
    assert len(looked_up) >= 1 and max(looked_up) < len(x) * selection.COLLECTED + 3


@pytest.mark.parametrize("name", ["clustered", "two far modes", "mostly one value", "infinite", "ages", "cauchy"])
def test_hard_columns_are_released_from_a_few_parts_and_not_sorted(
    name: str, looked_up: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a node below another needs is asked for by its ranks, and that of all nodes of a level at once: by machine
    code, whether it would pay already or not."""
    assert WALK.ready(1e9)
    x = COLUMNS[name](np.random.default_rng(4), 300_000)
    column, levels = pq.SortedColumn(x), [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    options: dict[str, Any] = {"priors": pq.Cauchy(0, 10), "epsilon": 1, "mechanism": "tree"}
    expected = [pq.release(column, levels, rng=seed, **options).to_dict() for seed in range(5)]
    monkeypatch.setattr(UnreadColumn, "records", None)  # what sorts a column
    for seed in range(5):
        looked_up.clear()
        assert pq.release(x, levels, rng=seed, **options).to_dict() == expected[seed]
        assert 1 <= len(looked_up) <= 4 and max(looked_up) <= len(x) * selection.COLLECTED + len(levels)


SMALL = ["normal", "clustered", "two far modes", "mostly one value", "infinite", "cauchy"]
SMALL += ["some alike", "half alike", "thousand", "two scales"]  # what lies between targets is as many records


@pytest.mark.parametrize("mechanism", ["tree", "cells"])
@pytest.mark.parametrize("name", SMALL)
def test_a_release_takes_a_fifth_of_its_input_beside_it(name: str, mechanism: str) -> None:
    """At its peak, of what Python and numpy hold: also where nine records in ten are alike, and all others are
    collected."""
    x = COLUMNS[name](np.random.default_rng(4), 1_000_000)
    assert peak_beside(x, 9, mechanism) <= 0.2 * x.nbytes


def test_ninety_nine_joint_quantiles_take_less_than_half_of_their_input_beside_it() -> None:
    x = np.random.default_rng(4).normal(size=1_000_000)
    assert max(peak_beside(x, 99, mechanism) for mechanism in ("joint", "mixed")) <= 0.45 * x.nbytes


def peak_beside(x: Floats, count: int, mechanism: str) -> int:
    """Bytes that Python and numpy hold at most while evenly spaced quantiles are released, but for the records."""
    assert WALK.ready(1e9) and CHAIN.ready(1e9)
    options: dict[str, Any] = {"priors": pq.Cauchy(0, 10), "epsilon": 1, "rng": 1, "mechanism": mechanism}
    levels = ((np.arange(count) + 1) / (count + 1)).tolist()
    pq.release(x[:10], levels, **options)  # brings what it needs
    pq.release(x, levels, **options)
    tracemalloc.start()
    try:
        pq.release(x, levels, **options)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_few_steps_count_as_all_ranks_do() -> None:
    """Records before each value, with values that stand for none, one, or many."""
    rng = np.random.default_rng(3)
    for size in (1, 2, 7, 40):
        for _ in range(20):
            held = np.where(rng.random(size) < 0.3, rng.integers(0, 9, size), 1)
            at = np.flatnonzero(held != 1)
            steps = Steps(at, np.append(0, np.cumsum(held[at] - 1)))
            dense = np.append(0, np.cumsum(held))
            points = Points(np.arange(float(size)), steps)
            assert points.ranks is not None and points.ranks.tolist() == dense.tolist()
            assert points.n == dense[-1] and [steps[i] for i in range(size + 1)] == dense.tolist()
            ranks = np.arange(-2, dense[-1] + 3)
            assert steps.first_not_below(ranks, size).tolist() == np.searchsorted(dense, ranks, side="left").tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int16, np.uint64, ">f8"])
def test_other_types_and_chunks_are_read_as_they_are(dtype: Any, looked_up: list[int]) -> None:
    x = (100 * np.random.default_rng(1).normal(size=120_000)).clip(0, 200).astype(dtype)
    options: dict[str, Any] = {"priors": pq.Cauchy(0, 10), "epsilon": 1, "rng": 1, "mechanism": "tree"}
    columns: list[Any] = [x, x[::-1], np.ma.masked_array(x, np.zeros(len(x), bool))]
    if dtype not in (np.float16, ">f8"):
        columns += [
            pa.chunked_array([x[:50_000], x[50_000:]]),
            pl.Series(x),
            pl.concat([pl.Series(x)] * 2, rechunk=False),
        ]
    for column in columns:
        assert same(column, pq.SortedColumn(column), [0.1, 0.5, 0.9], **options)
    assert len(looked_up) >= len(columns)


def exact_part(records: Floats, quantiles: Floats, reach: float) -> PartOfColumn | None:
    return next(parts_of(Pieces([records]), quantiles, reach), None)


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("levels", [[0.001, 0.3, 0.5], [0.5, 0.505], [0.0001], [1.0]])
def test_a_part_is_the_column_but_for_its_gaps(name: str, levels: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of levels far from each other, in two passes, and near each other, in one."""
    monkeypatch.setattr(selection, "SAMPLED", 0.4)
    x = COLUMNS[name](np.random.default_rng(2), 40_000)
    known = np.clip(np.sort(x[~np.isnan(x)]), -np.finfo(float).max, np.finfo(float).max)
    part = exact_part(x, np.array(levels), 50.0)
    if part is None:  # the sample is of one number
        assert name in ("one value", "hidden")
        return
    assert part.before is not None and part.n == len(known)
    for i, value in enumerate(part.values.tolist()):
        above = int(np.searchsorted(known, value, side="right"))
        if i not in part.gaps:
            assert np.all(known[part.before[i] : part.before[i + 1]] == value)
        assert part.before[i + 1] <= above or (i, i + 1) == tuple(part.gaps[-2:])
    part.check_ranks(np.array(levels) * part.n - 50, np.array(levels) * part.n + 50)
    ends = np.concatenate([known[::997], known[::997] + 1e-3, [-np.inf, np.inf, 0.0, 0.5, 1e308]])
    if name == "hidden":  # all other records are in one bucket: whoever asks for more sorts
        with pytest.raises(Unknown):
            part.up_to(ends, None)
        return
    assert part.up_to(ends, None).tolist() == np.searchsorted(known, ends, side="right").tolist()


def test_what_is_not_known_stops_whoever_asks() -> None:
    part = PartOfColumn(np.array([1.0, 5.0, 6.0]), Steps(np.array([1]), np.array([0, 8])), gaps=np.array([1]))
    view = part.view(-math.inf, math.inf)
    assert view.n == 11
    assert view.cells(2, 3, (-math.inf, math.inf))[1].tolist() == [10, 11]
    ends = np.array([10.5, 0.0, -1e300]), np.array([10.7, 2.0, 1e300])  # the first of them asks for nothing
    for ask in (lambda: view.cells(0, 1, (0.0, 9.0)), lambda: part.view(3.0, 9.0), lambda: part.check_ranks(*ends)):
        with pytest.raises(Unknown):
            ask()


@pytest.mark.parametrize("known", [0, 2])
@pytest.mark.parametrize("mechanism", ["tree", "joint", "mixed"])
def test_a_column_of_which_a_sample_finds_no_number_is_released_like_any_other(known: int, mechanism: str) -> None:
    """So large that one pass would do for a single quantile, by a sample of it."""
    x = np.full(1_000_000, math.nan)
    x[50 : 50 + known] = np.arange(known)[::-1]
    for quantiles in ([0.5], [0.0], [0.5, 0.501]):
        values = [
            pq.release(column, quantiles, epsilon=1, priors=pq.Cauchy(0, 1), mechanism=mechanism, rng=1).values
            for column in (x, pq.SortedColumn(x))
        ]
        np.testing.assert_array_equal(*values)


@pytest.mark.parametrize("mechanism", ["tree", "joint", "mixed"])
def test_the_sign_of_a_records_zero_is_in_no_output(mechanism: str) -> None:
    """Where single floats have mass zero comes out, and bore the sign of the record above it: of two neighbours one
    gave 0.0 in a fifth of all releases and never -0.0, the other the reverse."""
    large = np.random.default_rng(0).normal(0, 1e-5, selection.FEWEST)
    tried = [(np.array([-3.0, -2.0, 4.0, 5.0]), 1), (large, selection.FEWEST)]
    for rest, count in tried if mechanism == "tree" else tried[:1]:  # a joint release takes long on many ties
        columns = [np.append(rest, np.full(count, zero)) for zero in (0.0, -0.0)]
        for seed in range(20):
            made = [
                pq.release(x, [0.5], epsilon=1, priors=pq.Laplace(0, 1e-323), mechanism=mechanism, rng=seed)
                for x in (*columns, pq.SortedColumn(columns[1]))
            ]
            assert len({one.values.tobytes() for one in made}) == 1
        assert np.signbit(columns[1][-1])


def test_a_part_that_hid_its_gaps_would_give_another_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant: unknown records all counted where the next known one is, and nobody told."""
    monkeypatch.setattr(selection, "FEWEST", 64)
    monkeypatch.setattr(selection, "LITTLE", 64)
    x = np.random.default_rng(3).normal(size=20_000)
    options: dict[str, Any] = {"priors": pq.Cauchy(0, 10), "epsilon": 0.2, "mechanism": "tree"}
    levels, differ = [0.2, 0.4, 0.5, 0.6, 0.8], 0
    column = pq.SortedColumn(x)

    def hiding(records: Pieces, quantiles: Floats, reach: float, *others: Any) -> Any:
        for part in parts_of(records, quantiles, reach / 20, *others):
            yield PartOfColumn(part.values, part.before)

    monkeypatch.setattr(releases, "parts_of", hiding)
    for seed in range(20):
        differ += not same(x, column, levels, rng=seed, **options)
    assert differ > 10
