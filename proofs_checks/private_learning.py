"""What learning costs in privacy, and details of the regret (Sections 4.3 and 5.3, Appendices B.2 and C)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import sympy
import z3

from pq.core.bounds import learning as bounds
from proofs_checks.laplace import prove
from proofs_checks.learning import _delta, corrected_multiplier, printed_multiplier

F = Fraction
TWO = F(2)


# ---- privacy ---------------------------------------------------------------------------------------------------------


def check_regret_privacy(subject: Fraction = TWO) -> str:
    """The noise of thm:quantile-regret is private although that of thm:dpftrl is not: its Delta_2 is too large.

    subject: square of the ratio r of the printed Delta_2 to the sensitivity.  With s^2 = log(1/delta'), eps <= 2 s^2:
    delta <= Pr(N(0, 1) > r sqrt(2) s - eps/(2 r sqrt(2) s)) <= exp(-s^2), as soon as 4 r^2 s^2 - eps >= 4 r s^2.
    """
    r, s, eps = z3.Reals("r s eps")
    square = z3.RealVal(str(subject))
    prove(r > 0, r * r == square, s > 0, eps > 0, eps <= 2 * s * s, goal=4 * square * s * s - eps >= 4 * r * s * s)
    least = math.inf
    for epsilon in (1e-4, 0.1, 0.5, 1.0, 1.0986, 2.0, 10.0, 100.0):
        for m in (1, 3):
            printed, true = (
                bounds.lem_refined_sensitivity(epsilon, 4, 0.5, quantiles=m, version=v)  # type: ignore[arg-type]
                for v in ("paper", "corrected")
            )
            least = min(least, printed / true)
    assert least >= math.sqrt(subject) * (1 - 1e-12), "the printed sensitivity is not that much too large"
    with mpmath.workdps(60):
        for delta in ("0.5", "1e-6", "1e-40"):
            top = 2 * mpmath.log(1 / mpmath.mpf(delta))
            for share in ("0.01", "0.3", "0.7", "1"):
                epsilon = top * mpmath.mpf(share)
                exact = _delta(epsilon, printed_multiplier(epsilon, mpmath.mpf(delta)) * mpmath.sqrt(2))
                assert exact <= mpmath.mpf(delta), (delta, share)
    return (
        f"thm:quantile-regret is private as printed: its Delta_2 is {least:.3f} times the sensitivity or more, and "
        "sqrt 2 is enough for every eps' <= 2 log(1/delta') (z3)"
    )


def both_runs(epsilon: Any, delta: Any) -> Any:
    """Corrected noise of each run, over its sensitivity (twice the Lipschitz constant) and sqrt(nodes)."""
    return corrected_multiplier(epsilon / 2, delta / 2)


def printed_runs(epsilon: Any, delta: Any) -> Any:
    """The printed sigma at (eps'/2, delta'/2), for a sensitivity of twice the Lipschitz constant."""
    return printed_multiplier(epsilon / 2, delta / 2)


def check_sequential_privacy(subject: Callable[[Any, Any], Any] = both_runs) -> str:
    """Two Gaussian runs make one: exact delta of thm:sequential for data sets that move both gradients all they can."""
    with mpmath.workdps(60):
        delta = mpmath.mpf("1e-6")
        for epsilon in (0.1, 1, 10, 29, 50, 58, 200):
            exact = _delta(mpmath.mpf(epsilon), subject(mpmath.mpf(epsilon), delta) / mpmath.sqrt(2))
            assert exact <= delta, (epsilon, mpmath.nstr(exact, 4))
        far = _delta(mpmath.mpf(50), printed_runs(mpmath.mpf(50), delta) / mpmath.sqrt(2))
        half = _delta(mpmath.mpf(1), printed_runs(mpmath.mpf(1), delta) / 2 / mpmath.sqrt(2))
        assert min(far, half) > delta
    return (
        f"thm:sequential at delta' = 1e-6: exact delta {mpmath.nstr(far, 3)} at eps' = 50 with the printed sigma; "
        f"{mpmath.nstr(half, 3)} at eps' = 1 if its noise is that of the printed regret, one Lipschitz constant"
    )


def check_joint_runs(subject: Fraction = TWO) -> str:
    """Ours: the printed sigma of both runs is (eps', delta')-private together for eps' <= 2 log(2/delta')."""
    # each run has multiplier sqrt(2 L)/(eps'/2), L = log(2/delta'); together sqrt(2) sqrt(2 L)/eps': r^2 = 2 above
    r, s, eps = z3.Reals("r s eps")
    reach = z3.RealVal(str(subject))
    prove(r > 0, r * r == 2, s > 0, eps > 0, eps <= reach * s * s, goal=8 * s * s - eps >= 4 * r * s * s)
    with mpmath.workdps(60):
        for delta in ("0.5", "1e-3", "1e-12"):
            odds = mpmath.log(2 / mpmath.mpf(delta))
            for share in ("0.1", "0.5", "1"):
                epsilon = 2 * odds * mpmath.mpf(share)
                joint = printed_runs(epsilon, mpmath.mpf(delta)) / mpmath.sqrt(2)
                assert _delta(epsilon, joint) <= mpmath.mpf(delta) / 2, (delta, share)
    return "two runs with the printed sigma and sensitivity 2L: private together for eps' <= 2 log(2/delta') (z3)"


# ---- thm:quantile-regret ---------------------------------------------------------------------------------------------


def check_regulariser_range(subject: Callable[[int, int], float] = lambda m, d: m * m * math.log(d)) -> str:
    """phi(W) - phi(W_1) <= m^2 log d for phi = m <W, log W>, W_1 uniform; the largest entry is 1-Lipschitz in l2."""
    rng = np.random.default_rng(71)
    for m, d in ((1, 2), (3, 4), (5, 10)):
        start = m * m * math.log(1 / d)
        for _ in range(200):
            weights = rng.dirichlet(np.full(d, 0.2), m)
            value = m * float(np.sum(weights * np.log(np.maximum(weights, 1e-300))))
            assert value - start <= subject(m, d) * (1 + 1e-12), (m, d)
            x, y = rng.normal(size=(2, m * d))
            assert abs(np.abs(x).max() - np.abs(y).max()) <= np.linalg.norm(x - y)
        assert 0.0 - start >= subject(m, d) * (1 - 1e-12), "the range is m^2 log d, at the corners"
    return "range of m <W, log W> from the uniform weights: m^2 log d, attained at the corners; C = 1"


def floored(gradient: np.ndarray, eta: float, m: int, floor: float) -> np.ndarray:
    """Row that minimises m <w, log w> + eta <g, w> over the simplex with a floor: proportional weights, clipped."""
    raw = np.exp(-eta / m * (gradient - gradient.min()))
    low, high = 0.0, 1.0 / raw.min()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if np.maximum(raw * middle, floor).sum() > 1 else (middle, high)
    return np.maximum(raw * low, floor)


def plain(gradient: np.ndarray, eta: float, m: int, floor: float) -> np.ndarray:
    """Exponentiated gradient without a floor."""
    raw = np.exp(-eta / m * (gradient - gradient.min()))
    return raw / raw.sum()


def check_exponentiated_gradient(subject: Callable[..., np.ndarray] = floored) -> str:
    """The entropic update is exponentiated gradient on the whole simplex; with entries >= gamma/d it is clipped."""
    rng = np.random.default_rng(73)
    for _ in range(100):
        d, m, eta = int(rng.integers(2, 6)), int(rng.integers(1, 4)), 10 ** rng.uniform(-1, 1)
        gradient, floor = -rng.uniform(0, 5, d), float(rng.choice([0.0, 0.5])) / d
        point = subject(gradient, eta, m, floor)
        assert abs(point.sum() - 1) < 1e-9
        assert point.min() >= floor - 1e-12, "below the floor"

        def value(w: np.ndarray, g: np.ndarray = gradient, e: float = eta, k: int = m) -> float:
            return float(k * np.sum(w * np.log(w)) + e * g @ w)

        others = floor + (1 - d * floor) * rng.dirichlet(np.full(d, 0.5), 300)
        for other in [*np.maximum(others, 1e-300), *(0.999 * point + 0.001 * others)]:
            assert value(point) <= value(other) + 1e-9, "not the minimiser"
        if floor == 0.0:
            assert np.allclose(point, plain(gradient, eta, m, 0.0), rtol=1e-9)
    return "entropic update: exponentiated gradient (rate eta/m), its weights scaled and clipped at the floor gamma/d"


def check_gradient_bounded(subject: Callable[[int, Fraction, int], Fraction] = lambda d, z, n: d / z**n) -> str:
    """For n records no score is below exp(-eps n/2), so the gradient has l1 norm <= d exp(eps n/2) up to the boundary.

    It is unbounded only over data sets of all sizes: a weight of one on the cell of the least score.
    """
    z, reached = F(1, 3), F(0)
    rng = np.random.default_rng(79)
    for n in (1, 2, 5, 20):
        for _ in range(100):
            d = int(rng.integers(2, 5))
            scores = [z ** int(g) for g in rng.integers(0, n + 1, d)]
            parts = [int(x) for x in rng.integers(0, 3, d)]
            parts[int(rng.integers(d))] += 1
            inner = sum(s * F(p, sum(parts)) for s, p in zip(scores, parts, strict=True))
            assert sum(scores) / inner <= subject(d, z, n), (n, d)
        corner = (1 + z**n) / z**n  # s = (1, z^n), all weight on the second cell
        assert corner <= subject(2, z, n) <= 2 * corner
        assert corner > reached
        reached = corner
    return "gradient on the whole simplex: l1 norm <= d exp(eps n/2) for n records; unbounded as n grows only"


def check_printed_regret(subject: Callable[..., Any] = bounds.thm_quantile_regret) -> str:
    """One data set for T = 10^13 days: every gamma-robust prior loses more to a lambda-robust one than is printed.

    d = 10, gamma = 1/2, lambda = 2/5, m = 1: half the records just right of 0, half just right of 1/10, q = 1/2.  The
    scores are (1, 0, .., 0) up to 1e-9, so the best weights of the first cell are 11/20 and 16/25.
    """
    steps, d, gamma, lam = 10**13, 10, F(1, 2), F(2, 5)
    ratio = (1 - lam + lam / d) / (1 - gamma + gamma / d)
    regret = steps * (math.log(ratio) - 1e-8)
    noise = bounds.dpftrl_noise(steps, 1.0, 1e-6, version="paper")
    common: dict[str, Any] = {"quantiles": 1, "epsilon": 1.0, "noise": noise, "beta": 0.05, "mixture": float(lam)}
    bound = subject(steps, d, float(gamma), **common).regret
    assert regret <= bound, f"regret at least {regret:.4g}, bound {bound:.4g}"
    paper = bounds.thm_quantile_regret(steps, d, float(gamma), version="paper", **common).regret
    return f"thm:quantile-regret as printed is false at T = 10^13: regret >= {regret:.3g} for sure, bound {paper:.3g}"


def sample_bracket(v: float, width: float, psi: float, lam: float, alpha: float) -> float:
    """Corrected: what must be at most T, without log(1/beta'): V^2 (b-a)^6 / psi^2 has no unit."""
    return v**2 * width**6 / (lam**4 * psi**2 * alpha**4) + math.log(width / (lam * psi)) ** 2 / alpha**2


def printed_bracket(v: float, width: float, psi: float, lam: float, alpha: float) -> float:
    """As printed, for m = 1."""
    return v**2 / (lam**4 * psi**2 * alpha**4) + math.log(1 / (lam * psi)) ** 2 / alpha**2


def check_sample_units(subject: Callable[..., float] = sample_bracket) -> str:
    """One sample cannot do: x = (1, 3) in (0, 10^6), the best Lipschitz density is a line; the printed T is 1e-17."""
    width, psi, lam, alpha = 1e6, 2.0, 0.5, 0.1
    v = 2 / width**2  # density 2/w at 0, falling to 0 at w
    line = (2 - 4 / width) * (1 - lam) + lam  # mass of (1, 3] over that of the uniform
    excess = math.log(line) - 1e-9  # after one sample the weights are still uniform
    assert excess > alpha
    assert subject(v, width, psi, lam, alpha) > 1, "one sample is said to be enough"
    for unit in (1e-3, 1e3):
        there = subject(v / unit**2, width * unit, psi * unit, lam, alpha)
        assert math.isclose(there, subject(v, width, psi, lam, alpha), rel_tol=1e-9), "depends on the unit"
    printed = printed_bracket(v, width, psi, lam, alpha)
    return f"sample size for Lipschitz classes: excess {excess:.2f} > {alpha} after T = 1, printed T {printed:.1e}"


def check_centred_range(subject: Callable[[int, float], float] = lambda d, gamma: math.log(d / gamma)) -> str:
    """Ours: on weights >= gamma/d the losses of one data set differ by at most log(d/gamma), whatever psi is."""
    rng = np.random.default_rng(83)
    for _ in range(300):
        m, d, gamma = int(rng.integers(1, 4)), int(rng.integers(2, 6)), float(rng.uniform(0.05, 1))
        scores = 10.0 ** rng.uniform(-12, 0, (m, d))
        points = gamma / d + (1 - gamma) * rng.dirichlet(np.full(d, 0.2), (60, m))
        losses = np.log(np.sum(1 / np.einsum("ij,kij->ki", scores, points), axis=1))
        assert np.ptp(losses) <= subject(d, gamma) * (1 + 1e-9), (m, d, gamma)
    best, worst = 1 - 0.01 * 3 / 4, 0.01 / 4  # s = e_1, d = 4, gamma = 1/100
    assert math.log(best / worst) >= subject(4, 0.01) - 0.01, "more than is needed"
    d_, m_, lam, x, alpha = sympy.symbols("d m lam x alpha", positive=True)
    steps = d_**2 * m_**2 * x / (lam**2 * alpha**2)
    assert sympy.simplify(d_ * m_ / lam * sympy.sqrt(x * steps) / (alpha * steps)) == 1
    return "losses of one data set range over log(d/gamma) at most, so psi drops out of the sample size"


def _power(euclidean: bool, lipschitz: bool, robust: bool) -> Fraction:
    """Power of T in the regret for the best d = T^a, gamma = T^-g: terms 1 - g, 1 + g - a, c a + g + 1/2."""
    c = F(5, 4) if euclidean else F(1)
    if lipschitz:
        return 1 - 1 / (2 * (1 + c)) if robust else 1 - 1 / (4 * (1 + c))
    return F(1, 2) if robust else F(3, 4)


def check_rates_in_steps(subject: Callable[[bool, bool], bool] = lambda lipschitz, robust: lipschitz) -> str:
    """Where entropic regularisation improves the power of T: both Lipschitz classes; discrete ones gain in d only."""
    for lipschitz in (False, True):
        for robust in (False, True):
            gain = _power(True, lipschitz, robust) - _power(False, lipschitz, robust)
            assert (gain > 0) == subject(lipschitz, robust), (lipschitz, robust, gain)
            for euclidean in (False, True):
                _best_power(euclidean, lipschitz, robust)
    assert [_power(False, v, r) for v, r in ((0, 1), (1, 1), (0, 0), (1, 0))] == [F(1, 2), F(3, 4), F(3, 4), F(7, 8)]
    return "entropic against Euclidean, power of T: 3/4 for 7/9 and 7/8 for 8/9 (Lipschitz), equal for discrete classes"


def _best_power(euclidean: bool, lipschitz: bool, robust: bool) -> None:
    """No point of a grid of (a, g) is below the power claimed, and one comes near."""
    c, claimed = (1.25 if euclidean else 1.0), float(_power(euclidean, lipschitz, robust))
    best = math.inf
    for a in np.linspace(0, 0.5, 181) if lipschitz else [0.0]:
        for g in [0.0] if robust else np.linspace(0, 0.5, 181):
            terms = [c * a + g + 0.5] + ([1 + g - a] if lipschitz else []) + ([] if robust else [1 - g])
            best = min(best, max(terms))
    assert claimed - 1e-9 <= best <= claimed + 0.01, (euclidean, lipschitz, robust, best)


# ---- thm:sequential --------------------------------------------------------------------------------------------------


def check_two_steps(subject: Callable[..., Any] = lambda a, b, c, d: a * c + b * d) -> str:
    """min over one step of (A1+A2)/eta + eta (D1+D2) is at least 2 sqrt(A1 D1) + 2 sqrt(A2 D2) with two steps."""
    a, b, c, d = z3.Reals("a b c d")  # square roots of A1, A2, D1, D2
    positive = (a > 0, b > 0, c > 0, d > 0)
    prove(*positive, goal=(a * a + b * b) * (c * c + d * d) >= subject(a, b, c, d) * subject(a, b, c, d))
    assert subject(1.0, 100.0, 100.0, 1.0) == 200.0
    assert math.sqrt((1 + 100**2) * (100**2 + 1)) > 50 * 200.0
    return "separate step sizes never lose to a common one (z3, Cauchy and Schwarz) and can gain any factor"


def check_average_rate(subject: Callable[..., float] = bounds.thm_sequential) -> str:
    """The average regret of thm:sequential falls like 1/sqrt(T) times at most (log T)^(3/2), printed and corrected."""
    common: dict[str, Any] = {"quantiles": 3, "features": 4, "feature_bound": 1.0, "weight_bound": 1.0}
    common |= {"data_bound": 1.0, "scale_min": 0.1, "scale_max": 1.0, "epsilon": 1.0, "delta": 1e-6, "beta": 0.05}
    for version in ("corrected", "paper"):
        scaled = {k: subject(10**k, version=version, **common) / 10**k * 10 ** (k / 2) for k in range(2, 31)}
        for k in range(2, 30):
            assert scaled[k] <= scaled[k + 1], (version, k)
        for k in (2, 3, 5, 10, 15):  # over doublings of log T, as the levels of the tree are whole numbers
            assert scaled[2 * k] / scaled[k] <= 2**1.5, (version, k)
    return "average regret of sequential learning: 1/sqrt(T) times (log T)^(3/2) at most, T = 10^2..10^30"


def widths(data: Sequence[int], rank: int) -> int:
    """Length of the optimal interval."""
    return data[rank] - data[rank - 1]


def no_ties(data: Sequence[int]) -> bool:
    """No value occurs twice."""
    return len(set(data)) == len(data)


def check_discretisation_width(subject: Callable[[Sequence[int]], bool] = no_ties) -> str:
    """Data on a grid of step 1: the optimal interval is at least 1 long for every rank only if no value repeats."""
    for data in ((30, 31, 40), (1, 2, 3, 4), (7, 9), (30, 30, 30), (1, 2, 2, 3), (5, 5)):
        enough = min(widths(data, rank) for rank in range(1, len(data))) >= 1
        assert enough == subject(data), data
    return "the grid bounds the optimal interval from below only without ties: ages (30, 30, 30) have length 0"
