"""One function for each guarantee of the paper, in its printed and its corrected form."""

from pq.bounds import learning, quantiles, trees
from pq.bounds.learning import *  # noqa: F403
from pq.bounds.quantiles import *  # noqa: F403
from pq.bounds.trees import *  # noqa: F403

__all__ = [*quantiles.__all__, *trees.__all__, *learning.__all__]
