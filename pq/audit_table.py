"""The audit of `pq.release` over all kinds of settings, as a table (`pq audit --full FILE`)."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from pq.audit import AuditReport, audit_release

COUNTS = (1, 2, 3, 4, 7, 8, 9, 29)
COLUMNS = ("m", "arity", "calibration", "adaptation", "adjacency", "grid", "pairs", "ratio", "ceiling", "prior", "seed")
ENOUGH = 0.95  # of epsilon, or nearly all of what is possible at all: below it a setting is searched again
NEARLY = 0.99
ATTEMPTS = 3
Setting = dict[str, Any]


def settings() -> Iterator[Setting]:
    """All 384 settings: numbers of evenly spaced quantiles, arities, calibrations, adaptations, adjacencies, grid or
    none."""
    choices = (
        COUNTS,
        (2, 3, 4),
        ("paper", "sharp"),
        ("conditional", "edge"),
        ("add-remove", "replace"),
        (None, 1),
    )
    for m, arity, calibration, adaptation, adjacency, grid in itertools.product(*choices):
        yield {
            "m": m,
            "arity": arity,
            "calibration": calibration,
            "adaptation": adaptation,
            "adjacency": adjacency,
            "grid": grid,
        }


def audit_setting(
    setting: Setting, pairs: int, progress: Callable[[int], Any] | None = None, **keywords: Any
) -> AuditReport:
    """The worst that the searches of one setting find at epsilon 1, with the pairs of all of them; quantiles are i / (m
    + 1)."""
    rest = {name: value for name, value in setting.items() if name != "m"}
    quantiles = [Fraction(i, setting["m"] + 1) for i in range(1, setting["m"] + 1)]
    return audit_release(quantiles, epsilon=1, pairs=pairs, progress=progress, **rest, **keywords)


def row_of(setting: Setting, pairs: int, progress: Callable[[int], Any] | None = None) -> dict[str, str]:
    """One row of the table: the worst of up to three searches, the later ones only where the first fall short."""
    total, best, worst_ratio = 0, None, -1.0
    for seed in range(ATTEMPTS):
        report = audit_setting(setting, pairs, progress if seed == 0 else None, seed=seed)
        total += report.pairs
        if report.ratio > worst_ratio:
            best, worst_ratio = report, report.ratio
        if worst_ratio >= min(ENOUGH, NEARLY * (report.ceiling or 1.0)):
            break
    assert best is not None
    return {name: str(value) for name, value in setting.items()} | {
        "pairs": str(total),
        "ratio": f"{best.ratio:.8f}",
        "ceiling": f"{best.ceiling:.6f}",
        "prior": str(best.prior),
        "seed": str(best.seed),
    }


def write_table(path: str | Path, pairs: int, progress: Callable[[int], Any] | None = None) -> list[dict[str, str]]:
    """Audit every setting and write the table as CSV, row by row, with the command in its first line."""
    rows = []
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        file.write(f"# pq audit --full {Path(path).name} --pairs {pairs}\n")
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for setting in settings():
            rows.append(row_of(setting, pairs, progress))
            writer.writerow(rows[-1])
            file.flush()
    return rows
