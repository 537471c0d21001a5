"""Ours: one martingale in thm:o2b, and a difference of losses in thm:pubpri that no narrow interval can spoil."""

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

from pq import bounds
from pq.losses import laplace_interval, laplace_quantiles
from proofs_checks.engine.registry import check
from proofs_checks.section_5_2.online_to_batch import coins_tail_below
from proofs_checks.section_5_2.simulated import LAWS, worst_fits
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.runs import report_shares
from proofs_checks.tools.solver import follows

F = Fraction
HALF = F(1, 2)


def coins_tail(steps: int, least: float) -> Any:
    """Exact Pr{mean of fair steps +-1 >= least}, for a few hundred steps."""
    most = math.floor(steps * (1 - least) / 2 + 1e-9)
    return mpmath.mpf(sum(math.comb(steps, k) for k in range(most + 1))) / mpmath.mpf(2) ** steps


@check(
    "ours:o2b-one-step",
    "thm:o2b",
    code=bounds.o2b_one_step,
    rejects=[*(scaled(bounds.o2b_one_step, by) for by in (0.5, 0.99, 1.01)), bounds.thm_o2b],
)
def check_one_martingale(subject: Callable[..., float] = bounds.o2b_one_step) -> str:
    """The martingale alone, with steps in [-B, B]: exact tails of fair coins, and for ten million of them a failure
    probability above beta if the deviation is 1% smaller; the bound itself in `one_martingale`."""
    worst = 0.0
    with mpmath.workdps(60):
        for steps in (1, 7, 100, 400):
            for beta in (0.5, 0.1, 1e-3, 1e-9):
                deviation = subject(steps, regret=0.0, loss_range=1.0, beta=beta)
                tail = coins_tail(steps, deviation * (1 + 1e-12)) if deviation <= 1 else mpmath.mpf(0)
                assert tail <= beta, (steps, beta, float(tail))
                worst = max(worst, float(tail / beta))
    beta, steps = 1e-300, 10**7
    deviation = subject(steps, regret=0.0, loss_range=1.0, beta=beta)
    assert coins_tail_below(steps, deviation) <= math.log(beta), "exceeded with probability above beta"
    assert coins_tail_below(steps, 0.99 * deviation) > math.log(beta), "1% of the deviation is not needed"
    assert math.isclose(subject(50, regret=10.0, loss_range=2.0, beta=0.1) - 0.2, 2 * math.sqrt(math.log(10) / 25))
    for beta in (0.1, 1 - 1e-6):  # 8 (B/alpha)^2 log(1/beta) steps for alpha = 1/10, and as much again for the regret
        draws = 800 * math.log(1 / beta)
        assert math.isclose(subject(draws, regret=draws / 20, loss_range=1.0, beta=beta), 0.1)
    assert math.log(2 / (1 - 1e-6)) > 10**5 * -math.log1p(-1e-6), "near 1 log(2/beta) is of another order"
    return f"R/T + B sqrt(2 log(1/beta)/T): exact coins at most {worst:.2f} of beta; 0.99 of it fails at T = 10^7"


@check("ours:o2b-one-step", rejects=[1, 3])
def check_difference_range(subject: int = 2) -> str:
    """One martingale: l(w_t) - l(w*) for losses in an interval of length B lies in one of length 2 B, whatever w* (z3),
    and reaches both of its ends."""
    mine, best, low, length = z3.Reals("mine best low length")
    inside = (length > 0, mine >= low, mine <= low + length, best >= low, best <= low + length)
    follows(*inside, goal=z3.And(2 * (mine - best) <= subject * length, 2 * (best - mine) <= subject * length))
    assert F(subject, 2) * 2 == F(1) - F(-1), "losses 0 and 1 reach both ends"
    return "the losses' difference has a range of twice the losses', so one event and one Azuma step are enough (z3)"


