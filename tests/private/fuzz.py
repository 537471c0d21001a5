"""Odd columns and random public arguments without end: `python tests/private/fuzz.py --count 1000000 --seed 0`.

An input is a column together with the arguments of a release by any mechanism. Whatever the column holds, a release
must not raise or warn, must give one finite number for each quantile, in order, on the grid if there is one, and may
differ from another release with the same arguments in nothing but these numbers. Some inputs are also put to slower
questions: whether the compiled walk agrees with the law as it is stated, whether the exact privacy loss between
neighbours keeps to epsilon, and whether evaluation, sequences, sessions, ledgers, public fits, counts, looks at a
column and the readers of files take such columns without a word.
"""

from __future__ import annotations

import datetime
import json
import math
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import click
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from tqdm import tqdm

import pq
from fuzz_tools import (
    QUANTILES,
    check_file,
    check_inspection,
    check_ledger,
    check_session,
    some_predictor,
)
from pq.core.kind import kind_named
from pq.core.priors import Prior
from pq.private.columns.frames import records_of
from pq.private.mechanisms import Mechanism
from pq.private.mechanisms.tree import Tree
from pq.private.prepare import prepare
from pq.private.randomness import Source

COLUMNS = 40  # that share one draw of public arguments
WILD = 0.25  # part of the inputs that may need the slow walk: huge numbers, grids, priors in two layers
# One input in so many gets each of the slower questions; first of the others, then of the wild ones.
PATHS, TRIALS, NEIGHBOURS, ELSEWHERE, FITS = (150, 15), (50, 25), (150, 12), (400, 30), (100_000, 5_000)
SLACK = 1e-9  # of epsilon, and nats: rounding

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


@dataclass
class Report:
    """What has been tried and found."""

    inputs: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    found: dict[str, list[str]] = field(default_factory=dict)  # by kind, all that had it
    largest: float = 0.0  # |loss| / epsilon between neighbours

    def note(self, kind: str, where: str, error: Exception) -> None:
        """Keep a finding: its kind is where in the code it comes from."""
        self.found.setdefault(kind, []).append(f"{where}: {error!r}"[:600])

    def __str__(self) -> str:
        asked = ", ".join(f"{name}: {count:,}" for name, count in sorted(self.asked.items()))
        head = (
            f"{self.inputs:,} inputs, {len(self.found)} kinds of findings; largest |loss| / epsilon {self.largest:.9f}"
        )
        kinds = [f"{kind}, {len(found):,} times, first: {found[0]}" for kind, found in self.found.items()]
        return "\n".join([head, asked, *kinds])


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


def some_arguments(rng: np.random.Generator, scale: float, wild: bool) -> dict[str, Any]:
    quantiles = some_quantiles(rng)
    mechanism = str(rng.choice(["tree", "auto", "joint", "cells", "margin"], p=[0.4, 0.2, 0.15, 0.15, 0.1]))
    if mechanism == "joint":  # many outputs of priors that contradict each other take seconds each
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


def maker_of(arguments: dict[str, Any]) -> Mechanism:
    """The mechanism of the public arguments, checked; a ValueError is theirs, not the data's."""
    return prepare(**arguments)


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


def _with_objects(x: np.ndarray[Any, Any], rng: np.random.Generator, wild: bool = False) -> list[Any]:
    items, odd = list(x[:30].tolist()), ODD_OBJECTS if wild or rng.random() < 0.01 else TAME_OBJECTS
    for _ in range(int(rng.integers(1, 4))):
        items.insert(int(rng.integers(len(items) + 1)), odd[rng.integers(len(odd))])
    return items


def _objects(items: list[Any]) -> np.ndarray[Any, Any]:
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
    "list of objects": _with_objects,
    "array of objects": lambda x, rng: _objects(_with_objects(x, rng)),
    "pandas": lambda x, rng: pd.Series(x),
    "pandas objects": lambda x, rng: pd.Series(_with_objects(x, rng), dtype=object),
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


# --- questions --------------------------------------------------------------------------------------------------------


def numbers_of(result: pq.Release) -> Any:
    """The values as numbers, whatever kind they are of."""
    return kind_named(result.kind).to_numbers(result.values)


def check_values(result: pq.Release, arguments: dict[str, Any]) -> None:
    values, quantiles = numbers_of(result), np.array([float(q) for q in arguments["quantiles"]])
    assert values.shape == quantiles.shape and values.dtype == np.float64, "shape"
    assert np.isfinite(values).all(), "finite"
    order = np.argsort(quantiles, kind="stable")
    steps, equal = np.diff(values[order]), np.diff(quantiles[order]) == 0.0
    assert not (steps < 0.0).any() and not steps[equal].any(), "order"
    step = arguments["grid"]
    if step is not None and (result.kind == "number" or step >= 1e-5):  # times are told to the microsecond
        units = values / float(step)
        assert (np.abs(units - np.rint(units)) <= 1e-6 + 1e-12 * np.abs(units)).all(), "grid"


