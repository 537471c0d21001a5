"""Arrays that the package hands out are read-only: what was checked, released or counted stays what it was."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np
import pytest
import scipy.stats

import pq

LEVELS = [0.25, 0.5, 0.75]
X = np.arange(50.0)
DAYS = np.array(["2026-03-01", "2026-03-02", "2026-03-04"], dtype="M8[D]")
NORMALS = [pq.Normal(10.0, 3.0), pq.Normal(25.0, 3.0), pq.Normal(40.0, 3.0)]
DEEPEST = 8


def public(item: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What an object holds, or has under public names, as what asks for it."""
    if isinstance(item, dict):
        yield from ((f"[{key!r}]", partial(item.__getitem__, key)) for key in item)
    elif isinstance(item, (list, tuple)):
        yield from ((f"[{i}]", partial(item.__getitem__, i)) for i in range(len(item)))
    if type(item).__module__.partition(".")[0] == "pq" and not isinstance(item, type):
        computed = inspect.getmembers_static(type(item), lambda found: isinstance(found, (property, cached_property)))
        for name in sorted({*getattr(item, "__dict__", {}), *(name for name, _ in computed)}):
            if not name.startswith("_"):
                yield f".{name}", partial(getattr, item, name, None)


def writable(item: Any, place: str, seen: set[int], depth: int = 0) -> Iterator[str]:
    """Where an object's own arrays can be written to: those that two askers share."""
    seen.add(id(item))
    for name, ask in public(item):
        found = ask()
        if isinstance(found, np.ndarray):
            if found.flags.writeable and found.size and np.shares_memory(found, ask()):
                yield place + name
        elif depth < DEEPEST and id(found) not in seen:
            yield from writable(found, place + name, seen, depth + 1)


def released(mechanism: str, x: Any = X, **options: Any) -> pq.Release:
    priors: Any = NORMALS if mechanism in ("tree", "joint") else pq.Uniform(0.0, 50.0)
    return pq.release(x, LEVELS, epsilon=1, priors=priors, mechanism=mechanism, rng=0, **options)


def grouped() -> pq.GroupedRelease:
    table = {"k": ["a", "b", "a"], "v": [1.0, 2.0, 3.0]}
    return pq.release_groups(
        table, [0.5], by="k", value="v", keys=["a", "b"], epsilon=1, priors=pq.Uniform(0, 4), rng=0
    )


def stepped(learner: Any) -> Any:
    learner.update(np.ones(2) / 8)
    return learner


def learnt(made: type, **options: Any) -> Callable[[], Any]:
    """A session after a day, with its predictor, and what it released."""

    def begun() -> Any:
        session = pq.sequential.Session(made(LEVELS, **options), LEVELS, epsilon=3, rng=0)
        return session, session.step(np.zeros(1), X)

    return begun


GUESS = {"loc": [10.0, 25.0, 40.0], "scale": 5.0}
MADE: dict[str, Callable[[], Any]] = {
    "tree": lambda: released("tree"),
    "joint": lambda: released("joint"),
    "cells": lambda: released("cells"),
    "margin": lambda: released("margin", grid=1),
    "mixed": lambda: released("mixed"),
    "dates": lambda: pq.release(DAYS, [0.5], epsilon=1, priors=pq.Normal(1.77e9, 1e6), rng=0),
    "groups": grouped,
    "plan": lambda: pq.plan(LEVELS, epsilon=1),
    "counts": lambda: pq.count(X),
    "counts, asked": lambda: pq.Counts([1.0, 2.0], [3, 4], missing=2).placed("lowest"),
    "sorted": lambda: pq.SortedColumn(np.repeat(X, 100)),
    "inspection": lambda: pq.inspect(X),
    "forecast": lambda: pq.forecast([0.25, 0.5], epsilon=1, priors=pq.Normal(0, 1), size_guess=20, trials=5),
    "forecast of dates": lambda: pq.forecast(
        [0.5], epsilon=1, priors=pq.Normal(1.77e9, 1e6), size_guess=20, trials=5, kind="date"
    ),
    "joint prior": lambda: pq.JointPrior([pq.Normal(0, 1), pq.Normal(4, 1)], [1, 1]),
    "priors": lambda: [
        *(
            pq.Uniform(0, 1),
            pq.LogUniform(),
            pq.Cauchy(0, 1),
            pq.HalfCauchy(1),
            pq.Laplace(0, 1),
            pq.LogNormal(0, 1),
        ),
        *(pq.OrderStatistic(pq.Normal(0, 1), 9, 3), pq.Normal(0, 1).mix(pq.Cauchy(0, 1), 0.1)),
        *(pq.PiecewiseConstant([0, 1, 2], [0.5, 0.5]), pq.from_scipy(scipy.stats.gamma(2)), pq.prior_between(1, 9)),
    ],
    "ledger": lambda: pq.Ledger(1),
    "COCOB": lambda: stepped(pq.learners.COCOB(np.zeros(2))),
    "OGD": lambda: stepped(pq.learners.OGD(np.zeros(2), step=0.1)),
    "Averaged": lambda: stepped(pq.learners.Averaged(pq.learners.OGD(np.zeros(2), step=0.1))),
    "EntropicMirror": lambda: stepped(pq.learners.EntropicMirror(np.ones(2) / 2, step=0.1)),
    "Standardise": lambda: pq.sequential.Standardise([1.0], [2.0]),
    "PubPrev": learnt(pq.sequential.PubPrev, **GUESS),
    "PubProx": learnt(pq.sequential.PubProx, resolution=1.0, dimension=1, **GUESS),
    "PubDistribution": learnt(pq.sequential.PubDistribution, loc=25.0, scale=5.0, dimension=1),
    "DPLearned": learnt(
        pq.sequential.DPLearned, resolution=1.0, dimension=1, steps=2, epsilon=1, delta=1e-6, rng=0, **GUESS
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_no_array_of_a_result_can_be_written_to(name: str) -> None:
    """The ranks of counts could, after which a release was of other records."""
    assert list(writable([MADE[name]()], name, set())) == []


@pytest.mark.parametrize("name", [name for name in MADE if name != "ledger"])
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_no_array_of_a_copy_can_be_written_to(name: str, again: Callable[[Any], Any]) -> None:
    """Numpy's own copies and pickles are writable."""
    assert list(writable([again(MADE[name]())], name, set())) == []


def test_what_is_released_of_counts_stays_what_it_was() -> None:
    counts, forecast = pq.Counts([1.0, 2.0, 3.0], [30, 40, 30]), MADE["forecast"]()
    arrays = [counts.values, counts.counts, counts.before, *(getattr(forecast, name) for name in ("gap", "error"))]
    for array in [*arrays, forecast.error_90, forecast.quantiles]:
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0
