"""Online learners with one protocol: `.point` is the prediction, `.update(gradient)` takes the loss's gradient there.

They are those of Section 4.3 and Appendix B.2 (private learning) and of Appendix C.2 (public data). A learner never
sees data, only gradients; whether a gradient may be shown to it is the caller's concern. `DPFTRL`, which pays for its
own, is in `pq.private.noise_ftrl`, and the private sums that it follows in `pq.private.noise`.
"""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from pq.core.budget.gaussian import noise_multiplier
from pq.core.budget.nodes import tree_nodes
from pq.core.learners.cocob import COCOB
from pq.core.learners.gradient import OGD, Averaged
from pq.core.learners.mirror import EntropicMirror, project_simplices
from pq.core.learners.prefix import (
    mean_squared_error,
    private_noise_std,
    square_root_sensitivity,
    square_root_variances,
    tree_variances,
)

__all__ = [
    "COCOB",
    "OGD",
    "Averaged",
    "EntropicMirror",
    "Learner",
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
