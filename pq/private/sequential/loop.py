"""The loop over data sets: predict, release, learn; its budget, and a state to save and resume (Section 5.3).

Two assumptions about people decide what a sequence costs. "disjoint": nobody's records are in two data sets, so that
the sequence costs everybody what one data set costs. "overlap": somebody may be in all of them, and budgets add.
"""

from __future__ import annotations

import copy
import inspect
import math
import os
import pickle
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from pq.core.budget.guarantee import Guarantee, zcdp_total
from pq.core.budget.ledger import Ledger
from pq.core.choices import check_choice
from pq.core.exact import Number, budget_fraction, quantile_fractions
from pq.core.priors import Cauchy, Prior
from pq.core.request import Request, distinct_priors
from pq.private.columns.frames import records_of
from pq.private.mechanisms import Mechanism, mechanism_for
from pq.private.randomness import Source
from pq.private.release import Release, fulfil, release
from pq.private.sequential.predictors import Predictor, PrivatePredictor

_OPTIONS = {
    name: parameter.default
    for name, parameter in inspect.signature(release).parameters.items()
    if parameter.kind is parameter.KEYWORD_ONLY and name not in ("epsilon", "priors", "rng")
}
Individuals = Literal["disjoint", "overlap"]
Composition = Literal["pure", "zcdp"]


class Releases(list[Release]):
    """The releases in order, and the `guarantee` that holds for all of them together."""

    def __init__(self, releases: Iterable[Release], guarantee: Guarantee) -> None:
        super().__init__(releases)
        self.guarantee = guarantee


