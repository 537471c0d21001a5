"""Gaussian noise on private sums: multipliers, nodes of the tree, widths."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import sympy
import z3
from flint import arb

from pq import bounds
from pq.learners import DPFTRL
from proofs_checks.engine.registry import check
from proofs_checks.section_5_1.laplace_slopes import derivatives
from proofs_checks.tools.exact import ball
from proofs_checks.tools.gaussian import certify, corrected_multiplier, exact_delta, log_of, printed_multiplier
from proofs_checks.tools.runs import prefix_nodes
from proofs_checks.tools.solver import prove

F = Fraction
HALF = Fraction(1, 2)


@check(
    "thm:dpftrl",
    "thm:dpftrl/privacy",
    "ours:dpftrl-noise",
    rejects=[printed_multiplier, lambda eps, delta: corrected_multiplier(eps, delta) * mpmath.mpf("0.7")],
)
def check_gaussian_noise(subject: Callable[[Any, Any], Any] = corrected_multiplier) -> str:
    """The corrected sigma is private at every epsilon; the printed one is not up to epsilon' = 2 log(1/delta')."""
    root_rho, root_odds = sympy.symbols("root_rho root_odds", positive=True)
    # delta <= P(N(rho, 2 rho) > eps) <= exp(-(eps-rho)^2/(4 rho)); with eps = rho + 2 sqrt(rho L) that is exp(-L).
    rho, epsilon = root_rho**2, root_rho**2 + 2 * root_rho * root_odds
    assert sympy.simplify((epsilon - rho) ** 2 / (4 * rho) - root_odds**2) == 0
    assert sympy.expand((root_rho + root_odds) ** 2 - (root_odds**2 + epsilon)) == 0
    with mpmath.workdps(60):
        for delta in ("0.5", "0.1", "1e-3", "1e-6", "1e-12", "1e-40"):
            for eps in (0.01, 0.5, 1, 3, 6, 10, 20, 50):
                exact = exact_delta(mpmath.mpf(eps), subject(eps, mpmath.mpf(delta)))
                assert exact <= mpmath.mpf(delta), (eps, delta, mpmath.nstr(exact, 4))
        broken = exact_delta(10, printed_multiplier(10, mpmath.mpf("1e-6")))
        assert mpmath.nstr(broken, 3) == "2.42e-6", "as the rows say"
        top = 2 * mpmath.log(10**6)
        edge = exact_delta(top, printed_multiplier(top, mpmath.mpf("1e-6")))
        assert (mpmath.nstr(top, 3), mpmath.nstr(edge, 2)) == ("27.6", "0.0027"), "as the row says"
        for eps in (1, 4, 8.339, 8.34, 9, 12, 20, top):
            kept = exact_delta(eps, printed_multiplier(eps, mpmath.mpf("1e-6"))) <= mpmath.mpf("1e-6")
            assert kept == (eps < 8.34), "the printed one fails from 8.34 on"
    worst = f"eps'=10: delta = {mpmath.nstr(broken, 3)}; eps'=27.6: {mpmath.nstr(edge, 3)}"
    return f"printed sigma at delta'=1e-6: {worst}; sqrt(k/2)(sqrt(L+eps)+sqrt(L))/eps is private at every eps"


@check("thm:dpftrl", "thm:dpftrl/privacy", "ours:dpftrl-noise", rejects=[6.0, 5.355, 5.3, 5.353, 5.3532])
def check_printed_noise_range(subject: float = 5.35319) -> str:
    """Interval proof: the printed sigma is private for every delta' and every eps' <= min(2 log(1/delta'), 5.35319),
    and at delta' = exp(-eps'/2) no longer for eps' = 5.3532.

    delta(eps) of the printed sigma rises with eps, so that the largest eps' decides: with x = sqrt(2 log(1/delta')) and
    y = x + eps/(2x) its derivative is exp(eps) times phi(y)/x - Phi(-y), which is positive by Mills' ratio.  At eps =
    x^2 (for x^2 <= 5.35319) and at eps = 5.35319, delta(eps)/delta' - 1 is negative; beyond x = 7 the bound delta <=
    phi(r)/r with r = x - eps/(2x) settles it.
    """
    size, eps = sympy.symbols("x eps", positive=True)
    density, tail = (
        (lambda v: sympy.exp(-(v**2) / 2) / sympy.sqrt(2 * sympy.pi)),
        (lambda v: sympy.erfc(v / sympy.sqrt(2)) / 2),
    )
    low, high = size - eps / (2 * size), size + eps / (2 * size)
    rise = sympy.diff(tail(low) - sympy.exp(eps) * tail(high), eps)
    assert sympy.simplify(rise * sympy.exp(-eps) - density(high) / size + tail(high)) == 0

    def cdf(y: Any) -> Any:
        return (-y / arb(2).sqrt()).erfc() / 2

    def room(x: Any, epsilon: Any) -> Any:
        half = epsilon / (2 * x)
        return 1 - (x * x / 2).exp() * (cdf(half - x) - epsilon.exp() * cdf(-half - x))

    def largest(x: Any) -> Any:
        return 1 - (x * x / 2).exp() * (cdf(-x / 2) - (x * x).exp() * cdf(-3 * x / 2))

    assert largest(arb(subject + 0.00001).sqrt()) < 0, "private for a larger eps' too"
    pieces = certify(largest, 0.0, math.sqrt(subject))
    pieces += certify(lambda x: room(x, arb(subject)), math.sqrt(subject), 7.0)

    def tail(x: Any) -> Any:
        e = arb(subject)
        return 1 - (e / 2).exp() / ((2 * arb.pi()).sqrt() * (x - e / (2 * x)))

    pieces += certify(tail, 7.0, 8.0)  # its subtrahend falls with x
    return f"printed sigma certified private for eps' <= min(2 log(1/delta'), {subject}), every delta' ({pieces} balls)"


def gradients_before(gradients: Sequence[int], t: int) -> int:
    """Corrected comparison: the sum of the gradients before step t."""
    return sum(gradients[: t - 1])


@check(
    "step:dpftrl-index",
    rejects=[
        lambda gradients, t: sum(gradients[:t]),
        lambda gradients, t: sum(gradients[: t + 1]),
        lambda gradients, t: sum(gradients),
    ],
)
def check_noise_index(subject: Callable[[Sequence[int], int], int] = gradients_before) -> str:
    """Without noise, g_t is the sum of the gradients before t, so that b_t = g_t - (comparison sum) must vanish."""
    gradients, seen = [1, 1, -1, 1], 0
    for t in range(1, len(gradients) + 1):
        assert seen - subject(gradients, t) == 0, f"t={t}: b_t = {seen - subject(gradients, t)} without any noise"
        seen += gradients[t - 1]
    return (
        "the comparison iterate must sum gradients up to t-1: with the printed index b_1 = -(first gradient), not noise"
    )


def _private_sums(gradients: np.ndarray, std: float, reach: float, eta: float) -> np.ndarray:
    """Points of DP-FTRL on [-reach, reach], each before its gradient, with the same noise whatever the gradients."""
    seeded = np.random.default_rng(71)
    learner = DPFTRL([0.0], steps=len(gradients), step=eta, noise_std=std, rng=seeded, lower=-reach, upper=reach)
    points = []
    for gradient in gradients:
        points.append(float(learner.point[0]))
        learner.update([gradient])
    return np.array(points)


@check(
    "step:dpftrl-index",
    code=DPFTRL,
    rejects=[(1, 0, 1.0), (0, 1, 1.0), (1, 1, 1.0), (-1, 0, 1.0), (0, -1, 1.0), (0, 0, 0.95), (0, 0, 0.5)],
)
def check_comparison_iterate(subject: tuple[int, int, float] = (0, 0, 1.0)) -> str:
    """DP-FTRL of the package: with sums to t-1, b_t is the noise (what the sums are without gradients), the iterate
    without noise is within eta |b_t|, and the regret within the printed bound. As printed, b_1 = -1 for gradients of 1.

    subject: gradients that b_t, and the comparison iterate, sum beyond the first t-1; and a part of the bound, of which
    gradients against the noise need nearly all.
    """
    ones = np.ones(8)
    assert -_private_sums(ones, 0.0, np.inf, 1.0)[0] - ones[:1].sum() == -1, "as the row says"
    draw, closest = np.random.default_rng(72), 0.0
    runs = [(0.0, "ones"), (0.0, "signs"), (0.25, "ones"), (2.0, "signs"), (0.25, "signs"), (30.0, "ones")]
    for std, kind in [*runs, (10.0, "against")]:
        steps, eta = (1000, 0.002) if kind == "against" else (40, 2.0**-4)
        noise = -_private_sums(np.zeros(steps), std, np.inf, 1.0)
        gradients = np.ones(steps) if kind == "ones" else draw.choice([-1.0, 1.0], steps)
        gradients = -np.sign(noise) if kind == "against" else gradients
        summed = np.concatenate([[0.0], np.cumsum(gradients), [gradients.sum()]])
        to_b, to_iterate = (summed[[min(max(t + more, 0), steps) for t in range(steps)]] for more in subject[:2])
        found = -_private_sums(gradients, std, np.inf, 1.0) - to_b
        assert np.allclose(found, noise, rtol=0, atol=1e-9), (std, kind, "b_t is not the noise")
        points, compared = _private_sums(gradients, std, 1.0, eta), np.clip(-eta * to_iterate, -1, 1)
        moved = np.abs(compared - points)
        assert np.all(moved <= eta * np.abs(found) * (1 + 1e-9) + 1e-12), (std, kind, "the iterate is farther away")
        regret = float(points @ gradients) + abs(float(gradients.sum()))  # against the best end of [-1, 1]
        bound = subject[2] * (0.5 / eta + eta * (steps + float(np.abs(found).sum())))
        assert regret <= bound, (std, kind, regret, bound)
        closest = max(closest, regret / bound)
    return f"b_t and the iterate of thm:dpftrl sum to t-1: noise, move and bound hold (regret to {closest:.2f} of it)"


def _one_more_node(steps: int, *, release_total: bool) -> int:
    return math.ceil(math.log2(steps))


@check(
    "thm:dpftrl/nodes",
    "thm:sequential/nodes",
    code=bounds.tree_nodes,
    rejects=[
        _one_more_node,
        lambda steps, *, release_total: steps.bit_length() + 1,
        lambda steps, *, release_total: math.ceil(math.log2(steps + release_total)),
        lambda steps, *, release_total: min(bounds.tree_nodes(steps, release_total=release_total), 7),
    ],
)
def check_node_count(subject: Callable[..., int] = bounds.tree_nodes) -> str:
    """Exact number of released tree nodes that hold one gradient, T = 1..64, by listing the nodes. For any T: nodes are
    dyadic, so a gradient is in one of each length, and the first is in that of every power of two that is a prefix."""
    short = []
    for power in range(70):
        assert prefix_nodes(2**power) == [(1, 2**power)]
        for steps in {max(2**power + by, 1) for by in (-1, 0, 1, 2)}:
            for total in (False, True):
                lengths = [k for k in range(80) if 2**k <= (steps if total else steps - 1)]
                assert subject(steps, release_total=total) == len(lengths), (steps, total)
                least = (steps - 1).bit_length()  # the least k with 2^k >= T, without a logarithm's rounding
                assert total or (len(lengths) == least and 2**least >= steps > 2**least // 2), "as the row says"
            held = subject(steps, release_total=True)
            assert 2 ** (held - 1) < steps + 1 <= 2**held, "ceil(log2(T + 1)) is the bit length"
    assert bounds.dpftrl_noise(1, 1.0, 1e-6, version="paper") == 0.0 < bounds.dpftrl_noise(1, 1.0, 1e-6), "the row's"
    for steps in range(1, 65):
        for total in (False, True):
            last = steps if total else steps - 1
            nodes = {block for prefix in range(1, last + 1) for block in prefix_nodes(prefix)}
            assert all((a - 1) % (b - a + 1) == 0 and (b - a + 1).bit_count() == 1 for a, b in nodes), "dyadic"
            most = max((sum(a <= leaf <= b for a, b in nodes) for leaf in range(1, steps + 1)), default=0)
            assert subject(steps, release_total=total) == most, (steps, total, most)
            spare = math.ceil(math.log2(steps + 1)) - most  # of the count that thm:sequential prints
            assert spare == (not total and steps.bit_count() == 1), "one too many without the last sum, at powers of 2"
            if total and most > math.ceil(math.log2(steps)):
                short.append(steps)
    assert short == [1, 2, 4, 8, 16, 32, 64]
    assert (subject(2, release_total=True), math.ceil(math.log2(2))) == (2, 1), "as the row says"
    assert all(math.ceil(math.log2(steps + 1)) == bounds.tree_nodes(steps) for steps in range(1, 1000))
    return f"nodes per gradient: ceil(log2 T) for theta_1..theta_T; one more with the T-th sum at T = {short}"


@check(
    "thm:dpftrl/gaussian-width", rejects=[lambda p: math.sqrt(math.log(p)), lambda p: math.sqrt(2 * math.log(p)) * 0.9]
)
def check_gaussian_width(subject: Callable[[int], float] = lambda p: 2 * math.sqrt(math.log(p))) -> str:
    """Width of the l1 ball, E max|z_i|, is at most sqrt(2 log 2p), and that at most 2 sqrt(log p) from p = 2 on;
    Euclidean <= sqrt(p)."""
    for p in (1, 2, 3, 5, 10, 50, 1000, 10**6, 10**9):
        width = mpmath.quad(lambda x, p=p: 1 - mpmath.erf(x / mpmath.sqrt(2)) ** p, [0, 2, 4, 6, 8, 20])
        assert width <= math.sqrt(2 * math.log(2 * p)) * (1 + 1e-12)
        assert width <= subject(p) or p == 1, (p, float(width))
        assert p > 1 or abs(width - mpmath.sqrt(2 / mpmath.pi)) < 1e-12, "as the row says"
    for p in (1, 2, 10, 100):
        assert mpmath.sqrt(2) * mpmath.gammaprod([(p + 1) / mpmath.mpf(2)], [p / mpmath.mpf(2)]) <= math.sqrt(p)
    # For all p: E exp(s |z|) <= 2 exp(s^2/2), so that the width is at most (log 2p + s^2/2)/s for any s > 0.
    spread, rate = sympy.symbols("spread rate", positive=True)
    best = sympy.solve(sympy.diff((spread + rate**2 / 2) / rate, rate), rate)[0]
    assert sympy.simplify(((spread + rate**2 / 2) / rate).subs(rate, best) - sympy.sqrt(2 * spread)) == 0
    log_two, log_p = z3.Reals("log_two log_p")
    prove(z3.Implies(log_p >= log_two, 2 * (log_two + log_p) <= 4 * log_p), "sqrt(2 log 2p) against 2 sqrt(log p)")
    assert subject(1) == 0 < mpmath.sqrt(2 / mpmath.pi) < math.sqrt(2 * math.log(2)), "one number, as the row says"
    return "Gaussian width: 2 sqrt(log md) bounds it for md >= 2 (exact E max|z|); Euclidean <= sqrt(d)"


@check("step:dpftrl-concentration", rejects=[0.6, 0.0, 0.99, 1.01])
def check_concentration(subject: float = 1.0) -> str:
    """Pr{|z|_* >= E |z|_* + C sqrt(2 log(T/b))} <= b/T: exact tails of the largest of p normals, of their Euclidean
    length (C = 1 for both), and of the l1 norm of two (C = sqrt 2)."""
    largest = 0.0
    for p in (1, 2, 10, 1000):
        mean = mpmath.quad(lambda x, p=p: 1 - mpmath.erf(x / mpmath.sqrt(2)) ** p, [0, 2, 4, 8, 20])
        for failure in (0.5, 0.1, 1e-3, 1e-9):
            at = mean + subject * mpmath.sqrt(2 * mpmath.log(1 / mpmath.mpf(failure)))
            tail = -mpmath.expm1(p * mpmath.log1p(-mpmath.erfc(at / mpmath.sqrt(2))))
            assert tail <= failure, (p, failure)
            largest = max(largest, float(tail / failure))
            length = mpmath.sqrt(2) * mpmath.gammaprod([mpmath.mpf(p + 1) / 2], [mpmath.mpf(p) / 2])
            reach = length + subject * mpmath.sqrt(2 * mpmath.log(1 / mpmath.mpf(failure)))
            assert mpmath.gammainc(mpmath.mpf(p) / 2, reach**2 / 2, mpmath.inf, regularized=True) <= failure, p
            if p == 2:  # |z_1| + |z_2| is sqrt 2 times the larger of |z_1 + z_2| and |z_1 - z_2| over sqrt 2
                place = mpmath.sqrt(2) * mean + subject * mpmath.sqrt(4 * mpmath.log(1 / mpmath.mpf(failure)))
                assert 1 - mpmath.erf(place / 2) ** 2 <= failure, "the l1 norm"
    rare, mean = mpmath.mpf(10) ** -40_000, mpmath.sqrt(2 / mpmath.pi)  # of one normal
    tails = [
        mpmath.erfc(mean / mpmath.sqrt(2) + by * mpmath.sqrt(-mpmath.log(rare))) for by in (subject, 0.995 * subject)
    ]
    assert tails[0] <= rare < tails[1], "no smaller constant does for rare events"
    return f"Gaussian concentration of the max, l2 and l1 norms: exact tails of the max at most {largest:.2f} of b/T"


def normal(x: arb) -> arb:
    """Standard normal distribution function."""
    return (-x / arb(2).sqrt()).erfc() / 2


def gaussian_delta(epsilon: arb, multiplier: arb) -> arb:
    """Exact delta of Gaussian noise that is a multiple of the sensitivity."""
    half, shift = 1 / (2 * multiplier), epsilon * multiplier
    return normal(half - shift) - epsilon.exp() * normal(-half - shift)


def corrected_noise(epsilon: arb, odds: arb) -> arb:
    """Multiplier of ours, odds = log(1/delta)."""
    return ((odds + epsilon).sqrt() + odds.sqrt()) / (arb(2).sqrt() * epsilon)


def printed_noise(epsilon: arb, odds: arb) -> arb:
    """Multiplier as printed."""
    return (2 * odds).sqrt() / epsilon


def joint(multiplier: arb) -> arb:
    """Multiplier of both runs of thm:sequential together, for a record that turns v's gradient round and moves phi's.

    Records R - 2w, R - w, R and q = 7/10; one more below them moves the optimal interval from (R - w, R] to (R - 2w,
    R - w], and theta/phi = R - w is an end of both.  There the derivative in theta is -1 and 1, and that in phi is c -
    h coth(h phi) and -c - h coth(h phi), c the middle and h = w/2: they differ by 2 and by 2 (R - w), where the noise
    is made for 2 and for 2 (R + sigma_max).  Here R = 1000 sigma_max and w = sigma_max/100.
    """
    radius, width = F(1000), F(1, 100)
    h = ball(width / 2)
    steep = h * h.cosh() / h.sinh()
    moved = (ball(radius - width / 2) - steep) - (-ball(radius - width * F(3, 2)) - steep)
    share = moved / (2 * ball(radius + 1))
    return multiplier / (1 + share**2).sqrt()


@check(
    "thm:dpftrl",
    "thm:dpftrl/privacy",
    "thm:sequential/privacy",
    rejects=[
        printed_noise,
        lambda epsilon, odds: corrected_noise(epsilon, odds) * arb("0.8"),
        lambda epsilon, odds: corrected_noise(epsilon, odds) / 2,
    ],
)
def check_noise(subject: Callable[[arb, arb], arb] = corrected_noise) -> str:
    """thm:dpftrl/privacy and thm:sequential/privacy at delta' = 10^-6: one run at eps' = 10, two runs at eps' = 50."""
    delta = ball(F(1, 10**6))
    with mpmath.workdps(40):  # the row's pair, on the first of three days, in units of sigma_max
        w, slopes = mpmath.mpf(1) / 100, []
        records = [1000 - 2 * w, 1000 - w, mpmath.mpf(1000)]
        for x in (records, [mpmath.mpf(0), *records]):
            rank = math.floor(F(7, 10) * len(x))
            slopes.append(derivatives(1000 - w, mpmath.mpf(1), x[rank - 1], x[rank]))
        turned, moved = (other - one for one, other in zip(*slopes, strict=True))
        assert max(abs(turned - 2), abs(moved + 2 * (1000 - w))) < mpmath.mpf(10) ** -30
    nodes = {bounds.tree_nodes(3, release_total=total) for total in (False, True)}
    assert nodes == {2} == {math.ceil(math.log2(3)), math.ceil(math.log2(3 + 1))}, "of the first gradient, and printed"
    for epsilon in (F(1), F(10), F(20)):
        one = gaussian_delta(ball(epsilon), subject(ball(epsilon), log_of(10**6)))
        assert one < delta, (epsilon, one)
    for epsilon in (F(1), F(50)):
        both = subject(ball(epsilon / 2), log_of(2 * 10**6)) / arb(2).sqrt()  # at most, whatever the record does
        assert gaussian_delta(ball(epsilon), both) < delta, epsilon
        assert both < joint(subject(ball(epsilon / 2), log_of(2 * 10**6)))
    # the noise in the printed regret is that of one Lipschitz constant, half of the sensitivity: eps' = 1 is too much
    halved = joint(printed_noise(ball(HALF), log_of(2 * 10**6)) / 2)
    assert gaussian_delta(arb(1), halved) > delta
    one = gaussian_delta(arb(10), printed_noise(arb(10), log_of(10**6)))
    two = gaussian_delta(arb(50), joint(printed_noise(arb(25), log_of(2 * 10**6))))
    assert one > delta
    assert two > delta
    assert (f"{float(two):.1e}", f"{float(gaussian_delta(arb(1), halved)):.0e}") == ("4.1e-06", "7e-06"), (
        "as the row says"
    )
    return (
        f"printed sigma, delta' = 1e-6: delta {float(one):.3g} (one run at 10), {float(two):.3g} (two at 50), in balls"
    )
