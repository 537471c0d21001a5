"""Other people's mechanisms for `benchmarks.least_error`, each with the whole budget for all quantiles together.

JointExp (2021) and the tree of Kaplan and others (2022) are run as laws: the joint score with targets n p_j at the rate
that its sensitivity allows, and a tree with the paper's calibration. "joint, all" is `mechanism="joint"` without a
curve: each quantile is drawn, however small the budget. Google's tree of counts is `python-dp`'s, one tree
that is read for all quantiles; it is left out where that package is not installed (`make bench-error` installs it).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import numpy as np

import pq
from pq.private.mechanisms.joint import sampler
from pq.private.mechanisms.joint.plan import JointPlan
from pq.private.randomness import Source

Array = np.ndarray[Any, np.dtype[np.float64]]
Peer = Callable[[Array, int], Array]  # of sorted records and a seed
MOST_JOINT = 29  # quantiles; more take long
HEIGHT, BRANCHING = 4, 16  # of Google's tree: its own defaults


def joint_exp(quantiles: Array, epsilon: float, facts: dict[str, Any]) -> Peer | None:
    """JointExp's law; its score moves by up to 2 (1 - 1 / (m + 1)) with one record."""
    m = len(quantiles)
    budget = Fraction(str(epsilon)) * Fraction(m + 1, m)  # "replace" halves the rate
    return _joint(m, facts | {"epsilon": budget, "adjacency": "replace", "total": "records"})


def joint_all(quantiles: Array, epsilon: float, facts: dict[str, Any]) -> Peer | None:
    return _joint(len(quantiles), facts | {"epsilon": Fraction(str(epsilon))})


def _joint(m: int, options: dict[str, Any]) -> Peer | None:
    if m > MOST_JOINT:
        return None
    law = JointPlan.of([Fraction(i, m + 1) for i in range(1, m + 1)], size_guess=1000, **options)
    draw = sampler(10_000, m)
    return lambda x, seed: draw(law, x, None, Source(seed).uniforms)[0]


def kaplan(quantiles: Array, epsilon: float, facts: dict[str, Any]) -> Peer:
    """A tree that is calibrated as published."""
    options = facts | {"epsilon": epsilon, "mechanism": "tree", "calibration": "paper"}
    return lambda x, seed: pq.release(x, quantiles, rng=seed, **options).values


def google(quantiles: Array, epsilon: float, facts: dict[str, Any]) -> Peer | None:
    """Google's tree between public bounds, values at the nearest multiples of a grid; its noise takes no seed."""
    low, high = facts["priors"].support
    if find_spec("pydp") is None or not np.isfinite([low, high]).all():
        return None
    from pydp.algorithms.quantile_tree import QuantileTree

    step = facts.get("grid")

    def release(x: Array, seed: int) -> Array:
        tree = QuantileTree(low, high, HEIGHT, BRANCHING)
        for value in x.tolist():
            tree.add_entry(value)
        values = np.array(tree.compute_quantiles(epsilon, 0.0, 1, 1, quantiles.tolist(), "laplace"))
        return np.asarray(values if step is None else np.rint(values / step) * step)

    return release


PEERS: dict[str, Callable[[Array, float, dict[str, Any]], Peer | None]] = {
    "joint, all": joint_all,
    "JointExp": joint_exp,
    "Kaplan": kaplan,
    "Google": google,
}
