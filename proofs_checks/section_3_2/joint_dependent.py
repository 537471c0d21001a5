"""ours:joint-convex for densities that are no product: uniform laws on strips across the square."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from proofs_checks.engine.registry import check

F = Fraction
HALF = F(1, 2)
Ends = tuple[Fraction, Fraction]

BOXES: tuple[tuple[Ends, Ends], ...] = (  # of two outputs, in the data's unit
    ((F(0), F(1)), (F(1), F(2))),
    ((F(0), F(2)), (HALF, F(1))),
    ((F(1, 4), HALF), (HALF, F(3, 4))),
)
POINTS = [(F(t, 8), F(p, 4)) for t in range(-6, 9, 2) for p in (1, 2, 5, 8)]  # a/b and 1/b


def strip_share(box: tuple[Ends, Ends], low: Fraction, high: Fraction) -> Fraction:
    """Area of the points of a box with the first number in [0, 1] and the second as much above it as low to high."""
    (a, b), (c, d) = box
    a, b = max(a, F(0)), min(b, F(1))
    if b <= a:
        return F(0)
    kinks = sorted({a, b, *(k for k in (c - low, c - high, d - low, d - high) if a < k < b)})
    heights = [max(min(d, x + high) - max(c, x + low), F(0)) for x in kinks]
    return sum(
        ((y - x) * (u + v) / 2 for (x, y), (u, v) in zip(*map(itertools.pairwise, (kinks, heights)), strict=True)), F(0)
    )


def share(theta: Fraction, phi: Fraction, box: tuple[Ends, Ends], strips: Sequence[Ends]) -> Fraction:
    """Mass of a box for the uniform law on the strips at the place theta/phi and with the width 1/phi."""
    moved: Any = tuple(tuple(phi * end - theta for end in ends) for ends in box)
    return sum((strip_share(moved, *ends) for ends in strips), F(0)) / sum((high - low for low, high in strips), F(0))


def one_strip(first: Fraction, second: Fraction, box: tuple[Ends, Ends]) -> Fraction:
    """Log-concave, and far from independent: the second number lies up to a quarter above the first."""
    return share(first, second, box, ((F(0), F(1, 4)),))


@check(
    "ours:joint-convex",
    rejects=[
        lambda theta, phi, box: share(theta, phi, box, ((F(0), F(1, 16)), (F(3, 16), F(1, 4)))),
        lambda theta, phi, box: one_strip(theta / phi, 1 / phi, box),
        lambda place, phi, box: one_strip(place * phi, phi, box),
    ],
)
def check_convex_when_dependent(subject: Callable[[Fraction, Fraction, Any], Fraction] = one_strip) -> str:
    """Masses of boxes are log-concave in (a/b, 1/b) for a log-concave density of two numbers that depend on each other,
    in fractions; two strips, whose density is not log-concave, fail, as do place and width themselves."""
    cases = 0
    for box, (one, other) in itertools.product(BOXES, itertools.combinations(POINTS, 2)):
        middle = (one[0] + other[0]) / 2, (one[1] + other[1]) / 2
        masses = [subject(*point, box) for point in (one, other, middle)]
        assert masses[2] ** 2 >= masses[0] * masses[1], (box, one, other)
        cases += masses[0] * masses[1] > 0
    apart = one_strip(F(0), F(1), ((F(0), HALF), (F(0), HALF))), one_strip(F(0), F(1), ((F(0), HALF), (F(0), F(9))))
    alone = one_strip(F(0), F(1), ((F(0), F(9)), (F(0), HALF)))
    assert apart[0] > F(3, 2) * apart[1] * alone, "hardly dependent"
    assert cases > 300
    return f"U is convex in (a/b, 1/b) for dependent numbers too: {cases} midpoints in fractions"
