"""The audit over the protocol: every mechanism keeps to epsilon and comes near it, broken ones are found, and draws
follow the exact law.

Losses are exact differences of log densities. The statistical test has fixed seeds, and says how often a right sampler
fails it.
"""

from __future__ import annotations

import copy
import csv
import itertools
import json
import math
import types
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import pq
from pq.cli import main
from pq.core.request import Request
from pq.private.columns.cells import Lattice, Points
from pq.private.mechanisms import MECHANISMS, Mechanism, Outcome, mechanism_for
from pq.private.mechanisms.cells import Cells
from pq.private.mechanisms.joint import Joint, chain
from pq.private.mechanisms.lattice import Margin
from pq.private.mechanisms.mixed import Mixed
from pq.private.randomness import Source
from pq.truth.audit.laws import LAW_COLUMNS, laws, release_of
from pq.truth.audit.outcomes import audit_mechanism
from pq.truth.audit.report import AuditReport
from pq.truth.density import difference_of

RESULTS = Path(__file__).parents[2] / "proofs_checks" / "audit_laws.csv"
OURS = ("tree", "joint", "mixed", "cells", "margin")
ROUNDING = 1e-9
SIDES = ("add-remove", "replace")


# --- broken variants --------------------------------------------------------------------------------------------------


class CountedTotal(Joint, name="counted total"):
    """JointExp's total, the number of records, which moves the targets as well, at the rate of a latent one."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.joint = replace(self.joint, total="records")


class OwnTotals(Joint, name="own totals"):
    """The totals that are tried depend on the number of records."""

    def _with_own(self, column: Points) -> Joint:
        twin = copy.copy(self)
        twin.joint = replace(self.joint, total_step=Fraction(len(column.values) + 1))
        return twin

    def draw(self, column: Points, source: Source) -> Outcome:  # type: ignore[override]
        return Joint.draw(self._with_own(column), column, source)

    def log_parts(self, column: Points, outcome: Outcome) -> tuple[Fraction, float]:  # type: ignore[override]
        return Joint.log_parts(self._with_own(column), column, outcome)


class ReplacedAtHalf(Joint, name="replaced at half"):
    """Half of epsilon for each record of score, where a replacement moves two counts."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.joint = replace(self.joint, epsilon=2 * self.joint.epsilon)


class UnpaidLook(Cells, name="unpaid look"):
    """The whole budget for counts of cells that were found with a part of it."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.plan = replace(self.plan, epsilon=self.plan.epsilon + sum(self.plan.budgets[:-1], Fraction(0)))


class NoiseOfOneCount(Cells, name="noise of one count"):
    """Two counts move under replace, and each has the noise of one."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.plan = replace(self.plan, adjacency="add-remove")


class TiesOnce(Cells, name="ties once"):
    """Draws from counts that lose tied records; costs no privacy, but is not the law."""

    def draw(self, column: Points | Lattice, source: Source) -> Outcome:
        return super().draw(Points(np.unique(column.values)), source)


class PaidTwice(Mixed, name="paid twice"):
    """The whole budget again after the look."""

    @property
    def _rest(self) -> Fraction:
        return Fraction(self.request.budget)


class ChargedAsBounded(Margin, name="charged as bounded"):
    """Permute-and-flip at the zCDP of the exponential mechanism, whose losses have a range of epsilon."""

    @property
    def rho(self) -> Fraction:
        return Fraction(self.request.budget) ** 2 / 8


BROKEN = [name for name, kind in MECHANISMS.items() if kind.__module__ == __name__]


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    yield
    for name in BROKEN:
        del MECHANISMS[name]


def searched(mechanism: str, m: int, pairs: int, **options: Any) -> AuditReport:
    levels = [Fraction(i, m + 1) for i in range(1, m + 1)]
    return audit_mechanism(levels, epsilon=1, mechanism=mechanism, pairs=pairs, **options)


@pytest.mark.parametrize(
    ("mechanism", "m", "pairs", "least", "options"),
    [
        ("counted total", 2, 150, 1.2, {}),
        ("counted total", 3, 80, 1.2, {"assume_smooth": True}),
        ("own totals", 1, 40, math.inf, {}),
        ("replaced at half", 1, 150, 1.5, {"adjacency": "replace"}),
        ("unpaid look", 1, 150, 1.2, {"size_guess": 100}),
        ("noise of one count", 1, 80, 1.9, {"adjacency": "replace", "grid": 1}),
        ("paid twice", 1, 80, 1.01, {}),
    ],
)
def test_broken_variants_are_found(mechanism: str, m: int, pairs: int, least: float, options: dict[str, Any]) -> None:
    report = searched(mechanism, m, pairs, **options)
    assert report.ratio >= least and not report.passed


