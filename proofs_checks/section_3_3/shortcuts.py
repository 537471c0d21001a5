"""Ties, atoms and shortcuts: what a tree may do with equal records and with nodes that hold none."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from proofs_checks.engine.registry import check

F = Fraction
Values = tuple[int, ...]
Law = dict[Fraction, Fraction]
Z = F(1, 1000)  # exp(-epsilon / 2) of each mechanism
ATOMS = tuple(F(k, 2) for k in range(9))  # of the prior: on the records 1, 2, 3 and between them


def node_law(values: Values, q: Fraction) -> Law:
    """Exponential mechanism on the atoms of the prior, whether there are records or not: nothing is looked up."""
    target = q.numerator * len(values) // q.denominator
    weights = {o: Z ** abs(sum(v < o for v in values) - target) for o in ATOMS}
    return {o: weight / sum(weights.values()) for o, weight in weights.items()}


def midpoint_of_nothing(values: Values, q: Fraction) -> Law:
    """Broken: a node without records returns the middle of its interval."""
    return node_law(values, q) if values else {F(2): F(1)}


def output_on_ties(values: Values, q: Fraction) -> Law:
    """Broken: the empty cell between two equal records gets a small weight, so that the record itself can come out."""
    law = node_law(values, q)
    tied = {F(v) + F(1, 1000) for v in values if values.count(v) > 1}  # a place where no other cell has an output
    return {**law, **dict.fromkeys(tied, F(1, 10**6))}


def half_open(values: Values, o: Fraction) -> tuple[Values, Values]:
    """Records equal to the output go to one side."""
    return tuple(v for v in values if v < o), tuple(v for v in values if v >= o)


def closed(values: Values, o: Fraction) -> tuple[Values, Values]:
    """Broken: they go to both."""
    return tuple(v for v in values if v <= o), tuple(v for v in values if v >= o)


@dataclass(frozen=True)
class Shape:
    """How a tree of three quartiles runs a node, and how it splits the records at an output."""

    node: Callable[[Values, Fraction], Law] = node_law
    split: Callable[[Values, Fraction], tuple[Values, Values]] = half_open


def _ratio(one: Law, other: Law) -> Fraction | None:
    """Largest ratio of two laws either way, None for infinity."""
    if one.keys() != other.keys():
        return None
    return max(max(p / other[o], other[o] / p) for o, p in one.items())


def tree_ratio(shape: Shape, one: Values, other: Values) -> Fraction | None:
    """exp(privacy loss) of the three quartiles at worst, None for infinity."""
    roots, half = (shape.node(one, F(1, 2)), shape.node(other, F(1, 2))), F(1, 2)
    if _ratio(*roots) is None:
        return None
    worst = F(1)
    for o in roots[0]:
        pairs = zip(shape.split(one, o), shape.split(other, o), strict=True)
        parts = [_ratio(shape.node(a, half), shape.node(b, half)) for a, b in pairs]
        if parts[0] is None or parts[1] is None:
            return None
        at = max(roots[0][o] / roots[1][o], roots[1][o] / roots[0][o])
        worst = max(worst, at * parts[0] * parts[1])
    return worst


SOUND = Shape()


@check(
    "ours:shortcuts",
    "alg:quantiles",
    rejects=[
        replace(SOUND, node=midpoint_of_nothing),
        replace(SOUND, node=output_on_ties),
        replace(SOUND, split=closed),
    ],
)
def check_shortcuts(subject: Shape = SOUND) -> str:
    """Two levels spend two budgets, exactly, on all columns of up to four records that tie and lie on atoms."""
    worst, cases = F(1), 0
    for n in range(4):
        for one in itertools.combinations_with_replacement((1, 2, 3), n):
            for record in (1, 2, 3):
                ratio = tree_ratio(subject, one, tuple(sorted((*one, record))))
                assert ratio is not None, f"{one} with another {record}: an output that only one of the two has"
                assert ratio <= Z**-4, f"{one} with another {record}: {float(ratio)} above {float(Z**-4)}"
                worst, cases = max(worst, ratio), cases + 1
    return (
        f"equal records on atoms, nodes without records: {cases} pairs, ratio {float(worst):.1f} of {float(Z**-4):.0f}"
    )


@check("ours:shortcuts", rejects=[half_open, lambda values, o: (values, values)])
def check_closed_split(
    subject: Callable[[Values, Fraction], tuple[Values, Values]] = closed,
) -> str:
    """Records that go to both sides pay for both: three budgets where one record and one output are equal."""
    both = tree_ratio(Shape(split=subject), (), (2,))
    assert both is not None
    left, right = subject((2,), F(2))
    assert left == right == (2,), "the record is in both children"
    assert subject((1,), F(2)) == ((1,), ()), "and only where it equals the output"
    return f"closed intervals on both sides: a record on an output meets three mechanisms ({float(both):.1f})"
