"""Privacy of Algorithm 2: exact losses of whole trees on neighbouring data."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import z3

from pq.bounds import binary_depth
from proofs_checks.engine.registry import check
from proofs_checks.tools.chains import exponents_of
from proofs_checks.tools.exact import Algorithm, Points, Prior, ball, build, log_ball, max_loss, power
from proofs_checks.tools.neighbours import TINY, hurtful_priors, neighbours, records, replaced_loss
from proofs_checks.tools.solver import prove
from proofs_checks.tools.trees import path_spends, printed_levels

F = Fraction
HALF = Fraction(1, 2)
OFF = F(99, 100), F(101, 100)
QUARTERS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))


@check(
    "text:tree-privacy",
    "ours:sharp-calibration",
    rejects=[lambda levels: Fraction(1), *(lambda levels, by=by: Fraction(by, 100 * levels) for by in (99, 101))],
)
def check_tree_privacy(subject: Callable[[int], Fraction] = lambda levels: Fraction(1, levels)) -> str:
    """Algorithm 2 on the quartiles, add-remove: exact losses within epsilon, both adaptations, both calibrations."""
    z = Fraction(72, 73)  # exp(-epsilon / 400): half of the budget each level is 100 of them
    exponent = 200 * subject(2)
    worst = Fraction(1)
    for priors, adaptation, rounded in itertools.product(hurtful_priors(), ("conditional", "edge"), (True, False)):
        # unrounded: sensitivity 1/2 at relative quantile 1/2, so twice the rate: z per half rank
        unit = 1 if rounded else 2
        algorithm = Algorithm(
            QUARTERS, priors, (power(z, exponent),) * 3, adaptation=adaptation, rounded=rounded, unit=unit
        )
        laws: dict[Points, dict] = {}
        for less, more in neighbours():
            for data in (less, more):
                if data not in laws:
                    laws[data] = algorithm.law(data)
            loss = max(max_loss(laws[less], laws[more]), max_loss(laws[more], laws[less]))
            assert loss <= z**-400, (less, more, adaptation, rounded, float(loss))
            worst = max(worst, loss)
    ratio = float(log_ball(worst) / (-400 * log_ball(z)))
    assert ratio > 0.999, "all of epsilon can be lost"
    return (
        "Algorithm 2, m = 3, add-remove: exact loss at most epsilon over all small neighbours (largest "
        f"{ratio:.3f} epsilon)"
    )


@check("text:tree-privacy", rejects=[(100, 300), (200, 200), (101, 200), (100, 202), (99, 200), (100, 198)])
def check_kary_privacy(subject: tuple[int, int] = (100, 200)) -> str:
    """The same for K = 3: two mechanisms share the root's half of the budget, one has the other half; sorting is
    free. All of epsilon can be lost, so that no part of the path's sum may be more.
    """
    z = Fraction(72, 73)  # exp(-epsilon / 800)
    root, below = subject
    worst = Fraction(1)
    for priors, adaptation in itertools.product(hurtful_priors(), ("conditional", "edge")):
        exponents = tuple(z**e for e in (root, root, below))
        algorithm = Algorithm(QUARTERS, priors, exponents, arity=3, adaptation=adaptation)
        for less, more in neighbours():
            try:
                first, second = algorithm.law(less), algorithm.law(more)
            except ZeroDivisionError:
                continue  # no mass left for the last quantile: undefined, see check_normalisable
            loss = max(max_loss(first, second), max_loss(second, first))
            assert loss <= z**-800, (less, more, adaptation)
            worst = max(worst, loss)
    ratio = float(log_ball(worst) / (-800 * log_ball(z)))
    assert ratio > 0.999, "all of epsilon can be lost"
    return (
        f"Algorithm 2, K = 3, m = 3, add-remove: exact loss at most epsilon (largest {ratio:.3f} epsilon), "
        "sorted outputs"
    )


@check("text:tree-privacy", "alg:quantiles", rejects=[(True, 1), (False, 2)])
def check_restricted_utility(subject: tuple[bool, int] = (False, 1)) -> str:
    """The utility must see the node's records only: over all the data, one record moves every node and costs 1.5
    epsilon at m = 3.
    """
    z = Fraction(1, 10)
    whole, spent = subject  # by the root, in shares of a level
    budgets = z, z**spent, z
    algorithm = Algorithm(QUARTERS, next(hurtful_priors()), budgets, adaptation="conditional", whole_data=whole)
    loss = max_loss(algorithm.law(records(1, 2, 3, 4)), algorithm.law(records(1, 2, 3)))
    assert loss <= z**-4, f"{float(log_ball(loss) / (-4 * log_ball(z))):.3f} epsilon"
    other = Algorithm(QUARTERS, next(hurtful_priors()), (z,) * 3, adaptation="conditional", whole_data=True)
    worse = max_loss(other.law(records(1, 2, 3, 4)), other.law(records(1, 2, 3)))
    ratio = float(log_ball(worse) / (-4 * log_ball(z)))
    assert ratio > 1.49
    return f"ranks over all records at every node instead of the node's own cost {ratio:.3f} epsilon at m = 3 (exact)"


@check("text:differential-privacy", "ours:replaced-record", rejects=[Fraction(1), Fraction(2)])
def check_replaced_record(subject: Fraction = Fraction(3, 2)) -> str:
    """With budgets for add-remove a replaced record costs (2 d - 1) / d epsilon: the root once, both branches below."""
    z = Fraction(1, 10)  # exp(-epsilon / 4), d = 2
    loss = replaced_loss((1, 1, 1), z)
    ratio = log_ball(loss) / (-4 * log_ball(z))
    assert ratio < ball(subject)
    assert ratio > ball(subject - Fraction(1, 1000))
    return (
        f"replacing a record costs (2 d - 1) / d epsilon: exact loss {float(ratio):.4f} epsilon at d = 2, so "
        "3/2 is right and sharp"
    )


@check(
    "ours:replaced-record",
    rejects=[
        lambda root: z3.RealVal("3/2") if z3.is_expr(root) else F(3, 2),
        lambda root: (2 - root) * 99 / 100,
        lambda root: (2 - root) * 101 / 100,
    ],
)
def check_replaced_shares(subject: Callable[[Any], Any] = lambda root: 2 - root) -> str:
    """Unequal budgets: a replaced record costs the root's share once and all the others twice, 2 - share of the root:
    6/5 for p = 2 and d = 2, where the root has 4/5. Two paths of at most epsilon that share the root cost no more."""
    head, a, b = z3.Reals("head a b")
    budgets = z3.And(head >= 0, a >= 0, b >= 0, head + a <= 1, head + b <= 1)
    prove(z3.Implies(budgets, head + a + b <= subject(head)), "the root and both branches")
    for root, leaf in ((1, 1), (4, 1), (1, 3), (2, 1)):
        z = F(1, 10)
        ratio = log_ball(replaced_loss((leaf, root, leaf), z)) / (-2 * (root + leaf) * log_ball(z))
        claimed = subject(F(root, root + leaf))
        assert ball(claimed * F(999, 1000)) < ratio < ball(claimed * F(1001, 1000)), (root, leaf, float(ratio))
    return "a replaced record costs 2 - (the root's share) epsilon: (2 d - 1)/d for equal budgets, 6/5 for 4/5 and 1/5"


# A usual and a rare output of each mechanism on the records 1, ..., n, of which 1 becomes n + 1: on the way to either
# the rare one comes a rank closer to its target, and the usual one goes a rank away; one place for other mechanisms.
THREE_LEVELS = 12, ((2.25, 3.5), (3.25, 5.5), (6.5,), (6.25, 7.5), (9.625,), (9.25, 11.5), (11.75, 12.5))
THREE_BRANCHES = (
    18,
    ((2.25, 3.5), (4.25, 5.5), (6.25, 7.5), (9.5,), (11.5,), (12.25, 13.5), (14.25, 15.5), (16.25, 17.5)),
)


@check("ours:replaced-record", rejects=[lambda root: F(3, 2), *(lambda root, by=by: by * (2 - root) for by in OFF)])
def check_replaced_trees(subject: Callable[[Fraction], Fraction] = lambda root: 2 - root) -> str:
    """The same in whole trees: (2 d - 1)/d for three binary levels of equal budgets, and 6/5 for K = 3, two levels and
    p = 2, where a level's two mechanisms share its budget; with targets not rounded, where half a rank is what a record
    added moves, the root costs twice too. Exact laws."""
    z = F(1, 10)
    for (n, places), arity, levels, rounded in (
        (THREE_LEVELS, 2, (1, 1, 1), True),
        (THREE_BRANCHES, 3, (4, 1), True),
        (THREE_LEVELS, 2, (1, 1, 1), False),
    ):
        m = len(places)
        quantiles = tuple(F(i, m + 1) for i in range(1, m + 1))
        priors: tuple[Prior, ...] = tuple(
            {F(usual): 1 - TINY * len(rare)} | {F(o): TINY for o in rare} for usual, *rare in places
        )
        exponents = exponents_of(build(range(m), arity), lambda depth, count, levels=levels: levels[depth - 1], m)
        spends = tuple(z**e for e in exponents)
        algorithm = Algorithm(quantiles, priors, spends, arity=arity, rounded=rounded, unit=1 if rounded else 2)
        rare = tuple(F(where[-1]) for where in places)
        laws = [algorithm.law(records(*values)) for values in (range(1, n + 1), range(2, n + 2))]
        ratio = log_ball(laws[1][rare] / laws[0][rare]) / (-2 * (arity - 1) * sum(levels) * log_ball(z))
        assert max(max_loss(*laws), max_loss(*laws[::-1])) == laws[1][rare] / laws[0][rare]
        claimed = subject(F(levels[0], sum(levels))) if rounded else F(2)
        assert ball(claimed * F(999, 1000)) < ratio < ball(claimed * F(1001, 1000)), (m, arity, float(ratio))
    return (
        "a replaced record costs 5/3 epsilon in three binary levels and 6/5 for K = 3, two levels, p = 2 (exact laws)"
    )


@check(
    "ours:replaced-record",
    rejects=[
        (lambda root: 2 - root, lambda q: 1 / max(q, 1 - q)),
        *((lambda root, by=by: by, lambda q: 1 / max(q, 1 - q)) for by in OFF),
        (lambda root: F(1), lambda q: F(2)),
        *((lambda root: F(1), lambda q, by=by: by / max(q, 1 - q)) for by in OFF),
    ],
)
def check_replaced_in_one_branch(
    subject: tuple[Callable[[Fraction], Fraction], Callable[[Fraction], Fraction]] = (
        lambda root: F(1),
        lambda q: 1 / max(q, 1 - q),
    ),
) -> str:
    """Where the qualifiers of the row are needed. At m = 2 the root has one branch: the record only leaves or only
    enters it, so a replaced record costs epsilon. With a target that is not rounded it moves a quantile by one rank,
    where a record added moves it by max(q, 1 - q): twice that at the median only. Exact laws."""
    z, worst, halves = F(1, 10), F(1), (F(3, 2), F(5, 2), F(7, 2))
    fewer, more = records(1, 2, 3, 4), records(2, 3, 4, 5)
    for usual, rare, second, other in itertools.product(halves, halves, (*halves, F(9, 2)), (*halves, F(9, 2))):
        if usual == rare or second == other:
            continue
        priors: tuple[Prior, ...] = (
            {usual: 1 - TINY, rare: TINY},
            {second + F(1, 8): 1 - TINY, other + F(1, 8): TINY},
        )
        algorithm = Algorithm((HALF, F(3, 4)), priors, (z, z), adaptation="conditional")
        try:
            laws = algorithm.law(fewer), algorithm.law(more)
        except ZeroDivisionError:
            continue  # no mass left for the second quantile
        worst = max(worst, max_loss(*laws), max_loss(*laws[::-1]))
    ratio = log_ball(worst) / (-4 * log_ball(z))
    claimed = subject[0](HALF)
    assert ball(claimed * F(999, 1000)) < ratio < ball(claimed), float(ratio)
    for q, rate in ((HALF, 1), (F(3, 4), 3), (F(1, 10), 9)):  # z to the power of 2 rate is exp(-epsilon)
        prior: Prior = {F(3, 2): 1 - TINY, F(39, 2): TINY}
        one = Algorithm((q,), (prior,), (z,), rounded=False, unit=2 if q == HALF else q.denominator)
        laws = one.law(records(*range(1, 21))), one.law(records(*range(2, 22)))
        moved = log_ball(max(max_loss(*laws), max_loss(*laws[::-1]))) / (-2 * rate * log_ball(z))
        assert ball(subject[1](q) * F(999, 1000)) < moved < ball(subject[1](q) * F(1001, 1000)), (q, float(moved))
    return "a replaced record costs epsilon where the root has one branch, and 1/max(q, 1 - q) at an unrounded root"


@check("ours:replaced-record", rejects=[(2, 2), (4, 1)])
def check_replace_calibration(subject: tuple[int, int] = (2, 1)) -> str:
    """Halving the rate below the root suffices: one branch and the other cost half each, (A + B) / 2 in all."""
    w = Fraction(1, 10)  # exp(-epsilon / 8); root: epsilon / 2, below: half of its half
    root, below = subject
    loss = replaced_loss((below, root, below), w)
    assert loss <= w**-8, f"{float(log_ball(loss) / (-8 * log_ball(w))):.3f} epsilon"
    assert loss > w**-8 * Fraction(99, 100)
    a, b, head = z3.Reals("a b head")  # budgets of two branches after the common part
    budgets = z3.And(head >= 0, a >= 0, b >= 0, head + a <= 1, head + b <= 1)
    prove(z3.Implies(budgets, head + a / 2 + b / 2 <= 1), "two branches at half the rate")
    return (
        "replace: sensitivity doubled below the root keeps the loss within epsilon, and exactly reaches it "
        "(exact law; z3 for the sum)"
    )


@check("text:tree-privacy", rejects=[lambda m: (m - 1).bit_length(), lambda m: max((m - 1).bit_length(), 1)])
def check_binary_budget(subject: Callable[[int], int] = binary_depth) -> str:
    """Budgets epsilon / ceil(log2(m + 1)) sum to at most epsilon on every path, for every m."""
    for m in [*range(1, 300), 1023, 1024]:
        levels = subject(m)
        assert levels > 0, f"m = {m} divides by zero"
        assert max(path_spends(m, 2, lambda depth, count, levels=levels: Fraction(count, levels))) <= 1, m
    return (
        "epsilon / ceil(log2(m + 1)) a level spends at most epsilon on every path of the binary tree, m < 300 "
        "and about 1024"
    )


def two_level_loss(z: Fraction, tiny: Fraction) -> Fraction:
    """exp of the loss at m = 2 with each mechanism run at z, when a fourth record joins three, under priors made to
    hurt.
    """
    fewer, more = (Points(tuple(Fraction(i) for i in range(1, n + 1))) for n in (3, 4))
    # both mechanisms: the rare output comes one rank closer to its target while the usual one goes one rank away
    priors: tuple[Prior, ...] = (
        {Fraction(5, 2): tiny, HALF: 1 - tiny},
        {Fraction(7, 2): tiny, Fraction(11, 4): 1 - tiny},
    )
    algorithm = Algorithm((HALF, Fraction(3, 4)), priors, (z, z), adaptation="conditional")
    return max_loss(algorithm.law(more), algorithm.law(fewer))


@check("lem:empirical-quantiles", rejects=[(lambda m: m.bit_length(), TINY), (printed_levels, Fraction(1, 10))])
def check_printed_privacy(subject: tuple[Callable[[int], int], Fraction] = (printed_levels, TINY)) -> str:
    """Counterexample to the printed privacy at m = 2: an exact loss near 2 epsilon."""
    unit = Fraction(1, 10)  # exp(-epsilon / 4), so that both budgets are rational
    levels, rare = subject  # how rare an output must be for a record to count in full
    loss = two_level_loss(unit ** (2 // levels(2)), rare)
    ratio = float(log_ball(loss) / (-4 * log_ball(unit)))
    assert loss > (1 / unit) ** 4, f"private: {ratio:.3f} epsilon"
    assert round(ratio, 4) == 2, "as the row says"
    return f"epsilon / ceil(log2 m) at m = 2: exact privacy loss {ratio:.4f} epsilon when one record is added"