@check("ours:o2b-one-step", code=bounds.o2b_one_step, rejects=[abs, lambda w: (w - 1) ** 2 / 4, lambda w: w * w])
def check_average_of_iterates(subject: Callable[[float], float] = lambda w: min(abs(w - 1), abs(w + 1))) -> str:
    """The average iterate needs convex losses: with minima at -1 and 1 these in turn have no regret, and their average
    is as bad as can be. subject: the loss, of range 1 on [-1, 1]."""
    steps, plays = 1000, (-1.0, 1.0)
    grid = np.linspace(-1, 1, 201).tolist()
    least = min(map(subject, grid))
    assert math.isclose(max(map(subject, grid)) - least, 1), "its range"
    regret = steps / 2 * sum(subject(w) - least for w in plays)
    excess = subject(sum(plays)) - least
    assert excess > bounds.o2b_one_step(steps, regret=regret, loss_range=1.0, beta=0.05), "the bound survives"
    return "without convexity the average of iterates that have no regret has an excess of 1, far above the bound"


@check(
    "ours:loss-difference",
    "thm:pubpri/loss-bound",
    code=(bounds.loss_difference, laplace_interval),
    rejects=[
        scaled(bounds.loss_difference, 0.99),
        scaled(bounds.loss_difference, 1.01),
        lambda b, low, high: 2 * b / low + math.log(high / low),
        lambda b, low, high: 2 * b / low,
    ],
)
def check_loss_difference(subject: Callable[[float, float, float], float] = bounds.loss_difference) -> str:
    """Two Laplace priors of the box: their losses differ by at most G on any interval in [-B, B] however narrow, also
    in the log-sum-exp over quantiles; those of a pair come as near to that as the interval is narrow."""
    rng = np.random.default_rng(67)
    for bound, low, high in ((1.0, 0.1, 0.5), (0.05, 0.1, 2.0), (3.0, 1.0, 1.0), (0.2, 0.01, 5.0)):
        limit = subject(bound, low, high)
        for _ in range(200):
            m = int(rng.integers(1, 4))
            ends = np.sort(rng.uniform(-bound, bound, (m, 2)), axis=1)
            ends[:, 1] = np.where(rng.random(m) < 0.5, np.minimum(ends[:, 0] + 1e-9, bound), ends[:, 1])
            losses = []
            for _ in range(2):
                theta = rng.choice([-1, 1, rng.uniform(-1, 1)], m) * bound / low
                phi = rng.choice([1 / low, 1 / high, rng.uniform(1 / high, 1 / low)], m)
                each = laplace_interval(theta, phi, ends[:, 0], ends[:, 1])[0]
                losses.append(float(np.log(np.sum(np.exp(each - each.max()))) + each.max()))
            assert abs(losses[0] - losses[1]) <= limit * (1 + 1e-9) + 1e-9, (bound, low, high)
        assert limit <= (2 * bound / low + math.log(high / low)) * (1 + 1e-12), "as the row says"
        for width in (1e-1 * low, 1e-3 * low, 1e-5 * low):  # at the end of [-B, B], ever narrower
            best = laplace_interval(bound / low, 1 / low, bound - width, bound)[0]
            worst = max(float(laplace_interval(-bound / low, 1 / s, bound - width, bound)[0]) for s in (low, high))
            assert limit - width / low - 1e-9 <= worst - float(best) < limit + 1e-9, (worst - float(best), limit)
    return "losses of two Laplace priors: G apart at most on every interval, and no less, for any m"


