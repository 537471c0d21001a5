"""lem:empirical-quantiles: restricted priors, a bound that depends on the run, and its repair."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache

import sympy

from pq.bounds import binary_depth, lem_empirical_quantiles, lem_error
from proofs_checks.engine.registry import check
from proofs_checks.section_3_3.dyadic import conditional_chain
from proofs_checks.section_3_3.rounding_edges import end_witness
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.exact import (
    INFINITY,
    Algorithm,
    Grid,
    Position,
    Prior,
    Restricted,
    adapt,
    ball,
    gap,
    log_ball,
    mechanism,
    psi,
)
from proofs_checks.tools.trees import inverse_psis, node_cases

F = Fraction
HALF = Fraction(1, 2)
QUARTERS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))


BETAS = F(1, 20), HALF, F(9, 10)


def _thin(prior: Prior, index: int) -> Prior:
    """At most three atoms, and one on either far side so that no restriction is empty."""
    inner = {o: mass / 2 for o, mass in itertools.islice(prior.items(), 3)}
    total = sum(inner.values())
    return {o: mass / (2 * total) for o, mass in inner.items()} | {
        Fraction(index, 8) - 5: Fraction(1, 4),
        Fraction(index, 8) + 50: Fraction(1, 4),
    }


def _binary_cases() -> Iterator[tuple[Grid, tuple[Fraction, ...], tuple[Prior, ...], Fraction]]:
    for data, quantiles, priors, z in node_cases():
        if len(quantiles) == 3:
            yield data, quantiles, tuple(_thin(prior, i) for i, prior in enumerate(priors)), z
    seven = tuple(Fraction(i, 8) for i in range(1, 8))
    cells = ((0,), (0,), (0, 1), (1,), (1,), (2,), (2,))  # ideal, but for 3/8, whose node aims one rank too low
    ideal = tuple({k + Fraction(i, 8): Fraction(1, len(c)) for k in c} for i, c in enumerate(cells, 1))
    yield Grid(3), seven, ideal, Fraction(1, 10**30)
    for beta, part in itertools.product(BETAS, (F(98, 100), F(102, 100))):  # one level that nearly attains the bound
        yield Grid(200), (HALF,), (_wrong(part * beta, 100 + HALF, 100, HALF),), HALF


Outcomes = list[tuple[Fraction, float, Fraction]]  # probability, largest gap, and m over Psi^ of each outcome


@cache
def _outcomes() -> list[tuple[int, float, Outcomes]]:
    """m, epsilon and the law of each case, under either adaptation."""
    found = []
    for (data, quantiles, priors, z), adaptation in itertools.product(_binary_cases(), ("conditional", "edge")):
        m = len(quantiles)
        algorithm = Algorithm(quantiles, priors, (z,) * m, adaptation=adaptation)
        law = [
            (p, float(max(algorithm.gaps(data, outputs))), sum(inverse_psis(data, algorithm, outputs), F(0)))
            for outputs, p in algorithm.law(data).items()
        ]
        found.append((m, -2 * math.log(z) * binary_depth(m), law))
    return found


@check(
    "text:aq-bound",
    "lem:empirical-quantiles",
    code=lem_empirical_quantiles,
    rejects=[
        lambda log_psi, epsilon, m, beta: lem_empirical_quantiles(log_psi, epsilon, m, beta, rounded=False),
        lambda *a: lem_empirical_quantiles(*a, rounded=False) + (0.9 if a[2] == 7 else 2),
        scaled(lem_empirical_quantiles, 0.99),
        scaled(lem_empirical_quantiles, 0.4),
    ],
)
def check_lem_empirical_quantiles(subject: Callable[..., float] = lem_empirical_quantiles) -> str:
    """The corrected bound against exact failure probabilities, adversarial case first, both adaptations."""
    assert subject(0.0, 1.0, 1, 1.0) == 0, "one perfect prior, and no confidence asked for"
    worst = Fraction(0)
    for (m, epsilon, law), beta in itertools.product(_outcomes(), BETAS):
        failed = F(0)
        for p, largest, total in law:  # the bound sees the random Psi^ of each outcome
            limit = subject(-float(log_ball(total / m)), epsilon, m, float(beta))
            failed += p if largest > limit * (1 + 1e-9) else 0
        assert failed <= beta, (m, epsilon, float(failed))
        worst = max(worst, failed / beta)
    assert worst > F(97, 100), "no case in which it comes near"
    return (
        "lem:empirical-quantiles, corrected: exact failure probability at most beta in all cases (largest "
        f"ratio {float(worst):.3f})"
    )


@check(
    "lem:empirical-quantiles",
    "text:aq-bound",
    code=lem_empirical_quantiles,
    rejects=[scaled(lem_empirical_quantiles, 0.5), scaled(lem_empirical_quantiles, 0.99)],
)
def check_empirical_leading(subject: Callable[..., float] = lem_empirical_quantiles) -> str:
    """The leading term: chains of bad luck need all of it for one level, 3/4 for two, two thirds in the long run."""
    shares = []
    for levels in range(1, 7):
        algorithm, data, _ = conditional_chain(levels, 6400)
        ((outputs, p),) = algorithm.law(data).items()
        assert p == 1
        m = len(algorithm.quantiles)
        log_psi = -float(log_ball(sum(inverse_psis(data, algorithm, outputs)) / m))
        claimed = subject(log_psi, 2 * math.log(2) * levels, m, 1.0)
        worst = float(max(algorithm.gaps(data, outputs)))
        assert worst <= claimed, (levels, worst, claimed)
        shares.append(worst / claimed)
    assert shares[0] > 0.999 and shares[1] > 0.74 and shares[5] > 0.68, shares
    return f"lem:empirical-quantiles: chains need {shares[0]:.3f}, {shares[1]:.2f}, ..., {shares[5]:.2f} of it"


@check(
    "lem:empirical-quantiles",
    code=lem_empirical_quantiles,
    rejects=[lambda total: math.log(total), lambda total: 0.99 * math.log(total)],
)
def check_total_mass(subject: Callable[[Fraction], float] = lambda total: 0.0) -> str:
    """Priors of mass 1000 under edge adaptation: the corrected bound is below 0 for every outcome, and no gap is.
    Conditional adaptation gives them mass one, and has the bound of priors of that mass.

    subject: what is taken from log Psi^ for the mass.
    """
    z, data, limits = HALF, Grid(1), {}
    for adaptation, total in itertools.product(("edge", "conditional"), (F(1), F(1000))):
        priors: tuple[Prior, ...] = tuple({k + F(i, 4): total / 2 for k in range(2)} for i in (1, 2, 3))
        algorithm = Algorithm(QUARTERS, priors, (z,) * 3, adaptation=adaptation)
        found = []
        for outputs in algorithm.law(data):
            log_psi = -float(log_ball(sum(inverse_psis(data, algorithm, outputs), F(0)) / 3))
            found.append(lem_empirical_quantiles(log_psi - subject(total), -4 * math.log(z), 3, 0.5))
        limits[adaptation, total] = max(found)
    assert limits["edge", F(1000)] < 0 < limits["edge", F(1)], "the bound survives"
    assert limits["conditional", F(1000)] == limits["conditional", F(1)] > 0
    return f"lem:empirical-quantiles, mass 1000 under edge adaptation: at most {limits['edge', F(1000)]:.1f} is claimed"


def paper_empirical(log_psi: float, epsilon: float, m: int, beta: float) -> float:
    """lem:empirical-quantiles as printed."""
    return lem_empirical_quantiles(log_psi, epsilon, m, beta, version="paper")


@check(
    "lem:empirical-quantiles",
    code=lem_empirical_quantiles,
    rejects=[lem_empirical_quantiles, scaled(paper_empirical, 4.04)],  # of two levels, squared
)
def check_empirical_depth(subject: Callable[..., float] = paper_empirical) -> str:
    """Counterexample to the printed error at m = 2: two levels, one in the bound; the gap is nearly twice the claim
    for sure.
    """
    bits, z = 200, HALF
    n = 10**6
    quantiles = (HALF, Fraction(101, 200))
    # the first output errs by `bits`, and the second by as much again; all mass on those two cells
    relative = (quantiles[1] - HALF) / HALF
    count = n // 2 + bits
    rank = count + math.floor(relative * (n - count)) + bits
    priors: tuple[Prior, ...] = ({count + HALF: Fraction(1)}, {rank + HALF: Fraction(1)})
    algorithm, data = Algorithm(quantiles, priors, (z, z), adaptation="conditional"), Grid(n)
    ((outputs, p),) = algorithm.law(data).items()
    (inverse_first, inverse_second) = inverse_psis(data, algorithm, outputs)
    assert (p, inverse_first, inverse_second) == (1, 2**bits, 2**bits)
    epsilon = -2 * math.log(z) * (1 if subject is paper_empirical else 2)
    limit = subject(-bits * math.log(2), epsilon, 2, 0.5)
    largest = max(algorithm.gaps(data, outputs))
    assert largest > limit * (1 + 1e-9), "the bound survives"
    assert (round(limit), largest) == (202, 398), "as the row says"
    return (
        f"lem:empirical-quantiles as printed, m = 2, n = 10^6: claimed {limit:.0f} w.p. 1/2, actual gap "
        f"{int(largest)} with certainty"
    )


@check(
    "lem:empirical-quantiles",
    "step:random-psi",
    "ours:level-split",
    "ours:dyadic-conditional",
    rejects=[lambda levels: levels + 1, lambda levels: 2 * levels],
)
def check_level_split(subject: Callable[[int], int] = lambda levels: levels) -> str:
    """Ours, the repair: beta / d for each level, whose inner products are known once the levels above have run, then
    AM-GM.
    """
    # any d: log x <= x - 1 (0 and flat at 1, concave), at x = d S_l / S; the right sides sum to d - d = 0
    x = sympy.symbols("x", positive=True)
    room = x - 1 - sympy.log(x)
    assert room.subs(x, 1) == 0 == sympy.diff(room, x).subs(x, 1) and sympy.diff(room, x, 2).is_positive
    draw = random.Random(4)
    for levels in range(1, 12):
        for _ in range(40):
            values = [Fraction(draw.randrange(1, 10 ** draw.randrange(1, 9))) for _ in range(levels)]
            assert math.prod(subject(levels) * v for v in values) <= sum(values) ** levels
            assert sum(subject(levels) * v / sum(values) - 1 for v in values) == 0
    return (
        "ours: sum_l log(d S_l / beta) <= d log(sum_l S_l / beta), so lem:empirical-quantiles keeps its bound "
        "(AM-GM by tangents)"
    )


Limit = Callable[[int, tuple[Fraction, Fraction]], Fraction]


def union_bound_failure(data: Grid, algorithm: Algorithm, limit: Limit, slack: Fraction | int = 0) -> Fraction:
    """Probability that some node's gap exceeds its edges' error by 2 / epsilon log(limit) and the slack, m = 2.

    limit: of a node's level and of both levels' sums of 1 / Psi^.
    """
    failed = Fraction(0)
    first, second = algorithm.quantiles
    z, relative = algorithm.z[0], (second - first) / (1 - first)
    root = mechanism(Restricted(data, -INFINITY, INFINITY), first, algorithm.priors[0], z)
    inverse_root = 1 / psi(data, first, algorithm.priors[0], z)
    for o, p in root.items():
        view, child = Restricted(data, o, INFINITY), adapt(algorithm.priors[1], o, INFINITY, "conditional")
        target = math.floor(relative * view.size)
        sums = inverse_root, 1 / sum(mass * z ** abs(view.below(v) - target) for v, mass in child.items())
        law = mechanism(view, relative, child, z)
        edge_error = (1 - relative) * gap(data, first, o)
        for v, share in law.items():
            excesses = gap(data, first, o) - slack, gap(data, second, v) - edge_error - slack
            if any(-log_ball(z) * ball(e) > log_ball(limit(level, sums)) for level, e in enumerate(excesses)):
                failed += p * share
    return failed


@check("step:random-psi", rejects=[lambda beta: 1 - (1 - beta) ** 2, lambda beta: beta * Fraction(3, 2)])
def check_random_psi(subject: Callable[[Fraction], Fraction] = lambda beta: beta) -> str:
    """Counterexample to the union bound with a Psi^ that is known only at the end: failure 0.748 at beta = 1/2."""
    z, beta = Fraction(1, 1000), HALF
    p, a, c = Fraction(1_000_012, 10**12), Fraction(1_010, 10**12), Fraction(10_000, 10**12)
    priors: tuple[Prior, ...] = (
        {Fraction(9, 4): p, Fraction(9, 2): 1 - p},
        {Fraction(11, 2): a, Fraction(11, 4): 1 - a - c, Fraction(13, 2): c},
    )
    algorithm = Algorithm((Fraction(1, 4), Fraction(5, 8)), priors, (z, z), adaptation="conditional")
    failure = union_bound_failure(Grid(8), algorithm, lambda level, sums: sum(sums) / beta)
    assert failure > subject(beta), f"the union bound survives: {float(failure)}"
    assert round(float(failure), 3) == 0.748, "as the row says"
    return (
        f"the step 'w.p. 1 - beta for all i' with the random Psi^ is false: failure {float(failure):.3f} at "
        "beta = 0.5 (n = 8, m = 2)"
    )


def _wrong(share: Fraction, right: Fraction, far: int, z: Fraction) -> Prior:
    """An atom on the target and one `far` ranks below, which comes out with the probability `share`."""
    odds = (1 - share) / share * z**far
    return {right: odds / (1 + odds), right - far: 1 / (1 + odds)}


@check(
    "step:random-psi",
    "ours:level-split",
    rejects=[(1, 2), (3, 2), (2, 0), (2, F(169, 100)), (F(195, 100), 2), (F(205, 100), 2)],
)
def check_levels_of_two(subject: tuple[Fraction, Fraction | int] = (F(2), 2)) -> str:
    """With beta/d for each level the errors add up to beta at most, and to nearly that: two nodes that each err by far
    with a probability just below or above beta/2, or below beta, whatever the other does; and floors alone.

    subject: what a level's sum is multiplied by, and ranks.
    """
    beta, z, far, n = F(1, 100), F(199, 200), 2300, 12_000

    def failure(algorithm: Algorithm, data: Grid) -> Fraction:
        return union_bound_failure(data, algorithm, lambda level, sums: subject[0] * sums[level] / beta, subject[1])

    found = []
    for part in (F(493, 1000), F(506, 1000), F(98, 100)):
        priors = tuple(_wrong(part * beta, place, far, z) for place in (n // 4 + HALF, n // 2 + F(3, 4)))
        algorithm = Algorithm((F(1, 4), HALF), priors, (z, z), adaptation="conditional")
        found.append(failure(algorithm, Grid(n)) / beta)
    assert found[0] > F(98, 100) and max(found) <= 1, [float(value) for value in found]
    floors = {3 + HALF: F(1)}, {7 + HALF: F(1)}  # the root one rank low; the node's target is half a rank lower still
    assert not failure(Algorithm((F(1, 3), F(2, 3)), floors, (F(1, 10**9),) * 2, adaptation="conditional"), Grid(12))
    witness = end_witness(F(1, 10), "right")  # a node above the root that loses 1.7 ranks beyond its edge's error
    assert witness is not None and lem_error(F(1, 10), edge="right") == F(17, 10)
    size, q, inner, count = witness
    sure = {count + HALF: F(1)}, {count + math.floor(F(size - count, 10)) + F(3, 4): F(1)}
    assert not failure(Algorithm((inner, q), sure, (F(1, 10**900),) * 2, adaptation="conditional"), Grid(size))
    return f"beta/d a level, sums known when their level runs: failure {float(found[0]):.3f} of beta (exact laws)"


Values = dict[tuple[Position, ...], Fraction]  # of m over Psi^, by the outcome


def restricted_values(data: Grid, algorithm: Algorithm) -> Values:
    """m over Psi^ of every outcome."""
    return {outputs: sum(inverse_psis(data, algorithm, outputs), F(0)) for outputs in algorithm.law(data)}


def _original(data: Grid, algorithm: Algorithm) -> Values:
    """m over the harmonic mean with the original priors, which no run changes."""
    return dict.fromkeys(algorithm.law(data), algorithm.inverse_psi_sum(data))


def _mean_of_runs(data: Grid, algorithm: Algorithm) -> Values:
    """What m over Psi^ is on average over the runs."""
    law, values = algorithm.law(data), restricted_values(data, algorithm)
    return dict.fromkeys(law, sum((p * values[outputs] for outputs, p in law.items()), F(0)))


def _of_own_outputs(data: Grid, algorithm: Algorithm) -> Values:
    """As if what a leaf releases decided as well."""
    return {outputs: value + F(outputs[0]) for outputs, value in restricted_values(data, algorithm).items()}


@check("text:random-psi-hat", rejects=[_original, _mean_of_runs, _of_own_outputs])
def check_random_metric(subject: Callable[[Grid, Algorithm], Values] = restricted_values) -> str:
    """Psi^ takes different values on different runs for the same data and priors; each is that of the root's output,
    which is an edge of both other nodes, whatever these release."""
    priors: tuple[Prior, ...] = tuple({k + F(i, 4): F(1, 5) for k in range(5)} for i in (1, 2, 3))
    algorithm = Algorithm(QUARTERS, priors, (F(1, 3),) * 3, adaptation="conditional")
    values = subject(Grid(4), algorithm)
    assert len(set(values.values())) == 3, "not the three values of the row"
    by_edge = {(outputs[1], value) for outputs, value in values.items()}
    assert len(by_edge) == len({edge for edge, _ in by_edge}) == 5 < len(values), "more than the edges decides"
    return "Psi^ is random: 3 values on one instance of three quantiles and four records, by the root's output"
