"""Days of data: their grids, their budgets, their composition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import sympy

import pq
from pq.core.budget.ledger import BudgetExceededError, Ledger
from pq.losses import proxy
from pq.sequential import PubProx
from pq.truth.evaluate import log_psi
from proofs_checks.engine.registry import check
from proofs_checks.tools.exact import Grid, Law, Points, Prior, Restricted, log_ball, max_loss, mechanism, psi

F = Fraction
HALF = Fraction(1, 2)


STEP = F(1, 3)
Bound = Callable[[Sequence[Fraction], int], Fraction]


def least_width(data: Sequence[Fraction], rank: int) -> Fraction:
    """What the grid says of the length of the optimal interval: a step if the value at the rank does not repeat."""
    return STEP if data[rank] != data[rank - 1] else F(0)


@check(
    "text:discretisation-width",
    rejects=[
        lambda data, rank: STEP,
        lambda data, rank: F(99, 100) * least_width(data, rank),
        lambda data, rank: F(101, 100) * least_width(data, rank),
        lambda data, rank: STEP if len(set(data)) == len(data) else F(0),
        lambda data, rank: STEP if data.count(data[rank]) == 1 else F(0),
        lambda data, rank: STEP if len(set(data)) > 1 else F(0),
    ],
)
def check_discretisation_width(subject: Bound = least_width) -> str:
    """All data on six places of a grid: the optimal interval is as long as said, and no longer for some with ties at
    the same ranks."""
    least: dict[tuple[Any, ...], Fraction] = {}
    for size in range(2, 6):
        for places, rank in itertools.product(
            itertools.combinations_with_replacement(range(6), size), range(1, size)
        ):  # at rank 0 and n the interval is unbounded
            data = [k * STEP for k in places]
            length = data[rank] - data[rank - 1]
            assert subject(data, rank) <= length, (data, rank)
            ties = tuple(a == b for a, b in itertools.pairwise(data))
            least[rank, ties] = min(least.get((rank, ties), length), length - subject(data, rank))
    ages, rank = [F(30)] * 3, pq.rank(0.5, 3)
    assert rank == 1 and ages[rank] - ages[rank - 1] == 0 == subject(ages, rank), "empty, as the row says"
    assert not any(least.values()), "longer for all data with these ties"
    return f"the grid bounds the optimal interval from below but for ties at its rank: {len(least)} kinds of data"


Follow = Callable[[Fraction], Prior]  # from what was learnt of today to tomorrow's prior
Told = Callable[[Fraction, Points], Fraction]
FEW = F(1, 10**6)  # mass of places that are hardly ever released
PLACES = tuple(k + HALF for k in range(4))


def by_step(o: Fraction) -> Prior:
    """Nearly all of tomorrow's prior on one side."""
    return {HALF: FEW, 3 + HALF: 1 - FEW} if o > 2 else {HALF: 1 - FEW, 3 + HALF: FEW}


@cache
def by_pubprox(o: Fraction) -> Prior:
    """The masses that PubProx has around the places once it has seen a released value."""
    predictor = PubProx([0.5], loc=1.0, scale=1.0, resolution=1.0, dimension=0)
    predictor.observe([], [float(o)])
    ends, law = (-math.inf, 1.0, 2.0, 3.0, math.inf), predictor.priors([])[0]
    masses = [F(math.exp(law.log_mass(*cell))) for cell in itertools.pairwise(ends)]
    return {place: mass / sum(masses) for place, mass in zip(PLACES, masses, strict=True)}


def the_output(o: Fraction, data: Points) -> Fraction:
    """What the learner is told of today: the released value."""
    return o


def two_days(first: Points, second: Points, z: Fraction, told: Told, follow: Follow) -> dict[tuple[Any, Any], Fraction]:
    """Law of the medians released on two days; the second prior comes from `follow`."""
    prior = dict(zip(PLACES, (FEW, HALF, HALF - 2 * FEW, FEW), strict=True))
    whole = (-math.inf, math.inf)
    law = {}
    for o, p in mechanism(Restricted(first, *whole), HALF, prior, z).items():
        for v, share in mechanism(Restricted(second, *whole), HALF, follow(told(o, first)), z).items():
            law[o, v] = p * share
    return law


