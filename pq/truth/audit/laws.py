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

LAW_CHOICES = {
    "adjacency": ("add-remove", "replace"),
    "grid": (None, 1),
    "epsilon": (1, 12),  # where a total is latent, a loss comes near the larger one only
    "m": (1, 2),  # evenly spaced quantiles
}
SMOOTH_JOINT = 3  # quantiles up to which a joint release of a smooth column has the best total, which else two have
LAW_COLUMNS = ("mechanism", *LAW_CHOICES, "assume_smooth", "pairs", "ratio", "prior", "seed")


def laws() -> Iterator[dict[str, Any]]:
    """Each mechanism with each of the `LAW_CHOICES`, but for what a mechanism refuses, and joint ones of a smooth
    column, without a grid, on which all ways to place three outputs are too many."""
    each = [(*one, False) for one in itertools.product(sorted(MECHANISMS), *LAW_CHOICES.values())]
    smooth = itertools.product(["joint"], LAW_CHOICES["adjacency"], [None], LAW_CHOICES["epsilon"])
    for name, *values in [*each, *((*one, SMOOTH_JOINT, True) for one in smooth)]:
        setting = {"mechanism": name, **dict(zip((*LAW_CHOICES, "assume_smooth"), values, strict=True))}
        try:
            mechanism_for(Request.of(**release_of(setting), priors=Uniform(-0.5, 7.5)))
        except ValueError:  # margins need a grid
            continue
        yield setting


def release_of(setting: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a release of a setting."""
    rest = {name: value for name, value in setting.items() if name != "m"}
    levels = [Fraction(i, setting["m"] + 1) for i in range(1, setting["m"] + 1)]
    return {"quantiles": levels, **rest}


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
