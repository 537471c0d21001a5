"""The integrals, separations and probabilities in the proof of thm:pubpri."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import sympy
import z3
from flint import arb

import pq
from pq import bounds
from pq.bounds import thm_pubpri
from pq.losses import laplace_quantiles
from proofs_checks.engine.registry import check
from proofs_checks.tools.broken import printed, scaled
from proofs_checks.tools.exact import ball
from proofs_checks.tools.laplace import stable_float
from proofs_checks.tools.solver import follows

F = Fraction
HALF = Fraction(1, 2)


def two_losses(b_over_sigma: float, m: int, scale: float, psi: float) -> float:
    """Corrected bound of U(mu') + U(mu*)."""
    return 4 * b_over_sigma + math.log(4 * m**2 * scale**2 / psi**2)


def _lost_square(b: float, m: int, scale: float, psi: float) -> float:
    return 4 * b + math.log(4 * m**2 * scale**2 / psi)


@check(
    "thm:pubpri/lost-square",
    code=laplace_quantiles,
    rejects=[_lost_square, lambda *case: 0.99 * two_losses(*case), lambda *case: 1.01 * two_losses(*case)],
)
def check_lost_square(subject: Callable[[float, int, float, float], float] = two_losses) -> str:
    """Two losses of at most L = 2B/sigma + log(2 m sigma_max/psi) add to 4B/sigma + log(4 m^2 sigma_max^2/psi^2)."""
    for m, scale, reach, psi in ((1, 4.0, 10.0, 1e-5), (3, 4.0, 10.0, 1e-6), (5, 0.5, 3.0, 1e-5)):
        end = np.full(m, reach * scale)  # records psi apart at B, and a prior at -B, the worst for both losses
        loss = float(laplace_quantiles(np.full(m, -reach), np.full(m, 1 / scale), end - psi, end)[0])
        assert 2 * loss <= subject(reach, m, scale, psi) * (1 + 1e-9), (m, psi)
        assert subject(reach, m, scale, psi) <= 2 * loss * (1 + 1e-4), "both losses can be as large at once"
    rng = np.random.default_rng(83)
    for _ in range(200):  # each loss is at least log(2 sigma/psi), wherever the law and the interval are in [-1, 1]
        place, low, high = rng.uniform(-1, 1), *np.sort(rng.uniform(-1, 1, 2))
        scale, least = 10 ** rng.uniform(-1, 6), high - low
        one = [np.array([v]) for v in (place / scale, 1 / scale, low, high)]
        loss = float(laplace_quantiles(*one)[0])
        assert -1e-9 <= loss - math.log(2 * scale / least) <= 2 / scale + 1e-9, (place, scale, low, high)
    missing = 2 * (20.0 + math.log(24 / 1e-9)) - (40.0 + math.log(4 * 9 * 16 / 1e-9))
    assert math.isclose(missing, -math.log(1e-9)), "as the row says"
    return f"the square of psi is lost under the logarithm: short by log(1/psi) = {missing:.1f} at psi = 1e-9"


def two_blocks_apart(n: int, share: Fraction, psi: Fraction) -> Fraction:
    """Pr(all n records are psi apart), if a share of the law has density 1 and the rest, far from it, 1/2."""

    def apart(count: int, length: Fraction) -> Fraction:
        return max(1 - (count - 1) * psi / length, F(0)) ** count if count > 1 else F(1)

    chances = (math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1))
    return sum(
        (p * apart(k, share) * apart(n - k, 2 * (1 - share)) for k, p in enumerate(chances) if p),
        F(0),
    )


