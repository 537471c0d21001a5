"""Sequential release: the quantiles of one data set after another, with priors learnt on the way (Section 5.3, C.3).

`Predictor`s say where the next quantiles may be; `release_sequence` runs one along a sequence of data sets.
"""

from pq.core.budget.guarantee import Guarantee
from pq.private.sequential.distribution import PubDistribution
from pq.private.sequential.learned import DPLearned, NonPrivate, PubProx
from pq.private.sequential.loop import Releases, release_sequence
from pq.private.sequential.predictors import Predictor, PrivatePredictor, PubPrev, Standardise, Static
from pq.private.sequential.session import Session

__all__ = [
    "DPLearned",
    "Guarantee",
    "NonPrivate",
    "Predictor",
    "PrivatePredictor",
    "PubDistribution",
    "PubPrev",
    "PubProx",
    "Releases",
    "Session",
    "Standardise",
    "Static",
    "release_sequence",
]
