"""Regrets of private learning against seeded runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pq import bounds
from proofs_checks.engine.registry import check
from proofs_checks.tools.runs import BETA, DATA, RUNS, Sums, passed, report_shares

Array = np.ndarray

Gradients = Callable[[int, Array, np.random.Generator], Array]
STREAMS: dict[str, Gradients] = {
    "one way": lambda t, point, rng: np.where(np.arange(point.shape[1]) == 0, 1.0, -1.0) + 0 * point,
    "alternating": lambda t, point, rng: (-1.0) ** t + 0 * point,
    "random signs": lambda t, point, rng: rng.choice([-1.0, 1.0], point.shape),
    "long blocks": lambda t, point, rng: np.where(t // 16 % 2 == np.arange(point.shape[1]) % 2, 1.0, -1.0) + 0 * point,
    "against the learner": lambda t, point, rng: np.where(point >= point.max(1, keepdims=True), 1.0, -1.0),
}


def worst_streams(guarantee: Callable[..., float], share: float) -> dict[str, float]:
    """The largest part of a guarantee of DP-FTRL that each stream needs, at the guarantee's own step size: the
    quadratic regulariser on [-1, 1] and the entropic one on four corners."""
    steps, sigma, shares = 64, 1.0, {}
    for cells in (1, 4):
        for name, stream in STREAMS.items():
            rng = np.random.default_rng([109, cells])
            known: dict[str, Any] = {"regularizer_range": 0.5 if cells == 1 else math.log(cells), "lipschitz": 1.0}
            known |= {"sensitivity": 2.0 * math.sqrt(cells), "noise": sigma, "beta": BETA}
            known |= {"gaussian_width": 1.0 if cells == 1 else math.sqrt(2 * math.log(2 * cells))}
            bound = guarantee(steps, **known)
            eta = 2 * known["regularizer_range"] / bound
            sums, losses = Sums((RUNS, cells), sigma * known["sensitivity"], rng), np.zeros(RUNS)
            for t in range(steps):
                exponent = -eta * sums.seen()
                point = np.clip(exponent, -1, 1)
                if cells > 1:
                    point = np.exp(exponent - exponent.max(1, keepdims=True))
                    point /= point.sum(1, keepdims=True)
                gradient = stream(t, point, rng)
                losses += np.sum(point * gradient, axis=1)
                sums.add(gradient)
            best = -np.abs(sums.total[:, 0]) if cells == 1 else sums.total.min(1)
            shares[f"{name}, {cells}"] = passed(name, losses - best, bound, share)
    return shares


@check("thm:dpftrl", "thm:dpftrl/regret", code=bounds.thm_dpftrl, rejects=[0.56, 0.1])
def check_dpftrl(share: float = 1.0) -> str:
    """thm:dpftrl on linear losses, five streams for two regularisers."""
    return report_shares("thm:dpftrl", worst_streams(bounds.thm_dpftrl, share), 0.562)


def scores_of(data: Array, cells: int, epsilon: float) -> Array:
    """Cell averages of exp(-eps gap/2) for the quantiles 1/3 and 2/3."""
    middles = (np.arange(cells * 40) + 0.5) / (cells * 40)
    below = np.searchsorted(np.sort(data), middles)
    gaps = np.abs(below - np.array([[len(data) // 3], [2 * len(data) // 3]]))
    return np.exp(-epsilon * gaps / 2).reshape(2, cells, 40).mean(2)


def clipped(exponent: Array, floor: float) -> Array:
    """Rows in proportion to exp(exponent), scaled and clipped at the floor so that they sum to one."""
    raw = np.exp(np.clip(exponent - exponent.max(-1, keepdims=True), -600, 0))
    low, high = np.zeros((*raw.shape[:-1], 1)), 1 / raw.min(-1, keepdims=True)
    for _ in range(60):
        middle = (low + high) / 2
        over = np.maximum(raw * middle, floor).sum(-1, keepdims=True) > 1
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return np.maximum(raw * low, floor)


@check("thm:quantile-regret", code=bounds.thm_quantile_regret, rejects=[0.037, 0.01])
def check_quantile_regret(share: float = 1.0) -> str:
    """thm:quantile-regret, corrected: entropic DP-FTRL for two quantiles, four cells, gamma = 1/2. The bound is for
    gradients as long as d/gamma, and these have at most a quarter of that length."""
    steps, cells, gamma, epsilon, sigma, shares, longest = 40, 4, 0.5, 0.5, 2.0, {}, 0.0
    found = bounds.thm_quantile_regret(
        steps, cells, gamma, quantiles=2, epsilon=epsilon, noise=sigma, beta=BETA, mixture=gamma
    )
    std = sigma * bounds.lem_refined_sensitivity(epsilon, cells, gamma, quantiles=2)
    for number, (name, draw) in enumerate(DATA.items()):
        rng = np.random.default_rng([113, number])
        scores = np.array([scores_of(draw(rng), cells, epsilon) for _ in range(steps)])
        sums, losses = Sums((RUNS, 2, cells), std, rng), np.zeros(RUNS)
        for score in scores:
            weights = clipped(-found.step_size / 2 * sums.seen(), gamma / cells)
            inner = np.sum(score * weights, axis=2)
            losses += np.log(np.sum(1 / inner, axis=1))
            slopes = score / (inner**2 * np.sum(1 / inner, axis=1, keepdims=True))[:, :, None]
            longest = max(longest, float(np.sqrt(np.sum(slopes.max(axis=2) ** 2, axis=1)).max()) * gamma / cells)
            sums.add(-slopes)
        fixed = gamma / cells + (1 - gamma) * rng.dirichlet(np.full(cells, 0.3), (400, 2))
        best = np.log(np.sum(1 / np.einsum("tij,cij->cti", scores, fixed), axis=2)).sum(1).min()
        shares[name] = passed(name, losses - best, found.regret, share)
    assert longest <= 0.25, "as the row says"
    return report_shares("thm:quantile-regret, corrected", shares, 0.04)
