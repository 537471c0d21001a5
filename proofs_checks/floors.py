"""Ranks, floors and swaps: eq:gap, lem:error and lem:shuffle, with the steps of their proofs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import sympy
import z3

from pq.bounds import lem_error
from proofs_checks.exact import Grid, Points, Position, Restricted, gap
from proofs_checks.tools import absolute, maximum, prove

HALF = Fraction(1, 2)
GAP_SAMPLE = [Fraction(p, d) for d in range(2, 8) for p in range(1, d)]


def check_gap_definition(subject: Callable[[Points, Fraction, Fraction], Fraction] = gap) -> str:
    """eq:gap: both expressions agree and are constant on each cell (x_k, x_{k+1}]."""
    for n, q in itertools.product(range(7), GAP_SAMPLE):
        data = Points(tuple(Fraction(i) for i in range(1, n + 1)))
        target = math.floor(q * n)
        for k in range(n + 1):
            for o in (k + HALF, Fraction(k + 1)):
                if o == n + 1:
                    continue  # the last cell has no right end
                last = max((i for i, x in enumerate(data.values, 1) if x < o), default=0)
                assert subject(data, q, o) == abs(last - target) == abs(k - target), (n, q, o)
    return (
        "eq:gap: the count and the largest index below o agree, and the gap is constant on each (x_k, x_{k+1}], n <= 6"
    )


def in_target_cell(data: Points, k: int, o: Fraction) -> bool:
    """o in (x_k, x_{k+1}], with infinite ends outside the data."""
    return (k == 0 or data.values[k - 1] < o) and (k == data.size or o <= data.values[k])


def in_printed_interval(data: Points, k: int, o: Fraction) -> bool:
    """o in [x_k, x_{k+1}), the interval printed in Section 3.2."""
    return (k == 0 or data.values[k - 1] <= o) and (k == data.size or o < data.values[k])


def check_target_interval(subject: Callable[[Points, int, Fraction], bool] = in_target_cell) -> str:
    """The outputs of gap zero are the cell that is open on the left and closed on the right."""
    for n, q in itertools.product(range(1, 6), GAP_SAMPLE):
        data = Points(tuple(Fraction(i) for i in range(1, n + 1)))
        for o in (Fraction(j, 2) for j in range(2 * n + 4)):
            assert (gap(data, q, o) == 0) == subject(data, math.floor(q * n), o), (n, q, o)
    return "gap zero is exactly the cell (x_k, x_{k+1}] with k = floor(q n): open on the left, closed on the right"


Swap = Callable[[z3.ArithRef, z3.ArithRef, z3.ArithRef, z3.ArithRef], z3.BoolRef]


def swap_statement(t0: z3.ArithRef, t1: z3.ArithRef, c0: z3.ArithRef, c1: z3.ArithRef) -> z3.BoolRef:
    """lem:shuffle for targets t0 <= t1 and counts c0 >= c1 below two outputs that are out of order."""
    now = maximum(absolute(c0 - t0), absolute(c1 - t1))
    swapped = maximum(absolute(c1 - t0), absolute(c0 - t1))
    return z3.Implies(z3.And(t0 <= t1, c0 >= c1), now >= swapped)


def check_shuffle(subject: Swap = swap_statement) -> str:
    """lem:shuffle for all integers, and for all real targets and counts."""
    prove(subject(*z3.Ints("t0 t1 c0 c1")), "lem:shuffle over the integers")
    prove(subject(*z3.Reals("t0 t1 c0 c1")), "lem:shuffle over the reals")
    return (
        "lem:shuffle: swapping two outputs that are out of order never increases the larger gap (all integers, "
        "all reals)"
    )


def apart(low0: z3.ArithRef, high0: z3.ArithRef, low1: z3.ArithRef, high1: z3.ArithRef) -> z3.BoolRef:
    """The rank ranges of two different values o_0 > o_1."""
    return low0 >= high1


def check_shuffle_ties(subject: Swap = apart) -> str:
    """The same where a tied value covers a range of ranks (ours)."""
    t0, t1, low0, high0, low1, high1 = z3.Ints("t0 t1 low0 high0 low1 high1")

    def distance(t: z3.ArithRef, low: z3.ArithRef, high: z3.ArithRef) -> z3.ArithRef:
        return maximum(maximum(low - t, t - high), z3.IntVal(0))

    order = z3.And(t0 <= t1, low0 <= high0, low1 <= high1, subject(low0, high0, low1, high1))
    now = maximum(distance(t0, low0, high0), distance(t1, low1, high1))
    swapped = maximum(distance(t0, low1, high1), distance(t1, low0, high0))
    prove(z3.Implies(order, now >= swapped), "lem:shuffle with ties")
    return "lem:shuffle holds for gaps to tied rank ranges too (all integers)"


def case_three(t0: z3.ArithRef, t1: z3.ArithRef, c0: z3.ArithRef, c1: z3.ArithRef) -> z3.ArithRef:
    """What case three of the proof should call the larger gap: floor(q_1 n) less the count below o_1."""
    return t1 - c1


def check_shuffle_steps(subject: Callable[..., z3.ArithRef] = case_three) -> str:
    """The four cases of the proof; the printed sign of case three is reversed."""
    t0, t1, c0, c1 = z3.Ints("t0 t1 c0 c1")
    order = z3.And(t0 <= t1, c0 >= c1)
    now = maximum(absolute(c0 - t0), absolute(c1 - t1))
    prove(z3.Implies(z3.And(order, t0 <= c1, t1 <= c0), now == c0 - t0), "case one")
    both = z3.And(absolute(c1 - t0) <= absolute(c0 - t0), absolute(c0 - t1) <= absolute(c1 - t1))
    prove(z3.Implies(z3.And(order, t0 <= c1, t1 > c0), both), "case two")
    prove(z3.Implies(z3.And(order, t0 > c1, t1 > c0), now == subject(t0, t1, c0, c1)), "case three")
    crossed = z3.And(absolute(c1 - t0) <= absolute(c1 - t1), absolute(c0 - t1) <= absolute(c0 - t0))
    prove(z3.Implies(z3.And(order, t0 > c1, t1 <= c0), crossed), "case four")
    return (
        "lem:shuffle, proof: all four cases hold; in case three the larger gap is floor(q_1 n) less the count, "
        "not its negative"
    )


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
    return "lem:error holds without slack for the unrounded gap |#{x < o} - q n|, both items, item 1 for every real o"


def check_error_identity(subject: Callable[..., tuple] = lambda t: (1 - t, t)) -> str:
    """The identity behind both proofs: q~ (B - A) + A - q n is the weighted sum of the signed edge errors."""
    A, B, n, lo, hi, t = sympy.symbols("A B n q_lo q_hi q_rel")
    left, right = subject(t)
    q = (1 - t) * lo + t * hi
    difference = t * (B - A) + A - q * n - (left * (A - lo * n) + right * (B - hi * n))
    assert sympy.expand(difference) == 0
    return "the shift of a node's target is the weighted sum of its edges' signed errors (sympy)"


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
    data.
    """
    d = relative.denominator
    n, f_lo = 64 * d, 4 + d
    top = 1 - Fraction(1, 4 * d)
    for f_hi in range(f_lo + d + 1, f_lo + 2 * d + 1):
        lo, hi = (f_lo + top) / n, (f_hi + top) / n
        rank = math.floor((lo + relative * (hi - lo)) * n)
        for a, b in itertools.product(range(d + 1), repeat=2):
            low, high = f_lo - a, f_hi - b
            edges = (1 - relative) * a + relative * b
            if low < high and rank - low - math.floor(relative * (high - low)) - edges >= slack:
                return n, lo, hi, low, high
    return None


