"""The surrogate losses against mpmath, their convexity, and the sensitivity of the epsilon-dependent loss."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pq import losses
from pq.core.losses.laplace import laplace_interval_arrays, laplace_interval_learned
from pq.core.machine.engine import Engine

TINY = 1e-290  # smaller results may be zero or subnormal


def interval_oracle(theta: float, phi: float, lower: float, upper: float) -> tuple[mpmath.mpf, ...]:
    """The loss, its gradient and the size of the terms of d_phi, to as many digits as the numbers span and 40 more.

    Without the absolute values of the closed form: with F the distribution function and f the density of the standard
    Laplace law, the mass is F(b phi - theta) - F(a phi - theta), whose derivatives are differences of f.
    """
    sizes = [abs(theta), 1.0, *(abs(end * phi) for end in (lower, upper) if math.isfinite(end))]
    width = (upper - lower) * phi
    span = math.log10(max(sizes)) - math.log10(max(min(1.0, width, abs(theta) or 1.0), 1e-320))
    with mpmath.workdps(40 + int(span + 0.25 * min(width, 3000.0))):  # the last: a mass near one
        t, p, a, b = (mpmath.mpf(value) for value in (theta, phi, lower, upper))

        def half(z: mpmath.mpf) -> mpmath.mpf:
            return mpmath.exp(-z) / 2 if z < 4000 else mpmath.mpf(0)

        near, far, base = a * p - t, b * p - t, mpmath.mpf(0)
        if near >= 0:  # a common factor exp(-base) of all masses and densities is left out
            near, far, base = mpmath.mpf(0), far - near, near
            mass = half(near) - half(far)
        elif far <= 0:
            near, far, base = far - near, mpmath.mpf(0), -far
            mass = half(far) - half(near)
        else:
            near = -near
            mass = 1 - half(near) - half(far)
        f_near, f_far = half(near), half(far)
        moment = (0 if mpmath.isinf(b) else b * f_far) - (0 if mpmath.isinf(a) else a * f_near)
        terms = sum(abs(end) * f for end, f in ((a, f_near), (b, f_far)) if f) / mass
        return base - mpmath.log(mass), (f_far - f_near) / mass, -moment / mass, terms


def check_interval(theta: float, phi: float, lower: float, upper: float, subject=losses.laplace_interval) -> None:
    *exact, terms = interval_oracle(theta, phi, lower, upper)
    got = subject(theta, phi, lower, upper)
    # Where d_phi changes sign, the terms that cancel set the scale of its error.
    ends = [abs(end) for end in (lower, upper) if math.isfinite(end)]
    crossing = 1e-15 * min(float(terms), max(1.0 / phi, *ends))
    slack = (0.0, 1e-322 / ((upper - lower) * phi), crossing)  # the second: ends in units of the scale may be subnormal
    parts = zip(("loss", "d_theta", "d_phi"), got, exact, (1e-12, 1e-10, 1e-10), slack, strict=True)
    for name, value, truth, digits, least in parts:
        if abs(truth) > 1e300:
            continue
        case = f"{name} at {theta=}, {phi=}, {lower=}, {upper=}: {value} for {mpmath.nstr(truth, 17)}"
        if abs(truth) < TINY:
            assert abs(value) < 1.1 * TINY, case
            continue
        assert abs(mpmath.mpf(float(value)) - truth) <= digits * abs(truth) + least, case


def extremes(count: int, seed: int) -> list[tuple[float, float, float, float]]:
    """Widths phi (b - a) and offsets |theta - phi (a + b) / 2| from 1e-300 to 1e300, and priors on and near an end."""
    rng = np.random.default_rng(seed)
    cases = []
    while len(cases) < count:
        phi = 10.0 ** rng.uniform(-140, 140)
        width, offset = 10.0 ** rng.uniform(-300, 300, size=2)
        middle = rng.choice([0.0, 1.0, -1.0, width * rng.uniform(-1, 1)]) * 10.0 ** rng.uniform(-5, 5)
        offset = rng.choice([0.0, offset, -offset, 0.5 * width, width * rng.uniform(-1, 1)])
        with np.errstate(all="ignore"):
            case = (middle + offset, phi, (middle - 0.5 * width) / phi, (middle + 0.5 * width) / phi)
        if np.all(np.isfinite(case)) and case[2] < case[3] and max(np.abs(case)) < 1e300:
            cases.append(tuple(float(value) for value in case))
    return cases


def test_interval_keeps_its_digits_over_the_extremes():
    for case in extremes(700, seed=1):
        check_interval(*case)


def test_interval_keeps_its_digits_on_a_grid_of_plain_numbers():
    widths = (1e-15, 1e-9, 1e-4, 0.29, 0.31, 1.0, 30.0, 1000.0)
    for width, lower, phi in itertools.product(widths, (-3.0, -1.0, 0.0, 1.0, 5.0), (1e-3, 1.0, 2.0)):
        for theta in (0.0, 1.0, -1.0, lower * phi, (lower + width) * phi, (lower + 0.5 * width) * phi, 10.0):
            if lower + width > lower:
                check_interval(theta, phi, lower, lower + width)


@pytest.mark.parametrize("width", [1e-12, 1e-5, 0.01, 0.25])
@pytest.mark.parametrize("offset", [-1e-4, -1e-7, 1e-9, 1e-6, 1e-3])
def test_slope_keeps_its_digits_near_its_zero(width, offset):
    """On a narrow interval at one scale from the location both terms of d_phi cancel: relative to what is left."""
    for phi in (1.0, 4.0, 2.0**-20):
        lower, upper = (1.0 + offset) / phi, (1.0 + offset + width) / phi
        for ends, theta in (((lower, upper), 0.0), ((-upper, -lower), 0.0)):
            truth = interval_oracle(theta, phi, *ends)[2]
            assert abs(losses.laplace_interval(theta, phi, *ends)[2] - truth) <= 1e-10 * abs(truth)


def test_interval_gradient_survives_subnormal_tails():
    check_interval(-820.8553525016748, 2.615141464723284e-79, -5.9763472890761485e81, -3.0136551212219174e80)
    check_interval(-7.555987585178089e-07, 2.7462487608170622e-30, -2.6320810402964867e32, 2.6320810347937167e32)


def test_the_comparison_rejects_ordinary_rounding():
    """The same formulas with the products rounded before the subtractions lose digits, and the comparison sees it."""

    def rounded(*arguments: float):
        t, p, a, b = (np.array([value]) for value in arguments)
        with np.errstate(all="ignore"):
            return [part[0] for part in losses.laplace_interval_fast(t, p, a, b, b - a)]

    check_interval(0.3, 1.1, 2.0, 3.0, rounded)
    with pytest.raises(AssertionError):
        check_interval(1e6 + 1e-5, 1.1, 1e6 / 1.1, 1e6 / 1.1 + 1e-4, rounded)
    check_interval(1e6 + 1e-5, 1.1, 1e6 / 1.1, 1e6 / 1.1 + 1e-4)


def test_interval_with_infinite_ends():
    for theta, phi, end in itertools.product((-700.0, -1.0, 0.0, 2.0, 50.0), (0.1, 1.0, 7.0), (-90.0, -1.0, 0.0, 3.0)):
        check_interval(theta, phi, end, math.inf)
        check_interval(theta, phi, -math.inf, end)
    assert losses.laplace_interval(0.3, 2.0, -math.inf, math.inf) == (0.0, 0.0, 0.0)


def test_interval_known_values():
    assert losses.laplace_interval(0.0, 1.0, 800.0, 801.0)[0] == pytest.approx(801.15182, rel=1e-8)
    assert losses.laplace_interval(0.0, 1.0, 0.0, 1e-20)[0] == pytest.approx(46.744849, rel=1e-8)


def test_a_closed_form_with_sinh_fails_the_comparison():
    """The paper's formula as it stands overflows on the very cases above: the comparison can tell."""

    def as_printed(theta: float, phi: float, a: float, b: float) -> float:
        half, centre = 0.5 * (b - a) * phi, theta - 0.5 * (a + b) * phi
        if a * phi <= theta <= b * phi:
            return half - math.log(math.exp(half) - math.cosh(centre))
        return abs(centre) - math.log(math.sinh(half))

    # the formula is right where it can be evaluated
    assert as_printed(0.2, 1.3, 0.5, 2.0) == pytest.approx(losses.laplace_interval(0.2, 1.3, 0.5, 2.0)[0], rel=1e-13)
    assert as_printed(1.0, 1.3, 0.5, 2.0) == pytest.approx(losses.laplace_interval(1.0, 1.3, 0.5, 2.0)[0], rel=1e-13)
    with pytest.raises(OverflowError):
        as_printed(0.0, 1.0, 1000.0, 3000.0)
    lost = as_printed(1.0, 1.0, 1.0 - 1e-9, 1.0 + 1e-9)
    assert abs(lost - float(interval_oracle(1.0, 1.0, 1.0 - 1e-9, 1.0 + 1e-9)[0])) > 1e-9


