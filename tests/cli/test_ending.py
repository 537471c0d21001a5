"""How `pq release` ends: once it is paid for, with 0 or 3, whatever goes wrong; before that, never with 3."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import pq
import pq.private.release as releases
from interrupts import interrupt_before
from pq import cli
from pq.cli.ending import Payment

RELEASE = ["release", "x.csv", "--column", "x", "--quantiles", "0.5", "--prior", "uniform(0, 10)"]
RELEASE += ["--mechanism", "tree", "--epsilon", "1", "--ledger", "x.ledger"]
OURS = [f"/pq/cli/{name}.py" for name in ("release", "report", "ledger", "files")] + ["/pq/core/budget/"]
STRIDE = 1 if os.environ.get("PQ_LONG") == "1" else 59
WITH_FULL_DISK = """
import sys
from pathlib import Path
from pq.cli import main

def full(self, data):
    raise OSError(28, "No space left on device")

Path.write_bytes = full
main()
"""

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="devices that are full")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with a column and an account of 2."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("x\n1\n2\n3\n", encoding="utf-8")
    pq.Ledger.open("x.ledger", total=2)
    return tmp_path


def code_of(program: list[str], redirections: str) -> int:
    """The exit code of a program that cannot write as it should."""
    shell = f"set -o pipefail; {shlex.join([sys.executable, *program])} {redirections}"
    return subprocess.run(["bash", "-c", shell], stderr=subprocess.DEVNULL, check=False).returncode


def charges() -> int:
    return len(pq.Ledger.open("x.ledger").entries)


@pytest.mark.parametrize("redirections", [">/dev/full 2>&1", "2>&1 | true", "2>/dev/full | true", ">/dev/full 2>&-"])
def test_a_release_that_nothing_can_show_was_paid_for(redirections: str) -> None:
    assert (code_of(["-m", "pq.cli", *RELEASE], redirections), charges()) == (3, 1)


@pytest.mark.parametrize("redirections", [">out 2>/dev/full", ">out 2> >(true)"])
def test_a_page_that_cannot_be_written_when_nobody_can_be_told_was_paid_for(redirections: str) -> None:
    """Who reads no further has closed the pipe long before a release is made."""
    program = ["-c", WITH_FULL_DISK, *RELEASE, "--quiet", "--report", "x.html"]
    assert (code_of(program, redirections), charges()) == (3, 1)
    assert len(Path("out").read_text(encoding="utf-8").split()) == 1


@pytest.mark.parametrize(("wrong", "code"), [(["--arity", "1"], 2), (["--epsilon", "3"], 1)])
@pytest.mark.parametrize("redirections", [">/dev/full 2>&1", "2>&1 | true"])
def test_what_was_refused_and_cannot_be_told_keeps_its_code(wrong: list[str], code: int, redirections: str) -> None:
    assert (code_of(["-m", "pq.cli", *RELEASE, *wrong], redirections), charges()) == (code, 0)


def interrupted(line: int) -> tuple[list[str], int]:
    """The functions of the lines that a release runs, before the last of which an interrupt comes, and its exit
    code. line: how many there are, where it runs so many."""
    Path("x.ledger").unlink()
    pq.Ledger.open("x.ledger", total=2)
    with interrupt_before(line, OURS) as seen:
        done = CliRunner().invoke(cli.main, [*RELEASE, "--report", "x.html"])
    return seen, done.exit_code


def test_an_interrupt_before_any_line_ends_with_3_exactly_if_the_release_is_paid_for() -> None:
    """All lines about the charge are tried, and some of the others."""
    interrupted(-1)  # the first one runs further lines
    seen, code = interrupted(-1)
    assert (code, charges()) == (0, 1)
    charge = max(i for i, function in enumerate(seen, 1) if function == "_enter")
    found = set()
    for line in sorted({*range(1, len(seen), STRIDE), *range(charge - 15, charge + 25)}):
        reached, code = interrupted(line)
        assert len(reached) == line
        found.add((code, charges()))
    assert found == {(1, 0), (3, 1)}


def test_a_second_interrupt_changes_no_answer_to_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """It came while the first one's answer was on its way: the command died, and nobody was told."""
    told, charged = Payment.told, releases._charge

    def asked(self: Payment, error: BaseException) -> click.ClickException:
        signal.raise_signal(signal.SIGINT)
        return told(self, error)

    def interrupted(*arguments: Any) -> None:
        charged(*arguments)
        if charges() == 1:  # not in the rehearsal
            raise KeyboardInterrupt

    monkeypatch.setattr(Payment, "told", asked)
    monkeypatch.setattr(releases, "_charge", interrupted)
    before = signal.getsignal(signal.SIGINT)
    assert CliRunner().invoke(cli.main, RELEASE).exit_code == 3
    assert charges() == 1 and signal.getsignal(signal.SIGINT) is before


def test_what_another_process_of_the_same_number_has_paid_is_not_mine(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in two containers, where each command is process 1: one is interrupted while the other is charged."""

    def others(*arguments: Any) -> None:
        if not charges():
            pq.Ledger.open("x.ledger").spend(0.5, "of somebody else")
        raise KeyboardInterrupt

    monkeypatch.setattr(releases, "_charge", others)
    assert CliRunner().invoke(cli.main, RELEASE).exit_code == 1
    assert charges() == 1