@check(
    "thm:pubpri/separation",
    rejects=[
        lambda n, kappa, psi: n * (n - 1) * kappa * psi / 2,
        lambda n, kappa, psi: n * kappa * psi,
        lambda n, kappa, psi: n * n * psi,
        lambda n, kappa, psi: n * n * kappa**2 * psi,
        *(lambda n, kappa, psi, by=by: F(by, 100) * n * n * kappa * psi for by in (99, 101)),
    ],
)
def check_separation(
    subject: Callable[[int, Fraction, Fraction], Fraction] = lambda n, kappa, psi: n * n * kappa * psi,
) -> str:
    """Pr(least separation < psi) <= kappa n^2 psi: exact for the uniform law, 1 - (1 - (n-1) kappa psi)^n, and for two
    blocks of densities kappa and kappa/2. The union bound, 2 kappa psi for each of n(n-1)/2 pairs, is between them."""
    for kappa, n in itertools.product((F(1), F(7, 2), F(1, 1000)), range(2, 30)):
        for part in (F(1, 10**6), F(1, 1000), F(1, 2 * n)):  # of a length of 1/kappa
            exact, psi = 1 - (1 - (n - 1) * part) ** n, part / kappa
            assert exact <= n * (n - 1) * kappa * psi < subject(n, kappa, psi), (n, kappa, psi)
    shares, parts = (F(1, 10), HALF, F(1)), (F(1, 10**4), F(1, 20), F(1, 2))
    for kappa, n, share, part in itertools.product((F(1), F(7, 2)), (2, 3, 10, 29), shares, parts):
        exact, psi = 1 - two_blocks_apart(n, share, part), part / kappa
        assert exact <= n * (n - 1) * kappa * psi < subject(n, kappa, psi), (n, kappa, share, psi)
    assert two_blocks_apart(5, F(1), F(1, 20)) == (1 - 4 * F(1, 20)) ** 5
    many, kappa = 1 - (1 - 999 * F(1, 10**12)) ** 1000, F(7, 2)
    assert many <= subject(1000, kappa, F(1, 10**12) / kappa) <= F(1002, 1000) * many, "no less for many records"
    # The middle of the printed chain counts ordered pairs: 2 n (n-1) kappa psi, more than n^2 kappa psi from n = 3 on.
    assert all((2 * n * (n - 1) > n**2) == (n >= 3) for n in range(2, 1000))
    return (
        "Pr(psi_z < psi) <= kappa n^2 psi (exact: uniform, two blocks); the middle needs n(n-1)/2 pairs (n = 3: 12 > 9)"
    )


def unit_free_tail(psi: Any) -> Any:
    """Corrected: the integral of log(psi/y) over a law with distribution function at most y, up to psi."""
    return psi


def laws_of_separations(rate: Fraction, psi: Fraction) -> list[list[tuple[Fraction, Fraction]]]:
    """Atoms in (0, psi] and masses with F(y) <= rate y: evenly spaced ones that come close, few, and half of it."""
    grids = [[psi * F(k, count) for k in range(1, count + 1)] for count in (1, 3, 1000)]
    grids += [[psi * F(1, 100), psi * F(1, 2), psi * F(9, 10)], [psi * F(1, 2**k) for k in range(30, -1, -1)]]
    laws = [[(y, rate * (y - x)) for x, y in pairwise([F(0), *grid])] for grid in grids]
    return laws + [[(y, mass / 2) for y, mass in law] for law in laws]


def log_integral(law: list[tuple[Fraction, Fraction]], end: Fraction) -> arb:
    """E[log(end / y)] over the atoms, which lie in (0, end], after a check that it is the integral of F(y) / y."""
    places = [y for y, _ in law] + [end]
    running = list(itertools.accumulate(mass for _, mass in law))
    parts = (ball(f) * (ball(b) / ball(a)).log() for f, (a, b) in zip(running, pairwise(places), strict=True))
    by_mass = sum((ball(mass) * (ball(end) / ball(y)).log() for y, mass in law), arb(0))
    assert (by_mass - sum(parts, arb(0))).contains(0)
    return by_mass


