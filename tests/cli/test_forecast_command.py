"""`pq forecast`: the same numbers as `pq.forecast`, beside other budgets and priors, as text, JSON and a picture."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from matplotlib.figure import Figure

import pq
from pq import cli
from pq.cli import forecast as module
from pq.core.priors.widen import widened
from pq.show.prospects import BAR, budget_curve, quantile_errors, text_bars

QUARTILES = ["--quantiles", "0.25,0.5,0.75", "--trials", "40", "--seed", "4"]
BELL = ["--prior", "normal(40, 10)", "--size", "1000"]


def pq_command(*arguments: str) -> Result:
    return CliRunner().invoke(cli.main, ["forecast", *arguments])


def facts(*arguments: str) -> dict[str, Any]:
    answer = pq_command(*QUARTILES, *BELL, "--json", *arguments)
    assert answer.exit_code == 0, answer.output
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def test_the_command_says_what_the_function_does() -> None:
    found = facts("--epsilon", "1")
    same = pq.forecast([0.25, 0.5, 0.75], epsilon=1, priors=pq.Normal(40, 10), size_guess=1000, trials=40, rng=4)
    assert {name: found[name] for name in same.to_dict()} == same.to_dict()
    half, twice, wide, narrow = found["variations"]
    assert (half["epsilon"], twice["epsilon"]) == (0.5, 2.0)
    assert half["max_gap"] > found["max_gap"] > twice["max_gap"]
    other = pq.forecast([0.25, 0.5, 0.75], epsilon=0.5, priors=pq.Normal(40, 10), size_guess=1000, trials=40, rng=4)
    assert half["max_gap"] == other.max_gap
    assert wide["what"] == module.WIDER and narrow["what"] == module.NARROWER


def test_a_wide_prior_costs_where_the_budget_is_small() -> None:
    """The tree at a tenth: where records are few, a prior twice as wide finds them later."""
    options = [
        "--epsilon",
        "0.1",
        "--mechanism",
        "tree",
        "--trials",
        "300",
        "--prior",
        "uniform(0, 80)",
        "--size",
        "100",
    ]
    found = json.loads(pq_command(*QUARTILES[:2], "--seed", "4", "--json", *options).stdout)
    wide = found["variations"][2]
    assert wide["max_gap"] > found["max_gap"] + 3 * found["max_gap_error"]


def test_a_wanted_error_gives_its_epsilon() -> None:
    found = facts("--max-gap", "6")
    epsilon = pq.epsilon_for([0.25, 0.5, 0.75], max_gap=6, priors=pq.Normal(40, 10), size_guess=1000, trials=40, rng=4)
    assert found["epsilon"] == epsilon and found["max_gap"] <= 6
    quiet = pq_command(*QUARTILES, *BELL, "--max-gap", "6", "--quiet")
    assert quiet.stdout == f"{epsilon:g}\n"
    assert float(pq_command(*QUARTILES, *BELL, "--epsilon", "1", "--quiet").stdout) > 0


@pytest.mark.parametrize(
    ("epsilon", "there"),
    [("1e300", module.HALF), ("6e299", module.HALF), ("1e-300", module.TWICE), ("5e-324", module.TWICE)],
)
def test_budgets_at_the_ends_are_compared_with_those_that_there_are(epsilon: str, there: str, tmp_path: Path) -> None:
    picture = tmp_path / "out.svg"
    found = facts("--epsilon", epsilon, "--plot", str(picture))
    shares = [other["what"] for other in found["variations"] if other["what"] in (module.HALF, module.TWICE)]
    assert there in shares and len(shares) == 1 + (epsilon == "1e-300") and picture.exists()
    assert [other["epsilon"] for other in found["variations"][-2:]] == [found["epsilon"]] * 2


def test_the_text_has_steps_units_and_variations() -> None:
    prior = [
        "--prior",
        "normal(2026-01-01, P30D)",
        "--size",
        "1000",
        "--type",
        "date",
        "--grid",
        "P1D",
        "--mechanism",
        "margin",
    ]
    answer = pq_command("--quantiles", "0.1,0.5", "--epsilon", "1", "--trials", "20", *prior)
    assert answer.exit_code == 0, answer.output
    for part in (
        "margin",
        "level 1 of the tree",
        "half the epsilon",
        "twice",
        "as wide",
        "12:00:00",
        "as the prior says",
    ):
        assert part in answer.stdout
    assert answer.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--epsilon", "1", "--max-gap", "3"], "either --epsilon or --max-gap"),
        ([], "either --epsilon or --max-gap"),
        (["--epsilon", "-1"], "epsilon"),
        (["--max-gap", "-1"], "max_gap"),
        (["--epsilon", "1", "--prior", "normal(0, 1)"], "priors"),
        (["--epsilon", "1", "--grid", "-1"], "grid"),
        (["--epsilon", "1", "--plot", "out.svgx"], "plot"),
    ],
)
def test_a_wrong_call_is_refused(arguments: list[str], complaint: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    answer = pq_command(*QUARTILES, *BELL, *arguments)
    assert answer.exit_code == 2
    assert complaint in answer.stderr and list(tmp_path.iterdir()) == []
    assert "give --size" in pq_command(*QUARTILES, *BELL[:2], "--epsilon", "1").stderr


def test_a_picture_is_written_or_said_to_need_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.svg"
    assert pq_command(*QUARTILES, *BELL, "--epsilon", "1", "--plot", str(path)).exit_code == 0
    assert path.read_text(encoding="utf-8").startswith("<?xml")
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    answer = pq_command(*QUARTILES, *BELL, "--epsilon", "1", "--plot", str(tmp_path / "other.svg"))
    assert answer.exit_code == 2 and "pq-quantiles[plots]" in answer.stderr
    assert not (tmp_path / "other.svg").exists()


def test_pictures_draw_the_numbers_that_they_are_given() -> None:
    left, right = Figure().subplots(1, 2)
    assert quantile_errors(left, [0.25, 0.5], [2.0, 3.0]).tolist() == [[0.25, 0.5], [2.0, 3.0]]
    (bars,) = left.collections
    assert [segment[1].tolist() for segment in bars.get_segments()] == [[0.25, 2.0], [0.5, 3.0]]
    budget_curve(right, [0.5, 1.0, 2.0], [8.0, 4.0, 2.0], {"wide": 5.0, "narrow": 4.5}, at=1.0)
    assert right.lines[0].get_ydata().tolist() == [8.0, 4.0, 2.0]
    assert [float(np.ravel(line.get_ydata())[0]) for line in right.lines[1:]] == [5.0, 4.5]


def test_a_terminal_is_shown_bars(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert text_bars(["a"], [0.0]) == ["a "] and len(text_bars(["a", "b"], [1.0, 2.0])[1]) == BAR + 2
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    cli.main(["forecast", *QUARTILES, *BELL, "--epsilon", "1"], standalone_mode=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-4] == "Error in ranks by quantile" and max(line.count("#") for line in lines[-3:]) == BAR


def test_priors_are_widened_about_their_middle() -> None:
    pairs = {
        pq.Normal(3, 2): pq.Normal(3, 4),
        pq.HalfCauchy(2, 1): pq.HalfCauchy(4, 1),
        pq.LogNormal(1, 0.5): pq.LogNormal(1, 1),
        pq.Uniform(-1, 3): pq.Uniform(-3, 5),
        pq.Laplace(0, 1).mix(pq.Cauchy(0, 2), 0.25): pq.Laplace(0, 2).mix(pq.Cauchy(0, 4), 0.25),
    }
    for prior, wide in pairs.items():
        assert widened(prior, 2.0) == wide and widened(wide, 0.5) == prior
    assert widened(pq.PiecewiseConstant([0, 1, 2], [1, 2]), 2.0) is None
    assert widened(pq.Cauchy(0, 1e308), 4.0) is None
    assert widened(pq.Normal(0, 1).mix(pq.PiecewiseConstant([0, 1], [1]), 0.5), 2.0) is None
