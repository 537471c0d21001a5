"""Release with priors from public data: maximum gap against epsilon and against the mixture of two populations
(`fig:pubpri-logepsplots`, `fig:mixplots`, Section 5.2).

As in `pqlab.experiments.static` every cell gives the same row whatever else is run. All methods see the same records
and the same uniform random numbers in a trial.

What is public is drawn too: which records are held out, and which samples a fit learns from. A split is one such draw.
With as many splits as trials each trial has its own, and standard errors over trials are those of the experiment; one
split for all trials saves the time of fits, and its errors are given that split.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np
from tqdm import tqdm

import pq
from pq.core.exact import rank
from pq.core.priors import Prior
from pqlab.experiments.public_sources import SOURCES
from pqlab.experiments.static import even_quantiles, stream
from pqlab.experiments.table import Row

Array = np.ndarray[Any, np.dtype[np.float64]]
Variant = Literal["paper", "grid", "level"]
VARIANTS: tuple[Variant, ...] = ("paper", "grid", "level")
ROBUST_WEIGHT = 0.1
HELD_OUT = 0.1  # part of the first population that is not public, where private records are drawn from it
RESULTS = Path(__file__).resolve().parents[2] / "results" / "public_private"


METHODS: dict[str, str] = {
    "uniform": "Uniform",
    "half_cauchy": "half-Cauchy",
    "public_quantiles": "public quantiles",
    "public_cauchy": "public Cauchy",
    "pubfit": "PubFit",
    "pubfit_robust": "PubFit (robust)",
    "ogd": "PubFit by OGD",
    "ogd_robust": "PubFit by OGD (robust)",
}
EXPERIMENTS: dict[str, tuple[tuple[str, ...], str]] = {  # sources, and what varies
    "adult": (("adult_age", "adult_hours"), "epsilon"),
    "movies": (("movies_rating", "movies_length"), "mixture"),
    "goodreads": (("goodreads_rating", "goodreads_pages"), "mixture"),
    "goodreads11k": (("goodreads11k_rating", "goodreads11k_pages"), "mixture"),
}


def _named(*name: Any, split: int) -> tuple[Any, ...]:
    """The name of a stream of a split."""
    return (*name, "split", split) if split else name


@lru_cache(maxsize=8)  # a split of all books is large, and trials come one after another
def populations(source: str, seed: int = 0, split: int = 0) -> tuple[Array, Array, Array]:
    """Public records, private records of the first population, and private ones of the second.

    Where the source holds out a part of the first population, the three are disjoint; Adult's private records are those
    of the second table alone, a draw from the same population.

    >>> [len(records) for records in populations("adult_age")]
    [32561, 0, 16281]
    """
    chosen = SOURCES[source]
    first, second = chosen.first().to_array(), chosen.second().to_array()
    if not chosen.held_out:
        return first, first[:0], second
    shuffled = stream(seed, *_named("held out", source, split=split)).permutation(first)
    kept = math.ceil(HELD_OUT * len(shuffled))
    return shuffled[kept:], shuffled[:kept], second


def sample(source: str, mixture: float, n: int, trial: int, seed: int = 0, split: int = 0) -> Array:
    """The sorted private records of a trial: `round(mixture * n)` of the second population, the others of the first.

    >>> len(sample("movies_length", 0.3, 100, trial=0))
    100
    """
    _, first, second = populations(source, seed, split)
    rng = stream(seed, "private", source, n, trial)
    shifted = round(mixture * n) if len(first) else n
    parts = rng.choice(second, shifted, replace=False), rng.choice(first, n - shifted, replace=False)
    return np.sort(np.concatenate(parts))


def fit_stream(source: str, optimizer: str, n: int, m: int, seed: int, split: int) -> np.random.Generator:
    """The cuts of the public records that a fit learns from."""
    return stream(seed, *_named("fit", source, optimizer, n, m, split=split))


def ties_of(variant: Variant) -> str:
    """What a fit aims at where public records are equal: their value if outputs are on the grid, else beside it."""
    return "between" if variant == "grid" else "beside"


@lru_cache(maxsize=1024)
def _fitted(source: str, optimizer: str, n: int, m: int, seed: int, ties: str, split: int) -> tuple[pq.Laplace, ...]:
    loc, scale, resolution = SOURCES[source].guesses()
    priors = pq.fit_public(
        populations(source, seed, split)[0],
        even_quantiles(m),
        sample_size=n,
        loc=loc,
        scale=scale,
        min_width=resolution,
        optimizer=optimizer,
        rng=fit_stream(source, optimizer, n, m, seed, split),
        ties=ties,
    )
    return tuple(priors)


def fitted(
    source: str, optimizer: str, n: int, m: int, seed: int = 0, variant: Variant = "grid", split: int = 0
) -> tuple[pq.Laplace, ...]:
    """The priors that PubFit learns from a source's public records of a split."""
    return _fitted(source, optimizer, n, m, seed, ties_of(variant), split)


