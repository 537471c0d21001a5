"""What a learner of distributions believes, beyond the paper: the likelihood of a count, a day's drift, Bayes' rule."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import sympy
import z3
from scipy import stats

from pq.core.decode import count_likelihood
from pq.core.noise import DiscreteLaplace
from pq.core.tracking import (
    CONSTANT_DRIFTS,
    DAY_EFFECTS,
    SHAPE_DRIFT,
    SIZE_DRIFT,
    SLOPE_DRIFTS,
    Ahead,
    Beliefs,
    Tracker,
    tracking_rate,
)
from proofs_checks.engine.registry import check
from proofs_checks.tools.solver import follows

F = Fraction
Likelihood = Callable[[Any, Any, float], tuple[Any, Any, Any]]


# --- the likelihood of a count ----------------------------------------------------------------------------------------


def _scaled(score: float = 1.0, information: float = 1.0, nats: float = 0.0) -> Likelihood:
    def likelihood(counts: Any, mean: Any, rate: float) -> tuple[Any, Any, Any]:
        found = count_likelihood(counts, mean, rate)
        return found[0] * score, found[1] * information, found[2] + nats

    return likelihood


def _laplace_alone(counts: Any, mean: Any, rate: float) -> tuple[Any, Any, Any]:
    """As if the number of records were its mean."""
    rest = np.asarray(counts - mean)
    return rate * np.sign(rest), np.full(rest.shape, rate**2), math.log(rate / 2) - rate * np.abs(rest)


def _gaussian(counts: Any, mean: Any, rate: float) -> tuple[Any, Any, Any]:
    """As if the noise were Gaussian, of the same variance: Kalman's filter as it stands in books."""
    rest, variance = counts - mean, mean + 2.0 / rate**2
    return rest / variance, 1.0 / variance, -0.5 * rest**2 / variance - 0.5 * np.log(2 * math.pi * variance)


def integral(count: float, mean: float, rate: float, power: int) -> Any:
    """Of `t^power` times the densities of a Gaussian t with this mean and variance and of Laplace noise `count - t`."""
    spread = mpmath.sqrt(mean)
    reach = int(rate * spread) + 14  # the Laplace factor moves the Gaussian by at most rate times its variance
    ends = {mean + k * spread for k in range(-reach, reach + 1, 2)}
    ends |= {place for place in (mpmath.mpf(count),) if min(ends) < place < max(ends)}
    law = lambda t: mpmath.npdf(t, mean, spread) * rate / 2 * mpmath.exp(-rate * abs(count - t))  # noqa: E731
    unit = max(map(law, ends))  # errors are told from the result by its size
    return unit * mpmath.quad(lambda t: t**power * law(t) / unit, sorted(ends))


@check(
    "ours:count-likelihood",
    code=count_likelihood,
    rejects=[
        _laplace_alone,
        _gaussian,
        _scaled(score=1.01),
        _scaled(score=0.99),
        _scaled(nats=0.01),
        _scaled(nats=-0.01),
    ],
)
def check_likelihood_of_counts(subject: Likelihood = count_likelihood) -> str:
    """Density and the records to expect, against integrals with thirty digits."""
    cases = 0
    with mpmath.workdps(30):
        for rate, mean, off in itertools.product((0.05, 0.5, 3.0), (0.5, 12.0, 300.0), (-60.0, -3.0, 0.0, 40.0)):
            count, exact = mean + off, (mpmath.mpf(mean), mpmath.mpf(rate))
            whole, first = (integral(count, *exact, power) for power in (0, 1))
            score, _, nats = (float(np.asarray(one)) for one in subject(np.float64(count), np.float64(mean), rate))
            assert abs(nats - float(mpmath.log(whole))) < 1e-9 * max(1.0, abs(nats)), (rate, mean, off)
            assert abs(mean * (1 + score) - float(first / whole)) < 1e-8 * max(1.0, mean), (rate, mean, off)
            cases += 1
    return f"density of a noisy count, and mean (1 + score) = E[records | count]: {cases} integrals"


