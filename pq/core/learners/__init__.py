"""Online learners with one protocol: `.point` is the prediction, `.update(gradient)` takes the loss's gradient there.

Paper: Section 4.3, Appendix B.2 (private learning) and Appendix C.2 (public data).  A learner never sees data, only
gradients; whether a gradient may be shown to it is the caller's concern, except for `DPFTRL`, which pays for its own.
"""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from pq.core.learners.cocob import COCOB
from pq.core.learners.ftrl import DPFTRL, private_noise_std
from pq.core.learners.gradient import OGD, Averaged
from pq.core.learners.mirror import EntropicMirror, project_simplices
from pq.core.learners.prefix import (
    SquareRootAggregator,
    StepsExceeded,
    TreeAggregator,
    mean_squared_error,
    noise_multiplier,
    square_root_sensitivity,
    square_root_variances,
    tree_nodes,
    tree_variances,
)

__all__ = [
    "COCOB",
    "DPFTRL",
    "OGD",
    "Averaged",
    "EntropicMirror",
    "Learner",
    "SquareRootAggregator",
    "StepsExceeded",
    "TreeAggregator",
    "mean_squared_error",
    "noise_multiplier",
    "private_noise_std",
    "project_simplices",
    "square_root_sensitivity",
    "square_root_variances",
    "tree_nodes",
    "tree_variances",
]


class Learner(Protocol):
    """What every learner offers."""

    @property
    def point(self) -> npt.NDArray[np.float64]:
        """The current prediction; a copy, so that changing it changes nothing here."""
        ...

    def update(self, gradient: npt.ArrayLike) -> None:
        """Take the gradient of the loss at the current prediction, of the prediction's shape."""
        ...
