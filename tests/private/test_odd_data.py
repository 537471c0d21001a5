"""Odd private data never raise, warn or change a shape; odd public arguments raise before the data are touched."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pq
from pq.private.columns import reduce
from pq.private.columns.frames import records_of

QS = [0.1, 0.5, 0.9]


def release(x: Any, **keywords: Any) -> np.ndarray:
    return pq.release(x, QS, **{"epsilon": 1, "priors": pq.Cauchy(0, 10), "rng": 0, **keywords}).values


ODD: dict[str, Any] = {
    "empty list": [],
    "empty array": np.array([]),
    "one": [3.0],
    "two equal": [3, 3],
    "all equal": np.full(50, 7.0),
    "all NaN": np.full(9, np.nan),
    "some NaN": [1.0, math.nan, 2.0],
    "infinities": [math.inf, -math.inf, 0.0, math.inf],
    "only infinity": [math.inf] * 5,
    "None": [1.0, None, 2.0],
    "text among numbers": [1.0, "a", 2.0],
    "lists among numbers": [1.0, [2.0], 3.0],
    "complex among numbers": [1.0, 2j],
    "huge": [1e308, -1e308, 1.7e308],
    "denormal": [5e-324, 0.0, -5e-324],
    "near 1e9": 1e9 + np.arange(20) * 1e-3,
    "tiny scale": np.linspace(0, 1e-6, 20),
    "far from the prior": np.full(10, 1e200),
    "uint8": np.array([0, 10, 255], dtype=np.uint8),
    "int8": np.array([-128, 127], dtype=np.int8),
    "beyond 2^53": np.array([2**53 + 1, 2**62], dtype=np.int64),
    "Python integers beyond int64": [2**70, -(2**70), 10**400],
    "bool": np.array([True, False]),
    "float32": np.array([0.1, 0.2], dtype=np.float32),
    "longdouble": np.array([0.1, 0.2], dtype=np.longdouble),
    "masked": np.ma.masked_array([1.0, 2.0, 3.0], mask=[False, True, False]),
    "generator": (float(k) for k in range(5)),
    "range": range(10),
}
WAYS: list[dict[str, Any]] = [
    {},
    {"adaptation": "edge"},
    {"calibration": "paper", "arity": 3},
    {"grid": 1},
    {"grid": 1e-3, "adaptation": "edge"},
    {"priors": pq.Uniform(0, 1)},
    {"priors": pq.Uniform(0, 1), "adaptation": "edge", "grid": 0.1},
    {"epsilon": 1e-6},
    {"epsilon": 1e3},
    {"epsilon": math.inf},
    {"on_nan": "lowest", "adjacency": "replace"},
    {"on_nan": "highest"},
]


@pytest.mark.parametrize("name", ODD)
def test_odd_columns_give_three_finite_ordered_numbers(name: str) -> None:
    x = list(ODD[name]) if name == "generator" else ODD[name]
    for way in WAYS:
        values = release(x, **way)
        assert values.shape == (3,) and np.all(np.isfinite(values)) and np.all(np.diff(values) >= 0)


@pytest.mark.parametrize("name", [n for n in ODD if n != "generator"])
def test_odd_columns_have_a_law(name: str) -> None:
    """With an infinite budget and infinite records the best cell, beyond the largest float, holds no float."""
    for way in (way for way in WAYS if way.get("epsilon") != math.inf):
        keywords = {"epsilon": 1, "priors": pq.Cauchy(0, 10), **way}
        value = pq.log_density(ODD[name], release(ODD[name], **way), QS, mechanism="tree", **keywords)
        assert not math.isnan(value) and value > -math.inf


records = st.one_of(st.floats(), st.integers(), st.none(), st.booleans(), st.text(max_size=3), st.binary(max_size=2))


@settings(max_examples=300)
@given(st.lists(records, max_size=8), st.sampled_from(WAYS))
def test_no_column_raises_or_warns(x: list[Any], way: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = release(x, **way)
    assert values.shape == (3,) and np.all(np.isfinite(values))


def test_missing_records_are_dropped_or_counted_as_declared() -> None:
    x = [1.0, math.nan, 3.0, None, 2.0]
    assert records_of(x)[0].tolist() == [1, 2, 3]
    low, high = records_of(x, "lowest")[0], records_of(x, "highest")[0]
    assert low[2:].tolist() == [1, 2, 3] and high[:3].tolist() == [1, 2, 3]
    assert np.all(low[:2] < -1e300) and np.all(high[3:] > 1e300) and np.all(np.isfinite([*low, *high]))


def test_a_missing_record_changes_nothing_but_its_own_contribution() -> None:
    """A NaN neither raises the answer, nor shifts every rank, nor takes the noise away."""
    x = np.arange(100.0)
    assert release([*x, math.nan]).tolist() == release(x).tolist()
    assert len({release([*x, math.nan], rng=s)[1] for s in range(20)}) == 20
    assert all(v not in x for v in release([*x, math.nan]))


def test_the_callers_array_is_never_changed() -> None:
    x = np.array([3.0, math.nan, -math.inf, 1.0])
    x.flags.writeable = False
    release(x)
    y = np.array([-math.inf, 1.0, 2.0, math.inf])
    before = y.copy()
    release(y)
    assert np.array_equal(y, before)


@pytest.mark.parametrize("convert", [list, tuple, np.float32, np.asarray], ids=["list", "tuple", "float32", "array"])
def test_every_container_gives_the_same_answer(convert: Callable[[Any], Any]) -> None:
    x = np.array([0.5, 0.25, 4.0, 8.0, 2.5])
    assert release(convert(x)).tolist() == release(x).tolist()


def test_no_record_changes_how_another_is_read() -> None:
    """Zero-dimensional arrays, which numpy reads as numbers unless something else stands beside them."""
    alone, beside = records_of([np.array(3.0)] * 3)[0], records_of([np.array(3.0)] * 3 + [None])[0]  # type: ignore[list-item]
    assert alone.tolist() == beside.tolist()
    pa = pytest.importorskip("pyarrow")
    assert (
        records_of(pa.array([True, False, None]))[0].tolist()
        == records_of(pa.array([True, False]))[0].tolist()
        == [0, 1]
    )


def test_a_view_with_strides_is_a_column_in_any_order() -> None:
    for x in (np.repeat(np.arange(5.0), 2)[::2], np.repeat(np.arange(5.0), 2)[::-2]):
        assert not x.flags.c_contiguous
        assert release(x).tolist() == release(x.copy()).tolist()
        assert release(x, grid=1).tolist() == release(x.copy(), grid=1).tolist()


def test_memory_of_any_kind_is_a_column(tmp_path: Any) -> None:
    """Big-endian, askew in memory, read-only, mapped from a file, a subclass: the same answer, sorted or not."""
    for x in (np.arange(7.0), np.arange(7.0)[::-1].copy()):
        askew = np.frombuffer(b"\0" + x.tobytes(), dtype=np.uint8)[1:].view(np.float64)
        assert not askew.flags.aligned
        x.tofile(tmp_path / "x.bin")
        mapped = np.memmap(tmp_path / "x.bin", dtype=np.float64, mode="r")
        for other in (askew, mapped, x.astype(">f8"), np.ma.masked_array(x), x.view(np.recarray)):
            for grid in (None, 1):
                assert release(other, grid=grid).tolist() == release(x, grid=grid).tolist()


def test_small_integers_do_not_wrap() -> None:
    small = np.array([0, 1, 2, 250, 255], dtype=np.uint8)
    assert (
        release(small, priors=pq.Cauchy(40, 10)).tolist()
        == release(small.astype(float), priors=pq.Cauchy(40, 10)).tolist()
    )
    assert records_of(np.array([2**53 + 1], dtype=np.int64))[0].tolist() == [2.0**53]


class Column:
    """What data frames give: an object with a dtype and an array interface, here with missing values as objects."""

    dtype = np.dtype(object)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array([1, None, 3, "?"], dtype=object)


def test_objects_with_an_array_interface_are_columns() -> None:
    assert records_of(Column())[0].tolist() == [1, 3]


@pytest.mark.parametrize(
    "x",
    [
        None,
        "123",
        b"1",
        {1: 2},
        {1.0, 2.0},
        5.0,
        np.float64(3),
        np.zeros((2, 2)),
        np.array(["a", "b"]),
        np.array([1j]),
        np.array([1], dtype="timedelta64[M]"),
    ],
)
def test_what_is_no_column_of_numbers_is_refused_by_its_type(x: object) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^x must be"):
        release(x)


class Evil:
    @property
    def __class__(self) -> type:  # type: ignore[override]
        raise RuntimeError("no")


class Huge(int):
    def __float__(self) -> float:
        raise OverflowError

    def __gt__(self, other: Any) -> bool:
        raise RuntimeError("no")


def test_objects_whose_own_methods_fail_count_as_missing() -> None:
    expected = release([1.0, 2.0])
    for odd in (Evil(), Huge(3)):
        for x in ([1.0, odd, 2.0], np.array([odd, 1.0, 2.0], dtype=object)):
            assert np.array_equal(release(x), expected)
            assert pq.count(x).missing == 1


def test_public_arguments_are_checked_before_the_data() -> None:
    class Untouchable:
        dtype = np.dtype(float)

        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            raise AssertionError("the data were touched")

    for wrong in (
        {"epsilon": 0},
        {"priors": None},
        {"grid": -1},
        {"adaptation": "x"},
        {"arity": 1},
        {"on_nan": "x"},
        {"adjacency": ""},
        {"rng": "x"},
    ):
        with pytest.raises((ValueError, TypeError)):
            release(Untouchable(), **wrong)
    with pytest.raises((ValueError, TypeError), match="quantiles"):
        pq.release(Untouchable(), [math.nan], epsilon=1, priors=pq.Cauchy(0, 1))


@pytest.mark.parametrize("way", WAYS)
def test_the_amount_of_randomness_used_does_not_depend_on_the_data(way: dict[str, Any]) -> None:
    states = []
    for x in ([], [1.0], np.full(99, 5.0), np.arange(1000.0)):
        rng = np.random.default_rng(0)
        release(x, rng=rng, **way)
        states.append(rng.random())
    assert len(set(states)) == 1


def test_a_value_held_by_most_records_can_be_released_on_a_grid() -> None:
    rng = np.random.default_rng(0)
    x = np.where(rng.random(100_000) < 0.8, 40, rng.integers(17, 91, size=100_000))
    hits = [
        pq.release(x, [0.5], epsilon=0.5, priors=pq.Uniform(10, 120), grid=1, rng=s).values[0] == 40 for s in range(300)
    ]
    assert np.mean(hits) >= 0.99


@pytest.mark.parametrize("m", [1, 9, 29])
def test_all_equal_data_have_gap_zero_on_a_grid(m: int) -> None:
    x, qs = np.full(2000, 7), (np.arange(m) + 1) / (m + 1)
    # For so many quantiles "auto" takes cells, which see a value that all share only as well as a cell is narrow.
    chosen: dict[str, Any] = {"mechanism": "margin"} if m == 29 else {}
    gaps = [
        pq.max_gap(x, qs, pq.release(x, qs, epsilon=1, priors=pq.Uniform(0, 100), grid=1, rng=s, **chosen).values)
        for s in range(20)
    ]
    assert max(gaps) == 0


def test_many_ties_and_many_quantiles_keep_small_gaps() -> None:
    """Half of a tied record goes on to either side; dropping it instead leaves gaps of a third of the data here."""
    rng = np.random.default_rng(0)
    x, qs = np.where(rng.random(1000) < 0.8, 40, rng.integers(17, 91, size=1000)), np.arange(1, 10) / 10
    gaps = {
        c: np.mean(
            [
                pq.max_gap(
                    x, qs, pq.release(x, qs, epsilon=1, priors=pq.Uniform(10, 120), grid=1, calibration=c, rng=s).values
                )
                for s in range(40)
            ]
        )
        for c in ("sharp", "paper")
    }
    assert gaps["sharp"] < 40 < 250 < gaps["paper"]


@pytest.mark.parametrize(
    ("loc", "step", "scale"), [(1e9, 1e-3, 1.0), (0.0, 1e-9, 1e-6), (-1e15, 1.0, 1e4), (0.0, 1e6, 1e9)]
)
def test_any_scale_works(loc: float, step: float, scale: float) -> None:
    x = loc + np.random.default_rng(0).normal(size=2000) * scale
    for grid in (None, step):
        values = release(x, priors=pq.Uniform(loc - 10 * scale, loc + 10 * scale), grid=grid, epsilon=2)
        assert pq.max_gap(x, QS, values) < 100


def test_more_quantiles_than_records() -> None:
    values = pq.release([1.0, 2.0], np.arange(1, 100) / 100, epsilon=1, priors=pq.Uniform(0, 3), rng=0).values
    assert values.shape == (99,) and np.all(np.diff(values) >= 0) and values[0] >= 0 and values[-1] <= 3


def test_a_prior_with_no_mass_between_the_parents_gives_the_nearest_end() -> None:
    """Decided by public facts alone: whatever the data, the output is the same."""
    priors = [pq.Uniform(50, 60), pq.Uniform(0, 1), pq.Uniform(0, 1)]
    for x in ([], [0.5] * 20, list(range(100))):
        v = pq.release(x, QS, epsilon=1, priors=priors, rng=0).values
        assert 0 <= v[1] <= 1 and v[0] == v[1] and v[1] <= v[2] <= 1
        keywords = {"epsilon": 1, "priors": priors}
        assert math.isfinite(pq.log_density(x, v, QS, mechanism="tree", **keywords))
        assert pq.log_density(x, [v[1] - 0.1, v[1], v[2]], QS, mechanism="tree", **keywords) == -math.inf


@pytest.mark.parametrize("junk", ["?", None, [1.0], (2.0,), b"\xff", 1j, np.timedelta64(1, "D"), pd.NaT, object()])
def test_one_record_never_changes_how_another_is_read(junk: Any) -> None:
    """Whatever one element of a list is, the others count as they did: else adding it would change many records."""
    for others in (
        [1.0, 2.0, 3.0],
        [True, 2, 3.5],
        ["1", "2"],
        [np.float32(0.1), 2**60],
        [np.timedelta64(k, "D") for k in range(4)],
        [np.datetime64("2020-01-01")],
        [[1.0], [2.0]],
        [10**400, -(10**400)],
        [None],
    ):
        assert records_of([*others, junk])[0].tolist() == sorted([*records_of(others)[0], *records_of([junk])[0]])


def test_elements_beyond_the_floats_count_as_the_largest() -> None:
    assert records_of([10**400, 0, -(10**400)])[0].tolist() == [-np.finfo(float).max, 0.0, np.finfo(float).max]


@pytest.mark.parametrize(
    "x",
    [
        np.ma.masked_array([1.0, "Ann, 52"], dtype=object),
        np.ma.masked_array([10**400, 1], dtype=object),
        np.ma.masked_array([np.longdouble("1e4000"), 1]),
        [[1.0]],
        [bytearray(b"1")],
        [np.array([3.0])],
        [range(1)],
    ],
    ids=str,
)
def test_odd_containers_release_without_a_word(x: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.all(np.isfinite(release(x)))
        pq.gap(x, [0.5], [1.0])


@pytest.mark.parametrize(
    "x",
    [
        np.ma.masked_array([1j]),
        np.ma.masked_array(np.array([1], dtype="timedelta64[M]")),
        np.array(["1", "22"]),
    ],
)
def test_refusals_tell_the_type_and_nothing_else(x: Any) -> None:
    with pytest.raises(TypeError, match=r"^x must be a column of real numbers, [a-z ,]*, got [a-z0-9_]+$"):
        release(x)


def test_an_absurd_epsilon_still_releases_from_the_prior() -> None:
    values = pq.release(np.arange(10.0) + 0.125, [0.5], epsilon=1e300, priors=pq.Uniform(100, 101), rng=0).values
    assert 100 < values[0] < 101


def test_a_grid_too_fine_for_the_prior_is_refused_before_the_data() -> None:
    for prior, step in ((pq.Uniform(1.7e18, 1.8e18), 1), (pq.Cauchy(0, 1), 1e-15), (pq.Uniform(20, 21), 1e-15)):
        with pytest.raises(ValueError, match="grid must be coarser"):
            release(None, priors=prior, grid=step)


def test_the_law_holds_at_the_end_of_the_lattice() -> None:
    """Nearly all mass within, records and outputs on the last multiples: what comes out has a law."""
    prior = pq.Cauchy(0, 1)
    for x in ([1e300] * 5, [], [-1e300, 1e300]):
        for s in range(60):
            v = release(x, grid=1e-12, rng=s, priors=prior, epsilon=3)
            assert math.isfinite(pq.log_density(x, v, QS, epsilon=3, priors=prior, grid=1e-12))


def test_outputs_in_the_wrong_order_have_no_density() -> None:
    qs = np.arange(1, 8) / 8
    for way in ({}, {"adaptation": "edge"}, {"grid": 1, "arity": 2}, {"arity": 3}):
        assert (
            pq.log_density([1.0, 2.0], [9, 8, 7, 6, 5, 4, 3], qs, epsilon=1, priors=pq.Cauchy(0, 1), **way) == -math.inf
        )


def test_a_value_a_rounding_off_the_grid_means_its_multiple() -> None:
    keywords = {"epsilon": 1, "priors": pq.Cauchy(0, 1), "grid": 0.1}
    assert pq.log_density([], [3 * 0.1], [0.5], mechanism="tree", **keywords) == pq.log_density(
        [], [0.3], [0.5], mechanism="tree", **keywords
    )
    assert pq.log_density([], [0.35], [0.5], mechanism="tree", **keywords) == -math.inf


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", 10**400),
        ("grid", 1e-320),
        ("size_guess", 10**400),
        ("size_guess", Fraction(10**400, 3)),
        ("public_total", 10**4000),
        ("max_contributions", 10**4000),
        ("rng", -1),
        ("rng", 1.5),
        ("rng", object()),
        ("budget_power", 1100.5),
        ("quantiles", {0.5}),
    ],
)
def test_more_bad_arguments_are_refused_by_name(name: str, value: object) -> None:
    arguments: dict[str, Any] = {"quantiles": [0.5], "epsilon": 1, "priors": pq.Cauchy(0, 1), "rng": 0, name: value}
    with pytest.raises((ValueError, TypeError), match=name):
        pq.release([1.0], arguments.pop("quantiles"), **arguments)


def test_whole_numbers_of_numpy_and_single_values_are_accepted() -> None:
    r = pq.release([1.0], np.array(0.5), epsilon=np.array(1.0), priors=pq.Cauchy(0, 1), arity=np.int64(3), rng=0)
    assert r.values.shape == (1,) and r.plan.arity == 3


def test_values_must_be_numbers() -> None:
    for wrong in (["a"], [1j], [[1.0], 2.0]):
        with pytest.raises(ValueError, match="outcome"):
            pq.log_density([1.0], wrong, [0.5], epsilon=1, priors=pq.Cauchy(0, 1))
    with pytest.raises(TypeError, match="prior"):
        pq.log_psi([1.0], 0.5, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [1e15, 1e30, 1e300])
@pytest.mark.parametrize("mechanism", ["tree", "joint"])
def test_cells_that_are_as_good_share_by_mass_at_any_budget(mechanism: str, epsilon: float) -> None:
    """0.9997 and 0.0003 of the mass: a score of 10^15 nats that is not relative to the best one loses this."""
    arguments = {"epsilon": epsilon, "priors": pq.Uniform(0, 10_000), "mechanism": mechanism}
    for o in (1.0, 9_998.0):
        density = pq.log_density([9_997.0], [o], [0.5], **arguments)
        assert density == pytest.approx(-np.log(10_000.0), abs=1e-9)
    drawn = pq.simulate([9_997.0], [0.5], trials=300, rng=0, **arguments)
    assert np.mean(drawn > 9_997.0) < 0.05  # 15 of 300 where 0.09 are expected: below 1e-20


@pytest.mark.parametrize("flag", [True, np.bool_(True)])
def test_a_flag_is_no_number_of_anything(flag: object) -> None:
    from pq.sequential import DPLearned

    rest = {"epsilon": 1, "priors": pq.Cauchy(0, 1)}
    learner = {"epsilon": 0.1, "delta": 1e-6, "loc": [0.0], "scale": 1.0, "resolution": 0.1, "dimension": 1}
    calls = {
        "steps": lambda: DPLearned([0.5], steps=flag, **learner),
        "trials": lambda: pq.simulate([1.0], [0.5], trials=flag, **rest),
        "max_contributions": lambda: pq.release([1.0], [0.5], max_contributions=flag, **rest),
        "arity": lambda: pq.release([1.0], [0.5], arity=flag, **rest),
        "public_total": lambda: pq.release([1.0], [0.5], public_total=flag, **rest),
        "size_guess": lambda: pq.release([1.0], [0.5], size_guess=flag, **rest),
        "epsilon": lambda: pq.release([1.0], [0.5], epsilon=flag, priors=pq.Cauchy(0, 1)),
        "grid": lambda: pq.release([1.0], [0.5], grid=flag, **rest),
        "quantiles": lambda: pq.release([1.0], flag, **rest),
    }
    for name, call in calls.items():
        with pytest.raises((TypeError, ValueError), match=name):
            call()


class Sixfold(np.float64):
    """A number whose own value numpy does not ask for."""

    def __float__(self) -> float:
        return 6.0


def test_a_type_of_numbers_with_a_value_of_its_own_is_read_alike_beside_anything() -> None:
    assert records_of([Sixfold(1.0), 2.0])[0].tolist() == [2.0, 6.0]
    assert records_of([Sixfold(1.0), "2"])[0].tolist() == [2.0, 6.0]


class Panic(BaseException):
    """As polars raises it: no Exception."""


class Breaking:
    """A column that breaks while it is read. dtype: what it declares."""

    dtype = np.dtype(np.float64)

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise self.error


def test_what_an_engine_panics_with_is_kept_back_and_an_interrupt_is_not() -> None:
    def released(error: BaseException) -> pq.Release:
        return pq.release(Breaking(error), [0.5], epsilon=1, priors=pq.Cauchy(0, 1))

    for error in (Panic("out-of-range date"), ValueError("record 3.14")):
        with pytest.raises(RuntimeError, match=r"^x must be") as caught:
            released(error)
        assert caught.value.__context__ is None and caught.value.__cause__ is None
    with pytest.raises(KeyboardInterrupt):
        released(KeyboardInterrupt())


def test_simulated_releases_are_as_silent_as_single_ones() -> None:
    odd = [np.array([0x7F800001], dtype=np.uint32).view(np.float32), np.array([np.longdouble("1e4000"), 1])]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in odd:
            drawn = pq.simulate(x, [0.5], trials=2, epsilon=1, priors=pq.Uniform(0, 100))
            assert drawn.shape == (2, 1) and np.all(np.isfinite(drawn))


class Quantity(np.ndarray):
    """Numbers with a unit, as other libraries have them: what has none is compared with nothing, nor clipped."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if not all(isinstance(value, Quantity) for value in inputs):
            raise ValueError(f"units of {self.tolist()} differ")
        return getattr(ufunc, method)(*(value.view(np.ndarray) for value in inputs), **options)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        if function is np.clip:
            raise ValueError(f"units of {self.tolist()} differ")
        return super().__array_function__(function, types, arguments, options)


