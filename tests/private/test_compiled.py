"""The compiled walk gives the output that `pq.private.mechanisms.independent` gives for the same uniforms, whatever
data and priors."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pq
from pq.core import grid as steps
from pq.core.machine import coins, keep, loss
from pq.core.plan import _in_bits
from pq.core.priors import Prior
from pq.core.priors.base import parameters_of
from pq.core.priors.kernel import kinds
from pq.core.request import Request
from pq.private.columns.cells import Points
from pq.private.fast import cells, changes, choose, laws, losses, walk
from pq.private.fast.encode import encode
from pq.private.mechanisms import independent
from pq.private.mechanisms.tree import Tree
from pqlab.experiments.lane_gaps import lane_max_gaps
from pqlab.experiments.static import even_quantiles


def tree(quantiles: Any, priors: Any, epsilon: Any = 1.0, **options: Any) -> Tree:
    return Tree(Request.of(quantiles, priors=priors, epsilon=epsilon, **options))


def some_prior(rng: np.random.Generator, centre: float, spread: float) -> Prior:
    """A prior that is right, somewhat off, or hopeless."""
    loc = centre + spread * float(rng.choice([0.0, 1.0, 30.0, 1e6]) * rng.normal())
    scale = spread * float(10.0 ** rng.uniform(-4, 3))
    laplace, tail = pq.Laplace(loc, scale), pq.Cauchy(centre + 1.0, 3.0 * spread)
    edges = np.cumsum(rng.uniform(0.1, 2.0, 6)) * scale + loc
    made: list[Prior] = [
        laplace,
        pq.Cauchy(loc, scale),
        pq.HalfCauchy(scale, loc),
        pq.Uniform(loc - scale, loc + scale + 1e-9 * abs(loc)),
        pq.Normal(loc, scale),
        pq.LogNormal(math.log(abs(loc) + scale), float(rng.uniform(0.1, 2.0))),
        pq.LogUniform(),
        laplace.mix(tail, 0.1),
        pq.Normal(loc, scale).mix(tail, 0.3),
        laplace.mix(pq.HalfCauchy(3.0 * spread, centre), 0.1),
        pq.PiecewiseConstant(edges, [1, 2, 0, 3, 1]),
        pq.Mixture([laplace, tail, pq.Uniform(loc, loc + spread + 1e-9 * abs(loc))], [1, 1, 1]),
    ]
    return made[rng.integers(len(made))]


def some_data(rng: np.random.Generator) -> np.ndarray[Any, Any]:
    n = int(rng.choice([0, 1, 2, 10, 100, 2000]))
    kind, spread = rng.integers(5), float(10.0 ** rng.uniform(-6, 6))
    if kind == 0:
        x = rng.normal(size=n)
    elif kind == 1:
        x = rng.integers(0, 5, size=n).astype(float)
    elif kind == 2:
        x = rng.standard_cauchy(size=n)
    elif kind == 3:
        x = np.concatenate([rng.normal(size=n // 2), np.full(n - n // 2, 0.25)])
    else:
        x = np.where(rng.random(n) < 0.5, rng.normal(-1e4, 1e-3, n), rng.normal(5.0, 1.0, n))
    return np.sort(x) * spread


def counted(x: np.ndarray[Any, Any]) -> Points:
    values, counts = np.unique(x, return_counts=True)
    return Points(values, np.concatenate([[0], np.cumsum(counts)]))


def cases(count: int, seed: int) -> Any:
    """Requests, columns and uniforms of all kinds."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        x = some_data(rng)
        centre, spread = (float(np.median(x)), float(np.std(x)) + 1e-3) if len(x) else (0.0, 1.0)
        m = int(rng.choice([1, 2, 3, 9]))
        quantiles = even_quantiles(m) if rng.random() < 0.5 else sorted({round(q, 4) for q in rng.random(m)})
        m = len(quantiles)
        one = some_prior(rng, centre, spread)
        priors = one if rng.random() < 0.5 else [some_prior(rng, centre, spread) for _ in range(m)]
        asked = tree(
            quantiles,
            priors,
            epsilon=float(f"{10.0 ** rng.uniform(-3, 2):.3g}"),
            arity=int(rng.choice([2, 2, 3, 4])),
            calibration=str(rng.choice(["paper", "sharp"])),
            adaptation=str(rng.choice(["conditional", "edge"])),
            adjacency=str(rng.choice(["add-remove", "replace"])),
            grid=None if rng.random() < 0.6 else float(f"{spread * 10.0 ** rng.uniform(-3, 1):.2g}"),
        )
        column = counted(x) if asked.request.step is None and rng.random() < 0.5 else asked.column(x, None)
        yield asked, column, rng.integers(1, 2**53, (4, m, 2)) * 2.0**-53


