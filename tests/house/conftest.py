"""Fixtures for tests that look at pages in a browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from browser import Page, chromium, leave_out, missing_programs


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
