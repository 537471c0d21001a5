"""Sessions: no noise twice, no state twice, no charge lost, and nothing lost that was paid for."""

from __future__ import annotations

import contextlib
import copy
import math
import os
import pickle
import threading
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_private_sums import in_fork

import pq
from pq.core.budget.ledger import BudgetExceededError
from pq.learners import StepsExceeded
from pq.private.columns.frames import column_of
from pq.private.mechanisms import mechanism_for
from pq.private.sequential import session as sessions
from pq.private.sequential import state as states
from pq.sequential import DPLearned, NonPrivate, Predictor, PubPrev, PubProx, Session, Static, release_sequence

# Newer Pythons warn of forks beside threads, which is what is tested.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

QUANTILES = [0.25, 0.5]
LEARNT: dict[str, Any] = {"loc": 0.0, "scale": 1.0, "resolution": 0.1, "dimension": 1}
PRIVATE: dict[str, Any] = {"steps": 50, "epsilon": 0.3, "delta": 1e-6}
DAYS = [np.arange(9.0) + day for day in range(6)]
FEATURES = np.linspace(0, 1, 6)[:, None]


def learner(**changes: Any) -> DPLearned:
    return DPLearned(QUANTILES, **LEARNT | PRIVATE | changes)


def prev(**changes: Any) -> PubPrev:
    return PubPrev(QUANTILES, **{"loc": 0.0, "scale": 1.0} | changes)


def session(predictor: Any = None, **options: Any) -> Session:
    return Session(predictor or prev(), QUANTILES, **{"epsilon": 1} | options)


def continuations(one: Session, folder: Path) -> list[Session]:
    """All ways to have a session once more, but for forks."""
    one.save(folder / "state")
    return [copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one)), Session.resume(folder / "state"), one]


# --- randomness -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rng", [None, 3])
def test_forks_copies_and_resumed_sessions_share_no_noise(rng: Any, tmp_path: Path) -> None:
    one = session(rng=rng)
    one.step(FEATURES[0], DAYS[0])
    values = [in_fork(lambda: one.step(FEATURES[1], DAYS[1]).values.tolist()) for _ in range(4)]
    values += [other.step(FEATURES[1], DAYS[1]).values.tolist() for other in continuations(one, tmp_path)]
    assert len({tuple(row) for row in values}) == len(values)


@pytest.mark.parametrize("rng", [None, 3])
@pytest.mark.parametrize("mechanism", ["tree", "tree-refined", "square-root"])
def test_what_learns_shares_no_noise_to_come(rng: Any, mechanism: str, tmp_path: Path) -> None:
    one = session(learner(mechanism=mechanism), rng=rng)
    for day in range(3):
        one.step(FEATURES[day], DAYS[day])

    def learnt(other: Session) -> tuple[float, ...]:
        other.step(FEATURES[3], DAYS[3])
        return tuple(prior.loc for prior in other.predictor.priors([0.5]))  # type: ignore[attr-defined]

    found = [in_fork(lambda: learnt(one)) for _ in range(4)]
    found += [learnt(other) for other in continuations(one, tmp_path)[1:]]
    assert len(set(found)) == len(found)


def test_a_session_that_stored_its_generator_would_repeat_itself() -> None:
    """A mutant: one generator made at the start, as `numpy.random.default_rng()`, in four forks."""
    one = session()
    one._rng = np.random.default_rng()
    values = [
        in_fork(lambda: sessions.fulfil(_maker(one), column_of(DAYS[0]), sessions.Source(one._rng)).values[0])
        for _ in "ab"
    ]
    assert values[0] == values[1]


def _maker(one: Session) -> Any:
    return one.predictor.maker([0.0], one._request)


