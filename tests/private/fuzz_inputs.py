"""What the fuzzer gives to a release: random public arguments, and odd private columns in every container."""

from __future__ import annotations

import datetime
import math
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import pq
from pq.core.priors import Prior

ODD_NUMBERS = [
    0.0, -0.0, 5e-324, -5e-324, 2.3e-308, 1e-300, 1e-12, 1e9, 1e15, 2.0**53 + 2, 1e100, -1e100, 1e200, -1e200,
    1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf, math.nan,
]  # fmt: skip
TAME_NUMBERS = [v for v in ODD_NUMBERS if math.isnan(v) or abs(v) < 1e99]
ODD_OBJECTS: list[Any] = [
    None, True, False, "", "1.5", "nan", "abc", b"2", b"x", 10**400, -(10**400), 2**63, 2**64 + 1, Decimal("1.25"),
    Decimal("NaN"), Decimal("sNaN"), Decimal("1e500"), Fraction(1, 3), Fraction(10**400, 3), 1j, [], [1.0], (2, 3), {},
    {1: 2}, object(), np.float32(1.5), np.float16("inf"), np.int8(-3), np.uint64(2**64 - 1), np.longdouble("0.1"),
    np.bool_(True), np.datetime64("2020-01-01"), np.timedelta64(5, "s"), datetime.date(2020, 1, 1), pd.NA, pd.NaT,
    np.str_("3"), len, ..., float,
]  # fmt: skip
TAME_OBJECTS = [item for item in ODD_OBJECTS if not isinstance(item, (int, Fraction, Decimal, np.float16))]


# --- public arguments -------------------------------------------------------------------------------------------------


def some_quantiles(rng: np.random.Generator) -> list[Any]:
    m = int(rng.choice([1, 2, 3, 4, 5, 7, 9, 15, 33], p=[0.2, 0.1, 0.2, 0.1, 0.1, 0.1, 0.1, 0.07, 0.03]))
    kind = rng.integers(4)
    if kind == 0:
        return [i / (m + 1) for i in range(1, m + 1)]
    if kind == 1:
        return [Fraction(int(rng.integers(0, 61)), 60) for _ in range(m)]
    if kind == 2:
        return [float(q) for q in rng.choice([0.0, 1e-9, 0.01, 0.29, 0.5, 0.57, 0.999, 1.0], size=m)]
    return [float(q) for q in rng.random(m)]


def some_prior(rng: np.random.Generator, loc: float, scale: float, deep: int, bins: bool = True) -> Prior:
    far, narrow = ([0, 1, -30, 1e4], -3) if deep > 1 else ([0, 0, 1, -10], -1)  # hopeless ones need the slow walk
    loc, scale = loc + float(rng.choice(far)) * scale, scale * float(10.0 ** rng.integers(narrow, 4))
    kind = int(rng.integers(8 if deep else 5))
    if kind < 5:
        usual, wide = (pq.Cauchy, pq.Laplace, pq.Normal), 1.0 if deep > 1 else 1e4
        return [
            lambda: usual[rng.integers(3)](loc, scale),
            lambda: pq.HalfCauchy(scale, loc),
            lambda: pq.Uniform(loc - wide * scale, loc + wide * scale + abs(loc) * 1e-9),
            lambda: (
                pq.PiecewiseConstant(loc + scale * np.arange(6.0), [1, 0, 1e-9, 3, 1e-300])
                if bins
                else pq.Normal(loc, scale)
            ),
            lambda: pq.Cauchy(loc, scale),
        ][kind]()
    one, other = (some_prior(rng, loc, scale, deep - 1, bins=deep > 1) for _ in range(2))
    if kind == 7:
        return pq.Mixture([one, other, pq.Cauchy(loc, scale)], [1, 0.0, 1e-6])
    return one.mix(other, float(rng.choice([0.0, 0.1, 1.0])))


MECHANISMS = ("tree", "auto", "joint", "cells", "margin", "mixed")
SHARES_OF_MECHANISMS = (0.7, 0.1, 0.05, 0.06, 0.06, 0.03)  # the tree's take a tenth of the others' time


def some_arguments(rng: np.random.Generator, scale: float, wild: bool) -> dict[str, Any]:
    quantiles = some_quantiles(rng)
    mechanism = MECHANISMS[rng.choice(len(MECHANISMS), p=SHARES_OF_MECHANISMS)]
    if mechanism in ("joint", "mixed"):  # many outputs of priors that contradict each other take seconds each
        quantiles = quantiles[:4]
    loc, deep = scale * float(rng.normal()), 1 + wild
    priors: Any = some_prior(rng, loc, scale, deep)
    if rng.random() < 0.3:
        each: dict[Any, Prior] = {}
        priors = [each.setdefault(q, some_prior(rng, loc, scale, deep)) for q in quantiles]
    step = [scale, scale * 0.25, Fraction(1, 10), 1, 1000][rng.integers(5)] if wild and rng.random() < 0.4 else None
    arguments = {
        "quantiles": quantiles,
        "priors": priors,
        "epsilon": [1, 0.1, 1e-6, 20.0, 1000, Fraction(1, 3), math.inf, 1e300][
            rng.choice(
                8, p=[0.4, 0.2, 0.08, 0.1, 0.06, 0.08, 0.05, 0.03] if wild else [0.5, 0.2, 0.1, 0.1, 0, 0.1, 0, 0]
            )
        ],
        "mechanism": mechanism,
        "adjacency": str(rng.choice(["add-remove", "replace"])),
        "grid": step,
        "on_nan": str(rng.choice(["drop", "lowest", "highest"] if wild else ["drop"])),
        "max_contributions": int(rng.choice([1, 1, 1, 3])),
    }
    if mechanism == "margin" and step is None:
        arguments["grid"] = 0.25 * scale
    return arguments | (_of_a_tree(rng) if mechanism == "tree" else _of_any(rng))


