"""Location-scale families (Section 5, Appendix C): log-concavity, convexity, and the price in robustness."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import sympy
import z3

from proofs_checks.laplace import prove

F = Fraction
LOG_CONCAVE = {"Uniform": True, "Laplace": True, "Normal": True, "Cauchy": False, "HalfCauchy": False}


def check_log_concavity(subject: Mapping[str, bool] = LOG_CONCAVE) -> str:
    """Which shipped families are log-concave: sign of (log f)'' where true, three exact points where false."""
    x = sympy.symbols("x", positive=True)  # the other side by reflection; at 0 the slope of each does not rise
    logs = {"Laplace": -x, "Normal": -(x**2) / 2, "Uniform": sympy.Integer(0)}
    for family, log_density in logs.items():
        second = sympy.diff(log_density, x, 2)
        assert second.is_nonpositive == subject[family], family
    for family in ("Cauchy", "HalfCauchy"):
        ends, middle = (F(1, 1 + 2**2), F(1, 1 + 4**2)), F(1, 1 + 3**2)
        assert (ends[0] * ends[1] <= middle**2) == subject[family], f"{family} at 2, 3, 4"
    second = sympy.diff(-sympy.log(1 + x**2), x, 2)
    assert sympy.simplify(second - 2 * (x**2 - 1) / (1 + x**2) ** 2) == 0
    return "log-concave: Uniform, Laplace, Normal; not: Cauchy and HalfCauchy (f(2) f(4) = 1/85 > 1/100 = f(3)^2)"


def _arctan_between(t: F) -> tuple[F, F]:
    """Rational bounds of arctan(t) for 0 < t < 1 from its alternating series."""
    return t - t**3 / 3, t - t**3 / 3 + t**5 / 5


def check_cauchy_certificate(subject: tuple[int, int, int] = (1, 3, 5)) -> str:
    """Exact rational certificate that the Cauchy loss is convex neither in its location nor in its inverse scale.

    The mass of (x, x+1] is arctan(1/(1+x+x^2))/pi for location 0; locations 0, -2, -4 turn (1, 2] into (1, 2], (3, 4],
    (5, 6].  At phi = 1 both parametrisations share these points, so that both fail.
    """
    low, middle, high = subject
    assert low + high == 2 * middle
    masses = [_arctan_between(F(1, 1 + x + x * x)) for x in subject]
    assert masses[1][1] ** 2 < masses[0][0] * masses[2][0], "location: no certificate at these points"
    scale = [_arctan_between(F(phi, 1 + 2 * phi**2)) for phi in (1, 2, 3)]  # interval (1, 2], location 0
    assert scale[1][1] ** 2 < scale[0][0] * scale[2][0]
    excess = math.log(float(masses[0][0] * masses[2][0] / masses[1][1] ** 2)) / 2
    return (
        f"Cauchy, HalfCauchy on (1,2], locations 0,-2,-4: U exceeds its chord by {excess:.3f} at the middle (fractions)"
    )


def normal_mass(p: Any, q: Any) -> Any:
    return mpmath.ncdf(q) - mpmath.ncdf(p)


def check_burridge(subject: Callable[[Any, Any], Any] = normal_mass) -> str:
    """For log-concave f, -log of the mass of (p, q) is jointly convex; p = a phi - theta, q = b phi - theta are linear.

    Log-concavity gives f'(q)/f(q) Z <= f(q) - f(p) <= f'(p)/f(p) Z for the mass Z.  With these, z3 shows that both
    diagonal second derivatives and the determinant have the right sign, for every smooth log-concave f.
    """
    fp, fq, slope_p, slope_q = z3.Reals("fp fq slope_p slope_q")  # the slopes are f' times Z
    facts = (fp > 0, fq > 0, slope_q <= fq * (fq - fp), slope_p >= fp * (fq - fp))
    across, down = slope_q - fq * fq, -slope_p - fp * fp  # second derivatives of log Z, times Z^2
    prove(*facts, goal=z3.And(across <= 0, down <= 0, across * down >= (fp * fq) * (fp * fq)))
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


def laplace_loss_in_scale(scale: Any) -> Any:
    """Loss of Laplace(0, scale) on (-1, 1]."""
    return -mpmath.iv.log(1 - mpmath.iv.exp(-1 / mpmath.iv.mpf(scale)))


def check_original_parametrisation(subject: Callable[[Any], Any] = laplace_loss_in_scale) -> str:
    """In (location, scale) the loss of a log-concave family need not be convex: Laplace fails in the scale alone."""
    low, middle, high = (subject(s) for s in (2, 4, 6))
    excess = middle - (low + high) / 2
    assert excess.a > 0, "no certificate: the loss is not above its chord"
    nu, sigma, c, h = sympy.symbols("nu sigma c h", positive=True)
    outside = (c - nu) / sigma - sympy.log(sympy.sinh(h / sigma))
    hessian = sympy.hessian(outside, (nu, sigma))
    assert sympy.simplify(hessian.det() + 1 / sigma**4) == 0  # negative everywhere: a saddle outside the interval
    above = f"U(4) is {float(excess.a):.3f} above the chord of U(2), U(6)"
    return f"Laplace on (-1,1] in (location, scale): {above}; Hessian determinant -1/sigma^4 outside"


def kink(x: F) -> F:
    """Log of a density up to its constant: two bumps that meet in a kink."""
    return -((abs(x) - 1) ** 2)


def check_kink_density(subject: Callable[[F], F] = kink) -> str:
    """Not log-concave, yet log-convex on no interval: the step "so f is strictly log-convex on [a, b]" is false."""
    assert subject(F(0)) < (subject(F(-1)) + subject(F(1))) / 2, "the density is log-concave"
    rng = np.random.default_rng(5)
    for _ in range(500):
        a, width = F(int(rng.integers(-4000, 4000)), 1000), F(int(rng.integers(1, 3000)), 1000)
        # A part of [a, a + width] that does not straddle 0 always has at least half its length.
        low, high = (
            (a, a + width) if a >= 0 or a + width <= 0 else max((a, F(0)), (F(0), a + width), key=lambda s: s[1] - s[0])
        )
        assert subject((low + high) / 2) > (subject(low) + subject(high)) / 2, "log-convex on an interval"
    # The conclusion is still true: on (-1/4, 1/4], f at 0 is everywhere below f shifted by 1 and by -1.
    half = F(1, 4)
    assert max(subject(-half), subject(half), subject(F(0))) < min(subject(F(1) - half), subject(F(1) + half))
    return (
        "log f = -(|x|-1)^2 is not log-concave and strictly log-concave on a half of every interval; U still not convex"
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


def check_half_infinite(subject: Callable[[Any], Any] | None = None) -> str:
    """With rank 0 the interval is (-inf, x_1] and convexity only needs a log-concave CDF, which the lognormal has."""
    x = sympy.symbols("x", positive=True)
    log_density = (subject or (lambda x: -(sympy.log(x) ** 2) / 2 - sympy.log(x)))(x)
    second = sympy.diff(log_density, x, 2)
    assert second.subs(x, 3).evalf() > 0, "the density is log-concave, no counterexample"
    # CDF Phi(log x): log Phi is concave and increasing, log is concave, so the composition is concave.  Spot check:
    with mpmath.workdps(40):
        points = [mpmath.mpf(10) ** (k / mpmath.mpf(20)) for k in range(-60, 60)]
        value = [mpmath.log(mpmath.ncdf(mpmath.log(t))) for t in points]
        middle = [mpmath.log(mpmath.ncdf(mpmath.log((s + t) / 2))) for s, t in pairwise(points)]
        assert all(m >= (s + t) / 2 for m, (s, t) in zip(middle, pairwise(value), strict=True))
    return (
        "rank 0: the lognormal is continuous, not log-concave (second derivative > 0 at 3), and U is convex for all x"
    )


def check_centred_lower_bound(subject: tuple[float, float] = (1.0, 1.0)) -> str:
    """Item 2 with >= in place of =: U >= (c/2) R + log(1/(C psi)) at the printed data set, f <= C exp(-c|x|)."""
    slope_factor, offset_factor = subject
    families = {
        "Laplace": (mpmath.mpf(1) / 2, lambda x: mpmath.exp(-x) / 2),
        "Normal": (
            mpmath.exp(mpmath.mpf(1) / 2) / mpmath.sqrt(2 * mpmath.pi),
            lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2,
        ),
    }
    rng = np.random.default_rng(13)
    with mpmath.workdps(80):
        for constant, tail in families.values():
            for _ in range(150):
                n = int(rng.integers(1, 40))
                radius = mpmath.mpf(10 ** rng.uniform(-2, 1.3))
                psi = radius / (2 * n) * mpmath.mpf(rng.uniform(0.01, 1))
                rank = int(rng.integers(1, n)) if n > 1 else 0
                if rank == 0:
                    continue
                start = radius - (n - rank + 1) * psi
                assert start >= radius / 2
                loss = -mpmath.log(tail(start) - tail(start + psi))
                assert loss >= slope_factor * radius / 2 + mpmath.log(offset_factor / (constant * psi)), (
                    n,
                    rank,
                    radius,
                )
    return "U >= cR/2 + log(1/(C psi)) at the printed data set: Laplace and Normal, 300 random (R, psi, n, q)"


def laplace_mass(p: Any, q: Any) -> Any:
    """Mass of (p, q] under Laplace(0, 1), for which equality in item 2 does hold with a = 1/10, b = 2."""
    if p >= 0:
        return (mpmath.exp(-p) - mpmath.exp(-q)) / 2
    return 1 - (mpmath.exp(p) + mpmath.exp(-q)) / 2


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
    return (
        "for 70 pairs (a, b) there is R with aR + log(b/psi) outside every value of U (Normal, n=2): '=' must be '>='"
    )


def cauchy_worst(radius: Any, psi: Any) -> Any:
    """Upper bound of the Cauchy loss over all data in (-R, R) with separation psi."""
    return mpmath.log(mpmath.pi * (1 + radius**2) / psi)


def check_missing_hypothesis(subject: Callable[[Any, Any], Any] = cauchy_worst) -> str:
    """Item 2 of the appendix is for every f; the Cauchy's log(pi (1+R^2)/psi) is below aR + log(b/psi) for large R."""
    for a in (mpmath.mpf(10) ** k for k in range(-6, 3)):
        for b in (mpmath.mpf(10) ** k for k in range(-6, 3)):
            radius = mpmath.mpf(1)
            while subject(radius, 1) >= a * radius + mpmath.log(b):
                radius *= 2
                assert radius < 2**80, "no radius refutes the claim"
    return "item 2 fails for the Cauchy at every (a, b) tried: log-concavity is needed, as the main text says"


