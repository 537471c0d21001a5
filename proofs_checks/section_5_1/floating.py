"""Losses in floating point: eq:closed-form/stable."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import mpmath
import numpy as np
import sympy
from sympy.integrals.risch import NonElementaryIntegral, risch_integrate

from pq.losses import laplace_interval
from proofs_checks.engine.registry import check
from proofs_checks.section_5_1.laplace import density_integral
from proofs_checks.tools.laplace import stable_float

F = Fraction
Loss = Callable[[float, float, float, float], float]


def printed_float(theta: float, phi: float, a: float, b: float) -> float:
    """``eq:closed-form`` typed as printed, in float64."""
    half, z = (b - a) / 2 * phi, theta - (a + b) / 2 * phi
    with np.errstate(all="ignore"):
        if a * phi <= theta <= b * phi:
            return float(half - np.log(np.exp(half) - np.cosh(z)))
        return float(np.abs(z) - np.log(np.sinh(half)))


def distances(theta: float, phi: float, a: float, b: float) -> tuple[float, float]:
    """How far the upper end is above the location and the lower one below it, in scales: exact, then rounded once."""
    place, scale = F(theta), F(phi)
    return float(F(b) * scale - place), float(place - F(a) * scale)


def stable_inside(near: float, far: float) -> float:
    """log1p of what is lost, where that is less than a half, and else expm1 of both ends."""
    lost = (math.exp(-near) + math.exp(-far)) / 2
    return -math.log1p(-lost) if lost < 0.5 else math.log(2) - math.log(-math.expm1(-near) - math.expm1(-far))


def stable_outside(distance: float, width: float) -> float:
    """distance: |z| - u. width: 2u."""
    return distance + math.log(2) - math.log(-math.expm1(-width))


def _two_branches(near: float, far: float) -> float:
    """log1p inside whatever is lost there, which is all of it where the interval is narrow."""
    lost = (math.exp(-near) + math.exp(-far)) / 2
    return -math.log1p(-lost) if lost < 1 else math.inf


def _one_branch(near: float, far: float) -> float:
    """expm1 of both ends inside, which loses the small loss of a wide interval."""
    return math.log(2) - math.log(-math.expm1(-near) - math.expm1(-far))


def _without_expm1(distance: float, width: float) -> float:
    """exp for expm1 outside."""
    return distance + math.log(2) - (math.log(1 - math.exp(-width)) if width > 1e-16 else -math.inf)


def stable_form(
    inside: Callable[[float, float], float] = stable_inside, outside: Callable[[float, float], float] = stable_outside
) -> Loss:
    """The row's loss in float64, from distances that are rounded once."""

    def loss(theta: float, phi: float, a: float, b: float) -> float:
        near, far = distances(theta, phi, a, b)
        return inside(near, far) if min(near, far) >= 0 else outside(-min(near, far), (b - a) * phi)

    return loss


STABLE = stable_form()


def _products_first(theta: float, phi: float, a: float, b: float) -> float:
    """The same with rounded products of the ends and phi."""
    try:
        return stable_float(theta, phi, a, b)
    except ValueError:  # both distances are 0
        return math.inf


def _printed_outside(theta: float, phi: float, a: float, b: float) -> float:
    inside = min(distances(theta, phi, a, b)) >= 0
    return STABLE(theta, phi, a, b) if inside else printed_float(theta, phi, a, b)


def drawn_places(count: int) -> Iterator[tuple[float, float, float, float]]:
    """Locations in intervals, at their ends and outside of them, all of any width and as far out as can be."""
    rng = np.random.default_rng(61)
    for _ in range(count):
        phi, a = 10 ** rng.uniform(-3, 3), float(rng.choice([-1, 0, 1]) * 10 ** rng.uniform(-3, 4))
        b = a + max(10 ** rng.uniform(-12, 6), float(np.spacing(abs(a))))
        part = float(rng.choice([rng.random(), 0.0, 1.0, 1 + 10 ** rng.uniform(-9, 2), -(10 ** rng.uniform(-9, 2))]))
        yield phi * (a + (b - a) * part), phi, a, b


