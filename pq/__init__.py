"""Private quantiles with the help of predictions; see README.md and NOTATION.md."""

from pq import bounds, datasets, learners, losses, sequential
from pq.audit import privacy_loss
from pq.column import SortedColumn
from pq.counts import Counts
from pq.density import log_density
from pq.evaluate import gap, log_psi, log_psi_harmonic, max_gap
from pq.exact import rank
from pq.frames import count
from pq.ledger import Ledger
from pq.order_statistic import OrderStatistic
from pq.plan import Plan, kary_arity, plan
from pq.priors import Cauchy, HalfCauchy, Laplace, Mixture, Normal, PiecewiseConstant, Prior, Uniform, from_scipy
from pq.public_fit import fit_public
from pq.release import Release, release, simulate
from pq.sequential import release_sequence

__all__ = [
    "Cauchy",
    "Counts",
    "HalfCauchy",
    "Laplace",
    "Ledger",
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
    "fit_public",
    "from_scipy",
    "gap",
    "kary_arity",
    "learners",
    "log_density",
    "log_psi",
    "log_psi_harmonic",
    "losses",
    "max_gap",
    "plan",
    "privacy_loss",
    "rank",
    "release",
    "release_sequence",
    "sequential",
    "simulate",
]