def test_a_mechanism_is_renewed_with_the_priors_of_the_day() -> None:
    """Each day's release is that of a mechanism made anew with the priors which it tells."""
    one = session()
    for day, x in enumerate(DAYS[:3]):
        priors = one.predictor.priors(FEATURES[day])
        released = one.step(FEATURES[day], x)
        anew = mechanism_for(replace(one._request, priors=tuple(priors)))
        assert one._maker is not None and released.priors == tuple(priors)
        assert (one._maker.origin is one._maker) == (day == 0)
        column = anew.column(np.sort(np.asarray(x, dtype=float)), None)
        mine, theirs = (maker.draw(column, sessions.Source(1)).values.tolist() for maker in (one._maker, anew))
        assert mine == theirs


def test_one_seed_for_every_run_does_not_repeat_noise(tmp_path: Path) -> None:
    """A resumed run with the seed of the first draws otherwise at every data set than a run from the start."""
    whole = release_sequence(DAYS, FEATURES, Static(pq.Cauchy(0, 1), QUANTILES), QUANTILES, epsilon=1, rng=0)
    for cut in (1, 3):
        path, rest = tmp_path / f"state-{cut}", []
        for upto in (cut, 6):
            rest = release_sequence(
                DAYS[:upto], FEATURES[:upto], Static(pq.Cauchy(0, 1), QUANTILES), QUANTILES, epsilon=1, rng=0,
                checkpoint=path,
            )  # fmt: skip
        assert not {r.values[0] for r in rest} & {r.values[0] for r in whole}


def test_threads_share_a_session() -> None:
    one, found = session(learner()), []
    threads = [
        threading.Thread(target=lambda: found.extend(one.step([0.0], DAYS[0]).values[0] for _ in range(5)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert one.count == 40 and len(set(found)) == 40 and one.predictor.steps_left == 10  # type: ignore[attr-defined]


# --- resuming ---------------------------------------------------------------------------------------------------------


def test_of_two_that_resume_one_state_one_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second comes while the first reads; and eight forks at once."""
    session().save(tmp_path / "state")
    late: list[str] = []
    read = states._read

    def slow(path: Path) -> Any:
        with pytest.raises(FileNotFoundError, match="path must be a saved session") as refusal:
            Session.resume(tmp_path / "state")
        late.append(str(refusal.value))
        return read(path)

    monkeypatch.setattr(states, "_read", slow)
    Session.resume(tmp_path / "state")
    assert len(late) == 1
    monkeypatch.undo()
    session().save(tmp_path / "state")
    pipes = [
        threading.Thread(target=lambda: late.append(in_fork(lambda: _resumes(tmp_path / "state")))) for _ in "x" * 8
    ]
    for thread in pipes:
        thread.start()
    for thread in pipes:
        thread.join()
    assert sorted(map(str, late[1:])) == ["False"] * 7 + ["True"]


def test_a_state_that_is_read_before_it_is_claimed_is_had_by_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutant: the second comes between the reading and the renaming of the first."""

    racing, second = [True], []

    @contextlib.contextmanager
    def late(path: Path, argument: str) -> Any:
        state = states._read(path)
        if racing.pop() if racing else False:
            second.append(Session.resume(path))
        with contextlib.suppress(FileNotFoundError):
            path.rename(states.used(path))
        yield state

    session().save(tmp_path / "state")
    monkeypatch.setattr(sessions, "claimed", late)
    assert isinstance(Session.resume(tmp_path / "state"), Session) and len(second) == 1


def _resumes(path: Path) -> bool:
    try:
        Session.resume(path)
    except FileNotFoundError:
        return False
    return True


def test_a_ledger_goes_with_its_sequence(tmp_path: Path) -> None:
    ledger, path = pq.Ledger.open(tmp_path / "ledger", total=1), tmp_path / "state"
    one = session(ledger=ledger)
    one.step(FEATURES[0], DAYS[0])
    one.save(path)
    for wrong in (None, pq.Ledger(1), pq.Ledger.open(tmp_path / "other", total=1)):
        with pytest.raises(ValueError, match=r"^ledger must be the one"):
            Session.resume(path, ledger=wrong)
    with pytest.raises(TypeError, match="ledger"):
        Session.resume(path, ledger=3)  # type: ignore[arg-type]
    resumed = Session.resume(path, ledger=tmp_path / "ledger")  # the refusals have left it where it was
    resumed.step(FEATURES[1], DAYS[1])
    assert ledger.spent == 1 and len(ledger.entries) == 2


@pytest.mark.parametrize("content", [b"", b"hello", pickle.dumps({}), pickle.dumps(3), pickle.dumps({"predictor": 3})])
def test_what_is_no_state_is_refused_and_left(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(content)
    with pytest.raises(ValueError, match=r"^path must be a saved session"):
        Session.resume(tmp_path / "state")
    assert (tmp_path / "state").read_bytes() == content and len(list(tmp_path.iterdir())) == 1


CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"epsilon": 0.5}, "epsilon"),
    ({"quantiles": [0.25, 0.75]}, "quantiles"),
    ({"individuals": "overlap"}, "individuals"),
    ({"composition": "zcdp", "delta": 1e-6}, "composition"),
    ({"adjacency": "replace"}, "adjacency"),
    ({"grid": 0.5}, "grid"),
    ({"on_nan": "lowest"}, "on_nan"),
    ({"max_contributions": 2}, "max_contributions"),
    ({"predictor": prev(scale=2.0)}, "predictor"),
    ({"predictor": prev(robust=pq.Cauchy(0, 1))}, "predictor"),
    ({"predictor": Static(pq.Cauchy(0, 1), QUANTILES)}, "predictor"),
]


@pytest.mark.parametrize(("changes", "name"), CHANGES)
def test_a_checkpoint_goes_on_with_its_own_arguments_only(changes: dict[str, Any], name: str, tmp_path: Path) -> None:
    path = tmp_path / "state"

    def go(upto: int, **options: Any) -> Any:
        given = {"predictor": prev(), "quantiles": QUANTILES, "epsilon": 0.1} | options
        return release_sequence(DAYS[:upto], FEATURES[:upto], checkpoint=path, **given)

    go(2)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=rf"^{name} must be that of the saved sequence"):
        go(4, **changes)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1
    same = {"quantiles": np.array(QUANTILES), "epsilon": Fraction(1, 10), "predictor": prev(loc=0, scale=np.float64(1))}
    assert len(go(4, **same)) == 2