def true_information(mean: float, rate: float) -> float:
    """Fisher's, of where a Gaussian plus Laplace noise lies, by the trapezoidal rule on its density's own slope."""
    spread = math.sqrt(mean)
    k = np.unique(np.concatenate([np.linspace(-12, 12, 20_001) * spread, np.linspace(-40, 40, 40_001) / rate]))
    tails = (stats.norm.logcdf(sign * k / spread - rate * spread) - sign * rate * k for sign in (1, -1))
    above, below = (np.exp(np.clip(tail + rate**2 * mean / 2, -700, 700)) * rate / 2 for tail in tails)
    density = np.maximum(above + below, 1e-300)
    return float(np.trapezoid((rate * (above - below)) ** 2 / density, k))


def _twice_the_noise(counts: Any, mean: Any, rate: float) -> tuple[Any, Any, Any]:
    score, _, nats = count_likelihood(counts, mean, rate)
    return score, 1.0 / (mean + 2.0 / rate**2), nats


def density_of_count(rest: Any, mean: Any, rate: Any) -> Any:
    """As the row has it, of a count that lies beyond its mean by `rest`."""
    spread = mpmath.sqrt(mean)
    above, below = (mpmath.exp(-s * rate * rest) * mpmath.ncdf(s * rest / spread - rate * spread) for s in (1, -1))
    return rate / 2 * mpmath.exp(rate**2 * mean / 2) * (above + below)


@check(
    "ours:count-likelihood",
    rejects=[
        lambda rest, mean, rate: density_of_count(rest, mean, rate) / mpmath.exp(rate**2 * mean / 2),
        lambda rest, mean, rate: 2 * density_of_count(rest, mean, rate),
        lambda rest, mean, rate: density_of_count(rest, 1.01 * mean, rate),
        lambda rest, mean, rate: density_of_count(rest, mean, 0.99 * rate),
    ],
)
def check_density_of_counts(subject: Callable[[Any, Any, Any], Any] = density_of_count) -> str:
    """The row's formula is the convolution, and with the slope of its logarithm in the place, at a fixed variance,
    lambda (1 + s) are the records to expect: the square completed on either side, and integrals with thirty digits.
    """
    t, x, mean, rate, place = sympy.symbols("t x lambda r place", positive=True)
    for side in (1, -1):  # of the count: t below x, then above; in both the rest is a Gaussian moved by r lambda
        whole = -(t**2) / (2 * mean) - rate * side * (x - t)
        wanted = rate**2 * mean / 2 - side * rate * x - (t - side * rate * mean) ** 2 / (2 * mean)
        assert sympy.expand(whole - wanted) == 0
        cut = side * (x - side * rate * mean) / sympy.sqrt(mean)  # Phi of it is the Gaussian's mass on that side of x
        assert sympy.expand(cut - (side * x / sympy.sqrt(mean) - rate * sympy.sqrt(mean))) == 0
    slope = sympy.diff(-((t - place) ** 2) / (2 * mean), place)  # Tweedie: averaged over t given the count
    assert sympy.simplify(place + mean * slope - t) == 0
    with mpmath.workdps(30):
        for rate, mean, off in ((0.5, 12.0, -3.0), (3.0, 0.5, 40.0), (0.05, 300.0, -60.0), (1.0, 5.0, 1.0)):
            whole, first = (integral(mean + off, mpmath.mpf(mean), mpmath.mpf(rate), power) for power in (0, 1))
            assert abs(subject(mpmath.mpf(off), mean, mpmath.mpf(rate)) / whole - 1) < 1e-12, (rate, mean, off)
            slope = -mpmath.diff(lambda x, m=mean, r=rate: mpmath.log(subject(x, m, mpmath.mpf(r))), mpmath.mpf(off))
            assert abs(mean * (1 + slope) - first / whole) < 1e-8 * max(1.0, mean), (rate, mean, off)
    return "density of a noisy count and Tweedie's formula as they are written, at four points"


def _half_the_noise(counts: Any, mean: Any, rate: float) -> tuple[Any, Any, Any]:
    score, _, nats = count_likelihood(counts, mean, rate)
    return score, 1.0 / (mean + 1.0 / rate**2), nats