def check_interval_length(subject: float = 1.0) -> str:
    """f strictly log-convex on [a, b]: U is not convex for every interval shorter than b - a, not only (b-a)/2."""
    a, b = mpmath.mpf(1), mpmath.mpf(10)  # the Cauchy is strictly log-convex beyond 1
    with mpmath.workdps(60):
        for share in ("0.01", "0.3", "0.49", "0.7", "0.95", "0.999"):
            width = mpmath.mpf(share) * (b - a) * mpmath.mpf(subject)
            step = b - a - width
            assert step > 0, "the shifted interval leaves [a, b]"
            mass = [mpmath.atan(a + s + width) - mpmath.atan(a + s) for s in (0, step / 2, step)]
            assert mass[1] ** 2 < mass[0] * mass[2], share
    return "optimal interval of any length below b - a gives a non-convex U (Cauchy on [1, 10]); the paper has (b-a)/2"


def epsilon_loss(theta: float, epsilon: float = 1.0) -> Any:
    """U^(q, eps) of Laplace(theta, 1), one record at 0, rank 0: gap 0 on (-inf, 0], 1 beyond."""
    t = mpmath.iv.mpf(theta)
    below = mpmath.iv.exp(-t) / 2 if theta >= 0 else 1 - mpmath.iv.exp(t) / 2
    return -mpmath.iv.log(below + mpmath.iv.exp(mpmath.iv.mpf(-epsilon) / 2) * (1 - below))


