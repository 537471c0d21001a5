"""Cells: what is counted, what it costs, and the exact law, against slow versions and broken variants.

Losses are exact differences of log probabilities; nothing here is statistical but the two counts of draws, whose seeds
are fixed and which a right sampler fails with probability below 1e-6.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

import pq
from pq.core.noise import DiscreteLaplace, Source, random_uniforms
from pq.core.request import Request
from pq.core.scores import log_sum
from pq.private.columns.cells import Points
from pq.private.mechanisms.cells import Cells, outcome_drawn, plan_cells
from pq.private.mechanisms.cells.law import (
    CellsOutcome,
    CellsPlan,
    cell_intervals,
    cell_values,
    decoded,
    draw_cells,
    log_cells_parts,
    records_in_cells,
)
from pq.private.mechanisms.cells.partitions import CutPartition, PlacePartition, PriorPartition
from pq.private.mechanisms.cells.refined import RefinedPartition
from pq.private.mechanisms.joint.cutter import JointCutter

HALF = Fraction(1, 2)
AROUND = PriorPartition((pq.Uniform(-4, 4),), (HALF,))
ADJACENCIES = ["add-remove", "replace"]


def seeded(seed: int) -> Source:
    return np.random.default_rng(seed).bytes


def points(values: list[float]) -> Points:
    return Points(np.sort(np.array(values, dtype=np.float64)))


@dataclass(frozen=True)
class FewCuts:
    """Two cuts among five places by one exponential mechanism; its score: records between them, off a third of all."""

    epsilon: Fraction
    adjacency: str
    quantiles: tuple[Fraction, ...] = (Fraction(1, 3), Fraction(2, 3))

    @property
    def rho(self) -> Fraction:
        return self.epsilon**2 / 8

    def _law(self, column: Points) -> tuple[list[tuple[float, float]], np.ndarray]:
        pairs = list(itertools.combinations_with_replacement((-3.0, -1.0, 0.5, 1.0, 3.0), 2))
        n = len(column.values)
        below = np.searchsorted(column.values, np.array(pairs), side="right")
        scores = np.abs(below[:, 1] - below[:, 0] - n / 3)  # a record moves it by two thirds at most
        moved = 1 if self.adjacency == "add-remove" else 2
        weights = -float(self.epsilon) * scores / (2 * moved)
        return pairs, weights - log_sum(weights)

    def cuts(self, column: Points, source: Source) -> np.ndarray:
        pairs, weights = self._law(column)
        index = int(np.searchsorted(np.cumsum(np.exp(weights)), random_uniforms(1, source)[0]))
        return np.array(pairs[min(index, len(pairs) - 1)])

    def log_parts(self, column: Points, cuts: np.ndarray) -> tuple[Fraction, float]:
        pairs, weights = self._law(column)
        return Fraction(0), float(weights[pairs.index((float(cuts[0]), float(cuts[1])))])


def planned(quantiles: object, *, where: str = "prior", cutter: object = None, **facts: object) -> CellsPlan:
    return plan_cells(Request.of(quantiles, **facts), where=where, cutter=cutter)


def plans(adjacency: str) -> Iterator[CellsPlan]:
    place = PlacePartition(AROUND, Fraction(1, 20), Fraction(1, 25), adjacency)
    cuts = CutPartition(FewCuts(Fraction(1, 20), adjacency), (-4.0, 4.0))
    yield CellsPlan(Fraction(1), adjacency, AROUND, 4)
    yield CellsPlan(Fraction(1), adjacency, place, 5)
    yield CellsPlan(Fraction(1), adjacency, cuts, 6)
    yield CellsPlan(Fraction(1), adjacency, RefinedPartition(CellsPlan(Fraction(1, 5), adjacency, cuts, 4)), 3)
    yield CellsPlan(Fraction(1), adjacency, AROUND, 4, Fraction(1))
    on_grid = PlacePartition(AROUND, Fraction(1, 20), Fraction(1, 25), adjacency, HALF)
    yield CellsPlan(Fraction(1), adjacency, on_grid, 7, HALF)


COLUMNS = [[], [0.0], [-4.0, -2.0, -2.0, 0.0, 0.5, 2.0, 9.0], [1.0] * 5]
ADDED = [-1e308, -2.0, 0.0, 0.25, 0.5, 1.0, 4.0]


def neighbours(x: list[float], adjacency: str) -> Iterator[list[float]]:
    if adjacency == "add-remove":
        yield from ([*x, v] for v in ADDED)
        yield from (x[:i] + x[i + 1 :] for i in range(len(x)))
    else:
        yield from (x[:i] + x[i + 1 :] + [v] for i in range(len(x)) for v in ADDED)


def outcomes(plan: CellsPlan, column: Points) -> Iterator[CellsOutcome]:
    """Draws, and the same with counts far above and below in single cells, where losses are largest."""
    for seed in range(2):
        drawn = draw_cells(plan, column, seeded(seed))
        yield drawn
        for shift in (-9, 9):
            yield CellsOutcome(drawn.places, drawn.edges, drawn.counts + shift)
        alternating = drawn.counts + 9 * (-1) ** np.arange(len(drawn.counts))
        yield CellsOutcome(drawn.places, drawn.edges, alternating)
        yield CellsOutcome(drawn.places, drawn.edges, 2 * drawn.counts - alternating)


def log_cells_probability(plan: CellsPlan, column: Points, outcome: CellsOutcome) -> float:
    return log_of(log_cells_parts(plan, column, outcome))


def log_places(plan: CellsPlan, column: Points, outcome: CellsOutcome) -> float:
    return log_of(plan.partition.log_parts(column, outcome.places))


Law = Callable[[CellsPlan, Points, CellsOutcome], float]


def largest_loss(plan: CellsPlan, law: Law = log_cells_probability) -> float:
    """The largest exact loss found on neighbours."""
    worst = 0.0
    for x in COLUMNS:
        column = points(x)
        found = list(outcomes(plan, column))
        mine = [law(plan, column, outcome) for outcome in found]
        for other in neighbours(x, plan.adjacency):
            beside = points(other)
            losses = [abs(a - law(plan, beside, outcome)) for a, outcome in zip(mine, found, strict=True)]
            worst = max(worst, *losses)
    return worst


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_losses_are_at_most_epsilon_and_nearly_that(adjacency: str) -> None:
    for plan in plans(adjacency):
        assert 0.9 < largest_loss(plan) <= 1.0 + 1e-9


def noise_of_one_count(plan: CellsPlan, column: Points, outcome: CellsOutcome) -> float:
    """Mutant: two counts move under replace, and each has the noise of one."""
    true = records_in_cells(column, outcome.edges, plan.step)
    places = log_places(plan, column, outcome)
    return places + float(np.sum(DiscreteLaplace(plan.epsilon_counts).log_mass(outcome.counts - true)))


def distinct_values(plan: CellsPlan, column: Points, outcome: CellsOutcome) -> float:
    """Mutant: a tied record counts once."""
    return log_cells_probability(plan, Points(np.unique(column.values)), outcome)


def free_look(plan: CellsPlan, column: Points, outcome: CellsOutcome) -> float:
    """Mutant: the whole budget for the counts of cells that were looked up with a part of it."""
    true = records_in_cells(column, outcome.edges, plan.step)
    places = log_places(plan, column, outcome)
    return places + float(np.sum(DiscreteLaplace(plan.epsilon).log_mass(outcome.counts - true)))


def edges_of_the_records(plan: CellsPlan, column: Points, outcome: CellsOutcome) -> float:
    """Mutant: edges are quantiles of the column itself."""
    edges = np.quantile(column.values, [0.25, 0.5, 0.75]) if len(column.values) else np.zeros(3)
    if not np.array_equal(edges, outcome.edges):
        return -math.inf
    return float(np.sum(plan.noise.log_mass(outcome.counts - records_in_cells(column, edges, plan.step))))


def test_noise_of_one_count_under_replace_is_caught() -> None:
    for plan in plans("replace"):
        assert largest_loss(plan, noise_of_one_count) > 1.5


def test_a_look_that_is_not_paid_for_is_caught() -> None:
    """Budgets of looks as large as the counts', so that the loss is well above epsilon."""
    for adjacency in ADJACENCIES:
        place = PlacePartition(AROUND, Fraction(1, 4), Fraction(1, 4), adjacency)
        plan = CellsPlan(Fraction(1), adjacency, place, 5)
        assert largest_loss(plan) <= 1.0 + 1e-9
        assert largest_loss(plan, free_look) > 1.05


