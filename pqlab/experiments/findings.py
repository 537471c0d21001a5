"""What stored tables say, as sentences that are computed from all of their rows.

    python -m pqlab.experiments.findings [--store FOLDER_OF_A_RUN]

writes `results/FINDINGS.md` and, beside the tables, their pictures. A method is *ahead* of another at a point of the
horizontal axis if its mean lies below by more than `SURE` standard errors of the difference, *behind* if it lies as
much above, and *level* otherwise. Trials share their data, so that the errors are, if anything, too large.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import click
import numpy as np
import polars as pl

from pqlab.experiments import coordinates, distributions, public_private, report, sequential
from pqlab.experiments.figures import FIGURES, Figure, Job
from pqlab.experiments.report import LABELS
from pqlab.experiments.sequential_tasks import TASKS
from pqlab.experiments.table import Row, summarise

RESULTS = Path(__file__).resolve().parents[2] / "results"
SURE = 3.0
Curve = Mapping[float, tuple[float, float]]  # mean and standard error by the place on the horizontal axis
# Each method with those that it is held against.
PAIRS = {
    "kary_conditional": ("original", "kary_edge"),
    "kary_edge": ("original",),
    "pubfit_robust": ("public_quantiles", "public_cauchy", "pubfit", "half_cauchy", "uniform"),
    "pubfit": ("public_quantiles", "public_cauchy", "ogd"),
    "prox": ("uniform", "cauchy", "half_cauchy", "laplace", "prox_blind", "prev", "prox_plain"),
    "prev": ("uniform", "cauchy", "half_cauchy", "prev_plain"),
    "dp": ("uniform", "cauchy", "half_cauchy", "prox"),
    "half_cauchy": ("uniform",),
}
PAPER_AND_QUICK = ("sequential", "sequential_quick")
FOLDERS = {  # of the tables of each figure
    "mplots": ("static",),
    **dict.fromkeys(("pubpri-logepsplots", "mixplots"), ("public_private",)),
    **dict.fromkeys(("timeplots", "online-logepsplots", "worldnews-logepsplots"), PAPER_AND_QUICK),
}
WAY_LABELS = {"zero": "from zero", "joint": "with log-sum-exp", "paper": "from zero, with log-sum-exp"}
PLACES = {"m": "by number of quantiles", "epsilon": "by budget", "mixture": "by mixture", "day_block": "by first day"}


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


@cache
def paper_sized(label: str, calibration: str = "sharp") -> pl.DataFrame:
    """The stored means of a sequential figure at the paper's sizes, of one calibration."""
    return pl.read_csv(sequential.RESULTS / f"{label}.csv").filter(pl.col("variant") == calibration)


def stored_tables() -> Iterator[tuple[Figure, Job, Path, pl.DataFrame]]:
    """The stored means of each data set of each figure, and the file of their picture, less its suffix."""
    for label, figure in FIGURES.items():
        for folder in FOLDERS[label]:
            for job in figure.jobs:
                rows = _stored(RESULTS / folder, label, job)
                if rows.height:
                    yield figure, job, RESULTS / folder / f"{label}_{job.data}", rows


def _stored(folder: Path, label: str, job: Job) -> pl.DataFrame:
    if folder.name != "public_private":
        return pl.read_csv(folder / f"{label}.csv").filter(pl.col("data") == job.data)
    rows = summarise(_public_rows(job.data), ["variant", "method", "epsilon", "mixture"], "max_gap")
    means = pl.DataFrame(rows, schema_overrides={"mean": pl.Float64, "error": pl.Float64})
    return means.rename({"mean": "max_gap", "error": "max_gap_error"}) if rows else means


def _public_rows(source: str) -> list[Row]:
    """Rows of a source among the stored tables, none if it is not there."""
    files = (RESULTS / "public_private").glob("*.csv")
    mine = [f for f in files if source in public_private.EXPERIMENTS[f.stem][0]]
    return [row for file in mine for row in public_private.read_table(file) if row["source"] == source]


def sentences(figure: Figure, job: Job, means: pl.DataFrame) -> Iterator[str]:
    """What the means of a data set say, by variant and by all else that is no axis."""
    over_time = figure.along == "day_block"
    if "day_block" in means.columns:
        means = means.filter((pl.col("day_block") >= 0) if over_time else (pl.col("day_block") == -1))
    along = "first_day" if over_time else figure.along
    apart = [name for name in ("variant", "m", "epsilon") if name in means.columns and name != figure.along]
    for part in means.partition_by(apart, maintain_order=True):
        facts = ", ".join(f"{name} {part[name][0]}" for name in apart)
        for value, words in report.averages(figure).items():
            found = curves(part, along, value)
            yield f"\n### {job.label}: {facts}{words}\n"
            for one, others in PAIRS.items():
                for other in others:
                    if one in found and other in found:
                        yield f"- {sentence(LABELS[one], LABELS[other], found[one], found[other])}"


def findings_text() -> str:
    """The whole of `results/FINDINGS.md`."""
    head = (
        "# What the stored tables say\n\n"
        "Computed by `python -m pqlab.experiments.findings` from all rows of the tables; not edited by hand, and\n"
        f"compared by a test. *Ahead* and *behind* mean a difference of means of more than {SURE:g} standard errors\n"
        "of means that are independent, *level* less. Trials share their data, so that some that are level differ for\n"
        "sure if they are compared trial by trial. The pairs are those that the pages and the rows speak of."
    )
    lines, seen = [head], ""
    for figure, job, path, means in stored_tables():
        where = f"{path.parent.name}/{figure.label}"
        if where != seen:
            lines.append(f"\n## {figure.title} (`fig:{figure.label}`): {PLACES[figure.along]}, `{path.parent.name}`")
        seen = where
        lines += sentences(figure, job, means)
    lines += [*learned_sentences(), *coordinate_sentences()]
    return "\n".join(lines) + "\n"


