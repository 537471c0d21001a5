"""The Laplace loss: closed form and convexity."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import mpmath
import sympy

from pq.losses import laplace_interval
from proofs_checks.engine.registry import check
from proofs_checks.tools.laplace import closed_form, laplace_points, mpf_of

Branch = Callable[[Any, Any], Any]


def inner_branch(u: Any, z: Any) -> Any:
    """U where the location lies in the interval: u = w phi / 2, z = theta - c phi, w its width, c its middle."""
    return u - sympy.log(sympy.exp(u) - sympy.cosh(z))


def outer_branch(u: Any, z: Any) -> Any:
    """U for z >= u; for z <= -u it is that of -z."""
    return z - sympy.log(sympy.sinh(u))


@check(
    "text:burridge",
    "eq:closed-form/joint-convexity",
    "ours:level-sets",
    rejects=[
        (lambda u, z: u - sympy.log(sympy.exp(u) + sympy.cosh(z)), outer_branch),
        (lambda u, z: u - sympy.log(sympy.exp(2 * u) - sympy.cosh(z)), outer_branch),
        (lambda u, z: inner_branch(u, z) * sympy.Rational(101, 100), outer_branch),
        (inner_branch, lambda u, z: z - sympy.log(sympy.cosh(u))),
        (inner_branch, lambda u, z: z - sympy.log(u)),
        (inner_branch, lambda u, z: outer_branch(u, z) + sympy.log(2)),
        (inner_branch, lambda u, z: outer_branch(u, z) * sympy.Rational(99, 100)),
        (inner_branch, lambda u, z: outer_branch(u, z) + z * (z - u)),
    ],
)
def check_joint_convexity(subject: tuple[Branch, Branch] = (inner_branch, outer_branch)) -> str:
    """U is jointly convex in (theta, phi): Hessian inside, sum of convex terms outside, C1 where the branches meet."""
    u, z = sympy.symbols("u z", positive=True)
    loss, outside = (branch(u, z) for branch in subject)
    base = sympy.exp(u) - sympy.cosh(z)
    assert sympy.simplify(subject[0](u, -z) - loss) == 0, "even in z"
    entries = {
        (u, u): sympy.exp(u) * sympy.cosh(z),
        (z, z): sympy.exp(u) * sympy.cosh(z) - 1,
        (u, z): -sympy.exp(u) * sympy.sinh(z),
    }
    for (x, y), numerator in entries.items():
        gap = (sympy.diff(loss, x, y) * base**2 - numerator).rewrite(sympy.exp)
        assert abs(sympy.N(gap.subs({u: sympy.Rational(3, 2), z: sympy.Rational(1, 3)}), 30)) < 1e-20, (x, y)
        assert sympy.simplify(sympy.expand(gap)) == 0, (x, y)
    determinant = entries[u, u] * entries[z, z] - entries[u, z] ** 2 - sympy.exp(u) * base
    assert sympy.simplify(sympy.expand(determinant.rewrite(sympy.exp))) == 0
    # For 0 < u and |z| <= u: exp(u) cosh(z) > 1 and base >= exp(u) - cosh(u) = sinh(u) > 0, so that both minors are
    # positive: strictly convex inside. Outside the only second derivative is 1/sinh(u)^2: convex.
    assert sympy.simplify((base.subs(z, u) - sympy.sinh(u)).rewrite(sympy.exp)) == 0
    assert sympy.simplify(sympy.diff(outside, u, 2) * sympy.sinh(u) ** 2) == 1
    assert sympy.simplify(sympy.diff(outside, z, 2)) == 0 and sympy.simplify(sympy.diff(outside, u, z)) == 0
    # A convex function on each side with one value and one gradient where they meet is convex on the whole.
    assert sympy.simplify(sympy.exp(loss - outside).subs(z, u).rewrite(sympy.exp)) == 1
    for variable in (u, z):
        slopes = sympy.diff(loss - outside, variable).subs(z, u)
        assert sympy.simplify(slopes.rewrite(sympy.exp)) == 0, variable
    bend = (entries[z, z].subs(z, u) - sympy.exp(u) * sympy.sinh(u)).rewrite(sympy.exp)
    assert sympy.simplify(bend) == 0, "the second derivative in z jumps to 0: not twice continuously differentiable"
    return "jointly convex in (theta, phi): Hessian minors (sympy), strictly inside; C1 where the two branches meet"


def near_tail(t: Any) -> Any:
    """U at rank 0 with the location below b, t = b phi - theta; at rank n with t = theta - a phi."""
    return -sympy.log(1 - sympy.exp(-t) / 2)


def far_tail(t: Any) -> Any:
    """The same where t is negative."""
    return sympy.log(2) - t


@check(
    "eq:closed-form/joint-convexity",
    "text:burridge",
    code=laplace_interval,
    rejects=[
        (lambda t: -sympy.log(1 - sympy.exp(-t) / 3), far_tail),
        (lambda t: near_tail(t) * sympy.Rational(101, 100), far_tail),
        (lambda t: -sympy.log(1 - sympy.exp(-2 * t) / 2), far_tail),
        (near_tail, lambda t: sympy.log(2) - 2 * t),
        (near_tail, lambda t: sympy.log(2) - sympy.sinh(t)),
    ],
)
def check_convex_tails(subject: tuple[Callable[[Any], Any], Callable[[Any], Any]] = (near_tail, far_tail)) -> str:
    """At ranks 0 and n U is a convex function of t, which is linear in (theta, phi): second derivatives, and one slope
    where the two meet; the package's losses are these."""
    t = sympy.symbols("t", real=True)
    near, far = (part(t) for part in subject)
    share = sympy.exp(-t) / 2  # at most 1/2 for t >= 0, so the second derivative is positive
    assert sympy.simplify(sympy.diff(near, t, 2) * (1 - share) ** 2 - share) == 0
    assert sympy.diff(far, t, 2) == 0
    assert sympy.simplify((near - far).subs(t, 0)) == 0 and sympy.simplify(sympy.diff(near - far, t).subs(t, 0)) == 0
    for theta, phi, end in itertools.product((-3.0, 0.5, 7.0), (0.2, 1.0, 4.0), (-2.0, 0.0, 3.0)):
        for ends, place in (((-math.inf, end), end * phi - theta), ((end, math.inf), theta - end * phi)):
            wanted = float(sympy.N((near if place >= 0 else far).subs(t, place), 30))
            assert math.isclose(float(laplace_interval(theta, phi, *ends)[0]), wanted, rel_tol=1e-9, abs_tol=1e-12)
    return "ranks 0 and n: the Laplace loss is convex in (theta, phi), C1 at the end of the interval (sympy)"


