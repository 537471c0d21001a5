"""Trees of mechanisms: paths, nodes with their edges, inner products of restricted priors."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction

from proofs_checks.tools.exact import (
    INFINITY,
    Algorithm,
    Grid,
    Node,
    Position,
    Prior,
    Restricted,
    adapt,
    build,
    power,
    rank_target,
)


def walk(node: Node | None) -> Iterator[Node]:
    """A node and all below it."""
    if node is not None:
        yield node
        for child in node.children:
            yield from walk(child)


def path_spends(m: int, arity: int, spend: Callable[[int, int], Fraction]) -> list[Fraction]:
    """What each root-to-leaf path spends when a node of given depth and number of mechanisms spends `spend`."""

    def down(node: Node) -> list[Fraction]:
        here = spend(node.depth, len(node.indices))
        below = [total for child in node.children if child is not None for total in down(child)]
        return [here + total for total in below] or [here]

    root = build(range(m), arity)
    assert root is not None
    return down(root)


def printed_levels(m: int) -> int:
    """ceil(log2 m), printed in lem:empirical-quantiles."""
    return (m - 1).bit_length()


def node_cases() -> Iterator[tuple[Grid, tuple[Fraction, ...], tuple[Prior, ...], Fraction]]:
    """Small data and priors on every cell for seven or three quantiles: the corner that breaks the floors, then a
    sample.
    """
    seven = tuple(Fraction(i, 8) for i in range(1, 8))
    yield (
        Grid(3),
        seven,
        tuple({k + Fraction(i, 8): Fraction(1, 4) for k in range(4)} for i in range(1, 8)),
        Fraction(1, 1000),
    )
    draw = random.Random(3)
    for _ in range(16):
        n = draw.randrange(1, 12)
        steps = sorted(draw.sample(range(1, 16), 3))
        quantiles = tuple(Fraction(step, 16) for step in steps)
        priors = []
        for i in range(3):
            cells = draw.sample(range(n + 1), min(n + 1, 3))
            masses = [Fraction(draw.choice((1, 1, 20, 400))) for _ in cells]
            total = sum(masses)
            priors.append({c + Fraction(i + 1, 8): mass / total for c, mass in zip(cells, masses, strict=True)})
        yield Grid(n), quantiles, tuple(priors), Fraction(1, draw.choice((2, 10, 1000)))


def inverse_psis(data: Grid, algorithm: Algorithm, outputs: tuple[Position, ...]) -> list[Fraction]:
    """1 / Psi^ of each quantile in the node where it was released, for one outcome of a binary tree."""
    result = []

    def down(node: Node | None, span: tuple[Fraction, Fraction], edges: tuple[Position, Position]) -> None:
        if node is None:
            return
        (i,) = node.indices
        q, o = algorithm.quantiles[i], outputs[i]
        view, relative = Restricted(data, *edges), (q - span[0]) / (span[1] - span[0])
        prior = adapt(algorithm.priors[i], *edges, algorithm.adaptation)
        target = rank_target(relative, view.size, algorithm.rounded)
        gaps = {v: algorithm.unit * abs(view.below(v) - target) for v in prior}
        result.append(1 / sum(mass * power(algorithm.z[i], gaps[v]) for v, mass in prior.items()))
        for child, part, sides in zip(
            node.children, ((span[0], q), (q, span[1])), ((edges[0], o), (o, edges[1])), strict=False
        ):
            down(child, part, sides)

    down(build(range(len(algorithm.quantiles)), 2), (Fraction(0), Fraction(1)), (-INFINITY, INFINITY))
    return result