def test_edges_of_the_records_are_caught() -> None:
    plan = CellsPlan(Fraction(1), "add-remove", AROUND, 4)
    x = points([-1.0, 0.0, 1.0, 2.0])
    outcome = CellsOutcome((), np.quantile(x.values, [0.25, 0.5, 0.75]), np.array([1, 1, 1, 1]))
    assert edges_of_the_records(plan, x, outcome) > -math.inf
    assert edges_of_the_records(plan, points([-1.0, 0.0, 1.0, 2.0, 3.0]), outcome) == -math.inf


def in_cell(value: float, edges: np.ndarray, j: int) -> bool:
    """Whether a record is in cell j, one by one."""
    low = -math.inf if j == 0 else edges[j - 1]
    return bool(low < value and (j == len(edges) or value <= edges[j]))


def slow_records(values: list[float], edges: np.ndarray) -> list[int]:
    return [sum(in_cell(v, edges, j) for v in values) for j in range(len(edges) + 1)]


def test_every_record_is_in_one_cell() -> None:
    """Ties, records on edges, and records beyond the support; the same from values and counts."""
    edges = np.array([-1.0, 0.0, 2.0])
    for x in [*COLUMNS, [-1.0, -1.0, 0.0, 0.0, 0.0, 2.0, 1e308, -1e308]]:
        expected = slow_records(x, edges)
        assert sum(expected) == len(x)
        assert records_in_cells(points(x), edges, None).tolist() == expected
        distinct, counts = np.unique(np.array(x), return_counts=True)
        before = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        assert records_in_cells(Points(distinct, before), edges, None).tolist() == expected


