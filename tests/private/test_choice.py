"""What "auto" chooses: from public facts, alike in every unit, never with an error, and with the law of its choice."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats

import pq
from pq.core.expected import best_drawn, is_found
from pq.core.request import Request
from pq.private.columns.cells import Points
from pq.private.mechanisms import mechanism_for
from pq.private.mechanisms.cells import Cells
from pq.private.mechanisms.choice import MOST_PRIORS, chosen
from pq.private.mechanisms.joint import Joint, drawn_levels
from pq.private.mechanisms.joint.cutter import joint_cutter
from pq.private.mechanisms.joint.plan import is_orderable
from pq.private.randomness import Source

PRIOR = pq.Uniform(-10, 10)
CAUCHY, LOG_UNIFORM = pq.Cauchy(0, 1), pq.LogUniform()


def evenly(m: int) -> list[float]:
    return [i / (m + 1) for i in range(1, m + 1)]


def asked(m: int, **facts: Any) -> Request:
    return Request.of(evenly(m), **{"epsilon": 1, "priors": PRIOR} | facts)


@pytest.mark.parametrize(
    ("m", "facts", "expected"),
    [
        (1, {}, "tree"),
        (1, {"size_guess": 1000, "assume_smooth": True}, "tree"),
        (9, {}, "joint"),
        (9, {"size_guess": 1000, "assume_smooth": True}, "joint"),
        (14, {}, "joint"),
        (29, {}, "mixed"),
        (99, {}, "mixed"),
        (29, {"size_guess": 300}, "joint"),  # too few for a look
        (29, {"size_guess": 1e5}, "tree"),  # ties would take long
        (3, {"priors": pq.LogUniform()}, "joint"),
        (9, {"priors": pq.LogUniform()}, "mixed"),
        (9, {"priors": PRIOR.mix(pq.LogUniform(), 0.1)}, "mixed"),
        (9, {"priors": pq.LogUniform(), "epsilon": 0.1}, "joint"),
        (29, {"priors": pq.LogUniform(), "assume_smooth": True}, "cells"),
        (29, {"assume_smooth": True}, "cells"),
        (99, {"assume_smooth": True}, "cells"),
        (99, {"assume_smooth": True, "epsilon": 0.1}, "joint"),
        (9, {"epsilon": 0.1}, "joint"),
        (9, {"epsilon": 0.01}, "tree"),  # nothing is sound
        (99, {"epsilon": 0.01, "assume_smooth": True}, "tree"),
        (9, {"size_guess": 1e300}, "tree"),  # ties would take long
        (9, {"epsilon": math.inf}, "tree"),
        (9, {"epsilon": 1e300}, "tree"),
        (9, {"grid": 1}, "cells"),
        (9, {"grid": 1, "priors": pq.Uniform(10, 120)}, "joint"),
        (29, {"grid": 1, "priors": pq.Uniform(10, 120)}, "cells"),
        (9, {"grid": 1, "priors": pq.Uniform(10, 120), "epsilon": 0.1}, "joint"),
        (29, {"grid": 1, "priors": pq.Cauchy(40, 20)}, "joint"),  # more values than cells
        (29, {"grid": 1, "priors": pq.Cauchy(40, 20), "assume_smooth": True}, "cells"),
        (9, {"grid": 1, "priors": pq.Uniform(10, 120), "size_guess": 1e5}, "cells"),
        (9, {"grid": 1, "priors": pq.Uniform(0, 900), "size_guess": 1e5}, "cells"),
        (9, {"grid": 1, "priors": pq.Uniform(0, 5000), "size_guess": 1e6}, "margin"),  # more values than cells
        (9, {"grid": 0.001, "epsilon": 0.1}, "joint"),  # far more values than cells
        (9, {"grid": 1, "epsilon": 0.01}, "tree"),
        (1, {"grid": 1}, "margin"),
        (9, {"calibration": "paper"}, "tree"),
        (9, {"arity": 3}, "tree"),
        (9, {"max_contributions": 3}, "joint"),
        (9, {"max_contributions": 1000}, "tree"),
        (9, {"adjacency": "replace"}, "joint"),
        (9, {"priors": [pq.Cauchy(i, 1) for i in range(9)]}, "joint"),
        (29, {"priors": [pq.Cauchy(i, 1) for i in range(29)], "assume_smooth": True}, "tree"),
        (99, {"priors": [pq.Cauchy(i, 1) for i in range(99)], "epsilon": 0.1}, "tree"),
        (2, {"priors": [pq.Uniform(2, 3), pq.Uniform(0, 1)]}, "tree"),  # no joint law
        (9, {"priors": pq.from_scipy(stats.alpha(2.5))}, "tree"),
    ],
)
def test_choices_as_public_facts(m: int, facts: dict[str, Any], expected: str) -> None:
    request = asked(m, **facts)
    assert (chosen(request) if request.mechanism == "auto" else request.mechanism) == expected
    assert mechanism_for(request).name == expected


def test_few_are_drawn_where_a_budget_does_not_find_all() -> None:
    """As many as are asked for, or evenly spaced ones that are found; in a clump of quantiles, inside the clump."""
    assert drawn_levels(asked(9)) == asked(9).distinct
    few = {"epsilon": 0.1, "assume_smooth": True}
    assert drawn_levels(asked(9, **few)) == (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
    assert drawn_levels(asked(9, epsilon=0.1)) == tuple(Fraction(i, 5) for i in range(1, 5))  # no promise: one more
    assert len(drawn_levels(asked(99, assume_smooth=True))) < len(drawn_levels(asked(99))) <= 32
    clump = Request.of([0.0, *(0.9 + i / 1000 for i in range(90)), 1.0], epsilon=0.1, priors=PRIOR)
    levels = drawn_levels(clump)
    assert len(levels) == 4 and list(levels) == sorted(set(levels))
    assert all(Fraction(9, 10) < q < Fraction(99, 100) for q in levels)
    for m, epsilon, smooth in ((5, 0.01, False), (2, 1e-9, True), (1, 1, True)):
        assert drawn_levels(asked(m, epsilon=epsilon, assume_smooth=smooth)) == asked(m).distinct
    for m in range(1, 120, 7):
        for budget in (0.03, 0.1, 0.4, 1.0, 5.0):
            for smooth in (False, True):
                drawn, gap = best_drawn(m, budget, 1000.0, smooth)
                assert 1 <= drawn <= m and (math.isinf(gap) or is_found(drawn, budget * 1000.0, smooth))


NUMBERS = st.floats(-50.0, 50.0)
WIDTHS = st.floats(0.01, 50.0)
FAMILIES = st.sampled_from(["Uniform", "Normal", "Cauchy", "Laplace"])


def prior_in(family: str, loc: float, width: float, unit: float) -> pq.Prior:
    if family == "Uniform":
        return pq.Uniform((loc - width) * unit, (loc + width) * unit)
    law: pq.Prior = getattr(pq, family)(loc * unit, width * unit)
    return law


@given(
    st.lists(st.tuples(FAMILIES, NUMBERS, WIDTHS), min_size=1, max_size=3),
    st.sampled_from([1e-9, 1 / 1024, 3.0, 1000.0, 1e12]),
    st.sampled_from([2, 9, 20, 60]),
    st.sampled_from([0.02, 0.1, 1, 30]),
    st.booleans(),
    st.sampled_from([None, 10, 1000, 10**6]),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_the_choice_is_alike_in_every_unit(
    laws: Any, unit: float, m: int, epsilon: float, smooth: bool, size: int | None, on_grid: bool
) -> None:
    def facts(unit: float) -> Request:
        priors = [prior_in(*laws[i * len(laws) // m], unit) for i in range(m)]
        grid = {"grid": Fraction(1, 4) * Fraction(unit)} if on_grid else {}
        return asked(m, priors=priors, epsilon=epsilon, assume_smooth=smooth, size_guess=size, **grid)

    one, other = mechanism_for(facts(1.0)), mechanism_for(facts(unit))
    assert one.name == other.name
    if isinstance(one, Joint) and isinstance(other, Joint):
        assert one.levels == other.levels


@pytest.mark.parametrize("facts", [{}, {"grid": 0.25}, {"epsilon": 0.1}, {"size_guess": 1000, "assume_smooth": True}])
@pytest.mark.parametrize("m", [1, 9, 40])
@pytest.mark.parametrize(
    "prior",
    [
        (pq.Uniform(-10, 10), pq.Uniform(-1e4, 1e4)),
        (pq.Cauchy(1, 3), pq.Cauchy(1e3, 3e3)),
    ],
)
def test_a_release_is_alike_in_every_unit(m: int, facts: dict[str, Any], prior: tuple[pq.Prior, pq.Prior]) -> None:
    """The same uniforms, data, prior and grid times a thousand: the values are a thousand times as large."""
    x = np.random.default_rng(m).normal(size=500)
    large = facts | ({"grid": 250} if "grid" in facts else {})
    one, other = (
        pq.release(data, evenly(m), rng=5, priors=law, **{"epsilon": 1} | rest)
        for data, law, rest in ((x, prior[0], facts), (1000.0 * x, prior[1], large))
    )
    assert one.mechanism == other.mechanism and one.total == other.total
    np.testing.assert_allclose(other.values, 1000.0 * one.values, rtol=1e-7, atol=1e-4)


@pytest.mark.parametrize("facts", [{}, {"adjacency": "replace"}, {"epsilon": 0.5}])
def test_auto_has_the_law_of_what_it_chooses(facts: dict[str, Any]) -> None:
    """Exact densities are the same and the losses on neighbours are below epsilon; few outputs and a curve too."""
    x, quantiles = np.sort(np.random.default_rng(1).normal(size=60)).tolist(), evenly(9)
    options: dict[str, Any] = {"epsilon": 2, "priors": PRIOR, "size_guess": 200} | facts
    name = chosen(Request.of(quantiles, **options))
    assert name == "joint"
    neighbours = [x[1:], x[:30] + x[31:]] if options.get("adjacency") != "replace" else [[9.0, *x[1:]], [*x[:-1], -9.0]]
    for seed in range(1 if "epsilon" in facts else 4):  # few outputs or many: slow
        drawn = pq.release(x, quantiles, rng=seed, **options)
        outcome = {"values": drawn.values, "total": drawn.total} | dict(drawn.outcome)
        density = pq.log_density(x, drawn, quantiles, **options)
        assert density == pq.log_density(x, outcome, quantiles, **options)
        assert math.isfinite(density) and density == pq.log_density(x, outcome, quantiles, mechanism=name, **options)
        for y in neighbours:
            assert abs(pq.privacy_loss(x, y, outcome, quantiles, **options)) <= options["epsilon"] * (1 + 1e-12)


def test_values_that_do_not_follow_from_what_was_drawn_are_impossible() -> None:
    x, quantiles = np.random.default_rng(1).normal(size=200), evenly(9)
    options: dict[str, Any] = {"epsilon": 0.5, "priors": pq.Uniform(-1000, 1000), "size_guess": 200}
    drawn = pq.release(x, quantiles, rng=0, **options)
    outcome = {"values": drawn.values, "total": drawn.total} | dict(drawn.outcome)
    assert len(outcome["drawn"]) == 4 and math.isfinite(pq.log_density(x, outcome, quantiles, **options))
    for wrong in (
        {"values": drawn.values + 1e-9},
        {"total": drawn.total + 1},
        {"drawn": [-1.0, 0.0, 1.0, 2.0]},
        {"drawn": [0.0]},
    ):
        assert pq.log_density(x, outcome | wrong, quantiles, **options) == -math.inf


def test_totals_that_are_no_whole_numbers_are_told_rounded() -> None:
    """The grid's step is no whole number: what is released has a finite density, the numbers beside it have not."""
    x, quantiles = np.random.default_rng(1).normal(size=60), evenly(9)
    options: dict[str, Any] = {"epsilon": 0.7, "priors": PRIOR, "mechanism": "joint", "size_guess": 1000.0}
    drawn = pq.release(x, quantiles, rng=3, **options)
    assert drawn.total is not None
    found = [
        math.isfinite(pq.log_density(x, {"values": drawn.values, "total": drawn.total + i}, quantiles, **options))
        for i in (-1, 0, 1)
    ]
    assert found == [False, True, False]


