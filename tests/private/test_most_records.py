"""How many records a column may have: exact ranks end somewhere, and here is shown where.

No rule for more can save it. Suppose that a rule leaves columns of up to N records as they are, and makes neighbours of
neighbours. Of N + 1 records it has to make what differs in one record from all columns with one of them less: which are
the records themselves, no fewer. So a largest number of records is a promise of whoever has the column.
"""

from __future__ import annotations

import itertools
import math
import tracemalloc
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest

import pq
from pq.private.columns.counts import MOST
from pq.private.mechanisms.joint.chain import EVERYWHERE, ChainCells, Records, forward, gather
from pq.private.mechanisms.joint.law import MOST_IN_JOINT
from pq.private.mechanisms.joint.plan import MOST_PLACES, JointPlan

TIPPED = pq.PiecewiseConstant([0, 1, 2, 3, 4], [1e-6, 1, 1e-6, 1e-6])


def loss_of_one_more(total: int) -> float:
    """Of an output two ranks from the target, between so many records and one more, which is low."""
    half = total // 2
    one = pq.Counts([1.0, 2.0, 3.0], [half - 1, 1, total - half])
    other = pq.Counts([0.5, 1.0, 2.0, 3.0], [1, half - 1, 1, total - half])
    return pq.privacy_loss(one, other, [2.5], [0.5], epsilon=1, priors=TIPPED, mechanism="tree")


def test_one_record_more_costs_epsilon_up_to_the_most_and_more_beyond() -> None:
    assert MOST == 2.0**53
    for total in (100, 2**30, 2**50, 2**53 - 4, 2**53 - 2):
        assert 0.999 < loss_of_one_more(total) <= 1.0
    assert loss_of_one_more(2**53) > 1.99  # a low record more is a high one less


def largest_joint_loss(total: int, grid: float | None) -> float:
    """Of outputs near their targets, between columns of ties and neighbours."""
    levels, largest = [0.25, 0.5, 0.75], 0.0
    options: dict[str, Any] = {"epsilon": 1, "priors": pq.Uniform(0, 11), "mechanism": "joint", "grid": grid}
    for off in (0, 2):
        values, counts, before = [], [], 0
        for place, level in enumerate(levels):
            values += [3.0 * place + 1.0, 3.0 * place + 2.0, 3.0 * place + 3.0]
            counts += [round(level * total) - before - 1 + off, 1, 1]
            before = round(level * total) + 1 + off
        values, counts = [*values, 10.0], [*counts, total - before]
        for place, outputs, more in itertools.product((0, 2, 9), ([2.0, 5.0, 8.0], [3.0, 6.0, 9.0]), (0, 8)):
            columns = [pq.Counts(values, counts), pq.Counts(values, [c + (k == place) for k, c in enumerate(counts)])]
            drawn = {"values": outputs, "total": total + more}
            largest = max(largest, abs(pq.privacy_loss(*columns, drawn, levels, **options)))
    return largest


@pytest.mark.parametrize("grid", [None, 1])
def test_a_joint_release_keeps_to_epsilon_up_to_its_most(grid: float | None) -> None:
    for total in (2**20, MOST_IN_JOINT):
        assert 0.5 < largest_joint_loss(total, grid) <= 1.0 + 1e-3


def exact_log_weight(plan: JointPlan, cells: ChainCells, n: int, total: float) -> mpmath.mpf:
    """Log of what all ways to place outputs weigh for a total, by scores that are fractions."""
    shares = [Fraction(total * float(share)) for share in plan.shares]
    scores, masses = [], []
    for way in itertools.combinations_with_replacement(range(len(cells.rank)), plan.size):
        counts = np.diff([0, *(int(cells.rank[cell]) for cell in way), n]).tolist()
        scores.append(sum(abs(count - share) for count, share in zip(counts, shares, strict=True)))
        groups = [(cell, way.count(cell)) for cell in set(way)]
        masses.append(math.prod(math.exp(cells.log_mass[cell]) ** g / math.factorial(g) for cell, g in groups))
    rate, least = Fraction(plan.rate), min(scores)
    terms = [
        mass * mpmath.exp(-mpmath.mpf(float(rate * (score - least))))
        for score, mass in zip(scores, masses, strict=True)
    ]
    return mpmath.log(mpmath.fsum(terms)) - mpmath.mpf((rate * least).numerator) / (rate * least).denominator


def largest_chain_off(most: int, seed: int) -> float:
    """By how many records what one more changes in the weight of few values differs from fractions."""
    rng, largest = np.random.default_rng(seed), 0.0
    for _ in range(60):
        levels = np.sort(rng.choice([0.1, 0.25, 0.3, 0.5, 0.7, 0.99], rng.integers(1, 4), replace=False)).tolist()
        plan = JointPlan.of(levels, epsilon=0.3, priors=pq.Uniform(0, 5), total="drawn")
        counts = rng.integers(1, most // 4, rng.integers(1, 5))
        more = counts + (np.arange(len(counts)) == rng.integers(len(counts)))
        total = round(rng.choice([0.7, 1.0]) * int(counts.sum()) / plan.total_unit) * plan.total_unit
        off = []
        for column in (counts, more):
            records = Records.of(plan, np.arange(1.0, len(counts) + 1.0), np.append(0, np.cumsum(column)))
            cells = gather(plan, records, [EVERYWHERE])
            every = np.ones((plan.size, len(cells.rank)), dtype=bool)
            weight = forward(plan, cells, total, records.n, every).log_weight
            off.append(weight - exact_log_weight(plan, cells, int(column.sum()), total))
        largest = max(largest, abs(float(off[0] - off[1])) / plan.rate)
    return largest


def test_weights_of_few_values_end_before_records_do() -> None:
    with mpmath.workdps(50):
        assert largest_chain_off(MOST_IN_JOINT, 0) < 1e-3
        assert largest_chain_off(2**52, 0) > 0.1


def largest_part_off(total: int, places: int) -> Fraction:
    """By how much the weight of records before a sub-place differs from fractions."""
    values, largest = np.array([1.0, 2.0, 3.0]), Fraction(0)
    plan: Any = SimpleNamespace(step=Fraction(1), places=places)
    for more in (0, 1):
        before = [0, total // 4 + 1, total // 4 + 2 + more, total + more]
        exact = [
            low + Fraction((high - low) * sub, places)
            for low, high in itertools.pairwise(before)
            for sub in range(places)
        ]
        weights = Records.of(plan, values, np.array(before)).ranks
        assert weights is not None
        largest = max([largest, *(abs(Fraction(weight) - true) for weight, true in zip(weights, exact, strict=False))])
    return largest


@pytest.mark.parametrize("places", [64, 1000])
def test_parts_of_records_on_a_grid_end_before_records_do(places: int) -> None:
    assert MOST_IN_JOINT == 2**40
    assert largest_part_off(MOST_IN_JOINT, places) < Fraction(1, 1000)
    assert largest_part_off(2**52, places) > Fraction(1, 4)
    assert 1 < largest_part_off(2**53, places) < 2


def test_a_value_on_a_grid_takes_a_kilobyte() -> None:
    """Two floats for each of at most 64 places, and hardly more while they are made."""
    plan: Any = SimpleNamespace(step=Fraction(1), places=MOST_PLACES)
    values = np.arange(20_000.0)
    tracemalloc.start()
    records = Records.of(plan, values, None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert records.n == len(values) and MOST_PLACES == 64
    assert len(values) * 1024 <= peak < 1.1 * len(values) * 1024
