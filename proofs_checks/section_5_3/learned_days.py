"""Sequences that learn distributions, beyond the paper: what their days cost, and what a wrong belief costs."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import z3

import pq
from pq.core.priors import PiecewiseConstant
from pq.core.request import Request
from pq.private.mechanisms import Outcome
from pq.private.mechanisms.cells import Cells
from pq.private.mechanisms.cells.law import log_cells_parts
from pq.sequential import PubDistribution
from proofs_checks.engine.registry import check
from proofs_checks.tools.solver import absolute, follows, prove

F = Fraction
HALF = F(1, 2)
FEATURES = ((0.5,), (-1.0,), (2.0,))
DAYS = tuple(tuple(F(k * k, 7) - 3 + day for k in range(12 + day)) for day in range(3))
FAR = F(400)
Days = tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True)
class Counted:
    """Stands for a release, of which the learner reads the outcome."""

    outcome: dict[str, Any]


class _Peeking(PubDistribution):
    """Today's cells lie along today's records."""

    def maker(self, features: Any, request: Request, before: Any = None) -> Any:
        made: Any = super().maker(features, request)
        around = pq.Normal(float(np.mean(self.today)), 2.0)  # type: ignore[attr-defined]
        return Cells(replace(made.request, priors=(around,)), "prior", number=made.plan.cells, reader=made.reader)


class _Remembering(PubDistribution):
    """Tomorrow's cells follow the true counts."""

    def note(self, features: Any, maker: Any, released: Any) -> None:
        edges = np.array(released.outcome["edges"])
        below = np.searchsorted(np.sort(self.today), edges, side="right")  # type: ignore[attr-defined]
        true = np.diff(below, prepend=0, append=len(self.today))  # type: ignore[attr-defined]
        self._beliefs = maker.reader.after(edges, true)


class _Counting(PubDistribution):
    """All that tomorrow knows beside the released counts is the true number of records."""

    def note(self, features: Any, maker: Any, released: Any) -> None:
        super().note(features, maker, released)
        mean = self._beliefs.mean.copy()
        mean[self._tracker.size_at] = len(self.today)  # type: ignore[attr-defined]
        self._beliefs = replace(self._beliefs, mean=mean)


class _Spending(PubDistribution):
    """Noise for a hundredth more than the budget."""

    def maker(self, features: Any, request: Request, before: Any = None) -> Any:
        return super().maker(features, replace(request, epsilon=F(101, 100) * F(request.epsilon)))


class _Thrifty(PubDistribution):
    """A hundredth of the budget kept back for learning."""

    def maker(self, features: Any, request: Request, before: Any = None) -> Any:
        return super().maker(features, replace(request, epsilon=F(99, 100) * F(request.epsilon)))


class _Moving(PubDistribution):
    """Under replace the noise of one moved count, as if a record could not change its cell."""

    def maker(self, features: Any, request: Request, before: Any = None) -> Any:
        return super().maker(features, replace(request, adjacency="add-remove"))


def facts(adjacency: str, epsilon: Fraction) -> Request:
    return Request.of([0.5], epsilon=epsilon, priors=pq.Cauchy(0, 1), mechanism="cells", adjacency=adjacency)


def learner(kind: type[PubDistribution]) -> Any:
    return kind([0.5], loc=0.0, scale=4.0, dimension=1, size_guess=12)


def true_counts(records: tuple[Fraction, ...], edges: list[float]) -> list[int]:
    """Records in each of `(-inf, e_1], (e_1, e_2], ..., (e_{c-1}, inf)`, one by one in fractions."""
    ends = [-math.inf, *map(F, edges), math.inf]
    return [sum(low < x <= high for x in records) for low, high in itertools.pairwise(ends)]


