"""What learning the weights of a joint prior pays, beyond the paper: on every sequence, and all of it on some; what
their average pays in expectation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import sympy
import z3

from pq.core.public_joint import average_posterior
from proofs_checks.engine.registry import check
from proofs_checks.tools.solver import follows

F = Fraction
MASSES = (F(0), F(1, 2), F(1))  # of the others; the first member's is a half


def posteriors(weights: tuple[Fraction, ...], rows: tuple[tuple[Fraction, ...], ...]) -> Iterator[list[Fraction]]:
    """Exact posterior weights before each data set, and after the last."""
    now = list(weights)
    yield now
    for row in rows:
        now = [w * s for w, s in zip(now, row, strict=True)]
        total = sum(now, F(0))
        now = [w / total for w in now]
        yield now


def _never_learns(weights: Any, log_psi: Any) -> Any:
    return weights


def _learns_the_wrong_way(weights: Any, log_psi: Any) -> Any:
    return average_posterior(weights, -np.asarray(log_psi))


ROWS = ((F(9, 10), F(1, 1000), F(1, 3)), (F(1, 2), F(1, 900), F(3, 4)))  # shares of three members in two data sets


@check("ours:joint-weights", code=average_posterior, rejects=[_never_learns, _learns_the_wrong_way])
def check_learned_weights(subject: Callable[..., Any] = average_posterior) -> str:
    """Telescoping in fractions; expected U of averaged posteriors over all sequences, beside log(L) / T."""
    start, chances, cases = (F(1, 3),) * 3, (F(2, 3), F(1, 3)), 0
    for length in (1, 2, 4, 7):
        expected = 0.0
        for picks in itertools.product(range(2), repeat=length):
            rows = tuple(ROWS[i] for i in picks)
            seen = [*posteriors(start, rows)]
            paid = math.prod(
                (
                    sum((w * s for w, s in zip(now, row, strict=True)), F(0))
                    for now, row in zip(seen, rows, strict=False)
                ),
                start=F(1),
            )
            likelihoods = [math.prod((row[i] for row in rows), start=F(1)) for i in range(3)]
            assert paid == sum((w * s for w, s in zip(start, likelihoods, strict=True)), F(0)) >= max(likelihoods) / 3
            mean = [sum((now[i] for now in seen[:length]), F(0)) / length for i in range(3)]
            found = subject(np.array(start, dtype=float), np.log(np.array(rows, dtype=float)))
            assert np.allclose(found, np.array(mean, dtype=float), atol=1e-12)
            chance = math.prod((chances[i] for i in picks), start=F(1))
            shares = [sum((w * s for w, s in zip(mean, row, strict=True)), F(0)) for row in ROWS]
            losses = (-float(p) * math.log(share) for p, share in zip(chances, shares, strict=True))
            expected += float(chance) * sum(losses)
            cases += 1
        each = [-sum(float(p) * math.log(row[i]) for p, row in zip(chances, ROWS, strict=True)) for i in range(3)]
        assert expected <= min(each) + math.log(3) / length
    return f"averaged posteriors are within log(L) / T of the best member: {cases} sequences in fractions"


@check(
    "ours:joint-weights",
    rejects=[
        lambda count: F(99, 100) * count,
        lambda count: F(101, 100) * count,
        lambda count: F(max(count - 1, 1)),
        lambda count: F(2),
    ],
)
def check_what_weights_pay(subject: Callable[[int], Fraction] = lambda count: F(count)) -> str:
    """Posterior weights pay at most log L more than the first member, on any sequence, and just that where the others
    give nothing. Quantiles apart, each on a sequence of its own: as often that at most, and on some."""
    cases = 0
    # One data set more, for any members and shares: what is paid so far, times the mixture's share, is the members' sum
    # of weight times likelihood again, and that is at least one member's.
    own, rest, share, among, paid = z3.Reals("own rest share among paid")  # `among`: the other members' mean share
    mixed = (own * share + rest * among) / (own + rest)
    known = (own > 0, rest >= 0, share >= 0, among >= 0, paid == own + rest)
    follows(*known, goal=z3.And(paid * mixed == own * share + rest * among, paid * mixed >= own * share))
    for count, length in itertools.product((1, 2, 3), (1, 2)):
        paid = [
            paid_beside_first(count, others)
            for others in itertools.product(itertools.product(MASSES, repeat=count - 1), repeat=length)
        ]
        assert min(paid) == 1 / subject(count), (count, length)
        for m in (2, 3):
            apart = [math.prod(each, start=F(1)) for each in itertools.product(sorted(set(paid))[:8], repeat=m)]
            assert min(apart) == 1 / subject(count) ** m, "m logarithms"
            cases += len(apart)
        cases += len(paid)
    return f"learning weights pays log L at most, and just that on some sequences: {cases} in fractions"


def paid_beside_first(count: int, others: tuple[tuple[Fraction, ...], ...]) -> Fraction:
    """Product over data sets of the mixtures' shares over that of the first member's, which is a half."""
    rows = tuple((F(1, 2), *row) for row in others)
    each = zip(posteriors((F(1, count),) * count, rows), rows, strict=False)  # those after the last are not paid with
    paid = math.prod((sum((w * s for w, s in zip(now, row, strict=True)), F(0)) for now, row in each), start=F(1))
    return F(paid) / F(1, 2) ** len(rows)


def excess_of_average(rows: tuple[tuple[Fraction, ...], ...], chances: tuple[Fraction, ...], length: int) -> float:
    """Expected U of averaged posterior weights, on a data set that is independent of those that they have seen, less
    that of the best member. rows: shares of the members in each data set that there may be."""
    count, expected = len(rows[0]), 0.0
    for picks in itertools.product(range(len(rows)), repeat=length):
        seen = [*posteriors((F(1, count),) * count, tuple(rows[i] for i in picks))][:length]
        mean = [sum((now[k] for now in seen), F(0)) / length for k in range(count)]
        shares = [sum((w * s for w, s in zip(mean, row, strict=True)), F(0)) for row in rows]
        chance = math.prod((chances[i] for i in picks), start=F(1))
        expected -= float(chance) * math.fsum(float(p) * math.log(s) for p, s in zip(chances, shares, strict=True))
    finite = [k for k in range(count) if all(row[k] for row in rows)]
    each = (-math.fsum(float(p) * math.log(row[k]) for p, row in zip(chances, rows, strict=True)) for k in finite)
    return expected - min(each)


@check(
    "ours:joint-weights",
    rejects=[
        lambda count: 0.99 * math.log(count),
        lambda count: 1.01 * math.log(count),
        lambda count: math.log(count - 1),
        lambda count: math.log(3),
    ],
)
def check_average_of_weights(subject: Callable[[int], float] = math.log) -> str:
    """Averaged posteriors are within log(L) / T of the best member in expectation, for three laws of data sets; where
    the others give nothing, one data set pays all of it."""
    cases, most = 0, dict.fromkeys((2, 3, 5), 0.0)
    for count, length in itertools.product(most, (1, 2, 4)):
        alone = (F(1, 2),) + (F(0),) * (count - 1)
        close = tuple(F(k + 1, count + 1) for k in range(count))
        laws = (((alone, alone), (F(1, 2), F(1, 2))), ((close, close[::-1]), (F(2, 3), F(1, 3))))
        laws = (*laws, ((alone[:1] + close[:-1], close), (F(9, 10), F(1, 10))))
        for rows, chances in laws:
            excess = length * excess_of_average(rows, chances, length)
            assert excess <= subject(count) + 1e-12, (count, length, excess)
            most[count], cases = max(most[count], excess if length == 1 else 0.0), cases + 1
    assert all(abs(found - subject(count)) < 1e-12 for count, found in most.items()), "not the least"
    return f"averaged posteriors are within log(L) / T of the best member, attained at T = 1: {cases} laws"


@check(
    "ours:joint-weights",
    rejects=[
        lambda seen: seen[1:],
        lambda seen: seen[-2:-1] * (len(seen) - 1),
        lambda seen: seen[:1] * (len(seen) - 1),
    ],
)
def check_average_step_by_step(subject: Callable[[Any], Any] = lambda seen: seen[:-1]) -> str:
    """On random laws, in each of 60: what posteriors pay on the data set after them is in expectation what they pay on
    a fresh one, log L above the best member at most; U of their mean is at most the mean of U on each (-log is convex).
    subject: the posteriors that are averaged, of those before each data set and after the last."""
    rng = np.random.default_rng(47)
    share = sympy.symbols("share", positive=True)
    assert sympy.diff(-sympy.log(share), share, 2).is_positive
    for _ in range(60):
        count, sets, length = (int(rng.integers(low, high)) for low, high in ((2, 5), (2, 4), (1, 4)))
        rows = tuple(tuple(F(int(v), 1000) for v in row) for row in rng.integers(1, 1001, (sets, count)))
        chances = [F(int(v)) for v in rng.integers(1, 10, sets)]
        chances = [p / sum(chances) for p in chances]
        losses = np.array([[-math.log(s) for s in row] for row in rows])
        best, paid, fresh, mean = float(np.min(np.array(chances, dtype=float) @ losses)), 0.0, 0.0, 0.0
        for picks in itertools.product(range(sets), repeat=length):
            chance = float(math.prod((chances[i] for i in picks), start=F(1)))
            now = subject([*posteriors((F(1, count),) * count, tuple(rows[i] for i in picks))])
            at = [[-math.log(sum(w * s for w, s in zip(one, row, strict=True))) for row in rows] for one in now]
            each = [sum(float(p) * loss for p, loss in zip(chances, one, strict=True)) for one in at]
            middle = [sum(one[k] for one in now) / length for k in range(count)]
            of_mean = [-math.log(sum(w * s for w, s in zip(middle, row, strict=True))) for row in rows]
            together = sum(float(p) * loss for p, loss in zip(chances, of_mean, strict=True))
            assert together <= sum(each) / length + 1e-12, "Jensen"
            paid += chance * sum(one[i] for one, i in zip(at, picks, strict=True))
            fresh, mean = fresh + chance * sum(each), mean + chance * together
        assert math.isclose(paid, fresh, rel_tol=1e-9), "a posterior has seen the data set after it"
        assert paid <= length * best + math.log(count) + 1e-12 and mean <= best + math.log(count) / length + 1e-12
    return "averaged posteriors: independence, what is paid and Jensen's inequality, over all sequences of 60 laws"
