"""Mean gaps on a grid, and of quantiles off the middle: `python -m benchmarks.grid_gaps [--trials N] [--save FILE]`.

Adult ages, a thousand records drawn without replacement in each trial, whole years, prior uniform on 10 to 120; and for
continuous outputs a thousand standard normal records, prior uniform on [-10, 10]. The mean over trials of the largest
gap in ranks (`pq.max_gap`), add-remove, pure epsilon. Single quantiles on the grid are exact expectations in each
trial.

- tree: minus the gap as utility.
- margin; margin, flip; ... total: `pq.private.mechanisms.lattice.law.MarginLaw`, without and with permute-and-flip, and
  with a `public_total` that is right.
- records, least total: `pq.private.mechanisms.lattice.record_distance` with a `least_total` of a thousand.
- split ties: `pq.private.mechanisms.lattice.tie_tree.TieTree`.
- target, shifted target: the continuous mechanism without and with a `public_total` that is right.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import click
import numpy as np

import pq
from benchmarks.stored import save_rows
from pq.core.scores import Target
from pq.core.sensitivity import rate, sensitivity
from pq.private.columns.cells import Lattice, Points
from pq.private.columns.door import Array
from pq.private.mechanisms.independent import Law
from pq.private.mechanisms.lattice.flip import log_chances
from pq.private.mechanisms.lattice.law import MarginLaw
from pq.private.mechanisms.lattice.record_distance import record_margins
from pq.private.mechanisms.lattice.tie_tree import TieTree

N, YEARS, PRIOR = 1000, np.arange(10.0, 121.0), pq.Uniform(9.5, 120.5)
DECILES = tuple(Fraction(k, 10) for k in range(1, 10))

Gap = Callable[[Array, np.random.Generator], float]


def thousand_ages(rng: np.random.Generator) -> Array:
    """A thousand ages, sorted."""
    return np.sort(rng.choice(np.asarray(pq.datasets.adult()), N, replace=False))


def tree_gap(quantiles: tuple[Fraction, ...], epsilon: Fraction) -> Gap:
    """The largest gap of one release by the tree."""
    return lambda x, rng: pq.max_gap(
        x, quantiles, pq.release(x, quantiles, epsilon=epsilon, priors=PRIOR, grid=1, mechanism="tree", rng=rng).values
    )


def split_gap(quantiles: tuple[Fraction, ...], epsilon: Fraction) -> Gap:
    """The largest gap of one release by split ties."""
    asked = TieTree(pq.plan(quantiles, epsilon=epsilon), (PRIOR,) * len(quantiles))

    def gap(x: Array, rng: np.random.Generator) -> float:
        uniforms = np.asarray(rng.integers(1, 2**53, (len(quantiles), 3)) * 2.0**-53, dtype=np.float64)
        outcomes = asked.draw(Lattice.of(x, Fraction(1), unit=asked.unit), uniforms)
        return pq.max_gap(x, quantiles, [o for o, _ in outcomes])

    return gap


def margin_gap(q: Fraction, epsilon: Fraction, flip: bool, total: int | None = None) -> Gap:
    """The expected gap of a margin law on one column."""
    calibration = "sharp" if total is None else "shifted"
    step = rate(epsilon, sensitivity(q, 1, "add-remove", calibration))

    def gap(x: Array, rng: np.random.Generator) -> float:
        column = Lattice.of(x, Fraction(1))
        view, target = column.view(-math.inf, math.inf, 0, 0), Target.of(q, N, calibration, total)
        law = MarginLaw(column, view, -math.inf, math.inf, PRIOR, target, step, flip=flip)
        chances = np.exp([law.log_probability(o) for o in YEARS])
        return float(chances @ [float(pq.gap(x, q, o)[0]) for o in YEARS])

    return gap


def record_gap(q: Fraction, epsilon: Fraction, least_total: int) -> Gap:
    """The expected gap on one column of margins counted in records, permute-and-flip."""

    def gap(x: Array, rng: np.random.Generator) -> float:
        below, up_to = (np.searchsorted(x, YEARS, side=side) for side in ("left", "right"))
        margins = record_margins(below, up_to, N, q, least_total)
        chances = np.exp(log_chances(float(epsilon) / 2.0 * margins, np.ones(len(YEARS))))
        return float(chances @ [float(pq.gap(x, q, o)[0]) for o in YEARS])

    return gap


def continuous_gap(q: Fraction, epsilon: Fraction, total: int | None = None) -> Gap:
    """The gap of one release of real numbers."""
    calibration = "sharp" if total is None else "shifted"
    step = rate(epsilon, sensitivity(q, 1, "add-remove", calibration))

    def gap(x: Array, rng: np.random.Generator) -> float:
        points, target = Points(x), Target.of(q, N, calibration, total)
        law = Law(
            points, points.view(-math.inf, math.inf), -math.inf, math.inf, pq.Uniform(-10, 10), target, step, False
        )
        return float(pq.gap(x, q, law.draw(*(rng.integers(1, 2**53, 2) * 2.0**-53).tolist()))[0])

    return gap


def measured() -> list[tuple[str, str, Gap]]:
    """What is measured: (quantiles and budget, law, gap of one trial)."""
    rows: list[tuple[str, str, Gap]] = []
    high, one = Fraction(99, 100), Fraction(1)
    for q, epsilon in (
        (Fraction(1, 2), Fraction(1, 10)),
        (Fraction(9, 10), Fraction(1)),
        (Fraction(99, 100), Fraction(1)),
    ):
        about = f"ages, q {float(q):g}, eps {float(epsilon):g}"
        rows += [
            (about, "tree", tree_gap((q,), epsilon)),
            (about, "margin", margin_gap(q, epsilon, False)),
            (about, "margin, flip", margin_gap(q, epsilon, True)),
            (about, "margin, flip, total", margin_gap(q, epsilon, True, N)),
        ]
    for epsilon in (Fraction(1, 10), one):
        about, q = f"ages, q 0.8, eps {float(epsilon):g}", Fraction(4, 5)
        rows += [(about, "margin, flip", margin_gap(q, epsilon, True))]
        rows += [(about, "records, least total", record_gap(q, epsilon, N))]
    rows += [("ages, deciles, eps 1", "tree", tree_gap(DECILES, one))]
    rows += [("ages, deciles, eps 1", "split ties", split_gap(DECILES, one))]
    rows += [("normal, q 0.99, eps 1", "target", continuous_gap(high, one))]
    rows += [("normal, q 0.99, eps 1", "shifted target", continuous_gap(high, one, N))]
    return rows


def gap_table(trials: int) -> list[dict[str, str | float]]:
    """One row for each case: the mean gap and its standard error."""
    rows: list[dict[str, str | float]] = []
    for about, name, gap in measured():
        gaps = []
        for trial in range(trials):
            rng = np.random.default_rng(trial)
            x = thousand_ages(rng) if about.startswith("ages") else np.sort(rng.normal(size=N))
            gaps.append(gap(x, rng))
        error = float(np.std(gaps)) / math.sqrt(trials)
        rows.append({"case": about, "law": name, "mean_gap": float(np.mean(gaps)), "error": error})
    return rows


@click.command()
@click.option("--trials", default=200, show_default=True, help="Columns of each row.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Write the table to this CSV file too.")
def main(trials: int, save: Path | None) -> None:
    """Mean gaps of laws on a grid and of shifted targets."""
    rows = gap_table(trials)
    for row in rows:
        click.echo(f"{row['case']:<24}{row['law']:<24}{row['mean_gap']:>9.3f} ± {row['error']:.3f}")
    if save is not None:
        save_rows(save, rows, digits=4)


if __name__ == "__main__":
    main()
