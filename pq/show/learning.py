"""Pictures of experiments with learned priors, `fig:pubpri-logepsplots` and `fig:mixplots`, on the caller's axes.

As in `pq.show.plots`, every function returns what it drew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pq.show.plots import Array, band, style_of


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
        drawn[method] = band(ax, *columns, label=label, linewidth=1.4, **style_of(method))
    ax.set_ylim(bottom=0)
    return drawn