def test_descriptions_tell_arguments_apart_and_not_containers() -> None:
    assert states.described([1, 2.5, None]) == states.described((1.0, Fraction(5, 2), None))
    assert states.described(np.array([0.1])) == states.described([0.1])
    assert states.described(True) != states.described("True") != states.described(None)
    assert states.described({"a": 1, "rng": 2}) == states.described({"rng": 3, "a": 1})
    for a, b in ((pq.Cauchy(0, 1), pq.Cauchy(0, 2)), (pq.Cauchy(0, 1), pq.Laplace(0, 1)), (math.inf, -math.inf)):
        assert states.described(a) == states.described(copy.deepcopy(a)) != states.described(b)


# --- ledgers ----------------------------------------------------------------------------------------------------------


def test_delta_and_rho_of_a_sequence_are_charged() -> None:
    ledger = pq.Ledger(1, delta=1e-6)
    one = session(learner(), ledger=ledger)
    one.step(FEATURES[0], DAYS[0])
    (entry,) = ledger.entries
    assert (entry.epsilon, entry.delta, entry.adjacency) == (1, Fraction(1, 10**6), "add-remove")
    tree = one.predictor.maker([0.0], one._request).rho
    assert entry.rho == tree + Fraction(3, 10) ** 2 / 2 and tree <= Fraction(7, 10) ** 2 / 8
    for account in (pq.Ledger(9), pq.Ledger(9, delta=1e-7)):
        with pytest.raises(BudgetExceededError, match="delta"):
            session(learner(), ledger=account).step(FEATURES[0], Untouchable())


