"""What floors cost at the ends of the data and down a uniform tree: the slack of lem:error, level by level."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from pq.bounds import binary_rounding, cor_multiple, dyadic_rounding, fibonacci, lem_error, thm_binary
from proofs_checks.engine.registry import check
from proofs_checks.tools.cases import mix
from proofs_checks.tools.exact import (
    INFINITY,
    Algorithm,
    Grid,
    Points,
    Prior,
    Restricted,
    adapt,
    gap,
    log_ball,
    mechanism,
    probability,
)

F = Fraction
HALF = F(1, 2)
Slack = Callable[..., Fraction]


def worst_edge_slack(relative: Fraction, edge: str) -> Fraction:
    """Largest |shift of the rounded target| - weighted error of the inner edge, over all integers.

    The node reaches from an end of the data to an edge with H records below it, which should have had F + t, t in
    [0, 1); on the right the same from above. x = p F / r matters by its fraction k/r, t by being 0 or nearly 1.
    """
    p, r = relative.numerator, relative.denominator
    share = p if edge == "left" else r - p
    worst = F(-1)
    for k, off in itertools.product(range(r), range(-2 * r, 2 * r + 1)):
        for nearly in (F(0), 1 - F(1, 4 * r)):
            if edge == "left":
                shift = (k + share * off) // r - math.floor((k + share * nearly) / F(r))
            else:  # target = floor(q~ n + (1 - q~) L) for the integers n and L
                shift = (k + share * off) // r - math.floor(F(k) / r + share * nearly / r)
            worst = max(worst, abs(shift) - F(share * abs(off), r))
    return worst


@check(
    "lem:error",
    "ours:edge-slack",
    code=lem_error,
    rejects=[
        lambda relative, edge: lem_error(relative),
        lambda relative, edge: lem_error(relative, edge="right" if edge == "left" else "left"),
        lambda relative, edge: F(1, 2),
        lambda relative, edge: lem_error(relative, edge=edge) - F(1, relative.denominator),
    ],
)
def check_edge_slack(subject: Slack = lambda relative, edge: lem_error(relative, edge=edge)) -> str:
    """At an end of the data the slack at q~ = p/r is (p + r - 2)/r on the left, (2r - p - 2)/r on the right: the
    largest case over all integers for r <= 9, and attained by records."""
    for r in range(2, 10):
        for p in (p for p in range(1, r) if math.gcd(p, r) == 1):
            for edge in ("left", "right"):
                claimed = subject(F(p, r), edge)
                assert claimed == F(p + r - 2 if edge == "left" else 2 * r - p - 2, r), "as the row says"
                assert worst_edge_slack(F(p, r), edge) == claimed, (p, r, edge)
                assert _attained(F(p, r), edge) == claimed, (p, r, edge)
    return "nodes at an end of the data: slack (p + r - 2)/r and (2r - p - 2)/r at p/r, 1/2 at 1/2, all r <= 9"


def _attained(relative: Fraction, edge: str) -> Fraction:
    """The largest excess that the records 1, ..., 6 r show, an inner edge up to r ranks off."""
    r = relative.denominator
    n, worst = 6 * r, F(-1)
    for whole, nearly, off in itertools.product(range(2 * r, 3 * r), (F(0), 1 - F(1, 4 * r)), range(-r, r + 1)):
        inner, count = (whole + nearly) / n, whole + off
        q = relative * inner if edge == "left" else inner + relative * (1 - inner)
        base, size = (0, count) if edge == "left" else (count, n - count)
        o = base + math.floor(relative * size) + HALF  # gap zero in the node
        weight = relative if edge == "left" else 1 - relative
        worst = max(worst, gap(Grid(n), q, o) - weight * gap(Grid(n), inner, count + HALF))
    return worst


def end_witness(relative: Fraction, edge: str) -> tuple[int, Fraction, Fraction, int] | None:
    """n, the quantile of the node, its inner edge's and the records below that edge, where the slack is attained."""
    r = relative.denominator
    n, slack = 6 * r, lem_error(relative, edge=edge)  # type: ignore[arg-type]
    for whole, nearly, off in itertools.product(range(2 * r, 3 * r), (F(0), 1 - F(1, 4 * r)), range(-r, r + 1)):
        inner, count = (whole + nearly) / n, whole + off
        q = relative * inner if edge == "left" else inner + relative * (1 - inner)
        base, size = (0, count) if edge == "left" else (count, n - count)
        weight = relative if edge == "left" else 1 - relative
        o = base + math.floor(relative * size) + HALF
        if gap(Grid(n), q, o) - weight * gap(Grid(n), inner, count + HALF) == slack:
            return n, q, inner, count
    return None


