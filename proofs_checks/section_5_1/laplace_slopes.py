"""Derivatives of the Laplace loss and their least constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import sympy
import z3

from proofs_checks.engine.registry import check
from proofs_checks.tools.laplace import closed_form, laplace_points, mpf_of
from proofs_checks.tools.solver import absolute, follows


def derivatives(theta: Any, phi: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """The derivatives that the paper prints, in mpmath."""
    h, c = (b - a) / 2, (a + b) / 2
    if a * phi <= theta <= b * phi:
        base = mpmath.exp(h * phi) - mpmath.cosh(theta - c * phi)
        turn = mpmath.sinh(c * phi - theta)
        return -turn / base, h - ((b - a) * mpmath.exp(h * phi) - (a + b) * turn) / (2 * base)
    sign = mpmath.sign(c * phi - theta)
    return -sign, c * sign - h * mpmath.coth(h * phi)


def _no_reflection(theta: Any, phi: Any, a: Any, b: Any) -> tuple[Any, Any]:
    slope, slope_phi = derivatives(theta, phi, a, b)
    return abs(slope), slope_phi


def _open_derivative(theta: Any, phi: Any, a: Any, b: Any) -> tuple[Any, Any]:
    slope, slope_phi = derivatives(theta, phi, a, b)
    return slope, slope_phi + (b - a) / 2


def _wrong_at_an_end(theta: Any, phi: Any, a: Any, b: Any) -> tuple[Any, Any]:
    slope, slope_phi = derivatives(theta, phi, a, b)
    return slope, slope_phi * (0 if theta == b * phi else 1)


@check(
    "eq:closed-form/derivatives",
    rejects=[
        _no_reflection,
        _open_derivative,
        _wrong_at_an_end,
        *(lambda *p, by=by: (by * derivatives(*p)[0], derivatives(*p)[1]) for by in (0.99, 1.01)),
        *(lambda *p, by=by: (derivatives(*p)[0], by * derivatives(*p)[1]) for by in (0.99, 1.01)),
    ],
)
def check_derivatives(subject: Callable[..., tuple[Any, Any]] = derivatives) -> str:
    """The printed derivatives are the derivatives of the closed form: symbolic inside and on both sides, and numeric at
    the points. At the ends of the interval the derivatives from both sides are those printed for the inside."""
    theta, phi, h, c = sympy.symbols("theta phi h c", real=True)
    z, base = theta - c * phi, sympy.exp(h * phi) - sympy.cosh(theta - c * phi)
    loss = h * phi - sympy.log(base)
    printed = h - (2 * h * sympy.exp(h * phi) - 2 * c * sympy.sinh(-z)) / (2 * base)
    assert sympy.simplify(sympy.diff(loss, phi) - printed) == 0
    assert sympy.simplify(sympy.diff(loss, theta) + sympy.sinh(-z) / base) == 0
    for side in (-1, 1):  # of theta - c phi; the modulus is printed, sign(c phi - theta) is -side
        outside = side * z - sympy.log(sympy.sinh(h * phi))
        assert sympy.diff(outside, theta) == side
        assert sympy.simplify((sympy.diff(outside, phi) + side * c + h * sympy.coth(h * phi)).rewrite(sympy.exp)) == 0
    with mpmath.workdps(40):
        for point in laplace_points():
            t, f, low, high = map(mpf_of, point)
            found = subject(t, f, low, high)
            for way in (-1, 1) if t in (low * f, high * f) else (0,):  # from either side of an end
                wanted = (
                    mpmath.diff(lambda x, f=f, low=low, high=high: closed_form(x, f, low, high), t, direction=way),
                    mpmath.diff(lambda x, t=t, low=low, high=high: closed_form(t, x, low, high), f, direction=way),
                )
                assert all(abs(x - y) < 1e-12 for x, y in zip(found, wanted, strict=True)), (point, found, wanted)
    return (
        "derivatives of the closed form: sympy inside and outside, numeric in all regimes and from both sides at ends"
    )


@check("eq:closed-form/theta-derivative", rejects=[0.99, 1.01, 1.5])
def check_theta_derivative_bound(subject: float = 1.0) -> str:
    """|d theta| <= 1 with equality outside, and inside it rises strictly from -1 to 1: its extrema are at the ends."""
    p, q = z3.Reals("p q")
    domain = (p > 0, p <= 1, q > 0, q <= 1, p + q < 2)
    bound = z3.RealVal(repr(subject))
    follows(*domain, goal=z3.And(p - q <= bound * (2 - p - q), q - p <= bound * (2 - p - q)))
    u, z = sympy.symbols("u z", real=True)
    slope = sympy.diff(sympy.sinh(z) / (sympy.exp(u) - sympy.cosh(z)), z)
    rising = (sympy.exp(u) * sympy.cosh(z) - 1) / (sympy.exp(u) - sympy.cosh(z)) ** 2
    assert sympy.simplify(slope - rising) == 0  # positive for u > 0, because exp(u) cosh(z) > 1
    at_end = (sympy.sinh(z) / (sympy.exp(u) - sympy.cosh(z))).subs(z, u).rewrite(sympy.exp)
    assert subject <= float(sympy.simplify(at_end)), "more than the largest slope, which the ends have"
    return "|dU/dtheta| <= 1: z3 over the whole domain, monotone inside (sympy), attained"


def phi_derivative(x: Any, a: Any, b: Any, phi: Any) -> Any:
    """dU/dphi inside the interval, at theta = phi (a + x (b - a)) with x in [0, 1]."""
    p, q = mpmath.exp(-(1 - x) * (b - a) * phi), mpmath.exp(-x * (b - a) * phi)
    return (a * q - b * p) / (2 - p - q)


def extrema_at_ends(a: float, b: float) -> bool:
    """Corrected statement: dU/dphi has both extrema over the interval at its ends iff 0 is not strictly inside it."""
    return not a < 0 < b


@check(
    "eq:closed-form/phi-extrema",
    rejects=[
        lambda a, b: z3.BoolVal(True),
        lambda a, b: z3.BoolVal(False),
        lambda a, b: a >= 0,
        lambda a, b: z3.Or(100 * a >= -b, b <= 0),
        lambda a, b: z3.Or(a > 0, b < 0),
    ],
)
def check_extrema_for_all(subject: Callable[[Any, Any], Any] = lambda a, b: z3.Or(a >= 0, b <= 0)) -> str:
    """Every interval and phi: with 0 not strictly inside, dU/dphi lies between its values at the ends; with 0 inside it
    rises from the larger one into the interval."""
    a, b, p, q = z3.Reals("a b p q")
    domain, t = (a < b, p > 0, p <= 1, q > 0, q <= 1, p + q < 2), p * q
    f, room, left, right = a * q - b * p, 2 - p - q, a - b * t, -(b - a * t)  # at p = t and at p = 1, over 1 - t
    low, high = z3.If(left <= right, left, right), z3.If(left <= right, right, left)
    between = z3.And(low * room <= f * (1 - t), f * (1 - t) <= high * room)
    follows(*domain, subject(a, b), goal=between)
    # p runs from t (left end) to 1 (right end), q = t/p
    c, d = sympy.symbols("a b", real=True)
    r, s = sympy.symbols("p t", positive=True)
    value = (c * s / r - d * r) / (2 - r - s / r)
    inward = [sympy.simplify(sympy.diff(value, r).subs(r, s) * (1 - s) * s + 2 * c)]
    inward += [sympy.simplify(-sympy.diff(value, r).subs(r, 1) * (1 - s) - 2 * d)]
    assert inward == [0, 0], "slopes into the interval at its ends: -2a and 2b over positive factors"
    follows(*domain, z3.Not(subject(a, b)), goal=z3.If(left >= right, a < 0, b > 0))
    return "dU/dphi over an interval: extrema at the ends iff 0 is not strictly inside (z3, sympy: all a, b, phi)"


@check(
    "eq:closed-form/phi-extrema",
    "eq:closed-form/phi-derivative",
    "ours:phi-derivative",
    rejects=[lambda a, b: True, lambda a, b: False, lambda a, b: a < 0 < b],
)
def check_phi_extrema(subject: Callable[[float, float], bool] = extrema_at_ends) -> str:
    """Where the extrema of dU/dphi over the interval are; its modulus is always largest at an end."""
    a, b, p, q = z3.Reals("a b p q")
    domain = (a < b, p > 0, p <= 1, q > 0, q <= 1, p + q < 2)
    # With t = pq: the values at the ends are -(b - a t)/(1 - t) and (a - b t)/(1 - t).
    f, room, t = a * q - b * p, 2 - p - q, p * q
    follows(*domain, b >= -a, goal=z3.And(f * (1 - t) >= -(b - a * t) * room, f * (1 - t) <= (b - a * t) * room))
    follows(*domain, b <= -a, goal=z3.And(f * (1 - t) >= (a - b * t) * room, f * (1 - t) <= -(a - b * t) * room))
    counter = ""
    for low, high in ((-1, 1), (-1, 3), (-9, 1), (0, 1), (1, 2), (-4, -3), (5, 6)):
        for phi in (0.01, 0.5, 4.0):
            with mpmath.workdps(40):
                inner = [phi_derivative(mpmath.mpf(i) / 200, low, high, mpmath.mpf(phi)) for i in range(201)]
            at_ends = all(min(inner[0], inner[-1]) <= y <= max(inner[0], inner[-1]) for y in inner)
            assert subject(low, high) == at_ends, (low, high, phi)
            if (low, high, phi) == (-1, 1, 0.5):
                shown = [round(float(inner[k]), 3) for k in (0, -1, 100)]
                assert shown == [-2.164, -2.164, -1.541], "as the row says"
                counter = (
                    f"on [-1,1] at phi=1/2: {float(inner[0]):.4f} at both ends, {float(inner[100]):.4f} at theta=0"
                )
    return f"dU/dphi has its maximum inside when 0 is inside ({counter}); the modulus is largest at an end (z3)"


def gradient_constant(data_bound: float, scale_max: float) -> float:
    """Corrected: the least constant that bounds |dU/dphi| over intervals in [-B, B] and scales up to scale_max."""
    return data_bound + scale_max


@check(
    "eq:closed-form/phi-derivative",
    "eq:closed-form/phi-magnitude",
    "ours:phi-derivative",
    "thm:sequential/gradient-constant",
    "thm:sequential/data-range",
    rejects=[
        lambda b, s: 4 * b + s,
        lambda b, s: b,
        lambda b, s: s,
        *(lambda b, s, by=by: by * (b + s) for by in (0.99, 1.01)),
    ],
)
def check_phi_derivative_bound(subject: Callable[[float, float], float] = gradient_constant) -> str:
    """|dU/dphi| <= B + scale_max, and no smaller constant: 4B + scale_max is true and up to four times too large."""
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
        assert close <= subject(bound, scale_max) * (1 + 1e-12), "smaller than an end's"
        assert subject(bound, scale_max) <= close * (1 + 1e-6), "not the least constant"
        assert 4 * bound + scale_max < 4 * close, "more than four times too large"
        assert (4 * bound + scale_max > 3.9 * close) == (bound >= 100 * scale_max), "and four times only far above"
    return (
        "|dU/dphi| <= B + sigma_max is sharp (z3 at the ends, sympy limit); the paper's chain gives 3B, its display 4B"
    )


def end_modulus(a: Any, b: Any, phi: Any) -> Any:
    """The bound of one interval: max(|a|, |b|) + w/(exp(w phi) - 1)."""
    return max(abs(a), abs(b)) + (b - a) / mpmath.expm1((b - a) * phi)


@check(
    "ours:phi-derivative",
    rejects=[
        lambda a, b, phi: max(abs(a), abs(b)),
        lambda a, b, phi: min(abs(a), abs(b)) + (b - a) / mpmath.expm1((b - a) * phi),
        lambda a, b, phi: max(abs(a), abs(b)) + 1 / phi,
        *(lambda a, b, phi, by=by: by * end_modulus(a, b, phi) for by in (0.99, 1.01)),
    ],
)
def check_end_modulus(subject: Callable[[Any, Any, Any], Any] = end_modulus) -> str:
    """|dU/dphi| <= max(|a|, |b|) + w/(exp(w phi) - 1), for locations inside, at the ends and beyond them, attained; and
    that is at most max(|a|, |b|) + 1/phi."""
    phi, w = sympy.symbols("phi w", positive=True)
    a, b, k = z3.Reals("a b k")
    # beyond an end the slope is that at the end, -+c - h coth(h phi), and h coth(h phi) - h = w/(exp(w phi) - 1) = k
    over = (w / 2 * sympy.coth(w * phi / 2) - w / 2 - w / (sympy.exp(w * phi) - 1)).rewrite(sympy.exp)
    assert sympy.simplify(over) == 0
    x = sympy.symbols("x", positive=True)
    room = sympy.exp(x) - 1 - x  # positive, so that k <= 1/phi: it rises from 0
    assert room.subs(x, 0) == 0 and (sympy.diff(room, x) + 1).equals(sympy.exp(x))
    farther = z3.If(absolute(a) >= absolute(b), absolute(a), absolute(b))
    follows(k > 0, a < b, goal=z3.And(absolute(b + k) <= farther + k, absolute(k - a) <= farther + k))
    attained = 0
    with mpmath.workdps(40):
        for point in laplace_points():
            theta, rate, low, high = map(mpf_of, point)
            slope, most = abs(derivatives(theta, rate, low, high)[1]), subject(low, high, rate)
            assert slope <= most * (1 + mpmath.mpf(10) ** -30), point
            attained += bool(slope >= most * (1 - mpmath.mpf(10) ** -30))
            assert most <= (max(abs(low), abs(high)) + 1 / rate) * (1 + mpmath.mpf(10) ** -30), point
    assert attained > 20, "a smaller bound is enough"
    return f"|dU/dphi| <= max(|a|, |b|) + w/(exp(w phi) - 1) (z3, sympy), attained at {attained} points"


@check(
    "eq:closed-form/phi-magnitude",
    rejects=[lambda value, limit: value == limit, lambda value, limit: 2 * value >= limit],
)
def check_phi_magnitude(
    subject: Callable[[sympy.Expr, sympy.Expr], bool] = lambda value, limit: bool(value <= limit),
) -> str:
    """The 'magnitudes' of the derivative in phi at the ends are a bound: coth 1 = 1.313 against 3.313."""
    theta, phi = sympy.symbols("theta phi", positive=True)
    loss = phi - sympy.log(sympy.exp(phi) - sympy.cosh(theta))  # (a, b] = (-1, 1]
    slope = abs(sympy.diff(loss, phi).subs({theta: 1, phi: 1}))
    limit = 1 + (sympy.coth(1) + 1)
    assert abs(sympy.N(slope - sympy.coth(1), 30)) < 1e-25
    assert subject(sympy.N(slope, 30), sympy.N(limit, 30)), (sympy.N(slope), sympy.N(limit))
    assert [round(float(value), 3) for value in (slope, limit)] == [1.313, 3.313], "as the row says"
    return "at a = -1, b = 1, phi = theta = 1 the derivative in phi is 1.313 in size, the printed magnitude 3.313"


def printed_magnitudes(a: Any, b: Any, phi: Any) -> tuple[Any, Any]:
    """At an end of the interval, and the chain's bound outside of it."""
    width, centre = b - a, abs(a + b) / 2
    return width / 2 + width / 2 * (mpmath.coth(width * phi / 2) + 1) + centre, centre + width / 2 + 1 / phi


