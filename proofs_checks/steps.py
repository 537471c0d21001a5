"""Steps of proofs and sentences about trees (Section 3.3, Appendices A and D), and proofs for all numbers of cells."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from datetime import date
from fractions import Fraction

import numpy as np
import sympy
import z3
from flint import arb

from pq.bounds import c_p, fibonacci, kary_constant, kary_depth, lem_error
from proofs_checks.algorithm import walk
from proofs_checks.compounding import binary_chain, golden, least_arity
from proofs_checks.exact import Grid, Node, Points, Restricted, adapt, ball, build, gap, log_ball, psi
from proofs_checks.tools import prove

F = Fraction
HALF = F(1, 2)


# ---- one mechanism, for any number of cells --------------------------------------------------------------------------


def tail_term(z: z3.ArithRef, power: z3.ArithRef, mass: z3.ArithRef, limit: z3.ArithRef) -> z3.BoolRef:
    """One term of eq:quantile: z^g m <= z^gamma m."""
    return power * mass <= limit * mass


def check_tail_proof(subject: Callable[..., z3.BoolRef] = tail_term) -> str:
    """eq:quantile term by term, hence for any number of cells: g >= gamma gives z^g m <= z^gamma m, by induction on g.

    Summed over the cells with g >= gamma the left side is Pr{Gap >= gamma} Psi, the right side at most z^gamma mu(R).
    """
    z, power, limit, mass = z3.Reals("z power limit mass")
    inside = z3.And(z > 0, z <= 1, mass >= 0, limit > 0)
    prove(z3.Implies(z3.And(inside, power == limit), subject(z, power, mass, limit)), "g = gamma")
    step = z3.And(inside, power > 0, power <= limit)
    prove(z3.Implies(step, subject(z, z * power, mass, limit)), "from g to g + 1")
    prove(z3.Implies(step, z * power <= limit), "the induction goes on")
    g, s, total = sympy.symbols("g s total", positive=True)  # E exp(eps Gap/2): each cell gives its mass over Psi
    assert sympy.simplify(s**g * total * s**-g - total) == 0
    return "eq:quantile for any number of cells and any masses: term by term, by induction on the gap (z3)"


def check_mechanism_proof(subject: int = 2) -> str:
    """Weights within a factor c of each other's give laws within c^2, whatever the base measure and outcomes (z3)."""
    c, w, v, rest, other = z3.Reals("c w v rest other")  # one outcome's weights and the sums of all others'
    close = z3.And(c >= 1, w > 0, v > 0, rest >= 0, other >= 0, w <= c * v, v <= c * w, rest <= c * other)
    near = z3.And(close, other <= c * rest)
    bound = c if subject == 1 else c * c
    prove(z3.Implies(near, w * (v + other) <= bound * v * (w + rest)), "the ratio of two laws")
    return "exponential mechanism: weights change by exp(eps/2) at most, so do sums, so laws change by exp(eps) (z3)"


def rising(first: z3.ArithRef, second: z3.ArithRef) -> z3.BoolRef:
    """Psi does not fall with z."""
    return first <= second


def check_psi_proof(subject: Callable[..., z3.BoolRef] = rising) -> str:
    """Psi rises with z = exp(-eps/2) term by term and is linear in the masses; at z = 0 the gaps of 0 are left."""
    z, w, a, b, mass = z3.Reals("z w a b mass")
    inside = z3.And(z >= 0, z <= w, w <= 1, a >= 0, a <= b, mass >= 0)
    prove(z3.Implies(inside, subject(z * a * mass, w * b * mass)), "from z^g to z^(g + 1)")
    prove(z3.Implies(z3.And(z >= 0, z <= 1, a >= 0, a <= 1), z * a <= z), "z^g <= z for g >= 1, so it falls to 0")
    first, second, lam, score = sympy.symbols("mu rho lambda score")
    mixed = score * ((1 - lam) * first + lam * second)
    assert sympy.expand(mixed - (1 - lam) * score * first - lam * score * second) == 0
    epsilon, beta, psi = sympy.symbols("epsilon beta Psi", positive=True)
    price = 2 / epsilon * (sympy.log(1 / (beta * lam * psi)) - sympy.log(1 / (beta * psi)))
    assert sympy.simplify(sympy.expand_log(price + 2 / epsilon * sympy.log(lam), force=True)) == 0
    return "Psi: monotone in epsilon, linear in the prior, price (2/eps) log(1/lambda), for any number of cells (z3)"


# ---- lem:empirical-quantiles, lem:error ------------------------------------------------------------------------------


def edge_error(n: int, rank: int, edge: float) -> int:
    """Gap of an infinite edge."""
    return abs((n if edge > 0 else 0) - rank)


