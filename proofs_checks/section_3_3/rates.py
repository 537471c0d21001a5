"""Exponents, crossings and rates that the text reads off thm:binary and thm:kary."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import sympy
from flint import arb, fmpq

from pq.bounds import fibonacci, naive_multiple, thm_binary, thm_kary
from proofs_checks.engine.registry import check
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.chains import printed_kary
from proofs_checks.tools.exact import Grid, Restricted, log_ball, mechanism, psi

LOG2 = arb(2).log()


@check("text:golden-exponent", rejects=[lambda: arb("0.7"), lambda: arb("0.69"), lambda: arb("0.6942419136306273")])
def check_golden_exponent(subject: Callable[[], arb] = lambda: arb("0.6942419136306173")) -> str:
    """phi**log2(m) = m**log2(phi), and log2(phi) = 0.694..., so 'O(m^0.7)' holds."""
    exponent = ((1 + arb(5).sqrt()) / 2).log() / LOG2
    assert abs(exponent - subject()) < arb("1e-15")
    assert exponent < arb("0.7")
    return "phi^log2(m) = m^0.69424..., below m^0.7 (ball)"


@check(
    "text:naive-baseline",
    rejects=[
        lambda k: arb(k),
        lambda k: arb(2) ** k,
        *(lambda k, by=by: arb(by) * ((1 + arb(5).sqrt()) / 2) ** k for by in ("0.8", "1.1")),
    ],
)
def check_naive_baseline(subject: Callable[[int], arb] | None = None) -> str:
    """thm:binary against m mechanisms at epsilon / m each: worse for every m below 4095 as printed, below 8191 as
    corrected, and better from there on: k phi^k grows by less than a factor 2, which m does not.
    """
    phi = (1 + arb(5).sqrt()) / 2
    constant_of = subject or (lambda k: phi**k)
    better = [k for k in range(1, 40) if constant_of(k) * k < 2**k - 1]
    assert better == list(range(12, 40)), better[:3]
    corrected = [k for k in range(1, 40) if (fibonacci(k + 2) - 1) * k < 2**k - 1]
    assert corrected == list(range(13, 40)), corrected[:3]
    assert phi * 13 / 12 < 2 and phi**15 / arb(5).sqrt() * 13 < 2**13 - 1  # F_{k+2} - 1 is below phi^{k+2}/sqrt 5
    assert round(float(phi**10 * 10)) == 1230, "as the row says, for m = 1023"
    return (
        "'better than the naive baseline': thm:binary's bound is below (2 m / epsilon) log(..) from m = 4095 "
        "on only (8191 corrected)"
    )


@check("text:naive-baseline", code=(thm_binary, naive_multiple), rejects=[0.89, 0.91, 10.0])
def check_naive_with_rounding(subject: float = 0.9) -> str:
    """The whole corrected bound, with its ranks of rounding, which do not fall with epsilon: from m = 8191 on below the
    baseline if epsilon <= 0.9 log(m/(beta Psi)), but not much beyond; before, never."""
    for k, log_psi, beta in itertools.product(range(1, 40), (0.0, -5.0, -1e4), (0.05, 0.99)):
        m = 2**k - 1
        spread = math.log(m / beta) - log_psi
        for epsilon in (1e-6, 1.0, subject * spread, 1.01 * subject * spread, 1e6):
            better = thm_binary(log_psi, epsilon, m, beta) < naive_multiple(log_psi, epsilon, m, beta)
            assert not better or k > 12, (k, epsilon)
            assert better or k < 13 or epsilon > subject * spread, (k, epsilon)
            assert not better or k != 13 or epsilon <= subject * spread, "0.9 is nearly all"
    # Beyond k = 39 as well: (F_{k+2} - 1) (k + 0.45) is below 2^k - 1 at k = 14, and grows by less than a factor 2.
    phi = (1 + arb(5).sqrt()) / 2
    assert phi**16 / arb(5).sqrt() * arb("14.45") < 2**14 - 1 and phi * arb("15.45") / arb("14.45") < 2
    found = [bound(-5.0, 20.0, 8191, 0.05) for bound in (thm_binary, naive_multiple)]
    assert [round(value) for value in found] == [14_072, 13_930], "as the row says"
    return "thm:binary with its ranks of rounding: below the baseline from m = 8191 on if epsilon <= 0.9 log(m/(b Psi))"


@check(
    "text:naive-baseline",
    rejects=[lambda m: arb(m), lambda m: printed_kary(m, 2) * arb("0.99"), lambda m: printed_kary(m, 2) * arb("1.01")],
)
def check_kary_against_naive(subject: Callable[[int], arb] = lambda m: printed_kary(m, 2)) -> str:
    """thm:kary's printed bound against the same baseline: better from m = 701 on, and for no m before."""
    first = next(m for m in range(1, 5000) if subject(m) < 2 * m)
    assert all(subject(m) < 2 * m for m in range(first, 5000))
    assert (LOG2 / arb(5000).log()).sqrt() < 1  # beyond: the slope of log rate in t = log(m + 1); that of log m is more
    assert first == 701, first
    return f"thm:kary's printed bound is below the naive (2 m / epsilon) log(..) from m = {first} on"


