"""lem:empirical and lem:prior: one node between edges that came out before it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cache

from pq.bounds import lem_error
from proofs_checks.engine.registry import check
from proofs_checks.section_3_3.rounding import witness
from proofs_checks.section_3_3.rounding_edges import end_witness
from proofs_checks.tools.exact import (
    INFINITY,
    Algorithm,
    Grid,
    Points,
    Position,
    Prior,
    Restricted,
    adapt,
    gap,
    mechanism,
    psi,
)
from proofs_checks.tools.trees import node_cases

F = Fraction
HALF = Fraction(1, 2)


def edge_pairs(prior: Prior, other: Prior) -> Iterator[tuple[Position, Position]]:
    """Edges that an ancestor may have given."""
    lows: list[Position] = [-INFINITY, *prior]
    highs: list[Position] = [INFINITY, *other]
    yield from ((low, high) for low, high in itertools.product(lows, highs) if low < high)


def _one_node(
    data: Grid,
    quantiles: tuple[Fraction, ...],
    indices: tuple[int, int, int],
    prior: Prior,
    edges: tuple[Position, Position],
    z: Fraction,
    slack: Callable[..., Fraction],
) -> int:
    levels = (Fraction(0), *quantiles, Fraction(1))
    lo, q, hi = (levels[i + 1] for i in indices)
    relative = (q - lo) / (hi - lo)
    end = "left" if edges[0] == -INFINITY else "right" if edges[1] == INFINITY else "none"
    error = (1 - relative) * gap(data, lo, edges[0]) + relative * gap(data, hi, edges[1])
    if edges != (-INFINITY, INFINITY):
        error += slack(relative, edge=end)  # the root's target is the data's own
    view, d = Restricted(data, *edges), relative.denominator
    cases = 0
    for adaptation in ("conditional", "edge"):
        if adaptation == "conditional" and not any(edges[0] <= o <= edges[1] for o in prior):
            continue
        restricted = adapt(prior, *edges, adaptation)
        law = mechanism(view, relative, restricted, z)
        target = math.floor(relative * view.size)
        inner = sum(mass * z ** abs(view.below(o) - target) for o, mass in restricted.items())
        for gamma in range(1, data.size + 1):
            tail = sum(p for o, p in law.items() if gap(data, q, o) >= gamma)
            assert (tail * inner) ** d <= z ** int(d * (gamma - error)), ("lem:empirical", data, q, edges, gamma)
            if adaptation == "edge":
                outer = psi(data, q, prior, z)
                assert (tail * outer) ** d <= z ** int(d * (gamma - 2 * error)), ("lem:prior", data, q, edges, gamma)
            cases += 1
    return cases


@check(
    "eq:empirical-probability",
    "lem:empirical",
    "lem:prior",
    code=lem_error,
    rejects=[
        lambda relative, edge: Fraction(0),
        lambda relative, edge: lem_error(relative) - 1,
        lambda relative, edge: lem_error(relative, edge=edge) if edge == "none" else F(0),
    ],
)
def check_lem_empirical(subject: Callable[..., Fraction] = lem_error) -> str:
    """lem:empirical and lem:prior for every node, at the ends of the data too, every pair of edges, every gamma."""
    cases = 0
    for data, quantiles, priors, z in node_cases():
        for lo, i, hi in itertools.combinations(range(-1, len(quantiles) + 1), 3):
            lows = {} if lo < 0 else priors[lo]
            highs = {} if hi == len(quantiles) else priors[hi]
            for low, high in edge_pairs(lows, highs):
                if (low == -INFINITY) == (lo < 0) and (high == INFINITY) == (hi == len(quantiles)):
                    cases += _one_node(data, quantiles, (lo, i, hi), priors[i], (low, high), z, subject)
    return (
        f"lem:empirical and lem:prior hold with the slack of lem:error, given the edges: {cases} exact cases, "
        "both adaptations"
    )


@check("lem:empirical", code=lem_error, rejects=[lem_error, lambda relative: F(101, 100), lambda relative: F(3)])
def check_floors_of_a_node(slack: Callable[[Fraction], Fraction] = lambda relative: F(0)) -> str:
    """Counterexample to lem:empirical by floors alone, in a run of the algorithm: m = 7, K = 2, n = 3, and the quantile
    3/8 aims one rank too low between exact estimates of 1/4 and 1/2. With a whole rank added the bound holds."""
    data, z, gamma = Grid(3), F(1, 1000), 1
    quantiles = tuple(F(i, 8) for i in range(1, 8))
    cells = (0, 0, 0, 1, 1, 2, 2)  # one atom each: ideal, but for 3/8, whose ideal cell is 1
    priors: tuple[Prior, ...] = tuple({k + q: F(1)} for k, q in zip(cells, quantiles, strict=True))
    low, high, relative = F(1, 4), 1 + HALF, (quantiles[2] - quantiles[1]) / (quantiles[3] - quantiles[1])
    for adaptation in ("conditional", "edge"):
        algorithm = Algorithm(quantiles, priors, (z,) * 7, adaptation=adaptation)
        ((outputs, chance),) = algorithm.law(data).items()
        assert chance == 1 and (outputs[1], outputs[3]) == (low, high)
        assert algorithm.gaps(data, outputs) == [0, 0, 1, 0, 0, 0, 0], "the edges are exact, and 3/8 is not"
        view, restricted = Restricted(data, low, high), adapt(priors[2], low, high, adaptation)
        target = math.floor(relative * view.size)
        inner = sum(mass * z ** abs(view.below(o) - target) for o, mass in restricted.items())
        assert inner == 1, "the restricted prior is perfect"
        d = slack(relative).denominator
        assert (chance * inner) ** d > z ** int(d * (gamma - slack(relative))), "the bound survives"
    assert lem_error(relative) == gamma, "one rank is what lem:error adds here"
    return "lem:empirical as printed, floors: gap 1 w.p. 1 where the bound is 1/1000 (n = 3, 3/8 between 1/4 and 1/2)"


def _to_edges(prior: Prior, low: Position, high: Position, own: Fraction) -> Prior:
    """A share of the mass on either side goes to the edge of that side, and the rest to the other."""
    below = sum((m for o, m in prior.items() if o <= low), F(0))
    above = sum((m for o, m in prior.items() if o >= high), F(0))
    inner = {o: m for o, m in prior.items() if low < o < high}
    return inner | {low: own * below + (1 - own) * above, high: own * above + (1 - own) * below}


@check(
    "text:outside-mass",
    "text:edge-mass",
    rejects=[
        lambda mu, low, high: {o: m for o, m in mu.items() if low <= o <= high},
        lambda mu, low, high: adapt(mu, low, high, "edge") | {high: Fraction(1, 7)},
        lambda mu, low, high: _to_edges(mu, low, high, F(0)),
        lambda mu, low, high: _to_edges(mu, low, high, HALF),
        lambda mu, low, high: _to_edges(mu, low, high, F(99, 100)),
    ],
)
def check_edge_mass(
    subject: Callable[[Prior, Position, Position], Prior] = lambda mu, low, high: adapt(mu, low, high, "edge"),
) -> str:
    """Edge adaptation moves the mass on either side to the edge of that side, and leaves what lies inside alone."""
    for _, _, priors, _ in node_cases():
        for prior, other in itertools.pairwise(priors):
            for low, high in edge_pairs(prior, other):
                moved = subject(other, low, high)
                assert sum(moved.values()) == sum(other.values()), (low, high)
                assert all(moved[o] == mass for o, mass in other.items() if low < o < high)
                assert moved.get(low, 0) == sum(mass for o, mass in other.items() if o <= low), "left edge"
                assert moved.get(high, 0) == sum(mass for o, mass in other.items() if o >= high), "right edge"
    return (
        "edge adaptation moves the mass outside [a^, b^] to its edges: the total stays, the inside is untouched (exact)"
    )


@check("lem:prior", rejects=[lambda depth: 1, lambda depth: depth / 2])
def check_lem_prior_budget(subject: Callable[[int], int] = lambda depth: depth) -> str:
    """Counterexample to lem:prior with epsilon where epsilon_i belongs: the root of a tree of two levels."""
    z = Fraction(1, 100)  # exp(-epsilon_i / 2), and exp(-epsilon / 2) is its square
    data, prior = Grid(1), {HALF: HALF, 1 + HALF: HALF}
    tail = mechanism(Restricted(data, -INFINITY, INFINITY), HALF, prior, z)[1 + HALF]
    assert tail > z ** subject(2) / psi(data, HALF, prior, z), "the bound survives"
    assert (tail, z**2 / psi(data, HALF, prior, z)) == (F(1, 101), F(2, 10_100)), "as the row says"
    return (
        "lem:prior (and the proof of lem:empirical) print epsilon for epsilon_i: n = 1, two levels, Pr{Gap >= "
        "1} = 1/101 > 2/10,100"
    )


@check("text:outside-mass", rejects=[("edge", True), ("as it is", True), ("conditional", False)])
def check_outside_mass(case: tuple[str, bool] = ("conditional", True)) -> str:
    """Restricted to (o_j, o_k): conditional priors forget all mass outside, edge priors keep its total on each side.
    Records outside have no effect on either, unless the ranks of a node are counted over them too."""
    subject, own = case
    data, low, high, z = Grid(6), F(9, 4), F(19, 4), F(1, 3)
    inside = {F(5, 2): F(1, 10), F(7, 2): F(1, 10), F(9, 2): F(1, 10)}
    laws: dict[str, list[dict[Position, Fraction]]] = {}
    little, much = F(1, 10), F(6, 10)
    outer: tuple[Prior, ...] = (
        {HALF: much, F(11, 2): little},
        {3 * HALF: much, F(13, 2): little},
        {HALF: little, F(13, 2): much},
    )
    for adaptation in ("conditional", "edge"):
        priors = [adapt({**inside, **part}, low, high, adaptation) for part in outer]
        laws[adaptation] = [mechanism(Restricted(data, low, high), HALF, prior, z) for prior in priors]
    laws["as it is"] = [mechanism(Restricted(data, low, high), HALF, {**inside, **part}, z) for part in outer]
    chosen = laws[subject]
    assert chosen[0] == chosen[1] == chosen[2], "the mass outside has an effect"
    assert laws["edge"][0] == laws["edge"][1] != laws["edge"][2]
    atom = adapt({**inside, **outer[0], low: F(1, 10)}, low, high, "conditional")
    assert mechanism(Restricted(data, low, high), HALF, atom, z) != laws["conditional"][0], "an atom on an edge is kept"
    for adaptation, (i, part) in itertools.product(("conditional", "edge"), enumerate(outer)):
        for others in ((), (1,), (5, 6, 7), (1, 2, 2, 9)):
            whole = Points(tuple(F(x) for x in sorted((3, 4, *others))))
            view = Restricted(whole, *((low, high) if own else (-INFINITY, INFINITY)))
            law = mechanism(view, HALF, adapt({**inside, **part}, low, high, adaptation), z)
            assert law == laws[adaptation][i], "records outside have an effect"
    return "conditional: no effect of mass outside the edges; edge: only of its total on either side (exact laws)"


@check(
    "step:prior-inner",
    code=lem_error,
    rejects=[
        lambda relative, edge: F(0),
        lambda relative, edge: F(1, 2),
        *(lambda relative, edge, by=by: F(by, 100) * lem_error(relative, edge=edge) for by in (99, 101)),
        lambda relative, edge: F(1),
        lambda relative, edge: lem_error(relative, edge=edge) - F(1, relative.denominator),
        lambda relative, edge: lem_error(relative),
    ],
)
def check_restricted_inner(
    subject: Callable[..., Fraction] = lambda relative, edge: lem_error(relative, edge=edge),
) -> str:
    """Psi^ >= exp(-eps_i (gamma^ + c)/2) Psi under edge adaptation needs the slack of lem:error: all small edges, at
    the ends of the data too, for each relative quantile p/d with d up to 5, and no less of it. Both sides are linear in
    the prior, so that cells alone decide, and the powers of exp(-eps_i/2) are compared as exponents."""
    for d, edge in itertools.product(range(2, 6), ENDS):
        for relative in (F(p, d) for p in range(1, d) if math.gcd(p, d) == 1):
            assert _worst_excess(relative, edge) <= subject(relative, edge), (relative, edge)
            n, lo, hi, low, high = _attained_edges(relative, edge)
            rank = math.floor((lo + relative * (hi - lo)) * n)  # all of the prior on the optimal cell of the data
            assert _excess(Grid(n), relative, (lo, hi), (low, high), rank) == subject(relative, edge), "looser"
    case = F(1, 2), (F(1, 4), HALF), (HALF, 1 + HALF)
    tied = Points(tuple(F(max(k, 6)) for k in range(1, 13)))  # a lower edge that equals six records, and has gap 0
    excess = _excess(tied, F(1, 2), (F(0), F(1)), (F(6), INFINITY), 6)
    assert gap(tied, F(0), F(6)) == 0 and excess == F(1, 2) * 6 > subject(F(1, 2), "none"), "no record, says the row"
    assert _excess(Grid(3), *case, 1) == 1 and gap(Grid(3), F(1, 4), HALF) == gap(Grid(3), HALF, 1 + HALF) == 0
    return (
        "Psi^ of a node is at least exp(-eps_i (gamma^ + c)/2) Psi under edge adaptation, c least for each p/d, d < 6"
    )


ENDS = ("none", "left", "right")


def _small_edges(d: int, edge: str) -> Iterator[tuple[int, Fraction, Fraction, Position, Position]]:
    """Sizes of data, quantiles of a node's edges, and the edges wherever they may be."""
    inner = (F(1, 4), HALF) if d == 2 else (F(1, d + 1), F(d, d + 1))
    lo, hi = F(0) if edge == "left" else inner[0], F(1) if edge == "right" else inner[1]
    for n in (3, d + 1, 2 * d):
        lows: list[Position] = [-INFINITY] if edge == "left" else [rank + F(1, 4) for rank in range(n + 1)]
        highs: list[Position] = [INFINITY] if edge == "right" else [rank + F(3, 4) for rank in range(n + 1)]
        yield from ((n, lo, hi, low, high) for low, high in itertools.product(lows, highs) if low < high)


