"""The audit: its density is the package's, it finds every broken mechanism, and ours stays within epsilon and comes
close to it."""

from __future__ import annotations

import csv
import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure

import pq
from pq.cli import main
from pq.core import sensitivity as privacy
from pq.truth.audit.bins import Line, shapes, unit_bins
from pq.truth.audit.ceiling import ceiling
from pq.truth.audit.losses import TreeLosses
from pq.truth.audit.mechanism import Scalar, log_ratios
from pq.truth.audit.report import AuditReport, audit
from pq.truth.audit.search import BINS, Search
from pq.truth.audit.table import COLUMNS, ENOUGH, settings, why
from pq.truth.audit.tree import audit_release
from pq.truth.audit.worst import Case, WorstPriors, priors_for
from proofs_checks.audit_mutants import CeilLogLevels, HalvedSensitivity, MidpointOfNothing, TiesOnBothSides, WholeData

RESULTS = Path(__file__).parents[2] / "proofs_checks" / "audit_results.csv"
GRID_VALUES = [-2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 2.0]
PRIORS = [
    pq.Uniform(-2, 2),
    pq.Uniform(0.25, 0.75),
    pq.Cauchy(0.3, 0.2),
    pq.Laplace(0, 0.5),
    pq.Normal(0.5, 0.3).mix(pq.Cauchy(0, 1), 0.1),
    pq.PiecewiseConstant([-3, -1, -0.5, 0, 1, 2.5], [1e-9, 1, 0, 1e-3, 1]),
]


def evenly(m: int) -> list[Fraction]:
    return [Fraction(i, m + 1) for i in range(1, m + 1)]


def random_tree(rng: np.random.Generator, **keywords: Any) -> tuple[TreeLosses, list[float], dict[str, Any]]:
    m = int(rng.integers(1, 9))
    quantiles = (np.sort(rng.choice(41, size=m, replace=False)) / 40).tolist()
    several = [PRIORS[k] for k in rng.integers(len(PRIORS), size=m)]
    keywords |= {"priors": several if rng.random() < 0.5 else several[0], "epsilon": float(rng.choice([0.1, 1.0, 5.0]))}
    keywords["budget_power"] = float(rng.choice([0.0, 1.5]))
    return TreeLosses(quantiles, **keywords), quantiles, keywords


