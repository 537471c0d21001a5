"""Ours: the proof of ours:half-of-lipschitz from steps to regret, and runs whose noise an adversary picks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import sympy
import z3

from pq import bounds
from proofs_checks.engine.registry import check
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.solver import follows

F = Fraction
Terms = Callable[[Any, Any], Any]


def per_step(slope: Any, noise: Any) -> Any:
    """What a step costs, over eta: with the norm of its gradient, and that of the noise in the sum so far."""
    return slope * (slope / 2 + noise)


BROKEN: list[Terms] = [
    lambda slope, noise: slope * slope / 2,
    lambda slope, noise: slope * (slope / 2 + noise / 2),
    lambda slope, noise: slope * (slope / 4 + noise),
    lambda slope, noise: slope * (F(99, 200) * slope + noise),
]


def _formula(cost: Terms, bound: Callable[..., float]) -> None:
    """The bound at its best step size, with the cost of a step; below that of thm:dpftrl."""
    sizes = itertools.product((1, 2, 3, 100, 10**6), (0.5, 3.0), (0.2, 4.0), (0.0, 0.7), (1e-9, 0.1, 0.9))
    for (t, r, size, sigma, beta), (move, width) in itertools.product(sizes, ((1.5, 0.8), (0.1, 30.0))):
        named: dict[str, Any] = {
            "regularizer_range": r,
            "lipschitz": size,
            "sensitivity": move,
            "gaussian_width": width,
        }
        norm = (width + math.sqrt(2 * math.log(t / beta))) * sigma * move * math.sqrt(math.floor(math.log2(t)))
        wanted = 2 * math.sqrt(r * t * float(cost(F(size), F(norm))))
        assert math.isclose(bound(t, noise=sigma, beta=beta, **named), wanted, rel_tol=1e-9), (t, r, size, sigma)
        assert wanted < bounds.thm_dpftrl(t, noise=sigma, beta=beta, **named), "with L"


@check(
    "ours:half-of-lipschitz",
    "thm:dpftrl/regret",
    code=(bounds.dpftrl_half, bounds.thm_dpftrl),
    rejects=[
        *((s, bounds.dpftrl_half) for s in BROKEN),
        *((per_step, scaled(bounds.dpftrl_half, s)) for s in (0.99, 1.01)),
        (per_step, lambda steps, **known: bounds.dpftrl_half(steps, **{**known, "beta": 0.1})),
        (per_step, lambda steps, **known: bounds.dpftrl_half(steps + 1, **known)),
    ],
)
def check_half_proof(subject: tuple[Terms, Callable[..., float]] = (per_step, bounds.dpftrl_half)) -> str:
    """From `check_conjugate_step` to the regret, for every T: the potential phi*(-eta sums) telescopes (induction), a
    comparator bounds it from below, noise moves each point, losses are convex, and the best step (z3, sympy).

    subject: what a step costs over eta, and the bound.
    """
    cost, bound = subject
    eta, potential, later, start, paid, inner, slope, squares = z3.Reals("eta p p_next phi_1 paid inner slope squares")
    known = (eta > 0, slope >= 0, later <= potential - eta * inner + eta * eta * slope * slope / 2)
    so_far = potential <= -start - eta * paid + eta * eta * squares  # squares: the sum of the costs without noise
    grown = squares + cost(slope, z3.RealVal(0))
    follows(*known, so_far, goal=later <= -start - eta * (paid + inner) + eta * eta * grown)
    best, at_best = z3.Reals("phi_u at_best")  # phi*(x) >= <x, u> - phi(u), x = -eta times the sum of all gradients
    follows(
        eta > 0,
        so_far,
        potential >= -eta * at_best - best,
        goal=eta * (paid - at_best) <= best - start + eta**2 * squares,
    )
    gained, plain, noisy, apart, noise = z3.Reals("gained plain noisy apart noise")
    convex = (gained <= noisy, noisy - plain <= slope * apart, apart <= eta * noise)  # noisy: <gradient, theta - u>
    follows(
        eta > 0,
        slope >= 0,
        noise >= 0,
        *convex,
        goal=gained <= plain + eta * (cost(slope, noise) - cost(slope, z3.RealVal(0))),
    )
    limit = z3.Real("limit")  # the Lipschitz constant
    follows(slope >= 0, slope <= limit, noise >= 0, goal=cost(slope, noise) <= limit * (limit / 2 + noise))
    spread, steps, each, step, modulus = sympy.symbols("spread steps each step modulus", positive=True)
    whole = spread / step + step * steps * each
    at = whole.subs(step, sympy.sqrt(spread / (steps * each)))
    assert sympy.simplify(at - 2 * sympy.sqrt(spread * steps * each)) == 0
    scaled_by = whole.subs({spread: spread / modulus, step: step / modulus}, simultaneous=True)  # phi, eta over modulus
    assert sympy.simplify(scaled_by - spread / step - step * steps * each / modulus) == 0
    _formula(cost, bound)
    return "regret of DP-FTRL with L/2: potential, comparator, noise, convexity and the best step, for every T (z3)"


def play(regularizer: str, sums: np.ndarray, eta: float) -> np.ndarray:
    """The point that is least for the regulariser and eta times the sums."""
    if regularizer == "quadratic":  # half of the squared length, in the unit ball
        point = -eta * sums
        return np.asarray(point / max(1.0, float(np.linalg.norm(point))))
    weights = np.exp(-eta * (sums - sums.min()))
    return np.asarray(weights / weights.sum())


def value(regularizer: str, point: np.ndarray) -> float:
    """The regulariser."""
    inside = point[point > 0]
    return float(point @ point / 2 if regularizer == "quadratic" else inside @ np.log(inside))


def dual(regularizer: str, vector: np.ndarray) -> float:
    """The norm of gradients and noises: Euclidean, or the largest modulus."""
    return float(np.linalg.norm(vector) if regularizer == "quadratic" else np.abs(vector).max())


@check("ours:half-of-lipschitz", rejects=BROKEN)
def check_adversarial_noise(subject: Terms = per_step) -> str:
    """Runs in the ball and in the simplex, of losses |<a, theta> - x| and noises as large as an adversary likes: the
    regret against every point is at most (phi(u) - phi(theta_1))/eta + eta times the steps' costs; turning signs, and
    noise that leans their way, attain it on a line."""
    rng, most = np.random.default_rng(83), 0.0
    for regularizer, _ in itertools.product(("quadratic", "entropy"), range(150)):
        d, steps, eta = int(rng.integers(2, 5)), int(rng.integers(1, 12)), 10 ** rng.uniform(-2, 1)
        sums, cost, paid, losses = np.zeros(d), 0.0, 0.0, []
        first = play(regularizer, sums, eta)
        for t in range(steps):
            a, x = rng.normal(size=d), float(rng.normal())
            noise = np.zeros(d) if t == 0 else -a * rng.choice([0.0, 0.3, 5.0]) * rng.choice([-1, 1])
            point = play(regularizer, sums + noise, eta)
            slope = float(np.sign(a @ point - x)) * a
            cost += float(subject(dual(regularizer, slope), dual(regularizer, noise)))
            paid, sums = paid + abs(a @ point - x), sums + slope
            losses.append((a, x))
        points = [play(regularizer, 50 * rng.normal(size=d), 1.0) for _ in range(20)] + [play(regularizer, sums, eta)]
        for u in points:
            regret = paid - sum(abs(a @ u - x) for a, x in losses)
            limit = (value(regularizer, u) - value(regularizer, first)) / eta + eta * cost
            assert regret <= limit + 1e-9, (regularizer, steps, eta)
            most = max(most, regret / limit if limit > 0 else 0.0)
    for steps, noise in itertools.product((2, 10), (0.0, 0.5)):  # 1/10 for eta; against u = 0, whose regulariser is 0
        signs = np.resize([1.0, -1.0], steps)
        before = np.cumsum(signs) - signs
        points = -0.1 * (before - noise * signs)  # inside of [-1, 1]
        assert math.isclose(signs @ points, 0.1 * sum(float(subject(1.0, noise)) for _ in signs)), "not attained"
    return (
        f"regret with noise that an adversary picks: at most {most:.2f} of the bound in random runs, all of it in one"
    )


def _with_deviation(change: Callable[[dict[str, Any]], dict[str, Any]]) -> tuple[Callable[..., float], ...]:
    """Both bounds with what the noise's deviation is made of changed."""
    return tuple(
        lambda steps, bound=bound, **known: bound(steps, **{**known, **change(known)})
        for bound in (bounds.dpftrl_half, bounds.thm_dpftrl)
    )


