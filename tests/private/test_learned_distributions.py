"""Sequences that learn distributions: what a day costs, what tomorrow may depend on, and what is believed, against slow
versions and broken variants.

Losses are exact differences of log probabilities, for columns that differ in one record. What is statistical has fixed
seeds; a right learner fails those tests with probability below 1e-6, for their bounds are five deviations off or more.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy

import pq
from pq.core.decode import count_likelihood
from pq.core.request import Request
from pq.core.tracking import SHAPES, Ahead, Beliefs, Tracker
from pq.private.mechanisms import Outcome
from pq.private.mechanisms.cells import Cells
from pq.private.randomness import Source
from pq.sequential import Predictor, PubDistribution, Session, release_sequence

QUANTILES = [0.1, 0.5, 0.75]
FEATURES = np.random.default_rng(0).normal(size=(40, 2))
DAYS = [np.random.default_rng(day).normal(3 + 2 * f[0], 1.5, size=60) for day, f in enumerate(FEATURES)]


def learner(**options: Any) -> PubDistribution:
    return PubDistribution(QUANTILES, **({"loc": 0.0, "scale": 2.0, "dimension": 2, "size_guess": 100} | options))


def request(adjacency: str = "add-remove", epsilon: Any = 0.7, **options: Any) -> Request:
    facts = {"epsilon": epsilon, "priors": pq.Cauchy(0, 1), "mechanism": "cells", "adjacency": adjacency}
    return Request.of(QUANTILES, **(facts | options))


# --- privacy ----------------------------------------------------------------------------------------------------------


def drawn_days(predictor: Any, days: list[Any], facts: Request, seed: int) -> list[Outcome]:
    """Outcomes of a sequence, as a session draws them; a broken predictor looks at the records, `today`."""
    predictor, outcomes, source = copy.deepcopy(predictor), [], Source(np.random.default_rng(seed))
    for features, x in zip(FEATURES, days, strict=False):
        predictor.today = x
        maker = predictor.maker(features, facts)
        outcomes.append(maker.draw(maker.column(np.sort(x), None), source))
        predictor.note(features, maker, Noted(dict(outcomes[-1].drawn)))
    return outcomes


@dataclass(frozen=True)
class Noted:
    """Stands for a `Release`, of which the predictor reads the outcome."""

    outcome: dict[str, Any]


def log_parts(predictor: Any, days: list[Any], outcomes: list[Outcome], facts: Request) -> tuple[Fraction, float]:
    """Log density of the outcomes of a whole sequence, if the data are these, as `Mechanism.log_parts` has it."""
    predictor, far, rest = copy.deepcopy(predictor), Fraction(0), 0.0
    for features, x, outcome in zip(FEATURES, days, outcomes, strict=False):
        predictor.today = x
        maker = predictor.maker(features, facts)
        nats, other = maker.log_parts(maker.column(np.sort(x), None), outcome)
        far, rest = far + nats, rest + other
        predictor.note(features, maker, Noted(dict(outcome.drawn)))
    return far, rest


def worst_loss(predictor: Any, adjacency: str, epsilon: Any = 0.7) -> float:
    """Largest loss, in units of epsilon, between sequences of six days that differ in a record of the third."""
    facts, days, worst = request(adjacency, epsilon), DAYS[:6], 0.0
    others = [np.append(days[2], 1.0), np.append(days[2], 400.0), days[2][1:]]
    if adjacency == "replace":
        others = [np.append(days[2][1:], place) for place in (1.0, 400.0, -3.0)]
    for seed, other in itertools.product(range(4), others):
        neighbours = [*days[:2], other, *days[3:]]
        outcomes = drawn_days(predictor, days if seed % 2 else neighbours, facts, seed)
        (far, rest), (far_other, rest_other) = (log_parts(predictor, x, outcomes, facts) for x in (days, neighbours))
        if math.isinf(rest) or math.isinf(rest_other):
            return math.inf
        worst = max(worst, abs(float((far - far_other) / Fraction(facts.epsilon)) - (rest - rest_other)))
    return worst


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("epsilon", [0.01, 0.7, 4.0])
def test_a_sequence_costs_a_record_epsilon(adjacency: str, epsilon: float) -> None:
    """All releases of all days together, exactly: what a record says goes into the counts of its day and no further."""
    worst = worst_loss(learner(), adjacency, epsilon)
    assert 0.99 < worst <= 1.0


class Peeking(PubDistribution):
    """Broken: today's cells follow today's records."""

    def maker(self, features: Any, request: Request, before: Any = None) -> Any:
        made: Any = super().maker(features, request)
        around = pq.Normal(float(np.mean(self.today)), 2.0)  # type: ignore[attr-defined]
        return Cells(replace(made.request, priors=(around,) * 3), "prior", reader=made.reader)


class Remembering(PubDistribution):
    """Broken: tomorrow's cells follow the true counts of today."""

    def note(self, features: Any, maker: Any, released: Any) -> None:
        edges = np.array(released.outcome["edges"])
        records: Any = np.sort(self.today)  # type: ignore[attr-defined]
        below = np.searchsorted(records, edges, side="right")
        self._beliefs = maker.reader.after(edges, np.diff(below, prepend=0, append=len(records)))