def walked(kind: type[PubDistribution], days: Days, request: Request, drawn: list[dict[str, Any]]) -> list[Fraction]:
    """For each day, minus the exact exponent of the probability of its counts if the data are these: `ε_c Σ|k - n|`.

    Fails unless the edges that were drawn are those that the learner has for them, bit by bit: else they could not come
    out. What `drawn` lacks is filled in: counts below the true ones in the outermost cells and above them elsewhere.
    """
    predictor, nats = learner(kind), []
    for day, (known, records) in enumerate(zip(FEATURES, days, strict=True)):
        predictor.today = np.array([float(x) for x in records])
        maker = predictor.maker(known, request)
        edges = maker.plan.edges(()).tolist()
        true = true_counts(records, edges)
        if len(drawn) == day:
            signs = [-5, *[5] * (len(true) - 2), -5]
            drawn.append({"places": [], "edges": edges, "counts": [n + s for n, s in zip(true, signs, strict=True)]})
        assert drawn[day]["edges"] == edges, "where cells lie depends on more than what was released"
        rate = F(maker.plan.noise.epsilon)
        nats.append(rate * sum(abs(k - n) for k, n in zip(drawn[day]["counts"], true, strict=True)))
        outcome = Outcome(np.zeros(1), None, tuple(drawn[day].items()))
        stated, rest = maker.log_parts(maker.column(np.sort(predictor.today), None), outcome)
        assert stated == nats[-1] and abs(rest - len(true) * math.log(math.tanh(float(rate) / 2))) < 1e-9
        predictor.note(known, maker, Counted(dict(drawn[day])))
    return nats


def changed(adjacency: str) -> Iterator[tuple[tuple[int, ...], Days]]:
    """Data that differ in one person's record of some days, and which days these are."""
    for some in ((0,), (1,), (2,), (0, 2), (0, 1, 2)):
        for place in (FAR, -FAR):
            with_more = [[*x, place] if day in some else x for day, x in enumerate(DAYS)]
            with_less = [x[:5] + x[6:] if day in some else x for day, x in enumerate(DAYS)]
            moved = [[*x[:5], *x[6:], place] if day in some else x for day, x in enumerate(DAYS)]
            kinds = [moved] if adjacency == "replace" else [with_more, with_less]
            yield from ((some, tuple(tuple(x) for x in kind)) for kind in kinds)


@check(
    "ours:tracked-privacy",
    code=(PubDistribution, log_cells_parts),
    rejects=[_Peeking, _Remembering, _Counting, _Spending, _Thrifty, _Moving],
)
def check_learned_days(subject: type[PubDistribution] = PubDistribution) -> str:
    """Three days that learn from each other: exact losses of one person's record in one, two or all of them."""
    cases = 0
    for adjacency, epsilon in itertools.product(("add-remove", "replace"), (F(1, 100), F(3, 2))):
        request, drawn = facts(adjacency, epsilon), list[dict[str, Any]]()
        own = walked(subject, DAYS, request, drawn)
        reached: dict[int, Fraction] = {}
        for some, days in changed(adjacency):
            each = [(a - b) / epsilon for a, b in zip(own, walked(subject, days, request, drawn), strict=True)]
            assert all((loss != 0) <= (day in some) for day, loss in enumerate(each)), "another day tells of the record"
            assert max(map(abs, each)) <= 1 and all(2 * loss == int(2 * loss) for loss in each)
            reached[len(some)] = max(reached.get(len(some), F(0)), abs(sum(each, F(0))))
            cases += 1
        assert reached == {1: 1, 2: 2, 3: 3}, reached
    return f"a record pays epsilon for each day that it is in, and nothing for what is learnt: {cases} exact losses"


@check(
    "ours:tracked-privacy",
    rejects=[(F(1), F(1)), (F(1), F(1, 4)), (F(1, 2), F(1, 2)), (F(101, 100), F(1, 2)), (F(1), F(99, 200))],
)
def check_counts_move(subject: tuple[Fraction, Fraction] = (F(1), F(1, 2))) -> str:
    """A day's loss given its edges, for all integers: one count moves by one, or of a replaced record two do or none;
    at the rates of add-remove and of replace, in units of epsilon, it is at most one and attains it, and k days add."""
    k, j, n, i = z3.Ints("k j n i")  # released counts, and the true ones
    one, two = (z3.RealVal(str(rate)) for rate in subject)
    more = one * z3.ToReal(absolute(k - n - 1) - absolute(k - n))
    moved = two * z3.ToReal(absolute(k - n - 1) + absolute(j - i + 1) - absolute(k - n) - absolute(j - i))
    for loss, counts in ((more, (0, 0, 0, 0)), (moved, (0, 1, 0, 1))):
        prove(absolute(loss) <= 1, "a day")
        at = z3.substitute(loss, *((v, z3.IntVal(count)) for v, count in zip((k, j, n, i), counts, strict=True)))
        assert z3.is_true(z3.simplify(at == 1)), "less than epsilon is spent"
    first, second = z3.Reals("first second")
    days = z3.Int("days")
    joint = z3.And(absolute(first) <= z3.ToReal(days), absolute(second) <= 1)
    prove(z3.Implies(joint, absolute(first + second) <= z3.ToReal(days) + 1), "one day more")
    return (
        "a day's counts lose epsilon at most, whatever came out, under both adjacencies; days add up (z3, all integers)"
    )


