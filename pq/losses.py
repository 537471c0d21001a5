"""Convex surrogate losses of quantile release; see `pq.core.losses`."""

from pq.core.losses import *  # noqa: F403
from pq.core.losses import __all__ as __all__
