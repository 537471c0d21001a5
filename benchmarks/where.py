"""Where the time of what is small goes, by part of the package: `python -m benchmarks.where [--save FOLDER]`.

A release of 1,000 numbers and nine quantiles, a trial of `pq.simulate`, and a day of each predictor. Shares are those
of Python's own profiler, in which what a library does counts for whoever called it; they are of the time that the same
takes without it, since it slows small functions down more than large ones. `to_sort`: beside sorting 1,000 numbers.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

import pq
from benchmarks.machine import machine, save_for_machine
from benchmarks.one_release import PRIOR
from benchmarks.sequential_day import QUANTILES, predictors, sort_seconds
from pq.private.fast.lanes import WALK

PARTS = {  # the first that a function's file has
    "the column": ("private/columns/",),
    "compiled walk": ("private/fast/walk.py",),
    "what the walk is told": ("private/fast/", "private/mechanisms/", "private/randomness.py", "core/machine/"),
    "learning": ("private/sequential/", "core/learners/", "core/losses/", "private/noise"),
    "priors": ("core/priors/",),
    "public arguments": ("core/", "private/prepare.py"),
    "the release": ("private/",),
}
PACKAGE = str(Path(pq.__file__).parent) + "/"
OPTIONS: dict[str, Any] = {"priors": PRIOR, "epsilon": 1, "mechanism": "tree"}
Function = tuple[str, int, str]  # as pstats has it
Row = dict[str, Any]


def part_of(file: str) -> str | None:
    """The part of the package that a file belongs to."""
    if not file.startswith(PACKAGE):
        return None
    place = file.removeprefix(PACKAGE)
    return next((part for part, starts in PARTS.items() if place.startswith(starts)), None)


def shares(profile: cProfile.Profile) -> dict[str, float]:
    """Seconds of each part; of what is not the package's own, by who called it."""
    known: dict[Function, Any] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    seconds: dict[str, float] = defaultdict(float)

    def share(function: Function, amount: float, seen: frozenset[Function]) -> None:
        part, callers = part_of(function[0]), known[function][4]
        callers = {caller: facts[2] for caller, facts in callers.items() if caller in known and caller not in seen}
        total = sum(callers.values())
        if part is not None or total <= 0.0:
            seconds[part or "the rest"] += amount
            return
        for caller, weight in callers.items():
            share(caller, amount * weight / total, seen | {function})

    for function, facts in known.items():
        share(function, facts[2], frozenset())
    return seconds


def parts(what: str, call: Callable[[], Any], each: int, rounds: int) -> Iterator[Row]:
    """Rows of what a call takes by part. each: how many things it does."""
    least = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        call()
        least = min(least, time.process_time() - start)
    profile = cProfile.Profile(time.process_time)
    profile.runcall(call)
    found, sort = shares(profile), sort_seconds(rounds=100, clock=time.process_time)
    for part, taken in [("all", sum(found.values())), *sorted(found.items(), key=lambda item: -item[1])]:
        part_seconds = taken / sum(found.values()) * least / each
        yield {"what": what, "part": part, "us": part_seconds * 1e6, "to_sort": part_seconds / sort}


def days(predictor: pq.sequential.Predictor, count: int) -> Callable[[], None]:
    """A call that goes on with a sequence for so many days."""
    data = pq.datasets.synthetic(count, rng=np.random.default_rng(0))
    datasets = list(data.datasets)
    session = pq.sequential.Session(predictor, QUANTILES, mechanism="tree", epsilon=1, rng=0)

    def call() -> None:
        for features, x in zip(data.features, datasets, strict=True):
            session.step(features, x)

    return call


def all_rows(rounds: int, count: int) -> Iterator[Row]:
    x = np.random.default_rng(0).normal(size=1000)
    column, rng = pq.SortedColumn(x), np.random.default_rng(1)

    def release() -> None:
        for _ in range(count):
            pq.release(x, QUANTILES, rng=rng, **OPTIONS)

    yield from parts("release", release, count, rounds)
    yield from parts("trial", lambda: pq.simulate(column, QUANTILES, trials=count, rng=rng, **OPTIONS), count, rounds)
    for name, predictor in predictors((rounds + 2) * count).items():
        yield from parts(f"day of {name}", days(predictor, count), count, rounds)


@click.command()
@click.option("--rounds", default=20, show_default=True, help="Of which the best counts.")
@click.option("--count", default=200, show_default=True, help="Releases, trials or days in a round.")
@click.option("--save", type=click.Path(file_okay=False, path_type=Path), help="Keep the table in this folder.")
def main(rounds: int, count: int, save: Path | None) -> None:
    """Profile releases of little data."""
    click.echo(machine())
    WALK.ready(1e9)
    rows = []
    for row in all_rows(rounds, count):
        rows.append(row)
        click.echo(f"{row['what']:20} {row['part']:22} {row['us']:8.2f} us {row['to_sort']:6.1f} sorts")
    if save is not None:
        click.echo(save_for_machine(save, "where", rows))


if __name__ == "__main__":
    main()