@check("ours:pubpri-difference", code=bounds.pubpri_difference, rejects=[0.05, 0.02])
def check_public_difference(share: float = 1.0) -> str:
    """Seeded fits on six laws against the smaller bound, at most two thirds of thm:pubpri's on each of them."""
    box: dict[str, Any] = {"quantiles": 2, "data_bound": 1.0, "scale_min": 0.1, "scale_max": 0.5, "beta": 0.2}
    for density, n in {(density, n) for _, density, n in LAWS.values()}:
        ours = bounds.pubpri_difference(100 * n, n, total_variation=0.0, **box)
        theirs = bounds.thm_pubpri(100 * n, n, total_variation=0.0, density_bound=density, **box)
        assert ours < 2 / 3 * theirs, (density, n)
    known = {
        "quantiles": 2,
        "data_bound": 10.0,
        "scale_min": 0.5,
        "scale_max": 5.0,
        "beta": 0.2,
        "total_variation": 0.0,
    }
    shown = [bounds.thm_pubpri(10**6, 20, density_bound=1.0, version=v, **known) for v in ("paper", "corrected")]  # type: ignore[arg-type]
    shown.append(bounds.pubpri_difference(10**6, 20, **known))  # type: ignore[arg-type]
    assert [f"{value:.2f}" for value in shown] == ["3.82", "0.89", "0.53"], "as the row says"

    def limit(size: int, n: int, density_bound: float, **known: Any) -> float:
        return bounds.pubpri_difference(size, n, **known)

    return report_shares("thm:pubpri by differences", worst_fits(limit, share), 0.114)


@check(
    "ours:pubpri-difference",
    code=(bounds.pubpri_difference, laplace_quantiles),
    rejects=[
        lambda *a, **k: bounds.pubpri_difference(*a, **{**k, "total_variation": k["total_variation"] / 2}),
        lambda *a, **k: bounds.pubpri_difference(*a, **{**k, "data_bound": k["data_bound"] / 2}),
        lambda *a, **k: bounds.pubpri_difference(*a, **{**k, "scale_max": k["scale_min"]}),
        lambda *a, **k: bounds.thm_pubpri(*a, density_bound=1.0, **k),
        *(scaled(bounds.pubpri_difference, by) for by in (0.99, 1.01)),
        *(
            lambda *a, by=by, **k: bounds.pubpri_difference(*a, **{**k, "total_variation": by * k["total_variation"]})
            for by in (0.99, 1.01)
        ),
        lambda size, n, **k: bounds.pubpri_difference(size, 10, **k),
        *(
            lambda size, n, by=by, **k: bounds.pubpri_difference(size, n, **k) * (by if n < 9 else 1)
            for by in (0.99, 1.01)
        ),
    ],
)
def check_difference_terms(subject: Callable[..., float] = bounds.pubpri_difference) -> str:
    """Each term by itself: the shift of the law costs 2 G TV and no less, descent D G' sqrt(T), chance G sqrt(2 log/T);
    the unit of the data does not matter, nor does how close records may lie."""
    box: dict[str, Any] = {"quantiles": 3, "data_bound": 0.5, "scale_min": 0.2, "scale_max": 4.0, "beta": 0.1}
    largest = bounds.loss_difference(0.5, 0.2, 4.0)
    plain, moved = (subject(1000, 10, total_variation=v, **box) for v in (0.0, 0.25))
    assert math.isclose(moved - plain, largest / 2), "two laws with all losses at the two ends of [-G, G]"
    for n, more in ((1, 0), (3, 2), (10, 9), (10**4, 0)):  # T is the whole part of N/n
        assert math.isclose(subject(100 * n + more, n, total_variation=0.0, **box), plain), (n, more)
    unlikely = subject(1000, 10, total_variation=0.0, **{**box, "beta": 1e-9})
    chance = math.sqrt(2 * math.log(1e9) / 100) - math.sqrt(2 * math.log(10) / 100)
    assert math.isclose(unlikely - plain, largest * chance)
    radius, half = math.sqrt(3) * 0.5 / 0.2, math.sqrt(3) * (1 / 0.2 - 1 / 4.0) / 2
    descent = (radius * 1.0 + half * 4.5) / 10  # D G / sqrt(T) of both parameters, slopes of at most 1 and B + sigma
    assert math.isclose(plain - largest * math.sqrt(2 * math.log(10) / 100), descent)
    metres = {**box, "data_bound": 500.0, "scale_min": 200.0, "scale_max": 4000.0}
    assert math.isclose(subject(1000, 10, total_variation=0.0, **metres), plain)
    loss, *slopes = laplace_quantiles(np.zeros(3), np.ones(3), np.full(3, 0.1), np.full(3, 0.1 + 1e-12))
    assert 25 < loss < math.inf and np.all(np.abs(slopes[0]) <= 1), "a narrow interval: a large loss, small slopes"
    assert laplace_interval(0.0, 1.0, 0.1, 0.1)[0] == math.inf, "equal records at the ranks: no prior has a finite loss"
    return "thm:pubpri by differences: 2 G TV + descent + G sqrt(2 log(1/beta)/T), term by term, in any unit"


