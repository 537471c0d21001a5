"""Questions of the fuzzer: what each public entry is asked of a column and its release.

An entry that is dear is asked of a sample of the inputs, which a draw of its own chooses, not the column.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import dask
import numpy as np
from fuzz_inputs import ODD_NUMBERS, ODD_OBJECTS, objects, with_objects

import pq
from fuzz_tools import check_file, check_file_of_a_ledger, check_forks, check_grouped, check_inspection, check_ledger
from pq.core.kind import kind_named
from pq.core.priors.kernel import MODERATE
from pq.private.columns import selection
from pq.private.columns.frames import records_of
from pq.private.mechanisms import Mechanism
from pq.private.mechanisms.tree import Tree
from pq.private.randomness import Source
from pq.truth.audit.losses import TreeLosses

SLACK = 1e-9  # of epsilon, and nats: rounding
FEW = 10  # quantiles, at most, where more would take long
HELD = '<script type="application/json" id="release">'
MOST_EPSILON = 1000.0  # of losses: beyond, rounding of the law is all


@dataclass(frozen=True)
class Case:
    """One input and what was released from it.

    numbers: (n,) of which the column x was made; it can be read again. wild: whether it may need the slow walk.
    """

    numbers: np.ndarray[Any, Any]
    x: Any
    arguments: dict[str, Any]
    maker: Mechanism
    result: pq.Release
    wild: bool

    @property
    def rest(self) -> dict[str, Any]:
        """All arguments but the quantiles."""
        return {name: value for name, value in self.arguments.items() if name != "quantiles"}

    @property
    def few(self) -> bool:
        return len(self.result.values) < FEW and len(self.numbers) <= 30

    @property
    def has_losses(self) -> bool:
        return self.few and self.arguments["epsilon"] <= MOST_EPSILON


def numbers_of(result: pq.Release) -> Any:
    """The values as numbers, whatever kind they are of."""
    return kind_named(result.kind).to_numbers(result.values)


def check_values(result: pq.Release, arguments: dict[str, Any]) -> None:
    values, quantiles = numbers_of(result), result.quantiles
    assert values.shape == quantiles.shape == (len(arguments["quantiles"]),) and values.dtype == np.float64, "shape"
    assert np.isfinite(values).all(), "finite"
    order = np.argsort(quantiles, kind="stable")
    with np.errstate(over="ignore"):  # ends of the floats
        steps, equal = np.diff(values[order]), np.diff(quantiles[order]) == 0.0
    assert not (steps < 0.0).any() and not steps[equal].any(), "order"
    step = arguments["grid"]
    if step is not None:
        near = as_told(np.rint(values / float(step)) * float(step), result)
        off = 1e-6 * float(step) + 1e-12 * np.abs(values) + 2e-6 * (result.kind != "number")
        end = values == as_told(np.copysign(1e300, values), result)  # of the calendar
        assert ((np.abs(near - values) <= off) | end).all(), "grid"


def as_told(numbers: Any, result: pq.Release) -> Any:
    """Numbers as a release tells them: times to the microsecond, and within the calendar."""
    kind = kind_named(result.kind)
    return kind.to_numbers(kind.from_numbers(numbers))


def shape_of(fact: Any) -> Any:
    """Names and types of what was drawn; how many edges there are follows from places that were paid for."""
    if isinstance(fact, dict):
        return {name: shape_of(one) for name, one in fact.items()}
    return sorted({type(one).__name__ for one in fact}) if isinstance(fact, list) else type(fact).__name__


def public_facts(result: pq.Release) -> str:
    """All that a release says but its values; the same for all data of one declared type."""
    facts = {name: fact for name, fact in result.to_dict().items() if name not in ("kind", "texts", "whole")}
    facts["values"] = len(facts["values"])
    facts["total"], facts["outcome"] = type(facts["total"]).__name__, shape_of(facts["outcome"])  # paid for
    return json.dumps(facts) + str(result.plan) + repr(sorted(vars(result)))


# --- of one input: each gives the largest |loss| / epsilon that it found, or None ------------------------------------


def check_paths(case: Case, rng: np.random.Generator) -> None:
    """The compiled walk and the one that states the law give the same outputs, or ones as near as floats can tell."""
    maker = case.maker
    if not isinstance(maker, Tree):
        return
    uniforms = Source(rng).uniforms(1, len(maker.request.distinct), 2)
    with np.errstate(all="ignore"):
        column = maker.column(*records_of(case.x, maker.request.on_nan))
        quick = maker.compiled(column, uniforms)[0]
        slow = np.array(maker.walked(column, uniforms[0].tolist()))
    quick = slow if np.isnan(quick).any() else quick
    close = np.isclose(quick, slow, rtol=1e-7, atol=1e-12 * max(1.0, float(np.abs(slow).max())))
    assert close.all(), f"paths: {quick.tolist()} and {slow.tolist()}"


def check_simulation(case: Case, rng: np.random.Generator) -> None:
    """The first of many trials is the release from the same seed, and none has more trials than asked."""
    seed, trials = int(rng.integers(2**31)), int(rng.integers(4))
    drawn = pq.simulate(case.x, trials=trials, rng=seed, **case.arguments)
    values = as_told(drawn.ravel(), case.result).reshape(drawn.shape)
    assert values.shape == (trials, len(case.result.values)) and np.isfinite(values).all(), "trials"
    if trials:
        first = numbers_of(pq.release(case.x, rng=seed, **case.arguments))
        close = 0.0 if case.arguments["mechanism"] == "tree" else 1e-9  # engines may differ in last bits
        assert np.allclose(values[0], first, rtol=close, atol=2e-6 * (case.result.kind != "number")), "first trial"


def check_neighbours(case: Case, rng: np.random.Generator) -> float:
    """The exact loss of an actual output between columns that differ in one person's records."""
    numbers, quantiles, rest = case.numbers, case.arguments["quantiles"], case.rest
    items = list(numbers.tolist()) if rng.random() < 0.5 else with_objects(numbers, rng, case.wild)
    people = case.arguments["max_contributions"]
    start = int(rng.integers(len(items) + 1))
    other = items[:start] + items[start + people :]
    if case.arguments["adjacency"] == "replace":
        gone = len(items) - len(other)
        other += [[*ODD_OBJECTS, *ODD_NUMBERS, *items][rng.integers(40)] for _ in range(gone)]
    one, two = (items, other) if rng.random() < 0.5 else (other, items)
    drawn = pq.release(one, quantiles, rng=rng, **rest)
    loss = pq.privacy_loss(objects(one), objects(two), drawn, quantiles, **rest)
    return within(loss, case.arguments)


