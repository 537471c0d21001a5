"""What the pages on public data show of `pqlab.experiments.public_private`: its stored tables, a part run afresh,
curves, tables of means, and differences trial by trial.

Truth ring, like all experiments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pq.show.learning import gap_curves
from pqlab.experiments import public_private as experiment
from pqlab.experiments.table import Row, mean_and_error, select, summarise

KEYS = ("source", "variant", "method", "epsilon", "mixture", "trial")
TITLES = {"paper": "as in the paper", "grid": "on the grid", "level": "on one level"}
Points = Mapping[Any, Any]  # gaps of all trials (trials,) by (method, source, variant, epsilon, mixture)


def stored_table(name: str) -> list[Row]:
    """The rows of a full run, 40 trials of each point."""
    return experiment.read_table(experiment.RESULTS / f"{name}.csv")


def fresh(name: str, *, trials: int, methods: Sequence[str], seed: int, **axes: Any) -> tuple[list[Row], float | None]:
    """A part of an experiment run now, and the share of its gaps that a stored table of the same seed has too.

    axes: epsilons and mixtures. The share is None where no table has these trials.
    """
    rows = experiment.run(experiment.cells(name, trials=trials, methods=methods, **axes), seed=seed, splits=trials)
    path = experiment.RESULTS / f"{name}.csv"
    kept = experiment.read_table(path) if seed == 0 and path.exists() else []
    known = {tuple(row[key] for key in KEYS): row["max_gap"] for row in kept}
    both = [(row["max_gap"], known[key]) for row in rows if (key := tuple(row[k] for k in KEYS)) in known]
    return rows, float(np.mean([one == other for one, other in both])) if both else None


def draw_source(rows: Iterable[Row], source: str, along: str, axes: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """Curves of a source, one panel for each variant. Returns what was drawn, by variant and method."""
    drawn = {}
    for ax, (variant, how) in zip(axes, TITLES.items(), strict=False):
        found = summarise(rows, ["source", "variant", "method", along], "max_gap")
        part = select(found, source=source, variant=variant)
        drawn[variant] = gap_curves(ax, part, along, experiment.METHODS)
        ax.set_title(f"{experiment.SOURCES[source].label}, {how}", fontsize=9)
    axes[0].set_ylabel("maximum gap (records)")
    axes[0].set_ylim(0, 1.04 * max(ax.dataLim.y1 for ax in axes))
    return drawn


def means_table(rows: Iterable[Row], along: str, points: Sequence[float]) -> str:
    """Mean gaps with standard errors, a block for each source and variant."""
    rows = list(rows)
    found = summarise(rows, ["source", "variant", "method", along], "max_gap")
    lines = []
    for source in dict.fromkeys(row["source"] for row in rows):
        for variant, how in TITLES.items():
            part = select(found, source=source, variant=variant)
            title = f"{experiment.SOURCES[source].label}, {how}"
            lines.append(f"{title:<40}" + "".join(f"{f'{along} {x:g}':>15}" for x in points))
            for method in dict.fromkeys(row["method"] for row in part):
                cells = [select(part, method=method, **{along: x})[0] for x in points]
                entries = "".join(f"{row['mean']:8.1f} +- {row['error']:3.1f}" for row in cells)
                lines.append(f"  {experiment.METHODS[method]:<38}{entries}")
    return "\n".join(lines)


def by_point(*tables: Iterable[Row]) -> dict[Any, Any]:
    """The gaps of all trials, in order, at each (method, source, variant, epsilon, mixture)."""
    found: dict[Any, list[float]] = {}
    for row in (row for rows in tables for row in rows):
        key = tuple(row[name] for name in ("method", "source", "variant", "epsilon", "mixture"))
        found.setdefault(key, []).append(row["max_gap"])
    return {point: np.array(gaps) for point, gaps in found.items()}


def gap_difference(points: Points, one: str, other: str, *facts: Any) -> tuple[float, float]:
    """Mean over trials of one method's gap less another's, with its standard error.

    facts: source, variant, epsilon, mixture.
    """
    return mean_and_error(points[(one, *facts)] - points[(other, *facts)])
