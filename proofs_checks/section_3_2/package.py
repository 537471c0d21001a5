"""What the package computes for one quantile, against fractions: gaps, inner products, the bound."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from pq.bounds import lem_quantile
from pq.truth.evaluate import gap as package_gap
from pq.truth.evaluate import log_psi, log_psi_harmonic
from proofs_checks.engine.registry import check
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.cases import GAP_SAMPLE, one_quantile_cases
from proofs_checks.tools.exact import Grid, Restricted, ball, gap, log_ball, mechanism, psi
from proofs_checks.tools.pieces import column, spread

F = Fraction
HALF = F(1, 2)
WHOLE = (-math.inf, math.inf)


def _closed(x: Any, q: Any, o: Any) -> Any:
    """Records equal to the value counted as below it."""
    return np.abs(np.searchsorted(np.sort(x), o, side="right") - [math.floor(level * len(x)) for level in q])


def _rounded_up(x: Any, q: Any, o: Any) -> Any:
    """The target ceil(q n)."""
    return np.abs(np.searchsorted(np.sort(x), o) - [math.ceil(level * len(x)) for level in q])


@check("eq:gap", "text:target-interval", code=package_gap, rejects=[_closed, _rounded_up])
def check_gap_in_package(subject: Callable[..., Any] = package_gap) -> str:
    """`pq.gap` is eq:gap on different records in any order, for outputs on, between and beyond them."""
    cases = 0
    for n, q in itertools.product(range(1, 7), GAP_SAMPLE):
        x = np.random.default_rng(n).permutation(column(Grid(n)))
        outputs = [F(j, 2) for j in range(2 * n + 4)]
        found = subject(x, [q] * len(outputs), [float(o) for o in outputs])
        assert list(found) == [gap(Grid(n), q, o) for o in outputs], (n, q)
        cases += len(outputs)
    return f"pq.gap is eq:gap in {cases} cases: records in any order, outputs on, between and beyond them"


@check(
    "text:psi-limit",
    "text:u-upper-bound",
    "eq:basic",
    code=log_psi,
    rejects=[
        lambda x, q, prior, epsilon=None: log_psi(x, q, prior),
        lambda x, q, prior, epsilon=None: log_psi(x, q, prior, epsilon and 2 * epsilon),
        lambda x, q, prior, epsilon=None: 1.001 * log_psi(x, q, prior, epsilon),
    ],
)
def check_inner_product_in_package(subject: Callable[..., float] = log_psi) -> str:
    """`pq.log_psi` is the exact inner product at every epsilon, at most its limit with the sign turned round, which is
    the mass of the optimal cell."""
    cases = 0
    for data, q, prior, z in one_quantile_cases():
        if not data.size:
            continue
        scaled_prior = {o: mass / sum(prior.values()) for o, mass in prior.items()}
        x, spread_prior = column(data), spread(scaled_prior)
        at = subject(x, q, spread_prior, -2 * math.log(z))
        limit = subject(x, q, spread_prior)
        exact, best = psi(data, q, scaled_prior, z), psi(data, q, scaled_prior, F(0))
        assert math.isclose(at, float(log_ball(exact)), rel_tol=1e-9, abs_tol=1e-9), (data, q, z)
        assert math.isclose(math.exp(limit), best, rel_tol=1e-9, abs_tol=1e-300), (data, q)
        assert limit <= at + 1e-12, "U^(q) is the larger loss"
        cases += 1
    return f"pq.log_psi is the exact Psi^(q, epsilon), and Psi^(q) its limit from above, in {cases} cases"


@check(
    "text:log-sum-exp",
    "def:consistency",
    "text:u-upper-bound",
    code=log_psi_harmonic,
    rejects=[
        lambda x, q, priors, epsilon: log_psi_harmonic(x, q, priors, epsilon) - math.log(len(q)),
        lambda x, q, priors, epsilon: log_psi_harmonic(x, q, priors),
        lambda x, q, priors, epsilon: log_psi_harmonic(x, q, priors, epsilon or 1e-9),  # a limit at the other end
    ],
)
def check_harmonic_in_package(subject: Callable[..., float] = log_psi_harmonic) -> str:
    """`pq.log_psi_harmonic` is the log of the exact harmonic mean of m inner products, and falls with epsilon to that
    of the masses of the optimal cells; the printed log-sum-exp is log m above the loss, at every epsilon and in the
    limit."""
    cases = sorted(one_quantile_cases(), key=lambda case: case[0].size)
    checked = {2: 0, 3: 0}
    for m, start in itertools.product(checked, range(0, len(cases), 3)):
        group = cases[start : start + m]
        data, z = group[0][0], group[0][3]
        if len(group) < m or not data.size or any(case[0].size != data.size for case in group):
            continue
        priors, levels = [spread(case[2]) for case in group], [case[1] for case in group]
        found = [subject(column(data), levels, priors, epsilon) for epsilon in (-2 * math.log(z), None)]
        for share, value in zip((z, F(0)), found, strict=True):
            values = [psi(data, case[1], case[2], share) / sum(case[2].values()) for case in group]
            if not all(values):
                assert value == -math.inf, "a prior without mass on its optimal cell"
                continue
            exact = m / sum((1 / one for one in values), F(0))
            assert math.isclose(value, float(log_ball(exact)), rel_tol=1e-9, abs_tol=1e-9), (data, levels, share)
            summed = math.log(sum(float(1 / one) for one in values))  # the printed log-sum-exp of the losses
            assert math.isclose(summed + value, math.log(m), rel_tol=1e-9), "log m apart"
            checked[m] += 1
        assert found[1] <= found[0] + 1e-12, "U is the larger loss"
    assert min(checked.values()) >= 8, checked
    return f"pq.log_psi_harmonic is the log of the harmonic mean, m = 2 and 3, and not below its limit: {checked}"


def _if_odd(bound: Callable[..., float], name: str, factor: float, *args: float, **named: Any) -> float:
    """A bound off by a factor where that argument is given."""
    return bound(*args, **named) * (factor if name in named else 1)


@check(
    "lem:quantile",
    "eq:quantile",
    "eq:basic",
    "text:no-assumptions",
    "text:repetitions",
    "text:perfect-prediction",
    code=lem_quantile,
    rejects=[
        scaled(lem_quantile, 0.99),
        scaled(lem_quantile, 1.01),
        lambda *args, **named: lem_quantile(*args),
        lambda *args, sensitivity=1.0, **named: lem_quantile(*args, **named),
        *(partial(_if_odd, lem_quantile, name, by) for name in ("sensitivity", "log_total") for by in (0.99, 1.01)),
        lambda *args, version="corrected", **named: lem_quantile(*args, **named),
    ],
)
def check_lem_quantile_in_package(subject: Callable[..., float] = lem_quantile) -> str:
    """Pr{Gap >= bound} <= beta by exact laws for each beta that a tail attains, any total mass; nothing less will do:
    a prior with nearly all of its mass at one wrong cell attains the bound."""
    cases = 0
    for data, q, prior, z in one_quantile_cases():
        law = mechanism(Restricted(data, *WHOLE), q, prior, z)
        inner, total = psi(data, q, prior, z), sum(prior.values())
        for o, at in law.items():
            tail = sum(p for v, p in law.items() if gap(data, q, v) >= gap(data, q, o))
            for beta in (float(tail), float(at)):
                bound = subject(float(log_ball(inner)), -2 * math.log(z), beta, log_total=float(log_ball(total)))
                failed = sum(p for v, p in law.items() if gap(data, q, v) >= bound * (1 - 1e-12) - 1e-12)
                assert failed <= beta * (1 + 1e-9), (data, q, z)
                cases += 1
    few, z = F(1, 10**30), F(1, 10)
    prior = {HALF: few, 6 + HALF: 1 - few}
    law = mechanism(Restricted(Grid(6), *WHOLE), F(1, 20), prior, z)
    bound = subject(
        float(log_ball(psi(Grid(6), F(1, 20), prior, z))), -2 * math.log(z), float(law[6 + HALF]) * (1 - 1e-9)
    )
    assert 6 <= bound < 6.001, "a smaller bound is exceeded, a larger one is not tight"
    for logs, epsilon, beta in itertools.product((-1e-3, -2.0, -700.0), (1e-3, 1.5, 30.0), (0.9, 1e-9)):
        for unit, mass in itertools.product((0.5, 1.0, 2.0), (-3.0, 0.0, 40.0)):
            odds = ball(F(mass)) - log_ball(F(beta)) - ball(F(logs))  # of Markov's inequality for that total mass
            wanted = float(ball(2 * F(unit) / F(epsilon)) * odds)
            found = subject(logs, epsilon, beta, sensitivity=unit, log_total=mass)
            assert math.isclose(found, wanted, rel_tol=1e-9), (logs, epsilon, beta, unit, mass)
            printed = subject(logs, epsilon, beta, sensitivity=unit, log_total=mass, version="paper")
            assert math.isclose(printed, subject(logs, epsilon, beta, sensitivity=unit), rel_tol=1e-9), "of mass one"
    perfect = subject(0.0, 1.0, 0.05)
    assert math.isclose(perfect, 2 * math.log(20)), "a perfect prediction: (2/eps) log(1/beta)"
    return f"lem:quantile as the package computes it: exact tails in {cases} cases, and attained by two cells"
