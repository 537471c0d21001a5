"""What holds for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from interrupts import held


@pytest.fixture(autouse=True)
def _no_lock_is_left() -> Iterator[None]:
    """Fails whoever keeps a lock of the whole process, not another test that would wait for it for ever."""
    yield
    assert not held()
