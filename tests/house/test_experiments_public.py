"""The experiment with public data measures what it says, on the records that it says."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from click.testing import CliRunner

import pq
from pq.show import learning as plots_learning
from pq.show import plots
from pqlab.experiments import public_private as experiment
from pqlab.experiments.static import even_quantiles, stream

NINE = even_quantiles(9)
STORED = ("adult", "movies", "goodreads11k")


@pytest.fixture
def fresh_caches() -> Iterator[None]:
    """Data sets that a test puts in the way are not remembered."""
    caches = (experiment.populations, experiment._fitted, experiment.public_quantiles)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def literal_gap(x: Any, q: Fraction, o: float) -> int:
    return abs(sum(1 for value in x if value < o) - (q * len(x)).__floor__())


@pytest.mark.parametrize("seed", range(20))
def test_excess_gap_is_the_literal_gap_less_the_least_of_any_real_number(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.sort(rng.integers(0, 6, rng.integers(1, 30)).astype(float))
    values = np.sort(rng.choice(np.concatenate([x, x + 0.5, [-9.0, 99.0]]), 9))
    candidates = [-1.0, *(x + 0.5), *x, 99.0]
    wanted = max(
        literal_gap(x, q, o) - min(literal_gap(x, q, c) for c in candidates) for q, o in zip(NINE, values, strict=True)
    )
    assert experiment.excess_gap(x, NINE, values) == wanted >= 0


@pytest.mark.parametrize("source", ["movies_rating", "movies_length"])
def test_public_and_private_records_are_disjoint_parts_of_the_tables(source: str) -> None:
    column = source.split("_")[1]
    public, kept, second = experiment.populations(source)
    drama = pq.datasets.movies("Drama", column, without="Documentary").to_array()
    assert Counter(public.tolist()) + Counter(kept.tolist()) == Counter(drama.tolist())
    assert len(kept) == -(-len(drama) // 10)
    assert Counter(second.tolist()) == Counter(pq.datasets.movies("Documentary", column).to_array().tolist())
    assert not np.array_equal(np.sort(kept), np.sort(experiment.populations(source, seed=1)[1]))


def test_each_split_is_drawn_anew_and_trials_take_them_in_turn() -> None:
    one, two = (experiment.populations("movies_rating", split=split) for split in (0, 1))
    assert not np.array_equal(np.sort(one[1]), np.sort(two[1]))
    assert np.array_equal(np.sort(np.concatenate(one[:2])), np.sort(np.concatenate(two[:2])))
    fits = {split: experiment.fitted("movies_rating", "ogd", 100, 3, split=split) for split in (0, 1)}
    assert fits[0] != fits[1]
    rows = experiment.run(
        [experiment.Cell("movies_rating", "grid", "ogd", 1.0, 0.0, t) for t in (0, 1, 2)], m=3, splits=2
    )
    for row in rows:
        split = row["trial"] % 2
        x = experiment.sample("movies_rating", 0.0, 100, row["trial"], split=split)
        noise = experiment.stream(0, "noise", "movies_rating", 100, 3, 1.0, 0.0, row["trial"])
        options = {"epsilon": 1.0, "priors": fits[split], "grid": Fraction("0.1"), "rng": noise, "mechanism": "tree"}
        values = pq.release(x, experiment.even_quantiles(3), **options).values
        assert row["max_gap"] == pq.max_gap(x, experiment.even_quantiles(3), values)


def test_adult_is_private_in_the_test_split_and_public_in_the_train_split() -> None:
    public, _, private = experiment.populations("adult_hours")
    assert np.array_equal(np.sort(public), pq.datasets.adult("train", "hours_per_week").to_array())
    assert np.array_equal(np.sort(private), pq.datasets.adult("test", "hours_per_week").to_array())


def test_a_mixture_holds_the_wanted_part_of_the_second_population(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = np.arange(1000.0), np.arange(2000.0, 2200.0), np.arange(5000.0, 5300.0)
    monkeypatch.setattr(experiment, "populations", lambda *facts: parts)
    for mixture in (0.0, 0.07, 0.5, 1.0):
        x = experiment.sample("movies_length", mixture, 100, trial=3)
        assert np.all(np.diff(x) > 0)  # sorted, and none twice
        assert np.sum(x >= 5000) == round(100 * mixture) and np.sum((x >= 2000) & (x < 3000)) == 100 - np.sum(x >= 5000)
        assert not np.array_equal(x, experiment.sample("movies_length", mixture, 100, trial=4))


@pytest.mark.parametrize("source", ["adult_age", "adult_hours", "movies_rating"])
def test_public_quantiles_are_the_best_public_values(source: str) -> None:
    x = np.sort(experiment.populations(source)[0])
    strict, tied = (experiment.public_quantiles(source, variant, 9) for variant in ("paper", "grid"))
    assert np.all(np.isin(tied, x)) and np.all(pq.gap(x, NINE, tied) <= 1)
    assert experiment.excess_gap(x, NINE, strict) == 0


def test_the_guesses_are_those_of_the_paper() -> None:
    found = {
        name: (s.loc, s.scale, s.low, s.high(Fraction(9, 10)))
        for name, s in experiment.SOURCES.items()
        if name.startswith(("adult", "goodreads_"))
    }
    assert found == {
        "adult_age": (40, 5, 10, 120),
        "adult_hours": (40, 2, 0, 168),
        "goodreads_rating": (2.5, 0.5, 0, 5),
        "goodreads_pages": (200, 25, 0, pytest.approx(10_000)),
    }


def test_the_priors_are_those_of_the_methods() -> None:
    arguments = ("adult_age", 100, 9)
    assert experiment.priors("uniform", *arguments) == [pq.Uniform(10, 120)] * 9
    assert experiment.priors("half_cauchy", *arguments) == [pq.HalfCauchy(40)] * 9
    for plain, robust in zip(
        experiment.priors("pubfit", *arguments), experiment.priors("pubfit_robust", *arguments), strict=True
    ):
        assert robust == plain.mix(pq.HalfCauchy(40), 0.1)
    assert experiment.priors("pubfit", *arguments) != experiment.priors("ogd", *arguments)


def test_fits_aim_beside_ties_where_outputs_are_real() -> None:
    arguments = ("pubfit", "adult_hours", 100, 9, 0)
    paper, grid, level = (experiment.priors(*arguments, variant) for variant in experiment.VARIANTS)
    assert paper == level != grid == experiment.priors(*arguments)
    x = experiment.populations("adult_hours")[0]
    wanted = pq.fit_public(
        x, NINE, sample_size=100, loc=40, scale=2, min_width=1, rng=stream(0, "fit", "adult_hours", "cocob", 100, 9),
        ties="beside",
    )  # fmt: skip
    assert paper == wanted


def test_each_variant_releases_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def release(x: Any, quantiles: Any, **options: Any) -> Any:
        seen.append((pq.release(x, quantiles, **options), options))
        return seen[-1][0]

    monkeypatch.setattr(experiment, "pq", SimpleNamespace(**vars(pq) | {"release": release}))
    for variant in experiment.VARIANTS:
        row = experiment.run_cell(experiment.Cell("adult_hours", variant, "uniform", 2.0, 0.0, 0))
        x = experiment.sample("adult_hours", 0.0, 100, 0)
        measure = pq.max_gap if variant == "grid" else experiment.excess_gap
        assert row["max_gap"] == measure(x, NINE, seen[-1][0].values)
    (paper, _), (grid, options), (level, _) = seen
    assert (paper.plan.depth, grid.plan.depth, level.plan.depth) == (4, 4, 1)
    assert (paper.plan.calibration, grid.plan.calibration, level.plan.calibration) == ("paper", "sharp", "sharp")
    assert options["grid"] == 1 and set(level.plan.epsilons) == {Fraction(2, 9)}
    assert np.all(grid.values == np.round(grid.values)) and not np.any(level.values == np.round(level.values))


def test_all_methods_of_a_trial_see_the_same_records(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def release(x: Any, *args: Any, **options: Any) -> Any:
        seen[str(options["priors"])] = x.tolist(), options["rng"].random()
        return original(x, *args, **options)

    original = pq.release
    monkeypatch.setattr(pq, "release", release)
    for method in ("uniform", "half_cauchy", "pubfit"):
        experiment.run_cell(experiment.Cell("adult_age", "paper", method, 1.0, 0.0, 0))
    assert len(seen) == 3 and len({str(value) for value in seen.values()}) == 1


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("experiment", {"experiment": "adults"}),
        ("methods", {"methods": ["magic"]}),
        ("epsilons", {"epsilons": [0.0]}),
        ("mixtures", {"mixtures": [1.5]}),
        ("trials", {"trials": 0}),
    ],
)
def test_what_cannot_be_run_is_refused_by_name(name: str, change: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {"experiment": "adult", "epsilons": [1.0], "mixtures": [0.0], "trials": 1}
    with pytest.raises(ValueError, match=name):
        experiment.cells(**(arguments | change))


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    rows = [
        {
            "source": "adult_age",
            "variant": "grid",
            "method": "ogd",
            "epsilon": e,
            "mixture": 0.1,
            "trial": t,
            "max_gap": g,
        }
        for e in (0.00316228, 10.0)
        for t, g in enumerate((3, 0, 17))
    ]
    experiment.write_table(tmp_path / "table.csv", rows, "made by hand")
    assert (
        (tmp_path / "table.csv")
        .read_text()
        .startswith("# made by hand\nsource,variant,method,epsilon,mixture,max_gap\n")
    )
    assert experiment.read_table(tmp_path / "table.csv") == rows


def test_the_command_stores_what_a_run_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "grid_of", lambda name: ([1.0], [0.0]))
    out = tmp_path / "adult.csv"
    done = CliRunner().invoke(experiment.main, ["adult", "--trials", "1", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert experiment.read_table(out) == experiment.run(
        experiment.cells("adult", epsilons=[1.0], mixtures=[0.0], trials=1)
    )


@pytest.mark.parametrize("name", STORED)
def test_a_stored_table_is_whole_and_says_how_it_was_made(name: str) -> None:
    path = experiment.RESULTS / f"{name}.csv"
    assert path.read_text().startswith(f"# python -m pqlab.experiments.public_private {name} --trials 40 --seed 0\n")
    epsilons, mixtures = experiment.grid_of(name)
    wanted = experiment.cells(name, epsilons=epsilons, mixtures=mixtures, trials=40)
    rows = experiment.read_table(path)
    assert [experiment.Cell(**{k: row[k] for k in row if k != "max_gap"}) for row in rows] == wanted
    assert all(0 <= row["max_gap"] <= 100 for row in rows)


@pytest.mark.parametrize("name", ["adult", "movies"])
def test_a_stored_table_is_what_a_run_gives(name: str) -> None:
    rows = experiment.read_table(experiment.RESULTS / f"{name}.csv")
    some = [rows[i] for i in np.random.default_rng(0).choice(len(rows), 40, replace=False)]
    cells = [experiment.Cell(**{k: row[k] for k in row if k != "max_gap"}) for row in some]
    again = experiment.run(cells, splits=40)
    # Rounding on another machine may move an output across a record once in a while.
    assert sum(one == other for one, other in zip(some, again, strict=True)) >= 38


@pytest.mark.usefixtures("fresh_caches")
def test_books_come_from_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    lines = ["book_id,average_rating,num_pages,genres"]
    for book in range(3000):
        genre = ("History", "Poetry", "History;Poetry", "Fiction")[rng.integers(4)]
        lines.append(f"{book},{rng.integers(300, 500) / 100},{rng.integers(0, 900)},{genre}")
    (tmp_path / "goodreads").mkdir()
    with gzip.open(tmp_path / "goodreads" / "goodreads11k_genres.csv.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    monkeypatch.setenv("PQ_DATA", str(tmp_path))
    for source in experiment.EXPERIMENTS["goodreads11k"][0]:
        row = experiment.run_cell(experiment.Cell(source, "grid", "public_cauchy", 1.0, 0.5, 0), n=50)
        assert 0 <= row["max_gap"] <= 50


def test_curves_are_drawn_in_order_with_their_errors() -> None:
    summary = [
        {"method": method, "epsilon": e, "mean": 10 * e, "error": e}
        for method in ("ogd", "uniform")
        for e in (3.0, 1.0)
    ]
    _, ax = plt.subplots()
    drawn = plots_learning.gap_curves(ax, summary, "epsilon", {"uniform": "U", "ogd": "O"})
    assert list(drawn) == ["uniform", "ogd"] and drawn["ogd"].tolist() == [[1, 3], [10, 30], [1, 3]]
    assert [text.get_text() for text in ax.legend().get_texts()] == ["U", "O"]
    assert all(plots.style_of(method) for method in experiment.METHODS)
    plt.close("all")
