"""On a grid: the law and the sampler against the law in 60 digits, and by how much they differ in total."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

import pq
from pq.core.request import Request
from pq.private.columns.frames import records_of
from pq.private.mechanisms.tree import Tree

STEP, LAST = Fraction(1, 10), 150  # outputs 0, 0.1, ..., 15
STATED = 1e-13  # total variation


def exact_cells(units: list[int], q: Fraction, epsilon: Fraction, calibration: str) -> list[tuple[int, int, Any]]:
    """Cells of outputs in order, as (first unit, last unit, probability): runs without records, and values with some.

    The prior is uniform on (0, 15], of which the first and the last output have half a cell each.
    """
    n = len(units)
    target = q * n if calibration == "sharp" else Fraction(int(q * n))
    bound = max(q, 1 - q) if calibration == "sharp" else Fraction(1)
    held = sorted(set(units))
    cells, first = [], 0
    for value in [*held, LAST + 1]:
        if first <= min(value - 1, LAST):
            cells.append((first, min(value - 1, LAST)))
        if value <= LAST:
            cells.append((value, value))
        first = value + 1
    weighed = []
    for low, high in cells:
        below, up_to = sum(u < low for u in units), sum(u <= low for u in units)
        distance = max(below - target, target - up_to, Fraction(0))
        mass = min(Fraction(2 * high + 1, 2), Fraction(LAST)) - max(Fraction(2 * low - 1, 2), Fraction(0))
        exponent = -epsilon / (2 * bound) * distance
        log = mpmath.mpf(exponent.numerator) / exponent.denominator
        weighed.append((low, high, mpmath.exp(log) * mass.numerator / mass.denominator))
    total = mpmath.fsum(weight for *_, weight in weighed)
    return [(low, high, weight / total) for low, high, weight in weighed]


@pytest.mark.parametrize(
    ("calibration", "q", "epsilon"),
    [
        ("sharp", Fraction(1, 2), Fraction(1, 200)),
        ("sharp", Fraction(29, 100), Fraction(1, 10)),
        ("paper", Fraction(1, 2), Fraction(1, 10)),
        ("paper", Fraction(29, 100), Fraction(1, 200)),
    ],
)
def test_law_and_sampler_on_a_grid(calibration: str, q: Fraction, epsilon: Fraction) -> None:
    """A thousand records, many of them tied: total variation of the law below 1e-13; and the sampler passes from one
    cell to the next within 1e-12 of the exact cumulated probability."""
    units = np.random.default_rng(0).choice(
        np.arange(5, 146), size=1000, p=np.random.default_rng(1).dirichlet([0.3] * 141)
    )
    x = units * 0.1
    with mpmath.workdps(60):
        cells = exact_cells(sorted(units.tolist()), q, epsilon, calibration)
        request = tree([q], epsilon=epsilon, priors=pq.Uniform(0, 15), calibration=calibration, grid=STEP)
        keywords = {"epsilon": epsilon, "priors": pq.Uniform(0, 15), "calibration": calibration, "grid": STEP}
        variation = mpmath.mpf(0)
        for low, high, probability in cells:
            for unit in range(low, high + 1):
                width = Fraction(1) if 0 < unit < LAST else Fraction(1, 2)
                whole = min(Fraction(2 * high + 1, 2), Fraction(LAST)) - max(Fraction(2 * low - 1, 2), Fraction(0))
                part = width / whole
                law = mpmath.exp(pq.log_density(x, [float(unit * STEP)], [q], **keywords))
                variation += abs(law - probability * part.numerator / part.denominator) / 2
        assert variation < STATED
        reached, borders = mpmath.mpf(0), []
        for (_, high, probability), (low, _, _) in itertools.pairwise(cells):
            reached += probability
            if 1e-9 < reached < 1 - 1e-9:
                borders += [(float(reached) - 1e-12, None, high), (float(reached) + 1e-12, low, None)]
    assert len(borders) >= 4
    uniforms = np.array([[[u, 0.5]] for u, *_ in borders])
    outputs = np.rint(draw(request, x, uniforms)[:, 0] / 0.1)
    for output, (_, low, high) in zip(outputs, borders, strict=True):
        assert (low is None or output >= low) and (high is None or output <= high)


@pytest.mark.parametrize("path", ["draw", "walk_all"])
@pytest.mark.parametrize("origin", [0, 2**40, 2**47, 1_699_999_999_999_998, 2**51 - 10**7])
def test_multiples_far_from_zero_have_their_exact_shares(origin: int, path: str) -> None:
    """Microseconds since 1970, say: floats near them are quarters apart, and no rounding may move a point to another
    multiple, least of all to one with records or beyond them."""
    prior = pq.Uniform(origin - 1000, origin + 1000)
    asked = tree([Fraction(1, 2)], epsilon=1, priors=prior, grid=1)
    x = [origin] * 50 + [origin + 7] * 50  # the run between them holds 6 multiples and the median
    places = (np.arange(600) + 0.5) / 600
    uniforms = np.array([[[0.5, place]] for place in places])
    expected = origin + 1 + np.floor(places * 6)
    drawn = {"draw": draw, "walk_all": walk_all}[path]
    assert np.array_equal(drawn(asked, x, uniforms)[:, 0], expected)
    held = drawn(asked, [origin] * 100, uniforms)[:, 0]  # a value that all hold comes out as it is
    assert (held == origin).all()


def tree(quantiles: Any, **options: Any) -> Tree:
    return Tree(Request.of(quantiles, **options))


def draw(asked: Tree, x: Any, uniforms: Any) -> Any:
    """By machine code, and by the formulas where it leaves a draw to them: floats far from zero are coarse."""
    outputs, column = asked.compiled(asked.column(*records_of(x)), uniforms), asked.column(*records_of(x))
    for lane in np.flatnonzero(np.isnan(outputs).any(axis=1)):
        outputs[lane] = asked.walked(column, uniforms[lane].tolist(), outputs[lane].tolist())
    return outputs


def walk_all(asked: Tree, x: Any, uniforms: Any) -> Any:
    return np.array([asked.walked(asked.column(*records_of(x)), one.tolist()) for one in uniforms])