@check("text:kary-rate", rejects=[lambda t: t / 2, sympy.log, lambda t: t / 100, lambda t: 100 * sympy.log(t)])
def check_sub_polynomial(
    subject: Callable[[sympy.Symbol], sympy.Expr] = lambda t: (
        2 * sympy.sqrt(sympy.log(2) * sympy.log(sympy.exp(t) + 1))
    ),
) -> str:
    """With t = log m the exponent is below any alpha t and above any alpha log t in the limit; log(m + 1) as is."""
    t, alpha = sympy.symbols("t alpha", positive=True)
    assert sympy.limit(subject(t) / (alpha * t), t, sympy.oo) == 0
    assert sympy.limit(subject(t) / (alpha * sympy.log(t)), t, sympy.oo) == sympy.oo
    return "exp(2 sqrt(log 2 log(m + 1))) is o(m^a) and omega(log^a m) for every a > 0 (sympy limits)"


def rate(m: arb) -> arb:
    """exp(2 sqrt(log 2 log(m + 1)))."""
    return (2 * (LOG2 * (m + 1).log()).sqrt()).exp()


@check("text:nine-log-cubed", rejects=[Fraction(5), Fraction(53032, 10_000)])
def check_nine_log_cubed(subject: Fraction = Fraction(9)) -> str:
    """rate(m) <= 9 log(m)**3 for all real m in [3, 10**12], natural logarithm: decreasing ratio, value 5.36 at 3."""
    # d/dm of 2 sqrt(log 2 log(m + 1)) - 3 log log m has the sign of sqrt(log 2 / log(m + 1)) m log m / (m + 1) - 3, and
    # sqrt(log 2 / log(m + 1)) log m <= sqrt(log 2 log(m + 1)) < 4.4 needs care for large m: cover in balls of log m
    assert rate(arb(3)) / arb(3).log() ** 3 < arb(fmpq(subject.numerator, subject.denominator))
    left, right, pieces = arb(3).log(), arb(12) * arb(10).log(), 4000
    worst = arb(0)
    for i in range(pieces):
        low = left + (right - left) * i / pieces
        high = left + (right - left) * (i + 1) / pieces
        bound = rate(high.exp()) / low**3  # both monotone
        assert bound < arb(fmpq(subject.numerator, subject.denominator)), float(low.exp())
        worst = bound if bound > worst else worst
    assert abs(worst - rate(arb(3)) / arb(3).log() ** 3) < arb("0.02"), "the pieces are too wide"
    return (
        "exp(2 sqrt(log 2 log(m+1))) <= 9 log(m)^3 on all of [3, 10^12], natural log; the best constant is "
        "5.35683 (at m = 3)"
    )


@check("text:nine-log-cubed", rejects=["5.3033", "5.4104", "9"])
def check_least_of_nine(subject: str = "5.35684") -> str:
    """The least constant is 5.35683..., attained at m = 3: the ratio falls on [3, 3.01], and on the rest to 10^12 it
    stays below (pieces in log m, in balls)."""
    at_three = rate(arb(3)) / arb(3).log() ** 3
    assert at_three < arb(subject) < at_three * arb("1.00001"), at_three
    assert f"{float(at_three):.5f}" == "5.35683", "as the row says"
    left, right, pieces = arb("3.01").log(), arb(12) * arb(10).log(), 40_000
    for i in range(pieces):
        low, high = (left + (right - left) * j / pieces for j in (i, i + 1))
        assert rate(high.exp()) / low**3 < at_three, float(low.exp())
    m = arb("3.005", "0.005")  # on [3, 3.01] the ratio falls
    slope = (LOG2 / (m + 1).log()).sqrt() / (m + 1) - 3 / (m * m.log())
    assert slope < 0
    return "exp(2 sqrt(log 2 log(m+1))) <= 5.35684 log(m)^3 on [3, 10^12], the least constant (balls, 40,000 pieces)"


