"""Time and error of each library on the same data: `python -m benchmarks.peers [--save FILE]`.

Unsorted standard normal numbers, evenly spaced quantiles, epsilon 1 in all, public bounds -10 and 10. Times are the
best of several calls, and are given as ratios to np.sort and to np.quantile of the same array in the same process. The
error is the largest gap over the quantiles, in records and as a part of n, and its mean over calls on the same data.

A library is not asked for a size that it would take too long for, judged by the sizes before.
"""

from __future__ import annotations

import csv
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import numpy as np

import pq
from benchmarks.peers.libraries import LIBRARIES, Array

SIZES, QUANTILES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000), (1, 9, 99)
EPSILON = 1.0
SHORT = 1e-3  # seconds
CALLS = 20  # at most, for the mean error
PACKAGES = ("opendp", "diffprivlib", "python-dp")


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """The time of a call and what it gave: by the clock if short, else processor time, as long calls are disturbed."""
    start, used = time.perf_counter(), time.process_time()
    result = call()
    used, passed = time.process_time() - used, time.perf_counter() - start
    return (passed if passed < SHORT else used), result


def measure(library: str, x: Array, m: int, patience: float) -> dict[str, Any]:
    """One row of the table. patience: seconds for all calls, of which at least one is made."""
    quantiles = (np.arange(m) + 1) / (m + 1)
    call = LIBRARIES[library](quantiles, EPSILON)
    call(x[:100])  # loads and compiles
    ordered = np.sort(x)
    best, gaps, spent = float("inf"), [], 0.0
    while not gaps or (len(gaps) < CALLS and spent < patience):
        taken, values = timed(lambda: call(x))
        best, spent = min(best, taken), spent + taken
        gaps.append(pq.max_gap(ordered, quantiles, np.asarray(values, dtype=np.float64)))
    rounds = 3 if len(x) >= 1_000_000 else 20
    sort = min(timed(lambda: np.sort(x))[0] for _ in range(rounds))
    quantile = min(timed(lambda: np.quantile(x, quantiles))[0] for _ in range(rounds))
    return {
        "library": library,
        "version": version(library) if library in PACKAGES else "",
        "n": len(x),
        "m": m,
        "seconds": float(f"{best:.3g}"),
        "to_sort": float(f"{best / sort:.3g}"),
        "to_quantile": float(f"{best / quantile:.3g}"),
        "max_gap": float(f"{np.mean(gaps):.4g}"),
        "part_of_n": float(f"{np.mean(gaps) / len(x):.2g}"),
        "calls": len(gaps),
    }


def present(library: str) -> bool:
    """Whether the library works here, tried on a few numbers; says so if not."""
    try:
        LIBRARIES[library](np.array([0.5]), EPSILON)(np.linspace(-1.0, 1.0, 50))
    except Exception as error:  # whatever a library does that is not there or broken
        click.echo(f"{library} is left out: {type(error).__name__}: {error}", err=True)
        return False
    return True


@click.command()
@click.option("--largest", default=SIZES[-1], show_default=True, help="Largest n.")
@click.option("--patience", default=2.0, show_default=True, help="Seconds for the calls of one row, one at least.")
@click.option("--longest", default=30.0, show_default=True, help="Seconds that a call is expected to take at most.")
@click.option("--only", multiple=True, type=click.Choice(list(LIBRARIES)), help="Libraries; all by default.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Put the rows into this CSV file too.")
def main(largest: int, patience: float, longest: float, only: tuple[str, ...], save: Path | None) -> None:
    """Compare libraries that release quantiles privately."""
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    for library in filter(present, only or LIBRARIES):
        for m in QUANTILES:
            expected = 0.0
            for n in (size for size in SIZES if size <= largest):
                if expected > longest:
                    break
                rows.append(measure(library, np.random.default_rng(n).normal(size=n), m, patience))
                expected = 10.0 * rows[-1]["seconds"]
                click.echo("  ".join(f"{name} {value}" for name, value in rows[-1].items()))
    if save is not None:
        store(save, rows)


def store(path: Path, rows: list[dict[str, Any]]) -> None:
    """Put rows into a table, in the place of those of the same library, n and m."""
    path.parent.mkdir(parents=True, exist_ok=True)
    known: dict[tuple[str, int, int], dict[str, Any]] = {}
    if path.exists():
        with path.open(newline="") as file:
            known = {(row["library"], int(row["m"]), int(row["n"])): row for row in csv.DictReader(file)}
    known |= {(row["library"], row["m"], row["n"]): row for row in rows}
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        order = list(LIBRARIES)
        writer.writerows(known[key] for key in sorted(known, key=lambda key: (order.index(key[0]), *key[1:])))


if __name__ == "__main__":
    main()
