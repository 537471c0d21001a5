"""The largest gap of every mechanism on five shapes of data: `python -m benchmarks.least_error [--save FILE]`.

A thousand new records for each trial, evenly spaced quantiles, records added or removed, the same seeds for all
mechanisms. The gap is in records, its mean over trials comes with a standard error. "smooth" means that `assume_smooth`
was promised; where that is wrong, on lumps and ages, the price can be seen. All are told a `size_guess` of a thousand,
except the plain "auto", which is told nothing. Peers: see `benchmarks.least_error_peers`.

With --save each line is written as soon as it is measured, and a second table, `FILE_aims.csv`, holds what was measured
against what was aimed at (`benchmarks.least_error_aims`). With --resume the rows that FILE has are kept, so that a long
run may be stopped, or cut into parts by --minutes.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

import pq
from benchmarks.least_error_aims import compare, gaps_table, said
from benchmarks.least_error_peers import PEERS
from benchmarks.stored import save_rows

Array = np.ndarray[Any, np.dtype[np.float64]]
Draw = Callable[[np.random.Generator], Array]
Row = dict[str, Any]
SIZE, LEVELS, BUDGETS = 1000, (1, 9, 29, 99), (1.0, 0.1)
GUESS: dict[str, Any] = {"size_guess": SIZE}
SMOOTH: dict[str, Any] = GUESS | {"assume_smooth": True}
METHODS: dict[str, dict[str, Any]] = {
    "tree": GUESS | {"mechanism": "tree"},
    "joint": GUESS | {"mechanism": "joint"},
    "mixed": GUESS | {"mechanism": "mixed"},
    "cells": GUESS | {"mechanism": "cells"},
    "margin": GUESS | {"mechanism": "margin"},  # on a grid
    "auto": {},
    "auto, size": GUESS,
    "joint, smooth": SMOOTH | {"mechanism": "joint"},
    "cells, smooth": SMOOTH | {"mechanism": "cells"},
    "auto, smooth": SMOOTH,
}
LINES = [*METHODS, *PEERS]


def normal(rng: np.random.Generator) -> Array:
    return rng.normal(size=SIZE)


def two_modes(rng: np.random.Generator) -> Array:
    return np.where(rng.random(SIZE) < 0.5, -3.0, 3.0) + 0.5 * rng.normal(size=SIZE)


def lognormal(rng: np.random.Generator) -> Array:
    return np.exp(rng.normal(size=SIZE))


def lumps(rng: np.random.Generator) -> Array:
    """Twelve narrow ones, anywhere."""
    return rng.choice(rng.uniform(-8.0, 8.0, 12), SIZE) + 0.01 * rng.normal(size=SIZE)


def ages(rng: np.random.Generator) -> Array:
    """Of the Adult table, in whole years."""
    return rng.choice(np.array(pq.datasets.adult("train", "age"), dtype=np.float64), SIZE)


SHAPES: dict[str, tuple[Draw, dict[str, Any]]] = {
    "Gaussian, 10": (normal, {"priors": pq.Uniform(-10, 10)}),
    "Gaussian, 1000": (normal, {"priors": pq.Uniform(-1000, 1000)}),
    "Gaussian, any float": (normal, {"priors": pq.LogUniform()}),
    "two modes, 10": (two_modes, {"priors": pq.Uniform(-10, 10)}),
    "lognormal, 1000": (lognormal, {"priors": pq.Uniform(-1000, 1000)}),
    "twelve lumps, 10": (lumps, {"priors": pq.Uniform(-10, 10)}),
    "ages, grid of 1": (ages, {"priors": pq.Uniform(10, 120), "grid": 1}),
}
PREDICTED: dict[str, tuple[Draw, dict[str, Any]]] = {  # Gaussian data and predictions of them, a good and a wrong one
    "Gaussian, N(0.2, 1.2)": (normal, {"priors": pq.Normal(0.2, 1.2)}),
    "Gaussian, N(3, 1)": (normal, {"priors": pq.Normal(3, 1)}),
}
CASES = SHAPES | PREDICTED


def gaps(draw: Draw, m: int, trials: int, release: Callable[[Array, int], Array]) -> Array:
    """Largest gaps (trials,) of releases of new data each, from the data and a seed."""
    rng, quantiles, out = np.random.default_rng(m), evenly(m), np.empty(trials)
    for i in range(trials):
        x = np.sort(draw(rng))
        out[i] = pq.max_gap(x, quantiles, release(x, i))
    return out


def evenly(m: int) -> Array:
    return (np.arange(m) + 1) / (m + 1)


def releases(case: str, m: int, epsilon: float, method: str) -> tuple[str, Callable[[Array, int], Array]] | None:
    """The mechanism's name, and what releases (m,) values by a method; None where it does not serve the case."""
    facts, quantiles = CASES[case][1], evenly(m)
    if method in PEERS:
        peer = PEERS[method](quantiles, epsilon, facts)
        return None if peer is None else (method, peer)
    if method == "margin" and "grid" not in facts:
        return None
    options = facts | METHODS[method] | {"epsilon": epsilon}
    name = pq.release([], quantiles, rng=0, **options).mechanism
    return name, lambda x, seed: pq.release(x, quantiles, rng=seed, **options).values