@check(
    "eq:closed-form/phi-magnitude",
    "eq:closed-form/phi-derivative",
    rejects=[
        *(lambda a, b, phi, by=by: (by * printed_magnitudes(a, b, phi)[0], _outside(a, b, phi)) for by in (0.99, 1.01)),
        *(lambda a, b, phi, by=by: (printed_magnitudes(a, b, phi)[0], by * _outside(a, b, phi)) for by in (0.99, 1.01)),
        lambda a, b, phi: (printed_magnitudes(a, b, phi)[0] - (b - a), _outside(a, b, phi)),
    ],
)
def check_end_magnitudes(subject: Callable[..., tuple[Any, Any]] = printed_magnitudes) -> str:
    """At the ends the larger modulus is the printed one less b - a, and at most 1/phi + 3(b - a)/2 + |a + b|/2; outside
    it is at most |a + b|/2 + (b - a)/2 + 1/phi, which narrow intervals attain. Both chains are at most 3B + sigma_max.
    """
    a, b, k, inverse, bound, scale = z3.Reals("a b k inverse B sigma")
    larger = z3.If(b + k >= k - a, z3.If(b + k >= -b - k, b + k, -b - k), z3.If(k - a >= a - k, k - a, a - k))
    centre = z3.If(a + b >= 0, a + b, -a - b) / 2
    follows(a < b, k > 0, goal=larger == (b - a) / 2 + k + centre)  # k = w/(exp(w phi) - 1), the slopes -(b + k), k - a
    inside = (a < b, a >= -bound, b <= bound, inverse > 0, inverse <= scale)
    chain = inverse + 3 * (b - a) / 2 + centre
    follows(*inside, goal=z3.And(chain <= 3 * bound + scale, centre + (b - a) / 2 + inverse <= 3 * bound + scale))
    u = sympy.symbols("u", positive=True)  # w phi/2: coth u = 1 + 2/(exp(2u) - 1), between 1 and 1 + 1/u
    assert sympy.simplify((sympy.coth(u) - 1 - 2 / (sympy.exp(2 * u) - 1)).rewrite(sympy.exp)) == 0
    rng = np.random.default_rng(157)
    with mpmath.workdps(40):
        for trial in range(300):
            width = mpmath.mpf(10) ** (-12 if trial % 3 == 0 else rng.uniform(-3, 2))
            low = mpmath.mpf(rng.normal(0, 3))
            high, phi = low + width, mpmath.mpf(10 ** rng.uniform(-2, 2))
            ends, outside = subject(low, high, phi)
            found = max(abs(phi_derivative(x, low, high, phi)) for x in (0, 1))
            assert abs(found - (ends - width)) < 1e-20 * ends, (low, high, phi)
            assert ends <= (1 / phi + 3 * width / 2 + abs(low + high) / 2) * (1 + mpmath.mpf("1e-30")), (low, high, phi)
            steep = max(abs(derivatives(phi * t, phi, low, high)[1]) for t in (low - 1, high + 1))
            assert steep <= outside and (trial % 3 or outside <= steep * (1 + 1e-6)), (low, high, phi)
    return "at the ends |dU/dphi| is at most the printed one less b - a; the chain's lines hold, to 3B + sigma_max (z3)"


def _outside(a: Any, b: Any, phi: Any) -> Any:
    return printed_magnitudes(a, b, phi)[1]
