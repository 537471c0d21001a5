"""The samplers of joint releases draw from the exact law, whatever they weigh, and agree with each other."""

from __future__ import annotations

import dataclasses
import itertools
import math
import tracemalloc
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import joint_oracles as oracles
import numpy as np
import pytest
import scipy.stats

import pq
from pq.core.priors import Cauchy, HalfCauchy, Laplace, Mixture, Normal, PiecewiseConstant, Prior, Uniform, from_scipy
from pq.core.scores import log_sum
from pq.private.columns.cells import Steps
from pq.private.columns.door import LARGEST
from pq.private.mechanisms.joint import chain_machine
from pq.private.mechanisms.joint import density as joint_density
from pq.private.mechanisms.joint import law as joint
from pq.private.mechanisms.joint import machine as joint_machine
from pq.private.mechanisms.joint import plan as joint_plan
from pq.private.mechanisms.joint import totals as joint_totals
from pq.private.mechanisms.joint.chain import EVERYWHERE, Records, forward, gather
from pq.private.mechanisms.joint.law import HEAD, Part, draw_joint, is_kept, propose, weigh, weigh_within
from pq.private.mechanisms.joint.machine import draw_joint_fast
from pq.private.mechanisms.joint.plan import JointPlan
from pq.private.mechanisms.joint.shells import log_totals, shells_beyond
from pq.private.mechanisms.joint.totals import NONE_SKIPPED, Skipped, search_totals
from pq.private.mechanisms.joint.windows import totals_within

LEAST_P = 1e-7  # a test of a histogram fails by chance with this probability
QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
Outcome = tuple[np.ndarray, float | None]


@pytest.fixture(autouse=True)
def _normalisers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_density, "log_normaliser", oracles.remember_normalisers(joint_density))