@check(
    "ours:count-information",
    code=count_likelihood,
    rejects=[_twice_the_noise, _half_the_noise, _scaled(information=0.99), _scaled(information=1.01)],
)
def check_information(subject: Likelihood = count_likelihood) -> str:
    """The stated information and the true one between Cramér and Rao's bound and Stam's; how far they are apart."""
    apart = []
    roots = [*np.logspace(-3, 3, 55).tolist(), 0.84]  # of rate^2 mean; what is stated, times mean, depends on it alone
    for root, rate in zip(roots, itertools.cycle((0.01, 0.3, 1.0, 10.0)), strict=False):
        mean = (root / rate) ** 2
        stated, true = float(subject(np.float64(mean), np.float64(mean), rate)[1]), true_information(mean, rate)
        least, most = 1 / (mean + 2 / rate**2), 1 / (mean + 1 / rate**2)
        assert least * (1 - 1e-4) <= true <= most * (1 + 1e-4), (rate, mean)
        assert least <= stated <= most, (rate, mean)
        assert math.isclose(stated, 1 / (mean + (1 + root / (1 + root)) / rate**2), rel_tol=1e-12), "as the row says"
        apart.append(stated / true)
    assert min(apart) > 1 - 1e-6 and 1.087 < max(apart) < 1.088, (min(apart), max(apart))
    return f"information of a noisy count: stated over true from {min(apart):.3f} to {max(apart):.3f}, proved within 2"


@check(
    "ours:count-information",
    rejects=[*((2 * by, F(1)) for by in (F(99, 100), F(101, 100))), *((F(2), by) for by in (F(99, 100), F(101, 100)))],
)
def check_information_bounds(subject: tuple[Fraction, Fraction] = (F(2), F(1))) -> str:
    """What enters the two bounds: the noise's variance for Cramer and Rao's, its information for Stam's. Between them
    lies the formula, for every t, and they are less than a factor of two apart (z3).

    subject: the noise's share of the reciprocals, in 1/r^2.
    """
    x, r = sympy.symbols("x r", positive=True)
    density = r / 2 * sympy.exp(-r * x)  # twice for both sides
    variance = 2 * sympy.integrate(x**2 * density, (x, 0, sympy.oo))
    information = 2 * sympy.integrate(sympy.diff(sympy.log(density), x) ** 2 * density, (x, 0, sympy.oo))
    assert (
        sympy.simplify(variance * r**2 - subject[0]) == 0 and sympy.simplify(1 / information * r**2 - subject[1]) == 0
    )
    mean, noise, t = z3.Reals("mean noise t")  # noise is 1/r^2
    low, high = (mean + share * noise for share in subject[::-1])
    formula = mean * (1 + t) + (1 + 2 * t) * noise  # times 1 + t
    positive = (mean > 0, noise > 0, t > 0)
    follows(*positive, goal=z3.And(low * (1 + t) < formula, formula < high * (1 + t), high < 2 * low))
    return "information of a noisy count: variance 2/r^2 and information r^2 of the noise, the formula between (z3)"


def _of_its_epsilon(noise: DiscreteLaplace) -> float:
    return noise.rate


def _of_its_deviation(noise: DiscreteLaplace) -> float:
    return 1.0 / math.sqrt(noise.variance)


def model_entropy(epsilon: Fraction, mean: int, rate: float, likelihood: Likelihood) -> float:
    """Relative entropy, in nats, of Poisson counts with discrete noise against their model: an exact sum."""
    n = np.arange(mean + 14 * math.isqrt(mean) + 30)
    k = np.arange(-int(45 / epsilon), len(n) + int(45 / epsilon))
    decay = math.exp(-float(epsilon))
    true = (1 - decay) / (1 + decay) * decay ** np.abs(k[:, None] - n) @ stats.poisson.pmf(n, mean)
    model = likelihood(k.astype(float), np.full(k.shape, float(mean)), rate)[2]
    assert abs(true.sum() - 1) < 1e-9
    return float(np.sum(true * (np.log(true) - model)))