@check(
    "text:proxy-losses",
    code=(proxy, PubProx),
    rejects=[
        lambda o, data: F(7, 2) if data.size > 3 else HALF,  # the data
        lambda o, data: o if data.size <= 3 else F(7, 2),  # both
        lambda o, data: o if data.below(o) < data.size else HALF,  # how far it lies from the data
    ],
)
def check_proxy_privacy(subject: Told = the_output) -> str:
    """Learning from released values costs nothing: two days about different people, budget epsilon each (exact), by a
    step rule and by PubProx. The law of the released value depends on the data, and the proxy loss on that value.

    subject: what the learner is told of a day.
    """
    few, rules = Points((F(1), F(2), F(3))), list[Follow]([by_step, by_pubprox])
    for z, follow in itertools.product((F(1, 10), F(9, 10)), rules):  # z = exp(-epsilon/2)
        worst = F(0)
        for extra in (F(0), F(1), F(2), F(5, 2), F(4)):
            more = Points(tuple(sorted((*few.values, extra))))
            for pair in (((few, few), (more, few)), ((more, more), (few, more)), ((few, few), (few, more))):
                one, two = (two_days(*days, z, subject, follow) for days in pair)
                worst = max(worst, *(max(p / two[k], two[k] / p) for k, p in one.items()))
                assert worst <= z**-2, f"{float(worst):.3f} > {float(z**-2):.3f}"
        nearly = float(log_ball(worst) / log_ball(z**-2)) > 0.9999
        assert nearly == (follow is by_step), "as the row says"
    for z, mass in itertools.product((F(1, 10), F(9, 10)), (F(1, 100), F(2, 5), F(9, 10))):
        prior = {F(0): mass, F(9): 1 - mass}
        laws = [mechanism(Restricted(Points((v,) * 3), -math.inf, math.inf), HALF, prior, z) for v in prior]
        assert [law[F(0)] for law in laws] == [mass / (mass + (1 - mass) * z), mass], "as the row says"
    losses = [round(float(proxy([0.0], [1.0], [o], 1.0)[0]), 2) for o in (0.0, 9.0)]
    assert losses == [0.93, 9.65], "as the row says"
    assert by_pubprox(F(0)) != by_pubprox(F(9)), "and what is learnt"
    return "two days about different people, the second prior from the first output: exact loss at most epsilon"


def several_days(data: Points, budgets: Sequence[int], z: Fraction) -> dict[tuple[Any, ...], Fraction]:
    """Law of the medians of the same records on several days, at these multiples of the budget of z; whether a day's
    prior has hardly any mass on 3/2 or on 5/2 is told by the release before."""
    law: dict[tuple[Any, ...], Fraction] = {(): F(1)}
    for budget in budgets:
        later: dict[tuple[Any, ...], Fraction] = {}
        for outputs, p in law.items():
            rare = outputs[-1] if outputs else 1 + HALF
            prior = {o: F(1, 10**12) if o == rare else 1 - F(1, 10**12) for o in (1 + HALF, 2 + HALF)}
            today = mechanism(Restricted(data, -math.inf, math.inf), HALF, prior, z**budget)
            later |= {(*outputs, o): p * share for o, share in today.items()}
        law = later
    return law


@check(
    "text:composed-budgets",
    code=Ledger,
    rejects=[max, len, *(lambda budgets, by=by: F(by, 100) * sum(budgets) for by in (99, 101))],
)
def check_composed_days(subject: Callable[[Sequence[int]], Any] = sum) -> str:
    """The same people on two or three days, with equal budgets or others: the budgets add up, whatever record is added,
    and nearly all of the sum can be lost (exact)."""
    z, few = F(1, 10), tuple(map(F, (1, 2, 3)))
    for budgets in ((1, 1), (1, 3), (2, 1, 1)):
        largest = F(0)
        for extra in (F(0), F(1), F(2), F(5, 2), F(4)):
            more = tuple(sorted((*few, extra)))
            one, two = (several_days(Points(x), budgets, z) for x in (few, more))
            assert one.keys() == two.keys() and sum(one.values()) == sum(two.values()) == 1
            largest = max(largest, *(max(p / two[o], two[o] / p) for o, p in one.items()))
        assert largest <= z ** (-2 * sum(budgets)), "the theorem on composition, exactly"
        spent = float(log_ball(largest) / (-2 * log_ball(z)))
        assert 0.999 * subject(budgets) < spent < subject(budgets) + 1e-9, (budgets, spent)
        ledger = Ledger(10)
        for day, budget in enumerate(budgets):
            ledger.spend(F(3 * budget, 10), what=f"day {day}")
        assert ledger.spent == subject(budgets) * F(3, 10), "what the ledger books"
    return f"the same people on three days: loss {spent:.5f} epsilon for releases at 2, 1 and 1 epsilon"


