"""thm:pubpri: units, step sizes, and the bound itself."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import z3
from flint import arb

from pq import bounds
from pq.losses import laplace_interval, laplace_quantiles
from proofs_checks.engine.registry import check
from proofs_checks.tools.broken import printed, scaled
from proofs_checks.tools.exact import ball
from proofs_checks.tools.gaussian import log_of
from proofs_checks.tools.laplace import stable_float
from proofs_checks.tools.solver import follows

F = Fraction


@check(
    "thm:pubpri",
    "thm:pubpri/step-sizes",
    code=(bounds.thm_pubpri, bounds.pubpri_step_sizes),
    rejects=[("paper", "paper"), ("paper", "corrected")],
)
def check_step_size_units(subject: tuple[str, str] = ("corrected", "corrected")) -> str:
    """Exact counterexample by choice of unit: with the printed step size gradient descent does not move.

    One quantile, n = 2, all data within sigma/10 of B/2 = 5 sigma, one scale.  The losses at theta are at least
    5 - 0.1 - theta - log sinh u, those at the best location at most 0.1 - log sinh u, for every draw.
    """
    size, n, sigma = 10**8, 2, 1e-9
    common: dict[str, Any] = {"quantiles": 1, "data_bound": 10 * sigma, "scale_min": sigma, "scale_max": sigma}
    step = bounds.pubpri_step_sizes(size // n, version=subject[0], **common).location  # type: ignore[arg-type]
    farthest = step * (size // n)  # gradients are at most 1, and descent starts at 0
    excess = max(0.0, 5 - 0.2 - farthest)
    bound = bounds.thm_pubpri(
        size,
        n,
        density_bound=1 / (0.2 * sigma),
        total_variation=0.0,
        beta=0.05,
        version=subject[1],  # type: ignore[arg-type]
        **common,
    )
    assert excess <= bound, f"excess loss at least {excess:.3f}, bound {bound:.3f}"
    common["density_bound"] = 1 / (0.2 * sigma)
    paper = bounds.thm_pubpri(size, n, total_variation=0.0, beta=0.05, version="paper", **common)
    return f"printed step in a unit with sigma = 1e-9, N = 1e8: excess loss >= 4.79 for every sample, bound {paper:.2f}"


_EXAMPLE: dict[str, Any] = {
    "quantiles": 9,
    "data_bound": 50.0,
    "scale_min": 1.0,
    "scale_max": 20.0,
    "density_bound": 0.1,
    "total_variation": 0.0,
    "beta": 0.05,
}


def _rescaled(example: dict[str, Any], factor: float) -> dict[str, Any]:
    """The same problem with the data in another unit."""
    lengths = {name: example[name] * factor for name in ("data_bound", "scale_min", "scale_max")}
    return {**example, **lengths, "density_bound": example["density_bound"] / factor}


@check(
    "thm:pubpri",
    "thm:pubpri/units",
    code=bounds.thm_pubpri,
    rejects=[
        printed(bounds.thm_pubpri),
        lambda *args, **named: bounds.thm_pubpri(*args, **named) * named["data_bound"],
    ],
)
def check_units(subject: Callable[..., float] = bounds.thm_pubpri) -> str:
    """A loss difference has no unit, so neither may its bound: millimetres and kilometres must agree."""
    here = subject(10**6, 100, **_EXAMPLE)
    for factor in (1e-6, 1e-3, 1e3):
        there = subject(10**6, 100, **_rescaled(_EXAMPLE, factor))
        assert math.isclose(here, there, rel_tol=1e-9), f"unit changed by {factor}: {here:.4g} becomes {there:.4g}"
    paper = [bounds.thm_pubpri(10**6, 100, version="paper", **_rescaled(_EXAMPLE, f)) for f in (1e-3, 1.0, 1e3)]
    assert [f"{value:.3g}" for value in paper] == ["13.4", "148", "1.33e+08"], "as the row says"
    return f"corrected bound has no unit; printed: {paper[0]:.3g}, {paper[1]:.3g}, {paper[2]:.3g} in km, m, mm"


@check(
    "thm:pubpri",
    "thm:pubpri/rate",
    code=bounds.thm_pubpri,
    rejects=[scaled(bounds.thm_pubpri, 0.01), scaled(bounds.thm_pubpri, 3e-3)],
)
def check_public_fit(subject: Callable[..., float] = bounds.thm_pubpri) -> str:
    """End to end on uniform data, D = D', two quantiles: excess loss of the average iterate below the bound."""
    worst, n, steps, bound_b, low, high = 0.0, 10, 400, 1.0, 0.05, 0.5
    ranks = np.array([3, 7])
    for seed in range(5):
        rng = np.random.default_rng([53, seed])
        sizes = bounds.pubpri_step_sizes(steps, quantiles=2, data_bound=bound_b, scale_min=low, scale_max=high)
        theta, phi = np.zeros(2), np.full(2, (1 / low + 1 / high) / 2)
        sums = np.zeros((2, 2))
        for _ in range(steps):
            sums += (theta, phi)
            data = np.sort(rng.uniform(-1, 1, n))
            _, slope_theta, slope_phi = laplace_quantiles(theta, phi, data[ranks - 1], data[ranks])
            theta = np.clip(theta - sizes.location * slope_theta, -bound_b / low, bound_b / low)
            phi = np.clip(phi - sizes.inverse_scale * slope_phi, 1 / high, 1 / low)
        mean_theta, mean_phi = sums / steps
        fresh = np.sort(rng.uniform(-1, 1, (400, n)), axis=1)
        candidates = [
            (mean_theta, mean_phi),
            *((np.array([-0.45, 0.27]) / s, np.full(2, 1 / s)) for s in (0.1, 0.15, 0.2)),
        ]
        each = [laplace_interval(t, f, fresh[:, ranks - 1], fresh[:, ranks])[0] for t, f in candidates]
        losses = [float(np.mean(np.log(np.sum(np.exp(x), axis=1)))) for x in each]
        excess = losses[0] - min(losses[1:])
        bound = subject(
            steps * n,
            n,
            quantiles=2,
            data_bound=bound_b,
            scale_min=low,
            scale_max=high,
            density_bound=0.5,
            total_variation=0.0,
            beta=0.05,
        )
        worst = max(worst, excess / bound)
        assert excess <= bound, (seed, excess, bound)
    assert worst <= 0.06, "as the row says"
    return f"public fit, 5 seeded runs: excess loss at most {worst:.3f} of the corrected bound"