@pytest.mark.parametrize("on_nan", ["drop", "lowest"])
@pytest.mark.parametrize("scale", [1.0, 1e30])
@pytest.mark.parametrize("size", [3, 200_000])
def test_what_a_class_of_arrays_makes_of_comparisons_is_not_asked(size: int, scale: float, on_nan: Any) -> None:
    plain = np.random.default_rng(0).normal(size=size) * scale
    plain[1:3] = np.nan, np.inf
    options: dict[str, Any] = {"epsilon": 1, "priors": pq.Cauchy(0, 1), "on_nan": on_nan, "rng": 1}
    for x in (plain, plain.astype(np.float32), np.sort(plain)):
        expected = pq.release(x, [0.5], **options)
        assert pq.release(x.view(Quantity), [0.5], **options).values == expected.values
        assert pq.count(x.view(Quantity)).missing == 1


class Flat:
    """A column by what it says of itself, and a single number when it is asked for its records."""

    dtype, shape = np.dtype(np.float64), (3,)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(3.0)


def test_a_container_that_is_no_column_when_it_is_read_gets_the_fixed_sentence() -> None:
    with pytest.raises(RuntimeError, match="its own message is kept back"):
        pq.release(Flat(), [0.5], epsilon=1, priors=pq.Cauchy(0, 1))


