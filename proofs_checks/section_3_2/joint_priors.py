"""Priors for all quantiles at once, beyond the paper: U and where it is convex, mixing, and learning."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import z3

import pq
from pq.bounds import joint_gap, joint_mixed_gap, joint_mixed_psi
from pq.losses import joint_mixture, place_and_width
from proofs_checks.engine.registry import check
from proofs_checks.section_3_2.joint import exact_best
from proofs_checks.tools.solver import follows

F = Fraction
HALF = F(1, 2)
EPSILON = 2 * math.log(2)  # scores count in powers of two
BETAS = (F(1, 2), F(1, 10), F(1, 1000))


# --- mixing -----------------------------------------------------------------------------------------------------------

MASSES = (  # of five cells, by members
    (F(1), F(0), F(0), F(0), F(0)),
    (F(1, 100), F(48, 100), F(2, 100), F(48, 100), F(1, 100)),
    (F(1, 5),) * 5,
)


def mixed_law(weights: tuple[Fraction, ...]) -> dict[tuple[int, ...], tuple[Fraction, list[Fraction], Fraction]]:
    """Score, shares by member, and weight at rate log 2, of the ranks of two outputs among four records."""
    out = {}
    for ranks in itertools.combinations_with_replacement(range(5), 2):
        orders = 1 if ranks[0] == ranks[1] else 2
        shares = [orders * cells[ranks[0]] * cells[ranks[1]] for cells in MASSES]
        counts = tuple(b - a for a, b in itertools.pairwise((0, *ranks, 4)))
        score = exact_best(counts, (F(1, 3), F(2, 3)))
        base = sum((w * s for w, s in zip(weights, shares, strict=True)), F(0))
        out[ranks] = score, shares, base / 2 ** int(score)
    return out


def _without_the_weight(quantile: float, log_psi: float, weight: float, *known: float, **facts: Any) -> float:
    return joint_mixed_gap(quantile, log_psi, 1.0, *known, **facts)


def _of_the_other_weight(quantile: float, log_psi: float, weight: float, *known: float, **facts: Any) -> float:
    return joint_mixed_gap(quantile, log_psi, 1.0 - weight, *known, **facts)


def _of_scaled_logarithm(factor: float) -> Callable[..., float]:
    """The price of the weight times a factor, the member's own bound as it is."""

    def scaled_price(quantile: float, log_psi: float, weight: float, *known: float, **facts: Any) -> float:
        return joint_mixed_gap(quantile, log_psi, weight**factor, *known, **facts)

    return scaled_price


def _of_the_best(log_psis: list[float], weights: tuple[Fraction, ...]) -> float:
    return max(log_psis)


def _of_logarithms(log_psis: list[float], weights: tuple[Fraction, ...]) -> float:
    return float(sum(w * max(log_psi, -50.0) for w, log_psi in zip(weights, log_psis, strict=True)))


@check(
    "ours:joint-mixing",
    code=(joint_mixed_psi, joint_mixed_gap),
    rejects=[
        (joint_mixed_psi, _without_the_weight),
        (joint_mixed_psi, _of_the_other_weight),
        (_of_the_best, joint_mixed_gap),
        (_of_logarithms, joint_mixed_gap),
    ],
)
def check_joint_mixing(subject: tuple[Any, Any] = (joint_mixed_psi, joint_mixed_gap)) -> str:
    """Shares of a mixture in fractions, its U beside each member's, and exact tails of its gaps for every box."""
    cases = 0
    for first, second in itertools.product((F(1, 2), F(1, 10), F(1, 1000), F(1, 10**9)), repeat=2):
        weights = (1 - first, first * second, first * (1 - second))
        law = mixed_law(weights)
        whole = sum((weight for *_, weight in law.values()), F(0))
        for score, shares, _ in law.values():
            share = sum((w * s for w, s in zip(weights, shares, strict=True)), F(0))
            logs = [math.log(s) if s else -math.inf for s in shares]
            assert abs(subject[0](logs, weights) - math.log(share)) < 1e-12
            for (member, weight), beta in itertools.product(zip(shares, weights, strict=True), BETAS):
                assert share >= member * weight
                if member:
                    limit = subject[1](2 / 3, math.log(member), float(weight), EPSILON, float(beta), box_score=score)
                    missed = (w for r, (*_, w) in law.items() if max(abs(r[0] - F(4, 3)), abs(r[1] - F(8, 3))) > limit)
                    assert sum(missed, F(0)) <= beta * whole, (weights, member, beta)
                    cases += 1
    return f"a mixture costs a member the logarithm of its weight, once: {cases} exact tails"


PRICES = ((F(0), F(1)), (F(1, 4), F(3, 4)), (F(1, 2), F(1, 2)), (F(2, 3), F(2, 3)), (F(1), F(1)))  # max(q, 1 - q)


