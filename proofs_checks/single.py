"""One quantile: lem:quantile, eq:basic, cor:cauchy and the prose around them (Section 3.2, Appendix A.1)."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction

import sympy
from flint import arb

from pq.bounds import cor_cauchy, uniform_bound
from proofs_checks.exact import Grid, Prior, Restricted, ball, gap, log_ball, mechanism, psi

HALF = Fraction(1, 2)
Tail = Callable[[Fraction, int, Fraction, Fraction], Fraction]


def one_quantile_cases(count: int = 60) -> Iterator[tuple[Grid, Fraction, Prior, Fraction]]:
    """Data, quantile, prior of total mass 1, 1/2 or 3, and z: corners first, then a fixed random sample."""
    draw = random.Random(1)
    for q, z in itertools.product(
        (Fraction(1, 3), Fraction(1, 2), Fraction(9, 10)), (Fraction(1, 50), Fraction(9, 10))
    ):
        for n in (0, 1, 2, 5):
            masses = [Fraction(1, 1000)] * n + [Fraction(1)]
            yield Grid(n), q, {k + HALF: mass for k, mass in enumerate(masses)}, z
    for _ in range(count):
        n = draw.randrange(7)
        masses = [Fraction(draw.choice((0, 1, 1, 5, 100, 10_000))) for _ in range(n + 1)]
        total = sum(masses) or Fraction(1)
        masses = [mass / total for mass in masses] if sum(masses) else [Fraction(1)] * (n + 1)
        scale = draw.choice((Fraction(1), HALF, Fraction(3)))
        prior = {k + HALF: scale * mass for k, mass in enumerate(masses) if mass}
        yield Grid(n), Fraction(draw.randrange(1, 20), 20), prior, Fraction(draw.randrange(1, 30), 30)


def tail_bound(z: Fraction, gamma: int, inner: Fraction, total: Fraction) -> Fraction:
    """exp(-epsilon gamma / 2) mu(R) / Psi: eq:quantile for a prior of any total mass."""
    return z**gamma * total / inner


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


def check_lem_quantile_total_mass(subject: Tail = lambda z, gamma, inner, total: z**gamma / inner) -> str:
    """Counterexample for a base measure that is no probability measure: scaling it changes the printed bound, not
    the law.
    """
    data, q, z = Grid(1), HALF, HALF
    prior = {HALF: Fraction(8), 1 + HALF: Fraction(8)}
    law = mechanism(Restricted(data, -math.inf, math.inf), q, prior, z)
    assert law[1 + HALF] == Fraction(1, 3)
    assert law[1 + HALF] > subject(z, 1, psi(data, q, prior, z), Fraction(16)), "the bound survives"
    return "lem:quantile needs mu(R) <= 1: with n = 1 and mass 8 in each cell the bound is 1/24 and the probability 1/3"


def check_psi_monotone(subject: Callable[[Fraction, Fraction], bool] = lambda low, high: low <= high) -> str:
    """Psi falls with epsilon to the mass of the optimal cell, so the bound with Psi^(q) is the looser one."""
    for data, q, prior, _ in one_quantile_cases():
        values = [psi(data, q, prior, z) for z in (Fraction(0), Fraction(1, 9), HALF, Fraction(8, 9), Fraction(1))]
        optimal = sum((mass for o, mass in prior.items() if gap(data, q, o) == 0), Fraction(0))
        assert values[0] == optimal
        assert all(subject(low, high) for low, high in itertools.pairwise(values)), (data, q)
    return "Psi^(q, epsilon) is monotone: the optimal cell's mass at epsilon = infinity, the total mass at 0 (exact)"


def check_exponential_moment(
    subject: Callable[[Fraction, Fraction], Fraction] = lambda inner, total: total / inner,
) -> str:
    """Ours: E exp(epsilon Gap / 2) = mu(R) / Psi, an equality, so E Gap <= 2 U / epsilon by Jensen and eq:quantile
    by Markov.
    """
    for data, q, prior, z in one_quantile_cases():
        law = mechanism(Restricted(data, -math.inf, math.inf), q, prior, z)
        inner, total = psi(data, q, prior, z), sum(prior.values())
        if len(prior) == 1:
            continue  # the engine takes a short cut there
        assert sum(p / z ** int(gap(data, q, o)) for o, p in law.items()) == subject(inner, total)
        mean = sum(p * gap(data, q, o) for o, p in law.items())
        assert not ball(mean) * -log_ball(z) > log_ball(total / inner), (data, q)
    return "ours: E exp(epsilon Gap / 2) = mu(R) / Psi exactly, hence E Gap <= (2 / epsilon) U with no log(1 / beta)"


def check_sharp_calibration(subject: Callable[[Fraction], Fraction] = lambda q: max(q, 1 - q)) -> str:
    """Ours: the unrounded utility is max(q, 1 - q)-sensitive, so its rate is larger and the tail bound as much
    smaller.
    """
    for n, p in itertools.product(range(8), range(1, 20)):
        q = Fraction(p, 20)
        for below, inserted_below in itertools.product(range(n + 1), (0, 1)):
            change = abs(below + inserted_below - q * (n + 1)) - abs(below - q * n)
            assert abs(change) <= subject(q), (n, q)
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


def check_uniform_bound(subject: Callable[[int], bool] = lambda rank: rank >= 1) -> str:
    """Psi >= psi / (b - a) for the uniform prior and all data, where floor(q n) >= 1."""
    draw = random.Random(2)
    for _ in range(300):
        n = draw.randrange(2, 7)
        x = sorted(draw.sample(range(1, 60), n))
        least = min(b - a for a, b in itertools.pairwise(x))
        for q in (Fraction(p, 12) for p in range(1, 12)):
            k = math.floor(q * n)
            ends = [0, *x, 60]
            if subject(k):
                assert Fraction(ends[k + 1] - ends[k], 60) >= Fraction(least, 60), (x, q)
    return "uniform prior: the optimal cell has mass at least psi / (b - a) whenever floor(q n) >= 1"


def least_between_records(x: list[float], low: float) -> float:
    """psi as printed: the least distance between records."""
    return min(b - a for a, b in itertools.pairwise(x))


def check_uniform_first_cell(subject: Callable[[list[float], float], float] = least_between_records) -> str:
    """Counterexample for floor(q n) = 0: the bound claims gap 0 with probability 9/10, which has 1/46."""
    beta, z = Fraction(1, 10), Fraction(1, 25)
    masses = {HALF: Fraction(1, 1000), 1 + HALF: Fraction(499, 1000), 2 + HALF: HALF}  # x = (0.001, 0.5) in (0, 1)
    law = mechanism(Restricted(Grid(2), -math.inf, math.inf), Fraction(1, 4), masses, z)
    bound = uniform_bound(1.0, subject([0.001, 0.5], 0.0), -2 * math.log(z), float(beta))
    assert bound < 1 - 1e-9, "the bound survives"
    assert 1 - law[HALF] > Fraction(95, 100)
    return (
        f"uniform prior, x = (0.001, 0.5) in (0, 1), q = 1/4: gap < {bound:.3f} claimed w.p. 0.9, Pr{{gap = 0}} "
        "is 0.046"
    )


def check_cauchy_mass(subject: Callable[[sympy.Expr], sympy.Expr] = lambda t: t / (1 + t**2)) -> str:
    """cor:cauchy: inner cells by the density's least value; the left tail by arctan(t) >= t / (1 + t^2), n >= 3."""
    a, b, r, s = sympy.symbols("a b R psi", positive=True)
    sigma = (b - a) / 2
    claimed = 2 * (b - a) * s / sympy.pi / ((b - a) ** 2 + 4 * r**2)
    assert sympy.simplify(sigma / sympy.pi * s / (sigma**2 + r**2) - claimed) == 0
    printed = sympy.pi * (b - a + 4 * r**2 / (b - a)) / (2 * s)
    assert sympy.simplify(1 / claimed - printed) == 0
    # mass of (-infinity, x_1] is at least arctan(t) / pi with t = sigma / R; the claim is at most t / (1 + t^2) / pi
    # if psi <= R
    t = sympy.symbols("t", positive=True)
    slope = sympy.factor(sympy.diff(sympy.atan(t) - subject(t), t))
    assert sympy.limit(sympy.atan(t) - subject(t), t, 0) == 0
    assert slope.is_positive, slope
    return (
        "cor:cauchy: the claimed mass bounds every inner cell, and the left tail too when psi <= R, that is "
        "for n >= 3 (sympy)"
    )


