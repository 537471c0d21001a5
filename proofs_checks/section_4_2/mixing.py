"""A prediction mixed with a trusted prior: cor:quantile."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import sympy
import z3

import pq
from pq import OrderStatistic
from pq.bounds import cor_cauchy, cor_quantile, lem_quantile, uniform_bound
from pq.truth.evaluate import log_psi
from proofs_checks.engine.registry import check
from proofs_checks.tools.cases import mix, one_quantile_cases
from proofs_checks.tools.exact import (
    Data,
    Grid,
    Points,
    Position,
    Prior,
    Restricted,
    adapt,
    gap,
    log_ball,
    mechanism,
    psi,
)
from proofs_checks.tools.pieces import column, spread
from proofs_checks.tools.solver import follows

F = Fraction
HALF = Fraction(1, 2)


def mixed_cases() -> Iterator[tuple[Grid, Fraction, Prior, Prior, Fraction]]:
    """Data, quantile, a perfect prediction, a trusted prior on every cell, z."""
    for data, q, rho, z in one_quantile_cases():
        total = sum(rho.values())
        yield data, q, {math.floor(q * data.size) + HALF: Fraction(1)}, {o: m / total for o, m in rho.items()}, z


@check(
    "def:robustness",
    "text:price-of-robustness",
    "cor:quantile",
    code=cor_quantile,
    rejects=[
        lambda log_psi, epsilon, beta, weight: cor_quantile(log_psi, epsilon, beta, 1 - weight),
        lambda log_psi, epsilon, beta, weight: (cor_quantile(log_psi, epsilon, beta, weight)[0] / 2, math.inf),
        lambda log_psi, epsilon, beta, weight: (math.inf, cor_quantile(log_psi, epsilon, beta, weight)[1] / 2),
        lambda *known: (cor_quantile(*known)[0] / (1 + (known[3] == 1)), math.inf),
        lambda *known: (math.inf, cor_quantile(*known)[1] / (1 + (known[3] == 0))),
        lambda log_psi, epsilon, beta, weight: cor_quantile(log_psi, epsilon, beta / 2, weight),
        lambda log_psi, epsilon, beta, weight: cor_quantile(log_psi / 2, epsilon, beta, weight),
    ],
)
def check_cor_quantile(subject: Callable[..., tuple[float, float]] = cor_quantile) -> str:
    """Robust for every prediction and consistent for a perfect one, both on one event: exact failure at most beta."""
    worst = 0.0
    for (data, q, perfect, unit, z), weight, beta, part in itertools.product(
        mixed_cases(), (F(0), F(1, 10), HALF, F(9, 10), F(1)), (F(1, 10), HALF), (F(1), F(1, 3))
    ):
        rho = {o: part * m for o, m in unit.items()}  # of total mass one, or less
        wrong = {data.size + HALF: Fraction(1)}
        for mu in (perfect, wrong):
            law = mechanism(Restricted(data, -math.inf, math.inf), q, mix(mu, rho, weight), z)
            epsilon = -2 * math.log(z)
            robust, consistent = subject(float(log_ball(psi(data, q, rho, z))), epsilon, float(beta), float(weight))
            limit = min(robust, consistent) if mu is perfect else robust
            failed = sum(p for o, p in law.items() if gap(data, q, o) > limit * (1 + 1e-9))
            assert failed <= beta, (data, q, weight, limit)
            worst = max(worst, float(failed / beta))
    for log_mass, epsilon, beta, weight in ((-3.0, 0.2, 0.7, 0.3), (-0.1, 7.0, 1e-9, 0.99), (-80.0, 1.0, 0.1, 1e-4)):
        stated = [math.log(1 / beta) - math.log(weight) - log_mass, math.log(1 / beta) - math.log1p(-weight)]
        found = subject(log_mass, epsilon, beta, weight)
        assert all(math.isclose(a, 2 / epsilon * b, rel_tol=1e-9) for a, b in zip(found, stated, strict=True))
    assert subject(0.0, 1.0, 0.1, 0.0)[0] == math.inf
    assert subject(0.0, 1.0, 0.1, 1.0)[1] == math.inf
    assert math.isclose(subject(-2.0, 1.0, 0.1, 1.0)[0], lem_quantile(-2.0, 1.0, 0.1)), "the trusted prior alone"
    assert math.isclose(subject(-2.0, 1.0, 0.1, 0.0)[1], lem_quantile(0.0, 1.0, 0.1)), "the prediction alone"
    return (
        f"cor:quantile: both guarantees hold, with one failure event (largest failure {worst:.2f} beta); empty "
        "at lambda = 0 or 1"
    )


WEIGHTS = (Fraction(0), Fraction(1, 10), HALF, Fraction(1))


@check("text:linear", "cor:quantile", rejects=[lambda mu, rho, weight: mu, lambda mu, rho, weight: rho])
def check_linear(subject: Callable[[Prior, Prior, Fraction], Prior] = mix) -> str:
    """Psi of a mixture is the mixture of the Psi."""
    for (data, q, mu, rho, z), weight in itertools.product(mixed_cases(), WEIGHTS):
        mixed = psi(data, q, subject(mu, rho, weight), z)
        assert mixed == (1 - weight) * psi(data, q, mu, z) + weight * psi(data, q, rho, z)
    return "Psi is linear in the prior (exact)"


@check(
    "text:price-of-robustness",
    code=cor_quantile,
    rejects=[lambda weight: -math.log(1 - weight), lambda weight: -1.01 * math.log(weight)],
)
def check_price_of_robustness(subject: Callable[[float], float] = lambda weight: -math.log(weight)) -> str:
    """The robust bound is exactly 2 / epsilon log(1 / lambda) above that of the robust prior alone."""
    for data, q, _, rho, _ in mixed_cases():
        best = psi(data, q, rho, Fraction(0))
        for weight in (Fraction(1, 100), HALF, Fraction(99, 100)) if best and data.size else ():
            hopeless = {(0 if math.floor(q * data.size) else data.size) + HALF: Fraction(1)}
            mixed = psi(data, q, mix(hopeless, rho, weight), Fraction(0))  # in the limit of Psi^(q)
            paid = cor_quantile(float(log_ball(best)), 1.0, 0.1, float(weight))[0]
            assert math.isclose(paid, lem_quantile(float(log_ball(mixed)), 1.0, 0.1), rel_tol=1e-9), (data, q)
            alone = lem_quantile(float(log_ball(best)), 1.0, 0.1)
            assert math.isclose(paid - alone, 2 * subject(float(weight)), rel_tol=1e-9), (data, q, weight)
    return "the price of robustness is 2 / epsilon log(1 / lambda), exactly"


@check(
    "text:price-of-robustness",
    code=(cor_quantile, uniform_bound, cor_cauchy, log_psi),
    rejects=[lambda weight: 0.99 * weight, lambda weight: 1.01 * weight, lambda weight: math.pi * weight],
)
def check_price_of_known_bounds(subject: Callable[[float], float] = lambda weight: weight) -> str:
    """With the inner product of a real uniform prior, of data of equal distances, the robust guarantee is that of
    Kaplan et al. plus (2/eps) log(1/lambda); with a Cauchy prior cor:cauchy's plus as much, nearly attained far out,
    hence another (2/eps) log pi above theirs if the interval is right."""
    for (epsilon, beta), weight in itertools.product(((1.0, 0.1), (30.0, 1e-6)), (0.01, 0.5, 0.99)):
        price = -2 / epsilon * math.log(subject(weight))
        data = np.array([-3.0, -1.0, 1.0, 3.0])
        for q in (0.25, 0.5, 0.75):
            known = log_psi(data, q, pq.Uniform(-4.0, 6.0))
            paid = cor_quantile(known, epsilon, beta, weight)[0]
            assert math.isclose(paid, uniform_bound(10.0, 2.0, epsilon, beta) + price, rel_tol=1e-9), (q, weight)
        wrong = np.array([-1000.0, 0.0, 999.999, 1000.0])  # in (-R, R), R = 1000, with the narrowest cell at the end
        known = log_psi(wrong, 0.75, pq.Cauchy(0.0, 1.0))
        above = cor_cauchy(1000.0, 2.0, 0.001, epsilon, beta) + price
        assert above - 1e-5 <= cor_quantile(known, epsilon, beta, weight)[0] <= above, weight
        for x in (np.sort(np.random.default_rng([107, k]).uniform(-4.0, 6.0, 2 + k % 7)) for k in range(40)):
            known = 10.0, np.diff(x).min(), epsilon, beta
            alone_of = {pq.Cauchy(1.0, 5.0): cor_cauchy(5.0, *known), pq.Uniform(-4.0, 6.0): uniform_bound(*known)}
            for prior, alone in alone_of.items():
                paid = cor_quantile(log_psi(x, 1 / len(x) + 1e-9, prior), epsilon, beta, weight)[0]
                assert paid <= alone + price + 1e-9, "rank 1"
        right = cor_cauchy(5.0, 10.0, 2.0, epsilon, beta) + price
        extra = 2 / epsilon * math.log(math.pi)
        assert math.isclose(right, uniform_bound(10.0, 2.0, epsilon, beta) + price + extra, rel_tol=1e-9)
    return "above the guarantee of Kaplan et al. by (2/eps) log(1/lambda), and above cor:cauchy by as much"


@check("text:price-of-robustness", code=cor_quantile, rejects=[F(1, 7), F(1, 19), F(1, 1000)])
def check_price_of_error(weight: Fraction = HALF) -> str:
    """Counterexample to the price for errors in place of guarantees: a trusted prior that is sure alone, and a gap of 1
    with more than the probability beside a wrong prediction. A weight so small that the price allows it survives."""
    z, beta, price = F(1, 10), F(1, 20), -math.log10(weight)  # (2/epsilon) log(1/lambda)
    trusted, wrong = {HALF: F(1)}, {1 + HALF: F(1)}
    laws = [
        mechanism(Restricted(Grid(1), -math.inf, math.inf), HALF, mu, z)
        for mu in (trusted, mix(wrong, trusted, weight))
    ]
    assert laws[0] == {HALF: 1}, "alone it has no error"
    assert 0 + price < 1 and laws[1][1 + HALF] == F(1, 11) > beta and round(price, 2) == 0.3, "as the row says"
    assert cor_quantile(0.0, 2 * math.log(10), float(beta), float(weight))[0] >= 1, "the guarantee holds"
    return (
        "price of robustness: of guarantees; the error itself is 1 with probability 1/11 where 0.30 would be the price"
    )


@check(
    "text:price-of-robustness",
    "cor:quantile",
    code=cor_quantile,
    rejects=[lambda total: math.log(total), lambda total: math.log(total) / 2],
)
def check_consistency_total_mass(subject: Callable[[Fraction], float] = lambda total: 0.0) -> str:
    """Counterexample to cor:quantile for a prediction that is no probability measure: mass 2 on the wrong cell has U
    = 0.
    """
    mixed = mix(
        {HALF: F(1, 10)}, {1 + HALF: F(1)}, HALF
    )  # a prediction of mass 1/10, all of it right, and a wrong prior
    law = mechanism(Restricted(Grid(1), -math.inf, math.inf), HALF, mixed, F(1, 10))
    claimed = cor_quantile(0.0, 2 * math.log(10), 0.25, 0.5)[1] + subject(F(10)) / math.log(10)
    assert law[1 + HALF] == HALF and claimed < 1, "the price of robustness survives a prediction of little mass"
    trusted = {1 + HALF: F(10)}  # beside a perfect prediction of mass one
    law = mechanism(Restricted(Grid(1), -math.inf, math.inf), HALF, mix({HALF: F(1)}, trusted, HALF), F(1, 10))
    assert psi(Grid(1), HALF, trusted, F(1, 10)) == 1 and law[1 + HALF] == HALF
    both = [v + subject(F(10)) / math.log(10) for v in cor_quantile(0.0, 2 * math.log(10), 0.25, 0.5)]
    assert [round(v, 3) for v in both] == [0.903, 0.903], "the price of robustness survives a trusted prior of mass 10"
    z, beta, total = HALF, 0.6, Fraction(2)
    wrong = {1 + HALF: total}
    assert psi(Grid(1), HALF, wrong, z) == 1
    law = mechanism(Restricted(Grid(1), -math.inf, math.inf), HALF, wrong, z)
    consistent = cor_quantile(0.0, -2 * math.log(z), beta, 0.0)[1] + subject(total) / -math.log(z)
    assert consistent < 1 - 1e-9, "consistency survives"
    assert round(consistent, 2) == 0.74, "as the row of cor:quantile says"
    assert law == {1 + HALF: 1}
    return (
        f"cor:quantile needs probability measures: mass 2 on the wrong cell, U = 0, gap <= {consistent:.2f} "
        "claimed, gap 1 certain"
    )


@check(
    "text:hedging",
    "text:price-of-robustness",
    "cor:quantile",
    rejects=[lambda weight, psi: psi, lambda weight, psi: (1 - weight) * psi],
)
def check_hedging(subject: Callable[[Any, Any], Any] = lambda weight, psi: weight * psi) -> str:
    """Mixing a robust prior into each prediction costs at most log 1/(1-lambda), and saves all but log 1/lambda."""
    weight, mine, robust = z3.Reals("weight mine robust")
    mixed = (1 - weight) * mine + weight * robust
    inside = (weight > 0, weight < 1, mine >= 0, robust >= 0)
    follows(*inside, goal=z3.And(mixed >= subject(weight, robust), mixed >= subject(1 - weight, mine)))
    rng = np.random.default_rng(101)
    for _ in range(200):  # the harmonic mean rises with each entry and scales with all of them
        m, lam = int(rng.integers(1, 6)), F(int(rng.integers(1, 10)), 10)
        mu, rho = ([F(int(v), 50) for v in rng.integers(1, 51, m)] for _ in range(2))
        total = sum(1 / ((1 - lam) * a + lam * b) for a, b in zip(mu, rho, strict=True))
        assert total <= sum(1 / subject(lam, b) for b in rho)
        assert total <= sum(1 / subject(1 - lam, a) for a in mu)
    return "U(mixture) <= min(U(mu) + log 1/(1-lambda), U(rho) + log 1/lambda), also for m > 1 (z3, fractions)"


@check(
    "ours:right-probability",
    code=cor_quantile,
    rejects=[
        lambda p: p,
        lambda p: p / p / 2,
        lambda p: F(99, 100) * (1 - p),
        lambda p: 1 - F(101, 100) * p,
        lambda p: (1 - p) ** 2,
    ],
)
def check_right_probability(subject: Callable[[Any], Any] = lambda p: 1 - p) -> str:
    """p c(lambda) + (1 - p) r(lambda) is least where lambda is the probability that the prediction is wrong: for every
    p by calculus, and for the package's two guarantees, whatever else they depend on."""
    x, p = sympy.symbols("x p", positive=True)
    cost = -p * sympy.log(1 - x) - (1 - p) * sympy.log(x)
    assert sympy.simplify(sympy.diff(cost, x).subs(x, subject(p))) == 0
    # both terms positive for 0 < p < 1, so strictly convex
    assert sympy.simplify(sympy.diff(cost, x, 2) - p / (1 - x) ** 2 - (1 - p) / x**2) == 0
    for belief, log_psi_trusted, epsilon, beta in itertools.product(
        (F(1, 100), HALF, F(9, 10)), (-0.1, -20.0), (0.1, 3.0), (0.3, 1e-6)
    ):

        def expected(weight: Fraction, known: tuple[float, ...] = (log_psi_trusted, epsilon, beta)) -> float:
            robust, consistent = cor_quantile(*known, float(weight))
            return float(belief) * consistent + float(1 - belief) * robust  # noqa: B023 - called at once

        best = F(subject(belief))
        for other in (F(9, 10) * best, best + (1 - best) / 10):
            assert expected(best) < expected(other), (belief, other)
    return "belief p that the prediction is right: the sum of both guarantees is least at lambda = 1 - p, for every p"