@given(
    st.lists(st.tuples(st.floats(-30, 30), st.floats(0.01, 20)), min_size=2, max_size=2),
    st.floats(-50, 50),
    st.floats(1e-6, 100),
    st.floats(0.01, 0.99),
)
def test_interval_is_convex_on_segments_and_lies_above_its_tangents(ends, lower, width, share):
    (t0, p0), (t1, p1) = ends
    upper = lower + width
    assume(upper > lower)
    t, p = (1 - share) * t0 + share * t1, (1 - share) * p0 + share * p1
    f0, f1 = losses.laplace_interval(t0, p0, lower, upper)[0], losses.laplace_interval(t1, p1, lower, upper)[0]
    f, d_theta, d_phi = losses.laplace_interval(t, p, lower, upper)
    slack = 1e-9 * (1 + abs(f0) + abs(f1))
    assert f <= (1 - share) * f0 + share * f1 + slack
    assert f1 >= f + d_theta * (t1 - t) + d_phi * (p1 - p) - slack


@given(st.data())
def test_quantiles_loss_is_convex_on_segments(data):
    m = data.draw(st.integers(1, 5))
    numbers = st.lists(st.floats(-20, 20), min_size=m, max_size=m)
    positive = st.lists(st.floats(0.05, 10), min_size=m, max_size=m)
    t0, t1, lower = (np.array(data.draw(numbers)) for _ in range(3))
    p0, p1, width = (np.array(data.draw(positive)) for _ in range(3))
    f0 = losses.laplace_quantiles(t0, p0, lower, lower + width)[0]
    f1, g_theta, g_phi = losses.laplace_quantiles(t1, p1, lower, lower + width)
    middle = losses.laplace_quantiles(0.5 * (t0 + t1), 0.5 * (p0 + p1), lower, lower + width)[0]
    slack = 1e-9 * (1 + abs(f0) + abs(f1))
    assert middle <= 0.5 * (f0 + f1) + slack
    assert f0 >= f1 + g_theta @ (t0 - t1) + g_phi @ (p0 - p1) - slack


