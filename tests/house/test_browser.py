"""The browser's eyes are open: what is wrong with a page is seen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from browser import Page
from test_workshop import ROOT

GOOD = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Good</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<style>a:focus-visible {{ outline: 2px solid }}</style>{head}</head>
<body><main><h1>Good</h1><p><a href="#x">A link</a></p>{body}</main></body></html>"""
FAULTS = {
    "console": ("", "<script>console.error('broken')</script>"),
    "script": ("", "<script>nothing.there()</script>"),
    "file": ("", '<img alt="none" src="absent.png">'),
    "host": ('<link rel="stylesheet" href="http://host.invalid/font.css">', ""),
    "contrast": ("", '<p style="color: #aaa; background: #fff">Pale</p>'),
    "alternative": ("", '<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">'),
    "width": ("", '<div style="width: 500px">wide</div>'),
    "outline": ("<style>a:focus-visible { outline: none !important }</style>", ""),
}


def complaints(page: Page, path: Path) -> set[str]:
    page.open(path)
    found = set()
    found |= {"requests"} if page.requests() else set()
    found |= {"console"} if page.console_errors() else set()
    found |= {line.split(":")[0] for line in page.axe()}
    found |= set() if page.tab()["outline"] else {"outline"}
    page.resize(360)
    return found | ({"overflow"} if page.overflow() > 0 else set())


def test_a_good_page_passes(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "good.html"
    path.write_text(GOOD.format(head="", body=""), encoding="utf-8")
    assert complaints(page, path) == set()


@pytest.mark.parametrize(
    ("fault", "seen"),
    [("console", {"console"}), ("script", {"console"}), ("file", {"console"}), ("host", {"console", "requests"}),
     ("contrast", {"color-contrast"}), ("alternative", {"image-alt"}), ("width", {"overflow"}),
     ("outline", {"outline"})],
)  # fmt: skip
def test_a_fault_is_seen(fault: str, seen: set[str], page: Page, tmp_path: Path) -> None:
    path = tmp_path / "fault.html"
    head, body = FAULTS[fault]
    path.write_text(GOOD.format(head=head, body=body), encoding="utf-8")
    assert complaints(page, path) == seen


def test_dark_and_paper_are_shown(page: Page, tmp_path: Path) -> None:
    style = """<style>body { color: rgb(1, 1, 1) } @media (prefers-color-scheme: dark) { body { color: rgb(2, 2, 2) } }
    @media print { body { color: rgb(3, 3, 3) } }</style>"""
    path = tmp_path / "colours.html"
    path.write_text(GOOD.format(head=style, body=""), encoding="utf-8")
    page.open(path)
    assert page.style("body", "color") == "rgb(1, 1, 1)"
    page.dark()
    assert page.style("body", "color") == "rgb(2, 2, 2)"
    page.paper()
    assert page.style("body", "color") == "rgb(3, 3, 3)"
    assert page.pdf().startswith(b"%PDF")


def look(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """The same tests where the path holds no browser."""
    environment = (
        {name: value for name, value in os.environ.items() if name != "CI"} | {"PATH": str(folder)} | variables
    )
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", f"{__file__}::{NAME}"]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


NAME = test_a_good_page_passes.__name__


def test_without_a_browser_it_is_said_aloud_and_fails_in_ci(tmp_path: Path) -> None:
    answer = look(tmp_path)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "LEFT OUT" in answer.stdout and "1 test was left out" in answer.stdout and "make system" in answer.stdout
    answer = look(tmp_path, CI="true")
    assert answer.returncode == 1
    assert "LEFT OUT" in answer.stdout