@check(
    "lem:empirical",
    "eq:empirical-probability",
    "ours:edge-slack",
    code=lem_error,
    rejects=[
        *(lambda relative, edge, by=by: F(by, 100) * lem_error(relative, edge=edge) for by in (99, 101)),
        *(
            lambda relative, edge, end=end: F(99 if edge == end else 100, 100) * lem_error(relative, edge=edge)
            for end in ("left", "right")
        ),
        lambda relative, edge: lem_error(relative),
    ],
)
def check_end_node_is_sharp(subject: Slack = lambda relative, edge: lem_error(relative, edge=edge)) -> str:
    """The bound on one node's gap at an end of the data, where the inner edge attains the slack and the prior is one
    atom on the node's target: it comes out for certain, and the bound is one."""
    z, cases = F(1, 3), 0
    for r, edge in itertools.product(range(2, 8), ("left", "right")):
        for relative in (F(p, r) for p in range(1, r) if math.gcd(p, r) == 1):
            found = end_witness(relative, edge)
            assert found is not None, f"no data attain the slack at {relative}"
            n, q, inner, count = found
            low, high = (-INFINITY, count + HALF) if edge == "left" else (count + HALF, INFINITY)
            data, weight = Grid(n), relative if edge == "left" else 1 - relative
            view = Restricted(data, low, high)
            o = (0 if edge == "left" else count) + math.floor(relative * view.size) + F(3, 4)
            error = weight * gap(data, inner, count + HALF)
            excess = gap(data, q, o) - error - subject(relative, edge)
            for adaptation in ("edge", "conditional"):
                prior = adapt({o: F(1)}, low, high, adaptation)
                assert mechanism(view, relative, prior, z) == {o: 1} and view.below(o) == math.floor(
                    relative * view.size
                )
            steps = 100 * r  # both sides to this power, so that the exponents are whole
            assert z ** int(steps * excess) >= 1, (relative, edge, "the bound is below the probability")
            assert excess == 0, (relative, edge, "looser than it need be")
            cases += 1
    return f"one node's bound at an end of the data is attained for every p/r with r < 8, on both sides ({cases} nodes)"


def tree_rounding(levels: int, factor: int, slack: Slack = lem_error) -> Fraction:
    """Largest rounding of a node in the uniform binary tree: factor times half of each edge's, and of its own slack."""
    worst: dict[int, Fraction] = {0: F(0), 2**levels: F(0)}
    for level in range(levels):
        step = 2 ** (levels - level - 1)
        for at in range(step, 2**levels, 2 * step):
            low, high = at - step, at + step
            if (low, high) == (0, 2**levels):
                own = F(0)  # the root has no error to round
            else:
                own = slack(HALF, edge="left" if low == 0 else "right" if high == 2**levels else "none")
            worst[at] = factor * (own + (worst[low] + worst[high]) / 2)
    return max(worst.values())


@check(
    "thm:binary",
    "step:binary-display",
    "ours:edge-slack",
    "ours:dyadic-conditional",
    code=(binary_rounding, dyadic_rounding),
    rejects=[
        (lambda k: 2 * (fibonacci(k + 1) - 1), dyadic_rounding),
        (lambda k: binary_rounding(k) - (k > 1), dyadic_rounding),
        (lambda k: max(k - 1, 0), dyadic_rounding),
        (binary_rounding, lambda k: float(k - 1)),
        (binary_rounding, lambda k: 0.99 * dyadic_rounding(k)),
    ],
)
def check_tree_rounding(
    subject: tuple[Callable[[int], int], Callable[[int], float]] = (binary_rounding, dyadic_rounding),
) -> str:
    """Node by node in the tree: F_{k+2} - 2 ranks under edge adaptation (3, 6, 32 at k = 3, 4, 7), where an edge counts
    in full, and R_k = 1 + (R_{k-1} + R_{k-2})/2 from R_2 = 1/2 where it counts half."""
    own = [2 * lem_error(HALF, edge=edge) for edge in ("left", "right", "none")]  # type: ignore[arg-type]
    assert own == [1, 1, 2], "as the row says"
    assert [subject[0](k) for k in (3, 4, 7)] == [3, 6, 32], "as the row says"
    assert [subject[1](k) for k in (1, 2)] == [0, HALF], "where its recurrence starts"
    for levels in range(1, 13):
        assert tree_rounding(levels, 2) == subject[0](levels) == fibonacci(levels + 2) - 2, levels
        assert tree_rounding(levels, 1) == F(subject[1](levels)), levels
        before, now, then = (F(subject[1](levels + i)) for i in range(3))
        assert then == 1 + (now + before) / 2, levels
    return "rounding of a uniform tree: F_(k+2) - 2 ranks under edge adaptation, 2k/3 - 7/9 and less when restricted"


