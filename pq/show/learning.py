"""Pictures of experiments with learned priors, `fig:pubpri-logepsplots` and `fig:mixplots`, on the caller's axes.

As in `pq.show.plots`, every function returns what it drew.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from IPython.display import Image, display
from matplotlib import pyplot as plt
from PIL import Image as Picture

from pq.show.plots import BLUE, GREEN, GREY, ORANGE, PURPLE, Array, band

# Colour tells what a prior is made of, dashes that a robust prior is mixed in.
STYLES: dict[str, dict[str, str]] = {
    "uniform": {"color": GREY},
    "half_cauchy": {"color": PURPLE},
    "public_quantiles": {"color": "black", "linestyle": ":"},
    "public_cauchy": {"color": GREEN},
    "pubfit": {"color": BLUE},
    "pubfit_robust": {"color": BLUE, "linestyle": "--"},
    "ogd": {"color": ORANGE},
    "ogd_robust": {"color": ORANGE, "linestyle": "--"},
}


def gap_curves(
    ax: Any, summary: Sequence[Mapping[str, Any]], along: str, labels: Mapping[str, str]
) -> dict[str, Array]:
    """Mean maximum gap of each method along a column, standard errors shaded.

    summary: rows with `method`, `mean`, `error` and the column `along`, of one data set and variant. labels: of the
    methods, in the order of the legend. Returns (3, points) arrays of the column, mean and standard error by method.
    """
    drawn = {}
    for method, label in labels.items():
        rows = sorted((row for row in summary if row["method"] == method), key=lambda row: row[along])
        columns = ([row[name] for row in rows] for name in (along, "mean", "error"))
        drawn[method] = band(ax, *columns, label=label, linewidth=1.4, **STYLES[method])
    ax.set_ylim(bottom=0)
    return drawn


def show(fig: Any, colours: int = 96) -> None:
    """Show a figure in a notebook with few colours: many shaded bands on top of each other make large files else.

    fig: a matplotlib figure; it is closed. colours: of the palette, between 2 and 256.
    """
    full, small = io.BytesIO(), io.BytesIO()
    fig.savefig(full, format="png")
    plt.close(fig)
    with Picture.open(full) as picture:
        few = picture.convert("RGB").quantize(colours, method=Picture.Quantize.MAXCOVERAGE, dither=Picture.Dither.NONE)
        few.save(small, format="png", optimize=True)
    display(Image(data=small.getvalue(), format="png"))
