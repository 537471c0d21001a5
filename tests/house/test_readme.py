"""What the README says is true: its example runs, its tables list what is there, its commands exist."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pq
from benchmarks.interval_coverage import coverage_table
from benchmarks.least_error_aims import gaps_table
from proofs_checks.engine.claims import load_claims
from proofs_checks.engine.report import counts_table

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_runs_as_printed() -> None:
    code = re.search(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert code is not None
    lines = code[1].strip().splitlines()
    assert len(lines) == 5
    names: dict[str, object] = {}
    exec("\n".join(lines), names)
    result = names["result"]
    assert isinstance(result, pq.Release)
    assert np.all(np.abs(result.values - [28, 37, 48]) <= 2)


def test_the_example_of_a_large_column_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = (part for part in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL) if "pq.count" in part)
    (tmp_path / "trips").mkdir()
    minutes = np.random.default_rng(0).exponential(20, 1000)
    pl.DataFrame({"minutes": minutes}).write_parquet(tmp_path / "trips" / "part.parquet")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"pq": pq}
    exec(code, names)
    assert names["counts"].counts.sum() == 1000
    assert len(names["counts"].values) < 1000


def test_the_example_by_group_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, names = np.random.default_rng(0), np.array(["sales", "research", "canteen"])
    columns = {"department": names[rng.integers(3, size=3000)], "pay": rng.normal(60_000, 9_000, 3000).round(2)}
    table = pl.DataFrame({**columns, "id": np.arange(3000)})
    (tmp_path / "staff").mkdir()
    table.write_parquet(tmp_path / "staff" / "part.parquet")
    monkeypatch.chdir(tmp_path)
    (code,) = (part for part in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL) if "release_groups" in part)
    names_of: dict[str, Any] = {"pq": pq, "pl": pl}
    exec(code, names_of)
    assert list(names_of["pay"].releases) == ["sales", "research", "board"]
    assert np.all(np.abs(names_of["pay"].releases["sales"].values - [53_930, 60_000, 66_070]) < 3_000)


def test_groups_took_as_long_as_is_said_beside_the_engines_own_count() -> None:
    said = {engine.lower(): float(times) for times, engine in re.findall(r"(\d\.\d) \((polars|Dask|DuckDB)\)", README)}
    with (ROOT / "results" / "benchmarks" / "many_groups.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["engine"] for row in rows} == {"polars", "duckdb", "dask"}
    for row in rows:
        assert (row["rows"], row["groups"]) == ("10000000", "1000")
        assert abs(float(row["to_own_count"]) - said[row["engine"]]) <= 0.051 and float(row["peak_mb"]) < 2000
        assert row["counts_agree"] == "True"


def test_the_sharp_calibration_lowers_gaps_as_is_said() -> None:
    assert "nine and more evenly spaced quantiles by a third to nearly a half" in " ".join(README.split())
    table = pl.read_csv(ROOT / "results" / "static" / "mplots.csv").filter(pl.col("m") >= 9, method="original")
    pairs = table.filter(data="gaussian").pivot(on="variant", index=["m", "epsilon"], values="max_gap")
    left = (pairs["sharp"] / pairs["paper"]).to_list()
    assert len(left) == 14 and min(left) > 0.54 and max(left) < 0.69


def test_the_table_of_notebooks_is_complete() -> None:
    listed = re.findall(r"\| \[(\w+)\]\(notebooks/(\w+)\.ipynb\)", README)
    assert all(name == file for name, file in listed)
    assert sorted(name for name, _ in listed) == sorted(p.stem for p in (ROOT / "notebooks").glob("*.md"))


def test_the_counts_of_verdicts_are_those_of_the_registry() -> None:
    table = re.search(r"<!-- counts: .* -->\n(.*?)\n<!-- end of counts -->", README, flags=re.DOTALL)
    assert table is not None
    assert table[1] == counts_table(load_claims())


def test_linked_files_exist() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert set(re.findall(r"`?make ([a-z-]+)", README)) <= targets


def test_the_example_of_a_ledger_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = (part for part in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL) if "Ledger" in part)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"pq": pq, "ages": pq.datasets.adult(), "prior": pq.Cauchy(40, 20)}
    exec(code, names)
    assert names["ledger"].remaining == 1 and names["ledger"].entries[0].what == "median age"


def test_the_gaps_of_the_mechanisms_are_those_printed() -> None:
    """Mean largest gaps of 200 releases, of columns of their own, fixed seeds; standard errors are below 0.8 ranks."""
    named = ("the tree of 2022, as published", "`tree`", "`auto`")
    printed = [float(re.findall(rf"^\| {re.escape(name)} \| ([\d.]+) \|", README, re.MULTILINE)[0]) for name in named]
    columns, deciles = np.random.default_rng(0).normal(size=(100, 1000)), [i / 10 for i in range(1, 10)]
    ways: list[dict[str, Any]] = [{"calibration": "paper"}, {"mechanism": "tree"}, {}]
    for stored, way in zip(printed, ways, strict=True):
        way |= {"epsilon": 1, "priors": pq.Uniform(-10, 10)}
        pairs = [(x, row) for i, x in enumerate(columns) for row in pq.simulate(x, deciles, trials=2, rng=i, **way)]
        assert abs(np.mean([pq.max_gap(x, deciles, row) for x, row in pairs]) - stored) < 1.5


def test_the_example_of_what_a_release_says_runs() -> None:
    (code,) = (part for part in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL) if "prior_between" in part)
    salaries = np.random.default_rng(0).lognormal(11, 0.5, size=20_000)
    names: dict[str, Any] = {"pq": pq, "salaries": salaries}
    exec(code, names)
    ends = names["result"].interval(0.95)
    true = np.quantile(salaries, [0.25, 0.5, 0.75])
    assert np.all(ends[:, 0] <= true) and np.all(true <= ends[:, 1]) and np.all(np.diff(ends) < 0.2 * true[:, None])
    assert names["result"].remarks == ()


def test_the_table_of_gaps_is_the_stored_one() -> None:
    table = re.search(r"<!-- gaps: .* -->\n(.*?)\n<!-- end of gaps -->", README, flags=re.DOTALL)
    with (ROOT / "results" / "benchmarks" / "least_error.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert table is not None and table[1] == gaps_table(rows)
    unknown = {
        row["method"]: row
        for row in rows
        if [row[n] for n in ("shape", "epsilon", "m")] == ["Gaussian, any float", "1.0", "9"]
    }
    said = re.search(r"are off by\s+about (\d+) ranks", README)
    assert said is not None and round(float(unknown["auto"]["max_gap"])) == int(said[1])


def test_the_table_of_coverage_is_the_stored_one() -> None:
    table = re.search(r"<!-- coverage: .* -->\n(.*?)\n<!-- end of coverage -->", README, flags=re.DOTALL)
    with (ROOT / "results" / "benchmarks" / "interval_coverage.csv").open(newline="") as file:
        assert table is not None and table[1] == coverage_table(list(csv.DictReader(file)))
