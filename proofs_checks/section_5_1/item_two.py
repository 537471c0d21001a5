"""thm:impossibility, item 2: log-concave densities are not robust."""

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


@check(
    "text:not-robust",
    "text:tails",
    "thm:impossibility",
    "thm:impossibility/item-two-equality",
    "thm:impossibility/item-two-hypothesis",
    rejects=[
        *((by, 1.0, 1.0, 1) for by in (3.0, 1.01)),
        *((1.0, by, 1.0, 1) for by in (3.0, 1.01)),
        *((1.0, 1.0, by, 1) for by in (2.0, 1.01)),  # psi up to R/n
        (1.0, 1.0, 1.0, 0),  # q < 1/n
    ],
)
def check_centred_lower_bound(subject: tuple[float, float, float, int] = (1.0, 1.0, 1.0, 1)) -> str:
    """Item 2 with >= in place of =: U >= (c/2) R + log(1/(C psi)) at the printed data set, f <= C exp(-c|x|). Neither
    more than c/2 nor more than 1/C will do there, nor a larger psi than R/(2n), nor the rank 0.

    subject: a and b in parts of c/2 and 1/C, the largest psi in parts of R/(2n), and the least rank.
    """
    slope_factor, offset_factor, reach, least = subject
    x, slope, width, start = sympy.symbols("x c psi s", positive=True)  # any f <= C exp(-c |x|), C = 1, on [s, s + psi]
    mass = sympy.integrate(sympy.exp(-slope * x), (x, start, start + width))
    assert sympy.simplify(mass - sympy.exp(-slope * start) * (1 - sympy.exp(-slope * width)) / slope) == 0
    y, grown = z3.Reals("y grown")  # y = c psi and exp(-y) >= 1 - y: so U >= c s - log(C psi), and s >= R/2
    follows(y > 0, grown >= 1 - y, goal=1 - grown <= y)
    size, gap, n_, k = z3.Reals("R psi n k")
    known = (k >= least, k <= n_ - 1, n_ >= 2, gap > 0, 2 * n_ * gap <= z3.RealVal(str(reach)) * size)
    follows(*known, goal=2 * (size - (n_ - k + 1) * gap) >= size)
    families = {
        "Laplace": (mpmath.mpf(1) / 2, lambda x: mpmath.exp(-x) / 2),
        "Normal": (
            mpmath.exp(mpmath.mpf(1) / 2) / mpmath.sqrt(2 * mpmath.pi),
            lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2,
        ),
    }
    rng = np.random.default_rng(13)
    cases = [(n, rank, 1.0, radius) for n in (2, 3, 10**4) for rank in (least, n - 1) for radius in (0.01, 1, 2, 20)]
    while len(cases) < 150:
        n = int(rng.integers(2, 40))
        cases += [(n, int(rng.integers(least, n)), float(rng.uniform(0.01, 1)), 10 ** rng.uniform(-2, 1.3))]
    with mpmath.workdps(80):
        for constant, tail in families.values():
            for n, rank, share, size in cases:
                radius = mpmath.mpf(size)
                psi = radius / (2 * n) * mpmath.mpf(share) * mpmath.mpf(reach)
                start = radius - (n - rank + 1) * psi  # of the optimal interval, less the location
                mass = tail(start) - tail(start + psi) if rank else 1 - tail(start + psi)
                claimed = slope_factor * radius / 2 + mpmath.log(offset_factor / (constant * psi))
                assert -mpmath.log(mass) >= claimed, (n, rank, size)
    assert all(1 - (n - rank + 1) * share * reach / (2 * n) >= 0.5 - 1e-12 for n, rank, share, _ in cases), "s < R/2"
    return (
        f"U >= cR/2 + log(1/(C psi)) at the printed data set: Laplace and Normal, {len(cases)} cases of (R, psi, n, q)"
    )