def test_counts_that_lose_tied_records_are_caught() -> None:
    """They do not cost privacy: they are wrong, and the law says so."""
    plan = CellsPlan(Fraction(1), "add-remove", AROUND, 4)
    column = points([1.0] * 6)
    right = CellsOutcome((), plan.edges(()), np.array([0, 0, 6, 0]))
    assert log_cells_probability(plan, column, right) == pytest.approx(4 * math.log(math.tanh(0.5)))
    assert distinct_values(plan, column, right) < log_cells_probability(plan, column, right) - 4.9


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_budgets_sum_to_epsilon(adjacency: str) -> None:
    for plan in plans(adjacency):
        assert sum(plan.budgets, Fraction(0)) == plan.epsilon
        assert plan.noise.epsilon == plan.epsilon_counts / (2 if adjacency == "replace" else 1)


def log_of(parts: tuple[Fraction, float]) -> float:
    return parts[1] - float(parts[0])


def test_probabilities_sum_to_one() -> None:
    """Over counts for fixed edges; over places by quadrature, for looks of one record and of ties."""
    plan = CellsPlan(Fraction(3), "add-remove", AROUND, 2)
    column = points([0.0, 0.0, 1.0])
    total = sum(
        math.exp(log_cells_probability(plan, column, CellsOutcome((), plan.edges(()), np.array([a, b]))))
        for a in range(-12, 16)
        for b in range(-12, 16)
    )
    assert total == pytest.approx(1.0, abs=1e-9)
    place = PlacePartition(AROUND, Fraction(2), Fraction(1), "add-remove")
    grid = np.linspace(-4.0, 4.0, 41)
    middles = 0.5 * (grid[1:] + grid[:-1])  # the density is constant between records, which lie on the grid
    density = sum(
        math.exp(log_of(place.log_parts(column, (c, w)))) for c in middles.tolist() for w in place.widths.tolist()
    )
    assert density * 0.2 == pytest.approx(1.0, abs=1e-6)


