"""The page of a release: a function of the release alone, that gives it back, tells no more, and lets no text in."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import os
import re
import subprocess
import sys
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pq
from pq.private.report import grouped_page, release_page
from pq.show.numbers import decimals_worth, number_text
from pq.show.promise import promise_of
from pq.show.step_curve import step_curve

HOSTILE = """"><script>alert(1)</script><img src=x onerror=alert(1)></title></script>{{ 7*7 }}<!-- &'"""
COLUMN = np.random.default_rng(0).lognormal(10.6, 0.5, 2000)
WAYS: dict[str, dict[str, Any]] = {
    "tree": {"mechanism": "tree", "priors": pq.Cauchy(4e4, 2e4), "adjacency": "replace", "max_contributions": 3},
    "joint": {"mechanism": "joint", "priors": pq.LogNormal(10.5, 0.6)},
    "cells": {"mechanism": "cells", "priors": pq.LogNormal(10.5, 0.6), "size_guess": 2000},
    "margin": {"mechanism": "margin", "priors": pq.Normal(4e4, 2e4), "grid": 100},
}


def made(way: str = "joint", x: Any = COLUMN, seed: int = 0) -> pq.Release:
    return pq.release(x, [0.25, 0.5, 0.9], epsilon=1, rng=seed, **WAYS[way])


