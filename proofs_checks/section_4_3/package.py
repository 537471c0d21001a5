"""The learners of the package against slow ones: private leaders, exponentiated gradient, sums, noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from pq.bounds import dpftrl_noise, gaussian_delta
from pq.learners import DPFTRL, EntropicMirror, SquareRootAggregator, TreeAggregator
from proofs_checks.engine.registry import check
from proofs_checks.section_4_3.regret import floored
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.gaussian import corrected_multiplier, exact_delta


def _make(**changed: Any) -> Callable[..., DPFTRL]:
    """A learner with other arguments."""
    return lambda initial, **named: DPFTRL(initial, **{**named, **changed})


@check(
    "alg:dpftrl",
    "thm:quantile-regret/range",
    code=DPFTRL,
    rejects=[_make(step=0.31), _make(robustness=0.0, lower=-np.inf), _make(noise_std=1e-3)],
)
def check_private_leader(subject: Callable[..., Any] = DPFTRL) -> str:
    """Algorithm alg:dpftrl without noise: each point minimises regulariser + step <sum, .>, on the box and on rows of
    weights with a floor."""
    rng = np.random.default_rng(11)
    common: dict[str, Any] = {"steps": 12, "step": 0.3, "noise_std": 0.0}
    box = subject(np.zeros(3), rng=np.random.default_rng(0), lower=-1.0, upper=1.0, **common)
    rows = subject(
        np.full((2, 4), 0.25), rng=np.random.default_rng(0), regularizer="entropic", robustness=0.2, **common
    )
    total, sums = np.zeros(3), np.zeros((2, 4))
    for _ in range(12):
        slope, gradient = rng.normal(size=3), rng.normal(size=(2, 4))
        total, sums = total + slope, sums + gradient
        box.update(slope)
        rows.update(gradient)
        assert np.allclose(box.point, np.clip(-0.3 * total, -1, 1), atol=1e-12)
        wanted = np.array([floored(row, 0.3, 1, 0.05) for row in sums])
        assert np.allclose(rows.point, wanted, atol=1e-9)
    return "DPFTRL: the minimiser of regulariser + step <sum, .>, Euclidean on a box and entropic with a floor"


@check(
    "text:exponentiated-gradient",
    code=EntropicMirror,
    rejects=[
        lambda initial, step, robustness: EntropicMirror(initial, step=2 * step, robustness=robustness),
        lambda initial, step, robustness: EntropicMirror(initial, step=step),
    ],
)
def check_mirror_in_package(subject: Callable[..., Any] = EntropicMirror) -> str:
    """One step of `EntropicMirror` from the uniform weights is the clipped exponentiated gradient."""
    rng = np.random.default_rng(12)
    for _ in range(60):
        d, eta = int(rng.integers(2, 7)), float(10 ** rng.uniform(-1, 1))
        gradient = rng.normal(size=d)
        learner = subject(np.full(d, 1 / d), step=eta, robustness=0.3)
        learner.update(gradient)
        assert np.allclose(learner.point, floored(gradient, eta, 1, 0.3 / d), atol=1e-9)
    return "EntropicMirror: 60 steps, each the exponentiated gradient with weights at the floor or above"


@check(
    "ours:square-root-sums",
    code=SquareRootAggregator,
    rejects=[
        lambda steps, std, shape, rng: SquareRootAggregator(steps, 1.01 * std, shape, rng),
        lambda steps, std, shape, rng: SquareRootAggregator(steps, 0.99 * std, shape, rng),
        lambda steps, std, shape, rng: TreeAggregator(steps, std, shape, rng),
    ],
)
def check_square_root_in_package(subject: Callable[..., Any] = SquareRootAggregator) -> str:
    """The t-th sum of `SquareRootAggregator` is the exact sum and the noise sum_k c_k z_(t-k) of the normals that its
    generator draws, to the rounding of sums: 300 steps, so that blocks of all sizes occur."""
    steps, width, std = 300, 4, 3.0
    values = np.random.default_rng(5).integers(-9, 10, (steps, width)).astype(float)
    sums, replayed = subject(steps, std, width, np.random.default_rng(13)), np.random.default_rng(13)
    white = np.array([replayed.standard_normal((width,)) for _ in range(steps)])
    weights = np.array([float(Fraction(math.comb(2 * k, k), 4**k)) for k in range(steps)])
    for t in range(steps):
        wanted = values[: t + 1].sum(axis=0) + std * weights[t::-1] @ white[: t + 1]
        assert np.allclose(sums.add(values[t]), wanted, rtol=0, atol=std * 1e-6), t
    return "SquareRootAggregator: each of 300 sums has the noise of the square root's row, draw by draw"


@check(
    "thm:dpftrl/privacy",
    "ours:dpftrl-noise",
    "thm:quantile-regret/privacy",
    "thm:sequential/privacy",
    "ours:joint-runs",
    code=(dpftrl_noise, gaussian_delta),
    rejects=[
        (lambda *a, **k: dpftrl_noise(*a, **k, version="paper"), gaussian_delta),
        (lambda *a, release_total=True: dpftrl_noise(*a), gaussian_delta),
        *((scaled(dpftrl_noise, factor), gaussian_delta) for factor in (0.7, 0.99, 1.01)),
        *((lambda t, *a, by=by, **k: dpftrl_noise(max(t + by, 1), *a, **k), gaussian_delta) for by in (-1, 1)),
        (dpftrl_noise, lambda epsilon, multiplier: 1.001 * gaussian_delta(epsilon, multiplier)),
        (dpftrl_noise, lambda epsilon, multiplier: gaussian_delta(epsilon, 1.001 * multiplier)),
    ],
)
def check_noise_in_package(
    subject: tuple[Callable[..., float], Callable[..., float]] = (dpftrl_noise, gaussian_delta),
) -> str:
    """`dpftrl_noise` is private at every epsilon on the exact Gaussian curve, which `gaussian_delta` computes."""
    noise, curve = subject
    with mpmath.workdps(40):
        places = ((1, 3.0, 0.3), (2, 0.1, 1e-6), (3, 1.0, 1e-3), (64, 0.01, 0.9), (127, 10.0, 1e-6), (1000, 50.0, 1e-9))
        for steps, epsilon, delta in places:
            multiplier = noise(steps, epsilon, delta)
            nodes = steps.bit_length()  # a gradient is in so many nodes, each with its own noise
            wanted = float(corrected_multiplier(epsilon, delta) * mpmath.sqrt(nodes))
            assert math.isclose(multiplier, wanted, rel_tol=1e-9), "sigma of ours:dpftrl-noise"
            unseen = math.sqrt((steps - 1).bit_length() / nodes) * wanted  # the sum of all is looked at by nobody
            assert math.isclose(noise(steps, epsilon, delta, release_total=False), unseen, rel_tol=1e-9), steps
            assert exact_delta(epsilon, multiplier / math.sqrt(nodes)) <= delta, (steps, epsilon, delta)
            printed = dpftrl_noise(steps, epsilon, delta, version="paper")
            assert math.isclose(printed, math.sqrt(2 * math.ceil(math.log2(steps)) * math.log(1 / delta)) / epsilon)
        for epsilon, multiplier in ((0.5, 1.0), (1.0, 0.7), (3.0, 1.5), (0.1, 8.0)):
            exact = float(exact_delta(epsilon, multiplier))
            assert math.isclose(curve(epsilon, multiplier), exact, rel_tol=1e-9), (epsilon, multiplier)
    return "dpftrl_noise keeps delta on the exact curve at every epsilon tried, and gaussian_delta is that curve"
