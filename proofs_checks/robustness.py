"""Mixing a prediction with a trusted prior, and expectations: cor:quantile, cor:multiple, cor:cauchy-robust,
eq:expectation-bound.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

from flint import arb

from pq.bounds import cor_multiple, cor_quantile, expectation_bound, expected_gap, thm_binary, thm_kary
from proofs_checks.exact import Algorithm, Grid, Prior, Restricted, gap, log_ball, mechanism, probability, psi
from proofs_checks.single import one_quantile_cases

HALF = Fraction(1, 2)
WEIGHTS = (Fraction(0), Fraction(1, 10), HALF, Fraction(1))


def mix(mu: Prior, rho: Prior, weight: Fraction) -> Prior:
    """(1 - lambda) mu + lambda rho."""
    keys = {*mu, *rho}
    return {o: (1 - weight) * mu.get(o, Fraction(0)) + weight * rho.get(o, Fraction(0)) for o in keys}


def mixed_cases() -> Iterator[tuple[Grid, Fraction, Prior, Prior, Fraction]]:
    """Data, quantile, a perfect prediction, a trusted prior on every cell, z."""
    for data, q, rho, z in one_quantile_cases():
        total = sum(rho.values())
        yield data, q, {math.floor(q * data.size) + HALF: Fraction(1)}, {o: m / total for o, m in rho.items()}, z


def check_linear(subject: Callable[[Prior, Prior, Fraction], Prior] = mix) -> str:
    """Psi of a mixture is the mixture of the Psi."""
    for (data, q, mu, rho, z), weight in itertools.product(mixed_cases(), WEIGHTS):
        mixed = psi(data, q, subject(mu, rho, weight), z)
        assert mixed == (1 - weight) * psi(data, q, mu, z) + weight * psi(data, q, rho, z)
    return "Psi is linear in the prior (exact)"


def check_cor_quantile(subject: Callable[..., tuple[float, float]] = cor_quantile) -> str:
    """Robust for every prediction and consistent for a perfect one, both on the same event: exact failure at most
    beta.
    """
    worst = 0.0
    for (data, q, perfect, rho, z), weight, beta in itertools.product(
        mixed_cases(), (Fraction(1, 10), HALF, Fraction(9, 10)), (Fraction(1, 10), HALF)
    ):
        wrong = {data.size + HALF: Fraction(1)}
        for mu in (perfect, wrong):
            law = mechanism(Restricted(data, -math.inf, math.inf), q, mix(mu, rho, weight), z)
            epsilon = -2 * math.log(z)
            robust, consistent = subject(float(log_ball(psi(data, q, rho, z))), epsilon, float(beta), float(weight))
            limit = min(robust, consistent) if mu is perfect else robust
            failed = sum(p for o, p in law.items() if gap(data, q, o) > limit * (1 + 1e-9))
            assert failed <= beta, (data, q, weight, limit)
            worst = max(worst, float(failed / beta))
    assert subject(0.0, 1.0, 0.1, 0.0)[0] == math.inf
    assert subject(0.0, 1.0, 0.1, 1.0)[1] == math.inf
    return (
        f"cor:quantile: both guarantees hold, with one failure event (largest failure {worst:.2f} beta); empty "
        "at lambda = 0 or 1"
    )


def check_consistency_total_mass(subject: Callable[[Fraction], float] = lambda total: 0.0) -> str:
    """Counterexample to cor:quantile for a prediction that is no probability measure: mass 2 on the wrong cell has U
    = 0.
    """
    z, beta, total = HALF, 0.6, Fraction(2)
    wrong = {1 + HALF: total}
    assert psi(Grid(1), HALF, wrong, z) == 1
    law = mechanism(Restricted(Grid(1), -math.inf, math.inf), HALF, wrong, z)
    consistent = cor_quantile(0.0, -2 * math.log(z), beta, 0.0)[1] + subject(total) / -math.log(z)
    assert consistent < 1 - 1e-9, "consistency survives"
    assert law == {1 + HALF: 1}
    return (
        f"cor:quantile needs probability measures: mass 2 on the wrong cell, U = 0, gap <= {consistent:.2f} "
        "claimed, gap 1 certain"
    )


def check_price_of_robustness(subject: Callable[[float], float] = lambda weight: -math.log(weight)) -> str:
    """The robust bound is exactly 2 / epsilon log(1 / lambda) above that of the robust prior alone."""
    for weight in (0.01, 0.5, 0.99):
        alone = cor_quantile(math.log(0.2), 1.0, 0.1, 1.0)[0]
        assert math.isclose(cor_quantile(math.log(0.2), 1.0, 0.1, weight)[0] - alone, 2 * subject(weight), rel_tol=1e-9)
    return "the price of robustness is 2 / epsilon log(1 / lambda), exactly"


def check_consistency_zero(subject: Callable[[int], float] = lambda m: 0.0) -> str:
    """With U = -log of the harmonic mean a perfect prediction has U = 0; with the printed log-sum-exp it has log m."""
    for m in (1, 2, 7):
        harmonic = m / sum(Fraction(1) for _ in range(m))
        assert math.isclose(-math.log(harmonic), subject(m), abs_tol=1e-12), m
    return (
        "def:consistency asks U = 0: reached by -log of the harmonic mean; the log-sum-exp is at least log m, "
        "never 0 for m > 1"
    )


def cauchy_instance(z: Fraction) -> tuple[Grid, Fraction]:
    """m = 7, n = 3: Pr{Gap_{3/8} >= 1}, at least, for x = (-1, 0, 1), perfect predictions and half a standard Cauchy.

    Each of the four cells has Cauchy mass 1/4 exactly. Under edge adaptation a node's cell masses do not depend on
    where inside their cells the edges fall, so the path 1/2, 1/4, 3/8 has a rational law.
    """
    data = Grid(3)
    rho = {k + HALF: Fraction(1, 4) for k in range(4)}

    def prior(rank: int, shift: Fraction) -> Prior:
        return {o + shift: mass for o, mass in mix({rank + HALF: Fraction(1)}, rho, HALF).items()}

    # keep the atoms of one cell in the order of the quantiles; indices 0, 1, 2 stand for 1/4, 3/8, 1/2
    median = mechanism(Restricted(data, -math.inf, math.inf), HALF, prior(1, Fraction(1, 4)), z)
    middle = 1 + HALF + Fraction(1, 4)
    quarter_prior = _clip(prior(0, Fraction(0)), -math.inf, middle)
    quarter = mechanism(Restricted(data, -math.inf, middle), HALF, quarter_prior, z)
    low = HALF
    target_prior = _clip(prior(1, Fraction(1, 8)), low, middle)
    law = mechanism(Restricted(data, low, middle), HALF, target_prior, z)
    wrong = sum((p for o, p in law.items() if gap(data, Fraction(3, 8), o) >= 1), Fraction(0))
    return data, median[middle] * quarter[low] * wrong


def _clip(prior: Prior, low: Fraction | float, high: Fraction | float) -> Prior:
    from proofs_checks.exact import adapt

    return adapt(prior, low, high, "edge")


def paper_multiple(*args: float) -> tuple[float, float]:
    """cor:multiple as printed."""
    return cor_multiple(*args, version="paper")  # type: ignore[arg-type, misc]


def check_multiple_printed(subject: Callable[..., tuple[float, float]] = paper_multiple) -> str:
    """Counterexample to cor:multiple (and cor:cauchy-robust): m = 7, n = 3, both guarantees, through the floors."""
    z = Fraction(1, 10**40)
    _, failure = cauchy_instance(z)
    epsilon = -2 * math.log(z) * 3
    # a = -1, b = 1, R slightly above 1, least separation 1, lambda = 1/2
    robust, consistent = subject(1.01, 2.0, 1.0, epsilon, 7, 0.5, 0.5)
    assert robust < 1 - 1e-9, "robustness survives"
    assert consistent < 1 - 1e-9, "consistency survives"
    assert failure > Fraction(999, 1000)
    return (
        f"cor:multiple as printed is false at m = 7: x = (-1, 0, 1), perfect predictions, lambda = 1/2: "
        f"claims {robust:.2f} and {consistent:.2f}, Pr{{gap >= 1}} > 0.999"
    )


def check_multiple_single(subject: Callable[..., tuple[float, float]] = paper_multiple) -> str:
    """cor:multiple at m = 1: the printed depth is zero, so both bounds are zero or undefined."""
    robust, consistent = subject(1.0, 2.0, 0.1, 1.0, 1, 0.5, 0.5)
    assert robust in (0.0, math.inf) or math.isnan(robust)
    assert consistent == 0.0
    return "cor:multiple at m = 1: ceil(log2 1) = 0 gives no budget, and an error of zero"


def check_multiple_constant(
    subject: Callable[[int], float] = lambda m: ((1 + math.sqrt(5)) / 2) ** math.log2(m),
) -> str:
    """phi**log2(m) is below the constant of thm:binary at every m = 2**k - 1, k > 1, so the proof does not give it."""
    for k in range(2, 20):
        m = 2**k - 1
        assert subject(m) < ((1 + math.sqrt(5)) / 2) ** k
    return "cor:multiple prints phi^log2(m) where thm:binary has phi^log2(m + 1): smaller, and not implied"


def check_multiple(subject: Callable[..., tuple[float, float]] = cor_multiple) -> str:
    """The corrected corollary on the counterexample, for z over many orders of magnitude."""
    for exponent in (1, 2, 5, 10, 40, 400):
        z = Fraction(1, 10**exponent)
        _, failure = cauchy_instance(z)
        robust, consistent = subject(1.01, 2.0, 1.0, 6 * math.log(10) * exponent, 7, 0.5, 0.5)
        if failure > HALF:
            assert min(robust, consistent) >= 1, (exponent, robust, consistent)
    return "cor:multiple, corrected: no longer contradicted by rounding at any budget tried"


def check_expected_gap(subject: Callable[[float, float], float] = expected_gap) -> str:
    """Ours: E Gap <= (2 / epsilon) U for one quantile, exact means."""
    closest = 0.0
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


def check_expectation_bound(subject: Callable[..., float] = expectation_bound) -> str:
    """eq:expectation-bound, corrected, without n: against exact means for m = 1 and 3."""
    for m, n, z in itertools.product((1, 3), (1, 3, 8), (Fraction(99, 100), HALF, Fraction(1, 50))):
        quantiles = tuple(Fraction(i, m + 1) for i in range(1, m + 1))
        cells = (0, n // 2, n) if n > 1 else (0, 1)
        for heavy in cells:
            masses = {k: Fraction(98 if k == heavy else 1) for k in set(cells)}
            total = sum(masses.values())
            priors = tuple({k + Fraction(i, m + 1): w / total for k, w in masses.items()} for i in range(1, m + 1))
            levels = m.bit_length()
            harmonic = sum((Fraction(1, k * k) for k in range(1, levels + 1)), Fraction(0))
            # K = 2 at m = 1; at m = 3 the theorem takes K = 3, two mechanisms at the root and one below
            arity = 2 if m == 1 else 3
            exponents = (1,) if m == 1 else (4, 4, 1)
            algorithm = Algorithm(quantiles, priors, tuple(z**e for e in exponents), arity=arity)
            epsilon = -2 * math.log(z) * exponents[0] * (arity - 1) * float(harmonic)
            data = Grid(n)
            mean = sum(p * max(algorithm.gaps(data, o)) for o, p in algorithm.law(data).items())
            log_psi = -float(log_ball(algorithm.inverse_psi_sum(data) / m))
            assert float(mean) <= subject(log_psi, epsilon, m, n) * (1 + 1e-12), (m, n, z, heavy)
    return "eq:expectation-bound with C (log m + U + 1), no log n: exact means stay below, and below n"


def check_expectation_route(subject: Callable[[float, float, int, int], float] | None = None) -> str:
    """The printed choice of beta: the explicit bound is C (log(m n / C) + U + 1), within O(C (log(epsilon m n) + U +
    1)) for C <= n.
    """
    rule = subject or (lambda log_psi, epsilon, m, n: expectation_bound(log_psi, epsilon, m, n, version="paper"))
    for m, epsilon, log_psi in itertools.product((1, 3, 100), (0.1, 1.0, 10.0), (0.0, -5.0)):
        factor = thm_kary(-1.0, epsilon, m, float(m), version="paper")  # spread is exactly one
        n = math.ceil(factor) * 10
        beta = factor / n
        direct = thm_kary(log_psi, epsilon, m, beta, version="paper") + beta * n
        assert math.isclose(rule(log_psi, epsilon, m, n), direct, rel_tol=1e-9)
        assert direct <= factor * (math.log(epsilon * m * n) - log_psi + 1)
    return (
        "eq:expectation-bound: with beta = C / n it reads C (log(m n / C) + U + 1); it needs C <= n (beta <= "
        "1) and Gap <= n"
    )


def check_expectation_small(subject: Callable[[float, float], float] = lambda log_emn, u: log_emn + u) -> str:
    """Counterexample as printed: epsilon m n < 1 makes log(epsilon m n) + U negative, and no expected gap is."""
    z = Fraction(95, 100)
    prior = {HALF: Fraction(9, 10), 1 + HALF: Fraction(1, 10)}
    law = mechanism(Restricted(Grid(1), -math.inf, math.inf), HALF, prior, z)
    mean = law[1 + HALF]
    epsilon = -2 * log_ball(z)
    u = -log_ball(psi(Grid(1), HALF, prior, z))
    value = subject(float(arb(epsilon).log()), float(u))
    assert mean > 0
    assert value < 0, "the bound survives"
    return (
        f"eq:expectation-bound at epsilon m n = {float(epsilon):.3f}: log(epsilon m n) + U = {value:.2f} < 0 < "
        f"E Gap = {float(mean):.3f}"
    )


def check_failure_is_one_event(subject: Callable[[Fraction], Fraction] = lambda beta: beta) -> str:
    """The multiple corollary's two guarantees through one law: probability that either fails, m = 3, exact."""
    z = Fraction(1, 20)
    quantiles = (Fraction(1, 4), HALF, Fraction(3, 4))
    data = Grid(4)
    rho = {k + HALF: Fraction(1, 5) for k in range(5)}
    priors = tuple(
        {o + Fraction(i, 8) - Fraction(2, 8): m for o, m in mix({i + HALF: Fraction(1)}, rho, HALF).items()}
        for i in (1, 2, 3)
    )
    algorithm = Algorithm(quantiles, priors, (z,) * 3)
    limit = thm_binary(math.log(0.5), -4 * math.log(z), 3, 0.5)
    failed = probability(algorithm.law(data), lambda outputs: max(algorithm.gaps(data, outputs)) > limit)
    assert failed <= subject(HALF)
    return "mixing by one half: the largest of three gaps stays within the consistency bound (exact law)"
