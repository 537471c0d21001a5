"""Online learners with one protocol; see `pq.core.learners`, and `pq.private.noise` for those that add noise."""

from pq.core.learners import *  # noqa: F403
from pq.core.learners import __all__ as _public
from pq.private.noise import SquareRootAggregator, StepsExceeded, TreeAggregator
from pq.private.noise_ftrl import DPFTRL

__all__ = [*_public, "DPFTRL", "SquareRootAggregator", "StepsExceeded", "TreeAggregator"]
