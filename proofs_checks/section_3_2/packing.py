"""What no private median can do, beyond the paper: N places among which it must tell cost log(N) / epsilon records."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction

import z3

from proofs_checks.engine.registry import check
from proofs_checks.tools.solver import absolute, follows, prove

F = Fraction
RATIOS = (F(3, 2), F(2), F(5))  # e^epsilon
Column = tuple[int, int]  # a place, and how many of its k records are there; (0, 0) has none, whatever the place
Chance = Callable[[int, int, Fraction], Fraction]


def columns(places: int, k: int) -> list[Column]:
    """The column without the k records, and on the way to each place one record more at a time."""
    return [(0, 0), *itertools.product(range(places), range(1, k + 1))]


def neighbours(places: int, k: int) -> Iterator[tuple[Column, Column]]:
    """Those that differ in one record; two columns on different ways differ in two at least."""
    for place, t in itertools.product(range(places), range(1, k + 1)):
        yield ((place, t - 1) if t > 1 else (0, 0)), (place, t)


def most_chance(places: int, k: int, ratio: Fraction) -> Fraction:
    """The row's: no private law has a larger chance to be near at every place."""
    return ratio**k / places


def refuse_larger(places: int, k: int, ratio: Fraction, chance: Fraction) -> None:
    """Show by the solver that no private law on these columns is near at every place with more than this chance."""
    law = {
        column: [z3.Real(f"p_{column[0]}_{column[1]}_{out}") for out in range(places + 1)]  # the last: none of them
        for column in columns(places, k)
    }
    e = z3.RealVal(str(ratio))
    facts = [z3.And(z3.Sum(row) == 1, *(p >= 0 for p in row)) for row in law.values()]
    for one, other in neighbours(places, k):
        facts += [z3.And(p <= e * q, q <= e * p) for p, q in zip(law[one], law[other], strict=True)]
    near = [law[place, k][place] > z3.RealVal(str(chance)) for place in range(places)]
    prove(z3.Not(z3.And(*facts, *near)), f"{places} places, {k} records, e^epsilon = {ratio}")


def spread_law(places: int, k: int, ratio: Fraction) -> dict[Column, list[Fraction]]:
    """Every place alike without the records; each record more makes its place likelier by the whole ratio."""
    out = {}
    for place, t in columns(places, k):
        own = ratio**t / places
        rest = (1 - own) / (places - 1)
        out[place, t] = [own if other == place else rest for other in range(places)]
    return out


@check(
    "ours:packing",
    rejects=[
        lambda places, k, ratio: ratio ** (2 * k) / places,  # by way of another of the columns: twice as far
        lambda places, k, ratio: ratio ** (k - 1) / places,
        lambda places, k, ratio: ratio**k / (places + 1),
        lambda places, k, ratio: ratio**k / (places - 1),
        lambda places, k, ratio: F(99, 100) * ratio**k / places,
        lambda places, k, ratio: F(101, 100) * ratio**k / places,
    ],
)
def check_no_law_does_better(subject: Chance = most_chance) -> str:
    """Over all private laws on these columns, by the solver; and a law in fractions that reaches the chance, as long as
    that is at most e^epsilon / (1 + e^epsilon)."""
    cases = attained = 0
    e, power, start, p, q = z3.Reals("e power start p q")  # one record more: near <= e^(j eps) p, p <= e^eps q
    follows(power > 0, start <= power * p, p <= e * q, goal=start <= power * e * q)
    known = (e > 1, p > 0, e * p * (1 + e) <= e)  # p, then e^eps p: what is left for the other places is private too
    follows(*known, goal=z3.And(e * p < 1, 1 - p <= e * (1 - e * p), 1 - e * p <= e * (1 - p)))
    for places, k, ratio in itertools.product((2, 3, 5), (1, 2, 3), RATIOS):
        chance = subject(places, k, ratio)
        if chance < 1:
            refuse_larger(places, k, ratio, chance)
            cases += 1
    for places, k, ratio in itertools.product((3, 10, 30), range(1, 6), RATIOS):
        if ratio**k / places <= ratio / (1 + ratio):
            law = spread_law(places, k, ratio)
            assert all(sum(row) == 1 and min(row) >= 0 for row in law.values())
            pairs = (pair for one, other in neighbours(places, k) for pair in zip(law[one], law[other], strict=True))
            assert all(p <= ratio * q and q <= ratio * p for p, q in pairs), "the law is not private"
            assert min(law[place, k][place] for place in range(places)) == subject(places, k, ratio)
            attained += 1
    assert cases >= 5 and attained >= 20
    return (
        f"no private law tells N places with more than e^(k eps) / N: {cases} by the solver, attained {attained} times"
    )


def made(places: int, k: int, beside: int, place: int | None) -> list[int]:
    """k records within a stretch from 20 place to 20 place + k + 1, none for None; as many on either side of all."""
    own = [] if place is None else [20 * place + j for j in range(1, k + 1)]
    return [*range(-beside, 0), *own, *(20 * places + j for j in range(beside))]


@check(
    "ours:packing",
    rejects=[
        lambda k: F(k),
        lambda k: F(k + 1, 2),
        lambda k: F(k - 1, 2),
        lambda k: F(99, 200) * k,
        lambda k: F(101, 200) * k,
    ],
)
def check_near_is_within(subject: Callable[[int], Fraction] = lambda k: F(k, 2)) -> str:
    """A value whose gap is below k / 2 lies in the stretch, for all n and k by the solver, and counted out; no smaller
    gap is the least beyond it. How many records columns differ in."""
    sizes = z3.Ints("c h k")
    c, h, k_ = sizes
    beyond = z3.And(h >= 0, k_ >= 1, z3.Or(z3.And(c >= 0, c <= h), z3.And(c >= h + k_, c <= 2 * h + k_)))
    prove(z3.Implies(beyond, absolute(2 * c - 2 * h - k_) >= k_), "beyond the stretch")
    cases = 0
    for places, k, beside in itertools.product((1, 2, 4), range(1, 6), range(4)):
        middle, without = F(k + 2 * beside, 2), Counter(made(places, k, beside, None))
        for place in range(places):
            x, outside = made(places, k, beside, place), set()
            for v in (F(i, 2) for i in range(-2 * beside - 4, 40 * places + 2 * beside + 4)):
                gap = abs(sum(record < v for record in x) - middle)
                if 20 * place < v < 20 * place + k + 1:
                    continue
                assert gap >= subject(k), (places, k, beside, place, v)
                outside.add(gap)
                cases += 1
            assert min(outside) == subject(k)
            own = Counter(x)
            assert (own - without).total() == k and not without - own
            replaced = without + Counter(-99 - j for j in range(k))  # as many records as column i, none in a stretch
            assert (own - replaced).total() == (replaced - own).total() == k, "k records replaced"
            others = (Counter(made(places, k, beside, other)) for other in range(places) if other != place)
            assert all((own - other).total() + (other - own).total() == 2 * k for other in others)
    return f"a median that is nearer than k / 2 lies among its k records: all n and k by the solver, {cases} values"