def shape_of(fact: Any) -> Any:
    """Names and types of what was drawn; how many edges there are follows from places that were paid for."""
    if isinstance(fact, dict):
        return {name: shape_of(one) for name, one in fact.items()}
    return sorted({type(one).__name__ for one in fact}) if isinstance(fact, list) else type(fact).__name__


def drawn_of(result: pq.Release) -> Any:
    """What a density is asked of: all that was drawn."""
    total = {} if result.total is None else {"total": result.total}
    return {"values": result.values, **total, **result.outcome}


def public_facts(result: pq.Release) -> str:
    """All that a release says but its values; the same for all data of one declared type."""
    facts = {name: fact for name, fact in result.to_dict().items() if name not in ("kind", "texts", "whole")}
    facts["values"] = len(facts["values"])
    facts["total"], facts["outcome"] = type(facts["total"]).__name__, shape_of(facts["outcome"])  # paid for
    return json.dumps(facts) + str(result.plan) + repr(sorted(vars(result)))


def check_paths(x: Any, maker: Mechanism, rng: np.random.Generator) -> None:
    """The compiled walk and the one that states the law give the same outputs, or ones as near as floats can tell."""
    if not isinstance(maker, Tree):
        return
    uniforms = Source(rng).uniforms(1, len(maker.request.distinct), 2)
    with np.errstate(all="ignore"):
        column = maker.column(*records_of(x, maker.request.on_nan))
        quick = maker.compiled(column, uniforms)[0]
        slow = np.array(maker.walked(column, uniforms[0].tolist()))
    quick = slow if np.isnan(quick).any() else quick
    close = np.isclose(quick, slow, rtol=1e-7, atol=1e-12 * max(1.0, float(np.abs(slow).max())))
    assert close.all(), f"paths: {quick.tolist()} and {slow.tolist()}"


def check_simulation(x: Any, arguments: dict[str, Any], rng: np.random.Generator) -> None:
    """The first of many trials is the release from the same seed, and none has more trials than asked."""
    seed, trials = int(rng.integers(2**31)), int(rng.integers(4))
    values = pq.simulate(x, trials=trials, rng=seed, **arguments)
    assert values.shape == (trials, len(arguments["quantiles"])) and np.isfinite(values).all(), "trials"
    if trials:
        first = numbers_of(pq.release(x, rng=seed, **arguments))
        close = 0.0 if arguments["mechanism"] == "tree" else 1e-9  # engines may differ in last bits
        assert np.allclose(values[0], first, rtol=close, atol=0.0), "first trial"


def check_neighbours(items: list[Any], arguments: dict[str, Any], rng: np.random.Generator) -> float:
    """The exact loss of an actual output between columns that differ in one person's records, over epsilon."""
    rest = {name: value for name, value in arguments.items() if name != "quantiles"}
    people = arguments["max_contributions"]
    start = int(rng.integers(len(items) + 1))
    other = items[:start] + items[start + people :]
    if arguments["adjacency"] == "replace":
        gone = len(items) - len(other)
        other += [[*ODD_OBJECTS, *ODD_NUMBERS, *items][rng.integers(40)] for _ in range(gone)]
    one, two = (items, other) if rng.random() < 0.5 else (other, items)
    drawn = drawn_of(pq.release(one, arguments["quantiles"], rng=rng, **rest))
    loss = pq.privacy_loss(_objects(one), _objects(two), drawn, arguments["quantiles"], **rest)
    epsilon = float(arguments["epsilon"])
    assert abs(loss) <= epsilon * (1.0 + SLACK) + SLACK, f"loss {loss} at epsilon {epsilon}"
    return abs(loss) / epsilon


def check_evaluation(x: Any, result: pq.Release, arguments: dict[str, Any]) -> None:
    quantiles = arguments["quantiles"]
    values = numbers_of(result)
    gaps = pq.gap(x, quantiles, values)
    assert gaps.shape == values.shape and (gaps >= 0).all() and pq.max_gap(x, quantiles, values) == max(gaps)
    assert not math.isnan(pq.log_psi(x, quantiles[0], result.priors[0]))
    assert not math.isnan(pq.log_psi_harmonic(x, quantiles, list(result.priors)))
    if not math.isinf(result.epsilon):
        rest = {name: value for name, value in arguments.items() if name != "quantiles"}
        assert not math.isnan(pq.log_density(x, drawn_of(result), quantiles, **rest)), "density"


def check_sequence(columns: list[Any], rng: np.random.Generator) -> None:
    quantiles = QUANTILES
    predictor = some_predictor(len(columns), rng)
    features = rng.normal(size=(len(columns), 1))
    for released in pq.release_sequence(columns, features, predictor, quantiles, epsilon=1, rng=rng):
        check_values(released, {"quantiles": quantiles, "grid": None})


