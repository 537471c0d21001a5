"""Fixtures for tests that look at pages in a browser, and for those of what people install."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import Page, chromium, leave_out, missing_programs
from test_workshop import ROOT


@pytest.fixture(scope="session")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """One browser for all tests of a worker."""
    missing = missing_programs()
    if missing:
        leave_out(f"no {' and no '.join(missing)} here to look at pages with; `make system` installs them")
    with chromium(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def page(window: Page) -> Page:
    """The browser's window; each test opens what it looks at."""
    return window


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both distributions, built in this environment, so that nothing is fetched."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT, check=True, timeout=300)
    return folder


@pytest.fixture(scope="session")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel, and nothing else, is installed."""
    folder = tmp_path_factory.mktemp("installed")
    (wheel,) = built.glob("pq_quantiles-*.whl")
    options = ["--quiet", "--no-index", "--no-deps", "--disable-pip-version-check", "--target", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(wheel)], check=True, timeout=300)
    return folder
