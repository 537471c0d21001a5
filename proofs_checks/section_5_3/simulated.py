"""thm:sequential against seeded runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pq import bounds
from pq.losses import laplace_interval
from proofs_checks.engine.registry import check
from proofs_checks.tools.runs import BETA, CENTRES, RUNS, Sums, passed, report_shares


@check("thm:sequential", code=bounds.thm_sequential, rejects=[0.1, 0.03])
def check_sequential(share: float = 1.0) -> str:
    """thm:sequential, corrected: two runs of DP-FTRL at half of the budget each, two features, one quantile."""
    steps, shares = 60, {}
    common: dict[str, Any] = {"quantiles": 1, "features": 2, "feature_bound": 1.0, "weight_bound": 1.0}
    common |= {"data_bound": 2.5, "scale_min": 0.5, "scale_max": 2.0, "epsilon": 20.0, "delta": 1e-2, "beta": BETA}
    sizes, bound = bounds.sequential_step_sizes(steps, **common), bounds.thm_sequential(steps, **common)
    noise = bounds.dpftrl_noise(steps, 10.0, 5e-3)
    for number, (name, centre_of) in enumerate(CENTRES.items()):
        rng = np.random.default_rng([137, number])
        features = rng.choice([-1.0, 1.0], (steps, 2))
        centre = centre_of(rng, features)
        stds = noise * np.array([2 * math.sqrt(2), 2 * math.sqrt(2), 2 * (2.5 + 2.0)])
        sums, losses = Sums((RUNS, 3), stds, rng), np.zeros(RUNS)
        for t in range(steps):
            seen = sums.seen()
            maps = np.clip(-sizes.location * seen[:, :2], -2, 2)
            phi = np.clip(1.25 - sizes.inverse_scale * seen[:, 2], 0.5, 2.0)
            loss, slope, slope_phi = laplace_interval(maps @ features[t], phi, centre[t] - 0.05, centre[t] + 0.05)
            losses += loss
            sums.add(np.column_stack([slope[:, None] * features[t], slope_phi]))
        best = math.inf
        for scale in (0.5, 1.0, 2.0):
            for first in np.linspace(-1, 1, 9):
                for second in np.linspace(-1, 1, 9):
                    theta = features @ np.array([first, second]) / scale
                    fixed = laplace_interval(theta, 1 / scale, centre - 0.05, centre + 0.05)[0]
                    best = min(best, float(np.sum(fixed)))
        shares[name] = passed(name, losses - best, bound, share)
    return report_shares("thm:sequential, corrected", shares, 0.14)