def check_public_fit(x: np.ndarray[Any, Any], rng: np.random.Generator) -> None:
    known = int(np.isfinite(x).sum())
    if known >= 2:
        size = int(rng.integers(1, known + 1))
        priors = pq.fit_public(x, [0.25, 0.75], sample_size=size, loc=0.0, scale=1.0, min_width=0.01, rng=rng)
        assert len(priors) == 2


# --- the loop ---------------------------------------------------------------------------------------------------------


def kind_of(error: Exception) -> str:
    """The line of code that an error comes from."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{last.filename.rsplit('/', 1)[-1]}:{last.lineno}"


class Fuzzer:
    """Inputs from one seed, and what they show."""

    def __init__(self, seed: int, wild: float = WILD) -> None:
        self.seed, self.wild, self.report = seed, wild, Report()

    def run(self, count: int, progress: Callable[[int], Any] = lambda done: None) -> Report:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            group = 0
            while self.report.inputs < count:
                rng = np.random.default_rng([self.seed, group])
                self._group(rng, group, min(COLUMNS, count - self.report.inputs))
                progress(min(COLUMNS, count))
                group += 1
        return self.report

    def _group(self, rng: np.random.Generator, group: int, count: int) -> None:
        scale, wild = float(10.0 ** rng.choice([-6, 0, 0, 0, 3, 9])), bool(rng.random() < self.wild)
        try:
            arguments = some_arguments(rng, scale, wild)
            maker = maker_of(arguments)
        except ValueError:  # a refusal of public arguments, such as a grid too fine for a prior
            self.report.asked["refused arguments"] += 1
            return
        facts: str | None = None
        columns: list[Any] = []
        for number in range(count):
            name = NAMES[rng.choice(len(NAMES), p=SHARES)]
            state = np.random.default_rng([self.seed, group, number])
            try:
                x = some_numbers(state, scale, wild)
                made = KINDS[name](x, state)
                again = x.tolist() if name == "generator" else made
                result = pq.release(made, rng=state, **arguments)
                check_values(result, arguments)
                said = public_facts(result) if number % 13 == 0 else facts
                facts = said if facts is None else facts
                assert said == facts, "public facts differ between data"
                self._slower(wild, again, x, result, maker, arguments, state)
                columns.append(x)
            except Exception as error:
                self.report.note(kind_of(error), f"seed {self.seed}, group {group}, column {number} ({name})", error)
            self.report.inputs += 1
            self.report.asked[f"by {maker.name}"] += 1
        if group % 7 == 0 and len(columns) >= 4:
            try:
                check_sequence(columns[:4], rng)
                check_session(columns[:4], rng)
                self.report.asked["sequences"] += 1
            except Exception as error:
                self.report.note(kind_of(error), f"seed {self.seed}, group {group}, sequence", error)

    def _slower(
        self, wild: bool, x: Any, numbers: Any, result: pq.Release, maker: Mechanism, arguments: Any, rng: Any
    ) -> None:
        asked, few = self.report.asked, len(result.values) < 10
        if rng.integers(PATHS[wild]) == 0:
            check_paths(x, maker, rng)
            asked["both paths"] += 1
        if rng.integers(TRIALS[wild]) == 0:
            check_simulation(x, arguments, rng)
            asked["simulations"] += 1
        if len(numbers) <= 30 and few and arguments["epsilon"] <= 1000 and rng.integers(NEIGHBOURS[wild]) == 0:
            items = list(numbers.tolist()) if rng.random() < 0.5 else _with_objects(numbers, rng, wild)
            self.report.largest = max(self.report.largest, check_neighbours(items, arguments, rng))
            asked["neighbours"] += 1
        if rng.integers(ELSEWHERE[wild]) == 0:
            if few:
                check_evaluation(numbers, result, arguments)
                asked["evaluation"] += 1
            check_file(numbers, rng)
            check_ledger(numbers, rng)
            check_inspection(x, len(numbers) + 4)
            asked["files, ledgers, looks"] += 1
        if rng.integers(FITS[wild]) == 0:
            check_public_fit(numbers, rng)
            asked["public fits"] += 1


@click.command()
@click.option("--count", type=click.IntRange(1), default=10_000, show_default=True, help="Inputs to try.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of all inputs.")
@click.option("--wild", type=click.FloatRange(0, 1), default=WILD, show_default=True, help="Part of slow inputs.")
def main(count: int, seed: int, wild: float) -> None:
    """Try odd columns with random public arguments, and print what goes wrong."""
    with tqdm(total=count, unit="input", unit_scale=True, desc="fuzz", disable=None) as bar:
        report = Fuzzer(seed, wild).run(count, bar.update)
    click.echo(str(report))
    if report.found:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
