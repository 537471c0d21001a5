"""Priors against an oracle at 50 and more digits: log masses, densities, draws from an interval, and refusals.

The oracle subtracts distribution functions in mpmath, of the exact rational values of the floats, at a precision that
it raises until enough digits survive. A failing example here is to be mended in the kernel, never by a wider tolerance.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

import pq
from pq.core.priors import (
    Cauchy,
    HalfCauchy,
    Laplace,
    LogNormal,
    LogUniform,
    Mixture,
    Normal,
    PiecewiseConstant,
    Prior,
    Uniform,
    from_scipy,
)
from pq.core.priors.base import BLOCK
from pq.core.priors.log_uniform import LEAST
from pq.core.priors.normal import normal_inverse

INF = math.inf
LARGEST = float(np.finfo(np.float64).max)
TOLERANCE = 1e-12  # relative error of a log mass

# --- The oracle ------------------------------------------------------------------------------------------------------


def clamp(x: mpf) -> mpf:
    return min(max(x, mpf(0)), mpf(1))


def normal_upper(z: mpf) -> mpf:
    """Mass of the standard normal law above z >= 0; mpmath's own erfc fails for arguments near 1e100."""
    s = z / mpmath.sqrt(2)
    if s < 1e15:
        return mpmath.erfc(s) / 2
    term = total = mpf(1)
    for k in range(1, 400):
        term *= -(2 * k - 1) / (2 * s * s)
        total += term
        if abs(term) < mp.eps:
            break
    return mpmath.exp(-s * s) / (s * mpmath.sqrt(mp.pi)) * total / 2


def standardised(prior: Any, x: float) -> mpf:
    if isinstance(prior, LogNormal):
        return (mpmath.log(mpf(x)) - mpf(prior.log_loc)) / mpf(prior.log_scale) if x > 0.0 else mpf(0)
    return (mpf(x) - mpf(prior.loc)) / mpf(prior.scale)


def both_tails(prior: Prior, x: float) -> tuple[mpf, mpf]:
    """Mass below and above x, by the textbook formula at the current precision; the smaller one has all its digits."""
    if isinstance(prior, PiecewiseConstant):
        total = mpmath.fsum(map(mpf, prior.weights))
        below = above = mpf(0)
        for i, weight in enumerate(prior.weights):
            left, right, at = mpf(prior.edges[i]), mpf(prior.edges[i + 1]), mpf(x)
            below += mpf(weight) * clamp((at - left) / (right - left)) / total
            above += mpf(weight) * clamp((right - at) / (right - left)) / total
        return below, above
    if isinstance(prior, Uniform):
        width = mpf(prior.high) - mpf(prior.low)
        return clamp((mpf(x) - mpf(prior.low)) / width), clamp((mpf(prior.high) - mpf(x)) / width)
    if isinstance(prior, LogUniform):
        outer = (
            clamp(mpmath.log(mpf(LARGEST) / max(abs(mpf(x)), mpf(LEAST))) / mpmath.log(mpf(LARGEST) / mpf(LEAST))) / 2
        )
        return (1 - outer, outer) if x > 0 else (outer, 1 - outer)
    if math.isinf(x):
        return (mpf(1), mpf(0)) if x > 0 else (mpf(0), mpf(1))
    assert isinstance(prior, Cauchy | HalfCauchy | Laplace | Normal | LogNormal)
    if isinstance(prior, LogNormal) and x <= 0.0:
        return mpf(0), mpf(1)
    z = standardised(prior, x)
    if isinstance(prior, Cauchy):
        return mpmath.atan2(1, -z) / mp.pi, mpmath.atan2(1, z) / mp.pi
    if isinstance(prior, HalfCauchy):
        return (2 * mpmath.atan(z) / mp.pi, 2 * mpmath.atan2(1, z) / mp.pi) if z > 0 else (mpf(0), mpf(1))
    tail = mpmath.exp(-abs(z)) / 2 if isinstance(prior, Laplace) else normal_upper(abs(z))
    return (1 - tail, tail) if z > 0 else (tail, 1 - tail)


def digits_for(prior: Prior, lower: float, upper: float) -> int:
    """Digits at which the exponentials of both ends are right to 60."""
    if not isinstance(prior, Laplace | Normal | LogNormal):
        return 60
    ends = [abs(standardised(prior, x)) for x in (lower, upper) if math.isfinite(x)]
    return 60 + 2 * max(0, *(int(mpmath.log10(z)) for z in ends if z > 1), 0)


def mass_and_rest(prior: Prior, lower: float, upper: float) -> tuple[mpf, mpf]:
    """Mass of (lower, upper] and of all else."""
    if isinstance(prior, Mixture):
        parts = [mass_and_rest(part, lower, upper) for part in prior.priors]
        total = mpmath.fsum(map(mpf, prior.weights))
        mass, rest = (
            mpmath.fsum(mpf(w) * part[i] for w, part in zip(prior.weights, parts, strict=True)) / total for i in (0, 1)
        )
        return mass, rest
    digits = digits_for(prior, lower, upper)
    while True:
        with mpmath.workdps(digits):
            (below_a, above_a), (below_b, above_b) = both_tails(prior, lower), both_tails(prior, upper)
            pair = (below_b, below_a) if below_b <= above_a else (above_a, above_b)
            mass, largest = pair[0] - pair[1], max(pair)
            if largest == 0 or (mass > 0 and mpmath.log10(largest / mass) < digits - 45) or digits > 20_000:
                return mass, below_a + above_b
        digits *= 2


def exact_log_mass(prior: Prior, lower: float, upper: float) -> mpf:
    if not lower < upper:
        return mpf("-inf")
    with mpmath.workdps(60):
        mass, rest = mass_and_rest(prior, lower, upper)
        if rest < 0.5:
            return mpmath.log1p(-rest)
        return mpmath.log(mass) if mass > 0 else mpf("-inf")


def check_log_mass(prior: Prior, lower: float, upper: float, log_mass: Callable[..., Any] | None = None) -> None:
    """The subject's log mass has twelve digits (or is the nearest float, where floats run out)."""
    value = float((log_mass or prior.log_mass)(lower, upper))
    exact = exact_log_mass(prior, lower, upper)
    case = f"{prior}.log_mass({lower!r}, {upper!r}) = {value!r}, exactly {mpmath.nstr(exact, 20)}"
    assert not math.isnan(value), case
    if exact < -LARGEST:
        assert value == -INF, case
    else:
        assert value > -INF, case
        with mpmath.workdps(60):
            assert abs(mpf(value) - exact) <= TOLERANCE * abs(exact) + mpf(1e-323), case
    assert value <= 0.0, case


# --- Priors and intervals of every size ------------------------------------------------------------------------------

sign = st.sampled_from([-1.0, 1.0])


