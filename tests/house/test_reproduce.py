"""`pq reproduce`: every figure is there, tables are those of the experiments, kills and missing data are survived."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from polars.testing import assert_frame_equal

from pq.cli import fresh_folder, main
from pqlab.experiments import figures, report, reproduce, sequential, static
from pqlab.experiments.figures import FIGURES, PROFILES
from pqlab.experiments.grid import SCHEMA, run
from pqlab.experiments.reproduce import RunError

KEY = ["figure", "data", "variant", "method", "m", "epsilon", "mixture", "trial", "day_block"]
PAPER = ["mplots", "pubpri-logepsplots", "mixplots", "timeplots", "online-logepsplots", "worldnews-logepsplots"]


@pytest.fixture(autouse=True)
def _no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PQ_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("PQ_OFFLINE", "1")


def test_every_figure_of_the_paper_is_there() -> None:
    assert list(FIGURES) == PAPER


@pytest.mark.parametrize("label", PAPER)
def test_the_report_says_where_differences_are_listed_and_what_each_panel_is(label: str) -> None:
    name, heading = report.DIFFERENCES[label]
    source = (Path(__file__).parents[2] / "notebooks" / f"{name}.md").read_text(encoding="utf-8")
    assert f"\n## {heading}\n" in source
    units = [unit for job in FIGURES[label].jobs for unit in job.units(PROFILES["paper"])]
    grids = {unit.options.get("grid") for unit in units} - {None}
    variants = {str(unit.options.get("calibration", unit.options.get("variant"))) for unit in units}
    variants |= {f"sharp, grid {grid:g}" for grid in grids}
    assert variants <= set(report.VARIANTS)
    words = " ".join(report.story(FIGURES[label], [pl.DataFrame({"variant": sorted(variants)})]))
    assert heading.replace("'", "&#x27;") in words and all(report.VARIANTS[one] in words for one in variants)


@pytest.mark.parametrize("profile", PROFILES)
def test_units_differ_and_belong_to_their_job(profile: str) -> None:
    names = []
    for figure in FIGURES.values():
        for job in figure.jobs:
            units = job.units(PROFILES[profile])
            assert units
            assert {(unit.figure, unit.data) for unit in units} == {(figure.label, job.data)}
            names += [unit.name(0) for unit in units]
    assert len(set(names)) == len(names)


def test_the_paper_profile_has_the_papers_sizes() -> None:
    paper = PROFILES["paper"]
    assert (paper.trials, paper.days, paper.days_noiseless) == (40, None, 100_000)
    budgets = [figures.epsilon_of(value) for value in paper.log_epsilons]
    assert len(budgets) == 15 and budgets[0] == 1e-5 and budgets[-1] == 100.0
    (job,) = (job for job in FIGURES["online-logepsplots"].jobs if job.data == "synthetic_noisy")
    units = job.units(paper)
    assert {unit.options["m"] for unit in units} == {1, 9}
    methods = sequential.methods_for(figures.TASKS["synthetic_noisy"], controls=True)
    assert {"laplace", "prox_blind"} <= set(methods)
    assert all(unit.options["methods"] == methods for unit in units)
    assert all(unit.options["epsilons"] == budgets for unit in units)
    for m, calibration in ((1, "paper"), (9, "paper"), (1, "sharp"), (9, "sharp")):
        mine = [o for o in (unit.options for unit in units) if (o["m"], o["calibration"]) == (m, calibration)]
        assert [t for o in mine for t in range(o["first_trial"], o["first_trial"] + o["trials"])] == list(range(40))


def test_rows_are_those_of_the_experiments() -> None:
    options = {"method": "original", "epsilon": 1.0, "ms": [1, 3], "trials": 2, "seed": 5}
    rows = figures.static_rows(data="adult_age", calibration="sharp", grid=1.0, **options)
    cells = static.cells(
        variants=[("adult_age", "sharp", 1.0)], methods=["original"], epsilons=[1.0], ms=[1, 3], trials=2
    )
    assert [row["max_gap"] for row in rows] == [row["max_gap"] for row in static.run(cells, seed=5)]
    assert {row["variant"] for row in rows} == {"sharp, grid 1"}

    budgets = [0.1, 1.0]
    same = {"task": "synthetic_noisy", "methods": ["prox"], "days": 7, "m": 9, "first_trial": 2, "trials": 2, "seed": 5}
    rows = figures.sequential_rows(epsilons=budgets, calibration="paper", day_blocks=3, **same)
    for epsilon in budgets:
        cell = sequential.Cell("synthetic_noisy", "prox", epsilon, 7, 2, 2, seed=5, calibration="paper")
        gaps = sequential.run_cell(cell)
        for k in range(2):
            mine = [row for row in rows if (row["epsilon"], row["trial"]) == (epsilon, 2 + k)]
            assert [row["day_block"] for row in mine] == [-1, 0, 1, 2]
            assert (mine[0]["max_gap"], mine[0]["median_gap"]) == (gaps[:, k].mean(), np.median(gaps[:, k]))
            for row in mine[1:]:
                assert row["max_gap"] == gaps[row["first_day"] : row["last_day"] + 1, k].mean()
            assert sum(row["last_day"] + 1 - row["first_day"] for row in mine[1:]) == 7


def test_a_run_makes_tables_and_a_report_that_stands_alone(tmp_path: Path) -> None:
    page = reproduce.reproduce(tmp_path / "run", ["mplots", "mixplots", "worldnews-logepsplots"], profile="tiny")
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg ") == text.count('role="img" aria-label="') == 4
    assert not re.search(r'(src|href)="(?!data:|#)', text)
    assert text.count("was left out: ") == 6  # four of books, comments, headlines
    assert "goodreads_books_poetry.json.gz" in text or "goodreads_books_history" in text
    for label in ("mplots", "mixplots", "worldnews-logepsplots"):
        table = pl.read_parquet(tmp_path / "run" / "tables" / f"{label}.parquet")
        assert table.schema == pl.Schema(SCHEMA)
        assert table.select(KEY).n_unique() == table.height
        assert (tmp_path / "run" / "tables" / f"{label}.csv").exists()
    means = pl.read_csv(tmp_path / "run" / "tables" / "mplots.csv")
    first = pl.read_parquet(tmp_path / "run" / "tables" / "mplots.parquet").head(4).filter(pl.col("m") == 1)
    assert means["max_gap"][0] == first["max_gap"].mean()
    assert means["max_gap_error"][0] == pytest.approx(np.std(first["max_gap"].to_numpy(), ddof=1) / np.sqrt(2))


def test_sequential_figures_are_drawn(tmp_path: Path) -> None:
    for label, data in (("timeplots", "flights_break"), ("online-logepsplots", "synthetic_noisy")):
        figure = FIGURES[label]
        (job,) = (job for job in figure.jobs if job.data == data)
        means = report.summary(run(job.units(PROFILES["tiny"]), tmp_path))
        assert report.draw(figure, job, means).startswith('<svg role="img" aria-label="')
        assert f"{len(means)} means" in report.section(figure, [(job, means)], [])


def test_a_folder_belongs_to_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    reproduce.reproduce(folder, ["worldnews-logepsplots"], profile="tiny")
    reproduce.reproduce(folder, ["worldnews-logepsplots"], profile="tiny")
    with pytest.raises(RunError, match="another profile and seed"):
        reproduce.reproduce(folder, ["worldnews-logepsplots"], profile="quick", seed=1)
    with reproduce._alone(folder), pytest.raises(RunError, match="another run is at work"):
        reproduce.reproduce(folder, ["worldnews-logepsplots"], profile="tiny")
    monkeypatch.setattr(reproduce, "program", lambda: {"code": "other"})
    with pytest.raises(RunError, match="another program"):
        reproduce.reproduce(folder, ["worldnews-logepsplots"], profile="tiny")


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^figures must be among"):
        reproduce.reproduce(tmp_path, ["nothing"])
    with pytest.raises(ValueError, match=r"^profile must be one of"):
        reproduce.reproduce(tmp_path, profile="large")
    assert not list(tmp_path.glob("*.json"))


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    start = CliRunner().invoke(main, ["reproduce", "--resume"])
    assert start.exit_code == 2 and "no run" in start.output
    for _ in range(2):
        done = CliRunner().invoke(
            main, ["reproduce", "fig:worldnews-logepsplots", "--profile", "tiny", "--workers", "1"]
        )
        assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["reproduce-001", "reproduce-002"]
    assert done.stdout == "report: runs/reproduce-002/report.html\n"
    arguments = ["reproduce", "worldnews-logepsplots", "--profile", "tiny", "--workers", "1"]
    assert CliRunner().invoke(main, [*arguments, "--resume"]).stdout == done.stdout
    refused = CliRunner().invoke(main, [*arguments, "--out", "runs/reproduce-001"])
    assert refused.exit_code == 2 and "--resume" in refused.output
    (tmp_path / "runs" / "reproduce-003").mkdir()  # left by a run that was killed before it had begun
    assert CliRunner().invoke(main, ["reproduce", "--resume", "--workers", "1"]).stdout == done.stdout
    for given, differs in (
        (["mplots"], "figures"),
        (["--profile", "quick"], "profile"),
        (["--seed", "1"], "seed"),
        (["mplots", "--profile", "paper", "--seed", "2"], "figures and profile and seed"),
    ):
        other = CliRunner().invoke(main, ["reproduce", *given, "--resume", "--workers", "1"])
        assert other.exit_code == 2 and f"holds a run of another {differs};" in other.output
    (tmp_path / "runs" / "reproduce-003" / "run.json").write_text("{")
    assert "run.json is damaged" in CliRunner().invoke(main, ["reproduce", "--resume"]).output
    unknown = CliRunner().invoke(main, ["reproduce", "fig:none"])
    assert unknown.exit_code == 2 and "mplots" in unknown.output


def test_folders_that_no_run_has_numbered_are_nobodys_to_go_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("reproduce-old1", "reproduce-copy-7", "reproduce-9 ", "reproduce--2"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "run.json").write_text("{")
    start = CliRunner().invoke(main, ["reproduce", "--resume"])
    assert start.exit_code == 2 and "there is no run in runs to go on with" in start.output
    for number in ("2", "010"):
        (tmp_path / "runs" / f"reproduce-{number}").mkdir()
        (tmp_path / "runs" / f"reproduce-{number}" / "run.json").write_text("{")
    assert "runs/reproduce-010/run.json is damaged" in CliRunner().invoke(main, ["reproduce", "--resume"]).output
    assert fresh_folder(tmp_path / "runs", "reproduce").name == "reproduce-011"


GOOD = {"figures": ["mplots"], "profile": "tiny", "seed": 0, "program": {}}


@pytest.mark.parametrize(
    "record",
    [
        *([], "x", 3, None, {}),
        *(GOOD | {"figures": held} for held in (["none"], "mplots", [1], [[]], [], None, {"mplots": 1})),
        *(GOOD | {"profile": held} for held in ("large", [], None, 1)),
        *(GOOD | {"seed": held} for held in ("0", -1, None, 1.0, True, [1])),
        *({name: value for name, value in GOOD.items() if name != without} for without in ("figures", "seed")),
    ],
)
def test_a_record_that_is_none_is_said_to_be(record: Any, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(record), encoding="utf-8")
    start = CliRunner().invoke(main, ["reproduce", "--resume", "--out", str(tmp_path), "--workers", "1"])
    assert start.exit_code == 2 and "run.json is damaged" in start.output
    with pytest.raises(RunError):
        reproduce.held_run(tmp_path)


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"[" * 100_000, b"9" * 5000, b"[]", b"3"], ids=range(7))
def test_a_run_in_the_folder_of_a_damaged_one_is_refused(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(text)
    for call in (lambda: reproduce.held_run(tmp_path), lambda: reproduce.reproduce(tmp_path, ["mplots"])):
        with pytest.raises(RunError, match="is damaged"):
            call()


@pytest.mark.skipif(sys.platform == "win32", reason="no kill -9")
def test_kill_nine_in_the_middle_leaves_the_tables_of_an_undisturbed_run(tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    command = [sys.executable, "-m", "pq.cli", "reproduce", "mplots", "--profile", "tiny", "--workers", "1"]
    command += ["--out", str(folder), "--resume"]
    for parts in (1, 11):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ)
        while process.poll() is None and len(list(folder.glob("parts/*/*.parquet"))) < parts:
            time.sleep(0.002)
        process.kill()
        process.wait()
    assert not (folder / "report.html").exists()
    reproduce.reproduce(folder, ["mplots"], profile="tiny")
    reproduce.reproduce(tmp_path / "whole", ["mplots"], profile="tiny")
    for name in ("tables/mplots.parquet", "tables/mplots.csv"):
        assert (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert_frame_equal(*(pl.read_parquet(base / "tables/mplots.parquet") for base in (folder, tmp_path / "whole")))
    assert json.loads((folder / "run.json").read_text())["profile"] == "tiny"
