"""thm:pubpri as printed, term by term: what the counterexamples of its rows are counterexamples to."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from pq import bounds
from proofs_checks.engine.registry import check

BOXES = ((0.5, 0.2, 4.0), (3.0, 0.7, 0.7), (40.0, 0.1, 9.0))  # B and both scales


def paper_bound(*args: Any, **named: Any) -> float:
    """The package's printed bound."""
    return bounds.thm_pubpri(*args, **named, version="paper")


@check(
    "thm:pubpri",
    "thm:pubpri/units",
    code=bounds.thm_pubpri,
    rejects=[
        bounds.thm_pubpri,
        *(lambda *a, by=by, **k: by * paper_bound(*a, **k) for by in (0.99, 1.01)),
        *(lambda size, n, by=by, **k: paper_bound(size, n + by, **k) for by in (-1, 1)),
        lambda size, n, **k: paper_bound(size + 1, n, **k),
        *(lambda *a, name=name, **k: paper_bound(*a, **{**k, name: 1.01 * k[name]}) for name in ("beta", "scale_max")),
        lambda *a, **k: paper_bound(*a, **{**k, "density_bound": 3.0}),
    ],
)
def check_printed_terms(subject: Callable[..., float] = paper_bound) -> str:
    """2 (2B/s + log(4 kappa m (n+1) N S/b)) TV + (B + 4BS + S^2) sqrt(m (n+1)/N) + 2 (4B/s + that logarithm)
    sqrt(2 (n+1) log(4/b)/N) + ((n+1) b/N)(3 + 4B/s + 4 log(2 kappa (n+1) N sqrt(2mS)/b)), s and S the scales."""
    sizes = ((1, 2, 3), (2, 2, 9), (3, 10, 1000), (100, 100, 10**6 + 1))  # m, n and N
    places = itertools.product(sizes, BOXES, (0.1, 0.95, 1e-9), (0.0, 0.25), (0.2, 3.0))
    for (m, n, size), (b, low, high), beta, tv, kappa in places:
        common = math.log(4 * kappa * m) + math.log(n + 1) + math.log(size) + math.log(high / beta)
        tail = math.log(2 * kappa / beta) + math.log(n + 1) + math.log(size) + math.log(2 * m * high) / 2
        terms = [(4 * b / low + 2 * common) * tv, (b * (1 + 4 * high) + high**2) * math.sqrt(m * (n + 1) / size)]
        terms.append((8 * b / low + 2 * common) * math.sqrt(2 * (n + 1) * math.log(4 / beta) / size))
        terms.append((n + 1) * beta / size * (3 + 4 * b / low + 4 * tail))
        known: dict[str, Any] = {"quantiles": m, "data_bound": b, "scale_min": low, "scale_max": high, "beta": beta}
        found = subject(size, n, density_bound=kappa, total_variation=tv, **known)
        assert math.isclose(found, math.fsum(terms), rel_tol=1e-9), (m, n, size, found)
    return "thm:pubpri as printed: the package's four terms are the paper's"


def paper_steps(*args: Any, **named: Any) -> bounds.StepSizes:
    """The package's printed step sizes."""
    return bounds.pubpri_step_sizes(*args, **named, version="paper")


def _with_steps(location: float, inverse_scale: float) -> Callable[..., bounds.StepSizes]:
    def broken(*args: Any, **named: Any) -> bounds.StepSizes:
        found = paper_steps(*args, **named)
        return bounds.StepSizes(location * found.location, inverse_scale * found.inverse_scale)

    return broken


@check(
    "thm:pubpri/step-sizes",
    code=bounds.pubpri_step_sizes,
    rejects=[
        bounds.pubpri_step_sizes,
        *(_with_steps(*by) for by in ((0.99, 1.0), (1.01, 1.0), (1.0, 0.99), (1.0, 1.01))),
        lambda steps, **named: paper_steps(steps + 1, **named),
    ],
)
def check_printed_descent(subject: Callable[..., bounds.StepSizes] = paper_steps) -> str:
    """B sqrt(m/T) for theta and (S - s)/(4B + S) sqrt(m/T) for phi."""
    for (steps, m), (b, low, high) in itertools.product(((1, 1), (3, 2), (1000, 7)), BOXES):
        found = subject(steps, quantiles=m, data_bound=b, scale_min=low, scale_max=high)
        root = math.sqrt(m) / math.sqrt(steps)
        assert math.isclose(found.location, b * root, rel_tol=1e-9), (steps, m, b)
        assert math.isclose(found.inverse_scale, root * (high - low) / (4 * b + high), rel_tol=1e-9), (steps, m, b)
    return "thm:pubpri: the package's printed step sizes are the paper's"