def random_batch(rng: np.random.Generator, size: int, m: int, grid: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Columns of different sizes with many ties, and sorted outputs, many of them equal to records or to each other."""
    n = int(rng.integers(0, 9))
    x = rng.choice([*GRID_VALUES, math.inf], size=(size, n))
    x = np.sort(np.where(rng.random((size, n)) < 0.5, rng.normal(size=(size, n)), x), axis=1)
    o = np.where(rng.random((size, m)) < 0.3, rng.normal(size=(size, m)), rng.choice(GRID_VALUES, size=(size, m)))
    if grid is not None:  # a few stay off the grid
        o = np.where(rng.random((size, 1)) < 0.9, np.rint(o / grid) * grid, o)
    return x, np.sort(o, axis=1)


def random_pairs(rng: np.random.Generator, size: int, m: int, grid: float | None, adjacency: str) -> Any:
    """Neighbours that differ in one record, and outputs."""
    x, o = random_batch(rng, size, m, grid)
    x = np.concatenate([x, rng.choice(GRID_VALUES, size=(size, 1))], axis=1)
    y = x.copy()
    y[:, -1] = math.inf if adjacency == "add-remove" else rng.choice(GRID_VALUES, size=size)
    return np.sort(x, axis=1), np.sort(y, axis=1), o


SETTING_PARTS = (("paper", "sharp"), ("conditional", "edge"), (2, 3, 4), ("add-remove", "replace"))
SETTINGS = list(itertools.product(*SETTING_PARTS, (None, 0.5, 0.1)))


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_machine_losses_are_those_of_the_formulas(adjacency: str) -> None:
    """1,080 random pairs of each adjacency over all settings, with ties, impossible outputs and outputs off the grid,
    to 1e-9; machine code does most of them, and all that it says is finite."""
    rng = np.random.default_rng(1)
    moved = compiled = 0
    for calibration, adaptation, arity, _, grid in [s for s in SETTINGS if s[3] == adjacency]:
        keywords = {"calibration": calibration, "adaptation": adaptation, "arity": arity, "adjacency": adjacency}
        tree, quantiles, arguments = random_tree(rng, grid=grid, **keywords)
        x, y, o = random_pairs(rng, 30, len(quantiles), grid, adjacency)
        wanted = np.array(
            [
                pq.privacy_loss(a[a < math.inf], b[b < math.inf], c, quantiles, mechanism="tree", **arguments)
                for a, b, c in zip(x, y, o, strict=True)
            ]
        )
        found = tree.log_ratio(x, y, o)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9)
        with np.errstate(all="ignore"):
            machine = tree.compiled(x, y, o)
        known = ~np.isnan(machine)
        np.testing.assert_array_equal(machine[known], found[known])
        moved += int(np.count_nonzero(wanted[known]))
        compiled += int(known.sum())
    assert compiled > 400 and moved > 250


def test_unit_bins_are_the_piecewise_constant_prior() -> None:
    rng = np.random.default_rng(2)
    fast = unit_bins(-0.5, np.exp(rng.normal(size=40) * 20))
    slow = pq.PiecewiseConstant(fast.edges, fast.weights)
    ends = np.concatenate([rng.integers(-3, 90, size=60) / 2, rng.uniform(-2, 42, 60), [math.inf, -math.inf]])
    lower, upper = np.meshgrid(ends, ends)
    one, other = fast.log_mass(lower, upper), slow.log_mass(lower, upper)
    finite = np.isfinite(other)
    np.testing.assert_array_equal(np.isfinite(one), finite)
    np.testing.assert_allclose(one[finite], other[finite], rtol=1e-12, atol=2e-15)


def test_machine_losses_with_many_bins_and_any_numbers_of_records() -> None:
    """960 random pairs over all settings, priors of 12 or 40 bins of very different weights, to 1e-9; a plan or prior
    that machine code cannot take is left to the formulas."""
    rng = np.random.default_rng(6)
    moved = 0
    for calibration, adaptation, arity, adjacency in itertools.product(*SETTING_PARTS):
        m, grid, bins = int(rng.integers(1, 10)), [None, 1][int(rng.integers(2))], int(rng.choice([12, 40]))
        quantiles = [Fraction(int(k), 40) for k in np.sort(rng.choice(41, size=m, replace=False))]
        keywords = {"calibration": calibration, "adaptation": adaptation, "arity": arity, "adjacency": adjacency}
        spread = float(rng.choice([6.0, 150.0]))
        keywords |= {"priors": [unit_bins(-0.5, bin_weights(rng, bins, spread)) for _ in quantiles], "grid": grid}
        tree = TreeLosses(quantiles, epsilon=1, **keywords)

        def pick(*shape: int, whole: float = 0.5 if grid is None else 1.0, bins: int = bins) -> np.ndarray:
            places = rng.integers(0, bins, size=shape)  # in the priors, at the edges of their bins and outside
            return np.where(rng.random(shape) < whole, places, rng.uniform(-1, bins + 1, size=shape)).astype(float)

        x = pick(40, int(rng.integers(1, 30)))
        x[:, 1:][rng.random(x[:, 1:].shape) < 0.2] = math.inf
        y = x.copy()
        y[:, 0] = math.inf if adjacency == "add-remove" else pick(40)
        x, y, o = np.sort(x, axis=1), np.sort(y, axis=1), np.sort(pick(40, m), axis=1)
        found = tree.log_ratio(x, y, o)
        wanted = [tree.exact(*rows) for rows in zip(x, y, o, strict=True)]
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9)
        moved += np.count_nonzero(wanted)
        slow = TreeLosses(quantiles, epsilon=1, machine=False, **keywords)
        assert np.isnan(slow.compiled(x, y, o)).all()
    assert moved > 500


def test_machine_losses_with_one_thing_wrong_are_told_apart() -> None:
    """The comparison above can fail: rates that are off by a millionth, floors, shares of ties, ends of intervals."""
    rng = np.random.default_rng(3)
    quantiles = evenly(4)
    keywords: dict[str, Any] = {"epsilon": 1, "priors": pq.Cauchy(0.3, 0.2), "grid": 0.5, "arity": 3}
    right = TreeLosses(quantiles, **keywords)
    x, y, o = random_pairs(rng, 100, 4, 0.5, "add-remove")
    wanted = right.compiled(x, y, o)
    nodes, members, fractions, rates, floored, edge, lattice = right.law()
    wrong = [
        (nodes, members, fractions, rates * (1.0 + 1e-6), floored, edge, lattice),
        (nodes, members, np.roll(fractions, 1, axis=0), rates, floored, edge, lattice),
        (nodes, members, fractions, rates, not floored, edge, lattice),
        (nodes, members, fractions, rates, floored, not edge, lattice),
        (nodes, members, fractions, rates, floored, edge, lattice * np.array([1, 1, 1, 0])),
        (nodes, members, fractions, rates, floored, edge, lattice * np.array([2, 1, 1, 1])),
    ]
    for k, law in enumerate(wrong):
        right.law = lambda law=law: law  # type: ignore[method-assign]
        assert np.nanmax(np.abs(right.compiled(x, y, o) - wanted)) > 1e-8, k


def bin_weights(rng: np.random.Generator, bins: int, spread: float) -> list[float]:
    logs = spread * rng.normal(size=bins)
    return np.exp(np.maximum(logs - logs.max(), -700.0)).tolist()


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_worst_priors_are_worse_than_any_and_can_be_made(adjacency: str) -> None:
    """On 210 random cases of each adjacency: no random priors lose more than the closed form, and priors made for the
    case lose that, to 1e-9."""
    rng = np.random.default_rng(4)
    near = 0
    for calibration, adaptation, arity, _, grid in SETTINGS[::7]:
        keywords = {"calibration": calibration, "adaptation": adaptation, "arity": arity, "adjacency": adjacency}
        tree, quantiles, _ = random_tree(rng, grid=None if grid is None else 1, **keywords)
        worst = WorstPriors(tree)
        for _ in range(10):
            x = rng.integers(0, 20, size=int(rng.integers(1, 9))).astype(float)
            y = np.append(x[1:], rng.integers(0, 20, size=int(adjacency == "replace")))
            case = Case.of(np.sort(x), np.sort(y), np.sort(rng.integers(0, 20, len(quantiles)).astype(float)))
            bound = abs(float(worst.log_ratio(*case.rows())[0]))
            step = {"grid": None if grid is None else 1, "budget_power": tree.plan.budget_power}
            options = keywords | step | {"epsilon": tree.plan.epsilon}
            for spiky in (3.0, 30.0):
                random = [unit_bins(-0.5, np.exp(spiky * rng.normal(size=case.places))) for _ in quantiles]
                exact = TreeLosses(quantiles, priors=random, **options).log_ratio(*case.rows())[0]
                assert abs(exact) <= bound + 1e-9
            made = TreeLosses(quantiles, priors=priors_for(worst, case), **options).log_ratio(*case.rows())[0]
            assert abs(made) == pytest.approx(bound, abs=1e-9) or len(set(case.values)) < len(quantiles)
            near += bound > 0.5 * tree.plan.epsilon
    assert near > 20


UP = unit_bins(0.0, np.exp(4.0 * np.arange(64) - 256))
BINS_LINE = Line.between(0.0, 64.0)


def rising(
    mechanism: Any, m: int, adjacency: str = "add-remove", line: Line = BINS_LINE, **keywords: Any
) -> AuditReport:
    return audit(
        mechanism, m, epsilon=1, adjacency=adjacency, line=line, **({"pairs": 20_000, "records": 8} | keywords)
    )


@pytest.mark.parametrize(("m", "least", "records"), [(3, 1.49, 8), (7, 2.3, 18), (9, 2.7, 22)])
def test_finds_ranks_over_the_whole_data(m: int, least: float, records: int) -> None:
    """From random starts, to within a hundredth of the sum of all nodes' budgets, and not beyond it."""
    broken = WholeData(evenly(m), epsilon=1, priors=UP, calibration="paper")
    report = rising(broken, m, records=records)
    assert least <= report.ratio <= float(broken.promised()) + 1e-9
    assert not report.passed
    assert rising(
        TreeLosses(evenly(m), epsilon=1, priors=UP, calibration="paper"), m, pairs=4_000, records=records
    ).passed


def test_improves_on_a_known_violation() -> None:
    x, o = [-9.99999, -9.99998, -9.998, -9.8, 9.999], (-9.99998002, -9.998002, -9.8002)
    prior = pq.Uniform(-10, 10)
    broken = WholeData(evenly(3), epsilon=1, priors=prior, calibration="paper")
    known = float(log_ratios(broken, np.array([x]), np.array([[*x[1:], math.inf]]), np.array([o]))[0])
    report = rising(broken, 3, line=Line.along(prior), pairs=6_000, start=(x, x[1:], o))
    assert 1.48 < abs(known) < report.ratio - 1e-3


@pytest.mark.parametrize(("m", "expected"), [(2, 2.0), (4, 1.5), (8, 4 / 3)])
def test_finds_one_level_too_few(m: int, expected: float) -> None:
    broken = TreeLosses(evenly(m), law=CeilLogLevels, epsilon=1, priors=UP, calibration="paper")
    ratio = max(rising(broken, m, seed=seed, pairs=12_000).ratio for seed in range(2))
    assert 0.97 * expected < ratio <= expected + 1e-9


@pytest.mark.parametrize("calibration", ["paper", "sharp"])
def test_finds_replacement_with_the_budget_of_addition(calibration: str) -> None:
    """Three quantiles: half of epsilon at the root, twice a half below it."""
    broken = TreeLosses(evenly(3), epsilon=1, priors=UP, calibration=calibration, adjacency="add-remove")
    assert (
        1.45 < rising(broken, 3, "replace").ratio <= 1.5 + 1e-9
        if calibration == "paper"
        else rising(broken, 3, "replace").ratio > 1.45
    )


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_finds_halved_sensitivity(adjacency: str) -> None:
    broken = TreeLosses(evenly(3), law=HalvedSensitivity, epsilon=1, priors=UP, adjacency=adjacency)
    assert 1.9 < rising(broken, 3, adjacency).ratio <= 2.0 + 1e-9


def test_finds_ties_that_go_to_both_sides() -> None:
    """A record at the root's output is then in both of its children, at half of epsilon each."""
    prior = shapes(-0.5, 4.0, np.random.default_rng(0))["valley"]
    line = Line.between(0.0, 63.0, step=Fraction(1))
    keywords = {"epsilon": 1, "priors": prior, "grid": 1}
    assert 1.3 < rising(TreeLosses(evenly(3), law=TiesOnBothSides, **keywords), 3, line=line).ratio <= 1.5 + 1e-9
    assert rising(TreeLosses(evenly(3), **keywords), 3, line=line).passed


def test_finds_a_release_of_the_midpoint_of_an_empty_interval() -> None:
    broken = TreeLosses(
        evenly(7), law=MidpointOfNothing, machine=False, epsilon=1, priors=unit_bins(-0.5, np.ones(16)), grid=1
    )
    report = rising(broken, 7, line=Line.between(0.0, 15.0, step=Fraction(1)), pairs=600)
    assert report.loss == math.inf and not report.passed
    assert report.histogram[-1] > 0


def test_any_mechanism_with_a_log_density_can_be_audited() -> None:
    """Laplace noise on a count, right and with half the scale; and noise on a sum without bounds, whose loss has
    none."""
    line = Line.between(-5.0, 5.0)
    for scale, ratio in ((1.0, 1.0), (0.5, 2.0)):
        mechanism = Scalar(lambda x, o, scale=scale: -abs(o[0] - len(x)) / scale)
        report = audit(mechanism, 1, epsilon=1, adjacency="add-remove", line=line, pairs=2_000, population=50)
        assert report.ratio == pytest.approx(ratio, abs=1e-9)
    total = Scalar(lambda x, o: -abs(o[0] - x.sum()))
    assert audit(total, 1, epsilon=1, adjacency="replace", line=line, pairs=2_000, population=50).ratio > 5


class FixedCandidates:
    """Foreign: an exponential mechanism over a few public candidates, whose score is |records below - records above|.

    One record more moves the score by at most one, so rate epsilon / 2 is right and epsilon is not.
    """

    candidates = np.array([1.0, 2.0, 3.0, 5.0])

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def log_density(self, x: np.ndarray, values: np.ndarray) -> np.ndarray:
        known = np.isfinite(x)[:, :, None]
        side = np.sign(x[:, :, None] - self.candidates) * known
        weights = -self.rate * np.abs(side.sum(axis=1, where=known))
        chosen = values == self.candidates
        total = np.log(np.exp(weights).sum(axis=1))
        return np.where(chosen.any(axis=1), np.max(np.where(chosen, weights, -np.inf), axis=1) - total, -np.inf)


class NoisyMeans:
    """Foreign: Gaussian noise on a mean of bounded records; pure privacy does not hold at any epsilon."""

    def log_density(self, x: np.ndarray, values: np.ndarray) -> np.ndarray:
        known = np.isfinite(x)
        clipped = np.clip(np.where(known, x, 0.0), 0.0, 1.0)
        means = clipped.sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        return -0.5 * (values[:, 0] - means) ** 2


def test_foreign_mechanisms_are_audited() -> None:
    line = Line.between(0.0, 6.0, step=Fraction(1))
    options: dict[str, Any] = {"epsilon": 1, "adjacency": "add-remove", "pairs": 6_000, "population": 100}
    right, wrong = (audit(FixedCandidates(rate), 1, line=line, **options) for rate in (0.5, 1.0))
    assert right.passed and 0.95 < right.ratio <= 1 + 1e-9
    assert not wrong.passed and 1.9 < wrong.ratio <= 2 + 1e-9
    assert audit(NoisyMeans(), 1, line=Line.between(-50.0, 50.0), **options).ratio > 10


SHORT = [
    (m, arity, calibration, adaptation, adjacency, grid)
    for m, (arity, calibration), (adaptation, adjacency, grid) in itertools.product(
        (1, 2, 3, 4),
        ((2, "paper"), (2, "sharp"), (3, "sharp")),
        (
            ("conditional", "add-remove", None),
            ("edge", "add-remove", 1),
            ("edge", "replace", None),
            ("conditional", "replace", 0.5),
        ),
    )
    if m > 1 or arity == 2
]


@pytest.mark.parametrize("setting", SHORT, ids=lambda s: "-".join(map(str, s)))
def test_ours_keeps_to_epsilon_and_comes_close(setting: tuple[Any, ...]) -> None:
    """A short search, 4,000 pairs a setting: never above epsilon or the analytic ceiling, and near the lower of the
    two."""
    m, arity, calibration, adaptation, adjacency, grid = setting
    report = audit_release(
        evenly(m), epsilon=1, arity=arity, calibration=calibration, adaptation=adaptation, adjacency=adjacency,
        grid=grid, pairs=4_000, population=128,
    )  # fmt: skip
    assert report.pairs >= 4_000 and report.ceiling is not None
    assert report.ratio <= min(1.0, report.ceiling) + 1e-9
    assert report.ratio >= 0.95 * report.ceiling


@pytest.mark.parametrize("epsilon", [0.01, 0.7, 8])
def test_other_budgets(epsilon: float) -> None:
    report = audit_release(evenly(3), epsilon=epsilon, pairs=6_000, population=128)
    assert 0.95 <= report.ratio <= 1 + 1e-9


def test_the_witness_has_the_loss_that_is_reported() -> None:
    prior = pq.PiecewiseConstant([0, 1, 2, 3], [1e-3, 1, 1e-6])
    for adjacency, grid in (("add-remove", None), ("replace", 0.25)):
        keywords = {"epsilon": 2, "priors": prior, "adjacency": adjacency, "grid": grid}
        report = audit_release(evenly(3), pairs=3_000, population=100, **keywords)
        loss = pq.privacy_loss(report.x, report.neighbour, report.values, evenly(3), mechanism="tree", **keywords)
        assert abs(loss) == pytest.approx(report.loss, abs=1e-9)
        assert abs(len(report.x) - len(report.neighbour)) == (adjacency == "add-remove")
        common = len(set(report.x.tolist()) | set(report.neighbour.tolist()))
        assert common <= len(set(report.x.tolist())) + 1
        assert report.histogram.sum() == report.pairs


def test_searches_repeat() -> None:
    one, other = (audit_release([0.3, 0.6], epsilon=1, pairs=2_000, population=64, seed=5) for _ in range(2))
    assert one.to_dict() == other.to_dict()


def test_every_candidate_is_a_pair_of_neighbours() -> None:
    """Moves and crossings keep the invariant that columns differ in one record, under both adjacencies."""
    seen = 0
    for adjacency in ("add-remove", "replace"):

        class Spy:
            replace = adjacency == "replace"

            def log_density(self, x: np.ndarray, values: np.ndarray) -> np.ndarray:
                nonlocal seen
                half = len(x) // 2
                for a, b in zip(x[:half], x[half:], strict=True):
                    one, other = a[a < math.inf].tolist(), b[b < math.inf].tolist()
                    for v in list(one):
                        if v in other:
                            one.remove(v)
                            other.remove(v)
                    assert len(one) <= 1 and len(other) == (len(one) if self.replace else 0)
                    seen += 1
                assert np.all(values[:, 1:] >= values[:, :-1])
                return values.sum(axis=1) + np.where(x < math.inf, x, 0.0).sum(axis=1)

        search = Search(
            Spy(),
            3,
            epsilon=1,
            adjacency=adjacency,
            line=Line.between(-5, 5),
            rng=np.random.default_rng(0),
            population=40,
            records=4,
        )
        search.run(3_000)
    assert seen > 6_000


def test_ceiling_by_brute_force() -> None:
    """One mechanism at the root: the ceiling against all (n, k, rank) up to 12, in exact arithmetic."""
    for q, calibration in itertools.product((Fraction(1, 2), Fraction(1, 3), Fraction(3, 4)), ("paper", "sharp")):

        def target(n: int, q: Fraction = q, calibration: str = calibration) -> Fraction:
            return Fraction(math.floor(q * n)) if calibration == "paper" else q * n

        most = Fraction(0)
        for n in range(13):
            for rank in range(n + 1):
                sides = [(k, 1) for k in range(rank, n + 1)] + [(k, 0) for k in range(rank + 1)]
                moves = [abs(k + side - target(n + 1)) - abs(k - target(n)) for k, side in sides]
                most = max(most, max(moves) - min(moves))
        plan = pq.plan([q], epsilon=1, calibration=calibration)
        assert ceiling(plan) == pytest.approx(float(most) * plan.mechanisms[0].rate, abs=1e-12)


def test_ceilings_never_exceed_epsilon() -> None:
    for m, arity, calibration, adjacency in itertools.product(
        (1, 2, 5, 9), (2, 3, 4), ("paper", "sharp"), ("add-remove", "replace")
    ):
        plan = pq.plan(evenly(m), epsilon=1, arity=arity, calibration=calibration, adjacency=adjacency)
        assert all(0.7 < ceiling(plan, tied) <= 1 + 1e-12 for tied in (False, True))
    assert ceiling(pq.plan(evenly(2), epsilon=3, adjacency="replace")) == pytest.approx(0.75)
    assert ceiling(pq.plan(evenly(2), epsilon=3, arity=3)) == pytest.approx(0.875)


def test_table_of_the_long_run() -> None:
    """38 million pairs: none above epsilon, and each setting near it or near what analysis allows; two rows anew."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# pq audit --full ")
    rows = list(csv.DictReader(lines[1:]))
    assert tuple(rows[0]) == COLUMNS
    wanted = list(settings())
    assert [tuple(row[name] for name in COLUMNS[:6]) for row in rows] == [tuple(map(str, s.values())) for s in wanted]
    for setting, row in zip(wanted, rows, strict=True):
        ratio, most = float(row["ratio"]), float(row["ceiling"])
        assert int(row["pairs"]) >= 100_000
        assert ratio <= 1.0 + 1e-7 and ratio <= most + 1e-6  # as printed
        assert row["why"] == why(setting, ratio, most)
        assert ratio >= ENOUGH or most < ENOUGH or "unless records are at outputs" in row["why"]
    below = [float(row["ceiling"]) - float(row["ratio"]) for row in rows]
    assert sum(gap > 1e-6 for gap in below) == 12 and max(below) < 0.04  # as the page on privacy says
    assert all(row["grid"] == "1" for row, gap in zip(rows, below, strict=True) if gap > 1e-6)
    assert sum(float(row["ratio"]) < ENOUGH for row in rows) == 88
    assert sum(int(row["pairs"]) for row in rows) > 38_000_000


def test_settings_that_stay_short_of_their_ceiling() -> None:
    """Ten reach that of records off the outputs; in two the search stopped short of what it reaches without a grid."""
    rows = {tuple(row.items())[:6]: row for row in csv.DictReader(RESULTS.read_text(encoding="utf-8").splitlines()[1:])}
    searched = []
    for key, row in rows.items():
        ratio, most = float(row["ratio"]), float(row["ceiling"])
        if ratio < most - 1e-6:
            m, shape = int(row["m"]), {name: row[name] for name in ("calibration", "adjacency")}
            apart = ceiling(pq.plan(evenly(m), epsilon=1, arity=int(row["arity"]), **shape))
            searched.append(ratio >= apart - 1e-6)
            if not searched[-1]:
                assert (m, row["arity"], row["adjacency"]) == (29, "3", "replace")
                assert most == pytest.approx(apart, abs=1e-6)  # records at outputs add nothing
                assert float(rows[*key[:5], ("grid", "None")]["ratio"]) == pytest.approx(most, abs=1e-6)
    assert (searched.count(True), searched.count(False)) == (10, 2)  # as the page on privacy says


def test_report_prints_draws_and_serialises() -> None:
    report = audit_release([0.5], epsilon=1, pairs=500, population=64, grid=1)
    assert json.loads(json.dumps(report.to_dict()))["passed"] is True
    assert "within epsilon" in str(report) and f"{report.pairs:,}" in str(report)
    axes = Figure().subplots(1, 2)
    report.draw(*axes)
    assert sum(bar.get_height() for bar in axes[0].patches) == report.pairs
    assert len(axes[1].collections) == 3
    assert len(BINS) == len(report.histogram) + 1


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner, picture = CliRunner(), tmp_path / "audit.png"
    options = ["audit", "--quantiles", "0.5,0.25", "--pairs", "2000", "--seed", "3"]
    result = runner.invoke(main, [*options, "--prior", "cauchy(0, 1)", "--figure", str(picture), "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["quantiles"] == ["1/4", "1/2"] and 0.5 < report["ratio"] <= 1
    assert picture.read_bytes()[:4] == b"\x89PNG"
    for key, bound in privacy.SENSITIVITY.items():
        monkeypatch.setitem(privacy.SENSITIVITY, key, lambda q, bound=bound: bound(q) / 2)
    options[2] = "0.37,0.61"  # not laid out before: plans are kept
    result = runner.invoke(main, options)
    assert result.exit_code == 1 and "ABOVE EPSILON" in result.output


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--quantiles", "0.5,x"], "quantiles"),
        (["--quantiles", "1.5"], "quantiles"),
        (["--epsilon", "0"], "epsilon"),
        (["--epsilon", "inf"], "epsilon"),
        (["--arity", "1"], "arity"),
        (["--grid", "-1"], "grid"),
        (["--prior", "nonsense"], "prior"),
        (["--figure", "picture.abc", "--pairs", "100"], "figure"),
    ],
)
def test_command_refuses(options: list[str], named: str) -> None:
    result = CliRunner().invoke(main, ["audit", *options])
    assert result.exit_code == 2 and named in result.output, result.output