@check(
    "ours:count-model",
    code=(tracking_rate, count_likelihood),
    rejects=[
        (_of_its_epsilon, count_likelihood),
        (_of_its_deviation, count_likelihood),
        *((lambda noise, by=by: by * tracking_rate(noise), count_likelihood) for by in (0.99, 1.01)),
        (tracking_rate, _laplace_alone),
        (tracking_rate, _gaussian),
        (tracking_rate, _scaled(nats=1e-4)),
    ],
)
def check_model_of_counts(subject: tuple[Any, Likelihood] = (tracking_rate, count_likelihood)) -> str:
    """How far the model is from counts that are Poisson's with discrete noise: the row's limits are the largest
    relative entropies of its five means, to one percent."""
    rate, likelihood = subject
    limits = {F(1, 100): 9.1e-8, F(1, 10): 5.2e-5, F(1, 2): 1.33e-3, F(1): 7.18e-3}
    for epsilon, limit in limits.items():
        own = rate(DiscreteLaplace(epsilon))
        decay = math.exp(-float(epsilon))
        assert math.isclose(2 / own**2, 2 * decay / (1 - decay) ** 2, rel_tol=1e-9), "the discrete noise's variance"
        worst = max(model_entropy(epsilon, mean, own, likelihood) for mean in (1, 5, 20, 100, 400))
        assert 0.99 * limit < worst <= limit, (epsilon, worst)
    largest = model_entropy(F(3), 1, rate(DiscreteLaplace(F(3))), likelihood)
    assert round(largest, 3) == 0.07, "as the row says"
    text = ", ".join(f"{nats:.3g} at {float(epsilon):g}" for epsilon, nats in limits.items())
    return f"relative entropy of true counts against their model, nats a cell: {text}; {largest:.3f} at 3, one record"


# --- what a day does --------------------------------------------------------------------------------------------------


def some_beliefs(tracker: Tracker, seed: int = 0) -> Beliefs:
    """Beliefs with everything correlated."""
    rng, start = np.random.default_rng(seed), tracker.start()
    mixing = rng.normal(size=(len(start.mean), len(start.mean))) / 30
    mean = start.mean + 0.2 * rng.normal(size=len(start.mean))
    return Beliefs(mean, start.covariance + mixing @ mixing.T)


def _kept(tracker: Tracker, beliefs: Beliefs, known: Any, rate: float) -> Ahead:
    """A day has no effects of its own: yesterday's stay."""
    ahead = tracker.ahead(beliefs, known, rate)
    mean, covariance = ahead.beliefs.mean.copy(), ahead.beliefs.covariance.copy()
    effects = list(tracker.effects)
    mean[effects] = beliefs.mean[effects]
    covariance[effects], covariance[:, effects] = beliefs.covariance[effects], beliefs.covariance[:, effects]
    return Ahead(tracker, Beliefs(mean, covariance), known, rate)


def _fresh(tracker: Tracker, beliefs: Beliefs, known: Any, rate: float) -> Ahead:
    """Effects are drawn anew but still thought to go with what they went with."""
    ahead = tracker.ahead(beliefs, known, rate)
    covariance, effects = ahead.beliefs.covariance.copy(), list(tracker.effects)
    for place in effects:
        others = [i for i in range(len(covariance)) if i not in effects]
        covariance[place, others] = covariance[others, place] = beliefs.covariance[place, others]
    return Ahead(tracker, Beliefs(ahead.beliefs.mean, covariance), known, rate)


def _wider(factor: float) -> Any:
    def ahead(tracker: Tracker, beliefs: Beliefs, known: Any, rate: float) -> Ahead:
        """All is scaled where a drift should be added, or the drift is off by a hundredth."""
        right = tracker.ahead(beliefs, known, rate)
        grown = beliefs.covariance + factor * (right.beliefs.covariance - beliefs.covariance)
        return Ahead(tracker, Beliefs(right.beliefs.mean, grown), known, rate)

    return ahead


def _multiplied(tracker: Tracker, beliefs: Beliefs, known: Any, rate: float) -> Ahead:
    return Ahead(
        tracker, Beliefs(tracker.ahead(beliefs, known, rate).beliefs.mean, 1.05 * beliefs.covariance), known, rate
    )


