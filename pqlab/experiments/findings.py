"""What stored tables say, as sentences that are computed from all of their rows.

    python -m pqlab.experiments.findings

writes `results/FINDINGS.md`. A method is *ahead* of another at a point of the horizontal axis if its mean lies below by
more than `SURE` standard errors of the difference, *behind* if it lies as much above, and *level* otherwise. Trials
share their data, so that the errors are, if anything, too large.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
import polars as pl

from pqlab.experiments import public_private, static
from pqlab.experiments.figures import FIGURES
from pqlab.experiments.sequential_tasks import METHODS
from pqlab.experiments.table import summarise

RESULTS = Path(__file__).resolve().parents[2] / "results"
SURE = 3.0
Curve = Mapping[float, tuple[float, float]]  # mean and standard error by the place on the horizontal axis
# Each method with those that it is held against.
SEQUENTIAL = {
    "prox": ("uniform", "cauchy", "half_cauchy", "laplace", "prox_blind", "prev", "prox_plain"),
    "prev": ("uniform", "cauchy", "half_cauchy", "prev_plain"),
    "dp": ("uniform", "cauchy", "half_cauchy", "prox"),
    "half_cauchy": ("uniform",),
}
STATIC = {"kary_conditional": ("original", "kary_edge"), "kary_edge": ("original",)}
PUBLIC = {
    "pubfit_robust": ("public_quantiles", "public_cauchy", "pubfit", "half_cauchy", "uniform"),
    "pubfit": ("public_quantiles", "public_cauchy", "ogd"),
}
LABELS = METHODS | public_private.METHODS | {name: method.label for name, method in static.METHODS.items()}


def against(one: Curve, other: Curve) -> tuple[list[float], list[float], list[float]]:
    """Where the first curve is ahead of the second, level with it, and behind, of the places of both.

    >>> against({0.1: (5.0, 0.1), 1.0: (2.0, 0.1)}, {0.1: (9.0, 0.1), 1.0: (2.1, 0.1)})
    ([0.1], [1.0], [])
    """
    scores = {x: _score(one[x], other[x]) for x in sorted(one.keys() & other.keys())}
    ahead, behind = [x for x, z in scores.items() if z > SURE], [x for x, z in scores.items() if z < -SURE]
    return ahead, [x for x in scores if x not in ahead and x not in behind], behind


def _score(one: tuple[float, float], other: tuple[float, float]) -> float:
    """By how many standard errors the first mean lies below the second; without errors, as released values have none,
    any difference is sure."""
    difference, error = other[0] - one[0], math.hypot(one[1], other[1])
    return difference / error if error > 0 else math.copysign(math.inf, difference) if difference else 0.0


def sentence(name: str, other: str, one: Curve, two: Curve) -> str:
    """How a curve lies against another, with the places where it does not lie below.

    >>> curves = {0.1: (5.0, 0.1), 1.0: (2.0, 0.1)}, {0.1: (9.0, 0.1), 1.0: (2.1, 0.1)}
    >>> sentence("A", "B", *curves)
    'A against B: ahead at 1 of 2; level at 1'
    """
    places = against(one, two)
    words = [f"ahead at {len(places[0])} of {sum(map(len, places))}"]
    words += [
        f"{word} at {_listed(found)}" for word, found in zip(("level", "behind"), places[1:], strict=True) if found
    ]
    return f"{name} against {other}: " + "; ".join(words)


def _listed(places: Sequence[float]) -> str:
    """Places in words; of many the first, the last and their number.

    >>> _listed([0.1, 1.0]), _listed(list(range(9)))
    ('0.1, 1', '9 from 0 to 8')
    """
    if len(places) <= 4:
        return ", ".join(f"{x:g}" for x in places)
    return f"{len(places)} from {places[0]:g} to {places[-1]:g}"


def curves(rows: pl.DataFrame, along: str, value: str = "max_gap") -> dict[str, Curve]:
    """The curve of each method in rows of one data set and variant."""
    return {
        str(method): {float(row[along]): (row[value], row[f"{value}_error"]) for row in part.iter_rows(named=True)}
        for (method,), part in rows.partition_by("method", as_dict=True, maintain_order=True).items()
    }


def _section(title: str, found: Mapping[str, Curve], pairs: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield f"\n### {title}\n"
    for one, others in pairs.items():
        for other in others:
            if one in found and other in found:
                yield f"- {sentence(LABELS[one], LABELS[other], found[one], found[other])}"


def sequential(label: str) -> Iterator[str]:
    """Sentences on a sequential figure: against epsilon over all days, or over time by stretches of days."""
    figure, over_time = FIGURES[label], label == "timeplots"
    yield f"\n## {figure.title} (`fig:{label}`): {'first days of stretches' if over_time else 'budgets'}"
    table = pl.read_csv(RESULTS / "sequential" / f"{label}.csv")
    table = table.filter((pl.col("day_block") >= 0) if over_time else (pl.col("day_block") == -1))
    jobs = {job.data: job.label for job in figure.jobs}
    for (data, variant, m), part in table.partition_by(
        "data", "variant", "m", as_dict=True, maintain_order=True
    ).items():
        title = f"{jobs[str(data)]}, m = {m}, {variant} calibration"
        yield from _section(title, curves(part, "first_day" if over_time else "epsilon"), SEQUENTIAL)


def mplots() -> Iterator[str]:
    """Sentences on the error against the number of quantiles."""
    yield f"\n## {FIGURES['mplots'].title} (`fig:mplots`): numbers of quantiles"
    table = pl.read_csv(RESULTS / "static" / "mplots.csv")
    keys = "data", "variant", "epsilon"
    for (data, variant, epsilon), part in table.partition_by(*keys, as_dict=True, maintain_order=True).items():
        title = f"{static.SOURCES[str(data)].label}, {variant}, epsilon {epsilon:g}"
        yield from _section(title, curves(part, "m"), STATIC)


def public() -> Iterator[str]:
    """Sentences on release with public data: against epsilon, or against the part of another population."""
    for file in sorted((RESULTS / "public_private").glob("*.csv")):
        along = public_private.EXPERIMENTS[file.stem][1]
        yield f"\n## Release with public data, {file.stem}: {'budgets' if along == 'epsilon' else 'mixtures'}"
        rows = summarise(public_private.read_table(file), ["source", "variant", "method", along], "max_gap")
        means = pl.DataFrame(rows).rename({"mean": "max_gap", "error": "max_gap_error"})
        for (source, variant), part in means.partition_by(
            "source", "variant", as_dict=True, maintain_order=True
        ).items():
            title = f"{public_private.SOURCES[str(source)].label}, {variant}"
            yield from _section(title, curves(part, along), PUBLIC)


def text() -> str:
    """The whole of `results/FINDINGS.md`."""
    head = (
        "# What the stored tables say\n\n"
        "Computed by `python -m pqlab.experiments.findings` from all rows of the tables; not edited by hand, and\n"
        f"compared by a test. *Ahead* and *behind* mean a difference of means of more than {SURE:g} of its standard\n"
        "errors, *level* less."
    )
    parts = [mplots(), public(), *map(sequential, ("timeplots", "online-logepsplots", "worldnews-logepsplots"))]
    return "\n".join([head, *(line for part in parts for line in part)]) + "\n"


@click.command()
def main() -> None:
    """Write what the stored tables say."""
    (RESULTS / "FINDINGS.md").write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
