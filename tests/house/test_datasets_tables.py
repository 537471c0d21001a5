"""The embedded tables and the two shapes of data sets."""

from __future__ import annotations

from collections import Counter
from datetime import date
from fractions import Fraction

import numpy as np
import pytest

import pq
from pq.datasets import DatasetSequence, Table, adult, flights, movies
from pq.datasets.embedded import ADULT_COLUMNS, ADULT_SPLITS, GENRES, MOVIE_COLUMNS
from pq.datasets.rebuild import TABLES


class TestTable:
    def test_expands_to_every_record(self) -> None:
        table = Table([-1.0, 0.5], [2, 3], name="t")
        assert len(table) == 5
        assert table.to_array().tolist() == [-1.0, -1.0, 0.5, 0.5, 0.5]
        assert np.asarray(table).tolist() == table.to_array().tolist()
        assert np.asarray(table, dtype=np.float32).dtype == np.float32
        assert "5 records, 2 values" in repr(table)

    def test_an_expansion_is_always_a_new_array(self) -> None:
        table = Table([1.0], [2])
        first = np.array(table)
        first[:] = 7.0
        assert np.asarray(table).tolist() == [1.0, 1.0]
        with pytest.raises(ValueError, match="copy"):
            table.__array__(copy=False)

    def test_is_frozen_to_the_bottom(self) -> None:
        values = np.array([1.0, 2.0])
        table = Table(values, np.array([1, 1]))
        values[0] = 9.0
        assert table.values[0] == 1.0
        with pytest.raises(ValueError, match="read-only"):
            table.values[0] = 3.0
        with pytest.raises(ValueError, match="read-only"):
            table.counts[0] = 3
        with pytest.raises(AttributeError):
            table.name = "other"  # type: ignore[misc]

    def test_from_records_counts_them(self) -> None:
        records = np.random.default_rng(1).integers(-5, 5, size=200)
        table = Table.from_records(records, name="integers", unit="ones")
        assert dict(zip(table.values.tolist(), table.counts.tolist(), strict=True)) == Counter(records.tolist())
        assert (table.name, table.unit) == ("integers", "ones")

    def test_may_be_empty(self) -> None:
        table = Table.from_records([])
        assert len(table) == 0
        assert np.asarray(table).shape == (0,)

    @pytest.mark.parametrize(
        ("values", "counts", "named"),
        [
            ([2.0, 1.0], [1, 1], "values"),
            ([1.0, 1.0], [1, 1], "values"),
            ([1.0, np.nan], [1, 1], "values"),
            ([[1.0]], [[1]], "values"),
            ([1.0, 2.0], [1], "counts"),
            ([1.0, 2.0], [1, 0], "counts"),
        ],
    )
    def test_refuses_what_is_no_column(self, values: list[float], counts: list[int], named: str) -> None:
        with pytest.raises(ValueError, match=f"^{named}"):
            Table(values, counts)


class TestDatasetSequence:
    def test_iterates_over_features_and_datasets(self) -> None:
        sequence = DatasetSequence([1, 2], [np.zeros(1), np.ones(2)], [[0.5], [0.25]], ["rain"])
        assert [(f.tolist(), x.tolist()) for f, x in sequence] == [([0.5], [0.0]), ([0.25], [1.0, 1.0])]
        assert len(sequence) == 2
        with pytest.raises(ValueError, match="read-only"):
            sequence.features[0, 0] = 1.0

    @pytest.mark.parametrize(
        ("datasets", "features", "named"),
        [
            ([np.zeros(1)], [[0.0], [0.0]], "datasets"),
            ([np.zeros(1)] * 2, [[0.0, 1.0], [0.0, 1.0]], "features"),
            ([np.zeros(1)] * 2, [[0.0], [np.nan]], "features"),
        ],
    )
    def test_refuses_parts_that_do_not_fit(self, datasets: list, features: list, named: str) -> None:
        with pytest.raises(ValueError, match=f"^{named}"):
            DatasetSequence([1, 2], datasets, features, ["rain"])


class TestAdult:
    @pytest.mark.parametrize(
        ("split", "column", "rows", "total", "quartiles"),
        [
            ("train", "age", 32_561, 1_256_257, [28, 37, 48]),
            ("test", "age", 16_281, 631_173, [28, 37, 48]),
            ("train", "hours_per_week", 32_561, 1_316_684, [40, 40, 45]),
            ("test", "hours_per_week", 16_281, 657_626, [40, 40, 45]),
        ],
    )
    def test_known_totals(self, split: str, column: str, rows: int, total: int, quartiles: list[int]) -> None:
        table = adult(split, column)
        assert len(table) == rows
        assert sum(int(v) * int(c) for v, c in zip(table.values, table.counts, strict=True)) == total
        assert np.quantile(table, [0.25, 0.5, 0.75]).tolist() == quartiles

    def test_default_and_facts(self) -> None:
        table = adult()
        assert len(table) == 16_281
        assert "CC BY 4.0" in table.licence
        assert "UCI" in table.provenance
        assert table.unit == "years"

    def test_refuses_other_choices(self) -> None:
        with pytest.raises(ValueError, match="split"):
            adult("validation")
        with pytest.raises(ValueError, match="column"):
            adult("test", "income")

    def test_can_be_released(self) -> None:
        release = pq.release(
            adult("test", "age"),
            [0.25, 0.5, 0.75],
            epsilon=10.0,
            priors=pq.Uniform(0.0, 120.0),
            rng=np.random.default_rng(0),
        )
        # The chance that any of three quantiles misses by more than 3 years at these sizes is below 1e-100.
        assert np.all(np.abs(release.values - [28, 37, 48]) <= 3)