@check(
    "text:nine-log-cubed",
    rejects=[
        lambda m: rate(m),
        lambda m: 9 * m.log() ** 3,
        *(lambda m, by=by: arb(by) * 2 * arb.pi() ** 2 * rate(m) for by in ("0.99", "1.01")),
    ],
)
def check_nine_with_constant(subject: Callable[[arb], arb] = lambda m: 2 * arb.pi() ** 2 * rate(m)) -> str:
    """With its leading 2 pi**2 the bound exceeds nine log(m)**3 for all m from 3 to 49, and for no more to 10**12: the
    prose means the rate alone."""
    assert all(subject(arb(m)) > 9 * arb(m).log() ** 3 for m in range(3, 50)), "within nine"
    left, right, pieces = arb(50).log(), arb(12) * arb(10).log(), 10_000
    for i in range(pieces):
        low, high = (left + (right - left) * j / pieces for j in (i, i + 1))
        assert subject(high.exp()) < 9 * low**3, float(low.exp())
    assert all((subject(arb(m)) - printed_kary(m, 2)).contains(0) for m in (3, 50, 10**6))
    return (
        f"with the factor 2 pi^2 it is {float(subject(arb(3)) / arb(3).log() ** 3):.1f} log(3)^3 at m = 3 and more "
        "than nine log(m)^3 to m = 49, so nine bounds the rate alone"
    )


@check("text:better-than-binary", code=thm_kary, rejects=[6, 8])
def check_binary_against_kary(subject: int = 7) -> str:
    """Where the K-ary bound beats the binary one, both corrected, among m = 2**k - 1; there in the ranks of rounding
    too, so for every Psi, epsilon and beta.

    Beyond k = 40: at most 4 pi^2 4^sqrt k, twice the printed constant, against at least 2 k phi^k, and the logarithm of
    the first grows by less than log 4 / (2 sqrt k); ranks: less than 4 2^sqrt k against F_{k+2} - 2 > phi^k - 2.
    """
    for epsilon in (1.0, 1e9):
        both = [[f(-1e5, epsilon, 2**k - 1, 0.5) for f in (thm_kary, thm_binary)] for k in range(1, 41)]
        wins = [k for k, (kary, binary) in enumerate(both, 1) if kary < binary]
        assert {4, *range(subject, 41)} <= set(wins), wins
        if epsilon == 1.0:
            assert wins == [4, *range(subject, 41)], wins
            assert all(both[k - 1][1] < 0.99 * both[k - 1][0] for k in (2, 3, 5, 6)), "the binary one is the smaller"
    for k in (4, *range(subject, 41)):
        pairs = [
            [f(-1.0, 1.0, 2**k - 1, 0.5, rounded=with_ranks) for f in (thm_kary, thm_binary)]
            for with_ranks in (True, False)
        ]
        leading, ranks = pairs[1], [full - part for full, part in zip(*pairs, strict=True)]
        assert leading[0] < leading[1] and ranks[0] < ranks[1] + 1e-6, (k, leading, ranks)
    phi = (1 + arb(5).sqrt()) / 2
    assert 4 * arb(2) ** arb(40).sqrt() < phi**40 - 2
    assert 4 * arb.pi() ** 2 * arb(4) ** arb(40).sqrt() < 80 * phi**40 and 2 * LOG2 / (2 * arb(40).sqrt()) < phi.log()
    return "corrected, the K-ary bound is the smaller one at m = 15 and for all m = 2^k - 1 from 127 on"


@check(
    "text:naive-baseline",
    "text:naive-linear",
    "text:tree-beats-naive",
    code=naive_multiple,
    rejects=[scaled(naive_multiple, 0.99), scaled(naive_multiple, 1.01), lambda *a: naive_multiple(*a) / a[2]],
)
def check_naive_exact(subject: Callable[..., float] = naive_multiple) -> str:
    """m mechanisms at epsilon/m each: exact failure of their largest gap at most beta, and all of the bound is needed
    where every prior has nearly all of its mass at one wrong cell."""
    few, z, far = Fraction(1, 10**30), Fraction(1, 10), 6
    for m in (1, 3, 10):
        right, wrong = Fraction(1, 2), far + Fraction(1, 2)
        prior = {right: few, wrong: 1 - few}
        for level in (Fraction(1, 40), Fraction(1, 20)):
            law = mechanism(Restricted(Grid(far), -math.inf, math.inf), level, prior, z)
            inner = psi(Grid(far), level, prior, z)
            full = subject(float(log_ball(inner)), -2 * m * math.log(z), m, float(m * law[wrong]))
            assert far * (1 - 1e-9) <= full <= far * (1 + 1e-4), (m, full)
            twice = subject(float(log_ball(2 * inner)), -2 * m * math.log(z), m, float(m * law[wrong]))
            assert twice < far - 0.3, "a prior of mass two has the same law"
    return "m independent mechanisms: (2 m/eps) log(m/(beta Psi)), the union bound is all that is lost (exact)"


