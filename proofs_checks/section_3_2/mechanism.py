"""The exponential mechanism for one quantile: its law, its privacy, its range."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import z3
from flint import arb

import pq
from pq.bounds import tree_zcdp
from proofs_checks.engine.registry import check
from proofs_checks.tools.exact import Algorithm, Prior, ball, log_ball
from proofs_checks.tools.neighbours import hurtful_priors, neighbours, records
from proofs_checks.tools.solver import absolute, maximum, prove

F = Fraction
HALF = Fraction(1, 2)


@check("text:exponential-mechanism", "lem:quantile", rejects=[1.0, 1.98, 2.02, 3.0])
def check_exponential_mechanism(subject: float = 2.0) -> str:
    """The theorem on the exponential mechanism: utilities that differ by at most Delta give losses of at most
    epsilon, any base measure.
    """
    draw = random.Random(5)
    z, worst = Fraction(1, 3), 0.0  # exp(-epsilon / (2 Delta)); the claim is z**-2
    for _ in range(400):
        size = draw.randrange(2, 5)
        base = [Fraction(draw.choice((1, 1, 1000, 10**9))) for _ in range(size)]
        first = [draw.randrange(4) for _ in range(size)]
        second = [max(u + draw.choice((-1, 0, 1)), 0) for u in first]
        laws = []
        for utilities in (first, second):
            weights = [b * z**u for b, u in zip(base, utilities, strict=True)]
            laws.append([w / sum(weights) for w in weights])
        ratio = float(log_ball(max(a / b for a, b in zip(*laws, strict=True))) / -log_ball(z))
        assert ratio <= subject, (first, second, base)
        worst = max(worst, ratio)
    assert worst > 0.999 * subject, "approached"
    return (
        "exponential mechanism: loss at most epsilon with any finite base measure, and epsilon is approached "
        "(exact ratios)"
    )


@check(
    "text:exponential-mechanism",
    "alg:quantiles",
    rejects=[lambda total: True, lambda total: total > 0, lambda total: total < math.inf],
)
def check_normalisable(subject: Callable[[Fraction | float], bool] = lambda total: 0 < total < math.inf) -> str:
    """The hypothesis that the theorem leaves out: the base measure must give a finite positive normaliser. With length
    itself as the measure every bounded set has the limit probability 0, which no law has."""
    median: Prior = {F(2): F(1)}  # the other prior of the tree has all of its mass below what it can only release
    for levels, priors in (((HALF,), ({},)), ((HALF, F(3, 4)), (median, {F(1): F(1)}))):
        try:
            Algorithm(levels, priors, (HALF,) * len(levels), adaptation="conditional").law(records(1))
            defined = True
        except ZeroDivisionError:
            defined = False
        assert defined == subject(Fraction(0)), "0/0"
    near = []  # of the outputs within a hundred, under length cut at a reach that grows
    for reach in (10**3, 10**6, 10**9):
        flat = {-F(50): F(100), HALF: F(100), -F(reach): F(reach), F(reach): F(reach)}
        law = Algorithm((HALF,), (flat,), (HALF,)).law(records(2))
        near.append(law[(-F(50),)] + law[(HALF,)])
    shrinks = all(later < earlier / 500 for earlier, later in itertools.pairwise(near))
    assert shrinks != subject(math.inf), "mass is left"
    assert subject(F(1, 10**9)) and subject(F(10**9)), "any other normaliser will do"
    return (
        "the mechanism needs 0 < integral of exp(-epsilon Gap / 2) mu < infinity; mu([a^, b^]) = 0 leaves "
        "conditional adaptation undefined"
    )


@check(
    "text:sensitivity",
    rejects=[
        lambda adjacency: 0,
        lambda adjacency: 1 if adjacency == "replace" else 0,
        lambda adjacency: 2 if adjacency == "replace" else 1,
        lambda adjacency: 2,
    ],
)
def check_sensitivity(subject: Callable[[str], int] = lambda adjacency: 1) -> str:
    """Gap with floor(q n) moves by at most one under both adjacencies, for all integers and q (z3)."""
    below, inserted, target, later = z3.Ints("below inserted target later")
    y, q = z3.Reals("y q")  # y = q n
    floors = z3.And(target <= y, y < target + 1, later <= y + q, y + q < later + 1, q >= 0, q <= 1)
    grown = z3.And(floors, below >= 0, inserted >= 0, inserted <= 1)
    change = absolute(below + inserted - later) - absolute(below - target)
    prove(z3.Implies(grown, absolute(change) <= subject("add-remove")), "add-remove")
    moved = z3.Int("moved")
    change = absolute(below + moved - target) - absolute(below - target)
    prove(z3.Implies(z3.And(moved >= -1, moved <= 1), absolute(change) <= subject("replace")), "replace")
    largest = {"add-remove": 0, "replace": 0}
    for n, p in itertools.product(range(12), range(61)):
        rank, more = p * n // 60, p * (n + 1) // 60
        assert more - rank in (0, 1)
        for k in range(n + 1):
            for name, moves, after in (("add-remove", (0, 1), more), ("replace", (-1, 0, 1), rank)):
                moved_by = max(abs(abs(k + a - after) - abs(k - rank)) for a in moves if k + a >= 0)
                largest[name] = max(largest[name], moved_by)
    assert all(value == subject(name) for name, value in largest.items()), f"attained: {largest}"
    return (
        "Gap_q with floor(q n) has sensitivity one: a record added, removed or replaced (z3 over all n, q; "
        "enumeration to n = 11)"
    )


@check("ours:sharp-calibration", rejects=[lambda q: 1 - q, lambda q: z3.RealVal("1/2")])
def check_sensitivity_sharp(subject: Callable[[z3.ArithRef], z3.ArithRef] | None = None) -> str:
    """|#{x < o} - q n| moves by at most max(q, 1 - q) when a record is added or removed, and by one when it is
    replaced (z3).
    """
    claimed = subject or (lambda q: maximum(q, 1 - q))
    q, distance = z3.Reals("q distance")  # distance = below - q n
    for inserted in (0, 1):
        change = absolute(distance + inserted - q) - absolute(distance)
        prove(z3.Implies(z3.And(q >= 0, q <= 1), absolute(change) <= claimed(q)), f"inserted {inserted}")
    for moved in (-1, 1):
        prove(absolute(absolute(distance + moved) - absolute(distance)) <= 1, "replace")
    return (
        "the unrounded gap has sensitivity max(q, 1 - q) under add-remove, and it is attained; one under replace (z3)"
    )


@check("ours:bounded-range", rejects=[Fraction(1), Fraction(3), Fraction(198, 100), Fraction(202, 100)])
def check_bounded_range(subject: Fraction = Fraction(2)) -> str:
    """Losses of one mechanism lie in an interval of length epsilon under add-remove: ratios of ratios, exactly, for
    four quantiles and a small, a middling and a large epsilon, each of which attains it."""
    for q, root in itertools.product((F(1, 4), HALF, F(3, 4), F(9, 10)), (F(7, 8), F(63, 64), F(1023, 1024))):
        z, widest = root**50, Fraction(1)
        for priors, (less, more) in itertools.product(hurtful_priors(), itertools.islice(neighbours(), 0, None, 4)):
            algorithm = Algorithm((q,), (priors[1],), (z,))
            first, second = algorithm.law(less), algorithm.law(more)
            ratios = [p / second[o] for o, p in first.items()]
            widest = max(widest, max(ratios) / min(ratios))
        assert widest == root ** -int(50 * subject), (q, root)
    return (
        "one mechanism is epsilon-bounded-range under add-remove, and the range epsilon is attained: no factor "
        "2 to gain (exact)"
    )


@check(
    "ours:bounded-range",
    code=tree_zcdp,
    rejects=[
        lambda budgets: tree_zcdp(budgets[:1]),
        lambda budgets: tree_zcdp([max(budgets)]),
        lambda budgets: 0.6 * tree_zcdp(budgets),
    ],
)
def check_path_adds(subject: Callable[[list[float]], float] = tree_zcdp) -> str:
    """A record more or less in a tree: the divergences of order a = 2, 3 and 10 of all outputs together are at most a
    rho of one path, exactly, and at order 2 more than that of one mechanism of it."""
    quarters, worst = (F(1, 4), HALF, F(3, 4)), 0.0
    for arity, exponents in ((2, (2, 3, 2)), (3, (1, 1, 1))):
        z = tuple(F(1, 5) ** e for e in exponents)
        algorithm = Algorithm(quarters, list(hurtful_priors())[2], z, arity=arity)
        path = [-2 * math.log(z[i]) for i in ((1, 0) if arity == 2 else (0, 1, 2))]  # the last is a child of the first
        for less, more in itertools.islice(neighbours(), 8, None, 6):
            laws = algorithm.law(less), algorithm.law(more)
            for one, two in (laws, laws[::-1]):
                for order in (2, 3, 10):
                    moment = sum((p**order / two[o] ** (order - 1) for o, p in one.items()), F(0))
                    ratio = float(log_ball(moment)) / (order - 1) / (order * subject(path))
                    assert ratio <= 1, (arity, exponents, order)
                    worst = max(worst, ratio if order == 2 else 0.0)
    assert worst > 0.61, worst
    return f"a path adds up: exact divergences of order 2 of trees of three quantiles reach {worst:.2f} of 2 rho"


def renyi(alpha: Fraction, epsilon: Fraction, low: Fraction) -> arb:
    """Renyi divergence of the pair of two-point laws with losses low and low + epsilon (low < 0 < low + epsilon)."""
    up, down = (ball(low + epsilon)).exp(), ball(low).exp()
    weight = (1 - down) / (up - down)  # mean of exp(loss) under the second law is one
    a = ball(alpha)
    return (weight * up**a + (1 - weight) * down**a).log() / (a - 1)


@check("ours:bounded-range", code=tree_zcdp, rejects=[Fraction(1, 10), Fraction(99, 800), Fraction(101, 800)])
def check_bounded_range_zcdp(subject: Fraction = Fraction(1, 8)) -> str:
    """Bounded range epsilon gives rho = epsilon**2 / 8: the two-point laws, and the constant is best as epsilon
    falls.
    """
    tightest = arb(0)
    for epsilon, alpha in itertools.product(
        (Fraction(1, 100), Fraction(1, 2), Fraction(2), Fraction(8)), (Fraction(101, 100), Fraction(2), Fraction(10))
    ):
        for j in range(1, 40):
            ratio = renyi(alpha, epsilon, -epsilon * Fraction(j, 40)) / ball(alpha * epsilon**2)
            assert ratio < ball(subject), (epsilon, alpha, j, ratio)
            tightest = ratio if ratio > tightest else tightest
    rng = np.random.default_rng(29)
    for _ in range(2000):  # laws of up to six values, with losses anywhere in an interval of this length
        size, epsilon, order = int(rng.integers(2, 7)), 10 ** rng.uniform(-1, 1.3), 1 + 10 ** rng.uniform(-1, 1)
        share, loss = rng.dirichlet(np.full(size, 0.5)), epsilon * rng.random(size)
        loss -= np.log(np.sum(share * np.exp(loss)))  # the mean of exp(loss) under the second law is one
        divergence = np.log(np.sum(share * np.exp(order * loss))) / (order - 1)
        assert divergence <= float(subject) * order * epsilon**2 * (1 + 1e-9), (size, epsilon, order)
    assert tightest > ball(Fraction(1248, 10_000))
    assert ball(subject) < tightest * arb("1.01"), "a larger constant is not needed"
    for budgets in ([0.5, 0.25, 1.0], [0.3], [20.0, 3.0]):
        assert math.isclose(tree_zcdp(budgets), float(subject) * sum(e * e for e in budgets)), "a path adds them"
    # proof for all laws: K(a) = log E exp(a L) has K(0) = K(1) = 0 and K'' <= epsilon**2 / 4 (Popoviciu), so a (a -
    # 1) epsilon**2 / 8 - K is convex with zeros at 0 and 1. Popoviciu for a variable in [0, 1]: variance = E X^2 -
    # m^2 <= m - m^2 <= 1/4
    m = z3.Real("m")
    prove(m - m * m <= z3.RealVal("1/4"), "Popoviciu")
    return "bounded range epsilon is (epsilon^2 / 8)-zCDP; 1/8 is best (two-point laws reach 0.1248 alpha epsilon^2)"


@check("text:exponential-mechanism", "lem:quantile", rejects=[(1, True), (2, False)])
def check_mechanism_proof(subject: tuple[int, bool] = (2, True)) -> str:
    """Weights within a factor c of each other's give laws within c^2, whatever the base measure and outcomes (z3)."""
    c, w, v, rest, other = z3.Reals("c w v rest other")  # one outcome's weights and the sums of all others'
    close = z3.And(c >= 1, w > 0, v > 0, rest >= 0, other >= 0, w <= c * v, v <= c * w, rest <= c * other)
    power, all_outcomes = subject
    near = z3.And(close, other <= c * rest) if all_outcomes else close
    bound = c if power == 1 else c * c
    prove(z3.Implies(near, w * (v + other) <= bound * v * (w + rest)), "the ratio of two laws")
    return "exponential mechanism: weights change by exp(eps/2) at most, so do sums, so laws change by exp(eps) (z3)"