# --- ours -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "m", "pairs", "least"),
    [("tree", 1, 150, 0.85), ("joint", 1, 150, 0.35), ("cells", 1, 60, 0.85), ("margin", 2, 150, 0.7)],
)
@pytest.mark.parametrize("adjacency", SIDES)
def test_ours_keep_to_epsilon_and_come_near(mechanism: str, m: int, pairs: int, least: float, adjacency: str) -> None:
    """Values alone of a joint release lose less: its total is latent under replace, and is what moves most."""
    for grid in (1,) if mechanism == "margin" else (None, 1):
        report = searched(mechanism, m, pairs, adjacency=adjacency, grid=grid)
        assert least < report.ratio <= 1.0 + ROUNDING and report.passed


def test_a_look_and_what_follows_keep_to_epsilon() -> None:
    """Few pairs, which take long; the table of the long run comes near."""
    for adjacency in SIDES:
        assert 0.5 < searched("mixed", 1, 40, adjacency=adjacency, population=10).ratio <= 1.0 + ROUNDING


@pytest.mark.parametrize("mechanism", ["joint", "cells", "margin"])
def test_the_witness_has_its_loss(mechanism: str) -> None:
    """By the public function, from what a report in JSON says; and the same search finds the same."""
    options: dict[str, Any] = {
        "adjacency": "replace",
        "grid": 0.5,
        "size_guess": 50.0,
        "priors": pq.Uniform(-4.25, 4.25),
    }
    one, other = (searched(mechanism, 2, 60, seed=3, population=16, **options) for _ in range(2))
    told = json.loads(json.dumps(one.to_dict()))
    assert told == other.to_dict() and told["mechanism"] == mechanism
    loss = pq.privacy_loss(
        told["x"], told["neighbour"], told["outcome"], [1 / 3, 2 / 3], epsilon=1, mechanism=mechanism, **options
    )
    assert abs(loss) == pytest.approx(one.loss, abs=1e-9) and one.loss > 0.0