def test_draws_have_the_law() -> None:
    """Widths given places, and counts, over thousands of draws against the exact law; fails with probability 2e-7."""
    place = PlacePartition(AROUND, Fraction(2), Fraction(2), "add-remove")
    column = points([-1.0, 0.0, 0.0, 0.5, 3.0])
    source = seeded(3)
    drawn = [place.draw(column, source) for _ in range(4000)]
    expected, counts = np.zeros(len(place.widths)), np.zeros(len(place.widths))
    variance = np.zeros(len(place.widths))
    for c, w in drawn:
        weights = place._log_width_weights(column, c)
        shares = np.exp(weights - log_sum(weights))
        expected += shares
        variance += shares * (1.0 - shares)
        counts[int(np.searchsorted(place.widths, w))] += 1
    assert np.max(np.abs(counts - expected) / np.sqrt(variance + 1.0)) < 6.0
    plan = CellsPlan(Fraction(1), "replace", AROUND, 4)
    found = np.array([draw_cells(plan, column, source).counts for _ in range(8000)])
    shift = found - records_in_cells(column, plan.edges(()), plan.step)
    law = {k: len(found) * math.exp(float(plan.noise.log_mass(k))) for k in range(-7, 8)}
    value = sum((np.sum(shift == k, axis=0) - e) ** 2 / e for k, e in law.items())
    assert np.all(value < chi2.isf(1e-8, 15))


def test_impossible_outcomes_have_no_probability() -> None:
    for plan in plans("add-remove"):
        column = points([0.0, 1.0])
        drawn = draw_cells(plan, column, seeded(0))
        assert log_cells_probability(plan, column, drawn) > -math.inf
        moved = CellsOutcome(drawn.places, drawn.edges + 1e-6, drawn.counts)
        fewer = CellsOutcome(drawn.places, drawn.edges, drawn.counts[1:])
        extra = CellsOutcome((*drawn.places, 1.0), drawn.edges, drawn.counts)
        for outcome in (moved, fewer, extra):
            assert log_cells_probability(plan, column, outcome) == -math.inf
        nearly = CellsOutcome(drawn.places, np.nextafter(drawn.edges, math.inf), drawn.counts)
        assert log_cells_probability(plan, points([0.3, 1.1]), nearly) > -math.inf


def test_edges_on_a_grid_are_half_steps() -> None:
    plan = CellsPlan(Fraction(1), "add-remove", AROUND, 30, Fraction(1, 10))
    units = plan.edges(()) * 10.0
    assert np.all(np.abs(units - np.floor(units) - 0.5) < 1e-9) and np.all(np.diff(units) > 0.5)
    outcome = draw_cells(plan, points([0.3] * 50 + [0.7] * 50), seeded(0))
    values = cell_values(plan, outcome, [0.25, 0.75])
    assert np.all(np.abs(values * 10.0 - np.rint(values * 10.0)) < 1e-9)
    coarse = CellsPlan(Fraction(1), "add-remove", AROUND, 30, Fraction(4))
    assert len(coarse.edges(())) == 2  # fewer cells, by public facts alone


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_values_never_fail(adjacency: str) -> None:
    """Odd columns and odd counts: finite values that do not decrease, within the support; warnings are errors."""
    odd = [[], [1e308] * 3, [-1.7976931348623157e308, 1.7976931348623157e308], [0.0] * 5]
    q = np.linspace(0.0, 1.0, 11)
    for plan in plans(adjacency):
        for x, seed in itertools.product(odd, range(3)):
            outcome = draw_cells(plan, points(x), seeded(seed))
            for counts in (outcome.counts, 0 * outcome.counts, outcome.counts - 2**40, outcome.counts + 2**52):
                for smooth in (True, False):
                    variant = CellsPlan(plan.epsilon, adjacency, plan.partition, plan.cells, plan.step, smooth)
                    values = cell_values(variant, CellsOutcome(outcome.places, outcome.edges, counts), q)
                    assert np.all(np.isfinite(values)) and np.all(np.diff(values) >= 0.0)
                    assert values[0] >= -4.0 and values[-1] <= 4.0