def pools(ledger: pq.Ledger) -> int:
    """How often everybody pays."""
    return len({entry.pool for entry in ledger.entries})


def test_another_continuation_is_charged_anew(tmp_path: Path) -> None:
    ledger = pq.Ledger.open(tmp_path / "ledger", total=9, delta=1e-5)
    one = session(learner(), ledger=ledger)
    one.step(FEATURES[0], DAYS[0])
    assert pools(ledger) == 1
    for k, other in enumerate((copy.deepcopy(one), pickle.loads(pickle.dumps(one)))):
        other.step(FEATURES[1], DAYS[1])
        assert pools(ledger) == 2 + k
    in_fork(lambda: one.step(FEATURES[1], DAYS[1]).epsilon)
    assert pools(ledger) == 4
    one.step(FEATURES[1], DAYS[1])
    assert pools(ledger) == 4 and len(ledger.entries) == 5


class Untouchable:
    """Data that say when somebody looks."""

    dtype = np.dtype(np.float64)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("the records were looked at")

    def __iter__(self) -> Any:
        raise AssertionError("the records were looked at")

    def __len__(self) -> int:
        raise AssertionError("the records were counted")


def test_what_cannot_be_charged_is_refused_before_the_data() -> None:
    for budget in (math.inf, 1):
        predictor = NonPrivate(QUANTILES, **LEARNT) if budget == 1 else prev()
        with pytest.raises(ValueError, match="epsilon"):
            session(predictor, epsilon=budget, ledger=pq.Ledger(9)).step(FEATURES[0], Untouchable())


# --- breaking off -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, ValueError, MemoryError, GeneratorExit])
@pytest.mark.parametrize("done", [0, 1, 4])
def test_a_sequence_that_breaks_off_hands_over_its_releases(error: Any, done: int) -> None:
    def broken() -> Any:
        yield from DAYS[:done]
        raise error("here")

    ledger = pq.Ledger(9)
    with pytest.raises(error, match="here") as found:
        release_sequence(broken(), FEATURES, prev(), QUANTILES, epsilon=1, individuals="overlap", ledger=ledger)
    releases = found.value.releases
    assert len(releases) == done == len(ledger.entries) == releases.guarantee.data_sets
    assert float(ledger.spent) == releases.guarantee.epsilon
    assert all(np.isfinite(one.values).all() for one in releases)


def test_unequal_lengths_are_found_before_the_charge_where_they_are_known() -> None:
    ledger = pq.Ledger(9)
    for count in (4, 7):
        data = (DAYS * 2)[:count]
        with pytest.raises(ValueError, match=rf"^datasets must be as many as features, 6, got {count}"):
            release_sequence(data, FEATURES, prev(), QUANTILES, epsilon=1, ledger=ledger)
        assert not ledger.entries
        with pytest.raises(ValueError, match=r"^datasets must be as many as features, 6, got (4|more)") as found:
            release_sequence(iter(data), FEATURES, prev(), QUANTILES, epsilon=1, ledger=pq.Ledger(9))
        assert len(found.value.releases) == min(count, 6)  # type: ignore[attr-defined]
    with pytest.raises(StepsExceeded, match="features has 6 rows"):
        release_sequence(
            [Untouchable()] * 6, FEATURES, learner(steps=5), QUANTILES, epsilon=1, ledger=pq.Ledger(9, delta=0.1)
        )
    one = session(learner(steps=1), ledger=(account := pq.Ledger(1, delta=1e-6)))
    one.step(FEATURES[0], DAYS[0])
    with pytest.raises(StepsExceeded):
        one.step(FEATURES[1], Untouchable())
    assert len(account.entries) == 1


def test_an_overspent_ledger_hands_over_what_it_paid_for() -> None:
    with pytest.raises(BudgetExceededError) as found:
        release_sequence(DAYS, FEATURES, prev(), QUANTILES, epsilon=1, individuals="overlap", ledger=pq.Ledger(2.5))
    assert len(found.value.releases) == 2  # type: ignore[attr-defined]