class Session:
    """A sequential release in progress: one `step` for each data set.

    predictor: a `Predictor` for the same number of quantiles; it is copied. quantiles: (m,). epsilon: budget of each
    data set, from which a predictor that learns privately takes its own; under "disjoint" that is all that anybody
    pays. individuals: "disjoint" or "overlap". composition: how budgets add under "overlap", "pure" or "zcdp"; the
    latter gives the total at the given delta. ledger: a `pq.core.budget.ledger.Ledger`, charged for every data set
    before it is touched; under "disjoint" the data sets are groups of one pool, which together cost what one does.
    rng: as for `pq.release`. options: other arguments of `pq.release`, such as adjacency, calibration, grid, on_nan.

    Raises `TypeError` or `ValueError` naming the argument, before data are touched: also for a predictor whose privacy
    needs disjoint individuals under "overlap".
    """

    def __init__(
        self,
        predictor: Predictor,
        quantiles: Any,
        *,
        epsilon: Number,
        individuals: Individuals = "disjoint",
        composition: Composition = "pure",
        delta: float = 0.0,
        ledger: Ledger | None = None,
        rng: Any = None,
        **options: Any,
    ) -> None:
        if not isinstance(predictor, Predictor):
            raise TypeError(f"predictor must be a pq.sequential predictor, got {type(predictor).__name__}")
        check_choice(individuals, Individuals, "individuals")
        check_choice(composition, Composition, "composition")
        m = len(quantile_fractions(quantiles))
        if m != predictor.m:
            raise ValueError(f"quantiles must be the predictor's {predictor.m}, got {m}")
        if composition == "zcdp" and not 0 < delta < 1:
            raise ValueError(f"delta must lie strictly between 0 and 1 for zCDP, got {delta}")
        self.epsilon = budget_fraction(epsilon)
        self.learning_epsilon, self.learning_delta = _learning(predictor, individuals)
        self.release_epsilon = self._release_budget()
        self.predictor, self.quantiles = copy.deepcopy(predictor), quantiles
        self.individuals, self.composition, self.delta = individuals, composition, float(delta)
        self.ledger, self.options = ledger, options
        self._rng = _generator(rng)
        self.predictor.renew(self._rng.spawn(1)[0])  # the same object in two sequences must not draw the same noise
        self.count, self._pool = 0, f"sequence {secrets.token_hex(4)}"
        unknown = sorted(set(options) - set(_OPTIONS))
        if unknown:
            raise TypeError(f"{unknown[0]} is no argument of pq.release or of a sequence")
        # Bad options are refused here, before the first data set and before anything is charged.
        self._request = Request.of(
            quantiles, epsilon=self.release_epsilon, priors=Cauchy(0.0, 1.0), **(_OPTIONS | options)
        )

    def _release_budget(self) -> Fraction | float:
        if math.isinf(self.learning_epsilon):
            return self.epsilon
        if self.learning_epsilon >= self.epsilon:
            raise ValueError(
                f"epsilon must exceed what the predictor spends on learning, {float(self.learning_epsilon):g}"
            )
        return self.epsilon - self.learning_epsilon

    def step(self, features: npt.ArrayLike, x: Any) -> Release:
        """Release the quantiles of the next data set x (n,), n = 0 included, and let the predictor take note."""
        known = np.array(features, dtype=np.float64)
        maker = _with_priors(self._request, self.predictor.priors(known))
        self._charge()
        learner = self.predictor if isinstance(self.predictor, PrivatePredictor) else None
        if learner is not None:
            x = _records(x, self._request.on_nan)  # the same for the release and for the learner
        released = fulfil(maker, x, Source(self._rng))
        self.count += 1
        self.predictor.observe(known, released.values)
        if learner is not None:
            with np.errstate(all="ignore"):
                learner.learn(known, x)
            if math.isinf(learner.epsilon):  # the priors have seen the records: nothing is guaranteed
                released = replace(released, epsilon=math.inf)
        return released

    def _charge(self) -> None:
        """Take this data set's budget from the ledger: disjoint people are groups of one pool, others add up."""
        if self.ledger is None:
            return
        amount = math.inf if math.isinf(self.learning_epsilon) else self.epsilon  # a ledger refuses infinity
        delta = f", delta {self.learning_delta:g} for learning" if self.learning_delta else ""
        what = f"sequential release of data set {self.count + 1}{delta}"
        if self.individuals == "disjoint":
            self.ledger.spend(amount, what, pool=self._pool, group=f"data set {self.count + 1}")
        else:
            self.ledger.spend(amount, what)

    @property
    def guarantee(self) -> Guarantee:
        """What all releases so far cost a person in total."""
        epsilon, delta = float(self.epsilon), self.learning_delta
        if self.individuals == "overlap":
            epsilon, delta = float(self.epsilon * self.count), 0.0
            if self.composition == "zcdp":
                epsilon, delta = zcdp_total(self.epsilon, self.count, self.delta), self.delta
        private = not math.isinf(self.learning_epsilon)
        return Guarantee(
            epsilon if private else math.inf,
            delta,
            self.individuals,
            self.options.get("adjacency", "add-remove"),
            self.count,
            float(self.release_epsilon),
            float(self.learning_epsilon),
            self.learning_delta,
        )

    def save(self, path: str | Path) -> None:
        """Store all that the sequence needs to go on, in one step; readable by the owner only.

        The file holds the private sums of a `DPLearned` before noise: it is as sensitive as the records. The ledger is
        not in it. Random streams are not either: what has been drawn stays drawn, what comes is drawn anew.
        """
        kept = copy.copy(self)
        kept.ledger = None
        del kept._rng
        target, part = Path(path), Path(f"{path}.part")
        part.unlink(missing_ok=True)  # one that a crash or somebody else left may be open to others
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            pickle.dump(kept, file)
        os.replace(part, target)

    @classmethod
    def resume(cls, path: str | Path, *, ledger: Ledger | None = None, rng: Any = None) -> Session:
        """Go on from a saved state, once: the file is renamed to `<path>.used`, for two continuations of one state
        would share the noise of its private sums. Only open files that you made: they are pickles.

        ledger: the one charged so far. rng: a new stream; by default from
        the operating system. With a seed it must be another one than before.
        """
        with open(path, "rb") as file:
            session = pickle.load(file)
        if not isinstance(session, cls):
            raise ValueError("path must be a saved session")
        os.replace(path, _used(path))
        session.ledger, session._rng = ledger, _generator(rng)
        session.predictor.renew(session._rng.spawn(1)[0])
        return session


def _records(x: Any, on_nan: str) -> Any:
    """The records of any column that `pq.release` takes, sorted, one by one."""
    values, before = records_of(x, on_nan)
    return values if before is None else np.repeat(values, np.diff(before))


