"""The bounds of the quantile half: against slow formulas, as functions, and against releases on hard data."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

import pq
from pq import bounds

BETA = 0.2
TRIALS = 100
LONG = {
    ("halving gaps", "cor:quantile"): 1000
}  # the true rate is near 0.13 there, so that it takes more trials to tell it from BETA


def most_failures(trials: int) -> int:
    """Most failures that still show, with confidence 99.9%, a rate below BETA (one-sided Clopper and Pearson)."""
    return max(k for k in range(trials) if stats.beta.ppf(0.999, k + 1, trials - k) < BETA)


def test_single_bounds_match_slow_formulas() -> None:
    with mpmath.workdps(30):
        psi, epsilon, beta = mpmath.mpf("0.013"), mpmath.mpf("0.7"), mpmath.mpf("0.05")
        slow = 2 / epsilon * mpmath.log(1 / (beta * psi))
        assert math.isclose(bounds.lem_quantile(math.log(0.013), 0.7, 0.05), slow, rel_tol=1e-14)
        radius, width, separation = mpmath.mpf(7), mpmath.mpf(4), mpmath.mpf("0.001")
        inside = mpmath.pi * (width + 4 * radius**2 / width) / (2 * beta * separation)
        assert math.isclose(bounds.cor_cauchy(7, 4, 0.001, 0.7, 0.05), 2 / epsilon * mpmath.log(inside), rel_tol=1e-14)
        for p in (1.01, 1.5, 2.0, 5.0):
            slow = (1 + mpmath.lerchphi(mpmath.mpf(1) / 2, -mpmath.mpf(p), 2) / 2) * mpmath.zeta(p)
            assert math.isclose(bounds.c_p(p), slow, rel_tol=1e-12)


def test_tree_bounds_match_slow_formulas() -> None:
    spread = math.log(15 / 0.1) + 3
    assert math.isclose(bounds.thm_binary(-3, 2, 15, 0.1, rounded=False), 7 * 4 * spread)
    printed = ((1 + math.sqrt(5)) / 2) ** 4 * 4 * spread
    assert math.isclose(bounds.thm_binary(-3, 2, 15, 0.1, version="paper"), printed)
    spread = math.log(100 / 0.1) + 3
    slow = (6 - 1) * (1 + 1 / 4 + 1 / 9) * (9 + 2 * (4 + 2)) * spread  # K = 6, three levels
    assert math.isclose(bounds.thm_kary(-3, 2, 100, 0.1, rounded=False), slow)
    assert math.isclose(bounds.thm_kary(-3, 2, 100, 0.1, rounded=False, divided_twice=True), 5 * slow)
    assert bounds.lem_empirical_quantiles(-3, 2, 1, 0.1, version="paper") == math.inf
    assert bounds.lem_empirical_quantiles(-3, 2, 2, 0.1) > bounds.lem_empirical_quantiles(
        -3, 2, 2, 0.1, version="paper"
    )


@pytest.mark.parametrize("m", [1, 3, 7, 15, 63, 1023])
def test_corrected_binary_bound_is_the_larger_one_from_fifteen_on(m: int) -> None:
    corrected = bounds.thm_binary(-3, 1, m, 0.1, rounded=False)
    assert (corrected > bounds.thm_binary(-3, 1, m, 0.1, version="paper")) == (m >= 15)


def test_probabilities_of_one_node() -> None:
    assert bounds.lem_empirical(0, 3, -1, 1) == 1.0
    assert bounds.lem_empirical(30, 3, -1, 1) > bounds.lem_empirical(30, 3, -1, 1, version="paper")
    assert bounds.lem_prior(30, 3, -1, 1) > bounds.lem_empirical(30, 3, -1, 1)
    assert bounds.lem_prior(1e9, 3, -1e9, 1) == 1.0


def test_arity_is_exact_where_the_root_is_an_integer() -> None:
    for b in range(1, 7):
        at = 2 ** (b * b) - 1
        with_default = bounds.thm_kary(-3, 1, at, 0.1)
        assert with_default == bounds.thm_kary(-3, 1, at, 0.1, arity=2**b)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: bounds.lem_quantile(-1, 0, 0.1), "epsilon"),
        (lambda: bounds.lem_quantile(-1, 1, 0), "beta"),
        (lambda: bounds.lem_quantile(-1, 1, math.nan), "beta"),
        (lambda: bounds.lem_quantile(-1, 1, 0.1, version="best"), "version"),  # type: ignore[arg-type]
        (lambda: bounds.thm_binary(-1, 1, 6, 0.1), "m must be a power of two minus one"),
        (lambda: bounds.thm_kary(-1, 1, 6, 0.1, arity=1), "arity"),
        (lambda: bounds.c_p(1.0), "p must exceed 1"),
        (lambda: bounds.cor_quantile(-1, 1, 0.1, 1.5), "weight"),
        (lambda: bounds.lem_error(Fraction(1)), "relative"),
        (lambda: bounds.cor_cauchy(1, 1, 0, 1, 0.1), "min_separation"),
    ],
)
def test_bad_arguments_are_named(call: Callable[[], Any], name: str) -> None:
    with pytest.raises(ValueError, match=name):
        call()


def test_cauchy_bound_for_one_and_two_records() -> None:
    assert math.isfinite(bounds.cor_cauchy(1, 2, math.nan, 1, 0.1, n=1))
    printed = bounds.cor_cauchy(5, 2, 0.1, 1, 0.1, version="paper")
    assert bounds.cor_cauchy(5, 2, 0.1, 1, 0.1, n=2, rank=0) == pytest.approx(printed + 2 * math.log(2))
    assert bounds.cor_cauchy(5, 2, 0.1, 1, 0.1, n=2, rank=1) == printed


# Releases on hard data. Each guarantee gives (quantiles, keywords of the release, bound on the largest gap of one
# outcome).

DATA = {
    "ties": np.repeat([0.0, 1.0, 2.0, 7.0], [30, 5, 20, 5]),
    "clusters": np.concatenate([np.linspace(0, 1e-3, 30), 1000 + np.linspace(0, 1e-6, 30)]),
    "heavy tails": np.tan(np.pi * (np.arange(1, 61) / 61 - 0.5)) ** 3,
    "tiny": np.array([-1.0, 0.0, 1.0]),
    "halving gaps": 2.0 ** -np.arange(40),
    "normal": stats.norm.ppf(np.arange(1, 101) / 101),
}
WRONG = pq.Laplace(
    3.0, 0.05
)  # most of its mass in one place, mostly the wrong one: the bounds are closest to the truth here
WIDE = pq.Cauchy(0.0, 2.0)
EIGHTHS = [i / 8 for i in range(1, 8)]
Bound = Callable[[np.ndarray, pq.Release], float]


def restricted_log_psi(x: np.ndarray, release: pq.Release, i: int, epsilon_i: float, edge: bool) -> float:
    """log Psi^ of one mechanism from its definition: the prior on the cells between its edges."""
    plan = release.plan
    low = release.values[plan.lower[i]] if plan.lower[i] >= 0 else -math.inf
    high = release.values[plan.upper[i]] if plan.upper[i] >= 0 else math.inf
    inside = np.sort(x[(x > low) & (x < high)])
    ends = np.concatenate([[low], inside, [high]])
    masses = np.exp(release.priors[i].log_mass(ends[:-1], ends[1:]))
    if edge:
        masses[0] += math.exp(release.priors[i].log_mass(-math.inf, low))
        masses[-1] += math.exp(release.priors[i].log_mass(high, math.inf))
    elif masses.sum():
        masses = masses / masses.sum()
    target = math.floor(plan.relative[i] * len(inside))
    scores = np.exp(-epsilon_i / 2 * np.abs(np.arange(len(masses)) - target))
    return math.log(max(float(masses @ scores), 1e-300))


def harmonic(logs: list[float]) -> float:
    """Log of the harmonic mean, from logs."""
    worst = max(-value for value in logs)
    return math.log(len(logs)) - worst - math.log(sum(math.exp(-value - worst) for value in logs))


@functools.cache
def psi_of(name: str, q: float, prior: Any, epsilon: float) -> float:
    return pq.log_psi(DATA[name], q, prior, epsilon)


def one_paper(name: str, x: np.ndarray, release: pq.Release) -> float:
    return bounds.lem_quantile(psi_of(name, 0.3, WRONG, 0.5), 0.5, BETA)


def one_sharp(name: str, x: np.ndarray, release: pq.Release) -> float:
    # rate epsilon / (2 max(q, 1 - q)); one rank more at either end for the rounding of q n
    return bounds.lem_quantile(psi_of(name, 0.3, WRONG, 0.5 / 0.7), 0.5, BETA, sensitivity=0.7) + 2


def one_mixed(name: str, x: np.ndarray, release: pq.Release) -> float:
    return bounds.cor_quantile(psi_of(name, 0.3, WIDE, 0.5), 0.5, BETA, 0.25)[0]


def tree_restricted(name: str, x: np.ndarray, release: pq.Release) -> float:
    edge = release.adaptation == "edge"
    epsilon_i = release.epsilon / release.plan.depth
    logs = [restricted_log_psi(x, release, i, epsilon_i, edge) for i in range(len(release.values))]
    return bounds.lem_empirical_quantiles(harmonic(logs), release.epsilon, len(logs), BETA)


def tree_binary(name: str, x: np.ndarray, release: pq.Release) -> float:
    logs = [psi_of(name, q, WRONG, release.epsilon / 3) for q in EIGHTHS]
    return bounds.thm_binary(harmonic(logs), release.epsilon, 7, BETA)


def tree_kary(name: str, x: np.ndarray, release: pq.Release) -> float:
    logs = [psi_of(name, q, WRONG, float(e)) for q, e in zip(EIGHTHS, release.plan.epsilons, strict=True)]
    return bounds.thm_kary(harmonic(logs), release.epsilon, 7, BETA, arity=3)


GUARANTEES: dict[str, tuple[list[float], dict[str, Any], Callable[[str, np.ndarray, pq.Release], float]]] = {
    "lem:quantile": ([0.3], {"epsilon": 0.5, "priors": WRONG, "calibration": "paper"}, one_paper),
    "sharp calibration": ([0.3], {"epsilon": 0.5, "priors": WRONG, "calibration": "sharp"}, one_sharp),
    "cor:quantile": ([0.3], {"epsilon": 0.5, "priors": WRONG.mix(WIDE, 0.25), "calibration": "paper"}, one_mixed),
    "lem:empirical-quantiles": (EIGHTHS, {"epsilon": 6, "priors": WIDE, "calibration": "paper"}, tree_restricted),
    "lem:empirical-quantiles, edge": (
        EIGHTHS,
        {"epsilon": 6, "priors": WIDE, "calibration": "paper", "adaptation": "edge"},
        tree_restricted,
    ),
    "thm:binary": (EIGHTHS, {"epsilon": 6, "priors": WRONG, "calibration": "paper", "adaptation": "edge"}, tree_binary),
    "thm:kary": (
        EIGHTHS,
        {"epsilon": 20, "priors": WRONG, "calibration": "paper", "adaptation": "edge", "arity": 3, "budget_power": 2},
        tree_kary,
    ),
}


def failures(name: str, guarantee: str, shrink: float = 1.0, trials: int = TRIALS) -> int:
    """How many of the releases have a larger gap than the bound."""
    quantiles, keywords, bound = GUARANTEES[guarantee]
    x, count = DATA[name], 0
    for seed in range(trials):
        release = pq.release(x, quantiles, rng=seed, **keywords)
        count += pq.max_gap(x, quantiles, release.values) > shrink * bound(name, x, release)
    return count


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("name", DATA)
def test_failure_rate_of_releases(name: str, guarantee: str) -> None:
    """The seeds are fixed: this cannot fail by chance, only by a change of code or of the sampler's use of its seed."""
    trials = LONG.get((name, guarantee), TRIALS)
    assert failures(name, guarantee, trials=trials) <= most_failures(trials)


@pytest.mark.parametrize("guarantee", ["lem:quantile", "sharp calibration", "lem:empirical-quantiles"])
def test_a_bound_too_small_is_noticed(guarantee: str) -> None:
    """A tenth of the bound fails too often on some data, so the test above can fail."""
    assert any(failures(name, guarantee, shrink=0.1) > most_failures(TRIALS) for name in DATA)
