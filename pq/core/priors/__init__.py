"""Priors: the distributions over outputs that steer a release (`eq:basic`, `cor:quantile`)."""

from pq.core.priors.base import FAMILIES, Prior, spelled_families, spelling
from pq.core.priors.cauchy import Cauchy
from pq.core.priors.half_cauchy import HalfCauchy
from pq.core.priors.joint_prior import JointPrior
from pq.core.priors.laplace import Laplace
from pq.core.priors.log_uniform import LogUniform
from pq.core.priors.lognormal import LogNormal
from pq.core.priors.mixture import Mixture
from pq.core.priors.normal import Normal
from pq.core.priors.order_statistic import OrderStatistic
from pq.core.priors.piecewise_constant import PiecewiseConstant
from pq.core.priors.said import prior_between
from pq.core.priors.scipy_prior import ScipyPrior, from_scipy
from pq.core.priors.uniform import Uniform

__all__ = [
    "FAMILIES",
    "Cauchy",
    "HalfCauchy",
    "JointPrior",
    "Laplace",
    "LogNormal",
    "LogUniform",
    "Mixture",
    "Normal",
    "OrderStatistic",
    "PiecewiseConstant",
    "Prior",
    "ScipyPrior",
    "Uniform",
    "from_scipy",
    "prior_between",
    "spelled_families",
    "spelling",
]