def density_integral(theta: Any, phi: Any, a: Any, b: Any, digits: int = 50) -> Any:
    """Return minus the log of the Laplace(theta/phi, 1/phi) measure of (a, b] from its distribution function."""
    with mpmath.workdps(digits):
        location, rate = mpmath.mpf(theta) / phi, mpmath.mpf(phi)

        def below(x: Any) -> Any:
            y = (x - location) * rate
            return mpmath.exp(y) / 2 if y <= 0 else 1 - mpmath.exp(-y) / 2

        def above(x: Any) -> Any:
            return below(2 * location - x)

        a, b = mpmath.mpf(a), mpmath.mpf(b)
        with mpmath.workdps(digits + 60):
            mass = above(a) - above(b) if a > location else below(b) - below(a)
        return -mpmath.log(mass)


def sign_form(theta: Any, phi: Any, a: Any, b: Any) -> Any:
    """The first display, with signs: minus the log of a difference of two signed masses, over 2."""
    ends = []
    with mpmath.workdps(400):
        for end in (b, a):
            offset = end - theta / phi
            ends.append(mpmath.sign(offset) * (1 - mpmath.exp(-abs(offset) * phi)))
        return mpmath.log(2) - mpmath.log(ends[0] - ends[1])


def _wrong_sign(theta: Any, phi: Any, a: Any, b: Any) -> Any:
    """The closed form with sinh for cosh inside."""
    h, z = (b - a) * phi / 2, theta - (a + b) * phi / 2
    if a * phi <= theta <= b * phi:
        return h - mpmath.log(mpmath.exp(h) - mpmath.sinh(abs(z)))
    return abs(z) - mpmath.log(mpmath.sinh(h))