def _resized(location: float, inverse_scale: float) -> Callable[..., Any]:
    """Step sizes a little off."""

    def resized(*args: Any, **named: Any) -> Any:
        sizes = bounds.pubpri_step_sizes(*args, **named)
        return sizes._replace(location=sizes.location * location, inverse_scale=sizes.inverse_scale * inverse_scale)

    return resized


@check(
    "thm:pubpri",
    "thm:pubpri/step-sizes",
    "thm:pubpri/online-error",
    code=bounds.pubpri_step_sizes,
    rejects=[
        printed(bounds.pubpri_step_sizes),
        lambda *args, **named: bounds.pubpri_step_sizes(*args, **named)._replace(location=1.0),
        *(_resized(*by) for by in ((0.99, 1.0), (1.01, 1.0), (1.0, 0.99), (1.0, 1.01))),
    ],
)
def check_descent_regret(subject: Callable[..., Any] = bounds.pubpri_step_sizes) -> str:
    """The corrected step sizes minimise D^2/(2 eta) + eta T G^2/2 for both parameters, whatever the unit."""
    for steps, m, b, low, high in ((100, 4, 10.0, 1.0, 5.0), (7, 1, 1e-3, 1e-5, 1e-4)):
        sizes = subject(steps, quantiles=m, data_bound=b, scale_min=low, scale_max=high)
        radius, slope = math.sqrt(m) * b / low, 1.0
        half, steep = math.sqrt(m) * (1 / low - 1 / high) / 2, b + high
        for eta, distance, gradient in ((sizes.location, radius, slope), (sizes.inverse_scale, half, steep)):
            regret = distance**2 / (2 * eta) + eta * steps * gradient**2 / 2
            assert math.isclose(regret, distance * gradient * math.sqrt(steps), rel_tol=1e-9)
        eta = bounds.pubpri_step_sizes(steps, quantiles=m, data_bound=b, scale_min=low, scale_max=high, version="paper")
        regret = radius**2 / (2 * eta.location) + eta.location * steps * slope**2 / 2
        assert math.isclose(regret / steps, (b + b / low**2) / 2 * math.sqrt(m / steps)), "as the row says"
    return "step sizes (B/sigma_min) sqrt(m/T) and (1/sigma_min - 1/sigma_max)/(2(B + sigma_max)) sqrt(m/T) are optimal"