def both(asked: Tree, column: Any, uniforms: Any) -> tuple[Any, Any, Any]:
    """Outputs of the compiled walk, which lanes it left, and outputs of the specification."""
    quick = asked.compiled(column, uniforms)
    failed = np.isnan(quick).any(axis=1)
    assert np.isfinite(quick[~failed]).all()
    with np.errstate(all="ignore"):
        slow = np.array([asked.walked(column, one.tolist()) for one in uniforms])
    return quick, failed, slow


def same(found: Any, expected: Any, column: Any) -> bool:
    """Equal up to the last digits of a place within a cell."""
    unit = np.ptp(column.values) if len(column.values) else 1.0
    return bool(np.all(np.abs(found - expected) <= 1e-9 * (unit + np.abs(expected))))


@pytest.mark.parametrize("seed", range(10))
def test_same_uniforms_same_outputs(seed: int) -> None:
    """1,600 releases in all, by every kind of prior, tree and data; few are left to the slow way."""
    lanes, left = 0, 0
    for asked, column, uniforms in cases(40, seed):
        found, failed, expected = both(asked, column, uniforms)
        assert same(found[~failed], expected[~failed], column), (asked, column, uniforms)
        lanes, left = lanes + len(failed), left + int(failed.sum())
    assert left < 0.25 * lanes


def beyond_the_formulas(rng: np.random.Generator, n: int) -> np.ndarray[Any, Any]:
    """Numbers of which some are so large that the compiled formulas overflow, as those that stand for infinite ones."""
    ends = np.array([-np.finfo(float).max, -1e200, 1e70, 1e300, np.finfo(float).max])
    return np.sort(np.where(rng.random(n) < rng.choice([0.01, 0.2, 0.6]), rng.choice(ends, n), rng.normal(size=n)))


def test_what_is_beyond_the_compiled_formulas_is_left_and_nothing_else() -> None:
    """Nodes that weigh no number beyond have their outputs by machine code, and the same ones."""
    rng, given, outputs = np.random.default_rng(2), 0, 0
    for number in range(120):
        x = beyond_the_formulas(rng, int(rng.choice([3, 100, 3000])))
        prior = [pq.Cauchy(0, 10), pq.Laplace(0, 1), pq.Normal(5, 2), pq.Uniform(-9, 9), pq.Cauchy(0, 1e50)][number % 5]
        asked = tree(even_quantiles(9), prior, epsilon=float(rng.choice([0.1, 1.0, 10.0])))
        column, uniforms = (Points(x), counted(x))[number % 2], rng.integers(1, 2**53, (4, 9, 2)) * 2.0**-53
        found, _, expected = both(asked, column, uniforms)
        known = ~np.isnan(found)
        assert np.all(np.abs(found - expected)[known] <= 1e-9 * (1.0 + np.abs(expected[known]))), (number, x)
        given, outputs = given + int(known.sum()), outputs + known.size
    assert 0.2 * outputs < given < 0.95 * outputs


def test_outputs_lie_in_the_cell_that_the_law_gives() -> None:
    """On a column with distinct records the ranks of the outputs agree exactly, not only the values nearly."""
    rng = np.random.default_rng(1)
    x = np.sort(rng.normal(size=5000))
    asked = tree(even_quantiles(9), pq.Laplace(0.1, 0.5).mix(pq.Cauchy(0, 1), 0.1))
    found, failed, expected = both(asked, Points(x), rng.integers(1, 2**53, (100, 9, 2)) * 2.0**-53)
    assert not failed.any()
    assert np.array_equal(np.searchsorted(x, found), np.searchsorted(x, expected))