def check_epsilon_loss(subject: Callable[[float], Any] = epsilon_loss) -> str:
    """U^(eps) lies in [0, eps n/2] for every location; a bounded function on the line is convex only if constant."""
    excess = subject(2) - (subject(-2) + subject(6)) / 2
    assert excess.a > 0, "no certificate"
    assert all(value.a > -1e-12 and value.b < 0.5 + 1e-12 for value in map(subject, (-50, -1, 0, 1, 50)))
    return f"U^(eps) of a location family is bounded, so never convex; one record: {float(excess.a):.4f} above a chord"


def standardised(family: str, a: Any, b: Any, theta: Any, phi: Any) -> Any:
    """Mass of (a, b] as F(b phi - theta) - F(a phi - theta)."""
    distribution = {
        "Normal": mpmath.ncdf,
        "Laplace": lambda x: mpmath.exp(x) / 2 if x < 0 else 1 - mpmath.exp(-x) / 2,
        "Cauchy": lambda x: mpmath.atan(x) / mpmath.pi + mpmath.mpf(1) / 2,
    }[family]
    return distribution(b * phi - theta) - distribution(a * phi - theta)


def check_censored(subject: Callable[..., Any] = standardised) -> str:
    """The loss is the censored-regression likelihood of one interval, and a shift of the noise's law (v = w/sigma)."""
    densities: dict[str, Callable[[Any], Any]] = {
        "Normal": mpmath.npdf,
        "Laplace": lambda x: mpmath.exp(-abs(x)) / 2,
        "Cauchy": lambda x: 1 / (mpmath.pi * (1 + x * x)),
    }
    for family, f in densities.items():
        for a, b, weights, features, sigma in ((0, 1, (1, 2), (0.5, -1), 0.7), (-3, 5, (0, 1), (1, 1), 4.0)):
            location = sum(w * x for w, x in zip(weights, features, strict=True))
            direct = mpmath.quad(
                lambda y, f=f, s=sigma, m=location: f((y - m) / s) / s, sorted({a, b, location} | {a, b})
            )
            direct = (
                direct
                if a <= location <= b
                else mpmath.quad(lambda y, f=f, s=sigma, m=location: f((y - m) / s) / s, [a, b])
            )
            assert abs(direct - subject(family, a, b, location / sigma, 1 / sigma)) < 1e-10, (family, a, b)
    return "eq:censored with one interval is minus U; mass = F(b phi - theta) - F(a phi - theta) for three families"