@pytest.fixture
def few_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bins of several priors that are few enough for thousands of draws."""
    for name, number in (("CUTS", 8), ("LEAST_CUTS", 4), ("TAIL", 1)):
        monkeypatch.setattr(joint_plan, name, number)


def quantiles_of(k: int) -> list[Fraction]:
    return [Fraction(j, k + 1) for j in range(1, k + 1)]


def p_value(plan: JointPlan, x: list[float], draw: Callable[[], Outcome], trials: int) -> float:
    """Of a chi-square test of drawn cells, and totals where these are drawn, against the exact law."""
    edges = sorted({0.0, 1.0, *x, *(c for c in plan.cuts.tolist() if 0.0 < c < 1.0)})
    totals = [i * plan.total_unit for i in range(int((len(x) + 10) / plan.total_unit) + 1)]
    totals = totals if plan.releases_total else [None]
    law = {
        (cells, total): math.exp(joint_density.joint_log_density(plan, np.array(x), None, np.array(point), total))
        * volume
        for cells, point, volume in oracles.ways(edges, plan.size)
        for total in totals
    }
    seen: Counter[object] = Counter()
    for _ in range(trials):
        outputs, total = draw()
        cells = tuple(int(c) for c in np.searchsorted(np.array(edges[1:-1]), outputs, side="left"))
        seen[cells, total] += 1
    large = [key for key, p in law.items() if p * trials >= 8.0]
    expected = np.array([*(law[key] * trials for key in large), 0.0])
    observed = np.array([*(seen[key] for key in large), 0.0])
    expected[-1], observed[-1] = max(trials - expected.sum(), 1e-9), trials - observed.sum()
    if expected[-1] < 8.0:  # too few to tell
        expected, observed = expected[:-1] * observed[:-1].sum() / expected[:-1].sum(), observed[:-1]
    return float(scipy.stats.chisquare(observed, expected).pvalue)


KINDS = [
    ("drawn", "add-remove"), ("best", "add-remove"), ("drawn", "replace"), ("best", "replace"), ("records", "replace"),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_machine_draws_follow_the_law(kind: tuple[str, str]) -> None:
    x = [0.1, 0.3, 0.35, 0.6, 0.95]
    plan = JointPlan.of(QUARTILES, epsilon=2, priors=Uniform(0, 1), total=kind[0], adjacency=kind[1])
    rng = np.random.default_rng(11)
    assert p_value(plan, x, lambda: draw_joint_fast(plan, np.array(x), None, rng.random), 6000) > LEAST_P


@pytest.mark.usefixtures("few_cuts")
def test_machine_draws_follow_the_law_under_priors_of_each_quantile() -> None:
    x = [0.1, 0.3, 0.6]
    priors = [Uniform(0, 0.6), Uniform(0, 1)]
    plan = JointPlan.of([0.3, 0.6], epsilon=2, priors=priors)
    rng = np.random.default_rng(12)
    assert p_value(plan, x, lambda: draw_joint_fast(plan, np.array(x), None, rng.random), 6000) > LEAST_P


def narrow(plan: JointPlan, x: list[float], reach: float) -> Part:
    """A part that weighs too little, so that much comes from the rest."""
    records = Records(np.array(x), None)
    return weigh_within(plan, records, shells_beyond(plan, records, reach, math.inf))


def drawn_from(plan: JointPlan, x: list[float], part: Part, rng: np.random.Generator) -> Outcome:
    records = Records(np.array(x), None)
    while True:
        uniforms = rng.random(joint.HEAD + 3 * plan.size)
        outcome = propose(plan, records, part, uniforms)
        if outcome is not None and is_kept(plan, records, outcome[0], uniforms[joint.KEEP_BEST]):
            return joint.released(plan, *outcome)


def test_the_law_does_not_depend_on_what_is_weighed() -> None:
    """Formulas; a large part of the draws comes from the rest."""
    x, rng = [0.1, 0.3, 0.35, 0.6, 0.95], np.random.default_rng(13)
    for kind, reach in ((KINDS[0], 1.0), (KINDS[0], 2.0), (KINDS[4], 2.0)):
        plan = JointPlan.of(QUARTILES[:2], epsilon=2, priors=Uniform(0, 1), total=kind[0], adjacency=kind[1])
        part = narrow(plan, x, reach)
        with np.errstate(all="ignore"):
            assert p_value(plan, x, lambda plan=plan, part=part: drawn_from(plan, x, part, rng), 1500) > LEAST_P


@pytest.mark.parametrize("close", [0.5, 8.0], ids=["unsettled", "settled"])
def test_totals_that_are_skipped_are_drawn_all_the_same(monkeypatch: pytest.MonkeyPatch, close: float) -> None:
    """Formulas; few totals are weighed, and most others are left to their bounds, by slopes or by tangents."""
    x, rng = [0.1, 0.3, 0.35, 0.6, 0.6, 0.6, 0.95], np.random.default_rng(15)
    monkeypatch.setattr(joint, "MANY_TOTALS", 0)
    monkeypatch.setattr(joint, "MARGIN", -6.0 if close < 1.0 else 12.0)
    monkeypatch.setattr(joint_totals, "CLOSE", close)
    monkeypatch.setattr(joint_totals, "LONG", 4)
    plan = JointPlan.of([0.5], epsilon=2, priors=Uniform(0, 1))
    plan = dataclasses.replace(plan, total_step=Fraction(1, 2))
    part = narrow(plan, x, 8.0)
    assert part.skipped.sizes.sum() > len(part.numbers)
    with np.errstate(all="ignore"):
        assert p_value(plan, x, lambda: drawn_from(plan, x, part, rng), 1500) > LEAST_P
        careless = dataclasses.replace(part, skipped=NONE_SKIPPED)
        assert p_value(plan, x, lambda: drawn_from(plan, x, careless, rng), 1500) < LEAST_P


def ways_of_chance(rng: np.random.Generator) -> Callable[[int, int], float]:
    """Log weights of totals 0..2999 along tangents, of forty ways with three counts each."""
    counts, shares = rng.uniform(0.0, 1500.0, (40, 3)), np.array([0.25, 0.25, 0.5])
    logs = rng.uniform(-60.0, 0.0, 40)

    def log_weight(number: int, bent_at: int) -> float:
        signs = np.where(counts >= bent_at * shares, 1.0, -1.0)
        return log_sum(logs - 0.1 * np.sum(signs * (counts - number * shares), axis=1))

    return log_weight


def test_no_total_weighs_more_than_its_bound() -> None:
    """And not many are looked at. Bounds that would take scores as they are for their tangents are caught."""
    rng, caught = np.random.default_rng(16), 0
    for margin, settles in ((12.0, True), (2.0, True), (-1.0, True), (12.0, False)) * 5:
        log_weight, looked = ways_of_chance(rng), []
        every = np.array([log_weight(i, i) for i in range(3000)])

        def counted(number: int, bent_at: int, log_weight=log_weight, looked=looked) -> float:
            looked.append(number)
            return log_weight(number, bent_at)

        numbers, weights, skipped = search_totals(counted, 3000, 0.1, margin, settles)
        assert np.array_equal(weights, every[numbers]) and len(looked) < (600 if settles else 3000)
        bound = bounds_of(3000, numbers, weights, skipped)
        assert np.all(every <= bound + 1e-9)
        assert log_sum(skipped.log_bounds) == pytest.approx(log_sum(np.delete(bound, numbers)), abs=1e-9)
        if settles:
            assert log_sum(bound) < log_sum(every) + max(1.0, 1.0 - margin)
        else:
            assert log_sum(skipped.log_bounds) <= log_sum(weights) - margin
        broken = search_totals(lambda i, _, log_weight=log_weight: log_weight(i, i), 3000, 0.1, margin, settles)
        caught += bool(np.any(every > bounds_of(3000, *broken) + 0.1))
    assert caught > 5


def bounds_of(count: int, numbers: np.ndarray, weights: np.ndarray, skipped: Skipped) -> np.ndarray:
    """Log bounds on the totals 0..count - 1."""
    bound = np.full(count, math.nan)
    lines = zip(skipped.firsts, skipped.sizes, skipped.log_firsts, skipped.slopes, strict=True)
    for first, size, log_first, slope in lines:
        assert np.all(np.isnan(bound[first : first + size]))
        bound[first : first + size] = log_first + slope * np.arange(size)
    assert np.all(np.isnan(bound[numbers]))
    bound[numbers] = weights
    return bound


def test_totals_of_a_stretch_are_drawn_by_their_bounds() -> None:
    """Each takes the part of the uniforms that its bound is of all; 2^40 of them are numbers of their own."""
    for slope in (0.0, 0.3, -0.3, 1e-300, -40.0):
        one = Skipped(np.array([7]), np.array([6]), np.array([-900.0]), np.array([slope]))
        bounds = -900.0 + slope * np.arange(6)
        uniforms = (np.arange(6000) + 0.5) / 6000
        drawn = [one.draw(0, u) for u in uniforms.tolist()]
        shares = np.exp(bounds - log_sum(bounds))
        assert np.allclose([sum(number == 7 + i for number, _ in drawn) for i in range(6)], 6000 * shares, atol=1.0)
        assert all(log_bound == pytest.approx(bounds[number - 7], abs=1e-9) for number, log_bound in drawn)
        assert one.log_bounds[0] == pytest.approx(log_sum(bounds), abs=1e-9)
    many = Skipped(np.array([3]), np.array([2**40]), np.array([0.0]), np.array([0.0]))
    assert many.draw(0, 1.0 - 2.0**-53)[0] == 2**40 + 2 and many.draw(0, 2.0**-53)[0] == 3


def test_tangents_of_all_ways_written_out() -> None:
    """`forward` along tangents, against the sum over every way to place three outputs; groups in one cell as well."""
    x = np.array([0.1, 0.3, 0.3, 0.3, 0.6, 0.9])
    plan, records = JointPlan.of(QUARTILES, epsilon=2, priors=Uniform(0, 1)), Records(x, None)
    cells = gather(plan, records, [EVERYWHERE])
    allowed, above = np.ones((3, len(cells.rank)), dtype=bool), []

    def written_out(total: float, bent_at: float) -> float:
        logs = []
        for way in itertools.combinations_with_replacement(range(len(cells.rank)), 3):
            counts = np.diff(cells.rank[list(way)], prepend=0.0, append=6.0)
            signs = np.where(counts >= bent_at * plan.shares, 1.0, -1.0)
            groups = math.prod(math.factorial(size) for size in Counter(way).values())
            mass = float(np.sum(cells.log_mass[list(way)])) - math.log(groups)
            logs.append(mass - plan.rate * float(np.sum(signs * (counts - total * plan.shares))))
        return log_sum(np.array(logs))

    with np.errstate(all="ignore"):
        for total, bent_at in itertools.product((0.0, 2.0, 5.0, 6.5, 13.0), (0.5, 2.0, 5.0, 6.5, 13.0)):
            found = forward(plan, cells, total, 6.0, allowed, bent_at=bent_at).log_weight
            assert found == pytest.approx(written_out(total, bent_at), abs=1e-9)
            above.append(found - forward(plan, cells, total, 6.0, allowed).log_weight)
    assert min(above) > -1e-9 and np.sum(np.array(above) > 0.1) > 10


def test_a_search_that_weighs_all_totals_takes_time_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal weights, whose bounds are far above them: all bounds are added up at the end only."""
    added: list[int] = []

    def counted(weights: np.ndarray) -> float:
        added.append(len(weights))
        return log_sum(weights)

    monkeypatch.setattr(joint_totals, "log_sum", counted)
    numbers, weights, skipped = search_totals(lambda i, bent_at: 10.0 * abs(i - bent_at), 3000, 10.0, 12.0)
    assert len(numbers) == len(weights) == 3000 and not skipped.sizes.size
    assert sum(added) < 10 * 3000


