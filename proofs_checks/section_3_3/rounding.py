"""lem:error: how the gap in a node and the gap in the data differ, and each step of its proof."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import sympy
import z3

from pq.bounds import lem_error
from proofs_checks.engine.registry import check
from proofs_checks.tools.broken import SLACK_ZERO
from proofs_checks.tools.cases import GAP_SAMPLE
from proofs_checks.tools.exact import Algorithm, Grid, Points, Position, Restricted, adapt, gap, mechanism
from proofs_checks.tools.solver import absolute, prove

F = Fraction
HALF = Fraction(1, 2)


@check(
    "text:aq-bound",
    "eq:empirical-probability",
    "lem:error",
    code=lem_error,
    rejects=[lem_error, lambda: F(1)],
)
def check_error_as_printed(subject: Callable[[], Fraction] = lambda: lem_error(version="paper")) -> str:
    """Counterexample to both items: three records, edges with no error, and the node's target one rank off."""
    data = Grid(3)
    lo, hi, q = Fraction(1, 4), Fraction(1, 2), Fraction(3, 8)
    low, high, relative = HALF, 1 + HALF, (q - lo) / (hi - lo)
    assert gap(data, lo, low) == gap(data, hi, high) == 0
    view = Restricted(data, low, high)
    inside: Position = Fraction(3, 4)  # below the one record of the node: gap zero there
    assert abs(view.below(inside) - math.floor(relative * view.size)) == 0
    assert gap(data, q, inside) == 1
    assert gap(data, q, inside) > 0 + subject(), "item 2 survives"
    above = 1 + Fraction(1, 4)
    assert abs(view.below(above) - math.floor(relative * view.size)) == 1
    assert gap(data, q, above) == 0
    assert gap(data, q, above) + subject() < 1, "item 1 survives"
    return (
        "lem:error as printed is false: n = 3, quantile 3/8 between exact estimates of 1/4 and 1/2; "
        "gap 0 in the node is gap 1 in the data, and the reverse"
    )


@check(
    "lem:error",
    "step:error-second-display",
    code=lem_error,
    rejects=[lambda: Fraction(0), lambda: Fraction(1), lambda: Fraction(199, 100)],
)
def check_error_rounded(subject: Callable[[], Fraction] = lem_error) -> str:
    """lem:error with floors and slack 2, strict, for all integers and all relative quantiles; item 1 outside the
    interval too.
    """
    # y0 = (1 - q~) f_lo + q~ f_hi; q n = y0 + r with 0 <= r < 1; the restricted target in original ranks is floor(y0
    # + u + v)
    u, v, y0, r = z3.Reals("u v y0 r")
    rank, target, c, low, high = z3.Ints("rank target c low high")
    slack = z3.RealVal(str(subject()))
    floors = z3.And(r >= 0, r < 1, rank <= y0 + r, y0 + r < rank + 1, target <= y0 + u + v, y0 + u + v < target + 1)
    edge_error = absolute(u) + absolute(v)
    inside = z3.And(floors, low <= target, target <= high)
    prove(z3.Implies(floors, target - rank < edge_error + 1), "a target too high is less than one rank off")
    prove(z3.Implies(floors, rank - target < edge_error + slack), "a target too low is less than the slack off")
    prove(
        z3.Implies(z3.And(inside, c <= low), target - low < absolute(c - rank) + edge_error + 1), "item 1 on the left"
    )
    right = high - target < absolute(c - rank) + edge_error + slack
    prove(z3.Implies(z3.And(inside, c >= high), right), "item 1 on the right")
    return (
        "lem:error holds with floors after adding 2 ranks (strictly less), both items, every o; 1 rank where "
        "the target is too high"
    )


def worst_slack(relative: Fraction) -> Fraction:
    """Largest |shift of the rounded target| - weighted edge error, over all integers, by its finite set of cases."""
    p, d = relative.numerator, relative.denominator
    worst = Fraction(-1)
    for f, a, b in itertools.product(range(d), range(-d, d + 1), range(-d, d + 1)):
        # f: fraction of y0 in units of 1/d; a, b: signed errors of the edges in ranks; r just below one, just enough,
        # or zero
        edges = Fraction((d - p) * abs(a) + p * abs(b), d)
        target = (f + (d - p) * a + p * b) // d
        worst = max(worst, abs(target) - edges, abs(target - (1 if f else 0)) - edges)
    return worst


