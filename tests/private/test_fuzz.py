"""A short part of the fuzzer's inputs; `python tests/private/fuzz.py` tries as many as one likes."""

from __future__ import annotations

import fuzz
import pytest
from click.testing import CliRunner

from pq.private.release import Release


@pytest.mark.parametrize(("wild", "count"), [(0.0, 1_200), (1.0, 240)])
def test_odd_columns_with_random_arguments(wild: float, count: int) -> None:
    report = fuzz.Fuzzer(0, wild).run(count)
    assert report.inputs == count and not report.found, str(report)
    assert report.asked["sequences"] > 0 and report.asked["both paths"] > 0 and report.asked["simulations"] > 0


def test_the_fuzzer_sees_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release whose facts tell the number of records is found."""
    whole = Release.to_dict
    monkeypatch.setattr(Release, "to_dict", lambda self: whole(self) | {"n": float(self.values[0])})
    assert fuzz.Fuzzer(1, 0.0).run(80).found


def test_command() -> None:
    result = CliRunner().invoke(fuzz.main, ["--count", "80", "--seed", "5", "--wild", "0"])
    assert result.exit_code == 0 and "80 inputs" in result.output, result.output