@check(
    "thm:pubpri/log-integral",
    rejects=[
        lambda psi: psi * (1 + sympy.log(1 / psi)),
        *(lambda psi, by=by: by * psi for by in (sympy.Rational(99, 100), sympy.Rational(101, 100), 2)),
        lambda psi: psi**2,
    ],
)
def check_log_integral(subject: Callable[[Any], Any] = unit_free_tail) -> str:
    """E[log(psi/y); y < psi] <= kappa n^2 psi for a constant density, which attains it, and for laws of atoms, which
    come as close as one likes; the printed E[log(1/y)] is right for all laws if and only if psi <= 1."""
    y, psi = sympy.symbols("y psi", positive=True)
    exact = sympy.integrate(sympy.log(psi / y), (y, 0, psi))
    assert sympy.simplify(exact - subject(psi)) == 0
    cases, close = 0, arb(0)
    for mass_below, end in itertools.product((F(1, 3), F(1)), (F(1, 50), HALF, F(1), F(4))):
        rate = mass_below / end
        for law in laws_of_separations(rate, end):
            assert all(
                f <= rate * place for (place, _), f in zip(law, itertools.accumulate(p for _, p in law), strict=True)
            )
            found = log_integral(law, end)
            bound = ball(F(str(subject(sympy.Rational(str(end)))))) * ball(rate)
            assert found <= bound, (rate, end)
            if end <= 1:  # log(1/y) is log(psi/y) and log(1/psi), which is not negative
                printed = sum((ball(mass) * -ball(place).log() for place, mass in law), arb(0))
                assert printed <= ball(rate * end) * (1 - ball(end).log()), (rate, end)
            close, cases = max(close, found / bound), cases + 1
    assert close > 0.99, "not attained in the limit"
    # A constant density of kappa n^2 up to 1 and none from there to psi: kappa n^2, beside psi (1 - log psi) times it
    assert sympy.integrate(sympy.log(1 / y), (y, 0, 1)) == 1
    printed_bound = psi * (1 - sympy.log(psi))
    assert printed_bound.subs(psi, 1) == 1
    assert sympy.simplify(sympy.diff(printed_bound, psi) + sympy.log(psi)) == 0, "it falls from psi = 1 on"
    assert 4 * (1 - math.log(4)) < 0  # while a law with no mass below 4 has integral 0
    return (
        f"tail integral: kappa n^2 psi with log(psi/y), {cases} laws of atoms; the printed one if and only if psi <= 1"
    )


def difference_bound(largest: Fraction, variation: Fraction) -> Fraction:
    """Corrected argument: |U(mu') - U(mu*)| <= L, and expectations of it differ by at most 2 L TV."""
    return 2 * largest * variation


@check("thm:pubpri/total-variation", rejects=[lambda largest, tv: largest * tv, lambda largest, tv: 4 * largest * tv])
def check_total_variation(subject: Callable[[Fraction, Fraction], Fraction] = difference_bound) -> str:
    """The term 2 L TV_q is right by way of the difference of the losses; by way of their sum it would be 4 L TV_q."""
    rng = np.random.default_rng(47)
    for _ in range(300):
        p, r = ([F(int(v), 60) for v in rng.multinomial(60, np.full(4, 0.25))] for _ in range(2))
        mine, best = ([F(int(v), 10) for v in rng.integers(0, 11, 4)] for _ in range(2))
        variation = sum(abs(a - b) for a, b in zip(p, r, strict=True)) / 2
        excess = [sum(w * (a - b) for w, a, b in zip(law, mine, best, strict=True)) for law in (p, r)]
        assert abs(excess[0] - excess[1]) <= subject(F(1), variation)
    one, two, most = z3.Reals("one two most")  # each place's part, of losses from 0 to L: for all laws
    follows(one >= 0, two >= 0, one <= most, two <= most, goal=z3.And(one - two <= most, two - one <= most))
    # Both laws on two points, losses (1, 0) and (0, 1): the differences are 1 and -1, on a total variation of 1.
    excess, variation = F(1) - F(-1), F(1)
    assert excess == subject(F(1), variation), "not the least constant"
    return (
        "E_D - E_D' of U(mu') - U(mu*) is at most 2 L TV (sharp); the printed sum argument loses a factor 2 on the way"
    )


def sum_bound(largest: Any, variation: Any) -> Any:
    """Corrected step: the sum of two losses of at most L, over |rho - rho'|, whose integral is 2 TV."""
    return 4 * largest * variation


