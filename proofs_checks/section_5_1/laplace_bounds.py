"""How large the Laplace loss gets, and how far apart two slopes: eq:laplace-bound, text:sign-flip."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import sympy
import z3

from pq.bounds import eq_laplace_bound
from pq.losses import laplace_interval
from proofs_checks.engine.registry import check
from proofs_checks.section_5_1.laplace_slopes import derivatives
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.laplace import closed_form
from proofs_checks.tools.solver import absolute, follows


def loss_bound(data_bound: float, scale_min: float, scale_max: float, separation: float) -> float:
    """``eq:laplace-bound`` as printed."""
    return 2 * data_bound / scale_min + math.log(2 * scale_max / separation)


@check(
    "eq:laplace-bound",
    "ours:laplace-supremum",
    code=eq_laplace_bound,
    rejects=[
        (lambda b, low, high, psi: b / low + math.log(2 * high / psi), eq_laplace_bound),
        (lambda b, low, high, psi: 2 * b / low + math.log(high / (2 * psi)) - 1, eq_laplace_bound),
        *((scaled(loss_bound, by), eq_laplace_bound) for by in (0.99, 1.01)),
        *(
            (lambda b, low, high, psi, by=by: loss_bound(by * b, low, high, psi), eq_laplace_bound)
            for by in (0.99, 1.01)
        ),
        *(
            (lambda b, low, high, psi, by=by: loss_bound(b, low, high, by * psi), eq_laplace_bound)
            for by in (0.99, 1.01)
        ),
        *((loss_bound, scaled(eq_laplace_bound, by)) for by in (0.99, 1.01)),
        (loss_bound, lambda *known, box=False: eq_laplace_bound(*known)),
    ],
)
def check_loss_bound(
    subject: tuple[Callable[..., float], Callable[..., float]] = (loss_bound, eq_laplace_bound),
) -> str:
    """``eq:laplace-bound`` holds, also on the product box of gradient descent; the exact supremum is ours."""

    # Mass >= w phi/2 exp(-phi max|o - nu|) >= psi phi/2 exp(-2B phi); and on the box |z| <= B/scale_min + (B - h) phi.
    b, theta, phi, place, steepest = z3.Reals("B theta phi place steepest")  # the last: 1/sigma_min
    known = (absolute(theta) <= b * steepest, absolute(place) <= b, phi > 0, phi <= steepest)
    follows(*known, goal=absolute(theta - phi * place) <= 2 * b * steepest)  # so a density of phi/2 exp(-2B/sigma_min)
    rng = np.random.default_rng(11)
    for _ in range(300):
        bound, low_scale = 10 ** rng.uniform(-1, 2), 10 ** rng.uniform(-1, 1)
        high_scale, separation = low_scale * 10 ** rng.uniform(0, 2), bound * 10 ** rng.uniform(-4, 0)
        printed = subject[0](bound, low_scale, high_scale, separation)
        paper = eq_laplace_bound(bound, low_scale, high_scale, separation, version="paper")
        assert math.isclose(paper, printed, rel_tol=1e-9), "the package's printed bound"
        for box in (False, True):
            exact = subject[1](bound, low_scale, high_scale, separation, box=box)
            reached = mpmath.mpf(0)
            for scale in (low_scale, high_scale, math.sqrt(low_scale * high_scale)):
                theta = -bound / low_scale if box else -bound / scale
                loss = closed_form(
                    mpmath.mpf(theta), 1 / mpmath.mpf(scale), bound - mpmath.mpf(separation), mpmath.mpf(bound)
                )
                reached = max(reached, loss)
            assert abs(reached - exact) < 1e-6 * (1 + exact), (float(reached), exact)
            assert reached <= printed * (1 + 1e-12), (bound, low_scale, high_scale, separation, box)
    for bound, scale in ((1.0, 0.1), (3.0, 50.0)):  # one scale, hardly any separation
        reached = subject[1](bound, scale, scale, 1e-9)
        assert reached <= subject[0](bound, scale, scale, 1e-9) * (1 + 1e-9), "exceeded"
        assert subject[0](bound, scale, scale, 1e-9) <= reached * (1 + 1e-6), "not attained"
    theta, phi, h, c = sympy.symbols("theta phi h c", positive=True)
    outside = phi * (theta - c) - sympy.log(sympy.sinh(h * phi))  # location fixed: convex in phi
    second = sympy.diff(outside, phi, 2) - h**2 / sympy.sinh(h * phi) ** 2
    assert sympy.simplify(second.rewrite(sympy.exp)) == 0
    return "U <= 2B/sigma_min + log(2 sigma_max/psi), also on the box; exact supremum at one of the two scales"


@check("text:sign-flip", "thm:sequential/privacy", rejects=[1.0, 1.98, 2.02, 2.5])
def check_sign_flip(subject: float = 2.0) -> str:
    """One record can flip the sign of dU/dtheta and keep its modulus 1: the sensitivity of the Laplace loss is 2L. No
    two data sets are farther apart, whatever their records."""
    largest = 0.0
    for location, phi, low, width in itertools.product(
        (-3.0, 0.0, 0.7), (0.1, 1.0, 30.0), (-9.0, -1.0, 4.0), (0.01, 5.0)
    ):
        slope = derivatives(mpmath.mpf(location * phi), mpmath.mpf(phi), low, low + width)[0]
        largest = max(largest, abs(slope))
    assert 2 * largest <= subject, "two slopes are farther apart"
    share, t = sympy.symbols("share t", positive=True)  # ranks 0 and n: exp(-t)/2, of -log(1 - exp(-t)/2) for t >= 0
    tail = sympy.diff(-sympy.log(1 - sympy.exp(-t) / 2), t) + sympy.exp(-t) / 2 / (1 - sympy.exp(-t) / 2)
    assert sympy.simplify(tail) == 0 and sympy.solve(share / (1 - share) - 1, share) == [sympy.Rational(1, 2)]
    data = [-3, -2, 0, 2, 3, 5]
    moves = {"replace": [-4, -3, -2, 0, 2, 3], "add": [-4, -3, -2, 0, 2, 3, 5]}
    for name, other in moves.items():
        assert (Counter(data) - Counter(other)).total() == (name == "replace"), "one record at most is taken away"
        assert (Counter(other) - Counter(data)).total() == 1
        slopes = []
        for x in (data, other):
            rank = int(Fraction(1, 2) * len(x))
            slopes.append(derivatives(mpmath.mpf(0), mpmath.mpf(1), x[rank - 1], x[rank])[0])
        assert abs(slopes[0] - slopes[1]) >= subject * (1 - 1e-12), (name, slopes, "more than is needed")
        assert abs(slopes[0] + 1) < 1e-12 and abs(slopes[1] - 1) < 1e-12, "as the row says"
    return "one record moves dU/dtheta from -1 to 1, replaced or added: no sensitivity below 2L for the Laplace loss"


@check(
    "ours:laplace-supremum",
    "eq:laplace-bound",
    code=(eq_laplace_bound, laplace_interval),
    rejects=[
        *(scaled(eq_laplace_bound, factor) for factor in (0.99, 1.01)),
        lambda *known, box=False: eq_laplace_bound(*known),
        lambda b, low, high, psi, box=False: eq_laplace_bound(b, low, low, psi, box=box),
        lambda b, low, high, psi, box=False: eq_laplace_bound(b, high, high, psi, box=box),
    ],
)
def check_supremum(subject: Callable[..., float] = eq_laplace_bound) -> str:
    """No interval of width psi or more in [-B, B], location and scale has a larger loss than the two extreme scales at
    an end, with theta in the box or in [-B phi, B phi]: drawn points stay below, and one of these two attains it."""
    rng, cases = np.random.default_rng(163), 0
    settings = [(1.0, 0.1, 0.5, 0.01), (0.05, 0.1, 2.0, 1e-6), (3.0, 1.0, 40.0, 1.0), (2.0, 0.3, 0.3, 4.0)]
    for _ in range(40):
        bound, low = 10 ** rng.uniform(-3, 3), 10 ** rng.uniform(-1, 2)
        settings.append((bound, low, low * 10 ** rng.uniform(0, 3), 2 * bound * 10 ** rng.uniform(-4, 0)))
    for bound, low, high, psi in settings:
        for box in (False, True):
            most = subject(bound, low, high, psi, box=box)
            width = psi + (2 * bound - psi) * rng.beta(0.2, 1, 2000)
            left = -bound + (2 * bound - width) * rng.beta(0.3, 0.3, 2000)
            phi = 1 / (low + (high - low) * rng.beta(0.3, 0.3, 2000))
            theta = (bound / low if box else bound * phi) * (2 * rng.beta(0.3, 0.3, 2000) - 1)
            assert float(np.max(laplace_interval(theta, phi, left, left + width)[0])) <= most * (1 + 1e-9) + 1e-9, box
            worst = [(-bound / low if box else -bound / s, 1 / s) for s in (low, high)]
            found = max(float(laplace_interval(*place, bound - psi, bound)[0]) for place in worst)
            assert math.isclose(found, most, rel_tol=1e-9, abs_tol=1e-9), (found, most, "not attained")
            printed = max((2 * bound - psi / 2) / s - mpmath.log(mpmath.sinh(psi / 2 / s)) for s in (low, high))
            assert box or math.isclose(printed, most, rel_tol=1e-9), "the row's formula"
            cases += len(phi)
    return f"the largest Laplace loss is at an end and an extreme scale: {cases} intervals and priors below, attained"