def test_an_error_after_the_release_has_it() -> None:
    class Careless(Predictor):
        def __init__(self) -> None:
            self.m, self.seen = 2, 0

        def priors(self, features: Any) -> list[pq.Prior]:
            return [pq.Cauchy(0, 1)] * 2

        def observe(self, features: Any, released: Any) -> None:
            self.seen += 1
            if self.seen == 3:
                raise RuntimeError("careless")

    with pytest.raises(RuntimeError, match="careless") as found:
        release_sequence(DAYS, FEATURES, Careless(), QUANTILES, epsilon=1)
    assert len(found.value.releases) == 3  # type: ignore[attr-defined]


def test_a_state_that_cannot_be_saved_costs_no_release(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError) as found:
        release_sequence(DAYS, FEATURES, prev(), QUANTILES, epsilon=1, checkpoint=tmp_path / "file" / "state")
    assert found.value.releases == []  # type: ignore[attr-defined]  # noticed before the first one


# --- grids ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["tree", "joint", "auto"])
@pytest.mark.parametrize("robust", [None, pq.Cauchy(0, 1)])
@pytest.mark.parametrize("kind", [PubPrev, PubProx])
def test_days_far_beyond_the_grid_still_tell_of_themselves(kind: Any, robust: Any, mechanism: str) -> None:
    """What is learnt from such a day may be a prior that `pq.release` refuses on this grid."""
    given = {"loc": 0.0, "scale": 1.0} if kind is PubPrev else LEARNT
    far = session(kind(QUANTILES, robust=robust, **given), epsilon=9, grid=1e-6, mechanism=mechanism, rng=0)
    days = [far.step([1.0], np.full(50, value)) for value in (0.0, 1e12, 1e300, -1e12, 5.0)]
    assert [pq.Release.from_dict(day.to_dict()).to_dict() for day in days] == [day.to_dict() for day in days]
    assert all(isinstance(day.remarks, tuple) for day in days)
    if kind is PubPrev and robust is not None:
        assert pq.LogUniform() in [day.priors[0] for day in days]


def test_distributions_learnt_beyond_the_grid_fall_back_on_the_broad_law() -> None:
    law = pq.sequential.PubDistribution(QUANTILES, loc=0.0, scale=1.0, dimension=0, robust=pq.Normal(0, 1))
    far = session(law, epsilon=9, grid=1e-14, rng=0)
    days = [far.step([], np.full(500, 22.0)) for _ in range(9)]
    assert [pq.Release.from_dict(day.to_dict()).to_dict() for day in days] == [day.to_dict() for day in days]
    assert days[-1].priors == (pq.Normal(0, 1),) * 2


@pytest.mark.parametrize(
    "predictor",
    [
        Static(pq.Uniform(1e12, 2e12), QUANTILES),
        prev(loc=1e12),
        prev(scale=1e12),
        prev(robust=pq.Cauchy(0, 1e12)),
        pq.sequential.PubDistribution(QUANTILES, loc=1e12, scale=1.0, dimension=0),
    ],
)
def test_a_grid_too_fine_for_what_is_given_is_refused_at_once(predictor: Predictor) -> None:
    with pytest.raises(ValueError, match="grid must be coarser"):
        session(predictor, grid=1e-6, mechanism=predictor.released_by)


@pytest.mark.parametrize("mechanism", ["joint", "auto", "tree"])
def test_priors_that_were_learnt_to_contradict_each_other_serve_joint_releases(mechanism: str) -> None:
    """They have a billion nats against outputs in increasing order."""
    three, crossed = [0.25, 0.5, 0.75], [1e9, 0.0, -1e9]
    day = Session(PubPrev(three, loc=crossed, scale=1.0), three, epsilon=1, mechanism=mechanism).step([], DAYS[0])
    assert pq.Release.from_dict(day.to_dict()).to_dict() == day.to_dict()
    assert (day.priors[0] == day.priors[1]) == (mechanism == "joint")


