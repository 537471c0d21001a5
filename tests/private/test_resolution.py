"""The resolution of data that have none: what PubProx loses or gains by the width of its proxy intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pqlab.experiments import sequential as runs
from pqlab.experiments import sequential_tasks as tasks


def late_gaps(resolution: float, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Mean gap of each of four trials over the last 300 of 1200 days of Synthetic at budget 1, on the same data."""
    task = replace(tasks.TASKS["synthetic"], resolution=resolution)
    with monkeypatch.context() as patched:
        patched.setitem(tasks.TASKS, "synthetic", task)
        cell = runs.Cell("synthetic", "prox", 1.0, 1200, 0, 4, 1, 0)
        ((_, gaps),) = runs.run_cells(cell, ["prox"], [1.0]).items()
    return np.asarray(gaps[-300:].mean(axis=0))


def test_a_hundredth_of_the_guessed_scale_does_as_well_as_a_tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fixed seeds: nothing fails by chance. Intervals of ten guessed scales are noticed, so that the test can fail."""
    assert tasks.TASKS["synthetic"].resolution == 0.01 * tasks.TASKS["synthetic"].scale
    usual = late_gaps(0.01, monkeypatch)
    for resolution in (0.001, 0.1):
        assert abs(np.mean(late_gaps(resolution, monkeypatch) - usual)) < 0.5, resolution
    assert np.mean(late_gaps(10.0, monkeypatch) - usual) > 3.0
