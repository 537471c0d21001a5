"""Uniform quantiles under restricted priors: two thirds of the printed bound."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import sympy
import z3
from flint import arb

from pq.bounds import dyadic_conditional, dyadic_constant, dyadic_prices, dyadic_rounding, lem_quantile
from proofs_checks.engine.registry import check
from proofs_checks.tools.exact import Algorithm, Grid, ball, log_ball
from proofs_checks.tools.solver import prove
from proofs_checks.tools.trees import inverse_psis

HALF = Fraction(1, 2)


def _off_path(levels: int, path: list[int]) -> list[int]:
    """The other indices, from the root down."""
    order = [at - 1 for k in range(levels) for at in range(2 ** (levels - 1 - k), 2**levels, 2 ** (levels - k))]
    return [i for i in order if i not in path]


def conditional_chain(levels: int, bits: int) -> tuple[Algorithm, Grid, list[int]]:
    """m = 2**levels - 1 uniform quantiles, point priors; on a zigzag path each node's output is `bits` ranks off its
    target.
    """
    m, n = 2**levels - 1, 2**levels * 8 * bits
    ranks = {i: n * (i + 1) // (m + 1) for i in range(m)}
    path, step, at = [], 2 ** (levels - 1), 2 ** (levels - 1)
    moved: dict[int, int] = {-1: 0, m: n}
    for level in range(levels):
        low = max(j for j in moved if j < at - 1)
        high = min(j for j in moved if j > at - 1)
        ranks[at - 1] = moved[low] + (moved[high] - moved[low]) // 2 + bits
        moved[at - 1] = ranks[at - 1]
        path.append(at - 1)
        step //= 2
        at += step if level % 2 == 0 else -step
    # off the path: on the target of the node, wherever its edges went, so that those inner products are one
    for i in _off_path(levels, path):
        low = max(j for j in moved if j < i)
        high = min(j for j in moved if j > i)
        ranks[i] = moved[low] + (moved[high] - moved[low]) // 2
        moved[i] = ranks[i]
    priors = tuple({ranks[i] + Fraction(i + 1, m + 2): Fraction(1)} for i in range(m))
    quantiles = tuple(Fraction(i, m + 1) for i in range(1, m + 1))
    return Algorithm(quantiles, priors, (HALF,) * m, adaptation="conditional"), Grid(n), path


@check(
    "text:logarithmic-error",
    "ours:dyadic-conditional",
    rejects=[
        lambda d: 2 * d / 3,
        lambda d: float(d),
        lambda d: 0.99 * dyadic_constant(d),
        lambda d: 1.01 * dyadic_constant(d),
    ],
)
def check_dyadic_sharp(subject: Callable[[int], float] = dyadic_constant) -> str:
    """On chains of bad luck B_d is attained: every node of the path errs by exactly its allowance, with certainty."""
    for levels, bits in itertools.product(range(1, 7), (64, 6400)):
        algorithm, data, path = conditional_chain(levels, bits)
        ((outputs, p),) = algorithm.law(data).items()
        assert p == 1
        total = sum(inverse_psis(data, algorithm, outputs))
        allowance = ball(Fraction(subject(levels))) * log_ball(total / HALF) / log_ball(2)
        worst = algorithm.gaps(data, outputs)[path[-1]]
        assert ball(worst) < allowance + ball(Fraction(dyadic_rounding(levels))) + 1, (levels, bits, worst)
        if bits == 6400:
            assert ball(worst) > allowance * arb("0.995"), (levels, worst, allowance)
    return "B_d is attained up to 0.5% for d = 1..6: two thirds of the printed bound is what uniform quantiles can lose"


def path_error(levels: int, bits: int) -> tuple[int, list[int]]:
    """The error of the last node of such a path, and those of all its nodes, for any depth: each output is `bits` ranks
    beyond its node's target, and the other nodes, on their targets, do not touch it."""
    n = 2**levels * (8 + levels) * bits
    right, out = {0: 0, 2**levels: n}, {0: 0, 2**levels: n}  # ranks that are meant, and outputs, by place in the tree
    step, at, errors = 2 ** (levels - 1), 2 ** (levels - 1), []
    for level in range(levels):
        low, high = at - step, at + step  # the edges: nodes of the path, or the ends
        out[at] = out[low] + (out[high] - out[low]) // 2 + bits
        right[at] = n * at // 2**levels
        assert out[low] < out[at] < out[high], "between its edges"
        errors.append(abs(out[at] - right[at]))
        step //= 2
        at += step if level % 2 == 0 else -step
    return errors[-1], errors