def test_priors_that_are_given_and_contradict_each_other_are_refused_at_once() -> None:
    given = Static([pq.Laplace(place, 1) for place in (1e9, 0.0, -1e9)], [0.25, 0.5, 0.75])
    with pytest.raises(ValueError, match="priors must leave some mass"):
        Session(given, [0.25, 0.5, 0.75], epsilon=1, mechanism="joint")


@pytest.mark.parametrize("mechanism", ["tree", "cells"])
def test_days_that_protect_nobody_tell_of_themselves(mechanism: str) -> None:
    open_to_all = session(NonPrivate(QUANTILES, **LEARNT), mechanism=mechanism, grid=1, size_guess=9, rng=0)
    days = [open_to_all.step([1.0], day) for day in DAYS]
    assert [pq.Release.from_dict(day.to_dict()).to_dict() for day in days] == [day.to_dict() for day in days]
    assert all(isinstance(day.remarks, tuple) for day in days)


@pytest.mark.parametrize("mechanism", ["joint", "mixed", "auto"])
def test_a_mechanism_without_an_infinite_epsilon_serves_no_open_predictor(mechanism: str) -> None:
    with pytest.raises(ValueError, match="mechanism must be one of 'tree', 'cells'"):
        session(NonPrivate(QUANTILES, **LEARNT), mechanism=mechanism)


def test_a_grid_is_measured_by_the_priors_that_are_given() -> None:
    """A fine one serves data of its own size, though not a standard Cauchy law."""
    day = session(prev(scale=1e-9), grid=1e-15, rng=0).step([], np.linspace(0, 1e-9, 999))
    np.testing.assert_allclose(day.values, [2.5e-10, 5e-10], atol=5e-11)


# --- learnt priors outside the floats ---------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e300, 1e308, 5e-324])
@pytest.mark.parametrize("kind", [DPLearned, PubProx, NonPrivate, PubPrev])
def test_learnt_priors_stay_in_the_floats(kind: Any, scale: float) -> None:
    """And nothing that comes out is one of the records, at ends of the floats where locations and scales overflow."""
    options = {"loc": 0.0, "scale": scale}
    if kind is not PubPrev:
        options |= {"resolution": 1e-3, "dimension": 1}
    predictor = kind(QUANTILES, **options, **(PRIVATE if kind is DPLearned else {}))
    one = Session(predictor, QUANTILES, epsilon=1 if kind is not NonPrivate else math.inf)
    for records in ([1.5, 2.5, 1e308], [-1e308, 3.25], [7.0] * 5, []):
        for prior in one.predictor.priors([1.0]):
            assert math.isfinite(prior.loc) and 0 < prior.scale < math.inf  # type: ignore[attr-defined]
        released = one.step([1.0], records)
        assert not set(released.values.tolist()) & set(records) or kind is NonPrivate