@check("text:naive-linear", rejects=[lambda m: 3 * m * math.log(m), lambda m: 2.5 * m * math.log(m), lambda m: 5.0 * m])
def check_naive_growth(subject: Callable[[int], float] = lambda m: m * math.log(m)) -> str:
    """m mechanisms at epsilon / m each: the largest of their gaps grows like m log m, beyond any multiple of m, and the
    bound is not four times that.

    With a flat prior the law of a gap is proportional to z^|g|, z = exp(-epsilon / (2 m)). With 4 m log m records on
    either side its tail is at least 2 (z^g - z^(4 m log m + 1)) / (1 + z), more than exp(-1/2)/sqrt(m) at g = m log m.
    """
    n, z0, rank = 12, Fraction(1, 2), 4
    flat = {k + Fraction(1, 2): Fraction(1, n + 1) for k in range(n + 1)}
    inner = psi(Grid(n), Fraction(1, 3), flat, z0)
    assert inner == (1 + z0 - z0 ** (rank + 1) - z0 ** (n - rank + 1)) / (1 - z0) / (n + 1), "the two geometric sums"
    law = mechanism(Restricted(Grid(n), -math.inf, math.inf), Fraction(1, 3), flat, z0)
    assert all(p * inner * (n + 1) == z0 ** abs(math.floor(o) - rank) for o, p in law.items()), "the law of a gap"
    likely = []
    for m in (10**2, 10**4, 10**6, 10**8):
        z, side = (-1 / arb(2 * m)).exp(), math.ceil(4 * m * math.log(m))  # epsilon = 1
        tail = 2 * (z ** math.ceil(subject(m)) - z ** (side + 1)) / (1 + z)
        likely.append(float(1 - (m * (1 - tail).log()).exp()))
        assert 1 - likely[-1] <= math.exp(-0.6 * math.sqrt(m)) * (1 + 1e-9) + 1e-15, "so it tends to 1"
        mass = (1 + z - 2 * z ** (side + 1)) / (1 - z) / (2 * side + m + 1)  # Psi is that or more
        assert naive_multiple(float(mass.log()), 1.0, m, 0.5) < 4 * subject(m), "more than a constant is lost"
    assert likely == sorted(likely)
    some = sympy.symbols("m", positive=True)  # the tail is z/sqrt(m) - 1/m^2 or more
    expected = some * (sympy.exp(-1 / (2 * some)) / sympy.sqrt(some) - some**-2)  # no gap: exp(-this) or less
    assert sympy.limit(expected, some, sympy.oo) == sympy.oo
    far = [float(1 - (m * (1 - 2 * (-arb(3 * math.log(m) / 2)).exp() / 2).log()).exp()) for m in (10**2, 10**4, 10**6)]
    assert far == sorted(far, reverse=True)
    assert far[-1] < 0.002
    return (
        "m mechanisms at epsilon / m: the largest gap exceeds m log(m) / epsilon but not 3 m log(m) / epsilon "
        "in the limit, so not O(m)"
    )


@check(
    "text:log-squared",
    rejects=[
        *((Fraction(low, 100), Fraction(4)) for low in (79, 100)),
        *((Fraction(78, 100), Fraction(high, 100)) for high in (300, 398)),
    ],
)
def check_log_squared_shape(subject: tuple[Fraction, Fraction] = (Fraction(78, 100), Fraction(4))) -> str:
    """'Roughly log2(m)**2': their ratio stays in [0.78, 4] on [3, 10**12]."""
    low_bound, high_bound = (arb(fmpq(c.numerator, c.denominator)) for c in subject)
    left, right, pieces = arb(3).log(), arb(12) * arb(10).log(), 4000
    for i in range(pieces):
        low = left + (right - left) * i / pieces
        high = left + (right - left) * (i + 1) / pieces
        assert rate(high.exp()) / (low / LOG2) ** 2 < high_bound
        assert rate(low.exp()) / (high / LOG2) ** 2 > low_bound
    return "the rate is between 0.78 and 4 times log2(m)^2 on [3, 10^12] (balls)"