class Elements(HTMLParser):
    """The tags of a page in order, and the text of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.scripts: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "script":
            self.scripts.append(data)


def described(page: str) -> Any:
    (text,) = (one for one in Elements(page).scripts if one.strip())
    return json.loads(text)


@pytest.mark.parametrize("way", WAYS)
def test_the_page_gives_the_release_back(way: str, tmp_path: Path) -> None:
    one = made(way)
    one.report(tmp_path / "page.html", title="Salaries")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert described(page) == one.to_dict()
    again = pq.Release.from_dict(described(page))
    again.report(tmp_path / "again.html", title="Salaries")
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "page.html").read_bytes()


def test_dates_and_stamps_are_told_in_their_own_words() -> None:
    days = np.arange(np.datetime64("2020-01-01"), np.datetime64("2024-01-01"))
    options: dict[str, Any] = {"epsilon": 1, "priors": pq.Normal(1.64e9, 4e7), "rng": 0}
    for column in (days, days.astype("datetime64[s]")):
        one = pq.release(column, [0.25, 0.75], grid=86400, **options)
        page = release_page(one)
        assert pq.Release.from_dict(described(page)).to_dict() == one.to_dict()
        assert re.search(r'<td class="value">\s*(<span class="whole">)?20\d\d-\d\d-\d\d', page)
        assert re.search(r'text-anchor="middle">20\d\d-\d\d-\d\d</text>', page)


def test_a_process_elsewhere_and_later_writes_the_same_bytes(tmp_path: Path) -> None:
    one = made("cells")
    one.report(tmp_path / "here.html", title="Salaries", unit="€")
    (tmp_path / "release.json").write_text(json.dumps(one.to_dict()), encoding="utf-8")
    code = (
        "import json, time, pq; time.time = lambda: 4e9\n"
        "one = pq.Release.from_dict(json.load(open('release.json')))\n"
        "one.report('there.html', title='Salaries', unit='€')"
    )
    changed = {"TZ": "Asia/Tokyo", "LANG": "de_DE.UTF-8", "USER": "ann", "PYTHONHASHSEED": "7", "HOME": str(tmp_path)}
    root = str(Path(pq.__file__).parents[1])
    environment = os.environ | changed | {"PYTHONPATH": root}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "there.html").read_bytes() == (tmp_path / "here.html").read_bytes()


def test_data_that_give_the_same_release_give_the_same_page() -> None:
    """The columns differ, the release is set to be the same: nothing of the column is left to tell them apart."""
    first, second = made(), made(x=np.full(7, math.nan))
    alike = dataclasses.replace(second, values=first.values, total=first.total, outcome=first.outcome)
    assert release_page(alike) == release_page(first)
    assert release_page(second) != release_page(first)


def test_no_text_gets_in_as_anything_else() -> None:
    """A broken variant, a template that escapes nothing, is caught by the same comparison."""
    texts = ("title", "purpose", "unit", "receipt")
    one = made()
    tame, wild = (release_page(one, **dict.fromkeys(texts, text)) for text in ("harmless", HOSTILE))
    assert Elements(wild).tags == Elements(tame).tags
    assert [name for name, _ in Elements(wild).attributes] == [name for name, _ in Elements(tame).attributes]
    assert described(wild) == one.to_dict()
    assert wild.count("{{ 7*7 }}") == tame.count("harmless")
    named = dataclasses.replace(one, outcome={HOSTILE: [HOSTILE]})
    assert Elements(release_page(named)).tags == Elements(release_page(one)).tags
    assert described(release_page(named))["outcome"] == {HOSTILE: [HOSTILE]}
    groups = grouped_page({HOSTILE: one, "b": one}, by=HOSTILE)
    assert Elements(groups).tags == Elements(grouped_page({"a": one, "b": one}, by="c")).tags
    unescaped = wild.replace("&lt;", "<").replace("&gt;", ">")
    assert Elements(unescaped).tags != Elements(tame).tags


def test_bad_texts_and_levels_are_refused_by_name(tmp_path: Path) -> None:
    one = made()
    with pytest.raises(TypeError, match="title"):
        one.report(tmp_path / "a.html", title=3)
    with pytest.raises(ValueError, match="purpose"):
        one.report(tmp_path / "a.html", purpose="\ud800")
    for level in (0, 1, 1.5, math.nan):
        with pytest.raises(ValueError, match="level"):
            one.report(tmp_path / "a.html", level=level)
    with pytest.raises(TypeError, match="level"):
        one.report(tmp_path / "a.html", level="0.95")
    with pytest.raises(ValueError, match="releases"):
        grouped_page({}, by="department")
    assert not list(tmp_path.iterdir())


def with_intervals(release: pq.Release, ends: Any, said: tuple[str, ...] = ()) -> Any:
    """The release as one that tells intervals and remarks."""

    class Telling(pq.Release):
        remarks: Any = said

        def interval(self, level: float = 0.95, size_guess: Any = None) -> Any:
            assert level == 0.9
            return np.array(ends, dtype=np.float64)

    fields = {field.name: getattr(release, field.name) for field in dataclasses.fields(pq.Release)}
    return Telling(**fields)


def test_intervals_and_remarks_are_told() -> None:
    ends = [[26000.25, 29000.5], [-math.inf, 41000.0], [70000.0, math.inf]]
    page = release_page(with_intervals(made(), ends, ("the prior is <far> off",)), level=0.9)
    text = re.sub(r"<[^>]+>", "", page)
    assert "90% interval" in text and "26,000 to 29,001" in text and "−∞ to 41,000" in text
    assert "The prior is &lt;far&gt; off." in page
    assert 'class="band"' in page and "Some go on beyond the picture." in page
    assert 'class="band"' not in release_page(made("tree"), level=0.9)


def test_groups_are_told_in_their_order_and_given_back() -> None:
    groups = {key: made(seed=seed) for seed, key in enumerate(("Sales", "Care", "Research"))}
    page = grouped_page(groups, by="department", unit="€", epsilon=2, max_contributions=3, facts={"max_groups": 2})
    told = described(page)
    assert [entry["key"] for entry in told["releases"]] == list(groups)
    for entry, one in zip(told["releases"], groups.values(), strict=True):
        assert pq.Release.from_dict(entry["release"]).to_dict() == one.to_dict()
    assert page.index("Sales</a>") < page.index("Care</a>") < page.index("Research</a>")
    assert "ε = 2" in page and "up to 3 records a person" in page and "<dt>max_groups</dt><dd>2</dd>" in page
    for key, one in groups.items():
        assert f"Released quantiles of {key}, rounded for reading; about {one.total:,} records" in page
    own = {"Sales": groups["Sales"], "Care": made("margin")}
    assert "LogNormal(" in grouped_page(own, by="x") and "Normal(loc=40000.0" in grouped_page(own, by="x")
    assert described(grouped_page(own, by="x", description={"own": 1})) == {"own": 1}


# --- the words ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 0.5, 1.0, 2.0, 4.5, 10.0, 50.0, 600.0])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_numbers_in_the_promise_are_never_less_than_the_truth(epsilon: float, adjacency: str) -> None:
    words = promise_of(epsilon, str(epsilon), adjacency=adjacency, max_contributions=2, on_grid=True)
    factor = re.search(r"factor of at most ([\d,.e+]+\d)\.", words.promise)
    assert factor is not None, words.promise
    with mpmath.workdps(600):
        power = mpmath.exp(epsilon)
        assert power <= mpmath.mpf(factor[1].replace(",", "")) <= power * 1.011
    belief = re.search(r"(?:beyond|hold it) ([\d.]+)%", words.promised[0])
    assert belief is not None, words.promised[0]
    with mpmath.workdps(600):
        exact = 100 * mpmath.exp(epsilon) / (1 + mpmath.exp(epsilon))
        assert exact <= mpmath.mpf(belief[1]) <= min(exact + 0.1001, 100)


def test_the_promise_says_what_holds_of_this_release() -> None:
    def told(**facts: Any) -> str:
        options: dict[str, Any] = {"adjacency": "add-remove", "max_contributions": 1, "on_grid": True} | facts
        words = promise_of(1.0, "1", **options)
        return " ".join([words.promise, "PROMISED", *words.promised, "NOT", *words.not_promised])

    protected = "How many records there are is protected"
    assert protected in told() and protected not in told(adjacency="replace") and protected not in told(public_total=9)
    assert "is not protected" in told(adjacency="replace") and "9, was taken for public" in told(public_total=9)
    assert "up to 3 of them" in told(max_contributions=3) and "12 records instead of 3" in told(max_contributions=3)
    assert "last digits" in told(on_grid=False) and "last digits" not in told()
    nothing = promise_of(math.inf, "∞", adjacency="replace", max_contributions=1, on_grid=True)
    assert not nothing.promised and "Any privacy at all." in nothing.not_promised


def test_an_infinite_budget_is_called_no_privacy() -> None:
    one = pq.release(COLUMN, [0.5], epsilon=math.inf, priors=pq.Uniform(0, 1e6), mechanism="tree", rng=0)
    page = release_page(one)
    assert "Any privacy at all." in page and "ε = ∞" in page


# --- numbers and the picture ---------------------------------------------------------------------------------------


@given(st.floats(-1e14, 1e14), st.integers(0, 6))
def test_numbers_for_reading_are_the_nearest_in_so_many_decimals(value: float, places: int) -> None:
    shown = Fraction(number_text(value, places).replace(",", "").replace("−", "-"))
    assert abs(shown - Fraction(value)) <= Fraction(1, 2 * 10**places)


def test_numbers_for_reading_are_short() -> None:
    assert number_text(-0.0001, 2) == "0.00" and number_text(-1234.5, 0) == "−1,234"
    assert number_text(1e300, 3) == "1e+300"
    assert decimals_worth(0.25, np.array([1.0]), None) == 2 and decimals_worth(100.0, np.array([1.0]), None) == 0
    assert decimals_worth(None, np.array([1.0, 2.0]), np.array([[0.97, 1.03], [1.9, 2.2]])) == 2
    assert decimals_worth(None, np.array([0.0]), None) <= 12


def corners(path: str) -> list[tuple[float, float]]:
    return [(float(x), 100 - float(y)) for x, y in re.findall(r"[ML]([\d.e-]+) ([\d.e-]+)", path)]


LEVELS = st.lists(st.sampled_from([i / 20 for i in range(21)]), min_size=1, max_size=8, unique=True)
FLOATS = st.floats(-1e308, 1e308)


@given(st.data())
def test_the_curve_steps_up_at_the_values(data: st.DataObject) -> None:
    levels = data.draw(LEVELS)
    size = len(levels)
    order = np.argsort(levels)
    values = np.empty(size)
    values[order] = np.sort(data.draw(st.lists(FLOATS, min_size=size, max_size=size)))
    reach = data.draw(st.lists(st.tuples(st.floats(0, math.inf), st.floats(0, math.inf)), min_size=size, max_size=size))
    ends = [(v - a, v + b) for v, (a, b) in zip(values.tolist(), reach, strict=True)]
    for intervals in (None, ends):
        curve = step_curve(levels, values.tolist(), intervals, str)
        line = corners(curve.line)
        assert line[0] == (0.0, 0.0) and line[-1][0] == 100.0
        assert all(a[0] <= b[0] and a[1] <= b[1] for a, b in itertools.pairwise(line))
        assert all(a[0] == b[0] or a[1] == b[1] for a, b in itertools.pairwise(line))
        assert [up for _, up in curve.dots] == sorted(round(100 * level, 3) for level in levels)
        assert set(curve.dots) <= set(line)
        assert all(0.0 <= x <= 100.0 for x, _ in (*line, *curve.ticks))
        for (across, _), (start, end, _) in zip(curve.dots, curve.bars, strict=False):
            assert start <= across <= end
        assert bool(curve.band) == bool(curve.bars) == (intervals is not None)
        if intervals:
            assert curve.cut or all(map(math.isfinite, itertools.chain(*intervals)))


def test_the_band_is_around_the_curve_and_every_interval() -> None:
    levels, values = [0.25, 0.5, 0.75], [10.0, 20.0, 30.0]
    curve = step_curve(levels, values, [(8.0, 31.0), (15.0, 22.0), (12.0, 33.0)], str)  # not in order: the band is
    band = corners(curve.band)
    for start, end, up in curve.bars:
        assert any(x <= start and y == up for x, y in band) and any(x >= end and y == up for x, y in band)
    assert not curve.cut


def test_marks_are_round_numbers_and_round_times() -> None:
    numbers = step_curve([0.1, 0.9], [0.0, 100.0], None, "{:g}".format).ticks
    assert [text for _, text in numbers] == ["0", "50", "100"]
    for width in (120.0, 7200.0, 86400.0 * 3, 86400.0 * 4000):
        ticks = [float(text) for _, text in step_curve([0.1, 0.9], [0.0, width], None, repr, spacing="clock").ticks]
        step = ticks[1] - ticks[0]
        assert 2 <= len(ticks) <= 7 and step % (86400 if step > 86400 else 1) == 0


@pytest.mark.parametrize("days", [200, 2000, 20_000, 700_000])
def test_marks_of_dates_are_first_days_of_months(days: int) -> None:
    values = [0.0, 86400.0 * days]
    ticks = step_curve([0.1, 0.9], values, None, repr, spacing="calendar").ticks
    stamps = np.array([float(text) for _, text in ticks]).astype("datetime64[s]").tolist()
    assert 2 <= len(stamps) <= 7
    assert all((stamp.day, stamp.hour, stamp.minute) == (1, 0, 0) for stamp in stamps)
    assert days < 3000 or all(stamp.month == 1 and stamp.year % 2 == 0 for stamp in stamps)
    assert step_curve([0.5], [1e300], None, repr, spacing="calendar").dots == ((50.0, 50.0),)