def test_parameters_that_are_no_floats_give_the_first_priors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quantile by quantile: those that can be used are, and the others are the guesses, which are public."""
    wrong = [(math.nan, 1.0), (math.inf, 1.0), (0.0, math.inf), (0.0, math.nan), (0.0, 0.0), (1.0, -1.0)]
    for loc, scale in wrong:
        predictor = PubProx(QUANTILES, loc=[5.0, 6.0], scale=[2.0, 3.0], resolution=0.1, dimension=1)
        monkeypatch.setattr(PubProx, "learnt", lambda self, f, a=loc, b=scale: (np.array([a, 9.0]), np.array([b, 4.0])))
        assert predictor.priors([0.0]) == [pq.Laplace(5.0, 2.0), pq.Laplace(9.0, 4.0)]


def test_a_shallow_copy_learns_for_itself() -> None:
    for one in (session(), session(learner())):
        before = pickle.dumps(one.predictor.priors([0.5]))
        other = copy.copy(one)
        assert other.predictor is not one.predictor and copy.copy(one.predictor) is not one.predictor
        for day in range(3):
            other.step(FEATURES[day], DAYS[day] + 100.0)
        assert pickle.dumps(one.predictor.priors([0.5])) == before and one.count == 0
        assert pickle.dumps(other.predictor.priors([0.5])) != before
        assert copy.copy(session(ledger=(ledger := pq.Ledger(9)))).ledger is ledger


def test_a_state_that_cannot_be_written_leaves_the_one_before_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, later = tmp_path / "state", session()
    session().save(path)
    later.step(FEATURES[0], DAYS[0])

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        later.save(path)
    monkeypatch.undo()
    assert [file.name for file in tmp_path.iterdir()] == ["state"] and Session.resume(path).count == 0


def test_a_state_that_is_put_back_is_had_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of three finds that the arguments differ and puts the state back; the second takes it up before the
    first has tidied up."""
    path, second = tmp_path / "state", []
    session().save(path)
    link = os.link

    def slowly(*names: Any) -> None:
        link(*names)
        second.append(Session.resume(path))

    monkeypatch.setattr(os, "link", slowly)
    with pytest.raises(ValueError, match="epsilon must be that of the saved sequence"):
        Session.resume(path, like=session(epsilon=2))
    monkeypatch.undo()
    assert len(second) == 1
    with pytest.raises(FileNotFoundError):
        Session.resume(path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["state.used"]


def test_a_state_that_is_saved_meanwhile_is_not_had_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of three has claimed a state and not read it yet; the second saves a later one, the third claims it."""
    path, third, later = tmp_path / "state", [], session()
    session().save(path)
    later.step(FEATURES[0], DAYS[0])
    read = states._read

    def slowly(name: Path) -> Any:
        monkeypatch.undo()
        later.save(path)
        third.append(Session.resume(path))
        return read(name)

    monkeypatch.setattr(states, "_read", slowly)
    first = Session.resume(path)
    assert (first.count, third[0].count) == (0, 1)


@pytest.mark.parametrize("make", [lambda rng: session(rng=rng), sessions.Source], ids=["session", "source"])
@pytest.mark.parametrize("rng", ["3", True, np.bool_(True), -1, 1.5, object()], ids=lambda rng: type(rng).__name__)
def test_one_rule_says_what_rng_may_be(make: Any, rng: Any) -> None:
    with pytest.raises(TypeError, match=r"^rng must be"):
        make(rng)


def test_a_state_is_had_once_whatever_links_lead_to_it(tmp_path: Path) -> None:
    path, link = tmp_path / "state", tmp_path / "link"
    Session(prev(), QUANTILES, epsilon=1, rng=0).save(path)
    link.symlink_to(path)
    Session.resume(link).save(link)
    assert link.is_symlink() and path.exists() and not (tmp_path / "link.used").exists()
    Session.resume(link)
    with pytest.raises(FileNotFoundError):
        Session.resume(path)


def test_nothing_warns_of_public_or_released_numbers_of_any_size() -> None:
    predictor = PubProx(QUANTILES, loc=0.0, scale=1.0, resolution=1.7e308, dimension=1)
    session = Session(predictor, QUANTILES, epsilon=1, rng=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for feature in (1e308, -1e308, 1e-308):
            session.step([feature], [1e308, -1e308])


def test_a_state_without_one_of_its_parts_is_none(tmp_path: Path) -> None:
    session = Session(prev(), QUANTILES, epsilon=1, rng=0)
    assert set(session.__getstate__()) == states.KEPT
    for name in states.KEPT:
        state = session.__getstate__() | {"ledger": None}
        del state[name]
        (tmp_path / "state").write_bytes(pickle.dumps(state))
        with pytest.raises(ValueError, match=r"^path must be a saved session"):
            Session.resume(tmp_path / "state")