# --- a wrong belief ---------------------------------------------------------------------------------------------------

WEIGHTS = F(1, 4), F(1, 10)
SLACK = F(1, 512)  # the tables of laws have levels 1/1024 apart


class _Alone(PubDistribution):
    """No broad law."""

    def _law(self, ahead: Any) -> Any:
        return super()._law(ahead).priors[0]


class _Averaged(PubDistribution):
    """The broad law is mixed in by its quantiles, not by its mass."""

    def maker(self, features: Any, request: Request, before: Any = None) -> Any:
        made: Any = super().maker(features, request)
        ahead, levels = made.reader, np.arange(1, 1024) / 1024
        broad = np.array([self.robust.quantile_between(-math.inf, math.inf, levels)])[0]
        edges = (1 - self.robust_weight) * ahead.table()[7::8] + self.robust_weight * broad[7::8]
        law = PiecewiseConstant(edges.tolist(), [1.0] * (len(edges) - 1))
        return Cells(replace(made.request, priors=(law,)), "prior", number=made.plan.cells, reader=ahead)


class _Less(PubDistribution):
    """A hundredth less of the broad law than is said."""

    by = 0.99

    def __init__(self, *arguments: Any, robust_weight: float, **named: Any) -> None:
        super().__init__(*arguments, robust_weight=self.by * robust_weight, **named)


class _More(_Less):
    """A hundredth more, which the beliefs are short of."""

    by = 1.01


class _Blind(PubDistribution):
    """Where the floats end, a law that is narrow."""

    def _law(self, ahead: Any) -> Any:
        return super()._law(ahead) if ahead.is_known else pq.Cauchy(0, 0.5)


class _First(PubDistribution):
    """The broad law is there on the first day only."""

    def note(self, features: Any, maker: Any, released: Any) -> None:
        super().note(features, maker, released)
        self.robust_weight = 1e-9


def cauchy_mass(low: float, high: float) -> Any:
    """Of the broad law, with thirty digits."""
    with mpmath.workdps(30):
        return (mpmath.atan(mpmath.mpf(high)) - mpmath.atan(mpmath.mpf(low))) / mpmath.pi


def step_mass(law: Any, low: float, high: float) -> Fraction:
    """Of a law that is even between its edges, in fractions."""
    total, mass = sum(map(F, law.weights), F(0)), F(0)
    for (a, b), weight in zip(itertools.pairwise(law.edges), law.weights, strict=True):
        inside = max(min(F(b), F(min(high, 1e300))) - max(F(a), F(max(low, -1e300))), F(0))
        mass += F(weight) / total * inside / (F(b) - F(a))
    return mass


def misled(kind: type[PubDistribution], days: int, weight: Fraction) -> Any:
    """A learner that believes in records around 1000, and was told so on some days."""
    predictor = kind(
        [0.5], loc=1000.0, scale=1.0, dimension=0, robust=pq.Cauchy(0, 1), robust_weight=float(weight), size_guess=200
    )
    request, column = facts("add-remove", F(1)), np.sort(np.random.default_rng(0).normal(1000, 1, size=200))
    for _ in range(days):
        maker: Any = predictor.maker([], request)
        edges = maker.plan.edges(())
        counts = np.diff(np.searchsorted(column, edges, side="right"), prepend=0, append=len(column))
        predictor.note([], maker, Counted({"edges": edges.tolist(), "counts": counts.tolist()}))
    return predictor


