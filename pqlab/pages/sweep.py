"""Do pages run whatever parameters they accept? Goes to the corners and the middle of every parameter of every page.

`python -m pqlab.pages.sweep` runs them all; `--smoke` a few from every page, all of them small. A run fails if a cell
raises. Parameters that cost time (`sized`) stay at their low end except in a run of their own. Most runs execute the
cells in this process; some go through papermill, as a reader's do, and some ask papermill for what a page must refuse.
With `--log` a sweep may come in pieces: what went through is noted, and not run again while page and code stay as they
are.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import multiprocessing
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from pqlab.pages.notebook import Notebook, code_cells, load, read_parameters, read_ranges, sources, tags
from pqlab.pages.parameters import code_for
from pqlab.pages.ranges import Range

ROOT = Path(__file__).parents[2]
CODE = ("pq", "pqlab/experiments", "pqlab/data", "proofs_checks")  # what pages run, their own small tools apart
SMOKE_RUNS = 24
NEEDS_DOWNLOAD = {("shifted", "goodreads")}
LONG = {("profile", "paper")}  # minutes each, so they have their own experiments


@dataclass(frozen=True)
class Run:
    """A page with values of its parameters.

    runner: "cells" (here), "papermill" (its own injection, in a kernel), or "refused": papermill must fail on it.
    """

    source: Path
    values: dict[str, Any]
    runner: str = "cells"

    def __str__(self) -> str:
        return f"{self.source.stem} by {self.runner}: {self.values}"


def small(page: Notebook) -> dict[str, Any]:
    """The values that make a page quick: what costs time at its low end."""
    return {name: one.corners[0] for name, one in read_ranges(page).items() if one.sized}


def middle(allowed: Range, default: Any) -> Any:
    """A value between the ends of a range; the default where there is none between."""
    low, high = allowed.corners[0], allowed.corners[-1]
    if isinstance(low, str | list) or allowed.sized:
        return default
    between = math.sqrt(low * high) if low > 0 else (low + high) / 2
    return int(between) if isinstance(low, int) and isinstance(high, int) and isinstance(default, int) else between


def runs_of(source: Path) -> Iterator[Run]:
    """All runs of a page in this process: each parameter at each end, all in the middle, all low, all high."""
    page = load(source)
    ranges, parameters, base = read_ranges(page), read_parameters(page), small(page)
    free = {name: one for name, one in ranges.items() if not one.sized}
    yield Run(source, base)
    yield Run(source, base | {name: middle(one, parameters[name].default) for name, one in free.items()})
    for end in (0, -1):
        ends = {name: one.corners[end] for name, one in free.items()}
        yield Run(source, base | {k: v for k, v in ends.items() if not {(k, str(v))} & (NEEDS_DOWNLOAD | LONG)})
    for name, one in ranges.items():
        values = [*one.corners, None] if one.optional else [*one.corners]
        if one.sized:  # its default, or a few times the least
            default = parameters[name].default
            values = [default if isinstance(default, int) else min(3 * one.corners[0], one.corners[1])]
        for value in values:
            if not {(name, str(value))} & (NEEDS_DOWNLOAD | LONG):
                yield Run(source, base | {name: value})


def all_runs(chosen: list[Path]) -> list[Run]:
    """The whole sweep: every page's runs, one of each through papermill, and one that each must refuse."""
    found: list[Run] = []
    for source in chosen:
        found += runs_of(source)
        found += [Run(source, small(load(source)), "papermill"), Run(source, {"seeed": 1}, "refused")]
    return found


def smoke_runs(chosen: list[Path], seed: int = 0) -> list[Run]:
    """Some runs of each page, alike every time: its ends, and one or two by papermill."""
    rng = random.Random(seed)
    each = [list(runs_of(source)) for source in chosen]  # the first of a page has what costs time at its low end
    picked = [runs[rng.choice((2, 3))] for runs in each]
    rest = [run for runs in each for run in runs[4:] if run.values | runs[0].values == run.values]
    picked += rng.sample(rest, min(len(rest), SMOKE_RUNS - 2 - len(picked)))
    last = chosen[-1]
    return [*picked, Run(last, each[-1][0].values, "papermill"), Run(last, {"seeed": 1}, "refused")]


