"""The gap of an output and the interval that a quantile aims at: eq:gap."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from proofs_checks.engine.registry import check
from proofs_checks.tools.cases import GAP_SAMPLE
from proofs_checks.tools.exact import Points, gap

HALF = Fraction(1, 2)


def in_target_cell(data: Points, k: int, o: Fraction) -> bool:
    """o in (x_k, x_{k+1}], with infinite ends outside the data."""
    return (k == 0 or data.values[k - 1] < o) and (k == data.size or o <= data.values[k])


def in_printed_interval(data: Points, k: int, o: Fraction) -> bool:
    """o in [x_k, x_{k+1}), the interval printed in Section 3.2."""
    return (k == 0 or data.values[k - 1] <= o) and (k == data.size or o < data.values[k])


@check(
    "text:target-interval",
    rejects=[
        in_printed_interval,
        lambda data, k, o: (k == 0 or data.values[k - 1] < o) and (k == data.size or o < data.values[k]),
        lambda data, k, o: (k == 0 or data.values[k - 1] <= o) and (k == data.size or o <= data.values[k]),
    ],
)
def check_target_interval(subject: Callable[[Points, int, Fraction], bool] = in_target_cell) -> str:
    """The outputs of gap zero are the cell that is open on the left and closed on the right, with ties too: empty if
    the records at its ends are equal."""
    assert len(set(GAP_SAMPLE)) == 17, "as the row says"
    for n in range(1, 6):
        for values in itertools.combinations_with_replacement(range(1, n + 1), n):
            data = Points(tuple(map(Fraction, values)))
            for q, o in itertools.product(GAP_SAMPLE, (Fraction(j, 2) for j in range(2 * n + 4))):
                k = math.floor(q * n)
                assert (gap(data, q, o) == 0) == (data.below(o) == k) == subject(data, k, o), (values, q, o)
    two, ends = Points((Fraction(1), Fraction(2))), (Fraction(1), Fraction(2))
    assert [gap(two, HALF, o) for o in ends] == [1, 0], "as the row says"
    assert [in_printed_interval(two, 1, o) for o in ends] == [True, False] and two.upto(ends[1]) == 2 > 1
    return "gap zero is exactly the cell (x_k, x_{k+1}] with k = floor(q n): open on the left, closed on the right"


def _closed_count(data: Any, q: Fraction, o: Fraction) -> Fraction:
    """eq:gap with records equal to o counted."""
    return Fraction(abs(data.upto(o) - math.floor(q * data.size)))


@check("eq:gap", rejects=[_closed_count, lambda data, q, o: gap(data, q, o) + 1])
def check_gap_definition(subject: Callable[[Points, Fraction, Fraction], Fraction] = gap) -> str:
    """eq:gap: both expressions agree and are constant on each cell (x_k, x_{k+1}]."""
    for n, q in itertools.product(range(7), GAP_SAMPLE):
        data = Points(tuple(Fraction(i) for i in range(1, n + 1)))
        target = math.floor(q * n)
        for k in range(n + 1):
            for o in (k + HALF, Fraction(k + 1)):
                if o == n + 1:
                    continue  # the last cell has no right end
                last = max((i for i, x in enumerate(data.values, 1) if x < o), default=0)
                assert subject(data, q, o) == abs(last - target) == abs(k - target), (n, q, o)
    return (
        "eq:gap: the count and the largest index below o agree, and the gap is constant on each (x_k, x_{k+1}], n <= 6"
    )
