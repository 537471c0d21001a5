"""`pq reproduce`: the paper's experiments from end to end, into a folder with tables and a report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from pq.cli import WrittenPath, fresh_folder, numbered_folders, refuse, say

RUNS = Path("runs")
PREFIX = "reproduce"


class _Label(click.ParamType):
    """A figure's label, with or without `fig:`."""

    name = "figure"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from pqlab.experiments.figures import FIGURES

        label = str(value).removeprefix("fig:")
        if label not in FIGURES:
            self.fail(f"{value!r} is no figure; there are: {', '.join(FIGURES)}", param, ctx)
        return label


@click.command()
@click.argument("figures", nargs=-1, type=_Label(), metavar="[FIGURE]...")
@click.option("--profile", type=click.Choice(["tiny", "quick", "paper"]), show_default="quick",
              help="Sizes: the paper's own, minutes, or seconds to try the machinery.")  # fmt: skip
@click.option("--workers", type=click.IntRange(min=1), default=None, help="Processes; all processors by default.")
@click.option("--seed", type=click.IntRange(min=0), show_default="0")
@click.option("--out", type=WrittenPath(folder=True), default=None,
              help="Folder of the run; by default a new one in runs/.")  # fmt: skip
@click.option("--resume", is_flag=True, help="Go on with the run in that folder, by default with the latest in runs/; "
              "its figures, profile and seed need not be said again.")  # fmt: skip
@click.option("--download", is_flag=True, help="Download data that are not there; some are gigabytes.")
def reproduce(
    figures: tuple[str, ...],
    profile: str | None,
    workers: int | None,
    seed: int | None,
    out: Path | None,
    resume: bool,
    download: bool,
) -> None:
    """Run the experiments of the paper's FIGUREs, all by default, and make tables and a report.

    FIGURE is a label of the paper, such as mplots. A run that was interrupted, even by kill -9, goes on with --resume;
    its tables are those of an undisturbed run. Data that are not to be had are left out, and the report says where to
    put them.
    """
    from pqlab.experiments.reproduce import RunError, RunFacts, held_run
    from pqlab.experiments.reproduce import reproduce as run

    if not download:
        os.environ["PQ_OFFLINE"] = "1"
    folder = _folder(out, resume)
    click.echo(f"folder: {folder}", err=True)
    try:
        held = held_run(folder) or RunFacts((), "quick")
        chosen, size = figures or held.figures, profile or held.profile
        start = held.seed if seed is None else seed
        report = run(folder, chosen, profile=size, seed=start, workers=workers or os.cpu_count(), progress=True)
    except RunError as error:
        raise refuse(error) from None
    except OSError as error:  # no place to write, or none left
        raise click.ClickException(f"the run in {folder} broke off: {error}") from None
    say(f"report: {report}")


def _folder(out: Path | None, resume: bool) -> Path:
    if out is not None:
        if not resume and out.is_dir() and any(out.iterdir()):
            raise refuse(f"{out} is not empty; say --resume to go on with the run in it")
        return out
    if not resume:
        return fresh_folder(RUNS, PREFIX)
    begun = {number: path for number, path in numbered_folders(RUNS, PREFIX).items() if (path / "run.json").exists()}
    if not begun:
        raise refuse(f"there is no run in {RUNS} to go on with")
    return begun[max(begun)]
