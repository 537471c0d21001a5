"""What the plots return is what they drew, and it is what they were given."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

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
