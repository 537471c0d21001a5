"""The workshop agrees with itself: one source of dependencies, documented targets, no trace of any machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")


def declared() -> list[Requirement]:
    extras = PROJECT["project"]["optional-dependencies"]
    lines = [PROJECT["project"]["dependencies"], *extras.values(), PROJECT["build-system"]["requires"]]
    named = [Requirement(line) for group in lines for line in group]
    return [requirement for requirement in named if requirement.name != PROJECT["project"]["name"]]  # extras of our own


def locked(text: str = LOCK) -> list[Requirement]:
    """The pins of a lock; refuses what is no exact pin with a sha256 hash, such as an option or an address."""
    pins = []
    for entry in text.replace("\\\n", " ").splitlines():
        requirement, *hashes = re.split(r"\s+--hash=", entry.strip())
        assert hashes, entry
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", one) for one in hashes), entry
        pin = Requirement(requirement)
        assert pin.url is None, entry
        assert [specifier.operator for specifier in pin.specifier] == ["=="], entry
        pins.append(pin)
    return pins


def version_of(pin: Requirement) -> Version:
    return Version(next(iter(pin.specifier)).version)


def test_the_lock_pins_each_dependency_within_its_specifier() -> None:
    pins = locked()
    for requirement in declared():
        versions = [
            version_of(pin) for pin in pins if canonicalize_name(pin.name) == canonicalize_name(requirement.name)
        ]
        assert versions, f"{requirement.name} is not in requirements.lock: run `make lock`"
        assert all(version in requirement.specifier for version in versions), (str(requirement), versions)


def test_the_lock_has_one_version_for_the_oldest_python() -> None:
    for full in ("3.11.0", "3.11.7", "3.13.1"):
        environment = {"python_full_version": full, "python_version": full.rsplit(".", 1)[0], "sys_platform": "linux"}
        names = [
            canonicalize_name(pin.name) for pin in locked() if pin.marker is None or pin.marker.evaluate(environment)
        ]
        assert len(names) == len(set(names))
        assert {canonicalize_name(requirement.name) for requirement in declared()} <= set(names)


@pytest.mark.parametrize(
    "line",
    [
        "numpy>=2 --hash=sha256:" + "0" * 64,
        "numpy==2.0",
        "numpy @ https://example.org/numpy.whl --hash=sha256:" + "0" * 64,
        "--index-url https://example.org/simple",
        "numpy==2.0 --hash=sha256:12",
    ],
)
def test_a_lock_with_a_loose_end_is_noticed(line: str) -> None:
    with pytest.raises(AssertionError):
        locked(line)


def test_this_environment_is_the_locked_one() -> None:
    from importlib.metadata import version

    for pin in locked():
        needed = pin.marker is None or pin.marker.evaluate()
        if needed and canonicalize_name(pin.name) in {
            canonicalize_name(requirement.name) for requirement in declared()
        }:
            assert Version(version(pin.name)) == version_of(pin), f"{pin.name}: run `make setup`"


def test_the_conda_environment_installs_the_lock() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    python, pip, packages = environment["dependencies"]
    name, wanted = python.split("=")
    assert (environment["name"], name, pip) == (PROJECT["project"]["name"], "python", "pip")
    assert Version(wanted) in SpecifierSet(PROJECT["project"]["requires-python"])
    assert packages == {"pip": ["-r requirements.lock"]}


def tracked_files() -> list[Path]:
    """What git keeps; in an unpacked source distribution all that is there, less what running leaves behind."""
    if not (ROOT / ".git").exists():
        left = {"__pycache__", ".pytest_cache", ".hypothesis", "runs"}
        return [path for path in sorted(ROOT.rglob("*")) if path.is_file() and not left & set(path.parts)]
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return [ROOT / name for name in listing.split("\0") if name]


# Written in halves, so that this file does not hold what it looks for.
TRACES = [
    "py" + "pi.org",
    "files.python" + "hosted",
    *("/" + name + "/" for name in ("work", "root", "home", "tmp" + "/pq")),
]


def traces(text: str) -> list[str]:
    return [trace for trace in TRACES if re.search(r"(?<![\w.])" + re.escape(trace), text)]


def test_no_file_names_a_registry_host_or_a_machine_path() -> None:
    found = {}
    for path in tracked_files():
        if path.is_file():
            found[str(path.relative_to(ROOT))] = traces(path.read_bytes().decode("utf-8", errors="ignore"))
    assert {name: hits for name, hits in found.items() if hits} == {}


def test_a_trace_is_noticed() -> None:
    assert traces("see /" + "home/ann/pq and https://py" + "pi.org/simple") == [TRACES[0], TRACES[4]]
    assert traces("a framework/root/cause, and pypi as a word") == []


def make(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")} | variables
    return subprocess.run(
        [shutil.which("make") or "make", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


def test_make_lists_every_target() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = " ".join(re.findall(r"^\.PHONY: (.*)$", text, flags=re.MULTILINE)).split()
    shown = make("help").stdout
    assert re.findall(r"^  make (\S+) +\S", shown, flags=re.MULTILINE) == re.findall(
        r"^([a-z-]+):(?! export)", text, flags=re.MULTILINE
    )
    assert set(re.findall(r"^  make (\S+)", shown, flags=re.MULTILINE)) == set(phony)
    assert {"run", "test", "checks", "notebooks", "nbval", "lab", "lock", "bench", "clean"} <= set(phony)
    assert make().stdout == shown


def test_an_old_python_is_refused_with_a_clear_word(tmp_path: Path) -> None:
    old = tmp_path / "python3.9"
    old.write_text(
        f'#!/bin/sh\nexec {sys.executable} -c "import sys; sys.version_info = (3, 9); $2"\n', encoding="utf-8"
    )
    old.chmod(0o755)
    answer = make("setup", f"PYTHON={old}", f"VENV={tmp_path / 'venv'}")
    assert answer.returncode != 0
    assert "needs Python 3.11 or newer" in answer.stderr
    assert not (tmp_path / "venv").exists()
    answer = make("setup", f"PYTHON={tmp_path / 'absent'}", f"VENV={tmp_path / 'venv'}")
    assert answer.returncode != 0
    assert "PYTHON=" in answer.stderr


def test_what_the_system_lacks_is_said_aloud(tmp_path: Path) -> None:
    """Without root, apt, a browser or a Java: a sentence on stderr for each, and no failure."""
    for name in ("id", "sh", "awk"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    answer = make("system", PATH=str(tmp_path))
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr.count("LEFT OUT") == 2 and "NO BROWSER" in answer.stderr and "NO JAVA" in answer.stderr


def test_the_long_tests_are_all_of_them() -> None:
    plan = make("--dry-run", "test-long", "VENV=" + str(Path(sys.prefix))).stdout
    for words in ("HYPOTHESIS_PROFILE=thorough", "PQ_LONG=1", "PQ_DIGITS=all", "fuzz.py --inputs 1000000", "--lesser"):
        assert words in plan


def test_setup_installs_hashed_pins_then_the_package_alone() -> None:
    plan = make("--dry-run", "setup", "VENV=build/absent").stdout
    first, second = (line for line in plan.splitlines() if "pip install" in line)
    assert "--require-hashes -r requirements.lock" in first
    assert "--no-deps --no-build-isolation --editable ." in second


def test_ci_runs_the_tests() -> None:
    script = ROOT / ".ci" / "run"
    text = script.read_text(encoding="utf-8")
    assert os.access(script, os.X_OK)
    assert text.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in text
    assert text.rstrip().endswith("make system\nmake test")
    subprocess.run([shutil.which("bash") or "bash", "-n", script], check=True)


def test_make_test_stops_at_the_first_failure_and_ends_with_pytest() -> None:
    plan = make("--dry-run", "test", "VENV=" + str(Path(sys.prefix))).stdout
    steps = [line.split("/bin/")[-1] for line in plan.splitlines() if "/bin/" in line and "install" not in line]
    order = [
        "ruff check",
        "ruff format --check",
        "mypy",
        "pytest -n 2 tests pq pqlab",
        "pytest -n 2 proofs_checks",
        "--nbval",
    ]
    places = [next(index for index, step in enumerate(steps) if word in step) for word in order]
    assert places == sorted(places)
    assert "pytest" in steps[-1]
    assert not re.search(
        r"\|\| *true|; *true|^\t-", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