@cache
def _worst_excess(relative: Fraction, edge: str) -> Fraction:
    """The largest of all small edges and cells."""
    return max(
        _excess(Grid(n), relative, (lo, hi), (low, high), rank)
        for n, lo, hi, low, high in _small_edges(relative.denominator, edge)
        for rank in range(n + 1)
    )


def _attained_edges(relative: Fraction, edge: str) -> tuple[int, Fraction, Fraction, Position, Position]:
    """The same where the slack is attained, with room for the optimal cell of the data in the node."""
    d = relative.denominator
    if edge == "none":
        found = witness(relative, lem_error(relative))
        assert found is not None, f"no data attain the slack at {relative}"
        n, lo, hi, below, above = found
        return n, lo, hi + F(4 * d, n), below + HALF, above + 4 * d + HALF
    end = end_witness(relative, edge)
    assert end is not None, f"no data attain the slack at {relative}"
    n, _, inner, count = end
    room = d if edge == "left" else -d
    inner, at = inner + F(room, n), count + room + HALF
    return (n, F(0), inner, -INFINITY, at) if edge == "left" else (n, inner, F(1), at, INFINITY)


def _excess(
    data: Grid | Points,
    relative: Fraction,
    levels: tuple[Fraction, Fraction],
    edges: tuple[Position, Position],
    rank: int,
) -> Fraction:
    """How much farther from its target a node sees the mass of a cell than the data, beyond the edges' error."""
    (moved,) = (o for o, mass in adapt({rank + HALF: F(1)}, *edges, "edge").items() if mass)
    view, q = Restricted(data, *edges), levels[0] + relative * (levels[1] - levels[0])
    error = (1 - relative) * gap(data, levels[0], edges[0]) + relative * gap(data, levels[1], edges[1])
    return abs(view.below(moved) - math.floor(relative * view.size)) - gap(data, q, rank + HALF) - error


