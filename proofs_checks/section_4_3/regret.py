"""thm:quantile-regret: entropic learning of priors, step by step."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import sympy
import z3
from flint import arb

from pq import bounds
from proofs_checks.engine.registry import check
from proofs_checks.section_4_3.learning_terms import overlap
from proofs_checks.tools.broken import printed
from proofs_checks.tools.exact import Points, log_ball, psi
from proofs_checks.tools.gaussian import exact_delta, printed_multiplier
from proofs_checks.tools.runs import prefix_nodes
from proofs_checks.tools.solver import follows

F = Fraction
TWO = Fraction(2)


def noise_of_bound(steps: int, m: int, d: int, epsilon: float, noise: float, beta: float) -> float:
    """X - 1 of the bound."""
    spread = 4 * math.sqrt(math.log(m * d)) + 2 * math.sqrt(2 * math.log(steps / beta))
    return spread * noise * math.sqrt(math.ceil(math.log2(steps))) * min(1.0, epsilon * (2 if m > 1 else 1))


Case = tuple[int, int, int, float, float, float, float]  # T, m, d, gamma, eps, sigma, beta'


def minimising_step(steps: int, m: int, d: int, gamma: float, *rest: float) -> float:
    """Corrected: the step size carries the same factor as the bound."""
    return gamma * m / d * math.sqrt(math.log(d) / (steps * (1 + noise_of_bound(steps, m, d, *rest))))


def printed_step(steps: int, m: int, d: int, gamma: float, epsilon: float, noise: float, beta: float) -> float:
    """The printed one: half the noise, and sqrt(log ceil(log2 T)) for sqrt(ceil(log2 T))."""
    known: dict[str, Any] = {"quantiles": m, "epsilon": epsilon, "noise": noise, "beta": beta, "version": "paper"}
    return bounds.thm_quantile_regret(steps, d, gamma, **known).step_size


def excess_of_step(step: float, case: Case) -> float:
    """What thm:dpftrl as printed gives at a step size, over the printed bound of what is learned."""
    steps, m, d, gamma, epsilon, noise, beta = case
    known: dict[str, Any] = {"beta": beta, "noise": noise, "version": "paper"}
    bound = bounds.thm_quantile_regret(steps, d, gamma, quantiles=m, epsilon=epsilon, mixture=gamma, **known).regret
    known |= {"regularizer_range": m**2 * math.log(d), "lipschitz": d / gamma, "step_size": step}
    known |= {"sensitivity": 2 * d / gamma * min(1.0, epsilon * (2 if m > 1 else 1))}
    return bounds.thm_dpftrl(steps, gaussian_width=2 * math.sqrt(math.log(m * d)), **known) / bound


@check(
    "thm:quantile-regret",
    "thm:quantile-regret/step-size",
    code=(bounds.thm_dpftrl, bounds.thm_quantile_regret),
    rejects=[
        printed_step,
        *(lambda *args, by=by: by * minimising_step(*args) for by in (0.99, 1.01)),
        lambda steps, m, d, *rest: minimising_step(steps, 1, d, *rest),
        lambda steps, m, d, gamma, epsilon, *rest: minimising_step(steps, m, d, gamma, epsilon / 2, *rest),
        lambda *case: minimising_step(*case[:-1], 0.05),
    ],
)
def check_step_size(subject: Callable[..., float] = minimising_step) -> str:
    """A/eta + eta D is 2 sqrt(A D), the printed bound, at eta = sqrt(A/D) only; the printed step size is another."""
    sizes = itertools.product((1, 2, 3, 100, 10**6), (1, 3), (2, 8), (0.1, 0.5), (0.1, 3.0), (0.0, 1.0, 50.0))
    for size, beta in itertools.product(sizes, (0.05, 0.9)):
        case = *size, beta
        excess = excess_of_step(subject(*case), case)
        assert excess <= 1 + 1e-9, f"T, m, d, gamma, eps, sigma, beta' = {case}: {excess:.3f} times the stated bound"
        assert excess >= 1 - 1e-9, f"T, m, d, gamma, eps, sigma, beta' = {case}: below the least"
        levels = math.ceil(math.log2(case[0]))
        assert (levels == 0) == (case[0] == 1), "log 0 in the printed step size at T = 1, and there only"
        if levels:  # the printed step size as the row describes it
            short = noise_of_bound(*case[:3], *case[4:]) / 2 * math.sqrt(math.log(levels) / levels)
            wanted = case[3] * case[1] / case[2] * math.sqrt(math.log(case[2]) / case[0] / (1 + short))
            assert math.isclose(printed_step(*case), wanted, rel_tol=1e-12), case
    m, d, floor, t, x = sympy.symbols("m d gamma T X", positive=True)  # the corrected one in general, log d for d > 1
    size = floor * m / d * sympy.sqrt(sympy.log(d) / (t * x))
    whole = m**2 * sympy.log(d) / size + size * d**2 * t * x / floor**2
    assert sympy.simplify(whole - 2 * m * d / floor * sympy.sqrt(t * x * sympy.log(d))) == 0, "2 sqrt(A D)"
    case = (2, 1, 8, 0.5, 0.5, 50.0, 0.05)
    assert printed_step(*case) == printed_step(*case[:5], 0.0, 0.05), "ignores the noise"
    loss = excess_of_step(printed_step(*case), case)
    assert round(loss, 1) == 8.4, "as the row says"
    return f"the printed step size gives {loss:.1f} times the stated bound and ignores the noise at T = 2"


def mixing_weight(gamma: F, lam: F) -> F:
    """Corrected share of the uniform that turns a lambda-robust prior into a gamma-robust one."""
    return (gamma - lam) / (1 - lam) if lam < gamma else F(0)


def mixing_cost(share: F) -> float:
    """What such a share costs at most."""
    return -math.log1p(-float(share))


def _column(draw: random.Random, trial: int) -> tuple[F, ...]:
    return tuple(sorted({F(draw.randrange(1, 99), 99) for _ in range(1 + trial % 4)}))


def _rise(data: Sequence[F], levels: Sequence[F], lam: F, share: F) -> float:
    """Of the loss on (0, 1) when a share of the uniform is mixed into lambda-robust priors, one for each quantile, with
    the rest of their mass on one cell, the optimal one for the first."""
    flat = {(a + b) / 2: b - a for a, b in pairwise([F(0), *data, F(1)])}
    losses = []
    for mixed in (F(0), share):
        total = F(0)
        for k, q in enumerate(levels):
            prior = {o: (lam + mixed * (1 - lam)) * length for o, length in flat.items()}
            home = math.floor(q * len(data)) if k == 0 else k % len(flat)
            prior[list(flat)[home]] += (1 - mixed) * (1 - lam)
            total += 1 / psi(Points(tuple(data)), q, prior, F(1, 10**30))
        losses.append(float(log_ball(total)))
    return losses[1] - losses[0]


Mixing = tuple[Callable[[F, F], F], Callable[[F], float]]


@check(
    "thm:quantile-regret",
    "thm:quantile-regret/comparator",
    rejects=[
        (lambda gamma, lam: max(gamma - lam, F(0)), mixing_cost),
        (lambda gamma, lam: gamma, mixing_cost),
        (mixing_weight, float),
        *((mixing_weight, lambda share, by=by: by * mixing_cost(share)) for by in (0.5, 0.99, 1.01)),
    ],
)
def check_robust_comparator(subject: Mixing = (mixing_weight, mixing_cost)) -> str:
    """(1 - x) mu + x uniform is gamma-robust iff (1 - x) lambda + x >= gamma; x = gamma - lambda falls short. The loss
    of one or more quantiles rises by at most -log(1 - x), by exact inner products, and by just that where the uniform
    has hardly any mass on the optimal intervals."""
    weight, cost_of = subject
    draw = random.Random(31)
    for gamma in (F(1, 10), F(1, 3), F(1, 2)):
        for lam in (F(0), F(1, 20), F(1, 10), F(2, 5), F(9, 10), F(1)):
            x = weight(gamma, lam)
            floor = (1 - x) * lam + x
            assert floor >= gamma, f"gamma={gamma}, lambda={lam}: floor {floor}"
            assert x == 0 or floor == gamma, "mixed more than needed"
            assert mixing_cost(x) <= 2 * float(x) * math.log(2) * (1 + 1e-12)
            for trial in range(12):
                rise = _rise(_column(draw, trial), (F(1, 4), F(1, 2), F(4, 5))[: 1 + trial % 3], lam, x)
                assert rise <= cost_of(x) + 1e-12, (gamma, lam, trial)
            least = _rise((F(1, 2), F(1, 2) + F(1, 10**12)), (F(1, 2),), lam, x)
            assert least <= cost_of(x) + 1e-12, (gamma, lam, "costs more")
            assert lam == 1 or least >= cost_of(x) - 1e-6, (gamma, lam, "not attained")
    share, gamma_, lam_ = z3.Reals("share gamma lambda")  # -log(1 - x) is convex, so below its chord on [0, 1/2]
    given = (lam_ >= 0, lam_ < gamma_, gamma_ <= F(1, 2), share * (1 - lam_) == gamma_ - lam_)
    follows(*given, goal=z3.And(share > 0, share <= F(1, 2)))
    assert math.isclose(mixing_cost(F(1, 2)), math.log(2)), "the chord's end"
    mine, flat = z3.Reals("mine flat")  # no inner product falls by more than 1 - x, so neither does their harmonic mean
    follows(share >= 0, share <= 1, mine >= 0, flat >= 0, goal=(1 - share) * mine + share * flat >= (1 - share) * mine)
    gamma, lam = F(1, 2), F(2, 5)
    cost, claimed = mixing_cost(mixing_weight(gamma, lam)), 2 * float(gamma - lam) * math.log(2)
    assert (round(cost, 3), round(claimed, 3)) == (0.182, 0.139), "as the row says"
    short = f"lambda(gamma-lambda) = {lam * (gamma - lam)} at (1/2, 2/5)"
    return f"printed rho misses gamma-robustness by {short}; the right one costs {cost:.3f} > {claimed:.3f}"


@check(
    "thm:quantile-regret",
    "thm:quantile-regret/parametrisation",
    "thm:quantile-regret/normalisation",
    rejects=[
        lambda d, width: width / d,
        lambda d, width: width,
        lambda d, width: d / width,
        *(lambda d, width, by=by: F(by, 100) for by in (99, 101)),
    ],
)
def check_normalisation(subject: Callable[[int, F], F | int] = lambda d, width: 1) -> str:
    """W_ij is the integral of rho_i over cell j, times 1: rows sum to one, and (d/(b - a)) W_ij is the mean of rho_i
    there. With the printed factor (b - a)/d they sum to one only where it is one. Lines of any slope, in fractions."""
    for d, width, low, tilt in itertools.product((1, 2, 5), (F(1, 3), F(1), F(5)), (F(-2), F(0)), (F(-1), F(1, 2))):
        middle, slope = low + width / 2, 2 * tilt / width**2  # zero at an end for a tilt of one
        ends = [low + width * j / d for j in range(d + 1)]
        masses = [(b - a) / width + slope * ((b - middle) ** 2 - (a - middle) ** 2) / 2 for a, b in pairwise(ends)]
        row = [subject(d, width) * mass for mass in masses]
        assert sum(row) == 1 and min(row) >= 0, "W is not in the simplex"
        assert (sum(width / d * mass for mass in masses) == 1) == (width == d), "as the row says"
        at_middles = [1 / width + slope * ((a + b) / 2 - middle) for a, b in pairwise(ends)]  # a line's means
        assert [d / width * w for w in row] == at_middles
    return "W_ij = mass of cell j (rows sum to 1); as printed they sum to (b-a)/d"


def _random_scores(rng: np.random.Generator, steps: int, m: int, cells: int, epsilon: float) -> np.ndarray:
    """Cell averages of exp(-eps gap/2) for m quantiles of random data sets in (0, 1)."""
    qs = np.arange(1, m + 1) / (m + 1)
    middles = (np.arange(cells * 50) + 0.5) / (cells * 50)
    result = np.empty((steps, m, cells))
    for t in range(steps):
        data = np.sort(rng.beta(2, 5, 20))
        below = np.searchsorted(data, middles)
        for i, q in enumerate(qs):
            result[t, i] = np.exp(-epsilon * np.abs(below - int(q * 20)) / 2).reshape(cells, 50).mean(1)
    return result


def _run_entropic(
    rng: np.random.Generator, scores: np.ndarray, eta: float, gamma: float, noise: float, epsilon: float
) -> float:
    """Regret of entropic DP-FTRL against the best of many fixed gamma-robust priors (a lower bound on the maximum)."""
    steps, m, cells = scores.shape
    std = noise * bounds.lem_refined_sensitivity(epsilon, cells, gamma, quantiles=m)
    nodes: dict[tuple[int, int], np.ndarray] = {}
    total, losses = np.zeros((m, cells)), 0.0

    def project(raw: np.ndarray) -> np.ndarray:
        # argmin of <W, log W> + <g, W> over the simplex with floor: clip the proportional weights by water-filling.
        low = np.zeros(m)
        high = np.full(m, 1.0 / raw.min())
        for _ in range(60):
            middle = (low + high) / 2
            over = np.maximum(raw * middle[:, None], gamma / cells).sum(1) > 1
            low, high = np.where(over, low, middle), np.where(over, middle, high)
        return np.maximum(raw * low[:, None], gamma / cells)

    for t in range(steps):
        disturbed = total.copy()
        for block in prefix_nodes(t):
            if block not in nodes:
                nodes[block] = rng.normal(0, std, (m, cells)) if std else np.zeros((m, cells))
            disturbed = disturbed + nodes[block]
        exponent = -eta * disturbed
        weights = project(np.exp(np.clip(exponent - exponent.max(1, keepdims=True), -600, 0)))
        inner = np.sum(scores[t] * weights, axis=1)
        losses += math.log(np.sum(1 / inner))
        total -= scores[t] / (inner**2)[:, None] / np.sum(1 / inner)
    candidates = gamma / cells + (1 - gamma) * rng.dirichlet(np.full(cells, 0.3), (400, m))
    fixed = np.log(np.sum(1 / np.einsum("tij,cij->cti", scores, candidates), axis=2)).sum(1)
    return losses - float(fixed.min())


def _of_regret(share: float, *args: Any, **named: Any) -> bounds.QuantileRegret:
    """A share of the bound, at the theorem's own step size."""
    found = bounds.thm_quantile_regret(*args, **named)
    return found._replace(regret=share * found.regret)