def test_many_equal_records_take_few_weighed_totals() -> None:
    """100,000 equal records, no grid: thousands of totals are near, and 200 are weighed."""
    plan = JointPlan.of(QUARTILES, epsilon=1, priors=Uniform(0, 1))
    with np.errstate(all="ignore"):
        part = joint.weigh(plan, Records(np.full(100_000, 0.5), None))
    assert len(part.numbers) < 200 < 5000 < part.totals.size


def test_totals_are_counted_where_they_are_too_many_to_be_listed() -> None:
    """Near 2^40 records: weights of 2^39 totals and of all beyond, by the sum of a geometric series."""
    plan, n, reach = JointPlan.of([0.5], epsilon=1, priors=Uniform(0, 1)), 2.0**40, 2.0**39
    assert plan.total_unit == 4.0 and plan.rate == 0.5
    near = totals_within(plan, n, reach)
    assert (near.first, near.size) == (2**37, 2**38 + 1)
    assert near.at(0) == n - reach and near.at(near.size - 1) == n + reach
    beyond = 2.0 * math.exp(-0.5 * 4.0) / (1.0 - math.exp(-0.5 * 4.0))
    assert log_totals(plan, n, reach) == pytest.approx(math.log(2.0**38 + 1.0 + beyond) - 0.5 * reach, rel=1e-15)
    for count, distance in ((0.0, 3.0), (7.0, 3.0), (7.0, 100.0), (8.0, 0.0), (9.0, 0.5)):
        listed = [4.0 * i for i in range(100) if abs(4.0 * i - count) <= distance]
        assert totals_within(plan, count, distance).every().tolist() == listed