@pytest.mark.parametrize("where", ["cuts", "refined"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_cells_along_cuts_of_a_joint_release(where: Any, adjacency: str) -> None:
    """The losses of the whole outcome on neighbours are below epsilon, and budgets add up to it."""
    x = np.sort(np.random.default_rng(2).normal(size=80))
    request = asked(3, epsilon=2, size_guess=400, adjacency=adjacency)
    maker = Cells(request, where=where)
    assert sum(maker.plan.budgets, Fraction(0)) == 2 and maker.plan.partition.adjacency == adjacency
    others = [np.delete(x, i) for i in (0, 40)] if adjacency == "add-remove" else [np.sort(np.append(x[1:], 9.0))]
    for seed in range(3):
        outcome = maker.draw(Points(x), Source(seed))
        far, rest = maker.log_parts(Points(x), outcome)
        assert math.isfinite(rest)
        for y in others:
            other_far, other = maker.log_parts(Points(y), outcome)
            assert abs(rest - other - float(far - other_far)) <= 2.0 * (1 + 1e-9)


def test_a_cutter_gives_what_it_says() -> None:
    cutter = joint_cutter(asked(3, priors=[pq.Normal(-1, 1), pq.Normal(0, 1), pq.Normal(1, 1)]))(
        (Fraction(1, 3), Fraction(2, 3)), Fraction(1, 2), "add-remove"
    )
    assert cutter.rho == Fraction(1, 32) and cutter.epsilon == Fraction(1, 2) and cutter.adjacency == "add-remove"
    assert cutter.plan.priors == (pq.Normal(-1, 1), pq.Normal(1, 1))
    cuts = cutter.cuts(Points(np.linspace(-1, 1, 50)), Source(0).bytes)
    assert cuts.shape == (2,) and math.isfinite(cutter.log_parts(Points(np.linspace(-1, 1, 50)), cuts)[1])


def test_sequences_keep_to_the_tree() -> None:
    days = [np.random.default_rng(i).normal(size=200) for i in range(2)]
    predictor = pq.sequential.PubPrev(evenly(9), loc=0, scale=5)
    results = pq.release_sequence(days, np.zeros((2, 0)), predictor, evenly(9), epsilon=1, rng=1)
    assert [one.mechanism for one in results] == ["tree", "tree"]


def test_more_priors_than_are_quick_are_left_to_the_tree() -> None:
    for count, expected in ((MOST_PRIORS, "joint"), (MOST_PRIORS + 1, "tree")):
        assert chosen(asked(count, priors=[pq.Cauchy(i, 1) for i in range(count)], size_guess=2000)) == expected


@pytest.mark.parametrize(
    ("m", "facts", "aim"),
    [
        (9, {}, 7.0),
        (99, {}, 22.0),
        (9, {"epsilon": 0.1, "assume_smooth": True}, 40.0),
        (99, {"assume_smooth": True}, 11.5),
    ],
)
def test_aims_of_the_largest_gap(m: int, facts: dict[str, Any], aim: float) -> None:
    """Means of a hundred releases with fixed seeds; for others the means exceed these aims with a probability below
    0.05, by their standard errors (at most a thirtieth of the aim)."""
    rng, gaps = np.random.default_rng(0), []
    for seed in range(100):
        x = rng.normal(size=1000)
        values = pq.release(x, evenly(m), rng=seed, priors=PRIOR, **{"epsilon": 1} | facts).values
        gaps.append(pq.max_gap(x, evenly(m), values))
    assert np.mean(gaps) <= aim


@pytest.mark.parametrize("m", [15, 29, 99])
def test_a_value_that_nearly_all_records_share_is_told_from_others(m: int) -> None:
    """On a grid each value has a cell of its own. Means of twelve releases with fixed seeds: about 12 records at most
    (standard error below two), where cells that hold two values each are off by hundreds."""
    options: dict[str, Any] = {"epsilon": 1, "priors": pq.Uniform(10, 120), "grid": 1, "size_guess": 1000}
    assert chosen(Request.of(evenly(m), **options)) == "cells"
    fitted = Cells(Request.of(evenly(m), **options), number=63)
    own, other = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x = np.sort(np.where(rng.random(1000) < 0.95, rng.integers(20, 100), rng.integers(10, 121, 1000))).astype(float)
        own.append(pq.max_gap(x, evenly(m), pq.release(x, evenly(m), rng=seed, **options).values))
        other.append(pq.max_gap(x, evenly(m), fitted.draw(Points(x), Source(seed)).values))
    assert np.mean(own) < 20.0 and np.mean(other) > 100.0


@pytest.mark.parametrize("grid", [None, 0.25])
def test_curves_stay_where_values_may_be(grid: float | None) -> None:
    """Two records for ninety-nine quantiles, read off a curve: increasing, inside the prior's support, on the grid."""
    options: dict[str, Any] = {"epsilon": 1, "priors": pq.Uniform(0, 3), "mechanism": "joint", "grid": grid}
    for seed in range(5):
        drawn = pq.release([1.0, 2.0], evenly(99), rng=seed, **options)
        assert "drawn" in drawn.outcome and np.all(np.diff(drawn.values) >= 0)
        assert np.all((drawn.values >= 0) & (drawn.values <= 3))
        assert grid is None or np.all(drawn.values % grid == 0)
        outcome = {"values": drawn.values, "total": drawn.total} | dict(drawn.outcome)
        assert math.isfinite(pq.log_density([1.0, 2.0], outcome, evenly(99), **options))


def test_records_with_strides_are_drawn_from() -> None:
    x = np.arange(40.0)
    options: dict[str, Any] = {"epsilon": 1, "priors": pq.Uniform(0, 40), "rng": 1, "mechanism": "joint"}
    assert pq.release(x[::2], evenly(4), **options).values.tolist() == (
        pq.release(x[::2].copy(), evenly(4), **options).values.tolist()
    )


def test_priors_that_leave_no_order_have_no_joint_release() -> None:
    """With gaps: the second output must lie above nine, the third below seven."""
    gap = pq.Mixture((pq.Uniform(0, 1), pq.Uniform(9, 10)), (1.0, 1.0))
    for priors in ([pq.Uniform(4, 5), gap, pq.Uniform(6, 7)], [pq.Uniform(1, 2), gap, pq.Uniform(0, 1)]):
        assert not is_orderable(priors) and chosen(asked(3, priors=priors)) == "tree"
        for mechanism in ("joint", "auto"):
            options: dict[str, Any] = {"epsilon": 1, "priors": priors, "mechanism": mechanism}
            if mechanism == "joint":
                with pytest.raises(ValueError, match="priors"):
                    pq.release([1.0], evenly(3), **options)
            else:
                assert np.all(np.isfinite(pq.release([1.0], evenly(3), **options).values))
    assert is_orderable([pq.Uniform(4, 5), gap, pq.Uniform(6, 11)]) and is_orderable([gap] * 3)


@pytest.mark.parametrize("far", [1e2, 1e3, 1e5])
def test_joint_outputs_may_be_unlikely_to_be_in_order(far: float) -> None:
    priors = [pq.Laplace(0, 10), pq.Uniform(-far, -3), pq.Laplace(-far, 1)]
    values = pq.release([], evenly(3), epsilon=1, priors=priors, mechanism="joint").values
    assert np.all(np.diff(values) >= 0.0) and values[2] <= -3.0


def test_whether_priors_leave_an_order_is_found_without_a_warning() -> None:
    """Nats of nine priors at the end of the floats, which is a cut of theirs, are more than the floats hold."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        seven = [[pq.Laplace(10.0 * i + place, 1.0) for i in range(7)] for place in range(9)]
        assert is_orderable([pq.Mixture(places, (1,) * 7) for places in seven])


@pytest.mark.parametrize("far", [1e9, 1e100, 1e300])
def test_priors_that_nearly_leave_no_order_have_no_joint_release(far: float) -> None:
    """A draw would not end."""
    priors = [pq.Laplace(0, 10), pq.Uniform(-far, -3), pq.Laplace(-far, 1)]
    assert chosen(asked(3, priors=priors)) == "tree"
    with pytest.raises(ValueError, match="priors must leave some mass"):
        pq.release(None, evenly(3), epsilon=1, priors=priors, mechanism="joint")


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-100, 1e-12, 1e-8, 1e-4, 1e300, math.inf])
@pytest.mark.parametrize("size", [1e3, 1e12, 1e15, 1e300])
def test_whatever_is_chosen_serves_the_budget(epsilon: float, size: float) -> None:
    """The mechanisms that draw noise or sum densities end somewhere above the least float; the choice knows."""
    for count, smooth, grid, prior in itertools.product((1, 2, 9, 33), (False, True), (None, 1), (CAUCHY, LOG_UNIFORM)):
        levels = [(i + 1) / (count + 1) for i in range(count)]
        asked: dict[str, Any] = {"priors": prior, "size_guess": size, "assume_smooth": smooth, "grid": grid}
        for adjacency in ("add-remove", "replace"):
            made = mechanism_for(Request.of(levels, epsilon=epsilon, adjacency=adjacency, **asked))
            assert made.request.budget >= made.least_budget


@pytest.mark.parametrize("epsilon", [5e-324, 1e-323])
def test_the_tree_serves_all_budgets(epsilon: float) -> None:
    """Also those of which a level's part is no float."""
    for levels in ([0.5], [0.25, 0.5], [k / 40 for k in range(1, 40)]):
        values = pq.release(np.arange(40_000.0)[::-1], levels, epsilon=epsilon, priors=CAUCHY, mechanism="tree").values
        assert np.isfinite(values).all()


@pytest.mark.parametrize(
    ("options", "least", "most"),
    [({}, 900, 1300), ({"mechanism": "tree"}, 0, 10), ({"grid": 0.01}, 0, 10)],
    ids=["auto", "tree", "grid"],
)
def test_where_a_fifth_is_zero_the_median_is_found_by_a_tree_or_on_a_grid(
    options: dict[str, Any], least: float, most: float
) -> None:
    """What the README says of ties; fixed seeds, the mean of five releases."""
    rng, n = np.random.default_rng(1), 20_000
    x = np.where(rng.random(n) < 0.2, 0.0, np.round(np.exp(7.0 + rng.normal(size=n)), 2))
    off, place = [], np.sort(x)
    for seed in range(5):
        given = {"epsilon": 1, "priors": pq.Cauchy(1000, 1000), "rng": seed} | options
        median = pq.release(x, [0.1, 0.3, 0.5, 0.7, 0.9], **given).values[2]
        below, up_to = np.searchsorted(place, median, "left"), np.searchsorted(place, median, "right")
        off.append(max(below - 0.5 * n, 0.5 * n - up_to, 0.0))
    assert least <= np.mean(off) <= most