@pytest.mark.parametrize("n", [0, 1, 7, 10**5])
def test_a_hopeless_prior_takes_no_more_than_logarithms(n: int) -> None:
    """All of the prior's mass is too far away for a float: the compiled walk goes over to logarithms."""
    x = np.sort(np.random.default_rng(n).normal(size=n))
    asked = tree([0.25, 0.5], pq.Laplace(1e4, 1.0))
    found, failed, expected = both(asked, Points(x), np.random.default_rng(0).random((20, 2, 2)))
    assert not failed.any()
    assert same(found, expected, Points(x))


def test_a_far_prior_is_bounded_and_not_weighed_cell_by_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all of the mass in one far cell the answer is that cell's exactly where its weight says so."""
    x = np.arange(1000.0)
    for epsilon in (0.001, 0.01, 0.1):
        asked = tree([0.5], pq.Laplace(5000.0, 1.0), epsilon=epsilon)
        found, failed, expected = both(asked, Points(x), np.random.default_rng(0).random((200, 1, 2)))
        assert not failed.any()
        assert same(found, expected, Points(x))
    assert found.min() < 999.0 < found.max() or epsilon == 0.1


@pytest.mark.parametrize(
    "prior",
    [
        pq.Uniform(-3, 9),
        pq.Cauchy(1, 2),
        pq.HalfCauchy(2, -1),
        pq.Laplace(1, 2),
        pq.Normal(1, 2),
        pq.LogNormal(1, 0.7),
        pq.LogUniform(),
    ],
    ids=lambda prior: type(prior).__name__,
)
def test_masses_and_points_are_those_of_the_priors(prior: Prior) -> None:
    table = encode([prior])
    assert table is not None
    rows = table[0][0, 0]
    rng = np.random.default_rng(0)
    lower = np.concatenate([rng.normal(1, 4, 500), [-np.inf, -np.inf, 2.0, 0.5]])
    upper = lower + 10.0 ** rng.uniform(-12, 2, len(lower))
    upper[-4:] = [0.0, np.inf, np.inf, 0.5]
    expected, shares = prior.log_mass(lower, upper), rng.random(len(lower))
    with np.errstate(all="ignore"):
        found = [laws.log_mass(rows, a, b) for a, b in zip(lower, upper, strict=True)]
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
        for a, b, u, log_mass in zip(lower, upper, shares, expected, strict=True):
            if log_mass > -50.0:
                expected_point = prior.quantile_between(a, b, u)
                most = 1e-9 * min(b - a, 1e3) + 4e-15 * (1.0 + abs(expected_point))
                found_point = laws.point(rows, a, b, u)
                few = b - a < 2.0**23 * np.spacing(abs(expected_point))  # floats in the interval: left to the formulas
                assert abs(found_point - expected_point) <= most or (few and math.isnan(found_point))


@pytest.mark.parametrize("prior", [pq.Laplace(1, 2), pq.Normal(1, 2), pq.Cauchy(1, 2)])
def test_log_masses_hold_far_out_or_are_not_given(prior: Prior) -> None:
    """Where the mass is no float its logarithm is right, or NaN, which leaves the lane to the slow way."""
    table = encode([prior])
    assert table is not None
    rng, given = np.random.default_rng(0), 0
    for side in (1.0, -1.0):
        for distance in 10.0 ** rng.uniform(1, 8, 200):
            width = distance * 10.0 ** rng.uniform(-15, 3)
            a, b = sorted([1.0 + side * distance, 1.0 + side * (distance + width)])
            if rng.random() < 0.2:
                a, b = (a, np.inf) if side > 0 else (-np.inf, b)
            found = laws.log_mass(table[0][0, 0], a, b)
            if not math.isnan(found):
                given += 1
                assert found == pytest.approx(prior.log_mass(a, b), rel=2e-12)
    assert given > 200


@pytest.mark.parametrize("prior", [pq.Laplace(0, 2), pq.Normal(0, 2), pq.Cauchy(0, 2), pq.HalfCauchy(2, 0)])
def test_points_of_narrow_cells_have_all_their_digits(prior: Prior) -> None:
    table = encode([prior])
    assert table is not None
    rng = np.random.default_rng(0)
    for width in 10.0 ** rng.uniform(-15, 0.5, 300):
        a, u = width * rng.choice([rng.random(), -rng.random()]), rng.choice([rng.random(), 1e-9, 1.0 - 1e-9])
        expected = prior.quantile_between(a, a + width, u)
        assert abs(laws.point(table[0][0, 0], a, a + width, u) - expected) <= 2e-13 * width


