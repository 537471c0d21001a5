"""Priors: the distributions over outputs that steer a release (`eq:basic`, `cor:quantile`)."""

from pq.core.priors.families import (
    Cauchy,
    HalfCauchy,
    Laplace,
    Mixture,
    Normal,
    PiecewiseConstant,
    Prior,
    Uniform,
    from_scipy,
)
from pq.core.priors.order_statistic import OrderStatistic

__all__ = [
    "Cauchy",
    "HalfCauchy",
    "Laplace",
    "Mixture",
    "Normal",
    "OrderStatistic",
    "PiecewiseConstant",
    "Prior",
    "Uniform",
    "from_scipy",
]