def test_the_original_parameters_are_not_convex():
    """Control for the two tests above: in (location, scale) the same check fails."""

    def loss(location: float, scale: float) -> float:
        return losses.laplace_interval(location / scale, 1.0 / scale, 10.0, 11.0)[0]

    assert loss(0.0, 60.0) > 0.5 * (loss(0.0, 20.0) + loss(0.0, 100.0)) + 1e-3


def test_ties_are_widened_to_the_resolution():
    loss, d_theta, d_phi = losses.laplace_interval(3.0, 1.0, 3.0, 3.0)
    assert loss == math.inf
    assert np.isfinite([d_theta, d_phi]).all()
    widened = losses.laplace_interval(2.0, 1.5, 3.0, 3.0, min_width=1.0)
    assert widened == losses.laplace_interval(2.0, 1.5, 2.5, 3.5)
    assert losses.laplace_interval(2.0, 1.5, 3.0, 5.0, min_width=1.0) == losses.laplace_interval(2.0, 1.5, 3.0, 5.0)
    # a resolution that the float spacing of the ends swallows is still the width
    assert losses.laplace_interval(1e9, 1.0, 1e9, 1e9, min_width=1e-9)[0] == pytest.approx(math.log(2e9), rel=1e-9)


def test_interval_broadcasts_and_refuses_bad_parameters():
    theta, phi = np.zeros((4, 1, 3)), np.ones(3)
    lower, upper = np.arange(3.0), np.arange(3.0) + np.ones((2, 3))
    results = losses.laplace_interval(theta, phi, lower, upper)
    assert [r.shape for r in results] == [(4, 2, 3)] * 3
    for bad in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="phi"):
            losses.laplace_interval(0.0, bad, 0.0, 1.0)
    with pytest.raises(ValueError, match="min_width"):
        losses.laplace_interval(0.0, 1.0, 0.0, 1.0, min_width=-1.0)


