"""Numbers quoted in prose: c_p, rates in m, comparisons of the bounds (Section 3.3, Appendix A.2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import sympy
from flint import acb, acb_series, arb, fmpq

from pq.bounds import c_p, fibonacci, thm_binary, thm_kary
from proofs_checks.compounding import printed_kary

LOG2 = arb(2).log()


def polylogarithm(p: arb) -> arb:
    """Li_{-p}(1/2) = sum j**p / 2**j, with a ball for its tail."""
    terms = 400
    head = sum((arb(j) ** p / arb(2) ** j for j in range(1, terms)), arb(0))
    # beyond, terms fall by a factor below 3/5 each
    tail = arb(terms) ** p / arb(2) ** terms * arb("2.5")
    return head + arb(0, 1) * tail


def constant(p: arb) -> arb:
    """(1 + Lerch(1/2, -p, 2) / 2) zeta(p) = 2 Li_{-p}(1/2) zeta(p)."""
    return 2 * polylogarithm(p) * acb(p).zeta().real


def log_slope(p: arb) -> arb:
    """Derivative of log c_p: a logarithmic mean of log j under j**p / 2**j, less one under j**-p."""
    terms = 400
    weights = [arb(j) ** p / arb(2) ** j for j in range(1, terms)]
    tail = arb(terms) ** p / arb(2) ** terms * 1000
    rising = sum((w * arb(j).log() for j, w in enumerate(weights, 1)), arb(0)) + arb(0, 1) * tail
    return rising / (sum(weights, arb(0)) + arb(0, 1) * tail) + zeta_slope(p) / acb(p).zeta().real


def zeta_slope(p: arb) -> arb:
    """zeta'(p) in a ball, by the Taylor series of flint."""
    return acb_series([acb(p), 1], prec=2).zeta()[1].real


def check_c_p_formula(subject: Callable[[float], float] = c_p) -> str:
    """Lerch and polylogarithm forms agree, the code agrees with both, and c_2 = 2 pi**2."""
    for p in (Fraction(11, 10), Fraction(3, 2), Fraction(8, 5), Fraction(2), Fraction(3)):
        power = arb(fmpq(p.numerator, p.denominator))
        lerch = sum((arb(j + 2) ** power / arb(2) ** j for j in range(400)), arb(0))
        direct = (1 + lerch / 2) * acb(power).zeta().real
        assert abs(float(direct - constant(power))) < 1e-25
        assert abs(subject(float(p)) - float(direct)) < 1e-11 * float(direct), p
    k = sympy.symbols("k")
    assert sympy.summation(k**2 / 2**k, (k, 1, sympy.oo)) == 6
    assert sympy.zeta(2) == sympy.pi**2 / 6
    return "c_p = 2 Li_(-p)(1/2) zeta(p) in code and in balls; c_2 = 2 * 6 * pi^2 / 6 = 2 pi^2 exactly"


def check_c_p_minimum(subject: Callable[[], tuple[str, str]] = lambda: ("16.8349006227923489", "1.61510584869")) -> str:
    """The minimum of c_p over all p > 1, with certified digits: log c_p is convex in p."""
    value, place = subject()
    at, width = arb(place), arb("1e-9")
    assert log_slope(at - width) < 0
    assert log_slope(at + width) > 0
    # convexity: log sum j**p 2**-j and log sum j**-p are log-sum-exps of linear functions of p
    inside = constant(at)
    assert abs(inside - arb(value)) < arb("1e-15"), inside
    # convex: the minimum is above its tangent at the place, within 1e-9 of it
    assert abs(log_slope(at)) * width * inside < arb("1e-15")
    return "min over p > 1 of c_p is 16.834900622792... at p = 1.61510585 (certified; log c_p is convex in p)"


def check_c_p_prose(subject: Callable[[arb], arb] = lambda minimum: minimum / 2) -> str:
    """8.42 at p = 1.6 is half of the least c_p that the theorem's display defines."""
    minimum = constant(arb("1.61510584869"))
    assert abs(subject(minimum) - arb("8.42")) < arb("0.005"), subject(minimum)
    assert minimum > arb("16.8")
    return "the prose's minimum '8.42' is min c_p / 2 = 8.41745...; with c_p as displayed it is 16.835"


def check_c_p_experiments(subject: Callable[[], arb] = lambda: arb("0.0221")) -> str:
    """p = 1.5, used in the experiments, costs 2.2% over the best p."""
    excess = constant(arb("1.5")) / constant(arb("1.61510584869")) - 1
    assert excess < subject()
    assert excess > arb("0.02")
    return f"p = 1.5 is {float(excess) * 100:.2f}% above the least c_p"


def rate(m: arb) -> arb:
    """exp(2 sqrt(log 2 log(m + 1)))."""
    return (2 * (LOG2 * (m + 1).log()).sqrt()).exp()


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
    assert abs(worst - rate(arb(3)) / arb(3).log() ** 3) < arb("0.05")
    return (
        "exp(2 sqrt(log 2 log(m+1))) <= 9 log(m)^3 on all of [3, 10^12], natural log; the best constant is "
        "5.356 (at m = 3)"
    )


