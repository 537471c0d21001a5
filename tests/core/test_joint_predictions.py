"""What joint priors are worth and learn: U against boxes by hand, refusals, gradients, weights from public data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pq
from pq.core.public_joint import average_posterior
from pq.losses import joint_mixture, place_and_width

X = [1.0, 2.0, 3.0, 4.0]
UNIFORM = pq.Uniform(0, 10)


def test_u_of_a_box_by_hand() -> None:
    """The optimal interval of level q is from record floor(q 4) to the next: (0, 1], three units, and (4, 10]."""
    for levels, mass in (
        ([0.5], 0.1), ([0.25, 0.5], 2 * 0.01), ([0.5, 0.25], 2 * 0.01), ([0.3, 0.4], 0.01), ([0.0, 1.0], 2 * 0.1 * 0.6),
        ([0.1, 0.2, 0.8], 6 * 0.01 / 2 * 0.1),
    ):  # fmt: skip
        assert pq.log_psi_joint(X, levels, UNIFORM) == pytest.approx(math.log(mass), abs=1e-12)
    narrow = pq.Uniform(1, 3)
    mixed = pq.JointPrior([UNIFORM, narrow], [3, 1])
    assert pq.log_psi_joint(X, [0.25, 0.5], mixed) == pytest.approx(math.log(0.75 * 0.02 + 0.25 * 0.5), abs=1e-12)
    assert pq.log_psi_joint([1.0, 2.0, 2.0, 2.0], [0.5], UNIFORM) == -math.inf
    for q in (0.2, 0.7):
        assert pq.log_psi_joint(X, [q], pq.Cauchy(2, 1)) == pytest.approx(pq.log_psi(X, q, pq.Cauchy(2, 1)), abs=1e-9)


def test_members_that_come_out_of_order_count_for_what_is_in_order() -> None:
    """Under the first member half of the draws are in order, under the second all."""
    prior = pq.JointPrior([pq.Uniform(0, 4), (pq.Uniform(0, 2), pq.Uniform(2, 4))], [1, 1])
    box = 0.5 * (1 / 16) + 0.5 * (1 / 4)
    assert math.exp(pq.log_psi_joint(X, [0.25, 0.5], prior)) == pytest.approx(box / (0.5 * 0.5 + 0.5), abs=1e-3)


@pytest.mark.parametrize("place", [-0.3, 0.0, 0.8])
def test_gradients_are_slopes(place: float) -> None:
    shape, low, high = [[-1.0, 0.5], [0.2, 1.0]], [-1.2, 0.1], [-0.7, 0.4]
    _, gradient = place_and_width(place, 1.3, shape, low, high)
    for k, step in enumerate(np.eye(2) * 1e-6):
        ends = [place_and_width(place + s * step[0], 1.3 + s * step[1], shape, low, high)[0] for s in (-1, 1)]
        assert gradient[k] == pytest.approx((ends[1] - ends[0]) / 2e-6, abs=1e-6)
    weights, logs = np.array([0.2, 0.8]), np.array([-900.0, -901.0])
    value, slopes = joint_mixture(weights, logs)
    assert value == pytest.approx(900 - math.log(0.2 + 0.8 / math.e), abs=1e-9)
    assert slopes == pytest.approx([-1 / (0.2 + 0.8 / math.e), -1 / (0.2 * math.e + 0.8)], abs=1e-9)


def test_weights_are_learned_and_none_is_lost() -> None:
    shape = [pq.Laplace(z, 0.1) for z in (-0.67, 0.0, 0.67)]
    belief = pq.JointPrior.location_scale(shape, places=[0, 25, 50, 75], widths=[1, 10])
    x = np.append(np.random.default_rng(1).normal(50, 10, 4000), [math.nan, math.inf])
    options: dict[str, Any] = {"sample_size": 100, "min_width": 0.01}
    found = pq.fit_public_joint(x, [0.25, 0.5, 0.75], prior=belief, rng=np.random.default_rng(0), **options)
    assert found.members == belief.members and found.weights[6] > 0.9
    assert min(found.weights) >= 1 / (8 * 40) - 1e-12
    with_zero = pq.JointPrior(belief.members, [0, *[1] * 7])
    again = pq.fit_public_joint(x, [0.25, 0.5, 0.75], prior=with_zero, rng=np.random.default_rng(0), **options)
    assert again.weights[0] == 0.0
    impossible = average_posterior(np.array([0.5, 0.5]), np.array([[-math.inf, -math.inf], [0.0, 0.0]]))
    assert impossible == pytest.approx([0.5, 0.5])


def test_public_arguments_are_refused_by_name() -> None:
    belief, rng = pq.JointPrior([UNIFORM], [1]), np.random.default_rng(0)
    good: dict[str, Any] = {"prior": belief, "sample_size": 2, "min_width": 1.0, "rng": rng}
    for changed, name in (
        ({"prior": UNIFORM}, "prior"), ({"min_width": 0}, "min_width"), ({"sample_size": 9}, "sample_size"),
        ({"ties": "no"}, "ties"), ({"prior": pq.JointPrior([[UNIFORM] * 2], [1])}, "priors"),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=name):
            pq.fit_public_joint(X, [0.5], **(good | changed))
    with pytest.raises(ValueError, match="x_public"):
        pq.fit_public_joint([X], [0.5], **good)
    for call, name in (
        (lambda: pq.bounds.joint_mixed_gap(0.5, -1.0, 0.0, 1.0, 0.1), "weight"),
        (lambda: pq.bounds.joint_mixed_psi([-1.0], [1, 1]), "log_psis"),
        (lambda: pq.bounds.joint_mixed_psi([1.0], [1]), "log_psis"),
        (lambda: pq.bounds.joint_mixed_psi([-1.0, -1.0], [1, -1]), "weights"),
        (lambda: pq.bounds.joint_even_gap(9, 9, -1.0, 1.0, 0.1), "n must"),
        (lambda: pq.bounds.joint_even_gap(9, 90, -1.0, 0.0, 0.1), "epsilon"),
        (lambda: pq.bounds.cells_gap(1.5, 4, 3, 1.0, 0.1), "quantile"),
        (lambda: pq.bounds.cells_gap(0.5, 4, -3, 1.0, 0.1), "largest"),
        (lambda: pq.bounds.cells_gap(0.5, 4, 3, 1.0, 1.0), "beta"),
    ):
        with pytest.raises(ValueError, match=name):
            call()


def test_the_bound_on_evenly_spaced_quantiles_is_linear() -> None:
    bounds = [pq.bounds.joint_even_gap(m, 10**6, -14.0, 1.0, 0.05) for m in (10, 100, 1000)]
    assert 5 < bounds[1] / bounds[0] < 10 and 5 < bounds[2] / bounds[1] < 10