@check(
    "thm:pubpri/total-variation",
    rejects=[
        lambda largest, tv: 2 * largest * tv,
        *(lambda largest, tv, by=by: by * sum_bound(largest, tv) / 100 for by in (99, 101)),
    ],
)
def check_sum_of_losses(subject: Callable[[Any, Any], Any] = sum_bound) -> str:
    """Counterexample to the printed step: two losses near M each where the laws differ give 4 M TV, printed 2 M TV."""
    rng = np.random.default_rng(53)
    for _ in range(300):
        p, r = ([F(int(v), 60) for v in rng.multinomial(60, np.full(4, 0.25))] for _ in range(2))
        mine, best = ([F(int(v), 10) for v in rng.integers(0, 11, 4)] for _ in range(2))
        apart = [abs(a - b) for a, b in zip(p, r, strict=True)]
        assert sum(w * (a + b) for w, a, b in zip(apart, mine, best, strict=True)) <= subject(F(1), sum(apart) / 2)
    one, two, most, weight = z3.Reals("one two most weight")  # each place's part, weight for |rho - rho'|: for all laws
    follows(weight >= 0, one <= most, two <= most, goal=weight * (one + two) <= 2 * most * weight)
    psi = ball(F(1, 10**6))  # Laplace(-1, 1) for both priors; the masses of (1 - psi, 1] and of (1 - 2 psi, 1 - psi]
    first = (ball(F(-2)).exp() * (psi.exp() - 1) / 2).log()
    second = first + psi
    largest = 2 + (2 / psi).log()
    whole = -2 * (first + second)
    assert largest - ball(F(2, 10**6)) < -second < -first < largest, "each loss is nearly M"
    assert whole < subject(largest, 1), "the step fails"
    assert whole > ball(F(999_999, 10**6)) * subject(largest, 1), "more than is needed"
    assert 4 * largest - whole < ball(F(1, 10**5))
    tail = 20 + math.log(2) - 1e-5  # Laplace(1, 1/10) on (-inf, x_1], (-1, 1) under one law, (-1 + 1e-6, 1) the other
    assert 4 * tail > subject(20 + math.log(0.2 / 1.999), 1), "rank 0 keeps the step, though no interval is below 1.999"
    return (
        f"sum of two losses on |rho - rho'|: {float(whole):.3f} for 4 M TV = {float(4 * largest):.3f}, printed 2 M TV"
    )


def distance(first: Mapping[Any, Fraction], second: Mapping[Any, Fraction]) -> Fraction:
    """Total variation distance of two laws."""
    return sum((abs(first.get(k, F(0)) - second.get(k, F(0))) for k in {*first, *second}), F(0)) / 2


def law_of(masses: Sequence[Fraction], n: int, ranks: Sequence[int]) -> dict[tuple[int, ...], Fraction]:
    """Of the order statistics at these ranks (from 1) among n records with these masses on 0, 1, ..."""
    law: dict[tuple[int, ...], Fraction] = {}
    for records in itertools.product(range(len(masses)), repeat=n):
        seen = tuple(sorted(records)[k - 1] for k in ranks)
        law[seen] = law.get(seen, F(0)) + math.prod(masses[v] for v in records)
    return law


@check(
    "thm:pubpri/total-variation",
    "text:order-statistic-distance",
    rejects=[lambda tv_q, tv: tv_q == tv, lambda tv_q, tv: tv_q < tv, lambda tv_q, tv: tv_q >= tv],
)
def check_distance_of_records(
    subject: Callable[[Fraction, Fraction], bool] = lambda tv_q, tv: tv_q <= tv,
) -> str:
    """TV_q, of the order statistics at the ranks, is at most the distance of the laws of n records; it is less, and it
    is the same where the laws have no value in common. With all losses M the sum on |rho - rho'| is 4 M times the
    latter, so the step needs the order statistics first."""
    rng, less = np.random.default_rng(59), 0
    cases = [[[F(1), F(0), F(0)], [F(0), HALF, HALF]]]
    cases += [[[F(int(v), 12) for v in rng.multinomial(12, np.full(3, 1 / 3))] for _ in range(2)] for _ in range(40)]
    for (p, r), (n, ends) in itertools.product(cases, ((3, (1, 2)), (4, (1, 2, 3)))):  # of one quantile, and of two
        whole, part = (distance(law_of(p, n, ranks), law_of(r, n, ranks)) for ranks in (range(1, n + 1), ends))
        assert subject(part, whole), (p, r)
        less += part < whole
    assert less > 5
    return f"TV_q is at most the distance of n records' laws, and less in {less} of {2 * len(cases)} exact cases"


def least_separation(data: list[Fraction], ranks: tuple[int, ...]) -> Fraction:
    """psi of the paper: the least distance of any two neighbours."""
    return min(b - a for a, b in pairwise(data))


def interval_separation(data: list[Fraction], ranks: tuple[int, ...]) -> Fraction:
    """Corrected: the least length of the optimal intervals."""
    return min(data[k] - data[k - 1] for k in ranks)


