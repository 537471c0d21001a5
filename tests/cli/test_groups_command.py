"""`pq release --by`: every public key has a row, whatever the file holds, for one charge."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

import pq
from pq import cli

SURE = ["--quantiles", "0.5", "--prior", "uniform(0, 1e5)", "--grid", "1", "--calibration", "sharp"]
STAFF = 'department,pay,id\na,"1,000",p\n b ,"2,000",q\nb,9000,p\nb,2000,\nzz,500,r\n'


def release(file: Path | str, *options: str) -> Result:
    answer = CliRunner().invoke(cli.main, ["release", str(file), "--column", "pay", *SURE, *options])
    assert answer.exception is None or isinstance(answer.exception, SystemExit), answer.exception
    return answer


@pytest.fixture
def staff(tmp_path: Path) -> Path:
    path = tmp_path / "staff.csv"
    path.write_text(STAFF)
    return path


def test_every_key_has_a_row_in_every_form(staff: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys.csv"
    keys.write_text("note,department\nfirst,a\nsecond,b\nthird,c\n")
    by = ["--by", "department", "--thousands", ",", "--epsilon", "1e5"]
    for given in ("a, b,c", str(keys)):
        table = release(staff, *by, "--keys", given)
        assert table.exit_code == 0, table.output
        head, names, *rows, rule = table.stdout.splitlines()
        assert "quantiles of pay by department" in head and rule.startswith("a cell counts as a number")
        assert [row.split()[0] for row in rows] == ["a", "b", "c"] and names.split() == ["department", "0.5"]
        facts = json.loads(release(staff, *by, "--keys", given, "--json").stdout)
        made = pq.GroupedRelease.from_dict({name: fact for name, fact in facts.items() if name != "cells"})
        assert [round(float(made.releases[key].values[0])) for key in ("a", "b")] == [1000, 2000]
        listed = list(csv.reader(io.StringIO(release(staff, *by, "--keys", given, "--csv").stdout)))
        assert listed[0] == ["department", "quantile", "value"] and [row[0] for row in listed[1:]] == ["a", "b", "c"]
        assert len(release(staff, *by, "--keys", given, "--quiet").stdout.split()) == 3
    other = release(staff, *by, "--keys", "a", "--unknown", "other", "--csv").stdout.splitlines()
    assert [row.split(",")[0] for row in other] == ["department", "a", "other"]


def test_a_persons_rows_are_bounded(staff: Path) -> None:
    by = ["--by", "department", "--keys", "a,b", "--thousands", ",", "--epsilon", "1e5", "--person", "id"]
    facts = json.loads(release(staff, *by, "--max-groups", "2", "--json").stdout)
    assert (facts["max_contributions"], facts["max_groups"], facts["person"]) == (2, 2, "id")
    assert [one["values"] for one in facts["groups"]] != []
    facts = json.loads(release(staff, *by, "--max-contributions", "3", "--json").stdout)
    assert (facts["max_contributions"], facts["max_groups"]) == (3, 1)


def test_a_ledger_is_charged_once(staff: Path, tmp_path: Path) -> None:
    account = pq.Ledger.open(tmp_path / "pay.ledger", total=1)
    by = ["--by", "department", "--keys", "a,b,c", "--ledger", str(tmp_path / "pay.ledger")]
    assert release(staff, *by, "--epsilon", "0.6").exit_code == 0
    assert [float(entry.epsilon) for entry in account.entries] == [0.6]
    answer = release(staff, *by, "--epsilon", "0.6")
    assert answer.exit_code == 1 and "does not fit" in answer.output
    assert len(account.entries) == 1


def test_what_the_file_holds_changes_values_alone(tmp_path: Path) -> None:
    shapes = set()
    for content in (STAFF, "department,pay,id\n", 'department,pay,id\n"",x,""\n?,,\nc,1e999,p\n' + "q,1,1\n" * 40):
        path = tmp_path / "x.csv"
        path.write_text(content)
        answer = release(path, "--by", "department", "--keys", "a,b", "--person", "id", "--epsilon", "1", "--csv")
        assert answer.exit_code == 0 and answer.stderr == ""
        shapes.add(tuple(row.rpartition(",")[0] for row in answer.stdout.splitlines()))
    assert len(shapes) == 1


def test_parquet_has_keys_of_its_declared_type(tmp_path: Path) -> None:
    path = tmp_path / "staff.parquet"
    frame = pl.DataFrame({"floor": [1, 2, 2], "day": ["2026-03-01", "2026-03-02", None], "pay": [1000, 2000, 2000]})
    frame.with_columns(pl.col("day").str.to_date()).write_parquet(path)
    answer = release(path, "--by", "floor", "--keys", "1,2.0,3", "--epsilon", "1e5", "--quiet")
    assert [round(float(value)) for value in answer.stdout.split()[:2]] == [1000, 2000]
    answer = release(path, "--by", "day", "--keys", "2026-03-01", "--epsilon", "1e5", "--csv")
    assert answer.stdout.splitlines()[1].startswith("2026-03-01,0.5,") and "2026-03-02" not in answer.stdout
    answer = release(path, "--by", "floor", "--keys", "one", "--epsilon", "1")
    assert answer.exit_code == 2 and "keys must be of the column's kind, number" in answer.output


WRONG = {
    "keys without groups": (["--keys", "a"], "--keys needs --by"),
    "a person without groups": (["--person", "id"], "--person needs --by"),
    "CSV without groups": (["--csv"], "--csv needs --by"),
    "groups without keys": (["--by", "department"], "--by needs --keys"),
    "a key twice": (["--by", "department", "--keys", "a,a"], "keys must differ"),
    "a key that is taken": (["--by", "department", "--keys", "a,other", "--unknown", "other"], "keys must not hold"),
    "an unknown word": (["--by", "department", "--keys", "a", "--unknown", "raise"], "--unknown"),
    "a file that is not there": (["--by", "department", "--keys", "absent.csv"], "absent.csv"),
    "no such column": (["--by", "team", "--keys", "a"], "column: the header row has no column named 'team'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_option_is_refused_in_a_sentence(name: str, staff: Path) -> None:
    options, complaint = WRONG[name]
    answer = release(staff, "--epsilon", "1", *options)
    assert answer.exit_code in (1, 2) and complaint in answer.output
    assert "1,000" not in answer.output and "zz" not in answer.output


def test_a_page_takes_no_place_of_what_is_read(staff: Path, tmp_path: Path) -> None:
    """Neither of the data, nor of the ledger or the keys, and nothing is charged."""
    ledger, keys = tmp_path / "staff.ledger", tmp_path / "keys.csv"
    keys.write_text("department\na\n")
    pq.Ledger.open(ledger, total=2)
    link = tmp_path / "link.ledger"
    link.symlink_to(ledger)
    journal = tmp_path / "staff.ledger-journal"  # of SQLite's, which comes and goes
    for path in (staff, ledger, link, keys, staff.parent / "." / staff.name, journal):
        before = path.read_bytes() if path.exists() else None
        by = ["--by", "department", "--keys", str(keys)]
        answer = release(staff, *by, "--epsilon", "1", "--ledger", str(ledger), "--report", str(path))
        assert answer.exit_code == 2 and "is a file that this command reads" in answer.output
        assert (path.read_bytes() if path.exists() else None) == before
    assert pq.Ledger.open(ledger).spent == 0
    many = ",".join(f"key{k}" for k in range(200))
    page = ["--report", str(tmp_path / "page.html")]
    for _ in range(2):
        assert release(staff, "--by", "department", "--keys", many, "--epsilon", "1", *page).exit_code == 0


def test_keys_from_the_data_are_refused_before_the_charge(staff: Path, tmp_path: Path) -> None:
    """Whatever name it goes by: a list of the keys that the data hold tells who is there."""
    account = pq.Ledger.open(tmp_path / "staff.ledger", total=2)
    (tmp_path / "link.csv").symlink_to(staff)
    (tmp_path / "hard.csv").hardlink_to(staff)
    for data, keys in (
        (staff, staff),
        (staff, staff.parent / "." / staff.name),
        (staff, tmp_path / "link.csv"),
        (tmp_path / "link.csv", tmp_path / "hard.csv"),
    ):
        by = ["--by", "department", "--keys", str(keys), "--ledger", str(tmp_path / "staff.ledger")]
        answer = release(data, *by, "--epsilon", "1")
        assert answer.exit_code == 2 and "keys must be public" in answer.output
    (tmp_path / "keys.parquet").write_bytes(b"")
    by = ["--by", "department", "--keys", str(tmp_path / "keys.parquet"), "--ledger", str(tmp_path / "staff.ledger")]
    answer = release(staff, *by, "--epsilon", "1")
    assert answer.exit_code == 2 and "keys must be keys, or a CSV file of them" in answer.output
    assert not account.entries
    call = ["release", "-", "--column", "pay", *SURE, "--epsilon", "1", "--by", "department", "--keys", str(staff)]
    with staff.open("rb") as file:
        done = subprocess.run([sys.executable, "-m", "pq.cli", *call], stdin=file, capture_output=True, check=False)
    assert done.returncode == 2 and b"keys must be public" in done.stderr


def test_a_page_takes_no_place_of_the_file_behind_standard_input(staff: Path, tmp_path: Path) -> None:
    before, account = staff.read_bytes(), pq.Ledger.open(tmp_path / "staff.ledger", total=2)
    (tmp_path / "link.html").symlink_to(staff)
    for file in ("-", "/dev/stdin"):
        call = ["release", file, "--column", "pay", "--quantiles", "0.5", "--epsilon", "1", "--prior", "cauchy(0, 1)"]
        call += ["--ledger", str(tmp_path / "staff.ledger"), "--report", str(tmp_path / "link.html")]
        with staff.open("rb") as data:
            done = subprocess.run([sys.executable, "-m", "pq.cli", *call], stdin=data, capture_output=True, check=False)
        assert done.returncode == 2 and b"is a file that this command reads" in done.stderr
        assert staff.read_bytes() == before and not account.entries


@pytest.mark.parametrize("options", [["--by", "pay"], ["--by", "department", "--person", "pay"]])
def test_cells_are_texts_or_numbers_not_both(staff: Path, options: list[str]) -> None:
    answer = release(staff, *options, "--keys", "1", "--epsilon", "1")
    assert answer.exit_code == 2 and "by and person must name other columns" in answer.output