def test_the_unit_does_not_matter() -> None:
    """Data and priors times 1,024: the same bytes give the release times 1,024."""
    x = np.sort(np.random.default_rng(1).normal(size=300))
    for where in ("prior", "place"):
        one, other = (
            planned([0.5], epsilon=1, priors=pq.Uniform(-9 * unit, 9 * unit), where=where) for unit in (1, 1024)
        )
        drawn, scaled = draw_cells(one, Points(x), seeded(4)), draw_cells(other, Points(1024 * x), seeded(4))
        assert np.array_equal(drawn.counts, scaled.counts)
        assert scaled.edges == pytest.approx(1024 * drawn.edges, rel=1e-9)
        q = np.arange(1, 20) / 20
        assert cell_values(other, scaled, q) == pytest.approx(1024 * cell_values(one, drawn, q), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("where", ["prior", "place"])
def test_values_are_near_the_columns_quantiles(where: str) -> None:
    """Ten columns at epsilon = 1: off by fewer than 40 of 1,000 ranks, over four times what is usual."""
    q = np.arange(1, 30) / 30
    facts = {"epsilon": 1, "priors": pq.Uniform(-10, 10), "size_guess": 1000, "assume_smooth": True}
    plan = planned([0.5], where=where, **facts)
    for seed in range(10):
        x = np.sort(np.random.default_rng(seed).normal(size=1000))
        outcome = draw_cells(plan, Points(x), seeded(seed))
        assert np.max(np.abs(np.searchsorted(x, cell_values(plan, outcome, q)) - 1000 * q)) < 40
        assert decoded(plan, outcome).total == pytest.approx(1000, abs=60)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_intervals_hold_the_columns_quantiles(adjacency: str) -> None:
    """Fifty columns at 99%: two misses or more have probability below 0.1, five below 3e-5."""
    place = PlacePartition(AROUND, Fraction(1, 20), Fraction(1, 25), adjacency)
    plan = CellsPlan(Fraction(1), adjacency, place, 24)
    q, misses, widths = np.array([0.25, 0.5, 0.75]), 0, []
    for seed in range(50):
        x = np.sort(np.random.default_rng(seed).normal(size=801))
        low, high = cell_intervals(plan, draw_cells(plan, Points(x), seeded(seed)), q, 0.99).T
        true = x[np.ceil(801 * q).astype(int) - 1]
        misses += not np.all((low <= true) & (true <= high))
        widths.append(np.max(high - low))
    assert misses < 5 and np.median(widths) < 1.0


def cutter(levels: tuple[Fraction, ...], epsilon: Fraction, adjacency: str) -> FewCuts:
    return FewCuts(epsilon, adjacency)


def test_plans_from_public_facts() -> None:
    priors = [pq.Normal(1, 1), pq.Normal(0, 1)]
    for where, adjacency, size in itertools.product(
        ("prior", "place", "cuts", "refined"), ADJACENCIES, (1, 100, 10**6)
    ):
        for epsilon in (Fraction(1, 100), 1, 10**6):
            facts = {"epsilon": epsilon, "adjacency": adjacency, "size_guess": size}
            plan = planned([0.9, 0.1], priors=priors, where=where, cutter=cutter, **facts)
            assert sum(plan.budgets, Fraction(0)) == epsilon
            assert sum(plan.budgets[:-1], Fraction(0)) <= Fraction(4, 5) * Fraction(epsilon)
    without = planned([0.5], epsilon=1, priors=pq.Normal(0, 1), where="refined")
    assert len(without.budgets) == 4 and sum(without.budgets, Fraction(0)) == 1
    table = planned([0.9, 0.1], epsilon=1, priors=[pq.Normal(9, 0.1), pq.Normal(1, 0.1)]).partition.table(())
    assert table[102] < 3.0 < 7.0 < table[921]  # priors go with their quantiles, in any order


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": Fraction(1, 2**41)}, "epsilon"),
        ({"where": "nowhere"}, "where"),
        ({"where": "cuts"}, "cutter"),
        ({"where": "place", "epsilon": math.inf}, "epsilon"),
        ({"adjacency": "none"}, "adjacency"),
        ({"size_guess": 0}, "size_guess"),
        ({"grid": -1}, "grid"),
        ({"priors": [pq.Normal(0, 1)] * 3}, "priors"),
        ({"quantiles": [1.5]}, "quantiles"),
    ],
)
def test_wrong_public_arguments_are_named(wrong: dict[str, object], named: str) -> None:
    facts = {"quantiles": [0.5], "epsilon": 1, "priors": pq.Normal(0, 1)} | wrong
    with pytest.raises(ValueError, match=named):
        planned(facts.pop("quantiles"), **facts)