@check(
    "ours:joint-mixing",
    code=(joint_mixed_gap, joint_gap),
    rejects=[
        *(_of_scaled_logarithm(factor) for factor in (0.99, 1.01)),
        lambda *known, **facts: 0.99 * joint_mixed_gap(*known, **facts),
        lambda quantile, *known, **facts: joint_mixed_gap(max(quantile, 1 - quantile, 2 / 3), *known, **facts),
        lambda *known, **facts: joint_mixed_gap(*known),
    ],
)
def check_price_of_mixing(subject: Callable[..., float] = joint_mixed_gap) -> str:
    """The price is max(q, 1 - q) (2 / epsilon) log(1 / w) for every q, and all of it is paid where a member of weight
    1e-30 is sure of the optimal cell and the others lie at a score of 400, at the median."""
    weights = (F(1), F(1, 2), F(1, 10), F(1, 10**30))
    for (q, share), weight, epsilon in itertools.product(PRICES, weights, (0.01, 0.3, EPSILON, 60.0)):
        own, mixed = (
            one(float(q), -2.0, *w, epsilon, 0.05) for one, w in ((joint_gap, ()), (subject, (float(weight),)))
        )
        assert math.isclose(own, float(share) * 2 / epsilon * (2.0 - math.log(0.05))), "the member's own"
        price = float(share) * 2 / epsilon * math.log(1 / weight)
        assert math.isclose(mixed - own, price, rel_tol=1e-9, abs_tol=1e-9), (q, weight)
        for facts in ({"box_score": 7.5}, {"counts_moved": 2}, {"total_step": 3.0}):
            alike = joint_gap(float(q), -2.0 + math.log(weight), epsilon, 0.05, **facts)
            assert math.isclose(subject(float(q), -2.0, float(weight), epsilon, 0.05, **facts), alike), facts
    far, weight = 400, F(1, 10**30)
    assert exact_best((0, far), (F(1, 2),)) == far
    beta = float((1 - weight) / (weight * 2**far + 1 - weight)) * (1 - 1e-9)  # missed with just more than that
    bound = subject(0.5, 0.0, float(weight), EPSILON, beta)
    assert far / 2 <= bound <= 1.0001 * far / 2, bound
    return "mixing costs max(q, 1 - q) (2/epsilon) log(1/w), and all of it where the other members are far off"


@check("ours:joint-mixing", rejects=[lambda weight, m: weight, lambda weight, m: weight ** (m - 1)])
def check_mixing_apart(subject: Callable[[Fraction, int], Fraction] = lambda weight, m: weight**m) -> str:
    """What mixing each quantile by itself leaves of a member, where the other member misses every interval."""
    for m, weight in itertools.product((2, 3, 9), (F(1, 2), F(1, 10))):
        right, wrong = F(2, 3), F(0)  # mass of an optimal interval
        apart = math.prod([weight * right + (1 - weight) * wrong] * m)
        together = weight * right**m + (1 - weight) * wrong**m
        assert apart == subject(weight, m) * right**m and together == weight * right**m
    return "m mixtures of independent quantiles can cost m times what one joint mixture costs"


# --- convexity --------------------------------------------------------------------------------------------------------


def _of_geometric_means(weights: Any, log_psi: Any) -> tuple[float, Any]:
    return -float(np.dot(weights, log_psi)), -np.asarray(log_psi)


def _with_half_the_slope(weights: Any, log_psi: Any) -> tuple[float, Any]:
    value, gradient = joint_mixture(weights, log_psi)
    return value, 0.5 * gradient


@check("ours:joint-convex", code=joint_mixture, rejects=[_of_geometric_means, _with_half_the_slope])
def check_convex_in_weights(subject: Callable[..., tuple[float, Any]] = joint_mixture) -> str:
    """The loss of weights is the exact one, and above each of its tangents."""
    cases, simplex = 0, [(F(i, 4), F(j, 4), F(4 - i - j, 4)) for i in range(5) for j in range(5 - i)]
    for shares in ((F(1, 2), F(1, 3), F(1, 7)), (F(1), F(1, 10**6), F(1, 10**9))):
        logs = np.array([math.log(s) for s in shares])
        for one, other in itertools.product(simplex, repeat=2):
            value, gradient = subject(np.array(one, dtype=float), logs)
            exact = [-math.log(sum((w * s for w, s in zip(p, shares, strict=True)), F(0))) for p in (one, other)]
            assert abs(value - exact[0]) < 1e-12
            step = np.array([float(b - a) for a, b in zip(one, other, strict=True)])
            assert exact[1] >= value + float(gradient @ step) - 1e-9
            cases += 1
    return f"U is convex in the weights of a joint prior: {cases} tangents"


