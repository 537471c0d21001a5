"""Joint releases, beyond the paper: what a record does to the score, and the tail of the score, in fractions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import mpmath
import numpy as np
import sympy
import z3

from pq.bounds import joint_gap, joint_score
from pq.core.priors import Uniform
from pq.private.mechanisms.joint.plan import JointPlan
from pq.private.mechanisms.joint.score import best_score, score_at
from proofs_checks.engine.registry import check
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.exact import log_ball
from proofs_checks.tools.solver import absolute, follows, maximum

F = Fraction
LEVELS = [(F(1, 2),), (F(1, 4), F(3, 4)), (F(1, 10), F(2, 5))]
ONE, TWO = F(1), F(2)
TOTALS = [F(i, 2) for i in range(10)]
Score = Callable[[JointPlan, Any, Any], Any]


def exact_score(counts: tuple[int, ...], levels: tuple[Fraction, ...], total: Fraction) -> Fraction:
    ends = (F(0), *levels, F(1))
    return sum((abs(c - total * (b - a)) for c, (a, b) in zip(counts, itertools.pairwise(ends), strict=True)), F(0))


def exact_best(counts: tuple[int, ...], levels: tuple[Fraction, ...]) -> Fraction:
    """The least score: it is convex and piecewise linear in the total, with corners at counts over shares."""
    ends = (F(0), *levels, F(1))
    corners = [c / (b - a) for c, (a, b) in zip(counts, itertools.pairwise(ends), strict=True)]
    return min(exact_score(counts, levels, corner) for corner in corners)


def _of_all_records(plan: JointPlan, counts: Any, total: Any) -> Any:
    """Targets that move with the number of records."""
    return score_at(plan, counts, np.sum(counts))


def _best_twice(plan: JointPlan, counts: Any) -> Any:
    return 2.0 * best_score(plan, counts)


@check(
    "ours:joint",
    code=(score_at, best_score),
    rejects=[
        (_of_all_records, best_score, ONE),
        (score_at, _best_twice, ONE),
        *((score_at, best_score, F(by, 100)) for by in (50, 99, 101)),
    ],
)
def check_joint_score(subject: tuple[Score, Callable[..., Any], Fraction] = (score_at, best_score, ONE)) -> str:
    """Scores of small counts are the exact ones; one record more moves them by at most one, and by one somewhere. The
    distance of an output to q n is at most max(q, 1 - q) times the score, and no less.

    subject: the score, the one of the best total, and the factor of max(q, 1 - q).
    """
    cases, largest, closest = 0, F(0), F(0)
    for levels in LEVELS:
        plan = JointPlan.of(levels, epsilon=1, priors=Uniform(0, 1))
        for counts in itertools.product(range(4), repeat=len(levels) + 1):
            found, best = subject[1](plan, np.array(counts, dtype=float)), exact_best(counts, levels)
            assert abs(float(best) - found) < 1e-12, (levels, counts)
            for j, total in itertools.product(range(len(counts)), TOTALS):
                more = tuple(c + (i == j) for i, c in enumerate(counts))
                one, other = (exact_score(c, levels, total) for c in (counts, more))
                assert abs(float(one) - subject[0](plan, np.array(counts, dtype=float), float(total))) < 1e-12
                moved = abs(one - other), abs(best - exact_best(more, levels))
                assert max(moved) <= 1, (levels, counts, j, total)
                assert one >= best and one >= abs(sum(counts) - total), "the best total, and totals that are far"
                largest, cases = max(largest, *moved), cases + 1
            for rank, q in zip(itertools.accumulate(counts), levels, strict=False):
                assert abs(rank - q * sum(counts)) <= subject[2] * max(q, 1 - q) * best, (counts, levels)
                closest = max(closest, abs(rank - q * sum(counts)) / (max(q, 1 - q) * best) if best else F(0))
    assert largest == 1 and closest == subject[2], "attained"
    count, part = z3.Reals("count part")  # one count changes, and all others together stay
    term, after = absolute(count - part), absolute(count + 1 - part)
    follows(goal=z3.And(after - term <= 1, term - after <= 1))
    one_side, other_side = z3.Reals("one_side other_side")  # sums of the differences below and above a quantile
    q, n, rank, total = z3.Reals("q n rank total")
    sides = z3.And(rank - q * total == one_side, (n - rank) - (1 - q) * total == other_side, q >= 0, q <= 1)
    score = absolute(one_side) + absolute(other_side)
    follows(sides, goal=absolute(n - total) <= score)  # and the score is at least that, by the triangle
    factor = z3.RealVal(str(subject[2]))
    follows(sides, goal=absolute(rank - q * n) <= factor * maximum(q, 1 - q) * score)
    return (
        f"joint scores move by at most one record, with a total that is fixed or the best: {cases} cases in fractions"
    )


def ways(n: int, k: int) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """Ranks of k ordered outputs among n records that cut a range in equal cells, and the share of the volume."""
    for ranks in itertools.combinations_with_replacement(range(n + 1), k):
        groups = [ranks.count(rank) for rank in set(ranks)]
        yield ranks, F(math.factorial(k), math.prod(map(math.factorial, groups)) * (n + 1) ** k)


def tails(
    n: int, k: int, base: Fraction = TWO
) -> tuple[dict[tuple[int, ...], tuple[Fraction, Fraction, Fraction]], Fraction]:
    """Score, share and weight at rate log(base) of each way, for evenly spaced levels, whose scores are whole."""
    levels = tuple(F(i, k + 1) for i in range(1, k + 1))
    out = {}
    for ranks, share in ways(n, k):
        counts = tuple(b - a for a, b in itertools.pairwise((0, *ranks, n)))
        score = exact_best(counts, levels)
        assert score.denominator == 1
        out[ranks] = score, share, share / base ** int(score)
    return out, sum((weight for *_, weight in out.values()), F(0))


def _of_twice_the_budget(log_psi: float, epsilon: float, beta: float, **facts: Any) -> float:
    return joint_score(log_psi, 2 * epsilon, beta, **facts)


def _without_the_mass(log_psi: float, epsilon: float, beta: float, **facts: Any) -> float:
    return joint_score(0.0, epsilon, beta, **facts)


def _with_factor(factor: Callable[[float], float]) -> Callable[..., float]:
    return lambda quantile, *known, **facts: factor(quantile) * joint_score(*known, **facts)


def _with_box_score(factor: float) -> Callable[..., float]:
    return lambda *known, box_score=0.0, **facts: joint_score(*known, box_score=factor * box_score, **facts)


def _of_a_third_of_the_score(quantile: float, *known: float, **facts: Any) -> float:
    return joint_gap(quantile, *known, **facts) / 3.0


@check(
    "ours:joint",
    code=(joint_score, joint_gap),
    rejects=[
        (_of_twice_the_budget, joint_gap),
        (_without_the_mass, joint_gap),
        (joint_score, _of_a_third_of_the_score),
        *((scaled(joint_score, factor), joint_gap) for factor in (0.99, 1.01)),
        *((joint_score, scaled(joint_gap, factor)) for factor in (0.99, 1.01)),
        *((joint_score, _with_factor(factor)) for factor in (lambda q: q, lambda q: 1.0 - q, lambda q: max(q, 0.5))),
        (joint_score, _with_factor(lambda q: max(q, 1.0 - q) * (1.0 if q == 0.5 else 0.99))),
        *((_with_box_score(factor), joint_gap) for factor in (0.99, 1.01)),
        (lambda *known, counts_moved=1, **facts: joint_score(*known, **facts), joint_gap),
        (joint_score, lambda *known, counts_moved=1, **facts: joint_gap(*known, **facts)),
        (joint_score, lambda *known, total_step=None, **facts: joint_gap(*known, **facts)),
    ],
)
def check_joint_gap(subject: tuple[Callable[..., float], Callable[..., float]] = (joint_score, joint_gap)) -> str:
    """Exact tails of the score, with the best total, and of all gaps at once, for every box of outputs; attained where
    the box has little of the prior and all else lies at one score, at the median."""
    epsilon, cases, worst = 2 * math.log(2), 0, 0.0
    for n, k in itertools.product((0, 1, 2, 4, 6), (1, 2, 3)):
        law, whole = tails(n, k)
        for (box, share, _), beta in itertools.product(law.values(), (F(1, 2), F(1, 10), F(1, 1000))):
            facts = {"box_score": float(box)}
            bound = subject[0](math.log(share), epsilon, float(beta), **facts)
            tail = sum((w for s, _, w in law.values() if s > bound + 1e-9), F(0)) / whole
            assert tail <= beta, (n, k, box, beta)
            limits = [subject[1](i / (k + 1), math.log(share), epsilon, float(beta), **facts) for i in range(1, k + 1)]
            missed = sum(
                (
                    weight
                    for ranks, (*_, weight) in law.items()
                    if any(abs(r - F(n * (i + 1), k + 1)) > limits[i] + 1e-9 for i, r in enumerate(ranks))
                ),
                F(0),
            )
            assert missed <= beta, (n, k, box, beta)
            cases, worst = cases + 1, max(worst, float(tail / beta))
    for (n, k), base in itertools.product(((1, 2), (5, 1), (4, 2), (3, 3)), (F(101, 100), F(3, 2), F(50))):
        law, whole = tails(n, k, base)  # a small and a large epsilon, and all that scores at most so much as the box
        for most, beta in itertools.product({score for score, *_ in law.values()}, (F(1, 2), F(1, 1000))):
            part = sum((share for score, share, _ in law.values() if score <= most), F(0))
            facts = {"box_score": float(most)}
            bound = subject[0](float(log_ball(part)), 2 * math.log(base), float(beta), **facts)
            tail = sum((w for s, _, w in law.values() if s > bound + 1e-9), F(0)) / whole
            assert tail <= beta, (n, k, base, most, beta)
            cases += 1
    facts = {"box_score": float(exact_best((1, 0), (F(9, 10),)))}  # one record, and all of the prior above it
    limit = subject[1](0.9, 0.0, 1.0, 0.999, **facts)
    assert abs(1 - 0.9) <= limit < 1 - math.floor(0.9), "the gap to floor(q n) is another"
    far, share = 400, F(1, 10**30)  # of records, all on one side of the other cell's outputs: a score of as many
    for q, inner in itertools.product((F(1, 4), F(1, 2), F(3, 4), F(9, 10)), (0, 1)):
        below = far if q < F(1, 2) else 0
        near = round(q * far) if inner == 0 else (round(q * far) + below) // 2  # records below outputs in the box
        own = float(exact_best((near, far - near), (q,)))
        assert exact_best((below, far - below), (q,)) == far and (own == 0.0) == (inner == 0)
        beta = float((1 - share) / (share * F(2.0 ** (far - own)) + 1 - share)) * (1 - 1e-9)
        least, by_quantile = far * float(max(q, 1 - q)), partial(subject[1], float(q))
        assert abs(below - q * far) == least, "as the row says"
        for moved, (bound, reached) in itertools.product((1, 2), ((subject[0], float(far)), (by_quantile, least))):
            limit = bound(math.log(share), moved * epsilon, beta, box_score=own, counts_moved=moved)  # the same rate
            assert reached <= limit * (1 + 1e-12) and limit <= 1.001 * reached, (q, own, moved, limit, reached)
        for step, moved in itertools.product((1.0, 8.0), (1, 2)):
            facts = {"box_score": own, "total_step": step, "counts_moved": moved}
            drawn = float(max(q, 1 - q)) * joint_score(-3.0, 0.7, 0.1, **facts)
            assert math.isclose(subject[1](float(q), -3.0, 0.7, 0.1, **facts), drawn, rel_tol=1e-12), (q, facts)
    return f"joint releases miss their bounds with at most {worst:.2f} of the stated probability: {cases} exact cases"


def drawn_tails(
    counts: tuple[int, ...], levels: tuple[Fraction, ...], step: int, base: Fraction = TWO
) -> dict[Fraction, Fraction]:
    """Weight by score, at rate log(base), of outputs with these counts and totals that are multiples of a step: all up
    to ninety beyond the number of records."""
    out: dict[Fraction, Fraction] = {}
    for i in range((sum(counts) + 90) // step + 1):
        score = exact_score(counts, levels, F(i * step))
        assert score.denominator == 1
        out[score] = out.get(score, F(0)) + 1 / base ** int(score)
    return out


def stated_bound(log_psi: float, step: int, beta: float, box_score: float, base: Fraction) -> float:
    """The least v with v >= S_B + s / 2 + (2 / epsilon) log((2 v / s + 1 + 2 / (e^(epsilon s / 2) - 1)) / (beta Psi)),
    at rate log(base), by mpmath."""
    with mpmath.workdps(30):
        rate, start = mpmath.log(base.numerator) - mpmath.log(base.denominator), box_score + mpmath.mpf(step) / 2
        far = lambda v: mpmath.log(2 * v / step + 1 + 2 / (mpmath.exp(rate * step) - 1))  # noqa: E731
        v = start + (far(mpmath.mpf(10) ** 4) - mpmath.log(beta) - log_psi) / rate
        for _ in range(60):  # from above: the map is a contraction near its upper fixed point
            v = start + (far(v) - mpmath.log(beta) - log_psi) / rate
        return float(v)


def _of_the_best_total(log_psi: float, epsilon: float, beta: float, **facts: Any) -> float:
    return joint_score(log_psi, epsilon, beta, box_score=facts["box_score"])


def _of_totals_alike(log_psi: float, epsilon: float, beta: float, *, box_score: float, total_step: float) -> float:
    return joint_score(log_psi, epsilon, beta, box_score=box_score) + total_step / 2


@check(
    "ours:joint",
    code=joint_score,
    rejects=[
        _of_the_best_total,
        _of_totals_alike,
        _of_twice_the_budget,
        _without_the_mass,
        *(scaled(joint_score, factor) for factor in (0.99, 1.01)),
    ],
)
def check_drawn_total(subject: Callable[..., float] = joint_score) -> str:
    """A total that is drawn along: exact tails of the score for every box, and the bound of the best total missed."""
    epsilon, cases, worst = 2 * math.log(2), 0, 0.0
    sizes = ((2, 1, 2, F(2)), (6, 1, 1, F(2)), (4, 2, 1, F(2)), (3, 3, 1, F(2)), (2, 1, 1, F(3, 2)), (2, 2, 1, F(30)))
    for n, k, factor, base in sizes:
        step, levels, (law, _) = factor * (k + 1), tuple(F(i, k + 1) for i in range(1, k + 1)), tails(n, k)
        rate = 2 * math.log(base)
        weights: dict[Fraction, Fraction] = {}
        for ranks, (_, share, _) in law.items():
            counts = tuple(b - a for a, b in itertools.pairwise((0, *ranks, n)))
            for score, weight in drawn_tails(counts, levels, step, base).items():
                weights[score] = weights.get(score, F(0)) + share * weight
        whole = sum(weights.values(), F(0))
        for (box, share, _), beta in itertools.product(law.values(), (F(1, 2), F(1, 10), F(1, 1000))):
            facts = {"box_score": float(box), "total_step": float(step)}
            bound = subject(math.log(share), rate, float(beta), **facts)
            wanted = stated_bound(math.log(share), step, float(beta), float(box), base)
            assert math.isclose(bound, wanted, rel_tol=1e-9)
            tail = sum((weight for score, weight in weights.items() if score > bound + 1e-9), F(0)) / whole
            assert tail <= beta, (n, k, box, beta)
            cases, worst = cases + 1, max(worst, float(tail / beta))
    missed = far_outputs()
    assert missed[1] > joint_score(missed[0], epsilon, missed[2], box_score=0.0), "the bound of the best total holds"
    bound = subject(missed[0], epsilon, missed[2], box_score=0.0, total_step=4.0)
    assert missed[1] <= bound
    return f"a drawn total keeps its bound with at most {worst:.2f} of the stated probability: {cases} exact cases"


def weight_of_totals(v: Any, step: Any, grown: Any) -> Any:
    """Of all multiples of a step together, in units of exp(-epsilon v / 2), where none counts more than that.
    grown: exp(epsilon step / 2)."""
    return 2 * v / step + 1 + 2 / (grown - 1)


@check(
    "ours:joint",
    rejects=[
        lambda v, step, grown: 2 * v / step + 2 / (grown - 1),
        lambda v, step, grown: 2 * v / step + 1 + 1 / (grown - 1),
        lambda v, step, grown: v / step + 1 + 2 / (grown - 1),
        *(lambda *known, by=by: by * weight_of_totals(*known) for by in (F(99, 100), F(101, 100))),
    ],
)
def check_weight_of_totals(subject: Callable[[Any, Any, Any], Any] = weight_of_totals) -> str:
    """The bound of a drawn total, for all n, v and steps: outputs that score v or more with a total score at least its
    distance to n, so all totals together weigh exp(-epsilon v/2) times this at most; and of an output's best total the
    nearest multiple scores at most half a step more.

    Let the first multiples beyond v from n be a and b farther, both in (0, s]. There are (2 v + a + b)/s - 1 within v,
    and a/s + exp(-epsilon a/2)/(1 - exp(-epsilon s/2)) is convex in a and the same at 0 and s; so is that of b (sympy).
    """
    tail, whole, least, most, share, totals, beta = z3.Reals("tail whole least most share totals beta")
    box = (share * least <= whole, tail <= totals * most, beta > 0)  # `least`, `most`: weights at the score and at v
    follows(*box, totals * most <= beta * share * least, goal=tail <= beta * whole)  # the best total: totals = 1
    count, part, total, apart = z3.Reals("count part total apart")
    near, moved = absolute(count - total * part), absolute(count - (total + apart) * part)
    follows(part >= 0, goal=moved <= near + absolute(apart) * part)  # parts sum to one
    a, s, rate = sympy.symbols("a s rate", positive=True)
    side = a / s + sympy.exp(-rate * a) / (1 - sympy.exp(-rate * s))
    each = 1 + 1 / (sympy.exp(rate * s) - 1)
    assert all(sympy.simplify(side.subs(a, end) - each) == 0 for end in (0, s)), "the ends"
    bend = sympy.diff(side, a, 2) * (1 - sympy.exp(-rate * s)) * sympy.exp(rate * a)
    assert sympy.simplify(bend - rate**2) == 0, "convex"
    v = sympy.symbols("v", positive=True)
    assert sympy.simplify(2 * v / s - 1 + 2 * each - weight_of_totals(v, s, sympy.exp(rate * s))) == 0
    for grown, steps, step in itertools.product((F(101, 100), F(2), F(50)), range(4), (1, 3)):  # n is a multiple itself
        assert subject(F(steps * step), F(step), grown) == 2 * steps + 1 + 2 / (grown - 1), "all of it, exactly"
    rng = np.random.default_rng(7)
    for _ in range(200):
        far, at, grown = 10 ** rng.uniform(-2, 1), rng.random(), 1 + 10 ** rng.uniform(-1, 2)  # in steps of 1
        beyond = np.maximum(np.abs(np.arange(-600, 601) - at) - far, 0.0)
        assert np.sum(grown**-beyond) <= float(subject(far, 1, grown)) * (1 + 1e-9), (far, at, grown)
    return "a drawn total: all multiples of its step weigh 2 v/s + 1 + 2/(e^(eps s/2) - 1) times e^(-eps v/2) at most"


def far_outputs() -> tuple[float, float, float]:
    """Three quartiles of 400 records: nearly all of the prior above all records, the rest where ranks are right. Log of
    the share of these, the least score of the others, and a probability that is below theirs."""
    n, levels, share = 400, (F(1, 4), F(1, 2), F(3, 4)), F(1, 10**30)
    right, wrong = (drawn_tails(counts, levels, 4) for counts in ((n // 4,) * 4, (n, 0, 0, 0)))
    near, far = share * sum(right.values(), F(0)), (1 - share) * sum(wrong.values(), F(0))
    return math.log(share), float(min(wrong)), float(far / (near + far)) * (1 - 1e-9)
