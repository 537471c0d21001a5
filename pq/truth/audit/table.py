"""The audit of `pq.release` over all kinds of settings, as a table (`pq audit --full FILE`)."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from pq.core.plan import plan
from pq.truth.audit.ceiling import ceiling
from pq.truth.audit.report import AuditReport
from pq.truth.audit.tree import audit_release

COUNTS = (1, 2, 3, 4, 7, 8, 9, 29)
COLUMNS = (
    "m",
    "arity",
    "calibration",
    "adaptation",
    "adjacency",
    "grid",
    "pairs",
    "ratio",
    "ceiling",
    "prior",
    "seed",
    "why",
)
NEAR = 1e-6
ENOUGH = 0.95  # of epsilon; a setting that stays below it must say why
Setting = dict[str, Any]


def settings() -> Iterator[Setting]:
    """All 384 settings: numbers of evenly spaced quantiles, arities, calibrations, adaptations, adjacencies, grid or
    none."""
    choices = {
        "m": COUNTS,
        "arity": (2, 3, 4),
        "calibration": ("paper", "sharp"),
        "adaptation": ("conditional", "edge"),
        "adjacency": ("add-remove", "replace"),
        "grid": (None, 1),
    }
    for values in itertools.product(*choices.values()):
        yield dict(zip(choices, values, strict=True))


def audit_setting(
    setting: Setting, pairs: int, progress: Callable[[int], Any] | None = None, **keywords: Any
) -> AuditReport:
    """The worst that the searches of one setting find at epsilon 1; quantiles are i / (m + 1)."""
    rest = {name: value for name, value in setting.items() if name != "m"}
    return audit_release(_evenly(setting["m"]), epsilon=1, pairs=pairs, progress=progress, **rest, **keywords)


def _evenly(m: int) -> list[Fraction]:
    return [Fraction(i, m + 1) for i in range(1, m + 1)]


def why(setting: Setting, ratio: float, most: float) -> str:
    """Why a setting stays below `ENOUGH`, empty if it does not.

    `pq.truth.audit.ceiling` bounds what is possible with any priors, columns and outputs; on a grid its bound for
    records at outputs is not always reached where it is above the one for records elsewhere.
    """
    if ratio >= ENOUGH:
        return ""
    if ratio >= most - NEAR:
        return f"no more is possible: at most {most:.6f}"
    tree = {name: setting[name] for name in ("arity", "calibration", "adjacency")}
    apart = ceiling(plan(_evenly(setting["m"]), epsilon=1, **tree))
    if ratio >= apart - NEAR:
        return f"no more is possible unless records are at outputs: at most {apart:.6f}, with them at most {most:.6f}"
    return f"at most {most:.6f} is possible"


def row_of(setting: Setting, pairs: int, seed: int = 0, progress: Callable[[int], Any] | None = None) -> dict[str, str]:
    """One row of the table."""
    report = audit_setting(setting, pairs, progress, seed=seed)
    assert report.ceiling is not None
    found = (report.pairs, f"{report.ratio:.8f}", f"{report.ceiling:.6f}", report.prior, seed)
    return dict(
        zip(
            COLUMNS,
            map(str, [*setting.values(), *found, why(setting, report.ratio, report.ceiling)]),
            strict=True,
        )
    )


def write_audit(
    path: str | Path, pairs: int, seed: int = 0, progress: Callable[[int], Any] | None = None
) -> list[dict[str, str]]:
    """Audit every setting and write the table as CSV, with the command in its first line.

    Rows are written as they are made, the costly ones first, and sorted at the end; a table that the same command left
    unfinished is gone on with.
    """
    path = Path(path)
    command = f"# pq audit --full {path.name} --pairs {pairs} --seed {seed}"
    known = _rows_of(path, command)
    for setting in sorted(settings(), key=lambda setting: (-setting["m"], -setting["arity"])):
        if _key(setting) in known:
            if progress is not None:
                progress(pairs)
            continue
        known[_key(setting)] = row_of(setting, pairs, seed, progress)
        write_rows(path, command, known.values(), COLUMNS)
    rows = [known[_key(setting)] for setting in settings()]
    write_rows(path, command, rows, COLUMNS)
    return rows


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in COLUMNS[:6])


def _rows_of(path: Path, command: str) -> dict[tuple[str, ...], dict[str, str]]:
    """Rows by setting of a table that the same command has begun."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if not lines or lines[0] != command:
        return {}
    return {_key(row): row for row in csv.DictReader(lines[1:])}


def write_rows(path: Path, command: str, rows: Iterable[dict[str, str]], columns: tuple[str, ...]) -> None:
    """A table as CSV below the command that makes it, all at once, so that no half row is ever read."""
    whole = path.with_name(f"{path.name}.part")
    with whole.open("w", encoding="utf-8", newline="") as file:
        file.write(f"{command}\n")
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    whole.replace(path)
