"""eq:expectation-bound: from high probability to expectation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
from flint import arb

from pq.bounds import expectation_bound, thm_kary
from proofs_checks.engine.registry import check
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.exact import Algorithm, Grid, Restricted, log_ball, mechanism, psi

HALF = Fraction(1, 2)
TREES = {
    1: (2, (1,)),
    2: (3, (1, 1)),
    3: (3, (4, 4, 1)),
}  # by m: the arity of thm:kary, and powers of z, budgets by 1/depth^2


def spent(m: int, z: Fraction) -> float:
    """The epsilon of thm:kary whose mechanisms run at these powers of z = exp(-epsilon_i/2): K - 1 at each depth."""
    arity, powers = TREES[m]
    levels = range(1, len(set(powers)) + 1)
    return -2 * math.log(z) * powers[0] * (arity - 1) * sum(1 / k**2 for k in levels)


@check(
    "eq:expectation-bound",
    rejects=[lambda log_emn, u: max(log_emn, 1.0) + u, lambda log_emn, u: math.log1p(math.exp(log_emn)) + u],
)
def check_expectation_small(subject: Callable[[float, float], float] = lambda log_emn, u: log_emn + u) -> str:
    """Counterexample as printed: epsilon m n < 1 makes log(epsilon m n) + U negative, and no expected gap is."""
    z = Fraction(95, 100)
    prior = {HALF: Fraction(9, 10), 1 + HALF: Fraction(1, 10)}
    law = mechanism(Restricted(Grid(1), -math.inf, math.inf), HALF, prior, z)
    mean = law[1 + HALF]
    epsilon = -2 * log_ball(z)
    u = -log_ball(prior[HALF])  # the loss without epsilon; with it, it is less
    assert u > -log_ball(psi(Grid(1), HALF, prior, z)) > 0
    value = subject(float(arb(epsilon).log()), float(u))
    assert mean > 0
    assert value < 0, "the bound survives"
    return (
        f"eq:expectation-bound at epsilon m n = {float(epsilon):.3f}: log(epsilon m n) + U = {value:.2f} < 0 < "
        f"E Gap = {float(mean):.3f}"
    )


@check(
    "eq:expectation-bound",
    code=expectation_bound,
    rejects=[lambda log_psi, epsilon, m, n: -log_psi / epsilon, lambda log_psi, epsilon, m, n: 0.0],
)
def check_expectation_route(subject: Callable[[float, float, int, int], float] | None = None) -> str:
    """The printed choice of beta: the explicit bound is C (log(m n / C) + U + 1), and at most C (log(epsilon m n) + U)
    for C <= n, as epsilon C is above e.
    """
    rule = subject or (lambda log_psi, epsilon, m, n: expectation_bound(log_psi, epsilon, m, n, version="paper"))
    for m, epsilon, log_psi in itertools.product((1, 3, 100), (0.1, 1.0, 10.0), (0.0, -5.0)):
        factor = thm_kary(-1.0, epsilon, m, float(m), version="paper")  # spread is exactly one
        for n in (math.ceil(factor), math.ceil(factor) * 10):
            beta = factor / n
            direct = thm_kary(log_psi, epsilon, m, beta, version="paper") + beta * n
            assert beta <= 1 and math.isclose(rule(log_psi, epsilon, m, n), direct, rel_tol=1e-9)
            assert direct <= factor * (math.log(epsilon * m * n) - log_psi), "as printed"
    return (
        "eq:expectation-bound: with beta = C / n it reads C (log(m n / C) + U + 1), at most C (log(epsilon m n) + U); "
        "it needs C <= n (beta <= 1) and Gap <= n"
    )


@check(
    "eq:expectation-bound",
    code=expectation_bound,
    rejects=[
        lambda log_psi, epsilon, m, n, **known: -log_psi / epsilon,
        lambda log_psi, epsilon, m, n, **known: expectation_bound(log_psi, epsilon, m, n),
        *(scaled(expectation_bound, factor) for factor in (0.5, 0.99, 1.01)),
        lambda log_psi, epsilon, m, n, **known: -2 * log_psi / epsilon,
    ],
)
def check_expectation_bound(subject: Callable[..., float] = expectation_bound) -> str:
    """eq:expectation-bound, corrected, without n: against exact means for m up to 3; and it is the integral of
    thm:kary's bound over all failure probabilities."""
    for m, epsilon in itertools.product((1, 2, 3, 7, 100), (0.01, 0.3, 10.0)):
        tail = mpmath.quad(lambda beta, m=m, e=epsilon: thm_kary(-2.0, e, m, float(beta)), [0, 1e-9, 1e-3, 0.1, 1])
        assert math.isclose(subject(-2.0, epsilon, m, 10**9), tail, rel_tol=1e-6), (m, epsilon)
        for p in (1.5, 2.0, 3.0):  # which is 1 more in the logarithm
            known = thm_kary(-9.0, epsilon, m, math.exp(-1.0), p=p)
            assert math.isclose(subject(-9.0, epsilon, m, 10**9, p=p), known, rel_tol=1e-9), (m, epsilon, p)
        days = [subject(-loss, epsilon, m, n) for n in (10, 10**9) for loss in (0.0, 4.0, 2.0)]
        assert sum(days[:2]) <= 2 * days[2] and math.isclose(sum(days[3:5]), 2 * days[5]), "the average of U is enough"
    for m, n, z in itertools.product(TREES, (1, 3, 8), (Fraction(99, 100), HALF, Fraction(1, 50))):
        quantiles = tuple(Fraction(i, m + 1) for i in range(1, m + 1))
        cells = (0, n // 2, n) if n > 1 else (0, 1)
        for heavy in cells:
            masses = {k: Fraction(98 if k == heavy else 1) for k in set(cells)}
            total = sum(masses.values())
            priors = tuple({k + Fraction(i, m + 1): w / total for k, w in masses.items()} for i in range(1, m + 1))
            arity, powers = TREES[m]
            algorithm = Algorithm(quantiles, priors, tuple(z**e for e in powers), arity=arity)
            epsilon = spent(m, z)
            data = Grid(n)
            mean = sum(p * max(algorithm.gaps(data, o)) for o, p in algorithm.law(data).items())
            log_psi = -float(log_ball(algorithm.inverse_psi_sum(data) / m))
            assert float(mean) <= subject(log_psi, epsilon, m, n) * (1 + 1e-12), (m, n, z, heavy)
            assert subject(log_psi - 1, epsilon, m, n) >= float(mean), "of a mass of 1/e, whose law is the same"
            assert m > 1 or subject(log_psi + 1000, epsilon, m, n) < 0 < mean, "masses of e^1000, the same law"
    return "eq:expectation-bound with C (log m + U + 1), no log n: exact means stay below, and below n"


Misses = list[tuple[tuple[int, ...], int, Fraction]]  # ranks off for each quantile, odds of these places, z
MISSES: dict[int, tuple[int, Misses]] = {  # by m: records, and priors with nearly all of their mass so far off
    1: (1000, [((4,), 98, HALF), ((400,), 10**160, HALF), ((400,), 10**500, Fraction(1, 10))]),
    3: (
        1000,
        [
            ((0, 0, -48), 10**200, Fraction(1, 100)),  # wrong at the deepest quantile alone
            ((-12, -12, -80), 10**40, Fraction(3, 10)),
            ((16, 16, -16), 10**6, HALF),
        ],
    ),
}


def _at_a_quarter(m: int, z: Fraction) -> float:
    """As if the budget were that of the lower mechanism at each depth."""
    return -2 * math.log(z) * (1 if m == 1 else 5 / 2)


@check(
    "eq:expectation-bound",
    code=expectation_bound,
    rejects=[(0.99, 1.0, spent), (1.0, 0.66, spent), (1.0, 1.0, _at_a_quarter)],
)
def check_needed_part(
    subject: tuple[float, float, Callable[[int, Fraction], float]] = (1.0, 1.0, spent),
) -> str:
    """Where the corrected bound is below n: the part of it that exact means need, for priors with nearly all of their
    mass a few ranks away.

    subject: parts of the bound, for one quantile and for three, and the epsilon that the tree spends.
    """
    largest = []
    for (m, (n, misses)), part in zip(MISSES.items(), subject[:2], strict=True):
        quantiles, shares = tuple(Fraction(i, m + 1) for i in range(1, m + 1)), []
        arity, powers = TREES[m]
        for away, odds, z in misses:
            places = [(int(q * n) + q, off) for q, off in zip(quantiles, away, strict=True)]
            wrong = Fraction(odds, 1 + odds)
            priors = tuple({o: 1 - wrong, o + off: wrong} if off else {o: Fraction(1)} for o, off in places)
            algorithm = Algorithm(quantiles, priors, tuple(z**e for e in powers), arity=arity)
            mean = sum(p * max(algorithm.gaps(Grid(n), o)) for o, p in algorithm.law(Grid(n)).items())
            log_psi = -float(log_ball(algorithm.inverse_psi_sum(Grid(n)) / m))
            limit = expectation_bound(log_psi, subject[2](m, z), m, n)
            assert limit < n, "nothing to find out"
            assert float(mean) <= part * limit, (m, away, odds, z)
            shares.append(float(mean) / limit)
        largest.append(max(shares))
    assert largest[0] > 0.99 and largest[1] > 0.66, "as the row says"
    shown = " and ".join(f"{share:.3f}" for share in largest)
    return f"eq:expectation-bound, corrected: exact means need up to {shown} of it, for one and three quantiles"


def expectation_factor(m: int, n: int, epsilon: float, loss: float) -> float:
    """Corrected bracket of ``eq:expectation-bound``: 1 + log(m max(1, eps n)) + E U."""
    return 1 + math.log(m * max(1.0, epsilon * n)) + loss


@check(
    "step:expectation-beta",
    rejects=[
        lambda m, n, eps, loss: math.log(eps * m * n) + loss,
        lambda m, n, eps, loss: math.log(m * max(1.0, eps * n)) + loss,
        lambda m, n, eps, loss: 1 + math.log(max(1.0, eps * n)) + loss,
        lambda m, n, eps, loss: 1 + math.log(m * max(1.0, eps * n)) + 0.9 * loss,
        lambda m, n, eps, loss: 1 + math.log(m) + loss,
    ],
)
def check_expectation(subject: Callable[[int, int, float, float], float] = expectation_factor) -> str:
    """log(eps m n) + E U is negative for small eps n although the gap is not: no constant makes the bound true."""
    rate = 2 * math.pi**2 * math.exp(2 * math.log(2))
    assert (round(rate / 0.01), round(math.log(0.01 * 2), 1)) == (7896, -3.9), "as the row says"
    for epsilon in (0.01, 0.1, 1.0, 5.0):
        # One record, q = 1/2: rank 0, gap 0 below it and 1 above, prior mass one half each.
        prior = {HALF: HALF, 1 + HALF: HALF}
        law = mechanism(Restricted(Grid(1), -math.inf, math.inf), HALF, prior, Fraction(math.exp(-epsilon / 2)))
        expected = float(law[1 + HALF])
        assert expected <= rate * subject(1, 1, epsilon, math.log(2)) / epsilon, epsilon
        assert epsilon > 0.01 or round(expected, 3) == 0.499, "as the row says"
    grid = itertools.product((1, 3, 100), (1, 10, 1000, 10**7), (1e-4, 0.01, 1.0, 100.0), (0.0, 0.5, 40.0))
    for m, n, epsilon, loss in grid:
        rate = 2 * math.pi**2 * math.exp(2 * math.sqrt(math.log(2) * math.log(m + 1)))
        beta = min(1.0, rate / (epsilon * n))
        assert (beta < 1) == (epsilon * n > rate) and (beta == 1 or math.log(epsilon * m * n) > 0)
        bound = rate / epsilon * (math.log(m / beta) + loss) + beta * n
        assert bound <= rate * subject(m, n, epsilon, loss) / epsilon * (1 + 1e-12), (m, n, epsilon, loss)
    return f"one record, eps = 0.01: expected gap 0.499, log(eps m n) + U = {math.log(0.01 * 2):.2f} < 0"
