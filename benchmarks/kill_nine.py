"""Ten times kill -9 in the middle of `pq reproduce`: `python -m benchmarks.kill_nine [FIGURE]... [--kills N]`.

An undisturbed run comes first. Another is killed at random moments, its whole process group or its main process alone,
and resumed each time; in the end its tables must be those of the undisturbed one, byte by byte.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from benchmarks.stored import save_rows


def command(figures: tuple[str, ...], profile: str, workers: int, folder: Path) -> list[str]:
    """The command line of a run that begins or goes on in the folder."""
    base = [sys.executable, "-m", "pq.cli", "reproduce", *figures, "--profile", profile]
    return [*base, "--workers", str(workers), "--out", str(folder), "--resume"]


def parts(folder: Path) -> int:
    """Units of work that are finished."""
    return len(list(folder.glob("parts/*/*.parquet")))


def kill_once(line: list[str], folder: Path, target: int, delay: float, whole_group: bool) -> dict[str, Any]:
    """Start or resume a run and kill it when so many parts are there and some time has gone by."""
    process = subprocess.Popen(line, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    start, before = time.monotonic(), parts(folder)
    while process.poll() is None and parts(folder) < target:
        time.sleep(0.01)
    time.sleep(delay)
    at_work = process.poll() is None
    if at_work:
        (os.killpg if whole_group else os.kill)(process.pid, signal.SIGKILL)
    process.wait()
    seconds = round(time.monotonic() - start, 1)
    return {"before": before, "after": parts(folder), "seconds": seconds, "group": whole_group, "at_work": at_work}


def tables(folder: Path) -> dict[str, bytes]:
    """All tables of a run."""
    return {path.name: path.read_bytes() for path in sorted((folder / "tables").iterdir())}


@click.command()
@click.argument("figures", nargs=-1)
@click.option("--profile", default="quick", show_default=True)
@click.option("--kills", default=10, show_default=True)
@click.option("--workers", default=2, show_default=True)
@click.option("--seed", default=0, show_default=True, help="Of the moments.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Write the table to this CSV file.")
def main(figures: tuple[str, ...], profile: str, kills: int, workers: int, seed: int, save: Path | None) -> None:
    """Kill runs of FIGUREs, all by default, and compare their tables with an undisturbed run."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as base:
        whole, killed = Path(base) / "whole", Path(base) / "killed"
        subprocess.run(command(figures, profile, workers, whole), check=True)
        total = parts(whole)
        targets = sorted(chance.sample(range(total), kills))
        rows = []
        for k, target in enumerate(targets):
            line = command(figures, profile, workers, killed)
            rows.append({"kill": k + 1} | kill_once(line, killed, target, chance.random(), chance.random() < 0.5))
            click.echo("  ".join(f"{name} {value}" for name, value in rows[-1].items()) + f"  of {total}")
        subprocess.run(command(figures, profile, workers, killed), check=True)
        same = tables(whole) == tables(killed)
    click.echo(f"{len(rows)} kills, {sum(row['at_work'] for row in rows)} of them at work; tables identical: {same}")
    if save is not None:
        save_rows(save, rows)
    raise SystemExit(not same)


if __name__ == "__main__":
    main()
