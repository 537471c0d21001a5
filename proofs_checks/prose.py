"""Sentences of the text that a reader could doubt: one quantile, ties, mixing, restricted priors (Sections 2 to 4)."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import sympy
from flint import arb

from pq.bounds import lem_empirical_quantiles, thm_binary
from proofs_checks.algorithm import inverse_psis
from proofs_checks.exact import (
    Algorithm,
    Grid,
    Points,
    Position,
    Prior,
    Restricted,
    adapt,
    gap,
    log_ball,
    mechanism,
    probability,
    psi,
)
from proofs_checks.robustness import mix
from proofs_checks.single import Tail, tail_bound

F = Fraction
HALF = F(1, 2)
QUARTERS = (F(1, 4), HALF, F(3, 4))
WHOLE = (-math.inf, math.inf)


# ---- one quantile ----------------------------------------------------------------------------------------------------

Density = Mapping[tuple[Fraction, Fraction], Fraction]


def mass(density: Density, low: Fraction, high: Fraction) -> Fraction:
    """Mass of (low, high] under a piecewise constant density."""
    return sum((h * max(min(high, b) - max(low, a), F(0)) for (a, b), h in density.items()), F(0))


def by_prior(density: Density, cell: tuple[Fraction, Fraction], part: tuple[Fraction, Fraction]) -> Fraction:
    """Share of a part of a cell: in proportion to the prior."""
    return mass(density, *part) / mass(density, *cell)


def check_two_step_sampling(subject: Callable[..., Fraction] = by_prior) -> str:
    """Sampling a cell, then a place in it in proportion to mu, has the mechanism's density exp(-eps Gap/2) mu."""
    draw, ends = random.Random(11), (F(0), F(8))
    for _ in range(60):
        data = sorted(draw.sample(range(1, 16), draw.randrange(1, 5)))
        x = [F(v, 2) for v in data]
        density = {(F(k), F(k + 1)): F(draw.choice((0, 1, 5))) for k in range(7)} | {(F(7), F(8)): F(1)}
        z, rank = F(1, draw.choice((2, 9))), math.floor(F(draw.randrange(1, 8), 8) * len(x))
        cells = list(itertools.pairwise([ends[0], *x, ends[1]]))
        weights = [z ** abs(k - rank) * mass(density, *cell) for k, cell in enumerate(cells)]
        for k, (low, high) in enumerate(cells):
            for part in ((low, (low + high) / 2), ((low + 3 * high) / 4, high)):
                if not weights[k]:
                    continue
                direct = z ** abs(k - rank) * mass(density, *part) / sum(weights)
                assert weights[k] / sum(weights) * subject(density, (low, high), part) == direct, (x, part)
    return "cell first, place in the cell in proportion to the prior second: the mechanism's own law (60 exact cases)"


def check_perfect_prediction(subject: Callable[[Fraction], Fraction] = lambda z: F(1)) -> str:
    """All mass on the optimal cell: Psi = 1 at every epsilon, bound (2/eps) log(1/beta), and a gap of 0 for sure."""
    for n, q, z in itertools.product(range(6), QUARTERS, (F(0), F(1, 9), HALF)):
        prior = {math.floor(q * n) + HALF: F(1)}
        assert psi(Grid(n), q, prior, z) == subject(z)
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


def check_ties_one(subject: Tail = tail_bound) -> str:
    """eq:quantile with repeated records, nothing asked of the data: exact tails at most exp(-eps gamma/2)/Psi."""
    empty = 0
    for data, q, prior, z in tied_cases():
        law, inner = mechanism(Restricted(data, *WHOLE), q, prior, z), psi(data, q, prior, z)
        for gamma in range(1, data.size + 1):
            tail = sum((p for o, p in law.items() if gap(data, q, o) >= gamma), F(0))
            assert tail <= subject(z, gamma, inner, F(1)), (data, q, gamma)
        empty += psi(data, q, prior, F(0)) == 0
    assert empty > 10
    return f"repeated records: lem:quantile holds with Psi^(q, eps) in 80 exact cases; Psi^(q) is 0 in {empty} of them"


def _three(prior_masses: tuple[int, ...], shift: int) -> Prior:
    total = sum(prior_masses)
    places = (HALF, F(3, 2), F(3), F(6))
    return {o + F(shift, 16): F(m, total) for o, m in zip(places, prior_masses, strict=True)}


Bound = Callable[..., float]