def within(loss: float, arguments: dict[str, Any]) -> float:
    """A loss over epsilon, which it keeps to."""
    epsilon = float(arguments["epsilon"])
    assert abs(loss) <= epsilon * (1.0 + SLACK) + SLACK, f"loss {loss} at epsilon {epsilon}"
    return abs(loss) / epsilon


def check_evaluation(case: Case, rng: np.random.Generator) -> None:
    numbers, result, quantiles = case.numbers, case.result, case.arguments["quantiles"]
    values = numbers_of(result)
    gaps = pq.gap(numbers, quantiles, values)
    assert gaps.shape == values.shape and (gaps >= 0).all() and pq.max_gap(numbers, quantiles, values) == max(gaps)
    assert not math.isnan(pq.log_psi(numbers, quantiles[0], result.priors[0]))
    assert not math.isnan(pq.log_psi_harmonic(numbers, quantiles, list(result.priors)))
    if not math.isinf(result.epsilon):
        assert not math.isnan(pq.log_density(case.x, result, quantiles, **case.rest)), "density"


def check_groups(case: Case, rng: np.random.Generator) -> float | None:
    if not case.few or not math.isfinite(case.arguments["epsilon"]):
        return None
    with dask.config.set(scheduler="synchronous"):
        return check_grouped(case.numbers, case.arguments, rng, check_values, within)


