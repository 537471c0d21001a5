"""Ties, atoms and shortcuts: what a tree may do with equal records and with nodes that hold none."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

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


def other_half_open(values: Values, o: Fraction) -> tuple[Values, Values]:
    """They go to the other side."""
    return tuple(v for v in values if v <= o), tuple(v for v in values if v > o)


def neither(values: Values, o: Fraction) -> tuple[Values, Values]:
    """They go to no side, as in Algorithm 2."""
    return tuple(v for v in values if v < o), tuple(v for v in values if v > o)


def closed(values: Values, o: Fraction) -> tuple[Values, Values]:
    """Broken: they go to both."""
    return tuple(v for v in values if v <= o), tuple(v for v in values if v >= o)


Levels = tuple[Fraction, Fraction, Fraction]
QUARTILES: Levels = (F(1, 2), F(1, 2), F(1, 2))


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


def tree_ratio(shape: Shape, one: Values, other: Values, levels: Levels = QUARTILES) -> Fraction | None:
    """exp(privacy loss) of three quantiles at worst, None for infinity. levels: the root's, and those in its halves."""
    roots = shape.node(one, levels[0]), shape.node(other, levels[0])
    if _ratio(*roots) is None:
        return None
    worst = F(1)
    for o in roots[0]:
        pairs = zip(shape.split(one, o), shape.split(other, o), strict=True)
        parts = [_ratio(shape.node(a, q), shape.node(b, q)) for (a, b), q in zip(pairs, levels[1:], strict=True)]
        if parts[0] is None or parts[1] is None:
            return None
        at = max(roots[0][o] / roots[1][o], roots[1][o] / roots[0][o])
        worst = max(worst, at * parts[0] * parts[1])
    return worst


SOUND = Shape()
SHAPES = (
    SOUND,
    Shape(split=other_half_open),
    Shape(split=neither),
)  # records equal to an output on either side or none


@check(
    "ours:shortcuts",
    "alg:quantiles",
    rejects=[
        *((replace(shape, node=node),) for shape in SHAPES for node in (midpoint_of_nothing, output_on_ties)),
        (replace(SOUND, split=closed),),
    ],
)
def check_shortcuts(subject: tuple[Shape, ...] = SHAPES) -> str:
    """Two levels spend two budgets, exactly, on all columns of up to four records that tie and lie on atoms, when one
    is added or removed; the broken ones have outputs that a neighbour does not have, or spend more."""
    worst, cases = F(1), 0
    for shape, levels in itertools.product(subject, (QUARTILES, (F(1, 3), F(1, 5), F(3, 4)))):
        for n in range(4):
            for one in itertools.combinations_with_replacement((1, 2, 3), n):
                for record in (1, 2, 3):
                    ratio = tree_ratio(shape, one, tuple(sorted((*one, record))), levels)
                    assert ratio is not None, f"{one} with another {record}: an output that only one of the two has"
                    assert ratio <= Z**-4, f"{one} with another {record}: {float(ratio)} above {float(Z**-4)}"
                    worst, cases = max(worst, ratio), cases + 1
    assert worst > Z**-3, "two budgets are needed"
    return (
        f"equal records on atoms, nodes without records: {cases} pairs, ratio {float(worst):.1f} of {float(Z**-4):.0f}"
    )


@cache
def largest_ratios() -> tuple[Fraction, Fraction, Fraction]:
    """Of a record added, of one replaced, and of one added where those equal to an output go to both sides."""
    columns = [c for n in range(4) for c in itertools.combinations_with_replacement((1, 2, 3), n)]
    added, replaced, both = F(1), F(1), F(1)
    for one, record in itertools.product(columns, (1, 2, 3)):
        more = tuple(sorted((*one, record)))
        for shape in SHAPES:
            added = max(added, _finite(tree_ratio(shape, one, more)))
            for other in range(record + 1, 4):
                replaced = max(replaced, _finite(tree_ratio(shape, more, tuple(sorted((*one, other))))))
        both = max(both, _finite(tree_ratio(Shape(split=closed), one, more)))
    return added, replaced, both


@check("ours:shortcuts", rejects=[(2, 6), (4, 4), (6, 6), (4, 8)])
def check_budgets_of_ties(subject: tuple[int, int] = (4, 6)) -> str:
    """What a tree of two levels spends on equal records, exactly: two budgets when one is added or removed, and more,
    up to three, when one is replaced, as both halves change; three too when a record on an output goes to both.

    subject: least even powers of exp(eps/2), eps of one mechanism, that hold for added and for replaced records.
    """
    added, replaced, both = largest_ratios()
    for found, power in zip((added, replaced), subject, strict=True):
        assert Z ** (2 - power) < found <= Z**-power, (float(found), power)
    assert Z**-4 < both <= Z**-6, "three mechanisms, and more than two budgets"
    for node in (midpoint_of_nothing, output_on_ties):
        assert None in [tree_ratio(Shape(node=node), *pair) for pair in (((), (1,)), ((1,), (1, 1)))], (
            "no other outputs"
        )
    return f"a record added: {_budgets(added):.2f} budgets of 2; replaced: {_budgets(replaced):.2f} of 3"


def _finite(ratio: Fraction | None) -> Fraction:
    assert ratio is not None, "an output that only one of the two has"
    return ratio


def _budgets(ratio: Fraction) -> float:
    """A ratio in budgets of one mechanism."""
    return math.log(ratio.numerator / ratio.denominator) / (2 * math.log(1 / Z))


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
