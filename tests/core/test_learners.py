"""The learners against independent implementations, and the private prefix sums against dense linear algebra."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from pq import bounds
from pq.learners import (
    COCOB,
    DPFTRL,
    OGD,
    Averaged,
    EntropicMirror,
    SquareRootAggregator,
    StepsExceeded,
    TreeAggregator,
    mean_squared_error,
    noise_multiplier,
    private_noise_std,
    project_simplices,
    square_root_sensitivity,
    square_root_variances,
    tree_nodes,
    tree_variances,
)
from pq.private import noise

# ---- COCOB ----


class PublishedCOCOB:
    """Algorithm 2 of Orabona and Tommasi (2017) for one coordinate, line by line; g is the negative subgradient."""

    def __init__(self, w1: float, alpha: float = 100.0) -> None:
        self.w1 = self.w = w1
        self.alpha = alpha
        self.L = self.G = self.reward = self.theta = 0.0

    def step(self, subgradient: float) -> None:
        g = -subgradient
        self.L = max(self.L, abs(g))
        self.G = self.G + abs(g)
        self.reward = max(self.reward + (self.w - self.w1) * g, 0.0)
        self.theta = self.theta + g
        fraction = self.theta / (self.L * max(self.G + self.L, self.alpha * self.L))
        self.w = self.w1 + fraction * (self.L + self.reward)


COMMON_LOSSES = {
    "absolute": lambda w, t: math.copysign(1.0, w - 3.0),
    "square": lambda w, t: 2.0 * (w - 1.7),
    "steep square": lambda w, t: 5e4 * (w + 0.3),
    "logistic": lambda w, t: (-1.0 if t % 3 else 1.0) / (1.0 + math.exp(w if t % 3 else -w)),
    "hinge": lambda w, t: -1.0 if w < 2.0 else 0.25,
    "noisy": lambda w, t: w - 1.0 + math.sin(37.0 * t * t),
    "gaussian": lambda w, t: float(np.random.default_rng(t).normal()),
}


@pytest.mark.parametrize("name", COMMON_LOSSES)
@pytest.mark.parametrize("alpha", [100.0, 10.0])
def test_cocob_follows_the_published_path(name, alpha):
    gradient = COMMON_LOSSES[name]
    ours, published = COCOB([0.5], alpha=alpha), PublishedCOCOB(0.5, alpha)
    for t in range(600):
        np.testing.assert_allclose(ours.point, [published.w], rtol=1e-9, atol=1e-12, err_msg=f"step {t}")
        slope = gradient(published.w, t)
        if slope == 0.0:
            break  # the published algorithm may divide zero by zero
        ours.update([slope])
        published.step(slope)


def test_cocob_coordinates_are_independent():
    rng = np.random.default_rng(2)
    gradients = rng.normal(size=(200, 2, 3)) * [[1.0, 10.0, 1e-6], [1e8, 1.0, 3.0]]
    together = COCOB(np.zeros((2, 3)))
    alone = [[COCOB([0.0]) for _ in range(3)] for _ in range(2)]
    for step in gradients:
        together.update(step)
        for i, j in np.ndindex(2, 3):
            alone[i][j].update([step[i, j]])
    assert together.point.tolist() == [[learner.point[0] for learner in row] for row in alone]


def test_cocob_takes_the_same_steps_compiled_and_not(monkeypatch):
    """To the last bit, with freaks, odd gradients, bounds, tiny numbers: what is there decides which one runs."""
    from pq.core.learners import cocob
    from pq.core.machine import coins

    rng = np.random.default_rng(24)
    for _ in range(40):
        shape = (2, int(rng.integers(1, 5)))
        low, high = (-np.inf, np.inf) if rng.random() < 0.5 else (-rng.random(shape), 3.0 * rng.random(shape))
        common = {"scale": 10.0 ** rng.uniform(-3, 3, shape), "alpha": float(rng.choice([1.0, 100.0])), "patience": 5}
        pair = [COCOB(np.zeros(shape), lower=low, upper=high, **common) for _ in range(2)]
        sizes = 10.0 ** rng.uniform(-150, 150) * 10.0 ** rng.choice([0.0, 0.0, 0.0, 4.0], size=(80, *shape))
        gradients = sizes * rng.normal(0.5, 1.0, (80, *shape)) * (rng.random((80, *shape)) < 0.8)
        gradients[rng.random((80, *shape)) < 0.02] = np.nan
        for gradient in gradients:
            for learner, engine in zip(pair, (cocob.play_round, coins.bet), strict=True):
                monkeypatch.setattr(cocob, "_engine", lambda engine=engine: engine)
                learner.update(gradient)
            assert pair[0].point.tolist() == pair[1].point.tolist()
        assert len(np.unique(pair[0].point)) > 1


def test_cocob_waits_for_the_first_gradient():
    learner = COCOB([1.5, 1.5])
    for _ in range(60):  # longer than the patience: gradients of zero do not count
        learner.update([0.0, 1.0])
    assert learner.point[0] == 1.5
    assert learner.point[1] < 1.5
    fresh = COCOB([1.5])
    for _ in range(50):
        learner.update([-2.0, 0.0])
        fresh.update([-2.0])
    assert learner.point[0] == fresh.point[0] > 1.5
    with pytest.raises(ZeroDivisionError):
        PublishedCOCOB(1.5).step(0.0)


def steps_to_reach(learner: COCOB, freak_at: int, target: float = 3.0, size: float = 1e6, limit: int = 5000) -> int:
    """Steps after a freak gradient until the absolute loss around the target is nearly minimal."""
    for t in range(limit + freak_at):
        if t > freak_at and abs(learner.point[0] - target) < 0.3:
            return t - freak_at
        learner.update([size if t == freak_at else np.sign(learner.point[0] - target)])
    return limit


@pytest.mark.parametrize("freak_at", [0, 1, 7, 19, 20, 300])
@pytest.mark.parametrize("size", [1e6, -1e6, 1e12, 1e300, math.inf, math.nan])
def test_cocob_recovers_from_one_huge_gradient(freak_at, size):
    ordinary = steps_to_reach(COCOB([0.0]), 0, size=-1.0)
    assert steps_to_reach(COCOB([0.0]), freak_at, size=size) <= 4 * ordinary + 50
    # without the guards it is frozen
    if np.isfinite(size):
        assert steps_to_reach(COCOB([0.0], outlier_ratio=math.inf), freak_at, size=abs(size), limit=1000) == 1000


def test_cocob_accepts_gradients_that_stay_large():
    learner = COCOB([0.0])
    for _ in range(50):
        learner.update([1e-9])
    for _ in range(400):
        learner.update([1e6 * np.sign(learner.point[0] - 2.0)])
    assert abs(learner.point[0] - 2.0) < 0.5


def test_cocob_does_not_depend_on_the_unit():
    minutes, seconds = COCOB([40.0], scale=5.0), COCOB([2400.0], scale=300.0)
    for _ in range(300):
        slope = np.sign(minutes.point - 52.0) + 0.3 * np.sign(minutes.point - 60.0)
        minutes.update(slope)
        seconds.update(slope / 60.0)
        np.testing.assert_allclose(minutes.point * 60.0, seconds.point, rtol=1e-12)


def test_cocob_stays_in_its_bounds_and_comes_back():
    learner = COCOB([0.5], lower=0.0, upper=1.0)
    for _ in range(500):
        learner.update([-1.0])
        assert 0.0 <= learner.point[0] <= 1.0
    assert learner.point[0] == 1.0
    for _ in range(60):
        learner.update([1.0])
    assert learner.point[0] < 0.9  # the time at the bound was not banked against the way back
    free = COCOB([0.5])
    for t in range(600):
        free.update([-1.0 if t < 500 else 1.0])
    assert free.point[0] > 2.0  # without bounds it is far away after as long


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"initial": [math.nan]}, "initial"),
        ({"scale": 0.0}, "scale"),
        ({"alpha": 0.5}, "alpha"),
        ({"lower": 2.0, "upper": 1.0}, "lower"),
        ({"patience": 0}, "patience"),
        ({"outlier_ratio": 1.0}, "outlier_ratio"),
    ],
)
def test_cocob_refuses_bad_arguments(arguments, name):
    with pytest.raises(ValueError, match=name):
        COCOB(**{"initial": [0.0]} | arguments)


# ---- gradient and mirror descent ----


def test_ogd_steps_projects_and_averages():
    learner = Averaged(OGD([[0.0, 0.0], [1.0, 1.0]], step=[[1.0], [0.1]], lower=[[-2.0], [0.5]], upper=[[2.0], [4.0]]))
    path, point = [], np.array([[0.0, 0.0], [1.0, 1.0]])
    rng = np.random.default_rng(4)
    for gradient in rng.normal(scale=2.0, size=(50, 2, 2)):
        np.testing.assert_allclose(learner.point, point, rtol=1e-13)
        path.append(point)
        learner.update(gradient)
        point = np.clip(point - np.array([[1.0], [0.1]]) * gradient, [[-2.0], [0.5]], [[2.0], [4.0]])
    np.testing.assert_allclose(learner.average, np.mean(path, axis=0), rtol=1e-12)


def test_ogd_regret_is_within_the_classical_bound():
    """Sum of regrets <= D^2 / (2 step) + step * T * G^2 / 2 on absolute losses with moving targets."""
    rng = np.random.default_rng(6)
    targets, steps, reach = rng.uniform(-1.0, 1.0, 2000), 2000, 1.0
    learner = OGD([0.0], step=reach / math.sqrt(steps), lower=-1.0, upper=1.0)
    suffered = 0.0
    for target in targets:
        suffered += abs(learner.point[0] - target)
        learner.update(np.sign(learner.point - target))
    best = float(np.sum(np.abs(targets - np.median(targets))))
    assert suffered - best <= reach * math.sqrt(steps)


def projection_oracle(weights: np.ndarray, floor: float) -> np.ndarray:
    """The projection in relative entropy by bisection on the multiplier of the sum."""
    low, high = 0.0, 2.0 / float(np.max(weights))
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.sum(np.maximum(floor, middle * weights)) < 1.0 else (low, middle)
    return np.maximum(floor, high * weights)


@given(st.lists(st.floats(-30.0, 10.0), min_size=1, max_size=12), st.floats(0.0, 1.0))
def test_projection_in_relative_entropy(logs, robustness):
    floor = robustness / len(logs)
    got = project_simplices(logs, floor)
    assert got.sum() == pytest.approx(1.0, abs=1e-13)
    assert np.all(got >= floor)
    np.testing.assert_allclose(got, projection_oracle(np.exp(logs), floor), rtol=1e-9, atol=1e-13)


def test_projection_minimises_the_relative_entropy():
    rng = np.random.default_rng(8)
    weights, floor = rng.dirichlet(np.full(6, 0.3)), 0.08
    got = project_simplices(np.log(weights), floor)

    def divergence(w: np.ndarray) -> float:
        return float(np.sum(w * np.log(w / weights)))

    for other in floor + (1 - 6 * floor) * rng.dirichlet(np.full(6, 0.5), size=2000):
        assert divergence(other) >= divergence(got) - 1e-12


def test_entropic_mirror_is_exponentiated_gradient():
    rng = np.random.default_rng(10)
    learner, weights, floored = EntropicMirror(np.ones((2, 4)), step=0.3), np.full((2, 4), 0.25), np.full((2, 4), 0.25)
    robust = EntropicMirror(np.ones((2, 4)), step=0.3, robustness=0.4)
    for gradient in rng.normal(size=(40, 2, 4)):
        np.testing.assert_allclose(learner.point, weights, rtol=1e-11)
        assert np.all(robust.point >= 0.1)
        np.testing.assert_allclose(robust.point.sum(axis=1), 1.0, atol=1e-13)
        learner.update(gradient)
        robust.update(gradient)
        weights = weights * np.exp(-0.3 * gradient)
        weights /= weights.sum(axis=1, keepdims=True)
        # From the projected point, unlike the leader of DPFTRL, which forgets where the floor has stopped it.
        floored = np.array([projection_oracle(row, 0.1) for row in floored * np.exp(-0.3 * gradient)])
        np.testing.assert_allclose(robust.point, floored, rtol=1e-9)
    assert np.any(robust.point == 0.1)


def test_entropic_mirror_without_floor_comes_back_from_underflow():
    learner = EntropicMirror([0.5, 0.5], step=1.0)
    learner.update([0.0, 2000.0])
    assert learner.point.tolist() == [1.0, 0.0]
    learner.update([2000.0, 0.0])
    assert learner.point.tolist() == [0.5, 0.5]


# ---- private prefix sums ----


class Unit(np.random.Generator):
    """A source whose k-th standard normal row is the k-th unit vector: sums show which noise is in them."""

    def __new__(cls, size: int) -> Unit:
        return super().__new__(cls, np.random.PCG64(0))

    def __init__(self, size: int) -> None:
        super().__init__(np.random.PCG64(0))
        self.size, self.used = size, 0

    def standard_normal(self, size=None, dtype=np.float64, out=None):
        *rows, width = size
        assert width == self.size
        count = int(np.prod(rows))
        self.used += count
        return np.eye(self.size)[self.used - count : self.used].reshape(size)


def refined_tree(steps, std, shape, rng):
    return TreeAggregator(steps, std, shape, rng, refined=True)


def noise_matrix(make, steps: int) -> np.ndarray:
    """The matrix L with prefix sums + L z released, z in the order in which it was drawn."""
    size = 4 * steps + 64
    rng = Unit(size)
    sums = make(steps, 1.0, (size,), rng)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise, "ROUNDING_BITS", 52)  # to see the noise itself
        return np.array([sums.add(np.zeros(size)) for _ in range(steps)])[:, : rng.used]


@pytest.mark.parametrize("make", [TreeAggregator, refined_tree, SquareRootAggregator])
@pytest.mark.parametrize("std", [0.7, 1e-9, 3e7])
def test_private_sums_have_no_bits_below_the_noise(make, std):
    """The last bits of a float sum of a value and its noise can tell the value: rounded away, to a public step."""
    sums = make(40, std, (50,), np.random.default_rng(0))
    step = 2.0 ** (math.floor(math.log2(std)) - 20)
    for t in range(40):
        units = sums.add(np.full(50, std / 3 if t % 2 else 0.1 * std)) / step
        assert np.array_equal(units, np.rint(units)) and len(np.unique(units)) > 40


def incidence(matrix: np.ndarray) -> np.ndarray:
    """R with L R = A: what the mechanism adds its noise to."""
    return np.linalg.solve(matrix, np.tril(np.ones(matrix.shape)))


@pytest.mark.parametrize("steps", range(1, 65))
def test_tree_touches_exactly_bit_length_nodes(steps):
    """From the noise alone: the nodes are the unique R with L R = A, and each value is in so many of them."""
    nodes = incidence(noise_matrix(TreeAggregator, steps))
    assert set(np.round(nodes, 9).ravel().tolist()) <= {0.0, 1.0}
    touched = np.round(nodes, 9).sum(axis=0)
    assert touched.max() == steps.bit_length() == tree_nodes(steps) == bounds.tree_nodes(steps)
    assert touched[0] == steps.bit_length()


def test_the_count_of_the_paper_is_one_short_at_powers_of_two():
    short = [t for t in range(1, 65) if math.ceil(math.log2(t)) < noise_matrix_nodes(t)]
    assert short == [1, 2, 4, 8, 16, 32, 64]


def noise_matrix_nodes(steps: int) -> int:
    return int(np.round(incidence(noise_matrix(TreeAggregator, steps)).sum(axis=0)).max())


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 8, 21, 64])
def test_tree_variances_are_those_of_its_noise(steps):
    plain, better = noise_matrix(TreeAggregator, steps), noise_matrix(refined_tree, steps)
    np.testing.assert_allclose(np.sum(plain**2, axis=1), tree_variances(steps), rtol=1e-12)
    np.testing.assert_allclose(np.sum(better**2, axis=1), tree_variances(steps, refined=True), rtol=1e-12)


@pytest.mark.parametrize("steps", [1, 2, 5, 8, 13, 32])
def test_refined_tree_uses_only_the_nodes_that_were_paid_for(steps):
    """L R = A with R the incidence of all complete dyadic blocks, each drawn once in the order of completion."""
    blocks = [
        (t - 2**height, t) for t in range(1, steps + 1) for height in range(7) if t % 2**height == 0 and 2**height <= t
    ]
    rows = np.array([[float(start <= s < stop) for s in range(steps)] for start, stop in blocks])
    matrix = noise_matrix(refined_tree, steps)
    assert matrix.shape == (steps, len(blocks))
    np.testing.assert_allclose(matrix @ rows, np.tril(np.ones((steps, steps))), atol=1e-12)
    assert rows.sum(axis=0).max() == steps.bit_length()


@pytest.mark.parametrize("steps", [1, 2, 16, 63, 64, 65, 200])
def test_square_root_factorisation_is_exact(steps):
    full = noise_matrix(SquareRootAggregator, steps)[:, :steps]
    prefix = np.tril(np.ones((steps, steps)))
    np.testing.assert_allclose(full @ full, prefix, atol=1e-12)
    if steps <= 16:  # larger Jordan blocks are beyond a general square root
        np.testing.assert_allclose(full, scipy.linalg.sqrtm(prefix).real, atol=1e-4)
    np.testing.assert_allclose(np.sum(full**2, axis=1), square_root_variances(steps), rtol=1e-12)
    norms = np.linalg.norm(incidence(full), axis=0)
    assert norms.max() == pytest.approx(square_root_sensitivity(steps), rel=1e-12)
    assert norms.argmax() == 0


def exact_errors(steps: int) -> dict[str, Fraction]:
    """Mean squared errors at equal privacy in exact rationals, from the definitions."""
    squares = [Fraction(math.comb(2 * k, k) ** 2, 16**k) for k in range(steps)]
    total = sum(squares)
    root = total * sum((steps - k) * square for k, square in enumerate(squares)) / steps
    tree = Fraction(steps.bit_length() * sum(t.bit_count() for t in range(1, steps + 1)), steps)
    height = [1 / (2 - Fraction(1, 2**h)) for h in range(steps.bit_length())]
    nodes = sum(height[h] for t in range(1, steps + 1) for h in range(t.bit_length()) if t >> h & 1)
    return {"tree": tree, "tree-refined": steps.bit_length() * nodes / steps, "square-root": root}


@pytest.mark.parametrize("steps", [1, 2, 3, 15, 16, 31, 32, 100, 255, 256, 511])
def test_mean_squared_errors_are_exact(steps):
    for mechanism, error in exact_errors(steps).items():
        assert mean_squared_error(steps, mechanism) == pytest.approx(float(error), rel=1e-12)


def test_square_root_beats_both_trees_from_sixteen_steps_up():
    lengths = [*range(16, 700), *(2**k + d for k in range(10, 17) for d in (-1, 0, 1))]
    for steps in lengths:
        error = mean_squared_error(steps, "square-root")
        assert error < mean_squared_error(steps, "tree-refined") < mean_squared_error(steps, "tree"), steps
    exact = exact_errors(16)
    assert exact["square-root"] < exact["tree-refined"] < exact["tree"]


def test_square_root_is_never_worse_before_sixteen_either():
    for steps in range(1, 16):
        assert mean_squared_error(steps, "square-root") <= mean_squared_error(steps, "tree-refined") * (1 + 1e-12)


@pytest.mark.parametrize("mechanism", ["tree", "tree-refined", "square-root"])
def test_empirical_variance_of_every_prefix(mechanism):
    """Each prefix's sample variance over 4000 coordinates is chi-squared.

    Two-sided tests at 1e-6 over 100 prefixes and 3 mechanisms: a right program fails with probability below 3e-4.
    """
    make = {"tree": TreeAggregator, "tree-refined": refined_tree, "square-root": SquareRootAggregator}[mechanism]
    steps, width, std = 100, 4000, 3.0
    sums = make(steps, std, width, np.random.default_rng(12))
    variances = (
        square_root_variances(steps)
        if mechanism == "square-root"
        else tree_variances(steps, refined=mechanism == "tree-refined")
    )
    low, high = scipy.stats.chi2.ppf([5e-7, 1 - 5e-7], width)
    wrong = tree_variances(steps, refined=mechanism == "tree")
    rejected = 0
    for t in range(steps):
        error = sums.add(np.full(width, 2.0)) - 2.0 * (t + 1)
        square = float(error @ error) / std**2
        assert low <= square / variances[t] <= high, t
        rejected += not low <= square / wrong[t] <= high
    assert rejected > steps // 2  # the other tree's variances, or the tree's for the square root, are told apart


def test_prefix_sums_are_exact_without_noise_and_shapes_are_kept():
    rng = np.random.default_rng(14)
    values = rng.normal(size=(150, 2, 3))
    for make in (TreeAggregator, refined_tree, SquareRootAggregator):
        sums = make(150, 0.0, (2, 3), rng)
        got = np.array([sums.add(value) for value in values])
        np.testing.assert_allclose(got, np.cumsum(values, axis=0), atol=1e-11)
        assert isinstance(make(1, 0.0, (), rng).add(2.5), float)


def test_noise_comes_from_the_given_source_only():
    for make in (TreeAggregator, refined_tree, SquareRootAggregator):
        first, same, other = (make(5, 1.0, (2,), np.random.default_rng(seed)) for seed in (1, 1, 2))
        a, b, c = ([s.add([0.0, 0.0]).tolist() for _ in range(5)] for s in (first, same, other))
        assert a == b != c
        assert len({x for row in a for x in row}) > 2


def test_tree_keeps_a_logarithmic_memory():
    sums = TreeAggregator(10_000, 1.0, (), np.random.default_rng(0))
    most = 0
    for t in range(10_000):
        sums.add(1.0)
        most = max(most, len(sums._waiting))
        assert len(sums._waiting) == (t + 1).bit_count()
    assert most <= tree_nodes(10_000)


class Untouchable:
    """Data that may not be looked at."""

    def __array__(self, *args, **kwargs):
        raise AssertionError("the data were touched")


def test_one_step_too_many_is_refused_before_the_data_are_touched():
    for steps in (1, 4, 7):
        rng = np.random.default_rng(0)
        for sums in (TreeAggregator(steps, 1.0, 2, rng), SquareRootAggregator(steps, 1.0, 2, rng)):
            for _ in range(steps):
                sums.add([0.0, 0.0])
            with pytest.raises(StepsExceeded):
                sums.add(Untouchable())
            with pytest.raises(StepsExceeded):
                sums.add([0.0])
        learner = DPFTRL([0.0, 0.0], steps=steps, step=1.0, noise_std=1.0, rng=rng)
        for _ in range(steps):
            learner.update([0.0, 0.0])
        before = learner.point
        with pytest.raises(StepsExceeded):
            learner.update(Untouchable())
        assert learner.point.tolist() == before.tolist()


def test_aggregators_refuse_bad_arguments_and_shapes():
    rng = np.random.default_rng(0)
    for make in (TreeAggregator, SquareRootAggregator):
        for arguments, name in (
            ((0, 1.0, 2, rng), "steps"),
            ((2.5, 1.0, 2, rng), "steps"),
            ((2, -1.0, 2, rng), "noise"),
            ((2, math.nan, 2, rng), "noise"),
            ((2, 1.0, 2, 7), "rng"),
        ):
            with pytest.raises(ValueError, match=name):
                make(*arguments)
        sums = make(2, 1.0, 2, rng)
        with pytest.raises(ValueError, match="shape"):
            sums.add([1.0])
        assert sums.count == 0
        assert np.isfinite(sums.add([math.nan, math.inf])).all()
        assert "1234.5" not in repr(sums)


def gaussian_delta(epsilon: float, multiplier: float) -> mpmath.mpf:
    """The exact curve of the Gaussian mechanism, in mpmath."""
    with mpmath.workdps(50):
        e, s = mpmath.mpf(epsilon), mpmath.mpf(multiplier)
        return mpmath.ncdf(1 / (2 * s) - e * s) - mpmath.exp(e) * mpmath.ncdf(-1 / (2 * s) - e * s)


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3, 0.3])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 10.0, 100.0])
def test_noise_multiplier_is_the_least_private_one(epsilon, delta):
    multiplier = noise_multiplier(epsilon, delta)
    assert gaussian_delta(epsilon, multiplier) <= delta
    assert gaussian_delta(epsilon, multiplier * (1 - 1e-6)) > delta
    steps = 12
    assert private_noise_std(steps, epsilon=epsilon, delta=delta, gradient_sensitivity=1.0) == pytest.approx(
        bounds.dpftrl_noise(steps, epsilon, delta, version="sharp"), rel=1e-6
    )


def test_the_multiplier_of_the_paper_is_not_private_where_it_is_claimed():
    delta = 1e-5
    epsilon = 2 * math.log(1 / delta)  # the largest for which the claim is made
    claimed = math.sqrt(2 * math.log(1 / delta)) / epsilon
    assert gaussian_delta(epsilon, claimed) > 100 * delta


# ---- DP-FTRL ----


@pytest.mark.parametrize("mechanism", ["tree", "tree-refined", "square-root"])
def test_dpftrl_without_noise_is_follow_the_regularised_leader(mechanism):
    rng = np.random.default_rng(16)
    gradients = rng.normal(size=(20, 3))
    box = {"lower": [-0.5, -1.0, -9.0], "upper": 0.7}
    learner = DPFTRL(
        [0.1, 0.0, 0.0], steps=20, step=[0.2, 0.3, 0.4], noise_std=0.0, rng=rng, mechanism=mechanism, **box
    )
    for t, gradient in enumerate(gradients):
        total = gradients[:t].sum(axis=0)

        def objective(w, total=total):
            return np.sum((w - [0.1, 0.0, 0.0]) ** 2 / (2 * np.array([0.2, 0.3, 0.4])) + w * total)

        best = scipy.optimize.minimize(
            objective, np.zeros(3), bounds=[(-0.5, 0.7), (-1.0, 0.7), (-9.0, 0.7)], tol=1e-14
        ).x
        np.testing.assert_allclose(learner.point, best, atol=1e-5)
        learner.update(gradient)


def test_dpftrl_with_entropy_without_noise():
    rng = np.random.default_rng(18)
    gradients = rng.normal(size=(30, 2, 5))
    learner = DPFTRL(
        np.ones((2, 5)), steps=30, step=0.2, noise_std=0.0, rng=rng, regularizer="entropic", robustness=0.3
    )
    for t, gradient in enumerate(gradients):
        weights = np.exp(-0.2 * gradients[:t].sum(axis=0))
        expected = [projection_oracle(row, 0.06) for row in weights]
        np.testing.assert_allclose(learner.point, expected, rtol=1e-9)
        learner.update(gradient)


def test_dpftrl_adds_the_noise_of_its_aggregator():
    for mechanism, make in (
        ("tree", TreeAggregator),
        ("tree-refined", refined_tree),
        ("square-root", SquareRootAggregator),
    ):
        learner = DPFTRL(
            np.zeros(2), steps=9, step=0.5, noise_std=2.0, rng=np.random.default_rng(3), mechanism=mechanism
        )
        sums = make(9, 2.0, 2, np.random.default_rng(3))
        for _ in range(9):
            learner.update([1.0, -1.0])
            np.testing.assert_allclose(learner.point, -0.5 * sums.add([1.0, -1.0]), rtol=1e-12)


def test_restarts_are_planned_and_start_from_the_point_reached():
    rng = np.random.default_rng(20)
    learner = DPFTRL([0.0], steps=6, step=1.0, noise_std=0.0, rng=rng, restarts=[2, 5], lower=-1.5)
    path = []
    for _ in range(6):
        learner.update([1.0])
        path.append(float(learner.point[0]))
    assert path == [-1.0, -1.5, -1.5, -1.5, -1.5, -1.5]
    noisy = DPFTRL([0.0], steps=6, step=1.0, noise_std=1.0, rng=np.random.default_rng(5), restarts=[4])
    for _ in range(4):
        noisy.update([0.0])
    centre = float(noisy.point[0])
    source = np.random.default_rng(5)
    first = TreeAggregator(4, 1.0, 1, source)
    for _ in range(4):
        first.add([0.0])
    second = TreeAggregator(2, 1.0, 1, source)
    noisy.update([0.0])
    assert float(noisy.point[0]) == pytest.approx(centre - second.add([0.0])[0], rel=1e-12)
    # a gradient is in one run only: the longest sets the noise
    std = private_noise_std(6, epsilon=1.0, delta=1e-6, gradient_sensitivity=2.0, restarts=[4])
    assert std == private_noise_std(4, epsilon=1.0, delta=1e-6, gradient_sensitivity=2.0)
    for bad in ([0], [6], [3, 3], [4, 2]):
        with pytest.raises(ValueError, match="restarts"):
            DPFTRL([0.0], steps=6, step=1.0, noise_std=0.0, rng=rng, restarts=bad)


def test_clipping_bounds_every_gradient():
    rng = np.random.default_rng(22)
    learner = DPFTRL([0.0, 0.0], steps=6, step=1.0, noise_std=0.0, rng=rng, clip=5.0)
    for gradient, move in (
        ([3.0, 4.0], [3, 4]),
        ([30.0, 40.0], [3, 4]),
        ([1e300, 0.0], [5, 0]),
        ([0.0, math.nan], [0, 0]),
        ([30.0, math.nan], [5, 0]),  # what is odd hides nothing else
        ([1e300, -math.inf], [5, 0]),
    ):
        before = learner.point
        learner.update(gradient)
        np.testing.assert_allclose(before - learner.point, move, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"regularizer": "lasso"}, "regularizer"),
        ({"mechanism": "forest"}, "mechanism"),
        ({"step": 0.0}, "step"),
        ({"steps": 0}, "steps|restarts"),
        ({"clip": 0.0}, "clip"),
        ({"noise_std": -1.0}, "noise_std"),
        ({"lower": 1.0, "upper": 0.0}, "lower"),
        ({"regularizer": "entropic", "initial": [0.0, 1.0]}, "initial"),
        ({"regularizer": "entropic", "initial": [1.0], "robustness": 2.0}, "robustness"),
    ],
)
def test_dpftrl_refuses_bad_arguments(arguments, name):
    good = {"initial": [0.0], "steps": 3, "step": 1.0, "noise_std": 1.0, "rng": np.random.default_rng(0)}
    with pytest.raises(ValueError, match=name):
        DPFTRL(**good | arguments)


# ---- the protocol ----

LEARNERS = {
    "cocob": lambda: COCOB(np.full((2, 3), 0.5)),
    "ogd": lambda: OGD(np.full((2, 3), 0.5), step=0.1),
    "averaged": lambda: Averaged(OGD(np.full((2, 3), 0.5), step=0.1)),
    "mirror": lambda: EntropicMirror(np.full((2, 3), 0.5), step=0.1, robustness=0.1),
    "dpftrl": lambda: DPFTRL(np.full((2, 3), 0.5), steps=9, step=0.1, noise_std=1.0, rng=np.random.default_rng(0)),
    "entropic": lambda: DPFTRL(
        np.full((2, 3), 0.5), steps=9, step=0.1, noise_std=1.0, rng=np.random.default_rng(0), regularizer="entropic"
    ),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_follows_the_protocol(name):
    learner = LEARNERS[name]()
    gradient = np.arange(6.0).reshape(2, 3)
    kept = gradient.copy()
    gradient.setflags(write=False)
    before = learner.point
    point = learner.point
    point[:] = 99.0  # a copy
    assert learner.point.tolist() == before.tolist()
    learner.update(gradient)
    assert learner.point.shape == (2, 3)
    assert learner.point.tolist() != before.tolist()
    assert gradient.tolist() == kept.tolist()
    after = learner.point
    with pytest.raises(ValueError, match="shape"):
        learner.update([1.0])
    assert learner.point.tolist() == after.tolist()
    for odd in (math.nan, math.inf, -math.inf, 1e308):
        learner.update(np.full((2, 3), odd))
        assert np.isfinite(learner.point).all()


@pytest.mark.parametrize("name", ["cocob", "ogd", "averaged", "mirror"])
def test_every_public_learner_learns(name):
    """The linear loss that prefers one coordinate: the learner moves that way."""
    learner = LEARNERS[name]()
    start = learner.point
    gradient = np.zeros((2, 3))
    gradient[:, 1] = -1.0
    for _ in range(100):
        learner.update(gradient)
    assert np.all(learner.point[:, 1] > start[:, 1])


@pytest.mark.parametrize("size", [1e-300, 1e-267, 1e-160, 1e200, 1e303])
def test_cocob_bets_alike_whatever_the_size_of_the_gradients(size: float) -> None:
    """The path does not depend on the unit of the losses, down to gradients whose squares are no floats."""
    paths = []
    for unit in (1.0, size):
        learner = COCOB(np.zeros(2))
        for t in range(30):
            learner.update(unit * np.array([1.0 if t % 3 else -1.0, 0.5]))
        paths.append(np.asarray(learner.point))
    assert np.all(np.isfinite(paths[1]))
    np.testing.assert_allclose(paths[1], paths[0], rtol=1e-9)
