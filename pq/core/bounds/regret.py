"""Learning piecewise-constant priors privately: Section 4.3 and Appendices B.2 and E.2 (`thm:quantile-regret`).

Conventions as in `pq.core.bounds.dpftrl`.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from pq.core.bounds.checks import Version, check_positive, check_probability
from pq.core.bounds.dpftrl import tree_nodes
from pq.core.bounds.sharper_learning import lipschitz_discretisation

__all__ = [
    "QuantileRegret",
    "Settings",
    "cor_quantile_regret",
    "lem_lipschitz",
    "lem_refined_sensitivity",
    "thm_quantile_regret",
]

Case = Literal["robust-discrete", "robust-lipschitz", "discrete", "lipschitz"]


class QuantileRegret(NamedTuple):
    """Regret bound of `thm:quantile-regret` and the step size and noise multiplier that it is stated for."""

    regret: float
    step_size: float
    noise: float


class Settings(NamedTuple):
    """Cells d, robustness gamma and the leading term of the regret, for `cor:quantile-regret`."""

    cells: int
    robustness: float
    rate: float


def lem_lipschitz(cells: int, robustness: float) -> float:
    """The largest l1-norm of the gradient of the loss of piecewise-constant priors, d / gamma (`lem:lipschitz`).

    It is true and attained, although the printed proof applies Sedrakyan's inequality backwards.

    cells: d, at least 1. robustness: gamma in (0, 1]. Raises `ValueError` naming the argument.

    >>> lem_lipschitz(10, 0.5)
    20.0
    """
    check_positive("corrected", cells=cells, robustness=robustness)
    if robustness > 1:
        raise ValueError("robustness must be in (0, 1]")
    return cells / robustness


def lem_refined_sensitivity(
    epsilon: float, cells: int, robustness: float, *, quantiles: int = 1, version: Version = "corrected"
) -> float:
    """How far, in l2, a record moves the gradient of the piecewise-constant loss (`lem:refined-sensitivity`).

    The paper prints `(d/gamma) min(2, exp(e) - 1)` with e doubled for more than one quantile. Ours is `sqrt(2)
    (d/gamma) tanh(epsilon/4)` for any number of quantiles, without the doubling; for at least three cells, or more
    than one quantile of the same budget, there are neighbours that come as close to it as wanted. It holds when a
    record is added, removed or replaced.

    epsilon: the largest budget of a mechanism, positive. cells: d. robustness: gamma in (0, 1]. quantiles: m. Raises
    `ValueError` naming the argument.

    >>> [round(lem_refined_sensitivity(0.1, 10, 0.5, quantiles=3, version=v), 4) for v in ("paper", "corrected")]
    [4.4281, 0.707]
    """
    check_positive(version, epsilon=epsilon, quantiles=quantiles)
    scale = lem_lipschitz(cells, robustness)
    if version == "paper":
        return scale * min(2.0, math.expm1(min(epsilon * (2 if quantiles > 1 else 1), 2.0)))
    return math.sqrt(2.0) * scale * math.tanh(epsilon / 4)


def thm_quantile_regret(
    steps: int,
    cells: int,
    robustness: float,
    *,
    quantiles: int,
    epsilon: float,
    noise: float,
    beta: float,
    mixture: float = 0.0,
    lipschitz: float = 0.0,
    width: float = 1.0,
    separation: float = 1.0,
    version: Version = "corrected",
) -> QuantileRegret:
    """Regret bound for learning piecewise-constant priors privately, with its step size (`thm:quantile-regret`).

    "paper" gives the printed bound and the printed step size, which do not belong together. "corrected" mixes the
    comparator just enough to be gamma-robust and is sharper in three places: the discretisation of
    `lipschitz_discretisation` without a factor m, the sensitivity of `lem_refined_sensitivity`, and strong convexity in
    the norm sqrt(sum_i |W_i|_1^2), which puts m where the paper has m^2. The step size is that of the regulariser m <W,
    log W> in both versions, for W ~ exp(-eta g / m).

    steps: T. cells: d, at least 2. robustness: gamma in (0, 1/2] or at most `mixture`. quantiles: m. epsilon: the
    largest budget of a mechanism. noise: sigma. beta: failure probability. mixture: lambda of the comparator class.
    lipschitz: V. width: b - a. separation: harmonic mean of the least separations (the distances to a and b among
    them). Raises `ValueError` naming the argument.

    >>> bound = thm_quantile_regret(10**6, 8, 0.1, quantiles=3, epsilon=0.1, noise=20.0, beta=0.05)
    >>> bound.regret < thm_quantile_regret(10**6, 8, 0.1, quantiles=3, epsilon=0.1, noise=20.0, beta=0.05,
    ...                                    version="paper").regret
    True
    """
    check_positive(version, steps=steps, epsilon=epsilon, quantiles=quantiles, width=width, separation=separation)
    check_probability(beta=beta)
    if cells < 2:
        raise ValueError("cells must be at least 2")
    scale, m = lem_lipschitz(cells, robustness), quantiles
    first_order = lipschitz * steps * width**3 / (robustness * cells * separation)
    smooth = lipschitz_discretisation(steps, cells, robustness, lipschitz=lipschitz, width=width, separation=separation)
    confidence = math.sqrt(2 * math.log(steps / beta))
    if version == "paper":
        moved = min(1.0, epsilon * (2 if m > 1 else 1))
        levels = tree_nodes(steps, release_total=False)
        width_term = 2 * math.sqrt(math.log(m * cells))
        inside = 1 + (2 * width_term + 2 * confidence) * noise * math.sqrt(levels) * moved
        printed = 1 + (width_term + confidence) * noise * math.sqrt(max(math.log(max(levels, 1)), 0.0)) * moved
        eta = m / scale * math.sqrt(math.log(cells) / steps / printed)
        mixing = 2 * max(robustness - mixture, 0.0) * steps * math.log(2)
        regret = m * first_order + mixing + 2 * m * scale * math.sqrt(inside * steps * math.log(cells))
        return QuantileRegret(regret, eta, noise)
    added = max(robustness - mixture, 0.0) / (1 - mixture) if mixture < 1 else 0.0
    moved = lem_refined_sensitivity(epsilon, cells, robustness, quantiles=m)
    gauss = math.sqrt(2 * m * math.log(2 * cells))
    slope = steps * scale * (scale + (gauss + confidence) * noise * moved * math.sqrt(steps.bit_length() - 1))
    spread = m * math.log(cells)
    regret = smooth - steps * math.log1p(-added) + 2 * math.sqrt(spread * slope)
    return QuantileRegret(regret, m * math.sqrt(spread / slope), noise)


def cor_quantile_regret(
    case: Case,
    steps: int,
    *,
    quantiles: int,
    noise_factor: float,
    cells: int = 2,
    mixture: float = 0.0,
    lipschitz: float = 0.0,
    width: float = 1.0,
    separation: float = 1.0,
    version: Version = "corrected",
) -> Settings:
    """Settings of d and gamma for a class of comparators, with the leading term of the regret (`cor:quantile-regret`).

    The printed d multiplies by `noise_factor` where it must divide. The printed rates have m where "corrected" has
    sqrt(m), see `thm_quantile_regret`.

    case: the class. steps: T. quantiles: m. noise_factor: X, the factor 1 + noise under the root of
    `thm:quantile-regret`, in the paper 1 + min(1, e)/epsilon'. cells: d of a discrete class. mixture: lambda of a
    robust class, in (0, 1]. lipschitz, width, separation: V, b - a and the separation of a Lipschitz class.

    Returns d, gamma (never above 1/2) and the rate with logarithms and constants left out. The rates need T large: so
    that gamma is below 1/2, and `T >= m X (psi / (V (b - a)^3))^2` for Lipschitz classes, as d is at least 2. Raises
    `ValueError` naming the argument.

    >>> cor_quantile_regret("lipschitz", 10**8, quantiles=1, noise_factor=4.0, lipschitz=1.0)
    Settings(cells=71, robustness=0.118921, rate=11892071.15)
    """
    check_positive(version, steps=steps, quantiles=quantiles, noise_factor=noise_factor)
    if case not in ("robust-discrete", "robust-lipschitz", "discrete", "lipschitz"):
        raise ValueError("case must be one of the four classes of the corollary")
    if case.startswith("robust") and not 0 < mixture <= 1:
        raise ValueError("mixture must be in (0, 1]")
    x, t = noise_factor, float(steps)
    m = float(quantiles) if version == "paper" else math.sqrt(quantiles)
    ratio = lipschitz * width**3 / separation
    # The printed discretisation error has a factor m, and with the printed d the learning error has X^3/4, not X^1/4.
    share, power = (ratio * m * m, 0.75) if version == "paper" else (ratio * m, 0.25)
    if case.endswith("lipschitz"):
        check_positive(version, lipschitz=lipschitz, width=width, separation=separation)
        fine = ratio * math.sqrt(t * x) if version == "paper" else ratio / m * math.sqrt(t / x)
        cells = max(2, math.ceil(math.sqrt(fine)))
    if case == "robust-discrete":
        return Settings(cells, min(mixture, 0.5), cells * m / mixture * math.sqrt(x * t))
    if case == "robust-lipschitz":
        return Settings(cells, min(mixture, 0.5), math.sqrt(share) / mixture * x**power * t**0.75)
    if case == "discrete":
        gamma = math.sqrt(cells * m) * (x / t) ** 0.25
        return Settings(cells, min(gamma, 0.5), math.sqrt(cells * m) * x**0.25 * t**0.75)
    gamma = share**0.25 * (x / t) ** 0.125
    return Settings(cells, min(gamma, 0.5), share**0.25 * x ** (power - 0.125) * t**0.875)