@check(
    "ours:half-of-lipschitz",
    "thm:dpftrl/regret",
    code=(bounds.dpftrl_half, bounds.thm_dpftrl),
    rejects=[
        _with_deviation(lambda known: {"dual_lipschitz": 1.0}),
        _with_deviation(lambda known: {"dual_lipschitz": known["dual_lipschitz"] ** 2}),
        _with_deviation(lambda known: {"dual_lipschitz": known["dual_lipschitz"] ** 0.99}),
        _with_deviation(
            lambda known: {"dual_lipschitz": 1.0, "gaussian_width": known["gaussian_width"] * known["dual_lipschitz"]}
        ),
    ],
)
def check_unit_of_the_norm(
    subject: tuple[Callable[..., float], ...] = (bounds.dpftrl_half, bounds.thm_dpftrl),
) -> str:
    """A norm in another unit is another norm, and the regret is the same: with |y| / s for |y|, R is R / s^2, and L, G
    and C, which are norms of what is dual, are s times as large. So the constant C of the deviation stands where G
    does, as a factor of sqrt(2 log(T / beta')); at C = 1 other checks know the bound."""
    for steps, noise, s in itertools.product((1, 64), (0.3, 20.0), (1e-3, 0.5, 2.0, 1000.0)):
        known: dict[str, Any] = {"sensitivity": 2.0, "noise": noise, "beta": 1e-4}
        plain = {"regularizer_range": 0.5, "lipschitz": 3.0, "gaussian_width": 0.8, "dual_lipschitz": 1.0}
        other = {name: s * value for name, value in plain.items()} | {"regularizer_range": 0.5 / s**2}
        for bound, true in zip(subject, (bounds.dpftrl_half, bounds.thm_dpftrl), strict=True):
            assert math.isclose(bound(steps, **known, **other), true(steps, **known, **plain), rel_tol=1e-9), (s, noise)
    return "the bounds of DP-FTRL do not depend on the unit of the norm: C counts as G does"
