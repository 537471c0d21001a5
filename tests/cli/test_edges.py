"""Edges that all commands share: suggestions, JSON and quiet answers, exit codes, completion, progress on terminals."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import termios
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from pq import cli
from pq.core.choices import nearest

ROOT = Path(__file__).parents[2]
MEDIAN = ["--quantiles", "0.5", "--epsilon", "1", "--prior", "uniform(0, 100)"]
FORECAST = ["forecast", *MEDIAN, "--size", "100", "--trials", "4", "--seed", "1"]
AUDIT = ["audit", "--quantiles", "0.5", "--pairs", "20"]


def pq_command(*arguments: str) -> Result:
    return CliRunner().invoke(cli.main, list(arguments))


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text("name,salary\n" + "".join(f"p{i},{i}\n" for i in range(100)), encoding="utf-8")
    return path


SUGGESTIONS = {
    "a command": (["forcast"], "did you mean forecast?"),
    "a command of the ledger": (["ledger", "shw"], "did you mean show?"),
    "an option": (["forecast", "--epsilom", "1"], "--epsilon"),
    "a family": (["forecast", *MEDIAN, "--prior", "couchy(0, 1)", "--size", "9"], "did you mean cauchy?"),
    "a mechanism": ([*FORECAST, "--mechanism", "jiont"], "did you mean joint?"),
    "an adjacency": ([*FORECAST, "--adjacency", "add-remov"], "did you mean add-remove?"),
    "a kind": ([*FORECAST, "--type", "dat"], "did you mean date?"),
    "a shell": (["completion", "bsh"], "did you mean bash?"),
}


@pytest.mark.parametrize("case", SUGGESTIONS)
def test_what_is_misspelt_gets_the_nearest(case: str) -> None:
    arguments, near = SUGGESTIONS[case]
    answer = pq_command(*arguments)
    assert answer.exit_code == 2
    assert near in answer.stderr


def test_a_column_gets_the_nearest_of_the_declared(people: Path) -> None:
    """Of a table that declares its columns. The first row of a text file may be a record, whatever it looks like."""
    parquet = people.with_suffix(".parquet")
    pl.DataFrame({"salary": [1.0], "age": [2.0]}).write_parquet(parquet)
    assert "did you mean salary?" in pq_command("inspect", str(parquet), "--column", "salry").stderr
    files = {
        "39.5,private\n40,state\n": "privat",
        '{"gift": 512}\n{"gift": 40}\n': "gift",
        "gift=512\ngift=40\n": "gift",
    }
    for text, name in files.items():
        people.write_text(text, encoding="utf-8")
        answer = pq_command("release", str(people), "--lines", "--column", name, *MEDIAN)
        assert answer.exit_code == 2 and f"the header row has no column named '{name}'\n" in answer.stderr
        assert not any(cell in answer.stderr for cell in ("private", "512", "39.5"))


def test_nothing_near_is_suggested_where_nothing_is() -> None:
    assert nearest("xyz", ["cauchy", "normal"]) == "." and nearest(3, ["cauchy"], end="") == ""
    assert "did you mean" not in pq_command("zzzz").stderr


def answers(people: Path, *more: str) -> dict[str, Result]:
    """One call of each command that answers something, with more options."""
    account = people.parent / "account"
    column = [str(people), "--column", "salary"]
    calls = {
        "init": ["ledger", "init", str(account), "--total", "2"],
        "show": ["ledger", "show", str(account)],
        "release": ["release", *column, *MEDIAN],
        "inspect": ["inspect", *column],
        "forecast": FORECAST,
        "audit": AUDIT,
    }
    return {name: pq_command(*call, *more) for name, call in calls.items()}


def test_all_commands_answer_in_json(people: Path) -> None:
    for name, answer in answers(people, "--json").items():
        assert answer.exit_code == 0, (name, answer.output)
        assert isinstance(json.loads(answer.stdout), dict), name
        assert answer.stderr == "", name  # no bar where nobody looks on


def test_all_commands_can_be_quiet(people: Path) -> None:
    for name, answer in answers(people, "--quiet").items():
        assert answer.exit_code == 0, (name, answer.output)
        lines = answer.stdout.splitlines()
        assert lines == [] if name == "init" else float(lines[0]) >= 0 and len(lines) == 1, name


def test_exit_codes_are_as_documented(people: Path) -> None:
    statuses = re.findall(r"(\d) (?:done|it could|the call)", cli.EXIT_STATUS)
    assert statuses == ["0", "1", "2"]
    for name in ("", "release", "forecast", "inspect", "audit", "completion", "ledger", "ledger init", "ledger show"):
        shown = " ".join(pq_command(*name.split(), "--help").output.split())
        assert cli.EXIT_STATUS in shown, name
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    failures = cli.EXIT_STATUS.partition("could not be done: ")[2].partition("; 2 ")[0]
    assert f"could not be done ({failures})" in readme
    folder = people.parent / "account"
    folder.write_text("no ledger", encoding="utf-8")
    assert pq_command("ledger", "show", str(folder)).exit_code == 1
    assert pq_command("release", str(people), "--column", "salary", *MEDIAN, "--grid", "-1").exit_code == 2
    people.write_text('name,salary\n"open,1\n', encoding="utf-8")
    assert pq_command("release", str(people), "--column", "salary", *MEDIAN).exit_code == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_told_how_to_complete(shell: str) -> None:
    answer = pq_command("completion", shell)
    assert answer.exit_code == 0
    assert f"_PQ_COMPLETE={shell}_complete" in answer.stdout


def completed(words: str) -> list[str]:
    environment = {"_PQ_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    answer = CliRunner().invoke(cli.main, [], prog_name="pq", env=environment)
    return [line.partition(",")[2] for line in answer.stdout.splitlines()]


def test_commands_options_choices_and_families_are_completed() -> None:
    assert completed("pq fore") == ["forecast"]
    assert "--epsilon" in completed("pq forecast --eps")
    assert completed("pq forecast --mechanism jo") == ["joint"]
    assert "lognormal(" in completed("pq forecast --prior log")


@pytest.mark.parametrize("words", ["pq relese --", "pq ledger shwo x", "pq run --", "pq release --epsilon x --"])
def test_a_line_that_is_not_valid_yet_is_completed_in_silence(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_source", lambda entry: None if entry.module.startswith("pqlab.") else Path(entry.module))
    environment = {"_PQ_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    answer = CliRunner().invoke(cli.main, [], prog_name="pq", env=environment)
    assert (answer.exit_code, answer.stderr) == (0, "") and "rror" not in answer.stdout


def test_a_bar_is_for_a_terminal() -> None:
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (24, 80))  # without a size tqdm sees no room for a bar
    program = [sys.executable, "-m", "pq.cli", *FORECAST]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(program, stderr=follower, stdout=subprocess.PIPE, env=environment, check=False)
    assert done.returncode == 0
    os.set_blocking(leader, False)
    assert b"pq forecast" in os.read(leader, 100_000)
    assert b"Forecast of a release" in done.stdout and b"Error in ranks by quantile" not in done.stdout
    os.close(follower)
    os.close(leader)


def test_a_release_has_the_mechanism_that_was_forecast(people: Path) -> None:
    """With the same public facts, an option of the tree among them or not."""
    for options in ([], ["--size", "5000"], ["--mechanism", "cells"], ["--arity", "3"], ["--grid", "1"]):
        law = ["--quantiles", "0.2,0.5,0.8", *MEDIAN[2:], *options, "--json"]
        released = pq_command("release", str(people), "--column", "salary", *law)
        told = [] if "--size" in options else ["--size", "1000"]  # what a release reckons with that is told nothing
        said = pq_command("forecast", *law, *told, "--trials", "2")
        assert json.loads(released.stdout)["mechanism"] == json.loads(said.stdout)["mechanism"]


def test_intervals_stand_beside_values_where_asked_for(people: Path) -> None:
    asked = ["release", str(people), "--column", "salary", *MEDIAN, "--level", "0.9"]
    without = pq_command(*asked)
    assert without.exit_code == 0 and "90% interval\n" in without.stdout
    assert "  -\nNo interval: nothing tells the number of records; --size does.\n" in without.stdout
    assert json.loads(pq_command(*asked, "--json").stdout)["intervals"] is None
    facts = json.loads(pq_command(*asked, "--size", "100", "--json").stdout)
    ((low, high),) = facts["intervals"]
    assert facts["level"] == 0.9 and (low is None or low <= facts["values"][0])
    assert high is None or facts["values"][0] <= high
    assert "intervals" not in json.loads(pq_command(*asked[:-2], "--json").stdout)
    for level in ("0", "1", "nan", "0.9999"):
        refused = pq_command(*asked[:-1], level)
        assert refused.exit_code == 2 and "level" in refused.stderr
    refused = pq_command(*asked, "--by", "name", "--keys", "a")
    assert refused.exit_code == 2 and "--level is for one release" in refused.stderr


def test_help_lists_a_newcomers_way_first() -> None:
    text = pq_command("--help").stdout
    places = [text.index(f"\n  {name} ") for name in (*cli.WALK, "audit", "claims")]
    assert places == sorted(places)


@pytest.mark.parametrize(
    "arguments",
    [
        [*FORECAST, "--plot", "x.svg"],
        [*AUDIT, "--figure", "x.png"],
        ["audit", "--pairs", "1", "--each", "x.csv"],
        ["audit", "--pairs", "1", "--full", "x.csv"],
    ],
    ids=lambda arguments: arguments[-2],
)
def test_what_cannot_be_written_is_said_and_the_answer_is_not_lost(arguments: list[str], tmp_path: Path) -> None:
    answer = pq_command(*arguments[:-1], str(tmp_path / "none" / arguments[-1]))
    assert answer.exit_code == 1 and f"{arguments[-1]} cannot be written: No such file or directory" in answer.stderr
    assert "Traceback" not in answer.stderr and bool(answer.stdout) == (arguments[-2] in ("--plot", "--figure"))


@pytest.mark.parametrize("option", ["--each", "--full"])
def test_a_table_of_somebody_elses_is_not_written_over(option: str, tmp_path: Path) -> None:
    path = tmp_path / "patients.csv"
    for content in (b"name,age\nAnn,52\n", b"\xff\xfe", b""):
        path.write_bytes(content)
        answer = pq_command("audit", "--pairs", "1", option, str(path))
        assert answer.exit_code == 2 and "no table that this command has made" in answer.stderr
        assert path.read_bytes() == content


def test_an_account_takes_the_place_of_an_empty_file(tmp_path: Path) -> None:
    """A full disk leaves one."""
    path = tmp_path / "ages.ledger"
    path.touch()
    assert pq_command("ledger", "init", str(path), "--total", "2").exit_code == 0
    assert pq_command("ledger", "init", str(path), "--total", "2").exit_code == 2
