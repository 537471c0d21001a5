"""One sequence of releases in progress: its budget, its noise, and a state to save and resume (Section 5.3).

Two assumptions about people decide what a sequence costs. "disjoint": nobody's records are in two data sets, so that
the sequence costs everybody what one data set costs. "overlap": somebody may be in all of them, and budgets add.
"""

from __future__ import annotations

import copy
import inspect
import math
import os
import secrets
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pq.core.budget.composition import Cost
from pq.core.budget.guarantee import Guarantee
from pq.core.budget.ledger import Ledger, as_ledger
from pq.core.choices import check_choice, check_name
from pq.core.exact import Number, briefly, budget_float, budget_fraction, quantile_fractions
from pq.core.kind import in_unit
from pq.core.locks import ForkedError, Process, Renewable, is_mine
from pq.core.priors import LogUniform
from pq.core.priors.arguments import finite_number
from pq.core.request import Request
from pq.private.columns.counts import Counts
from pq.private.columns.door import Readable
from pq.private.mechanisms import Mechanism
from pq.private.randomness import Source, generator_from
from pq.private.release import Release, fulfil, promised_column, release
from pq.private.sequential.predictors import Predictor, PrivatePredictor
from pq.private.sequential.state import Identity, claimed, described, store

_OPTIONS = {
    name: parameter.default
    for name, parameter in inspect.signature(release).parameters.items()
    if parameter.kind is parameter.KEYWORD_ONLY and name not in ("epsilon", "priors", "rng", "ledger", "purpose")
}
ENDLESS = ("tree", "cells")  # mechanisms that have a law at an infinite epsilon
WITHIN_FORK = "this sequence was forked in the middle of a step, which is its parent's to finish"
Individuals = Literal["disjoint", "overlap"]
Composition = Literal["pure", "zcdp"]


