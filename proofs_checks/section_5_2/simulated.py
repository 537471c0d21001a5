"""thm:o2b and thm:pubpri against seeded runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pq import bounds
from pq.losses import laplace_interval
from proofs_checks.engine.registry import check
from proofs_checks.tools.runs import BETA, DATA, RUNS, least_in_box, passed, report_shares

Array = np.ndarray


@check("thm:o2b", code=bounds.thm_o2b, rejects=[0.08, 0.03])
def check_batch(share: float = 1.0) -> str:
    """thm:o2b, corrected, with the regret of each run: losses |theta - x| on [0, 1], 100 steps of gradient descent."""
    steps, shares = 100, {}
    for number, (name, draw) in enumerate(DATA.items()):
        rng = np.random.default_rng([131, number])
        pool = np.clip(np.concatenate([draw(rng) for _ in range(50)]), 0, 1)
        theta, total, points = np.full(RUNS, 1.0), np.zeros(RUNS), rng.choice(pool, (steps, RUNS))
        lost = np.zeros(RUNS)
        for x in points:
            total += theta
            lost += np.abs(theta - x)
            theta = np.clip(theta - np.sign(theta - x) / math.sqrt(steps), 0, 1)
        candidates = np.linspace(0, 1, 501)
        regret = lost - np.min(np.abs(points[:, :, None] - candidates).sum(0), axis=1)
        risk = np.abs(pool[:, None] - candidates).mean(0).min()
        excess = np.abs(pool[:, None] - total / steps).mean(0) - risk
        limits = np.array([bounds.thm_o2b(steps, regret=float(r), loss_range=1.0, beta=BETA) for r in regret])
        shares[name] = passed(name, excess / limits, 1.0, share)
    return report_shares("thm:o2b, corrected", shares, 0.112)


Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]
LAWS: dict[str, tuple[Draw, float, int]] = {  # draws in [-1, 1], bound of the density, n
    "uniform": (lambda rng, size: rng.uniform(-1, 1, size), 0.5, 10),
    "clusters": (lambda rng, size: rng.choice([-0.9, 0.8], size) + rng.uniform(-0.01, 0.01, size), 25.0, 10),
    "heavy tails": (lambda rng, size: np.arctan(rng.standard_cauchy(size) * 20) * 2 / math.pi, 10.0, 10),
    "two records": (lambda rng, size: rng.uniform(-1, 1, size), 0.5, 2),
    "comb": (lambda rng, size: rng.integers(-9, 10, size) / 10 + rng.uniform(-1e-3, 1e-3, size), 27.0, 10),
    "other people": (lambda rng, size: rng.uniform(-1, -0.5, size), 2.0, 10),  # the private ones are uniform
}


def _loss(theta: Array, phi: Array, ends: tuple[Array, Array]) -> tuple[Array, Array, Array]:
    """Log-sum-exp of the losses over the last axis and its gradients."""
    loss, slope, slope_phi = laplace_interval(theta, phi, *ends)
    top = loss.max(-1, keepdims=True)
    share = np.exp(loss - top)
    total = share.sum(-1, keepdims=True)
    return (top + np.log(total))[..., 0], slope * share / total, slope_phi * share / total


def _intervals(data: Array) -> tuple[Array, Array]:
    """Ends of the optimal intervals: ranks 3 and 7 of ten, 1 of two."""
    ordered = np.sort(data, axis=-1)
    ranks = np.array([3, 7] if data.shape[-1] == 10 else [1])
    return ordered[..., ranks - 1], ordered[..., ranks]


def _least(ends: tuple[Array, Array], box: list[tuple[float, float]]) -> float:
    """What the mean loss of no priors with (theta, phi) in a box is below."""
    m = len(box) // 2

    def mean(point: Array) -> tuple[float, Array]:
        value, slope, slope_phi = _loss(point[:m], point[m:], ends)
        return float(value.mean()), np.concatenate([slope.mean(0), slope_phi.mean(0)])

    return least_in_box(mean, box, np.array([0.0] * m + [sum(end) / 2 for end in box[m:]]), 1e-3)


def worst_fits(guarantee: Callable[..., float], share: float) -> dict[str, float]:
    """The largest part of a guarantee that gradient descent on T = 100 blocks needs, for each law of the records."""
    steps, low, high, shares = 100, 0.1, 0.5, {}
    for number, (name, (draw, density, n)) in enumerate(LAWS.items()):
        rng = np.random.default_rng([127, number])
        m = 2 if n == 10 else 1
        box: dict[str, Any] = {"quantiles": m, "data_bound": 1.0, "scale_min": low, "scale_max": high}
        sizes = bounds.pubpri_step_sizes(steps, **box)
        theta, phi = np.zeros((RUNS, m)), np.full((RUNS, m), (1 / low + 1 / high) / 2)
        sums = np.zeros((2, RUNS, m))
        for _ in range(steps):
            sums += (theta, phi)
            _, slope, slope_phi = _loss(theta, phi, _intervals(draw(rng, (RUNS, n))))
            theta = np.clip(theta - sizes.location * slope, -1 / low, 1 / low)
            phi = np.clip(phi - sizes.inverse_scale * slope_phi, 1 / high, 1 / low)
        private = LAWS["uniform"][0] if name == "other people" else draw
        ends = _intervals(private(rng, (400, n)))
        mine = np.array([_loss(t, f, ends)[0].mean() for t, f in zip(*(sums / steps), strict=True)])
        best = _least(ends, [(-1 / low, 1 / low)] * m + [(1 / high, 1 / low)] * m)
        bound = guarantee(
            steps * n, n, density_bound=density, total_variation=float(name == "other people"), beta=BETA, **box
        )
        shares[name] = passed(name, mine - best, bound, share)
    return shares


@check("thm:pubpri", "thm:pubpri/rate", code=bounds.thm_pubpri, rejects=[0.03, 0.01])
def check_public_fit_runs(share: float = 1.0) -> str:
    """thm:pubpri, corrected: gradient descent with the corrected step sizes on T = 100 blocks."""
    return report_shares("thm:pubpri, corrected", worst_fits(bounds.thm_pubpri, share), 0.06)
