"""thm:quantile-regret from its parts: losses as inner products, and thm:dpftrl on m simplices at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import z3
from flint import arb

from pq import bounds
from pq.bounds import thm_quantile_regret
from proofs_checks.engine.registry import check
from proofs_checks.tools.broken import printed
from proofs_checks.tools.gaussian import certify
from proofs_checks.tools.solver import follows

F = Fraction
HALF = Fraction(1, 2)


def overlap(one: tuple[Fraction, Fraction], two: tuple[Fraction, Fraction]) -> Fraction:
    """Length of what two intervals share."""
    return max(min(one[1], two[1]) - max(one[0], two[0]), F(0))


@check(
    "thm:quantile-regret/parametrisation",
    "thm:quantile-regret/normalisation",
    rejects=[
        lambda d, width: F(1),
        lambda d, width: (d / width) ** 2,
        lambda d, width: width / d,
        lambda d, width: F(101, 100) * d / width,
    ],
)
def check_inner_product(subject: Callable[[int, Fraction], Fraction] = lambda d, width: d / width) -> str:
    """Psi of the density (d/(b - a)) W_j on cell j is <s, W> with s_j = (d/(b - a)) times the integral of the score
    over the cell, in fractions: the factor stands in s or in the density, and <s, W> has it once."""
    rng = np.random.default_rng(29)
    for _ in range(200):
        d, width, low = int(rng.integers(1, 6)), F(int(rng.integers(1, 30)), 3), F(int(rng.integers(-9, 9)))
        parts = [int(v) + 1 for v in rng.integers(0, 9, d)]
        weights, z = [F(v, sum(parts)) for v in parts], F(1, int(rng.integers(2, 60)))
        records = sorted(low + width * F(int(v), 100) for v in rng.integers(0, 101, int(rng.integers(0, 6))))
        rank = int(rng.integers(0, len(records) + 1))
        pieces = list(itertools.pairwise([low, *records, low + width]))
        cells = [(low + width * j / d, low + width * (j + 1) / d) for j in range(d)]
        scores = [sum(z ** abs(k - rank) * overlap(cell, part) for k, part in enumerate(pieces)) for cell in cells]
        inner = sum(subject(d, width) * s * w for s, w in zip(scores, weights, strict=True))
        assert inner == _psi(pieces, rank, z, cells, weights), (d, width, records)
    # in general both are sums over cells and pieces of one such term: W over the length of the cell, score and overlap
    whole, cells_, score, shared, share = z3.Reals("whole cells score shared share")
    terms = share / (whole / cells_) * score * shared, cells_ / whole * (score * shared) * share
    follows(whole > 0, cells_ > 0, goal=terms[0] == terms[1])
    return "Psi of a piecewise constant prior is <s, W>, s with the factor d/(b - a) once (z3, 200 exact cases)"


def _psi(
    pieces: Sequence[tuple[Fraction, Fraction]],
    rank: int,
    z: Fraction,
    cells: Sequence[tuple[Fraction, Fraction]],
    weights: Sequence[Fraction],
) -> Fraction:
    """Sum of scores times masses, for masses W_j spread evenly over their cells."""
    total = F(0)
    for k, part in enumerate(pieces):
        mass = sum(w * overlap(cell, part) / (cell[1] - cell[0]) for cell, w in zip(cells, weights, strict=True))
        total += z ** abs(k - rank) * mass
    return total


def _changed(**factors: float) -> Callable[..., bounds.QuantileRegret]:
    """The theorem with regret or step size times a number."""

    def broken(*args: Any, **named: Any) -> bounds.QuantileRegret:
        found = thm_quantile_regret(*args, **named)
        return found._replace(**{name: getattr(found, name) * factor for name, factor in factors.items()})

    return broken


@check(
    "thm:quantile-regret",
    "thm:quantile-regret/comparator",
    "ours:regret-in-quantiles",
    code=(thm_quantile_regret, bounds.thm_dpftrl),
    rejects=[
        _changed(regret=0.99),
        _changed(regret=1.01),
        _changed(step_size=1.01),
        printed(thm_quantile_regret),
        lambda *a, **k: thm_quantile_regret(*a, **{**k, "quantiles": k["quantiles"] ** 2}),
        lambda *a, **k: thm_quantile_regret(*a, **{**k, "epsilon": 2 * k["epsilon"]}),
        lambda *a, **k: thm_quantile_regret(*a, **{**k, "beta": 0.1}),
        lambda steps, *a, **k: thm_quantile_regret(1 << (steps - 1).bit_length(), *a, **k),
        lambda steps, *a, **k: thm_quantile_regret(steps + 1, *a, **k),
        lambda steps, d, gamma, **k: thm_quantile_regret(steps, d, 0.2, **k),
    ],
)
def check_learning_term(subject: Callable[..., bounds.QuantileRegret] = thm_quantile_regret) -> str:
    """The corrected regret is thm:dpftrl with range m log d, L = d/gamma, G = sqrt(2m log 2d), C = 1 and our
    Delta_2, plus the comparator's mixing, at m times its step size, which is sqrt m times the printed one without
    noise, and may be smaller with much; in m sqrt m without noise and m^(3/4) with much, where the printed has m."""
    places = ((0.2, 0.5, 0.1), (0.4, 3.0, 0.7), (0.05, 0.01, 1e-9))  # gamma, epsilon and beta'
    sizes = itertools.product((1, 3, 1000), (2, 3, 10), (1, 2, 3, 7), (0.0, 3.0), (0.05, 0.2, 0.5), places)
    for steps, d, m, noise, lam, (gamma, epsilon, beta) in sizes:
        known = {"quantiles": m, "epsilon": epsilon, "noise": noise, "beta": beta, "mixture": lam}
        found = subject(steps, d, gamma, **known)
        wide, reach = math.sqrt(2 * m * math.log(2 * d)), math.sqrt(2) * d / gamma * math.tanh(epsilon / 4)
        named = {"regularizer_range": m * math.log(d), "lipschitz": d / gamma, "sensitivity": reach}
        learning = bounds.thm_dpftrl(steps, gaussian_width=wide, noise=noise, beta=beta, **named)
        wide, levels = wide + math.sqrt(2 * math.log(steps / beta)), math.floor(math.log2(steps))
        moved = wide * noise * reach * math.sqrt(levels)
        stated = 2 * math.sqrt(m * math.log(d) * steps * (d / gamma) * (d / gamma + moved))
        assert math.isclose(learning, stated, rel_tol=1e-9), "as the row says"
        mixing = -steps * math.log1p(-max(gamma - lam, 0.0) / (1 - lam))
        assert math.isclose(found.regret, learning + mixing, rel_tol=1e-9), (steps, d, m)
        assert math.isclose(found.step_size, m * 2 * m * math.log(d) / learning, rel_tol=1e-9), (steps, d, m)
        printed_step = thm_quantile_regret(steps, d, gamma, **known, version="paper").step_size
        assert noise or math.isclose(found.step_size, math.sqrt(m) * printed_step, rel_tol=1e-9), "as the row says"
    noisy: dict[str, Any] = {"quantiles": 2, "epsilon": 5.0, "noise": 20.0, "beta": 0.1, "mixture": 0.2}
    ours, theirs = (f(1000, 10, 0.2, **noisy) for f in (subject, printed(thm_quantile_regret)))
    assert 0.91 < ours.step_size / theirs.step_size < 0.93, "smaller with much noise, as the row says"
    for noise, power in ((0.0, 0.5), (1e12, 0.75)):
        common: dict[str, Any] = {"epsilon": 0.5, "noise": noise, "beta": 0.9, "mixture": 0.2}
        one, four = (subject(2, 10**50, 0.2, quantiles=m, **common).regret for m in (10**8, 4 * 10**8))
        assert math.isclose(four / one, 4**power, rel_tol=1e-4), (noise, four / one)
        many = (10**8, 4 * 10**8)
        paper = [thm_quantile_regret(2, 10**50, 0.2, quantiles=m, version="paper", **common).regret for m in many]
        assert math.isclose(paper[1] / paper[0], 4, rel_tol=3e-3), "m, but for the logarithm in the width"
    return "thm:quantile-regret: thm:dpftrl at range m log d, width sqrt(2m log 2d), plus mixing; sqrt m, or m^(3/4)"


@check(
    "ours:regret-in-quantiles",
    code=thm_quantile_regret,
    rejects=[(0.49, 0.75, 1.0), (0.51, 0.75, 1.0), (0.5, 0.74, 1.0), (0.5, 0.76, 1.0), (0.5, 0.75, 1.01)],
)
def check_growth_in_quantiles(subject: tuple[float, float, float] = (0.5, 0.75, 1.0)) -> str:
    """Against one quantile the learning term of m is sqrt m times as large without noise, at most m^(3/4) times with
    it, which much noise needs, and the printed one m times or more.

    subject: power of m without noise, the largest with it, and the least that is printed.
    """
    silent, noisy, paper, most = *subject, 0.0
    for steps, d, noise, m in itertools.product(
        (1, 2, 1000, 10**9), (2, 10, 10**9), (0.0, 1e-3, 3.0, 1e9), (2, 3, 50, 10**9)
    ):
        known: dict[str, Any] = {"noise": noise, "mixture": 0.5}
        powers: dict[Any, list[float]] = {"corrected": [], "paper": []}
        for version, epsilon, beta in itertools.product(powers, (1e-3, 0.5, 20.0), (1e-9, 0.1, 0.99)):
            one, many = (
                thm_quantile_regret(steps, d, 0.1, quantiles=k, version=version, epsilon=epsilon, beta=beta, **known)
                for k in (1, m)
            )
            powers[version].append(math.log(many.regret / one.regret) / math.log(m))
        assert max(powers["corrected"]) <= noisy + 1e-9 and min(powers["paper"]) >= paper - 1e-9, (steps, d, noise, m)
        assert noise or all(abs(power - silent) < 1e-9 for power in powers["corrected"]), "without noise"
        most = max(most, *powers["corrected"])
    assert most > noisy - 5e-3, "less will do"
    return f"learning term of m quantiles over that of one: sqrt m without noise, m^{most:.4f} at most with it"


def gradient_rows(scores: Sequence[Sequence[F]], weights: Sequence[Sequence[F]]) -> list[list[F]]:
    """Of log sum_i 1/<s_i, W_i>, up to the sign."""
    inner = [sum(s * w for s, w in zip(*rows, strict=True)) for rows in zip(scores, weights, strict=True)]
    total = sum(1 / value for value in inner)
    return [[s / (value**2 * total) for s in row] for row, value in zip(scores, inner, strict=True)]


@check(
    "ours:regret-in-quantiles",
    rejects=[(F(by, 100), F(1)) for by in (99, 101, 200)] + [(F(1), F(by, 100)) for by in (50, 99, 101)],
)
def check_norm_of_rows(subject: tuple[F, F] = (F(1), F(1))) -> str:
    """In sqrt(sum_i |W_i|_1^2) the sum of m entropies is 1-strongly convex, by Pinsker in each row, and the gradient's
    dual norm sqrt(sum_i |g_i|_inf^2) is d/gamma at most, whatever m: fractions. Both constants are least.

    subject: factors of the modulus and of d/gamma.
    """
    rng = np.random.default_rng(127)
    for trial in range(400):
        m, d = (1 if trial == 0 else int(rng.integers(1, 5))), int(rng.integers(2, 6))
        x, y = rng.dirichlet(np.full(d, 0.5), (2, m)) + 1e-12
        if trial % 2 == 0:  # all rows move by a little, two cells against each other
            x, y = np.full((m, 2), 0.5), np.full((m, 2), 0.5) + 1e-4 * rng.uniform(0.5, 1, (m, 1)) * [1, -1]
        divergence = float(np.sum(x * np.log(x / y) - x + y))
        norm = float(np.sum(np.abs(x - y).sum(1) ** 2))
        assert divergence >= float(subject[0]) * norm / 2 * (1 - 1e-4), "not so convex"
        assert trial % 2 or divergence <= float(subject[0]) * norm / 2 * (1 + 1e-4), "more convex"
        gamma, parts = F(int(rng.integers(1, 10)), 10), rng.multinomial(30, np.full(d, 1 / d), m).tolist()
        weights = [[gamma / d + (1 - gamma) * F(v, 30) for v in row] for row in parts]
        scores = [[F(int(v), 10**6) for v in row] for row in 10 ** rng.uniform(0, 6, (m, d))]
        if trial == 0:  # all of the score on a cell at the floor
            weights, scores = [[gamma / d, *[(1 - gamma / d) / (d - 1)] * (d - 1)]], [[F(1), *[F(0)] * (d - 1)]]
        dual = sum(max(row) ** 2 for row in gradient_rows(scores, weights))
        assert dual <= (subject[1] * d / gamma) ** 2 and (trial or dual == (subject[1] * d / gamma) ** 2), trial
        assert dual <= sum(g * g for row in gradient_rows(scores, weights) for g in row), "1-Lipschitz in l2"
    return "rows' norm sqrt(sum |W_i|_1^2): m entropies 1-strongly convex, gradients of d/gamma at most, both least"


@check("ours:regret-in-quantiles", rejects=[(2.0, 1.0), (1.98, 2.0), (2.02, 2.0), (2.0, 1.4)])
def check_width_of_rows(subject: tuple[float, float] = (2.0, 2.0)) -> str:
    """G^2 <= m E M^2 (Jensen), M the largest modulus of d normals, and E M^2 <= 2 log 2d for every d, even real, in
    balls; at d = 10^1000 hardly less would do.

    With 2d Q(u) = 1, Q the normal tail and h = phi/Q, Pr{M > t} <= 2d Q(t) beyond u says E M^2 <= u h(u) + 1. Beyond
    u = 2 Mills' ratio, h <= u + 1/u and Q <= phi/u, leaves 2 log u + log 2 pi >= 2.

    subject: factor of the logarithm, and what stands before d in it.
    """
    factor, inside = (arb(value) for value in subject)

    def tail(u: arb) -> arb:
        return (u / arb(2).sqrt()).erfc() / 2

    def room(u: arb) -> arb:
        hazard = (-u * u / 2).exp() / (2 * arb.pi()).sqrt() / tail(u)
        return factor * (inside / 2 / tail(u)).log() - u * hazard - 1

    certify(room, 0.0, 2.0)
    assert 2 * arb(2).log() + (2 * arb.pi()).log() + 2 * (inside / 2).log() > 2, "beyond u = 2, where it grows"
    many, low = 10**1000, arb(4580)
    exceed = 1 - (-2 * many * tail(low.sqrt())).exp()  # at least: Pr{M <= t} = (1 - 2Q)^d
    bound = factor * (inside * many).log()
    assert low * exceed <= bound, "exceeded"
    assert low * exceed >= arb("0.99") * bound, "more than is needed"
    with mpmath.workdps(20):
        for d in (1, 2, 8, 100):
            square = mpmath.quad(lambda t, d=d: 2 * t * (1 - mpmath.erf(t / mpmath.sqrt(2)) ** d), [0, 2, 4, 8, 20])
            assert square <= float(factor) * math.log(float(inside) * d), (d, square)
    return "Gaussian width of m rows of d: at most sqrt(2 m log 2d), for every d (balls), and the least as d grows"


@check(
    "thm:quantile-regret/comparator",
    rejects=[
        lambda lam, gamma: True,
        lambda lam, gamma: False,
        lambda lam, gamma: lam == 0,
        lambda lam, gamma: lam >= gamma,
    ],
)
def check_printed_comparator(subject: Callable[[F, F], bool] = lambda lam, gamma: lam == 0 or lam >= gamma) -> str:
    """The printed rho has the floor min(1 - gamma + lambda, 1) lambda + (gamma - lambda)^+, which is gamma or more for
    lambda = 0 or lambda >= gamma and for no other lambda; there its cost is as printed."""
    for gamma, lam in itertools.product((F(k, 20) for k in range(1, 11)), (F(k, 20) for k in range(21))):
        short = max(gamma - lam, F(0))
        floor = min(1 - gamma + lam, F(1)) * lam + short
        assert (floor >= gamma) == subject(lam, gamma), (gamma, lam)
        cost = -math.log1p(-float(short))  # of the weight that is taken from the prior
        assert not subject(lam, gamma) or cost <= 2 * float(short) * math.log(2) * (1 + 1e-12), (gamma, lam)
    g, v = z3.Reals("gamma lambda")
    follows(v > 0, v < g, g <= 1, goal=(1 - g + v) * v + g - v < g)
    assert min(1 - HALF + F(2, 5), F(1)) * F(2, 5) + HALF - F(2, 5) == F(46, 100), "as the row says"
    return "the printed comparator is gamma-robust for lambda = 0 or lambda >= gamma only"
