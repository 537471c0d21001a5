"""How many mechanisms a record meets, and what that is worth."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import z3

from pq.bounds import binary_depth, kary_depth, lem_empirical_quantiles, naive_multiple
from proofs_checks.engine.registry import check
from proofs_checks.tools.exact import (
    Algorithm,
    Data,
    Grid,
    Law,
    Points,
    Position,
    Prior,
    Restricted,
    build,
    height,
    mechanism,
)
from proofs_checks.tools.solver import prove
from proofs_checks.tools.trees import path_spends, printed_levels, walk

F = Fraction
Span = tuple[Fraction, Fraction]  # the levels on either side of a node; 0 and 1 where there are none
WHOLE: Span = F(0), F(1)
HALF = Fraction(1, 2)
QUARTERS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))


@check(
    "text:mechanisms-per-record",
    "alg:quantiles",
    code=kary_depth,
    rejects=[
        lambda m, arity: kary_depth(m - 1, arity) if m > 1 else 1,
        lambda m, arity: m.bit_length(),
        lambda m, arity: kary_depth(m, arity) + 1,
    ],
)
def check_depth(subject: Callable[[int, int], int] = kary_depth) -> str:
    """Algorithm 2 builds ceil(log_K(m + 1)) levels: its largest child has floor(m / K) indices."""
    for arity in range(2, 9):
        for m in range(1, 150):
            tree = build(range(m), arity)
            assert height(tree) == subject(m, arity), (m, arity)
            if m >= arity:
                assert tree is not None
                assert max(sum(len(n.indices) for n in walk(child)) for child in tree.children) == m // arity
        for levels in range(1, 12):  # the digits of m: arity**(levels - 1) <= m < arity**levels
            assert kary_depth(arity ** (levels - 1), arity) == kary_depth(arity**levels - 1, arity) == levels
    return (
        "Algorithm 2 has ceil(log_K(m + 1)) levels, K = 2..8, m < 150: the largest child of m indices holds "
        "floor(m / K)"
    )


@check(
    "text:mechanisms-per-record",
    rejects=[lambda whole, rest: whole - 1, lambda whole, rest: whole + 1, lambda whole, rest: whole + rest],
)
def check_largest_child(subject: Callable[[Any, Any], Any] = lambda whole, rest: whole) -> str:
    """Its index arithmetic: the last child has floor(m / K) indices and no child more, for all K and all m (z3).

    subject: the size, of the whole part of m / K and of 1 if there is a rest and 0 if not.
    """
    m, whole, a, b, last = z3.Ints("m whole a b last")
    share, upto = z3.Reals("share upto")  # m / K and j m / K: child j has ceil(upto) - ceil(upto - share) - 1 indices
    floor = z3.And(whole <= share, share < whole + 1)
    size = subject(whole, z3.If(share > whole, 1, 0))
    low = z3.And(a - 1 < upto, upto <= a)
    high = z3.And(b - 1 < upto - share, upto - share <= b)
    prove(z3.Implies(z3.And(floor, low, high), a - b - 1 <= size), "a child")
    cut = z3.And(last - 1 < m - share, m - share <= last)  # ceil((K - 1) m / K)
    prove(z3.Implies(z3.And(floor, cut), m - last == size), "the last child")
    for arity, n in itertools.product(range(2, 41), range(1, 300)):
        assert n < arity or n - -(-(arity - 1) * n // arity) == subject(n // arity, int(n % arity > 0)), (arity, n)
    return (
        "the last child holds floor(m / K) indices and none holds more, so the depth is the number of base-K "
        "digits of m"
    )


@check(
    "text:mechanisms-per-record",
    "lem:empirical-quantiles",
    "cor:multi-cauchy",
    code=binary_depth,
    rejects=[lambda m: m.bit_length(), lambda m: m.bit_length() + 1],
)
def check_printed_budget(subject: Callable[[int], int] = printed_levels) -> str:
    """ceil(log2 m): no budget at all at m = 1, and (k + 1) / k times epsilon at m = 2**k; right otherwise."""
    assert subject(1) == 0, "m = 1 has a budget"
    for k in range(1, 11):
        assert max(path_spends(2**k, 2, lambda depth, count, k=k: Fraction(count, subject(2**k)))) == Fraction(k + 1, k)
    assert [max(path_spends(m, 2, lambda depth, count: Fraction(count))) for m in (1, 2)] == [1, 2], "as the row says"
    others = [m for m in range(3, 200) if m & (m - 1)]
    assert all(subject(m) == binary_depth(m) for m in others)
    return (
        "epsilon / ceil(log2 m) divides by zero at m = 1 and spends (k + 1) / k epsilon at m = 2**k: twice the "
        "claim at m = 2"
    )


def induction(k: z3.ArithRef) -> z3.ArithRef:
    """Units of (2/epsilon) log(m/(beta Psi)) that depth k has."""
    return k


@check("step:empirical-induction", rejects=[lambda k: (k + 1) / 2, lambda k: 2 * k])
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


@check("text:tree-beats-naive", code=(lem_empirical_quantiles, naive_multiple), rejects=[36, 38])
def check_tree_beats_naive(subject: int = 37) -> str:
    """d^2 < m for the tree's depth d, printed or right, from m = 37 on and not at 36: a tree's bound against m's."""
    for depth in (lambda m: (m - 1).bit_length(), lambda m: m.bit_length()):  # ceil(log2 m), ceil(log2(m + 1))
        worse = [m for m in range(2, 2**12) if depth(m) ** 2 >= m]
        assert max(worse) + 1 == subject, max(worse)
        assert {3, 4, 20} <= set(worse), worse
        assert (depth(20) ** 2, depth(36) ** 2) == (25, 36), "as the row says"
    for m in range(1, 300):
        tree, naive = lem_empirical_quantiles(-1.0, 1.0, m, 0.5, rounded=False), naive_multiple(-1.0, 1.0, m, 0.5)
        assert (tree < naive * (1 - 1e-12)) == (m.bit_length() ** 2 < m), m
    d = z3.Int("d")  # beyond: m >= 2^(d - 1), which is more than d^2 at d = 7, and doubling outgrows the next square
    assert 2**6 > 7**2
    prove(z3.Implies(d >= 7, 2 * d * d > (d + 1) * (d + 1)), "from d to d + 1")
    return "d^2 < m, so a tree's bound is below that of m mechanisms at epsilon/m, from m = 37 on (all m)"


