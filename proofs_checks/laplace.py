"""The case of the Laplacian (Appendix C): closed form, derivatives, bounds, convexity and floating point.

Notation: a < b ends of the optimal interval, w = b - a, h = w/2, c = (a+b)/2, u = h phi, z = theta - c phi.  Inside the
interval, |z| <= u, everything is rational in p = exp(-(b phi - theta)) and q = exp(-(theta - a phi)): the mass is
1 - (p+q)/2, and p, q lie in (0, 1].  That turns bounds "over the whole domain" into polynomial ones, which z3 proves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import sympy
import z3

Loss = Callable[[float, float, float, float], float]


def prove(*facts: Any, goal: Any, timeout: int = 20_000) -> None:
    """Assert that z3 refutes the negation of ``goal`` under ``facts`` over the reals."""
    solver = z3.Solver()
    solver.set("timeout", timeout)
    solver.add(*facts, z3.Not(goal))
    outcome = solver.check()
    assert outcome == z3.unsat, f"{outcome}: {solver.model() if outcome == z3.sat else goal}"


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


def closed_form(theta: Any, phi: Any, a: Any, b: Any) -> Any:
    """``eq:closed-form`` with the letters of the paper, in mpmath."""
    h, z = (b - a) * phi / 2, theta - (a + b) * phi / 2
    if a * phi <= theta <= b * phi:
        return h - mpmath.log(mpmath.exp(h) - mpmath.cosh(z))
    return abs(z) - mpmath.log(mpmath.sinh(h))


def sign_form(theta: Any, phi: Any, a: Any, b: Any) -> Any:
    """The first display, with signs: minus the log of a difference of two signed masses, over 2."""
    ends = []
    with mpmath.workdps(400):
        for end in (b, a):
            offset = end - theta / phi
            ends.append(mpmath.sign(offset) * (1 - mpmath.exp(-abs(offset) * phi)))
        return mpmath.log(2) - mpmath.log(ends[0] - ends[1])


def _points() -> list[tuple[Fraction, Fraction, Fraction, Fraction]]:
    """Exact points in every regime: inside, outside on both sides, at the ends, wide and narrow."""
    points = []
    for a, b in ((-1, 2), (1, 3), (-7, -5), (0, 1), (-3, 3)):
        for phi in (Fraction(1, 50), Fraction(1, 2), Fraction(3), Fraction(20)):
            for part in (Fraction(-3), Fraction(0), Fraction(1, 7), Fraction(1, 2), Fraction(1), Fraction(4)):
                points.append((phi * (a + part * (b - a)), phi, Fraction(a), Fraction(b)))
    return points


def _mpf(x: Fraction) -> Any:
    return mpmath.mpf(x.numerator) / x.denominator


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
        for point in _points():
            t, f, low, high = map(_mpf, point)
            exact = density_integral(t, f, low, high, 60)
            worst = max(worst, abs(subject(t, f, low, high) - exact))
            assert abs(sign_form(t, f, low, high) - exact) < mpmath.mpf(10) ** -20
        assert worst < mpmath.mpf(10) ** -40, f"closed form off by {mpmath.nstr(worst, 5)}"
    return f"closed form = integral of the density: sympy in both regimes, {len(_points())} points to 40 digits"


def derivatives(theta: Any, phi: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """The derivatives that the paper prints, in mpmath."""
    h, c = (b - a) / 2, (a + b) / 2
    if a * phi <= theta <= b * phi:
        base = mpmath.exp(h * phi) - mpmath.cosh(theta - c * phi)
        turn = mpmath.sinh(c * phi - theta)
        return -turn / base, h - ((b - a) * mpmath.exp(h * phi) - (a + b) * turn) / (2 * base)
    sign = mpmath.sign(c * phi - theta)
    return -sign, c * sign - h * mpmath.coth(h * phi)


def check_derivatives(subject: Callable[..., tuple[Any, Any]] = derivatives) -> str:
    """The printed derivatives are the derivatives of the closed form: symbolic, and numeric at the points."""
    theta, phi, h, c = sympy.symbols("theta phi h c", real=True)
    z, base = theta - c * phi, sympy.exp(h * phi) - sympy.cosh(theta - c * phi)
    loss = h * phi - sympy.log(base)
    printed = h - (2 * h * sympy.exp(h * phi) - 2 * c * sympy.sinh(-z)) / (2 * base)
    assert sympy.simplify(sympy.diff(loss, phi) - printed) == 0
    assert sympy.simplify(sympy.diff(loss, theta) + sympy.sinh(-z) / base) == 0
    with mpmath.workdps(40):
        for point in _points():
            t, f, low, high = map(_mpf, point)
            if t in (low * f, high * f):
                continue
            found = subject(t, f, low, high)
            wanted = (
                mpmath.diff(lambda x, f=f, low=low, high=high: closed_form(x, f, low, high), t),
                mpmath.diff(lambda x, t=t, low=low, high=high: closed_form(t, x, low, high), f),
            )
            assert all(abs(x - y) < 1e-12 for x, y in zip(found, wanted, strict=True)), (point, found, wanted)
    return "derivatives of the closed form: sympy inside, numeric in all regimes"


def check_theta_derivative_bound(subject: float = 1.0) -> str:
    """|d theta| <= 1 with equality outside, and inside it rises strictly from -1 to 1: its extrema are at the ends."""
    p, q = z3.Reals("p q")
    domain = (p > 0, p <= 1, q > 0, q <= 1, p + q < 2)
    bound = z3.RealVal(repr(subject))
    prove(*domain, goal=z3.And(p - q <= bound * (2 - p - q), q - p <= bound * (2 - p - q)))
    u, z = sympy.symbols("u z", real=True)
    slope = sympy.diff(sympy.sinh(z) / (sympy.exp(u) - sympy.cosh(z)), z)
    rising = (sympy.exp(u) * sympy.cosh(z) - 1) / (sympy.exp(u) - sympy.cosh(z)) ** 2
    assert sympy.simplify(slope - rising) == 0  # positive for u > 0, because exp(u) cosh(z) > 1
    at_end = (sympy.sinh(z) / (sympy.exp(u) - sympy.cosh(z))).subs(z, u).rewrite(sympy.exp)
    assert sympy.simplify(at_end - 1) == 0
    assert subject <= 1.0, "1 is attained, so that it is the least constant; a larger one is not tight"
    return "|dU/dtheta| <= 1: z3 over the whole domain, monotone inside (sympy), attained"


def phi_derivative(x: Any, a: Any, b: Any, phi: Any) -> Any:
    """dU/dphi inside the interval, at theta = phi (a + x (b - a)) with x in [0, 1]."""
    p, q = mpmath.exp(-(1 - x) * (b - a) * phi), mpmath.exp(-x * (b - a) * phi)
    return (a * q - b * p) / (2 - p - q)


def extrema_at_ends(a: float, b: float) -> bool:
    """Corrected statement: dU/dphi has both extrema over the interval at its ends iff 0 is not strictly inside it."""
    return not a < 0 < b


def check_phi_extrema(subject: Callable[[float, float], bool] = extrema_at_ends) -> str:
    """Where the extrema of dU/dphi over the interval are; its modulus is always largest at an end."""
    a, b, p, q = z3.Reals("a b p q")
    domain = (a < b, p > 0, p <= 1, q > 0, q <= 1, p + q < 2)
    # With t = pq: the values at the ends are -(b - a t)/(1 - t) and (a - b t)/(1 - t).
    f, room, t = a * q - b * p, 2 - p - q, p * q
    prove(*domain, b >= -a, goal=z3.And(f * (1 - t) >= -(b - a * t) * room, f * (1 - t) <= (b - a * t) * room))
    prove(*domain, b <= -a, goal=z3.And(f * (1 - t) >= (a - b * t) * room, f * (1 - t) <= -(a - b * t) * room))
    counter = ""
    for low, high in ((-1, 1), (-1, 3), (-9, 1), (0, 1), (1, 2), (-4, -3), (5, 6)):
        for phi in (0.01, 0.5, 4.0):
            with mpmath.workdps(40):
                inner = [phi_derivative(mpmath.mpf(i) / 200, low, high, mpmath.mpf(phi)) for i in range(201)]
            at_ends = all(min(inner[0], inner[-1]) <= y <= max(inner[0], inner[-1]) for y in inner)
            assert subject(low, high) == at_ends, (low, high, phi)
            if (low, high, phi) == (-1, 1, 0.5):
                counter = (
                    f"on [-1,1] at phi=1/2: {float(inner[0]):.4f} at both ends, {float(inner[100]):.4f} at theta=0"
                )
    return f"dU/dphi has its maximum inside when 0 is inside ({counter}); the modulus is largest at an end (z3)"


def gradient_constant(data_bound: float, scale_max: float) -> float:
    """Corrected: the least constant that bounds |dU/dphi| over intervals in [-B, B] and scales up to scale_max."""
    return data_bound + scale_max


def check_phi_derivative_bound(subject: Callable[[float, float], float] = gradient_constant) -> str:
    """|dU/dphi| <= B + scale_max, and no smaller constant: 4B + scale_max is true and four times too large."""
    # At an end the modulus is |b + k| or |k - a| with k = w/(exp(w phi) - 1), and 0 < k <= 1/phi as exp(x) >= 1 + x.
    x = sympy.symbols("x", positive=True)
    assert sympy.limit(x / (sympy.exp(x) - 1), x, 0) == 1
    decreasing = sympy.simplify(sympy.diff(x / (sympy.exp(x) - 1), x) * (sympy.exp(x) - 1) ** 2)
    assert sympy.expand(decreasing - (sympy.exp(x) * (1 - x) - 1)) == 0  # negative: exp(-x) > 1 - x
    rng = np.random.default_rng(7)
    for _ in range(400):
        bound, scale_max = 10 ** rng.uniform(-2, 3, 2)
        low, high = np.sort(rng.uniform(-bound, bound, 2))
        phi = 1 / (scale_max * rng.uniform(0.01, 1))
        ends = [abs(phi_derivative(end, low, high, mpmath.mpf(phi))) for end in (0, 1)]
        assert max(ends) <= subject(bound, scale_max), (low, high, phi)
    for bound, scale_max in ((1.0, 1.0), (10.0, 0.1), (0.5, 30.0)):
        with mpmath.workdps(30):
            close = abs(
                phi_derivative(1, mpmath.mpf(bound) * (1 - mpmath.mpf(10) ** -9), bound, 1 / mpmath.mpf(scale_max))
            )
        assert subject(bound, scale_max) <= close * (1 + 1e-6), "not the least constant"
    return (
        "|dU/dphi| <= B + sigma_max is sharp (z3 at the ends, sympy limit); the paper's chain gives 3B, its display 4B"
    )


def loss_bound(data_bound: float, scale_min: float, scale_max: float, separation: float) -> float:
    """``eq:laplace-bound`` as printed."""
    return 2 * data_bound / scale_min + math.log(2 * scale_max / separation)


def check_loss_bound(subject: Callable[[float, float, float, float], float] = loss_bound) -> str:
    """``eq:laplace-bound`` holds, also on the product box of gradient descent; the exact supremum is ours."""
    from pq.core.bounds.learning import eq_laplace_bound

    # Mass >= w phi/2 exp(-phi max|o - nu|) >= psi phi/2 exp(-2B phi); and on the box |z| <= B/scale_min + (B - h) phi.
    rng = np.random.default_rng(11)
    for _ in range(300):
        bound, low_scale = 10 ** rng.uniform(-1, 2), 10 ** rng.uniform(-1, 1)
        high_scale, separation = low_scale * 10 ** rng.uniform(0, 2), bound * 10 ** rng.uniform(-4, 0)
        printed = subject(bound, low_scale, high_scale, separation)
        for box in (False, True):
            exact = eq_laplace_bound(bound, low_scale, high_scale, separation, box=box)
            reached = mpmath.mpf(0)
            for scale in (low_scale, high_scale, math.sqrt(low_scale * high_scale)):
                theta = -bound / low_scale if box else -bound / scale
                loss = closed_form(
                    mpmath.mpf(theta), 1 / mpmath.mpf(scale), bound - mpmath.mpf(separation), mpmath.mpf(bound)
                )
                reached = max(reached, loss)
            assert abs(reached - exact) < 1e-6 * (1 + exact), (float(reached), exact)
            assert reached <= printed * (1 + 1e-12), (bound, low_scale, high_scale, separation, box)
    theta, phi, h, c = sympy.symbols("theta phi h c", positive=True)
    outside = phi * (theta - c) - sympy.log(sympy.sinh(h * phi))  # location fixed: convex in phi
    second = sympy.diff(outside, phi, 2) - h**2 / sympy.sinh(h * phi) ** 2
    assert sympy.simplify(second.rewrite(sympy.exp)) == 0
    return "U <= 2B/sigma_min + log(2 sigma_max/psi), also on the box; exact supremum at one of the two scales"


def check_joint_convexity(subject: Callable[[Any, Any], Any] | None = None) -> str:
    """U is jointly convex in (theta, phi): Hessian inside, sum of convex terms outside, C1 where the branches meet."""
    u, z = sympy.symbols("u z", real=True)
    loss = (subject or (lambda u, z: u - sympy.log(sympy.exp(u) - sympy.cosh(z))))(u, z)
    base = sympy.exp(u) - sympy.cosh(z)
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
    # For 0 < u and |z| <= u: exp(u) cosh(z) > 1 and base > 0, so both minors are positive: strictly convex inside.
    # Outside U = |z| - log sinh u, with second derivatives 0 and 1/sinh(u)^2.  Gluing: values and slopes agree.
    outside = z - sympy.log(sympy.sinh(u))
    inside = u - sympy.log(base)
    for difference in (inside - outside, sympy.diff(inside - outside, z), sympy.diff(inside - outside, u)):
        at_end = difference.subs(z, u).rewrite(sympy.exp)
        for value in (sympy.Rational(1, 9), sympy.Rational(1), sympy.Rational(7)):
            assert abs(sympy.N(at_end.subs(u, value), 40)) < sympy.Float("1e-30")
    return "jointly convex in (theta, phi): Hessian minors (sympy), strictly inside; C1 where the two branches meet"


def printed_float(theta: float, phi: float, a: float, b: float) -> float:
    """``eq:closed-form`` typed as printed, in float64."""
    half, z = (b - a) / 2 * phi, theta - (a + b) / 2 * phi
    with np.errstate(all="ignore"):
        if a * phi <= theta <= b * phi:
            return float(half - np.log(np.exp(half) - np.cosh(z)))
        return float(np.abs(z) - np.log(np.sinh(half)))


def stable_float(theta: float, phi: float, a: float, b: float) -> float:
    """The same loss with exp(-u) in place of exp(u), and expm1 and log1p where digits would cancel."""
    near, far, width = b * phi - theta, theta - a * phi, (b - a) * phi
    if near < 0 or far < 0:
        return max(-near, -far) + math.log(2) - math.log(-math.expm1(-width))
    lost = (math.exp(-near) + math.exp(-far)) / 2
    if lost < 0.5:
        return -math.log1p(-lost)
    return math.log(2) - math.log(-math.expm1(-near) - math.expm1(-far))


def check_floating_point(subject: Loss = stable_float) -> str:
    """The printed formula overflows at w phi >= 1420 and loses everything at w phi <= 1e-16; a stable form does not."""
    from pq.losses import laplace_interval

    cases = [(0.0, 1.0, -w / 2, w / 2) for w in (1e-300, 1e-20, 1e-16, 1e-8, 1.0, 100.0, 1500.0, 1e5)]
    cases += [(-50.0, 1.0, 0.0, w) for w in (1e-20, 1e-10, 1.0, 1500.0)]
    cases += [(0.0, 1.0, 800.0, 801.0), (0.5, 1.0, 0.0, 2000.0)]
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
    shown = f"w phi = 1500: {naive} for {exact:.3g}"
    return f"printed formula wrong on {len(broken)} of {len(cases)} inputs ({shown}); a stable form is right to 1e-12"


def check_sign_flip(subject: float = 2.0) -> str:
    """One record can flip the sign of dU/dtheta and keep its modulus 1: the sensitivity of the Laplace loss is 2L."""
    data = [-3, -2, 0, 2, 3, 5]
    moves = {"replace": [-4, -3, -2, 0, 2, 3], "add": [-4, -3, -2, 0, 2, 3, 5]}
    for name, other in moves.items():
        slopes = []
        for x in (data, other):
            rank = int(Fraction(1, 2) * len(x))
            slopes.append(derivatives(mpmath.mpf(0), mpmath.mpf(1), x[rank - 1], x[rank])[0])
        assert abs(slopes[0] - slopes[1]) >= subject * (1 - 1e-12), (name, slopes)
    assert subject <= 2.0
    assert subject == 2.0, "2 is the sensitivity; less is not tight"
    return "one record moves dU/dtheta from -1 to 1, replaced or added: no sensitivity below 2L for the Laplace loss"
