"""Exact law of Algorithm 2 (alg:quantiles) in rational arithmetic.

Priors are finite sets of atoms that stand for a density concentrated inside one cell between two records, so the tree
of outcomes is finite. A mechanism that runs with budget `epsilon_i` is given by the rational `z = exp(-epsilon_i /
2)`: a cell at distance g from the target has weight z**g times its mass, and every probability below is a `Fraction`.
Data on an integer grid need no storage, so a chain of bad luck down the tree is computed for millions of records.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx, fmpq

ctx.prec = 256

Position = Fraction | float  # floats only for the two infinities
Prior = Mapping[Fraction, Fraction]
Law = dict[tuple[Position, ...], Fraction]
INFINITY = math.inf


def ball(value: Fraction | int) -> arb:
    """The rational as a ball of 256 bits."""
    value = Fraction(value)
    return arb(fmpq(value.numerator, value.denominator))


def log_ball(value: Fraction | int) -> arb:
    """A ball that contains the natural logarithm of a positive rational."""
    return ball(value).log()


@dataclass(frozen=True)
class Grid:
    """The records 1, 2, ..., n, never stored."""

    size: int

    def below(self, o: Position) -> int:
        """Number of records less than o."""
        if o == INFINITY:
            return self.size
        return 0 if o == -INFINITY else min(max(math.ceil(o) - 1, 0), self.size)

    def upto(self, o: Position) -> int:
        """Number of records at most o."""
        if o == INFINITY:
            return self.size
        return 0 if o == -INFINITY else min(max(math.floor(o), 0), self.size)


@dataclass(frozen=True)
class Points:
    """Explicit sorted records."""

    values: tuple[Fraction, ...]

    @property
    def size(self) -> int:
        return len(self.values)

    def below(self, o: Position) -> int:
        return bisect.bisect_left(self.values, o)

    def upto(self, o: Position) -> int:
        return bisect.bisect_right(self.values, o)


Data = Grid | Points


@dataclass(frozen=True)
class Node:
    """One call of `recurse`: the indices that it estimates, its depth from 1, and its children from left to right."""

    indices: tuple[int, ...]
    depth: int
    children: tuple[Node | None, ...]


def build(indices: Sequence[int], arity: int, depth: int = 1) -> Node | None:
    """The tree of Algorithm 2 on the given indices, exactly as its index arithmetic says."""
    size = len(indices)
    if size == 0:
        return None
    if size < arity:
        return Node(tuple(indices), depth, ())
    cuts = [-(-j * size // arity) - 1 for j in range(1, arity)]
    starts = [0] + [cut + 1 for cut in cuts]
    pieces = [indices[start:stop] for start, stop in zip(starts, [*cuts, size], strict=True)]
    return Node(tuple(indices[cut] for cut in cuts), depth, tuple(build(piece, arity, depth + 1) for piece in pieces))


def height(node: Node | None) -> int:
    """Number of levels below and including the node."""
    return 0 if node is None else 1 + max((height(child) for child in node.children), default=0)


def rank_target(quantile: Fraction, size: int, rounded: bool = True) -> Fraction:
    """floor(q n), or q n itself."""
    return Fraction(math.floor(quantile * size)) if rounded else quantile * size


def gap(data: Data, quantile: Fraction, o: Position, rounded: bool = True) -> Fraction:
    """eq:gap in exact arithmetic."""
    return abs(data.below(o) - rank_target(quantile, data.size, rounded))


def power(z: Fraction, exponent: Fraction) -> Fraction:
    """z**exponent for an exponent that is an integer."""
    if exponent.denominator != 1:
        raise ValueError("exponent must be an integer for the weight to be rational")
    return z ** int(exponent)


def psi(data: Data, quantile: Fraction, prior: Prior, z: Fraction, rounded: bool = True) -> Fraction:
    """Inner product of the prior and the exponential score; z = 0 gives the mass of the optimal cell."""
    return sum((mass * power(z, gap(data, quantile, o, rounded)) for o, mass in prior.items()), Fraction(0))


def adapt(prior: Prior, low: Position, high: Position, adaptation: str) -> Prior:
    """The prior on [low, high]: renormalised ("conditional"), or its outer mass moved to the edges ("edge")."""
    if adaptation == "conditional":
        kept = {o: mass for o, mass in prior.items() if low <= o <= high}
        total = sum(kept.values())
        if not total:
            raise ZeroDivisionError("the prior has no mass in the interval")
        return {o: mass / total for o, mass in kept.items()}
    moved: dict[Fraction, Fraction] = defaultdict(Fraction)
    for o, mass in prior.items():
        moved[min(max(o, low), high)] += mass
    return moved


@dataclass(frozen=True)
class Restricted:
    """The records strictly between two released values."""

    data: Data
    low: Position
    high: Position

    @property
    def size(self) -> int:
        return max(self.data.below(self.high) - self.data.upto(self.low), 0)

    def below(self, o: Position) -> int:
        """Number of restricted records less than o."""
        return min(max(self.data.below(o) - self.data.upto(self.low), 0), self.size)


def mechanism(
    view: Restricted, relative: Fraction, prior: Prior, z: Fraction, rounded: bool = True, unit: int = 1
) -> dict[Position, Fraction]:
    """Law of one exponential mechanism on the restricted records; one rank is worth z**unit."""
    if len(prior) == 1:
        return {o: Fraction(1) for o in prior}
    target = rank_target(relative, view.size, rounded)
    gaps = {o: unit * abs(view.below(o) - target) for o in prior}
    least = min(gaps.values())
    weights = {o: mass * power(z, gaps[o] - least) for o, mass in prior.items()}
    total = sum(weights.values())
    return {o: weight / total for o, weight in weights.items()}


@dataclass(frozen=True)
class Algorithm:
    """Algorithm 2 with everything but the data: quantiles (ascending), priors, z of each mechanism as it is run."""

    quantiles: tuple[Fraction, ...]
    priors: tuple[Prior, ...]
    z: tuple[Fraction, ...]
    arity: int = 2
    adaptation: str = "edge"
    rounded: bool = True
    ordered: bool = True
    unit: int = 1
    whole_data: bool = False  # the utility of a published code: ranks over all records at every node

    def law(self, data: Data) -> Law:
        """Probability of every vector of outputs."""
        root = build(range(len(self.quantiles)), self.arity)
        result: Law = defaultdict(Fraction)
        for outputs, probability in self._outcomes(data, root, (Fraction(0), Fraction(1)), (-INFINITY, INFINITY)):
            result[tuple(outputs[i] for i in range(len(self.quantiles)))] += probability
        return dict(result)

    def _mechanism(self, data: Data, index: int, span: tuple[Fraction, Fraction], edges: tuple[Position, Position]):
        prior = adapt(self.priors[index], *edges, self.adaptation)
        view, relative = Restricted(data, *edges), (self.quantiles[index] - span[0]) / (span[1] - span[0])
        if self.whole_data:
            view, relative = Restricted(data, -INFINITY, INFINITY), self.quantiles[index]
        return mechanism(view, relative, prior, self.z[index], self.rounded, self.unit)

    def _outcomes(
        self, data: Data, node: Node | None, span: tuple[Fraction, Fraction], edges: tuple[Position, Position]
    ) -> Iterator[tuple[dict[int, Position], Fraction]]:
        if node is None:
            yield {}, Fraction(1)
            return
        laws = [self._mechanism(data, i, span, edges).items() for i in node.indices]
        for choice in itertools.product(*laws):
            probability = math.prod((p for _, p in choice), start=Fraction(1))
            if not probability:
                continue
            values = [o for o, _ in choice]
            values = sorted(values) if self.ordered else values
            here = dict(zip(node.indices, values, strict=True))
            bounds = [edges[0], *values, edges[1]]
            cuts = [span[0], *(self.quantiles[i] for i in node.indices), span[1]]
            below = [
                list(self._outcomes(data, child, (cuts[j], cuts[j + 1]), (bounds[j], bounds[j + 1])))
                for j, child in enumerate(node.children)
            ]
            for parts in itertools.product(*below):
                outputs = dict(here)
                for part, _ in parts:
                    outputs |= part
                yield outputs, math.prod((p for _, p in parts), start=probability)

    def gaps(self, data: Data, outputs: tuple[Position, ...]) -> list[Fraction]:
        """Rounded gap of every output on the whole data."""
        return [gap(data, q, o) for q, o in zip(self.quantiles, outputs, strict=True)]

    def inverse_psi_sum(self, data: Data) -> Fraction:
        """m over the harmonic mean of the inner products with the priors, on the whole data."""
        return sum(
            (1 / psi(data, q, mu, z) for q, mu, z in zip(self.quantiles, self.priors, self.z, strict=True)), Fraction(0)
        )


def probability(law: Law, event: Callable[[tuple[Position, ...]], bool]) -> Fraction:
    """Exact probability of an event."""
    return sum((p for outputs, p in law.items() if event(outputs)), Fraction(0))


def max_loss(law: Law, other: Law) -> Fraction:
    """exp of the largest privacy loss of the first law against the second, over outputs that both can give."""
    return max(p / other[outputs] for outputs, p in law.items() if other.get(outputs))