def _linear_regret(sizes: Any, m: int, b: float, scales: tuple[float, float], middles: list[float]) -> float:
    """Of descent on all quantiles' loss, intervals of width B/100 at these places, against the best corner of the box:
    at least the regret, as the loss is convex."""
    low, high = scales
    theta, phi, lost, sums = np.zeros(m), np.full(m, (1 / low + 1 / high) / 2), 0.0, np.zeros((2, m))
    for middle in middles:
        ends = np.full(m, middle - 0.005 * b), np.full(m, middle + 0.005 * b)
        _, *slopes = laplace_quantiles(theta, phi, *ends)
        lost, sums = lost + float(theta @ slopes[0] + phi @ slopes[1]), sums + slopes
        theta = np.clip(theta - sizes.location * slopes[0], -b / low, b / low)
        phi = np.clip(phi - sizes.inverse_scale * slopes[1], 1 / high, 1 / low)
    return lost + b / low * np.abs(sums[0]).sum() - np.minimum(sums[1] / low, sums[1] / high).sum()


@check(
    "thm:pubpri/online-error",
    code=bounds.pubpri_step_sizes,
    rejects=[
        (0.99, 1.0, bounds.pubpri_step_sizes),
        (1.0, 0.99, bounds.pubpri_step_sizes),
        *((1.0, 1.0, _resized(by, 1.0)) for by in (0.1, 10.0)),
        (1.0, 1.0, _resized(1.0, 0.1)),
        (1.0, 1.0, printed(bounds.pubpri_step_sizes)),
    ],
)
def check_descent_runs(
    subject: tuple[float, float, Callable[..., Any]] = (1.0, 1.0, bounds.pubpri_step_sizes),
) -> str:
    """Descent with the corrected steps, 1 to 100 of them: T times the first term is never exceeded, and all of it is
    needed for one scale and all intervals at B, and for one narrow range of scales and little of locations.

    subject: factors of the parts of theta and of phi, and the steps.
    """
    boxes = (
        (1, 1.0, 0.5, 0.5),
        (2, 10.0, 1.0, 5.0),
        (1, 1e-3, 1e-4, 1e-2),
        (3, 1.0, 0.5, 20.0),
        (1, 1e-4, 100.0, 101.0),
    )
    shares: dict[tuple[float, ...], float] = {}
    for steps, box in itertools.product((1, 2, 7, 30, 100), boxes):
        m, b, low, high = box
        sizes = subject[2](steps, quantiles=m, data_bound=b, scale_min=low, scale_max=high)
        parts = subject[0] * b / low, subject[1] * (1 / low - 1 / high) * (b + high) / 2
        for middles in ([0.995 * b] * steps, ([0.995 * b, -0.995 * b] * steps)[:steps]):
            regret = _linear_regret(sizes, m, b, (low, high), middles)
            share = regret / (sum(parts) * math.sqrt(m * steps))
            assert share <= 1 + 1e-12, (steps, box, share)
            shares[box] = max(shares.get(box, 0.0), share)
    assert min(shares[boxes[0]], shares[boxes[-1]]) > 0.99, "a smaller bound is enough"
    return f"descent of the public fit: regret at most {max(shares.values()):.3f} of D G sqrt(T) for both together"


Ratio = tuple[Callable[[Any], Any], Callable[[Any], Any]]
RATIO: Ratio = (lambda n: 2 * n - 1, lambda n: n * (n - 1))


