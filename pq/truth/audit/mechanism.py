"""What an audit needs of a mechanism (Section 3)."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from pq.private.columns.door import Array


class Audited(Protocol):
    """What an audit needs of a mechanism: the log density (log probability of atoms) of its outputs, for many columns
    at once.

    x: (batch, n), each row sorted; +inf entries at the end of a row are no records, so rows may hold columns of
    different sizes. values: (batch, m) outputs. Returns (batch,) log densities with respect to a measure that may
    depend on the output, not on x.
    """

    def log_density(self, x: Array, values: Array) -> Array: ...


@runtime_checkable
class Lossy(Protocol):
    """What an audit takes as well: a mechanism that gives the privacy losses of pairs of columns itself."""

    def log_ratio(self, x: Array, neighbour: Array, values: Array) -> Array: ...


def log_ratios(mechanism: Audited | Lossy, x: Array, neighbour: Array, values: Array) -> Array:
    """Privacy losses (batch,) of outputs on neighbouring columns, `log p(values | x) - log p(values | neighbour)`; 0 if
    both are -inf.

    A mechanism that has a `log_ratio` of its own is asked for it.
    """
    if isinstance(mechanism, Lossy):
        return mechanism.log_ratio(x, neighbour, values)
    logs = mechanism.log_density(np.concatenate([x, neighbour]), np.concatenate([values, values]))
    return difference(logs[: len(x)], logs[len(x) :])


def difference(one: Array, other: Array) -> Array:
    """`one - other`, 0 where both are -inf."""
    with np.errstate(invalid="ignore"):
        return np.where(one == other, 0.0, one - other)


class Scalar:
    """A mechanism from a function that gives the log density of one output on one column; slow, for whatever has no
    better.

    function: called with a sorted (n,) array of records and an (m,) array of outputs, gives a float.

    >>> import numpy as np
    >>> Scalar(lambda x, o: -abs(o[0] - len(x))).log_density(np.array([[1.0, 2.0], [1.0, np.inf]]), np.zeros((2, 1)))
    array([-2., -1.])
    """

    def __init__(self, function: Any) -> None:
        self.function = function

    def log_density(self, x: Array, values: Array) -> Array:
        return np.array(
            [self.function(row[row < np.inf], o) for row, o in zip(x, values, strict=True)], dtype=np.float64
        )