def drifted(tracker: Tracker, beliefs: Beliefs, known: Any, rate: float) -> tuple[Any, Any]:
    """Mean and covariance of `M θ + ξ`: M forgets a and b, and the ξ of each number is independent of all before."""
    d, size = tracker.dimension, len(beliefs.mean)
    width = math.exp(sum(float(u * f) for u, f in zip(beliefs.mean[d + 1 : 2 * d + 2], known, strict=True)))
    own = [(SLOPE_DRIFTS[0] * width) ** 2] * d + [(CONSTANT_DRIFTS[0] * width) ** 2]
    own += [SLOPE_DRIFTS[1] ** 2] * d + [CONSTANT_DRIFTS[1] ** 2, (DAY_EFFECTS[0] * width) ** 2, DAY_EFFECTS[1] ** 2]
    own += [(SIZE_DRIFT * float(beliefs.mean[2 * d + 4])) ** 2]
    shape = SHAPE_DRIFT / (1 + 10.0 / (rate * math.sqrt(max(float(beliefs.mean[2 * d + 4]), 5.0))))
    moved = np.zeros((size, size))
    moved[: len(own), : len(own)] = np.diag(own)
    for i, j in itertools.product(range(64), repeat=2):
        moved[len(own) + i, len(own) + j] = shape**2 * math.exp(-abs(i - j) / 64 / 0.3)
    forget = np.diag([0.0 if i in (2 * d + 2, 2 * d + 3) else 1.0 for i in range(size)])
    return forget @ beliefs.mean, forget @ beliefs.covariance @ forget + moved


@check(
    "ours:tracked-widening",
    code=Tracker,
    rejects=[_kept, _fresh, _multiplied, _wider(0.99), _wider(1.01)],
)
def check_widening(subject: Callable[..., Ahead] = Tracker.ahead) -> str:
    """Beliefs before a day are yesterday's, convolved with a Gaussian drift; nothing is known better, a and b apart."""
    for dimension, seed in itertools.product((0, 1, 3), (0, 1)):
        tracker = Tracker(2.0, 5.0, dimension, 300.0)
        beliefs, known = some_beliefs(tracker, seed), np.append(np.linspace(-1, 2, dimension), 1.0)
        for rate in (0.02, 1.0):
            mean, covariance = drifted(tracker, beliefs, known, rate)
            found = subject(tracker, beliefs, known, rate).beliefs
            assert np.allclose(found.mean, mean, rtol=1e-12, atol=1e-12)
            assert np.allclose(found.covariance, covariance, rtol=1e-10, atol=1e-12)
            kept = [i for i in range(len(mean)) if i not in tracker.effects]
            grown = (found.covariance - beliefs.covariance)[np.ix_(kept, kept)]
            assert np.linalg.eigvalsh(grown).min() > -1e-8
    return "before a day beliefs are convolved with a Gaussian, and a and b are drawn anew: each entry"


# --- Bayes' rule ------------------------------------------------------------------------------------------------------


class _Watched(Ahead):
    """Keeps what its counts were made linear as, in each round, and the beliefs that it began from."""

    def _searched(self, edges: Any, counts: Any) -> Any:
        found = super()._searched(edges, counts)
        self.__dict__.update(began=found[0], rounds=[])
        return found

    def _linear(self, edges: Any, counts: Any, at: Beliefs, spot: Any) -> Any:
        found = super()._linear(edges, counts, at, spot)
        self.__dict__["rounds"].append((*found, at.mean.copy()))
        return found


class _Bolder(_Watched):
    """Counts are taken for a hundredth more precise than they are thought to be."""

    def _updated(self, edges: Any, counts: Any) -> Beliefs:
        found = super()._updated(edges, counts)
        return Beliefs(found.mean, found.covariance - 0.01 * (self.beliefs.covariance - found.covariance))


class _Timid(_Watched):
    """The mean goes a hundredth less far."""

    def _updated(self, edges: Any, counts: Any) -> Beliefs:
        found = super()._updated(edges, counts)
        return Beliefs(found.mean + 0.01 * (self.beliefs.mean - found.mean), found.covariance)


class _Apart(_Watched):
    """What is believed of one number tells nothing of another."""

    def _updated(self, edges: Any, counts: Any) -> Beliefs:
        found = super()._updated(edges, counts)
        return Beliefs(found.mean, np.diag(np.diag(found.covariance)))


def by_precisions(before: Beliefs, slopes: Any, targets: Any, variances: Any, around: Any) -> tuple[Any, Any]:
    """Bayes' rule in precisions: theirs add up."""
    prior, weighed = np.linalg.inv(before.covariance), slopes.T / variances
    precision = prior + weighed @ slopes
    right = prior @ before.mean + weighed @ (targets + slopes @ around)
    return np.linalg.solve(precision, right), np.linalg.inv(precision)


