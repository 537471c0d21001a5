"""Pictures on axes that the caller gives; every function returns the numbers that it drew, for a notebook to assert.

Truth ring: what is drawn here may be known of the data. Axes are labelled with units, standard errors are shaded,
colours tell the curves apart for colour-blind readers too, and line styles tell budgets apart on paper.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

BLUE, ORANGE, GREEN, RED, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#994F88", "#56B4E9", "0.35"
YELLOW = "#E69F00"
COLOURS = (BLUE, ORANGE, GREEN, RED, PURPLE, GREY)
# A prior, a learner or an algorithm has one colour in all pictures. Those that share one are never in one picture;
# dashes tell variants of one method apart.
METHOD_COLOURS: dict[str, str] = {
    "uniform": GREY,
    "cauchy": GREEN,
    "half_cauchy": PURPLE,
    "normal": ORANGE,
    "laplace": YELLOW,
    "public_quantiles": "black",
    "public_cauchy": GREEN,
    "pubfit": BLUE,
    "ogd": ORANGE,
    "prev": ORANGE,
    "prox": BLUE,
    "dp": RED,
    "open": "black",
    "distribution": PURPLE,
    "original": BLUE,
    "kary_edge": ORANGE,
    "kary_conditional": GREEN,
    "tree": BLUE,
    "joint": ORANGE,
    "cells": GREEN,
    "margin": RED,
    "mixed": YELLOW,
    "auto": "black",
}
STYLE: dict[str, Any] = {
    "figure.dpi": 80,
    "svg.fonttype": "path",  # a reader's machine may lack the font, and labels would not fit their places
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.edgecolor": "none",
    "legend.framealpha": 0.85,
    "legend.fontsize": 9,
}
DASHES: dict[float, str] = {1.0: "--", 0.1: "-"}  # as in the paper: dashed for epsilon = 1, solid for 0.1


def style_of(method: str) -> dict[str, str]:
    """Colour and dashes of a method's curve, by its name in the tables; `_robust`, `_plain`, `_blind` are variants.

    >>> style_of("prox"), style_of("prox_plain")
    ({'color': '#0072B2', 'linestyle': '-'}, {'color': '#0072B2', 'linestyle': '--'})
    """
    base = method.removesuffix("_robust").removesuffix("_plain").removesuffix("_blind")
    dotted = method == "public_quantiles" or method.endswith("_blind")
    dashes = ":" if dotted else "--" if base != method else "-"
    return {"color": METHOD_COLOURS[base], "linestyle": dashes}


def picture(fig: Any, description: str) -> str:
    """A figure as SVG that says in words what it shows, the same text every time.

    fig: a matplotlib figure. description: for who does not see the figure; a sentence or two, no line breaks.
    """
    from matplotlib import rc_context

    drawn = io.StringIO()
    # The identifiers of two figures in one document must differ: clips and glyphs are found by them.
    name = "f" + hashlib.sha256(description.encode()).hexdigest()[:8]
    with rc_context({"svg.hashsalt": name}):
        fig.savefig(drawn, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    text = drawn.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'((?:\bid="|href="#|url\(#))', rf"\g<1>{name}-", text)
    # Hundredths of a point are enough for a path; the scales of glyphs have digits that count.
    text = re.sub(r'\bd="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), text)
    words = escape(description)
    return text.replace("<svg ", f'<svg role="img" aria-label="{words}" ', 1).replace(
        ">", f">\n <title>{words}</title>", 1
    )


def show(fig: Any, description: str) -> None:
    """Show a figure in a notebook as a vector picture, with a description for who does not see it, and close it.

    fig, description: as in `picture`.
    """
    from IPython.display import display
    from matplotlib import pyplot as plt

    text = picture(fig, description)
    plt.close(fig)
    display({"image/svg+xml": text, "text/plain": description}, raw=True)


def band(ax: Any, x: Any, mean: Any, error: Any, **style: Any) -> Array:
    """A curve of means with its standard errors shaded.

    x, mean, error: (n,), in order of x; an error of NaN (a single trial) leaves its place unshaded. style: of the line.
    Returns (3, n): what was drawn.
    """
    drawn = np.array([x, mean, error], dtype=np.float64)
    (line,) = ax.plot(drawn[0], drawn[1], **style)
    ax.fill_between(drawn[0], drawn[1] - drawn[2], drawn[1] + drawn[2], color=line.get_color(), alpha=0.2, linewidth=0)
    return drawn


def gap_against_m(
    ax: Any, summary: Sequence[Mapping[str, Any]], labels: Mapping[str, str]
) -> dict[tuple[str, float], Array]:
    """Mean maximum gap against the number of quantiles, one curve for each method and epsilon (`fig:mplots`).

    summary: rows with `method`, `epsilon`, `m`, `mean` and `error`, of one data set. labels: of the methods, in the
    order of the legend. Returns (3, number of m) arrays of m, mean and standard error by method and epsilon.
    """
    drawn = {}
    for place, (method, label) in enumerate(labels.items()):
        colour = METHOD_COLOURS.get(method, COLOURS[place % len(COLOURS)])
        for epsilon in sorted({float(row["epsilon"]) for row in summary}, reverse=True):
            rows = [row for row in summary if row["method"] == method and row["epsilon"] == epsilon]
            rows.sort(key=lambda row: row["m"])
            columns = ([row[name] for row in rows] for name in ("m", "mean", "error"))
            drawn[method, epsilon] = band(
                ax,
                *columns,
                color=colour,
                linestyle=DASHES.get(epsilon, "-."),
                marker="o",
                markersize=3.5,
                label=rf"{label}, $\varepsilon$ = {epsilon:g}",
            )
    ax.set_xlabel("number of quantiles $m$")
    ax.set_ylabel("maximum gap (records)")
    ax.set_ylim(bottom=0)
    return drawn


def cells(ax: Any, edges: Any, heights: Any, low: float, high: float, **style: Any) -> tuple[Array, Array]:
    """A function that is constant on cells, as steps; infinite outermost cells are cut at low and high.

    edges: (c + 1,) ascending. heights: (c,). Returns the edges as drawn (c + 1,) and the heights (c,).
    """
    cut = np.clip(np.asarray(edges, dtype=np.float64), low, high)
    values = np.asarray(heights, dtype=np.float64)
    ax.stairs(values, cut, **style)
    return cut, values


def tail(ax: Any, gaps: Any, probabilities: Any, **style: Any) -> tuple[Array, Array]:
    """The exact probability of a gap of at least g records, for g = 0, 1, ...

    gaps: (c,) gaps of the cells, not negative. probabilities: (c,) of the cells, summing to one.
    Returns g (k,) and the probabilities (k,) drawn.
    """
    sizes, weights = np.asarray(gaps, dtype=np.float64), np.asarray(probabilities, dtype=np.float64)
    g = np.arange(np.floor(sizes.max()) + 1)
    reached = np.array([min(1.0, weights[sizes >= level].sum()) for level in g])  # rounding may go beyond one
    ax.plot(g, reached, **style)
    return g, reached


def bars(
    ax: Any, names: Sequence[str], groups: Mapping[str, tuple[Any, Any]], colours: Sequence[str] = COLOURS
) -> dict[str, Array]:
    """Means with standard errors, side by side for each name.

    names: (k,) along the axis. groups: label -> (means (k,), standard errors (k,)). colours: of the groups, in order.
    Returns label -> (2, k) as drawn.
    """
    width = 0.8 / len(groups)
    place = np.arange(len(names), dtype=np.float64)
    drawn = {}
    for j, (label, (mean, error)) in enumerate(groups.items()):
        drawn[label] = np.array([mean, error], dtype=np.float64)
        left = place + (j - (len(groups) - 1) / 2) * width
        whiskers = {"elinewidth": 1, "capsize": 2}
        ax.bar(left, drawn[label][0], width, yerr=drawn[label][1], label=label, color=colours[j], error_kw=whiskers)
    ax.set_xticks(place, names)
    ax.grid(visible=False, axis="x")
    return drawn
