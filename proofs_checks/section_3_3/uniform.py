"""Uniform priors down the tree: the error of ApproximateQuantiles in terms of (b - a)/psi (text:aq-bound)."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction

from pq.bounds import binary_depth, lem_empirical_quantiles, uniform_multiple
from proofs_checks.engine.registry import check
from proofs_checks.tools.broken import printed, scaled
from proofs_checks.tools.exact import Algorithm, Data, Grid, Points, Prior, Restricted, log_ball, mechanism, probability

F = Fraction
HALF = F(1, 2)
QUARTERS = (F(1, 4), HALF, F(3, 4))
SEVEN = tuple(F(i, 8) for i in range(1, 8))
Node = tuple[list[Fraction], Fraction, Fraction, Fraction, Fraction]  # records, b - a, edges, z


def _nodes() -> Iterator[Node]:
    """Records in (0, b - a) and edges that an ancestor may have given, as close to a record as they like."""
    yield [F(1), F(2)], F(10**6), 1 - F(1, 10**18), F(10**6), F(1, 10**12)
    draw = random.Random(17)
    for _ in range(600):
        x = sorted(F(v) for v in draw.sample(range(1, 100), draw.randrange(1, 7)))
        tiny, z = F(1, draw.choice((3, 10**6))), F(1, draw.choice((2, 10**4)))
        low = draw.choice([F(0), *(v - tiny for v in x)])
        yield x, F(100), low, draw.choice([F(100), *(v + tiny for v in x if v > low)]), z


@check(
    "text:aq-bound",
    rejects=[
        lambda z, psi, width: psi / width,
        lambda z, psi, width: F(101, 100) * z * psi / width,
        lambda z, psi, width: z * psi,
    ],
)
def check_uniform_nodes(
    subject: Callable[[Fraction, Fraction, Fraction], Fraction] = lambda z, psi, width: z * psi / width,
) -> str:
    """Psi^ of a node is at least exp(-eps_i/2) psi/(b - a) for restricted uniform priors, whatever edges and target: a
    leftmost cell may be shorter than psi, but the next is not, or weighs a half. No more is true."""
    least = math.inf
    for x, width, low, high, z in _nodes():
        psi = min(b - a for a, b in itertools.pairwise([F(0), *x]))
        inside = [v for v in x if low < v < high]
        cells = [(b - a) / (high - low) for a, b in itertools.pairwise([low, *inside, high])]
        for target in range(max(len(inside), 1)):  # floor(q~ n) is below n
            inner = sum((mass * z ** abs(k - target) for k, mass in enumerate(cells)), F(0))
            assert inner >= subject(z, psi, width), (x, low, high, target)
            least = min(least, float(inner * width / (z * psi)))
    return f"uniform nodes: Psi^ >= exp(-eps_i/2) psi/(b - a), exactly; the least ratio of 601 nodes is {least:.6f}"


def flat(width: int) -> Prior:
    """The uniform law on (0, width): two places in each unit."""
    return {F(2 * k + 1, 4): F(1, 2 * width) for k in range(2 * width)}


def _failure(data: Data, algorithm: Algorithm, bound: float) -> Fraction:
    return probability(algorithm.law(data), lambda outputs: max(algorithm.gaps(data, outputs)) > bound * (1 + 1e-9))


@check(
    "text:aq-bound",
    "text:uniform-is-aq",
    code=uniform_multiple,
    rejects=[
        scaled(uniform_multiple, 0.99),
        scaled(uniform_multiple, 1.01),
        printed(uniform_multiple),
        lambda *a: uniform_multiple(*a) - binary_depth(a[3]),
        lambda *a: uniform_multiple(*a) - 3 * binary_depth(a[3]) + 2,
    ],
)
def check_aq_bound(subject: Callable[..., float] = uniform_multiple) -> str:
    """(2/eps) d^2 log(m (b - a)/(beta psi)) + 3d - 2: exact laws of uniform priors, restricted conditionally. One level
    attains the leading term, floors alone lose a rank at m = 7; the ranks are the nodes' Psi^'s and lem:error's."""
    for x, z, beta in itertools.product(
        ((1, 2, 3, 4, 5), (1, 2, 5), (2, 5)), (HALF, F(1, 30), F(1, 10**6)), (0.05, 0.5)
    ):
        psi = min(b - a for a, b in itertools.pairwise((0, *x)))
        algorithm = Algorithm(QUARTERS, (flat(6),) * 3, (z,) * 3, adaptation="conditional")
        bound = subject(6.0, float(psi), -4 * math.log(z), 3, beta)
        assert _failure(Points(tuple(F(v) for v in x)), algorithm, bound) <= beta, (x, z, beta)
    far, width, z = 2000, 2**1000, HALF  # records 1, ..., 2000, rank 0, and nearly all of the prior beyond them
    prior = {k + HALF: F(1, width) for k in range(far)} | {far + HALF: 1 - F(far, width)}
    law = mechanism(Restricted(Grid(far), -math.inf, math.inf), F(1, 2 * far), prior, z)
    bound = subject(float(width), 1.0, -2 * math.log(z), 1, float(law[far + HALF]))
    assert far <= bound <= 1.005 * far, f"one level: {bound}"
    priors: tuple[Prior, ...] = tuple({k + q: F(1, 4) for k in range(4)} for q in SEVEN)  # records 1, 2, 3 in (0, 4)
    algorithm = Algorithm(SEVEN, priors, (F(1, 10**30),) * 7, adaptation="conditional")
    bound = subject(4.0, 1.0, 180 * math.log(10), 7, 0.5)
    assert _failure(Grid(3), algorithm, bound) <= HALF, f"claimed {bound:.2f}"
    places = ((100, 2, 0.1), (3, F(1, 1000), 0.9), (F(1, 2), F(1, 4), 1e-9))  # b - a, psi and beta
    for m, epsilon, (width, psi, beta) in itertools.product((1, 2, 3, 7, 8, 100), (0.1, 40.0), places):
        depth = next(d for d in range(1, 60) if 2**d > m)
        node = float(log_ball(F(psi) / width)) - epsilon / depth / 2  # by check_uniform_nodes
        wanted = lem_empirical_quantiles(node, epsilon, m, beta)
        assert math.isclose(subject(float(width), float(psi), epsilon, m, beta), wanted, rel_tol=1e-9), m
    return "AQ: (2/eps) d^2 log(m (b - a)/(beta psi)) + 3d - 2, exact laws; the leading term is attained at m = 1"
