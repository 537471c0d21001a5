"""Permute-and-flip with a prior, over classes of equal candidates: exact law and sampler (McKenna and Sheldon 2020).

The candidate comes out whose score `log w + rate u + Z` is largest, w its prior mass, u its utility, each Z exponential
of mean one. With equal masses that is permute-and-flip.

**Private.** Let each rate * u move by at most epsilon / 2. Only differences of scores matter, so that all scores of the
neighbour may be shifted at once until that of the candidate o has fallen by at most epsilon and no other has risen.
Whatever the other Z are, o wins there if its Z exceeds a bound that is higher than before by at most epsilon, and P(Z >
b + epsilon) is at least e^-epsilon P(Z > b). Of w this uses only that it is public.

**Law.** With p = w e^(rate u) over its largest, the winning score is max - log x, x in (0, 1), and `P(x' > x) = S(x) =
prod (1 - x p)`; at level x a candidate wins with a probability proportional to p / (1 - x p), so that `P(o) = p_o *
integral of S(x) / (1 - x p_o) over (0, 1)`. A class of `count` equal candidates is one factor (1 - x p)^count. Levels
are handled as z = -log(1 - x), so that those near one keep their digits.
"""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np

from pq.private.columns.door import Array

BLOCK = 2**20  # numbers in a temporary array


@cache
def _rule() -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights on [-1, 1]."""
    return np.polynomial.legendre.leggauss(32)


def _log_left(log_p: Array, z: Array | float) -> Array:
    """log(1 - x p) for x = 1 - e^-z, accurate at both ends of p; z broadcasts against log_p."""
    p, hidden = np.exp(log_p), -np.expm1(-z)
    with np.errstate(all="ignore"):
        small, large = np.log1p(-p * hidden), np.log(p * np.exp(-z) - np.expm1(log_p))
    return np.where(log_p == 0.0, -z, np.where(p * hidden < 0.5, small, large))


def choose_class(log_weight: Array, count: Array, level_uniform: float, uniform: float) -> int:
    """The class of the winner that two uniforms in (0, 1) stand for: one for the level, one for who wins there.

    log_weight: (c,) of each candidate of a class, -inf allowed. count: (c,) candidates, whole numbers of at least one.

    >>> choose_class(np.array([0.0, -1.0]), np.ones(2), 0.5, 0.3)
    0
    """
    import scipy  # late, as in pq.core.priors.numerics

    log_p = log_weight - np.max(log_weight)
    needed = -math.log(level_uniform)
    most = needed / float(np.sum(count[log_p == 0.0]))

    def excess(z: float) -> float:
        return -float(np.dot(count, _log_left(log_p, z))) - needed

    z = most
    if excess(most) > 0.0:  # never raises: `disp` off, and what it has after that many steps is the answer to rounding
        z = float(scipy.optimize.brentq(excess, 0.0, most, xtol=most * 1e-16, rtol=1e-15, maxiter=500, disp=False))
    running = np.cumsum(count * np.exp(log_p - _log_left(log_p, z)))
    last = int(np.searchsorted(running, running[-1], side="left"))
    return min(int(np.searchsorted(running, uniform * running[-1], side="right")), last)


def log_chances(log_weight: Array, count: Array) -> Array:
    """Exact log probability, for each class, that one certain candidate of it wins; arguments as in `choose_class`.

    >>> np.exp(log_chances(np.array([0.0, -1.0]), np.ones(2))).round(6)  # half of e^-1, and the rest
    array([0.81606, 0.18394])
    """
    return np.asarray(log_weight - np.max(log_weight) + log_factors(log_weight, count))


def log_factors(log_weight: Array, count: Array) -> Array:
    """What `log_chances` has beside the log weights, relative to the largest: between -log of all counts and zero.

    The integrand is a polynomial in x: Gauss-Legendre on panels that double from where the product begins to fall.
    """
    log_p = log_weight - np.max(log_weight)
    total = float(np.dot(count, np.exp(log_p)))
    panels = max(1, math.ceil(math.log2(total)) + 1)
    edges = np.concatenate([[0.0], 0.5 ** np.arange(panels - 1, -1, -1)])
    block = max(1, BLOCK // len(count))  # nodes at a time
    logs = np.full(len(count), -math.inf)
    for lower, upper in itertools.pairwise(edges.tolist()):
        x = lower + (upper - lower) * (_rule()[0] + 1.0) / 2.0
        for i in range(0, len(x), block):
            left = _log_left(log_p, -np.log1p(-x[i : i + block, None]))
            weight = _rule()[1][i : i + block] * (upper - lower) / 2.0
            terms = (left @ count + np.log(weight))[:, None] - left
            logs = np.logaddexp(logs, np.logaddexp.reduce(terms, axis=0))
    return np.asarray(logs)
