"""Online learners with one protocol; see `pq.core.learners`."""

from pq.core.learners import *  # noqa: F403
from pq.core.learners import __all__ as __all__