def _half_conditional(prior: Prior, low: Fraction, high: Fraction) -> Prior:
    """Half of the outer mass goes to the edges, half of it is forgotten."""
    edge, inner = (adapt(prior, low, high, name) for name in ("edge", "conditional"))
    return {o: (edge.get(o, F(0)) + inner.get(o, F(0))) / 2 for o in {*edge, *inner}}


@check("step:multiple-linearity", rejects=[lambda *known: adapt(*known, "conditional"), _half_conditional])
def check_restricted_linearity(subject: Callable[..., Prior] = lambda *known: adapt(*known, "edge")) -> str:
    """The inner products of restricted priors are linear under edge adaptation, for edges on either side, on one, and
    close to a record, three columns, four targets and weights; renormalised ones are not."""
    mu = {HALF: F(9, 10), 3 + HALF: F(1, 10)}
    rho = {k + HALF: F(1, 5) for k in range(5)}
    data, low, high, z = Grid(4), F(5, 4), F(17, 4), F(1, 3)

    def inner(prior: Prior, low: Position, high: Position, data: Data = data, share: Fraction = HALF) -> Fraction:
        view = Restricted(data, low, high)
        target = math.floor(share * view.size)
        return sum((m * z ** abs(view.below(o) - target) for o, m in subject(prior, low, high).items()), F(0))

    wide, tied = Grid(9), Points((F(1), F(2), F(2), F(2), F(4)))
    for edges in ((low, high), (-math.inf, high), (low, math.inf), (F(2), F(9, 4)), (-math.inf, math.inf)):
        for records, share, weight in itertools.product((data, wide, tied), (F(0), F(1, 3), HALF, F(9, 10)), WEIGHTS):
            mixed, *ends = (inner(prior, *edges, records, share) for prior in (mix(mu, rho, weight), mu, rho))
            assert mixed == (1 - weight) * ends[0] + weight * ends[1], ("not linear", edges, records)
    quotients = [adapt(prior, low, high, "conditional") for prior in (mix(mu, rho, HALF), mu, rho)]
    mixed, *ends = (psi(Grid(3), HALF, {o - 1: m for o, m in prior.items()}, z) for prior in quotients)
    assert mixed != sum(ends) / 2, "the row's half of each"
    return "inner products of edge-restricted priors are linear in the prior; conditional ones are quotients (exact)"