def test_table_of_a_long_run() -> None:
    """Every mechanism, adjacency, grid or none: never above epsilon, somewhere above nine tenths; one row anew."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# pq audit --each ")
    rows = list(csv.DictReader(lines[1:]))
    wanted = [setting for setting in laws() if setting["mechanism"] in OURS]
    assert tuple(rows[0]) == LAW_COLUMNS
    assert [[row[name] for name in LAW_COLUMNS[:6]] for row in rows] == [list(map(str, s.values())) for s in wanted]
    assert all(int(row["pairs"]) >= 192 and float(row["ratio"]) <= 1.0 + 1e-6 for row in rows)
    for kind in itertools.product(OURS, SIDES):
        assert max(float(row["ratio"]) for row in rows if (row["mechanism"], row["adjacency"]) == kind) > 0.9, kind
    row, setting = next(
        (row, s) for row, s in zip(rows, wanted, strict=True) if s["mechanism"] == "cells" and s["grid"] == 1
    )
    command = dict(itertools.pairwise(lines[0].split()))
    again = audit_mechanism(**release_of(setting), pairs=int(command["--pairs"]), seed=int(command["--seed"]))
    assert (str(again.pairs), again.prior) == (row["pairs"], row["prior"])
    assert again.ratio == pytest.approx(float(row["ratio"]), abs=1e-5)


def test_command(tmp_path: Path) -> None:
    runner, options = CliRunner(), ["audit", "--quantiles", "0.5", "--pairs", "40", "--json"]
    found = runner.invoke(
        main, [*options, "--mechanism", "cells", "--grid", "0.5", "--size", "100", "--prior", "uniform(0, 9)"]
    )
    assert found.exit_code == 0, found.output
    told = json.loads(found.stdout)
    assert told["mechanism"] == "cells" and len(told["outcome"]["counts"]) > 1 and 0.9 < told["ratio"] <= 1.0 + ROUNDING
    for wrong, named in (
        (["margin"], "grid"),
        (["joint", "--arity", "3"], "arity"),
        (["joint", "--epsilon", "inf"], "epsilon"),
    ):
        refused = runner.invoke(main, [*options, "--mechanism", *wrong])
        assert refused.exit_code == 2 and named in refused.output, refused.output


# --- laws add up, and draws follow them -------------------------------------------------------------------------------


THREE: dict[str, Any] = {"epsilon": 1, "priors": pq.Uniform(-0.5, 2.5), "grid": 1}


def all_log_densities(mechanism: str, x: list[float], **options: Any) -> np.ndarray:
    """Of the median, of all values on the lattice."""
    known = THREE | options | {"mechanism": mechanism}
    prior = known["priors"]
    values = [v for v in (0.0, 1.0, 2.0) if prior.log_mass(v - 0.5, v + 0.5) > -math.inf]
    return np.array([pq.log_density(x, [o], [0.5], **known) for o in values])


@pytest.mark.parametrize("mechanism", ["tree", "joint", "margin"])
@pytest.mark.parametrize("adjacency", SIDES)
def test_probabilities_of_all_outcomes_add_up(mechanism: str, adjacency: str) -> None:
    for x in ([], [1.0], [0.0, 1.0, 1.0, 2.0]):
        logs = all_log_densities(mechanism, x, adjacency=adjacency)
        assert np.sum(np.exp(logs)) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("adjacency", SIDES)
def test_probabilities_after_a_look_add_up_to_that_of_the_look(adjacency: str) -> None:
    request = Request.of([0.5], **(THREE | {"adjacency": adjacency, "mechanism": "mixed", "epsilon": 2}))
    maker = mechanism_for(request)
    assert isinstance(maker, Mixed)
    column = maker.column(np.array([0.0, 1.0, 1.0, 2.0]), None)
    for seed in range(3):
        places = list(maker.look.draw(column, Source(seed).bytes))
        far, look = maker.look.log_parts(column, tuple(places))
        found = [maker.log_parts(column, Outcome(np.array([o]), None, (("places", places),))) for o in (0.0, 1.0, 2.0)]
        assert math.fsum(math.exp(rest - float(part) - (look - float(far))) for part, rest in found) == pytest.approx(
            1.0
        )


def test_groups_without_their_factorial_do_not_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """By more than a thousandth, where the right law does to twelve digits."""
    monkeypatch.setattr(chain, "math", types.SimpleNamespace(**{**vars(math), "log": lambda value: 0.0}))
    known = THREE | {"mechanism": "joint"}
    pairs = itertools.combinations_with_replacement((0.0, 1.0, 2.0), 2)
    total = sum(math.exp(pq.log_density([1.0], list(pair), [0.25, 0.75], **known)) for pair in pairs)
    assert abs(total - 1.0) > 1e-3


def ratio_off(drawing: Mechanism, law: Mechanism, x: Any, neighbours: Any, trials: int) -> float:
    """How far means of `p(outcome | neighbour) / p(outcome | x)` are from one, over draws on x, in units of what each
    exceeds with probability 1e-7 if the sampler is right.

    A mean is one, as both laws add up. The ratios lie between exp(-epsilon) and exp(epsilon), so that Hoeffding's
    inequality bounds the chance.
    """
    source, epsilon = Source(7), float(law.request.epsilon)
    mine, *others = [law.column(np.sort(np.array(values, dtype=np.float64)), None) for values in (x, *neighbours)]
    ratios = np.empty((trials, len(others)))
    for i in range(trials):
        outcome = drawing.draw(mine, source)
        one = law.log_parts(mine, outcome)
        ratios[i] = [math.exp(difference_of(law.log_parts(other, outcome), one)) for other in others]
    width = 2.0 * math.sinh(epsilon) * math.sqrt(math.log(2.0 / 1e-7) / (2.0 * trials))
    return float(np.max(np.abs(np.mean(ratios, axis=0) - 1.0))) / width


X = [0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0]
BESIDE = {"add-remove": ([*X, 1.0], [*X, 2.0], X[1:]), "replace": ([*X[1:], 1.0], [*X[1:], 2.0])}


@pytest.mark.parametrize("mechanism", OURS)
@pytest.mark.parametrize("adjacency", SIDES)
def test_draws_follow_the_law(mechanism: str, adjacency: str) -> None:
    """Ratios on neighbours have the mean that the law says; right samplers fail one of all these with probability below
    1e-5."""
    for grid in (1,) if mechanism == "margin" else (None, 1):
        options = THREE | {"grid": grid, "adjacency": adjacency, "mechanism": mechanism}
        maker = mechanism_for(Request.of([0.3, 0.6], **options))
        assert ratio_off(maker, maker, X, BESIDE[adjacency], 80 if mechanism == "mixed" else 300) < 1.0


def test_counts_that_lose_tied_records_do_not_follow_the_law() -> None:
    request = Request.of([0.5], **(THREE | {"mechanism": "cells"}))
    assert ratio_off(TiesOnce(request), Cells(request), X, [[*X, 1.0]], 600) > 1.5


# --- what is charged --------------------------------------------------------------------------------------------------


def most_divergence(mechanism: str, one: list[float], other: list[float], **options: Any) -> float:
    """The largest Renyi divergence of the exact laws over its order, in either direction."""
    p, q = (all_log_densities(mechanism, x, **options) for x in (one, other))
    orders = (1.001, 1.5, 2.0, 4.0, 16.0)
    return max(
        math.log(float(np.sum(np.exp(a * first + (1.0 - a) * second)))) / (a - 1.0) / a
        for first, second in ((p, q), (q, p))
        for a in orders
    )


@pytest.mark.parametrize("mechanism", ["tree", "joint", "margin", "charged as bounded"])
def test_zcdp_is_above_exact_divergences(mechanism: str) -> None:
    """Of permute-and-flip at epsilon^2 / 8 it is not."""
    options: dict[str, Any] = {"priors": pq.Uniform(-0.5, 1.5)}
    maker = mechanism_for(Request.of([0.5], **(THREE | options | {"mechanism": mechanism})))
    pairs = [([0.0, 1.0], [1.0]), ([0.0], []), ([0.0, 0.0, 1.0], [0.0, 0.0])]
    most = max(most_divergence(mechanism, *pair, **options) for pair in pairs)
    assert (most <= float(maker.rho) * (1.0 + ROUNDING)) == (mechanism != "charged as bounded")
