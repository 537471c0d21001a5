"""PubFit: Laplace priors from public data (Section 5.2, `thm:pubpri`, Appendix C.2).

The public data are cut at random into data sets of the private one's size; on each, every quantile has an optimal
interval. The priors minimise the mean over the data sets of the loss that bounds the error of the release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pq.core.bounds.applications import pubpri_step_sizes
from pq.core.exact import is_integer, quantile_fractions
from pq.core.kind import in_unit
from pq.core.learners import COCOB, OGD, Averaged
from pq.core.learners.gradient import steady
from pq.core.losses.laplace import laplace_interval_arrays
from pq.core.priors import Laplace
from pq.core.priors.arguments import positive, reals_each

__all__ = ["fit_public", "optimal_intervals"]

FloatArray = npt.NDArray[np.float64]

_ROUND = 100  # steps of a round, about: a cut with more data sets takes several at a step, one with fewer is repeated
_TOLERANCES = (0.005,) * 11 + (0.05,) * 89  # nats a round must gain for another; a poor guess may take longer
_SHARPEST = 4.0  # a scale of a quarter of the resolution puts 86% of the prior on one value of the data
_FAR = 2.0**1022  # a quarter of the largest float
_SQUARED = 1e150  # steps of gradient descent are made of squares


def optimal_intervals(
    x: npt.ArrayLike,
    quantiles: float | Sequence[float | Fraction],
    sample_size: int,
    rng: np.random.Generator,
    *,
    ties: str = "between",
) -> tuple[FloatArray, FloatArray]:
    """The optimal intervals of random data sets drawn from public data without replacement (Section 5.2).

    There are `T = floor(N/n)` disjoint data sets; the interval of quantile q is from the record of rank `floor(q n)` to
    the next, infinite below the first record and above the last.

    x: (N,) finite. quantiles: (m,) in [0, 1]. sample_size: n, from 1 to N. ties: what the interval is where these two
    records are equal, see `fit_public`. Returns the lower and upper ends, (T, m) each. Raises `ValueError` naming the
    argument.

    >>> lower, upper = optimal_intervals([3.0, 1.0, 2.0, 4.0], [0.5], 4, np.random.default_rng(0))
    >>> lower.tolist(), upper.tolist()
    ([[2.0]], [[3.0]])
    """
    records = in_unit(x, "x")
    _check_ties(ties)
    if not 1 <= sample_size <= records.size:
        raise ValueError("sample_size must be from 1 to the number of finite public records")
    blocks = records.size // sample_size
    drawn = rng.permutation(records)[: blocks * sample_size].reshape(blocks, sample_size)
    ranks = np.array([int(q * sample_size) for q in quantile_fractions(quantiles)])
    if ties == "beside":
        drawn.sort(axis=1)
    else:
        drawn.partition(np.unique(np.clip(np.concatenate([ranks - 1, ranks]), 0, sample_size - 1)), axis=1)
    low = np.where(ranks > 0, drawn[:, np.maximum(ranks - 1, 0)], -np.inf)
    high = np.where(ranks < sample_size, drawn[:, np.minimum(ranks, sample_size - 1)], np.inf)
    return _beside(drawn, ranks, low, high) if ties == "beside" else (low, high)


def _check_ties(ties: str) -> None:
    if ties not in ("between", "beside"):
        raise ValueError(f"ties must be 'between' or 'beside', got {ties!r}")


def _beside(
    drawn: FloatArray, ranks: npt.NDArray[np.int64], low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Move intervals without length to the side of the tied value that leaves the nearer number of records below."""
    padded = np.pad(drawn, ((0, 0), (1, 1)), constant_values=((0, 0), (-np.inf, np.inf)))
    for j in np.flatnonzero(np.any(low == high, axis=0)):
        rows = np.flatnonzero(low[:, j] == high[:, j])
        value = low[rows, j]
        first = np.count_nonzero(drawn[rows] < value[:, None], axis=1)
        after = np.count_nonzero(drawn[rows] <= value[:, None], axis=1)
        short, beyond = ranks[j] - first, after - ranks[j]  # both at the same distance: from one neighbour to the other
        low[rows, j] = np.where(short <= beyond, padded[rows, first], value)
        high[rows, j] = np.where(beyond <= short, padded[rows, after + 1], value)
    return low, high


