"""Private prefix sums and DP-FTRL: Section 4.3 and Appendix B.2 (`thm:dpftrl`).

`version="paper"` is the formula as printed, `version="corrected"` the best true one of its form; `proofs_checks` say
where and why the two differ. All numbers are public facts: nothing here looks at data.
"""

from __future__ import annotations

import math
from typing import Literal

from pq.core.bounds.checks import Version, check_positive, check_probability
from pq.core.budget.gaussian import gaussian_delta, noise_multiplier
from pq.core.budget.nodes import tree_nodes

__all__ = ["dpftrl_noise", "gaussian_delta", "thm_dpftrl", "tree_nodes"]


def dpftrl_noise(
    steps: int,
    epsilon: float,
    delta: float,
    *,
    version: Literal["corrected", "paper", "sharp"] = "corrected",
    release_total: bool = True,
) -> float:
    """Noise of a tree node for (epsilon, delta)-privacy, in units of the gradient's l2-sensitivity (`thm:dpftrl`).

    The paper prints `sqrt(2 k log(1/delta)) / epsilon` with `k = ceil(log2 T)`. "corrected" is `sqrt(k/2)
    (sqrt(log(1/delta) + epsilon) + sqrt(log(1/delta))) / epsilon`, private at every epsilon; "sharp" is the least that
    is private, found on the exact curve of the Gaussian mechanism.

    steps: number T of gradients. epsilon: positive. delta: in (0, 1). release_total: whether the sum of all T gradients
    is looked at, see `tree_nodes`. Raises `ValueError` naming the argument.

    >>> [round(dpftrl_noise(4, 10.0, 1e-6, version=v), 3) for v in ("paper", "corrected", "sharp")]
    [0.743, 1.053, 0.937]
    """
    if version not in ("corrected", "paper", "sharp"):
        raise ValueError("version must be 'corrected', 'paper' or 'sharp'")
    check_positive("corrected", epsilon=epsilon)
    check_probability(delta=delta)
    log_odds = -math.log(delta)
    if version == "paper":
        return math.sqrt(2 * tree_nodes(steps, release_total=False) * log_odds) / epsilon
    nodes = tree_nodes(steps, release_total=release_total)
    if version == "sharp":
        return math.sqrt(nodes) * noise_multiplier(epsilon, delta) if nodes else 0.0
    return math.sqrt(nodes / 2) * (math.sqrt(log_odds + epsilon) + math.sqrt(log_odds)) / epsilon


def thm_dpftrl(
    steps: int,
    *,
    regularizer_range: float,
    lipschitz: float,
    sensitivity: float,
    gaussian_width: float,
    noise: float,
    beta: float,
    dual_lipschitz: float = 1.0,
    step_size: float | None = None,
    version: Version = "corrected",
) -> float:
    """Regret bound of DP-FTRL, for the best step size unless one is given (`thm:dpftrl`).

    The regulariser is 1-strongly convex in the norm in which the losses are Lipschitz. A prefix sum of up to T - 1
    gradients adds at most floor(log2 T) nodes ("corrected"); the paper has ceil(log2 T).

    steps: T. regularizer_range: phi(theta*) - phi(theta_1). lipschitz: L. sensitivity: Delta_2 of the gradient, in l2.
    gaussian_width: G. noise: sigma, see `dpftrl_noise`. beta: failure probability. dual_lipschitz: C. step_size: eta,
    None for the best. Raises `ValueError` naming the argument.

    >>> round(thm_dpftrl(100, regularizer_range=1.0, lipschitz=1.0, sensitivity=2.0, gaussian_width=1.0, noise=0.0,
    ...                  beta=0.05), 6)
    20.0
    """
    check_positive(version, steps=steps, regularizer_range=regularizer_range, lipschitz=lipschitz)
    check_probability(beta=beta)
    nodes = steps.bit_length() - 1 if version == "corrected" else (steps - 1).bit_length()
    deviation = gaussian_width + dual_lipschitz * math.sqrt(2 * math.log(steps / beta))
    slope = steps * lipschitz * (lipschitz + deviation * noise * sensitivity * math.sqrt(nodes))
    eta = math.sqrt(regularizer_range / slope) if step_size is None else step_size
    return regularizer_range / eta + eta * slope