def measure(case: str, m: int, epsilon: float, method: str, trials: int) -> Row | None:
    """One row of the table."""
    found = releases(case, m, epsilon, method)
    if found is None:
        return None
    start = time.process_time()
    gap = gaps(CASES[case][0], m, trials, found[1])
    return {
        "shape": case,
        "epsilon": epsilon,
        "m": m,
        "method": method,
        "mechanism": found[0],
        "max_gap": float(f"{np.mean(gap):.4g}"),
        "error": float(f"{np.std(gap, ddof=1) / trials**0.5:.2g}"),
        "trials": trials,
        "ms": float(f"{(time.process_time() - start) / trials * 1e3:.2g}"),
    }


def wanted(case: str, method: str) -> bool:
    """Whether a method is run on a case: predictions are for those that use them, a promise or none."""
    return case in SHAPES or method in ("tree", "joint, smooth", "cells, smooth", "auto, smooth")


@click.command()
@click.option("--trials", default=200, show_default=True, type=click.IntRange(2), help="Releases for each row.")
@click.option("--only", multiple=True, type=click.Choice(LINES), help="Methods; all by default.")
@click.option("--shape", multiple=True, type=click.Choice(list(CASES)), help="Shapes; all by default.")
@click.option(
    "--epsilon", multiple=True, type=click.Choice([f"{b:g}" for b in BUDGETS]), help="Budgets; all by default."
)
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Put the rows into this CSV file.")
@click.option(
    "--resume", is_flag=True, help="Keep the rows that the file has, with as many trials, and measure others."
)
@click.option("--minutes", type=float, help="Stop after so many; a run with --resume goes on.")
def main(
    trials: int, only: tuple[str, ...], shape: tuple[str, ...], epsilon: tuple[str, ...], save: Path | None,
    resume: bool, minutes: float | None,
) -> None:  # fmt: skip
    """Largest gaps of all mechanisms over shapes, numbers of quantiles and budgets."""
    end = time.monotonic() + 60.0 * (minutes or 1e6)
    table = {} if save is None else stored(save)
    for case in shape or CASES:
        for budget in [float(b) for b in epsilon] or BUDGETS:
            click.echo(f"\n{case}, epsilon {budget:g}\n{'':16}" + "".join(f"{f'm = {m}':>18}" for m in LEVELS))
            for method in [name for name in only or LINES if wanted(case, name)]:
                if time.monotonic() > end:
                    raise SystemExit("stopped: the same command with --resume goes on")
                row = {(case, budget, method, m): table.get((case, budget, method, m)) for m in LEVELS}
                for key, known in row.items():
                    if not (resume and known is not None and known["trials"] >= trials):
                        row[key] = measure(case, key[3], budget, method, trials)
                table = {key: known for key, known in (table | row).items() if known is not None}
                click.echo(f"{method:16}" + "".join(f"{_cell(known):>18}" for known in row.values()))
                if save is not None:
                    put(table, save)
    rows = [row for row in table.values() if row is not None]
    for line in [*said(compare(rows)), "", gaps_table(rows)]:
        click.echo(line)


def _cell(row: Row | None) -> str:
    return "-" if row is None else f"{row['max_gap']:.1f} ± {row['error']:<.1f}"


def stored(path: Path) -> dict[tuple[Any, ...], Row | None]:
    """The rows of a table by shape, budget, method and number of quantiles."""
    if not path.exists():
        return {}
    kinds: dict[str, Callable[[str], Any]] = {"m": int, "trials": int, "shape": str, "method": str, "mechanism": str}
    with path.open(newline="") as file:
        rows = [{name: kinds.get(name, float)(value) for name, value in row.items()} for row in csv.DictReader(file)]
    return {(row["shape"], row["epsilon"], row["method"], row["m"]): row for row in rows}


def put(table: dict[tuple[Any, ...], Row | None], path: Path) -> None:
    """Write the table in its order, and the one of aims beside it."""

    def place(row: Row) -> tuple[int, ...]:
        return list(CASES).index(row["shape"]), BUDGETS.index(row["epsilon"]), LINES.index(row["method"]), row["m"]

    rows = sorted((row for row in table.values() if row is not None), key=place)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_rows(path, rows)
    if aims := compare(rows):
        save_rows(path.with_name(f"{path.stem}_aims.csv"), aims, digits=4)


if __name__ == "__main__":
    main()