@check(
    "ours:tracked-mixing",
    code=PubDistribution,
    rejects=[
        lambda number, weight, slack: (1 / number + slack / 2) / weight,
        lambda number, weight, slack: 1 / number + slack,
        lambda number, weight, slack: (1 / number + slack) / (1 - weight),
        *(lambda number, weight, slack, by=by: by * (1 / number + slack) / (100 * weight) for by in (99, 101)),
    ],
)
def check_table_of_a_law(
    subject: Any = lambda number, weight, slack: (1 / number + slack) / weight,
) -> str:
    """Edges read off quantiles at levels 1/1024 apart: a cell of 1/K has at most 1/K + 1/512 of a law without jumps, so
    (1/K + 1/512)/gamma of the broad part, which a belief without mass there attains (z3). A law that all but jumps,
    LogUniform at 0, has more in one cell."""
    one, two, level, wide, below, upto = z3.Reals("one two level wide below upto")
    fine = z3.RealVal("1/1024")  # one, two: the law at the edges of a cell; between which levels of the table they lie
    first = z3.And(level >= below, level <= below + fine, one >= below, one <= below + fine)
    second = z3.And(level + wide >= upto, level + wide <= upto + fine, two >= upto, two <= upto + fine)
    follows(first, second, goal=two - one <= wide + 2 * fine)
    broad, belief, weight, number = z3.Reals("broad belief weight number")
    slack, whole = z3.RealVal(str(SLACK)), weight * broad + (1 - weight) * belief
    known = (broad >= 0, belief >= 0, weight > 0, weight < 1, number >= 1)
    follows(*known, whole <= 1 / number + slack, goal=broad <= subject(number, weight, slack))
    follows(*known, whole == 1 / number + slack, belief == 0, goal=broad == subject(number, weight, slack))
    robust = pq.LogUniform()
    scarce = PubDistribution([0.5], loc=0.0, scale=1.0, dimension=0, robust=robust, robust_weight=0.5, size_guess=2000)
    maker: Any = scarce.maker([], facts("add-remove", F(1)))
    assert len(maker.reader.table()) == 1023, "as the row says"
    edges = [-math.inf, *maker.plan.edges(()).tolist(), math.inf]
    most = max(math.exp(robust.log_mass(*cell)) for cell in itertools.pairwise(edges))
    limit = (F(1, maker.plan.cells) + SLACK) / HALF + SLACK
    assert (maker.plan.cells, round(most, 3), round(float(limit), 3)) == (58, 0.07, 0.04), "as the row says"
    return "a cell has at most (1/K + 1/512)/gamma of a broad law without jumps (z3); of LogUniform 0.070, not 0.040"


@check(
    "ours:tracked-mixing",
    code=(PubDistribution, pq.log_psi),
    rejects=[_Alone, _Averaged, _Less, _More, _Blind, _First],
)
def check_broad_law(subject: type[PubDistribution] = PubDistribution) -> str:
    """Masses of both laws in cells and intervals, by arc tangents and fractions, under beliefs that are all wrong."""
    cases, worst = 0, dict[Fraction, float]()
    for days, weight in itertools.product((0, 1, 6), WEIGHTS):
        predictor = misled(subject, days, weight)
        prior = copy.copy(predictor).priors([])[0]
        for low, width in itertools.product((-50.0, -1.0, 0.0, 3.0, 990.0, 999.5, 1e6), (1e-6, 0.3, 20.0, 1e5)):
            mass = math.exp(prior.log_mass(low, low + width))
            broad = cauchy_mass(low, low + width)
            own = step_mass(getattr(prior, "priors", [prior])[0], low, low + width)
            assert mass >= float(weight * (1 - F(1, 10**6))) * broad and mass >= float((1 - weight) * own) * (1 - 1e-6)
            loss, alone = (-pq.log_psi(np.array([low, low + width]), 0.5, law) for law in (prior, pq.Cauchy(0, 1)))
            assert loss <= alone + math.log(1 / weight) + 1e-6, (low, width)
            cases += 1
        maker: Any = predictor.maker([], facts("add-remove", F(1)))
        edges, number = [-math.inf, *maker.plan.edges(()).tolist(), math.inf], maker.plan.cells
        most = max(cauchy_mass(*cell) for cell in itertools.pairwise(edges)) * number * float(weight)
        assert most <= 1 + float(number * (SLACK + SLACK * weight)), (days, float(most))
        own_most = max(step_mass(predictor._law(maker.reader).priors[0], *cell) for cell in itertools.pairwise(edges))
        assert own_most <= (F(1, number) + SLACK) / (1 - weight) + SLACK, (days, float(own_most))
        worst[weight] = max(worst.get(weight, 0.0), float(most))
    assert min(worst.values()) > 0.97, "cells are finer than they need be"
    far = subject([0.5], loc=1e300, scale=1.0, dimension=0, robust=pq.Cauchy(0, 1))  # no float lies between the places
    for low, high in ((-1.0, 0.3), (2.0, 5e9)):
        found = math.exp(far.priors([])[0].log_mass(low, high))
        assert math.isclose(found, cauchy_mass(low, high), rel_tol=1e-9), "the broad law alone where the floats end"
    most = max(worst.values())
    return (
        f"a broad law of weight g = 1/4, 1/10 loses at most log 1/g: {cases} masses; no cell has over {most:.2f}/(g K)"
    )