@check(
    "text:logarithmic-error",
    "ours:dyadic-conditional",
    rejects=[
        float,
        lambda d: 10.0,
        lambda d: 2 * d / 3,
        *(lambda d, by=by: by * dyadic_constant(d) for by in (0.99, 1.01)),
    ],
)
def check_dyadic_all_depths(subject: Callable[[int], float] = dyadic_constant) -> str:
    """The path of bad luck at any depth to 60: its errors are B_k of `bits`, each inner product 2^-bits and those of
    other nodes 1, so that with budgets of eps/d no multiple of log m bounds what d B_d (2/eps) log(m/(beta psi)) does.
    """
    for levels in range(1, 61):
        bits = 10**6
        error, errors = path_error(levels, bits)
        assert all(abs(e - bits * dyadic_constant(k)) <= k for k, e in enumerate(errors, 1)), levels  # floors
        spread = bits + math.log2(levels / 0.5)  # log2 of the path's sum over beta; the other nodes add nothing to it
        assert 0.999 <= error / (subject(levels) * spread) <= 1.001, (levels, error)
        alone = bits + math.log2(levels) - math.log2(2**levels - 1)  # log2(1/Psi^), as the row says
        assert 0.999 <= error / (subject(levels) * alone) <= 1.001, (levels, error)
        if levels <= 6:
            algorithm, data, path = conditional_chain(levels, 64)
            ((outputs, _),) = algorithm.law(data).items()
            short = path_error(levels, 64)[1]
            assert [algorithm.gaps(data, outputs)[i] for i in path] == short, "the path of the law itself"
    assert all(d * subject(d) > 2 * d * d / 3 for d in range(1, 61)), "quadratic in d"
    return "the error of a path of bad luck is d B_d (2/eps) log(1/Psi^) at every depth to 60, quadratic in log m"


@check(
    "text:logarithmic-error",
    "ours:dyadic-conditional",
    code=dyadic_constant,
    rejects=[lambda d: float(d), lambda d: 2 * d / 3],
)
def check_dyadic_recurrence(subject: Callable[[int], float] = dyadic_constant) -> str:
    """B_k = 1 + (B_{k-1} + B_{k-2}) / 2, its closed form, and the sum of the weights h_j with which levels enter."""
    k = sympy.symbols("k", integer=True)
    form = 2 * k / 3 + sympy.Rational(2, 9) * (1 - sympy.Rational(-1, 2) ** k)
    step = form - (1 + (form.subs(k, k - 1) + form.subs(k, k - 2)) / 2)
    assert sympy.simplify(sympy.expand(step)) == 0
    weights = Fraction(0)
    for depth in range(1, 60):
        assert math.isclose(subject(depth), float(form.subs(k, depth)), rel_tol=1e-14)
        weights += Fraction(2, 3) + Fraction(-1, 2) ** (depth - 1) / 3
        assert math.isclose(float(weights), subject(depth), rel_tol=1e-14)
        assert subject(depth) <= depth
    return "uniform quantiles, restricted priors: B_d = 2 d / 3 + 2/9 (1 - (-1/2)^d) in place of d (sympy)"


Weights = tuple[float, ...]  # of the errors of the levels from the root on, in that of a node


def zigzag(level: int) -> Weights:
    """Of the node whose edges lie one level up and two: h_{k-l}."""
    return tuple(2 / 3 + (-0.5) ** (level - upper) / 3 for upper in range(1, level + 1))


@cache
def every_node(level: int) -> frozenset[Weights]:
    """Of all nodes of that level: half of either edge's, and one for the node's own level."""
    below = {((0.0,) * level, (0.0,) * level)}
    for at in range(level - 1):
        halves = set()
        for low, high in below:
            own = (*((a + b) / 2 for a, b in zip(low[:at], high[:at], strict=True)), 1.0, *(0.0,) * (level - at - 1))
            halves |= {(low, own), (own, high)}
        below = halves
    return frozenset((*((a + b) / 2 for a, b in zip(low[:-1], high[:-1], strict=True)), 1.0) for low, high in below)


def price(shares: list[float], depth: int, weights: Weights) -> float:
    """What a node pays beyond B_d log(m/(beta psi)) at the worst sums of inverse inner products.

    Its error is the sum of w_l log(S_l/beta_l) over its levels, w of sum W: at most W log(S) plus an entropy by Gibbs'
    inequality, while S is at least m: the rest of B_d pays (B_d - W) log m.
    """
    total = math.fsum(weights)
    parts = ((w, s) for w, s in zip(weights, shares, strict=False) if w)
    entropy = math.fsum(w * (math.log(w / total) - math.log(s)) for w, s in parts)
    return entropy - (dyadic_constant(depth) - total) * math.log(2**depth - 1)