def check_ties_many(subject: tuple[Bound, Bound] = (thm_binary, lem_empirical_quantiles)) -> str:
    """thm:binary and lem:empirical-quantiles (corrected) with repeated records: exact failure at most beta, m = 3."""
    draw, worst = random.Random(13), F(0)
    for _ in range(24):
        values = sorted(draw.choice((1, 1, 2, 5)) for _ in range(draw.randrange(1, 9)))
        data, z, beta = Points(tuple(F(v) for v in values)), F(1, draw.choice((2, 30, 10**6))), HALF
        priors = tuple(_three(tuple(draw.choice((1, 5, 300)) for _ in range(4)), i) for i in range(3))
        epsilon = -4 * math.log(z)
        edge = Algorithm(QUARTERS, priors, (z,) * 3)
        log_psi = -float(log_ball(edge.inverse_psi_sum(data) / 3))  # type: ignore[arg-type]
        limit = subject[0](log_psi, epsilon, 3, float(beta))
        for algorithm in (edge, replace(edge, adaptation="conditional")):
            failed = F(0)
            for outputs, p in algorithm.law(data).items():
                if algorithm.adaptation == "conditional":
                    total = sum(inverse_psis(data, algorithm, outputs))  # type: ignore[arg-type]
                    limit = subject[1](-float(log_ball(total / 3)), epsilon, 3, float(beta))
                failed += p if max(algorithm.gaps(data, outputs)) > limit + 1e-9 else 0
            assert failed <= beta, (values, algorithm.adaptation, float(failed))
            worst = max(worst, failed)
    return f"repeated records, m = 3, both adaptations: corrected bounds fail w.p. {float(worst):.3f} at most (exact)"


def check_order_statistic_prior(subject: Callable[[int, int], int] = lambda n, k: n - k + 1) -> str:
    """The law of the k-th of n draws as a prior: binomial sums in fractions; a tail 1/x of one draw: x^-(n-k+1)."""
    from pq.core.priors import OrderStatistic, Uniform

    for n, k in ((1, 1), (4, 2), (9, 5), (20, 20)):
        prior = OrderStatistic(Uniform(0, 1), n=n, k=k)
        for cut in (F(1, 10), F(1, 3), F(9, 10)):
            exact = sum(math.comb(n, j) * cut**j * (1 - cut) ** (n - j) for j in range(k, n + 1))
            assert math.isclose(math.exp(prior.log_mass(0, float(cut))), exact, rel_tol=1e-9), (n, k, cut)
        u = sympy.symbols("u", positive=True)  # u = 1 - F(x), small in the right tail
        tail = sum(sympy.binomial(n, j) * (1 - u) ** j * u ** (n - j) for j in range(k))
        assert sympy.limit(tail / u ** subject(n, k), u, 0) == math.comb(n, k - 1)
    return "order-statistic prior: pq's masses are the binomial sums; heavy tails of power 1 become power n - k + 1"


def check_range_of_uniform(subject: Callable[[float, float], bool] = lambda right, high: right <= high) -> str:
    """A narrower range helps the uniform prior as long as the optimal interval lies inside it, and ruins it if not."""
    import pq

    data = np.array([100.0, 300.0, 500.0, 700.0, 900.0])
    for q, high in ((0.2, 600.0), (0.4, 600.0), (0.6, 800.0), (0.8, 950.0), (0.8, 650.0)):
        rank = pq.rank(q, 5)
        narrow, wide = (pq.log_psi(data, q, pq.Uniform(0, top)) for top in (high, 1e4))
        assert (narrow > wide) == subject(data[rank], high), (q, high)
    return "a q-dependent range helps the uniform prior iff it still holds the optimal interval"


# ---- mixing ----------------------------------------------------------------------------------------------------------


def check_right_probability(subject: Callable[[Fraction], Fraction] = lambda p: 1 - p) -> str:
    """p c(lambda) + (1 - p) r(lambda) is least where lambda is the probability that the prediction is wrong."""
    x = sympy.symbols("x", positive=True)
    for p in (F(1, 100), F(1, 2), F(9, 10)):
        share = sympy.Rational(p.numerator, p.denominator)
        cost = -share * sympy.log(1 - x) - (1 - share) * sympy.log(x)
        best = subject(p)
        assert sympy.diff(cost, x).subs(x, sympy.Rational(best.numerator, best.denominator)) == 0, p
        second = sympy.simplify(sympy.diff(cost, x, 2) - share / (1 - x) ** 2 - (1 - share) / x**2)
        assert second == 0  # positive: strictly convex
    return "belief p that the prediction is right: the sum of both guarantees is least at lambda = 1 - p (convex)"


def check_restricted_linearity(subject: str = "edge") -> str:
    """The inner products of restricted priors are linear under edge adaptation; renormalised ones are not."""
    mu = {HALF: F(9, 10), 3 + HALF: F(1, 10)}
    rho = {k + HALF: F(1, 5) for k in range(5)}
    data, low, high, z = Grid(4), F(5, 4), F(17, 4), F(1, 3)
    view = Restricted(data, low, high)

    def inner(prior: Prior) -> Fraction:
        target = math.floor(HALF * view.size)
        return sum((m * z ** abs(view.below(o) - target) for o, m in adapt(prior, low, high, subject).items()), F(0))

    for weight in (F(1, 10), HALF):
        assert inner(mix(mu, rho, weight)) == (1 - weight) * inner(mu) + weight * inner(rho), "not linear"
    return "inner products of edge-restricted priors are linear in the prior; conditional ones are quotients (exact)"


