"""Ours: half of the first L in thm:dpftrl, and a discretisation error of second order in thm:quantile-regret."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import sympy
import z3

from pq import bounds
from proofs_checks.engine.registry import check
from proofs_checks.section_4_3.learning_terms import overlap
from proofs_checks.section_4_3.simulated import STREAMS, worst_streams
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.cases import with_ends, without_ends
from proofs_checks.tools.exact import log_ball
from proofs_checks.tools.runs import report_shares
from proofs_checks.tools.solver import follows

F = Fraction
HALF, EIGHTH = F(1, 2), F(1, 8)


@check("ours:half-of-lipschitz", rejects=[F(99, 200), F(1, 4), F(0)])
def check_conjugate_step(subject: Fraction = HALF) -> str:
    """One step of the proof, for every regulariser that is 1-strongly convex in some norm: with w and u its points at
    minus the sums x and y its conjugate is smooth with the constant 1/2, and u is within the dual norm D of y - x of w.
    Also without norms, for the quadratic regulariser on [-1, 1] at every point and gradient (z3).

    Strong convexity where w and u are optimal: phi(u) >= phi(w) + <x, u - w> + |u - w|^2/2, and the same with w, u and
    x, y exchanged; the conjugate is <x, w> - phi(w), and <y - x, u - w> <= D |u - w|.
    """
    x, y, w = z3.Reals("x y w")

    def conjugate(v: z3.ArithRef) -> z3.ArithRef:
        return z3.If(v > 1, v - HALF_Z3, z3.If(v < -1, -v - HALF_Z3, v * v / 2))

    half = z3.RealVal(f"{subject.numerator}/{subject.denominator}")
    phi_w, phi_u, x_w, x_u, y_w, y_u, distance, dual = z3.Reals("phi_w phi_u x_w x_u y_w y_u distance dual")
    known = (distance >= 0, dual >= 0, y_u - y_w - x_u + x_w <= dual * distance)  # x_u is <x, u>
    known = (*known, phi_u >= phi_w + x_u - x_w + distance * distance / 2)
    follows(*known, goal=y_u - phi_u <= x_w - phi_w + (y_w - x_w) + half * dual * dual)
    follows(*known, phi_w >= phi_u + y_w - y_u + distance * distance / 2, goal=distance <= dual)
    point = z3.If(x > 1, z3.RealVal(1), z3.If(x < -1, z3.RealVal(-1), x))
    follows(w == point, goal=conjugate(y) <= conjugate(x) + w * (y - x) + half * (y - x) * (y - x))
    return "conjugate of a 1-strongly convex regulariser: a step costs eta L^2/2, and noise eta times its norm (z3)"


HALF_Z3 = z3.RealVal("1/2")


@check(
    "ours:half-of-lipschitz",
    code=bounds.dpftrl_half,
    rejects=[scaled(bounds.dpftrl_half, 0.99), scaled(bounds.dpftrl_half, 1.01), bounds.thm_dpftrl],
)
def check_orthogonal_gradients(subject: Callable[..., float] = bounds.dpftrl_half) -> str:
    """Attained without noise: each gradient of length L at right angles to the sum so far, in the plane."""
    for steps, length, radius in ((1, 1.0, 1.0), (7, 2.0, 0.5), (400, 0.3, 3.0)):
        known: dict[str, Any] = {"lipschitz": length, "sensitivity": 1.0, "gaussian_width": 1.0, "noise": 0.0}
        bound = subject(steps, regularizer_range=radius**2 / 2, beta=0.1, **known)
        eta = radius / (length * math.sqrt(steps))
        total, lost = np.zeros(2), 0.0
        for _ in range(steps):
            norm = float(np.hypot(*total))
            slope = length * (np.array([-total[1], total[0]]) / norm if norm else np.array([1.0, 0.0]))
            lost += float(-eta * total @ slope)
            total = total + slope
            assert eta * np.hypot(*total) <= radius * (1 + 1e-9), "the ball is never left"
        regret = lost + radius * float(np.hypot(*total))
        assert regret <= bound * (1 + 1e-9) and bound <= regret * (1 + 1e-9), (steps, regret, bound)
    return "L sqrt(2 R T) without noise: gradients at right angles to their sum attain it to the last digit"


def _noisier(factor: float) -> Callable[..., float]:
    """The bound for a multiple of the noise."""
    return lambda steps, **known: bounds.dpftrl_half(steps, **{**known, "noise": factor * known["noise"]})


@check(
    "ours:half-of-lipschitz",
    code=(bounds.dpftrl_half, bounds.thm_dpftrl, bounds.thm_quantile_regret),
    rejects=[_noisier(0.99), _noisier(1.01), _noisier(2.0), bounds.thm_dpftrl],
)
def check_half_formula(subject: Callable[..., float] = bounds.dpftrl_half) -> str:
    """2 sqrt(R T L (L/2 + noise)): of thm:dpftrl at its best step size, squared, 2 R T L^2 is left out, at any noise;
    and thm:quantile-regret without its other terms is thm:dpftrl for one run, so that it needs no more either."""
    for steps, noise in itertools.product((1, 2, 100), (0.0, 0.3, 20.0)):
        for m, d, gamma in ((1, 2, 0.5), (3, 8, 0.1)):
            known: dict[str, Any] = {"regularizer_range": m * math.log(d), "lipschitz": d / gamma, "beta": 0.1}
            known |= {"noise": noise, "gaussian_width": math.sqrt(2 * m * math.log(2 * d))}
            known |= {"sensitivity": bounds.lem_refined_sensitivity(0.5, d, gamma, quantiles=m)}
            whole, half = bounds.thm_dpftrl(steps, **known), subject(steps, **known)
            left_out = 2 * known["regularizer_range"] * steps * known["lipschitz"] ** 2
            assert math.isclose(whole**2 - half**2, left_out, rel_tol=1e-9), (steps, noise)
            named: dict[str, Any] = {"quantiles": m, "epsilon": 0.5, "noise": noise, "beta": 0.1, "mixture": gamma}
            assert math.isclose(bounds.thm_quantile_regret(steps, d, gamma, **named).regret, whole), "not one run's"
    return "2 sqrt(R T L (L/2 + noise)) where thm:dpftrl has L for L/2; thm:quantile-regret's learning is one such run"


@check("ours:half-of-lipschitz", code=bounds.dpftrl_half, rejects=[0.56, 0.1])
def check_half_runs(share: float = 1.0) -> str:
    """With noise: the streams of thm:dpftrl against the smaller bound, at its own step size."""
    assert len(STREAMS) >= 5
    return report_shares("thm:dpftrl with L/2", worst_streams(bounds.dpftrl_half, share), 0.562)


# ---- discretisation --------------------------------------------------------------------------------------------------


def cell_integral(slopes: Sequence[Fraction], place: Fraction) -> Fraction:
    """Integral from 0 to `place` of a piecewise linear function on [0, 1] less its mean; slopes of equal pieces."""
    pieces, values = len(slopes), [F(0)]
    for slope in slopes:
        values.append(values[-1] + slope / pieces)

    def integral(end: Fraction) -> Fraction:
        total = F(0)
        for k in range(pieces):
            low, high = F(k, pieces), min(end, F(k + 1, pieces))
            if high > low:
                rise = slopes[k] * (high - low) / 2
                total += (high - low) * (values[k] + rise)
        return total

    return integral(place) - place * integral(F(1))


@check(
    "ours:discretisation",
    "thm:quantile-regret/discretisation",
    "text:piecewise-constant",
    rejects=[F(99, 800), F(101, 800), F(1, 6), F(1, 12)],
)
def check_cell_integral(subject: Fraction = EIGHTH) -> str:
    """|integral of a V-Lipschitz density less its mean over a part of a cell| <= V w^2/8, attained by a line."""
    # the means of [0, x] and [x, w] differ by V w/2 at most, for s x and x + s (w - x) are w/2 apart in the mean
    s, x, w, v = sympy.symbols("s x w V", positive=True)
    apart = sympy.integrate(x + s * (w - x) - s * x, (s, 0, 1))
    assert sympy.simplify(apart - w / 2) == 0
    most = sympy.simplify(x * (w - x) / w * v * apart)  # the share of the difference that is left in [0, x]
    assert sympy.simplify(most - v * x * (w - x) / 2) == 0
    assert sympy.simplify(most.subs(x, w / 2) - v * w**2 / 8) == 0
    rng, largest = np.random.default_rng(59), F(0)
    for trial in range(300):
        slopes = [F(int(step), 10) for step in rng.integers(-10, 11, 6)] if trial else [F(1)] * 6
        for k in range(1, 12):
            found = abs(cell_integral(slopes, F(k, 12)))
            assert found <= 4 * subject * F(k, 12) * F(12 - k, 12), slopes
            largest = max(largest, found)
    assert largest == subject, "a line needs exactly this much"
    return "a cell's error is at most V w^2/8 for each end of a part, attained by a line (sympy; 300 exact densities)"


def _of_another_width(power: int, *known: Any, width: float, **named: Any) -> float:
    """The bound with another power of b - a."""
    return bounds.lipschitz_discretisation(*known, width=width ** (power / 3), **named)


def _two_cells(slope: Fraction, floor: Fraction, width: Fraction) -> tuple[Fraction, Fraction]:
    """Masses of the middle half of two cells under a tent over them and under its two means."""
    low, mean = floor, floor + slope * width / 2
    half = low + slope * width / 2  # at the middle of a cell
    exact = 2 * (width / 2) * (half + low + slope * width) / 2
    return exact, 2 * (width / 2) * mean


@check(
    "ours:discretisation",
    "text:piecewise-constant",
    "thm:quantile-regret",
    "thm:quantile-regret/discretisation",
    code=(bounds.lipschitz_discretisation, bounds.thm_quantile_regret),
    rejects=[
        scaled(bounds.lipschitz_discretisation, 0.99),
        scaled(bounds.lipschitz_discretisation, 1.01),
        lambda steps, cells, gamma, **named: bounds.lipschitz_discretisation(steps, cells + 1, gamma, **named),
        lambda steps, *known, **named: bounds.lipschitz_discretisation(steps**2, *known, **named),
        *(partial(_of_another_width, power) for power in (2, 4)),
    ],
)
def check_second_order(subject: Callable[..., float] = bounds.lipschitz_discretisation) -> str:
    """Exact scores against exact cells: the loss of the means is never above the bound, for one quantile and for up to
    three, and a tent whose optimal interval runs from the middle of a cell to that of the next attains it as its slope
    falls. It has no unit, and grows with the data sets."""
    for unit, days in itertools.product((1.0, 1e-3, 8.0), (1, 5)):
        known = {"lipschitz": 2.0 / unit**2, "width": unit, "separation": 0.1 * unit}
        assert math.isclose(subject(days, 4, 0.5, **known), days * 2.0 / (4 * 0.5 * 16 * 0.1), rel_tol=1e-9), unit
    for d, gamma, slope in ((4, HALF, F(1, 10**8)), (10, F(1, 10), F(1, 10**9))):
        width = F(1, d)
        exact, mean = _two_cells(slope, gamma, width)
        known = {"lipschitz": float(slope), "width": 1.0, "separation": float(width)}
        ratio = float(log_ball(exact / mean)) / subject(1, d, float(gamma), **known)
        assert 1 - 1e-6 <= ratio <= 1 + 1e-9, ratio
    for number in range(200):
        _assert_scores(np.random.default_rng([61, number]), subject)
    for t, d, gamma, m, width in ((100, 8, 0.1, 2, 1.0), (7, 3, 0.5, 1, 3.0), (1000, 50, 0.01, 9, 0.2)):
        named: dict[str, Any] = {"quantiles": m, "epsilon": 0.5, "noise": 0.0, "beta": 0.1, "mixture": gamma}
        plain, whole = (
            bounds.thm_quantile_regret(t, d, gamma, **named, **more).regret
            for more in ({}, {"lipschitz": 2.0, "separation": 0.1, "width": width})
        )
        wanted = bounds.lipschitz_discretisation(t, d, gamma, lipschitz=2.0, width=width, separation=0.1)
        assert math.isclose(whole - plain, wanted), "thm:quantile-regret has this term"
    return "discretisation V T (b - a)^3/(4 gamma d^2 psi): 200 exact scores below it, a tent attains it"


@check("ours:discretisation", rejects=[without_ends, lambda records: max(without_ends(records), records[0])])
def check_ends_of_the_range(subject: Callable[[Sequence[Fraction]], Fraction] = with_ends) -> str:
    """psi counts the distances from the ends: a density that falls by V w in the first of ten cells, a large epsilon,
    2009 days with one record x near 0, whose median lies in (0, x], and 17991 with two, whose median lies in the other
    cells. The means are then the best prior on cells, and lose more than the bound allows if only distances of records
    count.
    """
    slope, width, near, tiny = F(1, 10), F(1, 10), F(1, 1000), F(1, 10**9)
    floor = 1 - slope * width**2 / 2  # of a density of mass one
    first = width * floor + slope * width**2 / 2
    assert first == F(2009, 20_000), "the best weight of the first cell is the share of its days"
    exact = floor * near + slope * (width * near - near**2 / 2), 1 - first - tiny * floor
    cells = first * near / width, 1 - first  # at most, whatever the other weights
    excess = sum(days * float(log_ball(a / b)) for days, a, b in zip((2009, 17_991), exact, cells, strict=True))
    least = min(subject(records) for records in ((near,), (width, 1 - tiny)))
    known = {"lipschitz": float(slope), "width": 1.0, "separation": float(least)}
    limit = bounds.lipschitz_discretisation(20_000, 10, float(floor), **known)
    assert excess <= limit, f"{excess:.2f} above {limit:.2f}"
    return f"discretisation: {excess:.1f} lost in 20000 days near an end, which psi must count"


def _assert_scores(rng: np.random.Generator, bound: Callable[..., float]) -> None:
    """One data set on [0, 1]: exact inner products of a zigzag density and of its cell means."""
    d, pieces = int(rng.integers(2, 6)), 4
    gamma, n = F(int(rng.integers(1, 6)), 10), int(rng.integers(1, 6))
    slopes = [[F(int(sign), 5) for sign in rng.choice([-1, 1], pieces)] for _ in range(d)]
    records = sorted({F(int(v), 64) for v in rng.integers(1, 64, n)})
    ranks, z = rng.integers(0, len(records) + 1, int(rng.integers(1, 4))), F(1, int(rng.choice([2, 50])))
    ends = [F(0), *records, F(1)]
    values = list(itertools.accumulate((s / (d * pieces) for row in slopes for s in row), initial=F(0)))
    lift = gamma - min(values)
    means = [_integral(values, F(c, d), F(c + 1, d)) * d + lift for c in range(d)]
    cells = [
        (
            _integral(values, low, high) + lift * (high - low),
            sum((means[c] * overlap((low, high), (F(c, d), F(c + 1, d))) for c in range(d)), F(0)),
        )
        for low, high in itertools.pairwise(ends)
    ]
    separation = with_ends(records)
    limit = bound(1, d, float(gamma), lipschitz=0.2, width=1.0, separation=float(separation))
    sums, pieces_of = [F(0), F(0)], list(itertools.pairwise(ends))
    for rank in map(int, ranks):
        heights = [z ** abs(k - rank) for k in range(len(cells))]
        assert sum(abs(b - a) for a, b in itertools.pairwise(heights)) <= 2, "rises to its largest value and falls"
        for c, (left, right) in enumerate(itertools.pairwise(F(j, d) for j in range(d + 1))):
            parts = [(max(low, left), min(high, right)) for low, high in pieces_of]
            error = sum(
                h * (_integral(values, *part) + (lift - means[c]) * (part[1] - part[0]))
                for h, part in zip(heights, parts, strict=True)
                if part[0] < part[1]
            )
            assert abs(error) <= F(limit) * gamma * separation / 2 * (1 + F(1, 10**9)), "V w^2/8 in a cell"
        exact, mean = (sum((z ** abs(k - rank) * cell[i] for k, cell in enumerate(cells)), F(0)) for i in (0, 1))
        assert float(log_ball(exact / mean)) <= limit * (1 + 1e-9), (slopes, records)
        assert abs(exact - mean) <= F(limit) * gamma * separation * (1 + F(1, 10**9)), "V w^2/4 in all, either way"
        sums = [sums[0] + 1 / exact, sums[1] + 1 / mean]
    assert float(log_ball(sums[1] / sums[0])) <= limit * (1 + 1e-9), "several quantiles"


def _integral(values: Sequence[Fraction], low: Fraction, high: Fraction) -> Fraction:
    """Of the piecewise linear function through the values at equal steps on [0, 1]."""
    pieces, total = len(values) - 1, F(0)
    for k, (start, end) in enumerate(itertools.pairwise(values)):
        left, right = max(low, F(k, pieces)), min(high, F(k + 1, pieces))
        if right > left:
            at = [start + (end - start) * (x * pieces - k) for x in (left, right)]
            total += (right - left) * sum(at) / 2
    return total


@check(
    "ours:discretisation",
    "cor:quantile-regret",
    code=bounds.lipschitz_cells,
    rejects=[
        lambda steps, **named: bounds.lipschitz_cells(steps, **named)._replace(cells=math.ceil(steps**0.25)),
        *(lambda steps, by=by, **named: _rate_times(by, steps, **named) for by in (0.99, 1.01)),
        lambda steps, **named: bounds.lipschitz_cells(steps, **named)._replace(rate=steps**0.65),
        lambda steps, **named: bounds.lipschitz_cells(steps, **named)._replace(rate=steps**0.85),
    ],
)
def check_better_rates(subject: Callable[..., Any] = bounds.lipschitz_cells) -> str:
    """The settings reach their rates T^(2/3) and T^(5/6) up to a constant, and no other cells or floor do better."""
    for mixture, power in ((0.5, 2 / 3), (0.0, 5 / 6)):
        for exponent in (12, 18, 24):
            steps = 10**exponent
            found = subject(steps, noise_factor=1.0, lipschitz=1.0, width=1.0, separation=1.0, mixture=mixture)
            assert 0.2 * steps**power <= found.rate <= 5 * steps**power, (mixture, exponent, found)
            reached = _total(steps, found.cells, found.robustness, mixture)
            least = min(
                _total(steps, 10**a, g, mixture)
                for a in np.linspace(0.3, exponent / 2, 120)
                for g in ([0.5] if mixture else np.logspace(-exponent / 3, -0.31, 60))
            )
            smooth, learning = steps / found.cells**2, found.cells * math.sqrt(steps)
            terms = [
                smooth / found.robustness,
                learning / found.robustness,
            ]  # equal, and each the rate, but for whole cells
            assert all(abs(term / found.rate - 1) < 2.2 / found.cells + 1e-9 for term in terms), (
                mixture,
                exponent,
                terms,
            )
            assert reached <= 4 * found.rate and reached <= 1.6 * least and least >= found.rate / 4, (mixture, exponent)
    return "Lipschitz classes at T^(2/3) (robust) and T^(5/6): settings within 1.6 of the best of all, T = 10^12..10^24"


def _rate_times(factor: float, steps: int, **named: Any) -> Any:
    found = bounds.lipschitz_cells(steps, **named)
    return found._replace(rate=factor * found.rate)


def _total(steps: int, cells: float, robustness: float, mixture: float) -> float:
    """Discretisation, learning and mixing without their constants."""
    mixing = 0.0 if mixture else robustness * steps
    return steps / (robustness * cells**2) + cells / robustness * math.sqrt(steps) + mixing