@check(
    "ours:dyadic-conditional",
    code=dyadic_prices,
    rejects=[
        lambda depth: [1 / depth] * depth,
        lambda depth: dyadic_prices(depth)[::-1],
        lambda depth: [2 * share for share in dyadic_prices(depth)],
        lambda depth: [share / 2 for share in dyadic_prices(depth)],
    ],
)
def check_dyadic_prices(subject: Callable[[int], list[float]] = dyadic_prices) -> str:
    """Shares of beta in proportion to h_{d-l} cost nothing, at any node and depth; equal ones cost up to log d a level.
    No node has more than B_k of the errors: all nodes of trees to depth 9, and to depth 60 those whose edges lie one
    level up and two.

    For d > 60: B_k log(B_d/B_k) <= B_d - B_k, the logarithms of ratios of h add up to at most log 2, and
    (B_d - B_k)(log m - 1) is above that.
    """
    for depth in range(1, 61):
        shares, own = subject(depth), zigzag(depth)
        assert math.isclose(math.fsum(shares), 1.0), "the levels share beta"
        assert all(math.isclose(share * math.fsum(own), w) for share, w in zip(shares, own, strict=True)), "as h_(d-l)"
        for level in range(1, depth + 1):
            if (depth, level) != (2, 1):
                for weights in {zigzag(level), *(every_node(level) if depth <= 9 else ())}:
                    assert math.fsum(weights) <= dyadic_constant(level) * (1 + 1e-12), (level, weights)
                    assert price(shares, depth, weights) <= 1e-12, (depth, weights)
    own = zigzag(300)[::-1]
    for shift in range(1, 150):
        sums = itertools.accumulate(own[j] * math.log(own[j] / own[j + shift]) for j in range(150))
        assert max(sums) <= math.log(2) * (1 + 1e-12), shift
    assert all(dyadic_constant(d) - dyadic_constant(d - 1) >= 0.5 for d in range(1, 200)) and 61 * math.log(2) > 3
    x = z3.Real("x")  # d = 2: the root pays log(3 S_1), where 3/2 log(S_1 + S_2) is allowed, S_2 at least 2
    root = round(1 / subject(2)[0])
    prove(z3.Implies(x >= 1, (root * x) * (root * x) <= (x + 2) * (x + 2) * (x + 2)), "the root of two levels")
    return "beta shared in proportion to h_(d-l): d B_d log(m/(beta psi)) with no price for the levels, d <= 60"


def _where(at: Callable[[int], bool], factor: float) -> Callable[..., float]:
    """The bound times a factor at some m."""
    return lambda log_psi, epsilon, m, beta, **more: (
        dyadic_conditional(log_psi, epsilon, m, beta, **more) * (factor if at(m) else 1)
    )


@check(
    "ours:dyadic-conditional",
    code=(dyadic_conditional, lem_quantile),
    rejects=[
        *(_where(lambda m, one=one: m == one, 0.5) for one in (1, 3, 2**60 - 1)),
        _where(lambda m: 31 <= m < 2**40, 0.5),
        *(_where(lambda m: m != 15, by) for by in (0.99, 1.01)),
        lambda log_psi, epsilon, m, beta, rounded=True: dyadic_conditional(log_psi, epsilon, m, beta, rounded=m == 15),
        lambda log_psi, epsilon, m, beta, **more: dyadic_conditional(log_psi, epsilon, m, 0.05, **more),
        lambda log_psi, epsilon, m, beta, **more: dyadic_conditional(-3.0, epsilon, m, beta, **more),
        lambda log_psi, epsilon, m, beta, **more: dyadic_conditional(log_psi, min(epsilon, 1.0), m, beta, **more),
        lambda log_psi, epsilon, m, beta, **more: dyadic_conditional(
            log_psi, min(epsilon, epsilon**2), m, beta, **more
        ),
    ],
)
def check_dyadic_formula(subject: Callable[..., float] = dyadic_conditional) -> str:
    """2/eps d B_d log(m/(beta Psi)) + R_d with B and R from their recurrences, in fractions and balls, for m = 1, 3, 7
    up to 2^200 - 1; for one quantile it is lem:quantile."""
    errors, ranks = [Fraction(0), Fraction(1)], [Fraction(0), Fraction(0), HALF]  # B_0, B_1, ..; R_0, R_1, R_2, ..
    for _ in range(200):
        errors.append(1 + (errors[-1] + errors[-2]) / 2)
        ranks.append(1 + (ranks[-1] + ranks[-2]) / 2)
    cases = list(itertools.product((0.0, -1e-3, -3.0, -700.0), (1e-3, 0.3, 1.0, 2.5, 40.0), (0.9, 0.05, 1e-12)))
    for d in (*range(1, 13), 20, 39, 40, 60, 200):
        m = 2**d - 1
        for log_psi, epsilon, beta in cases:
            spread = log_ball(m / Fraction(beta)) - ball(Fraction(log_psi))
            wanted = ball(2 / Fraction(epsilon) * d * errors[d]) * spread
            for rounded, slack in ((False, Fraction(0)), (True, ranks[d])):
                found, exact = subject(log_psi, epsilon, m, beta, rounded=rounded), float(wanted + ball(slack))
                assert math.isclose(found, exact, rel_tol=1e-12), (m, log_psi, epsilon, beta, rounded)
            assert subject(log_psi, epsilon, m, beta) == found, "rounded if nothing is said"
            assert d > 1 or math.isclose(found, lem_quantile(log_psi, epsilon, beta), rel_tol=1e-12)
    return f"d B_d (2/eps) log(m/(beta Psi)) + R_d from the recurrences, 17 depths and {len(cases)} settings (balls)"
