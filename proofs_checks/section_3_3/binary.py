"""thm:binary: its recurrence, its constant, its rounding, and chains of bad luck that attain it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import sympy
from flint import arb

from pq import bounds
from pq.bounds import binary_rounding, fibonacci
from proofs_checks.engine.registry import check
from proofs_checks.tools.chains import Chain, corrected_binary, make_chain
from proofs_checks.tools.exact import (
    INFINITY,
    Algorithm,
    Grid,
    Node,
    Prior,
    Restricted,
    adapt,
    ball,
    build,
    gap,
    log_ball,
    mechanism,
    probability,
    psi,
)

F = Fraction
HALF = Fraction(1, 2)
QUARTERS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))


def golden(levels: int) -> arb:
    """phi**k, the printed constant."""
    return ((1 + arb(5).sqrt()) / 2) ** levels


def uniform_three_eighths(z: Fraction) -> Fraction:
    """Probability that 3/8 errs by a rank or more, records 1, 2, 3 and priors that are uniform on (0, 4), restricted
    conditionally: two places in each unit, side by side for 1/4, 3/8 and 1/2."""
    quarter, third, half = ({F(2 * j + 1, 4) + F(i, 100): F(1, 8) for j in range(8)} for i in (-2, -1, 0))
    data, wrong = Grid(3), F(0)
    for middle, p in mechanism(Restricted(data, -INFINITY, INFINITY), HALF, half, z).items():
        left = adapt(quarter, -INFINITY, middle, "conditional")
        for low, share in mechanism(Restricted(data, -INFINITY, middle), HALF, left, z).items():
            law = mechanism(Restricted(data, low, middle), HALF, adapt(third, low, middle, "conditional"), z)
            wrong += p * share * sum(q for o, q in law.items() if gap(data, F(3, 8), o) >= 1)
    return wrong


@check("text:aq-bound", "thm:binary", rejects=[binary_rounding, lambda levels: 1])
def check_binary_floors(subject: Callable[[int], int] = lambda levels: 0) -> str:
    """Counterexample to thm:binary through the floors alone: m = 7, n = 3, uniform priors, a large epsilon."""
    z, beta = Fraction(1, 10**9), HALF
    seven = tuple(Fraction(i, 8) for i in range(1, 8))
    priors = tuple({k + Fraction(i, 8): Fraction(1, 4) for k in range(4)} for i in range(1, 8))
    algorithm, data = Algorithm(seven, priors, (z,) * 7), Grid(3)
    restricted = replace(algorithm, adaptation="conditional")  # AQ's own: the same floors, and Psi^ near 1/4 each
    sure = probability(restricted.law(data), lambda outputs: max(restricted.gaps(data, outputs)) >= 1)
    assert sure > beta and 3 * log_ball(F(7 * 4) / beta) / -log_ball(z) + subject(3) < 1, "AQ's bound survives"
    for one, share in itertools.product((algorithm, restricted), (F(1, 10**3), F(1, 10**6), z)):
        law = replace(one, z=(share,) * 7).law(data)
        never = 1 - probability(law, lambda outputs: max(algorithm.gaps(data, outputs)) >= 1)
        assert never < 4 * share, "the probability of a gap of 1 does not tend to 1 with growing epsilon"
    assert all(1 - uniform_three_eighths(share) < 4 * share for share in (F(1, 10**3), z)), "uniform priors as well"
    # The whole uniform law: 1/4 comes out u below the record 1 and 1/2 comes out v above it, both uniform on (0, 1) up
    # to a vanishing part; then 3/8 errs unless it lands between 1 and 1/2's output: v z/(u + v z) <= z/(u + z).
    share, u = sympy.symbols("z u", positive=True)
    assert sympy.limit(sympy.integrate(share / (u + share), (u, 0, 1)), share, 0) == 0
    claimed = golden(3) * log_ball(algorithm.inverse_psi_sum(data) / beta) / -log_ball(z) + subject(3)
    failure = probability(algorithm.law(data), lambda outputs: ball(max(algorithm.gaps(data, outputs))) > claimed)
    assert failure > beta, f"the bound survives: {float(failure)}"
    assert round(float(claimed), 2) == 0.82, "as the row says"
    return (
        f"thm:binary as printed is false at m = 7, n = 3 by rounding: claimed {float(claimed):.2f}, gap 1 w.p. "
        f"{float(failure):.4f}"
    )


def binary_chain(levels: int, bits: int, margin: int = 1) -> Chain:
    """m = 2**levels - 1 uniformly spaced quantiles; the chain turns right, left, right, ... below the root."""
    m = 2**levels - 1
    path, step, i = [], 2 ** (levels - 1), 2 ** (levels - 1)
    for level in range(levels):
        path.append(i - 1)
        step //= 2
        i += step if level % 2 == 0 else -step
    n = 2**levels * bits * 2 * fibonacci(levels + 2)
    return make_chain(
        [Fraction(i, 2**levels) for i in range(1, m + 1)], n, 2, path, lambda depth, count: 1, bits, margin
    )


@check("thm:binary", rejects=[corrected_binary, lambda k: 1.02 * golden(k)])
def check_binary_printed(subject: Callable[[int], arb] = golden) -> str:
    """Counterexample to thm:binary: m = 15, the constant phi**4 = 6.854 is below F_6 - 1 = 7."""
    chain = binary_chain(4, 1000, margin=4)
    beta = HALF
    claimed = subject(4) * chain.log_spread(beta) / log_ball(2)
    worst = chain.errors[-1]
    assert ball(worst) > claimed, f"the bound survives: {worst} against {claimed}"
    failure = chain.failure(worst)
    assert failure > beta
    row = chain.data.size, worst, round(float(failure), 3)
    assert row == (256_000, 6972, 0.785) and round(float(claimed)) == 6879
    return (
        f"thm:binary as printed is false at m = 15: n = {chain.data.size}, beta = 1/2, "
        f"claimed gap {float(claimed):.0f}, actual {worst} with probability {float(failure):.3f} (exact)"
    )


@check("thm:binary", rejects=[golden, lambda k: 2 * corrected_binary(k)])
def check_binary(subject: Callable[[int], arb] = corrected_binary) -> str:
    """The corrected constant is never exceeded on chains of up to 7 levels, and is sharp: its ratio to the worst
    error tends to 1.
    """
    ratios = []
    for levels, bits in itertools.product(range(1, 8), (40, 4000)):
        chain = binary_chain(levels, bits)
        slack = binary_rounding(levels)
        claimed = subject(levels) * chain.log_spread(HALF) / log_ball(2) + slack
        assert ball(max(chain.errors)) < claimed, (levels, bits, chain.errors, claimed)
        if bits == 4000:
            ratios.append(float(ball(max(chain.errors)) / claimed))
    assert min(ratios) > 0.98, ratios
    return (
        f"thm:binary with F_(k+2) - 1: never exceeded, attained up to {100 * (1 - min(ratios)):.1f}% for k = "
        "1..7, so sharp"
    )


def errors_of_path(levels: int, bits: int, margin: int = 1) -> list[int]:
    """The errors of ``binary_chain`` along its path, for any depth: each prior is half on the cell `bits` ranks below
    its target, half on one as far, but for the margin, on the other side of where the node aims."""
    n = 2**levels * bits * 2 * fibonacci(levels + 2)
    out, step, at, errors = {0: 0, 2**levels: n}, 2 ** (levels - 1), 2 ** (levels - 1), []
    for level in range(levels):
        low, high, right = out[at - step], out[at + step], n * at // 2**levels
        out[at] = 2 * (low + (high - low) // 2) - (right - bits) - margin
        assert low < right - bits and out[at] < high, "both halves lie inside the node"
        errors.append(out[at] - right)
        step //= 2
        at += step if level % 2 == 0 else -step
    return errors


@check(
    "thm:binary",
    rejects=[golden, *(lambda k, by=by: corrected_binary(k) * arb(by) for by in ("0.99", "1.01"))],
)
def check_binary_every_depth(subject: Callable[[int], arb] = corrected_binary) -> str:
    """The path of bad luck at any depth to 60: its last error is F_{k+2} - 1 times log(m/(beta Psi))/log 2 up to a
    thousandth, with probability above beta = 1/2, since each of its nodes takes the far half with chance 1/(1 + 2^-10)
    at least; so that no smaller constant will do."""
    bits, margin = 10**6, 10
    for levels in range(1, 61):
        errors = errors_of_path(levels, bits, margin)
        # 1/Psi is below 2^(bits + 1) on the path and 1 beside it
        spread = log_ball(levels * F(2) ** (bits + 1) + 2**levels - 1 - levels) + arb(2).log()
        ratio = arb(errors[-1]) / (subject(levels) * spread / arb(2).log())
        assert arb("0.999") < ratio < arb("1.001"), (levels, ratio)
        if levels <= 6:
            assert tuple(errors_of_path(levels, 40, margin)) == binary_chain(levels, 40, margin).errors, levels
    assert (1 / (1 + F(1, 2**margin))) ** 60 > HALF
    return "thm:binary: errors of F_(k+2) - 1 times its logarithm, up to a thousandth, at every depth to 60"


@check("thm:binary", rejects=[lambda k: (golden(k), 0), lambda k: (corrected_binary(k), 0)])
def check_binary_exact(subject: Callable[[int], tuple[arb, int]] | None = None) -> str:
    """The corrected theorem against exact laws for m = 3 and 7 on small data, rounding and all."""
    rule = subject or (lambda levels: (corrected_binary(levels), binary_rounding(levels)))
    worst = 0.0
    for levels, n, z, beta in itertools.product(
        (2, 3), (1, 2, 3, 5), (HALF, Fraction(1, 10**9)), (Fraction(1, 10), HALF)
    ):
        m = 2**levels - 1
        quantiles = tuple(Fraction(i, m + 1) for i in range(1, m + 1))
        cells = (0, n) if levels == 3 and n > 3 else range(min(n + 1, 3))
        priors = tuple({k + Fraction(i, m + 1): Fraction(1, len(cells)) for k in cells} for i in range(1, m + 1))
        algorithm, data = Algorithm(quantiles, priors, (z,) * m), Grid(n)
        constant, slack = rule(levels)
        claimed = constant * log_ball(algorithm.inverse_psi_sum(data) / beta) / -log_ball(z) + slack
        law = algorithm.law(data)
        failed = sum(
            (p for outputs, p in law.items() if ball(max(algorithm.gaps(data, outputs))) > claimed), Fraction(0)
        )
        assert failed <= beta, (m, n, z, float(failed))
        worst = max(worst, float(failed / beta))
    return (
        "thm:binary, corrected with F_(k+2) - 2 ranks of rounding: exact failure at most beta (largest "
        f"ratio {worst:.3f})"
    )


@check("thm:binary", rejects=[lambda: arb(1), lambda: arb("1.17"), lambda: arb("1.18")])
def check_binary_leading(subject: Callable[[], arb] = lambda: golden(2) / arb(5).sqrt()) -> str:
    """The corrected constant is below phi**2 / sqrt 5 = 1.1708 times phi**k, and tends to that."""
    for k in range(1, 120):
        ratio = corrected_binary(k) / golden(k)
        assert ratio < subject(), (k, ratio)
    assert corrected_binary(119) / golden(119) > subject() * (1 - arb("1e-20"))
    assert all(corrected_binary(k) < golden(k) for k in range(1, 4))
    assert all(corrected_binary(k) > golden(k) for k in range(4, 60))
    return "F_(k+2) - 1 < 1.1709 phi^k, the constant phi^2 / sqrt 5 is best; below phi^k for k <= 3 only"


@check("step:binary-recurrence", code=fibonacci, rejects=[lambda k: fibonacci(k + 1) - 1, lambda k: fibonacci(k + 2)])
def check_binary_recurrence(subject: Callable[[int], int] = lambda k: fibonacci(k + 2) - 1) -> str:
    """A_k = 1 + A_{k-1} + A_{k-2}, A_0 = 0, A_1 = 1: F_{k+2} - 1 for all k by induction, and Binet's formula."""
    a, b = 0, 1
    for k in range(300):
        assert subject(k) == a, (k, subject(k), a)
        assert k != 2 or (a, fibonacci(3) - 1) == (2, 1), "as the row says"
        a, b = b, 1 + a + b
    k = sympy.symbols("k", integer=True, positive=True)
    f = [sympy.Symbol(f"F{j}") for j in range(3)]  # F_k, F_{k+1}, F_{k+2}: the induction step
    step = 1 + (f[0] + f[1] - 1) + (f[1] - 1) - (f[1] + (f[0] + f[1]) - 1)
    assert sympy.expand(step) == 0
    phi = (1 + sympy.sqrt(5)) / 2
    binet = (phi**k - (1 - phi) ** k) / sympy.sqrt(5)
    assert all(sympy.simplify(binet.subs(k, j)) == fibonacci(j) for j in range(1, 12))
    return (
        "thm:binary: A_k = F_{k+2} - 1 for all k (induction; checked to 300); the printed F_{k+1} - 1 is one "
        "index short"
    )


