"""The grid of the first figure: every cell stands alone, and measures what it says."""

from __future__ import annotations

import math
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import oracles
import pq
from pqlab.experiments import findings, sequential, static
from pqlab.experiments.static import Cell
from pqlab.experiments.table import mean_and_error, paired_difference, select, summarise

SMALL = static.cells(ms=[1, 4], trials=2, epsilons=[1.0, 0.5])
Run = Callable[[Sequence[Cell]], list[dict[str, Any]]]


def run_small(grid: Sequence[Cell]) -> list[dict[str, Any]]:
    return static.run(grid, n=60, seed=3)


def run_with_one_generator(grid: Sequence[Cell]) -> list[dict[str, Any]]:
    """A mutant: all cells draw their noise from one stream."""
    rng = np.random.default_rng(3)
    rows = []
    for cell in grid:
        quantiles = static.even_quantiles(cell.m)
        x = static.sample(cell.data, 60, cell.trial, 3)
        prior = static.SOURCES[cell.data].prior
        values = pq.release(x, quantiles, epsilon=cell.epsilon, priors=prior, rng=rng).values
        rows.append(vars(cell) | {"max_gap": pq.max_gap(x, quantiles, values)})
    return rows


def assert_order_does_not_matter(run: Run) -> None:
    shuffled = random.Random(0).sample(SMALL, len(SMALL))
    by_cell = dict(zip(shuffled, run(shuffled), strict=True))
    assert run(SMALL) == [by_cell[cell] for cell in SMALL]