@given(
    st.lists(
        st.tuples(st.floats(allow_nan=True), st.floats(1e-300, 1e300), st.floats(), st.floats()), min_size=1, max_size=5
    )
)
def test_interval_never_warns_whatever_the_data(rows):
    # warnings are errors in this suite
    theta, phi, lower, upper = np.array(rows).T
    losses.laplace_interval(theta, phi, lower, upper)
    losses.laplace_interval(theta, phi, lower, upper, min_width=1.0)


@pytest.mark.parametrize("machine", [True, False])
def test_losses_in_a_learners_units_are_those_of_the_intervals_there(
    machine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the closed form to full precision, also of intervals to widen, of half lines, and of one row for all; a
    mutant that does not widen is far off."""
    if not machine:
        monkeypatch.setattr(Engine, "ready", lambda self, seconds: False)
    rng = np.random.default_rng(3)
    loc, scale, least = np.array([3.0, -40.0]), np.array([0.5, 20.0]), np.array([0.02, 0.1])
    theta, phi = rng.normal(size=(50, 2)), rng.uniform(0.1, 9.0, (50, 2))
    for rows in (50, 1):
        lower = loc + scale * rng.normal(size=(rows, 2))
        upper = lower + scale * rng.choice([0.0, 1e-3, 0.5, 9.0, math.inf], (rows, 2))
        found = laplace_interval_learned(theta, phi, lower, upper, loc, scale, least)
        low, high = (np.broadcast_to((end - loc) / scale, theta.shape) for end in (lower, upper))
        exact = losses.laplace_interval(theta, phi, low, high, min_width=least)
        for one, other in zip(found, exact, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-9)
    as_they_are = laplace_interval_learned(theta, phi, lower, lower, loc, scale, 0.0 * least + 1e-9)
    widened = laplace_interval_learned(theta, phi, lower, lower, loc, scale, least)
    assert np.all(as_they_are[0] - widened[0] > 5.0)


@pytest.mark.parametrize("machine", [True, False])
@pytest.mark.parametrize("fast", [losses.laplace_interval_fast, laplace_interval_arrays])
def test_fast_variants_agree_on_moderate_numbers(fast, machine, monkeypatch):
    if not machine:
        monkeypatch.setattr(Engine, "ready", lambda self, seconds: False)
    rng = np.random.default_rng(3)
    theta, phi, lower = rng.normal(size=500), rng.uniform(0.1, 5.0, 500), rng.normal(size=500) * 4
    width = rng.uniform(0.01, 5.0, 500)
    exact = losses.laplace_interval(theta, phi, lower, lower + width)
    np.testing.assert_allclose(fast(theta, phi, lower, lower + width, width), exact, rtol=1e-9, atol=1e-9)
    one = fast(theta[:5], phi[:5], lower.reshape(-1, 5), (lower + width).reshape(-1, 5), width.reshape(-1, 5))
    assert [part.shape for part in one] == [(100, 5)] * 3
    np.testing.assert_allclose([part[0] for part in one], [part[:5] for part in exact], rtol=1e-9, atol=1e-9)


def test_log_sum_exp_against_mpmath_and_at_infinity():
    rng = np.random.default_rng(5)
    rows = rng.normal(scale=300.0, size=(20, 6))
    value, weights = losses.log_sum_exp(rows)
    for row, got, share in zip(rows, value, weights, strict=True):
        with mpmath.workdps(40):
            terms = [mpmath.exp(mpmath.mpf(entry)) for entry in row]
            assert float(mpmath.log(mpmath.fsum(terms))) == pytest.approx(got, rel=1e-14)
            assert [float(term / mpmath.fsum(terms)) for term in terms] == pytest.approx(share, rel=1e-12, abs=1e-300)
    value, weights = losses.log_sum_exp([[math.inf, 1.0, math.inf], [-math.inf] * 3])
    assert value.tolist() == [math.inf, -math.inf]
    assert weights[0].tolist() == [0.5, 0.0, 0.5]
    assert weights[1] == pytest.approx([1 / 3] * 3)


def test_linear_maps_by_finite_differences():
    rng = np.random.default_rng(7)
    maps, phi, features = rng.normal(size=(3, 4)), rng.uniform(0.5, 2.0, 3), rng.normal(size=4)
    lower, upper = np.array([-1.0, 0.5, 2.0]), np.array([0.0, 1.0, 2.5])
    _, d_maps, d_phi = losses.laplace_linear(maps, phi, features, lower, upper)
    h = 1e-6
    for i, j in itertools.product(range(3), range(4)):
        step = np.zeros_like(maps)
        step[i, j] = h
        up, down = (losses.laplace_linear(maps + s * step, phi, features, lower, upper)[0] for s in (1, -1))
        assert (up - down) / (2 * h) == pytest.approx(d_maps[i, j], abs=1e-7)
    assert d_maps.shape == (3, 4)
    assert d_phi.shape == (3,)


def test_proxy_is_the_interval_around_the_released_value():
    assert losses.proxy([1.0], [2.0], [4.0], 0.5)[0] == losses.laplace_interval(1.0, 2.0, 3.75, 4.25)[0]
    with pytest.raises(ValueError, match="resolution"):
        losses.proxy([1.0], [2.0], [4.0], 0.0)


def score_oracle(x: np.ndarray, edges: np.ndarray, target: float, epsilon: float) -> list[float]:
    """Mean score of each cell, piece by piece."""
    out = []
    for a, b in itertools.pairwise(edges):
        cuts = sorted({a, b, *(v for v in x if a < v < b)})
        total = mpmath.mpf(0)
        for c, d in itertools.pairwise(cuts):
            below = sum(v < 0.5 * (c + d) for v in x)
            total += (mpmath.mpf(d) - mpmath.mpf(c)) * mpmath.exp(-mpmath.mpf(epsilon) / 2 * abs(below - target))
        out.append(float(mpmath.log(total / (mpmath.mpf(b) - mpmath.mpf(a)))))
    return out


def test_scores_are_exact_integrals():
    rng = np.random.default_rng(11)
    edges = np.array([0.0, 1.0, 1.5, 4.0, 4.25, 10.0])
    for n in (0, 1, 7, 60):
        x = np.sort(np.round(rng.uniform(-2.0, 12.0, n), 1))  # with ties, on edges, and outside
        for target, epsilon in itertools.product((0, n // 3, 0.5 * n, n), (0.0, 0.1, 5.0, 300.0)):
            got = losses.log_scores(x, edges, [target], [epsilon])[0]
            assert got == pytest.approx(score_oracle(x, edges, target, epsilon), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("bad", [[0.0], [0.0, 0.0], [1.0, 0.0], [0.0, math.inf], [0.0, math.nan]])
def test_scores_refuse_bad_edges(bad):
    with pytest.raises(ValueError, match="edges"):
        losses.log_scores([1.0], bad, [0], [1.0])


def test_piecewise_loss_and_gradient_against_mpmath():
    rng = np.random.default_rng(13)
    for m, scale in itertools.product((1, 3), (1.0, 3000.0)):
        weights, logs = rng.dirichlet(np.ones(5), size=m), -scale * rng.uniform(size=(m, 5))
        value, gradient = losses.piecewise_constant(weights, logs)
        with mpmath.workdps(60):
            products = [
                mpmath.fsum(mpmath.exp(mpmath.mpf(s)) * mpmath.mpf(w) for s, w in zip(*rows, strict=True))
                for rows in zip(logs, weights, strict=True)
            ]
            total = mpmath.fsum(1 / product for product in products)
            assert float(mpmath.log(total)) == pytest.approx(value, rel=1e-13)
            for i, j in itertools.product(range(m), range(5)):
                truth = -mpmath.exp(mpmath.mpf(logs[i, j])) / products[i] ** 2 / total
                assert float(truth) == pytest.approx(gradient[i, j], rel=1e-10, abs=1e-290)


def worst_move(epsilons, cells, robustness, data, relative):
    """Largest movement of the gradient between neighbours that were drawn, over random and extreme robust weights."""
    rng = np.random.default_rng(17)
    edges = np.linspace(0.0, 1.0, cells + 1)
    floor, worst = robustness / cells, 0.0
    for x in data:
        logs = losses.log_scores(x, edges, [int(q * len(x)) for q in relative], epsilons)
        for gone in range(len(x)):
            y = np.delete(x, gone)
            other = losses.log_scores(y, edges, [int(q * len(y)) for q in relative], epsilons)
            for draw in range(6):
                free = rng.dirichlet(np.full(cells, 0.2), size=len(epsilons))
                if draw == 0:  # all that is free on one cell
                    free = np.eye(cells)[rng.integers(cells, size=len(epsilons))]
                weights = floor + (1 - robustness) * free
                moved = losses.piecewise_constant(weights, logs)[1] - losses.piecewise_constant(weights, other)[1]
                worst = max(worst, float(np.linalg.norm(moved)))
    return worst


@pytest.mark.parametrize("epsilons", [[0.05], [1.0], [20.0], [0.05, 0.02], [3.0, 20.0]])
def test_sensitivity_bounds_the_movement_of_the_gradient(epsilons):
    rng = np.random.default_rng(19)
    data = [np.sort(rng.uniform(size=n)) for n in (1, 2, 5, 9)] + [np.full(4, 0.11), np.array([0.1, 0.1, 0.9])]
    relative = [0.5, 0.9][: len(epsilons)]
    bound = losses.gradient_sensitivity(epsilons, 6, 0.25)
    worst = worst_move(epsilons, 6, 0.25, data, relative)
    assert worst <= bound * (1 + 1e-12)


def test_sensitivity_for_one_quantile_is_attained():
    """Two cells at the floor swap the gaps 0 and 1 when a record is added below; all else is far from the target."""
    for epsilon in (0.1, 1.0, 5.0):
        crowd = int(80 / epsilon)
        small = np.arange(1, crowd + 1) * 1e-6
        x = np.concatenate([0.25 - small[::-1], [0.5], 0.75 + small])
        edges, weights = [0.0, 0.25, 0.5, 0.75, 1.0], [[0.4, 0.1, 0.1, 0.4]]
        gradients = [
            losses.piecewise_constant(weights, losses.log_scores(y, edges, [crowd + 1], [epsilon]))[1]
            for y in (x, np.concatenate([[0.01], x]))
        ]
        moved = np.linalg.norm(gradients[1] - gradients[0])
        bound = losses.gradient_sensitivity([epsilon], 4, 0.4)
        assert 0.999 * bound <= moved <= bound * (1 + 1e-9)


def test_sensitivity_arguments():
    assert losses.gradient_sensitivity([0.0], 10, 1.0) == 0.0
    assert losses.gradient_sensitivity([1.0, 2.0], 10, 1.0) >= losses.gradient_sensitivity([2.0], 10, 1.0)
    assert losses.gradient_sensitivity([1.0, 2.0], 10, 1.0) == losses.gradient_sensitivity([2.0, 1.0], 10, 1.0)
    for arguments, name in ((([], 3, 0.5), "epsilons"), (([1.0], 0, 0.5), "cells"), (([1.0], 3, 0.0), "robustness")):
        with pytest.raises(ValueError, match=name):
            losses.gradient_sensitivity(*arguments)
