"""From the arguments of a call to the mechanism that serves it, before any data are touched."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from pq.core.plan import plan_for
from pq.core.priors import JointPrior, Prior
from pq.core.request import Request
from pq.private.mechanisms import Mechanism, mechanism_for

PLAIN = frozenset((int, float, Fraction, str, bool, type(None)))


def prepare(quantiles: Any, *, priors: Any, **options: Any) -> Mechanism:
    """The mechanism for the arguments of `pq.release`; raises `TypeError` or `ValueError` naming the one at fault.

    Calls with one prior and otherwise plain numbers and words share one: checking exact budgets and laying out a tree
    takes longer than a release of a thousand records. What is kept holds public facts only.
    """
    if type(quantiles) is np.ndarray and quantiles.ndim == 1:
        quantiles = quantiles.tolist()
    kind, values, make = None, tuple(options.values()), _made
    if (
        isinstance(priors, Prior | JointPrior)
        and type(quantiles) in (list, tuple)
        and PLAIN.issuperset(map(type, values))
    ):
        kinds = set(map(type, quantiles))
        if kinds in ({float}, {Fraction}):
            (kind,), quantiles, make = kinds, tuple(quantiles), _kept
    return make(kind, quantiles, priors, tuple(options), *values)


def _made(kind: Any, quantiles: Any, priors: Any, names: tuple[str, ...], *values: Any) -> Mechanism:
    """kind: of the quantiles; the float 0.1 means 1/10 and equals another fraction."""
    return mechanism_for(Request.of(quantiles, priors=priors, **dict(zip(names, values, strict=True))))


_kept = lru_cache(maxsize=256, typed=True)(_made)


def forget() -> None:
    """Make all mechanisms and plans anew: for tests that change the table of sensitivities."""
    _kept.cache_clear()
    plan_for.cache_clear()
