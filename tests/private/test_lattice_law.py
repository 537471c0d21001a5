"""Margin laws on a grid against slow versions in exact arithmetic, and their samplers against the laws."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

import pq
from pq.core.margin import Margins, split_at, split_ties
from pq.core.scores import Target
from pq.private.columns.cells import Lattice
from pq.private.mechanisms.lattice.flip import choose_class, log_chances
from pq.private.mechanisms.lattice.law import FEW, MarginLaw, equal_runs, outermost
from pq.private.mechanisms.lattice.remainder import remainder_floor, remainder_law
from pq.private.mechanisms.lattice.tie_tree import TieTree

STEPS = (Fraction(1), Fraction(1, 10))
MOST_LIKELY_BY_CHANCE = 1e-6  # probability that a right sampler fails one of the tests below


def law_of(
    column: Any, q: Fraction, rate: float, prior: pq.Prior, step: Fraction = Fraction(1), **options: Any
) -> MarginLaw:
    """The law at the root for a column in units of the step."""
    values = np.sort(np.array(column, dtype=np.float64)) * float(step)
    lattice = Lattice.of(values, step, unit=options.pop("unit", 1))
    interval = options.pop("interval", (-math.inf, math.inf, 0, 0))
    view = lattice.view(*interval)
    target = Target.of(q, view.n, "sharp")
    return MarginLaw(lattice, view, *interval[:2], prior, target, rate, **options)


def margins(weights: dict[int, Fraction], candidates: list[int], target: Fraction) -> list[Fraction]:
    """Utilities straight from the definition; weights: of the records at each value."""
    result = []
    for o in candidates:
        up_to, below = sum(w for v, w in weights.items() if v <= o), sum(w for v, w in weights.items() if v < o)
        parts = [up_to - target] * (o != candidates[-1]) + [target - below] * (o != candidates[0])
        result.append(min(parts))
    return result


def by_inclusion(p: list[Any]) -> list[Any]:
    """Permute-and-flip from its description: a random order, the first candidate whose coin of bias p shows heads."""
    chances = [mpmath.mpf(0)] * len(p)
    for order in itertools.permutations(range(len(p))):
        missed = mpmath.mpf(1)
        for o in order:
            chances[o] += missed * p[o] / math.factorial(len(p))
            missed *= 1 - p[o]
    return chances


@pytest.mark.parametrize("flip", [True, False])
@pytest.mark.parametrize("step", STEPS)
def test_laws_of_small_lattices(flip: bool, step: Fraction) -> None:
    """All columns of up to three records on four values, records beyond the prior's support among them."""
    prior = pq.Uniform(float(-step / 2), float(step * 7 / 2))
    rate = 0.7
    for size, q in itertools.product(range(4), (Fraction(1, 2), Fraction(9, 10), Fraction(0))):
        for column in itertools.combinations_with_replacement((-2, 0, 1, 3, 9), size):
            weights = {v: Fraction(column.count(v)) for v in column}
            utility = margins(weights, [0, 1, 2, 3], q * size)
            with mpmath.workdps(25):
                p = [mpmath.exp(rate * (mpmath.mpf(u.numerator) / u.denominator)) for u in utility]
                p = [w / max(p) for w in p]
                expected = by_inclusion(p) if flip else [w / mpmath.fsum(p) for w in p]
                expected = [float(mpmath.log(chance)) for chance in expected]
            law = law_of(column, q, rate, prior, step, flip=flip)
            assert law.flips == flip
            assert np.allclose([law.log_probability(float(o)) for o in range(4)], expected, rtol=1e-12, atol=1e-12)
            assert law.log_probability(-1.0) == law.log_probability(4.0) == -math.inf


