"""Sharp calibration down a uniform tree, and the arity where its formula is a whole number."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
from flint import arb, ctx

from pq.bounds import lem_empirical_quantiles, thm_binary
from pq.core.plan import kary_arity, plan
from pq.core.sensitivity import sensitivity
from proofs_checks.engine.registry import check
from proofs_checks.section_3_3.binary import binary_chain
from proofs_checks.section_3_3.dyadic import conditional_chain
from proofs_checks.tools.exact import Algorithm, Grid, Prior, gap, log_ball, power, probability, psi
from proofs_checks.tools.trees import inverse_psis

F = Fraction
HALF = F(1, 2)


def node_sensitivity(adjacency: str, calibration: str) -> tuple[Fraction, Fraction]:
    """Corrected: at the root and below it, in a uniform binary tree."""
    if calibration == "sharp":
        return (HALF, HALF) if adjacency == "add-remove" else (F(1), F(1))
    return (F(1), F(1)) if adjacency == "add-remove" else (F(1), F(2))


@check(
    "ours:sharp-tree",
    "text:sensitivity",
    "ours:sharp-calibration",
    "ours:replaced-record",
    code=(sensitivity, plan),
    rejects=[
        lambda adjacency, calibration: (F(1), F(1)),
        lambda adjacency, calibration: (HALF, HALF) if calibration == "sharp" else (F(1), F(1)),
        lambda adjacency, calibration: (HALF, F(1)) if calibration == "sharp" else (F(1), F(2)),
    ],
)
def check_tree_sensitivity(subject: Callable[[str, str], tuple[Fraction, Fraction]] = node_sensitivity) -> str:
    """What the package calibrates each mechanism of a uniform binary tree by: 1/2 sharp, twice that under replace."""
    for levels, adjacency, calibration in itertools.product(range(1, 7), ("add-remove", "replace"), ("sharp", "paper")):
        m = 2**levels - 1
        known: dict[str, Any] = {"adjacency": adjacency, "calibration": calibration}
        found = plan([F(i, m + 1) for i in range(1, m + 1)], epsilon=1, **known)
        for mechanism, i in zip(found.mechanisms, range(1, m + 1), strict=True):
            root = i == 2 ** (levels - 1)
            assert F(mechanism.sensitivity) == subject(adjacency, calibration)[0 if root else 1], (m, i, known)
            depth = 1 if root else 2
            assert sensitivity(HALF, depth, adjacency, calibration) == F(mechanism.sensitivity)
    thirds = plan([F(1, 3), F(2, 3)], epsilon=1, adjacency="add-remove", calibration="sharp")
    assert max(F(mechanism.sensitivity) for mechanism in thirds.mechanisms) == F(2, 3), "2^k - 1 quantiles are needed"
    return "uniform trees: sensitivity 1/2 with sharp calibration, 1 under replace; floors 1, and 2 below the root"


@check("ours:sharp-tree", "lem:empirical-quantiles", code=(thm_binary, lem_empirical_quantiles), rejects=[8, 4])
def check_half_bound(subject: int = 2) -> str:
    """Half of the bounds of thm:binary and of lem:empirical-quantiles, with the Psi^ of each run, without ranks of
    rounding, for the distance to q n: exact laws of sharp trees."""
    worst = F(0)
    for levels, z, beta in itertools.product((1, 2), (HALF, F(1, 9)), (HALF, F(1, 10))):
        m, data = 2**levels - 1, Grid(8)
        quantiles = tuple(F(i, m + 1) for i in range(1, m + 1))
        priors: tuple[Prior, ...] = tuple(
            {k + F(i, m + 1): F(9 if k == 7 else 1, 17) for k in range(9)} for i in range(1, m + 1)
        )
        algorithm = Algorithm(quantiles, priors, (z,) * m, rounded=False, unit=2)  # half a rank costs as much as one
        total = sum(1 / psi(data, q, prior, z * z) for q, prior in zip(quantiles, priors, strict=True))
        epsilon, log_psi = -2 * levels * math.log(z), -float(log_ball(total / m))
        bound = thm_binary(log_psi, subject * epsilon, m, float(beta), rounded=False)

        def far(outputs: Any, bound: float = bound, levels: Any = quantiles, data: Grid = data) -> bool:
            return max(gap(data, q, o, rounded=False) for q, o in zip(levels, outputs, strict=True)) > bound

        failed = probability(algorithm.law(data), far)
        restricted, beyond = replace(algorithm, adaptation="conditional"), F(0)
        for outputs, p in restricted.law(data).items():
            inner = sum(inverse_psis(data, restricted, outputs))
            limit = lem_empirical_quantiles(
                -float(log_ball(inner / m)), subject * epsilon, m, float(beta), rounded=False
            )
            beyond += p if far(outputs, limit * (1 + 1e-9)) else 0
        assert max(failed, beyond) <= beta, (levels, z, float(failed), float(beyond))
        worst = max(worst, failed / beta, beyond / beta)
    return (
        f"sharp uniform trees: half of both bounds without rounding, exact failure at most {float(worst):.3f} of beta"
    )


@check(
    "ours:sharp-tree",
    code=(thm_binary, lem_empirical_quantiles),
    rejects=[*((rate, 2) for rate in (1.97, 2.03)), (2, 1), (2, 3)],
)
def check_half_is_needed(subject: tuple[float, int] = (2, 2)) -> str:
    """Chains of bad luck in sharp trees: 0.99 of half of thm:binary for one to three levels, and all of half of
    lem:empirical-quantiles for one; with the inner products at the rate of the utility that is run, not at half of it.

    subject: what the bounds are divided by, and the rate of the inner products in units of a rounded tree's.
    """
    rate, steps = subject
    for levels in (1, 2, 3):
        chain, m, beta = binary_chain(levels, 1000, margin=8), 2**levels - 1, HALF
        sharp, epsilon = replace(chain.algorithm, rounded=False, unit=2), 2 * levels * math.log(2)
        pairs = zip(sharp.quantiles, sharp.priors, strict=True)
        total = sum((1 / psi(chain.data, q, prior, HALF**steps) for q, prior in pairs), F(0))
        bound = thm_binary(-float(log_ball(total / m)), rate * epsilon, m, float(beta), rounded=False)
        far = [(p, _largest(sharp, chain.data, outputs)) for outputs, p in sharp.law(chain.data).items()]
        failures = [sum(p for p, largest in far if largest > share * bound) for share in (1, 0.99)]
        assert failures[0] <= beta < failures[1], (levels, bound)
    algorithm, data, _ = conditional_chain(1, 6400)
    sharp = replace(algorithm, rounded=False, unit=2)
    ((outputs, _),) = sharp.law(data).items()
    inner = power(HALF, steps * _largest(sharp, data, outputs))  # of an atom
    assert steps != 2 or [1 / inner] == inverse_psis(data, sharp, outputs)
    limit = lem_empirical_quantiles(float(log_ball(inner)), rate * 2 * math.log(2), 1, 1.0, rounded=False)
    assert math.isclose(limit, _largest(sharp, data, outputs)), limit
    return "sharp uniform trees: chains need 0.99 of half of thm:binary, m = 1, 3 and 7 (exact laws)"


def _largest(algorithm: Algorithm, data: Grid, outputs: Any) -> Fraction:
    """The largest distance to q n."""
    return max(gap(data, q, o, rounded=False) for q, o in zip(algorithm.quantiles, outputs, strict=True))


@cache
def in_balls(m: int) -> int:
    """ceil(exp(sqrt(log 2 log(m + 1)))) where no whole number lies inside the ball."""
    with ctx.workprec(256 + m.bit_length()):  # beside 2**(t * t) the root is 2**t up to about 2**(t - t * t)
        whole = (arb(2).log() * arb(m + 1).log()).sqrt().exp().ceil().unique_fmpz()
    assert whole is not None, f"m = {m}: a whole number inside the ball"
    return int(whole)


def in_floats(m: int) -> int:
    """The same in double precision, with the whole numbers right."""
    t = math.isqrt((m + 1).bit_length() - 1)
    return 1 << t if m + 1 == 1 << t * t else math.ceil(math.exp(math.sqrt(math.log(2) * math.log(m + 1))))


def last_of(arity: int) -> int:
    """The largest m whose arity this is, if it is no power of two."""
    with ctx.workprec(256 + 4 * arity.bit_length() ** 2):
        end = (arb(arity).log() ** 2 / arb(2).log()).exp().floor().unique_fmpz()
    assert end is not None, "more digits"
    return int(end) - 1


@check(
    "ours:exact-arity",
    "thm:kary",
    code=kary_arity,
    rejects=[
        lambda m: 1 << max(1, round(math.sqrt(math.log2(m + 1)))),
        lambda m: math.floor(math.exp(math.sqrt(math.log(2) * math.log(m + 1)))) + 1,
        lambda m: math.ceil(math.exp(math.sqrt(math.log(2) * math.log(m)))) if m > 1 else 2,
        lambda m: math.ceil(math.exp(math.sqrt(math.log(2) * math.nextafter(math.log(m + 1), math.inf)))),
        lambda m: kary_arity(m) + (m > 2**170),
        in_floats,
    ],
)
def check_exact_arity(subject: Callable[[int], int] = kary_arity) -> str:
    """`kary_arity` is 2^t at m + 1 = 2^(t^2), where log 2 log(m + 1) is the square of t log 2, and the ceiling in balls
    beside these, on both sides of where other arities end, and at every m up to 20000. The last bit of a logarithm
    decides at the first: one more is too much. Beside them, and where m is large, floats see no difference.
    """
    whole = {2 ** (t * t) - 1: 2**t for t in range(1, 65)}
    for m, arity in whole.items():
        assert subject(m) == arity, (m, subject(m))
        assert m == 1 or [subject(near) for near in (m - 1, m + 1)] == [in_balls(m - 1), in_balls(m + 1)], m
        assert in_balls(m + 1) == arity + 1
    for arity in (3, 5, 6, 7, 100, 129, 1000, 2**12 + 1):
        last = last_of(arity)
        assert (subject(last), subject(last + 1)) == (in_balls(last), in_balls(last + 1)) == (arity, arity + 1), arity
    assert all(subject(m) == in_balls(m) for m in range(1, 20_001) if m not in whole)
    for t in range(2, 65):  # the logarithms, rounded to double precision
        with mpmath.workprec(200 + 2 * t * t):
            alike = {float(mpmath.log(2 ** (t * t) + by)) for by in (-1, 0, 1)}
        assert (len(alike) == 1) == (t >= 7), f"t = {t}: as the row says"
    return "K is 2^t at m + 1 = 2^(t^2) for t <= 64, and the ceiling in balls beside these and at all other m to 20000"