def edge_error(n: int, rank: int, edge: float) -> int:
    """Gap of an infinite edge."""
    return abs((n if edge > 0 else 0) - rank)


@check("step:root", rejects=[lambda n, rank, edge: abs((n if edge > 0 else 0) - rank) + 1, lambda n, rank, edge: n])
def check_root_error(subject: Callable[[int, int, float], int] = edge_error) -> str:
    """The edges of the root, -infinity for the quantile 0 and infinity for 1, have no error, so gamma^ = 0 there."""
    for n in range(20):
        for q, edge in itertools.product((F(0), F(1, 3), HALF, F(1)), (-INFINITY, INFINITY)):
            assert subject(n, math.floor(q * n), edge) == gap(Grid(n), q, edge), (n, q, edge)
        assert gap(Grid(n), F(0), -INFINITY) == gap(Grid(n), F(1), INFINITY) == 0
        assert gap(Grid(n), F(0), F(0)) == gap(Grid(n), F(1), F(n + 1)) == 0, "ends that hold all records"
    assert gap(Points((F(1), F(1))), F(1), math.inf) == 0
    return "the root's edges have gap 0 for the quantiles 0 and 1, so its offset is 0"


@check("alg:quantiles", rejects=[lambda own, listed: listed[0], lambda own, listed: sum(listed) // 2])
def check_recursion_edges(subject: Callable[[Sequence[int], Sequence[int]], int] = lambda own, listed: own[0]) -> str:
    """The edges of Algorithm 2's recursion are the node's own sorted outputs o_{i_j}; the printed o_j are entries of
    the list that is being put together, in which those of earlier branches stand first. A node without records."""
    for n in (8, 80, 800):  # K = 2, exact estimates of 1/4, 1/2, 3/4 of the records 1..n: an output of rank r is r
        quarter, half, right = (math.floor(F(i, 4) * n) for i in (1, 2, 3))
        relative = (F(3, 4) - F(1, 2)) / (1 - F(1, 2))
        edge = subject([half], [quarter, half])
        rank = edge + math.floor(relative * (n - edge))
        assert rank == right, f"n = {n}: rank {rank} for {right}"
        assert quarter + math.floor(relative * (n - quarter)) == 5 * n // 8, "the rank that the printed edge leads to"
    low, high, prior = F(5, 4), F(7, 4), {HALF: F(1, 2), 1 + HALF: F(1, 3), 2 + HALF: F(1, 6)}
    empty = Restricted(Grid(3), low, high)  # a node without records
    for adaptation in ("edge", "conditional"):
        restricted = adapt(prior, low, high, adaptation)
        assert mechanism(empty, F(1, 3), restricted, F(1, 9)) == restricted, "its law is the restricted prior"
        assert empty.size == 0 and {empty.below(o) for o in restricted} == {0}, "every gap is 0"
        assert adaptation == "conditional" or {low, high} < set(restricted), "edges are possible outputs"
    equal = Algorithm((HALF,) * 7, ({HALF: F(1)},) * 7, (HALF,) * 7)
    with suppress(ZeroDivisionError):  # a node between two equal quantiles has no relative quantile
        raise AssertionError(equal.law(Grid(1)))
    return "Algorithm 2: with o_1 of the list for the node's own output, 3/4 comes out at rank 5n/8 without any noise"
