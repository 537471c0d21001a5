"""A short part of the fuzzer's inputs; `python tests/private/fuzz.py` tries as many as one likes."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import fuzz
import fuzz_entries
import numpy as np
import pytest
from click.testing import CliRunner

from pq.private.release import Release
from pq.truth.audit.losses import TreeLosses


@pytest.mark.parametrize(("wild", "inputs"), [(0.0, 6_000), (1.0, 600)])
def test_odd_columns_with_random_arguments(wild: float, inputs: int) -> None:
    report = fuzz.Fuzzer(0, wild).run(inputs)
    assert report.inputs == inputs and not report.found, str(report)
    assert report.asked["both engines"] > 0
    if not wild:
        assert report.asked["losses of a tree, in batches"] > inputs // 2 and report.asked["sequences and sessions"] > 0


@pytest.mark.parametrize("entry", fuzz.ENTRIES)
def test_every_entry_is_asked(entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the first input that it fits."""
    always = {entry: dataclasses.replace(fuzz.ENTRIES[entry], tame=1, wild=1)}
    monkeypatch.setattr(fuzz, "ENTRIES", always)
    monkeypatch.setattr(fuzz, "RATES", [np.ones(1)] * 2)
    for seed in itertools.count():
        report = fuzz.Fuzzer(seed, 0.2).run(1)
        assert not report.found, str(report)
        if report.asked[entry]:
            break


def _tells_the_size(self: Release) -> dict[str, Any]:
    return WHOLE(self) | {"n": float(self.values[0])}


WHOLE = Release.to_dict


def test_the_fuzzer_sees_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release whose facts tell a value, one that spends twice epsilon, and one whose values have no order."""
    with monkeypatch.context() as patch:
        patch.setattr(Release, "to_dict", _tells_the_size)
        assert fuzz.Fuzzer(1, 0.0).run(200).found
    with monkeypatch.context() as patch:
        found = TreeLosses.compiled
        patch.setattr(fuzz_entries.TreeLosses, "compiled", lambda self, *columns: 2.0 * found(self, *columns))
        found_out = fuzz.Fuzzer(1, 0.0).run(2_000).found
        assert any("for a record" in text for texts in found_out.values() for text in texts)
    with monkeypatch.context() as patch:
        patch.setattr(fuzz_entries, "numbers_of", lambda result: -np.arange(len(result.values), dtype=float))
        assert fuzz.Fuzzer(1, 0.0).run(200).found


def test_command() -> None:
    result = CliRunner().invoke(fuzz.main, ["--inputs", "80", "--seed", "5", "--wild", "0"])
    assert result.exit_code == 0 and "80 inputs" in result.output, result.output