@check(
    "thm:pubpri/floor-ratio",
    "thm:pubpri/rate",
    rejects=[
        (lambda n: n + 1, RATIO[1]),
        (lambda n: 2 * n, RATIO[1]),
        *((lambda n, by=by: F(by, 100) * (2 * n - 1), RATIO[1]) for by in (99, 101)),
        (RATIO[0], lambda n: n * (n - 1) - 1),
        (RATIO[0], lambda n: n * (n - 1) + 1),
        (RATIO[0], lambda n: n),
        (lambda n: z3.If(n < 40, 2 * n - 1, n + 1) if z3.is_expr(n) else 2 * n - 1 if n < 40 else n + 1, RATIO[1]),
    ],
)
def check_floor_ratio(subject: Ratio = RATIO) -> str:
    """1/floor(N/n) <= (2n-1)/N for all N >= n, with equality at N = 2n - 1; (n+1)/N from N = n(n-1) on, and not
    at one less if n >= 3: z3 for all n and N, and floors for small ones.

    subject: the numerator, and the N from which (n+1)/N holds, for given n.
    """
    numerator, start = subject
    n, size, steps = z3.Reals("n N T")
    floor = (n >= 1, steps >= 1, n * steps <= size, size <= n * steps + n - 1)  # T = floor(N/n), for integers
    follows(*floor, goal=size <= numerator(n) * steps)
    follows(n >= 1, size == 2 * n - 1, steps == 1, goal=z3.And(*floor, size == numerator(n) * steps))
    follows(*floor, size >= start(n), steps >= n - 1, goal=size <= (n + 1) * steps)
    follows(*floor, steps <= n - 2, goal=size < start(n))  # there is no integer between n - 2 and n - 1
    last, before = start(n) - 1, n - 2
    follows(n >= 3, goal=z3.And(n * before <= last, last <= n * before + n - 1, last > (n + 1) * before))
    follows(*floor, goal=z3.And(n * n * steps <= n * size, n * size <= (n + 1) * size))
    for n_records in range(1, 40):
        for total in range(n_records, 40 * n_records):
            assert F(1, total // n_records) <= F(numerator(n_records)) / total, (total, n_records)
            assert total < start(n_records) or F(1, total // n_records) <= F(n_records + 1, total), (total, n_records)
    assert F(1, 5 // 3) > F(3 + 1, 5), "the row's counterexample"
    b, low, high = z3.Reals("B low high")
    follows(b > 0, low > 0, low <= high, goal=(high - low) * (4 * b + high) < 4 * b * high + high * high)  # printed "="
    return "1/T <= (n+1)/N false: N=5, n=3 gives 1 > 4/5; 1/T <= (2n-1)/N holds and is sharp (z3, all n and N)"


@dataclass(frozen=True)
class Fit:
    """Bound and step size for theta of thm:pubpri: m = 1, one scale sigma, data in [-B, B], TV_q = 0, beta' = 1/20."""

    bound: Callable[[int, int, Fraction, Fraction, Fraction], arb]
    step: Callable[[int, Fraction, Fraction], arb]


def printed_bound(size: int, n: int, b: Fraction, sigma: Fraction, kappa: Fraction) -> arb:
    """As printed."""
    part = F(n + 1, size)
    inside = ball(2 * kappa * (n + 1) * size * 20) * (2 * ball(sigma)).sqrt()
    spread = ball(4 * b / sigma) + log_of(4 * kappa * (n + 1) * size * sigma * 20)
    descent = ball(b + 4 * b * sigma + sigma**2) * ball(part).sqrt()
    return (
        descent
        + 2 * spread * (2 * ball(part) * log_of(80)).sqrt()
        + ball(part / 20) * (3 + ball(4 * b / sigma) + 4 * log_of(inside))
    )


def corrected_bound(size: int, n: int, b: Fraction, sigma: Fraction, kappa: Fraction) -> arb:
    """As corrected; nothing in it has a unit."""
    steps = size // n
    largest = ball(2 * b / sigma) + log_of(4 * kappa * n**2 * steps * sigma * 20)
    root = (2 * log_of(80) / steps).sqrt()
    return ball(b / sigma) / arb(steps).sqrt() + largest * root + (largest + ball(F(3, 2))) / (20 * steps)


CORRECTED = Fit(corrected_bound, lambda steps, b, sigma: ball(b / sigma) / arb(steps).sqrt())
PRINTED = Fit(printed_bound, lambda steps, b, sigma: ball(b) / arb(steps).sqrt())
MIXED = Fit(corrected_bound, PRINTED.step)


@check("thm:pubpri", "thm:pubpri/units", "thm:pubpri/step-sizes", "thm:pubpri/online-error", rejects=[PRINTED, MIXED])
def check_fit(subject: Fit = CORRECTED) -> str:
    """Data within sigma/10 of 5 sigma, B = 10 sigma, n = 2, N = 10^8: descent from 0 moves at most T times its step.

    Each loss at theta is at least 5 - 1/10 - theta, less log sinh u, and at the best location at most 1/10 less it.
    """
    size, n = 10**8, 2
    for sigma in (F(1, 10**9), F(1)):
        b, kappa = 10 * sigma, F(5) / sigma
        excess = ball(F(48, 10)) - (size // n) * subject.step(size // n, b, sigma)
        assert excess < subject.bound(size, n, b, sigma, kappa), f"sigma = {sigma}: excess {float(excess):.3f}"
        other = subject.bound(size, n, 1000 * b, 1000 * sigma, kappa / 1000)
        assert abs(other - subject.bound(size, n, b, sigma, kappa)) < ball(F(1, 10**30)), "changes with the unit"
    sigma = F(1, 10**9)
    paper = printed_bound(size, n, 10 * sigma, sigma, 5 / sigma)
    moved = (size // n) * PRINTED.step(size // n, 10 * sigma, sigma)
    assert moved < ball(F(1, 10**4)) and ball(F(48, 10)) - moved > ball(F(479, 100)), "as the rows say"
    for low, width in itertools.product((4.9, 4.95, 5.0, 5.05), (1e-9, 0.01, 0.05)):  # intervals, in units of sigma
        losses = [stable_float(place, 1.0, low, low + width) for place in (float(moved), 5.0)]
        assert losses[0] - losses[1] > 4.79, "as the rows say, for every sample"
    assert round(float(paper), 2) == 0.07
    return f"thm:pubpri as printed, sigma = 10^-9: excess above 4.79, bound {float(paper):.3f} (balls)"


def scale_regret(steps: int, low: float, high: float, width: float, step: float) -> float:
    """Regret per step of gradient descent on phi in [1/high, 1/low], from the middle, where every interval has that
    width around the location."""
    phi, total = 0.5 / low + 0.5 / high, 0.0
    for _ in range(steps):
        fallen = -math.expm1(-0.5 * width * phi)
        total -= math.log(fallen)
        phi = min(max(phi + step * 0.5 * width * (1.0 - fallen) / fallen, 1.0 / high), 1.0 / low)
    return total / steps + math.log(-math.expm1(-0.5 * width / low))  # the largest phi is the best


@check(
    "thm:pubpri/step-sizes",
    code=bounds.pubpri_step_sizes,
    rejects=[
        lambda steps, **box: bounds.pubpri_step_sizes(steps, **box, version="paper"),
        lambda steps, **box: (0.0, 1e-3 * bounds.pubpri_step_sizes(steps, **box)[1]),
    ],
)
def check_scale_step(subject: Callable[..., tuple[float, float]] = bounds.pubpri_step_sizes) -> str:
    """Two scales, and intervals that want the least: descent with the printed step for phi hardly moves, and loses more
    than the corrected bound has for it."""
    low, high, reach, steps = 1e-9, 1e-7, 1e-8, 10**5
    box = {"quantiles": 1, "data_bound": reach, "scale_min": low, "scale_max": high}
    allowed = (reach / low + (1 / low - 1 / high) * (reach + high) / 2) / math.sqrt(steps)
    lost = [
        scale_regret(steps, low, high, 0.01 * low, sizes[1])
        for sizes in (subject(steps, **box), bounds.pubpri_step_sizes(steps, **box, version="paper"))
    ]
    for phi in (1 / high, 0.3 / low):
        value = laplace_interval(0.0, phi, -0.005 * low, 0.005 * low)[0]
        assert math.isclose(value, -math.log(-math.expm1(-0.005 * low * phi)), rel_tol=1e-9)
    assert lost[0] <= allowed, "the step is too small"
    assert [round(value, 2) for value in (lost[1], lost[0], allowed)] == [0.68, 0.07, 0.2], "as the row says"
    return (
        f"two scales: {lost[1]:.2f} lost per step with the printed step for phi, {lost[0]:.2f} with the corrected one"
    )


def rate_of(tv: float, m: int, n: int, size: int) -> float:
    """TV_q + sqrt(m n/N), and the logarithm that the tilde hides, for the units of `check_rate`."""
    return math.log(1000 * n * m * size) * (tv + math.sqrt(m * n / size))


@check(
    "thm:pubpri/rate",
    code=bounds.thm_pubpri,
    rejects=[
        lambda size, n, *, quantiles, **named: n**0.1 * bounds.thm_pubpri(size, n, quantiles=quantiles, **named),
        lambda size, n, *, quantiles, **named: (
            quantiles**0.55 * bounds.thm_pubpri(size, n, quantiles=quantiles, **named)
        ),
        lambda size, n, **named: (size / n) ** 0.05 * bounds.thm_pubpri(size, n, **named),
        lambda *a, total_variation, **named: bounds.thm_pubpri(*a, total_variation=total_variation**0.9, **named),
    ],
)
def check_rate(subject: Callable[..., float] = bounds.thm_pubpri) -> str:
    """The bound is at most 4.79 times log(1000 mnN) (TV_q + sqrt(mn/N)) for m to 10^6, n to 10^9, N to 10^49 at once,
    with B = sigma_max = kappa = 1, sigma_min = 1/2; N is a multiple of n, or one short of the next."""
    box: dict[str, Any] = {"data_bound": 1.0, "scale_min": 0.5, "scale_max": 1.0, "density_bound": 1.0, "beta": 0.05}
    shares = []
    for m, n, blocks, tv, short in itertools.product(
        (1, 10**3, 10**6),
        (1, 2, 3, 10, 100, 1000, 10**4, 10**9),
        (1, 2, 10**6, 10**40),
        (0.0, 1e-9, 0.1, 1.0),
        (False, True),
    ):
        size = n * blocks + short * (n - 1)
        found = subject(size, n, quantiles=m, total_variation=tv, **box)
        shares.append(found / rate_of(tv, m, n, size))
    assert 4.78 < max(shares) <= 4.79, max(shares)
    return f"thm:pubpri: at most {max(shares):.2f} log(1000 mnN) (TV_q + sqrt(mn/N)) for {len(shares)} sizes"


class Compared(float):
    """Counts comparisons."""

    made = 0

    def __lt__(self, other: float) -> bool:
        Compared.made += 1
        return float.__lt__(self, other)


def by_medians(values: list[Compared]) -> Compared:
    """The median of medians of five."""
    fives = [sorted(values[i : i + 5]) for i in range(0, len(values), 5)]
    return selected([five[len(five) // 2] for five in fives], len(fives) // 2)


def selected(values: list[Compared], k: int, pivot_of: Callable[..., Compared] = by_medians) -> Compared:
    """The k-th of the values, from 0: what a block of public records is asked for."""
    while len(values) > 5:
        pivot = pivot_of(values)
        low, high = [v for v in values if v < pivot], [v for v in values if pivot < v]
        upto = len(values) - len(high)
        if len(low) <= k < upto:
            return pivot
        values, k = (low, k) if k < len(low) else (high, k - upto)
    return sorted(values)[k]


BAD_ORDER = [
    29, 17, 28, 34, 2, 15, 35, 32, 31, 18, 33, 3, 30, 27, 0, 23, 4, 20,
    24, 1, 13, 10, 12, 5, 8, 6, 11, 16, 7, 14, 22, 19, 21, 9, 25, 26,
]  # fmt: skip


@check(
    "thm:pubpri/rate",
    rejects=[lambda values: values[0], lambda values: values[len(values) // 2], lambda values: min(values)],
)
def check_time(subject: Callable[[list[Compared]], Compared] = by_medians) -> str:
    """Time O(mN): an order statistic of a block costs at most fifteen comparisons a record in the orders counted, of
    which a bad one was searched for; two for each of m quantiles and T blocks of n, T n <= N, are at most 30 m N."""
    most = 0.0
    for n in (1, 2, 6, 30, len(BAD_ORDER), 400, 5000):
        rising = list(range(n))
        orders = [rising, rising[::-1], rising[::2] + rising[1::2][::-1], [v % 3 for v in rising], [0] * n]
        orders.append(np.random.default_rng(n).permutation(n).tolist())
        orders += [BAD_ORDER] * (n == len(BAD_ORDER))
        for order, k in itertools.product(orders, sorted({0, min(2, n - 1), n // 3, n // 2, n - 1})):
            Compared.made = 0
            assert float(selected([Compared(v) for v in order], k, subject)) == sorted(order)[k]
            most = max(most, Compared.made / n)
            assert Compared.made <= 15 * n, (n, k, Compared.made)
    assert most > 14, "fewer will do"
    return f"an order statistic of a block costs at most {most:.1f} comparisons a record: 30 m N for all of a fit"