def check_nine_with_constant(subject: Callable[[int], arb] = lambda m: printed_kary(m, 2)) -> str:
    """With its leading 2 pi**2 the bound exceeds nine log(m)**3 for m = 3 and many more: the prose means the rate
    alone.
    """
    assert subject(3) > 9 * arb(3).log() ** 3, "within nine"
    assert subject(100) > arb("0.9") * 9 * arb(100).log() ** 3 / 2
    return (
        f"with the factor 2 pi^2 it is {float(subject(3) / arb(3).log() ** 3):.1f} log(3)^3 at m = 3, so nine "
        "bounds the rate alone"
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


def check_sub_polynomial(
    subject: Callable[[sympy.Symbol], sympy.Expr] = lambda t: 2 * sympy.sqrt(sympy.log(2) * t),
) -> str:
    """With t = log m the exponent is below any alpha t and above any alpha log t in the limit."""
    t, alpha = sympy.symbols("t alpha", positive=True)
    assert sympy.limit(subject(t) / (alpha * t), t, sympy.oo) == 0
    assert sympy.limit(subject(t) / (alpha * sympy.log(t)), t, sympy.oo) == sympy.oo
    return "exp(2 sqrt(log 2 log m)) is o(m^a) and omega(log^a m) for every a > 0 (sympy limits)"


def check_golden_exponent(subject: Callable[[], arb] = lambda: arb("0.6942419136306173")) -> str:
    """phi**log2(m) = m**log2(phi), and log2(phi) = 0.694..., so 'O(m^0.7)' holds."""
    exponent = ((1 + arb(5).sqrt()) / 2).log() / LOG2
    assert abs(exponent - subject()) < arb("1e-15")
    assert exponent < arb("0.7")
    return "phi^log2(m) = m^0.69424..., below m^0.7 (ball)"


def check_naive_baseline(subject: Callable[[int], arb] | None = None) -> str:
    """thm:binary against m mechanisms at epsilon / m each: worse for every m below 4095 as printed, below 8191 as
    corrected.
    """
    constant_of = subject or (lambda k: ((1 + arb(5).sqrt()) / 2) ** k)
    better = [k for k in range(1, 40) if constant_of(k) * k < 2**k - 1]
    assert better == list(range(12, 40)), better[:3]
    corrected = [k for k in range(1, 40) if (fibonacci(k + 2) - 1) * k < 2**k - 1]
    assert corrected[0] == 13 or corrected[:2] == [1, 13], corrected[:3]
    return (
        "'better than the naive baseline': thm:binary's bound is below (2 m / epsilon) log(..) from m = 4095 "
        "on only (8191 corrected)"
    )


def check_naive_growth(subject: Callable[[int], float] = lambda m: m * math.log(m)) -> str:
    """m mechanisms at epsilon / m each: the largest of their gaps grows like m log m, beyond any multiple of m.

    Even ranks and a flat prior give a gap law proportional to z**|g|, z = exp(-epsilon / (2 m)), hence a tail 2 z**g /
    (1 + z).
    """
    likely = []
    for m in (10**2, 10**4, 10**6, 10**8):
        z = (-1 / arb(2 * m)).exp()  # epsilon = 1
        g = math.ceil(subject(m))
        tail = 2 * z**g / (1 + z)
        likely.append(float(1 - (m * (1 - tail).log()).exp()))
    assert likely == sorted(likely)
    assert likely[-1] > 0.999
    assert all(v < 1 - 1e-300 for v in likely[:1])
    far = [float(1 - (m * (1 - 2 * (-arb(3 * math.log(m) / 2)).exp() / 2).log()).exp()) for m in (10**2, 10**4, 10**6)]
    assert far == sorted(far, reverse=True)
    assert far[-1] < 0.002
    return (
        "m mechanisms at epsilon / m: the largest gap exceeds m log(m) / epsilon but not 3 m log(m) / epsilon "
        "in the limit, so not O(m)"
    )


def check_kary_against_naive(subject: Callable[[int], arb] = lambda m: printed_kary(m, 2)) -> str:
    """thm:kary's printed bound against the same baseline: better from m = 695 on."""
    first = next(m for m in range(1, 5000) if subject(m) < 2 * m)
    assert all(subject(m) < 2 * m for m in range(first, 5000))
    assert 600 < first < 800, first
    return f"thm:kary's printed bound is below the naive (2 m / epsilon) log(..) from m = {first} on"


def check_binary_against_kary(subject: int = 7) -> str:
    """Where the K-ary bound beats the binary one, both corrected, among m = 2**k - 1."""
    wins = [k for k in range(1, 40) if thm_kary(-1e5, 1.0, 2**k - 1, 0.5) < thm_binary(-1e5, 1.0, 2**k - 1, 0.5)]
    assert wins == [4, *range(subject, 40)], wins
    return "corrected, the K-ary bound is the smaller one at m = 15 and for all m = 2^k - 1 from 127 on"
