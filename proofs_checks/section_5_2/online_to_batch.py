"""thm:o2b: from regret to excess loss."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import z3
from flint import arb

from pq import bounds
from proofs_checks.engine.registry import check
from proofs_checks.tools.broken import printed, scaled
from proofs_checks.tools.solver import follows

F = Fraction


def coins_tail_below(steps: int, least: float) -> float:
    """log of a lower bound on Pr{mean of fair signs >= least}, any number of steps: one binomial term, in balls.

    binom(T, k) >= exp(T h(k/T)) / sqrt(8 T x (1 - x)), x = k/T and h the entropy in nats.
    """
    count = math.ceil(steps * (1 + least) / 2)
    x = arb(count) / steps
    entropy = -x * x.log() - (1 - x) * (1 - x).log()
    return float(steps * (entropy - arb(2).log()) - (8 * steps * x * (1 - x)).log() / 2)


def _binomial_tail(steps: int, p: float, least: float) -> float:
    """Exact Pr(mean of ``steps`` coins <= p - least)."""
    most = math.floor(steps * (p - least) + 1e-9)
    return sum(math.comb(steps, k) * p**k * (1 - p) ** (steps - k) for k in range(most + 1)) if most >= 0 else 0.0


@check(
    "thm:o2b",
    "thm:o2b/constant",
    code=(bounds.thm_o2b, bounds.thm_o2b_steps),
    rejects=[printed(bounds.thm_o2b), *(scaled(bounds.thm_o2b, factor) for factor in (0.5, 0.9, 0.99, 1.01))],
)
def check_online_to_batch(subject: Callable[..., float] = bounds.thm_o2b) -> str:
    """Each half of the deviation fails with probability at most beta/2: exact binomial tails, and for ten million fair
    coins above it if the half is 1% smaller, so that no smaller constant serves each of the two events."""
    largest = 0.0
    for steps in (1, 5, 20, 100, 400):
        for beta in (0.99, 0.5, 0.1, 0.01, 1e-9):
            half = subject(steps, regret=0.0, loss_range=1.0, beta=beta) / 2
            assert half <= math.sqrt(math.log(2 / beta) / (2 * steps)) * (1 + 1e-12), "twice what Hoeffding needs"
            apart = 2 * (subject(steps, regret=5.0, loss_range=3.0, beta=beta) - 5 / steps)  # half as much as printed
            assert math.isclose(apart, 2 * 3 * math.sqrt(2 / steps * math.log(2 / beta))), "as the row says"
            for p in (0.1, 0.5, 0.7):
                failure = _binomial_tail(steps, p, half)
                largest = max(largest, failure / (beta / 2))
                assert failure <= beta / 2, (steps, beta, p, failure)
    steps, beta = 10**7, 1e-300
    half = subject(steps, regret=0.0, loss_range=1.0, beta=beta) / 2  # of a mean of coins 0 and 1; 2 half of signs
    assert coins_tail_below(steps, 2 * half) <= math.log(beta / 2), "exceeded with probability above beta/2"
    assert coins_tail_below(steps, 2 * 0.99 * half) > math.log(beta / 2), "1% of the deviation is not needed"
    for beta, (alpha, most) in itertools.product((0.99, 0.5, 0.01, 1e-9), ((0.1, 2.0), (0.7, 1.0), (1e-3, 9.0))):
        steps, named = bounds.thm_o2b_steps(alpha, loss_range=most, beta=beta), {"loss_range": most, "beta": beta}
        assert bounds.thm_o2b(steps, regret=steps * alpha / 2, **named) <= alpha * (1 + 1e-12)
        assert bounds.thm_o2b(steps - 1, regret=(steps - 1) * alpha / 2, **named) > alpha, "the least number"
        assert steps == math.ceil(8 * (most / alpha) ** 2 * math.log(2 / beta)), "as the row says"
    return (
        f"excess <= R/T + B sqrt(2 log(2/b)/T), half the printed deviation (exact tails, at most {largest:.2f} of b/2)"
    )


def enough(alpha: Fraction, regrets: list[Fraction], steps: int) -> bool:
    """Corrected condition: the regret at the number of steps used, not at the least T that would do."""
    return 2 * regrets[steps - 1] <= steps * alpha


def _early(alpha: Fraction, regrets: list[Fraction], steps: int) -> bool:
    """T_alpha as printed: the least T whose regret is small."""
    return any(2 * r <= (t + 1) * alpha for t, r in enumerate(regrets[:steps]))


@check(
    "thm:o2b",
    "thm:o2b/regret-condition",
    rejects=[
        _early,
        lambda alpha, regrets, steps: True,
        lambda alpha, regrets, steps: False,
        lambda alpha, regrets, steps: regrets[steps - 1] <= steps * alpha,  # with none of alpha left for chance
        lambda alpha, regrets, steps: F(198, 100) * regrets[steps - 1] <= steps * alpha,
        lambda alpha, regrets, steps: F(202, 100) * regrets[steps - 1] <= steps * alpha,
        lambda alpha, regrets, steps: 2 * regrets[steps // 10] <= steps * alpha,
        lambda alpha, regrets, steps: 2 * regrets[steps // 2] <= steps * alpha,
        lambda alpha, regrets, steps: 2 * regrets[steps - 2] <= steps * alpha,  # at the step before
    ],
)
def check_regret_condition(subject: Callable[[Fraction, list[Fraction], int], bool] = enough) -> str:
    """T_alpha = min{T: 2 R_T <= T alpha} says nothing of larger T unless R_T/T falls: loss |theta - 1|, theta_1 = 1.

    Nor does the regret at any other step before T: that loss, with theta = 1 until then."""
    steps = 1000
    for right in (1, steps // 10, steps // 10 + 1, steps // 2 + 1, steps - 1):
        plays = [F(1)] * right + [F(0)] * (steps - right)
        regrets = list(itertools.accumulate(abs(theta - 1) for theta in plays))
        excess = abs(sum(plays) / steps - 1)
        assert regrets[right - 1] == 0 and regrets[-1] == steps * excess
        for alpha in (F(1, 10), excess * F(99, 100)):
            assert excess <= alpha or not subject(alpha, regrets, steps), f"T_alpha = 1, excess {excess}"
        if right == 1:
            assert excess == F(999, 1000) and _early(F(1, 10), regrets, 1), "as the row says"
    # R_T/T does not rise: what holds at T_alpha holds at every larger T
    first, later, early, late, room = z3.Reals("R_1 R_2 T_1 T_2 alpha")
    falling = (early > 0, late >= early, later * early <= first * late)
    follows(*falling, 2 * first <= early * room, goal=2 * later <= late * room)
    # With no more than half of alpha for the regret, the rest is for the deviation at `thm_o2b_steps`.
    alpha = F(1, 10)
    for beta in (F(1, 2), F(1, 100)):
        runs = bounds.thm_o2b_steps(float(alpha), loss_range=1.0, beta=float(beta))
        tried = {k: runs * alpha * F(k, 200) for k in range(201)}
        taken = {k: subject(alpha, [F(0)] * (runs - 1) + [r], runs) for k, r in tried.items()}
        assert all(taken[k] for k in range(101)), "half of alpha is enough room for this regret"
        largest = max(r for k, r in tried.items() if taken[k])
        found = bounds.thm_o2b(runs, regret=float(largest), loss_range=1.0, beta=float(beta))
        assert found <= float(alpha) * (1 + 1e-12), "more regret than there is room for"
    return "regret must be small at the T used: R_1 = 0 and R_T = T - 1 give T_alpha = 1 and excess 0.999"
