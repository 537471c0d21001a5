"""The ledger on the command line: who spent what, when, for which release; too much is refused before data are read."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import pq
from pq import cli

COLUMN = "salary\n" + "\n".join(str(20_000 + 50 * number) for number in range(1, 1000))
RELEASE = ("release", "staff.csv", "--column", "salary", "--quantiles", "0.25,0.5", "--prior", "cauchy(40000, 20000)")


def command(*arguments: str, **variables: str | None) -> Result:
    return CliRunner().invoke(cli.main, list(arguments), env={"PQ_WHO": None, "USER": "silent", **variables})


def spending(epsilon: str, *arguments: str) -> tuple[str, ...]:
    return (*RELEASE, "--epsilon", epsilon, "--ledger", "staff.ledger", *arguments)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with a column and an account of 1.5."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "staff.csv").write_text(COLUMN, encoding="utf-8")
    assert command("ledger", "init", "staff.ledger", "--total", "1.5").exit_code == 0
    return tmp_path


def test_a_release_is_entered_with_its_purpose_its_spender_and_a_receipt() -> None:
    answer = command(*spending("1", "--purpose", "annual report", "--who", "ann", "--json"))
    assert answer.exit_code == 0, answer.output
    receipt = json.loads(answer.stdout)["receipt"]
    account = json.loads(command("ledger", "show", "staff.ledger", "--json").stdout)
    (entry,) = account["entries"]
    assert receipt == f"{account['identity']}-{entry['number']}" and entry["number"] == 1
    assert (entry["epsilon"], entry["what"], account["remaining"]) == ("1", "annual report", "1/2")
    assert entry["who"].startswith("ann, process ") and re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]+\+00:00", entry["when"])
    shown = command("ledger", "show", "staff.ledger").stdout
    assert account["identity"] in shown and "annual report" in shown and "entry 1, " in shown and "ann, " in shown
    assert command("ledger", "show", "staff.ledger", "--quiet").stdout == "1/2\n"
    assert f"charged to staff.ledger: {account['identity']}-2" in command(*spending("0.25")).stdout


def test_a_name_is_given_never_taken() -> None:
    command(*spending("0.25"))
    command(*spending("0.25"), PQ_WHO="bob")
    first, second = pq.Ledger.open("staff.ledger").entries
    assert re.fullmatch(r"process \d+", first.who) and second.who.startswith("bob, process ")
    assert b"silent" not in Path("staff.ledger").read_bytes()


def test_too_much_is_refused_before_the_data_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is one that cannot be read; and a broken variant, which asks the account afterwards, would say so."""
    (folder / "staff.csv").write_text('salary\n"open', encoding="utf-8")
    answer = command(*spending("1.6", "--report", "page.html"))
    assert answer.exit_code == 1 and "epsilon 1.6 does not fit: 1.5 of 1.5 remain" in answer.output
    assert not (folder / "page.html").exists()
    monkeypatch.setattr(pq.Ledger, "rehearsal", lambda self: pq.Ledger(100))
    assert "does not fit" not in command(*spending("1.6")).output


def test_a_file_that_is_not_valid_costs_nothing(folder: Path) -> None:
    (folder / "staff.csv").write_text('salary\n"open', encoding="utf-8")
    assert command(*spending("1")).exit_code == 2
    assert pq.Ledger.open("staff.ledger").entries == ()
    said = " ".join(command("release", "--help").output.split())
    assert "not valid cost nothing" in said and "before data are read" not in said  # the charge comes after them


def test_somebody_may_be_quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = pq.Ledger.rehearsal

    def rehearsal(self: pq.Ledger) -> pq.Ledger:
        copy = honest(self)
        pq.Ledger.open("staff.ledger").spend(1, "somebody else")
        return copy

    monkeypatch.setattr(pq.Ledger, "rehearsal", rehearsal)
    answer = command(*spending("1"))
    assert answer.exit_code == 1 and "does not fit: 0.5 of 1.5 remain" in answer.output and "0.25 " not in answer.stdout


def test_what_is_no_ledger_is_told(folder: Path) -> None:
    answer = command(*RELEASE, "--epsilon", "1", "--ledger", "absent.ledger")
    assert answer.exit_code == 2 and "pq ledger init absent.ledger" in answer.output
    assert not (folder / "absent.ledger").exists()
    answer = command(*RELEASE, "--epsilon", "1", "--ledger", "staff.csv")
    assert answer.exit_code == 1 and "no ledger" in answer.output
    assert command("ledger", "show", "staff.csv").exit_code == 1
    assert command("ledger", "init", "staff.ledger", "--total", "3").exit_code == 2
    assert command("ledger", "init", "other.ledger", "--total", "1e401").exit_code == 2


def test_an_account_is_made_in_json_or_silence() -> None:
    made = json.loads(command("ledger", "init", "a.ledger", "--total", "3/2", "--delta", "1e-6", "--json").stdout)
    assert (made["total"], made["delta"], made["entries"]) == ("3/2", "1/1000000", [])
    assert command("ledger", "init", "b.ledger", "--total", "2", "--quiet").output == ""