def two_ranks(priors_of: Callable[[int], Prior]) -> tuple[Grid, Algorithm]:
    """n = 11, m = 7: the node of 3/8 between perfect edges aims one rank too low, and takes a cell two ranks low."""
    quantiles = tuple(F(i, 8) for i in range(1, 8))
    priors = tuple({o + F(i, 16): mass for o, mass in priors_of(i).items()} for i in range(1, 8))
    return Grid(11), Algorithm(quantiles, priors, (F(1, 10**40),) * 7)


def one_and_two_low(index: int) -> Prior:
    """Nearly all mass on the optimal cell; for 3/8 a hundredth there, and the rest two ranks below."""
    rank = math.floor(F(index, 8) * 11)
    return {rank + HALF: F(1, 100), rank - 2 + HALF: F(99, 100)} if index == 3 else {rank + HALF: F(1)}


@check("thm:binary", "ours:edge-slack", code=thm_binary, rejects=[0, 1])
def check_two_ranks(subject: int | None = None) -> str:
    """Two ranks of rounding are lost at m = 7 with certainty almost, whatever epsilon is: one rank would not do. By
    rounding alone no more are: where each node takes one of its best cells, those of the first two levels aim at the
    right rank whatever n is, and those of the third at most one rank too low, so that their best cells are two off."""
    data, algorithm = two_ranks(one_and_two_low)
    for z in (algorithm.z[0], F(0)):  # and in the limit of large epsilon
        law = replace(algorithm, z=(z,) * 7).law(data)
        failure = probability(law, lambda outputs: max(algorithm.gaps(data, outputs)) >= 2)
        assert round(float(failure), 2) == 0.99, "as the row says"
    for n, at in itertools.product(range(8), range(1, 8)):  # eight records more move every rank by a whole number
        step = at & -at
        low, high = (n * edge // 8 for edge in (at - step, at + step))
        off = n * at // 8 - (low + (high - low) // 2)
        assert (off == 0) if step > 1 else off in (0, 1), (n, at)
    epsilon = -2 * math.log(algorithm.z[0]) * 3
    log_psi = -float(log_ball(algorithm.inverse_psi_sum(data) / 7))
    bound = thm_binary(log_psi, epsilon, 7, 0.5, rounded=subject is None) + (subject or 0)
    assert bound >= 2, f"claimed {bound:.2f} w.p. 1/2, gap 2 w.p. {float(failure):.3f}"
    return f"m = 7, n = 11, epsilon = {epsilon:.0f}: gap 2 w.p. {float(failure):.3f} by rounding alone, 3 allowed"


@check(
    "cor:multiple",
    "cor:cauchy-robust",
    code=cor_multiple,
    rejects=[
        lambda *a: _moved(a, 0.0, -binary_rounding(3)),
        lambda *a: _moved(a, 0.0, 1 - binary_rounding(3)),
        lambda *a: _moved(a, -dyadic_rounding(3), 0.0),
        lambda *a: cor_multiple(*a, version="paper"),
    ],
)
def check_multiple_rounding(subject: Callable[..., tuple[float, float]] = cor_multiple) -> str:
    """Consistency with two ranks of rounding (half of the weight two ranks low), robustness with one: exact laws, and
    in the limit of large epsilon, where each node takes one of its best cells."""
    z, epsilon = F(1, 10**40), 6 * 40 * math.log(10)
    for low, ranks in ((True, 2), (False, 1)):
        priors = _apart(partial(_mixed, low=low))
        quantiles = tuple(F(i, 8) for i in range(1, 8))
        failure = min(_chance(Grid(11), Algorithm(quantiles, priors, (v,) * 7), ranks) for v in (z, F(0)))
        robust, consistent = subject(1.01, 2.0, 0.05, epsilon, 7, 0.5, 0.99 if low else 0.5)
        assert failure > HALF, (low, float(failure))
        assert (consistent if low else min(robust, consistent)) >= ranks, (robust, consistent)
    return "cor:multiple: two ranks of rounding are lost at m = 7 although the prediction is perfect, one robustly"


def _moved(arguments: tuple[Any, ...], robust: float, consistent: float) -> tuple[float, float]:
    """Both guarantees of cor:multiple with ranks added."""
    found = cor_multiple(*arguments)
    return found[0] + robust, found[1] + consistent


def _parts_of(*arguments: Any, leading: float, ranks: float, side: int) -> tuple[float, float]:
    """The leading term of one guarantee times a number, and its ranks changed by as many."""
    found, levels = list(cor_multiple(*arguments)), arguments[4].bit_length()
    own = (dyadic_rounding(levels), float(binary_rounding(levels)))[side]
    found[side] = leading * (found[side] - own) + own + ranks
    return found[0], found[1]


@check(
    "cor:multiple",
    "cor:cauchy-robust",
    code=cor_multiple,
    rejects=[
        *(partial(_parts_of, leading=factor, ranks=0.0, side=side) for factor in (0.5, 0.99, 1.01) for side in (0, 1)),
        partial(_parts_of, leading=1.0, ranks=1.0, side=0),
        partial(_parts_of, leading=1.0, ranks=-1.0, side=1),
        lambda *a: cor_multiple(*a, version="paper"),
        lambda *a: cor_multiple(*a[:-1], min(max(a[-1], 0.1), 0.9)),
        lambda radius, width, *a: cor_multiple(max(radius, width / 2), width, *a),
    ],
)
def check_multiple_formula(subject: Callable[..., tuple[float, float]] = cor_multiple) -> str:
    """Both guarantees term by term, m = 1 to 127: linearity leaves the weight of the trusted prior, or of the perfect
    one, in the logarithm; d^2 and the restricted tree's ranks, d (F_{d+2} - 1) and the edge tree's, node by node."""
    settings = ((1.01, 2.0, 0.05, 0.7, 0.1), (40.0, 3.0, 1e-6, 0.02, 0.5), (0.5, 100.0, 2.0, 9.0, 1e-9))
    for (radius, width, psi, epsilon, beta), weight in itertools.product(settings, (0.0, 0.2, 0.75, 1.0)):
        mass = 2 * width * psi / math.pi / (width**2 + 4 * radius**2)
        for levels in range(1, 8):
            m = 2**levels - 1
            found = subject(radius, width, psi, epsilon, m, beta, weight)
            constants = levels**2, levels * (fibonacci(levels + 2) - 1)
            for side, (constant, share) in enumerate(zip(constants, (weight * mass, 1 - weight), strict=True)):
                excess = math.log(m / (beta * share)) if share else math.inf  # a prior that is not there says nothing
                wanted = 2 / epsilon * constant * excess + float(tree_rounding(levels, side + 1))
                assert math.isclose(found[side], wanted, rel_tol=1e-9), (m, weight, side)
    return (
        "cor:multiple: d^2 and R_d on the trusted prior, d (F_(d+2) - 1) and F_(d+2) - 2 on the perfect one, m to 127"
    )


def _mixed(index: int, low: bool) -> Prior:
    """A perfect prediction and a trusted prior: flat, or for 3/8 all of it two ranks low."""
    rank = math.floor(F(index, 8) * 11)
    if index == 3 and low:
        return mix({rank + HALF: F(1)}, {rank - 2 + HALF: F(1)}, F(99, 100))
    return mix({rank + HALF: F(1)}, {k + HALF: F(1, 12) for k in range(12)}, HALF)


def _apart(prior_of: Callable[[int], Prior]) -> tuple[Prior, ...]:
    """The atoms of one cell in the order of the quantiles, and for the path to 3/8 only: the others are sure."""
    found = []
    for index in range(1, 8):
        rank = math.floor(F(index, 8) * 11)
        prior = prior_of(index) if index in (2, 3, 4) else {rank + HALF: F(1)}
        found.append({o + F(index, 16): mass for o, mass in prior.items()})
    return tuple(found)


def _chance(data: Grid, algorithm: Algorithm, ranks: int) -> Fraction:
    """Probability that some gap reaches so many ranks."""
    return probability(algorithm.law(data), lambda outputs: max(algorithm.gaps(data, outputs)) >= ranks)


Ties = Callable[[Fraction, int], tuple[Fraction, Fraction]]


def tied_records(relative: Fraction, ties: int) -> tuple[Fraction, Fraction]:
    """What they add in the node, and to the reverse at its lower edge."""
    return (1 - relative) * ties, relative * ties


@check(
    "lem:error",
    "ours:edge-slack",
    rejects=[
        lambda relative, ties: (F(0), F(0)),
        lambda relative, ties: tied_records(relative, ties)[::-1],
        lambda relative, ties: ((1 - relative) * ties, (1 - relative) * ties),
        *(
            lambda relative, ties, by=by: (by[0] * (1 - relative) * ties, by[1] * relative * ties)
            for by in ((F(99, 100), 1), (F(101, 100), 1), (1, F(99, 100)), (1, F(101, 100)))
        ),
    ],
)
def check_tied_edge(subject: Ties = tied_records) -> str:
    """A lower edge that equals t records throws them all out of the node, so the node's target moves by t, and its
    gap counts none of them: (1 - q~) t ranks beyond the edges' errors, attained; at the edge itself, which lies below
    them, q~ t in the reverse. An upper edge on t records adds nothing: they lie above it for its own gap too."""
    for ties, relative in itertools.product((1, 2, 5, 1000), (F(1, 4), HALF, F(3, 4))):
        inside = 4 * 12
        data = Points((F(1),) * ties + tuple(F(2 + i) for i in range(inside)))
        view = Restricted(data, F(1), INFINITY)
        assert view.size == inside, "the tied records are in no node above the edge"
        o = F(3, 2) + math.floor(relative * view.size)  # gap zero in the node
        lost = gap(data, relative, o) - (1 - relative) * gap(data, F(0), F(1))
        at = gap(data, relative, F(1)) - abs(view.below(F(1)) - math.floor(relative * view.size))
        rounding = 1  # floors of both targets
        for claimed, found in zip(subject(relative, ties), (lost, at), strict=True):
            assert claimed - rounding < found <= claimed + rounding, (ties, relative, found)
        above = Points(tuple(F(1 + i) for i in range(inside)) + (F(100),) * ties)
        beneath = Restricted(above, -INFINITY, F(100))
        own = F(inside, inside + ties)  # the quantile that the upper edge gives without error
        o = math.floor(relative * beneath.size) + HALF
        assert beneath.size == inside and gap(above, own, F(100)) == 0
        assert gap(above, relative * own, o) < rounding + 1, "an upper edge"
    _tied_edges_keep(subject)
    return "an edge on t equal records adds (1 - q~) t ranks in its node, q~ t to the reverse at itself; no more"


def _tied_edges_keep(subject: Ties) -> None:
    """Both items of lem:error with ties on the edges of a node, quantiles and outputs of all kinds; the first at and
    beyond the edges as well, where outputs up to the lower edge need nothing."""
    for ties, below, relative in itertools.product((1, 4), (0, 2), (F(1, 3), HALF, F(3, 4))):
        values = (*(F(-i) for i in range(below)), *(F(1),) * ties, *map(F, range(2, 6)), *(F(9),) * 2)
        data, n = Points(tuple(sorted(values))), len(values)
        view = Restricted(data, F(1), F(9))
        inner, at = subject(relative, ties)
        for lo, hi in itertools.combinations([F(i, n) for i in range(n + 1)], 2):
            edges = (1 - relative) * gap(data, lo, F(1)) + relative * gap(data, hi, F(9)) + lem_error(relative)
            for o in (F(-3, 2), HALF, F(1), F(3, 2), F(7, 2), F(9), F(10)):
                node = abs(view.below(o) - math.floor(relative * view.size))
                whole = gap(data, lo + relative * (hi - lo), o)
                assert not 1 <= o <= 9 or whole <= node + edges + (at if o == 1 else inner), (ties, lo, hi, o)
                assert node <= whole + edges + (inner if o > 1 else 0), (ties, lo, hi, o)
