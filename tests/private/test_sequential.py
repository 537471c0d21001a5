"""Sequential release: what predictors may see, what is charged, and that lockstep is one sequence after another."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import pq
from pq import sequential
from pq.core.budget.composition import Cost, releases_epsilon
from pq.core.budget.ledger import Ledger
from pq.core.choices import Calibration
from pq.core.request import Request
from pq.learners import StepsExceeded, private_noise_std, square_root_variances
from pq.losses import laplace_linear, proxy_interval, widen
from pq.private.columns.cells import Points
from pq.private.mechanisms.tree import Tree
from pq.private.noise_ftrl import shorten
from pq.private.sequential import session as sessions
from pq.private.sequential.learned import optimal_interval
from pq.sequential import DPLearned, NonPrivate, PubPrev, PubProx, Session, Standardise, Static, release_sequence
from pqlab.experiments import sequential as experiments
from pqlab.experiments.sequential import Day, Lockstep, Releaser
from pqlab.experiments.sequential_tasks import TASKS, Private, make_predictor
from pqlab.experiments.static import even_quantiles

QUANTILES = [0.1, 0.5, 0.75]
EVEN = even_quantiles(9)
LEARNT: dict[str, Any] = {"loc": 1.0, "scale": 2.0, "resolution": 0.1, "dimension": 2}
PRIVATE: dict[str, Any] = {"steps": 50, "epsilon": Fraction(3, 10), "delta": 1e-6, "rng": 0}


def predictors() -> dict[str, sequential.Predictor]:
    robust = pq.Cauchy(1, 2)
    return {
        "static": Static(pq.Cauchy(0, 1), QUANTILES),
        "prev": PubPrev(QUANTILES, loc=1.0, scale=2.0, robust=robust),
        "prox": PubProx(QUANTILES, robust=robust, **LEARNT),
        "private": DPLearned(QUANTILES, robust=robust, **LEARNT, **PRIVATE),
        "open": NonPrivate(QUANTILES, **LEARNT),
    }


def days(count: int, seed: int = 0) -> tuple[list[np.ndarray[Any, Any]], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, 2))
    return [np.sort(rng.normal(f[0], 1.0, size=40)) for f in features], features


def tree(quantiles: Any, priors: Any, **options: Any) -> Tree:
    return Tree(Request.of(quantiles, priors=priors, **(sessions._OPTIONS | options)))


# --- what predictors see ----------------------------------------------------------------------------------------------


class Untouchable:
    """Data that say when somebody looks."""

    dtype = np.dtype(np.float64)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("a public predictor has seen the records")

    def __len__(self) -> int:
        raise AssertionError("a public predictor has counted the records")


@pytest.mark.parametrize("name", ["static", "prev", "prox"])
def test_public_predictors_see_released_values_only(name: str) -> None:
    """Two runs that release the same values give the same priors, whatever the data were."""
    predictor = predictors()[name]
    assert not predictor.private and not hasattr(predictor, "learn")
    other = copy.deepcopy(predictor)
    for released in ([0.0, 1.0, 2.0], [1.0, 1.0, 1.0], [-5.0, 0.0, 1e9]):
        assert predictor.priors([1.0, 2.0]) == other.priors([1.0, 2.0])
        predictor.observe([1.0, 2.0], released)
        other.observe([1.0, 2.0], released)


def test_only_private_predictors_are_shown_data(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []
    for cls in (DPLearned, NonPrivate):
        monkeypatch.setattr(cls, "learn", lambda self, f, x: shown.append(type(self).__name__))
    datasets, features = days(2)
    for predictor in predictors().values():
        release_sequence(datasets, features, predictor, QUANTILES, epsilon=1, rng=0)
    assert shown == ["DPLearned"] * 2 + ["NonPrivate"] * 2


@pytest.mark.parametrize("name", list(predictors()))
def test_priors_of_a_day_do_not_depend_on_its_data_nor_on_later_ones(name: str) -> None:
    """Priors come before the data: with another last day all releases before it and the last priors are the same."""
    datasets, features = days(6)
    one = release_sequence(datasets, features, predictors()[name], QUANTILES, epsilon=1, rng=5)
    other = release_sequence(
        [*datasets[:-1], np.full(9, 77.0)], features, predictors()[name], QUANTILES, epsilon=1, rng=5
    )
    assert all(np.array_equal(a.values, b.values) for a, b in zip(one[:-1], other[:-1], strict=True))
    assert [a.priors for a in one] == [b.priors for b in other]
    assert not np.array_equal(one[-1].values, other[-1].values)


# --- a joint prior ----------------------------------------------------------------------------------------------------


def joint_belief() -> pq.JointPrior:
    return pq.JointPrior([[pq.Normal(a + q, 1.0) for q in (-1.0, 0.0, 1.0)] for a in (-4.0, 0.0, 4.0)], [1, 2, 1])


def test_static_joint_priors_release_jointly() -> None:
    """Day after day the release of `pq.release` with the joint prior, from the same stream; quantiles in any order."""
    datasets, features = days(3)
    for quantiles, belief in (
        (QUANTILES, joint_belief()),
        (QUANTILES[::-1], pq.JointPrior([one[::-1] for one in joint_belief().members], [1, 2, 1])),  # type: ignore[index]
        ([0.5], pq.JointPrior([pq.Cauchy(0, 1), pq.Cauchy(5, 1)], [1, 1])),
    ):
        for options in ({}, {"mechanism": "joint"}, {"mechanism": "auto", "adjacency": "replace"}):
            found = release_sequence(
                datasets, features, Static(belief, quantiles), quantiles, epsilon=2, rng=3, **options
            )
            rng = np.random.default_rng(3)
            rng.spawn(1)
            alone = [pq.release(x, quantiles, epsilon=2, priors=belief, rng=rng, **options) for x in datasets]
            assert [one.values.tolist() for one in found] == [one.values.tolist() for one in alone]
            assert all(one.mechanism == "joint" and one.joint_prior == belief for one in found)


def test_what_a_joint_prior_cannot_serve_is_refused_before_data() -> None:
    belief = joint_belief()
    options: Any
    for options, name in (
        ({"mechanism": "tree"}, "mechanism"),
        ({"mechanism": "cells"}, "mechanism"),
        ({"calibration": "sharp"}, "calibration"),
        ({"epsilon": math.inf}, "epsilon"),
    ):
        with pytest.raises(ValueError, match=f"^{name}"):
            Session(Static(belief, QUANTILES), QUANTILES, **({"epsilon": 1} | options))
    with pytest.raises(ValueError, match=r"^priors must have one prior per quantile: got 3 for 2"):
        Static(belief, [0.1, 0.5])
    for wrong in (3, [3], [belief], None):
        with pytest.raises(TypeError, match=r"^priors must be"):
            Static(wrong, [0.5])  # type: ignore[arg-type]


# --- learning ---------------------------------------------------------------------------------------------------------


def test_gradients_are_those_of_the_loss() -> None:
    """Against `pq.losses.laplace_linear` in units of the guess, at a point that is not the start."""
    predictor = PubProx(QUANTILES, **LEARNT)
    rng = np.random.default_rng(3)
    for _ in range(200):
        predictor.observe(rng.normal(size=2), np.sort(rng.normal(3, 1, size=3)))
    maps, phi = predictor.parameters()
    assert np.all(maps != 0) and np.all(phi != 1)
    known, released = np.array([0.5, -2.0, 1.0]), np.array([0.0, 2.0, 7.0])
    low, high = (((end - 1.0) / 2.0) for end in proxy_interval(released, 0.1))
    found = predictor.gradients(known[:2], *proxy_interval(released, 0.1))
    for i in range(3):  # each quantile on its own
        one = slice(i, i + 1)
        _, by_map, by_phi = laplace_linear(maps[one], phi[one], known, low[one], high[one], min_width=0.05)
        np.testing.assert_allclose(found[0][one], by_map, rtol=1e-9)
        np.testing.assert_allclose(found[1][one], by_phi, rtol=1e-9)
    private = DPLearned(QUANTILES, **LEARNT, **PRIVATE)  # all together
    _, by_map, by_phi = laplace_linear(*private.parameters(), known, low, high, min_width=0.05)
    found = private.gradients(known[:2], *proxy_interval(released, 0.1))
    np.testing.assert_allclose(found[0], by_map, rtol=1e-9)
    np.testing.assert_allclose(found[1], by_phi, rtol=1e-9)


def test_true_intervals_are_widened_to_the_resolution_and_may_be_empty() -> None:
    predictor = NonPrivate([0.5], loc=0.0, scale=1.0, resolution=0.5, dimension=0)
    found = predictor.gradients([], *optimal_interval([3.0, 3.0, 3.0, 3.0], predictor.quantiles))
    expected = laplace_linear([[0.0]], [1.0], [1.0], *widen([3.0], [3.0], 0.5))
    np.testing.assert_allclose(found[0], expected[1])
    np.testing.assert_allclose(found[1], expected[2])
    nothing = predictor.gradients([], *optimal_interval([], predictor.quantiles))
    assert not nothing[0].any() and not nothing[1].any()


def test_optimal_interval_ranks_are_exact() -> None:
    x = np.arange(1.0, 101.0)
    low, high = optimal_interval(x, (Fraction(29, 100), Fraction(57, 100)))
    assert low.tolist() == [29.0, 57.0] and high.tolist() == [30.0, 58.0]


@pytest.mark.parametrize("kind", [PubProx, DPLearned])
def test_freak_values_break_nothing(kind: Any) -> None:
    """Hundreds of scales off, where some quantiles have a share of e^-600 in a joint loss, or at the end of floats."""
    options = {**LEARNT, "loc": 0.0, "scale": 1.0} | (PRIVATE | {"steps": 500} if kind is DPLearned else {})
    predictor = kind(QUANTILES, **options)
    for released in ([-700.0, 0.0, 0.1], [-1e308, 0.0, 1e308], *[[-1.0, 2.0, 2.1]] * 200):
        low = np.array(released)
        with np.errstate(all="ignore"):
            if predictor.private:
                predictor.learn_intervals([1.0, 0.5], low, low + 0.1)
            else:
                predictor.observe([1.0, 0.5], low)
        assert np.isfinite(predictor.laplaces([1.0, 2.0])).all()
    if kind is PubProx:
        assert predictor.priors([1.0, 0.5])[1].loc > 0.5


def test_public_constants_standardise() -> None:
    assert Standardise([10.0, 0.0], [5.0, 2.0])([20.0, 3.0]).tolist() == [2.0, 1.5, 1.0]
    assert Standardise()([[1.0], [2.0]]).tolist() == [[1.0, 1.0], [2.0, 1.0]]
    with pytest.raises(ValueError, match="scale"):
        Standardise(0.0, 0.0)
    with pytest.raises(ValueError, match="features"):
        Standardise([1.0, 2.0], 1.0)([1.0, 2.0, 3.0])


def test_unit_of_the_data_changes_nothing_but_the_unit() -> None:
    """In thousandths: the priors are those in units, scaled."""
    rng = np.random.default_rng(0)
    one = PubProx([0.5], loc=1.0, scale=2.0, resolution=0.1, dimension=2)
    other = PubProx([0.5], loc=1000.0, scale=2000.0, resolution=100.0, dimension=2)
    for _ in range(100):
        features, o = rng.normal(size=2), rng.normal()
        one.observe(features, [o])
        other.observe(features, [1000.0 * o])
    (a,), (b,) = one.priors([1.0, 1.0]), other.priors([1.0, 1.0])
    assert b.loc == pytest.approx(1000 * a.loc) and b.scale == pytest.approx(1000 * a.scale)


@pytest.mark.parametrize("kind", [PubPrev, PubProx, NonPrivate, DPLearned])
def test_copies_in_lockstep_are_the_predictors_one_by_one(kind: Any) -> None:
    options = {PubPrev: {"loc": 1.0, "scale": 2.0}, DPLearned: LEARNT | PRIVATE | {"epsilon": 1e12}}.get(kind, LEARNT)
    together, alone = kind(QUANTILES, copies=2, **options), [kind(QUANTILES, **options) for _ in range(2)]
    rng = np.random.default_rng(0)
    for _ in range(40):
        features, released = rng.normal(size=(2, 2)), np.sort(rng.normal(2, 3, size=(2, 3)))
        loc, scale = together.laplaces(features)
        for row, one in enumerate(alone):
            a, b = one.laplaces(features[row])
            np.testing.assert_allclose([loc[row], scale[row]], [a, b], rtol=1e-4, atol=1e-4)
        both = [(features, released), *zip(features, released, strict=True)]
        for predictor, (f, o) in zip([together, *alone], both, strict=True):
            predictor.learn_intervals(f, o, o + 0.2) if predictor.private else predictor.observe(f, o)


# --- privacy of DPLearned ---------------------------------------------------------------------------------------------


def test_budgets_of_release_and_both_runs_add_up() -> None:
    predictor = DPLearned(QUANTILES, map_share=Fraction(1, 3), **LEARNT, **PRIVATE)
    session = Session(predictor, QUANTILES, epsilon=1)
    assert session.release_epsilon + sum(predictor.epsilons) == 1
    assert predictor.epsilons == (Fraction(1, 10), Fraction(1, 5)) and sum(predictor.deltas) <= 1e-6 * (1 + 1e-12)
    released = session.step([0.0, 0.0], [1.0])
    assert released.epsilon == 0.7 and released.plan.epsilon == Fraction(7, 10)
    assert (session.guarantee.epsilon, session.guarantee.delta) == (1.0, 1e-6)
    assert "0.7 for the release and (0.3, 1e-06) for learning" in str(session.guarantee)


@pytest.mark.parametrize("mechanism", ["tree", "tree-refined", "square-root"])
def test_noise_is_that_of_the_clipped_sensitivity(mechanism: str) -> None:
    """For T = 64 steps it counts 7 nodes, not the paper's 6: the point after the last gradient is shown too."""
    options = PRIVATE | {"steps": 64, "clip": (0.5, 2.0), "mechanism": mechanism}
    predictor = DPLearned(QUANTILES, **LEARNT, **options)
    for part, bound in enumerate((0.5, 2.0)):
        needed = private_noise_std(64, epsilon=0.15, delta=5e-7, gradient_sensitivity=2 * bound, mechanism=mechanism)
        assert needed <= predictor._noise(part) < needed * (1 + 1e-6)
        assert predictor._runs[part]._noise_std == predictor._noise(part)
        assert predictor._runs[part]._clip == bound
    if mechanism == "tree":
        assert predictor._noise(0) == pytest.approx(
            math.sqrt(7) * private_noise_std(1, epsilon=0.15, delta=5e-7, gradient_sensitivity=1.0)
        )


