"""Public numbers of whatever odd type are served or refused by the argument's name, and weights are no times."""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pq
from pq.core.budget.composition import zcdp_delta
from pq.learners import private_noise_std
from pq.sequential import DPLearned, PubDistribution, PubPrev, PubProx, Session, Standardise

TIMES: tuple[Any, ...] = (
    dt.timedelta(seconds=1),
    dt.date(1970, 1, 2),
    dt.time(0, 0, 1),
    np.timedelta64(1, "s"),
    np.datetime64("1970-01-02"),
    np.array(dt.timedelta(1), dtype=object),
    np.array("1970-01-02", dtype="M8[D]"),
)
NO_NUMBERS: tuple[Any, ...] = ("1", b"1", None, 1j, [1.0], object(), True, np.datetime64("NaT"), np.timedelta64("NaT"))
NO_FLOATS = (
    float("nan"),
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("Infinity"),
    10**400,
    -(10**400),
    Fraction(10**400, 3),
    10**5000,
    -(10**5000),
    Fraction(10**5000, 3),
)
NUMBERS = (Fraction(1, 2), np.float32(0.5), np.array(0.5), 1, np.int8(1), enum.IntEnum("One", "ONE").ONE)  # type: ignore[attr-defined]

A, B = pq.Normal(0, 1), pq.Cauchy(0, 1)
WEIGHTS: dict[str, Callable[[Any], Any]] = {
    "mixture": lambda w: pq.Mixture([A, B], [w, 2.0]).weights,
    "bins": lambda w: pq.PiecewiseConstant([0, 1, 2], [w, 2.0]).weights,
    "joint": lambda w: pq.JointPrior([A, B], [w, 2.0]).weights,
    "places": lambda w: pq.JointPrior.location_scale(A, [0.0, 1.0], [1.0], [w, 2.0]).weights,
    "described": lambda w: pq.Prior.from_dict(
        {"family": "Mixture", "priors": [A.to_dict(), B.to_dict()], "weights": [w, 2.0]}
    ).weights,
    "described joint": lambda w: pq.JointPrior.from_dict(
        {"family": "JointPrior", "members": [A.to_dict(), B.to_dict()], "weights": [w, 2.0]}
    ).weights,
}  # fmt: skip
PURE: dict[str, Callable[[Any], Any]] = {
    "weight": lambda w: A.mix(B, w),
    "log_loc": lambda v: pq.LogNormal(v, 1),
    "log_scale": lambda v: pq.LogNormal(0, v),
    "factor": lambda v: pq.LogNormal.around(5.0, v),
}


@pytest.mark.parametrize("where", WEIGHTS)
def test_weights_are_numbers_and_no_times(where: str) -> None:
    for weight in (*TIMES, *NO_NUMBERS, *NO_FLOATS):
        with pytest.raises((TypeError, ValueError), match=r"weights\[0\] must be"):
            WEIGHTS[where](weight)
    for weight in NUMBERS:
        assert WEIGHTS[where](weight) == (float(weight) / (float(weight) + 2.0), 2.0 / (float(weight) + 2.0))


@pytest.mark.parametrize("name", PURE)
def test_what_has_no_unit_is_no_time(name: str) -> None:
    for value in (*TIMES, *NO_NUMBERS, *NO_FLOATS):
        with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
            PURE[name](value)


def of(predictor: Any, name: str, **given: Any) -> Callable[[Any], Any]:
    return lambda value: predictor(**({"quantiles": [0.5], "loc": 0.0, "scale": 1.0} | given | {name: value}))


LINEAR: dict[str, Any] = {"resolution": 0.1, "dimension": 1}
PRIVATE: dict[str, Any] = LINEAR | {"steps": 3, "epsilon": 1, "delta": 1e-6}
ARGUMENTS: list[tuple[str, Callable[[Any], Any]]] = [
    *((name, of(PubPrev, name, robust=B)) for name in ("loc", "scale", "robust_weight")),
    *((name, of(PubDistribution, name, dimension=1)) for name in ("loc", "scale", "robust_weight")),
    ("size_guess", lambda v: of(PubDistribution, "size_guess", dimension=1)(0 if v is None else v)),
    ("resolution", of(PubProx, "resolution", dimension=1)),
    *((name, of(DPLearned, name, **PRIVATE)) for name in ("delta", "map_share", "reach")),
    ("step", lambda v: of(DPLearned, "step", **PRIVATE)((v, 0.01))),
    ("clip", lambda v: of(DPLearned, "clip", **PRIVATE)((v, 1.0))),
    ("delta", lambda v: Session(PubPrev([0.5], loc=0, scale=1), [0.5], epsilon=1, delta=v)),
    ("max_gap", lambda v: pq.epsilon_for([0.5], max_gap=v, priors=A, size_guess=20, trials=2, mechanism="tree")),
    ("min_width", lambda v: fitted(min_width=v)),
    ("scales", lambda v: fitted(scales=(v, 1e9))),
    ("loc", lambda v: fitted(loc=v)),
    ("scale", lambda v: fitted(scale=v)),
]


