"""What one release costs beside sorting the same array: `python -m benchmarks.one_release [--save FILE]`.

Sorted and unsorted standard normal points, Cauchy(0, 10), evenly spaced quantiles, epsilon 1. The two are timed in turn
in the same process and the best of several rounds is kept, so that the ratios hold on a noisy machine.
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

SIZES, QUANTILES = (1_000, 100_000, 1_000_000), (1, 9, 99)


def best_seconds(rounds: int, *calls: Callable[[], Any]) -> list[float]:
    """The least time of each call over some rounds, the calls taking turns."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def measure(n: int, m: int, in_order: bool, rounds: int) -> dict[str, Any]:
    """One row of the table: milliseconds of a release and of a sort, and their ratio."""
    x = np.random.default_rng(n).normal(size=n)
    if in_order:
        x.sort()
    quantiles = (np.arange(m) + 1) / (m + 1)
    released, sorted_ = best_seconds(
        rounds, lambda: pq.release(x, quantiles, epsilon=1, priors=pq.Cauchy(0, 10)), lambda: np.sort(x)
    )
    return {
        "n": n,
        "m": m,
        "input": "sorted" if in_order else "unsorted",
        "release_ms": round(released * 1e3, 3),
        "sort_ms": round(sorted_ * 1e3, 3),
        "ratio": round(released / sorted_, 3),
    }


@click.command()
@click.option("--rounds", default=7, show_default=True, help="Times each call is made; the least counts.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Write the table to this CSV file too.")
def main(rounds: int, save: Path | None) -> None:
    """Time one release beside np.sort of the same array."""
    rows = [measure(n, m, in_order, rounds) for in_order in (True, False) for n in SIZES for m in QUANTILES]
    click.echo(f"{'input':>9}{'n':>10}{'m':>5}{'release ms':>12}{'sort ms':>10}{'ratio':>9}")
    for r in rows:
        click.echo(
            f"{r['input']:>9}{r['n']:>10}{r['m']:>5}{r['release_ms']:>12.3f}{r['sort_ms']:>10.3f}{r['ratio']:>9.3f}"
        )
    if save is not None:
        with save.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