@pytest.mark.parametrize("flip", [True, False])
@pytest.mark.parametrize("tied", [1, 4, 30])
def test_laws_of_nodes(flip: bool, tied: int) -> None:
    """Within an interval between outputs, with parts of the records at its ends and shares of ties, light and heavy."""
    shares = (0.0, 0.5, 1.0)
    law = law_of(
        [1, 2, 2, 2, *[3] * tied, 5, 5, 6], Fraction(1, 3), 0.4, pq.Uniform(-0.5, 8.5),
        interval=(2.0, 5.0, 2, 4), unit=8, shares=shares, cap=8, flip=flip,
    )  # fmt: skip
    weights = {2: Fraction(3, 4), 3: Fraction(tied), 5: Fraction(1)}
    target = sum(weights.values()) / 3
    plain = margins(weights, [2, 3, 4, 5], target)
    pairs = list(itertools.product(range(4), shares))
    utility = []
    for k, share in pairs:
        o = k + 2
        rank = sum(w for v, w in weights.items() if v < o) + Fraction(share) * weights.get(o, Fraction(0))
        off = abs(rank - target)
        utility.append(float(max(min(plain[k], 1 - off), (plain[k] - off) / 2)))
    p = np.exp(0.4 * (np.array(utility) - max(utility)))
    expected = [flipped(p, k) if flip else p[k] / p.sum() for k in range(len(p))]
    assert law.flips == flip
    got = [math.exp(law.log_probability(float(k + 2), share)) for k, share in pairs]
    assert np.allclose(got, expected, rtol=1e-12)
    assert law.log_probability(3.0, 0.3) == law.log_probability(3.0) == -math.inf


def flipped(p: Any, k: int) -> float:
    """Permute-and-flip by the coefficients of the polynomial under its integral."""
    product = np.poly1d([p[k]])
    for j, other in enumerate(p):
        if j != k:
            product *= np.poly1d([-other, 1.0])
    whole = product.integ()
    return float(whole(1.0) - whole(0.0))


def test_priors_weigh_candidates() -> None:
    """Unequal masses and an empty piece: scores are shifted by log masses; at equal masses that is permute-and-flip."""
    prior = pq.PiecewiseConstant((-0.5, 0.5, 1.5, 2.5, 3.5), (0.1, 0.6, 0.0, 0.3))
    law = law_of([0, 0, 1, 3, 3], Fraction(1, 2), 0.5, prior)
    utility = margins({0: Fraction(2), 1: Fraction(1), 3: Fraction(2)}, [0, 1, 2, 3], Fraction(5, 2))
    weight = np.array([0.1, 0.6, 0.0, 0.3]) * np.exp(0.5 * np.array([float(u) for u in utility]))
    p = weight / weight.max()
    assert law.flips
    assert np.allclose([math.exp(law.log_probability(float(o))) for o in range(4)], [flipped(p, o) for o in range(4)])
    assert law.log_probability(2.0) == -math.inf


def test_many_multiples() -> None:
    """A million multiples of equal mass are a few runs: the law adds up, and the tie has its share."""
    last = 10**6 - 1
    law = law_of([5, 5, 5, 900_000], Fraction(1, 2), 3.0, pq.Uniform(-0.5, last + 0.5))
    chances = {o: math.exp(law.log_probability(float(o))) for o in (0, 1, 5, 7, 899_999, 900_000, 950_000, last)}
    counts = {0: 1, 1: 4, 5: 1, 7: 899_994, 900_000: 1, 950_000: 99_998, last: 1}
    assert math.isclose(sum(chances[o] * counts[o] for o in counts), 1.0, rel_tol=1e-12)
    assert chances[7] == chances[899_999] < chances[5] < 1
    assert law.flips
    assert law_of([5], Fraction(1, 2), 1.0, pq.Normal(0, 100), Fraction(1, 100)).flips is False
    assert equal_runs(pq.Laplace(0, 1), Fraction(1), 0.0, float(FEW), (False, False)) is None


def test_no_ends_without_a_finite_support() -> None:
    """With a normal prior the law is the exponential mechanism's over all multiples, none of them an open end."""
    prior, q, rate = pq.Normal(1.0, 2.0), Fraction(4, 5), 0.6
    column = [-3, 0, 0, 2, 2, 2, 7]
    law = law_of(column, q, rate, prior)
    places = np.arange(-60, 61)
    target = float(q * len(column))
    up_to, below = (np.searchsorted(column, places, side=side) for side in ("right", "left"))
    weight = np.diff(stats.norm.cdf((np.arange(-60, 62) - 0.5 - 1.0) / 2.0))
    weight = weight * np.exp(rate * np.minimum(up_to - target, target - below))
    got = np.exp([law.log_probability(float(o)) for o in places])
    assert np.allclose(got, weight / weight.sum(), rtol=1e-10, atol=1e-14)
    assert outermost(prior, Fraction(1)) == (-math.inf, math.inf)
    assert outermost(pq.HalfCauchy(1.0, 3.0), Fraction(1)) == (3.0, math.inf)


