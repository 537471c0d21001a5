"""Steps about learning that the text uses in passing: convex descent, concentration, ratios of scores, cost of sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from pq.learners import TreeAggregator
from pq.losses import laplace_interval
from proofs_checks.simulated_learning import CENTRES

F = Fraction


def check_online_descent(subject: float = 1.0) -> str:
    """Gradient descent on the true losses competes with the best linear map and scale: regret <= D G sqrt(T)."""
    steps, largest = 400, 0.0
    reach, slope = math.sqrt(2 * 2.0**2), math.sqrt(2.0)  # maps in [-2, 2]^2, features +-1
    half, steep = 0.75, 2.5 + 2.0  # phi in [1/2, 2] from its middle, |d phi| <= R + sigma_max
    bound = (reach * slope + half * steep) * math.sqrt(steps)
    for number, (name, centre_of) in enumerate(CENTRES.items()):
        rng = np.random.default_rng([149, number])
        features = rng.choice([-1.0, 1.0], (steps, 2))
        centre = centre_of(rng, features)
        maps, phi, total = np.zeros(2), 1.25, 0.0
        for f, c in zip(features, centre, strict=True):
            loss, grad, grad_phi = laplace_interval(float(maps @ f), phi, c - 0.05, c + 0.05)
            total += float(loss)
            maps = np.clip(maps - reach / (slope * math.sqrt(steps)) * grad * f, -2, 2)
            phi = float(np.clip(phi - half / (steep * math.sqrt(steps)) * grad_phi, 0.5, 2.0))
        best = min(
            float(np.sum(laplace_interval(features @ np.array([a, b]) * p, p, centre - 0.05, centre + 0.05)[0]))
            for a in np.linspace(-1, 1, 9)
            for b in np.linspace(-1, 1, 9)
            for p in (0.5, 1.0, 2.0)
        )
        assert total - best <= subject * bound, (name, total - best, bound)
        largest = max(largest, (total - best) / bound)
    assert largest > 0.1 * subject, "the bound says nothing"
    return f"descent on the true Laplace losses, five sequences: regret at most {largest:.2f} of (D G + D' G') sqrt(T)"


def check_concentration(subject: float = 1.0) -> str:
    """Pr{max |z_i| >= E max |z_i| + sqrt(2 log(T/b))} <= b/T: exact tails of the largest of p normals."""
    largest = 0.0
    for p in (1, 2, 10, 1000):
        mean = mpmath.quad(lambda x, p=p: 1 - mpmath.erf(x / mpmath.sqrt(2)) ** p, [0, 2, 4, 8, 20])
        for failure in (0.5, 0.1, 1e-3, 1e-9):
            at = mean + subject * mpmath.sqrt(2 * mpmath.log(1 / mpmath.mpf(failure)))
            tail = -mpmath.expm1(p * mpmath.log1p(-mpmath.erfc(at / mpmath.sqrt(2))))
            assert tail <= failure, (p, failure)
            largest = max(largest, float(tail / failure))
    return f"Gaussian concentration of the largest modulus: exact tails at most {largest:.2f} of b/T"


def ratios(score: Any, other: Any, weight: Any) -> list[list[Fraction]]:
    """kappa_ij of sec:refined-sensitivity: what a neighbour does to each entry of the gradient."""
    inner = [
        [sum(s * w for s, w in zip(a, b, strict=True)) for a, b in zip(side, weight, strict=True)]
        for side in (score, other)
    ]
    total = sum(1 / x for x in inner[0]) / sum(1 / x for x in inner[1])
    return [
        [t / s * (x / y) ** 2 * total for s, t in zip(a, b, strict=True)]
        for a, b, x, y in zip(score, other, *inner, strict=True)
    ]


def check_ratios(subject: Callable[[int], int] = lambda m: 1 if m == 1 else 2) -> str:
    """kappa_j in exp(+-eps) for one quantile and kappa_ij in exp(+-2 eps) for several, exactly, and nearly reached."""
    rng, z, reached = np.random.default_rng(151), F(1, 3), {1: F(1), 2: F(1)}  # z = exp(-eps/2)
    for trial in range(400):
        m, d = (1, 2)[trial % 2], int(rng.integers(2, 5))
        score = [[F(int(v), 50) for v in rng.integers(1, 51, d)] for _ in range(m)]
        other = [[s * z ** int(rng.choice([-1, 1])) for s in row] for row in score]
        weight = [[F(int(v), 10) for v in 10 ** rng.integers(0, 5, d)] for _ in range(m)]
        for row in ratios(score, other, weight):
            for kappa in row:
                assert z ** (2 * subject(m)) <= kappa <= (1 / z) ** (2 * subject(m)), (m, kappa)
                reached[m] = max(reached[m], kappa)
    assert reached[1] > F(9, 10) / z**2
    assert reached[2] > F(1) / z**2, "no doubling to be seen"
    share = float(reached[2] * z**4)
    return f"kappa within exp(+-eps) for m = 1, exp(+-2 eps) for m > 1 (exact; {share:.2f} of it reached)"


def check_step_cost(subject: Callable[[int], int] = lambda steps: steps.bit_length()) -> str:
    """A learner's step costs at most log2 T + 1 additions a coordinate, and as much memory: nodes of one sum."""
    for steps in (1, 2, 7, 64, 1000):
        assert max(t.bit_count() for t in range(1, steps + 1)) <= subject(steps)
        assert subject(steps) <= math.floor(math.log2(steps)) + 1
    tree = TreeAggregator(50, 0.0, (3,), np.random.default_rng(0))
    total = np.zeros(3)
    for t in range(50):
        value = np.array([1.0, t, -t])
        total += value
        assert np.allclose(tree.add(value), total)
    return "sequential learning: at most log2 T + 1 additions a coordinate and step, and as many nodes in memory"


def printed_normal(low: float, high: float) -> float:
    """-log of the difference of two distribution functions, in float64."""
    mass = 0.5 * math.erfc(-high / math.sqrt(2)) - 0.5 * math.erfc(-low / math.sqrt(2))
    return -math.log(mass) if mass > 0 else math.inf


def check_normal_loss(subject: Callable[[float, float], float] | None = None) -> str:
    """The Gaussian loss has no elementary closed form, and is computed as stably as the Laplace one: against mpmath."""
    from pq.core.priors import Normal

    loss = subject or (lambda low, high: -float(Normal(0, 1).log_mass(low, high)))
    with mpmath.workdps(60):
        for low, high in ((-1.0, 1.0), (6.0, 6.1), (9.0, 9.0 + 1e-9), (38.0, 39.0), (200.0, 201.0), (-40.0, -38.0)):
            a, b = sorted((abs(mpmath.mpf(low)), abs(mpmath.mpf(high)))) if low * high > 0 else (low, high)
            root = mpmath.sqrt(2)
            exact = -mpmath.log((mpmath.erfc(a / root) - mpmath.erfc(b / root)) / 2)
            assert abs(loss(low, high) - exact) <= 1e-9 * max(1, abs(exact)), (low, high)
    return "Gaussian loss: float64 agrees with mpmath to nine digits in far tails and narrow cells"
