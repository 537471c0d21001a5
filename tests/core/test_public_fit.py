"""Priors from public data, and the law of an order statistic."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import mpmath
import numpy as np
import pytest
import scipy.optimize
import scipy.stats

from pq import losses
from pq.core.priors import Cauchy, HalfCauchy, Laplace, Mixture, Normal, OrderStatistic, Prior, Uniform
from pq.core.public_fit import fit_public, optimal_intervals

NINE = [k / 10 for k in range(1, 10)]
TIES = ("between", "beside")


def ages(size: int, seed: int = 0) -> np.ndarray:
    """A skewed column in whole years, like those that people report."""
    return np.floor(17.0 + np.random.default_rng(seed).gamma(2.5, 9.0, size))


def mean_loss(priors: list[Laplace], x: np.ndarray, quantiles: list[float], n: int, min_width: float) -> float:
    """The objective, on cuts of its own and through the checked loss."""
    lower, upper = optimal_intervals(x, quantiles, n, np.random.default_rng(99))
    theta, phi = np.array([(prior.loc / prior.scale, 1.0 / prior.scale) for prior in priors]).T
    return float(np.mean(losses.laplace_quantiles(theta, phi, lower, upper, min_width=min_width)[0]))


def best_loss(x: np.ndarray, quantiles: list[float], n: int, loc: float, scale: float, min_width: float) -> float:
    """The least mean loss, by a quasi-Newton method on all data sets at once."""
    lower, upper = ((end - loc) / scale for end in optimal_intervals(x, quantiles, n, np.random.default_rng(99)))
    m = len(quantiles)

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        value, d_theta, d_phi = losses.laplace_quantiles(z[:m], z[m:], lower, upper, min_width=min_width / scale)
        return float(np.mean(value)), np.concatenate([d_theta.mean(axis=0), d_phi.mean(axis=0)])

    limits = [(None, None)] * m + [(1e-3, 4 * scale / min_width)] * m
    start = np.concatenate([np.zeros(m), np.ones(m)])
    return float(scipy.optimize.minimize(objective, start, jac=True, method="L-BFGS-B", bounds=limits).fun)


def test_intervals_are_those_of_the_sorted_data_sets():
    x = np.random.default_rng(1).normal(size=47)
    quantiles = [0.0, 0.05, 0.29, 0.5, 0.99, 1.0]
    n = 10
    lower, upper = optimal_intervals(x, quantiles, n, np.random.default_rng(2))
    drawn = np.random.default_rng(2).permutation(x)
    assert lower.shape == upper.shape == (4, 6)
    for t, j in np.ndindex(4, 6):
        records = [-math.inf, *sorted(drawn[t * n : (t + 1) * n]), math.inf]
        k = [0, 0, 2, 5, 9, 10][j]  # floor of q n, by hand
        assert (lower[t, j], upper[t, j]) == (records[k], records[k + 1])


def test_ranks_come_from_the_decimal_value():
    x = np.arange(1.0, 101.0)
    lower, upper = optimal_intervals(x, [0.29, 0.57], 100, np.random.default_rng(0))
    assert (lower.tolist(), upper.tolist()) == ([[29.0, 57.0]], [[30.0, 58.0]])


def test_data_sets_are_disjoint():
    lower, _ = optimal_intervals(np.arange(1.0, 101.0), [0.1, 0.5, 0.9], 10, np.random.default_rng(0))
    assert len(np.unique(lower)) == lower.size


def cells_of_least_gap(records: list[float], k: int) -> tuple[float, float]:
    """Ends of the set of real numbers o that have nearest to k records below, #{x < o}; by trying all cells."""
    ends = [-math.inf, *sorted(set(records)), math.inf]
    gaps = {}
    for low, high in itertools.pairwise(ends):
        o = high if math.isfinite(high) else max(records) + 1.0  # cells are open below and closed above
        gaps[low, high] = abs(sum(x < o for x in records) - k)
    best = sorted(cell for cell, gap in gaps.items() if gap == min(gaps.values()))
    assert all(one[1] == other[0] for one, other in itertools.pairwise(best))
    return best[0][0], best[-1][1]