def check_error_sharp(subject: Callable[[Fraction], Fraction] = lem_error) -> str:
    """The slack is exactly right for each relative quantile with denominator up to 11: the largest case, attained by
    data.
    """
    for d in range(2, 12):
        for p in (p for p in range(1, d) if math.gcd(p, d) == 1):
            relative = Fraction(p, d)
            assert worst_slack(relative) == subject(relative), (relative, worst_slack(relative), subject(relative))
            found = witness(relative, subject(relative))
            assert found is not None, f"no data attain the slack at {relative}"
            n, lo, hi, low, high = found
            data, view = Grid(n), Restricted(Grid(n), low + HALF, high + HALF)
            q = lo + relative * (hi - lo)
            o = low + math.floor(relative * view.size) + HALF  # gap zero in the node
            edges = (1 - relative) * gap(data, lo, low + HALF) + relative * gap(data, hi, high + HALF)
            assert gap(data, q, o) - edges == subject(relative), relative
    return "the slack 2 - 2 / d at q~ = p / d is sharp for every d <= 11: attained by data, never exceeded"


def check_error_as_printed(subject: Callable[[], Fraction] = lambda: lem_error(version="paper")) -> str:
    """Counterexample to both items: three records, edges with no error, and the node's target one rank off."""
    data = Grid(3)
    lo, hi, q = Fraction(1, 4), Fraction(1, 2), Fraction(3, 8)
    low, high = HALF, 1 + HALF
    assert gap(data, lo, low) == gap(data, hi, high) == 0
    view = Restricted(data, low, high)
    inside: Position = Fraction(3, 4)  # below the one record of the node: gap zero there
    assert abs(view.below(inside) - math.floor(HALF * view.size)) == 0
    assert gap(data, q, inside) == 1
    assert gap(data, q, inside) > 0 + subject(), "item 2 survives"
    above = 1 + Fraction(1, 4)
    assert abs(view.below(above) - math.floor(HALF * view.size)) == 1
    assert gap(data, q, above) == 0
    assert gap(data, q, above) + subject() < 1, "item 1 survives"
    return (
        "lem:error as printed is false: n = 3, quantile 3/8 between exact estimates of 1/4 and 1/2; "
        "gap 0 in the node is gap 1 in the data, and the reverse"
    )