Weighted = Callable[[Fraction, tuple[Fraction, ...], tuple[Fraction, ...]], Fraction]


def given_order(weight: Fraction, boxes: tuple[Fraction, ...], orders: tuple[Fraction, ...]) -> Fraction:
    """Psi of two members, from their masses of the box and of outputs in order: the weight is of outputs in order."""
    return (1 - weight) * boxes[0] / orders[0] + weight * boxes[1] / orders[1]


def _as_given(weight: Fraction, boxes: tuple[Fraction, ...], orders: tuple[Fraction, ...]) -> Fraction:
    """The weight is that of the draws, before those out of order are left out."""
    box, order = ((1 - weight) * one + weight * other for one, other in (boxes, orders))
    return box / order


def _half_given(weight: Fraction, *members: tuple[Fraction, ...]) -> Fraction:
    return (given_order(weight, *members) + _as_given(weight, *members)) / 2


@check("ours:joint-convex", rejects=[_as_given, _half_given])
def check_weights_are_given_order(subject: Weighted = given_order) -> str:
    """Psi at the middle of two weights is at least the geometric mean, in fractions; with weights of the draws it is
    not where one member is in order always and the other in half of its draws, with the same mass in the box."""
    grid = [F(k, 8) for k in range(9)]
    for orders, boxes in itertools.product(
        ((F(1), HALF), (F(1), F(1)), (F(1, 6), F(9, 10))), ((F(1, 16), F(1, 16)), (F(1, 9), F(1, 1000)))
    ):
        for one, other in itertools.product(grid, repeat=2):
            ends = subject(one, boxes, orders) * subject(other, boxes, orders)
            assert subject((one + other) / 2, boxes, orders) ** 2 >= ends, (orders, boxes, one, other)
    return "U is convex in weights of members given that their outputs come out in order (fractions)"


Region = Callable[..., Any]


def below_end(place: Any, width: Any, z: Any, end: Any, sign: int) -> Any:
    """z + theta at most the end times phi, or at least that, for a/b = place and 1/b = width."""
    return sign * (z + place) <= sign * end * width


@check(
    "ours:joint-convex",
    rejects=[
        lambda place, width, z, end, sign: sign * (place + width * z) <= sign * end,  # in place and width
        lambda place, width, z, end, sign: sign * (z + place * width) <= sign * end * width,  # in place and 1/width
        lambda place, width, z, end, sign: sign * width * (z + place) <= sign * end,  # in a/b and width
    ],
)
def check_region_is_convex(subject: Region = below_end) -> str:
    """The points (z, theta, phi) with z + theta in phi times an interval are convex, for either end and at any part of
    the way, hence so are those of a box; and outputs (z + theta)/phi are in order where z is (z3, all values)."""
    names = ("theta", "phi", "z")
    one, other = ([z3.Real(name + side) for name in names] for side in "01")
    end, part, second = z3.Reals("end part second")
    for sign in (1, -1):
        between = [(1 - part) * a + part * b for a, b in zip(one, other, strict=True)]
        inside = (part >= 0, part <= 1, one[1] > 0, other[1] > 0)
        follows(*inside, subject(*one, end, sign), subject(*other, end, sign), goal=subject(*between, end, sign))
    theta, phi, z = one
    for first, then in ((z, second), (second, z)):
        follows(phi > 0, first <= then, goal=(first + theta) / phi <= (then + theta) / phi)
    return "the region that Prekopa's theorem needs is convex in (z, a/b, 1/b), and the order does not move (z3)"


BASE = ((F(-1), F(1, 2)), (F(0), F(1)), (F(1), F(1, 2)))  # locations and scales, in units of log 2


def laplace_share(theta: int, phi: int, lower: int, upper: int, z: Fraction, c: Fraction) -> Fraction:
    """Exact mass of an interval whose ends are whole numbers of log 2 under place theta / phi, width 1 / phi."""

    def below(end: int) -> Fraction:
        t = (phi * end - theta - z) / c
        assert t.denominator == 1
        return F(1, 2) * F(2) ** int(t) if t < 0 else 1 - F(1, 2) * F(2) ** -int(t)

    return below(upper) - below(lower)


def exact_shares(theta: int, phi: int, box: tuple[tuple[int, int], ...]) -> Fraction:
    pairs = zip(box, BASE, strict=True)
    return math.prod((laplace_share(theta, phi, *ends, *shape) for ends, shape in pairs), start=F(1))


BOXES = (((-2, -1), (0, 1), (1, 3)), ((-3, 0), (0, 1), (1, 2)), ((4, 5), (5, 7), (7, 8)))
POINTS = [(theta, phi) for theta in (-4, 0, 2, 6) for phi in (2, 4, 8)]


