"""What the least error is measured against: aims for `benchmarks.least_error`, and which of them were met.

A mean meets an aim if it is at most two standard errors above. Aims are numbers, or multiples of what other rows have:
of the best method that assumes no smoothness, of the same method under a uniform prior, of a tree.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
NO_WORSE = 1.15  # times the best
ROUGH = "tree", "joint, all", "mixed", "margin", "JointExp", "Kaplan", "Google"  # none reads most off a curve
ANY_SHAPE = "Gaussian, 10", "two modes, 10", "lognormal, 1000", "twelve lumps, 10", "ages, grid of 1"
LEVELS, BUDGETS = (1, 9, 29, 99), (1.0, 0.1)
SHOWN = {  # methods for README, in words
    "Kaplan": "the tree of 2022, as published",
    "JointExp": "JointExp, 2021",
    "Google": "Google's tree of counts",
    "tree": "`tree`",
    "auto, size": "`auto`",
    "auto, smooth": "`auto`, a smooth column promised",
}
SHOWN_SHAPES, SHOWN_LEVELS = (("Gaussian, 10", "bell"), ("twelve lumps, 10", "lumps")), (9, 99)
Place = tuple[str, float, int]  # shape, budget, number of quantiles


@dataclass(frozen=True)
class Aim:
    """A method should have at most `most` records, or `times` the least of the methods `of` on the shape `on`."""

    about: str
    method: str
    place: Place
    most: float = math.nan
    times: float = 1.0
    of: tuple[str, ...] = ()
    on: str | None = None


def _numbers(about: str, method: str, shape: str, budget: float, most: dict[int, float]) -> list[Aim]:
    return [Aim(about, method, (shape, budget, m), value) for m, value in most.items()]


AIMS: list[Aim] = [
    *_numbers("smooth", "auto, smooth", "Gaussian, 10", 1.0, {1: 1.1, 9: 6.3, 29: 9.2, 99: 10.4}),
    *_numbers("smooth", "auto, smooth", "Gaussian, 10", 0.1, {1: 10.5, 9: 37.0, 29: 39.5, 99: 41.0}),
    *_numbers("smooth", "auto, smooth", "Gaussian, 1000", 1.0, {1: 1.1, 9: 6.4, 29: 9.6, 99: 11.0}),
    *_numbers("smooth", "auto, smooth", "Gaussian, 1000", 0.1, {1: 10.5, 9: 37.0, 29: 39.5, 99: 41.0}),
    *(
        Aim("nothing promised", "auto, size", (shape, budget, m), times=NO_WORSE, of=ROUGH)
        for shape in ANY_SHAPE
        for budget in BUDGETS
        for m in LEVELS
    ),
    *_numbers("nothing promised", "auto, size", "Gaussian, 10", 1.0, {9: 6.5, 29: 13.8, 99: 22.0}),
    *_numbers("nothing promised", "auto, size", "twelve lumps, 10", 1.0, {9: 17.5, 29: 18.5, 99: 27.5}),
    *_numbers("no size", "auto", "Gaussian, 10", 1.0, {9: 7.0}),
    *_numbers("a good prediction", "auto, smooth", "Gaussian, N(0.2, 1.2)", 0.1, {99: 41.0}),
    *_numbers("a good prediction", "cells, smooth", "Gaussian, N(0.2, 1.2)", 0.1, {99: 38.0}),
    *(
        Aim("a wrong one", "auto, smooth", ("Gaussian, N(3, 1)", 1.0, m), math.nan, NO_WORSE, ("auto, smooth",), on)
        for m, on in ((9, "Gaussian, 10"), (29, "Gaussian, 10"))
    ),
    *(Aim("a wrong one", "auto, smooth", ("Gaussian, N(3, 1)", 0.1, m), of=("tree",)) for m in (9, 29)),
]


def compare(rows: Iterable[Row]) -> list[Row]:
    """What was measured for each aim whose rows are there, in the order of the aims."""
    known = {(row["shape"], row["epsilon"], row["m"], row["method"]): row for row in rows}
    out = []
    for aim in AIMS:
        mine, others = known.get((*aim.place, aim.method)), [aim.method]
        most, error, best = aim.most, 0.0, ""
        if aim.of:
            there = aim.on or aim.place[0], *aim.place[1:]
            others = [name for name in aim.of if (*there, name) in known]
            best = min(others, key=lambda name: known[*there, name]["max_gap"], default="")
            if best:
                most, error = (aim.times * known[*there, best][name] for name in ("max_gap", "error"))
        if mine is not None and not math.isnan(most):
            spare = 2.0 * math.hypot(mine["error"], error)
            out.append(_row(aim, mine, most, best, spare))
    return out


def _row(aim: Aim, mine: Row, most: float, best: str, spare: float) -> Row:
    shape, budget, m = aim.place
    return {
        "about": aim.about,
        "shape": shape,
        "epsilon": budget,
        "m": m,
        "method": aim.method,
        "mechanism": mine["mechanism"],
        "aim": most,
        "of": f"{aim.times:g} x {best}" if best else "",
        "measured": mine["max_gap"],
        "two_errors": spare,
        "trials": mine["trials"],
        "met": mine["max_gap"] <= most + spare,
    }


def gaps_table(rows: Iterable[Row]) -> str:
    """Largest gaps of nine deciles and ninety-nine quantiles at a budget of one, for README."""
    known = {(row["shape"], float(row["epsilon"]), int(row["m"]), row["method"]): row for row in rows}
    heads = [f"{name}, m = {m}" for _, name in SHOWN_SHAPES for m in SHOWN_LEVELS]
    lines = ["| | " + " | ".join(heads) + " |", "|---" * (1 + len(heads)) + "|"]
    for method, words in SHOWN.items():
        places = [(shape, 1.0, m, method) for shape, _ in SHOWN_SHAPES for m in SHOWN_LEVELS]
        gaps = [f"{float(known[place]['max_gap']):.1f}" if place in known else "" for place in places]
        lines.append(f"| {words} | " + " | ".join(gaps) + " |")
    return "\n".join(lines)


def said(compared: list[Row]) -> list[str]:
    """Lines to print: how many aims are met, and those that are not."""
    missed = [row for row in compared if not row["met"]]
    lines = [f"\n{len(compared) - len(missed)} of {len(compared)} aims are met"] if compared else []
    for row in missed:
        where = f"{row['shape']}, epsilon {row['epsilon']:g}, m = {row['m']}"
        lines.append(
            f"missed: {row['method']}, {where}: {row['measured']:.1f}, aim {row['aim']:.1f} {row['of']}".rstrip()
        )
    return lines
