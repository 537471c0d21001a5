"""Steps in the proof of thm:pubpri, hedging, and proxy losses (Section 5, Appendix C)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import sympy
import z3

from proofs_checks.exact import Points, Prior, Restricted, log_ball, mechanism
from proofs_checks.laplace import prove, stable_float

F = Fraction
HALF = F(1, 2)


# ---- thm:pubpri ------------------------------------------------------------------------------------------------------


def check_second_integral(subject: int = 2) -> str:
    """Where psi_z < psi two losses are integrated; the printed line counts the term log(1/psi_z) once.

    n = 2 uniform records on (0, w), median, a scale of 10^6 w: each loss is at least log(2 sigma/psi_z) and at most
    2B/sigma more.  Exact integrals over the density 2 (w - y)/w^2 of psi_z.
    """
    y, w, s, cut = sympy.symbols("y w s psi", positive=True)
    density = 2 * (w - y) / w**2
    rare = sympy.integrate(density, (y, 0, cut))
    below = sympy.integrate(density * sympy.log(1 / y), (y, 0, cut))
    above = sympy.integrate(density * sympy.log(2 * s / y), (y, cut, w))
    short = []
    for width, share in itertools.product((1e-6, 0.5, 1.0, 1e3), (1e-4, 0.05, 0.3)):
        place = {w: width, s: 1e6 * width, cut: share * width}
        p, low, high = (float(v.subs(place).evalf(30)) for v in (rare, below, above))
        scale = 1e6 * width
        losses = 2 * p / (1 - p) * high + 2 * (low + p * math.log(2 * scale))  # both at their lower bound
        first = 2 * p * (4e-6 + math.log(4 * scale**2 / (share * width)))
        assert losses <= first + subject * low + 1e-12, (width, share)
        if losses > first + low + 1e-12:
            short.append((width, share))
    assert short
    return f"second integral of thm:pubpri needs log(1/psi_z) twice; once is too little in {len(short)} of 12 cases"


def loss_limit(m: int, reach: float, scale: float, psi: float) -> float:
    """2B/sigma_min + log(2 m sigma_max/psi)."""
    return reach + math.log(2 * m * scale / psi)


def check_many_losses(subject: Callable[..., float] = loss_limit) -> str:
    """U of m quantiles <= max_i U_i + log m <= 2B/sigma_min + log(2 m sigma_max/psi_z)."""
    rng = np.random.default_rng(89)
    near = 0.0
    for _ in range(300):
        m, b = int(rng.integers(1, 10)), 10 ** rng.uniform(-2, 2)
        low = b * 10 ** rng.uniform(-1.5, 0)
        high = low * 10 ** rng.uniform(0, 2)
        data = np.sort(rng.uniform(-b, b, m + 5))
        psi = np.diff(data).min()
        scales = rng.uniform(low, high, m)
        places = rng.uniform(-b, b, m)
        triples = zip(places, scales, range(m), strict=True)
        losses = [stable_float(c / s, 1 / s, data[i], data[i + 1]) for c, s, i in triples]
        total = float(np.logaddexp.reduce(losses))
        assert total <= max(losses) + math.log(m) + 1e-9
        assert total <= subject(m, 2 * b / low, high, psi), (m, b, low)
    for m in (1, 9):  # equal wide priors on equal intervals: log(2 m sigma/psi) to first order
        loss = stable_float(0.0, 1e-6, -0.5, 0.5) + math.log(m)
        assert loss <= subject(m, 2e-6, 1e6, 1.0)
        near = max(near, loss - loss_limit(m, 0.0, 1e6, 1.0))
    assert near > -1e-3
    return "U of m quantiles <= 2B/sigma_min + log(2 m sigma_max/psi): 300 cases, and close for wide priors"


Laws = Sequence[Sequence[Fraction]]


def telescoped(laws: Laws, mine: Sequence[Fraction], best: Sequence[Fraction]) -> Fraction:
    """Sums of both losses against |rho - rho'| and |rho' - rho'_psi|."""
    both = [a + b for a, b in zip(mine, best, strict=True)]
    return sum(
        (u * abs(p - r) for one, two in itertools.pairwise(laws) for u, p, r in zip(both, one, two, strict=True)), F(0)
    )


def check_decomposition(subject: Callable[..., Fraction] = telescoped) -> str:
    """E_D U(mu') <= E_D U(mu*) + the two integrals + the error on the last law, exactly on finite laws."""
    rng = np.random.default_rng(97)
    for trial in range(300):
        laws = [[F(int(v), 60) for v in rng.multinomial(60, np.full(4, 0.25))] for _ in range(3)]
        mine, best = ([F(int(v), 10) for v in rng.integers(0, 11, 4)] for _ in range(2))
        if trial == 0:
            laws = [[F(1), F(0), F(0), F(0)], [F(0), F(1), F(0), F(0)], [F(0), F(1), F(0), F(0)]]
            mine, best = [F(1), F(0), F(0), F(0)], [F(0), F(1), F(0), F(0)]
        excess = [sum(p * (a - b) for p, a, b in zip(law, mine, best, strict=True)) for law in laws]
        assert excess[0] <= subject(laws, mine, best) + excess[2], trial
    return "thm:pubpri, decomposition: excess <= both integrals + error of the descent (300 exact cases)"


