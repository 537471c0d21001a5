"""What learning the weights of a joint prior pays, beyond the paper: on every sequence, and all of it on some."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

from proofs_checks.engine.registry import check
from proofs_checks.section_3_2.joint_priors import posteriors

F = Fraction
MASSES = (F(0), F(1, 2), F(1))  # of the others; the first member's is a half


@check(
    "ours:joint-weights",
    rejects=[
        lambda count: F(99, 100) * count,
        lambda count: F(101, 100) * count,
        lambda count: F(max(count - 1, 1)),
        lambda count: F(2),
    ],
)
def check_what_weights_pay(subject: Callable[[int], Fraction] = lambda count: F(count)) -> str:
    """Posterior weights pay at most log L more than the first member, on any sequence, and just that where the others
    give nothing; so do m fits apart, m times."""
    cases = 0
    for count, length in itertools.product((1, 2, 3), (1, 2)):
        least = F(1)
        for others in itertools.product(itertools.product(MASSES, repeat=count - 1), repeat=length):
            rows = tuple((F(1, 2), *row) for row in others)
            now = posteriors((F(1, count),) * count, rows)
            each = zip(now, rows, strict=False)  # the weights after the last are not paid with
            paid = math.prod(sum(w * s for w, s in zip(weights, row, strict=True)) for weights, row in each)
            least, cases = min(least, F(paid) / F(1, 2) ** length), cases + 1
        assert least == 1 / subject(count), (count, length)
        for m in (2, 9):
            assert least**m == 1 / F(count) ** m, "fits apart have m logarithms to pay"
    return f"learning weights pays log L at most, and just that on some sequences: {cases} in fractions"