def bumped_mass(x: Any) -> Any:
    """Laplace mass of (-1, 1] at location x[0] and scale x[1]."""
    below = [mpmath.exp(-abs((e - x[0]) / x[1])) / 2 for e in (-1, 1)]
    low, high = (t if e <= x[0] else 1 - t for t, e in zip(below, (-1, 1), strict=True))
    return high - low


def check_level_sets(subject: Callable[[Any], Any] = bumped_mass) -> str:
    """In (location, scale) the Laplace loss has convex level sets: mass at a mixture is at least the smaller mass."""
    x, y, t, s, u = sympy.symbols("x y t s u", positive=True)
    # (nu, sigma) -> (nu/sigma, 1/sigma) takes the point 1-t, t of a segment to the point with weight t u/((1-t)s + t u)
    place, scale = (1 - t) * x + t * y, (1 - t) * s + t * u
    weight = t * u / scale
    assert sympy.simplify(place / scale - ((1 - weight) * x / s + weight * y / u)) == 0
    assert sympy.simplify(1 / scale - ((1 - weight) / s + weight / u)) == 0
    rng = np.random.default_rng(103)
    with mpmath.workdps(40):
        for _ in range(300):
            ends = [(mpmath.mpf(rng.normal(0, 4)), mpmath.mpf(10 ** rng.uniform(-1, 1))) for _ in range(2)]
            middle = tuple((a + b) / 2 for a, b in zip(*ends, strict=True))
            assert subject(middle) >= min(subject(end) for end in ends) * (1 - mpmath.mpf(10) ** -30), ends
    return "(nu, sigma) to (nu/sigma, 1/sigma) takes segments to segments (sympy): convex level sets; 300 chords"


# ---- restricted priors -----------------------------------------------------------------------------------------------


def restricted_values(data: Grid, algorithm: Algorithm) -> set[Fraction]:
    """m over Psi^ of every outcome."""
    return {sum(inverse_psis(data, algorithm, outputs)) for outputs in algorithm.law(data)}


def check_random_metric(subject: Callable[[Grid, Algorithm], set[Fraction]] = restricted_values) -> str:
    """Psi^ takes different values on different runs for the same data and priors."""
    priors: tuple[Prior, ...] = tuple({k + F(i, 4): F(1, 5) for k in range(5)} for i in (1, 2, 3))
    algorithm = Algorithm(QUARTERS, priors, (F(1, 3),) * 3, adaptation="conditional")
    values = subject(Grid(4), algorithm)
    assert len(values) > 1, "one value for all runs"
    return f"Psi^ is random: {len(values)} values on one instance of three quantiles and four records"


def check_outside_mass(subject: str = "conditional") -> str:
    """Restricted to (o_j, o_k): conditional priors forget all mass outside, edge priors keep its total on each side."""
    data, low, high, z = Grid(6), F(9, 4), F(19, 4), F(1, 3)
    inside = {F(5, 2): F(1, 10), F(7, 2): F(1, 10), F(9, 2): F(1, 10)}
    laws: dict[str, list[dict[Position, Fraction]]] = {}
    little, much = F(1, 10), F(6, 10)
    outer: tuple[Prior, ...] = (
        {HALF: much, F(11, 2): little},
        {3 * HALF: much, F(13, 2): little},
        {HALF: little, F(13, 2): much},
    )
    for adaptation in ("conditional", "edge"):
        priors = [adapt({**inside, **part}, low, high, adaptation) for part in outer]
        laws[adaptation] = [mechanism(Restricted(data, low, high), HALF, prior, z) for prior in priors]
    chosen = laws[subject]
    assert chosen[0] == chosen[1] == chosen[2], "the mass outside has an effect"
    assert laws["edge"][0] == laws["edge"][1] != laws["edge"][2]
    return "conditional: no effect of mass outside the edges; edge: only of its total on either side (exact laws)"


def check_edge_total(subject: Callable[[Fraction], arb] = lambda total: arb(0)) -> str:
    """Counterexample to thm:binary and cor:multiple for base measures of mass above one, m = 3: scaling changes only
    the claim.
    """
    z, total = HALF, F(1000)
    priors: tuple[Prior, ...] = tuple({k + F(i, 4): total / 2 for k in range(2)} for i in (1, 2, 3))
    algorithm, data = Algorithm(QUARTERS, priors, (z,) * 3), Grid(1)
    law = algorithm.law(data)
    spread = log_ball(algorithm.inverse_psi_sum(data) / HALF) + subject(total)
    claimed = 3 * spread / -log_ball(z)  # F_4 = 3, no rounding needed for a bound below zero
    failed = probability(law, lambda outputs: max(algorithm.gaps(data, outputs)) >= 1)
    assert claimed < 0, f"the bound survives: {float(claimed):.2f}"
    assert failed > 0
    return (
        f"edge adaptation, base measures of mass 1000: thm:binary claims a largest gap below {float(claimed):.1f} < 0"
    )