def check_root_error(subject: Callable[[int, int, float], int] = edge_error) -> str:
    """The edges of the root, -infinity for the quantile 0 and infinity for 1, have no error, so gamma^ = 0 there."""
    for n in range(20):
        assert gap(Grid(n), F(0), -math.inf) == gap(Grid(n), F(1), math.inf) == 0
        assert subject(n, 0, -math.inf) == 0
        assert subject(n, n, math.inf) == 0
    assert gap(Points((F(1), F(1))), F(1), math.inf) == 0
    return "the root's edges have gap 0 for the quantiles 0 and 1, so its offset is 0"


def check_error_left(subject: int = 1) -> str:
    """For o < a^ the proof needs floor(q~ (B - A)) <= floor(q~ B) + floor((1 - q~) A) - C + 1; without the 1 it fails.

    A, B: records below the edges; C <= A: records below o.  The display for o > b^ is right, with the ceiling too.
    """
    big, small, other, part, rest, whole, right = z3.Ints("B A C part rest whole right")
    worst = 0
    for d in range(2, 9):
        for top in range(1, d):
            for a, b in itertools.product(range(2 * d), repeat=2):
                if b >= a:
                    left = top * (b - a) // d
                    printed = top * b // d + (d - top) * a // d - a
                    worst = max(worst, left - printed)
                    assert left <= printed + subject, (top, d, a, b)
                    assert -((top - d) * (b - a) // d) <= b - top * b // d - (d - top) * a // d
    assert worst == 1, "never needed"
    q = z3.Real("q")
    near = z3.And(q > 0, q < 1, other >= 0, other <= small, small <= big, part <= q * big, q * big < part + 1)
    near = z3.And(near, rest <= (1 - q) * small, (1 - q) * small < rest + 1, whole <= q * (big - small))
    prove(z3.Implies(near, whole <= part + rest - other + subject), "left of the node")
    ceiling = z3.And(near, right >= (1 - q) * (big - small), right < (1 - q) * (big - small) + 1)
    prove(z3.Implies(ceiling, right <= big - part - rest), "right of the node")
    return "lem:error, o < a^: one rank is missing (A = B = C = 1, q~ = 1/2: 0 <= -1); o > b^ is right (z3)"


def check_restricted_inner(subject: Callable[[Fraction], Fraction] = lem_error) -> str:
    """Psi^ >= exp(-eps_i gamma^/2) Psi under edge adaptation needs the slack of lem:error: all small edges, exactly."""
    lo, q, hi, z = F(1, 4), F(3, 8), HALF, F(1, 1000)
    relative, short = (q - lo) / (hi - lo), 0
    for n, low_rank, high_rank, rank in itertools.product((3, 4, 7), range(4), range(8), range(8)):
        if not low_rank <= high_rank <= n or rank > n:
            continue
        data, low, high = Grid(n), low_rank + F(1, 4), high_rank + F(3, 4)
        prior = {rank + HALF: F(1)}
        edges = (1 - relative) * gap(data, lo, low) + relative * gap(data, hi, high)
        view = Restricted(data, low, high)
        target = math.floor(relative * view.size)
        inner = sum(m * z ** abs(view.below(o) - target) for o, m in adapt(prior, low, high, "edge").items())
        outer = psi(data, q, prior, z)
        assert inner**2 >= outer**2 * z ** int(2 * (edges + subject(relative))), (n, low_rank, high_rank, rank)
        short += inner**2 < outer**2 * z ** int(2 * edges)
    assert short, "never needed"
    return f"Psi^ of a node is at least exp(-eps_i (gamma^ + c)/2) Psi under edge adaptation; c = 0 fails {short} times"


# ---- thm:binary and thm:kary -----------------------------------------------------------------------------------------


def check_binary_display(subject: Callable[[int], arb] = lambda k: golden(k + 2) / arb(5).sqrt()) -> str:
    """phi^(k+1)/sqrt 5 in the last display of thm:binary is exceeded from k = 2 on; phi^(k+2)/sqrt 5 never is."""
    beta = HALF
    for k in range(1, 90):
        assert arb(fibonacci(k + 2) - 1) < subject(k), k
    for k in (2, 3, 4):
        chain = binary_chain(k, 4000, margin=4)
        printed = golden(k + 1) / arb(5).sqrt() * chain.log_spread(beta) / log_ball(2)
        assert ball(chain.errors[-1]) > printed, k
        assert chain.failure(chain.errors[-1]) > beta
    chain = binary_chain(2, 4000, margin=4)
    claimed = float(golden(3) / arb(5).sqrt() * chain.log_spread(beta) / log_ball(2))
    return f"last display of thm:binary at m = 3: claimed {claimed:.0f} w.p. 1/2, actual {chain.errors[-1]} (exact)"


def check_kary_edges(subject: Callable[[int], int] = lambda depth: depth - 1) -> str:
    """In a K-ary tree both edges of a node are at least one level up, and one of them is exactly one level up."""
    for arity, m in itertools.product((2, 3, 4, 7), (1, 2, 5, 20, 63, 64, 200)):

        def down(node: Node, low: int, high: int) -> None:
            if node.depth > 1:
                assert max(low, high) == subject(node.depth)
                assert min(low, high) <= subject(node.depth)
            sides = [low, *(node.depth for _ in node.indices), high]
            for j, child in enumerate(node.children):
                if child is not None:
                    down(child, sides[j], sides[j + 1])

        root = build(range(m), arity)
        assert root is not None
        down(root, 0, 0)
        assert sum(len(node.indices) for node in walk(root)) == m
    return "K-ary trees: the edges of a node lie one level up or more, and one lies exactly one level up"


def check_kary_display(subject: Callable[[float], float] = c_p) -> str:
    """Displays of thm:kary before its last step: 2 H A_d <= c_p 2^d at every depth d, c_2 is 2 pi^2, and no constant
    that is less would do: the left side comes as near as the tail of zeta(p) lets it."""
    assert abs(subject(2.0) - 2 * math.pi**2) < 1e-9
    for p in (1.5, 1.6, 2.0, 3.0):
        for depth in range(1, 200):
            harmonic = math.fsum(k**-p for k in range(1, depth + 1))
            share = 2 * harmonic * kary_constant(depth, p) / 2**depth / subject(p)
            assert share <= 1 + 1e-12, (p, depth)
        tail = depth ** (1 - p) / (p - 1)
        assert share >= 1 - tail / harmonic - 1e-9, (p, share)
    for arity, m in ((3, 26), (5, 24), (5, 25)):  # K - 1 mechanisms at epsilon_bar / k^p each: epsilon on a full path
        depth = kary_depth(m, arity)
        total = sum(F(1, j * j) for j in range(1, depth + 1))
        assert sum((arity - 1) * F(1, j * j) / ((arity - 1) * total) for j in range(1, depth + 1)) == 1
    return "thm:kary, displays before the last step: 2 H A_d <= c_p 2^d for p from 1.5 to 3, with no less a constant"


def check_depth_budgets(subject: Callable[[float], int] = lambda p: {1.5: 5, 1.6: 6, 2.0: 9}[p]) -> str:
    """Budgets k^-p against equal ones: H A against d (2^d - 1); the factor saved is of order d, about sqrt(log2 m)."""
    for p in (1.5, 1.6, 2.0):
        smaller = []
        for d in range(1, 40):
            harmonic = math.fsum(k**-p for k in range(1, d + 1))
            if harmonic * kary_constant(d, p) < d * (2**d - 1):
                smaller.append(d)
        assert smaller == list(range(subject(p), 40)), (p, smaller[:2])
    # d levels need log m >= (d - 1) log K > (d - 1) sqrt(log 2 log m), that is log2 m > (d - 1)^2
    for d in range(2, 60):
        m = (2 ** (d - 1) + 1) ** (d - 1)
        assert kary_depth(m, least_arity(m)) == d
        assert d - 1 <= math.sqrt(math.log2(m + 1)) <= d
    return "budgets k^-p beat equal ones from 9 levels on (p = 2; m > 2^64); the factor saved is of order sqrt(log2 m)"


# ---- numbers about the experiments -----------------------------------------------------------------------------------


def check_days(subject: tuple[date, date] = (date(2015, 9, 1), date(2022, 11, 30))) -> str:
    """September 2015 to November 2022: 2648 days, 'roughly 2500'; 'around day 1600' is January 2020, the start."""
    first, last = subject
    days = (last - first).days + 1
    assert days == 2648
    assert abs(days / 2500 - 1) < 0.06
    lockdown = (date(2020, 3, 22) - first).days + 1
    assert 1600 < lockdown < 1600 * 1.05, lockdown
    return f"CitiBike: {days} calendar days for 'roughly 2500'; New York closed on day {lockdown}, 'around day 1600'"


def check_noiseless(subject: int = 0) -> str:
    """floor(100/(m+1)) records in each of m + 1 intervals: the ends are quantiles i/(m+1) with gap 0."""
    rng = np.random.default_rng(107)
    for m in (1, 4, 9, 30):
        count, ends = 100 // (m + 1), np.sort(rng.normal(size=m + 2))
        counts = np.full(m + 1, count)
        counts[0] += subject
        data = np.sort(np.concatenate([rng.uniform(ends[i], ends[i + 1], counts[i]) for i in range(m + 1)]))
        for i in range(1, m + 1):
            rank = math.floor(F(i, m + 1) * len(data))
            assert int(np.sum(data < ends[i])) == rank, (m, i)
    return "noiseless synthetic data: the true quantiles i/(m+1) of the law have gap 0 in every sample"
