"""The Cauchy law on one side of its location."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pq.core.priors.arguments import positive, real
from pq.core.priors.base import Prior, set_parameters
from pq.core.priors.cauchy import (
    add_cells_above,
    cauchy_inverse,
    cauchy_log_density,
    cauchy_log_mass,
    cauchy_point,
    seen_angle,
)
from pq.core.priors.kernel import Kernel, Row, moderate
from pq.core.priors.location_scale import location_scale_quantile
from pq.core.priors.numerics import LOG_2, Array


def _mass(loc: float, scale: float, a: float, b: float) -> float:
    a = max(a, loc)
    return 2.0 * seen_angle((a - loc) / scale, (b - loc) / scale, (b - a) / scale) / math.pi if b > a else 0.0


def _machine_log_mass(loc: float, scale: float, a: float, b: float) -> float:
    mass = _mass(loc, scale, a, b)
    if mass > 1e-280:
        return math.log(mass)
    return math.nan if b > max(a, loc) else -math.inf


def _point(loc: float, scale: float, a: float, b: float, u: float) -> float:
    return cauchy_point(loc, scale, max(a, loc), b, u)


def _add_cells(loc: float, scale: float, weight: float, edges: Any, out: Any) -> None:
    add_cells_above(loc, scale, 2.0 * weight, loc, edges, out)


@dataclass(frozen=True)
class HalfCauchy(Prior, twin="halfcauchy", kernel=Kernel(_mass, _machine_log_mass, _point, _add_cells)):
    """The Cauchy law folded to the right of `loc`: for data with a lower bound (`sec:applications`).

    scale: the median's distance from `loc`, positive. loc: the lower bound; both in the unit of the data. Raises
    `TypeError` or `ValueError` naming the argument.

    >>> HalfCauchy(2).log_mass(0, 2)
    -0.693147
    """

    scale: float
    loc: float = 0.0

    def __post_init__(self) -> None:
        set_parameters(self, scale=positive(self.scale), loc=real(self.loc, "loc"))

    @property
    def support(self) -> tuple[float, float]:
        return self.loc, math.inf

    def _row(self) -> Row | None:
        return moderate(self.loc, self.scale)

    def _log_mass(self, lower: Array, upper: Array) -> Array:
        return cauchy_log_mass(np.maximum(lower, self.loc), upper, self.loc, self.scale, folded=True)

    def _log_density(self, o: Array) -> Array:
        return np.where(o >= self.loc, LOG_2 + cauchy_log_density(o, self.loc, self.scale), -np.inf)

    def _quantile(self, lower: Array, upper: Array, u: Array, v: Array) -> Array:
        lower = np.maximum(lower, self.loc)
        return location_scale_quantile(cauchy_inverse, lower, upper, u, v, self.loc, self.scale)
