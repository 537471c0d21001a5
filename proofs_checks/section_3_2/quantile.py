"""lem:quantile and its refinements against exact laws."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction

from pq.bounds import expected_gap
from proofs_checks.engine.registry import check
from proofs_checks.tools.cases import one_quantile_cases
from proofs_checks.tools.exact import (
    Algorithm,
    Grid,
    Points,
    Prior,
    Restricted,
    ball,
    gap,
    log_ball,
    max_loss,
    mechanism,
    psi,
)

F = Fraction
HALF = Fraction(1, 2)
QUARTERS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
WHOLE = (-math.inf, math.inf)

Tail = Callable[[Fraction, int, Fraction, Fraction], Fraction]


def tail_bound(z: Fraction, gamma: int, inner: Fraction, total: Fraction) -> Fraction:
    """exp(-epsilon gamma / 2) mu(R) / Psi: eq:quantile for a prior of any total mass."""
    return z**gamma * total / inner


@check(
    "eq:basic",
    "text:no-assumptions",
    "lem:quantile",
    "eq:quantile",
    rejects=[
        lambda z, gamma, inner, total: z ** (gamma + 1) * total / inner,
        lambda z, gamma, inner, total: z**gamma / inner,
        lambda z, gamma, inner, total: z ** (2 * gamma) * total / inner,
    ],
)
def check_lem_quantile(subject: Tail = tail_bound) -> str:
    """eq:quantile and so lem:quantile and eq:basic: Pr{Gap >= gamma} is at most the bound, exactly."""
    cases = 0
    for data, q, prior, z in one_quantile_cases():
        law = mechanism(Restricted(data, -math.inf, math.inf), q, prior, z)
        inner, total = psi(data, q, prior, z), sum(prior.values())
        for gamma in range(1, data.size + 1):
            tail = sum((p for o, p in law.items() if gap(data, q, o) >= gamma), Fraction(0))
            assert tail <= subject(z, gamma, inner, total), (data, q, z, gamma)
            cases += 1
    return (
        f"lem:quantile: Pr{{Gap >= gamma}} <= exp(-epsilon gamma / 2) mu(R) / Psi in {cases} exact cases, total "
        "mass 1 or not"
    )


@check(
    "eq:basic",
    "lem:quantile",
    rejects=[
        lambda z, gamma, inner, total: z**gamma * total / inner,
        lambda z, gamma, inner, total: 8 * z**gamma / inner,
    ],
)
def check_lem_quantile_total_mass(subject: Tail = lambda z, gamma, inner, total: z**gamma / inner) -> str:
    """Counterexample for a base measure that is no probability measure: scaling it changes the printed bound, not
    the law.
    """
    data, q, z = Grid(1), HALF, HALF
    prior = {HALF: Fraction(8), 1 + HALF: Fraction(8)}
    law = mechanism(Restricted(data, -math.inf, math.inf), q, prior, z)
    assert law[1 + HALF] == Fraction(1, 3) and z / psi(data, q, prior, z) == Fraction(1, 24), "as the row says"
    assert law[1 + HALF] > subject(z, 1, psi(data, q, prior, z), Fraction(16)), "the bound survives"
    return "lem:quantile needs mu(R) <= 1: with n = 1 and mass 8 in each cell the bound is 1/24 and the probability 1/3"


@check(
    "eq:basic",
    "text:psi-limit",
    "text:u-upper-bound",
    rejects=[lambda low, high: low >= high, lambda low, high: low < high],
)
def check_psi_monotone(subject: Callable[[Fraction, Fraction], bool] = lambda low, high: low <= high) -> str:
    """Psi falls with epsilon to the mass of the optimal cell, so the bound with Psi^(q) is the looser one."""
    for data, q, prior, _ in one_quantile_cases():
        values = [psi(data, q, prior, z) for z in (Fraction(0), Fraction(1, 9), HALF, Fraction(8, 9), Fraction(1))]
        optimal = sum((mass for o, mass in prior.items() if gap(data, q, o) == 0), Fraction(0))
        assert values[0] == optimal
        assert all(subject(low, high) for low, high in itertools.pairwise(values)), (data, q)
    return "Psi^(q, epsilon) is monotone: the optimal cell's mass at epsilon = infinity, the total mass at 0 (exact)"


@check("eq:quantile", "ours:exponential-moment", rejects=[lambda inner, total: 1 / inner, lambda inner, total: total])
def check_exponential_moment(
    subject: Callable[[Fraction, Fraction], Fraction] = lambda inner, total: total / inner,
) -> str:
    """Ours: E exp(epsilon Gap / 2) = mu(R) / Psi, an equality, so E Gap <= (2 / epsilon)(U + log mu(R)) by Jensen and
    eq:quantile by Markov; U alone is enough for a mass of at most one only.
    """
    beyond, differing = 0, 0
    for data, q, prior, z in one_quantile_cases():
        law = mechanism(Restricted(data, -math.inf, math.inf), q, prior, z)
        inner, total = psi(data, q, prior, z), sum(prior.values(), F(0))
        assert sum(p / z ** int(gap(data, q, o)) for o, p in law.items()) == subject(inner, total)
        mean = sum(p * gap(data, q, o) for o, p in law.items())
        assert not ball(mean) * -log_ball(z) > log_ball(total / inner), (data, q)
        above = bool(ball(mean) * -log_ball(z) > -log_ball(inner))
        assert total > 1 or not above, (data, q)
        beyond += above
        optimal = psi(data, q, prior, F(0))
        differing += optimal > 0 and inner != optimal and subject(optimal, total) != subject(inner, total)
    assert differing > 20, "Psi^(q) for Psi^(q, epsilon)"
    assert beyond > 5, "U alone bounds the mean for every mass"
    return "ours: E exp(epsilon Gap / 2) = mu(R) / Psi exactly, hence E Gap <= (2 / epsilon)(U + log mu(R))"


@check(
    "ours:sharp-calibration",
    rejects=[
        lambda q: min(q, 1 - q),
        lambda q: q,
        *(lambda q, by=by: F(by, 100) * max(q, 1 - q) for by in (99, 101)),
    ],
)
def check_sharp_calibration(subject: Callable[[Fraction], Fraction] = lambda q: max(q, 1 - q)) -> str:
    """Ours: the unrounded utility is max(q, 1 - q)-sensitive, so its rate is larger and the tail bound as much
    smaller.
    """
    for n, p in itertools.product(range(8), range(1, 20)):
        q, most = Fraction(p, 20), Fraction(0)
        for below, inserted_below in itertools.product(range(n + 1), (0, 1)):
            change = abs(below + inserted_below - q * (n + 1)) - abs(below - q * n)
            most = max(most, abs(change))
        assert most == subject(q), (n, q)
    for data, q, prior, z in one_quantile_cases():
        unit = q.denominator  # one rank is worth z**unit
        gaps = {o: int(unit * gap(data, q, o, rounded=False)) for o in prior}
        weights = {o: prior[o] * z ** gaps[o] for o in prior}
        inner = sum(weights.values())
        for gamma in gaps.values():
            tail = sum(w for o, w in weights.items() if gaps[o] >= gamma) / inner
            assert tail <= z**gamma * sum(prior.values()) / inner
    return (
        "ours: with the unrounded target the gap bound is max(q, 1 - q) times the printed one (same epsilon; "
        "error to q n)"
    )


Inner = Callable[[Grid, Fraction, Prior, Fraction, Fraction], Fraction]


def unrounded_inner(data: Grid, q: Fraction, prior: Prior, z: Fraction, v: Fraction) -> Fraction:
    """Of the unrounded utility at its own rate. v: what the smallest part of a rank costs; z: a rank of the printed."""
    return sum((mass * v ** int(q.denominator * gap(data, q, o, rounded=False)) for o, mass in prior.items()), F(0))


@check(
    "ours:sharp-calibration",
    rejects=[
        lambda data, q, prior, z, v: psi(data, q, prior, z),
        lambda data, q, prior, z, v: max(psi(data, q, prior, z), unrounded_inner(data, q, prior, z, v)),
        *(lambda *known, by=by: F(by, 100) * unrounded_inner(*known) for by in (99, 101)),
    ],
)
def check_sharp_inner(subject: Inner = unrounded_inner) -> str:
    """The bound on the distance to q n, max(q, 1 - q) (2/eps) log(1/(beta Psi)), holds with the inner product of the
    unrounded utility; with that of floors it does not: where q n is between two ranks no output has distance 0."""
    for data, q, prior, v in one_quantile_cases():
        cost = int(q.denominator * max(q, 1 - q))  # of exp(-eps/2) at the better rate
        distances = {o: int(q.denominator * gap(data, q, o, rounded=False)) for o in prior}
        weights, total = {o: prior[o] * v ** distances[o] for o in prior}, sum(prior.values())
        for far in set(distances.values()):
            tail = sum(w for o, w in weights.items() if distances[o] >= far) / sum(weights.values())
            assert tail <= v**far * total / subject(data, q, prior, v**cost, v), (data, q, far)
    few, v, q = F(1, 10**12), F(1, 10), F(1, 20)  # nearly all of the prior at one wrong cell: nothing less will do
    prior = {HALF: few, 6 + HALF: 1 - few}
    far = {o: int(q.denominator * gap(Grid(6), q, o, rounded=False)) for o in prior}
    weights = {o: prior[o] * v ** far[o] for o in prior}
    bound = v ** far[6 + HALF] / subject(Grid(6), q, prior, v**19, v)
    assert F(999, 1000) * bound < weights[6 + HALF] / sum(weights.values()) <= bound, "attained"
    return "sharp calibration: the bound with the inner product of the unrounded utility, and not with that of floors"


def node_sensitivity(relative: Fraction) -> Fraction:
    """What a record in the node moves its unrounded utility by."""
    return max(relative, 1 - relative)


@check(
    "ours:sharp-calibration",
    rejects=[
        lambda r: r,
        lambda r: 1 - r,
        lambda r: HALF,
        lambda r: F(1),
        *(lambda r, by=by: F(by, 100) * node_sensitivity(r) for by in (99, 101)),
    ],
)
def check_sharp_child(subject: Callable[[Fraction], Fraction] = node_sensitivity) -> str:
    """Inside the tree: a root for the median and, above it, a child with the relative quantile 1/4 or 3/4. A record in
    the child costs epsilon at most, and all of it: it brings rare outputs of both closer and takes the usual ones away.
    """
    v = F(249, 250)  # exp(-epsilon / 1200); the root's rate has sensitivity 1/2
    sides = (F(1, 4), 10, F(23, 2), F(29, 2)), (F(3, 4), 18, F(33, 2), F(23, 2))
    for relative, extra, rare, usual in sides:
        tiny = F(1, 10**12)
        root = {F(19, 2): tiny, F(7, 2): 1 - tiny}
        priors: tuple[Prior, ...] = (root, {rare: tiny, usual: 1 - tiny})
        budgets = v**150, v ** int(75 / subject(relative))
        algorithm = Algorithm(
            (HALF, (1 + relative) / 2), priors, budgets, adaptation="conditional", rounded=False, unit=4
        )
        more, fewer = (Points(tuple(F(i) for i in range(1, 19) if i != without)) for without in (0, extra))
        loss = max_loss(algorithm.law(more), algorithm.law(fewer))
        assert v**-1200 * F(999, 1000) < loss <= v**-1200, (relative, float(loss), float(v**-1200))
    return "sharp calibration inside the tree: at relative quantiles 1/4 and 3/4 a record costs epsilon, and no more"


def _cell(rank: int, n: int) -> list[Fraction]:
    """Places in the optimal cell, its closed end among them, if it has one."""
    return [rank + F(1, 4), rank + HALF, rank + F(1) - (F(1, 8) if rank == n else 0)]


def _printed_cell(rank: int, n: int) -> list[Fraction]:
    """[x_k, x_(k+1)): the left end belongs to the cell before."""
    return [F(rank), rank + HALF]


@check(
    "text:perfect-prediction",
    rejects=[_printed_cell, lambda rank, n: [*_cell(rank, n), F(n + 2 if rank < n else 0)]],
)
def check_perfect_prediction(subject: Callable[[int, int], list[Fraction]] = _cell) -> str:
    """All mass on the optimal cell, wherever in it: Psi = 1 at every epsilon, and a gap of 0 for sure."""
    for n, q, z in itertools.product(range(6), QUARTERS, (F(0), F(1, 9), HALF)):
        places = subject(math.floor(q * n), n)
        prior = {o: F(1, len(places)) for o in places}
        assert psi(Grid(n), q, prior, z) == 1
        law = mechanism(Restricted(Grid(n), *WHOLE), q, prior, z)
        assert all(gap(Grid(n), q, o) == 0 for o in law)
    return "perfect prediction: Psi = 1 with and without epsilon; the gap is 0 with certainty, so the bound is loose"


def tied_cases() -> Iterator[tuple[Points, Fraction, Prior, Fraction]]:
    """Repeated records, priors on the cells between different values."""
    draw = random.Random(12)
    for _ in range(80):
        values = sorted(draw.choice((1, 1, 2, 5)) for _ in range(draw.randrange(1, 7)))
        data = Points(tuple(F(v) for v in values))
        masses = [F(draw.choice((1, 10, 10_000))) for _ in range(4)]
        prior = {o: m / sum(masses) for o, m in zip((HALF, F(3, 2), F(3), F(6)), masses, strict=True)}
        yield data, F(draw.randrange(1, 8), 8), prior, F(1, draw.choice((2, 30, 10**6)))


@check(
    "text:no-assumptions",
    "text:repetitions",
    rejects=[
        lambda z, gamma, inner, total: z ** (gamma + 1) * total / inner,
        lambda z, gamma, inner, total: z ** (2 * gamma) * total / inner,
    ],
)
def check_ties_one(subject: Tail = tail_bound) -> str:
    """eq:quantile with repeated records, nothing asked of the data: exact tails at most exp(-eps gamma/2)/Psi."""
    empty = 0
    for data, q, prior, z in tied_cases():
        law, inner = mechanism(Restricted(data, *WHOLE), q, prior, z), psi(data, q, prior, z)
        for gamma in range(1, data.size + 1):
            tail = sum((p for o, p in law.items() if gap(data, q, o) >= gamma), F(0))
            assert tail <= subject(z, gamma, inner, F(1)), (data, q, gamma)
        rank = math.floor(q * data.size)
        tied = rank > 0 and data.values[rank - 1] == data.values[rank]
        assert (psi(data, q, prior, F(0)) == 0) == tied, "empty where the target rank falls inside a tie, only there"
        empty += tied
    assert empty > 10
    data, prior, z = Points((F(1),) * 3), {HALF: HALF, F(2): HALF}, F(1, 100)  # the row's counterexample
    law = mechanism(Restricted(data, *WHOLE), HALF, prior, z)
    assert law[F(2)] == F(1, 101) and subject(z, 2, psi(data, HALF, prior, z), F(1)) == F(2, 101)
    assert psi(data, HALF, prior, F(0)) == 0
    for adaptation in ("edge", "conditional"):
        assert Algorithm((HALF,), (prior,), (z,), adaptation=adaptation).law(data) == {(o,): p for o, p in law.items()}
    return f"repeated records: lem:quantile holds with Psi^(q, eps) in 80 exact cases; Psi^(q) is 0 in {empty} of them"


@check(
    "ours:exponential-moment",
    code=expected_gap,
    rejects=[
        lambda log_psi, epsilon: -log_psi / epsilon,
        lambda log_psi, epsilon: -1.98 * log_psi / epsilon,
        lambda log_psi, epsilon: -2.02 * log_psi / epsilon,
        *(lambda log_psi, epsilon, by=by: -(2 if epsilon > 2 else by) * log_psi / epsilon for by in (1.98, 2.02)),
        *(lambda log_psi, epsilon, by=by: -(2 if log_psi < -7 else by) * log_psi / epsilon for by in (1.98, 2.02)),
    ],
)
def check_expected_gap(subject: Callable[[float, float], float] = expected_gap) -> str:
    """Ours: E Gap <= (2 / epsilon) U for one quantile, exact means; a prior on one wrong cell attains it."""
    closest = 0.0
    for base, ranks in itertools.product((F(101, 100), F(3, 2), F(3), F(10**6)), (1, 7, 1000)):
        found = subject(float(log_ball(base**-ranks)), 2 * float(log_ball(base)))
        assert math.isclose(found, ranks), "all mass so many ranks off"
    for data, q, prior, z in one_quantile_cases():
        total = sum(prior.values())
        scaled = {o: mass / total for o, mass in prior.items()}
        law = mechanism(Restricted(data, -math.inf, math.inf), q, scaled, z)
        mean = float(sum(p * gap(data, q, o) for o, p in law.items()))
        limit = subject(float(log_ball(psi(data, q, scaled, z))), -2 * math.log(z))
        assert mean <= limit * (1 + 1e-12) + 1e-12, (data, q, mean, limit)
        closest = max(closest, mean / limit if limit else 0.0)
    assert closest > 0.9
    return f"ours: E Gap <= (2 / epsilon) U (exact means; ratio up to {closest:.3f})"
