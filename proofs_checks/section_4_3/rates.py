"""cor:quantile-regret against the theorem it is drawn from: rates at the settings, their units, how long T must be."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import sympy

from pq import bounds
from proofs_checks.engine.registry import check
from proofs_checks.section_4_3.settings import CLAIMED, LAM, D, M, Powers, T, V, X, right_settings

F = Fraction
LIPSCHITZ = ("robust-lipschitz", "lipschitz")


def _of_range(power: float) -> Callable[..., Any]:
    """The rates and settings with another power of b - a."""
    return lambda *case, width, **known: bounds.cor_quantile_regret(*case, width=width ** (power / 3), **known)


@check(
    "cor:quantile-regret",
    code=(bounds.cor_quantile_regret, bounds.thm_quantile_regret),
    rejects=[_of_range(power) for power in (0.0, 2.0, 2.97, 3.03)],
)
def check_unit_of_data(subject: Callable[..., Any] = bounds.cor_quantile_regret) -> str:
    """The density 2x on (0, 1) and two records, measured in other units: the masses of all cells are the same, so are
    the regret and the settings, and the rates with V (b - a)^3; those printed, with V, change by u^(-3/2), u^(-3/4)."""
    records, steps, found, shown = (F(1, 4), F(1, 2)), 10**16, [], []
    for unit in (F(1), F(1000), F(1, 10**4)):

        def below(x: Fraction, unit: Fraction = unit) -> Fraction:
            return (x / unit) ** 2  # the integral of 2 x / unit^2

        one, two = (unit * x for x in records)
        assert below(two) - below(one) == F(3, 16), "the mass of a cell has no unit"
        steep = (below(2 * one) - 2 * below(one)) / one**2  # the second derivative of x^2/unit^2
        known: dict[str, Any] = {"lipschitz": float(steep), "separation": float(two - one), "quantiles": 2}
        for case in LIPSCHITZ:
            lam = 0.25 if case.startswith("robust") else 0.0
            as_printed = bounds.cor_quantile_regret(case, steps, noise_factor=9.0, mixture=lam, width=1.0, **known)
            right = subject(case, steps, noise_factor=9.0, mixture=lam, width=float(unit), **known)
            more: dict[str, Any] = {"epsilon": 1.0, "noise": 4.0, "beta": 0.1, "mixture": lam, "width": float(unit)}
            regret = bounds.thm_quantile_regret(steps, right.cells, right.robustness, **known, **more).regret
            found.append([right.rate, regret, right.robustness])
            shown.append(as_printed.rate * float(unit) ** (1.5 if lam else 0.75))
    for place, alike in enumerate(found):
        assert all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(alike, found[place % 2], strict=True)), alike
        assert math.isclose(shown[place], shown[place % 2], rel_tol=1e-9), "as the row says, V/psi has a unit"
    return "items 2 and 4: V(b - a)^3/psi has no unit, V/psi has: the printed rates change by u^(-3/2) and u^(-3/4)"


def _rate_by(steps_power: float, noise_power: float) -> Callable[..., Any]:
    def other(case: Any, steps: int, *, noise_factor: float, **known: Any) -> Any:
        found = bounds.cor_quantile_regret(case, steps, noise_factor=noise_factor, **known)
        return found._replace(rate=found.rate * float(steps) ** steps_power * noise_factor**noise_power)

    return other


def _printed_cells(case: Any, steps: int, **known: Any) -> Any:
    cells = bounds.cor_quantile_regret(case, steps, version="paper", **known).cells
    return bounds.cor_quantile_regret(case, steps, **known)._replace(cells=cells)


def share_of_claim(
    subject: Callable[..., Any], case: Any, steps: int, epsilon: float, learning: float, **known: Any
) -> float:
    """The regret of the theorem, with the noise of epsilon', over the rate of the corollary."""
    known = {**known, "mixture": 0.25 if case.startswith("robust") else 0.0}
    known |= {} if case.endswith("lipschitz") else {"lipschitz": 0.0}
    spread = min(1.0, epsilon * (2 if known["quantiles"] > 1 else 1)) / learning
    found = subject(case, steps, noise_factor=1 + spread, cells=7, **known)
    noise = bounds.dpftrl_noise(steps, learning, 1e-6)
    settings = {"epsilon": epsilon, "noise": noise, "beta": 0.1, **known}
    return bounds.thm_quantile_regret(steps, found.cells, found.robustness, **settings).regret / found.rate