def perform(run: Run) -> str:
    """Execute a run; what went wrong in a line, or nothing."""
    try:
        (_by_cells if run.runner == "cells" else _by_papermill)(run)
    except Exception as error:
        if run.runner == "refused" and "no parameter is named 'seeed'" in str(error):
            return ""
        return f"{type(error).__name__}: {str(error).strip().splitlines()[-1] if str(error).strip() else ''}"
    return "was not refused" if run.runner == "refused" else ""


def _by_cells(run: Run) -> None:
    import warnings

    import matplotlib
    from matplotlib import pyplot

    from pq.show import plots

    matplotlib.use("Agg")
    space: dict[str, Any] = {"__name__": "__main__"}
    shown = plots.show
    plots.show = lambda fig, description: pyplot.close(fig)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            for index, cell in enumerate(code_cells(load(run.source)), start=1):
                code = cell.source + ("\n" + code_for(run.values) if "parameters" in tags(cell) else "")
                try:
                    exec(compile(code, f"{run.source.stem}, code cell {index}", "exec"), space)
                except Exception as error:
                    error.args = (f"code cell {index}: {error}",)
                    raise
    finally:
        plots.show = shown
        pyplot.close("all")


def _by_papermill(run: Run) -> None:
    import jupytext
    import papermill

    from pqlab.pages.build import QUIET_KERNEL, clean_kernel_environment
    from pqlab.pages.notebook import KERNEL

    with tempfile.TemporaryDirectory() as folder, clean_kernel_environment():
        page = Path(folder) / f"{run.source.stem}.ipynb"
        jupytext.write(load(run.source), page)
        papermill.execute_notebook(
            page, page, parameters=run.values, kernel_name=KERNEL["name"], progress_bar=False, cwd=folder,
            extra_arguments=list(QUIET_KERNEL),
        )  # fmt: skip


class Log:
    """Which runs went through, in a file: a line of JSON each, under a digest of the run, its page and the code.

    path: of the file, made where it is missing; None remembers nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        code = [file.read_bytes() for part in CODE for file in sorted((ROOT / part).rglob("*.py"))]
        self.code = hashlib.sha256(b"".join(code)).hexdigest()
        known = path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else []
        self.done = {json.loads(line)["key"] for line in known}

    def key(self, run: Run) -> str:
        """The same for the same run of the same page by the same code."""
        parts = (self.code, run.source.read_text(encoding="utf-8"), run.runner, repr(sorted(run.values.items())))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

    def note(self, run: Run, seconds: float) -> None:
        """Remember a run that went through."""
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": self.key(run), "run": str(run), "seconds": round(seconds, 1)}) + "\n")


def _timed(run: Run, until: float) -> tuple[Run, str | None, float]:
    """A run, what went wrong and how long it took; None where it was too late to begin."""
    start = time.time()
    return run, perform(run) if start < until else None, time.time() - start


@click.command()
@click.argument("names", nargs=-1)
@click.option("--folder", type=click.Path(path_type=Path), default=Path("notebooks"), show_default=True)
@click.option("--smoke", is_flag=True, help=f"{SMOKE_RUNS} small runs only")
@click.option("--workers", type=click.IntRange(1, 16), default=2, show_default=True)
@click.option(
    "--log", "path", type=click.Path(path_type=Path), help="File of runs that went through, left out next time"
)
@click.option(
    "--minutes", type=click.FloatRange(0), help="Begin no run after so long; with --log the next call goes on"
)
def main(
    names: tuple[str, ...], folder: Path, smoke: bool, workers: int, path: Path | None, minutes: float | None
) -> None:
    """Run pages at the corners of what they accept; fail where one does not run, or where some are left."""
    chosen = sources(folder, names)
    planned = smoke_runs(chosen) if smoke else all_runs(chosen)
    log, failed, left = Log(path), 0, 0
    missing = [run for run in planned if log.key(run) not in log.done]
    until = math.inf if minutes is None else time.time() + 60 * minutes
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        for run, trouble, seconds in pool.imap(partial(_timed, until=until), missing):
            if trouble is None:
                left += 1
                continue
            failed += bool(trouble)
            if not trouble:
                log.note(run, seconds)
            click.echo(f"{'FAILS' if trouble else 'runs'} ({seconds:.1f} s) {run}" + f"\n    {trouble}" * bool(trouble))
        pool.close()
        pool.join()
    through = len(planned) - failed - left
    click.echo(f"{through} of {len(planned)} runs went through" + f", {left} are left" * bool(left))
    if failed or left:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
