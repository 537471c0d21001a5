"""Remarks in passing and displays inside proofs that carry a claim of their own (Section 3.3, Appendices A to D)."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import mpmath
import sympy
import z3
from flint import arb

from pq.bounds import lem_error
from proofs_checks.exact import Algorithm, Data, Grid, Law, Points, Position, Prior, Restricted, max_loss, mechanism
from proofs_checks.tools import prove

F = Fraction
HALF = F(1, 2)
QUARTERS = (F(1, 4), HALF, F(3, 4))


# ---- trees -----------------------------------------------------------------------------------------------------------


def flat(low: Fraction, high: Fraction, places: tuple[Fraction, ...]) -> Prior:
    """The uniform law on those of the places that lie in [low, high]."""
    inside = [o for o in places if low <= o <= high]
    return {o: F(1, len(inside)) for o in inside}


def uniform_at_every_node(data: Data, places: tuple[Fraction, ...], z: Fraction) -> Law:
    """ApproximateQuantiles for the three quartiles: the median, then either side, each uniform on its own interval."""
    low, high = places[0], places[-1]
    whole = Restricted(data, -math.inf, math.inf)
    law: dict[tuple[Position, ...], Fraction] = defaultdict(Fraction)
    for middle, p in mechanism(whole, HALF, flat(low, high, places), z).items():
        assert isinstance(middle, Fraction)
        left = mechanism(Restricted(data, -math.inf, middle), HALF, flat(low, middle, places), z)
        right = mechanism(Restricted(data, middle, math.inf), HALF, flat(middle, high, places), z)
        for (first, one), (last, two) in itertools.product(left.items(), right.items()):
            law[first, middle, last] += p * one * two
    return dict(law)


def check_uniform_is_aq(subject: str = "conditional") -> str:
    """The uniform prior restricted conditionally gives the law of a tree whose nodes are uniform on their intervals."""
    places = tuple(F(2 * k + 1, 4) for k in range(12))  # two equal shares in each of six cells
    cases: list[Data] = [Grid(5), Grid(3), Points((F(1), F(2), F(2), F(5)))]
    for data, z in itertools.product(cases, (HALF, F(1, 30))):
        algorithm = Algorithm(QUARTERS, (flat(places[0], places[-1], places),) * 3, (z,) * 3, adaptation=subject)
        assert algorithm.law(data) == uniform_at_every_node(data, places, z), (data, z)
    return "uniform priors, conditional adaptation: the law of a tree that is uniform on every interval (6 exact laws)"


def check_tree_beats_naive(subject: int = 37) -> str:
    """d^2 < m for the tree's depth d, printed or right, from m = 37 on and not at 36: a tree's bound against m's."""
    for depth in (lambda m: (m - 1).bit_length(), lambda m: m.bit_length()):  # ceil(log2 m), ceil(log2(m + 1))
        worse = [m for m in range(2, 2**12) if depth(m) ** 2 >= m]
        assert max(worse) + 1 == subject, max(worse)
        assert {3, 4, 20} <= set(worse), worse
    d = z3.Int("d")  # beyond: m >= 2^(d - 1), which is more than d^2 at d = 7, and doubling outgrows the next square
    assert 2**6 > 7**2
    prove(z3.Implies(d >= 7, 2 * d * d > (d + 1) * (d + 1)), "from d to d + 1")
    return "d^2 < m, so a tree's bound is below that of m mechanisms at epsilon/m, from m = 37 on (all m)"


def check_out_of_order(subject: int = 3) -> str:
    """Two estimates of one node can come out in the wrong order; a binary tree's never do."""
    priors: tuple[Prior, ...] = tuple({k + F(i, 4): F(1, 5) for k in range(5)} for i in (1, 2, 3))
    crossed = []
    for arity, count in ((subject, 2), (2, 3)):
        algorithm = Algorithm(QUARTERS[:count], priors[:count], (HALF,) * count, arity=arity, ordered=False)
        law = algorithm.law(Grid(4))
        crossed.append(sum((p for o, p in law.items() if list(o) != sorted(o)), F(0)))
    assert crossed[0] > 0, "always in order"
    assert crossed[1] == 0
    return f"K = 3, four records: the two estimates of the root are out of order w.p. {float(crossed[0]):.3f} (exact)"


def induction(k: z3.ArithRef) -> z3.ArithRef:
    """Units of (2/epsilon) log(m/(beta Psi)) that depth k has."""
    return k


def check_depth_induction(subject: Callable[[z3.ArithRef], z3.ArithRef] = induction) -> str:
    """Gap <= L + (1 - q~) a + q~ b with a, b of at most k L gives (k + 1) L, from L at the root (z3)."""
    share, a, b, unit, k = z3.Reals("share a b unit k")
    near = z3.And(share > 0, share < 1, unit > 0, k >= 1, a >= 0, b >= 0)
    near = z3.And(near, a <= subject(k) * unit, b <= subject(k) * unit)
    convex = (1 - share) * a + share * b
    prove(z3.Implies(z3.And(near, a <= b), convex <= b), "a convex combination")
    prove(z3.Implies(z3.And(near, b <= a), convex <= a), "a convex combination")
    top = z3.Real("top")
    step = z3.And(unit > 0, k >= 1, top <= subject(k) * unit)
    prove(z3.Implies(step, unit + top <= subject(k + 1) * unit), "from depth k to k + 1")
    prove(z3.Implies(unit > 0, unit == subject(z3.RealVal(1)) * unit), "the root")
    return "lem:empirical-quantiles: offsets are convex combinations, so depth k has k units by induction (z3)"


def right_signs(a: int, b: int, ranks: tuple[int, int, int], relative: Fraction) -> int:
    """The target of a node as a rank of the data, less the rank that is meant."""
    return a + math.floor(relative * (b - a)) - ranks[1]