@check(
    "cor:quantile-regret",
    "cor:quantile-regret/settings",
    code=(bounds.cor_quantile_regret, bounds.thm_quantile_regret, bounds.dpftrl_noise),
    rejects=[
        _printed_cells,
        *(_rate_by(power, 0.0) for power in (-0.02, 0.02)),
        *(_rate_by(0.0, power) for power in (-0.05, 0.05)),
        lambda *a, **k: bounds.cor_quantile_regret(*a, **k)._replace(robustness=0.25),
        lambda *a, noise_factor, **k: bounds.cor_quantile_regret(*a, noise_factor=noise_factor**1.1, **k),
    ],
)
def check_rates_of_theorem(subject: Callable[..., Any] = bounds.cor_quantile_regret) -> str:
    """At the settings the regret of thm:quantile-regret, with the noise that makes it (eps', delta')-private, is the
    claimed rate with X = 1 + min(1, eps)/eps', but for (log T)^(5/4) at most, in all four classes."""
    known: dict[str, Any] = {"quantiles": 3, "lipschitz": 3.0, "width": 2.0, "separation": 0.1}
    shares = []
    for case, exponent in itertools.product(CLAIMED, (20, 32, 64)):
        for epsilon, learning in itertools.product((1.0, 1e-2, 1e-4), (1.0, 1e-2, 1e-6)):
            share = share_of_claim(subject, case, 10**exponent, epsilon, learning, **known)
            assert 1 <= share <= 3 * (exponent * math.log(10)) ** 1.25, (case, exponent, epsilon, learning, share)
            shares.append(share / (exponent * math.log(10)) ** 1.25)
        noisy = [share_of_claim(subject, case, 10**exponent, 1.0, learning, **known) for learning in (1e-2, 1e-4, 1e-6)]
        assert max(noisy) < 1.3 * min(noisy), (case, exponent, noisy, "the power of X")
    return f"cor:quantile-regret: the theorem at its settings is at most {max(shares):.1f} (log T)^(5/4) times the rate"


def least_length(m: Any, ratio: Any, x: Any) -> Any:
    """From which T on the best d of items 2 and 4 is at least 1, for the ratio V (b - a)^3/psi."""
    return m * x / ratio**2


@check(
    "cor:quantile-regret",
    code=(bounds.cor_quantile_regret, bounds.thm_quantile_regret),
    rejects=[
        lambda m, ratio, x: m * x,
        lambda m, ratio, x: m * x / ratio,
        lambda m, ratio, x: m * x / ratio**2.5,
        lambda m, ratio, x: m / ratio**2,
        lambda m, ratio, x: m * x**2 / ratio**2,
        lambda m, ratio, x: x / ratio**2,
        lambda m, ratio, x: m**2 * x / ratio**2,
    ],
)
def check_length_for_cells(subject: Callable[[int, float, float], float] = least_length) -> str:
    """Items 2 and 4 need such a T: from there on the theorem is the rate but for logarithms, and for a ten thousandth
    of it no more, as there are two cells at least."""
    sizes = [(1, 1.0, 1.0), (1, 1.0, 1e-6), (10**4, 1e-6, 1.0)]  # m, epsilon, epsilon'
    for case, (m, epsilon, learning), ratio in itertools.product(LIPSCHITZ, sizes, (1e-3, 1e-8)):
        least = subject(m, ratio, 1 + epsilon / learning)
        known: dict[str, Any] = {"quantiles": m, "lipschitz": ratio, "width": 1.0, "separation": 1.0}
        for times in (1e-4, 1, 10**4, 10**12):
            steps = math.ceil(times * least)
            share = share_of_claim(bounds.cor_quantile_regret, case, steps, epsilon, learning, **known)
            logs = 2.5 * math.log(steps) ** 1.25 if epsilon == 1 else 4 * math.sqrt(math.log(steps))  # without noise
            assert (share <= logs) == (times >= 1), (case, m, ratio, learning, times, share)
    known = {"quantiles": 1, "lipschitz": 1e-9, "width": 1.0, "separation": 1.0, "mixture": 0.5}
    few = bounds.cor_quantile_regret("robust-lipschitz", 10**4, noise_factor=1.0, **known)
    settings: dict[str, Any] = {"epsilon": 1.0, "noise": 0.0, "beta": 0.1, **known}
    over = bounds.thm_quantile_regret(10**4, few.cells, few.robustness, **settings).regret / few.rate
    assert few.cells == 2 and round(over) == 10531, "as the row says"
    return f"items 2 and 4 need T >= m X (psi/(V (b - a)^3))^2: at T = 10^4 for 10^18 the bound is {over:.0f} claims"


