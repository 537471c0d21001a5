"""The paper's experiments from end to end: units of work, tables, and a report (Section 5).

A run lives in a folder:

    parts/FIGURE/*.parquet   finished units of work; an interrupted run goes on from them
    tables/FIGURE.parquet    a row for each figure, data set, variant, method, m, epsilon, mixture, trial and day block
    tables/FIGURE.csv        means over trials with standard errors
    report.html              all figures, tables and parameters in one file
    run.json                 what was run, and with which program
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

import pq
import pqlab
from pqlab.data import DataUnavailableError
from pqlab.experiments import report
from pqlab.experiments.figures import FIGURES, PROFILES, Figure, Job
from pqlab.experiments.grid import run, write_whole

RECORD = "run.json"
PACKAGES = ("pq-quantiles", "numpy", "scipy", "numba", "polars")


class RunError(Exception):
    """A run that cannot begin or go on; the text says why."""


@dataclass(frozen=True)
class RunFacts:
    """What a run computes: figures by label, the profile, the seed."""

    figures: tuple[str, ...]
    profile: str
    seed: int = 0


def program() -> dict[str, str]:
    """All that results may depend on besides a unit's name: versions, and a digest of the packages' code."""
    digest = hashlib.sha256()
    for package in (pq, pqlab):
        base = Path(str(package.__file__)).parent
        for path in sorted(base.rglob("*.py")):
            digest.update(str(path.relative_to(base.parent)).encode() + b"\0" + path.read_bytes())
    versions = {name: version(name) for name in PACKAGES}
    return {"code": digest.hexdigest()[:16], "python": platform.python_version(), **versions}


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One run in a folder at a time; the lock goes with the process, whatever ends it."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # not on this system
        yield
        return
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunError(f"another run is at work in {folder}") from None
        yield


def reproduce(
    folder: Path,
    figures: Sequence[str] = (),
    *,
    profile: str = "quick",
    seed: int = 0,
    workers: int | None = None,
    progress: bool = False,
) -> Path:
    """Run the experiments of figures, all of them by default, and write tables and a report into the folder.

    figures: labels in `FIGURES`. profile: in `PROFILES`. workers: see `pqlab.experiments.grid.run`. A folder that holds
    a part of the same run is completed. Data that are not to be had are left out, and the report says so.

    Returns the path of the report. Raises `RunError` if the folder belongs to another run, or to another version of the
    program, and `ValueError` naming figures or profile.
    """
    chosen = tuple(dict.fromkeys(figures)) or tuple(FIGURES)
    unknown = [name for name in chosen if name not in FIGURES]
    if unknown:
        raise ValueError(f"figures must be among {', '.join(FIGURES)}, got {unknown[0]!r}")
    if profile not in PROFILES:
        raise ValueError(f"profile must be one of {', '.join(PROFILES)}, got {profile!r}")
    plan = RunFacts(chosen, profile, seed)
    with _alone(folder):
        _begin(folder, plan)
        start = time.monotonic()
        ready = {label: _loaded(FIGURES[label].jobs) for label in chosen}
        units = [u for jobs, _ in ready.values() for job in jobs for u in job.units(PROFILES[profile])]
        rows = run(units, folder / "parts", seed=seed, workers=workers, progress=progress)
        sections = [_written(folder, FIGURES[label], rows, *ready[label]) for label in chosen]
        about = report.facts(_about(plan) | {"units of work": len(units), "seconds of this call": round(_since(start))})
        title = "Learning-augmented private quantiles: the experiments again"
        text = report.page(title, [about, _contents(chosen), *sections])
        write_whole(folder / "report.html", lambda path: path.write_text(text, encoding="utf-8"))
    return folder / "report.html"


def _since(start: float) -> float:
    return time.monotonic() - start


def _begin(folder: Path, plan: RunFacts) -> None:
    """Claim the folder for this run, or see that it is already this run's, by the same program."""
    mine = asdict(plan) | {"figures": list(plan.figures), "program": program()}
    file = folder / RECORD
    if not file.exists():
        write_whole(file, lambda path: path.write_text(json.dumps(mine, indent=2) + "\n", encoding="utf-8"))
        return
    theirs = _held(folder)
    differ = [name for name in mine if mine[name] != theirs.get(name)]
    if differ:
        raise RunError(f"{folder} holds a run of another {' and '.join(differ)}; choose another folder")


def held_run(folder: Path) -> RunFacts | None:
    """What the run in a folder computes, None where there is none. Raises `RunError` for a record that is damaged, or
    that names what this program does not know."""
    try:
        held = _held(folder)
    except FileNotFoundError:
        return None
    figures, profile, seed = (held.get(name) for name in ("figures", "profile", "seed"))
    is_known = isinstance(figures, list) and all(isinstance(one, str) and one in FIGURES for one in figures)
    if figures and is_known and isinstance(profile, str) and profile in PROFILES and type(seed) is int and seed >= 0:
        return RunFacts(tuple(figures), profile, seed)
    raise RunError(f"{folder / RECORD} is damaged, or of another program; choose another folder")


def _held(folder: Path) -> dict[str, Any]:
    """The record in a folder. Raises `RunError` where it is none."""
    try:
        held = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        held = None
    if not isinstance(held, dict):
        raise RunError(f"{folder / RECORD} is damaged; choose another folder")
    return held


def _loaded(jobs: Sequence[Job]) -> tuple[list[Job], list[tuple[Job, str]]]:
    """The jobs whose data are there, and the others with the reason."""
    there, skipped = [], []
    for job in jobs:
        try:
            job.load()
        except (DataUnavailableError, ImportError) as error:
            skipped.append((job, str(error)))
        else:
            there.append(job)
    return there, skipped


def _written(folder: Path, figure: Figure, rows: pl.DataFrame, jobs: list[Job], skipped: list[tuple[Job, str]]) -> str:
    """Write the tables of a figure; returns its section of the report."""
    mine = rows.filter(pl.col("figure") == figure.label)
    write_whole(folder / "tables" / f"{figure.label}.parquet", mine.write_parquet)
    parts = [(job, report.summary(mine.filter(pl.col("data") == job.data))) for job in jobs]
    means = pl.concat([part for _, part in parts], how="diagonal") if parts else pl.DataFrame()
    write_whole(folder / "tables" / f"{figure.label}.csv", means.write_csv)
    return report.section(figure, parts, skipped)


def _about(plan: RunFacts) -> dict[str, Any]:
    facts = {"figures": ", ".join(plan.figures), "profile": plan.profile, "seed": plan.seed}
    sizes = {name.replace("_", " "): value for name, value in asdict(PROFILES[plan.profile]).items()}
    return facts | sizes | program() | {"processors": os.cpu_count()}


def _contents(labels: Sequence[str]) -> str:
    return "<p>" + " · ".join(f'<a href="#{label}">{FIGURES[label].title}</a>' for label in labels) + "</p>"
