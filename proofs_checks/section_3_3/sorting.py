"""lem:shuffle: sorted outputs, ties, and what sorting costs a single index."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import z3

from pq import gap as gap_with_ties
from proofs_checks.engine.registry import check
from proofs_checks.tools.exact import Algorithm, Grid, Points, Prior, adapt, gap, probability, psi
from proofs_checks.tools.solver import absolute, maximum, prove

F = Fraction
HALF = Fraction(1, 2)
QUARTERS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))

Swap = Callable[[z3.ArithRef, z3.ArithRef, z3.ArithRef, z3.ArithRef], z3.BoolRef]


def swap_statement(t0: z3.ArithRef, t1: z3.ArithRef, c0: z3.ArithRef, c1: z3.ArithRef) -> z3.BoolRef:
    """lem:shuffle for targets t0 <= t1 and counts c0 >= c1 below two outputs that are out of order."""
    now = maximum(absolute(c0 - t0), absolute(c1 - t1))
    swapped = maximum(absolute(c1 - t0), absolute(c0 - t1))
    return z3.Implies(z3.And(t0 <= t1, c0 >= c1), now >= swapped)


def _swap(relation: Callable[[Any, Any], Any], ordered: bool = True) -> Callable[..., z3.BoolRef]:
    def statement(t0: Any, t1: Any, c0: Any, c1: Any) -> z3.BoolRef:
        now = maximum(absolute(c0 - t0), absolute(c1 - t1))
        swapped = maximum(absolute(c1 - t0), absolute(c0 - t1))
        return z3.Implies(z3.And(t0 <= t1, c0 >= c1 if ordered else z3.BoolVal(True)), relation(now, swapped))

    return statement


@check(
    "text:sorting",
    "lem:shuffle",
    code=swap_statement,
    rejects=[_swap(lambda a, b: a > b), _swap(lambda a, b: a <= b), _swap(lambda a, b: a >= b, False)],
)
def check_shuffle(subject: Swap = swap_statement) -> str:
    """lem:shuffle for all integers, and for all real targets and counts."""
    prove(subject(*z3.Ints("t0 t1 c0 c1")), "lem:shuffle over the integers")
    prove(subject(*z3.Reals("t0 t1 c0 c1")), "lem:shuffle over the reals")
    return (
        "lem:shuffle: swapping two outputs that are out of order never increases the larger gap (all integers, "
        "all reals)"
    )


@check(
    "text:sorting",
    rejects=[
        lambda counts: sorted(counts, reverse=True),
        lambda counts: [*sorted(counts[:-1]), counts[-1]][::-1],
        lambda counts: [counts[-1], *counts[:-1]],
        lambda counts: [*counts[1:-1], counts[0], counts[-1]],
    ],
)
def check_sorting_of_a_node(subject: Callable[[Sequence[int]], Sequence[int]] = sorted) -> str:
    """Sorting a node's three or four estimates, all counts and ascending targets of four records: the largest gap does
    not grow, while a single one may."""
    cases, single = 0, 0
    for many, n in ((2, 6), (3, 4), (4, 3)):
        for targets in itertools.combinations_with_replacement(range(n + 1), many):
            for counts in itertools.product(range(n + 1), repeat=many):
                before, after = (
                    [abs(c - t) for c, t in zip(order, targets, strict=True)] for order in (counts, subject(counts))
                )
                assert max(after) <= max(before), (targets, counts)
                single += any(two > one for one, two in zip(before, after, strict=True))
                cases += 1
    assert single > 0
    return f"sorting up to four estimates never increases the largest gap ({cases} cases), a single one {single} times"


def apart(low0: z3.ArithRef, high0: z3.ArithRef, low1: z3.ArithRef, high1: z3.ArithRef) -> z3.BoolRef:
    """The rank ranges of two different values o_0 > o_1."""
    return low0 >= high1


def _by_lower_ends(low0: z3.ArithRef, high0: z3.ArithRef, low1: z3.ArithRef, high1: z3.ArithRef) -> z3.BoolRef:
    """As if ranges that overlap were those of two values."""
    return low0 >= low1


@check(
    "text:sorting",
    "lem:shuffle",
    "ours:ties",
    code=(apart, gap_with_ties),
    rejects=[
        lambda low0, high0, low1, high1: high0 >= low1,
        _by_lower_ends,
        lambda low0, high0, low1, high1: low0 > high1,  # no record between the outputs
        lambda low0, high0, low1, high1: z3.And(low0 >= high1, high0 > low0),  # the higher one tied
        lambda low0, high0, low1, high1: z3.And(low0 >= high1, high1 > low1),
    ],
)
def check_shuffle_ties(subject: Swap = apart) -> str:
    """The same where a tied value covers a range of ranks (ours): what is assumed of the ranges, which is proved to be
    enough, is so for any two outputs that are out of order; and the gaps of small columns, as the package has them."""

    def distance(t: z3.ArithRef, low: z3.ArithRef, high: z3.ArithRef) -> z3.ArithRef:
        return maximum(maximum(low - t, t - high), z3.IntVal(0))

    t0, t1, low0, high0, low1, high1 = z3.Ints("t0 t1 low0 high0 low1 high1")
    order = z3.And(t0 <= t1, low0 <= high0, low1 <= high1, subject(low0, high0, low1, high1))
    now = maximum(distance(t0, low0, high0), distance(t1, low1, high1))
    swapped = maximum(distance(t0, low1, high1), distance(t1, low0, high0))
    prove(z3.Implies(order, now >= swapped), "lem:shuffle with ties")
    places, pairs = [F(k, 2) for k in range(1, 8)], 0
    for size in range(1, 5):
        for values in itertools.combinations_with_replacement((F(1), F(2), F(3)), size):
            data, x = Points(values), [float(value) for value in values]
            for o1, o0 in itertools.combinations(places, 2):
                ranges = [z3.IntVal(count(o)) for o in (o0, o1) for count in (data.below, data.upto)]
                assert z3.is_true(z3.simplify(subject(*ranges))), f"{values}: nothing is said of {o0} before {o1}"
                for ranks in itertools.combinations_with_replacement(range(size + 1), 2):
                    levels, outputs = [F(rank, size) for rank in ranks], [float(o0), float(o1)]
                    found = [max(gap_with_ties(x, levels, order)) for order in (outputs, outputs[::-1])]
                    assert found[0] >= found[1], (values, ranks, o0, o1)
                    pairs += 1
    return (
        f"lem:shuffle holds for gaps to tied rank ranges too (all integers; {pairs} pairs of outputs of small columns)"
    )


def case_three(t0: z3.ArithRef, t1: z3.ArithRef, c0: z3.ArithRef, c1: z3.ArithRef) -> z3.ArithRef:
    """What case three of the proof should call the larger gap: floor(q_1 n) less the count below o_1."""
    return t1 - c1


@check(
    "step:shuffle-case-three", code=case_three, rejects=[lambda t0, t1, c0, c1: c1 - t1, lambda t0, t1, c0, c1: t0 - c1]
)
def check_shuffle_steps(subject: Callable[..., z3.ArithRef] = case_three) -> str:
    """The four cases of the proof; the printed sign of case three is reversed."""
    t0, t1, c0, c1 = z3.Ints("t0 t1 c0 c1")
    order = z3.And(t0 <= t1, c0 >= c1)
    now = maximum(absolute(c0 - t0), absolute(c1 - t1))
    swapped = maximum(absolute(c1 - t0), absolute(c0 - t1))
    prove(z3.Implies(z3.And(order, t0 <= c1, t1 <= c0), z3.And(now == c0 - t0, now >= swapped)), "case one")
    both = z3.And(absolute(c1 - t0) <= absolute(c0 - t0), absolute(c0 - t1) <= absolute(c1 - t1))
    prove(z3.Implies(z3.And(order, t0 <= c1, t1 > c0), both), "case two")
    third = z3.And(now == subject(t0, t1, c0, c1), now >= swapped)
    prove(z3.Implies(z3.And(order, t0 > c1, t1 > c0), third), "case three")
    there = [(t0, z3.IntVal(1)), (t1, z3.IntVal(1)), (c0, z3.IntVal(0)), (c1, z3.IntVal(0))]
    values = [z3.simplify(z3.substitute(term, *there)).as_long() for term in (now, subject(t0, t1, c0, c1), c1 - t1)]
    assert values == [1, 1, -1], "as the row says"
    crossed = z3.And(absolute(c1 - t0) <= absolute(c1 - t1), absolute(c0 - t1) <= absolute(c0 - t0))
    prove(z3.Implies(z3.And(order, t0 > c1, t1 <= c0), crossed), "case four")
    return (
        "lem:shuffle, proof: all four cases hold; in case three the larger gap is floor(q_1 n) less the count, "
        "not its negative"
    )


@check("lem:empirical", "lem:prior", rejects=[(False, 3), (True, 2)])
def check_sorting(subject: tuple[bool, int] = (True, 3)) -> str:
    """Counterexample to lem:empirical and lem:prior for one index after sorting, K = 3: a bad neighbour's output is
    handed to it. At the root both say the same."""
    z = Fraction(1, 1000)
    quantiles = (Fraction(1, 4), Fraction(3, 4))
    priors: tuple[Prior, ...] = ({Fraction(9, 4): Fraction(1)}, {HALF: Fraction(1)})  # ideal for 1/4; wrong for 3/4
    ordered, arity = subject  # a binary tree has nothing to sort
    algorithm = Algorithm(quantiles, priors, (z, z), arity=arity, ordered=ordered)
    data = Grid(8)
    bad = probability(algorithm.law(data), lambda outputs: gap(data, quantiles[0], outputs[0]) >= 2)
    assert bad > z**2 / psi(data, quantiles[0], priors[0], z), "the bound survives"
    assert (bad, psi(data, quantiles[0], priors[0], z), z**2) == (1, 1, F(1, 10**6)), "as the row says"
    return (
        "lem:empirical fails for a single index once outputs are sorted (K = 3): Psi = 1, bound 1e-6, "
        "probability 1; the maximum is safe"
    )


@check("text:out-of-order", code=Algorithm, rejects=[(2, False), (3, True)])
def check_out_of_order(subject: tuple[int, bool] = (3, False)) -> str:
    """Two estimates of one node can come out in the wrong order, for K = 3 and more; a binary tree's never do, as each
    estimate lies between the edges of its node: both adaptations, on a grid and with ties."""
    priors: tuple[Prior, ...] = tuple({k + F(i, 4): F(1, 5) for k in range(5)} for i in (1, 2, 3))
    some, ordered = subject
    columns: tuple[Grid | Points, ...] = (Grid(4), Points((F(1), F(1), F(1), F(3))))

    def crossed(arity: int, count: int, adaptation: str, data: Grid | Points) -> Fraction:
        levels, z = QUARTERS[:count], (HALF,) * count
        algorithm = Algorithm(levels, priors[:count], z, arity=arity, ordered=ordered, adaptation=adaptation)
        return sum((p for o, p in algorithm.law(data).items() if list(o) != sorted(o)), F(0))

    found = F(0)
    for adaptation, data in itertools.product(("edge", "conditional"), columns):
        found = crossed(some, some - 1, adaptation, data)
        assert found > 0 and crossed(some + 1, some, adaptation, data) > 0, "always in order"
        assert crossed(2, 3, adaptation, data) == 0
    outputs = [F(k, 4) for k in range(21)]
    for low, high in itertools.combinations(outputs[::3], 2):
        for prior, adaptation in itertools.product(priors, ("edge", "conditional")):
            if adaptation == "edge" or any(low < o < high for o in prior):
                assert all(low <= o <= high for o in adapt(prior, low, high, adaptation)), "beyond an edge"
    return f"K = 3, four records: the two estimates of the root are out of order w.p. {float(found):.3f} (exact)"
