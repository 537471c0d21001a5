"""What releases cost beside np.sort and np.quantile: `python -m benchmarks.one_release [--save FILE]`.

Standard normal points, Cauchy(0, 10), evenly spaced quantiles, epsilon 1. Calls that are compared take turns in one
process and the best of several rounds counts, so that the ratios hold on a noisy machine. Memory is the peak of what
numpy and Python hold, the input included.

- sorted: a `pq.SortedColumn`, prepared once, as for many releases of one column. `growth` is the time over that of the
  least n.
- unsorted: `pq.release` of the plain array.
- batched: `pq.simulate` of 40 trials, for each of them.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

import pq
from benchmarks.stored import save_rows

SORTED_SIZES, UNSORTED_SIZES = (10**4, 10**5, 10**6, 10**7), (10**3, 10**4, 10**5, 10**6)
QUANTILES, TRIALS = (1, 9, 99), 40
PRIOR = pq.Cauchy(0, 10)


Clock = Callable[[], float]


def best_seconds(
    rounds: int, *calls: Callable[[], Any], least: float = 5e-3, clock: Clock = time.perf_counter
) -> list[float]:
    """The least time of each call over some rounds, the calls taking turns; short ones are repeated to `least`."""
    repeats = []
    for call in calls:
        call()
        start = clock()
        call()
        repeats.append(max(1, int(least / (clock() - start))))
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            start = clock()
            for _ in range(repeats[i]):
                call()
            best[i] = min(best[i], (clock() - start) / repeats[i])
    return best


def peak_ratio(x: Any, call: Callable[[], Any]) -> float:
    """Peak memory of a call, with the input, as a multiple of the input."""
    tracemalloc.start()
    call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return 1.0 + peak / x.nbytes


def measure(kind: str, n: int, m: int, rounds: int) -> dict[str, Any]:
    """One row of the table."""
    x = np.random.default_rng(n).normal(size=n)
    quantiles = (np.arange(m) + 1) / (m + 1)
    column, each, call = x, 1, pq.release
    options: dict[str, Any] = {"epsilon": 1, "priors": PRIOR}
    if kind == "sorted":
        column = pq.SortedColumn(x)
    if kind == "batched":
        call, each, options = pq.simulate, TRIALS, options | {"trials": TRIALS}

    def release() -> Any:
        return call(column, quantiles, **options)

    taken, sort, quantile = best_seconds(
        max(3, rounds // (1 + n // 10**5)), release, lambda: np.sort(x), lambda: np.quantile(x, quantiles)
    )
    return {
        "kind": kind,
        "n": n,
        "m": m,
        "release_us": taken / each * 1e6,
        "to_sort": taken / each / sort,
        "to_quantile": taken / each / quantile,
        "memory": peak_ratio(x, release) if kind == "unsorted" else float("nan"),
    }


def with_growth(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with the time of each over that of the least n of its kind and m."""
    least = {(r["kind"], r["m"]): r["release_us"] for r in sorted(rows, key=lambda r: -r["n"])}
    return [row | {"growth": row["release_us"] / least[row["kind"], row["m"]]} for row in rows]


@click.command()
@click.option("--rounds", default=40, show_default=True, help="Turns of the calls; fewer for large n.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Write the table to this CSV file too.")
def main(rounds: int, save: Path | None) -> None:
    """Time releases beside np.sort and np.quantile of the same array."""
    kinds = [("sorted", SORTED_SIZES), ("unsorted", UNSORTED_SIZES), ("batched", (1000,))]
    rows = with_growth([measure(kind, n, m, rounds) for kind, sizes in kinds for m in QUANTILES for n in sizes])
    click.echo(
        f"{'input':>9}{'n':>10}{'m':>5}{'release us':>12}{'to np.sort':>12}{'to np.quantile':>16}{'memory':>8}"
        f"{'growth':>8}"
    )
    for r in rows:
        click.echo(
            f"{r['kind']:>9}{r['n']:>10}{r['m']:>5}{r['release_us']:>12.1f}{r['to_sort']:>12.5f}"
            f"{r['to_quantile']:>16.5f}{r['memory']:>8.2f}{r['growth']:>8.2f}"
        )
    if save is not None:
        save_rows(save, rows, digits=5)


if __name__ == "__main__":
    main()