@check(
    "thm:quantile-regret",
    "ours:regret-in-quantiles",
    code=bounds.thm_quantile_regret,
    rejects=[lambda *a, share=share, **k: _of_regret(share, *a, **k) for share in (0.074, 0.05)],
)
def check_learning_regret(subject: Callable[..., Any] = bounds.thm_quantile_regret) -> str:
    """Exponentiated gradient on data sets stays below the corrected bound, with noise and without (24 seeded runs)."""
    cells, gamma, epsilon, worst = 4, 0.5, 0.5, 0.0
    for seed in range(24):
        rng = np.random.default_rng([43, seed])
        m, steps, noise = int(rng.integers(1, 4)), 60, float(rng.choice([0.0, 5.0]))
        found = subject(steps, cells, gamma, quantiles=m, epsilon=epsilon, noise=noise, beta=1e-4, mixture=gamma)
        scores = _random_scores(rng, steps, m, cells, epsilon)
        regret = _run_entropic(rng, scores, found.step_size / m, gamma, noise, epsilon)
        worst = max(worst, regret / found.regret)
        assert regret <= found.regret, (seed, regret, found.regret)
    assert worst <= 0.075, "as the rows say"
    return f"learned priors: regret <= corrected bound in 24 seeded runs, largest share {worst:.3f}"


