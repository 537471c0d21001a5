"""Convex surrogate losses of quantile release, with exact gradients (Sections 4.3, 5.1 and Appendices B.2, C.1)."""

from pq.core.losses import combined, joint
from pq.core.losses.combined import *  # noqa: F403
from pq.core.losses.joint import *  # noqa: F403

__all__ = [*combined.__all__, *joint.__all__]