@check("step:binary-edges", rejects=[lambda depth: (depth - 1, depth - 3), lambda depth: (depth - 2, depth - 2)])
def check_binary_step(subject: Callable[[int], tuple[int, int]] = lambda depth: (depth - 1, depth - 2)) -> str:
    """Every relative quantile is 1/2; of a node's edges one is the parent and the other lies two levels up or more."""
    for levels in range(1, 9):
        m = 2**levels - 1

        def down(node: Node | None, low: tuple[int, int], high: tuple[int, int]) -> None:
            if node is None:
                return
            (i,) = node.indices
            assert 2 * (i + 1) == low[0] + high[0]
            nearer, farther = max(low[1], high[1]), min(low[1], high[1])
            if node.depth == 1:
                assert (low, high[1]) == ((0, 0), 0), "the root's edges are the ends"
            else:
                parent, above = subject(node.depth)
                assert nearer == parent, node
                assert farther <= above, node
            for child, sides in zip(
                node.children, ((low, (i + 1, node.depth)), ((i + 1, node.depth), high)), strict=False
            ):
                down(child, *sides)

        down(build(range(m), 2), (0, 0), (m + 1, 0))
    return (
        "uniform dyadic quantiles: all relative quantiles are 1/2, edges at depth k - 1 and at most k - 2 (m up to 255)"
    )