@pytest.mark.parametrize("seed", range(30))
def test_beside_ties_lie_the_outputs_of_least_gap(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 13))
    x = rng.integers(0, rng.integers(1, 8), 7 * n).astype(float)
    quantiles = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0]
    lower, upper = optimal_intervals(x, quantiles, n, np.random.default_rng(seed), ties="beside")
    drawn = np.random.default_rng(seed).permutation(x).reshape(7, n)
    for t, j in np.ndindex(7, len(quantiles)):
        wanted = cells_of_least_gap(drawn[t].tolist(), int(quantiles[j] * n))
        assert (lower[t, j], upper[t, j]) == wanted, (sorted(drawn[t]), quantiles[j])


def test_without_ties_nothing_is_beside_them():
    x = np.random.default_rng(3).normal(size=400)
    one, other = (optimal_intervals(x, NINE, 20, np.random.default_rng(4), ties=how) for how in ("between", "beside"))
    assert np.array_equal(one, other)
    assert np.array_equal(x, np.random.default_rng(3).normal(size=400))  # the caller's records stay in their order


@pytest.mark.parametrize("optimizer", ["cocob", "ogd"])
def test_a_fit_beside_ties_serves_real_outputs_better(optimizer):
    """Half of a column is one value: real outputs with the least gap lie on one side of it, where the prior goes."""
    rng = np.random.default_rng(5)
    x = np.where(rng.random(8000) < 0.5, 40.0, np.round(rng.normal(40.0, 12.0, 8000)))
    common = {"sample_size": 100, "loc": 40.0, "scale": 4.0, "min_width": 1.0, "optimizer": optimizer}
    fits = {how: fit_public(x, [0.3, 0.7], **common, rng=np.random.default_rng(6), ties=how) for how in TIES}
    lower, upper = optimal_intervals(x, [0.3, 0.7], 100, np.random.default_rng(7), ties="beside")
    mass = {
        how: np.mean(
            [[p.log_mass(a, b) for p, a, b in zip(fit, *ends, strict=True)] for ends in zip(lower, upper, strict=True)]
        )
        for how, fit in fits.items()
    }
    assert mass["beside"] > mass["between"] + 0.05
    below, above = (prior.loc for prior in fits["beside"])
    assert below < 39.8 and above > 40.2


@pytest.mark.parametrize("optimizer", ["cocob", "ogd"])
def test_the_fit_is_nearly_optimal(optimizer):
    x = ages(20_000)
    priors = fit_public(
        x, NINE, sample_size=100, loc=40.0, scale=5.0, min_width=1.0, optimizer=optimizer, rng=np.random.default_rng(3)
    )
    best = best_loss(x, NINE, 100, 40.0, 5.0, 1.0)
    assert mean_loss(priors, x, NINE, 100, 1.0) < best + {"cocob": 0.1, "ogd": 0.2}[optimizer]
    start = [Laplace(40.0, 5.0)] * 9
    assert mean_loss(start, x, NINE, 100, 1.0) > best + 1.0  # the comparison tells a fit from none
    np.testing.assert_allclose([prior.loc for prior in priors], np.quantile(x, NINE), atol=1.5)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("optimizer", ["cocob", "ogd"])
def test_minutes_and_seconds_give_the_same_priors(optimizer, ties):
    x = ages(5000)

    def fit(unit: float) -> list[Laplace]:
        return fit_public(
            x * unit,
            NINE,
            sample_size=100,
            loc=40.0 * unit,
            scale=5.0 * unit,
            min_width=unit,
            optimizer=optimizer,
            rng=np.random.default_rng(4),
            ties=ties,
        )

    minutes = fit(1.0)
    for unit in (60.0, 1e-9, 7e11):
        other = fit(unit)
        np.testing.assert_allclose([p.loc * unit for p in minutes], [p.loc for p in other], rtol=1e-6)
        np.testing.assert_allclose([p.scale * unit for p in minutes], [p.scale for p in other], rtol=1e-6)


