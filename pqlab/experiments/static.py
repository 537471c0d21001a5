"""Maximum gap against the number of quantiles, for variants of `alg:quantiles` with a uniform prior (`fig:mplots`).

Every cell of the grid draws its noise from a stream that its own name gives, and its data from a stream that depends on
the data set, the size and the trial alone. So a cell gives the same row whatever else is run, in whatever order, and
all methods see the same data in a trial, which makes their differences less noisy than their means.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from tqdm import tqdm

import pq
from pq.core.choices import Adaptation, Calibration
from pqlab.experiments.table import Row


@dataclass(frozen=True)
class Method:
    """A variant of `alg:quantiles`: the tree's arity (None: that of `thm:kary-main`), its budgets, its adaptation."""

    label: str
    arity: int | None
    budget_power: float
    adaptation: Adaptation


@dataclass(frozen=True)
class Source:
    """A data set to draw records from, and the guessed interval that its uniform prior covers."""

    label: str
    unit: str
    low: float
    high: float
    draw: Callable[[int, np.random.Generator], np.ndarray[Any, np.dtype[np.float64]]]

    @property
    def prior(self) -> pq.Uniform:
        return pq.Uniform(self.low, self.high)


@dataclass(frozen=True)
class Cell:
    """One release of the experiment; `grid` is the step to which outputs are rounded, None for real numbers."""

    data: str
    calibration: Calibration
    grid: float | None
    method: str
    epsilon: float
    m: int
    trial: int


@cache
def _ages() -> np.ndarray[Any, np.dtype[np.float64]]:
    return pq.datasets.adult("train", "age").to_array()


def _draw_ages(n: int, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Ages of n people of Adult's train split, none twice."""
    return rng.choice(_ages(), size=n, replace=False)


METHODS: dict[str, Method] = {
    "original": Method("original: binary, conditional", 2, 0.0, "conditional"),
    "kary_edge": Method("K-ary, edge", None, 1.5, "edge"),
    "kary_conditional": Method("K-ary, conditional", None, 1.5, "conditional"),
}
SOURCES: dict[str, Source] = {
    "gaussian": Source("Gaussian", "", -10.0, 10.0, pq.datasets.gaussian),
    "adult_age": Source("Adult age", "years", 10.0, 120.0, _draw_ages),
}
Variant = tuple[str, Calibration, float | None]  # data, calibration, grid
VARIANTS: tuple[Variant, ...] = (
    ("gaussian", "paper", None),
    ("adult_age", "paper", None),
    ("gaussian", "sharp", None),
    ("adult_age", "sharp", 1.0),
)


def even_quantiles(m: int) -> list[Fraction]:
    """The quantiles 1/(m+1), ..., m/(m+1), exactly.

    >>> [str(q) for q in even_quantiles(3)]
    ['1/4', '1/2', '3/4']
    """
    return [Fraction(i, m + 1) for i in range(1, m + 1)]


def stream(seed: int, *name: Any) -> np.random.Generator:
    """The random stream that a seed and a name give, independent of those of other names.

    seed: not negative. name: numbers, texts and None; the same name always gives the same stream.

    >>> float(stream(0, "a", 1).random()) == float(stream(0, "a", 1).random()) != float(stream(0, "a", 2).random())
    True
    """
    digest = hashlib.sha256(repr(name).encode()).digest()
    key = tuple(int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4))
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def sample(data: str, n: int, trial: int, seed: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The records of a trial, the same for every method, epsilon and m.

    >>> len(sample("adult_age", 5, trial=0, seed=0))
    5
    """
    return SOURCES[data].draw(n, stream(seed, "data", data, n, trial))


def run_cell(cell: Cell, *, n: int = 1000, seed: int = 0) -> Row:
    """Make one release and measure it.

    n: records in a trial. Returns the cell's fields, `arity`, and `max_gap` in records (`eq:gap`, over all quantiles).

    >>> cell = Cell("gaussian", "paper", None, "original", 1.0, 3, trial=0)
    >>> row = run_cell(cell, n=100)
    >>> row["m"], row["arity"], 0 <= row["max_gap"] <= 100
    (3, 2, True)
    """
    method, source = METHODS[cell.method], SOURCES[cell.data]
    quantiles = even_quantiles(cell.m)
    x = sample(cell.data, n, cell.trial, seed)
    arity = pq.kary_arity(cell.m) if method.arity is None else method.arity
    released = pq.release(
        x,
        quantiles,
        mechanism="tree",
        epsilon=cell.epsilon,
        priors=source.prior,
        calibration=cell.calibration,
        adaptation=method.adaptation,
        arity=arity,
        budget_power=method.budget_power,
        grid=cell.grid,
        rng=stream(seed, "noise", n, *vars(cell).values()),
    )
    return vars(cell) | {"n": n, "arity": arity, "max_gap": pq.max_gap(x, quantiles, released.values)}


def cells(
    *,
    variants: Iterable[Variant] = VARIANTS,
    methods: Iterable[str] = tuple(METHODS),
    epsilons: Iterable[float] = (1.0, 0.1),
    ms: Iterable[int],
    trials: int,
) -> list[Cell]:
    """All cells of the grid, in order.

    variants: data set, calibration and output grid of each. methods: names in `METHODS`. ms: numbers of quantiles.
    Raises `ValueError` naming the argument that the experiment does not know or cannot run.

    >>> len(cells(ms=[1, 2], trials=3))
    144
    """
    chosen: dict[str, list[Any]] = {
        "variants": list(variants),
        "methods": list(methods),
        "epsilons": list(epsilons),
        "ms": list(ms),
    }
    for name, values in chosen.items():
        if not values or len(set(values)) < len(values):
            raise ValueError(f"{name} must hold at least one value, each once, got {values}")
    _known("methods", chosen["methods"], METHODS)
    _known("variants", [variant[0] for variant in chosen["variants"]], SOURCES)
    if not all(epsilon > 0 for epsilon in chosen["epsilons"]):
        raise ValueError(f"epsilons must be positive, got {chosen['epsilons']}")
    if not all(m >= 1 for m in chosen["ms"]):
        raise ValueError(f"ms must be at least 1, got {chosen['ms']}")
    if trials < 1:
        raise ValueError(f"trials must be at least 1, got {trials}")
    return [
        Cell(data, calibration, grid, method, float(epsilon), m, trial)
        for data, calibration, grid in chosen["variants"]
        for method in chosen["methods"]
        for epsilon in chosen["epsilons"]
        for m in chosen["ms"]
        for trial in range(trials)
    ]


def _known(name: str, values: Sequence[str], known: dict[str, Any]) -> None:
    unknown = [value for value in values if value not in known]
    if unknown:
        raise ValueError(f"{name} must be among {', '.join(known)}, got {unknown[0]!r}")


def run(grid: Sequence[Cell], *, n: int = 1000, seed: int = 0, progress: bool = False) -> list[Row]:
    """The table of a grid, one row a cell; see `run_cell`.

    progress: show a bar on stderr.

    >>> rows = run(cells(variants=[("gaussian", "paper", None)], ms=[1], trials=2), n=50)
    >>> len(rows), sorted(rows[0])[:5]
    (12, ['arity', 'calibration', 'data', 'epsilon', 'grid'])
    """
    bar = tqdm(grid, disable=None if progress else True, unit="release", miniters=max(1, math.ceil(len(grid) / 200)))
    return [run_cell(cell, n=n, seed=seed) for cell in bar]