def test_one_data_set_moves_the_private_sums_by_no_more_than_the_sensitivity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise: the sums of two runs that differ in one whole data set are within twice the clip, always.

    The later gradients are fed the same points here (steps of size ~0), as the adaptive analysis of the mechanism
    lets them be.
    """
    monkeypatch.setattr(DPLearned, "_noise", lambda self, part: 0.0)
    wild = [np.full(5, 1e300), np.array([]), np.array([math.inf, -math.inf]), np.full(3, math.nan), np.arange(9) * 1e5]
    datasets, features = days(8)
    for clip in ((0.3, 0.2), (1e-3, 5.0)):
        options = LEARNT | PRIVATE | {"step": (1e-9, 1e-9), "clip": clip}
        for odd in wild:
            one, other = (DPLearned(QUANTILES, **options) for _ in range(2))
            for day, (f, x) in enumerate(zip(features, datasets, strict=True)):
                one.learn(f, x)
                other.learn(f, odd if day == 3 else x)
            for a, b, bound in zip(one._runs, other._runs, clip, strict=True):
                moved = np.linalg.norm((a.point - b.point) / 1e-9)
                assert moved <= 2 * bound + 1e-5  # digits lost by dividing by the step


def test_shortening() -> None:
    rng = np.random.default_rng(0)
    gradient = rng.normal(size=(5, 3, 4)) * 10.0 ** rng.integers(-3, 300, size=(5, 1, 1))
    short = shorten(gradient, 0.5, 1)
    norms = np.array([np.linalg.norm(row) for row in short])
    assert np.all(norms <= 0.5 * (1 + 1e-12))
    assert not shorten(np.array([math.nan, math.inf]), 1.0).any()
    small = np.array([0.1, -0.2])
    assert np.array_equal(shorten(small, 1.0), small)


def test_more_data_sets_than_planned_are_refused() -> None:
    datasets, features = days(3)
    predictor = DPLearned(QUANTILES, **LEARNT, **PRIVATE | {"steps": 2})
    with pytest.raises(StepsExceeded):
        release_sequence(datasets, features, predictor, QUANTILES, epsilon=1)


def test_a_private_predictor_is_used_once_and_fresh_sequences_draw_fresh_noise() -> None:
    datasets, features = days(3)
    predictor = DPLearned(QUANTILES, **LEARNT, **PRIVATE)
    one, other = (release_sequence(datasets, features, predictor, QUANTILES, epsilon=1) for _ in range(2))
    assert one[0].priors == other[0].priors and one[1].priors != other[1].priors
    predictor.learn([0.0, 0.0], [1.0])
    with pytest.raises(ValueError, match="predictor must be a new one"):
        Session(predictor, QUANTILES, epsilon=1)


# --- the loop ---------------------------------------------------------------------------------------------------------


def test_releases_are_those_of_the_core() -> None:
    datasets, features = days(4)
    priors = [pq.Laplace(0, 1), pq.Cauchy(1, 1), pq.Uniform(-9, 9)]
    found = release_sequence(datasets, features, Static(priors, QUANTILES), QUANTILES, epsilon=0.5, rng=7)
    rng = np.random.default_rng(7)
    for x, released in zip(datasets, found, strict=True):
        expected = pq.release(x, QUANTILES, epsilon=0.5, priors=priors, mechanism="tree", rng=rng)
        np.testing.assert_allclose(released.values, expected.values, rtol=1e-9)
        assert released.epsilon == 0.5 and released.priors == tuple(priors)


@pytest.mark.parametrize("name", list(predictors()))
def test_odd_days_are_ordinary_days(name: str) -> None:
    odd: list[Any] = [[], [math.nan], [math.inf] * 3, np.full(7, 2.0), [1e308, -1e308], [5], [None, 3.0]]
    features = np.random.default_rng(0).normal(size=(len(odd), 2))
    found = release_sequence(odd, features, predictors()[name], QUANTILES, epsilon=1, rng=0)
    assert len(found) == len(odd)
    assert all(np.all(np.isfinite(r.values)) and np.all(np.diff(r.values) >= 0) for r in found)


def test_options_reach_the_release() -> None:
    found = release_sequence(
        [[1.2, 2.7]] * 2,
        np.zeros((2, 2)),
        predictors()["prox"],
        QUANTILES,
        epsilon=1,
        grid=0.5,
        adjacency="replace",
        calibration="paper",
        rng=0,
    )
    assert all(np.array_equal(r.values * 2, np.round(r.values * 2)) and r.adjacency == "replace" for r in found)
    assert found.guarantee.adjacency == "replace"


def test_disjoint_people_share_a_pool_and_others_add_up() -> None:
    datasets, features = days(3)
    ledger = Ledger(1, delta=1e-6)
    release_sequence(datasets, features, predictors()["private"], QUANTILES, epsilon=1, ledger=ledger)
    assert ledger.remaining == 0 and len(ledger.entries) == 3
    with pytest.raises(ValueError, match=r"spend|fit"):  # another sequence may be about the same people
        release_sequence(datasets, features, predictors()["prev"], QUANTILES, epsilon=0.1, ledger=ledger)
    ledger = Ledger(0.3)
    people = {"individuals": "overlap", "ledger": ledger}
    found = release_sequence(datasets, features, predictors()["prox"], QUANTILES, epsilon=0.1, **people)
    assert ledger.remaining == 0 and found.guarantee.epsilon == pytest.approx(0.3)


def test_overspending_is_refused_before_data_are_seen() -> None:
    ledger = Ledger(0.3)
    session = Session(predictors()["prev"], QUANTILES, epsilon=0.2, individuals="overlap", ledger=ledger)
    session.step([0.0, 0.0], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"spend|fit"):
        session.step([0.0, 0.0], Untouchable())
    assert session.count == 1
    with pytest.raises(ValueError, match="epsilon"):  # no budget covers a predictor that protects nobody
        Session(predictors()["open"], QUANTILES, epsilon=0.1, ledger=Ledger(9)).step([0.0, 0.0], Untouchable())


def test_a_resumed_sequence_stays_in_its_pool(tmp_path: Any) -> None:
    ledger = Ledger(1)
    session = Session(predictors()["prev"], QUANTILES, epsilon=1, ledger=ledger)
    session.step([0.0, 0.0], [1.0])
    session.save(tmp_path / "state")
    Session.resume(tmp_path / "state", ledger=ledger).step([0.0, 0.0], [1.0])
    assert ledger.spent == 1 and len(ledger.entries) == 2


def test_a_sequence_and_as_many_releases_cost_the_same() -> None:
    """By the one accounting, and by what it stands for: bounded range, an eighth of the square for each release."""
    session = Session(
        predictors()["prev"], [0.1, 0.5, 0.75], epsilon=0.1, individuals="overlap", composition="zcdp", delta=1e-6
    )
    for _ in range(100):
        session.step([0.0, 0.0], [1.0])
    plan = pq.plan(QUANTILES, epsilon=0.1)
    pure, concentrated = releases_epsilon(plan, 100, 1e-6)
    assert session.guarantee.epsilon == pytest.approx(concentrated, rel=1e-9)
    assert concentrated < pure / 3
    assert session.guarantee.epsilon < (Cost.of(0.1, "range") * 100).epsilon_at(1e-6)
    assert session.guarantee.delta == 1e-6


def test_nonprivate_releases_say_so() -> None:
    datasets, features = days(2)
    found = release_sequence(datasets, features, predictors()["open"], QUANTILES, epsilon=1)
    assert all(math.isinf(r.epsilon) for r in found) and math.isinf(found.guarantee.epsilon)
    assert "no privacy" in str(found.guarantee)


@pytest.mark.parametrize("name", list(predictors()))
def test_a_saved_sequence_goes_on_where_it_stopped(name: str, tmp_path: Any) -> None:
    datasets, features = days(8)
    whole = Session(predictors()[name], QUANTILES, epsilon=1, rng=0)
    for day in range(4):
        whole.step(features[day], datasets[day])
    whole.save(tmp_path / "state")
    resumed = Session.resume(tmp_path / "state", rng=9)
    assert resumed.count == 4 and resumed.guarantee == whole.guarantee
    assert resumed.predictor.priors(features[4]) == whole.predictor.priors(features[4])  # what was drawn stays
    next_one, original = resumed.step(features[4], datasets[4]), whole.step(features[4], datasets[4])
    assert not np.array_equal(next_one, original.values)  # what comes is drawn anew
    if name == "private":
        tree = predictors()[name]
        assert resumed.predictor.steps == tree.steps
    with pytest.raises(FileNotFoundError):
        Session.resume(tmp_path / "state")  # once only


def test_the_file_is_for_its_owner(tmp_path: Any) -> None:
    session = Session(predictors()["private"], QUANTILES, epsilon=1)
    (tmp_path / "state.part").write_bytes(b"")
    (tmp_path / "state.part").chmod(0o666)
    session.save(tmp_path / "state")
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0


def test_checkpoint_continues_an_interrupted_sequence(tmp_path: Any) -> None:
    datasets, features = days(6)
    path = tmp_path / "state"

    def broken() -> Any:
        yield from datasets[:4]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        release_sequence(broken(), features, predictors()["prox"], QUANTILES, epsilon=1, checkpoint=path)
    rest = release_sequence(datasets, features, predictors()["prox"], QUANTILES, epsilon=1, checkpoint=path)
    assert len(rest) == 2 and rest.guarantee.data_sets == 6


def test_noise_still_to_come_is_renewed_for_every_mechanism() -> None:
    for mechanism in ("tree", "tree-refined", "square-root"):
        one = DPLearned(QUANTILES, mechanism=mechanism, **LEARNT, **PRIVATE | {"steps": 300})
        other = copy.deepcopy(one)
        other.renew(np.random.default_rng(1))
        one.learn([0.0, 1.0], [1.0])
        other.learn([0.0, 1.0], [1.0])
        assert one.priors([0.0, 0.0]) != other.priors([0.0, 0.0])


BAD = [
    ({"epsilon": 0}, "epsilon"),
    ({"epsilon": 0.2, "predictor": "private"}, "epsilon must exceed"),
    ({"individuals": "some"}, "individuals"),
    ({"individuals": "overlap", "predictor": "private"}, "individuals"),
    ({"composition": "zcdp"}, "delta"),
    ({"quantiles": [0.5]}, "quantiles"),
    ({"grid": -1}, "grid"),
    ({"calibration": "x"}, "calibration"),
    ({"nonsense": 1}, "nonsense"),
    ({"rng": "seed"}, "rng"),
    ({"features": np.zeros(2)}, "features"),
    ({"features": np.full((1, 2), math.nan)}, "features"),
    ({"features": np.zeros((1, 5)), "predictor": "prox"}, "features"),
]


@pytest.mark.parametrize(("changes", "name"), BAD)
def test_bad_public_arguments_are_named_before_data_are_seen(changes: dict[str, Any], name: str) -> None:
    arguments = {"features": np.zeros((1, 2)), "quantiles": QUANTILES, "epsilon": 1, "predictor": "prev"} | changes
    features, quantiles = arguments.pop("features"), arguments.pop("quantiles")
    predictor = predictors()[arguments.pop("predictor")]
    with pytest.raises((TypeError, ValueError), match=name):
        release_sequence([Untouchable()], features, predictor, quantiles, **arguments)
    with pytest.raises(TypeError, match="predictor"):
        release_sequence([Untouchable()], np.zeros((1, 2)), "PubProx", QUANTILES, epsilon=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"loc": [1.0, 2.0]}, "loc"),
        ({"scale": 0.0}, "scale"),
        ({"resolution": 0.0}, "resolution"),
        ({"resolution": math.inf}, "resolution"),
        ({"resolution": True}, "resolution"),
        ({"dimension": -1}, "dimension"),
        ({"dimension": 1.5}, "dimension"),
        ({"robust": 1}, "robust"),
        ({"robust_weight": 1.0}, "robust_weight"),
        ({"copies": 0}, "copies"),
        ({"clip": (0.0, 1.0)}, "clip"),
        ({"map_share": 1}, "map_share"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"mechanism": "none"}, "mechanism"),
        ({"steps": 0}, "restarts|steps"),
    ],
)
def test_bad_arguments_of_predictors_are_named(options: dict[str, Any], name: str) -> None:
    with pytest.raises((TypeError, ValueError), match=name):
        DPLearned(QUANTILES, **LEARNT | PRIVATE | options)


# --- the experiments --------------------------------------------------------------------------------------------------


def test_gaps_of_a_day_are_those_of_the_core() -> None:
    rng = np.random.default_rng(0)
    records = [np.sort(rng.integers(0, 9, size=n)).astype(float) for n in (30, 1, 0)]
    day = Day(records, TASKS["flights_delay"], rng)
    values = np.sort(rng.integers(-1, 10, size=(3, 9)) + rng.choice([0.0, 0.5], size=(3, 9)), axis=1)
    expected = [pq.max_gap(x, EVEN, row) for x, row in zip(records, values, strict=True)]
    assert day.max_gaps(values, EVEN).tolist() == expected


@pytest.mark.parametrize("task", ["synthetic_noisy", "flights_air_time"])
@pytest.mark.parametrize("calibration", ["sharp", "paper"])
@pytest.mark.parametrize("method", ["uniform", "cauchy", "prev", "prox_plain", "open"])
def test_lockstep_is_one_sequence_after_another(task: str, method: str, calibration: Calibration) -> None:
    """Three trials in lockstep give the values that each gives alone, by `pq.release`, from the same uniforms."""
    own, count, places = TASKS[task], 6, np.random.default_rng(0)
    data = [own.load(count, 0 if own.shared else trial, 0) for trial in range(3)]
    dimension = data[0].features.shape[1]
    release = Releaser([Fraction(1)], 3, [np.random.default_rng(1)], EVEN, calibration)
    uniforms = np.random.default_rng(1).integers(1, 2**53, (count, 3, 9, 2))
    together = make_predictor(method, own, dimension, count, 3, 1.0, 0, Private())
    alone = [make_predictor(method, own, dimension, count, None, 1.0, 0, Private()) for _ in range(3)]
    for t in range(count):
        day = Day([s.datasets[t] for s in (data[:1] if own.shared else data)], own, places)
        features = data[0].features[t] if own.shared else np.stack([s.features[t] for s in data])
        values = release(day, together, features)
        for trial, predictor in enumerate(alone):
            row, n = trial % len(day.columns), int(day.sizes[trial % len(day.columns)])
            x, f = day.columns[row, :n], data[trial].features[t]
            mechanism = tree(EVEN, predictor.priors(f), epsilon=1, calibration=calibration)
            one = mechanism.compiled(Points(x), uniforms[t, trial][None] * 2.0**-53)[0]
            own_values = np.rint(one / own.resolution) * own.resolution if own.tied else one
            np.testing.assert_allclose(values[trial], own_values, rtol=1e-9, atol=1e-9)
            predictor.observe(f, own_values)
            if predictor.private:
                predictor.learn(f, x)
        together.observe(features, values)
        if together.private:
            together.learn_intervals(features, *(np.broadcast_to(end, (3, 9)) for end in day.intervals(EVEN)))
    assert release.slow <= 3 * count * (method == "uniform")


def test_cells_do_not_depend_on_what_else_is_run() -> None:
    cell = experiments.Cell("synthetic_noisy", "prox", 0.5, days=8, trials=2)
    assert np.array_equal(experiments.run_cell(cell), experiments.run_cell(cell))
    together = experiments.run_cells(cell, ["prox", "cauchy", "dp"], [0.1, 0.5, 2.0])
    for (method, epsilon), gaps in together.items():
        assert np.array_equal(gaps, experiments.run_cell(replace(cell, method=method, epsilon=epsilon)))
    sparse = experiments.run_cell(replace(cell, method="cauchy", every=3))
    assert np.array_equal(np.flatnonzero(sparse[:, 0] >= 0), [0, 3, 6])


def test_losses_of_a_day_are_those_of_its_priors() -> None:
    """U as `pq.log_psi_harmonic` has it, of every method, before its release; and looking changes no gap."""
    cell, methods = (
        experiments.Cell("synthetic_noisy", "", 0.5, days=5, trials=2),
        ["uniform", "prev_plain", "prox", "dp"],
    )
    found: list[tuple[float, float]] = []

    def watch(group: Lockstep, t: int, day: Day, features: np.ndarray) -> None:
        for lane, loss in enumerate(group.losses(day, features)):
            x = day.columns[lane % 2, : day.sizes[lane % 2]]
            priors = experiments._priors(group.predictor, group.own(features), lane)
            found.append((loss, math.log(9) - pq.log_psi_harmonic(x, EVEN, priors)))

    watched = experiments.run_cells(cell, methods, [0.5, 2.0], watch=watch)
    assert len(found) == 5 * len(methods) * 4
    np.testing.assert_allclose(*np.transpose(found), rtol=1e-9)
    plain = experiments.run_cells(cell, methods, [0.5, 2.0])
    assert all(np.array_equal(watched[key], gaps) for key, gaps in plain.items())


def test_the_blind_learn_nothing_from_the_data() -> None:
    """With other data the blind method has the same priors; the one that sees, others."""
    cell = experiments.Cell("synthetic_noisy", "", 1.0, days=4, trials=2)
    learnt = {}
    for method in ("prox", "prox_blind"):
        for shift in (0.0, 7.0):
            data = TASKS["synthetic_noisy"].load(4, 0, 0)
            group = Lockstep(replace(cell, method=method), [1.0], data, Private())
            for t in range(4):
                day = Day([data.datasets[t] + shift] * 2, TASKS["synthetic_noisy"], np.random.default_rng(0))
                group.step(t, day, np.stack([data.features[t]] * 2), EVEN)
            learnt[method, shift] = group.predictor.laplaces(np.stack([data.features[0]] * 2))
    assert not np.array_equal(learnt["prox", 0.0], learnt["prox", 7.0])
    assert np.array_equal(learnt["prox_blind", 0.0], learnt["prox_blind", 7.0])
    assert not np.array_equal(learnt["prox", 0.0], learnt["prox_blind", 0.0])


def test_steps_of_private_learning_come_from_public_numbers() -> None:
    """The step sizes give the noise of the last day the wander asked for."""
    options = Private(wander=(0.3, 0.05)).options(0.5, 200)
    learner = DPLearned(EVEN, **LEARNT, **options)
    end = math.sqrt(square_root_variances(200)[-1])
    found = [step * learner._noise(part) * end for part, step in enumerate(options["step"])]
    np.testing.assert_allclose(found, [0.3, 0.05], rtol=1e-6)
    assert options["epsilon"] == Fraction(1, 10)


def test_robust_predictors_survive_march_2020() -> None:
    """The stored table of CitiBike over time, forty trials: error after day 1660, the 7th of April 2020, with its
    standard error over blocks of days as if they were independent."""
    table = pl.read_csv(experiments.RESULTS / "timeplots.csv")
    table = table.filter((pl.col("data") == "citibike") & (pl.col("first_day") >= 1660) & (pl.col("day_block") >= 0))

    def after(method: str, blocks: int) -> tuple[float, float]:
        rows = table.filter(pl.col("method") == method).sort("day_block").head(blocks)
        errors = rows["max_gap_error"].to_numpy()
        return float(rows["max_gap"].to_numpy().mean()), float(np.sqrt(np.sum(errors**2)) / len(errors))

    for blocks in (6, 25):
        for robust in ("prev", "prox"):
            (plain, error), (mixed, other) = after(f"{robust}_plain", blocks), after(robust, blocks)
            assert plain - mixed > 2.5 * math.hypot(error, other), (robust, blocks)
        assert after("prox", blocks)[0] < min(after(m, blocks)[0] for m in ("uniform", "cauchy", "half_cauchy"))


def test_a_sequence_never_starts_anew_without_a_word(tmp_path: Any) -> None:
    """A second run over all that is done does nothing; one that breaks before its next data set leaves a refusal."""
    datasets, features = days(4)
    path = tmp_path / "state"

    def go(some: Any, known: Any = features) -> Any:
        return release_sequence(some, known, predictors()["prev"], QUANTILES, epsilon=1, checkpoint=path)

    def broken() -> Any:
        yield from datasets[:2]
        raise OSError

    assert len(go(datasets[:2], features[:2])) == 2
    for _ in range(3):
        assert len(go(datasets[:2], features[:2])) == 0
    with pytest.raises(ValueError, match="features"):
        go(datasets, [[np.nan, 0.0]] * 4)
    with pytest.raises(OSError, match=r"^$"):
        go(broken())
    for _ in range(2):
        with pytest.raises(ValueError, match=r"^checkpoint was taken up"):
            go(datasets)
    (tmp_path / "state.used").rename(path)  # nothing was released since
    assert len(go(datasets)) == 2
    assert not (tmp_path / "state.used").exists()


@pytest.mark.parametrize("name", ["private", "open"])
def test_a_learner_sees_the_records_that_are_released_from(name: str) -> None:
    """Whatever holds them, an iterator that can be read once too, and missing ones where the session puts them."""
    records = [3.0, None, 1.0, 2.0, 2.0, float("inf"), 8.0] * 5
    taught = []
    for x in (records, iter(records), pq.SortedColumn(records), pq.count(records), pl.DataFrame({"x": records})):
        session = Session(predictors()[name], QUANTILES, epsilon=1, rng=0, on_nan="highest")
        session.step([0.0, 1.0], x)
        taught.append([prior.to_dict() for prior in session.predictor.priors([0.5, 0.5])])
    assert all(one == taught[0] for one in taught)
    plain = Session(predictors()[name], QUANTILES, epsilon=1, rng=0)
    plain.step([0.0, 1.0], [])
    assert [prior.to_dict() for prior in plain.predictor.priors([0.5, 0.5])] != taught[0]


def test_learning_under_strict_floating_point_errors() -> None:
    with np.errstate(all="raise"):
        learner = DPLearned(
            [0.01, 0.5, 1.0],
            loc=0.0,
            scale=1e-10,
            resolution=1e-5,
            dimension=1,
            steps=6,
            epsilon=0.5,
            delta=1e-6,
            rng=0,
        )
        session = Session(learner, [0.01, 0.5, 1.0], epsilon=1)
        for x in ([0.8, -0.8, 0.1], [], [-np.inf] * 4, [0, 5e-324]):
            session.step([1.0], x)
    with pytest.raises(ValueError, match=r"^quantiles must differ"):
        DPLearned([0.5, 0.5], loc=0.0, scale=1.0, resolution=0.1, dimension=1, steps=6, epsilon=0.5, delta=1e-6)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("clip", bounds) for bounds in [(5e-324, 1.0), (1.0, 1e-320), (math.nan, 1.0), (math.inf, 1.0), (True, 1.0)]),
        *(("delta", delta) for delta in [0, 1, 2, True, math.nan, "1e-6"]),
    ],
)
def test_bounds_that_floats_do_not_keep_are_refused(name: str, value: Any) -> None:
    """A gradient of three coordinates is shortened to 5e-324 in each, which is 1.7 times as long as 5e-324."""
    options: dict[str, Any] = {"loc": 0.0, "scale": 1.0, "resolution": 0.1, "dimension": 1} | PRIVATE
    with pytest.raises((ValueError, TypeError), match=name):
        DPLearned([0.5], **(options | {name: value}))
