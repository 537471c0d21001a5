"""thm:dpftrl: regret, stability, and the Euclidean case."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import z3

from pq import bounds
from proofs_checks.engine.registry import check
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.runs import prefix_nodes
from proofs_checks.tools.solver import prove

F = Fraction
HALF = Fraction(1, 2)


def _ftrl_run(gradients: np.ndarray, eta: float, std: float, rng: np.random.Generator) -> np.ndarray:
    """Iterates of DP-FTRL on [-1, 1] with the quadratic regulariser and a binary tree of noise."""
    noise: dict[tuple[int, int], float] = {}
    iterates, total = [], 0.0
    for t in range(len(gradients)):
        disturbed = total
        for block in prefix_nodes(t):
            disturbed += noise.setdefault(block, rng.normal(0, std))
        iterates.append(min(1.0, max(-1.0, -eta * disturbed)))
        total += gradients[t]
    return np.array(iterates)


@check(
    "thm:dpftrl",
    "thm:dpftrl/regret",
    code=bounds.thm_dpftrl,
    rejects=[scaled(bounds.thm_dpftrl, 0.74), scaled(bounds.thm_dpftrl, 0.5)],
)
def check_dpftrl_regret(subject: Callable[..., float] = bounds.thm_dpftrl) -> str:
    """Regret of DP-FTRL on linear losses stays below its bound: 300 seeded runs, each may fail with chance 1e-4."""
    worst = {True: 0.0, False: 0.0}  # with noise, and without
    for seed in range(300):
        rng = np.random.default_rng([19, seed])
        steps, sigma = int(rng.integers(2, 200)), float(rng.choice([0.0, 0.2, 2.0]))
        kind = rng.integers(3)
        gradients = {0: rng.choice([-1.0, 1.0], steps), 1: np.ones(steps), 2: np.resize([1.0, -1.0], steps)}[int(kind)]
        bound = subject(
            steps, regularizer_range=0.5, lipschitz=1.0, sensitivity=2.0, gaussian_width=1.0, noise=sigma, beta=1e-4
        )
        slope = steps * (
            1 + (1 + math.sqrt(2 * math.log(steps / 1e-4))) * 2 * sigma * math.sqrt(steps.bit_length() - 1)
        )
        iterates = _ftrl_run(gradients, math.sqrt(0.5 / slope), 2 * sigma, rng)
        regret = float(iterates @ gradients + abs(gradients.sum()))
        worst[sigma > 0] = max(worst[sigma > 0], regret / bound)
        assert regret <= bound, (seed, regret, bound)
    assert worst[False] <= 0.75 and worst[True] <= 0.562, "as the row says"
    return f"DP-FTRL regret <= bound in 300 seeded runs (failure probability 0.03 in all); largest shares {worst}"


def _at_best_step(steps: int, **known: Any) -> float:
    """As if the bound at the best step size held at every other."""
    return bounds.thm_dpftrl(steps, **{**known, "step_size": None})


@check(
    "thm:dpftrl/regret",
    code=bounds.thm_dpftrl,
    rejects=[_at_best_step, scaled(bounds.thm_dpftrl, 0.98), scaled(bounds.thm_dpftrl, 0.5)],
)
def check_every_step_size(subject: Callable[..., float] = bounds.thm_dpftrl) -> str:
    """The bound at step sizes from a hundredth of the best to a hundred times it, with and without noise, in seeded
    runs that each may fail with chance 1e-4; at a tenth of the best one needs more than 0.98 of it. Without noise
    iterate t answers the sum of t - 1 gradients: b_t in the proof, whose sum has t of them, is then -nabla_t, not 0."""
    known: dict[str, Any] = {"regularizer_range": 0.5, "lipschitz": 1.0, "sensitivity": 2.0, "gaussian_width": 1.0}
    for seed, factor in itertools.product(range(12), (0.01, 0.1, 0.5, 2.0, 10.0, 100.0)):
        rng = np.random.default_rng([23, seed])
        steps, sigma = int(rng.integers(2, 200)), (0.0, 0.2)[seed % 2]
        gradients = (rng.choice([-1.0, 1.0], steps), np.ones(steps), np.resize([1.0, -1.0], steps))[seed % 3]
        eta = factor / bounds.thm_dpftrl(steps, noise=sigma, beta=1e-4, **known)
        iterates = _ftrl_run(gradients, eta, 2 * sigma, rng)
        regret = float(iterates @ gradients + abs(gradients.sum()))
        assert regret <= subject(steps, noise=sigma, beta=1e-4, step_size=eta, **known), (seed, factor, regret)
        if sigma == 0:
            sums = np.cumsum(gradients)
            assert np.allclose(iterates, np.clip(-eta * (sums - gradients), -1, 1), rtol=0, atol=1e-9)
            assert not np.allclose(iterates, np.clip(-eta * sums, -1, 1), rtol=0, atol=1e-9), "as the row says"
    return "DP-FTRL regret <= bound at its own step size, from 0.01 to 100 times the best (72 seeded runs)"


def _entropic(cost: np.ndarray) -> np.ndarray:
    weights = np.exp(-(cost - cost.min()))
    return weights / weights.sum()


def _quadratic(cost: np.ndarray) -> np.ndarray:
    return np.clip(-cost, -1, 1)


def _entropy(theta: np.ndarray) -> float:
    return float(np.sum(theta * np.log(np.maximum(theta, 1e-300)))) + math.log(len(theta))


def _half_square(theta: np.ndarray) -> float:
    return float(theta @ theta) / 2


def _loss_of_learner(answer: Callable[..., np.ndarray], gradients: np.ndarray, eta: float) -> float:
    """What the iterates without noise suffer."""
    totals = np.vstack([np.zeros(gradients.shape[1]), np.cumsum(gradients, axis=0)[:-1]])
    return math.fsum(float(answer(eta * total) @ g) for total, g in zip(totals, gradients, strict=True))


@check(
    "step:dpftrl-stability",
    rejects=[*((by, 1.0) for by in (0.25, 0.49)), *((1.0, by) for by in (0.5, 0.99, 1.01, 2.0))],
)
def check_stability(subject: tuple[float, float] = (1.0, 1.0)) -> str:
    """Two steps of the proof, for the entropic and the quadratic regulariser times alpha and any comparator: the regret
    is at most (phi(theta*) - phi(theta_1))/eta + (eta/alpha) sum |g|^2, and the iterates move by (eta/alpha) |b|. Of
    the sum half is enough, and no less: one step of either.

    subject: factors of the sum of squares and of the move.
    """
    rng = np.random.default_rng(61)
    closest = most = 0.0
    for trial in range(400):
        d, eta, alpha = int(rng.integers(2, 6)), 10 ** rng.uniform(-3, 1), (1.0, 0.01, 7.0)[trial % 3]
        first, noise = rng.normal(0, 3, (2, d))
        rate = eta / alpha  # of phi times alpha at eta: the iterates of phi at eta/alpha
        moved = np.abs(_entropic(rate * first) - _entropic(rate * (first + noise))).sum()
        assert moved <= subject[1] * rate * np.abs(noise).max() * (1 + 1e-9)
        clipped = _quadratic(rate * first) - _quadratic(rate * (first + noise))
        assert np.linalg.norm(clipped) <= subject[1] * rate * np.linalg.norm(noise) * (1 + 1e-9) + 1e-15
        small = np.array([1.0, -1.0]) * 1e-3
        closest = max(closest, np.abs(_entropic(np.zeros(2)) - _entropic(small)).sum() / 1e-3)
        gradients = rng.uniform(-1, 1, (1 if trial % 5 == 0 else 30, d)) * rng.choice([0.1, 1.0])
        entropic = (_entropic, _entropy, [np.eye(d)[0], *rng.dirichlet(np.full(d, 0.5), 4), np.full(d, 1 / d)])
        step = np.clip(-rate * gradients.sum(axis=0), -1, 1)  # the worst comparator of a quadratic learner
        quadratic = (_quadratic, _half_square, [step, *rng.uniform(-1, 1, (4, d)), np.zeros(d), np.ones(d)])
        for (answer, phi, others), dual in ((entropic, np.inf), (quadratic, 2)):
            squares = rate * float(np.sum(np.linalg.norm(gradients, dual, axis=1) ** 2))
            suffered = _loss_of_learner(answer, gradients, rate)
            for other in others:
                beyond = suffered - float(gradients.sum(axis=0) @ other) - alpha * phi(other) / eta
                assert beyond <= subject[0] * squares * (1 + 1e-9) + 1e-9, (dual, trial)
                most = max(most, beyond / squares if squares > 1e-6 else 0.0)
    assert closest >= subject[1] * (1 - 1e-3), "the iterates move less than claimed"
    step = 1e-3 * np.array([1.0, -1.0])  # one small step of the entropic learner, and its worst comparator
    needed = _loss_of_learner(_entropic, step[None], 1.0) - float(step @ _entropic(step)) - _entropy(_entropic(step))
    assert 0.4999 < needed / 1e-6 <= 0.5, "half is the least for either"
    other = -step  # the worst comparator of the quadratic learner, whose squares are |step|^2
    needed = _loss_of_learner(_quadratic, step[None], 1.0) - float(step @ other) - _half_square(other)
    assert math.isclose(needed, 0.5 * float(step @ step)), "for the quadratic one exactly"
    assert 0.5 - 1e-6 <= most <= 0.5 + 1e-6, f"as the row says: {most}"
    return "mirror-descent regret and |theta~ - theta| <= eta |b|_* in 400 random cases; half of eta sum |g|^2 is least"


def _learning_term(kind: str, m: float, d: float, noise: float = 1e6) -> float:
    """thm:dpftrl on m rows of d weights: half a squared length, the printed entropy, or ours:regret-in-quantiles."""
    spread, width = {
        "euclidean": (m / 2, math.sqrt(m * d)),
        "printed": (m * m * math.log(d), 2 * math.sqrt(math.log(m * d))),
        "ours": (m * math.log(d), math.sqrt(2 * m * math.log(2 * d))),
    }[kind]
    known: dict[str, Any] = {"lipschitz": 1.0, "sensitivity": 2.0, "noise": noise, "beta": 0.1}
    return bounds.thm_dpftrl(1000, regularizer_range=spread, gaussian_width=width, **known)


@check("thm:dpftrl/euclidean-factor", "text:improved-rates", code=bounds.thm_dpftrl, rejects=[0.5, 0.0, 0.2525, 0.2475])
def check_euclidean_comparison(subject: float = 0.25) -> str:
    """Entropic against Euclidean DP-FTRL in the noisy regime: a factor d^(1/4) is saved, up to logarithms."""

    def saved(d: float) -> float:
        return _learning_term("euclidean", 1, d) / _learning_term("ours", 1, d)

    powers = [math.log(saved(d * d) / saved(d)) / math.log(d) for d in (1e10, 1e20, 1e40, 1e80, 1e140)]
    assert all(one < two for one, two in pairwise(powers)), powers
    # (d^(1/4) / (log d)^(3/4)) up to a constant: squaring d doubles its logarithm
    powers = [
        power + 0.75 * math.log(2) / math.log(d)
        for power, d in zip(powers, (1e10, 1e20, 1e40, 1e80, 1e140), strict=True)
    ]
    assert abs(powers[-1] - subject) < 1e-4, powers
    return f"the entropic regulariser saves d^(1/4): the power is {powers[-1]:.5f} at d = 10^140, but for logarithms"


Wins = tuple[Callable[[float, float], bool], int, float]


@check(
    "thm:dpftrl/euclidean-factor",
    "ours:regret-in-quantiles",
    code=bounds.thm_dpftrl,
    rejects=[
        (lambda m, d: True, 5534, 1.0),
        (lambda m, d: d > m**1.5, 5534, 1.0),
        (lambda m, d: d**1.5 > m, 5534, 1.0),
        *((lambda m, d: d > m, first, 1.0) for first in (2, 5533, 5535)),
        *((lambda m, d: d > m, 5534, power) for power in (0.75, 0.99, 1.01)),
    ],
)
def check_geometries_in_quantiles(subject: Wins = (lambda m, d: d > m, 5534, 1.0)) -> str:
    """Where the width of the noise counts, the printed entropic bound for m quantiles is below the Euclidean one for
    d > m, up to logarithms, and ours for every m, from d = 5534 on; with the deviation, which does not grow with m, a
    little later for small m. Without noise the Euclidean one is smaller.

    subject: for which m and d the printed bound wins, from which d on ours does, and the printed power of m.
    """
    wins, first, printed_power = subject
    for kind, power in (("printed", printed_power), ("euclidean", 0.75), ("ours", 0.75)):
        found = math.log10(_learning_term(kind, 1e104, 2) / _learning_term(kind, 1e100, 2)) / 4
        assert abs(found - power) < 2e-3, (kind, found)
    cells = np.arange(2.0, 10_000.0)  # ranges m log d and m/2 times widths sqrt(2m log 2d) and sqrt(md), over m sqrt m
    below = np.log(cells) * np.sqrt(2 * np.log(2 * cells)) < np.sqrt(cells) / 2
    assert np.array_equal(below, cells >= first), "the width's part"
    assert 1 / math.log(first) + 1 / (2 * math.log(2 * first)) < 1 / 2, "and beyond, where the ratio falls with d"
    alone = [_learning_term("ours", 1, d) < _learning_term("euclidean", 1, d) for d in (2, first, 33_672, 33_673, 1e50)]
    assert alone == [False, False, False, True, True], "the whole bound, of one quantile"
    for m, d in ((1e80, 1e100), (1e80, 1e60), (1e60, 1e75), (1e60, 1e45)):
        assert (_learning_term("printed", m, d) < _learning_term("euclidean", m, d)) == wins(m, d), (m, d)
    for m, d in itertools.product((1e20, 1e40), (2, 10, 100, first - 1, first, 10**6, 10**50)):
        assert (_learning_term("ours", m, d) < _learning_term("euclidean", m, d)) == (d >= first), (m, d)
    for m, d in itertools.product((1, 9, 1e20), (2, 100, 10**6)):
        assert _learning_term("euclidean", m, d, noise=0.0) < _learning_term("ours", m, d, noise=0.0), (m, d)
    return (
        f"entropic below Euclidean in the width's regime: as printed for d > m only, ours for every m from d = {first}"
    )


@check(
    "thm:dpftrl/euclidean-case",
    rejects=[(F(1, 2), 2), (1, 1), *((F(by, 100), 2) for by in (99, 101)), *((1, F(2 * by, 100)) for by in (99, 101))],
)
def check_euclidean_case(subject: tuple[int | Fraction, int | Fraction] = (1, 2)) -> str:
    """The Euclidean norm is its own dual and 1-Lipschitz; two gradients of norm at most L differ by 2 L at most (z3).

    Any two vectors lie in a plane whose first axis is along one of them.
    """
    constant, factor = (z3.RealVal(str(v)) for v in subject)
    a, b, c, r, limit = z3.Reals("a b c r L")
    plane = z3.And(a >= 0, r >= 0, r * r == b * b + c * c, b <= r, b >= -r)
    distance = (a - b) * (a - b) + c * c
    prove(z3.Implies(plane, (a - r) * (a - r) <= constant * constant * distance), "Lipschitz constant of the norm")
    prove(z3.Implies(z3.And(plane, r <= 1), a * b <= a), "the dual norm, which b = r = 1 attains")
    short = z3.And(plane, limit > 0, a <= limit, r <= limit)
    prove(z3.Implies(short, distance <= factor * factor * limit * limit), "difference of two gradients")
    assert subject[0] ** 2 * (1 - 3) ** 2 == (1 - 3) ** 2 and subject[1] ** 2 == (1 - -1) ** 2, (
        "on a line: both are least"
    )
    return "Euclidean DP-FTRL: C = 1 and Delta_2 <= 2L, both least (z3, in the plane of two vectors)"


@check(
    "thm:dpftrl/euclidean-case",
    "thm:dpftrl/gaussian-width",
    rejects=[*((by, 0.5) for by in (0.5, 0.99, 1.01)), *((1.0, by) for by in (0.25, 0.49, 0.51, 1.0))],
)
def check_euclidean_width(subject: tuple[float, float] = (1.0, 0.5)) -> str:
    """G = E|z|, with |z| the Euclidean length of d normals, is at most sqrt(d), and neither a smaller constant nor a
    smaller power will do: exactly sqrt(2) Gamma((d + 1)/2)/Gamma(d/2).  For all d by Jensen's inequality, E|z|^2 = d.

    subject: constant and power of d.
    """
    constant, power = subject
    share = 0.0
    with mpmath.workdps(50):
        for d in (*range(1, 100), 10**3, 10**6, 10**12):
            half = mpmath.mpf(d) / 2
            width = mpmath.sqrt(2) * mpmath.exp(mpmath.loggamma(half + mpmath.mpf(1) / 2) - mpmath.loggamma(half))
            assert width <= constant * mpmath.mpf(d) ** power, d
            share = float(width / (constant * mpmath.mpf(d) ** power))
    assert share > 0.999, "more than is needed for large d"
    return "the Gaussian width of the Euclidean ball is at most sqrt(d), and tends to it (exact to d = 10^12)"


@check(
    "thm:dpftrl/regret",
    "step:dpftrl-stability",
    rejects=[
        lambda modulus: 1,
        lambda modulus: 1 / math.sqrt(modulus),
        *(lambda modulus, by=by: F(by, 100) / modulus for by in (99, 101)),
    ],
)
def check_modulus(subject: Callable[[F], F] = lambda modulus: 1 / modulus) -> str:
    """thm:dpftrl for a regulariser that is alpha-strongly convex: eta L^2 T/alpha; random signs force E|S_T|."""
    steps = 10**4
    forced = F(
        steps * math.comb(steps, steps // 2), 2**steps
    )  # E|S_T| of random signs: regret of any learner on [-1, 1]
    assert (round(2 * math.sqrt(F(1, 2000) * steps), 1), round(float(forced), 1)) == (4.5, 79.8), "as the row says"
    for modulus in (F(1), F(1, 1000)):
        reach = modulus / 2  # alpha theta^2/2 on [-1, 1]
        best = 2 * math.sqrt(reach * steps * subject(modulus))  # over all step sizes, without noise
        assert best >= forced, f"modulus {modulus}: at most {best:.1f} is claimed, {float(forced):.1f} is forced"
        eta, noise = F(1, 10), F(1, 500)  # alpha theta + eta g = 0 at the iterate, so noise moves it by eta b/alpha
        iterates = [-eta * g / modulus for g in (F(1, 3), F(1, 3) + noise)]
        assert abs(iterates[1] - iterates[0]) <= eta * noise * subject(modulus), "the iterates move farther"
        assert abs(iterates[1] - iterates[0]) >= F(999, 1000) * eta * noise * F(subject(modulus)), "more than they move"
    assert iterates[0] - iterates[1] == 1000 * eta * noise, "as the row says"
    return f"DP-FTRL, T = 10^4: {float(forced):.1f} is forced, whatever the modulus; the bound needs 1/modulus"


def _on_squares(curvature: Fraction | int, centre: Fraction) -> tuple[Fraction, Fraction, bool]:
    """Regret and bound without noise on curvature (theta - centre)^2/2, T = 100, eta = 1/10; whether iterates rest."""
    steps, eta = 100, F(1, 10)

    def loss(theta: F) -> F:
        return curvature * (theta - centre) ** 2 / 2

    theta, total, suffered, rests = F(0), F(0), F(0), True
    for _ in range(steps):
        suffered += loss(theta)
        total += curvature * (theta - centre)
        theta = min(max(-eta * total, F(-1)), F(1))
        rests = rests and theta == 0
    regret = suffered - steps * min(loss(F(k, 4)) for k in range(-4, 5))
    return regret, HALF / eta + eta * (curvature * (1 + centre)) ** 2 * steps, rests


@check("thm:dpftrl/regret", rejects=[F(-1), F(-1, 2)])
def check_convex_losses(subject: Fraction | int = 1) -> str:
    """thm:dpftrl needs convex losses: on -theta^2/2 the iterates stay at 0, at a regret of T/2."""
    for centre in (F(0), HALF):
        regret, bound, _ = _on_squares(subject, centre)
        assert regret <= bound, f"regret {regret}"
    assert _on_squares(-1, F(0)) == (F(50), F(15), True), "as the row says"
    return "DP-FTRL without noise on squares: within the bound for convex ones; regret 50 against 15 for concave ones"


def _power(euclidean: bool, lipschitz: bool, robust: bool) -> Fraction:
    """Power of T in the regret for the best d = T^a, gamma = T^-g: terms 1 - g, 1 + g - a, c a + g + 1/2."""
    c = F(5, 4) if euclidean else F(1)
    if lipschitz:
        return 1 - 1 / (2 * (1 + c)) if robust else 1 - 1 / (4 * (1 + c))
    return F(1, 2) if robust else F(3, 4)


def _least_power(euclidean: bool, lipschitz: bool, robust: bool) -> Fraction:
    """The same by duality: weights that cancel a and g bound the largest term from below, and one point attains it."""
    c = F(5, 4) if euclidean else F(1)
    a = 1 / (2 * (1 + c)) if lipschitz else F(0)
    g = F(0) if robust else (HALF - c * a) / 2
    terms = [(HALF, c, 1, F(1)), (F(1), F(-1), 1, c), (F(1), F(0), -1, 1 + c if lipschitz else F(1))]  # and its weight
    used = [term for term, needed in zip(terms, (True, lipschitz, not robust), strict=True) if needed]
    assert not lipschitz or sum(weight * in_a for _, in_a, _, weight in used) == 0
    assert robust or sum(weight * in_g for _, _, in_g, weight in used) == 0
    most = max(constant + in_a * a + in_g * g for constant, in_a, in_g, _ in used)
    assert most == sum(weight * constant for constant, _, _, weight in used) / sum(weight for *_, weight in used)
    return most


def _power_in_package(lipschitz: bool, robust: bool) -> float:
    """Power of T in the printed regret from T = 10^100 to 10^200, where logarithms are less than 0.01 of it: the least
    over all d and gamma that are powers of T with multiples of 1/32 in the exponent."""
    found = []
    for steps in (10**100, 10**200):
        options = []
        for in_d, in_gamma in itertools.product(range(9) if lipschitz else (0,), (0,) if robust else range(17)):
            d, gamma = 2 * round(float(steps) ** (in_d / 32)), float(steps) ** (-in_gamma / 32) / 2
            known: dict[str, Any] = {"lipschitz": float(lipschitz), "mixture": 0.5 * robust, "version": "paper"}
            known |= {"quantiles": 1, "epsilon": 1.0, "noise": 1.0, "beta": 0.1}
            bound = bounds.thm_quantile_regret(steps, d, gamma, **known).regret
            options.append(math.log10(bound))
        found.append(min(options))
    return (found[1] - found[0]) / 100


@check(
    "text:improved-rates",
    code=bounds.thm_quantile_regret,
    rejects=[
        lambda euclidean, lipschitz, robust: _power(False, lipschitz, robust),
        lambda euclidean, lipschitz, robust: _power(euclidean, lipschitz, True),
        lambda euclidean, lipschitz, robust: _power(euclidean, lipschitz, robust) + (F(1, 36) if euclidean else 0),
        *(lambda *case, by=by: F(by, 100) * _power(*case) for by in (99, 101)),
    ],
)
def check_rates_in_steps(subject: Callable[[bool, bool, bool], Fraction] = _power) -> str:
    """Where entropic regularisation improves the power of T: both Lipschitz classes, not the discrete ones."""
    for lipschitz, robust in itertools.product((False, True), repeat=2):
        for euclidean in (False, True):
            assert subject(euclidean, lipschitz, robust) == _least_power(euclidean, lipschitz, robust)
        assert (subject(True, lipschitz, robust) > subject(False, lipschitz, robust)) == lipschitz, "gain"
        package = _power_in_package(lipschitz, robust)
        assert abs(package - float(subject(False, lipschitz, robust))) < 0.01, (lipschitz, robust, package)
    for euclidean, powers in ((False, (F(3, 4), F(7, 8), F(3, 4))), (True, (F(7, 9), F(8, 9), F(3, 4)))):
        assert tuple(subject(euclidean, v, r) for v, r in ((True, True), (True, False), (False, False))) == powers
    return "entropic against Euclidean, power of T: 3/4 for 7/9 and 7/8 for 8/9 (Lipschitz), equal for discrete classes"