@pytest.mark.parametrize("m", [1, 3, 9])
def test_few_values_of_very_many_records_take_little_time_and_memory(m: int) -> None:
    """2^40 records of two values on a grid: billions of totals are near, and few are looked at."""
    n = 2**40
    values, before = np.array([0.0, 1.0]), np.array([0, n // 3, n])
    plan = JointPlan.of(quantiles_of(m), epsilon=1, priors=Uniform(-2, 9), grid=1)
    with np.errstate(all="ignore"):
        part = joint.weigh(plan, Records.of(plan, values, before))
    assert part.totals.size > 2**31 and len(part.numbers) + len(part.skipped.sizes) < 1000
    tracemalloc.start()
    column = pq.Counts([0.0, 1.0], [n // 3, n - n // 3])
    one = pq.release(column, quantiles_of(m), epsilon=1, priors=Uniform(-2, 9), grid=1, mechanism="joint", rng=0)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert one.values.tolist() == [float(3 * q > 1) for q in quantiles_of(m)] and most < 2e6


@pytest.mark.usefixtures("few_cuts")
def test_the_rest_under_priors_of_each_quantile() -> None:
    x, rng = [0.1, 0.3, 0.6], np.random.default_rng(14)
    priors = [Uniform(0, 0.6), Uniform(0, 1)]
    plan = JointPlan.of([0.3, 0.6], epsilon=2, priors=priors)
    part = narrow(plan, x, 3.0)
    with np.errstate(all="ignore"):
        assert p_value(plan, x, lambda: drawn_from(plan, x, part, rng), 800) > LEAST_P


def test_a_sampler_that_forgets_the_rest_is_caught() -> None:
    x, rng = [0.1, 0.3, 0.35, 0.6, 0.95], np.random.default_rng(13)
    plan = JointPlan.of(QUARTILES[:2], epsilon=2, priors=Uniform(0, 1))
    part = narrow(plan, x, 1.0)
    careless = dataclasses.replace(part.shells, log_bounds=np.full_like(part.shells.log_bounds, -math.inf))
    part = dataclasses.replace(part, shells=careless)
    with np.errstate(all="ignore"):
        assert p_value(plan, x, lambda: drawn_from(plan, x, part, rng), 1500) < LEAST_P


PRIORS: list[Prior | list[Prior]] = [
    Uniform(-10, 10), Cauchy(0, 1), HalfCauchy(2, -1), Laplace(4, 0.5), Normal(-3, 1), Normal(30, 1),
    Mixture([Laplace(0, 1), Cauchy(0, 1)], [3, 1]), PiecewiseConstant([-5, -1, -0.9, 5], [0.01, 0.98, 0.01]),
    [Laplace(m, 0.5) for m in (-1.0, 0.0, 0.5)], from_scipy(scipy.stats.gamma(2, loc=-3)),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_the_machine_gives_the_answers_of_the_formulas(kind: tuple[str, str]) -> None:
    """About 300 draws; also of columns with ties and counts, on grids, of none, one and many records."""
    rng = np.random.default_rng(5)
    for i, prior in enumerate(PRIORS):
        for n, epsilon, grid in ((0, 1, None), (1, 0.5, 0.5), (7, 3, None), (60, 1, 0.1), (300, 0.3, None)):
            plan = JointPlan.of(
                QUARTILES, epsilon=epsilon, priors=prior, total=kind[0], adjacency=kind[1], grid=grid, size_guess=100
            )
            x = np.sort(np.where(rng.random(n) < 0.3, 0.25, rng.normal(size=n)))
            values, firsts = np.unique(x, return_index=True)
            before = np.append(firsts, n).astype(np.int64)
            seed = 100 * i + n
            want, total = draw_joint(plan, x, None, np.random.default_rng(seed).random)
            got, other = draw_joint_fast(plan, x, None, np.random.default_rng(seed).random)
            counted, third = draw_joint_fast(plan, values, before, np.random.default_rng(seed).random)
            assert np.allclose(got, want, rtol=1e-9, atol=1e-12) and np.allclose(counted, want, rtol=1e-9, atol=1e-12)
            assert total == other == third and (total is not None) == plan.releases_total
            for draw in (draw_joint, draw_joint_fast):
                fewer, fourth = draw(plan, values, steps_of(before), np.random.default_rng(seed).random)
                assert fourth == total and np.array_equal(fewer, counted if draw is draw_joint_fast else want)
            assert np.all(np.diff(got) >= 0.0)


def steps_of(before: Any) -> Steps:
    """The same records, by the few values that are not one each."""
    more = np.diff(before) - 1
    at = np.flatnonzero(more)
    return Steps(at, np.append(0, np.cumsum(more[at])))


def test_the_machine_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """On ordinary columns the formulas are not asked, nor where infinite records are far from every target."""
    monkeypatch.setattr(joint_machine.joint, "draw_joint", None)
    rng = np.random.default_rng(1)
    infinite = np.sort(np.append(rng.normal(size=1000), np.repeat([-LARGEST, LARGEST], 30)))
    for k, epsilon, total in ((1, 1, "best"), (9, 1, "drawn"), (3, 0.1, "best"), (29, 1, "drawn")):
        plan = JointPlan.of(quantiles_of(k), epsilon=epsilon, priors=Uniform(-10, 10), total=total)
        assert draw_joint_fast(plan, np.sort(rng.normal(size=1000)), None, rng.random)[0].shape == (k,)
        if k == 1:  # others look so far that they meet some
            assert np.all(np.abs(draw_joint_fast(plan, infinite, None, rng.random)[0]) < 10.0)


def test_many_outputs_of_a_dense_column_are_work_for_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """All ways together weigh e^-620, more than the least float by far for each output, and nothing is lost."""
    x = np.sort(np.random.default_rng(4).normal(size=100_000))
    plan = JointPlan.of(quantiles_of(60), epsilon=1, priors=Cauchy(0, 1000), total="records", adjacency="replace")
    want, _ = draw_joint(plan, x, None, np.random.default_rng(5).random)
    monkeypatch.setattr(joint_machine.joint, "draw_joint", None)
    got, _ = draw_joint_fast(plan, x, None, np.random.default_rng(5).random)
    assert np.allclose(got, want, rtol=1e-9, atol=1e-12)
    assert weigh(plan, Records.of(plan, x, None)).log_proposed < -600.0


def test_sums_over_sources_apart_are_those_of_the_queue_to_the_last_bit() -> None:
    """In 300 pairs of windows that do not overlap, with equal and uneven ranks, shifts small and large; and a plain sum
    over all pairs is within rounding."""
    rng = np.random.default_rng(8)
    general = [getattr(chain_machine, name).py_func for name in ("_sums", "_near", "_add_far")]
    for _ in range(300):
        first, between, last = rng.integers(1, 30, 3).tolist()
        size = first + between + last
        rank = np.cumsum(rng.choice([0.0, 1.0, 1.0, 3.5], size))
        rate, shift = rng.uniform(0.1, 3.0), rng.uniform(-1.0, 1.2 * rank[-1])
        decay = np.exp(-rate * np.diff(rank, prepend=rank[0]))
        cells, source, target = (rank, decay), (0, first), (first + between, size)
        weights, near = rng.random(first) * (rng.random(first) < 0.8), np.empty(size, dtype=np.int64)
        work, queue, apart = np.empty((4, size)), np.empty(last), np.empty(last)
        general[0](cells, weights, 0, first, first, *work[:3])
        general[1](cells, rate, shift, source, target, work[0], near, queue)
        general[2](cells, rate, shift, weights, source, first, target, near, work, queue)
        chain_machine._arrive_apart.py_func(cells, rate, shift, weights, source, target, work, apart)
        assert np.array_equal(queue, apart)
        far = np.abs(rank[first + between :, None] - rank[None, :first] - shift)
        assert np.allclose(apart, np.exp(-rate * far) @ weights, rtol=1e-12, atol=1e-300)


def test_what_the_machine_would_lose_is_left_to_the_formulas() -> None:
    """Under a prior 30 deviations off, each gap weighs e^-450, and the outermost one everything: numbers that fall
    below the least float in one place are needed in another."""
    x = np.sort(np.random.default_rng(6).normal(size=40))
    plan = JointPlan.of(QUARTILES, epsilon=9, priors=Normal(33, 1), total="records", adjacency="replace")
    arguments = joint_machine.arguments_of(plan, Records.of(plan, x, None))
    out, uniforms = np.empty(plan.size + 3), np.random.default_rng(7).random((1, HEAD + 3 * plan.size))
    assert joint_machine.walk_joint(*arguments, uniforms, out) == joint_machine.LEAVE


def test_uniforms_that_point_to_the_rest_are_left_to_the_formulas() -> None:
    """The first uniform so small that the bound on the rest decides: both engines begin anew, from the same numbers."""
    plan = JointPlan.of(QUARTILES, epsilon=1, priors=Uniform(-10, 10))
    x = np.sort(np.random.default_rng(1).normal(size=200))

    def stream() -> Callable[[int], np.ndarray]:
        rng, first = np.random.default_rng(3), [True]

        def give(count: int) -> np.ndarray:
            out = rng.random(count)
            if first[0]:
                out[joint.PART] = 1e-12
            first[0] = False
            return out

        return give

    want, total = draw_joint(plan, x, None, stream())
    got, other = draw_joint_fast(plan, x, None, stream())
    assert np.allclose(got, want) and total == other


def test_a_value_that_most_share_is_hit_on_a_grid() -> None:
    """80 of 100 records at 0.5: each quartile is that value, in all of 50 releases."""
    x = np.sort(np.concatenate([np.full(80, 0.5), np.linspace(0.1, 0.9, 20)]))
    plan = JointPlan.of(QUARTILES, epsilon=2, priors=Uniform(0, 1), grid=0.01, size_guess=100)
    rng = np.random.default_rng(2)
    assert all(np.all(draw_joint_fast(plan, x, None, rng.random)[0] == 0.5) for _ in range(50))
