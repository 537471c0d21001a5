"""Odd columns and random public arguments without end: `python tests/private/fuzz.py --inputs 1000000 --seed 0`.

An input is a column together with the arguments of a release by any mechanism. Whatever the column holds, a release
must not raise or warn, must give one finite number for each quantile, in order, on the grid if there is one, and may
differ from another release with the same arguments in nothing but these numbers. Inputs of a tree are all put to exact
losses on neighbours, many at once; what else is public is asked of samples: see `fuzz_entries.ENTRIES`. At the end
stands for each entry of how many inputs it was asked, and the largest loss that it found. Runs of different seeds have
different inputs, so that a long run can be made of short ones.
"""

from __future__ import annotations

import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import click
import numpy as np
from fuzz_entries import ENTRIES, Case, batch_losses, check_values, has_batch_losses, public_facts
from fuzz_inputs import KINDS, NAMES, SHARES, some_arguments, some_numbers
from tqdm import tqdm

import pq
from fuzz_tools import QUANTILES, check_session, some_predictor
from pq.private.mechanisms import Mechanism
from pq.private.prepare import prepare

COLUMNS = 100  # that share one draw of public arguments
WILD = 0.1  # part of the inputs that may need the slow walk: huge numbers, grids, priors in two layers
TOLD = 13  # of so many releases the public facts of one are compared
SEQUENCES = 40  # of so many groups of inputs one is released from day after day
RATES = [np.array([1.0 / entry.tame for entry in ENTRIES.values()]), np.array([1.0 / e.wild for e in ENTRIES.values()])]


@dataclass
class Report:
    """What has been tried and found."""

    inputs: int = 0
    seconds: float = 0.0
    asked: Counter[str] = field(default_factory=Counter)
    largest: dict[str, float] = field(default_factory=dict)  # |loss| / epsilon by entry
    found: dict[str, list[str]] = field(default_factory=dict)  # by kind, all that had it

    def ask(self, name: str, loss: float | None = None, times: int = 1) -> None:
        """Count what was asked, and keep the largest loss."""
        self.asked[name] += times
        if loss is not None:
            self.largest[name] = max(self.largest.get(name, 0.0), loss)

    def note(self, where: str, error: Exception) -> None:
        """Keep a finding: its kind is the line of code that it comes from."""
        last = traceback.extract_tb(error.__traceback__)[-1]
        kind = f"{last.filename.rsplit('/', 1)[-1]}:{last.lineno}"
        self.found.setdefault(kind, []).append(f"{where}: {error!r}"[:600])

    def __str__(self) -> str:
        most = max(self.largest.values(), default=0.0)
        head = f"{self.inputs:,} inputs, {len(self.found)} kinds of findings; largest |loss| / epsilon {most:.9f}"
        rows = [
            f"  {name:<28}{count:>12,}" + (f"   {self.largest[name]:.9f}" if name in self.largest else "")
            for name, count in sorted(self.asked.items())
        ]
        kinds = [f"{kind}, {len(found):,} times, first: {found[0]}" for kind, found in self.found.items()]
        return "\n".join([head, f"  {'entry':<28}{'inputs':>12}   largest loss", *rows, *kinds])