class _Stubborn(_Watched):
    """Beliefs are not made vague when the series breaks."""

    def _searched(self, edges: Any, counts: Any) -> Any:
        _, spot, size = super()._searched(edges, counts)
        self.__dict__["began"] = self.beliefs
        return self.beliefs, spot, size


class _Hasty(_Watched):
    """Learns of the first round alone."""

    def _updated(self, edges: Any, counts: Any) -> Beliefs:
        super()._updated(edges, counts)
        return Beliefs(*by_precisions(self.beliefs, *self.__dict__["rounds"][0]))


class _Doubtful(_Watched):
    """Once the series broke, covariances are twice Bayes'."""

    def _updated(self, edges: Any, counts: Any) -> Beliefs:
        found = super()._updated(edges, counts)
        return found if self.__dict__["began"] is self.beliefs else Beliefs(found.mean, 2 * found.covariance)


class _Deep(_Watched):
    """The log density is cut from above alone."""

    def _updated(self, edges: Any, counts: Any) -> Beliefs:
        found, shapes = super()._updated(edges, counts), self.tracker.shapes
        mean = found.mean.copy()
        mean[shapes] = np.where(mean[shapes] <= -8.0, -80.0, mean[shapes])
        return Beliefs(mean, found.covariance)


def is_posterior(found: Beliefs, ahead: _Watched) -> bool:
    """Whether beliefs are Bayes' from what the update began from, by the counts as the last round made them linear, and
    know no direction less than that."""
    began = ahead.__dict__["began"]
    mean, covariance = by_precisions(began, *ahead.__dict__["rounds"][-1])
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    return bool(
        np.all(np.abs(found.mean - mean) < 1e-4 * np.sqrt(np.diag(began.covariance)))
        and np.all(np.abs(found.covariance - covariance) < 1e-4 * scale)
        and np.linalg.eigvalsh(began.covariance - found.covariance).min() > -1e-7 * max(1.0, scale.max())
    )


@check("ours:tracked-update", code=Ahead, rejects=[_Bolder, _Timid, _Apart, _Stubborn, _Hasty, _Doubtful, _Deep])
def check_update(subject: type[_Watched] = _Watched) -> str:
    """After a day: Bayes' rule for counts as they were made linear, and no direction is known less than before. Where
    the series breaks, records fifty widths away, it is Bayes' rule for beliefs in place and width made vague."""
    cases, days = 0, ((0.5, 300.0, 8), (3.0, 2000.0, 16))
    for dimension, (rate, size, cells), seed in itertools.product((0, 2), days, range(3)):
        tracker, rng = Tracker(0.0, 1.0, dimension, size), np.random.default_rng(seed)
        known = np.append(rng.normal(size=dimension), 1.0)
        before = tracker.ahead(some_beliefs(tracker, seed), known, rate).beliefs
        today, broken = (subject(tracker, before, known, rate) for _ in range(2))
        edges = np.sort(rng.normal(0, 1.5, size=cells - 1))
        constants = list(tracker.constants)
        means = size * np.diff(stats.t(2).cdf(edges), prepend=0, append=1)
        counts = np.rint(rng.poisson(means) + rng.laplace(0, 1 / rate, size=cells)).astype(np.int64)
        assert is_posterior(broken.after(edges + 50.0, counts), broken)
        added = broken.__dict__["began"].covariance - before.covariance
        assert np.count_nonzero(added) == 2 and np.all(added[constants, constants] > 3.99), "place and width are vague"
        assert is_posterior(today.after(edges, counts), today) and today.__dict__["began"] is before
        for sign in (1.0, -1.0):  # cut as the row says: the log density, and the number of records
            mean = before.mean.copy()
            mean[tracker.shapes] = 50.0 * sign
            ahead = subject(tracker, Beliefs(mean, before.covariance), known, rate)
            cut = ahead.after(edges, np.full(cells, -(10**5))).mean
            assert np.max(sign * cut[tracker.shapes]) == 8.0 and cut[tracker.size_at] == 5.0
        crowd = subject(tracker, Tracker(0.0, 1.0, dimension, 1e9).start(), known, rate)
        assert crowd.after(edges, np.full(cells, 10**9)).mean[tracker.size_at] == 1e9
        cases += 1
    return f"beliefs after a day are Bayes' for linear counts, in precisions: {cases} days"