@check(
    "thm:pubpri/order-statistics",
    "thm:pubpri/loss-bound",
    "text:order-statistic-distance",
    rejects=[
        least_separation,
        lambda data, ranks: data[-1] - data[0],
        lambda data, ranks: max(data[k] - data[k - 1] for k in ranks),
        lambda data, ranks: min(data[ranks[0]] - data[ranks[0] - 1], data[-1] - data[0]),
    ],
)
def check_order_statistics(subject: Callable[..., Fraction] = interval_separation) -> str:
    """psi_z is no function of the quantiles' intervals, on which TV_q is defined; the least optimal interval is. It
    is at least psi_z, and bounds the loss as psi_z does: random data of three quantiles, and narrow intervals far away.
    """
    first, second = [F(0), F(1, 2), F(1), F(2)], [F(0), F(1, 2), F(1), F(101, 100)]
    rank = pq.rank(0.5, 4)  # the optimal interval is (1/2, 1] in both
    assert subject(first, (rank,)) == subject(second, (rank,)), "depends on more than the optimal interval"
    psi = [least_separation(data, (rank,)) for data in (first, second)]
    assert first[rank - 1 : rank + 1] == second[rank - 1 : rank + 1] and psi == [F(1, 2), F(1, 100)], "as the row says"
    rng = np.random.default_rng(61)
    for _ in range(200):
        x = sorted(F(int(v), 1000) for v in rng.choice(2001, 7, replace=False) - 1000)
        ranks = tuple(sorted(int(k) for k in rng.choice(np.arange(1, 7), 3, replace=False)))
        scale, place = F(int(rng.integers(1, 30)), 10), F(int(rng.integers(-1000, 1001)), 1000)
        width = subject(x, ranks)
        assert width >= least_separation(x, ranks)
        mine = [stable_float(float(place / scale), float(1 / scale), float(x[k - 1]), float(x[k])) for k in ranks]
        assert np.logaddexp.reduce(mine) <= 2 / scale + math.log(2 * 3 * scale / width), (x, ranks)
    tight = [F(999_994 + k, 10**6) for k in range(7)]  # priors at -1, all lengths alike, and one a half less
    tight[3] += F(1, 2 * 10**6)
    for ranks in ((3, 4), (4, 5), (1, 2)):
        mine = [stable_float(-1.0, 1.0, float(tight[k - 1]), float(tight[k])) for k in ranks]
        assert np.logaddexp.reduce(mine) <= 2 + math.log(4 / subject(tight, ranks)), ranks
    return "psi_z is no function of the quantiles' intervals: (0,1/2,1,2), (0,1/2,1,1.01) at q = 1/2; their lengths are"


@check("thm:pubpri/lost-square", rejects=[1, 0])
def check_second_integral(subject: int = 2) -> str:
    """Where psi_z < psi two losses are integrated; the printed line counts the term log(1/psi_z) once.

    The rest adds up as printed: where psi_z >= psi the densities differ by p/(1 - p) times the first, p in all.  n = 2
    uniform records on (0, w), median, a scale of 10^6 w: each loss is at least log(2 sigma/psi_z) and at most 2B/sigma
    more.  Exact integrals over the density 2 (w - y)/w^2 of psi_z.
    """
    reach, m, most, least, chance, missing = sympy.symbols("B m sigma psi p I", positive=True)  # reach is B/sigma_min
    wide = chance * (4 * reach + 2 * sympy.log(2 * m * most / least))
    narrow = chance * (4 * reach + 2 * sympy.log(2 * m * most)) + 2 * missing
    claim = 2 * chance * (4 * reach + sympy.log(4 * m**2 * most**2 / least)) + subject * missing
    assert sympy.simplify(sympy.expand_log(wide + narrow - claim, force=True)) == 0, "for any law and scales"
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