def paper_cauchy(*args: float, **known: int) -> float:
    """The printed cor:cauchy."""
    return cor_cauchy(*args, version="paper", **known)


def check_cauchy_two_records(subject: Callable[..., float] = paper_cauchy) -> str:
    """Counterexample for n = 2 and floor(q n) = 0: two far records, scale 1; the left tail has half the claimed
    mass.
    """
    x, radius, beta = Fraction(999), 1000.0, Fraction(1, 10)
    tail = ball(HALF) - ball(x).atan() / arb.pi()  # mass of (-infinity, -999]
    z = Fraction(1, 15_748)
    bound = subject(radius, 2.0, float(2 * x), -2 * math.log(z), float(beta), n=2, rank=0)
    assert bound < 1 - 1e-9, "the bound survives"
    inner = 1 - 2 * tail
    failure = (inner * ball(z) + tail * ball(z) ** 2) / (tail + inner * ball(z) + tail * ball(z) ** 2)
    assert failure > ball(Fraction(15, 100)), failure
    return (
        f"cor:cauchy, x = (-999, 999), scale 1, R = 1000, q = 1/4: gap < {bound:.4f} claimed w.p. 0.9, "
        f"Pr{{gap >= 1}} > 0.15"
    )


def check_log_pi(subject: Callable[[], float] = lambda: math.log(math.pi)) -> str:
    """With R = (b - a) / 2 the Cauchy bound is the uniform one plus 2 / epsilon log pi."""
    r, s, beta = sympy.symbols("R psi beta", positive=True)
    width = 2 * r
    cauchy = sympy.pi * (width + 4 * r**2 / width) / (2 * beta * s)
    uniform = width / (beta * s)
    assert sympy.simplify(cauchy / uniform) == sympy.pi
    assert abs(subject() - math.log(math.pi)) < 1e-12
    return "with R = (b - a) / 2 the Cauchy bound exceeds the uniform one by exactly (2 / epsilon) log pi (sympy)"