@check(
    "thm:pubpri",
    "ours:pubpri-difference",
    code=(bounds.pubpri_difference, bounds.thm_pubpri),
    rejects=[
        scaled(bounds.pubpri_difference, 1.01),
        lambda *a, **k: bounds.pubpri_difference(*a, **{**k, "scale_min": k["scale_min"] / 2}),
        lambda *a, **k: bounds.pubpri_difference(*a, **{**k, "beta": k["beta"] / 16}),
    ],
)
def check_difference_is_smaller(subject: Callable[..., float] = bounds.pubpri_difference) -> str:
    """Below thm:pubpri as corrected for random boxes, sizes and probabilities, at the least kappa that records in
    [-B, B] can have, 1/(2B), and nearly as large for some."""
    rng, most = np.random.default_rng(71), 0.0
    for _ in range(4000):
        least = 10 ** rng.uniform(-12, 3)
        n, steps = int(10 ** rng.uniform(0.4, 5)), int(10 ** rng.choice([0.0, rng.uniform(0, 14)]))
        known: dict[str, Any] = {"quantiles": int(10 ** rng.uniform(0, 4)), "data_bound": 1.0, "scale_min": least}
        known |= {"scale_max": least * 10 ** rng.choice([0.0, rng.uniform(0, 6)])}
        known |= {
            "total_variation": rng.choice([0.0, 1.0]),
            "beta": rng.choice([rng.random(), 10 ** rng.uniform(-12, 0)]),
        }
        ours = subject(steps * n, n, **known)
        theirs = bounds.thm_pubpri(steps * n, n, density_bound=0.5, **known)
        assert ours < theirs, known
        most = max(most, ours / theirs)
    assert most > 0.999
    return "thm:pubpri by differences: below the corrected bound in 4000 random settings, for every density"


def largest_apart(reach: float, low: float, high: float) -> float:
    """G from the two ends of the second prior's inverse scale."""
    return reach / low + max(reach * inverse + math.log(1 / (low * inverse)) for inverse in (1 / low, 1 / high))


