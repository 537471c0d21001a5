"""Benchmarks measure what they say, on small sizes; no time is looked at."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from click.testing import CliRunner
from packaging.requirements import Requirement

import pq
from benchmarks import (
    gap_against_m,
    interval_coverage,
    kill_nine,
    large_column,
    least_error,
    least_error_aims,
    machine,
    many_groups,
    speeds,
    where,
)
from benchmarks.peers import __main__ as peers
from pq.show.promise import MEASURED
from test_workshop import LOCK, PROJECT, ROOT, locked, version_of


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(large_column, "CHUNK", 1000)
    monkeypatch.setattr(large_column, "FILE_CHUNKS", 2)
    large_column.write(tmp_path, 4500)
    return tmp_path


@pytest.mark.parametrize("engine", large_column.ENGINES)
@pytest.mark.parametrize("column", large_column.COLUMNS)
def test_engines_count_files_as_they_were_written(files: Path, engine: str, column: str) -> None:
    assert len(list(files.glob("*.parquet"))) == 3
    with dask.config.set(scheduler="synchronous"):
        row = large_column.one(engine, column, files)
    assert row["counts_agree"] and row["rows"] == 4500


def test_a_wrong_count_is_noticed(files: Path) -> None:
    known = files / "known.json"
    known.write_text(known.read_text(encoding="utf-8").replace("[[", "[[0.0, 1], [", 1), encoding="utf-8")
    rows = [large_column.one("polars", column, files) for column in large_column.COLUMNS]
    assert not all(row["counts_agree"] for row in rows)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of pandas, to Dask's own reader of Parquet
@pytest.mark.parametrize("engine", many_groups.GROUP_ENGINES)
def test_groups_are_released_from_the_engines_own_counts(engine: str, tmp_path: Path) -> None:
    many_groups.write_rows(tmp_path / "rows.parquet", 5000)
    with dask.config.set(scheduler="synchronous"):
        row = many_groups.measured_groups(engine, tmp_path / "rows.parquet")
    assert row["counts_agree"] and row["to_own_count"] > 0
    query, own_count = many_groups.opened_by("polars", tmp_path / "rows.parquet")
    wrong = own_count()
    wrong.loc[wrong.index[wrong["key"] != "closed"][0], "n"] += 1
    assert not many_groups.counts_agree(query, wrong)


def test_peers_are_asked_alike() -> None:
    row = peers.measure("pq (uniform)", np.random.default_rng(0).normal(size=500), 3, patience=0.0)
    assert (row["n"], row["m"], row["calls"]) == (500, 3, 1)
    assert 0 <= row["max_gap"] <= 500 and row["to_sort"] > 0 and row["to_quantile"] > 0


def test_a_peer_that_is_not_there_is_left_out(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def absent(*_: Any) -> Any:
        raise ImportError("no such library")

    monkeypatch.setitem(peers.LIBRARIES, "absent", absent)
    assert not peers.present("absent")
    assert "absent is left out: ImportError: no such library" in capsys.readouterr().err
    assert peers.present("pq (Cauchy)")


def test_the_lock_of_peers_agrees_with_the_projects() -> None:
    text = (ROOT / "benchmarks" / "peers" / "requirements.lock").read_text(encoding="utf-8")
    own = {(pin.name, str(pin.marker)): version_of(pin) for pin in locked(LOCK)}
    theirs = {(pin.name, str(pin.marker)): version_of(pin) for pin in locked(text)}
    assert {"opendp", "diffprivlib", "python-dp"} <= {name for name, _ in theirs}
    shared = own.keys() & theirs.keys()
    needed = {Requirement(line).name for line in PROJECT["project"]["dependencies"]}
    assert needed <= {name for name, _ in shared}
    assert {key: theirs[key] for key in shared} == {key: own[key] for key in shared}


def test_a_kill_waits_for_its_moment(tmp_path: Path) -> None:
    script = f"import pathlib, time\np = pathlib.Path({str(tmp_path)!r}) / 'parts' / 'f'\np.mkdir(parents=True)\n"
    script += "[(p / f'{k}.parquet').touch() for k in range(3)]\ntime.sleep(600)"
    row = kill_nine.kill_once([kill_nine.sys.executable, "-c", script], tmp_path, 3, 0.0, whole_group=True)
    assert row["at_work"] and (row["before"], row["after"]) == (0, 3)


def test_least_errors_are_of_the_mechanism_that_is_said(tmp_path: Path) -> None:
    """A row of each method: what "auto" chose has the gaps of that mechanism, with the same seeds; margins need a grid,
    and a second run keeps what the first has stored."""
    rows = {name: least_error.measure("Gaussian, 10", 9, 1.0, name, 3) for name in [*least_error.METHODS, "JointExp"]}
    assert rows.pop("margin") is None and rows["JointExp"]["max_gap"] > 0.0
    assert rows["auto, size"]["mechanism"] == "joint" and rows["tree"]["mechanism"] == "tree"
    assert rows["auto, size"]["max_gap"] == rows["joint"]["max_gap"] != rows["tree"]["max_gap"]
    path = tmp_path / "rows.csv"
    options = ["--trials", "2", "--only", "auto", "--shape", "ages, grid of 1", "--save", str(path)]
    assert CliRunner().invoke(least_error.main, [*options, "--epsilon", "1"]).exit_code == 0
    first = path.read_text()
    assert CliRunner().invoke(least_error.main, [*options, "--resume"]).exit_code == 0
    assert len(first.splitlines()) == 1 + 4 and first == "\n".join(path.read_text().splitlines()[:5]) + "\n"
    assert len(path.read_text().splitlines()) == 1 + 4 * 2
    assert "goes on" in CliRunner().invoke(least_error.main, [*options, "--resume", "--minutes", "-1"]).output


def test_aims_compare_with_two_standard_errors() -> None:
    """A number, a multiple of the best other method, and a row of a uniform prior; none without its rows."""

    def row(shape: str, epsilon: float, m: int, method: str, gap: float, error: float) -> dict[str, Any]:
        facts = {"shape": shape, "epsilon": epsilon, "m": m, "method": method, "mechanism": "tree"}
        return facts | {"max_gap": gap, "error": error, "trials": 200, "ms": 1.0}

    lumps = [row("twelve lumps, 10", 0.1, 9, name, gap, 3.0) for name, gap in (("tree", 100.0), ("Google", 90.0))]
    rows = [
        row("Gaussian, 10", 1.0, 9, "auto, smooth", 6.5, 0.1),
        row("Gaussian, N(3, 1)", 1.0, 9, "auto, smooth", 7.8, 0.1),
        row("twelve lumps, 10", 0.1, 9, "auto, size", 120.0, 1.0),
        *lumps,
    ]
    found = least_error_aims.compare(rows)
    assert [(one["about"], one["met"]) for one in found] == [
        ("smooth", True),
        ("nothing promised", False),
        ("a wrong one", False),
    ]
    assert found[1]["aim"] == pytest.approx(1.15 * 90.0) and found[1]["of"] == "1.15 x Google"
    assert found[1]["two_errors"] == pytest.approx(2.0 * math.hypot(1.0, 1.15 * 3.0))
    assert least_error_aims.compare(rows[1:2]) == []
    assert least_error_aims.said(found)[0].strip() == "1 of 3 aims are met" and len(least_error_aims.said(found)) == 3


def stored_errors(name: str) -> list[dict[str, str]]:
    with (ROOT / "results" / "benchmarks" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_stored_aims_are_those_of_the_stored_rows() -> None:
    """Every row of 200 trials or more, of a method that is still there; the second table follows from the first."""
    rows = list(least_error.stored(ROOT / "results" / "benchmarks" / "least_error.csv").values())
    assert all(row["trials"] >= 200 and row["method"] in least_error.LINES for row in rows)
    aims, kept = least_error_aims.compare(rows), stored_errors("least_error_aims")
    assert len(aims) == len(kept) == len(least_error_aims.AIMS)
    for one, other in zip(aims, kept, strict=True):
        assert (one["shape"], str(one["m"]), one["of"], str(one["met"])) == tuple(
            other[name] for name in ("shape", "m", "of", "met")
        )


def test_stored_rows_of_auto_are_of_the_mechanism_that_it_takes() -> None:
    """Else the table tells of a choice that is made no more."""
    for row in least_error.stored(ROOT / "results" / "benchmarks" / "least_error.csv").values():
        if row is not None and row["method"].startswith("auto"):
            found = least_error.releases(row["shape"], row["m"], row["epsilon"], row["method"])
            assert found is not None and found[0] == row["mechanism"], row


def test_coverage_is_counted_of_what_is_said(tmp_path: Path) -> None:
    """Intervals without length hold nothing, endless ones all; lumps are one law for a row, drawn from again."""
    rows = interval_coverage.measure("twelve lumps, 10", 2, 1.0, "cells", 4)
    assert [row["of"] for row in rows] == ["column", "population"] and rows[0]["mechanism"] == "cells"
    assert 0.0 < rows[0]["records"] < 1000.0
    assert all(row["all_held"] == 0.0 for row in interval_coverage.measure("Gaussian, 10", 2, 1.0, "cells", 4, 1e-9))
    assert all(row["each_held"] == 1.0 for row in interval_coverage.measure("Gaussian, 10", 2, 1.0, "cells", 4, 1e9))
    draw, law = interval_coverage.laws_of(interval_coverage.SHAPES["twelve lumps, 10"][0], np.array([0.5]), 1)
    spread = [np.min(np.abs(draw(np.random.default_rng(seed)) - law[0])) for seed in range(9)]
    assert max(spread) < 0.02  # the median is in a lump that all columns have
    options = [
        "--exact-trials",
        "2",
        "--only",
        "cells",
        "--shape",
        "ages, grid of 1",
        "--save",
        str(tmp_path / "rows.csv"),
    ]
    result = CliRunner().invoke(interval_coverage.main, options)
    assert result.exit_code == 0 and len((tmp_path / "rows.csv").read_text().splitlines()) == 1 + 2 * 2 * 4


def test_speeds_are_those_of_all_that_is_named_and_stay_where_another_machine_made_them(tmp_path: Path) -> None:
    """The smallest run has each kind of row; a table of another machine lies in a folder of its own."""
    other = tmp_path / "another" / "speeds.csv"
    other.parent.mkdir()
    other.write_text("kept", encoding="utf-8")
    result = CliRunner().invoke(speeds.main, ["--quick", "--rounds", "1", "--save", str(tmp_path)])
    assert result.exit_code == 0 and other.read_text(encoding="utf-8") == "kept"
    (path,) = [path for path in tmp_path.glob("*/speeds.csv") if path != other]
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    kinds = {row["what"].split()[0] for row in rows}
    assert kinds == {"start", "pq", "release", "prepared", "trial", "first", "again", "small", "day"}
    assert all(float(row["us"]) > 0 for row in rows)
    assert (path.parent / "machine.txt").read_text(encoding="utf-8").startswith(machine.processor())


def stored_coverage() -> list[dict[str, str]]:
    with (ROOT / "results" / "benchmarks" / "interval_coverage.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_stored_intervals_of_cells_hold_as_often_as_promised() -> None:
    """On every shape, for the column's quantiles and the population's; the others are there to be read."""
    rows = stored_coverage()
    cells = [row for row in rows if row["mechanism"] == "cells"]
    assert {row["shape"] for row in cells} == set(least_error.SHAPES) - {"Gaussian, any float"} and len(
        cells
    ) == 6 * 2 * 2 * 4 * 2
    assert min(float(row["all_held"]) for row in cells) >= 0.94
    assert {row["mechanism"] for row in rows} >= {"tree", "joint", "cells"}


def test_what_pages_say_of_simulated_intervals_is_what_was_measured() -> None:
    """The least share of all stored rows of a mechanism, in whole per cent, rounded down."""
    least = {row["mechanism"]: 1.0 for row in stored_coverage() if row["mechanism"] != "cells"}
    for row in stored_coverage():
        if row["mechanism"] in least:
            least[row["mechanism"]] = min(least[row["mechanism"]], float(row["all_held"]))
    assert {name: int(100 * share) for name, share in least.items()} == MEASURED


def test_gaps_against_m_stay_below_their_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small size of each row; what is read off a curve has no bound."""
    monkeypatch.setattr(gap_against_m, "SIZE", 400)
    rows = [gap_against_m.measured(method, 7, 2) for method in gap_against_m.METHODS]
    assert [row["method"] for row in rows if row["bound"] is None] == ["joint, read off"]
    assert all(row["least_spare"] > 0 and row["max_gap"] < row["bound"] for row in rows if row["bound"] is not None)


def test_time_is_told_by_part_of_the_package() -> None:
    x = np.random.default_rng(0).normal(size=1000)
    all_of_it, *rows = where.parts("release", lambda: pq.release(x, [0.5], **where.OPTIONS), 1, 1)
    assert sum(row["us"] for row in rows) == pytest.approx(all_of_it["us"]) and all_of_it["us"] > 0
    assert {"the column", "public arguments", "the release"} <= {row["part"] for row in rows}
    assert where.part_of(str(Path(pq.__file__).parent / "private/columns/door.py")) == "the column"
    assert where.part_of(np.__file__) is None