@check(
    "text:not-robust",
    "thm:impossibility",
    "thm:impossibility/item-two-hypothesis",
    rejects=[
        lambda left, right: z3.If(left >= right, left, right),
        lambda left, right: right,
        lambda left, right: F(101, 100) * z3.If(left <= right, left, right),
    ],
)
def check_exponential_tails(
    subject: Callable[[Any, Any], Any] = lambda left, right: z3.If(left <= right, left, right),
) -> str:
    """Every continuous log-concave density is at most C exp(-c |x|), as Lemma 1 of Cule and Samworth (2010) says: on
    each side of a place inside its support, here 0, it is smaller somewhere and not yet 0, and log f falls at least as
    fast beyond that place as on the way to it. Those that jump to 0: `check_jumps`.

    subject: c, from the slopes of log f between 0 and the two places.
    """
    near, far, top, at_far = z3.Reals("near far top at_far")  # 0 < near < far, or both negated; log f at 0 and at far
    fall, bound = z3.Reals("fall bound")  # log f at near is top - fall * near
    concave = (near > 0, near < far, far * (top - fall * near) >= (far - near) * top + near * at_far)
    follows(*concave, goal=at_far <= top - fall * far)
    left, right = z3.Reals("left right")
    rate = subject(left, right)
    for slope in (left, right):
        follows(left > 0, right > 0, far > 0, at_far <= top - slope * far, goal=at_far <= top - rate * far)
    follows(left > 0, right > 0, goal=rate > 0)
    # In between log f is below the line of the other side carried on, so at most `bound`, and C = exp(bound + c near).
    middle, value = z3.Reals("middle value")
    inside = (
        middle > 0,
        middle < near,
        fall > 0,
        far > 0,
        (far + middle) * top >= middle * (top - fall * far) + far * value,
    )
    follows(*inside, bound >= top + fall * near, rate > 0, goal=value <= bound + rate * near - rate * middle)
    return "every continuous log-concave density is below some C exp(-c |x|) with c > 0 (z3)"


@check(
    "text:not-robust",
    "thm:impossibility",
    "thm:impossibility/item-two-hypothesis",
    rejects=[lambda fall: 0, lambda fall: fall / 2, lambda fall: F(99, 100) * fall],
)
def check_jumps(subject: Callable[[Any], Any] = lambda fall: fall) -> str:
    """The same of a log-concave density that on one side of 0 is not smaller before it is 0, as that of a uniform law
    or of waiting times: up to the end of its support log f is below the line from a place on the other side through 0,
    so C = exp(bound + c end).

    subject: what log f rises at most to the one side, per length, if it falls by that on the way to the other.
    """
    near, middle, end, top, before = z3.Reals("near middle end top before")  # log f at 0 and at -near
    value, fall, bound, rate = z3.Reals("value fall bound rate")
    concave = (near > 0, middle > 0, middle <= end, (near + middle) * top >= middle * before + near * value)
    line = (fall >= 0, near * fall >= top - before, bound >= top + subject(fall) * end)
    follows(*concave, *line, rate > 0, goal=value <= bound)
    follows(middle <= end, rate > 0, value <= bound, goal=value <= bound + rate * end - rate * middle)
    return "log-concave densities that jump to 0 are below some C exp(-c |x|) as well (z3)"


def cauchy_worst(radius: Any, psi: Any) -> Any:
    """Upper bound of the Cauchy loss over all data in (-R, R) with separation psi."""
    return mpmath.log(mpmath.pi * (1 + radius**2) / psi)