def store_run(run: Path, folder: Path) -> None:
    """Copy the means of a run of `pq reproduce` into a folder of results, numbers to six digits."""
    for file in sorted((run / "tables").glob("*.csv")):
        lines = csv.reader(file.read_text(encoding="utf-8").splitlines())
        text = "".join(",".join(map(_six_digits, line)) + "\n" for line in lines)
        (folder / file.name).write_text(text, encoding="utf-8")


def _six_digits(cell: str) -> str:
    """A cell of a table; numbers that are no integers to six digits, without an exponent.

    >>> _six_digits("95.68960123"), _six_digits("1e-05"), _six_digits("40"), _six_digits("uniform")
    ('95.6896', '0.00001', '40', 'uniform')
    """
    try:
        return cell if cell.lstrip("-").isdigit() else np.format_float_positional(float(f"{float(cell):.6g}"), trim="0")
    except ValueError:
        return cell


def learned_sentences() -> Iterator[str]:
    """What the table of learned distributions says beside those of the other methods."""
    yield "\n## Sequences that learn distributions: by budget, `distributions` beside `sequential`"
    mine, label = distributions.METHOD, distributions.LABELS[distributions.METHOD]
    for task in distributions.TASK_NAMES:
        found = curves(distributions.beside_others(task), "epsilon")
        yield f"\n### {TASKS[task].label}\n"
        for other in distributions.OTHERS:
            if mine in found and other in found:
                shares = [found[mine][e][0] / found[other][e][0] for e in sorted(found[mine])]
                said = ", ".join(f"{share:.2f}" for share in shares)
                yield f"- {sentence(label, LABELS[other], found[mine], found[other])}; error as a share of its: {said}"


def coordinate_sentences() -> Iterator[str]:
    """What the tables of learners in the paper's coordinates say: beside ours, and beside the other methods."""
    yield "\n## Learners that count from zero, or share the log-sum-exp, as in the paper, beside ours: `coordinates`"
    fits = coordinates.what_ways_add(coordinates.stored_fits()).rename({"source": "data"})
    for means, others_of in ((coordinates.stored_days(), _sequential_others), (fits, _public_others)):
        for key, part in means.partition_by(["data", "variant"], as_dict=True, maintain_order=True).items():
            others, along, label = others_of(*map(str, key))
            yield f"\n### {label}: variant {key[1]}\n"
            for (method, way), rows in part.partition_by(["method", "way"], as_dict=True, maintain_order=True).items():
                if way == "guess":
                    continue
                mine = f"{LABELS[str(method)]} {WAY_LABELS[str(way)]}"
                own, more = (
                    dict(rows.select(along, name, f"{name}_error").rows_by_key(along, unique=True))
                    for name in ("max_gap", "more")
                )
                least, most = (round(end(more.values())[0], 1) + 0.0 for end in (min, max))
                compared = sentence(mine, "ours", more, dict.fromkeys(more, (0.0, 0.0)))
                yield f"- {compared}; {least:+.1f} to {most:+.1f} records"
                for other in set_beside(str(method)):
                    if other in others:
                        yield f"- {sentence(mine, LABELS[other], own, others[other])}"


def set_beside(method: str) -> list[str]:
    """Of the methods that one is held against, those that have no coordinates of their own."""
    return [other for other in PAIRS.get(method, ()) if other not in (*coordinates.FITS, "prox_blind", "prox_plain")]


def _sequential_others(task: str, variant: str) -> tuple[dict[str, Curve], str, str]:
    """The curves of all methods on a task by a calibration, what they are along, and the name of the data."""
    means = paper_sized(f"{'worldnews' if task == 'worldnews' else 'online'}-logepsplots", variant)
    return curves(means.filter(data=task, m=9, day_block=-1), "epsilon"), "epsilon", TASKS[task].label


def _public_others(source: str, variant: str) -> tuple[dict[str, Curve], str, str]:
    along = "epsilon" if source in public_private.EXPERIMENTS["adult"][0] else "mixture"
    means = pl.DataFrame(summarise(_public_rows(source), ["variant", "method", along], "max_gap"))
    named = means.rename({"mean": "max_gap", "error": "max_gap_error"}).filter(variant=variant)
    return curves(named, along), along, public_private.SOURCES[source].label


@click.command()
@click.option("--store", "run", type=click.Path(exists=True, path_type=Path), help="a run whose tables to store first")
@click.option("--folder", type=click.Choice([*PAPER_AND_QUICK, "static"]), default="sequential", show_default=True)
def main(run: Path | None, folder: str) -> None:
    """Write what the stored tables say, and draw them."""
    if run is not None:
        store_run(run, RESULTS / folder)
    (RESULTS / "FINDINGS.md").write_text(findings_text(), encoding="utf-8")
    for figure, job, path, means in stored_tables():
        path.with_suffix(".svg").write_text(report.draw(figure, job, means), encoding="utf-8")


if __name__ == "__main__":
    main()