def witness(relative: Fraction, slack: Fraction) -> tuple[int, Fraction, Fraction, int, int] | None:
    """n, quantiles of the edges and counts below them where the slack is attained by real data, edges inside the
    data: y0 has the fraction 1/d, and an upper edge that is too low takes 2/d from it. The node is wide enough for
    both targets.
    """
    p, d = relative.numerator, relative.denominator
    n, low = d * d + 64 * d, 4 + d
    top, inverse = 1 - Fraction(1, 4 * d), pow(p, -1, d)
    f_hi, off = low + d * (d + 1) + inverse, 2 * inverse % d
    lo, hi, high = (low + top) / n, (f_hi + top) / n, f_hi - off
    rank = math.floor((lo + relative * (hi - lo)) * n)
    if rank - low - math.floor(relative * (high - low)) - relative * off >= slack:
        return n, lo, hi, low, high
    return None


@check(
    "lem:error",
    code=lem_error,
    rejects=[lambda q: Fraction(2), lambda q: Fraction(1), lambda q: 2 - min(q, 1 - q), *SLACK_ZERO],
)
def check_error_sharp(subject: Callable[[Fraction], Fraction] = lem_error) -> str:
    """The slack is exactly right in both items: the largest case for each relative quantile with denominator up to 11,
    and attained by data for these and for larger ones.
    """
    for d in (*range(2, 12), 12, 97, 1000):
        for p in (p for p in (range(1, d) if d < 12 else (1, d // 2 - 1, d - 1)) if math.gcd(p, d) == 1):
            relative = Fraction(p, d)
            assert d > 11 or worst_slack(relative) == subject(relative), (relative, subject(relative))
            found = witness(relative, subject(relative))
            assert found is not None, f"no data attain the slack at {relative}"
            n, lo, hi, low, high = found
            data, view = Grid(n), Restricted(Grid(n), low + HALF, high + HALF)
            q = lo + relative * (hi - lo)
            o = low + math.floor(relative * view.size) + HALF  # gap zero in the node
            edges = (1 - relative) * gap(data, lo, low + HALF) + relative * gap(data, hi, high + HALF)
            assert gap(data, q, o) - edges == subject(relative), (relative, "the reverse")
            o = math.floor(q * n) + HALF  # gap zero in the data
            assert abs(view.below(o) - math.floor(relative * view.size)) - edges == subject(relative), relative
    return "the slack 2 - 2/d at q~ = p/d is attained by data in both items, and never exceeded for d <= 11"


@check(
    "lem:error",
    "step:error-second-display",
    code=lem_error,
    rejects=[
        *(lambda w, by=by: 2 - by * w for by in (F(203, 100), F(3))),
        *(lambda w, by=by: by * (2 - 2 * w) for by in (F(99, 100), F(101, 100))),
        lambda w: 1 + 0 * w,
    ],
)
def check_error_any_denominator(subject: Callable[[Any], Any] = lambda w: 2 - 2 * w) -> str:
    """Slack 2 - 2/d for every denominator d at once, both items: targets before their floors are multiples of w = 1/d.

    subject: the slack, of w.
    """
    u, v, y0, w = z3.Reals("u v y0 w")
    whole, rank, target, c, low, high = z3.Ints("whole rank target c low high")
    floors = (
        z3.And(w > 0, 2 * w <= 1, whole <= y0, y0 <= whole + 1 - w, target <= y0 + u + v, y0 + u + v <= target + 1 - w),
        z3.Or(rank == whole, z3.And(rank == whole + 1, y0 >= whole + w)),  # q n = y0 + r, r < 1
    )
    error = absolute(u) + absolute(v) + subject(w)
    prove(z3.Implies(z3.And(*floors), absolute(target - rank) <= error), "the second display")
    node, data = absolute(c - target), absolute(c - rank)
    prove(z3.Implies(z3.And(*floors), z3.And(node <= data + error, data <= node + error)), "in the node")
    beyond = z3.And(*floors, low <= target, target <= high)
    prove(z3.Implies(z3.And(beyond, c <= low), target - low <= data + error), "item 1 on the left")
    prove(z3.Implies(z3.And(beyond, c >= high), high - target <= data + error), "item 1 on the right")
    for d in (2, 3, 7, 100):
        assert lem_error(F(1, d)) == lem_error(F(d - 1, d)) == subject(F(1, d)), d
    return "lem:error with slack 2 - 2/d at q~ = p/d: both items, for all integers and every d (z3)"


@check(
    "eq:empirical-probability",
    "lem:empirical",
    code=lem_error,
    rejects=[
        (lambda q: F(0), F(1)),
        (lambda q: F(1), F(1)),
        *((lambda q, by=by: F(by, 100) * lem_error(q), F(1)) for by in (99, 101)),
        (lem_error, F(101, 100)),
        (lem_error, F(99, 100)),
        (lem_error, F(2)),
    ],
)
def check_node_is_sharp(subject: tuple[Callable[[Fraction], Fraction], Fraction] = (lem_error, F(1))) -> str:
    """The bound on one node's gap where the edges attain the slack and the prior is one atom, on the node's target: it
    comes out for certain, and the bound is its mass. So it is attained by a mass of one, fails for more under edge
    adaptation, and holds for less; conditional adaptation makes every mass one.

    subject: c, and the largest total mass of a prior.
    """
    slack, largest = subject
    z = F(1, 3)
    for d in range(2, 8):
        for p in (p for p in range(1, d) if math.gcd(p, d) == 1):
            relative = F(p, d)
            found = witness(relative, lem_error(relative))
            assert found is not None, f"no data attain the slack at {relative}"
            n, lo, hi, *ranks = found
            data, (low, high) = Grid(n), (rank + HALF for rank in ranks)
            view = Restricted(data, low, high)
            target = math.floor(relative * view.size)
            o = ranks[0] + target + F(3, 4)
            gamma = gap(data, lo + relative * (hi - lo), o)
            error = (1 - relative) * gap(data, lo, low) + relative * gap(data, hi, high)
            steps = 100 * d  # both sides to this power, so that the exponents are whole
            limit = z ** int(steps * (gamma - error - slack(relative)))
            for adaptation, mass in (("edge", largest), ("edge", largest / 2), ("conditional", F(100))):
                prior = adapt({o: mass}, low, high, adaptation)
                chance = mechanism(view, relative, prior, z)[o]
                inner = sum(share * z ** abs(view.below(v) - target) for v, share in prior.items())
                assert chance == 1 and (chance * inner) ** steps <= limit, (relative, adaptation, mass)
                assert mass == largest / 2 or (chance * inner) ** steps == limit, "looser than it need be"
    return "one node's bound is attained by an atom of mass one for every p/d with d < 8, so no smaller c will do"


@check("lem:error", code=lem_error, rejects=[lambda s=s, k=k: Fraction(s, 10**k) for s in (-1, 1) for k in (2, 6)])
def check_error_unrounded(subject: Callable[[], Fraction] = lambda: lem_error(rounded=False)) -> str:
    """lem:error for the unrounded gap: both items, item 1 outside the interval too, with no slack."""
    # u, v: weighted signed errors of the edges. y = q n. In restricted ranks the target is y + u + v, less the count
    # at the left edge
    u, v, y, low, high, c = z3.Reals("u v y low high c")
    slack = z3.RealVal(str(subject()))
    edge_error = absolute(u) + absolute(v) + slack
    inside = z3.And(low <= c, c <= high)
    target = y + u + v  # = (1 - q~) low + q~ high, between them
    ordered = z3.And(low <= target, target <= high)
    prove(z3.Implies(z3.And(ordered, inside), absolute(c - target) <= absolute(c - y) + edge_error), "item 1 inside")
    prove(z3.Implies(z3.And(ordered, inside), absolute(c - y) <= absolute(c - target) + edge_error), "item 2")
    prove(z3.Implies(z3.And(ordered, c <= low), target - low <= absolute(c - y) + edge_error), "item 1 on the left")
    prove(z3.Implies(z3.And(ordered, c >= high), high - target <= absolute(c - y) + edge_error), "item 1 on the right")
    for one, other in ((target, y), (y, target)):  # both items are attained, so that no slack is left either
        search = z3.Solver()
        search.add(ordered, inside, u > 0, v > 0, absolute(c - one) >= absolute(c - other) + edge_error)
        assert search.check() == z3.sat, "looser than it need be"
    return "lem:error holds without slack for the unrounded gap |#{x < o} - q n|, both items, item 1 for every real o"


@check("lem:error", rejects=[lambda t: (t, 1 - t), lambda t: (1 - t, 1 - t)])
def check_error_identity(subject: Callable[..., tuple] = lambda t: (1 - t, t)) -> str:
    """The identity behind both proofs: q~ (B - A) + A - q n is the weighted sum of the signed edge errors."""
    A, B, n, lo, hi, t = sympy.symbols("A B n q_lo q_hi q_rel")
    left, right = subject(t)
    q = (1 - t) * lo + t * hi
    difference = t * (B - A) + A - q * n - (left * (A - lo * n) + right * (B - hi * n))
    assert sympy.expand(difference) == 0
    return "the shift of a node's target is the weighted sum of its edges' signed errors (sympy)"


@check("step:error-composition", rejects=[lambda q, lo, hi: 0, lambda q, lo, hi: -1, lambda q, lo, hi: 2])
def check_target_composition(subject: Callable[[Fraction, int, int], int] = lambda q, lo, hi: 1) -> str:
    """A step of both proofs: floor(q n) against floor(q~ (floor(q_hi n) - floor(q_lo n))) + floor(q_lo n)."""
    largest, allowed = 0, 0
    for n, d in itertools.product(range(1, 25), range(2, 9)):
        for lo, mid, hi in itertools.combinations(range(d + 1), 3):
            f_lo, f_hi = lo * n // d, hi * n // d
            composed = f_lo + ((mid - lo) * (f_hi - f_lo)) // (hi - lo)
            off = mid * n // d - composed
            assert 0 <= off <= subject(Fraction(mid, d), lo, hi), (n, d, lo, mid, hi)
            largest, allowed = max(largest, off), max(allowed, subject(Fraction(mid, d), lo, hi))
    assert largest == allowed, "more than is needed"
    assert (3 * 3 // 8, (3 // 2 - 3 // 4) // 2 + 3 // 4) == (1, 0), (
        "n = 3, q = 3/8 between 1/4 and 1/2, as the row says"
    )
    (y0, r), (rank, composed) = z3.Reals("y0 r"), z3.Ints("rank composed")  # q n = y0 + r, (1 - q~) lo + q~ hi = y0
    floors = z3.And(r >= 0, r < 1, rank <= y0 + r, y0 + r < rank + 1, composed <= y0, y0 < composed + 1)
    prove(z3.Implies(floors, z3.And(composed <= rank, rank <= composed + 1)), "for all n and quantiles")
    return "floor(q n) exceeds its composition from the edges' floors by 0 or 1; the proofs take them to be equal"


def right_gap(relative: Fraction, size: int) -> int:
    """Gap in the node of an output to the right of its interval: ceil((1 - q~) n)."""
    return math.ceil((1 - relative) * size)


@check(
    "step:error-right",
    rejects=[
        lambda q, n: math.floor((1 - q) * n),
        lambda q, n: math.ceil((1 - q) * n) + 1,
        lambda q, n: n - math.floor(q * n) + 1,
    ],
)
def check_right_of_interval(subject: Callable[[Fraction, int], int] = right_gap) -> str:
    """A step of the proof of item 1: for o beyond the right edge the gap is n - floor(q~ n), which is ceil((1 - q~) n)
    for every q~ and n."""
    size_, below, above, share = *z3.Ints("size below above"), z3.Real("share")  # share = q~ n
    rounded = z3.And(below <= share, share < below + 1, above >= size_ - share, above < size_ - share + 1)
    prove(z3.Implies(rounded, size_ - below == above), "for all n and relative quantiles")
    for relative, size in itertools.product(GAP_SAMPLE, range(30)):
        view = Restricted(Grid(size + 2), 1 + HALF, size + 1 + HALF)  # one record on either side
        for o in (size + 1 + F(3, 4), size + 2 + HALF):
            beyond = abs(view.below(o) - math.floor(relative * view.size))
            assert view.size == size and beyond == subject(relative, size), (relative, size, o)
    return "beyond the right edge the gap is ceil((1 - q~) n); the printed floor is one too small unless q~ n is whole"


@check("step:error-left", rejects=[(0, 0), (-1, 0), (2, 0), (1, -1), (1, 1)])
def check_error_left(subject: tuple[int, int] = (1, 0)) -> str:
    """For o < a^ the proof needs floor(q~ (B - A)) <= floor(q~ B) + floor((1 - q~) A) - C + 1; without the 1 it fails.

    A, B: records below the edges; C <= A: records below o.  The display for o > b^, where C >= B, is right, with the
    ceiling too.

    subject: what the one and the other need on the right.
    """
    more, right_more = subject
    big, small, other, part, rest, whole, right = z3.Ints("B A C part rest whole right")
    worst, right_worst = -9, -9
    for d in range(2, 9):
        for top in range(1, d):
            for a, b in itertools.product(range(2 * d), repeat=2):
                if b >= a:
                    left = top * (b - a) // d
                    printed = top * b // d + (d - top) * a // d - a
                    worst = max(worst, left - printed)
                    assert left <= printed + more, (top, d, a, b)
                    own = b - top * b // d - (d - top) * a // d
                    right_worst = max(right_worst, -((top - d) * (b - a) // d) - own)
                    assert -((top - d) * (b - a) // d) <= own + right_more, (top, d, a, b)
    assert (worst, right_worst) == subject, "never needed"
    assert ((1 - 1) // 2, 1 // 2 + 1 // 2 - 1) == (0, -1), "A = B = C = 1, as the row says"
    q = z3.Real("q")
    near = z3.And(q > 0, q < 1, other >= 0, other <= small, small <= big, part <= q * big, q * big < part + 1)
    near = z3.And(near, rest <= (1 - q) * small, (1 - q) * small < rest + 1, whole <= q * (big - small))
    prove(z3.Implies(near, whole <= part + rest - other + more), "left of the node")
    ceiling = z3.And(near, right >= (1 - q) * (big - small), right < (1 - q) * (big - small) + 1)
    prove(z3.Implies(ceiling, right <= big - part - rest + right_more), "right of the node")
    return "lem:error, o < a^: one rank is missing (A = B = C = 1, q~ = 1/2: 0 <= -1); o > b^ is right (z3)"


def right_signs(a: int, b: int, ranks: tuple[int, int, int], relative: Fraction) -> int:
    """The target of a node as a rank of the data, less the rank that is meant."""
    return a + math.floor(relative * (b - a)) - ranks[1]


def printed_signs(a: int, b: int, ranks: tuple[int, int, int], relative: Fraction) -> int:
    """The same as printed."""
    return a - math.floor(relative * (b + a)) - math.floor(relative * (ranks[2] - ranks[0])) - ranks[0]


Signs = Callable[[int, int, tuple[int, int, int], Fraction], int]


@check(
    "step:error-second-display",
    code=lem_error,
    rejects=[
        (printed_signs, lem_error),
        *((lambda *case, by=by: right_signs(*case) + by, lem_error) for by in (-1, 1)),
        *((right_signs, lambda q, by=by, **edge: by * lem_error(q, **edge)) for by in (F(99, 100), F(101, 100))),
        (right_signs, lambda q, **edge: F(0)),
    ],
)
def check_second_display(subject: tuple[Signs, Callable[..., Fraction]] = (right_signs, lem_error)) -> str:
    """|A + floor(q~ (B - A)) - floor(q n)| <= gamma^ + c in the second display of lem:error, with the ends of the data
    as edges too, and c is attained; its printed signs fail."""
    signs, slack = subject
    quantiles = sorted({F(i, d) for d in (1, 2, 4, 8) for i in range(d + 1)})
    for n, (lo, q, hi) in itertools.product((3, 4, 8, 11), itertools.combinations(quantiles, 3)):
        relative = (q - lo) / (hi - lo)
        ranks = (math.floor(lo * n), math.floor(q * n), math.floor(hi * n))
        edge = ("none" if hi < 1 else "right") if lo > 0 else "left"
        most = F(0) if hi - lo == 1 else slack(relative, edge=edge)
        for a, b in itertools.combinations_with_replacement(range(n + 1), 2):
            if (lo or a == 0) and (hi < 1 or b == n):  # all records lie between the ends
                offset = (1 - relative) * abs(a - ranks[0]) + relative * abs(b - ranks[2])
                assert abs(signs(a, b, ranks, relative)) <= offset + most, (n, lo, q, hi, a, b)
                first = math.floor(relative * (ranks[2] - ranks[0])) + ranks[0] - a - math.floor(relative * (b - a))
                assert -signs(a, b, ranks, relative) - first in (0, 1), "the first display, up to its own floors"
    for relative in GAP_SAMPLE:
        found = witness(relative, lem_error(relative))
        assert found is not None, f"no data attain the slack at {relative}"
        n, lo, hi, a, b = found
        ranks = (math.floor(lo * n), math.floor((lo + relative * (hi - lo)) * n), math.floor(hi * n))
        offset = (1 - relative) * abs(a - ranks[0]) + relative * abs(b - ranks[2])
        assert abs(signs(a, b, ranks, relative)) == offset + slack(relative), "c is attained"
    assert (printed_signs(1, 3, (1, 2, 3), HALF), right_signs(1, 3, (1, 2, 3), HALF)) == (-3, 0), "as the row says"
    return "second display of lem:error: right with A + floor(q~ (B - A)) - floor(q n), and c of lem:error, attained"


@check(
    "step:error-count",
    rejects=[
        *(lambda data, low, same=same: same for same in (True, False)),
        *(lambda data, low, part=part: low not in data[part] for part in (slice(1, None), slice(-1))),
    ],
)
def check_edge_records(subject: Callable[[Sequence[int], Fraction], bool] = lambda data, low: low not in data) -> str:
    """lem:error's first line: records of a node below o, and below its left edge, are those below o, if no record
    equals that edge."""
    for n in (1, 2, 3):
        for data in itertools.combinations_with_replacement((1, 2, 3), n):
            points = Points(tuple(F(x) for x in data))
            for low, high in itertools.combinations([F(k, 2) for k in range(1, 8)], 2):
                node = Restricted(points, low, high)
                outputs = [F(k, 2) for k in range(1, 8) if low <= F(k, 2) <= high]
                same = all(node.below(o) + points.below(low) == points.below(o) for o in outputs if o > low)
                whole = node.size == points.below(high) - points.below(low)
                assert not subject(data, low) or (same and whole), (data, low, high)
                assert subject(data, low) or not (same and whole), (data, low, high)
    three = Points((F(1), F(2), F(3)))
    counts = Restricted(three, F(1), F(3)).below(3 * HALF), three.below(F(1)), three.below(3 * HALF)
    assert counts == (0, 0, 1), "as the row says"
    priors = tuple({k + F(i, 4): F(1, 4) for k in range(4)} for i in (1, 2, 3))  # off the records, and so the edges
    for adaptation in ("edge", "conditional"):
        law = Algorithm((F(1, 4), HALF, F(3, 4)), priors, (HALF,) * 3, adaptation=adaptation).law(Grid(3))
        assert all(subject((1, 2, 3), F(o)) for outputs in law for o in outputs), "an output that equals a record"
    return "lem:error: the counts of its first line need a left edge that is no record; x = (1, 2, 3), edge 1, o = 3/2"