def assert_cells_stand_alone(run: Run) -> None:
    rows = run(SMALL)
    for i in (0, len(SMALL) // 2, len(SMALL) - 1):
        assert run(SMALL[i : i + 1]) == rows[i : i + 1]


@pytest.mark.parametrize("check", [assert_order_does_not_matter, assert_cells_stand_alone])
def test_a_row_depends_on_its_cell_alone(check: Callable[[Run], None]) -> None:
    check(run_small)
    with pytest.raises(AssertionError):
        check(run_with_one_generator)


def test_the_grid_holds_every_cell_once_in_order() -> None:
    assert len(set(SMALL)) == len(SMALL) == 4 * 3 * 2 * 2 * 2
    assert [(c.data, c.calibration, c.grid) for c in SMALL[:: len(SMALL) // 4]] == list(static.VARIANTS)
    assert [c.trial for c in SMALL[:4]] == [0, 1, 0, 1] and [c.m for c in SMALL[:4]] == [1, 1, 4, 4]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"ms": []}, "ms"),
        ({"ms": [0]}, "ms"),
        ({"ms": [3, 3]}, "ms"),
        ({"ms": [1], "trials": 0}, "trials"),
        ({"ms": [1], "epsilons": [0.0]}, "epsilons"),
        ({"ms": [1], "epsilons": [math.nan]}, "epsilons"),
        ({"ms": [1], "methods": ["orignal"]}, "methods"),
        ({"ms": [1], "variants": [("adult", "paper", None)]}, "variants"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} "):
        static.cells(**({"trials": 1} | arguments))


def test_streams_differ_by_name_and_by_seed() -> None:
    names: list[tuple[Any, ...]] = [("a", 1), ("a1",), ("a", 1, None), ("a", "1"), ("a", 1.0), (1, "a")]
    first = [static.stream(seed, *name).random() for seed in (0, 1) for name in names]
    assert len(set(first)) == len(first)


def test_cells_have_streams_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """No two cells share noise: the release is given a generator that differs in its first draw."""
    seen = []

    def spy(x: Any, quantiles: Any, *, rng: np.random.Generator, **options: Any) -> pq.Release:
        seen.append(rng.random())
        return release(x, quantiles, rng=rng, **options)

    release = pq.release
    monkeypatch.setattr(pq, "release", spy)
    run_small(SMALL)
    assert len(set(seen)) == len(SMALL)


def test_a_trial_has_the_same_data_for_all_methods_and_others_for_the_next() -> None:
    first = static.sample("gaussian", 50, trial=0, seed=0)
    assert np.array_equal(first, static.sample("gaussian", 50, trial=0, seed=0))
    assert not np.intersect1d(first, static.sample("gaussian", 50, trial=1, seed=0)).size
    assert not np.intersect1d(first, static.sample("gaussian", 50, trial=0, seed=1)).size


def test_ages_are_those_of_different_people() -> None:
    everybody = pq.datasets.adult("train", "age").to_array()
    assert np.array_equal(np.sort(static.sample("adult_age", len(everybody), 0, 0)), everybody)


def test_committed_numbers_stay() -> None:
    """The pages hold numbers from these streams."""
    assert static.stream(0, "data", 1, 0.1, None).integers(10**9) == 878620577
    assert static.sample("adult_age", 5, trial=0, seed=0).tolist() == [26, 40, 32, 59, 41]


@pytest.mark.parametrize("method", list(static.METHODS))
@pytest.mark.parametrize("m", [1, 2, 5, 30])
def test_no_privacy_means_no_error(method: str, m: int) -> None:
    """With a number of records that the quantiles divide, so that no rank is rounded on the way down."""
    cell = Cell("gaussian", "paper", None, method, math.inf, m, trial=0)
    assert static.run_cell(cell, n=20 * (m + 1))["max_gap"] == 0


def test_a_row_names_its_cell_and_its_tree() -> None:
    row = static.run_cell(Cell("adult_age", "sharp", 1.0, "kary_edge", 1.0, 9, trial=7), n=80)
    assert {k: row[k] for k in ("data", "grid", "m", "trial", "n", "arity")} == {
        "data": "adult_age", "grid": 1.0, "m": 9, "trial": 7, "n": 80, "arity": 4,
    }  # fmt: skip
    assert type(row["max_gap"]) is int


@pytest.mark.parametrize("method", ["original", "kary_edge", "kary_conditional"])
def test_mean_maximum_gap_agrees_with_the_pseudocode(method: str) -> None:
    """Two means of 60 independent trials differ by more than 4.5 standard errors with probability below 1e-4."""
    variant, m, n, trials = static.METHODS[method], 9, 100, 60
    rows = static.run(
        static.cells(variants=[("gaussian", "paper", None)], methods=[method], epsilons=[2.0], ms=[m], trials=trials),
        n=n,
    )
    mine, my_error = mean_and_error([row["max_gap"] for row in rows])
    quantiles = static.even_quantiles(m)
    arity = pq.kary_arity(m) if variant.arity is None else variant.arity
    plan = pq.plan(quantiles, epsilon=2, arity=arity, budget_power=variant.budget_power)
    budgets = {i: float(node.epsilon) for node in plan.nodes for i in node.indices}
    rng = random.Random(11)
    gaps = []
    for _ in range(trials):
        x = sorted(rng.gauss(0, 1) for _ in range(n))
        values = oracles.release(
            x, quantiles, [budgets[i] for i in range(m)], arity, (-10.0, 10.0), variant.adaptation, False, rng
        )
        gaps.append(max(abs(sum(v < o for v in x) - math.floor(q * n)) for q, o in zip(quantiles, values, strict=True)))
    oracle, oracle_error = mean_and_error(gaps)
    assert abs(mine - oracle) < 4.5 * math.hypot(my_error, oracle_error)


def test_progress_changes_nothing_and_leaves_logs_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert static.run(SMALL[:3], n=60, seed=3, progress=True) == run_small(SMALL[:3])
    shown = capsys.readouterr()
    assert shown.err == "" and shown.out == ""  # a bar is for a terminal: a log file gets none
    run_small(SMALL[:3])
    assert capsys.readouterr().err == ""


def test_progress_is_shown_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    static.run(SMALL[:3], n=60, seed=3, progress=True)
    shown = capsys.readouterr()
    assert "3/3" in shown.err and shown.out == ""


def test_even_quantiles_are_exact() -> None:
    assert static.even_quantiles(2) == [Fraction(1, 3), Fraction(2, 3)]


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=20))
def test_mean_and_error_agree_with_the_standard_library(values: list[int]) -> None:
    mean, error = mean_and_error(values)
    assert math.isclose(mean, statistics.mean(values), abs_tol=1e-12)
    assert math.isclose(error, statistics.stdev(values) / math.sqrt(len(values)), abs_tol=1e-12)


def test_mean_and_error_of_one_value_and_of_none() -> None:
    mean, error = mean_and_error([4])
    assert mean == 4 and math.isnan(error)
    with pytest.raises(ValueError, match=r"^values "):
        mean_and_error([])


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 9)), min_size=1, max_size=30))
def test_summaries_are_those_of_the_groups(triples: list[tuple[str, int, int]]) -> None:
    rows = [{"method": a, "m": m, "gap": g} for a, m, g in triples]
    summary = summarise(rows, ["method", "m"], "gap")
    assert sum(row["count"] for row in summary) == len(rows)
    for row in summary:
        group = [r["gap"] for r in select(rows, method=row["method"], m=row["m"])]
        assert row["count"] == len(group) and math.isclose(row["mean"], sum(group) / len(group))
    assert [(r["method"], r["m"]) for r in summary] == list(dict.fromkeys((a, m) for a, m, _ in triples))