@check(
    "step:binary-display",
    code=fibonacci,
    rejects=[
        lambda k: golden(k + 1) / arb(5).sqrt(),
        *(lambda k, by=by: golden(k + 2) / arb(5).sqrt() * arb(by) for by in ("0.9", "0.99", "1.01")),
    ],
)
def check_binary_display(subject: Callable[[int], arb] = lambda k: golden(k + 2) / arb(5).sqrt()) -> str:
    """phi^(k+1)/sqrt 5 in the last display of thm:binary is exceeded from k = 2 on; phi^(k+2)/sqrt 5 never is.

    By Binet F_{k+2} is phi^(k+2)/sqrt 5 up to |1 - phi|^(k+2)/sqrt 5, which falls and is below 1 at k = 0 already.
    """
    beta = HALF
    assert 0 < golden(1) - 1 < 1 and 1 / arb(5).sqrt() < 1
    for k in range(1, 90):
        assert arb(fibonacci(k + 2) - 1) < subject(k), k
        short = golden(k + 1) / arb(5).sqrt()
        assert short < golden(k) and (short < fibonacci(k + 2) - 1) == (k > 1), k
        assert (golden(k) < fibonacci(k + 2) - 1) == (k > 3), "the theorem is too small from k = 4 on"
        assert ((2**k - 2).bit_length() == k) == (k > 1), "ceil(log2 m) is the depth, but at m = 1, where it is 0"
    assert subject(80) < arb("1.001") * (fibonacci(82) - 1), "close in the end"
    digits = golden(3) / arb(5).sqrt(), golden(1) / arb(5).sqrt()
    assert [round(float(value), 2) for value in digits] == [1.89, 0.72] and fibonacci(4) - 1 == 2, "as the row says"
    claims = {}
    for k in range(2, 6):
        chain = binary_chain(k, 4000, margin=4)
        printed = golden(k + 1) / arb(5).sqrt() * chain.log_spread(beta) / log_ball(2)
        assert ball(chain.errors[-1]) > printed, k
        assert chain.failure(chain.errors[-1]) > beta
        claims[k] = round(float(printed)), chain.errors[-1]
    assert claims[2] == (7582, 7992), claims
    return "last display of thm:binary at m = 3: claimed {} w.p. 1/2, actual {} (exact)".format(*claims[2])