def random_setting(draw: random.Random) -> tuple[str, int, float, float, float, int, float]:
    """Class, m, epsilon, epsilon', V (b - a)^3/psi, d, lambda: often at an end of its range."""

    def between(low: float, high: float) -> float:
        return 10.0 ** draw.choice((low, high, draw.uniform(low, high)))

    budgets = between(-6, 1), between(-6, 1)
    rest = between(-4, 4), draw.choice((2, 3, 7, 1000, 10**6)), draw.choice((0.01, 0.25, 0.5))
    return draw.choice(list(CLAIMED)), round(between(0, 4)), *budgets, *rest


def _paper_rate(subject: Powers, case: str, steps: int, place: dict[Any, Any]) -> tuple[int, float, float]:
    """Cells, floor and rate of the paper, at these settings."""
    cells, floor = (float(value.subs({**place, T: steps})) for value in subject(case))
    return max(2, math.ceil(cells)), floor, float(CLAIMED[case].subs({**place, T: steps}))


@check(
    "cor:quantile-regret",
    code=(bounds.thm_quantile_regret, bounds.dpftrl_noise, bounds.cor_quantile_regret),
    rejects=[
        (lambda case: (right_settings(case)[0] * (X if case in LIPSCHITZ else 1), right_settings(case)[1]), 5.0),
        (lambda case: (right_settings(case)[0], right_settings(case)[1] / M), 5.0),
        (right_settings, 4.7),
    ],
)
def check_printed_rates(subject: tuple[Powers, float] = (right_settings, 5.0)) -> str:
    """The four printed rates, with V (b - a)^3 for V and X = 1 + min(1, eps~)/eps', and ours, with X = 1 + sqrt m
    min(1, eps)/eps', hold at the settings from such T on: the regret of thm:quantile-regret is at most 5 (log dT)^(5/4)
    times each. One large d needs 4.7 times that power.

    subject: settings of the paper, and the constant.
    """
    draw, most = random.Random(131), 0.0
    corner = "robust-discrete", 1, 10.0, 1e-6, 1.0, 1000, 0.5
    for trial, ours in itertools.product(range(500), (False, True)):
        case, m, epsilon, learning, ratio, d, lam = random_setting(draw) if trial else corner
        moved = math.sqrt(m) * min(1.0, epsilon) if ours else min(1.0, epsilon * (2 if m > 1 else 1))
        x, smooth, robust = 1 + moved / learning, case in LIPSCHITZ, case.startswith("robust")
        least = max(10**4, least_length(m, ratio, x) if smooth else 0)
        place = {M: m, X: x, D: d, LAM: lam, V: ratio}
        if not robust:
            least = max(least, float(length_for_floor(case).subs(place)) / (m ** (3 if smooth else 1) if ours else 1))
        steps = math.ceil(least * 10.0 ** (draw.choice((0, 0, draw.uniform(0, 12))) if trial else 0))
        known: dict[str, Any] = {"quantiles": m, "mixture": lam * robust, "lipschitz": ratio * smooth}
        found = bounds.cor_quantile_regret(case, steps, noise_factor=x, cells=d, **known)  # type: ignore[arg-type]
        cells, floor, rate = found if ours else _paper_rate(subject[0], case, steps, place)
        known |= {"epsilon": epsilon, "beta": 0.1, "noise": bounds.dpftrl_noise(steps, learning, 1e-6)}
        regret = bounds.thm_quantile_regret(steps, cells, floor, **known).regret
        most = max(most, regret / rate / math.log(cells * steps) ** 1.25)
        assert most <= subject[1], (case, m, epsilon, learning, ratio, d, lam, ours, most)
    return f"cor:quantile-regret: printed rates and ours from such T on, but for {most:.2f} (log dT)^(5/4), m to 10^4"


def _second_order(in_rate: float, in_cells: float) -> Callable[..., Any]:
    """The settings of ours:discretisation with other powers of T."""

    def other(steps: int, **named: Any) -> Any:
        found = bounds.lipschitz_cells(steps, **named)
        cells = max(2, round(found.cells * float(steps) ** in_cells))
        return found._replace(rate=found.rate * float(steps) ** in_rate, cells=cells)

    return other


