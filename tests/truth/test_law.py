"""The sampler weighs only a window of cells; its answers are those of the full computation, and of exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pq
from pq.core.scores import Target, log_sum
from pq.private.columns.cells import Lattice, Points
from pq.private.mechanisms.independent import Law, pick

PRIORS = [
    pq.Uniform(-3, 3),
    pq.Cauchy(0, 1),
    pq.Laplace(40, 0.5),  # nearly all its mass is far from the data
    pq.Normal(-8, 1),
    pq.HalfCauchy(2.0, loc=-1.0),
    pq.PiecewiseConstant([-5, -1, -0.9, 5], [0.01, 0.98, 0.01]),
    pq.Laplace(0, 1).mix(pq.Cauchy(0, 1), 0.1),
]


def full_choice(law: Law, uniform: float) -> tuple[float, float]:
    """Weigh every cell and take the one whose share covers the uniform."""
    edges, log_weights = law.log_weights(0, law.view.last_cell)
    index = pick(log_weights, (-math.inf, -math.inf), uniform)
    assert index is not None
    return float(edges[index]), float(edges[index + 1])


def columns(rng: np.random.Generator, n: int) -> list[Points | Lattice]:
    x = np.sort(rng.normal(size=n))
    ties = np.sort(np.where(rng.random(n) < 0.6, 0.25, x))
    return [Points(x), Points(ties), Lattice.of(ties, Fraction(1, 4), unit=4), Lattice.of(x, Fraction(1, 100), unit=8)]


@pytest.mark.parametrize("prior", PRIORS, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("edge", [False, True])
def test_a_window_gives_the_answer_of_all_cells(prior: pq.Cauchy, edge: bool) -> None:
    """14 settings of about 1,500 draws each; both paths get the same uniform and must name the same cell."""
    rng = np.random.default_rng(7)
    for n, rate in ((0, 1.0), (1, 0.3), (7, 2.0), (400, 0.5), (2000, 0.05), (2000, 3.0), (3000, 1e-7), (500, math.inf)):
        for column in columns(rng, n):
            low, high = (-math.inf, math.inf) if rng.random() < 0.5 else (column.output(-0.8), column.output(1.6))
            view = column.view(low, high, column.unit // 2, column.unit // 4)
            for q in (Fraction(1, 3), Fraction(9, 10)):
                law = Law(column, view, low, high, prior, Target.of(q, view.n, "sharp"), rate, edge)
                if law.fallback is not None:
                    continue
                for u in (rng.random(23) + 2.0**-54).tolist():
                    assert law._choose(u)[1:] == full_choice(law, u)


def test_a_window_that_forgets_the_mass_outside_is_caught() -> None:
    """The same comparison rejects a window that ignores what it leaves out."""
    x = np.linspace(-1, 1, 2000)
    law = Law(
        Points(x),
        Points(x).view(-math.inf, math.inf),
        -math.inf,
        math.inf,
        pq.Laplace(40, 0.5),
        Target(1000, Fraction(0)),
        0.05,
        False,
    )
    edges, log_weights = law.log_weights(900, 1100)
    careless = pick(log_weights, (-math.inf, -math.inf), 0.5)
    assert careless is not None
    assert (edges[careless], edges[careless + 1]) != full_choice(law, 0.5) == law._choose(0.5)[1:]


def exact_law(
    points: list[Fraction], prior: tuple[Fraction, Fraction], target: Fraction, z: Fraction
) -> list[Fraction]:
    """Probabilities of the cells under a uniform prior with scores z^distance, in rationals."""
    edges = [prior[0], *points, prior[1]]
    weights = [z ** abs(k - target) * (edges[k + 1] - edges[k]) for k in range(len(points) + 1)]
    return [w / sum(weights) for w in weights]


def test_probabilities_of_cells_match_exact_rationals() -> None:
    """Total variation distance between the float64 law and the law in rationals, for rate log 2 and a whole target."""
    rng = np.random.default_rng(0)
    for n in (1, 5, 40, 300):
        points = sorted({Fraction(int(k), 4096) for k in rng.integers(1, 4095, size=n)})
        column = Points(np.array([float(p) for p in points]))
        view = column.view(-math.inf, math.inf)
        target = len(points) // 3
        law = Law(column, view, -math.inf, math.inf, pq.Uniform(0, 1), Target(target, Fraction(0)), math.log(2), False)
        _, log_weights = law.log_weights(0, view.last_cell)
        got = np.exp(log_weights - log_sum(log_weights))
        want = exact_law(points, (Fraction(0), Fraction(1)), Fraction(target), Fraction(1, 2))
        assert sum(abs(Fraction(float(g)) - w) for g, w in zip(got, want, strict=True)) / 2 < Fraction(1, 10**14)


def test_pick_never_names_a_cell_of_no_weight() -> None:
    log_weights = np.array([-math.inf, 0.0, -math.inf, -1.0, -math.inf])
    none = (-math.inf, -math.inf)
    assert pick(log_weights, none, 2.0**-54) == 1
    assert pick(log_weights, none, 1 - 2.0**-53) == 3
    share = 1 / (1 + math.exp(-1))
    assert pick(log_weights, none, share - 1e-9) == 1 and pick(log_weights, none, share + 1e-9) == 3


@pytest.mark.parametrize(
    ("q", "n", "paper", "sharp"),
    [(Fraction(29, 100), 100, 29.0, 29.0), (Fraction(1, 2), 3, 1.0, 1.5), (Fraction(1), 7, 7.0, 7.0)],
)
def test_target_ranks(q: Fraction, n: int, paper: float, sharp: float) -> None:
    for calibration, expected in (("paper", paper), ("sharp", sharp)):
        target = Target.of(q, n, calibration)
        assert target.whole + target.part == expected


def test_lattice_cells_tile_the_line_and_hold_every_rank() -> None:
    column = Lattice.of(np.array([1.0, 1.1, 2.0, 2.0, 2.0, 5.0]), Fraction(1))
    view = column.view(-math.inf, math.inf, 0, 0)
    edges, low, high = view.cells(0, view.last_cell, (-math.inf, math.inf))
    assert edges.tolist() == [-math.inf, 0.5, 1.5, 1.5, 2.5, 4.5, 5.5, math.inf]
    assert low.tolist() == [0, 0, 2, 2, 5, 5, 6] and high.tolist() == [0, 2, 2, 5, 5, 6, 6]
    for first in range(view.last_cell + 1):
        for last in range(first, view.last_cell + 1):
            part = view.cells(first, last, (-math.inf, math.inf))
            assert part[0].tolist() == edges[first : last + 2].tolist()
            assert part[1].tolist() == low[first : last + 1].tolist()
            assert part[2].tolist() == high[first : last + 1].tolist()


def test_a_tied_record_at_an_output_goes_on_with_half_its_weight() -> None:
    column = Lattice.of(np.array([1.0, 2.0, 2.0, 2.0, 2.0, 5.0]), Fraction(1), unit=2)
    below, above = column.view(-math.inf, 2.0, 0, 1), column.view(2.0, math.inf, 1, 0)
    assert below.n == 6 and above.n == 6  # halves
    assert below.ranks_of(2.0) == (2, 6) and above.ranks_of(2.0) == (0, 4)
    assert column.view(2.0, 2.0, 1, 1).n == 0


def test_lattice_outputs_are_the_nearest_floats_to_the_decimal() -> None:
    column = Lattice.of(np.array([0.3]), Fraction(1, 10))
    assert [column.value(k) for k in range(12)] == [k / 10 for k in range(12)]


@pytest.mark.parametrize(
    ("prior", "x", "outcome", "options"),
    [
        (pq.Laplace(1e300, 1.0), [1e300, -1.7e308], [-1.7e308, 1e300, 1e308], {}),  # nats beyond the floats
        (pq.Laplace(1e308, 1.0), [0.0, 1e300], [-1e308, 1e-300, 1.0], {"calibration": "paper"}),
        (pq.Normal(0, 1e-200), [0.0], [-1.0], {"grid": 1e-6, "mechanism": "margin"}),  # mass below the floats
        (pq.Laplace(0, 1e-310), [0.0], [1.0], {"grid": 1.0, "mechanism": "margin"}),
    ],
)
def test_what_floats_have_no_density_for_has_none_on_either_column(
    prior: pq.Prior, x: list[float], outcome: list[float], options: dict[str, Any]
) -> None:
    quantiles = [0.25, 0.5, 0.75] if len(outcome) > 1 else [0.5]
    assert pq.log_density(x, outcome, quantiles, epsilon=1, priors=prior, **options) == -math.inf
    assert pq.privacy_loss(x, [*x, 0.5], outcome, quantiles, epsilon=1, priors=prior, **options) == 0.0
