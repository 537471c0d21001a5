"""Releases by margins on a grid and with a public total, by the public functions: laws, losses, broken variants."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import pq
from pq.core.grid import LATTICE_END
from pq.core.request import Request
from pq.core.scores import Target
from pq.private import prepare as prepared
from pq.private.columns.cells import Lattice
from pq.private.mechanisms.lattice import Margin, law, tie_tree
from pq.private.prepare import prepare

CHANCE = 1e-6  # probability that a right sampler fails one of the tests below
ROUNDING = 1e-9
ON_GRID: dict[str, Any] = {"epsilon": 1, "priors": pq.Uniform(-0.5, 2.5), "grid": 1, "mechanism": "margin"}
GAP = pq.PiecewiseConstant((-0.25, 0.25, 0.75, 1.25), (0.5, 1e-60, 0.5))
TAIL: dict[str, Any] = {"epsilon": 1, "priors": pq.Uniform(-1e-6, 1.0), "mechanism": "tree"}


def outcomes(quantiles: int) -> Iterator[Any]:
    """All that can come out on three values, leaves' shares (which split nothing) at a half."""
    for values in itertools.combinations_with_replacement((0.0, 1.0, 2.0), quantiles):
        if quantiles == 1:
            yield list(values)
        for share in tie_tree.SHARES if quantiles == 3 else ():
            yield {"values": list(values), "shares": [0.5, share, 0.5]}


def neighbours(most: int, adjacency: str) -> Iterator[tuple[list[int], list[int]]]:
    for size in range(most + 1):
        for column in itertools.combinations_with_replacement(range(3), size):
            for k in range(size):
                rest = [*column[:k], *column[k + 1 :]]
                yield from ([(list(column), rest)] if adjacency == "add-remove" else [])
                yield from ((list(column), [*rest, v]) for v in range(3) if adjacency == "replace")


def worst_loss(levels: list[float], most: int, **options: Any) -> float:
    """The largest loss of all outcomes over all neighbours, from the public log density."""
    known: dict[tuple[int, ...], Any] = {}
    worst = 0.0
    for pair in neighbours(most, options.get("adjacency", "add-remove")):
        keys = [tuple(sorted(column)) for column in pair]
        for key in keys:
            if key not in known:
                known[key] = np.array([pq.log_density(key, o, levels, **options) for o in outcomes(len(levels))])
        worst = max(worst, float(np.max(np.abs(known[keys[0]] - known[keys[1]]))))
    return worst


@pytest.mark.parametrize(
    ("levels", "options"),
    [
        ([0.5], {}),
        ([0.9], {}),
        ([0.9], {"public_total": 3}),
        ([0.2], {"public_total": 1000}),
        ([0.7], {"adjacency": "replace", "public_total": 4}),
        ([0.25, 0.5, 0.75], {}),
        ([0.5, 0.8, 0.9], {"public_total": 4}),
        ([0.25, 0.5, 0.75], {"adjacency": "replace"}),
    ],
)
def test_losses_stay_within_epsilon_and_come_near(levels: list[float], options: dict[str, Any]) -> None:
    assert (0.9 if len(levels) == 1 else 0.6) < worst_loss(levels, 4, **(ON_GRID | options)) <= 1.0 + ROUNDING


