"""The audit of every mechanism over its protocol, as a table (`pq audit --each FILE`)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from pq.core.priors import Uniform
from pq.core.request import Request
from pq.private.mechanisms import MECHANISMS, mechanism_for
from pq.truth.audit.outcomes import audit_mechanism
from pq.truth.audit.table import write_rows

LAW_COUNTS = (1, 2)  # of evenly spaced quantiles
LAW_COLUMNS = ("mechanism", "adjacency", "grid", "m", "pairs", "ratio", "prior", "seed")


def laws() -> Iterator[dict[str, Any]]:
    """Each mechanism, adjacency, grid of one or none, and number of quantiles, but for what a mechanism refuses."""
    for name, adjacency, grid, m in itertools.product(MECHANISMS, ("add-remove", "replace"), (None, 1), LAW_COUNTS):
        setting = {"mechanism": name, "adjacency": adjacency, "grid": grid, "m": m}
        try:
            mechanism_for(Request.of(**release_of(setting), priors=Uniform(-0.5, 7.5)))
        except ValueError:  # margins need a grid
            continue
        yield setting


def release_of(setting: dict[str, Any]) -> dict[str, Any]:
    """The release of a setting, at epsilon 1."""
    rest = {name: value for name, value in setting.items() if name != "m"}
    levels = [Fraction(i, setting["m"] + 1) for i in range(1, setting["m"] + 1)]
    return {"quantiles": levels, "epsilon": 1, **rest}


def write_laws(
    path: str | Path, pairs: int, seed: int = 0, progress: Callable[[int], Any] | None = None
) -> list[dict[str, str]]:
    """Audit every law and write the table as CSV, with the command in its first line.

    pairs: of neighbours for each. seed: of all searches. progress: told of every batch's number of pairs. Returns the
    rows.
    """
    rows = []
    for setting in laws():
        report = audit_mechanism(**release_of(setting), pairs=pairs, seed=seed, progress=progress)
        found = {"pairs": report.pairs, "ratio": f"{report.ratio:.6f}", "prior": report.prior, "seed": seed}
        rows.append({name: str(value) for name, value in (setting | found).items()})
        command = f"# pq audit --each {Path(path).name} --pairs {pairs} --seed {seed}"
        write_rows(Path(path), command, rows, LAW_COLUMNS)
    return rows