def test_the_step_sizes_as_printed_do_depend_on_the_unit():
    """Control: the same test with the paper's steps fails, which is why the corrected ones are used."""
    from pq.bounds import pubpri_step_sizes
    from pq.learners import OGD, Averaged

    lower, upper = optimal_intervals(ages(5000), [0.5], 100, np.random.default_rng(5))

    def location(unit: float, version: str) -> float:
        common = {"quantiles": 1, "data_bound": 100.0 * unit, "scale_min": unit, "scale_max": 20.0 * unit}
        steps = pubpri_step_sizes(len(lower), **common, version=version)
        learner = Averaged(
            OGD(
                [[0.0], [0.525 / unit]],
                step=[[steps.location], [steps.inverse_scale]],
                lower=[[-100.0], [0.05 / unit]],
                upper=[[100.0], [1.0 / unit]],
            )
        )
        for a, b in zip(lower * unit, upper * unit, strict=True):
            learner.update(losses.laplace_interval(*learner.point, a, b, min_width=unit)[1:])
        theta, phi = learner.average
        return float(theta[0] / phi[0]) / unit

    assert location(60.0, "corrected") == pytest.approx(location(1.0, "corrected"), rel=1e-6)
    assert abs(location(60.0, "paper") - location(1.0, "paper")) > 1.0


def test_a_fit_does_not_load_the_compiler():
    """It would take longer than the fit, where no machine code is kept."""
    fit = "pq.fit_public(range(100), [0.5], sample_size=10, loc=0, scale=9, min_width=1, rng=np.random.default_rng(0))"
    nothing_kept = "from pq.core.machine.engine import Engine; Engine._traces = lambda self: iter(())"
    code = f"import sys; import numpy as np; import pq; {nothing_kept}; {fit}; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_ties_and_odd_public_data():
    rng = np.random.default_rng(6)
    constant = fit_public(np.full(500, 7.0), [0.1, 0.5], sample_size=100, loc=5.0, scale=1.0, min_width=1.0, rng=rng)
    for prior in constant:
        assert prior.loc == pytest.approx(7.0, abs=0.1)
        assert prior.scale == pytest.approx(0.25, rel=0.2)  # the least: a quarter of the resolution
    odd = [1.0, 2.0, 3.0, math.nan, math.inf, -math.inf]
    for optimizer in ("cocob", "ogd"):
        priors = fit_public(
            odd, [1.0, 0.0, 0.5, 0.5], sample_size=3, loc=0.0, scale=1.0, min_width=1e-3, optimizer=optimizer, rng=rng
        )
        assert all(np.isfinite([prior.loc, prior.scale]).all() for prior in priors)
        assert priors[2] == priors[3]  # a repeated quantile has one prior


def test_a_poor_guess_is_left_behind():
    x = np.random.default_rng(7).normal(0.0, 1.0, 4000)
    fit = fit_public(x, [0.5], sample_size=100, loc=0.0, scale=100.0, min_width=1e-3, rng=np.random.default_rng(8))
    assert fit[0].loc == pytest.approx(0.0, abs=0.3)
    assert fit[0].scale < 1.0
    # one guess for each quantile
    fit = fit_public(
        x, [0.1, 0.9], sample_size=100, loc=[-2.0, 2.0], scale=[0.5, 2.0], min_width=1e-3, rng=np.random.default_rng(8)
    )
    np.testing.assert_allclose([prior.loc for prior in fit], [-1.28, 1.28], atol=0.2)


