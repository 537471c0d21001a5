"""What the plots return is what they drew, and it is what they were given."""

from __future__ import annotations

import itertools
import math
import random
import re
import xml.etree.ElementTree as ElementTree
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

import pq
from pq.show import plots

SHARED = Figure().subplots()  # a new figure for every example would take seconds


@pytest.fixture
def ax() -> Any:
    return Figure().subplots()


def summary() -> list[dict[str, Any]]:
    rows = [
        {"method": method, "epsilon": epsilon, "m": m, "mean": m / epsilon + len(method), "error": m / 10}
        for method in ("one", "three")
        for epsilon in (0.1, 1.0)
        for m in (1, 4, 9)
    ]
    return random.Random(0).sample(rows, len(rows))


def test_a_band_covers_one_standard_error_on_either_side(ax: Any) -> None:
    drawn = plots.band(ax, [1, 2, 3], [10, 20, 15], [1, 2, 3], color="C1", label="curve")
    assert drawn.tolist() == [[1, 2, 3], [10, 20, 15], [1, 2, 3]]
    (line,) = ax.lines
    assert line.get_xdata().tolist() == [1, 2, 3] and line.get_ydata().tolist() == [10, 20, 15]
    (area,) = ax.collections
    corners = {tuple(point) for point in area.get_paths()[0].vertices.tolist()}
    assert {(1.0, 9.0), (1.0, 11.0), (2.0, 18.0), (2.0, 22.0), (3.0, 12.0), (3.0, 18.0)} <= corners
    assert to_rgba(area.get_facecolor()[0], 1) == to_rgba("C1")


def test_a_band_without_errors_is_a_curve(ax: Any) -> None:
    drawn = plots.band(ax, [1, 2], [3, 4], [math.nan, math.nan])
    assert ax.lines[0].get_ydata().tolist() == [3, 4] and np.isnan(drawn[2]).all()
    ax.figure.canvas.draw()


def test_curves_of_the_figure(ax: Any) -> None:
    drawn = plots.gap_against_m(ax, summary(), {"three": "Three", "one": "One"})
    assert list(drawn) == [("three", 1.0), ("three", 0.1), ("one", 1.0), ("one", 0.1)]
    assert drawn["one", 0.1].tolist() == [[1, 4, 9], [1 / 0.1 + 3, 4 / 0.1 + 3, 9 / 0.1 + 3], [0.1, 0.4, 0.9]]
    for line, ((method, epsilon), values) in zip(ax.lines, drawn.items(), strict=True):
        assert line.get_ydata().tolist() == values[1].tolist()
        assert line.get_linestyle() == {1.0: "--", 0.1: "-"}[epsilon]
        assert line.get_label() == rf"{method.capitalize()}, $\varepsilon$ = {epsilon:g}"
    colours = [line.get_color() for line in ax.lines]
    assert colours[0] == colours[1] != colours[2] == colours[3]
    assert "quantiles" in ax.get_xlabel() and "records" in ax.get_ylabel() and ax.get_ylim()[0] == 0


def test_cells_are_cut_where_they_are_infinite(ax: Any) -> None:
    edges, heights = plots.cells(ax, [-math.inf, 0, 1, math.inf], [1, 3, 2], -5, 5)
    assert edges.tolist() == [-5, 0, 1, 5] and heights.tolist() == [1, 3, 2]
    (stairs,) = ax.patches
    assert stairs.get_data().values.tolist() == [1, 3, 2] and stairs.get_data().edges.tolist() == [-5, 0, 1, 5]


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 9)), min_size=1, max_size=10))
def test_a_tail_is_the_probability_of_at_least(pairs: list[tuple[int, int]]) -> None:
    ax = SHARED
    ax.clear()
    total = sum(weight for _, weight in pairs)
    g, reached = plots.tail(ax, [size for size, _ in pairs], [weight / total for _, weight in pairs])
    assert g.tolist() == list(range(max(size for size, _ in pairs) + 1))
    for level, probability in zip(g, reached, strict=True):
        assert math.isclose(probability, sum(weight for size, weight in pairs if size >= level) / total)
    assert reached.max() <= 1 and np.all(np.diff(reached) <= 1e-15)
    assert ax.lines[0].get_ydata().tolist() == reached.tolist()


def test_bars_stand_side_by_side(ax: Any) -> None:
    groups = {"a": ([1, 2], [0.1, 0.2]), "b": ([3, 4], [math.nan, math.nan])}
    drawn = plots.bars(ax, ["left", "right"], groups)
    assert drawn["a"].tolist() == [[1, 2], [0.1, 0.2]] and drawn["b"][0].tolist() == [3, 4]
    assert [bar.get_height() for bar in ax.patches] == [1, 2, 3, 4]
    left = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches)
    assert all(one[1] <= other[0] + 1e-12 for one, other in itertools.pairwise(left))
    assert [text.get_text() for text in ax.get_xticklabels()] == ["left", "right"]
    ax.figure.canvas.draw()


def test_the_style_has_only_settings_that_matplotlib_knows() -> None:
    from matplotlib import rc_context

    with rc_context(plots.STYLE):
        pass
    assert len(set(plots.COLOURS)) == len(plots.COLOURS)


@pytest.mark.parametrize("arity", range(2, 8))
@pytest.mark.parametrize("m", [1, 2, 9, 20])
def test_a_drawn_tree_hangs_together(ax: Any, m: int, arity: int) -> None:
    """Each bar but the root's is the end of one branch, which begins on the bar of its parent; dots lie on bars."""
    plan = pq.plan([Fraction(i, m + 1) for i in range(1, m + 1)], epsilon=1, arity=arity)
    plan.draw(ax)
    lines = [(line.get_xdata(), line.get_ydata()) for line in ax.lines]
    bars = [(x, y[0]) for x, y in lines if y[0] == y[1]]
    branches = [(x, y) for x, y in lines if y[0] != y[1]]
    assert len(bars) == len(plan.nodes) and len(branches) == len(plan.nodes) - 1
    for x, y in branches:
        assert sum(level == y[0] and low <= x[0] <= high for (low, high), level in bars) == 1
        assert sum(level == y[1] and low < x[1] < high for (low, high), level in bars) == 1
        assert y[0] == y[1] + 1
    for (low, high), level in bars:  # bars of a level do not overlap
        others = [other for other in bars if other[1] == level and other[0] is not low]
        assert sum(other[0][0] < high and low < other[0][1] for other in others) == 1
    for place in (dots.get_offsets()[0] for dots in ax.collections):
        assert sum(level == place[1] and low < place[0] < high for (low, high), level in bars) == 1


def test_a_picture_is_the_same_text_twice_and_says_what_it_shows() -> None:
    def made(words: str) -> str:
        fig = Figure(figsize=(2, 1))
        fig.subplots().plot([0, 1], [1, 3])
        return plots.picture(fig, words)

    text = made('A line that "rises" & ends')
    assert text == made('A line that "rises" & ends')
    root = ElementTree.fromstring(text)
    assert root.get("aria-label") == root[0].text == 'A line that "rises" & ends' and root.get("role") == "img"
    identifiers = re.findall(r'\bid="([^"]+)"', text)
    assert len({*identifiers}) == len(identifiers)
    assert "scale(0.015625)" in text  # of glyphs: with fewer digits letters shrink and stand apart
    assert not {*identifiers} & {*re.findall(r'\bid="([^"]+)"', made("Another"))}
    assert {*re.findall(r'href="#([^"]+)"', text)} <= {*identifiers}
    assert {*re.findall(r"url\(#([^)]+)\)", text)} <= {*identifiers}
