"""What differential privacy promises and what not, in plain words with the numbers of one release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

MECHANISMS = {
    "tree": "Each quantile was drawn by an exponential mechanism: values close to the right rank are likely, others "
    "exponentially less so. The quantiles hang on a tree, so that each looks only between those above it.",
    "joint": "All quantiles were drawn at once by one exponential mechanism, together with the number of records.",
    "cells": "Records were counted in cells that follow the data, with noise on each count; the values are quantiles "
    "of that private distribution function, and so would be any further ones.",
    "margin": "Quantiles were drawn on a tree, on a grid; a value that many records share can come out exactly.",
}
MEASURED = {"tree": 50, "joint": 92, "margin": 97}  # per cent: least share in results/benchmarks/interval_coverage.csv
PAPER = """@inproceedings{khodak2023quantiles,
  author    = {Khodak, Mikhail and Amin, Kareem and Dick, Travis
               and Vassilvitskii, Sergei},
  title     = {Learning-Augmented Private Algorithms for Multiple
               Quantile Release},
  booktitle = {Proceedings of the 40th International Conference on
               Machine Learning},
  year      = {2023}
}"""
ADJACENCIES = {
    "add-remove": "one person more or one less",
    "replace": "one person’s data replaced by any other",
}


@dataclass(frozen=True)
class Promise:
    """Sentences: the promise itself, what follows from it, and what does not."""

    promise: str
    promised: tuple[str, ...]
    not_promised: tuple[str, ...]


def promise_of(
    epsilon: float,
    shown: str,
    *,
    adjacency: str,
    max_contributions: int,
    on_grid: bool,
    public_total: int | None = None,
) -> Promise:
    """What a release promises, in words.

    epsilon: of the whole release; shown: its text. adjacency, max_contributions, public_total: as of the release.
    on_grid: whether values are multiples of a public step. Numbers in the sentences are rounded away from privacy.

    >>> promise_of(1.0, "1", adjacency="replace", max_contributions=1, on_grid=True).promised[0].count("73.2%")
    1
    """
    if math.isinf(epsilon):
        nothing = "Nothing: ε is infinite, which is for tests. The values may be those of the data themselves."
        return Promise(nothing, (), ("Any privacy at all.",))
    records = "the one record" if max_contributions == 1 else f"all of the up to {max_contributions} records"
    if adjacency == "add-remove":
        change = f"Take any one person out of the table, or put one in, with {records} that a person may have"
    else:
        change = f"Take any one person and replace {records} that a person may have by others, whatever they say"
    factor = _above(_power(epsilon), 3) if epsilon < 690 else "more than 10^299"
    promise = (
        f"{change}: the chance of anything that this page could have shown changes by a factor of at most {factor}. "
        f"That factor is e to the power of ε, and ε = {shown} here. This is ε-differential privacy."
    )
    return Promise(
        promise,
        (_belief(epsilon, adjacency), *_always(adjacency, max_contributions, shown, public_total)),
        _never(shown, adjacency, max_contributions, on_grid, public_total),
    )


def interval_words(mechanism: str, level: str | None) -> str:
    """What intervals of a release mean; level: as text, None where there are none."""
    if level is None:
        return (
            "There are no intervals: nothing public tells how many records there are. A rough number, never the true "
            "one, would give them."
        )
    head = f"In {level} of such releases all intervals together hold the true quantiles of the table."
    if mechanism == "cells":
        return f"{head} That follows from the exact law of the noise, whatever the data are."
    found = (
        f"{head} That is found by simulating this release on tables that look like what was released; it is no "
        "guarantee for every table."
    )
    if mechanism not in MEASURED:
        return found
    return (
        f"{found} On tables of six kinds at two budgets, intervals of 95% that were found so held all in at least "
        f"{MEASURED[mechanism]}% of releases."
    )


def _belief(epsilon: float, adjacency: str) -> str:
    share = 1.0 / (1.0 + math.exp(-epsilon))
    most = Decimal(share).scaleb(2).quantize(Decimal("0.1"), rounding=ROUND_CEILING)
    what = (
        "that a certain person is in the table" if adjacency == "add-remove" else "one of two things of a person’s data"
    )
    if share > 0.99:
        return (
            f"Who holds {what} 50% likely before seeing this page may hold it {most}% likely afterwards: this ε is so "
            "large that the promise says little."
        )
    return (
        f"Who holds {what} 50% likely before seeing this page has no reason to go beyond {most}% afterwards, nor "
        f"below {100 - most}%."
    )


def _always(adjacency: str, people: int, shown: str, public_total: int | None) -> tuple[str, ...]:
    said = ["It holds against everybody, whatever else they know, whatever they compute, now and later."]
    if people > 1:
        said.append(f"It holds for all records of a person at once, up to {people} of them, at ε = {shown} together.")
    if adjacency == "add-remove" and public_total is None:
        said.append("How many records there are is protected like everything else.")
    return (*said, "Whatever is computed from this page alone costs nobody any further privacy.")


def _never(shown: str, adjacency: str, people: int, on_grid: bool, public_total: int | None) -> tuple[str, ...]:
    said = [
        f"Other releases about the same people add up: a second one at the same ε makes it 2 × {shown} for both.",
        f"Groups: four people together, a family say, are protected at 4 × {shown} only, and so is a person with "
        f"{4 * people} records instead of {people}.",
        "What is true of people in general can be learned, and may say something of a person who is not in the table.",
        "It is lost if the parameters below were chosen by looking at the data, or if somebody knows the seed of the "
        "random numbers.",
        "How long the computation took, and what else its machine gave away, is not covered.",
    ]
    if adjacency == "replace":
        said.append("How many records there are is not protected.")
    elif public_total is not None:
        said.append(f"How many records there are, {public_total:,}, was taken for public knowledge.")
    if not on_grid:
        said.append(
            "Values not on a grid are floating-point numbers: their last digits can betray more than is promised."
        )
    return (*said, "The values are not exact: chance is what keeps the promise.")


def _power(epsilon: float) -> Decimal:
    return Decimal(math.exp(epsilon)) * (1 + Decimal("1e-12"))


def _above(value: Decimal, digits: int) -> str:
    """A number in so many digits that are never less than it."""
    rounded = value.quantize(Decimal(1).scaleb(value.adjusted() - digits + 1), rounding=ROUND_CEILING)
    return f"{rounded:,f}" if rounded < 10**9 else f"{rounded:.2e}"
