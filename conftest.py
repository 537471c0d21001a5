"""Settings that all tests share."""

from __future__ import annotations

import os
from typing import Any

import hypothesis
import matplotlib

matplotlib.use("Agg")  # not through MPLBACKEND: the kernels that tests start would inherit that and show no figure

if os.environ.get("PQ_SHAKE"):  # see there what else to set
    from pqlab.pages.shaken import install

    install(int(os.environ["PQ_SHAKE"]))

hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, max_examples=100, print_blob=True)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=2000, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What this machine could not test is said at the end, aloud."""
    reasons = [str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", [])]
    left = sorted(reason.partition("LEFT OUT: ")[2] for reason in reasons if "LEFT OUT: " in reason)
    for reason in dict.fromkeys(left):
        count = left.count(reason)
        tests = "1 test was" if count == 1 else f"{count} tests were"
        terminalreporter.write_sep("!", f"{tests} left out: {reason}", red=True, bold=True)