def test_a_paired_difference_takes_out_what_the_pairs_share() -> None:
    trials = range(20)
    noise = [random.Random(t).random() * 1000 for t in trials]
    rows = [{"trial": t, "gap": noise[t] + 3 + t % 2} for t in trials]
    other = [{"trial": t, "gap": noise[t]} for t in reversed(trials)]
    mean, error = paired_difference(rows, other, ["trial"], "gap")
    assert math.isclose(mean, 3.5) and math.isclose(error, 0.5 / math.sqrt(19), rel_tol=1e-9)


def test_pairs_must_match() -> None:
    rows = [{"trial": 0, "gap": 1}, {"trial": 1, "gap": 2}]
    with pytest.raises(ValueError, match="1 occur in one only"):
        paired_difference(rows, rows[:1], ["trial"], "gap")
    with pytest.raises(ValueError, match=r"^rows must hold a pair once"):
        paired_difference(rows * 2, rows, ["trial"], "gap")
    with pytest.raises(ValueError, match=r"^other must hold a pair once"):
        paired_difference(rows, rows * 2, ["trial"], "gap")


def between_and_within(tables: Sequence[Any]) -> float:
    """Variance of the means of runs with different seeds over what the trials of one run say that it is."""
    errors = [mean_and_error(table.mean(axis=0)) for table in tables]
    return float(np.var([mean for mean, _ in errors], ddof=1) / np.mean([error**2 for _, error in errors]))


def test_trials_of_private_learning_are_independent() -> None:
    """Eight seeds with 20 trials each; independent trials exceed the limit with probability 1e-4, and trials that come
    ten times each do exceed it."""
    cells = [sequential.Cell("flights_air_time", "dp", 0.01, days=25, trials=20, seed=seed) for seed in range(8)]
    tables = [sequential.run_cell(cell) for cell in cells]
    limit = stats.f.isf(1e-4, 7, 8 * 19)
    assert between_and_within(tables) < limit
    assert between_and_within([np.repeat(table[:, :2], 10, axis=1) for table in tables]) > limit


# --- what the tables say ------------------------------------------------------------------------------------------


def test_the_findings_are_those_of_the_stored_tables() -> None:
    assert (findings.RESULTS / "FINDINGS.md").read_text(encoding="utf-8") == findings.findings_text()
    pictures = {path.with_suffix(".svg") for _, _, path, _ in findings.stored_tables()}
    assert pictures == set(findings.RESULTS.glob("*/*.svg"))


def test_a_run_is_stored_to_six_digits(tmp_path: Path) -> None:
    tables = tmp_path / "run" / "tables"
    tables.mkdir(parents=True)
    kept = sorted(findings.RESULTS.glob("sequential*/*.csv"))
    for file in kept:
        text = file.read_text(encoding="utf-8")
        (tables / file.name).write_text(text, encoding="utf-8")
        findings.store_run(tmp_path / "run", tmp_path)
        assert (tmp_path / file.name).read_text(encoding="utf-8") == text, file
    (tables / "one.csv").write_text("data,epsilon,max_gap\na,1e-05,95.68960001\n", encoding="utf-8")
    findings.store_run(tmp_path / "run", tmp_path)
    assert (tmp_path / "one.csv").read_text(encoding="utf-8") == "data,epsilon,max_gap\na,0.00001,95.6896\n"


def test_rows_are_of_one_calibration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = "data,variant,max_gap\na,sharp,5.0\na,paper,8.0\n"
    (tmp_path / "timeplots.csv").write_text(both, encoding="utf-8")
    monkeypatch.setattr(findings.sequential, "RESULTS", tmp_path)
    findings.paper_sized.cache_clear()
    found = [findings.paper_sized("timeplots", kind)["max_gap"].to_list() for kind in ("sharp", "paper")]
    findings.paper_sized.cache_clear()
    assert found == [[5.0], [8.0]]


def test_a_place_where_a_method_is_behind_is_named() -> None:
    better = {0.1 * k: (10.0, 0.5) for k in range(1, 7)}
    worse = {x: (20.0 if x < 0.35 else 10.5 if x < 0.55 else 3.0, 0.5) for x in better}
    assert (
        findings.sentence("A", "B", better, worse) == "A against B: ahead at 3 of 6; level at 0.4, 0.5; behind at 0.6"
    )
    assert (
        findings.sentence("A", "B", worse, better)
        == "A against B: ahead at 1 of 6; level at 0.4, 0.5; behind at 0.1, 0.2, 0.3"
    )
    exact = {1.0: (2.0, 0.0), 2.0: (2.0, 0.0), 3.0: (2.0, 0.0)}  # no errors: any difference is sure
    assert findings.against(exact, {1.0: (2.0, 0.0), 2.0: (2.1, 0.0), 3.0: (1.9, 0.0)}) == ([2.0], [1.0], [3.0])
