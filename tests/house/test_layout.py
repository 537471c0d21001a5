"""The house keeps its rules: short modules and functions, one name for one thing, one dialect, rings with a place for
every module, declared dependencies, and a README that shows the tree as it is."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from test_workshop import ROOT, tracked_files

LONGEST_MODULE, LONGEST_FUNCTION = 350, 40
PACKAGES = ("pq", "pqlab", "benchmarks")
# What breaks a rule today and is to be mended. The list may only shrink: an entry that breaks nothing fails too.
STILL_TO_DO: set[str] = set()

EXPOSED = {"Cell", "Source", "cells", "run", "run_cell", "sample"}  # by several experiments

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def sources(*packages: str) -> dict[str, str]:
    """The text of each tracked module, by its path."""
    paths = {path.relative_to(ROOT).as_posix(): path for path in tracked_files()}
    chosen = [name for name in sorted(paths) if name.endswith(".py") and name.split("/")[0] in packages]
    return {name: paths[name].read_text(encoding="utf-8") for name in chosen if paths[name].exists()}


def long_modules(texts: dict[str, str]) -> Iterator[str]:
    for name, text in texts.items():
        if len(text.splitlines()) > LONGEST_MODULE:
            yield name


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> int:
    """Lines of a function that are neither empty, nor a comment alone, nor a docstring or a signature."""
    code: set[int] = set()
    for inner in ast.walk(function):
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            body = inner.body[ast.get_docstring(inner) is not None :] or inner.body
            code -= set(range(inner.lineno, body[0].lineno))
            code |= set(range(body[0].lineno, (body[-1].end_lineno or 0) + 1))
    return sum(bool(lines[i - 1].strip()) and not lines[i - 1].strip().startswith("#") for i in code)


def long_functions(texts: dict[str, str]) -> Iterator[str]:
    for name, text in texts.items():
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and code_lines(node, lines) > LONGEST_FUNCTION:
                yield f"{name}::{node.name}"


def is_command(node: Definition) -> bool:
    return any(re.search(r"\.(command|group)\(", ast.unparse(one)) for one in node.decorator_list)


def shared_names(texts: dict[str, str]) -> Iterator[str]:
    """Classes and public functions of modules whose name another one has; commands and what each experiment exposes
    are meant to be alike, and methods of a protocol too."""
    places = defaultdict(list)
    for name, text in texts.items():
        for node in ast.parse(text).body:
            if isinstance(node, Definition) and not is_command(node):
                exposed = name.startswith("pqlab/experiments/") and node.name in EXPOSED
                private = node.name.startswith("_") and not isinstance(node, ast.ClassDef)
                if not (private or exposed):
                    places[node.name].append(name)
    for name, found in places.items():
        if len(found) > 1:
            yield from (f"{place}::{name}" for place in found)


HEADING = re.compile(r"^ *(Args|Arguments|Parameters|Returns|Raises|Yields|Attributes|Notes?|Examples?):? *$", re.M)


def other_dialects(texts: dict[str, str]) -> Iterator[str]:
    """Docstrings with headings of sections, or with double backticks."""
    for name, text in texts.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, Definition | ast.Module):
                docstring = ast.get_docstring(node) or ""
                if HEADING.search(docstring) or "``" in docstring:
                    yield f"{name}::docstrings"


def shared_files(paths: Iterable[str]) -> Iterator[str]:
    """Files of tests, imported by their bare names, of which one would stand for the other. pytest finds fixtures by
    their folder."""
    places = defaultdict(list)
    for path in paths:
        top, name = path.split("/")[0], path.split("/")[-1]
        if name.endswith(".py") and top in ("tests", "proofs_checks") and "test" in name and name != "conftest.py":
            places[name].append(path)
    for found in places.values():
        if len(found) > 1:
            yield from found


def unexpected(found: Iterable[str]) -> list[str]:
    return sorted(set(found) - STILL_TO_DO)


def test_modules_are_short() -> None:
    assert unexpected(long_modules(sources(*PACKAGES))) == []


def test_functions_are_short() -> None:
    assert unexpected(long_functions(sources(*PACKAGES))) == []


def test_no_name_is_used_twice() -> None:
    assert unexpected(shared_names(sources("pq", "pqlab"))) == []


def test_no_file_of_tests_stands_for_another() -> None:
    assert [*shared_files(sources("tests", "proofs_checks"))] == []
    assert [*shared_files(["tests/a/test_b.py", "tests/c/test_b.py", "pq/test_b.py"])] == [
        "tests/a/test_b.py",
        "tests/c/test_b.py",
    ]


def test_docstrings_speak_one_dialect() -> None:
    assert unexpected(other_dialects(sources("pq"))) == []


def test_what_is_still_to_do_only_shrinks() -> None:
    texts = sources(*PACKAGES)
    own = sources("pq", "pqlab")
    found = {*long_modules(texts), *long_functions(texts), *shared_names(own), *other_dialects(sources("pq"))}
    assert sorted(STILL_TO_DO - found) == []


def test_each_rule_can_be_broken() -> None:
    long = "def f():\n" + '    """' + "One.\n" * 50 + '"""\n' + "    # why\n\n" * 50
    assert not [*long_functions({"a.py": long + "    x = 1\n" * 40})]
    assert [*long_functions({"a.py": long + "    x = 1\n" * 41})] == ["a.py::f"]
    assert [*long_modules({"a.py": "x = 1\n" * 351, "b.py": "x = 1\n" * 350})] == ["a.py"]
    texts = {
        "pq/a.py": "def one(): ...\ndef _two(): ...\nclass Three: ...",
        "pq/b.py": "def one(): ...\ndef _two(): ...",
        "pqlab/experiments/c.py": "def run(): ...\nclass Three: ...",
        "pqlab/experiments/d.py": "def run(): ...",
    }
    assert [*shared_names(texts)] == ["pq/a.py::one", "pq/b.py::one", "pq/a.py::Three", "pqlab/experiments/c.py::Three"]
    headed = '"""One.\n\nRaises:\n    ValueError: no.\n"""\n'
    spoken = {"a.py": headed, "b.py": '"""See ``c``."""', "c.py": '"""Raises `ValueError`: no."""'}
    assert [*other_dialects(spoken)] == ["a.py::docstrings", "b.py::docstrings"]


# --- what an import brings ----------------------------------------------------------------------------------------

# Packages that take long to import and that a release may do without until it needs them.
HEAVY = ("duckdb", "llvmlite", "matplotlib", "narwhals", "numba", "pandas", "polars", "pqlab", "pyarrow", "scipy.fft",
         "scipy.linalg", "scipy.optimize", "scipy.special", "scipy.stats", "tqdm")  # fmt: skip


def test_an_import_brings_little() -> None:
    code = f"import sys, pq; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert not done.stdout.split()


# --- the tree ------------------------------------------------------------------------------------------------------


def tree_of(readme: str) -> set[str]:
    """The folders that README's picture of the tree shows, from lines such as `  core/   sees no data`."""
    (picture,) = re.findall(r"```text\n(pq/.*?)```", readme, flags=re.DOTALL)
    found: list[str] = []
    above: list[str] = []
    for line in picture.splitlines():
        match = re.match(r"( *)((?:[\w.]+/ ?)+)", line)
        if match:
            above[len(match[1]) // 2 :] = []
            names = match[2].split()
            found += ["/".join([*(part.rstrip("/") for part in above), name.rstrip("/")]) for name in names]
            above.append(names[-1])
    return set(found)


def folders() -> set[str]:
    """The tracked folders: of the packages all that hold modules, of others the first level."""
    found = set()
    for path in tracked_files():
        parts = path.relative_to(ROOT).parts[:-1]
        if parts and not parts[0].startswith("."):
            found.add(parts[0])
            if parts[0] in ("pq", "pqlab") and path.suffix == ".py":
                found |= {"/".join(parts[: depth + 1]) for depth in range(len(parts))}
    return found


def test_readme_shows_the_tree() -> None:
    assert tree_of((ROOT / "README.md").read_text(encoding="utf-8")) == folders()


def test_a_folder_that_readme_lacks_is_noticed() -> None:
    picture = "```text\npq/      small\n  core/  no data\n    budget/ losses/   two\n  show/\nbook/\n```"
    assert tree_of(picture) == {"pq", "pq/core", "pq/core/budget", "pq/core/losses", "pq/show", "book"}


# --- the rings and the dependencies --------------------------------------------------------------------------------


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The packages and their settings, to be changed."""
    for name in ("pq", "pqlab", "proofs_checks"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "tables"))
    for name in ("pyproject.toml", "conftest.py"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def tool(folder: Path, name: str, *arguments: str) -> tuple[int, str]:
    program = Path(sys.executable).with_name(name)
    environment = os.environ | {"PYTHONPATH": str(folder), "COLUMNS": "200"}
    done = subprocess.run(
        [program, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def append(path: Path, line: str) -> None:
    text = path.read_text(encoding="utf-8") if path.exists() else '"""A module."""\n'
    path.write_text(text + line + "\n", encoding="utf-8")


RINGS = {
    "a module of the core without a layer": ("pq/core/stranger.py", "", "pq.core.stranger"),
    "a folder of the package without a ring": ("pq/stranger.py", "", "pq.stranger"),
    "a core that sees data": ("pq/core/grid.py", "import pq.private.release", "pq.core.grid -> pq.private.release"),
    "a package that knows its workshop": ("pq/show/plots.py", "import pqlab.data", "pq.show.plots -> pqlab.data"),
    "a door that knows mechanisms": (
        "pq/private/columns/door.py",
        "import pq.private.mechanisms.tree",
        "pq.private.columns.door -> pq.private.mechanisms.tree",
    ),
}


def test_the_rings_are_closed(copied: Path) -> None:
    code, text = tool(copied, "lint-imports", "--no-cache")
    assert code == 0, text
    assert "0 broken" in text


@pytest.mark.parametrize("case", RINGS)
def test_what_breaks_the_rings_is_refused(case: str, copied: Path) -> None:
    place, line, complaint = RINGS[case]
    append(copied / place, line)
    code, text = tool(copied, "lint-imports", "--no-cache")
    assert code == 1
    assert complaint in text or complaint.rsplit(".", 1)[1] in text


def test_a_dependency_that_is_not_declared_is_refused(copied: Path) -> None:
    code, text = tool(copied, "deptry", ".")
    assert code == 0, text
    append(copied / "pq" / "core" / "grid.py", "import yaml, no_such_package")
    code, text = tool(copied, "deptry", ".")
    assert code == 1
    assert "'yaml'" in text and "'no_such_package'" in text
