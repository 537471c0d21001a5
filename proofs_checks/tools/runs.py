"""Seeded runs of private learners: noisy sums, streams of data, and the report of the largest share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from scipy import optimize

from pq import bounds

Array = np.ndarray


def prefix_nodes(steps: int) -> list[tuple[int, int]]:
    """Dyadic blocks (first, last), counted from 1, whose disjoint union is the first ``steps`` leaves."""
    blocks, start = [], 0
    for bit in reversed(range(steps.bit_length())):
        if steps >> bit & 1:
            blocks.append((start + 1, start + (1 << bit)))
            start += 1 << bit
    return blocks


BETA, RUNS = 0.2, 32


def report_shares(label: str, shares: Mapping[str, float], most: float) -> str:
    """The line of one guarantee: the largest part of the bound that a run needed, which the row says to be `most`."""
    assert max(shares.values()) <= most, f"{max(shares.values()):.3f} of the bound, said to be {most}"
    return (
        f"{label}: no failure in {RUNS} runs on each of {len(shares)} kinds of data, so below beta = {BETA} with "
        f"confidence 99.9%; at most {most:g} of the bound"
    )


def passed(kind: str, regrets: Array, bound: float, share: float) -> float:
    """The largest part of the bound; fails if a run exceeds the share of it that is asked for."""
    failed = int(np.sum(regrets > share * bound))
    assert failed == 0, f"{kind}: {failed} of {len(regrets)} runs beyond the bound"
    return float(np.max(regrets)) / bound


def least_in_box(
    loss: Callable[[Array], tuple[float, Array]], box: list[tuple[float, float]], start: Array, room: float
) -> float:
    """What a convex function, given with its gradient, is nowhere below in a box: the least value there of its tangent
    where a search ends. Fails unless that is within `room` of the function's value there."""
    point = optimize.minimize(loss, start, jac=True, bounds=box, options={"ftol": 1e-14, "gtol": 1e-8}).x
    value, gradient = loss(point)
    fall = float(np.minimum(gradient * (np.array(box).T - point), 0.0).min(axis=0).sum())
    assert fall > -room, "no point of the box has less by more, as the function lies above its tangent"
    return value + fall


class Sums:
    """Noisy prefix sums of a binary tree, for all runs at once."""

    def __init__(self, shape: tuple[int, ...], std: float | Array, rng: np.random.Generator) -> None:
        self.total, self.std, self.rng, self.count = np.zeros(shape), std, rng, 0
        self.nodes: dict[tuple[int, int], Array] = {}

    def seen(self) -> Array:
        """The sum so far with the noise of its nodes."""
        result = self.total.copy()
        for block in prefix_nodes(self.count):
            if block not in self.nodes:
                self.nodes[block] = self.rng.normal(0.0, 1.0, self.total.shape) * self.std
            result += self.nodes[block]
        return result

    def add(self, value: Array) -> None:
        self.total += value
        self.count += 1


DATA: dict[str, Callable[[np.random.Generator], Array]] = {
    "heavy ties": lambda rng: rng.choice([0.2, 0.5, 0.8], 20),
    "clusters": lambda rng: rng.choice([0.1, 0.9], 20) + rng.uniform(-1e-3, 1e-3, 20),
    "heavy tails": lambda rng: np.arctan(rng.standard_cauchy(20) * 5) / math.pi + 0.5,
    "three records": lambda rng: rng.uniform(0, 1, 3),
    "halving gaps": lambda rng: 2.0 ** -np.arange(1, 21) + rng.uniform(0, 0.4),
}
CENTRES: dict[
    str, Callable[[np.random.Generator, Array], Array]
] = {  # from features (T, 2) to locations in [-2.4, 2.4]
    "linear": lambda rng, f: f @ np.array([0.7, -0.9]) + rng.normal(0, 0.05, len(f)),
    "constant": lambda rng, f: np.full(len(f), 1.5),
    "alternating": lambda rng, f: np.where(np.arange(len(f)) % 2, 2.3, -2.3),
    "heavy tails": lambda rng, f: np.clip(rng.standard_cauchy(len(f)), -2.4, 2.4),
    "a break": lambda rng, f: np.where(np.arange(len(f)) < len(f) // 2, 2.0, -2.0),
}


def run_arguments(
    steps: int, m: int, d: int, box: dict[str, float], budget: tuple[float, float], beta: float
) -> list[dict[str, float]]:
    """What thm:dpftrl is told of the two runs that learn Laplace priors from past days, for weights and for scales."""
    noise = bounds.dpftrl_noise(steps, budget[0] / 2, budget[1] / 2)
    reach, steep = box["weight_bound"] / box["scale_min"], box["data_bound"] + box["scale_max"]
    half = (1 / box["scale_min"] - 1 / box["scale_max"]) / 2
    slope = box["feature_bound"] * math.sqrt(d)
    runs = ((m * d * reach**2 / 2, slope, math.sqrt(m * d)), (m * half**2 / 2, steep, math.sqrt(m)))
    return [
        {
            "regularizer_range": spread,
            "lipschitz": lipschitz,
            "sensitivity": 2 * lipschitz,  # a record can turn a gradient round
            "gaussian_width": width,
            "noise": noise,
            "beta": beta / 2,
        }
        for spread, lipschitz, width in runs
    ]
