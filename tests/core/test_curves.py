"""Quantile functions never fail, never decrease, and do not depend on the unit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import pq
from pq.core.curves import LEVELS, MonotoneCurve, heavy_table, interpolated, joint_support, mixed_table, prior_table

LINE = (-math.inf, math.inf)
ALL_LEVELS = np.concatenate([[0.0, 1e-300, 1e-9], LEVELS, [1.0 - 1e-9, 1.0]])


def test_a_curve_goes_through_its_points() -> None:
    levels, places = np.array([0.1, 0.3, 0.35, 0.9]), np.array([-2.0, 0.0, 0.0, 11.0])
    curve = MonotoneCurve(levels, places, LINE)
    assert curve.at(levels) == pytest.approx(places)
    assert np.all(curve.at(np.linspace(0.3, 0.35, 9)) == 0.0)


def test_a_tail_goes_on_with_the_density_beside_it() -> None:
    """The slope of the quantile function beyond the last knot is that of the last chord there, and grows outwards."""
    curve = MonotoneCurve(np.array([0.2, 0.8]), np.array([0.0, 6.0]), LINE)
    for end, inwards in ((0.2, -1e-6), (0.8, 1e-6)):
        slope = np.diff(curve.at(np.array([end, end + inwards])))[0] / inwards
        assert slope == pytest.approx(10.0, rel=1e-4)
    assert MonotoneCurve(np.array([0.2, 0.8]), np.array([0.0, 6.0]), (-1.0, 7.0)).at(np.array([0.0, 1.0])).tolist() == [
        -1,
        7,
    ]


@pytest.mark.parametrize(
    "places",
    [
        [0.0, 0.0, 0.0],
        [-1.7e308, 0.0, 1.7e308],
        [-1.7e308, -1.7e308, 1.7e308],
        [5e-324, 1e-323, 1.0],
        [1.0, 1.0 + 2e-16, 1e300],
    ],
)
@pytest.mark.parametrize(
    "levels", [[0.25, 0.5, 0.75], [1e-9, 2e-9, 1.0 - 1e-9], [0.5, 0.5, 0.5], [0.5, 0.5 + 1e-15, 0.9]]
)
def test_odd_points_give_finite_values_that_do_not_decrease(places: list[float], levels: list[float]) -> None:
    for support in (LINE, (-3.0, 3.0), (0.0, math.inf)):
        values = MonotoneCurve(np.array(levels), np.array(places), support).at(ALL_LEVELS)
        assert np.all(np.isfinite(values)) and values.min() >= support[0] and values.max() <= support[1]
        assert np.all(np.diff(0.5 * values) >= -1e-12 * np.max(np.abs(values)))


def test_equal_levels_are_a_jump() -> None:
    """A stretch without records: values on either side stay on their side."""
    levels, places = np.array([0.1, 0.5, 0.5, 0.5 + 1e-13, 0.9]), np.array([0.0, 1.0, 2.0, 8.0, 9.0])
    values = MonotoneCurve(levels, places, LINE).at(np.array([0.3, 0.5 - 1e-6, 0.5 + 1e-6, 0.7]))
    assert np.all(values[:2] <= 1.0) and np.all(values[2:] >= 8.0)


def test_one_place_goes_straight_to_the_ends() -> None:
    curve = MonotoneCurve(np.array([0.5]), np.array([1.0]), (0.0, 5.0))
    assert curve.at(np.array([0.25, 0.5, 0.75])).tolist() == [0.5, 1.0, 3.0]
    assert MonotoneCurve(np.array([0.5]), np.array([1.0]), LINE).at(np.array([0.1, 0.9])).tolist() == [1.0, 1.0]


def test_the_unit_does_not_matter() -> None:
    places = np.array([-2.0, 0.3, 1.0, 7.0])
    one, other = (MonotoneCurve(np.array([0.1, 0.4, 0.5, 0.8]), unit * places, LINE).at(LEVELS) for unit in (1.0, 1e3))
    assert other == pytest.approx(1e3 * one, rel=1e-12)


@pytest.mark.parametrize(
    "prior",
    [
        pq.Uniform(-3, 5),
        pq.Normal(0, 1),
        pq.Cauchy(2, 3),
        pq.HalfCauchy(2.0),
        pq.Normal(0, 1).mix(pq.Cauchy(0, 9), 0.3),
    ],
)
def test_tables_hold_the_quantiles_of_a_prior(prior: pq.Cauchy) -> None:
    """A mixture's table is made of its parts' tables, within a few levels' width of the truth."""
    below = np.exp(prior.log_mass(-math.inf, prior_table([prior], [0.5])))
    assert below == pytest.approx(LEVELS, abs=2e-3 if isinstance(prior, pq.Mixture) else 1e-12)


def test_priors_that_differ_are_a_curve_through_their_medians() -> None:
    priors = [pq.Normal(10.0 * i, 0.1) for i in range(1, 10)]
    table = prior_table(priors, [i / 10 for i in range(1, 10)])
    assert np.interp([0.2, 0.5, 0.8], LEVELS, table) == pytest.approx([20.0, 50.0, 80.0], abs=3.0)
    assert joint_support([pq.Uniform(0, 1), pq.HalfCauchy(1.0, loc=-2.0)]) == (-2.0, math.inf)


@pytest.mark.parametrize("degrees", [1, 2])
def test_students_law_has_the_width_asked_for(degrees: int) -> None:
    table = heavy_table(5.0, 2.0, degrees=degrees)
    assert np.interp([0.25, 0.5, 0.75], LEVELS, table) == pytest.approx([3.0, 5.0, 7.0])
    assert stats.t(degrees).cdf((table - 5.0) / 2.0 * stats.t(degrees).ppf(0.75)) == pytest.approx(LEVELS, abs=1e-12)
    assert np.all(np.isfinite(heavy_table(1e308, 1e308, degrees=degrees)))


def test_mixing_takes_all_laws_in_proportion() -> None:
    """Half of the mass near zero, half near a hundred: the quartiles are the medians of the parts."""
    near, far = LEVELS - 0.5, LEVELS + 99.5
    assert np.interp([0.25, 0.75], LEVELS, mixed_table([near, far], [0.5, 0.5])) == pytest.approx(
        [0.0, 100.0], abs=3e-3
    )


@pytest.mark.parametrize("place", [1e-310, 3e-308, -2e-300, 7e-263, -2e-260, 1e-200])
def test_a_place_next_to_zero_leaves_the_law_around_it_whole_whatever_floats_the_prior_reaches(place: float) -> None:
    """The median of symmetric data under a prior that knows no scale: beside it are numbers near the largest float."""
    laws = heavy_table(place, 0.5, degrees=2), prior_table([pq.LogUniform()], [0.5])
    mixed = mixed_table(laws, [0.9, 0.1])
    assert np.all(np.diff(mixed) >= 0.0)
    assert mixed[[255, 767]] == pytest.approx(
        mixed_table([heavy_table(0.0, 0.5, degrees=2), laws[1]], [0.9, 0.1])[[255, 767]]
    )
    assert np.interp([0.25, 0.75], LEVELS, mixed) == pytest.approx([-0.5, 0.5], abs=0.02)
    assert np.all(np.isfinite(interpolated(np.array([place, 0.1]), laws[1], LEVELS)))
