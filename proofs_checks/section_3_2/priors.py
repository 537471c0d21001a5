"""What uniform, Cauchy and half-Cauchy priors cost: the prose around cor:cauchy."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import sympy
import z3
from flint import arb

from pq import HalfCauchy, Uniform
from pq.bounds import cor_cauchy, lem_quantile, uniform_bound
from proofs_checks.engine.registry import check
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.chains import cauchy_mass
from proofs_checks.tools.exact import Grid, Restricted, ball, gap, mechanism
from proofs_checks.tools.solver import follows

F = Fraction
HALF = Fraction(1, 2)


def least_between_records(x: list[float], low: float) -> float:
    """psi as printed: the least distance between records."""
    return min(b - a for a, b in itertools.pairwise(x))


@check(
    "text:uniform-bound",
    "text:aq-bound",
    code=uniform_bound,
    rejects=[
        lambda x, low: min(x[0] - low, min(b - a for a, b in itertools.pairwise(x))),
        lambda x, low: (x[-1] - low) / len(x),  # what a cell has on average
    ],
)
def check_uniform_first_cell(subject: Callable[[list[float], float], float] = least_between_records) -> str:
    """Counterexample for floor(q n) = 0: the bound claims gap 0 with probability 9/10, which has 1/46."""
    beta, z = Fraction(1, 10), Fraction(1, 25)
    masses = {HALF: Fraction(1, 1000), 1 + HALF: Fraction(499, 1000), 2 + HALF: HALF}  # x = (0.001, 0.5) in (0, 1)
    law = mechanism(Restricted(Grid(2), -math.inf, math.inf), Fraction(1, 4), masses, z)
    bound = uniform_bound(1.0, subject([0.001, 0.5], 0.0), -2 * math.log(z), float(beta))
    assert bound < 1 - 1e-9, "the bound survives"
    assert bound <= 0.9313 < bound + 1e-4 and round(float(1 - law[HALF]), 3) == 0.954, "as the row says"
    return (
        f"uniform prior, x = (0.001, 0.5) in (0, 1), q = 1/4: gap < {bound:.3f} claimed w.p. 0.9, Pr{{gap = 0}} "
        "is 0.046"
    )


@check(
    "text:uniform-bound", code=uniform_bound, rejects=[scaled(uniform_bound, factor) for factor in (0.5, 0.99, 1.01)]
)
def check_uniform_bound_attained(subject: Callable[[float, float, float, float], float] = uniform_bound) -> str:
    """(2/epsilon) log((b - a)/(beta psi)) for records in the middle of (0, 1), all psi apart: their outer cells have
    nearly all of the prior and the largest gap, which is then missed with just the stated probability."""
    z, n, count = F(1, 10**9), 40, 0  # records, and z = exp(-epsilon/2)
    for psi in (F(1, 10**6), F(1, 10**30)):
        outer = (1 - (n - 1) * psi) / 2
        prior = {k + HALF: outer if k in (0, n) else psi for k in range(n + 1)}
        law = mechanism(Restricted(Grid(n), -math.inf, math.inf), HALF, prior, z)
        farthest = law[HALF] + law[n + HALF]
        bound = subject(1.0, float(psi), -2 * math.log(z), float(farthest) * (1 - 1e-9))
        assert n / 2 <= bound <= 1.001 * n / 2, bound  # else the gap exceeds it with more than the probability
        count += 1
    return f"(2/epsilon) log((b - a)/(beta psi)) is the gap itself, to a thousandth, for {count} columns in fractions"


def first_counts(rank: int) -> bool:
    """Whether the distance from a to the first record belongs to psi."""
    return rank == 0


@check("text:uniform-bound", rejects=[lambda rank: False, lambda rank: rank >= 1, lambda rank: rank == 1])
def check_uniform_mass(subject: Callable[[Any], Any] = first_counts) -> str:
    """Psi >= psi / (b - a) for the uniform prior, any number of records, and any of them equal, where psi is 0: the
    optimal cell lies between neighbours or from a to the first record, never from the last one to b (z3)."""
    k, n, j = z3.Ints("k n j")
    q, a, b, psi = z3.Reals("q a b psi")
    x = z3.Function("x", z3.IntSort(), z3.RealSort())
    follows(n >= 1, q > 0, q < 1, k <= q * n, q * n < k + 1, goal=z3.And(k >= 0, k <= n - 1))
    apart = z3.ForAll(j, z3.Implies(z3.And(j >= 1, j < n), x(j + 1) - x(j) >= psi))
    facts = (a < b, k >= 0, k <= n - 1, apart, z3.Implies(subject(k), x(1) - a >= psi))
    follows(*facts, goal=(x(k + 1) - z3.If(k == 0, a, x(k))) / (b - a) >= psi / (b - a), timeout=2_000)
    return "uniform prior: mass psi / (b - a) on the optimal cell for any data (z3), at rank 0 with the distance from a"


@check("text:uniform-bound", rejects=[lambda rank: False, lambda rank: rank >= 1])
def check_uniform_bound(subject: Callable[[int], bool] = first_counts) -> str:
    """The same on drawn data, equal records among them, with the masses of the cells as they are."""
    draw = random.Random(2)
    for trial in range(100):
        n = draw.randrange(1, 7)
        x = sorted(draw.choices(range(1, 60), k=n)) if trial % 5 == 0 else sorted(draw.sample(range(1, 60), n))
        least = min((b - a for a, b in itertools.pairwise(x)), default=60)
        for q in (Fraction(p, 12) for p in range(1, 12)):
            k = math.floor(q * n)
            ends = [0, *x, 60]
            psi = min(least, x[0]) if subject(k) else least
            assert Fraction(ends[k + 1] - ends[k], 60) >= Fraction(psi, 60), (x, q)
    return "uniform prior: mass psi / (b - a) on the optimal cell; at rank 0 with the distance from a in psi"


@check(
    "text:log-pi",
    code=(cor_cauchy, uniform_bound),
    rejects=[0.99 * math.pi, 1.01 * math.pi, 2 * math.pi, 2.0],
)
def check_log_pi(subject: float = math.pi) -> str:
    """With R = (b - a) / 2 the Cauchy bound is the uniform one plus (2 / epsilon) log pi, and no optimal cell has less
    than the mass that this claims, if psi is that of text:uniform-bound, with the distance from a at rank 0: one record
    to six, all ranks, by balls, and the density for all places (z3). A narrow cell at b has just that mass.

    subject: how many times the mass of a uniform cell may be that of a Cauchy cell.
    """
    for radius, psi, epsilon, beta in itertools.product((0.3, 1.0, 1e6), (1e-9, 0.1), (0.1, 30.0), (0.5, 1e-6)):
        apart = cor_cauchy(radius, 2 * radius, psi, epsilon, beta, version="paper") - uniform_bound(
            2 * radius, psi, epsilon, beta
        )
        assert math.isclose(apart, 2 / epsilon * math.log(subject), rel_tol=1e-9), (radius, psi, epsilon, beta)
    t = z3.Real("t")  # densities in units of R: 1/(pi (1 + t^2)), and 1/2
    follows(t >= -1, t <= 1, goal=1 / (1 + t * t) >= z3.RealVal("1/2"))
    follows(t >= -1, t <= 1, 1 / (1 + t * t) == z3.RealVal("1/2"), goal=z3.Or(t == -1, t == 1))
    draw, near, closest = random.Random(23), F(1, 10**9), math.inf
    columns = [sorted({F(draw.randrange(-999, 1000), 1000) for _ in range(draw.randrange(1, 7))}) for _ in range(60)]
    columns += [[near - 1], [near - 1, 1 - near], [F(0), 1 - 2 * near, 1 - near]]
    for x in columns:  # in units of R around the location, so a = -1 and b = 1
        least = min((b - a for a, b in itertools.pairwise(x)), default=F(2))
        for rank in range(len(x)):
            mass = cauchy_mass(x[rank - 1], x[rank]) if rank else 1 - cauchy_mass(x[0], math.inf)
            share = least if rank else min(least, x[0] + 1)
            claimed = float(share) / 2 / subject
            assert mass > claimed * (1 - 1e-12), (x, rank)
            closest = min(closest, float(mass) / claimed)
    assert closest < 1.001, "less of it would do"
    return "with R = (b - a) / 2 the Cauchy bound exceeds the uniform one by (2 / epsilon) log pi, for every n and rank"


def _wrong_interval(n: int, q: Fraction, excess: float) -> tuple[int, int]:
    """Gap of an output below all records, and of one above them all."""
    return math.floor(q * n), n - math.floor(q * n)


@check(
    "text:uniform-wrong-interval",
    "text:no-assumptions",
    rejects=[
        lambda n, q, excess: (excess, excess),  # what leaves the interval
        lambda n, q, excess: (math.floor(q * n) - 1, n - math.floor(q * n) - 1),
        lambda n, q, excess: (n, n),
        lambda n, q, excess: (math.floor(q * n), n - math.ceil(q * n)),
        lambda n, q, excess: (math.ceil(q * n), n - math.floor(q * n)),
    ],
)
def check_uniform_wrong_interval(
    subject: Callable[[int, Fraction, float], tuple[float, float]] = _wrong_interval,
) -> str:
    """The uniform prior on a wrong interval errs by ranks, not by R: data just outside give gap floor(q n), or on the
    other side n - floor(q n), for sure."""
    prior = Uniform(0, 1)
    levels = [*(Fraction(k, 7) for k in range(1, 7)), Fraction(1, 10), HALF, Fraction(9, 10)]
    for n, excess in itertools.product((10, 1000), (1e-9, 1.0)):
        steps = [excess * i / (n + 1) for i in range(1, n + 1)]
        for side, records in enumerate(([1 + step for step in steps], [-step for step in reversed(steps)])):
            ends = [-math.inf, *records, math.inf]
            masses = [float(mass) for mass in np.exp(prior.log_mass(ends[:-1], ends[1:]))]
            atoms = {k + HALF: Fraction(mass) for k, mass in enumerate(masses) if mass}  # cells in ranks of a grid
            assert atoms == {side * n + HALF: 1}, "all of the prior lies on one side of all records"
            for q in levels:
                law = mechanism(Restricted(Grid(n), -math.inf, math.inf), q, atoms, HALF)
                assert {gap(Grid(n), q, o) for o in law} == {subject(n, q, excess)[side]}, (n, q, excess, side)
    return (
        "uniform prior on (0, 1), all data in (1, 1 + 1e-9): the gap is floor(q n) with certainty, however "
        "small R - (b - a) / 2; n - floor(q n) if they lie in (-1e-9, 0)"
    )


def laplace_growth(r: arb) -> arb:
    """R + log(2e/(e - 1))."""
    e = arb(1).exp()
    return r + (2 * e / (e - 1)).log()


Between = tuple[Callable[[arb], arb], Callable[[arb], arb]]
GROWTH: dict[str, Between] = {  # what -log of the mass of (R, R + 1] lies between, for all R >= 0
    "Laplace": (laplace_growth, laplace_growth),
    "Cauchy": (lambda r: (arb.pi() * (1 + r**2)).log(), lambda r: (2 * arb.pi() * (1 + r**2)).log()),
    "Normal": (lambda r: r**2 / 2, lambda r: (r + 1) ** 2 / 2 + 1),
}


def log_tail(family: str, r: arb) -> arb:
    """-log of the mass of (R, R + 1] under the standard member of a family."""
    root = arb(2).sqrt()
    masses = {
        "Laplace": lambda: ((-r).exp() - (-r - 1).exp()) / 2,
        "Cauchy": lambda: (1 / (1 + r * (r + 1))).atan() / arb.pi(),
        "Normal": lambda: ((r / root).erfc() - ((r + 1) / root).erfc()) / 2,
    }
    return -masses[family]().log()


def _times(between: Between, factor: str) -> Between:
    least, most = between
    return lambda r: arb(factor) * least(r), lambda r: arb(factor) * most(r)


@check(
    "text:tails",
    rejects=[
        {**GROWTH, "Normal": (lambda r: r**2 / 2, lambda r: 5 * r + 1)},
        {**GROWTH, "Cauchy": (GROWTH["Cauchy"][0], lambda r: (1 + r).log() + 2)},
        *({**GROWTH, name: _times(GROWTH[name], by)} for name in GROWTH for by in ("0.99", "1.01")),
        {**GROWTH, "Normal": (lambda r: r**2 / 2 + arb("1.1"), GROWTH["Normal"][1])},
        {**GROWTH, "Cauchy": (lambda r: (arb("1.01") * arb.pi() * (1 + r**2)).log(), GROWTH["Cauchy"][1])},
    ],
)
def check_tail_rates(subject: dict[str, Between] = GROWTH) -> str:
    """-log of a cell's mass at distance R: R and a constant for Laplace, log(1 + R^2) for Cauchy up to log(2 pi), and
    above R^2/2 for the normal: no multiple of R bounds it. In balls from 0 to 100 and at powers of ten; for all R by
    sympy and z3."""
    places = [arb(k) / 4 for k in range(401)]
    far = {"Laplace": (6, 9), "Cauchy": (3, 6, 30), "Normal": (3, 4)}
    for family, (least, most) in subject.items():
        for r in (*places, *(arb(10) ** power for power in far[family])):
            found = log_tail(family, r)
            assert not found < least(r) and not found > most(r), (family, r)
            assert family == "Laplace" or found > least(r), (family, r)
    distance = sympy.symbols("R", nonnegative=True)
    cell = (sympy.exp(-distance) - sympy.exp(-distance - 1)) / 2 - sympy.exp(-distance) * (1 - sympy.exp(-1)) / 2
    assert sympy.simplify(cell) == 0, "Laplace"
    # Cauchy: arctan(1/s)/pi with s = 1 + R + R^2, from (1/s)/(1 + 1/s^2)/pi (check_cauchy_mass) to (1/s)/pi
    r, s = z3.Reals("R s")
    follows(r >= 0, s == 1 + r + r * r, goal=z3.And(s >= 1 + r * r, s * s + 1 <= 2 * s * (1 + r * r)))
    # Normal: exp(-R^2/2)/2 less the tail is 0 at 0 and far out, and rises first and falls then; the density falls
    rise = sympy.diff(sympy.exp(-(distance**2) / 2) / 2 - sympy.erfc(distance / sympy.sqrt(2)) / 2, distance)
    assert sympy.simplify(rise * sympy.exp(distance**2 / 2) - 1 / sympy.sqrt(2 * sympy.pi) + distance / 2) == 0
    assert sympy.log(sympy.sqrt(2 * sympy.pi)).evalf() < 1
    return "-log of a cell's mass: R + 1.15 for Laplace, log(1 + R^2) and 1.1 to 1.9 for Cauchy, normal above R^2/2"


def inner_separation(x: list[Fraction], rank: int) -> Fraction:
    """Corrected: the distance from the bound to the first record counts where the target is before all records."""
    ends = [Fraction(0), *x]
    return min(b - a for a, b in itertools.pairwise(ends if rank == 0 else x))


@check(
    "text:half-cauchy",
    rejects=[
        lambda x, rank: min((b - a for a, b in itertools.pairwise(x)), default=x[0]),
        lambda x, rank: inner_separation(x, rank) if len(x) > 1 else 2 * x[0],
    ],
)
def check_half_cauchy_first(subject: Callable[[list[Fraction], int], Fraction] = inner_separation) -> str:
    """Rank 0: the optimal cell (0, x_1] is as short as the first record is close to the bound, for every number of
    records, so the separation of records alone bounds no mass."""
    for n in (1, 2, 3, 10, 100):
        for first in (Fraction(1, 10), Fraction(1, 10**6)):
            x = [first] + [first + 3 * (i + 1) for i in range(n - 1)]
            radius, width = ball(x[-1]), ball(Fraction(2))
            for rank in range(min(n, 2)):
                ends = [Fraction(0), *x]
                cell = cauchy_mass(ends[rank], ends[rank + 1]) / cauchy_mass(Fraction(0), math.inf)
                claimed = 2 * 2 * width * ball(subject(x, rank)) / arb.pi() / (width**2 + 4 * radius**2)
                assert cell > claimed, f"n = {n}, rank {rank}: mass {float(cell):.3g}, claimed {float(claimed):.3g}"
    return "half-Cauchy at rank 0: the distance of the first record to the bound counts, whatever n is"


@check(
    "text:half-cauchy",
    code=HalfCauchy,
    rejects=[lambda mass: mass, lambda mass: mass * arb("1.98"), lambda mass: mass * arb("2.02")],
)
def check_half_cauchy(subject: Callable[[arb], arb] = lambda mass: 2 * mass) -> str:
    """One-sided bounds: the half-Cauchy doubles every mass on its side, so its bound is 2 / epsilon log 2 smaller."""
    t, s, low_, high_ = sympy.symbols("t s low high", positive=True)
    density = 1 / (sympy.pi * s * (1 + (t / s) ** 2))
    assert sympy.integrate(density, (t, 0, sympy.oo)) == sympy.Rational(1, 2)  # so the density doubles, everywhere
    least = 2 * density.subs(t, high_) * (high_ - low_)  # it falls: a cell has at least its right end's density
    claimed = 2 * 4 * s * (high_ - low_) / sympy.pi / (4 * s**2 + 4 * high_**2)  # width 2 s, doubled
    assert sympy.simplify(least - claimed) == 0
    draw = random.Random(8)
    for _ in range(100):
        low = Fraction(draw.randrange(10**4), draw.choice((1, 100)))
        high = low + Fraction(1, draw.choice((1, 10**4)))
        half = (ball(high).atan() - ball(low).atan()) / (arb.pi() / 2)
        assert abs(subject(cauchy_mass(low, high)) - half) < 1e-30, (low, high)
        apart = [lem_quantile(math.log(share), 0.3, 0.1) for share in (cauchy_mass(low, high), half)]
        assert math.isclose(apart[0] - apart[1], 2 / 0.3 * math.log(2), rel_tol=1e-6), "as the row says"
        package = math.exp(HalfCauchy(1.0).log_mass(float(low), float(high)))
        assert math.isclose(package, float(half), rel_tol=1e-6), (low, high)
    return "half-Cauchy prior for one-sided data: twice the Cauchy mass beyond the bound, so (2/eps) log 2 less"
