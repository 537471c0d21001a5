"""The largest gap against the number of quantiles, beside proved bounds: `python -m benchmarks.gap_against_m [--save
FILE]`.

Ten thousand standard normal records, new in each trial, epsilon = 1, a uniform prior on [-10, 10], m = 2^k - 1 evenly
spaced quantiles, records added or removed. The means over trials of the largest gap |c - q n| and of a bound on it that
holds with probability 95%, for the column of the trial:

- tree: the sharp tree. `pq.bounds.dyadic_conditional`, which takes inner products with priors that earlier outputs have
  restricted; the least prior mass of a cell between records stands for these, so a run that cuts a cell may need more.
- joint: all m drawn together, up to MOST_TOGETHER. `pq.bounds.joint_even_gap`.
- joint, read off: as `pq.release` does it, few drawn and the others read off a curve. No bound without smoothness.
- cells: noisy counts, isotonically decoded. `pq.bounds.cells_gap`, with what its look at the data leaves of epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import numpy as np

import pq
from benchmarks.stored import save_rows
from pq.core.request import Request
from pq.private.columns.cells import Points
from pq.private.mechanisms.cells import Cells
from pq.private.mechanisms.cells.law import cell_values, draw_cells, records_in_cells
from pq.private.mechanisms.joint import sampler
from pq.private.mechanisms.joint.plan import JointPlan
from pq.private.randomness import Source

Array = np.ndarray[Any, np.dtype[np.float64]]
Found = tuple[Array, float | None]  # values (m,), and the bound, if there is one

SIZE, EPSILON, BETA, PRIOR = 10_000, 1.0, 0.05, pq.Uniform(-10, 10)
NUMBERS = tuple(2**k - 1 for k in range(1, 11))
MOST_TOGETHER = 63


def log_least_mass(x: Array) -> float:
    """Log of the least prior mass of a cell between neighbouring records."""
    edges = np.concatenate([[-math.inf], x, [math.inf]])
    return float(np.min(PRIOR.log_mass(edges[:-1], edges[1:])))


def by_tree(x: Array, quantiles: list[Fraction], rng: np.random.Generator) -> Found:
    values = pq.release(x, quantiles, epsilon=EPSILON, priors=PRIOR, mechanism="tree", rng=rng).values
    return values, pq.bounds.dyadic_conditional(log_least_mass(x), EPSILON, len(quantiles), BETA)


def together(x: Array, quantiles: list[Fraction], rng: np.random.Generator) -> Found:
    plan = JointPlan.of(quantiles, epsilon=Fraction(1), priors=PRIOR)
    values, _ = sampler(1000, plan.size)(plan, x, None, Source(rng).uniforms)
    mass = log_least_mass(x)
    return values, pq.bounds.joint_even_gap(plan.size, len(x), mass, EPSILON, BETA, total_step=plan.total_unit)


def read_off_a_curve(x: Array, quantiles: list[Fraction], rng: np.random.Generator) -> Found:
    facts: dict[str, Any] = {"epsilon": EPSILON, "priors": PRIOR, "mechanism": "joint", "size_guess": SIZE}
    return pq.release(x, quantiles, rng=rng, **facts).values, None


def by_cells(x: Array, quantiles: list[Fraction], rng: np.random.Generator) -> Found:
    maker = Cells(Request.of(quantiles, epsilon=1, priors=PRIOR, mechanism="cells", size_guess=SIZE))
    plan, column = replace(maker.plan, smooth=False), Points(x)
    outcome = draw_cells(plan, column, Source(rng).bytes)
    largest, epsilon = float(np.max(records_in_cells(column, outcome.edges, plan.step))), float(plan.epsilon_counts)
    values = cell_values(plan, outcome, [float(q) for q in quantiles])
    return values, pq.bounds.cells_gap(float(max(quantiles)), len(outcome.counts), largest, epsilon, BETA)


METHODS: dict[str, Callable[[Array, list[Fraction], np.random.Generator], Found]] = {
    "tree": by_tree,
    "joint": together,
    "joint, read off": read_off_a_curve,
    "cells": by_cells,
}


def measured(method: str, m: int, trials: int) -> dict[str, Any]:
    """One row of the table."""
    quantiles, gaps, bounds = [Fraction(j, m + 1) for j in range(1, m + 1)], [], []
    targets = SIZE * np.arange(1, m + 1) / (m + 1)
    for trial in range(trials):
        rng = np.random.default_rng([trial, m])
        x = np.sort(rng.normal(size=SIZE))
        values, bound = METHODS[method](x, quantiles, rng)
        gaps.append(float(np.max(np.abs(np.searchsorted(x, values) - targets))))
        bounds.append(math.nan if bound is None else bound)
    error, spare = float(np.std(gaps, ddof=1) / math.sqrt(trials)), float(np.min(np.array(bounds) - np.array(gaps)))
    bounded = {"bound": float(np.mean(bounds)), "least_spare": spare}
    return {"method": method, "m": m, "trials": trials, "max_gap": float(np.mean(gaps)), "error": error} | {
        name: None if math.isnan(number) else number for name, number in bounded.items()
    }


@click.command()
@click.option("--trials", default=20, show_default=True, type=click.IntRange(2), help="Releases for each row.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Write the table to this CSV file too.")
def main(trials: int, save: Path | None) -> None:
    """Largest gaps against the number of quantiles, beside bounds."""
    rows = []
    for method in METHODS:
        for m in NUMBERS:
            if method != "joint" or m <= MOST_TOGETHER:
                rows.append(row := measured(method, m, trials))
                bound = "" if row["bound"] is None else f" bound {row['bound']:9.1f}, {row['least_spare']:.1f} above"
                click.echo(f"{method:<18}{m:5d}{row['max_gap']:9.1f} ± {row['error']:<6.1f}{bound}")
    if save is not None:
        save_rows(save, rows, digits=4)


if __name__ == "__main__":
    main()