def histogram_fits(outputs: list[Any], chances: dict[Any, float]) -> bool:
    """Chi-square test of a sampler, one cell for what is expected fewer than ten times."""
    total = len(outputs)
    often = {o for o, chance in chances.items() if chance * total >= 10.0}
    observed = [outputs.count(o) for o in often]
    expected = [chances[o] * total for o in often]
    rest = total - sum(expected)
    if rest >= 10.0:
        observed, expected = [*observed, total - sum(observed)], [*expected, rest]
    statistic = sum((a - b) ** 2 / b for a, b in zip(observed, expected, strict=True))
    return bool(stats.chi2.sf(statistic, len(expected) - 1) > MOST_LIKELY_BY_CHANCE)


@pytest.mark.parametrize(
    ("prior", "flip", "shares"),
    [
        (pq.Uniform(-0.5, 11.5), True, ()),
        (pq.Uniform(-0.5, 11.5), False, ()),
        (pq.Uniform(-0.5, 11.5), True, (0.0, 0.5, 1.0)),
        (pq.Laplace(4.0, 2.0), True, (0.0, 1.0)),
        (pq.PiecewiseConstant((-0.5, 4.5, 11.5), (0.8, 0.2)), True, ()),
    ],
)
def test_samplers(prior: pq.Prior, flip: bool, shares: tuple[float, ...]) -> None:
    """Six thousand draws against the exact law; a law at twice the rate is told apart."""
    column, q, rng = [1, 3, 3, 3, 4, 8, 8, 9], Fraction(2, 5), np.random.default_rng(5)
    law = law_of(column, q, 0.3, prior, flip=flip, shares=shares, cap=6, unit=4)
    drawn = [law.draw(*rng.uniform(1e-15, 1.0, 3)) for _ in range(6000)]
    asked = shares or (None,)
    places = [(o, s) for o in range(-9, 21) for s in asked]
    chances = {(o, s): math.exp(law.log_probability(float(o), s)) for o, s in places}
    outputs = [(int(o), s if shares else None) for o, s in drawn]
    assert histogram_fits(outputs, chances)
    wrong = law_of(column, q, 0.6, prior, flip=flip, shares=shares, cap=6, unit=4)
    assert not histogram_fits(outputs, {(o, s): math.exp(wrong.log_probability(float(o), s)) for o, s in places})


def test_what_is_left_out_changes_no_draw() -> None:
    """Two thousand distinct values: the draws are those of all candidates weighed."""
    rng = np.random.default_rng(2)
    column = np.unique(rng.integers(0, 10**6, 2000))
    law = law_of(column, Fraction(1, 3), 0.8, pq.Uniform(-0.5, 10**6 - 0.5))
    whole = law.runs(math.inf)
    weighed = law.weigh(whole)
    assert len(law._near()[0].first) < len(whole.first) / 4
    for level, cell, point in rng.uniform(1e-15, 1.0, (50, 3)).tolist():
        chosen = choose_class(weighed.log_weight, weighed.size, level, cell)
        o, _ = law.draw(cell, point, level)
        assert whole.first[chosen] <= o <= whole.last[chosen]


def test_one_candidate_and_none() -> None:
    """Where one multiple or none has mass the output is decided, whatever the records."""
    for column in ([], [0, 0, 9]):
        single = law_of(column, Fraction(1, 2), 1.0, pq.Uniform(3.8, 4.2))
        assert single.draw(0.5, 0.5, 0.5)[0] == 4.0 and single.log_probability(4.0) == 0.0
        outside = law_of(column, Fraction(1, 2), 1.0, pq.Uniform(0.0, 3.0), interval=(7.0, 9.0, 0, 0))
        assert outside.draw(0.5, 0.5, 0.5)[0] == 7.0 and outside.log_probability(8.0) == -math.inf