def check_uniform_wrong_interval(subject: Callable[[int, float], float] = lambda n, excess: n / 2) -> str:
    """The uniform prior on a wrong interval errs by ranks, not by R: data just outside give gap floor(q n) for sure."""
    for n, excess in itertools.product((10, 1000), (1e-9, 1.0)):
        # all records in (1, 1 + excess), prior on (0, 1): every output lies below all records
        law = mechanism(Restricted(Grid(n), -math.inf, math.inf), HALF, {HALF: Fraction(1)}, HALF)
        assert all(float(gap(Grid(n), HALF, o)) == subject(n, excess) for o in law)
    return (
        "uniform prior on (0, 1), all data in (1, 1 + 1e-9): the gap is floor(q n) with certainty, however "
        "small R - (b - a) / 2"
    )


def check_tail_rates(subject: Callable[[sympy.Expr], sympy.Expr] = lambda r: r) -> str:
    """-log of a cell's mass at distance R: linear for Laplace, logarithmic for Cauchy; quadratic for the normal."""
    r = sympy.symbols("R", positive=True)
    laplace = -sympy.log((sympy.exp(-r) - sympy.exp(-r - 1)) / 2)
    assert sympy.limit(sympy.expand_log(sympy.simplify(laplace), force=True) / subject(r), r, sympy.oo) == 1
    cauchy = -sympy.log(1 / (sympy.pi * (1 + (r + 1) ** 2)))
    assert sympy.limit(cauchy / sympy.log(1 + r**2), r, sympy.oo) == 1
    normal = r**2 / 2
    assert sympy.limit(normal / r, r, sympy.oo) == sympy.oo
    return (
        "the bound grows like R for a Laplace prior, like log(1 + R^2) for Cauchy, like R^2 for the normal "
        "(sympy limits)"
    )


def check_log_sum_exp(subject: Callable[[int], float] = math.log) -> str:
    """-log of the harmonic mean is the log-sum-exp of the U less log m."""
    for psis in ([HALF], [HALF, HALF], [Fraction(1, 3), Fraction(1, 7), Fraction(1)]):
        m = len(psis)
        harmonic = m / sum(1 / value for value in psis)
        left, right = -log_ball(harmonic), log_ball(sum((1 / value for value in psis), Fraction(0))) - arb(subject(m))
        assert abs(float(left) - float(right)) < 1e-12, (psis, float(left), float(right))
    return (
        "-log of the harmonic mean = log sum exp(U_i) - log m; the printed equality forgets log m (m = 2, Psi "
        "= 1/2: log 2, not log 4)"
    )
