"""The law of an order statistic of draws from a known distribution, as a prior (Section 2.2, Appendix B.1).

If the records are independent draws from F, the k-th smallest of n of them has the distribution function `I_{F(x)}(k, n
- k + 1)`, a regularised incomplete beta function. With F and a guess of n that are public, it says where a sample
quantile lies and how surely.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pq.core.exact import briefly, is_integer
from pq.core.priors.base import Prior, set_parameters
from pq.core.priors.mixture import Mixture
from pq.core.priors.numerics import LARGEST, Array, between, numbers_only, special, unit_rule
from pq.core.priors.scipy_prior import from_scipy

_NODES = 20
_SMALL = 1e-280  # below it incomplete beta functions come from their series, in logs
_MOST_TERMS = 100_000
MOST_DRAWS = 100_000  # of more, masses of cut intervals would add up to fewer digits than those of other priors
_INVERTIBLE = -9.0  # log of the mass above which sampling may subtract shares


def _draws_in(prior: Prior) -> int:
    """Draws that one draw of a prior takes at most: of an order statistic, all that it is one of."""
    parts = [part for _, part in prior._components()]
    return max(part.n * _draws_in(part.prior) if isinstance(part, OrderStatistic) else 1 for part in parts)


@dataclass(frozen=True)
class OrderStatistic(Prior, twin=None, kernel=None):
    """The law of the k-th smallest of n independent draws from a known distribution.

    prior: the distribution of one draw, a prior or a frozen continuous distribution of `scipy.stats`.
    n: public guess of the number of records, from 1 to 100,000 (with those of order statistics that it is made of):
    where there are more, give that many, and k of these, for a wider prior. k: from 1 to n; `pq.rank(q, n)` for
    quantile q.

    Its accuracy is that of the distribution's own masses, about n times less far in the tails: a relative error of
    1e-11 in the logarithms at most. Raises `TypeError` or `ValueError` naming the argument.

    >>> from pq.core.priors import Uniform
    >>> OrderStatistic(Uniform(0, 1), n=3, k=2).log_mass(0, 0.5)
    -0.693147
    >>> OrderStatistic(Uniform(0, 1), n=2, k=2).quantile_between(0, 1, 0.25)
    0.5
    """

    prior: Prior
    n: int
    k: int

    def __post_init__(self) -> None:
        for name in ("n", "k"):
            value = getattr(self, name)
            if not is_integer(value):
                raise TypeError(f"{name} must be an integer, got {type(value).__name__}")
            set_parameters(self, **{name: int(value)})
        if self.n < 1:
            raise ValueError(f"n must be at least 1, got {briefly(self.n)}")
        if self.n > MOST_DRAWS:
            raise ValueError(f"n must be at most {MOST_DRAWS:,}: take that many draws of more, and k of these")
        if not 1 <= self.k <= self.n:
            raise ValueError(f"k must be from 1 to n, got {briefly(self.k)}")
        law: Any = self.prior
        if not isinstance(law, Prior):
            set_parameters(self, prior=from_scipy(law))
        if self.n * (inside := _draws_in(self.prior)) > MOST_DRAWS:
            raise ValueError(f"n must be at most {MOST_DRAWS // inside:,} of draws that are {inside:,} each")
        special()
        unit_rule(_NODES)

    @classmethod
    def _from_plain(cls, parameters: dict[str, Any]) -> Prior:
        return cls(Prior.from_dict(parameters["prior"]), parameters["n"], parameters["k"])

    @property
    def support(self) -> tuple[float, float]:
        return self.prior.support

    def _cores(self) -> list[tuple[float, float]]:
        return self.prior._cores()

    def _log_mass(self, lower: Array, upper: Array) -> Array:
        ends = np.full_like(lower, np.inf)
        below, above = self.prior._log_mass(-ends, lower), self.prior._log_mass(upper, ends)
        up_to, beyond = self.prior._log_mass(-ends, upper), self.prior._log_mass(lower, ends)
        inside = self.prior._log_mass(lower, upper)
        # Seen from the nearer tail, the interval of probabilities is (near, near + inside].
        flip = beyond < up_to
        near, far = np.where(flip, above, below), np.where(flip, below, above)
        near_end, far_end = np.where(flip, beyond, up_to), np.where(flip, up_to, beyond)
        a = np.where(flip, self.n + 1.0 - self.k, float(self.k))
        out = _log_beta_mass(a, self.n + 1.0 - a, near, near_end, far_end, far, inside)
        return numbers_only(np.where(inside > -np.inf, out, -np.inf))

    def _log_density(self, o: Array) -> Array:
        ends = np.full_like(o, np.inf)
        below, above = self.prior._log_mass(-ends, o), self.prior._log_mass(o, ends)
        k = np.full_like(o, float(self.k))
        density = self.prior._log_density(o)
        return np.where(density > -np.inf, _log_beta_density(k, self.n + 1.0 - k, below, above) + density, -np.inf)

    def _quantile(self, lower: Array, upper: Array, u: Array, v: Array) -> Array:
        low, high = self.support
        start, stop = np.maximum(lower, max(low, -LARGEST)), np.minimum(upper, min(high, LARGEST))
        log_total = self._log_mass(start, stop)
        if isinstance(self.prior, Mixture):  # its quantiles are those of its components
            return self._bisected(start, stop, u, v, between(start, stop, u))
        out = self._inverse(start, stop, np.exp(log_total), u, v)
        hard = np.flatnonzero((log_total < _INVERTIBLE) | ~np.isfinite(out))
        if hard.size:
            out[hard] = self._bisected(start[hard], stop[hard], u[hard], v[hard], out[hard])
        return out

    def _inverse(self, start: Array, stop: Array, total: Array, u: Array, v: Array) -> Array:
        """The point from the inverse of the incomplete beta function; shares are good to 1e-16 over the total mass."""
        ends = np.full_like(start, np.inf)
        below = np.exp(self._log_mass(-ends, start)) + u * total
        above = np.exp(self._log_mass(stop, ends)) + v * total
        k, rest = float(self.k), self.n + 1.0 - self.k
        lower_half = below < above
        p = np.where(lower_half, special().betaincinv(k, rest, below), special().betainccinv(k, rest, above))
        q = np.where(lower_half, special().betainccinv(rest, k, below), special().betaincinv(rest, k, above))
        return self.prior._quantile(-ends, ends, p, q)


def _log_beta_mass(
    a: Array, b: Array, log_near: Array, log_near_end: Array, log_far_end: Array, log_far: Array, log_inside: Array
) -> Array:
    """Log of the mass of Beta(a, b) on (near, near + inside], where far_end = 1 - near and far = 1 - near - inside."""
    below, up_to = _log_beta_tail(a, b, log_near, log_far_end), _log_beta_tail(a, b, log_near_end, log_far)
    above, beyond = _log_beta_tail(b, a, log_far, log_near_end), _log_beta_tail(b, a, log_far_end, log_near)
    on_left = up_to < beyond
    most = np.where(on_left, up_to, beyond)
    kept = -np.expm1(np.where(on_left, below, above) - most)
    rest = np.exp(below) + np.exp(above)
    out = np.where(rest < 0.5, np.log1p(-rest) + 0.0, most + np.log(kept))
    out = np.where(most == -np.inf, -np.inf, out)
    narrow = np.flatnonzero(~((rest < 0.5) | (kept > 0.3) | (most == -np.inf)))
    if narrow.size:
        x, w, y = log_near[narrow, None], log_inside[narrow, None], log_far[narrow, None]
        shares, weights = unit_rule(_NODES)
        log_p, log_q = np.logaddexp(x, w + np.log(shares)), np.logaddexp(y, w + np.log1p(-shares))
        heights = _log_beta_density(a[narrow, None], b[narrow, None], log_p, log_q)
        top = np.max(heights, axis=1)
        out[narrow] = top + np.log(np.exp(heights - top[:, None]) @ weights) + w[:, 0]
    return out


def _log_beta_tail(a: Array, b: Array, log_p: Array, log_q: Array) -> Array:
    """Log of the regularised incomplete beta function at p = 1 - q, also where it is no float."""
    p, q = np.exp(log_p), np.exp(log_q)
    tail = np.where(p <= q, special().betainc(a, b, p), special().betaincc(b, a, q))
    out = np.where(p <= q, np.log(tail), np.where(q > 0, np.log1p(-special().betainc(b, a, q)), 0.0))
    out = np.where((tail < 0.5) & (p > q), np.log(tail), out)
    tiny = np.flatnonzero((tail < _SMALL) & (log_p > -np.inf))
    if tiny.size:
        # I_p(a, b) = p q f(p) / a * sum_j p^j (a + b)_j / (a + 1)_j, whose terms fall from the first on in a far tail
        c, d, x = a[tiny], b[tiny], p[tiny]
        term, total = np.ones_like(x), np.ones_like(x)
        for j in range(_MOST_TERMS):
            term = term * x * (c + d + j) / (c + 1.0 + j)
            total = total + term
            if not (term > 1e-17 * total).any():
                break
        front = _log_beta_density(c, d, log_p[tiny], log_q[tiny]) + log_p[tiny] + log_q[tiny]
        out[tiny] = front - np.log(c) + np.log(total)
    return out


def _log_beta_density(a: Array, b: Array, log_p: Array, log_q: Array) -> Array:
    """Log density of Beta(a, b), for integers, at p = 1 - q: n times a binomial mass, by its deviance (Loader 2000)."""
    n, x, y = a + b - 1.0, a - 1.0, b - 1.0
    trials = n - 1.0
    middle = (
        _stirling_error(trials)
        - _stirling_error(x)
        - _stirling_error(y)
        - _deviance(x, trials, log_p)
        - _deviance(y, trials, log_q)
        + 0.5 * np.log(trials / (2.0 * np.pi * x * y))
    )
    edge = np.where(x == 0, 0.0, x * log_p) + np.where(y == 0, 0.0, y * log_q)
    return np.log(n) + np.where((x == 0) | (y == 0), edge, middle)


def _deviance(x: Array, trials: Array, log_p: Array) -> Array:
    """x log(x / (trials p)) + trials p - x, without cancellation where the two agree."""
    mean = trials * np.exp(log_p)
    t = (x - mean) / mean
    series = np.zeros_like(t)
    for j in range(18, 1, -1):  # (1 + t) log(1 + t) - t = sum_j (-t)^j / (j (j - 1))
        series = series * -t + 1.0 / (j * (j - 1.0))
    far = x * (np.log(x / trials) - log_p) + mean - x
    return np.where(np.abs(t) < 0.1, mean * series * t * t, far)


def _stirling_error(x: Array) -> Array:
    """log x! less Stirling's formula."""
    s = 1.0 / (x * x)
    series = (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * 691 / 360360))))) / x
    direct = special().gammaln(x + 1.0) - (x + 0.5) * np.log(x) + x - 0.5 * np.log(2.0 * np.pi)
    return np.where(x > 15.5, series, direct)
