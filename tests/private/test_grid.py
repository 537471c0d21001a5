"""Grids: rows depend on a unit's name and the seed alone; a kill at any moment loses and doubles nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from grid_units import draws, fails, units
from pqlab.experiments import grid
from pqlab.experiments.grid import SCHEMA, Unit, run, write_whole

HERE = Path(__file__).parent


def test_rows_are_tidy_and_in_the_order_of_units(tmp_path: Path) -> None:
    rows = run(units(4), tmp_path)
    assert rows.schema == pl.Schema(SCHEMA)
    assert rows["data"].to_list() == [f"data{cell % 3}" for cell in range(4) for _ in range(3)]
    assert_frame_equal(rows, pl.concat([run([unit], tmp_path / "alone") for unit in units(4)]))
    assert_frame_equal(run(units(4)[::-1], tmp_path).sort("max_gap"), rows.sort("max_gap"))
    assert run([], tmp_path).schema == rows.schema


def test_the_seed_changes_everything_and_another_unit_nothing(tmp_path: Path) -> None:
    one, other = run(units(3), tmp_path), run(units(3), tmp_path, seed=1)
    assert not np.isin(one["max_gap"], other["max_gap"]).any()
    assert_frame_equal(run(units(5), tmp_path / "more").head(9), one)


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_rows_do_not_depend_on_the_workers(tmp_path: Path, backend: str) -> None:
    wanted = run(units(5), tmp_path / "one")
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert_frame_equal(run(units(5), tmp_path / "two"), wanted)
    assert parts(tmp_path / "one") == parts(tmp_path / "two")


def test_a_backend_that_answers_in_the_end_is_asked_for_a_little_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    class Plain(joblib.Parallel):  # type: ignore[misc]
        def __init__(self, **options: Any) -> None:
            if "return_as" in options:
                raise ValueError("this backend gives lists")
            super().__init__(**options)

        def __call__(self, calls: Any) -> Any:
            made.append(len(calls))
            return super().__call__(calls)

    monkeypatch.setattr(grid.joblib, "Parallel", Plain)
    rows = run(units(5), tmp_path / "plain")
    monkeypatch.undo()
    assert made == [2, 2, 1]
    assert_frame_equal(rows, run(units(5), tmp_path / "one"))


def parts(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_there_is_not_computed_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    work = units(6, log=str(log))
    first = run(work, tmp_path / "parts")
    for unit in work[1:5:3]:
        unit.file(tmp_path / "parts", 0).unlink()
    log.unlink()
    assert_frame_equal(run(work, tmp_path / "parts"), first)
    assert log.read_text().split() == ["1", "4"]


def test_a_unit_that_fails_stops_the_run_and_keeps_the_others(tmp_path: Path) -> None:
    work = [*units(2), Unit("figure", "bad", fails, {"log": "nowhere"})]
    with pytest.raises(ArithmeticError, match="no rows with seed 0"):
        run(work, tmp_path)
    assert len(parts(tmp_path)) == 2
    assert run(work[:2], tmp_path).height == 6


def test_the_same_unit_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^units must differ"):
        run([*units(2), *units(1)], tmp_path)


def test_names_tell_all_that_rows_depend_on() -> None:
    unit = Unit("f", "d", draws, {"cell": 1})
    others = [
        Unit("g", "d", draws, {"cell": 1}),
        Unit("f", "e", draws, {"cell": 1}),
        Unit("f", "d", fails, {"cell": 1}),
        Unit("f", "d", draws, {"cell": 2}),
    ]
    names = {unit.name(0), unit.name(1), *(other.name(0) for other in others)}
    assert len(names) == 6
    assert unit.file(Path("x"), 0) == Path("x/f/d-9f1a9b4c40373a22a598.parquet")
    with pytest.raises(ValueError):
        Unit("f", "d", draws, {"cell": float("nan")}).name(0)


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "figure" / "file"

    def broken(path: Path) -> None:
        path.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(target, broken)
    assert not target.exists()
    assert len(list(target.parent.iterdir())) == 1
    run(units(1), tmp_path)
    assert [path.suffix for path in target.parent.iterdir()] == [".parquet"]


def killed_after(count: int, folder: Path, log: Path, workers: int) -> bool:
    """Start the grid and kill -9 it when so many parts are there; whether it was still at work then."""
    command = [sys.executable, str(HERE / "grid_units.py"), str(folder), str(log), str(workers)]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        while process.poll() is None and len(list(folder.glob("*/*.parquet"))) < count:
            time.sleep(0.01)
        alive = process.poll() is None
        process.kill()
        process.wait()
        for _ in range(1200):
            if not _members(process.pid):
                return alive
            time.sleep(0.05)
        raise AssertionError("workers outlive a killed run")
    finally:
        if _members(process.pid):
            os.killpg(process.pid, signal.SIGKILL)


def _members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.skipif(sys.platform == "win32", reason="no kill -9")
@pytest.mark.parametrize("workers", [1, 2])
def test_kill_nine_loses_nothing_and_counts_nothing_twice(tmp_path: Path, workers: int) -> None:
    log = tmp_path / "log"
    targets = [3] if workers > 1 else [2, 7]
    stopped = [killed_after(count, tmp_path / "parts", log, workers) for count in targets]
    assert any(stopped)
    work = units(12, log=str(log), seconds=0.05)
    rows = run(work, tmp_path / "parts")
    assert_frame_equal(rows, run(work, tmp_path / "undisturbed"))
    assert parts(tmp_path / "parts") == parts(tmp_path / "undisturbed")
    assert rows.height == 36
