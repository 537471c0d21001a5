"""One function for each guarantee of the paper, in its printed and its corrected form, and some that are sharper."""

from pq.core.bounds import learning, quantiles, sharper, trees
from pq.core.bounds.learning import *  # noqa: F403
from pq.core.bounds.quantiles import *  # noqa: F403
from pq.core.bounds.sharper import *  # noqa: F403
from pq.core.bounds.trees import *  # noqa: F403

__all__ = [*quantiles.__all__, *trees.__all__, *sharper.__all__, *learning.__all__]