@check(
    "thm:impossibility/item-two-hypothesis",
    rejects=[
        lambda radius, psi: radius * 1000 + mpmath.log(1 / psi),
        lambda radius, psi: radius,
        lambda radius, psi: mpmath.log(3 * (1 + radius**2) / psi),
        lambda radius, psi: mpmath.log(mpmath.pi * radius**2 / psi),
        *(lambda radius, psi, by=by: by * cauchy_worst(radius, psi) for by in (0.99, 1.01)),
    ],
)
def check_missing_hypothesis(subject: Callable[[Any, Any], Any] = cauchy_worst) -> str:
    """Item 2 of the appendix is for every f; the Cauchy's log(pi (1+R^2)/psi) is below aR + log(b/psi) for large R, and
    above its loss on every data set: a cell of width psi in (-R, R) has at least psi times the density at R."""
    place, reach, least_width, cell = z3.Reals("place R psi width")
    lowest = (reach >= place, place >= -reach, least_width > 0, cell >= least_width)  # over all of the cell
    follows(*lowest, goal=cell / (1 + place * place) >= least_width / (1 + reach * reach))
    rng = np.random.default_rng(83)
    for _ in range(300):
        radius, share = 10 ** rng.uniform(-2, 4), float(rng.uniform(0.001, 1))
        width = 2 * radius * share
        low = float(rng.uniform(-radius, radius - width)) if rng.random() < 0.5 else radius - width
        mass = (mpmath.atan(low + width) - mpmath.atan(low)) / mpmath.pi
        assert -mpmath.log(mass) <= subject(mpmath.mpf(radius), mpmath.mpf(width)) + 1e-12, (radius, width)
    for size in (mpmath.mpf(1), mpmath.mpf(1000)):  # a narrow cell at R
        narrow = -mpmath.log((mpmath.atan(size) - mpmath.atan(size * (1 - mpmath.mpf("1e-6")))) / mpmath.pi)
        assert subject(size, size * mpmath.mpf("1e-6")) < narrow + 1e-3, "a smaller bound would do"
    size, offset = sympy.symbols("R b", positive=True)  # for all a and b: the excess of the bound, over R, tends to 0
    assert sympy.limit(sympy.log(sympy.pi * (1 + size**2) / offset) / size, size, sympy.oo) == 0
    for a in (mpmath.mpf(10) ** k for k in range(-6, 3)):
        for b in (mpmath.mpf(10) ** k for k in range(-6, 3)):
            radius = mpmath.mpf(1)
            while subject(radius, 1) >= a * radius + mpmath.log(b):
                radius *= 2
                assert radius < 2**80, "no radius refutes the claim"
    return "item 2 fails for the Cauchy at every (a, b): log-concavity is needed, as the main text says"


def laplace_mass(p: Any, q: Any) -> Any:
    """Mass of (p, q] under Laplace(0, 1), for which equality in item 2 does hold with a = 1/10, b = 2."""
    if p >= 0:
        return (mpmath.exp(-p) - mpmath.exp(-q)) / 2
    return 1 - (mpmath.exp(p) + mpmath.exp(-q)) / 2


@check("thm:impossibility/item-two-equality", rejects=[laplace_mass, lambda p, q: laplace_mass(2 * p, 2 * q)])
def check_item_two_equality(subject: Callable[[Any, Any], Any] = normal_mass) -> str:
    """With "=" item 2 is false for the Normal: n = 2, psi = R/4, no location in (-R, R) attains aR + log(b/psi).

    As R falls to 0 every attainable value is log(1/(f(0) psi)) + O(R^2), so that b must be 1/f(0), and then a = 0.
    """
    with mpmath.workdps(60):
        narrow = mpmath.mpf(10) ** -20
        flat = 2 * narrow / subject(-narrow, narrow)  # 1/f(0)
        for a in (mpmath.mpf(10) ** k for k in range(-6, 4)):
            for b in (flat * r for r in (mpmath.mpf("1e-3"), 0.5, 0.99, 1, 1.01, 2, 1000)):
                missed = False
                for k in range(1, 60):
                    radius = mpmath.mpf(2) ** -k
                    psi = radius / 4
                    least, most = -mpmath.log(subject(-psi / 2, psi / 2)), -mpmath.log(subject(radius - psi, radius))
                    missed = missed or not least <= a * radius + mpmath.log(b / psi) <= most
                assert missed, f"a={float(a)}, b={float(b)} attains equality at every R"
        # All a > 0 and b: aR + log(b f(0)) leaves (0, R^2/2) at R = a, or where it is half of its value at 0.
        slope, start, size = z3.Reals("a start R")
        follows(slope > 0, start >= 0, size == slope, goal=slope * size + start > size * size / 2)
        follows(slope > 0, start < 0, 2 * slope * size == -start, goal=z3.And(size > 0, slope * size + start < 0))
        for k in range(60):  # the density on (-R, R) is from exp(-R^2/2) to 1 times that at 0
            radius = mpmath.mpf(2) ** -k
            ends = [mpmath.sqrt(2 * mpmath.pi) * subject(x - radius / 4, x) for x in (radius / 8, radius)]
            assert 0 < -mpmath.log(ends[0] / radius * 4) < -mpmath.log(ends[1] / radius * 4) < radius**2 / 2, "O(R^2)"
    return (
        "for 70 pairs (a, b) there is R with aR + log(b/psi) outside every value of U (Normal, n=2): '=' must be '>='"
    )