def test_a_partition_must_fit_its_plan() -> None:
    place = PlacePartition(AROUND, HALF, HALF, "add-remove")
    with pytest.raises(ValueError, match="partition"):
        CellsPlan(Fraction(1), "add-remove", place, 5)
    with pytest.raises(ValueError, match="adjacency"):
        CellsPlan(Fraction(2), "replace", place, 5)
    request = Request.of([0.5], epsilon=1, priors=pq.Normal(0, 1))
    for number, error in ((2.5, TypeError), (1, ValueError), (5000, ValueError)):
        with pytest.raises(error, match=r"number|cells"):
            plan_cells(request, number=number)


def test_zero_concentrated_privacy_is_above_the_exact_one() -> None:
    """Renyi losses of a count, and of two under replace, from their exact law; the bound is not loose by ten times."""
    for adjacency, moved in (("add-remove", 1), ("replace", 2)):
        plan = CellsPlan(Fraction(1), adjacency, AROUND, 4)
        k = np.arange(-200, 201)
        p, q = plan.noise.log_mass(k), plan.noise.log_mass(k - 1)
        rho = max(
            moved * log_sum(alpha * p + (1 - alpha) * q) / (alpha - 1) / alpha for alpha in np.linspace(1.001, 60, 200)
        )
        assert rho <= plan.rho < 10.0 * rho


OPTIONS = {"epsilon": 1, "priors": pq.Uniform(-10, 10), "mechanism": "cells", "size_guess": 1000}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("grid", [None, 0.5])
def test_a_release_keeps_what_was_drawn(adjacency: str, grid: float | None) -> None:
    """Released, simulated, written and read again; its density is that of its outcome, its losses are below epsilon."""
    x, q = np.random.default_rng(0).normal(size=800).tolist(), [0.75, 0.25, 0.5]
    options = OPTIONS | {"adjacency": adjacency, "grid": grid}
    result = pq.release(x, q, rng=1, **options)
    assert result.mechanism == "cells" and result.values[1] < result.values[2] < result.values[0]
    assert (result.total is None) == (adjacency == "replace")
    assert pq.Release.from_dict(result.to_dict()).to_dict() == result.to_dict()
    whole = {"values": result.values} | dict(result.outcome)
    assert math.isfinite(pq.log_density(x, whole, q, **options))
    maker = Cells(Request.of(q, **options))
    assert maker.quantile(result.outcome, q).tolist() == result.values.tolist()
    low, high = maker.interval(result.outcome, q, 0.95).T
    assert np.all(low <= np.quantile(x, q)) and np.all(np.quantile(x, q) <= high)
    other = x[1:] if adjacency == "add-remove" else [*x[1:], 3.0]
    assert abs(pq.privacy_loss(x, other, whole, q, **options)) <= 1.0 + 1e-9
    assert pq.simulate(x, q, trials=3, rng=1, **options).shape == (3, 3)


def test_a_density_needs_what_was_drawn() -> None:
    with pytest.raises(ValueError, match="outcome"):
        pq.log_density([1.0], [1.0], [0.5], **OPTIONS)
    with pytest.raises(ValueError, match="outcome"):
        outcome_drawn([("places", []), ("edges", "none"), ("counts", [1])])