def optimal_log_psi(x: np.ndarray, q: float, prior: Any) -> float:
    """log of `exp(-U^(q))`: the prior's mass in the optimal interval."""
    import pq

    return float(pq.log_psi(x, q, prior))


@check(
    "text:optimal-interval",
    code=log_psi,
    rejects=[
        lambda x, q, prior: pq.log_psi(x, q, prior, 1.0),
        lambda x, q, prior: pq.log_psi(x, q / 2, prior),
        lambda x, q, prior: 0.0,
        lambda x, q, prior: optimal_log_psi(x, q, prior) - math.log(len(x)),
        *(lambda x, q, prior, by=by: by * optimal_log_psi(x, q, prior) for by in (0.99, 1.01)),
    ],
)
def check_optimal_interval_only(subject: Callable[[np.ndarray, float, Any], float] = optimal_log_psi) -> str:
    """U^(q) sees the optimal interval and nothing else, and it sees both of its ends."""
    import pq

    rng = np.random.default_rng(230)
    for prior in (pq.Laplace(0, 1), pq.Cauchy(1, 2), pq.Uniform(-50, 50)):
        for n, q in ((1, 0.5), (4, 0.5), (7, 0.29), (7, 0.0), (10, 0.9), (10, 1.0)):
            rank = math.floor(Fraction(str(q)) * n)
            x = np.sort(rng.normal(size=n))
            other, moved = x.copy(), x.copy()
            other[: max(rank - 1, 0)] -= rng.exponential(size=max(rank - 1, 0))  # all but the ends of the interval
            other[rank + 1 :] += rng.exponential(size=len(other[rank + 1 :]))
            moved[max(rank - 1, 0) : rank] -= 0.125
            moved[rank : rank + 1] += 0.125
            assert abs(subject(np.sort(other), q, prior) - subject(x, q, prior)) < 1e-12, (n, q)
            assert subject(np.sort(moved), q, prior) > subject(x, q, prior) + 1e-3, (n, q)
            ends = x[rank - 1] if rank else -math.inf, x[rank] if rank < n else math.inf
            assert abs(subject(x, q, prior) - float(prior.log_mass(*ends))) < 1e-12, "its mass, and no more"
            left = math.floor(2 * Fraction(str(q)) * n) - rank  # of 2n records with the same optimal interval
            if (rank or not left) and (rank < n or left == n):
                more = np.sort(np.concatenate([-60.0 - np.arange(left), x, 60.0 + np.arange(n - left)]))
                assert abs(subject(more, q, prior) - subject(x, q, prior)) < 1e-12, (n, q)
    return "U^(q) of data sets with one optimal interval agrees under three priors, and changes with its ends"


@check(
    "text:optimal-interval",
    rejects=[
        lambda low, o, high: low <= o < high,  # as printed
        lambda low, o, high: low < o < high,
        lambda low, o, high: low <= o <= high,
    ],
)
def check_optimal_cell(
    subject: Callable[[Any, Fraction, Any], bool] = lambda low, o, high: low < o <= high,
) -> str:
    """The score of the limit is one on (x_[k], x_[k+1]] and zero elsewhere, at every rank and with ties, so Psi^(q) is
    that mass: atoms at the left end do not count, those at the right end do; between records all ends are alike."""
    places = [F(k, 2) for k in range(1, 8)]
    for n in range(4):
        for values in itertools.combinations_with_replacement((F(1), F(2), F(3)), n):
            ends = [-math.inf, *values, math.inf]
            for q in (F(0), F(1, 3), HALF, F(2, 3), F(1)):
                low, high = ends[(rank := math.floor(q * n))], ends[rank + 1]
                for o in places:
                    score = psi(Points(values), q, {o: F(1)}, F(0))
                    assert score == int(subject(low, o, high)), (values, q, o)
                    assert o in values or score == int(low <= o < high) == int(low <= o <= high), "without atoms"
    return "the score is one on (x_[k], x_[k+1]] and zero elsewhere, ends included (all data on three values)"