@dataclass(frozen=True)
class _Problem:
    """Public data in units of the guessed scale around the guessed location of each quantile."""

    records: FloatArray
    quantiles: tuple[Fraction, ...]
    sample_size: int
    loc: FloatArray
    scale: FloatArray
    min_width: FloatArray
    ties: str

    def draw(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
        low, high = optimal_intervals(self.records, self.quantiles, self.sample_size, rng, ties=self.ties)
        low, high = (low - self.loc) / self.scale, (high - self.loc) / self.scale
        width = np.where(np.isinf(high - low), np.inf, high - low)
        narrow = width < self.min_width
        middle = 0.5 * (low + high)
        low = np.where(narrow, middle - 0.5 * self.min_width, low)
        high = np.where(narrow, middle + 0.5 * self.min_width, high)
        return low, high, np.maximum(width, self.min_width)


def _loss(point: FloatArray, drawn: tuple[FloatArray, FloatArray, FloatArray]) -> tuple[float, FloatArray]:
    """Return the mean over data sets of the loss of all quantiles, and its gradient, (2, m) like the point."""
    losses, d_theta, d_phi = laplace_interval_arrays(point[0], point[1], *drawn)
    top = np.maximum.reduce(losses, axis=1, keepdims=True)
    share = np.exp(losses - top)  # log_sum_exp without its care for infinities: widened intervals have finite losses
    total = np.add.reduce(share, axis=1, keepdims=True)
    share /= total * len(losses)
    value = float(np.add.reduce(top + np.log(total), axis=None)) / len(losses)
    gradient = np.empty((2, losses.shape[1]))
    np.add.reduce(share * d_theta, axis=0, out=gradient[0])
    np.add.reduce(share * d_phi, axis=0, out=gradient[1])
    return value, gradient


def _pass(learner: Averaged, drawn: tuple[FloatArray, FloatArray, FloatArray], at_once: int) -> None:
    low, high, width = drawn
    for start in range(0, len(low), at_once):
        part = slice(start, start + at_once)
        learner.update(steady(_loss(learner.point, (low[part], high[part], width[part]))[1]))


def _run_cocob(
    problem: _Problem, start: FloatArray, steps: FloatArray, phis: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Learn from fresh cuts of the data until the average iterate of a round is hardly better than the best so far.

    start: (2, m) theta and phi. steps: what is a short way for them. phis: (2, m) the least and the largest phi.
    """
    far = np.full_like(phis[0], np.inf)
    learner = COCOB(start, scale=steps, lower=np.stack([-far, phis[0]]), upper=np.stack([far, phis[1]]))
    test = problem.draw(rng)
    at_once = -(-len(test[0]) // _ROUND)
    cuts = -(-_ROUND // len(test[0]))
    best, best_loss, misses = start, _loss(start, test)[0], 0
    for tolerance in _TOLERANCES:
        averaged = Averaged(learner)
        for _ in range(cuts):
            _pass(averaged, problem.draw(rng), at_once)
        loss = _loss(averaged.average, test)[0]
        misses = 0 if best_loss - loss > tolerance else misses + 1  # one may be an overshoot
        if loss < best_loss:
            best, best_loss = averaged.average, loss
        if misses == 2:
            break
    return best


def _run_ogd(
    problem: _Problem, least: FloatArray, most: FloatArray, reach: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """The theorem's algorithm: one pass from theta = 0 and the middle of the range of phi, then the average."""
    drawn = problem.draw(rng)
    bound, m = float(np.max(reach)) or 1.0, len(least)
    steps = pubpri_step_sizes(
        len(drawn[0]), quantiles=m, data_bound=bound, scale_min=float(np.min(least)), scale_max=float(np.max(most))
    )
    end = bound / least
    learner = Averaged(
        OGD(
            np.stack([np.zeros(m), 0.5 * (1.0 / most + 1.0 / least)]),
            step=[[steps.location], [steps.inverse_scale]],
            lower=np.stack([-end, 1.0 / most]),
            upper=np.stack([end, 1.0 / least]),
        )
    )
    _pass(learner, drawn, 1)
    return learner.average


def _problem(
    x_public: npt.ArrayLike,
    quantiles: float | Sequence[float | Fraction],
    sample_size: int,
    loc: npt.ArrayLike,
    scale: npt.ArrayLike,
    min_width: float,
    ties: str,
) -> _Problem:
    wanted = quantile_fractions(quantiles)
    records = in_unit(x_public, "x_public")
    if records.ndim != 1:
        raise ValueError("x_public must be one-dimensional")
    centre, unit = reals_each(loc, len(wanted), "loc"), reals_each(scale, len(wanted), "scale")
    if not np.all(unit > 0):
        raise ValueError("scale must be positive")
    records = records[np.isfinite(records)]
    if not is_integer(sample_size):
        raise TypeError("sample_size must be an integer")
    if not 1 <= sample_size <= records.size:
        raise ValueError("sample_size must be from 1 to the number of finite public records")
    return _Problem(records, wanted, int(sample_size), centre, unit, min_width / unit, ties)


def _scale_range(
    problem: _Problem, scales: tuple[float, float] | None, optimizer: str, reach: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The least and the largest scale of each prior, in units of its guess."""
    if optimizer == "ogd" and not np.all(reach < _SQUARED):
        raise ValueError(f"x_public must lie within {_SQUARED:g} scales of loc where optimizer is 'ogd'")
    if scales is not None:
        low, high = (positive(scale, "scales") for scale in scales)
        if low > high:
            raise ValueError("scales must be two positive finite numbers in ascending order")
        return low / problem.scale, high / problem.scale
    if optimizer == "cocob":
        least = problem.min_width / _SHARPEST
        within = np.minimum(reach, _FAR / np.maximum(problem.scale, 1.0))  # so that no scale leaves the floats
        return least, np.maximum(np.maximum(within, 1.0), least)
    return np.full_like(reach, 0.25), np.full_like(reach, 4.0)


def fit_public(
    x_public: npt.ArrayLike,
    quantiles: float | Sequence[float | Fraction],
    *,
    sample_size: int,
    loc: npt.ArrayLike,
    scale: npt.ArrayLike,
    min_width: float,
    optimizer: str = "cocob",
    rng: np.random.Generator,
    scales: tuple[float, float] | None = None,
    ties: str = "between",
) -> list[Laplace]:
    """Fit one Laplace prior for each quantile to public data: PubFit (`thm:pubpri`, Section 5.2 and Appendix C.2).

    x_public: (N,) public records; those that are not finite are left out.
    quantiles: (m,) in [0, 1], as they will be released.
    sample_size: public size n of the private data set, or a guess; from 1 to N.
    loc, scale: guesses of where the quantiles lie and how well that is known, numbers or (m,), in the data's unit;
        `scale` positive. The learner starts there, and `scale` is the unit that it works in.
    min_width: public resolution of the data, positive, in their unit; shorter intervals are widened to it.
    optimizer: `"cocob"`, passes over fresh cuts of the data until progress stops, or `"ogd"`, one pass of the
        theorem's algorithm with its step sizes (corrected, see `pq.bounds.pubpri_step_sizes`) and its average.
    rng: source of the cuts.
    scales: least and largest scale of a prior, in the data's unit; by default a quarter of `min_width` and, for
        `"cocob"`, no less than the spread of the data; for `"ogd"`, whose steps grow with the range, from a
        quarter to four times the guess.
    ties: where the rank falls among equal records, `"between"` aims at their value, widened to `min_width`:
        right for outputs on a grid, which may equal it. `"beside"` aims at the real numbers with the least gap
        (`eq:gap`): those from the tied value to its neighbour above or below, whichever leaves the nearer number
        of records below; right for outputs that are real numbers.

    Returns m priors in the caller's order; mix them with a robust prior before use on data that may differ.

    Raises `ValueError` or `TypeError` naming the argument.

    Guarantees: spends no privacy (the private data are not seen); expressing data, guesses and resolution in another
    unit scales the priors and changes nothing else. The learner sees gradients of twenty bits, so that the last bits
    of exponentials and sums, in which processors differ, change fewer than one fit in ten thousand.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(50.0, 10.0, 5000).round()
    >>> prior, = fit_public(x, [0.5], sample_size=100, loc=40.0, scale=5.0, min_width=1.0, rng=rng)
    >>> abs(prior.loc - 50.0) < 1.0, prior.scale < 5.0
    (True, True)
    """
    if optimizer not in ("cocob", "ogd"):
        raise ValueError(f"optimizer must be 'cocob' or 'ogd', got {optimizer!r}")
    narrow = positive(min_width, "min_width")
    _check_ties(ties)
    return _laplaces(_problem(x_public, quantiles, sample_size, loc, scale, narrow, ties), scales, optimizer, rng)


def _laplaces(
    problem: _Problem,
    scales: tuple[float, float] | None,
    optimizer: str,
    rng: np.random.Generator,
    *,
    from_zero: bool = False,
) -> list[Laplace]:
    """The fitted priors. from_zero: COCOB counts from zero in the data's unit, as in the paper, where each step of phi
    moves the location too; for comparison."""
    unit = problem.scale
    with np.errstate(all="ignore"):
        reach = np.max(np.abs(problem.records[:, None] - problem.loc), axis=0) / unit
        least, most = _scale_range(problem, scales, optimizer, reach)
        start = np.stack([np.zeros_like(unit), np.clip(np.ones_like(unit), 1.0 / most, 1.0 / least)])
        if optimizer == "cocob":
            steps = np.ones_like(start)
            if from_zero:
                start[0], steps[1] = start[1] * problem.loc / unit, unit
                problem = replace(problem, loc=np.zeros_like(unit))
            point = _run_cocob(problem, start, steps, np.stack([1.0 / most, 1.0 / least]), rng)
        else:
            point = _run_ogd(problem, least, most, reach, rng)
    return [
        Laplace(float(centre + u * theta / phi), float(u / phi))
        for centre, u, theta, phi in zip(problem.loc, unit, point[0], point[1], strict=True)
    ]
