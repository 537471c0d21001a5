"""Convex surrogate losses of quantile release, with exact gradients (Sections 4.3, 5.1 and Appendices B.2, C.1)."""

from pq.core.losses.combined import *  # noqa: F403
from pq.core.losses.combined import __all__ as __all__
