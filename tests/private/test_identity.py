"""Who is one person is decided by each ID alone: no neighbour, and no code of a class, has a say."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pq
from pq.private.columns.persons import Persons

STEP = 2**61 - 1  # whole numbers that far apart have one hash
NEAR = [2**127 + j * STEP for j in range(50)]  # which numpy's 2.0**127 equals, each of them
MET: list[Any] = []  # what objects have been compared with


class Odd:
    """Equal to whatever it meets, which it remembers."""

    def __eq__(self, other: object) -> bool:
        MET.append(other)
        return True

    def __hash__(self) -> int:
        return hash(7)


class Failing(Odd):
    def __eq__(self, other: object) -> bool:
        MET.append(other)
        raise ValueError

    __hash__ = Odd.__hash__


class OddText(str):
    __eq__, __hash__, __str__ = Odd.__eq__, Odd.__hash__, None  # type: ignore[assignment]


class OddNumber(int):
    __eq__, __hash__ = Odd.__eq__, Odd.__hash__


class Few(IntEnum):
    EIGHT = 8


def deep(levels: int) -> Any:
    made: Any = (1, 2)
    for _ in range(levels):
        made = (made, 1)
    return made


ALIKE: list[list[Any]] = [  # of each list all are one person, and of different lists none are
    [7, 7.0, np.int8(7), np.uint64(7), np.longdouble(7), Decimal("7.00"), Fraction(7), pa.scalar(7)],
    [8, Few.EIGHT, OddNumber(8), np.array(8), pa.scalar(8.0), np.float16(8)],
    [1, True, np.True_, np.bool_(True), 1.0, Decimal(1), np.timedelta64(1, "s").astype(np.int64)],
    [0, -0.0, False, Decimal("-0.00"), np.float32(-0.0)],
    [0.1, np.float64(0.1), Decimal.from_float(0.1), Fraction(0.1), np.longdouble(0.1)],
    [Decimal("0.1"), Fraction(1, 10), Decimal("0.10")],
    [np.float32(0.1), float(np.float32(0.1))],
    [2**127, 2.0**127, np.float64(2.0**127), np.float32(2.0**127), Decimal(2**127), np.longdouble(2) ** 127],
    [2**127 + STEP, Decimal(2**127 + STEP)],
    [7 + STEP, np.int64(7 + STEP), Decimal(7 + STEP), np.uint64(7 + STEP)],
    [2**53 + 1, np.int64(2**53 + 1), np.longdouble(2**53 + 1)],
    [float("inf"), np.float32("inf"), Decimal("Infinity")],
    [10**400, Decimal("1E400"), Fraction(10**400)],
    [Fraction(10**400, 3)],
    ["7", np.str_("7"), OddText("7"), pa.scalar("7")],
    [b"7", np.bytes_(b"7"), pa.scalar(b"7")],
    [UUID(int=7), UUID(int=7)],
    [(7, "a"), (7.0, np.str_("a")), (OddNumber(7), OddText("a"))],
    [(7, ("a", b"b")), (np.int64(7), ("a", b"b"))],
    [dt.date(2020, 1, 1), dt.datetime(2020, 1, 1), np.datetime64("2020-01-01"), pd.Timestamp("2020-01-01")],
    [dt.timedelta(seconds=7), np.timedelta64(7, "s"), np.timedelta64(7000, "ms"), pd.Timedelta(7, "s")],
    [dt.time(0, 0, 7)],
]
NOBODY: list[Any] = [
    *(None, float("nan"), np.float32("nan"), Decimal("NaN"), Decimal("sNaN"), pd.NA, pd.NaT, np.datetime64("NaT")),
    *("", " ", OddText(" "), np.str_("\t"), [7], {}, Odd(), Failing(), object(), 7j, np.timedelta64(1, "M")),
    *(Decimal("1E999999999"), Decimal("1E-999999999"), Decimal("-1E999999999"), (), (7, None), (7, Odd()), deep(10**5)),
]
POOL = [(group, item) for group, items in enumerate(ALIKE) for item in items] + [(-1, item) for item in NOBODY]


def places(groups: list[int]) -> list[int]:
    """Numbers of persons in the order in which they come."""
    known: dict[int, int] = {}
    return [-1 if group < 0 else known.setdefault(group, len(known)) for group in groups]


def test_ids_are_one_person_whoever_stands_beside_them() -> None:
    """One ID that Python found equal to many made their persons one; one that failed made records vanish."""
    MET.clear()
    rng = np.random.default_rng(0)
    for size in (2, 3, 5, len(POOL)):
        for _ in range(400 if size < len(POOL) else 20):
            chosen = [POOL[place] for place in rng.permutation(len(POOL))[:size]]
            made = Persons.of([item for _, item in chosen])
            assert made.codes.tolist() == places([group for group, _ in chosen])
    assert MET == []  # no class was asked


def test_the_hash_of_an_id_is_its_own() -> None:
    """Alone and beside others, in whatever type it comes first."""
    for items in ALIKE:
        alone = {Persons.of([item]).digests.tolist()[0] for item in items}
        beside = {Persons.of([item for _, item in POOL] + [item]).digests.tolist()[-1] for item in items[:2]}
        assert alone == beside and len(alone) == 1


CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "objects of numpy": lambda ids: np.array([*ids, None], dtype=object)[:-1],
    "objects of pandas": lambda ids: pd.Series(ids, dtype=object),
    "objects of polars": lambda ids: pl.Series(ids, dtype=pl.Object),
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("odd", [np.float64(2.0**127), np.float32(2.0**127), Odd(), Failing()], ids=type)
def test_one_person_more_is_one_record_more(container: str, odd: Any) -> None:
    """All others keep their records, on whichever side the one stands."""
    make, ids = CONTAINERS[container], NEAR[1:]
    for ids_and_values in ([(odd, 10.0), *((one, 50.0) for one in ids)], [*((one, 50.0) for one in ids), (odd, 10.0)]):
        who, values = zip(*ids_and_values, strict=True)
        found = pq.count({"id": make(list(who)), "v": list(values)}, "v", person="id")
        own = {} if isinstance(odd, Odd) else {10.0: 1}
        assert dict(zip(found.values.tolist(), found.counts.tolist(), strict=True)) == {**own, 50.0: len(ids)}


def test_an_id_that_fails_beside_another_type_takes_no_record_with_it() -> None:
    """`Decimal` raises when it meets an integer of numpy of the same hash."""
    for ids in itertools.permutations([2, Decimal(2 + STEP), np.int64(2 + 2 * STEP)]):
        assert Persons.of(list(ids)).codes.tolist() == [0, 1, 2]
