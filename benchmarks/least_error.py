"""The largest gap of every mechanism on five shapes of data: `python -m benchmarks.least_error [--save FILE]`.

A thousand new records for each trial, evenly spaced quantiles, a uniform prior, records added or removed, the same
seeds for all mechanisms. The gap is in records, its mean over trials comes with a standard error. "smooth" means that
`assume_smooth` was promised; where that is wrong, on lumps and ages, the price can be seen. All are told a `size_guess`
of a thousand, except the plain "auto", which is told nothing.
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

Array = np.ndarray[Any, np.dtype[np.float64]]
SIZE, LEVELS, BUDGETS = 1000, (1, 9, 29, 99), (1.0, 0.1)
GUESS: dict[str, Any] = {"size_guess": SIZE}
SMOOTH: dict[str, Any] = GUESS | {"assume_smooth": True}
METHODS: dict[str, dict[str, Any]] = {
    "tree": GUESS | {"mechanism": "tree"},
    "joint": GUESS | {"mechanism": "joint"},
    "mixed": GUESS | {"mechanism": "mixed"},
    "cells": GUESS | {"mechanism": "cells"},
    "auto": {},
    "auto, size": GUESS,
    "joint, smooth": SMOOTH | {"mechanism": "joint"},
    "cells, smooth": SMOOTH | {"mechanism": "cells"},
    "auto, smooth": SMOOTH,
}


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


SHAPES: dict[str, tuple[Callable[[np.random.Generator], Array], dict[str, Any]]] = {
    "Gaussian, 10": (normal, {"priors": pq.Uniform(-10, 10)}),
    "Gaussian, 1000": (normal, {"priors": pq.Uniform(-1000, 1000)}),
    "Gaussian, any float": (normal, {"priors": pq.LogUniform()}),
    "two modes, 10": (two_modes, {"priors": pq.Uniform(-10, 10)}),
    "lognormal, 1000": (lognormal, {"priors": pq.Uniform(-1000, 1000)}),
    "twelve lumps, 10": (lumps, {"priors": pq.Uniform(-10, 10)}),
    "ages, grid of 1": (ages, {"priors": pq.Uniform(10, 120), "grid": 1}),
}


def gaps(draw: Callable[[np.random.Generator], Array], m: int, trials: int, options: dict[str, Any]) -> Array:
    """Largest gaps (trials,) of releases of new data each."""
    rng, quantiles, out = np.random.default_rng(m), (np.arange(m) + 1) / (m + 1), np.empty(trials)
    for i in range(trials):
        x = np.sort(draw(rng))
        out[i] = pq.max_gap(x, quantiles, pq.release(x, quantiles, rng=i, **options).values)
    return out


def measure(shape: str, m: int, epsilon: float, method: str, trials: int) -> dict[str, Any]:
    """One row of the table."""
    draw, facts = SHAPES[shape]
    options = facts | METHODS[method] | {"epsilon": epsilon}
    quantiles, start = (np.arange(m) + 1) / (m + 1), time.process_time()
    name = pq.release([], quantiles, rng=0, **options).mechanism
    found = gaps(draw, m, trials, options)
    return {
        "shape": shape,
        "epsilon": epsilon,
        "m": m,
        "method": method,
        "mechanism": name,
        "max_gap": float(f"{np.mean(found):.4g}"),
        "error": float(f"{np.std(found, ddof=1) / trials**0.5:.2g}"),
        "trials": trials,
        "ms": float(f"{(time.process_time() - start) / trials * 1e3:.2g}"),
    }


@click.command()
@click.option("--trials", default=100, show_default=True, type=click.IntRange(2), help="Releases for each row.")
@click.option("--only", multiple=True, type=click.Choice(list(METHODS)), help="Methods; all by default.")
@click.option("--shape", multiple=True, type=click.Choice(list(SHAPES)), help="Shapes; all by default.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Put the rows into this CSV file.")
def main(trials: int, only: tuple[str, ...], shape: tuple[str, ...], save: Path | None) -> None:
    """Largest gaps of all mechanisms over shapes, numbers of quantiles and budgets."""
    rows: list[dict[str, Any]] = []
    for where in shape or SHAPES:
        for epsilon in BUDGETS:
            click.echo(f"\n{where}, epsilon {epsilon:g}\n{'':16}" + "".join(f"{f'm = {m}':>18}" for m in LEVELS))
            for method in only or METHODS:
                line = f"{method:16}"
                for m in LEVELS:
                    rows.append(measure(where, m, epsilon, method, trials))
                    row = rows[-1]
                    line += f"{row['max_gap']:8.1f} ± {row['error']:<7.1f}"
                click.echo(line)
    if save is not None:
        put(rows, save)


def put(rows: list[dict[str, Any]], path: Path) -> None:
    """Write rows into a table, in the place of earlier ones of the same run; others stay."""

    def place(row: dict[str, Any]) -> tuple[int, ...]:
        shape, budget = list(SHAPES).index(row["shape"]), BUDGETS.index(float(row["epsilon"]))
        return shape, budget, list(METHODS).index(row["method"]), int(row["m"])

    path.parent.mkdir(parents=True, exist_ok=True)
    kept: list[dict[str, Any]] = []
    if path.exists():
        with path.open(newline="") as file:
            kept = list(csv.DictReader(file))
    merged = {place(row): row for row in [*kept, *rows]}
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(merged[key] for key in sorted(merged))


if __name__ == "__main__":
    main()
