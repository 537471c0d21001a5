"""Every path that a command is given: 1 where what is there cannot be read or written, 2 where the call is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pq

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="rights that root can give up")
COLUMN, LEDGER = ["--column", "x"], ["--ledger", "x.ledger"]
MEDIAN = ["--quantiles", "0.5", "--epsilon", "1", "--prior", "uniform(0, 9)"]
BY = [*COLUMN, *MEDIAN, "--by", "k"]
CHILD = """
import json, sys
from click.testing import CliRunner
from pq.cli import main

try:
    open("closed.csv").close()
except PermissionError:
    told = [CliRunner().invoke(main, call) for call in json.loads(sys.argv[1])]
    print(json.dumps([[one.exit_code, one.stderr, repr(one.exception)] for one in told]))
"""
WITHOUT_OVERRIDES = """
import ctypes, os, sys

for right in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH: with them root may read what nobody may
    ctypes.CDLL(None).prctl(24, right, 0, 0, 0)  # PR_CAPBSET_DROP: what is executed has them no more
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""

READS = {  # a command for each argument that names what is read, and what ends the name
    "release": ("csv", lambda path: ["release", path, *COLUMN, *MEDIAN, *LEDGER]),
    "release, Parquet": ("parquet", lambda path: ["release", path, *COLUMN, *MEDIAN, *LEDGER]),
    "release --keys": ("csv", lambda path: ["release", "x.csv", *BY, "--keys", path, *LEDGER]),
    "release --ledger": ("ledger", lambda path: ["release", "x.csv", *COLUMN, *MEDIAN, "--ledger", path]),
    "inspect": ("csv", lambda path: ["inspect", path, *COLUMN]),
    "inspect, Parquet": ("parquet", lambda path: ["inspect", path, *COLUMN]),
    "ledger show": ("ledger", lambda path: ["ledger", "show", path]),
    "ledger event": ("ledger", lambda path: ["ledger", "event", path]),
}
WRITES = {  # likewise of what is written
    "release --report": ("html", lambda path: ["release", "x.csv", *COLUMN, *MEDIAN, *LEDGER, "--report", path]),
    "forecast --plot": ("png", lambda path: ["forecast", *MEDIAN, "--size", "9", "--trials", "2", "--plot", path]),
    "audit --figure": ("png", lambda path: ["audit", "--quantiles", "0.5", "--pairs", "2", "--figure", path]),
    "audit --full": ("csv", lambda path: ["audit", "--pairs", "1", "--full", path]),
    "ledger init": ("new", lambda path: ["ledger", "init", path, "--total", "1"]),
}  # fmt: skip
THERE = {"closed": 1, "shut/file": 1, "socket": 1, "folder": 2, "absent": 2, "broken": 2, "file.csv/below": 2}
ODD = {("release --keys", "socket"): 2}  # a name that no list of keys may have


def codes(folder: Path, called: list[list[str]]) -> list[tuple[int, str]]:
    """The exit code and the words of each of some calls, by somebody who may not read everything."""
    program = [sys.executable, "-c", WITHOUT_OVERRIDES, "-c", CHILD, json.dumps(called)]
    done = subprocess.run(program, cwd=folder, capture_output=True, text=True, check=True)
    if not done.stdout:
        pytest.skip("whoever runs this may read everything")
    told = json.loads(done.stdout)
    assert {error.partition("(")[0] for _, _, error in told} <= {"SystemExit", "None"}
    return [(code, words) for code, words, _ in told]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a column, an account, and all kinds of what cannot be read."""
    import socket

    (tmp_path / "x.csv").write_text("k,x\na,1\n", encoding="utf-8")
    pq.Ledger.open(tmp_path / "x.ledger", total=5)
    (tmp_path / "shut").mkdir()
    for end in ("csv", "parquet", "ledger", "html", "png", "new"):
        (tmp_path / f"folder.{end}").mkdir()
        (tmp_path / f"broken.{end}").symlink_to(tmp_path / "nothing")
        (tmp_path / "file.csv").write_text("x\n", encoding="utf-8")
        for name in ("closed", "shut/file"):
            (tmp_path / f"{name}.{end}").write_text("k,x\na,1\n", encoding="utf-8")
            (tmp_path / f"{name}.{end}").chmod(0)
        with socket.socket(socket.AF_UNIX) as one:
            before = os.getcwd()
            os.chdir(tmp_path)  # names of sockets are short
            one.bind(f"socket.{end}")
            os.chdir(before)
    (tmp_path / "shut").chmod(0)
    return tmp_path


def test_a_file_that_cannot_be_read_ends_with_1_and_a_wrong_call_with_2(folder: Path) -> None:
    wanted = {(name, place): code for name in READS for place, code in THERE.items()} | ODD
    told = codes(folder, [READS[name][1](f"{place}.{READS[name][0]}") for name, place in wanted])
    found = {case: code for case, (code, _) in zip(wanted, told, strict=True)}
    assert found == wanted
    assert all("Error: " in words and "Traceback" not in words for _, words in told)
    assert pq.Ledger.open(folder / "x.ledger").spent == 0


def test_a_file_that_cannot_be_written_ends_with_1(folder: Path) -> None:
    wanted = {(name, place): THERE[place] for name in WRITES for place in ("closed", "shut/file", "folder")}
    wanted[("ledger init", "closed")] = 2  # it is there already
    told = codes(folder, [WRITES[name][1](f"{place}.{WRITES[name][0]}") for name, place in wanted])
    assert {case: code for case, (code, _) in zip(wanted, told, strict=True)} == wanted
    assert pq.Ledger.open(folder / "x.ledger").spent == 0