# Sums of the genre flags, counted apart with another program.
FILMS = {
    "Action": 4688,
    "Animation": 3690,
    "Comedy": 17271,
    "Drama": 21811,
    "Documentary": 3472,
    "Romance": 4744,
    "Short": 9458,
}


class TestMovies:
    @pytest.mark.parametrize("column", tuple(MOVIE_COLUMNS))
    @pytest.mark.parametrize("genre", GENRES)
    def test_sizes(self, genre: str, column: str) -> None:
        assert len(movies(genre, column)) == FILMS[genre]

    def test_medians_and_extremes(self) -> None:
        assert np.median(movies("Drama", "rating")) == 6.3
        assert np.median(movies("Documentary", "rating")) == 6.9
        assert np.median(movies("Drama", "length")) == 96
        assert movies("Documentary", "length").values[-1] == 873

    def test_ratings_are_the_decimals_of_the_source(self) -> None:
        values = movies("Drama", "rating").values.tolist()
        assert all(Fraction(repr(v)) * 10 == round(v * 10) for v in values)
        assert 1 <= values[0] <= values[-1] <= 10

    def test_a_private_genre_can_be_kept_out_of_a_public_one(self) -> None:
        assert len(movies("Drama", without="Documentary")) == 21811 - 127
        assert len(movies("Documentary", "length", without="Drama")) == 3472 - 127

    def test_refuses_other_choices(self) -> None:
        with pytest.raises(ValueError, match="genre"):
            movies("drama")
        with pytest.raises(ValueError, match="column"):
            movies("Drama", "budget")
        with pytest.raises(ValueError, match="without"):
            movies("Drama", without="Drama")


class TestFlights:
    @pytest.mark.parametrize(
        ("column", "total", "least", "most"), [("dep_delay", 328_521, 291, 1001), ("air_time", 327_346, 291, 998)]
    )
    def test_totals(self, column: str, total: int, least: int, most: int) -> None:
        sizes = [len(x) for x in flights(column).datasets]
        assert (len(sizes), sum(sizes), min(sizes), max(sizes)) == (365, total, least, most)

    def test_a_day_is_a_sorted_read_only_column(self) -> None:
        sequence = flights()
        assert sequence.days[0] == date(2013, 1, 1)
        assert sequence.days[-1] == date(2013, 12, 31)
        for dataset in sequence.datasets:
            assert dataset.dtype == np.float64
            assert not dataset.flags.writeable
            assert np.all(dataset[1:] >= dataset[:-1])
        assert max(x[-1] for x in sequence.datasets) == 1301  # the longest delay of the year
        assert min(x[0] for x in sequence.datasets) == -43

    def test_features(self) -> None:
        sequence = flights("air_time")
        column = dict(zip(sequence.feature_names, sequence.features.T, strict=True))
        assert sequence.features.shape == (365, 16)
        weekdays = sequence.features[:, :7]
        assert np.all(weekdays.sum(axis=1) == 1)
        assert weekdays.argmax(axis=1).tolist() == [d.weekday() for d in sequence.days]
        assert np.allclose(column["year_sine"] ** 2 + column["year_cosine"] ** 2, 1.0)
        assert column["temp"][0] == pytest.approx(0.369997)  # 36.9997 degrees
        july, january = np.array([d.month for d in sequence.days]) == 7, np.array([d.month for d in sequence.days]) == 1
        assert column["temp"][july].mean() > column["temp"][january].mean() + 0.3
        assert np.abs(sequence.features).max() < 4  # all of similar size: no gust of 1048 miles per hour
        # The last day has no reading: it takes those of the day before, and keeps its own calendar.
        assert np.array_equal(sequence.features[-1, 9:], sequence.features[-2, 9:])
        assert not np.array_equal(sequence.features[-1, :9], sequence.features[-2, :9])

    def test_refuses_another_column(self) -> None:
        with pytest.raises(ValueError, match="column"):
            flights("arr_delay")


def test_the_embedded_files_are_small() -> None:
    assert sum(path.stat().st_size for path in TABLES.iterdir()) < 400_000


def test_every_embedded_set_tells_source_and_licence() -> None:
    tables = [adult(s, c) for s in ADULT_SPLITS for c in ADULT_COLUMNS] + [movies(g) for g in GENRES]
    for data in [*tables, flights()]:
        assert data.provenance
        assert data.licence
        assert data.unit
        assert data.name