@check(
    "text:order-statistic-prior",
    code=OrderStatistic,
    rejects=[
        lambda n, k: (n - k, k),
        lambda n, k: (k, k),
        lambda n, k: (n - k + 1, n - k + 1),
        lambda n, k: (n - k + 1, k + 1),
    ],
)
def check_order_statistic_prior(
    subject: Callable[[int, int], tuple[int, int]] = lambda n, k: (n - k + 1, k),
) -> str:
    """The law of the k-th of n draws as a prior: binomial sums in fractions; a tail 1/x of one draw: x^-(n-k+1) on the
    right, x^-k on the left."""
    from pq import OrderStatistic, Uniform

    for n, k in ((1, 1), (4, 2), (9, 5), (20, 20)):
        prior = OrderStatistic(Uniform(0, 1), n=n, k=k)
        for cut in (F(1, 10), F(1, 3), F(9, 10)):
            exact = sum(math.comb(n, j) * cut**j * (1 - cut) ** (n - j) for j in range(k, n + 1))
            assert math.isclose(math.exp(prior.log_mass(0, float(cut))), exact, rel_tol=1e-9), (n, k, cut)
        u = sympy.symbols("u", positive=True)  # 1 - F(x), small in the right tail, or F(x), small in the left one
        right = sum(sympy.binomial(n, j) * (1 - u) ** j * u ** (n - j) for j in range(k))
        left = sum(sympy.binomial(n, j) * u**j * (1 - u) ** (n - j) for j in range(k, n + 1))
        for tail, power, factor in zip((right, left), subject(n, k), (k - 1, k), strict=True):
            assert sympy.limit(tail / u**power, u, 0) == math.comb(n, factor), (n, k)
    for k, n in itertools.combinations_with_replacement(range(1, 13), 2):  # the least power of u in each of the sums
        terms = [[(n - j, j) for j in range(k)], [(j, n - j) for j in range(k, n + 1)]]  # u^a (1 - u)^b, at 0: u^a
        assert tuple(min(a for a, _ in side) for side in terms) == subject(n, k), (n, k)
    return "order-statistic prior: pq's masses are the binomial sums; tails of power 1 become powers n - k + 1 and k"


@check(
    "text:linear",
    "text:hedging",
    "cor:quantile",
    code=(pq.Uniform.mix, log_psi),
    rejects=[
        lambda mu, rho, weight: mu.mix(rho, 1 - weight),
        lambda mu, rho, weight: mu.mix(rho, weight / 2),
        lambda mu, rho, weight: rho,
    ],
)
def check_mixture_in_package(
    subject: Callable[[Any, Any, float], Any] = lambda mu, rho, weight: mu.mix(rho, weight),
) -> str:
    """`mix` of the package: the inner product is the mixture of both, so at least lambda and 1 - lambda of each."""
    cases = 0
    for (data, q, perfect, rho, z), weight in itertools.product(mixed_cases(), (Fraction(1, 10), Fraction(3, 4))):
        if data.size:
            exact = (1 - weight) * psi(data, q, perfect, z) + weight * psi(data, q, rho, z)
            mixed = subject(spread(perfect), spread(rho), float(weight))
            found = math.exp(log_psi(column(data), q, mixed, -2 * math.log(z)))
            assert math.isclose(found, exact, rel_tol=1e-9), (data, q, weight)
            cases += 1
    return f"pq's mix: Psi of the mixture is the mixture of the Psi in {cases} cases, and hedges both"
