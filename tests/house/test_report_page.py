"""The page of a release, looked at: on a screen, in the dark, on a phone, on paper, by keyboard and by ear."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pq
from browser import Page
from pq.core.kind import kind_named
from pq.private.report import grouped_page

HOSTILE = """"><script>document.title = "in"</script><img src=x onerror="document.title = 'in'">"""
COLUMN = np.random.default_rng(0).lognormal(10.6, 0.5, 1000)
DAYS = np.arange(np.datetime64("2020-01-01T00:00:00"), np.datetime64("2024-01-01T00:00:00"), np.timedelta64(1, "D"))
LONG = "Gesundheitsversorgungseinrichtungsverwaltungsmitarbeiter" * 3


class Telling(pq.Release):
    """A release that tells intervals and remarks."""

    @property
    def remarks(self) -> tuple[str, ...]:
        return ("The private total, 994, is far from size_guess, 20,000.", LONG)

    def interval(self, level: float = 0.95, size_guess: float | None = None) -> Any:
        kind = kind_named(self.kind)
        values = kind.to_numbers(self.values)
        ends = np.stack([values * 0.97, values * 1.02], axis=1)
        return kind.from_numbers(ends.ravel()).reshape(-1, 2)


def telling(x: Any, quantiles: Any, seed: int = 0, **options: Any) -> Any:
    one = pq.release(x, quantiles, epsilon=1, rng=seed, **options)
    return Telling(**{field.name: getattr(one, field.name) for field in dataclasses.fields(pq.Release)})


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages by what is particular about them."""
    folder = tmp_path_factory.mktemp("pages")
    salaries: dict[str, Any] = {"priors": pq.LogNormal(10.5, 0.6), "grid": 10, "mechanism": "joint"}
    one = telling(COLUMN, [0.1, 0.25, 0.5, 0.75, 0.9], **salaries)
    one.report(folder / "salaries.html", title="Salaries in 2025", purpose="For the annual report", unit="€")
    one.report(folder / "hostile.html", title=HOSTILE, purpose=HOSTILE, unit=HOSTILE, receipt=LONG)
    stamps = pq.release(DAYS, [0.25, 0.5], epsilon=1, priors=pq.Normal(1.64e9, 4e7), rng=0, mechanism="tree")
    stamps.report(folder / "stamps.html", title=LONG)
    many = np.linspace(0.01, 0.99, 99).round(2)
    telling(COLUMN, many, priors=pq.LogNormal(10.5, 0.6), mechanism="cells").report(folder / "many.html")
    keys = ("Care", HOSTILE, LONG)
    groups = {key: telling(COLUMN, [0.25, 0.5, 0.75, 0.9], seed=i, **salaries) for i, key in enumerate(keys)}
    text = grouped_page(groups, by="department", unit="€", title="Salaries by department")
    (folder / "groups.html").write_text(text, encoding="utf-8")
    return {path.stem: path for path in folder.iterdir()}


NAMES = ("salaries", "hostile", "stamps", "many", "groups")


@pytest.mark.parametrize("name", NAMES)
def test_it_is_quiet_legible_and_fits_every_window(name: str, page: Page, pages: dict[str, Path]) -> None:
    page.open(pages[name])
    for dark in (False, True):
        page.dark(dark)
        for width in (1280, 360):
            page.resize(width)
            assert page.axe() == []
            assert page.overflow() <= 0
    assert page.console_errors() == []
    assert page.requests() == []
    assert page.js("return document.title") != "in"


def test_its_letters_are_the_readers_own_and_large_enough(page: Page, pages: dict[str, Path]) -> None:
    page.open(pages["salaries"])
    assert page.style("body", "fontFamily").startswith("system-ui")
    assert page.js("return document.fonts.size") == 0
    for width in (1280, 360):
        page.resize(width)
        sizes = page.js(
            "return [...document.querySelectorAll('p, li, td, th, dd, dt, svg text, pre, figcaption')]"
            ".map(one => parseFloat(getComputedStyle(one).fontSize))"
        )
        assert len(sizes) > 50 and min(sizes) >= 13
        marks = page.js(
            "return [...document.querySelectorAll('svg text[text-anchor]')].map(one => {"
            "const box = one.getBoundingClientRect(); return [box.left, box.right]})"
        )
        assert marks[0][0] >= 0 and marks[-1][1] <= width
        assert all(one[1] < other[0] for one, other in itertools.pairwise(marks))


def test_the_dark_is_dark(page: Page, pages: dict[str, Path]) -> None:
    page.open(pages["salaries"])

    def light() -> list[int]:
        return [
            sum(map(int, re.findall(r"\d+", page.style("body", name))[:3])) for name in ("backgroundColor", "color")
        ]

    assert light()[0] > 600 > 200 > light()[1]
    curve = page.style(".line", "stroke")
    page.dark()
    assert light()[0] < 200 < 600 < light()[1]
    assert page.style(".line", "stroke") != curve


def test_the_keyboard_gets_everywhere_and_shows_where_it_is(page: Page, pages: dict[str, Path]) -> None:
    page.open(pages["groups"])
    stops = [page.tab()]
    assert (stops[0]["tag"], stops[0]["href"]) == ("a", "#numbers")
    assert page.js("return document.activeElement.getBoundingClientRect().left") >= 0
    while len(stops) < 30 and stops[-1]["tag"] != "body":
        stops.append(page.tab())
    stops.pop()
    assert all(stop["outline"] for stop in stops)
    assert [stop["href"] for stop in stops if stop["tag"] == "a"] == ["#numbers", "#group-1", "#group-2", "#group-3"]
    page.open(pages["groups"])
    page.tab()
    page.js("document.activeElement.click()")
    assert page.js("return document.activeElement.id") == "numbers"
    assert page.tab()["tag"] == "div"  # the table, which may be wider than its window


def test_the_picture_is_told_to_those_who_do_not_see_it(page: Page, pages: dict[str, Path]) -> None:
    page.open(pages["salaries"])
    tree = page.cdp("Accessibility.getFullAXTree")["nodes"]
    (image,) = [node for node in tree if node.get("role", {}).get("value") in ("image", "img")]
    told = image["name"]["value"]
    rows = page.js("return [...document.querySelectorAll('td.value')].map(one => one.textContent.trim())")
    assert len(rows) == 5 and "Step curve of the released quantiles" in told
    assert all(value in told for value in rows)
    assert "50% (median)" in told and "95% intervals" in told
    levels = page.js("return [...document.querySelectorAll('h1, h2, h3')].map(one => +one.tagName[1])")
    assert levels[0] == 1 and all(b <= a + 1 for a, b in itertools.pairwise(levels))


def test_it_prints(page: Page, pages: dict[str, Path]) -> None:
    page.open(pages["salaries"])
    page.dark()
    page.paper()
    assert page.style(".skip", "display") == "none"
    assert page.style("body", "backgroundColor") == "rgb(255, 255, 255)"
    sheets = len(re.findall(rb"/Type\s*/Page\b", page.pdf()))
    assert 1 <= sheets <= 4


def test_a_machine_reads_what_it_holds_as_the_page_says(page: Page, pages: dict[str, Path], tmp_path: Path) -> None:
    page.open(pages["hostile"])
    told = page.js("return JSON.parse(document.getElementById('release').textContent)")
    code = next(text for text in page.js("return [...document.querySelectorAll('pre')].map(one => one.textContent)")
                if "from_dict" in text)  # fmt: skip
    names: dict[str, Any] = {}
    exec(code.replace('"this page"', repr(str(pages["hostile"]))), names)
    assert isinstance(names["release"], pq.Release)
    assert names["release"].to_dict() == json.loads(json.dumps(told))
