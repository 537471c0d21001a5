"""Learning from private days: privacy of the runs, step sizes, descent."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import sympy
import z3

import pq
from pq import bounds
from pq.learners import OGD
from pq.losses import laplace_interval
from proofs_checks.engine.registry import check
from proofs_checks.tools.broken import printed
from proofs_checks.tools.gaussian import corrected_multiplier, exact_delta, printed_multiplier
from proofs_checks.tools.runs import CENTRES, least_in_box, run_arguments
from proofs_checks.tools.solver import follows

F = Fraction
TWO = Fraction(2)


def printed_runs(epsilon: Any, delta: Any) -> Any:
    """The printed sigma at (eps'/2, delta'/2), for a sensitivity of twice the Lipschitz constant."""
    return printed_multiplier(epsilon / 2, delta / 2)


def _one_lipschitz(epsilon: Any, delta: Any) -> Any:
    """The noise in the printed regret: sensitivity of one Lipschitz constant."""
    return printed_runs(epsilon, delta) / 2


def both_runs(epsilon: Any, delta: Any) -> Any:
    """Corrected noise of each run, over its sensitivity (twice the Lipschitz constant) and sqrt(nodes)."""
    return corrected_multiplier(epsilon / 2, delta / 2)


@check("thm:sequential/privacy", rejects=[printed_runs, _one_lipschitz])
def check_sequential_privacy(subject: Callable[[Any, Any], Any] = both_runs) -> str:
    """Two Gaussian runs make one: exact delta of thm:sequential for data sets that move both gradients all they can."""
    with mpmath.workdps(60):
        delta = mpmath.mpf("1e-6")
        for epsilon in (0.1, 1, 10, 29, 50, 58, 200):
            exact = exact_delta(mpmath.mpf(epsilon), subject(mpmath.mpf(epsilon), delta) / mpmath.sqrt(2))
            assert exact <= delta, (epsilon, mpmath.nstr(exact, 4))
        far = exact_delta(mpmath.mpf(50), printed_runs(mpmath.mpf(50), delta) / mpmath.sqrt(2))
        half = exact_delta(mpmath.mpf(1), printed_runs(mpmath.mpf(1), delta) / 2 / mpmath.sqrt(2))
        limit = 2 * mpmath.log(2 / delta)  # of thm:dpftrl at delta'/2
        assert mpmath.nint(limit) == 29 and limit > 50 / 2, "as the row says"
        assert min(far, half) > delta and mpmath.nstr(half, 1) == "7.0e-6", "as the row says"
    return (
        f"thm:sequential at delta' = 1e-6: exact delta {mpmath.nstr(far, 3)} at eps' = 50 with the printed sigma; "
        f"{mpmath.nstr(half, 3)} at eps' = 1 if its noise is that of the printed regret, one Lipschitz constant"
    )


@check("ours:joint-runs", "thm:sequential/privacy", rejects=[F(4), F(5, 2)])
def check_joint_runs(subject: Fraction = TWO) -> str:
    """Ours: the printed sigma of both runs is (eps', delta')-private together for eps' <= 2 log(2/delta')."""
    # each run has multiplier sqrt(2 L)/(eps'/2), L = log(2/delta'); together sqrt(2) sqrt(2 L)/eps': r^2 = 2 above
    r, s, eps = z3.Reals("r s eps")
    reach = z3.RealVal(str(subject))
    follows(r > 0, r * r == 2, s > 0, eps > 0, eps <= reach * s * s, goal=8 * s * s - eps >= 4 * r * s * s)
    # that is eps' m - 1/(2m) >= sqrt(2 L) for the joint multiplier m, so delta <= Phi(-sqrt(2 L)) <= exp(-L)/2, so
    # below a quarter of delta': exp(-x^2/2)/2 - Phi(-x) rises from 0 and then falls to 0
    x, odds, small = sympy.symbols("x L epsilon", positive=True)
    joint_multiplier = sympy.sqrt(2 * odds) / (small / 2) / sympy.sqrt(2)
    apart = small * joint_multiplier - 1 / (2 * joint_multiplier)
    assert sympy.simplify(apart - (8 * odds - small) / (4 * sympy.sqrt(odds))) == 0
    room = sympy.exp(-(x**2) / 2) / 2 - sympy.erfc(x / sympy.sqrt(2)) / 2
    slope = sympy.exp(-(x**2) / 2) * (1 / sympy.sqrt(2 * sympy.pi) - x / 2)
    assert sympy.simplify(sympy.diff(room, x) - slope) == 0
    assert room.subs(x, 0) == 0 == sympy.limit(room, x, sympy.oo)
    with mpmath.workdps(60):
        for delta in ("0.5", "1e-3", "1e-12"):
            odds = mpmath.log(2 / mpmath.mpf(delta))
            for share in ("0.1", "0.5", "1"):
                epsilon = 2 * odds * mpmath.mpf(share)
                joint = printed_runs(epsilon, mpmath.mpf(delta)) / mpmath.sqrt(2)
                assert exact_delta(epsilon, joint) <= mpmath.mpf(delta) / 4, (delta, share)
    return "two runs with the printed sigma and sensitivity 2L: private together for eps' <= 2 log(2/delta') (z3)"


# T, m, d, epsilon', delta', beta'
RUNS = (
    *((1, 1, 1, 1.0, 1e-6, 0.1), (2, 2, 7, 0.1, 1e-9, 0.9), (3, 7, 2, 3.0, 0.01, 1e-9), (100, 3, 4, 0.5, 1e-6, 0.1)),
    *((1000, 2, 3, 30.0, 0.3, 0.5), (10**6, 9, 20, 8.0, 1e-6, 0.1)),
)
BOXES: tuple[dict[str, float], ...] = (
    {"feature_bound": 2.0, "weight_bound": 0.7, "data_bound": 3.0, "scale_min": 0.2, "scale_max": 1.5},
    {"feature_bound": 0.1, "weight_bound": 5.0, "data_bound": 40.0, "scale_min": 0.9, "scale_max": 1.0},
    {"feature_bound": 1.0, "weight_bound": 1.0, "data_bound": 0.1, "scale_min": 0.01, "scale_max": 30.0},
)


def _slower(steps: int, **named: Any) -> float:
    """An average regret that does not fall like 1/sqrt(T)."""
    return bounds.thm_sequential(steps, **named) * steps**0.25


def _slightly_slower(steps: int, **named: Any) -> float:
    return bounds.thm_sequential(steps, **named) * steps**0.001


def _faster(steps: int, **named: Any) -> float:
    return bounds.thm_sequential(steps, **named) / steps**0.002


@check("thm:sequential/average", code=bounds.thm_sequential, rejects=[_slower, _slightly_slower, _faster])
def check_average_rate(subject: Callable[..., float] = bounds.thm_sequential) -> str:
    """The average regret of thm:sequential falls like 1/sqrt(T) times at most (log T)^(3/4), printed and corrected."""
    names = ("quantiles", "features", "epsilon", "delta", "beta")
    sizes = ((3, 4, 1.0, 1e-6, 0.05), (1, 1, 0.01, 0.1, 0.9), (50, 2, 20.0, 1e-12, 1e-6))
    for version, size, box in itertools.product(("corrected", "paper"), sizes, BOXES):
        common: dict[str, Any] = {**box, **dict(zip(names, size, strict=True))}
        scaled = {k: subject(10**k, version=version, **common) / 10**k * 10 ** (k / 2) for k in range(2, 301)}
        for k in range(2, 300):
            assert scaled[k] <= scaled[k + 1], (version, k)
        for k in (2, 3, 5, 10, 15, 40, 100, 150):  # over doublings of log T, as the tree's levels are whole numbers
            assert scaled[2 * k] / scaled[k] <= 2 ** (0.8 if k < 10 else 0.75), (version, k)
    return "average regret of sequential learning: 1/sqrt(T) times (log T)^(3/4) at most, T = 10^2..10^300"


@check(
    "thm:sequential/average",
    code=(bounds.thm_sequential, laplace_interval),
    rejects=[(1.0, 1.0), (-10.0, 1.0), (10.0, 0.1), (9.0, 1.0), (10.0, 1.01)],
)
def check_average_outside_of_the_box(subject: tuple[float, float] = (10.0, 1.0)) -> str:
    """A map outside of the box, B = 1 with the one scale 1, is ahead of all in it by 9/10 a day, for ever: features
    1/10, optimal intervals (1, 1.001). So may a scale outside be, on (0, 0.001). The theorem is about the box only.

    subject: the map that the best of the box is put beside, and its scale.
    """

    def loss(weight: float, scale: float, low: float) -> float:
        return float(laplace_interval(weight * 0.1 / scale, 1 / scale, low, low + 0.001)[0])

    known: dict[str, Any] = {"quantiles": 1, "features": 1, "feature_bound": 0.1, "weight_bound": 1.0}
    known |= {"data_bound": 1.001, "scale_min": 1.0, "scale_max": 1.0, "epsilon": 1.0, "delta": 1e-6, "beta": 0.05}
    least = min(loss(weight, 1.0, 1.0) for weight in np.linspace(-1, 1, 201))
    assert math.isclose(least, loss(1.0, 1.0, 1.0)), "the interval is to the right of all, and the nearest is ahead"
    ahead = least - loss(*subject, 1.0)
    assert math.isclose(ahead, 0.9, rel_tol=1e-9), "as the row says"
    narrow = loss(0.0, 1.0, 0.0) - loss(0.0, 0.01, 0.0)
    for version in ("corrected", "paper"):
        average = bounds.thm_sequential(10**6, version=version, **known) / 10**6
        assert average < 0.2 * min(ahead, narrow), "the bound does not fall below what the box costs"
    assert round(narrow, 2) == 4.56, "as the row says"
    return f"a map outside of the box of thm:sequential is ahead by {ahead:.1f} a day for ever, a scale by {narrow:.2f}"


@check(
    "text:two-step-sizes",
    rejects=[
        lambda a, b, c, d: a * c + b * d + a * d,
        lambda a, b, c, d: 2 * b * d,
        lambda a, b, c, d: 1.01 * (a * c + b * d),
    ],
)
def check_two_steps(subject: Callable[..., Any] = lambda a, b, c, d: a * c + b * d) -> str:
    """min over one step of (A1+A2)/eta + eta (D1+D2) is at least 2 sqrt(A1 D1) + 2 sqrt(A2 D2) with two steps."""
    a, b, c, d = z3.Reals("a b c d")  # square roots of A1, A2, D1, D2
    positive = (a > 0, b > 0, c > 0, d > 0)
    eta = z3.Real("eta")  # a^2/eta + eta c^2 >= 2 a c, attained at eta = a/c
    follows(*positive, eta > 0, goal=a * a + eta * eta * c * c >= 2 * a * c * eta)
    follows(*positive, eta * c == a, goal=a * a + eta * eta * c * c == 2 * a * c * eta)
    follows(*positive, goal=(a * a + b * b) * (c * c + d * d) >= subject(a, b, c, d) * subject(a, b, c, d))
    assert subject(1.0, 100.0, 100.0, 1.0) == 200.0
    assert math.sqrt((1 + 100**2) * (100**2 + 1)) > 50 * 200.0
    return "separate step sizes never lose to a common one (z3, Cauchy and Schwarz) and can gain any factor"


def _one_step(steps: int, **known: Any) -> float:
    """Both runs of thm:sequential with the best step size that they can share."""
    shared, total = [0.0, 0.0], bounds.thm_sequential(steps, **known)
    narrow = {**known, "scale_max": known["scale_min"]}  # without a choice of scales their part is 0
    parts = (bounds.thm_sequential(steps, **narrow), total - bounds.thm_sequential(steps, **narrow))
    sizes = bounds.sequential_step_sizes(steps, **known)
    for part, size in zip(parts, (sizes.location, sizes.inverse_scale), strict=True):  # 2 sqrt(A D), at sqrt(A/D)
        shared[0] += part * size / 2
        shared[1] += part / size / 2
    return 2 * math.sqrt(shared[0] * shared[1])


@check(
    "text:two-step-sizes",
    code=(bounds.thm_sequential, bounds.sequential_step_sizes),
    rejects=[
        _one_step,
        printed(bounds.thm_sequential),
        lambda steps, **known: bounds.thm_sequential(steps, **known) + known["features"] * known["scale_max"],
    ],
)
def check_map_and_scale_apart(subject: Callable[..., float] = bounds.thm_sequential) -> str:
    """In thm:sequential what a larger sigma_max costs does not depend on the number of features, nor what these cost on
    sigma_max: the bound is a sum of both, and with one step size for both runs it is larger and no such sum."""
    for (steps, m, _, epsilon, delta, beta), box in itertools.product(RUNS, BOXES):
        known: dict[str, Any] = {**box, "quantiles": m, "epsilon": epsilon, "delta": delta, "beta": beta}
        low = known["scale_min"]
        del known["scale_max"]
        sizes = list(itertools.product((1, 4, 50), (2 * low, 10 * low)))
        whole = [subject(steps, features=d, scale_max=most, **known) for d, most in sizes]
        plain = [subject(steps, features=d, scale_max=1.5 * low, **known) for d, _ in sizes]
        cost = [high - least for high, least in zip(whole, plain, strict=True)]
        assert all(abs(cost[k] - cost[k % 2]) <= 1e-9 * max(whole) for k in range(6)), (steps, cost)
        for (d, most), found in zip(sizes, whole, strict=True):
            assert _one_step(steps, features=d, scale_max=most, **known) > found, "no larger"
    return "thm:sequential: features and sigma_max cost apart from each other, which one common step size does not give"


def least_loss(features: np.ndarray, centre: np.ndarray) -> float:
    """Of all maps in [-2, 2]^2 and phi in [1/2, 2]: a convex function of the three, once differentiable."""

    def total(point: np.ndarray) -> tuple[float, np.ndarray]:
        loss, slope, slope_phi = laplace_interval(features @ point[:2], point[2], centre - 0.05, centre + 0.05)
        return float(np.sum(loss)), np.append(slope @ features, np.sum(slope_phi))

    return least_in_box(total, [(-2, 2), (-2, 2), (0.5, 2)], np.array([0.0, 0.0, 1.25]), 0.01)


@check("text:online-descent", code=(OGD, laplace_interval), rejects=[(1.0, 0.0), (0.0, 1.0), (0.545, 0.545)])
def check_online_descent(subject: tuple[float, float] = (1.0, 1.0)) -> str:
    """Gradient descent on the true losses competes with the best of all maps and scales: regret <= (D G + D' G')
    sqrt(T), at four lengths. Without features, which are then 1 on all days, it does so with the best prior.

    subject: factors of D G and of D' G'.
    """
    largest = 0.0
    reach, slope = math.sqrt(2 * 2.0**2), math.sqrt(2.0)  # maps in [-2, 2]^2, features +-1
    half, steep = 0.75, 2.5 + 2.0  # phi in [1/2, 2] from its middle, |d phi| <= R + sigma_max
    lengths, kinds = (1, 10, 100, 400), enumerate(CENTRES.items())
    for steps, (number, (name, centre_of)), told in itertools.product(lengths, kinds, (True, False)):
        whole = (reach * slope + half * steep) * math.sqrt(steps)
        bound = (subject[0] * reach * slope + subject[1] * half * steep) * math.sqrt(steps)
        rng = np.random.default_rng([149, number])
        features = rng.choice([-1.0, 1.0], (steps, 2)) if told else np.ones((steps, 2))
        centre = centre_of(rng, features)
        sizes = np.array([reach / slope, reach / slope, half / steep]) / math.sqrt(steps)
        learner, total = OGD([0.0, 0.0, 1.25], step=sizes, lower=[-2, -2, 0.5], upper=[2, 2, 2]), 0.0
        for f, c in zip(features, centre, strict=True):
            *maps, phi = learner.point
            loss, grad, grad_phi = laplace_interval(float(maps @ f), phi, c - 0.05, c + 0.05)
            total += float(loss)
            learner.update([*(grad * f), grad_phi])
        regret = total - least_loss(features, centre)
        assert regret <= bound, (steps, name, regret, bound)
        largest = max(largest, regret / whole)
    assert 0.546 < largest <= 0.548, "as the row says"
    return (
        "descent on the true Laplace losses, five sequences of 1 to 400 days, with features and without: regret at "
        f"most {largest:.3f} of (D G + D' G') sqrt(T)"
    )


@check(
    "text:learning-leaks",
    code=(OGD, laplace_interval),
    rejects=[(-1, 0.5), (2, 0.5), (0.99, 0.5), (1.01, 0.5), (1, 0.25)],
)
def check_update_tells(subject: tuple[float, float] = (1, 0.5)) -> str:
    """One step of online learning on U tells (1, 2) from (-2, -1): the derivatives in theta are -1 and 1.

    subject: the size of both, and the quantile.
    """
    theta = sympy.symbols("theta", real=True)
    right = -sympy.log((sympy.exp(theta - 1) - sympy.exp(theta - 2)) / 2)  # theta <= 1, scale 1
    left = -sympy.log((sympy.exp(-1 - theta) - sympy.exp(-2 - theta)) / 2)  # theta >= -1
    slopes = [sympy.simplify(sympy.diff(sympy.expand_log(u, force=True), theta)) for u in (right, left)]
    assert slopes == [-subject[0], subject[0]], slopes
    for eta, x in itertools.product((0.125, 0.5), ((1.0, 2.0), (-2.0, -1.0))):
        place = pq.rank(subject[1], len(x))
        low, high = [-math.inf, *x, math.inf][place : place + 2]
        learner = OGD([0.0], step=eta)
        learner.update([float(laplace_interval(0.0, 1.0, low, high)[1])])
        assert math.isclose(learner.point[0], math.copysign(eta, x[0]), rel_tol=1e-12), "as the row says"
    return "after one step from 0 the location is +eta or -eta: it says which of two data sets there was"


def two_runs(steps: int, m: int, d: int, box: dict[str, float], budget: tuple[float, float], beta: float) -> float:
    """Corrected: the sum of both runs of DP-FTRL, each at half of everything that is spent, its failures too."""
    return sum(bounds.thm_dpftrl(steps, **known) for known in run_arguments(steps, m, d, box, budget, beta))


def stated_regret(steps: int, m: int, d: int, box: dict[str, float], budget: tuple[float, float], beta: float) -> float:
    """As the row has it, sigma that of ours:dpftrl-noise at half of the budget, with the root of all nodes."""
    low, high, reach = box["scale_min"], box["scale_max"], box["weight_bound"] * box["feature_bound"] * d
    half, odds, nodes = budget[0] / 2, math.log(2 / budget[1]), steps.bit_length()
    noise = math.sqrt(nodes / 2) * (math.sqrt(odds + half) + math.sqrt(odds)) / half
    spread, levels = math.sqrt(2 * math.log(2 * steps / beta)), math.sqrt(math.floor(math.log2(steps)))
    first, second = (1 + 2 * (math.sqrt(p) + spread) * noise * levels for p in (m * d, m))
    scales = (1 / low - 1 / high) * (box["data_bound"] + high) * math.sqrt(second) / 2
    return math.sqrt(2 * m * steps) * (reach * math.sqrt(first) / low + scales)


def _whole_beta(steps: int, m: int, d: int, box: Any, budget: Any, beta: float) -> float:
    return two_runs(steps, m, d, box, budget, 2 * beta)


def _whole_budget(steps: int, m: int, d: int, box: Any, budget: Any, beta: float) -> float:
    return two_runs(steps, m, d, box, (2 * budget[0], 2 * budget[1]), beta)


@check(
    "thm:sequential/step-sizes",
    code=(bounds.sequential_step_sizes, bounds.thm_sequential),
    rejects=[
        lambda *a, **k: bounds.sequential_step_sizes(*a, **{**k, "epsilon": 2 * k["epsilon"]}),
        lambda *a, **k: _resized(bounds.sequential_step_sizes(*a, **k), 1.01, 1.0),
        lambda *a, **k: _resized(bounds.sequential_step_sizes(*a, **k), 1.0, 0.99),
        lambda steps, **k: bounds.sequential_step_sizes(steps + 1, **k),
        lambda *a, **k: bounds.sequential_step_sizes(*a, **{**k, "beta": 0.1}),
    ],
)
def check_least_of_steps(subject: Callable[..., bounds.StepSizes] = bounds.sequential_step_sizes) -> str:
    """Range/eta + eta T L (L + noise) of both runs, at the step sizes: the bound of thm:sequential, the least sum."""
    for (steps, m, d, epsilon, delta, beta), box in itertools.product(RUNS, BOXES):
        known: dict[str, Any] = {"quantiles": m, "features": d, "epsilon": epsilon, "delta": delta, "beta": beta, **box}
        total = 0.0
        runs = run_arguments(steps, m, d, box, (epsilon, delta), beta)
        for run, eta in zip(runs, subject(steps, **known), strict=True):
            spread = run["gaussian_width"] + math.sqrt(2 * math.log(steps / run["beta"]))
            noise = spread * run["noise"] * run["sensitivity"] * math.sqrt(steps.bit_length() - 1)
            slope = steps * run["lipschitz"] * (run["lipschitz"] + noise)
            total += run["regularizer_range"] / eta + eta * slope
        assert math.isclose(total, bounds.thm_sequential(steps, **known), rel_tol=1e-6), (steps, total)
    return "thm:sequential: its step sizes give its bound, so they are the best ones, for six sizes and three boxes"


def _resized(sizes: bounds.StepSizes, location: float, inverse_scale: float) -> bounds.StepSizes:
    return bounds.StepSizes(sizes.location * location, sizes.inverse_scale * inverse_scale)


@check(
    "thm:pubpri/probability",
    code=(bounds.thm_sequential, bounds.sequential_step_sizes),
    rejects=[
        lambda steps, **named: bounds.thm_sequential(steps, **named) * steps,
        lambda steps, **named: bounds.thm_sequential(steps, **named) * math.sqrt(steps),
        lambda steps, **named: 2.0 * named["weight_bound"] / named["scale_min"] * steps,
    ],
)
def check_sequence_failure(subject: Callable[..., float] = bounds.thm_sequential) -> str:
    """thm:sequential fails with positive probability: if the noise of every node exceeds what turns the map round, all
    iterates but the first lie in the wrong corner, and the regret is linear in T.

    One quantile, feature 1, one scale 1, B = 1, intervals at 1: a day in the corner costs 2 less the width.
    """
    known: dict[str, Any] = {
        "quantiles": 1,
        "features": 1,
        "feature_bound": 1.0,
        "weight_bound": 1.0,
        "data_bound": 1.0,
    }
    known |= {"scale_min": 1.0, "scale_max": 1.0, "epsilon": 8.0, "delta": 1e-3, "beta": 0.1}
    lengths = []
    for version in ("corrected", "paper"):
        found = (10**k for k in range(1, 13) if (10**k - 1) * (2 - 0.01) > subject(10**k, version=version, **known))
        lengths.append(next(found, None))
    assert lengths == [100, 1000], "no length has a regret above the bound, or not the row's"
    steps = 100
    step, noise = bounds.sequential_step_sizes(steps, **known).location, bounds.dpftrl_noise(steps, 4.0, 5e-4)
    turn = (steps + 1 / step) / (2 * noise)  # in standard deviations: gradients of at most 1, sensitivity 2
    with mpmath.workdps(30):
        log_chance = 2 * steps * float(mpmath.log(mpmath.erfc(turn / mpmath.sqrt(2)) / 2, 10))
    assert -math.inf < log_chance < 0
    return f"thm:sequential, {steps} days: above the bound with probability 10^{log_chance:.1g} or more, not 0"


@check(
    "thm:sequential",
    "thm:pubpri/probability",
    "thm:sequential/budgets",
    code=(bounds.thm_sequential, bounds.thm_dpftrl, bounds.dpftrl_noise),
    rejects=[
        _whole_beta,
        _whole_budget,
        lambda *case: 0.99 * two_runs(*case),
        lambda steps, m, d, box, *rest: two_runs(steps, m, 1, box, *rest),
        lambda steps, *rest: two_runs(1 << steps.bit_length() - 1, *rest),
        lambda steps, *rest: two_runs(steps + 1, *rest),
        lambda steps, m, d, box, budget, beta: two_runs(steps, m, d, box, budget, 0.1),
        lambda steps, m, d, box, budget, beta: two_runs(steps, m, d, box, (budget[0], 1e-6), beta),
    ],
)
def check_sum_of_runs(subject: Callable[..., float] = two_runs) -> str:
    """thm:sequential is the sum of thm:dpftrl for the weights and for the scales, each at half of epsilon, delta and
    beta, with sensitivity twice the slope."""
    for (steps, m, d, epsilon, delta, beta), box in itertools.product(RUNS, BOXES):
        whole = bounds.thm_sequential(steps, quantiles=m, features=d, epsilon=epsilon, delta=delta, beta=beta, **box)
        parts = subject(steps, m, d, box, (epsilon, delta), beta)
        assert math.isclose(whole, parts, rel_tol=1e-9), (steps, m, d, whole, parts)
        assert math.isclose(whole, stated_regret(steps, m, d, box, (epsilon, delta), beta), rel_tol=1e-9), "the row"
    return "thm:sequential: two runs of thm:dpftrl at half of the budget and of the failure probability each"