def check_log_sum_exp(subject: Callable[..., Any] | None = None) -> str:
    """log sum exp is convex and non-decreasing: its Hessian form is half the sum of p_i p_j (v_i - v_j)^2."""
    xs, vs = sympy.symbols("x0:4", real=True), sympy.symbols("v0:4", real=True)
    value = (subject or (lambda *x: sympy.log(sum(sympy.exp(t) for t in x))))(*xs)
    total = sum(sympy.exp(t) for t in xs)
    p = [sympy.exp(t) / total for t in xs]
    assert all(sympy.simplify(sympy.diff(value, t) - share) == 0 for t, share in zip(xs, p, strict=True))
    form = sum(sympy.diff(p[i], xs[j]) * vs[i] * vs[j] for i in range(4) for j in range(4))
    squares = sum(p[i] * p[j] * (vs[i] - vs[j]) ** 2 for i in range(4) for j in range(4)) / 2
    assert sympy.simplify(form - squares) == 0
    return "log-sum-exp: gradient = softmax >= 0, Hessian form = sum of squares (sympy, four terms)"


def check_harmonic_mean(subject: Callable[[list[F]], F] = lambda psi: F(len(psi)) / sum(1 / x for x in psi)) -> str:
    """log sum exp(U_i) is not minus the log of the harmonic mean: they differ by log m, exactly."""
    for psi in ([F(1)] * 9, [F(1, 2), F(1, 3)], [F(1, 7)]):
        ratio = sum(1 / x for x in psi) * subject(psi)
        assert ratio == len(psi), "exp(U) times the harmonic mean is m"
    return "log sum exp(U_i) = -log(harmonic mean) + log m; perfect priors give 0 by one and log m by the other"


def check_tails(subject: float = 1.0) -> str:
    """Worst loss over data within R at separation 1: Laplace R, Normal R^2/2, Cauchy 2 log R, to leading order."""
    with mpmath.workdps(60):
        for radius in (100, 1000):
            r = mpmath.mpf(radius)
            laplace = (r - mpmath.mpf(1) / 2) - mpmath.log(mpmath.sinh(mpmath.mpf(1) / 2))
            cauchy = -mpmath.log((mpmath.atan(1 / (1 + r * (r - 1)))) / mpmath.pi)
            scaled = mpmath.sqrt(mpmath.mpf(1) / 2)
            normal = -mpmath.log((mpmath.erfc((r - 1) * scaled) - mpmath.erfc(r * scaled)) / 2)
            assert abs(laplace / r - subject) < 0.02
            assert abs(normal / r**2 - mpmath.mpf(1) / 2) < 0.02
            assert abs(cauchy / (2 * mpmath.log(r)) - 1) < 0.2
    return "worst losses at separation 1: Laplace ~ R, Normal ~ R^2/2, Cauchy ~ 2 log R"