class Spending(PubDistribution):
    """Broken: the noise of twice the budget."""

    def maker(self, features: Any, request: Request, before: Any = None) -> Any:
        return super().maker(features, replace(request, epsilon=2 * Fraction(request.epsilon)))


class Halving(PubDistribution):
    """Broken: under replace, the noise of add-remove."""

    def maker(self, features: Any, request: Request, before: Any = None) -> Any:
        return super().maker(features, replace(request, adjacency="add-remove"))


@pytest.mark.parametrize(
    ("broken", "adjacency"),
    [(Peeking, "add-remove"), (Remembering, "add-remove"), (Spending, "add-remove"), (Halving, "replace")],
)
def test_a_sequence_that_leaks_is_told(broken: type[PubDistribution], adjacency: str) -> None:
    predictor = broken(QUANTILES, loc=0.0, scale=2.0, dimension=2, size_guess=100)
    assert worst_loss(predictor, adjacency) > 1.5


def test_a_session_charges_epsilon_a_day_and_the_zcdp_of_counts() -> None:
    ledger = pq.Ledger(1, delta=1e-6)
    result = release_sequence(DAYS[:3], FEATURES[:3], learner(), QUANTILES, epsilon=0.5, ledger=ledger, rng=0)
    assert result.guarantee.epsilon == 0.5 and result.guarantee.learning_epsilon == 0
    assert {entry.rho for entry in ledger.entries} == {Fraction(1, 8)}


# --- what is believed, against slow versions --------------------------------------------------------------------------


def ahead(rate: float = 0.5, dimension: int = 2) -> Ahead:
    """Beliefs of a fourth day."""
    tracker, rng = Tracker(1.0, 2.0, dimension, 300.0), np.random.default_rng(1)
    beliefs = tracker.start()
    for day in range(3):
        today = tracker.ahead(beliefs, np.append(FEATURES[day, :dimension], 1.0), rate)
        edges = np.interp(np.arange(1, 8) / 8, np.arange(1, 1024) / 1024, today.table())
        records = rng.normal(2 + FEATURES[day, 0], 3, size=400)
        counts = np.diff(np.searchsorted(np.sort(records), edges), prepend=0, append=400)
        beliefs = today.after(edges, counts)
    return tracker.ahead(beliefs, np.append(FEATURES[3, :dimension], 1.0), rate)


