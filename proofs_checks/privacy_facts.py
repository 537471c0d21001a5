"""Facts about privacy that Sections 3 and 4 use: the exponential mechanism, sensitivities, trees, replaced records,
zCDP.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction

import z3
from flint import arb

from proofs_checks.exact import Algorithm, Points, Prior, ball, log_ball, max_loss
from proofs_checks.tools import absolute, maximum, prove

HALF = Fraction(1, 2)
QUARTERS = (Fraction(1, 4), HALF, Fraction(3, 4))
TINY = Fraction(1, 10**12)


def records(*values: int) -> Points:
    """Sorted records at the given integers."""
    return Points(tuple(Fraction(v) for v in sorted(values)))


def check_exponential_mechanism(subject: Fraction = Fraction(2)) -> str:
    """The theorem on the exponential mechanism: utilities that differ by at most Delta give losses of at most
    epsilon, any base measure.
    """
    draw = random.Random(5)
    z, worst = Fraction(1, 3), Fraction(0)  # exp(-epsilon / (2 Delta)); the claim is z**-2
    for _ in range(400):
        size = draw.randrange(2, 5)
        base = [Fraction(draw.choice((1, 1, 1000, 10**9))) for _ in range(size)]
        first = [draw.randrange(4) for _ in range(size)]
        second = [max(u + draw.choice((-1, 0, 1)), 0) for u in first]
        laws = []
        for utilities in (first, second):
            weights = [b * z**u for b, u in zip(base, utilities, strict=True)]
            laws.append([w / sum(weights) for w in weights])
        ratio = max(a / b for a, b in zip(*laws, strict=True))
        assert ratio <= (1 / z) ** int(subject), (first, second, base)
        worst = max(worst, ratio)
    assert worst > Fraction(899, 100)
    return (
        "exponential mechanism: loss at most epsilon with any finite base measure, and epsilon is approached "
        "(exact ratios)"
    )


def check_normalisable(subject: Callable[[Fraction], bool] = lambda total: total > 0) -> str:
    """The hypothesis that the theorem leaves out: the base measure must give a finite positive normaliser."""
    try:
        Algorithm((HALF,), ({},), (HALF,), adaptation="conditional").law(records(1))
        defined = True
    except ZeroDivisionError:
        defined = False
    assert defined == subject(Fraction(0))
    return (
        "the mechanism needs 0 < integral of exp(-epsilon Gap / 2) mu < infinity; mu([a^, b^]) = 0 leaves "
        "conditional adaptation undefined"
    )


def check_sensitivity(subject: Callable[[str], int] = lambda adjacency: 1) -> str:
    """Gap with floor(q n) moves by at most one under both adjacencies, for all integers and q (z3)."""
    below, inserted, target, later = z3.Ints("below inserted target later")
    y, q = z3.Reals("y q")  # y = q n
    floors = z3.And(target <= y, y < target + 1, later <= y + q, y + q < later + 1, q >= 0, q <= 1)
    grown = z3.And(floors, below >= 0, inserted >= 0, inserted <= 1)
    change = absolute(below + inserted - later) - absolute(below - target)
    prove(z3.Implies(grown, absolute(change) <= subject("add-remove")), "add-remove")
    moved = z3.Int("moved")
    change = absolute(below + moved - target) - absolute(below - target)
    prove(z3.Implies(z3.And(moved >= -1, moved <= 1), absolute(change) <= subject("replace")), "replace")
    for n, p in itertools.product(range(12), range(61)):
        rank, more = p * n // 60, p * (n + 1) // 60
        assert more - rank in (0, 1)
        for k in range(n + 1):
            assert max(abs(abs(k + a - more) - abs(k - rank)) for a in (0, 1)) <= subject("add-remove")
    return (
        "Gap_q with floor(q n) has sensitivity one: a record added, removed or replaced (z3 over all n, q; "
        "enumeration to n = 11)"
    )


def check_sensitivity_sharp(subject: Callable[[z3.ArithRef], z3.ArithRef] | None = None) -> str:
    """|#{x < o} - q n| moves by at most max(q, 1 - q) when a record is added or removed, and by one when it is
    replaced (z3).
    """
    claimed = subject or (lambda q: maximum(q, 1 - q))
    q, distance = z3.Reals("q distance")  # distance = below - q n
    for inserted in (0, 1):
        change = absolute(distance + inserted - q) - absolute(distance)
        prove(z3.Implies(z3.And(q >= 0, q <= 1), absolute(change) <= claimed(q)), f"inserted {inserted}")
    for moved in (-1, 1):
        prove(absolute(absolute(distance + moved) - absolute(distance)) <= 1, "replace")
    return (
        "the unrounded gap has sensitivity max(q, 1 - q) under add-remove, and it is attained; one under replace (z3)"
    )


def hurtful_priors() -> Iterator[tuple[Prior, ...]]:
    """Priors for the quartiles with almost all mass where one record moves the gap the wrong way."""
    yield (
        {Fraction(3, 2): TINY, HALF: 1 - TINY},
        {Fraction(5, 2): TINY, HALF + Fraction(1, 8): 1 - TINY},
        {Fraction(7, 2): TINY, Fraction(11, 4): 1 - TINY},
    )
    yield (
        {Fraction(5, 2): TINY, Fraction(5, 4): 1 - TINY},
        {Fraction(7, 2): TINY, Fraction(3, 2): 1 - TINY},
        {Fraction(9, 2): TINY, Fraction(15, 4): 1 - TINY},
    )
    yield tuple({k + Fraction(i, 8): Fraction(1, 5) for k in range(5)} for i in (1, 2, 3))


def neighbours() -> Iterator[tuple[Points, Points]]:
    """Small data and the same with one record more."""
    for size in range(5):
        for values in itertools.combinations(range(1, 6), size):
            for extra in range(1, 6):
                if extra not in values:
                    yield records(*values), records(*values, extra)


def check_tree_privacy(subject: Callable[[int], Fraction] = lambda levels: Fraction(1, levels)) -> str:
    """Algorithm 1 on the quartiles, add-remove: exact losses within epsilon, both adaptations, both calibrations."""
    z = Fraction(1, 4)  # exp(-epsilon / 4): half of the budget each level
    exponent = 2 * subject(2)  # 1 when a level gets half
    assert exponent.denominator == 1
    worst = Fraction(1)
    for priors, adaptation, rounded in itertools.product(hurtful_priors(), ("conditional", "edge"), (True, False)):
        # unrounded: sensitivity 1/2 at relative quantile 1/2, so twice the rate: z per half rank
        unit = 1 if rounded else 2
        algorithm = Algorithm(
            QUARTERS, priors, (z ** int(exponent),) * 3, adaptation=adaptation, rounded=rounded, unit=unit
        )
        laws: dict[Points, dict] = {}
        for less, more in neighbours():
            for data in (less, more):
                if data not in laws:
                    laws[data] = algorithm.law(data)
            loss = max(max_loss(laws[less], laws[more]), max_loss(laws[more], laws[less]))
            assert loss <= z**-4, (less, more, adaptation, rounded, float(loss))
            worst = max(worst, loss)
    ratio = float(log_ball(worst) / (-4 * log_ball(z)))
    return (
        "Algorithm 1, m = 3, add-remove: exact loss at most epsilon over all small neighbours (largest "
        f"{ratio:.3f} epsilon)"
    )


def check_kary_privacy(subject: tuple[int, int] = (1, 2)) -> str:
    """The same for K = 3: two mechanisms share the root's half of the budget, one has the other half; sorting is
    free.
    """
    z = Fraction(1, 4)  # exp(-epsilon / 8)
    root, below = subject
    worst = Fraction(1)
    for priors, adaptation in itertools.product(hurtful_priors(), ("conditional", "edge")):
        exponents = tuple(z**e for e in (root, root, below))
        algorithm = Algorithm(QUARTERS, priors, exponents, arity=3, adaptation=adaptation)
        for less, more in itertools.islice(neighbours(), 0, None, 3):
            try:
                first, second = algorithm.law(less), algorithm.law(more)
            except ZeroDivisionError:
                continue  # no mass left for the last quantile: undefined, see check_normalisable
            loss = max(max_loss(first, second), max_loss(second, first))
            assert loss <= z**-8, (less, more, adaptation)
            worst = max(worst, loss)
    ratio = float(log_ball(worst) / (-8 * log_ball(z)))
    return (
        f"Algorithm 1, K = 3, m = 3, add-remove: exact loss at most epsilon (largest {ratio:.3f} epsilon), "
        "sorted outputs"
    )


def check_restricted_utility(subject: bool = False) -> str:
    """The utility must see the node's records only: over all the data, one record moves every node and costs 1.5
    epsilon at m = 3.
    """
    z = Fraction(1, 10)
    algorithm = Algorithm(QUARTERS, next(hurtful_priors()), (z,) * 3, adaptation="conditional", whole_data=subject)
    loss = max_loss(algorithm.law(records(1, 2, 3, 4)), algorithm.law(records(1, 2, 3)))
    assert loss <= z**-4, f"{float(log_ball(loss) / (-4 * log_ball(z))):.3f} epsilon"
    other = Algorithm(QUARTERS, next(hurtful_priors()), (z,) * 3, adaptation="conditional", whole_data=True)
    worse = max_loss(other.law(records(1, 2, 3, 4)), other.law(records(1, 2, 3)))
    ratio = float(log_ball(worse) / (-4 * log_ball(z)))
    assert ratio > 1.49
    return f"ranks over all records at every node instead of the node's own cost {ratio:.3f} epsilon at m = 3 (exact)"


def replaced_loss(exponents: tuple[int, int, int], z: Fraction) -> Fraction:
    """exp of the loss when 1 becomes 5 in (1, 2, 3, 4): the record leaves the left child and enters the right one."""
    priors = list(hurtful_priors())[1]
    algorithm = Algorithm(QUARTERS, priors, tuple(z**e for e in exponents), adaptation="conditional")
    return max_loss(algorithm.law(records(2, 3, 4, 5)), algorithm.law(records(1, 2, 3, 4)))


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


def check_bounded_range(subject: Fraction = Fraction(2)) -> str:
    """Losses of one mechanism lie in an interval of length epsilon under add-remove: ratios of ratios, exactly."""
    z, widest = Fraction(1, 5), Fraction(1)
    for priors, (less, more) in itertools.product(hurtful_priors(), neighbours()):
        algorithm = Algorithm((HALF,), (priors[1],), (z,))
        first, second = algorithm.law(less), algorithm.law(more)
        ratios = [p / second[o] for o, p in first.items()]
        assert max(ratios) / min(ratios) <= (1 / z) ** int(subject)
        widest = max(widest, max(ratios) / min(ratios))
    assert widest == z**-2
    return (
        "one mechanism is epsilon-bounded-range under add-remove, and the range epsilon is attained: no factor "
        "2 to gain (exact)"
    )


def renyi(alpha: Fraction, epsilon: Fraction, low: Fraction) -> arb:
    """Renyi divergence of the pair of two-point laws with losses low and low + epsilon (low < 0 < low + epsilon)."""
    up, down = (ball(low + epsilon)).exp(), ball(low).exp()
    weight = (1 - down) / (up - down)  # mean of exp(loss) under the second law is one
    a = ball(alpha)
    return (weight * up**a + (1 - weight) * down**a).log() / (a - 1)


def check_bounded_range_zcdp(subject: Fraction = Fraction(1, 8)) -> str:
    """Bounded range epsilon gives rho = epsilon**2 / 8: the two-point laws, and the constant is best as epsilon
    falls.
    """
    tightest = arb(0)
    for epsilon, alpha in itertools.product(
        (Fraction(1, 100), Fraction(1, 2), Fraction(2), Fraction(8)), (Fraction(101, 100), Fraction(2), Fraction(10))
    ):
        for j in range(1, 40):
            ratio = renyi(alpha, epsilon, -epsilon * Fraction(j, 40)) / ball(alpha * epsilon**2)
            assert ratio < ball(subject), (epsilon, alpha, j, ratio)
            tightest = ratio if ratio > tightest else tightest
    assert tightest > ball(Fraction(1248, 10_000))
    # proof for all laws: K(a) = log E exp(a L) has K(0) = K(1) = 0 and K'' <= epsilon**2 / 4 (Popoviciu), so a (a -
    # 1) epsilon**2 / 8 - K is convex with zeros at 0 and 1. Popoviciu for a variable in [0, 1]: variance = E X^2 -
    # m^2 <= m - m^2 <= 1/4
    m = z3.Real("m")
    prove(m - m * m <= z3.RealVal("1/4"), "Popoviciu")
    return "bounded range epsilon is (epsilon^2 / 8)-zCDP; 1/8 is best (two-point laws reach 0.1248 alpha epsilon^2)"


def check_neighbouring(
    subject: Callable[[str], float] = lambda adjacency: {"add-remove": 1.0, "replace": 1.5}[adjacency],
) -> str:
    """'Differ in at most one element' has two readings, and the printed budgets serve one of them only."""
    z = Fraction(1, 10)
    ratio = float(log_ball(replaced_loss((1, 1, 1), z)) / (-4 * log_ball(z)))
    assert ratio <= 1.0 or subject("replace") > 1.0, ratio
    assert ratio <= subject("replace")
    assert math.isclose(subject("add-remove"), 1.0)
    return (
        "the definition's 'differ in at most one element': epsilon if a record is added or removed, up to (2 d "
        "- 1) / d epsilon if replaced"
    )
