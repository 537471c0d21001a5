"""The constant c_p of thm:kary and where it is least."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction

import sympy
from flint import acb, acb_series, arb, fmpq

from pq.bounds import c_p
from proofs_checks.engine.registry import check


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


AT_TWO = 2 * sympy.pi**2


@check(
    "text:c-p-formula",
    code=c_p,
    rejects=[
        *((lambda p, by=by: by * c_p(p), AT_TWO) for by in (0.5, 0.99, 1.001, 1.01)),
        *((c_p, by * AT_TWO) for by in (sympy.Rational(1, 2), sympy.Rational(99, 100), sympy.Rational(101, 100), 2)),
    ],
)
def check_c_p_formula(subject: tuple[Callable[[float], float], sympy.Expr] = (c_p, AT_TWO)) -> str:
    """Lerch and polylogarithm forms agree, the code agrees with both, and c_2 = 2 pi**2, in symbols and in the code."""
    function, at_two = subject
    for p in (
        Fraction(1001, 1000),
        Fraction(11, 10),
        Fraction(3, 2),
        Fraction(8, 5),
        Fraction(2),
        Fraction(3),
        Fraction(20),
    ):
        power = arb(fmpq(p.numerator, p.denominator))
        lerch = sum((arb(j + 2) ** power / arb(2) ** j for j in range(400)), arb(0))
        direct = (1 + lerch / 2) * acb(power).zeta().real
        assert abs(float(direct - constant(power))) < 1e-25
        assert abs(function(float(p)) - float(direct)) < 1e-11 * float(direct), p
    k = sympy.symbols("k")
    assert 2 * sympy.summation(k**2 / 2**k, (k, 1, sympy.oo)) * sympy.zeta(2) == at_two
    assert abs(function(2.0) - float(at_two)) < 1e-11
    return "c_p = 2 Li_(-p)(1/2) zeta(p) in code and in balls; c_2 = 2 * 6 * pi^2 / 6 = 2 pi^2 exactly"


def zeta_slope(p: arb) -> arb:
    """zeta'(p) in a ball, by the Taylor series of flint."""
    return acb_series([acb(p), 1], prec=2).zeta()[1].real


def log_slope(p: arb) -> arb:
    """Derivative of log c_p: a logarithmic mean of log j under j**p / 2**j, less one under j**-p."""
    terms = 400
    weights = [arb(j) ** p / arb(2) ** j for j in range(1, terms)]
    tail = arb(terms) ** p / arb(2) ** terms * 1000
    rising = sum((w * arb(j).log() for j, w in enumerate(weights, 1)), arb(0)) + arb(0, 1) * tail
    return rising / (sum(weights, arb(0)) + arb(0, 1) * tail) + zeta_slope(p) / acb(p).zeta().real


@check("text:c-p-minimum", rejects=[lambda: ("8.42", "1.6"), lambda: ("16.8349006227923489", "1.6")])
def check_c_p_minimum(subject: Callable[[], tuple[str, str]] = lambda: ("16.8349006227923489", "1.61510584869")) -> str:
    """The minimum of c_p over all p > 1, with certified digits: log c_p is convex in p."""
    value, place = subject()
    at, width = arb(place), arb("1e-9")
    assert log_slope(at - width) < 0
    assert log_slope(at + width) > 0
    # convexity: log sum j**p 2**-j and log sum j**-p are log-sum-exps of linear functions of p
    inside = constant(at)
    assert abs(inside - arb(value)) < arb("1e-15"), inside
    places = [arb(text) for text in ("1.001", "1.1", "1.5", "1.7", "2.5", "5", "20")]
    for left, right in itertools.combinations(places, 2):
        assert (constant((left + right) / 2) ** 2) < constant(left) * constant(right), "log-convex"
    # convex: the minimum is above its tangent at the place, within 1e-9 of it
    assert abs(log_slope(at)) * width * inside < arb("1e-15")
    return "min over p > 1 of c_p is 16.834900622792... at p = 1.61510585 (certified; log c_p is convex in p)"


@check(
    "text:c-p-minimum",
    rejects=[lambda minimum: minimum, lambda minimum: minimum / arb("1.98"), lambda minimum: minimum / arb("2.02")],
)
def check_c_p_prose(subject: Callable[[arb], arb] = lambda minimum: minimum / 2) -> str:
    """8.42 at p = 1.6 is half of the least c_p that the theorem's display defines."""
    minimum = constant(arb("1.61510584869"))
    assert abs(subject(minimum) - arb("8.42")) < arb("0.005"), subject(minimum)
    assert minimum > arb("16.8")
    return "the prose's minimum '8.42' is min c_p / 2 = 8.41745...; with c_p as displayed it is 16.835"


@check("text:experimental-power", rejects=["1.49", "1.51", "1.6", "2"])
def check_c_p_experiments(subject: str = "1.5") -> str:
    """p = 1.5, used in the experiments, costs 2.2% over the best p."""
    excess = constant(arb(subject)) / constant(arb("1.61510584869")) - 1
    assert abs(excess - arb("0.022")) < arb("0.0005"), excess
    return f"p = 1.5 is {float(excess) * 100:.2f}% above the least c_p"