def expected_counts(today: Ahead, mean: Any, edges: Any) -> Any:
    """Records to expect in each cell at one point of what beliefs are about, record by record of the law."""
    d, tracker = today.tracker.dimension, today.tracker
    w, u, (a, b), n, s = (
        mean[: d + 1],
        mean[d + 1 : 2 * d + 2],
        mean[2 * d + 2 : 2 * d + 4],
        mean[2 * d + 4],
        mean[-SHAPES:],
    )
    weights = [math.exp(v) for v in s]
    below = [0.0]
    for edge in edges:
        z = ((edge - tracker.loc) / tracker.scale - w @ today.known - a) / math.exp(u @ today.known + b)
        level = scipy.stats.t(2).cdf(z)
        inside = [min(max(level * SHAPES - k, 0.0), 1.0) for k in range(SHAPES)]
        below.append(sum(p * share for p, share in zip(weights, inside, strict=True)) / sum(weights))
    return n * np.diff([*below, 1.0])


def test_counts_are_linear_as_differences_say() -> None:
    """Slopes of the expected counts by everything that beliefs are about, against central differences of the law."""
    today, edges = ahead(), np.array([-4.0, 0.0, 1.3, 2.0, 5.5])
    mean = today.beliefs.mean + 0.1 * np.random.default_rng(3).normal(size=len(today.beliefs.mean))
    spot = today._spot(Beliefs(mean, np.zeros_like(today.beliefs.covariance)))
    slopes, _, _ = today._linear(edges, np.full(6, 50.0), Beliefs(mean, today.beliefs.covariance), spot)
    for place in range(len(mean)):
        step = np.zeros(len(mean))
        step[place] = 1e-5 * max(1.0, abs(mean[place]))
        sides = [expected_counts(today, mean + sign * step, edges) for sign in (1, -1)]
        assert np.allclose(slopes[:, place], (sides[0] - sides[1]) / (2 * step[place]), rtol=1e-4, atol=1e-4)


def test_the_likelihood_is_that_of_a_gaussian_and_laplace_noise() -> None:
    """Density and score, against integrals over the Gaussian that stands for Poisson's law."""
    for rate, mean, count in itertools.product((0.05, 0.4, 3.0), (2.0, 60.0), (-30.0, 1.0, 55.0, 90.0)):

        def exact(at: float, rate: float = rate, mean: float = mean, count: float = count) -> float:
            """The density times what does not depend on where the Gaussian is."""
            spread, law = math.sqrt(mean), scipy.stats.norm(at, math.sqrt(mean))
            ends, far = (at - 12 * spread, at + 12 * spread), 40 / rate
            places = sorted(
                {min(max(place, ends[0]), ends[1]) for place in (*ends, at, count, count - far, count + far)}
            )
            parts = itertools.pairwise(places)
            inside = [
                scipy.integrate.quad(lambda t: law.pdf(t) * math.exp(rate * (far - abs(count - t))), *part)[0]
                for part in parts
            ]
            return math.log(sum(inside) * rate / 2) - rate * far

        score, _, log_density = (float(found) for found in count_likelihood(np.float64(count), np.float64(mean), rate))  # type: ignore[arg-type]
        assert abs(log_density - exact(mean)) < 1e-6
        assert abs(score - (exact(mean + 1e-3) - exact(mean - 1e-3)) / 2e-3) < 1e-4 * rate