@check("thm:pubpri/lost-square", rejects=[(3, 1), (5, 1), (4, F(99, 100)), (4, F(101, 100)), (4, F(271, 100))])
def check_room(case: tuple[int, F | int] = (4, 1)) -> str:
    """The printed last term, (beta'/T)(3 + 4B/sigma_min + 4 log(sqrt(2 m sigma_max)/psi)), is what the two narrow terms
    add up to with the missing integral and two more of it: each at most kappa n^2 psi (1 + log(1/psi)) for psi <= 1.
    Beyond, kappa n^2 is the integral of a constant density up to 1 and none from there on.

    case: how many integrals of rho' log(1/psi_z) have room in it, and up to which psi.
    """
    subject, limit = case
    for end in (F(limit) * F(k, 200) for k in (1, 60, 120, 180, 199, 200, 202)):
        largest = min(ball(end), arb(1)) * (1 - min(ball(end), arb(1)).log())
        assert not largest > ball(end) * (1 - ball(end).log()) or end > limit, f"no room at psi = {float(end)}"
    assert largest > ball(end) * (1 - ball(end).log()), "room beyond"
    reach, m, scale, psi, rare = sympy.symbols(
        "B m sigma psi p", positive=True
    )  # reach is B/sigma_min, p kappa n^2 psi
    one = rare * (1 + sympy.log(1 / psi))
    needed = 2 * one + 2 * rare * (4 * reach + sympy.log(4 * m**2 * scale**2 / psi)) + subject * one
    printed_term = 2 * rare * (3 + 4 * reach + 4 * sympy.log(sympy.sqrt(2 * m * scale) / psi))  # beta'/T is 2 p
    assert sympy.simplify(sympy.expand_log(printed_term - needed, force=True)) == 0, "more room, or less"
    return "thm:pubpri has room for four integrals of rho' log(1/psi_z): one is printed, and two are needed"


def integral(scale: arb, low: arb, high: arb, width: arb) -> arb:
    """Of log(scale/y) over the density 2 (w - y)/w^2 of the distance of two uniform records on (0, w)."""

    def primitive(y: arb) -> arb:
        if y == 0:
            return arb(0)
        flat = width * y - y * y / 2
        return flat * (scale / y).log() + width * y - y * y / 4

    return 2 / width**2 * (primitive(high) - primitive(low))


@check("thm:pubpri/lost-square", rejects=[1, 0])
def check_narrow(subject: int = 2) -> str:
    """thm:pubpri/lost-square: both losses are at least log(2 sigma/psi_z), so log(1/psi_z) is needed twice."""
    short = 0
    for width, share in ((HALF, F(3, 10)), (F(1, 10**6), F(1, 20)), (F(1), F(1, 20))):
        w, cut, sigma = ball(width), ball(width * share), ball(width * 10**6)
        rare = 2 * ball(share) - ball(share) ** 2
        both = 2 * rare / (1 - rare) * integral(2 * sigma, cut, w, w) + 2 * integral(2 * sigma, arb(0), cut, w)
        first = 2 * rare * (ball(F(4, 10**6)) + (4 * sigma**2 / cut).log())
        once = integral(arb(1), arb(0), cut, w)
        assert both < first + subject * once, (width, share)
        short += bool(both > first + once)
    assert short == 3
    return "second integral of thm:pubpri: above the printed line for three laws of two uniform records (balls)"


@check(
    "thm:pubpri/probability",
    code=thm_pubpri,
    rejects=[
        lambda beta: -math.inf,
        lambda beta: -1e7,
        lambda beta: 1e7 * math.log10(beta),
        lambda beta: 1000 * math.log10(beta),
    ],
)
def check_failure_probability(subject: Callable[[float], float] = math.log10) -> str:
    """thm:pubpri does not hold with probability 1: all public records may lie in the lesser part of the data.

    subject: log10 of the probability with which the bound may fail, from beta'.
    """
    records, scale, left = 9, 0.01, F(9, 10)  # nine tenths of D lie in [-1, -0.9], one in [0.9, 1]; a median of nine
    many = range(pq.rank(0.5, records) + 1, records + 1)  # on the left, so that the optimal interval lies there
    share = float(sum(math.comb(records, k) * left**k * (1 - left) ** (records - k) for k in many))
    common = {"quantiles": 1, "data_bound": 1.0, "scale_min": scale, "scale_max": scale, "density_bound": 9.0}
    lines = []
    # printed steps move theta sigma by sigma / sqrt(T), the corrected ones by 1 / sqrt(T)
    for runs, versions, slowest in ((10**6, ("paper", "corrected"), scale), (30, ("corrected",), 1.0)):
        public = records * runs
        to_reach = 0.9 * math.sqrt(runs) / slowest  # steps with gradient -1, until theta sigma = 0.9
        settled = 0.9 - 1 / math.sqrt(runs)  # from there one step may lead below the records, and the next leads up
        location = settled * (1 - to_reach / runs)  # least average of the iterates
        excess = share * ((location + 0.9) / scale - 0.1 / scale - math.log(2)) - (1 - share) * 2 / scale
        log_chance = public * math.log10(1 - left)  # of all public records on the right: then the bound fails
        assert runs == 30 or (round(log_chance), math.floor(excess)) == (-9_000_000, 160), "as the row says"
        limits = []
        for beta, version in itertools.product((0.1, 0.5), versions):
            limit = bounds.thm_pubpri(public, records, total_variation=0.0, beta=beta, version=version, **common)
            assert limit < excess, (runs, version, limit, excess)
            assert log_chance <= subject(beta), f"it fails with probability 10^{log_chance:.0f}, whatever beta' is"
            limits.append(f"{limit:.1f}")
        first = limits[: len(versions)]
        assert runs == 30 or first == ["2.4", "0.7"], "as the row says"
        lines.append(f"excess {excess:.0f} above {' and '.join(first)} with probability 10^{log_chance:.0f}")
    return f"{'; '.join(lines)}: not 0"