@pytest.mark.parametrize("family", [pq.Laplace, pq.Normal, pq.Cauchy, lambda loc, scale: pq.HalfCauchy(scale, -loc)])
@pytest.mark.parametrize("far", [1e3, 1e9, 1e12, 1e14, 1e16])
def test_no_record_comes_out_under_a_wide_prior(family: Callable[[float, float], Prior], far: float) -> None:
    """However wide the prior is beside the records, a real output lies somewhere in a cell and not on its end."""
    x = np.random.default_rng(0).uniform(0, 1, 1000)
    for loc in (far, 0.0):
        outputs = pq.simulate(x, [0.5, 0.9], trials=300, epsilon=1, priors=family(loc, far), rng=1)
        assert len(np.unique(outputs)) == outputs.size
        assert not np.isin([outputs, np.nextafter(outputs, -9), np.nextafter(outputs, 9)], x).any()


@pytest.mark.parametrize("prior", [pq.Laplace(1, 2), pq.Normal(1, 2), pq.Cauchy(1, 2), pq.HalfCauchy(2, 1)])
def test_points_hold_far_out_or_are_not_given(prior: Prior) -> None:
    """A place within a cell that is far from the prior is right too, and not simply the end of the cell."""
    table = encode([prior])
    assert table is not None
    rng, given = np.random.default_rng(0), 0
    for distance in 10.0 ** rng.uniform(1, 5, 300):
        width = 10.0 ** rng.uniform(-6, 3)
        a, b, u = 1.0 + distance, 1.0 + distance + width, rng.random()
        if not isinstance(prior, pq.HalfCauchy) and rng.random() < 0.5:
            a, b = 2.0 - b, 2.0 - a
        found = laws.point(table[0][0, 0], a, b, u)
        if not math.isnan(found):
            given += 1
            scale = min(width, 4.0 / distance) if isinstance(prior, pq.Normal) else width
            assert abs(found - prior.quantile_between(a, b, u)) <= 1e-7 * scale + 1e-14 * distance
    assert given > 50