class Session:
    """A sequential release in progress: one `step` for each data set.

    predictor: a `Predictor` for the same number of quantiles; it is copied. quantiles: (m,). epsilon: budget of each
    data set, from which a predictor that learns privately takes its own; under "disjoint" that is all that anybody
    pays. individuals: "disjoint" or "overlap". composition: how budgets add under "overlap", "pure" or "zcdp"; the
    latter gives the total at the given delta. ledger: a `pq.Ledger` or the path of one, charged for every data set
    before it is touched; under "disjoint" the data sets are groups of one pool, which together cost what one does.
    rng: None for noise from the operating system at every step; a generator or a seed are for tests and papers.
    options: other arguments of `pq.release`, such as adjacency, calibration, grid, on_nan; mechanism is the predictor's
    own unless given.

    Threads may share a session. What goes on elsewhere, a fork or a copy, is another sequence: its noise comes from the
    operating system, and a ledger is charged for it anew.

    Raises `TypeError` or `ValueError` naming the argument, before data are touched: also for a predictor whose privacy
    needs disjoint individuals under "overlap".
    """

    _torn = False

    def __init__(
        self,
        predictor: Predictor,
        quantiles: Any,
        *,
        epsilon: Number,
        individuals: Individuals = "disjoint",
        composition: Composition = "pure",
        delta: float = 0.0,
        ledger: Ledger | str | os.PathLike[str] | None = None,
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
        risk = finite_number(delta, "delta")
        if composition == "zcdp" and not 0.0 < risk < 1.0:
            raise ValueError(f"delta must lie strictly between 0 and 1 for zCDP, got {briefly(delta)}")
        unknown = sorted(set(options) - set(_OPTIONS))
        if unknown:
            raise TypeError(f"{unknown[0]} is no argument of pq.release or of a sequence")
        self.epsilon = budget_fraction(epsilon)
        self.learning_epsilon, self.learning_delta = _learning(predictor, individuals)
        self.release_epsilon = self._release_budget()
        # Bad options are refused here, before the first data set and before anything is charged.
        options = {"mechanism": predictor.released_by} | options
        self._request = Request.of(quantiles, epsilon=self.release_epsilon, priors=LogUniform(), **(_OPTIONS | options))
        if math.isinf(self.learning_epsilon):  # releases must be able to say how they were made
            check_name(self._request.mechanism, ENDLESS, "mechanism")
        predictor.check(self._request)
        self.predictor, self.quantiles = copy.deepcopy(predictor), quantiles
        self.individuals, self.composition, self.delta = individuals, composition, risk
        self.options, self.ledger = options, as_ledger(ledger)
        self.count, self._cost = 0, Cost()
        self._begin(generator_from(rng))
        # the same object in two sequences must not draw the same noise
        self.predictor.renew(None if self._rng is None else self._rng.spawn(1)[0])

    def _release_budget(self) -> Fraction | float:
        if math.isinf(self.learning_epsilon):
            return self.epsilon
        if self.learning_epsilon >= self.epsilon:
            raise ValueError(
                f"epsilon must exceed what the predictor spends on learning, {float(self.learning_epsilon):g}"
            )
        return self.epsilon - self.learning_epsilon

    def _begin(self, rng: np.random.Generator | None) -> None:
        """A sequence of its own, of this process: a name in a ledger, a source of noise, a lock."""
        self._pool, self._rng = f"sequence {secrets.token_hex(8)}", rng
        self._process, self._lock = os.getpid(), Renewable()
        self._maker: Mechanism | None = None  # of the last data set

    def __copy__(self) -> Session:
        """Two sequences share nothing that either changes."""
        return copy.deepcopy(self)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_rng", "_lock", "_maker")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin(None)

    def step(self, features: npt.ArrayLike, x: Any) -> Release:
        """Release the quantiles of the next data set x (n,), n = 0 included, and let the predictor take note.

        An exception that comes after the release has it in a list, `releases`. Raises `RuntimeError` in a handler of
        signals that interrupts a step or a `save`.
        """
        self._check_turn()
        if os.getpid() != self._process:
            self._begin(None)
        if self._torn:
            raise ForkedError(WITHIN_FORK)
        process = Process()
        try:
            with self._lock.now, np.errstate(all="ignore"):  # public features and released values may be of any size
                released = self._step(in_unit(features, "features"), x)
        finally:
            self._torn = not process.is_here  # what it learns then would be learnt twice, with other noise
        process.check()
        return released

    def _check_turn(self) -> None:
        """Refuse a handler of signals what it would wait for in vain: its own thread is in the middle of it."""
        if is_mine(self._lock.now):
            if os.getpid() != self._process:
                raise ForkedError(WITHIN_FORK)
            raise RuntimeError("this sequence is in the middle of a step or a save of this thread; come back after it")

    def _step(self, features: npt.NDArray[np.float64], x: Any) -> Release:
        learner = self.predictor if isinstance(self.predictor, PrivatePredictor) else None
        if learner is not None:
            learner.check_step()
        self._maker = maker = self.predictor.maker(features, self._request, self._maker)
        column = promised_column(x, maker)  # refuses a declared type before the charge
        source = Source(self._rng)  # of the process that pays
        self._charge(maker)
        released = fulfil(maker, column, source)
        if learner is not None and math.isinf(learner.epsilon):  # the priors have seen the records: no guarantee
            released = replace(released, epsilon=math.inf)
        self.count += 1
        try:
            self.predictor.note(features, maker, released)
            if learner is not None:
                learner.learn(features, _records(column, self._request.on_nan))
        except BaseException as error:
            hand_over(error, [released])
            raise
        return released

    def _charge(self, maker: Mechanism) -> None:
        """Take this data set's budget from the ledger: disjoint people are groups of one pool, others add up."""
        if self.ledger is None and self.individuals == "disjoint":  # everybody pays once, whatever is released
            return
        amount = math.inf if math.isinf(self.learning_epsilon) else self.epsilon
        cost = None
        if not math.isinf(amount):
            cost = Cost.of(self.release_epsilon, rho=maker.rho)
            if self.learning_epsilon:
                cost += Cost.of(self.learning_epsilon, delta=self.learning_delta)
        if self.ledger is not None:
            group = f"data set {self.count + 1}"
            pool = {"pool": self._pool, "group": group} if self.individuals == "disjoint" else {}
            self.ledger.spend(
                amount,  # a ledger refuses infinity
                f"sequential release of {group}",
                delta=self.learning_delta,
                rho=None if cost is None else cost.rho,
                adjacency=self._adjacency,
                **pool,  # type: ignore[arg-type]
            )
        self._cost += cost or Cost()

    @property
    def _adjacency(self) -> Any:
        return self.options.get("adjacency", _OPTIONS["adjacency"])

    @property
    def guarantee(self) -> Guarantee:
        """What all releases so far cost a person in total."""
        epsilon, delta = self.epsilon, self.learning_delta
        if self.individuals == "overlap":
            delta = self.delta if self.composition == "zcdp" else 0.0
            if not math.isinf(self.epsilon):
                epsilon = self._cost.epsilon_at(delta)
        private = not math.isinf(self.learning_epsilon)
        return Guarantee(
            budget_float(epsilon) if private else math.inf,
            delta,
            self.individuals,
            self._adjacency,
            self.count,
            budget_float(self.release_epsilon),
            budget_float(self.learning_epsilon),
            self.learning_delta,
        )

    @property
    def arguments(self) -> dict[str, Any]:
        """What it was made with, as plain values, seeds and ledger apart: a state goes on with the same only."""
        return {
            "predictor": self.predictor.given,
            "quantiles": quantile_fractions(self.quantiles),
            "epsilon": self.epsilon,
            "individuals": self.individuals,
            "composition": self.composition,
            "delta": self.delta,
        } | {name: described(value) for name, value in (_OPTIONS | self.options).items()}

    def save(self, path: str | Path) -> None:
        """Store all that the sequence needs to go on, in one step; readable by the owner only.

        The file holds the private sums of a `DPLearned` before noise: it is as sensitive as the records. The ledger is
        not in it, only its identity. Random streams are not either: what has been drawn stays drawn, what comes is
        drawn anew. Raises `RuntimeError` in a handler of signals that interrupts a step, and `ValueError` naming path
        where a folder, a pipe or a device is.
        """
        self._store(Path(path).resolve())

    def _store(self, path: Path) -> Identity:
        """`save`, and what tells the file from any other."""
        self._check_turn()
        with self._lock.now:  # not in the middle of a step
            state = self.__getstate__()
            state["ledger"] = None if self.ledger is None else self.ledger.identity
            return store(state, path)

    @classmethod
    def resume(
        cls,
        path: str | Path,
        *,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        rng: Any = None,
        like: Session | None = None,
    ) -> Session:
        """Go on from a saved state, once: the file is renamed before it is read, for two continuations of one state
        would both spend, and afterwards lies at `<path>.used`. A copy of the file, or a hard link to it, is a state of
        its own, which could be resumed besides: keep none. Only open files that you made: they are pickles.

        ledger: the one charged so far, needed if there was one. rng: None for the operating system; a seed gives
        another stream than at any other data set. like: a session whose arguments must be those of the state.
        Raises `FileNotFoundError` if another was quicker, `ValueError` naming ledger, the argument that differs, or
        path for what is no saved session, be it a folder or a device; whatever is there is then where it was, or at
        `<path>.used` where another has been saved meanwhile, or a file system has no hard links, without which it could
        be put over another one.
        """
        return cls._resume(path, "path", as_ledger(ledger), generator_from(rng), like)

    @classmethod
    def _resume(
        cls,
        path: str | Path,
        argument: str,
        account: Ledger | None,
        stream: np.random.Generator | None,
        like: Session | None,
    ) -> Session:
        """`resume` from a path that an argument of that name has given."""
        # of a link the file that it leads to: another may lead there
        with claimed(Path(path).resolve(), argument) as state:
            identity, pool = state.pop("ledger"), state["_pool"]
            session = object.__new__(cls)
            session.__setstate__(state | {"ledger": account})
            if identity is not None and (account is None or account.identity != identity):
                raise ValueError("ledger must be the one that the sequence was charged to when it was saved")
            for name, value in {} if like is None else like.arguments.items():
                if value != session.arguments[name]:
                    raise ValueError(f"{name} must be that of the saved sequence")
        session._pool, session._rng = pool, None if stream is None else _at(stream, session.count)
        session.predictor.renew(None if session._rng is None else session._rng.spawn(1)[0])
        return session


def hand_over(error: BaseException, releases: list[Release]) -> None:
    """Give an exception the releases that were made before it: they are paid for."""
    with suppress(Exception):  # an exception that takes no attribute
        error.releases = releases  # type: ignore[attr-defined]


def _records(column: Readable, on_nan: str) -> Any:
    """The records that the release has read: some columns can be read no more often."""
    values, before = column.records(on_nan)
    return values if before is None else Counts(values, np.diff(before))


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


def _at(rng: np.random.Generator, count: int) -> np.random.Generator:
    """A stream that no other number of data sets has, for one seed is often given to every run."""
    return np.random.default_rng([count + 1, *rng.integers(2**32, size=8).tolist()])