def flat(low: Fraction, high: Fraction, places: tuple[Fraction, ...]) -> Prior:
    """The uniform law on those of the places that lie in [low, high]."""
    inside = [o for o in places if low <= o <= high]
    return {o: F(1, len(inside)) for o in inside}


def uniform_at_every_node(
    data: Data, places: tuple[Fraction, ...], z: Fraction, levels: tuple[Fraction, ...], span: Span = WHOLE
) -> Law:
    """ApproximateQuantiles: the middle quantile, of two the lower one, then either side, each uniform on its own
    interval and at its own level in it; `places` are those between the edges, both included."""
    if not levels:
        return {(): F(1)}
    middle = (len(levels) - 1) // 2
    own = (levels[middle] - span[0]) / (span[1] - span[0])
    law: dict[tuple[Position, ...], Fraction] = defaultdict(Fraction)
    for o, p in mechanism(Restricted(data, *_edges(places, span)), own, flat(places[0], places[-1], places), z).items():
        assert isinstance(o, Fraction)
        lower, upper = tuple(x for x in places if x <= o), tuple(x for x in places if x >= o)
        left = uniform_at_every_node(data, lower, z, levels[:middle], (span[0], levels[middle]))
        right = uniform_at_every_node(data, upper, z, levels[middle + 1 :], (levels[middle], span[1]))
        for (first, one), (last, two) in itertools.product(left.items(), right.items()):
            law[*first, o, *last] += p * one * two
    return dict(law)


def _edges(places: tuple[Fraction, ...], span: Span) -> tuple[Position, Position]:
    """The outputs on either side of a node, and infinity where there are none."""
    return places[0] if span[0] else -math.inf, places[-1] if span[1] < 1 else math.inf


def _laws(adaptation: str, left_out: int = 0) -> Callable[..., Law]:
    """Laws of a tree whose uniform prior leaves out some places at its lower end."""

    def law(data: Data, places: tuple[Fraction, ...], z: Fraction, levels: tuple[Fraction, ...] = QUARTERS) -> Law:
        prior, m = flat(places[left_out], places[-1], places), len(levels)
        return Algorithm(levels, (prior,) * m, (z,) * m, adaptation=adaptation).law(data)

    return law


_CONDITIONAL = _laws("conditional")


@check("text:uniform-is-aq", rejects=[_laws("edge"), _laws("conditional", left_out=1)])
def check_uniform_is_aq(subject: Callable[..., Law] = _CONDITIONAL) -> str:
    """The uniform prior restricted conditionally gives the law of a tree whose nodes are uniform on their intervals:
    three quartiles, and one, two, four and seven other levels."""
    places = tuple(F(2 * k + 1, 4) for k in range(12))  # two equal shares in each of six cells
    cases: list[Data] = [Grid(5), Grid(3), Points((F(1), F(2), F(2), F(5)))]
    for data, z in itertools.product(cases, (HALF, F(1, 30))):
        assert subject(data, places, z) == uniform_at_every_node(data, places, z, QUARTERS), (data, z)
    for m, data in (*itertools.product((1, 2, 4), cases), (7, cases[1])):
        levels = tuple(F(i * i + 1, m * m + 9) for i in range(1, m + 1))
        wanted = uniform_at_every_node(data, places[::3], HALF, levels)
        assert subject(data, places[::3], HALF, levels) == wanted, (m, data)
    return "uniform priors, conditional adaptation: the law of a tree that is uniform on every interval (16 exact laws)"