def _uniform_in_cell(density: Any, cell: tuple[Fraction, Fraction], part: tuple[Fraction, Fraction]) -> Fraction:
    """Place in the cell by length, not by the prior."""
    return (part[1] - part[0]) / (cell[1] - cell[0])


def _wrong_half(density: Any, cell: Any, part: Any) -> Fraction:
    """All of the cell's mass in every part."""
    return F(1)


Density = Mapping[tuple[Fraction, Fraction], Fraction]


def mass(density: Density, low: Fraction, high: Fraction) -> Fraction:
    """Mass of (low, high] under a piecewise constant density."""
    return sum((h * max(min(high, b) - max(low, a), F(0)) for (a, b), h in density.items()), F(0))


def by_prior(density: Density, cell: tuple[Fraction, Fraction], part: tuple[Fraction, Fraction]) -> Fraction:
    """Share of a part of a cell: in proportion to the prior."""
    return mass(density, *part) / mass(density, *cell)


Places = Callable[..., Fraction]
Step = tuple[Callable[[Fraction, Fraction], Fraction], Places]


def score_and_mass(score: Fraction, cell_mass: Fraction) -> Fraction:
    """Weight of a cell: exp(-eps Gap/2) mu(I_k)."""
    return score * cell_mass


@check(
    "text:two-step-sampling",
    rejects=[
        (score_and_mass, _uniform_in_cell),
        (score_and_mass, _wrong_half),
        (lambda score, cell_mass: score * (cell_mass > 0), by_prior),
        (lambda score, cell_mass: score**2 * cell_mass, by_prior),
        (lambda score, cell_mass: score * (cell_mass + F(1, 1000)), by_prior),
    ],
)
def check_two_step_sampling(subject: Step = (score_and_mass, by_prior)) -> str:
    """Sampling a cell, then a place in it in proportion to mu, has the mechanism's density exp(-eps Gap/2) mu; a cell
    without mass has no chance."""
    draw, ends = random.Random(11), (F(0), F(8))
    weight, place = subject
    for _ in range(60):
        data = sorted(draw.sample(range(1, 16), draw.randrange(1, 5)))
        x = [F(v, 2) for v in data]
        density = {(F(k), F(k + 1)): F(draw.choice((0, 1, 5))) for k in range(7)} | {(F(7), F(8)): F(1)}
        z, rank = F(1, draw.choice((2, 9))), math.floor(F(draw.randrange(1, 8), 8) * len(x))
        cells = list(itertools.pairwise([ends[0], *x, ends[1]]))
        whole = sum(z ** abs(k - rank) * mass(density, *cell) for k, cell in enumerate(cells))
        chances = [weight(z ** abs(k - rank), mass(density, *cell)) for k, cell in enumerate(cells)]
        for k, (low, high) in enumerate(cells):
            chance = chances[k] / sum(chances)
            for part in ((low, (low + high) / 2), ((low + 3 * high) / 4, high)):
                direct = z ** abs(k - rank) * mass(density, *part) / whole
                drawn = chance * place(density, (low, high), part) if mass(density, low, high) else chance
                assert drawn == direct, (x, part)
    return "cell first, place in the cell in proportion to the prior second: the mechanism's own law (60 exact cases)"


