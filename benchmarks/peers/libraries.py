"""Each library's documented way to release several quantiles, given the same public bounds and total epsilon.

Each function prepares what depends on public arguments alone and gives a function of the data, which is what is timed.
A library without a mechanism for several quantiles gets an even part of epsilon for each. What two neighbouring data
sets differ in is each library's own choice: one record more or less for pq, opendp and python-dp, one record replaced
for diffprivlib.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

LOW, HIGH = -10.0, 10.0
CANDIDATES = 2001
Array = np.ndarray[Any, np.dtype[np.float64]]
Mechanism = Callable[[Array], Any]


def pq_uniform(quantiles: Array, epsilon: float) -> Mechanism:
    """One tree of quantiles, uniform prior on the bounds."""
    import pq

    return lambda x: pq.release(x, quantiles, mechanism="tree", epsilon=epsilon, priors=pq.Uniform(LOW, HIGH)).values


def pq_cauchy(quantiles: Array, epsilon: float) -> Mechanism:
    """One tree of quantiles, a Cauchy prior of the bounds' width that needs no bounds."""
    import pq

    return lambda x: pq.release(x, quantiles, mechanism="tree", epsilon=epsilon, priors=pq.Cauchy(0.0, HIGH)).values


def opendp(quantiles: Array, epsilon: float) -> Mechanism:
    """Noisy maximum over evenly spaced candidates, once for each quantile."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance(), dp.max_divergence()
    part = epsilon / len(quantiles)

    def make(q: float) -> Mechanism:
        def few(scale: float) -> Any:
            return dp.m.make_private_quantile(*space, [LOW, HIGH], q, scale)

        scale = dp.binary_search_param(few, d_in=1, d_out=part)
        made = dp.m.make_private_quantile(*space, np.linspace(LOW, HIGH, CANDIDATES).tolist(), q, scale)
        assert made.map(1) <= part
        return made  # type: ignore[no-any-return]

    mechanisms = [make(float(q)) for q in quantiles]
    return lambda x: [mechanism(x) for mechanism in mechanisms]


def diffprivlib(quantiles: Array, epsilon: float) -> Mechanism:
    """The exponential mechanism on the intervals between records, once for each quantile."""
    from diffprivlib.tools import quantile

    return lambda x: np.ravel(quantile(x, quantiles, epsilon=epsilon, bounds=(LOW, HIGH)))


def python_dp(quantiles: Array, epsilon: float) -> Mechanism:
    """Google's tree of noisy counts, once for each quantile."""
    from pydp.algorithms.laplacian import Percentile

    same: dict[str, Any] = {"epsilon": epsilon / len(quantiles), "dtype": "float"}
    same |= {"lower_bound": LOW, "upper_bound": HIGH}

    def release(x: Array) -> list[float]:
        values = x.tolist()
        return [Percentile(percentile=float(q), **same).quick_result(values) for q in quantiles]

    return release


LIBRARIES: dict[str, Callable[[Array, float], Mechanism]] = {
    "pq (uniform)": pq_uniform,
    "pq (Cauchy)": pq_cauchy,
    "opendp": opendp,
    "diffprivlib": diffprivlib,
    "python-dp": python_dp,
}
