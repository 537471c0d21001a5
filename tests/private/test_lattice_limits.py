"""The linear programs of `benchmarks.limits`: known answers, solutions that are private, laws that stay above."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.grid_gaps import N, margin_gap, record_gap, thousand_ages
from benchmarks.limits import CASES, LAWS, SmallLattice, expected_gaps, limit, margin_law
from pq.core.exact import rank

WORST = (0.184, 0.101, 0.273, 0.270)  # of the cases, to three places
SMALL = SmallLattice(3, range(1, 4), Fraction(1), Fraction(1, 2), 2)


@pytest.mark.parametrize(("case", "worst"), list(zip(CASES, WORST, strict=True)), ids=str)
def test_limits_are_private_and_below_our_laws(case: SmallLattice, worst: float) -> None:
    """The program's solution keeps the definition of privacy, checked pair by pair, and none of our laws beats it."""
    least, columns, chances = limit(case, "worst")
    mean, _, _ = limit(case, "mean")
    assert round(least, 3) == worst and mean < least
    where = {column: chances[i] for i, column in enumerate(columns)}
    for column, v in itertools.product(columns, range(case.values)):
        other = where.get(tuple(sorted((*column, v))))
        if other is not None:
            bound = math.exp(case.epsilon) * (1.0 + 1e-6)
            assert np.all(where[column] <= bound * other + 1e-9) and np.all(other <= bound * where[column] + 1e-9)
    gaps = [float(where[column] @ case.gaps(column)) for column in case.columns]
    assert max(gaps) <= least + 1e-7
    for name in ("margin, flip", "margin, flip, public total", "records, flip, least total", "remainder"):
        ours = expected_gaps(case, LAWS[name])
        assert ours.max() >= least and ours.mean() >= mean
    assert ours.max() <= 1.8 * least and ours.mean() <= 1.3 * mean  # the law by remainders, the last one


def test_margins_in_records_gain_off_the_middle() -> None:
    """At q = 4/5 they beat margins in ranks, on ages too, by a lower bound of the total; one too low costs nothing."""
    case = CASES[3]
    ranks, records = (expected_gaps(case, LAWS[name]) for name in ("margin, flip", "records, flip, least total"))
    assert records.max() < 0.8 * ranks.max() and records.mean() < 0.65 * ranks.mean()
    q, epsilon, rng = Fraction(4, 5), Fraction(1), np.random.default_rng(0)
    columns = [thousand_ages(rng) for _ in range(40)]
    laws = [margin_gap(q, epsilon, True), record_gap(q, epsilon, N), record_gap(q, epsilon, N // 2)]
    means = [np.mean([gap(x, rng) for x in columns]) for gap in laws]
    assert means[1] < 0.85 * means[0] and means[2] < 1.02 * means[0]


def test_two_values_are_known() -> None:
    """One record on two values: half of e^-epsilon of the other one, whose gap is one half; permute-and-flip has it."""
    case = SmallLattice(2, range(1, 2), Fraction(1), Fraction(1, 2), 1)
    least, _, _ = limit(case, "worst")
    assert math.isclose(least, math.exp(-1) / 4, rel_tol=1e-7)
    assert math.isclose(float(expected_gaps(case, LAWS["margin, flip"]).max()), least, rel_tol=1e-7)


def test_a_law_that_spends_too_much_beats_the_limit() -> None:
    """The limit tells private laws from one that is given twice the budget."""
    double = SmallLattice(SMALL.values, SMALL.sizes, 2 * SMALL.epsilon, SMALL.q, SMALL.total)
    least, mean = limit(SMALL, "worst")[0], limit(SMALL, "mean")[0]
    assert expected_gaps(SMALL, LAWS["margin, flip"]).max() >= least
    spent = np.array([float(np.exp(margin_law(double, c, flip=True)) @ SMALL.gaps(c)) for c in SMALL.columns])
    assert spent.max() < least and spent.mean() < mean


def test_gaps_are_those_of_the_definition() -> None:
    """Where q n is a whole number the gap is the distance of that rank from those that an output stands for."""
    case = SmallLattice(4, range(4, 5), Fraction(1), Fraction(1, 2), 4)
    for column in case.columns:
        target = rank(case.q, len(column))
        for o, gap in enumerate(case.gaps(column)):
            ranks = range(sum(v < o for v in column), sum(v <= o for v in column) + 1)
            assert gap == min(abs(r - target) for r in ranks)
