"""Sequences on dates, timestamps, times of day and durations learn what those on the same columns in seconds do."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import pq
from pq.sequential import DPLearned, NonPrivate, Predictor, PubDistribution, PubPrev, PubProx, Session, Static

QUANTILES = [0.25, 0.5]
DAY = 86_400.0
# Seconds of a tick, of the first day's middle, and a column in the kind from whole ticks.
KINDS: dict[str, tuple[float, float, Callable[[Any], Any]]] = {
    "date": (DAY, 17_900 * DAY, lambda ticks: ticks.astype("M8[D]")),
    "timestamp": (1.0, 1.5e9, lambda ticks: ticks.astype("M8[s]").astype("M8[us]")),
    "timestamp[Asia/Tokyo]": (
        1.0,
        1.5e9,
        lambda ticks: pd.Series(pd.to_datetime(ticks, unit="s", utc=True)).dt.tz_convert("Asia/Tokyo"),
    ),
    "time": (60.0, 32_400.0, lambda ticks: pa.array([dt.time(k // 60, k % 60) for k in ticks.tolist()])),
    "duration": (DAY, 500 * DAY, lambda ticks: ticks.astype("m8[D]")),
}
PREDICTORS: dict[str, Callable[[float, float], Predictor]] = {
    "static": lambda loc, scale: Static(pq.Cauchy(loc, scale), QUANTILES),
    "last": lambda loc, scale: PubPrev(QUANTILES, loc=loc, scale=scale, robust=pq.Cauchy(loc, scale)),
    "proxy": lambda loc, scale: PubProx(QUANTILES, loc=loc, scale=scale, resolution=0.1 * scale, dimension=1),
    "counts": lambda loc, scale: PubDistribution(QUANTILES, loc=loc, scale=scale, dimension=1),
    "private": lambda loc, scale: DPLearned(
        QUANTILES, loc=loc, scale=scale, resolution=0.1 * scale, dimension=1, steps=4, epsilon=1, delta=1e-6, rng=0
    ),
    "records": lambda loc, scale: NonPrivate(QUANTILES, loc=loc, scale=scale, resolution=0.1 * scale, dimension=1),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PREDICTORS)
def test_a_sequence_learns_the_same_from_a_kind_of_times_and_from_its_seconds(
    name: str, kind: str, tmp_path: Path
) -> None:
    """On a grid of whole ticks, where a value of a kind is no other number than what was drawn."""
    tick, middle, column = KINDS[kind]
    start = Session(PREDICTORS[name](middle, 50 * tick), QUANTILES, epsilon=4, grid=tick, rng=0)
    sessions, rng = (
        {kind: start, "number": Session(start.predictor, QUANTILES, epsilon=4, grid=tick, rng=0)},
        np.random.default_rng(1),
    )
    for day in range(4):
        ticks = np.rint(middle / tick + rng.normal(30 * day, 20, size=300)).astype(np.int64)
        columns, told = {kind: column(ticks), "number": ticks * tick}, []
        for own, one in sessions.items():
            released = one.step([day / 4], columns[own])
            assert released.kind == own
            read = pq.Release.from_dict(released.to_dict())
            assert np.array_equal(read.numbers, released.numbers)
            told.append((released.numbers.tolist(), one.predictor.priors([0.5]), one.predictor.priors([-1.0])))
        assert told[0] == told[1]
        assert abs(told[0][0][1] - middle) < 200 * tick
        if day == 1:
            for own, one in sessions.items():
                one.save(tmp_path / "state")
                sessions[own] = Session.resume(tmp_path / "state", rng=2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_prior_is_around_the_time_released_last(kind: str) -> None:
    tick, middle, column = KINDS[kind]
    ticks = np.rint(middle / tick + np.arange(-100, 101)).astype(np.int64)
    one = Session(PubPrev([0.5], loc=middle, scale=50 * tick), [0.5], epsilon=4, rng=0)
    released = one.step([], column(ticks))
    assert one.predictor.priors([]) == [pq.Laplace(float(released.numbers[0]), 50 * tick)]
    assert middle - 100 * tick <= released.numbers[0] <= middle + 100 * tick
    by_hand = PubPrev([0.5], loc=middle, scale=50 * tick)
    by_hand.observe([], released.values)
    assert by_hand.priors([]) == one.predictor.priors([])


def test_guesses_may_be_dates_and_durations(tmp_path: Path) -> None:
    loc, scale = dt.date(2019, 1, 1), dt.timedelta(days=30)
    seconds = (np.datetime64(loc) - np.datetime64(0, "s")) / np.timedelta64(1, "s"), 30 * DAY
    given: list[dict[str, Any]] = [
        {"loc": loc, "scale": scale},
        {"loc": np.datetime64(loc), "scale": np.timedelta64(30, "D")},
        {"loc": np.array([loc, loc], dtype="M8[D]"), "scale": [scale, scale]},
    ]
    for guesses in given:
        assert PubPrev(QUANTILES, **guesses).priors([]) == [pq.Laplace(*seconds)] * 2
    for guesses in given[:2]:
        known = PubDistribution(QUANTILES, dimension=0, **guesses)
        assert known.priors([]) == PubDistribution(QUANTILES, dimension=0, loc=seconds[0], scale=seconds[1]).priors([])
    one = Session(PubPrev(QUANTILES, **given[0]), QUANTILES, epsilon=1)
    one.save(tmp_path / "state")
    later = PubPrev(QUANTILES, loc=loc + scale, scale=scale)
    with pytest.raises(ValueError, match="predictor"):
        Session.resume(tmp_path / "state", like=Session(later, QUANTILES, epsilon=1))
    assert Session.resume(tmp_path / "state", like=one).count == 0


def test_public_times_are_fitted_in_seconds() -> None:
    days = np.datetime64("2019-01-01") + np.random.default_rng(0).integers(0, 300, size=200)
    seconds, middle = (days - np.datetime64(0, "s")) / np.timedelta64(1, "s"), 18_000 * DAY
    for x in (days, days.tolist()):
        one, other = (
            pq.fit_public(
                public,
                QUANTILES,
                sample_size=20,
                loc=middle,
                scale=30 * DAY,
                min_width=DAY,
                rng=np.random.default_rng(0),
            )
            for public in (x, seconds)
        )
        assert one == other
