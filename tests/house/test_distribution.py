"""What people install and unpack: the wheel releases in an empty folder, the sources hold what their tests need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from from_wheel import bare, run

from test_workshop import ROOT, tracked_files

COLUMN = "age\n" + "\n".join(str(number) for number in range(1, 1000))
RELEASE = ["release", "people.csv", "--column", "age", "--quantiles", "0.5", "--epsilon", "1e5", "--grid", "1",
           "--prior", "uniform(0, 1000)"]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text(COLUMN, encoding="utf-8")
    return tmp_path


def test_a_wheel_releases_in_an_empty_folder(installed: Path, folder: Path) -> None:
    """At that epsilon the median is certain."""
    before = sorted(installed.rglob("*"))
    answer = run(installed, folder, *RELEASE, "--json", environment=bare(folder))
    assert (answer.returncode, answer.stderr) == (0, "")
    (value,) = json.loads(answer.stdout)["values"]
    assert abs(value - 500) <= 1
    assert [path.name for path in folder.iterdir()] == ["people.csv"]
    assert sorted(installed.rglob("*")) == before


def test_a_wheel_writes_a_page(installed: Path, folder: Path) -> None:
    answer = run(installed, folder, *RELEASE, "--report", "page.html", environment=bare(folder))
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "Quantiles of age" in (folder / "page.html").read_text(encoding="utf-8")


def test_the_first_release_waits_for_no_compiler(installed: Path, folder: Path) -> None:
    code = f"""
import sys
from pq.cli import main
try:
    main({RELEASE!r})
except SystemExit:
    pass
import pq
assert str(pq.__file__).startswith({str(installed)!r}), pq.__file__
print(sorted(name for name in ("numba", "llvmlite", "matplotlib", "pqlab") if name in sys.modules))
"""
    answer = run(installed, folder, code=code, environment=bare(folder))
    assert answer.stdout.splitlines()[-1] == "[]", answer.stdout + answer.stderr


def test_commands_of_a_checkout_say_that_they_need_one(installed: Path, folder: Path) -> None:
    shown = run(installed, folder, "--help", environment=bare(folder)).stdout
    assert "  release  " in shown
    for name in ("claims", "reproduce", "run"):
        assert f"  {name}  " not in shown
        answer = run(installed, folder, name, environment=bare(folder))
        assert answer.returncode == 2
        assert f"{name} works on a checkout of the project only" in answer.stderr


def test_the_wheel_is_the_package_and_its_tables(built: Path) -> None:
    (wheel,) = built.glob("pq_quantiles-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == {name for name in names() if name.startswith("pq/")}


def test_the_sources_are_all_that_is_tracked(built: Path) -> None:
    (archive,) = built.glob("pq_quantiles-*.tar.gz")
    with tarfile.open(archive) as opened:
        packed = {name.split("/", 1)[1] for name in opened.getnames()}
    assert packed - names() <= {"PKG-INFO"}
    assert names() <= packed


def test_the_sources_pass_their_own_tests(built: Path, tmp_path: Path) -> None:
    """Those that read files of the repository, without it and its git."""
    (archive,) = built.glob("pq_quantiles-*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    tests = ["tests/house/test_workshop.py", "tests/core/test_plan.py", "pq/core/exact.py"]
    chosen = ["-k", "not environment and not setup and not old_python and not make_test"]
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *tests, *chosen],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(folder)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout


def names() -> set[str]:
    return {path.relative_to(ROOT).as_posix() for path in tracked_files() if path.is_file()}
