"""thm:sequential against seeded runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pq import bounds
from pq.losses import laplace_interval
from proofs_checks.engine.registry import check
from proofs_checks.section_5_3.learning import least_loss
from proofs_checks.tools.runs import BETA, CENTRES, RUNS, Sums, passed, report_shares, run_arguments

Array = np.ndarray

BOX = {"feature_bound": 1.0, "weight_bound": 1.0, "data_bound": 2.5, "scale_min": 0.5, "scale_max": 2.0}
BUDGET, STEPS = (20.0, 1e-2), 60


def worst_days(bound: float, location: float, inverse_scale: float, share: float) -> dict[str, float]:
    """The largest part of a bound that two runs of DP-FTRL with these steps need against the best of the whole box: two
    features, one quantile."""
    shares, noise = {}, bounds.dpftrl_noise(STEPS, BUDGET[0] / 2, BUDGET[1] / 2)
    for number, (name, centre_of) in enumerate(CENTRES.items()):
        rng = np.random.default_rng([137, number])
        features = rng.choice([-1.0, 1.0], (STEPS, 2))
        centre = centre_of(rng, features)
        stds = noise * np.array([2 * math.sqrt(2), 2 * math.sqrt(2), 2 * (2.5 + 2.0)])
        sums, losses = Sums((RUNS, 3), stds, rng), np.zeros(RUNS)
        for t in range(STEPS):
            seen = sums.seen()
            maps = np.clip(-location * seen[:, :2], -2, 2)
            phi = np.clip(1.25 - inverse_scale * seen[:, 2], 0.5, 2.0)
            loss, slope, slope_phi = laplace_interval(maps @ features[t], phi, centre[t] - 0.05, centre[t] + 0.05)
            losses += loss
            sums.add(np.column_stack([slope[:, None] * features[t], slope_phi]))
        shares[name] = passed(name, losses - least_loss(features, centre), bound, share)
    return shares


@check("thm:sequential", code=bounds.thm_sequential, rejects=[0.1, 0.03])
def check_sequential(share: float = 1.0) -> str:
    """thm:sequential, corrected: two runs of DP-FTRL at half of the budget each."""
    known: dict[str, Any] = {"quantiles": 1, "features": 2, "epsilon": BUDGET[0], "delta": BUDGET[1], **BOX}
    sizes = bounds.sequential_step_sizes(STEPS, beta=BETA, **known)
    bound = bounds.thm_sequential(STEPS, beta=BETA, **known)
    shares = worst_days(bound, sizes.location, sizes.inverse_scale, share)
    return report_shares("thm:sequential, corrected", shares, 0.162)


@check("ours:half-of-lipschitz", "thm:sequential", code=bounds.dpftrl_half, rejects=[0.1, 0.03])
def check_sequential_half(share: float = 1.0) -> str:
    """With half of the first L in both runs, at the step sizes of that: what carries over to thm:sequential."""
    runs = run_arguments(STEPS, 1, 2, BOX, BUDGET, BETA)
    parts = [bounds.dpftrl_half(STEPS, **known) for known in runs]
    steps = [2 * known["regularizer_range"] / part for known, part in zip(runs, parts, strict=True)]
    assert sum(parts) < sum(bounds.thm_dpftrl(STEPS, **known) for known in runs)
    return report_shares("thm:sequential with L/2", worst_days(sum(parts), steps[0], steps[1], share), 0.164)