class Fuzzer:
    """Inputs from one seed, and what they show."""

    def __init__(self, seed: int, wild: float = WILD) -> None:
        self.seed, self.wild, self.report = seed, wild, Report()

    def run(self, inputs: int, progress: Callable[[int], Any] = lambda done: None, seconds: float = 1e9) -> Report:
        """So many inputs, or fewer where time is up before."""
        start, group = time.monotonic(), 0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            while self.report.inputs < inputs and self.report.seconds < seconds:
                before = self.report.inputs
                self._group(np.random.default_rng([self.seed, group]), group, min(COLUMNS, inputs - before))
                progress(self.report.inputs - before)
                self.report.seconds = time.monotonic() - start
                group += 1
        return self.report

    def _group(self, rng: np.random.Generator, group: int, count: int) -> None:
        scale, wild = float(10.0 ** rng.choice([-6, 0, 0, 0, 3, 9])), bool(rng.random() < self.wild)
        try:
            arguments = some_arguments(rng, scale, wild)
            maker = prepare(**arguments)
        except ValueError:  # a refusal of public arguments, such as a grid too fine for a prior
            self.report.ask("arguments that are refused")
            return
        count = count if arguments["mechanism"] == "tree" else max(1, min(count, COLUMNS // 5))
        cases = self._inputs(group, count, arguments, maker, scale, wild)
        if cases and has_batch_losses(cases[0]):
            with self._noting(f"group {group}, losses"):
                times, largest = batch_losses(cases, rng)
                self.report.ask("losses of a tree, in batches", largest, times)
        if group % SEQUENCES == 0 and len(cases) >= 4:
            with self._noting(f"group {group}, sequence"):
                check_sequence([case.numbers for case in cases[:4]], rng)
                check_session([case.numbers for case in cases[:4]], rng)
                self.report.ask("sequences and sessions")

    def _inputs(
        self, group: int, count: int, arguments: dict[str, Any], maker: Mechanism, scale: float, wild: bool
    ) -> list[Case]:
        facts: str | None = None
        cases: list[Case] = []
        for number in range(count):
            state = np.random.default_rng([self.seed, group, number])
            name = NAMES[state.choice(len(NAMES), p=SHARES)]
            with self._noting(f"group {group}, column {number} ({name})"):
                x = some_numbers(state, scale, wild)
                made = KINDS[name](x, state)
                again = x.tolist() if name == "generator" else made
                result = pq.release(made, rng=state, **arguments)
                check_values(result, arguments)
                if number % TOLD == 0:
                    said = public_facts(result)
                    facts = facts or said
                    assert said == facts, "public facts differ between data"
                case = Case(x, again, arguments, maker, result, wild)
                self._entries(case, state)
                if result.kind == "number":
                    cases.append(case)
            self.report.inputs += 1
            self.report.ask(f"release by {maker.name}")
        return cases

    def _entries(self, case: Case, rng: np.random.Generator) -> None:
        for place in np.flatnonzero(rng.random(len(ENTRIES)) < RATES[case.wild]).tolist():
            name, entry = list(ENTRIES.items())[place]
            if entry.fits(case):
                self.report.ask(name, entry.ask(case, rng))

    def _noting(self, where: str) -> _Noting:
        return _Noting(self.report, f"seed {self.seed}, {where}")


@dataclass
class _Noting:
    """A block whose errors are findings."""

    report: Report
    where: str

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if isinstance(error, Exception):
            self.report.note(self.where, error)
        return isinstance(error, Exception)


def check_sequence(columns: list[Any], rng: np.random.Generator) -> None:
    """A column of each day, and a predictor that learns from what was released."""
    predictor = some_predictor(len(columns), rng)
    features = rng.normal(size=(len(columns), 1))
    for released in pq.release_sequence(columns, features, predictor, QUANTILES, epsilon=1, rng=rng):
        check_values(released, {"quantiles": QUANTILES, "grid": None})


@click.command()
@click.option("--inputs", type=click.IntRange(1), default=10_000, show_default=True, help="Inputs to try.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of all inputs.")
@click.option("--wild", type=click.FloatRange(0, 1), default=WILD, show_default=True, help="Part of slow inputs.")
@click.option("--minutes", type=click.FloatRange(0), default=1e6, help="Begin nothing new after so many.")
def main(inputs: int, seed: int, wild: float, minutes: float) -> None:
    """Try odd columns with random public arguments, and print what was asked and what goes wrong."""
    with tqdm(total=inputs, unit="input", unit_scale=True, desc="fuzz", disable=None) as bar:
        report = Fuzzer(seed, wild).run(inputs, bar.update, 60.0 * minutes)
    click.echo(str(report))
    if report.found:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