def test_chances_of_classes() -> None:
    """Classes of equal candidates are the candidates one by one; impossible ones change nothing."""
    log_weight, count = np.array([0.0, -0.5, -3.0, -math.inf]), np.array([2.0, 3.0, 4.0, 5.0])
    p = np.exp(np.repeat(log_weight[:3], [2, 3, 4]))
    for k, first in enumerate((0, 2, 5)):
        assert math.isclose(math.exp(log_chances(log_weight, count)[k]), flipped(p, first), rel_tol=1e-12)
    assert log_chances(log_weight, count)[3] == -math.inf


def test_ties_are_split_without_gain() -> None:
    """The parts of a record in all intervals sum to its weight in the node, whatever is released."""
    for outputs, shares in (([4.0], [0.25]), ([2.0, 6.0], [0.0, 1.0]), ([0.0], [0.5]), ([9.0], [0.75])):
        parts = split_ties((0.0, 9.0, 4, 2), outputs, shares, 8)
        assert all(part % 2 == 0 for interval in parts for part in interval[2:])
        for v, weight in ((0.0, 4), (9.0, 2), (4.0, 8), (2.0, 8)):
            held = [a * (v == low) + b * (v == high) + 8 * (low < v < high) for low, high, a, b in parts if low < high]
            assert sum(held) <= weight


def utility_of_pair(q: Fraction, cap: int, below: int, up_to: int, rank: int, n: int) -> tuple[Fraction, Fraction]:
    """By the class and by fractions."""
    target, shut = Target.of(q, n, "sharp"), np.zeros(1, dtype=bool)
    margin = Margins.of(np.array([below]), np.array([up_to]), shut, shut, target)
    exact, off = min(up_to - q * n, q * n - below), abs(rank - q * n)
    mine = Margins.of_pairs(margin, np.array([rank]), cap, target).exact(0)
    return mine, max(min(exact, cap - off), (exact - off) / 2)


