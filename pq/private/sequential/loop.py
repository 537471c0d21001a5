"""The loop over data sets: predict, release, learn, and save (Section 5.3)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence, Sized
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pq.core.budget.guarantee import Guarantee
from pq.core.budget.ledger import Ledger
from pq.core.exact import Number
from pq.core.kind import in_unit
from pq.private.noise import StepsExceeded
from pq.private.randomness import generator_from
from pq.private.release import Release
from pq.private.sequential.predictors import Predictor, PrivatePredictor
from pq.private.sequential.session import Composition, Individuals, Session, hand_over
from pq.private.sequential.state import ANOTHER, Identity, Turns, is_there, left_over

_END = object()


class Releases(list[Release]):
    """The releases in order, and the `guarantee` that holds for all of them together."""

    def __init__(self, releases: Iterable[Release], guarantee: Guarantee) -> None:
        super().__init__(releases)
        self.guarantee = guarantee


def release_sequence(
    datasets: Iterable[Any],
    features: npt.ArrayLike | Sequence[Any],
    predictor: Predictor,
    quantiles: Any,
    *,
    epsilon: Number,
    individuals: Individuals = "disjoint",
    composition: Composition = "pure",
    delta: float = 0.0,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    checkpoint: str | Path | None = None,
    progress: bool = False,
    rng: Any = None,
    **options: Any,
) -> Releases:
    """Release the same quantiles of one data set after another, with priors that a predictor learns on the way.

    The setting is that of Section 5.3 and `thm:sequential`.

    datasets: T columns of sensitive numbers, empty ones included; iterated once. Which data sets there are, and in what
        order, must be public: leaving out those with few records would tell who was not there.
    features: (T, d) public numbers known before each data set.
    predictor: `pq.sequential.Static`, `PubPrev`, `PubProx`, `PubDistribution`, `DPLearned` or `NonPrivate`. It is
        copied, not changed.
    quantiles: (m,), those of the predictor. epsilon: budget of each data set, see `Session`.
    individuals, composition, delta, ledger, options: see `Session`.
    checkpoint: file to which the state is saved after every data set. If it is there already, the sequence goes on from
        it with the data sets after those that are done (datasets and features are given in full), and only the new
        releases are returned. All other arguments must be those of the run that saved it. See `Session.resume`. A run
        that breaks off within a data set leaves none that could go on, since it may have released that one already.
        Of two runs at one checkpoint one goes on, and the other raises `ValueError` at its next data set, or where it
        begins. So does a checkpoint that is no file, as a folder or a device is; it stays what and where it was.
    progress: show a bar on stderr. rng: see `Session`.

    Returns a list of T `Release`s that has a `guarantee`. Raises `TypeError` or `ValueError` naming the argument, and
    before anything is charged if the arguments tell; a generator of data sets tells where it ends only when it does.
    A sequence that breaks off hands over what it has released: whatever the exception, it has such a list, `releases`.
    Guarantees what the result's `guarantee` says: under "disjoint" a person pays epsilon once, of which a `DPLearned`
    takes its part; under "overlap" budgets add.

    >>> import numpy as np, pq
    >>> from pq.private.sequential import PubPrev, release_sequence
    >>> days = np.random.default_rng(0).normal(40, 10, size=(5, 1000))
    >>> result = release_sequence(days, np.zeros((5, 0)), PubPrev([0.5], loc=40, scale=5), [0.5], epsilon=1, rng=1)
    >>> len(result), str(result.guarantee)
    (5, '(1, 0)-differentially private for a person with records in one data set only (add-remove)')
    """
    known = in_unit(features, "features")
    if known.ndim != 2 or not np.all(np.isfinite(known)):
        raise ValueError("features must be a table (T, d) of finite numbers")
    if isinstance(datasets, Sized) and len(datasets) != len(known):
        raise ValueError(f"datasets must be as many as features, {len(known)}, got {len(datasets)}")
    remaining = iter(datasets)
    session = Session(
        predictor,
        quantiles,
        epsilon=epsilon,
        individuals=individuals,
        composition=composition,
        delta=delta,
        ledger=ledger,
        rng=rng,
        **options,
    )
    path = None if checkpoint is None else Path(checkpoint).resolve()
    resumed = path is not None and _is_saved(path)
    if path is not None and resumed:
        session = _resumed(path, session, rng)
    turns = None if path is None else Turns(path, is_resumed=resumed)
    out = Releases([], session.guarantee)
    try:
        _check_steps_left(session, len(known))
        for row, x in _shown(_pairs(known, remaining, session.count), progress):
            if turns is not None:
                turns.take()
            out.append(session.step(row, x))
            if turns is not None:
                turns.stored(_store(session, turns.path))
        if turns is not None and resumed and not out:  # nothing was left to do, and nothing has been drawn
            turns.stored(_store(session, turns.path))
    except BaseException as error:
        hand_over(error, Releases([*out, *getattr(error, "releases", ())], session.guarantee))
        raise
    return Releases(out, session.guarantee)


def _pairs(features: npt.NDArray[np.float64], datasets: Iterator[Any], done: int) -> Iterator[tuple[Any, Any]]:
    """The features and the data sets that are not done yet. Raises `ValueError` where there are fewer or more."""
    for day, row in enumerate(features):
        x = next(datasets, _END)
        if x is _END:
            raise ValueError(f"datasets must be as many as features, {len(features)}, got {day}")
        if day >= done:
            yield row, x
    if next(datasets, _END) is not _END:
        raise ValueError(f"datasets must be as many as features, {len(features)}, got more")


def _check_steps_left(session: Session, total: int) -> None:
    learner = session.predictor
    if isinstance(learner, PrivatePredictor) and learner.steps_left < total - session.count:
        raise StepsExceeded(f"features has {total} rows, and the predictor is planned for fewer data sets")


def _shown(steps: Iterator[Any], progress: bool) -> Iterable[Any]:
    """The steps, with a bar for who looks on; a log file gets none."""
    if not progress:
        return steps
    from tqdm import tqdm

    shown: Iterable[Any] = tqdm(steps, disable=None, unit="data set")
    return shown


def _is_saved(path: Path) -> bool:
    """Whether there is a state to go on from. Raises `ValueError` where a run took it up and did not end, and for what
    is no file."""
    if is_there(path, "checkpoint"):
        return True
    left = left_over(path)
    if left is not None:
        raise ValueError(
            f"checkpoint was taken up by a run that ended before its next data set was done: {left} holds the "
            "state. To start anew would spend everybody's budget a second time; remove that file if this is meant"
        )
    return is_there(path, "checkpoint")


def _resumed(path: Path, like: Session, rng: Any) -> Session:
    """Raises `ValueError` naming checkpoint where another run takes it up after this one has seen it there."""
    try:
        return Session._resume(path, "checkpoint", like.ledger, generator_from(rng), like)
    except FileNotFoundError:
        raise ValueError(ANOTHER) from None


def _store(session: Session, path: Path) -> Identity:
    return session._store(path)
