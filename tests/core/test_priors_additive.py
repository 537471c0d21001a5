"""Masses of cut intervals add up, whatever made the prior: analytic laws at all scales, all of `scipy.stats`, and
distributions that lie.

An interval is cut at random places. The sum of the pieces must be the whole, and so no exact privacy loss between
neighbouring columns, which cut the line at one place more, may exceed epsilon. `PQ_PAIRS` sets the number of pairs of
neighbours: 3,000 by default; with more, families that take seconds to make are not left out.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf
from scipy.stats._distr_params import distcont
from test_priors import FAMILIES, exact_log_mass, intervals

import pq
from pq.core.priors import Laplace, Prior, ScipyPrior, from_scipy
from pq.core.priors.lognormal import LEAST_LOG_SCALE
from pq.core.priors.order_statistic import MOST_DRAWS
from pq.core.priors.panels import Panels

INF = math.inf
LARGEST = float(np.finfo(np.float64).max)
PAIRS = int(os.environ.get("PQ_PAIRS", "3000"))
SLOW = {"levy_stable", "studentized_range", "ksone", "kstwo", "norminvgauss", "irwinhall", "genhyperbolic"}
ADDITIVE = 1e-12  # relative error of a mass: of its logarithm, an absolute one


# --- Distributions that lie ------------------------------------------------------------------------------------------


class OnlyDensity(scipy.stats.rv_continuous):
    """Nothing but a density, and that of twice the mass."""

    def _pdf(self, x: Any) -> Any:
        return 4.0 * np.asarray(x)


class WrongCdf(scipy.stats.rv_continuous):
    """The distribution function of another law than the density's."""

    def _pdf(self, x: Any) -> Any:
        return np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)

    def _cdf(self, x: Any) -> Any:
        return 1.0 / (1.0 + np.exp(-(x - 3.0) / 0.1))


class Wavy(scipy.stats.rv_continuous):
    """A distribution function that falls, leaves [0, 1], and comes back."""

    def _cdf(self, x: Any) -> Any:
        return 0.5 + x / 10.0 + 0.3 * np.sin(5.0 * x)


class Falling(scipy.stats.rv_continuous):
    """A distribution function that falls from one to zero."""

    def _cdf(self, x: Any) -> Any:
        return 1.0 / (1.0 + np.exp(x))


class Nowhere(scipy.stats.rv_continuous):
    """A distribution function that is the same everywhere."""

    def _pdf(self, x: Any) -> Any:
        return np.exp(-np.abs(x)) / 2.0

    def _cdf(self, x: Any) -> Any:
        return np.full(np.shape(x), 0.3)

    def _ppf(self, q: Any) -> Any:
        return np.full(np.shape(q), np.nan)


class NotNumbers(scipy.stats.rv_continuous):
    """NaN in places that other places do not show."""

    def _pdf(self, x: Any) -> Any:
        return np.where(np.floor(np.asarray(x) * 3.0) % 2 == 0, np.nan, np.exp(-np.abs(x)) / 2.0)

    def _cdf(self, x: Any) -> Any:
        return np.where(np.abs(x) > 2.0, np.nan, scipy.stats.laplace.cdf(x))


class Garbage(scipy.stats.rv_continuous):
    """Other numbers at each call."""

    rng = np.random.default_rng(0)

    def _pdf(self, x: Any) -> Any:
        return np.exp(self.rng.normal(0.0, 30.0, np.shape(x)))

    def _cdf(self, x: Any) -> Any:
        return self.rng.normal(0.5, 1.0, np.shape(x))

    def _ppf(self, q: Any) -> Any:
        return self.rng.normal(0.0, 1.0, np.shape(q))


class Rough(scipy.stats.rv_continuous):
    """A density that jumps up and down between any two numbers, by a third of a nat."""

    def _pdf(self, x: Any) -> Any:
        return np.exp(-np.abs(x) + 0.3 * np.sign(np.sin(1e9 * np.asarray(x)))) / 2.0

    def _cdf(self, x: Any) -> Any:
        return scipy.stats.laplace.cdf(x)

    def _ppf(self, q: Any) -> Any:
        return scipy.stats.laplace.ppf(q)


