"""Burridge's theorem: for log-concave densities -log of a mass is jointly convex."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import sympy
import z3

from proofs_checks.engine.registry import check
from proofs_checks.tools.laplace import normal_mass
from proofs_checks.tools.solver import follows

F = Fraction


def _two_bumps(p: Any, q: Any) -> Any:
    """Of half a Normal at 3 and half a one at -3."""
    return (normal_mass(p - 3, q - 3) + normal_mass(p + 3, q + 3)) / 2


def _cauchy_mass(p: Any, q: Any) -> Any:
    return (mpmath.atan(q) - mpmath.atan(p)) / mpmath.pi


@check(
    "text:burridge", "text:only-log-concave", "thm:impossibility", "ours:burridge", rejects=[_cauchy_mass, _two_bumps]
)
def check_burridge(subject: Callable[[Any, Any], Any] = normal_mass) -> str:
    """For log-concave f, -log of the mass of (p, q) is jointly convex; p = a phi - theta, q = b phi - theta are linear.

    Log-concavity gives f'(q)/f(q) Z <= f(q) - f(p) <= f'(p)/f(p) Z for the mass Z.  With these, z3 shows that both
    diagonal second derivatives and the determinant have the right sign, for every smooth log-concave f; times f(p) and
    f(q) they hold where f is 0 too, so at the infinite end of a tail and outside of a support.
    """
    fp, fq, slope_p, slope_q = z3.Reals("fp fq slope_p slope_q")  # the slopes are f' times Z
    facts = (fp >= 0, fq >= 0, slope_q <= fq * (fq - fp), slope_p >= fp * (fq - fp))
    across, down = slope_q - fq * fq, -slope_p - fp * fp  # second derivatives of log Z, times Z^2
    follows(*facts, goal=z3.And(across <= 0, down <= 0, across * down >= (fp * fq) * (fp * fq)))
    rng = np.random.default_rng(3)
    with mpmath.workdps(60):
        for _ in range(300):
            points = []
            for _ in range(2):
                start = mpmath.mpf(rng.normal(0, 4))
                points.append((start, start + mpmath.mpf(10 ** rng.uniform(-3, 1))))
            middle = [(x + y) / 2 for x, y in zip(*points, strict=True)]
            assert subject(*middle) ** 2 >= subject(*points[0]) * subject(*points[1]), points
    return "(v, phi) makes -log mass convex for every smooth log-concave f (z3); Normal at 300 random chords"


def _box(x: F) -> F:
    """Distribution function of the uniform law on [0, 1]."""
    return min(max(x, F(0)), F(1))


def _tent(x: F) -> F:
    """That of the density 1 - |x| on [-1, 1]."""
    x = min(max(x, F(-1)), F(1))
    return (1 + 2 * x - x * abs(x)) / 2


def _valley(x: F) -> F:
    """That of the density |x| on [-1, 1]."""
    x = min(max(x, F(-1)), F(1))
    return (1 + x * abs(x)) / 2


@check(
    "text:burridge",
    "text:only-log-concave",
    "thm:impossibility",
    rejects=[
        ((_box, _valley), F(1)),
        ((lambda x: (_box(x + 1) + _box(x - 1)) / 2,), F(1)),
        ((_box, _tent), F(99, 100)),
    ],
)
def check_kinks_and_jumps(subject: tuple[tuple[Callable[[F], F], ...], F] = ((_box, _tent), F(1))) -> str:
    """For every log-concave f, smooth or not, the mass of the middle of two intervals is at least the geometric mean of
    the masses Z_1 and Z_2, also of tails. Let x and y run through the two so that equal shares of both masses lie below
    them: in the share, x rises by Z_1/f(x), y by Z_2/f(y), and their middle by half of the sum, at a density of
    sqrt(f(x) f(y)) or more; the product is at least sqrt(Z_1 Z_2) at every share (z3). Exact chords of a law with jumps
    and of one with kinks.

    subject: distribution functions, and a factor of f(x) f(y) in what log-concavity gives.
    """
    totals, factor = subject
    f, g, one, two, middle = z3.Reals("f g Z_1 Z_2 middle")
    known = (f > 0, g > 0, one > 0, two > 0, middle >= 0, middle * middle >= z3.RealVal(str(factor)) * f * g)
    rise = one * g + two * f  # twice the rise of the middle, times f g
    follows(*known, goal=middle * middle * rise * rise >= one * two * 4 * f * f * g * g)
    rng = np.random.default_rng(7)
    for _ in range(300):
        ends = np.sort(rng.integers(-24, 25, (2, 2)), axis=1)
        one_low, one_high, two_low, two_high = (F(int(end), 12) for end in ends.ravel())
        for total in totals:
            masses = total(one_high) - total(one_low), total(two_high) - total(two_low)
            half = total((one_high + two_high) / 2) - total((one_low + two_low) / 2)
            assert half**2 >= masses[0] * masses[1], (ends, total.__name__)
    return "every log-concave f: -log mass is convex along (p, q) (z3, share by share); a box and a tent at 300 chords"


Law = tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[Any], Any]]  # F, f, and the slope of log f
LAWS: dict[str, Law] = {
    "Normal": (mpmath.ncdf, mpmath.npdf, lambda x: -x),
    "logistic": (
        lambda x: 1 / (1 + mpmath.exp(-x)),
        lambda x: mpmath.sech(x / 2) ** 2 / 4,
        lambda x: -mpmath.tanh(x / 2),
    ),
    "Gumbel": (
        lambda x: mpmath.exp(-mpmath.exp(-x)),
        lambda x: mpmath.exp(-x - mpmath.exp(-x)),
        lambda x: mpmath.exp(-x) - 1,
    ),
    "exponential": (lambda x: 1 - mpmath.exp(-x), lambda x: mpmath.exp(-x), lambda x: mpmath.mpf(-1)),
    "its mirror": (mpmath.exp, mpmath.exp, lambda x: mpmath.mpf(1)),
    "Cauchy": (
        lambda x: mpmath.atan(x) / mpmath.pi,
        lambda x: 1 / mpmath.pi / (1 + x * x),
        lambda x: -2 * x / (1 + x * x),
    ),
}


@check(
    "ours:burridge",
    rejects=[(F(99, 100), F(1)), (F(101, 100), F(1)), (F(1), F(99, 100)), (F(1), F(101, 100)), (F(0), F(0))],
)
def check_two_lines(subject: tuple[F, F] = (F(1), F(1))) -> str:
    """The Hessian of log(F(q) - F(p)) by sympy; f'(q) Z <= f(q) (f(q) - f(p)) and f'(p) Z >= f(p) (f(q) - f(p)) for
    log-concave laws at many places, equalities for the exponential, but not for the Cauchy; and the signs of both
    minors from these two lines alone (z3).

    subject: factors of the two right sides.
    """
    (p, q), law = sympy.symbols("p q"), sympy.Function("F")
    mass = law(q) - law(p)
    f, g = law(p).diff(p), law(q).diff(q)
    for at, entry in (((q, q), g.diff(q) * mass - g**2), ((p, p), -f.diff(p) * mass - f**2), ((p, q), f * g)):
        assert sympy.simplify(sympy.log(mass).diff(*at) * mass**2 - entry) == 0, at
    one, two = (z3.RealVal(str(factor)) for factor in subject)
    # Both lines for every smooth log-concave f: the slope s of log f falls, so f' = s f lies between s_q f and s_p f
    # from p to q; summed up over it, s_q Z <= f(q) - f(p) <= s_p Z.
    s, s_p, s_q, height, share, rise = z3.Reals("s s_p s_q height Z rise")
    follows(s_q <= s, s <= s_p, height > 0, goal=z3.And(s_q * height <= s * height, s * height <= s_p * height))
    follows(height > 0, s_q * share <= rise, goal=height * (s_q * share) <= one * height * rise)
    follows(height > 0, s_p * share >= rise, goal=height * (s_p * share) >= two * height * rise)
    fp, fq, slope_p, slope_q = z3.Reals("fp fq slope_p slope_q")  # the slopes are f' times Z
    facts = (fp >= 0, fq >= 0, slope_q <= one * fq * (fq - fp), slope_p >= two * fp * (fq - fp))
    across, down = slope_q - fq * fq, -slope_p - fp * fp
    follows(*facts, goal=z3.And(across <= 0, down <= 0, across * down >= (fp * fq) * (fp * fq)))
    rng, broken = np.random.default_rng(5), set()
    with mpmath.workdps(40):
        for _ in range(25):
            low = mpmath.mpf(rng.exponential(2))
            for name, (total, density, slope) in LAWS.items():
                ends = [low, low + mpmath.mpf(10 ** rng.uniform(-3, 1))]
                ends = ends if name in ("exponential", "its mirror") or rng.random() < 0.5 else [-x for x in ends[::-1]]
                at, to = (density(x) for x in ends)
                z = total(ends[1]) - total(ends[0])
                rises = [(to - at) * factor.numerator / factor.denominator for factor in subject]
                lines = to * (rises[0] - slope(ends[1]) * z), at * (slope(ends[0]) * z - rises[1])
                if min(lines) < -(mpmath.mpf(10) ** -30):
                    broken.add(name)
                assert name[:3] not in ("exp", "its") or max(map(abs, lines)) < mpmath.mpf(10) ** -30, "equal"
    assert broken == {"Cauchy"}, broken
    return "f'(q) Z <= f(q) (f(q) - f(p)) <= f'(p) f(q) Z/f(p): the minors of the Hessian have their signs (sympy, z3)"