@check(
    "ours:discretisation",
    code=(bounds.thm_quantile_regret, bounds.lipschitz_cells),
    rejects=[
        *(_second_order(*powers) for powers in ((-0.02, 0.0), (0.08, 0.0), (0.0, 0.05), (0.0, -0.05))),
        lambda steps, **named: bounds.lipschitz_cells(steps, **{**named, "width": 1.0}),
        lambda steps, **named: bounds.lipschitz_cells(steps, **{**named, "separation": 1.0}),
    ],
)
def check_better_rates_of_theorem(subject: Callable[..., Any] = bounds.lipschitz_cells) -> str:
    """At the settings for T^(2/3) and T^(5/6) the regret of thm:quantile-regret, with X = 1 + sqrt m min(1, eps)/eps',
    is at most 5 (log dT)^(5/4) times the rate, and at least the rate, from such T on that there are two cells and a
    floor of a half at most."""
    draw, most = random.Random(139), 0.0
    for trial in range(400):
        _, m, epsilon, learning, ratio, _, lam = random_setting(draw)
        x, lam = 1 + math.sqrt(m) * min(1.0, epsilon) / learning, lam * (trial % 2)
        least = max(10**4, least_length(m, ratio, x), 0 if lam else 64 * ratio * m * x)
        steps = math.ceil(least * 10.0 ** draw.choice((0, 12, 30)))
        width, least_gap = 10.0 ** draw.uniform(-2, 2), 10.0 ** draw.uniform(-3, 0)  # b - a, and psi of it
        known: dict[str, Any] = {"quantiles": m, "mixture": lam, "width": width, "separation": width * least_gap}
        known |= {"lipschitz": ratio * least_gap / width**2}
        found = subject(steps, noise_factor=x, **known)
        noise = bounds.dpftrl_noise(steps, learning, 1e-6)
        known |= {"epsilon": epsilon, "beta": 0.1, "noise": noise}
        share = bounds.thm_quantile_regret(steps, found.cells, found.robustness, **known).regret / found.rate
        most = max(most, share / math.log(found.cells * steps) ** 1.25)
        assert share >= 1 and most <= 5, (m, epsilon, learning, ratio, lam, steps, share)
    return f"T^(2/3) and T^(5/6) of thm:quantile-regret with noise, but for {most:.2f} (log dT)^(5/4)"


def length_for_floor(case: str) -> sympy.Expr:
    """From which T on the floor of items 3 and 4 is at most a half."""
    return 16 * M**2 * D**2 * X if case == "discrete" else 256 * M**4 * V**2 * X


@check(
    "cor:quantile-regret",
    rejects=[
        lambda case: 16 * M**2 * D**2 * X,
        lambda case: 256 * M**4 * V**2 * X,
        lambda case: length_for_floor(case) / X,
        *(lambda case, by=by: F(by, 100) * length_for_floor(case) for by in (99, 101)),
    ],
)
def check_length_for_floor(subject: Callable[[str], sympy.Expr] = length_for_floor) -> str:
    """gamma <= 1/2, which thm:quantile-regret asks for, holds in items 3 and 4 from these T on, and before them not; in
    ours from T on that have m for m^2 and m^4."""
    for case in ("discrete", "lipschitz"):
        floor = right_settings(case)[1]
        assert floor.subs(T, subject(case)) == sympy.Rational(1, 2), case
        assert sympy.diff(floor, T).is_negative, "falls as T grows"
        place = {M: 100, D: 7, X: 50, V: 3}
        steps = int(subject(case).subs(place)) // 100 ** (3 if case == "lipschitz" else 1)
        known: dict[str, Any] = {"quantiles": 100, "noise_factor": 50.0, "cells": 7, "lipschitz": 3.0}
        ours = [bounds.cor_quantile_regret(case, by * steps, **known).robustness for by in (1, 2)]  # type: ignore[arg-type]
        power = 1 / 8 if case == "lipschitz" else 1 / 4
        assert math.isclose(ours[0], 0.5) and math.isclose(ours[1] / ours[0], 2**-power)
    return "gamma <= 1/2 in items 3 and 4: T >= 16 m^2 d^2 X and 256 m^4 (V (b - a)^3/psi)^2 X (sympy)"