class Raising(scipy.stats.rv_continuous):
    """Raises beyond ten."""

    def _pdf(self, x: Any) -> Any:
        if np.any(np.abs(x) > 10.0):
            raise ArithmeticError("too far")
        return np.exp(-np.abs(x)) / 2.0

    def _cdf(self, x: Any) -> Any:
        return scipy.stats.laplace.cdf(x)


class LeastFloat(scipy.stats.rv_continuous):
    """Even on [0, 1], and writes the log of zero as the least float."""

    def _cdf(self, x: Any) -> Any:
        return np.clip(x, 0.0, 1.0)

    def _logpdf(self, x: Any) -> Any:
        return np.where((x >= 0.0) & (x <= 1.0), 0.0, -LARGEST)


class Unnormalised(scipy.stats.rv_continuous):
    """Even on [-100, 100], but that all its logs lack a constant."""

    constant = 0.0

    def _logcdf(self, x: Any) -> Any:
        return self.constant + np.log((x + 100.0) / 200.0)

    def _logsf(self, x: Any) -> Any:
        return self.constant + np.log((100.0 - x) / 200.0)

    def _logpdf(self, x: Any) -> Any:
        return np.full(np.shape(x), self.constant)

    def _ppf(self, q: Any) -> Any:
        return 200.0 * q - 100.0


class Extreme(scipy.stats.rv_continuous):
    """Logs of all sizes, other ones at each call, beside quartiles that are right."""

    rng = np.random.default_rng()
    sizes = np.array([0.0, 5e-324, 1.0, 700.0, 1e9, 1e15, 1e17, 1e154, 1e300, 1.1e300, LARGEST, INF, math.nan])

    def _logs(self, x: Any) -> Any:
        return self.rng.choice(np.append(-self.sizes, self.sizes[:-2]), np.shape(x))

    _logcdf = _logsf = _logpdf = _logs

    def _ppf(self, q: Any) -> Any:
        return scipy.stats.laplace.ppf(q)


def unnormalised(constant: float) -> Any:
    return type("Unnormalised", (Unnormalised,), {"constant": constant})(a=-100.0, b=100.0, name="unnormalised")()


def extreme(seed: int) -> Any:
    return type("Extreme", (Extreme,), {"rng": np.random.default_rng(seed)})(name="extreme")()


AT_THE_END = [
    (scipy.stats.dgamma, 3.7),
    (scipy.stats.gamma, 2.0),
    (scipy.stats.logistic,),
    (scipy.stats.gumbel_r,),
]  # linear logs of densities that no float holds


class Scribbles(scipy.stats.rv_continuous):
    """Laplace's law, by public methods that write into what they are handed, and into what they answered before."""

    def _logpdf(self, x: Any) -> Any:
        return scipy.stats.laplace.logpdf(x)

    def ppf(self, q: Any, *args: Any, **kwds: Any) -> Any:
        return scipy.stats.laplace.ppf(q)

    def logsf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        return scipy.stats.laplace.logsf(x)

    def logcdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        out = scipy.stats.laplace.logcdf(np.array(x))
        vars(self).setdefault("told", []).append(out)
        for answer in self.told[:-1]:
            np.multiply(answer, 3.0, out=answer)
        if isinstance(x, np.ndarray):
            np.multiply(x, 2.0, out=x)
        return out


LIARS: dict[str, Callable[[], Any]] = {
    "scribbles": lambda: Scribbles(name="scribbles")(),
    "only density": lambda: OnlyDensity(a=0.0, b=1.0, name="double")(),
    "wrong cdf": lambda: WrongCdf(name="wrong")(),
    "wavy": lambda: Wavy(a=-5.0, b=5.0, name="wavy")(),
    "falling": lambda: Falling(a=-5.0, b=5.0, name="falling")(),
    "nowhere": lambda: Nowhere(name="nowhere")(),
    "not numbers": lambda: NotNumbers(name="nan")(),
    "garbage": lambda: Garbage(name="garbage")(),
    "rough": lambda: Rough(name="rough")(),
    "raising": lambda: Raising(name="raising")(),
    "periodic": lambda: scipy.stats.vonmises(4.0),
    "not a number far out": lambda: scipy.stats.geninvgauss(2.3, 1.5),
    "least float": lambda: LeastFloat(name="least")(),
    **{f"extreme {seed}": partial(extreme, seed) for seed in range(8)},
    **{f"without {-constant:g} nats": partial(unnormalised, constant) for constant in (-1e12, -1e15, -1e18, -1e300)},
    **{f"{law.name} at the end": partial(law, *shapes, loc=-LARGEST) for law, *shapes in AT_THE_END},
}


