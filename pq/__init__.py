"""Private quantiles with the help of predictions; see README.md and NOTATION.md."""

from pq import bounds, datasets, learners, losses, sequential
from pq.core.budget.ledger import Ledger
from pq.core.exact import rank
from pq.core.plan import Plan, kary_arity, plan
from pq.core.priors import (
    Cauchy,
    HalfCauchy,
    JointPrior,
    Laplace,
    LogNormal,
    LogUniform,
    Mixture,
    Normal,
    OrderStatistic,
    PiecewiseConstant,
    Prior,
    Uniform,
    from_scipy,
    prior_between,
)
from pq.core.public_fit import fit_public
from pq.core.public_joint import fit_public_joint
from pq.private.columns.counts import Counts
from pq.private.columns.door import SortedColumn
from pq.private.columns.frames import count
from pq.private.columns.inspection import Inspection, inspect
from pq.private.grouped import GroupedRelease
from pq.private.groups import release_groups
from pq.private.release import Release, release, simulate
from pq.private.sequential import release_sequence
from pq.truth.density import log_density, privacy_loss
from pq.truth.evaluate import gap, log_psi, log_psi_harmonic, log_psi_joint, max_gap
from pq.truth.forecast import Forecast, epsilon_for, forecast

__all__ = [
    "Cauchy",
    "Counts",
    "Forecast",
    "GroupedRelease",
    "HalfCauchy",
    "Inspection",
    "JointPrior",
    "Laplace",
    "Ledger",
    "LogNormal",
    "LogUniform",
    "Mixture",
    "Normal",
    "OrderStatistic",
    "PiecewiseConstant",
    "Plan",
    "Prior",
    "Release",
    "SortedColumn",
    "Uniform",
    "bounds",
    "count",
    "datasets",
    "epsilon_for",
    "fit_public",
    "fit_public_joint",
    "forecast",
    "from_scipy",
    "gap",
    "inspect",
    "kary_arity",
    "learners",
    "log_density",
    "log_psi",
    "log_psi_harmonic",
    "log_psi_joint",
    "losses",
    "max_gap",
    "plan",
    "prior_between",
    "privacy_loss",
    "rank",
    "release",
    "release_groups",
    "release_sequence",
    "sequential",
    "simulate",
]