def test_cell_masses_are_masses_of_cells() -> None:
    prior = pq.Mixture([pq.Laplace(0, 1), pq.Cauchy(1, 2), pq.Normal(0, 3)], [1, 2, 3])
    table = encode([prior])
    assert table is not None
    edges = np.concatenate([[-np.inf], np.sort(np.random.default_rng(0).normal(size=99)), [np.inf]])
    out = np.empty(100)
    laws.add_cell_masses(table[0][0, 0], edges, out)
    np.testing.assert_allclose(out, np.exp(prior.log_mass(edges[:-1], edges[1:])), rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_target_ranks_are_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(3000):
        denominator = int(rng.choice([10, 100, 999983, 10**14, 10**15 - 1]))
        numerator, n = int(rng.integers(0, denominator + 1)), int(rng.choice([0, 7, 1000, 10**7, 2**40, 2**53, 2**62]))
        n = n if rng.random() < 0.5 else int(rng.integers(0, n + 1))
        exact = Fraction(numerator, denominator) * n
        fraction = np.array([numerator, denominator, 0])
        assert cells.exact_target(fraction, n, True) == (math.floor(exact), 0.0)
        whole, part = cells.exact_target(fraction, n, False)
        assert whole == math.floor(exact) and abs(Fraction(part) - (exact - whole)) <= Fraction(1, 2**52)


@pytest.mark.parametrize("seed", range(3))
def test_targets_of_long_quantiles_are_right_to_the_last_bit_of_a_part(seed: int) -> None:
    """Quantiles of forty digits, for any number of records; a mutant forgets what remains after fifty bits."""
    rng, forgotten = np.random.default_rng(seed), 0
    for _ in range(2000):
        denominator = int(rng.integers(10**15, 10**18)) * int(rng.integers(10**15, 10**18))
        q = Fraction(int(rng.integers(0, 10**15)) * denominator // 10**15, denominator)
        n = int(rng.choice([0, 7, 1000, 10**7, 2**40, 2**53, 2**62]))
        row = _in_bits(q)
        whole, part = cells.exact_target(np.array(row), n, False)
        assert 0.0 <= part <= 1.0
        assert abs(whole + Fraction(part) - q * n) <= Fraction(1, 2**30 if n > 2**53 else 2**44)
        whole, part = cells.exact_target(np.array([*row[:2], 0]), n, False)
        forgotten += abs(whole + Fraction(part) - q * n) > Fraction(1, 1000)
    assert forgotten > 200


def test_many_quantiles_of_many_digits_need_no_formulas() -> None:
    """Two hundred quantiles of seventeen digits: the outputs of the specification, to the last digits."""
    rng, m = np.random.default_rng(0), 200
    asked = tree([(i + 1) / (m + 1) for i in range(m)], pq.Cauchy(0, 3), epsilon=5.0)
    assert asked.arrays is not None and np.count_nonzero(asked.arrays.fractions[:, 2]) > 20
    column = Points(np.sort(rng.normal(size=3000)))
    quick, failed, slow = both(asked, column, rng.random((3, m, 2)))
    assert not failed.any()
    np.testing.assert_allclose(quick, slow, rtol=1e-9, atol=1e-9)
    floored = tree([(i + 1) / (m + 1) for i in range(m)], pq.Cauchy(0, 3), calibration="paper")
    assert floored.arrays is None  # a floor tells all digits


@pytest.mark.parametrize("grid", [None, 0.001])
def test_room_grows_with_what_is_weighed(grid: float | None) -> None:
    """A budget that leaves out no cell of more than there is room for at first; lanes in turn with others."""
    rng = np.random.default_rng(1)
    asked = tree(even_quantiles(3), pq.Cauchy(0, 3), epsilon=0.001, grid=grid)
    column = asked.column(np.sort(rng.normal(size=4 * walk.ROOM)), None)
    assert len(column.values) > walk.ROOM
    quick, failed, slow = both(asked, column, rng.random((4, 3, 2)))
    assert not failed.any()
    np.testing.assert_allclose(quick, slow, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("grid", [None, 0.25])
def test_a_node_that_is_left_leaves_the_others_as_they_are(grid: float | None) -> None:
    """A leaf's prior has no mass where the records are, or that of a node further up, and in some places the floats
    have the law: these nodes alone, and those below, come from the formulas."""
    rng, far = np.random.default_rng(3), pq.Uniform(50.0, 60.0)
    x = np.sort(np.concatenate([rng.normal(size=300), 1.5 + 2.0**-52 * rng.integers(0, 9, 60)]))
    for place, below in ((0, [0]), (8, [8]), (1, [0, 1, 2])):
        priors: list[Prior] = [pq.Cauchy(0, 3)] * 31
        priors[place] = far
        asked = tree(even_quantiles(31), priors, epsilon=300.0, grid=grid)
        column, uniforms = asked.column(x, None), rng.random((20, 31, 2))
        quick, _, slow = both(asked, column, uniforms)
        left = np.isnan(quick)
        assert left[:, below].all() and not left[:, [7, 15, 23]].any()
        assert same(quick[~left], slow[~left], column)
        full = [asked.walked(column, one.tolist(), kept.tolist()) for one, kept in zip(uniforms, quick, strict=True)]
        assert same(np.array(full), slow, column) and np.array_equal(np.array(full)[~left], quick[~left])
        for node in asked.plan.nodes:
            for child in filter(None, node.children):
                assert left[:, child.indices[0]][left[:, node.indices[0]]].all()


def test_outputs_of_a_node_are_sorted_however_many() -> None:
    rng = np.random.default_rng(2)
    for size in (0, 1, 2, 3, 10, 1000):
        values = rng.integers(-9, 9, size) * rng.choice([1.0, 0.5, 1e300], size)
        mine = values.copy()
        choose.sort_values(mine)
        assert mine.tolist() == np.sort(values).tolist()


def test_kept_code_goes_with_its_sources_and_their_constants() -> None:
    """numba looks at one file only when it keeps machine code; the digest of all is a part of the key."""
    for function in (
        walk.walk_lanes,
        losses.pair_losses,
        changes.pair_changes,
        coins.bet,
        loss.laplace_losses,
        loss.learned_losses,
    ):
        assert [cell.cell_contents for cell in function.py_func.__closure__] == [keep.SOURCES]
    keys = {
        keep.kept("int64(int64)")(make).dispatcher._cache._index_key(None, _Codegen())
        for make in (_maker(1), _maker(2))
    }
    assert len(keys) == 2
    assert cells.LATTICE_END == steps.LATTICE_END and walk.LEAST_LOG_MASS == independent.LEAST_LOG_MASS
    assert {pq.Uniform, pq.Cauchy, pq.HalfCauchy, pq.Laplace, pq.Normal, pq.LogNormal, pq.LogUniform} <= set(kinds())
    for family, kind in kinds().items():
        table = encode([family(*(1.0, 2.0)[: len(parameters_of(family))])])
        assert table is not None and table[0][0, 0, 0, [0, 3]].tolist() == [kind, 1.0]


class _Codegen:
    def magic_tuple(self) -> tuple[int]:
        return (0,)


def _maker(number: int) -> Any:
    def make(sources: int) -> Any:
        def run(x: int) -> int:
            return x + sources + number

        return run

    return make


def test_gaps_of_lanes_are_gaps() -> None:
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(0, 9, (3, 30)).astype(float), axis=1)
    quantiles = even_quantiles(4)
    values = np.sort(rng.integers(-1, 10, (9, 4)) + rng.choice([0.0, 0.5], (9, 4)), axis=1)
    targets = np.array([[q.numerator * 30 // q.denominator for q in quantiles]] * 3)
    found = lane_max_gaps(columns, np.full(3, 30), targets, values)
    assert found.tolist() == [pq.max_gap(columns[i % 3], quantiles, values[i]) for i in range(9)]


def test_prepared_and_counted_columns_have_the_law_of_their_records() -> None:
    x = np.random.default_rng(0).integers(0, 50, 1000).astype(float)
    values, counts = np.unique(x, return_counts=True)
    for grid in (None, 1, 0.5):
        options: dict[str, Any] = {"epsilon": 1, "priors": pq.Cauchy(20, 10), "grid": grid}
        for q in ([0.5], even_quantiles(9)):
            expected = pq.release(x, q, rng=5, **options).values
            for column in (pq.SortedColumn(x), pq.Counts(values, counts)):
                np.testing.assert_allclose(pq.release(column, q, rng=5, **options).values, expected, rtol=1e-12)
                assert pq.log_density(column, expected, q, **options) == pytest.approx(
                    pq.log_density(x, expected, q, **options), abs=1e-9
                )


@pytest.mark.parametrize("on_nan", ["drop", "lowest", "highest"])
def test_prepared_columns_keep_missing_records(on_nan: Any) -> None:
    x = [3.0, math.nan, 1.0, math.inf, 2.0, math.nan, -math.inf]
    options: dict[str, Any] = {"epsilon": 1, "priors": pq.Cauchy(2, 1), "on_nan": on_nan, "rng": 3}
    expected = pq.release(x, [0.25, 0.5, 0.9], **options).values
    assert pq.release(pq.SortedColumn(x), [0.25, 0.5, 0.9], **options).values.tolist() == expected.tolist()
    known = pq.Counts(x, [1] * 7)
    np.testing.assert_allclose(pq.release(known, [0.25, 0.5, 0.9], **options).values, expected, rtol=1e-12)


def test_simulated_releases_are_releases() -> None:
    x = np.random.default_rng(0).normal(size=50)
    for grid in (None, 0.25):
        options: dict[str, Any] = {"epsilon": 1, "priors": pq.Cauchy(0, 1), "grid": grid}
        values = pq.simulate(x, [0.9, 0.1, 0.9], trials=5, rng=7, **options)
        assert values.shape == (5, 3)
        assert values[0].tolist() == pq.release(x, [0.9, 0.1, 0.9], rng=7, **options).values.tolist()
        assert len(set(values[:, 0].tolist())) > 1
        assert pq.simulate(x, [0.5], trials=0, **options).shape == (0, 1)
    for bad in (-1, 1.5, True):
        with pytest.raises((TypeError, ValueError), match="trials"):
            pq.simulate(x, [0.5], trials=bad, epsilon=1, priors=pq.Cauchy(0, 1))  # type: ignore[arg-type]