@cache
def made(name: str) -> Prior | None:
    """The prior that a liar makes; None where it is refused, before any data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return from_scipy(LIARS[name]())
        except ValueError:
            return None


# --- Cutting ---------------------------------------------------------------------------------------------------------


def places(prior: Prior, rng: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
    """Edges of all kinds: in the bulk, close together, far out, at the ends of the support, at infinity."""
    bulk = prior.quantile_between(-INF, INF, rng.random(count))
    tight = bulk[: count // 3] * (1.0 + 10.0 ** rng.uniform(-15, -3, count // 3))
    far = rng.choice([-1.0, 1.0], count // 3) * 10.0 ** rng.uniform(-300, 308, count // 3)
    ends = [x for x in prior.support if math.isfinite(x)]
    return np.unique(np.concatenate([bulk, tight, far, ends, [-INF, 0.0, LARGEST, INF]]))


def check_cuts(
    log_mass: Callable[[Any, Any], Any], edges: np.ndarray[Any, Any], rng: np.random.Generator, digits: float = ADDITIVE
) -> None:
    """Pieces add up to their interval, for all edges and for every coarser choice of them."""
    pieces = log_mass(edges[:-1], edges[1:])
    assert not np.isnan(pieces).any() and (pieces <= 0.0).all()
    for _ in range(8):
        i, j = np.sort(rng.choice(edges.size, 2, replace=False))
        whole, total = log_mass(edges[i], edges[j]), np.logaddexp.reduce(pieces[i:j])
        if whole == total == -INF:
            continue
        assert abs(whole - total) <= digits * max(1.0, 2e-3 * abs(whole)), (edges[i], edges[j], whole, total)


SHAPES = [
    (name, tuple(map(float, shapes)))
    for name, shapes in distcont
    if isinstance(name, str) and (PAIRS > 3000 or name not in SLOW)
]


@cache
def some_scipy(name: str, shapes: tuple[float, ...]) -> Prior:
    """A member of the family near the usual shapes, moved and scaled at random; the usual one if that is none."""
    rng = np.random.default_rng(list(name.encode()))
    family = getattr(scipy.stats, name)
    loc, scale = float(rng.normal() * 10.0 ** rng.uniform(-2, 3)), float(10.0 ** rng.uniform(-3, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for each in (tuple(s * float(np.exp(0.1 * rng.normal())) for s in shapes), shapes):
            try:
                return from_scipy(family(*each, loc=loc, scale=scale))
            except ValueError:
                continue
        return from_scipy(family(*shapes))


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_analytic_masses_add_up_at_all_scales(family: str, data: st.DataObject) -> None:
    """Their log masses have twelve digits everywhere (`test_priors`); so have their sums."""
    prior = data.draw(FAMILIES[family])
    ends = sorted({x for _ in range(3) for x in data.draw(intervals(prior))})
    if len(ends) < 2:
        return
    whole, pieces = prior.log_mass(ends[0], ends[-1]), prior.log_mass(ends[:-1], ends[1:])
    total = np.logaddexp.reduce(pieces)
    assert whole == total or abs(whole - total) <= 4e-12 * max(1.0, abs(whole)), (prior, ends)


def test_masses_of_the_narrowest_lognormal_law_add_up() -> None:
    rng = np.random.default_rng(38)
    for log_loc in (-600.0, -3.0, 0.01, 30.0, 600.0):
        prior = pq.LogNormal(log_loc, LEAST_LOG_SCALE)
        some = places(prior, rng, 60)
        edges = np.unique(np.concatenate([some, np.nextafter(some[1:-2], INF), some[1:-2] * (1.0 + 1e-12)]))
        check_cuts(prior.log_mass, edges, rng, 4.0 * ADDITIVE)
    with pytest.raises(ValueError, match=r"log_scale must be at least 0\.0001"):
        pq.LogNormal(0, 0.99 * LEAST_LOG_SCALE)
    narrow = from_scipy(scipy.stats.lognorm(1e-6))
    assert isinstance(narrow, ScipyPrior)
    check_cuts(narrow.log_mass, places(narrow, rng, 60), rng)


@pytest.mark.parametrize(
    "base", [pq.Uniform(0, 1), pq.Normal(0, 1), pq.LogUniform(), pq.Normal(0, 1).mix(pq.Cauchy(0, 9), 0.1)]
)
def test_masses_of_order_statistics_add_up_to_the_most_draws(base: Prior) -> None:
    rng = np.random.default_rng(37)
    for n in (*(int(10 ** rng.uniform(0, 5)) for _ in range(6)), MOST_DRAWS):
        for k in {1, min(2, n), (n + 1) // 2, n, int(n ** rng.random()), n + 1 - int(n ** rng.random())}:
            share, spread = k / (n + 1), math.sqrt(k * (n + 1 - k)) / (n + 1) ** 1.5
            near = share + spread * rng.normal(size=24) * rng.choice([0.1, 1, 5, 30, 1e-6], 24)
            at = np.concatenate(
                [near, rng.random(12), 10.0 ** -rng.uniform(0, 300, 12), 1 - 10.0 ** -rng.uniform(0, 15, 12)]
            )
            edges = base.quantile_between(-INF, INF, np.clip(at, 0.0, 1.0 - 1e-16))
            check_cuts(pq.OrderStatistic(base, n, k).log_mass, np.unique([*edges, -INF, INF]), rng, 4.0 * ADDITIVE)
    with pytest.raises(ValueError, match="n must be at most 100,000"):
        pq.OrderStatistic(base, MOST_DRAWS + 1, 1)
    inner = pq.OrderStatistic(base, 1000, 500).mix(base, 0.5)
    with pytest.raises(ValueError, match="n must be at most 100 of draws that are 1,000 each"):
        pq.OrderStatistic(inner, 101, 50)
    assert pq.OrderStatistic(inner, 100, 50).n == 100


def test_masses_next_to_the_largest_float() -> None:
    assert Laplace(1e300, 8e307).log_mass(-LARGEST, 1e300) == pytest.approx(-0.805, abs=1e-3)
    for scale in (1e300, 1e306, 8e307, LARGEST):
        for loc in (0.0, 1e300, -1.5e308, LARGEST):
            for prior in (Laplace(loc, scale), pq.Cauchy(loc, scale), pq.Normal(loc, scale), pq.HalfCauchy(scale, loc)):
                for a, b in ((-LARGEST, loc), (-LARGEST, LARGEST), (loc, LARGEST), (-INF, 1e307), (1e306, 1e307)):
                    if a < b:
                        exact = exact_log_mass(prior, a, b)
                        found = prior.log_mass(a, b)
                        assert found == float(exact) or abs(mpf(found) - exact) <= 1e-12 * abs(exact), (prior, a, b)


@pytest.mark.parametrize(("name", "shapes"), SHAPES, ids=str)
def test_masses_of_scipy_families_add_up(name: str, shapes: tuple[float, ...]) -> None:
    rng = np.random.default_rng(31)
    prior = some_scipy(name, shapes)
    check_cuts(prior.log_mass, places(prior, rng, 60), rng)


@pytest.mark.parametrize("name", LIARS)
def test_masses_of_liars_add_up(name: str) -> None:
    prior = made(name)
    if prior is not None:
        rng = np.random.default_rng(32)
        check_cuts(prior.log_mass, places(prior, rng, 60), rng)
        assert prior.log_mass(-INF, INF) == 0.0


def test_most_liars_make_a_prior() -> None:
    """Only a distribution function that never rises is refused, when the prior is made."""
    refused = [name for name in LIARS if made(name) is None]
    assert refused[0] == "nowhere" and len(refused) < 5 and all(name.startswith("extreme") for name in refused[1:])


def subtracted(frozen: Any) -> Callable[[Any, Any], Any]:
    """What was there before: tails of the distribution itself, the lighter one of the two."""

    def log_mass(lower: Any, upper: Any) -> Any:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            below, above = frozen.cdf(upper) - frozen.cdf(lower), frozen.sf(lower) - frozen.sf(upper)
            return np.log(np.minimum(np.where(frozen.sf(lower) < frozen.cdf(upper), above, below), 1.0))

    return log_mass


@pytest.mark.parametrize("name", ["wavy", "periodic", "garbage"])
def test_the_check_of_cuts_rejects(name: str) -> None:
    prior = made(name)
    assert isinstance(prior, ScipyPrior)
    rng = np.random.default_rng(33)
    edges = places(prior, rng, 60)
    with pytest.raises(AssertionError):
        check_cuts(subtracted(LIARS[name]()), edges, rng)


# --- No loss above epsilon -------------------------------------------------------------------------------------------


def loss(
    prior: Prior, x: list[float], y: list[float], outcome: list[float], quantiles: list[float], eps: float
) -> float:
    return float(pq.privacy_loss(x, y, outcome, quantiles, epsilon=eps, priors=prior, mechanism="tree"))


def worst_loss(prior: Prior, count: int, rng: np.random.Generator) -> float:
    """The largest exact loss over epsilon among random pairs of neighbouring columns, each at a random outcome."""
    some = places(prior, rng, 30)
    worst = -INF
    for _ in range(count):
        x = rng.choice(some, rng.integers(0, 6)).tolist()
        y = [*x, float(rng.choice(some))]
        m = int(rng.integers(1, 4))
        near = rng.choice(some[1:-1], m)
        inside = [x if rng.random() < 0.5 else math.nextafter(x, INF * rng.normal()) for x in near.tolist()]
        inside = [min(max(x, -LARGEST), LARGEST) for x in inside]
        quantiles = sorted({round(float(q), 2) for q in rng.uniform(0.02, 0.98, m)})
        outcome = sorted(inside)[: len(quantiles)]
        eps = float(f"{10.0 ** rng.uniform(-2, 1):.3g}")
        found = loss(prior, x, y, outcome, quantiles, eps)
        if not math.isnan(found):  # the outcome is impossible under both
            worst = max(worst, abs(found) / eps)
    assert worst > 0.1 or count < 100, "nearly no outcome was possible"
    return worst


@pytest.mark.parametrize("name", LIARS)
def test_no_loss_above_epsilon_with_liars(name: str) -> None:
    prior = made(name)
    if prior is not None:
        assert worst_loss(prior, PAIRS // 20, np.random.default_rng(34)) <= 1.0 + 1e-9


def test_no_loss_above_epsilon_with_scipy_families() -> None:
    rng = np.random.default_rng(35)
    for name, shapes in SHAPES:
        found = worst_loss(some_scipy(name, shapes), max(PAIRS // 2 // len(SHAPES), 1), rng)
        assert found <= 1.0 + 1e-9, (name, found)


def test_no_loss_above_epsilon_in_published_cases() -> None:
    periodic = from_scipy(scipy.stats.vonmises(4.0))
    assert abs(loss(periodic, [0.0, 0.1, 0.2], [0.0, 0.1, 0.2, 7.0], [0.05], [0.5], 1.0)) <= 1.0 + 1e-9
    numeric = from_scipy(scipy.stats.geninvgauss(2.3, 1.5))
    for outcome in (0.5, 1.9, 1e3, 1e101):
        found = loss(numeric, [1.0, 2.0, 3.0], [1.0, 2.0, 3.0, INF], [outcome], [0.5], 0.1)
        assert math.isnan(found) or abs(found) <= 0.1 + 1e-9


class Unadditive(Panels):
    """Panels whose masses are what they should be where an interval is wide, and doubled where it is narrow."""

    def _log_mass(self, start: Any, stop: Any) -> Any:
        return super()._log_mass(start, stop) + np.where(stop - start < 0.5, math.log(2.0), 0.0)


def test_the_search_for_losses_rejects() -> None:
    prior = from_scipy(scipy.stats.logistic(0.0, 0.2))
    assert isinstance(prior, ScipyPrior)
    table = prior._table
    vars(prior)["_panels"] = Unadditive(table.edges, table.log_masses, table.shapes)
    assert worst_loss(prior, 150, np.random.default_rng(36)) > 1.01
