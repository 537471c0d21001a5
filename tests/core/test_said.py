"""Priors from what people say have the masses that were said: counted over bins in exact fractions."""

from __future__ import annotations

import datetime as dt
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pq
from pq.cli.release import parse_prior
from pq.core.seconds import seconds_of


def mass(prior: pq.PiecewiseConstant, low: float, high: float) -> Fraction:
    """Of (low, high], bin by bin, in fractions."""
    total = Fraction(0)
    for start, end, weight in zip(prior.edges[:-1], prior.edges[1:], prior.weights, strict=True):
        a, b = max(Fraction(start), Fraction(low)), min(Fraction(end), Fraction(high))
        total += max(b - a, Fraction(0)) / (Fraction(end) - Fraction(start)) * Fraction(weight)
    return total


def has_what_was_said(prior: pq.PiecewiseConstant, said: dict[str, float]) -> bool:
    """The share between low and high; nothing beyond least and most, and something beyond what has no end."""
    low, high = said["low"], said["high"]
    if abs(mass(prior, low, high) - Fraction(said["share"])) > 1e-12:
        return False
    below, above = float(mass(prior, prior.edges[0], low)), float(mass(prior, high, prior.edges[-1]))
    room = said.get("least") != low and said.get("most") != high
    if room and abs(below - above) > 1e-12:
        return False
    if prior.edges[0] < said.get("least", -math.inf) or prior.edges[-1] > said.get("most", math.inf):
        return False
    width = high - low
    return ("least" in said or prior.edges[0] < low - 1e5 * width) and (
        "most" in said or prior.edges[-1] > high + 1e5 * width
    )


@given(
    st.floats(-1e6, 1e6),
    st.floats(1e-3, 1e6),
    st.floats(0.01, 0.99),
    st.one_of(st.none(), st.floats(0, 1e6)),
    st.one_of(st.none(), st.floats(1e-3, 1e6)),
)
def test_the_prior_says_what_was_said(low: float, width: float, share: float, below: Any, above: Any) -> None:
    said = {"low": low, "high": low + width, "share": share}
    said |= {} if below is None else {"least": low - below}
    said |= {} if above is None else {"most": low + width + above}
    if not said["low"] < said["high"] or said.get("most", math.inf) == said["high"]:
        return  # lost in rounding
    prior = pq.prior_between(
        said["low"], said["high"], share=share, **{k: said[k] for k in ("least", "most") if k in said}
    )
    assert has_what_was_said(prior, said)


@pytest.mark.parametrize(
    "broken",
    [
        pq.Uniform(0, 200_000),  # all of it, none above
        pq.LogNormal(math.log(63_246), math.log(math.sqrt(10)) / 2.0),  # 95% within
        pq.Normal(110_000, 54_716),  # nine in ten, and some below zero
    ],
)
def test_other_laws_do_not(broken: pq.Prior) -> None:
    """The same facts asked of the priors themselves: the right one has them, these do not."""

    def facts(prior: pq.Prior) -> bool:
        inside, below = (math.exp(prior.log_mass(*ends)) for ends in ((20_000, 200_000), (-math.inf, 0)))
        return abs(inside - 0.9) < 1e-3 and below == 0.0 and prior.log_mass(1e6, math.inf) > -math.inf

    assert facts(pq.prior_between(20_000, 200_000, least=0)) and not facts(broken)


def test_dates_and_durations_are_said_in_their_own_type() -> None:
    said = pq.prior_between(dt.date(2020, 1, 1), dt.date(2021, 6, 30), most=dt.date(2024, 12, 31))
    low, high, most = (seconds_of(dt.date(*day)) for day in ((2020, 1, 1), (2021, 6, 30), (2024, 12, 31)))
    assert has_what_was_said(said, {"low": low, "high": high, "share": 0.9, "most": most})
    assert said == parse_prior("between(2020-01-01, 2021-06-30, most=2024-12-31)")
    hours = pq.prior_between(dt.timedelta(hours=1), dt.timedelta(hours=8), least=dt.timedelta(0), share=0.8)
    assert (
        hours
        == parse_prior("BETWEEN(PT1H, PT8H, share=0.8, least=PT0S)")
        == pq.prior_between(3600, 28800, share=0.8, least=0)
    )
    around = pq.LogNormal.around(dt.timedelta(hours=2), 3)
    assert around == pq.LogNormal(math.log(7200), math.log(3))
    two_in_three = math.exp(around.log_mass(2400, 21600))
    assert two_in_three == pytest.approx(math.erf(math.sqrt(0.5)), abs=1e-12)


def test_dates_are_released_under_such_priors() -> None:
    days = np.datetime64("2020-03-01") + np.arange(1000) % 200
    for prior in (
        pq.prior_between(dt.date(2020, 1, 1), dt.date(2021, 6, 30), least=dt.date(2010, 1, 1)),
        pq.Cauchy(dt.date(2020, 6, 1), dt.timedelta(days=100)),
        pq.Normal(np.datetime64("2020-06-01"), np.timedelta64(100, "D")),
        pq.Laplace(dt.datetime(2020, 6, 1), dt.timedelta(days=30)),
        pq.Uniform(dt.date(2019, 1, 1), dt.date(2021, 1, 1)),
    ):
        (value,) = pq.release(days, 0.5, epsilon=5, priors=prior, rng=0).values
        assert np.datetime64("2020-05-20") < value < np.datetime64("2020-06-28")
    lengths = (np.arange(1000) % 100).astype("m8[m]")
    for prior in (pq.LogNormal.around(dt.timedelta(hours=1), 3), pq.HalfCauchy(dt.timedelta(hours=1))):
        (value,) = pq.release(lengths, 0.5, epsilon=5, priors=prior, rng=0).values
        assert np.timedelta64(40, "m") < value < np.timedelta64(60, "m")


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({"low": 2, "high": 1}, "low"),
        ({"low": math.nan, "high": 1}, "low"),
        ({"low": 0, "high": 1, "share": 1}, "share"),
        ({"low": 0, "high": 1, "least": 0.5}, "least"),
        ({"low": 0, "high": 1, "most": 0.5}, "most"),
        ({"low": 0, "high": 1, "least": 0, "most": 1}, "room"),
        ({"low": -1e308, "high": 1e308}, "tail"),
    ],
)
def test_wrong_words_are_named(said: dict[str, float], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        pq.prior_between(said.pop("low"), said.pop("high"), **said)
    for wrong in ("2", None, True):
        with pytest.raises(TypeError, match="high"):
            pq.prior_between(1, wrong)
    with pytest.raises(ValueError, match="factor"):
        pq.LogNormal.around(1, 1)
    with pytest.raises(ValueError, match="between"):
        parse_prior("between(3, 2)")


def test_no_room_below_leaves_all_the_rest_above() -> None:
    prior = pq.prior_between(0, 100, least=0)
    assert mass(prior, 0, 100) == Fraction(0.9) and math.exp(prior.log_mass(100, math.inf)) == pytest.approx(0.1)