def test_beliefs_after_a_day_are_those_of_bayes() -> None:
    """Place and width of a day, against the posterior by a sum over a fine grid, all else being known."""
    tracker, rate = Tracker(0.0, 1.0, 0, 500.0), 0.3
    start = tracker.start()
    sharp = start.covariance.copy()
    sharp[tracker.size_at] = sharp[:, tracker.size_at] = 0.0
    sharp[tracker.shapes, tracker.shapes] = 0.0
    today = Ahead(tracker, Beliefs(start.mean, sharp), np.ones(1), rate)
    edges = np.array([-2.0, -0.5, 0.5, 2.0])
    counts = np.array([20, 90, 260, 110, 25])
    grid = np.stack([axis.ravel() for axis in np.meshgrid(np.linspace(-3, 3, 401), np.linspace(-3, 3, 301))])
    means = 500 * np.diff(
        scipy.stats.t(2).cdf((edges - grid[0][:, None]) / np.exp(grid[1])[:, None]), prepend=0, append=1
    )
    fit = count_likelihood(counts.astype(float), np.maximum(means, 1e-3), rate)[2].sum(axis=1)
    weights = scipy.special.softmax(fit - 0.5 * grid[0] ** 2 / 4.0 - 0.5 * grid[1] ** 2)
    truth = grid @ weights
    deviations = np.sqrt((grid - truth[:, None]) ** 2 @ weights)
    after = today.after(edges, counts)
    found, own = after.mean[list(tracker.constants)], np.sqrt(after.covariance[tracker.constants, tracker.constants])
    assert np.all(np.abs(found - truth) < 0.25 * deviations)
    assert np.all((own / deviations > 0.7) & (own / deviations < 1.4))


def test_what_is_read_off_is_the_law_and_the_counts() -> None:
    """With noise that drowns the day the law that is believed; without noise the counts themselves."""
    edges = np.array([-4.0, 0.0, 1.3, 2.0, 5.5])
    counts = np.array([40, 60, 30, 50, 90, 30])
    drowned = replace(ahead(), rate=1e-9)
    assert np.allclose(
        drowned.read(edges, counts).quantile(np.array([0.25, 0.5])), drowned.table()[[255, 511]], atol=0.1
    )
    law = ahead(10.0).read(edges, counts)
    assert np.allclose(np.interp(edges, law.edges, np.cumsum(law.records)[:-1]), np.cumsum(counts)[:-1], atol=0.5)


# --- learning ---------------------------------------------------------------------------------------------------------


def late_error(kind: Callable[..., Any], epsilon: float, seed: int = 0) -> float:
    """Mean distance of the expected median from the true one, in the last third of forty days."""
    session = Session(kind(), QUANTILES, epsilon=epsilon, rng=seed)
    off = []
    for features, x in zip(FEATURES, DAYS, strict=True):
        law = session.predictor.priors(features)[0]
        off.append(abs(float(law.quantile_between(-math.inf, math.inf, np.array([0.5]))[0]) - 3 - 2 * features[0]))
        session.step(features, x)
    return float(np.mean(off[26:]))


class Deaf(PubDistribution):
    """Broken: learns nothing."""

    def note(self, features: Any, maker: Any, released: Any) -> None:
        pass


class Featureless(PubDistribution):
    """Broken: takes the features for zero."""

    def known(self, features: Any) -> Any:
        return super().known(np.zeros_like(features))


def test_it_learns_where_the_next_day_will_be() -> None:
    """From forty days of sixty records: the feature moves the median by two, and noise at epsilon 1 is in the way."""
    assert late_error(learner, 1.0) < 0.65 and late_error(learner, 0.3) < 0.9
    for broken in (Deaf, Featureless):
        assert late_error(lambda b=broken: b(QUANTILES, loc=0.0, scale=2.0, dimension=2, size_guess=100), 1.0) > 1.0


def test_a_break_is_seen_and_survived() -> None:
    """From the tenth day on all records are sixty times as large; a tracker that believes in no jumps is lost."""
    rng = np.random.default_rng(0)
    days = [rng.normal(120, 30, size=900) * (60 if day >= 10 else 1) for day in range(25)]
    session = Session(learner(loc=100.0, scale=20.0, robust=pq.HalfCauchy(100.0)), QUANTILES, epsilon=1, rng=0)
    values = np.array([session.step([0.0, 0.0], x).values for x in days])
    assert abs(values[9][1] - 120) < 5 and abs(values[-1][1] - 7200) < 300