def fitted(**given: Any) -> Any:
    usual = {"sample_size": 2, "loc": 0.0, "scale": 1.0, "min_width": 0.1, "rng": np.random.default_rng(0)}
    return pq.fit_public([1.0, 2.0, 3.0], [0.5], **(usual | given))


@pytest.mark.parametrize(("name", "use"), ARGUMENTS)
def test_what_is_no_number_is_refused_by_name(name: str, use: Callable[[Any], Any]) -> None:
    in_seconds = name in ("loc", "scale", "resolution", "min_width", "scales")
    for value in (*NO_NUMBERS, *NO_FLOATS, *(() if in_seconds else TIMES)):
        if isinstance(value, list) and name in ("loc", "scale"):
            continue  # one for each quantile
        with pytest.raises((TypeError, ValueError), match=name):
            use(value)


LONG = (10**400, -(10**400), 10**5000, -(10**5000), Fraction(10**5000, 3), Fraction(-1, 10**5000))
NOISE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "gradient_sensitivity": 1.0}
USUAL: dict[str, Any] = {"quantiles": [0.5], "epsilon": 1, "priors": A}
EXACT: list[tuple[str, Callable[[Any], Any]]] = [
    ("epsilon", lambda v: pq.release([1.0], **(USUAL | {"epsilon": v}))),
    ("quantiles", lambda v: pq.release([1.0], **(USUAL | {"quantiles": [v]}))),
    ("grid", lambda v: pq.release([1.0], grid=v, **USUAL)),
    ("budget_power", lambda v: pq.plan([0.5], epsilon=1, budget_power=v)),
    ("total", pq.Ledger),
    ("delta", lambda v: pq.Ledger(1, delta=v)),
    ("epsilon", lambda v: pq.Ledger(1).spend(v, "")),
    ("q", lambda v: pq.rank(v, 3)),
    ("share", lambda v: pq.prior_between(2, 3, share=v)),
    *((name, lambda v, name=name: private_noise_std(8, **(NOISE | {name: v}))) for name in NOISE),
]  # fmt: skip


@pytest.mark.parametrize(("name", "use"), EXACT)
def test_numbers_longer_than_python_writes_are_refused_by_name(name: str, use: Callable[[Any], Any]) -> None:
    for value in LONG:
        with pytest.raises(ValueError, match=name) as refused:
            use(value)
        assert len(str(refused.value)) < 300


def test_a_delta_that_is_no_float_is_refused_by_name() -> None:
    for value in (Fraction(1, 10**5000), Fraction(10**400 - 1, 10**400)):
        with pytest.raises(ValueError, match="delta"):
            private_noise_std(8, **(NOISE | {"delta": value}))


@pytest.mark.parametrize("name", ["released", "features", "centre", "scale"])
def test_numbers_beyond_the_floats_are_refused_by_name(name: str) -> None:
    use: dict[str, Callable[[Any], Any]] = {
        "released": lambda v: PubPrev([0.5], loc=0, scale=1).observe([], [v]),
        "features": lambda v: Standardise()([v]),
        "centre": lambda v: Standardise(v, 1.0),
        "scale": lambda v: Standardise(0.0, v),
    }
    for value in (10**400, Fraction(-(10**400), 3), Decimal("sNaN"), 1j, object(), float("nan")):
        with pytest.raises(ValueError, match=name):
            use[name](value)


def test_more_releases_than_memory_holds_are_refused_before_the_charge() -> None:
    ledger = pq.Ledger(1)
    for trials in (10**12 + 1, 10**20, 10**400):
        with pytest.raises(ValueError, match="trials"):
            pq.simulate([1.0], [0.5], trials=trials, epsilon=1e-30, priors=A, ledger=ledger)
    assert ledger.spent == 0


@pytest.mark.parametrize("epsilon", [float("inf"), 10**400, Fraction(10**5000, 3), 1.7e308])
@pytest.mark.parametrize("rho", [5e-324, 0.1, 1e300, 1.7e308])
def test_conversions_take_numbers_beyond_the_floats(rho: float, epsilon: Any) -> None:
    assert zcdp_delta(rho, epsilon) == float(rho >= epsilon)


def test_an_arity_beyond_the_floats_is_exact() -> None:
    """The root of m + 1 is 2**1001, a power of two, where exp(sqrt(.)) overflows from 1024 on: both sides of one."""
    m = 1 << 1025 * 1025
    assert (pq.kary_arity(m - 1), pq.kary_arity(m)) == (1 << 1025, (1 << 1025) + 1)
