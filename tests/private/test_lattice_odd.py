"""Odd records, priors, rates and public totals: laws on a grid never raise or warn, and what they draw can come out."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import pq
from pq.core.scores import Target
from pq.private.columns.cells import Lattice
from pq.private.mechanisms.lattice.law import LARGEST_CAP, MarginLaw

LARGEST = float(np.finfo(np.float64).max)
ODD = (0.0, 1.0, -LARGEST, LARGEST, 1e300, 5.5, -3.0, 1e-300, 2.0**51, 1e15)
STEPS = (Fraction(1), Fraction(1, 10), Fraction(1, 10**6), Fraction(1000), Fraction(7, 3))
RATES = (0.0, 1e-9, 1e-3, 0.1, 1.0, 30.0, 1e250, math.inf)
PRIORS: tuple[pq.Prior, ...] = (
    pq.Uniform(0, 10),
    pq.Uniform(-1e6, 1e6),
    pq.Uniform(0, 1e-9),
    pq.Normal(3, 2),
    pq.Laplace(0, 1),
    pq.Cauchy(0, 10),
    pq.HalfCauchy(2, 1),
    pq.PiecewiseConstant((0, 3, 5, 20), (0.5, 0, 0.5)),
)
EDGES = (2.0**-53, 0.5, 1.0 - 2.0**-53)


@pytest.mark.parametrize("seed", range(8))
def test_no_record_can_make_a_law_fail(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(250):
        size, step = int(rng.choice([0, 1, 2, 5, 50])), STEPS[rng.integers(len(STEPS))]
        records = rng.choice(ODD, size) if rng.random() < 0.5 else rng.normal(0.0, 10.0 ** rng.integers(0, 7), size)
        with np.errstate(all="ignore"):  # as at the door of a release
            column = Lattice.of(np.sort(records), step, unit=2)
        low, high = np.sort(rng.integers(-5, 30, 2)).astype(float).tolist()
        interval = (-math.inf, math.inf, 0, 0) if rng.random() < 0.5 else (low, high, 1, 1)
        view = column.view(*interval)
        total = None if rng.random() < 0.6 else int(rng.integers(0, 200))
        shares = () if rng.random() < 0.5 else (0.0, 0.5, 1.0)
        law = MarginLaw(
            column,
            view,
            *interval[:2],
            PRIORS[rng.integers(len(PRIORS))],
            Target.of(Fraction(int(rng.integers(0, 101)), 100), view.n, "sharp" if total is None else "shifted", total),
            float(rng.choice(RATES)),
            edge=bool(rng.random() < 0.3),
            flip=bool(rng.random() < 0.6),
            shares=shares,
            cap=4 if shares else LARGEST_CAP,
        )
        o, share = law.draw(*(EDGES[k] if k < 3 else float(rng.uniform(1e-15, 1.0)) for k in rng.integers(0, 6, 3)))
        chance = law.log_probability(o, share if shares else None)
        assert interval[0] <= o <= interval[1] and o == math.floor(o)
        assert chance <= 1e-9 and (chance > -math.inf or law.rate > 5.0)