def _of_a_tree(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "calibration": str(rng.choice(["sharp", "paper"])),
        "adaptation": str(rng.choice(["conditional", "edge"])),
        "arity": int(rng.choice([2, 2, 3, 4])),
        "budget_power": float(rng.choice([0.0, 0.0, 1.5, 3.0])),
    }


def _of_any(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "size_guess": [None, 1, 30, 1e4, 1e12][rng.integers(5)],
        "public_total": [None, None, 0, 30, 10**15][rng.integers(5)],
        "assume_smooth": bool(rng.random() < 0.5),
    }


# --- private columns --------------------------------------------------------------------------------------------------


def some_numbers(rng: np.random.Generator, scale: float, wild: bool) -> np.ndarray[Any, Any]:
    n = int(rng.choice([0, 1, 2, 3, 8, 30, 200], p=[0.07, 0.1, 0.1, 0.13, 0.25, 0.25, 0.1]))
    kind = rng.integers(6)
    if kind == 0:
        x = rng.normal(size=n)
    elif kind == 1:
        x = rng.integers(-2, 3, size=n).astype(float)
    elif kind == 2:
        x = np.full(n, rng.normal())
    elif kind == 3:
        x = rng.standard_cauchy(size=n)
    elif kind == 4:
        x = 1e9 + 1e-3 * rng.integers(0, 50, size=n)
    else:
        x = np.where(rng.random(n) < 0.8, 0.25, rng.normal(size=n))
    x = x * scale
    odd = rng.random(n) < rng.choice([0.0, 0.0, 0.2, 1.0])
    x[odd] = rng.choice(ODD_NUMBERS if wild else TAME_NUMBERS, size=int(odd.sum()))
    return np.sort(x) if rng.random() < 0.3 else x


def _of_type(x: np.ndarray[Any, Any], rng: np.random.Generator) -> Any:
    name = str(rng.choice(["f4", "f2", ">f8", "i1", "i8", "u1", "u8", "?", "g", ">i4"]))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.nan_to_num(np.clip(x, -1e18, 1e18)).astype(name) if name[-2:] not in ("f4", "f2") else x.astype(name)


def with_objects(x: np.ndarray[Any, Any], rng: np.random.Generator, wild: bool = False) -> list[Any]:
    items, odd = list(x[:30].tolist()), ODD_OBJECTS if wild or rng.random() < 0.01 else TAME_OBJECTS
    for _ in range(int(rng.integers(1, 4))):
        items.insert(int(rng.integers(len(items) + 1)), odd[rng.integers(len(odd))])
    return items


def objects(items: list[Any]) -> np.ndarray[Any, Any]:
    out = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        out[i] = item
    return out


def _read_only(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    x.flags.writeable = False
    return x


def _integers(x: np.ndarray[Any, Any]) -> list[int | None]:
    return [int(v) if abs(v) < 2.0**62 else None for v in x]


KINDS: dict[str, Callable[[np.ndarray[Any, Any], np.random.Generator], Any]] = {
    "array": lambda x, rng: x,
    "read only": lambda x, rng: _read_only(x),
    "list": lambda x, rng: x.tolist(),
    "tuple": lambda x, rng: tuple(x.tolist()),
    "strided": lambda x, rng: np.repeat(x, 2)[::-2],
    "typed": _of_type,
    "masked": lambda x, rng: np.ma.masked_array(x, mask=rng.random(len(x)) < 0.3),
    "list of objects": with_objects,
    "array of objects": lambda x, rng: objects(with_objects(x, rng)),
    "pandas": lambda x, rng: pd.Series(x),
    "pandas objects": lambda x, rng: pd.Series(with_objects(x, rng), dtype=object),
    "pandas integers": lambda x, rng: pd.Series(_integers(x), dtype="Int64"),
    "pandas categories": lambda x, rng: pd.Series(x).astype("category"),
    "polars": lambda x, rng: pl.Series([None if v > 1 else v for v in x.tolist()], dtype=pl.Float64),
    "polars integers": lambda x, rng: pl.Series(_integers(x), dtype=pl.Int64),
    "arrow timestamps": lambda x, rng: pa.array(_integers(x), type=pa.timestamp("us", "Europe/Paris")),
    "generator": lambda x, rng: (v for v in x.tolist()),
    "sorted column": lambda x, rng: pq.SortedColumn(x),
    "counts": lambda x, rng: pq.count(x),
}
NAMES = list(KINDS)
SHARES = np.array([8, 2, 4, 1, 1, 3, 2, 4, 2, 0.6, 0.5, 0.4, 0.2, 0.4, 0.3, 0.3, 1, 2, 0.6])
SHARES = SHARES / SHARES.sum()