def test_the_fit_is_reproducible_and_leaves_its_data_alone():
    x = ages(1000)
    x.setflags(write=False)
    kept = x.copy()
    common = {"sample_size": 50, "loc": 40, "scale": 5, "min_width": 1}
    fits = [fit_public(x, NINE, **common, rng=np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert fits[0] == fits[1] != fits[2]
    assert x.tolist() == kept.tolist()
    assert fit_public(x.astype(np.int16), NINE, **common, rng=np.random.default_rng(1)) == fits[0]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"sample_size": 0}, "sample_size"),
        ({"sample_size": 101}, "sample_size"),
        ({"sample_size": 2.5}, "sample_size"),
        ({"scale": 0.0}, "scale"),
        ({"scale": [1.0, 2.0, 3.0]}, "scale"),
        ({"loc": math.nan}, "loc"),
        ({"min_width": 0.0}, "min_width"),
        ({"optimizer": "adam"}, "optimizer"),
        ({"ties": "broken"}, "ties"),
        ({"scales": (2.0, 1.0)}, "scales"),
        ({"quantiles": [1.5]}, "quantiles"),
        ({"x_public": np.ones((3, 3))}, "x_public"),
    ],
)
def test_bad_arguments_are_named(arguments, name):
    good = {
        "x_public": np.arange(100.0),
        "quantiles": [0.5],
        "sample_size": 10,
        "loc": 0.0,
        "scale": 1.0,
        "min_width": 1.0,
        "rng": np.random.default_rng(0),
    }
    with pytest.raises((ValueError, TypeError), match=name):
        fit_public(**good | arguments)


# ---- order statistics ----


def beta_oracle(n: int, k: int, p: mpmath.mpf) -> mpmath.mpf:
    """P(at least k of n uniforms are at most p), as a binomial sum."""
    if p <= 0 or p >= 1:
        return mpmath.mpf(p >= 1)
    term, total = mpmath.binomial(n, k) * p**k * (1 - p) ** (n - k), mpmath.mpf(0)
    for j in range(k, n + 1):
        total += term
        term *= mpmath.mpf(n - j) / (j + 1) * p / (1 - p)
    return total


def test_uniform_order_statistics_keep_their_digits():
    ends = [
        (0, 0.5), (0, 1e-12), (0, 1e-300), (0.2, 0.2 + 1e-13), (1e-200, 1.0000001e-200), (0.999, 0.9990001),
        (1e-9, 0.9999), (0.01, 0.99), (0.45, 0.55), (0.5, 0.5000001), (0.9, 1.0),
    ]  # fmt: skip
    for (n, k), (low, high) in itertools.product(
        [(1, 1), (3, 2), (100, 1), (100, 50), (100, 97), (100, 100), (2000, 600)], ends
    ):
        with mpmath.workdps(60 + 350 * (n > 50)):
            a, b = mpmath.mpf(low), mpmath.mpf(high)
            if low > 0.5:
                truth = mpmath.log(beta_oracle(n, n + 1 - k, 1 - a) - beta_oracle(n, n + 1 - k, 1 - b))
            else:
                truth = mpmath.log(beta_oracle(n, k, b) - beta_oracle(n, k, a))
            got = OrderStatistic(Uniform(0, 1), n, k).log_mass(low, high)
            assert abs(got - truth) <= 2e-12 * abs(truth) + 1e-300, (n, k, low, high, got, mpmath.nstr(truth, 17))


def test_order_statistic_of_other_laws_follows_their_probabilities():
    for base in (
        Normal(3, 2),
        Laplace(0, 1),
        Cauchy(-1, 4),
        HalfCauchy(2),
        Mixture([Normal(0, 1), Cauchy(3, 1)], [0.6, 0.4]),
    ):
        prior, flat = OrderStatistic(base, 30, 8), OrderStatistic(Uniform(0, 1), 30, 8)
        for low, high in ((-math.inf, 0.3), (-1.0, 2.5), (0.1, math.inf), (0.5, 0.5001)):
            inside = [math.exp(base.log_mass(-math.inf, end)) for end in (low, high)]
            assert prior.log_mass(low, high) == pytest.approx(flat.log_mass(*inside), rel=1e-8)
        step = 1e-5
        for o in (0.2, 1.7):
            slope = math.exp(prior.log_mass(o - step, o + step)) / (2 * step)
            assert math.exp(prior.log_density(o)) == pytest.approx(slope, rel=1e-6)