def test_utilities_of_pairs_are_exact() -> None:
    """A thousand pairs at random against fractions, to 2^61 parts; and they move by no more than a record may."""
    rng = np.random.default_rng(3)
    for _ in range(1000):
        size, q = 1 << int(rng.integers(1, 60)), Fraction(int(rng.integers(0, 101)), 100)
        below, held, after, cap = (2 * int(rng.integers(0, size)) for _ in range(4))
        rank = below + 2 * int(rng.integers(0, held // 2 + 1))
        mine, exact = utility_of_pair(q, cap, below, below + held, rank, below + held + after)
        assert mine == exact
        unit = 2 * int(rng.integers(1, 9))
        risen = rank + 2 * int(rng.integers(0, unit // 2 + 1))
        more, _ = utility_of_pair(q, cap, below, below + held + unit, risen, below + held + after + unit)
        assert abs(more - mine) <= unit * max(q, 1 - q)


def test_no_record_moves_a_split_by_more_than_itself() -> None:
    """Up to 2^62 parts, where floats are a thousand apart; by fractions, and by the law of a node."""
    rng = np.random.default_rng(6)
    for _ in range(2000):
        held, share = 2 * int(rng.integers(0, 1 << int(rng.integers(1, 62)))), int(rng.integers(0, 1025))
        own = 2 * int(rng.integers(1, 257))
        one, more = (int(split_at(parts, share / 1024)) for parts in (held, held + own))
        assert one == held // 2 * share // 1024 * 2
        assert 0 <= more - one <= own


def test_a_tie_of_five_thousand_trillion_records_loses_no_more() -> None:
    """Beside a chain of nodes that each see it in part; with shares of ties as products of floats the loss is 1.03."""
    middle, place, edge = 127, Fraction(9, 10), 20.0
    below = [place * k / 128 for k in range(1, 128)]
    quantiles = [*below, place, *(place + (1 - place) * k / 128 for k in range(1, 128))]
    values, shares = np.zeros(255), np.full(255, 0.5)
    shares[middle] = 3 / 8
    first, last, at = middle + 1, 255, edge
    while first < last:
        i = first - 1 + -(-(last - first) // 2)
        values[i:last], last, at = at, i, at - 1.0
    first, last, at = 0, middle, -edge
    while first < last:
        i = first + (last - first) // 2
        values[first : i + 1], first, at = at, i + 1, at + 1.0
    number = 5134103575202365
    columns = [pq.Counts([-1.0, 0.0, 1.0], [1443966631525665, n, 2406611050886108]) for n in (number, number + 1)]
    outcome = {"values": values.tolist(), "shares": shares.tolist()}
    loss = pq.privacy_loss(
        *columns, outcome, [float(q) for q in quantiles], epsilon=1, priors=pq.Uniform(-50.5, 50.5), grid=1,
        mechanism="margin",
    )  # fmt: skip
    assert 0.8 < abs(loss) <= 1.0


def test_a_value_that_most_records_hold_is_found() -> None:
    """Wherever the target lies in the tie: among two thousand zeros a release misses them less than once in 10^6."""
    for quantiles in ((0.25, 0.5), (0.1, 0.9), (0.03, 0.5), (0.5, 0.98)):
        for seed in range(20):
            released = pq.release(
                np.zeros(2000), quantiles, epsilon=1, priors=pq.Uniform(-1000.5, 1000.5), grid=1, mechanism="margin",
                rng=seed,
            )  # fmt: skip
            assert released.values.tolist() == [0.0, 0.0]


def test_tree_draws_what_its_law_says() -> None:
    """Two quantiles, four thousand draws of outputs and of the share at the root."""
    asked = TieTree(pq.plan([Fraction(1, 3), Fraction(2, 3)], epsilon=2), (pq.Uniform(-0.5, 3.5),) * 2)
    column = Lattice.of(np.array([0.0, 1.0, 1.0, 1.0, 3.0]), Fraction(1), unit=asked.unit)
    rng = np.random.default_rng(8)
    drawn = [asked.draw(column, rng.uniform(1e-15, 1.0, (2, 3))) for _ in range(4000)]
    places = itertools.product(itertools.combinations_with_replacement(range(4), 2), asked.shares)
    root = asked.plan.root.indices[0]
    chances = {}
    for pair, share in places:
        outcome = [(float(o), share) for o in pair]
        chances[(*pair, share)] = math.exp(asked.log_probability(column, outcome))
    assert math.isclose(sum(chances.values()), 1.0, rel_tol=1e-12)
    outputs = [(int(one[0]), int(other[0]), (one, other)[root][1]) for one, other in drawn]
    assert histogram_fits(outputs, chances)
    assert not histogram_fits([(low, high, 1.0 - share) for low, high, share in outputs], chances)
    with pytest.raises(ValueError, match="plan"):
        TieTree(pq.plan([0.5], epsilon=1, calibration="paper"), (pq.Uniform(0, 1),))


def test_remainders_against_the_definition() -> None:
    """A column on eight values, records beyond them: exact probabilities, and those of a wrong shift."""
    column, epsilon = [-3, 1, 4, 4, 6, 12], 1.8
    counts = np.bincount(np.clip(column, 0, 7), minlength=8)
    floor = remainder_floor(8, epsilon)
    assert floor is not None
    chances = {}
    for o in range(8):  # (n + 1) / 2 = 7 / 2 records: 4 is right alone
        next_held = {0: 1, 1: 4, 2: 4, 3: 4, 5: 4, 6: 4, 7: 6}.get(o, 4)
        up_to, below = sum(v <= o for v in column), sum(v < o for v in column)
        wrong_by = 7 - 2 * up_to if o < 4 else 2 * below - 7
        chances[o] = max(1.0 / (abs(next_held - o) + 1), floor) * math.exp(-epsilon * wrong_by)
    chances[4] = 1.0 - sum(chances[o] for o in chances if o != 4)
    expected = [chances[o] for o in range(8)]
    assert np.allclose(remainder_law(counts, 1, epsilon), expected, rtol=1e-12)
    assert not np.allclose(remainder_law(counts, 3, epsilon), expected, rtol=0.1)