def test_units_do_not_matter() -> None:
    """Data and guesses a thousand times as large: so are the released values."""
    one = release_sequence(DAYS[:8], FEATURES[:8], learner(), QUANTILES, epsilon=1, rng=3)
    wide = learner(scale=2000.0, robust=pq.Cauchy(0.0, 2000.0))
    other = release_sequence([1000 * x for x in DAYS[:8]], FEATURES[:8], wide, QUANTILES, epsilon=1, rng=3)
    for a, b in zip(one, other, strict=True):
        assert np.allclose(1000 * a.values, b.values, rtol=1e-6)


# --- a predictor like the others --------------------------------------------------------------------------------------


def beliefs(predictor: Predictor) -> Any:
    return predictor._beliefs.mean  # type: ignore[attr-defined]


def test_priors_change_nothing_and_depend_on_released_counts_only() -> None:
    session = Session(learner(), QUANTILES, epsilon=1, rng=0)
    for day in range(3):
        before = beliefs(session.predictor).copy()
        priors = session.predictor.priors(FEATURES[day])
        assert np.array_equal(beliefs(session.predictor), before) and len(set(priors)) == 1
        assert list(session.step(FEATURES[day], DAYS[day]).priors) == priors
        assert not np.array_equal(beliefs(session.predictor), before)


def test_a_saved_session_goes_on_where_it_was(tmp_path: Path) -> None:
    one = Session(learner(), QUANTILES, epsilon=1, rng=0)
    for day in range(4):
        one.step(FEATURES[day], DAYS[day])
    one.save(tmp_path / "state")
    other = Session.resume(tmp_path / "state", rng=1, like=Session(learner(), QUANTILES, epsilon=1))
    assert np.array_equal(beliefs(one.predictor), beliefs(other.predictor)) and other.count == 4
    assert one.predictor.priors(FEATURES[4]) == other.predictor.priors(FEATURES[4])
    apart = copy.copy(other)
    other.step(FEATURES[4], DAYS[4])
    assert np.array_equal(beliefs(apart.predictor), beliefs(one.predictor))
    one.save(tmp_path / "state")
    with pytest.raises(ValueError, match="predictor"):
        Session.resume(tmp_path / "state", like=Session(learner(size_guess=99), QUANTILES, epsilon=1))


def test_a_release_tells_further_quantiles_intervals_and_itself() -> None:
    session = Session(learner(), QUANTILES, epsilon=2, rng=0)
    for day in range(20):
        released = session.step(FEATURES[day], DAYS[day])
        assert np.array_equal(released.quantile(QUANTILES), released.values)
        again = pq.Release.from_dict(released.to_dict())
        assert np.array_equal(again.quantile([0.3]), released.quantile([0.3])) and released.mechanism == "cells"
        low, high = released.interval(0.999999).T
        assert np.all((low <= np.quantile(DAYS[day], QUANTILES)) & (np.quantile(DAYS[day], QUANTILES) <= high))


def test_on_a_grid_values_are_its_multiples() -> None:
    days = [np.rint(x) for x in DAYS[:10]]
    for released in release_sequence(days, FEATURES[:10], learner(), QUANTILES, epsilon=1, grid=1, rng=0):
        assert np.array_equal(released.values, np.rint(released.values))


