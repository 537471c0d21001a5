"""One function for each guarantee of the paper; see `pq.core.bounds`."""

from pq.core.bounds import *  # noqa: F403
from pq.core.bounds import __all__ as __all__
