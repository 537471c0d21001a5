"""thm:impossibility: convexity against robustness."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import sympy
import z3

from proofs_checks.engine.registry import check
from proofs_checks.tools.solver import follows

F = Fraction
HALF = Fraction(1, 2)


@check(
    "thm:impossibility",
    "thm:impossibility/log-convex-step",
    rejects=[lambda x: mpmath.exp(-x * x), lambda x: mpmath.exp(-abs(x))],
)
def check_narrow_intervals(subject: Callable[[Any], Any] = lambda x: 1 / (1 + x * x)) -> str:
    """Repaired converse: where f breaks log-concavity, every narrow enough interval makes U non-convex (continuity)."""
    x, y = mpmath.mpf(2), mpmath.mpf(4)
    assert subject(x) * subject(y) > subject((x + y) / 2) ** 2, "f is log-concave at these points"
    for width in (F(1, 1000), F(1, 10), F(1)):
        w = mpmath.mpf(width.numerator) / width.denominator
        masses = [mpmath.quad(subject, [t, t + w]) for t in (x, (x + y) / 2, y)]
        assert masses[1] ** 2 < masses[0] * masses[2]
    return "converse of thm:impossibility repaired: average the failing inequality over a narrow interval"


@check(
    "thm:impossibility",
    "thm:impossibility/log-convex-step",
    rejects=[
        lambda left, middle, right: left > middle,
        lambda left, middle, right: z3.And(left >= middle, right >= middle),
        lambda left, middle, right: z3.And(left > middle, right >= middle - z3.RealVal("1/1000")),
    ],
)
def check_where_it_fails(
    subject: Callable[[Any, Any, Any], Any] = lambda left, middle, right: z3.And(left > middle, right >= middle),
) -> str:
    """Where a continuous f is not log-concave there are x, y with f((x+y)/2)^2 < f(x) f(y).

    Where f > 0 between two places whose chord log f goes below, the middle is the first place at which it is farthest
    below: x is less far below the chord, y no farther, at equal distances. Where f is 0 from a to b, b = a allowed, and
    positive on both sides as near as one likes, x and y are such that their middle is between a and b.

    subject: of log f less the chord at x, at the middle and at y.
    """
    left, middle, right, height, slope, step = z3.Reals("left middle right height slope step")
    of_f = [height + by * slope * step + less for by, less in ((-1, left), (0, middle), (1, right))]
    follows(step > 0, subject(left, middle, right), goal=2 * of_f[1] < of_f[0] + of_f[2])
    a, b, before, after, fx, fy = z3.Reals("a b before after fx fy")
    near = (a <= b, before > 0, after > 0, z3.Or(before == after, z3.And(before <= b - a, after <= b - a)))
    follows(*near, goal=z3.And(2 * a <= a - before + b + after, a - before + b + after <= 2 * b))
    follows(fx > 0, fy > 0, goal=fx * fy > 0)
    return "a continuous density that is not log-concave has f((x+y)/2)^2 < f(x) f(y) somewhere (z3)"


def continuous_enough(fx: Any, fy: Any, fm: Any, eta: Any) -> Any:
    """How little f may change over the interval at x, at y and at their middle m, where f(x) f(y) > f(m)^2."""
    return eta * (fx + fy + 2 * fm) < fx * fy - fm * fm


@check(
    "text:only-log-concave",
    "thm:impossibility",
    "thm:impossibility/log-convex-step",
    rejects=[
        lambda fx, fy, fm, eta: z3.And(eta < fx, eta < fy),
        lambda fx, fy, fm, eta: eta * (fx + fy) < fx * fy - fm * fm,
        lambda fx, fy, fm, eta: 100 * eta * (fx + fy + 2 * fm) < 101 * (fx * fy - fm * fm),
        lambda fx, fy, fm, eta: z3.And(eta < fx, eta < fy, eta * (fx + fy + 2 * fm) <= fx * fy - fm * fm),
        lambda fx, fy, fm, eta: z3.And(fm > 0, eta * (fx + fy + 2 * fm) < fx * fy - fm * fm),
    ],
)
def check_every_density(subject: Callable[[Any, Any, Any, Any], Any] = continuous_enough) -> str:
    """Log-concavity is necessary for every continuous f, in both parametrisations, which share the scale 1.

    Where f(x) f(y) > f(m)^2 and m is the middle, f changes by less than any eta > 0 over a short enough interval
    [0, w]; then the masses of its three shifts break midpoint convexity of U (z3, for all values).  f(m) may be 0.
    """
    fx, fy, fm, eta, one, two, mid = z3.Reals("fx fy fm eta one two mid")
    values = (fx > 0, fy > 0, fm >= 0, eta > 0, fx * fy > fm * fm)
    small = subject(fx, fy, fm, eta)
    # some eta does, whatever the values: half the least that does not
    sum_of = fx + fy + 2 * fm
    follows(*values, 2 * eta * sum_of == fx * fy - fm * fm, goal=small)
    follows(*values, small, goal=z3.And(eta < fx, eta < fy))
    follows(*values, small, goal=(fx - eta) * (fy - eta) > (fm + eta) * (fm + eta))
    # the masses of intervals of length w, over w, are averages of f
    a, b, c = z3.Reals("a b c")  # fx - eta, fy - eta, fm + eta
    averages = (a > 0, b > 0, c > 0, one >= a, two >= b, mid >= 0, mid <= c)
    follows(*averages, a * b > c * c, goal=one * two > mid * mid)
    rng, found = np.random.default_rng(71), 0
    for _ in range(60):  # two bumps at random: somewhere between them the inequality fails, and narrow masses show it
        centre, ratio = float(rng.uniform(3, 8)), float(rng.uniform(0.2, 5))

        def density(x: Any, c: float = centre, r: float = ratio) -> Any:
            return mpmath.exp(-x * x / 2) + r * mpmath.exp(-((x - c) ** 2) / 2)

        x, y = mpmath.mpf(0), mpmath.mpf(centre)
        width = mpmath.mpf("0.01")
        masses_at = [mpmath.quad(density, [t, t + width]) for t in (x, (x + y) / 2, y)]
        found += masses_at[1] ** 2 < masses_at[0] * masses_at[2]
    assert found == 60
    return "log-concavity is necessary for every continuous density, in both parametrisations (z3; 60 pairs of bumps)"


def kink(x: Any) -> Any:
    """Log of a density up to its constant: two bumps that meet in a kink (thm:impossibility)."""
    return -((abs(x) - 1) ** 2)


def _cauchy_log(x: Any) -> Any:
    """Strictly convex on either side of 0, where it is largest."""
    return 1 / (1 + abs(x))


def _smoothed(x: Any) -> Any:
    """The kink rounded off by a parabola over a short interval, on which the density is log-convex."""
    width = F(1, 10**4)
    near = -((((x * x) / width + width) / 2 - 1) ** 2)
    if z3.is_expr(x):
        return z3.If(abs(x) >= width, kink(x), near)
    return kink(x) if abs(x) >= width else near


@check(
    "thm:impossibility",
    "thm:impossibility/log-convex-step",
    code=kink,
    rejects=[lambda x: -x * x, _cauchy_log, _smoothed, abs],
)
def check_kink_density(subject: Callable[[Any], Any] = kink) -> str:
    """Not log-concave, yet log-convex on no interval: the step "so f is strictly log-convex on [a, b]" is false."""
    assert subject(F(0)) < (subject(F(-1)) + subject(F(1))) / 2, "the density is log-concave"
    # Every interval has a part on one side of 0, and on each side the logarithm is strictly concave at all midpoints.
    low, high = z3.Reals("low high")
    for side in (low >= 0, high <= 0):
        bent = subject((low + high) / 2) * 2 > subject(low) + subject(high)
        follows(low < high, side, goal=bent)
    # The conclusion is still true: on (-1/4, 1/4], f at 0 is everywhere below f shifted by 1 and by -1.
    x = z3.Real("x")
    for shift in (-1, 1):
        follows(x >= -F(1, 4), x <= F(1, 4), goal=subject(x) < subject(x + shift))
    return (
        "log f = -(|x|-1)^2 is not log-concave and strictly log-concave on a part of every interval; U still not convex"
    )


def log_normal_below(x: Any) -> Any:
    """Mass of (0, x] under the lognormal law."""
    return (1 + sympy.erf(sympy.log(x) / sympy.sqrt(2))) / 2


@check(
    "thm:impossibility/rank-zero",
    rejects=[
        lambda x: (1 + sympy.erf(x / sympy.sqrt(2))) / 2,
        lambda x: 1 - sympy.exp(-x),
        lambda x: sympy.Rational(1, 2) + sympy.atan(x - 10) / sympy.pi,  # log-convex at 3, and its loss is not convex
    ],
)
def check_half_infinite(subject: Callable[[Any], Any] = log_normal_below) -> str:
    """With rank 0 the interval is (-inf, x_1] and convexity only needs a log-concave CDF, which the lognormal has.

    subject: a distribution function.
    """
    x, u = sympy.symbols("x", positive=True), sympy.symbols("u", real=True)
    below = subject(x)
    second = sympy.diff(sympy.log(sympy.diff(below, x)), x, 2)
    assert second.subs(x, 3).evalf() > 0, "the density is log-concave, no counterexample"
    value = sympy.lambdify(x, sympy.log(below), "mpmath")
    with mpmath.workdps(40):
        points = [mpmath.mpf(10) ** (k / mpmath.mpf(20)) for k in range(-60, 60)]
        for s, t in [*pairwise(points), *zip(points, points[7:], strict=False)]:
            assert value((s + t) / 2) >= (value(s) + value(t)) / 2, "the loss is not convex"
    # All places at once: log Phi(log x), h = phi/Phi at u = log x, has the second derivative -h (u + h + 1)/x^2, ..
    phi, mass = sympy.exp(-(u**2) / 2) / sympy.sqrt(2 * sympy.pi), (1 + sympy.erf(u / sympy.sqrt(2))) / 2
    bent = sympy.diff(sympy.log(mass), u, 2) - sympy.diff(sympy.log(mass), u)  # x^2 (d/dx)^2 = (d/du)^2 - d/du
    assert sympy.simplify(bent + phi / mass * (u + phi / mass + 1)) == 0
    # .. and u + h > 0: Phi times it rises, with slope Phi, from 0 at minus infinity.
    assert sympy.simplify(sympy.diff(phi + u * mass, u) - mass) == 0
    assert sympy.limit(phi + u * mass, u, -sympy.oo) == 0
    return (
        "rank 0: the lognormal is continuous, not log-concave (second derivative > 0 at 3), and U is convex for all x"
    )


Density = tuple[Callable[[Any], Any], int, int]  # f up to a constant, a, b
Locations = Callable[[Any, Any, int, int], tuple[Any, Any]]  # of x_[k], the length, a and b
STRICTLY_LOG_CONVEX: tuple[Density, ...] = (
    (lambda x: 1 / (1 + x * x), 1, 10),  # the Cauchy
    (lambda x: mpmath.exp(1 / (1 + x)), 0, 4),
)


def end_to_end(x: Any, length: Any, a: int, b: int) -> tuple[Any, Any]:
    """Locations that put the optimal interval at the one end of [a, b] and at the other."""
    return x - a, x - b + length


def _mass_at(density: Density, low: Any, high: Any) -> Any:
    """Integral of f over (low, high]; outside [a, b], where nothing is assumed of f, it falls like a steep normal."""
    f, a, b = density

    def extended(x: Any) -> Any:
        nearest = min(max(x, a), b)
        return f(nearest) * mpmath.exp(-100 * (x - nearest) ** 2)

    return mpmath.quad(extended, [low, *(end for end in (a, b) if low < end < high), high])


@check(
    "thm:impossibility/length",
    rejects=[
        (((lambda x: mpmath.exp(-x), 1, 10),), end_to_end, 1),  # log-linear: "strictly" is needed
        (((lambda x: mpmath.exp(-x * x / 2), 1, 10),), end_to_end, 1),
        (STRICTLY_LOG_CONVEX, lambda x, length, a, b: (x - a, x - b - length), 1),
        (STRICTLY_LOG_CONVEX, lambda x, length, a, b: (x - a, x - F(a + b, 2)), 1),  # the proof's, for half the length
        (STRICTLY_LOG_CONVEX, end_to_end, 1.01),
        (STRICTLY_LOG_CONVEX, end_to_end, 2.0),
    ],
)
def check_interval_length(
    subject: tuple[tuple[Density, ...], Locations, float] = (STRICTLY_LOG_CONVEX, end_to_end, 1),
) -> str:
    """f strictly log-convex on [a, b]: U is not convex for every interval shorter than b - a, not only (b-a)/2.

    subject: densities, the two locations, and the bound on the length in parts of b - a.
    """
    densities, locations, reach = subject
    draw = np.random.default_rng(89)
    for trial in range(100):  # f(mid) < sqrt(f(left) f(right)) at each place; Cauchy and Schwarz for the masses
        left, right = (draw.uniform(0.1, 5, 6) for _ in range(2))
        if trial % 2:
            right = left * draw.uniform(0.1, 5)  # parallel: all of the strictness is that of f
        middle = np.sqrt(left * right) * (1 - 10 ** draw.uniform(-6, -1, 6))
        assert middle.sum() ** 2 < left.sum() * right.sum()
    with mpmath.workdps(30):
        for density in densities:
            _, a, b = density
            for share, place in (("0.01", 0), ("0.3", -700), ("0.49", 3), ("0.7", 0.5), ("0.95", 10**4), ("0.999", -2)):
                length, x = mpmath.mpf(share) * (b - a) * reach, mpmath.mpf(place)
                ends = locations(x, length, a, b)
                lows = [x - theta for theta in (ends[0], (ends[0] + ends[1]) / 2, ends[1])]
                mass = [_mass_at(density, low, low + length) for low in lows]
                assert mass[1] ** 2 < mass[0] * mass[2] * (1 - mpmath.mpf("1e-12")), (a, b, share, place)
    return (
        "optimal interval of any length below b - a gives a non-convex U (Cauchy on [1, 10], exp(1/(1 + x)) on "
        "[0, 4]); the paper has (b-a)/2"
    )


@check(
    "thm:impossibility/convexity-gap",
    rejects=[lambda lam, u, v: lam * u - (1 - lam) * sympy.log(v), lambda lam, u, v: lam * u - (1 - lam) * v],
)
def check_convexity_gap(subject: Callable[..., Any] = lambda lam, u, v: lam * u + (1 - lam) * v) -> str:
    """U(mixture) - (lam U + (1 - lam) U') is the logarithm of Psi^lam Psi'^(1 - lam) over Psi of the mixture."""
    lam, first, second, mixed = sympy.symbols("lam Psi1 Psi2 Psi", positive=True)
    left = -sympy.log(mixed) - subject(lam, -sympy.log(first), -sympy.log(second))
    right = sympy.log(first**lam * second ** (1 - lam) / mixed)
    place = {lam: sympy.Rational(1, 2), first: sympy.Rational(1, 9), second: sympy.Rational(1, 4), mixed: HALF}
    assert abs(sympy.N((left - right).subs(place), 30)) < 1e-25
    assert sympy.simplify(sympy.expand_log(left - right, force=True)) == 0
    printed = -sympy.log(mixed) - (lam * -sympy.log(first) - (1 - lam) * sympy.log(-sympy.log(second)))
    stated = sympy.log(2) - sympy.log(3) + sympy.log(sympy.log(4)) / 2  # the row's counterexample
    assert sympy.simplify(right.subs(place) - sympy.log(sympy.Rational(1, 3))) == 0
    assert abs(sympy.N(printed.subs(place) - stated, 30)) < 1e-25 and sympy.N(stated - right.subs(place)) > 0.8
    return "thm:impossibility: the convexity gap is log(Psi^lam Psi'^(1 - lam)/Psi_mixture) for lam U + (1 - lam) U'"