def sized(low: int, high: int) -> st.SearchStrategy[float]:
    """Positive floats, spread evenly over powers of ten."""
    return st.builds(lambda m, e: m * 10.0**e, st.floats(1.0, 9.99), st.integers(low, high - 1))


numbers = st.one_of(
    st.just(0.0),
    st.builds(lambda s, x: s * x, sign, st.one_of(sized(-2, 3), sized(-300, 300), st.just(LARGEST), sized(300, 308))),
)
scales = st.one_of(st.just(1.0), sized(-2, 3), sized(-300, 300), st.just(LARGEST), sized(300, 308))
raw_weights = st.one_of(st.just(0.0), st.floats(0.001, 1.0), sized(-20, 0), sized(-300, 0))


@st.composite
def uniforms(draw: Any) -> Prior:
    low, high = sorted([draw(numbers), draw(numbers)])
    return Uniform(low, high) if low < high else Uniform(*sorted([low, math.nextafter(low, -low or 1.0)]))


@st.composite
def piecewise(draw: Any) -> Prior:
    edges = sorted({*draw(st.lists(numbers, max_size=6)), -0.5, 1.0})
    weights = draw(st.lists(raw_weights, min_size=len(edges) - 1, max_size=len(edges) - 1))
    return PiecewiseConstant(edges, weights if sum(weights) > 0 else [1.0] * len(weights))


cauchys = st.builds(Cauchy, numbers, scales)
half_cauchys = st.builds(HalfCauchy, scales, numbers)
laplaces = st.builds(Laplace, numbers, scales)
normals = st.builds(Normal, numbers, scales)
lognormals = st.builds(
    LogNormal, st.one_of(st.floats(-3.0, 12.0), st.floats(-700.0, 700.0)), st.one_of(st.just(1.0), sized(-3, 3))
)
log_uniforms = st.builds(LogUniform)
simple = st.one_of(uniforms(), cauchys, half_cauchys, laplaces, normals, lognormals, log_uniforms, piecewise())


@st.composite
def mixtures(draw: Any, parts: st.SearchStrategy[Prior] = simple) -> Prior:
    priors = draw(st.lists(parts, min_size=1, max_size=3))
    weights = draw(st.lists(raw_weights, min_size=len(priors), max_size=len(priors)))
    return Mixture(priors, weights if sum(weights) > 0 else [1.0] * len(weights))


FAMILIES: dict[str, st.SearchStrategy[Prior]] = {
    "uniform": uniforms(),
    "cauchy": cauchys,
    "half-cauchy": half_cauchys,
    "laplace": laplaces,
    "normal": normals,
    "lognormal": lognormals,
    "log-uniform": log_uniforms,
    "piecewise": piecewise(),
    "mixture": st.one_of(mixtures(), mixtures(st.one_of(simple, mixtures()))),
}


def place(prior: Prior) -> tuple[float, float]:
    """Where a prior lives: a centre and a length."""
    if isinstance(prior, Mixture):
        return place(prior.priors[0])
    if isinstance(prior, Uniform | PiecewiseConstant):
        low, high = prior.support
        return low, min(high - low, LARGEST)
    if isinstance(prior, LogNormal):
        return math.exp(prior.log_loc), min(math.exp(prior.log_loc) * prior.log_scale, LARGEST)
    if isinstance(prior, LogUniform):
        return 0.0, 1.0
    return prior.loc, prior.scale  # type: ignore[attr-defined]


# Strategies are made once: to make them in every draw would take most of the time.
offsets = st.builds(lambda s, x: s * x, sign, st.one_of(st.just(0.0), sized(-3, 4), sized(-300, 150)))
second_ends = st.sampled_from(["end", "above", "below", "next", "scaled", "relative", "narrow"])
widths = {"scaled": sized(-20, 5), "relative": sized(-16, 1), "narrow": sized(-323, -290)}
one_in_twenty = st.integers(0, 19).map(lambda i: i == 19)


@st.composite
def intervals(draw: Any, prior: Prior) -> tuple[float, float]:
    """Intervals near and far, wide, narrow and one float wide, with infinite ends, sometimes inverted."""
    centre, length = place(prior)

    def end() -> float:
        near = centre + draw(offsets) * length
        return draw(numbers) if draw(st.booleans()) or not math.isfinite(near) else near

    a, kind = end(), draw(second_ends)
    if kind in widths:
        b = a + draw(widths[kind]) * {"scaled": length, "relative": abs(a), "narrow": 1.0}[kind]
    else:
        b = {"end": end, "above": lambda: INF, "below": lambda: -INF, "next": lambda: math.nextafter(a, INF)}[kind]()
    return (a, b) if draw(one_in_twenty) else (min(a, b), max(a, b))


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_log_mass_has_twelve_digits_everywhere(family: str, data: st.DataObject) -> None:
    prior = data.draw(FAMILIES[family])
    for _ in range(3):
        check_log_mass(prior, *data.draw(intervals(prior)))


PLAIN: dict[str, Prior] = {
    "uniform": Uniform(-3.0, 5.0),
    "cauchy": Cauchy(0.0, 1.0),
    "half-cauchy": HalfCauchy(2.0, -1.0),
    "laplace": Laplace(0.0, 1.0),
    "normal": Normal(0.5, 2.0),
    "lognormal": LogNormal(1.0, 0.5),
    "log-uniform": LogUniform(),
    "piecewise": PiecewiseConstant([-2.0, -1.0, 0.0, 0.25, 4.0], [0.2, 0.0, 0.5, 0.3]),
    "mixture": Laplace(0.0, 1.0).mix(Cauchy(1.0, 10.0), 0.1),
    "nested": Mixture(
        [Normal(0.0, 1.0).mix(Uniform(10.0, 11.0), 0.5), PiecewiseConstant([3.0, 4.0], [1.0])], [1.0, 3.0]
    ),
}
HARD = [
    (800.0, 801.0),
    (-801.0, -800.0),
    (1e9, 1e9 + 1.0),
    (1e9, 1e9 + 1e-3),
    (0.0, 1e-20),
    (1e-320, 2e-320),
    (0.1, 0.1 + 1e-9),
    (math.nextafter(30.0, 0.0), 30.0),
    (-50.0, 50.0),
    (-1e20, 1e20),
    (-1e300, 1e300),
    (1e300, INF),
    (-INF, -1e300),
    (40.0, INF),
    (-INF, INF),
    (0.0, INF),
    (-1.0, 1.0),
]


def has_mass(prior: Prior, interval: tuple[float, float]) -> bool:
    return exact_log_mass(prior, *interval) > -INF


@pytest.mark.parametrize("name", PLAIN)
def test_log_mass_of_hard_intervals(name: str) -> None:
    for lower, upper in HARD:
        check_log_mass(PLAIN[name], lower, upper)


