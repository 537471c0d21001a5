"""One function for each guarantee of the paper, in its printed and its corrected form, and some that are sharper."""

from pq.core.bounds import (
    applications,
    counts,
    dpftrl,
    joint,
    quantiles,
    regret,
    rounding,
    sharper,
    sharper_learning,
    trees,
)
from pq.core.bounds.applications import *  # noqa: F403
from pq.core.bounds.counts import *  # noqa: F403
from pq.core.bounds.dpftrl import *  # noqa: F403
from pq.core.bounds.joint import *  # noqa: F403
from pq.core.bounds.quantiles import *  # noqa: F403
from pq.core.bounds.regret import *  # noqa: F403
from pq.core.bounds.rounding import *  # noqa: F403
from pq.core.bounds.sharper import *  # noqa: F403
from pq.core.bounds.sharper_learning import *  # noqa: F403
from pq.core.bounds.trees import *  # noqa: F403

__all__ = [
    *quantiles.__all__,
    *trees.__all__,
    *rounding.__all__,
    *joint.__all__,
    *counts.__all__,
    *sharper.__all__,
    *dpftrl.__all__,
    *regret.__all__,
    *applications.__all__,
    *sharper_learning.__all__,
]