@check(
    "thm:quantile-regret/entropy",
    "ours:regret-in-quantiles",
    rejects=[lambda m: 1.0, lambda m: 0.99 * m, lambda m: 1.01 * m, lambda m: math.sqrt(m)],
)
def check_entropy_strongly_convex(subject: Callable[[int], float] = lambda m: float(m)) -> str:
    """factor(m) times the sum of m entropies is 1-strongly convex in the l1 norm, with factor m and no less."""
    rng = np.random.default_rng(17)
    for m, d in itertools.product((1, 2, 5), (2, 4, 9)):
        for _ in range(100):
            x, y = rng.dirichlet(np.full(d, 0.5), (2, m)) + 1e-12
            divergence = np.sum(x * np.log(x / y)) - np.sum(x) + np.sum(y)
            assert subject(m) * divergence >= np.abs(x - y).sum() ** 2 / 2 * (1 - 1e-9), m
        half, step = np.full((m, 2), 0.5), 1e-4 * np.array([1.0, -1.0])
        divergence = np.sum((half + step) * np.log1p(step / half))
        share = subject(m) * divergence / ((m * 2e-4) ** 2 / 2)
        assert share >= 1 - 1e-6, "not strongly convex: two cells, a small step in all m at once"
        assert share <= 1 + 1e-6, "the factor is larger than needed"
        assert divergence >= m * (2e-4) ** 2 / 2 * (1 - 1e-3)  # ours: factor 1 in the norm sqrt(sum_i |W_i|_1^2)
    return "m<W, log W> is 1-strongly convex in l1 (m is least); <W, log W> is so in sqrt(sum |W_i|_1^2), which saves m"


