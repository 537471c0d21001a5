"""The package's formulas for trees against the constants that other checks of this section prove, in balls."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

from flint import arb

from pq.bounds import (
    binary_weighted,
    c_p,
    cor_cauchy,
    dyadic_conditional,
    fibonacci,
    kary_depth,
    kary_weighted,
    lem_empirical_quantiles,
    thm_binary,
    thm_kary,
)
from pq.bounds import uniform_bound as uniform
from proofs_checks.engine.registry import check
from proofs_checks.section_3_3.binary import golden
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.chains import corrected_binary, least_arity, printed_kary

SPREAD = 1e6  # log(1/Psi) so large that nothing else is seen beside it
PAPER = "paper"


def leading(bound: Callable[..., float], m: int, **named: object) -> float:
    """epsilon times a bound over its logarithm, the same for every epsilon and beta."""
    places = ((1.0, 0.5), (0.01, 0.9), (30.0, 1e-9))
    found = [
        epsilon * bound(-SPREAD, epsilon, m, beta, **named) / (SPREAD + math.log(m / beta)) for epsilon, beta in places
    ]
    assert all(math.isclose(value, found[0], rel_tol=1e-9) for value in found), (m, found)
    return found[0]


def _at_half(bound: Callable[..., float]) -> Callable[..., float]:
    """The bound at beta = 1/2, whatever beta is."""
    return lambda log_psi, epsilon, m, beta, **named: bound(log_psi, epsilon, m, 0.5, **named)


def _squared(bound: Callable[..., float]) -> Callable[..., float]:
    """The bound with the square of epsilon."""
    return lambda log_psi, epsilon, *rest, **named: bound(log_psi, epsilon**2, *rest, **named)


@check(
    "text:golden-exponent",
    "text:worse-in-m",
    "text:naive-baseline",
    "thm:binary",
    code=thm_binary,
    rejects=[
        scaled(thm_binary, 0.99),
        scaled(thm_binary, 1.01),
        _at_half(thm_binary),
        _squared(thm_binary),
        lambda *a, **k: thm_binary(*a, version=PAPER),
    ],
)
def check_binary_formula(subject: Callable[..., float] = thm_binary) -> str:
    """2 k (F_{k+2} - 1) as corrected, 2 k phi^k as printed: growth m^0.694 and more than log^2 m."""
    for k in range(1, 40):
        m = 2**k - 1
        assert math.isclose(leading(subject, m, rounded=False), 2 * k * float(corrected_binary(k)), rel_tol=1e-9)
        assert math.isclose(leading(thm_binary, m, version=PAPER), 2 * k * float(golden(k)), rel_tol=1e-9)
    large = [leading(thm_binary, 2**k - 1, rounded=False) / k for k in (59, 60)]
    growth = math.log(large[1] / large[0], 2)
    assert math.isclose(growth, 0.6942419136306173, rel_tol=1e-9)
    return "pq's thm:binary has the constants of the recurrence, printed and corrected, k < 40"


@check(
    "text:kary-rate",
    "text:nine-log-cubed",
    "text:log-squared",
    "text:depth-budgets",
    "step:kary-last",
    "thm:kary",
    "thm:kary-main",
    code=(thm_kary, kary_depth),
    rejects=[
        scaled(thm_kary, 0.99),
        scaled(thm_kary, 1.01),
        _at_half(thm_kary),
        _squared(thm_kary),
        lambda *a, **k: thm_kary(*a, **{**k, "p": 2.5}),
        lambda *a, **k: thm_kary(*a, **{**k, "divided_twice": True}),
        lambda *a, **k: thm_kary(*a, **{**k, "divided_twice": False}),
        lambda *a, **k: thm_kary(*a, **{**k, "arity": None}),
        *((lambda *a, by=by, **k: thm_kary(*a, **k) * (by if k.get("arity") else 1)) for by in (0.99, 1.01)),
    ],
)
def check_kary_formula(subject: Callable[..., float] = thm_kary) -> str:
    """2 (K - 1) H A as corrected, level by level from the recurrence; c_p exp(2 sqrt(log 2 log(m + 1))) as printed."""
    for m in (1, 2, 3, 7, 15, 99, 1000, 83_521, 10**6):
        for p, chosen in itertools.product((1.5, 2.0, 3.0), (None, 2, 3, 40)):
            arity, error, harmonic = chosen or least_arity(m), arb(0), arb(0)
            for k in range(1, kary_depth(m, arity) + 1):
                error, harmonic = arb(k) ** arb(p) + 2 * error, harmonic + arb(k) ** -arb(p)
            wanted = float(2 * (arity - 1) * harmonic * error)
            for twice, times in ((False, 1), (True, arity - 1)):  # budgets K - 1 times smaller
                found = leading(subject, m, p=p, arity=chosen, divided_twice=twice, rounded=False)
                assert math.isclose(found, times * wanted, rel_tol=1e-9), (m, p, chosen, twice)
            assert chosen or wanted <= 2 * leading(thm_kary, m, p=p, version=PAPER), "twice the printed bound"
        ranks = 0
        for _ in range(kary_depth(m, least_arity(m)) - 1):
            ranks = 2 * (2 + ranks)  # a node's slack, and what its edges may have lost
        assert math.isclose(subject(-1.0, 1.0, m, 0.5) - subject(-1.0, 1.0, m, 0.5, rounded=False), ranks, abs_tol=1e-6)
        printed = leading(thm_kary, m, version=PAPER)
        assert math.isclose(printed, float(printed_kary(m, 2)), rel_tol=1e-9), m
    return "pq's thm:kary has the constants of the recurrence and of the printed display, three powers, m to 10^6"


@check(
    "ours:binary-shares",
    "ours:kary-shares",
    code=(binary_weighted, kary_weighted),
    rejects=[
        *((scaled(binary_weighted, factor), kary_weighted) for factor in (0.99, 1.01)),
        *((binary_weighted, scaled(kary_weighted, factor)) for factor in (0.99, 1.01)),
        (lambda *a, **k: binary_weighted(*a, rounded=False), kary_weighted),
        (binary_weighted, lambda *a, arity, rounded: kary_weighted(*a, arity=arity, rounded=False)),
        (thm_binary, kary_weighted),
    ],
)
def check_weighted_formula(
    subject: tuple[Callable[..., float], Callable[..., float]] = (binary_weighted, kary_weighted),
) -> str:
    """2 (sum sqrt F_j)^2, and 2 (K - 1) (sum 2^(j/2))^2, level by level in balls; the ranks of equal budgets."""
    for k in range(1, 40):
        m = 2**k - 1
        total = sum((arb(fibonacci(j)).sqrt() for j in range(1, k + 1)), arb(0))
        assert math.isclose(leading(subject[0], m, rounded=False), float(2 * total**2), rel_tol=1e-9), m
        ranks = [
            bound(-1.0, 1.0, m, 0.5) - bound(-1.0, 1.0, m, 0.5, rounded=False) for bound in (subject[0], thm_binary)
        ]
        assert math.isclose(*ranks, rel_tol=1e-6, abs_tol=1e-6), m
    for m, arity in ((1, 2), (8, 3), (100, 6), (83_521, 17)):
        total = sum((arb(2).sqrt() ** j for j in range(kary_depth(m, arity))), arb(0))
        wanted = float(2 * (arity - 1) * total**2)
        assert math.isclose(leading(subject[1], m, arity=arity, rounded=False), wanted, rel_tol=1e-9), m
        whole, plain = (subject[1](-1.0, 1.0, m, 0.5, arity=arity, rounded=rounded) for rounded in (True, False))
        assert math.isclose(whole - plain, 4 * (2 ** (kary_depth(m, arity) - 1) - 1), abs_tol=1e-6), "thm:kary's ranks"
    return "pq's bounds for budgets by level: (sum sqrt F_j)^2 and (K - 1) (sum 2^(j/2))^2 twice over, k < 40"


@check(
    "text:c-p-minimum",
    "text:experimental-power",
    "step:kary-lerch",
    code=c_p,
    rejects=[scaled(c_p, 0.99), scaled(c_p, 1.01), lambda p: c_p(p) / 2],
)
def check_power_formula(subject: Callable[[float], float] = c_p) -> str:
    """(2 + Lerch(1/2, -p, 2)) zeta(p) in balls."""
    for p in (1.1, 1.5, 1.6151, 2.0, 3.0, 8.0):
        lerch = sum((arb(j + 2) ** arb(p) / arb(2) ** j for j in range(300)), arb(0))
        exact = float((1 + lerch / 2) * arb(p).zeta())
        assert math.isclose(subject(p), exact, rel_tol=1e-9), p
    return "pq's c_p is (1 + Lerch(1/2, -p, 2)/2) zeta(p) for six powers (balls)"


@check(
    "step:random-psi",
    "step:empirical-induction",
    "text:kaplan-recovered",
    "text:tree-beats-naive",
    "text:worse-in-m",
    "text:logarithmic-error",
    "ours:level-split",
    code=(lem_empirical_quantiles, dyadic_conditional),
    rejects=[
        scaled(lem_empirical_quantiles, 0.99),
        scaled(lem_empirical_quantiles, 1.01),
        _at_half(lem_empirical_quantiles),
        _squared(lem_empirical_quantiles),
        lambda *a, **k: lem_empirical_quantiles(*a, version=PAPER),
    ],
)
def check_empirical_formula(subject: Callable[..., float] = lem_empirical_quantiles) -> str:
    """2 d^2 log(m/(beta Psi)), so O(log^2 m log m) for equal inner products; two thirds of it for uniform quantiles. As
    printed with d = ceil(log2 m)."""
    for m in (1, 2, 3, 7, 8, 100, 10**6):
        depth = next(d for d in range(1, 60) if 2**d > m)
        assert math.isclose(leading(subject, m, rounded=False), 2 * depth**2, rel_tol=1e-9), m
        assert subject(-1.0, 1.0, m, 0.5) - subject(-1.0, 1.0, m, 0.5, rounded=False) == 2 * (depth - 1)
        printed = leading(lem_empirical_quantiles, m, version=PAPER)
        assert m == 1 or math.isclose(printed, 2 * math.ceil(math.log2(m)) ** 2, rel_tol=1e-9), m
    share = leading(dyadic_conditional, 2**50 - 1, rounded=False) / leading(subject, 2**50 - 1, rounded=False)
    assert abs(share - 2 / 3) < 0.01
    return "pq's lem:empirical-quantiles is 2 d^2 log(m/(beta Psi)) with 2 ranks a level; dyadic 2/3 of it in the limit"


@check(
    "text:log-pi",
    "text:uniform-wrong-interval",
    "text:tails",
    code=(cor_cauchy, uniform),
    rejects=[
        scaled(cor_cauchy, 0.99),
        scaled(cor_cauchy, 1.01),
        lambda r, *a, **known: cor_cauchy(2 * r, *a, **known),
        lambda *a, **known: cor_cauchy(*a),  # as printed at n = 2 and rank 0 too
    ],
)
def check_interval_formula(subject: Callable[..., float] = cor_cauchy) -> str:
    """At R = (b - a)/2 the Cauchy bound exceeds the uniform one by (2/eps) log pi, and as corrected by (2/eps) log 2 pi
    for two records at rank 0; far out it grows like (4/eps) log R where the uniform prior knows nothing."""
    for width, epsilon, beta in ((2.0, 1.0, 0.1), (100.0, 0.3, 0.01)):
        apart = subject(width / 2, width, 0.01, epsilon, beta) - uniform(width, 0.01, epsilon, beta)
        assert math.isclose(apart, 2 / epsilon * math.log(math.pi), rel_tol=1e-9)
        for n, rank, factor in ((3, 0, 1), (2, 1, 1), (2, 0, 2)):
            apart = subject(width / 2, width, 0.01, epsilon, beta, n=n, rank=rank) - uniform(width, 0.01, epsilon, beta)
            assert math.isclose(apart, 2 / epsilon * math.log(factor * math.pi), rel_tol=1e-9), (n, rank)
        far = subject(1e9, width, 0.01, epsilon, beta) - subject(1e6, width, 0.01, epsilon, beta)
        assert math.isclose(far, 4 / epsilon * math.log(1e3), rel_tol=1e-6)
        narrow = [subject(1.0, 10.0**-k, 0.01, epsilon, beta) for k in (3, 6)]  # of an interval, at the same R
        assert math.isclose(narrow[1] - narrow[0], 2 / epsilon * math.log(1e3), rel_tol=1e-6), "for a fixed width only"
    return "pq's cor:cauchy is the uniform bound plus (2/eps) log pi at R = (b - a)/2, and logarithmic in R"