def printed_signs(a: int, b: int, ranks: tuple[int, int, int], relative: Fraction) -> int:
    """The same as printed."""
    return a - math.floor(relative * (b + a)) - math.floor(relative * (ranks[2] - ranks[0])) - ranks[0]


def check_second_display(subject: Callable[[int, int, tuple[int, int, int], Fraction], int] = right_signs) -> str:
    """|A + floor(q~ (B - A)) - floor(q n)| <= gamma^ + c in the second display of lem:error; its printed signs fail."""
    quantiles = sorted({F(i, d) for d in (2, 4, 8) for i in range(1, d)})
    for n, (lo, q, hi) in itertools.product((3, 4, 8, 11), itertools.combinations(quantiles, 3)):
        relative = (q - lo) / (hi - lo)
        ranks = (math.floor(lo * n), math.floor(q * n), math.floor(hi * n))
        for a, b in itertools.combinations_with_replacement(range(n + 1), 2):
            offset = (1 - relative) * abs(a - ranks[0]) + relative * abs(b - ranks[2])
            assert abs(subject(a, b, ranks, relative)) <= offset + lem_error(relative), (n, lo, q, hi, a, b)
    return "second display of lem:error: right with A + floor(q~ (B - A)) - floor(q n), and c of lem:error (exhaustive)"


# ---- applications ----------------------------------------------------------------------------------------------------


def check_small_shares(subject: Callable[[int], int] = lambda days: 1) -> str:
    """A record in T data sets loses more than epsilon if each has 2 epsilon/T or all of it, not at epsilon/T.

    In units of epsilon/T, s = exp(-epsilon/(2T)); the law of one release moves by almost s^-2 with a skewed prior.
    """
    s, tiny = F(1, 2), F(1, 10**9)
    for days in (2, 3, 7):
        for share, private in ((subject(days), True), (2, False), (days, False)):
            z = s**share
            laws: list[Law] = []
            for data in (Grid(1), Grid(2)):
                prior: Mapping[Fraction, Fraction] = {HALF: 1 - tiny, F(3, 2): tiny}
                raw = mechanism(Restricted(data, -math.inf, math.inf), HALF, prior, z)
                laws.append({(o,): p for o, p in raw.items()})
            loss = max(max_loss(laws[0], laws[1]), max_loss(laws[1], laws[0])) ** days
            assert (loss <= s ** (-2 * days)) == private, (days, share)
    return "T releases at epsilon/T compose to epsilon, at 2 epsilon/T they do not: small budgets are left (exact)"


# ---- learning --------------------------------------------------------------------------------------------------------


def check_convexity_gap(subject: Callable[..., Any] = lambda lam, u, v: lam * u + (1 - lam) * v) -> str:
    """U(mixture) - (lam U + (1 - lam) U') is the logarithm of Psi^lam Psi'^(1 - lam) over Psi of the mixture."""
    lam, first, second, mixed = sympy.symbols("lam Psi1 Psi2 Psi", positive=True)
    left = -sympy.log(mixed) - subject(lam, -sympy.log(first), -sympy.log(second))
    right = sympy.log(first**lam * second ** (1 - lam) / mixed)
    place = {lam: sympy.Rational(1, 2), first: sympy.Rational(1, 9), second: sympy.Rational(1, 4), mixed: HALF}
    assert abs(sympy.N((left - right).subs(place), 30)) < 1e-25
    assert sympy.simplify(sympy.expand_log(left - right, force=True)) == 0
    return "thm:impossibility: the convexity gap is log(Psi^lam Psi'^(1 - lam)/Psi_mixture) for lam U + (1 - lam) U'"


def check_width_of_product(subject: Callable[[int, int], Any] = lambda m, d: 2 * mpmath.sqrt(mpmath.log(m * d))) -> str:
    """Mean of the largest of md |normal| values: at most 2 sqrt(log(md)), and above 2 sqrt(log d)."""
    cut, count = arb("2.3"), 100  # the mean is at least cut Pr{largest >= cut}
    assert cut * (1 - (cut / arb(2).sqrt()).erf() ** count) < float(subject(50, 2)), "exceeded (interval arithmetic)"
    with mpmath.workdps(30):
        for m, d in ((1, 2), (9, 4), (50, 2)):

            def above(t: Any, count: int = m * d) -> Any:
                return 1 - mpmath.erf(t / mpmath.sqrt(2)) ** count

            width = mpmath.quad(above, [0, 1, 2, 3, 4, 6, 12])
            assert width <= subject(m, d), (m, d, float(width))
    return "Gaussian width over m simplices: 2 sqrt(log(md)) holds, 2 sqrt(log d) does not (m = 50, d = 2: 2.75 > 1.67)"


def check_euclidean_case(subject: tuple[int | Fraction, int | Fraction] = (1, 2)) -> str:
    """The Euclidean norm is its own dual and 1-Lipschitz; two gradients of norm at most L differ by 2 L at most (z3).

    Any two vectors lie in a plane whose first axis is along one of them.
    """
    constant, factor = (z3.RealVal(str(v)) for v in subject)
    a, b, c, r, limit = z3.Reals("a b c r L")
    plane = z3.And(a >= 0, r >= 0, r * r == b * b + c * c, b <= r, b >= -r)
    distance = (a - b) * (a - b) + c * c
    prove(z3.Implies(plane, (a - r) * (a - r) <= constant * constant * distance), "Lipschitz constant of the norm")
    short = z3.And(plane, limit > 0, a <= limit, r <= limit)
    prove(z3.Implies(short, distance <= factor * factor * limit * limit), "difference of two gradients")
    return "Euclidean DP-FTRL: C = 1 and Delta_2 <= 2L, both least (z3, in the plane of two vectors)"
