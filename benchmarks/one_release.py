"""What one release costs beside np.sort and np.quantile of the same array: `python -m benchmarks.one_release`.

Standard normal points, a prior Cauchy(0, 10), evenly spaced quantiles, epsilon 1. What is compared takes turns in the
same process and the best of several rounds is kept, so that the ratios hold on a noisy machine.

- unsorted: `pq.release` of an array in random order; np.quantile gets the same array and quantiles and is not private.
- sorted: `pq.release` of an array in order, which it has to look through once.
- column: `pq.release` of a `pq.SortedColumn`, which was looked through when it was made.
- batch: 40 releases of one unsorted array by `pq.simulate`, time of each.

Memory is the most that the process holds during a release beyond what it held before, with the input counted in.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

import pq

SIZES, QUANTILES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000), (1, 9, 99)
INPUTS = ("unsorted", "sorted", "column")
TRIALS = 40
OPTIONS: dict[str, Any] = {"epsilon": 1, "priors": pq.Cauchy(0, 10)}
Row = dict[str, Any]


def best_seconds(rounds: int, *calls: Callable[[], Any]) -> list[float]:
    """The least time of each call over some rounds, the calls taking turns."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def even(m: int) -> np.ndarray[Any, Any]:
    """m evenly spaced quantiles."""
    return (np.arange(m) + 1) / (m + 1)


def measure(n: int, m: int, kind: str, rounds: int) -> Row:
    """One row of the table: milliseconds of a release, and its ratios to sorting and to np.quantile."""
    x, quantiles = np.random.default_rng(n).normal(size=n), even(m)
    if kind in ("sorted", "column"):
        x.sort()
    given = pq.SortedColumn(x) if kind == "column" else x

    def call() -> Any:
        if kind == "batch":
            return pq.simulate(x, quantiles, trials=TRIALS, **OPTIONS)
        return pq.release(given, quantiles, **OPTIONS)

    call()  # compiles
    ours, sort, quantile = best_seconds(rounds, call, lambda: np.sort(x), lambda: np.quantile(x, quantiles))
    each = ours / TRIALS if kind == "batch" else ours
    return {
        "input": kind,
        "n": n,
        "m": m,
        "release_ms": float(f"{each * 1e3:.4g}"),
        "to_sort": float(f"{each / sort:.4g}"),
        "to_quantile": float(f"{each / quantile:.4g}"),
    }


def memory(n: int, m: int) -> Row | None:
    """The most that a release of an unsorted array holds, in sizes of the array; None where the system does not say."""
    clear, status = Path("/proc/self/clear_refs"), Path("/proc/self/status")
    if not clear.exists():
        return None

    def held(field: str) -> int:
        (line,) = (line for line in status.read_text(encoding="ascii").splitlines() if line.startswith(field))
        return int(line.split()[1]) * 1024

    pq.release(np.random.default_rng(0).normal(size=1000), even(m), **OPTIONS)
    x = np.random.default_rng(n).normal(size=n)
    clear.write_text("5", encoding="ascii")  # the peak begins anew
    before = held("VmRSS:")
    pq.release(x, even(m), **OPTIONS)
    return {"input": "memory", "n": n, "m": m, "inputs_held": round(1 + (held("VmHWM:") - before) / x.nbytes, 2)}


def limits(rows: Sequence[Row]) -> list[tuple[str, float, float]]:
    """What is aimed at: a text, the ratio measured, and the most that it may be; those that were measured."""
    table = {(row["input"], row["n"], row["m"]): row for row in rows}
    aims: list[tuple[str, Callable[[], float], float]] = [
        (f"sorted column, n from 10^4 to 10^7, m = {m}: time grows by a factor",
         lambda m=m: _ratio(table, ("column", 10**7, m), ("column", 10**4, m)), 3.0)
        for m in QUANTILES
    ]  # fmt: skip
    wanted = [("column", 10**7, 9, "to_sort", 1 / 500), ("column", 10**7, 99, "to_sort", 1 / 50)]
    wanted += [("unsorted", 10**6, 9, "to_quantile", 1.6), ("unsorted", 10**6, 99, "to_quantile", 1.6)]
    wanted += [("unsorted", 1000, 9, "to_sort", 12.0), ("batch", 1000, 9, "to_sort", 3.0)]
    wanted += [("memory", 10**6, 9, "inputs_held", 2.5), ("memory", 10**6, 99, "inputs_held", 2.5)]
    for kind, n, m, name, most in wanted:
        aims.append((f"{kind}, n = {n}, m = {m}: {name}", lambda k=(kind, n, m), c=name: float(table[k][c]), most))
    out = []
    for text, value, most in aims:
        try:
            out.append((text, value(), most))
        except KeyError:  # not measured this time
            continue
    return out


def _ratio(table: dict[Any, Row], large: Any, small: Any) -> float:
    return float(table[large]["release_ms"] / table[small]["release_ms"])


@click.command()
@click.option("--largest", default=SIZES[-1], show_default=True, help="Largest n.")
@click.option("--rounds", default=15, show_default=True, help="Times each call is made; the least counts.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Write the table to this CSV file too.")
def main(largest: int, rounds: int, save: Path | None) -> None:
    """Time one release beside np.sort and np.quantile of the same array."""
    rows: list[Row] = []
    click.echo(f"{'input':>9}{'n':>10}{'m':>5}{'release ms':>12}{'/ np.sort':>11}{'/ np.quantile':>15}")
    cases = [(n, m, kind) for kind in INPUTS for n in SIZES if n <= largest for m in QUANTILES]
    for n, m, kind in [*cases, *((1_000, m, "batch") for m in QUANTILES)]:
        rows.append(measure(n, m, kind, rounds * 20 if n <= 10_000 else rounds))
        r = rows[-1]
        click.echo(
            f"{kind:>9}{n:>10}{m:>5}{r['release_ms']:>12.4g}{r['to_sort']:>11.4g}{r['to_quantile']:>15.4g}",
        )
    for m in QUANTILES:
        held = memory(min(largest, 1_000_000), m)
        if held is not None:
            rows.append(held)
            click.echo(f"   memory{held['n']:>10}{m:>5}  {held['inputs_held']} times the input")
    for text, value, most in limits(rows):
        click.echo(f"{'ok  ' if value <= most else 'MISS'} {text} {value:.4g}, at most {most:.4g}")
    if save is not None:
        save.parent.mkdir(parents=True, exist_ok=True)
        with save.open("w", newline="") as file:
            names = list(dict.fromkeys(name for row in rows for name in row))
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