def _fits(days: int, share: Fraction) -> bool:
    """Whether a ledger of 1 takes so many spends of a share."""
    ledger = Ledger(1)
    try:
        for day in range(days):
            ledger.spend(share, what=f"day {day}")
    except BudgetExceededError:
        return False
    return True


@check(
    "text:low-privacy-regime",
    code=Ledger,
    rejects=[lambda days: 2, lambda days: days, *(lambda days, by=by: F(by, 100) for by in (50, 99, 101))],
)
def check_small_shares(subject: Callable[[int], int | Fraction] = lambda days: 1) -> str:
    """A record in T data sets loses more than epsilon if each has 1% more than epsilon/T, let alone all of it.

    In units of epsilon/T, s = exp(-epsilon/(2T)); the law of one release moves by almost s^-2 with a skewed prior. For
    an epsilon that is small, middling and large.
    """
    for root, tiny in ((1 - F(1, 2**20), F(1, 2**20)), (F(199, 200), F(1, 10**9)), (F(1, 2), F(1, 2**1000))):
        s = root**100  # hundredths of a share are exact
        for days in (2, 3, 7):
            left = F(subject(days))  # what is left for each, and no more
            for share, private in ((left, True), (F(101, 100) * left, False), (F(2), False), (F(days), False)):
                z = root ** int(100 * share)
                laws: list[Law] = []
                for data in (Grid(1), Grid(2)):
                    prior: Mapping[Fraction, Fraction] = {HALF: 1 - tiny, F(3, 2): tiny}
                    raw = mechanism(Restricted(data, -math.inf, math.inf), HALF, prior, z)
                    laws.append({(o,): p for o, p in raw.items()})
                loss = max(max_loss(laws[0], laws[1]), max_loss(laws[1], laws[0])) ** days
                assert (loss <= s ** (-2 * days)) == private, (days, share)
                assert _fits(days, share / days) == private, "the ledger's own verdict"
    z, rare = sympy.symbols("z rare", positive=True)  # of one release at any epsilon, the same prior: z^-2 in the limit
    one, other = rare * z / (1 - rare + rare * z), rare / ((1 - rare) * z + rare)
    assert sympy.limit(other / one, rare, 0) == z**-2, "so z = s^1.01 has more than s^-2, and T releases its power"
    return "T releases at epsilon/T compose to epsilon, at 1% more they do not: small budgets are left (exact)"


@check("text:noiseless", rejects=[1, 3])
def check_noiseless(subject: int = 0) -> str:
    """floor(100/(m+1)) records in each of m + 1 intervals: the ends are quantiles i/(m+1) with gap 0."""
    rng = np.random.default_rng(107)
    for m in (1, 2, 4, 9, 30, 99, 150):  # with no records at last, and no gap
        count, ends = 100 // (m + 1), np.sort(rng.normal(size=m + 2))
        counts = np.full(m + 1, count)
        counts[0] += subject
        data = np.sort(np.concatenate([rng.uniform(ends[i], ends[i + 1], counts[i]) for i in range(m + 1)]))
        for i in range(1, m + 1):
            rank = math.floor(F(i, m + 1) * len(data))
            assert int(np.sum(data < ends[i])) == rank, (m, i)
    return "noiseless synthetic data: the true quantiles i/(m+1) of the law have gap 0 in every sample"


@check("text:citibike-days", rejects=[(date(2015, 9, 1), date(2022, 7, 5)), (date(2015, 1, 1), date(2022, 11, 30))])
def check_days(subject: tuple[date, date] = (date(2015, 9, 1), date(2022, 11, 30))) -> str:
    """September 2015 to November 2022: 2648 days, 'roughly 2500'; 'around day 1600' is January 2020, the start."""
    first, last = subject
    days = (last - first).days + 1
    closed = date(2020, 3, 22)
    lockdown = (closed - first).days + 1
    assert (days, lockdown) == (2648, 1665), "as the row says"
    assert (closed - date(2015, 9, 21)).days == 1644, "counted from 0, from the first trips"
    assert abs(days / 2500 - 1) < 0.06
    assert 1600 < lockdown < 1600 * 1.05, lockdown
    return f"CitiBike: {days} calendar days for 'roughly 2500'; New York closed on day {lockdown}, 'around day 1600'"