@pytest.mark.parametrize("scale", [1e300, 1.0, 5e-324])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, math.inf])
@pytest.mark.filterwarnings("error")
def test_odd_data_never_raise_or_warn(scale: float, epsilon: float) -> None:
    odd = [[], [math.nan] * 5, [math.inf, -math.inf] * 40, [1e308] * 300, [0.0] * 1000, [5e-324, -1e308]]
    predictor = learner(scale=scale, robust=pq.Cauchy(0.0, scale))
    for released in release_sequence(odd, FEATURES[:6], predictor, QUANTILES, epsilon=epsilon, rng=0):
        assert np.isfinite(released.values).all() and np.all(np.diff(released.values) >= 0)
        assert sorted(released.outcome) == ["counts", "edges", "law_edges", "law_records", "places"]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"loc": math.nan}, "loc"),
        ({"loc": [0.0, 1.0, 2.0]}, "loc"),
        ({"scale": 0.0}, "scale"),
        ({"dimension": -1}, "dimension"),
        ({"robust": 3}, "robust"),
        ({"robust_weight": 1.0}, "robust_weight"),
        ({"size_guess": -1}, "size_guess"),
    ],
)
def test_bad_arguments_are_refused_by_name(options: dict[str, Any], name: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{name} must"):
        learner(**options)


def test_what_it_cannot_serve_is_refused_before_data() -> None:
    options: Any
    for options, name in (
        ({"mechanism": "tree"}, "mechanism"),
        ({"calibration": "sharp"}, "calibration"),
        ({"size_guess": 9}, "size_guess"),
    ):
        with pytest.raises(ValueError, match=f"^{name}"):
            Session(learner(), QUANTILES, epsilon=1, **options)
    with pytest.raises(ValueError, match=r"^epsilon"):
        Session(learner(), QUANTILES, epsilon=1e-12)
    with pytest.raises(ValueError, match=r"^features"):
        learner().priors([1.0])
    with pytest.raises(TypeError, match=r"^maker"):
        learner().note(FEATURES[0], Cells(request(), "prior"), None)  # type: ignore[arg-type]


FAR = [0.0, 1e308, -1.7e308, 1e17, -1e-308]
WIDE = [5e-324, 1e-300, 1.0, 1e150, 1.7e308]


@pytest.mark.parametrize("robust", [None, pq.Uniform(-1, 1)], ids=str)
@pytest.mark.parametrize("feature", [0.0, 1e10, -1e150, 1.7e308])
def test_no_public_number_makes_a_paid_day_fail(robust: Any, feature: float) -> None:
    """Laws, edges and widths left the floats, and the release raised after its charge."""
    rng = np.random.default_rng(0)
    for loc, scale in itertools.product(FAR, WIDE):
        predictor = PubDistribution([0.25, 0.5], loc=loc, scale=scale, dimension=1, robust=robust)
        session = Session(predictor, [0.25, 0.5], epsilon=1)
        for day, size in enumerate((1.0, 1e300, 1e308)):
            values = session.step([feature if day else 1.0], rng.uniform(-1, 1, size=200) * size).values
            assert np.isfinite(values).all() and (values[1:] >= values[:-1]).all()


@pytest.mark.parametrize(
    "prior", [pq.Laplace(0, 1e308), pq.Uniform(-1.7e308, 1.7e308), pq.Cauchy(-1e308, 1.7e308)], ids=str
)
@pytest.mark.parametrize("mechanism", ["cells", "mixed"])
def test_cells_lie_within_the_floats(prior: pq.core.priors.Prior, mechanism: str) -> None:
    """Between numbers that are far apart straight lines have no slope that is a float."""
    for x in (np.arange(100.0) * 1e306, np.full(50, -1.7e308), []):
        for size in (50, 10**6):
            options: dict[str, Any] = {"priors": prior, "mechanism": mechanism, "size_guess": size}
            for smooth in (False, True):
                values = pq.release(x, [0.01, 0.5, 0.99], epsilon=1, assume_smooth=smooth, **options).values
                assert np.isfinite(values).all() and (values[1:] >= values[:-1]).all()


def test_features_of_any_size_end_no_day_that_is_paid_for() -> None:
    """Squares of what is believed of places and widths together leave the floats. At 1e9 records what is believed of
    their number ends, whatever was guessed."""
    for first in (1e150, 1e300, -1e308):
        for seed in range(6):
            own = PubDistribution([0.5], loc=0.0, scale=1.0, dimension=1, size_guess=1e300)
            session = Session(own, [0.5], epsilon=1, rng=seed, ledger=pq.Ledger(10), individuals="overlap")
            for feature in (first, 1e150, 0.0):
                assert np.isfinite(session.step([feature], [1.0, 2.0]).values).all()
