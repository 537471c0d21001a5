"""Which of some priors differ."""

from __future__ import annotations

from collections.abc import Iterable

from pq.core.priors.base import Prior


def differing(priors: Iterable[Prior]) -> list[Prior]:
    """The priors that differ, in order. One object that comes often is not compared with itself, which for a mixture of
    many parts takes long.

    >>> from pq.core.priors import Cauchy
    >>> differing([Cauchy(0, 1), Cauchy(0, 2), Cauchy(0, 1)])
    [Cauchy(loc=0.0, scale=1.0), Cauchy(loc=0.0, scale=2.0)]
    """
    objects = {id(prior): prior for prior in priors}
    return list(objects.values() if len(objects) < 2 else dict.fromkeys(objects.values()))
