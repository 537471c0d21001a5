"""Made-up data."""

from __future__ import annotations

import numpy as np
import pytest

from pq.datasets import gaussian, synthetic
from pq.datasets.generated import BLOCK


class TestGaussian:
    def test_moments(self) -> None:
        x = gaussian(40_000, np.random.default_rng(5), loc=3.0, scale=2.0)
        # Six standard errors each: fails with probability below 1e-8 for a fresh seed; the seed is fixed.
        assert abs(x.mean() - 3.0) < 6 * 2.0 / 200
        assert abs(x.std() - 2.0) < 6 * 2.0 / np.sqrt(2 * 40_000)

    def test_depends_on_the_generator_alone(self) -> None:
        assert np.array_equal(gaussian(5, np.random.default_rng(1)), gaussian(5, np.random.default_rng(1)))
        rng = np.random.default_rng(1)
        assert not np.array_equal(gaussian(5, rng), gaussian(5, rng))
        assert gaussian(0, rng).shape == (0,)

    @pytest.mark.parametrize(
        ("n", "keywords", "named"),
        [(-1, {}, "n"), (1, {"scale": 0.0}, "scale"), (1, {"scale": np.nan}, "scale"), (1, {"loc": np.inf}, "loc")],
    )
    def test_refuses(self, n: int, keywords: dict[str, float], named: str) -> None:
        with pytest.raises(ValueError, match=f"^{named} "):
            gaussian(n, np.random.default_rng(0), **keywords)

    def test_refuses_types(self) -> None:
        with pytest.raises(TypeError, match=r"^n "):
            gaussian(1.5, np.random.default_rng(0))  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"^rng "):
            gaussian(1, 0)  # type: ignore[arg-type]


class TestSynthetic:
    @pytest.mark.parametrize(("quantiles", "n"), [(9, 100), (1, 100), (4, 103), (9, 5)])
    def test_without_noise_the_truth_splits_every_day_evenly(self, quantiles: int, n: int) -> None:
        days = synthetic(2 * BLOCK + 3, rng=np.random.default_rng(2), quantiles=quantiles, n=n)
        share = n // (quantiles + 1)
        for truth, dataset in zip(days.truth, days.datasets, strict=True):
            assert len(dataset) == share * (quantiles + 1)
            below = np.searchsorted(dataset, truth)
            assert below.tolist() == [share * (i + 1) for i in range(quantiles)]

    def test_truth_is_linear_in_the_features(self) -> None:
        days = synthetic(50, rng=np.random.default_rng(3), dimension=4, quantiles=3)
        for t in range(50):
            for i in range(3):
                exact = sum(float(a) * float(f) for a, f in zip(days.weights, days.features[t], strict=True))
                assert days.truth[t, i] == pytest.approx(exact + days.offsets[i], abs=1e-12)
        assert np.all(np.diff(days.offsets) > 0)

    def test_noise_adds_a_poisson_number_to_each_interval(self) -> None:
        days = synthetic(2500, rng=np.random.default_rng(4), noise=5.0)
        extra = np.array([len(x) for x in days.datasets]) - 100
        # A sum of ten Poisson(5) numbers has mean and variance 50. Six standard errors: below 1e-8 for a fresh seed.
        assert abs(extra.mean() - 50) < 6 * np.sqrt(50 / 2500)
        assert abs(extra.var() - 50) < 6 * 50 * np.sqrt((2 + 1 / 50) / 2500)
        inner = [
            np.histogram(x, np.concatenate([[-np.inf], q, [np.inf]]))[0] - 10
            for q, x in zip(days.truth, days.datasets, strict=True)
        ]
        assert np.min(inner) >= 0
        assert abs(np.corrcoef(np.array(inner)[:, :2].T)[0, 1]) < 6 / np.sqrt(2500)  # drawn for each interval anew

    def test_the_same_data_come_in_any_order(self) -> None:
        days = synthetic(3 * BLOCK, rng=np.random.default_rng(6), noise=2.0)
        straight = list(days.datasets)
        for t in (3 * BLOCK - 1, 0, BLOCK, 5, -1):
            assert np.array_equal(days.datasets[t], straight[t])
        assert all(np.array_equal(a, b) for a, b in zip(days.datasets, straight, strict=True))
        assert [len(x) for x in days.datasets[BLOCK - 1 : BLOCK + 1]] == [
            len(x) for x in straight[BLOCK - 1 : BLOCK + 1]
        ]
        again = synthetic(3 * BLOCK, rng=np.random.default_rng(6), noise=2.0)
        assert np.array_equal(again.features, days.features)
        assert np.array_equal(again.datasets[700], straight[700])

    def test_blocks_and_calls_have_streams_of_their_own(self) -> None:
        rng = np.random.default_rng(7)
        days, other = synthetic(2 * BLOCK, rng=rng), synthetic(2 * BLOCK, rng=rng)
        unit = [(days.datasets[t] - days.features[t] @ days.weights).tolist() for t in (0, BLOCK)]
        assert not np.allclose(unit[0], unit[1])
        assert not np.array_equal(days.features, other.features)
        assert not np.array_equal(days.weights, other.weights)

    def test_a_hundred_thousand_days_are_drawn_a_block_at_a_time(self) -> None:
        days = synthetic(100_000, rng=np.random.default_rng(8))
        assert sum(len(dataset) for _, dataset in days) == 10_000_000
        assert len(days.datasets) == len(days) == 100_000

    def test_no_days(self) -> None:
        days = synthetic(0, rng=np.random.default_rng(0))
        assert list(days) == []
        with pytest.raises(IndexError):
            days.datasets[0]

    @pytest.mark.parametrize(
        ("keywords", "named"),
        [
            ({"steps": -1}, "steps"),
            ({"n": -1}, "n"),
            ({"quantiles": 0}, "quantiles"),
            ({"dimension": 0}, "dimension"),
            ({"noise": -1.0}, "noise"),
            ({"noise": np.nan}, "noise"),
        ],
    )
    def test_refuses(self, keywords: dict[str, float], named: str) -> None:
        with pytest.raises(ValueError, match=f"^{named} "):
            synthetic(**{"rng": np.random.default_rng(0), **keywords})  # type: ignore[arg-type]
