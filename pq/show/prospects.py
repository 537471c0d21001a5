"""A picture of what a release is expected to be off by, on the caller's axes; as in `pq.show.plots`, drawn numbers are
returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pq.show.plots import BLUE, GREY, ORANGE, Array

BAR = 40  # letters of the longest bar in a terminal


def quantile_errors(ax: Any, quantiles: Sequence[float], gap: Sequence[float]) -> Array:
    """Mean distance in ranks of each quantile as a bar. Returns (2, m): what was drawn."""
    drawn = np.array([quantiles, gap], dtype=np.float64)
    ax.vlines(*drawn[:1], 0.0, drawn[1], color=BLUE, linewidth=4)
    ax.set(xlabel="quantile", ylabel="mean distance (ranks)", xlim=(0.0, 1.0), title="Each quantile")
    ax.set_ylim(bottom=0.0)
    return drawn


def budget_curve(
    ax: Any, epsilons: Sequence[float], gaps: Sequence[float], others: Mapping[str, float], *, at: float
) -> Array:
    """Mean largest distance in ranks against the budget, and that with other priors at one of them.

    epsilons: (k,) increasing. gaps: (k,). others: gaps by label. at: the budget of the others.
    Returns (2, k): what was drawn of the curve.
    """
    drawn = np.array([epsilons, gaps], dtype=np.float64)
    ax.semilogx(*drawn, marker="o", color=BLUE, label="the prior as it is")
    for (label, gap), colour, marker in zip(others.items(), (ORANGE, GREY), "^v", strict=False):
        ax.plot(at, gap, marker=marker, linestyle="", color=colour, label=label)
    ax.set(xlabel="epsilon", ylabel="mean largest distance (ranks)", title="Budget and prior")
    ax.set_ylim(bottom=0.0)  # an error of zero has its place
    ax.legend()
    return drawn


def text_bars(labels: Sequence[str], lengths: Sequence[float]) -> list[str]:
    """Bars of letters, the longest of them `BAR` long, for a terminal.

    >>> text_bars(["a", "bb"], [40.0, 3.0])
    [' a ########################################', 'bb ###']
    """
    longest, wide = max([*lengths, 0.0]), max(map(len, labels))
    scale = BAR / longest if longest > 0.0 else 0.0
    return [f"{label:>{wide}} {'#' * round(length * scale)}" for label, length in zip(labels, lengths, strict=True)]
