"""Forecasts beside what then happens where the prior is right: `python -m benchmarks.forecast_holds [--save FILE]`.

A thousand new records for each release, drawn by numpy from the law that the prior says, evenly spaced quantiles,
mechanism and seeds as they come. `ratio` is the forecast mean largest gap over the one that happened, `ratio_90` the
same of the distance in the data's unit that nine in ten releases keep within, of the mean over quantiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

import pq
from benchmarks.stored import save_rows
from pq.core.request import Request
from pq.truth.likely import ends_of_quantiles

Array = np.ndarray[Any, np.dtype[np.float64]]
SIZE, LEVELS, BUDGETS = 1000, (1, 3, 9, 29), (1.0, 0.3, 0.1)
AGES = np.array(pq.datasets.adult("train", "age"), dtype=np.float64)
YEARS = np.arange(AGES.min(), AGES.max() + 1.0)


def two_bells(rng: np.random.Generator) -> Array:
    return np.where(rng.random(SIZE) < 0.5, -3.0, 3.0) + rng.normal(size=SIZE)


def prior_of_ages() -> pq.PiecewiseConstant:
    counts = [float(np.count_nonzero(year == AGES)) for year in YEARS]
    return pq.PiecewiseConstant([YEARS[0] - 0.5, *(YEARS + 0.5)], counts)


SHAPES: dict[str, tuple[Callable[[np.random.Generator], Array], dict[str, Any]]] = {
    "Gaussian": (lambda rng: rng.normal(40.0, 10.0, SIZE), {"priors": pq.Normal(40, 10)}),
    "Cauchy": (lambda rng: rng.standard_cauchy(SIZE), {"priors": pq.Cauchy(0, 1)}),
    "lognormal": (lambda rng: rng.lognormal(10.0, 0.5, SIZE), {"priors": pq.LogNormal(10, 0.5)}),
    "two modes": (two_bells, {"priors": pq.Normal(-3, 1).mix(pq.Normal(3, 1), 0.5)}),
    "ages, grid of 1": (lambda rng: rng.choice(AGES, SIZE), {"priors": prior_of_ages(), "grid": 1}),
}


def happened(shape: str, quantiles: Array, releases: int, options: dict[str, Any]) -> tuple[Array, Array]:
    """Largest gaps (releases,) of releases of new data each, and distances (releases, m) in the data's unit."""
    draw, rng, request = SHAPES[shape][0], np.random.default_rng(releases), Request.of(quantiles, **options)
    gaps, off = np.empty(releases), np.empty((releases, len(quantiles)))
    for i in range(releases):
        x = np.sort(draw(rng))
        values = pq.release(x, quantiles, rng=i, **options).values
        low, high = ends_of_quantiles(x, request)
        gaps[i], off[i] = pq.max_gap(x, quantiles, values), np.maximum(np.maximum(low - values, values - high), 0.0)
    return gaps, off


def compare(shape: str, m: int, epsilon: float, releases: int) -> dict[str, Any]:
    """One row of the table; the forecast simulates as many releases."""
    options = SHAPES[shape][1] | {"epsilon": epsilon, "size_guess": SIZE}
    quantiles = (np.arange(m) + 1) / (m + 1)
    said = pq.forecast(quantiles, trials=releases, rng=m, **options)
    gaps, off = happened(shape, quantiles, releases, options)
    near, far = float(np.mean(said.error_90)), float(np.mean(np.quantile(off, 0.9, axis=0)))
    return {
        "shape": shape,
        "epsilon": epsilon,
        "m": m,
        "mechanism": said.mechanism,
        "forecast": float(f"{said.max_gap:.4g}"),
        "forecast_error": float(f"{said.max_gap_error:.2g}"),
        "happened": float(f"{np.mean(gaps):.4g}"),
        "happened_error": float(f"{np.std(gaps, ddof=1) / releases**0.5:.2g}"),
        "ratio": float(f"{said.max_gap / np.mean(gaps):.3g}"),
        "ratio_90": float(f"{near / far:.3g}") if far > 0.0 else 1.0 if near == 0.0 else math.inf,
        "releases": releases,
    }


@click.command()
@click.option("--releases", default=1000, show_default=True, type=click.IntRange(2), help="Of each row, both times.")
@click.option("--shape", multiple=True, type=click.Choice(list(SHAPES)), help="Shapes; all by default.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Put the rows into this CSV file too.")
def main(releases: int, shape: tuple[str, ...], save: Path | None) -> None:
    """Forecasts beside what then happens, over shapes, numbers of quantiles and budgets."""
    rows = []
    for where in shape or SHAPES:
        for epsilon in BUDGETS:
            for m in LEVELS:
                rows.append(row := compare(where, m, epsilon, releases))
                said, done = (f"{row[name]:8.2f} ± {row[f'{name}_error']:<6.2g}" for name in ("forecast", "happened"))
                facts = f"{where:16}{epsilon:6g}{m:4} {row['mechanism']:8}"
                click.echo(f"{facts}{said}{done}{row['ratio']:7.2f}{row['ratio_90']:7.2f}")
    if save is not None:
        save.parent.mkdir(parents=True, exist_ok=True)
        save_rows(save, rows)


if __name__ == "__main__":
    main()