def _unit_free_loss(reach: float, m: int, wide: float) -> float:
    """M: the largest loss of m quantiles on intervals that are as narrow as beta' lets a block be."""
    return reach + math.log(2 * m * wide)


@check(
    "thm:pubpri",
    "thm:pubpri/probability",
    "thm:pubpri/online-error",
    "thm:pubpri/units",
    code=thm_pubpri,
    rejects=[
        scaled(thm_pubpri, 0.99),
        scaled(thm_pubpri, 1.01),
        lambda *a, **k: thm_pubpri(*a, **{**k, "beta": 2 * k["beta"]}),
        lambda *a, **k: thm_pubpri(*a, **{**k, "total_variation": k["total_variation"] / 2}),
        lambda *a, **k: thm_pubpri(*a, **{**k, "density_bound": k["density_bound"] / 2}),
        lambda *a, **k: thm_pubpri(*a, **{**k, "density_bound": 3.0}),
        lambda size, n, **k: thm_pubpri(-(-size // n) * n, n, **k),
        printed(thm_pubpri),
    ],
)
def check_terms(subject: Callable[..., float] = thm_pubpri) -> str:
    """The corrected bound from its parts: psi = beta'/(2 kappa n^2 T), so that no block is narrower but with beta'/2;
    M at that psi; 2 M TV; descent with D G of both parameters; two events of beta'/4; narrow blocks."""
    boxes = ((0.5, 0.2, 4.0, 3.0), (3.0, 0.7, 0.7, 0.2), (40.0, 0.1, 9.0, 1e4))  # B, scales and kappa
    sizes = ((1, 2, 3), (1, 2, 9), (3, 10, 1000), (100, 100, 10**6), (9, 20, 10**11))
    places = itertools.product(sizes, boxes, (0.1, 0.95, 1e-9), (0.0, 0.25, 1.0))
    for (m, n, size), (b, low, high, kappa), beta, tv in places:
        steps = size // n
        psi = beta / (2 * kappa * n**2 * steps)
        largest = _unit_free_loss(2 * b / low, m, high / psi)
        descent = (math.sqrt(m) * b / low + math.sqrt(m) * (1 / low - 1 / high) / 2 * (b + high)) / math.sqrt(steps)
        chance = largest * math.sqrt(2 * math.log(4 / beta) / steps)  # thm:o2b on beta'/2, corrected
        rare = beta / (2 * steps)  # of a block narrower than psi: E[2 M + 2 log(psi/y)], and M of the law given not so
        narrow = rare * (2 * largest + 3)
        wanted = 2 * largest * tv + descent + chance + narrow
        box: dict[str, Any] = {"quantiles": m, "data_bound": b, "scale_min": low, "scale_max": high, "beta": beta}
        found = subject(size, n, density_bound=kappa, total_variation=tv, **box)
        assert math.isclose(found, wanted, rel_tol=1e-9), (m, found, wanted)
    return "thm:pubpri: 2 M TV + descent + M sqrt(2 log(4/beta')/T) + (beta'/T)(M + 3/2), term by term"
