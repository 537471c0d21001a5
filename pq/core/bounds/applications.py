"""Laplace priors from public data and from past days: Section 5 and Appendices C and E.1.

Conventions as in `pq.core.bounds.dpftrl`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from pq.core.bounds.checks import Version, check_positive, check_probability
from pq.core.bounds.dpftrl import dpftrl_noise

__all__ = [
    "StepSizes",
    "eq_laplace_bound",
    "laplace_gradient_bound",
    "pubpri_step_sizes",
    "sequential_step_sizes",
    "thm_o2b",
    "thm_o2b_steps",
    "thm_pubpri",
    "thm_sequential",
]


class StepSizes(NamedTuple):
    """Step sizes for the location parameters and for the inverse scales."""

    location: float
    inverse_scale: float


def eq_laplace_bound(
    data_bound: float,
    scale_min: float,
    scale_max: float,
    separation: float,
    *,
    box: bool = False,
    version: Version = "corrected",
) -> float:
    """Largest loss of a Laplace prior on an optimal interval at least that wide inside [-B, B] (`eq:laplace-bound`).

    The paper prints `2 B / scale_min + log(2 scale_max / psi)`; "corrected" is the exact supremum: the loss is convex
    in the inverse scale, so that one of the two scales at the ends is the worst.

    data_bound: B, in the data's unit. scale_min, scale_max: least and largest scale, in the data's unit, in this order.
    separation: psi, at most 2B, in the data's unit. box: whether theta ranges over [-B/scale_min, B/scale_min] whatever
    the scale, as in gradient descent, and not the location over [-B, B]. Returns nats. Raises `ValueError` naming the
    argument.

    >>> [round(eq_laplace_bound(1.0, 0.1, 1.0, 0.01, version=v), 3) for v in ("paper", "corrected")]
    [25.298, 22.945]
    """
    check_positive(version, data_bound=data_bound, scale_min=scale_min, separation=separation)
    if not scale_min <= scale_max:
        raise ValueError("scale_max must be at least scale_min")
    if version == "paper":
        return 2 * data_bound / scale_min + math.log(2 * scale_max / separation)
    if separation > 2 * data_bound:
        raise ValueError("separation must be at most twice data_bound")

    def worst(phi: float) -> float:
        reach = data_bound / scale_min if box else data_bound * phi
        half = separation * phi / 2
        log_sinh = half - math.log(2) + math.log(-math.expm1(-2 * half))
        return reach + phi * (data_bound - separation / 2) - log_sinh

    return max(worst(1 / scale_min), worst(1 / scale_max))


def laplace_gradient_bound(
    data_bound: float, scale_max: float, *, separation: float = 0.0, version: Version = "corrected"
) -> tuple[float, float]:
    """Least bounds on the derivatives of the loss of a Laplace prior, in theta and in phi (below `eq:laplace-bound`).

    The paper has 1 and `4 B + scale_max`. The least constant for phi is `B + scale_max`, and `B + psi / (exp(psi /
    scale_max) - 1)` when the optimal interval is at least psi wide.

    data_bound: B. scale_max: largest scale. separation: psi, not negative; all in the data's unit. Returns the bounds
    for theta and for phi. Raises `ValueError` naming the argument.

    >>> laplace_gradient_bound(10.0, 2.0), laplace_gradient_bound(10.0, 2.0, version="paper")
    ((1.0, 12.0), (1.0, 42.0))
    """
    check_positive(version, data_bound=data_bound, scale_max=scale_max)
    if separation < 0:
        raise ValueError("separation must not be negative")
    if version == "paper":
        return 1.0, 4 * data_bound + scale_max
    ratio = separation / scale_max
    return 1.0, data_bound + (scale_max if ratio == 0 else separation * math.exp(-ratio) / -math.expm1(-ratio))


def thm_o2b(steps: int, *, regret: float, loss_range: float, beta: float, version: Version = "corrected") -> float:
    """Excess risk of the average iterate on independent draws, with probability 1 - beta (`thm:o2b`).

    The paper prints `R / T + 2 B sqrt(2 log(2 / beta) / T)`; Hoeffding's constant for a range (not a radius) B halves
    the second term.

    steps: T. regret: R_T. loss_range: B, the losses lie in an interval of that length. beta: failure probability.
    Raises `ValueError` naming the argument.

    >>> round(thm_o2b(1000, regret=30.0, loss_range=2.0, beta=0.05), 4)
    0.2018
    """
    check_positive(version, steps=steps, loss_range=loss_range)
    check_probability(beta=beta)
    deviation = loss_range * math.sqrt(2 * math.log(2 / beta) / steps)
    return regret / steps + deviation * (2 if version == "paper" else 1)


def thm_o2b_steps(alpha: float, *, loss_range: float, beta: float, version: Version = "corrected") -> int:
    """How many draws make the statistical half of the excess risk at most alpha / 2 (`thm:o2b`).

    The paper hides the constant: 32 by its proof, 8 with the sharper deviation. The regret's half is `R_T <= T alpha /
    2`, at this T.

    alpha: target excess risk. loss_range: B. beta: failure probability. Returns T. Raises `ValueError` naming the
    argument.

    >>> thm_o2b_steps(0.1, loss_range=1.0, beta=0.05)
    2952
    """
    check_positive(version, alpha=alpha, loss_range=loss_range)
    check_probability(beta=beta)
    constant = 32 if version == "paper" else 8
    return math.ceil(constant * (loss_range / alpha) ** 2 * math.log(2 / beta))


def pubpri_step_sizes(
    steps: int, *, quantiles: int, data_bound: float, scale_min: float, scale_max: float, version: Version = "corrected"
) -> StepSizes:
    """Step sizes of gradient descent on public data, for theta and for phi (`thm:pubpri`).

    The printed ones lack 1/scale_min and 1/(scale_min scale_max) and so depend on the unit.

    steps: T. quantiles: m. data_bound: B. scale_min, scale_max: least and largest scale; all three in the data's unit.
    Raises `ValueError` naming the argument.

    >>> pubpri_step_sizes(100, quantiles=4, data_bound=10.0, scale_min=1.0, scale_max=5.0)
    StepSizes(location=2.0, inverse_scale=0.0053333)
    """
    check_positive(version, steps=steps, quantiles=quantiles, data_bound=data_bound, scale_min=scale_min)
    root = math.sqrt(quantiles / steps)
    if version == "paper":
        return StepSizes(data_bound * root, (scale_max - scale_min) / (4 * data_bound + scale_max) * root)
    return StepSizes(
        data_bound / scale_min * root, (1 / scale_min - 1 / scale_max) / (2 * (data_bound + scale_max)) * root
    )


def thm_pubpri(
    public_size: int,
    private_size: int,
    *,
    quantiles: int,
    data_bound: float,
    scale_min: float,
    scale_max: float,
    density_bound: float,
    total_variation: float,
    beta: float,
    version: Version = "corrected",
) -> float:
    """Excess expected loss, on private data, of Laplace priors fitted to public data (`thm:pubpri`).

    "corrected" does not depend on the unit of the data; it replaces `1/T <= (n+1)/N`, which is false, by `T =
    floor(N/n)` itself and counts both losses where records are closer than the proof allows.

    public_size: N, at least n. private_size: n. quantiles: m, of ranks between 1 and n - 1. data_bound: B, in the
    data's unit. scale_min, scale_max: least and largest scale, in the data's unit. density_bound: kappa, one over the
    data's unit. total_variation: TV_q. beta: failure probability. Raises `ValueError` naming the argument.

    >>> common = dict(quantiles=9, scale_min=1.0, scale_max=20.0, total_variation=0.0, beta=0.05)
    >>> metres = thm_pubpri(10**6, 100, data_bound=50.0, density_bound=0.1, **common)
    >>> common.update(scale_min=1e-3, scale_max=20e-3)
    >>> math.isclose(metres, thm_pubpri(10**6, 100, data_bound=50e-3, density_bound=100.0, **common))
    True
    """
    check_positive(version, private_size=private_size, quantiles=quantiles, data_bound=data_bound, scale_min=scale_min)
    check_probability(beta=beta)
    if public_size < private_size:
        raise ValueError("public_size must be at least private_size")
    b, low, high, m, n = data_bound, scale_min, scale_max, quantiles, private_size
    if version == "paper":
        part = (n + 1) / public_size
        log_term = math.log(4 * density_bound * m * (n + 1) * public_size * high / beta)
        tail = math.log(2 * density_bound * (n + 1) * public_size * math.sqrt(2 * m * high) / beta)
        return (
            2 * (2 * b / low + log_term) * total_variation
            + (b + 4 * b * high + high**2) * math.sqrt(m * part)
            + 2 * (4 * b / low + log_term) * math.sqrt(2 * part * math.log(4 / beta))
            + part * beta * (3 + 4 * b / low + 4 * tail)
        )
    steps = public_size // n
    largest = 2 * b / low + math.log(4 * density_bound * m * n**2 * steps * high / beta)
    descent = b / low + (1 / low - 1 / high) * (b + high) / 2
    return (
        2 * largest * total_variation
        + descent * math.sqrt(m / steps)
        + largest * math.sqrt(2 * math.log(4 / beta) / steps)
        + beta / steps * (largest + 1.5)
    )


def _sequential_terms(
    steps: int, m: int, features: int, epsilon: float, delta: float, beta: float
) -> tuple[float, float, float]:
    """The node noise of each run, and the factors 1 + noise of the runs for the weights and the scales."""
    noise = dpftrl_noise(steps, epsilon / 2, delta / 2)
    spread = math.sqrt(2 * math.log(2 * steps / beta))
    levels = math.sqrt(steps.bit_length() - 1)
    weights = 1 + 2 * (math.sqrt(m * features) + spread) * noise * levels
    scales = 1 + 2 * (math.sqrt(m) + spread) * noise * levels
    return noise, weights, scales


def sequential_step_sizes(
    steps: int,
    *,
    quantiles: int,
    features: int,
    feature_bound: float,
    weight_bound: float,
    data_bound: float,
    scale_min: float,
    scale_max: float,
    epsilon: float,
    delta: float,
    beta: float,
) -> StepSizes:
    """Step sizes of the two runs of DP-FTRL that learn Laplace priors from sensitive data (`thm:sequential`).

    The printed ones use undefined budgets; ours minimise the bound of `thm_sequential`. Arguments as in
    `thm_sequential`.

    >>> sizes = sequential_step_sizes(1000, quantiles=1, features=4, feature_bound=1.0, weight_bound=1.0,
    ...     data_bound=1.0, scale_min=0.1, scale_max=1.0, epsilon=1.0, delta=1e-6, beta=0.05)
    >>> sizes.location > sizes.inverse_scale
    True
    """
    _, weights, scales = _sequential_terms(steps, quantiles, features, epsilon, delta, beta)
    radius = weight_bound / scale_min * math.sqrt(quantiles * features)
    half = (1 / scale_min - 1 / scale_max) / 2 * math.sqrt(quantiles)
    return StepSizes(
        radius / (feature_bound * math.sqrt(2 * features * steps * weights)),
        half / ((data_bound + scale_max) * math.sqrt(2 * steps * scales)),
    )


def thm_sequential(
    steps: int,
    *,
    quantiles: int,
    features: int,
    feature_bound: float,
    weight_bound: float,
    data_bound: float,
    scale_min: float,
    scale_max: float,
    epsilon: float,
    delta: float,
    beta: float,
    version: Version = "corrected",
) -> float:
    """Regret of learning Laplace priors, linear in public features, from a sequence of data sets (`thm:sequential`).

    "corrected" has the dimension that the proof gives (d, not its root, before the noise), the gradient's sensitivity
    of twice its bound, the data's range in the gradient of the scale, noise that is private at every epsilon, and a
    union over both runs. These start in the middle of their boxes.

    steps: T, the number of data sets, which are sensitive. quantiles: m. features: d. feature_bound: F. weight_bound:
    B, weights lie in [-B, B]^d. data_bound: R. scale_min, scale_max: least and largest scale. epsilon, delta: for both
    runs together, a whole data set being replaced. beta: failure probability. Raises `ValueError` naming the argument.

    >>> common = dict(quantiles=1, features=6000, feature_bound=100.0, weight_bound=1.0, data_bound=6e5, scale_min=0.01,
    ...               scale_max=0.01, epsilon=1.0, delta=1e-6, beta=0.1)
    >>> [round(thm_sequential(1, version=v, **common)) for v in ("paper", "corrected")]  # one step can cost 6e7
    [55707343, 84852814]
    """
    check_positive(version, steps=steps, quantiles=quantiles, features=features, feature_bound=feature_bound)
    check_positive(version, weight_bound=weight_bound, data_bound=data_bound, scale_min=scale_min, epsilon=epsilon)
    check_probability(delta=delta, beta=beta)
    m, d = quantiles, features
    if version == "paper":
        levels = steps.bit_length()
        noise = 8 / epsilon * math.sqrt(2 * m * d * math.log(steps / beta) * math.log(2 / delta))
        lead = (weight_bound * (feature_bound + 1) + scale_max) / scale_min
        return lead * math.sqrt(m * d * levels * steps * (4 + noise))
    _, weights, scales = _sequential_terms(steps, m, d, epsilon, delta, beta)
    first = weight_bound * feature_bound * d / scale_min * math.sqrt(weights)
    second = (1 / scale_min - 1 / scale_max) / 2 * (data_bound + scale_max) * math.sqrt(scales)
    return math.sqrt(2 * m * steps) * (first + second)