def check_rejection(subject: Callable[[Fraction, int], Fraction] = lambda p, steps: steps * p) -> str:
    """Given that no block is narrow the blocks are independent draws of the conditional law; Pr(some is) <= T p."""
    law = {0: F(1, 10), 1: F(3, 10), 2: F(6, 10)}  # 0 is narrow
    for steps in (1, 2, 4):
        draws = {
            blocks: math.prod((law[b] for b in blocks), start=F(1)) for blocks in itertools.product(law, repeat=steps)
        }
        good = {blocks: p for blocks, p in draws.items() if 0 not in blocks}
        kept = sum(good.values())
        assert 1 - kept <= subject(law[0], steps), steps
        for blocks, p in good.items():
            assert p / kept == math.prod((law[b] / (1 - law[0]) for b in blocks), start=F(1))
    for p in (F(1, 10**6), F(1, 100)):
        assert 1 - (1 - p) ** 50 <= subject(p, 50)
    return "blocks given that none is narrow: independent draws of the conditional law; Pr(some narrow) <= T p (exact)"


def check_variation(subject: Callable[[Fraction, Fraction], bool] = lambda part, whole: part <= whole) -> str:
    """TV_q <= TV(D^n, D'^n), with room: laws that differ in the upper tail only, n = 3, lower two order statistics."""
    first = {1: F(1, 4), 2: F(1, 4), 3: F(1, 4), 4: F(1, 4), 5: F(0)}
    for moved in (F(1, 10), F(1, 4)):
        second = {**first, 4: first[4] - moved, 5: moved}
        seen: dict[tuple[int, int], Fraction] = {}
        whole = F(0)
        for draw in itertools.product(first, repeat=3):
            gap = math.prod((first[v] for v in draw), start=F(1)) - math.prod((second[v] for v in draw), start=F(1))
            whole += abs(gap) / 2
            low, high, _ = sorted(draw)
            seen[low, high] = seen.get((low, high), F(0)) + gap
        part = sum(abs(v) for v in seen.values()) / 2
        assert subject(part, whole), (part, whole)
        assert part < whole / 3
    return f"TV_q <= TV(D^n, D'^n); all of an upper quarter moved: {float(part):.3f} against {float(whole):.3f} (exact)"


def check_parameter_box(subject: Callable[[float, float], bool] = lambda true, box: true >= box) -> str:
    """Regret against the box of (v, phi) is at least that against (w, sigma), and not equal: the box holds more.

    d = 1, f = 1/2, B = 1, sigma in [1/2, 1], optimal interval (0.99, 1.01]: locations w f reach 1/2, v f/phi reaches 1.
    """
    true = min(
        stable_float(w / 2 / s, 1 / s, 0.99, 1.01) for w in np.linspace(-1, 1, 41) for s in np.linspace(0.5, 1, 21)
    )
    box = min(stable_float(v / 2, f, 0.99, 1.01) for v in np.linspace(-2, 2, 41) for f in np.linspace(1, 2, 21))
    assert subject(true, box), (true, box)
    assert true > box + 0.3, (true, box)
    return f"best loss over (w, sigma) {true:.3f}, over the box of (v, phi) {box:.3f}: '=' in the proof must be '<='"


# ---- hedging and proxies ---------------------------------------------------------------------------------------------


def check_hedging(subject: Callable[[Any, Any], Any] = lambda weight, psi: weight * psi) -> str:
    """Mixing a robust prior into each prediction costs at most log 1/(1-lambda), and saves all but log 1/lambda."""
    weight, mine, robust = z3.Reals("weight mine robust")
    mixed = (1 - weight) * mine + weight * robust
    inside = (weight > 0, weight < 1, mine >= 0, robust >= 0)
    prove(*inside, goal=z3.And(mixed >= subject(weight, robust), mixed >= subject(1 - weight, mine)))
    rng = np.random.default_rng(101)
    for _ in range(200):  # the harmonic mean rises with each entry and scales with all of them
        m, lam = int(rng.integers(1, 6)), F(int(rng.integers(1, 10)), 10)
        mu, rho = ([F(int(v), 50) for v in rng.integers(1, 51, m)] for _ in range(2))
        total = sum(1 / ((1 - lam) * a + lam * b) for a, b in zip(mu, rho, strict=True))
        assert total <= sum(1 / subject(lam, b) for b in rho)
        assert total <= sum(1 / subject(1 - lam, a) for a in mu)
    return "U(mixture) <= min(U(mu) + log 1/(1-lambda), U(rho) + log 1/lambda), also for m > 1 (z3, fractions)"