def check_description(case: Case, rng: np.random.Generator) -> None:
    """What a release says of itself can be read again, and is text of numbers whatever was drawn."""
    said = json.loads(json.dumps(case.result.to_dict(), allow_nan=math.isinf(case.result.epsilon)))
    again = pq.Release.from_dict(said)
    assert again.to_dict() == case.result.to_dict() and str(again) == str(case.result)
    assert all(isinstance(remark, str) for remark in case.result.remarks)
    if case.result.mechanism == "cells":
        further = kind_named(case.result.kind).to_numbers(case.result.quantile([0.0, 0.3, 1.0]))
        assert np.isfinite(further).all() and (np.diff(further) >= 0.0).all(), "further quantiles"


def check_interval(case: Case, rng: np.random.Generator) -> None:
    level, of = float(rng.choice([0.5, 0.9, 0.95])), str(rng.choice(["column", "population"]))
    ends = case.result.interval(level, size_guess=[30, 1e4][rng.integers(2)], of=of)  # type: ignore[arg-type]
    ends = kind_named(case.result.kind).to_numbers(ends.ravel()).reshape(-1, 2)
    assert ends.shape == (len(case.result.values), 2) and (ends[:, 0] <= ends[:, 1]).all(), "interval"


def check_report(case: Case, rng: np.random.Generator) -> None:
    """A page is written, the same for the same release, and holds the release."""
    with tempfile.TemporaryDirectory() as folder:
        one, other = Path(folder) / "one.html", Path(folder) / "other.html"
        for path in (one, other):
            case.result.report(path, title="<Ages> & \u00e9", size_guess=30)
        text = one.read_text(encoding="utf-8")
        assert one.read_bytes() == other.read_bytes(), "a page differs from itself"
    start = text.index(HELD) + len(HELD)
    held = pq.Release.from_dict(json.loads(text[start : text.index("</script>", start)]))
    assert held.to_dict() == case.result.to_dict(), "what a page holds"


def check_unsorted(case: Case, rng: np.random.Generator) -> None:
    """A long column that nobody has sorted, and the same sorted, are released from alike by the same uniforms."""
    long = rng.permutation(np.tile(case.numbers, 200)[:2000] + rng.normal(size=min(200 * len(case.numbers), 2000)))
    seed = int(rng.integers(2**31))
    with mock.patch.object(selection, "FEWEST", 64), mock.patch.object(selection, "LITTLE", 64):
        one = pq.release(long, rng=seed, **case.arguments)
    two = pq.release(pq.SortedColumn(long), rng=seed, **case.arguments)
    assert one.to_dict() == two.to_dict(), "unsorted"


def check_counting(case: Case, rng: np.random.Generator) -> None:
    """Counts of a column, plain, on a step, and of persons, stand for it."""
    counts = pq.count(case.numbers if isinstance(case.x, pq.SortedColumn) else case.x)
    seed = int(rng.integers(2**31))
    if case.result.kind == "number" and case.maker.name != "cells":
        one, two = (pq.release(x, rng=seed, **case.arguments) for x in (counts, case.x))
        assert np.allclose(numbers_of(one), numbers_of(two), rtol=1e-9, atol=0.0), "counts"
    people = {"who": rng.integers(0, 5, len(case.numbers)), "v": case.numbers}
    kept = pq.count(people, "v", person="who", max_contributions=2)
    assert int(kept.counts.sum()) + kept.missing <= 10, "records of a person"


def check_around(case: Case, rng: np.random.Generator) -> None:
    """Files, ledgers in memory, looks at a column."""
    check_file(case.numbers, rng)
    check_ledger(case.numbers, rng)
    check_inspection(case.x, len(case.numbers) + 4)


def check_processes(case: Case, rng: np.random.Generator) -> None:
    """Forks share no noise, and a ledger on disk knows what all of them spent."""
    if hasattr(os, "fork"):
        check_forks(case.numbers)
    check_file_of_a_ledger(case.numbers, rng)


def check_public_fit(case: Case, rng: np.random.Generator) -> None:
    known = int(np.isfinite(case.numbers).sum())
    if known >= 2:
        size = int(rng.integers(1, known + 1))
        options: dict[str, Any] = {"loc": 0.0, "scale": 1.0, "min_width": 0.01, "rng": rng}
        assert len(pq.fit_public(case.numbers, [0.25, 0.75], sample_size=size, **options)) == 2


