"""Guarantees for learning that are better than the paper's and are not in it.

Conventions as in `pq.core.bounds.dpftrl`. Each is proved where `proofs_checks` has its row `ours:...`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from pq.core.bounds.checks import check_positive, check_probability

__all__ = [
    "LipschitzSettings",
    "dpftrl_half",
    "lipschitz_cells",
    "lipschitz_discretisation",
    "loss_difference",
    "o2b_one_step",
    "pubpri_difference",
]


class LipschitzSettings(NamedTuple):
    """Cells d and robustness gamma for a Lipschitz class, with the leading term of the regret."""

    cells: int
    robustness: float
    rate: float


def dpftrl_half(
    steps: int,
    *,
    regularizer_range: float,
    lipschitz: float,
    sensitivity: float,
    gaussian_width: float,
    noise: float,
    beta: float,
    dual_lipschitz: float = 1.0,
) -> float:
    """Regret of DP-FTRL with its best step size (`thm:dpftrl` sharpened): half of the first L.

    Without noise a step costs `eta L**2 / 2`, and the noise moves a point by eta times its norm. Arguments as in
    `thm_dpftrl`. Without noise it is `L sqrt(2 R T)`, which orthogonal gradients attain.

    >>> round(dpftrl_half(100, regularizer_range=1.0, lipschitz=1.0, sensitivity=2.0, gaussian_width=1.0, noise=0.0,
    ...                   beta=0.05), 6)
    14.142136
    """
    check_positive("corrected", steps=steps, regularizer_range=regularizer_range, lipschitz=lipschitz)
    check_probability(beta=beta)
    deviation = gaussian_width + dual_lipschitz * math.sqrt(2 * math.log(steps / beta))
    noisy = deviation * noise * sensitivity * math.sqrt(steps.bit_length() - 1)
    return 2 * math.sqrt(regularizer_range * steps * lipschitz * (lipschitz / 2 + noisy))


def o2b_one_step(steps: int, *, regret: float, loss_range: float, beta: float) -> float:
    """Excess risk of the average iterate on independent draws (`thm:o2b` sharpened), with probability 1 - beta.

    The losses of the iterates less those of the best point are one martingale with steps in an interval of length
    twice the range: one event, `R / T + B sqrt(2 log(1 / beta) / T)`, where the printed proof takes two.

    >>> round(o2b_one_step(1000, regret=30.0, loss_range=2.0, beta=0.05), 4)
    0.1848
    """
    check_positive("corrected", steps=steps, loss_range=loss_range)
    check_probability(beta=beta)
    return regret / steps + loss_range * math.sqrt(2 * math.log(1 / beta) / steps)


def loss_difference(data_bound: float, scale_min: float, scale_max: float) -> float:
    """How far the losses of two Laplace priors lie apart, for every optimal interval in [-B, B], of any width.

    The densities of the two differ by that factor at most at each place, so do the masses of intervals and the harmonic
    means of m of them: `B / scale_min + max(B / scale_min, B / scale_max + log(scale_max / scale_min))` on the box
    |theta| <= B / scale_min of gradient descent. It is the supremum.

    >>> round(loss_difference(10.0, 1.0, 20.0), 6), round(loss_difference(0.1, 1.0, 20.0), 6)
    (20.0, 3.100732)
    """
    check_positive("corrected", data_bound=data_bound, scale_min=scale_min)
    if not scale_min <= scale_max:
        raise ValueError("scale_max must be at least scale_min")
    reach = data_bound / scale_min
    return reach + max(reach, data_bound / scale_max + math.log(scale_max / scale_min))


def pubpri_difference(
    public_size: int,
    private_size: int,
    *,
    quantiles: int,
    data_bound: float,
    scale_min: float,
    scale_max: float,
    total_variation: float,
    beta: float,
) -> float:
    """Excess expected loss, on private data, of Laplace priors fitted to public data (`thm:pubpri` sharpened).

    With G of `loss_difference` the excess is at most `2 G TV_q`, the regret of descent over T = floor(N / n), and
    `G sqrt(2 log(1 / beta) / T)`: no bound on the density, no least separation, and no m inside a logarithm.

    >>> round(pubpri_difference(10**6, 100, quantiles=9, data_bound=50.0, scale_min=1.0, scale_max=20.0,
    ...                         total_variation=0.0, beta=0.05), 4)
    4.9452
    """
    check_positive("corrected", private_size=private_size, quantiles=quantiles)
    check_probability(beta=beta)
    if public_size < private_size:
        raise ValueError("public_size must be at least private_size")
    steps, largest = public_size // private_size, loss_difference(data_bound, scale_min, scale_max)
    descent = data_bound / scale_min + (1 / scale_min - 1 / scale_max) * (data_bound + scale_max) / 2
    return (
        2 * largest * total_variation
        + descent * math.sqrt(quantiles / steps)
        + largest * math.sqrt(2 * math.log(1 / beta) / steps)
    )


def lipschitz_discretisation(
    steps: int, cells: int, robustness: float, *, lipschitz: float, width: float, separation: float
) -> float:
    """What T losses of the best prior with d equal cells exceed those of a V-Lipschitz one by (`thm:quantile-regret`
    sharpened).

    The score rises to its largest value and falls again, so its variation is at most 2; in a cell of width w the
    integral of a Lipschitz density less its mean is at most `V w**2 / 8`: `V T (b - a)**3 / (4 gamma d**2 psi)`, with
    d**2 where the paper has d.

    >>> lipschitz_discretisation(1000, 10, 0.5, lipschitz=1.0, width=1.0, separation=0.1)
    50.0
    """
    check_positive("corrected", steps=steps, cells=cells, robustness=robustness, width=width, separation=separation)
    return lipschitz * steps * width**3 / (4 * robustness * cells**2 * separation)


def lipschitz_cells(
    steps: int,
    *,
    noise_factor: float,
    lipschitz: float,
    width: float,
    separation: float,
    quantiles: int = 1,
    mixture: float = 0.0,
) -> LipschitzSettings:
    """Settings and rate for V-Lipschitz priors (`cor:quantile-regret` sharpened): T**(2/3), and T**(5/6) where the
    class is not robust, for the printed T**(3/4) and T**(7/8).

    noise_factor: X, the factor 1 + noise under the root of `thm_quantile_regret`. mixture: lambda of a robust class,
    0 for one that is not. Constants and logarithms are left out of the rate.

    >>> lipschitz_cells(10**12, noise_factor=1.0, lipschitz=1.0, width=1.0, separation=1.0, mixture=0.5)
    LipschitzSettings(cells=100, robustness=0.5, rate=200000000.0)
    """
    check_positive("corrected", steps=steps, noise_factor=noise_factor, lipschitz=lipschitz, quantiles=quantiles)
    check_positive("corrected", width=width, separation=separation)
    smooth, learning = lipschitz * width**3 / separation * steps, math.sqrt(quantiles * noise_factor * steps)
    cells = max(2, math.ceil((smooth / learning) ** (1 / 3) - 1e-9))
    rate = smooth ** (1 / 3) * learning ** (2 / 3)
    if mixture > 0:
        robustness = min(mixture, 0.5)
        return LipschitzSettings(cells, robustness, rate / robustness)
    return LipschitzSettings(cells, min(math.sqrt(rate / steps), 0.5), math.sqrt(rate * steps))