def test_order_statistic_in_far_tails():
    prior = OrderStatistic(Laplace(0, 1), 5, 2)
    # P(at least 2 of 5 beyond) = 10 p^2 to first order, p = e^-800 / 2
    expected = math.log(10) + 2 * (-800 - math.log(2))
    assert prior.log_mass(-math.inf, -800) == pytest.approx(expected, rel=1e-13)
    assert prior.log_mass(800, math.inf) == pytest.approx(math.log(5) + 4 * (-800 - math.log(2)), rel=1e-13)
    assert prior.log_mass(-math.inf, math.inf) == 0.0
    assert prior.log_mass(2.0, 2.0) == prior.log_mass(3.0, 2.0) == -math.inf


@pytest.mark.parametrize("base", [Normal(0, 1), Uniform(0, 1), Mixture([Normal(0, 1), Cauchy(3, 1)], [0.5, 0.5])])
@pytest.mark.parametrize("ends", [(-math.inf, math.inf), (0.1, 0.6), (0.2, 0.2001), (0.4, 0.9), (0.98, 0.99)])
def test_order_statistic_quantiles_invert_its_masses(base, ends):
    prior, shares = OrderStatistic(base, 50, 20), np.linspace(0.01, 0.99, 15)
    points = prior.quantile_between(*ends, shares)
    assert np.all(np.diff(points) > 0)
    got = np.exp(prior.log_mass(ends[0], points) - prior.log_mass(*ends))
    np.testing.assert_allclose(got, shares, rtol=1e-9)


def test_order_statistic_samples_like_sorted_data():
    """Kolmogorov-Smirnov at 1e-6: a right program fails with that probability."""
    rng = np.random.default_rng(9)
    drawn = OrderStatistic(Normal(0, 1), 40, 30).sample_between(np.full(3000, -np.inf), np.inf, rng)
    sorted_data = np.sort(rng.normal(size=(3000, 40)), axis=1)
    assert scipy.stats.ks_2samp(drawn, sorted_data[:, 29]).pvalue > 1e-6
    assert scipy.stats.ks_2samp(drawn, sorted_data[:, 28]).pvalue < 1e-6  # a rank too low is told apart


def test_order_statistic_is_a_prior_like_the_others():
    prior = OrderStatistic(scipy.stats.norm(3, 2), n=10, k=3)
    assert prior == OrderStatistic(Normal(3, 2), 10, 3)
    assert Prior.from_dict(prior.to_dict()) == prior
    assert isinstance(prior.mix(Cauchy(0, 1), 0.1), Mixture)
    for arguments, name in (((Normal(0, 1), 0, 1), "n"), ((Normal(0, 1), 3, 4), "k"), ((Normal(0, 1), 3, 0), "k")):
        with pytest.raises(ValueError, match=name):
            OrderStatistic(*arguments)
    for arguments, name in (((Normal(0, 1), 3.5, 1), "n"), ((Normal(0, 1), 3, True), "k"), ((7, 3, 1), "frozen")):
        with pytest.raises(TypeError, match=name):
            OrderStatistic(*arguments)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-300, 1.0, 3.0, 1e300])
@pytest.mark.parametrize("largest", [1e100, 1e200, np.finfo(float).max])
def test_records_at_the_ends_of_the_floats_give_priors_or_a_clear_error(scale: float, largest: float) -> None:
    """The inverse of the inverse of the largest scale was infinite where records reach the largest float."""
    x = [-largest, -5e-324, 0.0, 1e-12, *[1e15] * 4, largest / 3, largest]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        fit_public(x, [0.25, 0.75], sample_size=9, loc=0.0, scale=scale, min_width=0.01 * scale, rng=rng)
    if largest > 1e150 * scale:
        with pytest.raises(ValueError, match="x_public must lie within"):
            fit_public(x, 0.5, sample_size=9, loc=0.0, scale=scale, min_width=scale, optimizer="ogd", rng=rng)