def _in_place_and_width(theta: float, phi: float, *known: Any) -> tuple[float, Any]:
    """As if the arguments were place and width."""
    value, gradient = place_and_width(theta / phi, 1.0 / phi, *known)
    return value, gradient


def _with_half_the_gradient(theta: float, phi: float, base: Any, *known: Any) -> tuple[float, Any]:
    value, gradient = place_and_width(theta, phi, base, *known)
    return value, gradient * 0.5


@check("ours:joint-convex", code=place_and_width, rejects=[_in_place_and_width, _with_half_the_gradient])
def check_convex_in_place_and_width(subject: Callable[..., tuple[float, Any]] = place_and_width) -> str:
    """Masses of boxes in fractions: log-concave at midpoints of (theta, phi); the code's loss is theirs."""
    cases, unit = 0, math.log(2)
    shape = np.array([[float(z) * unit, float(c)] for z, c in BASE])
    for box in BOXES:
        lower, upper = (np.array(ends) * unit for ends in zip(*box, strict=True))
        for one, other in itertools.product(POINTS, repeat=2):
            middle = (one[0] + other[0]) // 2, (one[1] + other[1]) // 2
            shares = [exact_shares(*point, box) for point in (one, other, middle)]
            assert shares[2] ** 2 >= shares[0] * shares[1], (box, one, other)
            value, gradient = subject(one[0] * unit, float(one[1]), shape, lower, upper)
            assert abs(value + math.log(shares[0])) < 1e-9 * max(1.0, value)
            slope = gradient @ np.array([(other[0] - one[0]) * unit, other[1] - one[1]])
            assert -math.log(shares[1]) >= value + float(slope) - 1e-7 * max(1.0, value)
            cases += 1
    return f"U of a shared place and width is convex in a / b and 1 / b: {cases} midpoints in fractions, and tangents"


def _shares_of_widths() -> tuple[tuple[Fraction, int], ...]:
    """Mass of (-d, d) under Laplace laws of widths 4, 6, 12, exp(d / 12) = 101 / 100; 6 = (3 * 4 + 1 * 12) / 4."""
    r = F(100, 101)
    return (1 - r**3, 3), (1 - r**2, 4), (1 - r, 1)


def _shares_of_inverse_widths() -> tuple[tuple[Fraction, int], ...]:
    """The same at 1 / 4, 1 / 6 and 1 / 12: 1 / 6 is half-way between the others."""
    r = F(100, 101)
    return (1 - r**3, 2), (1 - r**2, 4), (1 - r, 2)


def _shares_of_equal_widths() -> tuple[tuple[Fraction, int], ...]:
    return ((1 - F(100, 101), 3), (1 - F(100, 101), 4), (1 - F(100, 101), 1))


@check("ours:joint-not-convex", rejects=[_shares_of_inverse_widths, _shares_of_equal_widths])
def check_not_convex_in_widths(
    subject: Callable[[], tuple[tuple[Fraction, int], ...]] = _shares_of_widths,
) -> str:
    """U in the width itself lies above a chord: exact powers."""
    (one, left), (middle, whole), (other, right) = subject()
    assert middle**whole < one**left * other**right
    for (share, _), width in zip(subject(), (4.0, 6.0, 12.0), strict=True):
        reach = 12 * math.log1p(0.01)
        assert math.isclose(pq.Laplace(0.0, width).log_mass(-reach, reach), math.log(share), rel_tol=1e-9), width
    return "U is not convex in place and width themselves: widths 4, 6, 12 in fractions"


def _two_places() -> dict[int, Fraction]:
    """Masses of a cell that is moved by 0, 1, 2 cells under half of each of two lumps and a little everywhere."""
    return {0: F(49, 100), 1: F(1, 100), 2: F(49, 100)}


def _one_place() -> dict[int, Fraction]:
    return {0: F(1, 4), 1: F(1, 2), 2: F(1, 4)}


def _flat() -> dict[int, Fraction]:
    return dict.fromkeys(range(3), F(1, 3))


@check("ours:joint-not-convex", rejects=[_one_place, _flat])
def check_not_convex_over_places(subject: Callable[[], dict[int, Fraction]] = _two_places) -> str:
    """U of a mixture over places, in a shared move: between two lumps it is above the chord."""
    masses = subject()
    assert masses[1] ** 2 < masses[0] * masses[2]
    lumps = pq.Uniform(0.0, 1.0).mix(pq.Uniform(2.0, 3.0), 0.5).mix(pq.Uniform(0.0, 4.0), 0.04)
    for cell, mass in masses.items():
        assert math.isclose(lumps.log_mass(cell, cell + 1.0), math.log(mass)), cell
    return "U of a mixture is not convex in a shared move"