@dataclass(frozen=True)
class Entry:
    """A question: asked of one in so many tame inputs, and of one in so many wild ones. fits: of which it can be."""

    ask: Callable[[Case, np.random.Generator], float | None]
    tame: int
    wild: int
    fits: Callable[[Case], bool] = lambda case: True


ENTRIES = {
    "both engines": Entry(check_paths, 150, 15, lambda case: isinstance(case.maker, Tree)),
    "simulate": Entry(check_simulation, 100, 50),
    "privacy_loss": Entry(check_neighbours, 40, 20, lambda case: case.has_losses),
    "log_density, gap, log_psi": Entry(check_evaluation, 400, 100, lambda case: case.few),
    "release_groups": Entry(check_groups, 400, 200),
    "to_dict, remarks, quantile": Entry(check_description, 200, 100),
    "interval of cells": Entry(check_interval, 500, 500, lambda case: case.maker.name == "cells"),
    "interval by simulation": Entry(
        check_interval, 20_000, 5_000, lambda case: case.few and case.maker.name != "cells"
    ),
    "report": Entry(check_report, 20_000, 20_000, lambda case: case.few),
    "unsorted columns": Entry(
        check_unsorted, 500, 500, lambda case: case.few and case.arguments["on_nan"] == "drop" and len(case.numbers) > 0
    ),
    "count": Entry(check_counting, 400, 200),
    "files, ledgers, looks": Entry(check_around, 1_000, 500),
    "processes, ledgers on disk": Entry(check_processes, 20_000, 20_000),
    "fit_public": Entry(check_public_fit, 100_000, 20_000),
}


# --- of many inputs at once -------------------------------------------------------------------------------------------


def batch_losses(cases: list[Case], rng: np.random.Generator) -> tuple[int, float]:
    """Exact losses by machine code of actual outputs of one tree, each between its column and a neighbour: how many
    machine code could tell, and the largest over the budget of a record."""
    request = cases[0].maker.request
    tree = TreeLosses(request.distinct, epsilon=request.budget, priors=list(request.priors), grid=request.step,
                      adjacency=request.adjacency, **vars(request.tree))  # fmt: skip
    most = max(len(case.numbers) for case in cases) + 1
    x, y = np.full((len(cases), most), math.inf), np.full((len(cases), most), math.inf)
    replaced = request.adjacency == "replace"
    _, first = np.unique(cases[0].result.quantiles, return_index=True)
    for row, case in enumerate(cases):
        known = np.clip(case.numbers[~np.isnan(case.numbers)], -MODERATE / 2, MODERATE / 2)
        changed = known.copy()
        if len(known) and (replaced or rng.random() < 0.5):
            place = int(rng.integers(len(known)))
            changed = np.delete(known, place)
            if replaced:
                changed = np.append(changed, [*known, case.numbers.size][rng.integers(len(known) + 1)])
        elif not replaced:
            changed = np.append(known, numbers_of(case.result)[rng.integers(len(case.result.values))])
        x[row, : len(known)], y[row, : len(changed)] = np.sort(known), np.sort(changed)
    outputs = np.array([numbers_of(case.result)[first] for case in cases])
    with np.errstate(all="ignore"):
        losses = tree.compiled(x, y, outputs)
    losses = losses[~np.isnan(losses)]
    if not losses.size:
        return 0, 0.0
    largest, epsilon = float(np.max(np.abs(losses))), float(request.budget)
    assert largest <= epsilon * (1.0 + SLACK) + SLACK, f"loss {largest} at epsilon {epsilon} for a record"
    return int(losses.size), largest / epsilon


def has_batch_losses(case: Case) -> bool:
    """Whether machine code may know the losses of a release."""
    request = case.maker.request
    plain = request.public_total is None and request.on_nan == "drop"
    return isinstance(case.maker, Tree) and plain and request.budget <= MOST_EPSILON
