"""How many samples cor:quantile-regret asks for, and the range of the losses behind it."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import sympy
import z3

from pq import bounds
from proofs_checks.engine.registry import check
from proofs_checks.tools.cases import with_ends, without_ends
from proofs_checks.tools.exact import Points, log_ball, psi
from proofs_checks.tools.solver import follows

F = Fraction
HALF = Fraction(1, 2)


@check("cor:quantile-regret/sample-size", rejects=[2, 3, 1])
def check_sample_size(subject: int = 4) -> str:
    """Solving (m/lambda) sqrt(V/psi) X^(1/4) T^(3/4) = alpha T gives m^4 (not m^2) over lambda^4 alpha^4."""
    m, lam, v, x, alpha = (sympy.symbols(name, positive=True) for name in ("m", "lam", "v", "x", "alpha"))
    steps = m**subject * v**2 * x / (lam**4 * alpha**4)
    regret = m / lam * sympy.sqrt(v) * x ** sympy.Rational(1, 4) * steps ** sympy.Rational(3, 4)
    assert sympy.simplify(regret / (alpha * steps)) == 1, "this many samples do not make the average regret alpha"
    return "sample size for Lipschitz classes: m^4, not m^2, from its own regret"


def range_of(m: int, share: float) -> tuple[float, float]:
    """Least and largest loss of m quantiles on lambda-robust priors; share stands for lambda psi/(b - a)."""
    return math.log(m), math.log(m) + math.log(1 / share)


def robust(data: Sequence[F], weight: F, far: int) -> dict[F, F]:
    """On (0, 1): weight spread evenly, the rest in one cell."""
    cells = {(a + b) / 2: weight * (b - a) for a, b in pairwise([F(0), *data, F(1)])}
    chosen = list(cells)[far]
    return cells | {chosen: cells[chosen] + 1 - weight}


@check(
    "cor:quantile-regret/sample-size",
    "cor:quantile-regret/loss-range",
    rejects=[
        lambda m, share: (0.0, range_of(m, share)[1]),
        lambda m, share: (0.0, math.log(1 / share)),
        *(lambda m, share, by=by: (by * math.log(m), range_of(m, share)[1]) for by in (0.99, 1.01)),
        *(lambda m, share, by=by: (math.log(m), math.log(m) + by * math.log(1 / share)) for by in (0.99, 1.01)),
    ],
)
def check_loss_range(subject: Callable[[int, float], tuple[float, float]] = range_of) -> str:
    """U^(eps) lies in [log m, log m + log((b-a)/(lambda psi))] on lambda-robust priors, both ends reached: the range
    has no log m. Exact inner products of m quantiles, each with a prior of its own."""
    draw, data = random.Random(7), [F(1, 100), F(2, 5), HALF, F(4, 5)]
    for m, weight in itertools.product((1, 2, 3, 9), (F(1, 10**9), F(1, 10), F(1))):
        least, largest = subject(m, float(weight * with_ends(data)))
        seen = []
        for trial in range(12):
            levels = sorted(F(v, 1000) for v in draw.sample(range(1, 250 if trial < 2 else 1000), m))
            home = [math.floor(q * 4) for q in levels]
            cells = [home, [k + 1 for k in home]][trial] if trial < 2 else [draw.randrange(5) for _ in levels]
            priors = [robust(data, weight, far) for far in cells]
            inner = [psi(Points(tuple(data)), q, prior, F(1, 10**18)) for q, prior in zip(levels, priors, strict=True)]
            seen.append(float(log_ball(sum(1 / value for value in inner))))
        assert least - 1e-8 <= min(seen) and max(seen) <= largest + 1e-8, (m, weight)
        assert weight > F(1, 10**9) or seen[0] <= least + 1e-6, "all mass but lambda where it should be: log m"
        assert weight == F(1, 10**9) or seen[1] >= largest - 1e-6, "all of it elsewhere: the largest"
    return "loss range is log((b-a)/(lambda psi)) for every m, after a shift by log m: exact, and reached"


def separation_of(data: Sequence[F], rank: int) -> F:
    """Corrected: the ends count at rank 0 (and n, which no quantile below 1 has), the records alone at the others."""
    return without_ends(data) if 1 <= rank < len(data) else with_ends(data)


@check(
    "cor:quantile-regret/loss-range",
    rejects=[
        lambda data, rank: without_ends(data),
        lambda data, rank: with_ends(data),
        *(lambda data, rank, by=by: F(by, 100) * separation_of(data, rank) for by in (99, 101)),
    ],
)
def check_loss_range_least(subject: Callable[[Sequence[F], int], F] = separation_of) -> str:
    """Psi >= lambda psi/(b - a) on lambda-robust priors, if psi counts the distances from the ends, or with the records
    alone from floor(q n) = 1 on; nothing more at either. For all data, lambda and b - a by the solver: the prior has on
    the optimal cell its share of lambda, and no separation that counts is longer than that cell."""
    width, cell, separation, lam, mass, other = z3.Reals("width cell separation lambda mass other")
    known = (width > 0, lam >= 0, separation >= 0, cell >= separation, mass * width >= lam * cell, other >= 0)
    follows(*known, goal=(mass + other) * width >= lam * separation)
    z, least = F(1, 10**6), dict[tuple[F, bool], float]()
    columns = ([F(1, 1000), HALF], [F(1, 4), HALF, F(9, 10)], [F(1, 3), F(999, 1000)], [F(1, 5), F(2, 5), F(4, 5)])
    for data, q, weight in itertools.product(columns, (F(0), F(1, 4), HALF, F(3, 4), F(1)), (F(1, 10), HALF, F(1))):
        rank = math.floor(q * len(data))
        for far in range(len(data) + 1):  # the rest of the mass in one cell
            inner = psi(Points(tuple(data)), q, robust(data, weight, far), z)
            assert inner >= weight * subject(data, rank), (data, q, float(inner))
            key = data[0], 1 <= rank < len(data)
            least[key] = min(least.get(key, math.inf), float(inner / weight / subject(data, rank)))
    assert len(least) == 8 and all(ratio < 1.001 for ratio in least.values()), "more is true"
    first = {F(1, 2000): HALF * F(1, 1000), F(1, 4): HALF * F(499, 1000), F(3, 4): F(3, 4)}  # half of it on (1/2, 1)
    loss = -float(log_ball(psi(Points((F(1, 1000), HALF)), F(1, 4), first, z)))
    claimed = -math.log(HALF * without_ends([F(1, 1000), HALF]))
    assert (round(loss, 2), round(claimed, 2)) == (7.6, 1.39), "as the row says"
    return f"Psi >= lambda psi/(b - a) if psi counts the ends, or floor(q n) >= 1; ratios to {max(least.values()):.4f}"


@check(
    "ours:centred-range",
    "cor:quantile-regret/sample-size",
    rejects=[
        lambda d, gamma: np.log(d),
        lambda d, gamma: 2 * np.log(d / gamma),
        *(lambda d, gamma, by=by: by * np.log(d / gamma) for by in (0.99, 1.01)),
    ],
)
def check_centred_range(subject: Callable[[int, float], float] = lambda d, gamma: math.log(d / gamma)) -> str:
    """Ours: on weights >= gamma/d the losses of one data set differ by at most log(d/gamma), whatever psi is; for V = 0
    the regret has no psi either, for V > 0 it has."""
    rng = np.random.default_rng(83)
    for _ in range(300):
        m, d, gamma = int(rng.integers(1, 4)), int(rng.integers(2, 6)), float(rng.uniform(0.05, 1))
        scores = 10.0 ** rng.uniform(-12, 0, (m, d))
        points = gamma / d + (1 - gamma) * rng.dirichlet(np.full(d, 0.2), (60, m))
        losses = np.log(np.sum(1 / np.einsum("ij,kij->ki", scores, points), axis=1))
        assert np.ptp(losses) <= subject(d, gamma) * (1 + 1e-9), (m, d, gamma)
    for gamma in (0.01, 1e-6):  # s = e_1, d = 4: the first weight may be all or gamma/4
        reached = math.log((1 - gamma * 3 / 4) / (gamma / 4))
        assert reached <= subject(4, gamma) <= reached + gamma, "just that in the limit"
    common: dict[str, Any] = {"quantiles": 2, "epsilon": 0.5, "noise": 1.0, "beta": 0.1, "mixture": 0.2}
    for v in (0.0, 1.0):
        known = common | {"lipschitz": v}
        far, near = (bounds.thm_quantile_regret(100, 4, 0.2, separation=psi, **known).regret for psi in (0.1, 1e-9))
        assert (far == near) == (v == 0.0), "psi"
    cells = bounds.thm_quantile_regret(100, 4, 0.2, separation=0.1, lipschitz=0.0, **common).regret
    for least in (1e-3, 1e-6, 1e-9):  # for V > 0 it is in the one term that has it as V/psi: there is no logarithm
        known = common | {"lipschitz": 0.5, "separation": least}
        smooth = bounds.thm_quantile_regret(100, 4, 0.2, **known).regret - cells
        assert math.isclose(smooth, 100 * 0.5 / (4 * 0.2 * 16 * least), rel_tol=1e-9), least
    d_, m_, lam, x, alpha = sympy.symbols("d m lam x alpha", positive=True)
    steps = d_**2 * m_**2 * x / (lam**2 * alpha**2)
    assert sympy.simplify(d_ * m_ / lam * sympy.sqrt(x * steps) / (alpha * steps)) == 1
    return "losses of one data set range over log(d/gamma) at most, so psi drops out of the sample size"


def sample_bracket(v: float, width: float, psi: float, lam: float, alpha: float) -> float:
    """Corrected: what must be at most T, without log(1/beta'): V^2 (b-a)^6 / psi^2 has no unit."""
    return v**2 * width**6 / (lam**4 * psi**2 * alpha**4) + math.log(width / (lam * psi)) ** 2 / alpha**2


def printed_bracket(v: float, width: float, psi: float, lam: float, alpha: float) -> float:
    """As printed, for m = 1."""
    return v**2 / (lam**4 * psi**2 * alpha**4) + math.log(1 / (lam * psi)) ** 2 / alpha**2


def _median_loss(data: Sequence[F], width: F, below: Callable[[F], F]) -> float:
    """Of a prior on (0, width) with this distribution function, at a large epsilon."""
    cells = pairwise([F(0), *data, width])
    return -float(log_ball(psi(Points(tuple(data)), HALF, {(a + b) / 2: below(b) - below(a) for a, b in cells}, Z)))


Z = F(1, 10**30)


def _fifth_power(v: float, width: float, psi: float, lam: float, alpha: float) -> float:
    return sample_bracket(v / math.sqrt(width), width, psi, lam, alpha)


@check("cor:quantile-regret/sample-size", rejects=[printed_bracket, _fifth_power])
def check_sample_units(subject: Callable[..., float] = sample_bracket) -> str:
    """One sample cannot do: x = (1, 3) in (0, 10^6), a line is a Lipschitz density; the printed T is 1e-19. The losses
    of the uniform prior, by exact inner products, range over log(b - a) where the least separation is 1."""
    whole, lam, alpha = F(10**6), 0.5, 0.1

    def flat(x: F) -> F:
        return x / whole

    def line(x: F) -> F:  # density 2/w at 0, falling to 0 at w, mixed with the uniform
        return HALF * (2 * x / whole - (x / whole) ** 2) + HALF * flat(x)

    data, width, v = [F(1), F(3)], float(whole), 2 / float(whole) ** 2
    excess = _median_loss(data, whole, flat) - _median_loss(data, whole, line)  # after one sample: still uniform
    assert excess > alpha
    assert subject(v, width, 2.0, lam, alpha) > 1, "one sample is said to be enough"
    for unit in (1e-3, 1e3):
        there = subject(v / unit**2, width * unit, 2.0 * unit, lam, alpha)
        assert math.isclose(there, subject(v, width, 2.0, lam, alpha), rel_tol=1e-9), "depends on the unit"
    printed = printed_bracket(v, width, 2.0, lam, alpha)
    assert round(excess, 3) == 0.405 and 10**16 * printed < 1, "as the row says"
    losses = [_median_loss(x, whole, flat) for x in ([F(1), F(2)], [F(1), whole - 1])]
    bare = [bracket(0.0, width, 1.0, 1.0, 1.0) for bracket in (printed_bracket, subject)]
    assert bare[0] == 0 and round(losses[0] - losses[1], 1) == 13.8 == round(math.sqrt(bare[1]), 1), "as the row says"
    return f"sample size for Lipschitz classes: excess {excess:.2f} > {alpha} after T = 1, printed T {printed:.1e}"


Bracket = Callable[[float, float, float, float, float], float]


def cells_bracket(m: float, d: float, x: float, lam: float, alpha: float) -> float:
    """For cells, as printed, without the range of the losses."""
    return d**2 * m**2 * x / lam**2


def smooth_bracket(m: float, ratio: float, x: float, lam: float, alpha: float) -> float:
    """For the Lipschitz class, ratio for V (b - a)^3/psi, as printed but for at least two cells."""
    return max(ratio**2 * m**2 * x / (lam**4 * alpha**2), cells_bracket(m, 2, x, lam, alpha))


def _smooth_as_printed(m: float, ratio: float, x: float, lam: float, alpha: float) -> float:
    return ratio**2 * m**2 * x / (lam**4 * alpha**2)


def random_samples(draw: random.Random) -> tuple[int, float, float, float, float, int, float, float]:
    """m, epsilon, epsilon', lambda, alpha, d (0 for the Lipschitz class), V (b - a)^3/psi, psi/(b - a): often an end of
    its range."""

    def between(low: float, high: float) -> float:
        return 10.0 ** draw.choice((low, high, draw.uniform(low, high)))

    budgets = between(-8, 1), between(-8, 1)
    rest = between(-3, 0) / 2, between(-4, 0), draw.choice((0, 2, 3, 1000, 10**6)), between(-9, 9), between(-6, 0) / 2
    return round(between(0, 4)), *budgets, *rest


@check(
    "cor:quantile-regret/sample-size",
    code=(bounds.thm_quantile_regret, bounds.dpftrl_noise),
    rejects=[
        (cells_bracket, _smooth_as_printed, 3.0),
        (lambda m, d, x, *rest: cells_bracket(m, d, 1.0, *rest), smooth_bracket, 3.0),
        (cells_bracket, lambda m, ratio, x, *rest: smooth_bracket(m, ratio, 1.0, *rest), 3.0),
        (lambda m, d, *rest: cells_bracket(m, 2, *rest), smooth_bracket, 3.0),
        (cells_bracket, lambda m, ratio, *rest: smooth_bracket(m, 1.0, *rest), 3.0),
        (cells_bracket, smooth_bracket, 2.2),
    ],
)
def check_samples_suffice(subject: tuple[Bracket, Bracket, float] = (cells_bracket, smooth_bracket, 3.0)) -> str:
    """After so many samples, 10^4 at least, the regret of thm:quantile-regret, over T, and the deviation of a mean of T
    losses of that range come to at most 3 (log dT)^(5/4) alpha. With hardly any V the theorem still has two cells, and
    after the printed samples it says less for the Lipschitz class. Ours, with m^{3/2} for m^2 and for cells the range
    log(d/lambda), suffice as well.

    subject: brackets of cells and of the Lipschitz class, and the constant, of which large d need more than 2.2.
    """
    draw, most, beta = random.Random(137), 0.0, 0.05
    for _, ours in itertools.product(range(400), (False, True)):
        m, epsilon, learning, lam, alpha, d, ratio, psi = random_samples(draw)
        x = 1 + min(1.0, epsilon * (2 if m > 1 else 1)) / learning
        bracket = subject[0](m, d, x, lam, alpha) if d else subject[1](m, ratio, x, lam, alpha)
        bracket /= math.sqrt(m) if ours else 1.0
        span = math.log(d / lam) if ours and d else math.log(1 / (psi * lam))
        steps = math.ceil(max(1e4, math.log(1 / beta) / alpha**2 * (bracket + span**2)))
        options = [d] if d else [2**k for k in range(1, 80)]  # the theorem's cells are ours to choose
        noise = bounds.dpftrl_noise(steps, learning, 1e-6)
        known: dict[str, Any] = {"quantiles": m, "epsilon": epsilon, "noise": noise, "beta": beta, "mixture": lam}
        known |= {"lipschitz": 0.0 if d else ratio * psi, "width": 1.0, "separation": psi}
        regret, cells = min((bounds.thm_quantile_regret(steps, k, lam, **known).regret, k) for k in options)
        excess = regret / steps + span * math.sqrt(2 * math.log(2 / beta) / steps)
        most = max(most, excess / alpha / math.log(cells * steps) ** 1.25)
        assert most <= subject[2], (m, epsilon, learning, lam, alpha, d, ratio, psi, ours, most)
    return f"so many samples leave an excess of at most {most:.2f} (log dT)^(5/4) alpha, cells and Lipschitz class"


LIPSCHITZ = {"quantiles": 1.5, "lipschitz": 2.0, "width": 6.0, "separation": -2.0, "mixture": -4.0, "alpha": -4.0}


def _powers(noisy: float = 1.5, silent: float = 1.0, **others: float) -> tuple[float, float, dict[str, float]]:
    return noisy, silent, LIPSCHITZ | others


@check(
    "cor:quantile-regret/sample-size",
    code=(bounds.thm_quantile_regret, bounds.cor_quantile_regret),
    rejects=[
        _powers(2.0),
        _powers(1.515),
        _powers(1.485),
        _powers(1.5, 1.5),
        _powers(1.5, 0.99),
        *(_powers(quantiles=power) for power in (1.0, 2.0, 4.0, 1.485, 1.515)),
        _powers(lipschitz=1.0),
        _powers(width=0.0),
        _powers(separation=-1.0),
        _powers(mixture=-2.0),
        _powers(alpha=-2.0),
    ],
)
def check_samples_in_quantiles(subject: tuple[float, float, dict[str, float]] = _powers()) -> str:
    """Ours: m^{3/2} samples for m quantiles, m without noise, for cells; m^{3/2} V^2 (b - a)^6/(lambda^4 psi^2 alpha^4)
    for the Lipschitz class, m without noise as well. With so many more samples our average regret stays what it was.

    For cells it is the regret itself, so large m that the deviation does not count and T within one power of two.
    """
    noisy, silent, lipschitz = subject
    for noise, power in ((1e12, noisy), (0.0, silent)):
        common: dict[str, Any] = {"epsilon": 0.5, "noise": noise, "beta": 0.9, "mixture": 0.2}

        def average(m: int, steps: int, common: dict[str, Any] = common) -> float:
            return bounds.thm_quantile_regret(steps, 4, 0.2, quantiles=m, **common).regret / steps

        first, more = average(10**12, 2**600), average(15 * 10**11, 2**500 * round(2**100 * 1.5**power))
        assert abs(more / first - 1) < 1e-4, (noise, power, more / first)
        assert math.isclose(average(10**12, 2**500 * round(2**100 * 1.69)) / first, 1 / 1.3, rel_tol=1e-4), "alpha^-2"
    known = {"quantiles": 10**6, "lipschitz": 3.0, "width": 2.0, "separation": 0.1, "mixture": 0.25, "alpha": 1.0}
    for (name, power), wide in [*((item, True) for item in lipschitz.items()), (("quantiles", silent), False)]:
        averages = []
        for by in (1, 4):
            case, steps = {**known, name: known[name] * by}, 2**200 * round(2**100 * by**power)
            target, noise_factor = case.pop("alpha"), 50 * (math.sqrt(case["quantiles"]) if wide else 1)  # width of m
            case["mixture"] /= 8  # below one in both cases
            found = bounds.cor_quantile_regret("robust-lipschitz", steps, noise_factor=noise_factor, **case)  # type: ignore[arg-type]
            averages.append(found.rate / steps / target)
        assert math.isclose(*averages, rel_tol=1e-6), (name, power, averages)
    return (
        "samples for m quantiles: m^(3/2) with noise, m without; Lipschitz m^(3/2) V^2 (b-a)^6/(lambda^4 psi^2 alpha^4)"
    )