def test_log_mass_as_published() -> None:
    assert Laplace(0, 1).log_mass(800, 801) == pytest.approx(-801.1518223259, abs=1e-9)
    assert math.exp(Cauchy(0, 1).log_mass(1e9, 1e9 + 1)) == pytest.approx(3.18309886e-19, rel=1e-8)
    assert Laplace(0, 1).log_mass(0, 1e-20) == pytest.approx(-46.744849, abs=1e-6)
    assert Cauchy(0, 1).log_mass(-1e20 * 2 / math.pi, 1e20 * 2 / math.pi) == pytest.approx(-1e-20, rel=1e-12)


def naive(cdf: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """The usual mistake: the log of a difference of two values of the distribution function."""

    def log_mass(lower: float, upper: float) -> float:
        difference = float(cdf(upper)) - float(cdf(lower))
        return math.log(difference) if difference > 0 else -INF

    return log_mass


def without_complement(lower: float, upper: float) -> float:
    """Right in the tails, and wrong where nearly all the mass is inside."""
    return math.log(math.atan2(upper - lower, 1 + lower * upper) / math.pi)


def from_tails(lower: float, upper: float) -> float:
    """A difference of logs of the tail, which cancels for narrow intervals."""
    a, b = scipy.stats.norm(0.5, 2).logsf([lower, upper])
    return float(a + math.log1p(-math.exp(b - a)))


def laplace_shifted(lower: float, upper: float) -> float:
    """Uses the midpoint's density times the width: good for narrow intervals only."""
    return Laplace(0, 1).log_density(0.5 * lower + 0.5 * upper) + math.log(upper - lower)


@pytest.mark.parametrize(
    ("name", "mutant", "cases"),
    [
        ("cauchy", naive(scipy.stats.cauchy.cdf), [(1e9, 1e9 + 1)]),
        ("cauchy", naive(scipy.stats.cauchy.cdf), [(0.1, 0.1 + 1e-9)]),
        ("cauchy", naive(lambda x: math.atan(x) / math.pi), [(30 - 4e-15, 30.0)]),
        ("cauchy", without_complement, [(-1e20, 1e20)]),
        ("half-cauchy", naive(scipy.stats.halfcauchy(-1, 2).cdf), [(800.0, 801.0)]),
        ("laplace", naive(scipy.stats.laplace.cdf), [(800.0, 801.0)]),
        ("laplace", naive(scipy.stats.laplace.cdf), [(0.0, 1e-20)]),
        ("laplace", naive(scipy.stats.laplace.cdf), [(-50.0, 50.0)]),
        ("laplace", laplace_shifted, [(800.0, 801.0)]),
        ("normal", naive(scipy.stats.norm(0.5, 2).cdf), [(0.1, 0.1 + 1e-9)]),
        ("normal", from_tails, [(1.0, 1.0 + 1e-9)]),
        ("uniform", naive(scipy.stats.uniform(-3, 8).cdf), [(0.1, 0.1 + 1e-9)]),
    ],
)
def test_the_check_of_log_masses_rejects(
    name: str, mutant: Callable[..., Any], cases: list[tuple[float, float]]
) -> None:
    for lower, upper in cases:
        check_log_mass(PLAIN[name], lower, upper)
        with pytest.raises((AssertionError, ValueError)):
            check_log_mass(PLAIN[name], lower, upper, mutant)


# --- Consistency -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLAIN)
def test_masses_add_up(name: str) -> None:
    prior = PLAIN[name]
    for lower, upper in [(-INF, INF), (-900.0, -700.0), (1e9, 1e9 + 1.0), (-1e-12, 1e-12), (0.0, 5.0)]:
        inner = np.linspace(max(lower, -50.0), min(upper, 50.0), 41) if lower < 50 and upper > -50 else None
        inner = np.linspace(lower, upper, 41) if inner is None else inner
        edges = np.unique(np.concatenate([[lower], inner, [upper]]))
        parts = prior.log_mass(edges[:-1], edges[1:])
        whole = prior.log_mass(lower, upper)
        total = np.logaddexp.reduce(parts)
        assert total == whole or abs(total - whole) < 1e-12 * max(1.0, abs(whole))


@pytest.mark.parametrize("name", PLAIN)
def test_density_is_the_derivative_of_mass(name: str) -> None:
    prior = PLAIN[name]
    points = np.array([-20.3, -1.7, -0.9, -0.31, 0.11, 0.7, 1.9, 3.3, 10.4, 300.2])
    half = 1e-7
    width = np.log((points + half) - (points - half))
    masses, densities = prior.log_mass(points - half, points + half), prior.log_density(points)
    assert np.array_equal(masses == -INF, densities == -INF)
    inside = masses > -INF
    assert np.allclose(masses[inside] - width[inside], densities[inside], rtol=1e-12, atol=1e-11)
    assert prior.log_density(0.11) == densities[4]
    assert isinstance(prior.log_density(0.11), float)


@pytest.mark.parametrize("name", PLAIN)
def test_density_integrates_to_mass(name: str) -> None:
    prior = PLAIN[name]
    nodes, weights = np.polynomial.legendre.leggauss(30)
    for lower, upper in [(0.26, 0.9), (3.1, 3.9), (-0.9, -0.1), (10.2, 10.8)]:
        values = prior.log_density(lower + (upper - lower) * (nodes + 1) / 2)
        integral = np.log(weights @ np.exp(values) * (upper - lower) / 2) if values.max() > -INF else -INF
        assert integral == pytest.approx(prior.log_mass(lower, upper), rel=1e-11)


def test_density_far_away_and_at_nothing() -> None:
    assert Cauchy(0, 1).log_density(1e300) == pytest.approx(-math.log(math.pi) - 600 * math.log(10), rel=1e-13)
    assert Cauchy(1e300, 1e-300).log_density(-1e300) == pytest.approx(
        -math.log(math.pi) - math.log(4) - 900 * math.log(10), rel=1e-12
    )
    assert Laplace(0, 1e300).log_density(0) == pytest.approx(-math.log(2) - 300 * math.log(10), rel=1e-13)
    assert Uniform(-LARGEST, LARGEST).log_density(0) == pytest.approx(-math.log(2) - math.log(LARGEST), rel=1e-13)
    for prior in PLAIN.values():
        assert np.array_equal(prior.log_density([math.nan, INF, -INF]), [-INF] * 3)
    assert PLAIN["piecewise"].log_density(-2.0) == pytest.approx(math.log(0.2))
    assert PLAIN["piecewise"].log_density([-1.0, 0.0, 0.25]) == pytest.approx([math.log(0.2), -INF, math.log(2)])


@pytest.mark.parametrize("name", PLAIN)
def test_empty_intervals_have_no_mass(name: str) -> None:
    lower = [0.0, 1.0, INF, -INF, 5.0, 1e300, math.nan, 0.0, math.nan, INF, 1.0, 800.0]
    upper = [0.0, 1.0, INF, -INF, -5.0, -1e300, 1.0, math.nan, math.nan, -INF, -INF, -0.1]
    assert np.array_equal(PLAIN[name].log_mass(lower, upper), [-INF] * len(lower))


@pytest.mark.parametrize("name", PLAIN)
def test_arrays_broadcast_and_stay_as_they_are(name: str) -> None:
    prior = PLAIN[name]
    rng = np.random.default_rng(5)
    points = np.sort(np.concatenate([[-INF], rng.standard_cauchy(2 * BLOCK + 77), [INF]]))
    points.flags.writeable = False
    masses = prior.log_mass(points[:-1], points[1:])
    some = [0, 1, 500, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, points.size - 2]
    single = [prior.log_mass(float(points[i]), float(points[i + 1])) for i in some]
    assert masses.shape == (points.size - 1,)
    assert all(isinstance(value, float) for value in single)
    assert masses[some] == pytest.approx(single, rel=1e-14)
    table = prior.log_mass(points[:5, None], points[None, -4:])
    assert table.shape == (5, 4)
    assert table[2, 1] == pytest.approx(prior.log_mass(points[2], points[-3]), rel=1e-14)
    assert prior.log_mass([], []).shape == (0,)
    assert prior.quantile_between([], [], []).shape == (0,)
    assert prior.log_mass(np.float32(0.5), 3) == prior.log_mass(0.5, Fraction(3))
    assert np.array_equal(prior.log_mass([0, 1], [2, 3]), prior.log_mass(np.array([0.0, 1.0]), np.array([2.0, 3.0])))
    many = prior.quantile_between(points[:-1], points[1:], 0.5)
    assert ((many >= points[:-1]) & (many <= points[1:])).all()


# --- Draws -----------------------------------------------------------------------------------------------------------

APART = np.unique(
    np.concatenate(
        [
            [0.0, 0.5, math.nextafter(1.0, 0.0)],
            10.0 ** -np.arange(1.0, 16.0),
            1.0 - 10.0 ** -np.arange(1.0, 16.0),
            np.random.default_rng(8).random(20),
        ]
    )
)
SHARES = np.unique(np.concatenate([APART, math.nextafter(0.5, 0.0) + np.arange(4) / 2**54]))


def ordered(prior: Prior, lower: float, upper: float, points: np.ndarray) -> np.ndarray:
    """Which of SHARES must give points in order: all of a closed form, else those farther apart than the rounding of an
    iteration, as where single floats have much of the mass and are looked for."""
    with np.errstate(over="ignore"):
        start, end = (np.nextafter(np.nextafter(np.nextafter(points, way), way), way) for way in (-INF, INF))
    around = prior.log_mass(np.maximum(lower, start), np.minimum(upper, end))
    looked_for = np.max(around) - prior.log_mass(lower, upper) > -20 * math.log(2)
    return np.isin(SHARES, APART) if looked_for or not isinstance(prior, STRICT) else np.full(SHARES.size, True)


STRICT = (Uniform, Cauchy, HalfCauchy, Laplace, LogUniform, PiecewiseConstant)


def steps(x: float, count: int) -> float:
    for _ in range(abs(count)):
        x = math.nextafter(x, math.copysign(INF, count))
    return x


def check_share(prior: Prior, lower: float, upper: float, share: float, point: float) -> None:
    """A point is where the oracle has `share` of the interval's mass, to 1e-13 of it and four units of the point, or of
    its quarter where differences could overflow and a quarter of everything is reckoned with."""
    units = 16 if max(abs(end) for end in (lower, upper, getattr(prior, "loc", 0.0)) if end < INF) > 4e307 else 4
    low, high = max(lower, steps(point, -units)), min(upper, steps(point, units))
    with mpmath.workdps(60):
        whole = mass_and_rest(prior, lower, upper)[0]
        at_most = mass_and_rest(prior, lower, high)[0] / whole if high < upper else mpf(1)
        at_least = mass_and_rest(prior, lower, low)[0] / whole if low > lower else mpf(0)
        assert at_least - 1e-13 <= share <= at_most + 1e-13, (prior, lower, upper, share, point)


@pytest.mark.parametrize("end", [0.0, 0.05, 1.0, 5.0, 30.0])
def test_points_next_to_an_end_keep_their_digits(end: float) -> None:
    """Shares down to the least uniform of a wide tail: the offset from the end, seen from a lognormal law's median."""
    for share in (1e-16, 1e-15, 1e-12, 1e-10, 9e-10):
        point = float(normal_inverse(*(np.array([x]) for x in (end, INF, INF, share, 1.0 - share)), 1.0)[0][0])
        with mpmath.workdps(60):
            tail = mpmath.erfc(mpf(end) / mpmath.sqrt(2))
            reached = 1 - mpmath.erfc((mpf(end) + mpf(point)) / mpmath.sqrt(2)) / tail
            assert abs(reached / mpf(share) - 1) < 1e-14
    order = LogNormal(0, 1).quantile_between(-INF, 0.95, [1 - 1e-14, 1 - 1e-15, 1 - 2.0**-53])
    assert order[0] < order[1] < order[2] < 0.95


@pytest.mark.parametrize("make", [pq.Laplace, pq.Normal, pq.Cauchy])
@pytest.mark.parametrize("distance", [1e8, 1e12, 1e17, 1e20, 1e100, 1.7e308])
def test_an_interval_far_from_the_location_has_the_tail_of_its_near_end(
    make: Callable[[float, float], Prior], distance: float
) -> None:
    """Out there log masses have no digits left for the parts of an interval; its points are the tail's all the same."""
    shares = np.array([0.25, 0.5, 0.9])
    offsets = -np.log1p(shares * np.expm1(-5.0)) if make is pq.Laplace else 5.0 * shares
    if make is pq.Normal:
        offsets = -np.log1p(-shares) / distance
    above = make(-distance, 1.0).quantile_between(0.0, 5.0, shares)
    assert above == pytest.approx(offsets, rel=1e-7, abs=1e-307)
    below = make(distance, 1.0).quantile_between(0.0, 5.0, 1.0 - shares)
    assert below == pytest.approx(5.0 - offsets, rel=1e-7)


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_quantiles_stay_inside_and_in_order(family: str, data: st.DataObject) -> None:
    prior = data.draw(FAMILIES[family])
    for _ in range(2):
        lower, upper = sorted(data.draw(intervals(prior)))
        points = prior.quantile_between(lower, upper, SHARES)
        if lower == upper:
            assert (points == lower).all()
            continue
        assert ((points >= max(lower, -LARGEST)) & (points <= min(upper, LARGEST))).all(), (prior, lower, upper)
        if prior.log_mass(lower, upper) == -INF:
            assert np.unique(points).size == 1
        elif not isinstance(prior, Mixture):
            in_order = points[ordered(prior, lower, upper, points)]
            assert (in_order[1:] >= in_order[:-1]).all(), (prior, lower, upper)
            if data.draw(st.integers(0, 3)) == 0 and max(abs(lower), abs(upper)) != LARGEST:
                i = data.draw(st.integers(0, SHARES.size - 1))
                check_share(prior, lower, upper, float(SHARES[i]), float(points[i]))


LARGEST = float(np.finfo(np.float64).max)
FAR_ENDS = [-INF, -LARGEST, -1e308, -1e300, -1.0, -5e-324, 0.0, 5e-324, 1e-310, 1.0, 1e60, 1e300, 1e308, LARGEST, INF]
FAR_LOCATIONS, FAR_SCALES = [-LARGEST, -1.0, 0.0, 5e-324, 1e300, LARGEST], [5e-324, 1e-310, 1.0, 1e300, LARGEST]
FAR_FAMILIES: dict[str, Callable[[float, float], Prior]] = {
    "normal": pq.Normal,
    "cauchy": pq.Cauchy,
    "laplace": pq.Laplace,
    "lognormal": pq.LogNormal,
    "half-cauchy": lambda loc, scale: pq.HalfCauchy(scale, loc),
    "uniform": lambda loc, scale: pq.Uniform(loc, loc + scale),
    "mixture": lambda loc, scale: pq.Laplace(loc, scale).mix(pq.Normal(0.0, 5e-324), 0.5),
    "order statistic": lambda loc, scale: pq.OrderStatistic(pq.Normal(loc, scale), 9, 3),
    "log-uniform": lambda loc, scale: pq.LogUniform(),
}


@pytest.mark.parametrize("family", FAR_FAMILIES)
def test_points_are_numbers_at_the_ends_of_the_floats(family: str) -> None:
    """Whatever the parameters that are taken, and whatever records bound a cell."""
    lower, upper = np.array([ends for ends in itertools.product(FAR_ENDS, FAR_ENDS) if ends[0] < ends[1]]).T
    made = 0
    for loc, scale in itertools.product(FAR_LOCATIONS, FAR_SCALES[::2] if family == "order statistic" else FAR_SCALES):
        try:
            prior = FAR_FAMILIES[family](loc, scale)
        except ValueError:
            continue
        made += 1
        masses = prior.log_mass(lower, upper)
        assert (masses <= 0.0).all()
        for uniform in (0.0, 1e-300, 0.3, 0.5, 1.0 - 2.0**-53):
            points = prior.quantile_between(lower, upper, uniform)
            assert np.isfinite(points).all() and ((lower <= points) & (points <= upper)).all(), prior
    assert made > 5


def test_a_record_far_from_a_prior_of_the_least_scale() -> None:
    """The formula of the quarter of a scale that has no quarter is none."""
    for prior in (pq.Normal(0, 5e-324), pq.Laplace(0, 5e-324), pq.Cauchy(0, 1e-323)):
        for x in ([1e308], [-1e308], [5e-324, 1e308, -1e308]):
            for mechanism in ("tree", "joint", "cells", "mixed"):
                made = pq.release(x, [0.25, 0.5, 0.9], epsilon=1, priors=prior, mechanism=mechanism, rng=0)
                assert np.isfinite(made.values).all(), (prior, x, mechanism)


@pytest.mark.parametrize("name", [name for name, prior in PLAIN.items() if not isinstance(prior, Mixture)])
def test_quantiles_have_their_share(name: str) -> None:
    prior = PLAIN[name]
    for lower, upper in HARD:
        if has_mass(prior, (lower, upper)):
            for share in (1e-9, 0.1, 0.5, 0.75, 1 - 1e-9):
                check_share(prior, lower, upper, share, prior.quantile_between(lower, upper, share))


def test_the_check_of_shares_rejects() -> None:
    for share, wrong in [(0.5, 800.5), (0.3, 800.3)]:
        check_share(PLAIN["laplace"], 800.0, 801.0, share, PLAIN["laplace"].quantile_between(800.0, 801.0, share))
        with pytest.raises(AssertionError):
            check_share(PLAIN["laplace"], 800.0, 801.0, share, wrong)
    with pytest.raises(AssertionError):
        check_share(PLAIN["cauchy"], 1e9, 1e9 + 1e-3, 0.5, 1e9)


KS_DRAWS, KS_BOUND = (
    2000,
    0.0602,
)  # Massart: one comparison exceeds the bound with probability at most 2 exp(-14.5) = 1e-6


def kolmogorov(prior: Prior, lower: float, upper: float, points: np.ndarray) -> float:
    """Largest distance between the empirical law of the points and the prior restricted to the interval."""
    points = np.sort(points)
    shares = np.exp(prior.log_mass(lower, points) - prior.log_mass(lower, upper))
    ranks = np.arange(points.size + 1) / points.size
    return float(max(np.max(ranks[1:] - shares), np.max(shares - ranks[:-1])))


LAWS = [*PLAIN, "gamma"]


@pytest.mark.parametrize("name", LAWS)
def test_samples_follow_the_restricted_prior(name: str) -> None:
    # At most 70 comparisons over all families: for a new seed, a right sampler fails any with probability below 1e-4.
    prior = PLAIN[name] if name in PLAIN else from_scipy(scipy.stats.gamma(2.5))
    rng = np.random.default_rng(20230723)
    cases = [(-INF, INF), (-0.5, 1.5), (0.01, 900.0), (-INF, 0.3), (800.0, 801.0), (3.5, 11.0), (1e4, INF)]
    for lower, upper in cases:
        if prior.log_mass(lower, upper) > -INF and not (name == "gamma" and upper == INF and lower > 0):
            points = prior.sample_between(np.full(KS_DRAWS, lower), upper, rng)
            assert points.shape == (KS_DRAWS,)
            assert ((points >= lower) & (points <= upper)).all()
            assert kolmogorov(prior, lower, upper, points) < KS_BOUND, (lower, upper)
            assert np.unique(points).size > 0.99 * KS_DRAWS


def test_the_comparison_of_samples_rejects() -> None:
    rng = np.random.default_rng(3)
    flat = 800.0 + rng.random(KS_DRAWS)
    assert kolmogorov(PLAIN["laplace"], 800.0, 801.0, flat) > KS_BOUND
    one_sided = np.abs(PLAIN["cauchy"].sample_between(np.full(KS_DRAWS, -5.0), 5.0, rng))
    assert kolmogorov(PLAIN["cauchy"], -5.0, 5.0, one_sided) > KS_BOUND
    first_part_only = Laplace(0.0, 1.0).sample_between(np.full(KS_DRAWS, -INF), INF, rng)
    assert kolmogorov(Laplace(0.0, 1.0).mix(Cauchy(0.0, 10.0), 0.3), -INF, INF, first_part_only) > KS_BOUND


@pytest.mark.parametrize(
    "prior", [Cauchy(0, 1), HalfCauchy(1), Cauchy(2e9, 1), Laplace(1e9, 1), Normal(1e9, 1)], ids=str
)
def test_draws_differ_in_narrow_intervals(prior: Prior) -> None:
    # 8,000 floats lie between: 100 even draws hold fewer than 90 values with probability below 1e-12.
    points = prior.sample_between(np.full(100, 1e9), 1e9 + 1e-3, np.random.default_rng(0))
    assert np.unique(points).size >= 90
    tiny = type(prior)(loc=0.0, scale=1.0) if not isinstance(prior, HalfCauchy) else prior  # type: ignore[call-arg]
    assert np.unique(tiny.sample_between(np.zeros(100), 1e-300, np.random.default_rng(0))).size == 100


def test_draws_differ_in_far_tails() -> None:
    for prior in (Laplace(0, 1), Laplace(0, 1).mix(Normal(0, 1), 0.5), from_scipy(scipy.stats.logistic())):
        points = prior.sample_between(np.full(50, 800.0), 801.0, np.random.default_rng(0))
        assert np.unique(points).size == 50
        assert np.ptp(points) > 0.3


def test_a_seed_gives_a_draw() -> None:
    prior = PLAIN["mixture"]
    one, two = (prior.sample_between(-1.0, [1.0, 2.0, 3.0], np.random.default_rng(7)) for _ in range(2))
    assert np.array_equal(one, two)
    uniforms_drawn = np.random.default_rng(7).random(3)
    assert np.array_equal(one, prior.quantile_between(-1.0, [1.0, 2.0, 3.0], uniforms_drawn))
    assert isinstance(prior.sample_between(0.0, 1.0, np.random.default_rng(7)), float)


def test_mixtures_take_components_by_their_mass_in_the_interval() -> None:
    prior = Mixture([Uniform(0, 1), Uniform(0.5, 1.5), Uniform(7, 8)], [0.2, 0.3, 0.5])
    # In (0.5, 1.25] the masses are 0.1 and 0.225: the first component has 4/13 of the shares.
    cut = 0.1 / 0.325
    assert prior.quantile_between(0.5, 1.25, cut * 0.5) == pytest.approx(0.75)
    assert prior.quantile_between(0.5, 1.25, cut + (1 - cut) * 0.5) == pytest.approx(0.875)


@pytest.mark.parametrize(
    ("prior", "interval", "end"),
    [
        (Uniform(0, 1), (5.0, 6.0), 5.0),
        (Uniform(0, 1), (1.0, 6.0), 1.0),
        (Uniform(0, 1), (-3.0, 0.0), 0.0),
        (Uniform(0, 1), (-INF, -2.0), -2.0),
        (Uniform(0, 1), (2.0, INF), 2.0),
        (HalfCauchy(1.0, 3.0), (-INF, 2.5), 2.5),
        (LogUniform(), (-1e-320, 2e-320), 2e-320),
        (Normal(0, 1), (1e200, 1e201), 1e200),
        (Normal(0, 1), (-1e201, -1e200), -1e200),
        (PiecewiseConstant([0, 1, 9, 10], [1, 0, 1]), (1.5, 6.0), 1.5),
        (PiecewiseConstant([0, 1, 9, 10], [1, 0, 1]), (3.0, 8.5), 8.5),
        (PiecewiseConstant([0, 1, 9, 10], [1, 0, 1]), (3.0, 7.0), 3.0),
        (PiecewiseConstant([0, 1, 9, 10], [1, 0, 0]), (3.0, 8.5), 3.0),
        (Mixture([Uniform(0, 1), Uniform(9, 10)], [1, 1]), (3.0, 8.5), 8.5),
        (Mixture([Uniform(0, 1), Uniform(9, 10)], [1, 0]), (3.0, 8.5), 3.0),
        (from_scipy(scipy.stats.beta(2, 3)), (3.0, 8.5), 3.0),
        (from_scipy(scipy.stats.gumbel_r()), (-3000.0, -2000.0), -2000.0),
    ],
)
def test_without_mass_the_end_nearest_to_the_support(prior: Prior, interval: tuple[float, float], end: float) -> None:
    assert prior.log_mass(*interval) == -INF
    assert np.array_equal(prior.quantile_between(*interval, [0.0, 0.3, 0.999]), [end] * 3)
    assert prior.sample_between(*interval, np.random.default_rng(1)) == end


@pytest.mark.parametrize("name", PLAIN)
def test_intervals_without_width_and_without_end(name: str) -> None:
    prior = PLAIN[name]
    for at in (0.0, -7.5, 1e300, INF, -INF):
        assert prior.quantile_between(at, at, 0.4) == at
    whole = prior.quantile_between(-INF, INF, SHARES)
    assert np.isfinite(whole).all()
    low, high = prior.support
    assert ((whole >= low) & (whole <= high)).all()


# --- Values, descriptions, refusals ----------------------------------------------------------------------------------

GAMMA = from_scipy(scipy.stats.gamma(2.5, loc=1, scale=3))


@pytest.mark.parametrize("prior", [*PLAIN.values(), GAMMA], ids=lambda prior: type(prior).__name__)
def test_priors_are_values(prior: Prior) -> None:
    prior.log_mass(0.0, 1.0)  # what is kept for speed is no part of the value
    for twin in (pickle.loads(pickle.dumps(prior)), copy.deepcopy(prior), Prior.from_dict(prior.to_dict())):
        assert twin == prior
        assert hash(twin) == hash(prior)
        assert repr(twin) == repr(prior)
        assert twin.log_mass(0.2, 1.7) == prior.log_mass(0.2, 1.7)
    assert Prior.from_dict(json.loads(json.dumps(prior.to_dict()))) == prior
    assert prior != prior.mix(prior, 0.5)
    with pytest.raises(FrozenInstanceError):
        prior.loc = 3.0  # type: ignore[attr-defined]


def test_values_compare_by_family_and_parameters() -> None:
    assert Cauchy(0, 1) == Cauchy(-0.0, Fraction(1)) != Laplace(0, 1)
    assert len({Cauchy(0, 1), Cauchy(0.0, 1.0), Laplace(0, 1), Normal(0, 1)}) == 3
    assert PiecewiseConstant([0, 1, 2], [2, 6]) == PiecewiseConstant(np.arange(3), np.array([0.25, 0.75]))
    assert str(HalfCauchy(2)) == "HalfCauchy(scale=2.0, loc=0.0)"
    assert str(PiecewiseConstant(range(101), [1] * 100)) == "PiecewiseConstant(<100 bins on [0.0, 100.0]>)"
    assert str(GAMMA) == "from_scipy(gamma(a=2.5, loc=1.0, scale=3.0))"


@given(weights=st.lists(raw_weights, min_size=1, max_size=30).filter(lambda w: sum(w) > 0))
def test_normalised_weights_stay(weights: list[float]) -> None:
    prior = PiecewiseConstant(range(len(weights) + 1), weights)
    assert abs(math.fsum(prior.weights) - 1) < 5e-16
    assert PiecewiseConstant(prior.edges, prior.weights) == prior
    total = sum(map(Fraction, weights))
    for given_weight, weight in zip(weights, prior.weights, strict=True):
        assert (
            abs(Fraction(weight) * total - Fraction(given_weight)) <= Fraction(given_weight) / 2**50 + total / 2**1074
        )


def test_huge_weights_do_not_overflow() -> None:
    assert Mixture([Uniform(0, 1), Cauchy(0, 1)], [1.5e308, 1.5e308]).weights == (0.5, 0.5)


def test_mix() -> None:
    mixed = Laplace(0, 1).mix(Cauchy(0, 5), 0.25)
    assert mixed == Mixture([Laplace(0, 1), Cauchy(0, 5)], [0.75, 0.25])
    expected = 0.75 * math.exp(Laplace(0, 1).log_mass(2, 3)) + 0.25 * math.exp(Cauchy(0, 5).log_mass(2, 3))
    assert mixed.log_mass(2, 3) == pytest.approx(math.log(expected), rel=1e-13)
    assert Laplace(0, 1).mix(Cauchy(0, 5), 0).log_mass(-3, 0.5) == pytest.approx(
        Laplace(0, 1).log_mass(-3, 0.5), rel=1e-13
    )
    assert Laplace(0, 1).mix(Cauchy(0, 5), 1).log_mass(-3, 0.5) == pytest.approx(
        Cauchy(0, 5).log_mass(-3, 0.5), rel=1e-13
    )


def test_supports() -> None:
    assert Uniform(1, 2).support == (1.0, 2.0)
    assert Cauchy(1, 2).support == Laplace(1, 2).support == Normal(1, 2).support == (-INF, INF)
    assert HalfCauchy(2, 1).support == (1.0, INF)
    assert PiecewiseConstant([0, 1, 2, 3], [0, 1, 0]).support == (1.0, 2.0)
    assert Mixture([Uniform(0, 1), Uniform(5, 6), Cauchy(0, 1)], [1, 1, 0]).support == (0.0, 6.0)
    assert GAMMA.support == (1.0, INF)


NOT_FINITE: list[Any] = [math.nan, INF, -INF, 10**400]
NOT_REAL: list[Any] = ["1", True, np.True_, None, 1j, [1.0]]
FLAT = Uniform(0, 1)
REFUSALS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: Uniform(x, 1), "low"),
    (lambda x: Uniform(0, x), "high"),
    (lambda x: Cauchy(x, 1), "loc"),
    (lambda x: Cauchy(0, x), "scale"),
    (lambda x: HalfCauchy(x), "scale"),
    (lambda x: HalfCauchy(1, x), "loc"),
    (lambda x: Laplace(x, 1), "loc"),
    (lambda x: Laplace(0, x), "scale"),
    (lambda x: Normal(x, 1), "loc"),
    (lambda x: Normal(0, x), "scale"),
    (lambda x: PiecewiseConstant([0, x], [1]), "edges"),
    (lambda x: PiecewiseConstant([0, 1, 2], [1, x]), "weights"),
    (lambda x: Mixture([FLAT, FLAT], [1, x]), "weights"),
    (lambda x: FLAT.mix(FLAT, x), "weight"),
]