Follow = Callable[[Fraction, Points], Prior]


def after_output(o: Fraction, data: Points) -> Prior:
    """Tomorrow's prior, from what was released today."""
    return {HALF: F(1, 1000), 3 + HALF: F(999, 1000)} if o > 2 else {HALF: F(999, 1000), 3 + HALF: F(1, 1000)}


def after_data(o: Fraction, data: Points) -> Prior:
    """Tomorrow's prior, from today's data."""
    return {HALF: F(1, 1000), 3 + HALF: F(999, 1000)} if data.size > 3 else {HALF: F(999, 1000), 3 + HALF: F(1, 1000)}


def two_days(first: Points, second: Points, z: Fraction, follow: Follow) -> dict[tuple[Any, Any], Fraction]:
    """Law of the medians released on two days; the second prior comes from `follow`."""
    prior = {HALF: F(1, 1000), 1 + HALF: HALF, 2 + HALF: HALF - F(2, 1000), 3 + HALF: F(1, 1000)}
    whole = (-math.inf, math.inf)
    law = {}
    for o, p in mechanism(Restricted(first, *whole), HALF, prior, z).items():
        for v, share in mechanism(Restricted(second, *whole), HALF, follow(o, first), z).items():
            law[o, v] = p * share
    return law


def _losses(pairs: Sequence[tuple[Points, Points]], z: Fraction, follow: Follow) -> Fraction:
    """Largest ratio of the laws of the first pair against the second and back."""
    one, two = (two_days(*pair, z, follow) for pair in pairs)
    return max(max(p / two[k], two[k] / p) for k, p in one.items())


def check_proxy_privacy(subject: Follow = after_output) -> str:
    """Learning from released values costs nothing: two days about different people, budget epsilon each (exact)."""
    z = F(1, 10)  # exp(-epsilon/2)
    few, more = (Points(tuple(F(v) for v in range(1, n + 1))) for n in (3, 4))
    today = _losses(((few, few), (more, few)), z, subject)
    tomorrow = _losses(((few, few), (few, more)), z, subject)
    assert max(today, tomorrow) <= z**-2, f"{float(max(today, tomorrow)):.0f} > {float(z**-2):.0f}"
    assert tomorrow > F(9, 10) * z**-2
    return "two days about different people, the second prior from the first output: exact loss at most epsilon"


def check_composed_days(subject: int = 2) -> str:
    """The same people on both days: the budgets add up, and all of the sum can be lost (exact)."""
    z = F(1, 10)
    few, more = (Points(tuple(F(v) for v in range(1, n + 1))) for n in (3, 4))
    largest = F(0)
    for masses in ((F(1, 10**6), 1 - F(1, 10**6)), (1 - F(1, 10**6), F(1, 10**6))):
        prior = {1 + HALF: masses[0], 2 + HALF: masses[1]}
        one, two = (mechanism(Restricted(x, -math.inf, math.inf), HALF, prior, z) for x in (few, more))
        ratio = max(max(one[o] / two[o], two[o] / one[o]) for o in one)
        largest = max(largest, ratio)
    spent = log_ball(largest**2) / (-2 * log_ball(z))
    assert spent < subject + 1e-9, float(spent)
    assert spent > subject - 0.01, float(spent)
    return f"the same people on two days: loss {float(spent):.4f} epsilon for two releases at epsilon each"


def log_psi(x: np.ndarray, q: float, prior: Any) -> float:
    """log of `exp(-U^(q))`: the prior's mass in the optimal interval."""
    import pq

    return float(pq.log_psi(x, q, prior))


def check_optimal_interval_only(subject: Callable[[np.ndarray, float, Any], float] = log_psi) -> str:
    """U^(q) sees the optimal interval and nothing else, and it sees both of its ends."""
    import pq

    rng = np.random.default_rng(230)
    for prior in (pq.Laplace(0, 1), pq.Cauchy(1, 2), pq.Uniform(-50, 50)):
        for n, q in ((1, 0.5), (4, 0.5), (7, 0.29), (7, 0.0), (10, 0.9), (10, 1.0)):
            rank = math.floor(Fraction(str(q)) * n)
            x = np.sort(rng.normal(size=n))
            other, moved = x.copy(), x.copy()
            other[: max(rank - 1, 0)] -= rng.exponential(size=max(rank - 1, 0))  # all but the ends of the interval
            other[rank + 1 :] += rng.exponential(size=len(other[rank + 1 :]))
            moved[max(rank - 1, 0) : rank] -= 0.125
            moved[rank : rank + 1] += 0.125
            assert abs(subject(np.sort(other), q, prior) - subject(x, q, prior)) < 1e-12, (n, q)
            assert subject(np.sort(moved), q, prior) > subject(x, q, prior) + 1e-3, (n, q)
    return "U^(q) of data sets with one optimal interval agrees under three priors, and changes with its ends"
