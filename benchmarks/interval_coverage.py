"""How often intervals around released values hold what they promise: `python -m benchmarks.interval_coverage`.

New records for each trial on the shapes of `benchmarks.least_error`, evenly spaced quantiles, intervals of 95% that
should hold all quantiles at once: those of the column, and those of the law that its records were drawn from. Beside
the share of trials in which they did stands the mean share of the single quantiles that were held, and how long the
intervals are: the median number of the column's records inside one. "cells" decodes with least squares and promises
nothing of the column; all are told a `size_guess` of a thousand.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

import pq
from benchmarks.least_error import BUDGETS, GUESS, SHAPES, SMOOTH
from benchmarks.stored import save_rows

Array = np.ndarray[Any, np.dtype[np.float64]]
Draw = Callable[[np.random.Generator], Array]
LEVELS, LEVEL, MANY = {True: (1, 9, 29, 99), False: (1, 9)}, 0.95, 400_000  # of cells, and of what is simulated
METHODS: dict[str, dict[str, Any]] = {
    "cells": GUESS | {"mechanism": "cells"},
    "cells, smooth": SMOOTH | {"mechanism": "cells"},
    "tree": GUESS | {"mechanism": "tree"},
    "joint": GUESS | {"mechanism": "joint"},
    "margin": GUESS | {"mechanism": "margin"},
}
EXACT = ("cells", "cells, smooth")
OF = ("column", "population")


def bounds_of(x: Array, quantiles: Array) -> tuple[Array, Array]:
    """The least and the greatest values that have at most q n of the sorted records below and at least q n up to them,
    by definition."""
    below, up_to = np.searchsorted(x, x, side="left"), np.searchsorted(x, x, side="right")
    need = np.round(quantiles[:, None] * len(x), 6)
    fits = (below <= need) & (up_to >= need)
    low = np.array([x[row].min() for row in fits])
    return low, np.array([x[row].max() for row in fits])


def laws_of(draw: Draw, quantiles: Array, seed: int) -> tuple[Draw, Array]:
    """One law of a shape (that of lumps is itself drawn), as independent draws from many of its records, and its
    quantiles."""
    rng = np.random.default_rng(seed)
    state = rng.bit_generator.state

    def again(_: np.random.Generator) -> Array:
        rng.bit_generator.state = state
        return draw(rng)

    many = np.sort(again(rng)) if draw.__name__ == "lumps" else None
    if many is None:
        many = np.sort(np.concatenate([draw(rng) for _ in range(MANY // 1000)]))
    return (lambda own: own.choice(many, 1000)), bounds_of_law(many, quantiles)


def bounds_of_law(many: Array, quantiles: Array) -> Array:
    return many[np.clip(np.ceil(np.round(quantiles * len(many), 6)).astype(int) - 1, 0, len(many) - 1)]


def held(ends: Array, low: Array, high: Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which of the quantiles (m,) the intervals (m, 2) hold."""
    return (ends[:, 0] <= low) & (high <= ends[:, 1])


def measure(shape: str, m: int, epsilon: float, method: str, trials: int, shorter: float = 1.0) -> list[dict[str, Any]]:
    """Two rows of the table, of the column and of the population. shorter: than intervals are, by a factor, around the
    released values; a broken variant."""
    source, facts = SHAPES[shape]
    options = facts | METHODS[method] | {"epsilon": epsilon}
    quantiles, rng = (np.arange(m) + 1) / (m + 1), np.random.default_rng(m)
    draw, law = laws_of(source, quantiles, m)
    found: dict[str, list[Array]] = {of: [] for of in OF}
    lengths: dict[str, list[float]] = {of: [] for of in OF}
    name = ""
    for i in range(trials):
        x = np.sort(draw(rng))
        release = pq.release(x, quantiles, rng=i, **options)
        name = release.mechanism
        for of in OF:
            ends = release.interval(LEVEL, of=of)
            ends = release.values[:, None] + shorter * (ends - release.values[:, None]) if shorter != 1.0 else ends
            found[of].append(held(ends, *(bounds_of(x, quantiles) if of == "column" else (law, law))))
            inside = np.searchsorted(x, ends[:, 1], "right") - np.searchsorted(x, ends[:, 0], "left")
            lengths[of].append(float(np.median(inside)))
    return [
        {
            "shape": shape,
            "epsilon": epsilon,
            "m": m,
            "method": method,
            "mechanism": name,
            "of": of,
            "all_held": float(f"{np.mean(np.all(found[of], axis=1)):.3f}"),
            "each_held": float(f"{np.mean(found[of]):.3f}"),
            "records": float(f"{np.mean(lengths[of]):.3g}"),
            "trials": trials,
        }
        for of in OF
    ]


def coverage_table(rows: list[dict[str, Any]]) -> str:
    """The least coverage of all rows of each shape and mechanism, for README."""
    cases = {of: {(row["shape"], row["mechanism"]): [] for row in rows} for of in OF}
    for row in rows:
        cases[row["of"]][row["shape"], row["mechanism"]].append(float(row["all_held"]))
    names = list(dict.fromkeys(row["mechanism"] for row in rows))
    lines = ["| shape | " + " | ".join(f"{name}, {of}" for name in names for of in OF) + " |"]
    lines.append("|---" * (1 + len(names) * len(OF)) + "|")
    for shape in dict.fromkeys(row["shape"] for row in rows):
        least = [cases[of].get((shape, name)) for name in names for of in OF]
        lines.append(f"| {shape} | " + " | ".join(f"{min(held):.1%}" if held else "" for held in least) + " |")
    return "\n".join(lines)


def store(rows: list[dict[str, Any]], save: Path) -> None:
    """All rows so far."""
    save.parent.mkdir(parents=True, exist_ok=True)
    save_rows(save, rows)


@click.command()
@click.option(
    "--trials", default=20, show_default=True, type=click.IntRange(2), help="Releases for each simulated row."
)
@click.option("--exact-trials", default=400, show_default=True, type=click.IntRange(2), help="The same for cells.")
@click.option("--only", multiple=True, type=click.Choice(list(METHODS)), help="Methods; all by default.")
@click.option("--shape", multiple=True, type=click.Choice(list(SHAPES)), help="Shapes; all by default.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Put the rows into this CSV file too.")
def main(trials: int, exact_trials: int, only: tuple[str, ...], shape: tuple[str, ...], save: Path | None) -> None:
    """Coverage of 95% intervals over shapes, numbers of quantiles and budgets."""
    rows: list[dict[str, Any]] = []
    for where in shape or SHAPES:
        for method in [name for name in only or METHODS if name != "margin" or "grid" in SHAPES[where][1]]:
            for epsilon in BUDGETS:
                for m in LEVELS[method in EXACT]:
                    rows += measure(where, m, epsilon, method, exact_trials if method in EXACT else trials)
                    column, population = rows[-2:]
                    click.echo(
                        f"{where:18} {method:14} epsilon {epsilon:<4g} m {m:<3} column {column['all_held']:.1%} "
                        f"population {population['all_held']:.1%}, {column['records']:g} and "
                        f"{population['records']:g} records"
                    )
                    if save is not None:
                        store(rows, save)


if __name__ == "__main__":
    main()
