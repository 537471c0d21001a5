"""Public-private and sequential release (Section 5, Appendix C) and online-to-batch conversion (Appendix E)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import sympy

from pq.core.bounds import learning as bounds
from proofs_checks.laplace import stable_float
from proofs_checks.learning import _prefix_nodes

F = Fraction

# ---- thm:pubpri ------------------------------------------------------------------------------------------------------

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


def check_units(subject: Callable[..., float] = bounds.thm_pubpri) -> str:
    """A loss difference has no unit, so neither may its bound: millimetres and kilometres must agree."""
    here = subject(10**6, 100, **_EXAMPLE)
    for factor in (1e-6, 1e-3, 1e3):
        there = subject(10**6, 100, **_rescaled(_EXAMPLE, factor))
        assert math.isclose(here, there, rel_tol=1e-9), f"unit changed by {factor}: {here:.4g} becomes {there:.4g}"
    paper = [bounds.thm_pubpri(10**6, 100, version="paper", **_rescaled(_EXAMPLE, f)) for f in (1e-3, 1.0, 1e3)]
    return f"corrected bound has no unit; printed: {paper[0]:.3g}, {paper[1]:.3g}, {paper[2]:.3g} in km, m, mm"


def check_step_size_units(subject: str = "corrected") -> str:
    """Exact counterexample by choice of unit: with the printed step size gradient descent does not move.

    One quantile, n = 2, all data within sigma/10 of B/2 = 5 sigma, one scale.  The losses at theta are at least
    5 - 0.1 - theta - log sinh u, those at the best location at most 0.1 - log sinh u, for every draw.
    """
    size, n, sigma = 10**8, 2, 1e-9
    common: dict[str, Any] = {"quantiles": 1, "data_bound": 10 * sigma, "scale_min": sigma, "scale_max": sigma}
    step = bounds.pubpri_step_sizes(size // n, version=subject, **common).location  # type: ignore[arg-type]
    farthest = step * (size // n)  # gradients are at most 1, and descent starts at 0
    excess = max(0.0, 5 - 0.2 - farthest)
    bound = bounds.thm_pubpri(
        size,
        n,
        density_bound=1 / (0.2 * sigma),
        total_variation=0.0,
        beta=0.05,
        version=subject,  # type: ignore[arg-type]
        **common,
    )
    assert excess <= bound, f"excess loss at least {excess:.3f}, bound {bound:.3f}"
    common["density_bound"] = 1 / (0.2 * sigma)
    paper = bounds.thm_pubpri(size, n, total_variation=0.0, beta=0.05, version="paper", **common)
    return f"printed step in a unit with sigma = 1e-9, N = 1e8: excess loss >= 4.79 for every sample, bound {paper:.2f}"


def check_floor_ratio(subject: Callable[[int, int], Fraction] = lambda size, n: F(2 * n - 1, size)) -> str:
    """1/floor(N/n) <= (2n-1)/N for all N >= n, with equality at N = 2n - 1; (n+1)/N needs N >= n(n-1)."""
    for n in range(1, 40):
        for size in range(n, 40 * n):
            assert F(1, size // n) <= subject(size, n), f"N={size}, n={n}"
            assert (size // n) * n**2 <= (n + 1) * size
        assert F(1, (2 * n - 1) // n) == F(2 * n - 1, 2 * n - 1)
        assert subject(2 * n - 1, n) == 1, "not the least bound of this form"
    failures = [(size, n) for n in range(1, 6) for size in range(n, 40) if F(1, size // n) > F(n + 1, size)]
    assert failures[0] == (5, 3)
    assert all(size < n * (n - 1) for size, n in failures)
    return "1/T <= (n+1)/N false: N=5, n=3 gives 1 > 4/5; 1/T <= (2n-1)/N holds and is sharp"


def two_losses(b_over_sigma: float, m: int, scale: float, psi: float) -> float:
    """Corrected bound of U(mu') + U(mu*)."""
    return 4 * b_over_sigma + math.log(4 * m**2 * scale**2 / psi**2)


def check_lost_square(subject: Callable[[float, int, float, float], float] = two_losses) -> str:
    """Two losses of at most L = 2B/sigma + log(2 m sigma_max/psi) add to 4B/sigma + log(4 m^2 sigma_max^2/psi^2)."""
    for psi in (1e-9, 0.01, 0.5):
        one = 2 * 10.0 + math.log(2 * 3 * 4.0 / psi)
        assert subject(10.0, 3, 4.0, psi) >= 2 * one * (1 - 1e-12), psi
    missing = 2 * (20.0 + math.log(24 / 1e-9)) - (40.0 + math.log(4 * 9 * 16 / 1e-9))
    return f"the square of psi is lost under the logarithm: short by log(1/psi) = {missing:.1f} at psi = 1e-9"


def check_separation(subject: Callable[[int, Fraction], Fraction] = lambda n, psi: n * n * psi) -> str:
    """Pr(least separation < psi) <= kappa n^2 psi: exact for the uniform law, 1 - (1 - (n-1) psi)^n."""
    for n in range(2, 30):
        for psi in (F(1, 10**6), F(1, 1000), F(1, 2 * n)):
            exact = 1 - (1 - (n - 1) * psi) ** n
            assert exact <= subject(n, psi), (n, psi)
    # The middle of the printed chain counts ordered pairs: 2 n (n-1) kappa psi, more than n^2 kappa psi from n = 3 on.
    assert 2 * 3 * 2 > 3**2
    return "Pr(psi_z < psi) <= kappa n^2 psi (exact, uniform); the middle step needs n(n-1)/2 pairs (n = 3: 12 > 9)"


def least_separation(data: list[Fraction], ranks: tuple[int, ...]) -> Fraction:
    """psi of the paper: the least distance of any two neighbours."""
    return min(b - a for a, b in pairwise(data))


def interval_separation(data: list[Fraction], ranks: tuple[int, ...]) -> Fraction:
    """Corrected: the least length of the optimal intervals."""
    return min(data[k] - data[k - 1] for k in ranks)


def check_order_statistics(subject: Callable[..., Fraction] = interval_separation) -> str:
    """psi_z is no function of the quantiles' intervals, on which TV_q is defined; the least optimal interval is."""
    first, second = [F(0), F(1, 2), F(1), F(2)], [F(0), F(1, 2), F(1), F(101, 100)]
    rank = 2  # q = 1/2: the optimal interval is (1/2, 1] in both
    assert subject(first, (rank,)) == subject(second, (rank,)), "depends on more than the optimal interval"
    assert all(interval_separation(x, (rank,)) >= least_separation(x, (rank,)) for x in (first, second))
    return "psi_z is no function of the quantiles' intervals: (0,1/2,1,2), (0,1/2,1,1.01) at q = 1/2; their lengths are"


def unit_free_tail(psi: Any) -> Any:
    """Corrected: the integral of log(psi/y) over a law with distribution function at most y, up to psi."""
    return psi


def check_log_integral(subject: Callable[[Any], Any] = unit_free_tail) -> str:
    """E[log(psi/y); y < psi] <= kappa n^2 psi; the printed E[log(1/y)] bound is negative beyond psi = e."""
    y, psi = sympy.symbols("y psi", positive=True)
    exact = sympy.integrate(sympy.log(psi / y), (y, 0, psi))
    assert sympy.simplify(exact - subject(psi)) == 0
    assert 4 * (1 - math.log(4)) < 0  # while a law with no mass below 4 has integral 0
    return "tail integral: kappa n^2 psi with log(psi/y), any unit; printed psi(1 + log(1/psi)) < 0 at psi = 4"


def difference_bound(largest: Fraction, variation: Fraction) -> Fraction:
    """Corrected argument: |U(mu') - U(mu*)| <= L, and expectations of it differ by at most 2 L TV."""
    return 2 * largest * variation


def check_total_variation(subject: Callable[[Fraction, Fraction], Fraction] = difference_bound) -> str:
    """The term 2 L TV_q is right by way of the difference of the losses; by way of their sum it would be 4 L TV_q."""
    rng = np.random.default_rng(47)
    for _ in range(300):
        p, r = ([F(int(v), 60) for v in rng.multinomial(60, np.full(4, 0.25))] for _ in range(2))
        mine, best = ([F(int(v), 10) for v in rng.integers(0, 11, 4)] for _ in range(2))
        variation = sum(abs(a - b) for a, b in zip(p, r, strict=True)) / 2
        excess = [sum(w * (a - b) for w, a, b in zip(law, mine, best, strict=True)) for law in (p, r)]
        assert abs(excess[0] - excess[1]) <= subject(F(1), variation)
    # Both laws on two points, losses (1, 0) and (0, 1): the sum is 1 + 1 on a total variation of 1.
    excess, variation = F(1) - F(-1), F(1)
    assert excess == subject(F(1), variation), "not the least constant"
    return (
        "E_D - E_D' of U(mu') - U(mu*) is at most 2 L TV (sharp); the printed sum argument loses a factor 2 on the way"
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
    return "step sizes (B/sigma_min) sqrt(m/T) and (1/sigma_min - 1/sigma_max)/(2(B + sigma_max)) sqrt(m/T) are optimal"


def check_public_fit(subject: Callable[..., float] = bounds.thm_pubpri) -> str:
    """End to end on uniform data, D = D', two quantiles: excess loss of the average iterate below the bound."""
    from pq.losses import laplace_interval, laplace_quantiles

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
    return f"public fit, 5 seeded runs: excess loss at most {worst:.3f} of the corrected bound"


# ---- thm:sequential --------------------------------------------------------------------------------------------------


def first_step_regret(features: int, feature_bound: float, weight_bound: float, scale: float) -> float:
    """Exact regret after one step from weights 0: all features F, data at distance d B F, one scale."""
    reach, half = features * weight_bound * feature_bound / scale, 0.01
    return reach - math.log(math.sinh(half) / -math.expm1(-half))


_ONE_STEP: tuple[dict[str, Any], ...] = (
    {"features": 6000, "feature_bound": 100.0, "weight_bound": 1.0, "scale": 0.01, "epsilon": 1.0, "beta": 0.1},
    {"features": 400, "feature_bound": 100.0, "weight_bound": 1.0, "scale": 0.01, "epsilon": 8.0, "beta": 0.5},
    {"features": 1, "feature_bound": 1.0, "weight_bound": 1.0, "scale": 1.0, "epsilon": 1.0, "beta": 0.5},
)


def _sequential(subject: Callable[..., float], case: dict[str, Any], **more: Any) -> float:
    scale, d = case["scale"], case["features"]
    return subject(
        1,
        quantiles=1,
        features=d,
        feature_bound=case["feature_bound"],
        weight_bound=case["weight_bound"],
        data_bound=2 * d * case["weight_bound"] * case["feature_bound"],
        scale_min=scale,
        scale_max=scale,
        epsilon=case["epsilon"],
        delta=1e-6,
        beta=case["beta"],
        **more,
    )


def check_sequential_dimension(subject: Callable[..., float] = bounds.thm_sequential) -> str:
    """T = 1: no noise enters, the regret is exact, and it grows with d where the printed bound has d^(3/4)."""
    for case in _ONE_STEP:
        regret = first_step_regret(case["features"], case["feature_bound"], case["weight_bound"], case["scale"])
        bound = _sequential(subject, case)
        assert regret <= bound, f"d={case['features']}: regret {regret:.6g} > bound {bound:.6g}"
    case = _ONE_STEP[0]
    regret = first_step_regret(case["features"], case["feature_bound"], case["weight_bound"], case["scale"])
    paper = _sequential(bounds.thm_sequential, case, version="paper")
    return f"printed bound false at T=1, d=6000, eps'=1: regret {regret:.4g} > {paper:.4g}"


def balanced(a: Any, b: Any) -> Any:
    """min over eta of a/eta + eta b."""
    return 2 * sympy.sqrt(a * b)


def check_dimension_power(subject: int = 2) -> str:
    """2 sqrt(A D) of the printed A and D has d^(subject/2) before the noise: sqrt(m) d, not sqrt(m d)."""
    b, f, s, m, d, t, k, y = sympy.symbols("B F s m d T k Y", positive=True)
    value = balanced(2 * b**2 * m * d / s**2, k * t * f**2 * d * y)
    wanted = 2 * b * f / s * sympy.sqrt(2 * m * d**subject * k * t * y)
    assert sympy.simplify(value - wanted) == 0
    # With the noise Y ~ sqrt(m d) the regret has d^(5/4); the printed d^(3/4) comes from this lost sqrt(d).
    return "A = 2B^2 m d/sigma^2 and D = k T F^2 d Y give d sqrt(m Y): the printed sqrt(md) loses sqrt(d), so d^(5/4)"


def simplified(steps: int, d: int, beta: float, *, keep_one: bool = True) -> float:
    """The simplified regret for B = F = sigma = m = eps' = 1, delta' = 1e-6, with the corrected power of d."""
    noise = 2 * math.sqrt(2 * d * math.log(steps / beta) * math.log(2e6))
    levels = steps.bit_length()
    lead = math.sqrt(2 * levels * steps * (noise + (1 if keep_one else 0)))
    return 2 * (d + 2) * lead


def check_dropped_one(subject: Callable[[int, int, float], float] = simplified) -> str:
    """1 + (2/eps') Q is not at most (2/eps') Q: at T = 1, beta' near 1, the bound vanishes and the regret does not."""
    for d in (1, 3):
        for beta in (0.5, 0.999, 0.9999999):
            assert first_step_regret(d, 1.0, 1.0, 1.0) <= subject(1, d, beta), (d, beta)
    shown = 4 * 3 * math.sqrt(math.sqrt(2 * math.log(1 / 0.9999999) * math.log(2e6)))
    return f"'for small eps' the 1 is dropped: T=1, d=1, beta'=0.9999999 has regret 0.99 > {shown:.2f}"


def check_gradient_norms(subject: float = 1.0) -> str:
    """Squared gradient norms of log-sum-exp: |f|^2 sum p_j^2 <= F^2 d, as the squares of a law add to at most 1."""
    rng = np.random.default_rng(67)
    for _ in range(300):
        m, d = int(rng.integers(1, 6)), int(rng.integers(1, 6))
        law = [F(int(v), 40) for v in rng.multinomial(40, rng.dirichlet(np.full(m, 0.3)))]
        features = [F(int(v), 10) for v in rng.integers(-10, 11, d)]
        total = sum(p * p for p in law) * sum(f * f for f in features)
        assert total <= F(subject) * d
    assert subject <= 1, "attained by a law on one quantile and features at their bound"
    return "sum_j |grad_j|^2 <= F^2 d: 300 exact cases, attained"


def last_line(b: float, f: float, scale: float) -> float:
    """Corrected last line over sqrt(m d k T Y)/sigma_min: the root of 2 is kept."""
    return 2 * math.sqrt(2) * (b * (f + 1) + scale)


def check_last_line(subject: Callable[[float, float, float], float] = last_line) -> str:
    """The last printed line drops a factor sqrt(2): 2 BF sqrt(2) + 2 (B + s) sqrt(2) <= 2 (B(F+1) + s) is false."""
    for b, f, scale in ((1.0, 1.0, 1.0), (1e-3, 10.0, 5.0), (3.0, 0.1, 0.0)):
        before = 2 * math.sqrt(2) * b * f + 2 * math.sqrt(2) * (b + scale)
        assert before <= subject(b, f, scale) * (1 + 1e-12), (b, f, scale)
    return "the last step of the regret loses a factor sqrt(2) (B = F = sigma_max = m = d = 1: 8.49 > 6)"


def noise_term(p: int, log_term: float) -> float:
    """Corrected noise of one run over eps and sqrt(2 log(2/delta')): width plus deviation, times twice the bound."""
    return 2 * (math.sqrt(p) + math.sqrt(2 * log_term))


def check_noise_term(subject: Callable[[int, float], float] = noise_term) -> str:
    """thm:dpftrl gives 2 (sqrt(p) + sqrt(2 log(T/b))) since signs can flip, for the printed sqrt(p log(T/b))."""
    for p in (1, 2, 10, 100):
        for log_term in (0.1, 1.0, 5.0, 20.0):
            assert subject(p, log_term) >= 2 * (math.sqrt(p) + math.sqrt(2 * log_term)) * (1 - 1e-12), (p, log_term)
    return f"noise term at md = 1, log(T/b) = 1: {noise_term(1, 1.0):.2f} by thm:dpftrl with sensitivity 2L, printed 1"


def check_budgets(subject: tuple[Fraction, Fraction] = (F(1, 2), F(1, 2))) -> str:
    """Two runs at (eps'/2, delta'/2) compose to (eps', delta'); 2/eps' in the regret counts the halves once."""
    shares = subject
    assert sum(shares) == 1, "the runs do not compose to the whole budget"
    for epsilon in (F(1), F(1, 3)):
        assert all(1 / (epsilon * share) == 2 / epsilon for share in shares)
    # The printed 4 + (8/eps') X is 2^2 (1 + (2/eps') X); the step sizes need 1/(1 + X/eps_1'), not eps_1'/(1 + X).
    x = F(10)
    assert 1 / (1 + x / F(1, 10)) != F(1, 10) / (1 + x)
    return "budgets add up, halved once; the printed step sizes put eps' over 1 + X where 1/(1 + X/eps') is meant"


def check_data_range(subject: Callable[[float, float, float], float] = lambda b, r, s: r + s) -> str:
    """The gradient in phi grows with the range R of the data, which the printed regret (B only) does not hold."""
    for weight_bound, radius, scale in ((1.0, 100.0, 1.0), (50.0, 2.0, 0.1)):
        low, high = radius * (1 - 1e-6), radius
        step = 1e-6
        slope = (stable_float(0.0, 1 / scale + step, low, high) - stable_float(0.0, 1 / scale - step, low, high)) / (
            2 * step
        )
        assert abs(slope) <= subject(weight_bound, radius, scale) * (1 + 1e-6), (weight_bound, radius)
        assert abs(slope) >= 0.9 * radius - scale
    return "data in [-R, R]: |dU/dphi| reaches about R - sigma (R = 100, B = 1: 99), so R must stand in the regret"


def check_sequential_run(subject: Callable[..., float] = bounds.thm_sequential) -> str:
    """DP-FTRL with the corrected noise and steps on linear data, T = 200, d = 2: regret below the bound, 10 seeds."""
    from pq.losses import laplace_interval

    common: dict[str, Any] = {
        "quantiles": 1,
        "features": 2,
        "feature_bound": 1.0,
        "weight_bound": 1.0,
        "data_bound": 2.5,
    }
    common |= {"scale_min": 0.5, "scale_max": 2.0, "epsilon": 8.0, "delta": 1e-3, "beta": 1e-3}
    steps, worst = 200, 0.0
    sizes = bounds.sequential_step_sizes(steps, **common)
    noise = bounds.dpftrl_noise(steps, 4.0, 5e-4)
    bound = subject(steps, **common)
    for seed in range(10):
        rng = np.random.default_rng([59, seed])
        truth = rng.uniform(-1, 1, 2)
        features = rng.choice([-1.0, 1.0], (steps, 2))
        centre = features @ truth + rng.normal(0, 0.05, steps)
        nodes: dict[tuple[int, int], np.ndarray] = {}
        total, losses = np.zeros(3), np.empty(steps)
        stds = noise * np.array([2 * math.sqrt(2), 2 * math.sqrt(2), 2 * (2.5 + 2.0)])
        for t in range(steps):
            seen = total.copy()
            for block in _prefix_nodes(t):
                seen += nodes.setdefault(block, rng.normal(0, stds))
            weights = np.clip(-sizes.location * seen[:2], -2, 2)
            phi = float(np.clip(1.25 - sizes.inverse_scale * seen[2], 0.5, 2.0))
            loss, slope, slope_phi = laplace_interval(weights @ features[t], phi, centre[t] - 0.05, centre[t] + 0.05)
            losses[t] = loss
            total += (*(slope * features[t]), slope_phi)
        best = min(
            float(np.sum(laplace_interval(features @ truth * f, f, centre - 0.05, centre + 0.05)[0]))
            for f in (0.5, 1.0, 2.0)
        )
        worst = max(worst, (losses.sum() - best) / bound)
        assert losses.sum() - best <= bound, (seed, losses.sum() - best, bound)
    return f"sequential DP-FTRL, 10 seeded runs: regret at most {worst:.2f} of the corrected bound"


# ---- eq:expectation-bound and thm:o2b --------------------------------------------------------------------------------


def expectation_factor(m: int, n: int, epsilon: float, loss: float) -> float:
    """Corrected bracket of ``eq:expectation-bound``: 1 + log(m max(1, eps n)) + E U."""
    return 1 + math.log(m * max(1.0, epsilon * n)) + loss


def check_expectation(subject: Callable[[int, int, float, float], float] = expectation_factor) -> str:
    """log(eps m n) + E U is negative for small eps n although the gap is not: no constant makes the bound true."""
    rate = 2 * math.pi**2 * math.exp(2 * math.log(2))
    for epsilon in (0.01, 0.1, 1.0, 5.0):
        # One record, q = 1/2: rank 0, gap 0 below it and 1 above, prior mass one half each.
        expected = 1 / (1 + math.exp(epsilon / 2))
        assert expected <= rate * subject(1, 1, epsilon, math.log(2)) / epsilon, epsilon
    for n in (1, 10, 1000):
        for epsilon in (1e-4, 0.01, 1.0):
            beta = min(1.0, rate / (epsilon * n))
            bound = rate / epsilon * (math.log(1 / beta) + 0.5) + beta * n
            assert bound <= rate * subject(1, n, epsilon, 0.5) / epsilon * (1 + 1e-12), (n, epsilon)
    return f"one record, eps = 0.01: expected gap 0.4988, log(eps m n) + U = {math.log(0.01 * 2):.2f} < 0"


def _binomial_tail(steps: int, p: float, least: float) -> float:
    """Exact Pr(mean of ``steps`` coins <= p - least)."""
    most = math.floor(steps * (p - least) + 1e-9)
    return sum(math.comb(steps, k) * p**k * (1 - p) ** (steps - k) for k in range(most + 1)) if most >= 0 else 0.0


def check_online_to_batch(subject: Callable[..., float] = bounds.thm_o2b) -> str:
    """Each half of the deviation fails with probability at most beta/2: exact binomial tails."""
    largest = 0.0
    for steps in (1, 5, 20, 100, 400):
        for beta in (0.5, 0.1, 0.01):
            half = subject(steps, regret=0.0, loss_range=1.0, beta=beta) / 2
            assert half <= math.sqrt(math.log(2 / beta) / (2 * steps)) * (1 + 1e-12), "twice what Hoeffding needs"
            for p in (0.1, 0.5, 0.7):
                failure = _binomial_tail(steps, p, half)
                largest = max(largest, failure / (beta / 2))
                assert failure <= beta / 2, (steps, beta, p, failure)
    for beta in (0.5, 0.01):
        steps = bounds.thm_o2b_steps(0.1, loss_range=2.0, beta=beta)
        assert bounds.thm_o2b(steps, regret=steps * 0.05, loss_range=2.0, beta=beta) <= 0.1 * (1 + 1e-12)
    return (
        f"excess <= R/T + B sqrt(2 log(2/b)/T), half the printed deviation (exact tails, at most {largest:.2f} of b/2)"
    )


def enough(alpha: Fraction, regrets: list[Fraction], steps: int) -> bool:
    """Corrected condition: the regret at the number of steps used, not at the least T that would do."""
    return 2 * regrets[steps - 1] <= steps * alpha


def check_regret_condition(subject: Callable[[Fraction, list[Fraction], int], bool] = enough) -> str:
    """T_alpha = min{T: 2 R_T <= T alpha} says nothing of larger T unless R_T/T falls: loss |theta - 1|, theta_1 = 1."""
    alpha, steps = F(1, 10), 1000
    plays = [F(1)] + [F(0)] * (steps - 1)
    regrets, total = [], F(0)
    for theta in plays:
        total += abs(theta - 1)
        regrets.append(total)
    excess = abs(sum(plays) / steps - 1)
    assert excess <= alpha or not subject(alpha, regrets, steps), f"T_alpha = 1, excess {excess} after {steps} steps"
    assert subject(alpha, [F(0)] * steps, steps)
    return "regret must be small at the T used: R_1 = 0 and R_T = T - 1 give T_alpha = 1 and excess 0.999"