@check(
    "eq:closed-form/stable",
    code=laplace_interval,
    rejects=[
        printed_float,
        _products_first,
        stable_form(inside=_two_branches),
        stable_form(inside=_one_branch),
        stable_form(outside=_without_expm1),
        _printed_outside,
    ],
)
def check_floating_point(subject: Loss = STABLE) -> str:
    """The printed formula overflows at w phi = 1500 and loses everything at 1e-20; a stable form is right at both,
    and at places drawn from all regimes."""
    cases = [(0.0, 1.0, -w / 2, w / 2) for w in (1e-300, 1e-20, 1e-16, 1e-8, 1.0, 100.0, 1500.0, 1e5)]
    cases += [(-50.0, 1.0, 0.0, w) for w in (1e-20, 1e-10, 1.0, 1500.0)]
    cases += [(0.0, 1.0, 800.0, 801.0), (0.5, 1.0, 0.0, 2000.0)]
    far_out = (300.0, 0.3, 1000.0, 1000.0 + 2.0**-43)
    assert _products_first(*far_out) == math.inf and round(float(density_integral(*far_out)), 1) == 31.7, "the row's"
    for case in (far_out, *drawn_places(300)):
        exact = density_integral(*case, digits=420)
        for value in (subject(*case), float(laplace_interval(*case)[0])):
            assert abs(value - exact) <= 1e-12 * max(abs(exact), mpmath.mpf("1e-300")), (case, value, exact)
    broken = []
    for case in cases:
        exact = float(density_integral(*case, digits=1200 if case[3] - case[2] > 1000 else 420))
        for value in (subject(*case), float(laplace_interval(*case)[0])):
            assert abs(value - exact) <= 1e-12 * max(abs(exact), 1e-300), (case, value, exact)
        naive = printed_float(*case)
        if not abs(naive - exact) <= 1e-6 * max(abs(exact), 1e-300):
            broken.append((case[3] - case[2], naive, exact))
    assert any(width > 1420 for width, *_ in broken)
    assert any(0 < width < 1e-15 for width, *_ in broken)
    _, naive, exact = next(x for x in broken if x[0] == 1500.0)
    assert (naive, round(exact, 9)) == (-math.inf, 0.0), "as the row says"
    assert printed_float(0.0, 1.0, -5e-21, 5e-21) == math.inf
    assert _two_branches(5e-17, 5e-17) == math.inf
    exact_at = [density_integral(0.0, 1.0, -width / 2, width / 2) for width in (1e-20, 1e-16)]
    assert [round(float(value), 1) for value in exact_at] == [46.7, 37.5], "as the row says"
    shown = f"w phi = 1500: {naive} for {exact:.3g}"
    return f"printed formula wrong on {len(broken)} of {len(cases)} inputs ({shown}); a stable form is right to 1e-12"


def printed_normal(low: float, high: float) -> float:
    """-log of the difference of two distribution functions, in float64."""
    mass = 0.5 * math.erfc(-high / math.sqrt(2)) - 0.5 * math.erfc(-low / math.sqrt(2))
    return -math.log(mass) if mass > 0 else math.inf


@check(
    "eq:closed-form/stable",
    rejects=[printed_normal, lambda low, high: printed_normal(-abs(high), -abs(low)) if low * high > 0 else math.inf],
)
def check_normal_loss(subject: Callable[[float, float], float] | None = None) -> str:
    """The Gaussian loss has no elementary closed form (Risch's algorithm: its density has no elementary integral), and
    is computed as stably as the Laplace one: to 1e-12 against mpmath, in tails, narrow cells and nearly all of it."""
    from pq import Normal

    loss = subject or (lambda low, high: -float(Normal(0, 1).log_mass(low, high)))
    x = sympy.Symbol("x")
    assert isinstance(risch_integrate(sympy.exp(-(x**2) / 2), x), NonElementaryIntegral), "an elementary function"
    cells = [(-1.0, 1.0), (6.0, 6.1), (9.0, 9.0 + 1e-9), (38.0, 39.0), (200.0, 201.0), (-40.0, -38.0)]
    cells += [
        (0.0, 1e-300),
        (-1e-20, 1e-20),
        (5.0, 5.0 + 1e-12),
        (1e4, 1e4 + 1),
        (-9.0, 9.0),
        (-300.0, 300.0),
        (-38.0, 5.0),
    ]
    with mpmath.workdps(420):
        for low, high in cells:
            a, b = sorted((abs(mpmath.mpf(low)), abs(mpmath.mpf(high)))) if low * high > 0 else (low, high)
            root = mpmath.sqrt(2)
            exact = -mpmath.log((mpmath.erfc(a / root) - mpmath.erfc(b / root)) / 2)
            assert abs(loss(low, high) - exact) <= 1e-12 * max(abs(exact), mpmath.mpf(10) ** -300), (low, high)
    return "Gaussian loss: float64 agrees with mpmath to twelve digits in far tails, narrow cells and wide ones"