@check("text:worse-in-m", rejects=[lambda k: arb(k), lambda k: golden(k) / 2])
def check_worse_in_m(subject: Callable[[int], arb] = golden) -> str:
    """phi^k k > k^2 for all k = log2(m + 1): thm:binary depends on m worse than AQ's bound does."""
    for k in range(1, 80):
        assert subject(k) > k, k
    phi = (1 + sympy.sqrt(5)) / 2
    assert sympy.simplify(phi * (phi - 1)) == 1  # so phi^{k+1} - phi^k >= 1 from k = 1 on
    corrected = [bounds.fibonacci(k + 2) - 1 - k for k in range(1, 80)]
    assert corrected[:3] == [0, 0, 1] and all(value > 0 for value in corrected[2:])
    return "phi^k > k for every k >= 1; with the corrected constant equal for m = 1, 3 and worse from m = 7 on"


@check(
    "thm:binary",
    "thm:kary",
    "thm:kary-main",
    "ours:binary-shares",
    "ours:kary-shares",
    "cor:multiple",
    "lem:prior",
    "text:repetitions",
    rejects=[lambda total: log_ball(total), lambda total: log_ball(total * F(99, 100))],
)
def check_edge_total(subject: Callable[[Fraction], arb] = lambda total: arb(0)) -> str:
    """Counterexample to thm:binary, thm:kary and cor:multiple for base measures of mass above one, m = 3: scaling
    changes only the claim.
    """
    z, total = HALF, F(1000)
    priors: tuple[Prior, ...] = tuple({k + F(i, 4): total / 2 for k in range(2)} for i in (1, 2, 3))
    for arity, constant in ((4, 1), (2, 2)):  # one level of three mechanisms, (K - 1) H A over K - 1; F_4 - 1
        algorithm, data = Algorithm(QUARTERS, priors, (z,) * 3, arity=arity), Grid(1)
        spread = log_ball(algorithm.inverse_psi_sum(data) / HALF) + subject(total)
        claimed = constant * spread / -log_ball(z)  # no rounding needed for a bound below zero
        far = mechanism(Restricted(data, -INFINITY, INFINITY), HALF, priors[1], z)[1 + HALF]  # a gap of 1 at the root
        assert ball(z / psi(data, HALF, priors[1], z)) * subject(total).exp() < ball(far), "lem:prior survives"
        epsilon = -6 * math.log(z)  # one level has one budget: ours:kary-shares is thm:kary
        ours = bounds.kary_weighted(-float(spread) + math.log(6), epsilon, 3, 0.5, arity=4)
        assert arity == 2 or math.isclose(ours, float(claimed), rel_tol=1e-9), ours
        shared = bounds.binary_weighted(-float(spread) + math.log(6), -4 * math.log(z), 3, 0.5)  # two equal shares
        assert arity == 4 or (math.isclose(shared, float(claimed) + 1, rel_tol=1e-9) and shared < 0), shared
        failed = sum(p for outputs, p in algorithm.law(data).items() if max(algorithm.gaps(data, outputs)) >= 1)
        assert claimed < 0, f"the bound survives: {float(claimed):.2f}"
        assert failed > 0
    return f"edge adaptation, mass 1000: thm:binary and thm:kary claim a largest gap below {float(claimed):.1f} < 0"
