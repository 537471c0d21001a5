"""What a release of an unsorted column costs beside sorting it and beside quantiles that are not private, in one run:
`python -m benchmarks.unsorted [--save FOLDER]`.

Calls that are compared take turns in one process and the best of several rounds counts, so that ratios hold on a noisy
machine. Columns are standard normal but for those that are named, which are odd or hard for the sample by which
buckets are placed. Memory is the peak of what numpy and Python hold, the input included. Tables are kept in a file that
is named after the machine's processor and its instruction sets.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

import pq
from benchmarks.machine import beside, machine, save_for_machine
from benchmarks.one_release import PRIOR, QUANTILES, peak_ratio
from pq.private.columns import selection
from pq.private.fast.lanes import WALK
from pq.private.mechanisms.joint import CHAIN

SIZES = (10**6, 10**7)


def normal(rng: np.random.Generator, n: int) -> Any:
    return rng.normal(size=n)


COLUMNS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "normal": normal,
    "float32": lambda rng, n: rng.normal(size=n).astype(np.float32),
    "integers": lambda rng, n: rng.integers(-(10**6), 10**6, n),
    "reversed": lambda rng, n: -np.sort(rng.normal(size=n)),
    "lognormal": lambda rng, n: np.exp(5 * rng.normal(size=n)),
    "every scale": lambda rng, n: 10.0 ** rng.integers(-12, 13, n) * (1.0 + 1e-9 * rng.random(n)),
    "two far modes": lambda rng, n: rng.choice([-1e12, 1e12], n) + rng.normal(size=n),
    "missing": lambda rng, n: np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
    "heavy ties": lambda rng, n: np.where(rng.random(n) < 0.9, 1.0, rng.normal(size=n)),
    "infinite": lambda rng, n: np.where(rng.random(n) < 0.2, np.inf, rng.normal(size=n)),
    "sorted": lambda rng, n: np.sort(rng.normal(size=n)),
    "few far": lambda rng, n: far_few(rng, n, selection.SAMPLE),
}


def far_few(rng: np.random.Generator, n: int, size: int) -> Any:
    """As many numbers as a sample has are far from all else."""
    x = rng.normal(size=n)
    x[rng.integers(0, n, size)] = 1e9 + np.arange(size)
    return x


def measure(name: str, n: int, m: int, rounds: int, mechanism: str) -> dict[str, Any]:
    """One row of the table: microseconds of a release, and ratios to what it is beside."""
    x = COLUMNS[name](np.random.default_rng(n), n)
    levels = ((np.arange(m) + 1) / (m + 1)).tolist()

    def release() -> Any:
        return pq.release(x, levels, epsilon=1, priors=PRIOR, mechanism=mechanism)

    row = {"column": name, "n": n, "m": m, "mechanism": mechanism}
    return row | beside(release, x, levels, rounds) | {"memory": peak_ratio(x, release)}


@click.command()
@click.option("--rounds", default=5, show_default=True, help="Turns of the calls.")
@click.option("--most", default=max(SIZES), show_default=True, help="Largest number of records.")
@click.option("--save", type=click.Path(file_okay=False, path_type=Path), help="Add the table to this folder.")
def main(rounds: int, most: int, save: Path | None) -> None:
    """Time releases of unsorted columns beside np.sort, np.quantile, polars and DuckDB."""
    click.echo(machine())
    for engine in (selection.COUNT, selection.COLLECT, selection.BETWEEN, WALK, CHAIN):
        engine.ready(1e9)
    sizes = [n for n in SIZES if n <= most] or [most]
    cases = [("normal", n, m, way) for n in sizes for m in QUANTILES for way in ("auto", "tree", "cells")]
    cases += [(name, sizes[0], 9, "tree") for name in COLUMNS]
    rows = [measure(name, n, m, rounds, way) for name, n, m, way in cases]
    for row in rows:
        click.echo("  ".join(f"{name}={v:.4g}" if isinstance(v, float) else f"{v}" for name, v in row.items()))
    if save is not None:
        click.echo(save_for_machine(save, "unsorted", rows))


if __name__ == "__main__":
    main()