Fit = Callable[..., tuple[pq.Laplace, ...]]


@lru_cache(maxsize=1024)
def public_quantiles(source: str, variant: Variant, m: int, seed: int = 0, split: int = 0) -> Array:
    """The quantiles of the public records, as values that may be released.

    "grid": the value at the rank. Real outputs: the distinct value, or a step beyond the largest, that has nearest to
    the wanted number of records below it, as eq:gap counts.
    """
    x = np.sort(populations(source, seed, split)[0])
    targets = np.array([rank(q, len(x)) for q in even_quantiles(m)])
    if variant == "grid":
        return np.asarray(x[np.maximum(targets - 1, 0)])
    values, below = np.unique(x, return_index=True)
    nearest = np.argmin(np.abs(np.append(below, len(x)) - targets[:, None]), axis=1)
    return np.append(values, x[-1] + SOURCES[source].resolution)[nearest]


def priors(
    method: str,
    source: str,
    n: int,
    m: int,
    seed: int = 0,
    variant: Variant = "grid",
    split: int = 0,
    fit: Fit = fitted,
) -> list[Prior]:
    """The m priors of a method; `public_quantiles`, which releases nothing private, has none.

    >>> priors("public_cauchy", "adult_age", 100, 1)
    [Cauchy(loc=38.0, scale=5.0)]
    """
    facts = SOURCES[source]
    safe = pq.HalfCauchy(facts.loc)
    if method == "uniform":
        return [pq.Uniform(facts.low, facts.high(q)) for q in even_quantiles(m)]
    if method == "half_cauchy":
        return [safe] * m
    if method == "public_cauchy":
        return [pq.Cauchy(value, facts.scale) for value in public_quantiles(source, "paper", m, seed, split).tolist()]
    optimizer, _, robust = method.partition("_")
    learned = fit(source, {"pubfit": "cocob", "ogd": "ogd"}[optimizer], n, m, seed, variant, split)
    return [prior.mix(safe, ROBUST_WEIGHT) if robust else prior for prior in learned]


def excess_gap(x: Array, quantiles: Sequence[Fraction], values: Array) -> int:
    """The largest gap, literally as in eq:gap, each less the least that any real number has.

    x: (n,) sorted. Where values repeat no real number reaches most ranks; a gap of 0 is as good as can be.

    >>> x, half = np.array([1.0, 2.0, 2.0, 2.0]), [Fraction(1, 2)]
    >>> excess_gap(x, half, np.array([2.5])), pq.max_gap(x, half, [2.5])
    (1, 2)
    """
    targets = np.array([rank(q, len(x)) for q in quantiles])
    reachable = np.append(np.unique(x, return_index=True)[1], len(x))
    least = np.min(np.abs(reachable - targets[:, None]), axis=1)
    return int(np.max(np.abs(np.searchsorted(x, values) - targets) - least))


@dataclass(frozen=True)
class Cell:
    """One release of the experiment.

    variant: "paper" is the paper's calibration with real outputs on the binary tree, measured by `excess_gap`; "grid"
    the sharp calibration with outputs on the grid of the source's resolution, measured by `pq.max_gap`; "level" the
    sharp calibration with real outputs, all quantiles on one level, so that each is looked for among all records with
    an equal part of the budget, measured by `excess_gap`.
    """

    source: str
    variant: Variant
    method: str
    epsilon: float
    mixture: float
    trial: int


def run_cell(cell: Cell, *, n: int = 100, m: int = 9, seed: int = 0, splits: int = 1, fit: Fit = fitted) -> Row:
    """Make one release and measure it: the cell's fields and `max_gap` in records. splits: trials take them in turn.
    fit: what PubFit learns, from the arguments of `fitted`.

    >>> row = run_cell(Cell("adult_age", "grid", "uniform", 1.0, 0.0, trial=0))
    >>> 0 <= row["max_gap"] <= 100
    True
    """
    split, quantiles = cell.trial % splits, even_quantiles(m)
    x = sample(cell.source, cell.mixture, n, cell.trial, seed, split)
    if cell.method == "public_quantiles":
        values = public_quantiles(cell.source, cell.variant, m, seed, split)
    else:
        options: dict[Variant, dict[str, Any]] = {
            "paper": {"calibration": "paper"},
            "grid": {"grid": Fraction(str(SOURCES[cell.source].resolution))},
            "level": {"arity": m + 1},
        }
        values = pq.release(
            x,
            quantiles,
            mechanism="tree",
            epsilon=cell.epsilon,
            priors=priors(cell.method, cell.source, n, m, seed, cell.variant, split, fit),
            rng=stream(seed, "noise", cell.source, n, m, cell.epsilon, cell.mixture, cell.trial),
            **options[cell.variant],
        ).values
    measure = pq.max_gap if cell.variant == "grid" else excess_gap
    return vars(cell) | {"max_gap": measure(x, quantiles, values)}