def test_rho_counts_all_records_of_a_person() -> None:
    one, two = (Cells(Request.of([0.5], max_contributions=k, **OPTIONS)) for k in (1, 2))
    assert one.rho == one.plan.rho == (2 * Fraction(1, 25) ** 2) / 8 + Fraction(23, 25) ** 2 / 2
    assert two.plan.epsilon == Fraction(1, 2) and two.rho == 4 * two.plan.rho


# --- looks on a grid --------------------------------------------------------------------------------------------------


def looked_up(where: str, step: Fraction) -> list[float]:
    """Places and cuts that some draws of a release on a grid show."""
    request = Request.of([HALF], epsilon=1, priors=pq.Uniform(-10, 10), size_guess=1000, grid=step)
    maker = Cells(request, where=where)  # type: ignore[arg-type]
    partition = maker.plan.partition
    while isinstance(partition, RefinedPartition):
        partition = partition.first.partition
    column = points(np.random.default_rng(0).normal(size=40).tolist())
    drawn = [partition.draw(column, seeded(seed)) for seed in range(8)]
    return [v for places in drawn for v in (places[:1] if isinstance(partition, PlacePartition) else places)]


@pytest.mark.parametrize("where", ["place", "cuts", "refined"])
def test_looks_on_a_grid_lie_on_it(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    step = Fraction(1, 4)

    def off(values: list[float]) -> list[float]:
        return [v for v in values if abs(v * 4.0 - round(v * 4.0)) > 1e-9]

    assert off(looked_up(where, step)) == []
    if where == "place":  # what was there before
        monkeypatch.setattr(PlacePartition, "_rounded", lambda self, column: column)
        assert off(looked_up(where, step))


def test_a_place_off_the_grid_has_no_probability() -> None:
    place = PlacePartition(AROUND, Fraction(1, 4), Fraction(1, 4), "add-remove", HALF)
    column = points([0.0, 0.4, 1.0])
    width = float(place.widths[3])
    on, off = (log_of(place.log_parts(column, (at, width))) for at in (0.5, 0.6))
    assert on > -math.inf and off == -math.inf
    table = [log_of(place.log_parts(column, (u / 2, float(w)))) for u in range(-8, 9) for w in place.widths]
    assert math.fsum(map(math.exp, table)) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_cuts_on_a_grid_keep_to_epsilon(adjacency: str) -> None:
    request = Request.of([HALF], epsilon=1, priors=pq.Uniform(-4, 4), grid=HALF, adjacency=adjacency)
    maker = Cells(request, where="cuts", number=4)
    assert isinstance(maker.plan.partition, CutPartition) and isinstance(maker.plan.partition.cutter, JointCutter)
    assert maker.plan.partition.cutter.plan.step == HALF
    x, beside = points([-1.0, 0.5, 0.5]), points([-1.0, 0.5, 0.5, 0.6])
    if adjacency == "replace":
        beside = points([-1.0, 0.5, 3.0])
    for seed in range(2):
        drawn = draw_cells(maker.plan, x, seeded(seed))
        one, other = (log_cells_probability(maker.plan, column, drawn) for column in (x, beside))
        assert one > -math.inf and abs(one - other) <= 1.0 + 1e-9


@pytest.mark.filterwarnings("error")
def test_further_quantiles_at_the_ends_of_the_floats_do_not_warn() -> None:
    """In units of a fine grid the ends of a column of largest floats are infinite; they are the lattice's ends."""
    largest = np.finfo(float).max
    column = np.array([-largest, largest] * 20)
    options = {"priors": pq.LogUniform(), "epsilon": 1, "grid": Fraction(1, 1000), "mechanism": "cells"}
    end = 2.0**51 / 1000
    for seed in range(20):
        further = pq.release(column, [0.5], rng=seed, **options).quantile([0.0, 0.3, 1.0])
        assert (np.abs(further) <= end).all() and further[0] == -end and further[2] == end