def _used(path: str | Path) -> Path:
    """Where a state lies after it has been resumed, until the next one is saved."""
    return Path(f"{path}.used")


def _store(session: Session, path: Path) -> None:
    session.save(path)
    _used(path).unlink(missing_ok=True)


def _learning(predictor: Predictor, individuals: str) -> tuple[Fraction | float, float]:
    if not isinstance(predictor, PrivatePredictor):
        return Fraction(0), 0.0
    if predictor.used:
        raise ValueError("predictor must be a new one: its noise has been used for other data sets")
    if individuals == "overlap" and not math.isinf(predictor.epsilon):
        raise ValueError(
            "individuals must be disjoint for a predictor that learns privately: its noise protects one data set"
        )
    return predictor.epsilon, predictor.delta


def _with_priors(request: Request, priors: Sequence[Prior]) -> Mechanism:
    """The mechanism of the same request with one prior for each quantile in the caller's order."""
    return mechanism_for(replace(request, priors=distinct_priors(priors, request.distinct, request.positions)))


def _generator(rng: Any) -> np.random.Generator:
    if isinstance(rng, (bool, str)):
        raise TypeError(f"rng must be a numpy.random.Generator, a seed or None, got {type(rng).__name__}")
    return np.random.default_rng(rng)


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
    ledger: Ledger | None = None,
    checkpoint: str | Path | None = None,
    progress: bool = False,
    rng: Any = None,
    **options: Any,
) -> Releases:
    """Release the same quantiles of one data set after another, with priors that a predictor learns on the way.

    Paper: Section 5.3 and `thm:sequential`.

    datasets: T columns of sensitive numbers, empty ones included; iterated once. Which data sets there are, and in what
        order, must be public: leaving out those with few records would tell who was not there.
    features: (T, d) public numbers known before each data set.
    predictor: `pq.sequential.Static`, `PubPrev`, `PubProx`, `DPLearned` or `NonPrivate`. It is copied, not changed.
    quantiles: (m,), those of the predictor. epsilon: budget of each data set, see `Session`.
    individuals, composition, delta, ledger, options: see `Session`.
    checkpoint: file to which the state is saved after every data set. If it is there already, the sequence goes on from
        it with the data sets after those that are done (datasets and features are given in full), and only the new
        releases are returned. The predictor, quantiles and budgets are then the saved ones. See `Session.resume`.
    progress: show a bar on stderr. rng: as for `pq.release`.

    Returns a list of T `Release`s that has a `guarantee`. Raises `TypeError` or `ValueError` naming the argument.
    Guarantees what the result's `guarantee` says: under "disjoint" a person pays epsilon once, of which a `DPLearned`
    takes its part; under "overlap" budgets add.

    >>> import numpy as np, pq
    >>> from pq.private.sequential import PubPrev, release_sequence
    >>> days = np.random.default_rng(0).normal(40, 10, size=(5, 1000))
    >>> result = release_sequence(days, np.zeros((5, 0)), PubPrev([0.5], loc=40, scale=5), [0.5], epsilon=1, rng=1)
    >>> len(result), str(result.guarantee)
    (5, '(1, 0)-differentially private for a person with records in one data set only (add-remove)')
    """
    known = np.asarray(features, dtype=np.float64)
    if known.ndim != 2 or not np.all(np.isfinite(known)):
        raise ValueError("features must be a table (T, d) of finite numbers")
    path = None if checkpoint is None else Path(checkpoint)
    resumed = path if path is not None and path.exists() else None
    if resumed is not None:
        session = Session.resume(resumed, ledger=ledger, rng=rng)
    elif path is not None and _used(path).exists():
        raise ValueError(
            f"checkpoint was taken up by a run that ended before its next data set was done: {_used(path)} holds the "
            "state. To start anew would spend everybody's budget a second time; remove that file if this is meant"
        )
    else:
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
    pairs = zip(known, datasets, strict=True)
    out = []
    for day, (row, x) in enumerate(tqdm(pairs, total=len(known), disable=not progress, unit="data set")):
        if day >= session.count:
            out.append(session.step(row, x))
            if path is not None:
                _store(session, path)
    if resumed is not None and not out:  # nothing was left to do, and nothing has been drawn
        _store(session, resumed)
    return Releases(out, session.guarantee)
