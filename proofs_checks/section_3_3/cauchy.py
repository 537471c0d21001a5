"""cor:multi-cauchy: Cauchy priors down the tree."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from fractions import Fraction

from flint import arb

from pq.bounds import binary_depth, cor_multi_cauchy, lem_empirical_quantiles
from proofs_checks.engine.registry import check
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.chains import cauchy_mass
from proofs_checks.tools.exact import Points, Position, Restricted, ball, gap

HALF = Fraction(1, 2)


def paper_multi_cauchy(*args: float) -> float:
    """cor:multi-cauchy as printed."""
    return cor_multi_cauchy(*args, version="paper")  # type: ignore[arg-type, misc]


@check(
    "cor:multi-cauchy",
    code=cor_multi_cauchy,
    rejects=[cor_multi_cauchy, lambda *a: paper_multi_cauchy(*a) + 1, lambda *a: 1.2 * paper_multi_cauchy(*a)],
)
def check_multi_cauchy_printed(subject: Callable[..., float] = paper_multi_cauchy) -> str:
    """Counterexample: x = (-1, 0, 1), quantiles 1/4, 1/2, 2/3, standard Cauchy priors, epsilon = 40, beta = 1/4."""
    z = (-arb(10)).exp()  # each level runs at 20
    data, (half, high), low = Points((Fraction(-1), Fraction(0), Fraction(1))), (HALF, Fraction(2, 3)), -HALF
    assert math.floor(half * data.size) == 1 and gap(data, half, low) == 0, "the median falls into (-1, 0]"
    # and there below -1/2; then 2/3 aims at the lowest cell of its node, and to come out there is a gap of one
    assert math.floor((high - half) / (1 - half) * Restricted(data, low, math.inf).size) == 0
    assert gap(data, high, Fraction(-1, 4)) == 1
    median = cauchy_mass(Fraction(-1), Fraction(0)) / (
        cauchy_mass(Fraction(-1), Fraction(0)) + ball(Fraction(3, 4)) * z
    )
    below = cauchy_mass(Fraction(-1), low) / cauchy_mass(Fraction(-1), Fraction(0))
    near = cauchy_mass(low, Fraction(0))
    failure = median * below * near / (near + z)
    bound = subject(1.01, 2.0, 1.0, 40.0, 3, 0.25)
    assert bound < 1 - 1e-9, "the bound survives"
    assert failure > ball(Fraction(2, 5)) and 0.86 < bound < 0.87, "as the row says"
    return (
        f"cor:multi-cauchy as printed, m = 3, n = 3: gap < {bound:.3f} claimed w.p. 3/4, Pr{{gap >= 1}} > "
        f"{float(failure) - 0.001:.3f}"
    )


def _cauchy(low: Position, high: Position) -> arb:
    """Standard Cauchy mass of an interval, from -infinity too."""
    if low == -math.inf:
        return arb(1) if high == math.inf else cauchy_mass(-Fraction(high), math.inf)
    return cauchy_mass(Fraction(low), high)


@check("cor:multi-cauchy", rejects=[lambda z: arb(1), lambda z: 2 * z])
def check_multi_cauchy_cells(subject: Callable[[arb], arb] = lambda z: z) -> str:
    """Psi^ of a node is at least exp(-epsilon_i / 2) times the claimed mass, leftmost cells and lone records too."""
    draw = random.Random(6)
    shrunk = False
    for _ in range(400):
        n = draw.randrange(2, 7)
        x = [Fraction(v, 4) for v in sorted(draw.sample(range(-40, 41), n))]
        least = min(b - a for a, b in itertools.pairwise(x))
        radius = max(abs(v) for v in x) + Fraction(1, 100)
        claimed = 2 * 2 * ball(least) / arb.pi() / (4 + 4 * ball(radius) ** 2)
        first, last = sorted((draw.randrange(n), draw.randrange(n)))
        tiny = Fraction(1, draw.choice((5, 10**6)))  # edges as close to a record as may be, or none
        low, high = draw.choice((-math.inf, x[first] - tiny)), draw.choice((math.inf, x[last] + tiny))
        inside = [v for v in x if low < v < high]
        z, total = ball(Fraction(1, draw.choice((2, 100)))), _cauchy(low, high)
        masses = [_cauchy(a, b) / total for a, b in itertools.pairwise([low, *inside, high])]
        for target in range(len(inside)):
            psi = sum((mass * z ** abs(k - target) for k, mass in enumerate(masses)), arb(0))
            assert psi > subject(z) * claimed, (x, low, target)
            shrunk = shrunk or bool(masses[target] < claimed)
    assert shrunk
    return (
        "Cauchy nodes: Psi^ >= exp(-epsilon_i / 2) claimed mass always; the mass alone fails in a node's "
        "leftmost cell (balls)"
    )


@check(
    "cor:multiple",
    "cor:cauchy-robust",
    "text:cauchy-mass",
    rejects=[(2, Fraction(1)), (3, Fraction(101, 100)), (3, Fraction(2))],
)
def check_cells_of_the_edge_tree(subject: tuple[int, Fraction] = (3, Fraction(1))) -> str:
    """Under edge adaptation every cell of the data has the claimed mass, the tails too, from three records on.

    subject: the least n, and a factor on the claim. Tails: psi <= R there, and u/(1 + u^2) <= atan u for u = sigma/R.
    """
    least, factor = subject
    draw, closest = random.Random(7), arb(1000)
    for n in range(least, 8):
        evenly = [Fraction(200 * k, n - 1) - 100 for k in range(n)]
        close = [Fraction(100) - Fraction(k, 10**4) for k in range(n)][::-1]
        drawn = [[Fraction(v, 4) for v in sorted(draw.sample(range(-40, 41), n))] for _ in range(50)]
        for x in (evenly, close, *drawn):
            gap, radius = min(b - a for a, b in itertools.pairwise(x)), max(abs(v) for v in x) + Fraction(1, 10**6)
            claimed = 4 * ball(gap) / arb.pi() / (4 + 4 * ball(radius) ** 2)
            masses = [cauchy_mass(a, b) for a, b in itertools.pairwise(x)]
            for mass in (*masses, cauchy_mass(x[-1], math.inf), cauchy_mass(-x[0], math.inf)):
                assert mass > ball(factor) * claimed, x
                closest = min(closest, mass / claimed, key=float)
    assert closest < arb("1.001"), "more than is claimed"
    return "edge adaptation: each cell has the claimed Cauchy mass, tails too, from three records on (balls)"


@check(
    "cor:multi-cauchy",
    code=cor_multi_cauchy,
    rejects=[
        paper_multi_cauchy,
        scaled(cor_multi_cauchy, 0.99),
        scaled(cor_multi_cauchy, 1.01),
        lambda *a: cor_multi_cauchy(*a) - binary_depth(a[4]),
        lambda *a: cor_multi_cauchy(*a) + binary_depth(a[4]),
        lambda *a: cor_multi_cauchy(*a[:-1], 0.25),
        lambda radius, *a: cor_multi_cauchy(1.01, *a),
    ],
)
def check_multi_cauchy(subject: Callable[..., float] = cor_multi_cauchy) -> str:
    """The corrected bound is lem:empirical-quantiles for nodes with exp(-epsilon_i / 2) times the claimed mass: a rank
    a level for leftmost cells, 2(d - 1) for rounding; so at least one rank wherever the instance above errs by one."""
    places = [("1.01", "2", "1/3", 0.25), ("40", "0.5", "1e-6", 1e-9), ("3", "70", "0.9", 0.9)]  # R, width, psi, beta
    for epsilon, m, (*lengths, beta) in itertools.product((1.0, 40.0, 4000.0), (1, 2, 3, 7, 8, 100), places):
        depth = next(d for d in range(1, 60) if 2**d > m)
        radius, width, psi = map(Fraction, lengths)
        mass = float((2 * ball(width * psi / (width**2 + 4 * radius**2)) / arb.pi()).log())
        wanted = lem_empirical_quantiles(mass - epsilon / depth / 2, epsilon, m, beta)  # by check_multi_cauchy_cells
        found = subject(float(radius), float(width), float(psi), epsilon, m, beta)
        assert math.isclose(found, wanted, rel_tol=1e-9), (epsilon, m)
    assert subject(1.01, 2.0, 1.0, 40.0, 3, 0.25) >= 1
    # One level: the records -1 + k psi, k < 2000, and their median; no cell between two has more than psi/pi, so that
    # the tails, a thousand ranks off, have more than half of the weight 2^-1000 + 3 psi/pi at least.
    far, psi = 1000, Fraction(1, 2**1000)
    tails = ball(psi) * (1 - 2 * far * ball(psi) / arb.pi())  # exp(-epsilon/2) = 1/2
    assert tails / (tails + 3 * ball(psi) / arb.pi()) > ball(HALF)
    assert far <= subject(1.01, 2.0, float(psi), 2 * math.log(2), 1, 0.5) <= 1.006 * far, "one level needs nearly all"
    return "cor:multi-cauchy, corrected: lem:empirical-quantiles at the Psi^ that the balls prove, attained at m = 1"
