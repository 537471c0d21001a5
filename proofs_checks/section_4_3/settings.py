"""cor:quantile-regret: rates of each item and the settings that give them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

import sympy
from flint import arb

from pq import bounds
from proofs_checks.engine.registry import check
from proofs_checks.tools.broken import printed
from proofs_checks.tools.exact import ball

F = Fraction


@check(
    "cor:quantile-regret",
    "cor:quantile-regret/settings",
    code=bounds.cor_quantile_regret,
    rejects=[
        printed(bounds.cor_quantile_regret),
        lambda *a, **k: bounds.cor_quantile_regret(*a, **k)._replace(robustness=0.25),
        lambda *a, **k: bounds.cor_quantile_regret(*a, **k)._replace(cells=4),
    ],
)
def check_settings(subject: Callable[..., Any] = bounds.cor_quantile_regret) -> str:
    """The settings give the claimed powers of T and of the noise factor X, for all four classes, as X and T grow."""
    claimed = {"robust-discrete": (0.5, 0.5), "robust-lipschitz": (0.25, 0.75), "discrete": (0.25, 0.75)}
    claimed["lipschitz"] = (0.125, 0.875)
    for case, (in_noise, in_steps) in claimed.items():
        lam = 0.25 if case.startswith("robust") else 0.0
        ratios = []
        for x, steps in ((1.0, 10**16), (1e3, 10**22), (1e6, 10**28), (1e6, 10**40)):
            smooth = 1.0 if case.endswith("lipschitz") else 0.0
            found = subject(
                case,
                steps,
                quantiles=1,
                noise_factor=x,
                cells=4,
                mixture=lam,
                lipschitz=smooth,
                width=1.0,
                separation=1.0,
            )
            d, gamma = found.cells, found.robustness
            total = smooth * steps / (gamma * d) + max(gamma - lam, 0) * steps + d / gamma * math.sqrt(x * steps)
            ratios.append(total / (x**in_noise * steps**in_steps))
        assert max(ratios) <= 3 * min(ratios), (case, ratios)
    paper = bounds.cor_quantile_regret(
        "robust-lipschitz", 10**28, quantiles=1, noise_factor=1e6, mixture=0.5, lipschitz=1.0, version="paper"
    )
    total = 1e28 / (0.5 * paper.cells) + paper.cells / 0.5 * math.sqrt(1e6 * 1e28)
    share = total / (1e6**0.25 * 1e21 / 0.5)
    assert paper.robustness == 0.5 and round(share) == 1000, "as the row says"
    return (
        f"settings: items 1, 3 right; items 2, 4 need sqrt(T/X) in d: with sqrt(TX) {share:.0f}x the claim at X = 1e6"
    )


Powers = Callable[[str], tuple[sympy.Expr, sympy.Expr]]
M, D, V, X, T, LAM = sympy.symbols("m d V X T lambda", positive=True)  # V stands for V (b - a)^3/psi
CLAIMED = {  # the printed regrets of the four items
    "robust-discrete": D * M / LAM * sympy.sqrt(X * T),
    "robust-lipschitz": M / LAM * sympy.sqrt(V) * X ** sympy.Rational(1, 4) * T ** sympy.Rational(3, 4),
    "discrete": sympy.sqrt(D * M) * X ** sympy.Rational(1, 4) * T ** sympy.Rational(3, 4),
    "lipschitz": sympy.sqrt(M) * (V * sympy.sqrt(X)) ** sympy.Rational(1, 4) * T ** sympy.Rational(7, 8),
}


def right_settings(case: str) -> tuple[sympy.Expr, sympy.Expr]:
    """Cells and floor of each item: the printed ones, but for sqrt(T/X) in the place of sqrt(XT)."""
    cells = sympy.sqrt(V * sympy.sqrt(T / X)) if case.endswith("lipschitz") else D
    floors = {
        "discrete": sympy.sqrt(M * D) * (X / T) ** sympy.Rational(1, 4),
        "lipschitz": sympy.sqrt(M) * V ** sympy.Rational(1, 4) * (X / T) ** sympy.Rational(1, 8),
    }
    return cells, floors.get(case, LAM)


def _other_cells(case: str) -> tuple[sympy.Expr, sympy.Expr]:
    cells, floor = right_settings(case)
    return (sympy.sqrt(V * sympy.sqrt(T * X)) if case.endswith("lipschitz") else cells), floor


@check(
    "cor:quantile-regret",
    "cor:quantile-regret/settings",
    rejects=[
        _other_cells,
        lambda case: (right_settings(case)[0], right_settings(case)[1] / sympy.sqrt(M)),
        lambda case: (right_settings(case)[0], right_settings(case)[1] * V),
        lambda case: (right_settings(case)[0] * M, right_settings(case)[1]),
    ],
)
def check_settings_balance(subject: Powers = right_settings) -> str:
    """All four items in m, d, V (b - a)^3/psi, lambda, X, T at once: the terms of the printed regret, m V T/(gamma d)
    and m d sqrt(XT)/gamma, and gamma T where the class is not robust, are each the claim itself, so that no
    other d and gamma do better than by a constant (sympy)."""
    for case, claim in CLAIMED.items():
        cells, floor = subject(case)
        terms = [M * cells / floor * sympy.sqrt(X * T)]
        terms += [M * V * T / (floor * cells)] if case.endswith("lipschitz") else []
        terms += [] if case.startswith("robust") else [floor * T]
        assert all(sympy.simplify(term / claim) == 1 for term in terms), (case, terms)
        printed_cells_times = sympy.sqrt(sympy.sqrt(T * X)) / sympy.sqrt(sympy.sqrt(T / X))
        if case.endswith("lipschitz"):  # with the printed d the last term is too large by a root of X, in item 4 too
            over = sympy.simplify(M * cells * printed_cells_times / floor * sympy.sqrt(X * T) / claim)
            assert over == sympy.sqrt(X), (case, over)
    return "settings of d and gamma: every term of the regret is the claim itself, for all m, d, V, X, T (sympy)"


@check(
    "cor:quantile-regret",
    code=bounds.cor_quantile_regret,
    rejects=[
        printed(bounds.cor_quantile_regret),
        lambda *a, **k: _rate_times(0.99, *a, **k),
        lambda *a, **k: _rate_times(1.01, *a, **k),
        lambda *a, **k: bounds.cor_quantile_regret(*a, **{**k, "quantiles": 1}),
        lambda *a, **k: bounds.cor_quantile_regret(*a, **{**k, "width": 1.0}),
        lambda *a, **k: bounds.cor_quantile_regret(*a, **{**k, "mixture": 0.25 if k["mixture"] else 0.0}),
        lambda *a, **k: bounds.cor_quantile_regret(*a, **{**k, "cells": 7}),
        lambda *a, **k: bounds.cor_quantile_regret(*a, **{**k, "separation": 0.1}),
    ],
)
def check_settings_in_package(subject: Callable[..., Any] = bounds.cor_quantile_regret) -> str:
    """The package's settings and rates are those with sqrt m for m (ours:regret-in-quantiles), but for whole cells; and
    what they have for m: its root, or with noise, X in proportion to the width sqrt m, m^(3/4), for cells; the roots of
    these for the Lipschitz classes. Where the paper has sqrt m, the root of all that."""
    places = (  # T, m, X, d, lambda, V, b - a, psi
        (10**16, 9, 50.0, 7, 0.25, 3.0, 2.0, 0.1),
        (10**21 + 1, 2, 1.5, 2, 0.4, 0.3, 0.5, 0.01),
        (3 * 10**27, 7, 4e3, 1000, 0.01, 40.0, 1.0, 0.3),
    )
    for (case, claim), (steps, m, x, d, lam, *lengths) in itertools.product(CLAIMED.items(), places):
        known: dict[str, Any] = {"quantiles": m, "noise_factor": x, "cells": d, "mixture": lam}
        known |= dict(zip(("lipschitz", "width", "separation"), lengths, strict=True))
        smooth, ratio = case.endswith("lipschitz"), lengths[0] * lengths[1] ** 3 / lengths[2]
        found = subject(case, steps, **known)
        at = {M: math.sqrt(m), X: x, T: float(steps), D: d, LAM: lam, V: ratio}
        at |= {V: ratio / at[M]} if smooth else {}  # the discretisation has no factor m
        cells, floor = (float(value.subs(at)) for value in right_settings(case))
        assert found.cells == (math.ceil(cells) if smooth else d), (case, found.cells, cells)
        assert math.isclose(found.robustness, min(floor, 0.5), rel_tol=1e-9), (case, found.robustness, floor)
        assert math.isclose(found.rate, float(claim.subs(at)), rel_tol=1e-9), (case, found.rate)
        in_place, whole = (0.25, 0.375) if smooth else (0.5, 0.75), case.startswith("robust")
        for wider, power in zip((1.0, 4.0), in_place, strict=True):
            more = subject(case, steps, **{**known, "quantiles": m * 16, "noise_factor": x * wider})
            assert math.isclose(more.rate / found.rate, 16 ** (power if whole else power / 2), rel_tol=1e-9), case
    return "cor_quantile_regret: d, gamma and rate of the four classes, with sqrt m where the paper has m"


def _rate_times(factor: float, *args: Any, **named: Any) -> Any:
    found = bounds.cor_quantile_regret(*args, **named)
    return found._replace(rate=factor * found.rate)


def _no_epsilon(*args: Any, epsilon: float, **named: Any) -> bounds.QuantileRegret:
    """The regret with the crude sensitivity, which does not fall with epsilon."""
    return bounds.thm_quantile_regret(*args, epsilon=50.0, **named)


def _squared_noise(*args: Any, noise: float, **named: Any) -> bounds.QuantileRegret:
    """The regret with log(1/delta') where its root belongs."""
    return bounds.thm_quantile_regret(*args, noise=noise**2, **named)


@check("cor:quantile-regret/small-epsilon", rejects=[_no_epsilon, _squared_noise])
def check_small_epsilon(subject: Callable[..., Any] = bounds.thm_quantile_regret) -> str:
    """The regret falls with epsilon, and for epsilon = epsilon' depends on delta' by less than log(1/delta')."""
    sizes = ((1000, 8, 0.25, 3, 0.05), (3, 2, 0.5, 1, 0.9), (10**6 + 1, 100, 0.1, 50, 1e-9))  # T, d, gamma, m, beta'
    for version, (t, d, gamma, m, beta) in itertools.product(("corrected", "paper"), sizes):

        def regret(
            epsilon: float, learning: float, delta: float, known: Any = (t, d, gamma, m, beta, version)
        ) -> float:
            steps, cells, floor, quantiles, failure, kind = known
            named: dict[str, Any] = {"quantiles": quantiles, "beta": failure, "mixture": floor, "version": kind}
            noise = bounds.dpftrl_noise(steps, learning, delta)
            return float(subject(steps, cells, floor, epsilon=epsilon, noise=noise, **named).regret)

        falling = [regret(epsilon, 0.1, 1e-6) for epsilon in (1.0, 0.3, 0.1, 0.01)]
        assert falling == sorted(falling, reverse=True)
        assert falling[-1] < falling[0] / 2
        by_delta = [regret(0.1, 0.1, delta) for delta in (1e-3, 1e-6, 1e-12)]
        assert all(1 < later / earlier < 2**0.25 for earlier, later in pairwise(by_delta))
        shared = [regret(epsilon, epsilon, 1e-6) for epsilon in (1.0, 0.1, 1e-2, 1e-4, 1e-6)]  # of both alike
        assert max(shared) < 1.5 * min(shared) and abs(shared[-1] / shared[-2] - 1) < 1e-3, "depends on eps' itself"
    return (
        "regret falls with eps; at eps = eps' it stays bounded as both fall, and squaring delta' costs at most 2^(1/4)"
    )


def noise_of(epsilon: float, learning: float, odds: float) -> float:
    """X of the four items: epsilon of a release, epsilon' of the learning, odds for log(1/delta')."""
    return 1 + min(1.0, 2 * epsilon) * math.sqrt(2 * odds) / learning


@check(
    "cor:quantile-regret/small-epsilon",
    code=bounds.cor_quantile_regret,
    rejects=[
        lambda epsilon, learning, odds: noise_of(1.0, learning, odds),
        lambda epsilon, learning, odds: noise_of(1 / epsilon, learning, odds),
        lambda epsilon, learning, odds: noise_of(epsilon, learning, odds**2),
        lambda epsilon, learning, odds: noise_of(epsilon, learning**2, odds),
        lambda epsilon, learning, odds: noise_of(epsilon, learning**1.01, odds),
    ],
)
def check_small_epsilon_in_all(subject: Callable[[float, float, float], float] = noise_of) -> str:
    """The bounds of all four classes fall with epsilon; where it is a multiple of epsilon' they do not depend on
    epsilon' as both fall, and squaring delta' costs each of them at most 2^(1/4)."""
    known: dict[str, Any] = {"quantiles": 3, "cells": 8, "mixture": 0.25, "lipschitz": 1.0}
    for case in CLAIMED:

        def rate(*facts: float, case: str = case) -> float:
            return bounds.cor_quantile_regret(case, 10**20, noise_factor=subject(*facts), **known).rate

        for learning, odds in itertools.product((0.01, 1.0), (5.0, 30.0)):
            assert all(rate(e, learning, odds) > rate(e / 3, learning, odds) for e in (0.5, 0.1, 1e-3)), case
        for times, learning, odds in itertools.product((0.1, 1.0, 100.0), (1e-4, 0.01), (5.0, 80.0)):
            cost = rate(times * learning, learning, 2 * odds) / rate(times * learning, learning, odds)
            assert 1 < cost <= 2**0.25 * (1 + 1e-9), (case, cost)
        for times, odds in itertools.product((0.1, 1.0, 100.0), (5.0, 80.0)):
            alike = [rate(times * learning, learning, odds) for learning in (5e-3, 1e-4, 1e-6)]
            assert max(alike) <= min(alike) * (1 + 1e-9), (case, "depends on eps' itself")
            assert rate(times, 1.0, odds) <= alike[0] * (1 + 1e-9), (case, "and not more for large ones")
    return "all four classes: regret falls with eps; at eps = O(eps') squaring delta' costs at most 2^(1/4) of it"


def corrected_cells(steps: int, x: int) -> arb:
    """d of item 2 for V (b - a)^3 / psi = 1: sqrt(sqrt(T/X))."""
    return ball(F(steps, x)).sqrt().sqrt()


def printed_cells(steps: int, x: int) -> arb:
    """As printed: sqrt(sqrt(X T))."""
    return arb(x * steps).sqrt().sqrt()


@check("cor:quantile-regret/settings", rejects=[printed_cells, lambda steps, x: arb(steps).sqrt().sqrt()])
def check_settings_in_balls(subject: Callable[[int, int], arb] = corrected_cells) -> str:
    """Item 2 of cor:quantile-regret: T/d + d sqrt(X T) against the claim X^(1/4) T^(3/4), as X grows."""
    shares: Mapping[int, arb] = {
        x: (10**28 / subject(10**28, x) + subject(10**28, x) * arb(x * 10**28).sqrt())
        / (arb(x).sqrt().sqrt() * ball(10**21))
        for x in (1, 10**4, 10**8)
    }
    assert all(share < 3 for share in shares.values()), {x: float(share) for x, share in shares.items()}
    worst = (printed_cells(10**28, 10**8) * arb(10**36).sqrt()) / (arb(100) * ball(10**21))
    assert worst > 9999
    return f"cor:quantile-regret, item 2: with the printed d {float(worst):.0f} times the claim at X = 10^8 (balls)"


@check(
    "cor:quantile-regret/sublinear",
    code=(bounds.thm_quantile_regret, bounds.lipschitz_cells),
    rejects=[
        *(lambda v, lam, gamma, known=known: known for known in (True, False)),
        *(lambda v, lam, gamma, most=most: v <= most and lam >= gamma for most in (1e-9, 1e-4, 1e-3, 1.0)),
        *(lambda v, lam, gamma, by=by: v == 0 and lam >= by * gamma for by in (0.0, 0.5, 0.6, 0.99, 1.01, 2.0)),
        *(lambda v, lam, gamma, by=by: v == 0 and lam >= by for by in (0.06, 0.099, 0.1, 0.101, 0.5)),
        lambda v, lam, gamma: v == 0 and lam > gamma,
        lambda v, lam, gamma: lam >= gamma,
        lambda v, lam, gamma: v == 0 and gamma <= lam < 0.99,
    ],
)
def check_sublinear(
    subject: Callable[[float, float, float], bool] = lambda v, lam, gamma: v == 0 and lam >= gamma,
) -> str:
    """With d and gamma fixed the bound is sublinear only for V = 0 and lambda >= gamma, however near lambda is to it;
    with d or gamma that move with T it is for every class."""
    common: dict[str, Any] = {"quantiles": 1, "epsilon": 1.0, "noise": 1.0, "beta": 0.1, "separation": 0.1}

    def average(steps: int, d: int, gamma: float, v: float, lam: float) -> float:
        return bounds.thm_quantile_regret(steps, d, gamma, lipschitz=v, mixture=lam, **common).regret / steps

    for (d, gamma), v in itertools.product(((8, 0.1), (3, 0.5), (50, 0.02)), (0.0, 1e-9, 1e-3, 1.0, 1e3)):
        near = [by * gamma for by in (0.0, 0.5, 0.9, 0.99, 1.0, 1.01)]
        for lam in (*near, (1 + gamma) / 2, 0.99):
            fixed = [average(10**k, d, gamma, v, lam) for k in (60, 80)]
            assert (fixed[1] < 1e-6 * fixed[0]) == subject(v, lam, gamma), (d, gamma, v, lam, fixed)
            assert not average(10**40, d, (1 + lam) / 2, v, lam) < 1e-9, "a floor above lambda costs its share"
            moving = []
            for k in (20, 30, 40):
                settings = {"noise_factor": 1.0, "lipschitz": max(v, 1e-9), "width": 1.0, "separation": 0.1}
                found = bounds.lipschitz_cells(10**k, mixture=lam, **settings)
                floor = min(found.robustness, lam) if lam else found.robustness
                moving.append(average(10**k, found.cells, floor, v, lam))
            assert moving[2] < moving[1] < moving[0] and moving[2] < 0.1 * moving[0], (v, lam, moving)
    return "d and gamma fixed: linear for V > 0 or lambda < gamma; moved with T: sublinear for all four classes"