@pytest.mark.parametrize("line", ['{"a": Ann Smith}', '{"a": 1e999}', '["Ann Smith"]', '{"a": {"Ann Smith": 2}}'])
def test_what_an_engine_says_of_the_types_of_a_file_shows_no_record(line: str, tmp_path: Path) -> None:
    """Polars finds the types of lines of JSON in the first records."""
    path, ledger = tmp_path / "x.ndjson", pq.Ledger(1)
    path.write_text('{"a": 1}\n' + line + "\n", encoding="utf-8")
    with pytest.raises((RuntimeError, TypeError)) as error:
        pq.release(pl.scan_ndjson(path).select("a"), [0.5], epsilon=1, priors=pq.Cauchy(0, 1), ledger=ledger)
    assert not re.search("Ann|999|line|character", str(error.value)) and ledger.spent == 0
    assert error.value.__context__ is None or not re.search("Ann|999", str(error.value.__context__))


@pytest.mark.parametrize("step", ["numbers_in", "_grouped"])
def test_what_an_engine_says_while_a_query_is_put_together_shows_no_record(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB runs a query for the time zone of a timestamp, and fails at every one after some errors."""

    def failing(*_: Any) -> Any:
        raise ValueError("Ann Smith")

    monkeypatch.setattr(reduce, step, failing)
    with pytest.raises(RuntimeError) as error:
        pq.release(pl.LazyFrame({"a": [1.0, 2.0]}), [0.5], epsilon=1, priors=pq.Cauchy(0, 1))
    assert "kept back" in str(error.value) and error.value.__context__ is None


def _floats(kept: Any) -> list[float]:
    parts = kept.values() if isinstance(kept, dict) else kept if isinstance(kept, list | tuple) else ()
    return [kept] if isinstance(kept, float) else [number for part in parts for number in _floats(part)]


@pytest.mark.parametrize("mechanism", ["tree", "joint", "mixed", "cells"])
@pytest.mark.parametrize("prior", [pq.Laplace(0, 1e-322), pq.Cauchy(0, 1e-322)])
def test_no_sign_of_zero_comes_out(prior: pq.Prior, mechanism: str) -> None:
    """A cell from the least negative float to zero has zero alone, found from below: its sign would tell the record."""
    options: dict[str, Any] = {"epsilon": 1, "priors": prior, "mechanism": mechanism}
    for x in ([-5e-324], [-5e-324, 0.0, 5e-324]):
        for levels in ([0.5], [0.25, 0.5, 0.75]):
            made = [pq.release(x, levels, rng=seed, **options) for seed in range(40)]
            numbers = [number for one in made for number in [*one.values.tolist(), *_floats(dict(one.outcome))]]
            trials = pq.simulate(x, levels, trials=40, rng=1, **options)
            zeros = np.array([number for number in [*numbers, *trials.ravel().tolist()] if number == 0.0])
            assert len(zeros) > 0 or mechanism == "cells"
            assert not np.signbit(zeros).any()


@pytest.mark.parametrize("mechanism", ["joint", "mixed"])
def test_what_is_read_off_beyond_the_outputs_stays_within_the_floats(mechanism: str) -> None:
    """Quantiles that were not drawn go on along a line, which leaves the floats where outputs are near their end."""
    least = -np.finfo(np.float64).max
    far = np.random.default_rng(0).uniform(0.5e308, 1.79e308, 2000)
    levels = [0, Fraction(1, 3), 0.5, 1]
    for x, prior in ((far, pq.Cauchy(0, 1e308)), ([], pq.Laplace(least, 1e-308))):
        for seed in range(5):
            one = pq.release(x, levels, epsilon=0.1, priors=prior, mechanism=mechanism, rng=seed)
            assert np.isfinite(one.values).all()
            assert pq.Release.from_dict(one.to_dict()).to_dict() == one.to_dict()