@check(
    "thm:quantile-regret",
    code=bounds.thm_quantile_regret,
    rejects=[
        printed(bounds.thm_quantile_regret),
        lambda *args, **named: bounds.thm_quantile_regret(*args, **{**named, "mixture": 0.5}),
    ],
)
def check_printed_regret(subject: Callable[..., Any] = bounds.thm_quantile_regret) -> str:
    """One data set for T = 10^13 days: every gamma-robust prior loses more to a lambda-robust one than is printed.

    d = 10, gamma = 1/2, lambda = 2/5, m = 1: half the records just right of 0, half just right of 1/10, q = 1/2.  The
    scores are (1, 0, .., 0) up to 1e-9, so the best weights of the first cell are 11/20 and 16/25.
    """
    steps, d, gamma, lam = 10**13, 10, F(1, 2), F(2, 5)
    ratio = (1 - lam + lam / d) / (1 - gamma + gamma / d)
    data = [F(start, 10) + F(k, 10**13) for start in (0, 1) for k in range(1, 51)]
    cells = [(F(j, d), F(j + 1, d)) for j in range(d)]
    gaps = [(part, abs(k - len(data) // 2)) for k, part in enumerate(pairwise([F(0), *data, F(1)]))]
    scores = [d * sum(F(math.exp(-k / 2)) * overlap(cell, part) for part, k in gaps) for cell in cells]
    assert 1 - scores[0] < F(1, 10**9) and max(scores[1:]) < F(1, 10**9), "scores"
    regret = steps * (math.log(ratio) - 1e-8)
    noise = bounds.dpftrl_noise(steps, 1.0, 1e-6, version="paper")
    common: dict[str, Any] = {"quantiles": 1, "epsilon": 1.0, "noise": noise, "beta": 0.05, "mixture": float(lam)}
    bound = subject(steps, d, float(gamma), **common).regret
    assert regret <= bound, f"regret at least {regret:.4g}, bound {bound:.4g}"
    paper = bounds.thm_quantile_regret(steps, d, float(gamma), version="paper", **common).regret
    assert 1.51e12 <= regret < 1.52e12 and round(paper / 1e10) == 140, "as the row says"
    return f"thm:quantile-regret as printed is false at T = 10^13: regret >= {regret:.3g} for sure, bound {paper:.3g}"


@check("thm:quantile-regret/privacy", code=bounds.lem_refined_sensitivity, rejects=[F(1), F(8, 5), F(9, 4)])
def check_regret_privacy(subject: Fraction = TWO) -> str:
    """The noise of thm:quantile-regret is private although that of thm:dpftrl is not: its Delta_2 is too large.

    subject: square of the ratio r of the printed Delta_2 to the sensitivity.  With s^2 = log(1/delta'), eps <= 2 s^2:
    delta <= Pr(N(0, 1) > r sqrt(2) s - eps/(2 r sqrt(2) s)) <= exp(-s^2), as soon as 4 r^2 s^2 - eps >= 4 r s^2.
    """
    r, s, eps = z3.Reals("r s eps")
    square = z3.RealVal(str(subject))
    follows(r > 0, r * r == square, s > 0, eps > 0, eps <= 2 * s * s, goal=4 * square * s * s - eps >= 4 * r * s * s)
    least = math.inf
    for epsilon in (1e-4, 0.1, 0.5, 1.0, 1.0986, 2.0, 10.0, 100.0):
        for m in (1, 3):
            printed, true = (
                bounds.lem_refined_sensitivity(epsilon, 4, 0.5, quantiles=m, version=v)  # type: ignore[arg-type]
                for v in ("paper", "corrected")
            )
            least = min(least, printed / true)
    assert least >= math.sqrt(subject) * (1 - 1e-12), "the printed sensitivity is not that much too large"
    h, p = z3.Reals("h p")  # for every eps: h = exp(eps/2), p = r sqrt(2), tanh(eps/4) = (h - 1)/(h + 1)
    much = z3.And(p * (h - 1) <= 2 * (h + 1), p * (h - 1) <= (h * h - 1) * (h + 1), h * h <= h**4)
    follows(h >= 1, p > 0, p * p == 2 * square, goal=much)
    with mpmath.workdps(60):
        alone = exact_delta(10, printed_multiplier(10, mpmath.mpf("1e-6")))  # r = 1, and 10 is below 2 log 10^6
        assert mpmath.nstr(alone, 3) == "2.42e-6", "as the row says: not private with the exact sensitivity"
        printed, true = (bounds.lem_refined_sensitivity(100.0, 4, 0.5, version=v) for v in ("paper", "corrected"))  # type: ignore[arg-type]
        nodes = [
            bounds.tree_nodes(2, release_total=total) for total in (False, True)
        ]  # of which sigma counts the first
        both = (
            printed_multiplier(10, mpmath.mpf("1e-6")) * printed / true * mpmath.sqrt(mpmath.mpf(nodes[0]) / nodes[1])
        )
        assert mpmath.nstr(exact_delta(10, both), 3) == "2.42e-6", "nor with the last sum"
        for delta in ("0.5", "1e-6", "1e-40"):
            top = 2 * mpmath.log(1 / mpmath.mpf(delta))
            for share in ("0.01", "0.3", "0.7", "1"):
                epsilon = top * mpmath.mpf(share)
                exact = exact_delta(epsilon, printed_multiplier(epsilon, mpmath.mpf(delta)) * mpmath.sqrt(2))
                assert exact <= mpmath.mpf(delta), (delta, share)
    return (
        f"thm:quantile-regret is private as printed: its Delta_2 is {least:.3f} times the sensitivity or more, and "
        "sqrt 2 is enough for every eps' <= 2 log(1/delta') (z3)"
    )


def entropy_range(m: int, d: int) -> float:
    """Of the regulariser, from the uniform weights."""
    return m * m * math.log(d)


@check(
    "thm:quantile-regret/range",
    rejects=[
        (lambda m, d: m * np.log(d), 1),
        (lambda m, d: m * m * np.log(d) + 1, 1),
        (lambda m, d: m * m * np.log(m * d), 1),
        *((lambda m, d, by=by: by * entropy_range(m, d), 1) for by in (0.99, 1.01)),
        *((entropy_range, by) for by in (0.99, 1.01)),
    ],
)
def check_regulariser_range(subject: tuple[Callable[[int, int], float], float] = (entropy_range, 1)) -> str:
    """phi(W) - phi(W_1) <= m^2 log d for phi = m <W, log W>, W_1 uniform; the largest modulus is 1-Lipschitz in l2, and
    no less: one entry that moves alone. Both are attained.

    subject: the range, and the Lipschitz constant C.
    """
    rng, (most, constant) = np.random.default_rng(71), subject
    assert abs(np.abs([3.0, 1.0]).max() - np.abs([2.0, 1.0]).max()) == constant * np.linalg.norm([1.0, 0.0]), "C"
    for m, d in ((1, 2), (3, 4), (5, 10)):
        start = m * m * math.log(1 / d)
        for _ in range(200):
            weights = rng.dirichlet(np.full(d, 0.2), m)
            value = m * float(np.sum(weights * np.log(np.maximum(weights, 1e-300))))
            assert value - start <= most(m, d) * (1 + 1e-12), (m, d)
            x, y = rng.normal(size=(2, m * d))
            assert abs(np.abs(x).max() - np.abs(y).max()) <= constant * np.linalg.norm(x - y)
            assert abs(np.linalg.norm(x) - np.linalg.norm(y)) <= constant * np.linalg.norm(x - y), "Euclidean"
        for floor in (0.0, 0.1 / d):
            corner = np.full(d, floor) + (1 - floor * d) * np.eye(d)[0]  # in each of m rows
            reached = m * m * float(np.sum(corner * np.log(np.maximum(corner, 1e-300)))) - start
            assert (abs(reached / most(m, d) - 1) <= 1e-12) == (floor == 0.0), "m^2 log d at the corners, not within"
    return "range of m <W, log W> from the uniform weights: m^2 log d, attained at the corners; C = 1"


def plain(gradient: np.ndarray, eta: float, m: int, floor: float) -> np.ndarray:
    """Exponentiated gradient without a floor."""
    raw = np.exp(-eta / m * (gradient - gradient.min()))
    return raw / raw.sum()


def _clip_and_scale(gradient: np.ndarray, eta: float, m: int, floor: float) -> np.ndarray:
    """The floor first, then the scale."""
    point = np.maximum(plain(gradient, eta, m, floor), floor)
    return point / point.sum()


def floored(gradient: np.ndarray, eta: float, m: int, floor: float) -> np.ndarray:
    """Row that minimises m <w, log w> + eta <g, w> over the simplex with a floor: proportional weights, clipped."""
    raw = np.exp(-eta / m * (gradient - gradient.min()))
    low, high = 0.0, 1.0 / raw.min()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if np.maximum(raw * middle, floor).sum() > 1 else (middle, high)
    return np.maximum(raw * low, floor)


def _without_m(gradient: np.ndarray, eta: float, m: int, floor: float) -> np.ndarray:
    """The rate eta, not eta/m."""
    return floored(gradient, eta, 1, floor)


@check(
    "text:exponentiated-gradient",
    rejects=[
        plain,
        _clip_and_scale,
        _without_m,
        *(lambda g, eta, m, floor, by=by: floored(g, by * eta, m, floor) for by in (0.99, 1.01)),
    ],
)
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
    short = plain(np.array([-5.0, 0.0]), 1.0, 1, 0.25)[1]
    assert math.isclose(short, 1 / (1 + math.exp(5))) and short < 0.25, "as the row says"
    return "entropic update: exponentiated gradient (rate eta/m), its weights scaled and clipped at the floor gamma/d"


Display = tuple[float, float]  # A and D of A/eta + eta D


def learning_display(steps: int, m: int, d: int, *rest: float) -> Display:
    """The display as corrected; the rest is gamma, epsilon, sigma and beta'."""
    return _display(steps, m, d, rest, m * d, min(1.0, rest[1] * (2 if m > 1 else 1)))


def _display(steps: int, m: int, d: int, rest: Sequence[float], size: int, moved: float) -> Display:
    gamma, _, noise, beta = rest
    spread = 4 * math.sqrt(math.log(size)) + 2 * math.sqrt(2 * math.log(steps / beta))
    inside = 1 + spread * noise * math.sqrt(math.ceil(math.log2(steps))) * moved
    return m**2 * math.log(d), d**2 * steps / gamma**2 * inside


@check(
    "thm:quantile-regret/learning-sum",
    code=(bounds.thm_dpftrl, bounds.lem_refined_sensitivity),
    rejects=[
        lambda t, m, d, *rest: _display(t, m, d, rest, d, min(1.0, rest[1])),
        lambda t, m, d, *rest: _display(t, m, d, rest, m * d, min(1.0, rest[1])),
        lambda t, m, d, *rest: _display(t, m, d, rest, d, min(1.0, rest[1] * (2 if m > 1 else 1))),
        lambda *case: (learning_display(*case)[0] / case[1], learning_display(*case)[1]),
        lambda *case: learning_display(1 << (case[0].bit_length() - 1), *case[1:]),  # floor for ceiling, and of T
        lambda t, *case: learning_display(t + 1, *case),
        lambda *case: learning_display(*case[:-1], 0.1),
        lambda t, m, d, gamma, *rest: learning_display(t, m, d, 0.25, *rest),
        *(lambda *case, by=by: (by * learning_display(*case)[0], learning_display(*case)[1]) for by in (0.99, 1.01)),
        *(lambda *case, by=by: (learning_display(*case)[0], by * learning_display(*case)[1]) for by in (0.99, 1.01)),
    ],
)
def check_learning_display(subject: Callable[..., Display] = learning_display) -> str:
    """What thm:dpftrl yields with the range m^2 log d, L = d/gamma, Delta_2 = (2d/gamma) min{1, eps~_m} and the width
    2 sqrt(log(md)), at any step size. The smaller eps in the place of eps~_m is true as well, by our sensitivity."""
    sizes = itertools.product((2, 3, 64, 1000), (1, 2, 3, 50), (2, 3, 8), (0.05, 0.4, 3.0), (0.1, 7.0))
    places = ((0.25, 4.0, 0.1), (0.5, 0.3, 0.9), (0.01, 60.0, 1e-9))  # gamma, sigma and beta'
    for (steps, m, d, epsilon, eta), (gamma, noise, beta) in itertools.product(sizes, places):
        sensitivity = 2 * d / gamma * min(1.0, epsilon * (2 if m > 1 else 1))
        known: dict[str, Any] = {"regularizer_range": m**2 * math.log(d), "lipschitz": d / gamma, "beta": beta}
        known |= {"gaussian_width": 2 * math.sqrt(math.log(m * d)), "noise": noise, "sensitivity": sensitivity}
        spread, slope = subject(steps, m, d, gamma, epsilon, noise, beta)
        wanted = bounds.thm_dpftrl(steps, step_size=eta, version="paper", **known)
        assert math.isclose(spread / eta + eta * slope, wanted, rel_tol=1e-12), (steps, m, d, epsilon)
        ours = bounds.lem_refined_sensitivity(epsilon, d, gamma, quantiles=m)
        assert ours <= 2 * d / gamma * min(1.0, epsilon), "the note of the row"
    return "first sum of the regret: thm:dpftrl with sqrt(log(md)) and eps~_m, at any step size"


@check(
    "thm:quantile-regret/learning-sum",
    rejects=[lambda m, d: 2 * np.sqrt(np.log(d)), lambda m, d: np.sqrt(np.log(m * d))],
)
def check_width_of_product(subject: Callable[[int, int], Any] = lambda m, d: 2 * mpmath.sqrt(mpmath.log(m * d))) -> str:
    """Mean of the largest of md |normal| values: at most 2 sqrt(log(md)), and above 2 sqrt(log d)."""
    cut, count = arb("2.3"), 100  # the mean is at least cut Pr{largest >= cut}
    least = cut * (1 - (cut / arb(2).sqrt()).erf() ** count)
    assert least < float(subject(50, 2)), "exceeded (interval arithmetic)"
    assert least > 2 and round(2 * math.sqrt(math.log(2)), 2) == 1.67, "as the row says"
    with mpmath.workdps(30):
        for m, d in ((1, 2), (1, 3), (9, 4), (50, 2), (1000, 100)):
            # any number n of normals: E max <= sqrt(2 log(2n)), which is 2 sqrt(log n) at most, as 2n <= n^2
            assert 2 * m * d <= (m * d) ** 2

            def above(t: Any, count: int = m * d) -> Any:
                return 1 - mpmath.erf(t / mpmath.sqrt(2)) ** count

            width = mpmath.quad(above, [0, 1, 2, 3, 4, 6, 12])
            assert width <= subject(m, d), (m, d, float(width))
            assert (m, d) != (50, 2) or mpmath.nstr(width, 3) == "2.75", "as the row says"
    return "Gaussian width over m simplices: 2 sqrt(log(md)) holds, 2 sqrt(log d) does not (m = 50, d = 2: 2.75 > 1.67)"
