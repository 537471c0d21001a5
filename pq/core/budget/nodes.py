"""How many noisy sums of a tree one value is in: the one count of tree aggregation (Algorithm `alg:dpftrl`)."""

from __future__ import annotations

from pq.core.exact import is_integer


def check_steps(steps: int) -> int:
    """A planned number of steps, checked. Raises `ValueError` naming steps."""
    if not is_integer(steps) or steps < 1:
        raise ValueError("steps must be an integer, at least 1")
    return int(steps)


def tree_nodes(steps: int, *, release_total: bool = True) -> int:
    """How many released nodes of the aggregation tree hold one value at most: the squared sensitivity (`thm:dpftrl`).

    The first value of T is in the blocks of lengths 1, 2, 4, ..., up to T: `T.bit_length()` of them. The paper's
    `ceil(log2 T)` is right for the iterates theta_1..theta_T, which see the sums of at most T - 1 gradients
    (`release_total=False`), and one short at powers of two once the sum of all T is used.

    steps: number T of values, at least 1. release_total: whether the sum of all T is used. Raises `ValueError` naming
    steps.

    >>> [tree_nodes(t) for t in (1, 2, 3, 4, 8)], [tree_nodes(t, release_total=False) for t in (1, 2, 3, 4, 8)]
    ([1, 2, 2, 3, 4], [0, 1, 2, 2, 3])
    """
    return (check_steps(steps) if release_total else check_steps(steps) - 1).bit_length()