@pytest.mark.parametrize(("levels", "total"), [([0.9], 3), ([0.25, 0.5, 0.75], None)])
def test_half_the_sensitivity_is_seen(levels: list[float], total: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bound = tie_tree.sensitivity
    monkeypatch.setattr(tie_tree, "sensitivity", lambda *facts: bound(*facts) / 2)
    assert worst_loss(levels, 4, public_total=total, **ON_GRID) > 1.2


@pytest.mark.parametrize("levels", [[0.5], [0.25, 0.5, 0.75]])
def test_probabilities_add_up_and_draws_follow_them(levels: list[float]) -> None:
    x = [0, 1, 1, 1, 2, 2, 7]
    chances = {str(o): math.exp(pq.log_density(x, o, levels, **ON_GRID)) for o in outcomes(len(levels))}
    assert math.isclose(sum(chances.values()), 1.0, rel_tol=1e-12)
    rng, drawn = np.random.default_rng(3), dict.fromkeys(chances, 0)
    for _ in range(1500):
        one = pq.release(x, levels, rng=rng, **ON_GRID)
        values = one.values.tolist()
        shares = {"values": values, "shares": [0.5, one.outcome.get("shares", [0, 0])[1], 0.5]}
        drawn[str(values if len(levels) == 1 else shares)] += 1
    often = [key for key, chance in chances.items() if 1500 * chance >= 10]
    observed, expected = [drawn[key] for key in often], [1500 * chances[key] for key in often]
    rest = 1500 - sum(expected)
    observed, expected = [*observed, 1500 - sum(observed)], [*expected, rest]
    keep = [k for k, count in enumerate(expected) if count > 1e-6]
    statistic = sum((observed[k] - expected[k]) ** 2 / expected[k] for k in keep)
    assert stats.chi2.sf(statistic, len(keep) - 1) > CHANCE


def test_a_release_keeps_its_shares() -> None:
    x, levels = np.random.default_rng(0).integers(0, 3, 50), [0.75, 0.25, 0.5, 0.25]
    one = pq.release(x, levels, rng=1, **ON_GRID)
    again = pq.Release.from_dict(one.to_dict())
    assert again.to_dict() == one.to_dict() and len(again.outcome["shares"]) == 3 and one.plan is None
    outcome = {"values": one.values, **again.outcome}
    assert -20.0 < pq.log_density(x, outcome, levels, **ON_GRID) < 0.0
    assert abs(pq.privacy_loss(x, x[1:], outcome, levels, **ON_GRID)) <= 1.0 + ROUNDING
    assert pq.log_density(x, outcome | {"values": one.values + 0.5}, levels, **ON_GRID) == -math.inf
    assert pq.simulate(x, levels, trials=5, rng=2, **ON_GRID).shape == (5, 4)
    for bad in (one.values, outcome | {"shares": [0.5]}, outcome | {"shares": "abc"}, outcome | {"shares": 3}):
        with pytest.raises(ValueError, match="outcome"):
            pq.log_density(x, bad, levels, **ON_GRID)


def test_bad_public_arguments() -> None:
    with pytest.raises(ValueError, match="grid"):
        pq.release(None, [0.5], epsilon=1, priors=pq.Uniform(0, 1), mechanism="margin")
    with pytest.raises(ValueError, match="arity"):
        pq.release(None, [0.5], arity=3, **ON_GRID)


def test_losses_of_many_records_have_all_their_digits() -> None:
    """With 2^45 records at either end and one between them, far outputs have as many nats; a loss is still exact."""
    many = 2**45
    for levels, prior in (([0.5], pq.Uniform(-0.5, 2.5)), ([0.9], pq.Normal(1, 2))):
        known = ON_GRID | {"priors": prior}
        one, other = pq.Counts([0, 1, 2], [many, 1, many]), pq.Counts([0, 1, 2], [many, 1, many + 1])
        losses = [pq.privacy_loss(one, other, [o], levels, **known) for o in (0.0, 1.0, 2.0)]
        assert max(map(abs, losses)) <= 1.0 + ROUNDING
        if levels == [0.9]:  # the margins of 0 and 1 fall by 0.9, that of 2, the best one, rises by 0.1
            assert np.allclose(losses, [5 / 9, 5 / 9, 0.0], rtol=0.0, atol=1e-9)


def test_the_outermost_multiples_have_all_mass_beyond_them() -> None:
    """Whether a record is there or not; under a prior of all scales that is much of the law."""
    known = ON_GRID | {"priors": pq.LogUniform(), "epsilon": 0.01}
    mass = float(pq.LogUniform().log_mass(LATTICE_END - 0.5, math.inf))
    for x, end in itertools.product(([0.0] * 4, [0.0] * 4 + [-1e300]), (-LATTICE_END, LATTICE_END)):
        assert abs(pq.log_density(x, [end], [0.1], **known) - mass) < 0.1
        assert abs(pq.privacy_loss(x, [*x, end], [end], [0.1], **known)) <= 0.01 + ROUNDING


def test_cost() -> None:
    """epsilon^2 / 2 where it may flip, else epsilon^2 / 8; ten records of one person cost what one does at epsilon."""

    def rho(levels: list[float], prior: pq.Prior, **options: Any) -> Any:
        return Margin(Request.of(levels, **(ON_GRID | {"priors": prior} | options))).rho

    wide = pq.Normal(0, 1e6)
    assert rho([0.5], pq.Uniform(0, 9)) == Fraction(1, 2) and rho([0.5], wide) == Fraction(1, 8)
    assert rho([0.5], pq.Uniform(0, 9), max_contributions=10) == Fraction(1, 2)
    assert rho([0.2, 0.5, 0.7], wide) == Fraction(1, 4) * (Fraction(1, 8) + Fraction(1, 2))
    assert rho([0.2, 0.5, 0.7], pq.Uniform(0, 9)) == Fraction(1, 4)
    assert rho([0.5], wide, epsilon=math.inf) == math.inf


def test_what_says_whether_it_flips_is_the_law() -> None:
    for prior in (pq.Uniform(0, 9), pq.Normal(0, 1e6), pq.Laplace(0, 1), pq.Uniform(0.6, 1.4)):
        maker = Margin(Request.of([0.5], **(ON_GRID | {"priors": prior})))
        column = maker.column(np.array([1.0]), None)
        assert isinstance(column, Lattice)
        root = maker.ties.law(column, maker.ties.plan.root, (-math.inf, math.inf, 0, 0))
        assert isinstance(root, law.MarginLaw)
        assert maker.rho == (Fraction(1, 2) if root.flips and root.only is None else Fraction(1, 8))


def tail_loss(total: Any, levels: Any = (0.99,), **options: Any) -> float:
    """The largest loss between two hundred records of one value, which is hardly ever released, and one more above."""
    value = 0.5 if "grid" in options else 0.0
    few, more = [value] * 200, [value] * 200 + [1.0]
    laws = []
    for column in (few, more):
        public = total(column) if callable(total) else total
        points = [[-5e-7], [0.5]] if "grid" not in options else [[0.0], [0.5], [1.0]]
        known = {"public_total": public, **TAIL, **options}
        laws.append([pq.log_density(column, o, list(levels), **known) for o in points])
    return float(np.max(np.abs(np.array(laws[0]) - np.array(laws[1]))))


@pytest.mark.parametrize("options", [{}, {"grid": 0.5, "priors": GAP}])
def test_a_public_total_halves_the_sensitivity_of_the_tree(options: dict[str, Any]) -> None:
    """Within epsilon for totals far too small and far too large; what counts the records instead loses 1.98 epsilon."""
    losses = [tail_loss(total, **options) for total in (0, 100, 201, 10**6, 10**30)]
    assert 0.9 < max(losses) <= 1.0 + ROUNDING
    assert math.isclose(tail_loss(len, **options), 1.98, abs_tol=1e-6)


def test_the_target_that_a_public_total_gives() -> None:
    """Exactly `q n0 + (n - n0) / 2`, against the density of two cells by hand, and the rate epsilon."""
    q, total, n = Fraction(9, 10), 30, 37
    target = q * total + Fraction(n - total, 2)
    assert sum(Target.of(q, n, "shifted", total)) == target
    x = [1.0] * 30 + [2.0] * 7
    scores = [-abs(rank - target) for rank in (0, 30, 37)]
    logs = [math.log(width / 4) + float(score) for width, score in zip((1, 1, 2), scores, strict=True)]
    options: dict[str, Any] = {"epsilon": 1, "priors": pq.Uniform(0, 4), "public_total": total}
    got = [pq.log_density(x, [o], [float(q)], **options) for o in (0.5, 1.5, 3.0)]
    expected = np.array(logs) - np.logaddexp.reduce(logs) - np.log([1.0, 1.0, 2.0])
    assert np.allclose(got, expected, rtol=1e-12, atol=1e-12)
    values = pq.simulate(x, [float(q)], trials=1000, rng=5, **options)[:, 0]
    share = math.exp(got[2]) * 2.0
    assert abs(np.mean(values > 2.0) - share) < 5.0 * math.sqrt(share * (1.0 - share) / 1000)  # six in ten millions


def test_where_the_tree_does_not_use_a_public_total() -> None:
    x = [1.0] * 30 + [2.0] * 7
    cases: tuple[tuple[list[float], dict[str, Any]], ...] = (
        ([0.25, 0.5, 0.75], {}),
        ([0.9], {"adjacency": "replace"}),
        ([0.9], {"calibration": "paper"}),
    )
    for levels, options in cases:
        known: dict[str, Any] = {"epsilon": 1, "priors": pq.Uniform(0, 4), "mechanism": "tree", **options}
        with_total, without = (pq.release(x, levels, rng=2, public_total=total, **known) for total in (50, None))
        assert np.array_equal(with_total.values, without.values)
    one = pq.release(x, [0.9], epsilon=1, priors=pq.Uniform(0, 4), mechanism="tree", public_total=37, rng=2)
    assert one.plan is not None and one.plan.mechanisms[0].rate == 1.0
    again = pq.Release.from_dict(one.to_dict())
    assert again.to_dict() == one.to_dict() and again.plan == one.plan
    prepared.forget()
    assert prepare([0.9], epsilon=1, priors=pq.Uniform(0, 4), mechanism="tree").plan.public_total is None  # type: ignore[attr-defined]