def right_gap(relative: Fraction, size: int) -> int:
    """Gap in the node of an output to the right of its interval: ceil((1 - q~) n)."""
    return math.ceil((1 - relative) * size)


def check_right_of_interval(subject: Callable[[Fraction, int], int] = right_gap) -> str:
    """A step of the proof of item 1: for o beyond the right edge the gap is n - floor(q~ n)."""
    for relative, size in itertools.product(GAP_SAMPLE, range(30)):
        assert size - math.floor(relative * size) == subject(relative, size), (relative, size)
    return (
        "beyond the right edge the gap is ceil((1 - q~) n); the proof prints floor((1 - q~) n), one too small "
        "unless q~ n is an integer"
    )


def check_target_composition(subject: Callable[[Fraction, int, int], int] = lambda q, lo, hi: 1) -> str:
    """A step of both proofs: floor(q n) against floor(q~ (floor(q_hi n) - floor(q_lo n))) + floor(q_lo n)."""
    largest = 0
    for n, d in itertools.product(range(1, 25), range(2, 9)):
        for lo, mid, hi in itertools.combinations(range(d + 1), 3):
            f_lo, f_hi = lo * n // d, hi * n // d
            composed = f_lo + ((mid - lo) * (f_hi - f_lo)) // (hi - lo)
            off = mid * n // d - composed
            assert 0 <= off <= subject(Fraction(mid, d), lo, hi), (n, d, lo, mid, hi)
            largest = max(largest, off)
    assert largest == 1
    return "floor(q n) exceeds its composition from the edges' floors by 0 or 1; the proofs take them to be equal"