@check(
    "ours:pubpri-difference",
    "ours:loss-difference",
    code=(bounds.pubpri_difference, bounds.loss_difference, bounds.o2b_one_step),
    rejects=[
        (2, lambda reach, low, high: 2 * reach / low),
        (2, lambda reach, low, high: reach / low + math.log(high / low)),
        (1, largest_apart),
        *((2, scaled(largest_apart, by)) for by in (0.99, 1.01)),
    ],
)
def check_difference_proof(subject: tuple[int, Callable[..., float]] = (2, largest_apart)) -> str:
    """The steps for all boxes: two densities of the box, what a shift of the law costs, a step of descent, and one
    martingale (ours:o2b-one-step). Ranks from 1 to n - 1: on an interval without an end G is exceeded.

    subject: what a unit of total variation costs in units of G, and G.
    """
    o, b, s, r, one, two, f, g = z3.Reals("o b s r one two f g")  # s = 1/sigma_min, r = 1/sigma_max, f and g are phi
    box = (b > 0, o <= b, o >= -b, r > 0, f >= r, f <= s, g >= r, g <= s, one <= b * s, two <= b * s)
    box = (*box, one >= -b * s, two >= -b * s)
    follows(*box, goal=z3.And(g * o - two <= b * s + b * g, two - g * o <= b * s + b * g))  # and -|f o - one| <= 0
    x, edge, top = sympy.symbols("x edge top", positive=True)
    assert sympy.simplify(sympy.diff(edge * x + sympy.log(top / x), x, 2) - 1 / x**2) == 0  # convex: ends decide
    apart, size, limit, low, high, point, moved = z3.Reals("apart size limit low high point moved")
    follows(apart <= limit, apart >= -limit, goal=apart * size <= z3.If(size >= 0, size, -size) * limit)
    clipped = z3.If(moved < low, low, z3.If(moved > high, high, moved))  # back into the box: no farther from its points
    follows(low <= point, point <= high, goal=(clipped - point) ** 2 <= (moved - point) ** 2)
    eta, slope, steps, radius = sympy.symbols("eta slope steps radius", positive=True)
    regret = radius**2 / (2 * eta) + eta * steps * slope**2 / 2  # summed over the steps, at the size of the best bound
    root = sympy.sqrt(steps)
    assert sympy.simplify(regret.subs(eta, radius / slope / root) - radius * slope * root) == 0
    shift, largest = subject
    assert abs(1 - 0) + abs(0 - 1) == shift, "two laws whose distance is one"
    boxes = ((5.0, 0.5, 5.0), (0.05, 0.1, 2.0), (3.0, 0.7, 0.7))
    for m, t, tv, box_of, beta in itertools.product(
        (1, 4, 100), (1, 100, 10**9), (0.0, 0.3, 1.0), boxes, (0.1, 0.95, 1e-9)
    ):
        known: dict[str, Any] = dict(zip(("data_bound", "scale_min", "scale_max"), box_of, strict=True))
        reach, least, most = box_of
        descent = math.sqrt(m * t) * (reach / least + (1 / least - 1 / most) / 2 * (reach + most))
        ours = bounds.o2b_one_step(t, regret=descent, loss_range=largest(*box_of), beta=beta)
        found = bounds.pubpri_difference(20 * t + 19, 20, quantiles=m, total_variation=tv, beta=beta, **known)
        assert math.isclose(found, ours + shift * largest(*box_of) * tv), (m, t, tv, box_of, beta)
    open_end = [laplace_interval(*place, -math.inf, -5.0)[0] for place in ((10.0, 2.0), (-10.0, 0.2))]
    assert round(float(open_end[0] - open_end[1]), 2) == 20.69, "as the row says"
    assert math.isclose(bounds.loss_difference(5.0, 0.5, 5.0), 20), "as the row says"
    return "thm:pubpri by differences: each step for all boxes (z3, sympy); at rank 0 losses may be 20.69 apart, G = 20"


@check("ours:pubpri-difference", "thm:pubpri", rejects=[F(1, 4), F(99, 200), F(0)])
def check_descent_proof(subject: Fraction = HALF) -> str:
    """From one step to the excess, for every T: the squared distance to the best point telescopes (induction), losses
    are convex; the excess on private data is that on public data and what the shift costs. subject: eta L^2 a step."""
    eta, before, after, inner, slope, paid, grown = z3.Reals("eta before after inner slope paid grown")
    radius, count, gained = z3.Reals("radius count gained")  # `inner`: <gradient, point - best>
    step = (after <= before - 2 * eta * inner + eta * eta * slope * slope, gained <= inner)  # clipping: as in the proof
    cost = eta * slope * slope * z3.RealVal(str(subject))
    so_far = 2 * eta * paid + before <= radius * radius + 2 * eta * count * cost
    total = z3.And(grown == paid + gained, count >= 0)
    follows(
        eta > 0, *step, so_far, total, goal=2 * eta * grown + after <= radius * radius + 2 * eta * (count + 1) * cost
    )
    follows(eta > 0, so_far, before >= 0, goal=paid <= radius * radius / (2 * eta) + count * cost)
    point, move, best = z3.Reals("point move best")  # in each coordinate, before clipping
    follows(
        goal=(point - eta * move - best) ** 2
        == (point - best) ** 2 - 2 * eta * move * (point - best) + (eta * move) ** 2
    )
    private, public, shift, regret, chance = z3.Reals("private public shift regret chance")
    follows(private - public <= shift, public <= regret + chance, goal=private <= shift + regret + chance)
    return "descent: at most D^2/(2 eta) + eta T L^2/2 against every point, for every T; then the shift (z3)"