@check(
    "text:two-step-sampling",
    code=pq.simulate,
    rejects=[
        (lambda score, cell_mass: score * (cell_mass > 0), by_prior),
        (lambda score, cell_mass: math.sqrt(score) * cell_mass, by_prior),
        (score_and_mass, _uniform_in_cell),
    ],
)
def check_draws(subject: Step = (score_and_mass, by_prior)) -> str:
    """What the package draws: shares of 4000 seeded draws in parts of cells are those of the two steps, up to five
    standard deviations, and no draw lies in a cell without mass."""
    x, trials = [F(1), F(2), F(4), F(6)], 4000
    density = {(F(0), HALF): F(1), (HALF, F(1)): F(3), (F(2), F(3)): F(4), (F(3), F(4)): F(1), (F(6), F(8)): F(1)}
    heights = {cell: float(h * (cell[1] - cell[0])) for cell, h in density.items()}
    prior = pq.Mixture([pq.Uniform(float(a), float(b)) for a, b in heights], list(heights.values()))
    cells, z = list(itertools.pairwise([F(0), *x, F(8)])), F(1, 2)
    drawn = pq.simulate(
        [float(v) for v in x],
        [0.5],
        trials=trials,
        epsilon=2 * math.log(2),
        priors=prior,
        mechanism="tree",
        calibration="paper",
        rng=7,
    ).ravel()
    chances = [float(subject[0](z ** abs(k - 2), mass(density, *cell))) for k, cell in enumerate(cells)]
    for k, (low, high) in enumerate(cells):
        middle = (low + high) / 2
        for part in ((low, middle), (middle, high)):
            found = np.count_nonzero((drawn > float(part[0])) & (drawn <= float(part[1])))
            empty = not mass(density, low, high)
            share = 0.0 if empty else float(subject[1](density, (low, high), part)) * chances[k] / sum(chances)
            assert not empty or found == 0, (part, "no mass")
            assert abs(found / trials - share) <= 5 * math.sqrt(share * (1 - share) / trials), (part, found, share)
    return f"{trials} draws of pq: the two steps' shares in halves of cells, and none where the prior has no mass"
