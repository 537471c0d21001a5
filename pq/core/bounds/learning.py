"""Guarantees for learned predictions (Sections 4.3 and 5; Appendices B.2, C and E), as plain-number functions.

``version="paper"`` is the formula as printed, ``version="corrected"`` the best true one that we know; the checks in
``proofs_checks`` say where and why the two differ.  All numbers are public facts: nothing here looks at data.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from pq.core.budget.gaussian import gaussian_delta, noise_multiplier
from pq.core.budget.nodes import tree_nodes

__all__ = [
    "QuantileRegret",
    "Settings",
    "StepSizes",
    "cor_quantile_regret",
    "dpftrl_noise",
    "eq_laplace_bound",
    "gaussian_delta",
    "laplace_gradient_bound",
    "lem_lipschitz",
    "lem_refined_sensitivity",
    "pubpri_step_sizes",
    "sequential_step_sizes",
    "thm_dpftrl",
    "thm_o2b",
    "thm_o2b_steps",
    "thm_pubpri",
    "thm_quantile_regret",
    "thm_sequential",
    "tree_nodes",
]

Version = Literal["corrected", "paper"]
Case = Literal["robust-discrete", "robust-lipschitz", "discrete", "lipschitz"]


class QuantileRegret(NamedTuple):
    """Regret bound of ``thm:quantile-regret`` and the step size and noise multiplier that it is stated for."""

    regret: float
    step_size: float
    noise: float


class Settings(NamedTuple):
    """Cells d, robustness gamma and the leading term of the regret, for ``cor:quantile-regret``."""

    cells: int
    robustness: float
    rate: float


class StepSizes(NamedTuple):
    """Step sizes for the location parameters and for the inverse scales."""

    location: float
    inverse_scale: float


def _check(version: str, **positive: float) -> None:
    """Refuse an unknown version and any named argument that is not positive."""
    if version not in ("corrected", "paper"):
        raise ValueError("version must be 'corrected' or 'paper'")
    for name, value in positive.items():
        if not value > 0:
            raise ValueError(f"{name} must be positive")


def _probability(**named: float) -> None:
    """Refuse a named argument outside (0, 1)."""
    for name, value in named.items():
        if not 0 < value < 1:
            raise ValueError(f"{name} must be in (0, 1)")


def dpftrl_noise(
    steps: int,
    epsilon: float,
    delta: float,
    *,
    version: Literal["corrected", "paper", "sharp"] = "corrected",
    release_total: bool = True,
) -> float:
    """Return the noise of one tree node, as a multiple of the gradient's l2-sensitivity, for (epsilon, delta)-privacy.

    Paper: ``thm:dpftrl``, sqrt(2 k log(1/delta)) / epsilon with k = ceil(log2 T).  "corrected" is
    sqrt(k/2) (sqrt(log(1/delta) + epsilon) + sqrt(log(1/delta))) / epsilon, private at every epsilon; "sharp" is the
    least that is private, found on the exact curve of the Gaussian mechanism.

    Parameters: ``steps`` number T of gradients; ``epsilon > 0``; ``delta`` in (0, 1); ``release_total`` whether the
    sum of all T gradients is looked at, see ``tree_nodes``.  Raises ``ValueError`` naming the argument.

    >>> [round(dpftrl_noise(4, 10.0, 1e-6, version=v), 3) for v in ("paper", "corrected", "sharp")]
    [0.743, 1.053, 0.937]
    """
    if version not in ("corrected", "paper", "sharp"):
        raise ValueError("version must be 'corrected', 'paper' or 'sharp'")
    _check("corrected", epsilon=epsilon)
    _probability(delta=delta)
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
    """Return the regret bound of DP-FTRL, for the best step size unless one is given.

    Paper: ``thm:dpftrl``.  The regulariser is 1-strongly convex in the norm in which the losses are Lipschitz.

    Parameters: ``regularizer_range`` phi(theta*) - phi(theta_1); ``lipschitz`` L; ``sensitivity`` Delta_2 of the
    gradient, in l2; ``gaussian_width`` G; ``dual_lipschitz`` C; ``noise`` sigma (see ``dpftrl_noise``); ``beta``
    failure probability; ``step_size`` eta.  Raises ``ValueError`` naming the argument.

    A prefix sum of up to T - 1 gradients adds at most floor(log2 T) nodes ("corrected"); the paper has ceil(log2 T).

    >>> round(thm_dpftrl(100, regularizer_range=1.0, lipschitz=1.0, sensitivity=2.0, gaussian_width=1.0, noise=0.0,
    ...                  beta=0.05), 6)
    20.0
    """
    _check(version, steps=steps, regularizer_range=regularizer_range, lipschitz=lipschitz)
    _probability(beta=beta)
    nodes = steps.bit_length() - 1 if version == "corrected" else (steps - 1).bit_length()
    deviation = gaussian_width + dual_lipschitz * math.sqrt(2 * math.log(steps / beta))
    slope = steps * lipschitz * (lipschitz + deviation * noise * sensitivity * math.sqrt(nodes))
    eta = math.sqrt(regularizer_range / slope) if step_size is None else step_size
    return regularizer_range / eta + eta * slope


def lem_lipschitz(cells: int, robustness: float) -> float:
    """Return d / gamma, the largest l1-norm of the gradient of the loss of piecewise-constant priors.

    Paper: ``lem:lipschitz``; true and attained, although the printed proof applies Sedrakyan's inequality backwards.

    Parameters: ``cells`` d, at least 1; ``robustness`` gamma in (0, 1].  Raises ``ValueError`` naming the argument.

    >>> lem_lipschitz(10, 0.5)
    20.0
    """
    _check("corrected", cells=cells, robustness=robustness)
    if robustness > 1:
        raise ValueError("robustness must be in (0, 1]")
    return cells / robustness


def lem_refined_sensitivity(
    epsilon: float, cells: int, robustness: float, *, quantiles: int = 1, version: Version = "corrected"
) -> float:
    """Return how far, in l2, one record can move the gradient of the loss of piecewise-constant priors.

    Paper: ``lem:refined-sensitivity``, (d/gamma) min(2, exp(e) - 1) with e doubled for more than one quantile.
    Ours: sqrt(2) (d/gamma) tanh(epsilon/4) for any number of quantiles, without the doubling; for one quantile there
    are neighbours that come as close to it as wanted.

    Parameters: ``epsilon`` the largest budget of a mechanism, positive; ``cells`` d; ``robustness`` gamma in (0, 1];
    ``quantiles`` m.  Holds when a record is added, removed or replaced.  Raises ``ValueError`` naming the argument.

    >>> [round(lem_refined_sensitivity(0.1, 10, 0.5, quantiles=3, version=v), 4) for v in ("paper", "corrected")]
    [4.4281, 0.707]
    """
    _check(version, epsilon=epsilon, quantiles=quantiles)
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
    """Return the regret bound for learning piecewise-constant priors privately, with its step size.

    Paper: ``thm:quantile-regret``.  "paper" gives the printed bound and the printed step size, which do not belong
    together.  "corrected" mixes the comparator just enough to be gamma-robust and is sharper in m, in three places:
    no factor m on the discretisation, the sensitivity of ``lem_refined_sensitivity``, and strong convexity in the
    norm sqrt(sum_i |W_i|_1^2), which puts m where the paper has m^2.  The step size is that of the regulariser
    m <W, log W> in both versions, for the update W ~ exp(-eta g / m).

    Parameters: ``steps`` T; ``cells`` d >= 2; ``robustness`` gamma in (0, 1/2] or at most ``mixture``; ``quantiles``
    m; ``epsilon`` the largest budget of a mechanism; ``noise`` sigma; ``beta`` failure probability; ``mixture``
    lambda of the comparator class; ``lipschitz`` V; ``width`` b - a; ``separation`` harmonic mean of the least
    separations (the distances to a and b among them).  Raises ``ValueError`` naming the argument.

    >>> bound = thm_quantile_regret(10**6, 8, 0.1, quantiles=3, epsilon=0.1, noise=20.0, beta=0.05)
    >>> bound.regret < thm_quantile_regret(10**6, 8, 0.1, quantiles=3, epsilon=0.1, noise=20.0, beta=0.05,
    ...                                    version="paper").regret
    True
    """
    _check(version, steps=steps, epsilon=epsilon, quantiles=quantiles, width=width, separation=separation)
    _probability(beta=beta)
    if cells < 2:
        raise ValueError("cells must be at least 2")
    scale, m = lem_lipschitz(cells, robustness), quantiles
    smooth = lipschitz * steps * width**3 / (robustness * cells * separation)
    confidence = math.sqrt(2 * math.log(steps / beta))
    if version == "paper":
        moved = min(1.0, epsilon * (2 if m > 1 else 1))
        levels = tree_nodes(steps, release_total=False)
        width_term = 2 * math.sqrt(math.log(m * cells))
        inside = 1 + (2 * width_term + 2 * confidence) * noise * math.sqrt(levels) * moved
        printed = 1 + (width_term + confidence) * noise * math.sqrt(max(math.log(max(levels, 1)), 0.0)) * moved
        eta = m / scale * math.sqrt(math.log(cells) / steps / printed)
        mixing = 2 * max(robustness - mixture, 0.0) * steps * math.log(2)
        regret = m * smooth + mixing + 2 * m * scale * math.sqrt(inside * steps * math.log(cells))
        return QuantileRegret(regret, eta, noise)
    added = max(robustness - mixture, 0.0) / (1 - mixture) if mixture < 1 else 0.0
    moved = lem_refined_sensitivity(epsilon, cells, robustness, quantiles=m)
    gauss = math.sqrt(2 * m * math.log(2 * cells))
    slope = steps * scale * (scale + (gauss + confidence) * noise * moved * math.sqrt(steps.bit_length() - 1))
    spread = m * math.log(cells)
    regret = smooth / 6 - steps * math.log1p(-added) + 2 * math.sqrt(spread * slope)
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
    """Return the settings of d and gamma for a class of comparators, with the leading term of the regret.

    Paper: ``cor:quantile-regret`` and its settings; the printed d multiplies by ``noise_factor`` where it must divide.
    The printed rates have m where "corrected" has sqrt(m), see ``thm_quantile_regret``.

    Parameters: ``case`` the class; ``steps`` T; ``quantiles`` m; ``noise_factor`` X, the factor 1 + noise under the
    root of ``thm:quantile-regret``, in the paper 1 + min(1, e)/epsilon'; ``cells`` d of a discrete class; ``mixture``
    lambda of a robust class; ``lipschitz`` V, ``width`` b - a and ``separation`` of a Lipschitz class.

    Returns d, gamma (never above 1/2) and the rate with logarithms and constants left out.  Raises ``ValueError``.

    >>> cor_quantile_regret("lipschitz", 10**8, quantiles=1, noise_factor=4.0, lipschitz=1.0)
    Settings(cells=71, robustness=0.118921, rate=11892071.15)
    """
    _check(version, steps=steps, quantiles=quantiles, noise_factor=noise_factor)
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
        _check(version, lipschitz=lipschitz, width=width, separation=separation)
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


def eq_laplace_bound(
    data_bound: float,
    scale_min: float,
    scale_max: float,
    separation: float,
    *,
    box: bool = False,
    version: Version = "corrected",
) -> float:
    """Return the largest loss of a Laplace prior on an optimal interval of at least that width inside [-B, B].

    Paper: ``eq:laplace-bound``, 2B/scale_min + log(2 scale_max/psi).  "corrected" is the exact supremum: the loss is
    convex in the inverse scale, so that one of the two scales at the ends is the worst.

    Parameters: ``data_bound`` B; ``scale_min <= scale_max``; ``separation`` psi <= 2B, all in the data's unit; ``box``
    whether theta ranges over [-B/scale_min, B/scale_min] whatever the scale, as in gradient descent, and not the
    location over [-B, B].  Raises ``ValueError`` naming the argument.

    >>> [round(eq_laplace_bound(1.0, 0.1, 1.0, 0.01, version=v), 3) for v in ("paper", "corrected")]
    [25.298, 22.945]
    """
    _check(version, data_bound=data_bound, scale_min=scale_min, separation=separation)
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
    """Return the least bounds on the derivatives of the loss of a Laplace prior, in theta and in phi.

    Paper: below ``eq:laplace-bound``, 1 and 4B + scale_max.  The least constant for phi is B + scale_max, and
    B + psi/(exp(psi/scale_max) - 1) when the optimal interval is at least psi wide.

    Parameters: ``data_bound`` B; ``scale_max``; ``separation`` psi >= 0, all in the data's unit.

    >>> laplace_gradient_bound(10.0, 2.0), laplace_gradient_bound(10.0, 2.0, version="paper")
    ((1.0, 12.0), (1.0, 42.0))
    """
    _check(version, data_bound=data_bound, scale_max=scale_max)
    if separation < 0:
        raise ValueError("separation must not be negative")
    if version == "paper":
        return 1.0, 4 * data_bound + scale_max
    ratio = separation / scale_max
    return 1.0, data_bound + (scale_max if ratio == 0 else separation * math.exp(-ratio) / -math.expm1(-ratio))


def thm_o2b(steps: int, *, regret: float, loss_range: float, beta: float, version: Version = "corrected") -> float:
    """Return the excess risk of the average iterate on independent draws, with probability 1 - beta.

    Paper: ``thm:o2b``, R/T + 2 B sqrt(2 log(2/beta)/T); Hoeffding's constant for a range (not a radius) B halves it.

    Parameters: ``steps`` T; ``regret`` R_T; ``loss_range`` B, the losses lie in an interval of that length; ``beta``.

    >>> round(thm_o2b(1000, regret=30.0, loss_range=2.0, beta=0.05), 4)
    0.2018
    """
    _check(version, steps=steps, loss_range=loss_range)
    _probability(beta=beta)
    deviation = loss_range * math.sqrt(2 * math.log(2 / beta) / steps)
    return regret / steps + deviation * (2 if version == "paper" else 1)


def thm_o2b_steps(alpha: float, *, loss_range: float, beta: float, version: Version = "corrected") -> int:
    """Return how many draws make the statistical half of the excess risk at most alpha / 2.

    Paper: ``thm:o2b``, where the constant is hidden: 32 by its proof, 8 with the sharper deviation.  The regret's
    half is R_T <= T alpha / 2, at this T.

    Parameters: ``alpha`` target excess risk; ``loss_range`` B; ``beta`` failure probability.

    >>> thm_o2b_steps(0.1, loss_range=1.0, beta=0.05)
    2952
    """
    _check(version, alpha=alpha, loss_range=loss_range)
    _probability(beta=beta)
    constant = 32 if version == "paper" else 8
    return math.ceil(constant * (loss_range / alpha) ** 2 * math.log(2 / beta))


def pubpri_step_sizes(
    steps: int, *, quantiles: int, data_bound: float, scale_min: float, scale_max: float, version: Version = "corrected"
) -> StepSizes:
    """Return the step sizes of gradient descent on public data, for theta and for phi.

    Paper: ``thm:pubpri``; the printed ones lack 1/scale_min and 1/(scale_min scale_max) and so depend on the unit.

    Parameters: ``steps`` T; ``quantiles`` m; ``data_bound`` B, ``scale_min``, ``scale_max`` in the data's unit.

    >>> pubpri_step_sizes(100, quantiles=4, data_bound=10.0, scale_min=1.0, scale_max=5.0)
    StepSizes(location=2.0, inverse_scale=0.0053333)
    """
    _check(version, steps=steps, quantiles=quantiles, data_bound=data_bound, scale_min=scale_min)
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
    """Return the excess expected loss, on private data, of Laplace priors fitted to public data.

    Paper: ``thm:pubpri``.  "corrected" does not depend on the unit of the data; it replaces 1/T <= (n+1)/N, which is
    false, by T = floor(N/n) itself and counts both losses where records are closer than the proof allows.

    Parameters: ``public_size`` N >= ``private_size`` n; ``quantiles`` m, of ranks between 1 and n - 1;
    ``data_bound`` B; ``scale_min``, ``scale_max``; ``density_bound`` kappa, one over the data's unit;
    ``total_variation`` TV_q; ``beta`` failure probability.  Raises ``ValueError`` naming the argument.

    >>> common = dict(quantiles=9, scale_min=1.0, scale_max=20.0, total_variation=0.0, beta=0.05)
    >>> metres = thm_pubpri(10**6, 100, data_bound=50.0, density_bound=0.1, **common)
    >>> common.update(scale_min=1e-3, scale_max=20e-3)
    >>> math.isclose(metres, thm_pubpri(10**6, 100, data_bound=50e-3, density_bound=100.0, **common))
    True
    """
    _check(version, private_size=private_size, quantiles=quantiles, data_bound=data_bound, scale_min=scale_min)
    _probability(beta=beta)
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
    """Return the node noise of each run, and the factors 1 + noise of the runs for the weights and the scales."""
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
    """Return the step sizes of the two runs of DP-FTRL that learn Laplace priors from sensitive data.

    Paper: ``thm:sequential`` (the printed ones use undefined budgets); ours minimise the bound of ``thm_sequential``.
    Parameters: as for ``thm_sequential``.

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
    """Return the regret of learning Laplace priors, linear in public features, from a sequence of sensitive data sets.

    Paper: ``thm:sequential``.  "corrected" has the dimension that the proof gives (d, not its root, before the noise),
    the gradient's sensitivity of twice its bound, the data's range in the gradient of the scale, noise that is private
    at every epsilon, and a union over both runs.

    Parameters: ``steps`` T; ``quantiles`` m; ``features`` d; ``feature_bound`` F; ``weight_bound`` B (weights lie in
    [-B, B]^d); ``data_bound`` R; ``scale_min``, ``scale_max``; ``epsilon``, ``delta`` for both runs together, a whole
    data set being replaced; ``beta`` failure probability.  Raises ``ValueError`` naming the argument.

    >>> common = dict(quantiles=1, features=6000, feature_bound=100.0, weight_bound=1.0, data_bound=6e5, scale_min=0.01,
    ...               scale_max=0.01, epsilon=1.0, delta=1e-6, beta=0.1)
    >>> [round(thm_sequential(1, version=v, **common)) for v in ("paper", "corrected")]  # one step can cost 6e7
    [55707343, 84852814]
    """
    _check(version, steps=steps, quantiles=quantiles, features=features, feature_bound=feature_bound)
    _check(version, weight_bound=weight_bound, data_bound=data_bound, scale_min=scale_min, epsilon=epsilon)
    _probability(delta=delta, beta=beta)
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