@pytest.mark.parametrize(("build", "name"), REFUSALS, ids=lambda entry: entry if isinstance(entry, str) else "")
def test_refused_numbers_are_named(build: Callable[[Any], Any], name: str) -> None:
    for value in NOT_FINITE:
        with pytest.raises(ValueError, match=name):
            build(value)
    for value in NOT_REAL:
        with pytest.raises(TypeError, match=name):
            build(value)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: Uniform(1, 1), ValueError, "low must be below high"),
        (lambda: Uniform(2, 1), ValueError, "low must be below high"),
        (lambda: Cauchy(0, 0), ValueError, "scale must be positive"),
        (lambda: HalfCauchy(-1), ValueError, "scale must be positive"),
        (lambda: Laplace(0, -0.0), ValueError, "scale must be positive"),
        (lambda: Normal(0, -1e-300), ValueError, "scale must be positive"),
        (lambda: PiecewiseConstant([0], []), ValueError, "edges must have at least two"),
        (lambda: PiecewiseConstant([0, 1, 1], [1, 1]), ValueError, "edges must be strictly increasing"),
        (lambda: PiecewiseConstant([0, 2, 1], [1, 1]), ValueError, "edges must be strictly increasing"),
        (lambda: PiecewiseConstant([0, 1, 2], [1]), ValueError, "weights must have one entry for each of the 2 bins"),
        (lambda: PiecewiseConstant([0, 1, 2], [2, -1]), ValueError, "weights must not be negative"),
        (lambda: PiecewiseConstant([0, 1, 2], [0, 0]), ValueError, "weights must have a positive sum"),
        (lambda: PiecewiseConstant("01", [1]), TypeError, "edges must be a sequence"),
        (lambda: PiecewiseConstant([0, 1], 1.0), TypeError, "weights must be a sequence"),
        (lambda: Mixture([], []), ValueError, "priors must not be empty"),
        (lambda: Mixture(FLAT, [1]), TypeError, "priors must be a sequence"),
        (lambda: Mixture([FLAT, 3], [1, 1]), TypeError, r"priors\[1\] must be a prior"),
        (lambda: Mixture([FLAT], [1, 1]), ValueError, "weights must have one entry for each of the 1 priors"),
        (lambda: Mixture([FLAT, FLAT], [0, 0]), ValueError, "weights must have a positive sum"),
        (lambda: FLAT.mix(FLAT, 1.5), ValueError, r"weight must lie in \[0, 1\]"),
        (lambda: FLAT.mix(FLAT, -0.1), ValueError, r"weight must lie in \[0, 1\]"),
        (lambda: FLAT.mix("cauchy", 0.1), TypeError, "robust must be a prior"),
        (lambda: FLAT.log_mass("0", 1), TypeError, "lower must hold real numbers"),
        (lambda: FLAT.log_mass(0, [True]), TypeError, "upper must hold real numbers"),
        (lambda: FLAT.log_mass([None], 1), TypeError, "lower must hold real numbers"),
        (lambda: FLAT.log_mass([[0], [1, 2]], 1), ValueError, "lower must be an array"),
        (lambda: FLAT.log_mass(0, 10**400), ValueError, "upper must be an array"),
        (lambda: FLAT.log_density(1j), TypeError, "o must hold real numbers"),
        (lambda: FLAT.quantile_between(math.nan, 1, 0.5), ValueError, "lower and upper must not be NaN"),
        (lambda: FLAT.quantile_between(0, math.nan, 0.5), ValueError, "lower and upper must not be NaN"),
        (lambda: FLAT.quantile_between(1, 0, 0.5), ValueError, "lower must not be above upper"),
        (lambda: FLAT.quantile_between(0, 1, 1.0), ValueError, r"uniform must lie in \[0, 1\)"),
        (lambda: FLAT.quantile_between(0, 1, -0.1), ValueError, r"uniform must lie in \[0, 1\)"),
        (lambda: FLAT.quantile_between(0, 1, math.nan), ValueError, r"uniform must lie in \[0, 1\)"),
        (lambda: FLAT.sample_between(0, 1, 7), TypeError, "rng must be a numpy.random.Generator"),
        (lambda: Prior.from_dict({"family": "Pareto"}), ValueError, "family must be one of"),
        (lambda: Prior.from_dict({"loc": 0.0}), ValueError, "family must be one of"),
        (lambda: Prior.from_dict([1]), TypeError, "description must be a mapping"),
        (lambda: Prior.from_dict({"family": "Cauchy", "loc": 0.0, "scale": -1.0}), ValueError, "scale"),
        (lambda: Prior.from_dict({"family": "Cauchy", "loc": 0.0, "width": 1.0}), TypeError, "width"),
        (lambda: Prior.from_dict({"family": "ScipyPrior", "distribution": "poisson"}), ValueError, "distribution"),
        (lambda: from_scipy(scipy.stats.poisson(3)), TypeError, "must be a continuous distribution; a discrete one"),
        (lambda: from_scipy(scipy.stats.gamma), TypeError, "must be a frozen distribution"),
        (lambda: from_scipy(scipy.stats.multivariate_normal([0, 0])), TypeError, "frozen continuous"),
        (lambda: from_scipy("norm"), TypeError, "frozen continuous"),
        (lambda: from_scipy(None), TypeError, "frozen continuous"),
        (lambda: from_scipy(scipy.stats.norm(0, -1)), ValueError, "frozen: scale must be positive"),
        (lambda: from_scipy(scipy.stats.norm([0, 1], 1)), TypeError, "frozen: loc must be a real number"),
        (lambda: from_scipy(scipy.stats.gamma(-2)), ValueError, "frozen must have parameters in the domain of gamma"),
        (lambda: from_scipy(scipy.stats.gamma(math.nan)), ValueError, "frozen: a must be finite"),
    ],
)
def test_refusals(build: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        build()


# --- scipy.stats -----------------------------------------------------------------------------------------------------


def test_scipy_families_that_are_here_come_back_as_those() -> None:
    assert from_scipy(scipy.stats.norm(1, 2)) == Normal(1, 2)
    assert from_scipy(scipy.stats.cauchy(1, scale=2)) == Cauchy(1, 2)
    assert from_scipy(scipy.stats.laplace(scale=2)) == Laplace(0, 2)
    assert from_scipy(scipy.stats.halfcauchy(1, 2)) == HalfCauchy(2, 1)
    assert from_scipy(scipy.stats.uniform(1, 2)) == Uniform(1, 3)


def gamma_below(x: float) -> mpf:
    return mpf(1) if x == INF else mpmath.gammainc(mpf("2.5"), 0, mpf(x), regularized=True)


def student_below(x: float) -> mpf:
    z = mpf(x)
    return mpf("0.5") + (mpmath.atan(z / mpmath.sqrt(3)) + z * mpmath.sqrt(3) / (3 + z * z)) / mp.pi


def logistic_below(x: float) -> mpf:
    return 1 / (1 + mpmath.exp(-mpf(x)))


def beta_below(x: float) -> mpf:
    return mpmath.betainc(mpf("0.5"), 3, 0, mpf(x), regularized=True)


@pytest.mark.parametrize(
    ("frozen", "below", "cases"),
    [
        (
            scipy.stats.gamma(2.5),
            gamma_below,
            [(0, 1e-20), (1, 1 + 1e-9), (100, 101), (800, 801), (800, INF), (0.5, 30)],
        ),
        (scipy.stats.t(3), student_below, [(-1, 1), (1e9, 1e9 + 1), (1e5, 1e5 + 1e-3), (0, 1e-20), (-1e4, 1e4)]),
        (scipy.stats.logistic(), logistic_below, [(800, 801), (-900, -800), (800, 1e9), (5, 5 + 1e-12), (-50, 50)]),
        (
            scipy.stats.beta(0.5, 3),
            beta_below,
            [(0, 1e-20), (1e-20, 2e-20), (0.5, 0.6), (0.999, 1), (0.3, 0.3 + 1e-12)],
        ),
    ],
    ids=["gamma", "t", "logistic", "beta"],
)
def test_scipy_log_masses(frozen: Any, below: Callable[[float], mpf], cases: list[tuple[float, float]]) -> None:
    prior = from_scipy(frozen)
    for lower, upper in cases:
        points = prior.quantile_between(lower, upper, APART[::5])
        assert ((points >= lower) & (points <= upper)).all()
        assert (points[1:] >= points[:-1]).all()
        with mpmath.workdps(450 if abs(lower) > 200 else 90):
            start, mass = below(lower), below(upper) - below(lower)
            assert abs(mpf(prior.log_mass(lower, upper)) - mpmath.log(mass)) <= TOLERANCE * abs(mpmath.log(mass))
            at = prior.quantile_between(lower, upper, 0.8)
            found = [(below(steps(at, k)) - start) / mass for k in (-4, 4)]
            assert found[0] - 1e-12 <= 0.8 <= found[1] + 1e-12, (lower, upper)


def test_scipy_log_masses_vectorised() -> None:
    prior = from_scipy(scipy.stats.gamma(2.5))
    points = np.sort(np.random.default_rng(2).gamma(2.5, size=300))
    masses = prior.log_mass(points[:-1], points[1:])
    assert np.logaddexp.reduce(masses) == pytest.approx(prior.log_mass(points[0], points[-1]), rel=1e-12)
    assert prior.log_density([1.0, -1.0]) == pytest.approx([scipy.stats.gamma(2.5).logpdf(1.0), -INF])


class Triangle(scipy.stats.rv_continuous):
    """A distribution with nothing but its density."""

    def _pdf(self, x: Any) -> Any:
        return 2.0 * x


def test_a_distribution_of_ones_own() -> None:
    prior = from_scipy(Triangle(a=0.0, b=1.0, name="triangle")())
    assert prior.log_mass(0.25, 0.5) == pytest.approx(math.log(0.1875), rel=1e-9)
    assert prior.quantile_between(0.0, 1.0, 0.25) == pytest.approx(0.5, rel=1e-6)
    assert prior == from_scipy(prior.frozen)  # type: ignore[attr-defined]
    assert prior != from_scipy(Triangle(a=0.0, b=1.0, name="triangle")())
    with pytest.raises(ValueError, match="custom triangle"):
        Prior.from_dict(prior.to_dict())
    histogram = scipy.stats.rv_histogram((np.array([3, 1]), np.array([0.0, 1.0, 2.0])), density=False)
    assert from_scipy(histogram()).log_mass(0.5, 1.5) == pytest.approx(math.log(0.5), rel=1e-12)
