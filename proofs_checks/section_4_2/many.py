"""Mixtures for several quantiles: cor:multiple and cor:cauchy-robust."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

from pq.bounds import cor_multiple, fibonacci, thm_binary
from proofs_checks.engine.registry import check
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.cases import mix
from proofs_checks.tools.chains import corrected_binary
from proofs_checks.tools.exact import Algorithm, Grid, Prior, Restricted, adapt, gap, mechanism, probability

HALF = Fraction(1, 2)


def _clip(prior: Prior, low: Fraction | float, high: Fraction | float) -> Prior:

    return adapt(prior, low, high, "edge")


def cauchy_instance(z: Fraction) -> tuple[Grid, Fraction]:
    """m = 7, n = 3: Pr{Gap_{3/8} >= 1}, at least, for x = (-1, 0, 1), perfect predictions and half a standard Cauchy.

    Each of the four cells has Cauchy mass 1/4 exactly. Under edge adaptation a node's cell masses do not depend on
    where inside their cells the edges fall, so the path 1/2, 1/4, 3/8 has a rational law.
    """
    data = Grid(3)
    rho = {k + HALF: Fraction(1, 4) for k in range(4)}

    def prior(q: Fraction, shift: Fraction) -> Prior:
        perfect = {math.floor(q * data.size) + HALF: Fraction(1)}
        return {o + shift: mass for o, mass in mix(perfect, rho, HALF).items()}

    # keep the atoms of one cell in the order of the quantiles; indices 0, 1, 2 stand for 1/4, 3/8, 1/2
    median = mechanism(Restricted(data, -math.inf, math.inf), HALF, prior(HALF, Fraction(1, 4)), z)
    middle = 1 + HALF + Fraction(1, 4)
    quarter_prior = _clip(prior(Fraction(1, 4), Fraction(0)), -math.inf, middle)
    quarter = mechanism(Restricted(data, -math.inf, middle), HALF, quarter_prior, z)
    low = HALF
    target_prior = _clip(prior(Fraction(3, 8), Fraction(1, 8)), low, middle)
    law = mechanism(Restricted(data, low, middle), HALF, target_prior, z)
    wrong = sum((p for o, p in law.items() if gap(data, Fraction(3, 8), o) >= 1), Fraction(0))
    return data, median[middle] * quarter[low] * wrong


def paper_multiple(*args: float) -> tuple[float, float]:
    """cor:multiple as printed."""
    return cor_multiple(*args, version="paper")  # type: ignore[arg-type, misc]


@check(
    "cor:cauchy-robust",
    "cor:multiple",
    code=cor_multiple,
    rejects=[cor_multiple, lambda *args: tuple(1 + bound for bound in paper_multiple(*args))],
)
def check_multiple_printed(subject: Callable[..., tuple[float, float]] = paper_multiple) -> str:
    """Counterexample to cor:multiple (and cor:cauchy-robust): m = 7, n = 3, both guarantees, through the floors."""
    z = Fraction(1, 10**40)
    _, failure = cauchy_instance(z)
    epsilon = -2 * math.log(z) * 3
    # a = -1, b = 1, R slightly above 1, least separation 1, lambda = 1/2
    robust, consistent = subject(1.01, 2.0, 1.0, epsilon, 7, 0.5, 0.5)
    assert robust < 1 - 1e-9, "robustness survives"
    assert consistent < 1 - 1e-9, "consistency survives"
    assert failure > Fraction(999, 1000)
    assert (round(robust, 2), round(consistent, 2)) == (0.17, 0.14), "as the row says"
    return (
        f"cor:multiple as printed is false at m = 7: x = (-1, 0, 1), perfect predictions, lambda = 1/2: "
        f"claims {robust:.2f} and {consistent:.2f}, Pr{{gap >= 1}} > 0.999"
    )


def _robust_alone(*args: float) -> tuple[float, float]:
    """Only the first of the two bounds has the printed depth."""
    return paper_multiple(*args)[0], cor_multiple(*args)[1]  # type: ignore[arg-type]


def _consistent_alone(*args: float) -> tuple[float, float]:
    """Only the second has it."""
    return cor_multiple(*args)[0], paper_multiple(*args)[1]  # type: ignore[arg-type]


@check(
    "cor:cauchy-robust",
    "cor:multiple",
    code=cor_multiple,
    rejects=[cor_multiple, _robust_alone, _consistent_alone],
)
def check_multiple_single(subject: Callable[..., tuple[float, float]] = paper_multiple) -> str:
    """cor:multiple at m = 1: the printed depth is zero, so both bounds are zero or undefined."""
    robust, consistent = subject(1.0, 2.0, 0.1, 1.0, 1, 0.5, 0.5)
    assert robust in (0.0, math.inf) or math.isnan(robust)
    assert consistent == 0.0
    return "cor:multiple at m = 1: ceil(log2 1) = 0 gives no budget, and an error of zero"


@check(
    "cor:cauchy-robust",
    "cor:multiple",
    code=cor_multiple,
    rejects=[paper_multiple, lambda *args: tuple(0.5 * bound for bound in cor_multiple(*args))],
)
def check_multiple(subject: Callable[..., tuple[float, float]] = cor_multiple) -> str:
    """The corrected corollary on the counterexample, for z over many orders of magnitude."""
    for exponent in (1, 2, 5, 10, 40, 400):
        z = Fraction(1, 10**exponent)
        _, failure = cauchy_instance(z)
        robust, consistent = subject(1.01, 2.0, 1.0, 6 * math.log(10) * exponent, 7, 0.5, 0.5)
        if failure > HALF:
            assert min(robust, consistent) >= 1, (exponent, robust, consistent)
    return "cor:multiple, corrected: no longer contradicted by rounding at any budget tried"


@check(
    "cor:multiple",
    rejects=[
        lambda m: corrected_binary(m.bit_length()),
        lambda m: ((1 + math.sqrt(5)) / 2) ** math.log2(m + 1) * (1 + 1e-9),
    ],
)
def check_multiple_constant(
    subject: Callable[[int], float] = lambda m: ((1 + math.sqrt(5)) / 2) ** math.log2(m),
) -> str:
    """phi**log2(m) is below the constant of thm:binary at every m = 2**k - 1, so the proof does not give it."""
    for k in range(1, 20):
        m = 2**k - 1
        assert subject(m) < ((1 + math.sqrt(5)) / 2) ** k
    return "cor:multiple prints phi^log2(m) where thm:binary has phi^log2(m + 1): smaller, and not implied"


@cache
def close_together(levels: int, bits: int) -> tuple[int, Fraction, int, float]:
    """The rightmost path of a tree whose quantiles from the median on lie close together: relative quantiles near 0.

    Perfect predictions of weight 2**-bits beside one trusted prior on as many cells as there are levels, each far
    enough above the node's target to win against the prediction all the same. Returns the number of records, the last
    quantile, its gap by bad luck at each level, and the probability of such a gap or a larger one.
    """
    m, root, n = 2**levels - 1, 2 ** (levels - 1) - 1, 2**levels * bits * 10_000
    quantiles = [Fraction(i + 1, 2 * (root + 1)) for i in range(root + 1)]
    quantiles += [HALF + Fraction(2 ** (levels + 1) * bits * (i + 1), n) for i in range(m - root - 1)]
    path, far, low, q_low = [m - 2**j for j in reversed(range(levels))], [], 0, Fraction(0)
    for i in path:
        shifted = low + math.floor((quantiles[i] - q_low) / (1 - q_low) * (n - low))
        low, q_low = 2 * shifted - math.floor(quantiles[i] * n) + bits - 4, quantiles[i]
        far.append(low)
    priors: list[Prior] = []
    for i, q in enumerate(quantiles):  # atoms of one cell in the order of the quantiles
        shift = Fraction(i, 4 * m)
        perfect = {math.floor(q * n) + HALF / 2 + shift: Fraction(1)}
        trusted = {o + HALF + shift: Fraction(1, levels) for o in far}
        priors.append(mix(perfect, trusted, 1 - Fraction(1, 2**bits)) if i in path else perfect)
    algorithm, worst = Algorithm(tuple(quantiles), tuple(priors), (HALF,) * m), low - math.floor(q_low * n)
    chance = probability(algorithm.law(Grid(n)), lambda outputs: max(algorithm.gaps(Grid(n), outputs)) >= worst)
    return n, q_low, worst, float(chance)


@check(
    "cor:cauchy-robust",
    code=fibonacci,
    rejects=[
        lambda levels: fibonacci(levels + 2) - 1,
        lambda levels: 2**levels,
        lambda levels: 2 ** (levels - 1),
        lambda levels: 2 * levels - 1,
    ],
)
def check_other_quantiles(subject: Callable[[int], int] = lambda levels: 2**levels - 1) -> str:
    """For other quantiles E <= 1 + 2 ((1 - q~) E_low + q~ E_high) gives 2^d - 1 where 1/2 gives the Fibonacci number;
    exact laws with perfect predictions and one trusted prior come near to it, far above that number."""
    for levels in range(1, 12):
        errors = [Fraction(0), Fraction(1)]
        while len(errors) <= levels:
            errors.append(1 + errors[-1] + errors[-2])
        assert errors[levels] == fibonacci(levels + 2) - 1
        assert subject(1) == 1 and 1 + 2 * subject(levels) == subject(levels + 1), "no quantile does worse"
    for levels in (2, 3):
        worst = []
        for bits in (50, 100):
            n, q, gap_there, chance = close_together(levels, bits)
            spread = bits + math.log2((2**levels - 1) / 0.5)
            assert chance > HALF and gap_there < subject(levels) * spread, (levels, gap_there)
            worst.append(gap_there)
        assert worst[1] - worst[0] == subject(levels) * 50, "all of it for each unit of the logarithm"
        if levels == 2:
            row = n, q, worst[1], round(chance, 2), round((fibonacci(4) - 1) * spread)
            assert row == (4_000_000, Fraction(2501, 5000), 286, 0.79, 205), row
    return "for quantiles that are not evenly spaced 2^d - 1 takes the place of F_{d+2} - 1, and is nearly reached"


@check("cor:multiple", code=thm_binary, rejects=[scaled(thm_binary, 0.15), scaled(thm_binary, 0.1)])
def check_failure_is_one_event(subject: Callable[..., float] = thm_binary) -> str:
    """The largest of three gaps against the consistency bound of a mixture, m = 3, exact laws: with so few records the
    bound is loose, 0.15 of it fails."""
    z, data, quantiles = Fraction(1, 20), Grid(4), (Fraction(1, 4), HALF, Fraction(3, 4))
    rho = {k + HALF: Fraction(1, 5) for k in range(5)}
    for weight, beta in ((HALF, 0.05), (Fraction(9, 10), 0.25)):
        priors = tuple(
            {o + Fraction(i, 8) - Fraction(2, 8): m for o, m in mix({i + HALF: Fraction(1)}, rho, weight).items()}
            for i in (1, 2, 3)
        )
        algorithm = Algorithm(quantiles, priors, (z,) * 3)
        limit = subject(math.log(1 - weight), -4 * math.log(z), 3, beta)
        failed = probability(algorithm.law(data), lambda outputs, a=algorithm, b=limit: max(a.gaps(data, outputs)) > b)
        assert failed <= beta, (weight, float(failed), limit)
    return "mixing: the largest of three gaps stays within the consistency bound (exact laws, two weights)"
