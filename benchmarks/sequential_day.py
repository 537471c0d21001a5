"""What a day of a sequential release costs beside sorting 1,000 numbers: `python -m benchmarks.sequential_day`.

Days of 100 points with ten features, nine quantiles, one trial, epsilon 1; the cost of a day holds the priors, the
release and the learning. Sequences and sorts take turns in the same process. The least time of a sort counts, and of
the sequence the least mean over a stretch of days, so that the ratios hold on a noisy machine; `mean` is over all days.
"""

from __future__ import annotations

import time
from typing import Any

import click
import numpy as np

import pq
from benchmarks.one_release import Clock
from pq import sequential
from pqlab.experiments.static import even_quantiles

QUANTILES = even_quantiles(9)
GUESS: dict[str, Any] = {"loc": 0.0, "scale": 1.0, "robust": pq.Cauchy(0.0, 1.0)}
LEARNT: dict[str, Any] = GUESS | {"resolution": 0.01, "dimension": 10}


def predictors(days: int) -> dict[str, sequential.Predictor]:
    """Every predictor, by name."""
    return {
        "Uniform": sequential.Static(pq.Uniform(-100, 100), QUANTILES),
        "Cauchy": sequential.Static(pq.Cauchy(0, 1), QUANTILES),
        "PubPrev": sequential.PubPrev(QUANTILES, **GUESS),
        "PubProx": sequential.PubProx(QUANTILES, **LEARNT),
        "DPLearned": sequential.DPLearned(QUANTILES, steps=days, epsilon=0.5, delta=1e-6, **LEARNT),
        "NonPrivate": sequential.NonPrivate(QUANTILES, **LEARNT),
    }


def seconds(
    predictor: sequential.Predictor,
    data: pq.datasets.SyntheticSequence,
    stretch: int,
    clock: Clock = time.perf_counter,
) -> np.ndarray[Any, Any]:
    """Mean seconds of a day in each stretch of days."""
    datasets, out = list(data.datasets), []
    session = sequential.Session(predictor, QUANTILES, mechanism="tree", epsilon=1, rng=0)
    for start in range(0, len(datasets), stretch):
        days = range(start, min(start + stretch, len(datasets)))
        begin = clock()
        for day in days:
            session.step(data.features[day], datasets[day])
        out.append((clock() - begin) / len(days))
    return np.array(out)


def sort_seconds(rounds: int = 300, repeats: int = 10, clock: Clock = time.perf_counter) -> float:
    """The least time of np.sort of 1,000 uniform numbers."""
    x = np.random.default_rng(0).random(1000)
    least = float("inf")
    for _ in range(rounds):
        begin = clock()
        for _ in range(repeats):
            np.sort(x)
        least = min(least, (clock() - begin) / repeats)
    return least


@click.command()
@click.option("--days", default=2500, show_default=True, help="Data sets in the sequence.")
@click.option("--stretch", default=25, show_default=True, help="Days that are timed together.")
def main(days: int, stretch: int) -> None:
    """Time a day of every predictor beside np.sort of 1,000 numbers."""
    data = pq.datasets.synthetic(days, rng=np.random.default_rng(0))
    click.echo(f"{'predictor':>11}{'day us':>9}{'sort us':>9}{'ratio':>8}{'mean':>8}")
    for name, predictor in predictors(days).items():
        sort = sort_seconds()
        each = seconds(predictor, data, stretch)
        sort = min(sort, sort_seconds())
        least = float(each.min())
        mean = float(each.mean()) / sort
        click.echo(f"{name:>11}{least * 1e6:>9.0f}{sort * 1e6:>9.2f}{least / sort:>8.0f}{mean:>8.0f}")


if __name__ == "__main__":
    main()
