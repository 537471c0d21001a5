"""How far from the best that any private release can do: `python -m benchmarks.limits [--save FILE]`.

For columns of few records on few values the best epsilon-private release of one quantile is a linear program: its
variables are the probabilities of every output on every column, its constraints the definition of privacy for all pairs
of neighbours (add-remove), its aim the least expected gap, in the worst column (`worst`) or on the mean over all
columns (`mean`, another program: no release need have both). Columns of one record less and one more than those that
count are constrained too, so that nothing is gained by having no neighbours.

The gap is the distance of `q n` from the ranks that an output stands for. Beside the limits stand the exact expected
gaps of our laws, uniform prior on the values, and how many times the limit each is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import numpy as np
from scipy import optimize, sparse

import pq
from benchmarks.stored import save_rows
from pq.core.scores import Target
from pq.core.sensitivity import rate, sensitivity
from pq.private.columns.cells import Lattice
from pq.private.columns.door import Array
from pq.private.mechanisms.lattice.flip import log_chances
from pq.private.mechanisms.lattice.law import MarginLaw
from pq.private.mechanisms.lattice.record_distance import record_margins
from pq.private.mechanisms.lattice.remainder import remainder_law

Records = tuple[int, ...]


@dataclass(frozen=True)
class SmallLattice:
    """Columns of `sizes` records on `values` values, and what is released: the quantile q at epsilon.

    total: what `public_total` and `least_total` are given where a law takes one. shift: that of `remainder_law`, about
    (2 q - 1) times a typical number of records.
    """

    values: int
    sizes: range
    epsilon: Fraction
    q: Fraction
    total: int
    shift: int = 0

    @property
    def columns(self) -> list[Records]:
        """All columns whose gap counts."""
        return list(every_column(self.values, self.sizes))

    def gaps(self, column: Records) -> Array:
        """(values,) the gap of each output on a column."""
        up_to = np.searchsorted(column, np.arange(self.values), side="right")
        below = np.searchsorted(column, np.arange(self.values), side="left")
        target = float(self.q * len(column))
        return np.maximum(np.maximum(below - target, target - up_to), 0.0)


CASES = (
    SmallLattice(4, range(4, 9), Fraction(1), Fraction(1, 2), 4),
    SmallLattice(8, range(2, 4), Fraction(2), Fraction(1, 2), 2),
    SmallLattice(6, range(2, 5), Fraction(1), Fraction(1, 2), 2),
    SmallLattice(5, range(2, 6), Fraction(1), Fraction(4, 5), 4, 3),
)


def every_column(values: int, sizes: range) -> Iterator[Records]:
    """All columns of some sizes on the values 0, 1, ..."""
    for size in sizes:
        yield from itertools.combinations_with_replacement(range(values), size)


def one_more(columns: list[Records], values: int) -> Iterator[tuple[int, int]]:
    """Indices of all pairs of columns of which the second has one record more."""
    index = {column: i for i, column in enumerate(columns)}
    for column, value in itertools.product(columns, range(values)):
        larger = index.get(tuple(sorted((*column, value))))
        if larger is not None:
            yield index[column], larger


def limit(case: SmallLattice, aim: str) -> tuple[float, list[Records], Array]:
    """The least expected gap of any release, and the release that has it: (columns, values) probabilities.

    aim: "worst" or "mean". Raises `RuntimeError` if the solver gives up.

    >>> small = SmallLattice(2, range(1, 2), Fraction(1), Fraction(1, 2), 1)
    >>> round(limit(small, "worst")[0], 6)
    0.091970
    """
    k, counted = case.values, case.columns
    columns = list(every_column(k, range(max(case.sizes[0] - 1, 0), case.sizes[-1] + 2)))
    pairs = np.array(list(one_more(columns, k)))
    pairs = np.concatenate([pairs, pairs[:, ::-1]])
    cells = (pairs[:, :, None] * k + np.arange(k)).transpose(0, 2, 1).reshape(-1, 2)
    rows = np.arange(len(cells))
    size = len(columns) * k
    private = sparse.coo_array(
        (np.tile([1.0, -math.exp(case.epsilon)], len(cells)), (np.repeat(rows, 2), cells.ravel())),
        shape=(len(cells), size + 1),
    )
    gaps = np.zeros((len(columns), k))
    first = columns.index(counted[0])
    gaps[first : first + len(counted)] = [case.gaps(column) for column in counted]
    lines = sparse.block_diag([gap[None] for gap in gaps], format="csr")[first : first + len(counted)]
    worst = sparse.hstack([lines, np.full((len(counted), 1), -1.0)])
    cost = np.append(np.zeros(size), 1.0) if aim == "worst" else np.append(gaps.ravel() / len(counted), 0.0)
    sums = sparse.hstack([sparse.kron(sparse.eye(len(columns)), np.ones((1, k))), np.zeros((len(columns), 1))])
    found = optimize.linprog(
        cost,
        A_ub=sparse.vstack([private, worst]).tocsr(),
        b_ub=np.zeros(len(cells) + len(counted)),
        A_eq=sums.tocsr(),
        b_eq=np.ones(len(columns)),
        bounds=(0, None),
        method="highs-ipm",  # ten times as fast as the simplex here
    )
    if found.status != 0:
        raise RuntimeError(found.message)
    return float(found.fun), columns, found.x[:-1].reshape(len(columns), k)


def gap_law(case: SmallLattice, column: Records) -> Array:
    """Log probabilities by minus the gap, as the tree releases: flat inside ties."""
    prior = pq.Uniform(-0.5, case.values - 0.5)
    options: dict[str, Any] = {"epsilon": case.epsilon, "priors": prior, "grid": 1, "mechanism": "tree"}
    return np.array([pq.log_density(list(column), [float(o)], [case.q], **options) for o in range(case.values)])


def margin_law(case: SmallLattice, column: Records, *, flip: bool, public_total: int | None = None) -> Array:
    """Log probabilities by margins with open ends."""
    lattice = Lattice.of(np.array(column, dtype=np.float64), Fraction(1))
    calibration = "sharp" if public_total is None else "shifted"
    bound = sensitivity(case.q, 1, "add-remove", calibration)
    law = MarginLaw(
        lattice,
        lattice.view(-math.inf, math.inf, 0, 0),
        -math.inf,
        math.inf,
        pq.Uniform(-0.5, case.values - 0.5),
        Target.of(case.q, len(column), calibration, public_total),
        rate(case.epsilon, bound),
        flip=flip,
    )
    return np.array([law.log_probability(float(o)) for o in range(case.values)])


def record_law(case: SmallLattice, column: Records) -> Array:
    """Log probabilities by margins that are counted in records, permute-and-flip."""
    below, up_to = (np.searchsorted(column, np.arange(case.values), side=side) for side in ("left", "right"))
    margins = record_margins(below, up_to, len(column), case.q, case.total)
    log_weight = float(case.epsilon) / 2.0 * margins
    return log_chances(log_weight, np.ones(case.values))


def rest_law(case: SmallLattice, column: Records) -> Array:
    """Log probabilities by remainders."""
    counts = np.bincount(np.array(column, dtype=np.int64), minlength=case.values)
    return np.log(remainder_law(counts, case.shift, float(case.epsilon)))


LAWS: dict[str, Callable[[SmallLattice, Records], Array]] = {
    "gap": gap_law,
    "margin": lambda case, column: margin_law(case, column, flip=False),
    "margin, flip": lambda case, column: margin_law(case, column, flip=True),
    "margin, flip, public total": lambda case, column: margin_law(case, column, flip=True, public_total=case.total),
    "records, flip, least total": record_law,
    "remainder": rest_law,
}


def expected_gaps(case: SmallLattice, law: Callable[[SmallLattice, Records], Array]) -> Array:
    """(columns,) the expected gap of a law on each column that counts."""
    return np.array([float(np.exp(law(case, column)) @ case.gaps(column)) for column in case.columns])


def limit_table() -> list[dict[str, str | float]]:
    """One row for each case and law, the limits first."""
    rows: list[dict[str, str | float]] = []
    for case in CASES:
        about = f"{case.values} values, {case.sizes[0]} to {case.sizes[-1]} records, eps {case.epsilon}, q {case.q}"
        worst, mean = limit(case, "worst")[0], limit(case, "mean")[0]
        rows.append({"case": about, "law": "limit", "worst": worst, "mean": mean, "to_worst": 1.0, "to_mean": 1.0})
        for name, law in LAWS.items():
            gaps = expected_gaps(case, law)
            figures = {"worst": float(gaps.max()), "mean": float(gaps.mean())}
            ratios = {"to_worst": figures["worst"] / worst, "to_mean": figures["mean"] / mean}
            rows.append({"case": about, "law": name, **figures, **ratios})
    return rows


@click.command()
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Write the table to this CSV file too.")
def main(save: Path | None) -> None:
    """Expected gaps of our laws on small lattices beside the least that any private release can have."""
    rows = limit_table()
    for about, group in itertools.groupby(rows, key=lambda row: row["case"]):
        click.echo(f"\n{about}\n{'law':<28}{'worst':>8}{'mean':>8}{'to limit':>10}{'to limit':>10}")
        for row in group:
            click.echo(
                f"{row['law']:<28}{row['worst']:>8.3f}{row['mean']:>8.3f}{row['to_worst']:>10.2f}{row['to_mean']:>10.2f}"
            )
    if save is not None:
        save_rows(save, rows, digits=4)


if __name__ == "__main__":
    main()
