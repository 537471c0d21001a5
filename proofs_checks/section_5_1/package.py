"""The Laplace loss and its slopes as the package computes them, against many digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np

from pq.bounds import laplace_gradient_bound
from pq.losses import laplace_interval
from proofs_checks.engine.registry import check
from proofs_checks.section_5_1.laplace_slopes import derivatives, phi_derivative
from proofs_checks.tools.laplace import closed_form, laplace_points, mpf_of


def _component(number: int, factor: float) -> Callable[..., Any]:
    """The loss (0) or one of its slopes (1, 2) off by a factor."""

    def broken(*point: Any) -> tuple[Any, ...]:
        found = list(laplace_interval(*point))
        found[number] = found[number] * factor
        return tuple(found)

    return broken


@check(
    "eq:closed-form",
    "eq:closed-form/derivatives",
    "eq:closed-form/joint-convexity",
    "eq:censored",
    "text:learning-leaks",
    "ours:level-sets",
    "thm:pubpri/loss-bound",
    code=laplace_interval,
    rejects=[_component(0, 1 + 1e-6), _component(1, -1.0), _component(2, 1 + 1e-6), _component(1, 1 + 1e-6)],
)
def check_laplace_in_package(subject: Callable[..., Any] = laplace_interval) -> str:
    """`laplace_interval` is the closed form and its derivatives at points of every regime, and convex on chords."""
    rng, checked = np.random.default_rng(19), 0
    with mpmath.workdps(40):
        for point in laplace_points():
            theta, phi, low, high = map(mpf_of, point)
            found = subject(*map(float, point))
            assert abs(found[0] - closed_form(theta, phi, low, high)) <= 1e-12 * (1 + abs(found[0])), point
            wanted = derivatives(theta, phi, low, high)  # once differentiable at the ends as well
            for one, two in zip(found[1:], wanted, strict=True):
                assert abs(one - two) <= 1e-9 * (1 + abs(two)), (point, one, two)
            checked += 1
    for _ in range(300):
        (a, b), low = 10 ** rng.uniform(-2, 2, (2, 2)) * rng.choice([-1, 1], (2, 2)), float(rng.normal())
        a[1], b[1], high = abs(a[1]), abs(b[1]), low + float(rng.uniform(0.01, 3))
        one, two, middle = (float(subject(*p, low, high)[0]) for p in (a, b, (a + b) / 2))
        assert middle <= (one + two) / 2 * (1 + 1e-12) + 1e-12, (a, b)
    return f"laplace_interval: closed form at {len(laplace_points())} points, slopes at {checked}, convex on 300 chords"


@check(
    "ours:phi-derivative",
    "eq:closed-form/phi-derivative",
    "eq:closed-form/phi-magnitude",
    "eq:closed-form/theta-derivative",
    "thm:sequential/gradient-constant",
    "thm:sequential/data-range",
    code=(laplace_gradient_bound, laplace_interval),
    rejects=[
        lambda b, s, separation=0.0: laplace_gradient_bound(b, s, separation=separation, version="paper"),
        lambda b, s, separation=0.0: laplace_gradient_bound(0.99 * b, 0.99 * s, separation=0.99 * separation),
        lambda b, s, separation=0.0: laplace_gradient_bound(1.01 * b, 1.01 * s, separation=1.01 * separation),
        lambda b, s, separation=0.0: laplace_gradient_bound(b, s),
    ],
)
def check_slopes_in_package(subject: Callable[..., tuple[float, float]] = laplace_gradient_bound) -> str:
    """The least bounds on both slopes for data in [-B, B], scales to sigma_max and intervals of psi or more."""
    rng = np.random.default_rng(17)
    for bound, scale, separation in ((1.0, 1.0, 0.0), (10.0, 0.1, 0.5), (0.5, 30.0, 0.2), (3.0, 2.0, 4.0)):
        most = subject(bound, scale, separation=separation)
        assert laplace_gradient_bound(bound, scale, version="paper") == (1.0, 4 * bound + scale), "as printed"
        for _ in range(300):
            low = rng.uniform(-bound, bound - separation)
            high = rng.uniform(low + separation, bound) if separation < bound - low else bound
            phi = 1 / (scale * rng.uniform(0.01, 1))
            theta = phi * rng.uniform(-3 * bound, 3 * bound)
            slopes = np.abs(laplace_interval(theta, phi, low, max(high, low + 1e-9))[1:])
            assert slopes[0] <= most[0] * (1 + 1e-9) and slopes[1] <= most[1] * (1 + 1e-9), (low, high, phi)
        width = max(separation, bound * 1e-9)
        with mpmath.workdps(30):
            worst = float(abs(phi_derivative(1, mpmath.mpf(bound - width), bound, 1 / mpmath.mpf(scale))))
        assert math.isclose(most[1], worst, rel_tol=1e-6), "not the least bound"
    return "slopes of the Laplace loss: 1 and B + psi/(exp(psi/sigma_max) - 1), never exceeded, attained at an end"