def test_an_account_speaks_to_other_accountants() -> None:
    assert json.loads(command("ledger", "event", "staff.ledger").stdout)["neighboring_relation"] is None
    command(*spending("1", "--adjacency", "replace"))
    told = json.loads(command("ledger", "event", "staff.ledger").stdout)
    assert told["neighboring_relation"] == "REPLACE_ONE"
    assert told["event"] == pq.Ledger.open("staff.ledger").to_event()


def test_a_page_is_written_with_the_receipt(folder: Path) -> None:
    page = ("--report", "page.html", "--unit", "EUR", "--purpose", "annual <report>")
    answer = command(*spending("1", *page, "--json"))
    assert answer.exit_code == 0, answer.output
    text = (folder / "page.html").read_text(encoding="utf-8")
    described = json.loads(re.findall(r'id="release">(.*?)</script>', text, flags=re.DOTALL)[0])
    printed = json.loads(answer.stdout)
    assert described == {name: printed[name] for name in described}
    assert printed["receipt"] in text and "annual &lt;report&gt;" in text and "Quantiles of salary" in text
    answer = command(*spending("0.1", "--report", "absent/page.html"))
    assert answer.exit_code == 2 and "report: there is no folder absent" in answer.output
    assert len(pq.Ledger.open("staff.ledger").entries) == 1


@pytest.mark.skipif(os.name == "nt", reason="devices that are full")
@pytest.mark.parametrize("where", ["/dev/full", "/dev/null", "."])
def test_a_page_in_no_place_for_one_is_refused_before_the_charge(where: str) -> None:
    answer = command(*spending("1", "--report", where))
    assert answer.exit_code == 2 and "report" in answer.output
    assert not pq.Ledger.open("staff.ledger").entries


@pytest.mark.parametrize("there", [True, False])
def test_a_page_that_may_not_be_written_is_refused_before_the_charge(
    folder: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    if there:
        (folder / "page.html").write_text("yesterday's")
    place, allowed = folder / "page.html" if there else folder, os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: not (mode == os.W_OK and place.samefile(path)) and allowed(path, mode)
    )
    answer = command(*spending("1", "--report", "page.html"))
    assert answer.exit_code == 1 and "page.html cannot be written: permission denied" in answer.output
    assert not pq.Ledger.open("staff.ledger").entries


@pytest.mark.skipif(os.name == "nt", reason="devices that are full")
@pytest.mark.parametrize("form", ["--quiet", "--json", "--yes"])
@pytest.mark.parametrize("sink", ["full", "closed", "gone"])
def test_values_that_cannot_be_printed_were_paid_for_and_the_exit_code_says_so(
    sink: str, form: str, folder: Path
) -> None:
    """What every other exit code but 0 promises is that nothing was released."""
    into = {"full": ">/dev/full", "closed": ">&-", "gone": "| true"}[sink]
    program = [sys.executable, "-m", "pq.cli", *spending("1", form)]
    shell = f"set -o pipefail; {shlex.join(program)} {into}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert re.fullmatch(r"Error: the release was made .*: its values cannot be printed: .*\n", done.stderr)
    assert len(pq.Ledger.open("staff.ledger").entries) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="devices that are full")
@pytest.mark.parametrize(
    "asked",
    [
        ["ledger", "show", "staff.ledger"],
        ["ledger", "event", "staff.ledger"],
        ["claims"],
        ["run", "--list"],
        ["--version"],
        ["release", "--help"],
    ],
)
def test_an_answer_that_cannot_be_printed_ends_in_a_sentence(asked: list[str], folder: Path) -> None:
    program, root = [sys.executable, "-m", "pq.cli", *asked], Path(pq.__file__).parents[1]
    at = folder if asked[0] == "ledger" else root  # where the course is
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=at)
    assert done.returncode == 1 and done.stderr == "Error: the answer cannot be printed: No space left on device\n"


def test_a_page_that_cannot_be_written_takes_no_values_away(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    answer = command(*spending("1", "--report", "page.html", "--quiet"))
    assert answer.exit_code == 3 and len(answer.stdout.split()) == 2
    assert "page.html cannot be written: No space left on device" in answer.output


def test_a_page_that_fails_in_the_making_does_not_look_like_values_that_were_not_released(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> str:
        raise OverflowError("int too large to convert to float")

    monkeypatch.setattr("pq.private.report.release_page", broken)
    answer = command(*spending("1", "--report", "page.html", "--quiet"))
    assert answer.exit_code == 3 and "not all of it was shown: int too large to convert" in answer.output


@pytest.mark.parametrize("raised", [KeyboardInterrupt(), ValueError("no such interval")])
@pytest.mark.parametrize(
    ("where", "asked"),
    [("pq.cli.release.told_release", ["--level", "0.9"]), ("pq.private.report.release_page", ["--report", "p.html"])],
)
def test_who_interrupts_what_is_made_of_values_learns_that_they_are_paid_for(
    where: str, asked: list[str], raised: BaseException, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Intervals and pages may take long, after the charge."""

    def breaks(*_: Any, **__: Any) -> str:
        raise raised

    monkeypatch.setattr(where, breaks)
    answer = command(*spending("1", *asked))
    assert answer.exit_code == 3 and "the release was made" in answer.output
    assert len(pq.Ledger.open("staff.ledger").entries) == 1
    assert len(pq.Ledger.open("staff.ledger").entries) == 1
