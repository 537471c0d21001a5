"""Exact privacy loss between neighbouring columns (Section 3)."""

from __future__ import annotations

import math
from typing import Any

from pq.release import log_density


def privacy_loss(x: Any, neighbour: Any, values: Any, quantiles: Any, **keywords: Any) -> float:
    """Exact privacy loss of an output on two columns, `log p(values | x) - log p(values | neighbour)`, in nats.

    x, neighbour: (n,) columns. values: (m,) an output. quantiles and the keywords: as in `log_density`.
    Returns a float; 0 if the output is impossible on both, infinite if on one. An epsilon-private release never exceeds epsilon
    on neighbours.

    >>> import pq
    >>> loss = privacy_loss([1.0, 2.0], [1.0, 2.0, 3.0], [1.5], [0.5], epsilon=1, priors=pq.Uniform(0, 4))
    >>> abs(loss) <= 1
    True
    """
    one = log_density(x, values, quantiles, **keywords)
    other = log_density(neighbour, values, quantiles, **keywords)
    return 0.0 if one == other == -math.inf else one - other
