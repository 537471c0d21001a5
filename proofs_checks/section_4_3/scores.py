"""eq:l2sensitivity from the data on: scores of cells, and the entries of the gradient, of neighbouring data sets."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, pairwise, product
from typing import Any

import numpy as np
import z3

from pq.losses import log_scores
from proofs_checks.engine.registry import check
from proofs_checks.section_4_3.sensitivity import gap_at
from proofs_checks.tools.solver import follows

F = Fraction
Data = tuple[int, ...]
WIDTH, PLACES = 6, (-1, 1, 3, 4, 6)  # of the interval; of records: outside it, inside cells, at their edges
SHARES = (F(0), F(1, 3), F(1, 2), F(4, 5), F(1))
FEW = F(1, 10**6)
WEIGHTS = ((FEW, 1 - FEW), (F(1, 2), F(1, 6), F(1, 3)))


def cell_scores(data: Data, share: F, cells: int, z: F) -> list[F]:
    """s_j: the mean of exp(-eps gap/2) over each cell of (0, WIDTH), with z = exp(-eps/2)."""
    scores = []
    for low, high in pairwise(F(WIDTH * j, cells) for j in range(cells + 1)):
        places = sorted({low, high, *(F(x) for x in data if low < x < high)})
        parts = (z ** gap_at(data, share, (a + b) / 2) * (b - a) for a, b in pairwise(places))
        scores.append(sum(parts, F(0)) / (high - low))
    return scores


@cache
def entries(data: Data, share: F, weights: tuple[F, ...], z: F) -> tuple[list[F], list[F]]:
    """The scores and, as of the gradient of -log <s, W>, each over <s, W>."""
    scores = cell_scores(data, share, len(weights), z)
    inner = sum(s * w for s, w in zip(scores, weights, strict=True))
    return scores, [s / inner for s in scores]


def neighbours(data: Data) -> Iterator[Data]:
    """With a record added, removed or replaced."""
    for i, x in enumerate(data):
        yield data[:i] + data[i + 1 :]
        yield from (tuple(sorted((*data[:i], y, *data[i + 1 :]))) for y in PLACES if y != x)
    yield from (tuple(sorted((*data, y))) for y in PLACES)


@cache
def extremes(z: F) -> tuple[list[F], list[F], int]:
    """The least and the largest s~_j/s_j, those of kappa_j, and how many pairs of data sets of up to three records,
    equal ones among them, these are of."""
    pairs = [(x, y) for n in range(4) for x in combinations_with_replacement(PLACES, n) for y in neighbours(x)]
    found: tuple[set[F], set[F]] = set(), set()
    for (data, other), share, weights in product(pairs, SHARES, WEIGHTS):
        sides = entries(data, share, weights, z), entries(other, share, weights, z)
        for ratios, was, now in zip(found, *sides, strict=True):
            ratios.update(b / a for a, b in zip(was, now, strict=True))
    scores, kappas = ([min(ratios), max(ratios)] for ratios in found)
    return scores, kappas, len(pairs)


PARTS = (F(1, 2), F(1))  # of eps: what the scores are within, and kappa


@check(
    "eq:l2sensitivity",
    code=(gap_at, log_scores),
    rejects=[
        *((part, F(1)) for part in (F(0), F(1, 4), F(49, 100), F(51, 100), F(1))),
        *((F(1, 2), part) for part in (F(1, 2), F(99, 100), F(101, 100), F(2))),
    ],
)
def check_scores_of_neighbours(subject: tuple[F, F] = PARTS) -> str:
    """s~_j in exp(+-eps/2) s_j and kappa_j in exp(+-eps), in fractions from records on: each is reached on both sides,
    by kappa in the limit of a cell that has hardly any weight.

    subject: the parts of eps.
    """
    for data, share in product(((), (3,), (1, 1, 4), (-1, 3, 3, 6)), SHARES):
        wanted = [math.log(s) for s in cell_scores(data, share, 3, F(1, 3))]
        found = log_scores(data, [0, 2, 4, 6], [int(share * len(data))], [2 * math.log(3)])
        assert np.allclose(found, [wanted], rtol=0, atol=1e-9), (data, share)
    for z in (F(9, 10), F(1, 10**6)):  # exp(-eps/2)
        scores, kappas, pairs = extremes(z)
        for (least, most), part, slack in zip((scores, kappas), subject, (F(1), F(999, 1000)), strict=True):
            limit, root = z ** (2 * part.numerator), part.denominator  # exp(-part eps) is this root of the limit
            assert limit <= least**root and most**root <= 1 / limit, (z, part, "more")
            assert (slack * least) ** root <= limit and 1 / limit <= (most / slack) ** root, (z, part, "less would do")
    power, moved, step = z3.Reals("power moved z")  # in general: z^gap where the gap changes by one at most; s is a sum
    gaps: tuple[Any, ...] = (moved == power, moved == step * power, step * moved == power)
    follows(step > 0, step <= 1, power > 0, z3.Or(*gaps), goal=z3.And(step * power <= moved, step * moved <= power))
    return f"scores within exp(+-eps/2) and kappa within exp(+-eps), both reached: {pairs} pairs in fractions"