@check("eq:closed-form", rejects=[_wrong_sign, lambda *args: closed_form(*args) + mpmath.log(2)])
def check_closed_form(subject: Callable[..., Any] = closed_form) -> str:
    """The closed form is the integral of the density: symbolic in each regime, 40 digits at points of all regimes."""
    theta, o = sympy.symbols("theta o", real=True)
    h, c, phi, gap = sympy.symbols("h c phi gap", positive=True)
    a, b = c - h, c + h
    # Left of the interval (the right by reflection): theta = a phi - gap.  Inside: split the integral at theta/phi.
    tail = sympy.integrate(phi / 2 * sympy.exp(-(phi * o - theta)), (o, a, b)).subs(theta, a * phi - gap)
    wanted = sympy.exp(-(gap + h * phi)) * sympy.sinh(h * phi)
    assert sympy.simplify((tail - wanted).rewrite(sympy.exp)) == 0
    left = sympy.integrate(phi / 2 * sympy.exp(phi * o - theta), (o, a, theta / phi))
    right = sympy.integrate(phi / 2 * sympy.exp(theta - phi * o), (o, theta / phi, b))
    inside = 1 - sympy.exp(-h * phi) * sympy.cosh(theta - c * phi)
    assert sympy.simplify(sympy.expand((left + right - inside).rewrite(sympy.exp))) == 0
    worst = mpmath.mpf(0)
    with mpmath.workdps(60):
        for point in laplace_points():
            t, f, low, high = map(mpf_of, point)
            exact = density_integral(t, f, low, high, 60)
            worst = max(worst, abs(subject(t, f, low, high) - exact))
            assert abs(sign_form(t, f, low, high) - exact) < mpmath.mpf(10) ** -20
        assert worst < mpmath.mpf(10) ** -40, f"closed form off by {mpmath.nstr(worst, 5)}"
    return f"closed form = integral of the density: sympy in both regimes, {len(laplace_points())} points to 40 digits"


@check(
    "eq:closed-form",
    code=laplace_interval,
    rejects=[
        closed_form,
        lambda theta, phi, a, b: sign_form(theta, phi, a, b) - mpmath.log(2),
        lambda theta, phi, a, b: sign_form(theta, phi, max(a, b - 1000), min(b, a + 10)),
    ],
)
def check_tails_of_laplace(subject: Callable[..., Any] = sign_form) -> str:
    """Rank 0 has a = -infinity and rank n has b = infinity: the mass formula is right there, log 2 at the location, and
    the closed form is not defined."""
    with mpmath.workdps(40):
        for phi, place in itertools.product((mpmath.mpf(1) / 50, mpmath.mpf(3)), range(-2, 3)):
            tail = mpmath.exp(-abs(place) * phi) / 2
            small, large = tail if place <= 0 else 1 - tail, tail if place >= 0 else 1 - tail  # left and right of it
            for (a, b), mass in (((-mpmath.inf, 7 + place), small), ((7 + place, mpmath.inf), large)):
                loss = subject(7 * phi, phi, a, b)
                assert abs(loss + mpmath.log(mass)) < mpmath.mpf(10) ** -30, (phi, a, b)
                assert place or abs(loss - mpmath.log(2)) < mpmath.mpf(10) ** -30, "as the row says"
                assert math.isclose(float(laplace_interval(float(7 * phi), float(phi), a, b)[0]), loss, rel_tol=1e-12)
                assert not mpmath.isfinite(closed_form(7 * phi, phi, a, b))
    return "the mass formula at ranks 0 and n, where the closed form is not defined: 20 tails, log 2 at the location"
