"""Every high-probability guarantee for learning against seeded runs, on five kinds of data or more.

RUNS runs without a failure show, with confidence 99.9%, a failure rate below BETA.  Corrected bounds; each check takes
the share of the bound that it asks for, 1 by default, and must notice a small share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pq.core.bounds import learning as bounds
from pq.losses import laplace_interval
from proofs_checks.learning import _prefix_nodes

BETA, RUNS = 0.2, 32
assert 1 - 0.001 ** (1 / RUNS) < BETA
Array = np.ndarray


def report(label: str, shares: Mapping[str, float]) -> str:
    """The line of one guarantee: the largest part of the bound that a run needed."""
    return (
        f"{label}: no failure in {RUNS} runs on each of {len(shares)} kinds of data, so below beta = {BETA} with "
        f"confidence 99.9%; at most {max(shares.values()):.2f} of the bound"
    )


def passed(kind: str, regrets: Array, bound: float, share: float) -> float:
    """The largest part of the bound; fails if a run exceeds the share of it that is asked for."""
    failed = int(np.sum(regrets > share * bound))
    assert failed == 0, f"{kind}: {failed} of {len(regrets)} runs beyond the bound"
    return float(np.max(regrets)) / bound


class Sums:
    """Noisy prefix sums of a binary tree, for all runs at once."""

    def __init__(self, shape: tuple[int, ...], std: float | Array, rng: np.random.Generator) -> None:
        self.total, self.std, self.rng, self.count = np.zeros(shape), std, rng, 0
        self.nodes: dict[tuple[int, int], Array] = {}

    def seen(self) -> Array:
        """The sum so far with the noise of its nodes."""
        result = self.total.copy()
        for block in _prefix_nodes(self.count):
            if block not in self.nodes:
                self.nodes[block] = self.rng.normal(0.0, 1.0, self.total.shape) * self.std
            result += self.nodes[block]
        return result

    def add(self, value: Array) -> None:
        self.total += value
        self.count += 1


# ---- thm:dpftrl ------------------------------------------------------------------------------------------------------

Gradients = Callable[[int, Array, np.random.Generator], Array]
STREAMS: dict[str, Gradients] = {
    "one way": lambda t, point, rng: np.where(np.arange(point.shape[1]) == 0, 1.0, -1.0) + 0 * point,
    "alternating": lambda t, point, rng: (-1.0) ** t + 0 * point,
    "random signs": lambda t, point, rng: rng.choice([-1.0, 1.0], point.shape),
    "long blocks": lambda t, point, rng: np.where(t // 16 % 2 == np.arange(point.shape[1]) % 2, 1.0, -1.0) + 0 * point,
    "against the learner": lambda t, point, rng: np.where(point >= point.max(1, keepdims=True), 1.0, -1.0),
}


def check_dpftrl(share: float = 1.0) -> str:
    """thm:dpftrl on linear losses: the quadratic regulariser on [-1, 1] and the entropic one on four corners."""
    steps, sigma, shares = 64, 1.0, {}
    for cells in (1, 4):
        for name, stream in STREAMS.items():
            rng = np.random.default_rng([109, cells])
            known: dict[str, Any] = {"regularizer_range": 0.5 if cells == 1 else math.log(cells), "lipschitz": 1.0}
            known |= {"sensitivity": 2.0 * math.sqrt(cells), "noise": sigma, "beta": BETA}
            known |= {"gaussian_width": 1.0 if cells == 1 else math.sqrt(2 * math.log(2 * cells))}
            bound = bounds.thm_dpftrl(steps, **known)
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
    return report("thm:dpftrl", shares)


# ---- thm:quantile-regret ---------------------------------------------------------------------------------------------

DATA: dict[str, Callable[[np.random.Generator], Array]] = {
    "heavy ties": lambda rng: rng.choice([0.2, 0.5, 0.8], 20),
    "clusters": lambda rng: rng.choice([0.1, 0.9], 20) + rng.uniform(-1e-3, 1e-3, 20),
    "heavy tails": lambda rng: np.arctan(rng.standard_cauchy(20) * 5) / math.pi + 0.5,
    "three records": lambda rng: rng.uniform(0, 1, 3),
    "halving gaps": lambda rng: 2.0 ** -np.arange(1, 21) + rng.uniform(0, 0.4),
}


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


def check_quantile_regret(share: float = 1.0) -> str:
    """thm:quantile-regret, corrected: entropic DP-FTRL for two quantiles, four cells, gamma = 1/2."""
    steps, cells, gamma, epsilon, sigma, shares = 40, 4, 0.5, 0.5, 2.0, {}
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
            sums.add(-score / (inner**2 * np.sum(1 / inner, axis=1, keepdims=True))[:, :, None])
        fixed = gamma / cells + (1 - gamma) * rng.dirichlet(np.full(cells, 0.3), (400, 2))
        best = np.log(np.sum(1 / np.einsum("tij,cij->cti", scores, fixed), axis=2)).sum(1).min()
        shares[name] = passed(name, losses - best, found.regret, share)
    return report("thm:quantile-regret, corrected", shares)


# ---- thm:pubpri and thm:o2b ------------------------------------------------------------------------------------------

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


def check_public_fit(share: float = 1.0) -> str:
    """thm:pubpri, corrected: gradient descent with the corrected step sizes on T = 100 blocks."""
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
        grid = [(c, s) for c in np.linspace(-1, 1, 9) for s in (low, 0.2, high)]
        pairs = (
            [((c, s), (d, s)) for c, s in grid for d in np.linspace(-1, 1, 9)] if m == 2 else [(pair,) for pair in grid]
        )
        best = min(
            float(_loss(np.array([c / s for c, s in pair]), np.array([1 / s for _, s in pair]), ends)[0].mean())
            for pair in pairs
        )
        bound = bounds.thm_pubpri(
            steps * n, n, density_bound=density, total_variation=float(name == "other people"), beta=BETA, **box
        )
        shares[name] = passed(name, mine - best, bound, share)
    return report("thm:pubpri, corrected", shares)


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
    return report("thm:o2b, corrected", shares)


# ---- thm:sequential --------------------------------------------------------------------------------------------------

CENTRES: dict[
    str, Callable[[np.random.Generator, Array], Array]
] = {  # from features (T, 2) to locations in [-2.4, 2.4]
    "linear": lambda rng, f: f @ np.array([0.7, -0.9]) + rng.normal(0, 0.05, len(f)),
    "constant": lambda rng, f: np.full(len(f), 1.5),
    "alternating": lambda rng, f: np.where(np.arange(len(f)) % 2, 2.3, -2.3),
    "heavy tails": lambda rng, f: np.clip(rng.standard_cauchy(len(f)), -2.4, 2.4),
    "a break": lambda rng, f: np.where(np.arange(len(f)) < len(f) // 2, 2.0, -2.0),
}


def check_sequential(share: float = 1.0) -> str:
    """thm:sequential, corrected: two runs of DP-FTRL at half of the budget each, two features, one quantile."""
    steps, shares = 60, {}
    common: dict[str, Any] = {"quantiles": 1, "features": 2, "feature_bound": 1.0, "weight_bound": 1.0}
    common |= {"data_bound": 2.5, "scale_min": 0.5, "scale_max": 2.0, "epsilon": 20.0, "delta": 1e-2, "beta": BETA}
    sizes, bound = bounds.sequential_step_sizes(steps, **common), bounds.thm_sequential(steps, **common)
    noise = bounds.dpftrl_noise(steps, 10.0, 5e-3)
    for number, (name, centre_of) in enumerate(CENTRES.items()):
        rng = np.random.default_rng([137, number])
        features = rng.choice([-1.0, 1.0], (steps, 2))
        centre = centre_of(rng, features)
        stds = noise * np.array([2 * math.sqrt(2), 2 * math.sqrt(2), 2 * (2.5 + 2.0)])
        sums, losses = Sums((RUNS, 3), stds, rng), np.zeros(RUNS)
        for t in range(steps):
            seen = sums.seen()
            maps = np.clip(-sizes.location * seen[:, :2], -2, 2)
            phi = np.clip(1.25 - sizes.inverse_scale * seen[:, 2], 0.5, 2.0)
            loss, slope, slope_phi = laplace_interval(maps @ features[t], phi, centre[t] - 0.05, centre[t] + 0.05)
            losses += loss
            sums.add(np.column_stack([slope[:, None] * features[t], slope_phi]))
        best = math.inf
        for scale in (0.5, 1.0, 2.0):
            for first in np.linspace(-1, 1, 9):
                for second in np.linspace(-1, 1, 9):
                    theta = features @ np.array([first, second]) / scale
                    fixed = laplace_interval(theta, 1 / scale, centre - 0.05, centre + 0.05)[0]
                    best = min(best, float(np.sum(fixed)))
        shares[name] = passed(name, losses - best, bound, share)
    return report("thm:sequential, corrected", shares)