def cells(
    experiment: str,
    *,
    epsilons: Iterable[float],
    mixtures: Iterable[float],
    trials: int,
    variants: Iterable[Variant] = VARIANTS,
    methods: Iterable[str] = tuple(METHODS),
) -> list[Cell]:
    """All cells of an experiment in `EXPERIMENTS`, in order.

    Raises `ValueError` naming the argument that the experiment does not know or cannot run.

    >>> len(cells("adult", epsilons=[0.1, 1.0], mixtures=[0.0], trials=3))
    288
    """
    if experiment not in EXPERIMENTS:
        raise ValueError(f"experiment must be one of {', '.join(EXPERIMENTS)}, got {experiment!r}")
    chosen, budgets, parts = list(methods), [float(e) for e in epsilons], [float(p) for p in mixtures]
    unknown = [method for method in chosen if method not in METHODS]
    if unknown:
        raise ValueError(f"methods must be among {', '.join(METHODS)}, got {unknown[0]!r}")
    if not all(epsilon > 0 for epsilon in budgets):
        raise ValueError(f"epsilons must be positive, got {budgets}")
    if not all(0 <= part <= 1 for part in parts):
        raise ValueError(f"mixtures must be between 0 and 1, got {parts}")
    if trials < 1:
        raise ValueError(f"trials must be at least 1, got {trials}")
    return [
        Cell(source, variant, method, epsilon, mixture, trial)
        for source in EXPERIMENTS[experiment][0]
        for variant in variants
        for method in chosen
        for epsilon in budgets
        for mixture in parts
        for trial in range(trials)
    ]


def run(
    grid: Sequence[Cell], *, n: int = 100, m: int = 9, seed: int = 0, splits: int = 1, progress: bool = False
) -> list[Row]:
    """The table of a grid, one row a cell; see `run_cell`. progress: show a bar on stderr."""
    bar = tqdm(grid, disable=None if progress else True, unit="release", miniters=max(1, math.ceil(len(grid) / 200)))
    return [run_cell(cell, n=n, m=m, seed=seed, splits=splits) for cell in bar]


FIELDS = ("source", "variant", "method", "epsilon", "mixture")


def write_table(path: Path, rows: Iterable[Row], heading: str) -> None:
    """Store a table, the gaps of all trials of a group in one line, below a heading that says where it comes from."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in FIELDS), []).append(row["max_gap"])
    lines = [f"# {heading}", ",".join((*FIELDS, "max_gap"))]
    for key, gaps in groups.items():
        texts = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in key]
        lines.append(",".join([*texts, " ".join(map(str, gaps))]))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_table(path: Path) -> list[Row]:
    """The rows of a stored table, as `run` gives them."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return [
        {name: float(line[name]) if name in ("epsilon", "mixture") else line[name] for name in FIELDS}
        | {"trial": trial, "max_gap": int(gap)}
        for line in csv.DictReader(lines)
        for trial, gap in enumerate(line["max_gap"].split())
    ]


def grid_of(experiment: str) -> tuple[list[float], list[float]]:
    """The paper's epsilons and mixtures: nine steps of half a decade, or eleven of a tenth at epsilon 1.

    >>> grid_of("adult")[0][:3], grid_of("movies")[1][-2:]
    ([0.001, 0.00316228, 0.01], [0.9, 1.0])
    """
    if EXPERIMENTS[experiment][1] == "epsilon":
        return [float(f"{10**power:.6g}") for power in np.linspace(-3, 1, 9)], [0.0]
    return [1.0], [round(0.1 * k, 1) for k in range(11)]


@click.command()
@click.argument("experiment", type=click.Choice(list(EXPERIMENTS)))
@click.option("--trials", default=40, show_default=True, type=click.IntRange(min=1))
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0))
@click.option("--out", type=click.Path(path_type=Path), default=None, help="file; by default among the results")
def main(experiment: str, trials: int, seed: int, out: Path | None) -> None:
    """Run an experiment as in the paper, with a split for each trial, and store its table."""
    epsilons, mixtures = grid_of(experiment)
    grid = cells(experiment, epsilons=epsilons, mixtures=mixtures, trials=trials)
    # Trials outermost: one split in memory at a time.
    rows = run(sorted(grid, key=lambda cell: cell.trial), seed=seed, splits=trials, progress=True)
    command = f"python -m pqlab.experiments.public_private {experiment} --trials {trials} --seed {seed}"
    write_table(out or RESULTS / f"{experiment}.csv", rows, command)


if __name__ == "__main__":
    main()
