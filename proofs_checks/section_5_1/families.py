"""Which location-scale families have convex losses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import sympy
import z3

import pq
from proofs_checks.engine.registry import check
from proofs_checks.tools.exact import log_ball
from proofs_checks.tools.solver import follows

F = Fraction


def epsilon_loss(theta: float, epsilon: float = 1.0) -> Any:
    """U^(q, eps) of Laplace(theta, 1), one record at 0, rank 0: gap 0 on (-inf, 0], 1 beyond."""
    t = mpmath.iv.mpf(theta)
    below = mpmath.iv.exp(-t) / 2 if theta >= 0 else 1 - mpmath.iv.exp(t) / 2
    return -mpmath.iv.log(below + mpmath.iv.exp(mpmath.iv.mpf(-epsilon) / 2) * (1 - below))


def _epsilon_free(theta: float) -> Any:
    """U^(q) of Laplace(theta, 1) on (-1, 1], which is convex."""
    t = mpmath.iv.mpf(abs(theta))
    if abs(theta) >= 1:
        return t - mpmath.iv.log((mpmath.iv.exp(1) - mpmath.iv.exp(-1)) / 2)
    return 1 - mpmath.iv.log(mpmath.iv.exp(1) - (mpmath.iv.exp(t) + mpmath.iv.exp(-t)) / 2)


@check(
    "text:epsilon-loss",
    "ours:epsilon-loss",
    rejects=[
        lambda n: (F(0), F(n)),
        lambda n: (F(1, 100), F(n, 2)),
        *(lambda n, by=by: (F(0), F(by, 200) * n) for by in (99, 101)),
    ],
)
def check_bounded_loss(subject: Callable[[int], tuple[Fraction, Fraction]] = lambda n: (F(0), F(n, 2))) -> str:
    """0 <= U^(eps) <= eps n/2 for n records and any probability measure, both attained, and a function on the line
    that is bounded and convex is constant: a chord that rises, or falls, rises above every bound farther on (z3).
    U^(eps) is not: far to either side it tends to the rank and to the rest, times eps/2, and where these are equal any
    law with mass between the records lies below."""
    rng = np.random.default_rng(37)
    for n in range(1, 6):
        seen = []
        for trial in range(60):
            z, rank = F(1, int(rng.integers(2, 50))), int(rng.integers(0, n)) if trial > 1 else 0
            raw = [int(v) for v in rng.integers(0, 9, n + 1)]
            raw = [int(k == n * trial) for k in range(n + 1)] if trial < 2 else [*raw[:-1], raw[-1] + 1]
            inner = sum(F(v, sum(raw)) * z ** abs(k - rank) for k, v in enumerate(raw))
            seen.append(float(-log_ball(inner) / (-2 * log_ball(z))))  # U in units of epsilon
        assert np.allclose((min(seen), max(seen)), [float(end) for end in subject(n)], rtol=0, atol=1e-9), (n, seen)
    for n, z in itertools.product((2, 4, 6), (F(1, 2), F(99, 100))):
        far_off = z ** (n // 2)  # all mass on one side of the records, and the rank is half of them
        for inner in (F(1), F(1, 10**6)):
            law = [(1 - inner) / 2, *[inner / (n - 1)] * (n - 1), (1 - inner) / 2]
            assert sum(share * z ** abs(k - n // 2) for k, share in enumerate(law)) > far_off, "constant"
    for mass, z in itertools.product((F(0), F(1, 3), F(1)), (F(1, 2), F(1, 100))):  # two equal records, the rank is 1
        tied = {0: mass, 1: F(0), 2: 1 - mass}  # no mass between them, wherever the location is
        assert sum(share * z ** abs(k - 1) for k, share in tied.items()) == z, "constant at eps/2"
    x, y, t, low, high, bound, far = z3.Reals("x y t low high bound far")
    rising = (x < y, low < high, t > 0, far * (y - x) >= high * (y - x) + t * (high - low))  # the chord, carried on
    follows(*rising, t * (high - low) > (bound - high) * (y - x), goal=far > bound)
    return "0 <= U^(eps) <= eps n/2 for any law and data, so convex in a location only if constant (z3)"


@check("text:epsilon-loss", "ours:epsilon-loss", rejects=[_epsilon_free, lambda theta: epsilon_loss(theta, 1.01)])
def check_epsilon_loss(subject: Callable[[float], Any] = epsilon_loss) -> str:
    """U^(eps) lies in [0, eps n/2] for every location; a bounded function on the line is convex only if constant."""
    excess = subject(2) - (subject(-2) + subject(6)) / 2
    assert excess.a > 0, "no certificate"
    assert all(value.a > -1e-12 and value.b < 0.5 + 1e-12 for value in map(subject, (-50, -1, 0, 1, 50)))
    return f"U^(eps) of a location family is bounded, so not convex; one record: {float(excess.a):.4f} above a chord"


def standardised(family: str, a: Any, b: Any, theta: Any, phi: Any) -> Any:
    """Mass of (a, b] as F(b phi - theta) - F(a phi - theta) (eq:censored)."""
    distribution = {
        "Normal": mpmath.ncdf,
        "Laplace": lambda x: mpmath.exp(x) / 2 if x < 0 else 1 - mpmath.exp(-x) / 2,
        "Cauchy": lambda x: mpmath.atan(x) / mpmath.pi + mpmath.mpf(1) / 2,
    }[family]
    return distribution(b * phi - theta) - distribution(a * phi - theta)


def _reflected(family: str, a: Any, b: Any, theta: Any, phi: Any) -> Any:
    return standardised(family, a, b, -theta, phi)


@check("eq:censored", code=standardised, rejects=[_reflected, lambda *case: standardised(*case) * case[-1]])
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


def interval_of_loss(x: list[float], rank: int) -> tuple[float, float]:
    """What the optimal outputs lie in."""
    return x[rank - 1] if rank else -math.inf, x[rank]


@check(
    "eq:censored",
    code=standardised,
    rejects=[
        lambda x, rank: (x[max(rank, 1) - 1], x[max(rank, 1) - 1] + 1),  # as printed
        lambda x, rank: (x[rank], x[min(rank + 1, len(x) - 1)]),
        lambda x, rank: (interval_of_loss(x, rank)[0], x[rank] + 0.01),
        lambda x, rank: interval_of_loss(x, rank) if rank else (2 * x[0] - x[1], x[0]),
    ],
)
def check_interval_of_loss(
    subject: Callable[[list[float], int], tuple[float, float]] = interval_of_loss,
) -> str:
    """U^(q) of a prior is minus the log-likelihood of the one interval from x_[floor(qn)] to x_[floor(qn)+1], from
    -infinity at rank 0: U is the limit of the mechanism's -log Psi for large epsilon, where gaps other than 0 weigh
    nothing.

    subject: the ends of the interval, from sorted data and the rank.
    """
    x, nu, sigma, cases = [-2.0, -0.5, 0.25, 3.0, 7.0], 0.7, 1.3, 0
    priors = (pq.Normal(nu, sigma), pq.Laplace(nu, sigma), pq.Cauchy(nu, sigma))
    for prior, rank in itertools.product(priors, range(len(x))):
        q = F(2 * rank + 1, 2 * len(x))  # the middle of the levels of this rank
        mass = standardised(type(prior).__name__, *subject(x, rank), nu / sigma, 1 / sigma)
        for epsilon in (None, 1e4):
            found = -float(pq.log_psi(np.array(x), float(q), prior, epsilon))
            assert math.isclose(found, -float(mpmath.log(mass)), rel_tol=1e-9), (prior, rank, epsilon)
            cases += 1
    return f"U^(q) is minus the censored log-likelihood of one interval: {cases} priors, ranks and budgets"


LOG_CONCAVE = {"Uniform": True, "Laplace": True, "Normal": True, "Cauchy": False, "HalfCauchy": False}
SHIPPED = {**LOG_CONCAVE, "LogNormal": False, "LogUniform": False}


@check(
    "text:log-concave-families",
    code=(pq.Laplace, pq.LogNormal),
    rejects=[{**SHIPPED, name: not known} for name, known in SHIPPED.items()],
)
def check_shipped_families(subject: Mapping[str, bool] = SHIPPED) -> str:
    """The densities of the package at 4000 pairs and their middles, so across the kink of the Laplace and the ends of
    supports as well: the middle is at least the geometric mean at all pairs, or not."""
    priors = {
        "Uniform": pq.Uniform(-1, 2),
        "LogUniform": pq.LogUniform(),
        "HalfCauchy": pq.HalfCauchy(1.0),
        **{family.__name__: family(0.0, 1.0) for family in (pq.Laplace, pq.Normal, pq.Cauchy, pq.LogNormal)},
    }
    rng = np.random.default_rng(101)
    ends = rng.standard_cauchy((4000, 2)) * 10.0 ** rng.integers(-2, 2, (4000, 1))
    others = [
        pq.Laplace(3.0, 0.2),
        pq.Normal(-1.0, 9.0),
        pq.Uniform(-40, 0.5),
        pq.Cauchy(-2.0, 0.3),
        pq.HalfCauchy(30.0),
        pq.LogNormal(1.0, 0.25),
        pq.LogNormal(-2.0, 3.0),
        pq.LogUniform(),  # has no parameters
    ]
    assert {type(prior).__name__ for prior in others} == set(priors) == set(subject), "all of them"
    made = {pq.Mixture, pq.PiecewiseConstant, pq.OrderStatistic}  # from other laws, from weights
    exported = {kind for kind in vars(pq).values() if isinstance(kind, type) and issubclass(kind, pq.Prior)}
    assert {kind.__name__ for kind in exported - made - {pq.Prior}} == set(subject), "as the row says"
    for prior in (*priors.values(), *others):
        name = type(prior).__name__
        low, high, middle = (prior.log_density(x) for x in (*ends.T, ends.mean(axis=1)))
        assert bool(np.all(middle >= (low + high) / 2 - 1e-9 * (1 + abs(middle)))) == subject[name], name
    return f"log-concave at 4000 chords: {', '.join(name for name in priors if subject[name])}; the other families not"


@check(
    "text:log-concave-families",
    rejects=[{**LOG_CONCAVE, "Cauchy": True}, {**LOG_CONCAVE, "HalfCauchy": True}, {**LOG_CONCAVE, "Normal": False}],
)
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
    assert sympy.diff(-sympy.log(x), x, 2).is_positive, "LogUniform: 1/x is log-convex wherever it is not 0"
    place, scale = sympy.symbols("place", real=True), sympy.symbols("scale", positive=True)
    log_normal = -sympy.log(x) - (sympy.log(x) - place) ** 2 / (2 * scale**2)
    far = sympy.diff(log_normal, x, 2).subs(x, sympy.exp(place + 2))
    assert sympy.simplify(far * sympy.exp(2 * place + 4) - 1 - 1 / scale**2) == 0, "LogNormal: log-convex there"
    return (
        "log-concave: Uniform, Laplace, Normal; not: Cauchy and HalfCauchy (f(2) f(4) = 1/85 > 1/100 = f(3)^2), "
        "LogNormal and LogUniform (log f is convex somewhere, at every place and scale)"
    )


def _arctan_between(t: F) -> tuple[F, F]:
    """Rational bounds of arctan(t) for 0 < t <= 1 from its alternating series."""
    return t - t**3 / 3, t - t**3 / 3 + t**5 / 5


Three = tuple[Any, Any, Any]


@check(
    "text:cauchy-certificate",
    "text:only-log-concave",
    rejects=[  # about the centre of the density the loss lies below these chords
        ((-1, 0, 1), (1, 2, 3)),
        ((-3, 0, 3), (1, 2, 3)),
        ((1, 3, 5), (F(1, 10), F(2, 10), F(3, 10))),
    ],
)
def check_cauchy_certificate(subject: tuple[Three, Three] = ((1, 3, 5), (1, 2, 3))) -> str:
    """Exact rational certificate that the Cauchy loss is convex neither in its location nor in its inverse scale.

    The mass of (x, x+1] is arctan(1/(1+x+x^2))/pi for location 0; locations 0, -2, -4 turn (1, 2] into (1, 2], (3, 4],
    (5, 6].  At phi = 1 both parametrisations share these points, so that both fail.

    subject: lower ends of the interval less the location, and inverse scales; the middle one is the mean of the others.
    """
    places, inverse_scales = subject
    for low, middle, high in subject:
        assert low + high == 2 * middle
    masses = [_arctan_between(F(1, 1 + x + x * x)) for x in places]
    assert masses[1][1] ** 2 < masses[0][0] * masses[2][0], "location: no certificate at these points"
    scale = [_arctan_between(F(phi, 1 + 2 * phi**2)) for phi in inverse_scales]  # interval (1, 2], location 0
    assert scale[1][1] ** 2 < scale[0][0] * scale[2][0], "inverse scale: no certificate at these"
    for folded, law in ((1, pq.Cauchy), (2, pq.HalfCauchy)):  # the half-Cauchy has twice the mass right of its place
        found = (
            [law(scale=1.0, loc=1.0 - float(x)) for x in places],
            [law(scale=1 / float(phi), loc=0.0) for phi in inverse_scales],
        )
        for priors, between in zip(found, (masses, scale), strict=True):
            for prior, (low, high) in zip(priors, between, strict=True):
                assert low < F(math.pi * math.exp(prior.log_mass(1.0, 2.0)) / folded) < high, prior
    excess = math.log(float(masses[0][0] * masses[2][0] / masses[1][1] ** 2)) / 2
    return (
        f"Cauchy, HalfCauchy on (1,2], locations 0,-2,-4: U exceeds its chord by {excess:.3f} at the middle (fractions)"
    )


def laplace_loss_in_scale(scale: Any) -> Any:
    """Loss of Laplace(0, scale) on (-1, 1]."""
    return -mpmath.iv.log(1 - mpmath.iv.exp(-1 / mpmath.iv.mpf(scale)))


def _inverse_scale_loss(phi: Any) -> Any:
    """Laplace on (-1, 1] in the inverse scale, where it is convex."""
    return -mpmath.iv.log(1 - mpmath.iv.exp(-mpmath.iv.mpf(phi)))


def _log_scale_loss(scale: Any) -> Any:
    """Laplace on (-1, 1] in the logarithm of the scale, where it is convex too."""
    return -mpmath.iv.log(1 - mpmath.iv.exp(-mpmath.iv.exp(-mpmath.iv.mpf(scale))))


@check("text:only-log-concave", "ours:level-sets", rejects=[_inverse_scale_loss, _log_scale_loss])
def check_original_parametrisation(subject: Callable[[Any], Any] = laplace_loss_in_scale) -> str:
    """In (location, scale) the loss of a log-concave family need not be convex: Laplace fails in the scale alone."""
    low, middle, high = (subject(s) for s in (2, 4, 6))
    excess = middle - (low + high) / 2
    assert excess.a > 0, "no certificate: the loss is not above its chord"
    assert [round(float(v.mid), 3) for v in (middle, (low + high) / 2)] == [1.509, 1.403], "as the row says"
    nu, sigma, c, h = sympy.symbols("nu sigma c h", positive=True)
    outside = (c - nu) / sigma - sympy.log(sympy.sinh(h / sigma))
    hessian = sympy.hessian(outside, (nu, sigma))
    assert sympy.simplify(hessian.det() + 1 / sigma**4) == 0  # negative everywhere: a saddle outside the interval
    above = f"U(4) is {float(excess.a):.3f} above the chord of U(2), U(6)"
    return f"Laplace on (-1,1] in (location, scale): {above}; Hessian determinant -1/sigma^4 outside"


@check(
    "text:laplace-tails",
    rejects=[(0.5, 0.5), (2.0, 0.5), (1.0, 0.45), (1.0, 1.0), (0.99, 0.5), (1.01, 0.5), (1.0, 0.495), (1.0, 0.505)],
)
def check_tails(subject: tuple[float, float] = (1.0, 0.5)) -> str:
    """Worst loss over data within R at three separations: Laplace R, Normal R^2/2, Cauchy 2 log R, to leading order;
    that the worst data have their interval at an end and as short as may be, by many others. At rank 0, where the
    interval is a tail, the first two are the same to leading order."""
    rng = np.random.default_rng(97)
    priors = (pq.Laplace(0, 1), pq.Normal(0, 1), pq.Cauchy(0, 1))
    for radius, prior, least in itertools.product((2.0, 7.0, 30.0), priors, (0.01, 1.0, 3.0)):
        worst = -prior.log_mass(radius - least, radius)
        for low in np.concatenate([[-radius], rng.uniform(-radius, radius - least, 50)]):
            width = least + (radius - low - least) * rng.uniform() ** 3
            assert -prior.log_mass(low, low + width) <= worst + 1e-9, (prior, low, width)
            assert prior.log_mass(-math.inf, low) >= prior.log_mass(-math.inf, -radius), "rank 0"
    with mpmath.workdps(60):
        for r, w in itertools.product(map(mpmath.mpf, (10**4, 10**6)), map(mpmath.mpf, ("0.01", "1", "3"))):
            laplace = (r - w / 2) - mpmath.log(mpmath.sinh(w / 2))
            cauchy = -mpmath.log((mpmath.atan(w / (1 + r * (r - w)))) / mpmath.pi)
            scaled = mpmath.sqrt(mpmath.mpf(1) / 2)
            normal = -mpmath.log((mpmath.erfc((r - w) * scaled) - mpmath.erfc(r * scaled)) / 2)
            tails = r + mpmath.log(2), -mpmath.log(mpmath.erfc(r * scaled) / 2)  # at rank 0, all records at -R
            assert all(abs(loss / r - subject[0]) < 1e-3 for loss in (laplace, tails[0]))
            assert all(abs(loss / r**2 - subject[1]) < 1e-3 for loss in (normal, tails[1]))
            assert abs((cauchy + mpmath.log(w / mpmath.pi)) / (2 * mpmath.log(r)) - 1) < 1e-3
    return "worst losses at three separations: Laplace ~ R, Normal ~ R^2/2, Cauchy ~ 2 log R"
