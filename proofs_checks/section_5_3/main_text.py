"""Regret of sequential learning as the main text has it: which budgets, which features."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import mpmath
import z3

from pq import bounds
from pq.losses import laplace_interval
from proofs_checks.engine.registry import check
from proofs_checks.section_5_3.learning import BOXES, RUNS
from proofs_checks.tools.gaussian import exact_delta, printed_multiplier
from proofs_checks.tools.runs import run_arguments
from proofs_checks.tools.solver import follows


@check(
    "thm:sequential/main-text",
    code=laplace_interval,
    rejects=[lambda logs, budget: math.sqrt(logs) / budget, lambda logs, budget: 0.24 + math.sqrt(logs) / budget],
)
def check_large_budgets(
    subject: Callable[[float, float], float] = lambda logs, budget: 1 + math.sqrt(logs) / budget,
) -> str:
    """Main-text regret of sequential learning, T = d = m = 1: no budget makes up for a first prior without data."""
    at = [float(laplace_interval(place, 1.0, 1.0, 2.0)[0]) for place in (0.0, 1.0, 1.5)]  # scale 1, w = 0, 1, 3/2
    regret = at[0] - at[1]
    assert math.isclose(regret, 1.0, rel_tol=1e-12) and at[2] < at[1], "1 against w = 1, as the row says, and more"
    for first in (k / 10 for k in range(-20, 21)):  # whatever the first location is, data on one side are as far
        ahead, other = (float(laplace_interval(first, 1.0, side - 0.5, side + 0.5)[0]) for side in (1.5, -1.5))
        assert max(ahead, other) - at[1] >= 1 - 1e-12, first
    for logs in (10.0, 1e4, 1e12):  # log(2/delta'), with the largest budget that the theorem on DP-FTRL allows
        bound = (1 + 1) / 1 * math.sqrt(subject(logs, 4 * logs))  # (d^(3/4) + sigma_max)/sigma_min, m = T = 1
        assert regret <= bound, f"log(2/delta') = {logs:g}: regret {regret}, bound {bound:.3g}"
        assert math.isclose(2 * math.sqrt(math.sqrt(logs) / (4 * logs)), logs**-0.25), "the printed one, in the row"
    return "one step, eps' = 4 log(2/delta'): regret 1, and the printed bound tends to 0; a 1 beside the noise keeps it"


def least_noise(nodes: int, budget: float) -> float:
    """What the noise of a run that is private is close to where the budget is large."""
    return math.sqrt(nodes / (2 * budget))


@check(
    "thm:sequential/main-text",
    code=bounds.dpftrl_noise,
    rejects=[
        (lambda nodes, budget: math.sqrt(nodes) / budget, 32),
        (least_noise, 8),
        *((lambda nodes, budget, by=by: by * least_noise(nodes, budget), 32) for by in (0.99, 1.01)),
    ],
)
def check_noise_of_large_budgets(subject: tuple[Callable[[int, float], float], float] = (least_noise, 32)) -> str:
    """The printed noise of a run, for half of both, is not private for 32 log(2/delta') and ten times that, at four
    delta': that run alone tells, where a record turns its gradient round. The corrected noise, and the least on the
    exact curve of the Gaussian mechanism, fall like one over the root of the budget."""
    noise, multiple = subject
    for delta in map(mpmath.mpf, ("0.5", "0.1", "1e-6", "1e-300")):
        for budget in (multiple * mpmath.log(2 / delta), 10 * multiple * mpmath.log(2 / delta)):
            assert exact_delta(budget, printed_multiplier(budget / 2, delta / 2)) > 0.9 > delta, "private"
    for budget, (steps, nodes) in itertools.product((1e7, 1e9), ((1, 1), (3, 2), (64, 7), (1000, 10))):
        found = [bounds.dpftrl_noise(steps, budget, 1e-6, version=version) for version in ("corrected", "sharp")]
        assert all(math.isclose(value, noise(nodes, budget), rel_tol=5e-3) for value in found), (budget, found)
    return "printed noise: not private at 32 log(2/delta') and ten times that; what is falls like 1/sqrt(eps')"


def private_noise(steps: int, epsilon: float, odds: float) -> float:
    """The corrected sigma of each run, for (eps'/2, delta'/2), where delta' may be too small for a float."""
    return math.sqrt(steps.bit_length() / 2) * (math.sqrt(odds + epsilon / 2) + math.sqrt(odds)) / (epsilon / 2)


def l2_average(
    steps: int, m: int, d: int, epsilon: float, odds: float, scales: tuple[float, float] = (0.5, 1.0)
) -> float:
    """Average regret of both runs with features of l2 norm 1, B = R = 1; odds = log(2/delta')."""
    box = {"feature_bound": 1.0, "weight_bound": 1.0, "data_bound": 1.0, "scale_min": scales[0], "scale_max": scales[1]}
    first, second = run_arguments(steps, m, d, box, (epsilon, 0.5), 0.1)
    noise = private_noise(steps, epsilon, odds)
    runs = (first | {"lipschitz": 1.0, "sensitivity": 2.0}, second)  # F for F sqrt d
    return sum(bounds.thm_dpftrl(steps, **run | {"noise": noise}) for run in runs) / steps


def main_noise(m: float, epsilon: float, odds: float) -> float:
    """What stands under the root of the main text for its noise, corrected."""
    return 1 + math.sqrt(m * (odds + epsilon)) / epsilon


SCALES = ((0.5, 1.0), (1e-3, 1e3), (1e-9, 1e-6))  # least and largest: both runs need all of the constant at the last
PARTS = (0.1, 0.5, 0.99, 1.01, 2.0)


def as_printed(m: float, d: float, epsilon: float, odds: float) -> bool:
    """Budgets for which it is the printed noise, up to a constant."""
    return epsilon <= odds and epsilon <= math.sqrt(m * odds)


@check(
    "thm:sequential/main-text",
    code=bounds.thm_dpftrl,
    rejects=[
        (lambda m, epsilon, odds: 1 + math.sqrt(m * odds) / epsilon, as_printed),
        (lambda m, epsilon, odds: main_noise(m, epsilon, odds) - 1, as_printed),
        (lambda m, epsilon, odds: main_noise(1, epsilon, odds), as_printed),
        *((lambda m, epsilon, odds, by=by: by * main_noise(m, epsilon, odds), as_printed) for by in (0.99, 1.01)),
        *((lambda m, epsilon, odds, by=by: main_noise(m, epsilon, odds) - by, as_printed) for by in (0.01, 0.5)),
        *((lambda m, epsilon, odds, by=by: 1 + by * (main_noise(m, epsilon, odds) - 1), as_printed) for by in PARTS),
        (main_noise, lambda m, d, epsilon, odds: epsilon <= math.sqrt(m * d * odds)),
        (main_noise, lambda m, d, epsilon, odds: epsilon <= math.sqrt(m * odds)),
        (main_noise, lambda m, d, epsilon, odds: epsilon <= odds),
    ],
)
def check_main_text(subject: tuple[Callable[..., float], Callable[..., bool]] = (main_noise, as_printed)) -> str:
    """The corrected main text with its constant and logarithms: both runs lie within it at every budget, features of
    l2 norm 1, and reach it at small budgets and at endless ones; with the printed noise they do for the stated budgets,
    and not without either limit."""
    noise, small = subject
    cases, reached = 0, {1e-6: 0.0, 1e30: 0.0}
    for steps, odds, epsilon in itertools.product((1, 2, 3, 64, 1000), (0.7, 14.0), (0.1, 50.0)):
        wanted = bounds.dpftrl_noise(steps, epsilon / 2, math.exp(-odds))
        assert math.isclose(private_noise(steps, epsilon, odds), wanted, rel_tol=1e-9), (steps, odds, epsilon)
    for steps, m, d, odds in itertools.product(
        (1, 2, 3, 1000, 2**20), (1, 3, 10**30), (1, 7, 10**30), (0.7, 14.0, 1e8)
    ):
        spread = 8 * (1 + math.sqrt(2 * math.log(2 * steps / 0.1)))
        logs = max(1.0, spread * math.sqrt(math.floor(math.log2(steps)) * steps.bit_length() / 2))
        for epsilon, scales in itertools.product((1e-6, 0.5, 14.0, 1e8, 1e15, 1e30), SCALES):
            found = l2_average(steps, m, d, epsilon, odds, scales)
            lead = 1.5 * math.sqrt(2 * logs) * (d**0.75 + scales[1]) / scales[0] * math.sqrt(m / steps)
            share = found / (lead * math.sqrt(noise(m, epsilon, odds)))
            assert share <= 1, (steps, m, d, odds, epsilon)
            if epsilon in reached:
                reached[epsilon] = max(reached[epsilon], share)
            if small(m, d, epsilon, odds):
                printed = (1 + math.sqrt(2)) * math.sqrt(m * odds) / epsilon
                assert found <= lead * math.sqrt(printed), (steps, m, d, odds, epsilon, "the printed noise")
                cases += 1
    assert min(reached.values()) > 0.999, f"less would do: {reached}"
    # All values, step by step (z3): the noise of a run, whose roots are of odds + eps'/2, of odds and of odds + eps' ..
    half, root, whole, eps, odds = z3.Reals("half root whole epsilon odds")
    squares = (half * half == odds + eps / 2, root * root == odds, whole * whole == odds + eps)
    follows(half >= 0, root >= 0, whole >= 0, eps > 0, odds > 0, *squares, goal=half + root <= 2 * whole)
    # .. its length, the root of the number of weights and a deviation; Y, with power = sqrt(d) or 1 ..
    weights, deviation, log, part, power, least, most = z3.Reals("weights deviation logs part power least most")
    follows(weights >= 1, deviation >= 0, goal=weights + deviation <= (1 + deviation) * weights)
    follows(log >= 1, part >= 0, power >= 1, goal=1 + log * power * part <= log * power * (1 + part))
    # .. both runs together, times sigma_min sigma_max, with power = d^(3/4) ..
    runs = power * most + (most - least) * (1 + most) / 2
    follows(power >= 1, least > 0, most >= least, goal=runs <= z3.RealVal("3/2") * (power + most) * most)
    # .. and the printed noise times eps', where that is at most odds, so whole^2 <= 2 root^2 (here times m).
    two = z3.Real("two")
    small_budget = (eps > 0, eps <= root, whole >= 0, whole * whole <= 2 * root * root, two > 0, two * two == 2)
    follows(*small_budget, goal=eps + whole <= (1 + two) * root)
    return f"main text at every budget with 1 + sqrt(m (log + eps'))/eps'; as printed in {cases} cases of small budgets"


def main_noise_with(
    of_m: float = 1, of_odds: float = 1, of_epsilon: float = 1, below: float = 1, beside: float = 1
) -> Callable[[float, float, float], float]:
    """`main_noise` with other powers than 1: of m, of log(2/delta'), of eps' above and below, and of m beside eps'."""
    return lambda m, epsilon, odds: (
        1 + math.sqrt(m**of_m * (odds**of_odds + m ** (beside - 1) * epsilon**of_epsilon)) / epsilon**below
    )


@check(
    "thm:sequential/main-text",
    code=bounds.thm_dpftrl,
    rejects=[
        *((power, main_noise) for power in (1.25, 0.5, 0.7425, 0.7575)),
        *((0.75, main_noise_with(of_m=power)) for power in (0.0, 0.95, 0.99, 1.01)),
        *((0.75, main_noise_with(of_odds=power)) for power in (0.99, 1.01, 2.0)),
        *((0.75, main_noise_with(of_epsilon=power)) for power in (0.0, 0.85, 0.9, 0.95, 0.99, 1.01)),
        *((0.75, main_noise_with(below=power)) for power in (0.99, 1.01, 2.0)),
        *((0.75, main_noise_with(beside=power)) for power in (0.9, 0.99)),
    ],
)
def check_main_rate(subject: tuple[float, Callable[[float, float, float], float]] = (0.75, main_noise)) -> str:
    """Features of l2 norm 1: the average regret of both runs grows like the corrected main text in d, m, eps' and
    log(2/delta'), at a small budget, as d^(3/4), m^(3/4), eps'^(-1/2) and log(2/delta')^(1/4), as printed, and at a
    large one whose noise is still more than 1, as eps'^(-1/4); and falls like 1/sqrt(T) up to logs.

    subject: the power of d, and what stands under the root.
    """
    power, noise = subject
    small = {"steps": 2**40 - 1, "m": 10**4, "d": 10**12, "epsilon": 1e-3, "odds": 1e6}
    large = {**small, "m": 10**40, "epsilon": 1e15}

    def claimed(steps: int, m: int, d: int, epsilon: float, odds: float) -> float:
        return d**power * math.sqrt(m * noise(m, epsilon, odds))

    for at, name in itertools.product((small, large), ("d", "m", "epsilon", "odds")):
        factor = 16 if name in ("d", "m") else 1.5
        found, wanted = (
            math.log(rate(**{**at, name: at[name] * factor}) / rate(**at)) / math.log(factor)  # type: ignore[operator]
            for rate in (l2_average, claimed)
        )
        assert abs(found - wanted) < 1e-4, (at, name, found, wanted)
    later = l2_average(**{**small, "steps": 2**80 - 1}) / l2_average(**small)  # type: ignore[arg-type]
    assert 2.0**-20 < later < 2.0**-20 * 2**0.75, "1/sqrt(T), and the logarithm of T to a power of 1/2 or so"
    return (
        "thm:sequential, features of l2 norm 1: d^(3/4) m^(3/4) log(2/delta')^(1/4)/sqrt(eps' T), up to logs of T; "
        "eps'^(-1/4) at large budgets"
    )


def paper_regret(*args: Any, **named: Any) -> float:
    """The package's printed regret."""
    return bounds.thm_sequential(*args, **named, version="paper")


@check(
    "thm:sequential",
    code=bounds.thm_sequential,
    rejects=[
        bounds.thm_sequential,
        *(lambda *a, by=by, **k: by * paper_regret(*a, **k) for by in (0.99, 1.01)),
        lambda steps, **k: paper_regret(steps + 1, **k),
        *(
            lambda *a, name=name, **k: paper_regret(*a, **{**k, name: 1.01 * k[name]})
            for name in ("weight_bound", "feature_bound", "scale_min", "scale_max", "epsilon")
        ),
        lambda *a, **k: paper_regret(*a, **{**k, "delta": 1e-6}),
        lambda *a, **k: paper_regret(*a, **{**k, "beta": 0.1}),
    ],
)
def check_printed_sequence(subject: Callable[..., float] = paper_regret) -> str:
    """The package's printed regret is the paper's: (B(F+1) + S)/s sqrt(m d ceil(log2(T+1)) T (4 + (8/eps')
    sqrt(2 m d log(T/b) log(2/delta')))), s and S the scales."""
    for (steps, m, d, epsilon, delta, beta), box in itertools.product(RUNS, BOXES):
        low, high, reach = box["scale_min"], box["scale_max"], box["weight_bound"]
        noise = math.sqrt(2 * m * d) * math.sqrt(math.log(steps / beta) * math.log(2 / delta)) / epsilon
        inside = m * d * steps * (4 + 8 * noise)
        wanted = (
            (reach * box["feature_bound"] + reach + high) / low * math.sqrt(inside * math.ceil(math.log2(steps + 1)))
        )
        found = subject(steps, quantiles=m, features=d, epsilon=epsilon, delta=delta, beta=beta, **box)
        assert math.isclose(found, wanted, rel_tol=1e-9), (steps, m, d, found, wanted)
    return "thm:sequential as printed: the package's formula is the paper's, six sizes and three boxes"
